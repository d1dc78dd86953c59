/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Suspending: a worker gives an execution back until its condition is satisfied.
 *
 * Under the lock of the living row the pending waitpoints and their early signals are read and the
 * condition is judged. Satisfied: the worker keeps its lease, the waitpoints are taken, and a
 * resumption is written, so that a later lease gets the signals too. Otherwise the row is
 * suspended. A signal locks the same row, so it comes before all this and is judged here, or after
 * and finds the suspension.
 *
 * A repeat: a request whose answer was lost is sent again. If it suspended, its lease has ended as
 * suspended, and the waitpoints that were taken under its epoch are the answer. If it was satisfied
 * at once, the pending waitpoints that it names by id are taken under the epoch that still runs,
 * which no other request can have done, and it is judged again over the same signals.
 *
 * A lease can suspend again after it was satisfied at once, with waitpoints of the same names. So
 * waitpoints that were taken at once have the negative epoch in `bound`: a suspension under that
 * epoch does not open them again. This holds for the waitpoints of one request: the next request
 * sets the others to BOUND_OVER, so that an answer has no signals of an earlier request.
 */

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/condition.h"
#include "core/spec.h"
#include "engine/engine_state.h"
#include "engine/job/lease_call.h"
#include "engine/wait/wait.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static_assert(offsetof(struct weft_suspend, epoch) == offsetof(struct weft_lease, epoch),
              "id, then epoch");

enum { ITEM_DEPTH = 3 }; /* of a value in a request to a server: {"items": [{"condition": ... */
#define BOUND_OVER INT32_MIN

/* The whole call; lease comes first, because the body of a lease operation gets it. */
struct suspending {
    struct weft_lease_call lease;
    struct weft_suspend_result *answer; /* of all items */
    bool *held;                         /* of all items: it held its lease in its transaction */
    struct weft_signing_key key;
};

/* One item in its transaction. */
struct item {
    const struct weft_suspend *given;
    struct weft_suspend_result *answer;
    struct weft_change *change;
    struct weft_waitpoint *waitpoint; /* in the order of the request */
    const char **name;                /* the same, for the condition */
    bool *fresh;
    int32_t *made; /* the epochs under which they were made: a part of their tokens */
    struct weft_condition condition;
    weft_usec timeout_us;
    bool held, satisfied;
};

/* ---- Checks before the transaction ----------------------------------------------------------- */

static enum weft_rc check_waitpoint(const struct weft_suspend_at *at, struct weft_err *err)
{
    if (!at->name && !weft_id_is_zero(&at->id))
        return WEFT_OK;
    if (at->name && !weft_id_is_zero(&at->id))
        return weft_invalid(err, "waitpoints",
                            "a waitpoint has a name, or the id of a pending one");
    if (at->name && weft_name_valid(at->name))
        return WEFT_OK;
    return weft_invalid(err, "waitpoints",
                        "the name of a waitpoint must be 1 to %d of A-Z a-z 0-9 _ . : / -",
                        WEFT_NAME_MAX);
}

enum weft_rc weft_suspend_check(const struct weft_suspend *item, struct weft_err *err)
{
    if (item->waitpoint_count > WEFT_WAITPOINTS_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "waitpoints",
                               "%zu waitpoints, at most %d are allowed", item->waitpoint_count,
                               WEFT_WAITPOINTS_MAX);
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < item->waitpoint_count && !rc; i++)
        rc = check_waitpoint(&item->waitpoint[i], err);
    if (!rc && (item->timeout_ms < 0 || item->timeout_ms > WEFT_DELAY_MAX_MS))
        rc = weft_invalid(err, "timeout_ms", "timeout_ms must be 1 to %lld",
                          (long long)WEFT_DELAY_MAX_MS);
    if (!rc && item->timeout_ms && item->timeout_us)
        rc = weft_invalid(err, "timeout_at", "give timeout_ms or timeout_at, not both");
    if (!rc && (item->timeout_us < 0 || item->timeout_us > WEFT_MOMENT_MAX_US))
        rc = weft_invalid(err, "timeout_at", "timeout_at must be before the year 10000");
    if (!rc && (unsigned)item->on_timeout > WEFT_ON_TIMEOUT_ESCALATE)
        rc = weft_invalid(err, "on_timeout",
                          "on_timeout must be fail, cancel, expire, resume or escalate");
    if (!rc && (item->resume_delay_ms < 0 || item->resume_delay_ms > WEFT_DELAY_MAX_MS))
        rc = weft_invalid(err, "resume_delay_ms", "resume_delay_ms must be 0 to %lld",
                          (long long)WEFT_DELAY_MAX_MS);
    struct weft_json value;
    if (!rc && item->condition &&
        weft_json_check_inside(item->condition, strlen(item->condition), ITEM_DEPTH, &value, err))
        rc = weft_invalid(err, "condition", "the condition is not JSON");
    return rc ? rc : weft_text_check(item->reason, WEFT_REASON_MAX, "reason", err);
}

