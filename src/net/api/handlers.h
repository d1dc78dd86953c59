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
    weft_flow_read, weft_flow_run, weft_flow_nodes_run, weft_flows_read, weft_flow_cancel_read,
    weft_flow_delete_read, weft_flow_cancel_run;
weft_route_write_fn weft_flow_submit_write;
/* api_wait.c */
weft_route_fn weft_signal_read, weft_signals_read, weft_keys_read;
weft_route_write_fn weft_signal_write;
/* api_gates.c */
weft_route_fn weft_gate_read, weft_gate_put_read, weft_gate_put_run, weft_gates_read;
/* api_budgets.c */
weft_route_fn weft_budget_read, weft_budget_put_read, weft_budget_put_run, weft_ledger_read;
/* api_endpoints.c */
weft_route_fn weft_endpoint_read, weft_endpoint_run, weft_endpoint_put_read, weft_endpoint_put_run,
    weft_endpoints_run, weft_endpoint_test_read, weft_endpoint_test_run;
/* api_upload.c */
weft_route_fn weft_upload_take, weft_upload_read, weft_upload_run;
weft_route_fn weft_file_put_take, weft_file_put_read, weft_file_put_run;
weft_route_write_fn weft_upload_forget;
/* api_files.c */
weft_route_fn weft_file_read, weft_file_run, weft_file_delete_run, weft_files_read, weft_files_run,
    weft_file_content_run, weft_file_infos_read;
/* api_batches.c */
weft_route_fn weft_batch_create_read, weft_batch_create_run, weft_batch_read, weft_batch_run,
    weft_batch_cancel_run, weft_batches_read, weft_batches_run;
/* api_batch_new.c */
weft_route_fn weft_own_batch_create_run;
/* api_weft_batches.c */
weft_route_fn weft_own_batch_read, weft_own_batch_act_read, weft_own_batch_run,
    weft_own_batch_cancel_run, weft_own_batch_retry_run, weft_own_batch_delete_run,
    weft_own_batches_read, weft_own_batches_run;
/* api_models.c */
weft_route_fn weft_model_read, weft_model_run, weft_model_remove_run, weft_model_put_read,
    weft_model_put_run, weft_models_read, weft_models_run, weft_openai_read, weft_openai_models_run;
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
