/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_HTTP_LISTEN_H
#define WEFT_NET_HTTP_LISTEN_H

/* The socket of the server. */

#include "base/base.h"
#include "weft/weft.h"

struct weft_server_config;

/* A bound and listening socket. */
struct weft_listener {
    int fd;
    bool loopback;     /* only this machine can reach it */
    char host[256];    /* as configured; "": every address */
    char address[280]; /* "127.0.0.1:7717", as it was bound */
};
/* Binds "HOST:PORT", "[V6]:PORT" or ":PORT". WEFT_INVALID_VALUE and WEFT_CONFLICT (in use). */
WEFT_MUST_CHECK enum weft_rc weft_listen(const char *where, struct weft_listener *ret_listener,
                                         struct weft_err *err);
/*
 * Lowers config->connections to what the limit of descriptors allows, after raising that if the
 * system lets it; WEFT_INVALID_VALUE when there would be too few. Where accept() runs out of
 * descriptors, connections that would be evicted keep new ones out, and the store cannot reconnect.
 */
WEFT_MUST_CHECK enum weft_rc weft_connections_fit(struct weft_server_config *config,
                                                  struct weft_err *err);

#endif
