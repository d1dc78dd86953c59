/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ADMIN_REPLICAS_H
#define WEFT_ENGINE_ADMIN_REPLICAS_H

/* The rows of replicas: their heartbeats, and the scanners that the living ones run. */

#include "engine/engine.h"

struct weft_replica_row {
    struct weft_id id;
    const char *host;
    int64_t pid;
    const char *version;
    const char *url;
    weft_usec started_us;
    weft_usec up_since_us; /* the replica has served without a gap since then: the grace in net/ */
    weft_usec seen_us;     /* set by weft_engine_replica_put() to the store's time */
    const char *settings;  /* a JSON object */
    const char
        *scanners; /* a JSON array: the scanners of this replica as GET /v1/scanners has them */
};

struct weft_replica_rows {
    struct weft_replica_row *item; /* by id descending; in the arena */
    size_t count;
};
#define WEFT_HEARTBEAT_US (5 * WEFT_SECOND)       /* how often a replica writes its row */
#define WEFT_DEAD_US      (3 * WEFT_HEARTBEAT_US) /* older than this: dead */

/* The heartbeat: adds the row or replaces it. */
WEFT_MUST_CHECK enum weft_rc weft_engine_replica_put(struct weft_engine *engine,
                                                     const struct weft_replica_row *row,
                                                     struct weft_err *err);

/* Called by a replica that stops in order. */
WEFT_MUST_CHECK enum weft_rc weft_engine_replica_remove(struct weft_engine *engine,
                                                        const struct weft_id *id,
                                                        struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_replicas(struct weft_engine *engine,
                                                  struct weft_arena *arena,
                                                  struct weft_replica_rows *ret_rows,
                                                  struct weft_err *err);

/* The row as callers see it, without what it carries; now_us is the store's. Texts are borrowed. */
struct weft_replica weft_replica_shown(const struct weft_replica_row *row, weft_usec now_us);

/* The kinds that the settings in a row say it carries out itself (core/carried.h); in the arena. */
const char *const *weft_replica_carries(const struct weft_replica_row *row,
                                        struct weft_arena *arena, size_t *ret_count);

/* The scanners of the living replicas, in the order of the rows; in the arena. */
struct weft_scanners weft_replica_scanners(const struct weft_replica_rows *rows, weft_usec now_us,
                                           struct weft_arena *arena);

/*
 * The scanners that no replica on the list runs for every namespace and every partition, as
 * "name, name" in the arena; NULL: all are covered.
 */
const char *weft_scanners_uncovered(const struct weft_scanners *scanners, struct weft_arena *arena);

#endif
