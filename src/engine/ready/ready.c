/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which queues have something to claim, and how their lanes are set.
 *
 * The list (rings.h) is a hint: a claim that finds a listed queue empty has made a lookup in vain
 * and takes the queue off the list. A queue that is missing on the list is added in these ways:
 *
 * - Work made ready by this process, or by a replica that sent a notice, is noted at once.
 * - The hop reads the ready queues of all namespaces in the order of their ids, up to 1,000 at a
 *   time; the next hop continues behind them. While there are no more ready queues than that, each
 *   hop reads all of them, and no walk is needed.
 * - The walk reads the queues of one lane, ready or not, up to 1,000 at a time. It runs if a hop
 *   cannot read all ready queues (`many`), for lanes that claims ask for: so the cost of a claim
 *   depends on the number of queues of its own lanes, and not of other namespaces.
 *
 * A claim that got less than it asked for refreshes the list if that costs next to nothing, and
 * otherwise at most every 100 ms; the next claim refreshes a list that is older than a second. If a
 * hop is slow, because of an open snapshot, or a walk has read all of a lane with very many queues,
 * these times grow with the time it took: see weft_pace_rest(). Then work without a notice waits
 * longer, but claims do not wait all the time. The hop also reads the lane settings, but the claim
 * statement itself checks pause and limit again, so they hold from the moment of their commit.
 *
 * Ticks decide which of two events is newer. A queue has the tick of the last note, hop or walk
 * that found ready work in it. A claim that found the queue empty takes it off only if that tick is
 * not newer than the tick read before the claim's transaction began; a hop or walk that has read
 * everything takes off the queues whose tick is not newer than its own beginning. Every note
 * follows the commit that made the work ready, so work that such a read could not see has a newer
 * tick.
 */

#include "engine/ready/ready.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/pace.h"
#include "engine/engine_state.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_LIST = 256 };
#define REFRESH_MIN_US (100 * WEFT_MS)
#define REFRESH_MAX_US (1000 * WEFT_MS)
#define STEP_MAX_US    (100 * WEFT_MS) /* a step of a walk that takes longer is not waited for */
/* A lane counts as asked for so long: longer than a claim may wait (WEFT_LONG_POLL_MAX_MS). */
#define ASKED_US (90 * WEFT_SECOND)

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
    weft_rings_done(&ready->rings);
    for (size_t i = 0; i < ready->turn.capacity; i++)
        free(ready->turn.slot[i]);
    weft_int_map_done(&ready->turn);
    pthread_mutex_destroy(&ready->lock);
}

/*
 * Empties the list: in the new lineage an id on the list may belong to another queue, or to none. A
 * hop or walk on the old server that is under way may list some of its queues after this; the claim
 * that takes them from the list finds them empty, or weft_rings_put() replaces them.
 */
void weft_ready_suspect(struct weft_ready *ready)
{
    pthread_mutex_lock(&ready->lock);
    weft_rings_done(&ready->rings);
    ready->hop = (struct weft_ready_hop){0};
    pthread_mutex_unlock(&ready->lock);
}

/* ---- Notes ----------------------------------------------------------------------------------- */

/* Lists the queues that are known here; the others go to *unknown. */
static void note_known(struct weft_engine *engine, const struct weft_woken *woken, size_t count,
                       struct weft_id_list *unknown)
{
    struct weft_ready *ready = &engine->ready;
    pthread_mutex_lock(&ready->lock);
    uint64_t tick = ++ready->tick;
    for (size_t i = 0; i < count; i++) {
        const struct weft_listed *listed = weft_rings_find(&ready->rings, woken[i].queue);
        const struct weft_queue *queue =
            listed ? listed->queue : weft_find_queue(engine, woken[i].queue);
        if (queue)
            weft_rings_put(&ready->rings, queue, tick);
        else if (unknown)
            unknown->id[unknown->count++] = woken[i].queue;
    }
    pthread_mutex_unlock(&ready->lock);
}

