/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tokens: making, listing, rotating and revoking them, and when they were last used.
 *
 * A token is a row, and each rotation adds a row with another secret (see 0008-tokens.pg.sql). Ids
 * are never given twice, and neither the namespace nor the scopes of a token ever change, so the
 * rights of a caller may be checked on rows that were read before the change. Rotations and
 * revocations lock the row of the token and read its secrets after that.
 */

#include "engine/admin/tokens.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/spec.h"
#include "engine/engine_state.h"
#include "engine/tx/batch.h"

#include <string.h>

enum { OWN_GRACE_MS = 60000 }; /* of the token in use, where no grace is named */

static const uint32_t every_scope =
    WEFT_SCOPE_READ | WEFT_SCOPE_SUBMIT | WEFT_SCOPE_WORK | WEFT_SCOPE_ADMIN;

/* ---- Rows ------------------------------------------------------------------------------------ */

static enum weft_rc check_token(const struct weft_token_row *token, weft_usec now_us,
                                struct weft_err *err)
{
    enum weft_rc rc = weft_name_check(token->name, "name", err);
    if (!rc && token->ns)
        rc = weft_name_check(token->ns, "namespace", err);
    if (!rc && (token->scopes == 0 || token->scopes & ~every_scope))
        rc = weft_invalid(err, "scopes",
                          "a token needs at least one of the scopes read, submit, work, admin");
    if (!rc && token->expires_us != 0 &&
        (token->expires_us <= now_us || token->expires_us > WEFT_MOMENT_MAX_US))
        rc = weft_invalid(err, "expires_at",
                          "a token must expire in the future and before the year 10000");
    return rc;
}

static void put_add(struct weft_call *call, struct weft_arena *arena,
                    const struct weft_token_row *token, weft_usec now_us)
{
    *weft_call_token_add(call, arena) =
        (struct weft_token_add_in){.name = token->name,
                                   .namespace = token->ns,
                                   .scopes = token->scopes,
                                   .hash = {token->hash, sizeof(token->hash)},
                                   .created = now_us,
                                   .expires = weft_unless_zero(token->expires_us),
                                   .secret_of = weft_unless_zero(token->token)};
}

enum weft_rc weft_engine_token_add(struct weft_engine *engine, struct weft_token_row *token,
                                   struct weft_err *err)
{
    weft_usec now_us = token->created_us ? token->created_us : weft_clock_now(engine->clock);
    enum weft_rc rc = check_token(token, now_us, err);
    if (rc)
        return rc;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    token->token = 0;
    put_add(&call, arena, token, now_us);
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, &rows, err);
    if (!rc) {
        token->id = token->token = weft_out_token_add(&rows)->id;
        token->created_us = now_us;
    }
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_tokens(struct weft_engine *engine, struct weft_arena *arena,
                                struct weft_token_rows *ret_tokens, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_tokens(&call, arena);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_token_row *item = weft_new_array(arena, struct weft_token_row, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_tokens_out *row = &weft_out_tokens(&rows)[i];
        item[i] = (struct weft_token_row){
            .id = row->id,
            .token = row->token,
            .name = row->name,
            .ns = row->namespace,
            .scopes = row->scopes,
            .created_us = row->created,
            .expires_us = row->expires.value,
            .last_used_us = row->last_used.value,
        };
        if (row->hash.size != sizeof(item[i].hash))
            return weft_fail(err, WEFT_CORRUPT, "token %d has a hash of %zu bytes", row->id,
                             row->hash.size);
        memcpy(item[i].hash, row->hash.data, sizeof(item[i].hash));
    }
    *ret_tokens = (struct weft_token_rows){.item = item, .count = rows.count};
    return WEFT_OK;
}

enum weft_rc weft_engine_tokens_used(struct weft_engine *engine, const struct weft_token_use *use,
                                     size_t count, struct weft_err *err)
{
    if (count == 0)
        return WEFT_OK;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_token_used_in *in = weft_call_token_used(&call, arena, count);
    for (size_t i = 0; i < count; i++) {
        in->row[i].id = use[i].id;
        in->row[i].at = use[i].at_us;
    }
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    weft_arena_free(arena);
    return rc;
}

/* ---- As callers see them --------------------------------------------------------------------- */

static void show_scopes(uint32_t scopes, struct weft_arena *arena, struct weft_token *token)
{
    const char **word = weft_new_array(arena, const char *, WEFT_SCOPES_MAX);
    token->scope_count = weft_scopes_list(scopes, word);
    token->scopes = word;
}

