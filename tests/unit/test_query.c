/* SPDX-License-Identifier: Apache-2.0 */

/* Query strings: their pairs, the refusals, and the limits. */

#include "base/arena.h"
#include "net/route.h"
#include "tap.h"

struct row {
    const char *text;
    enum weft_rc rc;
    const char *pairs; /* "[a]=[1] [b]=[2] ", or the field to blame */
};

/* clang-format off */
static const struct row ROWS[] = {
    {"",                      WEFT_OK, ""},
    {"&&",                    WEFT_OK, ""},
    {"a=1",                   WEFT_OK, "[a]=[1] "},
    {"a=1&b=2",               WEFT_OK, "[a]=[1] [b]=[2] "},
    {"&a=1&&b=2&",            WEFT_OK, "[a]=[1] [b]=[2] "},
    {"a",                     WEFT_OK, "[a]=[] "},
    {"a=",                    WEFT_OK, "[a]=[] "},
    {"=1",                    WEFT_OK, "[]=[1] "},
    {"a=b=c",                 WEFT_OK, "[a]=[b=c] "},
    {"a=1+2%2B3",             WEFT_OK, "[a]=[1 2+3] "},
    {"t%61g=k%3Av%26w",       WEFT_OK, "[tag]=[k:v&w] "},
    {"a=%C3%a9",              WEFT_OK, "[a]=[\xc3\xa9] "},
    {"a=1#b=2",               WEFT_OK, "[a]=[1] "},
    {"A=1&a=2",               WEFT_OK, "[A]=[1] [a]=[2] "},
    {"a=1&a=1",               WEFT_INVALID_VALUE, "a"},
    {"a=1&%61=2",             WEFT_INVALID_VALUE, "a"},
    {"a=%",                   WEFT_INVALID_VALUE, NULL},
    {"a=%2",                  WEFT_INVALID_VALUE, NULL},
    {"a=%2&b=0",              WEFT_INVALID_VALUE, NULL},
    {"%zz=1",                 WEFT_INVALID_VALUE, NULL},
    {"a=%00",                 WEFT_INVALID_VALUE, NULL},
    {"a=%ff",                 WEFT_INVALID_VALUE, NULL},
    {"a=%ed%a0%80",           WEFT_INVALID_VALUE, NULL},
};
/* clang-format on */

static void show(const struct weft_query *query, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < query->count; i++)
        used += (size_t)snprintf(text + used, size - used, "[%s]=[%s] ", query->pair[i].name,
                                 query->pair[i].value);
}

static void test_rows(struct weft_arena *arena)
{
    for (size_t i = 0; i < WEFT_LEN(ROWS); i++) {
        const struct row *row = &ROWS[i];
        struct weft_query query;
        struct weft_err err = {0};
        char text[200];
        enum weft_rc rc = weft_query_parse(row->text, arena, &query, &err);
        is_int(rc, row->rc, "'%s'", row->text);
        if (!rc)
            show(&query, text, sizeof(text));
        is_str(rc ? err.field : text, row->pairs, "'%s': its pairs, or the refused field",
               row->text);
    }
}

static void test_limits(struct weft_arena *arena)
{
    static char text[WEFT_QUERY_BYTES + 2];
    struct weft_query query;
    struct weft_err err;
    memset(text, 'a', sizeof(text) - 1);
    is_int(weft_query_parse(text, arena, &query, &err), WEFT_TOO_LARGE, "one byte too many");
    text[WEFT_QUERY_BYTES] = '\0';
    ok(!weft_query_parse(text, arena, &query, &err) && query.count == 1,
       "the longest query is accepted");

    size_t used = 0;
    for (int i = 0; i < WEFT_QUERY_PAIRS; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "p%d=%d&", i, i);
    ok(!weft_query_parse(text, arena, &query, &err) && query.count == WEFT_QUERY_PAIRS,
       "the most pairs are accepted");
    is_str(weft_query_find(&query, "p15"), "15", "the last one is found");
    ok(!weft_query_find(&query, "p16"), "a pair that is not there is not found");
    (void)snprintf(text + used, sizeof(text) - used, "more=1");
    is_int(weft_query_parse(text, arena, &query, &err), WEFT_TOO_LARGE, "a pair too many");
}

static void test_known(struct weft_arena *arena)
{
    const struct weft_route route = {.query = {{.name = "limit"}, {.name = "after"}}};
    struct weft_query query;
    struct weft_err err = {0};
    ok(!weft_query_parse("after=x&limit=2", arena, &query, &err) &&
           !weft_query_check(&query, &route, &err),
       "parameters of the route pass");
    ok(!weft_query_parse("limit=2&flow=3", arena, &query, &err),
       "names that the route does not know are read");
    is_int(weft_query_check(&query, &route, &err), WEFT_UNKNOWN_FIELD,
           "parameters that the route does not know are refused");
    is_str(err.field, "flow", "the error names the unknown parameter");
}

static void test_of(void)
{
    is_str(weft_query_of("/a?b=1"), "b=1", "the query is the text behind the mark");
    is_str(weft_query_of("/a?b=1?c"), "b=1?c", "the first mark");
    is_str(weft_query_of("/a"), "", "a target without a mark has an empty query");
    is_str(weft_query_of("/a#b?c"), "", "a mark in the fragment is none");
}

int main(void)
{
    struct weft_arena *arena = weft_arena_new();
    test_rows(arena);
    test_limits(arena);
    test_known(arena);
    test_of();
    weft_arena_free(arena);
    return tap_done();
}
