/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Turns the requests that an engine thread took from the queues into calls of the engine: the
 * requests of a kind become one call, and the calls of several kinds one transaction
 * (weft_engine_together()). The kinds are the rows FOLDED of wire/ops.def; claims.c has the begin
 * and the end of claims, all others are here.
 */

#include "net/group/group_run.h"

#include "base/err.h"
#include "engine/admin/tokens.h"
#include "engine/call.h"
#include "engine/tx/batch.h"
#include "net/api/api_control.h"
#include "net/group/claims.h"
#include "net/group/group.h"
#include "net/http/loop.h"
#include "net/metrics.h"
#include "net/request.h"
#include "net/server.h"

#include <assert.h>
#include <string.h>

/* Where an item keeps fields that the server must fill in or check. */
enum item_kind { ITEM_CLAIM, ITEM_SPEC, ITEM_LEASE, ITEM_STEER, ITEM_FLOW, ITEM_SIGNAL };

struct kind {
    enum weft_op op;
    size_t item_size, answer_size;
    enum item_kind item;
    bool joins; /* runs by weft_engine_together() */
    weft_part_begin_fn *begin;
    weft_part_end_fn *end;
};
static const struct kind kinds[WEFT_GROUP_COUNT]; /* all zero for groups that run alone */

/* ---- Items ----------------------------------------------------------------------------------- */

/*
 * With a token that is bound to a namespace, leases must be of that namespace; executions of others
 * are answered as if they did not exist.
 */
static enum weft_rc check_namespaces(struct weft_server *server, const struct kind *kind,
                                     struct weft_request *request, struct weft_err *err)
{
    const struct weft_items *items = &request->items;
    const char **ns = weft_new_array(request->arena, const char *, items->count + 1);
    const struct weft_id_column ids = {items->item, kind->item_size, items->count};
    enum weft_rc rc = weft_engine_namespaces(server->engine, &ids, ns, err);
    for (size_t i = 0; i < items->count && !rc; i++)
        if (!items->err[i] && (!ns[i] || strcmp(ns[i], request->ns) != 0))
            items->err[i] =
                weft_err_new(request->arena, WEFT_NOT_FOUND, NULL, "there is no such execution");
    return rc;
}

/* Fills in the namespace of an item, and what its answer needs. */
static void prepare(const struct kind *kind, const struct weft_request *request, void *item,
                    void *answer)
{
    if (kind->item == ITEM_SPEC)
        ((struct weft_spec *)item)->ns = request->ns;
    if (kind->item == ITEM_FLOW) {
        struct weft_flow_spec *spec = item;
        spec->ns = request->ns;
        ((struct weft_flow_result *)answer)->node =
            weft_new_array(request->arena, struct weft_id, spec->node_count + 1);
    }
    if (kind->item == ITEM_STEER) {
        ((struct weft_steer *)item)->ns = request->ns;
        ((struct weft_steer_answer *)answer)->arena = request->arena;
    }
}

/*
 * Puts the good items of several requests behind each other, with room for their answers, into a
 * call; its memory is in the arena.
 */
static void fill_call(const struct kind *kind, struct weft_request **request, size_t count,
                      struct weft_arena *arena, struct weft_joint_call *ret_call)
{
    size_t most = 1, good = 0;
    for (size_t a = 0; a < count; a++)
        most += request[a]->items.count;
    char *item = weft_arena_alloc(arena, most, kind->item_size);
    char *answer = weft_arena_alloc(arena, most, kind->answer_size);
    for (size_t a = 0; a < count; a++) {
        const struct weft_items *items = &request[a]->items;
        for (size_t i = 0; i < items->count; i++) {
            if (items->err[i])
                continue;
            char *to = item + good * kind->item_size;
            memcpy(to, (char *)items->item + i * kind->item_size, kind->item_size);
            prepare(kind, request[a], to, answer + good++ * kind->answer_size);
        }
    }
    *ret_call = (struct weft_joint_call){.op = kind->op,
                                         .ns = "default",
                                         .item = item,
                                         .count = good,
                                         .answer = answer,
                                         .arena = arena};
}

/*
 * Gives each request the answers of its good items, with their errors; refused items have theirs in
 * items.err.
 */
