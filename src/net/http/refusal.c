/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests that libmicrohttpd refuses by itself, because they are no HTTP or too large. It answers
 * them in HTML, after a bad Content-Length with the head of the answer twice, and has no hook for
 * it. Inside the library such an answer is queued by MHD_queue_response(), called through the
 * dynamic linker like any exported function, so the function of that name in this file comes first.
 * It sends an error as the API does, and has the library close the connection. The answers of the
 * API are queued by weft_refusal_pass(), which finds the library's own function.
 *
 * With a libmicrohttpd that binds its own symbols the HTML would be sent as before; http/hostile
 * fails then.
 */

#include "net/http/refusal.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "wire/wire.h"

#include <dlfcn.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <sys/socket.h>

enum {
    BODY_MAX = 2048,
    ANSWER_MAX = 4096,
    DISCARD_MAX = 1 << 20, /* of what the client has sent: unread, it would take the answer along */
};

typedef enum MHD_Result queue_fn(struct MHD_Connection *connection, unsigned status,
                                 struct MHD_Response *response);

enum MHD_Result weft_refusal_pass(struct MHD_Connection *connection, unsigned status,
                                  struct MHD_Response *response)
{
    static queue_fn *_Atomic library;
    queue_fn *queue = library;
    if (!queue) {
        void *symbol = dlsym(RTLD_NEXT, "MHD_queue_response");
        memcpy(&queue, &symbol, sizeof(queue)); /* ISO C has no conversion */
        library = queue;
    }
    return queue ? queue(connection, status, response) : MHD_NO;
}

/* The error for what libmicrohttpd would say; corrects the status. */
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

static void write_answer(unsigned status, struct weft_buf *answer)
{
    const struct weft_err err = refusal_of(&status);
    struct weft_buf body;
    struct weft_json_writer out;
    weft_buf_init(&body, BODY_MAX);
    weft_json_writer_init(&out, &body);
    weft_json_begin_object(&out);
    weft_json_key(&out, "error");
    weft_wire_write_error(&err, WEFT_FENCE_NONE, &out);
    weft_json_end_object(&out);
    weft_buf_printf(answer,
                    "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                    "Connection: close\r\n\r\n",
                    status, MHD_get_reason_phrase_for(status), body.size);
    weft_buf_add(answer, body.data, body.size);
    weft_buf_done(&body);
}

/* The answer fits any send buffer; a client that left no room for it goes without. */
static void send_answer(struct MHD_Connection *connection, const struct weft_buf *answer)
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
    char ignored[16384];
    for (size_t taken = 0; taken < DISCARD_MAX; taken += sizeof(ignored))
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
    weft_buf_init(&answer, ANSWER_MAX);
    write_answer(status, &answer);
    send_answer(connection, &answer);
    weft_buf_done(&answer);
    return MHD_NO;
}
