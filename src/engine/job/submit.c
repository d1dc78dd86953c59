/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submitting: validate, intern, mint ids, write.
 *
 * Keyed items go in transactions of their own, because an open transaction may hold a key:
 * they run under a short lock_timeout, and a batch that meets such a key is cut in halves until
 * only the items whose key is held answer `busy`. A batch that fails on data, which validation
 * should have caught, is cut in the same way until the bad item is alone.
 */

#include "engine/job/submit.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "engine/engine_state.h"
#include "engine/job/joint.h"
#include "engine/limit/admit.h"

#include <stdlib.h>
#include <string.h>

/* Reserves `count` places in the order of submission: the clock, moved on where it stood still. */
static int64_t reserve_ord(struct weft_engine *engine, weft_usec now_us, size_t count)
{
    pthread_mutex_lock(&engine->ord_lock);
    int64_t first = now_us > engine->last_ord ? now_us : engine->last_ord + 1;
    engine->last_ord = first + (int64_t)count - 1;
    pthread_mutex_unlock(&engine->ord_lock);
    return first;
}

enum weft_rc weft_submission_place(struct weft_engine *engine, bool limited,
                                   struct weft_submission *item, size_t count, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_resolved *spec = weft_new_array(arena, struct weft_resolved, count + 1);
    const struct weft_queue **queue = weft_new_array(arena, const struct weft_queue *, count + 1);
    int32_t *policy = weft_new_array(arena, int32_t, count + 1);
    for (size_t i = 0; i < count; i++)
        spec[i] = item[i].spec;
    bool refused;
    enum weft_rc rc =
        weft_intern_queues(engine, spec, NULL, count, queue, limited ? &refused : NULL, err);
    if (!rc)
        rc = weft_intern_policies(engine, spec, NULL, count, policy, err);
    if (!rc) {
        int64_t ord = reserve_ord(engine, weft_clock_now(engine->clock), count);
        for (size_t i = 0; i < count; i++) {
            item[i].queue = queue[i];
            item[i].policy = policy[i];
            item[i].ord = ord + (int64_t)i;
        }
    }
    weft_arena_free(arena);
    return rc;
}

/* ---- Batches --------------------------------------------------------------------------------- */

static int by_key(const void *left, const void *right)
{
    const struct weft_submission *a = *(struct weft_submission *const *)left;
    const struct weft_submission *b = *(struct weft_submission *const *)right;
    if (a->queue->ns != b->queue->ns)
        return a->queue->ns < b->queue->ns ? -1 : 1;
    int order = strcmp(a->spec.key, b->spec.key);
    return order ? order : (a->ord > b->ord) - (a->ord < b->ord);
}

static bool same_key(const struct weft_submission *a, const struct weft_submission *b)
{
    return a->queue->ns == b->queue->ns && strcmp(a->spec.key, b->spec.key) == 0;
}

/*
 * Sorts keyed items for two rounds: the first item with each key, then all others. Returns the size
 * of the first round. A client's retry that is folded into the same call as its original meets it
 * in a later transaction, when the key is decided. However often a call names a key, it costs no
 * transaction for each: in the second round items with one key share a transaction. As a rule all
 * of them lose to the first round. Where the first item was refused, or its execution has been
 * removed since, the first of them takes the key (key_take goes by the order of this list) and the
 * others read it in the same transaction.
 */
static size_t order_keyed(struct weft_submission **item, size_t count, struct weft_arena *arena)
{
    qsort(item, count, sizeof(void *), by_key); /* sorts the pointers */
    struct weft_submission **rest = weft_new_array(arena, struct weft_submission *, count + 1);
    size_t kept = 0, left = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && same_key(item[kept - 1], item[i]))
            rest[left++] = item[i];
        else
            item[kept++] = item[i];
    }
    memcpy(item + kept, rest, left * sizeof(void *));
    return kept;
}

