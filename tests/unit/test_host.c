/* SPDX-License-Identifier: Apache-2.0 */

/* Hosts taken apart, and which pages a server without tokens serves. */

#include "net/http/host.h"

#include "base/arena.h"
#include "tap.h"

#include <string.h>

static void test_authorities(void)
{
    static const struct {
        const char *text;
        const char *host; /* NULL: refused */
        uint16_t port;
        bool loopback;
    } row[] = {
        {"localhost", "localhost", 0, true},
        {"LocalHost:7717", "localhost", 7717, true},
        {"127.0.0.1:65535", "127.0.0.1", 65535, true},
        {"127.255.0.9", "127.255.0.9", 0, true},
        {"[::1]", "::1", 0, true},
        {"[::1]:80", "::1", 80, true},
        {"[0:0:0:0:0:0:0:1]", "0:0:0:0:0:0:0:1", 0, true},
        {"[fe80::1]", "fe80::1", 0, false},
        {"128.0.0.1", "128.0.0.1", 0, false},
        {"127.0.0.1.evil.com", "127.0.0.1.evil.com", 0, false},
        {"localhost.evil.com", "localhost.evil.com", 0, false},
        {"evil-localhost", "evil-localhost", 0, false},
        {"127.1", "127.1", 0, false},
        {"2130706433", "2130706433", 0, false},
        {"app.example:8443", "app.example", 8443, false},
        {"", NULL, 0, false},
        {":80", NULL, 0, false},
        {"localhost:", NULL, 0, false},
        {"localhost:0", NULL, 0, false},
        {"localhost:80evil", NULL, 0, false},
        {"localhost:65536", NULL, 0, false},
        {"localhost:99999999999", NULL, 0, false},
        {"localhost:80:80", NULL, 0, false},
        {"localhost/", NULL, 0, false},
        {"local host", NULL, 0, false},
        {"user@localhost", NULL, 0, false},
        {"localhost,evil.com", NULL, 0, false},
        {"[::1", NULL, 0, false},
        {"[]", NULL, 0, false},
        {"[::1]evil.com", NULL, 0, false},
        {"[localhost]", NULL, 0, false},
        {"::1", NULL, 0, false},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_authority got;
        bool good = weft_authority_parse(row[i].text, &got);
        if (!row[i].host)
            ok(!good, "'%s' is no authority", row[i].text);
        else
            ok(good && strcmp(got.host, row[i].host) == 0 && got.port == row[i].port &&
                   weft_authority_is_loopback(&got) == row[i].loopback,
               "'%s' is one, %s", row[i].text, row[i].loopback ? "of loopback" : "of elsewhere");
    }
}

static void test_lists(struct weft_arena *arena)
{
    static const struct {
        const char *text;
        int count; /* -1: refused */
    } row[] = {
        {NULL, 0},          {"", 0},           {" , ", 0},       {"weft.example", 1},
        {"a,[fd00::1]", 2}, {"weft:7717", -1}, {"http://a", -1}, {"*", -1},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_hosts hosts;
        struct weft_err err = {0};
        enum weft_rc rc = weft_hosts_parse(row[i].text, arena, &hosts, &err);
        const char *name = row[i].text ? row[i].text : "(none)";
        if (row[i].count < 0)
            ok(rc == WEFT_INVALID_VALUE && strcmp(err.field, "host") == 0, "list '%s' is refused",
               name);
        else
            ok(!rc && (int)hosts.count == row[i].count, "list '%s' is taken", name);
    }
}

