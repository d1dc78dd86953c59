/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lock, decide, write: how every row is changed that is not claimed, renewed or completed.
 *
 * Rows are locked in the order of their ids (or by a pass, with SKIP LOCKED). The caller decides
 * about each with the pure functions of core, and the result is written in one round trip: rows
 * that live on are updated, rows that ended move to `outcome`, every lease that ended without
 * ending its execution leaves an `attempt`, and every lease that was taken from a worker before its
 * time leaves a `draining` row (core/fence.h). An execution that is no longer suspended, whatever
 * the step, loses its `suspension` in the same transaction, and has a `resumption` if it goes on.
 */

#include "engine/job/change.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "core/fence.h"
#include "engine/names/names.h"
#include "engine/tx/commit_effects.h"
#include "engine/tx/tx.h"

#include <assert.h>
#include <stdlib.h>

/* ---- Reading --------------------------------------------------------------------------------- */

static struct weft_live read_live(const struct weft_live_out *row)
{
    return (struct weft_live){
        .id = row->id.value,
        .ord = row->ord,
        .due_us = row->due.value,
        .attempt_deadline_us = row->attempt_deadline.value,
        .deadline_us = row->deadline.value,
        .started_us = row->started.value,
        .claimed_us = row->claimed.value,
        .queue = row->queue,
        .lane = row->lane,
        .policy = row->policy,
        .worker = row->worker.value,
        .epoch = row->epoch,
        .attempt = row->attempt,
        .forgiven = row->forgiven,
        .size = row->size,
        .has = row->has,
        .gate = row->gate,
        .lost = row->lost,
        .replays = row->replays,
        .priority = row->priority,
        .state = row->state,
    };
}

struct weft_changes weft_change_rows(const struct weft_rows *rows, struct weft_arena *arena)
{
    struct weft_changes changes = {
        .change = weft_new_array(arena, struct weft_change, rows->count + 1),
        .count = rows->count,
    };
    for (size_t i = 0; i < rows->count; i++)
        changes.change[i].before = read_live(weft_out_live(rows, i));
    return changes;
}

enum weft_rc weft_change_lock_and(struct weft_tx *tx, const struct weft_id *id, size_t count,
                                  struct weft_changes *ret_changes,
                                  const struct weft_change_reads *reads, struct weft_err *err)
{
    struct weft_live_lock_in *in = weft_call_live_lock(&reads->call[0], tx->arena, count);
    for (size_t i = 0; i < count; i++)
        in->row[i].id = id[i];
    enum weft_rc rc = weft_tx_run(tx, reads->call, reads->count, reads->rows, err);
    if (!rc)
        *ret_changes = weft_change_rows(&reads->rows[0], tx->arena);
    return rc;
}

