/* SPDX-License-Identifier: Apache-2.0 */

/* Routes: which one a target finds, the values of its names, and malformed paths. */

#include "net/route.h"
#include "tap.h"

static const struct weft_route ROUTES[] = {
    {.op = &(const struct weft_op_info){.method = "GET", .path = "/healthz"}},
    {.op = &(const struct weft_op_info){.method = "POST", .path = "/v1/executions"}},
    {.op = &(const struct weft_op_info){.method = "GET", .path = "/v1/executions"}},
    {.op = &(const struct weft_op_info){.method = "POST", .path = "/v1/executions/cancel"}},
    {.op = &(const struct weft_op_info){.method = "GET", .path = "/v1/executions/{id}"}},
    {.op = &(const struct weft_op_info){.method = "POST", .path = "/v1/executions/{id}/cancel"}},
    {.op = &(const struct weft_op_info){.method = "GET", .path = "/v1/lanes/{lane}"}},
    {.op = &(const struct weft_op_info){.method = "PUT", .path = "/v1/lanes/{lane}"}},
};
static const struct weft_route_table TABLE = {.route = ROUTES, .count = WEFT_LEN(ROUTES)};

struct row {
    const char *method, *target;
    enum weft_route_miss miss;
    int route;         /* index, when found */
    const char *value; /* of {id} or {lane}, or NULL; of METHOD: the Allow list */
};

/* clang-format off */
static const struct row ROWS[] = {
    {"GET",    "/healthz",                       WEFT_ROUTE_FOUND, 0, NULL},
    {"HEAD",   "/healthz",                       WEFT_ROUTE_FOUND, 0, NULL},
    {"GET",    "/healthz?x=/y",                  WEFT_ROUTE_FOUND, 0, NULL},
    {"GET",    "/healthz#x",                     WEFT_ROUTE_FOUND, 0, NULL},
    {"GET",    "/%68ealthz",                     WEFT_ROUTE_FOUND, 0, NULL},
    {"GET",    "http://host:7717/healthz",       WEFT_ROUTE_FOUND, 0, NULL},
    {"GET",    "https://host/v1/lanes/http",     WEFT_ROUTE_FOUND, 6, "http"},
    {"POST",   "/v1/executions",                 WEFT_ROUTE_FOUND, 1, NULL},
    {"GET",    "/v1/executions",                 WEFT_ROUTE_FOUND, 2, NULL},
    {"POST",   "/v1/executions/cancel",          WEFT_ROUTE_FOUND, 3, NULL},
    {"GET",    "/v1/executions/cancel",          WEFT_ROUTE_FOUND, 4, "cancel"},
    {"GET",    "/v1/executions/a-b",             WEFT_ROUTE_FOUND, 4, "a-b"},
    {"POST",   "/v1/executions/a-b/cancel",      WEFT_ROUTE_FOUND, 5, "a-b"},
    {"PUT",    "/v1/lanes/a%2Fb",                WEFT_ROUTE_FOUND, 7, "a/b"},
    {"PUT",    "/v1/lanes/a%2fb+c",              WEFT_ROUTE_FOUND, 7, "a/b+c"},
    {"GET",    "/v1/lanes/..",                   WEFT_ROUTE_FOUND, 6, ".."},
    {"GET",    "/v1/lanes/%25",                  WEFT_ROUTE_FOUND, 6, "%"},
    {"GET",    "/v1/lanes/%C3%A9",               WEFT_ROUTE_FOUND, 6, "\xc3\xa9"},
    {"GET",    "/",                              WEFT_ROUTE_NOT_FOUND, 0, NULL},
    {"GET",    "/healthz/",                      WEFT_ROUTE_NOT_FOUND, 0, NULL},
    {"GET",    "/health",                        WEFT_ROUTE_NOT_FOUND, 0, NULL},
    {"GET",    "/healthzz",                      WEFT_ROUTE_NOT_FOUND, 0, NULL},
    {"GET",    "//healthz",                      WEFT_ROUTE_NOT_FOUND, 0, NULL},
    {"GET",    "/v1",                            WEFT_ROUTE_NOT_FOUND, 0, NULL},
    {"GET",    "/v1/lanes/",                     WEFT_ROUTE_NOT_FOUND, 0, NULL},
    {"GET",    "/v1//x",                         WEFT_ROUTE_NOT_FOUND, 0, NULL},
    {"GET",    "/v1/lanes/a/b",                  WEFT_ROUTE_NOT_FOUND, 0, NULL},
    {"GET",    "/v1%2Fexecutions",               WEFT_ROUTE_NOT_FOUND, 0, NULL},
    {"POST",   "/v1/executions/a/cancel/b",      WEFT_ROUTE_NOT_FOUND, 0, NULL},
    {"GET",    "http://host",                    WEFT_ROUTE_BAD, 0, NULL},
    {"GET",    "",                               WEFT_ROUTE_BAD, 0, NULL},
    {"GET",    "*",                              WEFT_ROUTE_BAD, 0, NULL},
    {"GET",    "healthz",                        WEFT_ROUTE_BAD, 0, NULL},
    {"GET",    "/v1/lanes/%",                    WEFT_ROUTE_BAD, 0, NULL},
    {"GET",    "/v1/lanes/%4",                   WEFT_ROUTE_BAD, 0, NULL},
    {"GET",    "/v1/lanes/%4/1",                 WEFT_ROUTE_BAD, 0, NULL},
    {"GET",    "/v1/lanes/%zz",                  WEFT_ROUTE_BAD, 0, NULL},
    {"GET",    "/v1/lanes/a%00b",                WEFT_ROUTE_BAD, 0, NULL},
    {"GET",    "/v1/lanes/%ff",                  WEFT_ROUTE_BAD, 0, NULL},
    {"GET",    "/1/2/3/4/5/6/7/8/9",             WEFT_ROUTE_NOT_FOUND, 0, NULL},
    {"POST",   "/healthz",                       WEFT_ROUTE_METHOD, 0, "GET, HEAD"},
    {"get",    "/healthz",                       WEFT_ROUTE_METHOD, 0, "GET, HEAD"},
    {"DELETE", "/v1/lanes/x",                    WEFT_ROUTE_METHOD, 0, "GET, HEAD, PUT"},
    {"PUT",    "/v1/executions",                 WEFT_ROUTE_METHOD, 0, "POST, GET, HEAD"},
    {"HEAD",   "/v1/executions/a/cancel",        WEFT_ROUTE_METHOD, 0, "POST"},
};
/* clang-format on */

