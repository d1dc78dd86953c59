/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_FLOW_SUBMIT_H
#define WEFT_ENGINE_FLOW_FLOW_SUBMIT_H

/* Submitting whole flows. */

#include "engine/engine.h"

/*
 * Submits flows whole. Each answer's `node`, when not NULL, has room for the nodes of its spec. A
 * flow of up to a few ten thousand rows is one transaction (small ones share it); a larger one is
 * written in parts and no reader sees it before it is whole.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_submit(struct weft_engine *engine, const char *ns,
                                                     const struct weft_flow_spec *spec,
                                                     size_t count,
                                                     struct weft_flow_submitted *ret_answer,
                                                     struct weft_err *err);

#endif
