/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The supervisor: runs the scanners of this replica.
 *
 * Its thread only decides, by scanner_schedule.c, which scanner is next and when; the passes run on
 * engine threads as tasks, in turn with the requests. So a slow or failing pass delays neither the
 * requests nor the other scanners. A pass is one bounded batch; a scanner that has more to do
 * queues again.
 *
 * Nothing here makes sure that a scanner runs on one replica only. All run everywhere; rows are
 * split by their locks (engine/scan/).
 */

#include "net/upkeep/supervisor.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/thread.h"
#include "engine/engine.h"
#include "net/group/group.h"
#include "net/metrics.h"
#include "net/upkeep/scanner_schedule.h"
#include "net/upkeep/upkeep.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 2, THREADS_FOR_ALL = 3 }; /* passes at once; with fewer engine threads one */

struct weft_supervisor {
    struct weft_server *server;
    pthread_t thread;
    weft_run_pass_fn *pass;
    struct weft_engine *engine; /* that it is called with */

    pthread_mutex_t lock; /* over all below */
    pthread_cond_t news;  /* something to decide, or a pass has ended */
    struct weft_scanner_schedule schedule;
    weft_usec forgive_us; /* the store's time; see weft_supervisor_hold() */
    bool started, stopping;
};

static struct weft_now now_of(const struct weft_supervisor *supervisor)
{
    return (struct weft_now){weft_boot_us(),
                             weft_clock_now(weft_engine_clock(supervisor->server->engine))};
}

/* Locks the schedule; says what time it is. */
static struct weft_now lock_now(struct weft_supervisor *supervisor)
{
    pthread_mutex_lock(&supervisor->lock);
    return now_of(supervisor);
}

/* The schedule has changed: the thread decides anew. */
static void unlock_changed(struct weft_supervisor *supervisor)
{
    pthread_cond_broadcast(&supervisor->news);
    pthread_mutex_unlock(&supervisor->lock);
}

/* ---- Passes ---------------------------------------------------------------------------------- */

static void measure_refused(struct weft_metrics *metrics, const struct weft_pass_report *report)
{
    uint64_t refused = 0, existing = 0;
    for (size_t i = 0; i < report->counter_count; i++) {
        if (strcmp(report->counter[i].name, "refused") == 0)
            refused = report->counter[i].value;
        if (strcmp(report->counter[i].name, "existing_id") == 0)
            existing = report->counter[i].value;
    }
    weft_metric_add(metrics, WEFT_METRIC_INBOX_REFUSED, WEFT_REFUSAL_EXISTING_ID, existing);
    weft_metric_add(metrics, WEFT_METRIC_INBOX_REFUSED, WEFT_REFUSAL_INVALID, refused - existing);
}

static void measure(struct weft_supervisor *supervisor, const struct weft_pass_end *end)
{
    struct weft_metrics *metrics = supervisor->server->metrics;
    const struct weft_scanner_info *info = weft_scanner_info(end->scanner);
    weft_metric_add(metrics, WEFT_METRIC_SCANNER_PASSES, end->scanner, 1);
    weft_metric_observe(metrics, WEFT_METRIC_SCANNER_SECONDS, end->scanner, (uint64_t)end->took_us);
    if (end->rc) {
        weft_metric_add(metrics, WEFT_METRIC_SCANNER_FAILURES, end->scanner, 1);
        return;
    }
    for (size_t i = 0; i < end->report->counter_count; i++)
        for (size_t c = 0; c < WEFT_COUNTERS_MAX && info->counter[c]; c++)
            if (strcmp(info->counter[c], end->report->counter[i].name) == 0)
                weft_metric_add(metrics, WEFT_METRIC_SCANNER_ROWS,
                                (size_t)end->scanner * WEFT_COUNTERS_MAX + c,
                                end->report->counter[i].value);
    if (end->scanner == WEFT_SCANNER_INTAKE)
        measure_refused(metrics, end->report);
}