static enum weft_rc check_suspend(const void *lease, struct weft_err *err)
{
    return weft_suspend_check(lease, err);
}

/* ---- One item -------------------------------------------------------------------------------- */

static void refuse(struct item *item, struct weft_arena *arena, const struct weft_err *err)
{
    *item->answer = (struct weft_suspend_result){WEFT_FAILED(weft_err_dup(arena, err))};
    item->held = false;
}

/* A row of this execution that fits: by name among pending ones, by id also among taken ones. */
static const struct weft_waitpoint_out *find_row(const struct weft_rows *rows,
                                                 const struct item *item,
                                                 const struct weft_suspend_at *at, weft_usec now_us)
{
    const struct weft_live *live = &item->change->before;
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_waitpoint_out *row = weft_out_waitpoint(rows, i);
        if (weft_id_cmp(&row->id, &live->id) != 0 || row->replay != live->replays)
            continue;
        if (at->name ? strcmp(row->name, at->name) != 0
                     : weft_id_cmp(&row->waitpoint, &at->id) != 0)
            continue;
        if (weft_waitpoint_state_of(row, live, now_us) == WEFT_WAITPOINT_PENDING ||
            (!at->name && row->bound == -live->epoch))
            return row;
    }
    return NULL;
}

static enum weft_rc take_waitpoint(struct weft_tx *tx, const struct suspending *call,
                                   struct item *item, const struct weft_rows *rows, size_t i,
                                   struct weft_err *err)
{
    const struct weft_suspend_at *at = &item->given->waitpoint[i];
    const struct weft_waitpoint_out *row = find_row(rows, item, at, tx->now_us);
    if (!row && !at->name)
        return weft_invalid(err, "waitpoints",
                            "waitpoint %zu is no pending waitpoint of this execution: it may be "
                            "closed or expired",
                            i);
    if (row && at->name) {
        (void)weft_fail_field(err, WEFT_CONFLICT, "waitpoints",
                              "a pending waitpoint of this execution is called %s", at->name);
        err->hint = "name the pending waitpoint by its id";
        return WEFT_CONFLICT;
    }
    struct weft_waitpoint *waitpoint = &item->waitpoint[i];
    item->fresh[i] = !row;
    item->made[i] = row ? row->epoch : item->change->before.epoch;
    if (row) {
        *waitpoint = (struct weft_waitpoint){.id = row->waitpoint,
                                             .name = row->name,
                                             .created_us = row->created,
                                             .expires_us = row->expires.value,
                                             .signals = row->signals,
                                             .key_id = row->key};
    } else {
        *waitpoint = (struct weft_waitpoint){
            .name = at->name, .created_us = tx->now_us, .key_id = call->key.id};
        if (i > 0 && item->fresh[i - 1]) /* in the order of the request */
            weft_id_next(&waitpoint->id, &item->waitpoint[i - 1].id);
        else
            weft_id_new(&waitpoint->id, tx->now_us, weft_id_partition(&item->given->id));
    }
    item->name[i] = waitpoint->name;
    for (size_t k = 0; k < i; k++)
        if (strcmp(item->name[k], item->name[i]) == 0)
            return weft_invalid(err, "waitpoints", "two waitpoints are called %s", item->name[i]);
    return WEFT_OK;
}

/* Waitpoints, timeout and condition of an item that holds its lease. */
static enum weft_rc prepare(struct weft_tx *tx, const struct suspending *call, struct item *item,
                            const struct weft_rows *rows, struct weft_err *err)
{
    const struct weft_suspend *given = item->given;
    size_t count = given->waitpoint_count;
    item->waitpoint = weft_new_array(call->lease.arena, struct weft_waitpoint, count + 1);
    item->name = weft_new_array(tx->arena, const char *, count + 1);
    item->fresh = weft_new_array(tx->arena, bool, count + 1);
    item->made = weft_new_array(tx->arena, int32_t, count + 1);
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++)
        rc = take_waitpoint(tx, call, item, rows, i, err);
    if (rc)
        return rc;
    item->timeout_us =
        given->timeout_ms ? tx->now_us + given->timeout_ms * WEFT_MS : given->timeout_us;
    if (given->timeout_us && given->timeout_us <= tx->now_us)
        return weft_invalid(err, "timeout_at", "timeout_at is in the past");
    const struct weft_condition_scope scope = {item->name, count, item->timeout_us != 0};
    struct weft_json value = {.kind = WEFT_JSON_NULL};
    if (given->condition)
        rc = weft_json_check(given->condition, strlen(given->condition), &value, err);
    return rc ? rc : weft_condition_read(&value, &scope, tx->arena, &item->condition, err);
}

