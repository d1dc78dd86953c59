/* SPDX-License-Identifier: Apache-2.0 */

/* The list of waiting requests, and the thread that rouses those whose time has come. */

#include "net/wait/waits.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "engine/tx/commit_effects.h"
#include "net/auth.h"
#include "net/group/claims.h"
#include "net/group/group.h"
#include "net/http/loop.h"
#include "net/request.h"
#include "net/server.h"
#include "net/wait/waiter.h"

#include <poll.h>
#include <stdlib.h>

#define SWEEP_US WEFT_SECOND

/* ---- The list -------------------------------------------------------------------------------- */

struct weft_waiter_list *weft_waiter_claims(struct weft_waits *waits, const char *ns)
{
    return &waits->claims[weft_text_bucket(ns ? ns : "default", WEFT_WAIT_BUCKETS)];
}

static struct weft_waiter_list *claims_with(struct weft_waits *waits,
                                            const struct weft_waiter *waiter)
{
    return weft_waiter_claims(waits, weft_claims_of(waiter->request)->ns);
}

void weft_waiter_add(struct weft_waits *waits, struct weft_request *request,
                     const struct weft_waiter *as)
{
    struct weft_waiter *waiter = weft_alloc(1, sizeof(*waiter));
    *waiter = *as;
    waiter->request = request;
    waiter->look_us = WEFT_NEVER;
    request->waiter = waiter;
    if (waiter->kind == WEFT_WAIT_CLAIM)
        TAILQ_INSERT_TAIL(claims_with(waits, waiter), waiter, claims);
    TAILQ_INSERT_TAIL(&waits->all, waiter, all);
    atomic_fetch_add(&waits->count, 1);
    weft_metric_add(waits->server->metrics, WEFT_METRIC_WAITERS, waiter->kind, 1);
}

struct weft_woken weft_waiter_drop(struct weft_waits *waits, struct weft_request *request)
{
    struct weft_waiter *waiter = request->waiter;
    struct weft_woken woken = waiter->woken;
    if (waiter->kind == WEFT_WAIT_CLAIM)
        TAILQ_REMOVE(claims_with(waits, waiter), waiter, claims);
    TAILQ_REMOVE(&waits->all, waiter, all);
    atomic_fetch_sub(&waits->count, 1);
    weft_metric_sub(waits->server->metrics, WEFT_METRIC_WAITERS, waiter->kind, 1);
    request->waiter = NULL;
    free(waiter);
    return woken;
}

static weft_usec wake_time(const struct weft_waiter *waiter)
{
    return waiter->look_us < waiter->until_us ? waiter->look_us : waiter->until_us;
}

void weft_waiter_sleep(struct weft_waits *waits, struct weft_waiter *waiter, weft_usec look_us)
{
    waiter->asleep = true;
    waiter->look_us = look_us;
    if (wake_time(waiter) >= waits->wakes_us)
        return;
    waits->wakes_us = wake_time(waiter);
    pthread_cond_signal(&waits->changed);
}

