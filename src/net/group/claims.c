/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /v1/claims. Claims that come at the same time become one call of the engine, which takes
 * work for all of them in one transaction. A claim that finds nothing and may wait goes to sleep
 * (wait/waits.c) and comes back here when it is woken; when its time is up it is answered without
 * another look, because work would have woken it.
 *
 * A claim begins only while there is room for its answer (answers.h): leases that were given must
 * be sent. Without room it sleeps for a while, and is then answered `unavailable`; no lease is
 * touched by that.
 *
 * Leases that do not reach their client are released at once: before the answer when the client has
 * hung up, after it when the answer could not be sent; and when the token was revoked or expired by
 * the time they were committed.
 */

#include "net/group/claims.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/admin/workers.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/joint.h"
#include "engine/job/leases.h"
#include "net/auth.h"
#include "net/group/group.h"
#include "net/http/answers.h"
#include "net/http/loop.h"
#include "net/metrics.h"
#include "net/request.h"
#include "net/server.h"
#include "net/upkeep/roster.h"
#include "net/wait/waits.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOOKS_A_MS = 16,         /* at a lane that time opens */
    SOON_US = 5000,          /* a lane was just being claimed from by another process */
    LARGE_ANSWER = 64 << 10, /* counted before the loop has it */
    HUGE_ANSWER = 1 << 20, /* cut to size as well: for smaller ones that costs more than it frees */
};

/* The claims of one call, until the last of them is answered. */
struct claims {
    struct weft_arena *arena;
    struct weft_request **request;
    struct weft_answers_room *room; /* reserved for the answers */
    size_t rooms;
    struct weft_claim_result result;
    struct weft_arena *result_arena;
    /* Of the claims whose answers need many upstreams, which are read last; NULL for the others. */
    struct weft_request **later;
    size_t count;
};

struct claim_state {
    struct weft_claim claim;
    weft_usec until_us;      /* boot time; 0: does not wait */
    weft_usec room_until_us; /* boot time: how long it waits for room; 0: it has room */
    bool slept;
    struct weft_put_back *held; /* in the arena: the leases of the answer */
    size_t held_count;
};

enum weft_rc weft_claims_read(struct weft_request *request, struct weft_err *err)
{
    struct claim_state *state = weft_new(request->arena, struct claim_state);
    enum weft_rc rc = weft_request_read(request, false, &weft_wire_claim, &state->claim, err);
    if (rc)
        return rc;
    struct weft_claim *claim = &state->claim;
    claim->ns = request->ns;
    if (claim->wait_ms < 0 || claim->wait_ms > WEFT_LONG_POLL_MAX_MS)
        return weft_invalid(err, "wait_ms", "wait_ms is %lld, allowed are 0 to %d",
                            (long long)claim->wait_ms, WEFT_LONG_POLL_MAX_MS);
    if (claim->wait_ms > 0)
        state->until_us = weft_boot_us() + claim->wait_ms * WEFT_MS;
    request->state = state;
    request->items.count = claim->max ? claim->max : 1;
    return weft_engine_claim_check(claim, err);
}

static const struct weft_claim *claim_of(const struct weft_request *request)
{
    return &((const struct claim_state *)request->state)->claim;
}

/* ---- Giving back ----------------------------------------------------------------------------- */

struct give_back {
    size_t count;
    struct weft_put_back item[];
};

/* On an engine thread. An execution that cannot be released now is, when its lease runs out. */
static void give_back(struct weft_server *server, void *context)
{
    struct give_back *back = context;
    struct weft_err err = {0};
    weft_metric_add(server->metrics, WEFT_METRIC_UNDELIVERED, 0, back->count);
    struct weft_arena *arena = weft_arena_new();
    struct weft_lease_result *answer = weft_new_array(arena, struct weft_lease_result, back->count);
    enum weft_rc rc = weft_engine_put_back(server->engine, WEFT_PUT_BACK_RELEASE, back->item,
                                           back->count, arena, answer, &err);
    if (rc)
        weft_warn("leases of a client that went away were not given back",
                  F_U64("leases", back->count), F_STR("error", err.text));
    weft_arena_free(arena);
    free(back);
}

