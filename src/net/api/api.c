/* SPDX-License-Identifier: Apache-2.0 */

/* What the API areas share, and the handlers of rows that need no code of their own. */

#include "net/api/api.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/cursor.h"
#include "core/spec.h"
#include "engine/call.h"
#include "net/api/api_counts.h"
#include "net/api/handlers.h"
#include "net/group/claims.h"
#include "net/server.h"
#include "weft/admin.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

enum { DOCUMENT_MAX = 4 << 20, FIGURES_MAX = 1 << 20 };

struct weft_api *weft_api_new(void)
{
    struct weft_api *api = weft_alloc(1, sizeof(*api));
    api->counts = weft_counts_cache_new();
    weft_buf_init(&api->figures.text, FIGURES_MAX);
    pthread_mutex_init(&api->figures.lock, NULL);
    pthread_mutex_init(&api->lock, NULL);
    return api;
}

void weft_api_free(struct weft_api *api)
{
    if (!api)
        return;
    weft_counts_cache_free(api->counts);
    weft_buf_done(&api->document);
    weft_buf_done(&api->figures.text);
    pthread_mutex_destroy(&api->figures.lock);
    pthread_mutex_destroy(&api->lock);
    free(api);
}

const struct weft_buf *weft_api_document(struct weft_api *api)
{
    pthread_mutex_lock(&api->lock);
    if (api->document.size == 0) {
        weft_buf_init(&api->document, DOCUMENT_MAX);
        weft_openapi_write(&weft_routes, &api->document);
    }
    pthread_mutex_unlock(&api->lock);
    return &api->document;
}

enum weft_rc weft_api_paging(const struct weft_request *request, struct weft_paging *ret_paging,
                             struct weft_err *err)
{
    static const struct weft_request_number limit = {
        .name = "limit", .min = 1, .max = WEFT_PAGE_MAX, .normally = WEFT_PAGE_DEFAULT};
    int64_t value = 0;
    enum weft_rc rc = weft_request_query_i64(request, &limit, &value, err);
    const char *after = weft_request_query(request, "after");
    if (!rc && after && !*after)
        rc = weft_cursor_refuse(err);
    if (!rc)
        *ret_paging = (struct weft_paging){.limit = (uint32_t)value, .after = after};
    return rc;
}

enum weft_rc weft_api_wait_until(const struct weft_request *request, weft_usec *ret_until_us,
                                 struct weft_err *err)
{
    static const struct weft_request_number number = {.name = "wait_ms",
                                                      .max = WEFT_LONG_POLL_MAX_MS};
    int64_t wait_ms = 0;
    enum weft_rc rc = weft_request_query_i64(request, &number, &wait_ms, err);
    if (!rc)
        *ret_until_us = wait_ms > 0 ? weft_boot_us() + wait_ms * WEFT_MS : 0;
    return rc;
}

enum weft_rc weft_api_reply_page(struct weft_request *request, const struct weft_api_page *page)
{
    struct weft_json_writer out;
    weft_reply_items(request, &out);
    for (size_t i = 0; i < page->count; i++)
        weft_wire_write(request->route->op->gives, (const char *)page->item + i * page->stride,
                        &out);
    weft_json_end_array(&out);
    if (request->route->shape == WEFT_SHAPE_PAGE)
        weft_json_add_text(&out, "next", page->next);
    if (page->looked_to_us) {
        weft_json_key(&out, "looked_to");
        weft_wire_put_moment(&out, page->looked_to_us);
    }
    weft_json_end_object(&out);
    return WEFT_OK;
}

enum weft_rc weft_api_reply(struct weft_request *request, enum weft_rc rc, const void *message)
{
    if (!rc)
        weft_reply_wire(request, 200, request->route->op->gives, message);
    return rc;
}

void weft_api_reply_made(struct weft_request *request, const struct weft_id *id, bool duplicate,
                         const void *message)
{
    const struct weft_op_info *op = request->route->op;
    char text[WEFT_ID_TEXT];
    weft_id_print(id, text);
    weft_reply_header(request, "Location",
                      weft_arena_printf(request->arena, "%s/%s", op->path, text));
    weft_reply_wire(request, duplicate ? 200 : 201, op->gives, message);
}

void weft_api_put_error(const struct weft_err *error, const struct weft_wire_detail *detail,
                        struct weft_json_writer *out)
{
    weft_json_key(out, "error");
    weft_wire_write_error(error, detail, out);
}

