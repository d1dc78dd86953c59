/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leases that ran out: the worker died, nothing was decided. The execution is ready again under the
 * same attempt number; only the count of lost leases grows, and past its cap the execution is a
 * poison pill and fails with lost_too_often. What ran out while nobody could renew is not counted.
 */

#include "core/retry.h"
#include "engine/scan/scan.h"

static void lose(struct weft_scan *scan, struct weft_change *change)
{
    const struct weft_rules *rules = weft_find_rules(scan->tx->engine, change->before.policy);
    struct weft_event event = weft_lost_decide(rules, &change->before, scan->config->forgive_us);
    change->by = "lease_expiry";
    if (weft_change_step(change, &event) && event.kind == WEFT_EVENT_FAIL) {
        change->error_class = "lost_too_often";
        change->error_message = "its lease ran out too often: the workers that took it died";
    }
}

enum weft_rc weft_scan_lease_expiry(struct weft_scan *scan, struct weft_err *err)
{
    enum weft_rc rc = weft_scan_take(scan, WEFT_STMT_DUE_LEASES, err);
    if (!rc)
        rc = weft_change_rules(scan->tx, &scan->changes, err);
    for (size_t i = 0; i < scan->changes.count && !rc; i++) {
        struct weft_change *change = &scan->changes.change[i];
        if (weft_attempt_overdue(&change->before, scan->tx->now_us))
            weft_scan_time_out(scan, change);
        else
            lose(scan, change);
    }
    return rc ? rc : weft_scan_write(scan, err);
}