static const char *value_of(const struct weft_route_match *match, const struct weft_route *route)
{
    const char *id = weft_route_value(match, route, "id");
    return id ? id : weft_route_value(match, route, "lane");
}

static void test_rows(void)
{
    for (size_t i = 0; i < WEFT_LEN(ROWS); i++) {
        const struct row *row = &ROWS[i];
        struct weft_route_match match;
        const struct weft_route *route = weft_route_find(&TABLE, row->method, row->target, &match);
        bool right = match.miss == row->miss && (route != NULL) == (match.miss == WEFT_ROUTE_FOUND);
        if (route)
            right = right && route == &ROUTES[row->route];
        ok(right, "%s %s", row->method, row->target);
        if (route)
            is_str(value_of(&match, route), row->value, "%s %s: value", row->method, row->target);
        if (row->miss == WEFT_ROUTE_METHOD)
            is_str(match.allow, row->value, "%s %s: allowed", row->method, row->target);
    }
}

/* At the edge of the buffer: the last path that fits, the first that does not, and a copy. */
static void test_long(void)
{
    char target[2 * WEFT_ROUTE_TEXT] = "/v1/lanes/";
    size_t start = strlen(target), wrong = 0;
    struct weft_route_match match, copy;
    for (size_t size = 1; size < WEFT_ROUTE_TEXT + 8; size++) {
        memset(target + start, 'a', size);
        target[start + size] = '\0';
        const struct weft_route *route = weft_route_find(&TABLE, "GET", target, &match);
        copy = match;
        memset(&match, 'x', sizeof(match));
        bool fits = start + size <= WEFT_ROUTE_TEXT;
        wrong += (route != NULL) != fits;
        wrong += fits && strcmp(weft_route_value(&copy, route, "lane"), target + start) != 0;
        wrong += !fits && copy.miss != WEFT_ROUTE_BAD;
    }
    is_int(wrong, 0, "long paths are found while they fit and refused after");
}

int main(void)
{
    test_rows();
    test_long();
    return tap_done();
}
