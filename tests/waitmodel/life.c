/* SPDX-License-Identifier: Apache-2.0 */

/* The life of executions beside waiting: leases, operators and flows. */

#include "direct.h"
#include "waitmodel.h"

#include "base/arena.h"
#include "base/id.h"
#include "core/state.h"
#include "engine/engine.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"

/* ---- Submit ---------------------------------------------------------------------------------- */

static void policy_of(const struct execution *x, struct weft_policy *ret_policy)
{
    *ret_policy = (struct weft_policy){.max_attempts = ATTEMPTS,
                                       .backoff = WEFT_BACKOFF_FIXED,
                                       .initial_ms = BACKOFF_MS,
                                       .no_jitter = true,
                                       .lease_ms = LEASE_MS,
                                       .max_lost = LOST_MAX,
                                       .attempt_timeout_ms = x->attempt_timeout_ms};
}

static struct execution *add_execution(struct world *w)
{
    struct execution *x = &w->execution[w->executions];
    memset(x, 0, sizeof(*x));
    (void)snprintf(x->kind, sizeof(x->kind), "k%zu", w->executions++);
    x->state = WEFT_STATE_READY;
    x->join = JOIN_SATISFIED;
    x->attempt = 1;
    x->created_us = w->now_us;
    x->attempt_timeout_ms = chance(w, 40) ? ATTEMPT_MS : 0;
    x->deadline_us = chance(w, 15) ? w->now_us + (weft_usec)(1 + below(w, 90)) * WEFT_SECOND : 0;
    return x;
}

static struct weft_spec spec_of(const struct execution *x, struct weft_policy *policy)
{
    policy_of(x, policy);
    return (struct weft_spec){.kind = x->kind, .policy = policy, .deadline_us = x->deadline_us};
}

static void submit_flow(struct world *w)
{
    struct weft_policy policy[2];
    struct weft_id id[2];
    struct weft_flow_submitted answer = {.node = id};
    struct weft_err err = {0};
    static const char *const after[] = {"first"};
    struct execution *first = add_execution(w), *second = add_execution(w);
    const struct weft_node node[] = {
        {.name = "first", .spec = spec_of(first, &policy[0])},
        {.name = "second", .spec = spec_of(second, &policy[1]), .after = after, .after_count = 1}};
    const struct weft_flow_spec spec = {.nodes = node, .node_count = 2};
    must_be(w, engine_flow_submit(w->engine[any_engine(w)], "default", &spec, 1, &answer, &err),
            WEFT_OK, "submit of a flow");
    must_be(w, answer.err.rc, WEFT_OK, "submit of a flow");
    first->id = id[0];
    second->id = id[1];
    first->flow = second->flow = &w->flow[w->flows++];
    *first->flow = (struct flow){.id = answer.id};
    second->upstream = first;
    second->state = WEFT_STATE_BLOCKED;
    second->join = JOIN_OPEN;
}

