/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The course of a call about leases: check the items, split them into transactions, run the
 * operation, pass on the news, answer.
 *
 * An operation finds its row only while it is running under the epoch the worker names. The store's
 * record of the lease answers an item that is not found: the holder's own last request gets the
 * same answer again, everything else is fenced with the reason (core/fence.h).
 */

#include "engine/job/lease_call.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "core/fence.h"
#include "engine/engine_state.h"

/* Item i of the call. */
static const struct weft_lease *lease_at(const struct weft_lease_call *call, size_t i)
{
    return (const void *)weft_column_id(&call->ids, i);
}

const void *weft_lease_item(const struct weft_lease_call *call, size_t k)
{
    return lease_at(call, call->chunk.item[k]);
}

struct weft_lease_result *weft_lease_answer_of(const struct weft_lease_call *call, size_t k)
{
    return &call->answer[call->chunk.item[k]];
}

/* ---- Answers for leases that are not held ---------------------------------------------------- */

static void answer_fate(const struct weft_lease_call *call, size_t k,
                        const struct weft_lease_facts *facts)
{
    int32_t epoch = lease_at(call, call->chunk.item[k])->epoch;
    struct weft_fate fate = weft_lease_fate(facts, epoch, call->op->asked);
    const struct weft_err *story = NULL;
    if (fate.rc == WEFT_NOT_FOUND)
        story = weft_err_new(call->arena, WEFT_NOT_FOUND, "id", "there is no such execution");
    else if (fate.rc && fate.fence == WEFT_FENCE_UNKNOWN)
        story =
            weft_err_new(call->arena, WEFT_FENCED, "epoch",
                         "epoch %d was never given to a worker: the execution is %s under epoch %d",
                         epoch, weft_state_name(facts->state), facts->epoch);
    else if (fate.rc)
        story = weft_err_new(call->arena, WEFT_FENCED, NULL,
                             "the lease is gone (%s): nothing was changed",
                             weft_fence_name(fate.fence));
    *weft_lease_answer_of(call, k) = (struct weft_lease_result){.err = story,
                                                                .rc = fate.rc,
                                                                .fence = fate.fence,
                                                                .state = fate.state,
                                                                .run_at_us = fate.run_at_us};
}

/*
 * Removes the draining rows of leases that another party ended (drains[k]): the request shows that
 * the worker's handler is done. Each removed row frees a slot, which is news. This comes before the
 * answer, so that a worker which misses the answer and repeats its request finds the row gone too.
 */
static enum weft_rc let_go(struct weft_engine *engine, const struct weft_lease_call *call,
                           const bool *drains, struct weft_arena *arena, struct weft_err *err)
{
    struct weft_call drop;
    struct weft_rows rows = {0};
    struct weft_draining_drop_in *in = weft_call_draining_drop(&drop, arena, call->chunk.count);
    size_t count = 0;
    for (size_t k = 0; k < call->chunk.count; k++) {
        const struct weft_lease *lease = weft_lease_item(call, k);
        in->row[count].id = lease->id;
        in->row[count].epoch = lease->epoch;
        count += drains[k];
    }
    drop.rows = count;
    if (count == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &drop, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_commit_effects news = weft_news_new(arena, weft_clock_now(engine->clock));
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_draining_drop_out *row = &weft_out_draining_drop(&rows)[i];
        weft_news_of(&news, row->queue)->freed++;
        if (row->gate)
            weft_news_gate(&news, row->gate);
    }
    weft_news_tell(engine, &news);
    return WEFT_OK;
}

/*
 * Looks up the items that did not hold their leases, and answers them. This is a transaction of its
 * own, behind the one that did not find them, so that the common case does without it. It reads the
 * same as it would have in there: no transaction held a lock on rows that were not found, and a
 * lease that is gone does not come back, because epochs only grow.
 */
