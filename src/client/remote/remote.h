/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CLIENT_REMOTE_REMOTE_H
#define WEFT_CLIENT_REMOTE_REMOTE_H

/*
 * The operations of a handle over a server, shared by the files of the remote backend: remote.c
 * (requests, retries, errors), remote_work.c, remote_control.c, remote_read.c.
 */

#include "base/buf.h"
#include "base/json.h"
#include "client/client.h"

struct weft_wire_type;

/* Where one request may hold so much. The server takes 16 MiB; an item may add 1.4 to this. */
enum { WEFT_REMOTE_BODY = 12 << 20 };

WEFT_MUST_CHECK enum weft_rc weft_remote_open(const char *url, const struct weft_options *options,
                                              struct weft_remote **ret_remote,
                                              struct weft_err *err);
void weft_remote_close(struct weft_remote *remote); /* NULL is fine */

/* ---- Requests (remote.c) --------------------------------------------------------------------- */

struct weft_request {
    const char *method;
    const char *path;            /* behind /v1 */
    const char *ns;              /* NULL: that of the handle */
    const struct weft_buf *body; /* or NULL */
    bool once;                   /* may be carried out a second time when it is repeated */
    int64_t wait_ms;             /* how long the server may take before it answers */
};

struct weft_response {
    const char *body; /* in the arena */
    size_t size;
    const char *content_type; /* in the arena */
    int status;
    size_t node; /* of a refused flow: 1 + the index of the node that it is about; 0: none */
};

/*
 * Sends it and, where that is safe, sends it again: see remote.c. WEFT_OK is an answer of success;
 * a failure that the server told is given back as the server told it.
 */
WEFT_MUST_CHECK enum weft_rc weft_remote_send(const struct weft_via *via,
                                              const struct weft_request *request,
                                              struct weft_arena *arena,
                                              struct weft_response *ret_response,
                                              struct weft_err *err);
/* The same for an answer that is one JSON object; texts in it are slices of the arena. */
WEFT_MUST_CHECK enum weft_rc weft_remote_ask(const struct weft_via *via,
                                             const struct weft_request *request,
                                             struct weft_arena *arena, struct weft_json *ret_object,
                                             struct weft_err *err);
/* The answer as one JSON object. */
WEFT_MUST_CHECK enum weft_rc weft_remote_object(const struct weft_request *request,
                                                const struct weft_response *response,
                                                struct weft_json *ret_object, struct weft_err *err);
/* The answer cannot be read: WEFT_UNAVAILABLE, since whatever spoke there was no server of ours. */
enum weft_rc weft_remote_garbled(const struct weft_request *request, struct weft_err *err);
/* An error of the server as a caller may keep it: its field and hint are static. */
WEFT_MUST_CHECK enum weft_rc weft_remote_error(const struct weft_json *value,
                                               struct weft_arena *arena, struct weft_err *ret_error,
                                               enum weft_fence *ret_fence, struct weft_err *err);

/* Adds text to a URL, percent-encoded. */
void weft_remote_encode(struct weft_buf *url, const char *text);
/* Adds "?name=value" or "&name=value"; NULL adds nothing. */
void weft_remote_query(struct weft_buf *url, const char *name, const char *value);
/* How far a list looked, where its answer says so; otherwise 0. */
weft_usec weft_remote_looked_to(const struct weft_json *object);
/* "/executions/ID" and what follows, in the arena. */
const char *weft_remote_path(struct weft_arena *arena, const struct weft_id *id, const char *tail);
/* Walks the "items" of an answer. False: there are none, or not `count` of them. */
WEFT_MUST_CHECK bool weft_remote_items(const struct weft_json *object, size_t count,
                                       struct weft_json_iter *ret_iter);

/* A list of items of one type, grown page by page. */
struct weft_remote_list {
    const struct weft_wire_type *type;
    size_t item_size;
    void *item; /* in the arena */
    size_t count, capacity;
    const char *next; /* in the arena; NULL: there is no more */
};
/* Adds a page of the list. */
WEFT_MUST_CHECK enum weft_rc weft_remote_page(const struct weft_via *via,
                                              const struct weft_request *request,
                                              struct weft_arena *arena,
                                              struct weft_remote_list *listing,
                                              struct weft_json *ret_object, struct weft_err *err);

/* Adds all pages of the list at the path, which may have a query. */
WEFT_MUST_CHECK enum weft_rc weft_remote_all(const struct weft_via *via, const char *path,
                                             struct weft_arena *arena,
                                             struct weft_remote_list *listing,
                                             struct weft_err *err);

/* ---- remote_work.c --------------------------------------------------------------------------- */

