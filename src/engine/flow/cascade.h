/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_CASCADE_H
#define WEFT_ENGINE_FLOW_CASCADE_H

/* The cascade: hops until flows have no completion left; sibling cancel (sibling.c). */

#include "engine/engine.h"

struct weft_dispatched {
    uint64_t dispatched; /* groups that are drained */
    uint64_t cancelled;  /* executions */
    uint64_t skipped_locked;
};

struct weft_cascaded {
    uint64_t hops, completions, edges;
    struct weft_dispatched groups;
};

/*
 * Runs the cascade of flows, sibling cancels included, until they have no completions left, or
 * until another holder of their lock will see to it.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_cascade(struct weft_engine *engine,
                                                 const struct weft_id *flow, size_t count,
                                                 struct weft_err *err);

/*
 * The same in at most so many hops for each 256 flows; each hop is a transaction. Flows with work
 * left are reported to the listener once more: flows reported meanwhile need not wait for the end
 * of a large one, if the hops are few (WEFT_CASCADE_ROUND).
 */
enum { WEFT_CASCADE_ROUND = 2 };
WEFT_MUST_CHECK enum weft_rc weft_cascade_chunks(struct weft_engine *engine,
                                                 const struct weft_id *flow, size_t count,
                                                 uint64_t hops_most, struct weft_err *err);

/*
 * The same for flows that share each hop. Flows with work left are reported to the listener. Adds
 * to *ret_cascaded.
 */
WEFT_MUST_CHECK enum weft_rc weft_cascade(struct weft_engine *engine, const struct weft_id *flow,
                                          size_t count, uint64_t hops_most,
                                          struct weft_cascaded *ret_cascaded, struct weft_err *err);

/*
 * Cancels the siblings that the groups of flows ask for. Groups of a flow in which a replay is
 * still propagating are left to its cascade. Adds to *ret_done.
 */
WEFT_MUST_CHECK enum weft_rc weft_siblings_cancel(struct weft_engine *engine,
                                                  const struct weft_id *flow, size_t count,
                                                  struct weft_dispatched *ret_done,
                                                  struct weft_err *err);

#endif
