/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cancelling a flow. The mark comes first, under the lock of the flow: from that commit on the
 * cascade begins nothing. Then living members are cancelled in chunks, each like any execution;
 * `backlog` stays until none is left, so a crash in between leaves the rest to the cancel_backlog
 * scanner. What members were running when they were left alone (pending, flow_only) ends as it
 * ends; the flow ends with its last member.
 */

#include "engine/flow.h"

#include "base/id.h"
#include "core/spec.h"

#include <string.h>

/* Waits for the row and locks it; *ret_row stays as it is when there is none. */
static enum weft_rc hold_row(struct weft_tx *tx, const struct weft_id *flow,
                             struct weft_flow_row *ret_row, bool *ret_found, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, tx->arena, WEFT_STMT_FLOW_HOLD, 1);
    weft_set_id(&call, 0, FLOW_HOLD_IN_FLOW, flow);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    *ret_found = !rc && rows.count > 0;
    if (*ret_found)
        *ret_row = (struct weft_flow_row){
            .id = *flow,
            .ns = (int32_t)weft_get_i64(&rows, 0, FLOW_HOLD_OUT_NAMESPACE),
            .state = (int)weft_get_i64(&rows, 0, FLOW_HOLD_OUT_STATE),
            .revision = (int32_t)weft_get_i64(&rows, 0, FLOW_HOLD_OUT_REVISION),
            .nodes = weft_get_i64(&rows, 0, FLOW_HOLD_OUT_NODES),
            .cancel = (enum weft_flow_cancel)weft_get_i64(&rows, 0, FLOW_HOLD_OUT_CANCEL),
            .reason = weft_get_text(&rows, 0, FLOW_HOLD_OUT_REASON),
            .backlog = weft_get_i64(&rows, 0, FLOW_HOLD_OUT_BACKLOG),
            .deleted = !weft_get(&rows, 0, FLOW_HOLD_OUT_DELETED)->null,
        };
    return rc;
}

enum weft_rc weft_flow_hold(struct weft_tx *tx, const char *ns, const struct weft_id *flow,
                            struct weft_flow_row *ret_row, struct weft_err *err)
{
    struct weft_flow_row row = {0};
    const char *name = NULL;
    bool found;
    enum weft_rc rc = hold_row(tx, flow, &row, &found, err);
    if (found) {
        struct weft_id_list names = {.id = &row.ns, .count = 1, .tx = tx};
        rc = weft_load_names(tx->engine, &names, err);
        name = rc ? NULL : weft_find_name(tx->engine, row.ns);
    }
    if (!rc && (!name || strcmp(name, ns) != 0 || row.state < 0 || row.deleted))
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such flow");
    if (!rc)
        *ret_row = row;
    return rc;
}

/* Members that ended while the flow was locked left their completions to whoever had the lock. */
static void look_for_ends(struct weft_engine *engine, const struct weft_tx *tx,
                          const struct weft_id *flow, const struct weft_changes *changes)
{
    struct weft_tidings news = weft_news_new(tx->arena, tx->now_us);
    if (changes)
        weft_change_news(&news, changes);
    weft_news_flow(&news, flow);
    weft_news_tell(engine, &news);
}

struct cancel_call {
    const struct weft_flow_cancelling *args;
    enum weft_flow_state state;
};

static enum weft_rc mark(struct weft_tx *tx, const struct weft_flow_cancelling *args,
                         struct weft_err *err)
{
    struct weft_call call;
    weft_call_init(&call, tx->arena, WEFT_STMT_FLOW_CANCEL, 0);
    weft_set_id(&call, 0, FLOW_CANCEL_IN_FLOW, &args->flow);
    weft_set_i64(&call, 0, FLOW_CANCEL_IN_CANCEL, args->how);
    weft_set_text(&call, 0, FLOW_CANCEL_IN_REASON, args->reason);
    weft_set_i64(&call, 0, FLOW_CANCEL_IN_BACKLOG, args->how != WEFT_FLOW_CANCEL_ONLY);
    return weft_tx_run(tx, &call, 1, NULL, err);
}

static enum weft_rc cancel_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct cancel_call *call = context;
    const struct weft_flow_cancelling *args = call->args;
    struct weft_flow_row row;
    enum weft_rc rc = weft_flow_hold(tx, args->ns, &args->flow, &row, err);
    if (rc)
        return rc;
    call->state = (enum weft_flow_state)row.state;
    bool over = row.state == WEFT_FLOW_SUCCEEDED || row.state == WEFT_FLOW_FAILED;
    if (over && !args->remove)
        return weft_fail_field(err, WEFT_NOT_LIVE, "id",
                               "the flow has ended: only one that is open can be cancelled");
    /* A stronger cancel may follow a weaker one; the same again changes nothing. */
    bool stronger = row.cancel == WEFT_FLOW_CANCEL_NONE || args->how < row.cancel;
    if (row.state == WEFT_FLOW_OPEN && stronger)
        rc = mark(tx, args, err);
    if (!rc && args->remove) {
        struct weft_call call_remove;
        weft_call_init(&call_remove, tx->arena, WEFT_STMT_FLOW_REMOVE, 0);
        weft_set_id(&call_remove, 0, FLOW_REMOVE_IN_FLOW, &args->flow);
        weft_set_i64(&call_remove, 0, FLOW_REMOVE_IN_NOW, tx->now_us);
        rc = weft_tx_run(tx, &call_remove, 1, NULL, err);
    }
    return rc;
}

