/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_BODY_H
#define WEFT_NET_HTTP_BODY_H

/* The bodies of requests: their types and encodings, and the memory that they take. */

#include "weft/weft.h"

#include <stdatomic.h>

struct weft_request;

enum {
    WEFT_BODY_SHARES = 256,
    WEFT_DISCARD_MAX = 1 << 20, /* a refused request may send so much before it is cut off */
    WEFT_FORM_MAX = 64 << 10,   /* what a form adds to the size of its file */
};

/* Bytes of request bodies in memory. */
struct weft_bodies {
    uint64_t most; /* bytes; set before the first request */
    _Atomic uint64_t all;
    _Atomic uint64_t share[WEFT_BODY_SHARES]; /* by namespace; some may share a number */
};

/*
 * Has the route read the body of a request, or take a piece of it; an encoded one is unpacked
 * first. On an engine thread.
 */
WEFT_MUST_CHECK enum weft_rc weft_body_read(struct weft_request *request, struct weft_err *err);

#endif
