/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The runner: flowmodel [SEED [COUNT]], or flowmodel sizes. Without a seed, some thousand fixed
 * ones; with WEFT_SOAK=1 some hundred thousand, half of them fresh. All seeds of a run share a
 * store, in which each leaves nothing that lives.
 */

#include "flowmodel.h"
#include "sizes.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "engine/engine.h"
#include "engine/tx/commit_effects.h"
#include "store/fault/fault.h"
#include "store/store.h"

#include <stdlib.h>

enum { SEEDS_SQLITE = 2000, SEEDS_PG = 150, SOAK_FACTOR = 150, STEPS_MAX = 40, LOT = 100 };

static const struct {
    void (*run)(struct world *w);
    unsigned share;
} operations[] = {
    {op_claim, 25},   {op_end, 30},       {op_cancel, 4},      {op_replay, 5},
    {op_clock, 6},    {op_grow, 7},       {op_cancel_flow, 1}, {op_drain, 3},
    {op_cascade, 24}, {op_replay_all, 2}, {op_edge, 6},
};

/* What a server does with the news, or nothing: then a later cascade must find it all. */
static void on_flows(void *context, const struct weft_id *flow, size_t count)
{
    struct world *w = context;
    if (w->eager)
        cascade_whole(w, flow, count);
}

static void random_step(struct world *w)
{
    operations[dice_share(&w->random, &operations[0].share, sizeof(operations[0]),
                          WEFT_LEN(operations))]
        .run(w);
    w->steps++;
}

static void run_seed(struct world *w, uint64_t seed)
{
    w->random = w->seed = seed;
    w->seeds++;
    w->now_us = START_US;
    w->diary.count = w->step = 0;
    w->failed = false;
    w->eager = chance(w, 25);
    w->apart = chance(w, 25);
    for (size_t i = 0; i < ENGINES; i++)
        weft_clock_set(weft_engine_clock(w->engine[i]), w->now_us);
    op_submit(w);
    size_t steps = below(w, STEPS_MAX + 1);
    for (w->step = 1; w->step <= steps && !w->failed; w->step++) {
        random_step(w);
        /* What is wrong mostly stays wrong: every other look is enough. */
        for (size_t f = 0; f < w->flows && !w->failed && chance(w, 50); f++)
            compare(w, &w->flow[f]);
    }
    if (!w->failed)
        run_out(w);
    if (w->failed)
        print_story(w);
}

static void run_lot(struct world *w, uint64_t first, size_t count)
{
    size_t bad = 0;
    for (size_t i = 0; i < count && !bad; i++) {
        run_seed(w, first + i);
        bad += w->failed;
    }
    if (!bad)
        check_left(w);
    bad += w->failed;
    ok(bad == 0, "seeds %" PRIu64 " to %" PRIu64 ": every flow agrees with the model", first,
       first + count - 1);
}

int main(int argc, char **argv)
{
    tests_begin("flowmodel");
    struct world *w = calloc(1, sizeof(*w));
    if (!w)
        weft_oom(sizeof(*w));
    place_init(&w->place, "flowmodel");
    struct place relaxed = w->place;
    if (!on_pg())
        (void)snprintf(relaxed.url, sizeof(relaxed.url), "%.600s?synchronous=normal", w->place.url);
    w->fault.inner = on_pg() ? &weft_driver_pg : &weft_driver_sqlite;
    const struct weft_driver *driver = weft_fault_install(&w->fault);
    for (size_t i = 0; i < ENGINES; i++) {
        w->engine[i] = place_open(&relaxed, driver, START_US);
        weft_engine_on_flows(w->engine[i], on_flows, w);
    }
    size_t seeds = on_pg() ? SEEDS_PG : SEEDS_SQLITE;
    if (soaking())
        seeds *= SOAK_FACTOR;
    /* Without soaking the same ones each time: a failure is of the change that is tested. */
    uint32_t fresh = 0;
    if (soaking())
        weft_random(&fresh, sizeof(fresh));
    bool sizes = argc > 1 && strcmp(argv[1], "sizes") == 0;
    if (argc > 1 && !sizes)
        run_lot(w, strtoull(argv[1], NULL, 10), argc > 2 ? strtoul(argv[2], NULL, 10) : 1);
    for (size_t at = 0; at < seeds && argc < 2 && !w->failed; at += LOT)
        run_lot(w, at < seeds / 2 ? 1 + at : (uint64_t)fresh * LOT + at, LOT);
    printf("# %" PRIu64 " seeds, %" PRIu64 " steps, %" PRIu64 " of them broken off\n", w->seeds,
           w->steps, w->strikes);
    for (size_t i = 0; i < ENGINES; i++)
        weft_engine_close(w->engine[i]);
    if (!w->failed && (sizes || argc < 2))
        run_sizes(&relaxed);
    place_check(&w->place, "all seeds");
    place_done(&w->place);
    free(w);
    return tests_end();
}
