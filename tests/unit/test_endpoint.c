/* SPDX-License-Identifier: Apache-2.0 */

/* Which settings of an endpoint are allowed; defaults and forms are in conformance/case_endpoint.c.
 */

#include "tap.h"

#include "base/arena.h"
#include "base/limits.h"
#include "core/endpoint.h"
#include "weft/weft.h"

#include <string.h>

#define HEADERS(...)                                                                               \
    .headers = (const struct weft_tag[]){__VA_ARGS__},                                             \
    .header_count = sizeof((const struct weft_tag[]){__VA_ARGS__}) / sizeof(struct weft_tag)

static const struct row {
    const char *what;
    struct weft_endpoint given; /* name and url are filled in where they are missing */
    enum weft_rc rc;
    const char *field; /* that the error names */
} rows[] = {
    {"nothing but a URL", {0}, WEFT_OK, NULL},
    {"no URL", {.url = ""}, WEFT_INVALID_VALUE, "url"},
    {"another scheme", {.url = "ftp://example.com"}, WEFT_INVALID_VALUE, "url"},
    {"a user", {.url = "https://u:p@example.com"}, WEFT_INVALID_VALUE, "url"},
    {"a query", {.url = "https://example.com/v1?key=1"}, WEFT_INVALID_VALUE, "url"},
    {"a fragment", {.url = "https://example.com/#a"}, WEFT_INVALID_VALUE, "url"},
    {"dot segments", {.url = "https://example.com/v1/%2e%2e/"}, WEFT_INVALID_VALUE, "url"},
    {"loopback", {.url = "http://127.0.0.1:80"}, WEFT_INVALID_VALUE, "url"},
    {"loopback in hex", {.url = "http://0x7f000001"}, WEFT_INVALID_VALUE, "url"},
    {"loopback in IPv6", {.url = "http://[::1]/"}, WEFT_INVALID_VALUE, "url"},
    {"the metadata service", {.url = "http://169.254.169.254/"}, WEFT_INVALID_VALUE, "url"},
    {"loopback of a private endpoint",
     {.url = "http://127.0.0.1:80", .private_addresses = true},
     WEFT_OK,
     NULL},
    {"a public address", {.url = "http://93.184.216.34"}, WEFT_OK, NULL},
    {"no name", {.name = ""}, WEFT_INVALID_VALUE, "endpoint"},
    {"a name with a space", {.name = "a b"}, WEFT_INVALID_VALUE, "endpoint"},

    {"a secret", {.secret = "openai"}, WEFT_OK, NULL},
    {"an empty secret", {.secret = ""}, WEFT_INVALID_VALUE, "secret"},
    {"a secret that leaves its folder", {.secret = "../x"}, WEFT_INVALID_VALUE, "secret"},
    {"a secret that is hidden", {.secret = ".x"}, WEFT_INVALID_VALUE, "secret"},
    {"a secret with a slash", {.secret = "a/b"}, WEFT_INVALID_VALUE, "secret"},
    {"a secret over http", {.url = "http://example.com", .secret = "s"}, WEFT_INVALID_VALUE, "url"},
    {"a secret over http of a private endpoint",
     {.url = "http://example.com", .secret = "s", .private_addresses = true},
     WEFT_OK,
     NULL},
    {"auth without a secret", {.auth = "A: {secret}"}, WEFT_INVALID_VALUE, "auth"},
    {"a header of its own", {.secret = "s", .auth = "api-key: {secret}"}, WEFT_OK, NULL},
    {"auth without the mark", {.secret = "s", .auth = "A: b"}, WEFT_INVALID_VALUE, "auth"},
    {"auth with two marks",
     {.secret = "s", .auth = "A: {secret}{secret}"},
     WEFT_INVALID_VALUE,
     "auth"},
    {"auth without a header",
     {.secret = "s", .auth = "Bearer {secret}"},
     WEFT_INVALID_VALUE,
     "auth"},
    {"auth without a space", {.secret = "s", .auth = "A:{secret}"}, WEFT_INVALID_VALUE, "auth"},
    {"the mark in the name", {.secret = "s", .auth = "{secret}: b"}, WEFT_INVALID_VALUE, "auth"},
    {"a line break in auth",
     {.secret = "s", .auth = "A: x\r\nB: {secret}"},
     WEFT_INVALID_VALUE,
     "auth"},
    {"a space at the end", {.secret = "s", .auth = "A: {secret} "}, WEFT_INVALID_VALUE, "auth"},
    {"auth that frames",
     {.secret = "s", .auth = "Content-Length: {secret}"},
     WEFT_INVALID_VALUE,
     "auth"},
    {"auth that is the host",
     {.secret = "s", .auth = "Host: {secret}"},
     WEFT_INVALID_VALUE,
     "auth"},

    {"a header", {HEADERS({"X-A", "b"})}, WEFT_OK, NULL},
    {"a header without a name", {HEADERS({"", "b"})}, WEFT_INVALID_VALUE, "headers"},
    {"no name", {HEADERS({NULL, "b"})}, WEFT_INVALID_VALUE, "headers"},
    {"no value", {HEADERS({"X-A", NULL})}, WEFT_INVALID_VALUE, "headers"},
    {"a line break", {HEADERS({"X-A", "b\nC: d"})}, WEFT_INVALID_VALUE, "headers"},
    {"a colon in the name", {HEADERS({"X-A: b", ""})}, WEFT_INVALID_VALUE, "headers"},
    {"framing", {HEADERS({"transfer-ENCODING", "chunked"})}, WEFT_INVALID_VALUE, "headers"},
    {"a secret in a header", {HEADERS({"authorization", "b"})}, WEFT_INVALID_VALUE, "headers"},
    {"a header twice", {HEADERS({"X-A", "b"}, {"x-a", "c"})}, WEFT_INVALID_VALUE, "headers"},
    {"the header of auth among headers",
     {.secret = "s", .auth = "X-A: {secret}", HEADERS({"x-a", "c"})},
     WEFT_INVALID_VALUE,
     "auth"},

    {"idempotency_header", {.idempotency_header = "Idempotency-Key"}, WEFT_OK, NULL},
    {"a bad one", {.idempotency_header = "a b"}, WEFT_INVALID_VALUE, "idempotency_header"},
    {"one that frames", {.idempotency_header = "Host"}, WEFT_INVALID_VALUE, "idempotency_header"},
    {"one that is among headers",
     {.idempotency_header = "x-a", HEADERS({"X-A", "b"})},
     WEFT_INVALID_VALUE,
     "idempotency_header"},
    {"one that has the secret",
     {.idempotency_header = "x-a", .secret = "s", .auth = "X-A: {secret}"},
     WEFT_INVALID_VALUE,
     "idempotency_header"},

    {"no status to retry", {.retry = "[]"}, WEFT_OK, NULL},
    {"a text", {.retry = "5xx"}, WEFT_INVALID_VALUE, "retry"},
    {"a number", {.retry = "500"}, WEFT_INVALID_VALUE, "retry"},
    {"success", {.retry = "[200]"}, WEFT_INVALID_VALUE, "retry"},

    {"retry_after_max_ms of a day", {.retry_after_max_ms = 86400000}, WEFT_OK, NULL},
    {"more", {.retry_after_max_ms = 86400001}, WEFT_INVALID_VALUE, "retry_after_max_ms"},
    {"fewer than one at a time", {.max_in_flight = -1}, WEFT_INVALID_VALUE, "max_in_flight"},
    {"10,000 at a time", {.max_in_flight = 10000}, WEFT_OK, NULL},
    {"10,001 at a time", {.max_in_flight = 10001}, WEFT_INVALID_VALUE, "max_in_flight"},
    {"connect_ms", {.connect_ms = 86400001}, WEFT_INVALID_VALUE, "connect_ms"},
    {"first_byte_ms", {.first_byte_ms = -5}, WEFT_INVALID_VALUE, "first_byte_ms"},
    {"idle_ms", {.idle_ms = INT64_MAX}, WEFT_INVALID_VALUE, "idle_ms"},
    {"total_ms", {.total_ms = INT64_MIN}, WEFT_INVALID_VALUE, "total_ms"},
    {"8 MiB", {.response_max = 8 << 20}, WEFT_OK, NULL},
    {"a byte more", {.response_max = (8 << 20) + 1}, WEFT_INVALID_VALUE, "response_max"},
};

