/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A token that is rotated by one replica while another revokes or rotates it: a secret must never
 * outlive its revocation, and two rotations must leave one current secret.
 */

#include "race.h"

#include "base/arena.h"
#include "core/token.h"
#include "engine/admin/tokens.h"
#include "store/fault/fault.h"

struct token_run {
    struct weft_engine *engine;
    int32_t id;
    bool rotate;
    enum weft_rc rc;
    struct weft_err err;
};

static void run_token(void *context)
{
    struct token_run *run = context;
    struct weft_arena *arena = weft_arena_new();
    struct weft_token token;
    const struct weft_token_rotation rotation = {.id = run->id};
    run->rc = run->rotate
                  ? weft_engine_token_rotate(run->engine, NULL, &rotation, arena, &token, &run->err)
                  : weft_engine_token_revoke(run->engine, NULL, run->id, arena, &token, &run->err);
    weft_arena_free(arena);
}

static int32_t make_token(struct weft_engine *engine)
{
    struct weft_token_row row = {.name = "race", .scopes = WEFT_SCOPE_READ};
    struct weft_err err = {0};
    if (weft_engine_token_add(engine, &row, &err))
        bail_out("token: %s", err.text);
    return row.id;
}

/* All secrets of the token, and how many of them are good. */
static size_t count_secrets(struct race *race, int32_t id, size_t *ret_good)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_token_rows rows = {0};
    struct weft_err err = {0};
    size_t count = 0;
    *ret_good = 0;
    if (weft_engine_tokens(race->b, arena, &rows, &err))
        bail_out("tokens: %s", err.text);
    for (size_t i = 0; i < rows.count; i++) {
        if (rows.item[i].token != id)
            continue;
        count++;
        *ret_good += rows.item[i].expires_us == 0 || rows.item[i].expires_us > race->now_us;
    }
    weft_arena_free(arena);
    return count;
}

/* A rotation stands before its commit when the second call comes. */
static struct token_run meet(struct race *race, bool rotate, int32_t id)
{
    struct stop stop;
    stop_init(&stop);
    struct ambush ambush = {.point = WEFT_FAULT_BEFORE_COMMIT,
                            .stmt = WEFT_STMT_TOKEN_ADD,
                            .act = ambush_stop,
                            .context = &stop};
    struct token_run first = {.engine = race->a, .id = id, .rotate = true};
    struct token_run second = {.engine = race->b, .id = id, .rotate = rotate};
    struct task slow = {.run = run_token, .context = &first, .ambush = &ambush};
    struct task late = {.run = run_token, .context = &second};
    task_start(&slow);
    ok(stop_reached(&stop), "a rotation is about to commit");
    uint64_t calls = race_calls(race);
    task_start(&late);
    if (on_pg())
        ok(raw_wait(&race->place, race->raw,
                    "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = "
                    "'transactionid'"),
           "the second call waits for it");
    else
        ok(race_begun(race, calls), "the second call comes");
    stop_release(&stop);
    task_join(&slow);
    task_join(&late);
    is_int(first.rc, WEFT_OK, "the rotation succeeds");
    return second;
}

RACE(a_token_revoked_while_it_is_rotated)
{
    size_t good;
    int32_t id = make_token(race->a);
    struct token_run revocation = meet(race, false, id);
    is_int(revocation.rc, WEFT_OK, "the revocation succeeds");
    is_int(count_secrets(race, id, &good), 0, "no secret of the token is left");
}

RACE(a_token_rotated_twice_at_once)
{
    size_t good;
    int32_t id = make_token(race->a);
    struct token_run rotation = meet(race, true, id);
    is_int(rotation.rc, WEFT_OK, "the second rotation succeeds too");
    is_int(count_secrets(race, id, &good), 2, "the token and its newest secret are left");
    is_int(good, 1, "one of the two secrets is valid");
}
