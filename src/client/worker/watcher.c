/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leases that others ended: by cancel, deadline, attempt timeout or revoke. Handlers shall know at
 * once, not with the next heartbeat.
 *
 * Over a server the watcher, a thread of its own, asks for them with a call that waits there while
 * there are jobs in hand, and leaves the answer in `lost` for the keeper. Over an engine the
 * keeper asks once a second while it holds leases, and at once when a call in this process ended
 * one. Either way the keeper marks the job as a renewal would, and when its handler has returned it
 * lets go of the lease (keeper.c): until then the execution keeps its place in a lane with a
 * limit.
 *
 * All of this is hints: a lease that is missed here is found by the next renewal. A server that
 * does not know the call is not asked again for a while.
 */

#include "client/worker/worker.h"

#include "base/alloc.h"
#include "core/fence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_US    WEFT_SECOND        /* how often an engine is asked */
#define EARLY_US   (10 * WEFT_SECOND) /* a claim that takes longer than this is not under way */
#define WAITED_US  WEFT_SECOND        /* a call that took less has not waited */
#define PAUSE_US   WEFT_SECOND
#define UNKNOWN_US (60 * WEFT_SECOND) /* the server has no such call */

enum { WATCH_WAIT_MS = 20000 };

/* ---- The keeper's part ----------------------------------------------------------------------- */

static bool is_lease(const struct weft_job *job, const struct weft_ended_lease *lease)
{
    return job->claimed->epoch == lease->epoch &&
           memcmp(&job->claimed->id, &lease->id, sizeof(lease->id)) == 0;
}

/* Marks the job of a lease that is gone. False: this worker knows no such job. The lock is held. */
static bool mark(struct weft_worker *worker, const struct weft_ended_lease *lease)
{
    for (struct weft_grant *grant = worker->grant; grant; grant = grant->next)
        for (size_t i = 0; i < grant->count; i++) {
            struct weft_job *job = &grant->job[i];
            if (job->stage == WEFT_STAGE_GONE || !is_lease(job, lease))
                continue;
            if (job->fence == WEFT_FENCE_NONE)
                job->fence = lease->reason;
            return true;
        }
    return false;
}

static bool is_fenced(const struct weft_job *job, weft_usec before_us)
{
    (void)before_us;
    return job->fence != WEFT_FENCE_NONE;
}

void weft_watch_sift(struct weft_worker *worker)
{
    struct weft_job_list gone;
    size_t dropped = 0;
    pthread_mutex_lock(&worker->lock);
    weft_hold_take_out(worker, is_fenced, 0, &gone);
    pthread_mutex_unlock(&worker->lock);
    for (struct weft_job *job = gone.first, *next; job; job = next) {
        next = job->next;
        if (weft_fence_drains(job->fence)) {
            job->stage = WEFT_STAGE_FINISHED;
            job->word = WEFT_WORD_RELEASE;
            weft_job_list_add(&worker->unsent, job);
        } else {
            dropped++;
            weft_hold_drop(worker, job);
        }
    }
    weft_worker_count(worker, &worker->stats.fenced, dropped);
}

/* A lease of a job that is not known yet: the claim that brings it may be under way. */
static void remember(struct weft_worker *worker, const struct weft_ended_lease *lease)
{
    worker->early[worker->early_next++ % WEFT_EARLY_MAX] =
        (struct weft_early){.lease = *lease, .at_us = weft_mono_us()};
}

/* Leases that were ended before their jobs were known. The lock is held. */
static bool mark_early(struct weft_worker *worker)
{
    bool any = false;
    size_t left = 0;
    weft_usec old_us = weft_mono_us() - EARLY_US;
    for (size_t i = 0; i < WEFT_EARLY_MAX; i++) {
        struct weft_early *early = &worker->early[i];
        bool marked = early->at_us != 0 && mark(worker, &early->lease);
        if (marked || early->at_us < old_us)
            early->at_us = 0;
        left += early->at_us != 0;
        any |= marked;
    }
    if (left == 0)
        worker->early_next = 0;
    return any;
}

/* Takes in leases that are gone. The lock is held. */
static bool mark_all(struct weft_worker *worker, const struct weft_ended_lease *lease, size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        bool marked = mark(worker, &lease[i]);
        if (!marked)
            remember(worker, &lease[i]);
        any |= marked;
    }
    return any;
}

weft_usec weft_watch_due(const struct weft_worker *worker)
{
    return worker->remote || !worker->grant ? WEFT_NEVER : worker->watch.at_us;
}

