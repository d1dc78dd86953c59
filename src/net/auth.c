/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tokens of the store are kept in memory, so that a request costs no query;
 * the slow poll notices within a second that one was added, rotated or revoked and has them read
 * again. A request that changes tokens has them read again before it is answered.
 *
 * The token of a request that waits is checked again: when tokens were read again, and once a
 * second because it may expire (waits.c).
 *
 * When each was last used is noted in memory and written by upkeep, at most once a minute for each
 * token, so that being authorized costs no query either.
 *
 * Without tokens (on loopback only) a page in a browser of this machine could still reach the
 * server, so a request without a token must come from a program, from a page of the server's own
 * origin or from one that is listed (host.c). Routes without a scope (/healthz) show nothing
 * private, and are answered to every page.
 */

#include "net/auth.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "core/token.h"
#include "engine/admin/tokens.h"
#include "engine/engine.h"
#include "net/http/host.h"
#include "net/request.h"
#include "net/server.h"
#include "weft/admin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define REWRITE_US (60 * WEFT_SECOND)
enum { WRITE_MAX = 500 };

/* When a secret was last used, as this replica knows it. */
struct use {
    weft_usec used_us;    /* the store's time; 0: never */
    weft_usec written_us; /* what the store has of it */
    weft_usec wrote_us;   /* boot time of the last write; 0: none */
};

struct weft_auth {
    bool required;
    pthread_mutex_t lock; /* over all below */
    struct weft_arena *arena;
    struct weft_token_rows tokens;
    struct use *use;         /* one for each of the tokens; in the arena */
    uint64_t begun;          /* loads are numbered as they begin */
    _Atomic uint64_t loaded; /* the load that `tokens` is of; also read without the lock */
};

