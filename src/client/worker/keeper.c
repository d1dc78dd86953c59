/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The keeper: the thread of a worker that talks to the store.
 *
 * It turns in a circle: look for leases that others ended, send what has finished, renew the leases
 * that are due, run the passes that are due, claim, and sleep until the next of these is due or
 * until it is poked: by a handler that finished, a submission in this process, or
 * weft_worker_stop(). A failing step is repeated more slowly and delays no other step.
 *
 * The passes run here so that a program with nothing but a worker needs nothing else. Any number
 * of workers may run them at the same time. A server runs them itself: a worker that is connected
 * to one has no passes, and leaves claims to the claimer (worker_claim.c).
 */

#include "base/clock.h"
#include "base/id.h"
#include "client/worker/worker.h"
#include "core/pace.h"
#include "engine/admin/tally.h"
#include "engine/call.h"
#include "engine/engine.h"
#include "engine/scan/pass.h"

#include <time.h>

#define RETRY_FIRST_US   (50 * WEFT_MS)
#define RETRY_SLOWEST_US WEFT_SECOND
#define WAITED_US        WEFT_SECOND /* how long a job may stand in the queue */
#define OUTAGE_US        WEFT_SECOND
#define CLAIM_US         (150 * WEFT_MS) /* in which a claim is answered when there is work */
#define OUTAGE_GRACE_US  (10 * WEFT_SECOND)
#define PASS_MOST_US     (20 * WEFT_MS) /* jobs wait meanwhile */
#define PURGE_LOOK_US    (10 * WEFT_SECOND)

static weft_usec earlier(weft_usec a, weft_usec b)
{
    return a < b ? a : b;
}

/* ---- Success and failure --------------------------------------------------------------------- */

static uint64_t random_number(void)
{
    uint64_t random;
    weft_random(&random, sizeof(random));
    return random;
}

/*
 * The store answers again. The heartbeats of all workers failed while it did not: they get the time
 * to renew before this process takes any lease away, and a lease that is lost all the same does not
 * count against its execution.
 */
static void end_outage(struct weft_worker *worker)
{
    weft_usec now_us = weft_mono_us();
    if (now_us - worker->outage_us > OUTAGE_US) {
        for (size_t p = 0; p < WEFT_SCANNER_COUNT; p++)
            if (weft_scanner_info((enum weft_scanner)p)->takes_leases)
                worker->pass[p].hold_us = now_us + OUTAGE_GRACE_US;
        if (!worker->remote)
            worker->forgive_us =
                weft_clock_now(weft_engine_clock(worker->weft->engine)) + OUTAGE_GRACE_US;
    }
    worker->outage_us = 0;
}

static void note_failure(struct weft_worker *worker, enum weft_rc rc, const struct weft_err *err)
{
    if (rc == WEFT_UNAVAILABLE && worker->outage_us == 0)
        worker->outage_us = weft_mono_us();
    pthread_mutex_lock(&worker->lock);
    worker->stats.store_errors++;
    worker->stats.last_error = *err;
    pthread_mutex_unlock(&worker->lock);
}

bool weft_keeper_note_result(struct weft_worker *worker, struct weft_next *next, enum weft_rc rc,
                             const struct weft_err *err)
{
    if (rc == WEFT_OK) {
        next->failures = 0;
        if (worker->outage_us)
            end_outage(worker);
        return true;
    }
    note_failure(worker, rc, err);
    next->failures++;
    next->at_us = weft_mono_us() + weft_pace_backoff(RETRY_FIRST_US, RETRY_SLOWEST_US,
                                                     next->failures, random_number());
    return false;
}

/* ---- Passes ---------------------------------------------------------------------------------- */

/* A due time of the store's clock on the monotonic one, when it has passed for sure. */
static weft_usec mono_of(const struct weft_worker *worker, weft_usec due_us)
{
    if (due_us == WEFT_NEVER)
        return WEFT_NEVER;
    weft_usec left_us = due_us - weft_clock_now(weft_engine_clock(worker->weft->engine));
    return weft_mono_us() + (left_us > 0 ? left_us + WEFT_MS : left_us);
}

void weft_keeper_expect_due(struct weft_worker *worker, weft_usec due_us)
{
    if (!worker->remote)
        weft_pace_expect(&worker->pass[WEFT_SCANNER_DELAYED_PROMOTER], mono_of(worker, due_us));
}

