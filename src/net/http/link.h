/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_LINK_H
#define WEFT_NET_HTTP_LINK_H

/* The HTTP side of a request: shared by loop.c, peer.c and request.c. */

#include "net/api/route.h"
#include "net/http/query.h"
#include "net/inside.h"

#include <microhttpd.h>

/* ---- Connections (peer.c) -------------------------------------------------------------------- */

enum weft_peer_stage {
    WEFT_PEER_IDLE,      /* between requests */
    WEFT_PEER_RECEIVING, /* a request comes in */
    WEFT_PEER_WORKING,   /* it is being carried out, or waits: no limit but its own */
    WEFT_PEER_SENDING,   /* the answer goes out */
};

/* A connection. A client that takes too long over a stage is hung up on. */
struct weft_peer {
    struct weft_peer *next, **link;
    int fd;
    bool let_in; /* it has sent a request that was let in; the loop thread writes it, locked */
    bool extra;  /* the loop thread's: it was let in when there was no room */
    enum weft_peer_stage stage; /* under the lock of the list, as all that follows */
    weft_usec since_us;
    struct weft_address *address;                     /* or NULL */
    struct weft_peer *next_stranger, **stranger_link; /* link NULL: not on that list */
    struct weft_peer *next_resting, **resting_link;   /* likewise */
    uint32_t tenant;                                  /* of `tenants` below, once it is let in */
    bool shut;
    _Atomic bool retired; /* nothing new is read from it; an answer under way is still sent */
    /* While it sends: */
    size_t held;    /* bytes of its answer in memory */
    bool looked;    /* what follows is known */
    uint64_t acked; /* bytes that the client had taken at mark_us; all since it connected */
    uint64_t last;  /* the same at the last sweep */
    weft_usec mark_us;
};

enum { WEFT_PEERS_BUCKET_BITS = 10, WEFT_PEERS_TENANTS = 256 };

struct weft_peers {
    pthread_mutex_t lock;
    struct weft_peer *first;
    weft_usec limit_us[WEFT_PEER_SENDING + 1]; /* 0: none */
    uint64_t send_min; /* bytes that a client takes of its answer in 10 s, or is hung up on */
    uint32_t max, per_address;                         /* per_address 0: see peer.c */
    struct weft_peer *first_stranger, **last_stranger; /* the oldest first */
    struct weft_peer *first_resting, **last_resting;   /* let in, and idle: the longest first */
    uint32_t open, strangers;                          /* without those that were shut */
    uint32_t tenants[WEFT_PEERS_TENANTS]; /* connections that were let in, by namespace: by hash */
    struct weft_address *bucket[1 << WEFT_PEERS_BUCKET_BITS];
    uint64_t seed;
    uint64_t evicted, refused, retired; /* since the last sweep */
};

void weft_peers_init(struct weft_peers *peers, uint32_t max, uint32_t per_address);
void weft_peers_done(struct weft_peers *peers); /* it has no connections any more */
/*
 * How many connections above `max` must be accepted, so that others can be shut for them; at most
 * WEFT_SPARE_CONNECTIONS.
 */
uint32_t weft_peers_spare(uint32_t max);
/* A connection has come, of this address or NULL. It, or another one, may be shut at once. */
struct weft_peer *weft_peer_new(struct weft_peers *peers, int fd, const struct sockaddr *address);
void weft_peer_free(struct weft_peers *peers, struct weft_peer *peer);
void weft_peer_stage(struct weft_peers *peers, struct weft_peer *peer, enum weft_peer_stage stage);
/* Shuts its socket both ways; the loop then closes it. */
void weft_peer_shut(struct weft_peers *peers, struct weft_peer *peer);
/* An answer of which so many bytes are in memory goes out from here on: stage SENDING. */
void weft_peer_sends(struct weft_peers *peers, struct weft_peer *peer, size_t held);
/*
 * A request for a namespace was let in: it is no stranger any more, and makes room only while it
 * rests between requests. Another one may be closed for it. On the loop thread.
 */
