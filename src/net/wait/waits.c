/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of waiting requests, and the thread that queues a request again when its time has come.
 * Each waiter is also in a bucket: a claim by its namespace, a read by the id whose end it waits
 * for, a watch by its worker. So a wake passes over few waiters that it is not for.
 *
 * A waiter is on the list before it looks. While it looks, a wake that is meant for it is kept
 * (`woken`), and it looks again instead of going to sleep: so no wake falls between its look and
 * its sleep. While it sleeps, a wake makes it look again.
 *
 * Claims. A claim hands its wake on, because there may be more work, when it gets all it asked for,
 * when it fails, when its client has gone, and when it gets something from a look that began before
 * the wake. Notices name executions that came; the slow poll names executions that are there, so it
 * may see again executions for which a claim was woken and which that claim has not taken yet. So
 * the poll wakes no sleeper for a queue at which a woken claim is looking; that claim looks once
 * more instead, or hands its wake on. If it still looks at the next poll, it may be held up, and
 * another claim is woken. Two claims are woken for one execution only when the poll falls between a
 * commit and its notice, or between a look in vain and the commit of a quicker claim. A claim that
 * finds no room for its answer (answers.h) sleeps here too, and looks after a pause.
 *
 * Ends. A commit of this process reports the executions and flows that it ended, whatever ended
 * them, while a request waits for an end (`ends` is not 0). None is missed: a request is counted
 * before its second look, and a commit asks for the count after it is durable; so if the look came
 * before the commit, the commit finds the count. An end by another replica is found by the first
 * few looks, which a request makes by itself, and then by upkeep, which looks for all once a
 * second.
 *
 * Watches sleep until a commit of this replica, a notice or the slow poll wakes them.
 *
 * Locks. A call that finds the row of its flow locked by another transaction, of an operator's psql
 * for example, is here between its tries: no engine thread waits with it, and calls for other flows
 * go on. No wake is meant for it; it tries again after a pause, from the back of its queue.
 */

#include "net/wait/waits.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "base/thread.h"
#include "engine/job/claim.h"
#include "net/auth.h"
#include "net/group/group.h"
#include "net/http/loop.h"
#include "net/server.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#define SWEEP_US      WEFT_SECOND
#define SOON_US       (5 * WEFT_MS)
#define ROOM_LAST_US  (250 * WEFT_MS)
#define LOOK_FIRST_US (50 * WEFT_MS)
#define LOOK_LAST_US  WEFT_SECOND
#define LOOK_ALONE_US (200 * WEFT_MS)   /* the last pause of a notified request between its looks */
#define LOCK_US       (5 * WEFT_SECOND) /* a flow that is locked for longer is answered as busy */
enum { BUCKETS = 256 };

/*
 * A waiting request. While it sleeps it belongs to the list, under the lock; otherwise to the
 * thread that runs it, and the list only points to it.
 */
struct weft_waiter {
    TAILQ_ENTRY(weft_waiter) all, same; /* same: in its bucket */
    struct weft_request *request;
    enum weft_metric_wait kind;
    bool asleep;
    weft_usec until_us;      /* boot time, as all of these; 0: its client has gone */
    weft_usec look_us;       /* when to look again without being woken; WEFT_NEVER */
    weft_usec pause_us;      /* for an end, or for room: how long it slept last */
    struct weft_woken woken; /* the wake it was given; count 0: none */
    bool late;               /* the wake came while it looked, and may be for work it cannot see */
    bool notified;           /* of an end: by a commit here, or by upkeep, which looks for all */
    const struct weft_claim *claim; /* of a claim */
    struct weft_id id;              /* of an end: the execution or the flow */
    int32_t worker;                 /* of a watch */
};
TAILQ_HEAD(waiter_list, weft_waiter); /* the longest waiter first */

struct weft_waits {
    struct weft_server *server;
    struct weft_waits_ops ops;
    pthread_t thread;
    bool started;
    _Atomic size_t count, ends; /* all; for an end; read without the lock to leave early */

    pthread_mutex_t lock; /* over all below */
    pthread_cond_t changed;
    struct waiter_list all, bucket[WEFT_WAIT_COUNT][BUCKETS];
    weft_usec wakes_us; /* when the thread wakes by itself */
    bool recheck;       /* tokens have changed */
    bool stopping, ended;
};

