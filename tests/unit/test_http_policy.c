/* SPDX-License-Identifier: Apache-2.0 */

/* What the end of an HTTP call means, which statuses are tried again, and Retry-After. */

#include "core/http_policy.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/moment.h"
#include "tap.h"

static struct weft_arena *arena;

static struct weft_http_retry read_list(const char *text)
{
    struct weft_http_retry retry = {0};
    struct weft_json value;
    struct weft_err err = {0};
    ok(!weft_json_check(text, strlen(text), &value, &err) &&
           !weft_http_retry_read(&value, &retry, &err),
       "the list %.60s is read", text);
    return retry;
}

static void test_list(void)
{
    static const struct {
        const char *given, *text;
    } row[] = {
        {"null", "[408,425,429,\"5xx\"]"},
        {"[]", "[]"},
        {"[503]", "[503]"},
        {"[429,408,\"5xx\",425]", "[408,425,429,\"5xx\"]"},
        {"[503,\"5xx\",503,5.99e2]", "[\"5xx\"]"},
        {"[\"4xx\",\"3xx\",500]", "[\"3xx\",\"4xx\",500]"},
        {"[300,399,400,499,500,599]", "[300,399,400,499,500,599]"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_http_retry retry = read_list(row[i].given);
        const char *text = weft_http_retry_text(&retry, arena);
        is_str(text, row[i].text, "canonical form of %s", row[i].given);
        struct weft_http_retry again = read_list(text);
        ok(memcmp(&again, &retry, sizeof(retry)) == 0, "%s reads back as the same", text);
    }
    struct weft_http_retry none = {0}, usual;
    is_int(weft_http_retry_read(NULL, &usual, NULL), WEFT_OK, "no list is the default");
    ok(weft_http_retry_has(&usual, 429) && weft_http_retry_has(&usual, 599), "which has 429, 599");
    ok(!weft_http_retry_has(&usual, 404) && !weft_http_retry_has(&usual, 409), "not 404, 409");
    ok(!weft_http_retry_has(&usual, 600) && !weft_http_retry_has(&usual, 299) &&
           !weft_http_retry_has(&usual, 0) && !weft_http_retry_has(&usual, -1),
       "nor numbers that are out of range");
    for (int status = WEFT_RETRY_STATUS_MIN; status <= WEFT_RETRY_STATUS_MAX; status++)
        if (status % 100 != 7) {
            char item[16];
            struct weft_json value;
            struct weft_http_retry one;
            (void)snprintf(item, sizeof(item), "[%d]", status);
            if (!weft_json_check(item, strlen(item), &value, NULL) &&
                !weft_http_retry_read(&value, &one, NULL))
                for (size_t i = 0; i < WEFT_LEN(none.bit); i++)
                    none.bit[i] |= one.bit[i];
        }
    const char *longest = weft_http_retry_text(&none, arena);
    struct weft_http_retry again = read_list(longest);
    ok(memcmp(&again, &none, sizeof(none)) == 0, "the longest text reads back as the same");
}

static void test_bad_list(void)
{
    static const char *const row[] = {"{}",        "\"5xx\"",   "429",       "[299]",   "[600]",
                                      "[200]",     "[0]",       "[-1]",      "[429.5]", "[\"429\"]",
                                      "[\"2xx\"]", "[\"5XX\"]", "[\"50x\"]", "[null]",  "[[429]]",
                                      "[true]",    "[1e999]"};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_json value;
        struct weft_http_retry retry;
        struct weft_err err = {0};
        ok(!weft_json_check(row[i], strlen(row[i]), &value, &err) &&
               weft_http_retry_read(&value, &retry, &err) == WEFT_INVALID_VALUE,
           "the list %s is refused", row[i]);
        is_str(err.field, "retry", "%s: the field", row[i]);
    }
}

/* ---- Decisions ------------------------------------------------------------------------------- */

enum { SUCCEED = WEFT_HTTP_SUCCEED, RETRY = WEFT_HTTP_RETRY, FAIL = WEFT_HTTP_FAIL };
enum { VOID = WEFT_BREAKER_VOID, GOOD = WEFT_BREAKER_GOOD, BAD = WEFT_BREAKER_BAD };
enum { SENT = 1, IDEMPOTENT = 2 };

