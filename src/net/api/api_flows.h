/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_FLOWS_H
#define WEFT_NET_API_API_FLOWS_H

/* Handlers of flows. */

#include "net/route.h"

weft_route_fn weft_flow_submit_read, weft_flow_submit_run, weft_flow_grow_read, weft_flow_grow_run,
    weft_flow_edges_read, weft_flow_edges_run, weft_flow_read, weft_flow_run, weft_flow_nodes_read,
    weft_flow_nodes_run, weft_flows_read, weft_flows_run, weft_flow_cancel_read,
    weft_flow_delete_read, weft_flow_cancel_run;
weft_route_write_fn weft_flow_submit_write;

#endif
