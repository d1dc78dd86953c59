/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Signals. The token of each names its waitpoint and its execution, and is checked before anything
 * is read. All signals of one execution that come together are judged in one transaction, in their
 * order, under the lock of its living row: a thousand of them are one commit and one resumption.
 *
 * In what order: a signal whose key has come before is a duplicate, whatever has happened since,
 * because its sender may not have got the first answer. One for a pending waitpoint is kept for the
 * suspend call to judge. One for an open waitpoint is added to the condition; the one that
 * satisfies it resumes the execution, in memory at first, so that the signals behind it find their
 * waitpoints closed. Timeout, cancel and deadline change the same row under the same lock: the
 * first of them and the last signal decides, and the other finds another state.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/condition.h"
#include "core/spec.h"
#include "engine/engine_state.h"
#include "engine/job/change.h"
#include "engine/wait/wait.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A signal whose token is good. */
struct sent {
    struct weft_id id; /* the execution; first, for the column of ids */
    struct weft_id waitpoint;
    int32_t epoch;
    size_t item; /* its place in the call */
};

/* A waitpoint that signals of the transaction are about. */
struct place {
    struct weft_id id; /* the waitpoint; first, for bsearch() */
    struct weft_waitpoint_out *row;
    int32_t signals; /* with the signals of this transaction */
};

/* A suspended execution of the transaction. */
struct waiter {
    const struct weft_waitpoints_open_out *row; /* the first of its rows; NULL: none */
    struct weft_condition condition;
    struct weft_condition_judge judge;
    const struct weft_waitpoint_out **waitpoint; /* the places of the condition */
    const char **name;
    size_t waitpoints, rows;
};

struct signalling {
    struct weft_engine *engine;
    const struct weft_signal *item;
    struct weft_signal_result *answer;
    struct weft_arena *arena; /* of the answers */
    const struct sent *sent;
    struct weft_id_column ids;
    struct weft_chunk chunk;
    /* Of the last try: */
    struct weft_changes changes;
    struct waiter *waiter; /* one for each change */
    struct place *place;
    size_t places;
    struct weft_map keys; /* waitpoint and key -> the effect of the first */
    struct weft_signal_add_in *add;
    size_t added;
    size_t bytes;
};

/* ---- Checks ---------------------------------------------------------------------------------- */

static enum weft_rc check_text(const char *text, size_t most, const char *field,
                               struct weft_err *err)
{
    if (text && !*text)
        return weft_invalid(err, field, "%s is empty", field);
    return weft_text_check(text, most, field, err);
}

static enum weft_rc check_signal(const struct weft_signal *item, struct weft_err *err)
{
    if (item->name && !weft_name_valid(item->name))
        return weft_invalid(err, "name", "name must be 1 to %d of A-Z a-z 0-9 _ . : / -",
                            WEFT_NAME_MAX);
    enum weft_rc rc = check_text(item->source, WEFT_KEY_MAX, "source", err);
    if (!rc)
        rc = check_text(item->key, WEFT_KEY_MAX, "key", err);
    if (!rc)
        rc = check_text(item->content_type, WEFT_CONTENT_TYPE_MAX, "content_type", err);
    if (!rc && item->payload_size > WEFT_PAYLOAD_MAX)
        rc = weft_fail_field(err, WEFT_TOO_LARGE, "payload",
                             "the payload has %zu bytes, at most %d are allowed",
                             item->payload_size, WEFT_PAYLOAD_MAX);
    return rc;
}

static void fail_item(const struct signalling *call, size_t i, const struct weft_err *err)
{
    call->answer[i] = (struct weft_signal_result){WEFT_FAILED(weft_err_dup(call->arena, err))};
}

/* ---- Reading --------------------------------------------------------------------------------- */

static const struct sent *sent_at(const struct signalling *call, size_t k)
{
    return &call->sent[call->chunk.item[k]];
}

static int by_waitpoint(const void *a, const void *b)
{
    return weft_id_cmp(&((const struct place *)a)->id, &((const struct place *)b)->id);
}

/* The waitpoints of the chunk, each once and sorted. */
static void list_places(struct weft_tx *tx, struct signalling *call)
{
    struct place *place = weft_new_array(tx->arena, struct place, call->chunk.count + 1);
    size_t kept = 0;
    for (size_t k = 0; k < call->chunk.count; k++)
        place[k].id = sent_at(call, k)->waitpoint;
    qsort(place, call->chunk.count, sizeof(*place), by_waitpoint);
    for (size_t k = 0; k < call->chunk.count; k++)
        if (kept == 0 || weft_id_cmp(&place[kept - 1].id, &place[k].id) != 0)
            place[kept++].id = place[k].id;
    call->place = place;
    call->places = kept;
}

