/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_HTTP_H
#define WEFT_HTTP_H

/*
 * Endpoints: the servers that weft calls for executions of kind `http`. weft.h includes this file
 * and says how its calls answer and fail.
 *
 * An administrator makes an endpoint; the payload of an execution names it and a path behind its
 * URL. It belongs to a namespace. It names a secret, which each server process has in its
 * `secrets_dir` or environment: no secret is ever stored or shown.
 */

#include "weft/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft;       /* opaque */
struct weft_arena; /* opaque */
struct weft_tag;   /* weft.h: a key and a value */

/* Whether calls may begin: see `breaker` in docs/calls.md. */
enum weft_endpoint_breaker {
    WEFT_ENDPOINT_CLOSED,    /* yes */
    WEFT_ENDPOINT_OPEN,      /* no: too many have failed */
    WEFT_ENDPOINT_HALF_OPEN, /* one, whose end decides */
};

/* What the answering server process knows of its own calls since it started. */
struct weft_endpoint_health {
    bool known; /* false: no server was asked */
    enum weft_endpoint_breaker breaker;
    weft_usec open_until_us; /* 0: it is not open */
    uint64_t in_flight;      /* calls that have begun and not ended */
    uint64_t waiting;        /* claimed, and waiting for their turn */
    uint64_t answers[5];     /* by the class of their status: 1xx, 2xx, 3xx, 4xx, 5xx */
    uint64_t failed;         /* calls without a whole answer */
};

/* 0 and NULL stand for the default, which answers have filled in. */
struct weft_endpoint {
    const char *name;
    const char *url;    /* "https://api.example.com/v1": what every call begins with */
    const char *secret; /* its name; NULL: none */
    const char *auth;   /* the header that has it; NULL: "Authorization: Bearer {secret}" */
    const struct weft_tag *headers; /* sent with every call */
    size_t header_count;
    bool private_addresses;         /* calls may reach addresses that are not public */
    bool redirects;                 /* followed within the origin of the URL, 5 at most */
    bool idempotent;                /* any request may be sent twice, a POST too */
    const char *idempotency_header; /* gets a key that all attempts of an execution share */
    const char *retry; /* JSON list of statuses that are worth an attempt: [408,425,429,"5xx"] */
    int64_t retry_after_max_ms; /* a longer wait that the server asks for is cut; 3,600,000 */
    int64_t max_in_flight;      /* calls at a time, of each server process; 64 */
    int64_t connect_ms;         /* for a connection, with look-up and TLS; 5,000 */
    int64_t first_byte_ms;      /* from the whole request to the head of the answer; 60,000 */
    int64_t idle_ms;            /* between two bytes of the answer; 30,000 */
    int64_t total_ms;           /* for all of it; 600,000 */
    int64_t response_max;       /* bytes of an answer, decoded; 8 MiB */
    /* In answers: */
    uint64_t version; /* another one with each put */
    struct weft_endpoint_health health;
};

/* Makes an endpoint, or replaces all its settings. Server processes know it within a second. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_endpoint_put(struct weft *weft, const struct weft_endpoint *endpoint, struct weft_err *err);
/* WEFT_NOT_FOUND: there is none. Calls that have begun go on. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_endpoint_remove(struct weft *weft, const char *name,
                                                              struct weft_err *err);

struct weft_endpoints {
    const struct weft_endpoint *item; /* by name */
    size_t count;
    const char *next;         /* cursor of the next page; NULL: this is the last */
    struct weft_arena *arena; /* owned */
};
/* name not NULL: this one alone, WEFT_NOT_FOUND if there is none. limit 0: 50; after NULL: the
 * first. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_endpoints(struct weft *weft, const char *name,
                                                        uint32_t limit, const char *after,
                                                        struct weft_endpoints *ret_endpoints,
                                                        struct weft_err *err);
WEFT_EXPORT void weft_endpoints_free(struct weft_endpoints *endpoints);

#ifdef __cplusplus
}
#endif

#endif
