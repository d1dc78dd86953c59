/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scanners of flows: work that a process left when it died. A locked flow is left to the
 * process that holds the lock.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade.h"
#include "engine/flow/cascade_read.h"
#include "engine/flow/flow.h"
#include "engine/scan/scan.h"

enum {
    LOOK = 10000, /* completions, or groups, of one look */
    HOPS = 8,     /* of a cascade, in a pass: other work needs the thread */
};

bool weft_flow_pass_late(const struct weft_pass *pass)
{
    return weft_boot_us() - pass->began_us > WEFT_FLOW_PASS_US;
}

/* Runs completion_due or groups_due: flows with work older than WEFT_FLOW_LEFT_US. */
static enum weft_rc look(const struct weft_pass *pass, enum weft_stmt stmt,
                         struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_call call;
    weft_call_init(&call, pass->arena, stmt, 0);
    *weft_in_completion_due(&call) = (struct weft_completion_due_in){
        .before = weft_clock_now(pass->engine->clock) - WEFT_FLOW_LEFT_US,
        .look = LOOK,
        .scope = weft_pass_scope(pass)};
    return weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, ret_rows, err);
}

typedef enum weft_rc mend_fn(struct weft_engine *engine, const struct weft_id *flow, size_t count,
                             struct weft_cascaded *done, struct weft_err *err);

/* All flows together; if that fails, one by one, so that one bad flow does not stop the others. */
static enum weft_rc mend_all(struct weft_pass *pass, mend_fn *mend, const struct weft_id *flow,
                             size_t count, struct weft_cascaded *done, struct weft_err *err)
{
    enum weft_rc rc = mend(pass->engine, flow, count, done, err);
    for (size_t i = 0; i < count && rc && count > 1; i++) {
        struct weft_err story;
        pass->report.failed += mend(pass->engine, &flow[i], 1, done, &story) != WEFT_OK;
    }
    return pass->report.failed < count && count > 1 ? WEFT_OK : rc;
}

/* ---- dependency ------------------------------------------------------------------------------ */

/* The order of the table in pass.c, as below. */
enum { SCANNED, RECONCILED, NOOP, CASCADE_ERRORS };

/* The first hops run here, the rest by the listener. */
static enum weft_rc cascade(struct weft_engine *engine, const struct weft_id *flow, size_t count,
                            struct weft_cascaded *done, struct weft_err *err)
{
    return weft_cascade(engine, flow, count, HOPS, done, err);
}

/*
 * Runs the cascade of flows whose completions were left: the replica that committed them died, or
 * its cascade failed.
 */
enum weft_rc weft_dependency_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_rows rows = {0};
    struct weft_cascaded done = {0};
    enum weft_rc rc = look(pass, WEFT_STMT_COMPLETION_DUE, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    struct weft_id *flow = weft_new_array(pass->arena, struct weft_id, rows.count);
    const struct weft_completion_due_out *row = weft_out_completion_due(&rows);
    for (size_t i = 0; i < rows.count; i++) {
        flow[i] = row[i].flow;
        pass->count[SCANNED] += row[i].completions;
    }
    rc = mend_all(pass, cascade, flow, rows.count, &done, err);
    pass->count[RECONCILED] = pass->report.handled = done.completions;
    if (pass->count[SCANNED] > done.completions)
        pass->count[NOOP] = pass->count[SCANNED] - done.completions;
    pass->count[CASCADE_ERRORS] = pass->report.failed;
    pass->report.more = rows.count == pass->config->batch;
    return rc;
}

/* ---- edge_cancel_dispatcher ------------------------------------------------------------------ */

enum { DISPATCHED, ORPHANED, GROUPS_LOCKED, DISPATCH_ERRORS };

static enum weft_rc dispatch(struct weft_engine *engine, const struct weft_id *flow, size_t count,
                             struct weft_cascaded *done, struct weft_err *err)
{
    struct weft_cascaded cascaded = {0};
    enum weft_rc rc = weft_siblings_cancel(engine, flow, count, &done->groups, err);
    if (!rc) /* dispatches groups deferred while a replay was still propagating */
        rc = weft_cascade(engine, flow, count, HOPS, &cascaded, err);
    done->groups.dispatched += cascaded.groups.dispatched;
    return rc;
}

