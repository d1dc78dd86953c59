/* SPDX-License-Identifier: Apache-2.0 */

/* Batches in weft's own words: one with counts by model and its pace, and lists. */

#include "engine/batch/batch_view.h"

#include "base/arena.h"
#include "base/clock.h"
#include "core/batch_id.h"
#include "core/cursor.h"
#include "engine/batch/batch.h"
#include "engine/engine_state.h"
#include "engine/job/list.h"
#include "weft/weft.h"
#include "wire/wire.h"

#define MINUTE_US ((weft_usec)60 * WEFT_SECOND)

static const char *id_text(const char *prefix, const struct weft_id *id, struct weft_arena *arena)
{
    char text[WEFT_BATCH_ID_TEXT];
    weft_batch_id_print(prefix, id, text);
    return weft_arena_strdup(arena, text);
}

/* Files of a batch that has ended are named if they have lines; of one that runs, always. */
static struct weft_batch_info info_of(const struct weft_batch *batch, struct weft_arena *arena)
{
    bool runs = batch->phase == WEFT_BATCH_RUNNING, ended = batch->phase == WEFT_BATCH_ENDED;
    struct weft_batch_info info = {.id = batch->id,
                                   .batch_id = id_text(WEFT_BATCH_PREFIX, &batch->id, arena),
                                   .status = batch->status,
                                   .endpoint = batch->endpoint,
                                   .window = batch->window,
                                   .input_file = id_text(WEFT_FILE_PREFIX, &batch->file, arena),
                                   .metadata = batch->metadata,
                                   .total = batch->requests,
                                   .succeeded = batch->succeeded,
                                   .failed = batch->failed,
                                   .expired = batch->expired,
                                   .cancelled = batch->cancelled,
                                   .running = batch->running,
                                   .created_us = batch->created_us,
                                   .started_us = batch->opened_us,
                                   .expires_us = batch->expires_us,
                                   .cancelling_us = batch->cancelling_us,
                                   .finished_us = batch->finished_us,
                                   .retried_us = batch->retried_us};
    if (runs || (ended && batch->succeeded > 0))
        info.output_file = id_text(WEFT_OUTPUT_PREFIX, &batch->id, arena);
    if (runs || (ended && batch->failed + batch->expired + batch->cancelled > 0))
        info.error_file = id_text(WEFT_ERRORS_PREFIX, &batch->id, arena);
    if (batch->phase == WEFT_BATCH_FAILED)
        info.errors = weft_arena_printf(arena, "[%s]", batch->flaws);
    return info;
}

/* ---- One ------------------------------------------------------------------------------------- */

/* The count of a state in a model; NULL: of lines that wait. */
static uint64_t *place_of(struct weft_batch_model *model, enum weft_state state)
{
    switch (state) {
    case WEFT_STATE_SUCCEEDED:
        return &model->succeeded;
    case WEFT_STATE_FAILED:
        return &model->failed;
    case WEFT_STATE_EXPIRED:
        return &model->expired;
    case WEFT_STATE_CANCELLED:
    case WEFT_STATE_SKIPPED:
        return &model->cancelled;
    case WEFT_STATE_RUNNING:
        return &model->running;
    default:
        return NULL;
    }
}

/* Numbers begin at 1; lines without one are of further models, which stand at the end. */
static size_t model_at(const struct weft_batch_counts_out *row, size_t models)
{
    bool known = row->model.set && row->model.value > 0 && (size_t)row->model.value <= models;
    return known ? (size_t)row->model.value - 1 : models;
}

struct detail {
    const struct weft_batch *batch;
    weft_usec now_us;
    struct weft_arena *arena;
    struct weft_batch_info *info;
};