size_t weft_ready_carried(struct weft_engine *engine, size_t *place,
                          const struct weft_queue **ret_queue, size_t max, size_t *ret_total)
{
    struct weft_ready *ready = &engine->ready;
    size_t count = 0;
    pthread_mutex_lock(&ready->lock);
    const struct weft_int_map *carried = &ready->rings.carried;
    for (size_t left = carried->count ? carried->capacity : 0; left > 0 && count < max; left--) {
        *place = (*place + 1) % carried->capacity;
        const struct weft_listed *listed = carried->slot[*place];
        if (listed)
            ret_queue[count++] = listed->queue;
    }
    *ret_total = carried->count;
    pthread_mutex_unlock(&ready->lock);
    return count;
}

bool weft_ready_wakes_carried(struct weft_engine *engine, const struct weft_woken *woken,
                              size_t count)
{
    if (!atomic_load(&engine->carried_met))
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct weft_queue *queue = weft_find_queue(engine, woken[i].queue);
        if (queue && queue->carried)
            return true;
    }
    return false;
}

void weft_ready_note(struct weft_engine *engine, const struct weft_woken *woken, size_t count)
{
    if (count == 0)
        return;
    struct weft_arena *arena = weft_arena_new();
    struct weft_id_list unknown = {.id = weft_new_array(arena, int32_t, count)};
    struct weft_err err;
    note_known(engine, woken, count, &unknown);
    /* Notes are hints: the next hop finds queues that cannot be loaded now. */
    if (unknown.count > 0 && weft_load_queues(engine, &unknown, &err) == WEFT_OK)
        note_known(engine, woken, count, NULL);
    weft_arena_free(arena);
}

void weft_ready_forget(struct weft_engine *engine, int32_t queue, uint64_t tick)
{
    struct weft_ready *ready = &engine->ready;
    pthread_mutex_lock(&ready->lock);
    struct weft_listed *listed = weft_rings_find(&ready->rings, queue);
    if (listed && listed->tick <= tick)
        weft_rings_remove(&ready->rings, listed);
    pthread_mutex_unlock(&ready->lock);
}

/* ---- Lane settings --------------------------------------------------------------------------- */

/* A copy that ready.lane can own, sorted. */
static struct weft_lane_setting *copy_lanes(const struct weft_lane_setting *from, size_t count)
{
    struct weft_lane_setting *lane = weft_alloc(count + 1, sizeof(*lane));
    for (size_t i = 0; i < count; i++) {
        lane[i] = from[i];
        lane[i].weights = weft_strdup(from[i].weights);
    }
    qsort(lane, count, sizeof(*lane), weft_i32_order);
    return lane;
}

/* The rows of lane_settings. */
static struct weft_lane_setting *read_lanes(const struct weft_rows *rows, struct weft_arena *arena)
{
    struct weft_lane_setting *lane =
        weft_new_array(arena, struct weft_lane_setting, rows->count + 1);
    const struct weft_lane_settings_out *row = weft_out_lane_settings(rows);
    for (size_t i = 0; i < rows->count; i++)
        lane[i] = (struct weft_lane_setting){
            .lane = row[i].lane,
            .ns = row[i].namespace,
            .paused = row[i].paused,
            .timed = row[i].timed,
            .max_running = row[i].max_running,
            .weights = row[i].weights,
        };
    return lane;
}

/*
 * Takes the copy over, unless a refresh that began later was faster: its settings are newer, and a
 * caller that put a setting and read it back must not get the old one afterwards. Under ready.lock.
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

enum weft_rc weft_ready_refresh_lanes(struct weft_engine *engine, struct weft_err *err)
{
    struct weft_ready *ready = &engine->ready;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows;
    weft_call_lane_settings(&call, arena);
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

/* ---- The hop over all namespaces ------------------------------------------------------------- */

struct weft_ready_look weft_ready_begin(struct weft_engine *engine)
{
    struct weft_ready *ready = &engine->ready;
    pthread_mutex_lock(&ready->lock);
    if (ready->hop.after == 0)
        ready->hop.began = ready->tick;
    struct weft_ready_look look = {
        .refresh = ++ready->refreshes, .after = ready->hop.after, .began_us = weft_boot_us()};
    pthread_mutex_unlock(&ready->lock);
    return look;
}

/*
 * Moves the position of the hop on. Two hops may be under way from the same position: the hop that
 * ends later finds the position moved, and only adds its queues. Under ready.lock.
 */
