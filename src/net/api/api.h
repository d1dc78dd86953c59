/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_API_H
#define WEFT_NET_API_API_H

/*
 * The handlers of the API areas, for the route table, and what they share. Each pair or triple is
 * the read, run and write of a route; see struct weft_route for who calls them on which thread.
 */

#include "net/net.h"

/* ---- What the areas keep for a server (api.c) ------------------------------------------------ */

/* The caller ends it with weft_api_free(). */
struct weft_api *weft_api_new(void);
void weft_api_free(struct weft_api *api); /* NULL is fine */
struct weft_counts_cache *weft_api_counts(struct weft_api *api);
/* What /metrics tells of the process, as it was last written: see add_figures(). */
struct weft_figures {
    pthread_mutex_t lock; /* over all below */
    struct weft_buf text;
    weft_usec written_us; /* boot time */
};
struct weft_figures *weft_api_figures(struct weft_api *api);
/* The OpenAPI document, made when it is first asked for. */
const struct weft_buf *weft_api_document(struct weft_api *api);

enum {
    WEFT_PAGE_DEFAULT = 50, /* items of a list where no limit is given */
    WEFT_WAIT_MAX = 60000,  /* of wait_ms */
};

/* limit and after of a list; after is NULL or not empty. */
struct weft_paging {
    uint32_t limit;
    const char *after;
};
WEFT_MUST_CHECK enum weft_rc weft_api_paging(const struct weft_request *request,
                                             struct weft_paging *ret_paging, struct weft_err *err);

/*
 * Answers with a page of a whole list that is at hand, sorted by name; the place in a cursor is the
 * name of the last item. The name of an item must be the first member of its struct.
 */
struct weft_api_list {
    const char *name; /* of the list, for its cursors */
    const struct weft_wire_type *type;
    const void *item;
    size_t stride, count;
};
WEFT_MUST_CHECK enum weft_rc weft_api_reply_list(struct weft_request *request,
                                                 const struct weft_api_list *list,
                                                 struct weft_err *err);
/* The whole answer {"error":{...}} as an item of a bulk answer. */
void weft_api_put_error(const struct weft_err *error, enum weft_fence fence,
                        struct weft_json_writer *out);
/* The body as the message that the operation takes. */
WEFT_MUST_CHECK enum weft_rc weft_api_read_message(struct weft_request *request, void *ret_message,
                                                   struct weft_err *err);
/* A body that may be missing or {}, and holds nothing. */
WEFT_MUST_CHECK enum weft_rc weft_api_read_nothing(struct weft_request *request,
                                                   struct weft_err *err);

/* ---- Executions ------------------------------------------------------------------------------ */

enum weft_rc weft_submit_read(struct weft_request *request, struct weft_err *err);
void weft_submit_write(struct weft_request *request);

enum weft_rc weft_execution_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_execution_run(struct weft_request *request, struct weft_err *err);

enum weft_rc weft_executions_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_executions_run(struct weft_request *request, struct weft_err *err);

enum weft_rc weft_result_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_payload_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_bytes_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_attempts_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_attempts_run(struct weft_request *request, struct weft_err *err);

enum weft_rc weft_steer_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_replay_run(struct weft_request *request, struct weft_err *err);
/* What becomes of one item: the execution as the call left it is written at once. */
struct weft_steer_told {
    struct weft_steered steered;
    struct weft_arena *arena; /* borrowed, set before the call: the request's */
    const char *json;         /* in the arena; NULL: there is no such execution */
    size_t size;
};
/* Items without a namespace are of `ns`. */
WEFT_MUST_CHECK enum weft_rc weft_steer_call(struct weft_engine *engine,
                                             const struct weft_steering *steering,
                                             struct weft_steer_told *ret_told,
                                             struct weft_err *err);
void weft_steer_write(struct weft_request *request);

enum weft_rc weft_cancel_many_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_replay_many_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_steer_many_run(struct weft_request *request, struct weft_err *err);

/* ---- Flows ----------------------------------------------------------------------------------- */

