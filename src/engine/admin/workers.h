/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ADMIN_WORKERS_H
#define WEFT_ENGINE_ADMIN_WORKERS_H

/* The list of workers, their numbers, and their goodbye. */

#include "engine/engine.h"

/* The number of a worker's name, or why it has none. */
struct weft_worker_met {
    int32_t number;
    bool admitted;       /* the name is new, and there was room for it */
    struct weft_err err; /* WEFT_LIMIT_EXCEEDED: its namespace has as many names as it may */
};

/* A worker whose claim a replica received: written in batches, outside of claims. */
struct weft_worker_seen {
    const char *ns;
    const char *name;
    const char *const *lanes;
    size_t lane_count;
    const char *const *capabilities;
    size_t capability_count;
    weft_usec seen_us;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_workers_put(struct weft_engine *engine,
                                                     const struct weft_worker_seen *seen,
                                                     size_t count, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_workers(struct weft_engine *engine, const char *ns,
                                                 struct weft_arena *arena,
                                                 struct weft_workers *ret_workers,
                                                 struct weft_err *err);

/* Releases every lease of a worker at once and takes it off the list. */
WEFT_MUST_CHECK enum weft_rc weft_engine_goodbye(struct weft_engine *engine, const char *ns,
                                                 const char *worker, uint64_t *ret_released,
                                                 struct weft_err *err);

#endif
