/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a worker says about its leases: renew, complete, fail, delay, release.
 *
 * Each finds its row only while it is running under the epoch the worker names. Whoever is not
 * found is looked up in what the store remembers: the holder's own last word gets the same answer
 * again, everything else is fenced with the reason (core/fence.h).
 */

#include "engine/job/leases.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/str.h"
#include "core/fence.h"
#include "core/retry.h"
#include "core/spec.h"
#include "core/state.h"
#include "engine/engine_state.h"
#include "engine/job/change.h"
#include "engine/job/joint.h"
#include "engine/tx/batch.h"

#include <assert.h>
#include <string.h>

/* A call of one of the five operations, and the part of it that runs in one transaction. */
struct lease_call {
    const void *item;          /* array of the operation's own type */
    struct weft_id_column ids; /* where the items have their ids */
    int32_t (*epoch)(const void *item, size_t i);
    enum weft_rc (*check)(const void *item, size_t i, struct weft_err *err);
    weft_tx_body *body;
    enum weft_ended asked; /* what a repeat of the same word would have left behind */
    struct weft_lease_answer *answer;
    struct weft_chunk chunk;
    struct weft_changes changes; /* of the last try, for the news */
    struct weft_rows completed;  /* the same, of completions */
    bool maybe_committed;        /* an earlier try may have been committed: see weft_tx */
    bool *found;                 /* which of the chunk held their leases; of the last try too */
    bool stays;                  /* a renewal: who is told that the lease is gone has not let go */
};

/* ---- Answers to those who do not hold their lease -------------------------------------------- */

static void answer_fate(struct weft_lease_answer *answer, const struct weft_lease_facts *facts,
                        int32_t epoch, enum weft_ended asked)
{
    struct weft_fate fate = weft_lease_fate(facts, epoch, asked);
    *answer = (struct weft_lease_answer){
        .fence = fate.fence, .state = fate.state, .run_at_us = fate.run_at_us};
    if (fate.rc == WEFT_NOT_FOUND)
        weft_fail_field(&answer->err, WEFT_NOT_FOUND, "id", "there is no such execution");
    else if (fate.rc && fate.fence == WEFT_FENCE_UNKNOWN)
        weft_fail_field(&answer->err, WEFT_FENCED, "epoch",
                        "epoch %d was never given to a worker: the execution is %s under epoch %d",
                        epoch, weft_state_name(facts->state), facts->epoch);
    else if (fate.rc)
        weft_fail(&answer->err, WEFT_FENCED, "the lease is gone (%s): nothing was changed",
                  weft_fence_name(fate.fence));
}

static const struct weft_id *id_of(const struct lease_call *call, size_t k)
{
    return weft_column_id(&call->ids, call->chunk.item[k]);
}

static int32_t epoch_of(const struct lease_call *call, size_t k)
{
    return call->epoch(call->item, call->chunk.item[k]);
}

/*
 * The items whose leases others ended, and whose draining rows are there (drains[k]), let go of
 * them: their handlers are done with. What frees a slot is news. Done before they are answered, so
 * that a worker which does not hear the answer, and says its word again, is sure to let go.
 */
