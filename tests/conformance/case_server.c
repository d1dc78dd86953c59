/* SPDX-License-Identifier: Apache-2.0 */

/* Rows that a server keeps beside executions: tokens, namespaces, workers. */

#include "conformance.h"

#include "base/arena.h"
#include "base/id.h"
#include "core/token.h"
#include "engine/admin/tokens.h"
#include "engine/admin/workers.h"
#include "engine/job/claim.h"
#include "engine/ready/poll.h"
#include "engine/tx/batch.h"
#include "engine/tx/commit_effects.h"
#include "weft/weft.h"

/* ---- Tokens ---------------------------------------------------------------------------------- */

static struct weft_token_rows tokens(struct fixture *f)
{
    struct weft_token_rows rows = {0};
    is_int(weft_engine_tokens(f->b, f->arena, &rows, &f->err), WEFT_OK, "list the tokens");
    return rows;
}

static enum weft_rc revoke(struct fixture *f, struct weft_engine *engine, int32_t id)
{
    struct weft_token before;
    return weft_engine_token_revoke(engine, NULL, id, f->arena, &before, &f->err);
}

static int64_t tokens_number(struct fixture *f)
{
    struct weft_poll poll = {0};
    is_int(weft_engine_poll(f->b, f->arena, &poll, &f->err), WEFT_OK, "poll");
    return poll.tokens;
}

static int32_t add_token(struct fixture *f, const char *name)
{
    struct weft_token_row token = {.name = name, .scopes = WEFT_SCOPE_READ};
    is_int(weft_engine_token_add(f->a, &token, &f->err), WEFT_OK, "add %s", name);
    return token.id;
}

CASE(token_add_list_revoke)
{
    is_int(tokens(f).count, 0, "a new store has no tokens");
    struct weft_token_row first = {.name = "ci", .scopes = WEFT_SCOPE_SUBMIT | WEFT_SCOPE_READ};
    struct weft_token_row second = {.name = "ci",
                                    .ns = "team",
                                    .scopes = WEFT_SCOPE_ADMIN,
                                    .expires_us = f->now_us + WEFT_SECOND};
    weft_token_hash("one", first.hash);
    weft_token_hash("two", second.hash);
    is_int(weft_engine_token_add(f->a, &first, &f->err), WEFT_OK, "add one");
    is_int(weft_engine_token_add(f->a, &second, &f->err), WEFT_OK, "add another of that name");
    ok(first.id > 0 && second.id > first.id, "each has an id");
    is_int(first.created_us, f->now_us, "a token has its time of creation");
    struct weft_token_rows list = tokens(f);
    is_int(list.count, 2, "another process lists both tokens");
    const struct weft_token_row *a = &list.item[0], *b = &list.item[1];
    ok(a->id == first.id && strcmp(a->name, "ci") == 0 && !a->ns && a->scopes == first.scopes &&
           a->expires_us == 0 && a->created_us == f->now_us,
       "the first as it was added");
    ok(b->id == second.id && strcmp(b->ns, "team") == 0 && b->scopes == WEFT_SCOPE_ADMIN &&
           b->expires_us == second.expires_us,
       "the second as well");
    ok(weft_token_same(a->hash, first.hash) && weft_token_same(b->hash, second.hash),
       "both tokens have their hashes");
    is_int(revoke(f, f->b, first.id), WEFT_OK, "revoke");
    is_int(revoke(f, f->a, first.id), WEFT_NOT_FOUND, "a revoked token cannot be revoked again");
    list = tokens(f);
    ok(list.count == 1 && list.item[0].id == second.id, "the other token stays in the list");
}

CASE(token_changes_are_seen_by_the_poll)
{
    int64_t seen[8];
    size_t count = 0;
    seen[count++] = tokens_number(f);
    int32_t one = add_token(f, "one");
    seen[count++] = tokens_number(f);
    int32_t two = add_token(f, "two");
    seen[count++] = tokens_number(f);
    is_int(tokens_number(f), seen[count - 1], "the number of the tokens stays without a change");
    is_int(revoke(f, f->a, two), WEFT_OK, "revoke the newest");
    is_int(tokens_number(f), seen[1], "the same set has the same number");
    int32_t three = add_token(f, "three");
    ok(three > two, "an id is not given twice");
    seen[count++] = tokens_number(f);
    is_int(revoke(f, f->a, one), WEFT_OK, "revoke the oldest");
    seen[count++] = tokens_number(f);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            ok(seen[i] != seen[k], "sets %zu and %zu differ", k, i);
}