/* ---- The list; all under the lock ------------------------------------------------------------ */

static struct waiter_list *claims_of(struct weft_waits *waits, const char *ns)
{
    return &waits->bucket[WEFT_WAIT_CLAIM][weft_text_bucket(ns ? ns : "default", BUCKETS)];
}

/* Of ends by the last byte of the id, which is random; of watches by the number of the worker. */
static struct waiter_list *bucket(struct weft_waits *waits, enum weft_metric_wait kind, int hash)
{
    return &waits->bucket[kind][(unsigned)hash % BUCKETS];
}

static struct waiter_list *bucket_of(struct weft_waits *waits, const struct weft_waiter *waiter)
{
    if (waiter->kind == WEFT_WAIT_CLAIM)
        return claims_of(waits, waiter->claim->ns);
    return bucket(waits, waiter->kind,
                  waiter->kind == WEFT_WAIT_END ? waiter->id.byte[15] : waiter->worker);
}

/* Puts a request on the list; `as` has what is known of it. */
static void add(struct weft_waits *waits, struct weft_request *request,
                const struct weft_waiter *as)
{
    struct weft_waiter *waiter = weft_alloc(1, sizeof(*waiter));
    *waiter = *as;
    waiter->request = request;
    waiter->look_us = WEFT_NEVER;
    request->waiter = waiter;
    TAILQ_INSERT_TAIL(bucket_of(waits, waiter), waiter, same);
    TAILQ_INSERT_TAIL(&waits->all, waiter, all);
    atomic_fetch_add(&waits->count, 1);
    atomic_fetch_add(&waits->ends, waiter->kind == WEFT_WAIT_END);
    weft_metric_add(waits->server->metrics, WEFT_METRIC_WAITERS, waiter->kind, 1);
}

static void drop(struct weft_waits *waits, struct weft_request *request)
{
    struct weft_waiter *waiter = request->waiter;
    TAILQ_REMOVE(bucket_of(waits, waiter), waiter, same);
    TAILQ_REMOVE(&waits->all, waiter, all);
    atomic_fetch_sub(&waits->count, 1);
    atomic_fetch_sub(&waits->ends, waiter->kind == WEFT_WAIT_END);
    weft_metric_sub(waits->server->metrics, WEFT_METRIC_WAITERS, waiter->kind, 1);
    request->waiter = NULL;
    free(waiter);
}

static weft_usec wake_time(const struct weft_waiter *waiter)
{
    return waiter->look_us < waiter->until_us ? waiter->look_us : waiter->until_us;
}

/* It sleeps from here on, at most until look_us. */
static void fall_asleep(struct weft_waits *waits, struct weft_waiter *waiter, weft_usec look_us)
{
    waiter->asleep = true;
    waiter->look_us = look_us;
    if (wake_time(waiter) >= waits->wakes_us)
        return;
    waits->wakes_us = wake_time(waiter);
    pthread_cond_signal(&waits->changed);
}

/* Sends a sleeper to look again: it belongs to the engine threads from here on. */
static void put_again(struct weft_waits *waits, struct weft_waiter *waiter)
{
    waiter->asleep = false;
    waits->ops.put_again(waits->server->groups, waiter->request);
}

/* ---- Claims ---------------------------------------------------------------------------------- */

static uint32_t takes(const struct weft_waiter *waiter)
{
    return waiter->claim->max ? waiter->claim->max : 1;
}

void weft_waits_enter(struct weft_waits *waits, struct weft_request *request,
                      const struct weft_claim *claim, weft_usec until_us)
{
    struct weft_waiter *waiter = request->waiter;
    /* While it is awake its times belong to its thread. */
    if (waiter && (waiter->until_us == until_us || waiter->until_us == 0))
        return;
    pthread_mutex_lock(&waits->lock);
    if (waiter)
        waiter->until_us = until_us; /* it waited for room before */
    else
        add(waits, request,
            &(struct weft_waiter){.kind = WEFT_WAIT_CLAIM, .until_us = until_us, .claim = claim});
    pthread_mutex_unlock(&waits->lock);
}

