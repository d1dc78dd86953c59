/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Retention beside other work: passes remove many executions that are past their retention, while
 * another thread runs single lifecycles at a fixed rate. Reported are the rate of the removal, its
 * longest transaction, and how long a lifecycle takes with and without it. A lifecycle is timed
 * from the moment it should have begun, so that waiting for the one before it counts.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "bench/bench.h"
#include "cmd/bench/bench.h"
#include "direct.h"
#include "engine/admin/lanes.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "engine/scan/pass.h"
#include "store/store.h"
#include "weft/admin.h"
#include "weft/weft.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { LOAD_BATCH = 500, CONNECTIONS = 4, FRONT_PER_S = 100 };

/* ---- A driver that takes the time of the removal's transactions ------------------------------ */

static const struct weft_driver *inner;
static struct weft_driver timed;
static _Thread_local bool is_remover;
static _Thread_local weft_usec begun_us;
static struct weft_hist longest; /* one value: the remover's longest */

static enum weft_rc begin_timed(struct weft_conn *conn, enum weft_tx_mode mode,
                                struct weft_err *err)
{
    begun_us = weft_boot_us();
    return inner->begin(conn, mode, err);
}

static enum weft_rc commit_timed(struct weft_conn *conn, struct weft_err *err)
{
    enum weft_rc rc = inner->commit(conn, err);
    weft_usec took_us = weft_boot_us() - begun_us;
    if (is_remover && took_us > longest.max_us) {
        longest = (struct weft_hist){0};
        weft_hist_add(&longest, took_us);
    }
    return rc;
}

/* ---- The work in front ----------------------------------------------------------------------- */

struct front {
    struct weft_engine *engine;
    pthread_t thread;
    _Atomic bool stop;
    _Atomic bool busy; /* the removal goes on */
    bool failed;
    struct weft_hist quiet, removing;
};

static bool live_once(struct weft_engine *engine, struct weft_arena *arena)
{
    static const char *const lane = "front";
    const struct weft_spec spec = {
        .lane = lane, .kind = "bench", .payload = "{}", .payload_size = 2};
    const struct weft_claim claim = {.worker = "front", .lanes = &lane, .lane_count = 1, .max = 1};
    struct weft_submitted submitted;
    struct weft_claim_result got;
    struct weft_lease_answer answer;
    struct weft_err err;
    enum weft_rc rc = engine_submit(engine, "default", &spec, 1, &submitted, &err);
    if (rc)
        return bench_fail(rc, &err, "submit");
    rc = weft_engine_claim(engine, "default", &claim, 1, arena, &got, &err);
    if (rc || got.count == 0)
        return bench_fail(rc, &err, "claim");
    const struct weft_complete done = {.id = got.item[0].id, .epoch = got.item[0].epoch};
    rc = engine_complete(engine, &done, 1, &answer, &err);
    return rc ? bench_fail(rc, &err, "complete") : true;
}

static void *work_in_front(void *context)
{
    struct front *front = context;
    struct weft_arena *arena = weft_arena_new();
    weft_usec due_us = weft_boot_us();
    while (!atomic_load(&front->stop) && !front->failed) {
        const struct timespec due = {.tv_sec = due_us / WEFT_SECOND,
                                     .tv_nsec = due_us % WEFT_SECOND * 1000};
        (void)clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &due, NULL);
        front->failed = !live_once(front->engine, arena);
        weft_hist_add(atomic_load(&front->busy) ? &front->removing : &front->quiet,
                      weft_boot_us() - due_us);
        due_us += WEFT_SECOND / FRONT_PER_S;
    }
    weft_arena_free(arena);
    return NULL;
}

/* ---- The removal ----------------------------------------------------------------------------- */

static bool remove_all(struct weft_engine *engine, size_t wanted, double *ret_seconds)
{
    weft_usec start_us = weft_boot_us();
    uint64_t handled = 0;
    struct weft_pass_report report = {.more = true};
    is_remover = true;
    while (report.more) {
        struct weft_err err;
        enum weft_rc rc = weft_engine_pass(engine, WEFT_SCANNER_RETENTION, NULL, &report, &err);
        if (rc)
            return bench_fail(rc, &err, "retention");
        handled += report.handled;
    }
    is_remover = false;
    *ret_seconds = (double)(weft_boot_us() - start_us) / 1e6;
    if (handled == wanted)
        return true;
    (void)fprintf(stderr, "bench: %llu of %zu were removed\n", (unsigned long long)handled, wanted);
    return false;
}