enum weft_rc weft_change_lock(struct weft_tx *tx, const struct weft_id *id, size_t count,
                              struct weft_changes *ret_changes, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    const struct weft_change_reads none = {&call, &rows, 1};
    return weft_change_lock_and(tx, id, count, ret_changes, &none, err);
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
    struct weft_step step;
    if (!weft_state_step(change->apply ? &change->step.after : &change->before, event, &step))
        return false;
    /* At most one lease ends: no row is claimed between two steps under its lock. */
    if (change->apply && step.ended == WEFT_ENDED_NONE)
        step.ended = change->step.ended;
    change->step = step;
    change->apply = true;
    return true;
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

struct weft_live weft_outcome_read(const struct weft_rows *rows, size_t i)
{
    const struct weft_outcome_lock_out *row = &weft_out_outcome_lock(rows)[i];
    return (struct weft_live){
        .id = row->id,
        .state = row->state,
        .queue = row->queue,
        .epoch = row->epoch,
        .attempt = row->attempt,
        .forgiven = row->forgiven,
        .lost = row->lost,
        .replays = row->replays,
        .priority = row->priority,
        .gate = row->gate,
    };
}

void weft_outcome_back(struct weft_outcome_back_item *item, const struct weft_live *after)
{
    item->id = after->id;
    item->attempt = after->attempt;
    item->forgiven = after->forgiven;
    item->lost = after->lost;
    item->replays = after->replays;
    item->state = after->state;
    item->deadline = weft_unless_zero(after->deadline_us);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_live(struct weft_live_put_item *item, const struct weft_live *after)
{
    item->id = after->id;
    item->due = weft_unless_zero(after->due_us);
    item->attempt_deadline = weft_unless_zero(after->attempt_deadline_us);
    item->deadline = weft_unless_zero(after->deadline_us);
    item->claimed = weft_unless_zero(after->claimed_us);
    item->worker = weft_unless_zero(after->worker);
    item->attempt = after->attempt;
    item->lost = after->lost;
    item->priority = after->priority;
    item->state = after->state;
}

/* How an execution ended when no lease was held: it follows from the last state. */
static enum weft_ended end_without_lease(enum weft_state state)
{
    if (state == WEFT_STATE_SKIPPED)
        return WEFT_ENDED_SKIPPED;
    if (state == WEFT_STATE_FAILED) /* no other step fails an execution without a lease */
        return WEFT_ENDED_SUSPENSION_TIMEOUT;
    return state == WEFT_STATE_EXPIRED ? WEFT_ENDED_EXPIRED : WEFT_ENDED_CANCELLED;
}

static void put_end(struct weft_live_end_item *item, const struct weft_change *change)
{
    enum weft_ended ended =
        change->step.ended ? change->step.ended : end_without_lease(change->step.after.state);
    item->id = change->before.id;
    item->epoch = change->before.epoch;
    item->was = change->before.state;
    item->state = change->step.after.state;
    item->ended = ended;
    item->by = change->by;
    item->reason = change->reason;
    item->error_class = change->error_class;
    item->error_message = change->error_message;
}

static void put_attempt(struct weft_attempt_add_item *item, const struct weft_change *change,
                        weft_usec now_us)
{
    const struct weft_live *before = &change->before, *after = &change->step.after;
    item->id = before->id;
    item->epoch = before->epoch;
    item->replay = 0;
    item->attempt = before->attempt;
    item->ended = change->step.ended;
    item->held = true;
    item->answer = after->state;
    item->worker = before->worker;
    item->claimed = before->claimed_us;
    item->ended_at = now_us;
    item->run_at = weft_unless_zero(after->state == WEFT_STATE_DELAYED ? after->due_us : 0);
    item->by = change->by;
    item->reason = change->reason;
    item->error_class = change->error_class;
    item->error_message = change->error_message;
}

static void put_draining(struct weft_draining_add_item *item, const struct weft_change *change)
{
    const struct weft_live *before = &change->before;
    item->id = before->id;
    item->epoch = before->epoch;
    item->queue = before->queue;
    item->lane = before->lane;
    item->worker = before->worker;
    item->until = before->due_us;
    item->ended = change->step.ended;
    item->gate = before->gate;
}

static void put_resumption(struct weft_suspension_resume_item *item,
                           const struct weft_change *change, weft_usec now_us)
{
    item->id = change->before.id;
    item->epoch = change->before.epoch;
    item->at = now_us;
    item->by = change->resumed;
    item->reason = change->reason;
}

/* Which of the statements a change needs. */
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

static bool resumes(const struct weft_change *change)
{
    return lives_on(change) && change->before.state == WEFT_STATE_SUSPENDED &&
           change->step.after.state != WEFT_STATE_SUSPENDED;
}

static bool ends_suspended(const struct weft_change *change)
{
    return ends(change) && change->before.state == WEFT_STATE_SUSPENDED;
}

/* A lease ended whose start counts in the window of a gate. The end of an execution records it. */
static bool has_started(const struct weft_change *change)
{
    return lives_on(change) && change->step.ended != WEFT_ENDED_NONE && change->before.gate &&
           change->before.has & WEFT_HAS_START;
}

static size_t count_if(const struct weft_changes *changes,
                       bool (*fits)(const struct weft_change *change))
{
    size_t count = 0;
    for (size_t i = 0; i < changes->count; i++)
        count += fits(&changes->change[i]);
    return count;
}

enum { PUT, END, ATTEMPT, DRAINING, DROP, RESUME, STARTED };

void weft_change_calls(struct weft_tx *tx, const struct weft_changes *changes,
                       struct weft_call ret_call[WEFT_CHANGE_CALLS])
{
    for (size_t i = 0; i < changes->count; i++) {
        struct weft_change *change = &changes->change[i];
        change->drains = weft_lease_drains(change->step.ended, change->before.due_us, tx->now_us);
    }
    struct weft_live_put_in *put =
        weft_call_live_put(&ret_call[PUT], tx->arena, count_if(changes, lives_on));
    struct weft_live_end_in *end =
        weft_call_live_end(&ret_call[END], tx->arena, count_if(changes, ends));
    struct weft_attempt_add_in *attempt =
        weft_call_attempt_add(&ret_call[ATTEMPT], tx->arena, count_if(changes, leaves_attempt));
    struct weft_draining_add_in *draining =
        weft_call_draining_add(&ret_call[DRAINING], tx->arena, count_if(changes, drains));
    struct weft_suspension_drop_in *drop =
        weft_call_suspension_drop(&ret_call[DROP], tx->arena, count_if(changes, ends_suspended));
    struct weft_suspension_resume_in *resume =
        weft_call_suspension_resume(&ret_call[RESUME], tx->arena, count_if(changes, resumes));
    struct weft_gate_ended_in *started =
        weft_call_gate_ended(&ret_call[STARTED], tx->arena, count_if(changes, has_started));
    end->now = tx->now_us;
    draining->now = tx->now_us;

    size_t row[WEFT_CHANGE_CALLS] = {0};
    for (size_t i = 0; i < changes->count; i++) {
        const struct weft_change *change = &changes->change[i];
        if (lives_on(change))
            put_live(&put->row[row[PUT]++], &change->step.after);
        if (ends(change))
            put_end(&end->row[row[END]++], change);
        if (leaves_attempt(change))
            put_attempt(&attempt->row[row[ATTEMPT]++], change, tx->now_us);
        if (drains(change))
            put_draining(&draining->row[row[DRAINING]++], change);
        if (ends_suspended(change))
            drop->row[row[DROP]++].id = change->before.id;
        if (resumes(change))
            put_resumption(&resume->row[row[RESUME]++], change, tx->now_us);
        if (has_started(change)) {
            started->row[row[STARTED]].name = change->before.gate;
            started->row[row[STARTED]++].at = change->before.claimed_us;
        }
    }
}

enum weft_rc weft_change_wrote(struct weft_tx *tx, struct weft_changes *changes,
                               const struct weft_rows rows[WEFT_CHANGE_CALLS], struct weft_err *err)
{
    size_t ended = count_if(changes, ends);
    if (rows[END].count != ended)
        return weft_fail(err, WEFT_INTERNAL, "%zu locked rows changed under their lock",
                         ended - rows[END].count);
    changes->flow = weft_new_array(tx->arena, struct weft_id, ended + 1);
    changes->flows = 0;
    const struct weft_live_end_out *row = weft_out_live_end(&rows[END]);
    for (size_t i = 0; i < ended; i++)
        if (row[i].flow.set)
            changes->flow[changes->flows++] = row[i].flow.value;
    return WEFT_OK;
}

bool weft_change_ends(const struct weft_changes *changes)
{
    return count_if(changes, ends) > 0;
}

/* Leaves out calls without rows; returns how many are kept, and the place of live_end, if it is. */
static size_t keep_calls(struct weft_call *call, size_t count, size_t *ret_end)
{
    size_t kept = 0;
    *ret_end = count;
    for (size_t i = 0; i < count; i++) {
        if (call[i].rows == 0)
            continue;
        if (i == END)
            *ret_end = kept;
        call[kept++] = call[i];
    }
    return kept;
}

enum weft_rc weft_change_last(struct weft_tx *tx, struct weft_changes *changes,
                              struct weft_call *call, size_t count, struct weft_err *err)
{
    assert(!weft_change_ends(changes));
    size_t end;
    weft_change_calls(tx, changes, call);
    size_t kept = keep_calls(call, count, &end);
    return kept ? weft_tx_last(tx, call, kept, NULL, err) : WEFT_OK;
}

enum weft_rc weft_change_run(struct weft_tx *tx, struct weft_changes *changes,
                             struct weft_call *call, size_t count, struct weft_err *err)
{
    struct weft_rows *rows = weft_new_array(tx->arena, struct weft_rows, count);
    struct weft_rows ended[WEFT_CHANGE_CALLS] = {0};
    size_t end;
    weft_change_calls(tx, changes, call);
    size_t kept = keep_calls(call, count, &end);
    enum weft_rc rc = kept ? weft_tx_run(tx, call, kept, rows, err) : WEFT_OK;
    if (!rc && end < kept)
        ended[END] = rows[end];
    return rc ? rc : weft_change_wrote(tx, changes, ended, err);
}

enum weft_rc weft_change_write(struct weft_tx *tx, struct weft_changes *changes,
                               struct weft_err *err)
{
    struct weft_call call[WEFT_CHANGE_CALLS];
    return weft_change_run(tx, changes, call, WEFT_CHANGE_CALLS, err);
}

/* Whether its gate may admit another one, or this one. */
static bool moves_gate(const struct weft_change *change)
{
    enum weft_state before = change->before.state, after = change->step.after.state;
    bool frees = (before == WEFT_STATE_READY || before == WEFT_STATE_RUNNING) && after != before;
    return after == WEFT_STATE_HELD || (frees && !change->drains);
}

/* Room that a change makes: in its gate, and by the end of its lease in its lane. */
static void add_freed(struct weft_commit_effects *news, const struct weft_change *change)
{
    const struct weft_live *before = &change->before;
    if (before->gate && moves_gate(change))
        weft_news_gate(news, before->gate);
    if (change->drains) /* the slot is not free yet */
        weft_news_worker(news, before->worker);
    else if (before->state == WEFT_STATE_RUNNING && change->step.after.state != WEFT_STATE_RUNNING)
        weft_news_of(news, before->queue)->freed++;
}

void weft_change_news(struct weft_commit_effects *news, const struct weft_changes *changes)
{
    news->changes = changes;
    for (size_t i = 0; i < changes->flows; i++)
        weft_news_flow(news, &changes->flow[i]);
    for (size_t i = 0; i < changes->count; i++) {
        const struct weft_change *change = &changes->change[i];
        const struct weft_live *before = &change->before, *after = &change->step.after;
        if (!change->apply)
            continue;
        add_freed(news, change);
        if (ends(change)) {
            weft_news_ended(news, before->queue, after->state);
            continue;
        }
        if (after->state == WEFT_STATE_READY && before->state != WEFT_STATE_READY)
            weft_news_of(news, before->queue)->ready++;
        if ((after->state == WEFT_STATE_DELAYED || after->state == WEFT_STATE_SUSPENDED) &&
            after->due_us != before->due_us)
            weft_news_due(news, after->due_us);
        if (after->deadline_us != before->deadline_us)
            weft_news_due(news, after->deadline_us);
    }
}

size_t weft_change_ended(const struct weft_changes *changes, struct weft_id *ret_id)
{
    size_t count = 0;
    for (size_t i = 0; i < changes->count; i++)
        if (changes->change[i].apply && ends(&changes->change[i]))
            ret_id[count++] = changes->change[i].before.id;
    return count;
}
