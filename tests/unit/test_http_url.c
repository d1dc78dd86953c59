/* SPDX-License-Identifier: Apache-2.0 */

/* URLs of outgoing calls: their one form, what is refused, and paths behind a base URL. */

#include "core/http_url.h"

#include "base/arena.h"
#include "base/limits.h"
#include "dice.h"
#include "tap.h"

#include <curl/curl.h>

/* clang-format off */
struct url {
    const char *given, *text; /* as it is called */
    const char *host;
    int port;
    int address; /* bytes */
};

static const struct url good[] = {
    {"https://api.example.com", "https://api.example.com/", "api.example.com", 443, 0},
    {"HTTP://Example.COM:80/A", "http://example.com/A", "example.com", 80, 0},
    {"https://example.com:443", "https://example.com/", "example.com", 443, 0},
    {"http://example.com:443", "http://example.com:443/", "example.com", 443, 0},
    {"https://h:00080/v1/", "https://h:80/v1/", "h", 80, 0},
    {"http://h:65535?q=../x//", "http://h:65535/?q=../x//", "h", 65535, 0},
    {"http://under_score.example.com./",
     "http://under_score.example.com./", "under_score.example.com.", 80, 0},
    {"http://xn--bcher-kva.example/",
     "http://xn--bcher-kva.example/", "xn--bcher-kva.example", 80, 0},
    {"http://127.1/", "http://127.0.0.1/", "127.0.0.1", 80, 4},
    {"http://0x7f000001:8080/x", "http://127.0.0.1:8080/x", "127.0.0.1", 8080, 4},
    {"http://2130706433", "http://127.0.0.1/", "127.0.0.1", 80, 4},
    {"http://0251.0376.0251.0376/", "http://169.254.169.254/", "169.254.169.254", 80, 4},
    {"http://1.2.3.4./", "http://1.2.3.4/", "1.2.3.4", 80, 4},
    {"http://[::1]", "http://[::1]/", "::1", 80, 16},
    {"https://[0:0::FFFF:127.0.0.1]:8443/",
     "https://[::ffff:127.0.0.1]:8443/", "::ffff:127.0.0.1", 8443, 16},
    {"http://h/a//b/...;x=1/.well-known/%2E%2e%2e?a=%0a&b[]=%00",
     "http://h/a//b/...;x=1/.well-known/%2E%2e%2e?a=%0a&b[]=%00", "h", 80, 0},
    {"http://h/user@host:80", "http://h/user@host:80", "h", 80, 0},
};