struct weft_submissions *weft_submission_batches(struct weft_submission *item, size_t count,
                                                 struct weft_arena *arena, size_t *ret_count)
{
    struct weft_submission **order = weft_new_array(arena, struct weft_submission *, count + 1);
    size_t plain = 0, keyed = count;
    for (size_t i = 0; i < count; i++)
        order[item[i].spec.key ? --keyed : plain++] = &item[i];
    const size_t end[] = {plain, plain + order_keyed(order + plain, count - plain, arena), count};
    struct weft_submissions *batch = weft_new_array(arena, struct weft_submissions, count + 1);
    size_t batches = 0, at = 0;
    for (size_t section = 0; section < WEFT_LEN(end); section++)
        while (at < end[section]) {
            struct weft_submissions *out = &batch[batches++];
            *out = (struct weft_submissions){.item = order + at, .keyed = section > 0};
            size_t bytes = 0;
            while (at < end[section] && out->count < WEFT_BATCH_MAX &&
                   (out->count == 0 || bytes + order[at]->spec.payload_size <= WEFT_BATCH_BYTES)) {
                bytes += order[at++]->spec.payload_size;
                out->count++;
            }
        }
    *ret_count = batches;
    return batch;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_row(struct weft_submit_item *to, const struct weft_submission *item,
                    struct weft_arena *arena)
{
    const struct weft_resolved *spec = &item->spec;
    to->id = item->id;
    to->ord = item->ord;
    to->queue = item->queue->id;
    to->lane = item->queue->lane;
    to->policy = item->policy;
    to->priority = spec->priority;
    to->state = spec->state;
    to->due = weft_unless_zero(spec->due_us);
    to->deadline = weft_unless_zero(spec->deadline_us);
    to->content_type = spec->content_type;
    to->tags = spec->tags;
    to->key = spec->key;
    to->payload = (struct weft_blob){spec->payload, spec->payload_size};
    to->size = (int64_t)spec->payload_size;
    to->gate = weft_gate_key(item->queue->ns, spec->gate, arena);
}

struct weft_span_row *weft_submission_spans(struct weft_submission *const *item, size_t count,
                                            struct weft_arena *arena)
{
    struct weft_span_row *row = weft_new_array(arena, struct weft_span_row, count + 1);
    for (size_t i = 0; i < count; i++)
        row[i] = (struct weft_span_row){.id = item[i]->id, .ns = item[i]->queue->ns};
    weft_spans_find(row, count, arena);
    return row;
}

static void put_rows(struct weft_tx *tx, const struct weft_submissions *part,
                     struct weft_call *ret_call)
{
    struct weft_span_row *span = weft_submission_spans(part->item, part->count, tx->arena);
    struct weft_submit_in *in = weft_call_submit(ret_call, tx->arena, part->count);
    in->now = part->now_us;
    for (size_t i = 0; i < part->count; i++) {
        const struct weft_submission *item = part->item[i];
        put_row(&in->row[i], item, tx->arena);
        in->row[i].span = weft_span_of(&span[i]);
        *item->answer = (struct weft_submit_result){.id = item->id, .state = item->spec.state};
    }
}

bool weft_submission_costs(struct weft_submission *const *item, size_t count,
                           struct weft_arena *arena, struct weft_call *ret_call)
{
    size_t rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += item[i]->spec.cost_count;
    if (rows == 0)
        return false;
    struct weft_cost_add_item *row = weft_call_cost_add(ret_call, arena, rows)->row;
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < item[i]->spec.cost_count; c++)
            *row++ = (struct weft_cost_add_item){.id = item[i]->id,
                                                 .dimension = item[i]->spec.cost[c].dimension,
                                                 .amount = item[i]->spec.cost[c].amount};
    return true;
}

/* last: nothing follows, so COMMIT goes along. */
static enum weft_rc write_rows(struct weft_tx *tx, const struct weft_submissions *part, bool last,
                               struct weft_err *err)
{
    struct weft_call call[2];
    struct weft_rows rows[2];
    put_rows(tx, part, &call[0]);
    size_t calls = 1 + weft_submission_costs(part->item, part->count, tx->arena, &call[1]);
    return last ? weft_tx_last(tx, call, calls, rows, err)
                : weft_tx_run(tx, call, calls, rows, err);
}

