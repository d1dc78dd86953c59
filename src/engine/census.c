/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How many queues each namespace has, for the limit on them.
 *
 * The number is that of a count of the store, which stops at the limit, and of what this process
 * has reserved since, which includes queues that existed and were new to this process alone. So it
 * is below the truth by no more than other replicas have added since the count: the limit may be
 * passed by as many as they add in a minute. Where it says that there is no room, the store is
 * counted again, unless nothing was reserved since the last count and that was within the last
 * second: so a namespace that is full costs a count a second, however often it tries.
 */

#include "engine/engine.h"

#include <stdlib.h>

#define MAX_AGE_US (60 * WEFT_SECOND)
#define MIN_AGE_US WEFT_SECOND

struct counted {
    int32_t ns;
    size_t queues;
    size_t reserved; /* of these, since they were counted; some may have existed already */
    weft_usec at_us; /* boot time */
};

void weft_census_init(struct weft_census *census, uint32_t most)
{
    *census = (struct weft_census){.most = most};
    pthread_mutex_init(&census->lock, NULL);
}

void weft_census_done(struct weft_census *census)
{
    for (size_t i = 0; i < census->ns.capacity; i++)
        free(census->ns.slot[i]);
    weft_index_done(&census->ns);
    pthread_mutex_destroy(&census->lock);
}

/* Reserves room for `wanted` queues; false, and nothing is done: they have to be counted. */
static bool reserve(struct weft_census *census, int32_t ns, size_t wanted, bool was_counted,
                    size_t *ret_room)
{
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&census->lock);
    struct counted *counted = weft_index_find(&census->ns, ns);
    weft_usec age_us = counted ? now_us - counted->at_us : MAX_AGE_US + 1;
    size_t room = counted && counted->queues < census->most ? census->most - counted->queues : 0;
    bool exact = counted && counted->reserved == 0 && age_us <= MIN_AGE_US;
    bool known = counted && (was_counted || exact || (room >= wanted && age_us <= MAX_AGE_US));
    if (known) {
        *ret_room = room < wanted ? room : wanted;
        counted->queues += *ret_room;
        counted->reserved += *ret_room;
    }
    pthread_mutex_unlock(&census->lock);
    return known;
}

static enum weft_rc count_queues(struct weft_engine *engine, int32_t ns, struct weft_err *err)
{
    struct weft_census *census = &engine->census;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, arena, WEFT_STMT_NAMESPACE_QUEUES, 0);
    weft_set_i64(&call, 0, NAMESPACE_QUEUES_IN_NAMESPACE, ns);
    weft_set_i64(&call, 0, NAMESPACE_QUEUES_IN_MOST, census->most);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (!rc) {
        pthread_mutex_lock(&census->lock);
        struct counted *counted = weft_index_find(&census->ns, ns);
        if (!counted) {
            counted = calloc(1, sizeof(*counted));
            if (!counted)
                weft_oom(sizeof(*counted));
            counted->ns = ns;
            weft_index_put(&census->ns, counted);
        }
        counted->queues = (size_t)weft_get_i64(&rows, 0, NAMESPACE_QUEUES_OUT_QUEUES);
        counted->reserved = 0;
        counted->at_us = weft_boot_us();
        pthread_mutex_unlock(&census->lock);
    }
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_census_room(struct weft_engine *engine, int32_t ns, size_t wanted,
                              size_t *ret_room, struct weft_err *err)
{
    if (reserve(&engine->census, ns, wanted, false, ret_room))
        return WEFT_OK;
    enum weft_rc rc = count_queues(engine, ns, err);
    if (!rc)
        (void)reserve(&engine->census, ns, wanted, true, ret_room);
    return rc;
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
