/* SPDX-License-Identifier: Apache-2.0 */

/* Sends answers, whole or in parts, and counts the memory that they take (answers.h). */

#include "net/http/send.h"

#include "base/err.h"
#include "net/group/group.h"
#include "net/http/loop.h"
#include "net/http/origin.h"
#include "net/http/refusal.h"
#include "net/metrics.h"
#include "net/server.h"

#include <stdio.h>
#include <string.h>

enum {
    STREAM_BLOCK = 32 << 10,
    SMALL_ANSWER = 16 << 10, /* is sent whatever the others hold */
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

static void add_headers(struct weft_link *link, struct MHD_Response *response)
{
    const struct weft_reply *reply = &link->request.reply;
    if (!link->preflight) /* which has no body */
        (void)MHD_add_response_header(response, "Content-Type",
                                      reply->type ? reply->type : "application/json");
    weft_origin_headers(link, response);
    (void)MHD_add_response_header(response, "X-Request-Id", link->request_id);
    if (reply->type) {
        /* Bytes that a client submitted: a browser must not take them for a page of this site. */
        (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        (void)MHD_add_response_header(response, "Content-Security-Policy", "sandbox");
    }
    if (reply->retry_after_s) {
        char text[16];
        (void)snprintf(text, sizeof(text), "%d", reply->retry_after_s);
        (void)MHD_add_response_header(response, "Retry-After", text);
    }
    if (reply->location)
        (void)MHD_add_response_header(response, "Location", reply->location);
    if (link->allow)
        (void)MHD_add_response_header(response, "Allow", link->allow);
    if (link->accept)
        (void)MHD_add_response_header(response, "Accept", link->accept);
    if (link->accept_encoding)
        (void)MHD_add_response_header(response, "Accept-Encoding", link->accept_encoding);
    if (reply->status == 401)
        (void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    struct weft_server *server = link->request.server;
    if (link->close || server->stopping || weft_peer_must_go(&server->loop->peers, link->peer))
        (void)MHD_add_response_header(response, "Connection", "close");
}

/*
 * Answers that are sent whatever the others hold: of claims, because the leases are given, and the
 * metrics, which show who holds the memory.
 */
static bool is_sent_always(const struct weft_link *link)
{
    const struct weft_route *route = link->request.route;
    return link->request.reply.body.size <= SMALL_ANSWER ||
           (route && (route->op->group == WEFT_GROUP_CLAIM || route->shape == WEFT_SHAPE_TEXT));
}

/* Answers with an error what cannot be sent. */
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
        reply->stream ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
                                                          read_stream, link, NULL)
                      : MHD_create_response_from_buffer(reply->body.size, reply->body.data,
                                                        MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    add_headers(link, response);
    begin_sending(link);
    link->sent_total = reply->stream ? 0 : reply->body.size;
    enum MHD_Result queued = weft_refusal_pass(link->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return queued;
}
