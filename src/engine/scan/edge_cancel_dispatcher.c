/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Dispatches groups of sibling cancel that were left: the replica whose cascade added them died, or
 * the join that they waited for fired on another replica. Cancels their siblings and runs the
 * cascade of these ends.
 */

#include "base/arena.h"
#include "engine/flow/cascade.h"
#include "engine/flow/sibling.h"
#include "engine/scan/flows.h"
#include "engine/scan/pass.h"
#include "engine/scan/scan.h"
#include "store/store.h"
#include "weft/admin.h"

/* The order of the table in pass.c. */
enum { DISPATCHED, ORPHANED, SKIPPED_LOCKED, ERRORS, COUNTERS };

static enum weft_rc dispatch(struct weft_engine *engine, const struct weft_id *flow, size_t count,
                             struct weft_dispatched *done, struct weft_err *err)
{
    struct weft_cascaded cascaded = {0};
    enum weft_rc rc = weft_siblings_cancel(engine, flow, count, done, err);
    if (!rc) /* dispatches groups deferred while a replay was still propagating */
        rc = weft_cascade_some(engine, flow, count, WEFT_FLOW_PASS_HOPS, &cascaded, err);
    done->dispatched += cascaded.groups.dispatched;
    return rc;
}

/* All at once; when that fails, one by one. */
static enum weft_rc dispatch_all(struct weft_engine *engine, const struct weft_id *flow,
                                 size_t count, uint64_t counter[COUNTERS], struct weft_err *err)
{
    struct weft_dispatched done = {0};
    enum weft_rc rc = dispatch(engine, flow, count, &done, err);
    for (size_t i = 0; i < count && rc && count > 1; i++) {
        struct weft_err story;
        counter[ERRORS] += dispatch(engine, &flow[i], 1, &done, &story) != WEFT_OK;
    }
    counter[DISPATCHED] += done.dispatched;
    counter[SKIPPED_LOCKED] += done.skipped_locked;
    return counter[ERRORS] < count && count > 1 ? WEFT_OK : rc;
}

enum weft_rc weft_edge_cancel_dispatcher_run(struct weft_engine *engine,
                                             const struct weft_pass_config *config,
                                             struct weft_pass_report *ret_report,
                                             struct weft_err *err)
{
    struct weft_flow_scan scan;
    struct weft_rows rows = {0};
    uint64_t counter[COUNTERS] = {0};
    enum weft_rc rc = weft_flow_scan_begin(engine, config, &scan, err);
    if (rc)
        return rc;
    rc = weft_flow_scan_look(&scan, WEFT_STMT_GROUPS_DUE, &rows, err);
    if (!rc && rows.count > 0) {
        struct weft_id *flow = weft_new_array(scan.arena, struct weft_id, rows.count);
        size_t count = 0;
        for (size_t i = 0; i < rows.count; i++) {
            const struct weft_groups_due_out *row = &weft_out_groups_due(&rows)[i];
            counter[ORPHANED] += row->orphan;
            if (row->flow.set)
                flow[count++] = row->flow.value;
        }
        if (count > 0)
            rc = dispatch_all(engine, flow, count, counter, err);
    }
    if (!rc) {
        *ret_report = (struct weft_pass_report){.handled = counter[DISPATCHED],
                                                .failed = counter[ERRORS],
                                                .more = rows.count == config->batch,
                                                .next_due_us = WEFT_NEVER};
        weft_pass_count(ret_report, WEFT_SCANNER_EDGE_CANCEL_DISPATCHER, counter);
    }
    weft_flow_scan_end(&scan);
    return rc;
}
