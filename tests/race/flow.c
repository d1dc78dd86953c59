/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two replicas at one flow. One is stopped in the middle of a cascade, a growth or a cancel, with
 * the row of the flow locked or just released; the other makes a change that must not get lost
 * there. A call that only ends a member never waits for a cascade, every join fires once, and when
 * both are done nothing is left for a scanner.
 *
 * On SQLite a transaction that writes keeps all others out, so none of these moments exists.
 */

#include "direct.h"
#include "flows.h"

#include "engine/flow/flow.h"
#include "engine/job/leases.h"
#include "engine/scan/pass.h"
#include "engine/tx/commit_effects.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

/* Where a cascade is stopped. */
static const struct {
    const char *name;
    enum weft_fault_point point;
    enum weft_stmt stmt;
    bool holds; /* the row of the flow */
} places[] = {
    {"with the lock", WEFT_FAULT_AFTER_RUN, WEFT_STMT_FLOW_LOCK, true},
    {"when it has looked", WEFT_FAULT_AFTER_RUN, WEFT_STMT_CASCADE_LOOK, true},
    {"when it has written edges", WEFT_FAULT_AFTER_RUN, WEFT_STMT_EDGE_PUT, true},
    {"before its commit", WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_CASCADE_LOOK, true},
    {"behind its commit", WEFT_FAULT_AFTER_COMMIT, WEFT_STMT_CASCADE_LOOK, false},
    {"before it looks again", WEFT_FAULT_BEFORE_RUN, WEFT_STMT_COMPLETION_ANY, false},
};

static const char waits_for_a_lock[] =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND wait_event_type = 'Lock'";

/* ---- Races ----------------------------------------------------------------------------------- */

RACE(flow_two_replicas_cascade_at_once)
{
    if (!only_on_pg())
        return;
    weft_engine_on_flows(race->a, do_nothing, NULL);
    weft_engine_on_flows(race->b, do_nothing, NULL);
    for (size_t i = 0; i < WEFT_LEN(places); i++) {
        struct drawn flow;
        struct stopped stopped;
        printf("# the first stands %s\n", places[i].name);
        draw(&flow, "a; b:a; c:a; d:b,c");
        submit(race, &flow);
        struct doer end = {.engine = race->a, .lease = take(race, "a")};
        do_complete(&end);
        struct doer one = {.engine = race->a, .flow = &flow};
        struct doer two = {.engine = race->b, .flow = &flow};
        stop_at(&stopped, places[i].point, places[i].stmt, do_cascade, &one);
        come_by(do_cascade, &two);
        go_on(&stopped, &one);
        nothing_left(race);
        is_in(race, &flow, "d", WEFT_STATE_BLOCKED);
        (void)take(race, "b");
        (void)take(race, "c");
    }
}

RACE(flow_last_two_upstreams_complete_on_two_replicas)
{
    for (size_t i = 0; i < WEFT_LEN(places) && only_on_pg(); i++) {
        struct drawn flow;
        struct stopped stopped;
        printf("# the cascade of one stands %s\n", places[i].name);
        draw(&flow, "a; b; c:a,b; d:c");
        submit(race, &flow);
        struct doer one = {.engine = race->a, .flow = &flow, .lease = take(race, "a")};
        struct doer two = {.engine = race->b, .flow = &flow, .lease = take(race, "b")};
        stop_at(&stopped, places[i].point, places[i].stmt, do_complete, &one);
        come_by(do_complete, &two);
        is_in(race, &flow, "b", WEFT_STATE_SUCCEEDED);
        is_in(race, &flow, "c", places[i].holds ? WEFT_STATE_BLOCKED : WEFT_STATE_READY);
        go_on(&stopped, &one);
        nothing_left(race);
        (void)take(race, "c");
        is_in(race, &flow, "d", WEFT_STATE_BLOCKED);
    }
}

static const char *const after_a[] = {"a"};
static const struct weft_node new_node = {
    .name = "x", .spec = {.kind = "x"}, .after = after_a, .after_count = 1};

RACE(flow_upstream_completes_while_an_edge_is_added)
{
    static const enum weft_fault_point point[] = {WEFT_FAULT_AFTER_RUN, WEFT_FAULT_AFTER_RUN,
                                                  WEFT_FAULT_BEFORE_COMMIT};
    static const enum weft_stmt stmt[] = {WEFT_STMT_FLOW_HOLD, WEFT_STMT_NODES_NAMED,
                                          WEFT_STMT_FLOW_EDGES};
    for (size_t i = 0; i < WEFT_LEN(stmt) && only_on_pg(); i++) {
        struct drawn flow;
        struct stopped stopped;
        draw(&flow, "a; b");
        submit(race, &flow);
        struct doer grow = {.engine = race->a, .flow = &flow, .node = &new_node};
        struct doer end = {.engine = race->b, .flow = &flow, .lease = take(race, "a")};
        (void)take(race, "b");
        stop_at(&stopped, point[i], stmt[i], do_grow, &grow);
        come_by(do_complete, &end);
        go_on(&stopped, &grow);
        nothing_left(race);
        (void)take(race, "x");
    }
}

