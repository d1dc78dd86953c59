/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_FLOW_HOLD_H
#define WEFT_ENGINE_FLOW_FLOW_HOLD_H

/* Locking flows, and running the hops that are due before a call judges one. */

#include "engine/tx/tx.h"

/*
 * Flows that calls have locked, in the order of their ids, and the work of hops that is due in them
 * as of the lock: pending (completions, or groups of siblings to dispatch), anew (including a
 * replay: counts of joins may show the state before it), living (a member lives).
 */
struct weft_flow_rows {
    struct weft_rows flow; /* of flow_hold */
    struct weft_rows due;  /* of flow_due */
};

/*
 * Calls that need the row of a flow (cancel, growth, edges, replay) wait for it only briefly, and
 * say WEFT_CAUSE_FLOW_LOCKED. Before the first call.
 */
void weft_engine_hold_briefly(struct weft_engine *engine);

/*
 * Locks flows in the order of their ids, waiting for other holders: in a server briefly,
 * WEFT_CAUSE_FLOW_LOCKED. Also reads the work due in them, as of the lock.
 */
WEFT_MUST_CHECK enum weft_rc weft_flows_hold(struct weft_tx *tx, const struct weft_id *flow,
                                             size_t count, struct weft_flow_rows *ret_rows,
                                             struct weft_err *err);

/*
 * Locks one flow in the same way. WEFT_NOT_FOUND when the namespace has no such flow, or it is not
 * fully written yet, or being removed.
 */
WEFT_MUST_CHECK enum weft_rc weft_flow_hold(struct weft_tx *tx, const char *ns,
                                            const struct weft_id *flow,
                                            struct weft_flow_rows *ret_rows, struct weft_err *err);

/*
 * Runs `body` in a transaction that holds the flow, when no hop is due that could change what the
 * body judges by. `flow` is the locked row, in the arena of tx.
 */
typedef enum weft_rc weft_flow_body(struct weft_tx *tx, struct weft_flow_hold_out *flow,
                                    void *context, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_flow_change(struct weft_tx *tx, const char *ns,
                                              const struct weft_id *flow, weft_flow_body *body,
                                              void *context, struct weft_err *err);

/*
 * The parts of weft_flow_change(), for calls that hold several flows. Under the locks: whether the
 * call must end its transaction without a change, run weft_flow_settle() and start over. `round`
 * counts these rounds from 0.
 */
bool weft_flow_unsettled(const struct weft_flow_due_out *due, unsigned round);

/* Runs some of the hops that are due. WEFT_BUSY after too many rounds. */
WEFT_MUST_CHECK enum weft_rc weft_flow_settle(struct weft_engine *engine,
                                              const struct weft_id *flow, size_t count,
                                              unsigned round, struct weft_err *err);

#endif