/* Answers an item whose key was taken, from the execution that holds the key now. */
static void answer_taken(struct weft_submission *item, const struct weft_rows *rows,
                         struct weft_arena *arena)
{
    struct weft_submit_result *answer = item->answer;
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_key_read_out *row = &weft_out_key_read(rows)[i];
        if (row->namespace != item->queue->ns || strcmp(row->key, item->spec.key) != 0)
            continue;
        *answer =
            (struct weft_submit_result){.id = row->id, .state = row->state, .duplicate = true};
        if (row->fingerprint.size != sizeof(item->spec.fingerprint) ||
            memcmp(row->fingerprint.data, item->spec.fingerprint, row->fingerprint.size) != 0) {
            struct weft_err *story =
                weft_err_new(arena, WEFT_CONFLICT, "key",
                             "this key belongs to an execution with another lane, kind or payload");
            story->hint = weft_hint_other_key;
            *answer =
                (struct weft_submit_result){WEFT_FAILED(story), .id = row->id, .state = row->state};
        }
        return;
    }
    const struct weft_err *story =
        weft_err_new(arena, WEFT_BUSY, "key", "the holder of this key just went away");
    *answer = (struct weft_submit_result){WEFT_FAILED(story)};
}

/* Answers items whose keys are taken. They are in the order of keys: each key is read once. */
static enum weft_rc answer_losers(struct weft_tx *tx, struct weft_submission **loser, size_t count,
                                  struct weft_arena *arena, struct weft_err *err)
{
    size_t keys = 0;
    struct weft_call read;
    struct weft_rows taken;
    struct weft_key_read_in *in = weft_call_key_read(&read, tx->arena, count);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && same_key(loser[i - 1], loser[i]))
            continue;
        in->row[keys].namespace = loser[i]->queue->ns;
        in->row[keys++].key = loser[i]->spec.key;
    }
    read.rows = keys;
    enum weft_rc rc = weft_tx_run(tx, &read, 1, &taken, err);
    for (size_t i = 0; i < count && !rc; i++)
        answer_taken(loser[i], &taken, arena);
    return rc;
}

/* Takes the keys, writes the items that got theirs, and answers the others. */
static enum weft_rc write_keyed(struct weft_tx *tx, const struct weft_submissions *batch,
                                struct weft_err *err)
{
    struct weft_call take;
    struct weft_rows won = {0};
    struct weft_key_take_in *in = weft_call_key_take(&take, tx->arena, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        const struct weft_submission *item = batch->item[i];
        in->row[i].namespace = item->queue->ns;
        in->row[i].key = item->spec.key;
        in->row[i].id = item->id;
        in->row[i].fingerprint =
            (struct weft_blob){item->spec.fingerprint, sizeof(item->spec.fingerprint)};
    }
    enum weft_rc rc = weft_tx_run(tx, &take, 1, &won, err);
    if (rc)
        return rc;

    struct weft_submissions winner = {
        .item = weft_new_array(tx->arena, struct weft_submission *, batch->count + 1),
        .now_us = batch->now_us};
    struct weft_submission **loser =
        weft_new_array(tx->arena, struct weft_submission *, batch->count + 1);
    size_t losers = 0;
    /* Winners come back in the order they were given, except where a driver chose another. */
    for (size_t i = 0; i < batch->count; i++) {
        bool has_won = false;
        for (size_t k = 0; k < won.count && !has_won; k++) {
            struct weft_id id = weft_out_key_take(&won)[(i + k) % won.count].id;
            has_won = weft_id_cmp(&id, &batch->item[i]->id) == 0;
        }
        if (has_won)
            winner.item[winner.count++] = batch->item[i];
        else
            loser[losers++] = batch->item[i];
    }
    if (winner.count > 0)
        rc = write_rows(tx, &winner, losers == 0 && !batch->from_inbox, err);
    return rc || losers == 0 ? rc : answer_losers(tx, loser, losers, batch->arena, err);
}