static enum weft_rc let_go(struct weft_engine *engine, const struct lease_call *call,
                           const bool *drains, struct weft_arena *arena, struct weft_err *err)
{
    struct weft_call drop;
    struct weft_rows rows = {0};
    struct weft_draining_drop_in *in = weft_call_draining_drop(&drop, arena, call->chunk.count);
    size_t count = 0;
    for (size_t k = 0; k < call->chunk.count; k++)
        if (drains[k]) {
            in->row[count].id = *id_of(call, k);
            in->row[count++].epoch = epoch_of(call, k);
        }
    drop.rows = count;
    if (count == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &drop, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_commit_effects news = weft_news_new(arena, weft_clock_now(engine->clock));
    for (size_t i = 0; i < rows.count; i++)
        weft_news_of(&news, weft_out_draining_drop(&rows)[i].queue)->freed++;
    weft_news_tell(engine, &news);
    return WEFT_OK;
}

/*
 * Looks up the items that did not hold their leases, and answers them. This is a transaction of its
 * own, behind the one that did not find them, so that it can be left out of the common case. What
 * it reads is as good as it would have been in there: nobody held a lock on rows that were not
 * found, and a lease that is gone does not come back, because epochs only grow.
 */
static enum weft_rc answer_rest(struct weft_engine *engine, struct lease_call *call,
                                struct weft_arena *arena, struct weft_err *err)
{
    struct weft_call ask;
    struct weft_rows rows = {0};
    struct weft_lease_facts_in *in = weft_call_lease_facts(&ask, arena, call->chunk.count);
    size_t missing = 0;
    for (size_t k = 0; k < call->chunk.count; k++) {
        if (call->found[k])
            continue;
        in->row[missing].id = *id_of(call, k);
        in->row[missing++].epoch = epoch_of(call, k);
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
        drains[k] = !call->stays && out->draining;
        facts[k] = (struct weft_lease_facts){
            .state = out->state.value,
            .epoch = out->now_epoch.value,
            .ended = out->ended.value,
            .answer = out->answer.value,
            .run_at_us = out->run_at.value,
        };
    }
    rc = let_go(engine, call, drains, arena, err);
    if (rc)
        return rc;
    for (size_t k = 0; k < call->chunk.count; k++)
        if (!call->found[k])
            answer_fate(&call->answer[call->chunk.item[k]], &facts[k], epoch_of(call, k),
                        call->asked);
    return WEFT_OK;
}

/* Answers the items that renew found, or live_end. */
static void answer_found(struct weft_tx *tx, struct lease_call *call, const struct weft_rows *rows,
                         enum weft_state state)
{
    call->found = weft_new_array(tx->arena, bool, call->chunk.count + 1);
    for (size_t row = 0; row < rows->count; row++) {
        bool renewed = state == WEFT_STATE_RUNNING;
        struct weft_id id =
            renewed ? weft_out_renew(rows)[row].id : weft_out_live_end(rows)[row].id;
        size_t k = weft_chunk_find(&call->chunk, &call->ids, &id);
        call->answer[call->chunk.item[k]] = (struct weft_lease_answer){.state = state};
        if (renewed)
            call->answer[call->chunk.item[k]].lease_expires_us = weft_out_renew(rows)[row].due;
        call->found[k] = true;
    }
}

/* ---- Running a call -------------------------------------------------------------------------- */

static void tell(struct weft_tx *tx, const struct lease_call *call)
{
    struct weft_commit_effects news = weft_news_new(tx->arena, tx->now_us);
    weft_change_news(&news, &call->changes);
    for (size_t i = 0; i < call->completed.count; i++) {
        const struct weft_live_end_out *row = &weft_out_live_end(&call->completed)[i];
        if (i == 0)
            news.completed = (struct weft_id_column){&row->id, sizeof(*row), call->completed.count};
        int32_t queue = row->queue;
        weft_news_of(&news, queue)->freed++;
        weft_news_ended(&news, queue, WEFT_STATE_SUCCEEDED);
        if (row->flow.set) {
            weft_news_flow(&news, &row->flow.value);
        }
    }
    weft_news_tell(tx->engine, &news);
}

/*
 * The end of a chunk whose transaction ended with rc: when it failed, the items that have no answer
 * yet get the error for one. The arena is that of the transaction.
 */
static enum weft_rc end_chunk(struct weft_tx *tx, struct lease_call *call, enum weft_rc rc,
                              struct weft_err *err)
{
    bool committed = !rc;
    size_t answered = 0;
    if (committed) {
        tell(tx, call);
        rc = answer_rest(tx->engine, call, tx->arena, err);
    }
    for (size_t k = 0; rc && k < call->chunk.count; k++) {
        if (committed && call->found[k])
            answered++;
        else
            call->answer[call->chunk.item[k]] = (struct weft_lease_answer){.err = *err};
    }
    return answered ? WEFT_OK : rc; /* what was committed must be told: then the items tell */
}

static void forget_try(struct lease_call *call)
{
    call->changes = (struct weft_changes){0};
    call->completed = (struct weft_rows){0};
    call->found = NULL;
}

static enum weft_rc run_chunk(struct weft_engine *engine, struct lease_call *call,
                              struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine,
                         .arena = weft_arena_new(),
                         .repeatable = true,
                         .maybe_committed = call->maybe_committed};
    forget_try(call);
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, call->body, call, err);
    rc = end_chunk(&tx, call, rc, err);
    weft_arena_free(tx.arena);
    return rc;
}

