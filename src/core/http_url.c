/* SPDX-License-Identifier: Apache-2.0 */

#include "core/http_url.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"

#include <string.h>

enum { HOST_MAX = 253, LABEL_MAX = 63, PORT_DIGITS_MAX = 5 };

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";

/* ---- Paths ----------------------------------------------------------------------------------- */

/* Bytes that may stand in a URL as they are; others must be written as %XX. */
static bool is_url_byte(char c)
{
    return c > ' ' && c < 0x7f && !strchr("\"#<>\\^`{|}", c);
}

/* The byte that a URL has at `at`, and the end of how it is written. -1: % without two digits. */
static int decode(const char *at, const char **ret_end)
{
    if (*at != '%') {
        *ret_end = at + 1;
        return (unsigned char)*at;
    }
    int high = weft_hex_digit(at[1]), low = high < 0 ? -1 : weft_hex_digit(at[2]);
    *ret_end = at + 3;
    return low < 0 ? -1 : high << 4 | low;
}

/* A segment of a path, while its characters go by. */
struct segment {
    size_t dots;
    bool other;
};

static bool is_dots(const struct segment *segment)
{
    return !segment->other && (segment->dots == 1 || segment->dots == 2);
}

/* Why the path up to the query cannot be called, or NULL. */
static const char *refuse_byte(int byte, struct segment *segment)
{
    if (byte < ' ' || byte == 0x7f)
        return "has an encoded control character";
    if (byte == '/' || byte == '\\' || byte == ';') {
        if (is_dots(segment))
            return "has a segment . or ..";
        *segment = (struct segment){0};
    } else if (byte == '.') {
        segment->dots++;
    } else {
        segment->other = true;
    }
    return NULL;
}

/*
 * Why a path cannot be called, or NULL. A server may decode %2e, %2f and %5c before it looks for
 * dot segments, and may cut off what follows a semicolon, so all of that is looked through here.
 */
static const char *refuse_path(const char *path)
{
    struct segment segment = {0};
    const char *why = NULL;
    bool query = false;
    for (const char *at = path; *at && !why;) {
        query |= *at == '?';
        if (!is_url_byte(*at))
            return "has a character that must be written as %XX, or a fragment";
        int byte = decode(at, &at);
        if (byte < 0)
            return "has a % without two hex digits behind it";
        if (!query)
            why = refuse_byte(byte, &segment);
    }
    return !why && is_dots(&segment) ? "has a segment . or .." : why;
}

enum weft_rc weft_http_path_check(const char *path, struct weft_err *err)
{
    size_t size = strlen(path);
    if (size > WEFT_HTTP_URL_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "path", "path has %zu bytes, at most %d may be",
                               size, WEFT_HTTP_URL_MAX);
    if (path[0] != '/' || path[1] == '/')
        return weft_invalid(err, "path", "path must begin with one slash");
    const char *why = refuse_path(path);
    return why ? weft_invalid(err, "path", "path %s", why) : WEFT_OK;
}

/* ---- Hosts and ports ------------------------------------------------------------------------- */

/* Labels of letters, digits, hyphens and underscores; the last one may end in a dot. */
static bool name_valid(const char *host)
{
    size_t size = strlen(host);
    if (size > HOST_MAX)
        return false;
    for (const char *at = host;;) {
        size_t label = strspn(at, letters);
        if (label == 0 || label > LABEL_MAX)
            return false;
        at += label;
        if (!*at || (at[0] == '.' && !at[1]))
            return true;
        if (*at++ != '.')
            return false;
    }
}

/* From a host in lower case. Addresses are written anew: what is judged is what is called. */
static const char *read_host(const char *host, struct weft_arena *arena, struct weft_http_url *url)
{
    size_t size = strlen(host);
    char text[WEFT_ADDRESS_TEXT];
    url->host = host;
    if (host[0] == '[') {
        if (host[size - 1] != ']' || !weft_address_v6(host + 1, size - 2, &url->address))
            return "has no IPv6 address in its brackets";
    } else {
        switch (weft_host_read(host, size, &url->address)) {
        case WEFT_HOST_NAME:
            return name_valid(host) ? NULL : "has a host that is no name of a host";
        case WEFT_HOST_BAD:
            return "has a host that looks like an IPv4 address and is none";
        case WEFT_HOST_ADDRESS:
            break;
        }
    }
    weft_address_print(&url->address, text);
    url->host = weft_arena_strdup(arena, text);
    return NULL;
}

static bool read_port(const char *text, size_t size, uint16_t *ret_port)
{
    uint32_t port = 0;
    if (size > PORT_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        port = port * 10 + (uint32_t)(text[i] - '0');
    }
    *ret_port = (uint16_t)port;
    return port >= 1 && port <= UINT16_MAX;
}

static uint16_t usual_port(bool tls)
{
    return tls ? 443 : 80;
}

