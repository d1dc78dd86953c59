/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two handles at the same rows in ever other orders: renew, complete, cancel, replay, claim, and
 * keyed submissions. No call ever waits in a circle, no call fails, and nothing is done twice.
 */

#include "direct.h"
#include "race.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "engine/admin/tally.h"
#include "engine/job/control.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "weft/weft.h"

#include <stdatomic.h>

enum { POOL = 40, BATCH = 20, KEYS = 10 };

struct pool {
    struct weft_id id[POOL];
    _Atomic int32_t epoch[POOL]; /* the last one that a claim gave */
    _Atomic uint64_t window;     /* which keys are being submitted now */
    _Atomic uint64_t accepted;   /* keys that were new */
    weft_usec until_us;
};

struct hand {
    struct weft_engine *engine;
    struct pool *pool;
    uint64_t seed;
    uint64_t calls, failed, effects;
    char story[300];
};

static void note(struct hand *hand, enum weft_rc rc, const struct weft_err *err, const char *what)
{
    hand->calls++;
    if (!rc)
        return;
    hand->failed++;
    (void)snprintf(hand->story, sizeof(hand->story), "%s: %s", what, err->text);
}

/* BATCH different rows of the pool in an order of its own. */
static void draw(struct hand *hand, size_t at[BATCH])
{
    size_t all[POOL];
    for (size_t i = 0; i < POOL; i++)
        all[i] = i;
    for (size_t i = 0; i < BATCH; i++) {
        size_t k = i + next_random(&hand->seed) % (POOL - i);
        at[i] = all[k];
        all[k] = all[i];
    }
}

static int32_t epoch_of(struct hand *hand, size_t at)
{
    int32_t epoch = atomic_load(&hand->pool->epoch[at]);
    return epoch ? epoch : 1;
}

static void renew_some(struct hand *hand, const size_t at[BATCH])
{
    struct weft_renew item[BATCH];
    struct weft_lease_answer answer[BATCH];
    struct weft_err err = {0};
    for (size_t i = 0; i < BATCH; i++)
        item[i] = (struct weft_renew){.id = hand->pool->id[at[i]],
                                      .epoch = epoch_of(hand, at[i]),
                                      .has_progress = true,
                                      .percent = (int32_t)i};
    note(hand, engine_renew(hand->engine, item, BATCH, answer, &err), &err, "renew");
}

static void complete_some(struct hand *hand, const size_t at[BATCH])
{
    struct weft_complete item[BATCH];
    struct weft_lease_answer answer[BATCH];
    struct weft_err err = {0};
    for (size_t i = 0; i < BATCH; i++)
        item[i] =
            (struct weft_complete){.id = hand->pool->id[at[i]], .epoch = epoch_of(hand, at[i])};
    note(hand, engine_complete(hand->engine, item, BATCH, answer, &err), &err, "complete");
}

static void steer_some(struct hand *hand, const size_t at[BATCH], enum weft_steer_kind kind)
{
    struct weft_steer item[BATCH];
    struct weft_steered answer[BATCH];
    struct weft_err err = {0};
    for (size_t i = 0; i < BATCH; i++)
        item[i] = (struct weft_steer){.id = hand->pool->id[at[i]]};
    const struct weft_steering steering = {
        .kind = kind, .ns = "default", .item = item, .count = BATCH};
    note(hand, engine_steer(hand->engine, &steering, answer, &err), &err, "steer");
}

static void claim_some(struct hand *hand)
{
    struct weft_claimed item[BATCH];
    size_t count = take_work(hand->engine, "default", BATCH, item);
    hand->calls++;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < POOL; k++)
            if (weft_id_cmp(&item[i].id, &hand->pool->id[k]) == 0)
                atomic_store(&hand->pool->epoch[k], item[i].epoch);
    hand->effects += count;
}

