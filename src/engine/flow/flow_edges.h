/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_FLOW_EDGES_H
#define WEFT_ENGINE_FLOW_FLOW_EDGES_H

/* Adding edges between nodes of a flow. */

#include "base/base.h"

struct weft_engine;
struct weft_flow_edging;
struct weft_tx;

/*
 * Adds edges between nodes of a flow that is open; `ns` is required. WEFT_CONFLICT: another
 * revision, a node that is not blocked any more, an edge that is there; WEFT_INVALID_VALUE: a
 * circle, or no such node.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_edges(struct weft_engine *engine,
                                                    const struct weft_flow_edging *edging,
                                                    int32_t *ret_revision, struct weft_err *err);

/*
 * WEFT_TOO_LARGE when a flow with so many nodes, new ones included, would have more edges than a
 * submission may have. Under its lock, which every call that writes edges of it takes.
 */
WEFT_MUST_CHECK enum weft_rc weft_flow_edges_fit(struct weft_tx *tx, const struct weft_id *flow,
                                                 int64_t nodes, size_t added, struct weft_err *err);

#endif
