/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The product's side: the calls that a server makes for its clients.
 *
 * One engine is shared by all threads and has as many connections as there are threads, because
 * that is how a server runs it. Each thread submits a batch, claims a batch, completes what it
 * got, and answers are looked at: a refused item ends the benchmark.
 */

#include "bench/bench.h"

#include "base/arena.h"

#include <stdlib.h>

/* The names of the ten queues. */
static const char *const names[BENCH_QUEUES] = {"q0", "q1", "q2", "q3", "q4",
                                                "q5", "q6", "q7", "q8", "q9"};

struct worker {
    struct weft_engine *engine;
    const struct bench_load *load;
    struct weft_arena *memory; /* of everything below */
    struct weft_arena *claims;
    struct weft_spec *spec;
    struct weft_submitted *submitted;
    struct weft_claim claim;
    struct weft_complete *complete;
    struct weft_lease_answer *answer;
};

bool bench_product_fail(enum weft_rc rc, const struct weft_err *err, const char *what)
{
    (void)fprintf(stderr, "bench: %s: %s: %s%s%s\n", what, weft_rc_wire(rc), err->text,
                  err->hint ? "; " : "", err->hint ? err->hint : "");
    return false;
}

static struct weft_spec make_spec(const struct worker *worker, unsigned index, uint32_t i)
{
    char *payload = weft_arena_alloc(worker->memory, BENCH_PAYLOAD, 1);
    bench_fill_text(payload, BENCH_PAYLOAD, index * 1000 + i);
    const char *name = names[i % BENCH_QUEUES];
    struct weft_spec spec = {.kind = "bench", .payload = payload, .payload_size = BENCH_PAYLOAD};
    switch (worker->load->spread) {
    case BENCH_ONE_QUEUE:
        break;
    case BENCH_KINDS:
        spec.kind = name;
        break;
    case BENCH_TENANTS:
        spec.tenant = name;
        break;
    case BENCH_LANES:
        spec.lane = name;
        break;
    }
    return spec;
}

static void *open_worker(const void *job, const struct bench_load *load, unsigned index)
{
    struct weft_arena *memory = weft_arena_new();
    struct worker *worker = weft_new(memory, struct worker);
    *worker = (struct worker){
        .engine = *(struct weft_engine *const *)job,
        .load = load,
        .memory = memory,
        .claims = weft_arena_new(),
        .spec = weft_new_array(memory, struct weft_spec, load->batch),
        .submitted = weft_new_array(memory, struct weft_submitted, load->batch),
        .complete = weft_new_array(memory, struct weft_complete, load->batch),
        .answer = weft_new_array(memory, struct weft_lease_answer, load->batch),
        .claim = {.worker = weft_arena_printf(memory, "worker-%u", index), .max = load->batch},
    };
    if (load->spread == BENCH_LANES) {
        worker->claim.lanes = names;
        worker->claim.lane_count = BENCH_QUEUES;
    }
    char *result = weft_arena_alloc(memory, BENCH_RESULT, 1);
    bench_fill_text(result, BENCH_RESULT, index);
    for (uint32_t i = 0; i < load->batch; i++) {
        worker->spec[i] = make_spec(worker, index, i);
        worker->complete[i].result = result;
        worker->complete[i].result_size = BENCH_RESULT;
    }
    return worker;
}

static void close_worker(void *arg)
{
    struct worker *worker = arg;
    weft_arena_free(worker->claims);
    weft_arena_free(worker->memory);
}

static bool submit(struct worker *worker)
{
    struct weft_err err;
    enum weft_rc rc = weft_engine_submit(worker->engine, "default", worker->spec,
                                         worker->load->batch, worker->submitted, &err);
    if (rc)
        return bench_product_fail(rc, &err, "submit");
    for (uint32_t i = 0; i < worker->load->batch; i++)
        if (worker->submitted[i].err.rc)
            return bench_product_fail(worker->submitted[i].err.rc, &worker->submitted[i].err,
                                      "submit");
    return true;
}

static long turn(void *arg)
{
    struct worker *worker = arg;
    if (!submit(worker))
        return -1;
    if (worker->load->submit_only)
        return worker->load->batch;
    struct weft_claim_result got;
    struct weft_err err;
    enum weft_rc rc =
        weft_engine_claim(worker->engine, "default", &worker->claim, 1, worker->claims, &got, &err);
    if (rc)
        return bench_product_fail(rc, &err, "claim") - 1;
    for (size_t i = 0; i < got.count; i++) {
        worker->complete[i].id = got.item[i].id;
        worker->complete[i].epoch = got.item[i].epoch;
    }
    rc = weft_engine_complete(worker->engine, worker->complete, got.count, worker->answer, &err);
    if (rc)
        return bench_product_fail(rc, &err, "complete") - 1;
    for (size_t i = 0; i < got.count; i++)
        if (worker->answer[i].err.rc)
            return bench_product_fail(worker->answer[i].err.rc, &worker->answer[i].err,
                                      "complete") -
                   1;
    return (long)got.count;
}

bool bench_product_run(const char *url, const struct bench_load *load,
                       const struct bench_meter *meter, struct bench_run *ret_run)
{
    static const struct bench_trade trade = {open_worker, turn, close_worker};
    struct weft_engine *engine;
    struct weft_err err;
    const struct weft_engine_config config = {.url = url, .connections = load->connections};
    enum weft_rc rc = weft_engine_open(&config, &engine, &err);
    if (rc)
        return bench_product_fail(rc, &err, "open");
    bool done = bench_crew_run(&trade, &engine, load, meter, ret_run);
    weft_engine_close(engine);
    return done;
}
