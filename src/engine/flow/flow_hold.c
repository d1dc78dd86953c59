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

#include "engine/flow/flow_hold.h"

#include "base/err.h"
#include "engine/engine_state.h"

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
    (void)weft_cause(err, rc,
                     engine->holds_briefly ? WEFT_CAUSE_FLOW_LOCKED : WEFT_CAUSE_LOCK_TIMEOUT);
    return weft_hint(err, rc,
                     "nothing was done: try again; if that does not help, look in pg_stat_activity "
                     "for a session that is idle in transaction, and end it");
}

/* What is due is asked by a later statement, so it is seen as of the lock; all travel together. */
enum weft_rc weft_flows_hold(struct weft_tx *tx, const struct weft_id *flow, size_t count,
                             struct weft_flow_rows *ret_rows, struct weft_err *err)
{
    enum { BRIEF, HOLD, AS_EVER, DUE, CALLS };
    struct weft_call call[CALLS];
    struct weft_rows rows[CALLS];
    bool brief = tx->engine->holds_briefly;
    weft_call_flow_patience(&call[BRIEF], tx->arena)->lock_timeout = WAIT_BRIEF;
    weft_call_flow_patience(&call[AS_EVER], tx->arena)->lock_timeout = WAIT_AS_EVER;
    struct weft_flow_hold_in *hold = weft_call_flow_hold(&call[HOLD], tx->arena, count);
    struct weft_flow_due_in *due = weft_call_flow_due(&call[DUE], tx->arena, count);
    for (size_t i = 0; i < count; i++) {
        hold->row[i].flow = flow[i];
        due->row[i].flow = flow[i];
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
    const struct weft_flow_due_out *out = weft_out_flow_due(due);
    const struct weft_flow_hold_out *row = weft_out_flow_hold(rows);
    if (*ret_found)
        *ret_row = (struct weft_flow_row){
            .id = *flow,
            .ns = row->namespace,
            .state = row->state,
            .revision = row->revision,
            .nodes = row->nodes,
            .cancel = row->cancel,
            .reason = row->reason,
            .backlog = row->backlog,
            .deleted = row->deleted.set,
            .cancelled = row->cancelled,
            .due = {.pending = out->pending, .anew = out->anew, .living = out->living},
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