static enum weft_rc write_new(struct weft_tx *tx, const struct weft_submissions *batch,
                              struct weft_err *err)
{
    if (batch->count == 0)
        return WEFT_OK;
    if (batch->keyed)
        return write_keyed(tx, batch, err);
    return write_rows(tx, batch, !batch->from_inbox, err);
}

/* Inbox rows whose key is taken end as they begin, in the transaction that took them out. */
static enum weft_rc write_from_inbox(struct weft_tx *tx, const struct weft_submissions *batch,
                                     struct weft_err *err)
{
    static const struct weft_err busy = {.rc = WEFT_BUSY};
    struct weft_submissions mine = *batch;
    mine.item = weft_new_array(tx->arena, struct weft_submission *, batch->count + 1);
    for (size_t i = 0; i < batch->count; i++) {
        mine.item[i] = batch->item[i];
        *mine.item[i]->answer = (struct weft_submit_result){WEFT_FAILED(&busy)};
    }
    enum weft_rc rc = weft_inbox_take(tx, mine.item, &mine.count, err);
    if (!rc)
        rc = write_new(tx, &mine, err);
    if (rc)
        return rc;
    struct weft_submission **ended =
        weft_new_array(tx->arena, struct weft_submission *, mine.count + 1);
    size_t count = 0;
    for (size_t i = 0; i < mine.count; i++)
        if (mine.item[i]->answer->duplicate || mine.item[i]->answer->rc)
            ended[count++] = mine.item[i];
    return count ? weft_submission_end(tx, ended, count, batch->now_us, err) : WEFT_OK;
}

static enum weft_rc write_batch(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct weft_submissions *batch = context;
    return batch->from_inbox ? write_from_inbox(tx, batch, err) : write_new(tx, batch, err);
}

/*
 * True when the batch should be cut in halves to find the item that is to blame. A lock that it
 * waited for in vain belongs to a key; without keys it is on a whole table, and every half would
 * wait for it as long again.
 */
static bool blame_is_inside(const struct weft_submissions *batch, const struct weft_err *err)
{
    return err->cause == WEFT_CAUSE_DATA || err->cause == WEFT_CAUSE_DUPLICATE ||
           (err->cause == WEFT_CAUSE_LOCK_TIMEOUT && batch->keyed);
}

/* Answers all items of a batch with the failure of its transaction. */
static void answer_refused(const struct weft_submissions *batch, const struct weft_err *err)
{
    if (batch->count == 0)
        return;
    struct weft_err *story = weft_err_dup(batch->arena, err);
    if (err->cause == WEFT_CAUSE_LOCK_TIMEOUT && batch->keyed) {
        weft_fail_field(story, WEFT_BUSY, "key", "another open transaction holds this key");
        story->hint = weft_hint_wait_for_transaction;
    } else if (err->cause == WEFT_CAUSE_LOCK_TIMEOUT) {
        weft_fail(story, WEFT_BUSY, "another open transaction locks weft's tables");
        story->hint = "try again later; `weft doctor` finds old transactions";
    }
    for (size_t i = 0; i < batch->count; i++)
        *batch->item[i]->answer = (struct weft_submit_result){WEFT_FAILED(story)};
}

static void tell(struct weft_engine *engine, const struct weft_submissions *batch,
                 struct weft_arena *arena)
{
    struct weft_commit_effects news = weft_news_new(arena, batch->now_us);
    for (size_t i = 0; i < batch->count; i++) {
        const struct weft_submission *item = batch->item[i];
        if (item->answer->duplicate)
            continue;
        if (item->answer->rc) {
            /* A row of the inbox that ended as it began; a busy one is still there. */
            if (batch->from_inbox && item->answer->rc != WEFT_BUSY)
                weft_news_ended(&news, item->queue->id, WEFT_STATE_FAILED);
            continue;
        }
        if (item->spec.state == WEFT_STATE_READY)
            weft_news_fresh(&news, item->queue->id, item->spec.priority, item->ord);
        else if (item->spec.state == WEFT_STATE_HELD)
            weft_news_gate(&news, weft_gate_key(item->queue->ns, item->spec.gate, arena));
        else
            weft_news_due(&news, item->spec.due_us);
        weft_news_due(&news, item->spec.deadline_us);
    }
    weft_news_tell(engine, &news);
}

