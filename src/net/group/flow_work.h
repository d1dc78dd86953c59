/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_GROUP_FLOW_WORK_H
#define WEFT_NET_GROUP_FLOW_WORK_H

/*
 * Cascades and drains of flows, on the engine threads beside the requests: one task at a time does
 * a piece of the work of each flow that was added.
 */

#include "weft/weft.h"

struct weft_flow_work; /* opaque */
struct weft_server;

enum weft_flow_work_kind { WEFT_FLOW_CASCADES, WEFT_FLOW_DRAINS };
struct weft_flow_work *weft_flow_work_new(struct weft_server *server,
                                          enum weft_flow_work_kind kind);
/* Flows that are added from here on are left to the scanners. NULL is fine. */
void weft_flow_work_stop(struct weft_flow_work *work);
void weft_flow_work_free(struct weft_flow_work *work); /* the engine threads are gone; or NULL */
/* context is the weft_flow_work: see weft_engine_on_flows(). */
void weft_flow_work_add(void *context, const struct weft_id *flow, size_t count);

#endif
