/* SPDX-License-Identifier: Apache-2.0 */

/* Replays of flow members: which nodes come back with them, and which stay as they are. */

#include "direct.h"
#include "flows.h"

#include "engine/flow/cascade_read.h"
#include "engine/flow/flow.h"
#include "engine/job/control.h"
#include "weft/weft.h"

static void replay_to(struct fixture *f, const struct drawn *flow, const char *name,
                      enum weft_state state)
{
    struct weft_steered answer = steer_id(f, WEFT_STEER_REPLAY, id_of(flow, name));
    is_int(answer.err.rc, WEFT_OK, "replay %s", name);
    is_str(weft_state_name(answer.state), weft_state_name(state), "%s after its replay", name);
}

static void replay(struct fixture *f, const struct drawn *flow, const char *name)
{
    replay_to(f, flow, name, WEFT_STATE_READY);
}

/* A replay that an upstream stands in the way of, and that is forced then. */
static void replay_by_force(struct fixture *f, const struct drawn *flow, const char *name,
                            const char *because)
{
    struct weft_steered answer = steer_id(f, WEFT_STEER_REPLAY, id_of(flow, name));
    expect_err(&answer.err, WEFT_CONFLICT, "id", "an upstream stands in the way");
    ok(strstr(answer.err.text, because) != NULL, "the answer names %s: %s", because,
       answer.err.text);
    ok(answer.err.hint && strstr(answer.err.hint, "force"), "the hint says what to do");
    const struct weft_steer item = {.id = *id_of(flow, name), .force = true};
    const struct weft_steering steering = {
        .kind = WEFT_STEER_REPLAY, .ns = "default", .item = &item, .count = 1};
    is_int(engine_steer(f->a, &steering, &answer, &f->err), WEFT_OK, "replay %s by force", name);
    is_int(answer.state, WEFT_STATE_READY, "%s is ready", name);
}

static void cancel_all(struct fixture *f, const struct weft_id *flow)
{
    const struct weft_flow_cancelling all = {
        .ns = "default", .flow = *flow, .how = WEFT_FLOW_CANCEL_ALL, .reason = "enough"};
    enum weft_flow_state state;
    struct weft_flow_drain drain;
    is_int(weft_engine_flow_cancel(f->a, &all, &state, &drain, &f->err), WEFT_OK,
           "cancel the flow");
    while (drain.more && !f->err.rc)
        is_int(weft_engine_flow_drain(f->a, &drain, &f->err), WEFT_OK, "drain it");
}

static struct weft_sweep replay_flow(struct fixture *f, const struct weft_id *flow, bool force)
{
    const struct weft_steer_all args = {
        .kind = WEFT_STEER_REPLAY, .filter = {.ns = "default", .flow = *flow}, .force = force};
    struct weft_sweep sweep = {0};
    is_int(weft_engine_steer_all(f->a, &args, &sweep, &f->err), WEFT_OK, "replay by filter");
    return sweep;
}

/* ---- Dependencies ---------------------------------------------------------------------------- */

CASE(flow_replay_of_a_cancelled_chain)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    cancel_all(f, &flow.answer.id);
    is_str(states(f, &flow), "ccc", "all are cancelled");
    is_int(replay_flow(f, &flow.answer.id, false).changed, 3, "all are replayed");
    is_str(states(f, &flow), "rbb", "each waits for its upstream");
    end_node(f, &flow, "a", true);
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "ssr", "joins begin replayed members, also in a cancelled flow");
    end_node(f, &flow, "c", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_CANCELLED, "the flow is cancelled as before");
}

CASE(flow_replay_of_a_chain_whose_members_were_cancelled)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    (void)steer_id(f, WEFT_STEER_CANCEL, id_of(&flow, "c"));
    (void)steer_id(f, WEFT_STEER_CANCEL, id_of(&flow, "b"));
    (void)steer_id(f, WEFT_STEER_CANCEL, id_of(&flow, "a"));
    is_int(replay_flow(f, &flow.answer.id, false).changed, 3, "all are replayed");
    is_str(states(f, &flow), "rbb", "each waits for its upstream");
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "fkk", "a failure skips the members replayed with it");
    replay(f, &flow, "a");
    end_node(f, &flow, "a", true);
    end_node(f, &flow, "b", true);
    end_node(f, &flow, "c", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "the flow has succeeded");
}

