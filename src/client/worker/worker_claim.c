/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The jobs that a worker holds: claiming, renewing, giving back.
 *
 * A claim asks for as many jobs as there are handlers without one, and for a few more when the
 * handlers are quick: as many as they would begin within AHEAD_US, measured by how many they
 * finished lately. So slow handlers never sit on work that others could do, and quick ones do not
 * wait for a transaction per job. A job that was taken ahead and is still waiting after a while
 * stands behind a slow one: it is given back.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/limits.h"
#include "client/worker/worker.h"
#include "engine/call.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "weft/weft.h"

#include <stdlib.h>
#include <string.h>

#define AHEAD_US     (30 * WEFT_MS)
#define CONTENDED_US (5 * WEFT_MS)
#define RATE_MIN_US  (10 * WEFT_MS)
#define LEASE_MIN_US (150 * WEFT_MS) /* left of a late one: beats keep a distance */

#define REPORT_US WEFT_SECOND /* between two reports of progress */
#define WAITED_US WEFT_SECOND /* a claim that took less has not waited for work */

enum { BEATS_PER_LEASE = 3, CLAIM_WAIT_MS = 20000, REFUSED_MS = 1000 };

/* ---- Claiming -------------------------------------------------------------------------------- */

/* Jobs a second that handlers finished lately: quick to rise, slow to fall. */
static void measure_rate(struct weft_worker *worker, weft_usec now_us)
{
    weft_usec took_us = now_us - worker->rate_since_us;
    if (took_us < RATE_MIN_US)
        return;
    double now = (double)worker->rate_count * (double)WEFT_SECOND / (double)took_us;
    worker->rate = now > worker->rate ? now : (worker->rate + now) / 2;
    worker->rate_since_us = now_us;
    worker->rate_count = 0;
}

static size_t ahead(const struct weft_worker *worker)
{
    double jobs = worker->rate * (double)AHEAD_US / (double)WEFT_SECOND;
    return jobs < WEFT_AHEAD_MAX ? (size_t)jobs : WEFT_AHEAD_MAX;
}

uint32_t weft_hold_room(struct weft_worker *worker)
{
    size_t threads = worker->options.threads;
    size_t unsent_max = worker->send.failures ? 2 * threads : 2 * threads + WEFT_AHEAD_MAX;
    pthread_mutex_lock(&worker->lock);
    bool stopping = worker->stopping || worker->claiming;
    size_t in_hand = worker->running + worker->queue.count;
    size_t unsent = worker->unsent.count + worker->finished.count;
    pthread_mutex_unlock(&worker->lock);
    size_t wanted = threads + ahead(worker);
    if (stopping || unsent >= unsent_max || in_hand >= wanted)
        return 0;
    return wanted - in_hand < WEFT_BATCH_MAX ? (uint32_t)(wanted - in_hand) : WEFT_BATCH_MAX;
}

/* Only the kinds of the worker are asked for; should a server give another one, it goes back. */
static enum weft_verdict refuse_job(struct weft_job *job, void *context)
{
    (void)context;
    weft_job_delay(job, REFUSED_MS);
    return WEFT_NOT_NOW;
}

static const struct weft_kind_handler *find_handler(const struct weft_worker *worker,
                                                    const char *kind)
{
    static const struct weft_kind_handler stranger = {.handler = refuse_job};
    for (size_t i = 0; i < worker->on_count; i++)
        if (strcmp(worker->on[i].kind, kind) == 0)
            return &worker->on[i];
    return worker->on_rest.handler ? &worker->on_rest : &stranger;
}

/*
 * How much of the lease is left. Over a server there is no clock to hold its end against: it is
 * counted from when the answer arrived, which the beats, at a third of it, leave room for.
 */
static weft_usec lease_left(const struct weft_worker *worker, const struct weft_claimed *claimed)
{
    weft_usec left_us = claimed->lease_ms * WEFT_MS;
    if (!worker->remote)
        left_us =
            claimed->lease_expires_us - weft_clock_now(weft_engine_clock(worker->weft->engine));
    return left_us > LEASE_MIN_US ? left_us : LEASE_MIN_US;
}

/* Makes jobs of claimed executions. Takes the arena over. */
static struct weft_grant *make_grant(struct weft_worker *worker,
                                     const struct weft_claim_result *claimed,
                                     struct weft_arena *arena)
{
    struct weft_grant *grant = weft_alloc(1, sizeof(*grant));
    struct weft_job *job = weft_alloc(claimed->count, sizeof(*job));
    *grant = (struct weft_grant){.arena = arena,
                                 .job = job,
                                 .count = claimed->count,
                                 .left = claimed->count,
                                 .lease_us = WEFT_NEVER,
                                 .arrived_us = weft_mono_us()};
    for (size_t i = 0; i < claimed->count; i++) {
        job[i] = (struct weft_job){.worker = worker,
                                   .grant = grant,
                                   .claimed = &claimed->item[i],
                                   .on = find_handler(worker, claimed->item[i].kind)};
        weft_usec lease_us = lease_left(worker, &claimed->item[i]);
        if (lease_us < grant->lease_us)
            grant->lease_us = lease_us;
    }
    return grant;
}

