/* SPDX-License-Identifier: Apache-2.0 */

/* Delayed executions whose time has come become ready. No decision is needed: one statement. */

#include "base/arena.h"
#include "engine/scan/pass.h"
#include "engine/scan/scan.h"
#include "engine/tx/tx.h"
#include "store/store.h"

enum weft_rc weft_scan_delayed_promoter(struct weft_scan *scan, struct weft_err *err)
{
    struct weft_rows rows = {0};
    enum weft_rc rc = weft_scan_due(scan, WEFT_STMT_PROMOTE_DUE, &rows, err);
    if (rc)
        return rc;
    scan->promoted.id = weft_new_array(scan->tx->arena, int32_t, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++)
        scan->promoted.id[scan->promoted.count++] = weft_out_promoted(&rows, i)->queue;
    scan->report.handled = rows.count;
    scan->report.more = scan->turns.on;
    return WEFT_OK;
}
