/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Control by id: cancel, reprioritize, revoke, set deadline, resume, replay. By filter:
 * control_filter.c.
 *
 * The first four lock the living rows in the order of their ids. Replay locks outcomes in the same
 * order; an id is in one of the two, so the two kinds of call never hold each other's rows. Before
 * them a replay locks the flows that its executions are members of (flow_replay.c).
 */

#include "engine/job/control.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "core/spec.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade_read.h"
#include "engine/flow/flow_hold.h"
#include "engine/flow/flow_replay.h"
#include "engine/job/change.h"
#include "engine/job/execution_read.h"
#include "engine/tx/batch.h"

/* A call, and the part of it that runs in one transaction. */
struct steer_call {
    const struct weft_steering *steering;
    struct weft_id_column ids;
    const int32_t *ns; /* of each item; 0: that namespace does not exist */
    struct weft_steer_result *answer;
    struct weft_chunk chunk;
    struct weft_changes changes;
    struct replayed {
        int32_t queue;
        weft_usec failed_us; /* when it had failed; 0: it had not */
        const char *gate;    /* NULL: it has none */
        bool blocked;        /* it waits for its upstreams */
    } * replayed;
    size_t replays;
    struct weft_members members;
    unsigned round; /* of hops that were due before a replay */
};

/*
 * Which items about one execution share a transaction. A cancel or a revoke changes a row once, and
 * its repeats read the same execution as a later transaction would. An answer to a new priority or
 * deadline shows the execution as that item left it, so the next one waits for a later transaction.
 * A replay takes the row out of `outcome`: its repeat is about a living row.
 */
static const struct {
    enum weft_event_kind event;
    enum weft_repeats repeats;
    const char *refusal; /* of an execution in another state */
} rule[] = {
    [WEFT_STEER_CANCEL] = {WEFT_EVENT_CANCEL, WEFT_REPEATS_TOGETHER,
                           "only a living execution can be cancelled"},
    [WEFT_STEER_REPLAY] = {WEFT_EVENT_REPLAY, WEFT_REPEATS_LATER,
                           "only an execution that is over can be replayed"},
    [WEFT_STEER_REPRIORITIZE] = {WEFT_EVENT_PRIORITIZE, WEFT_REPEATS_LATER,
                                 "only a living execution has a priority to change"},
    [WEFT_STEER_REVOKE] = {WEFT_EVENT_REVOKE, WEFT_REPEATS_TOGETHER,
                           "only a running execution has a lease to revoke"},
    [WEFT_STEER_SET_DEADLINE] = {WEFT_EVENT_SET_DEADLINE, WEFT_REPEATS_LATER,
                                 "only a living execution can get a deadline"},
    [WEFT_STEER_RESUME] = {WEFT_EVENT_RESUME, WEFT_REPEATS_TOGETHER,
                           "only a suspended execution can be resumed"},
};

static struct weft_event event_for(const struct weft_steering *steering,
                                   const struct weft_steer *item)
{
    bool replay = steering->kind == WEFT_STEER_REPLAY;
    return (struct weft_event){.kind = rule[steering->kind].event,
                               .priority = item->priority,
                               .deadline_us = replay ? steering->deadline_us : item->deadline_us};
}

/* ---- Items that are not living --------------------------------------------------------------- */

/* Loads the queues of rows (column `queue`), inside the transaction, to know their namespaces. */
static enum weft_rc know_queues(struct weft_tx *tx, const struct weft_rows *rows,
                                struct weft_err *err)
{
    bool ended = rows->stmt == WEFT_STMT_OUTCOME_LOCK;
    struct weft_id_list list = {.tx = tx};
    list.id = weft_new_array(tx->arena, int32_t, rows->count + 1);
    for (size_t i = 0; i < rows->count; i++)
        list.id[list.count++] =
            ended ? weft_out_outcome_lock(rows)[i].queue : weft_out_execution(rows, i)->queue;
    return weft_load_queues(tx->engine, &list, err);
}

static bool in_namespace(struct weft_engine *engine, int32_t queue, int32_t ns)
{
    return weft_find_queue(engine, queue)->ns == ns;
}

/* The place of the first item in the chunk about an execution, and *ret_end behind the last. */
static size_t items_of(const struct steer_call *call, const struct weft_id *id, size_t *ret_end)
{
    size_t k = weft_chunk_find(&call->chunk, &call->ids, id);
    *ret_end = weft_chunk_end(&call->chunk, &call->ids, k);
    return k;
}

