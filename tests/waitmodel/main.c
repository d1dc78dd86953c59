/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The runner: waitmodel [SEED [COUNT]]. Without a seed, some hundred fixed ones; with WEFT_SOAK=1
 * very many more, half of them fresh. Some of them share a store, in which each leaves nothing that
 * lives.
 */

#include "waitmodel.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "engine/admin/doctor.h"
#include "engine/engine.h"

#include <stdlib.h>

enum { SEEDS_SQLITE = 500, SEEDS_PG = 100, SOAK_FACTOR = 50, STEPS_MAX = 120, LOT = 50 };

static const struct {
    void (*run)(struct world *w);
    unsigned share;
} operations[] = {
    {op_claim, 24},   {op_suspend, 18}, {op_signal, 22},     {op_waitpoint, 10},
    {op_complete, 3}, {op_fail, 2},     {op_release, 2},     {op_renew, 2},
    {op_steer, 6},    {op_replay, 8},   {op_cancel_flow, 1}, {op_pass, 16},
    {op_clock, 12},   {op_rotate, 1},   {op_poll, 2},        {op_token, 2},
};

/* ---- Dice and the diary ---------------------------------------------------------------------- */

size_t below(struct world *w, size_t bound)
{
    return dice_below(&w->random, bound);
}

bool chance(struct world *w, unsigned percent)
{
    return dice_chance(&w->random, percent);
}

size_t any_engine(struct world *w)
{
    return below(w, ENGINES);
}

size_t number_of(const struct world *w, const struct execution *x)
{
    return (size_t)(x - w->execution);
}

struct execution *pick(struct world *w, enum weft_state state)
{
    size_t from = below(w, w->executions);
    for (size_t i = 0; i < w->executions; i++) {
        struct execution *x = &w->execution[(from + i) % w->executions];
        if (x->state == state && chance(w, 95))
            return x;
    }
    return &w->execution[from];
}

void note(struct world *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    diary_add(&w->diary, w->step, fmt, args);
    va_end(args);
}

void wrong(struct world *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_wrong(w->seed, w->step, fmt, args);
    va_end(args);
    w->failed = true;
}

void must_be(struct world *w, enum weft_rc rc, enum weft_rc want, const char *what)
{
    if (rc != want)
        wrong(w, "%s is answered with %s, must be %s", what, weft_rc_wire(rc), weft_rc_wire(want));
}

/* ---- Runs ------------------------------------------------------------------------------------ */

void end_step(struct world *w)
{
    w->steps++;
    settle_flows(w); /* the engines run the cascades of what they end */
    if (!w->failed)
        compare(w, false);
    weft_arena_reset(w->arena);
}

static void check_invariants(struct world *w)
{
    struct weft_err err = {0};
    if (weft_engine_check(w->engine[any_engine(w)], &err))
        wrong(w, "the invariants do not hold: %s", err.text);
}

static void run_seed(struct world *w, uint64_t seed)
{
    w->random = w->seed = seed;
    w->seeds++;
    w->now_us = START_US;
    w->diary.count = w->step = 0;
    for (size_t i = 0; i < ENGINES; i++)
        weft_clock_set(weft_engine_clock(w->engine[i]), w->now_us);
    key_begin(w);
    submit_all(w);
    size_t steps = below(w, STEPS_MAX + 1);
    for (w->step = 1; w->step <= steps && !w->failed; w->step++) {
        operations[dice_share(&w->random, &operations[0].share, sizeof(operations[0]),
                              WEFT_LEN(operations))]
            .run(w);
        end_step(w);
    }
    if (!w->failed)
        run_out(w);
    if (!w->failed)
        check_invariants(w);
    if (w->failed) {
        printf("# the steps:\n");
        diary_print(&w->diary, DIARY_LINES);
        printf("# to see it again: waitmodel %" PRIu64 "\n", w->seed);
    }
}

/* Runs seeds over a store of their own: the check of its invariants looks at all that is there. */
static void run_lot(struct world *w, uint64_t first, size_t count)
{
    struct place place;
    place_init(&place, "waitmodel");
    struct place relaxed = place;
    if (!on_pg())
        (void)snprintf(relaxed.url, sizeof(relaxed.url), "%.600s?synchronous=normal", place.url);
    w->keys.count = w->rotations = 0;
    for (size_t i = 0; i < ENGINES; i++) {
        w->engine[i] = place_open(&relaxed, NULL, START_US);
        w->read[i] = w->stale[i] = false;
        w->polled[i] = 0;
    }
    for (size_t i = 0; i < count && !w->failed; i++)
        run_seed(w, first + i);
    ok(!w->failed, "seeds %" PRIu64 " to %" PRIu64 ": waiting agrees with the model", first,
       first + count - 1);
    for (size_t i = 0; i < ENGINES; i++)
        weft_engine_close(w->engine[i]);
    place_check(&place, "all seeds");
    place_done(&place);
}

static void print_counts(const struct world *w)
{
    printf("# %" PRIu64 " seeds, %" PRIu64 " steps; resumed by signals %" PRIu64
           ", timeout %" PRIu64 ", operator %" PRIu64 "; satisfied at once %" PRIu64 "\n",
           w->seeds, w->steps, w->resumed[WEFT_RESUMED_BY_SIGNALS],
           w->resumed[WEFT_RESUMED_BY_TIMEOUT], w->resumed[WEFT_RESUMED_BY_OPERATOR], w->at_once);
    printf("# signals:");
    for (int i = 0; i < WEFT_SIGNAL_IGNORED + 1; i++)
        printf(" %s %" PRIu64, i ? weft_signal_effect_name((enum weft_signal_effect)i) : "refused",
               w->effect[i]);
    printf("\n");
}

int main(int argc, char **argv)
{
    tests_begin("waitmodel");
    struct world *w = calloc(1, sizeof(*w));
    if (!w)
        weft_oom(sizeof(*w));
    w->arena = weft_arena_new();
    size_t seeds = (on_pg() ? SEEDS_PG : SEEDS_SQLITE) * (soaking() ? (size_t)SOAK_FACTOR : 1);
    uint32_t fresh = 0; /* only for a soak: else a failure is of the change that is tested */
    if (soaking())
        weft_random(&fresh, sizeof(fresh));
    if (argc > 1)
        run_lot(w, strtoull(argv[1], NULL, 10), argc > 2 ? strtoul(argv[2], NULL, 10) : 1);
    for (size_t at = 0; at < seeds && argc < 2 && !w->failed; at += LOT)
        run_lot(w, 1 + at + (at < seeds / 2 ? 0 : (uint64_t)fresh * LOT), LOT);
    print_counts(w);
    weft_arena_free(w->arena);
    free(w);
    return tests_end();
}
