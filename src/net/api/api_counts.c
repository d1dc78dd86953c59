/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts, computed for all namespaces and lanes at once and at most once a second, whatever is
 * asked for. One thread computes; requests that come meanwhile get the result before it, if that is
 * not too old, and wait otherwise. A result never changes, and is freed by the last thread that
 * reads it.
 */

#include "net/api/api_counts.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "core/spec.h"
#include "core/state.h"
#include "engine/admin/tally.h"
#include "net/api/api.h"
#include "net/api/handlers.h"
#include "net/group/group.h"
#include "net/metrics.h"
#include "net/server.h"
#include "weft/weft.h"
#include "wire/wire.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 16 << 20 };

#define FRESH_US WEFT_SECOND        /* younger than this is given as it is */
#define STALE_US (10 * WEFT_SECOND) /* older than this is not given while another computes */
/*
 * While metrics are asked for, counts are kept: computed again every KEEP_US, or more rarely, so
 * that it takes at most one part in COST_PARTS of the time. Until no scrape came for long. A scrape
 * comes every 15 s as a rule; each second would be four times the statements of an idle server.
 */
#define KEEP_US (8 * WEFT_SECOND)
#define KEPT_US (120 * WEFT_SECOND)
enum { COST_PARTS = 20 };

/* The result of one computation. */
struct counted {
    size_t readers; /* under the lock of the cache; the cache itself is one */
    struct weft_arena *arena;
    struct weft_all_counts all;
    struct weft_err err;   /* why there is nothing */
    weft_usec computed_us; /* boot time, when the computing began */
    weft_usec took_us;     /* the computing */
};

struct weft_counts_cache {
    pthread_mutex_t lock;
    pthread_cond_t done;     /* a thread has computed */
    struct counted *counted; /* the newest; NULL: none yet */
    bool busy;               /* a thread computes */
    bool keeping;            /* an engine thread computes for weft_counts_keep(), or will */
    weft_usec scraped_us;    /* when metrics were last asked for; 0: never */
};

struct weft_counts_cache *weft_counts_cache_new(void)
{
    struct weft_counts_cache *cache = weft_alloc(1, sizeof(*cache));
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->done, NULL);
    return cache;
}

/* Under the lock, or when no other thread has the cache. */
static void leave(struct counted *counted)
{
    if (!counted || --counted->readers > 0)
        return;
    weft_arena_free(counted->arena);
    free(counted);
}

