/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_WAIT_WAITER_H
#define WEFT_NET_WAIT_WAITER_H

/*
 * A waiting request and the list of all, private to this folder. While a request sleeps it belongs
 * to the list, under the lock; otherwise to the thread that runs it, and the list only points to
 * it.
 */

#include "engine/tx/commit_effects.h"
#include "net/metrics.h"
#include "net/request.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

struct weft_request;

struct weft_waiter {
    TAILQ_ENTRY(weft_waiter) all;
    TAILQ_ENTRY(weft_waiter) claims; /* of a claim: in its bucket */
    struct weft_request *request;
    enum weft_metric_wait kind;
    bool asleep;
    weft_usec until_us;      /* boot time, as all of these; 0: its client has gone */
    weft_usec look_us;       /* when to look again without being woken; WEFT_NEVER */
    weft_usec pause_us;      /* for an end, or for room: how long it slept last */
    struct weft_woken woken; /* the wake it was given; count 0: none */
    bool late;               /* the wake came while it looked, and may be for work it cannot see */
    struct weft_id id;       /* of an end: the execution or the flow */
    bool notified;           /* of that end: by a commit here, or by upkeep, which looks for all */
    int32_t worker;          /* of a watch */
};
TAILQ_HEAD(weft_waiter_list, weft_waiter); /* the longest waiter first */

/* Claims by the hash of their namespace: a wake need not look at those of other namespaces. */
enum { WEFT_WAIT_BUCKETS = 256 };

struct weft_waits {
    struct weft_server *server;
    pthread_t thread;
    bool started;
    _Atomic size_t count; /* read without the lock to leave early */

    pthread_mutex_t lock; /* over all below */
    pthread_cond_t changed;
    struct weft_waiter_list all, claims[WEFT_WAIT_BUCKETS];
    weft_usec wakes_us; /* when the thread wakes by itself */
    bool recheck;       /* tokens have changed */
    bool stopping, ended;
};

/* All that follows: under the lock. */

/* Puts a request on the list; `as` has what is known of it. */
void weft_waiter_add(struct weft_waits *waits, struct weft_request *request,
                     const struct weft_waiter *as);
/* The request leaves the list; returns the wake that it had. */
struct weft_woken weft_waiter_drop(struct weft_waits *waits, struct weft_request *request);
/* It sleeps from here on, at most until look_us. */
void weft_waiter_sleep(struct weft_waits *waits, struct weft_waiter *waiter, weft_usec look_us);
/* Sends a sleeper to look again: it belongs to the engine threads from here on. */
void weft_waiter_rouse(struct weft_waits *waits, struct weft_waiter *waiter);
/* The claims of a namespace, and of others with the same hash; NULL: "default". */
struct weft_waiter_list *weft_waiter_claims(struct weft_waits *waits, const char *ns);

#endif
