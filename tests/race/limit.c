/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A lane with a limit: lock, count, claim are three statements, and between any two of them another
 * claimer, a completion or a new setting may come. Never more than the limit run.
 */

#include "direct.h"
#include "race.h"

#include "base/arena.h"
#include "engine/admin/lanes.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/leases.h"
#include "store/fault/fault.h"
#include "weft/weft.h"

enum { LIMIT = 3, WORK = 10 };

struct claim_run {
    struct weft_engine *engine;
    const char *lane;
    struct weft_claimed item[WORK];
    size_t count;
    bool contended;
    enum weft_rc rc;
    struct weft_err err;
};

static void run_claim(void *context)
{
    struct claim_run *run = context;
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result result = {0};
    const struct weft_claim claim = {
        .worker = "claimer", .lanes = &run->lane, .lane_count = 1, .max = WORK};
    run->rc = weft_engine_claim(run->engine, "default", &claim, 1, arena, &result, &run->err);
    run->count = result.count;
    run->contended = result.contended;
    for (size_t i = 0; i < result.count; i++)
        run->item[i] =
            (struct weft_claimed){.id = result.item[i].id, .epoch = result.item[i].epoch};
    weft_arena_free(arena);
}

static void set_limit(struct weft_engine *engine, const char *lane, int32_t limit)
{
    struct weft_err err = {0};
    const struct weft_lane setting = {.name = lane, .max_running = limit};
    if (weft_engine_lane_put(engine, "default", &setting, &err))
        bail_out("lane: %s", err.text);
}

static size_t count_running(struct race *race, const struct weft_id *id, size_t count)
{
    size_t running = 0;
    for (size_t i = 0; i < count; i++)
        running += state_at(race->b, &id[i]) == WEFT_STATE_RUNNING;
    return running;
}

static void complete_it(struct weft_engine *engine, const struct weft_claimed *lease)
{
    struct weft_lease_answer answer = {0};
    struct weft_err err = {0};
    const struct weft_complete item = {.id = lease->id, .epoch = lease->epoch};
    enum weft_rc rc = engine_complete(engine, &item, 1, &answer, &err);
    if (rc || answer.err.rc)
        bail_out("complete: %s", rc ? err.text : answer.err.text);
}

/* One claimer is stopped at a point; another comes. */
static void meet_at(struct race *race, const struct ambush *where, const char *lane)
{
    struct weft_id id[WORK];
    set_limit(race->b, lane, LIMIT);
    put_work(race->a, &(struct weft_spec){.kind = "job", .lane = lane}, WORK, id);
    struct stop stop;
    stop_init(&stop);
    struct ambush ambush = *where;
    ambush.act = ambush_stop;
    ambush.context = &stop;
    struct claim_run first = {.engine = race->a, .lane = lane};
    struct claim_run second = {.engine = race->b, .lane = lane};
    struct task slow = {.run = run_claim, .context = &first, .ambush = &ambush};
    struct task fast = {.run = run_claim, .context = &second};
    set_limit(race->a, lane, LIMIT); /* and the settings are in the cache */
    task_start(&slow);
    ok(stop_reached(&stop), "%s: one claimer stands in the middle", lane);
    uint64_t calls = race_calls(race);
    task_start(&fast);
    if (on_pg()) {
        ok(task_finishes(&fast), "%s: the other call does not wait for it", lane);
        ok(second.count == 0 && second.contended,
           "%s: the other claimer gets contended and no items", lane);
    } else {
        ok(race_begun(race, calls), "%s: another claimer comes", lane);
    }
    stop_release(&stop);
    task_join(&slow);
    task_join(&fast);
    ok(first.rc == WEFT_OK && second.rc == WEFT_OK, "%s: both claims succeed", lane);
    is_int(first.count + second.count, LIMIT, "%s: together they get the limit", lane);
    is_int(count_running(race, id, WORK), LIMIT, "%s: as many run as the limit allows", lane);
    run_claim(&second);
    is_int(second.count, 0, "%s: there is no room for more", lane);
    complete_it(race->b, &first.item[0]);
    run_claim(&second);
    is_int(second.count, 1, "%s: until one is done", lane);
}

