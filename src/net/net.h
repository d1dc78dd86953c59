/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_NET_H
#define WEFT_NET_NET_H

/*
 * Shared by the files of the server; nothing outside this folder includes it.
 *
 * The life of a request ("ask"): the loop thread receives it, finds its route and its namespace,
 * reads its body and calls route->read. An ask that is then answered already goes out. Any other is
 * suspended and put in a queue; an engine thread takes it, alone (route->run) or with all others of
 * its kind that are waiting (group.c), answers it and resumes it; the loop thread sends the answer.
 * An ask belongs to one thread at a time, so nothing in it needs a lock.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "core/token.h"
#include "engine/ops.h"
#include "net/http/decode.h"
#include "net/server.h"
#include "wire/ops.h"

#include <pthread.h>

struct weft_request;

/* ---- What can be asked ----------------------------------------------------------------------- */

/*
 * A parameter or a message of a route, for the OpenAPI document. Query parameters that are not
 * listed are refused.
 */
struct weft_param {
    const char *name;
    const char *schema; /* JSON Schema text */
    const char *about;
};

enum { WEFT_PARAMS_MAX = 20 };

/* What an answer looks like. */
enum weft_shape {
    WEFT_SHAPE_ONE,   /* what `gives` says */
    WEFT_SHAPE_ITEMS, /* {"items":[...]} of it */
    WEFT_SHAPE_PAGE,  /* {"items":[...],"next"} of it */
    WEFT_SHAPE_BULK,  /* an id with what `gives` says; or {"items":[...]}, each that or an error */
    WEFT_SHAPE_BYTES, /* any bytes, with their content type */
    WEFT_SHAPE_TEXT,  /* lines of text */
    WEFT_SHAPE_OTHER, /* what `answer` says */
};

struct weft_route {
    const struct weft_op_info *op; /* method, path, scope, group, messages: see wire/ops.def */
    bool or_work;                  /* the scope of workers is enough as well */
    bool while_waiting; /* also before the store is open: `read` answers then, without an engine */
    size_t body_max;    /* 0: no body is read */
    bool walks;         /* with a filter it may look at much and find little; see plan.c */
    /* On the loop thread (large bodies: on an engine thread). A failure is the answer. */
    enum weft_rc (*read)(struct weft_request *request, struct weft_err *err);
    /* On an engine thread; of grouped ones those that say items.alone. A failure is the answer. */
    enum weft_rc (*run)(struct weft_request *request, struct weft_err *err);
    /*
     * run() changes a flow, and may be called again after WEFT_CAUSE_FLOW_LOCKED. A grouped request
     * that meets it runs alone from there on.
     */
    bool locks_flow;
    /* Grouped: writes the answer from request->items, on an engine thread. */
    void (*write)(struct weft_request *request);
    const char *summary; /* one line; for the OpenAPI document, as the rest of the row */
    const char *about;   /* what to know before using it, in Markdown */
    /*
     * Which errors it can answer with, as bits (RC() of routes.h). Those that follow from the rest
     * of the row, as 401 from a scope, are added by the document.
     */
    uint32_t fails;
    struct weft_param query[WEFT_PARAMS_MAX];
    const char *body;      /* JSON Schema text where op->takes cannot say it */
    const char *answer;    /* the same for op->gives */
    enum weft_shape shape; /* of the answer */
    bool bulk;             /* the body is one op->takes, or {"items":[...]} of them */
    bool may_be_empty;     /* a body is taken, and none counts as {} */
    bool takes_lines;      /* the body may also be items as lines, NDJSON */
    bool creates;          /* 201 as well as 200 */
    bool accepts;          /* 202 as well as 200 */
    bool lines;            /* the items also as lines, application/x-ndjson */
};

extern const struct weft_route weft_routes[];
extern const size_t weft_route_count;

/* ---- One request ----------------------------------------------------------------------------- */

/*
 * The items of a grouped request and their answers, one for one. Items whose err.rc is set were
 * refused while reading: they are answered with it and never reach the engine.
 */
struct weft_items {
    void *item;           /* structs of weft.h, as the group says */
    void *answer;         /* set by the group */
    struct weft_err *err; /* one for each item */
    uint32_t *line;       /* the lines on which they stood (NDJSON); or NULL */
    size_t count;
    size_t bytes; /* of payloads and results, to bound a transaction */
    bool bulk;    /* the body was {"items":[...]} or lines; otherwise count is 1 */
    bool alone;   /* too large to be folded with others: run() takes it */
};

