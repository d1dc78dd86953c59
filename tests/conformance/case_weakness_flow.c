/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The twelve defects of flows our ancestor is known for, one case each: the comment above a
 * case names the defect. Where else each is shown, with all that is asked of flows:
 *
 *   key, duplicate, conflict of keys      http/flows.http, cli/flow.sh, fault flow_submit
 *   growth: stale revision, names, cycles http/flows.http, model/flowmodel, unit/graph
 *   growth at the wrong moment            race flow_upstream_completes_while_an_edge_is_added and
 *                                         flow_edge_is_added_while_its_upstream_completes
 *   chain, fan-out, fan-in, diamond       flow_diamond, flowmodel sizes (1 -> 10,000 -> 1)
 *   failure and skips, deep chains        flow_failure_skips, flow_long_skip, flowmodel sizes
 *   all, any, quorum, satisfied or not    flow_any_and_quorum, unit/join (every small case)
 *   let_run, siblings, both reasons       flow_siblings_*, F8 below, model/flowmodel
 *   a sibling that feeds a pending join   flow_siblings_are_cancelled, race
 *                                         flow_sibling_feeds_a_join_that_is_added
 *   results along edges                   flow_claim_*
 *   replay                                flow_replay_*, fault flow_replay, model/flowmodel
 *   replay, a completion in the outbox    flow_replay_before_the_cascade, flowmodel sizes
 *   description, pages, lists, damage     flow_described_*, flow_pages, flow_lists, flow_check_*
 *   one hop per transaction, bounded      flowmodel sizes (edges and ends of every transaction)
 *   crash anywhere in a cascade           fault flow_*, model/flowmodel (cascades are broken off)
 *   two replicas at one flow              race flow_two_replicas_cascade_at_once,
 *                                         flow_last_two_upstreams_complete_on_two_replicas,
 *                                         flow_group_is_left_to_the_holder_of_the_lock
 *   cancel against a cascade              race flow_is_cancelled_while_its_cascade_runs
 *   many groups at once                   F8 below
 *   scanners and their reports            flow_scan_*
 *   cancel: policies, backlog, repeats    F9 below, http/flows.http, flow_scan_drains_*
 *   cancel and wait, time out, 202        http/flows.http
 *   metrics                               unit/metrics
 */

#include "direct.h"
#include "flows.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/flow/flow.h"
#include "weft/weft.h"

static void cancel_flow(struct fixture *f, const struct drawn *flow, enum weft_flow_cancel how)
{
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = flow->answer.id, .how = how, .reason = "enough"};
    enum weft_flow_state state;
    is_int(weft_engine_flow_cancel(f->a, &args, &state, NULL, &f->err), WEFT_OK, "cancel the flow");
}

static uint64_t drain(struct fixture *f, const struct drawn *flow)
{
    struct weft_flow_drain drain = {.flow = flow->answer.id};
    is_int(weft_engine_flow_drain(f->b, &drain, &f->err), WEFT_OK, "drain it");
    return drain.cancelled;
}

static enum weft_rc grow(struct fixture *f, const struct drawn *flow, int32_t revision,
                         const struct weft_node *node, struct weft_id *ret_id)
{
    struct weft_flow_submitted answer = {.node = ret_id};
    const struct weft_flow_growth growth = {.ns = "default",
                                            .flow = flow->answer.id,
                                            .revision = revision,
                                            .nodes = node,
                                            .node_count = 1};
    return engine_flow_grow(f->a, &growth, &answer, &f->err);
}

static size_t claimable(struct fixture *f, struct weft_engine *engine, const char *kind)
{
    const struct weft_claim args = {.worker = "greedy", .kinds = &kind, .kind_count = 1, .max = 1};
    return claim_with(f, engine, &args).count;
}

/* How many completions wait to be looked at; by their scanner, which takes them up. */
static uint64_t completions(struct fixture *f)
{
    forward_ms(f, 1000);
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_DEPENDENCY);
    return report.counter[0].value; /* scanned */
}

