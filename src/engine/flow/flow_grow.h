/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_FLOW_GROW_H
#define WEFT_ENGINE_FLOW_FLOW_GROW_H

/* Adding nodes to a flow, and edges between nodes that it has. */

#include "engine/engine.h"

/* Adds nodes to a flow that is open; `ns` is required. ret_answer->node, when not NULL, has room
 * for the nodes. */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_grow(struct weft_engine *engine,
                                                   const struct weft_flow_growth *growth,
                                                   struct weft_flow_submitted *ret_answer,
                                                   struct weft_err *err);

/*
 * Adds edges between nodes of a flow that is open; `ns` is required. WEFT_CONFLICT: another
 * revision, a node that is not blocked any more, an edge that is there; WEFT_INVALID_VALUE: a
 * circle, or no such node.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_edges(struct weft_engine *engine,
                                                    const struct weft_flow_edging *edging,
                                                    int32_t *ret_revision, struct weft_err *err);

#endif