/* Judges the early signals; `heads` has the rows of all items. */
static void judge(struct weft_tx *tx, struct item *item, const struct weft_rows *heads)
{
    struct weft_condition_judge judge = weft_condition_judge(&item->condition, tx->arena);
    for (size_t i = 0; i < heads->count; i++) {
        const struct weft_signal_heads_out *row = &weft_out_signal_heads(heads)[i];
        for (size_t w = 0; w < item->given->waitpoint_count; w++)
            if (weft_id_cmp(&row->waitpoint, &item->waitpoint[w].id) == 0)
                (void)weft_condition_add(
                    &judge, &(struct weft_condition_signal){(uint32_t)w, row->name, row->source});
    }
    item->satisfied = judge.satisfied;
    weft_condition_judge_done(&judge);
}

/* ---- The transaction ------------------------------------------------------------------------- */

/* Reads the pending waitpoints of executions that may have any, and the waitpoints that the leases
 * of the request took at once. Most executions have none before their first suspend. */
static enum weft_rc read_waitpoints(struct weft_tx *tx, const struct item *item, size_t count,
                                    struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_call call;
    struct weft_waitpoints_bound_in *in =
        weft_call_waitpoints_bound(&call, tx->arena, 2 * count + 1);
    size_t rows = 0;
    for (size_t k = 0; k < count; k++) {
        if (!item[k].held || !(item[k].change->before.has & WEFT_HAS_WAITPOINT))
            continue;
        in->row[rows].id = in->row[rows + 1].id = item[k].given->id;
        in->row[rows + 1].bound = -item[k].given->epoch; /* the row before: 0, pending */
        rows += 2;
    }
    call.rows = rows;
    return rows ? weft_tx_run(tx, &call, 1, ret_rows, err) : WEFT_OK;
}

static enum weft_rc read_heads(struct weft_tx *tx, const struct item *item, size_t count,
                               struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_call call;
    size_t room = 1, rows = 0;
    for (size_t i = 0; i < count; i++)
        room += item[i].held ? item[i].given->waitpoint_count : 0;
    struct weft_signal_heads_in *in = weft_call_signal_heads(&call, tx->arena, room);
    for (size_t i = 0; i < count; i++)
        for (size_t w = 0; item[i].held && w < item[i].given->waitpoint_count; w++)
            if (item[i].waitpoint[w].signals > 0) {
                in->row[rows].id = item[i].given->id;
                in->row[rows++].waitpoint = item[i].waitpoint[w].id;
            }
    call.rows = rows;
    return rows ? weft_tx_run(tx, &call, 1, ret_rows, err) : WEFT_OK;
}

enum { ADD, BIND, SUSPEND, RESUMED, OWN_CALLS };

/* What `bound` of the waitpoints of an item becomes. */
static int32_t bound_of(const struct item *item)
{
    return item->satisfied ? -item->given->epoch : item->given->epoch;
}

/* Waitpoints of an item's execution that an earlier request of its lease took at once. */
static size_t end_earlier(const struct item *item, const struct weft_rows *rows,
                          struct weft_waitpoint_bind_item *bind)
{
    size_t count = 0;
    for (size_t i = 0; item->held && item->satisfied && i < rows->count; i++) {
        const struct weft_waitpoint_out *row = weft_out_waitpoint(rows, i);
        bool named = weft_id_cmp(&row->id, &item->given->id) != 0 || row->bound == 0;
        for (size_t w = 0; w < item->given->waitpoint_count && !named; w++)
            named = weft_id_cmp(&row->waitpoint, &item->waitpoint[w].id) == 0;
        if (named)
            continue;
        bind[count].waitpoint = row->waitpoint;
        bind[count++].bound = BOUND_OVER;
    }
    return count;
}

