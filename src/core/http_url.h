/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_HTTP_URL_H
#define WEFT_CORE_HTTP_URL_H

/*
 * URLs of outgoing HTTP calls: the base URL of an endpoint, a path behind it, a whole URL. Pure.
 *
 * Readers of URLs differ, and attacks live on the differences. So everything is refused that two
 * readers may take in different ways: user info, a fragment, backslashes, white space, bytes
 * beyond ASCII, percent signs in a host, dot segments in any spelling. What is left is written
 * anew, in one form, and that text is what is called.
 */

#include "base/err.h"
#include "core/address.h"

struct weft_http_url {
    const char *text; /* in arena: "http://host:port/path?query", without the port that is usual */
    const char *path; /* the part of text from the first slash behind the host on */
    const char *host; /* in arena: lower case, without brackets */
    struct weft_address address; /* size 0: the host is a name */
    uint16_t port;
    bool tls;
};

/*
 * An absolute http or https URL. WEFT_INVALID_VALUE, and WEFT_TOO_LARGE for more than
 * WEFT_HTTP_URL_MAX bytes, name the field (static).
 */
WEFT_MUST_CHECK enum weft_rc weft_http_url_read(const char *text, const char *field,
                                                struct weft_arena *arena,
                                                struct weft_http_url *ret_url,
                                                struct weft_err *err);
/* The same for the base URL of an endpoint, which has no query. */
WEFT_MUST_CHECK enum weft_rc weft_http_base_read(const char *text, const char *field,
                                                 struct weft_arena *arena,
                                                 struct weft_http_url *ret_url,
                                                 struct weft_err *err);

/*
 * A path, with a query if any, to be put behind a base URL: one slash first, no dot segments. The
 * errors name the field `path`.
 */
WEFT_MUST_CHECK enum weft_rc weft_http_path_check(const char *path, struct weft_err *err);
/*
 * The base URL with a checked path behind it; NULL: the base URL itself. The URL has the origin of
 * the base, and its path begins with the path of the base. WEFT_TOO_LARGE.
 */
WEFT_MUST_CHECK enum weft_rc weft_http_url_join(const struct weft_http_url *base, const char *path,
                                                struct weft_arena *arena,
                                                struct weft_http_url *ret_url,
                                                struct weft_err *err);

/* The same scheme, host and port: what a redirect may not leave. */
bool weft_http_same_origin(const struct weft_http_url *a, const struct weft_http_url *b);

#endif
