/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cancelling a flow. The mark comes first, under the lock of the flow: from that commit on the
 * cascade begins nothing. Living members are cancelled in chunks, each like any execution, the
 * first chunk with the mark; `backlog` stays until none is left, so a crash in between leaves the
 * rest to the cancel_backlog scanner. Running members that the cancel left alone (pending,
 * flow_only) end by themselves; the flow ends with its last member.
 *
 * A flow that is over cannot be cancelled, even if no hop has found that yet (flow_hold.c).
 *
 * The drain visits each member once, a chunk per transaction; the row of the flow stores the
 * position, so that any process can continue. Once is enough: in a cancelled flow no member begins.
 * Growth is refused, a join that is decided cancels its node, and a member that is replayed behind
 * the position of the drain counts as replayed after the cancel. Every call of cancel restarts at
 * the first member, because a stronger cancel includes members that a weaker one left alone, and a
 * second one includes members replayed in between.
 *
 * The row also counts the members cancelled because of the flow: the caller, the scanner and the
 * cascade each add to it, and the waiting caller gets the sum. The caller waits briefly for the
 * row: hops, chunks of members and changes of the graph hold it, each for one bounded transaction.
 */

#include "engine/flow/flow.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "core/spec.h"
#include "core/state.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade_read.h"
#include "engine/flow/flow_hold.h"
#include "engine/job/change.h"

/* Members that ended while the flow was locked left their completions to the lock's holder. */
static void look_for_ends(struct weft_engine *engine, const struct weft_tx *tx,
                          const struct weft_id *flow, const struct weft_changes *changes)
{
    struct weft_commit_effects news = weft_news_new(tx->arena, tx->now_us);
    weft_change_news(&news, changes);
    weft_news_flow(&news, flow);
    weft_news_tell(engine, &news);
}

/* ---- Draining -------------------------------------------------------------------------------- */

/* A chunk of members; its counts are valid once its transaction is committed. */
struct chunk {
    struct weft_flow_drain drain;
    struct weft_id to; /* the last member visited */
    struct weft_changes changes;
};

/* The flow, as it is for its members. */
static struct weft_flow_lock_out as_held(const struct weft_flow_hold_out *row)
{
    return (struct weft_flow_lock_out){
        .id = row->id, .state = row->state, .cancel = row->cancel, .reason = row->reason};
}

/* The members to cancel among the next ones, sorted; notes how far that came. */
static enum weft_rc next_members(struct weft_tx *tx, struct chunk *chunk, bool running,
                                 struct weft_id **ret_id, size_t *ret_count, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    size_t count = 0, most = weft_flow_chunk(tx);
    *weft_call_flow_living(&call, tx->arena) =
        (struct weft_flow_living_in){.flow = chunk->drain.flow, .batch = (int64_t)most};
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    struct weft_id *id = weft_new_array(tx->arena, struct weft_id, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_flow_living_out *row = &weft_out_flow_living(&rows)[i];
        chunk->to = id[count] = row->id;
        count += running || !row->running;
    }
    chunk->drain.more = rows.count == most;
    *ret_id = id;
    *ret_count = weft_ids_sort(id, count);
    return WEFT_OK;
}

static enum weft_rc cancel_members(struct weft_tx *tx, struct chunk *chunk,
                                   const struct weft_flow_lock_out *flow, struct weft_err *err)
{
    bool running = flow->cancel == WEFT_FLOW_CANCEL_ALL;
    struct weft_id *id = NULL;
    size_t count = 0;
    enum weft_rc rc = next_members(tx, chunk, running, &id, &count, err);
    if (rc || count == 0)
        return rc;
    rc = weft_change_lock(tx, id, count, &chunk->changes, err);
    for (size_t i = 0; i < chunk->changes.count && !rc; i++) {
        struct weft_change *change = &chunk->changes.change[i];
        bool spared = !running && change->before.state == WEFT_STATE_RUNNING; /* just claimed */
        change->by = "flow";
        change->reason = flow->reason;
        if (!spared && weft_change_step(change, &(struct weft_event){.kind = WEFT_EVENT_CANCEL}))
            chunk->drain.cancelled++;
    }
    return rc ? rc : weft_change_write(tx, &chunk->changes, err);
}

/* Under the lock of the flow. */
static enum weft_rc drain_chunk(struct weft_tx *tx, struct chunk *chunk,
                                const struct weft_flow_lock_out *flow, struct weft_err *err)
{
    struct weft_flow_drain *drain = &chunk->drain;
    uint64_t before = drain->cancelled;
    enum weft_rc rc = WEFT_OK;
    drain->more = false;
    if (flow->cancel == WEFT_FLOW_CANCEL_NONE || flow->state != WEFT_FLOW_OPEN)
        return WEFT_OK;
    if (flow->cancel != WEFT_FLOW_CANCEL_ONLY)
        rc = cancel_members(tx, chunk, flow, err);
    drain->cancelled_now += drain->cancelled - before;
    if (rc)
        return rc;
    struct weft_call call;
    struct weft_flow_drained_in *in = weft_call_flow_drained(&call, tx->arena);
    in->flow = drain->flow;
    in->cancelled = (int64_t)(drain->cancelled - before);
    in->more = drain->more;
    if (drain->more) /* else the next drain starts at the first member */
        in->to = weft_some_id(chunk->to);
    return weft_tx_run(tx, &call, 1, NULL, err);
}

