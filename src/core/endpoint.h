/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_ENDPOINT_H
#define WEFT_CORE_ENDPOINT_H

/*
 * Endpoints of outgoing HTTP calls: which settings are allowed, and what stands for those that are
 * absent. Pure.
 *
 * An administrator of a namespace makes endpoints, and is trusted with less than the operator of
 * the server: no setting may put a line break into a request, frame a message, carry a secret in a
 * header of its own, or send a secret unencrypted over a public network. Whether this administrator
 * may make a private endpoint is the business of the server (net/api).
 */

#include "core/http_call.h"
#include "core/http_policy.h"
#include "weft/http.h"

enum {
    WEFT_SECRET_NAME_MAX = 64, /* bytes */
    WEFT_ENDPOINT_AUTH_MAX = 512,
    WEFT_ENDPOINT_IN_FLIGHT_MAX = 10000,
    WEFT_ENDPOINT_MS_MAX = 86400000,
    /*
     * In base64, with the other members of a result, that is still within WEFT_CALL_RESULT_MAX:
     * what an endpoint allows can be kept, whatever bytes it is.
     */
    WEFT_ENDPOINT_RESPONSE_MAX = 8 << 20,
    /* A stream may be so many times as long as what it folds into. */
    WEFT_ENDPOINT_STREAM_TIMES = 8,
};

/* The header that carries the secret: its value is before, the secret, after. */
struct weft_endpoint_auth {
    const char *name; /* NULL: the endpoint has no secret */
    const char *before, *after;
};

/* The settings of an endpoint in the forms that a call needs. Texts are in the arena. */
struct weft_endpoint_parts {
    struct weft_http_url url;
    struct weft_http_retry retry;
    struct weft_endpoint_auth auth;
};

/*
 * Checks the settings and fills in what is absent. WEFT_INVALID_VALUE and WEFT_TOO_LARGE name the
 * field (static). Texts of the answers are in the arena, or those of the settings; ret_parts may be
 * NULL.
 */
WEFT_MUST_CHECK enum weft_rc weft_endpoint_resolve(const struct weft_endpoint *given,
                                                   struct weft_arena *arena,
                                                   struct weft_endpoint *ret_endpoint,
                                                   struct weft_endpoint_parts *ret_parts,
                                                   struct weft_err *err);

/* [A-Za-z0-9_.-]{1,64}, no dot first: it may be the name of a file. */
bool weft_secret_name_valid(const char *name);

#endif
