/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_HTTP_ENDPOINTS_H
#define WEFT_ENGINE_HTTP_ENDPOINTS_H

/*
 * Endpoints of outgoing HTTP calls, as this process knows them: kept in memory, so that a call
 * needs no statement. They are read when the poll sees that they have changed, and after a change
 * that this process made: what another process changes is known here after a second. An endpoint
 * belongs to a namespace. It names a secret and never holds one.
 *
 * A submitter may name an endpoint that was made on another replica a moment ago. So who finds none
 * reads them once more with weft_endpoints_read() before it takes the endpoint for absent.
 */

#include "core/endpoint.h"

#include <pthread.h>

struct weft_engine;

/* An endpoint as this process knows it: immutable, counted. */
struct weft_known_endpoint {
    const char *ns;
    const struct weft_endpoint *setting; /* all defaults filled in; health is not */
    struct weft_http_url url;
    struct weft_http_retry retry;
    struct weft_endpoint_auth auth; /* name NULL: it has no secret */
    uint64_t version;               /* changes with every PUT, also across DELETE and PUT */
};

/* NULL: none of this name is known. Released by weft_endpoint_release(). No statement is made. */
const struct weft_known_endpoint *weft_endpoint_get(struct weft_engine *engine, const char *ns,
                                                    const char *name);
void weft_endpoint_release(const struct weft_known_endpoint *endpoint); /* NULL is fine */

/* Reads them, in two statements. */
WEFT_MUST_CHECK enum weft_rc weft_endpoints_read(struct weft_engine *engine, struct weft_err *err);
/* The poll tells their number; reads them if that is new. */
WEFT_MUST_CHECK enum weft_rc weft_endpoints_seen(struct weft_engine *engine, int64_t version,
                                                 struct weft_err *err);

/* The part of the engine that holds them. */
struct weft_known_endpoints {
    pthread_mutex_t lock;                    /* over all below */
    const struct weft_known_endpoint **item; /* owned; sorted by namespace, then by name */
    size_t count;
    int64_t version; /* of the last reading; 0: there was none */
};
void weft_endpoints_init(struct weft_known_endpoints *known);
void weft_endpoints_done(struct weft_known_endpoints *known);

#endif
