/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Turns the requests that an engine thread took from the queues into calls of the engine: the
 * requests of a kind become one call, and the calls of several kinds one transaction
 * (weft_engine_together()).
 */

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "engine/admin/tokens.h"
#include "engine/job/joint.h"
#include "engine/tx/batch.h"
#include "net/api/api_control.h"
#include "net/group/claims.h"
#include "net/group/group.h"
#include "net/group/kinds.h"
#include "net/http/loop.h"
#include "net/metrics.h"
#include "net/request.h"
#include "net/server.h"
#include "weft/weft.h"

#include <string.h>

/* ---- One kind -------------------------------------------------------------------------------- */

static void *item_at(const struct weft_items *items, const struct weft_kind *kind, size_t i)
{
    return (char *)items->item + i * kind->item_size;
}

/*
 * With a token that is bound to a namespace, leases must be of that namespace; executions of others
 * are answered as if they did not exist.
 */
static enum weft_rc check_namespaces(struct weft_server *server, const struct weft_kind *kind,
                                     struct weft_request *request, struct weft_err *err)
{
    const struct weft_items *items = &request->items;
    const char **ns = weft_new_array(request->arena, const char *, items->count + 1);
    const struct weft_id_column ids = {items->item, kind->item_size, items->count};
    enum weft_rc rc = weft_engine_namespaces(server->engine, &ids, ns, err);
    for (size_t i = 0; i < items->count && !rc; i++)
        if (!items->err[i].rc && (!ns[i] || strcmp(ns[i], request->ns) != 0))
            (void)weft_fail(&items->err[i], WEFT_NOT_FOUND, "there is no such execution");
    return rc;
}

/*
 * Copies the good items of a request to `to` and gives their answers the room they need; returns
 * how many they are.
 */
static size_t gather(const struct weft_kind *kind, const struct weft_request *request, char *to,
                     char *answer)
{
    size_t count = 0;
    for (size_t i = 0; i < request->items.count; i++) {
        if (request->items.err[i].rc)
            continue;
        char *item = to + count * kind->item_size;
        memcpy(item, item_at(&request->items, kind, i), kind->item_size);
        if (kind->item == WEFT_ITEM_FLOW) {
            struct weft_flow_spec *spec = (void *)item;
            struct weft_flow_submitted *room = (void *)(answer + count * kind->answer_size);
            spec->ns = request->ns;
            room->node = weft_new_array(request->arena, struct weft_id, spec->node_count + 1);
        }
        if (kind->item == WEFT_ITEM_SPEC)
            ((struct weft_spec *)(void *)item)->ns = request->ns;
        if (kind->item == WEFT_ITEM_STEER) {
            ((struct weft_steer *)(void *)item)->ns = request->ns;
            ((struct weft_steer_told *)(void *)(answer + count * kind->answer_size))->arena =
                request->arena;
        }
        count++;
    }
    return count;
}

/* Gives a request the answers of its good items; refused items have theirs in items.err. */
static size_t scatter(const struct weft_kind *kind, struct weft_request *request, const char *from)
{
    size_t count = 0;
    char *answer = weft_arena_alloc(request->arena, request->items.count + 1, kind->answer_size);
    for (size_t i = 0; i < request->items.count; i++)
        if (!request->items.err[i].rc)
            memcpy(answer + i * kind->answer_size, from + count++ * kind->answer_size,
                   kind->answer_size);
    request->items.answer = answer;
    return count;
}

/* The good items of several requests behind each other, and room for their answers. */
struct fold {
    struct weft_arena *arena; /* NULL: nothing to free */
    char *item, *answer;
    size_t count;
};

static struct fold fold_items(const struct weft_kind *kind, struct weft_request **request,
                              size_t count)
{
    size_t items = 0;
    for (size_t a = 0; a < count; a++)
        items += request[a]->items.count;
    struct fold fold = {.arena = weft_arena_new()};
    fold.item = weft_arena_alloc(fold.arena, items + 1, kind->item_size);
    fold.answer = weft_arena_alloc(fold.arena, items + 1, kind->answer_size);
    for (size_t a = 0; a < count; a++)
        fold.count += gather(kind, request[a], fold.item + fold.count * kind->item_size,
                             fold.answer + fold.count * kind->answer_size);
    return fold;
}

