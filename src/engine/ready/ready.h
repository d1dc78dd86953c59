/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_READY_READY_H
#define WEFT_ENGINE_READY_READY_H

/* The list of queues that may have ready work: a hint, never the truth. */

#include "base/map.h"
#include "engine/ready/rings.h"

#include <pthread.h>

struct weft_woken;

struct weft_lane_setting {
    int32_t lane; /* first: weft_i32_order() sorts and finds settings by it */
    int32_t ns;
    bool paused;
    bool timed; /* it has a window or a rate */
    int32_t max_running;
    const char *weights; /* JSON text or NULL */
};

/* How far a tenant has been served: see core/share.h. */
struct weft_turn {
    int32_t id; /* the tenant, or minus the namespace for the executions without one */
    double pass;
    weft_usec used_us; /* boot time */
};

/* The position of the hop over the ready queues of all namespaces: see ready.c. */
struct weft_ready_hop {
    int32_t after;          /* the last queue that was read; 0: the next hop starts over */
    uint64_t began;         /* the tick when the last hop that started over began */
    bool many;              /* that hop did not read all ready queues */
    weft_usec at_us;        /* boot time; the end of the last hop; 0: none */
    weft_usec all_us;       /* boot time; the end of the last hop that read all; 0: none */
    weft_usec all_began_us; /* and when it began, or a later one that ended before it */
    bool slow;              /* the last hop was slow */
    weft_usec rest_us;      /* so long no claim makes a hop: the last two were slow */
};

struct weft_ready {
    pthread_mutex_t lock;
    struct weft_rings rings; /* the queues that had ready work */
    struct weft_ready_hop hop;
    uint64_t tick;      /* of notes, refreshes and walks: one that is newer is larger */
    uint64_t refreshes; /* begun so far: the number of the youngest */
    uint64_t lanes_of;  /* the refresh that read `lane`: an older one does not replace it */
    uint64_t choices;
    struct weft_lane_setting *lane; /* owned, texts too; sorted by lane */
    size_t lane_count;
    struct weft_int_map turn; /* of weft_turn, owned */
    size_t turns_kept;        /* how many were left when unused ones were last dropped */
};

enum {
    WEFT_HOP_QUEUES = 1000,  /* ready queues that a hop reads */
    WEFT_WALK_QUEUES = 1000, /* queues, ready or not, that a step of a walk reads */
    WEFT_WALK_LANES = 64,    /* lanes of one step, which share the number */
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

/* How old the list is for a lane: see the rule in ready.c. */
enum weft_ready_age { WEFT_READY_FRESH, WEFT_READY_SHORT, WEFT_READY_OLD };

/*
 * A hop by another statement, that of the poll: weft_ready_begin() returns behind which queue it
 * begins, and weft_ready_end() takes over all queues and lanes that it read.
 */
struct weft_ready_look {
    uint64_t refresh; /* its number */
    int32_t after;
    weft_usec began_us; /* boot time; of the try that read the rows */
    weft_usec took_us;  /* that try: without waits for connections, and without failed tries */
};

struct weft_ready_list {
    int32_t *queue; /* loaded; in the order of the numbers */
    size_t count;
    const struct weft_lane_setting *lane; /* copied */
    size_t lane_count;
};
void weft_ready_init(struct weft_ready *ready);
void weft_ready_done(struct weft_ready *ready);

/* The store has another lineage: listed queues may not exist there. */
void weft_ready_suspect(struct weft_ready *ready);

/* Queues got ready work. May ask the store for the names of queues that are new here. */
void weft_ready_note(struct weft_engine *engine, const struct weft_woken *woken, size_t count);

/* A claim found the queue empty: takes it off the list unless it was noted after the tick. */
void weft_ready_forget(struct weft_engine *engine, int32_t queue, uint64_t tick);

/*
 * Listed queues of kinds that weft carries out itself, from a place on, which moves behind them:
 * `max` at most, so that several calls see all of them. They live as long as the engine. ret_total:
 * how many are listed.
 */
size_t weft_ready_carried(struct weft_engine *engine, size_t *place,
                          const struct weft_queue **ret_queue, size_t max, size_t *ret_total);
/* Whether one of these queues is such a one. Costs nothing where there are none. */
bool weft_ready_wakes_carried(struct weft_engine *engine, const struct weft_woken *woken,
                              size_t count);

/* Makes one hop: reads up to WEFT_HOP_QUEUES ready queues and the lane settings. */
WEFT_MUST_CHECK enum weft_rc weft_ready_refresh(struct weft_engine *engine, struct weft_err *err);

/* Whether a claim that came at a moment (boot time) has to make a hop; and whether one hop cannot
 * read all ready queues. */
bool weft_ready_hop_is_due(struct weft_engine *engine, weft_usec came_us);
bool weft_ready_has_many(struct weft_engine *engine);

/* Reads the lane settings alone. */
WEFT_MUST_CHECK enum weft_rc weft_ready_refresh_lanes(struct weft_engine *engine,
                                                      struct weft_err *err);

/* A claim asks for a lane: adds it to the walks if its list is not fresh. */
enum weft_ready_age weft_ready_ask(struct weft_engine *engine, int32_t ns, const char *lane,
                                   struct weft_arena *arena, struct weft_walks *walks);

/* The lanes that claims asked for lately, if a hop cannot read all ready queues. */
void weft_ready_asked(struct weft_engine *engine, struct weft_arena *arena,
                      struct weft_walks *ret_walks);

/* Walks on over the queues of lanes. ret_queues, when not NULL, gets the ready ones, in the arena.
 */
WEFT_MUST_CHECK enum weft_rc weft_ready_walk(struct weft_engine *engine, struct weft_walks *walks,
                                             struct weft_arena *arena,
                                             struct weft_id_list *ret_queues, struct weft_err *err);
struct weft_ready_look weft_ready_begin(struct weft_engine *engine);
void weft_ready_end(struct weft_engine *engine, const struct weft_ready_look *look,
                    const struct weft_ready_list *list);

#endif
