/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_CONTROL_H
#define WEFT_ENGINE_JOB_CONTROL_H

/* Cancel, replay, priority, deadline and revoke by id; cancel and replay by filter. */

#include "core/result.h"

struct weft_engine;

/* A call of weft_steer(), with the namespace of items that name none. */
struct weft_steering {
    enum weft_steer_kind kind;
    const char *ns;
    const struct weft_steer *item;
    size_t count;
    weft_usec deadline_us; /* replay: of all of them, from now on; 0: none */
    /* NULL, or room for each execution as the call left it, read before others can change it: of
     * items whose answer has no err. In the arena; state NONE: its flow was deleted. */
    struct weft_execution *seen;
    struct weft_arena *arena; /* of `seen` and of errors in the answers */
};
WEFT_MUST_CHECK enum weft_rc weft_engine_steer(struct weft_engine *engine,
                                               const struct weft_steering *steering,
                                               struct weft_steer_result *ret_answer,
                                               struct weft_err *err);

/* Cancel or replay of all executions that a filter matches (control_filter.c). */
WEFT_MUST_CHECK enum weft_rc weft_engine_steer_all(struct weft_engine *engine,
                                                   const struct weft_steer_all *args,
                                                   struct weft_sweep *ret_sweep,
                                                   struct weft_err *err);

#endif