static const struct {
    const char *url, *why; /* why: a part of the error */
} bad[] = {
    {"", "must begin with"}, {"example.com", "must begin with"},
    {"//example.com/", "must begin with"},
    {"ftp://h/", "must begin with"}, {"file:///etc/passwd", "must begin with"},
    {"gopher://h/", "must begin with"}, {"http:/h/", "must begin with"},
    {"http:h", "must begin with"},
    {" http://h/", "must begin with"}, {"\thttp://h/", "must begin with"},
    {"http:\\\\h/", "must begin with"},
    {"http://", "has no host"}, {"http:///x", "has no host"}, {"http://:80/", "has no host"},
    {"http://?x", "has no host"}, {"http://#x", "has no host"},
    {"http://u@h/", "has a user"}, {"http://u:p@h/", "has a user"}, {"http://@h/", "has a user"},
    {"http://h:80@evil/", "has a user"}, {"http://h%40evil/", "no name of a host"},
    {"http://h\\@evil/", "written as %XX"}, {"http://h#@evil/", "or a fragment"},
    {"http://h/#f", "or a fragment"}, {"http://h/\\evil", "written as %XX"},
    {"http://h/a b", "written as %XX"}, {"http://h/a\nb", "written as %XX"},
    {"http://h/a\r\nHost: x", "written as %XX"}, {"http://h/\x7f", "written as %XX"},
    {"http://h/\xc3\xa9", "written as %XX"}, {"http://h/{x}", "written as %XX"},
    {"http://h /", "no name of a host"}, {"http://h\t/", "no name of a host"},
    {"http://\xc3\xa9.com/", "no name of a host"}, {"http://\xef\xbc\x91.1.1.1/", "IPv4 address"},
    {"http://ex%61mple.com/", "no name of a host"}, {"http://a..b/", "no name of a host"},
    {"http://.a/", "no name of a host"}, {"http://a.../", "no name of a host"},
    {"http://./", "no name of a host"}, {"http://a,b/", "no name of a host"},
    {"http://256.1.1.1/", "IPv4 address"}, {"http://1.2.3.4.5/", "IPv4 address"},
    {"http://0x/", "IPv4 address"}, {"http://09/", "IPv4 address"},
    {"http://4294967296/", "IPv4 address"},
    {"http://[::1/", "no IPv6"}, {"http://[]/", "no IPv6"}, {"http://[/", "no IPv6"},
    {"http://::1/", "has a port"}, {"http://[::1%25lo]/", "no IPv6"},
    {"http://[fe80::1%eth0]/", "no IPv6"},
    {"http://[127.0.0.1]/", "no IPv6"}, {"http://[::1]x/", "no IPv6"},
    {"http://x[::1]/", "has a port"},
    {"http://h:/", "has a port"}, {"http://h:0/", "has a port"}, {"http://h:65536/", "has a port"},
    {"http://h:-1/", "has a port"}, {"http://h:8o/", "has a port"},
    {"http://h:000080/", "has a port"},
    {"http://h:80:80/", "has a port"}, {"http://h: 80/", "has a port"},
    {"http://h/..", ". or .."}, {"http://h/../x", ". or .."}, {"http://h/./x", ". or .."},
    {"http://h/x/.", ". or .."}, {"http://h/x/..?y", ". or .."}, {"http://h/%2e%2E/x", ". or .."},
    {"http://h/.%2e", ". or .."}, {"http://h/%2e", ". or .."}, {"http://h/x%2f..%2fy", ". or .."},
    {"http://h/x%5c..%5Cy", ". or .."}, {"http://h/..;/x", ". or .."},
    {"http://h/x/..;a=b/y", ". or .."},
    {"http://h/..%2f", ". or .."},
    {"http://h/%", "two hex digits"}, {"http://h/%4", "two hex digits"},
    {"http://h/%4g", "two hex digits"},
    {"http://h/?%zz", "two hex digits"},
    {"http://h/%00", "encoded control"}, {"http://h/%0d%0a", "encoded control"},
    {"http://h/%7f", "encoded control"},
};
/* clang-format on */

static void test_read(struct weft_arena *arena)
{
    for (size_t i = 0; i < WEFT_LEN(good); i++) {
        struct weft_http_url url = {0}, again = {0};
        struct weft_err err = {0};
        const struct url *row = &good[i];
        is_int(weft_http_url_read(row->given, "url", arena, &url, &err), WEFT_OK, "%s is read",
               row->given);
        is_str(url.text, row->text, "%s: what is called", row->given);
        is_str(url.host, row->host, "%s: host", row->given);
        is_int(url.port, row->port, "%s: port", row->given);
        is_int(url.address.size, row->address, "%s: size of the address", row->given);
        is_int(url.text && weft_http_url_read(url.text, "url", arena, &again, &err), WEFT_OK,
               "%s: its one form is read", row->given);
        is_str(again.text, row->text, "%s: and stays", row->given);
        ok(again.text && weft_http_same_origin(&url, &again), "%s: the same origin", row->given);
    }
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        struct weft_http_url url = {0};
        struct weft_err err = {0};
        int shown = (int)strcspn(bad[i].url, "\r\n");
        is_int(weft_http_url_read(bad[i].url, "url", arena, &url, &err), WEFT_INVALID_VALUE,
               "'%.*s' is refused", shown, bad[i].url);
        ok(strstr(err.text, bad[i].why), "'%.*s': %s", shown, bad[i].url, err.text);
        is_str(err.field, "url", "'%.*s': the field", shown, bad[i].url);
    }
}

