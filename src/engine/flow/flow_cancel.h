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
    /* Members that ended since weft_engine_flow_cancel() because the flow is cancelled, by these
     * calls, the cancel_backlog scanner or the cascade. Only with `wait`. */
    uint64_t cancelled_now;
    uint64_t before; /* members that had ended before that */
    bool more;       /* there may be more of them */
    bool locked;     /* nothing was done: another transaction had the flow */
};

/*
 * Marks a flow as cancelled: from here on its joins begin nothing. Again on a cancelled flow:
 * members that live again are cancelled too. WEFT_NOT_LIVE when it has ended otherwise. ret_drain
 * NULL: members are left to the cancel_backlog scanner; otherwise the same transaction cancels the
 * first chunk of them, so all of a small flow, and the caller goes on with *ret_drain, if there is
 * more.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_cancel(struct weft_engine *engine,
                                                     const struct weft_flow_cancelling *args,
                                                     enum weft_flow_state *ret_state,
                                                     struct weft_flow_drain *ret_drain,
                                                     struct weft_err *err);

/* Cancels the members among the next chunk, unless another transaction has the flow. */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_drain(struct weft_engine *engine,
                                                    struct weft_flow_drain *drain,
                                                    struct weft_err *err);

#endif
