/* SPDX-License-Identifier: Apache-2.0 */

/* Origins: which lists are valid, and which origins they allow. */

#include "net/http/host.h"

#include "base/arena.h"
#include "tap.h"

#include <string.h>

static void test_lists(struct weft_arena *arena)
{
    static const struct {
        const char *text;
        int count; /* -1: refused */
        bool any;
    } row[] = {
        {NULL, 0, false},
        {"", 0, false},
        {" , ", 0, false},
        {"*", 0, true},
        {"https://app.example", 1, false},
        {"https://app.example,http://localhost:3000", 2, false},
        {" https://a.example  https://b.example,, *", 2, true},
        {"chrome-extension://abcdef", 1, false},
        {"http://[::1]:8080", 1, false},
        {"HTTPS://App.Example", 1, false},
        {"app.example", -1, false},
        {"://app.example", -1, false},
        {"https://", -1, false},
        {"https://app.example/", -1, false},
        {"https://app.example/x", -1, false},
        {"https://user@app.example", -1, false},
        {"https://*.example", -1, false},
        {"https://app.example:443", -1, false},
        {"http://app.example:80", -1, false},
        {"https://app.example:80", 1, false},
        {"null", -1, false},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_origins origins;
        struct weft_err err = {0};
        enum weft_rc rc = weft_origins_parse(row[i].text, arena, &origins, &err);
        const char *name = row[i].text ? row[i].text : "(none)";
        if (row[i].count < 0)
            ok(rc == WEFT_INVALID_VALUE && strcmp(err.field, "cors_origin") == 0,
               "'%s' is refused (%s)", name, err.text);
        else
            ok(!rc && (int)origins.count == row[i].count && origins.any == row[i].any,
               "'%s' is taken", name);
    }
}

static void test_allowed(struct weft_arena *arena)
{
    struct weft_origins origins;
    struct weft_err err = {0};
    ok(!weft_origins_parse("https://App.example http://dev:8080", arena, &origins, &err), "a list");
    ok(weft_origins_allow(&origins, "https://app.example"), "an origin in lower case is allowed");
    ok(weft_origins_allow(&origins, "http://dev:8080"), "an origin with a port is allowed");
    ok(!weft_origins_allow(&origins, "http://dev"), "an origin with another port is not allowed");
    ok(!weft_origins_allow(&origins, "http://app.example"),
       "an origin with another scheme is not allowed");
    ok(!weft_origins_allow(&origins, "https://app.example.evil"), "a longer host");
    ok(!weft_origins_allow(&origins, "null"), "the origin null is not allowed");
}

int main(void)
{
    struct weft_arena *arena = weft_arena_new();
    test_lists(arena);
    test_allowed(arena);
    weft_arena_free(arena);
    return tap_done();
}