static void take_answers(const struct kind *kind, const struct weft_joint_call *call,
                         struct weft_request **request, size_t count)
{
    const char *from = call->answer;
    for (size_t a = 0; a < count; a++) {
        struct weft_items *items = &request[a]->items;
        char *to = weft_arena_alloc(request[a]->arena, items->count + 1, kind->answer_size);
        items->answer = to;
        for (size_t i = 0; i < items->count; i++, to += kind->answer_size)
            if (!items->err[i]) {
                memcpy(to, from, kind->answer_size);
                from += kind->answer_size;
                const struct weft_err **err = (void *)to;
                if (*err)
                    *err = weft_err_dup(request[a]->arena, *err);
            }
    }
}

/* Makes a call for one kind alone; not for claims. */
static void call_alone(struct weft_engine *engine, const struct kind *kind,
                       struct weft_joint_call *call)
{
    static const enum weft_steer_kind steers[WEFT_OP_COUNT] = {
        [WEFT_OP_CANCEL] = WEFT_STEER_CANCEL,
        [WEFT_OP_REPLAY] = WEFT_STEER_REPLAY,
        [WEFT_OP_REPRIORITIZE] = WEFT_STEER_REPRIORITIZE,
        [WEFT_OP_SET_DEADLINE] = WEFT_STEER_SET_DEADLINE,
        [WEFT_OP_REVOKE] = WEFT_STEER_REVOKE,
        [WEFT_OP_RESUME] = WEFT_STEER_RESUME,
    };
    const struct weft_steering steering = {.kind = steers[kind->op],
                                           .ns = call->ns,
                                           .item = call->item,
                                           .count = call->count,
                                           .arena = call->arena};
    const struct weft_op_call other = {.op = kind->op,
                                       .ns = call->ns,
                                       .in = call->item,
                                       .count = call->count,
                                       .arena = call->arena,
                                       .out = call->answer};
    if (call->count == 0)
        call->rc = WEFT_OK;
    else if (kind->item == ITEM_STEER) /* writes each execution as the call left it */
        call->rc = weft_steer_call(engine, &steering, call->answer, &call->err);
    else
        call->rc = weft_engine_call(engine, &other, &call->err);
}