/* Locks the flow, or finds that another transaction holds it. */
static enum weft_rc lock_flow(struct weft_tx *tx, struct weft_flow_drain *drain,
                              struct weft_flow_lock_out *ret_flow, struct weft_err *err)
{
    struct weft_flows_held held;
    struct weft_flow_rows rows;
    enum weft_rc rc;
    if (drain->wait) {
        rc = weft_flows_hold(tx, &drain->flow, 1, &rows, err);
        if (!rc && rows.flow.count > 0) { /* a flow that is gone has nothing left to cancel */
            const struct weft_flow_hold_out *row = weft_out_flow_hold(&rows.flow);
            *ret_flow = as_held(row);
            drain->cancelled_now = (uint64_t)row->cancelled - drain->before;
        }
    } else {
        rc = weft_flows_lock(tx, &drain->flow, 1, &held, err);
        drain->locked = !rc && held.count == 0;
        if (!rc && held.count > 0)
            *ret_flow = held.item[0];
    }
    return rc;
}

struct drain_call {
    const struct weft_flow_drain *from;
    struct chunk chunk; /* of the last try */
};

static enum weft_rc drain_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct drain_call *call = context;
    struct weft_flow_lock_out flow = {0};
    call->chunk = (struct chunk){.drain = *call->from};
    call->chunk.drain.locked = false;
    enum weft_rc rc = lock_flow(tx, &call->chunk.drain, &flow, err);
    if (rc)
        return rc;
    if (call->chunk.drain.locked) {
        call->chunk.drain.more = true;
        return WEFT_OK;
    }
    return drain_chunk(tx, &call->chunk, &flow, err);
}

enum weft_rc weft_engine_flow_drain(struct weft_engine *engine, struct weft_flow_drain *drain,
                                    struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    struct drain_call call = {.from = drain};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, drain_body, &call, err);
    if (!rc) {
        *drain = call.chunk.drain;
        look_for_ends(engine, &tx, &drain->flow, &call.chunk.changes);
    }
    weft_arena_free(tx.arena);
    return rc;
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

struct cancel_call {
    const struct weft_flow_cancelling *args;
    bool now; /* with the first chunk of members */
    enum weft_flow_state state;
    struct chunk chunk;
};

/* Marks a flow that is open, in the store and in *row: the stronger cancel of two holds. */
static enum weft_rc mark(struct weft_tx *tx, const struct weft_flow_cancelling *args,
                         struct weft_flow_hold_out *row, struct weft_err *err)
{
    struct weft_call call;
    if (row->cancel == WEFT_FLOW_CANCEL_NONE || (int)args->how < row->cancel) {
        row->cancel = (int)args->how;
        row->reason = args->reason;
    }
    struct weft_flow_cancel_in *in = weft_call_flow_cancel(&call, tx->arena);
    in->flow = args->flow;
    in->cancel = row->cancel;
    in->reason = row->reason;
    in->backlog = row->cancel != WEFT_FLOW_CANCEL_ONLY;
    return weft_tx_run(tx, &call, 1, NULL, err);
}

static enum weft_rc cancel_body(struct weft_tx *tx, struct weft_flow_hold_out *row, void *context,
                                struct weft_err *err)
{
    struct cancel_call *call = context;
    const struct weft_flow_cancelling *args = call->args;
    enum weft_rc rc = WEFT_OK;
    call->state = (enum weft_flow_state)row->state;
    call->chunk = (struct chunk){
        .drain = {.flow = args->flow, .wait = true, .before = (uint64_t)row->cancelled}};
    bool over = row->state == WEFT_FLOW_SUCCEEDED || row->state == WEFT_FLOW_FAILED;
    if (over && !args->remove)
        return weft_fail_field(err, WEFT_NOT_LIVE, "id",
                               "the flow has ended: only one that is open can be cancelled");
    if (row->state == WEFT_FLOW_OPEN)
        rc = mark(tx, args, row, err);
    if (!rc && args->remove) {
        struct weft_call call_remove;
        *weft_call_flow_remove(&call_remove, tx->arena) =
            (struct weft_flow_remove_in){.flow = args->flow, .now = tx->now_us};
        rc = weft_tx_run(tx, &call_remove, 1, NULL, err);
    }
    const struct weft_flow_lock_out flow = as_held(row);
    return rc || !call->now ? rc : drain_chunk(tx, &call->chunk, &flow, err);
}

enum weft_rc weft_engine_flow_cancel(struct weft_engine *engine,
                                     const struct weft_flow_cancelling *args,
                                     enum weft_flow_state *ret_state,
                                     struct weft_flow_drain *ret_drain, struct weft_err *err)
{
    struct cancel_call call = {.args = args, .now = ret_drain != NULL};
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_text_check(args->reason, WEFT_REASON_MAX, "reason", err);
    if (!rc && (args->how < WEFT_FLOW_CANCEL_ALL || args->how > WEFT_FLOW_CANCEL_ONLY))
        rc = weft_invalid(err, "policy", "policy must be all, pending or flow_only");
    if (!rc)
        rc = weft_flow_change(&tx, args->ns, &args->flow, cancel_body, &call, err);
    if (!rc) {
        look_for_ends(engine, &tx, &args->flow, &call.chunk.changes);
        *ret_state = call.state;
    }
    if (!rc && ret_drain)
        *ret_drain = call.chunk.drain;
    weft_arena_free(tx.arena);
    return rc;
}