RACE(flow_edge_is_added_while_its_upstream_completes)
{
    for (size_t i = 0; i < WEFT_LEN(places) && only_on_pg(); i++) {
        struct drawn flow;
        struct stopped stopped;
        printf("# the cascade of the upstream stands %s\n", places[i].name);
        draw(&flow, "a; b; c:a");
        submit(race, &flow);
        struct doer end = {.engine = race->b, .flow = &flow, .lease = take(race, "a")};
        struct doer grow = {.engine = race->a, .flow = &flow, .node = &new_node};
        struct task task = {.run = do_grow, .context = &grow};
        (void)take(race, "b");
        stop_at(&stopped, places[i].point, places[i].stmt, do_complete, &end);
        task_start(&task); /* it waits for the lock, where the other holds it */
        ok(places[i].holds ? raw_wait(&race->place, race->raw, waits_for_a_lock)
                           : task_finishes(&task),
           "the growth %s", places[i].holds ? "waits" : "does not wait");
        go_on(&stopped, &end);
        task_join(&task);
        is_int(grow.rc, WEFT_OK, "the flow grew");
        nothing_left(race);
        (void)take(race, "x");
        (void)take(race, "c");
    }
}

RACE(flow_member_ends_while_the_cascade_holds_the_flow)
{
    struct drawn flow;
    struct stopped stopped;
    if (!only_on_pg())
        return;
    draw(&flow, "a; b; c; d; x:a; y:b; z:c; w:d");
    submit(race, &flow);
    struct doer one = {.engine = race->a, .flow = &flow, .lease = take(race, "a")};
    struct doer two = {.engine = race->b, .flow = &flow, .lease = take(race, "b")};
    struct weft_claimed lease = take(race, "c");
    stop_at(&stopped, WEFT_FAULT_AFTER_RUN, WEFT_STMT_CASCADE_LOOK, do_complete, &one);
    come_by(do_complete, &two);
    struct weft_err err = {0};
    struct weft_lease_answer answer = {0};
    const struct weft_failure failure = {.id = lease.id, .epoch = lease.epoch, .permanent = true};
    is_int(engine_fail(race->b, &failure, 1, &answer, &err), WEFT_OK, "an upstream fails");
    is_int(steer_one(race->b, WEFT_STEER_CANCEL, &(struct weft_steer){.id = flow.id[3]}).err.rc,
           WEFT_OK, "an upstream is cancelled");
    ok(!task_done(&stopped.task), "the cascade still holds the flow");
    go_on(&stopped, &one);
    nothing_left(race);
    is_in(race, &flow, "x", WEFT_STATE_READY);
    is_in(race, &flow, "y", WEFT_STATE_READY);
    is_in(race, &flow, "z", WEFT_STATE_SKIPPED);
    is_in(race, &flow, "w", WEFT_STATE_SKIPPED);
}

/*
 * The upstream of two joins: one was decided and wants it cancelled, the other comes too late,
 * wherever the first replica stands: growth looks first at what has ended.
 */
RACE(flow_sibling_feeds_a_join_that_is_added)
{
    static const enum weft_stmt stand[] = {WEFT_STMT_GROUP_MEMBERS, WEFT_STMT_GROUP_ADD};
    for (size_t i = 0; i < WEFT_LEN(stand) && only_on_pg(); i++) {
        struct drawn flow;
        struct stopped stopped;
        draw(&flow, "w; a; d:w,a");
        flow.node[2].join = WEFT_JOIN_ANY;
        submit(race, &flow);
        struct doer win = {.engine = race->a, .flow = &flow, .lease = take(race, "w")};
        struct doer grow = {.engine = race->b, .flow = &flow, .node = &new_node};
        struct weft_claimed lose = take(race, "a");
        stop_at(&stopped, WEFT_FAULT_AFTER_COMMIT, stand[i], do_complete, &win);
        come_by(do_grow, &grow);
        go_on(&stopped, &win);
        nothing_left(race);
        is_in(race, &flow, "a", WEFT_STATE_CANCELLED);
        is_int(state_at(race->b, &grow.grown), WEFT_STATE_SKIPPED, "x fits that");
        struct doer end = {.engine = race->b, .flow = &flow, .lease = lose};
        do_complete(&end);
        is_int(end.rc, WEFT_FENCED, "the worker of a learns of it");
        (void)take(race, "d");
        nothing_left(race);
    }
}