RACE(two_claimers_at_a_lane_limit)
{
    static const struct ambush where[] = {
        {.point = WEFT_FAULT_AFTER_RUN, .stmt = WEFT_STMT_LANE_LOCK},
        {.point = WEFT_FAULT_BEFORE_RUN, .stmt = WEFT_STMT_LANE_RUNNING},
        {.point = WEFT_FAULT_AFTER_RUN, .stmt = WEFT_STMT_LANE_RUNNING},
        {.point = WEFT_FAULT_BEFORE_RUN, .stmt = WEFT_STMT_CLAIM},
        {.point = WEFT_FAULT_AFTER_RUN, .stmt = WEFT_STMT_CLAIM},
        {.point = WEFT_FAULT_BEFORE_COMMIT, .stmt = WEFT_STMT_CLAIM},
    };
    static const char *const lane[] = {"locked",  "not-counted", "counted",
                                       "planned", "claimed",     "committing"};
    for (size_t i = 0; i < WEFT_LEN(where); i++)
        meet_at(race, &where[i], lane[i]);
}

RACE(a_slot_freed_between_lock_and_count_is_seen)
{
    struct weft_id id[WORK];
    set_limit(race->b, "lane", LIMIT);
    put_work(race->a, &(struct weft_spec){.kind = "job", .lane = "lane"}, WORK, id);
    struct claim_run held = {.engine = race->b, .lane = "lane"};
    run_claim(&held);
    is_int(held.count, LIMIT, "the lane is full");
    if (!on_pg()) {
        tap_skip("SQLite has one writer: nothing is freed in between");
        return;
    }
    struct stop stop;
    stop_init(&stop);
    struct ambush ambush = {.point = WEFT_FAULT_AFTER_RUN,
                            .stmt = WEFT_STMT_LANE_LOCK,
                            .act = ambush_stop,
                            .context = &stop};
    struct claim_run run = {.engine = race->a, .lane = "lane"};
    struct task slow = {.run = run_claim, .context = &run, .ambush = &ambush};
    set_limit(race->a, "lane", LIMIT);
    task_start(&slow);
    ok(stop_reached(&stop), "a claimer has locked the lane");
    complete_it(race->b, &held.item[0]); /* finishing never waits for the lane */
    stop_release(&stop);
    task_join(&slow);
    is_int(run.count, 1, "the count is from after the lock");
    is_int(count_running(race, id, WORK), LIMIT, "the lane is full again");
}

RACE(a_limit_set_while_a_claim_is_under_way)
{
    struct weft_id id[WORK];
    put_work(race->a, &(struct weft_spec){.kind = "job", .lane = "lane"}, WORK, id);
    if (!on_pg()) {
        tap_skip("SQLite has one writer: no setting comes in between");
        return;
    }
    struct stop stop;
    stop_init(&stop);
    struct ambush ambush = {.point = WEFT_FAULT_BEFORE_RUN,
                            .stmt = WEFT_STMT_CLAIM,
                            .act = ambush_stop,
                            .context = &stop};
    struct claim_run unlimited = {.engine = race->a, .lane = "lane"};
    struct claim_run limited = {.engine = race->b, .lane = "lane"};
    struct task slow = {.run = run_claim, .context = &unlimited, .ambush = &ambush};
    task_start(&slow);
    ok(stop_reached(&stop), "a claim of a lane without limit is about to take");
    set_limit(race->b, "lane", LIMIT);
    run_claim(&limited);
    is_int(limited.count, LIMIT, "under the new limit another one claims");
    stop_release(&stop);
    task_join(&slow);
    is_int(unlimited.rc, WEFT_OK, "the first succeeds");
    is_int(unlimited.count, 0, "the first claim, which took no slot, gets nothing");
    is_int(count_running(race, id, WORK), LIMIT, "the limit holds");
}

static void cancel_it(struct weft_engine *engine, const struct weft_id *id)
{
    struct weft_steered answer = {0};
    struct weft_err err = {0};
    const struct weft_steer item = {.id = *id};
    const struct weft_steering steering = {
        .kind = WEFT_STEER_CANCEL, .ns = "default", .item = &item, .count = 1};
    enum weft_rc rc = engine_steer(engine, &steering, &answer, &err);
    if (rc || answer.err.rc)
        bail_out("cancel: %s", rc ? err.text : answer.err.text);
}

