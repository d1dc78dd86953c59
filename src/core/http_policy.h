/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_HTTP_POLICY_H
#define WEFT_CORE_HTTP_POLICY_H

/*
 * What the end of an outgoing HTTP call means: success, another attempt, or failure, and with which
 * error class. Pure.
 *
 * A call is repeated when two questions are answered with yes. May it help? After a failure of the
 * network, and after the statuses that the endpoint lists. May it be done twice? When the method is
 * idempotent (RFC 9110, 9.2.2), when the endpoint says so, when no byte of the request left, or
 * when the server says that it did not act on the request (408, 425, 429). A POST that was answered
 * with 500 is not repeated: it may have had its effect.
 */

#include "base/json.h"
#include "core/breaker.h"

/* ---- Which statuses are worth another attempt ------------------------------------------------ */

enum { WEFT_RETRY_STATUS_MIN = 300, WEFT_RETRY_STATUS_MAX = 599 };

struct weft_http_retry {
    uint64_t bit[5]; /* by status, from WEFT_RETRY_STATUS_MIN */
};

/*
 * From a list such as [408,429,"5xx"]; NULL and null: [408,425,429,"5xx"]. An empty list is no
 * status. WEFT_INVALID_VALUE names the field `retry`.
 */
WEFT_MUST_CHECK enum weft_rc weft_http_retry_read(const struct weft_json *value,
                                                  struct weft_http_retry *ret_retry,
                                                  struct weft_err *err);
/* The canonical list, in the arena: numbers and whole classes, rising. Equal sets, equal texts. */
const char *weft_http_retry_text(const struct weft_http_retry *retry, struct weft_arena *arena);
bool weft_http_retry_has(const struct weft_http_retry *retry, int status);

/* ---- What an end means ----------------------------------------------------------------------- */

/* Why there is no answer that could be used. */
enum weft_http_failure {
    WEFT_HTTP_ANSWERED,   /* there is one: its status decides */
    WEFT_HTTP_RESOLVE,    /* the name of the host has no address */
    WEFT_HTTP_CONNECT,    /* no connection */
    WEFT_HTTP_TLS,        /* the handshake failed */
    WEFT_HTTP_UNTRUSTED,  /* the certificate is not valid for this host, here or now */
    WEFT_HTTP_TIMEOUT,    /* any of the timeouts */
    WEFT_HTTP_BROKEN,     /* the connection ended before the answer did */
    WEFT_HTTP_PROTOCOL,   /* the answer is not HTTP, or not what its headers say */
    WEFT_HTTP_REFUSED,    /* weft does not call this address */
    WEFT_HTTP_REDIRECTED, /* to another origin, or too often */
    WEFT_HTTP_OVERSIZED,  /* the answer exceeds its limit */
    WEFT_HTTP_FAILURES,
};

struct weft_http_ended {
    enum weft_http_failure failure;
    int status; /* of the answer; or what an error within a stream stands for */
    const char *method;
    bool sent;       /* a byte of the request may have reached the server */
    bool idempotent; /* the endpoint takes any request twice */
};

enum weft_http_verdict { WEFT_HTTP_SUCCEED, WEFT_HTTP_RETRY, WEFT_HTTP_FAIL };

struct weft_http_decision {
    enum weft_http_verdict verdict;
    enum weft_breaker_end health; /* what the breaker of the endpoint learns */
    const char *why;              /* static; why it is not repeated; NULL otherwise */
    char error_class[24];         /* "http_429", "http_timeout"; empty: success */
};

struct weft_http_decision weft_http_decide(const struct weft_http_retry *retry,
                                           const struct weft_http_ended *ended);

/* ---- Headers --------------------------------------------------------------------------------- */

/*
 * The wait that a Retry-After header asks for: seconds, or a date in one of the three forms of RFC
 * 9110 (5.6.7), counted from now; 0 for a date that has passed, WEFT_HTTP_RETRY_AFTER_MAX_S at
 * most. -1: anything else, which is to be ignored.
 */
weft_usec weft_http_retry_after(const char *text, size_t size, weft_usec now_us);

/* The same for each attempt of an execution, so that the server knows a repeated request. */
enum { WEFT_IDEMPOTENCY_KEY_TEXT = 5 + WEFT_ID_TEXT }; /* "weft-" before the id */
void weft_idempotency_key(const struct weft_id *id, char ret_text[WEFT_IDEMPOTENCY_KEY_TEXT]);

#endif
