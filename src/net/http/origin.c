/* SPDX-License-Identifier: Apache-2.0 */

/* Origins: the list, the check, and the headers that tell a browser about it (CORS). */

#include "net/http/origin.h"

#include "base/err.h"
#include "base/str.h"
#include "net/http/http_head.h"
#include "net/http/link.h"
#include "net/server.h"

#include <string.h>

/* ---- The list -------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), wanted = strlen(end);
    return size >= wanted && strcmp(text + size - wanted, end) == 0;
}

/* What is wrong with it; NULL: nothing. */
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
    static const char between[] = ", \t";
    struct weft_origins origins = {0};
    const char **item = weft_new_array(arena, const char *, (text ? strlen(text) : 0) / 2 + 1);
    for (const char *at = text ? text : ""; *at;) {
        size_t size = strcspn(at, between);
        char *origin = weft_arena_alloc(arena, size + 1, 1);
        for (size_t i = 0; i < size; i++)
            origin[i] = (char)(at[i] >= 'A' && at[i] <= 'Z' ? at[i] | 0x20 : at[i]);
        at += size;
        at += strspn(at, between);
        if (strcmp(origin, "*") == 0) {
            origins.any = true;
        } else if (size > 0) {
            const char *fault = fault_of(origin);
            if (fault)
                return weft_fail_field(err, WEFT_INVALID_VALUE, "cors_origin", "'%.80s': %s",
                                       origin, fault);
            item[origins.count++] = origin;
        }
    }
    origins.item = item;
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

/* ---- Requests -------------------------------------------------------------------------------- */

void weft_origin_look(struct weft_link *link)
{
    const char *origin = weft_request_header(&link->request, "Origin");
    link->origin = origin ? weft_arena_strdup(link->request.arena, origin) : NULL;
    link->cors = origin && weft_origins_allow(&link->request.server->origins, origin);
}

bool weft_origin_preflight(struct weft_link *link)
{
    return link->origin && strcmp(link->method, "OPTIONS") == 0 &&
           weft_request_header(&link->request, "Access-Control-Request-Method");
}

void weft_origin_headers(const struct weft_link *link, struct MHD_Response *response)
{
    const struct weft_origins *origins = &link->request.server->origins;
    /* Caches must not give the answer for one site to another. */
    if (origins->count > 0 && !origins->any)
        (void)MHD_add_response_header(response, "Vary", "Origin");
    if (!link->cors)
        return;
    (void)MHD_add_response_header(response, "Access-Control-Allow-Origin",
                                  origins->any ? "*" : link->origin);
    if (!link->preflight) {
        (void)MHD_add_response_header(response, "Access-Control-Expose-Headers",
                                      "X-Request-Id, Retry-After, Location");
        return;
    }
    (void)MHD_add_response_header(response, "Access-Control-Allow-Methods",
                                  link->request.match.allow);
    (void)MHD_add_response_header(response, "Access-Control-Allow-Headers",
                                  "Authorization, Content-Type, Content-Encoding, "
                                  "X-Weft-Namespace, X-Request-Id");
    (void)MHD_add_response_header(response, "Access-Control-Max-Age", "600");
}