/* Runs a pass that has begun, and schedules the next one by its outcome. */
static enum weft_rc run_pass(struct weft_supervisor *supervisor, enum weft_scanner scanner,
                             bool paced, struct weft_pass_report *ret_report, struct weft_err *err)
{
    pthread_mutex_lock(&supervisor->lock);
    struct weft_scanner_setting setting = supervisor->schedule.setting[scanner];
    struct weft_pass_config config = weft_schedule_config(&setting);
    config.forgive_us = supervisor->forgive_us;
    pthread_mutex_unlock(&supervisor->lock);

    weft_usec began_us = weft_boot_us();
    struct weft_pass_report report = {.next_due_us = WEFT_NEVER};
    struct weft_pass_end end = {.scanner = scanner, .paced = paced, .err = err, .report = &report};
    end.rc = supervisor->pass(supervisor->engine, scanner, &config, &report, err);
    end.took_us = weft_boot_us() - began_us;
    weft_random(&end.random, sizeof(end.random));
    measure(supervisor, &end);

    const struct weft_now now = lock_now(supervisor);
    weft_schedule_end(&supervisor->schedule, &end, &now);
    unlock_changed(supervisor);
    if (!end.rc)
        *ret_report = report;
    return end.rc;
}

/* context is the number of the scanner. */
static void run_task(struct weft_server *server, void *context)
{
    struct weft_pass_report report;
    struct weft_err err = {0};
    (void)run_pass(server->supervisor, (enum weft_scanner)(uintptr_t)context, true, &report, &err);
}