/* Both hands submit the same keys at about the same time, each in its own order. */
static void submit_some(struct hand *hand)
{
    uint64_t base = atomic_fetch_add(&hand->pool->window, 1) / 2;
    struct weft_spec spec[KEYS];
    struct weft_submitted answer[KEYS];
    struct weft_err err = {0};
    char key[KEYS][32];
    size_t start = next_random(&hand->seed) % KEYS,
           step = next_random(&hand->seed) % 2 ? 1 : KEYS - 1;
    for (size_t i = 0; i < KEYS; i++) {
        (void)snprintf(key[i], sizeof(key[i]), "%llu-%zu", (unsigned long long)base,
                       (start + i * step) % KEYS);
        spec[i] = (struct weft_spec){.kind = "job", .lane = "keys", .key = key[i]};
    }
    enum weft_rc rc = engine_submit(hand->engine, "default", spec, KEYS, answer, &err);
    note(hand, rc, &err, "submit");
    for (size_t i = 0; i < KEYS && !rc; i++) {
        if (answer[i].err.rc)
            note(hand, answer[i].err.rc, &answer[i].err, "submit one");
        else if (!answer[i].duplicate)
            atomic_fetch_add(&hand->pool->accepted, 1);
    }
}

/* One that a busy machine gave no turn in its time goes on until it has claimed something. */
static bool goes_on(const struct hand *hand)
{
    weft_usec extra_us = hand->effects ? 0 : (weft_usec)PATIENCE_MS / 2 * WEFT_MS;
    return !hand->failed && weft_boot_us() < hand->pool->until_us + extra_us;
}

static void shuffle(void *context)
{
    struct hand *hand = context;
    while (goes_on(hand)) {
        size_t at[BATCH];
        draw(hand, at);
        switch (next_random(&hand->seed) % 8) {
        case 0:
        case 1:
            renew_some(hand, at);
            break;
        case 2:
            complete_some(hand, at);
            break;
        case 3:
            steer_some(hand, at, WEFT_STEER_CANCEL);
            break;
        case 4:
            steer_some(hand, at, WEFT_STEER_REPLAY);
            break;
        case 5:
        case 6:
            claim_some(hand);
            break;
        case 7:
            submit_some(hand);
            break;
        }
    }
}

static int64_t count_ready(struct race *race, const char *lane)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_counts counts = {0};
    struct weft_err err = {0};
    if (weft_engine_counts(race->a, "default", lane, arena, &counts, &err))
        bail_out("counts: %s", err.text);
    int64_t ready = counts.count ? (int64_t)counts.item[0].count[WEFT_STATE_READY] : 0;
    weft_arena_free(arena);
    return ready;
}

static bool hands_are_through(void *context)
{
    const struct pool *pool = context;
    return weft_boot_us() > pool->until_us;
}

/* Ten seconds on PostgreSQL, where rows have locks of their own; SQLite has one for all. */
static int64_t duration_ms(void)
{
    int64_t ms = on_pg() ? 10000 : 2000;
    return soaking() ? ms * 12 : ms;
}

RACE(two_handles_on_the_same_shuffled_rows)
{
    static struct pool pool;
    put_work(race->a, &(struct weft_spec){.kind = "job"}, POOL, pool.id);
    pool.until_us = weft_boot_us() + duration_ms() * WEFT_MS;
    struct hand hand[2] = {{.engine = race->a, .pool = &pool, .seed = 1234567},
                           {.engine = race->b, .pool = &pool, .seed = 7654321}};
    struct task task[2];
    for (int i = 0; i < 2; i++) {
        task[i] = (struct task){.run = shuffle, .context = &hand[i]};
        task_start(&task[i]);
    }
    while (!wait_until(hands_are_through, &pool)) /* a soak is longer than patience */
        continue;
    for (int i = 0; i < 2; i++) {
        task_join(&task[i]);
        is_int(hand[i].failed, 0, "hand %d: none of %llu calls failed%s%s", i,
               (unsigned long long)hand[i].calls, hand[i].failed ? ": " : "", hand[i].story);
        ok(hand[i].effects > 0, "hand %d claimed %llu times", i,
           (unsigned long long)hand[i].effects);
    }
    is_int(count_ready(race, "keys"), (int64_t)pool.accepted, "each key is one execution");
    uint64_t epochs = 0;
    struct weft_arena *arena = weft_arena_new();
    for (size_t i = 0; i < POOL; i++)
        epochs += (uint64_t)look_at(race->a, &pool.id[i], arena).epoch;
    weft_arena_free(arena);
    is_int(epochs, hand[0].effects + hand[1].effects, "each claim is one epoch");
    race_no_deadlock(race);
}
