/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tokens: for admins. What the token of the request reaches is decided by the engine; a server
 * that asks for no tokens lets everyone in as an admin. Secrets are in answers and nowhere else:
 * what is logged has ids and names.
 */

#include "net/api/api_tokens.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "core/cursor.h"
#include "engine/admin/tokens.h"
#include "net/api/api.h"
#include "net/auth.h"
#include "net/request.h"
#include "net/server.h"
#include "weft/admin.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

static struct weft_token_caller caller_of(const struct weft_request *request)
{
    return (struct weft_token_caller){
        .rights = {.scopes = request->scopes, .ns = request->ns_fixed ? request->ns : NULL},
        .token = request->token};
}

/* A whole number from 1, as in paths and cursors. */
static bool read_number(const char *text, int32_t *ret_number)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 10 || text[digits] != '\0' || text[0] == '0')
        return false;
    long long number = strtoll(text, NULL, 10);
    *ret_number = (int32_t)number;
    return number <= INT32_MAX;
}

static enum weft_rc path_id(const struct weft_request *request, int32_t *ret_id,
                            struct weft_err *err)
{
    if (read_number(weft_request_path(request, "id"), ret_id))
        return WEFT_OK;
    return weft_fail_field(err, WEFT_INVALID_VALUE, "id",
                           "the id of a token is a whole number, as the list has it");
}

/* Answers, goes by the new tokens from here on, and leaves a line in the log. */
static void settle(struct weft_request *request, int status, const struct weft_wire_type *type,
                   const struct weft_token *token, const char *what)
{
    weft_server_tokens_changed(request->server);
    weft_info(what, F_I64("token", token->id), F_STR("name", token->name),
              F_I64("by_token", request->token));
    weft_reply_wire(request, status, type, token);
}

/* ---- List ------------------------------------------------------------------------------------ */

/* A token that is bound to a namespace sees the tokens of that namespace, another one sees all. */
static struct weft_cursor_list cursors_of(const struct weft_request *request)
{
    return (struct weft_cursor_list){.name = "tokens",
                                     .ns = request->ns_fixed ? request->ns : NULL};
}

/* The id behind which the page begins, 0: at the first. */
static enum weft_rc read_page(const struct weft_request *request, struct weft_paging *ret_paging,
                              int32_t *ret_after, struct weft_err *err)
{
    const struct weft_cursor_list cursors = cursors_of(request);
    char place[WEFT_CURSOR_PLACE_MAX + 1];
    size_t size = 0;
    enum weft_rc rc = weft_api_paging(request, ret_paging, err);
    *ret_after = 0;
    if (!rc && ret_paging->after)
        rc = weft_cursor_read(&cursors, ret_paging->after, place, &size, err);
    if (!rc && ret_paging->after && !read_number(place, ret_after))
        rc = weft_cursor_refuse(err);
    return rc;
}

enum weft_rc weft_tokens_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_paging paging;
    int32_t after;
    return read_page(request, &paging, &after, err);
}

enum weft_rc weft_tokens_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(request);
    struct weft_paging paging;
    struct weft_tokens tokens;
    int32_t after;
    enum weft_rc rc = read_page(request, &paging, &after, err);
    if (!rc)
        rc = weft_engine_token_list(request->server->engine, &caller, request->arena, &tokens, err);
    if (rc)
        return rc;
    size_t first = 0;
    while (first < tokens.count && tokens.item[first].id <= after)
        first++;
    size_t left = tokens.count - first, count = left < paging.limit ? left : paging.limit;
    struct weft_token *page = weft_new_array(request->arena, struct weft_token, count + 1);
    memcpy(page, tokens.item + first, count * sizeof(*page));
    weft_auth_show_uses(request->server->auth, page, count);
    const char *next = NULL;
    if (count < left) {
        const struct weft_cursor_list cursors = cursors_of(request);
        const char *place = weft_arena_printf(request->arena, "%d", page[count - 1].id);
        next = weft_cursor_write(&cursors, place, strlen(place), request->arena);
    }
    weft_api_reply_page(request, &(struct weft_api_page){.type = &weft_wire_token,
                                                         .item = page,
                                                         .stride = sizeof(*page),
                                                         .count = count,
                                                         .next = next});
    return WEFT_OK;
}

/* ---- Create, rotate, revoke ------------------------------------------------------------------ */

enum weft_rc weft_token_create_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_token_spec *spec = weft_new(request->arena, struct weft_token_spec);
    enum weft_rc rc = weft_api_read_message(request, spec, err);
    request->state = spec;
    return rc;
}

enum weft_rc weft_token_create_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(request);
    struct weft_token token;
    enum weft_rc rc = weft_engine_token_create(request->server->engine, &caller, request->state,
                                               request->arena, &token, err);
    if (!rc)
        settle(request, 201, &weft_wire_token_made, &token, "a token was created");
    return rc;
}

enum weft_rc weft_token_rotate_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_token_rotation *rotation = weft_new(request->arena, struct weft_token_rotation);
    int32_t id = 0;
    enum weft_rc rc = path_id(request, &id, err);
    if (!rc)
        rc = weft_api_read_message(request, rotation, err);
    rotation->id = id;
    request->state = rotation;
    return rc;
}

enum weft_rc weft_token_rotate_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(request);
    struct weft_token token;
    enum weft_rc rc = weft_engine_token_rotate(request->server->engine, &caller, request->state,
                                               request->arena, &token, err);
    if (!rc)
        settle(request, 200, &weft_wire_token_made, &token, "a token was rotated");
    return rc;
}

enum weft_rc weft_token_revoke_read(struct weft_request *request, struct weft_err *err)
{
    int32_t *id = weft_new(request->arena, int32_t);
    request->state = id;
    return path_id(request, id, err);
}

enum weft_rc weft_token_revoke_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(request);
    const int32_t *id = request->state;
    struct weft_token token;
    enum weft_rc rc = weft_engine_token_revoke(request->server->engine, &caller, *id,
                                               request->arena, &token, err);
    if (!rc)
        settle(request, 200, &weft_wire_token, &token, "a token was revoked");
    return rc;
}