static void end_hop(struct weft_ready *ready, const struct weft_ready_look *look,
                    const struct weft_ready_list *list)
{
    struct weft_ready_hop *hop = &ready->hop;
    weft_usec now_us = weft_boot_us();
    bool all = list->count < WEFT_HOP_QUEUES;
    hop->at_us = now_us;
    weft_usec rest_us = weft_pace_rest(look->took_us);
    hop->rest_us = hop->slow ? rest_us : 0; /* the second in a row: once may be by chance */
    hop->slow = rest_us > 0;
    if (hop->after != look->after)
        return;
    if (look->after == 0) {
        hop->many = !all;
        if (all)
            hop->all_us = now_us;
        if (all && look->began_us > hop->all_began_us)
            hop->all_began_us = look->began_us;
    }
    hop->after = all ? 0 : list->queue[list->count - 1];
    if (all) {
        weft_rings_sweep(&ready->rings, NULL, hop->began);
        weft_rings_slim(&ready->rings, now_us - ASKED_US);
    }
}

void weft_ready_end(struct weft_engine *engine, const struct weft_ready_look *look,
                    const struct weft_ready_list *list)
{
    struct weft_ready *ready = &engine->ready;
    struct weft_lane_setting *lane = copy_lanes(list->lane, list->lane_count);
    pthread_mutex_lock(&ready->lock);
    put_lanes(ready, look->refresh, lane, list->lane_count);
    uint64_t tick = ++ready->tick;
    for (size_t i = 0; i < list->count; i++) {
        const struct weft_queue *queue = weft_find_queue(engine, list->queue[i]);
        if (queue)
            weft_rings_put(&ready->rings, queue, tick);
    }
    end_hop(ready, look, list);
    pthread_mutex_unlock(&ready->lock);
}

enum { QUEUES, LANES, CALLS };

struct hop_call {
    struct weft_ready_look *look;
    struct weft_rows rows[CALLS];
};

static enum weft_rc read_both(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct hop_call *hop = context;
    struct weft_call call[CALLS];
    *weft_call_queues_ready(&call[QUEUES], tx->arena) =
        (struct weft_queues_ready_in){.after = hop->look->after, .most = WEFT_HOP_QUEUES};
    weft_call_lane_settings(&call[LANES], tx->arena);
    hop->look->began_us = weft_boot_us();
    enum weft_rc rc = weft_tx_run(tx, call, CALLS, hop->rows, err);
    hop->look->took_us = weft_boot_us() - hop->look->began_us;
    return rc;
}

enum weft_rc weft_ready_refresh(struct weft_engine *engine, struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    struct weft_ready_list list = {0};
    struct weft_ready_look look = weft_ready_begin(engine);
    struct hop_call hop = {.look = &look};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_READ, read_both, &hop, err);
    if (!rc) {
        list.queue = weft_new_array(tx.arena, int32_t, hop.rows[QUEUES].count + 1);
        for (size_t i = 0; i < hop.rows[QUEUES].count; i++)
            list.queue[list.count++] = weft_out_queues_ready(&hop.rows[QUEUES])[i].queue;
        list.lane = read_lanes(&hop.rows[LANES], tx.arena);
        list.lane_count = hop.rows[LANES].count;
        const struct weft_id_list queues = {.id = list.queue, .count = list.count};
        rc = weft_load_queues(engine, &queues, err);
    }
    if (!rc)
        weft_ready_end(engine, &look, &list);
    weft_arena_free(tx.arena);
    return rc;
}

/*
 * A claim must find all work that was committed before the claim came. A hop over all queues that
 * began later has read that, whichever claim made the hop: claims that find nothing share one.
 */
bool weft_ready_hop_is_due(struct weft_engine *engine, weft_usec came_us)
{
    struct weft_ready *ready = &engine->ready;
    pthread_mutex_lock(&ready->lock);
    const struct weft_ready_hop *hop = &ready->hop;
    bool due = !hop->many || weft_boot_us() - hop->at_us > REFRESH_MAX_US ||
               ready->rings.listed.count <= SMALL_LIST;
    due = due && (hop->many || hop->all_began_us <= came_us);
    pthread_mutex_unlock(&ready->lock);
    return due;
}

