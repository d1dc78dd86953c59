/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ADMIN_TALLY_H
#define WEFT_ENGINE_ADMIN_TALLY_H

/* Ends counted per minute in memory, for succeeded_1h and failed_1h; executions by state. */

#include "engine/engine.h"
#include "store/store.h"

#include <pthread.h>

struct weft_commit_effects;

struct weft_tally_entry {
    int32_t queue; /* one of the lane */
    int32_t lane;  /* 0: unknown, because this process never loaded the queue */
    int64_t minute;
    int64_t succeeded, failed; /* failed: below 0 where more were replayed than failed here */
};

/* Entries that are not in the store yet. */
struct weft_tally {
    pthread_mutex_t lock;
    struct weft_tally_entry *entry; /* owned */
    size_t count, capacity;
    int64_t purged; /* the minute in which old rows were last removed by this process */
};

/* The ends of lanes in the last hour. `failed` may be below 0: see tally.c. */
struct weft_lane_hours {
    struct weft_tally_read_out *item; /* by lane; in the arena */
    size_t count;
};
enum { WEFT_ALL_NAMESPACES = -1 };

/* Writes the entries of this process; called about once a second. */
WEFT_MUST_CHECK enum weft_rc weft_engine_tally(struct weft_engine *engine, struct weft_err *err);
void weft_tally_init(struct weft_tally *tally);
void weft_tally_done(struct weft_tally *tally);

/* Counts the ends in the effects of a commit. */
void weft_tally_count(struct weft_engine *engine, const struct weft_commit_effects *news);

/* An execution of the queue that failed at finished_us was replayed: subtracts its failure. */
void weft_tally_replayed(struct weft_engine *engine, int32_t queue, weft_usec finished_us);

/* Writes the entries when the engine is closed: one try, which never waits for a connection. */
void weft_tally_flush(struct weft_engine *engine);

/* All lanes of a namespace, or of all, with an end in the last hour: from store and memory. */
WEFT_MUST_CHECK enum weft_rc weft_tally_hours(struct weft_engine *engine, int32_t ns,
                                              struct weft_arena *arena,
                                              struct weft_lane_hours *ret_hours,
                                              struct weft_err *err);

/* The counts of every namespace, in the order of namespaces and lanes. */
struct weft_counted_lane {
    const char *ns;
    struct weft_lane_count lane;
};

struct weft_all_counts {
    struct weft_counted_lane *item; /* in the arena */
    size_t count;
    weft_usec as_of_us;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_counts(struct weft_engine *engine, const char *ns,
                                                const char *lane, struct weft_arena *arena,
                                                struct weft_counts *ret_counts,
                                                struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_all_counts(struct weft_engine *engine,
                                                    struct weft_arena *arena,
                                                    struct weft_all_counts *ret_counts,
                                                    struct weft_err *err);

#endif
