/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Moves batches on: writes members where a server died before it had written all of them, cancels
 * what a cancel came too early for, brings back lines that are retried, deletes the flow of a batch
 * that was deleted by a server which died then, sees to it that lines keep up with their windows,
 * and makes the counts of batches final whose flow has ended.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "engine/batch/batch.h"
#include "engine/engine_state.h"
#include "engine/scan/scan.h"
#include "weft/weft.h"

/* The order of the table in pass.c. */
enum { LOOKED, WRITTEN, MOVED, FINISHED, FAILED };

static bool has_work(const struct weft_batches_active_out *row, weft_usec now_us)
{
    bool open = row->flow_state.set && row->flow_state.value == WEFT_FLOW_OPEN;
    return row->phase == WEFT_BATCH_WRITING || !open || row->retry.set || row->look_at <= now_us ||
           (row->wanted.set && row->flow_cancel.value == WEFT_FLOW_CANCEL_NONE);
}

static enum weft_rc move_on(struct weft_pass *pass, const struct weft_batches_active_out *row,
                            struct weft_err *err)
{
    bool more = false;
    enum weft_rc rc = row->left_over ? weft_batch_delete_flow(pass->engine, row->ns, &row->id, err)
                                     : weft_engine_batch_step(pass->engine, &row->id, &more, err);
    pass->report.more |= more;
    pass->report.handled++;
    bool open = row->flow_state.set && row->flow_state.value == WEFT_FLOW_OPEN;
    pass->count[row->phase == WEFT_BATCH_WRITING ? WRITTEN : open ? MOVED : FINISHED] += !rc;
    pass->count[FAILED] += rc != WEFT_OK;
    return rc;
}

enum weft_rc weft_batch_progress_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_id after = {0};
    weft_usec now_us = weft_clock_now(pass->engine->clock);
    enum weft_rc first = WEFT_OK;
    if (pass->ns < 0) /* it has never had any work */
        return WEFT_OK;
    do {
        *weft_call_batches_active(&call, pass->arena) = (struct weft_batches_active_in){
            .ns = pass->ns, .after = after, .most = (int64_t)pass->config->batch};
        enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < rows.count; i++) {
            const struct weft_batches_active_out *row = &weft_out_batches_active(&rows)[i];
            pass->count[LOOKED]++;
            after = row->id;
            rc = row->left_over || has_work(row, now_us) ? move_on(pass, row, first ? NULL : err)
                                                         : WEFT_OK;
            first = first ? first : rc; /* one that fails does not hold up the others */
        }
    } while (rows.count == pass->config->batch);
    return first;
}
