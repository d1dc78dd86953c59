/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_CONTROL_H
#define WEFT_NET_API_API_CONTROL_H

/* Handlers that change executions: cancel, replay, priority, deadline, revoke. */

#include "engine/job/control.h"
#include "net/route.h"
#include "weft/weft.h"

weft_route_fn weft_steer_read, weft_replay_run, weft_cancel_many_read, weft_replay_many_read,
    weft_steer_many_run;
weft_route_write_fn weft_steer_write;

/* What becomes of one item: the execution as the call left it is written at once. */
struct weft_steer_told {
    struct weft_steer_result steered;
    struct weft_arena *arena; /* borrowed, set before the call: the request's */
    const char *json;         /* in the arena; NULL: there is no such execution */
    size_t size;
};
/* Items without a namespace are of `ns`. */
WEFT_MUST_CHECK enum weft_rc weft_steer_call(struct weft_engine *engine,
                                             const struct weft_steering *steering,
                                             struct weft_steer_told *ret_told,
                                             struct weft_err *err);

#endif
