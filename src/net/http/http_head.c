/* SPDX-License-Identifier: Apache-2.0 */

/* The first line and the headers of a request. */

#include "net/http/link.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/str.h"
#include "engine/engine.h"
#include "net/auth.h"
#include "net/http/host.h"
#include "net/route.h"
#include "net/server.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *weft_request_header(const struct weft_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->link->connection, MHD_HEADER_KIND, name);
}

void weft_head_request_id(struct weft_link *link)
{
    const char *given = weft_request_header(&link->request, "X-Request-Id");
    size_t size = given ? strlen(given) : 0;
    if (size > 0 && size <= WEFT_REQUEST_ID_MAX && weft_text_printable(given, size) &&
        !strpbrk(given, " \"\\")) {
        memcpy(link->request_id, given, size + 1);
        return;
    }
    struct weft_id id;
    char text[WEFT_ID_TEXT];
    weft_id_new(&id, weft_boot_us(), -1);
    weft_id_print(&id, text);
    memcpy(link->request_id, text + 19, 17); /* the random digits */
    link->request_id[17] = '\0';
}

/* Sets origin and cors of a request. */
static void look_at_origin(struct weft_link *link)
{
    const char *origin = weft_request_header(&link->request, "Origin");
    link->origin = origin ? weft_arena_strdup(link->request.arena, origin) : NULL;
    link->cors = origin && weft_origins_allow(&link->request.server->origins, origin);
}

/* True when a browser asks what a page may send (the preflight of CORS). */
static bool is_preflight(const struct weft_link *link)
{
    return link->origin && strcmp(link->method, "OPTIONS") == 0 &&
           weft_request_header(&link->request, "Access-Control-Request-Method");
}

static enum weft_rc find_route(struct weft_link *link, struct weft_err *err)
{
    struct weft_request *request = &link->request;
    request->route =
        weft_route_find(request->server->routes, link->method, link->target, &request->match);
    if (request->route)
        return WEFT_OK;
    if (request->match.miss == WEFT_ROUTE_BAD)
        return weft_invalid(err, "path", "the path is badly encoded");
    if (request->match.miss == WEFT_ROUTE_METHOD && is_preflight(link)) {
        if (!link->cors)
            return weft_origin_refuse(link->origin, err);
        link->preflight = true;
        request->reply.status = 204;
        return WEFT_OK;
    }
    enum weft_rc rc;
    if (request->match.miss == WEFT_ROUTE_METHOD) {
        weft_reply_header(request, "Allow", request->match.allow);
        rc = weft_fail(err, WEFT_METHOD_NOT_ALLOWED, "this path has no %.16s, only %s",
                       link->method, request->match.allow);
    } else {
        rc = weft_fail(err, WEFT_NOT_FOUND, "there is nothing at this path");
    }
    return weft_hint(err, rc, "GET /openapi.json lists what there is");
}

/* ---- Where the request ends ------------------------------------------------------------------ */

/* Headers that decide who may do what: a proxy in front may have gone by the second one. */
static const char *const once[] = {"Host", "Origin", "Sec-Fetch-Site", "Authorization",
                                   "X-Weft-Namespace"};
enum { HOST = 0 };

struct framing {
    unsigned lengths, codings;
    bool met[WEFT_LEN(once)];
    const char *twice; /* a header of `once` that came again; or NULL */
    bool bad;          /* a name that is no token, or a coding that is not known */
    bool hidden;       /* there are bytes that no text shows: see follows() */
    uintptr_t end;     /* of the text that was looked at last */
};

/*
 * libmicrohttpd takes a line of the head apart in its buffer and passes texts that end at the first
 * NUL: "Host: localhost\0.evil" is shown as "localhost", and a proxy in front may have seen the
 * rest. Such bytes show by where the next text begins: it should be right behind the end of the
 * line. A header that goes on in the next line is copied elsewhere, and is refused as well; it was
 * abolished long ago, and 0.9.75 adds the second line to the name of the header.
 */
static bool follows(uintptr_t end, uintptr_t next, size_t least, size_t most)
{
#if MHD_VERSION < 0x00097700 /* later ones refuse a NUL by themselves */
    if (next < end + least || next > end + most)
        return false;
    for (const char *at = (const char *)end + 1; at < (const char *)next; at++)
        if (*at != '\0' && *at != '\r' && *at != '\n') /* it writes NULs over ends of lines */
            return false;
    return true;
#else
    (void)end, (void)next, (void)least, (void)most;
    return true;
#endif
}

/* The first line: texts with one space between them. */
static void look_at_line(const struct weft_link *link, struct framing *framing)
{
    uintptr_t method_end = link->at.method + strlen(link->method);
    uintptr_t target_end = link->at.target + strlen(link->target);
    framing->hidden |= !follows(method_end, link->at.target, 1, 1) ||
                       !follows(target_end, link->at.version, 1, 1) ||
                       strpbrk(link->target, " \t\v\f\r");
    framing->end = link->at.version + strlen("HTTP/1.1"); /* all versions are as long */
}

