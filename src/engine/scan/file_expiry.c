/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Hides files whose time has come, and uploads that broke off with their server: no chunk has come
 * for an hour. A file is gone for readers at its time, whether this has run or not. What is hidden
 * is removed later, by others.
 */

#include "engine/engine_state.h"
#include "engine/scan/scan.h"

#define UPLOAD_PAUSE_US ((weft_usec)3600 * WEFT_SECOND)

/* The order of the table in pass.c. */
enum { PROCESSED };

static enum weft_rc expire(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct weft_pass *pass = context;
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_files_expire(&call, tx->arena) =
        (struct weft_files_expire_in){.now = tx->now_us,
                                      .before = tx->now_us - UPLOAD_PAUSE_US,
                                      .batch = (int64_t)pass->config->batch,
                                      .ns = pass->ns};
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    pass->count[PROCESSED] = pass->report.handled = rows.count;
    pass->report.more = rows.count >= pass->config->batch;
    return WEFT_OK;
}

enum weft_rc weft_file_expiry_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_tx tx = {.engine = pass->engine, .arena = pass->arena};
    if (pass->ns < 0) /* it has never had any work */
        return WEFT_OK;
    return weft_tx_do(&tx, WEFT_TX_WRITE, expire, pass, err);
}