/* Asks the engine; over an engine no call waits. */
static void ask_engine(struct weft_worker *worker, struct weft_arena *arena,
                       struct weft_watched *ret_watched)
{
    struct weft_err err = {0};
    const struct weft_watch watch = {.worker = worker->options.name};
    worker->watch.at_us = weft_mono_us() + LOOK_US;
    const struct weft_op_call call = {
        .op = WEFT_OP_WATCH, .in = &watch, .count = 1, .out = ret_watched, .arena = arena};
    enum weft_rc rc = worker->weft->backend->call(&worker->via, &call, &err);
    if (!weft_keeper_note_result(worker, &worker->watch, rc, &err))
        *ret_watched = (struct weft_watched){0};
}

/* Marks the jobs of ended leases; `watched` is the answer of an engine. */
static void take_in(struct weft_worker *worker, const struct weft_watched *watched)
{
    pthread_mutex_lock(&worker->lock);
    weft_hold_adopt(worker);
    bool any = mark_early(worker);
    any |= mark_all(worker, watched->item, watched->count);
    any |= mark_all(worker, worker->lost, worker->lost_count);
    worker->lost_count = 0;
    pthread_mutex_unlock(&worker->lock);
    if (any)
        weft_watch_sift(worker);
}

void weft_watch_look(struct weft_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool now = worker->watch_now, found = worker->lost_count > 0 || worker->early_next > 0;
    worker->watch_now = false;
    pthread_mutex_unlock(&worker->lock);
    bool asks = !worker->remote && worker->grant &&
                ((now && worker->watch.failures == 0) || weft_watch_due(worker) <= weft_mono_us());
    if (!asks && !found)
        return;
    struct weft_arena *arena = weft_arena_new();
    struct weft_watched watched = {0};
    if (asks)
        ask_engine(worker, arena, &watched);
    take_in(worker, &watched);
    weft_arena_free(arena);
}

/* ---- The watcher ----------------------------------------------------------------------------- */

/* Leaves ended leases for the keeper. The lock is held. */
static void hand_over(struct weft_worker *worker, const struct weft_watched *watched)
{
    if (worker->lost_count + watched->count > worker->lost_room) {
        worker->lost_room = 2 * (worker->lost_count + watched->count);
        worker->lost = weft_realloc(worker->lost, worker->lost_room, sizeof(*worker->lost));
    }
    memcpy(worker->lost + worker->lost_count, watched->item,
           watched->count * sizeof(*watched->item));
    worker->lost_count += watched->count;
    worker->poked = true;
    pthread_cond_signal(&worker->news);
}

/* One call. How long to wait before the next: a server that is away is not asked all the time. */
static weft_usec watch_there(struct weft_worker *worker)
{
    const struct weft_watch watch = {.worker = worker->options.name, .wait_ms = WATCH_WAIT_MS};
    const struct weft_via via = {
        .weft = worker->weft, .one_try = true, .stop = &worker->watch_stop};
    struct weft_arena *arena = weft_arena_new();
    struct weft_watched watched = {0};
    struct weft_err err = {0};
    weft_usec began_us = weft_mono_us();
    const struct weft_op_call call = {
        .op = WEFT_OP_WATCH, .in = &watch, .count = 1, .out = &watched, .arena = arena};
    enum weft_rc rc = worker->weft->backend->call(&via, &call, &err);
    bool waited = weft_mono_us() - began_us > WAITED_US;
    if (!rc && watched.count > 0) {
        pthread_mutex_lock(&worker->lock);
        hand_over(worker, &watched);
        pthread_mutex_unlock(&worker->lock);
    }
    weft_arena_free(arena);
    if (rc == WEFT_NOT_FOUND || rc == WEFT_FORBIDDEN || rc == WEFT_UNAUTHORIZED)
        return UNKNOWN_US;
    return rc || (watched.count == 0 && !waited) ? PAUSE_US : 0;
}

/* Sleeps until then, or until the worker has ended. The lock is held. */
static void pause_until(struct weft_worker *worker, weft_usec until_us)
{
    const struct timespec until = {.tv_sec = until_us / WEFT_SECOND,
                                   .tv_nsec = until_us % WEFT_SECOND * 1000};
    int waited = 0;
    while (!worker->ended && waited != ETIMEDOUT && weft_mono_us() < until_us)
        waited = pthread_cond_timedwait(&worker->held, &worker->lock, &until);
}

void *weft_watcher_main(void *context)
{
    struct weft_worker *worker = context;
    pthread_mutex_lock(&worker->lock);
    while (!worker->ended) {
        if (worker->running + worker->queue.count == 0) {
            pthread_cond_wait(&worker->held, &worker->lock);
            continue;
        }
        pthread_mutex_unlock(&worker->lock);
        weft_usec pause_us = watch_there(worker);
        pthread_mutex_lock(&worker->lock);
        if (pause_us > 0)
            pause_until(worker, weft_mono_us() + pause_us);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}
