/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How many executions there are, by namespace, lane and state. One statement counts for all
 * namespaces, and another one for a handle that asks for its own alone.
 */

#include "engine/admin/counts.h"

#include "base/arena.h"
#include "base/clock.h"
#include "core/spec.h"
#include "engine/engine_state.h"

#include <stdlib.h>
#include <string.h>

/* A lane by its numbers, while rows of several kinds are added up. */
struct counted {
    int32_t ns, lane;
    struct weft_lane_count count;
};

static int by_number(const void *left, const void *right)
{
    const struct counted *a = left, *b = right;
    return (a->lane > b->lane) - (a->lane < b->lane); /* a lane is of one namespace */
}

static int by_name(const void *left, const void *right)
{
    const struct weft_counted_lane *a = left, *b = right;
    int order = strcmp(a->ns, b->ns);
    return order ? order : strcmp(a->lane.lane, b->lane.lane);
}

static void add(struct weft_lane_count *sum, const struct weft_lane_count *more)
{
    for (size_t state = 0; state < WEFT_LEN(sum->count); state++)
        sum->count[state] += more->count[state];
    sum->draining += more->draining;
    sum->succeeded_1h += more->succeeded_1h;
    sum->failed_1h += more->failed_1h;
}

/* One item for each lane. */
static size_t fold(struct counted *item, size_t count)
{
    size_t kept = 0;
    qsort(item, count, sizeof(*item), by_number);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || item[kept - 1].lane != item[i].lane)
            item[kept++] = item[i];
        else
            add(&item[kept - 1].count, &item[i].count);
    }
    return kept;
}

static size_t put_living(const struct weft_rows *rows, struct counted *item)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_counts_out *row = &weft_out_counts(rows)[i];
        int64_t state = row->state;
        item[i] = (struct counted){.ns = row->namespace, .lane = row->lane};
        *(state == WEFT_STATE_NONE ? &item[i].count.draining : &item[i].count.count[state]) =
            row->number;
    }
    return rows->count;
}

static size_t put_ended(const struct weft_lane_hours *hours, struct counted *item)
{
    size_t count = 0;
    for (size_t i = 0; i < hours->count; i++) {
        const struct weft_lane_hour *hour = &hours->item[i];
        if (hour->succeeded == 0 && hour->failed <= 0)
            continue;
        item[count] = (struct counted){.ns = hour->ns, .lane = hour->lane};
        item[count].count.succeeded_1h = (uint64_t)hour->succeeded;
        if (hour->failed > 0)
            item[count].count.failed_1h = (uint64_t)hour->failed;
        count++;
    }
    return count;
}

/* Counts what lives and what ended in the last hour; ns may be WEFT_ALL_NAMESPACES. */
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
