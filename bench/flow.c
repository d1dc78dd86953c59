/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Flows, in this process: how long it takes until what comes after a completion may be claimed.
 *
 *     fan    one node, 10,000 that come after it, and one that comes after all of these
 *     race   1,001 nodes that run, and one that comes after any of them: the first to succeed has
 *            the 1,000 others cancelled
 *     stairs 200 nodes that run, and 200 that come after all of them: the first of these wants one
 *            of them to succeed and the others cancelled, the second wants two, and so on
 *
 * An engine without a server runs the cascade within the call that completes, so a time is that of
 * the call: the commit of the completion is in it, and all that it sets off. The promised
 * effects are checked afterwards, outside of the time: all may be claimed, each worker learns of
 * the cancel.
 */

#include "engine/flow/flow.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "bench/bench.h"
#include "cmd/bench/bench.h"
#include "direct.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "weft/weft.h"

#include <string.h>

enum { CLAIM_MAX = 1000, LEASE_MS = 600000, LOAD_BATCH = 1000, CONNECTIONS = 4 };

struct stage {
    struct bench *bench;
    const char *store;
    struct weft_engine *engine;
    struct weft_arena *memory; /* of the flow that is run */
    struct weft_complete *held;
    size_t held_count;
};

/* ---- Steps ----------------------------------------------------------------------------------- */

static bool submit(struct stage *stage, const struct weft_flow_spec *spec, weft_usec *ret_took_us)
{
    struct weft_flow_submitted answer = {.node = NULL};
    struct weft_err err;
    weft_usec begun_us = weft_boot_us();
    enum weft_rc rc = engine_flow_submit(stage->engine, "default", spec, 1, &answer, &err);
    *ret_took_us = weft_boot_us() - begun_us;
    if (rc)
        return bench_fail(rc, &err, "submit");
    return !answer.err.rc || bench_fail(answer.err.rc, &answer.err, "submit");
}

/* Claims all there is, which must be `wanted`; they are held then. */
static bool claim(struct stage *stage, size_t wanted)
{
    const struct weft_claim claim = {.worker = "bench", .max = CLAIM_MAX, .lease_ms = LEASE_MS};
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result got = {.count = 1};
    enum weft_rc rc = WEFT_OK;
    stage->held = weft_new_array(stage->memory, struct weft_complete, wanted + 1);
    stage->held_count = 0;
    while (!rc && got.count > 0 && stage->held_count <= wanted) {
        struct weft_err err;
        rc = weft_engine_claim(stage->engine, "default", &claim, 1, arena, &got, &err);
        if (rc)
            (void)bench_fail(rc, &err, "claim");
        for (size_t i = 0; i < got.count && !rc && stage->held_count <= wanted; i++)
            stage->held[stage->held_count++] = (struct weft_complete){
                .id = got.item[i].id, .epoch = got.item[i].epoch, .result = "{}", .result_size = 2};
    }
    weft_arena_free(arena);
    if (!rc && stage->held_count != wanted)
        (void)fprintf(stderr, "bench: %zu can be claimed, not %zu\n", stage->held_count, wanted);
    return !rc && stage->held_count == wanted;
}

static bool complete(struct stage *stage, size_t from, size_t count, weft_usec *ret_took_us)
{
    struct weft_lease_answer *answer =
        weft_new_array(stage->memory, struct weft_lease_answer, LOAD_BATCH);
    *ret_took_us = 0;
    for (size_t at = 0, part; at < count; at += part) {
        struct weft_err err;
        part = count - at < LOAD_BATCH ? count - at : LOAD_BATCH;
        weft_usec begun_us = weft_boot_us();
        enum weft_rc rc =
            engine_complete(stage->engine, stage->held + from + at, part, answer, &err);
        *ret_took_us += weft_boot_us() - begun_us;
        if (rc)
            return bench_fail(rc, &err, "complete");
        for (size_t i = 0; i < part; i++)
            if (answer[i].err.rc)
                return bench_fail(answer[i].err.rc, &answer[i].err, "complete");
    }
    return true;
}

