/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which queues have something to claim, and how their lanes are set.
 *
 * The list is a hint: a claim that finds a listed queue empty loses a lookup, and a queue that is
 * missing is found at the next refresh. Work made ready by this process is noted at once. A claim
 * that came up short reads the list anew when the list is small, because that costs next to
 * nothing, and otherwise at most every 100 ms; everybody reads it anew after a second. Lane
 * settings ride along, but pause and limit are checked again by the claim statement itself, so
 * they hold from the moment they were committed.
 */

#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_LIST = 256 };
#define REFRESH_MIN_US (100 * WEFT_MS)
#define REFRESH_MAX_US (1000 * WEFT_MS)

void weft_ready_init(struct weft_ready *ready)
{
    *ready = (struct weft_ready){0};
    pthread_mutex_init(&ready->lock, NULL);
}

static void free_lanes(struct weft_ready *ready)
{
    for (size_t i = 0; i < ready->lane_count; i++)
        free((char *)ready->lane[i].weights);
    free(ready->lane);
}

void weft_ready_done(struct weft_ready *ready)
{
    free_lanes(ready);
    free(ready->queue);
    free(ready->noted);
    free(ready->turn);
    pthread_mutex_destroy(&ready->lock);
}

static void append(int32_t **list, size_t *count, size_t *capacity, int32_t queue)
{
    for (size_t i = 0; i < *count; i++)
        if ((*list)[i] == queue)
            return;
    if (*count == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 64;
        *list = realloc(*list, *capacity * sizeof(**list));
        if (!*list)
            weft_oom(*capacity * sizeof(**list));
    }
    (*list)[(*count)++] = queue;
}

void weft_ready_note(struct weft_engine *engine, const struct weft_woken *woken, size_t count)
{
    struct weft_ready *ready = &engine->ready;
    if (count == 0)
        return;
    pthread_mutex_lock(&ready->lock);
    ready->notes++;
    for (size_t i = 0; i < count; i++) {
        append(&ready->queue, &ready->count, &ready->capacity, woken[i].queue);
        if (ready->refreshing > 0)
            append(&ready->noted, &ready->noted_count, &ready->noted_capacity, woken[i].queue);
    }
    pthread_mutex_unlock(&ready->lock);
}

uint64_t weft_ready_notes(struct weft_engine *engine)
{
    pthread_mutex_lock(&engine->ready.lock);
    uint64_t notes = engine->ready.notes;
    pthread_mutex_unlock(&engine->ready.lock);
    return notes;
}

void weft_ready_forget(struct weft_engine *engine, int32_t queue, uint64_t notes)
{
    struct weft_ready *ready = &engine->ready;
    pthread_mutex_lock(&ready->lock);
    for (size_t i = 0; i < ready->count && ready->notes == notes; i++)
        if (ready->queue[i] == queue) {
            ready->queue[i] = ready->queue[--ready->count];
            break;
        }
    pthread_mutex_unlock(&ready->lock);
}

bool weft_ready_may_refresh(struct weft_engine *engine)
{
    struct weft_ready *ready = &engine->ready;
    pthread_mutex_lock(&ready->lock);
    bool may = ready->count <= SMALL_LIST || weft_boot_us() - ready->refreshed_us > REFRESH_MIN_US;
    pthread_mutex_unlock(&ready->lock);
    return may;
}

bool weft_ready_is_old(struct weft_engine *engine)
{
    struct weft_ready *ready = &engine->ready;
    pthread_mutex_lock(&ready->lock);
    bool old = ready->refreshed_us == 0 || weft_boot_us() - ready->refreshed_us > REFRESH_MAX_US;
    pthread_mutex_unlock(&ready->lock);
    return old;
}

static char *copy_text(const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        weft_oom(strlen(text) + 1);
    return copy;
}

static int by_lane(const void *a, const void *b)
{
    const struct weft_lane_setting *left = a, *right = b;
    return (left->lane > right->lane) - (left->lane < right->lane);
}

/* The settings in memory of the cache, sorted. */
static struct weft_lane_setting *copy_lanes(const struct weft_lane_setting *from, size_t count)
{
    struct weft_lane_setting *lane = calloc(count + 1, sizeof(*lane));
    if (!lane)
        weft_oom((count + 1) * sizeof(*lane));
    for (size_t i = 0; i < count; i++) {
        lane[i] = from[i];
        lane[i].weights = copy_text(from[i].weights);
    }
    qsort(lane, count, sizeof(*lane), by_lane);
    return lane;
}