static enum weft_rc answer_rest(struct weft_engine *engine, struct weft_lease_call *call,
                                struct weft_arena *arena, struct weft_err *err)
{
    struct weft_call ask;
    struct weft_rows rows = {0};
    struct weft_lease_facts_in *in = weft_call_lease_facts(&ask, arena, call->chunk.count);
    size_t missing = 0;
    for (size_t k = 0; k < call->chunk.count; k++) {
        if (call->found[k])
            continue;
        const struct weft_lease *lease = weft_lease_item(call, k);
        in->row[missing].id = lease->id;
        in->row[missing++].epoch = lease->epoch;
    }
    if (missing == 0)
        return WEFT_OK;
    ask.rows = missing;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &ask, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_lease_facts *facts =
        weft_new_array(arena, struct weft_lease_facts, call->chunk.count + 1);
    bool *drains = weft_new_array(arena, bool, call->chunk.count + 1);
    for (size_t row = 0; row < rows.count; row++) {
        const struct weft_lease_facts_out *out = &weft_out_lease_facts(&rows)[row];
        size_t k = weft_chunk_find(&call->chunk, &call->ids, &out->id);
        for (size_t end = weft_chunk_end(&call->chunk, &call->ids, k); k < end; k++) {
            if (lease_at(call, call->chunk.item[k])->epoch != out->epoch)
                continue;
            drains[k] = call->op->asked != WEFT_ENDED_NONE && out->draining;
            bool locked = call->state && call->state[k] != WEFT_STATE_NONE;
            facts[k] = (struct weft_lease_facts){
                .state = locked ? call->state[k] : (enum weft_state)out->state.value,
                .epoch = out->now_epoch.value,
                .ended = out->ended.value,
                .answer = out->answer.value,
                .run_at_us = out->run_at.value,
            };
        }
    }
    rc = let_go(engine, call, drains, arena, err);
    if (rc)
        return rc;
    for (size_t k = 0; k < call->chunk.count; k++)
        if (!call->found[k])
            answer_fate(call, k, &facts[k]);
    return WEFT_OK;
}

/* ---- Running a call -------------------------------------------------------------------------- */

static void tell(struct weft_tx *tx, const struct weft_lease_call *call)
{
    struct weft_commit_effects news = weft_news_new(tx->arena, tx->now_us);
    bool budgets = call->completed.count > 0 && weft_budgets_in_use(tx->engine);
    weft_change_news(&news, &call->changes);
    for (size_t i = 0; i < call->completed.count; i++) {
        const struct weft_live_end_out *row = &weft_out_live_end(&call->completed)[i];
        if (i == 0)
            news.completed = (struct weft_id_column){&row->id, sizeof(*row), call->completed.count};
        weft_news_of(&news, row->queue)->freed++;
        weft_news_ended(&news, row->queue, WEFT_STATE_SUCCEEDED);
        if (row->flow.set)
            weft_news_flow(&news, &row->flow.value);
        if (row->gate)
            weft_news_gate(&news, row->gate);
        if (budgets && weft_budgets_apply(tx->engine, row->queue)) {
            size_t k = weft_chunk_find(&call->chunk, &call->ids, &row->id);
            weft_news_lease(&news, weft_lease_item(call, k), row->queue);
        }
    }
    weft_news_tell(tx->engine, &news);
}

enum weft_rc weft_lease_end_chunk(struct weft_tx *tx, struct weft_lease_call *call, enum weft_rc rc,
                                  struct weft_err *err)
{
    bool committed = !rc;
    size_t answered = 0;
    if (committed) {
        tell(tx, call);
        rc = answer_rest(tx->engine, call, tx->arena, err);
    }
    const struct weft_err *story = rc ? weft_err_dup(call->arena, err) : NULL;
    for (size_t k = 0; rc && k < call->chunk.count; k++) {
        if (committed && call->found[k])
            answered++;
        else
            *weft_lease_answer_of(call, k) = (struct weft_lease_result){WEFT_FAILED(story)};
    }
    return answered ? WEFT_OK : rc; /* items were committed: the error is in the other answers */
}

enum weft_rc weft_lease_run_chunk(struct weft_engine *engine, struct weft_lease_call *call,
                                  struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine,
                         .arena = weft_arena_new(),
                         .repeatable = true,
                         .maybe_committed = call->maybe_committed};
    for (size_t i = 0; i < call->chunk.count && call->op->bytes; i++)
        tx.bytes += call->op->bytes(weft_lease_item(call, i));
    call->changes = (struct weft_changes){0};
    call->completed = (struct weft_rows){0};
    enum weft_rc rc =
        weft_tx_do(&tx, call->op->hot ? WEFT_TX_HOT : WEFT_TX_WRITE, call->op->body, call, err);
    rc = weft_lease_end_chunk(&tx, call, rc, err);
    weft_arena_free(tx.arena);
    return rc;
}