void weft_waiter_rouse(struct weft_waits *waits, struct weft_waiter *waiter)
{
    waiter->asleep = false;
    weft_groups_put_again(waits->server->groups, waiter->request);
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* Rouses all that are due; returns when the next one is. Under the lock. */
static weft_usec rouse_due(struct weft_waits *waits, weft_usec now_us)
{
    weft_usec next_us = WEFT_NEVER;
    for (struct weft_waiter *w = TAILQ_FIRST(&waits->all); w; w = TAILQ_NEXT(w, all)) {
        if (w->asleep && (waits->stopping || wake_time(w) <= now_us))
            weft_waiter_rouse(waits, w);
        if (!w->asleep)
            continue;
        next_us = wake_time(w) < next_us ? wake_time(w) : next_us;
    }
    return next_us;
}

/* Clients that have hung up give up their places, so that no work is claimed for them. Locked. */
static void rouse_gone(struct weft_waits *waits)
{
    size_t count = atomic_load(&waits->count), used = 0;
    struct pollfd *fd = weft_alloc(count + 1, sizeof(*fd));
    struct weft_waiter **who = weft_alloc(count + 1, sizeof(struct weft_waiter *));
    for (struct weft_waiter *w = TAILQ_FIRST(&waits->all); w && used < count;
         w = TAILQ_NEXT(w, all))
        if (w->asleep) {
            fd[used] = (struct pollfd){.fd = weft_loop_fd(w->request), .events = POLLRDHUP};
            who[used++] = w;
        }
    if (used > 0 && poll(fd, (nfds_t)used, 0) > 0)
        for (size_t i = 0; i < used; i++)
            if (fd[i].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) {
                who[i]->until_us = 0;
                weft_waiter_rouse(waits, who[i]);
            }
    free(fd);
    free((void *)who);
}

/* A request whose token was revoked or has expired must not get what it waits for. Locked. */
static void rouse_unauthorized(struct weft_waits *waits)
{
    struct weft_err ignored;
    for (struct weft_waiter *w = TAILQ_FIRST(&waits->all); w; w = TAILQ_NEXT(w, all))
        if (w->asleep && weft_auth_again(waits->server, w->request, &ignored)) {
            w->until_us = 0;
            weft_waiter_rouse(waits, w);
        }
    waits->recheck = false;
}

void weft_waits_recheck(struct weft_waits *waits)
{
    pthread_mutex_lock(&waits->lock);
    waits->recheck = true;
    waits->wakes_us = 0;
    pthread_cond_signal(&waits->changed);
    pthread_mutex_unlock(&waits->lock);
}

static void *run_thread(void *context)
{
    struct weft_waits *waits = context;
    weft_usec swept_us = weft_boot_us();
    pthread_mutex_lock(&waits->lock);
    while (!waits->ended) {
        if (weft_boot_us() - swept_us >= SWEEP_US) {
            /* Before the due ones are roused: it answers requests, which leave this list. */
            pthread_mutex_unlock(&waits->lock);
            weft_groups_sweep(waits->server->groups);
            pthread_mutex_lock(&waits->lock);
        }
        weft_usec now_us = weft_boot_us();
        weft_usec next_us = rouse_due(waits, now_us);
        if (waits->recheck || now_us - swept_us >= SWEEP_US)
            rouse_unauthorized(waits);
        if (now_us - swept_us >= SWEEP_US) {
            rouse_gone(waits);
            swept_us = now_us;
            weft_loop_sweep(waits->server->loop);
        }
        if (next_us > swept_us + SWEEP_US)
            next_us = swept_us + SWEEP_US;
        waits->wakes_us = next_us;
        if (!waits->recheck)
            weft_cond_until(&waits->changed, &waits->lock, next_us);
    }
    pthread_mutex_unlock(&waits->lock);
    return NULL;
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

struct weft_waits *weft_waits_new(struct weft_server *server)
{
    struct weft_waits *waits = weft_alloc(1, sizeof(*waits));
    waits->server = server;
    TAILQ_INIT(&waits->all);
    for (size_t i = 0; i < WEFT_WAIT_BUCKETS; i++)
        TAILQ_INIT(&waits->claims[i]);
    waits->wakes_us = WEFT_NEVER;
    pthread_mutex_init(&waits->lock, NULL);
    pthread_cond_init(&waits->changed, NULL);
    return waits;
}

void weft_waits_start(struct weft_waits *waits)
{
    waits->started = true;
    weft_thread_start(&waits->thread, "weft-wait", run_thread, waits);
}

void weft_waits_stop(struct weft_waits *waits)
{
    pthread_mutex_lock(&waits->lock);
    waits->stopping = true;
    pthread_cond_signal(&waits->changed);
    pthread_mutex_unlock(&waits->lock);
}

void weft_waits_free(struct weft_waits *waits)
{
    if (!waits)
        return;
    pthread_mutex_lock(&waits->lock);
    waits->ended = true;
    pthread_cond_signal(&waits->changed);
    pthread_mutex_unlock(&waits->lock);
    if (waits->started)
        pthread_join(waits->thread, NULL);
    pthread_cond_destroy(&waits->changed);
    pthread_mutex_destroy(&waits->lock);
    free(waits);
}
