/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The poll: the truth behind all notices. One statement reads all that a replica must know of the
 * work of other replicas; the ready list and the lane settings are set from it. If a store has very
 * many ready queues, each poll reads a part of them, and a second statement looks at the lanes that
 * claims ask for.
 *
 * The first ready row of each queue, and the first due rows, are found at the front of indexes.
 * With an open snapshot (see floor.c) the entries of rows claimed since lie before them, and the
 * poll takes as long as it takes to walk over these entries. After a slow poll the next polls do
 * not look for ready and due rows for ten times as long, 10 s at most. Until then claims use
 * notices and the known list, and passes look for their rows themselves.
 */

#include "engine/ready/poll.h"

#include "base/arena.h"
#include "base/clock.h"
#include "core/pace.h"
#include "engine/engine_state.h"
#include "engine/job/claim.h"
#include "engine/scan/scan.h"
#include "engine/tx/pool.h"

#include <string.h>

/*
 * Ids only grow, so these three together name a set of secrets: a token that is added, rotated or
 * revoked changes the number, and a note of when it was last used does not.
 */
static int64_t mix_tokens(const struct weft_poll_out *row)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a, over numbers instead of bytes */
    const int64_t number[] = {row->b.value, row->c.value, row->d.value};
    for (size_t i = 0; i < WEFT_LEN(number); i++)
        hash = (hash ^ (uint64_t)number[i]) * 1099511628211u;
    return (int64_t)(hash >> 1);
}

/* So long after the moment in a column; WEFT_NEVER if it is null. */
static weft_usec due_after(struct weft_opt_i64 moment, weft_usec us)
{
    return moment.set ? moment.value + us : WEFT_NEVER;
}

/* When the scanners of flows have work. */
static void read_flows(struct weft_engine *engine, const struct weft_poll_out *row,
                       weft_usec *due_us)
{
    if (row->what == WEFT_POLL_HINTS) {
        weft_usec group_us = due_after(row->b, WEFT_FLOW_LEFT_US);
        weft_usec waits_us = due_after(row->c, WEFT_FLOW_LEFT_US);
        due_us[WEFT_SCANNER_DEPENDENCY] = due_after(row->a, WEFT_FLOW_LEFT_US);
        due_us[WEFT_SCANNER_EDGE_CANCEL_DISPATCHER] = group_us;
        due_us[WEFT_SCANNER_EDGE_CANCEL_RECONCILER] = group_us < waits_us ? group_us : waits_us;
    } else {
        due_us[WEFT_SCANNER_CANCEL_BACKLOG] =
            row->a.value ? 0 : due_after(row->b, WEFT_FLOW_STAGE_US);
        /* Now, and not long ago: a pass in vain, while others held all that was left, is no reason
         * not to look again. */
        due_us[WEFT_SCANNER_PURGE] = row->c.value ? weft_clock_now(engine->clock) : WEFT_NEVER;
    }
}

/* When suspensions and waitpoints have their time, and whether signing keys have changed. */
static void read_waiting(struct weft_engine *engine, const struct weft_poll_out *row,
                         weft_usec *due_us)
{
    due_us[WEFT_SCANNER_SUSPENSION_TIMEOUT] = due_after(row->a, 0);
    due_us[WEFT_SCANNER_WAITPOINT_EXPIRY] = due_after(row->b, 0);
    weft_keys_seen(&engine->keys, row->c.value, row->d.value);
}

/* When a scanner has work: at a moment, and where there is something to walk over, at times. */
static weft_usec walks(const struct weft_poll_out *row, const atomic_int_fast64_t *walk_us)
{
    weft_usec next_us = due_after(row->a, 0);
    weft_usec again_us = row->b.value ? atomic_load(walk_us) : WEFT_NEVER;
    return next_us < again_us ? next_us : again_us;
}

static struct weft_lane_setting read_lane(const struct weft_poll_out *row)
{
    return (struct weft_lane_setting){
        .lane = (int32_t)row->a.value,
        .ns = (int32_t)row->b.value,
        .paused = row->c.value & 1,
        .timed = row->c.value & 2,
        .max_running = (int32_t)row->d.value,
        .weights = row->text,
    };
}

/* Rows about the engine, and rows with due times. */
static void read_state(struct weft_engine *engine, const struct weft_poll_out *row,
                       struct weft_poll *poll)
{
    if (row->what == WEFT_POLL_DUE) /* the row comes before the rows of flows */
        weft_pass_due((const struct weft_opt_i64[]){row->a, row->b, row->c, row->d}, poll->due_us);
    else if (row->what == WEFT_POLL_WAITING)
        read_waiting(engine, row, poll->due_us);
    else if (row->what == WEFT_POLL_GATES)
        poll->due_us[WEFT_SCANNER_UNBLOCK] = walks(row, &engine->gates_walk_us);
    else if (row->what == WEFT_POLL_ENDPOINTS)
        poll->endpoints = row->a.value;
    else if (row->what == WEFT_POLL_ERASURE)
        poll->due_us[WEFT_SCANNER_ERASURE] =
            row->a.value ? weft_clock_now(engine->clock) : WEFT_NEVER;
    else if (row->what == WEFT_POLL_HINTS || row->what == WEFT_POLL_FLOWS)
        read_flows(engine, row, poll->due_us);
    else if (row->what == WEFT_POLL_SCHEMA)
        weft_version_seen(engine, row->a.value, row->b.value);
    else if (row->what == WEFT_POLL_RETIRED)
        weft_names_retired(&engine->names, (enum weft_interned)row->a.value, (int32_t)row->b.value);
}

