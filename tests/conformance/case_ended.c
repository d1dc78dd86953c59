/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ends that a server reports to requests that wait for them (weft_engine_on_ended()): every way in
 * which an execution or a flow can end, by the process that ended it, once, and no other id.
 */

#include "flows.h"

#include "base/arena.h"
#include "engine/flow/flow.h"
#include "engine/job/control.h"
#include "engine/tx/commit_effects.h"
#include "weft/weft.h"

enum { HEARD_MAX = 16 };

struct heard {
    struct weft_id id[HEARD_MAX];
    size_t count;
    _Atomic size_t awaited;
};

static void hear(void *context, const struct weft_id *id, size_t count)
{
    struct heard *heard = context;
    for (size_t i = 0; i < count && heard->count < HEARD_MAX; i++)
        heard->id[heard->count++] = id[i];
}

static void listen(struct weft_engine *engine, struct heard *heard)
{
    *heard = (struct heard){.awaited = 1};
    weft_engine_on_ended(engine, hear, heard, &heard->awaited);
}

static void stop_listening(struct weft_engine *engine)
{
    weft_engine_on_ended(engine, NULL, NULL, NULL);
}

/* What was reported since the last call is this id, once. */
static void expect_one(struct heard *heard, const struct weft_id *id, const char *way)
{
    is_int((long long)heard->count, 1, "%s: one end is reported", way);
    ok(heard->count > 0 && same_id(&heard->id[0], id), "%s: the end of this execution", way);
    heard->count = 0;
}

/* These ids were reported since the last call, each once; others do not count. */
static void expect_among(struct heard *heard, const struct weft_id *id, const char *way)
{
    size_t found = 0;
    for (size_t i = 0; i < heard->count; i++)
        found += same_id(&heard->id[i], id);
    is_int((long long)found, 1, "%s: the end is reported once", way);
}

CASE(ended_by_the_worker)
{
    struct heard heard;
    listen(f->a, &heard);
    struct weft_claimed lease = start(f, NULL);
    (void)complete(f, f->a, &lease, "1");
    expect_one(&heard, &lease.id, "complete");
    (void)complete(f, f->a, &lease, "1");
    is_int((long long)heard.count, 0, "the second complete of a lease ends nothing");

    lease = start(f, NULL);
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true});
    expect_one(&heard, &lease.id, "fail for good");

    lease = start_policy(f, &(struct weft_policy){.max_attempts = 2, .initial_ms = -1});
    (void)fail(f, f->a, &lease, "again");
    is_int((long long)heard.count, 0, "a failure that is retried is no end");
    lease = take(f, f->a, lease.lane);
    (void)fail(f, f->a, &lease, "again");
    expect_one(&heard, &lease.id, "the last attempt fails");

    lease = start(f, NULL);
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    is_int((long long)heard.count, 0, "a released lease is no end");
    stop_listening(f->a);
}

CASE(ended_by_a_call)
{
    struct heard heard;
    listen(f->a, &heard);
    struct weft_id id = submit_job(f);
    is_int(steer_id(f, WEFT_STEER_REPRIORITIZE, &id).err.rc, WEFT_OK, "reprioritize");
    is_int((long long)heard.count, 0, "a changed priority is no end");
    is_int(steer_id(f, WEFT_STEER_CANCEL, &id).err.rc, WEFT_OK, "cancel");
    expect_one(&heard, &id, "cancel of a ready one");
    struct weft_claimed lease = start(f, NULL);
    is_int(steer_id(f, WEFT_STEER_CANCEL, &lease.id).err.rc, WEFT_OK, "cancel");
    expect_one(&heard, &lease.id, "cancel of a running one");
    lease = start(f, NULL);
    const struct weft_steer_all all = {.kind = WEFT_STEER_CANCEL,
                                       .filter = {.ns = "default", .lane = lease.lane}};
    struct weft_sweep sweep = {0};
    is_int(weft_engine_steer_all(f->a, &all, &sweep, &f->err), WEFT_OK, "cancel by a filter");
    expect_one(&heard, &lease.id, "cancel by a filter");
    is_int(steer_id(f, WEFT_STEER_REPLAY, &lease.id).err.rc, WEFT_OK, "replay");
    is_int((long long)heard.count, 0, "a replay is no end");
    stop_listening(f->a);
}

