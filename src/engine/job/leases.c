/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The operations of a worker on its leases: renew, complete, fail, delay, release. Their common
 * course is lease_call.c.
 */

#include "engine/job/leases.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/policy.h"
#include "core/spec.h"
#include "engine/job/detail.h"
#include "engine/job/joint.h"
#include "engine/job/lease_call.h"
#include "engine/names/names.h"

#include <assert.h>
#include <string.h>

#define BEGINS_WITH_LEASE(type)                                                                    \
    static_assert(offsetof(type, epoch) == offsetof(struct weft_lease, epoch), "id, then epoch")
BEGINS_WITH_LEASE(struct weft_renew);
BEGINS_WITH_LEASE(struct weft_complete);
BEGINS_WITH_LEASE(struct weft_failure);
BEGINS_WITH_LEASE(struct weft_put_back);

enum weft_rc weft_lease_ms_check(int64_t lease_ms, struct weft_err *err)
{
    if (lease_ms == 0 || (lease_ms >= WEFT_LEASE_MIN_MS && lease_ms <= WEFT_LEASE_MAX_MS))
        return WEFT_OK;
    return weft_invalid(err, "lease_ms", "lease_ms is %lld, allowed are %d to %d",
                        (long long)lease_ms, WEFT_LEASE_MIN_MS, WEFT_LEASE_MAX_MS);
}

/* ---- Renew ----------------------------------------------------------------------------------- */

static enum weft_rc check_renew(const void *lease, struct weft_err *err)
{
    const struct weft_renew *item = lease;
    enum weft_rc rc = weft_lease_ms_check(item->lease_ms, err);
    if (!rc && item->has_progress && (item->percent < 0 || item->percent > 100))
        rc = weft_invalid(err, "progress.percent", "progress.percent is %d, allowed are 0 to 100",
                          item->percent);
    if (!rc && item->has_progress)
        rc = weft_text_check(item->note, WEFT_REASON_MAX, "progress.note", err);
    return rc;
}