/* The rows beside the living ones. */
static void put_rows(struct weft_tx *tx, const struct item *item, size_t count,
                     const struct weft_rows *rows, struct weft_call call[OWN_CALLS])
{
    size_t room = 1 + rows->count, row[OWN_CALLS] = {0};
    for (size_t i = 0; i < count; i++)
        room += item[i].held ? item[i].given->waitpoint_count : 0;
    struct weft_waitpoint_add_in *add = weft_call_waitpoint_add(&call[ADD], tx->arena, room);
    struct weft_waitpoint_bind_in *bind = weft_call_waitpoint_bind(&call[BIND], tx->arena, room);
    struct weft_suspension_add_in *suspend =
        weft_call_suspension_add(&call[SUSPEND], tx->arena, count + 1);
    struct weft_resumption_put_in *resumed =
        weft_call_resumption_put(&call[RESUMED], tx->arena, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct weft_suspend *given = item[i].given;
        for (size_t w = 0; item[i].held && w < given->waitpoint_count; w++) {
            const struct weft_waitpoint *waitpoint = &item[i].waitpoint[w];
            if (!item[i].fresh[w]) {
                bind->row[row[BIND]].waitpoint = waitpoint->id;
                bind->row[row[BIND]++].bound = bound_of(&item[i]);
            } else if (!item[i].satisfied) {
                add->row[row[ADD]++] = (struct weft_waitpoint_add_item){
                    .waitpoint = waitpoint->id,
                    .id = given->id,
                    .created = tx->now_us,
                    .epoch = given->epoch,
                    .bound = given->epoch,
                    .key = waitpoint->key_id,
                    .replay = item[i].change->before.replays,
                    .name = waitpoint->name,
                    .marked = true,
                };
            }
        }
        row[BIND] += end_earlier(&item[i], rows, &bind->row[row[BIND]]);
        if (item[i].held && item[i].satisfied) {
            resumed->row[row[RESUMED]++] =
                (struct weft_resumption_put_item){.id = given->id,
                                                  .epoch = bound_of(&item[i]),
                                                  .at = tx->now_us,
                                                  .by = WEFT_RESUMED_BY_SIGNALS};
        } else if (item[i].held) {
            const struct weft_condition_scope scope = {item[i].name, given->waitpoint_count,
                                                       item[i].timeout_us != 0};
            suspend->row[row[SUSPEND]++] = (struct weft_suspension_add_item){
                .id = given->id,
                .epoch = given->epoch,
                .since = tx->now_us,
                .due = weft_unless_zero(item[i].timeout_us),
                .lane = item[i].change->before.lane,
                .condition = weft_condition_text(&item[i].condition, &scope, tx->arena),
                .on_timeout = given->on_timeout,
                .delay = given->resume_delay_ms * WEFT_MS,
                .reason = given->reason,
            };
        }
    }
    for (size_t i = 0; i < OWN_CALLS; i++)
        call[i].rows = row[i];
}

/* Writes all items in one round trip: living rows first, whose bits the other rows then find. */
static enum weft_rc write_items(struct weft_tx *tx, struct suspending *call,
                                const struct item *item, const struct weft_rows *rows, bool last,
                                struct weft_err *err)
{
    struct weft_call write[WEFT_CHANGE_CALLS + OWN_CALLS];
    put_rows(tx, item, call->lease.chunk.count, rows, write + WEFT_CHANGE_CALLS);
    return last ? weft_change_last(tx, &call->lease.changes, write, WEFT_LEN(write), err)
                : weft_change_run(tx, &call->lease.changes, write, WEFT_LEN(write), err);
}

/* The signals of items that were satisfied at once. */
static enum weft_rc read_signals(struct weft_tx *tx, const struct suspending *call,
                                 struct item *item, size_t count, struct weft_err *err)
{
    struct weft_call ask;
    struct weft_rows rows = {0};
    struct weft_waited *waited = weft_new_array(tx->arena, struct weft_waited, count + 1);
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (item[i].held && item[i].satisfied)
            waited[found++] =
                (struct weft_waited){.id = item[i].given->id, .epoch = bound_of(&item[i])};
    weft_waited_call(&ask, waited, found, tx->arena);
    enum weft_rc rc = weft_tx_run(tx, &ask, 1, &rows, err);
    if (rc)
        return rc;
    weft_waited_take(waited, found, &rows, call->lease.arena);
    for (size_t i = 0, k = 0; i < count; i++)
        if (item[i].held && item[i].satisfied) {
            item[i].answer->signal = waited[k].signal;
            item[i].answer->signal_count = waited[k].count;
            item[i].answer->more_signals = waited[k++].more;
        }
    return WEFT_OK;
}

