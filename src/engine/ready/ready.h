/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_READY_READY_H
#define WEFT_ENGINE_READY_READY_H

/* The list of queues that may have ready work: a hint, never the truth. */

#include "base/int_map.h"
#include "engine/ready/rings.h"

#include <pthread.h>

struct weft_woken;

struct weft_lane_setting {
    int32_t lane;
    int32_t ns;
    bool paused;
    int32_t max_running;
    const char *weights; /* JSON text or NULL */
};

/* How far a tenant has been served: see core/share.h. */
struct weft_turn {
    int32_t id; /* the tenant, or minus the namespace for the executions without one */
    double pass;
    weft_usec used_us; /* boot time */
};

/* How far the look over the ready queues of all namespaces has come: see ready.c. */
struct weft_ready_hop {
    int32_t after;     /* the last queue seen; 0: the next look starts over */
    uint64_t began;    /* the tick when the look over all of them began */
    bool many;         /* the last one that began anew did not see them all at once */
    weft_usec at_us;   /* boot time; the last one; 0: none */
    weft_usec all_us;  /* the last one that saw all; 0: none */
    bool slow;         /* the last one was */
    weft_usec rest_us; /* so long no claim looks again: the last two were slow */
};

struct weft_ready {
    pthread_mutex_t lock;
    struct weft_rings rings; /* the queues that had ready work */
    struct weft_ready_hop hop;
    uint64_t tick;      /* of notes, refreshes and walks: one that is newer is larger */
    uint64_t refreshes; /* begun so far: the number of the youngest */
    uint64_t lanes_of;  /* the refresh that brought the lanes: an older one changes nothing */
    uint64_t choices;
    struct weft_lane_setting *lane; /* owned, texts too; sorted by lane */
    size_t lane_count;
    struct weft_int_map turn; /* of weft_turn, owned */
    size_t turns_kept;        /* how many were left when those long unused were last dropped */
};

enum {
    WEFT_HOP_QUEUES = 1000,  /* a look over the ready queues of all namespaces sees so many */
    WEFT_WALK_QUEUES = 1000, /* a walk over the queues of a lane sees so many, ready or not */
    WEFT_WALK_LANES = 64,    /* of so many lanes at once, which then share the number */
};

/* A lane in the store whose queues are to be walked over. */
struct weft_walk {
    int32_t ns;
    const char *lane; /* in the caller's arena */
    int32_t after;    /* where it begins: behind this queue */
};

struct weft_walks {
    struct weft_walk item[WEFT_WALK_LANES];
    size_t count;
    weft_usec began_us; /* the last step of these walks; 0: none has begun */
};

/* Adds a lane that a claim asks for. Says whether its list is old: see the rule in ready.c. */
enum weft_ready_age { WEFT_READY_FRESH, WEFT_READY_SHORT, WEFT_READY_OLD };

/* Walks on over the queues of lanes. ret_queue may be NULL: else the ready ones are added. */
struct weft_queue_ids {
    int32_t *id; /* in the arena */
    size_t count;
};

/*
 * A look over the ready queues by other means: weft_ready_begin() says behind which queue it
 * begins, and weft_ready_end() takes over what was read, all or nothing.
 */
struct weft_ready_look {
    uint64_t refresh; /* its number */
    int32_t after;
    weft_usec began_us; /* boot time */
};

struct weft_ready_list {
    int32_t *queue; /* loaded; in the order of the numbers */
    size_t count;
    const struct weft_lane_setting *lane; /* copied */
    size_t lane_count;
};
void weft_ready_init(struct weft_ready *ready);
void weft_ready_done(struct weft_ready *ready);

/* The store has another lineage: what is listed may not exist there. */
void weft_ready_suspect(struct weft_ready *ready);

/* Queues got ready work. May ask the store for the names of queues that are new here. */
void weft_ready_note(struct weft_engine *engine, const struct weft_woken *woken, size_t count);

/* A queue gave nothing: takes it off the list unless it was noted after the tick. */
void weft_ready_forget(struct weft_engine *engine, int32_t queue, uint64_t tick);

/* Reads the list and the lane settings anew, as far as that goes at once. */
WEFT_MUST_CHECK enum weft_rc weft_ready_refresh(struct weft_engine *engine, struct weft_err *err);

/* Whether a claim has to do so; and whether there are more ready queues than one look can see. */
bool weft_ready_hop_is_due(struct weft_engine *engine);
bool weft_ready_has_many(struct weft_engine *engine);

/* Reads the lane settings alone. */
WEFT_MUST_CHECK enum weft_rc weft_ready_refresh_lanes(struct weft_engine *engine,
                                                      struct weft_err *err);
enum weft_ready_age weft_ready_ask(struct weft_engine *engine, int32_t ns, const char *lane,
                                   struct weft_arena *arena, struct weft_walks *walks);

/* The lanes that claims asked for lately, when the look over all namespaces cannot see them all. */
void weft_ready_asked(struct weft_engine *engine, struct weft_arena *arena,
                      struct weft_walks *ret_walks);
WEFT_MUST_CHECK enum weft_rc weft_ready_walk(struct weft_engine *engine, struct weft_walks *walks,
                                             struct weft_arena *arena,
                                             struct weft_queue_ids *ret_queues,
                                             struct weft_err *err);
struct weft_ready_look weft_ready_begin(struct weft_engine *engine);
void weft_ready_end(struct weft_engine *engine, const struct weft_ready_look *look,
                    const struct weft_ready_list *list);

#endif
