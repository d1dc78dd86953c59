/* SPDX-License-Identifier: Apache-2.0 */

/* The scanners of flows: which leftovers of a dead process they handle, and which rows they skip.
 */

#include "flows.h"

#include "base/id.h"
#include "engine/flow/flow.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "engine/ready/poll.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

static struct weft_pass_report run_for(struct fixture *f, enum weft_scanner scanner,
                                       const struct weft_pass_config *config)
{
    struct weft_pass_report report = {0};
    is_int(weft_engine_pass(f->b, scanner, config, &report, &f->err), WEFT_OK, "pass");
    return report;
}

static weft_usec due_of(struct fixture *f, enum weft_scanner scanner)
{
    struct weft_poll poll;
    is_int(weft_engine_poll(f->b, f->arena, &poll, &f->err), WEFT_OK, "poll");
    return poll.due_us[scanner];
}

static void cancel_flow(struct fixture *f, const struct drawn *flow, bool remove)
{
    const struct weft_flow_cancelling args = {.ns = "default",
                                              .flow = flow->answer.id,
                                              .how = WEFT_FLOW_CANCEL_ALL,
                                              .reason = "enough",
                                              .remove = remove};
    enum weft_flow_state state;
    is_int(weft_engine_flow_cancel(f->a, &args, &state, NULL, &f->err), WEFT_OK, "cancel the flow");
}

/* ---- dependency ------------------------------------------------------------------------------ */

CASE(flow_scan_takes_up_completions)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    is_int(due_of(f, WEFT_SCANNER_DEPENDENCY), WEFT_NEVER,
           "the dependency scanner has no due time");
    leave_completions(f->a);
    struct weft_claimed lease = claim_node(f, "a");
    (void)complete(f, f->a, &lease, "1");
    weft_usec ended_us = f->now_us;
    is_int(due_of(f, WEFT_SCANNER_DEPENDENCY), ended_us + WEFT_SECOND, "the poll tells when");
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_DEPENDENCY);
    is_int(counter_of(&report, "scanned"), 0,
           "a young completion is left to the process that made it");
    is_str(states(f, &flow), "sbb", "b waits");

    forward_ms(f, 1000);
    const struct weft_pass_config elsewhere = {.ns = "elsewhere"};
    report = run_for(f, WEFT_SCANNER_DEPENDENCY, &elsewhere);
    is_int(counter_of(&report, "scanned"), 0, "a pass of another namespace scans nothing");
    uint8_t partition = (uint8_t)weft_id_partition(&flow.answer.id);
    const struct weft_pass_config others = {.partition_first = partition < 128 ? 128 : 0,
                                            .partition_last = partition < 128 ? 255 : 127};
    report = run_for(f, WEFT_SCANNER_DEPENDENCY, &others);
    is_int(counter_of(&report, "scanned"), 0, "a pass of other partitions scans nothing");
    is_str(states(f, &flow), "sbb", "b waits");

    report = run_pass(f, f->b, WEFT_SCANNER_DEPENDENCY);
    is_int(counter_of(&report, "scanned"), 1, "one was left");
    is_int(counter_of(&report, "reconciled"), 1, "the one group is reconciled");
    is_int(counter_of(&report, "noop"), 0, "no completion was without effect");
    is_int(counter_of(&report, "errors"), 0, "no completion failed");
    is_str(states(f, &flow), "srb", "b may begin");
    report = run_pass(f, f->b, WEFT_SCANNER_DEPENDENCY);
    is_int(report.handled, 0, "a second pass finds nothing");
    is_int(due_of(f, WEFT_SCANNER_DEPENDENCY), WEFT_NEVER, "the poll gives no due time");
}

/* ---- Sibling cancel -------------------------------------------------------------------------- */

/* d was satisfied by a, and c was spared for e. e is cancelled by a process that dies after its
 * commit, while the group of d has something to do. */
static void leave_group(struct fixture *f, struct drawn *flow)
{
    draw(flow, "a; b; c; d:a,b,c; e:c");
    node_of(flow, "d")->join = WEFT_JOIN_ANY;
    submit_drawn(f, flow);
    end_node(f, flow, "a", true);
    is_str(states(f, flow), "scrrb", "b is cancelled; c feeds e");
    leave_completions(f->a);
    (void)steer_id(f, WEFT_STEER_CANCEL, id_of(flow, "e"));
    run_sql_of(f, "UPDATE weft.cancel_group SET waiting = false",
               "UPDATE cancel_group SET waiting = 0");
    is_str(states(f, flow), "scrrc", "e does not need c any more");
}

