/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ADMIN_TALLY_H
#define WEFT_ENGINE_ADMIN_TALLY_H

/* Ends counted per minute in memory, for succeeded_1h and failed_1h. */

#include "engine/engine.h"

#include <pthread.h>

struct weft_commit_effects;

struct weft_tally_entry {
    int32_t queue; /* one of the lane */
    int32_t lane;  /* 0: this process never met the queue, so it does not know */
    int64_t minute;
    int64_t succeeded, failed; /* failed: below 0 where more were replayed than failed here */
};

/* What was counted and is not in the store yet. */
struct weft_tally {
    pthread_mutex_t lock;
    struct weft_tally_entry *entry; /* owned */
    size_t count, capacity;
    int64_t purged; /* the minute in which old rows were last removed by this process */
};

/* How a lane did in the last hour. */
struct weft_lane_hour {
    int32_t ns, lane;
    int64_t succeeded, failed; /* failed may be below 0: see tally.c */
};

struct weft_lane_hours {
    struct weft_lane_hour *item; /* in the arena */
    size_t count;
};
enum { WEFT_ALL_NAMESPACES = -1 };

/* Writes what this process counted of ended executions; called about once a second. */
WEFT_MUST_CHECK enum weft_rc weft_engine_tally(struct weft_engine *engine, struct weft_err *err);
void weft_tally_init(struct weft_tally *tally);
void weft_tally_done(struct weft_tally *tally);

/* Counts what the news say has ended. */
void weft_tally_count(struct weft_engine *engine, const struct weft_commit_effects *news);

/* An execution of the queue that had failed at finished_us was replayed: it is not counted. */
void weft_tally_replayed(struct weft_engine *engine, int32_t queue, weft_usec finished_us);

/* Writes what is left when the engine is closed: one try, which never waits for a connection. */
void weft_tally_flush(struct weft_engine *engine);

/* Of the lanes of a namespace, or of all, that had any end, from the store and from memory. */
WEFT_MUST_CHECK enum weft_rc weft_tally_hours(struct weft_engine *engine, int32_t ns,
                                              struct weft_arena *arena,
                                              struct weft_lane_hours *ret_hours,
                                              struct weft_err *err);

#endif
