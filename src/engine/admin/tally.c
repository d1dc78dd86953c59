/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How many executions ended, per lane and minute of the store's clock. Every operation counts in
 * memory, a server writes these entries about once a second, and rows are kept for two hours:
 * `counts` shows the last hour. If a process dies, its entries that are not written are lost: these
 * are figures for people, not part of any guarantee.
 *
 * A replay subtracts the failure in the minute in which it was counted. The process that replays is
 * often not the process that counted, so an entry and a row may be below zero until the other
 * process has written; only the sum over the hour is cut at zero, when it is read.
 *
 * Counts say how many executions each lane has in each state, beside these ends: one statement
 * counts for all namespaces, and another one for a handle that asks for its own alone.
 */

#include "engine/admin/tally.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/spec.h"
#include "engine/engine_state.h"

#include <stdlib.h>
#include <string.h>

enum {
    HOUR = 60,        /* minutes */
    KEEP = 120,       /* minutes */
    PURGE_EVERY = 10, /* minutes */
};

static int64_t minute_of(weft_usec moment)
{
    return moment / (60 * WEFT_SECOND);
}

void weft_tally_init(struct weft_tally *tally)
{
    *tally = (struct weft_tally){0};
    pthread_mutex_init(&tally->lock, NULL);
}

void weft_tally_done(struct weft_tally *tally)
{
    free(tally->entry);
    pthread_mutex_destroy(&tally->lock);
}

static bool same_place(const struct weft_tally_entry *a, const struct weft_tally_entry *b)
{
    return a->minute == b->minute && a->lane == b->lane && (a->lane != 0 || a->queue == b->queue);
}

static void forget_old(struct weft_tally *tally, int64_t before)
{
    size_t kept = 0;
    for (size_t i = 0; i < tally->count; i++)
        if (tally->entry[i].minute >= before)
            tally->entry[kept++] = tally->entry[i];
    tally->count = kept;
}

/* Under tally.lock. */
static void add(struct weft_tally *tally, const struct weft_tally_entry *more)
{
    /* From the end: the lane of this end probably had another end a moment ago. */
    size_t at = tally->count;
    while (at > 0 && !same_place(&tally->entry[at - 1], more))
        at--;
    if (at > 0) {
        tally->entry[at - 1].succeeded += more->succeeded;
        tally->entry[at - 1].failed += more->failed;
        return;
    }
    /* A process without a server never writes its entries: they must not pile up. */
    if (tally->count == tally->capacity)
        forget_old(tally, more->minute - KEEP);
    if (tally->count == tally->capacity) {
        tally->capacity = tally->capacity ? 2 * tally->capacity : 16;
        tally->entry = weft_realloc(tally->entry, tally->capacity, sizeof(*tally->entry));
    }
    tally->entry[tally->count++] = *more;
}

void weft_tally_count(struct weft_engine *engine, const struct weft_commit_effects *news)
{
    for (size_t i = 0; i < news->count; i++) {
        const struct weft_queue_news *item = &news->item[i];
        if (item->succeeded + item->failed == 0)
            continue;
        const struct weft_queue *queue = weft_find_queue(engine, item->queue);
        const struct weft_tally_entry more = {.queue = item->queue,
                                              .lane = queue ? queue->lane : 0,
                                              .minute = minute_of(news->now_us),
                                              .succeeded = item->succeeded,
                                              .failed = item->failed};
        pthread_mutex_lock(&engine->tally.lock);
        add(&engine->tally, &more);
        pthread_mutex_unlock(&engine->tally.lock);
    }
}

void weft_tally_replayed(struct weft_engine *engine, int32_t queue, weft_usec finished_us)
{
    const struct weft_queue *known = weft_find_queue(engine, queue);
    const struct weft_tally_entry less = {.queue = queue,
                                          .lane = known ? known->lane : 0,
                                          .minute = minute_of(finished_us),
                                          .failed = -1};
    /* No count includes a row of an hour ago, and it may have been purged. */
    if (less.minute <= minute_of(weft_clock_now(engine->clock)) - HOUR)
        return;
    pthread_mutex_lock(&engine->tally.lock);
    add(&engine->tally, &less);
    pthread_mutex_unlock(&engine->tally.lock);
}