/* Sleeps until look_us, unless a wake came while it looked; `keeps`: it keeps that wake. */
static bool sleep_until(struct weft_waits *waits, struct weft_waiter *waiter, weft_usec look_us,
                        bool keeps)
{
    pthread_mutex_lock(&waits->lock);
    bool sleeps = !waits->stopping && weft_boot_us() < waiter->until_us;
    bool again = waiter->late && !keeps;
    if (sleeps) {
        waiter->woken.count = keeps ? waiter->woken.count : 0;
        waiter->late = false;
        if (again)
            put_again(waits, waiter);
        else
            fall_asleep(waits, waiter, look_us);
    }
    pthread_mutex_unlock(&waits->lock);
    return sleeps;
}

/*
 * It keeps the wake it was given: other claims that may serve the queue are of the same namespace
 * and find no room either, and it looks by itself when there is some.
 */
bool weft_waits_park(struct weft_waits *waits, struct weft_request *request,
                     const struct weft_claim *claim, weft_usec until_us)
{
    weft_waits_enter(waits, request, claim, until_us);
    struct weft_waiter *waiter = request->waiter;
    waiter->pause_us = waiter->pause_us ? waiter->pause_us * 2 : SOON_US;
    if (waiter->pause_us > ROOM_LAST_US)
        waiter->pause_us = ROOM_LAST_US;
    return sleep_until(waits, waiter, weft_boot_us() + waiter->pause_us, true);
}

bool weft_waits_sleep(struct weft_waits *waits, struct weft_request *request, weft_usec look_us)
{
    return sleep_until(waits, request->waiter, look_us, false);
}

/* The first claim that may be of the namespace of a queue; NULL when none can be. Locked. */
static struct weft_waiter *first_for(struct weft_waits *waits, int32_t queue)
{
    const char *ns = waits->ops.namespace_of(waits->server->engine, queue);
    return ns ? TAILQ_FIRST(claims_of(waits, ns)) : NULL;
}

/*
 * Gives the wake to sleepers first, then to claims that are looking and may have looked too early.
 * Returns how many sleepers were woken. Under the lock.
 */
static size_t wake_for(struct weft_waits *waits, const struct weft_woken *woken)
{
    uint64_t left = woken->count;
    size_t sleepers = 0;
    for (int awake = 0; awake < 2; awake++)
        for (struct weft_waiter *w = first_for(waits, woken->queue); w && left > 0;
             w = TAILQ_NEXT(w, same)) {
            if (w->asleep == (awake == 1) || w->late ||
                !waits->ops.fits(waits->server->engine, w->claim, woken->queue))
                continue;
            w->woken = (struct weft_woken){woken->queue, (uint32_t)left};
            w->late = awake == 1;
            left = left > takes(w) ? left - takes(w) : 0;
            sleepers += w->asleep;
            if (w->asleep)
                put_again(waits, w);
        }
    return sleepers;
}

/* True when a claim that was woken for the queue is looking: it will look again. Locked. */
static bool is_looked_at(struct weft_waits *waits, int32_t queue)
{
    for (struct weft_waiter *w = first_for(waits, queue); w; w = TAILQ_NEXT(w, same))
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
    size_t sleepers = 0;
    pthread_mutex_lock(&waits->lock);
    for (size_t i = 0; i < count; i++)
        if (source != WEFT_WAKE_POLL || !is_looked_at(waits, woken[i].queue))
            sleepers += wake_for(waits, &woken[i]);
    pthread_mutex_unlock(&waits->lock);
    weft_metric_add(waits->server->metrics, WEFT_METRIC_WAKES, source, sleepers);
}

