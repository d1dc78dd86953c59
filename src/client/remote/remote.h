/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CLIENT_REMOTE_REMOTE_H
#define WEFT_CLIENT_REMOTE_REMOTE_H

/*
 * The operations of a handle over a server, shared by the files of this folder. request.c sends
 * requests, repeats them and reads errors; remote.c says which function carries out an operation.
 * Method, path, the types of bodies and whether a request may be repeated are in wire/ops.def.
 */

#include "base/buf.h"
#include "base/json.h"
#include "client/client.h"
#include "wire/wire.h"

/* The body of a request grows up to this. The server takes 16 MiB; an item may add 1.4 to it. */
enum { WEFT_REMOTE_BODY = 12 << 20 };

/* ---- Requests (request.c) -------------------------------------------------------------------- */

struct weft_remote_request {
    enum weft_op op;
    const char *place;           /* stands for the {name} of the path; or NULL */
    const char *query;           /* "?limit=5"; or NULL */
    const char *ns;              /* NULL: that of the handle */
    const void *item;            /* the body is this, as the operation takes it; or NULL */
    const struct weft_buf *body; /* without an item: the body, or NULL */
    bool keyless;                /* an item has no key: see WEFT_REPEAT_KEYED */
    const struct weft_fetch_source *source; /* instead of both: makes the body; or NULL */
    const struct weft_fetch_sink *sink;     /* takes the answer as it comes; or NULL */
    const bool *moved; /* the source or the sink has been used: it is not sent again; or NULL */
    int64_t wait_ms;   /* how long the server may take before it answers */
    struct weft_remote_response *response; /* where weft_remote_ask() keeps the answer; or NULL */
};

struct weft_remote_response {
    const char *body; /* in the arena */
    size_t size;
    const char *content_type; /* in the arena */
    int status;
    size_t node; /* of a refused flow: 1 + the index of the node that it is about; 0: none */
};

/*
 * Sends it and, where that is safe, sends it again: see request.c. WEFT_OK is an answer of success;
 * an error of the server is returned as the server wrote it.
 */
WEFT_MUST_CHECK enum weft_rc weft_remote_send(const struct weft_via *via,
                                              const struct weft_remote_request *request,
                                              struct weft_arena *arena,
                                              struct weft_remote_response *ret_response,
                                              struct weft_err *err);
/* The same; the answer is not read. */
WEFT_MUST_CHECK enum weft_rc weft_remote_send_only(const struct weft_via *via,
                                                   const struct weft_remote_request *request,
                                                   struct weft_err *err);
/* The same; the answer is one JSON object, whose texts are slices of the arena. */
WEFT_MUST_CHECK enum weft_rc weft_remote_ask(const struct weft_via *via,
                                             const struct weft_remote_request *request,
                                             struct weft_arena *arena, struct weft_json *ret_object,
                                             struct weft_err *err);
/* The same; the answer is the message that the operation gives, if it gives one. */
WEFT_MUST_CHECK enum weft_rc weft_remote_one(const struct weft_via *via,
                                             const struct weft_remote_request *request,
                                             struct weft_arena *arena, void *ret_answer,
                                             struct weft_err *err);
/* The answer cannot be read: WEFT_UNAVAILABLE, since it came from no server of weft. */
enum weft_rc weft_remote_garbled(const struct weft_remote_request *request, struct weft_err *err);
/* An error of the server as a caller may keep it: its field and hint are static. */
WEFT_MUST_CHECK enum weft_rc weft_remote_error(const struct weft_json *value,
                                               struct weft_arena *arena, struct weft_err *ret_error,
                                               struct weft_wire_detail *ret_detail,
                                               struct weft_err *err);

/* "?name=value&name=value" in the arena, of `count` pairs without the pairs whose value is NULL. */
const char *weft_remote_query(struct weft_arena *arena, const char *const pair[][2], size_t count);
/* The same of pairs in braces. */
#define WEFT_QUERY(arena, ...)                                                                     \
    weft_remote_query(arena, (const char *const[][2]){__VA_ARGS__},                                \
                      sizeof((const char *const[][2]){__VA_ARGS__}) / sizeof(const char *[2]))