/*
 * The next part of an answer that is sent in parts, so that it never stands in memory as a whole:
 * appends to *out, which is empty, and says whether that was the last. Called on an engine thread,
 * each time after the part before was sent. A failure breaks the connection off: what was sent
 * already cannot be taken back, and a client must not take half an answer for a whole one.
 */
typedef enum weft_rc weft_stream_fn(struct weft_request *request, struct weft_buf *out,
                                    bool *ret_last, struct weft_err *err);

struct weft_reply {
    int status;       /* 0: not answered yet */
    const char *type; /* static or in the arena; NULL: application/json */
    struct weft_buf body;
    const char *location;   /* or NULL */
    int retry_after_s;      /* 0: no such header */
    weft_stream_fn *stream; /* what follows the body, in parts; NULL: nothing */
    bool last;              /* the stream has given its last part */
    bool broken;            /* the stream has failed: the connection is broken off */
};

struct weft_request {
    struct weft_server *server;
    const struct weft_route *route;
    struct weft_arena *arena;    /* lives until the answer has been sent */
    const char *ns;              /* from the token or the header */
    bool ns_fixed;               /* the token says so: leases of others are out of reach */
    uint32_t scopes;             /* what the token allows */
    int32_t token;               /* its id; 0: there is none */
    struct weft_request_secret { /* of auth.c alone */
        int32_t id;              /* of the secret that was shown; 0: none */
        uint64_t load;           /* the load of the tokens in which it was last found good */
        weft_usec expires_us;    /* as of that load, the store's time; 0: never */
    } secret;
    struct weft_buf body;
    enum weft_coding coding; /* in which the body still is */
    struct weft_items items; /* grouped requests */
    bool walks;              /* a list with a filter: it may look at much and find little */
    bool unread;             /* the body is large or encoded: an engine thread reads it */
    void *state;             /* of the route, from read to run */
    struct weft_reply reply;
    weft_usec queued_us;        /* boot time: when it came into its queue */
    weft_usec lock_until_us;    /* boot time; 0: it has met no flow that is locked */
    struct weft_request *next;  /* in the queue it waits in */
    size_t weight;              /* items, for the queue */
    struct weft_waiter *waiter; /* of waits.c alone */
    struct weft_link *link;     /* the HTTP side, of loop.c alone */
};

/* The value of a {name} of the path, decoded. The route has it. */
const char *weft_request_path(const struct weft_request *request, const char *name);
/* The value of a query parameter, decoded, or NULL. */
const char *weft_request_query(const struct weft_request *request, const char *name);
/* A header of the request, or NULL. */
const char *weft_request_header(const struct weft_request *request, const char *name);
/* An id in the path; WEFT_INVALID_VALUE names it. */
WEFT_MUST_CHECK enum weft_rc weft_request_id(const struct weft_request *request,
                                             struct weft_id *ret_id, struct weft_err *err);
/* A whole number in the query, absent: the default. Outside min..max is WEFT_INVALID_VALUE. */
struct weft_request_number {
    const char *name;
    int64_t min, max, normally;
};
WEFT_MUST_CHECK enum weft_rc weft_request_query_i64(const struct weft_request *request,
                                                    const struct weft_request_number *number,
                                                    int64_t *ret_value, struct weft_err *err);
/* The body as one checked JSON object. An empty body counts as {} where optional is true. */
WEFT_MUST_CHECK enum weft_rc weft_request_object(struct weft_request *request, bool optional,
                                                 struct weft_json *ret_object,
                                                 struct weft_err *err);
/*
 * Reads a body of {"items":[...]} (at most WEFT_BATCH_MAX) of `type` into request->items, each item
 * on its own: one that is refused does not touch its neighbours.
 */
struct weft_wire_type;
WEFT_MUST_CHECK enum weft_rc weft_request_items(struct weft_request *request,
                                                const struct weft_wire_type *type, size_t item_size,
                                                struct weft_err *err);

/*
 * The same, or a body that is one item: then items.bulk is false, and an item that is refused is
 * the failure of the request.
 */
WEFT_MUST_CHECK enum weft_rc weft_request_one_or_items(struct weft_request *request,
                                                       const struct weft_wire_type *type,
                                                       size_t item_size, struct weft_err *err);

/* Makes room for items that are read in another way. */
void weft_request_items_room(struct weft_request *request, size_t item_size, size_t count);

/* ---- Lines (lines.c) ------------------------------------------------------------------------- */

#define WEFT_LINES_TYPE "application/x-ndjson"
extern const char *const weft_lines_types[]; /* that and its other names; NULL at the end */
/* True for a content type of JSON objects as lines; NULL is none. */
bool weft_lines_type(const char *type);
/* True when the client asks for lines. A type among others in the header counts. */
bool weft_request_wants_lines(const struct weft_request *request);
/* Reads a body of lines, each an item of `type` (at most WEFT_BATCH_MAX), into request->items. */
WEFT_MUST_CHECK enum weft_rc weft_request_lines(struct weft_request *request,
                                                const struct weft_wire_type *type, size_t item_size,
                                                struct weft_err *err);

