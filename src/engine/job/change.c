/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lock, decide, write: how every row is changed that is not claimed, renewed or completed.
 *
 * Rows are locked in the order of their ids (or by a pass, with SKIP LOCKED). The caller decides
 * about each with the pure functions of core, and the result is written in one round trip: rows
 * that live on are updated, rows that ended move to `outcome`, every lease that ended without
 * ending its execution leaves an `attempt`, and every lease that was taken from a worker before its
 * time leaves a `draining` row (core/fence.h).
 */

#include "engine/engine.h"

#include "base/id.h"
#include "core/fence.h"

#include <assert.h>
#include <stdlib.h>

/* ---- Reading --------------------------------------------------------------------------------- */

static struct weft_live read_live(const struct weft_rows *rows, size_t i)
{
    return (struct weft_live){
        .id = weft_get_id(rows, i, LIVE_LOCK_OUT_ID),
        .ord = weft_get_i64(rows, i, LIVE_LOCK_OUT_ORD),
        .due_us = weft_get_i64(rows, i, LIVE_LOCK_OUT_DUE),
        .attempt_deadline_us = weft_get_i64(rows, i, LIVE_LOCK_OUT_ATTEMPT_DEADLINE),
        .deadline_us = weft_get_i64(rows, i, LIVE_LOCK_OUT_DEADLINE),
        .started_us = weft_get_i64(rows, i, LIVE_LOCK_OUT_STARTED),
        .claimed_us = weft_get_i64(rows, i, LIVE_LOCK_OUT_CLAIMED),
        .queue = (int32_t)weft_get_i64(rows, i, LIVE_LOCK_OUT_QUEUE),
        .lane = (int32_t)weft_get_i64(rows, i, LIVE_LOCK_OUT_LANE),
        .policy = (int32_t)weft_get_i64(rows, i, LIVE_LOCK_OUT_POLICY),
        .worker = (int32_t)weft_get_i64(rows, i, LIVE_LOCK_OUT_WORKER),
        .epoch = (int32_t)weft_get_i64(rows, i, LIVE_LOCK_OUT_EPOCH),
        .attempt = (int32_t)weft_get_i64(rows, i, LIVE_LOCK_OUT_ATTEMPT),
        .forgiven = (int32_t)weft_get_i64(rows, i, LIVE_LOCK_OUT_FORGIVEN),
        .size = (int32_t)weft_get_i64(rows, i, LIVE_LOCK_OUT_SIZE),
        .lost = (int32_t)weft_get_i64(rows, i, LIVE_LOCK_OUT_LOST),
        .replays = (int32_t)weft_get_i64(rows, i, LIVE_LOCK_OUT_REPLAYS),
        .priority = (int32_t)weft_get_i64(rows, i, LIVE_LOCK_OUT_PRIORITY),
        .state = (enum weft_state)weft_get_i64(rows, i, LIVE_LOCK_OUT_STATE),
    };
}

struct weft_changes weft_change_rows(const struct weft_rows *rows, struct weft_arena *arena)
{
    struct weft_changes changes = {
        .change = weft_new_array(arena, struct weft_change, rows->count + 1),
        .count = rows->count,
    };
    for (size_t i = 0; i < rows->count; i++)
        changes.change[i].before = read_live(rows, i);
    return changes;
}

enum weft_rc weft_change_lock(struct weft_tx *tx, const struct weft_id *id, size_t count,
                              struct weft_changes *ret_changes, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, tx->arena, WEFT_STMT_LIVE_LOCK, count);
    for (size_t i = 0; i < count; i++)
        weft_set_id(&call, i, LIVE_LOCK_IN_ID, &id[i]);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc)
        *ret_changes = weft_change_rows(&rows, tx->arena);
    return rc;
}

static int by_id(const void *key, const void *member)
{
    return weft_id_cmp(key, &((const struct weft_change *)member)->before.id);
}

struct weft_change *weft_change_find(const struct weft_changes *changes, const struct weft_id *id)
{
    return bsearch(id, changes->change, changes->count, sizeof(*changes->change), by_id);
}