/* An epoch is counted from 1: 0 was never a lease. */
static enum weft_rc check_item(const struct weft_lease_op *op, const struct weft_lease *lease,
                               struct weft_err *err)
{
    if (lease->epoch < 1)
        return weft_invalid(err, "epoch", "epoch is %d, a lease has one from 1 on", lease->epoch);
    return op->check(lease, err);
}

struct weft_chunks weft_lease_begin(struct weft_lease_call *call, struct weft_arena *arena)
{
    bool *skip = weft_new_array(arena, bool, call->ids.count + 1);
    for (size_t i = 0; i < call->ids.count; i++) {
        struct weft_err story = {0};
        skip[i] = check_item(call->op, lease_at(call, i), &story) != WEFT_OK;
        if (!skip[i])
            continue;
        const struct weft_err *kept = weft_err_dup(call->arena, &story);
        call->answer[i] = (struct weft_lease_result){WEFT_FAILED(kept)};
    }
    return weft_chunks_by_id(&call->ids, skip,
                             call->op->decide ? WEFT_REPEATS_TOGETHER : WEFT_REPEATS_LATER, arena);
}

/*
 * Answers an item whose execution the call has named WEFT_REPEATS_MAX times before. A repeat of a
 * request gets the answer of the first: the first ended the lease, or the lease was gone already
 * and stays so, because epochs only grow. A renewal gets the time to which the call renewed the
 * lease last. Of that many other epochs of one execution at most one is a lease that still runs: no
 * worker sends that in one call, and the item may be sent again.
 */
static void answer_repeat(const struct weft_lease_call *call, const struct weft_chunks *chunks,
                          size_t item)
{
    struct weft_lease_result *answer = &call->answer[item];
    struct weft_err *story =
        weft_err_new(call->arena, WEFT_BUSY, "id", "the call names this execution too often");
    story->hint = "say one word about each lease in a call";
    *answer = (struct weft_lease_result){WEFT_FAILED(story)};
    const struct weft_lease *lease = lease_at(call, item);
    for (size_t at = 0, same; (same = weft_chunks_next(chunks, WEFT_REPEATS_MAX, &call->ids,
                                                       &lease->id, &at)) != SIZE_MAX;)
        if (lease_at(call, same)->epoch == lease->epoch)
            *answer = call->answer[same];
}

/*
 * However often a call names a lease, it has no more than WEFT_REPEATS_MAX transactions for that:
 * all callers whose requests were gathered into this call wait for the last of them.
 */
static enum weft_rc run_chunks(struct weft_engine *engine, struct weft_lease_call *call,
                               const struct weft_chunks *chunks, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t c = 0; c < chunks->count; c++) {
        if (chunks->chunk[c].round >= WEFT_REPEATS_MAX) {
            for (size_t k = 0; k < chunks->chunk[c].count; k++)
                answer_repeat(call, chunks, chunks->chunk[c].item[k]);
            continue;
        }
        call->chunk = chunks->chunk[c];
        enum weft_rc failed = weft_lease_run_chunk(engine, call, err);
        /* With several transactions some may be committed: the errors are in the answers. */
        if (failed && chunks->count == 1)
            rc = failed;
    }
    return rc;
}

struct weft_lease_call weft_lease_call(const struct weft_lease_op *op, const void *item,
                                       size_t count, struct weft_arena *arena,
                                       struct weft_lease_result *answer)
{
    return (struct weft_lease_call){
        .op = op,
        .ids = {.first = item, .stride = op->item_size, .count = count},
        .answer = answer,
        .arena = arena,
    };
}

enum weft_rc weft_lease_run_call(struct weft_engine *engine, struct weft_lease_call *call,
                                 struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_chunks chunks = weft_lease_begin(call, arena);
    enum weft_rc rc = run_chunks(engine, call, &chunks, err);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_lease_run(struct weft_engine *engine, const struct weft_lease_op *op,
                            const void *item, size_t count, struct weft_arena *errors,
                            struct weft_lease_result *ret_answer, struct weft_err *err)
{
    struct weft_lease_call call = weft_lease_call(op, item, count, errors, ret_answer);
    return weft_lease_run_call(engine, &call, err);
}

struct weft_lease_result *weft_lease_found(struct weft_lease_call *call, const struct weft_id *id,
                                           enum weft_state state)
{
    size_t k = weft_chunk_find(&call->chunk, &call->ids, id);
    call->found[k] = true;
    *weft_lease_answer_of(call, k) = (struct weft_lease_result){.state = state};
    return weft_lease_answer_of(call, k);
}