bool weft_ready_has_many(struct weft_engine *engine)
{
    pthread_mutex_lock(&engine->ready.lock);
    bool many = engine->ready.hop.many;
    pthread_mutex_unlock(&engine->ready.lock);
    return many;
}

/* ---- The walk over the queues of lanes ------------------------------------------------------- */

/* Under ready.lock. */
static void add_walk(struct weft_ready *ready, struct weft_ring *lane, struct weft_arena *arena,
                     struct weft_walks *walks)
{
    if (walks->count == WEFT_WALK_LANES)
        return;
    for (size_t i = 0; i < walks->count; i++)
        if (walks->item[i].ns == lane->ns && strcmp(walks->item[i].lane, lane->lane) == 0)
            return;
    if (lane->walked_to == 0) {
        lane->walk_began = ready->tick;
        lane->walk_queues = 0;
        lane->walk_took_us = 0;
    }
    walks->item[walks->count++] = (struct weft_walk){
        .ns = lane->ns, .lane = weft_arena_strdup(arena, lane->lane), .after = lane->walked_to};
}

/*
 * Another call walks over the lane right now, and the last walk over all of it is not long ago: one
 * walk is enough for all claims that find nothing. A step that takes too long, because its walker
 * failed, does not count.
 */
static bool is_walked_by_another(const struct weft_ring *lane, const struct weft_walks *walks,
                                 weft_usec now_us)
{
    return lane->walking_us != 0 && lane->walking_us != walks->began_us &&
           now_us - lane->walking_us < STEP_MAX_US && lane->whole_us != 0 &&
           now_us - lane->whole_us < REFRESH_MAX_US;
}

static enum weft_ready_age age_of(const struct weft_ready *ready, const struct weft_ring *lane,
                                  const struct weft_walks *walks, weft_usec now_us)
{
    bool many = ready->hop.many;
    weft_usec at_us = many ? lane->walked_us : ready->hop.all_us;
    if (many && is_walked_by_another(lane, walks, now_us))
        return WEFT_READY_FRESH;
    if (many && at_us != 0 && lane->walked_to == 0 && now_us < lane->rest_until_us)
        return WEFT_READY_FRESH;
    weft_usec rest_us = many ? 0 : ready->hop.rest_us;
    if (at_us == 0 || now_us - at_us > REFRESH_MAX_US + rest_us)
        return WEFT_READY_OLD;
    if (now_us - at_us < rest_us)
        return WEFT_READY_FRESH;
    /* A short list may mean that there are few ready queues again: a hop finds out. */
    bool small = ready->rings.listed.count <= SMALL_LIST ||
                 (many && lane->walked_to == 0 && lane->walk_queues <= SMALL_LIST);
    bool goes_on = many && lane->walked_to != 0;
    return small || goes_on || now_us - at_us > REFRESH_MIN_US ? WEFT_READY_SHORT
                                                               : WEFT_READY_FRESH;
}

enum weft_ready_age weft_ready_ask(struct weft_engine *engine, int32_t ns, const char *lane,
                                   struct weft_arena *arena, struct weft_walks *walks)
{
    struct weft_ready *ready = &engine->ready;
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&ready->lock);
    struct weft_ring *ring = weft_rings_ask(&ready->rings, ns, lane, now_us);
    enum weft_ready_age age = age_of(ready, ring, walks, now_us);
    if (age != WEFT_READY_FRESH)
        add_walk(ready, ring, arena, walks);
    pthread_mutex_unlock(&ready->lock);
    return age;
}

void weft_ready_asked(struct weft_engine *engine, struct weft_arena *arena,
                      struct weft_walks *ret_walks)
{
    struct weft_ready *ready = &engine->ready;
    *ret_walks = (struct weft_walks){0};
    pthread_mutex_lock(&ready->lock);
    weft_usec since_us = weft_boot_us() - ASKED_US;
    struct weft_ring *lane = ready->hop.many ? ready->rings.newest : NULL;
    for (; lane && lane->asked_us >= since_us && ret_walks->count < WEFT_WALK_LANES;
         lane = lane->older)
        add_walk(ready, lane, arena, ret_walks);
    pthread_mutex_unlock(&ready->lock);
}

