/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_ROUTE_H
#define WEFT_NET_ROUTE_H

/*
 * Routes: what a row of the route table (api/routes.c) says, and how the raw target of a request
 * ("/v1/lanes/a%2Fb?x=1") finds its row. Finding is pure: no HTTP library, no memory of its own,
 * the same answer for the same text.
 *
 * The path is split at its slashes first and each segment is percent-decoded after that, so an
 * encoded slash stays inside its segment: names may hold slashes. Empty segments match nothing:
 * "/v1//lanes" and "/v1/lanes/" are not found.
 */

#include "core/token.h"
#include "weft/weft.h"
#include "wire/ops.h"

struct weft_request;

/* Reads or runs a request. A failure is the answer. */
typedef enum weft_rc weft_route_fn(struct weft_request *request, struct weft_err *err);
/* Writes the answer of a grouped request. */
typedef void weft_route_write_fn(struct weft_request *request);

/* A query parameter, for the OpenAPI document. A request with any other parameter is refused. */
struct weft_param {
    const char *name;
    const char *schema; /* JSON Schema text */
    const char *about;
};

enum { WEFT_PARAMS_MAX = 20 };

/* A header of an answer. Texts are static, or live as long as the request. */
struct weft_header {
    const char *name, *value;
};

enum { WEFT_ROUTE_HEADERS = 2, WEFT_PIECE_MAX = 256 << 10 };

/* The form of an answer. */
enum weft_shape {
    WEFT_SHAPE_ONE,   /* one `gives` */
    WEFT_SHAPE_ITEMS, /* {"items":[...]} of it */
    WEFT_SHAPE_PAGE,  /* {"items":[...],"next"} of it */
    WEFT_SHAPE_BULK,  /* an id with a `gives`; or {"items":[...]}, each that or an error */
    WEFT_SHAPE_BYTES, /* any bytes, with their content type */
    WEFT_SHAPE_TEXT,  /* lines of text */
    WEFT_SHAPE_OTHER, /* as `answer` describes it */
};

/*
 * The argument of an operation that runs alone, for weft_api_read(): its size, and where the parts
 * of the request go that are not in the body, as the offset of the member plus 1. 0: nowhere.
 */
struct weft_route_arg {
    uint16_t size; /* 0: that of op->takes */
    uint16_t ns, id, limit, after;
};

struct weft_route {
    const struct weft_op_info *op; /* method, path, scope, group, messages: see wire/ops.def */
    bool or_work;                  /* the scope of workers is enough as well */
    bool while_waiting; /* also before the store is open: `read` answers then, without an engine */
    size_t body_max;    /* 0: no body is read */
    bool walks;         /* with a filter it may read many rows and find few; see group/plan.c */
    struct weft_route_arg arg; /* for weft_api_read() */
    weft_route_fn *read;       /* on the loop thread (large bodies: on an engine thread) */
    /*
     * Takes the body in pieces as it arrives, each in request->body, of at most WEFT_PIECE_MAX
     * bytes: on an engine thread, while nothing more is read from the connection. A piece has
     * receive_timeout to arrive. The first call finds request->state NULL; read() follows the last
     * one, on an engine thread. NULL: the body is one piece, which read() finds.
     */
    weft_route_fn *take;
    /* Frees what request->state holds outside of the arena, when the request is over: on the loop
     * thread, also after a connection that broke off. */
    weft_route_write_fn *forget;
    weft_route_fn *run; /* on an engine thread; of grouped requests only with items.alone */
    /*
     * run() changes a flow, and may be called again after WEFT_CAUSE_FLOW_LOCKED. A grouped request
     * that finds its flow locked runs alone from there on.
     */
    bool locks_flow;
    weft_route_write_fn *write; /* grouped: from request->items, on an engine thread */
    struct weft_header header[WEFT_ROUTE_HEADERS]; /* of its answers that are no errors */
    const char *summary; /* one line; for the OpenAPI document, as the rest of the row */
    const char *about;   /* Markdown */
    /*
     * Which errors it can answer with, as bits (RC() of routes.h). Errors that follow from the rest
     * of the row, as 401 from a scope, are added by the document.
     */
    uint32_t fails;
    struct weft_param query[WEFT_PARAMS_MAX];
    const char *body;      /* JSON Schema text where op->takes cannot say it */
    const char *form;      /* the same for a body that is a form, multipart/form-data */
    const char *answer;    /* the same for op->gives */
    enum weft_shape shape; /* of the answer */
    bool bulk;             /* the body is one op->takes, or {"items":[...]} of them */
    bool may_be_empty;     /* a body is taken, and none counts as {} */
    bool any_body;         /* the body is bytes of any type */
    bool takes_lines;      /* the body may also be items as lines, NDJSON */
    bool creates;          /* 201 as well as 200 */
    bool accepts;          /* 202 as well as 200 */
    bool lines;            /* the items also as lines, application/x-ndjson */
    bool openai;           /* errors and parameters as OpenAI has them: openai.h */
};