RACE(flow_is_cancelled_while_its_cascade_runs)
{
    for (size_t i = 0; i < WEFT_LEN(places) && only_on_pg(); i++) {
        struct drawn flow;
        struct stopped stopped;
        struct weft_err err = {0};
        printf("# the cascade stands %s\n", places[i].name);
        draw(&flow, "a; b:a");
        submit(race, &flow);
        struct doer end = {.engine = race->a, .flow = &flow, .lease = take(race, "a")};
        struct doer cancel = {.engine = race->b, .flow = &flow};
        struct task task = {.run = do_cancel, .context = &cancel};
        stop_at(&stopped, places[i].point, places[i].stmt, do_complete, &end);
        task_start(&task);
        if (!places[i].holds)
            ok(task_finishes(&task), "the cancel does not wait");
        go_on(&stopped, &end);
        task_join(&task);
        is_int(cancel.rc, WEFT_OK, "the flow is cancelled");
        is_in(race, &flow, "b", WEFT_STATE_READY);
        struct weft_flow_drain drain = {.flow = flow.answer.id};
        is_int(weft_engine_flow_drain(race->b, &drain, &err), WEFT_OK,
               "a drain of the cancelled flow succeeds");
        is_int(drain.cancelled, 1, "the drain cancels one member");
        is_in(race, &flow, "b", WEFT_STATE_CANCELLED);
        nothing_left(race);
        is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.flow WHERE state = 0"),
               0, "the flow has ended");
    }
}

RACE(flow_member_completes_while_it_is_cancelled)
{
    struct drawn flow;
    struct stopped stopped;
    if (!only_on_pg())
        return;
    draw(&flow, "a; b:a");
    submit(race, &flow);
    struct doer cancel = {.engine = race->a, .flow = &flow};
    struct doer end = {.engine = race->b, .flow = &flow, .lease = take(race, "a")};
    stop_at(&stopped, WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_FLOW_CANCEL, do_cancel, &cancel);
    come_by(do_complete, &end);
    is_in(race, &flow, "b", WEFT_STATE_BLOCKED);
    go_on(&stopped, &cancel);
    is_in(race, &flow, "b", WEFT_STATE_CANCELLED);
    nothing_left(race);
    is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.flow WHERE state = 0"), 0,
           "the flow has ended");
}

/* The group of one replica's join, while another replica has the lock of the flow. */
RACE(flow_group_is_left_to_the_holder_of_the_lock)
{
    struct drawn flow;
    struct stopped first, second;
    if (!only_on_pg())
        return;
    draw(&flow, "w; a; b; d:w,a; x:b");
    flow.node[3].join = WEFT_JOIN_ANY;
    submit(race, &flow);
    struct doer win = {.engine = race->a, .flow = &flow, .lease = take(race, "w")};
    struct doer end = {.engine = race->b, .flow = &flow, .lease = take(race, "b")};
    (void)take(race, "a");
    stop_at(&first, WEFT_FAULT_AFTER_COMMIT, WEFT_STMT_GROUP_ADD, do_complete, &win);
    stop_at(&second, WEFT_FAULT_AFTER_RUN, WEFT_STMT_FLOW_LOCK, do_complete, &end);
    go_on(&first, &win);
    is_in(race, &flow, "a", WEFT_STATE_RUNNING);
    go_on(&second, &end);
    nothing_left(race);
    is_in(race, &flow, "a", WEFT_STATE_CANCELLED);
    (void)take(race, "x");
    (void)take(race, "d");
}

static void do_reconcile(void *context)
{
    struct doer *doer = context;
    struct weft_pass_report report;
    doer->rc = weft_engine_pass(doer->engine, WEFT_SCANNER_EDGE_CANCEL_RECONCILER, NULL, &report,
                                &doer->err);
}

