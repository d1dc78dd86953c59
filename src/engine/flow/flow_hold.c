/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Locking the row of a flow for a call that changes its graph.
 *
 * weft holds such a row for one bounded transaction, but an operator's psql may hold it
 * indefinitely. In a library the caller waits in its own thread, for up to the lock_timeout of its
 * session. In a server it would block one of the few threads of its class, and calls for other
 * flows behind it. There a call waits only WAIT_BRIEF and fails with WEFT_CAUSE_FLOW_LOCKED, having
 * written nothing; the server repeats it later, and no thread waits meanwhile (net/group/group.c).
 *
 * Only the wait for the row of the flow is shortened. Later statements wait for the rows of members
 * as long as in any other transaction: other commits hold these rows, only for a short time.
 */

#include "engine/flow/flow.h"

#include <string.h>

#define WAIT_BRIEF   "100ms"
#define WAIT_AS_EVER "5s" /* what the driver sets for a transaction that writes */

void weft_engine_hold_briefly(struct weft_engine *engine)
{
    engine->holds_briefly = true;
}

static enum weft_rc tell_locked(struct weft_engine *engine, struct weft_err *err)
{
    enum weft_rc rc =
        weft_fail_field(err, WEFT_BUSY, "id", "the flow is locked by another transaction");
    if (err) {
        err->cause = engine->holds_briefly ? WEFT_CAUSE_FLOW_LOCKED : WEFT_CAUSE_LOCK_TIMEOUT;
        err->hint =
            "nothing was done: try again; if that does not help, look in pg_stat_activity "
            "for a session that is idle in transaction, and end it";
    }
    return rc;
}

/* What is due is asked by a later statement, so it is seen as of the lock; all travel together. */
enum weft_rc weft_flows_hold(struct weft_tx *tx, const struct weft_id *flow, size_t count,
                             struct weft_flow_rows *ret_rows, struct weft_err *err)
{
    enum { BRIEF, HOLD, AS_EVER, DUE, CALLS };
    struct weft_call call[CALLS];
    struct weft_rows rows[CALLS];
    bool brief = tx->engine->holds_briefly;
    weft_call_init(&call[BRIEF], tx->arena, WEFT_STMT_FLOW_PATIENCE, 0);
    weft_set_text(&call[BRIEF], 0, FLOW_PATIENCE_IN_LOCK_TIMEOUT, WAIT_BRIEF);
    weft_call_init(&call[AS_EVER], tx->arena, WEFT_STMT_FLOW_PATIENCE, 0);
    weft_set_text(&call[AS_EVER], 0, FLOW_PATIENCE_IN_LOCK_TIMEOUT, WAIT_AS_EVER);
    weft_call_init(&call[HOLD], tx->arena, WEFT_STMT_FLOW_HOLD, count);
    weft_call_init(&call[DUE], tx->arena, WEFT_STMT_FLOW_DUE, count);
    for (size_t i = 0; i < count; i++) {
        weft_set_id(&call[HOLD], i, FLOW_HOLD_IN_FLOW, &flow[i]);
        weft_set_id(&call[DUE], i, FLOW_DUE_IN_FLOW, &flow[i]);
    }
    enum weft_rc rc = WEFT_OK;
    if (brief) {
        rc = weft_tx_run(tx, call, CALLS, rows, err);
    } else {
        call[AS_EVER] = call[HOLD];
        rc = weft_tx_run(tx, &call[AS_EVER], 2, &rows[AS_EVER], err);
    }
    if (rc && err && err->cause == WEFT_CAUSE_LOCK_TIMEOUT)
        rc = tell_locked(tx->engine, err);
    *ret_rows = (struct weft_flow_rows){0};
    if (!rc)
        *ret_rows = (struct weft_flow_rows){.flow = rows[brief ? HOLD : AS_EVER], .due = rows[DUE]};
    return rc;
}

enum weft_rc weft_flow_hold_row(struct weft_tx *tx, const struct weft_id *flow,
                                struct weft_flow_row *ret_row, bool *ret_found,
                                struct weft_err *err)
{
    struct weft_flow_rows held;
    enum weft_rc rc = weft_flows_hold(tx, flow, 1, &held, err);
    const struct weft_rows *rows = &held.flow, *due = &held.due;
    *ret_found = !rc && rows->count > 0;
    if (*ret_found)
        *ret_row = (struct weft_flow_row){
            .id = *flow,
            .ns = (int32_t)weft_get_i64(rows, 0, FLOW_HOLD_OUT_NAMESPACE),
            .state = (int)weft_get_i64(rows, 0, FLOW_HOLD_OUT_STATE),
            .revision = (int32_t)weft_get_i64(rows, 0, FLOW_HOLD_OUT_REVISION),
            .nodes = weft_get_i64(rows, 0, FLOW_HOLD_OUT_NODES),
            .cancel = (enum weft_flow_cancel)weft_get_i64(rows, 0, FLOW_HOLD_OUT_CANCEL),
            .reason = weft_get_text(rows, 0, FLOW_HOLD_OUT_REASON),
            .backlog = weft_get_i64(rows, 0, FLOW_HOLD_OUT_BACKLOG),
            .deleted = !weft_get(rows, 0, FLOW_HOLD_OUT_DELETED)->null,
            .cancelled = (uint64_t)weft_get_i64(rows, 0, FLOW_HOLD_OUT_CANCELLED),
            .due = {.pending = weft_get_i64(due, 0, FLOW_DUE_OUT_PENDING),
                    .anew = weft_get_i64(due, 0, FLOW_DUE_OUT_ANEW),
                    .living = weft_get_i64(due, 0, FLOW_DUE_OUT_LIVING)},
        };
    return rc;
}

enum weft_rc weft_flow_hold(struct weft_tx *tx, const char *ns, const struct weft_id *flow,
                            struct weft_flow_row *ret_row, struct weft_err *err)
{
    struct weft_flow_row row = {0};
    const char *name = NULL;
    bool found;
    enum weft_rc rc = weft_flow_hold_row(tx, flow, &row, &found, err);
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