/* "?wait_ms=N" in the arena; NULL for 0. */
const char *weft_remote_wait_query(struct weft_arena *arena, int64_t wait_ms);
/* A page of a list: limit 0: the server chooses; after NULL: the first page. */
const char *weft_remote_page_query(struct weft_arena *arena, uint32_t limit, const char *after);
/* The id as text, in the arena. */
const char *weft_remote_id(struct weft_arena *arena, const struct weft_id *id);
/* Walks the "items" of an answer. False: there are none, or not `count` of them. */
WEFT_MUST_CHECK bool weft_remote_items(const struct weft_json *object, size_t count,
                                       struct weft_json_iter *ret_iter);
/*
 * A wait until then (monotonic) is made of requests that each wait for a slice; the last one waits
 * for less than WEFT_REMOTE_SLICE_MS.
 */
enum { WEFT_REMOTE_SLICE_MS = 20000 };
int64_t weft_remote_wait_slice(weft_usec until_us);

/* A list of the messages that an operation gives, grown page by page. */
struct weft_remote_list {
    void *item; /* in the arena */
    size_t count, capacity;
    const char *next;       /* in the arena; NULL: there is no more */
    weft_usec looked_to_us; /* how far it looked, where the answer says so; otherwise 0 */
    struct weft_json page;  /* the last answer */
};
/* Adds a page of the list. */
WEFT_MUST_CHECK enum weft_rc
weft_remote_page(const struct weft_via *via, const struct weft_remote_request *request,
                 struct weft_arena *arena, struct weft_remote_list *listing, struct weft_err *err);

/*
 * Defines the operation that reads a page of a list, by `limit`, `after` and `ns` of its argument,
 * which is `asking`; place: what stands in the path, or NULL.
 */
#define WEFT_REMOTE_PAGE_OF(name, argument, page, place_)                                          \
    enum weft_rc name(const struct weft_via *via, const struct weft_op_call *call,                 \
                      struct weft_err *err)                                                        \
    {                                                                                              \
        const struct argument *asking = call->in;                                                  \
        struct weft_remote_list list = {0};                                                        \
        const struct weft_remote_request request = {                                               \
            .op = call->op,                                                                        \
            .place = (place_),                                                                     \
            .query = weft_remote_page_query(call->arena, asking->limit, asking->after),            \
            .ns = asking->ns};                                                                     \
        enum weft_rc rc = weft_remote_page(via, &request, call->arena, &list, err);                \
        if (!rc)                                                                                   \
            *(struct page *)call->out =                                                            \
                (struct page){.item = list.item, .count = list.count, .next = list.next};          \
        return rc;                                                                                 \
    }                                                                                              \
    _Static_assert(sizeof(struct page) > 0, "so that a semicolon may follow")

/* ---- Operations ------------------------------------------------------------------------------ */

typedef enum weft_rc weft_remote_fn(const struct weft_via *via, const struct weft_op_call *call,
                                    struct weft_err *err);

/* remote_work.c */
weft_remote_fn weft_remote_bulk; /* operations on items but claims */
weft_remote_fn weft_remote_claim;
weft_remote_fn weft_remote_watch;
weft_remote_fn weft_remote_steer_many;
/* Refuses values that JSON has no word for. */
WEFT_MUST_CHECK enum weft_rc weft_remote_check_spec(const struct weft_spec *spec,
                                                    struct weft_err *err);

/* remote_file.c */
weft_remote_fn weft_remote_file;
weft_remote_fn weft_remote_files;
weft_remote_fn weft_remote_file_put;
weft_remote_fn weft_remote_content;
weft_remote_fn weft_remote_models;
weft_remote_fn weft_remote_model_put;

/* remote_batch.c */
weft_remote_fn weft_remote_batch; /* one that is there */
weft_remote_fn weft_remote_batch_create;
weft_remote_fn weft_remote_batches;

/* remote_flow.c */
weft_remote_fn weft_remote_flow_submit;
weft_remote_fn weft_remote_flow_grow;
weft_remote_fn weft_remote_flow_link;
weft_remote_fn weft_remote_flow_cancel;
weft_remote_fn weft_remote_flow;
weft_remote_fn weft_remote_flow_nodes;
weft_remote_fn weft_remote_flows;

#endif
