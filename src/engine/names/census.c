/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How many queues and worker names each namespace has, for the limits on them.
 *
 * The number is that of a count of the store, which stops at the limit, and of what this process
 * has reserved since, which includes rows that existed and were new to this process alone. So it
 * is below the truth by no more than other replicas have added since the count: the limit may be
 * passed by as many as they add in a minute. Where it says that there is no room, the store is
 * counted again, unless nothing was reserved since the last count and that was within the last
 * second: so a namespace that is full costs a count a second, however often it tries.
 */

#include "engine/names/census.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/engine_state.h"

#include <assert.h>
#include <stdlib.h>

#define MAX_AGE_US (60 * WEFT_SECOND)
#define MIN_AGE_US WEFT_SECOND

struct counted {
    int32_t ns;
    size_t rows;
    size_t reserved; /* of these, since they were counted; some may have existed already */
    weft_usec at_us; /* boot time */
};

/* What is counted: queues, or worker names. */
struct kind {
    struct weft_int_map *ns; /* of struct counted; census.lock */
    uint32_t most;
    enum weft_stmt stmt; /* namespace_queues, or its like */
};

void weft_census_init(struct weft_census *census, const struct weft_engine_config *config)
{
    *census = (struct weft_census){.most = config->namespace_queues,
                                   .most_workers = config->namespace_workers};
    pthread_mutex_init(&census->lock, NULL);
}

static void free_counted(struct weft_int_map *ns)
{
    for (size_t i = 0; i < ns->capacity; i++)
        free(ns->slot[i]);
    weft_int_map_done(ns);
}

void weft_census_done(struct weft_census *census)
{
    free_counted(&census->ns);
    free_counted(&census->workers);
    pthread_mutex_destroy(&census->lock);
}

/* Reserves room for `wanted` rows; false, and nothing is done: they have to be counted. */
static bool reserve(struct weft_census *census, const struct kind *kind, int32_t ns, size_t wanted,
                    bool was_counted, size_t *ret_room)
{
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&census->lock);
    struct counted *counted = weft_int_map_find(kind->ns, ns);
    weft_usec age_us = counted ? now_us - counted->at_us : MAX_AGE_US + 1;
    size_t room = counted && counted->rows < kind->most ? kind->most - counted->rows : 0;
    bool exact = counted && counted->reserved == 0 && age_us <= MIN_AGE_US;
    bool known = counted && (was_counted || exact || (room >= wanted && age_us <= MAX_AGE_US));
    if (known) {
        *ret_room = room < wanted ? room : wanted;
        counted->rows += *ret_room;
        counted->reserved += *ret_room;
    }
    pthread_mutex_unlock(&census->lock);
    return known;
}

static enum weft_rc count_rows(struct weft_engine *engine, const struct kind *kind, int32_t ns,
                               struct weft_err *err)
{
    struct weft_census *census = &engine->census;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_init(&call, arena, kind->stmt, 0);
    struct weft_namespace_queues_in *in = weft_in_namespace_queues(&call);
    in->namespace = ns;
    in->most = kind->most;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (!rc) {
        pthread_mutex_lock(&census->lock);
        struct counted *counted = weft_int_map_find(kind->ns, ns);
        if (!counted) {
            counted = weft_alloc(1, sizeof(*counted));
            counted->ns = ns;
            weft_int_map_put(kind->ns, counted);
        }
        counted->rows = kind->stmt == WEFT_STMT_NAMESPACE_QUEUES
                            ? weft_out_namespace_queues(&rows)->queues
                            : weft_out_namespace_workers(&rows)->workers;
        counted->reserved = 0;
        counted->at_us = weft_boot_us();
        pthread_mutex_unlock(&census->lock);
    }
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc find_room(struct weft_engine *engine, const struct kind *kind, int32_t ns,
                              size_t wanted, size_t *ret_room, struct weft_err *err)
{
    if (reserve(&engine->census, kind, ns, wanted, false, ret_room))
        return WEFT_OK;
    enum weft_rc rc = count_rows(engine, kind, ns, err);
    if (!rc)
        (void)reserve(&engine->census, kind, ns, wanted, true, ret_room);
    return rc;
}

enum weft_rc weft_census_room(struct weft_engine *engine, int32_t ns, size_t wanted,
                              size_t *ret_room, struct weft_err *err)
{
    const struct kind queues = {
        .ns = &engine->census.ns, .most = engine->census.most, .stmt = WEFT_STMT_NAMESPACE_QUEUES};
    return find_room(engine, &queues, ns, wanted, ret_room, err);
}

enum weft_rc weft_census_workers(struct weft_engine *engine, int32_t ns, size_t wanted,
                                 size_t *ret_room, struct weft_err *err)
{
    const struct kind workers = {.ns = &engine->census.workers,
                                 .most = engine->census.most_workers,
                                 .stmt = WEFT_STMT_NAMESPACE_WORKERS};
    return find_room(engine, &workers, ns, wanted, ret_room, err);
}

enum weft_rc weft_census_refuse_worker(const struct weft_engine *engine, const char *ns,
                                       struct weft_err *err)
{
    (void)weft_fail(err, WEFT_LIMIT_EXCEEDED,
                    "namespace '%s' has %u names of workers, as many as are allowed", ns,
                    engine->census.most_workers);
    err->field = "worker";
    err->hint =
        "give workers names that they keep when they start again; names that are not used any more "
        "go after unused_names_after; or raise namespace_workers of the server";
    return WEFT_LIMIT_EXCEEDED;
}

enum weft_rc weft_census_refuse(const struct weft_engine *engine, const char *ns,
                                struct weft_err *err)
{
    (void)weft_fail(err, WEFT_LIMIT_EXCEEDED,
                    "namespace '%s' has %u queues, as many as are allowed: a queue is a distinct "
                    "lane, kind, tenant and set of capabilities",
                    ns, engine->census.most);
    err->hint =
        "use fewer distinct tenants, kinds, lanes or capabilities, or raise "
        "namespace_queues of the server";
    return WEFT_LIMIT_EXCEEDED;
}
