/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How the body of a request came: its type and its encoding. The headers are looked at by the loop
 * thread before the body is read; a compressed body is unpacked by an engine thread, since a small
 * one may become large.
 */

#include "net/http/link.h"

#include "base/err.h"
#include "net/http/decode.h"

#include <strings.h>

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
    return weft_loop_take_room(request, request->body.size + unpacking->plain->size, size);
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
    weft_loop_give_room(request, plain.size); /* of the one that is not needed any more */
    weft_buf_done(&plain);
    return rc;
}
