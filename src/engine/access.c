/* SPDX-License-Identifier: Apache-2.0 */

/* Who may do what: the rows of tokens, and the namespaces that executions belong to. */

#include "core/token.h"
#include "engine/engine.h"

#include <string.h>

static const uint32_t every_scope =
    WEFT_SCOPE_READ | WEFT_SCOPE_SUBMIT | WEFT_SCOPE_WORK | WEFT_SCOPE_ADMIN;

static enum weft_rc check_token(const struct weft_token_row *token, weft_usec now_us,
                                struct weft_err *err)
{
    enum weft_rc rc = weft_name_check(token->name, "name", err);
    if (!rc && token->ns)
        rc = weft_name_check(token->ns, "namespace", err);
    if (!rc && (token->scopes == 0 || token->scopes & ~every_scope))
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "scopes",
                             "a token needs at least one of the scopes read, submit, work, admin");
    if (!rc && token->expires_us != 0 &&
        (token->expires_us <= now_us || token->expires_us > WEFT_MOMENT_MAX_US))
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "expires",
                             "expires must be in the future and before the year 10000");
    return rc;
}

enum weft_rc weft_engine_token_add(struct weft_engine *engine, struct weft_token_row *token,
                                   struct weft_err *err)
{
    weft_usec now_us = weft_clock_now(engine->clock);
    enum weft_rc rc = check_token(token, now_us, err);
    if (rc)
        return rc;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, arena, WEFT_STMT_TOKEN_ADD, 0);
    weft_set_text(&call, 0, TOKEN_ADD_IN_NAME, token->name);
    weft_set_text(&call, 0, TOKEN_ADD_IN_NAMESPACE, token->ns);
    weft_set_i64(&call, 0, TOKEN_ADD_IN_SCOPES, token->scopes);
    weft_set_bytes(&call, 0, TOKEN_ADD_IN_HASH, token->hash, sizeof(token->hash));
    weft_set_i64(&call, 0, TOKEN_ADD_IN_CREATED, now_us);
    if (token->expires_us)
        weft_set_i64(&call, 0, TOKEN_ADD_IN_EXPIRES, token->expires_us);
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, &rows, err);
    if (!rc) {
        token->id = (int32_t)weft_get_i64(&rows, 0, TOKEN_ADD_OUT_ID);
        token->created_us = now_us;
    }
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_token_revoke(struct weft_engine *engine, int32_t id, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, arena, WEFT_STMT_TOKEN_REVOKE, 0);
    weft_set_i64(&call, 0, TOKEN_REVOKE_IN_ID, id);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, &rows, err);
    if (!rc && rows.count == 0)
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no token %d", id);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_tokens(struct weft_engine *engine, struct weft_arena *arena,
                                struct weft_token_rows *ret_tokens, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, arena, WEFT_STMT_TOKENS, 0);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_token_row *item = weft_new_array(arena, struct weft_token_row, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_cell *hash = weft_get(&rows, i, TOKENS_OUT_HASH);
        item[i] = (struct weft_token_row){
            .id = (int32_t)weft_get_i64(&rows, i, TOKENS_OUT_ID),
            .name = weft_get_text(&rows, i, TOKENS_OUT_NAME),
            .ns = weft_get_text(&rows, i, TOKENS_OUT_NAMESPACE),
            .scopes = (uint32_t)weft_get_i64(&rows, i, TOKENS_OUT_SCOPES),
            .created_us = weft_get_i64(&rows, i, TOKENS_OUT_CREATED),
            .expires_us = weft_get_i64(&rows, i, TOKENS_OUT_EXPIRES),
        };
        if (hash->size != sizeof(item[i].hash))
            return weft_fail(err, WEFT_CORRUPT, "token %d has a hash of %zu bytes", item[i].id,
                             hash->size);
        memcpy(item[i].hash, hash->data, sizeof(item[i].hash));
    }
    *ret_tokens = (struct weft_token_rows){.item = item, .count = rows.count};
    return WEFT_OK;
}

/* ---- Namespaces ------------------------------------------------------------------------------ */

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
    for (size_t c = 0; c < chunks.count && !rc; c++)
        rc = find_chunk(engine, ids, &chunks.chunk[c], ret_ns, err);
    weft_arena_free(arena);
    return rc;
}
