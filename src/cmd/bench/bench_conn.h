/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BENCH_BENCH_CONN_H
#define WEFT_CMD_BENCH_BENCH_CONN_H

/* Connections to a server: sockets that do not block, one request at a time on each; and the parser
 * of answers of HTTP/1.1. */

#include "base/buf.h"
#include "base/err.h"

#include <sys/socket.h>

struct weft_bench_answer {
    int status;
    char *body; /* borrowed from the connection until the next call on it */
    size_t body_size;
    size_t total;           /* bytes that the answer took */
    bool closes;            /* the server closes the connection after it */
    int64_t retry_after_ms; /* -1: no Retry-After */
};

enum weft_bench_parsed {
    WEFT_BENCH_MORE,  /* the answer is not complete yet */
    WEFT_BENCH_WHOLE, /* *ret_answer is filled */
    WEFT_BENCH_BAD,   /* this is no answer; *err says why */
};

/*
 * Looks for one answer at the beginning of data. `ended`: nothing more will come. A chunked body is
 * put together in place once it is complete; interim answers (1xx) are passed over.
 */
enum weft_bench_parsed weft_bench_parse(char *data, size_t size, bool ended,
                                        struct weft_bench_answer *ret_answer, struct weft_err *err);

struct weft_bench_target {
    char host[256]; /* as the Host header names it */
    char prefix[128];
    const char *token, *ns;
    struct sockaddr_storage address;
    socklen_t address_size;
};
/* http://HOST[:PORT][/PREFIX]. */
WEFT_MUST_CHECK enum weft_rc weft_bench_resolve(const char *url, struct weft_bench_target *target,
                                                struct weft_err *err);
/* Writes a whole POST into out, which is cleared first. */
void weft_bench_request(const struct weft_bench_target *target, const char *path,
                        const struct weft_buf *body, struct weft_buf *out);

struct weft_bench_conn {
    const struct weft_bench_target *target; /* borrowed */
    struct weft_buf request;                /* of weft_bench_call() */
    int fd;                                 /* -1: not open */
    const char *out;                        /* borrowed: what is being sent */
    size_t out_size, out_sent;
    char *in; /* owned */
    size_t in_size, in_room;
    size_t in_used; /* bytes of the answer that was given last */
    bool ended;
};

/* Opens it, or opens it again. Waits for at most five seconds. */
WEFT_MUST_CHECK enum weft_rc weft_bench_connect(struct weft_bench_conn *conn,
                                                const struct weft_bench_target *target,
                                                struct weft_err *err);
void weft_bench_close(struct weft_bench_conn *conn);
/* Begins to send a request, which must stay as it is until it is answered. */
WEFT_MUST_CHECK enum weft_rc weft_bench_send(struct weft_bench_conn *conn, const char *data,
                                             size_t size, struct weft_err *err);
/* Sends more of it. conn->out_sent == conn->out_size: all is sent. */
WEFT_MUST_CHECK enum weft_rc weft_bench_flush(struct weft_bench_conn *conn, struct weft_err *err);
/*
 * Reads what there is. WEFT_OK with *ret_parsed MORE or WHOLE; after anything else the connection
 * must be closed.
 */
WEFT_MUST_CHECK enum weft_rc weft_bench_receive(struct weft_bench_conn *conn,
                                                struct weft_bench_answer *ret_answer,
                                                enum weft_bench_parsed *ret_parsed,
                                                struct weft_err *err);
/* Waits for the answer to what was sent. */
WEFT_MUST_CHECK enum weft_rc weft_bench_await(struct weft_bench_conn *conn, int64_t timeout_ms,
                                              struct weft_bench_answer *ret_answer,
                                              struct weft_err *err);

#endif
