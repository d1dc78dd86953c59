/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The operations of a handle over an engine in this process. After a change the workers of the
 * handle and the calls that wait on it are woken.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "client/client.h"
#include "core/state.h"
#include "engine/batch/batch.h"
#include "engine/batch/batch_view.h"
#include "engine/call.h"
#include "engine/engine.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "weft/weft.h"

/* ---- Operations that wait -------------------------------------------------------------------- */

static enum weft_rc claim(const struct weft_via *via, const struct weft_op_call *call,
                          struct weft_err *err)
{
    const struct weft_claim *claims = call->in;
    const struct weft_claim_result *result = call->out;
    int64_t wait_ms = 0;
    for (size_t i = 0; i < call->count; i++)
        wait_ms = claims[i].wait_ms > wait_ms ? claims[i].wait_ms : wait_ms;
    struct weft_look look;
    weft_look_init(&look, via->weft, WEFT_CHANGE_READY, wait_ms);
    enum weft_rc rc;
    do {
        rc = weft_engine_call(via->weft->engine, call, err);
        if (!rc && result->opens_in_us && result->opens_in_us < look.pause_us)
            look.pause_us = result->opens_in_us;
    } while (!rc && result->count == 0 && wait_ms > 0 && weft_look_again(&look, via));
    return rc;
}

static enum weft_rc watch(const struct weft_via *via, const struct weft_op_call *call,
                          struct weft_err *err)
{
    struct weft_watch mine = *(const struct weft_watch *)call->in;
    struct weft_watched *watched = call->out;
    if (!mine.ns)
        mine.ns = call->ns;
    struct weft_look look;
    weft_look_init(&look, via->weft, WEFT_CHANGE_LEASE, mine.wait_ms);
    enum weft_rc rc;
    do
        rc = weft_engine_watch(via->weft->engine, &mine, call->arena, watched, err);
    while (!rc && watched->count == 0 && mine.wait_ms > 0 && weft_look_again(&look, via));
    return rc;
}

static enum weft_rc describe(const struct weft_via *via, const struct weft_op_call *call,
                             struct weft_err *err)
{
    const struct weft_execution *item = call->out;
    struct weft_look look;
    weft_look_init(&look, via->weft, WEFT_CHANGE_ENDED, via->wait_ms);
    enum weft_rc rc;
    do
        rc = weft_engine_call(via->weft->engine, call, err);
    while (!rc && via->waits && weft_state_living(item->state) && weft_look_again(&look, via));
    if (!rc && via->waits && item->state == WEFT_STATE_NONE)
        return weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such execution");
    return rc;
}

static enum weft_rc flow(const struct weft_via *via, const struct weft_op_call *call,
                         struct weft_err *err)
{
    const struct weft_flow_asking *asking = call->in;
    struct weft_flow_page *page = call->out;
    struct weft_look look;
    weft_look_init(&look, via->weft, WEFT_CHANGE_ENDED, via->wait_ms);
    /* A call that waits looks many times: without the nodes. */
    const struct weft_flow_asking head = {.ns = asking->ns, .flow = asking->flow};
    enum weft_rc rc = WEFT_OK;
    bool open = via->wait_ms > 0;
    while (!rc && open) {
        rc = weft_engine_flow(via->weft->engine, &head, call->arena, page, err);
        open = !rc && page->flow.state == WEFT_FLOW_OPEN && weft_look_again(&look, via);
    }
    return rc ? rc : weft_engine_call(via->weft->engine, call, err);
}