CASE(flow_scan_dispatches_groups)
{
    struct drawn flow;
    leave_group(f, &flow);
    is_int(due_of(f, WEFT_SCANNER_EDGE_CANCEL_DISPATCHER), f->now_us + WEFT_SECOND,
           "the poll gives the due time of the group");
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_EDGE_CANCEL_DISPATCHER);
    is_int(report.handled, 0, "a pass before the due time handles nothing");
    forward_ms(f, 1000);
    report = run_pass(f, f->b, WEFT_SCANNER_EDGE_CANCEL_DISPATCHER);
    is_int(counter_of(&report, "dispatched"), 1, "the group is drained");
    is_int(counter_of(&report, "orphaned"), 0, "no group is orphaned");
    is_int(counter_of(&report, "skipped_locked"), 0, "no group was locked");
    is_int(counter_of(&report, "errors"), 0, "no group failed");
    is_str(states(f, &flow), "sccrc", "c is cancelled");
    is_str(describe(f, id_of(&flow, "c")).reason, "sibling_quorum_satisfied",
           "c has the reason of the sibling cancel");
    is_int(due_of(f, WEFT_SCANNER_EDGE_CANCEL_DISPATCHER), WEFT_NEVER,
           "the dispatcher has no due time");
    is_int(due_of(f, WEFT_SCANNER_EDGE_CANCEL_RECONCILER), WEFT_NEVER,
           "the reconciler has no due time");
}

/* d wants a or c, and the rest cancelled; e wants b, c or u, and lets the rest run. */
CASE(flow_scan_finds_siblings_spared_for_a_join_that_lets_run)
{
    struct drawn flow;
    draw(&flow, "a; b; c; u; d:a,c; e:b,c,u");
    node_of(&flow, "d")->join = node_of(&flow, "e")->join = WEFT_JOIN_ANY;
    node_of(&flow, "e")->on_satisfied = WEFT_ON_SATISFIED_LET_RUN;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srrrrb", "c feeds e");
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "sscrrr", "c is cancelled and u is left alone");
    is_str(describe(f, id_of(&flow, "c")).reason, "sibling_quorum_satisfied", "d did for c");
    is_int(due_of(f, WEFT_SCANNER_EDGE_CANCEL_DISPATCHER), WEFT_NEVER, "no group is to be walked");
    is_int(due_of(f, WEFT_SCANNER_EDGE_CANCEL_RECONCILER), WEFT_NEVER, "no group waits");
}

/* The only sibling is spared, and ends by itself. */
CASE(flow_scan_finds_no_group_of_the_ended)
{
    struct drawn flow;
    draw(&flow, "a; c; d:a,c; e:c");
    node_of(&flow, "d")->join = WEFT_JOIN_ANY;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    is_int(due_of(f, WEFT_SCANNER_EDGE_CANCEL_RECONCILER), f->now_us + WEFT_SECOND,
           "d waits for c");
    end_node(f, &flow, "c", true);
    is_int(due_of(f, WEFT_SCANNER_EDGE_CANCEL_RECONCILER), WEFT_NEVER,
           "the end of c removes the due time of d");
    (void)steer_id(f, WEFT_STEER_REPLAY, id_of(&flow, "c"));
    is_str(states(f, &flow), "srrr", "no group cancels a node that is replayed after that");
}

/* Without a group in the flow a join that lets its upstreams run leaves none. */
CASE(flow_scan_finds_no_group_where_all_run)
{
    struct drawn flow;
    draw(&flow, "a; b; c:a,b");
    node_of(&flow, "c")->join = WEFT_JOIN_ANY;
    node_of(&flow, "c")->on_satisfied = WEFT_ON_SATISFIED_LET_RUN;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srr", "b runs on");
    is_int(due_of(f, WEFT_SCANNER_EDGE_CANCEL_DISPATCHER), WEFT_NEVER, "no group is to be walked");
    is_int(due_of(f, WEFT_SCANNER_EDGE_CANCEL_RECONCILER), WEFT_NEVER, "no group waits");
}

