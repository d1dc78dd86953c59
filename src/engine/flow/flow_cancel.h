/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_FLOW_CANCEL_H
#define WEFT_ENGINE_FLOW_FLOW_CANCEL_H

/* Cancelling a flow and, a chunk at a time, its members. */

#include "engine/engine.h"

/* The members of a cancelled flow, a chunk at a time. It begins with zeros. */
struct weft_flow_drain {
    struct weft_id flow; /* the caller's to set, as is `wait` */
    bool wait;           /* for another holder of the flow: where a client waits for this call */
    uint64_t cancelled;  /* members, by these calls */
    /* Members that went since weft_engine_flow_cancel_now() because the flow is cancelled,
     * whichever did it: these calls, the cancel_backlog scanner, the cascade. Only with `wait`. */
    uint64_t cancelled_now;
    uint64_t before; /* what had gone before that */
    bool more;       /* there may be more of them */
    bool locked;     /* nothing was done: another transaction had the flow */
};

/*
 * Marks a flow as cancelled: from here on its joins begin nothing. Members are left to the
 * cancel_backlog scanner, or to the caller of weft_engine_flow_drain(). Again on a cancelled flow:
 * what lives again is cancelled too. WEFT_NOT_LIVE when it has ended otherwise.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_cancel(struct weft_engine *engine,
                                                     const struct weft_flow_cancelling *args,
                                                     enum weft_flow_state *ret_state,
                                                     struct weft_err *err);

/* Cancels the members among the next chunk, unless another transaction has the flow. */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_drain(struct weft_engine *engine,
                                                    struct weft_flow_drain *drain,
                                                    struct weft_err *err);

/*
 * As weft_engine_flow_cancel(), and cancels the first chunk in the same transaction: what a small
 * flow has is cancelled at once. *ret_drain goes on with the rest, if there is more.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_cancel_now(struct weft_engine *engine,
                                                         const struct weft_flow_cancelling *args,
                                                         enum weft_flow_state *ret_state,
                                                         struct weft_flow_drain *ret_drain,
                                                         struct weft_err *err);

#endif
