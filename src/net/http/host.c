/* SPDX-License-Identifier: Apache-2.0 */

/* Hosts and origins taken apart, and which pages a server without tokens serves. */

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

bool weft_authority_parse(const char *text, struct weft_authority *ret_authority)
{
    struct in6_addr v6;
    bool bracket = *text == '[';
    const char *host = text + bracket;
    size_t size = bracket ? strcspn(host, "]") : weft_word_size(host, "-._");
    if (size == 0 || size >= sizeof(ret_authority->host) || (bracket && host[size] != ']'))
        return false;
    for (size_t i = 0; i < size; i++)
        ret_authority->host[i] =
            (char)(host[i] >= 'A' && host[i] <= 'Z' ? host[i] | 0x20 : host[i]);
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

enum weft_rc weft_hosts_parse(const char *text, struct weft_arena *arena,
                              struct weft_hosts *ret_hosts, struct weft_err *err)
{
    static const char between[] = ", \t";
    struct weft_hosts hosts = {0};
    const char **item = weft_new_array(arena, const char *, (text ? strlen(text) : 0) / 2 + 1);
    for (const char *at = text ? text : ""; *at;) {
        struct weft_authority authority;
        size_t size = strcspn(at, between);
        const char *host = weft_arena_printf(arena, "%.*s", (int)size, at);
        at += size;
        at += strspn(at, between);
        if (size == 0)
            continue;
        if (!weft_authority_parse(host, &authority) || authority.port)
            return weft_fail_field(err, WEFT_INVALID_VALUE, "host",
                                   "'%.80s': a host is a name or an address without a port, like "
                                   "weft.example or [fd00::1]",
                                   host);
        item[hosts.count++] = weft_arena_strdup(arena, authority.host);
    }
    hosts.item = item;
    *ret_hosts = hosts;
    return WEFT_OK;
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
    enum weft_rc rc =
        weft_fail(err, WEFT_FORBIDDEN,
                  "without tokens this server is not called '%.100s' (header Host)", host);
    err->hint =
        "call it at localhost or 127.0.0.1, name the host with --host, or require tokens with "
        "--tokens";
    return rc;
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
    if (page->site && strcmp(page->site, "none") != 0 && strcmp(page->site, "same-origin") != 0) {
        enum weft_rc rc = weft_fail(err, WEFT_FORBIDDEN,
                                    "pages of other sites may not call this server "
                                    "(Sec-Fetch-Site: %.20s)",
                                    page->site);
        err->hint =
            "list the site with --cors-origin and let its page use fetch(), or type the "
            "address into the browser";
        return rc;
    }
    return WEFT_OK;
}
