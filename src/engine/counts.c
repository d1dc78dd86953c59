/* SPDX-License-Identifier: Apache-2.0 */

/* How many executions a namespace has, by lane and state. */

#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

static int by_lane_name(const void *a, const void *b)
{
    return strcmp(((const struct weft_lane_count *)a)->lane,
                  ((const struct weft_lane_count *)b)->lane);
}

/* The place of a lane in the counts; made when it is new. */
static struct weft_lane_count *count_of(struct weft_lane_count *item, size_t *count,
                                        const char *lane)
{
    size_t at = 0;
    while (at < *count && item[at].lane != lane)
        at++;
    *count += at == *count;
    item[at].lane = lane;
    return &item[at];
}

/* What living executions there are, and what ended in the last hour. */
struct counted {
    struct weft_rows rows;
    struct weft_lane_hours hours;
};

static enum weft_rc read_counts(struct weft_engine *engine, int32_t ns, struct weft_arena *arena,
                                struct counted *ret_counted, struct weft_err *err)
{
    struct weft_call call;
    weft_call_init(&call, arena, WEFT_STMT_COUNTS, 0);
    weft_set_i64(&call, 0, COUNTS_IN_NOW, weft_clock_now(engine->clock));
    weft_set_i64(&call, 0, COUNTS_IN_NAMESPACE, ns);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &ret_counted->rows, err);
    if (!rc)
        rc = weft_tally_hours(engine, ns, arena, &ret_counted->hours, err);
    if (rc)
        return rc;
    const struct weft_rows *rows = &ret_counted->rows;
    const struct weft_lane_hours *hours = &ret_counted->hours;
    struct weft_id_list lanes = {
        .id = weft_new_array(arena, int32_t, rows->count + hours->count + 1)};
    for (size_t i = 0; i < rows->count; i++)
        lanes.id[lanes.count++] = (int32_t)weft_get_i64(rows, i, COUNTS_OUT_LANE);
    for (size_t i = 0; i < hours->count; i++)
        lanes.id[lanes.count++] = hours->item[i].lane;
    return weft_load_names(engine, &lanes, err);
}

enum weft_rc weft_engine_counts(struct weft_engine *engine, const char *ns, const char *lane,
                                struct weft_arena *arena, struct weft_counts *ret_counts,
                                struct weft_err *err)
{
    int32_t space;
    struct counted counted = {0};
    enum weft_rc rc = weft_find_namespace(engine, ns, &space, err);
    if (!rc && lane)
        rc = weft_name_check(lane, "lane", err);
    weft_usec now_us = weft_clock_now(engine->clock);
    if (!rc)
        rc = read_counts(engine, space, arena, &counted, err);
    if (rc)
        return rc;
    const struct weft_rows *rows = &counted.rows;
    const struct weft_lane_hours *hours = &counted.hours;
    struct weft_lane_count *item =
        weft_new_array(arena, struct weft_lane_count, rows->count + hours->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const char *name = weft_find_name(engine, (int32_t)weft_get_i64(rows, i, COUNTS_OUT_LANE));
        if (lane && strcmp(lane, name) != 0)
            continue;
        struct weft_lane_count *living = count_of(item, &count, name);
        int64_t state = weft_get_i64(rows, i, COUNTS_OUT_STATE);
        *(state == WEFT_STATE_NONE ? &living->draining : &living->count[state]) =
            (uint64_t)weft_get_i64(rows, i, COUNTS_OUT_NUMBER);
    }
    for (size_t i = 0; i < hours->count; i++) {
        const char *name = weft_find_name(engine, hours->item[i].lane);
        if ((lane && strcmp(lane, name) != 0) ||
            (hours->item[i].succeeded == 0 && hours->item[i].failed <= 0))
            continue;
        struct weft_lane_count *ended = count_of(item, &count, name);
        ended->succeeded_1h = (uint64_t)hours->item[i].succeeded;
        if (hours->item[i].failed > 0)
            ended->failed_1h = (uint64_t)hours->item[i].failed;
    }
    qsort(item, count, sizeof(*item), by_lane_name);
    *ret_counts = (struct weft_counts){.item = item, .count = count, .as_of_us = now_us};
    return WEFT_OK;
}