static enum weft_rc run_part(struct weft_engine *engine, struct weft_submissions *part,
                             struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine,
                         .history = part->history,
                         .arena = weft_arena_new(),
                         .repeatable = !part->keyed,
                         .maybe_committed = part->maybe_committed};
    for (size_t i = 0; i < part->count; i++)
        tx.bytes += part->item[i]->spec.payload_size;
    enum weft_rc rc =
        weft_tx_do(&tx, part->keyed ? WEFT_TX_KEYED : WEFT_TX_WRITE, write_batch, part, err);
    /* No other call has these ids: the try with the unknown outcome has written them. */
    if (rc && tx.maybe_committed && err->cause == WEFT_CAUSE_DUPLICATE)
        rc = WEFT_OK;
    if (!rc)
        tell(engine, part, tx.arena);
    weft_arena_free(tx.arena);
    return rc;
}

enum weft_rc weft_submission_run(struct weft_engine *engine, const struct weft_submissions *batch,
                                 struct weft_arena *arena, struct weft_err *err)
{
    struct weft_submissions *todo = weft_new_array(arena, struct weft_submissions, 64);
    size_t count = 0;
    todo[count++] = *batch;
    while (count > 0) {
        struct weft_submissions part = todo[--count];
        enum weft_rc rc = run_part(engine, &part, err);
        if (!rc)
            continue;
        if (!blame_is_inside(&part, err)) {
            todo[count++] = part;
            for (size_t i = 0; i < count; i++)
                answer_refused(&todo[i], err);
            return rc;
        }
        if (part.count == 1) {
            answer_refused(&part, err);
            continue;
        }
        /* Halving 1,000 items makes at most 10 levels, two entries each: the list is long enough.
         */
        struct weft_submissions half = part;
        half.count = part.count / 2;
        part.item += half.count;
        part.count -= half.count;
        todo[count++] = part;
        todo[count++] = half;
    }
    return WEFT_OK;
}

/*
 * Items of one call without a key get ids that follow each other: items submitted together are
 * mostly claimed and completed together, and then touch few pages instead of many. The ids walk
 * once through the partitions, each item at a random place in its share of them, so that a call is
 * spread over all.
 */
static void mint_id(struct weft_submission *item, size_t at, size_t count, weft_usec now_us)
{
    struct weft_submission *next = &item[at];
    if (next->spec.key) {
        weft_id_new(&next->id, now_us, weft_id_key_partition(next->spec.ns, next->spec.key));
        return;
    }
    uint8_t random;
    weft_random(&random, sizeof(random));
    int partition = (int)((at * 256 + random) / count);
    bool shared =
        at > 0 && !item[at - 1].spec.key && weft_id_partition(&item[at - 1].id) == partition;
    if (shared)
        weft_id_next(&next->id, &item[at - 1].id);
    else
        weft_id_new(&next->id, now_us, partition);
}

/* ---- The call -------------------------------------------------------------------------------- */

struct submitting {
    struct weft_submissions *batch;
    size_t count;
};

static bool ask_submit(struct weft_tx *tx, void *context, struct weft_call *ret_call)
{
    const struct submitting *all = context;
    put_rows(tx, &all->batch[0], ret_call);
    return true;
}

/* Keys and costs take statements of their own. */
static bool is_one_statement(const struct submitting *all)
{
    bool one = all->count == 1 && !all->batch[0].keyed;
    for (size_t i = 0; one && i < all->batch[0].count; i++)
        one = all->batch[0].item[i]->spec.cost_count == 0;
    return one;
}

