/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_HANDLERS_H
#define WEFT_NET_API_HANDLERS_H

/* The handlers that rows of routes.c name, by the file that has them; the OpenAPI document. */

#include "base/buf.h"
#include "net/route.h"

void weft_openapi_write(const struct weft_route_table *routes, struct weft_buf *out);

/* api.c: for rows whose argument and answer are all that the handler needs to know */
weft_route_fn weft_api_read, weft_api_run;
/* api_work.c */
weft_route_fn weft_submit_read, weft_lease_read, weft_watch_read, weft_watch_run;
weft_route_write_fn weft_submit_write, weft_lease_write;
/* api_executions.c */
weft_route_fn weft_execution_read, weft_execution_run, weft_attempts_run, weft_executions_read,
    weft_executions_run;
/* api_control.c */
weft_route_fn weft_steer_read, weft_replay_run, weft_steer_many_read, weft_steer_many_run;
weft_route_write_fn weft_steer_write;
/* api_flows.c */
weft_route_fn weft_flow_submit_read, weft_flow_submit_run, weft_flow_grow_run, weft_flow_edges_run,
    weft_flow_read, weft_flow_run, weft_flow_nodes_run, weft_flows_read, weft_flows_run,
    weft_flow_cancel_read, weft_flow_delete_read, weft_flow_cancel_run;
weft_route_write_fn weft_flow_submit_write;
/* api_wait.c */
weft_route_fn weft_signal_read, weft_signals_read, weft_waitpoints_run, weft_signals_run,
    weft_waitpoint_token_run, weft_keys_read, weft_keys_run, weft_key_rotate_run;
weft_route_write_fn weft_signal_write;
/* api_gates.c */
weft_route_fn weft_gate_read, weft_gate_put_read, weft_gate_put_run, weft_gates_read,
    weft_gates_run;
/* api_budgets.c */
weft_route_fn weft_budget_read, weft_budget_put_read, weft_budget_put_run, weft_budgets_run,
    weft_ledger_read, weft_ledger_run;
/* api_admin.c */
weft_route_fn weft_lanes_run, weft_lane_read, weft_lane_put_read, weft_lane_put_run,
    weft_workers_run, weft_goodbye_read, weft_goodbye_run, weft_tokens_read, weft_tokens_run,
    weft_token_read, weft_token_run, weft_servers_read, weft_replicas_run, weft_scanners_run,
    weft_scan_read, weft_scan_run;
/* api_erasures.c */
weft_route_fn weft_erase_run, weft_erasure_run_route, weft_erasures_run;
/* api_counts.c */
weft_route_fn weft_counts_read, weft_counts_run;
/* api_health.c */
weft_route_fn weft_health_read, weft_readiness_read, weft_metrics_read, weft_metrics_run,
    weft_openapi_read;

#endif