/* Gives each request its answers. */
static void unfold(const struct weft_kind *kind, const struct fold *fold,
                   struct weft_request **request, size_t count)
{
    size_t at = 0;
    for (size_t a = 0; a < count; a++)
        at += scatter(kind, request[a], fold->answer + at * kind->answer_size);
}

/* One engine call for all requests. WEFT_OK: their items are answered. */
static enum weft_rc call_together(struct weft_server *server, const struct weft_kind *kind,
                                  struct weft_request **request, size_t count, struct weft_err *err)
{
    struct fold fold = fold_items(kind, request, count);
    enum weft_rc rc =
        fold.count ? weft_kind_call(server->engine, kind, fold.item, fold.count, fold.answer, err)
                   : WEFT_OK;
    if (!rc)
        unfold(kind, &fold, request, count);
    weft_arena_free(fold.arena);
    return rc;
}

/* Sends the answers of requests, or the failure to all of them. */
static void finish(struct weft_request **request, size_t count, enum weft_rc rc,
                   const struct weft_err *err)
{
    for (size_t a = 0; a < count; a++) {
        if (rc)
            weft_reply_error(request[a], err);
        else
            request[a]->route->write(request[a]);
    }
    if (count > 0)
        weft_loop_answer(request[0]->server, request, count);
}

/* Takes out the requests whose namespaces cannot be checked; they are answered here. */
static size_t admit(struct weft_server *server, const struct weft_kind *kind,
                    struct weft_request **request, size_t count)
{
    size_t kept = 0;
    for (size_t a = 0; a < count; a++) {
        struct weft_err err = {0};
        enum weft_rc rc = kind->item == WEFT_ITEM_LEASE && request[a]->ns_fixed
                              ? check_namespaces(server, kind, request[a], &err)
                              : WEFT_OK;
        if (rc)
            finish(&request[a], 1, rc, &err);
        else
            request[kept++] = request[a];
    }
    return kept;
}

/* The request was not carried out because another transaction holds its flow. */
static bool met_lock(const struct weft_kind *kind, const struct weft_request *request)
{
    const struct weft_steer_told *told = request->items.answer;
    return kind->item == WEFT_ITEM_STEER && !request->items.err[0].rc &&
           told->steered.err.cause == WEFT_CAUSE_FLOW_LOCKED;
}

/*
 * Another transaction holds a flow that some request needs. Requests of which nothing was written,
 * all of them when the call failed, go into the class that runs alone: a request that has to wait
 * waits there by itself (waits.c), and the others do not wait with it. Returns how many are left.
 */
static size_t set_apart(struct weft_server *server, const struct weft_kind *kind,
                        const struct weft_group_part *lot, bool all)
{
    size_t kept = 0;
    for (size_t a = 0; a < lot->count; a++) {
        struct weft_request *request = lot->request[a];
        if (!all && !met_lock(kind, request)) {
            lot->request[kept++] = request;
            continue;
        }
        request->items.alone = true;
        weft_groups_put_again(server->groups, request);
    }
    return kept;
}

/* Answers requests whose call ended with rc. */
static void conclude(struct weft_server *server, const struct weft_kind *kind,
                     const struct weft_group_part *lot, enum weft_rc rc, struct weft_err *err)
{
    bool locked = rc && err->cause == WEFT_CAUSE_FLOW_LOCKED;
    if (locked || !rc) {
        size_t kept = set_apart(server, kind, lot, locked);
        finish(lot->request, kept, WEFT_OK, err);
        return;
    }
    weft_metric_add(server->metrics, WEFT_METRIC_STORE_FAILURES, 0, 1);
    /*
     * A call that fails as a whole has written nothing. When the store did not fail, an input of
     * one request should have been refused earlier: each request gets a call of its own.
     */
    if (lot->count > 1 && !weft_rc_retryable(rc)) {
        for (size_t a = 0; a < lot->count; a++) {
            rc = call_together(server, kind, &lot->request[a], 1, err);
            finish(&lot->request[a], 1, rc, err);
        }
        return;
    }
    finish(lot->request, lot->count, rc, err);
}