/* clang-format off */
static const struct {
    enum weft_http_failure failure;
    int status;
    const char *method;
    int flags;
    int verdict, health;
    const char *error_class;
} decided[] = {
    {WEFT_HTTP_ANSWERED, 200, "POST", SENT, SUCCEED, GOOD, ""},
    {WEFT_HTTP_ANSWERED, 204, "POST", SENT, SUCCEED, GOOD, ""},
    {WEFT_HTTP_ANSWERED, 299, "GET", SENT, SUCCEED, GOOD, ""},
    {WEFT_HTTP_ANSWERED, 199, "GET", SENT, FAIL, GOOD, "http_199"},
    {WEFT_HTTP_ANSWERED, 300, "GET", SENT, FAIL, GOOD, "http_300"},
    {WEFT_HTTP_ANSWERED, 302, "GET", SENT, FAIL, GOOD, "http_302"},
    {WEFT_HTTP_ANSWERED, 304, "GET", SENT, FAIL, GOOD, "http_304"},
    {WEFT_HTTP_ANSWERED, 400, "GET", SENT | IDEMPOTENT, FAIL, GOOD, "http_400"},
    {WEFT_HTTP_ANSWERED, 401, "GET", SENT, FAIL, GOOD, "http_401"},
    {WEFT_HTTP_ANSWERED, 404, "GET", SENT, FAIL, GOOD, "http_404"},
    {WEFT_HTTP_ANSWERED, 409, "GET", SENT, FAIL, GOOD, "http_409"},
    {WEFT_HTTP_ANSWERED, 408, "POST", SENT, RETRY, VOID, "http_408"},
    {WEFT_HTTP_ANSWERED, 425, "POST", SENT, RETRY, VOID, "http_425"},
    {WEFT_HTTP_ANSWERED, 429, "POST", SENT, RETRY, VOID, "http_429"},
    {WEFT_HTTP_ANSWERED, 500, "POST", SENT, FAIL, BAD, "http_500"},
    {WEFT_HTTP_ANSWERED, 503, "POST", SENT, FAIL, BAD, "http_503"},
    {WEFT_HTTP_ANSWERED, 503, "PATCH", SENT, FAIL, BAD, "http_503"},
    {WEFT_HTTP_ANSWERED, 503, "FOO", SENT, FAIL, BAD, "http_503"},
    {WEFT_HTTP_ANSWERED, 503, "POST", SENT | IDEMPOTENT, RETRY, BAD, "http_503"},
    {WEFT_HTTP_ANSWERED, 503, "POST", 0, RETRY, BAD, "http_503"},
    {WEFT_HTTP_ANSWERED, 500, "GET", SENT, RETRY, BAD, "http_500"},
    {WEFT_HTTP_ANSWERED, 502, "HEAD", SENT, RETRY, BAD, "http_502"},
    {WEFT_HTTP_ANSWERED, 504, "OPTIONS", SENT, RETRY, BAD, "http_504"},
    {WEFT_HTTP_ANSWERED, 520, "PUT", SENT, RETRY, BAD, "http_520"},
    {WEFT_HTTP_ANSWERED, 599, "DELETE", SENT, RETRY, BAD, "http_599"},
    {WEFT_HTTP_ANSWERED, 600, "GET", SENT, FAIL, BAD, "http_600"},
    {WEFT_HTTP_ANSWERED, 999, "GET", SENT, FAIL, BAD, "http_999"},
    {WEFT_HTTP_RESOLVE, 0, "POST", 0, RETRY, BAD, "http_resolve"},
    {WEFT_HTTP_CONNECT, 0, "POST", 0, RETRY, BAD, "http_connect"},
    {WEFT_HTTP_TLS, 0, "POST", 0, RETRY, BAD, "http_tls"},
    {WEFT_HTTP_UNTRUSTED, 0, "GET", 0, FAIL, BAD, "http_tls"},
    {WEFT_HTTP_TIMEOUT, 0, "POST", 0, RETRY, BAD, "http_timeout"},
    {WEFT_HTTP_TIMEOUT, 0, "POST", SENT, FAIL, BAD, "http_timeout"},
    {WEFT_HTTP_TIMEOUT, 200, "POST", SENT, FAIL, BAD, "http_timeout"},
    {WEFT_HTTP_TIMEOUT, 429, "POST", SENT, FAIL, BAD, "http_timeout"},
    {WEFT_HTTP_TIMEOUT, 0, "POST", SENT | IDEMPOTENT, RETRY, BAD, "http_timeout"},
    {WEFT_HTTP_TIMEOUT, 0, "GET", SENT, RETRY, BAD, "http_timeout"},
    {WEFT_HTTP_BROKEN, 0, "POST", SENT, FAIL, BAD, "http_broken"},
    {WEFT_HTTP_BROKEN, 200, "PUT", SENT, RETRY, BAD, "http_broken"},
    {WEFT_HTTP_PROTOCOL, 0, "POST", SENT, FAIL, BAD, "http_protocol"},
    {WEFT_HTTP_PROTOCOL, 200, "GET", SENT, RETRY, BAD, "http_protocol"},
    {WEFT_HTTP_REFUSED, 0, "GET", 0, FAIL, VOID, "http_refused"},
    {WEFT_HTTP_REDIRECTED, 302, "GET", SENT, FAIL, VOID, "http_redirect"},
    {WEFT_HTTP_OVERSIZED, 200, "GET", SENT | IDEMPOTENT, FAIL, GOOD, "http_too_large"},
};
/* clang-format on */