/* ---- By lane --------------------------------------------------------------------------------- */

/* A copy of the entries, in the arena; `take` removes them. Loads their queues. */
static enum weft_rc copy_entries(struct weft_engine *engine, bool take, struct weft_arena *arena,
                                 struct weft_tally *ret_copy, struct weft_err *err)
{
    struct weft_tally *tally = &engine->tally;
    pthread_mutex_lock(&tally->lock);
    ret_copy->count = tally->count;
    ret_copy->entry = weft_arena_dup(arena, tally->entry, tally->count * sizeof(*tally->entry));
    if (take)
        tally->count = 0;
    pthread_mutex_unlock(&tally->lock);
    struct weft_id_list queues = {.id = weft_new_array(arena, int32_t, ret_copy->count + 1)};
    for (size_t i = 0; i < ret_copy->count; i++)
        queues.id[queues.count++] = ret_copy->entry[i].queue;
    return weft_load_queues(engine, &queues, err);
}

static void put_back(struct weft_engine *engine, const struct weft_tally *copy)
{
    pthread_mutex_lock(&engine->tally.lock);
    for (size_t i = 0; i < copy->count; i++)
        add(&engine->tally, &copy->entry[i]);
    pthread_mutex_unlock(&engine->tally.lock);
}

static int by_lane(const void *left, const void *right)
{
    const struct weft_tally_read_out *a = left, *b = right;
    return (a->lane > b->lane) - (a->lane < b->lane);
}

/* Adds up the rows of each lane. */
static void fold_hours(struct weft_lane_hours *hours)
{
    size_t kept = 0;
    qsort(hours->item, hours->count, sizeof(*hours->item), by_lane);
    for (size_t i = 0; i < hours->count; i++) {
        if (kept == 0 || hours->item[kept - 1].lane != hours->item[i].lane) {
            hours->item[kept++] = hours->item[i];
            continue;
        }
        hours->item[kept - 1].succeeded += hours->item[i].succeeded;
        hours->item[kept - 1].failed += hours->item[i].failed;
    }
    hours->count = kept;
}

enum weft_rc weft_tally_hours(struct weft_engine *engine, int32_t ns, struct weft_arena *arena,
                              struct weft_lane_hours *ret_hours, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_tally copy = {0};
    int64_t since = minute_of(weft_clock_now(engine->clock)) - HOUR + 1;
    struct weft_tally_read_in *in = weft_call_tally_read(&call, arena);
    if (ns != WEFT_ALL_NAMESPACES)
        in->namespace = weft_some(ns);
    in->minute = since;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_BARE, &call, arena, &rows, err);
    if (!rc)
        rc = copy_entries(engine, false, arena, &copy, err);
    if (rc)
        return rc;
    struct weft_lane_hours hours = {
        .item = weft_new_array(arena, struct weft_tally_read_out, rows.count + copy.count + 1)};
    const struct weft_tally_read_out *row = weft_out_tally_read(&rows);
    for (size_t i = 0; i < rows.count; i++)
        hours.item[hours.count++] = row[i];
    for (size_t i = 0; i < copy.count; i++) {
        const struct weft_queue *queue = weft_find_queue(engine, copy.entry[i].queue);
        if ((ns != WEFT_ALL_NAMESPACES && queue->ns != ns) || copy.entry[i].minute < since)
            continue;
        hours.item[hours.count++] = (struct weft_tally_read_out){
            .namespace = queue->ns,
            .lane = queue->lane,
            .succeeded = copy.entry[i].succeeded,
            .failed = copy.entry[i].failed,
        };
    }
    fold_hours(&hours);
    *ret_hours = hours;
    return WEFT_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* One row of the statement for each (lane, minute). */
static void fill_call(struct weft_engine *engine, const struct weft_tally *copy,
                      struct weft_call *call)
{
    struct weft_tally_add_in *in = weft_in_tally_add(call);
    size_t rows = 0;
    for (size_t i = 0; i < copy->count; i++) {
        const struct weft_tally_entry *entry = &copy->entry[i];
        int32_t lane = weft_find_queue(engine, entry->queue)->lane;
        size_t at = 0;
        while (at < rows && (in->row[at].lane != lane || in->row[at].minute != entry->minute))
            at++;
        rows += at == rows;
        in->row[at].lane = lane;
        in->row[at].minute = entry->minute;
        in->row[at].succeeded += entry->succeeded;
        in->row[at].failed += entry->failed;
    }
    call->rows = rows;
}

