/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_HTTP_CALL_H
#define WEFT_CORE_HTTP_CALL_H

/*
 * The payload of an execution of kind `http`: which call to make. Pure.
 *
 * A payload comes from a submitter, who is trusted with less than the administrator who made the
 * endpoint: it may not leave the base URL of the endpoint (http_url.h), set a header that frames
 * the message or carries a secret, or put a line break anywhere. All that is checked here, so a
 * call that was read can be sent as it is, but for the address it leads to (address.h) and `from`.
 */

#include "base/json.h"
#include "core/http_url.h"

struct weft_http_header {
    const char *name, *value; /* value may be "" */
};

/* A part of the body that comes from the result of an upstream (json_fill.h). */
struct weft_http_from {
    const char *target;  /* pointer into the body; it leads to a value there */
    const char *node;    /* name of the upstream */
    const char *pointer; /* into its result */
};

struct weft_http_call {
    const char *endpoint;     /* its name; NULL: the call has a URL of its own */
    struct weft_http_url url; /* without an endpoint */
    const char *path;         /* with an endpoint, checked; NULL: its base URL */
    const char *method;       /* POST with a body, GET without one, unless given */
    const struct weft_http_header *header;
    size_t header_count;
    const char *body; /* NULL: none. JSON is borrowed from the payload. */
    size_t body_size;
    struct weft_json json; /* the body, where it is JSON; text NULL: it is not */
    const struct weft_http_from *from;
    size_t from_count;
    bool stream;
};

/*
 * Strict: unknown and repeated fields are refused. WEFT_UNKNOWN_FIELD, WEFT_INVALID_VALUE and
 * WEFT_TOO_LARGE name the field. Texts are in the arena.
 */
WEFT_MUST_CHECK enum weft_rc weft_http_call_read(const struct weft_json *payload,
                                                 struct weft_arena *arena,
                                                 struct weft_http_call *ret_call,
                                                 struct weft_err *err);

/*
 * Whether a header may be sent as it is: a name of the characters of RFC 9110, a value of printable
 * characters without a space at its ends. Also for the headers of endpoints.
 */
WEFT_MUST_CHECK enum weft_rc weft_http_header_check(const struct weft_http_header *header,
                                                    struct weft_err *err);
/*
 * Whether a header is left to payloads: not one that frames the message, belongs to the connection
 * or carries credentials.
 */
WEFT_MUST_CHECK enum weft_rc weft_http_header_allowed(const char *name, struct weft_err *err);

bool weft_http_header_is(const char *name, const char *other); /* in either case */
/* The value that the call gives to a header, or NULL. */
const char *weft_http_call_header(const struct weft_http_call *call, const char *name);

/*
 * Refuses a call that gives a header which the endpoint sets itself, such as the one with its
 * secret.
 */
WEFT_MUST_CHECK enum weft_rc weft_http_call_yields(const struct weft_http_call *call,
                                                   const struct weft_http_header *header,
                                                   size_t count, struct weft_err *err);

#endif
