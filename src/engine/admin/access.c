/* SPDX-License-Identifier: Apache-2.0 */

/* The namespaces that executions belong to. */

#include "engine/admin/access.h"

#include "base/arena.h"
#include "engine/engine_state.h"
#include "engine/tx/batch.h"

static enum weft_rc find_chunk(struct weft_engine *engine, const struct weft_id_column *ids,
                               const struct weft_chunk *chunk, const char **ret_ns,
                               struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_execution_queues_in *in = weft_call_execution_queues(&call, arena, chunk->count);
    for (size_t k = 0; k < chunk->count; k++)
        in->row[k].id = *weft_column_id(ids, chunk->item[k]);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    struct weft_id_list queues = {0};
    const struct weft_execution_queues_out *row = weft_out_execution_queues(&rows);
    if (!rc) {
        queues.id = weft_new_array(arena, int32_t, rows.count + 1);
        for (size_t i = 0; i < rows.count; i++)
            queues.id[queues.count++] = row[i].queue;
        rc = weft_load_queues(engine, &queues, err);
    }
    for (size_t i = 0; i < queues.count && !rc; i++) {
        ret_ns[chunk->item[weft_chunk_find(chunk, ids, &row[i].id)]] =
            weft_find_queue(engine, queues.id[i])->ns_name;
    }
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_namespaces(struct weft_engine *engine, const struct weft_id_column *ids,
                                    const char **ret_ns, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_chunks chunks = weft_chunks_by_id(ids, NULL, arena);
    for (size_t i = 0; i < ids->count; i++)
        ret_ns[i] = NULL;
    enum weft_rc rc = WEFT_OK;
    size_t c = 0;
    for (; c < chunks.count && chunks.chunk[c].round == 0 && !rc; c++)
        rc = find_chunk(engine, ids, &chunks.chunk[c], ret_ns, err);
    /* An id that comes again has the namespace that it had the first time. */
    for (; c < chunks.count && !rc; c++)
        for (size_t k = 0; k < chunks.chunk[c].count; k++) {
            size_t item = chunks.chunk[c].item[k], at = 0;
            ret_ns[item] =
                ret_ns[weft_chunks_next(&chunks, 1, ids, weft_column_id(ids, item), &at)];
        }
    weft_arena_free(arena);
    return rc;
}