CASE(flow_replay_together_with_an_upstream_that_succeeded)
{
    struct drawn flow;
    draw(&flow, "a; x; b:a; d:a,x");
    node_of(&flow, "d")->join = WEFT_JOIN_ANY;
    node_of(&flow, "d")->on_satisfied = WEFT_ON_SATISFIED_LET_RUN;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    end_node(f, &flow, "x", true);
    end_node(f, &flow, "b", false);
    end_node(f, &flow, "d", false);
    const struct weft_steer item[] = {{.id = flow.id[0]}, {.id = flow.id[2]}, {.id = flow.id[3]}};
    struct weft_steered answer[WEFT_LEN(item)];
    const struct weft_steering steering = {
        .kind = WEFT_STEER_REPLAY, .ns = "default", .item = item, .count = WEFT_LEN(item)};
    is_int(engine_steer(f->a, &steering, answer, &f->err), WEFT_OK, "replay a, b and d");
    is_str(states(f, &flow), "rsbr", "b waits for a; d has the result of x");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "ssrr", "b begins with the new result");
}

CASE(flow_replay_that_upstreams_stand_in_the_way_of)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "fkk", "the nodes after the failed a are skipped");
    const struct weft_steer item[] = {{.id = flow.id[1]}, {.id = flow.id[2]}};
    struct weft_steered answer[WEFT_LEN(item)];
    const struct weft_steering steering = {
        .kind = WEFT_STEER_REPLAY, .ns = "default", .item = item, .count = WEFT_LEN(item)};
    is_int(engine_steer(f->a, &steering, answer, &f->err), WEFT_OK, "replay b and c");
    expect_err(&answer[0].err, WEFT_CONFLICT, "id", "b cannot begin without a");
    expect_err(&answer[1].err, WEFT_CONFLICT, "id",
               "c cannot begin without b, whose replay is refused");
    ok(strstr(answer[1].err.text, "'b' is skipped") != NULL, "%s", answer[1].err.text);
    is_str(states(f, &flow), "fkk", "a refused replay changes no node");
    replay_by_force(f, &flow, "b", "'a' is failed");
    is_str(states(f, &flow), "frb", "b runs, and c waits for it");
    end_node(f, &flow, "b", true);
    end_node(f, &flow, "c", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "every sink has succeeded");
}

CASE(flow_replay_in_a_flow_that_is_cancelled_again)
{
    struct drawn flow;
    draw(&flow, "a; b:a");
    submit_drawn(f, &flow);
    cancel_all(f, &flow.answer.id);
    (void)replay_flow(f, &flow.answer.id, false);
    struct weft_claimed lease = claim_node(f, "a");
    const struct weft_flow_cancelling only = {
        .ns = "default", .flow = flow.answer.id, .how = WEFT_FLOW_CANCEL_ONLY};
    enum weft_flow_state state;
    is_int(weft_engine_flow_cancel(f->a, &only, &state, NULL, &f->err), WEFT_OK, "cancel it again");
    (void)complete(f, f->a, &lease, "1");
    is_str(states(f, &flow), "sc", "the second cancel includes a member replayed before it");
}

CASE(flow_replay_of_a_sibling)
{
    struct drawn flow;
    draw(&flow, "a; b; c; d:a,b,c; e:c");
    node_of(&flow, "d")->join = WEFT_JOIN_ANY;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "scrrb", "b is cancelled, the group of d waits for c");
    replay(f, &flow, "b");
    cascade(f, f->b, &flow);
    is_str(states(f, &flow), "srrrb", "a sibling that is replayed runs");
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "ssrrb", "the replayed sibling succeeds");
}

/* Each node comes after the one behind it: ids are in the order of submission, edges are not. */
CASE(flow_replay_of_many_against_the_order_of_ids)
{
    enum { MANY = 2 * WEFT_FLOW_CHUNK + 300 };
    struct many many;
    many_new(f, &many, MANY);
    for (size_t i = 0; i + 1 < MANY; i++)
        many_after(&many, i, i + 1, 1);
    many_submit(f, &many);
    cancel_all(f, &many.answer.id);
    is_int(many_in(f, &many, WEFT_STATE_CANCELLED), MANY, "all are cancelled");
    struct weft_sweep sweep = replay_flow(f, &many.answer.id, false);
    is_int(sweep.matched, MANY, "the sweep matches all members");
    is_int(sweep.changed, MANY, "all are replayed");
    is_int(many_in(f, &many, WEFT_STATE_BLOCKED), MANY - 1, "all but the root wait");
    is_int(many_in(f, &many, WEFT_STATE_READY), 1, "the root is ready");
}