/* The worker of each held lease but the first must learn that it is cancelled. */
static bool told_of_cancel(struct stage *stage)
{
    size_t count = stage->held_count - 1;
    struct weft_renew *renew = weft_new_array(stage->memory, struct weft_renew, count);
    struct weft_lease_answer *answer =
        weft_new_array(stage->memory, struct weft_lease_answer, count);
    for (size_t i = 0; i < count; i++)
        renew[i] =
            (struct weft_renew){.id = stage->held[i + 1].id, .epoch = stage->held[i + 1].epoch};
    struct weft_err err;
    enum weft_rc rc = engine_renew(stage->engine, renew, count, answer, &err);
    if (rc)
        return bench_fail(rc, &err, "renew");
    for (size_t i = 0; i < count; i++)
        if (answer[i].err.rc != WEFT_FENCED || answer[i].fence != WEFT_FENCE_CANCELLED) {
            (void)fprintf(stderr, "bench: the renewal of a sibling does not report the cancel\n");
            return false;
        }
    return true;
}

/* ---- The flows ------------------------------------------------------------------------------- */

static struct weft_node make_node(struct stage *stage, const char *name, unsigned seed)
{
    struct weft_buf text;
    weft_buf_init(&text, BENCH_PAYLOAD);
    weft_bench_document(&text, BENCH_PAYLOAD, seed);
    const void *payload = weft_arena_dup(stage->memory, text.data, text.size);
    weft_buf_done(&text);
    return (struct weft_node){
        .name = name, .spec = {.kind = "bench", .payload = payload, .payload_size = BENCH_PAYLOAD}};
}

/* `wide` nodes and one that joins them; in front of them, if asked for, one that they come after.
 */
static struct weft_flow_spec make_flow(struct stage *stage, size_t wide, bool fan)
{
    struct weft_arena *memory = stage->memory;
    struct weft_node *node = weft_new_array(memory, struct weft_node, wide + 2);
    const char **name = weft_new_array(memory, const char *, wide);
    const char **first = weft_new(memory, const char *);
    size_t count = 0;
    *first = "first";
    if (fan)
        node[count++] = make_node(stage, *first, 0);
    for (size_t i = 0; i < wide; i++) {
        name[i] = weft_arena_printf(memory, "m%zu", i);
        node[count] = make_node(stage, name[i], (unsigned)i + 1);
        node[count].after = fan ? first : NULL;
        node[count++].after_count = fan;
    }
    node[count] = make_node(stage, "last", (unsigned)wide + 1);
    node[count].join = fan ? WEFT_JOIN_ALL : WEFT_JOIN_ANY;
    node[count].after = name;
    node[count++].after_count = wide;
    return (struct weft_flow_spec){.name = "bench", .nodes = node, .node_count = count};
}

/* The times of a fan; race and stairs have one each. */
enum { SUBMIT, OUT, UPSTREAMS, JOIN, FAN_TIMES };

static bool run_fan(struct stage *stage, struct weft_hist *hist)
{
    size_t wide = stage->bench->options.wide;
    const struct weft_flow_spec spec = make_flow(stage, wide, true);
    weft_usec submit_us, out_us, upstreams_us, join_us, ignored_us;
    if (!submit(stage, &spec, &submit_us) || !claim(stage, 1) || !complete(stage, 0, 1, &out_us) ||
        !claim(stage, wide) || !complete(stage, 0, wide - 1, &upstreams_us) ||
        !complete(stage, wide - 1, 1, &join_us) || !claim(stage, 1) ||
        !complete(stage, 0, 1, &ignored_us))
        return false;
    weft_hist_add(&hist[SUBMIT], submit_us);
    weft_hist_add(&hist[OUT], out_us);
    weft_hist_add(&hist[UPSTREAMS], upstreams_us);
    weft_hist_add(&hist[JOIN], join_us);
    return true;
}

