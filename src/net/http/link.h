/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_LINK_H
#define WEFT_NET_HTTP_LINK_H

/* The HTTP side of a request, private to this folder. */

#include "net/http/answers.h"
#include "net/http/body.h"
#include "net/http/peer.h"
#include "net/request.h"

#include <microhttpd.h>

struct weft_http_thread;
struct weft_tls;

struct weft_loop {
    struct weft_server *server;
    struct MHD_Daemon *daemon;
    struct weft_http_thread *thread;
    struct weft_peers peers;
    char url[300];
    struct weft_tls *tls;     /* NULL: plain HTTP */
    size_t read;              /* the loop thread's: bytes of bodies that this turn has read */
    _Atomic size_t in_flight; /* requests begun and not completed */
    struct weft_bodies bodies;
    struct weft_answers answers;
};

enum { WEFT_REQUEST_ID_MAX = 64 };

struct weft_link {
    struct weft_request request;
    struct MHD_Connection *connection;
    struct weft_peer *peer;
    const char *target; /* as it came; in the arena of the request */
    const char *method; /* likewise */
    struct {
        uintptr_t method, target,
            version; /* where they are in libmicrohttpd's buffer: http_head.c */
    } at;
    const char *allow; /* 405: what would do; or NULL */
    /* 415: the types or the encodings that would do; or NULL. Static. */
    const char *accept, *accept_encoding;
    const char *origin;  /* the site of the page that sent the request, from a browser; or NULL */
    bool cors;           /* that site is listed: the answer says so */
    bool preflight;      /* a browser asks what a page may send */
    bool needs_host;     /* it is no HTTP/1.0 */
    size_t received;     /* bytes of the body, as they came */
    weft_usec began_us;  /* boot time */
    size_t held;         /* bytes of the answer that are counted: see answers.h */
    size_t sent;         /* of the body of a stream's part */
    uint64_t sent_total; /* in all parts */
    size_t discarded;    /* of a body that is not wanted */
    bool begun;          /* counted as in flight */
    bool doubtful;       /* its end is not certain: nothing behind it is read */
    bool discard;        /* it is answered already: its body is read and forgotten */
    bool dispatched;     /* it is or was with the engine threads */
    bool close;          /* the connection is not used again */
    char request_id[WEFT_REQUEST_ID_MAX + 1];
};

#endif
