/* SPDX-License-Identifier: Apache-2.0 */

/* Flows that are cancelled, and siblings of joins that are decided: small, and by the thousand. */

#include "direct.h"
#include "flows.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/flow/cascade_read.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "engine/tx/commit_effects.h"
#include "weft/weft.h"

static void cancel_flow(struct fixture *f, const struct weft_id *flow, enum weft_flow_cancel how)
{
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = *flow, .how = how, .reason = "enough"};
    enum weft_flow_state state;
    is_int(weft_engine_flow_cancel(f->a, &args, &state, NULL, &f->err), WEFT_OK, "cancel the flow");
}

/* ---- Joins of a cancelled flow --------------------------------------------------------------- */

static void fail_in_a_cancelled_flow(struct fixture *f, enum weft_flow_cancel how)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:b; d:a,c");
    submit_drawn(f, &flow);
    struct weft_claimed lease = claim_node(f, "a");
    cancel_flow(f, &flow.answer.id, how);
    is_str(states(f, &flow), "Rbbb", "cancelled by %d, the members are not drained yet", how);
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true});
    is_str(states(f, &flow), "fccc", "a node that cannot begin any more is cancelled, not skipped");
    is_str(describe(f, id_of(&flow, "d")).reason, "enough",
           "the cancelled node has the reason of the flow");
    is_int(flow_state(f, &flow), WEFT_FLOW_CANCELLED, "the flow is cancelled");
}

CASE(flow_cancelled_joins)
{
    fail_in_a_cancelled_flow(f, WEFT_FLOW_CANCEL_ALL);
    fail_in_a_cancelled_flow(f, WEFT_FLOW_CANCEL_PENDING);
    fail_in_a_cancelled_flow(f, WEFT_FLOW_CANCEL_ONLY);
}

/* ---- A flow that is over --------------------------------------------------------------------- */

/* The last member ends through engine a, which dies before its cascade. */
static void end_last(struct fixture *f, struct drawn *flow, const char *text, bool good)
{
    draw(flow, text);
    submit_drawn(f, flow);
    weft_engine_on_flows(f->a, NULL, NULL);
    for (size_t i = 0; i + 1 < flow->count && good; i++)
        end_node(f, flow, flow->node[i].name, true);
    leave_completions(f->a);
    struct weft_claimed lease = claim_node(f, flow->node[good ? flow->count - 1 : 0].name);
    if (good)
        (void)complete(f, f->a, &lease, "1");
    else
        (void)fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true});
    is_int(flow_state(f, flow), WEFT_FLOW_OPEN, "no hop has looked at the end");
}

static enum weft_rc cancel_over(struct fixture *f, const struct drawn *flow, bool remove)
{
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = flow->answer.id, .how = WEFT_FLOW_CANCEL_ALL, .remove = remove};
    enum weft_flow_state state;
    struct weft_flow_drain drain;
    struct weft_err err = {0};
    enum weft_rc rc = weft_engine_flow_cancel(f->b, &args, &state, &drain, &err);
    if (!rc && remove)
        is_int(state, WEFT_FLOW_SUCCEEDED, "a delete finds how the flow ended");
    return rc;
}

CASE(flow_that_is_over_cannot_be_cancelled)
{
    struct drawn flow;
    end_last(f, &flow, "a; b:a", true);
    is_int(cancel_over(f, &flow, false), WEFT_NOT_LIVE, "cancel after the last end");
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "the flow has succeeded");

    end_last(f, &flow, "a; b:a; c:b", false);
    is_int(cancel_over(f, &flow, false), WEFT_NOT_LIVE, "cancel after a failure that skips all");
    is_str(states(f, &flow), "fkk", "the others are skipped, not cancelled");
    is_int(flow_state(f, &flow), WEFT_FLOW_FAILED, "the flow has failed");

    end_last(f, &flow, "a", true);
    is_int(cancel_over(f, &flow, true), WEFT_OK, "delete after the last end");
}

CASE(flow_that_is_over_does_not_grow)
{
    struct drawn flow;
    end_last(f, &flow, "a; b:a", true);
    const struct weft_node node = {.name = "x", .spec = {.kind = "x"}};
    struct weft_id id;
    struct weft_flow_submitted answer = {.node = &id};
    struct weft_err err = {0};
    const struct weft_flow_growth growth = {
        .ns = "default", .flow = flow.answer.id, .revision = 1, .nodes = &node, .node_count = 1};
    is_int(engine_flow_grow(f->b, &growth, &answer, &err), WEFT_NOT_LIVE,
           "grow after the last end");
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "the flow has succeeded");
}