static struct place *find_place(const struct signalling *call, const struct weft_id *waitpoint)
{
    const struct place key = {.id = *waitpoint};
    return bsearch(&key, call->place, call->places, sizeof(key), by_waitpoint);
}

enum { LOCK, OPEN, KEYS, READS };

static void put_reads(struct weft_tx *tx, const struct signalling *call, const struct weft_id *id,
                      size_t count, struct weft_call ret_call[READS])
{
    size_t keyed = 0;
    struct weft_waitpoints_open_in *open =
        weft_call_waitpoints_open(&ret_call[OPEN], tx->arena, count);
    struct weft_signal_keys_in *keys =
        weft_call_signal_keys(&ret_call[KEYS], tx->arena, call->chunk.count + 1);
    for (size_t i = 0; i < count; i++)
        open->row[i].id = id[i];
    for (size_t k = 0; k < call->chunk.count; k++) {
        const struct weft_signal *item = &call->item[sent_at(call, k)->item];
        keys->row[keyed].waitpoint = sent_at(call, k)->waitpoint;
        keys->row[keyed].key = item->key;
        keyed += item->key != NULL;
    }
    ret_call[KEYS].rows = keyed;
}

/* Gives the places of the transaction their waitpoints. */
static void put_places(const struct signalling *call, const struct weft_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct weft_waitpoint_out *row = weft_out_waitpoint(rows, i);
        struct place *place = find_place(call, &row->waitpoint);
        if (!place)
            continue; /* an open waitpoint that no signal of this transaction is for */
        place->row = row;
        place->signals = row->signals;
    }
}

static void *put_key(struct signalling *call, struct weft_arena *arena,
                     const struct weft_id *waitpoint, const char *text,
                     enum weft_signal_effect effect)
{
    size_t size = sizeof(*waitpoint) + strlen(text);
    char *key = weft_arena_alloc(arena, 1, size);
    memcpy(key, waitpoint, sizeof(*waitpoint));
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): keys of maps have sizes */
    memcpy(key + sizeof(*waitpoint), text, strlen(text));
    enum weft_signal_effect *found = weft_map_find(&call->keys, key, size);
    if (!found && effect) {
        enum weft_signal_effect *kept = weft_new(arena, enum weft_signal_effect);
        *kept = effect;
        weft_map_put(&call->keys, key, size, kept);
    }
    return found;
}

/* The state of an execution that has not ended; its row is NULL unless it is suspended. */
static struct waiter *find_waiter(const struct signalling *call, const struct weft_id *id)
{
    const struct weft_change *change = weft_change_find(&call->changes, id);
    return change ? &call->waiter[change - call->changes.change] : NULL;
}

static bool is_suspended(const struct signalling *call, const struct weft_id *id, int32_t epoch)
{
    const struct weft_change *change = weft_change_find(&call->changes, id);
    return change && change->before.state == WEFT_STATE_SUSPENDED && change->before.epoch == epoch;
}

/* Gives the suspended executions their open waitpoints. A suspension that an older binary has ended
 * may have left its row: it counts only beside its living row. */
static void put_waiters(struct weft_tx *tx, const struct signalling *call,
                        const struct weft_rows *open)
{
    const struct weft_waitpoints_open_out *row = weft_out_waitpoints_open(open);
    for (size_t i = 0; i < open->count; i++) {
        struct waiter *waiter = find_waiter(call, &row[i].waitpoint.id);
        if (waiter)
            waiter->rows++;
    }
    for (size_t i = 0; i < open->count; i++) {
        const struct weft_waitpoint_out *waitpoint = &row[i].waitpoint;
        if (!is_suspended(call, &waitpoint->id, waitpoint->bound))
            continue;
        struct waiter *waiter = find_waiter(call, &waitpoint->id);
        if (!waiter->row) {
            waiter->row = &row[i];
            waiter->name = weft_new_array(tx->arena, const char *, waiter->rows);
            waiter->waitpoint =
                weft_new_array(tx->arena, const struct weft_waitpoint_out *, waiter->rows);
        }
        waiter->waitpoint[waiter->waitpoints] = waitpoint;
        waiter->name[waiter->waitpoints++] = waitpoint->name;
    }
}