/* The lock is held. */
static void put_into_queue(struct weft_worker *worker, struct weft_job *job, weft_usec now_us)
{
    job->stage = WEFT_STAGE_QUEUED;
    job->queued_us = now_us;
    weft_job_list_add(&worker->queue, job);
}

/* Puts the jobs before the handlers. The lock is held. */
static void queue_grant(struct weft_worker *worker, struct weft_grant *grant)
{
    for (size_t i = 0; i < grant->count; i++)
        put_into_queue(worker, &grant->job[i], grant->arrived_us);
    worker->stats.claimed += grant->count;
    pthread_cond_broadcast(&worker->work);
    pthread_cond_signal(&worker->held);
}

/* From here on the keeper renews its leases. */
static void adopt_grant(struct weft_worker *worker, struct weft_grant *grant)
{
    if (!worker->grant && worker->watch.failures == 0)
        worker->watch.at_us = grant->arrived_us + WEFT_SECOND; /* short jobs are not worth a look */
    grant->next = worker->grant;
    worker->grant = grant;
    weft_usec beat_us = grant->arrived_us + grant->lease_us / BEATS_PER_LEASE;
    if (worker->beat.failures == 0 && beat_us < worker->beat.at_us)
        worker->beat.at_us = beat_us;
}

void weft_hold_adopt(struct weft_worker *worker)
{
    for (struct weft_grant *grant = worker->granted, *next; grant; grant = next) {
        next = grant->next;
        adopt_grant(worker, grant);
    }
    worker->granted = NULL;
}

static struct weft_claim make_claim(const struct weft_worker *worker, uint32_t max)
{
    const struct weft_worker_options *options = &worker->options;
    bool all = worker->on_rest.handler;
    return (struct weft_claim){
        .worker = options->name,
        .lanes = options->lanes,
        .lane_count = options->lane_count,
        .kinds = all ? NULL : worker->kinds,
        .kind_count = all ? 0 : worker->on_count,
        .capabilities = options->capabilities,
        .capability_count = options->capability_count,
        .max = max,
        .lease_ms = options->lease_ms,
    };
}

/* When to claim next. */
static void pace_claims(struct weft_worker *worker, const struct weft_claim_summary *summary)
{
    /* A claim that waited at the server needs no pause here. */
    bool at_once = summary->count == summary->wanted || summary->waited;
    weft_usec wait_us = at_once ? 0 : worker->options.poll_ms * WEFT_MS;
    if (summary->contended && wait_us > CONTENDED_US)
        wait_us = CONTENDED_US;
    if (summary->opens_in_us && wait_us > summary->opens_in_us)
        wait_us = summary->opens_in_us;
    worker->claim.at_us = weft_mono_us() + wait_us;
}

static void claim_here(struct weft_worker *worker, uint32_t room)
{
    const struct weft_claim claim = make_claim(worker, room);
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result claimed = {0};
    struct weft_err err = {0};
    const struct weft_op_call call = {
        .op = WEFT_OP_CLAIM, .in = &claim, .count = 1, .out = &claimed, .arena = arena};
    enum weft_rc rc = worker->weft->backend->call(&worker->via, &call, &err);
    if (weft_keeper_note_result(worker, &worker->claim, rc, &err))
        pace_claims(worker, &(struct weft_claim_summary){.wanted = room,
                                                         .count = claimed.count,
                                                         .contended = claimed.contended,
                                                         .opens_in_us = claimed.opens_in_us});
    if (claimed.count == 0) {
        weft_arena_free(arena);
        return;
    }
    struct weft_grant *grant = make_grant(worker, &claimed, arena);
    adopt_grant(worker, grant);
    pthread_mutex_lock(&worker->lock);
    queue_grant(worker, grant);
    pthread_mutex_unlock(&worker->lock);
}

void weft_hold_claim(struct weft_worker *worker)
{
    measure_rate(worker, weft_mono_us());
    uint32_t room = weft_hold_room(worker);
    if (room == 0)
        return;
    if (!worker->remote) {
        claim_here(worker, room);
        return;
    }
    worker->claim_began_us = weft_mono_us();
    pthread_mutex_lock(&worker->lock);
    worker->asked = room;
    worker->claiming = true;
    pthread_cond_signal(&worker->ask);
    pthread_mutex_unlock(&worker->lock);
}

