/* SPDX-License-Identifier: Apache-2.0 */

/* Sends answers, whole or in parts, and counts the memory that they take (answers.h). */

#include "net/http/link.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "net/group/group.h"
#include "net/http/loop.h"
#include "net/metrics.h"
#include "net/server.h"
#include "wire/wire.h"

#include <dlfcn.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <sys/socket.h>

/* ---- Requests that libmicrohttpd refuses ----------------------------------------------------- */

/*
 * Requests that libmicrohttpd refuses by itself, because they are no HTTP or too large. It answers
 * them in HTML, after a bad Content-Length with the head of the answer twice, and has no hook for
 * it. Inside the library such an answer is queued by MHD_queue_response(), called through the
 * dynamic linker like any exported function, so the function of that name below comes first.
 * It sends an error as the API does, and has the library close the connection. The answers of the
 * API are queued by queue(), which finds the library's own function.
 *
 * With a libmicrohttpd that binds its own symbols the HTML would be sent as before; http/hostile
 * fails then.
 */

enum { REFUSAL_BODY = 2048, REFUSAL_MAX = 4096 };

typedef enum MHD_Result queue_fn(struct MHD_Connection *connection, unsigned status,
                                 struct MHD_Response *response);

static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response)
{
    static queue_fn *_Atomic library;
    queue_fn *found = library;
    if (!found) {
        void *symbol = dlsym(RTLD_NEXT, "MHD_queue_response");
        memcpy(&found, &symbol, sizeof(found)); /* ISO C has no conversion */
        library = found;
    }
    return found ? found(connection, status, response) : MHD_NO;
}

/* The error in place of the answer of libmicrohttpd; corrects the status. */
static struct weft_err refusal_of(unsigned *status)
{
    struct weft_err err = {0};
    switch (*status) {
    case MHD_HTTP_CONTENT_TOO_LARGE:
        (void)!weft_fail(&err, WEFT_TOO_LARGE, "the length of the body is beyond all limits");
        break;
    case MHD_HTTP_URI_TOO_LONG:
        (void)!weft_fail(&err, WEFT_TOO_LARGE, "the path and query are too long");
        break;
    case MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE:
        (void)!weft_fail(&err, WEFT_TOO_LARGE, "the headers are too large");
        break;
    case MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED:
        (void)!weft_fail(&err, WEFT_INVALID_VALUE, "the version of HTTP is not supported");
        err.hint = "use HTTP/1.1";
        break;
    case MHD_HTTP_BAD_REQUEST:
        (void)!weft_fail(&err, WEFT_INVALID_VALUE, "the request is not valid HTTP");
        err.hint = "check its first line, its headers and the form of its body";
        break;
    default: /* 500: a line does not fit its buffer */
        *status = MHD_HTTP_CONTENT_TOO_LARGE;
        (void)!weft_fail(&err, WEFT_TOO_LARGE, "the request has a line that is too long");
        break;
    }
    return err;
}

static void write_refusal(unsigned status, struct weft_buf *answer)
{
    const struct weft_err err = refusal_of(&status);
    struct weft_buf body;
    struct weft_json_writer out;
    weft_buf_init(&body, REFUSAL_BODY);
    weft_json_writer_init(&out, &body);
    weft_json_begin_object(&out);
    weft_json_key(&out, "error");
    weft_wire_write_error(&err, NULL, &out);
    weft_json_end_object(&out);
    weft_buf_printf(answer,
                    "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                    "Connection: close\r\n\r\n",
                    status, MHD_get_reason_phrase_for(status), body.size);
    weft_buf_add(answer, body.data, body.size);
    weft_buf_done(&body);
}

/* The answer fits any send buffer; a client that left no room for it goes without. */
static void send_refusal(struct MHD_Connection *connection, const struct weft_buf *answer)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *tls =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (!info)
        return;
    int fd = info->connect_fd;
    if (tls && tls->tls_session)
        (void)gnutls_record_send(tls->tls_session, answer->data, answer->size);
    else
        (void)!send(fd, answer->data, answer->size, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(fd, SHUT_WR);
    char ignored[16384]; /* bytes of the client: left unread, they would reset the connection */
    for (size_t taken = 0; taken < WEFT_DISCARD_MAX; taken += sizeof(ignored))
        if (recv(fd, ignored, sizeof(ignored), MSG_DONTWAIT) <= 0)
            break;
}

