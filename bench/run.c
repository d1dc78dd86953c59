/* SPDX-License-Identifier: Apache-2.0 */

/* Runs of a crew, with what the database server wrote meanwhile. */

#include "bench/bench.h"

#include <math.h>

bool bench_fail(enum weft_rc rc, const struct weft_err *err, const char *what)
{
    (void)fprintf(stderr, "bench: %s: %s: %s%s%s\n", what, weft_rc_wire(rc), err->text,
                  err->hint ? "; " : "", err->hint ? err->hint : "");
    return false;
}

bool bench_span_begin(struct bench_span *span)
{
    return !span->meter || bench_meter_read(span->meter, &span->before);
}

bool bench_span_end(struct bench_span *span)
{
    return !span->meter || bench_meter_read(span->meter, &span->after);
}

struct bench_run bench_span_run(const struct bench_span *span, double count, double seconds)
{
    double wal_bytes = span->after.wal_bytes - span->before.wal_bytes;
    double commits = span->after.transactions - span->before.transactions;
    return (struct bench_run){.per_s = count / seconds,
                              .wal_bytes = span->meter ? wal_bytes / count : NAN,
                              .commits = span->meter ? commits / count : NAN};
}

static enum weft_rc mark(void *context, bool end, struct weft_err *err)
{
    bool good = end ? bench_span_end(context) : bench_span_begin(context);
    return good ? WEFT_OK : weft_fail(err, WEFT_UNAVAILABLE, "the meter cannot be read");
}

bool bench_crew_run(const struct weft_bench_crew *crew, const struct bench_meter *meter,
                    struct bench_run *ret_run)
{
    struct weft_bench_crew metered = *crew;
    struct bench_span span = {.meter = meter};
    struct weft_bench_yield yield;
    struct weft_err err = {0};
    metered.mark = mark;
    metered.context = &span;
    enum weft_rc rc = weft_bench_crew_run(&metered, &yield, &err);
    if (rc)
        return bench_fail(rc, &err, "run");
    if (yield.done == 0) {
        (void)fprintf(stderr, "bench: no lifecycle was finished in %.1f s\n", yield.seconds);
        return false;
    }
    *ret_run = bench_span_run(&span, (double)yield.done, yield.seconds);
    return true;
}

bool bench_product_run(const char *url, const struct bench_load *load,
                       const struct bench_meter *meter, struct bench_run *ret_run)
{
    struct weft_err err = {0};
    struct weft_bench_job job = {.batch = load->batch,
                                 .payload_size = BENCH_PAYLOAD,
                                 .kind = "bench",
                                 .spread = load->spread,
                                 .submit_only = load->submit_only};
    const struct weft_options options = {.connections = load->connections};
    const struct weft_bench_crew crew = {.trade = &weft_bench_lifecycle,
                                         .job = &job,
                                         .threads = load->connections,
                                         .run_us = (weft_usec)(load->seconds * 1e6),
                                         .turns = load->turns};
    enum weft_rc rc = weft_open(url, &options, &job.weft, &err);
    if (rc)
        return bench_fail(rc, &err, "open");
    bool done = bench_crew_run(&crew, meter, ret_run);
    weft_close(job.weft);
    return done;
}