static void take_submit(struct weft_tx *tx, void *context, const struct weft_rows *rows)
{
    (void)tx;
    (void)context;
    (void)rows; /* the answers are known before */
}

/* Answers items that got no queue, and returns how many are left. */
static size_t leave_out_refused(const struct weft_engine *engine, struct weft_submission *item,
                                size_t count, struct weft_arena *arena)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (item[i].queue) {
            if (kept < i)
                item[kept] = item[i];
            kept++;
            continue;
        }
        struct weft_err *story = weft_new(arena, struct weft_err);
        (void)weft_census_refuse(engine, WEFT_CENSUS_QUEUES, item[i].spec.ns, story);
        *item[i].answer = (struct weft_submit_result){WEFT_FAILED(story)};
    }
    return kept;
}

void weft_submit_begin(struct weft_engine *engine, struct weft_joint_call *call,
                       struct weft_arena *arena)
{
    const struct weft_spec *spec = call->item;
    struct weft_submit_result *answer = call->answer;
    struct weft_submission *item = weft_new_array(arena, struct weft_submission, call->count + 1);
    struct submitting *all = weft_new(arena, struct submitting);
    weft_usec now_us = weft_clock_now(engine->clock);
    uint64_t history = weft_engine_history(engine); /* before any name is looked up */
    size_t valid = 0;
    for (size_t i = 0; i < call->count; i++) {
        struct weft_submission *next = &item[valid];
        struct weft_err story = {0};
        if (weft_spec_resolve(&spec[i], call->ns, now_us, arena, &next->spec, &story) ||
            weft_spec_takes(&next->spec, NULL, 0, &story)) {
            const struct weft_err *kept = weft_err_dup(call->arena, &story);
            answer[i] = (struct weft_submit_result){WEFT_FAILED(kept)};
            continue;
        }
        mint_id(item, valid, call->count, now_us);
        next->answer = &answer[i];
        valid++;
    }
    call->rc = valid ? weft_submission_place(engine, true, item, valid, &call->err) : WEFT_OK;
    if (!call->rc)
        valid = leave_out_refused(engine, item, valid, call->arena);
    if (!call->rc)
        all->batch = weft_submission_batches(item, valid, arena, &all->count);
    for (size_t i = 0; i < all->count; i++) {
        all->batch[i].now_us = now_us;
        all->batch[i].history = history;
        all->batch[i].arena = call->arena;
    }
    call->part = (struct weft_part){.context = all,
                                    .ask = ask_submit,
                                    .take = take_submit,
                                    .joins = is_one_statement(all),
                                    .repeatable = true};
}

void weft_submit_end(struct weft_tx *tx, struct weft_joint_call *call, struct weft_arena *arena)
{
    const struct weft_part *part = &call->part;
    struct submitting *all = part->context;
    if (part->fate == WEFT_PART_DONE) {
        tell(tx->engine, &all->batch[0], arena);
        return;
    }
    if (part->fate == WEFT_PART_FAILED) {
        answer_refused(&all->batch[0], &part->err);
        call->rc = part->err.rc;
        call->err = part->err;
        return;
    }
    /* Once something was accepted the caller must learn of it: later failures are the items'. */
    for (size_t i = 0; i < all->count; i++) {
        all->batch[i].maybe_committed = part->fate == WEFT_PART_MAYBE_COMMITTED;
        enum weft_rc failed = weft_submission_run(tx->engine, &all->batch[i], arena, &call->err);
        if (failed && i == 0 && all->count == 1)
            call->rc = failed;
    }
}

enum weft_rc weft_engine_submit(struct weft_engine *engine, const char *ns,
                                const struct weft_spec *spec, size_t count,
                                struct weft_arena *arena, struct weft_submit_result *ret_answer,
                                struct weft_err *err)
{
    struct weft_joint_call call = {.op = WEFT_OP_SUBMIT,
                                   .ns = ns,
                                   .item = spec,
                                   .count = count,
                                   .answer = ret_answer,
                                   .arena = arena};
    return weft_engine_alone(engine, &call, err);
}
