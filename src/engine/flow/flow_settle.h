/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_FLOW_SETTLE_H
#define WEFT_ENGINE_FLOW_FLOW_SETTLE_H

/* Running the hops that are due before a call judges a flow. */

#include "base/base.h"

struct weft_engine;
struct weft_flow_due;

/*
 * For calls that depend on the state of a flow (flow_settle.c). Under its lock: whether the call
 * must end its transaction without a change, run weft_flow_settle() and start over. `round` counts
 * these rounds from 0.
 */
bool weft_flow_unsettled(const struct weft_flow_due *due, unsigned round);

/* Runs some of the hops that are due. WEFT_BUSY after too many rounds. */
WEFT_MUST_CHECK enum weft_rc weft_flow_settle(struct weft_engine *engine,
                                              const struct weft_id *flow, size_t count,
                                              unsigned round, struct weft_err *err);

#endif