/*
 * Dispatches groups of sibling cancel that were left: the replica whose cascade added them died, or
 * the join that they waited for fired on another replica. Cancels their siblings and runs the
 * cascade of these ends.
 */
enum weft_rc weft_edge_cancel_dispatcher_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_rows rows = {0};
    struct weft_cascaded done = {0};
    size_t count = 0;
    enum weft_rc rc = look(pass, WEFT_STMT_GROUPS_DUE, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    struct weft_id *flow = weft_new_array(pass->arena, struct weft_id, rows.count);
    const struct weft_groups_due_out *row = weft_out_groups_due(&rows);
    for (size_t i = 0; i < rows.count; i++) {
        pass->count[ORPHANED] += row[i].orphan;
        if (row[i].flow.set)
            flow[count++] = row[i].flow.value;
    }
    if (count > 0)
        rc = mend_all(pass, dispatch, flow, count, &done, err);
    pass->count[DISPATCHED] = pass->report.handled = done.groups.dispatched;
    pass->count[GROUPS_LOCKED] = done.groups.skipped_locked;
    pass->count[DISPATCH_ERRORS] = pass->report.failed;
    pass->report.more = rows.count == pass->config->batch;
    return rc;
}

/* ---- edge_cancel_reconciler ------------------------------------------------------------------ */

enum { STALE_REMOVED, COMPLETED_DRAIN, NO_OP };
/* What groups_look says of a group. */
enum { GROUP_OPEN, GROUP_ORPHAN, GROUP_DRAINED };

struct reconcile {
    const struct weft_pass *pass;
    struct weft_id after;
    struct weft_rows rows; /* of the last try, as all below */
    struct weft_flows_held held;
    uint64_t stale, drained; /* groups that were removed */
};

/* Removes drained groups, under the locks of the flows: a replay could make siblings live. */
static enum weft_rc remove_drained(struct weft_tx *tx, struct reconcile *reconcile,
                                   struct weft_err *err)
{
    const struct weft_rows *rows = &reconcile->rows;
    struct weft_id *flow = weft_new_array(tx->arena, struct weft_id, rows->count + 1);
    struct weft_call call;
    struct weft_rows gone = {0};
    size_t flows = 0, count = 0;
    const struct weft_groups_look_out *row = weft_out_groups_look(rows);
    for (size_t i = 0; i < rows->count; i++)
        if (row[i].what.value == GROUP_DRAINED)
            flow[flows++] = row[i].flow.value;
    if (flows == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_flows_lock(tx, flow, flows, &reconcile->held, err);
    if (rc)
        return rc;
    struct weft_groups_drained_in *in = weft_call_groups_drained(&call, tx->arena, rows->count);
    for (size_t i = 0; i < rows->count; i++)
        if (row[i].what.value == GROUP_DRAINED &&
            weft_flows_find(&reconcile->held, &row[i].flow.value))
            in->row[count++].id = row[i].id.value;
    call.rows = count;
    rc = count ? weft_tx_run(tx, &call, 1, &gone, err) : WEFT_OK;
    reconcile->drained = gone.count;
    return rc;
}

static enum weft_rc reconcile_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct reconcile *reconcile = context;
    const struct weft_pass *pass = reconcile->pass;
    struct weft_call call;
    struct weft_rows rows = {0};
    *reconcile = (struct reconcile){.pass = pass, .after = reconcile->after};
    *weft_call_groups_look(&call, tx->arena) =
        (struct weft_groups_look_in){.after = reconcile->after, .scope = weft_pass_scope(pass)};
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &reconcile->rows, err);
    if (rc || reconcile->rows.count == 0)
        return rc;
    rc = remove_drained(tx, reconcile, err);
    /* A group without a flow has no namespace either: a pass over all namespaces removes it. */
    if (rc || pass->ns != 0)
        return rc;
    *weft_call_groups_orphaned(&call, tx->arena) =
        (struct weft_groups_orphaned_in){.after = reconcile->after, .batch = pass->config->batch};
    rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc)
        reconcile->stale = weft_out_groups_orphaned(&rows)->removed;
    return rc;
}