enum weft_rc weft_change_rules(struct weft_tx *tx, const struct weft_changes *changes,
                               struct weft_err *err)
{
    struct weft_id_list list = {.tx = tx};
    list.id = weft_new_array(tx->arena, int32_t, changes->count + 1);
    for (size_t i = 0; i < changes->count; i++)
        list.id[list.count++] = changes->change[i].before.policy;
    return weft_load_policies(tx->engine, &list, err);
}

bool weft_change_step(struct weft_change *change, const struct weft_event *event)
{
    change->apply = weft_state_step(&change->before, event, &change->step);
    return change->apply;
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

struct weft_live weft_outcome_read(const struct weft_rows *rows, size_t i)
{
    return (struct weft_live){
        .id = weft_get_id(rows, i, OUTCOME_LOCK_OUT_ID),
        .state = (enum weft_state)weft_get_i64(rows, i, OUTCOME_LOCK_OUT_STATE),
        .queue = (int32_t)weft_get_i64(rows, i, OUTCOME_LOCK_OUT_QUEUE),
        .epoch = (int32_t)weft_get_i64(rows, i, OUTCOME_LOCK_OUT_EPOCH),
        .attempt = (int32_t)weft_get_i64(rows, i, OUTCOME_LOCK_OUT_ATTEMPT),
        .forgiven = (int32_t)weft_get_i64(rows, i, OUTCOME_LOCK_OUT_FORGIVEN),
        .lost = (int32_t)weft_get_i64(rows, i, OUTCOME_LOCK_OUT_LOST),
        .replays = (int32_t)weft_get_i64(rows, i, OUTCOME_LOCK_OUT_REPLAYS),
        .priority = (int32_t)weft_get_i64(rows, i, OUTCOME_LOCK_OUT_PRIORITY),
    };
}

void weft_outcome_back(struct weft_call *call, size_t row, const struct weft_live *after)
{
    weft_set_id(call, row, OUTCOME_BACK_IN_ID, &after->id);
    weft_set_i64(call, row, OUTCOME_BACK_IN_ATTEMPT, after->attempt);
    weft_set_i64(call, row, OUTCOME_BACK_IN_FORGIVEN, after->forgiven);
    weft_set_i64(call, row, OUTCOME_BACK_IN_LOST, after->lost);
    weft_set_i64(call, row, OUTCOME_BACK_IN_REPLAYS, after->replays);
    weft_set_i64(call, row, OUTCOME_BACK_IN_STATE, after->state);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void set_moment(struct weft_call *call, size_t row, size_t param, weft_usec moment)
{
    if (moment != 0)
        weft_set_i64(call, row, param, moment);
}

static void put_live(struct weft_call *call, size_t row, const struct weft_live *after)
{
    weft_set_id(call, row, LIVE_PUT_IN_ID, &after->id);
    set_moment(call, row, LIVE_PUT_IN_DUE, after->due_us);
    set_moment(call, row, LIVE_PUT_IN_ATTEMPT_DEADLINE, after->attempt_deadline_us);
    set_moment(call, row, LIVE_PUT_IN_DEADLINE, after->deadline_us);
    set_moment(call, row, LIVE_PUT_IN_CLAIMED, after->claimed_us);
    if (after->worker != 0)
        weft_set_i64(call, row, LIVE_PUT_IN_WORKER, after->worker);
    weft_set_i64(call, row, LIVE_PUT_IN_ATTEMPT, after->attempt);
    weft_set_i64(call, row, LIVE_PUT_IN_LOST, after->lost);
    weft_set_i64(call, row, LIVE_PUT_IN_PRIORITY, after->priority);
    weft_set_i64(call, row, LIVE_PUT_IN_STATE, after->state);
}

/* How an execution ended when no lease was held: the word that fits its last state. */
static enum weft_ended end_without_lease(enum weft_state state)
{
    if (state == WEFT_STATE_SKIPPED)
        return WEFT_ENDED_SKIPPED;
    return state == WEFT_STATE_EXPIRED ? WEFT_ENDED_EXPIRED : WEFT_ENDED_CANCELLED;
}

static void put_end(struct weft_call *call, size_t row, const struct weft_change *change)
{
    enum weft_ended ended =
        change->step.ended ? change->step.ended : end_without_lease(change->step.after.state);
    weft_set_id(call, row, LIVE_END_IN_ID, &change->before.id);
    weft_set_i64(call, row, LIVE_END_IN_EPOCH, change->before.epoch);
    weft_set_i64(call, row, LIVE_END_IN_WAS, change->before.state);
    weft_set_i64(call, row, LIVE_END_IN_STATE, change->step.after.state);
    weft_set_i64(call, row, LIVE_END_IN_ENDED, ended);
    weft_set_text(call, row, LIVE_END_IN_BY, change->by);
    weft_set_text(call, row, LIVE_END_IN_REASON, change->reason);
    weft_set_text(call, row, LIVE_END_IN_ERROR_CLASS, change->error_class);
    weft_set_text(call, row, LIVE_END_IN_ERROR_MESSAGE, change->error_message);
}

static void put_attempt(struct weft_call *call, size_t row, const struct weft_change *change,
                        weft_usec now_us)
{
    const struct weft_live *before = &change->before, *after = &change->step.after;
    weft_set_id(call, row, ATTEMPT_ADD_IN_ID, &before->id);
    weft_set_i64(call, row, ATTEMPT_ADD_IN_EPOCH, before->epoch);
    weft_set_i64(call, row, ATTEMPT_ADD_IN_REPLAY, 0);
    weft_set_i64(call, row, ATTEMPT_ADD_IN_ATTEMPT, before->attempt);
    weft_set_i64(call, row, ATTEMPT_ADD_IN_ENDED, change->step.ended);
    weft_set_i64(call, row, ATTEMPT_ADD_IN_HELD, true);
    weft_set_i64(call, row, ATTEMPT_ADD_IN_ANSWER, after->state);
    weft_set_i64(call, row, ATTEMPT_ADD_IN_WORKER, before->worker);
    weft_set_i64(call, row, ATTEMPT_ADD_IN_CLAIMED, before->claimed_us);
    weft_set_i64(call, row, ATTEMPT_ADD_IN_ENDED_AT, now_us);
    set_moment(call, row, ATTEMPT_ADD_IN_RUN_AT, after->due_us);
    weft_set_text(call, row, ATTEMPT_ADD_IN_BY, change->by);
    weft_set_text(call, row, ATTEMPT_ADD_IN_REASON, change->reason);
    weft_set_text(call, row, ATTEMPT_ADD_IN_ERROR_CLASS, change->error_class);
    weft_set_text(call, row, ATTEMPT_ADD_IN_ERROR_MESSAGE, change->error_message);
}

static void put_draining(struct weft_call *call, size_t row, const struct weft_change *change)
{
    const struct weft_live *before = &change->before;
    weft_set_id(call, row, DRAINING_ADD_IN_ID, &before->id);
    weft_set_i64(call, row, DRAINING_ADD_IN_EPOCH, before->epoch);
    weft_set_i64(call, row, DRAINING_ADD_IN_QUEUE, before->queue);
    weft_set_i64(call, row, DRAINING_ADD_IN_LANE, before->lane);
    weft_set_i64(call, row, DRAINING_ADD_IN_WORKER, before->worker);
    weft_set_i64(call, row, DRAINING_ADD_IN_UNTIL, before->due_us);
    weft_set_i64(call, row, DRAINING_ADD_IN_ENDED, change->step.ended);
}

/* Which of the four statements a change needs. */
static bool lives_on(const struct weft_change *change)
{
    return change->apply && weft_state_living(change->step.after.state);
}

static bool ends(const struct weft_change *change)
{
    return change->apply && !weft_state_living(change->step.after.state);
}

static bool leaves_attempt(const struct weft_change *change)
{
    return lives_on(change) && change->step.ended != WEFT_ENDED_NONE;
}

static bool drains(const struct weft_change *change)
{
    return change->apply && change->drains;
}

static size_t count_if(const struct weft_changes *changes,
                       bool (*fits)(const struct weft_change *change))
{
    size_t count = 0;
    for (size_t i = 0; i < changes->count; i++)
        count += fits(&changes->change[i]);
    return count;
}

static void note_flows(struct weft_tx *tx, struct weft_changes *changes,
                       const struct weft_rows *rows)
{
    changes->flow = weft_new_array(tx->arena, struct weft_id, rows->count + 1);
    changes->flows = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (!weft_get(rows, i, LIVE_END_OUT_FLOW)->null)
            changes->flow[changes->flows++] = weft_get_id(rows, i, LIVE_END_OUT_FLOW);
}

enum { PUT, END, ATTEMPT, DRAINING };

void weft_change_calls(struct weft_tx *tx, const struct weft_changes *changes,
                       struct weft_call ret_call[WEFT_CHANGE_CALLS])
{
    struct weft_call *call = ret_call;
    for (size_t i = 0; i < changes->count; i++) {
        struct weft_change *change = &changes->change[i];
        change->drains = weft_lease_drains(change->step.ended, change->before.due_us, tx->now_us);
    }
    weft_call_init(&call[PUT], tx->arena, WEFT_STMT_LIVE_PUT, count_if(changes, lives_on));
    weft_call_init(&call[END], tx->arena, WEFT_STMT_LIVE_END, count_if(changes, ends));
    weft_call_init(&call[ATTEMPT], tx->arena, WEFT_STMT_ATTEMPT_ADD,
                   count_if(changes, leaves_attempt));
    weft_call_init(&call[DRAINING], tx->arena, WEFT_STMT_DRAINING_ADD, count_if(changes, drains));
    weft_set_i64(&call[END], 0, LIVE_END_IN_NOW, tx->now_us);
    weft_set_i64(&call[DRAINING], 0, DRAINING_ADD_IN_NOW, tx->now_us);

    size_t row[WEFT_CHANGE_CALLS] = {0};
    for (size_t i = 0; i < changes->count; i++) {
        const struct weft_change *change = &changes->change[i];
        if (lives_on(change))
            put_live(&call[PUT], row[PUT]++, &change->step.after);
        if (ends(change))
            put_end(&call[END], row[END]++, change);
        if (leaves_attempt(change))
            put_attempt(&call[ATTEMPT], row[ATTEMPT]++, change, tx->now_us);
        if (drains(change))
            put_draining(&call[DRAINING], row[DRAINING]++, change);
    }
}

enum weft_rc weft_change_wrote(struct weft_tx *tx, struct weft_changes *changes,
                               const struct weft_rows rows[WEFT_CHANGE_CALLS], struct weft_err *err)
{
    size_t ended = count_if(changes, ends);
    if (rows[END].count != ended)
        return weft_fail(err, WEFT_INTERNAL, "%zu locked rows changed under their lock",
                         ended - rows[END].count);
    note_flows(tx, changes, &rows[END]);
    return WEFT_OK;
}

bool weft_change_ends(const struct weft_changes *changes)
{
    return count_if(changes, ends) > 0;
}

enum weft_rc weft_change_write(struct weft_tx *tx, struct weft_changes *changes,
                               struct weft_err *err)
{
    struct weft_call call[WEFT_CHANGE_CALLS];
    struct weft_rows rows[WEFT_CHANGE_CALLS];
    weft_change_calls(tx, changes, call);
    enum weft_rc rc = weft_tx_run(tx, call, WEFT_CHANGE_CALLS, rows, err);
    return rc ? rc : weft_change_wrote(tx, changes, rows, err);
}

void weft_change_news(struct weft_commit_effects *news, const struct weft_changes *changes)
{
    for (size_t i = 0; i < changes->flows; i++)
        weft_news_flow(news, &changes->flow[i]);
    for (size_t i = 0; i < changes->count; i++) {
        const struct weft_change *change = &changes->change[i];
        const struct weft_live *before = &change->before, *after = &change->step.after;
        if (!change->apply)
            continue;
        if (change->drains) /* the slot is not free yet */
            weft_news_worker(news, before->worker);
        else if (before->state == WEFT_STATE_RUNNING && after->state != WEFT_STATE_RUNNING)
            weft_news_of(news, before->queue)->freed++;
        if (ends(change)) {
            weft_news_ended(news, before->queue, after->state);
            continue;
        }
        if (after->state == WEFT_STATE_READY && before->state != WEFT_STATE_READY)
            weft_news_of(news, before->queue)->ready++;
        if (after->state == WEFT_STATE_DELAYED && after->due_us != before->due_us)
            weft_news_due(news, after->due_us);
        if (after->deadline_us != before->deadline_us)
            weft_news_due(news, after->deadline_us);
    }
}
