/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leases that ran out: the worker died without a result. The execution is ready again under the
 * same attempt number; only the count of lost leases grows, and past its cap the execution is a
 * poison pill and fails with lost_too_often. Leases that ran out while no server accepted renewals
 * are not counted. The same pass removes `draining` rows whose lease time has run out.
 */

#include "base/arena.h"
#include "core/policy.h"
#include "core/state.h"
#include "engine/job/change.h"
#include "engine/names/names.h"
#include "engine/scan/attempt_timeout.h"
#include "engine/scan/pass.h"
#include "engine/scan/scan.h"
#include "engine/tx/tx.h"
#include "store/store.h"

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

/* The slots of leases that others ended, and that would have run out by now, are free. */
static void free_slots(struct weft_scan *scan)
{
    const struct weft_rows *rows = &scan->beside_rows;
    scan->freed =
        (struct weft_id_list){.id = weft_new_array(scan->tx->arena, int32_t, rows->count + 1)};
    for (size_t i = 0; i < rows->count; i++)
        scan->freed.id[scan->freed.count++] = weft_out_draining_expire(rows)[i].queue;
    scan->report.more |= rows->count == scan->config->batch;
}

enum weft_rc weft_scan_lease_expiry(struct weft_scan *scan, struct weft_err *err)
{
    struct weft_call expire;
    weft_scan_call(scan, WEFT_STMT_DRAINING_EXPIRE, &expire);
    scan->beside = &expire;
    enum weft_rc rc = weft_scan_take(scan, WEFT_STMT_DUE_LEASES, err);
    scan->beside = NULL;
    if (!rc)
        rc = weft_change_rules(scan->tx, &scan->changes, err);
    for (size_t i = 0; i < scan->changes.count && !rc; i++) {
        struct weft_change *change = &scan->changes.change[i];
        if (weft_attempt_overdue(&change->before, scan->tx->now_us))
            weft_scan_time_out(scan, change);
        else
            lose(scan, change);
    }
    if (!rc)
        rc = weft_scan_write(scan, err);
    if (!rc)
        free_slots(scan);
    return rc;
}