/* The answer to an item whose execution has a state in which it cannot be done, or is done. */
static struct weft_steer_result refuse_state(const struct steer_call *call, enum weft_state state)
{
    enum weft_steer_kind kind = call->steering->kind;
    if (kind == WEFT_STEER_CANCEL && state == WEFT_STATE_CANCELLED)
        return (struct weft_steer_result){.state = state};
    const struct weft_err *story =
        weft_err_new(call->steering->arena, WEFT_NOT_LIVE, "id", "the execution is %s: %s",
                     weft_state_name(state), rule[kind].refusal);
    return (struct weft_steer_result){.err = story, .rc = story->rc, .state = state};
}

/* Answers the items for which done[k] is false from the state of the execution now. */
static enum weft_rc answer_others(struct weft_tx *tx, struct steer_call *call, const bool *done,
                                  struct weft_err *err)
{
    struct weft_call ask;
    struct weft_rows rows = {0};
    struct weft_describe_in *in = weft_call_describe(&ask, tx->arena, call->chunk.count);
    size_t asked = 0;
    for (size_t k = 0; k < call->chunk.count; k++) {
        if (done[k])
            continue;
        size_t i = call->chunk.item[k];
        const struct weft_err *story =
            weft_err_new(call->steering->arena, WEFT_NOT_FOUND, "id", "there is no such execution");
        call->answer[i] = (struct weft_steer_result){WEFT_FAILED(story)};
        if (asked == 0 || weft_id_cmp(&in->row[asked - 1].id, &call->steering->item[i].id) != 0)
            in->row[asked++].id = call->steering->item[i].id;
    }
    if (asked == 0)
        return WEFT_OK;
    ask.rows = asked;
    enum weft_rc rc = weft_tx_run(tx, &ask, 1, &rows, err);
    if (!rc)
        rc = know_queues(tx, &rows, err);
    for (size_t row = 0; row < rows.count && !rc; row++) {
        const struct weft_execution_out *out = weft_out_execution(&rows, row);
        size_t end;
        for (size_t k = items_of(call, &out->id.value, &end); k < end; k++) {
            size_t i = call->chunk.item[k];
            if (!done[k] && in_namespace(tx->engine, out->queue, call->ns[i]))
                call->answer[i] = refuse_state(call, out->state);
        }
    }
    return rc;
}

/*
 * Reads the executions of the items without an error, with the writes of this transaction and under
 * its locks: after the commit another worker may claim an execution that was revoked or replayed,
 * and the answer would show that lease.
 */
static enum weft_rc read_seen(struct weft_tx *tx, const struct steer_call *call,
                              struct weft_err *err)
{
    struct weft_rows rows = {0};
    struct weft_id *id = weft_new_array(tx->arena, struct weft_id, call->chunk.count + 1);
    size_t count = 0;
    for (size_t k = 0; k < call->chunk.count && call->steering->seen; k++) {
        size_t i = call->chunk.item[k];
        call->steering->seen[i] = (struct weft_execution){.state = WEFT_STATE_NONE, .percent = -1};
        if (!call->answer[i].rc &&
            (count == 0 || weft_id_cmp(&id[count - 1], &call->steering->item[i].id) != 0))
            id[count++] = call->steering->item[i].id;
    }
    if (count == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_describe_in(tx, id, count, call->steering->arena, &rows, err);
    for (size_t row = 0; row < rows.count && !rc; row++) {
        size_t end, k = items_of(call, &weft_out_execution(&rows, row)->id.value, &end);
        for (; k < end; k++)
            if (!call->answer[call->chunk.item[k]].rc)
                call->steering->seen[call->chunk.item[k]] =
                    weft_read_execution(tx->engine, &rows, row, call->steering->arena);
    }
    return rc;
}

/* ---- Living rows ----------------------------------------------------------------------------- */

static bool same_row(const struct weft_live *a, const struct weft_live *b)
{
    return a->state == b->state && a->priority == b->priority && a->deadline_us == b->deadline_us;
}

static enum weft_rc steer_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct steer_call *call = context;
    size_t count;
    const struct weft_id *id = weft_chunk_ids(&call->chunk, &call->ids, tx->arena, &count);
    enum weft_rc rc = weft_change_lock(tx, id, count, &call->changes, err);
    struct weft_id_list queues = {.id = weft_new_array(tx->arena, int32_t, count + 1), .tx = tx};
    for (size_t i = 0; !rc && i < call->changes.count; i++)
        queues.id[queues.count++] = call->changes.change[i].before.queue;
    if (!rc)
        rc = weft_load_queues(tx->engine, &queues, err);
    if (rc)
        return rc;
    bool *done = weft_new_array(tx->arena, bool, call->chunk.count + 1);
    for (size_t k = 0; k < call->chunk.count; k++) {
        size_t i = call->chunk.item[k];
        struct weft_change *change = weft_change_find(&call->changes, &call->steering->item[i].id);
        if (!change || !in_namespace(tx->engine, change->before.queue, call->ns[i]))
            continue;
        struct weft_event event = event_for(call->steering, &call->steering->item[i]);
        if (!weft_change_step(change, &event))
            continue;
        change->by = "operator";
        change->resumed = WEFT_RESUMED_BY_OPERATOR;
        change->reason = call->steering->item[i].reason;
        change->apply = !same_row(&change->before, &change->step.after);
        call->answer[i] =
            (struct weft_steer_result){.state = change->step.after.state, .changed = change->apply};
        done[k] = true;
    }
    rc = weft_change_write(tx, &call->changes, err);
    if (!rc)
        rc = answer_others(tx, call, done, err);
    return rc ? rc : read_seen(tx, call, err);
}