/* The token of row i, which is its first, from all its rows. */
static struct weft_token show(const struct weft_token_rows *rows, size_t i, weft_usec now_us,
                              struct weft_arena *arena)
{
    const struct weft_token_row *first = &rows->item[i], *newest = first;
    struct weft_token token = {.id = first->id,
                               .name = first->name,
                               .ns = first->ns,
                               .created_us = first->created_us,
                               .last_used_us = first->last_used_us};
    for (size_t k = i + 1; k < rows->count; k++) {
        const struct weft_token_row *row = &rows->item[k];
        if (row->token != first->id)
            continue;
        if (newest->expires_us > now_us && newest->expires_us > token.old_expires_us)
            token.old_expires_us = newest->expires_us;
        newest = row;
        if (row->last_used_us > token.last_used_us)
            token.last_used_us = row->last_used_us;
    }
    token.expires_us = newest->expires_us;
    token.rotated_us = newest == first ? 0 : newest->created_us;
    show_scopes(first->scopes, arena, &token);
    return token;
}

static bool may_reach(const struct weft_token_caller *caller, const struct weft_token_row *row)
{
    const struct weft_rights rights = {.scopes = row->scopes, .ns = row->ns};
    return !caller || weft_rights_include(&caller->rights, &rights);
}

enum weft_rc weft_engine_token_list(struct weft_engine *engine,
                                    const struct weft_token_caller *caller,
                                    struct weft_arena *arena, struct weft_tokens *ret_tokens,
                                    struct weft_err *err)
{
    struct weft_token_rows rows = {0};
    weft_usec now_us = weft_clock_now(engine->clock);
    enum weft_rc rc = weft_engine_tokens(engine, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_token *item = weft_new_array(arena, struct weft_token, rows.count + 1);
    size_t count = 0;
    for (size_t i = 0; i < rows.count; i++)
        if (rows.item[i].id == rows.item[i].token && may_reach(caller, &rows.item[i]))
            item[count++] = show(&rows, i, now_us, arena);
    *ret_tokens = (struct weft_tokens){.item = item, .count = count};
    return WEFT_OK;
}

/* Finds a token by the id of one of its secrets; the caller must be able to reach it. */
static enum weft_rc find_token(struct weft_engine *engine, const struct weft_token_caller *caller,
                               int32_t id, struct weft_arena *arena, struct weft_token *ret_token,
                               struct weft_err *err)
{
    struct weft_token_rows rows = {0};
    weft_usec now_us = weft_clock_now(engine->clock);
    enum weft_rc rc = weft_engine_tokens(engine, arena, &rows, err);
    if (rc)
        return rc;
    size_t i = 0, k = 0;
    while (i < rows.count && rows.item[i].id != id)
        i++;
    while (i < rows.count && k < rows.count && rows.item[k].id != rows.item[i].token)
        k++;
    if (i == rows.count || k == rows.count)
        return weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no token %d", id);
    if (!may_reach(caller, &rows.item[k]))
        return weft_hint(
            err,
            weft_fail_field(err, WEFT_FORBIDDEN, "id",
                            "token %d is outside what the token of this request may manage", id),
            "a token that is bound to a namespace manages only tokens bound to it");
    *ret_token = show(&rows, k, now_us, arena);
    return WEFT_OK;
}

/* ---- Create ---------------------------------------------------------------------------------- */

/* When a token expires, from a duration or a moment; 0: never. */
static enum weft_rc read_expiry(int64_t expires_ms, weft_usec expires_us, weft_usec now_us,
                                weft_usec *ret_us, struct weft_err *err)
{
    if (expires_ms != 0 && expires_us != 0)
        return weft_invalid(err, "expires_ms", "expires_ms and expires_at exclude each other");
    if (expires_ms < 0 || expires_ms > WEFT_DELAY_MAX_MS)
        return weft_invalid(err, "expires_ms", "expires_ms is %lld, allowed are 1 to %lld",
                            (long long)expires_ms, (long long)WEFT_DELAY_MAX_MS);
    *ret_us = expires_ms ? now_us + expires_ms * WEFT_MS : expires_us;
    return WEFT_OK;
}

static enum weft_rc refuse_more(const struct weft_token_caller *caller,
                                const struct weft_token_row *row, struct weft_err *err)
{
    const char *own = caller->rights.ns;
    bool elsewhere = own && (!row->ns || strcmp(own, row->ns) != 0);
    enum weft_rc rc =
        elsewhere ? weft_fail_field(err, WEFT_FORBIDDEN, "namespace",
                                    "the token of this request is bound to namespace '%s'", own)
                  : weft_fail_field(err, WEFT_FORBIDDEN, "scopes",
                                    "the token of this request lacks some of these scopes");
    return weft_hint(err, rc, "a token hands out no more than it has itself");
}

/* Gives a row a new secret. */
static void make_secret(struct weft_token_row *row, char ret_secret[WEFT_TOKEN_SECRET + 1])
{
    weft_token_secret(ret_secret);
    weft_token_hash(ret_secret, row->hash);
}

static const char *token_text(int32_t id, char secret[WEFT_TOKEN_SECRET + 1],
                              struct weft_arena *arena)
{
    char text[WEFT_TOKEN_TEXT];
    weft_token_print(id, secret, text);
    const char *copy = weft_arena_strdup(arena, text);
    explicit_bzero(text, sizeof(text));
    explicit_bzero(secret, WEFT_TOKEN_SECRET + 1);
    return copy;
}

enum weft_rc weft_engine_token_create(struct weft_engine *engine,
                                      const struct weft_token_caller *caller,
                                      const struct weft_token_spec *spec, struct weft_arena *arena,
                                      struct weft_token *ret_token, struct weft_err *err)
{
    char secret[WEFT_TOKEN_SECRET + 1];
    struct weft_token_row row = {
        .name = spec->name, .ns = spec->ns, .created_us = weft_clock_now(engine->clock)};
    enum weft_rc rc = weft_scopes_read(spec->scopes, spec->scope_count, &row.scopes, err);
    if (!rc)
        rc = read_expiry(spec->expires_ms, spec->expires_us, row.created_us, &row.expires_us, err);
    if (!rc && caller && !row.ns)
        row.ns = caller->rights.ns;
    if (!rc && !may_reach(caller, &row))
        rc = refuse_more(caller, &row, err);
    if (rc)
        return rc;
    make_secret(&row, secret);
    rc = weft_engine_token_add(engine, &row, err);
    if (rc)
        return rc;
    *ret_token = (struct weft_token){.id = row.id,
                                     .name = weft_arena_strdup(arena, row.name),
                                     .ns = row.ns ? weft_arena_strdup(arena, row.ns) : NULL,
                                     .created_us = row.created_us,
                                     .expires_us = row.expires_us,
                                     .token = token_text(row.id, secret, arena)};
    show_scopes(row.scopes, arena, ret_token);
    return WEFT_OK;
}

/* ---- Rotate and revoke ----------------------------------------------------------------------- */

static enum weft_rc lock_token(struct weft_tx *tx, int32_t id, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_token_lock(&call, tx->arena)->id = id;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc && rows.count == 0)
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no token %d", id);
    return rc;
}