enum weft_rc weft_engine_flow_cancel(struct weft_engine *engine,
                                     const struct weft_flow_cancelling *args,
                                     enum weft_flow_state *ret_state, struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    struct cancel_call call = {.args = args};
    enum weft_rc rc = weft_text_check(args->reason, WEFT_REASON_MAX, "reason", err);
    if (!rc && (args->how < WEFT_FLOW_CANCEL_ALL || args->how > WEFT_FLOW_CANCEL_ONLY))
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "policy",
                             "policy must be all, pending or flow_only");
    if (!rc)
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, cancel_body, &call, err);
    if (!rc) {
        *ret_state = call.state;
        look_for_ends(engine, &tx, &args->flow, NULL);
    }
    weft_arena_free(tx.arena);
    return rc;
}

/* ---- Draining -------------------------------------------------------------------------------- */

struct drain_call {
    const struct weft_id *flow;
    bool wait; /* for whoever has the flow */
    struct weft_changes changes;
    uint64_t cancelled;
    bool held, more;
};

static enum weft_rc cancel_members(struct weft_tx *tx, struct drain_call *drain,
                                   const struct weft_flow_held *flow, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, tx->arena, WEFT_STMT_FLOW_LIVING, 0);
    weft_set_id(&call, 0, FLOW_LIVING_IN_FLOW, drain->flow);
    weft_set_i64(&call, 0, FLOW_LIVING_IN_RUNNING, flow->cancel == WEFT_FLOW_CANCEL_ALL);
    weft_set_i64(&call, 0, FLOW_LIVING_IN_BATCH, WEFT_FLOW_CHUNK);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    struct weft_id *id = weft_new_array(tx->arena, struct weft_id, rows.count);
    for (size_t i = 0; i < rows.count; i++)
        id[i] = weft_get_id(&rows, i, FLOW_LIVING_OUT_ID);
    drain->more = rows.count == WEFT_FLOW_CHUNK;
    size_t count = weft_ids_sort(id, rows.count);
    rc = weft_change_lock(tx, id, count, &drain->changes, err);
    for (size_t i = 0; i < drain->changes.count && !rc; i++) {
        struct weft_change *change = &drain->changes.change[i];
        bool spared = flow->cancel == WEFT_FLOW_CANCEL_PENDING &&
                      change->before.state == WEFT_STATE_RUNNING; /* claimed a moment ago */
        change->by = "flow";
        change->reason = flow->reason;
        if (!spared && weft_change_step(change, &(struct weft_event){.kind = WEFT_EVENT_CANCEL}))
            drain->cancelled++;
    }
    return rc ? rc : weft_change_write(tx, &drain->changes, err);
}

/* Locks the flow, or finds that somebody else has it. */
static enum weft_rc lock_flow(struct weft_tx *tx, struct drain_call *drain,
                              struct weft_flow_held *ret_flow, struct weft_err *err)
{
    struct weft_flows_held held;
    struct weft_flow_row row = {0};
    bool found;
    enum weft_rc rc;
    if (drain->wait) {
        rc = hold_row(tx, drain->flow, &row, &found, err);
        *ret_flow = (struct weft_flow_held){
            .id = row.id, .state = row.state, .cancel = (int)row.cancel, .reason = row.reason};
        drain->held = !rc; /* one that is gone has nothing left to cancel */
    } else {
        rc = weft_flows_lock(tx, drain->flow, 1, &held, err);
        drain->held = !rc && held.count > 0;
        if (drain->held)
            *ret_flow = held.item[0];
    }
    return rc;
}

static enum weft_rc drain_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct drain_call *drain = context;
    struct weft_flow_held flow = {0};
    *drain = (struct drain_call){.flow = drain->flow, .wait = drain->wait};
    enum weft_rc rc = lock_flow(tx, drain, &flow, err);
    if (rc || !drain->held || flow.cancel == WEFT_FLOW_CANCEL_NONE || flow.state != WEFT_FLOW_OPEN)
        return rc;
    if (flow.cancel != WEFT_FLOW_CANCEL_ONLY)
        rc = cancel_members(tx, drain, &flow, err);
    if (rc || drain->more)
        return rc;
    struct weft_call call;
    weft_call_init(&call, tx->arena, WEFT_STMT_FLOW_DRAINED, 0);
    weft_set_id(&call, 0, FLOW_DRAINED_IN_FLOW, drain->flow);
    return weft_tx_run(tx, &call, 1, NULL, err);
}

static enum weft_rc drain_chunk(struct weft_engine *engine, struct drain_call drain,
                                uint64_t *ret_cancelled, bool *ret_more, struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, drain_body, &drain, err);
    if (!rc) {
        look_for_ends(engine, &tx, drain.flow, &drain.changes);
        *ret_cancelled += drain.cancelled;
        /* Somebody who has the lock may be the cascade: it is not ours to wait for. */
        *ret_more = drain.more || !drain.held;
    }
    weft_arena_free(tx.arena);
    return rc;
}

enum weft_rc weft_engine_flow_drain(struct weft_engine *engine, const struct weft_id *flow,
                                    uint64_t *ret_cancelled, bool *ret_more, struct weft_err *err)
{
    const struct drain_call drain = {.flow = flow};
    return drain_chunk(engine, drain, ret_cancelled, ret_more, err);
}

enum weft_rc weft_engine_flow_drain_now(struct weft_engine *engine, const struct weft_id *flow,
                                        uint64_t *ret_cancelled, bool *ret_more,
                                        struct weft_err *err)
{
    const struct drain_call drain = {.flow = flow, .wait = true};
    return drain_chunk(engine, drain, ret_cancelled, ret_more, err);
}