/* Follows the cursors; says how often, and adds up. */
static size_t replay_in_portions(struct fixture *f, const struct weft_steer_all *given,
                                 struct weft_sweep *ret_sum)
{
    struct weft_steer_all args = *given;
    struct weft_sweep part = {.more = true};
    char next[WEFT_CURSOR_TEXT];
    size_t calls = 0;
    *ret_sum = (struct weft_sweep){0};
    while (part.more && calls < 100) {
        is_int(weft_engine_steer_all(f->a, &args, &part, &f->err), WEFT_OK, "a portion");
        ret_sum->matched += part.matched;
        ret_sum->changed += part.changed;
        memcpy(next, part.next, sizeof(next));
        args.after = next;
        calls++;
    }
    return calls;
}

/* The chain is longer than a call: its newest members come first, and their upstreams later. */
CASE(flow_replay_in_portions)
{
    enum { MANY = 100, PORTION = 25 };
    struct many many;
    struct weft_sweep sum;
    many_new(f, &many, MANY);
    for (size_t i = 1; i < MANY; i++)
        many_after(&many, i, i - 1, 1);
    many_submit(f, &many);
    cancel_all(f, &many.answer.id);
    struct weft_steer_all args = {.kind = WEFT_STEER_REPLAY,
                                  .filter = {.ns = "default", .flow = many.answer.id},
                                  .max = PORTION};
    size_t calls = replay_in_portions(f, &args, &sum);
    is_int(sum.matched, MANY, "each member is counted once");
    is_int(sum.changed, MANY, "each member is replayed once");
    is_int(many_in(f, &many, WEFT_STATE_BLOCKED), MANY - 1, "all but the root wait");
    is_int(many_in(f, &many, WEFT_STATE_READY), 1, "the root is ready");
    ok(calls <= 4 + 3 + 2 + 1 + 4, "each pass brings a portion back, in %zu calls", calls);
}

/* Members whose upstream the filter does not fit stay refused, and the cursors come to an end. */
CASE(flow_replay_in_portions_without_their_upstream)
{
    enum { MANY = 60, PORTION = 10 };
    struct many many;
    struct weft_sweep sum;
    many_new(f, &many, MANY);
    for (size_t i = 1; i < MANY / 2; i++)
        many_after(&many, i, 0, 1);
    many_submit(f, &many);
    cancel_all(f, &many.answer.id);
    forward_ms(f, 1000);
    /* A root of the other half ends once more, later than the filter allows. */
    struct weft_steered answer = steer_id(f, WEFT_STEER_REPLAY, &many.answer.node[0]);
    is_int(answer.err.rc, WEFT_OK, "replay the root");
    answer = steer_id(f, WEFT_STEER_CANCEL, &many.answer.node[0]);
    is_int(answer.err.rc, WEFT_OK, "cancel the root again");
    struct weft_steer_all args = {.kind = WEFT_STEER_REPLAY,
                                  .filter = {.ns = "default",
                                             .flow = many.answer.id,
                                             .state = WEFT_STATE_CANCELLED,
                                             .finished_until_us = f->now_us},
                                  .max = PORTION};
    size_t calls = replay_in_portions(f, &args, &sum);
    is_int(sum.changed, MANY / 2, "replay changes the members without upstreams");
    ok(calls < 20, "the cursors end after %zu calls", calls);
    is_int(many_in(f, &many, WEFT_STATE_READY), MANY / 2, "the replayed members are ready");
    args.after = "0.9.x";
    is_int(weft_engine_steer_all(f->a, &args, &sum, &f->err), WEFT_INVALID_VALUE,
           "a cursor that is none");
}

/* ---- What comes back ------------------------------------------------------------------------- */