enum weft_rc weft_api_read_message(struct weft_request *request, void *ret_message,
                                   struct weft_err *err)
{
    const struct weft_route *route = request->route;
    return weft_request_read(request, route->may_be_empty, route->op->takes, ret_message, err);
}

enum weft_rc weft_api_read_named(struct weft_request *request, const char *what, void *ret_message,
                                 struct weft_err *err)
{
    const char **name = ret_message, *path = weft_request_path(request, what);
    enum weft_rc rc = weft_name_check(path, what, err);
    if (!rc)
        rc = weft_api_read_message(request, ret_message, err);
    if (!rc && *name && strcmp(*name, path) != 0)
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, what,
                             "the path names another %s than the body", what);
    *name = path;
    return rc;
}

enum weft_rc weft_api_read_nothing(struct weft_request *request, struct weft_err *err)
{
    struct weft_json object;
    enum weft_rc rc = weft_request_object(request, true, &object, err);
    if (rc)
        return rc;
    struct weft_json_iter member;
    weft_json_iter_init(&member, &object);
    if (!weft_json_next(&member))
        return WEFT_OK;
    const char *name = NULL;
    rc = weft_json_string(&member.key, request->arena, &name, err);
    return rc ? rc
              : weft_fail_field(err, WEFT_UNKNOWN_FIELD, name,
                                "this call takes no field of that name");
}

/* ---- Handlers of rows that say all there is to know ------------------------------------------ */

enum weft_rc weft_api_read(struct weft_request *request, struct weft_err *err)
{
    const struct weft_route *route = request->route;
    const struct weft_route_arg *arg = &route->arg;
    const struct weft_wire_type *takes = route->op->takes;
    size_t size = arg->size || !takes ? arg->size : weft_wire_size(takes);
    char *in = weft_arena_alloc(request->arena, 1, size + 1);
    struct weft_paging paging = {0};
    enum weft_rc rc = takes ? weft_api_read_message(request, in, err) : WEFT_OK;
    if (!rc && arg->id)
        rc = weft_request_id(request, (void *)(in + arg->id - 1), err);
    if (!rc && route->shape == WEFT_SHAPE_PAGE)
        rc = weft_api_paging(request, &paging, err);
    if (arg->ns)
        memcpy(in + arg->ns - 1, &request->ns, sizeof(request->ns));
    if (arg->limit)
        memcpy(in + arg->limit - 1, &paging.limit, sizeof(paging.limit));
    if (arg->after)
        memcpy(in + arg->after - 1, &paging.after, sizeof(paging.after));
    request->state = in;
    return rc;
}

/* request->state is the argument. An answer of bytes, of one message, or of a list of messages. */
enum weft_rc weft_api_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_route *route = request->route;
    union {
        struct weft_bytes bytes;
        struct weft_lane lane;
        struct weft_gate gate;
        struct weft_budget budget;
        struct weft_endpoint endpoint;
        struct weft_file_info file;
        struct weft_why why;
        struct weft_waiting waiting;
        struct weft_waitpoint waitpoint;
        struct weft_flows
            list; /* every list of weft.h begins like it, but for what its items are */
    } out = {0};
    const struct weft_op_info *op = route->op;
    const struct weft_op_call call = {.op = (enum weft_op)(op - weft_ops),
                                      .ns = request->ns,
                                      .in = request->state,
                                      .count = 1,
                                      .out = &out,
                                      .arena = request->arena};
    enum weft_rc rc = weft_engine_call(request->server->engine, &call, err);
    if (!rc && (route->shape == WEFT_SHAPE_PAGE || route->shape == WEFT_SHAPE_ITEMS))
        return weft_api_reply_page(request,
                                   &(struct weft_api_page){.item = out.list.item,
                                                           .stride = weft_wire_size(op->gives),
                                                           .count = out.list.count,
                                                           .next = out.list.next,
                                                           .looked_to_us = out.list.looked_to_us});
    if (rc || route->shape != WEFT_SHAPE_BYTES)
        return weft_api_reply(request, rc, &out);
    weft_reply_bytes(request, out.bytes.data, out.bytes.size,
                     out.bytes.content_type ? out.bytes.content_type : "application/octet-stream");
    return WEFT_OK;
}
