/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Removes stale groups of sibling cancel: left by a flow that was removed in part, or by siblings
 * that ended without the cascade. A pass walks the groups from where the last pass ended.
 */

#include "base/arena.h"
#include "base/id.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade_read.h"
#include "engine/scan/flows.h"
#include "engine/scan/pass.h"
#include "engine/scan/scan.h"

/* The order of the table in pass.c. */
enum { STALE_REMOVED, COMPLETED_DRAIN, NO_OP, COUNTERS };
/* What groups_look says of a group. */
enum { GROUP_OPEN, GROUP_ORPHAN, GROUP_DRAINED };

struct reconcile {
    const struct weft_flow_scan *scan;
    struct weft_id after;
    struct weft_rows rows; /* of the last try, as all below */
    struct weft_flows_held held;
    uint64_t counter[COUNTERS];
};

/* Removes what is drained, under the locks of the flows: a replay could bring siblings back. */
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
    for (size_t i = 0; i < rows->count; i++) {
        if (row[i].what.value != GROUP_DRAINED)
            continue;
        if (weft_flows_find(&reconcile->held, &row[i].flow.value))
            in->row[count++].id = row[i].id.value;
    }
    call.rows = count;
    rc = count ? weft_tx_run(tx, &call, 1, &gone, err) : WEFT_OK;
    if (!rc && count)
        reconcile->counter[COMPLETED_DRAIN] = gone.count;
    return rc;
}

static enum weft_rc reconcile_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct reconcile *reconcile = context;
    const struct weft_flow_scan *scan = reconcile->scan;
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    *reconcile = (struct reconcile){.scan = scan, .after = reconcile->after};
    *weft_call_groups_look(&call[0], tx->arena) = (struct weft_groups_look_in){
        .after = reconcile->after, .scope = weft_flow_scan_scope(scan)};
    *weft_call_groups_orphaned(&call[1], tx->arena) =
        (struct weft_groups_orphaned_in){.after = reconcile->after, .batch = scan->config->batch};
    enum weft_rc rc = weft_tx_run(tx, &call[0], 1, &rows[0], err);
    if (rc || rows[0].count == 0)
        return rc;
    reconcile->rows = rows[0];
    rc = remove_drained(tx, reconcile, err);
    /* What is of no flow is of no namespace either: one that serves all sees to it. */
    if (!rc && scan->ns == 0)
        rc = weft_tx_run(tx, &call[1], 1, &rows[1], err);
    if (!rc && scan->ns == 0)
        reconcile->counter[STALE_REMOVED] = weft_out_groups_orphaned(&rows[1])->removed;
    return rc;
}

/* Processes that found the flows locked left their work to this pass, the holder of the lock. */
static void look_again(struct weft_engine *engine, const struct reconcile *reconcile,
                       const struct weft_tx *tx)
{
    struct weft_commit_effects news = weft_news_new(tx->arena, tx->now_us);
    for (size_t i = 0; i < reconcile->held.count; i++)
        weft_news_flow(&news, &reconcile->held.item[i].id);
    weft_news_tell(engine, &news);
}

/* Where the next pass goes on. */
static void note_place(struct weft_engine *engine, const struct reconcile *reconcile)
{
    const struct weft_rows *rows = &reconcile->rows;
    struct weft_id place = {0};
    const struct weft_groups_look_out *row = weft_out_groups_look(rows);
    for (size_t i = rows->count; i > 0 && rows->count == reconcile->scan->config->batch; i--)
        if (row[i - 1].id.set) {
            place = row[i - 1].id.value;
            break;
        }
    pthread_mutex_lock(&engine->sample_lock);
    engine->reconciled = place;
    pthread_mutex_unlock(&engine->sample_lock);
}

enum weft_rc weft_edge_cancel_reconciler_run(struct weft_engine *engine,
                                             const struct weft_pass_config *config,
                                             struct weft_pass_report *ret_report,
                                             struct weft_err *err)
{
    struct weft_flow_scan scan;
    enum weft_rc rc = weft_flow_scan_begin(engine, config, &scan, err);
    if (rc)
        return rc;
    struct reconcile reconcile = {.scan = &scan};
    pthread_mutex_lock(&engine->sample_lock);
    reconcile.after = engine->reconciled;
    pthread_mutex_unlock(&engine->sample_lock);
    struct weft_tx tx = {.engine = engine, .arena = scan.arena};
    rc = weft_tx_do(&tx, WEFT_TX_WRITE, reconcile_body, &reconcile, err);
    if (!rc) {
        uint64_t *counter = reconcile.counter;
        for (size_t i = 0; i < reconcile.rows.count; i++)
            counter[NO_OP] += weft_out_groups_look(&reconcile.rows)[i].what.set;
        uint64_t removed = counter[STALE_REMOVED] + counter[COMPLETED_DRAIN];
        counter[NO_OP] -= removed < counter[NO_OP] ? removed : counter[NO_OP];
        note_place(engine, &reconcile);
        look_again(engine, &reconcile, &tx);
        *ret_report = (struct weft_pass_report){.handled = removed, .next_due_us = WEFT_NEVER};
        weft_pass_count(ret_report, WEFT_SCANNER_EDGE_CANCEL_RECONCILER, counter);
    }
    weft_flow_scan_end(&scan);
    return rc;
}
