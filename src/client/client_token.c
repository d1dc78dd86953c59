/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens: the calls of weft.h, and how they are carried out on a store. */

#include "client/client.h"

#include "base/arena.h"
#include "base/err.h"

/* Hands over an answer of one token, or lets go of its arena. */
static enum weft_rc hand_over(enum weft_rc rc, const struct weft_token *token,
                              struct weft_arena *arena, struct weft_tokens *ret_token)
{
    if (rc)
        weft_arena_free(arena);
    else
        *ret_token = (struct weft_tokens){.item = token, .count = 1, .arena = arena};
    return rc;
}

enum weft_rc weft_token_create(struct weft *weft, const struct weft_token_spec *spec,
                               struct weft_tokens *ret_token, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, spec, 1, ret_token};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc)
        rc = weft_check_array(spec->scopes, spec->scope_count, "scopes", 0, &story);
    for (size_t i = 0; !rc && i < spec->scope_count; i++)
        if (!spec->scopes[i])
            rc = weft_missing("scopes", &story);
    if (!rc && !spec->name)
        rc = weft_missing("name", &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    struct weft_token *token = weft_new(arena, struct weft_token);
    rc = weft->backend->token_create(&(struct weft_via){.weft = weft}, spec, arena, token, &story);
    return weft_told(hand_over(rc, token, arena, ret_token), &story, err);
}

static enum weft_rc check_id(int32_t id, struct weft_err *err)
{
    return weft_check_range(
        &(struct weft_range){.field = "id", .value = id, .min = 1, .max = INT32_MAX}, err);
}

enum weft_rc weft_token_rotate(struct weft *weft, const struct weft_token_rotation *rotation,
                               struct weft_tokens *ret_token, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, rotation, 1, ret_token};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc)
        rc = check_id(rotation->id, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    struct weft_token *token = weft_new(arena, struct weft_token);
    rc = weft->backend->token_rotate(&(struct weft_via){.weft = weft}, rotation, arena, token,
                                     &story);
    return weft_told(hand_over(rc, token, arena, ret_token), &story, err);
}

enum weft_rc weft_token_revoke(struct weft *weft, int32_t id, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, weft, 1, weft};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (!rc)
        rc = check_id(id, &story);
    if (!rc)
        rc = weft->backend->token_revoke(&(struct weft_via){.weft = weft}, id, &story);
    return weft_told(rc, &story, err);
}

enum weft_rc weft_tokens(struct weft *weft, struct weft_tokens *ret_tokens, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, weft, 1, ret_tokens};
    enum weft_rc rc = weft_check_given(&given, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_arena *arena = weft_arena_new();
    rc = weft->backend->tokens(&(struct weft_via){.weft = weft}, arena, ret_tokens, &story);
    if (rc)
        weft_arena_free(arena);
    else
        ret_tokens->arena = arena;
    return weft_told(rc, &story, err);
}

void weft_tokens_free(struct weft_tokens *tokens)
{
    if (!tokens)
        return;
    weft_arena_free(tokens->arena);
    *tokens = (struct weft_tokens){0};
}

/* ---- On a store: a program that can open it may do everything -------------------------------- */

enum weft_rc weft_local_token_create(const struct weft_via *via, const struct weft_token_spec *spec,
                                     struct weft_arena *arena, struct weft_token *ret_token,
                                     struct weft_err *err)
{
    return weft_engine_token_create(via->weft->engine, NULL, spec, arena, ret_token, err);
}

enum weft_rc weft_local_token_rotate(const struct weft_via *via,
                                     const struct weft_token_rotation *rotation,
                                     struct weft_arena *arena, struct weft_token *ret_token,
                                     struct weft_err *err)
{
    return weft_engine_token_rotate(via->weft->engine, NULL, rotation, arena, ret_token, err);
}

enum weft_rc weft_local_token_revoke(const struct weft_via *via, int32_t id, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_token before;
    enum weft_rc rc = weft_engine_token_revoke(via->weft->engine, NULL, id, arena, &before, err);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_local_tokens(const struct weft_via *via, struct weft_arena *arena,
                               struct weft_tokens *ret_tokens, struct weft_err *err)
{
    return weft_engine_token_list(via->weft->engine, NULL, arena, ret_tokens, err);
}
