/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How the body of a request came: its type and its encoding. The headers are looked at by the loop
 * thread before the body is read; a compressed body is unpacked by an engine thread, since a small
 * one may become large.
 */

#include "net/http/body.h"

#include "base/err.h"
#include "base/str.h"
#include "engine/batch/file_writer.h"
#include "net/http/link.h"
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
 * Counts bytes of a body that are kept in memory; the request holds `held` already. From any
 * thread. False, and nothing is counted, when there is no room: all bodies together have `most`,
 * and one namespace has three quarters of that, or one body if that is larger. Bodies that never
 * come to their end keep their room until receive_timeout.
 */
static bool take_room(const struct weft_request *request, size_t held, size_t size)
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
    bool pieces = link->request.route->take; /* which are not unpacked */
    if (link->request.coding == WEFT_CODING_NONE ||
        (link->request.coding != WEFT_CODING_UNKNOWN && !pieces))
        return WEFT_OK;
    weft_reply_header(&link->request, "Accept-Encoding", pieces ? "identity" : WEFT_CODINGS);
    enum weft_rc rc =
        codings.count > 1
            ? weft_fail_field(err, WEFT_UNSUPPORTED_MEDIA_TYPE, "Content-Encoding",
                              "Content-Encoding is given more than once")
            : weft_fail_field(err, WEFT_UNSUPPORTED_MEDIA_TYPE, "Content-Encoding",
                              "bodies encoded as '%.40s' are not taken", codings.value);
    return weft_hint(err, rc,
                     pieces ? "send the body as it is"
                            : "send the body as it is, or encoded once, as gzip or zstd");
}

enum weft_rc weft_body_check(struct weft_link *link, struct weft_err *err)
{
    const struct weft_route *route = link->request.route;
    if (route->body_max == 0)
        return WEFT_OK;
    const char *type = weft_request_header(&link->request, "Content-Type");
    if (weft_lines_type(type) && !route->takes_lines && !route->any_body) {
        weft_reply_header(&link->request, "Accept", "application/json");
        return weft_hint(err,
                         weft_fail_field(err, WEFT_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
                                         "this call takes no lines of JSON"),
                         "send one JSON object, with Content-Type: application/json");
    }
    return check_coding(link, err);
}

/* A body that is being unpacked. */
struct unpacking {
    const struct weft_request *request;
    const struct weft_buf *plain;
};

static bool take_decoded(void *context, size_t size)
{
    const struct unpacking *unpacking = context;
    const struct weft_request *request = unpacking->request;
    return take_room(request, request->body.size + unpacking->plain->size, size);
}

static enum weft_rc decode_body(struct weft_request *request, struct weft_err *err)
{
    if (request->coding == WEFT_CODING_NONE || request->body.size == 0)
        return WEFT_OK;
    struct weft_buf plain;
    struct unpacking unpacking = {.request = request, .plain = &plain};
    const struct weft_decode decode = {.coding = request->coding,
                                       .data = request->body.data,
                                       .size = request->body.size,
                                       .room = take_decoded,
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

enum weft_rc weft_body_read(struct weft_request *request, struct weft_err *err)
{
    const struct weft_route *route = request->route;
    enum weft_rc rc = decode_body(request, err);
    if (!rc && route->take && request->body.size > 0) {
        rc = route->take(request, err);
        weft_body_give_room(request, request->body.size);
        weft_buf_clear(&request->body);
    }
    return rc || request->more ? rc : route->read(request, err);
}

/* ---- The body -------------------------------------------------------------------------------- */

static enum weft_rc unwanted(struct weft_err *err)
{
    return weft_fail(err, WEFT_INVALID_VALUE, "no body is taken here");
}

static enum weft_rc too_large(const struct weft_link *link, struct weft_err *err)
{
    return weft_fail_field(err, WEFT_TOO_LARGE, "body", "the body is larger than %zu bytes",
                           link->request.route->body_max);
}

enum weft_rc weft_body_begin(struct weft_link *link, size_t announced, struct weft_err *err)
{
    struct weft_request *request = &link->request;
    if (request->route->take && announced > request->server->config.file_bytes + WEFT_FORM_MAX)
        return weft_file_too_large(request->server->config.file_bytes, err);
    if (announced > request->route->body_max)
        return request->route->body_max ? too_large(link, err) : unwanted(err);
    if (request->route->body_max)
        weft_buf_init(&request->body,
                      request->route->take ? WEFT_PIECE_MAX : request->route->body_max);
    return WEFT_OK;
}

/*
 * How much more a refused request may send before it is cut off. The answer can only be sent behind
 * the body, and a client that is cut off does not see it: an upload that is refused on its way may
 * send what it could have sent anyway.
 */
static uint64_t discard_max(const struct weft_request *request)
{
    return request->route && request->route->take ? request->server->config.file_bytes
                                                  : WEFT_DISCARD_MAX;
}

static void refuse_body(struct weft_link *link)
{
    link->discard = true;
    link->close = true;
    weft_body_give_room(&link->request, link->request.body.size);
    weft_buf_done(&link->request.body);
}

bool weft_body_take(struct weft_link *link, const char *data, size_t *left)
{
    struct weft_request *request = &link->request;
    struct weft_err err = {0};
    if (request->more) { /* an engine thread has had the piece before this one */
        request->more = false;
        weft_peer_stage(&request->server->loop->peers, link->peer, WEFT_PEER_RECEIVING);
        if (request->reply.status)
            refuse_body(link);
    }
    if (link->discard) {
        link->discarded += *left;
        *left = 0;
        return link->discarded <= discard_max(request);
    }
    size_t room = request->body.max - request->body.size;
    size_t size = request->route->take && *left > room ? room : *left;
    *left -= size;
    if (request->route->body_max == 0) {
        (void)unwanted(&err);
    } else if (size > request->route->body_max - link->received) {
        (void)too_large(link, &err);
    } else if (!take_room(request, request->body.size, size)) {
        (void)weft_decode_no_room(&err);
    }
    if (err.rc) {
        weft_reply_error(request, &err);
        refuse_body(link);
        *left = 0;
        return true;
    }
    weft_buf_add(&request->body, data, size);
    link->received += size;
    return true;
}
