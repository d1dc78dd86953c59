/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_REQUEST_H
#define WEFT_NET_REQUEST_H

/*
 * One request, from its headers to its answer: what handlers read from it and how they answer it.
 *
 * The loop thread receives a request, finds its route and its namespace, reads its body and calls
 * route->read. If that answered it, the answer is sent. Otherwise the connection is suspended and
 * the request is queued; an engine thread takes it, alone (route->run) or with all others of its
 * kind that are waiting (group/group.c), answers it and resumes it; the loop thread sends the
 * answer. A request belongs to one thread at a time, so nothing in it needs a lock.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "net/http/decode.h"
#include "net/route.h"

struct weft_link;
struct weft_server;
struct weft_waiter;
struct weft_wire_detail;

/*
 * The items of a grouped request and their answers, one for one. Items with an err were
 * refused while reading: they are answered with it and never reach the engine.
 */
struct weft_items {
    void *item;                  /* structs of weft.h; the group says which */
    void *answer;                /* set by the group */
    const struct weft_err **err; /* one for each item, in the arena; NULL: it was not refused */
    uint32_t *line;              /* the lines on which they stood (NDJSON); or NULL */
    size_t count;
    size_t bytes; /* of payloads and results, to bound a transaction */
    bool bulk;    /* the body was {"items":[...]} or lines; otherwise count is 1 */
    bool alone;   /* too large to be folded with others: run() takes it */
};

/*
 * Makes the next part of an answer that is sent in parts, so that it is never in memory as a whole:
 * appends to *out, which is empty, and sets *ret_last at the end. Called on an engine thread, each
 * time after the part before was sent. A failure breaks the connection off, so that a client does
 * not take half an answer for a whole one.
 *
 * A stream that has nothing to send yet waits as a run() does: weft_wait_for_end() takes an id and
 * a time; true: the stream appends nothing and is called again when weft_wait_ended() names that id
 * (from any thread) or the time has passed, and until then it takes no thread. False: it appends
 * something, or sets *ret_last, at the latest when server->stopping is set.
 */
typedef enum weft_rc weft_stream_fn(struct weft_request *request, struct weft_buf *out,
                                    bool *ret_last, struct weft_err *err);

enum { WEFT_REPLY_HEADERS = 6 };

struct weft_reply {
    int status;                                    /* 0: not answered yet */
    struct weft_header header[WEFT_REPLY_HEADERS]; /* set by weft_reply_header() */
    size_t headers;
    struct weft_buf body;
    weft_stream_fn *stream; /* makes the parts that follow the body; NULL: there are none */
    uint64_t stream_bytes;  /* of all parts; 0: not known */
    bool last;              /* the stream has given its last part */
    bool broken;            /* the stream has failed: the connection is broken off */
};

struct weft_request {
    struct weft_server *server;
    const struct weft_route *route;
    struct weft_route_match match;
    struct weft_query query;
    struct weft_arena *arena; /* lives until the answer has been sent */
    const char *ns;           /* from the token or the header */
    bool ns_fixed;            /* the token is bound to ns: leases of other namespaces are refused */
    uint32_t scopes;          /* of the token */
    int32_t token;            /* its id; 0: there is none */
    struct weft_request_secret { /* private to auth.c */
        int32_t id;              /* of the secret that was shown; 0: none */
        uint64_t load;           /* the load of the tokens in which it was last found valid */
        weft_usec expires_us;    /* as of that load, the store's time; 0: never */
    } secret;
    struct weft_buf body;
    enum weft_coding coding; /* in which the body still is */
    struct weft_items items; /* grouped requests */
    bool walks;              /* a list with a filter: it may read many rows and find few */
    bool unread;             /* the body is large or encoded: an engine thread reads it */
    bool more;               /* `body` is a piece, for route->take(): more is to come */
    void *state;             /* of the route, from read to run */
    struct weft_reply reply;
    weft_usec queued_us;        /* boot time: when it came into its queue */
    weft_usec lock_until_us;    /* boot time; 0: it has not found its flow locked */
    struct weft_request *next;  /* in the queue it waits in */
    size_t weight;              /* items, for the queue */
    struct weft_waiter *waiter; /* private to wait/ */
    struct weft_link *link;     /* private to http/ */
};

