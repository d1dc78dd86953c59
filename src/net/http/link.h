/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_LINK_H
#define WEFT_NET_HTTP_LINK_H

/* The loop, the HTTP side of a request, and what the files of this folder share. Private to it. */

#include "net/group/fair.h"
#include "net/http/answers.h"
#include "net/http/body.h"
#include "net/http/peer.h"
#include "net/request.h"

#include <microhttpd.h>

struct weft_tls;

struct weft_loop {
    struct weft_server *server;
    struct MHD_Daemon *daemon;
    struct weft_peers peers;
    char url[300];
    struct weft_tls *tls;     /* NULL: plain HTTP */
    _Atomic size_t in_flight; /* requests begun and not completed */
    struct weft_bodies bodies;
    struct weft_answers answers;

    pthread_t thread;
    bool started;
    int events;           /* readable when libmicrohttpd has something to do */
    int poke;             /* an eventfd */
    pthread_mutex_t lock; /* over the next four */
    struct weft_fair answered;
    bool quiesce;
    bool slim; /* the thread should give memory back */
    bool ended;
    /* The loop thread's: */
    struct weft_request *fresh, **last_fresh; /* read in this turn */
    unsigned connections;                     /* after the turn before */
    size_t read;                              /* bytes of bodies that this turn has read */
    size_t sent;                              /* answers that this turn has sent */
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
    bool postponed;      /* its answer was or is left for a later turn */
    bool close;          /* the connection is not used again */
    char request_id[WEFT_REQUEST_ID_MAX + 1];
};

/* ---- http_head.c ----------------------------------------------------------------------------- */

/* Takes the id that the client sent, when it may be shown, or makes one. */
void weft_head_request_id(struct weft_link *link);
/* Finds the route, the namespace and the parameters. A failure is the answer; so is a preflight. */
WEFT_MUST_CHECK enum weft_rc weft_head_check(struct weft_link *link, struct weft_err *err);

/* ---- body.c ---------------------------------------------------------------------------------- */

/* Checks type and encoding of a body, before it is read. WEFT_UNSUPPORTED_MEDIA_TYPE. */
WEFT_MUST_CHECK enum weft_rc weft_body_check(struct weft_link *link, struct weft_err *err);
/* Checks the announced size and makes the request ready for its body. */
WEFT_MUST_CHECK enum weft_rc weft_body_begin(struct weft_link *link, size_t announced,
                                             struct weft_err *err);
/*
 * Bytes of the body have come. Bytes that are left must be given again when route->take() has had
 * the piece that request->body is now. False: the client sends too much after a refusal.
 */
WEFT_MUST_CHECK bool weft_body_take(struct weft_link *link, const char *data, size_t *left);
void weft_body_give_room(const struct weft_request *request, size_t size);

/* ---- send.c, on the loop thread -------------------------------------------------------------- */

/* Queues the answer with libmicrohttpd, or an error in place of an answer that cannot be sent. */
enum MHD_Result weft_send_answer(struct weft_link *link);
/* Gives back the memory of an answer, or of the part of one that has been sent. */
void weft_send_release(struct weft_link *link);

#endif
