/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Retries and deletes of whole batches.
 *
 * A retry is a mark on the row of the batch: the lines that had ended badly until that moment are
 * to run again. Then the members are walked in the order of the file, a page at a time: those lines
 * are replayed, and the mark moves on. Any process goes on with the walk after a crash, and several
 * may walk at once: a line that one of them has replayed lives, or ended after the moment, so no
 * other replays it. The counts are not made final before the walk has come to its end (batch_hold),
 * even if the lines that it brought back first end before it comes to the last ones.
 *
 * The moment is that of the last bad end that the mark has seen: the clocks of other processes may
 * be ahead by a little, and no line that was counted may be left out.
 */

#include "engine/batch/batch_view.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "core/state.h"
#include "engine/batch/batch.h"
#include "engine/engine_state.h"
#include "engine/flow/flow.h"
#include "engine/job/control.h"
#include "weft/weft.h"
#include "wire/wire.h"

enum { PAGE = 1000 }; /* lines of one step */
#define AT_ONCE_US                                                                                 \
    (2 * WEFT_SECOND) /* a call brings lines back for so long, and leaves the rest                 \
                       */

/* ---- The mark -------------------------------------------------------------------------------- */

struct mark {
    const struct weft_batch *asked;
    struct weft_batch batch; /* as the call leaves it */
    uint64_t lines;
};

static enum weft_rc refuse(const struct weft_batch *batch, struct weft_err *err)
{
    enum weft_batch_status status = batch->status;
    if (status == WEFT_BATCH_STATUS_FAILED)
        return weft_hint(err,
                         weft_fail_field(err, WEFT_NOT_LIVE, "id",
                                         "the file of the batch cannot be used: it has no lines"),
                         "correct the file and create a new batch");
    if (status == WEFT_BATCH_STATUS_VALIDATING || status == WEFT_BATCH_STATUS_CANCELLING)
        return weft_hint(err,
                         weft_fail_field(err, WEFT_NOT_LIVE, "id", "the batch is %s",
                                         weft_wire_batch_statuses[status]),
                         "retry it when that is over");
    if (!batch->flow_there)
        return weft_fail_field(err, WEFT_NOT_FOUND, "id",
                               "the lines of the batch are not kept any more");
    return WEFT_OK;
}

/* The window of a batch that has ended starts again; its length is what it was. */
static weft_usec new_expiry(const struct weft_batch *batch, weft_usec now_us)
{
    weft_usec length_us = weft_batch_window(batch->window) * WEFT_SECOND;
    return batch->flow_open ? batch->expires_us : now_us + length_us;
}

static enum weft_rc put_mark(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct mark *mark = context;
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    weft_call_batch_lock(&call[0], tx->arena)->id = mark->asked->id;
    weft_call_batch_bad_count(&call[1], tx->arena)->id = mark->asked->id;
    enum weft_rc rc = weft_tx_run(tx, &call[0], 1, &rows[0], err);
    if (!rc)
        rc = weft_batch_load_in(tx, &mark->asked->id, &mark->batch, err);
    if (!rc)
        rc = refuse(&mark->batch, err);
    if (!rc)
        rc = weft_tx_run(tx, &call[1], 1, &rows[1], err);
    if (rc)
        return rc;
    const struct weft_batch_bad_count_out *bad = weft_out_batch_bad_count(&rows[1]);
    mark->lines = (uint64_t)bad->number;
    if (mark->lines == 0 || mark->batch.retry_us) /* another call is at it */
        return WEFT_OK;
    mark->batch.retry_us = bad->latest.value > tx->now_us ? bad->latest.value : tx->now_us;
    mark->batch.retry_to = (struct weft_id){0};
    mark->batch.expires_us = new_expiry(&mark->batch, tx->now_us);
    mark->batch.phase = WEFT_BATCH_RUNNING;
    mark->batch.status = WEFT_BATCH_STATUS_IN_PROGRESS;
    *weft_call_batch_retry(&call[0], tx->arena) =
        (struct weft_batch_retry_in){.id = mark->batch.id,
                                     .now = tx->now_us,
                                     .moment = mark->batch.retry_us,
                                     .expires = mark->batch.expires_us};
    return weft_tx_run(tx, &call[0], 1, NULL, err);
}

/* ---- The walk -------------------------------------------------------------------------------- */

static enum weft_rc replay(struct weft_engine *engine, const struct weft_batch *batch,
                           const struct weft_steer *item, size_t count, struct weft_arena *arena,
                           struct weft_err *err)
{
    struct weft_steer_result *answer = weft_new_array(arena, struct weft_steer_result, count + 1);
    const struct weft_steering steering = {.kind = WEFT_STEER_REPLAY,
                                           .ns = batch->ns,
                                           .item = item,
                                           .count = count,
                                           .deadline_us = batch->expires_us,
                                           .arena = arena};
    enum weft_rc rc = weft_engine_steer(engine, &steering, answer, err);
    /* One that cannot be replayed stays as it is. One that a failure stopped comes again. */
    for (size_t i = 0; i < count && !rc; i++)
        if (answer[i].rc && answer[i].rc != WEFT_NOT_LIVE && answer[i].rc != WEFT_NOT_FOUND) {
            rc = answer[i].rc;
            if (err)
                *err = *answer[i].err;
        }
    return rc;
}