/* c ended while its group waited for e, without a completion: the reconciler finds the group. */
RACE(flow_member_ends_while_a_group_is_reconciled)
{
    struct drawn flow;
    struct stopped stopped;
    if (!only_on_pg())
        return;
    draw(&flow, "a; c; f; d:a,c; e:c,f; x; y:x");
    flow.node[3].join = WEFT_JOIN_ANY;
    submit(race, &flow);
    struct doer end = {.engine = race->b, .flow = &flow, .lease = take(race, "a")};
    do_complete(&end);
    end.lease = take(race, "c");
    weft_engine_on_flows(race->b, do_nothing, NULL);
    do_complete(&end);
    weft_engine_on_flows(race->b, NULL, NULL);
    is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.cancel_group WHERE waiting"),
           1, "the group stays behind");
    end.lease = take(race, "x");
    struct doer reconcile = {.engine = race->a, .flow = &flow};
    stop_at(&stopped, WEFT_FAULT_AFTER_RUN, WEFT_STMT_FLOW_LOCK, do_reconcile, &reconcile);
    come_by(do_complete, &end);
    is_in(race, &flow, "y", WEFT_STATE_BLOCKED);
    go_on(&stopped, &reconcile);
    nothing_left(race);
    is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.cancel_group"), 0,
           "the group is gone");
    (void)take(race, "y");
}

static void do_replay(void *context)
{
    struct doer *doer = context;
    struct weft_steer item = {.id = doer->flow->id[0]};
    struct weft_steered answer = steer_one(doer->engine, WEFT_STEER_REPLAY, &item);
    doer->err = answer.err;
    doer->rc = answer.err.rc;
}

/* The completion of the failure is still in the outbox, or half looked at. */
RACE(flow_member_is_replayed_while_its_cascade_runs)
{
    for (size_t i = 0; i < WEFT_LEN(places) && only_on_pg(); i++) {
        struct drawn flow;
        struct stopped stopped;
        printf("# the cascade stands %s\n", places[i].name);
        draw(&flow, "a; b:a; c:b");
        submit(race, &flow);
        struct doer end = {.engine = race->a, .flow = &flow, .lease = take(race, "a")};
        struct doer again = {.engine = race->b, .flow = &flow};
        struct task task = {.run = do_replay, .context = &again};
        stop_at(&stopped, places[i].point, places[i].stmt, do_fail, &end);
        task_start(&task);
        ok(places[i].holds ? raw_wait(&race->place, race->raw, waits_for_a_lock)
                           : task_finishes(&task),
           "the replay %s", places[i].holds ? "waits" : "does not wait");
        go_on(&stopped, &end);
        task_join(&task);
        is_int(again.rc, WEFT_OK, "the member is replayed");
        nothing_left(race);
        is_in(race, &flow, "b", WEFT_STATE_BLOCKED);
        is_in(race, &flow, "c", WEFT_STATE_BLOCKED);
        end.lease = take(race, "a");
        do_complete(&end);
        (void)take(race, "b");
        nothing_left(race);
    }
}

static void do_retire(void *context)
{
    struct doer *doer = context;
    struct weft_pass_report report;
    doer->rc = weft_engine_pass(doer->engine, WEFT_SCANNER_RETENTION, NULL, &report, &doer->err);
    if (!doer->rc)
        doer->rc = weft_engine_pass(doer->engine, WEFT_SCANNER_PURGE, NULL, &report, &doer->err);
}

/* In both orders: a flow is never open with members that are gone. */
RACE(flow_is_removed_while_a_member_is_replayed)
{
    struct drawn flow;
    struct stopped stopped;
    if (!only_on_pg())
        return;
    for (int first = 0; first < 2; first++) {
        draw(&flow, "a; b:a");
        submit(race, &flow);
        struct doer end = {.engine = race->a, .flow = &flow, .lease = take(race, "a")};
        do_fail(&end);
        race_forward(race, 400 * INT64_C(86400000));
        struct doer retire = {.engine = race->a, .flow = &flow};
        struct doer again = {.engine = race->b, .flow = &flow};
        struct task task = {.run = do_replay, .context = &again};
        if (first == 0) { /* the mark is there, and not committed */
            stop_at(&stopped, WEFT_FAULT_AFTER_RUN, WEFT_STMT_FLOWS_KEPT, do_retire, &retire);
            task_start(&task);
            ok(raw_wait(&race->place, race->raw, waits_for_a_lock), "the replay waits");
            go_on(&stopped, &retire);
            task_join(&task);
            ok(again.rc != WEFT_OK, "the replay that waited is refused");
            do_retire(&retire);
            is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.node"), 0,
                   "purge removes every node of the flow");
        } else {
            stop_at(&stopped, WEFT_FAULT_AFTER_RUN, WEFT_STMT_FLOW_HOLD, do_replay, &again);
            come_by(do_retire, &retire);
            go_on(&stopped, &again);
            do_retire(&retire);
            is_in(race, &flow, "b", WEFT_STATE_BLOCKED);
            end.lease = take(race, "a");
            do_complete(&end);
            (void)take(race, "b");
        }
        nothing_left(race);
    }
}
