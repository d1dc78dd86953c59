/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Wakes the workers of a handle and the calls that wait on it after changes in this process.
 * Changes by other processes are found by looking again, so every wake is a hint and may be late.
 */

#include "client/worker/wake.h"

#include <stdatomic.h>
#include <time.h>

#define STOP_LOOK_US (100 * WEFT_MS) /* how often a call that can be stopped looks at that */

weft_usec weft_mono_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (weft_usec)now.tv_sec * WEFT_SECOND + now.tv_nsec / 1000;
}

/* ---- Workers --------------------------------------------------------------------------------- */

void weft_wake_workers(struct weft *weft, bool ready, weft_usec due_us)
{
    pthread_mutex_lock(&weft->lock);
    for (struct weft_worker *w = weft->worker; w; w = *weft_worker_link(w))
        weft_worker_wake(w, ready, due_us);
    if (ready) {
        weft->changes[WEFT_CHANGE_READY]++;
        pthread_cond_broadcast(&weft->changed);
    }
    pthread_mutex_unlock(&weft->lock);
}

void weft_wake_watches(struct weft *weft)
{
    pthread_mutex_lock(&weft->lock);
    for (struct weft_worker *w = weft->worker; w; w = *weft_worker_link(w))
        weft_worker_watch(w);
    weft->changes[WEFT_CHANGE_LEASE]++;
    pthread_cond_broadcast(&weft->changed);
    pthread_mutex_unlock(&weft->lock);
}

void weft_add_worker(struct weft *weft, struct weft_worker *worker)
{
    pthread_mutex_lock(&weft->lock);
    *weft_worker_link(worker) = weft->worker;
    weft->worker = worker;
    pthread_mutex_unlock(&weft->lock);
}

void weft_remove_worker(struct weft *weft, const struct weft_worker *worker)
{
    pthread_mutex_lock(&weft->lock);
    struct weft_worker **at = &weft->worker;
    while (*at && *at != worker)
        at = weft_worker_link(*at);
    if (*at)
        *at = *weft_worker_link(*at);
    pthread_mutex_unlock(&weft->lock);
}

/* ---- Calls that wait ------------------------------------------------------------------------- */

void weft_note_change(struct weft *weft, enum weft_local_change change)
{
    pthread_mutex_lock(&weft->lock);
    weft->changes[change]++;
    pthread_cond_broadcast(&weft->changed);
    pthread_mutex_unlock(&weft->lock);
}

void weft_look_init(struct weft_look *look, struct weft *weft, enum weft_local_change change,
                    int64_t wait_ms)
{
    *look = (struct weft_look){.change = change,
                               .until_us = weft_mono_us() + wait_ms * WEFT_MS,
                               .pause_us = WEFT_LOOK_FIRST_MS * WEFT_MS};
    pthread_mutex_lock(&weft->lock);
    look->changes = weft->changes[change];
    pthread_mutex_unlock(&weft->lock);
}

static bool is_stopped(const struct weft_via *via)
{
    return via->stop && atomic_load_explicit(via->stop, memory_order_relaxed);
}

static weft_usec earlier(weft_usec a, weft_usec b)
{
    return a < b ? a : b;
}

bool weft_look_again(struct weft_look *look, const struct weft_via *via)
{
    struct weft *weft = via->weft;
    weft_usec now_us = weft_mono_us(), least_us = now_us + WEFT_LOOK_LEAST_MS * WEFT_MS;
    if (now_us >= look->until_us)
        return false;
    weft_usec at_us = earlier(now_us + look->pause_us, look->until_us);
    look->pause_us = earlier(2 * look->pause_us, WEFT_LOOK_SLOWEST_MS * WEFT_MS);
    pthread_mutex_lock(&weft->lock);
    while (now_us < at_us && !is_stopped(via)) {
        if (weft->changes[look->change] != look->changes)
            at_us = earlier(at_us, least_us);
        weft_usec wake_us = via->stop ? earlier(at_us, now_us + STOP_LOOK_US) : at_us;
        const struct timespec until = {.tv_sec = wake_us / WEFT_SECOND,
                                       .tv_nsec = wake_us % WEFT_SECOND * 1000};
        (void)pthread_cond_timedwait(&weft->changed, &weft->lock, &until);
        now_us = weft_mono_us();
    }
    look->changes = weft->changes[look->change];
    pthread_mutex_unlock(&weft->lock);
    return !is_stopped(via);
}