/* ---- Answers --------------------------------------------------------------------------------- */

/* Begins a JSON answer with this status; the writer writes into the reply. */
void weft_reply_json(struct weft_request *request, int status, struct weft_json_writer *ret_out);
/* Answers with an error: its status, its code, Retry-After where it is worth it. */
void weft_reply_error(struct weft_request *request, const struct weft_err *err);
/* The same, with the reason why a lease is gone. */
void weft_reply_fence(struct weft_request *request, const struct weft_err *err,
                      enum weft_fence fence);
/* Bytes as they are; type NULL: application/json. */
void weft_reply_bytes(struct weft_request *request, const void *data, size_t size,
                      const char *type);

/* ---- Waiting (waits.c) ----------------------------------------------------------------------- */

/*
 * A run() that waits for the end of an execution calls this with the time (boot time) until which
 * it would. True: it returns WEFT_OK without an answer, and is called again when the execution may
 * have ended or the time has passed. False: it must answer with what there is.
 */
enum weft_wait_looks {
    WEFT_WAIT_LOOKS, /* every second, because a look also does something */
    WEFT_WAIT_TOLD,  /* a few times, then it is told of the end */
};
WEFT_MUST_CHECK bool weft_wait_for_end(struct weft_request *request, const struct weft_id *id,
                                       weft_usec until_us, enum weft_wait_looks looks);
/*
 * The same for a run() that waits until a worker (by its number) has to be told of leases. It is
 * called before the look, so that nothing falls between the look and the sleep; no look is made
 * without a reason.
 */
WEFT_MUST_CHECK bool weft_wait_for_leases(struct weft_request *request, int32_t worker,
                                          weft_usec until_us);
/*
 * The same for a run() that met a flow that another transaction holds, and wrote nothing: it is
 * called again after a pause. False: it has waited long enough.
 */
WEFT_MUST_CHECK bool weft_wait_for_lock(struct weft_request *request);
/* True when the client of the ask has hung up: it would not read the answer. */
bool weft_request_gone(const struct weft_request *request);
/* These executions are over: whoever waits for one looks again. */
void weft_wait_ended(struct weft_server *server, const struct weft_id *id, size_t count);

/* ---- Scanners (supervisor.c, presence.c) ----------------------------------------------------- */

/* How each scanner of this replica is set and what it did: WEFT_SCANNER_COUNT of them. */
struct weft_scanner_status *weft_supervisor_status(struct weft_server *server,
                                                   struct weft_arena *arena);
/*
 * One pass now, for an operator, with the scanner's own batch and filter, whether it is enabled or
 * not; counted like any other. Blocks: for handlers on engine threads.
 */
WEFT_MUST_CHECK enum weft_rc weft_supervisor_run(struct weft_server *server,
                                                 enum weft_scanner scanner,
                                                 struct weft_pass_report *ret_report,
                                                 struct weft_err *err);
/* Scanners that no living replica runs, as "name, name"; NULL: all are covered, as last seen. */
const char *weft_supervisor_uncovered(struct weft_server *server, struct weft_arena *arena);

/* ---- The server as handlers see it ----------------------------------------------------------- */

struct weft_engine *weft_server_engine(struct weft_server *server);
bool weft_server_is_open(const struct weft_server *server); /* its store, and with it the engine */
/* What the API areas keep for a server: made by weft_api_new(), see api.h. */
struct weft_api;
struct weft_api *weft_server_api(struct weft_server *server);
struct weft_metrics;
struct weft_metrics *weft_server_metrics(struct weft_server *server); /* of its weft_api */
/* Runs fn on an engine thread, after what waits already; context is fn's to free. */
void weft_server_do(struct weft_server *server, void (*fn)(struct weft_server *, void *),
                    void *context);
/* Cancels the members of a cancelled flow on an engine thread, a chunk at a time. */
void weft_server_drain(struct weft_server *server, const struct weft_id *flow);
/* Tokens were changed by a request of this server: it goes by them from here on. */
void weft_server_tokens_changed(struct weft_server *server);
/* Adds uses of tokens that this server has not written yet. */
void weft_server_show_uses(struct weft_server *server, struct weft_token *token, size_t count);
/* The worker said goodbye: what was heard of it is forgotten. */
void weft_server_forget_worker(struct weft_server *server, const char *ns, const char *worker);

#endif