WEFT_MUST_CHECK enum weft_rc weft_remote_submit(const struct weft_via *via,
                                                const struct weft_spec *spec, size_t count,
                                                struct weft_submitted *ret_answer,
                                                struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_claim(const struct weft_via *via,
                                               const struct weft_claim *claim, size_t count,
                                               struct weft_arena *arena,
                                               struct weft_claim_result *ret_result,
                                               struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc
weft_remote_watch(const struct weft_via *via, const struct weft_watch *watch,
                  struct weft_arena *arena, struct weft_watched *ret_watched, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_renew(const struct weft_via *via,
                                               const struct weft_renew *item, size_t count,
                                               struct weft_lease_answer *ret_answer,
                                               struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_complete(const struct weft_via *via,
                                                  const struct weft_complete *item, size_t count,
                                                  struct weft_lease_answer *ret_answer,
                                                  struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_fail(const struct weft_via *via,
                                              const struct weft_failure *item, size_t count,
                                              struct weft_lease_answer *ret_answer,
                                              struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_put_back(const struct weft_via *via,
                                                  enum weft_put_back_kind kind,
                                                  const struct weft_put_back *item, size_t count,
                                                  struct weft_lease_answer *ret_answer,
                                                  struct weft_err *err);

/* What JSON has no word for. */
WEFT_MUST_CHECK enum weft_rc weft_remote_check_spec(const struct weft_spec *spec,
                                                    struct weft_err *err);

/* ---- remote_flow.c --------------------------------------------------------------------------- */

enum weft_rc weft_remote_flow_submit(const struct weft_via *via, const struct weft_flow_spec *spec,
                                     size_t count, struct weft_flow_submitted *ret_answer,
                                     struct weft_err *err);
enum weft_rc weft_remote_flow_grow(const struct weft_via *via,
                                   const struct weft_flow_growth *growth,
                                   struct weft_flow_submitted *ret_answer, struct weft_err *err);
enum weft_rc weft_remote_flow_link(const struct weft_via *via,
                                   const struct weft_flow_edging *edging, int32_t *ret_revision,
                                   struct weft_err *err);
enum weft_rc weft_remote_flow_cancel(const struct weft_via *via,
                                     const struct weft_flow_cancelling *args, int64_t wait_ms,
                                     struct weft_flow_cancelled *ret_answer, struct weft_err *err);
enum weft_rc weft_remote_flow(const struct weft_via *via, const struct weft_flow_asking *asking,
                              int64_t wait_ms, struct weft_arena *arena,
                              struct weft_flow_page *ret_page, struct weft_err *err);
enum weft_rc weft_remote_flows(const struct weft_via *via, const struct weft_flow_listing *listing,
                               struct weft_arena *arena, struct weft_flows *ret_flows,
                               struct weft_err *err);

/* ---- remote_token.c -------------------------------------------------------------------------- */

enum weft_rc weft_remote_token_create(const struct weft_via *via,
                                      const struct weft_token_spec *spec, struct weft_arena *arena,
                                      struct weft_token *ret_token, struct weft_err *err);
enum weft_rc weft_remote_token_rotate(const struct weft_via *via,
                                      const struct weft_token_rotation *rotation,
                                      struct weft_arena *arena, struct weft_token *ret_token,
                                      struct weft_err *err);
enum weft_rc weft_remote_token_revoke(const struct weft_via *via, int32_t id, struct weft_err *err);
enum weft_rc weft_remote_tokens(const struct weft_via *via, struct weft_arena *arena,
                                struct weft_tokens *ret_tokens, struct weft_err *err);

/* ---- remote_control.c ------------------------------------------------------------------------ */

WEFT_MUST_CHECK enum weft_rc weft_remote_steer(const struct weft_via *via,
                                               const struct weft_steering *steering,
                                               struct weft_steered *ret_answer,
                                               struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_steer_all(const struct weft_via *via,
                                                   const struct weft_steer_all *args,
                                                   struct weft_sweep *ret_sweep,
                                                   struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_lane_put(const struct weft_via *via,
                                                  const struct weft_lane *lane,
                                                  struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_lane_remove(const struct weft_via *via, const char *lane,
                                                     struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_goodbye(const struct weft_via *via, const char *worker,
                                                 uint64_t *ret_released, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_run_pass(const struct weft_via *via,
                                                  enum weft_scanner scanner, uint32_t batch,
                                                  struct weft_pass_report *ret_report,
                                                  struct weft_err *err);

/* ---- remote_read.c --------------------------------------------------------------------------- */

WEFT_MUST_CHECK enum weft_rc weft_remote_describe(const struct weft_via *via,
                                                  const struct weft_id *id, size_t count,
                                                  struct weft_arena *arena,
                                                  struct weft_execution *ret_item,
                                                  struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_wait(const struct weft_via *via, const struct weft_id *id,
                                              int64_t wait_ms, struct weft_arena *arena,
                                              struct weft_execution *ret_item,
                                              struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc
weft_remote_list(const struct weft_via *via, const struct weft_listing *listing,
                 struct weft_arena *arena, struct weft_read_page *ret_page, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc
weft_remote_attempts(const struct weft_via *via, const struct weft_id *id, struct weft_arena *arena,
                     struct weft_attempts *ret_attempts, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_bytes(const struct weft_via *via,
                                               enum weft_bytes_kind kind, const struct weft_id *id,
                                               struct weft_arena *arena,
                                               struct weft_bytes *ret_bytes, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_counts(const struct weft_via *via, const char *lane,
                                                struct weft_arena *arena,
                                                struct weft_counts *ret_counts,
                                                struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_lanes(const struct weft_via *via, struct weft_arena *arena,
                                               struct weft_lanes *ret_lanes, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_workers(const struct weft_via *via,
                                                 struct weft_arena *arena,
                                                 struct weft_workers *ret_workers,
                                                 struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_replicas(const struct weft_via *via,
                                                  struct weft_arena *arena,
                                                  struct weft_replicas *ret_replicas,
                                                  struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_remote_scanners(const struct weft_via *via,
                                                  struct weft_arena *arena,
                                                  struct weft_scanners *ret_scanners,
                                                  struct weft_err *err);

#endif