/* Answers what is wrong with items and puts the others into chunks. */
static struct weft_chunks begin_call(struct lease_call *call, size_t count,
                                     struct weft_arena *arena)
{
    bool *skip = weft_new_array(arena, bool, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct weft_err story = {0};
        skip[i] = call->check(call->item, i, &story) != WEFT_OK;
        if (skip[i])
            call->answer[i] = (struct weft_lease_answer){.err = story};
    }
    call->ids.count = count;
    return weft_chunks_by_id(&call->ids, skip, arena);
}

/*
 * Answers an item whose lease the call has named WEFT_REPEATS_MAX times before. A word that was
 * said before gets the answer it got then: the lease has ended by it, or it was gone already and
 * stays so, because epochs only grow. A renewal gets the time to which the call renewed the lease
 * last. Of that many other epochs of one execution at most one was ever a lease that still runs: no
 * worker says that in one call, and the item may be sent again.
 */
static void answer_repeat(const struct lease_call *call, const struct weft_chunks *chunks,
                          size_t item)
{
    struct weft_lease_answer *answer = &call->answer[item];
    *answer = (struct weft_lease_answer){0};
    weft_fail_field(&answer->err, WEFT_BUSY, "id", "the call names this execution too often");
    answer->err.hint = "say one word about each lease in a call";
    const struct weft_id *id = weft_column_id(&call->ids, item);
    for (size_t at = 0, same;
         (same = weft_chunks_next(chunks, WEFT_REPEATS_MAX, &call->ids, id, &at)) != SIZE_MAX;)
        if (call->epoch(call->item, same) == call->epoch(call->item, item))
            *answer = call->answer[same];
}

/*
 * However often a call names a lease, it has no more than WEFT_REPEATS_MAX transactions for that:
 * all callers whose words were gathered into this call wait for the last of them.
 */
static enum weft_rc run_chunks(struct weft_engine *engine, struct lease_call *call,
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
        enum weft_rc failed = run_chunk(engine, call, err);
        /* With several transactions, some may have been committed: then the items tell. */
        if (failed && chunks->count == 1)
            rc = failed;
    }
    return rc;
}

static enum weft_rc run_call(struct weft_engine *engine, struct lease_call *call, size_t count,
                             struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_chunks chunks = begin_call(call, count, arena);
    enum weft_rc rc = run_chunks(engine, call, &chunks, err);
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc check_lease_ms(int64_t lease_ms, struct weft_err *err)
{
    if (lease_ms != 0 && (lease_ms < WEFT_LEASE_MIN_MS || lease_ms > WEFT_LEASE_MAX_MS))
        return weft_fail_field(err, WEFT_INVALID_VALUE, "lease_ms",
                               "lease_ms is %lld, allowed are %d to %d", (long long)lease_ms,
                               WEFT_LEASE_MIN_MS, WEFT_LEASE_MAX_MS);
    return WEFT_OK;
}

/* An epoch is counted from 1: 0 was never a lease. */
static enum weft_rc check_epoch(int32_t epoch, struct weft_err *err)
{
    if (epoch < 1)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "epoch",
                               "epoch is %d, a lease has one from 1 on", epoch);
    return WEFT_OK;
}

