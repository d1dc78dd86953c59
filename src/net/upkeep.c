/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Upkeep: the slow poll, and the passes over what time has moved.
 *
 * Once a second one statement asks the store for everything that others may have done: queues with
 * work, the next due time of each pass, an inbox that is not empty, tokens that have changed. That
 * is the truth under all wakes and notices. A pass runs only when the poll says that it is due, so
 * an idle server asks one question a second. A due time made by this process is known at once and
 * brings the next poll forward.
 *
 * The passes that take leases away first wait a grace after the start and after an outage:
 * heartbeats could not come through while nobody listened.
 */

#include "net/inside.h"
#include "net/metrics.h"

#include "base/heap.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define POLL_US   WEFT_SECOND
#define GRACE_US  (10 * WEFT_SECOND)
#define SOON_US   WEFT_MS /* after a due time, so that it has passed for sure */
#define OUTAGE_US WEFT_SECOND
#define CHORE_US  (5 * WEFT_SECOND)
#define LARGE_US  (5 * WEFT_SECOND) /* a connection stays large so long for the next large one */
enum { PASS_ROUNDS = 20 };

struct weft_upkeep {
    struct weft_server *server;
    pthread_t thread;

    pthread_mutex_t lock; /* over the two below */
    pthread_cond_t news;
    weft_usec due_us; /* boot time; the next poll is not later than this */
    bool stopping;

    /* The thread's, in boot time. */
    weft_usec grace_us;  /* until then no lease is taken away */
    weft_usec outage_us; /* since when the store has not answered; 0: it answers */
    weft_usec chores_us; /* when the chores were last done */
    size_t idle;         /* memory that nobody uses; weft_heap_trim() */
    int64_t tokens;
    bool failing[WEFT_SCANNER_COUNT];
};

static weft_usec store_now(const struct weft_upkeep *upkeep)
{
    return weft_clock_now(weft_engine_clock(upkeep->server->engine));
}

void weft_upkeep_expect(struct weft_upkeep *upkeep, weft_usec due_us)
{
    if (due_us == WEFT_NEVER)
        return;
    weft_usec left_us = due_us - store_now(upkeep);
    weft_usec at_us = weft_boot_us() + (left_us > 0 ? left_us + SOON_US : 0);
    pthread_mutex_lock(&upkeep->lock);
    if (at_us < upkeep->due_us) {
        upkeep->due_us = at_us;
        pthread_cond_signal(&upkeep->news);
    }
    pthread_mutex_unlock(&upkeep->lock);
}

static bool takes_leases(enum weft_scanner pass)
{
    return pass == WEFT_SCANNER_LEASE_EXPIRY || pass == WEFT_SCANNER_ATTEMPT_TIMEOUT;
}

static bool is_stopping(struct weft_upkeep *upkeep)
{
    pthread_mutex_lock(&upkeep->lock);
    bool stopping = upkeep->stopping;
    pthread_mutex_unlock(&upkeep->lock);
    return stopping;
}

/* Runs a pass until it has done all, within bounds: others wait. */
static void run_pass(struct weft_upkeep *upkeep, enum weft_scanner pass)
{
    struct weft_pass_report report = {.more = true};
    struct weft_err err = {0};
    enum weft_rc rc = WEFT_OK;
    struct weft_metrics *metrics = weft_server_metrics(upkeep->server);
    for (int i = 0; i < PASS_ROUNDS && report.more && !rc && !is_stopping(upkeep); i++) {
        weft_usec began_us = weft_boot_us();
        rc = weft_engine_pass(upkeep->server->engine, pass, NULL, &report, &err);
        weft_metric_add(metrics, WEFT_METRIC_PASSES, pass, 1);
        weft_metric_observe(metrics, WEFT_METRIC_PASS_SECONDS, pass,
                            (uint64_t)(weft_boot_us() - began_us));
        weft_metric_add(metrics, rc ? WEFT_METRIC_PASS_FAILURES : WEFT_METRIC_PASS_HANDLED, pass,
                        rc ? 1 : report.handled);
    }
    if (rc && !upkeep->failing[pass])
        weft_warn("a pass failed and is tried again", F_STR("pass", weft_scanner_name(pass)),
                  F_STR("error", err.text));
    upkeep->failing[pass] = rc != WEFT_OK;
    weft_upkeep_expect(upkeep, rc || !report.more ? report.next_due_us : 0);
}