/* The last header ends where the head does, but for its line and the empty one. */
static void look_at_end(const struct weft_link *link, struct framing *framing)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(link->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    framing->hidden |= info && !follows(framing->end, link->at.method + info->header_size, 2, 4);
}

/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd says what it passes */
static enum MHD_Result look_at(void *context, enum MHD_ValueKind kind, const char *name,
                               size_t name_size, const char *value, size_t value_size)
{
    struct framing *framing = context;
    (void)kind;
    (void)name_size;
    framing->hidden |= !value || !follows(framing->end, (uintptr_t)name, 1, 2);
    framing->end = (uintptr_t)value + value_size;
    framing->bad |= !*name || name[weft_word_size(name, "!#$%&'*+-.^_`|~")] != '\0';
    framing->lengths += strcasecmp(name, "Content-Length") == 0;
    for (size_t i = 0; i < WEFT_LEN(once); i++) {
        if (strcasecmp(name, once[i]) != 0)
            continue;
        if (framing->met[i])
            framing->twice = once[i];
        framing->met[i] = true;
    }
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        framing->codings++;
        framing->bad |= !value || strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

/* Whom it is for: the host of a target like "http://host/path" counts before the header. */
static const char *host_of(struct weft_link *link)
{
    const char *host = *link->target == '/' ? NULL : strstr(link->target, "://");
    if (!host)
        return weft_request_header(&link->request, "Host");
    return weft_arena_printf(link->request.arena, "%.*s", (int)strcspn(host + 3, "/?#"), host + 3);
}

/*
 * A proxy in front may take the headers of a request in another way than libmicrohttpd does, and
 * then see one request where there are two. So an ambiguous head is refused, and nothing behind it
 * on the connection is read.
 */
static enum weft_rc check_framing(struct weft_link *link, struct weft_err *err)
{
    struct framing framing = {0};
    look_at_line(link, &framing);
    (void)MHD_get_connection_values_n(link->connection, MHD_HEADER_KIND, look_at, &framing);
    look_at_end(link, &framing);
    if (framing.hidden) {
        link->doubtful = true;
        return weft_fail(err, WEFT_INVALID_VALUE,
                         "the head of the request holds a NUL character, a header over several "
                         "lines, or more than the two spaces of its first line");
    }
    if (link->needs_host && !framing.met[HOST]) {
        link->doubtful = true;
        return weft_fail(err, WEFT_INVALID_VALUE, "the header Host is missing");
    }
    if (!framing.bad && framing.lengths + framing.codings <= 1 && !framing.twice)
        return WEFT_OK;
    link->doubtful = true;
    if (framing.twice)
        return weft_fail(err, WEFT_INVALID_VALUE, "the header %s is given more than once",
                         framing.twice);
    return weft_fail(err, WEFT_INVALID_VALUE,
                     framing.bad ? "the headers hold a bad name or an unknown Transfer-Encoding"
                                 : "the length of the body is given more than once");
}

/*
 * The store is not open yet, so there is nothing to check a token with, and no engine. The routes
 * about the process itself need neither: they are answered by the loop. A request that is turned
 * away has no route, so nothing that is done for its route at its end touches missing parts.
 */
static enum weft_rc check_waiting(struct weft_link *link, struct weft_err *err)
{
    struct weft_request *request = &link->request;
    enum weft_rc rc = find_route(link, err);
    if (rc || link->preflight || request->route->while_waiting)
        return rc;
    request->route = NULL;
    return weft_hint(err, weft_fail(err, WEFT_UNAVAILABLE, "the server waits for its store"),
                     "try again later; the server's log says what it waits for");
}

enum weft_rc weft_head_check(struct weft_link *link, struct weft_err *err)
{
    struct weft_request *request = &link->request;
    struct weft_server *server = request->server;
    look_at_origin(link); /* first: a page may read every answer, errors too */
    if (server->stopping) {
        link->close = true;
        return weft_fail(err, WEFT_UNAVAILABLE, "the server is stopping");
    }
    enum weft_rc rc = check_framing(link, err);
    if (!rc && !server->open)
        return check_waiting(link, err);
    if (!rc)
        rc = find_route(link, err);
    if (rc || link->preflight)
        return rc;
    const struct weft_credentials given = {
        .authorization = weft_request_header(request, "Authorization"),
        .ns = weft_request_header(request, "X-Weft-Namespace"),
        .page = {.hosts = &server->hosts,
                 .host = host_of(link),
                 .origin = link->origin,
                 .site = weft_request_header(request, "Sec-Fetch-Site"),
                 .listed = link->cors,
                 .https = server->config.tls_cert != NULL},
        .now_us = weft_clock_now(weft_engine_clock(server->engine)),
    };
    rc = weft_auth_check(server->auth, &given, request, err);
    if (!rc)
        rc = weft_query_parse(weft_query_of(link->target), request->arena, &request->query, err);
    if (!rc)
        rc = weft_query_check(&request->query, request->route, err);
    request->walks = !rc && request->route->walks && weft_query_filters(&request->query);
    return rc ? rc : weft_body_check(link, err);
}