static enum weft_rc read_conditions(struct weft_tx *tx, struct signalling *call,
                                    struct weft_err *err)
{
    for (size_t i = 0; i < call->changes.count; i++) {
        struct waiter *waiter = &call->waiter[i];
        if (!waiter->row)
            continue;
        const struct weft_condition_scope scope = {waiter->name, waiter->waitpoints, true};
        const char *text = waiter->row->condition;
        struct weft_json value;
        enum weft_rc rc = weft_json_check(text, strlen(text), &value, err);
        if (!rc)
            rc = weft_condition_read(&value, &scope, tx->arena, &waiter->condition, err);
        if (rc)
            return weft_fail(err, WEFT_CORRUPT, "the stored condition of a suspension is not one");
        waiter->judge = weft_condition_judge(&waiter->condition, tx->arena);
    }
    return WEFT_OK;
}

/* Adds a signal that came before to its condition. Their order does not matter any more. */
static void judge_head(const struct signalling *call, const struct weft_signal_heads_out *head)
{
    struct waiter *waiter = find_waiter(call, &head->id);
    for (size_t w = 0; waiter && w < waiter->waitpoints; w++)
        if (weft_id_cmp(&waiter->waitpoint[w]->waitpoint, &head->waitpoint) == 0)
            (void)weft_condition_add(&waiter->judge, &(struct weft_condition_signal){
                                                         (uint32_t)w, head->name, head->source});
}

/*
 * Reads what few transactions need: waitpoints that are not open, and the signals that open ones
 * have got before. Most signals are the first of an open waitpoint and save this round trip.
 */
