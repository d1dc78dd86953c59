/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Removing flows. Members of a flow are kept as long as their flow is: its graph would have holes
 * otherwise. A flow that goes is marked first, under its lock; from then on no reader sees it, no
 * call replays its members, and its key is free. Then its members go in chunks, each in a
 * transaction of its own, and the flow at last. A member goes when no edge leaves it any more, and
 * a transaction takes no more than WEFT_FLOW_CHUNK edges: what has more of them takes several. A
 * crash leaves the mark, and the next pass goes on.
 */

#include "engine/scan/flows.h"

#include "engine/job/span.h"

#include <time.h>

enum { CHUNK = 250 }; /* members of one transaction: their payloads go with them */
#define PAUSE_MOST_US (5 * WEFT_MS)

struct erase_call {
    const struct weft_id *flow;
    /* What the transaction did. */
    bool held, gone;
    uint64_t members;
};

static enum weft_rc erase_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct erase_call *erase = context;
    struct weft_flows_held held;
    struct weft_call call[2];
    struct weft_rows rows[2];
    *erase = (struct erase_call){.flow = erase->flow};
    enum weft_rc rc = weft_flows_lock(tx, erase->flow, 1, &held, err);
    if (rc || held.count == 0 || held.item[0].state != WEFT_FLOW_REMOVING)
        return rc;
    erase->held = true;
    weft_call_init(&call[0], tx->arena, WEFT_STMT_GRAPH_REMOVE, 0);
    weft_set_id(&call[0], 0, GRAPH_REMOVE_IN_FLOW, erase->flow);
    weft_set_i64(&call[0], 0, GRAPH_REMOVE_IN_MEMBERS, CHUNK);
    weft_set_i64(&call[0], 0, GRAPH_REMOVE_IN_CHUNK, (int64_t)weft_flow_chunk(tx));
    weft_call_init(&call[1], tx->arena, WEFT_STMT_MEMBERS_REMOVE, 0);
    weft_set_id(&call[1], 0, MEMBERS_REMOVE_IN_FLOW, erase->flow);
    weft_set_i64(&call[1], 0, MEMBERS_REMOVE_IN_CHUNK, CHUNK);
    rc = weft_tx_run(tx, call, 2, rows, err);
    if (rc)
        return rc;
    erase->members = rows[1].count;
    struct weft_span_row *gone = weft_new_array(tx->arena, struct weft_span_row, rows[1].count + 1);
    for (size_t i = 0; i < rows[1].count; i++)
        gone[i] = (struct weft_span_row){
            .id = weft_get_id(&rows[1], i, MEMBERS_REMOVE_OUT_ID),
            .ns = (int32_t)weft_get_i64(&rows[1], i, MEMBERS_REMOVE_OUT_NAMESPACE)};
    rc = weft_spans_remove(tx, gone, rows[1].count, err);
    if (rc)
        return rc;
    erase->gone = erase->members < CHUNK && !weft_get_i64(&rows[0], 0, GRAPH_REMOVE_OUT_MORE);
    if (!erase->gone)
        return WEFT_OK;
    weft_call_init(&call[0], tx->arena, WEFT_STMT_FLOW_ERASE, 0);
    weft_set_id(&call[0], 0, FLOW_ERASE_IN_FLOW, erase->flow);
    return weft_tx_run(tx, call, 1, NULL, err);
}

/* No caller waits for this: other calls have their turn between two chunks. */
static void rest(weft_usec worked_us)
{
    weft_usec pause_us = worked_us / 2 < PAUSE_MOST_US ? worked_us / 2 : PAUSE_MOST_US;
    const struct timespec pause = {.tv_nsec = pause_us * 1000};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static enum weft_rc erase_flow(const struct weft_flow_scan *scan, const struct weft_id *flow,
                               struct weft_erased *erased, struct weft_err *err)
{
    struct erase_call erase = {.flow = flow, .held = true};
    enum weft_rc rc = WEFT_OK;
    while (erase.held && !erase.gone && !rc && !weft_flow_scan_late(scan)) {
        struct weft_tx tx = {.engine = scan->engine, .arena = weft_arena_new()};
        weft_usec began_us = weft_boot_us();
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, erase_body, &erase, err);
        weft_arena_free(tx.arena);
        if (rc)
            return rc;
        erased->members += erase.members;
        erased->flows += erase.gone;
        if (!erase.gone)
            rest(weft_boot_us() - began_us);
    }
    erased->skipped_locked += !erase.held;
    erased->more |= erase.held && !erase.gone;
    return rc;
}

