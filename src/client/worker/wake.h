/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CLIENT_WORKER_WAKE_H
#define WEFT_CLIENT_WORKER_WAKE_H

/*
 * Wakes the workers of a handle and the calls that wait on it. A wake is a hint: workers and calls
 * also look by themselves, because other processes change the store as well.
 */

#include "client/client.h"

enum {
    WEFT_LOOK_FIRST_MS = 20,    /* how soon a call that waits on a store looks again, */
    WEFT_LOOK_SLOWEST_MS = 250, /* how rarely it gets, */
    WEFT_LOOK_LEAST_MS = 5,     /* and how often at most, however often it is woken */
};

/* CLOCK_MONOTONIC. */
weft_usec weft_mono_us(void);

/*
 * Tells the workers of the handle and the claims that wait on it that there is something to claim,
 * and when the earliest delayed execution becomes due (WEFT_NEVER: none).
 */
void weft_wake_workers(struct weft *weft, bool ready, weft_usec due_us);
void weft_worker_wake(struct weft_worker *worker, bool ready, weft_usec due_us);
/* Tells them that a call in this process ended a lease, which may be one of theirs. */
void weft_wake_watches(struct weft *weft);
void weft_worker_watch(struct weft_worker *worker);
/* Something happened that calls may be waiting for. */
void weft_note_change(struct weft *weft, enum weft_local_change change);

/* A call that looks at the store again and again. */
struct weft_look {
    enum weft_local_change change;
    weft_usec until_us; /* monotonic; when it gives up */
    weft_usec pause_us; /* before the next look */
    uint64_t changes;   /* of the handle, when the last look began */
};
void weft_look_init(struct weft_look *look, struct weft *weft, enum weft_local_change change,
                    int64_t wait_ms);
/* Pauses until it is worth looking again. False: the wait is over, or was stopped. */
bool weft_look_again(struct weft_look *look, const struct weft_via *via);

/* The list of running workers of a handle. */
void weft_add_worker(struct weft *weft, struct weft_worker *worker);
void weft_remove_worker(struct weft *weft, const struct weft_worker *worker);
struct weft_worker **weft_worker_link(struct weft_worker *worker);

#endif