static void run_group(struct weft_server *server, struct weft_group_part lot)
{
    const struct weft_kind *kind = &weft_kinds[lot.group];
    struct weft_err err = {0};
    lot.count = admit(server, kind, lot.request, lot.count);
    if (lot.count == 0)
        return;
    enum weft_rc rc = call_together(server, kind, lot.request, lot.count, &err);
    conclude(server, kind, &lot, rc, &err);
}

/* ---- Several kinds --------------------------------------------------------------------------- */

/* A lot whose call is part of a joint one. */
struct share {
    struct weft_group_part lot;
    struct fold fold;
};

/* Three of them; a kind that was not taken has no requests. */
struct shares {
    struct weft_server *server;
    struct share complete, submit;
    struct weft_claims_lot *claims;
    struct weft_complete_call complete_call;
    struct weft_submit_call submit_call;
};

static void begin_share(struct weft_server *server, struct share *share)
{
    const struct weft_kind *kind = &weft_kinds[share->lot.group];
    share->lot.count = admit(server, kind, share->lot.request, share->lot.count);
    share->fold = fold_items(kind, share->lot.request, share->lot.count);
}

static void end_share(struct weft_server *server, struct share *share, enum weft_rc rc,
                      struct weft_err *err)
{
    const struct weft_kind *kind = &weft_kinds[share->lot.group];
    if (!rc)
        unfold(kind, &share->fold, share->lot.request, share->lot.count);
    if (share->lot.count > 0)
        conclude(server, kind, &share->lot, rc, err);
    weft_arena_free(share->fold.arena);
}

/* Each kind is answered as soon as its call is durable. */
static void answer_share(void *context, enum weft_together_kind kind)
{
    struct shares *all = context;
    if (kind == WEFT_TOGETHER_COMPLETE)
        end_share(all->server, &all->complete, all->complete_call.rc, &all->complete_call.err);
    else if (kind == WEFT_TOGETHER_SUBMIT)
        end_share(all->server, &all->submit, all->submit_call.rc, &all->submit_call.err);
    else
        weft_claims_end(all->server, all->claims);
}

static void run_joint(struct weft_server *server, const struct weft_group_part *lot, size_t count)
{
    struct shares all = {.server = server,
                         .complete = {.lot = {.group = WEFT_GROUP_COMPLETE}},
                         .submit = {.lot = {.group = WEFT_GROUP_SUBMIT}}};
    struct weft_group_part claim = {0};
    for (size_t i = 0; i < count; i++) {
        if (lot[i].group == WEFT_GROUP_COMPLETE)
            all.complete.lot = lot[i];
        else if (lot[i].group == WEFT_GROUP_SUBMIT)
            all.submit.lot = lot[i];
        else
            claim = lot[i];
    }
    begin_share(server, &all.complete);
    begin_share(server, &all.submit);
    all.claims = weft_claims_begin(server, claim.request, claim.count);
    all.complete_call = (struct weft_complete_call){.item = (const void *)all.complete.fold.item,
                                                    .count = all.complete.fold.count,
                                                    .answer = (void *)all.complete.fold.answer};
    all.submit_call = (struct weft_submit_call){.ns = "default",
                                                .item = (const void *)all.submit.fold.item,
                                                .count = all.submit.fold.count,
                                                .answer = (void *)all.submit.fold.answer};
    const struct weft_together calls = {.complete =
                                            all.complete_call.count ? &all.complete_call : NULL,
                                        .claim = all.claims->call.count ? &all.claims->call : NULL,
                                        .submit = all.submit_call.count ? &all.submit_call : NULL,
                                        .answered = answer_share,
                                        .context = &all};
    weft_engine_together(server->engine, &calls);
    /* A kind without requests or without a good item needs no call. */
    if (!calls.complete)
        answer_share(&all, WEFT_TOGETHER_COMPLETE);
    if (!calls.submit)
        answer_share(&all, WEFT_TOGETHER_SUBMIT);
    if (!calls.claim)
        answer_share(&all, WEFT_TOGETHER_CLAIM);
}

void weft_group_run(struct weft_server *server, const struct weft_group_part *lot, size_t count)
{
    if (count > 1)
        run_joint(server, lot, count);
    else if (lot->group == WEFT_GROUP_CLAIM)
        weft_claims_run(server, lot->request, lot->count);
    else
        run_group(server, *lot);
}