enum weft_rc weft_flow_submit_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flow_submit_run(struct weft_request *request, struct weft_err *err);
void weft_flow_submit_write(struct weft_request *request);
enum weft_rc weft_flow_grow_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flow_grow_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flow_edges_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flow_edges_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flow_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flow_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flow_nodes_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flow_nodes_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flows_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flows_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flow_cancel_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flow_delete_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_flow_cancel_run(struct weft_request *request, struct weft_err *err);

/* ---- Working --------------------------------------------------------------------------------- */

enum weft_rc weft_lease_read(struct weft_request *request, struct weft_err *err);
void weft_lease_write(struct weft_request *request);
enum weft_rc weft_watch_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_watch_run(struct weft_request *request, struct weft_err *err);

enum weft_rc weft_workers_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_workers_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_goodbye_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_goodbye_run(struct weft_request *request, struct weft_err *err);

/* ---- Replicas and scanners ------------------------------------------------------------------- */

enum weft_rc weft_replicas_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_replicas_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_scanners_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_scanners_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_scan_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_scan_run(struct weft_request *request, struct weft_err *err);

/* ---- Tokens ---------------------------------------------------------------------------------- */

enum weft_rc weft_tokens_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_tokens_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_token_create_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_token_create_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_token_rotate_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_token_rotate_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_token_revoke_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_token_revoke_run(struct weft_request *request, struct weft_err *err);

/* ---- Lanes and counts ------------------------------------------------------------------------ */

enum weft_rc weft_lanes_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_lanes_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_lane_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_lane_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_lane_put_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_lane_put_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_lane_remove_run(struct weft_request *request, struct weft_err *err);

enum weft_rc weft_counts_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_counts_run(struct weft_request *request, struct weft_err *err);

/*
 * Counts cost the store work that grows with what is in it, so they are computed at most once a
 * second, for all namespaces and lanes at once, however often clients ask.
 */
struct weft_counts_cache; /* opaque */
struct weft_counts_cache *weft_counts_cache_new(void);
void weft_counts_cache_free(struct weft_counts_cache *cache);
enum weft_counts_text { WEFT_COUNTS_JSON, WEFT_COUNTS_METRICS };
/* Whose counts, in which words. lane NULL: all lanes. */
struct weft_counts_of {
    const char *ns;
    const char *lane;
    enum weft_counts_text text;
};
/* Appends the answer of GET /v1/counts, or the executions by state for /metrics. */
WEFT_MUST_CHECK enum weft_rc weft_counts_cache_get(struct weft_counts_cache *cache,
                                                   struct weft_engine *engine,
                                                   const struct weft_counts_of *of,
                                                   struct weft_buf *out, struct weft_err *err);
/* The lanes of a namespace that have living executions, or some that ended in the last hour. */
struct weft_texts {
    const char *const *item; /* in their order, in the arena */
    size_t count;
};
WEFT_MUST_CHECK enum weft_rc weft_counts_cache_lanes(struct weft_counts_cache *cache,
                                                     struct weft_engine *engine, const char *ns,
                                                     struct weft_arena *arena,
                                                     struct weft_texts *ret_lanes,
                                                     struct weft_err *err);
/*
 * The texts from memory, for the loop thread: no query, no wait. False, and nothing is appended,
 * when what is known is older than a few seconds, or nothing is. `old` appends it all the same.
 */
WEFT_MUST_CHECK bool weft_counts_cache_glance(struct weft_counts_cache *cache,
                                              const struct weft_counts_of *of, bool old,
                                              struct weft_buf *out);
/*
 * About once a second: has the counts computed again while metrics are being asked for, on an
 * engine thread, for weft_counts_cache_glance().
 */
void weft_counts_keep(struct weft_server *server);

/* ---- Outside /v1 ----------------------------------------------------------------------------- */

enum weft_rc weft_health_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_readiness_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_metrics_read(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_metrics_run(struct weft_request *request, struct weft_err *err);
enum weft_rc weft_openapi_read(struct weft_request *request, struct weft_err *err);
/* The document about these routes. */
struct weft_route_table;
void weft_openapi_write(const struct weft_route_table *routes, struct weft_buf *out);

#endif
