/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Removing files and batches, for the scanner `purge`.
 *
 * The members of a file are its chunks. They have 256 KiB each, so a transaction removes few of
 * them. A reader of a file that was deleted finds chunks missing, which the writing of a batch
 * takes for what it is (batch_write.c).
 *
 * The members of a batch are those of its flow, which is removed as any flow is; when that is gone
 * the batch has its row and those of its models left.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine_state.h"
#include "engine/scan/purge.h"

#define FAILED_KEPT_US ((weft_usec)30 * 86400 * WEFT_SECOND) /* a batch that failed, as a file */

enum { CHUNKS_AT_ONCE = 64 };

static enum weft_rc mark_nothing(const struct weft_pass *pass, size_t *ret_count,
                                 struct weft_err *err)
{
    (void)pass;
    (void)err;
    *ret_count = 0;
    return WEFT_OK;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static enum weft_rc look_for_files(const struct weft_pass *pass, struct weft_tombstones *ret_tombs,
                                   struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_files_removing(&call, pass->arena)->scope = weft_pass_scope(pass);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    struct weft_id *id = weft_new_array(pass->arena, struct weft_id, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++)
        id[i] = weft_out_files_removing(&rows)[i].id;
    *ret_tombs = (struct weft_tombstones){.id = id, .count = rows.count};
    return rc;
}

static enum weft_rc remove_files(struct weft_tx *tx, const struct weft_tombstones *tombs,
                                 uint32_t most, struct weft_purged *ret_purged,
                                 struct weft_err *err)
{
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    struct weft_purge_chunks_in *chunk = weft_call_purge_chunks(&call[0], tx->arena, tombs->count);
    struct weft_purge_files_in *file = weft_call_purge_files(&call[1], tx->arena, tombs->count);
    chunk->batch = most < CHUNKS_AT_ONCE ? most : CHUNKS_AT_ONCE;
    for (size_t i = 0; i < tombs->count; i++)
        chunk->row[i].file = file->row[i].file = tombs->id[i];
    enum weft_rc rc = weft_tx_run(tx, call, 2, rows, err);
    if (rc)
        return rc;
    ret_purged->chunks = (size_t)weft_out_purge_chunks(&rows[0])->removed;
    ret_purged->tombstones = rows[1].count;
    ret_purged->full = ret_purged->chunks == (size_t)chunk->batch;
    return WEFT_OK;
}

static enum weft_rc count_chunks(const struct weft_pass *pass, const struct weft_tombstones *tombs,
                                 size_t *ret_count, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_purge_chunks_left_in *in =
        weft_call_purge_chunks_left(&call, pass->arena, tombs->count);
    in->most = pass->config->batch;
    for (size_t i = 0; i < tombs->count; i++)
        in->row[i].file = tombs->id[i];
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (!rc)
        *ret_count = (size_t)weft_out_purge_chunks_left(&rows)->count;
    return rc;
}

const struct weft_purge_kind weft_purge_files = {
    .mark = mark_nothing,
    .look = look_for_files,
    .remove = remove_files,
    .left = count_chunks,
};

/* ---- Batches --------------------------------------------------------------------------------- */

/* Batches whose file could not be used have no flow that retention would find. */
static enum weft_rc mark_batches(const struct weft_pass *pass, size_t *ret_count,
                                 struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_batches_old_in *in = weft_call_batches_old(&call, pass->arena);
    in->now = weft_clock_now(pass->engine->clock);
    in->until = in->now - FAILED_KEPT_US;
    in->scope = weft_pass_scope(pass);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_WRITE, &call, pass->arena, &rows, err);
    *ret_count = rows.count;
    return rc;
}

static enum weft_rc look_for_batches(const struct weft_pass *pass,
                                     struct weft_tombstones *ret_tombs, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_batches_removing(&call, pass->arena)->scope = weft_pass_scope(pass);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    struct weft_id *id = weft_new_array(pass->arena, struct weft_id, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++)
        id[i] = weft_out_batches_removing(&rows)[i].id;
    *ret_tombs = (struct weft_tombstones){.id = id, .count = rows.count};
    return rc;
}

static enum weft_rc remove_batches(struct weft_tx *tx, const struct weft_tombstones *tombs,
                                   uint32_t most, struct weft_purged *ret_purged,
                                   struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_purge_batches_in *in = weft_call_purge_batches(&call, tx->arena, tombs->count);
    in->most = most;
    for (size_t i = 0; i < tombs->count; i++)
        in->row[i].batch = tombs->id[i];
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    ret_purged->tombstones = rc ? 0 : rows.count;
    ret_purged->full = rows.count == most;
    return rc;
}

/* A row that another transaction holds is being removed by it, and has no members. */
static enum weft_rc count_none(const struct weft_pass *pass, const struct weft_tombstones *tombs,
                               size_t *ret_count, struct weft_err *err)
{
    (void)tombs;
    return mark_nothing(pass, ret_count, err);
}

const struct weft_purge_kind weft_purge_batches = {
    .mark = mark_batches,
    .look = look_for_batches,
    .remove = remove_batches,
    .left = count_none,
};
