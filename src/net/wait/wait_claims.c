/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A claim that may wait is entered before it looks for work and leaves when it is answered. While
 * it looks, a wake that is meant for it is kept (`woken`), and it looks again instead of going to
 * sleep: so no wake falls between its look and its sleep. While it sleeps, a wake sends it to look.
 * A claim hands its wake on, because there may be more work, when it gets all it asked for, when it
 * fails, when its client has gone, and when it gets something from a look that began before the
 * wake.
 *
 * Notices name executions that came; the slow poll names those that are there, so it may see again
 * executions for which a claim was woken and which that claim has not taken yet. So the poll rouses
 * no claim for a queue at which a woken claim is looking; that claim looks once more instead, or
 * hands its wake on. If it still looks at the next poll, it may be held up, and another claim is
 * roused. Two claims are woken for one execution only when the poll falls between a commit and its
 * notice, or between a look in vain and the commit of a quicker claim.
 *
 * A claim that finds no room for its answer (answers.h) sleeps here too, and looks after a pause.
 */

#include "net/wait/wait_claims.h"

#include "base/clock.h"
#include "engine/job/claim.h"
#include "engine/tx/commit_effects.h"
#include "net/group/claims.h"
#include "net/request.h"
#include "net/server.h"
#include "net/wait/waiter.h"
#include "weft/weft.h"

#define SOON_US      (5 * WEFT_MS)
#define ROOM_LAST_US (250 * WEFT_MS)

static uint32_t takes(const struct weft_waiter *waiter)
{
    const struct weft_claim *claim = weft_claims_of(waiter->request);
    return claim->max ? claim->max : 1;
}

void weft_waits_enter(struct weft_waits *waits, struct weft_request *request, weft_usec until_us)
{
    struct weft_waiter *waiter = request->waiter;
    /* While it is awake its times belong to its thread. */
    if (waiter && (waiter->until_us == until_us || waiter->until_us == 0))
        return;
    pthread_mutex_lock(&waits->lock);
    if (waiter)
        waiter->until_us = until_us; /* it waited for room before */
    else
        weft_waiter_add(waits, request,
                        &(struct weft_waiter){.kind = WEFT_WAIT_CLAIM, .until_us = until_us});
    pthread_mutex_unlock(&waits->lock);
}

/*
 * It keeps the wake it was given: other claims that may serve the queue are of the same namespace
 * and find no room either, and it looks by itself when there is some.
 */
bool weft_waits_park(struct weft_waits *waits, struct weft_request *request, weft_usec until_us)
{
    weft_usec now_us = weft_boot_us();
    weft_waits_enter(waits, request, until_us);
    struct weft_waiter *waiter = request->waiter;
    pthread_mutex_lock(&waits->lock);
    bool sleeps = !waits->stopping && now_us < waiter->until_us;
    if (sleeps) {
        waiter->pause_us = waiter->pause_us ? waiter->pause_us * 2 : SOON_US;
        if (waiter->pause_us > ROOM_LAST_US)
            waiter->pause_us = ROOM_LAST_US;
        waiter->late = false;
        weft_waiter_sleep(waits, waiter, now_us + waiter->pause_us);
    }
    pthread_mutex_unlock(&waits->lock);
    return sleeps;
}

bool weft_waits_sleep(struct weft_waits *waits, struct weft_request *request, bool soon)
{
    weft_usec now_us = weft_boot_us();
    struct weft_waiter *waiter = request->waiter;
    pthread_mutex_lock(&waits->lock);
    bool sleeps = !waits->stopping && now_us < waiter->until_us;
    if (sleeps) {
        bool late = waiter->late; /* a wake came while it looked */
        waiter->woken.count = 0;
        waiter->late = false;
        if (late)
            weft_waiter_rouse(waits, waiter);
        else
            weft_waiter_sleep(waits, waiter, soon ? now_us + SOON_US : WEFT_NEVER);
    }
    pthread_mutex_unlock(&waits->lock);
    return sleeps;
}

/* ---- Wakes ----------------------------------------------------------------------------------- */

/* The first claim that may be of the namespace of a queue; NULL when none can be. */
static struct weft_waiter *first_for(struct weft_waits *waits, int32_t queue)
{
    const char *ns = weft_engine_namespace_of(waits->server->engine, queue);
    return ns ? TAILQ_FIRST(weft_waiter_claims(waits, ns)) : NULL;
}

/*
 * Gives the wake to sleepers first, then to claims that are looking and may have looked too early.
 * Returns how many sleepers were roused. Under the lock.
 */
static size_t wake_for(struct weft_waits *waits, const struct weft_woken *woken)
{
    uint64_t left = woken->count;
    size_t roused = 0;
    for (int awake = 0; awake < 2; awake++)
        for (struct weft_waiter *w = first_for(waits, woken->queue); w && left > 0;
             w = TAILQ_NEXT(w, claims)) {
            if (w->asleep == (awake == 1) || w->late ||
                !weft_engine_fits(waits->server->engine, weft_claims_of(w->request), woken->queue))
                continue;
            w->woken = (struct weft_woken){woken->queue, (uint32_t)left};
            w->late = awake == 1;
            left = left > takes(w) ? left - takes(w) : 0;
            roused += w->asleep;
            if (w->asleep)
                weft_waiter_rouse(waits, w);
        }
    return roused;
}

/* True when a claim that was woken for the queue is looking: it will look again. Locked. */
static bool is_looked_at(struct weft_waits *waits, int32_t queue)
{
    for (struct weft_waiter *w = first_for(waits, queue); w; w = TAILQ_NEXT(w, claims))
        if (!w->asleep && !w->late && w->woken.count > 0 && w->woken.queue == queue) {
            w->late = true;
            return true;
        }
    return false;
}

void weft_waits_wake(struct weft_waits *waits, enum weft_metric_wake source,
                     const struct weft_woken *woken, size_t count)
{
    if (atomic_load(&waits->count) == 0)
        return;
    size_t roused = 0;
    pthread_mutex_lock(&waits->lock);
    for (size_t i = 0; i < count; i++)
        if (source != WEFT_WAKE_POLL || !is_looked_at(waits, woken[i].queue))
            roused += wake_for(waits, &woken[i]);
    pthread_mutex_unlock(&waits->lock);
    weft_metric_add(waits->server->metrics, WEFT_METRIC_WAKES, source, roused);
}

void weft_waits_leave(struct weft_waits *waits, struct weft_request *request,
                      enum weft_wait_end end)
{
    if (!request->waiter)
        return;
    uint32_t most = takes(request->waiter);
    pthread_mutex_lock(&waits->lock);
    bool late = request->waiter->late;
    struct weft_woken woken = weft_waiter_drop(waits, request);
    if (woken.count > 0 && (end != WEFT_WAIT_SERVED || late)) {
        /*
         * Other claims were woken for the executions it could not take. A claim that filled up may
         * have left some; one that failed, or looked before the work came, took none of its wake.
         */
        if (end == WEFT_WAIT_FILLED && !late)
            woken.count = 1;
        else if (woken.count > most)
            woken.count = most;
        (void)wake_for(waits, &woken);
    }
    pthread_mutex_unlock(&waits->lock);
}
