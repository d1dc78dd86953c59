/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_CONTROL_H
#define WEFT_NET_API_API_CONTROL_H

/* Calls that steer executions, for the groups: the handlers are in handlers.h. */

#include "engine/job/control.h"
#include "weft/weft.h"

/* What becomes of one item: the execution as the call left it is written at once. */
struct weft_steer_answer {
    struct weft_steer_result steered;
    struct weft_arena *arena; /* borrowed, set before the call: the request's */
    const char *json;         /* in the arena; NULL: there is no such execution */
    size_t size;
};
/* Items without a namespace are of `ns`. */
WEFT_MUST_CHECK enum weft_rc weft_steer_call(struct weft_engine *engine,
                                             const struct weft_steering *steering,
                                             struct weft_steer_answer *ret_told,
                                             struct weft_err *err);

#endif