/* F1: dependencies were not enforced: a child could be claimed at once. */
CASE(weakness_f01_child_waits_for_its_join)
{
    struct drawn flow;
    draw(&flow, "a; b:a");
    submit_drawn(f, &flow);
    struct weft_steer first = {.id = *id_of(&flow, "b"), .priority = 1000};
    (void)steer(f, WEFT_STEER_REPRIORITIZE, &first);
    is_int(claimable(f, f->a, "b") + claimable(f, f->b, "b"), 0,
           "a claim before the upstream ended does not get the child");
    forward_ms(f, 86400000);
    (void)run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER);
    is_int(claimable(f, f->b, "b"), 0, "however long it waits");
    end_node(f, &flow, "a", true);
    is_int(claimable(f, f->a, "b"), 1, "a claim after the upstream succeeded gets the child");
    is_int(claimable(f, f->b, "b"), 0, "a second claim does not get the child");
}

/* F2: an edge that was added behind an end was never resolved. */
CASE(weakness_f02_late_edges_resolve)
{
    static const char *const good[] = {"a"}, *const bad[] = {"b"}, *const open[] = {"a", "c"};
    struct drawn flow;
    struct weft_id x, y, z;
    draw(&flow, "a; b; c");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    end_node(f, &flow, "b", false);
    struct weft_node node = {.name = "x", .spec = {.kind = "x"}, .after = good, .after_count = 1};
    is_int(grow(f, &flow, 1, &node, &x), WEFT_OK, "a node is added behind a succeeded one");
    is_int(state_of(f, &x), WEFT_STATE_READY, "a node after a succeeded one is ready");
    node = (struct weft_node){.name = "y", .spec = {.kind = "y"}, .after = bad, .after_count = 1};
    is_int(grow(f, &flow, 2, &node, &y), WEFT_OK, "a node is added behind a failed one");
    is_int(state_of(f, &y), WEFT_STATE_SKIPPED, "a node after a failed one is skipped");
    node = (struct weft_node){.name = "z", .spec = {.kind = "z"}, .after = open, .after_count = 2};
    is_int(grow(f, &flow, 3, &node, &z), WEFT_OK,
           "a node is added behind a succeeded and an open one");
    is_int(state_of(f, &z), WEFT_STATE_BLOCKED, "a node after an open one is blocked");
    end_node(f, &flow, "c", true);
    is_int(state_of(f, &z), WEFT_STATE_READY, "the node is ready when the open one succeeds");
}

/* F3: "all" meant all that had been seen so far. */
CASE(weakness_f03_all_is_all)
{
    struct drawn flow;
    draw(&flow, "d:a,b,c; a; b; c");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    end_node(f, &flow, "c", true);
    is_str(states(f, &flow), "bsrs", "two of three are not all");
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "rsss", "three nodes have succeeded");
}

/* F4: an interrupted completion was lost, a completion delivered again was counted again. */
CASE(weakness_f04_delivered_again_changes_nothing)
{
    struct drawn flow;
    draw(&flow, "a; b; c; q:a,b,c; d:a,b");
    node_of(&flow, "q")->join = WEFT_JOIN_QUORUM;
    node_of(&flow, "q")->k = 2;
    node_of(&flow, "q")->on_satisfied = WEFT_ON_SATISFIED_LET_RUN;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    for (int i = 0; i < 3; i++) {
        run_sql(
            f,
            is_pg(f)
                ? "INSERT INTO weft.completion (flow, id, at) SELECT flow, id, 0 FROM weft.outcome"
                : "INSERT INTO completion (flow, num, at) SELECT flow, num, 0 FROM outcome");
        cascade(f, i % 2 ? f->a : f->b, &flow);
        is_str(states(f, &flow), "srrbb",
               "a completion that is delivered again does not count again");
    }
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "ssrrr", "a second upstream counts");
}