static void test_decide(void)
{
    struct weft_http_retry usual = read_list("null"), none = read_list("[]");
    for (size_t i = 0; i < WEFT_LEN(decided); i++) {
        struct weft_http_ended ended = {
            .failure = decided[i].failure,
            .status = decided[i].status,
            .method = decided[i].method,
            .sent = decided[i].flags & SENT,
            .idempotent = decided[i].flags & IDEMPOTENT,
        };
        struct weft_http_decision made = weft_http_decide(&usual, &ended);
        const char *name = weft_arena_printf(arena, "%s %s %d, flags %d", decided[i].error_class,
                                             ended.method, ended.status, decided[i].flags);
        is_int(made.verdict, decided[i].verdict, "%s: verdict", name);
        is_int(made.health, decided[i].health, "%s: health", name);
        is_str(made.error_class, decided[i].error_class, "%s: class", name);
        ok((made.verdict == WEFT_HTTP_FAIL) == (made.why != NULL), "%s: %s", name,
           made.why ? made.why : "no reason");
    }
    struct weft_http_ended ended = {.status = 429, .method = "GET", .sent = true};
    is_int(weft_http_decide(&none, &ended).verdict, WEFT_HTTP_FAIL,
           "a status that is not on the list");
    ended.failure = WEFT_HTTP_CONNECT;
    is_int(weft_http_decide(&none, &ended).verdict, WEFT_HTTP_RETRY,
           "the list is about statuses, not about the network");
}

/* ---- Retry-After ----------------------------------------------------------------------------- */

#define NEVER_MIND (-1)

