/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What commits between the snapshot of a statement and its lock must be seen. A pass over due
 * leases, attempts, deadlines or delays, or a claim, is stopped at its first row (gate.c); then its
 * second row is changed and committed; then it goes on and finds in its snapshot a version of that
 * row which is no longer true.
 *
 * SQLite has one writer at a time: there is no such moment, and what must hold instead is that the
 * two come one after the other, with answers that fit.
 */

#include "direct.h"
#include "race.h"

#include "base/arena.h"
#include "base/id.h"
#include "engine/job/leases.h"
#include "engine/scan/pass.h"
#include "store/fault/fault.h"
#include "weft/weft.h"

enum { FIRST, SECOND, ROWS };

struct pass_run {
    struct weft_engine *engine;
    enum weft_scanner pass;
    struct weft_pass_report report;
    enum weft_rc rc;
    struct weft_err err;
};

static void run_pass(void *context)
{
    struct pass_run *run = context;
    run->rc = weft_engine_pass(run->engine, run->pass, NULL, &run->report, &run->err);
}

struct lease_run {
    struct weft_engine *engine;
    struct weft_renew item;
    struct weft_lease_answer answer;
    enum weft_rc rc;
    struct weft_err err;
};

static void run_renew(void *context)
{
    struct lease_run *run = context;
    run->rc = engine_renew(run->engine, &run->item, 1, &run->answer, &run->err);
}

/* What the pass says of the rows that it saw and did not take. */
static void is_missed(const struct pass_run *run, uint64_t locked, uint64_t alive)
{
    is_int(counter_of(&run->report, "skipped_locked"), (long long)locked,
           "rows that are still due are counted as skipped");
    is_int(counter_of(&run->report, "rechecked_alive"), (long long)alive,
           "rows that are no longer due are counted as alive");
}

/* Two executions, the first of which a scan by `due` meets first. */
static void take_two(struct race *race, const struct weft_policy *policy,
                     struct weft_claimed lease[ROWS])
{
    struct weft_id id[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        put_work(race->a, &(struct weft_spec){.kind = "job", .policy = policy}, 1, &id[i]);
        is_int(take_work(race->a, "default", 1, &lease[i]), 1, "row %zu is claimed", i);
        race_forward(race, 1);
    }
}

/* Runs a pass that stops at the first row, acts, lets it go on. */
static void pass_meets(struct race *race, struct pass_run *run, const struct weft_id *first,
                       void (*act)(struct race *race, const struct weft_claimed *lease),
                       const struct weft_claimed *second)
{
    struct gate gate;
    struct task task = {.run = run_pass, .context = run};
    gate_shut(&gate, race, first);
    run->engine = gate.slow;
    task_start(&task);
    ok(gate_reached(&gate), "the pass stands at the first row");
    act(race, second);
    ok(!task_done(&task), "the pass still stands when the second row has changed");
    gate_open(&gate);
    task_join(&task);
    is_int(run->rc, WEFT_OK, "the pass succeeds");
    gate_done(&gate);
}

static void renew_it(struct race *race, const struct weft_claimed *lease)
{
    struct lease_run run = {.engine = race->b,
                            .item = {.id = lease->id, .epoch = lease->epoch, .lease_ms = 60000}};
    run_renew(&run);
    is_int(run.answer.err.rc, WEFT_OK, "the second is renewed");
}

static void renew_on_sqlite(struct race *race, const struct weft_claimed *lease)
{
    struct stop stop;
    stop_init(&stop);
    struct ambush ambush = {.point = WEFT_FAULT_AFTER_RUN,
                            .stmt = WEFT_STMT_DUE_LEASES,
                            .act = ambush_stop,
                            .context = &stop};
    struct pass_run pass = {.engine = race->a, .pass = WEFT_SCANNER_LEASE_EXPIRY};
    struct lease_run renew = {.engine = race->b, .item = {.id = lease->id, .epoch = lease->epoch}};
    struct task slow = {.run = run_pass, .context = &pass, .ambush = &ambush};
    struct task fast = {.run = run_renew, .context = &renew};
    task_start(&slow);
    ok(stop_reached(&stop), "the pass has found the lease");
    uint64_t calls = race_calls(race);
    task_start(&fast);
    ok(race_begun(race, calls), "a renewal comes");
    stop_release(&stop);
    task_join(&slow);
    task_join(&fast);
    ok(pass.rc == WEFT_OK && renew.rc == WEFT_OK, "the pass and the renewal succeed");
    is_int(renew.answer.fence, WEFT_FENCE_LOST, "the renewal came second and is fenced");
    is_int(state_at(race->a, &lease->id), WEFT_STATE_READY, "the lease is gone");
}

