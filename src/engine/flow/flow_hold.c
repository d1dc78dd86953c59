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
 *
 * Runs due hops before a call depends on the state of a flow:
 *
 * The end of a member is acknowledged before the cascade has handled it, so for a moment the row of
 * a flow says "open" although its last member has ended. A call that depends on the state of the
 * flow (cancel, delete, growth, replay, edges) checks, under the lock of the flow, whether hops are
 * due. If so it ends its transaction without a change, runs some hops, and starts over.
 *
 * The check sees every end that was acknowledged before the call: its completion was committed
 * before, and the check is a later statement than the one that locked the flow. An end that commits
 * after the check is concurrent with the call; its completion stays in the outbox, and the cascade
 * handles it after the call.
 *
 * The rounds end. If no member lives, only skipped and re-blocked nodes add completions, and each
 * of them costs a hop: the outbox becomes empty, unless replays arrive faster, and then the call
 * fails with WEFT_BUSY. If a member lives, the flow is not over, whatever the outbox holds: after a
 * few rounds the call is carried out as if it had come before the ends that keep arriving. Another
 * replica may hold the lock of the flow and run the hops; the next round of the caller waits for
 * that lock, so rounds do not spin.
 */

#include "engine/flow/flow_hold.h"

#include "base/err.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade.h"

#include <string.h>

enum {
    HOPS_AT_ONCE = 8,
    ROUNDS_LIVING = 4,
    ROUNDS_MOST = 250,
};

#define WAIT_BRIEF   "100ms"
#define WAIT_AS_EVER "5s" /* as the driver sets it for a transaction that writes */

void weft_engine_hold_briefly(struct weft_engine *engine)
{
    engine->holds_briefly = true;
}

static enum weft_rc tell_locked(struct weft_engine *engine, struct weft_err *err)
{
    enum weft_cause cause =
        engine->holds_briefly ? WEFT_CAUSE_FLOW_LOCKED : WEFT_CAUSE_LOCK_TIMEOUT;
    enum weft_rc rc =
        weft_fail_field(err, WEFT_BUSY, "id", "the flow is locked by another transaction");
    return weft_hint(err, weft_cause(err, rc, cause),
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
    size_t first = brief ? BRIEF : AS_EVER;
    if (!brief)
        call[AS_EVER] = call[HOLD];
    enum weft_rc rc = weft_tx_run(tx, &call[first], CALLS - first, &rows[first], err);
    if (rc && err && err->cause == WEFT_CAUSE_LOCK_TIMEOUT)
        rc = tell_locked(tx->engine, err);
    *ret_rows = (struct weft_flow_rows){0};
    if (!rc)
        *ret_rows = (struct weft_flow_rows){.flow = rows[brief ? HOLD : AS_EVER], .due = rows[DUE]};
    return rc;
}

enum weft_rc weft_flow_hold(struct weft_tx *tx, const char *ns, const struct weft_id *flow,
                            struct weft_flow_rows *ret_rows, struct weft_err *err)
{
    const char *name = NULL;
    enum weft_rc rc = weft_flows_hold(tx, flow, 1, ret_rows, err);
    struct weft_flow_hold_out *row = weft_out_flow_hold(&ret_rows->flow);
    if (!rc && ret_rows->flow.count > 0) {
        struct weft_id_list names = {.id = &row->namespace, .count = 1, .tx = tx};
        rc = weft_load_names(tx->engine, &names, err);
        name = rc ? NULL : weft_find_name(tx->engine, row->namespace);
    }
    if (!rc && (!name || strcmp(name, ns) != 0 || row->state < 0 || row->deleted.set))
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such flow");
    return rc;
}

/* ---- Due hops -------------------------------------------------------------------------------- */

bool weft_flow_unsettled(const struct weft_flow_due_out *due, unsigned round)
{
    return due->pending && !(due->living && round >= ROUNDS_LIVING);
}

enum weft_rc weft_flow_settle(struct weft_engine *engine, const struct weft_id *flow, size_t count,
                              unsigned round, struct weft_err *err)
{
    if (round < ROUNDS_MOST)
        return weft_cascade_chunks(engine, flow, count, HOPS_AT_ONCE, err);
    return weft_hint(err, weft_fail(err, WEFT_BUSY, "the flow still processes earlier changes"),
                     "try again in a moment");
}

struct change {
    const char *ns;
    const struct weft_id *flow;
    weft_flow_body *body;
    void *context;
    unsigned round;
    bool unsettled; /* hops were due: nothing was done */
};

static enum weft_rc change_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct change *change = context;
    struct weft_flow_rows held;
    enum weft_rc rc = weft_flow_hold(tx, change->ns, change->flow, &held, err);
    change->unsettled = !rc && weft_flow_unsettled(weft_out_flow_due(&held.due), change->round);
    return rc || change->unsettled
               ? rc
               : change->body(tx, weft_out_flow_hold(&held.flow), change->context, err);
}

enum weft_rc weft_flow_change(struct weft_tx *tx, const char *ns, const struct weft_id *flow,
                              weft_flow_body *body, void *context, struct weft_err *err)
{
    struct change change = {.ns = ns, .flow = flow, .body = body, .context = context};
    enum weft_rc rc = WEFT_OK;
    do {
        if (change.unsettled)
            rc = weft_flow_settle(tx->engine, flow, 1, change.round++, err);
        if (!rc)
            rc = weft_tx_do(tx, WEFT_TX_WRITE, change_body, &change, err);
    } while (!rc && change.unsettled);
    return rc;
}