enum weft_rc weft_batch_bring_back(struct weft_engine *engine, const struct weft_batch *batch,
                                   bool *ret_more, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_batch_bad(&call, arena) = (struct weft_batch_bad_in){
        .batch = batch->id, .after = batch->retry_to, .moment = batch->retry_us, .most = PAGE};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    struct weft_steer *item = weft_new_array(arena, struct weft_steer, rows.count + 1);
    struct weft_id to = batch->retry_to;
    size_t count = 0;
    for (size_t i = 0; i < rows.count && !rc; i++) {
        const struct weft_batch_bad_out *row = &weft_out_batch_bad(&rows)[i];
        to = row->id;
        if (row->bad)
            item[count++].id = row->id;
    }
    if (!rc && count > 0)
        rc = replay(engine, batch, item, count, arena, err);
    *ret_more = !rc && rows.count == PAGE;
    *weft_call_batch_retry_move(&call, arena) = (struct weft_batch_retry_move_in){
        .id = batch->id, .moment = batch->retry_us, .to = to, .done = rows.count < PAGE};
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    weft_arena_free(arena);
    return rc;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* What is left when the time is over, or after a failure, is done by the scanner batch_progress. */
static bool walk(struct weft_engine *engine, const struct weft_id *id)
{
    weft_usec until_us = weft_boot_us() + AT_ONCE_US;
    bool more = true;
    while (more && weft_boot_us() < until_us)
        if (weft_engine_batch_step(engine, id, &more, NULL))
            return true;
    return more;
}

enum weft_rc weft_engine_batch_retry(struct weft_engine *engine,
                                     const struct weft_batch_asking *asking,
                                     struct weft_arena *arena,
                                     struct weft_batch_retried *ret_retried, struct weft_err *err)
{
    struct weft_batch batch = {0};
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    struct mark mark = {.asked = &batch};
    enum weft_rc rc = weft_engine_batch(engine, asking->ns, &asking->id, arena, &batch, err);
    if (!rc)
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, put_mark, &mark, err);
    if (!rc)
        *ret_retried = (struct weft_batch_retried){.retried = mark.lines,
                                                   .more = mark.batch.retry_us != 0,
                                                   .status = mark.batch.status,
                                                   .expires_us = mark.batch.expires_us};
    weft_arena_free(tx.arena);
    if (!rc && ret_retried->more)
        ret_retried->more = walk(engine, &batch.id);
    return rc;
}

/* ---- Deleting -------------------------------------------------------------------------------- */

enum weft_rc weft_batch_delete_flow(struct weft_engine *engine, const char *ns,
                                    const struct weft_id *id, struct weft_err *err)
{
    const struct weft_flow_cancelling args = {
        .ns = ns, .flow = *id, .how = WEFT_FLOW_CANCEL_ALL, .reason = "deleted", .remove = true};
    enum weft_flow_state state;
    struct weft_flow_drain drain;
    struct weft_err none = {0};
    enum weft_rc rc = weft_engine_flow_cancel(engine, &args, &state, &drain, &none);
    if (rc == WEFT_NOT_FOUND) /* it was deleted, or is not whole and never will be */
        return WEFT_OK;
    if (rc && err)
        *err = none;
    return rc;
}

/*
 * The row first: from there on no part is written and no flow is opened. If this process dies
 * before the flow is deleted as well, the scanner batch_progress does that.
 */
enum weft_rc weft_engine_batch_delete(struct weft_engine *engine,
                                      const struct weft_batch_asking *asking,
                                      struct weft_arena *arena,
                                      struct weft_batch_removed *ret_removed, struct weft_err *err)
{
    struct weft_batch batch = {0};
    struct weft_call call;
    struct weft_rows rows = {0};
    enum weft_rc rc = weft_engine_batch(engine, asking->ns, &asking->id, arena, &batch, err);
    *weft_call_batch_remove(&call, arena) =
        (struct weft_batch_remove_in){.now = weft_clock_now(engine->clock), .id = asking->id};
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, &rows, err);
    if (!rc && rows.count == 0)
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such batch");
    if (rc)
        return rc;
    *ret_removed = (struct weft_batch_removed){.id = batch.id, .status = batch.status};
    (void)!weft_batch_delete_flow(engine, batch.ns, &batch.id, NULL);
    return WEFT_OK;
}
