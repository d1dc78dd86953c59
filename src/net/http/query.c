/* SPDX-License-Identifier: Apache-2.0 */

/* Query strings: decoded once, into the arena of the request. */

#include "net/http/query.h"

#include "base/arena.h"
#include "base/err.h"
#include "net/route.h"

#include <string.h>

const char *weft_query_of(const char *target)
{
    const char *mark = target + strcspn(target, "?#");
    return *mark == '?' ? mark + 1 : "";
}

const char *weft_query_find(const struct weft_query *query, const char *name)
{
    for (size_t i = 0; i < query->count; i++)
        if (strcmp(query->pair[i].name, name) == 0)
            return query->pair[i].value;
    return NULL;
}

bool weft_query_filters(const struct weft_query *query)
{
    size_t others = weft_query_find(query, "limit") != NULL;
    others += weft_query_find(query, "after") != NULL;
    return query->count > others && !weft_query_find(query, "key");
}

static bool decode(const char *text, size_t size, struct weft_arena *arena, const char **ret_text)
{
    char *decoded = weft_new_array(arena, char, size + 1);
    size_t decoded_size = 0;
    *ret_text = decoded;
    return weft_percent_decode(text, size, true, decoded, &decoded_size);
}

static enum weft_rc parse_pair(const char *text, size_t size, struct weft_arena *arena,
                               struct weft_query *query, struct weft_err *err)
{
    const char *equals = memchr(text, '=', size);
    size_t name_size = equals ? (size_t)(equals - text) : size;
    struct weft_query_pair pair = {.name = "", .value = ""};
    if (query->count == WEFT_QUERY_PAIRS)
        return weft_fail(err, WEFT_TOO_LARGE, "more than %d query parameters", WEFT_QUERY_PAIRS);
    if (!decode(text, name_size, arena, &pair.name) ||
        (equals && !decode(equals + 1, size - name_size - 1, arena, &pair.value)))
        return weft_fail(err, WEFT_INVALID_VALUE, "the query string is not well encoded");
    if (weft_query_find(query, pair.name))
        return weft_fail_field(err, WEFT_INVALID_VALUE, pair.name,
                               "a query parameter was given twice");
    query->pair[query->count++] = pair;
    return WEFT_OK;
}

enum weft_rc weft_query_parse(const char *text, struct weft_arena *arena,
                              struct weft_query *ret_query, struct weft_err *err)
{
    struct weft_query query = {.count = 0};
    if (strcspn(text, "#") > WEFT_QUERY_BYTES)
        return weft_fail(err, WEFT_TOO_LARGE, "the query string is longer than %d bytes",
                         WEFT_QUERY_BYTES);
    while (*text && *text != '#') {
        size_t size = strcspn(text, "&#");
        enum weft_rc rc = size > 0 ? parse_pair(text, size, arena, &query, err) : WEFT_OK;
        if (rc)
            return rc;
        text += size;
        text += *text == '&';
    }
    *ret_query = query;
    return WEFT_OK;
}

enum weft_rc weft_query_check(const struct weft_query *query, const struct weft_route *route,
                              struct weft_err *err)
{
    for (size_t i = 0; i < query->count; i++) {
        bool known = false;
        for (size_t k = 0; k < WEFT_PARAMS_MAX && route->query[k].name && !known; k++)
            known = strcmp(route->query[k].name, query->pair[i].name) == 0;
        if (!known)
            return weft_fail_field(err, WEFT_UNKNOWN_FIELD, query->pair[i].name,
                                   "this call has no such query parameter");
    }
    return WEFT_OK;
}