/* clang-format off */
static const struct {
    const char *text, *now;
    int64_t seconds;
} asked[] = {
    {"0", "1994-11-06T08:49:00Z", 0}, {"1", "1994-11-06T08:49:00Z", 1},
    {"120", "1994-11-06T08:49:00Z", 120}, {" 007\t", "1994-11-06T08:49:00Z", 7},
    {"86400", "1994-11-06T08:49:00Z", 86400}, {"86401", "1994-11-06T08:49:00Z", 86400},
    {"99999999999999999999999999", "1994-11-06T08:49:00Z", 86400},
    {"", "1994-11-06T08:49:00Z", NEVER_MIND}, {" ", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"-1", "1994-11-06T08:49:00Z", NEVER_MIND}, {"+1", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"1.5", "1994-11-06T08:49:00Z", NEVER_MIND}, {"1 2", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"5s", "1994-11-06T08:49:00Z", NEVER_MIND}, {"0x10", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"soon", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"120, 120", "1994-11-06T08:49:00Z", NEVER_MIND},

    {"Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:00Z", 37},
    {"Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z", 0},
    {"Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:38Z", 0},
    {"Sun, 06 Nov 1994 08:49:37 GMT", "2026-01-01T00:00:00Z", 0},
    {"Sun, 06 Nov 1994 08:49:37 GMT", "1993-01-01T00:00:00Z", 86400},
    {"Thu, 29 Feb 2024 00:00:10 GMT", "2024-02-28T23:59:50Z", 20},
    {"Fri, 31 Dec 1999 23:59:60 GMT", "1999-12-31T23:59:00Z", 60},
    {"Sun, 06 Nov 1994 08:49:37 UTC", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sun, 06 Nov 1994 08:49:37", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sun, 06 Nov 1994 08:49:37 GMT x", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sun, 6 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Son, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"sun, 06 nov 1994 08:49:37 gmt", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sun, 06 Nev 1994 08:49:37 GMT", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sun, 31 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Thu, 29 Feb 2023 00:00:10 GMT", "2023-02-28T23:59:50Z", NEVER_MIND},
    {"Sun, 06 Nov 1994 24:00:00 GMT", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sun, 06 Nov 1994 08:60:00 GMT", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sun, 06 Nov 1994 08:49:61 GMT", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sun, 06 Nov 1969 08:49:37 GMT", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Fri, 31 Dec 9999 23:59:59 GMT", "1994-11-06T08:49:00Z", 86400},

    {"Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:00Z", 37},
    {"Wednesday, 01-Jan-20 00:00:01 GMT", "2019-12-31T23:59:59Z", 2},
    {"Saturday, 01-Jan-00 00:00:01 GMT", "1999-12-31T23:59:59Z", 2},
    {"Friday, 31-Dec-99 23:59:59 GMT", "2000-01-01T00:00:00Z", 0},
    {"Monday, 01-Jan-76 00:00:00 GMT", "2026-01-01T00:00:00Z", 86400},
    {"Monday, 01-Jan-77 00:00:00 GMT", "2026-01-01T00:00:00Z", 0},
    {"Sun, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sunday, 06-Nov-1994 08:49:37 GMT", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sunday, 06 Nov 94 08:49:37 GMT", "1994-11-06T08:49:00Z", NEVER_MIND},

    {"Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:00Z", 37},
    {"Wed Nov 16 08:49:37 1994", "1994-11-16T08:49:00Z", 37},
    {"Sun Nov 6 08:49:37 1994", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sun Nov  06 08:49:37 1994", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sun Nov  6 08:49:37 1994 GMT", "1994-11-06T08:49:00Z", NEVER_MIND},
    {"Sunday Nov  6 08:49:37 1994", "1994-11-06T08:49:00Z", NEVER_MIND},
};
/* clang-format on */

static void test_retry_after(void)
{
    for (size_t i = 0; i < WEFT_LEN(asked); i++) {
        weft_usec now_us = 0;
        ok(weft_moment_parse(asked[i].now, strlen(asked[i].now), &now_us), "now is %s",
           asked[i].now);
        weft_usec wait_us = weft_http_retry_after(asked[i].text, strlen(asked[i].text), now_us);
        is_int(wait_us < 0 ? wait_us : wait_us / WEFT_SECOND, asked[i].seconds, "Retry-After: %s",
               asked[i].text);
    }
    /* Each date cut short, in memory of exactly its size. */
    static const char *const date[] = {"Sun, 06 Nov 1994 08:49:37 GMT",
                                       "Sunday, 06-Nov-94 08:49:37 GMT",
                                       "Sun Nov  6 08:49:37 1994"};
    size_t taken = 0;
    for (size_t i = 0; i < WEFT_LEN(date); i++)
        for (size_t size = 0; size < strlen(date[i]); size++) {
            const char *cut = weft_arena_dup(arena, date[i], size);
            taken += weft_http_retry_after(cut, size, WEFT_SECOND) >= 0;
        }
    is_int(taken, 0, "a date that is cut short is ignored");
}

static void test_key(void)
{
    struct weft_id id = {{0x01, 0x8f, [15] = 0xff}};
    char text[WEFT_IDEMPOTENCY_KEY_TEXT];
    weft_idempotency_key(&id, text);
    is_str(text, "weft-018f0000-0000-0000-0000-0000000000ff", "the key of an execution");
    is_int(strlen(text) + 1, sizeof(text), "fills its memory");
}

int main(void)
{
    arena = weft_arena_new();
    test_list();
    test_bad_list();
    test_decide();
    test_retry_after();
    test_key();
    weft_arena_free(arena);
    return tap_done();
}