static void test_rows(struct weft_arena *arena)
{
    for (size_t i = 0; i < WEFT_LEN(rows); i++) {
        struct weft_endpoint given = rows[i].given, resolved;
        struct weft_err err = {0};
        given.name = given.name ? given.name : "e";
        given.url = given.url ? given.url : "https://example.com/v1";
        is_int(weft_endpoint_resolve(&given, arena, &resolved, NULL, &err), rows[i].rc,
               "%s: the code (%s)", rows[i].what, err.text);
        if (rows[i].field)
            is_str(err.field, rows[i].field, "%s: the field", rows[i].what);
        /* An error may be asked for without a text. */
        is_int(weft_endpoint_resolve(&given, arena, &resolved, NULL, NULL), rows[i].rc,
               "%s: without an error", rows[i].what);
    }
}

/* What was resolved may be put again, and stays as it is. */
static void test_again(struct weft_arena *arena)
{
    for (size_t i = 0; i < WEFT_LEN(rows); i++) {
        struct weft_endpoint given = rows[i].given, once, twice;
        given.name = given.name ? given.name : "e";
        given.url = given.url ? given.url : "https://example.com/v1";
        if (weft_endpoint_resolve(&given, arena, &once, NULL, NULL))
            continue;
        is_int(weft_endpoint_resolve(&once, arena, &twice, NULL, NULL), WEFT_OK, "%s: again",
               rows[i].what);
        is_str(twice.url, once.url, "%s: the same URL", rows[i].what);
        is_str(twice.retry, once.retry, "%s: the same statuses", rows[i].what);
        is_int(twice.total_ms, once.total_ms, "%s: the same numbers", rows[i].what);
    }
}

