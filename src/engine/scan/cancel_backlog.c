/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cancels the remaining members of cancelled flows, if the caller did not wait or died; and removes
 * flows whose submission was interrupted.
 */

#include "base/clock.h"
#include "engine/engine_state.h"
#include "engine/flow/flow_cancel.h"
#include "engine/scan/flows.h"
#include "engine/scan/pass.h"
#include "engine/scan/scan.h"

/* The order of the table in pass.c. */
enum { PROCESSED, CANCELLED, REMOVED, SKIPPED_LOCKED, COUNTERS };

/* Cancels the members of one flow in chunks. True: there is more of it. */
static enum weft_rc drain(const struct weft_flow_scan *scan, const struct weft_id *flow,
                          uint64_t counter[COUNTERS], bool *ret_more, struct weft_err *err)
{
    struct weft_flow_drain chunks = {.flow = *flow, .more = true};
    enum weft_rc rc = WEFT_OK;
    bool late = false;
    while (chunks.more && !chunks.locked && !rc && !late) {
        rc = weft_engine_flow_drain(scan->engine, &chunks, err);
        late = weft_flow_scan_late(scan);
    }
    *ret_more |= chunks.more && !chunks.locked;
    counter[CANCELLED] += chunks.cancelled;
    counter[SKIPPED_LOCKED] += chunks.locked;
    counter[PROCESSED] += !rc && !chunks.more;
    return rc;
}

static enum weft_rc drain_all(const struct weft_flow_scan *scan, uint64_t counter[COUNTERS],
                              bool *ret_more, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_flows_backlog(&call, scan->arena)->scope = weft_flow_scan_scope(scan);
    enum weft_rc rc = weft_tx_once(scan->engine, WEFT_TX_READ, &call, scan->arena, &rows, err);
    if (rc)
        return rc;
    *ret_more = rows.count == scan->config->batch;
    for (size_t i = 0; i < rows.count && !rc; i++) {
        rc = drain(scan, &weft_out_flows_backlog(&rows)[i].id, counter, ret_more, err);
        if (weft_flow_scan_late(scan) && i + 1 < rows.count) {
            *ret_more = true;
            break;
        }
    }
    return rc;
}

/* Removes flows whose submission was interrupted. */
static enum weft_rc give_up(const struct weft_flow_scan *scan, uint64_t counter[COUNTERS],
                            bool *ret_more, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    struct weft_erased erased = {0};
    *weft_call_flows_unfinished(&call, scan->arena) = (struct weft_flows_unfinished_in){
        .before = weft_clock_now(scan->engine->clock) - WEFT_FLOW_STAGE_US,
        .scope = weft_flow_scan_scope(scan)};
    enum weft_rc rc = weft_tx_once(scan->engine, WEFT_TX_WRITE, &call, scan->arena, &rows, err);
    if (!rc)
        rc = weft_flows_erase(scan, &erased, err);
    counter[REMOVED] += erased.flows;
    counter[SKIPPED_LOCKED] += erased.skipped_locked;
    *ret_more |= erased.more;
    return rc;
}

enum weft_rc weft_cancel_backlog_run(struct weft_engine *engine,
                                     const struct weft_pass_config *config,
                                     struct weft_pass_report *ret_report, struct weft_err *err)
{
    struct weft_flow_scan scan;
    uint64_t counter[COUNTERS] = {0};
    bool more = false;
    enum weft_rc rc = weft_flow_scan_begin(engine, config, &scan, err);
    if (rc)
        return rc;
    rc = drain_all(&scan, counter, &more, err);
    if (!rc)
        rc = give_up(&scan, counter, &more, err);
    if (!rc) {
        *ret_report = (struct weft_pass_report){.handled = counter[PROCESSED] + counter[CANCELLED] +
                                                           counter[REMOVED],
                                                .more = more,
                                                .next_due_us = WEFT_NEVER};
        weft_pass_count(ret_report, WEFT_SCANNER_CANCEL_BACKLOG, counter);
    }
    weft_flow_scan_end(&scan);
    return rc;
}
