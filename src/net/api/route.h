/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_ROUTE_H
#define WEFT_NET_API_ROUTE_H

/*
 * From the raw target of a request ("/v1/lanes/a%2Fb?x=1") to its route. Pure: no HTTP library, no
 * memory of its own, the same answer for the same text.
 *
 * The path is split at its slashes first and each segment is percent-decoded after that, so an
 * encoded slash stays inside its segment: names may hold slashes. Empty segments match nothing:
 * "/v1//lanes" and "/v1/lanes/" are not found.
 */

#include "net/net.h"

enum weft_route_miss {
    WEFT_ROUTE_FOUND,
    WEFT_ROUTE_BAD,       /* not a path: bad encoding, NUL, no UTF-8, too long */
    WEFT_ROUTE_NOT_FOUND, /* 404 */
    WEFT_ROUTE_METHOD,    /* 405: there are others, see `allow` */
};

enum { WEFT_ROUTE_SEGMENTS = 8, WEFT_ROUTE_TEXT = 1024, WEFT_ROUTE_ALLOW = 64 };

/* May be copied: it holds no pointers. */
struct weft_route_match {
    enum weft_route_miss miss;
    char allow[WEFT_ROUTE_ALLOW];          /* "GET, PUT": for METHOD */
    uint16_t segment[WEFT_ROUTE_SEGMENTS]; /* where each begins in text */
    uint16_t count;
    char text[WEFT_ROUTE_TEXT]; /* the segments, decoded, each with a NUL behind it */
};

/* A set of routes, so that tests can have their own. */
struct weft_route_table {
    const struct weft_route *route;
    size_t count;
};

/*
 * The route of a method and a raw target, or NULL and ret_match->miss. HEAD finds the route of GET.
 * What follows '?' is not looked at; "http://host/path" counts as "/path".
 */
const struct weft_route *weft_route_find_in(const struct weft_route_table *table,
                                            const char *method, const char *target,
                                            struct weft_route_match *ret_match);
/* The same over weft_routes. */
const struct weft_route *weft_route_find(const char *method, const char *target,
                                         struct weft_route_match *ret_match);
/* The decoded value of a {name} of the route that was found; NULL when it has no such name. */
const char *weft_route_value(const struct weft_route_match *match, const struct weft_route *route,
                             const char *name);

/*
 * Percent-decodes size bytes of text into ret_text, which has room for size + 1, and ends it with a
 * NUL. plus: '+' is a space. False for "%" without two hex digits, for U+0000 and for what is not
 * UTF-8.
 */
WEFT_MUST_CHECK bool weft_percent_decode(const char *text, size_t size, bool plus, char *ret_text,
                                         size_t *ret_size);

#endif