/* F5: a late result made a running child claimable again. */
CASE(weakness_f05_late_results_change_nothing)
{
    struct drawn flow;
    draw(&flow, "a; b; c; d:a,b,c");
    node_of(&flow, "d")->join = WEFT_JOIN_ANY;
    node_of(&flow, "d")->on_satisfied = WEFT_ON_SATISFIED_LET_RUN;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    struct weft_claimed child = claim_node(f, "d");
    end_node(f, &flow, "b", true);
    end_node(f, &flow, "c", false);
    is_str(states(f, &flow), "ssfR", "the child runs on");
    is_int(claimable(f, f->b, "d"), 0, "the running child is not claimed again");
    is_int(complete(f, f->b, &child, "1").err.rc, WEFT_OK, "the lease of the child is valid");
    is_int(attempts(f, id_of(&flow, "d")).count, 1, "the child has one attempt");
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "the flow has succeeded");
}

/* F6: every hop waited for a scanner. */
CASE(weakness_f06_hops_wait_for_no_scanner)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    for (size_t i = 0; i < flow.count; i++) {
        struct weft_claimed lease = claim_node(f, flow.node[i].name);
        (void)complete(f, f->a, &lease, "1");
    }
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "no time has passed, no pass has run");
}

/* F7: some ends were not told, and what came after them hung. */
CASE(weakness_f07_every_end_reaches_the_joins)
{
    static const struct weft_policy twice = {
        .max_attempts = 2, .backoff = WEFT_BACKOFF_FIXED, .initial_ms = 1000, .no_jitter = true};
    struct drawn flow;
    draw(&flow, "a; b; c; d; e; A:a; B:b; C:c; D:d; E:e,D");
    node_of(&flow, "b")->spec.policy = &twice;
    node_of(&flow, "d")->spec.deadline_us = f->now_us + 10 * WEFT_SECOND;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    struct weft_claimed lease = claim_node(f, "b");
    (void)fail(f, f->a, &lease, "flaky");
    is_str(states(f, &flow), "sdrrrrbbbb", "a failure that is retried is no end");
    forward_ms(f, 1000);
    (void)run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER);
    lease = claim_node(f, "b");
    (void)fail(f, f->a, &lease, "flaky");
    is_str(states(f, &flow), "sfrrrrkbbb", "the last one is");
    (void)steer_id(f, WEFT_STEER_CANCEL, id_of(&flow, "c"));
    is_str(states(f, &flow), "sfcrrrkkbb", "a cancel is");
    forward_ms(f, 10000);
    (void)run_pass(f, f->b, WEFT_SCANNER_EXECUTION_DEADLINE);
    is_str(states(f, &flow), "sfcerrkkkk", "expiry is, and so is the skip behind it");
    is_int(completions(f), 0, "no completion is left for the scanner");
}

/* F8: siblings that were cancelled kept their leases, their reason was lost, an impossible join
 * cancelled no member, and the head of the queue held up the rest. */
CASE(weakness_f08_siblings_end_like_any_other)
{
    struct drawn flow;
    draw(&flow, "a; b; c; d:a,b; e:c; x; y; z:x,y");
    node_of(&flow, "d")->join = WEFT_JOIN_ANY;
    node_of(&flow, "z")->on_satisfied = WEFT_ON_SATISFIED_CANCEL_REMAINING;
    submit_drawn(f, &flow);
    struct weft_claimed loser = claim_node(f, "b");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "scrrbrrb", "the sibling that ran is cancelled");
    expect_fenced(f, &loser, WEFT_FENCE_CANCELLED);
    expect_last_attempt(f, id_of(&flow, "b"), &(struct weft_attempt){.ended = "cancelled"});
    is_str(describe(f, id_of(&flow, "b")).reason, "sibling_quorum_satisfied",
           "the cancelled sibling has its reason");
    end_node(f, &flow, "x", false);
    is_str(describe(f, id_of(&flow, "y")).reason, "sibling_quorum_impossible", "the other reason");
    is_str(states(f, &flow), "scrrbfck", "an impossible join cancels as well");
    is_int(completions(f), 0, "no completion of the siblings is left for the scanner");
}

enum { GROUPS = 60 };

