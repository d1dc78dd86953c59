/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a worker: made, given its kinds, started, woken, stopped, freed.
 *
 * Stopping is the keeper's work, because it is made of calls to the store: weft_worker_stop() only
 * asks for it and waits. A handler that outlasts the grace is left running; its thread cannot be
 * ended from outside, so weft_worker_free() waits for it to return. A worker does not survive a
 * fork(): the child has none of its threads, and a lock may have been held by one of them. There
 * calls are refused, and stopping and freeing do nothing (the memory stays until the child ends).
 */

#include "client/worker/worker.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/thread.h"
#include "core/capset.h"
#include "core/spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STOP_LOOK_US (100 * WEFT_MS) /* how often a call that can be stopped looks at that */

enum {
    DEFAULT_POLL_MS = 200,
    DEFAULT_GRACE_MS = 10000,
    WAIT_MAX_MS = 86400000, /* poll_ms and stop_grace_ms */
    CALL_MS = 10000,        /* how long a call to a server may take */
    LAST_WORD_MS = 2000,    /* after the grace, for giving back leases that handlers still hold */
    HOST_MAX = 64,
    LOOK_FIRST_MS = 20,    /* the first pause between two looks of a call that waits on a store, */
    LOOK_SLOWEST_MS = 250, /* the longest, */
    LOOK_LEAST_MS = 5,     /* and the shortest, however often it is woken */
};

/* ---- Small things ---------------------------------------------------------------------------- */

void weft_job_list_init(struct weft_job_list *list)
{
    *list = (struct weft_job_list){.last = &list->first};
}

void weft_job_list_add(struct weft_job_list *list, struct weft_job *job)
{
    job->next = NULL;
    *list->last = job;
    list->last = &job->next;
    list->count++;
}

void weft_job_list_move(struct weft_job_list *to, struct weft_job_list *from)
{
    if (!from->first)
        return;
    *to->last = from->first;
    to->last = from->last;
    to->count += from->count;
    weft_job_list_init(from);
}

void weft_grant_free(struct weft_grant *grant)
{
    for (size_t i = 0; i < grant->count; i++)
        weft_job_clear(&grant->job[i]);
    weft_arena_free(grant->arena);
    free(grant->job);
    free(grant);
}

void weft_worker_count(struct weft_worker *worker, uint64_t *number, uint64_t more)
{
    pthread_mutex_lock(&worker->lock);
    *number += more;
    pthread_mutex_unlock(&worker->lock);
}

/* ---- Waking: changes in this process; changes by others are found by looking again ----------- */

weft_usec weft_mono_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (weft_usec)now.tv_sec * WEFT_SECOND + now.tv_nsec / 1000;
}

void weft_wake_workers(struct weft *weft, bool ready, weft_usec due_us)
{
    pthread_mutex_lock(&weft->lock);
    for (struct weft_worker *worker = weft->worker; worker; worker = worker->next) {
        pthread_mutex_lock(&worker->lock);
        worker->claim_now |= ready;
        if (due_us < worker->delayed_us)
            worker->delayed_us = due_us;
        worker->poked = true;
        pthread_cond_signal(&worker->news);
        pthread_mutex_unlock(&worker->lock);
    }
    if (ready) {
        weft->changes[WEFT_CHANGE_READY]++;
        pthread_cond_broadcast(&weft->changed);
    }
    pthread_mutex_unlock(&weft->lock);
}

void weft_wake_watches(struct weft *weft)
{
    pthread_mutex_lock(&weft->lock);
    for (struct weft_worker *worker = weft->worker; worker; worker = worker->next) {
        pthread_mutex_lock(&worker->lock);
        worker->watch_now = worker->poked = true;
        pthread_cond_signal(&worker->news);
        pthread_mutex_unlock(&worker->lock);
    }
    weft->changes[WEFT_CHANGE_LEASE]++;
    pthread_cond_broadcast(&weft->changed);
    pthread_mutex_unlock(&weft->lock);
}

static void add_worker(struct weft *weft, struct weft_worker *worker)
{
    pthread_mutex_lock(&weft->lock);
    worker->next = weft->worker;
    weft->worker = worker;
    pthread_mutex_unlock(&weft->lock);
}