/* Progress of the leases that were found; their rows are locked by the renewal. */
static enum weft_rc put_progress(struct weft_tx *tx, const struct weft_lease_call *call,
                                 struct weft_err *err)
{
    struct weft_call put;
    struct weft_rows none;
    struct weft_progress_put_in *in = weft_call_progress_put(&put, tx->arena, call->chunk.count);
    in->now = tx->now_us;
    size_t rows = 0;
    for (size_t k = 0; k < call->chunk.count; k++) {
        const struct weft_renew *item = weft_lease_item(call, k);
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
    struct weft_lease_call *call = context;
    struct weft_call renew;
    struct weft_rows rows;
    struct weft_renew_in *in = weft_call_renew(&renew, tx->arena, call->chunk.count);
    in->now = tx->now_us;
    bool progress = false;
    for (size_t k = 0; k < call->chunk.count; k++) {
        const struct weft_renew *item = weft_lease_item(call, k);
        progress |= item->has_progress;
        in->row[k].id = item->id;
        in->row[k].epoch = item->epoch;
        in->row[k].lease = weft_unless_zero(item->lease_ms * WEFT_MS);
    }
    enum weft_rc rc =
        progress ? weft_tx_run(tx, &renew, 1, &rows, err) : weft_tx_last(tx, &renew, 1, &rows, err);
    if (rc)
        return rc;
    call->found = weft_new_array(tx->arena, bool, call->chunk.count + 1);
    const struct weft_renew_out *row = weft_out_renew(&rows);
    for (size_t i = 0; i < rows.count; i++)
        weft_lease_found(call, &row[i].id, WEFT_STATE_RUNNING)->lease_expires_us = row[i].due;
    return progress ? put_progress(tx, call, err) : WEFT_OK;
}

/* ---- Complete -------------------------------------------------------------------------------- */

static enum weft_rc check_result(const struct weft_complete *item, size_t most,
                                 struct weft_err *err)
{
    if (item->result_size > most)
        return weft_fail_field(err, WEFT_TOO_LARGE, "result",
                               "the result has %zu bytes, at most %zu are allowed",
                               item->result_size, most);
    if (!item->result && item->result_size > 0)
        return weft_invalid(err, "result", "result is NULL but result_size is %zu",
                            item->result_size);
    if (item->content_type && !*item->content_type)
        return weft_invalid(err, "content_type", "content_type is empty");
    return weft_text_check(item->content_type, WEFT_CONTENT_TYPE_MAX, "content_type", err);
}

static enum weft_rc check_complete(const void *lease, struct weft_err *err)
{
    return check_result(lease, WEFT_PAYLOAD_MAX, err);
}

/* The answer of another server is as large as its endpoint allows. */
static enum weft_rc check_call(const void *lease, struct weft_err *err)
{
    return check_result(lease, WEFT_CALL_RESULT_MAX, err);
}

static bool ask_complete(struct weft_tx *tx, void *context, struct weft_call *ret_call)
{
    const struct weft_lease_call *call = context;
    struct weft_live_end_in *in = weft_call_live_end(ret_call, tx->arena, call->chunk.count);
    in->now = tx->now_us;
    for (size_t k = 0; k < call->chunk.count; k++) {
        const struct weft_complete *item = weft_lease_item(call, k);
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
    struct weft_lease_call *call = context;
    call->completed = *rows;
    call->found = weft_new_array(tx->arena, bool, call->chunk.count + 1);
    for (size_t i = 0; i < rows->count; i++)
        (void)weft_lease_found(call, &weft_out_live_end(rows)[i].id, WEFT_STATE_SUCCEEDED);
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

static size_t result_bytes(const void *lease)
{
    const struct weft_complete *item = lease;
    return item->result_size;
}

/* How many of the items fit one transaction by what they write besides rows. */
static size_t fit_items(const struct weft_lease_op *op, const void *item, size_t count)
{
    const char *at = item;
    size_t fit = 0, bytes = 0;
    do
        bytes += op->bytes(at + op->item_size * fit++);
    while (fit < count && bytes + op->bytes(at + op->item_size * fit) <= WEFT_BATCH_BYTES);
    return fit;
}

/* ---- Fail, delay, release: lock, decide, write ----------------------------------------------- */

static enum weft_rc check_fail(const void *lease, struct weft_err *err)
{
    const struct weft_failure *item = lease;
    enum weft_rc rc = weft_text_check(item->error_class, WEFT_CLASS_MAX, "class", err);
    if (!rc && item->error_class && !*item->error_class)
        rc = weft_invalid(err, "class", "class is empty");
    if (!rc && item->message && !weft_utf8_valid(item->message, strlen(item->message)))
        rc = weft_invalid(err, "message", "message must be valid UTF-8");
    if (!rc && (item->retry_after_ms < -1 || item->retry_after_ms > WEFT_DELAY_MAX_MS))
        rc = weft_invalid(err, "retry_after_ms", "retry_after_ms must be 0 to %lld",
                          (long long)WEFT_DELAY_MAX_MS);
    return rc ? rc : weft_detail_check(item->detail, err);
}

static size_t detail_bytes(const void *lease)
{
    const struct weft_failure *item = lease;
    return item->detail ? strlen(item->detail) : 0;
}

static enum weft_rc check_put_back(const void *lease, struct weft_err *err)
{
    const struct weft_put_back *item = lease;
    if (item->delay_ms >= 0 && item->delay_ms <= WEFT_DELAY_MAX_MS)
        return WEFT_OK;
    return weft_invalid(err, "delay_ms", "delay_ms must be 0 to %lld",
                        (long long)WEFT_DELAY_MAX_MS);
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

static struct weft_event decide_fail(struct weft_tx *tx, const struct weft_lease_op *op,
                                     const void *lease, struct weft_change *change)
{
    const struct weft_failure *item = lease;
    struct weft_fault_report report = {
        .how = op->asked,
        .error_class = item->error_class ? item->error_class : "error",
        .permanent = item->permanent,
        .retry_after_ms = item->retry_after_ms,
        .now_us = tx->now_us,
    };
    weft_random(&report.random, sizeof(report.random));
    change->error_class = report.error_class;
    change->error_message = cut_message(item->message, tx->arena);
    change->detail = item->detail;
    return weft_retry_decide(weft_find_rules(tx->engine, change->before.policy), &change->before,
                             &report);
}

static struct weft_event decide_put_back(struct weft_tx *tx, const struct weft_lease_op *op,
                                         const void *lease, struct weft_change *change)
{
    int64_t delay_ms = ((const struct weft_put_back *)lease)->delay_ms;
    (void)change;
    return (struct weft_event){
        .kind = delay_ms ? WEFT_EVENT_DELAY : WEFT_EVENT_RELEASE,
        .how = op->asked,
        .due_us = delay_ms ? tx->now_us + delay_ms * WEFT_MS : 0,
    };
}

/* Writes the changes, with the details of those that have one. */
static enum weft_rc write_changes(struct weft_tx *tx, struct weft_changes *changes,
                                  struct weft_err *err)
{
    struct weft_call call[WEFT_CHANGE_CALLS + 1];
    size_t details = 0;
    for (size_t i = 0; i < changes->count; i++)
        details += changes->change[i].apply && changes->change[i].detail;
    if (details == 0)
        return weft_change_write(tx, changes, err);
    struct weft_detail_put_in *in =
        weft_call_detail_put(&call[WEFT_CHANGE_CALLS], tx->arena, details);
    for (size_t i = 0, row = 0; i < changes->count; i++) {
        const struct weft_change *change = &changes->change[i];
        if (!change->apply || !change->detail)
            continue;
        in->row[row].id = change->before.id;
        in->row[row].epoch = change->before.epoch;
        in->row[row++].detail = change->detail;
    }
    return weft_change_run(tx, changes, call, WEFT_LEN(call), err);
}

static enum weft_rc decide_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct weft_lease_call *call = context;
    size_t count;
    const struct weft_id *id = weft_chunk_ids(&call->chunk, &call->ids, tx->arena, &count);
    enum weft_rc rc = weft_change_lock(tx, id, count, &call->changes, err);
    if (!rc && call->op->asked == WEFT_ENDED_FAILED)
        rc = weft_change_rules(tx, &call->changes, err);
    if (rc)
        return rc;
    call->found = weft_new_array(tx->arena, bool, call->chunk.count + 1);
    call->state = weft_new_array(tx->arena, enum weft_state, call->chunk.count + 1);
    for (size_t k = 0; k < call->chunk.count; k++) {
        const struct weft_lease *lease = weft_lease_item(call, k);
        struct weft_change *change = weft_change_find(&call->changes, &lease->id);
        if (!change)
            continue;
        /* apply: an item before this one has ended the lease. */
        call->state[k] = change->apply ? change->step.after.state : change->before.state;
        if (call->state[k] != WEFT_STATE_RUNNING || change->before.epoch != lease->epoch)
            continue;
        struct weft_event event = call->op->decide(tx, call->op, lease, change);
        bool legal = weft_change_step(change, &event);
        assert(legal); /* the row is running */
        const struct weft_live *after = &change->step.after;
        *weft_lease_answer_of(call, k) = (struct weft_lease_result){
            .state = after->state,
            .run_at_us = after->state == WEFT_STATE_DELAYED ? after->due_us : 0};
        call->found[k] = legal;
    }
    return write_changes(tx, &call->changes, err);
}

/* ---- The operations -------------------------------------------------------------------------- */

/* Delay and release in the order of enum weft_put_back_kind. */
enum { RENEW, COMPLETE, FAIL, DELAY, RELEASE, COMPLETE_CALLS };

static const struct weft_lease_op ops[] = {
    [RENEW] = {.item_size = sizeof(struct weft_renew), .check = check_renew, .body = renew_body},
    [COMPLETE] = {.item_size = sizeof(struct weft_complete),
                  .check = check_complete,
                  .body = complete_body,
                  .asked = WEFT_ENDED_COMPLETED,
                  .bytes = result_bytes},
    [FAIL] = {.item_size = sizeof(struct weft_failure),
              .check = check_fail,
              .body = decide_body,
              .decide = decide_fail,
              .asked = WEFT_ENDED_FAILED,
              .bytes = detail_bytes},
    [DELAY] = {.item_size = sizeof(struct weft_put_back),
               .check = check_put_back,
               .body = decide_body,
               .decide = decide_put_back,
               .asked = WEFT_ENDED_DELAYED},
    [RELEASE] = {.item_size = sizeof(struct weft_put_back),
                 .check = check_put_back,
                 .body = decide_body,
                 .decide = decide_put_back,
                 .asked = WEFT_ENDED_RELEASED},
    [COMPLETE_CALLS] = {.item_size = sizeof(struct weft_complete),
                        .check = check_call,
                        .body = complete_body,
                        .asked = WEFT_ENDED_COMPLETED,
                        .bytes = result_bytes},
};

enum weft_rc weft_engine_renew(struct weft_engine *engine, const struct weft_renew *item,
                               size_t count, struct weft_arena *arena,
                               struct weft_lease_result *ret_answer, struct weft_err *err)
{
    return weft_lease_run(engine, &ops[RENEW], item, count, arena, ret_answer, err);
}

/* A call is cut where results or details together would pass the bound of a transaction. */
static enum weft_rc run_cut(struct weft_engine *engine, const struct weft_lease_op *op,
                            const void *item, size_t count, struct weft_arena *arena,
                            struct weft_lease_result *ret_answer, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    const char *first = item;
    for (size_t at = 0, part = 0; at < count && !rc; at += part) {
        part = fit_items(op, first + at * op->item_size, count - at);
        enum weft_rc failed = weft_lease_run(engine, op, first + at * op->item_size, part, arena,
                                             ret_answer + at, err);
        if (part == count)
            rc = failed; /* else some may be committed: the errors are in the answers */
    }
    return rc;
}

enum weft_rc weft_engine_fail(struct weft_engine *engine, const struct weft_failure *item,
                              size_t count, struct weft_arena *arena,
                              struct weft_lease_result *ret_answer, struct weft_err *err)
{
    return run_cut(engine, &ops[FAIL], item, count, arena, ret_answer, err);
}

enum weft_rc weft_engine_put_back(struct weft_engine *engine, enum weft_put_back_kind kind,
                                  const struct weft_put_back *item, size_t count,
                                  struct weft_arena *arena, struct weft_lease_result *ret_answer,
                                  struct weft_err *err)
{
    return weft_lease_run(engine, &ops[DELAY + kind], item, count, arena, ret_answer, err);
}

enum weft_rc weft_engine_complete(struct weft_engine *engine, const struct weft_complete *item,
                                  size_t count, struct weft_arena *arena,
                                  struct weft_lease_result *ret_answer, struct weft_err *err)
{
    return run_cut(engine, &ops[COMPLETE], item, count, arena, ret_answer, err);
}

static const struct weft_lease_op *op_of(const struct weft_joint_call *call)
{
    return &ops[call->calls ? COMPLETE_CALLS : COMPLETE];
}

void weft_complete_begin(struct weft_engine *engine, struct weft_joint_call *call,
                         struct weft_arena *arena)
{
    (void)engine;
    const struct weft_lease_op *op = op_of(call);
    if (fit_items(op, call->item, call->count) < call->count)
        return;
    struct weft_lease_call *lease = weft_new(arena, struct weft_lease_call);
    *lease = weft_lease_call(op, call->item, call->count, call->arena, call->answer);
    struct weft_chunks chunks = weft_lease_begin(lease, arena);
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
    struct weft_lease_call *lease = part->context;
    (void)arena;
    call->err = part->err;
    if (!part->joins)
        call->rc = run_cut(tx->engine, op_of(call), call->item, call->count, call->arena,
                           call->answer, &call->err);
    else if (part->fate == WEFT_PART_DONE || part->fate == WEFT_PART_FAILED)
        call->rc = weft_lease_end_chunk(tx, lease, part->err.rc, &call->err);
    else {
        lease->maybe_committed = part->fate == WEFT_PART_MAYBE_COMMITTED;
        call->rc = weft_lease_run_chunk(tx->engine, lease, &call->err);
    }
}