/* The same: groups that wait do not hold up other groups. */
CASE(weakness_f08_groups_that_wait_hold_up_no_other)
{
    for (size_t i = 0; i < GROUPS; i++) {
        struct drawn flow;
        draw(&flow, "a; b; c; d:a,b; e:b,c");
        node_of(&flow, "d")->join = WEFT_JOIN_ANY;
        submit_drawn(f, &flow);
        end_node(f, &flow, "a", true);
        is_str(states(f, &flow), "srrrb", "b feeds e: its group waits");
        (void)claim_node(f, "b");
        (void)claim_node(f, "c");
        (void)claim_node(f, "d");
    }
    struct drawn last;
    draw(&last, "a; b; c; d:a,b");
    node_of(&last, "d")->join = WEFT_JOIN_ANY;
    submit_drawn(f, &last);
    leave_completions(f->a);
    leave_completions(f->b);
    struct weft_claimed lease = claim_node(f, "a");
    (void)complete(f, f->a, &lease, "1");
    forward_ms(f, 1000);
    (void)run_pass(f, f->b, WEFT_SCANNER_DEPENDENCY);
    is_str(states(f, &last), "scrr", "the last one is dispatched all the same");
}

/* F9: cancelling a flow rewrote ended members, reported their ends twice, took "pending" for
 * nothing, kept no reason and no lease in mind, and succeeded where there was no flow. */
CASE(weakness_f09_cancel_leaves_ended_members)
{
    struct drawn flow;
    draw(&flow, "a; b; c; d:b,c; e:a");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    struct weft_execution before = describe(f, id_of(&flow, "a"));
    struct weft_claimed running = claim_node(f, "b");
    cancel_flow(f, &flow, WEFT_FLOW_CANCEL_ALL);
    is_int(drain(f, &flow), 4, "all that lived is cancelled");
    is_str(states(f, &flow), "scccc", "the succeeded node stays succeeded");
    struct weft_execution after = describe(f, id_of(&flow, "a"));
    ok(same_execution(&before, &after), "the succeeded node is unchanged");
    is_str(result_text(f, id_of(&flow, "a")), "1", "the succeeded node keeps its result");
    expect_fenced(f, &running, WEFT_FENCE_CANCELLED);
    is_str(describe(f, id_of(&flow, "b")).reason, "enough", "the reason is kept");
    cancel_flow(f, &flow, WEFT_FLOW_CANCEL_ALL);
    is_int(drain(f, &flow), 0, "a repeated cancel cancels nothing");
    is_int(completions(f), 0, "no completion is left for the scanner after the repeated cancel");
    struct weft_flow_cancelling absent = {.ns = "default", .how = WEFT_FLOW_CANCEL_ALL};
    enum weft_flow_state state;
    is_int(weft_engine_flow_cancel(f->a, &absent, &state, NULL, &f->err), WEFT_NOT_FOUND,
           "a cancel of an unknown flow is not found");
}

CASE(weakness_f09_pending_spares_running_members)
{
    struct drawn flow;
    draw(&flow, "a; b; c:a; d:b");
    submit_drawn(f, &flow);
    struct weft_claimed running = claim_node(f, "a");
    cancel_flow(f, &flow, WEFT_FLOW_CANCEL_PENDING);
    is_int(drain(f, &flow), 3, "all but the running node are cancelled");
    is_str(states(f, &flow), "Rccc", "the running node runs on");
    is_int(complete(f, f->a, &running, "1").err.rc, WEFT_OK,
           "the completion of the running node is accepted");
    is_str(states(f, &flow), "sccc", "the completed root lets no node begin");
    is_int(flow_state(f, &flow), WEFT_FLOW_CANCELLED, "the flow ends with it");
    draw(&flow, "a; b:a");
    submit_drawn(f, &flow);
    cancel_flow(f, &flow, WEFT_FLOW_CANCEL_ONLY);
    is_int(drain(f, &flow), 0, "flow_only has no backlog");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "sc", "no other node begins");
}