static enum weft_rc read_rest(struct weft_tx *tx, struct signalling *call,
                              const struct weft_rows *open, struct weft_err *err)
{
    enum { NAMED, HEADS, RESTS };
    struct weft_call ask[RESTS];
    struct weft_rows rows[RESTS] = {0};
    struct weft_waitpoints_named_in *named =
        weft_call_waitpoints_named(&ask[NAMED], tx->arena, call->places + 1);
    struct weft_signal_heads_in *heads =
        weft_call_signal_heads(&ask[HEADS], tx->arena, open->count + 1);
    ask[NAMED].rows = ask[HEADS].rows = 0;
    for (size_t i = 0; i < call->places; i++)
        if (!call->place[i].row)
            named->row[ask[NAMED].rows++].waitpoint = call->place[i].id;
    for (size_t i = 0; i < open->count; i++) {
        const struct weft_waitpoint_out *row = weft_out_waitpoint(open, i);
        if (row->signals == 0 || !is_suspended(call, &row->id, row->bound))
            continue;
        heads->row[ask[HEADS].rows].id = row->id;
        heads->row[ask[HEADS].rows++].waitpoint = row->waitpoint;
    }
    if (ask[NAMED].rows + ask[HEADS].rows == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_tx_run(tx, ask, RESTS, rows, err);
    if (rc)
        return rc;
    put_places(call, &rows[NAMED]);
    for (size_t i = 0; i < rows[HEADS].count; i++)
        judge_head(call, &weft_out_signal_heads(&rows[HEADS])[i]);
    return WEFT_OK;
}

static enum weft_rc lock_and_read(struct weft_tx *tx, struct signalling *call, struct weft_err *err)
{
    struct weft_call ask[READS];
    struct weft_rows rows[READS] = {0};
    size_t count;
    const struct weft_id *id = weft_chunk_ids(&call->chunk, &call->ids, tx->arena, &count);
    list_places(tx, call);
    put_reads(tx, call, id, count, ask);
    const struct weft_change_reads reads = {ask, rows, READS};
    enum weft_rc rc = weft_change_lock_and(tx, id, count, &call->changes, &reads, err);
    if (rc)
        return rc;
    put_places(call, &rows[OPEN]);
    for (size_t i = 0; i < rows[KEYS].count; i++) {
        const struct weft_signal_keys_out *row = &weft_out_signal_keys(&rows[KEYS])[i];
        (void)put_key(call, tx->arena, &row->waitpoint, row->key, row->effect);
    }
    call->waiter = weft_new_array(tx->arena, struct waiter, call->changes.count + 1);
    put_waiters(tx, call, &rows[OPEN]);
    rc = read_conditions(tx, call, err);
    return rc ? rc : read_rest(tx, call, &rows[OPEN], err);
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* Adds a signal to the condition of its execution; resumes it when that is satisfied. */
static enum weft_signal_effect judge_signal(struct weft_tx *tx, struct signalling *call,
                                            struct weft_change *change,
                                            const struct weft_signal *item,
                                            const struct weft_id *waitpoint)
{
    assert(change); /* the waitpoint is open */
    struct waiter *waiter = &call->waiter[change - call->changes.change];
    struct weft_condition_signal signal = {.name = item->name, .source = item->source};
    while (signal.waitpoint < waiter->waitpoints &&
           weft_id_cmp(&waiter->waitpoint[signal.waitpoint]->waitpoint, waitpoint) != 0)
        signal.waitpoint++;
    bool asked = waiter->row && weft_condition_add(&waiter->judge, &signal);
    if (!asked)
        return WEFT_SIGNAL_IGNORED;
    if (!waiter->judge.satisfied)
        return WEFT_SIGNAL_RECORDED;
    const struct weft_event event = {.kind = waiter->row->delay ? WEFT_EVENT_RESUME_LATER
                                                                : WEFT_EVENT_RESUME,
                                     .due_us = tx->now_us + waiter->row->delay};
    bool legal = weft_change_step(change, &event);
    assert(legal); /* the row is suspended */
    (void)legal;
    change->resumed = WEFT_RESUMED_BY_SIGNALS;
    return WEFT_SIGNAL_RESUMED;
}

static void keep_signal(struct weft_tx *tx, struct signalling *call, const struct sent *sent,
                        struct place *place, enum weft_signal_effect effect)
{
    const struct weft_signal *item = &call->item[sent->item];
    call->add->row[call->added++] =
        (struct weft_signal_add_item){.id = sent->id,
                                      .waitpoint = sent->waitpoint,
                                      .n = ++place->signals,
                                      .at = tx->now_us,
                                      .effect = effect,
                                      .name = item->name,
                                      .source = item->source,
                                      .key = item->key,
                                      .content_type = item->content_type,
                                      .payload = {item->payload, item->payload_size}};
    if (item->key)
        (void)put_key(call, tx->arena, &sent->waitpoint, item->key, effect);
}

static enum weft_rc decide_one(struct weft_tx *tx, struct signalling *call, const struct sent *sent,
                               struct weft_signal_result *answer, struct weft_err *err)
{
    const struct weft_signal *item = &call->item[sent->item];
    struct place *place = find_place(call, &sent->waitpoint);
    const struct weft_waitpoint_out *row = place->row;
    if (!row || weft_id_cmp(&row->id, &sent->id) != 0 || row->epoch != sent->epoch)
        return weft_keys_refuse(err); /* it was removed */
    *answer = (struct weft_signal_result){.waitpoint = sent->waitpoint};
    const enum weft_signal_effect *first =
        item->key ? put_key(call, tx->arena, &sent->waitpoint, item->key, WEFT_SIGNAL_NONE) : NULL;
    if (first) {
        answer->effect = WEFT_SIGNAL_DUPLICATE;
        answer->first = *first;
        return WEFT_OK;
    }
    struct weft_change *change = weft_change_find(&call->changes, &sent->id);
    const struct weft_live *live = !change         ? NULL
                                   : change->apply ? &change->step.after
                                                   : &change->before;
    enum weft_waitpoint_state state = weft_waitpoint_state_of(row, live, tx->now_us);
    if (state == WEFT_WAITPOINT_CLOSED)
        return weft_fail(err, WEFT_NOT_LIVE,
                         live ? "the waitpoint is closed" : "the execution has ended");
    if (place->signals >= WEFT_SIGNALS_MAX)
        return weft_fail(err, WEFT_TOO_LARGE, "the waitpoint has %d signals, it takes no more",
                         place->signals);
    answer->effect = state == WEFT_WAITPOINT_PENDING
                         ? WEFT_SIGNAL_BUFFERED
                         : judge_signal(tx, call, change, item, &sent->waitpoint);
    keep_signal(tx, call, sent, place, answer->effect);
    return WEFT_OK;
}

/* ---- The transaction ------------------------------------------------------------------------- */

static void drop_state(struct signalling *call)
{
    for (size_t i = 0; call->waiter && i < call->changes.count; i++)
        weft_condition_judge_done(&call->waiter[i].judge);
    weft_map_done(&call->keys);
    call->keys = (struct weft_map){0};
    call->waiter = NULL;
    call->added = 0;
}

static enum weft_rc write_all(struct weft_tx *tx, struct signalling *call, struct weft_call *add,
                              struct weft_err *err)
{
    struct weft_call write[WEFT_CHANGE_CALLS + 1];
    write[WEFT_CHANGE_CALLS] = *add;
    write[WEFT_CHANGE_CALLS].rows = call->added;
    return weft_change_last(tx, &call->changes, write, WEFT_LEN(write), err);
}

static enum weft_rc signal_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct signalling *call = context;
    struct weft_call add;
    drop_state(call);
    call->add = weft_call_signal_add(&add, tx->arena, call->chunk.count + 1);
    enum weft_rc rc = lock_and_read(tx, call, err);
    for (size_t k = 0; k < call->chunk.count && !rc; k++) {
        const struct sent *sent = sent_at(call, k);
        struct weft_err story = {0};
        if (decide_one(tx, call, sent, &call->answer[sent->item], &story))
            fail_item(call, sent->item, &story);
    }
    return rc || call->added == 0 ? rc : write_all(tx, call, &add, err);
}

static enum weft_rc run_chunk(struct signalling *call, struct weft_err *err)
{
    struct weft_tx tx = {.engine = call->engine, .arena = weft_arena_new()};
    for (size_t k = 0; k < call->chunk.count; k++)
        tx.bytes += call->item[sent_at(call, k)->item].payload_size;
    call->changes = (struct weft_changes){0};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, signal_body, call, err);
    if (!rc) {
        struct weft_commit_effects news = weft_news_new(tx.arena, tx.now_us);
        weft_change_news(&news, &call->changes);
        weft_news_tell(call->engine, &news);
    }
    drop_state(call);
    weft_arena_free(tx.arena);
    for (size_t k = 0; k < call->chunk.count && rc; k++)
        fail_item(call, sent_at(call, k)->item, err);
    return rc;
}

