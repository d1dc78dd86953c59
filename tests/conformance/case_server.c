/* SPDX-License-Identifier: Apache-2.0 */

/* What a server keeps beside the work: tokens, namespaces of executions, workers. */

#include "conformance.h"
#include "core/token.h"

/* ---- Tokens ---------------------------------------------------------------------------------- */

static struct weft_token_rows tokens(struct fixture *f)
{
    struct weft_token_rows rows = {0};
    is_int(weft_engine_tokens(f->b, f->arena, &rows, &f->err), WEFT_OK, "list the tokens");
    return rows;
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
    is_int(tokens(f).count, 0, "none at first");
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
    is_int(first.created_us, f->now_us, "and a time");
    struct weft_token_rows list = tokens(f);
    is_int(list.count, 2, "both are listed, by another process");
    const struct weft_token_row *a = &list.item[0], *b = &list.item[1];
    ok(a->id == first.id && strcmp(a->name, "ci") == 0 && !a->ns && a->scopes == first.scopes &&
           a->expires_us == 0 && a->created_us == f->now_us,
       "the first as it was added");
    ok(b->id == second.id && strcmp(b->ns, "team") == 0 && b->scopes == WEFT_SCOPE_ADMIN &&
           b->expires_us == second.expires_us,
       "the second as well");
    ok(weft_token_same(a->hash, first.hash) && weft_token_same(b->hash, second.hash),
       "with their hashes");
    is_int(weft_engine_token_revoke(f->b, first.id, &f->err), WEFT_OK, "revoke");
    is_int(weft_engine_token_revoke(f->a, first.id, &f->err), WEFT_NOT_FOUND, "only once");
    list = tokens(f);
    ok(list.count == 1 && list.item[0].id == second.id, "the other stays");
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
    is_int(tokens_number(f), seen[count - 1], "nothing changed");
    is_int(weft_engine_token_revoke(f->a, two, &f->err), WEFT_OK, "revoke the newest");
    is_int(tokens_number(f), seen[1], "the same set has the same number");
    int32_t three = add_token(f, "three");
    ok(three > two, "an id is not given twice");
    seen[count++] = tokens_number(f);
    is_int(weft_engine_token_revoke(f->a, one, &f->err), WEFT_OK, "revoke the oldest");
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
        {"expired", {.name = "a", .scopes = 1, .expires_us = f->now_us}, "expires"},
        {"expires never", {.name = "a", .scopes = 1, .expires_us = INT64_MAX}, "expires"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_token_row token = row[i].token;
        is_int(weft_engine_token_add(f->a, &token, &f->err), WEFT_INVALID_VALUE, "%s", row[i].name);
        is_str(f->err.field, row[i].field, "%s: the field is named", row[i].name);
    }
    is_int(tokens(f).count, 0, "none was added");
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
    is_str(ns[0], "theirs", "one");
    is_str(ns[1], "default", "another");
    is_str(ns[2], NULL, "one that does not exist");
    is_str(ns[3], "theirs", "the first once more");
    is_str(ns[4], "default", "one that is over");
    is_str(ns[5], "third", "one that waits");
    const struct weft_id_column none = {.stride = sizeof(*id)};
    is_int(weft_engine_namespaces(f->b, &none, ns, &f->err), WEFT_OK, "none");
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
    is_int(workers(f, "default").count, 0, "none at first");
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
    is_str(list.item[0].name, "w1", "by name");
    is_int(list.item[0].seen_us, f->now_us + 5, "as heard last");
    ok(list.item[0].lane_count == 0 && list.item[0].capability_count == 0, "without lanes");
    is_str(list.item[1].name, "w2", "the other");
    ok(list.item[1].lane_count == 2 && strcmp(list.item[1].lanes[1], "video") == 0, "its lanes");
    ok(list.item[1].capability_count == 2 && strcmp(list.item[1].capabilities[1], "a\"b") == 0,
       "what it can do");
    is_int(workers(f, "other").count, 1, "one elsewhere");
    is_int(workers(f, "nowhere").count, 0, "none where there is nothing");

    const struct weft_worker_seen old = {.ns = "default", .name = "w1", .seen_us = f->now_us};
    put_workers(f, &old, 1);
    is_int(workers(f, "default").item[0].seen_us, f->now_us + 5, "older news changes nothing");
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 3);
    is_int(claim_with(f, f->a, &(struct weft_claim){.worker = "w1", .max = 3}).count, 3, "claim");
    list = workers(f, "default");
    is_int(list.count, 2, "a claim adds no worker");
    ok(list.item[0].leases == 3 && list.item[1].leases == 0, "but its leases are counted");
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
    is_int(woken, MANY - 500, "somebody is told of each");
    struct weft_workers list = workers(f, "default");
    ok(list.count == 1 && strcmp(list.item[0].name, "stays") == 0, "it is off the list");
    is_int(list.item[0].leases, 500, "the other keeps its leases");
    is_int(renew(f, f->a, &kept.item[0]).err.rc, WEFT_OK, "which hold");
    is_int(renew(f, f->a, &elsewhere.item[0]).err.rc, WEFT_OK, "and so does that of the namesake");
    is_int(goodbye(f, "default", "gone"), 0, "once is enough");
    is_int(goodbye(f, "default", "nobody"), 0, "a stranger has none");
    is_int(goodbye(f, "nowhere", "nobody"), 0, "nor has one from nowhere");
    uint64_t released = 0;
    is_int(weft_engine_goodbye(f->a, "default", "a b", &released, &f->err), WEFT_INVALID_VALUE,
           "a name that is none");
}

CASE(worker_goodbye_is_a_release)
{
    struct weft_id id = submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    is_int(goodbye(f, "default", "worker-a"), 1, "one lease");
    struct weft_execution now = describe(f, &id);
    ok(now.state == WEFT_STATE_READY && now.attempt == 1 && !now.worker, "ready, no attempt spent");
    expect_last_attempt(f, &id, &(struct weft_attempt){.epoch = 1, .ended = "released"});
    is_int(complete(f, f->a, &lease, NULL).fence, WEFT_FENCE_RELEASED, "its word comes too late");
    is_int(claim_one(f, f->b).epoch, 2, "another takes it");
}