static void remove_worker(struct weft *weft, const struct weft_worker *worker)
{
    pthread_mutex_lock(&weft->lock);
    struct weft_worker **at = &weft->worker;
    while (*at && *at != worker)
        at = &(*at)->next;
    if (*at)
        *at = (*at)->next;
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
                               .pause_us = LOOK_FIRST_MS * WEFT_MS};
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
    weft_usec now_us = weft_mono_us(), least_us = now_us + LOOK_LEAST_MS * WEFT_MS;
    if (now_us >= look->until_us)
        return false;
    weft_usec at_us = earlier(now_us + look->pause_us, look->until_us);
    look->pause_us = earlier(2 * look->pause_us, LOOK_SLOWEST_MS * WEFT_MS);
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

/* ---- Options --------------------------------------------------------------------------------- */

/* HOST-PID-RANDOM out of the characters a name may have. */
static const char *make_name(struct weft_arena *arena)
{
    char host[HOST_MAX + 1] = "";
    if (gethostname(host, sizeof(host) - 1) != 0 || !*host)
        memcpy(host, "host", sizeof("host"));
    for (char *c = host; *c; c++) {
        const char one[2] = {*c, '\0'};
        if (!weft_name_valid(one))
            *c = '-';
    }
    uint32_t random;
    weft_random(&random, sizeof(random));
    return weft_arena_printf(arena, "%s-%ld-%08x", host, (long)getpid(), random);
}

static enum weft_rc check_range(int64_t value, int64_t min, int64_t max, const char *field,
                                struct weft_err *err)
{
    return weft_check_range(
        &(struct weft_range){.field = field, .value = value, .min = min, .max = max}, err);
}

static enum weft_rc check_options(const struct weft_worker_options *given, struct weft_arena *arena,
                                  struct weft_err *err)
{
    enum weft_rc rc = given->name ? weft_name_check(given->name, "name", err) : WEFT_OK;
    if (!rc && given->lane_count > WEFT_CLAIM_LANES_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "lanes", "%zu lanes, at most %d are allowed",
                               given->lane_count, WEFT_CLAIM_LANES_MAX);
    if (!rc &&
        ((given->lane_count && !given->lanes) || (given->capability_count && !given->capabilities)))
        return weft_missing(given->lanes ? "capabilities" : "lanes", err);
    for (size_t i = 0; i < given->lane_count && !rc; i++)
        rc = weft_name_check(given->lanes[i], "lanes", err);
    const char *route;
    if (!rc)
        rc = weft_capset_text(given->capabilities, given->capability_count, arena, &route, err);
    if (!rc)
        rc = check_range(given->threads, 0, WEFT_WORKER_THREADS_MAX, "threads", err);
    if (!rc && given->lease_ms)
        rc = check_range(given->lease_ms, WEFT_LEASE_MIN_MS, WEFT_LEASE_MAX_MS, "lease_ms", err);
    if (!rc)
        rc = check_range(given->poll_ms, 0, WAIT_MAX_MS, "poll_ms", err);
    if (!rc)
        rc = check_range(given->stop_grace_ms, 0, WAIT_MAX_MS, "stop_grace_ms", err);
    return rc;
}

static const char *const *copy_texts(struct weft_arena *arena, const char *const *text,
                                     size_t count)
{
    const char **copy = weft_new_array(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++)
        copy[i] = weft_arena_strdup(arena, text[i]);
    return copy;
}

static struct weft_worker_options resolve_options(const struct weft_worker_options *given,
                                                  struct weft_arena *arena)
{
    struct weft_worker_options out = *given;
    out.name = given->name ? weft_arena_strdup(arena, given->name) : make_name(arena);
    out.lanes = copy_texts(arena, given->lanes, given->lane_count);
    out.capabilities = copy_texts(arena, given->capabilities, given->capability_count);
    out.threads = given->threads ? given->threads : 1;
    out.poll_ms = given->poll_ms ? given->poll_ms : DEFAULT_POLL_MS;
    out.stop_grace_ms = given->stop_grace_ms ? given->stop_grace_ms : DEFAULT_GRACE_MS;
    return out;
}

/* ---- Making ---------------------------------------------------------------------------------- */