RACE(renew_commits_after_the_snapshot_of_lease_expiry)
{
    struct weft_claimed lease[ROWS];
    take_two(race, NULL, lease);
    race_forward(race, 40000); /* both leases ran out */
    if (!on_pg()) {
        renew_on_sqlite(race, &lease[SECOND]);
        return;
    }
    struct pass_run run = {.pass = WEFT_SCANNER_LEASE_EXPIRY};
    pass_meets(race, &run, &lease[FIRST].id, renew_it, &lease[SECOND]);
    is_int(run.report.handled, 1, "one lease was taken away");
    is_missed(&run, 0, 1);
    is_int(state_at(race->a, &lease[FIRST].id), WEFT_STATE_READY, "the first");
    is_int(state_at(race->a, &lease[SECOND].id), WEFT_STATE_RUNNING, "the renewed one lives");
    renew_it(race, &lease[SECOND]);
}

/* Written and committed, but not so that it would no longer be due. */
static void touch_it(struct race *race, const struct weft_claimed *lease)
{
    char text[37];
    weft_id_print(&lease->id, text);
    raw_run(&race->place, race->raw, "UPDATE weft.live SET due = due + 1 WHERE id = '%s'", text);
}

/*
 * A pass goes near no row that another transaction changed since its snapshot, because the way to
 * the new version of a row is where PostgreSQL forgets SKIP LOCKED.
 */
RACE(a_row_changed_after_the_snapshot_is_left_for_the_next_pass)
{
    struct weft_claimed lease[ROWS];
    if (!on_pg()) {
        tap_skip("SQLite has one writer: the pass cannot be inside");
        return;
    }
    take_two(race, NULL, lease);
    race_forward(race, 40000);
    struct pass_run run = {.pass = WEFT_SCANNER_LEASE_EXPIRY};
    pass_meets(race, &run, &lease[FIRST].id, touch_it, &lease[SECOND]);
    is_int(run.report.handled, 1, "one lease was taken away");
    is_missed(&run, 1, 0);
    ok(run.report.next_due_us == race->now_us, "the report says that another row is due");
    is_int(state_at(race->a, &lease[SECOND].id), WEFT_STATE_RUNNING, "the one that was touched");
    run.engine = race->b;
    run_pass(&run);
    is_int(run.report.handled, 1, "the next pass takes the second lease");
    is_int(state_at(race->a, &lease[SECOND].id), WEFT_STATE_READY, "the second execution is ready");
}

static void release_and_reclaim(struct race *race, const struct weft_claimed *lease)
{
    struct weft_lease_answer answer;
    struct weft_err err;
    struct weft_claimed again;
    const struct weft_put_back item = {.id = lease->id, .epoch = lease->epoch};
    enum weft_rc rc = engine_put_back(race->b, WEFT_PUT_BACK_RELEASE, &item, 1, &answer, &err);
    ok(rc == WEFT_OK && answer.err.rc == WEFT_OK, "the second is given back");
    is_int(take_work(race->b, "default", 1, &again), 1, "the second is claimed again");
}