void weft_counts_cache_free(struct weft_counts_cache *cache)
{
    if (!cache)
        return;
    leave(cache->counted);
    pthread_cond_destroy(&cache->done);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* The first lane of the list, which is sorted, that comes behind `lane` of a namespace; lane NULL:
 * behind all of it. */
static size_t first_behind(const struct weft_all_counts *all, const char *ns, const char *lane)
{
    size_t low = 0, high = all->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(all->item[middle].ns, ns);
        if (order == 0)
            order = lane ? strcmp(all->item[middle].lane.lane, lane) : -1;
        if (order <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The lanes of a namespace: a stretch of the list. No lane is called "". */
static const struct weft_counted_lane *lanes_of(const struct counted *counted, const char *ns,
                                                size_t *ret_count)
{
    const struct weft_all_counts *all = &counted->all;
    size_t first = first_behind(all, ns, "");
    *ret_count = first_behind(all, ns, NULL) - first;
    return all->item + first;
}

static void write_json(const struct counted *counted, const struct weft_counts_of *of,
                       struct weft_buf *text)
{
    size_t count;
    const struct weft_counted_lane *item = lanes_of(counted, of->ns, &count);
    struct weft_json_writer out;
    weft_json_writer_init(&out, text);
    weft_json_begin_object(&out);
    weft_json_add_i64(&out, "age_ms", (weft_boot_us() - counted->computed_us) / WEFT_MS);
    weft_json_key(&out, "as_of");
    weft_wire_put_moment(&out, counted->all.as_of_us);
    weft_json_add_array(&out, "items");
    for (size_t i = 0; i < count; i++)
        if (!of->lane || strcmp(item[i].lane.lane, of->lane) == 0)
            weft_wire_write(&weft_wire_lane_count, &item[i].lane, &out);
    weft_json_end_array(&out);
    weft_json_end_object(&out);
}

/* NAME{namespace="NS",lane="LANE" */
static void put_lane(struct weft_buf *text, const char *name, const char *ns, const char *lane)
{
    weft_buf_printf(text, "%s{", name);
    weft_metrics_put_label(text, "namespace", ns);
    weft_buf_add_char(text, ',');
    weft_metrics_put_label(text, "lane", lane);
}

static void write_metrics(const struct counted *counted, const char *ns, struct weft_buf *text)
{
    size_t count;
    const struct weft_counted_lane *item = lanes_of(counted, ns, &count);
    weft_metrics_head(text, "weft_executions", "gauge", "Living executions by lane and state.");
    for (size_t i = 0; i < count; i++)
        for (enum weft_state state = WEFT_STATE_NONE + 1; state < WEFT_STATE_COUNT; state++) {
            if (!weft_state_living(state))
                continue;
            put_lane(text, "weft_executions", ns, item[i].lane.lane);
            weft_buf_printf(text, ",state=\"%s\"} %" PRIu64 "\n", weft_state_name(state),
                            item[i].lane.count[state]);
        }
    weft_metrics_head(text, "weft_draining", "gauge",
                      "Leases that others ended and whose workers have not let go, by lane.");
    for (size_t i = 0; i < count; i++) {
        put_lane(text, "weft_draining", ns, item[i].lane.lane);
        weft_buf_printf(text, "} %" PRIu64 "\n", item[i].lane.draining);
    }
    weft_metrics_head(text, "weft_executions_escalated", "gauge",
                      "Suspended executions that were left to an operator, by lane.");
    for (size_t i = 0; i < count; i++) {
        put_lane(text, "weft_executions_escalated", ns, item[i].lane.lane);
        weft_buf_printf(text, "} %" PRIu64 "\n", item[i].lane.escalated);
    }
}

static void write_text(const struct counted *counted, const struct weft_counts_of *of,
                       struct weft_buf *out)
{
    if (counted->err.rc)
        return;
    if (of->text == WEFT_COUNTS_JSON)
        write_json(counted, of, out);
    else
        write_metrics(counted, of->ns, out);
}

/* ---- Computing ------------------------------------------------------------------------------- */

/* Without the lock; a failure is an answer too, or all that wait would try it in turn. */
static struct counted *compute(struct weft_engine *engine)
{
    struct counted *counted = weft_alloc(1, sizeof(*counted));
    counted->readers = 1;
    counted->arena = weft_arena_new();
    counted->computed_us = weft_boot_us();
    enum weft_rc rc = weft_engine_all_counts(engine, counted->arena, &counted->all, &counted->err);
    if (rc)
        counted->all.count = 0;
    /* It outlives the call, and the names that the engine caches may not. */
    for (size_t i = 0; i < counted->all.count; i++) {
        struct weft_counted_lane *item = &counted->all.item[i];
        bool same = i > 0 && strcmp(item[-1].ns, item->ns) == 0;
        item->ns = same ? item[-1].ns : weft_arena_strdup(counted->arena, item->ns);
        item->lane.lane = weft_arena_strdup(counted->arena, item->lane.lane);
    }
    counted->took_us = weft_boot_us() - counted->computed_us;
    return counted;
}

/* How long a result is fresh: longer when it took long to compute. */
static weft_usec fresh_for(const struct counted *counted)
{
    weft_usec pause_us = counted->took_us * COST_PARTS;
    if (pause_us > STALE_US / 2)
        pause_us = STALE_US / 2;
    return pause_us > FRESH_US ? pause_us : FRESH_US;
}

/* A result that is fresh enough, computed by this thread if need be. The caller is a reader of it.
 */
static struct counted *take(struct weft_counts_cache *cache, struct weft_engine *engine)
{
    pthread_mutex_lock(&cache->lock);
    for (;;) {
        struct counted *counted = cache->counted;
        weft_usec age_us = counted ? weft_boot_us() - counted->computed_us : WEFT_NEVER;
        if (counted && (age_us < fresh_for(counted) || (cache->busy && age_us < STALE_US)))
            break;
        if (cache->busy) {
            pthread_cond_wait(&cache->done, &cache->lock);
            continue;
        }
        cache->busy = true;
        pthread_mutex_unlock(&cache->lock);
        struct counted *newest = compute(engine);
        pthread_mutex_lock(&cache->lock);
        leave(cache->counted);
        cache->counted = newest;
        cache->busy = false;
        pthread_cond_broadcast(&cache->done);
        break;
    }
    struct counted *taken = cache->counted;
    taken->readers++;
    pthread_mutex_unlock(&cache->lock);
    return taken;
}

static void give_back(struct weft_counts_cache *cache, struct counted *counted)
{
    pthread_mutex_lock(&cache->lock);
    leave(counted);
    pthread_mutex_unlock(&cache->lock);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

enum weft_rc weft_counts_cache_get(struct weft_counts_cache *cache, struct weft_engine *engine,
                                   const struct weft_counts_of *of, struct weft_buf *out,
                                   struct weft_err *err)
{
    enum weft_rc rc = of->lane ? weft_name_check(of->lane, "lane", err) : WEFT_OK;
    if (rc)
        return rc;
    struct counted *counted = take(cache, engine);
    if (of->text == WEFT_COUNTS_METRICS) {
        pthread_mutex_lock(&cache->lock);
        cache->scraped_us = weft_boot_us();
        pthread_mutex_unlock(&cache->lock);
    }
    write_text(counted, of, out);
    rc = counted->err.rc;
    if (rc && err)
        *err = counted->err;
    give_back(cache, counted);
    return rc;
}

enum weft_rc weft_counts_cache_lanes(struct weft_counts_cache *cache, struct weft_engine *engine,
                                     const struct weft_lanes_of *of, struct weft_arena *arena,
                                     struct weft_texts *ret_lanes, struct weft_err *err)
{
    struct counted *counted = take(cache, engine);
    size_t first = first_behind(&counted->all, of->ns, of->after);
    size_t count = first_behind(&counted->all, of->ns, NULL) - first;
    if (count > of->most)
        count = of->most;
    const char **name = weft_new_array(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++)
        name[i] = weft_arena_strdup(arena, counted->all.item[first + i].lane.lane);
    enum weft_rc rc = counted->err.rc;
    if (rc && err)
        *err = counted->err;
    *ret_lanes = (struct weft_texts){.item = name, .count = count};
    give_back(cache, counted);
    return rc;
}

bool weft_counts_cache_glance(struct weft_counts_cache *cache, const struct weft_counts_of *of,
                              bool old, struct weft_buf *out)
{
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&cache->lock);
    cache->scraped_us = now_us;
    struct counted *counted = cache->counted;
    bool given = counted && (old || (!counted->err.rc && now_us - counted->computed_us < STALE_US));
    if (given)
        counted->readers++;
    pthread_mutex_unlock(&cache->lock);
    if (!given)
        return false;
    write_text(counted, of, out);
    give_back(cache, counted);
    return true;
}

/* ---- Keeping --------------------------------------------------------------------------------- */

static bool is_due(const struct weft_counts_cache *cache)
{
    const struct counted *counted = cache->counted;
    if (!counted || cache->busy || cache->scraped_us == 0)
        return false;
    weft_usec now_us = weft_boot_us(), pause_us = fresh_for(counted);
    return now_us - cache->scraped_us < KEPT_US &&
           now_us - counted->computed_us >= (pause_us > KEEP_US ? pause_us : KEEP_US);
}

static void compute_kept(struct weft_server *server, void *context)
{
    struct weft_counts_cache *cache = context;
    give_back(cache, take(cache, server->engine));
    pthread_mutex_lock(&cache->lock);
    cache->keeping = false;
    pthread_mutex_unlock(&cache->lock);
}

void weft_counts_keep(struct weft_server *server)
{
    struct weft_counts_cache *cache = server->api->counts;
    pthread_mutex_lock(&cache->lock);
    bool begins = !cache->keeping && is_due(cache);
    cache->keeping |= begins;
    pthread_mutex_unlock(&cache->lock);
    if (begins)
        weft_groups_do(server->groups, compute_kept, cache);
}

/* ---- The request ----------------------------------------------------------------------------- */

enum weft_rc weft_counts_read(struct weft_request *request, struct weft_err *err)
{
    const char *lane = weft_request_query(request, "lane");
    return lane ? weft_name_check(lane, "lane", err) : WEFT_OK;
}

enum weft_rc weft_counts_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_counts_of of = {
        .ns = request->ns, .lane = weft_request_query(request, "lane"), .text = WEFT_COUNTS_JSON};
    struct weft_buf text;
    weft_buf_init(&text, TEXT_MAX);
    enum weft_rc rc = weft_counts_cache_get(request->server->api->counts, request->server->engine,
                                            &of, &text, err);
    if (!rc)
        weft_reply_bytes(request, text.data, text.size, "application/json");
    weft_buf_done(&text);
    return rc;
}
