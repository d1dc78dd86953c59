/* SPDX-License-Identifier: Apache-2.0 */

/* Matching: one pass decodes the path, then each route is compared segment by segment. */

#include "net/route.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#include <assert.h>
#include <string.h>

bool weft_percent_decode(const char *text, size_t size, bool plus, char *ret_text, size_t *ret_size)
{
    size_t out = 0;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < size ? weft_hex_digit(text[i + 1]) : -1;
            int low = i + 2 < size ? weft_hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        ret_text[out++] = c;
    }
    ret_text[out] = '\0';
    *ret_size = out;
    return weft_utf8_valid(ret_text, out);
}

/* Past "http://host", where a target has that; a proxy may send it so. */
static const char *path_of(const char *target)
{
    const char *scheme_end = NULL;
    if (strncmp(target, "http://", 7) == 0)
        scheme_end = target + 7;
    else if (strncmp(target, "https://", 8) == 0)
        scheme_end = target + 8;
    return scheme_end ? scheme_end + strcspn(scheme_end, "/?#") : target;
}

/* Fills the segments. */
static enum weft_route_miss split(const char *target, struct weft_route_match *match)
{
    const char *at = path_of(target);
    size_t used = 0;
    if (*at != '/')
        return WEFT_ROUTE_BAD;
    while (*at == '/') {
        at++;
        size_t size = strcspn(at, "/?#"), decoded = 0;
        if (match->count == WEFT_ROUTE_SEGMENTS)
            return WEFT_ROUTE_NOT_FOUND; /* no route has that many */
        if (size >= sizeof(match->text) - used)
            return WEFT_ROUTE_BAD;
        if (!weft_percent_decode(at, size, false, match->text + used, &decoded))
            return WEFT_ROUTE_BAD;
        match->segment[match->count++] = (uint16_t)used;
        used += decoded + 1;
        at += size;
    }
    return WEFT_ROUTE_FOUND;
}

/* Takes the next segment of a route's path; its size is 0 at the end. */
static const char *next_segment(const char **at, size_t *ret_size)
{
    const char *segment = **at == '/' ? *at + 1 : *at;
    *ret_size = strcspn(segment, "/");
    *at = segment + *ret_size;
    return segment;
}

/* Every request is compared with most routes, so this goes by characters: most differ early. */
static bool fits(const struct weft_route *route, const struct weft_route_match *match)
{
    const char *at = route->op->path;
    for (uint16_t i = 0; i < match->count; i++) {
        const char *given = match->text + match->segment[i];
        if (*at != '/' || *given == '\0')
            return false;
        at++;
        if (*at == '{') {
            at += strcspn(at, "/");
            continue;
        }
        while (*given != '\0' && *given != '/' && *at == *given) { /* '/': was %2F */
            at++;
            given++;
        }
        if (*given != '\0' || (*at != '/' && *at != '\0'))
            return false;
    }
    return *at == '\0';
}

/* Adds to the list of methods; GET allows HEAD as well. */
static void allow(struct weft_route_match *match, const char *method)
{
    if (strcmp(method, "GET") == 0)
        method = "GET, HEAD";
    size_t used = strlen(match->allow), size = strlen(method);
    assert(used + size + 3 <= sizeof(match->allow));
    if (used > 0) {
        memcpy(match->allow + used, ", ", 2);
        used += 2;
    }
    memcpy(match->allow + used, method, size + 1);
}

const struct weft_route *weft_route_find(const struct weft_route_table *table, const char *method,
                                         const char *target, struct weft_route_match *ret_match)
{
    ret_match->allow[0] = '\0';
    ret_match->count = 0;
    ret_match->miss = split(target, ret_match);
    if (ret_match->miss)
        return NULL;
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    const struct weft_route *found = NULL;
    for (size_t i = 0; i < table->count; i++) {
        const struct weft_route *route = &table->route[i];
        if (!fits(route, ret_match))
            continue;
        /* Routes of plain words stand in the table before routes with a {name}. */
        if (strcmp(route->op->method, method) == 0) {
            found = route;
            break;
        }
        allow(ret_match, route->op->method);
    }
    if (!found)
        ret_match->miss = ret_match->allow[0] ? WEFT_ROUTE_METHOD : WEFT_ROUTE_NOT_FOUND;
    return found;
}

const char *weft_route_value(const struct weft_route_match *match, const struct weft_route *route,
                             const char *name)
{
    const char *at = route->op->path;
    size_t size = 0, wanted = strlen(name);
    for (uint16_t i = 0; i < match->count; i++) {
        const char *segment = next_segment(&at, &size);
        if (size == wanted + 2 && *segment == '{' && strncmp(segment + 1, name, wanted) == 0)
            return match->text + match->segment[i];
    }
    return NULL;
}

/* ---- The query ------------------------------------------------------------------------------- */

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
        return weft_invalid(err, pair.name, "a query parameter was given twice");
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
    for (size_t i = 0; i < query->count && !route->openai; i++) {
        bool known = false;
        for (size_t k = 0; k < WEFT_PARAMS_MAX && route->query[k].name && !known; k++)
            known = strcmp(route->query[k].name, query->pair[i].name) == 0;
        if (!known)
            return weft_fail_field(err, WEFT_UNKNOWN_FIELD, query->pair[i].name,
                                   "this call has no such query parameter");
    }
    return WEFT_OK;
}