static enum weft_rc run_add(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct weft_rows none;
    return weft_tx_run(tx, context, 1, &none, err);
}

static enum weft_rc write_entries(struct weft_tx *tx, struct weft_err *err)
{
    struct weft_tally copy = {0};
    enum weft_rc rc = copy_entries(tx->engine, true, tx->arena, &copy, err);
    if (!rc) {
        struct weft_call call;
        weft_call_tally_add(&call, tx->arena, copy.count);
        fill_call(tx->engine, &copy, &call);
        rc = weft_tx_do(tx, WEFT_TX_WRITE, run_add, &call, err);
    }
    /* Entries that may have been written are not counted twice. */
    if (rc && err->hint != weft_hint_outcome_unknown)
        put_back(tx->engine, &copy);
    return rc;
}

/* Nothing was counted, so there is nothing to write. */
static bool is_idle(struct weft_engine *engine)
{
    pthread_mutex_lock(&engine->tally.lock);
    bool idle = engine->tally.count == 0;
    pthread_mutex_unlock(&engine->tally.lock);
    return idle;
}

static enum weft_rc purge(struct weft_engine *engine, struct weft_arena *arena,
                          struct weft_err *err)
{
    struct weft_call call;
    int64_t now = minute_of(weft_clock_now(engine->clock));
    pthread_mutex_lock(&engine->tally.lock);
    bool due = now - engine->tally.purged >= PURGE_EVERY;
    if (due)
        engine->tally.purged = now;
    pthread_mutex_unlock(&engine->tally.lock);
    if (!due)
        return WEFT_OK;
    weft_call_tally_purge(&call, arena)->minute = now - KEEP;
    return weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
}

enum weft_rc weft_engine_tally(struct weft_engine *engine, struct weft_err *err)
{
    if (is_idle(engine))
        return WEFT_OK;
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = write_entries(&tx, err);
    if (!rc)
        rc = purge(engine, tx.arena, err);
    weft_arena_free(tx.arena);
    return rc;
}

void weft_tally_flush(struct weft_engine *engine)
{
    bool open = false;
    for (size_t i = 0; i < engine->pool.writers; i++)
        open = open || engine->pool.slot[i].conn;
    if (!open || is_idle(engine))
        return;
    struct weft_err err = {0};
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new(), .no_retry = true};
    enum weft_rc rc = write_entries(&tx, &err);
    (void)rc; /* best effort: a caller that closes the store cannot do anything about it */
    weft_arena_free(tx.arena);
}

/* ---- Counts: living executions, and ends of the last hour ------------------------------------ */

/* A lane by its numbers, while rows of several kinds are added up. */
struct counted {
    int32_t lane, ns; /* weft_i32_order() sorts by the lane, which is of one namespace */
    struct weft_lane_count count;
};

static int by_name(const void *left, const void *right)
{
    const struct weft_counted_lane *a = left, *b = right;
    int order = strcmp(a->ns, b->ns);
    return order ? order : strcmp(a->lane.lane, b->lane.lane);
}

static void add_count(struct weft_lane_count *sum, const struct weft_lane_count *more)
{
    for (size_t state = 0; state < WEFT_LEN(sum->count); state++)
        sum->count[state] += more->count[state];
    sum->draining += more->draining;
    sum->escalated += more->escalated;
    sum->succeeded_1h += more->succeeded_1h;
    sum->failed_1h += more->failed_1h;
}

/* One item for each lane. */
static size_t fold(struct counted *item, size_t count)
{
    size_t kept = 0;
    qsort(item, count, sizeof(*item), weft_i32_order);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || item[kept - 1].lane != item[i].lane)
            item[kept++] = item[i];
        else
            add_count(&item[kept - 1].count, &item[i].count);
    }
    return kept;
}

