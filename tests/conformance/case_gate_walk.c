/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A random walk over three gates, in two processes that now and then die before the errand of
 * their commit. After every step a gate has no more than its limit allows, or than it had before
 * a limit was lowered; admitted executions went before all that are still held; and after a pass of
 * the scanner no gate with held executions has room.
 */

#include "conformance.h"

#include "base/arena.h"
#include "engine/limit/gates.h"
#include "engine/tx/commit_effects.h"
#include "weft/weft.h"

#include <string.h>

enum { GATES = 3, ITEMS_MAX = 400, LIVING_MAX = 20, STEPS = 250, SEEDS = 4, LEASES_MAX = 12 };

static const char *const gate_name[GATES] = {"walk:a", "walk:b", "other"};

struct item {
    struct weft_id id;
    int gate;
    int32_t priority;
    enum weft_state was, is; /* before and after the step */
};

struct walk {
    struct fixture *f;
    uint64_t random;
    struct item item[ITEMS_MAX]; /* in the order of their submission */
    size_t items;
    struct weft_claimed lease[LEASES_MAX];
    size_t leases;
    int64_t limit[GATES]; /* 0: none */
    const char *broken;   /* what was found; NULL: nothing */
};

static uint32_t roll(struct walk *walk, uint32_t sides)
{
    return (uint32_t)(next_random(&walk->random) >> 33) % sides;
}

static void lose_errand(void *context, const char *const *gate, size_t count)
{
    (void)context;
    (void)gate;
    (void)count;
}

static void let_errands_run(struct walk *walk, bool run)
{
    weft_engine_on_gates(walk->f->a, run ? NULL : lose_errand, NULL);
    weft_engine_on_gates(walk->f->b, run ? NULL : lose_errand, NULL);
}

