/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines that go to another model because their window is nearly over. A line whose call is not
 * under way is moved as a whole: to the queue of the other model's endpoint and lane, with a
 * payload that names both. The row of the batch is locked first, for the number of the other model;
 * lines are locked with SKIP LOCKED, so a claim that has one keeps it, and one that comes later
 * finds it in its new queue, because claims compare the queue under the lock of the row.
 *
 * A line is moved once: a model that lines are moved to names no other one (models.c), and where
 * two settings crossed each other and it does, nothing is moved there.
 */

#include "engine/batch/batch.h"

#include "base/arena.h"
#include "base/clock.h"
#include "core/batch_payload.h"
#include "core/spec.h"
#include "engine/batch/models.h"
#include "engine/engine_state.h"
#include "engine/job/submit.h"
#include "engine/tx/commit_effects.h"
#include "weft/weft.h"

#include <stdio.h>
#include <string.h>

enum { FEWEST = 16, MOST = 500, SMALL = 1 << 20 }; /* lines of a transaction, by their bytes */
#define STEP_US (250 * WEFT_MS)

struct move {
    const struct weft_batch *batch;
    int16_t from;                   /* the number of the model */
    const struct weft_model *model; /* where lines go */
    const struct weft_queue *queue;
    struct weft_id after;
    uint32_t most;
    /* By the last transaction: */
    struct weft_id to;
    size_t looked, moved, ready, bytes;
};

/* The number of the other model in the batch; 0: it would be one too many. */
static enum weft_rc number_target(struct weft_tx *tx, const struct move *move, int16_t *ret_number,
                                  struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_batch_models_read(&call, tx->arena)->batch = move->batch->id;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    *ret_number = 0;
    for (size_t i = 0; i < rows.count && !rc; i++)
        if (strcmp(weft_out_batch_models_read(&rows)[i].name, move->model->name) == 0)
            *ret_number = (int16_t)weft_out_batch_models_read(&rows)[i].number;
    if (rc || *ret_number || rows.count >= WEFT_BATCH_MODELS_MAX)
        return rc;
    *ret_number = (int16_t)(rows.count + 1);
    struct weft_batch_model_add_in *in = weft_call_batch_model_add(&call, tx->arena, 1);
    in->row[0].batch = move->batch->id;
    in->row[0].number = *ret_number;
    in->row[0].name = move->model->name;
    return weft_tx_run(tx, &call, 1, NULL, err);
}

static enum weft_rc write_lines(struct weft_tx *tx, struct move *move, const struct weft_rows *rows,
                                int16_t number, struct weft_err *err)
{
    struct weft_call call[2];
    struct weft_batch_line_move_in *in =
        weft_call_batch_line_move(&call[0], tx->arena, rows->count);
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_batch_movable_out *row = &weft_out_batch_movable(rows)[i];
        size_t size = 0;
        const char *payload =
            weft_batch_payload_move(row->payload.data, row->payload.size, move->model->endpoint,
                                    move->model->name, tx->arena, &size);
        move->to = row->id;
        if (!payload || size > WEFT_PAYLOAD_MAX)
            continue; /* it stays where it is */
        struct weft_batch_line_move_item *item = &in->row[move->moved++];
        *item = (struct weft_batch_line_move_item){.id = row->id,
                                                   .queue = move->queue->id,
                                                   .lane = move->queue->lane,
                                                   .payload = {payload, size},
                                                   .size = (int64_t)size};
        if (number)
            item->model = weft_some(number);
        move->ready += row->ready;
        move->bytes += size;
    }
    call[0].rows = move->moved;
    *weft_call_batch_model_escalated(&call[1], tx->arena) = (struct weft_batch_model_escalated_in){
        .batch = move->batch->id, .number = move->from, .name = move->model->name};
    return move->moved ? weft_tx_run(tx, call, 2, NULL, err) : WEFT_OK;
}

