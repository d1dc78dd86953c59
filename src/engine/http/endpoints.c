/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/http/endpoints.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "engine/engine_state.h"
#include "engine/http/settings.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What is counted; the arena holds it and all that the endpoint points to. */
struct counted {
    struct weft_known_endpoint known; /* first, for the release */
    struct weft_endpoint setting;
    struct weft_arena *arena;
    atomic_size_t holders;
};

void weft_endpoints_init(struct weft_known_endpoints *known)
{
    *known = (struct weft_known_endpoints){0};
    pthread_mutex_init(&known->lock, NULL);
}

static const struct weft_known_endpoint *hold(const struct weft_known_endpoint *endpoint)
{
    if (endpoint)
        atomic_fetch_add(&((struct counted *)(uintptr_t)endpoint)->holders, 1);
    return endpoint;
}

void weft_endpoint_release(const struct weft_known_endpoint *endpoint)
{
    struct counted *counted = (struct counted *)(uintptr_t)endpoint;
    if (counted && atomic_fetch_sub(&counted->holders, 1) == 1)
        weft_arena_free(counted->arena);
}

static void release_all(const struct weft_known_endpoint **item, size_t count)
{
    for (size_t i = 0; i < count; i++)
        weft_endpoint_release(item[i]);
    free(item);
}

void weft_endpoints_done(struct weft_known_endpoints *known)
{
    release_all(known->item, known->count);
    pthread_mutex_destroy(&known->lock);
}

/* ---- Looking --------------------------------------------------------------------------------- */

static int order(const struct weft_known_endpoint *endpoint, const char *ns, const char *name)
{
    int by_ns = strcmp(endpoint->ns, ns);
    return by_ns ? by_ns : strcmp(endpoint->setting->name, name);
}

/* Under known->lock. */
static const struct weft_known_endpoint *find(const struct weft_known_endpoints *known,
                                              const char *ns, const char *name)
{
    size_t low = 0, high = known->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int way = order(known->item[middle], ns, name);
        if (way == 0)
            return known->item[middle];
        if (way < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct weft_known_endpoint *weft_endpoint_get(struct weft_engine *engine, const char *ns,
                                                    const char *name)
{
    struct weft_known_endpoints *known = &engine->endpoints;
    pthread_mutex_lock(&known->lock);
    const struct weft_known_endpoint *endpoint = hold(find(known, ns, name));
    pthread_mutex_unlock(&known->lock);
    return endpoint;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/*
 * A new endpoint from its row, held once. NULL: these settings are not allowed here. They were
 * checked when they were put, by a binary whose rules may have been others; calls to the endpoint
 * fail until it is put again.
 */
static const struct weft_known_endpoint *make(const struct weft_endpoints_all_out *row)
{
    struct weft_arena *arena = weft_arena_new();
    struct counted *counted = weft_new(arena, struct counted);
    struct weft_endpoint stored = weft_endpoint_of_row(&row->endpoint, arena);
    struct weft_endpoint_parts parts;
    if (weft_endpoint_resolve(&stored, arena, &counted->setting, &parts, NULL)) {
        weft_arena_free(arena);
        return NULL;
    }
    counted->arena = arena;
    counted->known = (struct weft_known_endpoint){.ns = weft_arena_strdup(arena, row->space),
                                                  .setting = &counted->setting,
                                                  .url = parts.url,
                                                  .retry = parts.retry,
                                                  .auth = parts.auth,
                                                  .version = stored.version};
    atomic_init(&counted->holders, 1);
    return &counted->known;
}

/*
 * Takes over what was read. Of two threads the later may bring the older: the poll repairs that, as
 * the number is another one then. A number that went back is that of a store which lost commits in
 * a promotion, so versions of before mean nothing.
 */
static void keep(struct weft_known_endpoints *known, const struct weft_rows *rows, int64_t version)
{
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
    const struct weft_known_endpoint **item = weft_alloc(rows->count + 1, sizeof(*item));
    const struct weft_known_endpoint **before;
    size_t count = 0, count_before;
    pthread_mutex_lock(&known->lock);
    bool goes_on = version >= known->version;
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_endpoints_all_out *row = &weft_out_endpoints_all(rows)[i];
        const struct weft_known_endpoint *is = find(known, row->space, row->endpoint.name);
        bool same = is && goes_on && is->version == (uint64_t)row->endpoint.version;
        item[count] = same ? hold(is) : make(row);
        count += item[count] != NULL;
    }
    before = known->item;
    count_before = known->count;
    known->item = item;
    known->count = count;
    known->version = version;
    pthread_mutex_unlock(&known->lock);
    release_all(before, count_before);
}

struct reading {
    struct weft_rows rows;
    int64_t version;
};

static enum weft_rc read_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct reading *reading = context;
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_endpoints_version(&call, tx->arena);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    reading->version = weft_out_endpoints_version(&rows)->version;
    weft_call_endpoints_all(&call, tx->arena);
    return weft_tx_run(tx, &call, 1, &reading->rows, err);
}

enum weft_rc weft_endpoints_read(struct weft_engine *engine, struct weft_err *err)
{
    struct reading reading = {.version = 0};
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_READ, read_body, &reading, err);
    if (!rc)
        keep(&engine->endpoints, &reading.rows, reading.version);
    weft_arena_free(tx.arena);
    return rc;
}

enum weft_rc weft_endpoints_seen(struct weft_engine *engine, int64_t version, struct weft_err *err)
{
    struct weft_known_endpoints *known = &engine->endpoints;
    pthread_mutex_lock(&known->lock);
    bool same = known->version == version;
    pthread_mutex_unlock(&known->lock);
    return same ? WEFT_OK : weft_endpoints_read(engine, err);
}
