/* SPDX-License-Identifier: Apache-2.0 */

/* Executions whose deadline passed end as expired, whatever they were doing. */

#include "core/state.h"
#include "engine/job/change.h"
#include "engine/scan/pass.h"
#include "engine/scan/scan.h"

enum weft_rc weft_scan_execution_deadline(struct weft_scan *scan, struct weft_err *err)
{
    enum weft_rc rc = weft_scan_take(scan, WEFT_STMT_DUE_DEADLINES, err);
    for (size_t i = 0; i < scan->changes.count && !rc; i++) {
        struct weft_change *change = &scan->changes.change[i];
        change->by = "execution_deadline";
        change->reason = "its deadline passed";
        (void)weft_change_step(change, &(struct weft_event){.kind = WEFT_EVENT_EXPIRE});
    }
    return rc ? rc : weft_scan_write(scan, err);
}
