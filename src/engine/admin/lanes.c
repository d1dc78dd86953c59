/* SPDX-License-Identifier: Apache-2.0 */

/* Lane settings: pause, limits, retention, tenant weights. */

#include "engine/admin/lanes.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "core/limit.h"
#include "core/spec.h"
#include "engine/engine_state.h"

#include <stdlib.h>
#include <string.h>

enum {
    WEIGHT_MAX = 1000,
    WEIGHTS_MAX = 1000,
    WEIGHTS_TEXT_MAX = 1 << 18,
    OLDEST_BINARY = 29, /* the first that knows windows and rates of lanes */
};

static bool is_timed(const struct weft_lane *lane)
{
    return lane->window.limit || lane->rate.limit;
}

static enum weft_rc check_lane(const struct weft_lane *lane, struct weft_err *err)
{
    const struct weft_limits limits = {.window = lane->window, .rate = lane->rate};
    enum weft_rc rc = weft_name_check(lane->name, "lane", err);
    if (!rc)
        rc = weft_limits_check(&limits, err);
    if (rc)
        return rc;
    if (lane->max_running < 0)
        return weft_invalid(err, "max_running",
                            "max_running is %d, it must be 0 (no limit) or more",
                            lane->max_running);
    if (lane->retention_ms < 0 || lane->retention_ms > WEFT_DELAY_MAX_MS)
        return weft_invalid(err, "retention_ms",
                            "retention_ms is %lld, allowed are 0 (not set) to %lld",
                            (long long)lane->retention_ms, (long long)WEFT_DELAY_MAX_MS);
    if (lane->weight_count > WEIGHTS_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "weights",
                               "%zu weights, at most %d are allowed", lane->weight_count,
                               WEIGHTS_MAX);
    for (size_t i = 0; i < lane->weight_count && !rc; i++) {
        rc = weft_name_check(lane->weights[i].tenant, "weights", err);
        if (!rc && (lane->weights[i].weight < 1 || lane->weights[i].weight > WEIGHT_MAX))
            rc = weft_invalid(err, "weights", "the weight of '%s' is %d, allowed are 1 to %d",
                              lane->weights[i].tenant, lane->weights[i].weight, WEIGHT_MAX);
        for (size_t k = 0; k < i && !rc; k++)
            if (strcmp(lane->weights[k].tenant, lane->weights[i].tenant) == 0)
                rc = weft_invalid(err, "weights", "'%s' has two weights", lane->weights[i].tenant);
    }
    return rc;
}

static const char *weights_text(const struct weft_lane *lane, struct weft_arena *arena)
{
    if (lane->weight_count == 0)
        return NULL;
    struct weft_buf buf;
    weft_buf_init(&buf, WEIGHTS_TEXT_MAX);
    struct weft_json_writer out;
    weft_json_writer_init(&out, &buf);
    weft_json_begin_object(&out);
    for (size_t i = 0; i < lane->weight_count; i++) {
        weft_json_add_i64(&out, lane->weights[i].tenant, lane->weights[i].weight);
    }
    weft_json_end_object(&out);
    const char *text = weft_arena_strdup(arena, buf.data);
    weft_buf_done(&buf);
    return text;
}

enum weft_rc weft_engine_lane_put(struct weft_engine *engine, const char *ns,
                                  const struct weft_lane *lane, struct weft_err *err)
{
    enum weft_rc rc = check_lane(lane, err);
    if (!rc)
        rc = weft_name_check(ns, "namespace", err);
    if (rc)
        return rc;
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = ns};
    rc = weft_intern_names(engine, true, &space, 1, err);
    if (rc)
        return rc;
    struct weft_name_want name = {.sort = WEFT_NAME_LANE, .ns = space.id, .text = lane->name};
    rc = weft_intern_names(engine, true, &name, 1, err);
    if (rc)
        return rc;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    *weft_call_lane_put(&call, arena) =
        (struct weft_lane_put_in){.lane = name.id,
                                  .namespace = space.id,
                                  .paused = lane->paused,
                                  .max_running = lane->max_running,
                                  .retention_us = lane->retention_ms * WEFT_MS,
                                  .weights = weights_text(lane, arena),
                                  .window_limit = lane->window.limit,
                                  .window_us = lane->window.per_ms * WEFT_MS,
                                  .rate_limit = lane->rate.limit,
                                  .rate_us = lane->rate.per_ms * WEFT_MS,
                                  .rate_burst = lane->rate.burst,
                                  .oldest = is_timed(lane) ? OLDEST_BINARY : 0};
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    weft_arena_free(arena);
    /* This process knows at once; others read weights within a second, pause and limit at once. */
    if (!rc)
        rc = weft_ready_refresh(engine, err);
    if (!rc && !lane->paused)
        weft_news_lane(engine, space.id, lane->name);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct weft_lane *)a)->name, ((const struct weft_lane *)b)->name);
}