enum weft_rc weft_worker_new(struct weft *weft, const struct weft_worker_options *options,
                             struct weft_worker **ret_worker, struct weft_err *err)
{
    static const struct weft_worker_options none = {0};
    const struct weft_worker_options *given = options ? options : &none;
    const struct weft_given arguments = {weft, given, 1, ret_worker};
    enum weft_rc rc = weft_check_given(&arguments, err);
    if (rc)
        return rc;
    struct weft_arena *arena = weft_arena_new();
    rc = check_options(given, arena, err);
    if (rc) {
        weft_arena_free(arena);
        return rc;
    }
    struct weft_worker *worker = weft_alloc(1, sizeof(*worker));
    worker->weft = weft;
    worker->remote = weft->fetch != NULL;
    worker->own_name = !given->name;
    worker->via = (struct weft_via){
        .weft = weft, .stop = &worker->all_stop, .one_try = true, .timeout_ms = CALL_MS};
    worker->arena = arena;
    worker->options = resolve_options(given, arena);
    worker->on = weft_new_array(arena, struct weft_kind_handler, WEFT_CLAIM_KINDS_MAX);
    worker->kinds = weft_new_array(arena, const char *, WEFT_CLAIM_KINDS_MAX);
    worker->handler = weft_new_array(arena, pthread_t, worker->options.threads);
    worker->delayed_us = WEFT_NEVER;
    weft_job_list_init(&worker->queue);
    weft_job_list_init(&worker->finished);
    weft_job_list_init(&worker->unsent);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->work, &attr);
    pthread_cond_init(&worker->news, &attr);
    pthread_cond_init(&worker->ask, &attr);
    pthread_cond_init(&worker->held, &attr);
    pthread_cond_init(&worker->done, &attr);
    pthread_condattr_destroy(&attr);
    *ret_worker = worker;
    return WEFT_OK;
}

/* A kind that may have a handler yet; NULL: all the others. */
static enum weft_rc check_kind(const struct weft_worker *worker, const char *kind,
                               struct weft_err *err)
{
    if (!kind && worker->on_rest.handler)
        return weft_fail_field(err, WEFT_CONFLICT, "kind",
                               "all other kinds have a handler already");
    if (!kind)
        return WEFT_OK;
    enum weft_rc rc = weft_name_check(kind, "kind", err);
    if (rc)
        return rc;
    for (size_t i = 0; i < worker->on_count; i++)
        if (strcmp(worker->on[i].kind, kind) == 0)
            return weft_fail_field(err, WEFT_CONFLICT, "kind", "kind '%s' has a handler already",
                                   kind);
    if (worker->on_count == WEFT_CLAIM_KINDS_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "kind", "a worker has at most %d kinds",
                               WEFT_CLAIM_KINDS_MAX);
    return WEFT_OK;
}

