/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_PEER_H
#define WEFT_NET_HTTP_PEER_H

/*
 * The connections of clients: how many there may be, in all and of one address, and how long each
 * may take over a stage of a request.
 */

#include "weft/weft.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

struct sockaddr;
struct weft_address;
struct weft_server_config;

enum { WEFT_SPARE_CONNECTIONS = 128 }; /* accepted above config.connections, at most */

enum weft_peer_stage {
    WEFT_PEER_IDLE,      /* between requests */
    WEFT_PEER_RECEIVING, /* a request comes in */
    WEFT_PEER_WORKING,   /* it is being carried out, or waits: no limit but its own */
    WEFT_PEER_SENDING,   /* the answer goes out */
};

/* A connection. A client that takes too long over a stage is hung up on. */
struct weft_peer {
    TAILQ_ENTRY(weft_peer) all;
    TAILQ_ENTRY(weft_peer) strangers; /* while it is one */
    TAILQ_ENTRY(weft_peer) resting;   /* while it rests */
    int fd;
    bool let_in; /* it has sent a request that was let in; the loop thread writes it, locked */
    bool extra;  /* the loop thread's: it was let in when there was no room */
    enum weft_peer_stage stage; /* under the lock of the list, as all that follows */
    weft_usec since_us;
    struct weft_address *address; /* or NULL */
    bool stranger;                /* not let in yet: on that list */
    bool rests;                   /* let in, and idle: on that list */
    uint32_t tenant;              /* of `tenants` below, once it is let in */
    bool shut;
    _Atomic bool retired; /* nothing new is read from it; an answer under way is still sent */
    /* While it sends: */
    size_t held;    /* bytes of its answer in memory */
    bool looked;    /* the members below are set */
    uint64_t acked; /* bytes that the client had taken at mark_us; all since it connected */
    uint64_t last;  /* the same at the last sweep */
    weft_usec mark_us;
};

TAILQ_HEAD(weft_peer_list, weft_peer);

enum { WEFT_PEERS_BUCKET_BITS = 10, WEFT_PEERS_TENANTS = 256 };

struct weft_peers {
    pthread_mutex_t lock;
    struct weft_peer_list all, strangers, resting; /* all: the newest first */
    weft_usec limit_us[WEFT_PEER_SENDING + 1];     /* 0: none */
    uint64_t send_min; /* bytes that a client takes of its answer in 10 s, or is hung up on */
    uint32_t max, per_address;            /* per_address 0: see peer.c */
    uint32_t open, stranger_count;        /* without connections that were shut */
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
/*
 * Lowers config->connections to the number that the limit of descriptors allows, after raising that
 * limit if the system lets it; WEFT_INVALID_VALUE when there would be too few. Where accept() runs
 * out of descriptors, connections that would be evicted keep new ones out, and the store cannot
 * reconnect.
 */
WEFT_MUST_CHECK enum weft_rc weft_peers_fit(struct weft_server_config *config,
                                            struct weft_err *err);
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
/*
 * Shuts connections that are over their limits; the loop then closes them. excess: bytes of answers
 * that should be freed, by shutting connections that take nothing. Returns how many connections
 * were turned away since the last sweep because there were too many.
 */
uint64_t weft_peers_sweep(struct weft_peers *peers, uint64_t excess);

#endif