static const struct {
    const char *host, *origin, *site;
    bool allowed, listed, https;
} pages[] = {
    /* Programs. */
    {.host = "localhost:7717", .allowed = true},
    {.host = "127.0.0.1:7717", .allowed = true},
    {.host = "weft.example", .allowed = true},
    {.host = "Weft.Example:443", .allowed = true},
    {.allowed = true},
    {.host = "evil.example"},
    {.host = "127.0.0.1.evil.com:7717"},
    {.host = "localhost:80evil"},
    {.host = ""},
    /* DNS rebinding: to the browser it is the server's own page. */
    {.host = "evil.example:7717", .origin = "http://evil.example:7717", .site = "same-origin"},
    /* The server's own origin. */
    {.host = "localhost:7717", .origin = "http://localhost:7717", .allowed = true},
    {.host = "[::1]:7717", .origin = "http://[::1]:7717", .allowed = true},
    {.host = "localhost", .origin = "http://localhost", .allowed = true},
    {.host = "localhost:80", .origin = "http://localhost", .allowed = true},
    {.host = "localhost:7717", .origin = "https://localhost:7717", .https = true, .allowed = true},
    {.host = "localhost:7717", .origin = "https://localhost:7717"},
    {.host = "localhost:7717", .origin = "http://localhost:7717", .https = true},
    {.host = "weft.example", .origin = "https://weft.example", .allowed = true},
    {.host = "weft.example", .origin = "http://weft.example", .allowed = true},
    {.host = "weft.example", .origin = "https://weft.example:8443"},
    {.origin = "http://localhost:7717"},
    /* Others, of this machine too. */
    {.host = "localhost:7717", .origin = "http://localhost:3000"},
    {.host = "localhost:7717", .origin = "http://localhost"},
    {.host = "localhost:7717", .origin = "http://127.0.0.1:7717"},
    {.host = "localhost:7717", .origin = "http://localhost:7717evil"},
    {.host = "localhost", .origin = "http://localhost:80evil"},
    {.host = "localhost:7717", .origin = "http://localhost:7717.evil.com"},
    {.host = "127.0.0.1", .origin = "http://127.0.0.1.evil.com"},
    {.host = "localhost:7717", .origin = "http://evil@localhost:7717"},
    {.host = "localhost:7717", .origin = "http://localhost:7717/"},
    {.host = "localhost:7717", .origin = "ftp://localhost:7717"},
    {.host = "localhost:7717", .origin = "null"},
    {.host = "localhost:7717", .origin = ""},
    {.host = "localhost:7717",
     .origin = "https://app.example",
     .site = "cross-site",
     .listed = true,
     .allowed = true},
    {.host = "evil.example", .origin = "https://app.example", .listed = true},
    /* Pictures, scripts and links. */
    {.host = "localhost:7717", .site = "none", .allowed = true},
    {.host = "localhost:7717", .site = "same-origin", .allowed = true},
    {.host = "localhost:7717", .site = "same-site"},
    {.host = "localhost:7717", .site = "cross-site"},
    {.host = "localhost:7717", .site = "cross-site", .listed = true},
    {.host = "localhost:7717", .origin = "http://localhost:7717", .site = "cross-site"},
    {.host = "localhost:7717", .site = "whatever"},
};

static void test_pages(struct weft_arena *arena)
{
    struct weft_hosts hosts;
    struct weft_err err = {0};
    if (weft_hosts_parse("weft.example", arena, &hosts, &err))
        ok(false, "the list of hosts: %s", err.text);
    for (size_t i = 0; i < WEFT_LEN(pages); i++) {
        const struct weft_web_page page = {.hosts = &hosts,
                                           .host = pages[i].host,
                                           .origin = pages[i].origin,
                                           .site = pages[i].site,
                                           .listed = pages[i].listed,
                                           .https = pages[i].https};
        enum weft_rc rc = weft_web_page_check(&page, &err);
        ok(rc == (pages[i].allowed ? WEFT_OK : WEFT_FORBIDDEN) && (pages[i].allowed || err.hint),
           "Host %s, Origin %s, Sec-Fetch-Site %s: %s", pages[i].host ? pages[i].host : "-",
           pages[i].origin ? pages[i].origin : "-", pages[i].site ? pages[i].site : "-",
           pages[i].allowed ? "served" : "refused");
    }
}

int main(void)
{
    struct weft_arena *arena = weft_arena_new();
    test_authorities();
    test_lists(arena);
    test_pages(arena);
    weft_arena_free(arena);
    return tap_done();
}