/* Where an array of items has its ids. */
#define IDS_OF(item)                                                                               \
    {                                                                                              \
        .first = (item) ? &(item)->id : NULL, .stride = sizeof(*(item))                            \
    }

/* ---- Renew ----------------------------------------------------------------------------------- */

static int32_t renew_epoch(const void *item, size_t i)
{
    return ((const struct weft_renew *)item)[i].epoch;
}

static enum weft_rc renew_check(const void *items, size_t i, struct weft_err *err)
{
    const struct weft_renew *item = &((const struct weft_renew *)items)[i];
    enum weft_rc rc = check_epoch(item->epoch, err);
    if (!rc)
        rc = check_lease_ms(item->lease_ms, err);
    if (!rc && item->has_progress && (item->percent < 0 || item->percent > 100))
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "progress.percent",
                             "progress.percent is %d, allowed are 0 to 100", item->percent);
    if (!rc && item->has_progress)
        rc = weft_text_check(item->note, WEFT_REASON_MAX, "progress.note", err);
    return rc;
}

/* Progress of the leases that were found; their rows are locked by the renewal. */
static enum weft_rc put_progress(struct weft_tx *tx, const struct lease_call *call,
                                 struct weft_err *err)
{
    const struct weft_renew *items = call->item;
    struct weft_call put;
    struct weft_rows none;
    struct weft_progress_put_in *in = weft_call_progress_put(&put, tx->arena, call->chunk.count);
    in->now = tx->now_us;
    size_t rows = 0;
    for (size_t k = 0; k < call->chunk.count; k++) {
        const struct weft_renew *item = &items[call->chunk.item[k]];
        if (!call->found[k] || !item->has_progress)
            continue;
        in->row[rows].id = item->id;
        in->row[rows].epoch = item->epoch;
        in->row[rows].percent = item->percent;
        in->row[rows++].note = item->note;
    }
    put.rows = rows;
    return rows ? weft_tx_last(tx, &put, 1, &none, err) : WEFT_OK;
}

static enum weft_rc renew_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct lease_call *call = context;
    const struct weft_renew *items = call->item;
    struct weft_call renew;
    struct weft_rows rows;
    struct weft_renew_in *in = weft_call_renew(&renew, tx->arena, call->chunk.count);
    in->now = tx->now_us;
    bool progress = false;
    for (size_t k = 0; k < call->chunk.count; k++) {
        const struct weft_renew *item = &items[call->chunk.item[k]];
        progress |= item->has_progress;
        in->row[k].id = item->id;
        in->row[k].epoch = item->epoch;
        if (item->lease_ms)
            in->row[k].lease = weft_some(item->lease_ms * WEFT_MS);
    }
    enum weft_rc rc =
        progress ? weft_tx_run(tx, &renew, 1, &rows, err) : weft_tx_last(tx, &renew, 1, &rows, err);
    if (rc)
        return rc;
    answer_found(tx, call, &rows, WEFT_STATE_RUNNING);
    return progress ? put_progress(tx, call, err) : WEFT_OK;
}

enum weft_rc weft_engine_renew(struct weft_engine *engine, const struct weft_renew *item,
                               size_t count, struct weft_lease_answer *ret_answer,
                               struct weft_err *err)
{
    struct lease_call call = {.item = item,
                              .ids = IDS_OF(item),
                              .epoch = renew_epoch,
                              .check = renew_check,
                              .body = renew_body,
                              .answer = ret_answer,
                              .stays = true};
    return run_call(engine, &call, count, err);
}

/* ---- Complete -------------------------------------------------------------------------------- */

static int32_t complete_epoch(const void *item, size_t i)
{
    return ((const struct weft_complete *)item)[i].epoch;
}