enum weft_rc weft_worker_on(struct weft_worker *worker, const char *kind, weft_handler handler,
                            void *context, struct weft_err *err)
{
    if (!worker || !handler)
        return weft_missing(worker ? "handler" : "worker", err);
    enum weft_rc rc = weft_check_process(worker->weft, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&worker->lock);
    bool started = worker->started;
    pthread_mutex_unlock(&worker->lock);
    if (started)
        return weft_fail(err, WEFT_CONFLICT, "the worker has been started: its kinds are fixed");
    rc = check_kind(worker, kind, err);
    if (rc)
        return rc;
    const struct weft_kind_handler on = {
        .kind = weft_arena_strdup(worker->arena, kind), .handler = handler, .context = context};
    if (!kind) {
        worker->on_rest = on;
        return WEFT_OK;
    }
    worker->kinds[worker->on_count] = on.kind;
    worker->on[worker->on_count++] = on;
    return WEFT_OK;
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

static void join_handlers(struct weft_worker *worker)
{
    for (size_t i = 0; i < worker->handlers; i++)
        (void)pthread_join(worker->handler[i], NULL);
    worker->handlers = 0;
}

/* Ends the claimer and the watcher, which the worker does not need any more. */
static void join_callers(struct weft_worker *worker, bool watcher)
{
    if (!worker->remote)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->ended = true;
    atomic_store(&worker->watch_stop, true);
    pthread_cond_signal(&worker->ask);
    pthread_cond_signal(&worker->held);
    pthread_mutex_unlock(&worker->lock);
    (void)pthread_join(worker->claimer, NULL);
    if (watcher)
        (void)pthread_join(worker->watcher, NULL);
}

/* Handlers have the signal mask of the thread that starts them; the others take no signals. */
static int start_threads(struct weft_worker *worker)
{
    int failed = 0;
    while (!failed && worker->handlers < worker->options.threads) {
        pthread_t *thread = &worker->handler[worker->handlers];
        failed = pthread_create(thread, NULL, weft_handler_main, worker);
        if (failed)
            return failed;
        (void)pthread_setname_np(*thread, "weft-handler");
        worker->handlers++;
    }
    if (worker->remote)
        failed = weft_thread_quiet(&worker->claimer, "weft-claimer", weft_claimer_main, worker);
    if (failed)
        return failed;
    if (worker->remote)
        failed = weft_thread_quiet(&worker->watcher, "weft-watcher", weft_watcher_main, worker);
    bool watcher = !failed;
    if (!failed)
        failed = weft_thread_quiet(&worker->keeper, "weft-keeper", weft_keeper_main, worker);
    if (failed)
        join_callers(worker, watcher);
    return failed;
}

enum weft_rc weft_worker_start(struct weft_worker *worker, struct weft_err *err)
{
    if (!worker)
        return weft_missing("worker", err);
    enum weft_rc rc = weft_check_process(worker->weft, err);
    if (rc)
        return rc;
    if (worker->on_count == 0 && !worker->on_rest.handler)
        return weft_invalid(err, "kind", "the worker has no handler: call weft_worker_on() first");
    pthread_mutex_lock(&worker->lock);
    bool started = worker->started;
    worker->started = true;
    pthread_mutex_unlock(&worker->lock);
    if (started)
        return weft_fail(err, WEFT_CONFLICT, "the worker has been started already");

    int failed = start_threads(worker);
    if (!failed) {
        add_worker(worker->weft, worker);
        return WEFT_OK;
    }
    pthread_mutex_lock(&worker->lock);
    worker->stopping = true;
    pthread_cond_broadcast(&worker->work);
    pthread_mutex_unlock(&worker->lock);
    join_handlers(worker);
    worker->started = worker->stopping = worker->ended = false;
    atomic_store(&worker->watch_stop, false);
    return weft_fail(err, WEFT_UNAVAILABLE, "cannot start a thread (error %d)", failed);
}

size_t weft_worker_stop(struct weft_worker *worker)
{
    if (!worker || weft_check_process(worker->weft, NULL))
        return 0;
    pthread_mutex_lock(&worker->lock);
    if (worker->started && !worker->stopping) {
        worker->stopping = true;
        worker->stop_us = weft_mono_us() + worker->options.stop_grace_ms * WEFT_MS;
        worker->poked = true;
        pthread_cond_broadcast(&worker->work);
        pthread_cond_signal(&worker->news);
    }
    /* A call to a server that does not answer is not waited for beyond the grace. */
    weft_usec last_us = worker->stop_us + LAST_WORD_MS * WEFT_MS;
    const struct timespec until = {.tv_sec = last_us / WEFT_SECOND,
                                   .tv_nsec = last_us % WEFT_SECOND * 1000};
    while (worker->started && !worker->ended)
        if (atomic_load(&worker->all_stop))
            pthread_cond_wait(&worker->done, &worker->lock);
        else if (pthread_cond_timedwait(&worker->done, &worker->lock, &until) == ETIMEDOUT)
            atomic_store(&worker->all_stop, true);
    size_t stragglers = worker->stragglers;
    pthread_mutex_unlock(&worker->lock);
    return stragglers;
}

void weft_worker_free(struct weft_worker *worker)
{
    if (!worker || weft_check_process(worker->weft, NULL))
        return;
    (void)weft_worker_stop(worker);
    if (worker->started) {
        remove_worker(worker->weft, worker);
        (void)pthread_join(worker->keeper, NULL);
        join_callers(worker, true);
        join_handlers(worker);
    }
    weft_hold_adopt(worker);
    while (worker->grant) {
        struct weft_grant *grant = worker->grant;
        worker->grant = grant->next;
        weft_grant_free(grant);
    }
    pthread_cond_destroy(&worker->done);
    pthread_cond_destroy(&worker->held);
    pthread_cond_destroy(&worker->ask);
    pthread_cond_destroy(&worker->news);
    pthread_cond_destroy(&worker->work);
    pthread_mutex_destroy(&worker->lock);
    weft_arena_free(worker->arena);
    free(worker->lost);
    free(worker);
}

void weft_worker_stats(const struct weft_worker *worker, struct weft_worker_stats *ret_stats)
{
    if (!worker || !ret_stats)
        return;
    struct weft_worker_stats none = {0};
    if (weft_check_process(worker->weft, &none.last_error)) {
        *ret_stats = none;
        return;
    }
    struct weft_worker *mine = (struct weft_worker *)worker; /* the lock is not part of the value */
    pthread_mutex_lock(&mine->lock);
    *ret_stats = mine->stats;
    ret_stats->running = mine->running;
    pthread_mutex_unlock(&mine->lock);
}
