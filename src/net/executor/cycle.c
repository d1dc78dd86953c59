/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A cycle: one commit that completes what has ended and claims what fits, then failures and leases
 * that are given back, each in a call of its own, then the new calls begin.
 *
 * Whatever the store does, nothing that ended is forgotten: it stays on the list `over` until the
 * store has answered for it, yes or fenced. To complete, fail or give back a second time changes
 * nothing, so these are repeated as often as it takes. A claim is never repeated: one whose commit
 * is unknown has leases that no worker will use, and they run out.
 */

#include "net/executor/cycle.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/carried.h"
#include "engine/job/joint.h"
#include "engine/job/leases.h"
#include "net/executor/claims.h"
#include "net/metrics.h"

#include <string.h>

#define PAUSE_FIRST_US (50 * WEFT_MS)
#define PAUSE_LAST_US  (2 * WEFT_SECOND)
enum { LATE_TENTHS = 5 }; /* of a lease: a claim that took longer does not begin its calls */

/* Calls that are over and are written together. */
struct batch {
    struct weft_outgoing *out[WEFT_BATCH_MAX];
    struct weft_lease_result *answer; /* in the arena */
    size_t count;
};

/* ---- What is over ---------------------------------------------------------------------------- */

/* The store has answered for it. */
static void forget(struct weft_executor *executor, struct weft_outgoing *out)
{
    TAILQ_REMOVE(&executor->over, out, link);
    executor->overs--;
    weft_outgoing_free(out);
}

static void gather(struct weft_executor *executor, enum weft_outgoing_end outcome, bool delays,
                   struct weft_arena *arena, struct batch *batch)
{
    struct weft_outgoing *out;
    size_t bytes = 0;
    batch->count = 0;
    TAILQ_FOREACH (out, &executor->over, link) {
        /* cppcheck-suppress uninitvar; the loop sets it */
        if (out->outcome != outcome || (out->delay_ms > 0) != delays)
            continue;
        bytes += out->result.size;
        if (batch->count == WEFT_BATCH_MAX || (batch->count > 0 && bytes > WEFT_BATCH_BYTES))
            break;
        batch->out[batch->count++] = out;
    }
    batch->answer = weft_new_array(arena, struct weft_lease_result, batch->count + 1);
}

/* A result that the store does not take makes a failure; anything else it refuses is over. */
static void refused(struct weft_executor *executor, struct weft_outgoing *out,
                    const struct weft_err *err)
{
    if (out->outcome == WEFT_OUTGOING_COMPLETE) {
        weft_buf_clear(&out->result);
        weft_outgoing_refuse(out, "http_too_large", err->text);
        return;
    }
    weft_error("the end of an HTTP call could not be written", F_STR("error", err->text));
    forget(executor, out);
}

static void take_answers(struct weft_executor *executor, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct weft_lease_result *answer = &batch->answer[i];
        if (answer->rc == WEFT_OK || answer->rc == WEFT_FENCED || answer->rc == WEFT_NOT_FOUND)
            forget(executor, batch->out[i]);
        else if (!weft_rc_retryable(answer->rc))
            refused(executor, batch->out[i], answer->err);
        else
            executor->retry_us = WEFT_NEVER; /* see rest() */
    }
}

/* The store failed: the next cycle comes after a pause, which grows. */
static void rest(struct weft_executor *executor, enum weft_rc rc, const struct weft_err *err)
{
    if (!rc && executor->retry_us != WEFT_NEVER)
        return;
    if (executor->pause_us == 0 && rc)
        weft_warn("the executor waits for the store", F_STR("error", err->text));
    executor->pause_us = executor->pause_us ? executor->pause_us * 2 : PAUSE_FIRST_US;
    if (executor->pause_us > PAUSE_LAST_US)
        executor->pause_us = PAUSE_LAST_US;
    executor->retry_us = weft_boot_us() + executor->pause_us;
}

static enum weft_rc write_failures(struct weft_executor *executor, struct weft_arena *arena,
                                   struct weft_err *err)
{
    struct batch batch;
    gather(executor, WEFT_OUTGOING_FAIL, false, arena, &batch);
    struct weft_failure *item = weft_new_array(arena, struct weft_failure, batch.count + 1);
    if (batch.count == 0)
        return WEFT_OK;
    for (size_t i = 0; i < batch.count; i++) {
        const struct weft_outgoing *out = batch.out[i];
        item[i] = (struct weft_failure){.id = out->id,
                                        .epoch = out->epoch,
                                        .error_class = out->error_class,
                                        .message = out->message,
                                        .permanent = out->permanent,
                                        .retry_after_ms = out->retry_after_ms,
                                        .detail = out->result.size ? out->result.data : NULL};
    }
    enum weft_rc rc =
        weft_engine_fail(executor->engine, item, batch.count, arena, batch.answer, err);
    if (!rc)
        take_answers(executor, &batch);
    return rc;
}