CASE(flow_that_is_over_is_read_so)
{
    struct drawn flow;
    end_last(f, &flow, "a; b:a", true);
    const struct weft_flow_asking asking = {.ns = "default", .flow = flow.answer.id};
    struct weft_flow_page page = {0};
    is_int(weft_engine_flow(f->b, &asking, f->arena, &page, &f->err), WEFT_OK, "read the flow");
    is_int(page.flow.state, WEFT_FLOW_SUCCEEDED, "the read ends it first");
}

/* ---- Many ------------------------------------------------------------------------------------ */

CASE(flow_cancel_all_of_many)
{
    enum { MANY = 3 * WEFT_FLOW_CHUNK + 7 };
    struct many many;
    many_new(f, &many, MANY);
    for (size_t i = 1; i < MANY; i++)
        many_after(&many, i, i < MANY / 2 ? 0 : i - 1, 1);
    many_submit(f, &many);
    cancel_flow(f, &many.answer.id, WEFT_FLOW_CANCEL_ALL);
    struct weft_flow_drain drain = {.flow = many.answer.id, .wait = true, .more = true};
    for (int round = 0; round < MANY && drain.more && !f->err.rc; round++)
        is_int(weft_engine_flow_drain(f->a, &drain, &f->err), WEFT_OK, "drain it");
    is_int(drain.cancelled_now, MANY, "the drain counts members that it or the cascade cancelled");
    is_int(many_in(f, &many, WEFT_STATE_CANCELLED), MANY, "all members are cancelled");
    is_int(many_in(f, &many, WEFT_STATE_SKIPPED), 0, "no member is skipped");
}

/* ---- Siblings -------------------------------------------------------------------------------- */

CASE(flow_siblings_spared_for_a_member_that_ends)
{
    struct drawn flow;
    draw(&flow, "a; b; c; d:a,b,c; e:c");
    node_of(&flow, "d")->join = WEFT_JOIN_ANY;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "scrrb", "c is spared for e");
    (void)steer_id(f, WEFT_STEER_CANCEL, id_of(&flow, "e"));
    is_str(states(f, &flow), "sccrc", "the cancel of e wakes the group of d, which cancels c");
    is_str(describe(f, id_of(&flow, "c")).reason, "sibling_quorum_satisfied",
           "c has the reason of the sibling cancel");
}

CASE(flow_siblings_spared_for_a_member_that_expires)
{
    struct drawn flow;
    draw(&flow, "a; b; c; d:a,b,c; e:c");
    node_of(&flow, "d")->join = WEFT_JOIN_ANY;
    node_of(&flow, "e")->spec.deadline_us = f->now_us + WEFT_SECOND;
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    forward_ms(f, 2000);
    (void)run_pass(f, f->b, WEFT_SCANNER_EXECUTION_DEADLINE);
    is_str(states(f, &flow), "sccre", "e expires while it waits, and c goes with the group of d");
}

/* a, u; C comes after both, D after either. */
static void draw_race(struct fixture *f, struct drawn *flow)
{
    draw(flow, "a; u; c:a,u; d:a,u");
    node_of(flow, "d")->join = WEFT_JOIN_ANY;
    submit_drawn(f, flow);
}

CASE(flow_siblings_of_a_join_whose_member_has_ended)
{
    struct drawn flow;
    draw_race(f, &flow);
    struct weft_claimed a = claim_node(f, "a"), u = claim_node(f, "u");
    (void)steer_id(f, WEFT_STEER_CANCEL, id_of(&flow, "c"));
    is_int(complete(f, f->a, &a, "1").err.rc, WEFT_OK, "a succeeds");
    is_str(states(f, &flow), "sccr", "u is not spared for c, which was cancelled");
    is_int(complete(f, f->a, &u, "1").err.rc, WEFT_FENCED, "u has lost its lease");
}

/* ---- Siblings in a cancelled flow ------------------------------------------------------------ */