RACE(reclaim_commits_after_the_snapshot_of_attempt_timeout)
{
    static const struct weft_policy policy = {.attempt_timeout_ms = 30000, .lease_ms = 90000};
    struct weft_claimed lease[ROWS];
    if (!on_pg()) {
        tap_skip("SQLite has one writer: the pass cannot be inside");
        return;
    }
    take_two(race, &policy, lease);
    race_forward(race, 40000); /* both attempts took too long */
    struct pass_run run = {.pass = WEFT_SCANNER_ATTEMPT_TIMEOUT};
    pass_meets(race, &run, &lease[FIRST].id, release_and_reclaim, &lease[SECOND]);
    is_int(run.report.handled, 1, "one attempt timed out");
    is_missed(&run, 0, 1);
    is_int(state_at(race->a, &lease[SECOND].id), WEFT_STATE_RUNNING, "the new one goes on");
}

static void drop_deadline(struct race *race, const struct weft_claimed *lease)
{
    struct weft_steered answer =
        steer_one(race->b, WEFT_STEER_SET_DEADLINE, &(struct weft_steer){.id = lease->id});
    ok(answer.err.rc == WEFT_OK && answer.changed, "the second loses its deadline");
}

RACE(set_deadline_commits_after_the_snapshot_of_the_deadline_pass)
{
    struct weft_claimed row[ROWS] = {{.epoch = 0}};
    if (!on_pg()) {
        tap_skip("SQLite has one writer: the pass cannot be inside");
        return;
    }
    for (size_t i = 0; i < ROWS; i++)
        put_work(race->a,
                 &(struct weft_spec){
                     .kind = "job", .deadline_us = race->now_us + (1 + (weft_usec)i) * WEFT_SECOND},
                 1, &row[i].id);
    race_forward(race, 10000);
    struct pass_run run = {.pass = WEFT_SCANNER_EXECUTION_DEADLINE};
    pass_meets(race, &run, &row[FIRST].id, drop_deadline, &row[SECOND]);
    is_int(run.report.handled, 1, "one expired");
    is_missed(&run, 0, 1);
    is_int(state_at(race->a, &row[FIRST].id), WEFT_STATE_EXPIRED, "the first");
    is_int(state_at(race->a, &row[SECOND].id), WEFT_STATE_READY,
           "the execution whose deadline was removed stays ready");
}

static void promote_and_claim(struct race *race, const struct weft_claimed *lease)
{
    (void)lease;
    struct weft_claimed item[ROWS];
    struct pass_run run = {.engine = race->b, .pass = WEFT_SCANNER_DELAYED_PROMOTER};
    run_pass(&run);
    is_int(run.report.handled, ROWS, "another pass promotes both");
    is_int(take_work(race->b, "default", ROWS, item), ROWS, "the promoted rows are claimed");
}

RACE(promotion_commits_after_the_snapshot_of_the_promoter)
{
    struct weft_claimed row[ROWS] = {{.epoch = 0}};
    if (!on_pg()) {
        tap_skip("SQLite has one writer: the pass cannot be inside");
        return;
    }
    for (size_t i = 0; i < ROWS; i++)
        put_work(race->a, &(struct weft_spec){.kind = "job", .delay_ms = 1000 + (int64_t)i}, 1,
                 &row[i].id);
    race_forward(race, 10000);
    struct pass_run run = {.pass = WEFT_SCANNER_DELAYED_PROMOTER};
    pass_meets(race, &run, &row[FIRST].id, promote_and_claim, &row[SECOND]);
    is_int(run.report.handled, 0, "nothing is promoted twice");
    is_missed(&run, 0, ROWS);
    for (size_t i = 0; i < ROWS; i++)
        is_int(state_at(race->a, &row[i].id), WEFT_STATE_RUNNING, "row %zu runs on", i);
}

/* ---- Claims ---------------------------------------------------------------------------------- */

struct claim_run {
    struct weft_engine *engine;
    struct weft_claimed item[10];
    size_t count;
};

static void run_claim(void *context)
{
    struct claim_run *run = context;
    run->count = take_work(run->engine, "default", 10, run->item);
}

static void claim_meets(struct race *race, struct claim_run *run, const struct weft_id *first,
                        void (*act)(struct race *race, const struct weft_claimed *lease),
                        const struct weft_claimed *second)
{
    struct gate gate;
    struct task task = {.run = run_claim, .context = run};
    gate_shut(&gate, race, first);
    run->engine = gate.slow;
    task_start(&task);
    ok(gate_reached(&gate), "the claim stands at the first row");
    act(race, second);
    ok(!task_done(&task), "the claim still stands when the second row has changed");
    gate_open(&gate);
    task_join(&task);
    gate_done(&gate);
}

