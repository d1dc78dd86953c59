/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_CASCADE_H
#define WEFT_ENGINE_FLOW_CASCADE_H

/* The cascade: hops until flows have no completion left. */

#include "base/base.h"
#include "engine/flow/sibling.h"

struct weft_engine;

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
 * The same for some hops, each a transaction. Flows that are not through by then are told to the
 * listener once more: those that were told meanwhile need not wait for the end of a large one.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_cascade_round(struct weft_engine *engine,
                                                       const struct weft_id *flow, size_t count,
                                                       struct weft_err *err);

/*
 * Runs the cascade of flows until they have no completions left, or another process holds the lock
 * and will handle them. Adds to *ret_cascaded.
 */
WEFT_MUST_CHECK enum weft_rc weft_cascade(struct weft_engine *engine, const struct weft_id *flow,
                                          size_t count, struct weft_cascaded *ret_cascaded,
                                          struct weft_err *err);

/* The same, in at most so many hops; flows with work left are reported to the listener. */
WEFT_MUST_CHECK enum weft_rc
weft_cascade_some(struct weft_engine *engine, const struct weft_id *flow, size_t count,
                  uint64_t hops_most, struct weft_cascaded *ret_cascaded, struct weft_err *err);

#endif