static void race_in_a_cancelled_flow(struct fixture *f, enum weft_flow_cancel how)
{
    struct drawn flow;
    draw(&flow, "a; u; w; d:a,u,w");
    node_of(&flow, "d")->join = WEFT_JOIN_ANY;
    submit_drawn(f, &flow);
    struct weft_claimed a = claim_node(f, "a"), u = claim_node(f, "u");
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = flow.answer.id, .how = how, .reason = "enough"};
    enum weft_flow_state state;
    struct weft_flow_drain drain;
    is_int(weft_engine_flow_cancel(f->a, &args, &state, &drain, &f->err), WEFT_OK,
           "cancel the flow by %d", how);
    is_int(complete(f, f->a, &a, "1").err.rc, WEFT_OK, "a succeeds");
    is_str(states(f, &flow), "sRcc", "u runs on; w, which does not run, is cancelled");
    is_int(complete(f, f->a, &u, "2").err.rc, WEFT_OK, "the result of u stands");
    is_str(states(f, &flow), "sscc", "both have succeeded");
    is_int(flow_state(f, &flow), WEFT_FLOW_CANCELLED, "the flow is cancelled");
}

CASE(flow_siblings_that_run_in_a_cancelled_flow)
{
    race_in_a_cancelled_flow(f, WEFT_FLOW_CANCEL_PENDING);
    race_in_a_cancelled_flow(f, WEFT_FLOW_CANCEL_ONLY);
}

/* The siblings of more than one chunk, of which the first feeds another join as well. */
CASE(flow_siblings_of_many_chunks)
{
    enum { MANY = 2 * WEFT_FLOW_CHUNK + 500, WINNER = MANY, JOIN, OTHER, NODES };
    struct many many;
    many_new(f, &many, NODES);
    many.node[WINNER].spec.kind = "winner";
    many_after(&many, JOIN, 0, MANY + 1);
    many.node[JOIN].join = WEFT_JOIN_ANY;
    many_after(&many, OTHER, 0, 1);
    many_submit(f, &many);
    struct weft_claimed lease = claim_node(f, "winner");
    (void)complete(f, f->a, &lease, "1");
    is_int(many_in(f, &many, WEFT_STATE_CANCELLED), MANY - 1, "the siblings are cancelled");
    is_int(state_of(f, &many.answer.node[0]), WEFT_STATE_READY,
           "a sibling that another join still needs stays ready");
    (void)steer_id(f, WEFT_STEER_CANCEL, &many.answer.node[OTHER]);
    is_int(state_of(f, &many.answer.node[0]), WEFT_STATE_CANCELLED,
           "the sibling is cancelled when the other join is gone");
}

/* The time is for people to read: the bound is what a loaded machine keeps. */
CASE(flow_siblings_that_run)
{
    enum { MANY = 1000, WINNER = MANY, JOIN, NODES };
    struct many many;
    many_new(f, &many, NODES);
    many.node[WINNER].spec.kind = "winner";
    many.node[JOIN].join = WEFT_JOIN_ANY;
    many_after(&many, JOIN, 0, MANY + 1);
    many_submit(f, &many);
    struct weft_claimed winner = claim_node(f, "winner");
    const char *const kind[] = {"sibling"};
    const struct weft_claim args = {
        .worker = "worker-a", .kinds = kind, .kind_count = 1, .max = MANY, .lease_ms = 60000};
    struct weft_claim_result got = claim_with(f, f->a, &args);
    is_int(got.count, MANY, "all members run");

    weft_usec begun_us = weft_boot_us();
    (void)complete(f, f->a, &winner, "1"); /* and the cascade, in this thread */
    weft_usec took_us = weft_boot_us() - begun_us;
    printf("# %d running siblings: %.1f ms\n", MANY, (double)took_us / WEFT_MS);
    ok(took_us < 20 * WEFT_SECOND, "one wins, in time");
    is_int(many_in(f, &many, WEFT_STATE_CANCELLED), MANY, "the others are cancelled");

    struct weft_renew *renew = weft_new_array(f->arena, struct weft_renew, MANY);
    struct weft_lease_answer *answer = weft_new_array(f->arena, struct weft_lease_answer, MANY);
    size_t told = 0;
    for (size_t i = 0; i < got.count; i++)
        renew[i] = (struct weft_renew){.id = got.item[i].id, .epoch = got.item[i].epoch};
    is_int(engine_renew(f->b, renew, got.count, answer, &f->err), WEFT_OK, "heartbeat");
    for (size_t i = 0; i < got.count; i++)
        told += answer[i].err.rc == WEFT_FENCED && answer[i].state == WEFT_STATE_CANCELLED;
    is_int(told, MANY, "each worker learns of the cancel");
}
