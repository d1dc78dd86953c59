/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_NAMES_CENSUS_H
#define WEFT_ENGINE_NAMES_CENSUS_H

/* How many queues and worker names a namespace has, and may have. */

#include "base/map.h"
#include "engine/engine.h"

#include <pthread.h>

enum weft_census_kind { WEFT_CENSUS_QUEUES, WEFT_CENSUS_WORKERS, WEFT_CENSUS_KINDS };

struct weft_census {
    pthread_mutex_t lock;
    struct {
        uint32_t most;          /* of a namespace; 0: no limit */
        struct weft_int_map ns; /* counts by namespace; owned; under the lock */
    } kind[WEFT_CENSUS_KINDS];
};
void weft_census_init(struct weft_census *census, const struct weft_engine_config *config);
void weft_census_done(struct weft_census *census);

/* How many of `wanted` queues, or worker names, more a namespace may have. */
WEFT_MUST_CHECK enum weft_rc weft_census_room(struct weft_engine *engine,
                                              enum weft_census_kind kind, int32_t ns, size_t wanted,
                                              size_t *ret_room, struct weft_err *err);

/* The error of a submission that needs a queue too many, and of a worker whose name is one. */
enum weft_rc weft_census_refuse(const struct weft_engine *engine, enum weft_census_kind kind,
                                const char *ns, struct weft_err *err);

#endif
