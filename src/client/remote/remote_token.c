/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens through a server. What makes a secret is sent once: a second one would be another. */

#include "client/remote/remote.h"

#include "base/arena.h"
#include "wire/wire.h"

/* Sends a request whose answer holds a secret. */
static enum weft_rc ask_made(const struct weft_via *via, const struct weft_request *request,
                             struct weft_arena *arena, struct weft_token *ret_token,
                             struct weft_err *err)
{
    struct weft_json object;
    enum weft_rc rc = weft_remote_ask(via, request, arena, &object, err);
    if (!rc && weft_wire_read_answer(&weft_wire_token_made, &object, arena, ret_token, NULL))
        rc = weft_remote_garbled(request, err);
    return rc;
}

enum weft_rc weft_remote_token_create(const struct weft_via *via,
                                      const struct weft_token_spec *spec, struct weft_arena *arena,
                                      struct weft_token *ret_token, struct weft_err *err)
{
    struct weft_buf body;
    struct weft_json_writer out;
    weft_buf_init(&body, SIZE_MAX);
    weft_json_writer_init(&out, &body);
    weft_wire_write(&weft_wire_token_spec, spec, &out);
    const struct weft_request request = {
        .method = "POST", .path = "/tokens", .body = &body, .once = true};
    enum weft_rc rc = ask_made(via, &request, arena, ret_token, err);
    weft_buf_done(&body);
    return rc;
}

enum weft_rc weft_remote_token_rotate(const struct weft_via *via,
                                      const struct weft_token_rotation *rotation,
                                      struct weft_arena *arena, struct weft_token *ret_token,
                                      struct weft_err *err)
{
    struct weft_buf body;
    struct weft_json_writer out;
    weft_buf_init(&body, SIZE_MAX);
    weft_json_writer_init(&out, &body);
    weft_wire_write(&weft_wire_token_rotation, rotation, &out);
    const struct weft_request request = {
        .method = "POST",
        .path = weft_arena_printf(arena, "/tokens/%d/rotate", rotation->id),
        .body = &body,
        .once = true};
    enum weft_rc rc = ask_made(via, &request, arena, ret_token, err);
    weft_buf_done(&body);
    return rc;
}

enum weft_rc weft_remote_token_revoke(const struct weft_via *via, int32_t id, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    const struct weft_request request = {.method = "DELETE",
                                         .path = weft_arena_printf(arena, "/tokens/%d", id)};
    struct weft_response response;
    enum weft_rc rc = weft_remote_send(via, &request, arena, &response, err);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_remote_tokens(const struct weft_via *via, struct weft_arena *arena,
                                struct weft_tokens *ret_tokens, struct weft_err *err)
{
    struct weft_remote_list listing = {.type = &weft_wire_token,
                                       .item_size = sizeof(struct weft_token)};
    enum weft_rc rc = weft_remote_all(via, "/tokens?limit=1000", arena, &listing, err);
    if (!rc)
        *ret_tokens = (struct weft_tokens){.item = listing.item, .count = listing.count};
    return rc;
}