void weft_hold_take_claim(struct weft_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool answered = worker->claim_answered;
    const struct weft_claim_summary summary = worker->last_claim;
    if (answered)
        worker->claim_answered = worker->claiming = false;
    pthread_mutex_unlock(&worker->lock);
    if (!answered || atomic_load(&worker->claim_stop))
        return; /* a claim that was ended by the stop has not failed */
    if (weft_keeper_note_result(worker, &worker->claim, summary.rc, &summary.err))
        pace_claims(worker, &summary);
}

/* ---- The claimer ----------------------------------------------------------------------------- */

/* Makes one claim and leaves the answer for the keeper. */
static void claim_there(struct weft_worker *worker, uint32_t max)
{
    struct weft_claim claim = make_claim(worker, max);
    claim.wait_ms = CLAIM_WAIT_MS;
    const struct weft_via via = {
        .weft = worker->weft, .one_try = true, .stop = &worker->claim_stop};
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result claimed = {0};
    struct weft_claim_summary summary = {.wanted = max};
    weft_usec began_us = weft_mono_us();
    const struct weft_op_call call = {
        .op = WEFT_OP_CLAIM, .in = &claim, .count = 1, .out = &claimed, .arena = arena};
    summary.rc = worker->weft->backend->call(&via, &call, &summary.err);
    summary.count = summary.rc ? 0 : claimed.count;
    summary.waited = summary.count > 0 || weft_mono_us() - began_us > WAITED_US;
    struct weft_grant *grant = summary.count ? make_grant(worker, &claimed, arena) : NULL;
    if (!grant)
        weft_arena_free(arena);
    pthread_mutex_lock(&worker->lock);
    if (grant) {
        grant->next = worker->granted;
        worker->granted = grant;
        queue_grant(worker, grant);
    }
    worker->last_claim = summary;
    worker->claim_answered = worker->poked = true;
    pthread_cond_signal(&worker->news);
    pthread_mutex_unlock(&worker->lock);
}

