/* SPDX-License-Identifier: Apache-2.0 */

/* Batches as readers see them: their status, their counts, their lines. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "engine/batch/batch.h"
#include "engine/engine_state.h"
#include "engine/job/detail.h"
#include "weft/weft.h"

#include <string.h>

static enum weft_rc no_batch(struct weft_err *err)
{
    return weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such batch");
}

/* ---- Status and counts ----------------------------------------------------------------------- */

static enum weft_batch_status status_of(const struct weft_batch *batch)
{
    switch (batch->phase) {
    case WEFT_BATCH_FAILED:
        return WEFT_BATCH_STATUS_FAILED;
    case WEFT_BATCH_ENDED:
        if (batch->cancelling_us)
            return WEFT_BATCH_STATUS_CANCELLED;
        return batch->expired > 0 ? WEFT_BATCH_STATUS_EXPIRED : WEFT_BATCH_STATUS_COMPLETED;
    case WEFT_BATCH_WRITING:
    case WEFT_BATCH_RUNNING:
        break;
    }
    if (batch->cancelling_us)
        return WEFT_BATCH_STATUS_CANCELLING;
    if (batch->phase == WEFT_BATCH_WRITING)
        return WEFT_BATCH_STATUS_VALIDATING;
    return batch->flow_open || batch->retry_us ? WEFT_BATCH_STATUS_IN_PROGRESS
                                               : WEFT_BATCH_STATUS_FINALIZING;
}

/* Counts the members of a flow by their states. */
static enum weft_rc count(struct weft_tx *tx, struct weft_batch *batch, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_flow_counts(&call, tx->arena)->flow = batch->id;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    batch->succeeded = batch->failed = batch->expired = batch->cancelled = batch->running = 0;
    for (size_t i = 0; i < rows.count && !rc; i++) {
        const struct weft_flow_counts_out *row = &weft_out_flow_counts(&rows)[i];
        uint64_t number = (uint64_t)row->number;
        if (row->state == WEFT_STATE_SUCCEEDED)
            batch->succeeded += number;
        else if (row->state == WEFT_STATE_FAILED)
            batch->failed += number;
        else if (row->state == WEFT_STATE_EXPIRED)
            batch->expired += number;
        else if (row->state == WEFT_STATE_CANCELLED || row->state == WEFT_STATE_SKIPPED)
            batch->cancelled += number;
        else if (row->state == WEFT_STATE_RUNNING)
            batch->running += number;
    }
    return rc;
}

static struct weft_batch batch_of(const struct weft_batch_read_out *row)
{
    struct weft_batch batch = {.id = row->id,
                               .file = row->file,
                               .endpoint = row->endpoint,
                               .window = row->span,
                               .metadata = row->metadata,
                               .flaws = row->flaws,
                               .phase = (enum weft_batch_phase)row->phase,
                               .ns = row->ns,
                               .ns_id = row->namespace,
                               .flow_there = row->flow_state.set && row->flow_state.value >= 0,
                               .flow_open =
                                   row->flow_state.set && row->flow_state.value == WEFT_FLOW_OPEN,
                               .flow_cancelled = row->flow_cancel.value != WEFT_FLOW_CANCEL_NONE,
                               .flow_finished_us = row->flow_finished.value,
                               .requests = (uint64_t)row->requests,
                               .at = (uint64_t)row->at,
                               .line = (uint64_t)row->line,
                               .last = row->last.value,
                               .created_us = row->created,
                               .expires_us = row->expires,
                               .opened_us = row->opened.value,
                               .finished_us = row->finished.value,
                               .cancelling_us = row->wanted.value,
                               .retried_us = row->retried.value,
                               .retry_us = row->retry.value,
                               .retry_to = row->retry_to.value,
                               .looked_us = row->looked,
                               .look_at_us = row->look_at,
                               .succeeded = (uint64_t)row->succeeded,
                               .failed = (uint64_t)row->failed,
                               .expired = (uint64_t)row->expired,
                               .cancelled = (uint64_t)row->cancelled};
    /* A line was tried again by itself. */
    if (batch.phase == WEFT_BATCH_ENDED && batch.flow_open)
        batch.phase = WEFT_BATCH_RUNNING;
    batch.status = status_of(&batch);
    return batch;
}

enum weft_rc weft_batch_load(struct weft_engine *engine, int32_t ns, const struct weft_id *id,
                             struct weft_arena *arena, struct weft_batch *ret_batch,
                             struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_batch_read(&call, arena) = (struct weft_batch_read_in){.namespace = ns, .id = *id};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (!rc && rows.count == 0)
        rc = no_batch(err);
    if (!rc)
        *ret_batch = batch_of(weft_out_batch_read(&rows));
    return rc;
}

enum weft_rc weft_batch_load_in(struct weft_tx *tx, const struct weft_id *id,
                                struct weft_batch *ret_batch, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_batch_read(&call, tx->arena) = (struct weft_batch_read_in){.id = *id};
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc && rows.count == 0)
        rc = no_batch(err);
    if (!rc)
        *ret_batch = batch_of(weft_out_batch_read(&rows));
    return rc;
}

static enum weft_rc count_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    return count(tx, context, err);
}

/* The counts of a batch that has not ended are those of its flow. */
static enum weft_rc count_living(struct weft_engine *engine, struct weft_batch *batch,
                                 struct weft_arena *arena, struct weft_err *err)
{
    if (batch->phase != WEFT_BATCH_RUNNING)
        return WEFT_OK;
    struct weft_tx tx = {.engine = engine, .arena = arena};
    return weft_tx_do(&tx, WEFT_TX_READ, count_body, batch, err);
}