void weft_waits_leave(struct weft_waits *waits, struct weft_request *request,
                      enum weft_wait_end end)
{
    if (!request->waiter)
        return;
    uint32_t most = takes(request->waiter);
    pthread_mutex_lock(&waits->lock);
    bool late = request->waiter->late;
    struct weft_woken woken = request->waiter->woken;
    drop(waits, request);
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

/* ---- Ends, watches, locks -------------------------------------------------------------------- */

/* Puts the request on the list, if it is not there yet. False: it must not wait any longer. */
static bool wait_as(struct weft_request *request, const struct weft_waiter *as)
{
    struct weft_waits *waits = request->server->waits;
    bool waits_on = weft_boot_us() < as->until_us;
    pthread_mutex_lock(&waits->lock);
    waits_on &= !waits->stopping && (!request->waiter || request->waiter->until_us != 0);
    if (waits_on && request->waiter && request->waiter->kind == WEFT_WAIT_LOCK &&
        as->kind != WEFT_WAIT_LOCK)
        drop(waits, request); /* it has got the lock that it waited for */
    if (waits_on && !request->waiter)
        add(waits, request, as);
    pthread_mutex_unlock(&waits->lock);
    return waits_on;
}

bool weft_wait_for_end(struct weft_request *request, const struct weft_id *id, weft_usec until_us,
                       enum weft_wait_looks looks)
{
    struct weft_waiter as = {.kind = WEFT_WAIT_END, .until_us = until_us, .id = *id};
    as.notified = looks == WEFT_WAIT_NOTIFIED;
    as.woken.count = 1; /* it may have ended since the caller looked: once more */
    return wait_as(request, &as);
}

bool weft_wait_for_leases(struct weft_request *request, int32_t worker, weft_usec until_us)
{
    struct weft_waiter as = {.kind = WEFT_WAIT_WATCH, .until_us = until_us, .worker = worker};
    return wait_as(request, &as);
}

bool weft_wait_for_lock(struct weft_request *request)
{
    if (request->lock_until_us == 0)
        request->lock_until_us = weft_boot_us() + LOCK_US;
    struct weft_waiter as = {.kind = WEFT_WAIT_LOCK, .until_us = request->lock_until_us};
    return wait_as(request, &as);
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
        put_again(waits, waiter);
    } else {
        weft_usec look_us = next_look(waiter, now_us);
        fall_asleep(waits, waiter, waits->stopping ? now_us : look_us);
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
    drop(waits, request);
    pthread_mutex_unlock(&waits->lock);
}

/* Wakes a sleeper, or has one that looks now look once more. Returns 1 or 0. Locked. */
static size_t wake(struct weft_waits *waits, struct weft_waiter *waiter)
{
    bool asleep = waiter->asleep;
    waiter->woken.count = !asleep;
    if (asleep)
        put_again(waits, waiter);
    return asleep;
}

const _Atomic size_t *weft_waits_for_ends(const struct weft_waits *waits)
{
    return &waits->ends;
}

void weft_wait_ended(void *context, const struct weft_id *id, size_t count)
{
    struct weft_waits *waits = ((struct weft_server *)context)->waits;
    if (atomic_load(&waits->ends) == 0)
        return;
    struct weft_waiter *w;
    pthread_mutex_lock(&waits->lock);
    for (size_t i = 0; i < count; i++)
        TAILQ_FOREACH (w, bucket(waits, WEFT_WAIT_END, id[i].byte[15]), same)
            if (weft_id_cmp(&w->id, &id[i]) == 0)
                (void)wake(waits, w);
    pthread_mutex_unlock(&waits->lock);
}

size_t weft_waits_ids(struct weft_waits *waits, struct weft_arena *arena, struct weft_id **ret_id)
{
    size_t most = atomic_load(&waits->ends), count = 0;
    *ret_id = NULL;
    if (most == 0)
        return 0;
    struct weft_id *id = weft_new_array(arena, struct weft_id, most);
    struct weft_waiter *w;
    pthread_mutex_lock(&waits->lock);
    TAILQ_FOREACH (w, &waits->all, all)
        if (count < most && w->kind == WEFT_WAIT_END && w->asleep && w->look_us == WEFT_NEVER)
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
    size_t sleepers = 0;
    struct weft_waiter *w;
    pthread_mutex_lock(&waits->lock);
    for (size_t i = 0; i < count; i++)
        TAILQ_FOREACH (w, bucket(waits, WEFT_WAIT_WATCH, worker[i]), same)
            if (w->worker == worker[i])
                sleepers += wake(waits, w);
    pthread_mutex_unlock(&waits->lock);
    weft_metric_add(waits->server->metrics, WEFT_METRIC_WAKES, source, sleepers);
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* Queues all that are due again; returns when the next one is. Under the lock. */
static weft_usec wake_due(struct weft_waits *waits, weft_usec now_us)
{
    weft_usec next_us = WEFT_NEVER;
    for (struct weft_waiter *w = TAILQ_FIRST(&waits->all); w; w = TAILQ_NEXT(w, all)) {
        if (w->asleep && (waits->stopping || wake_time(w) <= now_us))
            put_again(waits, w);
        if (w->asleep && wake_time(w) < next_us)
            next_us = wake_time(w);
    }
    return next_us;
}

/* Clients that have hung up give up their places, so that no work is claimed for them. Locked. */
static void wake_gone(struct weft_waits *waits)
{
    size_t count = atomic_load(&waits->count), used = 0;
    struct pollfd *fd = weft_alloc(count + 1, sizeof(*fd));
    struct weft_waiter **who = weft_alloc(count + 1, sizeof(struct weft_waiter *));
    struct weft_waiter *w;
    TAILQ_FOREACH (w, &waits->all, all)
        if (w->asleep && used < count) {
            fd[used] = (struct pollfd){.fd = waits->ops.fd(w->request), .events = POLLRDHUP};
            who[used++] = w;
        }
    if (used > 0 && poll(fd, (nfds_t)used, 0) > 0)
        for (size_t i = 0; i < used; i++)
            if (fd[i].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) {
                who[i]->until_us = 0;
                put_again(waits, who[i]);
            }
    free(fd);
    free((void *)who);
}

/* A request whose token was revoked or has expired must not get what it waits for. Locked. */
static void wake_refused(struct weft_waits *waits)
{
    struct weft_err ignored;
    for (struct weft_waiter *w = TAILQ_FIRST(&waits->all); w; w = TAILQ_NEXT(w, all))
        if (w->asleep && waits->ops.check_token(waits->server, w->request, &ignored)) {
            w->until_us = 0;
            put_again(waits, w);
        }
    waits->recheck = false;
}

/* Sets a flag that the thread looks at, and has it look. */
static void set(struct weft_waits *waits, bool *flag)
{
    pthread_mutex_lock(&waits->lock);
    *flag = true;
    waits->wakes_us = 0;
    pthread_cond_signal(&waits->changed);
    pthread_mutex_unlock(&waits->lock);
}

void weft_waits_recheck(struct weft_waits *waits)
{
    set(waits, &waits->recheck);
}

static void *run_thread(void *context)
{
    struct weft_waits *waits = context;
    weft_usec swept_us = weft_boot_us();
    pthread_mutex_lock(&waits->lock);
    while (!waits->ended) {
        bool sweeps = weft_boot_us() - swept_us >= SWEEP_US;
        if (sweeps) {
            /* Before the due ones are queued: it answers requests, which leave this list. */
            pthread_mutex_unlock(&waits->lock);
            waits->ops.sweep_groups(waits->server->groups);
            waits->ops.sweep_loop(waits->server->loop);
            pthread_mutex_lock(&waits->lock);
            swept_us = weft_boot_us();
        }
        weft_usec next_us = wake_due(waits, weft_boot_us());
        if (waits->recheck || sweeps)
            wake_refused(waits);
        if (sweeps)
            wake_gone(waits);
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

struct weft_waits *weft_waits_new(struct weft_server *server, const struct weft_waits_ops *ops)
{
    static const struct weft_waits_ops of_server = {
        .put_again = weft_groups_put_again,
        .check_token = weft_auth_again,
        .fd = weft_loop_fd,
        .sweep_groups = weft_groups_sweep,
        .sweep_loop = weft_loop_sweep,
        .namespace_of = weft_engine_namespace_of,
        .fits = weft_engine_fits,
    };
    struct weft_waits *waits = weft_alloc(1, sizeof(*waits));
    waits->server = server;
    waits->ops = ops ? *ops : of_server;
    TAILQ_INIT(&waits->all);
    for (size_t kind = 0; kind < WEFT_WAIT_COUNT; kind++)
        for (size_t i = 0; i < BUCKETS; i++)
            TAILQ_INIT(&waits->bucket[kind][i]);
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
    set(waits, &waits->stopping);
}

void weft_waits_free(struct weft_waits *waits)
{
    if (!waits)
        return;
    set(waits, &waits->ended);
    if (waits->started)
        pthread_join(waits->thread, NULL);
    pthread_cond_destroy(&waits->changed);
    pthread_mutex_destroy(&waits->lock);
    free(waits);
}
