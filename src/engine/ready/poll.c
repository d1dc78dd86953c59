/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The slow poll: the truth behind all notices. Everything a replica must know of what others did
 * comes in one statement, and the list of claimable queues and the lane settings follow it. A store
 * with very many claimable queues tells a part of them each time; then a second statement looks at
 * the lanes that claims ask for.
 *
 * The first ready row of each queue, and the first due ones, are found at the front of indexes. An
 * open snapshot (see floor.c) puts the rows that went since before them, and the poll takes as long
 * as it takes to walk over those. After a slow poll the next ones leave these out for ten times as
 * long, 10 s at most. Until then claims go by notices and by what is known, and passes look for
 * themselves.
 */

#include "engine/ready/poll.h"

#include "base/arena.h"
#include "base/clock.h"
#include "core/pace.h"
#include "engine/engine_state.h"
#include "engine/job/claim_choose.h"
#include "engine/scan/scan.h"
#include "engine/tx/schema_version.h"

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

/* When what stands in a column is due: so long after it. */
static weft_usec due_after(struct weft_opt_i64 moment, weft_usec us)
{
    return moment.set ? moment.value + us : WEFT_NEVER;
}

/* What flows left for their scanners. */
static void read_flows(const struct weft_poll_out *row, weft_usec *due_us)
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
    }
}

/* Sorts the rows into the answer and the list. */
static void read_rows(const struct weft_rows *rows, struct weft_arena *arena,
                      struct weft_poll *poll, struct weft_ready_list *list)
{
    struct weft_lane_setting *lane =
        weft_new_array(arena, struct weft_lane_setting, rows->count + 1);
    poll->queue = weft_new_array(arena, struct weft_woken, rows->count + 1);
    poll->worker = weft_new_array(arena, int32_t, rows->count + 1);
    list->queue = weft_new_array(arena, int32_t, rows->count + 1);
    list->lane = lane;
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_poll_out *row = &weft_out_poll(rows)[i];
        int64_t what = row->what, a = row->a.value;
        if (what == WEFT_POLL_QUEUE) {
            list->queue[list->count++] = (int32_t)a;
            poll->queue[poll->count++] = (struct weft_woken){.queue = (int32_t)a, .count = 1};
        } else if (what == WEFT_POLL_DUE) { /* comes before those of flows */
            weft_pass_due((const struct weft_opt_i64[]){row->a, row->b, row->c, row->d},
                          poll->due_us);
        } else if (what == WEFT_POLL_HINTS || what == WEFT_POLL_FLOWS) {
            read_flows(row, poll->due_us);
        } else if (what == WEFT_POLL_UNTOLD) {
            poll->worker[poll->workers++] = (int32_t)a;
        } else if (what == WEFT_POLL_STATE) {
            poll->inbox = a != 0;
            poll->tokens = mix_tokens(row);
        } else if (what == WEFT_POLL_LANE) {
            lane[list->lane_count++] = (struct weft_lane_setting){
                .lane = (int32_t)a,
                .ns = (int32_t)row->b.value,
                .paused = row->c.value,
                .max_running = (int32_t)row->d.value,
                .weights = row->text,
            };
        }
    }
}

/* Whether this poll looks at everything; without it the row of due times is missing. */
static bool begin_poll(struct weft_engine *engine, struct weft_poll *poll)
{
    bool whole = weft_boot_us() >= engine->poll_whole_us;
    for (size_t i = 0; i < WEFT_SCANNER_COUNT && !whole; i++)
        poll->due_us[i] = WEFT_UNTOLD;
    return whole;
}

static void end_whole_poll(struct weft_engine *engine, weft_usec began_us)
{
    weft_usec now_us = weft_boot_us();
    engine->poll_whole_us = now_us + weft_pace_rest(now_us - began_us);
}

static void see_schema(struct weft_engine *engine, const struct weft_rows *rows)
{
    const struct weft_poll_out *row = weft_out_poll(rows);
    for (size_t i = 0; i < rows->count; i++)
        if (row[i].what == WEFT_POLL_SCHEMA)
            weft_version_seen(engine, row[i].a.value, row[i].b.value);
}

/* Which interned rows are retired, so that their ids are not written any more: see unused.h. */
static void see_retired(struct weft_engine *engine, const struct weft_rows *rows,
                        weft_usec began_us)
{
    const struct weft_poll_out *row = weft_out_poll(rows);
    for (size_t i = 0; i < rows->count; i++)
        if (row[i].what == WEFT_POLL_RETIRED)
            weft_names_retired(&engine->names, (enum weft_interned)row[i].a.value,
                               (int32_t)row[i].b.value);
    weft_names_retired_seen(&engine->names, began_us);
}

/* A paused lane has nothing to give: no waiter need be woken for it. */
static void leave_out_paused(struct weft_engine *engine, struct weft_poll *poll)
{
    struct weft_ready *ready = &engine->ready;
    size_t kept = 0;
    pthread_mutex_lock(&ready->lock);
    for (size_t i = 0; i < poll->count; i++) {
        const struct weft_queue *queue = weft_find_queue(engine, poll->queue[i].queue);
        const struct weft_lane_setting *setting =
            queue ? weft_claim_setting(ready, queue->lane) : NULL;
        if (queue && !(setting && setting->paused))
            poll->queue[kept++] = poll->queue[i];
    }
    poll->count = kept;
    pthread_mutex_unlock(&ready->lock);
}

/* Adds the ready queues of lanes that claims ask for, when the poll cannot see all there are. */
static enum weft_rc add_asked(struct weft_engine *engine, struct weft_arena *arena,
                              struct weft_poll *poll, struct weft_err *err)
{
    struct weft_walks walks;
    struct weft_queue_ids found = {0};
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
    bool whole = begin_poll(engine, &poll);
    struct weft_ready_look look = weft_ready_begin(engine);
    *weft_call_poll(&call, arena) =
        (struct weft_poll_in){.whole = whole, .after = look.after, .most = WEFT_HOP_QUEUES};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_BARE, &call, arena, &rows, err);
    if (rc)
        return rc;
    see_schema(engine, &rows);
    see_retired(engine, &rows, began_us);
    read_rows(&rows, arena, &poll, &list);
    if (whole) {
        end_whole_poll(engine, began_us);
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