/* The rows of lane_settings. */
static struct weft_lane_setting *read_lanes(const struct weft_rows *rows, struct weft_arena *arena)
{
    struct weft_lane_setting *lane =
        weft_new_array(arena, struct weft_lane_setting, rows->count + 1);
    for (size_t i = 0; i < rows->count; i++)
        lane[i] = (struct weft_lane_setting){
            .lane = (int32_t)weft_get_i64(rows, i, LANE_SETTINGS_OUT_LANE),
            .ns = (int32_t)weft_get_i64(rows, i, LANE_SETTINGS_OUT_NAMESPACE),
            .paused = weft_get_i64(rows, i, LANE_SETTINGS_OUT_PAUSED),
            .max_running = (int32_t)weft_get_i64(rows, i, LANE_SETTINGS_OUT_MAX_RUNNING),
            .weights = weft_get_text(rows, i, LANE_SETTINGS_OUT_WEIGHTS),
        };
    return lane;
}

/*
 * Takes the copy over, unless a refresh that began later was faster: what it read is newer, and
 * whoever put a setting and read it back must not see the old one return. Under ready.lock.
 */
static void put_lanes(struct weft_ready *ready, uint64_t refresh, struct weft_lane_setting *copy,
                      size_t count)
{
    struct weft_ready unused = {.lane = copy, .lane_count = count};
    if (refresh < ready->lanes_of) {
        free_lanes(&unused);
        return;
    }
    free_lanes(ready);
    ready->lane = copy;
    ready->lane_count = count;
    ready->lanes_of = refresh;
}

/* Takes over the queues, with those that were noted meanwhile. Under ready.lock. */
static void put_queues(struct weft_ready *ready, uint64_t refresh,
                       const struct weft_ready_list *list)
{
    if (refresh < ready->queues_of)
        return;
    ready->queues_of = refresh;
    if (list->count > ready->capacity) {
        ready->queue = realloc(ready->queue, list->count * sizeof(*ready->queue));
        if (!ready->queue)
            weft_oom(list->count * sizeof(*ready->queue));
        ready->capacity = list->count;
    }
    if (list->count > 0)
        memcpy(ready->queue, list->queue, list->count * sizeof(*ready->queue));
    ready->count = list->count;
    for (size_t i = 0; i < ready->noted_count; i++)
        append(&ready->queue, &ready->count, &ready->capacity, ready->noted[i]);
    ready->refreshed_us = weft_boot_us();
}

uint64_t weft_ready_begin(struct weft_engine *engine)
{
    struct weft_ready *ready = &engine->ready;
    pthread_mutex_lock(&ready->lock);
    if (ready->refreshing++ == 0)
        ready->noted_count = 0;
    uint64_t refresh = ++ready->refreshes;
    pthread_mutex_unlock(&ready->lock);
    return refresh;
}

void weft_ready_end(struct weft_engine *engine, uint64_t refresh,
                    const struct weft_ready_list *list)
{
    struct weft_ready *ready = &engine->ready;
    struct weft_lane_setting *lane = list ? copy_lanes(list->lane, list->lane_count) : NULL;
    pthread_mutex_lock(&ready->lock);
    ready->refreshing--;
    if (list) {
        put_lanes(ready, refresh, lane, list->lane_count);
        put_queues(ready, refresh, list);
    }
    pthread_mutex_unlock(&ready->lock);
}

enum weft_rc weft_ready_refresh_lanes(struct weft_engine *engine, struct weft_err *err)
{
    struct weft_ready *ready = &engine->ready;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, arena, WEFT_STMT_LANE_SETTINGS, 0);
    pthread_mutex_lock(&ready->lock);
    uint64_t refresh = ++ready->refreshes;
    pthread_mutex_unlock(&ready->lock);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (!rc) {
        struct weft_lane_setting *lane = copy_lanes(read_lanes(&rows, arena), rows.count);
        pthread_mutex_lock(&ready->lock);
        put_lanes(ready, refresh, lane, rows.count);
        pthread_mutex_unlock(&ready->lock);
    }
    weft_arena_free(arena);
    return rc;
}

enum { QUEUES, LANES, CALLS };

static enum weft_rc read_both(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct weft_call call[CALLS];
    weft_call_init(&call[QUEUES], tx->arena, WEFT_STMT_QUEUES_READY, 0);
    weft_call_init(&call[LANES], tx->arena, WEFT_STMT_LANE_SETTINGS, 0);
    return weft_tx_run(tx, call, CALLS, context, err);
}

enum weft_rc weft_ready_refresh(struct weft_engine *engine, struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    struct weft_rows rows[CALLS];
    struct weft_ready_list list = {0};
    uint64_t refresh = weft_ready_begin(engine);
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_READ, read_both, rows, err);
    if (!rc) {
        list.queue = weft_new_array(tx.arena, int32_t, rows[QUEUES].count + 1);
        for (size_t i = 0; i < rows[QUEUES].count; i++)
            list.queue[list.count++] = (int32_t)weft_get_i64(&rows[QUEUES], i, 0);
        list.lane = read_lanes(&rows[LANES], tx.arena);
        list.lane_count = rows[LANES].count;
        const struct weft_id_list queues = {.id = list.queue, .count = list.count};
        rc = weft_load_queues(engine, &queues, err);
    }
    weft_ready_end(engine, refresh, rc ? NULL : &list);
    weft_arena_free(tx.arena);
    return rc;
}
