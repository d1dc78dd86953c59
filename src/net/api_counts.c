/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts, cached. An entry is computed by one caller; others who come meanwhile get what was
 * computed before, if that is not too old, and wait otherwise. The names come from outside, so the
 * cache has a fixed size and the entry that was not used for longest gives way.
 */

#include "net/api.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "core/spec.h"
#include "core/state.h"
#include "net/metrics.h"
#include "wire/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 256, TEXT_MAX = 16 << 20 };

#define FRESH_US WEFT_SECOND        /* younger than this is given as it is */
#define STALE_US (10 * WEFT_SECOND) /* older than this is not given while another computes */
/*
 * Counts of a namespace whose metrics are asked for are kept: computed again each second, or more
 * rarely, so that it takes at most one part in COST_PARTS of the time. Until nobody asked for long.
 */
#define KEPT_US (300 * WEFT_SECOND)
enum { COST_PARTS = 20, KEPT_MAX = 16 };

struct entry {
    char *key;  /* owned; namespace, newline, lane; NULL: free */
    bool busy;  /* somebody computes */
    bool known; /* it was computed; the texts hold it, or err says why not */
    struct weft_err err;
    weft_usec computed_us; /* boot time, when the computing began */
    weft_usec took_us;     /* the computing */
    weft_usec used_us;
    weft_usec scraped_us; /* when its metrics were last asked for; 0: never */
    struct weft_buf json, metrics;
};

struct weft_counts_cache {
    pthread_mutex_t lock;
    pthread_cond_t done; /* an entry is not busy any more */
    bool keeping;        /* an engine thread is computing what is kept, or will */
    struct entry entry[ENTRIES];
};

struct weft_counts_cache *weft_counts_cache_new(void)
{
    struct weft_counts_cache *cache = calloc(1, sizeof(*cache));
    if (!cache)
        weft_oom(sizeof(*cache));
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->done, NULL);
    return cache;
}

static void empty(struct entry *entry)
{
    free(entry->key);
    weft_buf_done(&entry->json);
    weft_buf_done(&entry->metrics);
    *entry = (struct entry){0};
}

void weft_counts_cache_free(struct weft_counts_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < ENTRIES; i++)
        empty(&cache->entry[i]);
    pthread_cond_destroy(&cache->done);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* The answer without its age, which is put before it when it is given: see give_json(). */
static void write_json(const struct weft_counts *counts, struct weft_buf *text)
{
    struct weft_json_writer out;
    weft_json_writer_init(&out, text);
    weft_json_begin_object(&out);
    weft_json_key(&out, "as_of");
    weft_wire_put_moment(&out, counts->as_of_us);
    weft_json_key(&out, "items");
    weft_json_begin_array(&out);
    for (size_t i = 0; i < counts->count; i++)
        weft_wire_write(&weft_wire_lane_count, &counts->item[i], &out);
    weft_json_end_array(&out);
    weft_json_end_object(&out);
}

static void give_json(const struct entry *entry, struct weft_buf *out)
{
    const struct weft_buf *text = &entry->json;
    if (text->size == 0)
        return; /* it could not be counted */
    weft_buf_printf(out, "{\"age_ms\":%" PRId64 ",",
                    (weft_boot_us() - entry->computed_us) / WEFT_MS);
    weft_buf_add(out, text->data + 1, text->size - 1); /* but for the brace */
}

static void write_metric(const char *ns, const struct weft_lane_count *lane, enum weft_state state,
                         struct weft_buf *text)
{
    weft_buf_add_text(text, "weft_executions{");
    weft_metrics_put_label(text, "namespace", ns);
    weft_buf_add_char(text, ',');
    weft_metrics_put_label(text, "lane", lane->lane);
    weft_buf_add_char(text, ',');
    weft_metrics_put_label(text, "state", weft_state_name(state));
    weft_buf_printf(text, "} %" PRIu64 "\n", lane->count[state]);
}