static enum weft_rc give_back(struct weft_executor *executor, bool delays, struct weft_arena *arena,
                              struct weft_err *err)
{
    struct batch batch;
    gather(executor, WEFT_OUTGOING_RELEASE, delays, arena, &batch);
    struct weft_put_back *item = weft_new_array(arena, struct weft_put_back, batch.count + 1);
    if (batch.count == 0)
        return WEFT_OK;
    for (size_t i = 0; i < batch.count; i++)
        item[i] = (struct weft_put_back){.id = batch.out[i]->id,
                                         .epoch = batch.out[i]->epoch,
                                         .delay_ms = batch.out[i]->delay_ms};
    enum weft_rc rc =
        weft_engine_put_back(executor->engine, delays ? WEFT_PUT_BACK_DELAY : WEFT_PUT_BACK_RELEASE,
                             item, batch.count, arena, batch.answer, err);
    if (!rc)
        take_answers(executor, &batch);
    return rc;
}

/* ---- What begins ----------------------------------------------------------------------------- */

static void put_over(struct weft_executor *executor, struct weft_outgoing *out)
{
    TAILQ_INSERT_TAIL(&executor->over, out, link);
    executor->overs++;
}

/* What an older binary submitted tells its target only now, which may have no room. */
static bool find_target(struct weft_executor *executor, struct weft_outgoing *out)
{
    enum { LATER_MS = 1000 };
    if (*out->target->name)
        return true;
    out->target = weft_target_of(executor, out->target->ns,
                                 out->call.endpoint ? out->call.endpoint : WEFT_OWN_URL);
    bool room = weft_target_room(executor, out->target, weft_boot_us()) > 0;
    if (!room)
        weft_outgoing_release(out, LATER_MS);
    return room;
}

/* False: it is over before it began. */
static bool begin(struct weft_executor *executor, struct weft_outgoing *out,
                  const struct weft_claimed *item)
{
    if (weft_outgoing_read(out, item) || !find_target(executor, out))
        return false;
    /* The endpoint is kept as it is: a change does not touch what is under way. */
    if (!out->target->own_url) {
        out->endpoint =
            executor->ops.endpoint(executor->engine, out->target->ns, out->target->name);
        out->auth = out->target->auth;
        if (out->auth)
            out->auth->holders++;
        /*
         * It was changed since the look that found its secret: the next look takes that in. The
         * secret of one URL must not be sent to another.
         */
        if (!out->endpoint || !out->target->endpoint ||
            out->endpoint->version != out->target->endpoint->version) {
            weft_outgoing_release(out, 0);
            return false;
        }
    }
    if (weft_outgoing_write(out, item))
        return false;
    pthread_mutex_lock(&executor->lock);
    out->begun = !out->target->own_url;
    bool lets =
        !out->begun || weft_breaker_begin(&out->target->breaker, weft_boot_us(), &out->ticket);
    out->begun &= lets;
    if (lets)
        weft_figures_begun(executor, out->target);
    pthread_mutex_unlock(&executor->lock);
    if (!lets)
        weft_outgoing_release(out, 0);
    return lets;
}

static void begin_all(struct weft_executor *executor, const struct weft_executor_claims *claims,
                      const struct weft_claim_result *result)
{
    weft_usec now_us = weft_clock_now(weft_engine_clock(executor->engine));
    for (size_t i = 0; i < result->count; i++) {
        const struct weft_claimed *item = &result->item[i];
        struct weft_outgoing *out = weft_outgoing_new(executor, claims->target[item->claim], item);
        weft_usec late_us = item->lease_ms * WEFT_MS / 10 * LATE_TENTHS;
        if (now_us > item->lease_expires_us - late_us)
            weft_outgoing_release(out, 0); /* the commit took so long */
        else if (begin(executor, out, item)) {
            TAILQ_INSERT_TAIL(&executor->running, out, link);
            weft_map_put(&executor->by_id, &out->id, sizeof(out->id), out);
            executor->runs++;
            weft_outgoing_begin(out, item);
            continue;
        }
        put_over(executor, out);
    }
}

/* ---- The cycle ------------------------------------------------------------------------------- */