/* ---- Replay ---------------------------------------------------------------------------------- */

/* Locks flows, then outcomes; no outcomes where hops are due in one of the flows. */
static enum weft_rc lock_outcomes(struct weft_tx *tx, struct steer_call *call,
                                  struct weft_rows *ret_rows, struct weft_err *err)
{
    size_t count;
    const struct weft_id *id = weft_chunk_ids(&call->chunk, &call->ids, tx->arena, &count);
    struct weft_call lock;
    struct weft_outcome_lock_in *in = weft_call_outcome_lock(&lock, tx->arena, count);
    for (size_t k = 0; k < count; k++)
        in->row[k].id = id[k];
    enum weft_rc rc = weft_members_hold(tx, id, count, call->round, &call->members, err);
    if (rc || call->members.unsettled)
        return rc;
    rc = weft_tx_run(tx, &lock, 1, ret_rows, err);
    return rc ? rc : know_queues(tx, ret_rows, err);
}

/* Marks the members that are replayed if their joins allow it. */
static void want_members(struct weft_tx *tx, struct steer_call *call, const struct weft_rows *rows)
{
    for (size_t row = 0; row < rows->count; row++) {
        struct weft_live before = weft_outcome_read(rows, row);
        struct weft_member *member = weft_members_find(&call->members, &before.id);
        size_t i = call->chunk.item[weft_chunk_find(&call->chunk, &call->ids, &before.id)];
        if (!member || !member->seen || before.replays == WEFT_REPLAYS_MAX ||
            !in_namespace(tx->engine, before.queue, call->ns[i]))
            continue;
        member->wanted = true;
        member->force = call->steering->item[i].force;
    }
}

/*
 * Refuses a replay: the count of replays, a small number, is at its end; the flow of a member was
 * deleted; or the join of a member cannot be satisfied by its upstreams as they are.
 */
static bool is_refused_replay(const struct weft_live *before, const struct weft_member *member,
                              struct weft_arena *arena, struct weft_steer_result *answer)
{
    struct weft_err *story = NULL;
    if (before->replays >= WEFT_REPLAYS_MAX) {
        story =
            weft_err_new(arena, WEFT_NOT_LIVE, "id",
                         "the execution was replayed %d times: submit it anew", before->replays);
    } else if (member && !member->seen) {
        story = weft_err_new(arena, WEFT_NOT_LIVE, "id", "the flow of the execution was deleted");
    } else if (member && !member->replayed) {
        story = weft_err_new(
            arena, WEFT_CONFLICT, "id",
            "the join of the execution cannot be satisfied: its upstream '%s' is %s",
            member->upstream ? member->upstream : "", weft_state_name(member->upstream_state));
        story->hint = "replay that upstream first or in the same call, or set force";
    }
    if (story)
        *answer = (struct weft_steer_result){WEFT_FAILED(story), .state = before->state};
    return story != NULL;
}