/* Signs the tokens of an answer. */
static enum weft_rc sign_answer(struct weft_tx *tx, const struct suspending *call,
                                struct item *item, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t w = 0; w < item->given->waitpoint_count && !rc; w++) {
        struct weft_waitpoint *waitpoint = &item->waitpoint[w];
        struct weft_signal_token token = {.key = waitpoint->key_id,
                                          .waitpoint = waitpoint->id,
                                          .execution = item->given->id,
                                          .epoch = item->made[w]};
        char *text = weft_arena_alloc(call->lease.arena, 1, WEFT_SIGNAL_TOKEN_TEXT);
        rc = weft_keys_sign(tx->engine, &token, text, err);
        waitpoint->token = text;
        waitpoint->key_id = token.key; /* its own may have retired */
        waitpoint->state = WEFT_WAITPOINT_OPEN;
        waitpoint->name = weft_arena_strdup(call->lease.arena, waitpoint->name);
    }
    item->answer->waitpoint = item->waitpoint;
    item->answer->waitpoint_count = item->given->waitpoint_count;
    return rc;
}

/* Decides about an item that holds its lease, and writes its answer. */
static void decide(struct weft_tx *tx, struct item *item, const struct weft_rows *heads)
{
    judge(tx, item, heads);
    *item->answer =
        (struct weft_suspend_result){.state = WEFT_STATE_RUNNING, .satisfied = item->satisfied};
    if (item->satisfied)
        return;
    const struct weft_event event = {.kind = WEFT_EVENT_SUSPEND, .due_us = item->timeout_us};
    bool legal = weft_change_step(item->change, &event);
    assert(legal); /* the row is running */
    (void)legal;
    item->change->reason = item->given->reason;
    item->answer->state = WEFT_STATE_SUSPENDED;
}

/* Finds the items of the chunk whose leases are held. */
static struct item *hold_items(struct weft_tx *tx, struct suspending *call)
{
    struct weft_lease_call *lease = &call->lease;
    size_t count = lease->chunk.count;
    struct item *item = weft_new_array(tx->arena, struct item, count + 1);
    lease->found = weft_new_array(tx->arena, bool, count + 1);
    for (size_t k = 0; k < count; k++) {
        item[k].given = weft_lease_item(lease, k);
        item[k].answer = &call->answer[lease->chunk.item[k]];
        item[k].change = weft_change_find(&lease->changes, &item[k].given->id);
        const struct weft_live *live = item[k].change ? &item[k].change->before : NULL;
        item[k].held =
            live && live->state == WEFT_STATE_RUNNING && live->epoch == item[k].given->epoch;
        lease->found[k] = item[k].held;
        call->held[lease->chunk.item[k]] = item[k].held;
    }
    return item;
}

static enum weft_rc suspend_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct suspending *call = context;
    struct weft_lease_call *lease = &call->lease;
    size_t count = lease->chunk.count;
    struct weft_rows rows = {0}, heads = {0};
    size_t ids;
    const struct weft_id *id = weft_chunk_ids(&lease->chunk, &lease->ids, tx->arena, &ids);
    enum weft_rc rc = weft_change_lock(tx, id, ids, &lease->changes, err);
    if (rc)
        return rc;
    struct item *item = hold_items(tx, call);
    rc = read_waitpoints(tx, item, count, &rows, err);
    for (size_t k = 0; k < count && !rc; k++) {
        struct weft_err story = {0};
        if (item[k].held && prepare(tx, call, &item[k], &rows, &story))
            refuse(&item[k], lease->arena, &story);
    }
    if (!rc)
        rc = read_heads(tx, item, count, &heads, err);
    for (size_t k = 0; k < count && !rc; k++)
        if (item[k].held)
            decide(tx, &item[k], &heads);
    bool satisfied = false;
    for (size_t k = 0; k < count && !rc; k++) {
        satisfied |= item[k].held && item[k].satisfied;
        if (item[k].held && !item[k].satisfied)
            rc = sign_answer(tx, call, &item[k], err);
    }
    if (!rc)
        rc = write_items(tx, call, item, &rows, !satisfied, err);
    return rc || !satisfied ? rc : read_signals(tx, call, item, count, err);
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* Whether a row is the waitpoint that an item of the request speaks of. */
static bool is_meant(const struct weft_waitpoint_out *row, const struct weft_suspend *given,
                     const struct weft_suspend_at *at)
{
    return weft_id_cmp(&row->id, &given->id) == 0 && row->bound == given->epoch &&
           (at->name ? strcmp(at->name, row->name) == 0
                     : weft_id_cmp(&at->id, &row->waitpoint) == 0);
}