CASE(flow_replay_brings_back_skipped_nodes)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b; d:c; x; y:a,x");
    submit_drawn(f, &flow);
    end_node(f, &flow, "x", true);
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "fkkksk", "all behind it is skipped");
    is_int(flow_state(f, &flow), WEFT_FLOW_FAILED, "the flow has failed");

    replay(f, &flow, "a");
    is_str(states(f, &flow), "rbbbsb", "all of it waits again");
    is_int(flow_state(f, &flow), WEFT_FLOW_OPEN, "the flow is open");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srbbsr", "the nodes after a go on when a has succeeded");
    end_node(f, &flow, "b", true);
    end_node(f, &flow, "c", true);
    end_node(f, &flow, "d", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_OPEN,
           "the flow stays open until its last member has ended");
    end_node(f, &flow, "y", true);
    is_str(states(f, &flow), "ssssss", "all members have succeeded");
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "the flow has succeeded now");
}

CASE(flow_replay_that_fails_again)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    for (int round = 0; round < 3; round++) {
        end_node(f, &flow, "a", false);
        is_str(states(f, &flow), "fkk", "the nodes after the failed a are skipped");
        is_int(flow_state(f, &flow), WEFT_FLOW_FAILED, "the flow has failed");
        replay(f, &flow, "a");
        is_str(states(f, &flow), "rbb", "the replay of a blocks the nodes after it");
    }
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srb", "b is ready when a succeeds");
}

CASE(flow_replay_before_the_cascade)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    leave_completions(f->a);
    struct weft_claimed lease = claim_node(f, "a");
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true});
    is_str(states(f, &flow), "fbb", "the nodes after a wait: its completion is in the outbox");
    replay(f, &flow, "a");
    cascade(f, f->b, &flow);
    is_str(states(f, &flow), "rbb", "the end before the replay skips no node");

    lease = claim_node(f, "a");
    (void)complete(f, f->a, &lease, "1");
    replay(f, &flow, "a");
    lease = claim_node(f, "a");
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true});
    cascade(f, f->b, &flow);
    is_str(states(f, &flow), "frb", "b has begun: the first end was looked at before the replay");
}

CASE(flow_replay_of_an_upstream_of_a_fired_join)
{
    struct drawn flow;
    draw(&flow, "a; b; c:a,b; d:c");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "ssrb", "c may begin");
    replay(f, &flow, "a");
    is_str(states(f, &flow), "rsrb", "c stays ready when a is replayed");
    struct weft_claimed running = claim_node(f, "c");
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "fsRb", "the second end of a leaves the running node alone");
    is_int(complete(f, f->a, &running, "1").err.rc, WEFT_OK, "c has its lease");
    end_node(f, &flow, "d", true);
    is_str(states(f, &flow), "fsss", "all but a have succeeded");
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "every sink has succeeded");
}

CASE(flow_replay_of_a_skipped_member)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b; d:b,a");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "fkkk", "all nodes after the failed a are skipped");
    replay_by_force(f, &flow, "b", "'a' is failed");
    is_str(states(f, &flow), "frbk", "b begins all the same; d cannot be had without a");
    cascade(f, f->b, &flow);
    is_str(states(f, &flow), "frbk", "a further cascade leaves d skipped");
    replay(f, &flow, "a");
    is_str(states(f, &flow), "rrbb", "the replay of a brings d back");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srbb", "b does not begin twice");
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "ssrr", "c and d");
    end_node(f, &flow, "c", true);
    end_node(f, &flow, "d", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "the flow has succeeded");
}

CASE(flow_replay_of_a_member_cancelled_while_blocked)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    (void)steer_id(f, WEFT_STEER_CANCEL, id_of(&flow, "b"));
    is_str(states(f, &flow), "rck", "c cannot begin");
    replay_to(f, &flow, "b", WEFT_STATE_BLOCKED);
    is_str(states(f, &flow), "rbb", "b waits for a, which lives");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srb", "b becomes ready when a has succeeded");
}

CASE(flow_replay_in_a_cancelled_flow)
{
    struct drawn flow;
    draw(&flow, "a; b:a");
    submit_drawn(f, &flow);
    cancel_all(f, &flow.answer.id);
    is_int(flow_state(f, &flow), WEFT_FLOW_CANCELLED, "the flow is cancelled");
    replay(f, &flow, "a");
    is_str(states(f, &flow), "rc", "the replayed node is ready");
    is_int(flow_state(f, &flow), WEFT_FLOW_OPEN, "the flow waits for it");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "sc", "no other node begins");
    is_int(flow_state(f, &flow), WEFT_FLOW_CANCELLED, "the flow is cancelled as before");
}