static enum weft_rc replay_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct steer_call *call = context;
    struct weft_rows rows = {0};
    enum weft_rc rc = lock_outcomes(tx, call, &rows, err);
    if (rc || call->members.unsettled)
        return rc;
    want_members(tx, call, &rows);
    rc = weft_members_judge(tx, &call->members, err);
    if (rc)
        return rc;
    bool *done = weft_new_array(tx->arena, bool, call->chunk.count + 1);
    struct weft_call back;
    struct weft_outcome_back_in *in = weft_call_outcome_back(&back, tx->arena, rows.count);
    call->replayed = weft_new_array(tx->arena, struct replayed, rows.count + 1);
    call->replays = 0;
    for (size_t row = 0; row < rows.count; row++) {
        struct weft_live before = weft_outcome_read(&rows, row);
        size_t k = weft_chunk_find(&call->chunk, &call->ids, &before.id);
        size_t i = call->chunk.item[k];
        if (!in_namespace(tx->engine, before.queue, call->ns[i]))
            continue;
        const struct weft_member *member = weft_members_find(&call->members, &before.id);
        struct weft_event event = event_for(call->steering, &call->steering->item[i]);
        const struct weft_outcome_lock_out *out = &weft_out_outcome_lock(&rows)[row];
        event.how = out->ended;
        if (member && member->waits)
            event.kind = WEFT_EVENT_REPLAY_BLOCKED;
        done[k] = is_refused_replay(&before, member, call->steering->arena, &call->answer[i]);
        struct weft_step step;
        if (done[k] || !weft_state_step(&before, &event, &step))
            continue;
        bool failed = before.state == WEFT_STATE_FAILED || before.state == WEFT_STATE_EXPIRED;
        weft_outcome_back(&in->row[call->replays], &step.after);
        call->replayed[call->replays++] = (struct replayed){.queue = before.queue,
                                                            .failed_us = failed ? out->finished : 0,
                                                            .gate = before.gate,
                                                            .blocked = member && member->waits};
        call->answer[i] = (struct weft_steer_result){.state = step.after.state, .changed = true};
        done[k] = true;
    }
    back.rows = call->replays;
    rc = call->replays ? weft_tx_run(tx, &back, 1, NULL, err) : WEFT_OK;
    if (!rc)
        rc = weft_members_replayed(tx, &call->members, err);
    if (!rc)
        rc = answer_others(tx, call, done, err);
    return rc ? rc : read_seen(tx, call, err);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static enum weft_rc check_item(enum weft_steer_kind kind, const struct weft_steer *item,
                               weft_usec now_us, struct weft_err *err)
{
    if (kind == WEFT_STEER_REPRIORITIZE &&
        (item->priority < INT16_MIN || item->priority > INT16_MAX))
        return weft_invalid(err, "priority", "priority is %d, allowed are -32768 to 32767",
                            item->priority);
    if (kind == WEFT_STEER_SET_DEADLINE && item->deadline_us != 0 &&
        (item->deadline_us <= now_us || item->deadline_us > WEFT_MOMENT_MAX_US))
        return weft_invalid(err, "deadline_at",
                            "deadline_at must be in the future and before the year 10000");
    return weft_text_check(item->reason, WEFT_REASON_MAX, "reason", err);
}

/* The ids of the items' namespaces, 0 where there is none of that name. */
static enum weft_rc find_namespaces(struct weft_engine *engine,
                                    const struct weft_steering *steering, struct weft_arena *arena,
                                    int32_t *ret_ns, struct weft_err *err)
{
    struct weft_name_want *want = weft_new_array(arena, struct weft_name_want, steering->count + 1);
    for (size_t i = 0; i < steering->count; i++) {
        const char *ns = steering->item[i].ns ? steering->item[i].ns : steering->ns;
        enum weft_rc rc = weft_name_check(ns, "namespace", err);
        if (rc)
            return rc;
        want[i] = (struct weft_name_want){.sort = WEFT_NAME_NAMESPACE, .text = ns};
    }
    enum weft_rc rc = weft_intern_names(engine, false, want, steering->count, err);
    for (size_t i = 0; i < steering->count && !rc; i++)
        ret_ns[i] = want[i].id;
    return rc;
}

/* Runs the hops that are due in the flows of the call. */
static enum weft_rc settle_members(struct weft_engine *engine, struct steer_call *call,
                                   struct weft_arena *arena, struct weft_err *err)
{
    struct weft_id *flow = weft_new_array(arena, struct weft_id, call->members.count);
    for (size_t i = 0; i < call->members.count; i++)
        flow[i] = call->members.item[i].flow;
    size_t count = weft_ids_sort(flow, call->members.count);
    return weft_flow_settle(engine, flow, count, call->round++, err);
}

