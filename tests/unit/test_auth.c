/* SPDX-License-Identifier: Apache-2.0 */

/* The tokens that a server has in memory: which load of them is shown, and when uses are written.
 */

#include "support.h"

#include "base/arena.h"
#include "core/token.h"
#include "engine/admin/tokens.h"
#include "engine/engine.h"
#include "net/auth.h"
#include "net/request.h"
#include "store/fault/fault.h"
#include "store/store.h"

static struct weft_err err;
static struct weft_engine *engine;

static struct weft_token make_token(struct weft_arena *arena, const char *name, const char *scope)
{
    struct weft_token token = {0};
    const struct weft_token_spec spec = {.name = name, .scopes = &scope, .scope_count = 1};
    if (weft_engine_token_create(engine, NULL, &spec, arena, &token, &err))
        bail_out("token: %s", err.text);
    return token;
}

static struct weft_tokens list_tokens(struct weft_arena *arena)
{
    struct weft_tokens tokens = {0};
    if (weft_engine_token_list(engine, NULL, arena, &tokens, &err))
        bail_out("tokens: %s", err.text);
    return tokens;
}

/* A request with this token, at this time of the store. */
static enum weft_rc ask_with(struct weft_auth *auth, const struct weft_token *token,
                             weft_usec now_us, struct weft_request *ret_ask)
{
    static const struct weft_op_info op = {.method = "GET", .scope = WEFT_SCOPE_READ};
    static const struct weft_route route = {.op = &op};
    struct weft_arena *arena = weft_arena_new();
    const struct weft_credentials given = {
        .authorization = weft_arena_printf(arena, "Bearer %s", token->token), .now_us = now_us};
    *ret_ask = (struct weft_request){.route = &route, .arena = arena};
    enum weft_rc rc = weft_auth_check(auth, &given, ret_ask, &err);
    weft_arena_free(arena);
    return rc;
}

/* ---- Loads that overlap ---------------------------------------------------------------------- */

struct load_run {
    struct weft_auth *auth;
    enum weft_rc rc;
    struct weft_err err;
};

static void run_load(void *context)
{
    struct load_run *run = context;
    run->rc = weft_auth_load(run->auth, engine, &run->err);
}

/* The poll has read the tokens and not yet shown them when a request revokes one. */
static void test_loads_overlap(struct weft_arena *arena)
{
    struct stop stop;
    stop_init(&stop);
    struct ambush ambush = {.point = WEFT_FAULT_AFTER_RUN,
                            .stmt = WEFT_STMT_TOKENS,
                            .act = ambush_stop,
                            .context = &stop};
    struct weft_auth *auth = weft_auth_new(true);
    struct weft_token token = make_token(arena, "gone", "read"), before;
    struct load_run older = {.auth = auth}, newer = {.auth = auth};
    struct task slow = {.run = run_load, .context = &older, .ambush = &ambush};
    struct weft_request request;
    task_start(&slow);
    ok(stop_reached(&stop), "a load has read the token");
    is_int(weft_engine_token_revoke(engine, NULL, token.id, arena, &before, &err), WEFT_OK,
           "the token is revoked during the load");
    run_load(&newer);
    ok(newer.rc == WEFT_OK && weft_auth_count(auth) == 0, "a later load shows that");
    stop_release(&stop);
    task_join(&slow);
    is_int(older.rc, WEFT_OK, "the first one comes back");
    is_int(weft_auth_count(auth), 0, "a slow reload brings no revoked token back");
    is_int(ask_with(auth, &token, 1, &request), WEFT_UNAUTHORIZED, "the token is refused");
    weft_auth_free(auth);
}

/* ---- Last use -------------------------------------------------------------------------------- */

static weft_usec written_of(struct weft_arena *arena, int32_t id)
{
    struct weft_tokens tokens = list_tokens(arena);
    for (size_t i = 0; i < tokens.count; i++)
        if (tokens.item[i].id == id)
            return tokens.item[i].last_used_us;
    return -1;
}

static void test_last_use(struct weft_arena *arena)
{
    struct weft_auth *auth = weft_auth_new(true);
    struct weft_token reader = make_token(arena, "reader", "read");
    struct weft_token worker = make_token(arena, "worker", "work");
    struct weft_request request;
    is_int(weft_auth_load(auth, engine, &err), WEFT_OK, "two tokens are loaded");
    is_int(ask_with(auth, &reader, 1000, &request), WEFT_OK, "one is used");
    is_int(request.token, reader.id, "the request has the id of its token");
    is_int(ask_with(auth, &worker, 1001, &request), WEFT_FORBIDDEN, "the other lacks the scope");
    is_int(written_of(arena, reader.id), 0, "a request writes nothing");
    struct weft_tokens shown = list_tokens(arena);
    struct weft_token *item = weft_new_array(arena, struct weft_token, shown.count);
    memcpy(item, shown.item, shown.count * sizeof(*item));
    weft_auth_show_uses(auth, item, shown.count);
    is_int(item[0].last_used_us, 1000, "the last use known to this server is shown");

    is_int(weft_auth_write_uses(auth, engine, false, &err), WEFT_OK, "upkeep writes");
    is_int(written_of(arena, reader.id), 1000, "the use of the reader is written");
    is_int(written_of(arena, worker.id), 1001, "the use by a token without the scope is written");
    is_int(ask_with(auth, &reader, 2000, &request), WEFT_OK, "the token is used again");
    is_int(weft_auth_load(auth, engine, &err), WEFT_OK, "the tokens are read again");
    is_int(weft_auth_write_uses(auth, engine, false, &err), WEFT_OK, "upkeep comes by");
    is_int(written_of(arena, reader.id), 1000, "within a minute it is not written again");
    is_int(weft_auth_write_uses(auth, engine, true, &err), WEFT_OK, "when the server stops");
    is_int(written_of(arena, reader.id), 2000, "a stopping server writes the last use");
    weft_auth_free(auth);
}

int main(void)
{
    struct place place;
    struct weft_fault fault = {.inner = &weft_driver_sqlite, .hook = ambush_hook};
    tests_begin("auth");
    place_init(&place, "auth");
    engine = place_open(&place, weft_fault_install(&fault), 0);
    struct weft_arena *arena = weft_arena_new();
    test_loads_overlap(arena);
    test_last_use(arena);
    weft_arena_free(arena);
    weft_engine_close(engine);
    place_done(&place);
    return tests_end();
}
