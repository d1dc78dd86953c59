/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Those who wait: claims for work, reads for the end of an execution, watches of workers for the
 * end of their leases by others, changes of flows for the lock of the flow.
 *
 * A claim that may wait is entered before it looks for work and leaves when it is answered. While
 * it looks, a wake that is meant for it is kept (`woken`), and it looks again instead of going to
 * sleep: so no wake falls between its look and its sleep. While it sleeps, a wake sends it to look.
 * A wake names a queue and how many executions came; it goes to the longest waiters that may serve
 * that queue, as many as are needed to take them all, not to everybody. One that then gets all it
 * asked for, fails, or whose client has gone, hands its wake on, because there may be more; so does
 * one that gets something other than nothing from a look that began before the wake.
 *
 * News tell what came, the poll what is there: it may see again what somebody has been woken for
 * and has not taken yet. So it rouses nobody for a queue that such a one looks at; that one looks
 * once more instead, or hands on. One that still looks when the next poll comes may be held up, and
 * then somebody else is roused. Two are woken for one execution only when the poll falls between a
 * commit and the news of it, or between a look in vain and the commit of whoever was quicker: what
 * the poll saw cannot be told from something else then.
 *
 * A call that changes a flow and finds its row locked by another transaction, of an operator's psql
 * for example, is here between its tries: no engine thread waits with it, and the calls for other
 * flows go on. It is told of nothing; it looks after a pause, from the back of its queue. So is a
 * claim that finds no room for its answer (answers.h).
 *
 * Wakes are hints and may come for nothing. That they are never lost for good is what the slow poll
 * is for (upkeep.c).
 *
 * An ask on the list is the list's while it sleeps, under the lock; otherwise it belongs to whoever
 * runs it, and the list only knows it.
 */

#include "net/wait/waits.h"

#include "base/str.h"
#include "base/thread.h"
#include "engine/ops.h"
#include "net/auth.h"
#include "net/group/claims.h"
#include "net/group/group.h"
#include "net/http/loop.h"
#include "net/metrics.h"
#include "net/request.h"
#include "net/server.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SOON_US       (5 * WEFT_MS)
#define SWEEP_US      WEFT_SECOND
#define LOOK_FIRST_US (50 * WEFT_MS)
#define LOOK_LAST_US  WEFT_SECOND
#define ROOM_LAST_US  (250 * WEFT_MS)
#define LOCK_US       (5 * WEFT_SECOND) /* a flow that is locked longer is told as busy */
#define LOOK_ALONE_US (200 * WEFT_MS)   /* one that is told looks by itself up to this pause */

struct weft_waiter {
    struct weft_waiter *next, **link;
    struct weft_waiter *peer, **peer_link; /* of a claim: among those of the same bucket */
    unsigned bucket;
    struct weft_request *request;
    enum weft_metric_wait kind;
    bool asleep;
    weft_usec until_us;      /* boot time, as all of these */
    weft_usec look_us;       /* when to look again without being woken; WEFT_NEVER */
    weft_usec pause_us;      /* for an end, or for room: how long it slept last */
    struct weft_woken woken; /* the wake it was given; count 0: none */
    bool late;               /* that came while it was looking, and may be for what it cannot see */
    struct weft_id id;       /* whose end: an execution's or a flow's */
    bool is_told;            /* of that end: by a commit here, or by the look of upkeep for all */
    int32_t worker;          /* of a watch: whose leases */
};

/* Claims by the hash of their namespace: the queues of one are not held against all others. */
enum { BUCKETS = 256 };

struct weft_bucket {
    struct weft_waiter *first, **last; /* the longest waiter first */
};

struct weft_waits {
    struct weft_server *server;
    pthread_t thread;
    bool started;
    _Atomic size_t count; /* read without the lock to leave early */

    pthread_mutex_t lock; /* over all below */
    pthread_cond_t news;
    struct weft_waiter *first, **last; /* the longest waiter first */
    struct weft_bucket bucket[BUCKETS];
    weft_usec wakes_us; /* when the thread wakes by itself */
    bool recheck;       /* tokens have changed */
    bool stopping, ended;
};

static unsigned bucket_of(const char *ns)
{
    return weft_text_bucket(ns ? ns : "default", BUCKETS);
}