static enum weft_rc move_lines(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct move *move = context;
    struct weft_call call[2];
    struct weft_rows rows = {0};
    int16_t number = 0;
    move->looked = move->moved = move->ready = move->bytes = 0;
    move->to = move->after;
    weft_call_batch_lock(&call[0], tx->arena)->id = move->batch->id;
    *weft_call_batch_movable(&call[1], tx->arena) = (struct weft_batch_movable_in){
        .batch = move->batch->id, .model = move->from, .after = move->after, .most = move->most};
    enum weft_rc rc = weft_tx_run(tx, &call[0], 1, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    rc = weft_tx_run(tx, &call[1], 1, &rows, err);
    move->looked = rc ? 0 : rows.count;
    if (rc || rows.count == 0)
        return rc;
    struct weft_rows lines = rows;
    rc = number_target(tx, move, &number, err);
    return rc ? rc : write_lines(tx, move, &lines, number, err);
}

/* The queue of lines of the other model, as that of a line that is written. */
static enum weft_rc find_queue(struct weft_engine *engine, struct move *move,
                               struct weft_arena *arena, struct weft_err *err)
{
    struct weft_spec spec = {.kind = "http", .lane = move->model->lane};
    spec.payload = weft_arena_printf(
        arena, "{\"endpoint\":\"%s\",\"path\":\"/\",\"method\":\"POST\"}", move->model->endpoint);
    spec.payload_size = strlen(spec.payload);
    struct weft_submission member = {0};
    enum weft_rc rc = weft_spec_resolve(&spec, move->batch->ns, weft_clock_now(engine->clock),
                                        arena, &member.spec, err);
    if (!rc)
        rc = weft_submission_place(engine, true, &member, 1, err);
    if (!rc && !member.queue)
        rc = weft_census_refuse(engine, WEFT_CENSUS_QUEUES, member.spec.ns, err);
    move->queue = member.queue;
    return rc;
}

/* *ret_more: the time was over before all lines had been looked at. */
static enum weft_rc move_all(struct weft_engine *engine, struct move *move, bool *ret_more,
                             struct weft_err *err)
{
    weft_usec until_us = weft_boot_us() + STEP_US;
    enum weft_rc rc = WEFT_OK;
    *ret_more = false;
    move->most = FEWEST;
    do {
        struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, move_lines, move, err);
        if (!rc && move->ready > 0) {
            struct weft_commit_effects news = weft_news_new(tx.arena, tx.now_us);
            weft_news_of(&news, move->queue->id)->ready += (uint32_t)move->ready;
            weft_news_tell(engine, &news);
        }
        weft_arena_free(tx.arena);
        *ret_more = !rc && move->looked == move->most;
        move->after = move->to;
        if (move->bytes < SMALL && move->most < MOST)
            move->most = move->most * 2 < MOST ? move->most * 2 : MOST;
        else if (move->bytes > (size_t)4 * SMALL && move->most > FEWEST)
            move->most /= 2;
    } while (*ret_more && weft_boot_us() < until_us);
    return rc;
}

/* Where the lines that name a model go late in the window; NULL: they stay. */
static enum weft_rc find_target(struct weft_engine *engine, const struct weft_batch *batch,
                                const char *name, struct weft_arena *arena,
                                const struct weft_model **ret_model, struct weft_err *err)
{
    const struct weft_model *model = NULL, *target = NULL;
    enum weft_rc rc = weft_model_find(engine, batch->ns_id, name, arena, &model, err);
    if (!rc && model && model->escalate_to)
        rc = weft_model_find(engine, batch->ns_id, model->escalate_to, arena, &target, err);
    bool there = !rc && target && strcmp(target->name, model->escalate_to) == 0;
    *ret_model = there && !target->escalate_to ? target : NULL;
    return rc;
}

enum weft_rc weft_batch_escalate(struct weft_engine *engine, const struct weft_batch *batch,
                                 bool *ret_more, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    *ret_more = false;
    weft_call_batch_models_read(&call, arena)->batch = batch->id;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    for (size_t i = 0; i < rows.count && !rc && !*ret_more; i++) {
        const struct weft_batch_models_read_out *row = &weft_out_batch_models_read(&rows)[i];
        struct move move = {.batch = batch, .from = (int16_t)row->number};
        rc = find_target(engine, batch, row->name, arena, &move.model, err);
        if (rc || !move.model || strcmp(move.model->name, row->name) == 0)
            continue;
        rc = find_queue(engine, &move, arena, err);
        if (!rc)
            rc = move_all(engine, &move, ret_more, err);
    }
    weft_arena_free(arena);
    return rc;
}