/* The leases that a request holds, and then holds no more; the caller frees them. */
static struct give_back *take_held(struct weft_request *request)
{
    struct claim_state *state = request->state;
    size_t size = state->held_count * sizeof(*state->held);
    struct give_back *back = weft_alloc(1, sizeof(*back) + size);
    back->count = state->held_count;
    memcpy(back->item, state->held, size);
    state->held_count = 0;
    return back;
}

void weft_claims_undelivered(struct weft_request *request)
{
    const struct claim_state *state = request->state;
    if (state && state->held_count > 0)
        weft_groups_do(request->server->groups, give_back, take_held(request));
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* Notes the leases that one claim of a call got; says how many. */
static size_t hold(struct weft_request *request, const struct weft_claim_result *result,
                   size_t index)
{
    struct claim_state *state = request->state;
    size_t got = 0;
    for (size_t i = 0; i < result->count; i++)
        got += result->item[i].claim == index;
    if (got > 0) /* a claim that finds nothing looks many times */
        state->held = weft_new_array(request->arena, struct weft_put_back, got);
    for (size_t i = 0; i < result->count && got > 0; i++)
        if (result->item[i].claim == index)
            state->held[state->held_count++] =
                (struct weft_put_back){.id = result->item[i].id, .epoch = result->item[i].epoch};
    return got;
}

static void answer_items(struct weft_request *request, const struct weft_claim_result *result,
                         size_t index)
{
    struct weft_json_writer out;
    weft_reply_items(request, &out);
    for (size_t i = 0; i < result->count; i++)
        if (result->item[i].claim == index)
            weft_wire_write(&weft_wire_claimed, &result->item[i], &out);
    weft_json_end_array(&out);
    weft_json_end_object(&out);
}

static void answer_empty(struct weft_request *request)
{
    static const struct weft_claim_result nothing = {0};
    weft_waits_leave(request->server->waits, request, WEFT_WAIT_FAILED);
    answer_items(request, &nothing, 0);
    weft_loop_answer(request->server, &request, 1);
}

/* True when its token is no longer good: it has its answer then. */
static bool refuse_late(struct weft_request *request)
{
    struct weft_err err = {0};
    if (!weft_auth_again(request->server, request, &err))
        return false;
    weft_reply_error(request, &err);
    return true;
}

/*
 * When a claim that found nothing looks again by itself. Many workers may wait for the next start
 * of one lane, and the first of them takes it: so of the claims that looked together a few look
 * again in each millisecond from then on.
 */
static weft_usec next_look(const struct weft_claim_result *result, size_t index)
{
    weft_usec now_us = weft_boot_us(), at_us = WEFT_NEVER;
    if (result->opens_in_us)
        at_us = now_us + result->opens_in_us + (weft_usec)(index / LOOKS_A_MS) * WEFT_MS;
    return result->contended && at_us > now_us + SOON_US ? now_us + SOON_US : at_us;
}

/* Writes the answer of one request, or puts it to sleep (false): then it is the list's. */
static bool settle(struct weft_request *request, const struct weft_claim_result *result,
                   size_t index)
{
    struct weft_server *server = request->server;
    struct claim_state *state = request->state;
    size_t got = hold(request, result, index);
    if (got == 0 && state->until_us) {
        state->slept = true;
        if (weft_waits_sleep(server->waits, request, next_look(result, index)))
            return false;
    }
    answer_items(request, result, index);
    if (got > 0 && (refuse_late(request) || weft_loop_gone(request))) {
        give_back(server, take_held(request));
        weft_waits_leave(server->waits, request, WEFT_WAIT_FAILED);
    } else {
        weft_waits_leave(server->waits, request,
                         got >= request->items.count ? WEFT_WAIT_FILLED : WEFT_WAIT_SERVED);
    }
    if (request->reply.body.capacity > LARGE_ANSWER) {
        if (request->reply.body.size > HUGE_ANSWER)
            weft_buf_fit(&request->reply.body);
        weft_loop_hold(request);
    }
    return true;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* NULL in tests without a loop: there is always room. */
static struct weft_answers *answers_of(struct weft_server *server)
{
    return server->loop ? weft_loop_answers(server->loop) : NULL;
}

/* No room for its answer: the claim sleeps, and is answered `unavailable` when that has lasted. */
static void wait_for_room(struct weft_server *server, struct weft_request *request,
                          weft_usec now_us)
{
    struct claim_state *state = request->state;
    struct weft_err err = {0};
    if (!state->room_until_us)
        state->room_until_us = now_us + WEFT_ANSWERS_WAIT_US;
    state->slept = true;
    if (weft_waits_park(server->waits, request, &state->claim, state->room_until_us))
        return;
    weft_waits_leave(server->waits, request, WEFT_WAIT_FAILED);
    (void)weft_answers_full(answers_of(server), request->ns, &err);
    weft_reply_error(request, &err);
    weft_loop_answer(server, &request, 1);
}

/* Reserves room for a claim of a call, as long as the call has some left to reserve. */
static void reserve(struct claims *claims, struct weft_request *request, size_t *left)
{
    size_t size = request->items.count * (size_t)WEFT_PAYLOAD_MAX;
    if (size > *left)
        size = *left;
    *left -= size;
    if (size > 0)
        claims->room[claims->rooms++] =
            weft_answers_reserve(answers_of(request->server), request->ns, size);
}

/* The answers of the call are counted by now. */
static void unreserve(struct weft_server *server, const struct claims *claims)
{
    bool opens = false;
    for (size_t i = 0; i < claims->rooms; i++)
        opens |= weft_answers_unreserve(answers_of(server), &claims->room[i]);
    if (opens)
        weft_groups_look(server->groups);
}

/* Whether a claim that has slept is to be answered without another look. */
static bool is_over(const struct weft_request *request, weft_usec now_us)
{
    const struct claim_state *state = request->state;
    bool late = !state->room_until_us && now_us >= state->until_us;
    return state->slept && (late || request->server->stopping || weft_loop_gone(request));
}

/*
 * Gives the workers that are new here their names. A claim whose namespace may not have one more
 * gets its answer; any other error is left to the call.
 */
static void meet_workers(struct weft_server *server, const struct claims *claims, size_t count)
{
    struct weft_watch *watch = weft_new_array(claims->arena, struct weft_watch, count + 1);
    struct weft_request **request = weft_new_array(claims->arena, struct weft_request *, count + 1);
    size_t met = 0;
    for (size_t i = 0; i < count; i++) {
        const struct claim_state *state = claims->request[i]->state;
        if (state->slept || weft_roster_knows(server->roster, &state->claim))
            continue;
        request[met] = claims->request[i];
        watch[met++] = (struct weft_watch){.ns = state->claim.ns, .worker = state->claim.worker};
    }
    if (met == 0)
        return;
    struct weft_worker_met *answer = weft_new_array(claims->arena, struct weft_worker_met, met);
    if (weft_engine_meet_workers(server->engine, watch, met, answer, NULL))
        return;
    for (size_t i = 0; i < met; i++)
        if (answer[i].err.rc)
            weft_reply_error(request[i], &answer[i].err);
}

/* Answers the claims whose wait is over and keeps the others; lists a claim that may wait. */
static size_t admit(struct weft_server *server, struct claims *claims, size_t count)
{
    size_t kept = 0;
    struct weft_request **request = claims->request;
    struct weft_answers *answers = answers_of(server);
    size_t left = answers ? weft_answers_call_max(answers) : 0;
    weft_usec now_us = weft_boot_us(), store_us = weft_clock_now(weft_engine_clock(server->engine));
    meet_workers(server, claims, count);
    for (size_t i = 0; i < count; i++) {
        struct claim_state *state = request[i]->state;
        if (request[i]->reply.status || refuse_late(request[i])) {
            weft_waits_leave(server->waits, request[i], WEFT_WAIT_FAILED);
            weft_loop_answer(server, &request[i], 1);
            continue;
        }
        if (is_over(request[i], now_us)) {
            answer_empty(request[i]);
            continue;
        }
        if (answers && !weft_answers_has_room(answers, request[i]->ns)) {
            wait_for_room(server, request[i], now_us);
            continue;
        }
        bool first = !state->slept || state->room_until_us;
        state->room_until_us = 0;
        reserve(claims, request[i], &left);
        if (state->until_us)
            weft_waits_enter(server->waits, request[i], &state->claim, state->until_us);
        if (first)
            weft_roster_seen(server->roster, &state->claim, store_us);
        request[kept++] = request[i];
    }
    return kept;
}

void weft_claims_begin(struct weft_server *server, struct weft_group_part *part,
                       struct weft_joint_call *ret_call)
{
    struct weft_arena *arena = weft_arena_new();
    struct claims *claims = weft_new(arena, struct claims);
    *claims =
        (struct claims){.arena = arena,
                        .request = part->request,
                        .room = weft_new_array(arena, struct weft_answers_room, part->count + 1),
                        .result_arena = weft_arena_new()};
    size_t count = admit(server, claims, part->count);
    struct weft_claim *claim = weft_new_array(arena, struct weft_claim, count + 1);
    weft_usec came_us = 0;
    for (size_t i = 0; i < count; i++) {
        claim[i] = *claim_of(part->request[i]);
        if (part->request[i]->queued_us > came_us)
            came_us = part->request[i]->queued_us;
    }
    part->state = claims;
    *ret_call = (struct weft_joint_call){.op = WEFT_OP_CLAIM,
                                         .ns = "default",
                                         .item = claim,
                                         .count = count,
                                         .asked_us = came_us,
                                         .answer = &claims->result,
                                         .arena = claims->result_arena};
}

static void free_claims(struct weft_server *server, struct claims *claims)
{
    unreserve(server, claims);
    weft_arena_free(claims->result_arena);
    weft_arena_free(claims->arena);
}

static bool needs_rest(const struct weft_claim_result *result, size_t index)
{
    for (size_t i = 0; i < result->count && result->apart; i++)
        if (result->apart[i] && result->item[i].claim == index)
            return true;
    return false;
}

/* The claim gets the error, and the engine the leases of the claim back. */
static void fail_claim(struct weft_request *request, const struct weft_claim_result *result,
                       size_t index, const struct weft_err *err)
{
    if (hold(request, result, index) > 0)
        give_back(request->server, take_held(request));
    weft_waits_leave(request->server->waits, request, WEFT_WAIT_FAILED);
    weft_reply_error(request, err);
}

/*
 * Answers the claims of members that come after very many nodes. On an engine thread, as a task:
 * the call that took them is over, so no other claim, and no other writing, waits for this.
 */
static void answer_later(struct weft_server *server, void *context)
{
    struct claims *claims = context;
    struct weft_claim_result *result = &claims->result;
    struct weft_err err = {0};
    enum weft_rc rc = weft_engine_claim_rest(server->engine, result, claims->result_arena, &err);
    for (size_t i = 0; i < claims->count; i++) {
        struct weft_request *request = claims->later[i];
        if (!request)
            continue;
        if (rc)
            fail_claim(request, result, i, &err);
        else
            (void)settle(request, result, i); /* it got something: it does not sleep */
        weft_loop_answer(server, &request, 1);
    }
    free_claims(server, claims);
}

void weft_claims_end(struct weft_server *server, struct weft_group_part *part,
                     struct weft_joint_call *call)
{
    struct claims *claims = part->state;
    struct weft_request **request = claims->request;
    size_t answered = 0;
    claims->count = call->count;
    for (size_t i = 0; i < call->count; i++) {
        if (needs_rest(&claims->result, i)) {
            if (!claims->later)
                claims->later = weft_new_array(claims->arena, struct weft_request *, call->count);
            claims->later[i] = request[i];
            continue;
        }
        if (call->rc)
            fail_claim(request[i], &claims->result, i, &call->err);
        if (call->rc || settle(request[i], &claims->result, i))
            request[answered++] = request[i];
    }
    weft_loop_answer(server, request, answered);
    if (claims->later)
        weft_groups_do(server->groups, answer_later, claims);
    else
        free_claims(server, claims);
}