static void read_weights(const char *text, struct weft_arena *arena, struct weft_lane *lane)
{
    struct weft_json value;
    if (!text || weft_json_check(text, strlen(text), &value, NULL))
        return;
    struct weft_weight *weight = weft_new_array(arena, struct weft_weight, WEIGHTS_MAX);
    struct weft_json_iter member;
    weft_json_iter_init(&member, &value);
    size_t count = 0;
    while (count < WEIGHTS_MAX && weft_json_next(&member)) {
        int64_t number;
        if (!weft_json_i64(&member.value, &number) ||
            weft_json_string(&member.key, arena, &weight[count].tenant, NULL))
            continue;
        weight[count++].weight = (int32_t)number;
    }
    lane->weights = weight;
    lane->weight_count = count;
}

static void read_settings(const struct weft_settings_out *row, struct weft_arena *arena,
                          struct weft_lane *ret_lane)
{
    ret_lane->paused = row->paused;
    ret_lane->max_running = row->max_running;
    ret_lane->retention_ms = row->retention_us / WEFT_MS;
    ret_lane->window = (struct weft_window){row->window_limit, row->window_us / WEFT_MS};
    ret_lane->rate = (struct weft_rate){row->rate_limit, row->rate_us / WEFT_MS, row->rate_burst};
    read_weights(row->weights, arena, ret_lane);
}

/* Adds lanes with executions that ended in the last hour, if they are not in the list yet. */
static void add_ended(const struct weft_lane_hours *hours, struct weft_id_list *lanes)
{
    size_t listed = lanes->count;
    for (size_t i = 0; i < hours->count; i++) {
        size_t k = 0;
        while (k < listed && lanes->id[k] != hours->item[i].lane)
            k++;
        if (k == listed)
            lanes->id[lanes->count++] = hours->item[i].lane;
    }
}

enum weft_rc weft_engine_lanes(struct weft_engine *engine, const char *ns, struct weft_arena *arena,
                               struct weft_lanes *ret_lanes, struct weft_err *err)
{
    int32_t space;
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_lane_hours hours;
    enum weft_rc rc = weft_find_namespace(engine, ns, &space, err);
    if (rc)
        return rc;
    weft_call_lane_list(&call, arena)->namespace = space;
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (!rc)
        rc = weft_tally_hours(engine, space, arena, &hours, err);
    if (rc)
        return rc;
    size_t most = rows.count + hours.count + 1;
    struct weft_id_list names = {.id = weft_new_array(arena, int32_t, most)};
    struct weft_lane *lane = weft_new_array(arena, struct weft_lane, most);
    for (; names.count < rows.count; names.count++) {
        read_settings(weft_out_settings(&rows, names.count), arena, &lane[names.count]);
        names.id[names.count] = weft_out_lane_list(&rows)[names.count].lane;
    }
    add_ended(&hours, &names);
    rc = weft_load_names(engine, &names, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < names.count; i++)
        lane[i].name = weft_find_name(engine, names.id[i]);
    qsort(lane, names.count, sizeof(*lane), by_name);
    *ret_lanes = (struct weft_lanes){.item = lane, .count = names.count};
    return WEFT_OK;
}