/* What one step of a walk read of a lane. */
struct walked {
    uint32_t seen;
    int32_t last;
    weft_usec took_us;
};

/* A walk over thousands of queues takes a sixth of the time at most, a slow one a tenth. */
static weft_usec rest_after_walk(weft_usec took_us)
{
    weft_usec rest_us = weft_pace_rest(took_us);
    return rest_us > 0 || took_us < 5 * WEFT_MS ? rest_us : 5 * took_us;
}

/* Moves the walk over a lane on; two at once are dealt with as in end_hop(). Under ready.lock. */
static void end_walk(struct weft_ready *ready, const struct weft_walk *walk,
                     const struct walked *walked, uint32_t most)
{
    weft_usec now_us = weft_boot_us();
    struct weft_ring *lane = weft_rings_of(&ready->rings, walk->ns, walk->lane, NULL);
    if (!lane || lane->walked_to != walk->after)
        return;
    lane->walked_us = now_us;
    lane->walk_queues += walked->seen;
    lane->walk_took_us += walked->took_us;
    lane->walked_to = walked->seen < most ? 0 : walked->last;
    if (lane->walked_to == 0) {
        lane->whole_us = now_us;
        lane->walking_us = 0;
        lane->rest_until_us = now_us + rest_after_walk(lane->walk_took_us);
        weft_rings_sweep(&ready->rings, lane, lane->walk_began);
    }
}

/* Marks the lanes as being walked over; returns the time of the mark. */
static weft_usec begin_walk(struct weft_ready *ready, const struct weft_walks *walks)
{
    pthread_mutex_lock(&ready->lock);
    weft_usec now_us = weft_boot_us();
    for (size_t i = 0; i < walks->count; i++) {
        const struct weft_walk *walk = &walks->item[i];
        struct weft_ring *lane = weft_rings_of(&ready->rings, walk->ns, walk->lane, NULL);
        if (lane)
            lane->walking_us = now_us;
    }
    pthread_mutex_unlock(&ready->lock);
    return now_us;
}

enum weft_rc weft_ready_walk(struct weft_engine *engine, struct weft_walks *walks,
                             struct weft_arena *arena, struct weft_id_list *ret_queues,
                             struct weft_err *err)
{
    struct weft_ready *ready = &engine->ready;
    struct weft_call call;
    struct weft_rows rows = {0};
    struct walked walked[WEFT_WALK_LANES] = {0};
    uint32_t most = (uint32_t)(WEFT_WALK_QUEUES / (walks->count + 1) + 1);
    if (walks->count == 1)
        most = WEFT_WALK_QUEUES;
    struct weft_lane_walk_in *in = weft_call_lane_walk(&call, arena, walks->count);
    in->most = most;
    for (size_t i = 0; i < walks->count; i++) {
        in->row[i].place = (int64_t)i;
        in->row[i].namespace = walks->item[i].ns;
        in->row[i].lane = walks->item[i].lane;
        in->row[i].after = walks->item[i].after;
    }
    walks->began_us = begin_walk(ready, walks);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    weft_usec took_us = weft_boot_us() - walks->began_us;
    struct weft_id_list found = {.id = weft_new_array(arena, int32_t, rows.count + 1)};
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_lane_walk_out *row = &weft_out_lane_walk(&rows)[i];
        int32_t queue = row->queue;
        struct walked *lane = &walked[row->place];
        lane->seen++;
        lane->last = queue > lane->last ? queue : lane->last;
        if (row->ready)
            found.id[found.count++] = queue;
    }
    rc = weft_load_queues(engine, &found, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&ready->lock);
    uint64_t tick = ++ready->tick;
    for (size_t i = 0; i < found.count; i++)
        weft_rings_put(&ready->rings, weft_find_queue(engine, found.id[i]), tick);
    for (size_t i = 0; i < walks->count; i++) {
        walked[i].took_us = took_us;
        end_walk(ready, &walks->item[i], &walked[i], most);
    }
    pthread_mutex_unlock(&ready->lock);
    if (ret_queues)
        *ret_queues = found;
    return WEFT_OK;
}
