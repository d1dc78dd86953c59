/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_FETCH_FETCH_H
#define WEFT_FETCH_FETCH_H

/*
 * HTTP calls to other servers, over libcurl: blocking, from any number of threads, on shared
 * connections that are kept alive. The caller decides whether to try again.
 */

#include "base/buf.h"
#include "base/err.h"

struct weft_fetch; /* opaque: one base URL and its idle connections */

struct weft_fetch_config {
    const char *base_url;      /* http://host:port, https://...; a path is put before every path */
    const char *token;         /* sent as Authorization: Bearer; or NULL */
    const char *const *header; /* "Name: value", sent with every call; ends with NULL, or NULL */
    const char *ca_file;       /* PEM of the authorities to trust; NULL: the system's */
    int64_t connect_ms;        /* 0: 5,000 */
    size_t body_max;           /* answers larger than this are refused; 0: 64 MiB */
};

/* The body of a request, made while it is sent. Such a request is never sent twice. */
struct weft_fetch_source {
    /* Puts up to `most` bytes into ret_data; *ret_size 0: the end. False ends the call. */
    bool (*next)(void *context, void *ret_data, size_t most, size_t *ret_size);
    void *context;
    int64_t size; /* -1: not known, it is sent in chunks */
    const char *content_type;
};
/* Takes the body of an answer of success as it comes. */
struct weft_fetch_sink {
    bool (*put)(void *context, const void *data, size_t size); /* false ends the call */
    void *context;
};

struct weft_fetch_call {
    const char *method; /* "GET", "POST", "PUT" */
    const char *path;   /* "/v1/executions?limit=5" */
    const char *header; /* one line more, "Name: value", without line breaks; or NULL */
    const void *body;   /* or NULL */
    size_t body_size;
    const struct weft_fetch_source *source; /* instead of a body; or NULL */
    const struct weft_fetch_sink *sink;     /* or NULL: the answer has the whole body */
    bool once; /* never sent twice, even if no answer comes; see fetch.c */
    /* For the whole call; with a source or a sink for each stretch without a byte. 0: 30,000 */
    int64_t timeout_ms;
    const _Atomic bool *stop; /* polled ten times a second; true ends the call; or NULL */
};

struct weft_fetch_answer {
    int status;
    struct weft_buf body; /* owned: ends with weft_fetch_answer_done() */
    char content_type[128];
    int64_t retry_after_ms; /* -1: no such header */
    char request_id[64];
};

/*
 * A call without an answer. `sent` false: the server cannot have received the whole request, so any
 * request may be repeated.
 */
struct weft_fetch_failure {
    bool sent;
    bool stopped;   /* by call->stop */
    bool permanent; /* repeating will not help: a certificate that is not trusted */
};

WEFT_MUST_CHECK enum weft_rc weft_fetch_open(const struct weft_fetch_config *config,
                                             struct weft_fetch **ret_fetch, struct weft_err *err);
void weft_fetch_close(struct weft_fetch *fetch); /* NULL is fine */
/*
 * WEFT_UNAVAILABLE: no answer. WEFT_TOO_LARGE: the answer exceeds body_max. Both set *ret_failure.
 * Any HTTP status is an answer and WEFT_OK.
 */
WEFT_MUST_CHECK enum weft_rc weft_fetch_do(struct weft_fetch *fetch,
                                           const struct weft_fetch_call *call,
                                           struct weft_fetch_answer *ret_answer,
                                           struct weft_fetch_failure *ret_failure,
                                           struct weft_err *err);
void weft_fetch_answer_done(struct weft_fetch_answer *answer);

#endif
