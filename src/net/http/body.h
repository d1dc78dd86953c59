/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_BODY_H
#define WEFT_NET_HTTP_BODY_H

/* The bodies of requests: their types and encodings, and the memory that they take. */

#include "base/base.h"
#include "weft/weft.h"

#include <stdatomic.h>

struct weft_link;
struct weft_request;

enum { WEFT_BODY_SHARES = 256 };

/* Bytes of request bodies in memory. */
struct weft_bodies {
    uint64_t most; /* bytes; set before the first request */
    _Atomic uint64_t all;
    _Atomic uint64_t share[WEFT_BODY_SHARES]; /* by namespace; some may share a number */
};
/*
 * Counts bytes of a body that are kept in memory; the request holds `held` already. From any
 * thread. False, and nothing is counted, when there is no room: all bodies together have `most`,
 * and one namespace has three quarters of that, or one body if that is larger.
 */
WEFT_MUST_CHECK bool weft_body_take_room(const struct weft_request *request, size_t held,
                                         size_t size);
void weft_body_give_room(const struct weft_request *request, size_t size);

/* Checks type and encoding of a body, before it is read. WEFT_UNSUPPORTED_MEDIA_TYPE. */
WEFT_MUST_CHECK enum weft_rc weft_body_check(struct weft_link *link, struct weft_err *err);
/* Unpacks the body of a request, if it is encoded. On an engine thread. */
WEFT_MUST_CHECK enum weft_rc weft_body_decode(struct weft_request *request, struct weft_err *err);

#endif