static bool run_race(struct stage *stage, struct weft_hist *hist)
{
    size_t siblings = stage->bench->options.siblings;
    const struct weft_flow_spec spec = make_flow(stage, siblings + 1, false);
    weft_usec took_us, ignored_us;
    if (!submit(stage, &spec, &ignored_us) || !claim(stage, siblings + 1) ||
        !complete(stage, 0, 1, &took_us) || !told_of_cancel(stage) || !claim(stage, 1) ||
        !complete(stage, 0, 1, &ignored_us))
        return false;
    weft_hist_add(hist, took_us);
    return true;
}

static bool run_stairs(struct stage *stage, struct weft_hist *hist)
{
    size_t side = stage->bench->options.stairs;
    struct weft_node *node = weft_new_array(stage->memory, struct weft_node, 2 * side);
    const char **name = weft_new_array(stage->memory, const char *, 2 * side);
    for (size_t i = 0; i < 2 * side; i++) {
        name[i] = weft_arena_printf(stage->memory, "m%zu", i);
        node[i] = make_node(stage, name[i], (unsigned)i);
        if (i < side)
            continue;
        node[i].after = name;
        node[i].after_count = side;
        node[i].join = WEFT_JOIN_QUORUM;
        node[i].k = (uint32_t)(i - side + 1);
    }
    const struct weft_flow_spec spec = {.name = "bench", .nodes = node, .node_count = 2 * side};
    weft_usec took_us;
    if (!submit(stage, &spec, &took_us) || !claim(stage, side))
        return false;
    for (size_t i = 0; i < side; i++) {
        if (!complete(stage, i, 1, &took_us))
            return false;
        weft_hist_add(hist, took_us);
    }
    return claim(stage, side) && complete(stage, 0, side, &took_us);
}

/* ---- The case -------------------------------------------------------------------------------- */

static bool repeat(struct stage *stage, const char *name, uint32_t runs,
                   bool (*run)(struct stage *stage, struct weft_hist *hist), struct weft_hist *hist)
{
    bool done = true;
    for (uint32_t i = 0; i < runs && done; i++) {
        bench_progress("flow: %s on %s, run %u", name, stage->store, i + 1);
        stage->memory = weft_arena_new();
        done = run(stage, hist);
        weft_arena_free(stage->memory);
    }
    return done;
}

static bool flow(struct bench *bench, const struct bench_store *store)
{
    static const struct {
        const char *what;
        double must_ms;
    } line[] = {{"1 -> 10,000 -> 1: submitted", 1000},
                {"  first completed -> all 10,000 claimable", 800},
                {"  9,999 completed, in batches of 1,000", 0},
                {"  last completed -> join claimable", 200},
                {"any: winner completed -> 1,000 cancelled", 100},
                {"stairs: one of 200 before 200 completed", 0}};
    static struct weft_hist hist[WEFT_LEN(line)]; /* of the fan, of the race, of the stairs */
    struct stage stage = {.bench = bench, .store = store->name};
    struct weft_err err;
    const struct weft_engine_config config = {.url = store->url, .connections = CONNECTIONS};
    enum weft_rc rc = weft_engine_open(&config, &stage.engine, &err);
    if (rc)
        return bench_fail(rc, &err, "open");
    memset(hist, 0, sizeof(hist));
    bool done = repeat(&stage, "fan", bench->options.repeats, run_fan, hist) &&
                repeat(&stage, "race", bench->options.races, run_race, hist + FAN_TIMES) &&
                repeat(&stage, "stairs", bench->options.repeats, run_stairs, hist + FAN_TIMES + 1);
    weft_engine_close(stage.engine);
    for (size_t i = 0; i < WEFT_LEN(line) && done; i++) {
        const struct bench_time time = {
            .name = "flow", .store = store->name, .what = line[i].what, .must_ms = line[i].must_ms};
        bench_report_time(bench->report, time, &hist[i]);
    }
    return done;
}

bool bench_case_flow(struct bench *bench)
{
    const struct bench_load load = {.batch = LOAD_BATCH, .connections = 1};
    return bench_on_stores(bench, "flow", &load, flow);
}
