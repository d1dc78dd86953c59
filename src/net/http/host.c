/* SPDX-License-Identifier: Apache-2.0 */

/* Hosts and origins taken apart, and which pages the server serves. */

#include "net/http/host.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

/* ---- Taking apart ---------------------------------------------------------------------------- */

/* The text behind the host: "" or ":PORT" with 1 to 65535. */
static bool read_port(const char *text, uint16_t *ret_port)
{
    uint32_t port = 0;
    *ret_port = 0;
    if (*text == '\0')
        return true;
    size_t digits = strspn(text + 1, "0123456789");
    if (*text != ':' || digits == 0 || digits > 5 || text[1 + digits] != '\0')
        return false;
    for (size_t i = 1; i <= digits; i++)
        port = port * 10 + (uint32_t)(text[i] - '0');
    *ret_port = (uint16_t)port;
    return port > 0 && port <= UINT16_MAX;
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

bool weft_authority_parse(const char *text, struct weft_authority *ret_authority)
{
    struct in6_addr v6;
    bool bracket = *text == '[';
    const char *host = text + bracket;
    size_t size = bracket ? strcspn(host, "]") : weft_word_size(host, "-._");
    if (size == 0 || size >= sizeof(ret_authority->host) || (bracket && host[size] != ']'))
        return false;
    for (size_t i = 0; i < size; i++)
        ret_authority->host[i] = lower(host[i]);
    ret_authority->host[size] = '\0';
    if (bracket && inet_pton(AF_INET6, ret_authority->host, &v6) != 1)
        return false;
    return read_port(host + size + bracket, &ret_authority->port);
}

bool weft_authority_is_loopback(const struct weft_authority *authority)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (strcmp(authority->host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, authority->host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, authority->host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* The next word of a list with commas or spaces between, in lower case; NULL at the end. */
static const char *next_word(const char **at, struct weft_arena *arena)
{
    static const char between[] = ", \t";
    *at += strspn(*at, between);
    size_t size = strcspn(*at, between);
    if (size == 0)
        return NULL;
    char *word = weft_arena_alloc(arena, size + 1, 1);
    for (size_t i = 0; i < size; i++)
        word[i] = lower((*at)[i]);
    *at += size;
    return word;
}

/* Room for as many words as a list can have. */
static const char **room_for(const char *list, struct weft_arena *arena)
{
    return weft_new_array(arena, const char *, strlen(list) / 2 + 1);
}

enum weft_rc weft_hosts_parse(const char *text, struct weft_arena *arena,
                              struct weft_hosts *ret_hosts, struct weft_err *err)
{
    const char *at = text ? text : "", *host;
    const char **item = room_for(at, arena);
    size_t count = 0;
    while ((host = next_word(&at, arena))) {
        struct weft_authority authority;
        if (!weft_authority_parse(host, &authority) || authority.port)
            return weft_invalid(err, "host",
                                "'%.80s': a host is a name or an address without a port, like "
                                "weft.example or [fd00::1]",
                                host);
        item[count++] = weft_arena_strdup(arena, authority.host);
    }
    *ret_hosts = (struct weft_hosts){.item = item, .count = count};
    return WEFT_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), wanted = strlen(end);
    return size >= wanted && strcmp(text + size - wanted, end) == 0;
}

/* Why a browser would not send this origin; NULL: it would. */
static const char *fault_of(const char *origin)
{
    const char *host = strstr(origin, "://");
    if (!host || host == origin || weft_word_size(origin, "+.-") < (size_t)(host - origin))
        return "an origin begins with a scheme, like https://app.example";
    host += 3;
    if (ends_with(host, "/"))
        return "an origin has no slash at its end";
    if (*host == '\0' || strpbrk(host, "/?#@*\"\\"))
        return "an origin is a scheme, a host and perhaps a port, nothing else";
    if (strncmp(origin, "https://", 8) == 0
            ? ends_with(host, ":443")
            : strncmp(origin, "http://", 7) == 0 && ends_with(host, ":80"))
        return "browsers leave out the usual port of a scheme: leave it out here too";
    return NULL;
}

enum weft_rc weft_origins_parse(const char *text, struct weft_arena *arena,
                                struct weft_origins *ret_origins, struct weft_err *err)
{
    const char *at = text ? text : "", *origin;
    const char **item = room_for(at, arena);
    struct weft_origins origins = {.item = item};
    while ((origin = next_word(&at, arena))) {
        bool any = strcmp(origin, "*") == 0;
        const char *fault = any ? NULL : fault_of(origin);
        if (fault)
            return weft_invalid(err, "cors_origin", "'%.80s': %s", origin, fault);
        origins.any |= any;
        if (!any)
            item[origins.count++] = origin;
    }
    *ret_origins = origins;
    return WEFT_OK;
}

bool weft_origins_allow(const struct weft_origins *origins, const char *origin)
{
    for (size_t i = 0; i < origins->count; i++)
        if (strcmp(origins->item[i], origin) == 0)
            return true;
    return origins->any;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static bool is_listed(const struct weft_hosts *hosts, const struct weft_authority *authority)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (strcmp(hosts->item[i], authority->host) == 0)
            return true;
    return false;
}

/*
 * True when the page is of the origin under which this request reached the server. In front of a
 * name of --host a proxy may speak TLS, so there both schemes are the server's own.
 */
static bool is_own(const struct weft_web_page *page, const struct weft_authority *host)
{
    struct weft_authority origin;
    bool https = strncmp(page->origin, "https://", 8) == 0;
    if (!https && strncmp(page->origin, "http://", 7) != 0)
        return false;
    if (!weft_authority_parse(page->origin + (https ? 8 : 7), &origin) ||
        strcmp(origin.host, host->host) != 0)
        return false;
    uint16_t usual = https ? 443 : 80;
    return (origin.port ? origin.port : usual) == (host->port ? host->port : usual) &&
           (https == page->https || !weft_authority_is_loopback(host));
}

static enum weft_rc refuse_host(const char *host, struct weft_err *err)
{
    return weft_hint(
        err,
        weft_fail(err, WEFT_FORBIDDEN,
                  "without tokens this server is not called '%.100s' (header Host)", host),
        "call it at localhost or 127.0.0.1, name the host with --host, or require tokens with "
        "--tokens");
}

enum weft_rc weft_origin_refuse(const char *origin, struct weft_err *err)
{
    return weft_hint(
        err, weft_fail(err, WEFT_FORBIDDEN, "pages of '%.100s' may not call this server", origin),
        "to let them in, start the server with --cors-origin and this origin");
}

enum weft_rc weft_web_page_check(const struct weft_web_page *page, struct weft_err *err)
{
    struct weft_authority host = {.host = ""};
    /* Only HTTP/1.0 may do without a Host, and no browser speaks that. */
    if (page->host && (!weft_authority_parse(page->host, &host) ||
                       (!weft_authority_is_loopback(&host) && !is_listed(page->hosts, &host))))
        return refuse_host(page->host, err);
    if (page->origin && page->listed)
        return WEFT_OK;
    if (page->origin && !is_own(page, &host))
        return weft_origin_refuse(page->origin, err);
    /* For a picture, a script or a link a browser names no origin. */
    if (!page->site || strcmp(page->site, "none") == 0 || strcmp(page->site, "same-origin") == 0)
        return WEFT_OK;
    return weft_hint(err,
                     weft_fail(err, WEFT_FORBIDDEN,
                               "pages of other sites may not call this server "
                               "(Sec-Fetch-Site: %.20s)",
                               page->site),
                     "list the site with --cors-origin and let its page use fetch(), or type the "
                     "address into the browser");
}