struct weft_auth *weft_auth_new(bool required)
{
    struct weft_auth *auth = weft_alloc(1, sizeof(*auth));
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

/* Under the lock. What was noted of the tokens that stay is kept; both lists are by id. */
static struct use *keep_uses(const struct weft_auth *auth, const struct weft_token_rows *tokens,
                             struct weft_arena *arena)
{
    struct use *use = weft_new_array(arena, struct use, tokens->count + 1);
    for (size_t i = 0, k = 0; i < tokens->count; i++) {
        const struct weft_token_row *row = &tokens->item[i];
        while (k < auth->tokens.count && auth->tokens.item[k].id < row->id)
            k++;
        if (k < auth->tokens.count && auth->tokens.item[k].id == row->id)
            use[i] = auth->use[k];
        if (use[i].written_us < row->last_used_us)
            use[i].written_us = row->last_used_us;
    }
    return use;
}

/*
 * No query is made under the lock, so two loads may overlap: that of the poll and that of a request
 * which has just revoked a token. The load that began later saw every commit before it began, so
 * its tokens stay, whichever load returns last.
 */
enum weft_rc weft_auth_load(struct weft_auth *auth, struct weft_engine *engine,
                            struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_token_rows tokens;
    pthread_mutex_lock(&auth->lock);
    uint64_t number = ++auth->begun;
    pthread_mutex_unlock(&auth->lock);
    enum weft_rc rc = weft_engine_tokens(engine, arena, &tokens, err);
    struct weft_arena *surplus = arena;
    pthread_mutex_lock(&auth->lock);
    if (!rc && number > auth->loaded) {
        auth->use = keep_uses(auth, &tokens, arena);
        surplus = auth->arena;
        auth->arena = arena;
        auth->tokens = tokens;
        auth->loaded = number;
    }
    pthread_mutex_unlock(&auth->lock);
    weft_arena_free(surplus);
    return rc;
}

/* ---- Last use -------------------------------------------------------------------------------- */

static bool is_to_write(const struct use *use, bool all)
{
    return use->used_us > use->written_us &&
           (all || use->wrote_us == 0 || weft_boot_us() - use->wrote_us >= REWRITE_US);
}

/* Under the lock: what the store has now. */
static void note_written(struct weft_auth *auth, const struct weft_token_use *use, size_t count)
{
    for (size_t i = 0, k = 0; i < count; i++) {
        while (k < auth->tokens.count && auth->tokens.item[k].id < use[i].id)
            k++;
        if (k == auth->tokens.count || auth->tokens.item[k].id != use[i].id)
            continue; /* revoked meanwhile */
        auth->use[k].written_us = use[i].at_us;
        auth->use[k].wrote_us = weft_boot_us();
    }
}

enum weft_rc weft_auth_write_uses(struct weft_auth *auth, struct weft_engine *engine, bool all,
                                  struct weft_err *err)
{
    struct weft_token_use use[WRITE_MAX];
    size_t count = 0;
    pthread_mutex_lock(&auth->lock);
    for (size_t i = 0; i < auth->tokens.count && count < WRITE_MAX; i++)
        if (is_to_write(&auth->use[i], all))
            use[count++] = (struct weft_token_use){.id = auth->tokens.item[i].id,
                                                   .at_us = auth->use[i].used_us};
    pthread_mutex_unlock(&auth->lock);
    enum weft_rc rc = weft_engine_tokens_used(engine, use, count, err);
    pthread_mutex_lock(&auth->lock);
    if (!rc)
        note_written(auth, use, count);
    pthread_mutex_unlock(&auth->lock);
    return rc;
}

void weft_auth_show_uses(struct weft_auth *auth, struct weft_token *token, size_t count)
{
    pthread_mutex_lock(&auth->lock);
    for (size_t k = 0; k < auth->tokens.count; k++)
        for (size_t i = 0; i < count; i++)
            if (token[i].id == auth->tokens.item[k].token &&
                auth->use[k].used_us > token[i].last_used_us)
                token[i].last_used_us = auth->use[k].used_us;
    pthread_mutex_unlock(&auth->lock);
}

size_t weft_auth_count(struct weft_auth *auth)
{
    pthread_mutex_lock(&auth->lock);
    size_t count = auth->tokens.count;
    pthread_mutex_unlock(&auth->lock);
    return count;
}

/* Under the lock. The index of the secret; SIZE_MAX: the store has no such secret. */
static size_t find_token(const struct weft_auth *auth, const char *text)
{
    int32_t id;
    uint8_t hash[WEFT_TOKEN_HASH];
    if (!weft_token_parse(text, &id, hash))
        return SIZE_MAX;
    for (size_t i = 0; i < auth->tokens.count; i++)
        if (auth->tokens.item[i].id == id)
            return weft_token_same(auth->tokens.item[i].hash, hash) ? i : SIZE_MAX;
    return SIZE_MAX;
}

/* Under the lock: why an expired secret is refused. */
static enum weft_rc refuse_expired(const struct weft_auth *auth, size_t at, struct weft_err *err)
{
    for (size_t i = at + 1; i < auth->tokens.count; i++)
        if (auth->tokens.item[i].token == auth->tokens.item[at].token)
            return weft_fail(err, WEFT_UNAUTHORIZED,
                             "the token was rotated and this secret is no longer good");
    return weft_fail(err, WEFT_UNAUTHORIZED, "the token has expired");
}

static enum weft_rc use_token(struct weft_auth *auth, const struct weft_credentials *given,
                              struct weft_request *request, struct weft_err *err)
{
    static const char scheme[] = "Bearer ";
    if (strncasecmp(given->authorization, scheme, sizeof(scheme) - 1) != 0)
        return weft_hint(
            err,
            weft_fail(err, WEFT_UNAUTHORIZED, "the Authorization header holds no bearer token"),
            "send the header Authorization: Bearer TOKEN");
    enum weft_rc rc = WEFT_OK;
    pthread_mutex_lock(&auth->lock);
    size_t at = find_token(auth, given->authorization + sizeof(scheme) - 1);
    const struct weft_token_row *token = at == SIZE_MAX ? NULL : &auth->tokens.item[at];
    if (!token) {
        rc = weft_fail(err, WEFT_UNAUTHORIZED, "the token is not known");
    } else if (token->expires_us && token->expires_us <= given->now_us) {
        rc = refuse_expired(auth, at, err);
    } else {
        if (auth->use[at].used_us < given->now_us)
            auth->use[at].used_us = given->now_us;
        request->token = token->token;
        request->secret = (struct weft_request_secret){
            .id = token->id, .load = auth->loaded, .expires_us = token->expires_us};
        request->scopes = token->scopes;
        request->ns_fixed = token->ns != NULL;
        request->ns = token->ns ? weft_arena_strdup(request->arena, token->ns) : NULL;
    }
    pthread_mutex_unlock(&auth->lock);
    if (rc)
        err->hint =
            "an admin makes one with `weft token create`; where there is no admin token "
            "yet, `weft token create --store URL` makes it on the server's store";
    return rc;
}

/*
 * A request that waits outlives the moment at which its token was looked at. The usual case, that
 * the tokens were not read again since then, takes no lock: `load` then says that the secret is in
 * the list that is shown, with this expiry.
 */
enum weft_rc weft_auth_again(struct weft_server *server, struct weft_request *request,
                             struct weft_err *err)
{
    struct weft_auth *auth = server->auth;
    struct weft_request_secret *secret = &request->secret;
    bool good = true;
    if (secret->id == 0)
        return WEFT_OK;
    if (secret->load != atomic_load(&auth->loaded)) {
        good = false;
        pthread_mutex_lock(&auth->lock);
        for (size_t i = 0; i < auth->tokens.count && !good; i++) {
            if (auth->tokens.item[i].id != secret->id)
                continue;
            good = true;
            secret->expires_us = auth->tokens.item[i].expires_us;
            secret->load = auth->loaded;
        }
        pthread_mutex_unlock(&auth->lock);
    }
    if (good && (secret->expires_us == 0 ||
                 secret->expires_us > weft_clock_now(weft_engine_clock(server->engine))))
        return WEFT_OK;
    return weft_fail(err, WEFT_UNAUTHORIZED,
                     good ? "the token has expired while the request waited"
                          : "the token was revoked while the request waited");
}

/* The namespace that was asked for, unless the token has one. */
static enum weft_rc use_namespace(const struct weft_credentials *given,
                                  struct weft_request *request, struct weft_err *err)
{
    if (given->ns && !weft_name_valid(given->ns))
        return weft_invalid(err, "X-Weft-Namespace",
                            "the namespace has characters that are not allowed, or is too long");
    if (request->ns_fixed && given->ns && strcmp(given->ns, request->ns) != 0)
        return weft_fail(err, WEFT_FORBIDDEN, "the token is for namespace '%s'", request->ns);
    if (!request->ns_fixed)
        request->ns = given->ns ? weft_arena_strdup(request->arena, given->ns) : "default";
    return WEFT_OK;
}

enum weft_rc weft_auth_check(struct weft_auth *auth, const struct weft_credentials *given,
                             struct weft_request *request, struct weft_err *err)
{
    request->ns = "default";
    request->scopes = WEFT_SCOPE_ADMIN;
    request->token = 0;
    request->secret = (struct weft_request_secret){0};
    if (request->route->op->scope == WEFT_SCOPE_NONE)
        return WEFT_OK;
    enum weft_rc rc = WEFT_OK;
    if (given->authorization) {
        rc = use_token(auth, given, request, err);
    } else if (auth->required) {
        rc = weft_fail(err, WEFT_UNAUTHORIZED, "this server wants a token");
        err->hint =
            "send the header Authorization: Bearer TOKEN; the first token is made on the "
            "server's store: `weft token create --store URL --name ME --scopes admin`";
    } else {
        rc = weft_web_page_check(&given->page, err);
    }
    if (!rc)
        rc = use_namespace(given, request, err);
    bool allowed = weft_scope_allows(request->scopes, request->route->op->scope) ||
                   (request->route->or_work && weft_scope_allows(request->scopes, WEFT_SCOPE_WORK));
    if (!rc && !allowed) {
        char needed[WEFT_SCOPES_TEXT];
        weft_scopes_print(request->route->op->scope, needed);
        rc = weft_fail(err, WEFT_FORBIDDEN, "the token lacks the scope '%s'", needed);
    }
    return rc;
}
