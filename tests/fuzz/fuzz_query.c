/* SPDX-License-Identifier: Apache-2.0 */

/* Query strings: each name once, and what was read is read again when all of it is encoded. */

#include "fuzz/fuzz.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/route.h"

static void encode(struct weft_buf *out, const char *text)
{
    for (; *text; text++)
        weft_buf_printf(out, "%%%02X", (unsigned)(uint8_t)*text);
}

static void check_again(const struct weft_query *query, struct weft_arena *arena)
{
    struct weft_buf text;
    struct weft_query again;
    struct weft_err err = {0};
    weft_buf_init(&text, 1 << 20);
    for (size_t i = 0; i < query->count; i++) {
        if (i > 0)
            weft_buf_add_char(&text, '&');
        encode(&text, query->pair[i].name);
        weft_buf_add_char(&text, '=');
        encode(&text, query->pair[i].value);
    }
    enum weft_rc rc = weft_query_parse(text.data, arena, &again, &err);
    must(rc == (text.size > WEFT_QUERY_BYTES ? WEFT_TOO_LARGE : WEFT_OK));
    must(rc || again.count == query->count);
    for (size_t i = 0; !rc && i < again.count; i++) {
        must(strcmp(again.pair[i].name, query->pair[i].name) == 0);
        must(strcmp(again.pair[i].value, query->pair[i].value) == 0);
    }
    weft_buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct weft_route route = {.query = {{"limit", "{}", ""}, {"after", "{}", ""}}};
    struct weft_arena *arena = weft_arena_new();
    struct weft_query query;
    struct weft_err err = {0};
    char *target = fuzz_text(data, size);
    enum weft_rc rc = weft_query_parse(weft_query_of(target), arena, &query, &err);
    must(rc == WEFT_OK || rc == WEFT_INVALID_VALUE || rc == WEFT_TOO_LARGE);
    if (!rc) {
        must(query.count <= WEFT_QUERY_PAIRS);
        for (size_t i = 0; i < query.count; i++)
            must(weft_query_find(&query, query.pair[i].name) == query.pair[i].value);
        rc = weft_query_check(&query, &route, &err);
        must(rc == WEFT_OK || rc == WEFT_UNKNOWN_FIELD);
        check_again(&query, arena);
    }
    free(target);
    weft_arena_free(arena);
    return 0;
}
