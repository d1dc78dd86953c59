/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_ORIGIN_H
#define WEFT_NET_HTTP_ORIGIN_H

/*
 * Which web pages may call the server. A browser names the site of a page in the Origin header, and
 * lets the page read an answer only when the answer names that site (CORS). Pure.
 */

#include "base/base.h"
#include "weft/weft.h"

struct MHD_Response;
struct weft_arena;
struct weft_link;

/* The origins that --cors-origin lists. */
struct weft_origins {
    const char *const *item; /* "https://app.example", lower case; in the arena */
    size_t count;
    bool any; /* "*" was among them */
};

/*
 * Reads a list with commas or spaces between its origins; NULL is an empty one. WEFT_INVALID_VALUE
 * for what no browser would send, such as a path behind the host.
 */
WEFT_MUST_CHECK enum weft_rc weft_origins_parse(const char *text, struct weft_arena *arena,
                                                struct weft_origins *ret_origins,
                                                struct weft_err *err);
/* True when pages of this origin are let in; compared exactly. */
bool weft_origins_allow(const struct weft_origins *origins, const char *origin);

/* Sets origin and cors of a request. */
void weft_origin_look(struct weft_link *link);
/* True when a browser asks what a page may send (the preflight of CORS). */
bool weft_origin_preflight(struct weft_link *link);
/* Adds the headers by which the browser lets the page read the answer. */
void weft_origin_headers(const struct weft_link *link, struct MHD_Response *response);

#endif