enum weft_rc weft_flows_erase(const struct weft_flow_scan *scan, struct weft_erased *ret_erased,
                              struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, scan->arena, WEFT_STMT_FLOWS_REMOVING, 0);
    weft_flow_scan_call(scan, FLOWS_REMOVING_IN_BATCH, &call);
    enum weft_rc rc = weft_tx_once(scan->engine, WEFT_TX_READ, &call, scan->arena, &rows, err);
    for (size_t i = 0; i < rows.count && !rc; i++) {
        struct weft_id flow = weft_get_id(&rows, i, FLOWS_REMOVING_OUT_ID);
        rc = erase_flow(scan, &flow, ret_erased, err);
    }
    if (!rc && rows.count == scan->config->batch)
        ret_erased->more = true;
    return rc;
}

/* ---- Retention ------------------------------------------------------------------------------- */

/* How long a flow is kept: as an execution that ended so and has no rules of its own. */
static weft_usec keeps(enum weft_flow_state state)
{
    static const enum weft_state like[] = {
        [WEFT_FLOW_SUCCEEDED] = WEFT_STATE_SUCCEEDED,
        [WEFT_FLOW_FAILED] = WEFT_STATE_FAILED,
        [WEFT_FLOW_CANCELLED] = WEFT_STATE_CANCELLED,
    };
    const struct weft_rules none = {0};
    return weft_policy_keeps(&none, 0, like[state]);
}

/* Marks what is to go. */
static enum weft_rc mark(const struct weft_flow_scan *scan, struct weft_err *err)
{
    static const enum weft_flow_state ended[] = {WEFT_FLOW_SUCCEEDED, WEFT_FLOW_FAILED,
                                                 WEFT_FLOW_CANCELLED};
    struct weft_call call;
    weft_usec now_us = weft_clock_now(scan->engine->clock);
    weft_call_init(&call, scan->arena, WEFT_STMT_FLOWS_KEPT, WEFT_LEN(ended));
    for (size_t i = 0; i < WEFT_LEN(ended); i++) {
        weft_set_i64(&call, i, FLOWS_KEPT_IN_STATE, ended[i]);
        weft_set_i64(&call, i, FLOWS_KEPT_IN_UNTIL, now_us - keeps(ended[i]));
    }
    weft_flow_scan_call(scan, FLOWS_KEPT_IN_BATCH, &call);
    enum weft_rc rc = weft_tx_once(scan->engine, WEFT_TX_WRITE, &call, scan->arena, NULL, err);
    if (rc)
        return rc;
    weft_call_init(&call, scan->arena, WEFT_STMT_FLOWS_DELETED, 0);
    weft_flow_scan_call(scan, FLOWS_DELETED_IN_BATCH, &call);
    return weft_tx_once(scan->engine, WEFT_TX_WRITE, &call, scan->arena, NULL, err);
}

enum weft_rc weft_flows_retire(struct weft_engine *engine, const struct weft_pass_config *config,
                               struct weft_erased *ret_erased, struct weft_err *err)
{
    struct weft_flow_scan scan;
    enum weft_rc rc = weft_flow_scan_begin(engine, config, &scan, err);
    if (rc)
        return rc;
    rc = mark(&scan, err);
    if (!rc)
        rc = weft_flows_erase(&scan, ret_erased, err);
    weft_flow_scan_end(&scan);
    return rc;
}