static size_t put_living(const struct weft_rows *rows, struct counted *item)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_counts_out *row = &weft_out_counts(rows)[i];
        int64_t state = row->state;
        item[i] = (struct counted){.ns = row->namespace, .lane = row->lane};
        *(state < 0                  ? &item[i].count.escalated
          : state == WEFT_STATE_NONE ? &item[i].count.draining
                                     : &item[i].count.count[state]) = row->number;
    }
    return rows->count;
}

static size_t put_ended(const struct weft_lane_hours *hours, struct counted *item)
{
    size_t count = 0;
    for (size_t i = 0; i < hours->count; i++) {
        const struct weft_tally_read_out *hour = &hours->item[i];
        if (hour->succeeded == 0 && hour->failed <= 0)
            continue;
        item[count] = (struct counted){.ns = hour->namespace, .lane = hour->lane};
        item[count].count.succeeded_1h = (uint64_t)hour->succeeded;
        if (hour->failed > 0)
            item[count].count.failed_1h = (uint64_t)hour->failed;
        count++;
    }
    return count;
}

/* Counts living executions and ends of the last hour; ns may be WEFT_ALL_NAMESPACES. */
static enum weft_rc count_lanes(struct weft_engine *engine, int32_t ns, struct weft_arena *arena,
                                struct weft_all_counts *ret_counts, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    struct weft_lane_hours hours;
    weft_usec now_us = weft_clock_now(engine->clock);
    struct weft_counts_in *in = weft_call_counts(&call, arena);
    in->now = now_us;
    if (ns != WEFT_ALL_NAMESPACES)
        in->namespace = weft_some(ns);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (!rc)
        rc = weft_tally_hours(engine, ns, arena, &hours, err);
    if (rc)
        return rc;
    struct counted *lane = weft_new_array(arena, struct counted, rows.count + hours.count + 1);
    size_t count = put_living(&rows, lane);
    count += put_ended(&hours, lane + count);
    count = fold(lane, count);
    struct weft_id_list names = {.id = weft_new_array(arena, int32_t, 2 * count + 1)};
    for (size_t i = 0; i < count; i++) {
        names.id[names.count++] = lane[i].lane;
        names.id[names.count++] = lane[i].ns;
    }
    rc = weft_load_names(engine, &names, err);
    if (rc)
        return rc;
    struct weft_counted_lane *item = weft_new_array(arena, struct weft_counted_lane, count + 1);
    for (size_t i = 0; i < count; i++) {
        item[i] = (struct weft_counted_lane){.ns = weft_find_name(engine, lane[i].ns),
                                             .lane = lane[i].count};
        item[i].lane.lane = weft_find_name(engine, lane[i].lane);
    }
    qsort(item, count, sizeof(*item), by_name);
    *ret_counts = (struct weft_all_counts){.item = item, .count = count, .as_of_us = now_us};
    return WEFT_OK;
}

enum weft_rc weft_engine_all_counts(struct weft_engine *engine, struct weft_arena *arena,
                                    struct weft_all_counts *ret_counts, struct weft_err *err)
{
    return count_lanes(engine, WEFT_ALL_NAMESPACES, arena, ret_counts, err);
}

enum weft_rc weft_engine_counts(struct weft_engine *engine, const char *ns, const char *lane,
                                struct weft_arena *arena, struct weft_counts *ret_counts,
                                struct weft_err *err)
{
    int32_t space;
    struct weft_all_counts all = {0};
    enum weft_rc rc = weft_find_namespace(engine, ns, &space, err);
    if (!rc && lane)
        rc = weft_name_check(lane, "lane", err);
    if (!rc)
        rc = count_lanes(engine, space, arena, &all, err);
    if (rc)
        return rc;
    struct weft_lane_count *item = weft_new_array(arena, struct weft_lane_count, all.count + 1);
    size_t count = 0;
    for (size_t i = 0; i < all.count; i++)
        if (!lane || strcmp(lane, all.item[i].lane.lane) == 0)
            item[count++] = all.item[i].lane;
    *ret_counts = (struct weft_counts){.item = item, .count = count, .as_of_us = all.as_of_us};
    return WEFT_OK;
}