/* How many of the signals fit one transaction by their payloads, one at least. */
static size_t fit_payloads(const struct signalling *call, size_t from, size_t count)
{
    size_t fit = 0, bytes = 0;
    do
        bytes += call->item[call->sent[from + fit++].item].payload_size;
    while (from + fit < count &&
           bytes + call->item[call->sent[from + fit].item].payload_size <= WEFT_BATCH_BYTES);
    return fit;
}

enum weft_rc weft_engine_signal(struct weft_engine *engine, const struct weft_signal *item,
                                size_t count, struct weft_arena *arena,
                                struct weft_signal_result *ret_answer, struct weft_err *err)
{
    weft_usec began_us = weft_boot_us();
    struct weft_arena *plan = weft_arena_new();
    struct sent *sent = weft_new_array(plan, struct sent, count + 1);
    struct signalling call = {
        .engine = engine, .item = item, .answer = ret_answer, .arena = arena, .sent = sent};
    size_t good = 0, failed = 0, chunks_run = 0;
    for (size_t i = 0; i < count; i++) {
        struct weft_err story = {0};
        struct weft_signal_token token;
        enum weft_rc rc = weft_keys_verify(engine, item[i].token, began_us, &token, &story);
        if (!rc)
            rc = check_signal(&item[i], &story);
        if (rc)
            fail_item(&call, i, &story);
        else
            sent[good++] = (struct sent){token.execution, token.waitpoint, token.epoch, i};
    }
    enum weft_rc rc = WEFT_OK;
    for (size_t from = 0, part; from < good; from += part) {
        part = fit_payloads(&call, from, good);
        call.sent = sent + from;
        call.ids = (struct weft_id_column){&sent[from].id, sizeof(*sent), part};
        struct weft_chunks chunks = weft_chunks_by_id(&call.ids, NULL, WEFT_REPEATS_TOGETHER, plan);
        for (size_t c = 0; c < chunks.count; c++, chunks_run++) {
            call.chunk = chunks.chunk[c];
            enum weft_rc lost = run_chunk(&call, err);
            failed += lost != WEFT_OK;
            rc = lost ? lost : rc;
        }
        call.sent = sent;
    }
    weft_arena_free(plan);
    /* Where others were committed the errors are in the answers. */
    return chunks_run == 1 && failed == 1 && good == count ? rc : WEFT_OK;
}
