/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_QUERY_H
#define WEFT_NET_HTTP_QUERY_H

/*
 * The query string of a request, taken apart. Pure, like route.h. A parameter may come once: two
 * values for one name are a mistake that must not be answered by picking one.
 */

#include "base/base.h"
#include "weft/weft.h"

struct weft_arena;
struct weft_route;

enum { WEFT_QUERY_PAIRS = 16, WEFT_QUERY_BYTES = 8192 };

struct weft_query_pair {
    const char *name; /* both in the arena, decoded, UTF-8 without U+0000 */
    const char *value;
};

struct weft_query {
    struct weft_query_pair pair[WEFT_QUERY_PAIRS];
    size_t count;
};

/* What follows the '?' of a raw target, without a fragment; the empty text when there is none. */
const char *weft_query_of(const char *target);
/*
 * Takes "a=1&b=2" apart. Empty pairs are passed over, a name without '=' has the value "".
 * WEFT_INVALID_VALUE for bad encoding and repeated names, WEFT_TOO_LARGE above the limits.
 */
WEFT_MUST_CHECK enum weft_rc weft_query_parse(const char *text, struct weft_arena *arena,
                                              struct weft_query *ret_query, struct weft_err *err);
/* WEFT_UNKNOWN_FIELD, naming it, for a parameter that the route does not list. */
WEFT_MUST_CHECK enum weft_rc weft_query_check(const struct weft_query *query,
                                              const struct weft_route *route, struct weft_err *err);
/* The value, or NULL when it is absent. */
const char *weft_query_find(const struct weft_query *query, const char *name);
/* Whether a list with these parameters has to look for what fits. One by key is looked up. */
bool weft_query_filters(const struct weft_query *query);

#endif
