/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Attempts that took too long. A timeout uses an attempt like a failure: the execution waits for
 * its backoff, or ends when no attempt is left. The worker is fenced from here on.
 */

#include "engine/scan/attempt_timeout.h"

#include "base/id.h"
#include "core/policy.h"
#include "core/state.h"
#include "engine/job/change.h"
#include "engine/names/names.h"
#include "engine/scan/pass.h"
#include "engine/scan/scan.h"
#include "engine/tx/tx.h"

void weft_scan_time_out(struct weft_scan *scan, struct weft_change *change)
{
    struct weft_fault_report report = {
        .how = WEFT_ENDED_TIMED_OUT,
        .error_class = "attempt_timeout",
        .now_us = scan->tx->now_us,
    };
    weft_random(&report.random, sizeof(report.random));
    struct weft_event event = weft_retry_decide(
        weft_find_rules(scan->tx->engine, change->before.policy), &change->before, &report);
    change->by = "attempt_timeout";
    change->error_class = report.error_class;
    change->error_message = "the attempt took longer than its policy allows";
    (void)weft_change_step(change, &event); /* running rows only: the statements say so */
}

enum weft_rc weft_scan_attempt_timeout(struct weft_scan *scan, struct weft_err *err)
{
    enum weft_rc rc = weft_scan_take(scan, WEFT_STMT_DUE_ATTEMPTS, err);
    if (!rc)
        rc = weft_change_rules(scan->tx, &scan->changes, err);
    for (size_t i = 0; i < scan->changes.count && !rc; i++)
        weft_scan_time_out(scan, &scan->changes.change[i]);
    return rc ? rc : weft_scan_write(scan, err);
}