static void raise_it(struct race *race, const struct weft_claimed *lease)
{
    struct weft_steered answer = steer_one(race->b, WEFT_STEER_REPRIORITIZE,
                                           &(struct weft_steer){.id = lease->id, .priority = 9});
    ok(answer.err.rc == WEFT_OK && answer.changed, "the second gets another priority");
}

static void cancel_it(struct race *race, const struct weft_claimed *lease)
{
    struct weft_steered answer =
        steer_one(race->b, WEFT_STEER_CANCEL, &(struct weft_steer){.id = lease->id});
    ok(answer.err.rc == WEFT_OK && answer.changed, "the second is cancelled");
}

static void put_two(struct race *race, struct weft_claimed row[ROWS])
{
    struct weft_id id[ROWS];
    put_work(race->a, &(struct weft_spec){.kind = "job"}, ROWS, id);
    for (size_t i = 0; i < ROWS; i++)
        row[i] = (struct weft_claimed){.id = id[i]};
}

RACE(reprioritize_commits_after_the_snapshot_of_a_claim)
{
    struct weft_claimed row[ROWS];
    struct claim_run run = {.engine = race->a};
    put_two(race, row);
    if (on_pg()) {
        claim_meets(race, &run, &row[FIRST].id, raise_it, &row[SECOND]);
    } else {
        raise_it(race, &row[SECOND]);
        run_claim(&run);
    }
    is_int(run.count, 2, "both are claimed, once");
    size_t raised = 0;
    for (size_t i = 0; i < run.count; i++)
        raised += weft_id_cmp(&run.item[i].id, &row[SECOND].id) == 0 && run.item[i].priority == 9;
    is_int(raised, 1, "the second is claimed with its new priority");
    is_int(take_work(race->b, "default", 10, run.item), 0, "a further claim gets nothing");
    struct weft_arena *arena = weft_arena_new();
    struct weft_execution now = look_at(race->b, &row[SECOND].id, arena);
    ok(now.priority == 9 && now.epoch == 1 && now.state == WEFT_STATE_RUNNING,
       "the second runs under its first epoch with its new priority");
    weft_arena_free(arena);
}

RACE(cancel_commits_after_the_snapshot_of_a_claim)
{
    struct weft_claimed row[ROWS];
    struct claim_run run = {.engine = race->a};
    put_two(race, row);
    if (on_pg()) {
        claim_meets(race, &run, &row[FIRST].id, cancel_it, &row[SECOND]);
    } else {
        cancel_it(race, &row[SECOND]);
        run_claim(&run);
    }
    is_int(run.count, 1, "only the first is claimed");
    ok(weft_id_cmp(&run.item[0].id, &row[FIRST].id) == 0, "the one that lives");
    is_int(state_at(race->b, &row[SECOND].id), WEFT_STATE_CANCELLED, "the second is cancelled");
}

static void claim_it(struct race *race, const struct weft_claimed *lease)
{
    (void)lease;
    struct weft_claimed item[ROWS];
    size_t count = take_work(race->b, "default", 2, item);
    ok(count == ROWS, "another engine claims both in between");
}

RACE(claim_commits_after_the_snapshot_of_a_claim)
{
    struct weft_claimed row[ROWS];
    struct claim_run run = {.engine = race->a};
    put_two(race, row);
    if (!on_pg()) {
        tap_skip("SQLite has one writer: a claim cannot be inside another");
        return;
    }
    claim_meets(race, &run, &row[FIRST].id, claim_it, &row[SECOND]);
    is_int(run.count, 0, "the claim that stood gets nothing");
    struct weft_arena *arena = weft_arena_new();
    for (size_t i = 0; i < ROWS; i++)
        is_int(look_at(race->b, &row[i].id, arena).epoch, 1, "row %zu was given once", i);
    weft_arena_free(arena);
}
