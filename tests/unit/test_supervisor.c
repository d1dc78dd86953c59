/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The supervisor with its threads, over passes that the test controls: which pass delays which,
 * what a stop leaves, what a change of settings does. Every wait is for an event and has a bound.
 */

#include "tap.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "engine/engine.h"
#include "engine/scan/pass.h"
#include "net/group/group.h"
#include "net/metrics.h"
#include "net/upkeep/supervisor.h"
#include "net/upkeep/upkeep.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATIENCE_US (20 * WEFT_SECOND)
#define EXPIRY      WEFT_SCANNER_LEASE_EXPIRY
#define PROMOTER    WEFT_SCANNER_DELAYED_PROMOTER

struct stage {
    struct weft_server server;
    char file[256];
    int log;
    pthread_mutex_t lock; /* over the rest */
    pthread_cond_t changed;
    int passes[WEFT_SCANNER_COUNT];  /* ended */
    int running[WEFT_SCANNER_COUNT]; /* now; and the most ever: */
    int most_of_one, all, most;
    bool stuck[WEFT_SCANNER_COUNT]; /* its passes do not end before this is false */
    bool more[WEFT_SCANNER_COUNT];
    bool fails[WEFT_SCANNER_COUNT];
};

static enum weft_rc play(struct weft_engine *engine, enum weft_scanner scanner,
                         const struct weft_pass_config *config, struct weft_pass_report *ret_report,
                         struct weft_err *err)
{
    struct stage *stage = (struct stage *)engine;
    enum weft_rc rc = WEFT_OK;
    (void)config;
    pthread_mutex_lock(&stage->lock);
    int now = ++stage->running[scanner];
    stage->most_of_one = now > stage->most_of_one ? now : stage->most_of_one;
    stage->all++;
    stage->most = stage->all > stage->most ? stage->all : stage->most;
    pthread_cond_broadcast(&stage->changed);
    while (stage->stuck[scanner])
        pthread_cond_wait(&stage->changed, &stage->lock);
    *ret_report = (struct weft_pass_report){
        .handled = stage->more[scanner], .more = stage->more[scanner], .next_due_us = WEFT_NEVER};
    if (stage->fails[scanner])
        rc = weft_fail(err, WEFT_UNAVAILABLE, "the stage is broken");
    stage->running[scanner]--;
    stage->all--;
    stage->passes[scanner]++;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
    return rc;
}

/* Waits until a number has been reached; false: it was not. */
static bool reaches(struct stage *stage, const int *number, int wanted)
{
    weft_usec until_us = weft_boot_us() + PATIENCE_US;
    pthread_mutex_lock(&stage->lock);
    while (*number < wanted && weft_boot_us() < until_us)
        weft_cond_until(&stage->changed, &stage->lock, until_us);
    bool reached = *number >= wanted;
    pthread_mutex_unlock(&stage->lock);
    return reached;
}

static int passes_of(struct stage *stage, enum weft_scanner scanner)
{
    pthread_mutex_lock(&stage->lock);
    int passes = stage->passes[scanner];
    pthread_mutex_unlock(&stage->lock);
    return passes;
}

static void set(struct stage *stage, bool *what, bool value)
{
    pthread_mutex_lock(&stage->lock);
    *what = value;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
}

static bool logged(const struct stage *stage, const char *text)
{
    char all[16384] = "";
    ssize_t size = pread(stage->log, all, sizeof(all) - 1, 0);
    all[size > 0 ? size : 0] = '\0';
    return strstr(all, text) != NULL;
}