static struct weft_engine *any_engine(struct walk *walk)
{
    return roll(walk, 2) ? walk->f->a : walk->f->b;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void submit_one(struct walk *walk)
{
    size_t living = 0;
    for (size_t i = 0; i < walk->items; i++)
        living += weft_state_living(walk->item[i].is);
    if (living >= LIVING_MAX || walk->items == ITEMS_MAX)
        return;
    struct item *item = &walk->item[walk->items++];
    *item = (struct item){.gate = (int)roll(walk, GATES), .priority = (int32_t)roll(walk, 3)};
    const struct weft_spec spec = {
        .kind = "job", .gate = gate_name[item->gate], .priority = item->priority};
    item->id = submit_ok(walk->f, &spec);
}

static void claim_some(struct walk *walk)
{
    uint32_t room = (uint32_t)(LEASES_MAX - walk->leases);
    if (room == 0)
        return;
    struct weft_claim_result got = claim(walk->f, any_engine(walk), 1 + roll(walk, room));
    for (size_t i = 0; i < got.count; i++)
        walk->lease[walk->leases++] = got.item[i];
}

static void end_one(struct walk *walk, bool release)
{
    if (walk->leases == 0)
        return;
    size_t at = roll(walk, (uint32_t)walk->leases);
    struct weft_claimed lease = walk->lease[at];
    walk->lease[at] = walk->lease[--walk->leases];
    if (release)
        (void)put_back(walk->f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    else
        (void)complete(walk->f, any_engine(walk), &lease, NULL);
}

/* Its worker, if it has one, lets go at once: a lease that drains would keep its place. */
static void cancel_one(struct walk *walk)
{
    if (walk->items == 0)
        return;
    const struct weft_id *id = &walk->item[roll(walk, (uint32_t)walk->items)].id;
    if (!weft_state_living(state_of(walk->f, id)))
        return;
    (void)steer_id(walk->f, WEFT_STEER_CANCEL, id);
    for (size_t i = 0; i < walk->leases; i++)
        if (same_id(&walk->lease[i].id, id)) {
            (void)complete(walk->f, walk->f->a, &walk->lease[i], NULL);
            walk->lease[i] = walk->lease[--walk->leases];
            break;
        }
}

static void set_limit(struct walk *walk, uint32_t gate, uint32_t limit)
{
    struct weft_err err = {0};
    walk->limit[gate] = limit;
    const struct weft_gate setting = {.name = gate_name[gate],
                                      .limits = {.max_running = walk->limit[gate]}};
    if (weft_engine_gate_put(any_engine(walk), "default", &setting, &err))
        walk->broken = "a limit cannot be set";
}

/* ---- What must hold -------------------------------------------------------------------------- */

/* As a reader of each of them sees it: in one list. */
static void look(struct walk *walk)
{
    struct weft_read_page page = list_page(walk->f, &(struct weft_listing){.limit = WEFT_PAGE_MAX});
    for (size_t i = 0; i < walk->items; i++)
        for (size_t k = 0; k < page.count; k++)
            if (same_id(&page.item[k].id, &walk->item[i].id)) {
                walk->item[i].was = walk->item[i].is;
                walk->item[i].is = page.item[k].state;
                break;
            }
}

static bool is_admitted(enum weft_state state)
{
    return state == WEFT_STATE_READY || state == WEFT_STATE_RUNNING;
}

/* Whether an item that was admitted in this step left one behind that goes before it. */
static bool is_overtaken(const struct walk *walk, const struct item *item)
{
    for (size_t i = 0; i < walk->items; i++) {
        const struct item *other = &walk->item[i];
        if (other->gate == item->gate && other->is == WEFT_STATE_HELD &&
            (other->priority > item->priority ||
             (other->priority == item->priority && other < item)))
            return true;
    }
    return false;
}

static void check(struct walk *walk, bool settled)
{
    for (int gate = 0; gate < GATES; gate++) {
        int64_t before = 0, now = 0, held = 0, limit = walk->limit[gate];
        for (size_t i = 0; i < walk->items; i++) {
            const struct item *item = &walk->item[i];
            if (item->gate != gate)
                continue;
            before += is_admitted(item->was);
            now += is_admitted(item->is);
            held += item->is == WEFT_STATE_HELD;
            if (item->was == WEFT_STATE_HELD && is_admitted(item->is) && is_overtaken(walk, item))
                walk->broken = "one was admitted before another that goes first";
        }
        if (limit > 0 && now > limit && now > before)
            walk->broken = "more than the limit were admitted";
        if (settled && held > 0 && (limit == 0 || now < limit))
            walk->broken = "a gate with room stands still";
    }
}

static void step(struct walk *walk)
{
    uint32_t what = roll(walk, 12);
    if (what < 4)
        submit_one(walk);
    else if (what < 6)
        claim_some(walk);
    else if (what < 8)
        end_one(walk, what == 7);
    else if (what == 8)
        cancel_one(walk);
    else if (what == 9)
        set_limit(walk, roll(walk, GATES), roll(walk, 5));
    else if (what == 10)
        let_errands_run(walk, roll(walk, 2));
    else
        (void)run_pass(walk->f, any_engine(walk), WEFT_SCANNER_UNBLOCK);
    look(walk);
    check(walk, what == 11);
}

CASE(gate_random_walk)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct walk *walk = weft_new(f->arena, struct walk);
        walk->f = f;
        walk->random = seed * 7919;
        int steps = 0;
        for (uint32_t gate = 0; gate < GATES; gate++)
            set_limit(walk, gate, 0);
        while (steps < STEPS && !walk->broken) {
            step(walk);
            steps++;
        }
        ok(!walk->broken, "seed %d: %d steps; %s", (int)seed, steps,
           walk->broken ? walk->broken : "all holds");
        let_errands_run(walk, true);
        for (size_t i = 0; i < walk->items; i++)
            if (weft_state_living(state_of(f, &walk->item[i].id)))
                (void)steer_id(f, WEFT_STEER_CANCEL, &walk->item[i].id);
        forward_ms(f, 3600000); /* leases that drain run out */
    }
}
