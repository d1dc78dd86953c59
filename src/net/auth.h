/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_AUTH_H
#define WEFT_NET_AUTH_H

/* The tokens of the store in memory: which requests they let in, and when each was last used. */

#include "base/base.h"
#include "net/http/host.h"

struct weft_auth; /* opaque */
struct weft_engine;
struct weft_request;
struct weft_server;

struct weft_auth *weft_auth_new(bool required);
void weft_auth_free(struct weft_auth *auth);
/* Reads the tokens of the store again. */
WEFT_MUST_CHECK enum weft_rc weft_auth_load(struct weft_auth *auth, struct weft_engine *engine,
                                            struct weft_err *err);
size_t weft_auth_count(struct weft_auth *auth); /* tokens */
/* Writes when tokens were last used, where the last write is a while ago; all: in any case. */
WEFT_MUST_CHECK enum weft_rc weft_auth_write_uses(struct weft_auth *auth,
                                                  struct weft_engine *engine, bool all,
                                                  struct weft_err *err);
/* Adds uses that this replica has not written yet to tokens as the store has them. */
void weft_auth_show_uses(struct weft_auth *auth, struct weft_token *token, size_t count);

/* The headers by which a request is let in; texts are borrowed, NULL: not sent. */
struct weft_credentials {
    const char *authorization;
    const char *ns;
    struct weft_web_page page; /* checked when no token is required and none was sent */
    weft_usec now_us;          /* the store's */
};
/* Sets ns, ns_fixed, scopes and token of the request, or says why it is refused. */
WEFT_MUST_CHECK enum weft_rc weft_auth_check(struct weft_auth *auth,
                                             const struct weft_credentials *given,
                                             struct weft_request *request, struct weft_err *err);
/*
 * WEFT_UNAUTHORIZED when the token of a request that was let in was revoked or expired since then.
 * For requests that have waited: called by the thread that has the request, or under wait.lock
 * while it sleeps.
 */
WEFT_MUST_CHECK enum weft_rc weft_auth_again(struct weft_server *server,
                                             struct weft_request *request, struct weft_err *err);

#endif