CASE(token_input)
{
    const struct {
        const char *name;
        struct weft_token_row token;
        const char *field;
    } row[] = {
        {"no name", {.scopes = 1}, "name"},
        {"bad name", {.name = "a b", .scopes = 1}, "name"},
        {"bad namespace", {.name = "a", .ns = "", .scopes = 1}, "namespace"},
        {"no scope", {.name = "a"}, "scopes"},
        {"unknown scope", {.name = "a", .scopes = 16}, "scopes"},
        {"expired", {.name = "a", .scopes = 1, .expires_us = f->now_us}, "expires_at"},
        {"expires never", {.name = "a", .scopes = 1, .expires_us = INT64_MAX}, "expires_at"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_token_row token = row[i].token;
        is_int(weft_engine_token_add(f->a, &token, &f->err), WEFT_INVALID_VALUE, "%s", row[i].name);
        is_str(f->err.field, row[i].field, "%s: the field is named", row[i].name);
    }
    is_int(tokens(f).count, 0, "no refused token was added");
}

/* ---- Tokens as callers manage them ----------------------------------------------------------- */

static const char *const read_only[] = {"read"}, *const two_scopes[] = {"submit", "read"},
                         *const admin_only[] = {"admin"};

/* The row of the secret in a text, NULL: the text opens nothing (any more). */
static const struct weft_token_row *row_of(struct fixture *f, const char *text)
{
    int32_t id = 0;
    uint8_t hash[WEFT_TOKEN_HASH];
    struct weft_token_rows rows = tokens(f);
    ok(weft_token_parse(text, &id, hash), "the text has the form of a token");
    for (size_t i = 0; i < rows.count; i++)
        if (rows.item[i].id == id && weft_token_same(rows.item[i].hash, hash))
            return &rows.item[i];
    return NULL;
}

static bool is_good(struct fixture *f, const char *text)
{
    const struct weft_token_row *row = row_of(f, text);
    return row && (row->expires_us == 0 || row->expires_us > f->now_us);
}

static struct weft_token create(struct fixture *f, const struct weft_token_spec *spec)
{
    struct weft_token token = {0};
    is_int(weft_engine_token_create(f->a, NULL, spec, f->arena, &token, &f->err), WEFT_OK,
           "create %s", spec->name);
    return token;
}

static struct weft_token rotate(struct fixture *f, const struct weft_token_rotation *rotation)
{
    struct weft_token token = {0};
    is_int(weft_engine_token_rotate(f->b, NULL, rotation, f->arena, &token, &f->err), WEFT_OK,
           "rotate %d", rotation->id);
    return token;
}

static struct weft_tokens list_tokens(struct fixture *f, const struct weft_token_caller *caller)
{
    struct weft_tokens list = {0};
    is_int(weft_engine_token_list(f->b, caller, f->arena, &list, &f->err), WEFT_OK, "list");
    return list;
}

CASE(token_create)
{
    const struct weft_token_spec spec = {.name = "billing",
                                         .scopes = two_scopes,
                                         .scope_count = 2,
                                         .ns = "acme",
                                         .expires_ms = 90000};
    struct weft_token made = create(f, &spec);
    ok(made.id > 0 && made.scope_count == 2 && strcmp(made.scopes[0], "read") == 0 &&
           strcmp(made.ns, "acme") == 0 && made.created_us == f->now_us &&
           made.expires_us == f->now_us + 90 * WEFT_SECOND,
       "the token has the fields that were asked for");
    ok(is_good(f, made.token), "the text of the token is accepted");
    struct weft_tokens list = list_tokens(f, NULL);
    ok(list.count == 1 && list.item[0].id == made.id && !list.item[0].token &&
           list.item[0].last_used_us == 0 && list.item[0].rotated_us == 0,
       "the token is listed without its text");
    const struct {
        const char *name;
        struct weft_token_spec spec;
        const char *field;
    } row[] = {
        {"no name", {.scopes = read_only, .scope_count = 1}, "name"},
        {"no scopes", {.name = "a"}, "scopes"},
        {"a scope that is none", {.name = "a", .scopes = &spec.name, .scope_count = 1}, "scopes"},
        {"two ends",
         {.name = "a", .scopes = read_only, .scope_count = 1, .expires_ms = 1, .expires_us = 9},
         "expires_ms"},
        {"a negative life",
         {.name = "a", .scopes = read_only, .scope_count = 1, .expires_ms = -1},
         "expires_ms"},
        {"an end that is past",
         {.name = "a", .scopes = read_only, .scope_count = 1, .expires_us = 9},
         "expires_at"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        is_int(weft_engine_token_create(f->a, NULL, &row[i].spec, f->arena, &made, &f->err),
               WEFT_INVALID_VALUE, "%s is refused", row[i].name);
        is_str(f->err.field, row[i].field, "%s: the field is named", row[i].name);
    }
    is_int(list_tokens(f, NULL).count, 1, "no refused token was made");
}

CASE(token_rotate)
{
    struct weft_token one =
        create(f, &(struct weft_token_spec){.name = "one", .scopes = read_only, .scope_count = 1});
    int64_t before = tokens_number(f);
    struct weft_token two = rotate(f, &(struct weft_token_rotation){.id = one.id});
    ok(tokens_number(f) != before, "the poll sees it");
    ok(two.id == one.id && strcmp(two.token, one.token) != 0, "the same token, another secret");
    ok(is_good(f, two.token) && !is_good(f, one.token), "the new one opens, the old one does not");
    ok(two.old_expires_us == 0 && two.rotated_us == f->now_us && two.expires_us == 0,
       "the rotated token has no old secret and no expiry");

    forward_ms(f, 1000);
    struct weft_token three =
        rotate(f, &(struct weft_token_rotation){.id = one.id, .grace_ms = 60000});
    is_int(three.old_expires_us, f->now_us + 60 * WEFT_SECOND,
           "the old secret expires after the grace");
    ok(is_good(f, two.token) && is_good(f, three.token), "both secrets are accepted");
    struct weft_tokens list = list_tokens(f, NULL);
    ok(list.count == 1 && list.item[0].id == one.id && list.item[0].rotated_us == f->now_us &&
           list.item[0].old_expires_us == three.old_expires_us && list.item[0].expires_us == 0,
       "the list has one token, with the time of its rotation");
    forward_ms(f, 60000);
    ok(!is_good(f, two.token) && is_good(f, three.token),
       "after the grace only the new secret is accepted");
    is_int(list_tokens(f, NULL).item[0].old_expires_us, 0,
           "after the grace the list has no old secret");

    struct weft_token four =
        rotate(f, &(struct weft_token_rotation){.id = one.id, .expires_ms = 5000});
    is_int(four.expires_us, f->now_us + 5 * WEFT_SECOND, "a rotation may set when it expires");
    is_int(tokens(f).count, 2, "secrets that are no longer good do not pile up");
    struct weft_token five =
        rotate(f, &(struct weft_token_rotation){.id = one.id, .grace_ms = 60000});
    ok(five.expires_us == four.expires_us && five.old_expires_us == four.expires_us,
       "the expiry stays; a grace does not outlast it");
    is_int(revoke(f, f->a, row_of(f, five.token)->id), WEFT_OK,
           "revoked by the number that is in its text");
    is_int(tokens(f).count, 0, "all its secrets are gone");
}

/* A binary from before rotations, which others may still run, deletes the row of the token alone.
 */
CASE(token_revoked_by_an_old_binary)
{
    struct weft_token one =
        create(f, &(struct weft_token_spec){.name = "one", .scopes = read_only, .scope_count = 1});
    struct weft_token two = rotate(f, &(struct weft_token_rotation){.id = one.id});
    ok(is_good(f, two.token), "a rotated token");
    int64_t number = tokens_number(f);
    run_sql(f, weft_arena_printf(f->arena, "DELETE FROM %stoken WHERE id = %d",
                                 is_pg(f) ? "weft." : "", one.id));
    ok(tokens_number(f) != number, "the poll sees that its row is gone");
    ok(!is_good(f, two.token), "the secrets of a deleted token are refused");
    is_int(list_tokens(f, NULL).count, 0, "a deleted token is not listed");
}

CASE(token_rotate_refused)
{
    struct weft_token made;
    is_int(weft_engine_token_rotate(f->a, NULL, &(struct weft_token_rotation){.id = 7}, f->arena,
                                    &made, &f->err),
           WEFT_NOT_FOUND, "a token that is not there");
    struct weft_token one =
        create(f, &(struct weft_token_spec){
                      .name = "one", .scopes = read_only, .scope_count = 1, .expires_ms = 1000});
    const struct weft_token_rotation negative = {.id = one.id, .grace_ms = -2};
    is_int(weft_engine_token_rotate(f->a, NULL, &negative, f->arena, &made, &f->err),
           WEFT_INVALID_VALUE, "a negative grace");
    is_str(f->err.field, "grace_ms", "the field is named");
    forward_ms(f, 1000);
    is_int(weft_engine_token_rotate(f->a, NULL, &(struct weft_token_rotation){.id = one.id},
                                    f->arena, &made, &f->err),
           WEFT_NOT_LIVE, "a token that has expired");
    is_int(tokens(f).count, 1, "a refused call makes no token");
}

/* The token of a request reaches no more than it has itself. */
CASE(token_callers)
{
    struct weft_token made;
    const struct weft_token_spec all = {.name = "all", .scopes = admin_only, .scope_count = 1};
    struct weft_token_spec blue = all, red = all;
    blue.ns = "blue";
    red.ns = "red";
    int32_t any_id = create(f, &all).id, red_id = create(f, &red).id;
    const struct weft_token_caller caller = {.rights = {.scopes = WEFT_SCOPE_ADMIN, .ns = "blue"},
                                             .token = create(f, &blue).id};
    is_int(weft_engine_token_create(f->a, &caller, &red, f->arena, &made, &f->err), WEFT_FORBIDDEN,
           "a bound admin makes none for another namespace");
    is_str(f->err.field, "namespace", "the field is named");
    is_int(weft_engine_token_create(f->a, &caller, &all, f->arena, &made, &f->err), WEFT_OK,
           "a bound admin makes a token without a namespace");
    is_str(made.ns, "blue", "a token without a namespace gets the namespace of the caller");
    struct weft_tokens list = list_tokens(f, &caller);
    ok(list.count == 2 && list.item[0].id == caller.token && list.item[1].id == made.id,
       "the list has the tokens of the caller's namespace");
    is_int(list_tokens(f, NULL).count, 4, "an unbound caller sees all");
    const int32_t foreign[] = {any_id, red_id};
    for (size_t i = 0; i < WEFT_LEN(foreign); i++) {
        const struct weft_token_rotation turn = {.id = foreign[i]};
        is_int(weft_engine_token_revoke(f->a, &caller, foreign[i], f->arena, &made, &f->err),
               WEFT_FORBIDDEN, "others cannot be revoked");
        is_int(weft_engine_token_rotate(f->a, &caller, &turn, f->arena, &made, &f->err),
               WEFT_FORBIDDEN, "a foreign token cannot be rotated");
    }
    is_int(tokens(f).count, 4, "no foreign token changed");
    const struct weft_token_caller reader = {.rights = {.scopes = WEFT_SCOPE_READ}};
    is_int(weft_engine_token_create(f->a, &reader, &all, f->arena, &made, &f->err), WEFT_FORBIDDEN,
           "no caller hands out a scope that it lacks");
    is_str(f->err.field, "scopes", "the field is named");

    /* the token in use stays good for a while, so that a lost answer locks no client out */
    const struct weft_token_rotation own = {.id = caller.token}, now = {caller.token, -1, 0, 0};
    is_int(weft_engine_token_rotate(f->a, &caller, &own, f->arena, &made, &f->err), WEFT_OK,
           "a caller may rotate its own token");
    is_int(made.old_expires_us, f->now_us + 60 * WEFT_SECOND,
           "the caller's old secret has a grace of a minute");
    is_int(weft_engine_token_rotate(f->a, &caller, &now, f->arena, &made, &f->err), WEFT_OK,
           "a caller may rotate its own token without a grace");
    is_int(made.old_expires_us, 0, "the old secret ends at once");
}

CASE(token_last_use)
{
    struct weft_token one =
        create(f, &(struct weft_token_spec){.name = "one", .scopes = read_only, .scope_count = 1});
    struct weft_token two = rotate(f, &(struct weft_token_rotation){.id = one.id, .grace_ms = 500});
    int32_t newer = row_of(f, two.token)->id;
    int64_t number = tokens_number(f);
    const struct weft_token_use use[] = {{one.id, f->now_us + 7}, {newer, f->now_us + 9}, {99, 1}};
    is_int(weft_engine_tokens_used(f->a, use, 3, &f->err), WEFT_OK, "two secrets were used");
    is_int(list_tokens(f, NULL).item[0].last_used_us, f->now_us + 9, "the later use counts");
    const struct weft_token_use old = {newer, f->now_us + 1};
    is_int(weft_engine_tokens_used(f->b, &old, 1, &f->err), WEFT_OK, "an older use is written");
    is_int(list_tokens(f, NULL).item[0].last_used_us, f->now_us + 9,
           "an older use changes nothing");
    is_int(weft_engine_tokens_used(f->b, NULL, 0, &f->err), WEFT_OK,
           "a call without uses succeeds");
    is_int(tokens_number(f), number, "no replica reads the tokens again for that");
}

/* ---- Namespaces ------------------------------------------------------------------------------ */

CASE(namespaces_of_executions)
{
    struct weft_id id[6];
    id[0] = submit_ok(f, &(struct weft_spec){.ns = "theirs", .kind = "job"});
    id[1] = submit_job(f);
    weft_id_new(&id[2], f->now_us, -1);
    id[3] = id[0];
    struct weft_claimed lease = claim_one(f, f->a);
    (void)complete(f, f->a, &lease, NULL);
    id[4] = lease.id; /* ended */
    id[5] = submit_ok(f, &(struct weft_spec){.ns = "third", .kind = "job", .delay_ms = 1000});
    const char *ns[6];
    const struct weft_id_column column = {.first = id, .stride = sizeof(*id), .count = 6};
    is_int(weft_engine_namespaces(f->b, &column, ns, &f->err), WEFT_OK, "asked by a stranger");
    is_str(ns[0], "theirs", "the first id has its namespace");
    is_str(ns[1], "default", "the second id has its namespace");
    is_str(ns[2], NULL, "one that does not exist");
    is_str(ns[3], "theirs", "the first once more");
    is_str(ns[4], "default", "one that is over");
    is_str(ns[5], "third", "one that waits");
    const struct weft_id_column none = {.stride = sizeof(*id)};
    is_int(weft_engine_namespaces(f->b, &none, ns, &f->err), WEFT_OK,
           "a call without ids succeeds");
}

/* ---- Workers --------------------------------------------------------------------------------- */

static struct weft_workers workers(struct fixture *f, const char *ns)
{
    struct weft_workers list = {0};
    is_int(weft_engine_workers(f->b, ns, f->arena, &list, &f->err), WEFT_OK, "list the workers");
    return list;
}

static void put_workers(struct fixture *f, const struct weft_worker_seen *seen, size_t count)
{
    enum weft_rc rc = weft_engine_workers_put(f->a, seen, count, &f->err);
    ok(rc == WEFT_OK, "put workers%s%s", rc ? ": " : "", rc ? f->err.text : "");
}

CASE(worker_list)
{
    static const char *const lanes[] = {"mail", "video"}, *const tokens_of[] = {"gpu", "a\"b"};
    is_int(workers(f, "default").count, 0, "a new store has no workers");
    const struct weft_worker_seen seen[] = {
        {.ns = "default",
         .name = "w2",
         .lanes = lanes,
         .lane_count = 2,
         .capabilities = tokens_of,
         .capability_count = 2,
         .seen_us = f->now_us},
        {.ns = "default", .name = "w1", .seen_us = f->now_us},
        {.ns = "other", .name = "w2", .seen_us = f->now_us},
        {.ns = "default", .name = "w1", .seen_us = f->now_us + 5},
        {.ns = "default", .name = "w1", .seen_us = f->now_us + 3},
    };
    put_workers(f, seen, WEFT_LEN(seen));
    put_workers(f, NULL, 0);
    struct weft_workers list = workers(f, "default");
    is_int(list.count, 2, "two in this namespace");
    is_str(list.item[0].name, "w1", "workers are listed by name");
    is_int(list.item[0].seen_us, f->now_us + 5, "the worker has the time it was last seen");
    ok(list.item[0].lane_count == 0 && list.item[0].capability_count == 0,
       "a worker without lanes and capabilities has none");
    is_str(list.item[1].name, "w2", "the second worker is listed");
    ok(list.item[1].lane_count == 2 && strcmp(list.item[1].lanes[1], "video") == 0,
       "the worker has its lanes");
    ok(list.item[1].capability_count == 2 && strcmp(list.item[1].capabilities[1], "a\"b") == 0,
       "the worker has its capabilities");
    is_int(workers(f, "other").count, 1, "the other namespace has one worker");
    is_int(workers(f, "nowhere").count, 0, "an unknown namespace has no workers");

    const struct weft_worker_seen old = {.ns = "default", .name = "w1", .seen_us = f->now_us};
    put_workers(f, &old, 1);
    is_int(workers(f, "default").item[0].seen_us, f->now_us + 5, "older news changes nothing");
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 3);
    is_int(claim_with(f, f->a, &(struct weft_claim){.worker = "w1", .max = 3}).count, 3,
           "worker w1 claims three");
    list = workers(f, "default");
    is_int(list.count, 2, "a claim adds no worker");
    ok(list.item[0].leases == 3 && list.item[1].leases == 0, "the leases are counted per worker");
    const struct weft_worker_seen bad = {.ns = "default", .name = "a b"};
    is_int(weft_engine_workers_put(f->a, &bad, 1, &f->err), WEFT_INVALID_VALUE, "a bad name");
}

static uint64_t goodbye(struct fixture *f, const char *ns, const char *worker)
{
    uint64_t released = 0;
    enum weft_rc rc = weft_engine_goodbye(f->b, ns, worker, &released, &f->err);
    ok(rc == WEFT_OK, "goodbye of %s%s%s", worker, rc ? ": " : "", rc ? f->err.text : "");
    return released;
}

static void count_woken(void *context, const struct weft_news *news)
{
    for (size_t i = 0; i < news->count; i++)
        *(uint32_t *)context += news->woken[i].count;
}

CASE(worker_goodbye)
{
    enum { MANY = 2500 };
    uint32_t woken = 0;
    weft_engine_on_news(f->b, count_woken, &woken);
    for (int i = 0; i < MANY; i += 500)
        (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 500);
    for (int i = 0; i < MANY - 500; i += 500)
        is_int(claim_with(f, f->a, &(struct weft_claim){.worker = "gone", .max = 500}).count, 500,
               "claimed by the one that goes");
    struct weft_claim_result kept =
        claim_with(f, f->a, &(struct weft_claim){.worker = "stays", .max = 500});
    (void)submit_ok(f, &(struct weft_spec){.ns = "other", .kind = "job"});
    struct weft_claim_result elsewhere =
        claim_with(f, f->a, &(struct weft_claim){.ns = "other", .worker = "gone"});
    is_int(elsewhere.count, 1, "a namesake elsewhere");
    struct weft_worker_seen seen[] = {{.ns = "default", .name = "gone", .seen_us = f->now_us},
                                      {.ns = "default", .name = "stays", .seen_us = f->now_us}};
    put_workers(f, seen, 2);

    is_int(goodbye(f, "default", "gone"), MANY - 500, "all of its leases");
    is_int(woken, MANY - 500, "each released execution is in the news");
    struct weft_workers list = workers(f, "default");
    ok(list.count == 1 && strcmp(list.item[0].name, "stays") == 0,
       "the worker is not listed any more");
    is_int(list.item[0].leases, 500, "the other keeps its leases");
    put_workers(f, seen, 1);
    is_int(workers(f, "default").count, 1,
           "a sighting from before the goodbye does not list the worker again");
    seen[0].seen_us = f->now_us + 1000000;
    put_workers(f, seen, 1);
    is_int(workers(f, "default").count, 2, "a claim after the goodbye lists the worker again");
    is_int(goodbye(f, "default", "gone"), 0, "a second goodbye of the worker releases nothing");
    is_int(renew(f, f->a, &kept.item[0]).err.rc, WEFT_OK, "a lease of another worker holds");
    is_int(renew(f, f->a, &elsewhere.item[0]).err.rc, WEFT_OK,
           "the lease of the namesake in another namespace holds");
    is_int(goodbye(f, "default", "gone"), 0, "a third goodbye releases nothing");
    is_int(goodbye(f, "default", "absent"), 0,
           "a goodbye of an unknown worker gives no leases back");
    is_int(goodbye(f, "nowhere", "absent"), 0,
           "a goodbye in an unknown namespace gives no leases back");
    uint64_t released = 0;
    is_int(weft_engine_goodbye(f->a, "default", "a b", &released, &f->err), WEFT_INVALID_VALUE,
           "a malformed worker name is refused");
}

CASE(worker_goodbye_is_a_release)
{
    struct weft_id id = submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    is_int(goodbye(f, "default", "worker-a"), 1, "the goodbye releases one lease");
    struct weft_execution now = describe(f, &id);
    ok(now.state == WEFT_STATE_READY && now.attempt == 1 && !now.worker, "ready, no attempt spent");
    expect_last_attempt(f, &id, &(struct weft_attempt){.epoch = 1, .ended = "released"});
    is_int(complete(f, f->a, &lease, NULL).fence, WEFT_FENCE_RELEASED,
           "a completion after the goodbye is fenced as released");
    is_int(claim_one(f, f->b).epoch, 2, "another takes it");
}