static enum weft_rc complete_check(const void *items, size_t i, struct weft_err *err)
{
    const struct weft_complete *item = &((const struct weft_complete *)items)[i];
    enum weft_rc rc = check_epoch(item->epoch, err);
    if (!rc && item->result_size > WEFT_PAYLOAD_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "result",
                               "the result has %zu bytes, at most %d are allowed",
                               item->result_size, WEFT_PAYLOAD_MAX);
    if (!rc && !item->result && item->result_size > 0)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "result",
                               "result is NULL but result_size is %zu", item->result_size);
    if (!rc && item->content_type && !*item->content_type)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "content_type", "content_type is empty");
    if (!rc)
        rc = weft_text_check(item->content_type, WEFT_CONTENT_TYPE_MAX, "content_type", err);
    return rc;
}

static bool ask_complete(struct weft_tx *tx, void *context, struct weft_call *ret_call)
{
    const struct lease_call *call = context;
    const struct weft_complete *items = call->item;
    struct weft_live_end_in *in = weft_call_live_end(ret_call, tx->arena, call->chunk.count);
    in->now = tx->now_us;
    for (size_t k = 0; k < call->chunk.count; k++) {
        const struct weft_complete *item = &items[call->chunk.item[k]];
        in->row[k].id = item->id;
        in->row[k].epoch = item->epoch;
        in->row[k].was = WEFT_STATE_RUNNING;
        in->row[k].state = WEFT_STATE_SUCCEEDED;
        in->row[k].ended = WEFT_ENDED_COMPLETED;
        in->row[k].content_type = item->content_type;
        in->row[k].result = (struct weft_blob){item->result, item->result_size};
    }
    return true;
}

static void take_complete(struct weft_tx *tx, void *context, const struct weft_rows *rows)
{
    struct lease_call *call = context;
    call->completed = *rows;
    answer_found(tx, call, rows, WEFT_STATE_SUCCEEDED);
}

static enum weft_rc complete_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct weft_call end;
    struct weft_rows rows;
    (void)ask_complete(tx, context, &end);
    enum weft_rc rc = weft_tx_last(tx, &end, 1, &rows, err);
    if (!rc)
        take_complete(tx, context, &rows);
    return rc;
}

/* How many of the items fit one transaction by their results. */
static size_t fit_results(const struct weft_complete *item, size_t count)
{
    size_t fit = 0, bytes = 0;
    do
        bytes += item[fit++].result_size;
    while (fit < count && bytes + item[fit].result_size <= WEFT_BATCH_BYTES);
    return fit;
}

static struct lease_call complete_call(const struct weft_complete *item,
                                       struct weft_lease_answer *answer)
{
    return (struct lease_call){.item = item,
                               .ids = IDS_OF(item),
                               .epoch = complete_epoch,
                               .check = complete_check,
                               .body = complete_body,
                               .asked = WEFT_ENDED_COMPLETED,
                               .answer = answer};
}

/* Results are bounded together: a call is cut where they would pass what a transaction holds. */
enum weft_rc weft_engine_complete(struct weft_engine *engine, const struct weft_complete *item,
                                  size_t count, struct weft_lease_answer *ret_answer,
                                  struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t at = 0, part = 0; at < count && !rc; at += part) {
        part = fit_results(item + at, count - at);
        struct lease_call call = complete_call(item + at, ret_answer + at);
        enum weft_rc failed = run_call(engine, &call, part, err);
        if (part == count)
            rc = failed; /* else some may have been committed: then the items tell */
    }
    return rc;
}

void weft_complete_begin(struct weft_engine *engine, struct weft_joint_call *call,
                         struct weft_arena *arena)
{
    (void)engine;
    if (fit_results(call->item, call->count) < call->count)
        return;
    struct lease_call *lease = weft_new(arena, struct lease_call);
    *lease = complete_call(call->item, call->answer);
    struct weft_chunks chunks = begin_call(lease, call->count, arena);
    if (chunks.count != 1)
        return;
    lease->chunk = chunks.chunk[0];
    call->part = (struct weft_part){.context = lease,
                                    .ask = ask_complete,
                                    .take = take_complete,
                                    .joins = true,
                                    .repeatable = true};
}