/* Called by libmicrohttpd alone. */
__attribute__((visibility("default"))) enum MHD_Result
MHD_queue_response(struct MHD_Connection *connection, unsigned status,
                   struct MHD_Response *response)
{
    (void)response;
    struct weft_buf answer;
    weft_buf_init(&answer, REFUSAL_MAX);
    write_refusal(status, &answer);
    send_refusal(connection, &answer);
    weft_buf_done(&answer);
    return MHD_NO;
}

/* ---- Answers --------------------------------------------------------------------------------- */

enum {
    STREAM_BLOCK = 32 << 10,
    SMALL_ANSWER = 16 << 10, /* is sent although other answers fill the memory */
};

struct weft_answers *weft_loop_answers(struct weft_loop *loop)
{
    return &loop->answers;
}

void weft_send_release(struct weft_link *link)
{
    struct weft_server *server = link->request.server;
    if (link->held == 0)
        return;
    bool opens = weft_answers_give(&server->loop->answers, link->request.ns, link->held);
    weft_metric_sub(server->metrics, WEFT_METRIC_HTTP_ANSWER_BYTES, 0, link->held);
    link->held = 0;
    if (opens && server->groups)
        weft_groups_look(server->groups);
}

void weft_loop_hold(struct weft_request *request)
{
    struct weft_link *link = request->link;
    struct weft_server *server = request->server;
    if (link->held > 0 && link->held == request->reply.body.capacity)
        return; /* an engine thread has counted it */
    weft_send_release(link);
    link->held = request->reply.body.capacity;
    weft_answers_take(&server->loop->answers, request->ns, link->held);
    weft_metric_add(server->metrics, WEFT_METRIC_HTTP_ANSWER_BYTES, 0, link->held);
}

/* The answer, or the next part of it, goes out from here on. */
static void begin_sending(struct weft_link *link)
{
    weft_loop_hold(&link->request);
    weft_peer_sends(&link->request.server->loop->peers, link->peer, link->held);
}

/* The next bytes of an answer that comes in parts. */
static ssize_t read_stream(void *context, uint64_t position, char *to, size_t max)
{
    (void)position;
    struct weft_link *link = context;
    struct weft_request *request = &link->request;
    struct weft_reply *reply = &request->reply;
    if (reply->broken) {
        /*
         * libmicrohttpd 0.9.75 with epoll forgets a connection whose reader fails right after it
         * was resumed: it would stay until the client goes. So the socket is shut, and a byte is
         * given that cannot be sent any more: that fails, and the connection is closed.
         */
        weft_peer_shut(&request->server->loop->peers, link->peer);
        *to = '\n';
        return 1;
    }
    size_t left = reply->body.size - link->sent;
    if (left > 0 && link->sent == 0)
        begin_sending(link);
    if (left > 0) {
        size_t size = left < max ? left : max;
        memcpy(to, reply->body.data + link->sent, size);
        link->sent += size;
        link->sent_total += size;
        return (ssize_t)size;
    }
    if (reply->last)
        return MHD_CONTENT_READER_END_OF_STREAM;
    /* The part before has gone out: it is freed, and an engine thread makes the next one. */
    size_t body_max = reply->body.max;
    weft_buf_done(&reply->body);
    weft_buf_init(&reply->body, body_max);
    link->sent = 0;
    weft_send_release(link);
    weft_peer_stage(&request->server->loop->peers, link->peer, WEFT_PEER_WORKING);
    MHD_suspend_connection(link->connection);
    weft_groups_put_again(request->server->groups, request);
    return 0;
}