/* The effects of a transaction that was committed. */
static void tell(struct weft_tx *tx, const struct steer_call *call)
{
    struct weft_commit_effects news = weft_news_new(tx->arena, tx->now_us);
    weft_change_news(&news, &call->changes);
    for (size_t i = 0; i < call->replays; i++) {
        const struct replayed *replayed = &call->replayed[i];
        if (replayed->gate)
            weft_news_gate(&news, replayed->gate);
        else
            weft_news_of(&news, replayed->queue)->ready += !replayed->blocked;
        if (replayed->failed_us)
            weft_tally_replayed(tx->engine, replayed->queue, replayed->failed_us);
    }
    if (call->replays > 0)
        weft_news_due(&news, call->steering->deadline_us);
    for (size_t i = 0; i < call->members.count; i++)
        if (call->members.item[i].replayed)
            weft_news_flow(&news, &call->members.item[i].flow);
    weft_news_tell(tx->engine, &news);
}

static enum weft_rc run_chunk(struct weft_engine *engine, struct steer_call *call,
                              struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = WEFT_OK;
    do {
        if (call->members.unsettled)
            rc = settle_members(engine, call, tx.arena, err);
        if (!rc)
            rc = weft_tx_do(&tx, WEFT_TX_WRITE,
                            call->steering->kind == WEFT_STEER_REPLAY ? replay_body : steer_body,
                            call, err);
    } while (!rc && call->members.unsettled);
    if (!rc)
        tell(&tx, call);
    const struct weft_err *story = rc ? weft_err_dup(call->steering->arena, err) : NULL;
    for (size_t k = 0; k < call->chunk.count && rc; k++)
        call->answer[call->chunk.item[k]] = (struct weft_steer_result){WEFT_FAILED(story)};
    weft_arena_free(tx.arena);
    return rc;
}

/* The items that are not skipped. *ret_again: a replay that was refused may succeed now. */
static enum weft_rc run_round(struct weft_engine *engine, const struct steer_call *all,
                              const bool *skip, struct weft_arena *arena, bool *ret_again,
                              struct weft_err *err)
{
    struct weft_chunks chunks =
        weft_chunks_by_id(&all->ids, skip, rule[all->steering->kind].repeats, arena);
    enum weft_rc rc = WEFT_OK;
    bool changed = false;
    for (size_t c = 0; c < chunks.count; c++) {
        struct steer_call call = *all;
        call.chunk = chunks.chunk[c];
        enum weft_rc failed = run_chunk(engine, &call, err);
        if (failed && chunks.count == 1)
            rc = failed;
        for (size_t k = 0; k < call.chunk.count; k++)
            changed |= call.answer[call.chunk.item[k]].changed;
    }
    /* A member may have been refused for an upstream that a later transaction replayed. */
    *ret_again = chunks.count > 1 && changed;
    return rc;
}

enum weft_rc weft_engine_steer(struct weft_engine *engine, const struct weft_steering *steering,
                               struct weft_steer_result *ret_answer, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    size_t count = steering->count;
    int32_t *ns = weft_new_array(arena, int32_t, count + 1);
    bool *skip = weft_new_array(arena, bool, count + 1);
    weft_usec now_us = weft_clock_now(engine->clock);
    enum weft_rc rc = count ? find_namespaces(engine, steering, arena, ns, err) : WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        struct weft_err story = {0};
        skip[i] = check_item(steering->kind, &steering->item[i], now_us, &story) != WEFT_OK;
        if (!skip[i])
            continue;
        const struct weft_err *kept = weft_err_dup(steering->arena, &story);
        ret_answer[i] = (struct weft_steer_result){WEFT_FAILED(kept)};
    }
    struct steer_call all = {.steering = steering,
                             .ids = {.first = count ? &steering->item->id : NULL,
                                     .stride = sizeof(*steering->item),
                                     .count = count},
                             .ns = ns,
                             .answer = ret_answer};
    bool again = false;
    if (!rc && count)
        rc = run_round(engine, &all, skip, arena, &again, err);
    while (!rc && again) {
        for (size_t i = 0; i < count; i++)
            skip[i] = ret_answer[i].rc != WEFT_CONFLICT;
        rc = run_round(engine, &all, skip, arena, &again, err);
    }
    weft_arena_free(arena);
    return rc;
}