/* In one transaction, so that the counts by model are those of the models that are listed. */
static enum weft_rc read_detail(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct detail *detail = context;
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    weft_call_batch_models_read(&call[0], tx->arena)->batch = detail->batch->id;
    *weft_call_batch_counts(&call[1], tx->arena) = (struct weft_batch_counts_in){
        .batch = detail->batch->id, .since = detail->now_us - MINUTE_US};
    enum weft_rc rc = weft_tx_run(tx, call, 2, rows, err);
    if (rc)
        return rc;
    size_t models = rows[0].count;
    struct weft_batch_model *model =
        weft_new_array(detail->arena, struct weft_batch_model, models + 1);
    for (size_t i = 0; i < models; i++) {
        const struct weft_batch_models_read_out *row = &weft_out_batch_models_read(&rows[0])[i];
        model[i].model = weft_arena_strdup(detail->arena, row->name);
        model[i].escalated_to = weft_arena_strdup(detail->arena, row->escalated);
    }
    detail->info->ended_last_minute = 0;
    for (size_t i = 0; i < rows[1].count; i++) {
        const struct weft_batch_counts_out *row = &weft_out_batch_counts(&rows[1])[i];
        struct weft_batch_model *of = &model[model_at(row, models)];
        uint64_t *place = place_of(of, (enum weft_state)row->state);
        of->total += (uint64_t)row->number;
        if (place)
            *place += (uint64_t)row->number;
        detail->info->ended_last_minute += (uint64_t)row->late;
    }
    detail->info->model = model;
    detail->info->model_count = models + (model[models].total > 0);
    detail->info->detailed = true;
    return WEFT_OK;
}

/* At the pace of the last minute, or of the time that it has run if that is less. */
static weft_usec estimate(const struct weft_batch *batch, uint64_t ended, weft_usec now_us)
{
    uint64_t over = batch->succeeded + batch->failed + batch->expired + batch->cancelled;
    weft_usec ran_us = now_us - batch->opened_us;
    if (batch->retried_us > batch->opened_us)
        ran_us = now_us - batch->retried_us;
    if (batch->phase != WEFT_BATCH_RUNNING || ended == 0 || over >= batch->requests || ran_us <= 0)
        return 0;
    double pace = (double)ended / (double)(ran_us < MINUTE_US ? ran_us : MINUTE_US);
    double left_us = (double)(batch->requests - over) / pace;
    return left_us < (double)WEFT_BATCH_WINDOW_MAX_S * WEFT_SECOND ? now_us + (weft_usec)left_us
                                                                   : 0;
}

enum weft_rc weft_engine_batch_info(struct weft_engine *engine,
                                    const struct weft_batch_asking *asking,
                                    struct weft_arena *arena, struct weft_batch_info *ret_info,
                                    struct weft_err *err)
{
    struct weft_batch batch = {0};
    enum weft_rc rc = weft_engine_batch(engine, asking->ns, &asking->id, arena, &batch, err);
    if (rc)
        return rc;
    *ret_info = info_of(&batch, arena);
    weft_usec now_us = weft_clock_now(engine->clock);
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    struct detail detail = {.batch = &batch, .now_us = now_us, .arena = arena, .info = ret_info};
    rc = weft_tx_do(&tx, WEFT_TX_READ, read_detail, &detail, err);
    weft_arena_free(tx.arena);
    ret_info->estimated_end_us = estimate(&batch, ret_info->ended_last_minute, now_us);
    return rc;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

enum weft_rc weft_engine_batch_infos(struct weft_engine *engine,
                                     const struct weft_batch_listing *listing,
                                     struct weft_arena *arena, struct weft_batch_infos *ret_infos,
                                     struct weft_err *err)
{
    const char *status = listing->by_status ? weft_wire_batch_statuses[listing->status] : NULL;
    const struct weft_cursor_list list = {
        .name = "batches", .ns = listing->ns, .filter = weft_cursor_filter(&status, 1, arena)};
    struct weft_batches_asking asking = {.ns = listing->ns,
                                         .limit =
                                             listing->limit ? listing->limit : WEFT_PAGE_DEFAULT,
                                         .has_after = listing->after != NULL,
                                         .by_status = listing->by_status,
                                         .status = listing->status};
    struct weft_batch_list found = {0};
    enum weft_rc rc = weft_page_limit(listing->limit, err);
    if (!rc)
        rc = weft_cursor_read_id(&list, listing->after, &asking.after, err);
    if (!rc)
        rc = weft_engine_batches(engine, &asking, arena, &found, err);
    if (rc)
        return rc;
    struct weft_batch_info *item = weft_new_array(arena, struct weft_batch_info, found.count + 1);
    for (size_t i = 0; i < found.count; i++)
        item[i] = info_of(&found.item[i], arena);
    *ret_infos = (struct weft_batch_infos){.item = item, .count = found.count};
    if (found.more)
        ret_infos->next = weft_cursor_write_id(&list, &found.last, arena);
    return WEFT_OK;
}