static void link_peer(struct weft_waits *waits, struct weft_waiter *waiter)
{
    waiter->bucket = bucket_of(weft_claims_of(waiter->request)->ns);
    struct weft_bucket *bucket = &waits->bucket[waiter->bucket];
    if (!bucket->last)
        bucket->last = &bucket->first;
    waiter->peer = NULL;
    waiter->peer_link = bucket->last;
    *bucket->last = waiter;
    bucket->last = &waiter->peer;
}

static void unlink_peer(struct weft_waits *waits, struct weft_waiter *waiter)
{
    *waiter->peer_link = waiter->peer;
    if (waiter->peer)
        waiter->peer->peer_link = waiter->peer_link;
    else
        waits->bucket[waiter->bucket].last = waiter->peer_link;
}

static void link_waiter(struct weft_waits *waits, struct weft_waiter *waiter)
{
    if (waiter->kind == WEFT_WAIT_CLAIM)
        link_peer(waits, waiter);
    waiter->next = NULL;
    waiter->link = waits->last;
    *waits->last = waiter;
    waits->last = &waiter->next;
    atomic_fetch_add(&waits->count, 1);
    weft_metric_add(waits->server->metrics, WEFT_METRIC_WAITERS, waiter->kind, 1);
}

static void unlink_waiter(struct weft_waits *waits, struct weft_waiter *waiter)
{
    if (waiter->kind == WEFT_WAIT_CLAIM)
        unlink_peer(waits, waiter);
    *waiter->link = waiter->next;
    if (waiter->next)
        waiter->next->link = waiter->link;
    else
        waits->last = waiter->link;
    atomic_fetch_sub(&waits->count, 1);
    weft_metric_sub(waits->server->metrics, WEFT_METRIC_WAITERS, waiter->kind, 1);
}

/* The ask leaves the list; what it was told goes back to the caller. Under the lock. */
static struct weft_woken drop(struct weft_waits *waits, struct weft_request *request)
{
    struct weft_waiter *waiter = request->waiter;
    struct weft_woken woken = waiter->woken;
    unlink_waiter(waits, waiter);
    request->waiter = NULL;
    free(waiter);
    return woken;
}

/* Sends a sleeper to look. Under the lock; the ask is the engine threads' from here on. */
static void rouse(struct weft_waits *waits, struct weft_waiter *waiter)
{
    waiter->asleep = false;
    weft_groups_put_again(waits->server->groups, waiter->request);
}

static void expect_by(struct weft_waits *waits, weft_usec at_us)
{
    if (at_us >= waits->wakes_us)
        return;
    waits->wakes_us = at_us;
    pthread_cond_signal(&waits->news);
}

/* ---- Claims ---------------------------------------------------------------------------------- */

static struct weft_waiter *new_waiter(struct weft_request *request, enum weft_metric_wait kind,
                                      weft_usec until_us)
{
    struct weft_waiter *waiter = weft_calloc(1, sizeof(*waiter));
    *waiter = (struct weft_waiter){
        .request = request, .kind = kind, .until_us = until_us, .look_us = WEFT_NEVER};
    request->waiter = waiter;
    return waiter;
}

void weft_waits_enter(struct weft_waits *waits, struct weft_request *request, weft_usec until_us)
{
    struct weft_waiter *waiter = request->waiter;
    /* While it is awake its times belong to its thread; 0: its client has gone. */
    if (waiter && (waiter->until_us == until_us || waiter->until_us == 0))
        return;
    if (!waiter)
        waiter = new_waiter(request, WEFT_WAIT_CLAIM, until_us);
    pthread_mutex_lock(&waits->lock);
    if (!waiter->link)
        link_waiter(waits, waiter);
    waiter->until_us = until_us; /* it may have waited for room before */
    pthread_mutex_unlock(&waits->lock);
}

/*
 * It keeps the wake it was given: others that may serve the queue are of the same namespace and
 * find no room either, and it looks by itself when there is some.
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
        waiter->asleep = true;
        waiter->look_us = now_us + waiter->pause_us;
        expect_by(waits, waiter->look_us < waiter->until_us ? waiter->look_us : waiter->until_us);
    }
    pthread_mutex_unlock(&waits->lock);
    return sleeps;
}

static bool may_serve(struct weft_waits *waits, const struct weft_waiter *waiter, int32_t queue)
{
    return weft_engine_fits(waits->server->engine, weft_claims_of(waiter->request), queue);
}

/* The claims that may be of the namespace of a queue; NULL when none can be. */
static const struct weft_bucket *claims_for(struct weft_waits *waits, int32_t queue)
{
    const char *ns = weft_engine_namespace_of(waits->server->engine, queue);
    return ns ? &waits->bucket[bucket_of(ns)] : NULL;
}