static void test_many_headers(struct weft_arena *arena)
{
    struct weft_tag header[WEFT_HTTP_HEADERS_MAX + 1];
    struct weft_endpoint given = {.name = "e", .url = "https://example.com", .headers = header},
                         resolved;
    struct weft_err err = {0};
    for (size_t i = 0; i < WEFT_LEN(header); i++)
        header[i] = (struct weft_tag){weft_arena_printf(arena, "x-%zu", i), "v"};
    given.header_count = WEFT_HTTP_HEADERS_MAX;
    is_int(weft_endpoint_resolve(&given, arena, &resolved, NULL, &err), WEFT_OK, "64 headers");
    given.header_count++;
    is_int(weft_endpoint_resolve(&given, arena, &resolved, NULL, &err), WEFT_TOO_LARGE,
           "65 headers");
    char *large = weft_arena_alloc(arena, WEFT_HTTP_HEADER_VALUE_MAX + 1, 1);
    memset(large, 'v', WEFT_HTTP_HEADER_VALUE_MAX);
    for (size_t i = 0; i < 5; i++)
        header[i].value = large;
    given.header_count = 5;
    is_int(weft_endpoint_resolve(&given, arena, &resolved, NULL, &err), WEFT_TOO_LARGE,
           "40 KiB of headers");
    is_str(err.field, "headers", "the error names them");
}

static void test_auth(struct weft_arena *arena)
{
    const struct weft_endpoint given = {
        .name = "e", .url = "https://example.com", .secret = "s.1-x_Y"};
    struct weft_endpoint resolved;
    struct weft_endpoint_parts parts;
    is_int(weft_endpoint_resolve(&given, arena, &resolved, &parts, NULL), WEFT_OK, "a secret");
    is_str(resolved.auth, "Authorization: Bearer {secret}", "the default of auth");
    is_str(parts.auth.name, "Authorization", "the header");
    is_str(parts.auth.before, "Bearer ", "what comes before the secret");
    is_str(parts.auth.after, "", "and behind it");
    is_str(parts.url.text, "https://example.com/", "the URL");
    ok(weft_http_retry_has(&parts.retry, 500), "the statuses");
}

int main(void)
{
    struct weft_arena *arena = weft_arena_new();
    test_rows(arena);
    test_again(arena);
    test_many_headers(arena);
    test_auth(arena);
    weft_arena_free(arena);
    return tap_done();
}