static void test_origin(struct weft_arena *arena)
{
    static const struct {
        const char *a, *b;
        bool same;
    } row[] = {
        {"http://h/x", "http://H:80/y?z", true},   {"http://h", "https://h", false},
        {"http://h:443", "https://h:443", false},  {"http://h", "http://h:81", false},
        {"http://h", "http://h.", false},          {"http://127.1", "http://0x7f.0.0.1", true},
        {"http://[::1]", "http://[0::0:1]", true}, {"http://h", "http://h.evil", false},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_http_url a, b;
        bool read = !weft_http_url_read(row[i].a, "url", arena, &a, NULL) &&
                    !weft_http_url_read(row[i].b, "url", arena, &b, NULL);
        ok(read && weft_http_same_origin(&a, &b) == row[i].same, "origins of %s and %s are %s",
           row[i].a, row[i].b, row[i].same ? "the same" : "different");
    }
}

static void test_join(struct weft_arena *arena)
{
    static const struct {
        const char *base, *path, *text;
    } row[] = {
        {"https://h/v1", "/chat", "https://h/v1/chat"},
        {"https://h/v1/", "/chat?a=b", "https://h/v1/chat?a=b"},
        {"https://h", "/chat", "https://h/chat"},
        {"https://h:8443/", "/", "https://h:8443/"},
        {"https://h/v1", "/", "https://h/v1/"},
        {"https://h/v1", "/?q", "https://h/v1/?q"},
        {"https://h/v1", NULL, "https://h/v1"},
        {"http://[::1]:81/a", "/b@c:80", "http://[::1]:81/a/b@c:80"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_http_url base = {0}, url = {0};
        is_int(weft_http_base_read(row[i].base, "url", arena, &base, NULL), WEFT_OK, "base %s",
               row[i].base);
        is_int(row[i].path ? weft_http_path_check(row[i].path, NULL) : WEFT_OK, WEFT_OK, "path %s",
               row[i].path ? row[i].path : "absent");
        is_int(weft_http_url_join(&base, row[i].path, arena, &url, NULL), WEFT_OK, "joined");
        is_str(url.text, row[i].text, "the URL");
        is_int(url.path - url.text, base.path - base.text, "the path begins behind the origin");
        ok(weft_http_same_origin(&url, &base), "the origin is that of the base");
    }
    struct weft_err err = {0};
    struct weft_http_url base;
    is_int(weft_http_base_read("https://h/?a=b", "url", arena, &base, &err), WEFT_INVALID_VALUE,
           "a base URL with a query is refused");
}

static void test_path(void)
{
    static const char *const row[] = {
        "",          "chat",      "//evil.com/x", "//",         "?x",       "http://evil/",
        "/../x",     "/a/../../", "/%2e%2e/",     "/a\r\nX: y", "/a b",     "/a#b",
        "/\\evil",   "\\\\evil",  "/%2",          "/\x01",      "@evil/",   ":80/",
        "/a/%2e%2e", "/..",       "/%00",         "/a%5c..",    "/a/.;x/b", ".evil.com/",
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_err err = {0};
        int shown = (int)strcspn(row[i], "\r\n");
        is_int(weft_http_path_check(row[i], &err), WEFT_INVALID_VALUE, "path '%.*s' is refused",
               shown, row[i]);
        is_str(err.field, "path", "path '%.*s': the field", shown, row[i]);
    }
}

static void test_sizes(struct weft_arena *arena)
{
    char *text = weft_arena_alloc(arena, WEFT_HTTP_URL_MAX + 10, 1);
    struct weft_http_url url, base;
    memset(text, 'a', WEFT_HTTP_URL_MAX);
    memcpy(text, "http://h/", 9);
    is_int(weft_http_url_read(text, "url", arena, &url, NULL), WEFT_OK,
           "a URL of the greatest size");
    text[WEFT_HTTP_URL_MAX] = 'a';
    is_int(weft_http_url_read(text, "url", arena, &url, NULL), WEFT_TOO_LARGE, "a larger one");
    text[WEFT_HTTP_URL_MAX] = '\0';
    memcpy(text, "http://h?", 9);
    is_int(weft_http_url_read(text, "url", arena, &url, NULL), WEFT_TOO_LARGE,
           "one that its slash makes larger");
    is_int(weft_http_path_check(text + 7, NULL), WEFT_INVALID_VALUE, "a path without a slash");
    text[7] = '/';
    text[8] = 'a';
    is_int(weft_http_path_check(text + 7, NULL), WEFT_OK, "a long path");
    is_int(weft_http_base_read("http://h/v1", "url", arena, &base, NULL), WEFT_OK, "a base URL");
    is_int(weft_http_url_join(&base, text + 7, arena, &url, NULL), WEFT_TOO_LARGE,
           "both together are too large");
    memset(text, 'h', 300);
    memcpy(text, "http://", 7);
    text[7 + 64] = '\0';
    is_int(weft_http_url_read(text, "url", arena, &url, NULL), WEFT_INVALID_VALUE,
           "a label of 64 characters");
    text[7 + 63] = '\0';
    is_int(weft_http_url_read(text, "url", arena, &url, NULL), WEFT_OK, "a label of 63");
}

/* ---- The same URL for libcurl ---------------------------------------------------------------- */

static bool same_part(CURLU *curl, CURLUPart part, const char *want)
{
    char *got = NULL;
    CURLUcode code = curl_url_get(curl, part, &got, CURLU_DEFAULT_PORT);
    bool same = code == CURLUE_OK && strcmp(got, want) == 0;
    if (!same)
        printf("# libcurl: %d '%s', wanted '%s'\n", code, got ? got : "", want);
    curl_free(got);
    return same;
}

/* libcurl takes the same host and port from a text; IPv6 it shows in brackets and as written. */
static bool same_for_curl(const char *text, const struct weft_http_url *url,
                          struct weft_arena *arena)
{
    CURLU *curl = curl_url();
    bool v6 = url->address.size == 16;
    bool same =
        curl_url_set(curl, CURLUPART_URL, text, CURLU_PATH_AS_IS) == CURLUE_OK &&
        same_part(curl, CURLUPART_SCHEME, url->tls ? "https" : "http") &&
        same_part(curl, CURLUPART_PORT, weft_arena_printf(arena, "%u", url->port)) &&
        (v6 || same_part(curl, CURLUPART_HOST, url->host)) &&
        (text != url->text || !v6 ||
         same_part(curl, CURLUPART_HOST, weft_arena_printf(arena, "[%s]", url->host))) &&
        same_part(curl, CURLUPART_PATH,
                  weft_arena_printf(arena, "%.*s", (int)strcspn(url->path, "?"), url->path));
    curl_url_cleanup(curl);
    return same;
}

static void test_curl(struct weft_arena *arena)
{
    enum { ROUNDS = 20000, PARTS_MAX = 5 };
    static const char *const part[] = {"0",  "1", "255", "256", "0x7f",  "0377",   "08",        "a",
                                       "0x", ".", "",    "00",  "65535", "0xffff", "4294967295"};
    for (size_t i = 0; i < WEFT_LEN(good); i++) {
        struct weft_http_url url;
        bool read = !weft_http_url_read(good[i].given, "url", arena, &url, NULL);
        ok(read && same_for_curl(url.text, &url, arena), "libcurl: %s", url.text);
    }
    size_t addresses = 0, failed = 0;
    uint64_t dice = 7;
    for (size_t round = 0; round < ROUNDS; round++) {
        const char *text = "http://";
        for (size_t i = 0, parts = 1 + dice_below(&dice, PARTS_MAX); i < parts; i++)
            text = weft_arena_printf(arena, "%s%s%s", text, i ? "." : "",
                                     part[dice_below(&dice, WEFT_LEN(part))]);
        struct weft_http_url url;
        if (weft_http_url_read(text, "url", arena, &url, NULL))
            continue;
        addresses += url.address.size == 4;
        /* From the text as given libcurl reads the same address, but for a dot at its end. */
        bool compare = url.address.size == 4 && text[strlen(text) - 1] != '.';
        failed +=
            !same_for_curl(url.text, &url, arena) || (compare && !same_for_curl(text, &url, arena));
    }
    ok(addresses > 100, "%zu hosts drawn are IPv4 addresses", addresses);
    is_int(failed, 0, "libcurl takes the same host from each");
}

int main(void)
{
    struct weft_arena *arena = weft_arena_new();
    test_read(arena);
    test_origin(arena);
    test_join(arena);
    test_path();
    test_sizes(arena);
    test_curl(arena);
    weft_arena_free(arena);
    return tap_done();
}