/* ---- Requests -------------------------------------------------------------------------------- */

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
static size_t admit(struct weft_server *server, const struct kind *kind,
                    struct weft_request **request, size_t count)
{
    size_t kept = 0;
    for (size_t a = 0; a < count; a++) {
        struct weft_err err = {0};
        enum weft_rc rc = kind->item == ITEM_LEASE && request[a]->ns_fixed
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
static bool met_lock(const struct kind *kind, const struct weft_request *request)
{
    const struct weft_steer_answer *answer = request->items.answer;
    return kind->item == ITEM_STEER && !request->items.err[0] && answer->steered.err &&
           answer->steered.err->cause == WEFT_CAUSE_FLOW_LOCKED;
}

/*
 * Another transaction holds a flow that some request needs. Requests of which nothing was written,
 * all of them when the call failed, go into the class that runs alone: a request that has to wait
 * waits there by itself (waits.c), and the others do not wait with it. Returns how many are left.
 */
static size_t set_apart(struct weft_server *server, const struct kind *kind,
                        const struct weft_group_part *part, bool all)
{
    size_t kept = 0;
    for (size_t a = 0; a < part->count; a++) {
        struct weft_request *request = part->request[a];
        if (!all && !met_lock(kind, request)) {
            part->request[kept++] = request;
            continue;
        }
        request->items.alone = true;
        weft_groups_put_again(server->groups, request);
    }
    return kept;
}

/* Calls again for each request alone, and answers it. */
static void call_one_by_one(struct weft_server *server, const struct kind *kind,
                            const struct weft_group_part *part)
{
    for (size_t a = 0; a < part->count; a++) {
        struct weft_arena *arena = weft_arena_new();
        struct weft_joint_call call;
        fill_call(kind, &part->request[a], 1, arena, &call);
        call_alone(server->engine, kind, &call);
        if (!call.rc)
            take_answers(kind, &call, &part->request[a], 1);
        finish(&part->request[a], 1, call.rc, &call.err);
        weft_arena_free(arena);
    }
}

static void begin_items(struct weft_server *server, struct weft_group_part *part,
                        struct weft_joint_call *ret_call)
{
    const struct kind *kind = &kinds[part->group];
    part->count = admit(server, kind, part->request, part->count);
    part->state = weft_arena_new();
    fill_call(kind, part->request, part->count, part->state, ret_call);
}

static void end_items(struct weft_server *server, struct weft_group_part *part,
                      struct weft_joint_call *call)
{
    const struct kind *kind = &kinds[part->group];
    bool locked = call->rc && call->err.cause == WEFT_CAUSE_FLOW_LOCKED;
    struct weft_arena *arena = part->state; /* answers may point into it until they are written */
    if (!call->rc)
        take_answers(kind, call, part->request, part->count);
    if (locked || !call->rc) {
        finish(part->request, set_apart(server, kind, part, locked), WEFT_OK, &call->err);
        weft_arena_free(arena);
        return;
    }
    weft_arena_free(arena);
    weft_metric_add(server->metrics, WEFT_METRIC_STORE_FAILURES, 0, 1);
    /*
     * A call that fails as a whole has written nothing. When the store did not fail, an input of
     * one request should have been refused earlier: each request gets a call of its own.
     */
    if (part->count > 1 && !weft_rc_retryable(call->rc))
        call_one_by_one(server, kind, part);
    else
        finish(part->request, part->count, call->rc, &call->err);
}

/* ---- The kinds ------------------------------------------------------------------------------- */

#define ITEM_KIND(type)                                                                            \
    _Generic((type *)0, struct weft_claim *                                                        \
             : ITEM_CLAIM, struct weft_spec *                                                      \
             : ITEM_SPEC, struct weft_steer *                                                      \
             : ITEM_STEER, struct weft_flow_spec *                                                 \
             : ITEM_FLOW, struct weft_signal *                                                     \
             : ITEM_SIGNAL, default                                                                \
             : ITEM_LEASE)
#define ANSWER_SIZE(type)                                                                          \
    _Generic((type *)0, struct weft_steer_result *                                                 \
             : sizeof(struct weft_steer_answer), default                                           \
             : sizeof(type))
#define IF_CLAIM(type, then, otherwise)                                                            \
    _Generic((type *)0, struct weft_claim * : (then), default : (otherwise))

static const struct kind kinds[WEFT_GROUP_COUNT] = {
#define FOLDED(op_, label_, joins_, id_, method_, path_, scope_, repeat_, in_, takes_, out_, ...)  \
    [WEFT_GROUP_##op_] = {.op = WEFT_OP_##op_,                                                     \
                          .item_size = sizeof(in_),                                                \
                          .answer_size = ANSWER_SIZE(out_),                                        \
                          .item = ITEM_KIND(in_),                                                  \
                          .joins = WEFT_JOINS_##joins_,                                            \
                          .begin = IF_CLAIM(in_, weft_claims_begin, begin_items),                  \
                          .end = IF_CLAIM(in_, weft_claims_end, end_items)},
#define ALONE(...)
#include "wire/ops.def"
};

/* Every lease item begins with the id: the namespace check reads it there. */
static_assert(offsetof(struct weft_renew, id) == 0, "id first");
static_assert(offsetof(struct weft_complete, id) == 0, "id first");
static_assert(offsetof(struct weft_failure, id) == 0, "id first");
static_assert(offsetof(struct weft_put_back, id) == 0, "id first");
static_assert(offsetof(struct weft_usage, id) == 0, "id first");

/* Every result begins with the pointer to its error: take_answers() moves it to the request. */
static_assert(offsetof(struct weft_submit_result, err) == 0, "err first");
static_assert(offsetof(struct weft_lease_result, err) == 0, "err first");
static_assert(offsetof(struct weft_usage_result, err) == 0, "err first");
static_assert(offsetof(struct weft_steer_answer, steered.err) == 0, "err first");
static_assert(offsetof(struct weft_flow_result, err) == 0, "err first");

/* ---- Parts ----------------------------------------------------------------------------------- */

struct run {
    struct weft_server *server;
    struct weft_group_part *part;
    struct weft_joint_call call[WEFT_JOINT_MAX]; /* one for each part */
};

/* Each part is answered as soon as its call is durable. */
static void end_part(void *context, struct weft_joint_call *call)
{
    struct run *run = context;
    struct weft_group_part *part = &run->part[call - run->call];
    kinds[part->group].end(run->server, part, call);
}

void weft_group_run(struct weft_server *server, struct weft_group_part *part, size_t count)
{
    struct run run = {.server = server, .part = part};
    assert(count <= WEFT_JOINT_MAX);
    for (size_t i = 0; i < count; i++)
        kinds[part[i].group].begin(server, &part[i], &run.call[i]);
    if (kinds[part->group].joins) {
        weft_engine_together(server->engine, run.call, count, end_part, &run);
    } else {
        call_alone(server->engine, &kinds[part->group], run.call);
        end_part(&run, run.call);
    }
}