/* host[:port]; returns NULL or what is wrong. */
static const char *read_authority(const char *text, size_t size, struct weft_arena *arena,
                                  struct weft_http_url *url)
{
    if (memchr(text, '@', size))
        return "has a user or a password in it, which is not allowed";
    const char *end = text + size, *rest = text; /* colons of an IPv6 address lie before rest */
    if (size > 0 && *text == '[')
        rest = memchr(text, ']', size);
    if (!rest)
        return "has no IPv6 address in its brackets";
    const char *colon = memchr(rest, ':', (size_t)(end - rest));
    const char *host_end = colon ? colon : end;
    url->port = usual_port(url->tls);
    if (colon && !read_port(colon + 1, (size_t)(end - colon - 1), &url->port))
        return "has a port that is not a number from 1 to 65535";
    if (host_end == text)
        return "has no host";
    char *host = weft_arena_alloc(arena, (size_t)(host_end - text) + 1, 1);
    for (size_t i = 0; text + i < host_end; i++)
        host[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i]);
    return read_host(host, arena, url);
}

/* ---- URLs ------------------------------------------------------------------------------------ */

/* The size of the scheme with "://"; 0 for another one. */
static size_t read_scheme(const char *text, bool *ret_tls)
{
    static const char *const scheme[] = {"http://", "https://"};
    for (size_t tls = 0; tls < WEFT_LEN(scheme); tls++) {
        size_t size = strlen(scheme[tls]);
        *ret_tls = tls == 1;
        if (strncasecmp_l(text, scheme[tls], size, weft_c_locale()) == 0)
            return size;
    }
    return 0;
}

/* Writes the text of a URL and sets `path`. */
static enum weft_rc write_url(struct weft_http_url *url, const char *field, const char *path,
                              const char *more, struct weft_arena *arena, struct weft_err *err)
{
    bool v6 = url->address.size == 16;
    const char *port =
        url->port == usual_port(url->tls) ? "" : weft_arena_printf(arena, ":%u", url->port);
    const char *origin = weft_arena_printf(arena, "%s://%s%s%s%s", url->tls ? "https" : "http",
                                           v6 ? "[" : "", url->host, v6 ? "]" : "", port);
    url->text = weft_arena_printf(arena, "%s%s%s", origin, path, more);
    url->path = url->text + strlen(origin);
    if (strlen(url->text) > WEFT_HTTP_URL_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, field, "the URL has more than %d bytes",
                               WEFT_HTTP_URL_MAX);
    return WEFT_OK;
}

enum weft_rc weft_http_url_read(const char *text, const char *field, struct weft_arena *arena,
                                struct weft_http_url *ret_url, struct weft_err *err)
{
    struct weft_http_url url = {0};
    if (strlen(text) > WEFT_HTTP_URL_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, field, "the URL has more than %d bytes",
                               WEFT_HTTP_URL_MAX);
    size_t scheme = read_scheme(text, &url.tls);
    if (scheme == 0)
        return weft_invalid(err, field, "the URL must begin with http:// or https://");
    const char *host = text + scheme, *path = host + strcspn(host, "/?#\\");
    const char *why = read_authority(host, (size_t)(path - host), arena, &url);
    if (!why)
        why = refuse_path(path);
    if (why)
        return weft_invalid(err, field, "the URL %s", why);
    enum weft_rc rc = write_url(&url, field, *path == '/' ? "" : "/", path, arena, err);
    if (!rc)
        *ret_url = url;
    return rc;
}

enum weft_rc weft_http_base_read(const char *text, const char *field, struct weft_arena *arena,
                                 struct weft_http_url *ret_url, struct weft_err *err)
{
    struct weft_http_url url = {.path = ""};
    enum weft_rc rc = weft_http_url_read(text, field, arena, &url, err);
    if (rc)
        return rc;
    if (strchr(url.path, '?'))
        return weft_invalid(err, field,
                            "the URL of an endpoint has no query: it belongs into the path of the "
                            "call");
    *ret_url = url;
    return WEFT_OK;
}

enum weft_rc weft_http_url_join(const struct weft_http_url *base, const char *path,
                                struct weft_arena *arena, struct weft_http_url *ret_url,
                                struct weft_err *err)
{
    struct weft_http_url url = *base;
    if (path) {
        size_t size = strlen(base->path);
        const char *prefix = weft_arena_printf(
            arena, "%.*s", (int)(size - (base->path[size - 1] == '/')), base->path);
        enum weft_rc rc = write_url(&url, "path", prefix, path, arena, err);
        if (rc)
            return rc;
    }
    *ret_url = url;
    return WEFT_OK;
}

bool weft_http_same_origin(const struct weft_http_url *a, const struct weft_http_url *b)
{
    return a->tls == b->tls && a->port == b->port && strcmp(a->host, b->host) == 0;
}
