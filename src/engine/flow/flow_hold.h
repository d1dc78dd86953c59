/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_FLOW_HOLD_H
#define WEFT_ENGINE_FLOW_FLOW_HOLD_H

/* Locking flows, and what is due in a locked one. */

#include "base/base.h"
#include "store/store.h"
#include "weft/weft.h"

struct weft_engine;
struct weft_tx;

/* The work of hops that is due in a locked flow. */
struct weft_flow_due {
    bool pending; /* completions, or groups of siblings to dispatch */
    bool anew;    /* including a replay: counts of joins may show the state before it */
    bool living;  /* a member lives */
};

/* A flow that an API call has locked. */
struct weft_flow_row {
    struct weft_id id;
    int32_t ns;
    int state;
    int32_t revision;
    int64_t nodes;
    enum weft_flow_cancel cancel;
    const char *reason;
    bool backlog, deleted;
    uint64_t cancelled; /* members cancelled because the flow was */
    struct weft_flow_due due;
};

/*
 * Locks flows in the order of their ids (flow_hold.c), waiting for other holders: in a server
 * briefly, WEFT_CAUSE_FLOW_LOCKED. Also reads the work due in them, as of the lock.
 */
struct weft_flow_rows {
    struct weft_rows flow; /* FLOW_HOLD_OUT_... */
    struct weft_rows due;  /* FLOW_DUE_OUT_... */
};

/*
 * Calls that need the row of a flow (cancel, growth, edges, replay) wait for it only briefly, and
 * say WEFT_CAUSE_FLOW_LOCKED. Before the first call.
 */
void weft_engine_hold_briefly(struct weft_engine *engine);
WEFT_MUST_CHECK enum weft_rc weft_flows_hold(struct weft_tx *tx, const struct weft_id *flow,
                                             size_t count, struct weft_flow_rows *ret_rows,
                                             struct weft_err *err);

/* The same for one flow of any namespace; *ret_row stays as it is when there is none. */
WEFT_MUST_CHECK enum weft_rc weft_flow_hold_row(struct weft_tx *tx, const struct weft_id *flow,
                                                struct weft_flow_row *ret_row, bool *ret_found,
                                                struct weft_err *err);

/*
 * Locks a flow, waiting for another holder as weft_flows_hold() does. WEFT_NOT_FOUND when the
 * namespace has no such flow, or it is not fully written yet, or being removed.
 */
WEFT_MUST_CHECK enum weft_rc weft_flow_hold(struct weft_tx *tx, const char *ns,
                                            const struct weft_id *flow,
                                            struct weft_flow_row *ret_row, struct weft_err *err);

#endif