void weft_peer_let_in(struct weft_peers *peers, struct weft_peer *peer, const char *ns);
/* It came when all places were in use, and they still are: its answer is the last one on it. */
bool weft_peer_must_go(struct weft_peers *peers, struct weft_peer *peer);
/* Shuts the sockets of those that are over their limits; the loop then closes them. */
struct weft_peers_swept {
    /* Since the last sweep: strangers, shut to make room; above an address's limit; resting. */
    uint64_t evicted, refused, retired;
};
/* excess: bytes of answers that should be freed, by shutting connections that take nothing. */
struct weft_peers_swept weft_peers_sweep(struct weft_peers *peers, uint64_t excess);

/* ---- Requests -------------------------------------------------------------------------------- */

enum { WEFT_REQUEST_ID_MAX = 64 };

struct weft_link {
    struct weft_request request;
    struct MHD_Connection *connection;
    struct weft_peer *peer;
    struct weft_route_match match;
    struct weft_query query;
    const char *target; /* as it came; in the arena of the ask */
    const char *method; /* likewise */
    struct {
        uintptr_t method, target,
            version; /* where they are in libmicrohttpd's buffer: http_head.c */
    } at;
    const char *allow; /* 405: what would do; or NULL */
    /* 415: the types or the encodings that would do; or NULL. Static. */
    const char *accept, *accept_encoding;
    const char *origin;  /* the site of the page that asks, if a browser says so; or NULL */
    bool cors;           /* that site is listed: the browser is told so */
    bool preflight;      /* a browser asks whether it may ask */
    bool needs_host;     /* it is no HTTP/1.0 */
    size_t received;     /* bytes of the body, as they came */
    weft_usec began_us;  /* boot time */
    size_t held;         /* bytes of the answer that are counted: see answers.h */
    size_t sent;         /* of the body of a stream's part */
    uint64_t sent_total; /* in all parts */
    size_t discarded;    /* of a body that is not wanted */
    bool begun;          /* counted as in flight */
    bool doubtful;       /* where it ends cannot be told for sure: nothing behind it is read */
    bool discard;        /* it is answered already: its body is read and forgotten */
    bool dispatched;     /* it is or was with the engine threads */
    bool close;          /* the connection is not used again */
    char request_id[WEFT_REQUEST_ID_MAX + 1];
};

/* ---- The loop thread (http_thread.c) --------------------------------------------------------- */

struct weft_turns *weft_turns_new(struct weft_server *server);
/* Turns a daemon that has no thread of its own. */
void weft_turns_start(struct weft_turns *turns, struct MHD_Daemon *daemon);
/* Ends the thread, when it was started; the daemon is still to be stopped. */
void weft_turns_free(struct weft_turns *turns);
void weft_turns_quiesce(struct weft_turns *turns);
void weft_turns_slim(struct weft_turns *turns);
/* Asks that have been answered: from any thread. */
void weft_turns_answer(struct weft_turns *turns, struct weft_request **request, size_t count);
/* A suspended ask goes to the engine threads when this turn ends: on the loop thread. */
void weft_turns_hand_over(struct weft_turns *turns, struct weft_request *request);

/* ---- The head of a request (http_head.c) ----------------------------------------------------- */

/* The id that came with it, when it is fit to be shown, or a new one. */
void weft_head_request_id(struct weft_link *link);
/* Finds the route, the namespace and the parameters. A failure is the answer; so is a preflight. */
WEFT_MUST_CHECK enum weft_rc weft_head_check(struct weft_link *link, struct weft_err *err);

/* ---- Pages in browsers (origin.c) ------------------------------------------------------------ */

/* Sets origin and cors. */
void weft_origin_look(struct weft_link *link);
/* True when a browser asks what a page may send (the preflight of CORS). */
bool weft_origin_preflight(struct weft_link *link);
/* Adds what the browser must know. */
void weft_origin_headers(const struct weft_link *link, struct MHD_Response *response);

/* ---- The body of a request (body.c) ---------------------------------------------------------- */

/* Looks at its type and its encoding, before it is read. WEFT_UNSUPPORTED_MEDIA_TYPE. */
WEFT_MUST_CHECK enum weft_rc weft_body_check(struct weft_link *link, struct weft_err *err);

#endif
