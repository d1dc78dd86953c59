/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_HOST_H
#define WEFT_NET_HTTP_HOST_H

/*
 * Which web pages may call the server. Pure.
 *
 * Foreign web pages at a server that wants no tokens:
 * A browser on the machine of the server reaches it, and with it every page that the browser shows.
 * Three headers that a page cannot choose distinguish requests of pages from others:
 *
 * - Host is the name in the address. A page of evil.example whose name is made to resolve to
 *   127.0.0.1 (DNS rebinding) is of the same origin as the server for the browser; but the browser
 *   still sends "Host: evil.example". So only names of this machine are served.
 * - Origin comes with every request of a page that is not a plain GET to its own origin.
 * - Sec-Fetch-Site comes with every request, also for pictures, scripts and links.
 *
 * Programs send Host alone.
 */

#include "weft/weft.h"

/* A host and a port, as they stand in an address: "localhost:7717", "[::1]", "app.example". */
struct weft_authority {
    char host[256]; /* lower case; a v6 address without its brackets */
    uint16_t port;  /* 0: none was given */
};
/* False when it is none: a port that is no number, an empty host, characters of no host. */
WEFT_MUST_CHECK bool weft_authority_parse(const char *text, struct weft_authority *ret_authority);
/* True for localhost, 127.0.0.0/8 and ::1. */
bool weft_authority_is_loopback(const struct weft_authority *authority);

/* The names under which the server may be called besides the names of loopback: --host. */
struct weft_hosts {
    const char *const *item; /* lower case; in the arena */
    size_t count;
};
/* Reads names with commas or spaces between them; NULL: none. WEFT_INVALID_VALUE. */
WEFT_MUST_CHECK enum weft_rc weft_hosts_parse(const char *text, struct weft_arena *arena,
                                              struct weft_hosts *ret_hosts, struct weft_err *err);

/*
 * The origins that --cors-origin lists: web pages of other sites that may call the server. A
 * browser names the site of a page in the Origin header, and lets the page read an answer only when
 * the answer names that site (CORS).
 */
struct weft_origins {
    const char *const *item; /* "https://app.example", lower case; in the arena */
    size_t count;
    bool any; /* "*" was among them */
};

/*
 * Reads a list with commas or spaces between its origins; NULL is an empty one. WEFT_INVALID_VALUE
 * for an origin that no browser would send, such as one with a path.
 */
WEFT_MUST_CHECK enum weft_rc weft_origins_parse(const char *text, struct weft_arena *arena,
                                                struct weft_origins *ret_origins,
                                                struct weft_err *err);
/* True when pages of this origin are let in; compared exactly. */
bool weft_origins_allow(const struct weft_origins *origins, const char *origin);

/* The headers that show where a request comes from; texts are borrowed, NULL: not sent. */
struct weft_web_page {
    const struct weft_hosts *hosts;
    const char *host;   /* the header Host */
    const char *origin; /* Origin */
    const char *site;   /* Sec-Fetch-Site */
    bool listed;        /* the origin is one of --cors-origin */
    bool https;         /* the server itself speaks TLS */
};
/*
 * WEFT_OK for programs, pages of the server's own origin and pages of listed origins;
 * WEFT_FORBIDDEN, with what to do about it, for all other pages. A page of this machine on another
 * port is another origin: any program may serve one, also one that shows pages of others.
 */
WEFT_MUST_CHECK enum weft_rc weft_web_page_check(const struct weft_web_page *page,
                                                 struct weft_err *err);

/* WEFT_FORBIDDEN for pages of this origin. */
enum weft_rc weft_origin_refuse(const char *origin, struct weft_err *err);

#endif
