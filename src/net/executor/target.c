/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Targets: what is known of an endpoint of a namespace by the calls of this server, which decides
 * whether it claims for it. Kept in memory alone: each server learns by its own calls.
 */

#include "net/executor/executor_state.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "core/carried.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED_US ((weft_usec)10 * 60 * WEFT_SECOND)
#define SLIM_US   (60 * WEFT_SECOND)

enum { KEY_MAX = 2 * WEFT_NAME_MAX + 2 };

static size_t write_key(char key[KEY_MAX], const char *ns, const char *name)
{
    size_t ns_size = strlen(ns) + 1, name_size = strlen(name) + 1;
    assert(ns_size + name_size <= KEY_MAX);
    memcpy(key, ns, ns_size);
    memcpy(key + ns_size, name, name_size);
    return ns_size + name_size;
}

struct weft_target *weft_target_find(const struct weft_executor *executor, const char *ns,
                                     const char *name)
{
    char key[KEY_MAX];
    return weft_map_find(&executor->target, key, write_key(key, ns, name));
}

struct weft_target *weft_target_of(struct weft_executor *executor, const char *ns, const char *name)
{
    char key[KEY_MAX];
    size_t size = write_key(key, ns, name);
    struct weft_target *target = weft_map_find(&executor->target, key, size);
    if (target)
        return target;
    target = weft_alloc(1, sizeof(*target));
    target->key = weft_alloc(1, size);
    memcpy(target->key, key, size);
    target->key_size = size;
    target->ns = target->key;
    target->name = target->key + strlen(ns) + 1;
    target->own_url = strcmp(name, WEFT_OWN_URL) == 0;
    weft_breaker_reset(&target->breaker, &weft_breaker_default);
    pthread_mutex_lock(&executor->lock);
    weft_map_put(&executor->target, key, size, target);
    pthread_mutex_unlock(&executor->lock);
    return target;
}

/* The endpoint may have been made, changed or removed since the last look; true: it was. */
static bool look_at_endpoint(struct weft_executor *executor, struct weft_target *target)
{
    const struct weft_known_endpoint *before = target->endpoint;
    target->endpoint = executor->ops.endpoint(executor->engine, target->ns, target->name);
    bool changed =
        !target->endpoint != !before || (before && target->endpoint->version != before->version);
    /* What another server answered at another URL says nothing about this one. */
    if (changed) {
        pthread_mutex_lock(&executor->lock);
        weft_breaker_reset(&target->breaker, &weft_breaker_default);
        pthread_mutex_unlock(&executor->lock);
    }
    executor->ops.release(before);
    return changed;
}

void weft_target_let_go(struct weft_target_auth *auth)
{
    if (!auth || --auth->holders > 0)
        return;
    weft_secret_release(auth->header);
    weft_secret_release(auth->secret);
    free(auth);
}

/* The secret may have come, changed or gone with the last SIGHUP. False: it is not here. */
static bool look_at_secret(struct weft_executor *executor, struct weft_target *target, bool changed)
{
    const struct weft_known_endpoint *endpoint = target->endpoint;
    const struct weft_secret *secret = NULL;
    if (endpoint->auth.name && executor->secrets)
        secret = weft_secret_get(executor->secrets, target->ns, endpoint->setting->secret);
    if (target->auth && target->auth->secret == secret && !changed) {
        weft_secret_release(secret);
        return true;
    }
    weft_target_let_go(target->auth);
    target->auth = secret ? weft_alloc(1, sizeof(*target->auth)) : NULL;
    if (secret)
        *target->auth = (struct weft_target_auth){
            .holders = 1, .secret = secret, .header = weft_secret_header(secret, &endpoint->auth)};
    return secret || !endpoint->auth.name;
}

/*
 * Calls with URLs of their own go to servers that have nothing to do with each other: they have
 * neither a breaker nor a limit in common. What an older binary submitted without a target is read
 * after its claim, so little of it is taken at a time.
 */
size_t weft_target_room(struct weft_executor *executor, struct weft_target *target,
                        weft_usec now_us)
{
    enum { UNTOLD_MAX = 16 };
    if (target->own_url)
        return executor->urls ? SIZE_MAX : 0;
    if (!*target->name)
        return target->in_flight < UNTOLD_MAX ? UNTOLD_MAX - target->in_flight : 0;
    bool changed = look_at_endpoint(executor, target);
    bool secret = target->endpoint && look_at_secret(executor, target, changed);
    target->no_secret = target->endpoint && !secret;
    if (!secret)
        return 0;
    size_t most = (size_t)target->endpoint->setting->max_in_flight;
    size_t room = most > target->in_flight ? most - target->in_flight : 0;
    size_t lets = weft_breaker_room(&target->breaker, now_us);
    return room < lets ? room : lets;
}

weft_usec weft_target_next(const struct weft_target *target, weft_usec now_us)
{
    if (target->rest_us > now_us)
        return target->rest_us;
    weft_usec next_us =
        target->breaker.state == WEFT_BREAKER_OPEN ? weft_breaker_next(&target->breaker) : 0;
    return next_us > now_us ? next_us : WEFT_NEVER; /* otherwise the end of a call makes room */
}

static void free_target(struct weft_executor *executor, struct weft_target *target)
{
    weft_figures_forget(executor, target);
    weft_map_remove(&executor->target, target->key, target->key_size);
    executor->ops.release(target->endpoint);
    weft_target_let_go(target->auth);
    free(target->key);
    free(target);
}

/* Its counts are metrics, which should last as long as the endpoint. */
static bool is_needless(const struct weft_executor *executor, const struct weft_target *target)
{
    if (executor->target.count > WEFT_CALL_TARGETS)
        return true;
    const struct weft_known_endpoint *endpoint =
        executor->ops.endpoint(executor->engine, target->ns, target->name);
    executor->ops.release(endpoint);
    return !endpoint && !target->own_url;
}

/* The end of a pass over the map, whose entries may move when one is removed: the rest comes in the
 * next pass. */
void weft_targets_slim(struct weft_executor *executor, weft_usec now_us)
{
    if (now_us - executor->slimmed_us < SLIM_US)
        return;
    executor->slimmed_us = now_us;
    for (size_t i = 0; i < executor->target.capacity; i++) {
        struct weft_target *target = executor->target.entry[i].value;
        if (!executor->target.entry[i].key || target->in_flight > 0 ||
            now_us - target->used_us <= UNUSED_US || !is_needless(executor, target))
            continue;
        pthread_mutex_lock(&executor->lock);
        free_target(executor, target);
        pthread_mutex_unlock(&executor->lock);
    }
}

void weft_targets_done(struct weft_executor *executor)
{
    for (size_t left = 1; left > 0;) {
        left = 0;
        for (size_t i = 0; i < executor->target.capacity; i++)
            if (executor->target.entry[i].key) {
                free_target(executor, executor->target.entry[i].value);
                left++;
                break;
            }
    }
    weft_map_done(&executor->target);
}
