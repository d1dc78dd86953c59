/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs the cascade of flows whose completions were left: the replica that committed them died, or
 * its cascade failed. A locked flow is left to the process that holds the lock.
 */

#include "base/arena.h"
#include "engine/flow/cascade.h"
#include "engine/scan/flows.h"
#include "engine/scan/pass.h"
#include "engine/scan/scan.h"
#include "store/store.h"
#include "weft/admin.h"

/* The order of the table in pass.c. */
enum { SCANNED, RECONCILED, NOOP, ERRORS, COUNTERS };

/* All flows together, the first hops here and the rest by the listener; if that fails, one by one,
 * so that one bad flow does not stop the others. */
static enum weft_rc cascade_all(struct weft_engine *engine, const struct weft_id *flow,
                                size_t count, uint64_t counter[COUNTERS], struct weft_err *err)
{
    struct weft_cascaded done = {0};
    enum weft_rc rc = weft_cascade_some(engine, flow, count, WEFT_FLOW_PASS_HOPS, &done, err);
    for (size_t i = 0; i < count && rc && count > 1; i++) {
        struct weft_err story;
        counter[ERRORS] +=
            weft_cascade_some(engine, &flow[i], 1, WEFT_FLOW_PASS_HOPS, &done, &story) != WEFT_OK;
    }
    counter[RECONCILED] += done.completions;
    return counter[ERRORS] < count && count > 1 ? WEFT_OK : rc;
}

enum weft_rc weft_dependency_run(struct weft_engine *engine, const struct weft_pass_config *config,
                                 struct weft_pass_report *ret_report, struct weft_err *err)
{
    struct weft_flow_scan scan;
    struct weft_rows rows = {0};
    uint64_t counter[COUNTERS] = {0};
    enum weft_rc rc = weft_flow_scan_begin(engine, config, &scan, err);
    if (rc)
        return rc;
    rc = weft_flow_scan_look(&scan, WEFT_STMT_COMPLETION_DUE, &rows, err);
    if (!rc && rows.count > 0) {
        struct weft_id *flow = weft_new_array(scan.arena, struct weft_id, rows.count);
        for (size_t i = 0; i < rows.count; i++) {
            const struct weft_completion_due_out *row = &weft_out_completion_due(&rows)[i];
            flow[i] = row->flow;
            counter[SCANNED] += row->completions;
        }
        rc = cascade_all(engine, flow, rows.count, counter, err);
    }
    if (!rc) {
        if (counter[SCANNED] > counter[RECONCILED])
            counter[NOOP] = counter[SCANNED] - counter[RECONCILED];
        *ret_report = (struct weft_pass_report){.handled = counter[RECONCILED],
                                                .failed = counter[ERRORS],
                                                .more = rows.count == config->batch,
                                                .next_due_us = WEFT_NEVER};
        weft_pass_count(ret_report, WEFT_SCANNER_DEPENDENCY, counter);
    }
    weft_flow_scan_end(&scan);
    return rc;
}