static void begin_passes(struct weft_worker *worker)
{
    for (size_t p = 0; p < WEFT_SCANNER_COUNT; p++) {
        weft_usec interval_us = weft_scanner_info((enum weft_scanner)p)->interval_us;
        /* The inbox has no due time: it is looked at as often as the worker looks for work. */
        if (p == WEFT_SCANNER_INTAKE)
            interval_us = earlier(interval_us, worker->options.poll_ms * WEFT_MS);
        if (p == WEFT_SCANNER_PURGE) /* no poll says when something was deleted */
            interval_us = earlier(interval_us, PURGE_LOOK_US);
        weft_pace_init(&worker->pass[p], worker->remote ? 0 : interval_us, weft_mono_us());
    }
}

static void run_pass(struct weft_worker *worker, enum weft_scanner pass)
{
    struct weft_pace *pace = &worker->pass[pass];
    const struct weft_pass_config config = {.forgive_us = worker->forgive_us,
                                            .most_us = PASS_MOST_US};
    struct weft_pass_report report = {0};
    struct weft_err err = {0};
    weft_pace_begin(pace, weft_mono_us());
    enum weft_rc rc = weft_engine_pass(worker->weft->engine, pass, &config, &report, &err);
    if (rc) {
        note_failure(worker, rc, &err);
        weft_pace_fail(pace, weft_mono_us(), random_number());
        return;
    }
    const struct weft_pace_run run = {.handled = report.handled > 0,
                                      .more = report.more,
                                      .due_us = mono_of(worker, report.next_due_us)};
    weft_pace_end(pace, &run, weft_mono_us());
    if (run.more && weft_scanner_info(pass)->pause_us > 0)
        pace->hold_us = pace->ended_us + weft_scanner_info(pass)->pause_us;
    if (worker->outage_us)
        end_outage(worker);
    if (report.handled > 0)
        weft_wake_workers(worker->weft, true, WEFT_NEVER);
}

static void run_passes(struct weft_worker *worker)
{
    weft_usec now_us = weft_mono_us();
    for (size_t p = 0; p < WEFT_SCANNER_COUNT; p++)
        if (weft_pace_next(&worker->pass[p]) <= now_us) {
            run_pass(worker, (enum weft_scanner)p);
            /* Once a second, with the pass that has nothing else to hurry for. */
            struct weft_err err = {0};
            if (p == WEFT_SCANNER_LEASE_EXPIRY && weft_engine_tally(worker->weft->engine, &err))
                note_failure(worker, err.rc, &err);
        }
}

/* ---- The circle ------------------------------------------------------------------------------ */

/* Takes in changes by other threads since the last turn. */
static void look_around(struct weft_worker *worker)
{
    weft_hold_take_claim(worker);
    weft_watch_look(worker);
    pthread_mutex_lock(&worker->lock);
    weft_hold_adopt(worker); /* finished jobs may be of new grants */
    size_t finished = worker->finished.count;
    bool claim_now = worker->claim_now || finished > 0;
    weft_usec delayed_us = worker->delayed_us;
    weft_job_list_move(&worker->unsent, &worker->finished);
    worker->to_report |= worker->progressed;
    worker->claim_now = worker->progressed = false;
    worker->delayed_us = WEFT_NEVER;
    worker->poked = false;
    pthread_mutex_unlock(&worker->lock);
    worker->rate_count += finished;
    if (claim_now && worker->claim.failures == 0)
        worker->claim.at_us = 0;
    if (delayed_us != WEFT_NEVER)
        weft_keeper_expect_due(worker, delayed_us);
}

/* When the first job in the queue has waited too long. */
static weft_usec queue_limit(struct weft_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    const struct weft_job *first = worker->queue.first;
    weft_usec limit_us = first ? first->queued_us + WAITED_US : WEFT_NEVER;
    pthread_mutex_unlock(&worker->lock);
    return limit_us;
}

static void rest(struct weft_worker *worker)
{
    weft_usec until_us = queue_limit(worker);
    if (worker->unsent.count > 0)
        until_us = earlier(until_us, worker->send.at_us);
    if (worker->grant)
        until_us = earlier(until_us, earlier(worker->beat.at_us, weft_watch_due(worker)));
    if (worker->to_report)
        until_us = earlier(until_us, worker->report.at_us);
    if (weft_hold_room(worker) > 0)
        until_us = earlier(until_us, worker->claim.at_us);
    pthread_mutex_lock(&worker->lock);
    if (worker->stopping && !worker->claiming)
        until_us = earlier(until_us, worker->stop_us);
    if (worker->stopping && worker->claiming && !atomic_load(&worker->claim_stop))
        until_us = earlier(until_us, worker->claim_began_us + CLAIM_US);
    for (size_t p = 0; p < WEFT_SCANNER_COUNT && !worker->stopping; p++)
        until_us = earlier(until_us, weft_pace_next(&worker->pass[p]));
    const struct timespec until = {.tv_sec = until_us / WEFT_SECOND,
                                   .tv_nsec = until_us % WEFT_SECOND * 1000};
    int waited = 0;
    while (!worker->poked && waited == 0)
        waited = pthread_cond_timedwait(&worker->news, &worker->lock, &until);
    pthread_mutex_unlock(&worker->lock);
}

