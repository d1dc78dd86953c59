/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_SIBLING_H
#define WEFT_ENGINE_FLOW_SIBLING_H

/* Cancelling the upstreams that a fired join no longer needs. */

#include "engine/engine.h"

struct weft_dispatched {
    uint64_t dispatched; /* groups that are drained */
    uint64_t cancelled;  /* executions */
    uint64_t skipped_locked;
};

/*
 * Cancels the siblings that the groups of flows ask for. Groups of a flow in which a replay is
 * still propagating are left to its cascade. Adds to *ret_done.
 */
WEFT_MUST_CHECK enum weft_rc weft_siblings_cancel(struct weft_engine *engine,
                                                  const struct weft_id *flow, size_t count,
                                                  struct weft_dispatched *ret_done,
                                                  struct weft_err *err);

#endif
