/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_READY_RINGS_H
#define WEFT_ENGINE_READY_RINGS_H

/*
 * The queues that may have something to claim, in rings of tenants.
 *
 * There is a ring for each (namespace, lane) and one for each (namespace, lane, kind). A ring holds
 * its tenants in the order of their turns, and a tenant its queues. A claim finds the rings of its
 * lanes by hash and takes tenants from the front, so it never meets a queue of another namespace,
 * and it meets each tenant once before it meets one of them twice, however many queues that has.
 *
 * Not thread-safe, and makes no query: ready.c holds the lock, and puts queues on the list.
 */

#include "base/map.h"
#include "engine/names/names.h"

/* A tenant in one ring. */
struct weft_ring_tenant {
    int32_t id; /* 0: the executions without a tenant */
    uint32_t count, room;
    uint32_t next;              /* the queue where the next claim begins */
    struct weft_listed **queue; /* count of them; &one as long as room is 1 */
    struct weft_listed *one;
    struct weft_ring_tenant *before, *after; /* in the ring, which is closed */
    uint64_t choice;                         /* the last choice that looked at it */
    uint32_t looked;                         /* the queues that this choice looked at */
};

struct weft_ring {
    struct weft_int_map tenant;     /* by id */
    struct weft_ring_tenant *first; /* the front; NULL: the ring is empty */
    size_t queues;
    char *key; /* owned: namespace, lane, kind */
    size_t key_size;
    int32_t ns;
    uint64_t choice; /* the choice that has met it */

    /* Of a lane's ring alone. */
    const char *lane;                /* in key; NULL: this is the ring of a kind */
    int32_t lane_id;                 /* 0: no queue of it was met */
    struct weft_ring *older, *newer; /* by the time of the last claim */
    weft_usec asked_us;              /* boot time, as these: the last claim for the lane */
    weft_usec walked_us;             /* the last walk over its queues in the store; 0: none */
    weft_usec walk_took_us;          /* the walks since it began anew, together */
    weft_usec rest_until_us;         /* boot time: it came round, and no claim walks before this */
    weft_usec walking_us; /* boot time: a step of a walk began then; 0: none is under way */
    weft_usec whole_us;   /* boot time: the last walk over all of them ended then; or 0 */
    int32_t walked_to;    /* how far that came; 0: all were seen */
    uint32_t walk_queues; /* how many queues the walk over all of them has seen so far */
    uint64_t walk_began;  /* the tick when the walk over all of them began */
};

enum { WEFT_RING_LANE, WEFT_RING_KIND, WEFT_RINGS_OF_A_QUEUE };

/* A queue on the list. */
struct weft_listed {
    int32_t id;
    struct weft_capset_need need;       /* of its queue: for most queues a claim reads only this */
    uint32_t at[WEFT_RINGS_OF_A_QUEUE]; /* its places in tenant->queue */
    const struct weft_queue *queue;
    uint64_t tick; /* of the last note, hop or walk that found ready work */
    struct weft_ring *ring[WEFT_RINGS_OF_A_QUEUE];
    struct weft_ring_tenant *tenant[WEFT_RINGS_OF_A_QUEUE];
};

struct weft_rings {
    struct weft_int_map listed;        /* by queue */
    struct weft_int_map carried;       /* the same, of kinds that weft carries out itself */
    struct weft_map ring;              /* by key */
    struct weft_ring *oldest, *newest; /* rings of lanes, by the time of the last claim */
    size_t lanes;                      /* how many of these */
};

void weft_rings_done(struct weft_rings *rings); /* zeroed ones are empty and fine */

/* A queue has ready work: puts it on the list, behind the others, or leaves it where it is. */
void weft_rings_put(struct weft_rings *rings, const struct weft_queue *queue, uint64_t tick);
void weft_rings_remove(struct weft_rings *rings, struct weft_listed *listed);
struct weft_listed *weft_rings_find(const struct weft_rings *rings, int32_t queue); /* or NULL */
/* Takes off all queues of a lane, or of all lanes (NULL), that were last put at `tick` or before.
 */
void weft_rings_sweep(struct weft_rings *rings, const struct weft_ring *lane, uint64_t tick);

/* The ring of a lane (kind NULL) or of a kind in it; NULL when it has no queue. */
struct weft_ring *weft_rings_of(const struct weft_rings *rings, int32_t ns, const char *lane,
                                const char *kind);
/* The ring of a lane that a claim asks for, made when there is none. */
struct weft_ring *weft_rings_ask(struct weft_rings *rings, int32_t ns, const char *lane,
                                 weft_usec now_us);
/* Forgets lanes without a queue that no claim has asked for since then. */
void weft_rings_slim(struct weft_rings *rings, weft_usec asked_us);
/* The turn of a tenant is over: it goes behind the others of its ring. */
void weft_ring_move_back(struct weft_ring *ring, struct weft_ring_tenant *tenant);

#endif