CASE(flow_scan_reconciles_groups)
{
    struct drawn flow;
    leave_group(f, &flow);
    run_sql_of(f, "UPDATE weft.cancel_group SET waiting = true",
               "UPDATE cancel_group SET waiting = 1");
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_EDGE_CANCEL_RECONCILER);
    is_int(counter_of(&report, "no_op"), 1, "c is alive: the group stays");
    is_int(report.handled, 0, "nothing is removed");
    struct weft_claimed lease = claim_node(f, "c");
    (void)complete(f, f->a, &lease, "1"); /* who dies before the cascade */
    is_int(due_of(f, WEFT_SCANNER_EDGE_CANCEL_RECONCILER), f->now_us + WEFT_SECOND,
           "the poll gives the due time of the group");
    run_sql_of(
        f,
        "INSERT INTO weft.cancel_group VALUES (gen_random_uuid(), gen_random_uuid(), 1, 0, false)",
        "INSERT INTO cancel_group VALUES (999999, 999999, 1, 0, 0, 0)");
    report = run_pass(f, f->b, WEFT_SCANNER_EDGE_CANCEL_DISPATCHER);
    is_int(counter_of(&report, "orphaned"), 1, "the dispatcher meets a group without a flow");

    report = run_pass(f, f->b, WEFT_SCANNER_EDGE_CANCEL_RECONCILER);
    is_int(counter_of(&report, "completed_drain"), 1, "the drained one goes");
    is_int(counter_of(&report, "stale_removed"), 1, "the group without a flow is removed");
    is_int(counter_of(&report, "no_op"), 0, "no group is left as it is");
    report = run_pass(f, f->b, WEFT_SCANNER_EDGE_CANCEL_RECONCILER);
    is_int(report.handled, 0, "a second pass finds nothing");
}

/* ---- Backlog --------------------------------------------------------------------------------- */

CASE(flow_scan_drains_cancelled_flows)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b; x");
    submit_drawn(f, &flow);
    struct weft_claimed lease = claim_node(f, "x");
    is_int(due_of(f, WEFT_SCANNER_CANCEL_BACKLOG), WEFT_NEVER,
           "the backlog scanner has no due time");
    cancel_flow(f, &flow, false);
    is_str(states(f, &flow), "rbbR", "the cancel does not wait for its members");
    is_int(due_of(f, WEFT_SCANNER_CANCEL_BACKLOG), 0, "the backlog scanner is due at once");
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
    is_int(counter_of(&report, "processed"), 1, "the pass processes one flow");
    is_int(counter_of(&report, "cancelled"), 4, "the pass cancels all four members");
    is_int(counter_of(&report, "removed"), 0, "nothing is removed");
    is_str(states(f, &flow), "cccc", "all members are cancelled");
    is_int(flow_state(f, &flow), WEFT_FLOW_CANCELLED, "the flow is over");
    expect_fenced(f, &lease, WEFT_FENCE_CANCELLED);
    is_int(due_of(f, WEFT_SCANNER_CANCEL_BACKLOG), WEFT_NEVER,
           "the backlog scanner has no due time");
}

CASE(flow_scan_removes_half_a_flow)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    struct weft_id plain = submit_job(f);
    run_sql_of(f, "UPDATE weft.flow SET state = -1", "UPDATE flow SET state = -1");
    weft_usec due_us = f->now_us + 600 * WEFT_SECOND;
    is_int(due_of(f, WEFT_SCANNER_CANCEL_BACKLOG), due_us,
           "an unfinished submission is due after ten minutes");
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
    is_int(counter_of(&report, "removed"), 0, "the pass before that removes nothing");
    forward_ms(f, (int64_t)600 * 1000);
    report = run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
    is_int(counter_of(&report, "removed"), 1, "the flow is given to purge");
    ok(due_of(f, WEFT_SCANNER_PURGE) != WEFT_NEVER, "which is due");
    ok(due_of(f, WEFT_SCANNER_CANCEL_BACKLOG) == WEFT_NEVER, "the backlog scanner is not any more");
    report = run_pass(f, f->b, WEFT_SCANNER_PURGE);
    is_int(counter_of(&report, "members"), 3, "the flow goes");
    is_int(state_of(f, &plain), WEFT_STATE_READY, "an execution outside the flow stays");
    is_int(claim(f, f->a, 10).count, 1, "only the execution outside the flow can be claimed");
}

/* ---- Retention ------------------------------------------------------------------------------- */

enum { DAY_MS = 24 * 3600 * 1000 };

static bool is_there(struct fixture *f, const struct weft_id *id)
{
    struct weft_execution item;
    enum weft_rc rc = weft_engine_describe(f->a, "default", id, 1, f->arena, &item, &f->err);
    return rc == WEFT_OK && item.state != WEFT_STATE_NONE;
}