void weft_complete_end(struct weft_tx *tx, struct weft_joint_call *call, struct weft_arena *arena)
{
    const struct weft_part *part = &call->part;
    struct lease_call *lease = part->context;
    (void)arena;
    call->err = part->err;
    if (!part->joins)
        call->rc =
            weft_engine_complete(tx->engine, call->item, call->count, call->answer, &call->err);
    else if (part->fate == WEFT_PART_DONE || part->fate == WEFT_PART_FAILED)
        call->rc = end_chunk(tx, lease, part->err.rc, &call->err);
    else {
        lease->maybe_committed = part->fate == WEFT_PART_MAYBE_COMMITTED;
        call->rc = run_chunk(tx->engine, lease, &call->err);
    }
}

/* ---- Fail, delay, release: lock, decide, write ----------------------------------------------- */

/* Locks the rows of the chunk; found says which items hold their leases. */
static enum weft_rc lock_held(struct weft_tx *tx, struct lease_call *call, struct weft_err *err)
{
    struct weft_id *ids = weft_new_array(tx->arena, struct weft_id, call->chunk.count + 1);
    for (size_t k = 0; k < call->chunk.count; k++)
        ids[k] = *id_of(call, k);
    enum weft_rc rc = weft_change_lock(tx, ids, call->chunk.count, &call->changes, err);
    if (rc)
        return rc;
    call->found = weft_new_array(tx->arena, bool, call->chunk.count + 1);
    for (size_t k = 0; k < call->chunk.count; k++) {
        const struct weft_change *change = weft_change_find(&call->changes, &ids[k]);
        call->found[k] = change && change->before.state == WEFT_STATE_RUNNING &&
                         change->before.epoch == epoch_of(call, k);
    }
    return WEFT_OK;
}

static void answer_step(struct weft_lease_answer *answer, const struct weft_change *change)
{
    const struct weft_live *after = &change->step.after;
    *answer = (struct weft_lease_answer){
        .state = after->state, .run_at_us = after->state == WEFT_STATE_DELAYED ? after->due_us : 0};
}

static int32_t fail_epoch(const void *item, size_t i)
{
    return ((const struct weft_failure *)item)[i].epoch;
}

static enum weft_rc fail_check(const void *items, size_t i, struct weft_err *err)
{
    const struct weft_failure *item = &((const struct weft_failure *)items)[i];
    enum weft_rc rc = check_epoch(item->epoch, err);
    if (!rc)
        rc = weft_text_check(item->error_class, WEFT_CLASS_MAX, "class", err);
    if (!rc && item->error_class && !*item->error_class)
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "class", "class is empty");
    if (!rc && item->message && !weft_utf8_valid(item->message, strlen(item->message)))
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "message", "message must be valid UTF-8");
    if (!rc && (item->retry_after_ms < -1 || item->retry_after_ms > WEFT_DELAY_MAX_MS))
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "retry_after_ms",
                             "retry_after_ms must be 0 to %lld", (long long)WEFT_DELAY_MAX_MS);
    return rc;
}

/* An error message is worth keeping even when it is too long: it is cut, not refused. */
static const char *cut_message(const char *message, struct weft_arena *arena)
{
    size_t size = message ? strlen(message) : 0;
    if (size <= WEFT_MESSAGE_MAX)
        return message;
    char *copy = weft_arena_strdup(arena, message);
    copy[weft_utf8_cut(message, size, WEFT_MESSAGE_MAX)] = '\0';
    return copy;
}

