/* SPDX-License-Identifier: Apache-2.0 */

/* Lane settings: pause, limit, retention, tenant weights. */

#include "engine/engine.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

enum {
    WEIGHT_MAX = 1000,
    WEIGHTS_MAX = 1000,
    WEIGHTS_TEXT_MAX = 1 << 18,
};

static enum weft_rc check_lane(const struct weft_lane *lane, struct weft_err *err)
{
    enum weft_rc rc = weft_name_check(lane->name, "lane", err);
    if (rc)
        return rc;
    if (lane->max_running < 0)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "max_running",
                               "max_running is %d, it must be 0 (no limit) or more",
                               lane->max_running);
    if (lane->retention_ms < 0 || lane->retention_ms > WEFT_DELAY_MAX_MS)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "retention_ms",
                               "retention_ms is %lld, allowed are 0 (not set) to %lld",
                               (long long)lane->retention_ms, (long long)WEFT_DELAY_MAX_MS);
    if (lane->weight_count > WEIGHTS_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "weights",
                               "%zu weights, at most %d are allowed", lane->weight_count,
                               WEIGHTS_MAX);
    for (size_t i = 0; i < lane->weight_count && !rc; i++) {
        rc = weft_name_check(lane->weights[i].tenant, "weights", err);
        if (!rc && (lane->weights[i].weight < 1 || lane->weights[i].weight > WEIGHT_MAX))
            rc = weft_fail_field(err, WEFT_INVALID_VALUE, "weights",
                                 "the weight of '%s' is %d, allowed are 1 to %d",
                                 lane->weights[i].tenant, lane->weights[i].weight, WEIGHT_MAX);
        for (size_t k = 0; k < i && !rc; k++)
            if (strcmp(lane->weights[k].tenant, lane->weights[i].tenant) == 0)
                rc = weft_fail_field(err, WEFT_INVALID_VALUE, "weights", "'%s' has two weights",
                                     lane->weights[i].tenant);
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
        weft_json_key(&out, lane->weights[i].tenant);
        weft_json_put_i64(&out, lane->weights[i].weight);
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
    weft_call_init(&call, arena, WEFT_STMT_LANE_PUT, 0);
    weft_set_i64(&call, 0, LANE_PUT_IN_LANE, name.id);
    weft_set_i64(&call, 0, LANE_PUT_IN_NAMESPACE, space.id);
    weft_set_i64(&call, 0, LANE_PUT_IN_PAUSED, lane->paused);
    weft_set_i64(&call, 0, LANE_PUT_IN_MAX_RUNNING, lane->max_running);
    weft_set_i64(&call, 0, LANE_PUT_IN_RETENTION_US, lane->retention_ms * WEFT_MS);
    weft_set_text(&call, 0, LANE_PUT_IN_WEIGHTS, weights_text(lane, arena));
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    weft_arena_free(arena);
    /* This process knows at once; others read weights within a second, pause and limit at once. */
    if (!rc)
        rc = weft_ready_refresh(engine, err);
    if (!rc && !lane->paused)
        weft_news_lane(engine, name.id);
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

enum weft_rc weft_engine_lanes(struct weft_engine *engine, const char *ns, struct weft_arena *arena,
                               struct weft_lanes *ret_lanes, struct weft_err *err)
{
    enum weft_rc rc = weft_name_check(ns, "namespace", err);
    if (rc)
        return rc;
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = ns};
    rc = weft_intern_names(engine, false, &space, 1, err);
    if (rc)
        return rc;
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, arena, WEFT_STMT_LANE_LIST, 0);
    weft_set_i64(&call, 0, LANE_LIST_IN_NAMESPACE, space.id);
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_id_list names = {.id = weft_new_array(arena, int32_t, rows.count + 1),
                                 .count = rows.count};
    struct weft_lane *lane = weft_new_array(arena, struct weft_lane, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++) {
        lane[i].paused = weft_get_i64(&rows, i, LANE_LIST_OUT_PAUSED);
        lane[i].max_running = (int32_t)weft_get_i64(&rows, i, LANE_LIST_OUT_MAX_RUNNING);
        lane[i].retention_ms = weft_get_i64(&rows, i, LANE_LIST_OUT_RETENTION_US) / WEFT_MS;
        read_weights(weft_get_text(&rows, i, LANE_LIST_OUT_WEIGHTS), arena, &lane[i]);
        names.id[i] = (int32_t)weft_get_i64(&rows, i, LANE_LIST_OUT_LANE);
    }
    rc = weft_load_names(engine, &names, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < names.count; i++)
        lane[i].name = weft_find_name(engine, names.id[i]);
    qsort(lane, names.count, sizeof(*lane), by_name);
    *ret_lanes = (struct weft_lanes){.item = lane, .count = names.count};
    return WEFT_OK;
}