struct turning {
    const struct weft_token_rotation *rotation;
    int32_t id; /* of the token */
    int64_t grace_ms;
    struct weft_token_row row; /* the new secret */
    weft_usec now_us;          /* when it was made */
    weft_usec old_us;          /* until when the older secrets are good */
};

/* Copies name, namespace and scopes of the newest secret to the new one. */
static enum weft_rc take_over(struct weft_tx *tx, struct turning *turning, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_token_secrets(&call, tx->arena)->id = turning->id;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    /* The newest; the row of the token is locked, so there is one. */
    const struct weft_token_secrets_out *out = &weft_out_token_secrets(&rows)[rows.count - 1];
    struct weft_token_row *row = &turning->row;
    row->token = turning->id;
    row->name = out->name;
    row->ns = out->namespace;
    row->scopes = out->scopes;
    weft_usec before_us = out->expires.value;
    if (before_us != 0 && before_us <= tx->now_us)
        return weft_hint(
            err, weft_fail_field(err, WEFT_NOT_LIVE, "id", "token %d has expired", turning->id),
            "create another one, and revoke this one");
    turning->now_us = tx->now_us;
    turning->old_us = tx->now_us + turning->grace_ms * WEFT_MS;
    if (before_us != 0 && before_us < turning->old_us)
        turning->old_us = before_us;
    rc = read_expiry(turning->rotation->expires_ms, turning->rotation->expires_us, tx->now_us,
                     &row->expires_us, err);
    if (!rc && row->expires_us == 0)
        row->expires_us = before_us;
    return rc ? rc : check_token(row, tx->now_us, err);
}