static void run_passes(struct weft_upkeep *upkeep, const struct weft_poll *poll)
{
    weft_usec now_us = store_now(upkeep), boot_us = weft_boot_us();
    for (size_t p = 0; p < WEFT_SCANNER_COUNT; p++) {
        bool due = p == WEFT_SCANNER_INTAKE ? poll->inbox : poll->due_us[p] <= now_us;
        if (due && takes_leases((enum weft_scanner)p) && boot_us < upkeep->grace_us)
            continue;
        if (due)
            run_pass(upkeep, (enum weft_scanner)p);
        else if (p != WEFT_SCANNER_INTAKE)
            weft_upkeep_expect(upkeep, poll->due_us[p]);
    }
}

static void note_outage(struct weft_upkeep *upkeep, const struct weft_err *err)
{
    if (upkeep->outage_us)
        return;
    upkeep->outage_us = weft_boot_us();
    weft_error("the store does not answer; requests get 503 until it does",
               F_STR("error", err->text));
}

static void note_answer(struct weft_upkeep *upkeep)
{
    weft_usec now_us = weft_boot_us();
    if (!upkeep->outage_us)
        return;
    weft_info("the store answers again", F_I64("after_ms", (now_us - upkeep->outage_us) / WEFT_MS));
    if (now_us - upkeep->outage_us > OUTAGE_US)
        upkeep->grace_us = now_us + GRACE_US;
    upkeep->outage_us = 0;
}

/* What is done now and then, off the path of requests. */
static void do_chores(struct weft_upkeep *upkeep)
{
    struct weft_server *server = upkeep->server;
    struct weft_err err = {0};
    if (weft_engine_tally(server->engine, &err))
        weft_debug("the tally was not written", F_STR("error", err.text));
    if (weft_boot_us() - upkeep->chores_us < CHORE_US)
        return;
    upkeep->chores_us = weft_boot_us();
    if (weft_roster_write(server->roster, server->engine, &err))
        weft_debug("the workers were not written", F_STR("error", err.text));
    weft_engine_slim(server->engine, weft_boot_us() - LARGE_US);
    upkeep->idle = weft_heap_trim(upkeep->idle);
}

static void turn(struct weft_upkeep *upkeep, struct weft_arena *arena)
{
    struct weft_server *server = upkeep->server;
    struct weft_poll poll;
    struct weft_err err = {0};
    weft_arena_reset(arena);
    if (weft_engine_poll(server->engine, arena, &poll, &err)) {
        note_outage(upkeep, &err);
        return;
    }
    note_answer(upkeep);
    weft_waits_wake(server->waits, WEFT_WAKE_POLL, poll.queue, poll.count);
    if (poll.tokens != upkeep->tokens) {
        if (weft_auth_load(server->auth, server->engine, &err) == WEFT_OK)
            upkeep->tokens = poll.tokens;
    }
    run_passes(upkeep, &poll);
    do_chores(upkeep);
}

static void *run_thread(void *context)
{
    struct weft_upkeep *upkeep = context;
    struct weft_arena *arena = weft_arena_new();
    pthread_mutex_lock(&upkeep->lock);
    while (!upkeep->stopping) {
        if (weft_boot_us() < upkeep->due_us) {
            weft_cond_until(&upkeep->news, &upkeep->lock, upkeep->due_us);
            continue;
        }
        upkeep->due_us = weft_boot_us() + POLL_US;
        pthread_mutex_unlock(&upkeep->lock);
        turn(upkeep, arena);
        pthread_mutex_lock(&upkeep->lock);
    }
    pthread_mutex_unlock(&upkeep->lock);
    weft_arena_free(arena);
    return NULL;
}

struct weft_upkeep *weft_upkeep_new(struct weft_server *server)
{
    struct weft_upkeep *upkeep = calloc(1, sizeof(*upkeep));
    if (!upkeep)
        weft_oom(sizeof(*upkeep));
    upkeep->server = server;
    upkeep->grace_us = weft_boot_us() + GRACE_US;
    upkeep->tokens = -1;
    pthread_mutex_init(&upkeep->lock, NULL);
    pthread_cond_init(&upkeep->news, NULL);
    return upkeep;
}

void weft_upkeep_start(struct weft_upkeep *upkeep)
{
    weft_thread_start(&upkeep->thread, "weft-upkeep", run_thread, upkeep);
}

void weft_upkeep_stop(struct weft_upkeep *upkeep)
{
    if (!upkeep)
        return;
    pthread_mutex_lock(&upkeep->lock);
    upkeep->stopping = true;
    pthread_cond_signal(&upkeep->news);
    pthread_mutex_unlock(&upkeep->lock);
    pthread_join(upkeep->thread, NULL);
}

void weft_upkeep_free(struct weft_upkeep *upkeep)
{
    if (!upkeep)
        return;
    pthread_cond_destroy(&upkeep->news);
    pthread_mutex_destroy(&upkeep->lock);
    free(upkeep);
}