static void write_metrics(const char *ns, const struct weft_counts *counts, struct weft_buf *text)
{
    weft_metrics_head(text, "weft_executions", "gauge", "Living executions by lane and state.");
    for (size_t i = 0; i < counts->count; i++)
        for (int state = WEFT_STATE_NONE + 1; state < WEFT_STATE_COUNT; state++)
            if (weft_state_living((enum weft_state)state))
                write_metric(ns, &counts->item[i], (enum weft_state)state, text);
    weft_metrics_head(text, "weft_draining", "gauge",
                      "Leases that others ended and whose workers have not let go, by lane.");
    for (size_t i = 0; i < counts->count; i++) {
        weft_buf_add_text(text, "weft_draining{");
        weft_metrics_put_label(text, "namespace", ns);
        weft_buf_add_char(text, ',');
        weft_metrics_put_label(text, "lane", counts->item[i].lane);
        weft_buf_printf(text, "} %" PRIu64 "\n", counts->item[i].draining);
    }
}

/* ---- Entries, under the lock ----------------------------------------------------------------- */

enum { KEY_MAX = 2 * (WEFT_NAME_MAX + 1) };

/* Names have no newline, and no lane is empty. */
static void write_key(const struct weft_counts_of *of, char key[KEY_MAX])
{
    (void)snprintf(key, KEY_MAX, "%s\n%s", of->ns, of->lane ? of->lane : "");
}

/* The entry of a key, or the one that gives way to it; NULL when all are being computed. */
static struct entry *find(struct weft_counts_cache *cache, const char *key)
{
    struct entry *oldest = NULL;
    for (size_t i = 0; i < ENTRIES; i++) {
        struct entry *entry = &cache->entry[i];
        if (entry->key && strcmp(entry->key, key) == 0)
            return entry;
        if (!entry->busy && (!oldest || entry->used_us < oldest->used_us))
            oldest = entry;
    }
    if (!oldest)
        return NULL;
    empty(oldest);
    oldest->key = strdup(key);
    if (!oldest->key)
        weft_oom(strlen(key) + 1);
    return oldest;
}

/* Waits until the entry can be given or computed. */
static struct entry *take(struct weft_counts_cache *cache, const char *key)
{
    for (;;) {
        weft_usec now_us = weft_boot_us();
        struct entry *entry = find(cache, key);
        if (entry && (!entry->busy || (entry->known && now_us - entry->computed_us < STALE_US))) {
            entry->used_us = now_us;
            return entry;
        }
        pthread_cond_wait(&cache->done, &cache->lock);
    }
}

static bool is_fresh(const struct entry *entry)
{
    return entry->known && (entry->busy || weft_boot_us() - entry->computed_us < FRESH_US);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* Computes a busy entry, which is the caller's, without the lock. */
static void compute(struct weft_engine *engine, const struct weft_counts_of *of,
                    struct entry *ret_new)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_counts counts;
    ret_new->computed_us = weft_boot_us();
    weft_buf_init(&ret_new->json, TEXT_MAX);
    weft_buf_init(&ret_new->metrics, TEXT_MAX);
    if (!weft_engine_counts(engine, of->ns, of->lane, arena, &counts, &ret_new->err)) {
        write_json(&counts, &ret_new->json);
        write_metrics(of->ns, &counts, &ret_new->metrics);
    }
    weft_arena_free(arena);
    ret_new->took_us = weft_boot_us() - ret_new->computed_us;
}

/* Puts what was computed in place: a failure too, or all who wait would try it in turn. */
static void settle(struct weft_counts_cache *cache, struct entry *entry, struct entry *computed)
{
    computed->key = entry->key;
    computed->used_us = entry->used_us;
    computed->scraped_us = entry->scraped_us;
    computed->known = true;
    entry->key = NULL;
    empty(entry);
    *entry = *computed;
    pthread_cond_broadcast(&cache->done);
}

enum weft_rc weft_counts_cache_get(struct weft_counts_cache *cache, struct weft_engine *engine,
                                   const struct weft_counts_of *of, struct weft_buf *out,
                                   struct weft_err *err)
{
    enum weft_rc rc = of->lane ? weft_name_check(of->lane, "lane", err) : WEFT_OK;
    if (rc)
        return rc;
    char key[KEY_MAX];
    write_key(of, key);
    pthread_mutex_lock(&cache->lock);
    struct entry *entry = take(cache, key);
    if (of->text == WEFT_COUNTS_METRICS && !of->keeps)
        entry->scraped_us = entry->used_us;
    if (!is_fresh(entry)) {
        struct entry computed = {0};
        entry->busy = true;
        pthread_mutex_unlock(&cache->lock);
        compute(engine, of, &computed);
        pthread_mutex_lock(&cache->lock);
        settle(cache, entry, &computed);
    }
    if (of->text == WEFT_COUNTS_JSON)
        give_json(entry, out);
    else
        weft_buf_add(out, entry->metrics.data, entry->metrics.size);
    rc = entry->err.rc;
    if (rc && err)
        *err = entry->err;
    pthread_mutex_unlock(&cache->lock);
    return rc;
}

