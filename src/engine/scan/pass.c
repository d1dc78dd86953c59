/* SPDX-License-Identifier: Apache-2.0 */

/* The table of passes, and what all of them share. */

#include "engine/scan/scan.h"

#include <assert.h>

/* clang-format off */
static const struct {
    const char *name;
    weft_scan_fn *run;
    size_t next_due; /* the column of next_due that tells when it has work again, or NO_TIMER */
} passes[WEFT_PASS_COUNT] = {
#define NO_TIMER SIZE_MAX
#define DUE(column) NEXT_DUE_OUT_##column
    [WEFT_PASS_INTAKE]           = {"intake", NULL, NO_TIMER},
    [WEFT_PASS_LEASE_EXPIRY]     = {"lease_expiry", weft_scan_lease_expiry, DUE(LEASE)},
    [WEFT_PASS_ATTEMPT_TIMEOUT]  = {"attempt_timeout", weft_scan_attempt_timeout, DUE(ATTEMPT)},
    [WEFT_PASS_DELAYED_PROMOTER] = {"delayed_promoter", weft_scan_delayed_promoter, DUE(DELAYED)},
    [WEFT_PASS_EXECUTION_DEADLINE] =
        {"execution_deadline", weft_scan_execution_deadline, DUE(DEADLINE)},
};
/* clang-format on */

const char *weft_pass_name(enum weft_pass pass)
{
    return (unsigned)pass < WEFT_PASS_COUNT ? passes[pass].name : "unknown";
}

enum weft_rc weft_scan_take(struct weft_scan *scan, enum weft_stmt stmt, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, scan->tx->arena, stmt, 0);
    weft_set_i64(&call, 0, DUE_LEASES_IN_NOW, scan->tx->now_us);
    weft_set_i64(&call, 0, DUE_LEASES_IN_BATCH, scan->batch);
    enum weft_rc rc = weft_tx_run(scan->tx, &call, 1, &rows, err);
    if (!rc)
        scan->changes = weft_change_rows(&rows, scan->tx->arena);
    return rc;
}

enum weft_rc weft_scan_write(struct weft_scan *scan, struct weft_err *err)
{
    for (size_t i = 0; i < scan->changes.count; i++) {
        const struct weft_change *change = &scan->changes.change[i];
        scan->report.handled += change->apply;
        scan->report.failed += change->apply && !weft_state_living(change->step.after.state);
    }
    scan->report.more = scan->changes.count == scan->batch;
    return scan->changes.count ? weft_change_write(scan->tx, &scan->changes, err) : WEFT_OK;
}

void weft_pass_due(const struct weft_rows *rows, size_t row, size_t first,
                   weft_usec ret_due_us[WEFT_PASS_COUNT])
{
    for (size_t i = 0; i < WEFT_PASS_COUNT; i++) {
        ret_due_us[i] = WEFT_NEVER;
        if (passes[i].next_due != NO_TIMER &&
            !weft_get(rows, row, first + passes[i].next_due)->null)
            ret_due_us[i] = weft_get_i64(rows, row, first + passes[i].next_due);
    }
}

struct pass_call {
    enum weft_pass pass;
    struct weft_scan scan;
    uint32_t batch;
};

static enum weft_rc pass_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct pass_call *call = context;
    call->scan = (struct weft_scan){.tx = tx, .batch = call->batch};
    call->scan.report.next_due_us = WEFT_NEVER;
    enum weft_rc rc = passes[call->pass].run(&call->scan, err);
    if (rc || call->scan.report.more || passes[call->pass].next_due == NO_TIMER)
        return rc;
    struct weft_call ask;
    struct weft_rows rows;
    weft_call_init(&ask, tx->arena, WEFT_STMT_NEXT_DUE, 0);
    rc = weft_tx_run(tx, &ask, 1, &rows, err);
    if (rc)
        return rc;
    weft_usec due_us[WEFT_PASS_COUNT];
    weft_pass_due(&rows, 0, 0, due_us);
    call->scan.report.next_due_us = due_us[call->pass];
    return WEFT_OK;
}

enum weft_rc weft_engine_pass(struct weft_engine *engine, enum weft_pass pass, uint32_t batch,
                              struct weft_pass_report *ret_report, struct weft_err *err)
{
    if ((unsigned)pass >= WEFT_PASS_COUNT)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "pass", "there is no such pass");
    if (batch > WEFT_BATCH_MAX)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "batch", "batch is %u, at most %d", batch,
                               WEFT_BATCH_MAX);
    if (pass == WEFT_PASS_INTAKE) /* several transactions: see there */
        return weft_intake_run(engine, batch ? batch : WEFT_BATCH_MAX, ret_report, err);
    struct pass_call call = {.pass = pass, .batch = batch ? batch : WEFT_BATCH_MAX};
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, pass_body, &call, err);
    if (!rc) {
        struct weft_tidings news = weft_news_new(tx.arena, tx.now_us);
        weft_change_news(&news, &call.scan.changes);
        for (size_t i = 0; i < call.scan.promoted.count; i++)
            weft_news_of(&news, call.scan.promoted.id[i])->ready++;
        weft_news_tell(engine, &news);
        *ret_report = call.scan.report;
    }
    weft_arena_free(tx.arena);
    return rc;
}
