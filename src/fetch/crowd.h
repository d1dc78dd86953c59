/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_FETCH_CROWD_H
#define WEFT_FETCH_CROWD_H

/*
 * Many HTTP calls to other servers at once (libcurl multi), on threads of its own. Knows nothing of
 * executions. Never retries. Proxies of the environment, netrc, cookies and user info are not used;
 * http and https only; TLS is verified.
 *
 * Each call ends exactly once, by its `ended`, on a thread of the crowd: after an answer, a
 * failure, an abort, or the stop of the crowd.
 */

#include "base/buf.h"
#include "base/err.h"
#include "core/address.h"
#include "core/http_policy.h"

struct weft_crowd;    /* opaque */
struct weft_transfer; /* opaque: a call under way */

struct weft_crowd_config {
    uint32_t threads;   /* 0: 1 */
    uint32_t in_flight; /* calls at once, at most; more wait in order. 0: 1,024 */
};

struct weft_crowd_header {
    const char *name, *value;
};

/*
 * When what happened, in microseconds from weft_crowd_call(); 0: it did not, as on a connection
 * that was kept.
 */
struct weft_crowd_phases {
    int64_t resolved_us, connected_us, secured_us, first_byte_us, total_us;
};

struct weft_crowd_end {
    enum weft_http_failure failure; /* WEFT_HTTP_ANSWERED: there is a whole answer */
    int status;                     /* 0: no head came */
    bool sent;    /* a byte of the request may have reached the server (TLS: after the handshake) */
    bool aborted; /* by weft_crowd_abort() or the stop; failure means nothing then */
    const char *text; /* of a failure: one sentence for people, without secrets; else NULL */
    struct weft_crowd_phases phases;
};

/* All on a thread of the crowd, and quick: other calls wait for them. */
struct weft_crowd_ops {
    /* Once, before the first byte of the body. The headers as received, borrowed; at most 100
     * lines and 64 KiB, beyond which the call fails with WEFT_HTTP_PROTOCOL. */
    void (*head)(void *context, int status, const struct weft_crowd_header *header, size_t count);
    /* Bytes of the body, decoded (gzip, deflate). False: stop here. With *ret_enough the call ends
     * as answered, without it as aborted. */
    bool (*data)(void *context, const void *bytes, size_t size, bool *ret_enough);
    void (*ended)(void *context, const struct weft_crowd_end *end);
};

struct weft_crowd_call {
    const char *method;
    const char *url;                        /* as core/http_url.h writes it */
    const struct weft_crowd_header *header; /* checked by the caller; no framing headers */
    size_t header_count;
    const void *body; /* borrowed until `ended`, as all texts here; NULL: none */
    size_t body_size;
    bool private_addresses; /* also addresses that weft_address_refused() names */
    bool redirects;         /* follow within the origin, 5 at most; else a 3xx is the answer */
    bool once;              /* never sent a second time by libcurl on its own (see fetch.c) */
    /*
     * Each more than 0. Connecting is looking up, connecting and TLS; the first byte is waited for
     * from then on, while the request is sent. The total counts from weft_crowd_call().
     */
    int64_t connect_ms, first_byte_ms, idle_ms, total_ms;
    size_t response_max; /* decoded bytes; beyond: WEFT_HTTP_OVERSIZED */
    const struct weft_crowd_ops *ops;
    void *context;
};

WEFT_MUST_CHECK enum weft_rc weft_crowd_start(const struct weft_crowd_config *config,
                                              struct weft_crowd **ret_crowd, struct weft_err *err);
/* Aborts all calls; returns when each has ended and the threads are gone. NULL is fine. */
void weft_crowd_stop(struct weft_crowd *crowd);
/* From any thread but in callbacks. The transfer is valid until its `ended` returns. */
struct weft_transfer *weft_crowd_call(struct weft_crowd *crowd, const struct weft_crowd_call *call);
/*
 * From any thread, also beside `ended`: the caller makes sure that `ended` has not returned. Soon:
 * within milliseconds; a call that is over already ends as it would.
 */
void weft_crowd_abort(struct weft_crowd *crowd, struct weft_transfer *transfer);
/*
 * Authorities (PEM) to trust besides those in the system's folder of certificates; NULL: those that
 * the system trusts alone. Holds for calls that begin from now on, which use no connection that was
 * made under other ones. From any thread.
 */
void weft_crowd_trust(struct weft_crowd *crowd, const char *pem);
/* Calls that have begun and not ended. */
size_t weft_crowd_in_flight(const struct weft_crowd *crowd);

#endif
