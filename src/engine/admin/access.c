/* SPDX-License-Identifier: Apache-2.0 */

/* The namespaces that executions belong to. */

#include "engine/engine.h"

static enum weft_rc find_chunk(struct weft_engine *engine, const struct weft_id_column *ids,
                               const struct weft_chunk *chunk, const char **ret_ns,
                               struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, arena, WEFT_STMT_EXECUTION_QUEUES, chunk->count);
    for (size_t k = 0; k < chunk->count; k++)
        weft_set_id(&call, k, EXECUTION_QUEUES_IN_ID, weft_column_id(ids, chunk->item[k]));
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    struct weft_id_list queues = {0};
    if (!rc) {
        queues.id = weft_new_array(arena, int32_t, rows.count + 1);
        for (size_t i = 0; i < rows.count; i++)
            queues.id[queues.count++] = (int32_t)weft_get_i64(&rows, i, EXECUTION_QUEUES_OUT_QUEUE);
        rc = weft_load_queues(engine, &queues, err);
    }
    for (size_t i = 0; i < queues.count && !rc; i++) {
        struct weft_id id = weft_get_id(&rows, i, EXECUTION_QUEUES_OUT_ID);
        ret_ns[chunk->item[weft_chunk_find(chunk, ids, &id)]] =
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