/*
 * Gives the wake to sleepers first, then to those who are looking and may have looked too early.
 * Says how many sleepers were roused. Under the lock.
 */
static size_t wake_for(struct weft_waits *waits, const struct weft_woken *woken)
{
    uint64_t left = woken->count;
    size_t roused = 0;
    const struct weft_bucket *bucket = claims_for(waits, woken->queue);
    for (int awake = 0; awake < 2 && bucket; awake++)
        for (struct weft_waiter *w = bucket->first; w && left > 0; w = w->peer) {
            if (w->asleep == (awake == 1) || w->late || !may_serve(waits, w, woken->queue))
                continue;
            const struct weft_claim *claim = weft_claims_of(w->request);
            uint32_t takes = claim->max ? claim->max : 1;
            w->woken = (struct weft_woken){woken->queue, (uint32_t)left};
            w->late = awake == 1;
            left = left > takes ? left - takes : 0;
            roused += w->asleep;
            if (w->asleep)
                rouse(waits, w);
        }
    return roused;
}

/* True when one that was woken for the queue is looking: it is told to look again. Under the lock.
 */
static bool is_looked_at(struct weft_waits *waits, int32_t queue)
{
    const struct weft_bucket *bucket = claims_for(waits, queue);
    for (struct weft_waiter *w = bucket ? bucket->first : NULL; w; w = w->peer)
        if (!w->asleep && !w->late && w->woken.count > 0 && w->woken.queue == queue) {
            w->late = true;
            return true;
        }
    return false;
}

void weft_waits_wake(struct weft_waits *waits, enum weft_metric_wake who,
                     const struct weft_woken *woken, size_t count)
{
    if (atomic_load(&waits->count) == 0)
        return;
    size_t roused = 0;
    pthread_mutex_lock(&waits->lock);
    for (size_t i = 0; i < count; i++)
        if (who != WEFT_WAKE_POLL || !is_looked_at(waits, woken[i].queue))
            roused += wake_for(waits, &woken[i]);
    pthread_mutex_unlock(&waits->lock);
    weft_metric_add(waits->server->metrics, WEFT_METRIC_WAKES, who, roused);
}

void weft_waits_leave(struct weft_waits *waits, struct weft_request *request,
                      enum weft_wait_end end)
{
    if (!request->waiter)
        return;
    const struct weft_claim *claim = weft_claims_of(request);
    uint32_t takes = claim->max ? claim->max : 1;
    pthread_mutex_lock(&waits->lock);
    bool late = request->waiter->late;
    struct weft_woken woken = drop(waits, request);
    if (woken.count > 0 && (end != WEFT_WAIT_SERVED || late)) {
        /*
         * Others were woken for what it could not take. One that filled up may have left something;
         * one that failed, or looked before the work came, took nothing of what it was woken for.
         */
        if (end == WEFT_WAIT_FILLED && !late)
            woken.count = 1;
        else if (woken.count > takes)
            woken.count = takes;
        (void)wake_for(waits, &woken);
    }
    pthread_mutex_unlock(&waits->lock);
}

