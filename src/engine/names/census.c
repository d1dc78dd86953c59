/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How many queues and worker names each namespace has, for the limits on them.
 *
 * The number is a count of rows in the store, which stops at the limit, plus the rows that this
 * process has reserved since, including rows that existed and were new to this process alone. So
 * the number is too low by the rows that other replicas have added since the count: a namespace may
 * exceed its limit by as many rows as they add in a minute. If there is no room, this process
 * counts again, unless it reserved nothing since the last count and that count is less than a
 * second old: so a full namespace costs one count a second, however many submissions are refused.
 */

#include "engine/names/census.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/engine_state.h"

#include <stdlib.h>

#define MAX_AGE_US (60 * WEFT_SECOND)
#define MIN_AGE_US WEFT_SECOND

struct counted {
    int32_t ns;
    size_t rows;
    size_t reserved; /* of these, since they were counted; some may have existed already */
    weft_usec at_us; /* boot time */
};

void weft_census_init(struct weft_census *census, const struct weft_engine_config *config)
{
    *census =
        (struct weft_census){.kind = {[WEFT_CENSUS_QUEUES].most = config->namespace_queues,
                                      [WEFT_CENSUS_WORKERS].most = config->namespace_workers}};
    pthread_mutex_init(&census->lock, NULL);
}

void weft_census_done(struct weft_census *census)
{
    for (size_t kind = 0; kind < WEFT_CENSUS_KINDS; kind++) {
        struct weft_int_map *ns = &census->kind[kind].ns;
        for (size_t i = 0; i < ns->capacity; i++)
            free(ns->slot[i]);
        weft_int_map_done(ns);
    }
    pthread_mutex_destroy(&census->lock);
}

/* Reserves room for `wanted` rows; false, and nothing is done: they have to be counted. */
static bool reserve(struct weft_census *census, enum weft_census_kind kind, int32_t ns,
                    size_t wanted, bool was_counted, size_t *ret_room)
{
    weft_usec now_us = weft_boot_us();
    size_t most = census->kind[kind].most;
    pthread_mutex_lock(&census->lock);
    struct counted *counted = weft_int_map_find(&census->kind[kind].ns, ns);
    weft_usec age_us = counted ? now_us - counted->at_us : MAX_AGE_US + 1;
    size_t room = counted && counted->rows < most ? most - counted->rows : 0;
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

static enum weft_rc count_rows(struct weft_engine *engine, enum weft_census_kind kind, int32_t ns,
                               struct weft_err *err)
{
    struct weft_census *census = &engine->census;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    bool queues = kind == WEFT_CENSUS_QUEUES;
    weft_call_init(&call, arena, queues ? WEFT_STMT_NAMESPACE_QUEUES : WEFT_STMT_NAMESPACE_WORKERS,
                   0);
    *weft_in_namespace_queues(&call) =
        (struct weft_namespace_queues_in){.namespace = ns, .most = census->kind[kind].most};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (!rc) {
        pthread_mutex_lock(&census->lock);
        struct counted *counted = weft_int_map_find(&census->kind[kind].ns, ns);
        if (!counted) {
            counted = weft_alloc(1, sizeof(*counted));
            counted->ns = ns;
            weft_int_map_put(&census->kind[kind].ns, counted);
        }
        counted->rows = queues ? weft_out_namespace_queues(&rows)->queues
                               : weft_out_namespace_workers(&rows)->workers;
        counted->reserved = 0;
        counted->at_us = weft_boot_us();
        pthread_mutex_unlock(&census->lock);
    }
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_census_room(struct weft_engine *engine, enum weft_census_kind kind, int32_t ns,
                              size_t wanted, size_t *ret_room, struct weft_err *err)
{
    *ret_room = wanted;
    if (engine->census.kind[kind].most == 0 ||
        reserve(&engine->census, kind, ns, wanted, false, ret_room))
        return WEFT_OK;
    enum weft_rc rc = count_rows(engine, kind, ns, err);
    if (!rc)
        (void)reserve(&engine->census, kind, ns, wanted, true, ret_room);
    return rc;
}

enum weft_rc weft_census_refuse(const struct weft_engine *engine, enum weft_census_kind kind,
                                const char *ns, struct weft_err *err)
{
    uint32_t most = engine->census.kind[kind].most;
    if (kind == WEFT_CENSUS_WORKERS)
        return weft_hint(
            err,
            weft_fail_field(err, WEFT_LIMIT_EXCEEDED, "worker",
                            "namespace '%s' has %u names of workers, as many as are allowed", ns,
                            most),
            "give workers names that they keep when they start again; names that are not used any "
            "more go after unused_names_after; or raise namespace_workers of the server");
    return weft_hint(
        err,
        weft_fail(err, WEFT_LIMIT_EXCEEDED,
                  "namespace '%s' has %u queues, as many as are allowed: a queue is a distinct "
                  "lane, kind, tenant and set of capabilities",
                  ns, most),
        "use fewer distinct tenants, kinds, lanes or capabilities, or raise "
        "namespace_queues of the server");
}