static enum weft_rc read_state(const struct weft_via *via, const struct weft_flow_cancelling *args,
                               enum weft_flow_state *ret_state, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    const struct weft_flow_asking asking = {.ns = args->ns, .flow = args->flow};
    struct weft_flow_page page;
    enum weft_rc rc = weft_engine_flow(via->weft->engine, &asking, arena, &page, err);
    if (!rc)
        *ret_state = page.flow.state;
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc flow_cancel(const struct weft_via *via, const struct weft_op_call *call,
                                struct weft_err *err)
{
    const struct weft_flow_cancelling *args = call->in;
    struct weft_flow_cancelled *answer = call->out;
    struct weft_look look;
    weft_look_init(&look, via->weft, WEFT_CHANGE_ENDED, via->wait_ms);
    struct weft_engine *engine = via->weft->engine;
    struct weft_flow_drain drain = {0};
    enum weft_rc rc = weft_engine_flow_cancel(engine, args, &answer->state, &drain, err);
    bool ends = args->how == WEFT_FLOW_CANCEL_ALL;
    while (!rc && !answer->done) {
        while (!rc && drain.more)
            rc = weft_engine_flow_drain(engine, &drain, err);
        answer->cancelled = drain.cancelled_now;
        if (!rc && args->remove)
            answer->state = answer->state == WEFT_FLOW_OPEN ? WEFT_FLOW_CANCELLED : answer->state;
        else if (!rc)
            rc = read_state(via, args, &answer->state, err);
        answer->done = answer->state != WEFT_FLOW_OPEN || !ends;
        if (!rc && !answer->done && !weft_look_again(&look, via))
            break;
    }
    weft_note_change(via->weft, WEFT_CHANGE_ENDED); /* some may have ended before a failure */
    return rc;
}

/* ---- Batches --------------------------------------------------------------------------------- */

/* Others do what is left of it, should this process end: what they need is stored. */
static enum weft_rc step_batch(struct weft_engine *engine, const struct weft_id *id,
                               struct weft_err *err)
{
    bool more = true;
    enum weft_rc rc = WEFT_OK;
    while (!rc && more)
        rc = weft_engine_batch_step(engine, id, &more, err);
    return rc;
}

/* Creates it and writes its lines, which a server would do. */
static enum weft_rc batch_create(const struct weft_via *via, const struct weft_op_call *call,
                                 struct weft_err *err)
{
    struct weft_batch_info *info = call->out;
    struct weft_engine *engine = via->weft->engine;
    enum weft_rc rc = weft_engine_call(engine, call, err);
    if (!rc)
        rc = step_batch(engine, &info->id, err);
    const struct weft_batch_asking asking = {.ns = call->ns, .id = info->id};
    return rc ? rc : weft_engine_batch_info(engine, &asking, call->arena, info, err);
}

/* Brings back, cancels or deletes what it has at once. */
static enum weft_rc batch_change(const struct weft_via *via, const struct weft_op_call *call,
                                 struct weft_err *err)
{
    const struct weft_batch_asking *asking = call->in;
    struct weft_engine *engine = via->weft->engine;
    struct weft_flow_drain drain = {.flow = asking->id, .more = true};
    enum weft_rc rc = weft_engine_call(engine, call, err);
    if (!rc && call->op == WEFT_OP_BATCH_RETRY)
        return step_batch(engine, &asking->id, err);
    while (!rc && drain.more && !drain.locked)
        rc = weft_engine_flow_drain(engine, &drain, err);
    if (!rc && call->op == WEFT_OP_BATCH_CANCEL)
        rc = step_batch(engine, &asking->id, err);
    if (!rc && call->op == WEFT_OP_BATCH_CANCEL)
        rc = weft_engine_batch_info(engine, asking, call->arena, call->out, err);
    return rc;
}

static enum weft_rc carry_out(const struct weft_via *via, const struct weft_op_call *call,
                              struct weft_err *err)
{
    static enum weft_rc (*const waiting[WEFT_OP_COUNT])(
        const struct weft_via *, const struct weft_op_call *, struct weft_err *) = {
        [WEFT_OP_CLAIM] = claim,
        [WEFT_OP_WATCH] = watch,
        [WEFT_OP_DESCRIBE] = describe,
        [WEFT_OP_FLOW] = flow,
        [WEFT_OP_FLOW_CANCEL] = flow_cancel,
        [WEFT_OP_FLOW_DELETE] = flow_cancel,
        [WEFT_OP_BATCH_CREATE] = batch_create,
        [WEFT_OP_BATCH_CANCEL] = batch_change,
        [WEFT_OP_BATCH_RETRY] = batch_change,
        [WEFT_OP_BATCH_DELETE] = batch_change,
    };
    return waiting[call->op] ? waiting[call->op](via, call, err)
                             : weft_engine_call(via->weft->engine, call, err);
}

/* ---- Waking ---------------------------------------------------------------------------------- */

/* What an operation that went well may have changed for others. */
enum change {
    NOTHING,
    READY,    /* there may be something to claim: workers and claims that wait look */
    PUT_BACK, /* the same for claims; a worker wakes the others itself (worker/words.c) */
    ENDED,
};

static const enum change changes[WEFT_OP_COUNT] = {
    [WEFT_OP_COMPLETE] = ENDED,     [WEFT_OP_FAIL] = ENDED,          [WEFT_OP_DELAY] = PUT_BACK,
    [WEFT_OP_RELEASE] = PUT_BACK,   [WEFT_OP_CANCEL] = ENDED,        [WEFT_OP_REPLAY] = READY,
    [WEFT_OP_REPRIORITIZE] = ENDED, [WEFT_OP_SET_DEADLINE] = ENDED,  [WEFT_OP_REVOKE] = READY,
    [WEFT_OP_CANCEL_MANY] = ENDED,  [WEFT_OP_REPLAY_MANY] = READY,   [WEFT_OP_FLOW_SUBMIT] = READY,
    [WEFT_OP_FLOW_GROW] = READY,    [WEFT_OP_FLOW_LINK] = READY, /* an edge from a node that has
                                                                    ended may let its node begin */
    [WEFT_OP_LANE_PUT] = READY, /* it may have been paused, or full */
    [WEFT_OP_SUSPEND] = ENDED,  /* a slot of its lane is free */
    [WEFT_OP_SIGNALS] = READY,      [WEFT_OP_RESUME] = READY,        [WEFT_OP_LANE_REMOVE] = READY,
    [WEFT_OP_GOODBYE] = READY,      [WEFT_OP_RUN_SCANNER] = READY,   [WEFT_OP_BUDGET_PUT] = READY,
    [WEFT_OP_BUDGET_RESET] = READY, [WEFT_OP_BUDGET_REMOVE] = READY, [WEFT_OP_BATCH_CREATE] = READY,
    [WEFT_OP_BATCH_RETRY] = READY,  [WEFT_OP_BATCH_CANCEL] = ENDED,  [WEFT_OP_BATCH_DELETE] = ENDED,
};

/* Whether a call of such an operation changed anything, as far as its answer says. */
static bool has_changed(const struct weft_op_call *call)
{
    if (call->op == WEFT_OP_REPLAY_MANY)
        return ((const struct weft_sweep *)call->out)->changed > 0;
    if (call->op == WEFT_OP_GOODBYE)
        return *(const uint64_t *)call->out > 0;
    if (call->op == WEFT_OP_RUN_SCANNER)
        return ((const struct weft_pass_report *)call->out)->handled > 0;
    return true;
}

/* Wakes the workers of this handle for accepted executions. */
static void wake_for_submitted(struct weft *weft, const struct weft_op_call *call)
{
    const struct weft_spec *spec = call->in;
    const struct weft_submit_result *answer = call->out;
    bool ready = false;
    weft_usec due_us = WEFT_NEVER, now_us = weft_clock_now(weft_engine_clock(weft->engine));
    for (size_t i = 0; i < call->count; i++) {
        if (answer[i].rc)
            continue;
        ready |= answer[i].state == WEFT_STATE_READY;
        if (answer[i].state != WEFT_STATE_DELAYED)
            continue;
        weft_usec at_us =
            spec[i].run_at_us ? spec[i].run_at_us : now_us + spec[i].delay_ms * WEFT_MS;
        due_us = at_us < due_us ? at_us : due_us;
    }
    if (ready || due_us != WEFT_NEVER)
        weft_wake_workers(weft, ready, due_us);
}

static void wake_for(struct weft *weft, const struct weft_op_call *call)
{
    if (call->op == WEFT_OP_SUBMIT) {
        wake_for_submitted(weft, call);
        return;
    }
    if (!has_changed(call))
        return;
    switch (changes[call->op]) {
    case NOTHING:
        break;
    case READY:
        weft_wake_workers(weft, true, WEFT_NEVER);
        break;
    case PUT_BACK:
        weft_note_change(weft, WEFT_CHANGE_READY);
        break;
    case ENDED:
        weft_note_change(weft, WEFT_CHANGE_ENDED);
        break;
    }
}

/* ---- The backend ----------------------------------------------------------------------------- */

static enum weft_rc call_engine(const struct weft_via *via, const struct weft_op_call *call,
                                struct weft_err *err)
{
    struct weft_op_call mine = *call;
    mine.ns = via->weft->ns;
    enum weft_rc rc = carry_out(via, &mine, err);
    if (!rc)
        wake_for(via->weft, &mine);
    return rc;
}

static void close_engine(struct weft *weft)
{
    weft_engine_close(weft->engine);
}

const struct weft_backend weft_backend_local = {.call = call_engine, .close = close_engine};