bool weft_counts_cache_glance(struct weft_counts_cache *cache, const struct weft_counts_of *of,
                              bool old, struct weft_buf *out)
{
    char key[KEY_MAX];
    bool given = false;
    write_key(of, key);
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < ENTRIES; i++) {
        struct entry *entry = &cache->entry[i];
        if (!entry->known || strcmp(entry->key, key) != 0)
            continue;
        weft_usec now_us = weft_boot_us();
        entry->used_us = entry->scraped_us = now_us;
        given = old || (!entry->err.rc && now_us - entry->computed_us < STALE_US);
        if (given)
            weft_buf_add(out, entry->metrics.data, entry->metrics.size);
    }
    pthread_mutex_unlock(&cache->lock);
    return given;
}

/* ---- Keeping --------------------------------------------------------------------------------- */

static bool is_due(const struct entry *entry, weft_usec now_us)
{
    weft_usec pause_us = entry->took_us * COST_PARTS;
    return entry->known && !entry->busy && entry->scraped_us > 0 &&
           now_us - entry->scraped_us < KEPT_US &&
           now_us - entry->computed_us >= (pause_us > FRESH_US ? pause_us : FRESH_US);
}

/* The namespaces of entries that are due, one text for each; how many they are. */
static size_t list_due(struct weft_counts_cache *cache, char ns[KEPT_MAX][KEY_MAX])
{
    size_t count = 0;
    weft_usec now_us = weft_boot_us();
    for (size_t i = 0; i < ENTRIES && count < KEPT_MAX; i++) {
        const struct entry *entry = &cache->entry[i];
        if (is_due(entry, now_us))
            (void)snprintf(ns[count++], KEY_MAX, "%.*s", (int)strcspn(entry->key, "\n"),
                           entry->key);
    }
    return count;
}

static void compute_kept(struct weft_server *server, void *context)
{
    struct weft_counts_cache *cache = context;
    char ns[KEPT_MAX][KEY_MAX];
    pthread_mutex_lock(&cache->lock);
    size_t count = list_due(cache, ns);
    pthread_mutex_unlock(&cache->lock);
    for (size_t i = 0; i < count; i++) {
        const struct weft_counts_of of = {.ns = ns[i], .text = WEFT_COUNTS_METRICS, .keeps = true};
        struct weft_buf ignored;
        weft_buf_init(&ignored, TEXT_MAX);
        enum weft_rc rc =
            weft_counts_cache_get(cache, weft_server_engine(server), &of, &ignored, NULL);
        (void)rc; /* it is in the entry */
        weft_buf_done(&ignored);
    }
    pthread_mutex_lock(&cache->lock);
    cache->keeping = false;
    pthread_mutex_unlock(&cache->lock);
}

void weft_counts_keep(struct weft_server *server)
{
    struct weft_counts_cache *cache = weft_api_counts(weft_server_api(server));
    char ns[KEPT_MAX][KEY_MAX];
    pthread_mutex_lock(&cache->lock);
    bool begins = !cache->keeping && list_due(cache, ns) > 0;
    cache->keeping |= begins;
    pthread_mutex_unlock(&cache->lock);
    if (begins)
        weft_server_do(server, compute_kept, cache);
}

/* ---- GET /v1/counts -------------------------------------------------------------------------- */

enum weft_rc weft_counts_read(struct weft_ask *ask, struct weft_err *err)
{
    const char *lane = weft_ask_query(ask, "lane");
    return lane ? weft_name_check(lane, "lane", err) : WEFT_OK;
}

enum weft_rc weft_counts_run(struct weft_ask *ask, struct weft_err *err)
{
    const struct weft_counts_of of = {
        .ns = ask->ns, .lane = weft_ask_query(ask, "lane"), .text = WEFT_COUNTS_JSON};
    struct weft_buf text;
    weft_buf_init(&text, TEXT_MAX);
    enum weft_rc rc = weft_counts_cache_get(weft_api_counts(weft_server_api(ask->server)),
                                            weft_server_engine(ask->server), &of, &text, err);
    if (!rc)
        weft_reply_bytes(ask, text.data, text.size, "application/json");
    weft_buf_done(&text);
    return rc;
}