static struct weft_joint_call complete_call(struct weft_executor *executor,
                                            struct weft_arena *arena, struct batch *batch)
{
    gather(executor, WEFT_OUTGOING_COMPLETE, false, arena, batch);
    struct weft_complete *item = weft_new_array(arena, struct weft_complete, batch->count + 1);
    for (size_t i = 0; i < batch->count; i++)
        item[i] = (struct weft_complete){.id = batch->out[i]->id,
                                         .epoch = batch->out[i]->epoch,
                                         .result = batch->out[i]->result.data,
                                         .result_size = batch->out[i]->result.size};
    return (struct weft_joint_call){.op = WEFT_OP_COMPLETE,
                                    .ns = "default",
                                    .item = item,
                                    .count = batch->count,
                                    .calls = true,
                                    .answer = batch->answer,
                                    .arena = arena};
}

/* Nodes after very many others bring their upstreams in a read of their own. */
static void begin_claimed(struct weft_executor *executor, const struct weft_executor_claims *claims,
                          struct weft_claim_result *result, struct weft_arena *arena)
{
    struct weft_err err = {0};
    weft_claims_settle(executor, claims, result);
    if (result->apart && weft_engine_claim_rest(executor->engine, result, arena, &err)) {
        for (size_t i = 0; i < result->count; i++) {
            struct weft_outgoing *out = weft_outgoing_new(
                executor, claims->target[result->item[i].claim], &result->item[i]);
            weft_outgoing_release(out, 0);
            put_over(executor, out);
        }
        return;
    }
    begin_all(executor, claims, result);
}

/* One commit: completions and claims. */
static enum weft_rc complete_and_claim(struct weft_executor *executor, bool claims_too,
                                       struct weft_arena *arena, struct weft_err *err)
{
    struct weft_executor_claims *claims = weft_new(arena, struct weft_executor_claims);
    struct weft_claim_result result = {0};
    struct weft_arena *claimed = weft_arena_new();
    struct batch *batch = weft_new(arena, struct batch);
    struct weft_joint_call call[2];
    size_t count = claims_too ? weft_claims_choose(executor, arena, claims) : 0;
    call[0] = complete_call(executor, arena, batch);
    call[1] = (struct weft_joint_call){.op = WEFT_OP_CLAIM,
                                       .ns = "default",
                                       .item = claims->item,
                                       .count = count,
                                       .target = claims->name,
                                       .answer = &result,
                                       .arena = claimed};
    if (call[0].count + call[1].count > 0)
        weft_engine_together(executor->engine, call, WEFT_LEN(call), NULL, NULL);
    if (executor->metrics && call[0].count + result.count > 0)
        weft_metric_observe(executor->metrics, WEFT_METRIC_CALL_CYCLES, 0,
                            call[0].count + result.count);
    if (call[0].count > 0 && !call[0].rc)
        take_answers(executor, batch);
    if (count > 0 && !call[1].rc)
        begin_claimed(executor, claims, &result, claimed);
    enum weft_rc rc = call[0].count > 0 && call[0].rc ? call[0].rc : WEFT_OK;
    if (rc)
        *err = call[0].err;
    if (!rc && count > 0 && call[1].rc) {
        rc = call[1].rc;
        *err = call[1].err;
    }
    weft_arena_free(claimed);
    return rc;
}

static void take_ended(struct weft_executor *executor, struct weft_outgoing_list *ended)
{
    struct weft_outgoing *out;
    while ((out = TAILQ_FIRST(ended))) {
        TAILQ_REMOVE(ended, out, ended);
        TAILQ_REMOVE(&executor->running, out, link);
        /* Its lease may have been lost, and the execution claimed again by this server. */
        if (weft_map_find(&executor->by_id, &out->id, sizeof(out->id)) == out)
            weft_map_remove(&executor->by_id, &out->id, sizeof(out->id));
        executor->runs--;
        weft_outgoing_judge(out);
        put_over(executor, out);
    }
}

void weft_cycle_run(struct weft_executor *executor, struct weft_outgoing_list *ended, bool claims)
{
    struct weft_err err = {0};
    take_ended(executor, ended);
    if (executor->retry_us && weft_boot_us() < executor->retry_us)
        return;
    executor->retry_us = 0;
    struct weft_arena *arena = weft_arena_new();
    enum weft_rc rc = complete_and_claim(executor, claims, arena, &err);
    if (!rc)
        rc = write_failures(executor, arena, &err);
    if (!rc)
        rc = give_back(executor, false, arena, &err);
    if (!rc)
        rc = give_back(executor, true, arena, &err);
    rest(executor, rc, &err);
    if (!rc && executor->retry_us == 0)
        executor->pause_us = 0;
    weft_arena_free(arena);
}