bool weft_waits_sleep(struct weft_waits *waits, struct weft_request *request, bool soon)
{
    weft_usec now_us = weft_boot_us();
    struct weft_waiter *waiter = request->waiter;
    pthread_mutex_lock(&waits->lock);
    bool sleeps = !waits->stopping && now_us < waiter->until_us;
    if (sleeps && waiter->late) {
        /* Somebody spoke while it looked: once more. */
        waiter->late = false;
        waiter->woken.count = 0;
        rouse(waits, waiter);
    } else if (sleeps) {
        waiter->woken.count = 0; /* it looked for it, in vain */
        waiter->asleep = true;
        waiter->look_us = soon ? now_us + SOON_US : WEFT_NEVER;
        expect_by(waits, waiter->look_us < waiter->until_us ? waiter->look_us : waiter->until_us);
    }
    pthread_mutex_unlock(&waits->lock);
    return sleeps;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

bool weft_wait_for_end(struct weft_request *request, const struct weft_id *id, weft_usec until_us,
                       enum weft_wait_looks looks)
{
    struct weft_waits *waits = request->server->waits;
    bool waits_on = weft_boot_us() < until_us;
    pthread_mutex_lock(&waits->lock);
    waits_on &= !waits->stopping && (!request->waiter || request->waiter->until_us != 0);
    if (waits_on && request->waiter && request->waiter->kind == WEFT_WAIT_LOCK)
        (void)drop(waits, request); /* it has got the lock */
    if (waits_on && !request->waiter) {
        struct weft_waiter *waiter = new_waiter(request, WEFT_WAIT_END, until_us);
        waiter->id = *id;
        waiter->is_told = looks == WEFT_WAIT_NOTIFIED;
        waiter->woken.count = 1; /* it may have ended since the caller looked: once more */
        link_waiter(waits, waiter);
    }
    pthread_mutex_unlock(&waits->lock);
    return waits_on;
}

bool weft_wait_for_lock(struct weft_request *request)
{
    struct weft_waits *waits = request->server->waits;
    weft_usec now_us = weft_boot_us();
    if (request->lock_until_us == 0)
        request->lock_until_us = now_us + LOCK_US;
    bool waits_on = now_us < request->lock_until_us;
    pthread_mutex_lock(&waits->lock);
    waits_on &= !waits->stopping && (!request->waiter || request->waiter->until_us != 0);
    if (waits_on && !request->waiter)
        link_waiter(waits, new_waiter(request, WEFT_WAIT_LOCK, request->lock_until_us));
    pthread_mutex_unlock(&waits->lock);
    return waits_on;
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
        rouse(waits, waiter);
    } else if (waiter->kind == WEFT_WAIT_WATCH) {
        /* It is always told: by a commit of this replica, by a notice, by the next poll. */
        waiter->asleep = true;
        waiter->look_us = waits->stopping ? now_us : WEFT_NEVER;
        expect_by(waits, waiter->look_us < waiter->until_us ? waiter->look_us : waiter->until_us);
    } else {
        /* A few looks of its own find an end by another replica before upkeep does. */
        waiter->pause_us = waiter->pause_us ? waiter->pause_us * 2 : LOOK_FIRST_US;
        if (waiter->pause_us > LOOK_LAST_US)
            waiter->pause_us = LOOK_LAST_US;
        weft_usec look_us = now_us + waiter->pause_us;
        if (waiter->is_told && waiter->pause_us > LOOK_ALONE_US) {
            waiter->pause_us = LOOK_LAST_US;
            look_us = WEFT_NEVER;
        }
        waiter->asleep = true;
        waiter->look_us = waits->stopping ? now_us : look_us;
        expect_by(waits, waiter->look_us < waiter->until_us ? waiter->look_us : waiter->until_us);
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
    (void)drop(waits, request);
    pthread_mutex_unlock(&waits->lock);
}

void weft_wait_ended(struct weft_server *server, const struct weft_id *id, size_t count)
{
    struct weft_waits *waits = server->waits;
    if (atomic_load(&waits->count) == 0)
        return;
    pthread_mutex_lock(&waits->lock);
    for (struct weft_waiter *w = waits->first; w; w = w->next)
        for (size_t i = 0; i < count && w->kind == WEFT_WAIT_END; i++)
            if (memcmp(&w->id, &id[i], sizeof(w->id)) == 0) {
                w->woken.count = !w->asleep;
                if (w->asleep)
                    rouse(waits, w);
            }
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
    for (struct weft_waiter *w = waits->first; w && count < most; w = w->next)
        if (w->kind == WEFT_WAIT_END && w->asleep && w->look_us == WEFT_NEVER)
            id[count++] = w->id;
    pthread_mutex_unlock(&waits->lock);
    *ret_id = id;
    return count;
}

/* ---- Watches --------------------------------------------------------------------------------- */

bool weft_wait_for_leases(struct weft_request *request, int32_t worker, weft_usec until_us)
{
    struct weft_waits *waits = request->server->waits;
    bool waits_on = weft_boot_us() < until_us;
    pthread_mutex_lock(&waits->lock);
    waits_on &= !waits->stopping && (!request->waiter || request->waiter->until_us != 0);
    if (waits_on && !request->waiter) {
        struct weft_waiter *waiter = new_waiter(request, WEFT_WAIT_WATCH, until_us);
        waiter->worker = worker;
        link_waiter(waits, waiter);
    }
    pthread_mutex_unlock(&waits->lock);
    return waits_on;
}

void weft_waits_wake_workers(struct weft_waits *waits, enum weft_metric_wake who,
                             const int32_t *worker, size_t count)
{
    if (count == 0 || atomic_load(&waits->count) == 0)
        return;
    size_t roused = 0;
    pthread_mutex_lock(&waits->lock);
    for (struct weft_waiter *w = waits->first; w; w = w->next) {
        size_t i = w->kind == WEFT_WAIT_WATCH ? 0 : count;
        while (i < count && worker[i] != w->worker)
            i++;
        if (i == count)
            continue;
        w->woken.count = !w->asleep;
        roused += w->asleep;
        if (w->asleep)
            rouse(waits, w);
    }
    pthread_mutex_unlock(&waits->lock);
    weft_metric_add(waits->server->metrics, WEFT_METRIC_WAKES, who, roused);
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* Its time is up or its client has gone: whoever runs it next answers. Under the lock. */
static bool is_due(const struct weft_waiter *waiter, weft_usec now_us)
{
    return waiter->asleep && (waiter->until_us <= now_us || waiter->look_us <= now_us);
}

/* Rouses all that are due and says when the next one is. Under the lock. */
static weft_usec rouse_due(struct weft_waits *waits, weft_usec now_us)
{
    weft_usec next_us = WEFT_NEVER;
    for (struct weft_waiter *w = waits->first; w; w = w->next) {
        if (is_due(w, now_us) || (w->asleep && waits->stopping))
            rouse(waits, w);
        if (!w->asleep)
            continue;
        weft_usec at_us = w->look_us < w->until_us ? w->look_us : w->until_us;
        next_us = at_us < next_us ? at_us : next_us;
    }
    return next_us;
}

/*
 * Looks for clients that have hung up, all in one call: their places in the line are given up, so
 * that no work is claimed for nobody. Under the lock.
 */
static void rouse_gone(struct weft_waits *waits)
{
    size_t count = atomic_load(&waits->count), used = 0;
    struct pollfd *fd = weft_calloc(count + 1, sizeof(*fd));
    struct weft_waiter **who = weft_calloc(count + 1, sizeof(struct weft_waiter *));
    for (struct weft_waiter *w = waits->first; w && used < count; w = w->next)
        if (w->asleep) {
            fd[used] = (struct pollfd){.fd = weft_loop_fd(w->request), .events = POLLRDHUP};
            who[used++] = w;
        }
    if (used > 0 && poll(fd, (nfds_t)used, 0) > 0)
        for (size_t i = 0; i < used; i++)
            if (fd[i].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) {
                who[i]->until_us = 0;
                rouse(waits, who[i]);
            }
    free(fd);
    free((void *)who);
}

/* The request's token was revoked or has expired: it must not get what it waits for. Under the
 * lock. */
static void rouse_unauthorized(struct weft_waits *waits)
{
    struct weft_err ignored;
    for (struct weft_waiter *w = waits->first; w; w = w->next)
        if (w->asleep && weft_auth_again(waits->server, w->request, &ignored)) {
            w->until_us = 0;
            rouse(waits, w);
        }
    waits->recheck = false;
}

void weft_waits_recheck(struct weft_waits *waits)
{
    pthread_mutex_lock(&waits->lock);
    waits->recheck = true;
    waits->wakes_us = 0;
    pthread_cond_signal(&waits->news);
    pthread_mutex_unlock(&waits->lock);
}

static void *run_thread(void *context)
{
    struct weft_waits *waits = context;
    weft_usec swept_us = weft_boot_us();
    pthread_mutex_lock(&waits->lock);
    while (!waits->ended) {
        if (weft_boot_us() - swept_us >= SWEEP_US) {
            /* It answers requests, which leave this list. Before the look at who is due. */
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
            weft_cond_until(&waits->news, &waits->lock, next_us);
    }
    pthread_mutex_unlock(&waits->lock);
    return NULL;
}

struct weft_waits *weft_waits_new(struct weft_server *server)
{
    struct weft_waits *waits = weft_calloc(1, sizeof(*waits));
    waits->server = server;
    waits->last = &waits->first;
    waits->wakes_us = WEFT_NEVER;
    pthread_mutex_init(&waits->lock, NULL);
    pthread_cond_init(&waits->news, NULL);
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
    pthread_cond_signal(&waits->news);
    pthread_mutex_unlock(&waits->lock);
}

void weft_waits_free(struct weft_waits *waits)
{
    if (!waits)
        return;
    pthread_mutex_lock(&waits->lock);
    waits->ended = true;
    pthread_cond_signal(&waits->news);
    pthread_mutex_unlock(&waits->lock);
    if (waits->started)
        pthread_join(waits->thread, NULL);
    pthread_cond_destroy(&waits->news);
    pthread_mutex_destroy(&waits->lock);
    free(waits);
}