/* The headers by which a browser lets the page read the answer (CORS). */
static void add_origin_headers(const struct weft_link *link, struct MHD_Response *response)
{
    const struct weft_origins *origins = &link->request.server->origins;
    /* Caches must not give the answer for one site to another. */
    if (origins->count > 0 && !origins->any)
        (void)MHD_add_response_header(response, "Vary", "Origin");
    if (!link->cors)
        return;
    (void)MHD_add_response_header(response, "Access-Control-Allow-Origin",
                                  origins->any ? "*" : link->origin);
    if (!link->preflight) {
        (void)MHD_add_response_header(response, "Access-Control-Expose-Headers",
                                      "X-Request-Id, Retry-After, Location");
        return;
    }
    (void)MHD_add_response_header(response, "Access-Control-Allow-Methods",
                                  link->request.match.allow);
    (void)MHD_add_response_header(response, "Access-Control-Allow-Headers",
                                  "Authorization, Content-Type, Content-Encoding, "
                                  "X-Weft-Namespace, X-Request-Id");
    (void)MHD_add_response_header(response, "Access-Control-Max-Age", "600");
}

static bool add_header(struct MHD_Response *response, const struct weft_header *header)
{
    (void)MHD_add_response_header(response, header->name, header->value);
    return strcmp(header->name, "Content-Type") == 0;
}

static void add_headers(struct weft_link *link, struct MHD_Response *response)
{
    static const struct weft_header json = {"Content-Type", "application/json"},
                                    closes = {"Connection", "close"};
    const struct weft_reply *reply = &link->request.reply;
    const struct weft_route *route = link->request.route;
    struct weft_server *server = link->request.server;
    bool typed = link->preflight; /* which has no body */
    for (size_t i = 0; i < reply->headers; i++)
        typed |= add_header(response, &reply->header[i]);
    if (!typed)
        (void)add_header(response, &json);
    for (size_t i = 0; route && reply->status < 400 && i < WEFT_ROUTE_HEADERS; i++)
        if (route->header[i].name)
            (void)add_header(response, &route->header[i]);
    add_origin_headers(link, response);
    (void)add_header(response, &(struct weft_header){"X-Request-Id", link->request_id});
    if (link->close || server->stopping || weft_peer_must_go(&server->loop->peers, link->peer))
        (void)add_header(response, &closes);
}

/*
 * Answers that are sent although other answers fill the memory: of claims, because the leases are
 * given, and the metrics, which show how much memory answers take.
 */
static bool is_sent_always(const struct weft_link *link)
{
    const struct weft_route *route = link->request.route;
    return link->request.reply.body.size <= SMALL_ANSWER ||
           (route && (route->op->group == WEFT_GROUP_CLAIM || route->shape == WEFT_SHAPE_TEXT));
}

/* Replaces an answer that cannot be sent by an error. */
static void check_answer(struct weft_link *link)
{
    const struct weft_reply *reply = &link->request.reply;
    const struct weft_answers *answers = &link->request.server->loop->answers;
    struct weft_err err = {0};
    if (reply->body.full) {
        (void)weft_fail(&err, WEFT_TOO_LARGE, "the answer is larger than %zu bytes",
                        reply->body.max);
        err.hint = "ask for fewer at once";
        weft_reply_error(&link->request, &err);
    } else if (!is_sent_always(link) &&
               weft_answers_refuse(answers, link->held > 0 ? 0 : reply->body.size)) {
        (void)weft_fail(&err, WEFT_UNAVAILABLE, "no room for the answer in memory");
        err.hint = "other clients read their answers too slowly: try again later";
        weft_buf_done(&link->request.reply.body);
        weft_reply_error(&link->request, &err);
    }
}

enum MHD_Result weft_send_answer(struct weft_link *link)
{
    struct weft_reply *reply = &link->request.reply;
    if (reply->status == 0)
        return MHD_NO; /* its client has gone */
    check_answer(link);
    struct MHD_Response *response =
        reply->stream ? MHD_create_response_from_callback(reply->stream_bytes ? reply->stream_bytes
                                                                              : MHD_SIZE_UNKNOWN,
                                                          STREAM_BLOCK, read_stream, link, NULL)
                      : MHD_create_response_from_buffer(reply->body.size, reply->body.data,
                                                        MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    add_headers(link, response);
    begin_sending(link);
    link->sent_total = reply->stream ? 0 : reply->body.size;
    enum MHD_Result queued = queue(link->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return queued;
}