/*
 * A claim at a server is under way while the worker stops. One that has just begun may be given
 * work, which would stay leased if the call were cut off; one that has waited for a while is ended.
 */
static bool end_claim(struct weft_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool claiming = worker->claiming;
    pthread_mutex_unlock(&worker->lock);
    if (claiming && weft_mono_us() >= worker->claim_began_us + CLAIM_US)
        atomic_store(&worker->claim_stop, true);
    return !claiming;
}

/*
 * A step of stopping. True: nothing is left to do, or the grace is over. Nothing is given back
 * while a claim is under way: the claim would get that very work.
 */
static bool wind_up(struct weft_worker *worker)
{
    if (!end_claim(worker))
        return false;
    weft_hold_give_back(worker, WEFT_NEVER);
    if (worker->unsent.count > 0 && worker->send.at_us <= weft_mono_us())
        weft_words_send(worker);
    pthread_mutex_lock(&worker->lock);
    bool over = weft_mono_us() >= worker->stop_us;
    bool idle = worker->running == 0 && worker->finished.count == 0;
    pthread_mutex_unlock(&worker->lock);
    if (idle && worker->unsent.count == 0)
        return true;
    if (!over)
        return false;
    weft_words_abandon(worker);
    look_around(worker); /* handlers that finished in the last moment still count */
    if (worker->unsent.count > 0)
        weft_words_send(worker);
    if (worker->unsent.count > 0 && worker->send.failures == 0)
        weft_words_send(worker); /* a suspend that was refused or satisfied is another word now */
    return true;
}

static bool is_stopping(struct weft_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool stopping = worker->stopping;
    pthread_mutex_unlock(&worker->lock);
    return stopping;
}

/* One turn. True: the worker has stopped. */
static bool turn(struct weft_worker *worker)
{
    look_around(worker);
    if (is_stopping(worker)) {
        if (wind_up(worker))
            return true;
    } else if (worker->unsent.count > 0 && worker->send.at_us <= weft_mono_us()) {
        weft_words_send(worker);
    }
    if (worker->grant && worker->beat.at_us <= weft_mono_us())
        weft_hold_renew(worker);
    if (worker->to_report && worker->report.at_us <= weft_mono_us())
        weft_hold_report(worker);
    if (is_stopping(worker))
        return false;
    run_passes(worker);
    if (queue_limit(worker) <= weft_mono_us())
        weft_hold_give_back(worker, weft_mono_us() - WAITED_US);
    if (worker->claim.at_us <= weft_mono_us())
        weft_hold_claim(worker);
    return false;
}

/*
 * A worker that has stopped leaves the list of the server at once. One short try: without it the
 * server strikes the name off some minutes later. A goodbye releases every lease under the name,
 * so it is said only under a name that no other process can have been given.
 */
static void say_goodbye(struct weft_worker *worker)
{
    enum { GOODBYE_MS = 1000 };
    struct weft_via via = worker->via;
    struct weft_err err = {0};
    uint64_t released;
    via.one_try = true;
    via.timeout_ms = GOODBYE_MS;
    const struct weft_op_call call = {
        .op = WEFT_OP_GOODBYE, .in = worker->options.name, .out = &released};
    (void)worker->weft->backend->call(&via, &call, &err);
}

void *weft_keeper_main(void *context)
{
    struct weft_worker *worker = context;
    worker->beat.at_us = WEFT_NEVER;
    worker->rate_since_us = weft_mono_us();
    begin_passes(worker);
    while (!turn(worker))
        rest(worker);
    if (worker->remote && worker->own_name && !atomic_load(&worker->all_stop))
        say_goodbye(worker);
    pthread_mutex_lock(&worker->lock);
    worker->ended = true;
    atomic_store(&worker->watch_stop, true);
    pthread_cond_signal(&worker->ask);
    pthread_cond_signal(&worker->held);
    pthread_cond_broadcast(&worker->done);
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}
