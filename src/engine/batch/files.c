/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/batch/files.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "engine/engine_state.h"

#include <string.h>

static enum weft_rc no_file(struct weft_err *err)
{
    return weft_hint(err, weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such file"),
                     "it may have been deleted, or its time has come");
}

/* ---- Writing --------------------------------------------------------------------------------- */

enum weft_rc weft_engine_file_begin(struct weft_engine *engine, const char *ns,
                                    const char *filename, struct weft_id *ret_id,
                                    struct weft_err *err)
{
    weft_usec now_us = weft_clock_now(engine->clock);
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = ns};
    enum weft_rc rc = weft_intern_names(engine, true, &space, 1, err);
    if (rc)
        return rc;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    weft_id_new(ret_id, now_us, -1);
    *weft_call_file_add(&call, arena) = (struct weft_file_add_in){
        .now = now_us, .id = *ret_id, .namespace = space.id, .filename = filename};
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc given_up(struct weft_err *err)
{
    return weft_fail(err, WEFT_UNAVAILABLE,
                     "the upload paused for so long that it was given up: begin anew");
}

static enum weft_rc put_chunk(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct weft_file_chunk *chunk = context;
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    *weft_call_file_touch(&call[0], tx->arena) = (struct weft_file_touch_in){
        .now = tx->now_us, .file = chunk->file, .bytes = (int64_t)(chunk->at + chunk->size)};
    *weft_call_file_chunk_add(&call[1], tx->arena) =
        (struct weft_file_chunk_add_in){.file = chunk->file,
                                        .at = (int64_t)chunk->at,
                                        .line = (int64_t)chunk->line,
                                        .data = {chunk->data, chunk->size}};
    enum weft_rc rc = weft_tx_run(tx, call, 2, rows, err);
    return !rc && rows[0].count == 0 ? given_up(err) : rc;
}

enum weft_rc weft_engine_file_put(struct weft_engine *engine, const struct weft_file_chunk *chunk,
                                  struct weft_err *err)
{
    struct weft_file_chunk copy = *chunk;
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new(), .bytes = chunk->size};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, put_chunk, &copy, err);
    weft_arena_free(tx.arena);
    return rc;
}

enum weft_rc weft_engine_file_seal(struct weft_engine *engine, const struct weft_file *file,
                                   struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_file_seal(&call, arena) =
        (struct weft_file_seal_in){.file = file->id,
                                   .purpose = file->purpose,
                                   .requests = (int64_t)file->requests,
                                   .flaws = file->flaws,
                                   .flaw_count = (int64_t)file->flaw_count,
                                   .expires = weft_unless_zero(file->expires_us)};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, &rows, err);
    if (!rc && rows.count == 0)
        rc = given_up(err);
    weft_arena_free(arena);
    return rc;
}

void weft_engine_file_give_up(struct weft_engine *engine, const struct weft_id *file)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    *weft_call_file_give_up(&call, arena) =
        (struct weft_file_give_up_in){.now = weft_clock_now(engine->clock), .id = *file};
    (void)!weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, NULL);
    weft_arena_free(arena);
}

/* ---- Reading --------------------------------------------------------------------------------- */

#define FILE_OF(row)                                                                               \
    (struct weft_file)                                                                             \
    {                                                                                              \
        .id = (row)->id, .filename = (row)->filename, .purpose = (row)->purpose,                   \
        .bytes = (uint64_t)(row)->bytes, .requests = (uint64_t)(row)->requests,                    \
        .flaws = (row)->flaws, .flaw_count = (uint64_t)(row)->flaw_count,                          \
        .created_us = (row)->created, .expires_us = (row)->expires.value                           \
    }

enum weft_rc weft_engine_file(struct weft_engine *engine, const char *ns, const struct weft_id *id,
                              struct weft_arena *arena, struct weft_file *ret_file,
                              struct weft_err *err)
{
    int32_t space = 0;
    struct weft_call call;
    struct weft_rows rows = {0};
    enum weft_rc rc = weft_find_namespace(engine, ns, &space, err);
    *weft_call_file_read(&call, arena) = (struct weft_file_read_in){
        .now = weft_clock_now(engine->clock), .namespace = space, .id = *id};
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (!rc && rows.count == 0)
        rc = no_file(err);
    if (!rc)
        *ret_file = FILE_OF(weft_out_file_read(&rows));
    return rc;
}

static struct weft_id last_id(void)
{
    struct weft_id id;
    memset(&id, 0xff, sizeof(id));
    return id;
}

enum weft_rc weft_engine_files(struct weft_engine *engine, const struct weft_files_asking *asking,
                               struct weft_arena *arena, struct weft_file_list *ret_list,
                               struct weft_err *err)
{
    int32_t space = 0;
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_id begin = asking->oldest_first ? (struct weft_id){0} : last_id();
    enum weft_rc rc = weft_find_namespace(engine, asking->ns, &space, err);
    const struct weft_files_down_in in = {.now = weft_clock_now(engine->clock),
                                          .namespace = space,
                                          .after = asking->has_after ? asking->after : begin,
                                          .purpose = asking->purpose ? asking->purpose : "",
                                          .most = (int64_t)asking->limit + 1};
    if (asking->oldest_first)
        *weft_call_files_up(&call, arena) = (struct weft_files_up_in){.now = in.now,
                                                                      .namespace = in.namespace,
                                                                      .after = in.after,
                                                                      .purpose = in.purpose,
                                                                      .most = in.most};
    else
        *weft_call_files_down(&call, arena) = in;
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    size_t count = rows.count < asking->limit ? rows.count : asking->limit;
    struct weft_file *item = weft_new_array(arena, struct weft_file, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (asking->oldest_first)
            item[i] = FILE_OF(&weft_out_files_up(&rows)[i]);
        else
            item[i] = FILE_OF(&weft_out_files_down(&rows)[i]);
    }
    *ret_list =
        (struct weft_file_list){.item = item, .count = count, .more = rows.count > asking->limit};
    return WEFT_OK;
}

enum weft_rc weft_engine_file_read(struct weft_engine *engine, const struct weft_id *file,
                                   uint64_t at, struct weft_arena *arena,
                                   struct weft_file_chunk *ret_chunk, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_file_bytes(&call, arena) =
        (struct weft_file_bytes_in){.file = *file, .at = (int64_t)at};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    const struct weft_file_bytes_out *row = weft_out_file_bytes(&rows);
    if (rows.count == 0 || at >= (uint64_t)row->at + row->data.size)
        return no_file(err);
    *ret_chunk = (struct weft_file_chunk){.file = *file,
                                          .at = (uint64_t)row->at,
                                          .line = (uint64_t)row->line,
                                          .data = row->data.data,
                                          .size = row->data.size};
    return WEFT_OK;
}

/* ---- Removing -------------------------------------------------------------------------------- */

enum weft_rc weft_engine_file_remove(struct weft_engine *engine, const char *ns,
                                     const struct weft_id *id, struct weft_err *err)
{
    int32_t space = 0;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    enum weft_rc rc = weft_find_namespace(engine, ns, &space, err);
    *weft_call_file_remove(&call, arena) = (struct weft_file_remove_in){
        .now = weft_clock_now(engine->clock), .namespace = space, .id = *id};
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, &rows, err);
    if (!rc && rows.count == 0)
        rc = no_file(err);
    weft_arena_free(arena);
    return rc;
}