void *weft_claimer_main(void *context)
{
    struct weft_worker *worker = context;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (worker->asked == 0 && !worker->ended)
            pthread_cond_wait(&worker->ask, &worker->lock);
        if (worker->asked == 0)
            break;
        uint32_t max = worker->asked;
        worker->asked = 0;
        pthread_mutex_unlock(&worker->lock);
        claim_there(worker, max);
        pthread_mutex_lock(&worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

/* ---- Letting go ------------------------------------------------------------------------------ */

void weft_hold_drop(struct weft_worker *worker, struct weft_job *job)
{
    struct weft_grant *grant = job->grant;
    job->stage = WEFT_STAGE_GONE;
    weft_job_clear(job);
    if (--grant->left > 0)
        return;
    struct weft_grant **at = &worker->grant;
    while (*at != grant)
        at = &(*at)->next;
    *at = grant->next;
    weft_grant_free(grant);
}

void weft_hold_take_out(struct weft_worker *worker,
                        bool (*goes)(const struct weft_job *job, weft_usec before_us),
                        weft_usec before_us, struct weft_job_list *ret_gone)
{
    struct weft_job_list all;
    weft_job_list_init(&all);
    weft_job_list_init(ret_gone);
    weft_job_list_move(&all, &worker->queue);
    for (struct weft_job *job = all.first, *next; job; job = next) {
        next = job->next;
        weft_job_list_add(goes(job, before_us) ? ret_gone : &worker->queue, job);
    }
}

void weft_hold_requeue(struct weft_worker *worker, struct weft_job *job)
{
    pthread_mutex_lock(&worker->lock);
    bool stopping = worker->stopping;
    if (!stopping) {
        put_into_queue(worker, job, weft_mono_us());
        pthread_cond_signal(&worker->work);
        pthread_cond_signal(&worker->held);
    }
    pthread_mutex_unlock(&worker->lock);
    if (!stopping)
        return;
    job->word = WEFT_WORD_RELEASE;
    weft_job_list_add(&worker->unsent, job);
}

static bool queued_before(const struct weft_job *job, weft_usec before_us)
{
    return job->queued_us < before_us;
}

void weft_hold_give_back(struct weft_worker *worker, weft_usec before_us)
{
    struct weft_job_list back;
    pthread_mutex_lock(&worker->lock);
    weft_hold_adopt(worker); /* only jobs of the keeper can be given back */
    weft_hold_take_out(worker, queued_before, before_us, &back);
    for (struct weft_job *job = back.first; job; job = job->next) {
        job->stage = WEFT_STAGE_FINISHED;
        job->word = WEFT_WORD_RELEASE;
    }
    pthread_mutex_unlock(&worker->lock);
    if (back.count == 0)
        return;
    worker->rate = 0; /* they were slower than they had been */
    weft_job_list_move(&worker->unsent, &back);
}

/* ---- Renewing -------------------------------------------------------------------------------- */

/* One heartbeat: the leases it renews and the answers. */
struct beat {
    struct weft_job **job;
    struct weft_renew *item;
    uint32_t *progress; /* the report that each item carries */
    struct weft_lease_result *answer;
    size_t count;
};

static void add_lease(struct beat *beat, struct weft_job *job, struct weft_arena *arena)
{
    struct weft_renew *item = &beat->item[beat->count];
    *item = (struct weft_renew){.id = job->claimed->id,
                                .epoch = job->claimed->epoch,
                                .lease_ms = job->worker->options.lease_ms};
    if (job->progress != job->progress_sent) {
        item->has_progress = true;
        item->percent = job->percent;
        item->note = weft_arena_strdup(arena, job->note);
    }
    beat->progress[beat->count] = job->progress;
    beat->job[beat->count++] = job;
}

/*
 * All that is held and not yet known to be lost, or of these only the leases with progress to
 * report; the shortest lease tells when the next heartbeat is.
 */
static weft_usec list_leases(struct weft_worker *worker, bool reports, struct weft_arena *arena,
                             struct beat *beat)
{
    size_t held = 0;
    weft_usec shortest_us = WEFT_NEVER;
    for (const struct weft_grant *grant = worker->grant; grant; grant = grant->next) {
        held += grant->left;
        if (grant->lease_us < shortest_us)
            shortest_us = grant->lease_us;
    }
    *beat = (struct beat){.job = weft_new_array(arena, struct weft_job *, held + 1),
                          .item = weft_new_array(arena, struct weft_renew, held + 1),
                          .progress = weft_new_array(arena, uint32_t, held + 1),
                          .answer = weft_new_array(arena, struct weft_lease_result, held + 1)};
    pthread_mutex_lock(&worker->lock);
    for (struct weft_grant *grant = worker->grant; grant; grant = grant->next)
        for (size_t i = 0; i < grant->count; i++) {
            struct weft_job *job = &grant->job[i];
            if (job->stage != WEFT_STAGE_GONE && job->fence == WEFT_FENCE_NONE && !job->abandoned &&
                (!reports || job->progress != job->progress_sent))
                add_lease(beat, job, arena);
        }
    pthread_mutex_unlock(&worker->lock);
    return shortest_us;
}

/* Takes the answers in. Returns the first one that says to try again, or NULL. */
static const struct weft_err *read_answers(struct weft_worker *worker, const struct beat *beat)
{
    const struct weft_err *again = NULL;
    pthread_mutex_lock(&worker->lock);
    for (size_t i = 0; i < beat->count; i++) {
        const struct weft_lease_result *answer = &beat->answer[i];
        struct weft_job *job = beat->job[i];
        if (answer->rc == WEFT_OK)
            job->progress_sent = beat->progress[i];
        else if (answer->rc == WEFT_FENCED)
            job->fence = answer->fence;
        else if (answer->rc == WEFT_NOT_FOUND)
            job->fence = WEFT_FENCE_UNKNOWN; /* it was erased */
        else
            again = answer->err;
    }
    pthread_mutex_unlock(&worker->lock);
    weft_watch_sift(worker);
    return again;
}

/* Renews the listed leases and takes the answers in. */
static void send_beat(struct weft_worker *worker, const struct beat *beat, struct weft_next *next,
                      struct weft_arena *arena)
{
    struct weft_err err = {0};
    if (beat->count == 0)
        return;
    const struct weft_op_call call = {.op = WEFT_OP_RENEW,
                                      .in = beat->item,
                                      .count = beat->count,
                                      .out = beat->answer,
                                      .arena = arena};
    enum weft_rc rc = worker->weft->backend->call(&worker->via, &call, &err);
    if (!weft_keeper_note_result(worker, next, rc, &err))
        return;
    const struct weft_err *again = read_answers(worker, beat);
    if (again)
        (void)weft_keeper_note_result(worker, next, again->rc, again);
}

void weft_hold_renew(struct weft_worker *worker)
{
    struct weft_arena *arena = weft_arena_new();
    struct beat beat;
    weft_usec began_us = weft_mono_us();
    weft_usec shortest_us = list_leases(worker, false, arena, &beat);
    worker->beat.at_us =
        shortest_us == WEFT_NEVER ? WEFT_NEVER : began_us + shortest_us / BEATS_PER_LEASE;
    send_beat(worker, &beat, &worker->beat, arena);
    weft_arena_free(arena);
}

void weft_hold_report(struct weft_worker *worker)
{
    struct weft_arena *arena = weft_arena_new();
    struct beat beat;
    worker->report.at_us = weft_mono_us() + REPORT_US;
    (void)list_leases(worker, true, arena, &beat);
    if (beat.count == 0)
        worker->report.failures = 0; /* their executions are over */
    send_beat(worker, &beat, &worker->report, arena);
    worker->to_report = worker->report.failures > 0;
    weft_arena_free(arena);
}