static void open_stage(struct stage *stage, const struct weft_scanner_setting *setting)
{
    static int number;
    struct weft_err err = {0};
    *stage = (struct stage){.log = memfd_create("log", MFD_CLOEXEC)};
    const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void)snprintf(stage->file, sizeof(stage->file), "sqlite:%s/weft-supervisor-%d-%d.db",
                   folder ? folder : "/tmp", (int)getpid(), ++number);
    pthread_mutex_init(&stage->lock, NULL);
    pthread_cond_init(&stage->changed, NULL);
    weft_log_init(WEFT_INFO, WEFT_LOGFMT, stage->log);
    struct weft_server *server = &stage->server;
    const struct weft_engine_config config = {.url = stage->file};
    if (weft_engine_open(&config, &server->engine, &err)) {
        printf("Bail out! cannot open the store: %s\n", err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    server->config.threads = 4;
    server->config.scanners = setting;
    server->metrics = weft_metrics_new(&weft_routes);
    server->supervisor = weft_supervisor_new(server);
    server->upkeep = weft_upkeep_new(server);
    server->groups = weft_groups_new(server);
    weft_supervisor_use(server->supervisor, play, (struct weft_engine *)stage);
    weft_supervisor_hold(server->supervisor, 0);
}

static void close_stage(struct stage *stage)
{
    struct weft_server *server = &stage->server;
    (void)weft_supervisor_stop(server->supervisor, weft_boot_us() + PATIENCE_US);
    weft_groups_free(server->groups);
    weft_upkeep_free(server->upkeep);
    weft_supervisor_free(server->supervisor);
    weft_engine_close(server->engine);
    weft_metrics_free(server->metrics);
    weft_log_init(WEFT_SILENT, WEFT_LOGFMT, STDERR_FILENO);
    (void)close(stage->log);
    pthread_cond_destroy(&stage->changed);
    pthread_mutex_destroy(&stage->lock);
    static const char *const suffix[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < WEFT_LEN(suffix); i++) {
        char name[300];
        (void)snprintf(name, sizeof(name), "%s%s", stage->file + strlen("sqlite:"), suffix[i]);
        (void)unlink(name);
    }
}

/* Every scanner each so many milliseconds; 0: none. */
static void all_each(struct weft_scanner_setting setting[WEFT_SCANNER_COUNT], int64_t ms)
{
    weft_scanner_defaults(setting);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        setting[i].interval_us = ms * WEFT_MS;
}

static const struct weft_scanner_status *status_of(struct stage *stage, struct weft_arena *arena,
                                                   enum weft_scanner scanner)
{
    return &weft_supervisor_status(&stage->server, arena)[scanner];
}

static void test_independence(void)
{
    struct stage stage;
    struct weft_scanner_setting setting[WEFT_SCANNER_COUNT];
    struct weft_arena *arena = weft_arena_new();
    all_each(setting, 10);
    open_stage(&stage, setting);
    stage.stuck[PROMOTER] = stage.fails[WEFT_SCANNER_INTAKE] = true;
    weft_supervisor_start(stage.server.supervisor);
    ok(reaches(&stage, &stage.running[PROMOTER], 1), "one pass is stuck");
    ok(reaches(&stage, &stage.passes[EXPIRY], 20), "another scanner goes on");
    ok(reaches(&stage, &stage.passes[WEFT_SCANNER_INTAKE], 3), "one that fails is tried again");
    is_int(passes_of(&stage, PROMOTER), 0, "the stuck one has not ended");
    const struct weft_scanner_status *status = status_of(&stage, arena, WEFT_SCANNER_INTAKE);
    is_str(status->last_error, "the stage is broken", "the error is shown");
    ok(status->failures >= 2, "the failures are counted");
    ok(!status_of(&stage, arena, EXPIRY)->last_error, "other scanners have no error");
    set(&stage, &stage.fails[WEFT_SCANNER_INTAKE], false);
    set(&stage, &stage.stuck[PROMOTER], false);
    ok(reaches(&stage, &stage.passes[PROMOTER], 20), "the scanner that was stuck goes on");
    ok(reaches(&stage, &stage.passes[WEFT_SCANNER_INTAKE],
               passes_of(&stage, WEFT_SCANNER_INTAKE) + 3),
       "the scanner that failed goes on");
    ok(weft_supervisor_stop(stage.server.supervisor, weft_boot_us() + PATIENCE_US), "a clean stop");
    ok(logged(&stage, "works again"), "the log knows");
    is_int(stage.most_of_one, 1, "no scanner was under way twice");
    ok(stage.most <= 2, "at most two scanners run at once");
    weft_arena_free(arena);
    close_stage(&stage);
}

static void test_drain(void)
{
    struct stage stage;
    struct weft_scanner_setting setting[WEFT_SCANNER_COUNT];
    all_each(setting, 1000);
    open_stage(&stage, setting);
    stage.more[EXPIRY] = stage.more[PROMOTER] = true;
    weft_supervisor_start(stage.server.supervisor);
    ok(reaches(&stage, &stage.passes[EXPIRY], 200), "more runs at once");
    ok(reaches(&stage, &stage.passes[PROMOTER], 200), "a scanner with more to do lets others run");
    ok(weft_supervisor_stop(stage.server.supervisor, weft_boot_us() + PATIENCE_US),
       "a stop in the middle ends at a batch");
    int ended = stage.passes[EXPIRY];
    ok(logged(&stage, "scanners stopped with work left to do"), "the log says that there is more");
    ok(logged(&stage, "scanners=\"lease_expiry, delayed_promoter\""),
       "the log names the unfinished scanners");
    weft_supervisor_set_due(stage.server.supervisor, (weft_usec[WEFT_SCANNER_COUNT]){0});
    weft_groups_free(stage.server.groups); /* nothing can be under way after this */
    stage.server.groups = NULL;
    is_int(stage.passes[EXPIRY], ended, "no pass begins after the stop");
    close_stage(&stage);
}

static void test_stuck(void)
{
    struct stage stage;
    struct weft_scanner_setting setting[WEFT_SCANNER_COUNT];
    all_each(setting, 0);
    setting[EXPIRY].interval_us = WEFT_SECOND;
    open_stage(&stage, setting);
    stage.stuck[EXPIRY] = true;
    weft_supervisor_start(stage.server.supervisor);
    ok(reaches(&stage, &stage.running[EXPIRY], 1), "a pass that does not end");
    ok(!weft_supervisor_stop(stage.server.supervisor, weft_boot_us() + 20 * WEFT_MS),
       "a stop does not wait for the pass beyond the grace");
    ok(logged(&stage, "scanners did not finish their pass in time"),
       "the log says that a pass did not finish");
    ok(logged(&stage, "scanners=lease_expiry"), "the log names the scanner");
    set(&stage, &stage.stuck[EXPIRY], false);
    close_stage(&stage);
}

static void test_settings(void)
{
    struct stage stage;
    struct weft_scanner_setting setting[WEFT_SCANNER_COUNT];
    struct weft_pass_report report;
    struct weft_err err = {0};
    struct weft_arena *arena = weft_arena_new();
    all_each(setting, 0);
    open_stage(&stage, setting);
    weft_supervisor_start(stage.server.supervisor);
    weft_supervisor_set_due(stage.server.supervisor, (weft_usec[WEFT_SCANNER_COUNT]){0});
    is_int(weft_supervisor_run(&stage.server, PROMOTER, &report, &err), WEFT_OK,
           "an operator runs one that is off");
    is_int((int64_t)status_of(&stage, arena, PROMOTER)->passes, 1, "the operator's pass counts");
    set(&stage, &stage.fails[PROMOTER], true);
    is_int(weft_supervisor_run(&stage.server, PROMOTER, &report, &err), WEFT_UNAVAILABLE,
           "a failed pass fails the operator's call");
    is_str(err.text, "the stage is broken", "the operator gets the error");
    is_int(passes_of(&stage, EXPIRY), 0, "no scanner that is off ran, though due");
    struct weft_scanner_setting changed[WEFT_SCANNER_COUNT];
    memcpy(changed, setting, sizeof(changed));
    changed[EXPIRY].interval_us = 10 * WEFT_MS;
    weft_supervisor_set(stage.server.supervisor, changed);
    ok(reaches(&stage, &stage.passes[EXPIRY], 3), "a scanner is switched on while the server runs");
    ok(logged(&stage, "a scanner is set anew") && logged(&stage, "interval_ms=10"), "the log says");
    const struct weft_scanner_status *status = status_of(&stage, arena, EXPIRY);
    ok(status->enabled && status->interval_ms == 10 && status->host[0],
       "the status shows the new setting");
    weft_arena_free(arena);
    close_stage(&stage);
}

int main(void)
{
    test_independence();
    test_drain();
    test_stuck();
    test_settings();
    return tap_done();
}
