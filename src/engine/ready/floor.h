/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_READY_FLOOR_H
#define WEFT_ENGINE_READY_FLOOR_H

/* Floors: where the ready rows of queues begin, for open snapshots. */

#include "base/map.h"

#include <pthread.h>
#include <stdatomic.h>

struct weft_floors {
    pthread_mutex_t lock;
    bool used;                 /* the store needs them */
    _Atomic size_t count;      /* of queue; read without the lock to leave early */
    struct weft_int_map queue; /* by queue; owned */
    uint64_t tick;
};

struct weft_floor {
    int32_t priority;
    int64_t ord;
};

/* What a claim took from a queue. */
struct weft_floor_claim {
    int32_t queue;
    bool above;    /* the claim began at a floor */
    bool short_of; /* and got fewer rows than it asked for */
    uint32_t got;
    struct weft_floor last; /* the place of the last of these */
    uint64_t tick;          /* before its statement */
    weft_usec began_us;     /* before its statement, by the clock of the store */
    weft_usec took_us;
};
void weft_floors_init(struct weft_floors *floors, bool used);
void weft_floors_done(struct weft_floors *floors);
uint64_t weft_floor_tick(struct weft_floors *floors);
bool weft_floor_get(struct weft_floors *floors, int32_t queue, struct weft_floor *ret_floor);
void weft_floor_claimed(struct weft_floors *floors, const struct weft_floor_claim *claim);

/* A row may have become ready anywhere in the queue. */
void weft_floor_drop(struct weft_floors *floors, int32_t queue);

/* New rows are ready: with at most this priority, and none before this place in the order. */
void weft_floor_added(struct weft_floors *floors, int32_t queue, const struct weft_floor *first,
                      weft_usec now_us);

#endif
