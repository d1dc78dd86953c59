/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_FETCH_FETCH_H
#define WEFT_FETCH_FETCH_H

/*
 * HTTP calls out, over libcurl: blocking, from any number of threads, on connections that are kept
 * alive and shared. Says what happened; whether to try again is the caller's business.
 */

#include "base/buf.h"
#include "base/err.h"

struct weft_fetch; /* opaque: where calls go, and their idle connections */

struct weft_fetch_config {
    const char *base_url;      /* http://host:port, https://...; a path is put before every path */
    const char *token;         /* sent as Authorization: Bearer; or NULL */
    const char *const *header; /* "Name: value", sent with every call; ends with NULL, or NULL */
    const char *ca_file;       /* PEM of the authorities to trust; NULL: the system's */
    int64_t connect_ms;        /* 0: 5,000 */
    size_t body_max;           /* answers larger than this are refused; 0: 64 MiB */
};

struct weft_fetch_call {
    const char *method; /* "GET", "POST", "PUT" */
    const char *path;   /* "/v1/executions?limit=5" */
    const char *header; /* one line more, "Name: value", without line breaks; or NULL */
    const void *body;   /* or NULL */
    size_t body_size;
    bool once;          /* must not be sent a second time when an answer stays away; see fetch.c */
    int64_t timeout_ms; /* for the whole call; 0: 30,000 */
    const _Atomic bool *stop; /* looked at several times a second; true ends the call; or NULL */
};

struct weft_fetch_answer {
    int status;
    struct weft_buf body; /* owned: ends with weft_fetch_answer_done() */
    char content_type[128];
    int64_t retry_after_ms; /* -1: not said */
    char request_id[64];
};

/*
 * What is known of a call that failed: sent false means that the server cannot have seen all of it,
 * so that anything may be tried again.
 */
struct weft_fetch_doubt {
    bool sent;
    bool stopped; /* by call->stop */
    bool lasting; /* trying again will not help: a certificate that is not trusted */
};

WEFT_MUST_CHECK enum weft_rc weft_fetch_open(const struct weft_fetch_config *config,
                                             struct weft_fetch **ret_fetch, struct weft_err *err);
void weft_fetch_close(struct weft_fetch *fetch); /* NULL is fine */
/*
 * WEFT_UNAVAILABLE when there is no answer, WEFT_TOO_LARGE when it is above body_max, both with
 * *ret_doubt set. Any status is an answer.
 */
WEFT_MUST_CHECK enum weft_rc weft_fetch_do(struct weft_fetch *fetch,
                                           const struct weft_fetch_call *call,
                                           struct weft_fetch_answer *ret_answer,
                                           struct weft_fetch_doubt *ret_doubt,
                                           struct weft_err *err);
void weft_fetch_answer_done(struct weft_fetch_answer *answer);

#endif