enum weft_rc weft_engine_batch(struct weft_engine *engine, const char *ns, const struct weft_id *id,
                               struct weft_arena *arena, struct weft_batch *ret_batch,
                               struct weft_err *err)
{
    int32_t space = 0;
    enum weft_rc rc = weft_find_namespace(engine, ns, &space, err);
    if (!rc && space == 0)
        rc = no_batch(err);
    if (!rc)
        rc = weft_batch_load(engine, space, id, arena, ret_batch, err);
    return rc ? rc : count_living(engine, ret_batch, arena, err);
}

enum weft_rc weft_engine_batches(struct weft_engine *engine,
                                 const struct weft_batches_asking *asking, struct weft_arena *arena,
                                 struct weft_batch_list *ret_list, struct weft_err *err)
{
    int32_t space = 0;
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_batches_list_in *in = weft_call_batches_list(&call, arena);
    enum weft_rc rc = weft_find_namespace(engine, asking->ns, &space, err);
    in->namespace = space;
    in->after = asking->after;
    in->most = (int64_t)asking->limit + 1;
    if (!asking->has_after)
        memset(&in->after, 0xff, sizeof(in->after));
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    size_t looked = rows.count < asking->limit ? rows.count : asking->limit;
    struct weft_batch_list list = {.item = weft_new_array(arena, struct weft_batch, looked + 1),
                                   .more = rows.count > asking->limit};
    for (size_t i = 0; i < looked && !rc; i++) {
        /* Both statements return the same columns. */
        struct weft_batch_read_out row;
        _Static_assert(sizeof(row) == sizeof(struct weft_batches_list_out), "the same columns");
        memcpy(&row, &weft_out_batches_list(&rows)[i], sizeof(row));
        struct weft_batch *item = &list.item[list.count];
        *item = batch_of(&row);
        list.last = item->id;
        if (asking->by_status && item->status != asking->status)
            continue;
        rc = count_living(engine, item, arena, err);
        list.count++;
    }
    *ret_list = list;
    return rc;
}

/* ---- The end --------------------------------------------------------------------------------- */

/*
 * The flow is read after the row of the batch was locked, and again when the members were counted:
 * if a member was replayed meanwhile, the flow is open, and the batch has not ended.
 */
static enum weft_rc freeze(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct weft_batch batch = *(const struct weft_batch *)context, now = {0};
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_batch_hold(&call, tx->arena)->id = batch.id;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    rc = count(tx, &batch, err);
    if (!rc)
        rc = weft_batch_load_in(tx, &batch.id, &now, err);
    if (rc || !now.flow_finished_us)
        return rc;
    *weft_call_batch_freeze(&call, tx->arena) =
        (struct weft_batch_freeze_in){.now = tx->now_us,
                                      .id = batch.id,
                                      .finished = now.flow_finished_us,
                                      .succeeded = (int64_t)batch.succeeded,
                                      .failed = (int64_t)batch.failed,
                                      .expired = (int64_t)batch.expired,
                                      .cancelled = (int64_t)batch.cancelled};
    return weft_tx_run(tx, &call, 1, NULL, err);
}

enum weft_rc weft_batch_freeze(struct weft_engine *engine, const struct weft_batch *batch,
                               struct weft_err *err)
{
    struct weft_batch copy = *batch;
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, freeze, &copy, err);
    weft_arena_free(tx.arena);
    return rc;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/*
 * Details may have 64 KiB each: where they are many, the page ends with those that were read.
 * `item` says which answer each one belongs to.
 */
static enum weft_rc read_details(struct weft_engine *engine, struct weft_batch_page *page,
                                 const struct weft_detail_of *of, const size_t *item, size_t count,
                                 struct weft_arena *arena, struct weft_err *err)
{
    enum { STEP = 64, MOST = 4 << 20 };
    size_t bytes = 0, at = 0;
    while (at < count && bytes < MOST) {
        size_t end = count - at < STEP ? count : at + STEP;
        enum weft_rc rc = weft_details_read(engine, of + at, end - at, arena, err);
        if (rc)
            return rc;
        for (; at < end; at++)
            bytes += *of[at].ret_detail ? strlen(*of[at].ret_detail) : 0;
    }
    if (at < count) {
        page->count = item[at - 1] + 1;
        page->after = of[at - 1].id;
        page->looked = page->members; /* there is more */
    }
    return WEFT_OK;
}

enum weft_rc weft_engine_batch_answers(struct weft_engine *engine, const struct weft_id *id,
                                       struct weft_batch_page *page, struct weft_arena *arena,
                                       struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_batch_lines(&call, arena) = (struct weft_batch_lines_in){
        .batch = *id, .after = page->after, .good = page->good, .most = page->members};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    page->item = weft_new_array(arena, struct weft_batch_answer, rows.count + 1);
    page->count = 0;
    page->looked = rows.count;
    struct weft_detail_of *of = weft_new_array(arena, struct weft_detail_of, rows.count + 1);
    size_t *item = weft_new_array(arena, size_t, rows.count + 1), failed = 0;
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_batch_lines_out *row = &weft_out_batch_lines(&rows)[i];
        page->after = row->id;
        if (!row->state.set || (row->state.value == WEFT_STATE_SUCCEEDED) != page->good)
            continue;
        struct weft_batch_answer *answer = &page->item[page->count];
        *answer = (struct weft_batch_answer){.id = row->id,
                                             .custom_id = row->name,
                                             .state = (enum weft_state)row->state.value,
                                             .result = row->result.data,
                                             .result_size = row->result.size,
                                             .error_class = row->error_class,
                                             .error_message = row->error_message};
        if (answer->state == WEFT_STATE_FAILED) {
            of[failed] = (struct weft_detail_of){row->id, row->epoch.value, &answer->detail};
            item[failed++] = page->count;
        }
        page->count++;
    }
    return read_details(engine, page, of, item, failed, arena, err);
}