static void let_go_of(struct weft_engine *engine, const struct weft_claimed *lease)
{
    struct weft_lease_answer answer = {0};
    struct weft_err err = {0};
    const struct weft_put_back item = {.id = lease->id, .epoch = lease->epoch};
    if (engine_put_back(engine, WEFT_PUT_BACK_RELEASE, &item, 1, &answer, &err))
        bail_out("release: %s", err.text);
}

struct cancel_run {
    struct weft_engine *engine;
    struct weft_id id;
};

static void run_cancel(void *context)
{
    struct cancel_run *run = context;
    cancel_it(run->engine, &run->id);
}

/* A cancel comes while a claim in a full lane is at a point of its work; then the other way round:
 * a claim comes while the cancel is at a point of its own. The slot is kept in either order. */
static void cancel_at(struct race *race, const struct ambush *where, const char *lane,
                      bool claim_is_slow)
{
    struct weft_id id[WORK];
    set_limit(race->b, lane, LIMIT);
    put_work(race->a, &(struct weft_spec){.kind = "job", .lane = lane}, WORK, id);
    struct claim_run held = {.engine = race->b, .lane = lane};
    run_claim(&held);
    is_int(held.count, LIMIT, "%s: the lane is full", lane);
    set_limit(race->a, lane, LIMIT);
    struct stop stop;
    stop_init(&stop);
    struct ambush ambush = *where;
    ambush.act = ambush_stop;
    ambush.context = &stop;
    struct claim_run run = {.engine = claim_is_slow ? race->a : race->b, .lane = lane};
    struct cancel_run cancel = {claim_is_slow ? race->b : race->a, held.item[0].id};
    struct task claiming = {.run = run_claim, .context = &run};
    struct task cancelling = {.run = run_cancel, .context = &cancel};
    struct task *slow = claim_is_slow ? &claiming : &cancelling;
    struct task *fast = claim_is_slow ? &cancelling : &claiming;
    slow->ambush = &ambush;
    task_start(slow);
    ok(stop_reached(&stop), "%s: one stands in the middle", lane);
    task_start(fast);
    ok(task_finishes(fast), "%s: the other call does not wait for it", lane);
    stop_release(&stop);
    task_join(slow);
    task_join(fast);
    is_int(run.rc, WEFT_OK, "%s: the claim succeeds", lane);
    is_int(run.count, 0, "%s: the claim gets nothing: the handler may still run", lane);
    run_claim(&held);
    is_int(held.count, 0, "%s: the next claim gets nothing", lane);
    struct weft_claimed lease = {.id = cancel.id, .epoch = 1};
    let_go_of(race->b, &lease);
    run_claim(&run);
    is_int(run.count, 1, "%s: until the worker lets go", lane);
}

RACE(a_cancel_against_a_counting_claim)
{
    static const struct {
        const char *lane;
        struct ambush where;
        bool claim_is_slow;
    } row[] = {
        {"locked", {.point = WEFT_FAULT_AFTER_RUN, .stmt = WEFT_STMT_LANE_LOCK}, true},
        {"not-counted", {.point = WEFT_FAULT_BEFORE_RUN, .stmt = WEFT_STMT_LANE_RUNNING}, true},
        {"counted", {.point = WEFT_FAULT_AFTER_RUN, .stmt = WEFT_STMT_LANE_RUNNING}, true},
        {"row-locked", {.point = WEFT_FAULT_AFTER_RUN, .stmt = WEFT_STMT_LIVE_LOCK}, false},
        {"not-written", {.point = WEFT_FAULT_BEFORE_RUN, .stmt = WEFT_STMT_LIVE_END}, false},
        {"ended", {.point = WEFT_FAULT_AFTER_RUN, .stmt = WEFT_STMT_LIVE_END}, false},
        {"draining", {.point = WEFT_FAULT_AFTER_RUN, .stmt = WEFT_STMT_DRAINING_ADD}, false},
        {"committing", {.point = WEFT_FAULT_BEFORE_COMMIT, .stmt = WEFT_STMT_DRAINING_ADD}, false},
    };
    if (!on_pg()) {
        tap_skip("SQLite has one writer: neither comes while the other is at work");
        return;
    }
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        cancel_at(race, &row[i].where, row[i].lane, row[i].claim_is_slow);
}
