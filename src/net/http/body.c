/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How the body of a request came: its type and its encoding. The headers are looked at by the loop
 * thread before the body is read; a compressed body is unpacked by an engine thread, since a small
 * one may become large.
 */

#include "net/http/body.h"

#include "base/err.h"
#include "base/str.h"
#include "net/http/http_head.h"
#include "net/http/link.h"
#include "net/lines.h"
#include "net/metrics.h"
#include "net/server.h"

#include <strings.h>

static void show_bodies(struct weft_loop *loop, uint64_t bytes)
{
    weft_metric_set(loop->server->metrics, WEFT_METRIC_HTTP_BODY_BYTES, 0, bytes);
}

/* Where the bytes of a request's namespace are counted. */
static _Atomic uint64_t *share_of(const struct weft_request *request)
{
    size_t bucket = weft_text_bucket(request->ns ? request->ns : "", WEFT_BODY_SHARES);
    return &request->server->loop->bodies.share[bucket];
}

void weft_body_give_room(const struct weft_request *request, size_t size)
{
    struct weft_loop *loop = request->server->loop;
    atomic_fetch_sub(share_of(request), size);
    show_bodies(loop, atomic_fetch_sub(&loop->bodies.all, size) - size);
}

/*
 * Bodies that never come to their end keep their room until receive_timeout. The bodies of
 * one namespace leave a quarter to all others.
 */
bool weft_body_take_room(const struct weft_request *request, size_t held, size_t size)
{
    struct weft_loop *loop = request->server->loop;
    uint64_t most = loop->bodies.most;
    uint64_t own = atomic_fetch_add(share_of(request), size) + size;
    uint64_t all = atomic_fetch_add(&loop->bodies.all, size) + size;
    bool alone = own == held + size;
    bool room = all <= most && (own <= most - most / 4 || alone);
    if (room)
        show_bodies(loop, all);
    else
        weft_body_give_room(request, size);
    return room;
}

struct codings {
    const char *value;
    unsigned count;
};

static enum MHD_Result look_at(void *context, enum MHD_ValueKind kind, const char *name,
                               const char *value)
{
    struct codings *codings = context;
    (void)kind;
    if (strcasecmp(name, "Content-Encoding") == 0) {
        codings->value = value;
        codings->count++;
    }
    return MHD_YES;
}

static enum weft_rc check_coding(struct weft_link *link, struct weft_err *err)
{
    struct codings codings = {0};
    (void)MHD_get_connection_values(link->connection, MHD_HEADER_KIND, look_at, &codings);
    link->request.coding =
        codings.count > 1 ? WEFT_CODING_UNKNOWN : weft_coding_parse(codings.value);
    if (link->request.coding != WEFT_CODING_UNKNOWN)
        return WEFT_OK;
    link->accept_encoding = WEFT_CODINGS;
    enum weft_rc rc =
        codings.count > 1
            ? weft_fail_field(err, WEFT_UNSUPPORTED_MEDIA_TYPE, "Content-Encoding",
                              "Content-Encoding is given more than once")
            : weft_fail_field(err, WEFT_UNSUPPORTED_MEDIA_TYPE, "Content-Encoding",
                              "bodies encoded as '%.40s' are not taken", codings.value);
    err->hint = "send the body as it is, or encoded once, as gzip or zstd";
    return rc;
}

enum weft_rc weft_body_check(struct weft_link *link, struct weft_err *err)
{
    const struct weft_route *route = link->request.route;
    if (route->body_max == 0)
        return WEFT_OK;
    const char *type = weft_request_header(&link->request, "Content-Type");
    if (weft_lines_type(type) && !route->takes_lines) {
        link->accept = "application/json";
        enum weft_rc rc = weft_fail_field(err, WEFT_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
                                          "this call takes no lines of JSON");
        err->hint = "send one JSON object, with Content-Type: application/json";
        return rc;
    }
    return check_coding(link, err);
}

/* A body that is being unpacked. */
struct unpacking {
    const struct weft_request *request;
    const struct weft_buf *plain;
};

static bool take_room(void *context, size_t size)
{
    const struct unpacking *unpacking = context;
    const struct weft_request *request = unpacking->request;
    return weft_body_take_room(request, request->body.size + unpacking->plain->size, size);
}

enum weft_rc weft_body_decode(struct weft_request *request, struct weft_err *err)
{
    if (request->coding == WEFT_CODING_NONE || request->body.size == 0)
        return WEFT_OK;
    struct weft_buf plain;
    struct unpacking unpacking = {.request = request, .plain = &plain};
    const struct weft_decode decode = {.coding = request->coding,
                                       .data = request->body.data,
                                       .size = request->body.size,
                                       .room = take_room,
                                       .context = &unpacking};
    weft_buf_init(&plain, request->route->body_max);
    enum weft_rc rc = weft_decode(&decode, &plain, err);
    request->coding = WEFT_CODING_NONE;
    if (!rc) {
        struct weft_buf packed = request->body;
        request->body = plain;
        plain = packed;
    }
    weft_body_give_room(request, plain.size); /* of the one that is not needed any more */
    weft_buf_done(&plain);
    return rc;
}
