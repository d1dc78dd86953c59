/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A request that waits for an end looks a few times by itself, which finds an end by another
 * replica early; then a commit of this replica or upkeep, which looks for all of them once a
 * second, wakes it. A watch sleeps until a commit of this replica, a notice or the slow poll wakes
 * it.
 *
 * A call that finds the row of its flow locked by another transaction, of an operator's psql for
 * example, is here between its tries: no engine thread waits with it, and calls for other flows go
 * on. No wake is meant for it; it tries again after a pause, from the back of its queue.
 */

#include "net/wait/wait_ends.h"

#include "base/arena.h"
#include "base/clock.h"
#include "net/request.h"
#include "net/server.h"
#include "net/wait/waiter.h"

#include <string.h>

#define LOOK_FIRST_US (50 * WEFT_MS)
#define LOOK_LAST_US  WEFT_SECOND
#define LOOK_ALONE_US (200 * WEFT_MS)   /* one that is notified looks by itself up to this pause */
#define LOCK_US       (5 * WEFT_SECOND) /* a flow that is locked for longer is answered as busy */

/* Puts the request on the list, if it is not there yet. False: it must not wait any longer. */
static bool wait_as(struct weft_request *request, const struct weft_waiter *as)
{
    struct weft_waits *waits = request->server->waits;
    bool waits_on = weft_boot_us() < as->until_us;
    pthread_mutex_lock(&waits->lock);
    waits_on &= !waits->stopping && (!request->waiter || request->waiter->until_us != 0);
    if (waits_on && request->waiter && request->waiter->kind == WEFT_WAIT_LOCK &&
        as->kind != WEFT_WAIT_LOCK)
        (void)weft_waiter_drop(waits, request); /* it has got the lock that it waited for */
    if (waits_on && !request->waiter)
        weft_waiter_add(waits, request, as);
    pthread_mutex_unlock(&waits->lock);
    return waits_on;
}

bool weft_wait_for_end(struct weft_request *request, const struct weft_id *id, weft_usec until_us,
                       enum weft_wait_looks looks)
{
    const struct weft_waiter as = {
        .kind = WEFT_WAIT_END,
        .until_us = until_us,
        .id = *id,
        .notified = looks == WEFT_WAIT_NOTIFIED,
        .woken.count = 1, /* it may have ended since the caller looked: once more */
    };
    return wait_as(request, &as);
}

bool weft_wait_for_leases(struct weft_request *request, int32_t worker, weft_usec until_us)
{
    return wait_as(request, &(struct weft_waiter){
                                .kind = WEFT_WAIT_WATCH, .until_us = until_us, .worker = worker});
}

bool weft_wait_for_lock(struct weft_request *request)
{
    if (request->lock_until_us == 0)
        request->lock_until_us = weft_boot_us() + LOCK_US;
    return wait_as(
        request, &(struct weft_waiter){.kind = WEFT_WAIT_LOCK, .until_us = request->lock_until_us});
}

/* When a request that found nothing looks again by itself. */
static weft_usec next_look(struct weft_waiter *waiter, weft_usec now_us)
{
    if (waiter->kind == WEFT_WAIT_WATCH)
        return WEFT_NEVER;
    waiter->pause_us = waiter->pause_us ? waiter->pause_us * 2 : LOOK_FIRST_US;
    bool alone = !waiter->notified || waiter->pause_us <= LOOK_ALONE_US;
    if (!alone || waiter->pause_us > LOOK_LAST_US)
        waiter->pause_us = LOOK_LAST_US;
    return alone ? now_us + waiter->pause_us : WEFT_NEVER;
}

bool weft_waits_sleep_till_end(struct weft_waits *waits, struct weft_request *request)
{
    struct weft_waiter *waiter = request->waiter;
    if (!waiter)
        return false;
    weft_usec now_us = weft_boot_us();
    pthread_mutex_lock(&waits->lock);
    if (waiter->woken.count > 0) {
        waiter->woken.count = 0;
        weft_waiter_rouse(waits, waiter);
    } else {
        weft_usec look_us = next_look(waiter, now_us);
        weft_waiter_sleep(waits, waiter, waits->stopping ? now_us : look_us);
    }
    pthread_mutex_unlock(&waits->lock);
    return true;
}

void weft_wait_done(struct weft_request *request)
{
    struct weft_waits *waits = request->server->waits;
    if (!request->waiter)
        return;
    pthread_mutex_lock(&waits->lock);
    (void)weft_waiter_drop(waits, request);
    pthread_mutex_unlock(&waits->lock);
}

/* ---- Wakes ----------------------------------------------------------------------------------- */

/* Rouses a sleeper, or has one that looks now look once more. Returns 1 or 0. Locked. */
static size_t wake(struct weft_waits *waits, struct weft_waiter *waiter)
{
    bool asleep = waiter->asleep;
    waiter->woken.count = !asleep;
    if (asleep)
        weft_waiter_rouse(waits, waiter);
    return asleep;
}

void weft_wait_ended(struct weft_server *server, const struct weft_id *id, size_t count)
{
    struct weft_waits *waits = server->waits;
    if (atomic_load(&waits->count) == 0)
        return;
    pthread_mutex_lock(&waits->lock);
    for (struct weft_waiter *w = TAILQ_FIRST(&waits->all); w; w = TAILQ_NEXT(w, all))
        for (size_t i = 0; i < count && w->kind == WEFT_WAIT_END; i++)
            if (memcmp(&w->id, &id[i], sizeof(w->id)) == 0)
                (void)wake(waits, w);
    pthread_mutex_unlock(&waits->lock);
}

size_t weft_waits_ids(struct weft_waits *waits, struct weft_arena *arena, struct weft_id **ret_id)
{
    size_t most = atomic_load(&waits->count), count = 0;
    *ret_id = NULL;
    if (most == 0)
        return 0;
    struct weft_id *id = weft_new_array(arena, struct weft_id, most);
    pthread_mutex_lock(&waits->lock);
    for (struct weft_waiter *w = TAILQ_FIRST(&waits->all); w && count < most;
         w = TAILQ_NEXT(w, all))
        if (w->kind == WEFT_WAIT_END && w->asleep && w->look_us == WEFT_NEVER)
            id[count++] = w->id;
    pthread_mutex_unlock(&waits->lock);
    *ret_id = id;
    return count;
}

void weft_waits_wake_workers(struct weft_waits *waits, enum weft_metric_wake source,
                             const int32_t *worker, size_t count)
{
    if (count == 0 || atomic_load(&waits->count) == 0)
        return;
    size_t roused = 0;
    pthread_mutex_lock(&waits->lock);
    for (struct weft_waiter *w = TAILQ_FIRST(&waits->all); w; w = TAILQ_NEXT(w, all)) {
        size_t i = w->kind == WEFT_WAIT_WATCH ? 0 : count;
        while (i < count && worker[i] != w->worker)
            i++;
        if (i < count)
            roused += wake(waits, w);
    }
    pthread_mutex_unlock(&waits->lock);
    weft_metric_add(waits->server->metrics, WEFT_METRIC_WAKES, source, roused);
}