static enum weft_rc fail_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct lease_call *call = context;
    const struct weft_failure *items = call->item;
    enum weft_rc rc = lock_held(tx, call, err);
    if (!rc)
        rc = weft_change_rules(tx, &call->changes, err);
    if (rc)
        return rc;
    for (size_t k = 0; k < call->chunk.count; k++) {
        if (!call->found[k])
            continue;
        const struct weft_failure *item = &items[call->chunk.item[k]];
        struct weft_change *change = weft_change_find(&call->changes, &item->id);
        struct weft_fault_report report = {
            .how = WEFT_ENDED_FAILED,
            .error_class = item->error_class ? item->error_class : "error",
            .permanent = item->permanent,
            .retry_after_ms = item->retry_after_ms,
            .now_us = tx->now_us,
        };
        weft_random(&report.random, sizeof(report.random));
        struct weft_event event = weft_retry_decide(
            weft_find_rules(tx->engine, change->before.policy), &change->before, &report);
        change->error_class = report.error_class;
        change->error_message = cut_message(item->message, tx->arena);
        bool legal = weft_change_step(change, &event);
        assert(legal); /* it is running: found says so */
        (void)legal;
        answer_step(&call->answer[call->chunk.item[k]], change);
    }
    return weft_change_write(tx, &call->changes, err);
}

enum weft_rc weft_engine_fail(struct weft_engine *engine, const struct weft_failure *item,
                              size_t count, struct weft_lease_answer *ret_answer,
                              struct weft_err *err)
{
    struct lease_call call = {.item = item,
                              .ids = IDS_OF(item),
                              .epoch = fail_epoch,
                              .check = fail_check,
                              .body = fail_body,
                              .asked = WEFT_ENDED_FAILED,
                              .answer = ret_answer};
    return run_call(engine, &call, count, err);
}

static int32_t put_back_epoch(const void *item, size_t i)
{
    return ((const struct weft_put_back *)item)[i].epoch;
}

static enum weft_rc put_back_check(const void *items, size_t i, struct weft_err *err)
{
    const struct weft_put_back *item = &((const struct weft_put_back *)items)[i];
    enum weft_rc rc = check_epoch(item->epoch, err);
    if (!rc && (item->delay_ms < 0 || item->delay_ms > WEFT_DELAY_MAX_MS))
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "delay_ms", "delay_ms must be 0 to %lld",
                             (long long)WEFT_DELAY_MAX_MS);
    return rc;
}

static enum weft_rc put_back_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct lease_call *call = context;
    const struct weft_put_back *items = call->item;
    enum weft_rc rc = lock_held(tx, call, err);
    if (rc)
        return rc;
    for (size_t k = 0; k < call->chunk.count; k++) {
        if (!call->found[k])
            continue;
        const struct weft_put_back *item = &items[call->chunk.item[k]];
        struct weft_change *change = weft_change_find(&call->changes, &item->id);
        struct weft_event event = {
            .kind = item->delay_ms ? WEFT_EVENT_DELAY : WEFT_EVENT_RELEASE,
            .how = call->asked,
            .due_us = item->delay_ms ? tx->now_us + item->delay_ms * WEFT_MS : 0,
        };
        bool legal = weft_change_step(change, &event);
        assert(legal);
        (void)legal;
        answer_step(&call->answer[call->chunk.item[k]], change);
    }
    return weft_change_write(tx, &call->changes, err);
}

enum weft_rc weft_engine_put_back(struct weft_engine *engine, enum weft_put_back_kind kind,
                                  const struct weft_put_back *item, size_t count,
                                  struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    struct lease_call call = {.item = item,
                              .ids = IDS_OF(item),
                              .epoch = put_back_epoch,
                              .check = put_back_check,
                              .body = put_back_body,
                              .asked = kind == WEFT_PUT_BACK_DELAY ? WEFT_ENDED_DELAYED
                                                                   : WEFT_ENDED_RELEASED,
                              .answer = ret_answer};
    return run_call(engine, &call, count, err);
}