enum weft_rc weft_engine_lanes_of(struct weft_engine *engine, const char *ns,
                                  const char *const *used, size_t count, struct weft_arena *arena,
                                  struct weft_lanes *ret_lanes, struct weft_err *err)
{
    int32_t space;
    struct weft_call call;
    struct weft_rows rows = {0};
    enum weft_rc rc = weft_find_namespace(engine, ns, &space, err);
    if (rc)
        return rc;
    weft_call_lane_own_settings(&call, arena)->namespace = space;
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_id_list names = {.id = weft_new_array(arena, int32_t, rows.count + 1),
                                 .count = rows.count};
    for (size_t i = 0; i < rows.count; i++)
        names.id[i] = weft_out_lane_own_settings(&rows)[i].lane;
    rc = weft_load_names(engine, &names, err);
    if (rc)
        return rc;
    struct weft_lane *lane = weft_new_array(arena, struct weft_lane, rows.count + count + 1);
    bool *has_settings = weft_new_array(arena, bool, count + 1);
    size_t listed = rows.count;
    for (size_t i = 0; i < rows.count; i++) {
        read_settings(weft_out_settings(&rows, i), arena, &lane[i]);
        lane[i].name = weft_find_name(engine, names.id[i]);
        const char *const *at = count ? bsearch((const void *)&lane[i].name, (const void *)used,
                                                count, sizeof(*used), weft_text_order)
                                      : NULL;
        if (at)
            has_settings[at - used] = true;
    }
    for (size_t i = 0; i < count; i++)
        if (!has_settings[i])
            lane[listed++] = (struct weft_lane){.name = used[i]};
    qsort(lane, listed, sizeof(*lane), by_name);
    *ret_lanes = (struct weft_lanes){.item = lane, .count = listed};
    return WEFT_OK;
}

static enum weft_rc no_lane(const char *lane, struct weft_err *err)
{
    return weft_hint(err,
                     weft_fail_field(err, WEFT_NOT_FOUND, "lane", "there is no lane '%s'", lane),
                     "a lane is there while it has settings, work that is not over, or work that "
                     "ended in the last hour");
}

/* Whether a lane without settings has executions that are not over, or that ended lately. */
static enum weft_rc is_used(struct weft_engine *engine, const struct weft_name_want *lane,
                            struct weft_arena *arena, bool *ret_used, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_lane_hours hours;
    *weft_call_lane_used(&call, arena) =
        (struct weft_lane_used_in){.lane = lane->id, .namespace = lane->ns};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    *ret_used = weft_out_lane_used(&rows)->used != 0;
    if (*ret_used)
        return WEFT_OK;
    rc = weft_tally_hours(engine, lane->ns, arena, &hours, err);
    for (size_t i = 0; !rc && i < hours.count; i++)
        *ret_used |= hours.item[i].lane == lane->id;
    return rc;
}

enum weft_rc weft_lane_settings_read(struct weft_engine *engine, int32_t lane,
                                     struct weft_arena *arena, struct weft_lane *ret_lane,
                                     int64_t *ret_full_ns, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_lane_get(&call, arena)->lane = lane;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    read_settings(weft_out_settings(&rows, 0), arena, ret_lane);
    *ret_full_ns = weft_out_lane_get(&rows)->full_ns.value;
    return WEFT_OK;
}

enum weft_rc weft_engine_lane(struct weft_engine *engine, const char *ns, const char *name,
                              struct weft_arena *arena, struct weft_lane *ret_lane,
                              struct weft_err *err)
{
    struct weft_name_want lane = {.sort = WEFT_NAME_LANE, .text = name};
    struct weft_call call;
    struct weft_rows rows = {0};
    bool used = false;
    enum weft_rc rc = weft_find_in_namespace(engine, ns, "lane", &lane, err);
    if (!rc && lane.id == 0)
        rc = no_lane(name, err);
    if (rc)
        return rc;
    weft_call_lane_get(&call, arena)->lane = lane.id;
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    *ret_lane = (struct weft_lane){.name = name};
    if (rows.count > 0) {
        read_settings(weft_out_settings(&rows, 0), arena, ret_lane);
        return WEFT_OK;
    }
    rc = is_used(engine, &lane, arena, &used, err);
    return rc || used ? rc : no_lane(name, err);
}

enum weft_rc weft_engine_lane_remove(struct weft_engine *engine, const char *ns, const char *name,
                                     struct weft_arena *arena, struct weft_lane *ret_lane,
                                     struct weft_err *err)
{
    struct weft_name_want lane = {.sort = WEFT_NAME_LANE, .text = name};
    struct weft_call call;
    struct weft_rows rows = {0};
    enum weft_rc rc = weft_find_in_namespace(engine, ns, "lane", &lane, err);
    if (!rc && lane.id != 0) {
        weft_call_lane_remove(&call, arena)->lane = lane.id;
        rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, &rows, err);
    }
    if (!rc && rows.count == 0)
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "lane", "lane '%s' has no settings", name);
    if (rc)
        return rc;
    *ret_lane = (struct weft_lane){.name = name};
    read_settings(weft_out_settings(&rows, 0), arena, ret_lane);
    rc = weft_ready_refresh(engine, err);
    if (!rc)
        weft_news_lane(engine, lane.ns, name); /* it may have been paused or full */
    return rc;
}