enum weft_rc weft_supervisor_run(struct weft_server *server, enum weft_scanner scanner,
                                 struct weft_pass_report *ret_report, struct weft_err *err)
{
    struct weft_supervisor *supervisor = server->supervisor;
    struct weft_err ours = {0};
    const struct weft_now now = lock_now(supervisor);
    bool paced = weft_schedule_begin_now(&supervisor->schedule, scanner, &now);
    pthread_mutex_unlock(&supervisor->lock);
    enum weft_rc rc = run_pass(supervisor, scanner, paced, ret_report, &ours);
    if (rc && err)
        *err = ours;
    return rc;
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void *run_thread(void *context)
{
    struct weft_supervisor *supervisor = context;
    pthread_mutex_lock(&supervisor->lock);
    while (!supervisor->stopping) {
        const struct weft_now now = now_of(supervisor);
        enum weft_scanner scanner = weft_schedule_begin(&supervisor->schedule, &now);
        if (scanner == WEFT_SCANNER_COUNT) {
            weft_cond_until(&supervisor->news, &supervisor->lock,
                            weft_schedule_next(&supervisor->schedule));
            continue;
        }
        pthread_mutex_unlock(&supervisor->lock); /* it stands alone: see server.h */
        weft_groups_do(supervisor->server->groups, run_task, (void *)(uintptr_t)scanner);
        pthread_mutex_lock(&supervisor->lock);
    }
    pthread_mutex_unlock(&supervisor->lock);
    return NULL;
}

struct weft_supervisor *weft_supervisor_new(struct weft_server *server)
{
    struct weft_supervisor *supervisor = weft_alloc(1, sizeof(*supervisor));
    supervisor->server = server;
    supervisor->pass = weft_engine_pass;
    supervisor->engine = server->engine;
    pthread_mutex_init(&supervisor->lock, NULL);
    pthread_cond_init(&supervisor->news, NULL);
    const struct weft_now now = now_of(supervisor);
    weft_schedule_init(&supervisor->schedule, server->config.scanners,
                       server->config.threads >= THREADS_FOR_ALL ? ROOM : 1, &now);
    return supervisor;
}

void weft_supervisor_use(struct weft_supervisor *supervisor, weft_run_pass_fn *pass,
                         struct weft_engine *engine)
{
    supervisor->pass = pass;
    supervisor->engine = engine;
}

void weft_supervisor_start(struct weft_supervisor *supervisor)
{
    supervisor->started = true;
    weft_thread_start(&supervisor->thread, "weft-supervisor", run_thread, supervisor);
}

/* Logs the work that the end of the passes leaves to others. */
static void log_rest(const struct weft_scanner_schedule *schedule)
{
    struct weft_arena *arena = weft_arena_new();
    const char *unfinished = weft_schedule_names(schedule, false, arena);
    const char *running = weft_schedule_names(schedule, true, arena);
    if (unfinished)
        weft_info("scanners stopped with work left to do", F_STR("scanners", unfinished));
    if (running)
        weft_warn("scanners did not finish their pass in time", F_STR("scanners", running));
    weft_arena_free(arena);
}

void weft_supervisor_quiesce(struct weft_supervisor *supervisor)
{
    pthread_mutex_lock(&supervisor->lock);
    supervisor->stopping = true;
    unlock_changed(supervisor);
}

bool weft_supervisor_stop(struct weft_supervisor *supervisor, weft_usec until_us)
{
    if (!supervisor || !supervisor->started)
        return true;
    supervisor->started = false;
    weft_supervisor_quiesce(supervisor);
    pthread_join(supervisor->thread, NULL);
    pthread_mutex_lock(&supervisor->lock);
    while (supervisor->schedule.running > 0 && weft_boot_us() < until_us)
        weft_cond_until(&supervisor->news, &supervisor->lock, until_us);
    bool ended = supervisor->schedule.running == 0;
    log_rest(&supervisor->schedule);
    pthread_mutex_unlock(&supervisor->lock);
    return ended;
}

void weft_supervisor_free(struct weft_supervisor *supervisor)
{
    if (!supervisor)
        return;
    pthread_cond_destroy(&supervisor->news);
    pthread_mutex_destroy(&supervisor->lock);
    free(supervisor);
}

/* ---- Changes of the schedule ----------------------------------------------------------------- */

void weft_supervisor_set_due(struct weft_supervisor *supervisor,
                             const weft_usec due_us[WEFT_SCANNER_COUNT])
{
    const struct weft_now now = lock_now(supervisor);
    weft_schedule_set_due(&supervisor->schedule, due_us, WEFT_POLL_US, &now);
    unlock_changed(supervisor);
}

void weft_supervisor_wake(struct weft_supervisor *supervisor, enum weft_scanner scanner)
{
    const struct weft_now now = lock_now(supervisor);
    weft_schedule_wake(&supervisor->schedule, scanner, &now);
    unlock_changed(supervisor);
}

void weft_supervisor_hold(struct weft_supervisor *supervisor, weft_usec until_us)
{
    const struct weft_now now = lock_now(supervisor);
    supervisor->forgive_us = until_us;
    weft_schedule_hold(&supervisor->schedule, now.boot_us + (until_us - now.store_us));
    unlock_changed(supervisor);
}

void weft_supervisor_set(struct weft_supervisor *supervisor,
                         const struct weft_scanner_setting setting[WEFT_SCANNER_COUNT])
{
    const struct weft_now now = lock_now(supervisor);
    if (weft_schedule_set(&supervisor->schedule, setting, &now) == 0)
        weft_info("the scanners are set as they were");
    unlock_changed(supervisor);
}

/* ---- What it shows --------------------------------------------------------------------------- */

struct weft_scanner_status *weft_supervisor_status(struct weft_server *server,
                                                   struct weft_arena *arena)
{
    struct weft_supervisor *supervisor = server->supervisor;
    struct weft_scanner_status *status =
        weft_new_array(arena, struct weft_scanner_status, WEFT_SCANNER_COUNT);
    const struct weft_now now = lock_now(supervisor);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        status[i] = weft_schedule_status(&supervisor->schedule, (enum weft_scanner)i, &now, arena);
    pthread_mutex_unlock(&supervisor->lock);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        weft_upkeep_sign(server->upkeep, &status[i]);
    return status;
}
