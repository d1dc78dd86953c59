/* SPDX-License-Identifier: Apache-2.0 */

/* Replays of members of flows: what comes back with them, and what stays. */

#include "flows.h"

static void replay(struct fixture *f, const struct drawn *flow, const char *name)
{
    struct weft_steered answer = steer_id(f, WEFT_STEER_REPLAY, id_of(flow, name));
    is_int(answer.err.rc, WEFT_OK, "replay %s", name);
    is_int(answer.state, WEFT_STATE_READY, "%s is ready", name);
}

CASE(flow_replay_brings_back_what_was_skipped)
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
    is_str(states(f, &flow), "srbbsr", "and goes on");
    end_node(f, &flow, "b", true);
    end_node(f, &flow, "c", true);
    end_node(f, &flow, "d", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_OPEN, "not before its last member has ended");
    end_node(f, &flow, "y", true);
    is_str(states(f, &flow), "ssssss", "to the end");
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "the flow has succeeded now");
}

CASE(flow_replay_that_fails_again)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    for (int round = 0; round < 3; round++) {
        end_node(f, &flow, "a", false);
        is_str(states(f, &flow), "fkk", "skipped");
        is_int(flow_state(f, &flow), WEFT_FLOW_FAILED, "failed");
        replay(f, &flow, "a");
        is_str(states(f, &flow), "rbb", "blocked");
    }
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srb", "until it succeeds");
}

CASE(flow_replay_before_the_cascade)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    leave_completions(f->a);
    struct weft_claimed lease = claim_node(f, "a");
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true});
    is_str(states(f, &flow), "fbb", "its completion is in the outbox");
    replay(f, &flow, "a");
    cascade(f, f->b, &flow);
    is_str(states(f, &flow), "rbb", "nothing is skipped for an end that is no end any more");

    lease = claim_node(f, "a");
    (void)complete(f, f->a, &lease, "1");
    replay(f, &flow, "a");
    lease = claim_node(f, "a");
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true});
    cascade(f, f->b, &flow);
    is_str(states(f, &flow), "fkk", "of many ends the last one counts");
    is_int(flow_state(f, &flow), WEFT_FLOW_FAILED, "the flow has failed");
}

CASE(flow_replay_of_what_fed_a_join_that_fired)
{
    struct drawn flow;
    draw(&flow, "a; b; c:a,b; d:c");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "ssrb", "c may begin");
    replay(f, &flow, "a");
    is_str(states(f, &flow), "rsrb", "and may still");
    struct weft_claimed running = claim_node(f, "c");
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "fsRb", "what it comes to the second time disturbs nobody");
    is_int(complete(f, f->a, &running, "1").err.rc, WEFT_OK, "c has its lease");
    end_node(f, &flow, "d", true);
    is_str(states(f, &flow), "fsss", "the end");
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "every sink has succeeded");
}

CASE(flow_replay_of_a_skipped_member)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b; d:b,a");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "fkkk", "skipped");
    replay(f, &flow, "b");
    is_str(states(f, &flow), "frbk", "b begins all the same; d cannot be had without a");
    cascade(f, f->b, &flow);
    is_str(states(f, &flow), "frbk", "nobody skips it again");
    replay(f, &flow, "a");
    is_str(states(f, &flow), "rrbb", "now d may come");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srbb", "b does not begin twice");
    end_node(f, &flow, "b", true);
    is_str(states(f, &flow), "ssrr", "c and d");
    end_node(f, &flow, "c", true);
    end_node(f, &flow, "d", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "the flow has succeeded");
}

CASE(flow_replay_of_one_that_was_cancelled_while_it_waited)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    (void)steer_id(f, WEFT_STEER_CANCEL, id_of(&flow, "b"));
    is_str(states(f, &flow), "rck", "c cannot begin");
    replay(f, &flow, "b");
    is_str(states(f, &flow), "rrb", "b does not wait for a");
    end_node(f, &flow, "b", true);
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "fsr", "nor does it care how a ends");
}

CASE(flow_replay_in_a_cancelled_flow)
{
    struct drawn flow;
    draw(&flow, "a; b:a");
    submit_drawn(f, &flow);
    const struct weft_flow_cancelling all = {
        .ns = "default", .flow = flow.answer.id, .how = WEFT_FLOW_CANCEL_ALL, .reason = "enough"};
    enum weft_flow_state state;
    struct weft_flow_drain drain;
    is_int(weft_engine_flow_cancel_now(f->a, &all, &state, &drain, &f->err), WEFT_OK,
           "cancel the flow");
    is_int(flow_state(f, &flow), WEFT_FLOW_CANCELLED, "it is cancelled");
    replay(f, &flow, "a");
    is_str(states(f, &flow), "rc", "what is replayed runs");
    is_int(flow_state(f, &flow), WEFT_FLOW_OPEN, "the flow waits for it");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "sc", "nothing else begins");
    is_int(flow_state(f, &flow), WEFT_FLOW_CANCELLED, "cancelled as before");
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
    is_int(weft_engine_flow_cancel(f->a, &away, &state, &f->err), WEFT_OK, "delete the flow");
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
    is_int(weft_engine_steer(f->a, &steering, answer, &f->err), WEFT_OK, "replay them together");
    for (size_t i = 0; i < WEFT_LEN(item); i++)
        is_int(answer[i].err.rc, WEFT_OK, "%zu is replayed", i);
    is_str(states(f, &one), "rrb", "two of the one flow, and what comes after");
    is_str(states(f, &two), "rr", "two of the other");
    is_int(state_of(f, &plain), WEFT_STATE_READY, "and one of none");
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
    is_str(states(f, &flow), "rrrbb", "no group speaks for a join that is about to open");
    end_node(f, &flow, "a", true);
    end_node(f, &flow, "b", true);
    end_node(f, &flow, "c", true);
    is_str(states(f, &flow), "sssrr", "d may begin");
}

CASE(flow_replay_that_is_felt_in_two_hops)
{
    struct drawn flow;
    leave_group(f, &flow, "a; b; c; x:a; d:b,c,x; e:c");
    is_str(states(f, &flow), "fcrkkb", "d is skipped, b is cancelled, c feeds e");
    replay(f, &flow, "a");
    replay(f, &flow, "b");
    cascade(f, f->b, &flow);
    is_str(states(f, &flow), "rrrbbb", "b waits until d has heard that x is back");
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "fcrkkb", "and goes when d is out of reach again");
    is_str(describe(f, id_of(&flow, "b")).reason, "sibling_quorum_impossible", "with the reason");
}