/* F10: circles and doubled edges were accepted, k was not used. */
CASE(weakness_f10_graphs_are_checked)
{
    static const char *const bad[] = {"a:b; b:a", "a; b:a,a", "a:a", "a; b:x", "a; a"};
    struct drawn flow;
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        draw(&flow, bad[i]);
        const struct weft_flow_spec spec = {.nodes = flow.node, .node_count = flow.count};
        is_int(engine_flow_submit(f->a, "default", &spec, 1, &flow.answer, &f->err), WEFT_OK, "%s",
               bad[i]);
        is_int(flow.answer.err.rc, WEFT_INVALID_VALUE, "the flow is refused");
    }
    is_int(claim(f, f->a, 1).count, 0, "a refused flow leaves nothing to claim");
    draw(&flow, "a; b; c; q:a,b,c");
    node_of(&flow, "q")->join = WEFT_JOIN_QUORUM;
    node_of(&flow, "q")->k = 2;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srrb", "one success does not reach a quorum of two");
    end_node(f, &flow, "c", true);
    is_str(states(f, &flow), "scsr", "two successes reach a quorum of two");
}

/* F11: flows never ended; members claimed while their flow was being cancelled stayed. (Deep
 * chains, large graphs and the bound of a hop: flowmodel sizes. Results: flow_claim_*.) */
CASE(weakness_f11_flows_end)
{
    struct drawn flow;
    draw(&flow, "a; b; c:a,b");
    node_of(&flow, "c")->join = WEFT_JOIN_ANY;
    node_of(&flow, "c")->on_satisfied = WEFT_ON_SATISFIED_LET_RUN;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", false);
    end_node(f, &flow, "b", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_OPEN, "the flow is open while a member lives");
    end_node(f, &flow, "c", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED,
           "the flow succeeds by its sinks, not by the loser");
    draw(&flow, "a; b:a");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", false);
    is_int(flow_state(f, &flow), WEFT_FLOW_FAILED, "a skipped sink does");
    draw(&flow, "a; b:a");
    submit_drawn(f, &flow);
    cancel_flow(f, &flow, WEFT_FLOW_CANCEL_ALL);
    struct weft_claimed late = claim_node(f, "a"); /* between the mark and the drain */
    is_int(drain(f, &flow), 2, "the drain cancels the late claim as well");
    expect_fenced(f, &late, WEFT_FENCE_CANCELLED);
    is_int(flow_state(f, &flow), WEFT_FLOW_CANCELLED, "the flow is cancelled");
}

/* F12: a member had to be made for its flow before, one by one. */
CASE(weakness_f12_flows_are_submitted_whole)
{
    struct drawn flow;
    draw(&flow, "c:a,b; b:a; a");
    submit_drawn(f, &flow);
    is_str(states(f, &flow), "bbr", "in any order, in one call");
    end_node(f, &flow, "a", true);
    end_node(f, &flow, "b", true);
    end_node(f, &flow, "c", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "the flow succeeds");
}

/* The same: who submits it again hears of the same members, whatever came to it since. */
CASE(weakness_f12_submitted_again)
{
    struct drawn flow;
    struct weft_id again[3] = {{{0}}}, x;
    draw(&flow, "c:a,b; b:a; a");
    flow.answer.node = flow.id;
    const struct weft_flow_spec spec = {.key = "k", .nodes = flow.node, .node_count = flow.count};
    is_int(engine_flow_submit(f->a, "default", &spec, 1, &flow.answer, &f->err), WEFT_OK,
           "submit it");
    weft_clock_set(weft_engine_clock(f->a), f->now_us - 60 * WEFT_SECOND);
    const struct weft_node node = {.name = "x", .spec = {.kind = "x"}};
    is_int(grow(f, &flow, 1, &node, &x), WEFT_OK, "the flow grows by a clock that is behind");
    weft_clock_set(weft_engine_clock(f->a), f->now_us);
    struct weft_flow_submitted answer = {.node = again};
    is_int(engine_flow_submit(f->b, "default", &spec, 1, &answer, &f->err), WEFT_OK,
           "submit it again");
    ok(answer.duplicate && same_id(&answer.id, &flow.answer.id),
       "the duplicate has the id of the first");
    for (size_t i = 0; i < flow.count; i++)
        ok(same_id(&again[i], &flow.id[i]), "%s is who it was", flow.node[i].name);
}