/* A header of the request, or NULL. */
const char *weft_request_header(const struct weft_request *request, const char *name);
/* The value of a {name} of the path, decoded. The route has it. */
const char *weft_request_path(const struct weft_request *request, const char *name);
/* The value of a query parameter, decoded, or NULL. */
const char *weft_request_query(const struct weft_request *request, const char *name);
/* The id in the path; WEFT_INVALID_VALUE names it. */
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
/* The body as one value of `type`. */
WEFT_MUST_CHECK enum weft_rc weft_request_read(struct weft_request *request, bool optional,
                                               const struct weft_wire_type *type, void *ret_value,
                                               struct weft_err *err);
/*
 * Reads a body that is one item of `type`, or {"items":[...]} of them (at most WEFT_BATCH_MAX),
 * into request->items. Of several items each is read on its own: one that is refused does not
 * affect the others. One item that is refused is the failure of the request.
 */
WEFT_MUST_CHECK enum weft_rc weft_request_one_or_items(struct weft_request *request,
                                                       const struct weft_wire_type *type,
                                                       size_t item_size, struct weft_err *err);

/* ---- JSON objects as lines (NDJSON), in requests and answers --------------------------------- */

/* Of bytes that a client submitted: a browser must not take them for a page of this site. */
#define WEFT_FOREIGN_HEADERS                                                                       \
    {"X-Content-Type-Options", "nosniff"},                                                         \
    {                                                                                              \
        "Content-Security-Policy", "sandbox"                                                       \
    }
#define WEFT_LINES_TYPE "application/x-ndjson"
extern const char *const weft_lines_types[]; /* WEFT_LINES_TYPE and its other names; ends in NULL */
/* True for a content type of JSON objects as lines; NULL is none. */
bool weft_lines_type(const char *type);
/* True when the client accepts lines; a type among others in the header counts. */
bool weft_request_wants_lines(const struct weft_request *request);
/* Reads a body of lines, each an item of `type` (at most WEFT_BATCH_MAX), into request->items. */
WEFT_MUST_CHECK enum weft_rc weft_request_lines(struct weft_request *request,
                                                const struct weft_wire_type *type, size_t item_size,
                                                struct weft_err *err);

/* ---- Answers --------------------------------------------------------------------------------- */

/*
 * Sets a header of the answer, in place of one of that name. `name` is static, `value` lives as
 * long as the arena of the request. Without a Content-Type the answer is application/json. Headers
 * may be set before the answer is begun; an answer that takes the place of another one drops its
 * headers.
 */
void weft_reply_header(struct weft_request *request, const char *name, const char *value);
/* Copies the values of the headers into an arena that lives longer. */
void weft_reply_keep_headers(struct weft_reply *reply, struct weft_arena *arena);
/* The body of the answer that was begun is lines of JSON. */
void weft_reply_as_lines(struct weft_request *request);
/* Begins a JSON answer with this status; the writer writes into the reply. */
void weft_reply_json(struct weft_request *request, int status, struct weft_json_writer *ret_out);
/* The same with status 200 and {"items":[ written; the caller ends array and object. */
void weft_reply_items(struct weft_request *request, struct weft_json_writer *ret_out);
/* Answers with one value of `type`. */
void weft_reply_wire(struct weft_request *request, int status, const struct weft_wire_type *type,
                     const void *value);
/* Answers with an error: its status, its code, Retry-After where it is worth it. */
void weft_reply_error(struct weft_request *request, const struct weft_err *err);
/* The same, with more that is said of a lease; NULL: nothing. */
void weft_reply_detail(struct weft_request *request, const struct weft_err *err,
                       const struct weft_wire_detail *detail);
/* Bytes as they are; type NULL: application/json. */
void weft_reply_bytes(struct weft_request *request, const void *data, size_t size,
                      const char *type);

#endif
