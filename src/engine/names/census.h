/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_NAMES_CENSUS_H
#define WEFT_ENGINE_NAMES_CENSUS_H

/* How many queues and worker names a namespace has, and may have. */

#include "base/base.h"
#include "base/map.h"

#include <pthread.h>

struct weft_engine;
struct weft_engine_config;

/* How many queues and worker names namespaces have: census.c. */
struct weft_census {
    pthread_mutex_t lock;
    uint32_t most;               /* queues of a namespace; 0: no limit */
    uint32_t most_workers;       /* worker names of a namespace; 0: no limit */
    struct weft_int_map ns;      /* queues, by namespace; owned */
    struct weft_int_map workers; /* worker names, by namespace; owned */
};
void weft_census_init(struct weft_census *census, const struct weft_engine_config *config);
void weft_census_done(struct weft_census *census);

/* How many of `wanted` queues more a namespace may have. */
WEFT_MUST_CHECK enum weft_rc weft_census_room(struct weft_engine *engine, int32_t ns, size_t wanted,
                                              size_t *ret_room, struct weft_err *err);

/* How many of `wanted` worker names more. */
WEFT_MUST_CHECK enum weft_rc weft_census_workers(struct weft_engine *engine, int32_t ns,
                                                 size_t wanted, size_t *ret_room,
                                                 struct weft_err *err);

/* The error of a submission that needs a queue too many, and of a worker whose name is one. */
enum weft_rc weft_census_refuse(const struct weft_engine *engine, const char *ns,
                                struct weft_err *err);
enum weft_rc weft_census_refuse_worker(const struct weft_engine *engine, const char *ns,
                                       struct weft_err *err);

#endif