/* The waitpoints that an item got when it suspended, in the order of the request. */
static enum weft_rc answer_repeat(struct weft_engine *engine, const struct weft_suspend *given,
                                  const struct weft_rows *rows, struct weft_arena *arena,
                                  struct weft_suspend_result *answer, struct weft_err *err)
{
    struct weft_waitpoint *waitpoint =
        weft_new_array(arena, struct weft_waitpoint, given->waitpoint_count + 1);
    enum weft_rc rc = WEFT_OK;
    for (size_t w = 0; w < given->waitpoint_count; w++)
        for (size_t i = 0; i < rows->count && !rc; i++)
            if (is_meant(weft_out_waitpoint(rows, i), given, &given->waitpoint[w])) {
                struct weft_waitpoint *found = &waitpoint[answer->waitpoint_count++];
                rc = weft_waitpoint_sign(engine, weft_out_waitpoint(rows, i), arena, found, err);
                found->state = WEFT_WAITPOINT_OPEN; /* as the first answer said */
                break;
            }
    answer->waitpoint = waitpoint;
    return rc;
}

/* Answers the items for which again[i] is set. */
static enum weft_rc answer_repeats(struct weft_engine *engine, const struct weft_suspend *item,
                                   size_t count, const bool *again, struct weft_arena *arena,
                                   struct weft_suspend_result *answer, struct weft_err *err)
{
    struct weft_arena *scratch = weft_arena_new();
    struct weft_call ask;
    struct weft_rows rows = {0};
    struct weft_waitpoints_bound_in *in = weft_call_waitpoints_bound(&ask, scratch, count + 1);
    size_t asked = 0;
    for (size_t i = 0; i < count; i++) {
        in->row[asked].id = item[i].id;
        in->row[asked].bound = item[i].epoch;
        asked += again[i];
    }
    ask.rows = asked;
    enum weft_rc rc =
        asked ? weft_tx_once(engine, WEFT_TX_READ, &ask, scratch, &rows, err) : WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++)
        if (again[i])
            rc = answer_repeat(engine, &item[i], &rows, arena, &answer[i], err);
    const struct weft_err *story = rc ? weft_err_dup(arena, err) : NULL;
    for (size_t i = 0; i < count && rc;
         i++) /* what was suspended stays so: the others have answers */
        if (again[i])
            answer[i] = (struct weft_suspend_result){WEFT_FAILED(story)};
    weft_arena_free(scratch);
    return asked == count ? rc : WEFT_OK;
}

enum weft_rc weft_engine_suspend(struct weft_engine *engine, const struct weft_suspend *item,
                                 size_t count, struct weft_arena *arena,
                                 struct weft_suspend_result *ret_answer, struct weft_err *err)
{
    static const struct weft_lease_op op = {.item_size = sizeof(struct weft_suspend),
                                            .check = check_suspend,
                                            .body = suspend_body,
                                            .asked = WEFT_ENDED_SUSPENDED};
    struct suspending call = {.answer = ret_answer};
    enum weft_rc rc = weft_keys_current(engine, &call.key, err);
    if (rc)
        return rc;
    struct weft_arena *plan = weft_arena_new();
    struct weft_lease_result *lease = weft_new_array(arena, struct weft_lease_result, count + 1);
    bool *again = weft_new_array(plan, bool, count + 1);
    call.held = weft_new_array(plan, bool, count + 1);
    call.lease = weft_lease_call(&op, item, count, arena, lease);
    rc = weft_lease_run_call(engine, &call.lease, err);
    for (size_t i = 0; i < count; i++) {
        if (call.held[i] && !lease[i].rc)
            continue; /* its transaction has answered it */
        again[i] = !lease[i].rc;
        ret_answer[i] = (struct weft_suspend_result){.err = lease[i].err,
                                                     .rc = lease[i].rc,
                                                     .fence = lease[i].fence,
                                                     .state = lease[i].state};
    }
    if (!rc)
        rc = answer_repeats(engine, item, count, again, arena, ret_answer, err);
    weft_arena_free(plan);
    explicit_bzero(&call.key, sizeof(call.key));
    return rc;
}