enum weft_route_miss {
    WEFT_ROUTE_FOUND,
    WEFT_ROUTE_BAD,       /* not a path: bad encoding, NUL, no UTF-8, too long */
    WEFT_ROUTE_NOT_FOUND, /* 404 */
    WEFT_ROUTE_METHOD,    /* 405: there are others, see `allow` */
};

enum { WEFT_ROUTE_SEGMENTS = 8, WEFT_ROUTE_TEXT = 1024, WEFT_ROUTE_ALLOW = 64 };

/* May be copied: it holds no pointers. */
struct weft_route_match {
    enum weft_route_miss miss;
    char allow[WEFT_ROUTE_ALLOW];          /* "GET, PUT": for METHOD */
    uint16_t segment[WEFT_ROUTE_SEGMENTS]; /* where each begins in text */
    uint16_t count;
    char text[WEFT_ROUTE_TEXT]; /* the segments, decoded, each with a NUL behind it */
};

/* A set of routes, so that tests can have their own. */
struct weft_route_table {
    const struct weft_route *route;
    size_t count;
};
extern const struct weft_route_table weft_routes; /* of the API */

/*
 * The route of a method and a raw target, or NULL and ret_match->miss. HEAD finds the route of GET.
 * The part behind '?' is ignored; "http://host/path" counts as "/path".
 */
const struct weft_route *weft_route_find(const struct weft_route_table *table, const char *method,
                                         const char *target, struct weft_route_match *ret_match);
/* The decoded value of a {name} of the route that was found; NULL when it has no such name. */
const char *weft_route_value(const struct weft_route_match *match, const struct weft_route *route,
                             const char *name);

/*
 * Percent-decodes size bytes of text into ret_text, which has room for size + 1, and ends it with a
 * NUL. plus: '+' is a space. False for "%" without two hex digits, for U+0000 and for text that is
 * not UTF-8.
 */
WEFT_MUST_CHECK bool weft_percent_decode(const char *text, size_t size, bool plus, char *ret_text,
                                         size_t *ret_size);

/* ---- The query ------------------------------------------------------------------------------- */

/*
 * The query string of a request, taken apart. A parameter may come once: two values for one name
 * are a mistake that must not be answered by picking one.
 */

enum { WEFT_QUERY_PAIRS = 16, WEFT_QUERY_BYTES = 8192 };

struct weft_query_pair {
    const char *name; /* both in the arena, decoded, UTF-8 without U+0000 */
    const char *value;
};

struct weft_query {
    struct weft_query_pair pair[WEFT_QUERY_PAIRS];
    size_t count;
};

/* What follows the '?' of a raw target, without a fragment; the empty text when there is none. */
const char *weft_query_of(const char *target);
/*
 * Takes "a=1&b=2" apart. Empty pairs are passed over, a name without '=' has the value "".
 * WEFT_INVALID_VALUE for bad encoding and repeated names, WEFT_TOO_LARGE above the limits.
 */
WEFT_MUST_CHECK enum weft_rc weft_query_parse(const char *text, struct weft_arena *arena,
                                              struct weft_query *ret_query, struct weft_err *err);
/* WEFT_UNKNOWN_FIELD, naming it, for a parameter that the route does not list, where it minds. */
WEFT_MUST_CHECK enum weft_rc weft_query_check(const struct weft_query *query,
                                              const struct weft_route *route, struct weft_err *err);
/* The value, or NULL when it is absent. */
const char *weft_query_find(const struct weft_query *query, const char *name);
/* Whether a list with these parameters has to look for what fits. One by key is looked up. */
bool weft_query_filters(const struct weft_query *query);

#endif