CASE(ended_by_a_scanner)
{
    struct heard heard;
    listen(f->b, &heard);
    struct weft_id id =
        submit_ok(f, &(struct weft_spec){.kind = "job", .deadline_us = f->now_us + WEFT_SECOND});
    struct weft_claimed timed = start_policy(
        f, &(struct weft_policy){.max_attempts = 1, .attempt_timeout_ms = 5000, .lease_ms = 60000});
    struct weft_claimed lost = start_policy(f, &(struct weft_policy){.max_lost = 1});
    forward_ms(f, 2000);
    (void)run_pass(f, f->b, WEFT_SCANNER_EXECUTION_DEADLINE);
    expect_one(&heard, &id, "the deadline has passed");
    forward_ms(f, 4000);
    (void)run_pass(f, f->b, WEFT_SCANNER_ATTEMPT_TIMEOUT);
    expect_one(&heard, &timed.id, "the last attempt timed out");
    forward_ms(f, 60000);
    (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    is_int((long long)heard.count, 0, "a lost lease is no end");
    is_int(state_of(f, &lost.id), WEFT_STATE_READY, "the execution with a lost lease is ready");
    lost = take(f, f->a, lost.lane);
    forward_ms(f, 60000);
    (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    expect_one(&heard, &lost.id, "too many leases were lost");
    stop_listening(f->b);
}

CASE(ended_by_the_cascade)
{
    struct heard heard;
    struct drawn flow;
    draw(&flow, "a; b:a; c:b");
    submit_drawn(f, &flow);
    leave_completions(f->a);
    listen(f->b, &heard);
    end_node(f, &flow, "a", false);
    is_str(states(f, &flow), "fkk", "the failure of the first node skips the others");
    expect_among(&heard, id_of(&flow, "b"), "a skipped node");
    expect_among(&heard, id_of(&flow, "c"), "a node skipped by a later hop");
    expect_among(&heard, &flow.answer.id, "the flow");
    is_int((long long)heard.count, 3, "no other end is reported");
    stop_listening(f->b);
}

CASE(ended_as_a_sibling)
{
    struct heard heard;
    struct drawn flow;
    draw(&flow, "a; b; c:a,b");
    node_of(&flow, "c")->join = WEFT_JOIN_ANY;
    submit_drawn(f, &flow);
    leave_completions(f->a);
    listen(f->b, &heard);
    end_node(f, &flow, "a", true);
    is_int(state_of(f, id_of(&flow, "b")), WEFT_STATE_CANCELLED, "the sibling is cancelled");
    expect_among(&heard, id_of(&flow, "b"), "a cancelled sibling");
    is_int((long long)heard.count, 1, "no other end is reported");
    stop_listening(f->b);
}

CASE(ended_by_a_cancelled_flow)
{
    struct heard heard;
    struct drawn flow;
    draw(&flow, "a; b:a");
    submit_drawn(f, &flow);
    listen(f->a, &heard);
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = flow.answer.id, .how = WEFT_FLOW_CANCEL_ALL};
    enum weft_flow_state state;
    struct weft_flow_drain drain = {.flow = flow.answer.id, .more = true};
    is_int(weft_engine_flow_cancel(f->a, &args, &state, NULL, &f->err), WEFT_OK, "cancel the flow");
    while (drain.more && !weft_engine_flow_drain(f->a, &drain, &f->err))
        ;
    is_str(states(f, &flow), "cc", "the members are cancelled");
    expect_among(&heard, id_of(&flow, "a"), "a drained member");
    expect_among(&heard, id_of(&flow, "b"), "a blocked member of a cancelled flow");
    expect_among(&heard, &flow.answer.id, "the cancelled flow");
    stop_listening(f->a);
}

CASE(ended_without_a_waiting_request)
{
    struct heard heard;
    listen(f->a, &heard);
    heard.awaited = 0;
    struct weft_claimed lease = start(f, NULL);
    (void)complete(f, f->a, &lease, "1");
    is_int((long long)heard.count, 0, "an end that no request waits for is not reported");
    stop_listening(f->a);
}