/*
 * Sorts the rows into the answer and the list. Marks the interned rows that are retired, so that
 * their ids are not written any more: see unused.h.
 */
static void read_rows(struct weft_engine *engine, const struct weft_rows *rows,
                      struct weft_arena *arena, struct weft_poll *poll,
                      struct weft_ready_list *list)
{
    struct weft_lane_setting *lane =
        weft_new_array(arena, struct weft_lane_setting, rows->count + 1);
    poll->queue = weft_new_array(arena, struct weft_woken, rows->count + 1);
    poll->worker = weft_new_array(arena, int32_t, rows->count + 1);
    list->queue = weft_new_array(arena, int32_t, rows->count + 1);
    list->lane = lane;
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_poll_out *row = &weft_out_poll(rows)[i];
        int32_t a = (int32_t)row->a.value;
        if (row->what == WEFT_POLL_QUEUE) {
            list->queue[list->count++] = a;
            poll->queue[poll->count++] = (struct weft_woken){.queue = a, .count = 1};
        } else if (row->what == WEFT_POLL_BUDGETS) {
            poll->due_us[WEFT_SCANNER_BUDGET_RESET] = walks(row, &engine->budgets_walk_us);
            poll->budgets = row->c.value;
        } else if (row->what == WEFT_POLL_UNTOLD) {
            poll->worker[poll->workers++] = a;
        } else if (row->what == WEFT_POLL_STATE) {
            poll->inbox = row->a.value != 0;
            poll->tokens = mix_tokens(row);
        } else if (row->what == WEFT_POLL_LANE) {
            lane[list->lane_count++] = read_lane(row);
        } else {
            read_state(engine, row, poll);
        }
    }
}

/* No claim takes from a paused lane, or from a queue that a budget closes: no waiting claim is
 * woken for it. */
static void leave_out_paused(struct weft_engine *engine, struct weft_poll *poll)
{
    struct weft_ready *ready = &engine->ready;
    size_t kept = 0;
    pthread_mutex_lock(&ready->lock);
    for (size_t i = 0; i < poll->count; i++) {
        const struct weft_queue *queue = weft_find_queue(engine, poll->queue[i].queue);
        const struct weft_lane_setting *setting =
            queue ? weft_claim_setting(ready, queue->lane) : NULL;
        if (queue && !(setting && setting->paused) &&
            !weft_budget_queue_is_closed(engine, queue->id))
            poll->queue[kept++] = poll->queue[i];
    }
    poll->count = kept;
    pthread_mutex_unlock(&ready->lock);
}

/* Adds ready queues of lanes that claims ask for, if the poll cannot read all ready queues. */
static enum weft_rc add_asked(struct weft_engine *engine, struct weft_arena *arena,
                              struct weft_poll *poll, struct weft_err *err)
{
    struct weft_walks walks;
    struct weft_id_list found = {0};
    weft_ready_asked(engine, arena, &walks);
    if (walks.count == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_ready_walk(engine, &walks, arena, &found, err);
    if (rc || found.count == 0)
        return rc;
    struct weft_woken *queue = weft_new_array(arena, struct weft_woken, poll->count + found.count);
    for (size_t i = 0; i < found.count; i++)
        queue[i] = (struct weft_woken){.queue = found.id[i], .count = 1};
    memcpy(queue + found.count, poll->queue, poll->count * sizeof(*queue));
    poll->queue = queue;
    poll->count += found.count;
    return WEFT_OK;
}

enum weft_rc weft_engine_poll(struct weft_engine *engine, struct weft_arena *arena,
                              struct weft_poll *ret_poll, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    struct weft_poll poll = {0};
    struct weft_ready_list list = {0};
    weft_usec began_us = weft_boot_us();
    bool whole = began_us >= engine->poll_whole_us; /* it also looks for ready and due rows */
    for (size_t i = 0; i < WEFT_SCANNER_COUNT && !whole; i++)
        poll.due_us[i] = WEFT_UNTOLD;
    struct weft_ready_look look = weft_ready_begin(engine);
    *weft_call_poll(&call, arena) =
        (struct weft_poll_in){.whole = whole, .after = look.after, .most = WEFT_HOP_QUEUES};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_BARE, &call, arena, &rows, err);
    if (rc)
        return rc;
    look.took_us = weft_boot_us() - began_us;
    read_rows(engine, &rows, arena, &poll, &list);
    weft_names_retired_seen(&engine->names, began_us);
    rc = weft_budget_rules_seen(engine, poll.budgets, err);
    if (!rc)
        rc = weft_endpoints_seen(engine, poll.endpoints, err);
    if (rc)
        return rc;
    if (whole) {
        engine->poll_whole_us = began_us + look.took_us + weft_pace_rest(look.took_us);
        const struct weft_id_list queues = {.id = list.queue, .count = list.count};
        rc = weft_load_queues(engine, &queues, err);
        if (rc)
            return rc;
        weft_ready_end(engine, &look, &list);
        rc = add_asked(engine, arena, &poll, err);
        if (rc)
            return rc;
        leave_out_paused(engine, &poll);
    }
    if (poll.inbox)
        poll.due_us[WEFT_SCANNER_INTAKE] = weft_clock_now(engine->clock);
    *ret_poll = poll;
    return WEFT_OK;
}
