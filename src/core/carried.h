/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_CARRIED_H
#define WEFT_CORE_CARRIED_H

/*
 * Kinds of executions that weft carries out itself: servers do (net/executor), workers need not.
 * A worker gets such an execution only if its claim names the kind. Pure.
 *
 * An execution of such a kind has a target: the endpoint that it calls. The target is known from
 * the submission on and is a part of the queue (core/capset.h), so that a server can choose which
 * targets it claims for: none whose breaker is open, no more than an endpoint takes at once.
 */

#include "base/err.h"

struct weft_http_from;

/* The target of calls with a URL of their own, which have no endpoint. It is no name. */
#define WEFT_OWN_URL "*"

bool weft_kind_is_carried(const char *kind);

/* What the payload of such an execution says. */
struct weft_carried {
    const char *target;                /* in the arena */
    const struct weft_http_from *from; /* results of upstreams that it takes; in the arena */
    size_t from_count;
};

/*
 * Reads the payload of an execution of such a kind as strictly as the server that is going to carry
 * it out. The errors name the field `payload`, or a member of it such as `payload.path`.
 */
WEFT_MUST_CHECK enum weft_rc weft_carried_read(const char *content_type, const void *payload,
                                               size_t size, struct weft_arena *arena,
                                               struct weft_carried *ret_carried,
                                               struct weft_err *err);

#endif