CASE(flow_replay_in_a_deleted_flow)
{
    struct drawn flow;
    draw(&flow, "a");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    const struct weft_flow_cancelling away = {
        .ns = "default", .flow = flow.answer.id, .how = WEFT_FLOW_CANCEL_ALL, .remove = true};
    enum weft_flow_state state;
    is_int(weft_engine_flow_cancel(f->a, &away, &state, NULL, &f->err), WEFT_OK, "delete the flow");
    struct weft_steered answer = steer_id(f, WEFT_STEER_REPLAY, id_of(&flow, "a"));
    expect_err(&answer.err, WEFT_NOT_LIVE, "id", "its members stay as they are");
}

CASE(flow_replay_of_many_at_once)
{
    struct drawn one, two;
    draw(&one, "a; b:a; c:b");
    draw(&two, "p; q:p");
    submit_drawn(f, &one);
    submit_drawn(f, &two);
    struct weft_id plain = submit_job(f);
    (void)steer_id(f, WEFT_STEER_CANCEL, &plain);
    end_node(f, &one, "a", false);
    end_node(f, &two, "p", false);
    struct weft_steer item[] = {
        {.id = two.id[0]}, {.id = plain}, {.id = one.id[0]}, {.id = one.id[1]}, {.id = two.id[1]}};
    struct weft_steered answer[WEFT_LEN(item)];
    const struct weft_steering steering = {
        .kind = WEFT_STEER_REPLAY, .ns = "default", .item = item, .count = WEFT_LEN(item)};
    is_int(engine_steer(f->a, &steering, answer, &f->err), WEFT_OK, "replay them together");
    for (size_t i = 0; i < WEFT_LEN(item); i++)
        is_int(answer[i].err.rc, WEFT_OK, "%zu is replayed", i);
    is_str(states(f, &one), "rbb", "first flow: two replayed nodes and the node behind them");
    is_str(states(f, &two), "rb", "second flow: two replayed nodes");
    is_int(state_of(f, &plain), WEFT_STATE_READY, "the execution without a flow is ready");
}

/* a fails, so d cannot be had and wants b and c gone; c feeds e, so the group of d waits for it. */
static void leave_group(struct fixture *f, struct drawn *flow, const char *text)
{
    draw(flow, text);
    node_of(flow, "d")->on_satisfied = WEFT_ON_SATISFIED_CANCEL_REMAINING;
    submit_drawn(f, flow);
    end_node(f, flow, "a", false);
    leave_completions(f->a);
    leave_completions(f->b);
}

CASE(flow_replay_before_the_siblings_of_a_join_that_comes_back)
{
    struct drawn flow;
    leave_group(f, &flow, "a; b; c; d:a,b,c; e:c");
    is_str(states(f, &flow), "fcrkb", "d is skipped, b is cancelled, c feeds e");
    replay(f, &flow, "a");
    replay(f, &flow, "b");
    forward_ms(f, 1000);
    (void)run_pass(f, f->b, WEFT_SCANNER_EDGE_CANCEL_DISPATCHER);
    cascade(f, f->b, &flow);
    is_str(states(f, &flow), "rrrbb", "no group speaks for a join that is about to open");
    end_node(f, &flow, "a", true);
    end_node(f, &flow, "b", true);
    end_node(f, &flow, "c", true);
    is_str(states(f, &flow), "sssrr", "d may begin");
}

CASE(flow_replay_that_propagates_in_two_hops)
{
    struct drawn flow;
    leave_group(f, &flow, "a; b; c; x:a; d:b,c,x; e:c");
    is_str(states(f, &flow), "fcrkkb", "d is skipped, b is cancelled, c feeds e");
    replay(f, &flow, "a");
    replay(f, &flow, "b");
    cascade(f, f->b, &flow);
    is_str(states(f, &flow), "rrrbbb", "b waits until d has heard that x is back");
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "fcrkkb", "b becomes ready when d is out of reach again");
    is_str(describe(f, id_of(&flow, "b")).reason, "sibling_quorum_impossible",
           "b has the reason of the impossible join");
}