void submit_all(struct world *w)
{
    size_t singles = 1 + below(w, SINGLES_MAX), flows = below(w, FLOWS_MAX + 1);
    w->executions = w->flows = 0;
    for (size_t i = 0; i < singles; i++) {
        struct weft_policy policy;
        struct execution *x = add_execution(w);
        const struct weft_spec spec = spec_of(x, &policy);
        put_work(w->engine[any_engine(w)], &spec, 1, &x->id);
    }
    for (size_t i = 0; i < flows; i++)
        submit_flow(w);
    note(w, "submit %zu, and %zu flows of two", singles, flows);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

static void claimed(struct world *w, struct execution *x, const struct weft_claimed *got)
{
    x->epoch++;
    x->claimed_us = w->now_us;
    x->started_us = x->started_us ? x->started_us : w->now_us;
    x->due_us = w->now_us + LEASE_MS * WEFT_MS;
    x->attempt_deadline_us =
        x->attempt_timeout_ms ? w->now_us + x->attempt_timeout_ms * WEFT_MS : 0;
    x->state = WEFT_STATE_RUNNING;
    x->touched = true;
    const struct resumption *resumption = &x->resumption;
    if (got->epoch != x->epoch || got->attempt != x->attempt || got->lease_expires_us != x->due_us)
        wrong(w, "a claim of #%zu has epoch %d, attempt %d; must have %d, %d", number_of(w, x),
              got->epoch, got->attempt, x->epoch, x->attempt);
    else if (got->resumed != (resumption->by != WEFT_RESUMED_NOT) ||
             got->resumed_by != resumption->by || got->resumed_us != resumption->at_us)
        wrong(w, "a claim of #%zu is resumed by %d at %lld, must be by %d at %lld", number_of(w, x),
              got->resumed_by, (long long)got->resumed_us, resumption->by,
              (long long)resumption->at_us);
    else
        check_signals(w, x, resumption, got->signal, got->signal_count, got->more_signals);
}

/*
 * Takes what is ready of the kinds, a bit for each execution. A claim of several kinds may leave
 * some: its engine learns of a kind that became ready at the other one with the next poll.
 */
static void claim(struct world *w, unsigned kinds)
{
    const char *kind[EXECUTIONS_MAX];
    size_t count = 0, ready = 0, engine = any_engine(w);
    struct weft_claim_result got = {0};
    struct weft_err err = {0};
    for (size_t i = 0; i < w->executions; i++)
        if (kinds >> i & 1) {
            kind[count++] = w->execution[i].kind;
            ready += w->execution[i].state == WEFT_STATE_READY;
        }
    const struct weft_claim args = {
        .worker = "worker", .kinds = kind, .kind_count = count, .max = 100};
    must_be(w, weft_engine_claim(w->engine[engine], "default", &args, 1, w->arena, &got, &err),
            WEFT_OK, "claim");
    note(w, "engine %zu: claim of the kinds %x: %zu", engine, kinds, got.count);
    if (got.count > ready || (got.count == 0 && ready > 0))
        wrong(w, "a claim gets %zu, must get %zu", got.count, ready);
    for (size_t i = 0; i < got.count && !w->failed; i++) {
        size_t which = 0;
        while (which < w->executions && weft_id_cmp(&w->execution[which].id, &got.item[i].id) != 0)
            which++;
        if (which == w->executions || w->execution[which].state != WEFT_STATE_READY)
            wrong(w, "a claim gets an execution that is not ready");
        else
            claimed(w, &w->execution[which], &got.item[i]);
    }
}

void op_claim(struct world *w)
{
    if (chance(w, 30))
        claim(w, (1u << w->executions) - 1);
    else
        claim(w, 1u << number_of(w, pick(w, WEFT_STATE_READY)));
}

/* Mostly the lease that runs, else an older one. */
static int32_t draw_epoch(struct world *w, const struct execution *x)
{
    return x->epoch > 1 && chance(w, 15) ? (int32_t)(1 + below(w, (size_t)x->epoch)) : x->epoch;
}

static void check_lease(struct world *w, const struct execution *x, const char *word,
                        const struct weft_lease_answer *want, const struct weft_lease_answer *got)
{
    note(w, "%s #%zu: %s %s %s", word, number_of(w, x), weft_rc_wire(got->err.rc),
         weft_fence_name(got->fence), weft_state_name(got->state));
    if (got->err.rc != want->err.rc || got->fence != want->fence || got->state != want->state ||
        got->run_at_us != want->run_at_us || got->lease_expires_us != want->lease_expires_us)
        wrong(w, "%s #%zu is answered with %s %s %s, must be %s %s %s", word, number_of(w, x),
              weft_rc_wire(got->err.rc), weft_fence_name(got->fence), weft_state_name(got->state),
              weft_rc_wire(want->err.rc), weft_fence_name(want->fence),
              weft_state_name(want->state));
}

/* What the holder of a lease asked for has been done. */
static struct weft_lease_answer answer_of(const struct execution *x)
{
    return (struct weft_lease_answer){.state = x->state,
                                      .run_at_us = x->state == WEFT_STATE_DELAYED ? x->due_us : 0};
}

static void complete(struct world *w, struct execution *x, int32_t epoch)
{
    struct weft_lease_answer want = {0}, got = {0};
    struct weft_err err = {0};
    const struct weft_complete item = {
        .id = x->id, .epoch = epoch, .result = "1", .result_size = 1};
    (void)!engine_complete(w->engine[any_engine(w)], &item, 1, &got, &err);
    if (epoch > 0 && holds(x, epoch)) {
        change_state(w, x,
                     &(struct change){.to = WEFT_STATE_SUCCEEDED, .ended = WEFT_ENDED_COMPLETED});
        want = answer_of(x);
    } else {
        want = fate_of(x, epoch, WEFT_ENDED_COMPLETED);
    }
    check_lease(w, x, "complete", &want, &got);
}

void op_complete(struct world *w)
{
    struct execution *x = pick(w, WEFT_STATE_RUNNING);
    complete(w, x, draw_epoch(w, x));
}

void op_fail(struct world *w)
{
    struct execution *x = pick(w, WEFT_STATE_RUNNING);
    struct weft_lease_answer want = {0}, got = {0};
    struct weft_err err = {0};
    const struct weft_failure item = {
        .id = x->id, .epoch = draw_epoch(w, x), .message = "it broke", .permanent = chance(w, 15)};
    (void)!engine_fail(w->engine[any_engine(w)], &item, 1, &got, &err);
    if (item.epoch > 0 && holds(x, item.epoch)) {
        fail_attempt(w, x,
                     &(struct change){.ended = WEFT_ENDED_FAILED,
                                      .error_class = "error",
                                      .error_message = "it broke"},
                     item.permanent);
        want = answer_of(x);
    } else {
        want = fate_of(x, item.epoch, WEFT_ENDED_FAILED);
    }
    check_lease(w, x, "fail", &want, &got);
}

void op_release(struct world *w)
{
    struct execution *x = pick(w, WEFT_STATE_RUNNING);
    struct weft_lease_answer want = {0}, got = {0};
    struct weft_err err = {0};
    const struct weft_put_back item = {.id = x->id, .epoch = draw_epoch(w, x)};
    (void)!engine_put_back(w->engine[any_engine(w)], WEFT_PUT_BACK_RELEASE, &item, 1, &got, &err);
    if (item.epoch > 0 && holds(x, item.epoch)) {
        change_state(w, x, &(struct change){.to = WEFT_STATE_READY, .ended = WEFT_ENDED_RELEASED});
        want = answer_of(x);
    } else {
        want = fate_of(x, item.epoch, WEFT_ENDED_RELEASED);
    }
    check_lease(w, x, "release", &want, &got);
}

void op_renew(struct world *w)
{
    struct execution *x = pick(w, WEFT_STATE_RUNNING);
    struct weft_lease_answer want = {0}, got = {0};
    struct weft_err err = {0};
    const struct weft_renew item = {
        .id = x->id, .epoch = draw_epoch(w, x), .lease_ms = chance(w, 50) ? 10000 : 0};
    (void)!engine_renew(w->engine[any_engine(w)], &item, 1, &got, &err);
    if (item.epoch > 0 && holds(x, item.epoch)) {
        x->due_us = w->now_us + (item.lease_ms ? item.lease_ms : LEASE_MS) * WEFT_MS;
        want = (struct weft_lease_answer){.state = x->state, .lease_expires_us = x->due_us};
    } else {
        want = fate_of(x, item.epoch, WEFT_ENDED_NONE);
    }
    check_lease(w, x, "renew", &want, &got);
}

/* ---- Operators ------------------------------------------------------------------------------- */

static struct weft_steered replayed(struct world *w, struct execution *x)
{
    enum join join = judge_join(x);
    if (lives(x->state))
        return (struct weft_steered){.err = {.rc = WEFT_NOT_LIVE}, .state = x->state};
    if (join == JOIN_IMPOSSIBLE)
        return (struct weft_steered){.err = {.rc = WEFT_CONFLICT}, .state = x->state};
    x->join = join;
    replay(w, x, join == JOIN_OPEN ? WEFT_STATE_BLOCKED : WEFT_STATE_READY);
    return (struct weft_steered){.state = x->state, .changed = true};
}

static struct weft_steered steered(struct world *w, enum weft_steer_kind kind, struct execution *x,
                                   const struct weft_steer *item)
{
    struct weft_steered want = {.changed = true};
    if (kind == WEFT_STEER_REPLAY)
        return replayed(w, x);
    if (kind == WEFT_STEER_CANCEL && x->state == WEFT_STATE_CANCELLED)
        return (struct weft_steered){.state = x->state};
    bool may = kind == WEFT_STEER_RESUME   ? x->state == WEFT_STATE_SUSPENDED
               : kind == WEFT_STEER_REVOKE ? x->state == WEFT_STATE_RUNNING
                                           : lives(x->state);
    if (!may)
        return (struct weft_steered){.err = {.rc = WEFT_NOT_LIVE}, .state = x->state};
    if (kind == WEFT_STEER_RESUME) {
        resume(w, x, WEFT_RESUMED_BY_OPERATOR, 0);
    } else if (kind == WEFT_STEER_REVOKE) {
        change_state(w, x, &(struct change){.to = WEFT_STATE_READY, .ended = WEFT_ENDED_REVOKED});
    } else if (kind == WEFT_STEER_CANCEL) {
        change_state(w, x,
                     &(struct change){.to = WEFT_STATE_CANCELLED,
                                      .ended = WEFT_ENDED_CANCELLED,
                                      .by = "operator",
                                      .reason = item->reason});
    } else {
        want.changed = x->deadline_us != item->deadline_us;
        x->deadline_us = item->deadline_us;
        x->touched = true;
    }
    want.state = x->state;
    return want;
}

static void steer(struct world *w, enum weft_steer_kind kind, struct execution *x)
{
    static const char *const word[] = {
        [WEFT_STEER_CANCEL] = "cancel", [WEFT_STEER_REPLAY] = "replay",
        [WEFT_STEER_REVOKE] = "revoke", [WEFT_STEER_SET_DEADLINE] = "set the deadline of",
        [WEFT_STEER_RESUME] = "resume",
    };
    struct weft_steer item = {.id = x->id, .reason = "an operator"};
    if (kind == WEFT_STEER_REPLAY && x->flow && x->flow->cancelled)
        return; /* what a cancelled flow makes of it is for flowmodel */
    if (kind == WEFT_STEER_SET_DEADLINE && chance(w, 70))
        item.deadline_us = w->now_us + (weft_usec)(1 + below(w, 60)) * WEFT_SECOND;
    struct weft_steered got = steer_one(w->engine[any_engine(w)], kind, &item);
    struct weft_steered want = steered(w, kind, x, &item);
    note(w, "%s #%zu: %s %s", word[kind], number_of(w, x), weft_rc_wire(got.err.rc),
         weft_state_name(got.state));
    if (got.err.rc != want.err.rc || got.state != want.state || got.changed != want.changed)
        wrong(w, "%s #%zu is answered with %s %s, must be %s %s", word[kind], number_of(w, x),
              weft_rc_wire(got.err.rc), weft_state_name(got.state), weft_rc_wire(want.err.rc),
              weft_state_name(want.state));
}

void op_steer(struct world *w)
{
    static const struct {
        enum weft_steer_kind kind;
        unsigned share;
        enum weft_state aim;
    } row[] = {
        {WEFT_STEER_CANCEL, 15, WEFT_STATE_SUSPENDED},
        {WEFT_STEER_REVOKE, 10, WEFT_STATE_RUNNING},
        {WEFT_STEER_SET_DEADLINE, 10, WEFT_STATE_SUSPENDED},
        {WEFT_STEER_RESUME, 25, WEFT_STATE_SUSPENDED},
    };
    size_t which = dice_share(&w->random, &row[0].share, sizeof(row[0]), WEFT_LEN(row));
    steer(w, row[which].kind, pick(w, row[which].aim));
}

void op_replay(struct world *w)
{
    struct execution *x = &w->execution[below(w, w->executions)];
    for (size_t i = 0; i < w->executions && lives(x->state); i++)
        if (!lives(w->execution[i].state))
            x = &w->execution[i];
    steer(w, WEFT_STEER_REPLAY, x);
}

void op_resume(struct world *w)
{
    steer(w, WEFT_STEER_RESUME, pick(w, WEFT_STATE_SUSPENDED));
}

void op_cancel_flow(struct world *w)
{
    struct execution *x = pick(w, WEFT_STATE_SUSPENDED);
    struct weft_flow_drain drain = {.wait = true};
    struct weft_err err = {0};
    enum weft_flow_state state;
    if (!x->flow || !lives(x->state))
        return;
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = x->flow->id, .how = WEFT_FLOW_CANCEL_ALL, .reason = "enough"};
    drain.flow = x->flow->id;
    must_be(w, weft_engine_flow_cancel(w->engine[any_engine(w)], &args, &state, &drain, &err),
            WEFT_OK, "cancel of a flow");
    note(w, "cancel the flow of #%zu", number_of(w, x));
    x->flow->cancelled = true;
    for (size_t i = 0; i < w->executions; i++)
        if (w->execution[i].flow == x->flow && lives(w->execution[i].state))
            change_state(w, &w->execution[i],
                         &(struct change){.to = WEFT_STATE_CANCELLED,
                                          .ended = WEFT_ENDED_CANCELLED,
                                          .by = "flow",
                                          .reason = "enough"});
}
