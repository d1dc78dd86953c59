/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Removes stale groups of sibling cancel: left by a flow that was removed in part, or by siblings
 * that ended without the cascade. A pass walks the groups from where the last pass ended.
 */

#include "engine/scan/flows.h"

#include "base/id.h"

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
    struct weft_rows gone;
    size_t flows = 0, count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (weft_get_i64(rows, i, GROUPS_LOOK_OUT_WHAT) == GROUP_DRAINED)
            flow[flows++] = weft_get_id(rows, i, GROUPS_LOOK_OUT_FLOW);
    if (flows == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_flows_lock(tx, flow, flows, &reconcile->held, err);
    if (rc)
        return rc;
    weft_call_init(&call, tx->arena, WEFT_STMT_GROUPS_DRAINED, rows->count);
    for (size_t i = 0; i < rows->count; i++) {
        if (weft_get_i64(rows, i, GROUPS_LOOK_OUT_WHAT) != GROUP_DRAINED)
            continue;
        struct weft_id of = weft_get_id(rows, i, GROUPS_LOOK_OUT_FLOW);
        struct weft_id id = weft_get_id(rows, i, GROUPS_LOOK_OUT_ID);
        if (weft_flows_find(&reconcile->held, &of))
            weft_set_id(&call, count++, GROUPS_DRAINED_IN_ID,
                        weft_arena_dup(tx->arena, &id, sizeof(id)));
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
    struct weft_rows rows[2];
    *reconcile = (struct reconcile){.scan = scan, .after = reconcile->after};
    weft_call_init(&call[0], tx->arena, WEFT_STMT_GROUPS_LOOK, 0);
    weft_set_id(&call[0], 0, GROUPS_LOOK_IN_AFTER, &reconcile->after);
    weft_flow_scan_call(scan, GROUPS_LOOK_IN_BATCH, &call[0]);
    weft_call_init(&call[1], tx->arena, WEFT_STMT_GROUPS_ORPHANED, 0);
    weft_set_id(&call[1], 0, GROUPS_ORPHANED_IN_AFTER, &reconcile->after);
    weft_set_i64(&call[1], 0, GROUPS_ORPHANED_IN_BATCH, scan->config->batch);
    enum weft_rc rc = weft_tx_run(tx, &call[0], 1, &rows[0], err);
    if (rc || rows[0].count == 0)
        return rc;
    reconcile->rows = rows[0];
    rc = remove_drained(tx, reconcile, err);
    /* What is of no flow is of no namespace either: one that serves all sees to it. */
    if (!rc && scan->ns == 0)
        rc = weft_tx_run(tx, &call[1], 1, &rows[1], err);
    if (!rc && scan->ns == 0)
        reconcile->counter[STALE_REMOVED] =
            (uint64_t)weft_get_i64(&rows[1], 0, GROUPS_ORPHANED_OUT_REMOVED);
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
    for (size_t i = rows->count; i > 0 && rows->count == reconcile->scan->config->batch; i--)
        if (!weft_get(rows, i - 1, GROUPS_LOOK_OUT_ID)->null) {
            place = weft_get_id(rows, i - 1, GROUPS_LOOK_OUT_ID);
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
        for (size_t i = 0; i < reconcile.rows.count; i++) {
            const struct weft_cell *what = weft_get(&reconcile.rows, i, GROUPS_LOOK_OUT_WHAT);
            counter[NO_OP] += !what->null;
        }
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