static enum weft_rc rotate_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct turning *turning = context;
    struct weft_call call[3];
    struct weft_rows rows[3] = {0};
    enum weft_rc rc = lock_token(tx, turning->id, err);
    if (!rc)
        rc = take_over(tx, turning, err);
    if (rc)
        return rc;
    *weft_call_token_retire(&call[0], tx->arena) =
        (struct weft_token_retire_in){.id = turning->id, .until = turning->old_us};
    *weft_call_token_purge(&call[1], tx->arena) =
        (struct weft_token_purge_in){.id = turning->id, .now = tx->now_us};
    put_add(&call[2], tx->arena, &turning->row, tx->now_us);
    rc = weft_tx_run(tx, call, WEFT_LEN(call), rows, err);
    if (!rc)
        turning->row.id = weft_out_token_add(&rows[2])->id;
    return rc;
}

enum weft_rc weft_engine_token_rotate(struct weft_engine *engine,
                                      const struct weft_token_caller *caller,
                                      const struct weft_token_rotation *rotation,
                                      struct weft_arena *arena, struct weft_token *ret_token,
                                      struct weft_err *err)
{
    char secret[WEFT_TOKEN_SECRET + 1];
    struct turning turning = {.rotation = rotation, .grace_ms = rotation->grace_ms};
    struct weft_tx tx = {.engine = engine, .arena = arena};
    if (rotation->grace_ms < -1 || rotation->grace_ms > WEFT_DELAY_MAX_MS)
        return weft_invalid(err, "grace_ms", "grace_ms is %lld, allowed are 0 to %lld",
                            (long long)rotation->grace_ms, (long long)WEFT_DELAY_MAX_MS);
    enum weft_rc rc = find_token(engine, caller, rotation->id, arena, ret_token, err);
    if (rc)
        return rc;
    turning.id = ret_token->id;
    if (turning.grace_ms == 0 && caller && caller->token == turning.id)
        turning.grace_ms = OWN_GRACE_MS;
    if (turning.grace_ms < 0)
        turning.grace_ms = 0;
    make_secret(&turning.row, secret);
    rc = weft_tx_do(&tx, WEFT_TX_WRITE, rotate_body, &turning, err);
    if (rc)
        return rc;
    ret_token->expires_us = turning.row.expires_us;
    ret_token->rotated_us = turning.now_us;
    ret_token->old_expires_us = turning.old_us > turning.now_us ? turning.old_us : 0;
    ret_token->token = token_text(turning.row.id, secret, arena);
    return WEFT_OK;
}

static enum weft_rc revoke_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const int32_t *id = context;
    struct weft_call call;
    struct weft_rows rows;
    enum weft_rc rc = lock_token(tx, *id, err);
    if (rc)
        return rc;
    weft_call_token_revoke(&call, tx->arena)->id = *id;
    return weft_tx_run(tx, &call, 1, &rows, err);
}

enum weft_rc weft_engine_token_revoke(struct weft_engine *engine,
                                      const struct weft_token_caller *caller, int32_t id,
                                      struct weft_arena *arena, struct weft_token *ret_token,
                                      struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = arena};
    enum weft_rc rc = find_token(engine, caller, id, arena, ret_token, err);
    if (!rc)
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, revoke_body, &ret_token->id, err);
    return rc;
}

/* ---- Namespaces of executions ---------------------------------------------------------------- */

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
    struct weft_chunks chunks = weft_chunks_by_id(ids, NULL, WEFT_REPEATS_LATER, arena);
    for (size_t i = 0; i < ids->count; i++)
        ret_ns[i] = NULL;
    enum weft_rc rc = WEFT_OK;
    size_t c = 0;
    for (; c < chunks.count && chunks.chunk[c].round == 0 && !rc; c++)
        rc = find_chunk(engine, ids, &chunks.chunk[c], ret_ns, err);
    /* An id that the list has again has the namespace found the first time. */
    for (; c < chunks.count && !rc; c++)
        for (size_t k = 0; k < chunks.chunk[c].count; k++) {
            size_t item = chunks.chunk[c].item[k], at = 0;
            ret_ns[item] =
                ret_ns[weft_chunks_next(&chunks, 1, ids, weft_column_id(ids, item), &at)];
        }
    weft_arena_free(arena);
    return rc;
}