static bool remove_beside_front(struct weft_engine *engine, size_t wanted, double seconds,
                                struct front *front, double *ret_seconds)
{
    front->engine = engine;
    int failed = pthread_create(&front->thread, NULL, work_in_front, front);
    if (failed) {
        (void)fprintf(stderr, "bench: no thread: error %d\n", failed);
        return false;
    }
    weft_usec quiet_us = (weft_usec)(seconds * 1e6);
    const struct timespec pause = {.tv_sec = quiet_us / WEFT_SECOND,
                                   .tv_nsec = quiet_us % WEFT_SECOND * 1000};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    atomic_store(&front->busy, true);
    bool done = remove_all(engine, wanted, ret_seconds);
    atomic_store(&front->stop, true);
    (void)pthread_join(front->thread, NULL);
    return done && !front->failed;
}

/* Ends `count` executions of the lane default. */
static bool load_ended(const char *url, size_t count)
{
    const struct bench_load load = {
        .batch = LOAD_BATCH, .connections = 1, .turns = count / LOAD_BATCH};
    struct bench_run ignored;
    return bench_product_run(url, &load, NULL, &ignored);
}

static void add_time(struct bench *bench, const struct bench_store *store, const char *what,
                     const struct weft_hist *hist, double must_ms)
{
    const struct bench_time time = {
        .name = "retention", .store = store->name, .what = what, .must_ms = must_ms};
    bench_report_time(bench->report, time, hist);
}

static bool retention(struct bench *bench, const struct bench_store *store)
{
    size_t ended = bench->options.ended;
    struct front front = {.stop = false};
    struct weft_engine *engine;
    struct weft_err err;
    struct bench_span span = {.meter = store->meter};
    double seconds = 0;
    bench_progress("retention: %zu executions are submitted and completed", ended);
    if (!load_ended(store->url, ended) ||
        (store->meter && !bench_server_settle(bench->server, "bench_product")))
        return false;
    inner = store->meter ? &weft_driver_pg : &weft_driver_sqlite;
    timed = *inner;
    timed.begin = begin_timed;
    timed.commit = commit_timed;
    longest = (struct weft_hist){0};
    const struct weft_engine_config config = {
        .url = store->url, .driver = &timed, .connections = CONNECTIONS};
    const struct weft_lane lane = {.name = "default", .retention_ms = 1};
    enum weft_rc rc = weft_engine_open(&config, &engine, &err);
    if (rc)
        return bench_fail(rc, &err, "open");
    bench_progress("retention: %zu executions are removed", ended);
    rc = weft_engine_lane_put(engine, "default", &lane, &err);
    bool done =
        rc ? bench_fail(rc, &err, "lane")
           : bench_span_begin(&span) &&
                 remove_beside_front(engine, ended, 4 * bench->options.seconds, &front, &seconds) &&
                 bench_span_end(&span);
    weft_engine_close(engine);
    if (!done)
        return false;
    const struct bench_runs runs = {.run = {bench_span_run(&span, (double)ended, seconds)},
                                    .count = 1};
    const struct bench_row row = {.name = "retention",
                                  .store = store->name,
                                  .batch = weft_scanner_info(WEFT_SCANNER_RETENTION)->batch,
                                  .connections = 1};
    bench_report_add(bench->report, row, &runs, NULL);
    add_time(bench, store, "a lifecycle without it", &front.quiet, 0);
    add_time(bench, store, "a lifecycle beside it", &front.removing,
             2 * weft_hist_ms(&front.quiet, 0.99));
    add_time(bench, store, "the longest transaction", &longest, 1000);
    return true;
}

bool bench_case_retention(struct bench *bench)
{
    const struct bench_load load = {.batch = LOAD_BATCH, .connections = 1};
    return bench_on_stores(bench, "retention", &load, retention);
}
