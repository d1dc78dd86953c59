/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leases that ran out: many executions are claimed for a second by a worker that never comes back,
 * and the time is taken in which the passes make all of them ready again.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "bench/bench.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/scan/pass.h"
#include "weft/admin.h"
#include "weft/weft.h"

#include <string.h>
#include <time.h>

enum { PASS_BATCH = 1000, LEASE_MS = 1000 };

static bool claim_all(struct weft_engine *engine, size_t wanted)
{
    const struct weft_claim claim = {.worker = "mayfly", .max = PASS_BATCH, .lease_ms = LEASE_MS};
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result got = {.count = 1};
    enum weft_rc rc = WEFT_OK;
    size_t claimed = 0;
    while (!rc && claimed < wanted && got.count > 0) {
        struct weft_err err;
        rc = weft_engine_claim(engine, "default", &claim, 1, arena, &got, &err);
        if (rc)
            (void)bench_fail(rc, &err, "claim");
        else
            claimed += got.count;
    }
    weft_arena_free(arena);
    if (!rc && claimed < wanted)
        (void)fprintf(stderr, "bench: only %zu of %zu could be claimed\n", claimed, wanted);
    return !rc && claimed >= wanted;
}

static bool expire_all(struct weft_engine *engine, size_t wanted, double *ret_seconds)
{
    struct timespec pause = {.tv_sec = LEASE_MS / 1000, .tv_nsec = 100000000};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL); /* the last lease must run out */
    weft_usec start_us = weft_boot_us();
    size_t handled = 0;
    struct weft_pass_report report = {.more = true};
    while (report.more) {
        struct weft_err err;
        enum weft_rc rc =
            weft_engine_pass(engine, WEFT_SCANNER_LEASE_EXPIRY,
                             &(struct weft_pass_config){.batch = PASS_BATCH}, &report, &err);
        if (rc)
            return bench_fail(rc, &err, "lease_expiry");
        handled += report.handled;
    }
    *ret_seconds = (double)(weft_boot_us() - start_us) / 1e6;
    if (handled == wanted)
        return true;
    (void)fprintf(stderr, "bench: %zu of %zu leases were made ready\n", handled, wanted);
    return false;
}

static bool repeat(const struct bench *bench, struct weft_engine *engine,
                   const struct bench_meter *meter, struct bench_runs *ret_runs)
{
    size_t leases = bench->options.leases;
    for (uint32_t i = 0; i < bench->options.repeats; i++) {
        struct bench_span span = {.meter = meter};
        double seconds = 0;
        bench_progress("expiry: %zu leases, run %u of %u", leases, i + 1, bench->options.repeats);
        if (!claim_all(engine, leases) || !bench_span_begin(&span) ||
            !expire_all(engine, leases, &seconds) || !bench_span_end(&span))
            return false;
        ret_runs->run[ret_runs->count++] = bench_span_run(&span, (double)leases, seconds);
    }
    return true;
}

static bool expiry(struct bench *bench, const struct bench_store *store)
{
    const struct bench_load load = {.batch = PASS_BATCH,
                                    .connections = 1,
                                    .turns = bench->options.leases / PASS_BATCH,
                                    .submit_only = true};
    struct bench_run ignored;
    if (!bench_product_run(store->url, &load, NULL, &ignored))
        return false;
    struct weft_engine *engine;
    struct weft_err err;
    const struct weft_engine_config config = {.url = store->url, .connections = 1};
    enum weft_rc rc = weft_engine_open(&config, &engine, &err);
    if (rc)
        return bench_fail(rc, &err, "open");
    struct bench_runs runs = {.count = 0};
    bool done = repeat(bench, engine, store->meter, &runs);
    weft_engine_close(engine);
    const struct bench_row row = {
        .name = "expiry", .store = store->name, .batch = PASS_BATCH, .connections = 1};
    if (done)
        bench_report_add(bench->report, row, &runs, NULL);
    return done;
}

bool bench_case_expiry(struct bench *bench)
{
    const struct bench_load load = {.batch = PASS_BATCH, .connections = 1};
    return bench_on_stores(bench, "expiry", &load, expiry);
}