CASE(flow_scan_keeps_flows_whole)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    for (int day = 0; day < 100; day += 10)
        forward_ms(f, 10 * (int64_t)DAY_MS);
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_RETENTION);
    is_int(report.handled, 0, "a member is kept as long as its flow is open");
    is_str(states(f, &flow), "srb", "all of it");
    end_node(f, &flow, "b", true);
    end_node(f, &flow, "c", true);
    forward_ms(f, 7 * (int64_t)DAY_MS - 1);
    report = run_pass(f, f->b, WEFT_SCANNER_RETENTION);
    is_int(report.handled, 0, "the flow is kept for a week more");
    is_str(states(f, &flow), "sss", "all of it");
    forward_ms(f, 1);
    report = run_pass(f, f->b, WEFT_SCANNER_RETENTION);
    is_int(counter_of(&report, "flows"), 1, "the pass at its time marks the flow");
    report = run_pass(f, f->b, WEFT_SCANNER_PURGE);
    is_int(counter_of(&report, "tombstones"), 1, "purge removes the flow");
    is_int(counter_of(&report, "members"), 3, "with its members");
    is_int(flow_state(f, &flow), -1, "the flow is gone");
    for (size_t i = 0; i < flow.count; i++)
        ok(!is_there(f, &flow.id[i]), "member %zu is gone", i);
    report = run_pass(f, f->b, WEFT_SCANNER_RETENTION);
    is_int(report.handled, 0, "a second pass finds nothing");
}

CASE(flow_scan_keeps_failed_flows_longer)
{
    struct drawn bad, good;
    draw(&bad, "a; b:a");
    draw(&good, "p; q:p");
    submit_drawn(f, &bad);
    submit_drawn(f, &good);
    end_node(f, &bad, "a", false);
    end_node(f, &good, "p", true);
    end_node(f, &good, "q", true);
    forward_ms(f, 7 * (int64_t)DAY_MS);
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_RETENTION);
    is_int(counter_of(&report, "flows"), 1, "the good one goes after a week");
    is_str(states(f, &bad), "fk", "the other one stays");
    forward_ms(f, 14 * (int64_t)DAY_MS);
    forward_ms(f, 7 * (int64_t)DAY_MS);
    report = run_pass(f, f->b, WEFT_SCANNER_RETENTION);
    is_int(counter_of(&report, "flows"), 1, "the flow is removed after four weeks");
}

CASE(flow_scan_removes_deleted_flows)
{
    struct drawn flow;
    draw(&flow, "a; b:a");
    submit_drawn(f, &flow);
    cancel_flow(f, &flow, true);
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_PURGE);
    is_int(counter_of(&report, "tombstones"), 0, "a flow that has not ended is not removed");
    (void)run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
    report = run_pass(f, f->b, WEFT_SCANNER_PURGE);
    is_int(counter_of(&report, "tombstones"), 1, "the ended flow is removed at once");
    ok(!is_there(f, &flow.id[0]) && !is_there(f, &flow.id[1]),
       "the members are removed with the flow");
}

/* ---- Flows that are not whole ---------------------------------------------------------------- */

static size_t listed(struct fixture *f)
{
    const struct weft_listing listing = {.limit = 10};
    return list_page(f, &listing).count;
}

CASE(flow_members_are_hidden_until_the_flow_is_written)
{
    bool pg = is_pg(f);
    struct drawn flow;
    struct weft_execution item = {0};
    draw(&flow, "a; b:a");
    submit_drawn(f, &flow);
    (void)submit_job(f);
    is_int(listed(f), 3, "the members are executions like any other");
    run_sql(f, pg ? "UPDATE weft.flow SET state = -1" : "UPDATE flow SET state = -1");
    is_int(listed(f), 1, "no member is listed while the flow is being written");
    is_int(weft_engine_describe(f->a, "default", &flow.id[0], 1, f->arena, &item, &f->err), WEFT_OK,
           "look at one");
    is_int(item.state, WEFT_STATE_NONE,
           "a member cannot be described while the flow is being written");
    run_sql(f, pg ? "UPDATE weft.flow SET state = 0" : "UPDATE flow SET state = 0");
    is_int(listed(f), 3, "all of them are there at once");
    is_str(states(f, &flow), "rb", "the members have their states");
}