/* Where the next pass goes on. */
static void note_place(struct weft_engine *engine, const struct reconcile *reconcile)
{
    const struct weft_rows *rows = &reconcile->rows;
    struct weft_id place = {0};
    const struct weft_groups_look_out *row = weft_out_groups_look(rows);
    for (size_t i = rows->count; i > 0 && rows->count == reconcile->pass->config->batch; i--)
        if (row[i - 1].id.set) {
            place = row[i - 1].id.value;
            break;
        }
    pthread_mutex_lock(&engine->sample_lock);
    engine->reconciled = place;
    pthread_mutex_unlock(&engine->sample_lock);
}

/*
 * Removes stale groups of sibling cancel: left by a flow that was removed in part, or by siblings
 * that ended without the cascade. A pass walks the groups from where the last pass ended.
 */
enum weft_rc weft_edge_cancel_reconciler_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_engine *engine = pass->engine;
    struct reconcile reconcile = {.pass = pass};
    pthread_mutex_lock(&engine->sample_lock);
    reconcile.after = engine->reconciled;
    pthread_mutex_unlock(&engine->sample_lock);
    struct weft_tx tx = {.engine = engine, .arena = pass->arena};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, reconcile_body, &reconcile, err);
    if (rc)
        return rc;
    uint64_t removed = reconcile.stale + reconcile.drained, met = 0;
    for (size_t i = 0; i < reconcile.rows.count; i++)
        met += weft_out_groups_look(&reconcile.rows)[i].what.set;
    pass->count[STALE_REMOVED] = reconcile.stale;
    pass->count[COMPLETED_DRAIN] = reconcile.drained;
    pass->count[NO_OP] = met > removed ? met - removed : 0;
    pass->report.handled = removed;
    note_place(engine, &reconcile);
    /* Processes that found the flows locked left their work to this pass, the holder of the lock.
     */
    struct weft_commit_effects news = weft_news_new(tx.arena, tx.now_us);
    for (size_t i = 0; i < reconcile.held.count; i++)
        weft_news_flow(&news, &reconcile.held.item[i].id);
    weft_news_tell(engine, &news);
    return WEFT_OK;
}

/* ---- cancel_backlog -------------------------------------------------------------------------- */

enum { PROCESSED, CANCELLED, REMOVED, FLOWS_LOCKED };

/* Cancels the members of one flow in chunks. */
static enum weft_rc drain(struct weft_pass *pass, const struct weft_id *flow, struct weft_err *err)
{
    struct weft_flow_drain chunks = {.flow = *flow, .more = true};
    enum weft_rc rc = WEFT_OK;
    bool late = false;
    while (chunks.more && !chunks.locked && !rc && !late) {
        rc = weft_engine_flow_drain(pass->engine, &chunks, err);
        late = weft_flow_pass_late(pass);
    }
    pass->report.more |= chunks.more && !chunks.locked;
    pass->count[CANCELLED] += chunks.cancelled;
    pass->count[FLOWS_LOCKED] += chunks.locked;
    pass->count[PROCESSED] += !rc && !chunks.more;
    return rc;
}

static enum weft_rc drain_all(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_flows_backlog(&call, pass->arena)->scope = weft_pass_scope(pass);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (rc)
        return rc;
    pass->report.more = rows.count == pass->config->batch;
    for (size_t i = 0; i < rows.count && !rc; i++) {
        rc = drain(pass, &weft_out_flows_backlog(&rows)[i].id, err);
        if (weft_flow_pass_late(pass) && i + 1 < rows.count) {
            pass->report.more = true;
            break;
        }
    }
    return rc;
}

/*
 * Cancels the remaining members of cancelled flows, if the caller did not wait or died; and gives
 * flows whose submission was interrupted to the scanner `purge`.
 */
enum weft_rc weft_cancel_backlog_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    enum weft_rc rc = drain_all(pass, err);
    *weft_call_flows_unfinished(&call, pass->arena) = (struct weft_flows_unfinished_in){
        .before = weft_clock_now(pass->engine->clock) - WEFT_FLOW_STAGE_US,
        .scope = weft_pass_scope(pass)};
    if (!rc)
        rc = weft_tx_once(pass->engine, WEFT_TX_WRITE, &call, pass->arena, &rows, err);
    pass->count[REMOVED] = rows.count;
    pass->report.more |= rows.count >= pass->config->batch;
    pass->report.handled = pass->count[PROCESSED] + pass->count[CANCELLED] + pass->count[REMOVED];
    return rc;
}
