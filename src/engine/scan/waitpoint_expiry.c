/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Closes pending waitpoints whose time has passed without a suspend that took them. A waitpoint
 * takes no signal from its time on, whether this has run or not: the pass takes it out of the index
 * of pending ones, and counts.
 */

#include "engine/engine_state.h"
#include "engine/scan/scan.h"

/* The order of the table in pass.c. */
enum { PROCESSED, SKIPPED_LOCKED };

static enum weft_rc expire(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct weft_pass *pass = context;
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    struct weft_scope_in scope = weft_pass_scope(pass);
    *weft_call_waitpoint_expire(&call[0], tx->arena) =
        (struct weft_waitpoint_expire_in){.now = tx->now_us, .scope = scope};
    *weft_call_waitpoint_next(&call[1], tx->arena) =
        (struct weft_waitpoint_next_in){.now = tx->now_us, .scope = scope};
    enum weft_rc rc = weft_tx_run(tx, call, 2, rows, err);
    if (rc)
        return rc;
    const struct weft_waitpoint_next_out *next = weft_out_waitpoint_next(&rows[1]);
    pass->count[PROCESSED] = pass->report.handled = rows[0].count;
    pass->count[SKIPPED_LOCKED] = (uint64_t)next->left;
    pass->report.more = rows[0].count == pass->config->batch;
    pass->report.next_due_us = next->due.set ? next->due.value : WEFT_NEVER;
    return WEFT_OK;
}

enum weft_rc weft_waitpoint_expiry_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_tx tx = {.engine = pass->engine, .arena = pass->arena};
    if (pass->ns < 0) /* it has never had any work */
        return WEFT_OK;
    return weft_tx_do(&tx, WEFT_TX_WRITE, expire, pass, err);
}
