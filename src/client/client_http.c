/* SPDX-License-Identifier: Apache-2.0 */

/* Endpoints of outgoing HTTP calls. */

#include "base/arena.h"
#include "base/err.h"
#include "client/client.h"
#include "core/endpoint.h"
#include "core/spec.h"
#include "engine/http/settings.h"

/* As the engine checks it, so that a server need not be asked. */
static enum weft_rc check_endpoint(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_endpoint *endpoint = call->in;
    struct weft_endpoint resolved;
    if (endpoint->header_count > 0 && !endpoint->headers)
        return weft_missing("headers", err);
    struct weft_arena *arena = weft_arena_new();
    enum weft_rc rc = weft_endpoint_resolve(endpoint, arena, &resolved, NULL, err);
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc check_name(const struct weft_op_call *call, struct weft_err *err)
{
    return weft_name_check(call->in, "endpoint", err);
}

enum weft_rc weft_endpoint_put(struct weft *weft, const struct weft_endpoint *endpoint,
                               struct weft_err *err)
{
    char no_answer;
    const struct weft_op_call call = {
        .op = WEFT_OP_ENDPOINT_PUT, .in = endpoint, .count = 1, .out = &no_answer};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_endpoint, NULL, err);
}

enum weft_rc weft_endpoint_remove(struct weft *weft, const char *name, struct weft_err *err)
{
    struct weft_endpoint before;
    const struct weft_op_call call = {.op = WEFT_OP_ENDPOINT_REMOVE, .in = name, .out = &before};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_name, NULL, err);
}

/* One endpoint as a page of its own. */
static enum weft_rc read_endpoint(struct weft *weft, const char *name,
                                  struct weft_endpoints *ret_endpoints, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_endpoint *endpoint = weft_new(arena, struct weft_endpoint);
    const struct weft_op_call call = {
        .op = WEFT_OP_ENDPOINT, .in = name, .out = endpoint, .arena = arena};
    enum weft_rc rc = weft_do(&(struct weft_via){.weft = weft}, &call, check_name, &arena, err);
    if (!rc)
        *ret_endpoints = (struct weft_endpoints){.item = endpoint, .count = 1, .arena = arena};
    return rc;
}

enum weft_rc weft_endpoints(struct weft *weft, const char *name, uint32_t limit, const char *after,
                            struct weft_endpoints *ret_endpoints, struct weft_err *err)
{
    if (name && ret_endpoints)
        return read_endpoint(weft, name, ret_endpoints, err);
    const struct weft_endpoint_asking asking = {
        .ns = weft_ns_of(weft, NULL), .limit = limit, .after = after};
    const struct weft_op_call call = {
        .op = WEFT_OP_ENDPOINTS, .in = &asking, .count = 1, .out = ret_endpoints};
    return weft_ask(weft, &call, WEFT_ARENA_OF(ret_endpoints), err);
}

WEFT_FREES(weft_endpoints)
