/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tokens: for admins. What the token of the request reaches is decided by the engine; a server
 * that asks for no tokens lets everyone in as an admin. Secrets are in answers and nowhere else:
 * what is logged has ids and names.
 */

#include "net/api/api.h"

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "core/cursor.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

static struct weft_token_caller caller_of(const struct weft_ask *ask)
{
    return (struct weft_token_caller){
        .rights = {.scopes = ask->scopes, .ns = ask->ns_fixed ? ask->ns : NULL},
        .token = ask->token};
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

static enum weft_rc path_id(const struct weft_ask *ask, int32_t *ret_id, struct weft_err *err)
{
    if (read_number(weft_ask_path(ask, "id"), ret_id))
        return WEFT_OK;
    return weft_fail_field(err, WEFT_INVALID_VALUE, "id",
                           "the id of a token is a whole number, as the list has it");
}

/* Answers, goes by the new tokens from here on, and leaves a line in the log. */
static void settle(struct weft_ask *ask, int status, const struct weft_wire_type *type,
                   const struct weft_token *token, const char *what)
{
    struct weft_json_writer out;
    weft_server_tokens_changed(ask->server);
    weft_info(what, F_I64("token", token->id), F_STR("name", token->name),
              F_I64("by_token", ask->token));
    weft_reply_json(ask, status, &out);
    weft_wire_write(type, token, &out);
}

/* ---- List ------------------------------------------------------------------------------------ */

/* A token that is bound to a namespace sees the tokens of that namespace, another one sees all. */
static struct weft_cursor_list cursors_of(const struct weft_ask *ask)
{
    return (struct weft_cursor_list){.name = "tokens", .ns = ask->ns_fixed ? ask->ns : NULL};
}

/* The id behind which the page begins, 0: at the first. */
static enum weft_rc read_page(const struct weft_ask *ask, struct weft_paging *ret_paging,
                              int32_t *ret_after, struct weft_err *err)
{
    const struct weft_cursor_list cursors = cursors_of(ask);
    char place[WEFT_CURSOR_PLACE_MAX + 1];
    size_t size = 0;
    enum weft_rc rc = weft_api_paging(ask, ret_paging, err);
    *ret_after = 0;
    if (!rc && ret_paging->after)
        rc = weft_cursor_read(&cursors, ret_paging->after, place, &size, err);
    if (!rc && ret_paging->after && !read_number(place, ret_after))
        rc = weft_cursor_refuse(err);
    return rc;
}

enum weft_rc weft_tokens_read(struct weft_ask *ask, struct weft_err *err)
{
    struct weft_paging paging;
    int32_t after;
    return read_page(ask, &paging, &after, err);
}

enum weft_rc weft_tokens_run(struct weft_ask *ask, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(ask);
    struct weft_paging paging;
    struct weft_tokens tokens;
    int32_t after;
    enum weft_rc rc = read_page(ask, &paging, &after, err);
    if (!rc)
        rc = weft_engine_token_list(weft_server_engine(ask->server), &caller, ask->arena, &tokens,
                                    err);
    if (rc)
        return rc;
    size_t first = 0;
    while (first < tokens.count && tokens.item[first].id <= after)
        first++;
    size_t left = tokens.count - first, count = left < paging.limit ? left : paging.limit;
    struct weft_token *page = weft_new_array(ask->arena, struct weft_token, count + 1);
    memcpy(page, tokens.item + first, count * sizeof(*page));
    weft_server_show_uses(ask->server, page, count);
    struct weft_json_writer out;
    weft_reply_json(ask, 200, &out);
    weft_json_begin_object(&out);
    weft_json_key(&out, "items");
    weft_json_begin_array(&out);
    for (size_t i = 0; i < count; i++)
        weft_wire_write(&weft_wire_token, &page[i], &out);
    weft_json_end_array(&out);
    weft_json_key(&out, "next");
    if (count < left) {
        const struct weft_cursor_list cursors = cursors_of(ask);
        const char *place = weft_arena_printf(ask->arena, "%d", page[count - 1].id);
        weft_json_put_text(&out, weft_cursor_write(&cursors, place, strlen(place), ask->arena));
    } else {
        weft_json_put_text(&out, NULL);
    }
    weft_json_end_object(&out);
    return WEFT_OK;
}

/* ---- Create, rotate, revoke ------------------------------------------------------------------ */

enum weft_rc weft_token_create_read(struct weft_ask *ask, struct weft_err *err)
{
    struct weft_token_spec *spec = weft_new(ask->arena, struct weft_token_spec);
    struct weft_json object;
    enum weft_rc rc = weft_ask_object(ask, false, &object, err);
    if (!rc)
        rc = weft_wire_read(&weft_wire_token_spec, &object, ask->arena, spec, err);
    ask->state = spec;
    return rc;
}

enum weft_rc weft_token_create_run(struct weft_ask *ask, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(ask);
    struct weft_token token;
    enum weft_rc rc = weft_engine_token_create(weft_server_engine(ask->server), &caller, ask->state,
                                               ask->arena, &token, err);
    if (!rc)
        settle(ask, 201, &weft_wire_token_made, &token, "a token was created");
    return rc;
}

enum weft_rc weft_token_rotate_read(struct weft_ask *ask, struct weft_err *err)
{
    struct weft_token_rotation *rotation = weft_new(ask->arena, struct weft_token_rotation);
    struct weft_json object;
    int32_t id = 0;
    enum weft_rc rc = path_id(ask, &id, err);
    if (!rc)
        rc = weft_ask_object(ask, true, &object, err);
    if (!rc)
        rc = weft_wire_read(&weft_wire_token_rotation, &object, ask->arena, rotation, err);
    rotation->id = id;
    ask->state = rotation;
    return rc;
}

enum weft_rc weft_token_rotate_run(struct weft_ask *ask, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(ask);
    struct weft_token token;
    enum weft_rc rc = weft_engine_token_rotate(weft_server_engine(ask->server), &caller, ask->state,
                                               ask->arena, &token, err);
    if (!rc)
        settle(ask, 200, &weft_wire_token_made, &token, "a token was rotated");
    return rc;
}

enum weft_rc weft_token_revoke_read(struct weft_ask *ask, struct weft_err *err)
{
    int32_t *id = weft_new(ask->arena, int32_t);
    ask->state = id;
    return path_id(ask, id, err);
}

enum weft_rc weft_token_revoke_run(struct weft_ask *ask, struct weft_err *err)
{
    const struct weft_token_caller caller = caller_of(ask);
    const int32_t *id = ask->state;
    struct weft_token token;
    enum weft_rc rc = weft_engine_token_revoke(weft_server_engine(ask->server), &caller, *id,
                                               ask->arena, &token, err);
    if (!rc)
        settle(ask, 200, &weft_wire_token, &token, "a token was revoked");
    return rc;
}
