/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who may do what. The tokens of the store are kept in memory, so that a request costs no query;
 * the slow poll notices within a second that one was added or revoked and has them read anew.
 *
 * Without tokens (on loopback only) a page in somebody's browser could still reach the server, so
 * a request that says which site it comes from is refused unless that is this machine too, or
 * listed (origin.c).
 */

#include "net/inside.h"

#include "base/err.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

struct weft_auth {
    bool required;
    pthread_mutex_t lock; /* over all below */
    struct weft_arena *arena;
    struct weft_token_rows tokens;
};

struct weft_auth *weft_auth_new(bool required)
{
    struct weft_auth *auth = calloc(1, sizeof(*auth));
    if (!auth)
        weft_oom(sizeof(*auth));
    auth->required = required;
    pthread_mutex_init(&auth->lock, NULL);
    return auth;
}

void weft_auth_free(struct weft_auth *auth)
{
    if (!auth)
        return;
    weft_arena_free(auth->arena);
    pthread_mutex_destroy(&auth->lock);
    free(auth);
}

enum weft_rc weft_auth_load(struct weft_auth *auth, struct weft_engine *engine,
                            struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_token_rows tokens;
    enum weft_rc rc = weft_engine_tokens(engine, arena, &tokens, err);
    if (rc) {
        weft_arena_free(arena);
        return rc;
    }
    pthread_mutex_lock(&auth->lock);
    struct weft_arena *before = auth->arena;
    auth->arena = arena;
    auth->tokens = tokens;
    pthread_mutex_unlock(&auth->lock);
    weft_arena_free(before);
    return WEFT_OK;
}

size_t weft_auth_count(struct weft_auth *auth)
{
    pthread_mutex_lock(&auth->lock);
    size_t count = auth->tokens.count;
    pthread_mutex_unlock(&auth->lock);
    return count;
}

/* Under the lock. */
static const struct weft_token_row *find_token(const struct weft_auth *auth, const char *text)
{
    int32_t id;
    uint8_t hash[WEFT_TOKEN_HASH];
    if (!weft_token_parse(text, &id, hash))
        return NULL;
    for (size_t i = 0; i < auth->tokens.count; i++)
        if (auth->tokens.item[i].id == id)
            return weft_token_same(auth->tokens.item[i].hash, hash) ? &auth->tokens.item[i] : NULL;
    return NULL;
}

static enum weft_rc use_token(struct weft_auth *auth, const struct weft_credentials *given,
                              struct weft_ask *ask, struct weft_err *err)
{
    static const char scheme[] = "Bearer ";
    if (strncasecmp(given->authorization, scheme, sizeof(scheme) - 1) != 0) {
        enum weft_rc none =
            weft_fail(err, WEFT_UNAUTHORIZED, "the Authorization header holds no bearer token");
        err->hint = "send the header Authorization: Bearer TOKEN";
        return none;
    }
    enum weft_rc rc = WEFT_OK;
    pthread_mutex_lock(&auth->lock);
    const struct weft_token_row *token =
        find_token(auth, given->authorization + sizeof(scheme) - 1);
    if (!token) {
        rc = weft_fail(err, WEFT_UNAUTHORIZED, "the token is not known");
    } else if (token->expires_us && token->expires_us <= given->now_us) {
        rc = weft_fail(err, WEFT_UNAUTHORIZED, "the token has expired");
    } else {
        ask->scopes = token->scopes;
        ask->ns_fixed = token->ns != NULL;
        ask->ns = token->ns ? weft_arena_strdup(ask->arena, token->ns) : NULL;
    }
    pthread_mutex_unlock(&auth->lock);
    if (rc)
        err->hint = "make one with `weft token create`; a new one is known within a second";
    return rc;
}

/* The namespace that was asked for, unless the token has one. */
static enum weft_rc use_namespace(const struct weft_credentials *given, struct weft_ask *ask,
                                  struct weft_err *err)
{
    if (given->ns && !weft_name_valid(given->ns))
        return weft_fail_field(err, WEFT_INVALID_VALUE, "X-Weft-Namespace",
                               "the namespace has characters that are not allowed, or is too long");
    if (ask->ns_fixed && given->ns && strcmp(given->ns, ask->ns) != 0)
        return weft_fail(err, WEFT_FORBIDDEN, "the token is for namespace '%s'", ask->ns);
    if (!ask->ns_fixed)
        ask->ns = given->ns ? weft_arena_strdup(ask->arena, given->ns) : "default";
    return WEFT_OK;
}

enum weft_rc weft_auth_check(struct weft_auth *auth, const struct weft_credentials *given,
                             struct weft_ask *ask, struct weft_err *err)
{
    ask->ns = "default";
    ask->scopes = WEFT_SCOPE_ADMIN;
    if (ask->route->scope == WEFT_SCOPE_NONE)
        return WEFT_OK;
    enum weft_rc rc = WEFT_OK;
    if (given->authorization) {
        rc = use_token(auth, given, ask, err);
    } else if (auth->required) {
        rc = weft_fail(err, WEFT_UNAUTHORIZED, "this server wants a token");
        err->hint = "send the header Authorization: Bearer TOKEN; `weft token create` makes one";
    } else if (given->origin && !given->listed && !weft_origin_is_local(given->origin)) {
        rc = weft_origin_refuse(given->origin, err);
    }
    if (!rc)
        rc = use_namespace(given, ask, err);
    bool allowed = weft_scope_allows(ask->scopes, ask->route->scope) ||
                   (ask->route->or_work && weft_scope_allows(ask->scopes, WEFT_SCOPE_WORK));
    if (!rc && !allowed) {
        char needed[WEFT_SCOPES_TEXT];
        weft_scopes_print(ask->route->scope, needed);
        rc = weft_fail(err, WEFT_FORBIDDEN, "the token lacks the scope '%s'", needed);
    }
    return rc;
}
