/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Retention beside other work: many executions have ended and are past their time, and the time is
 * taken in which passes remove all of them, while another thread goes on at a fixed rate with one
 * lifecycle after the other. Told are the rate, the longest transaction, and how long a lifecycle
 * takes with and without the removal; from the moment it should have begun, so that one that waits
 * for the one before it is not forgotten.
 */

#include "bench/bench.h"

#include "base/arena.h"
#include "cmd/bench/hist.h"

#include <math.h>
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
static weft_usec longest_us; /* the remover's */

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
    if (is_remover && took_us > longest_us)
        longest_us = took_us;
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
    enum weft_rc rc = weft_engine_submit(engine, "default", &spec, 1, &submitted, &err);
    if (rc)
        return bench_product_fail(rc, &err, "submit");
    rc = weft_engine_claim(engine, "default", &claim, 1, arena, &got, &err);
    if (rc || got.count == 0)
        return bench_product_fail(rc, &err, "claim");
    const struct weft_complete done = {.id = got.item[0].id, .epoch = got.item[0].epoch};
    rc = weft_engine_complete(engine, &done, 1, &answer, &err);
    return rc ? bench_product_fail(rc, &err, "complete") : true;
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
            return bench_product_fail(rc, &err, "retention");
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

static void tell(struct bench *bench, const char *store, const struct front *front)
{
    struct bench_time quiet = {
        .name = "retention", .store = store, .what = "a lifecycle without it"};
    struct bench_time beside = {
        .name = "retention", .store = store, .what = "a lifecycle beside it"};
    double longest_ms = (double)longest_us / 1e3;
    const struct bench_time longest = {.name = "retention",
                                       .store = store,
                                       .what = "the longest transaction",
                                       .p50_ms = longest_ms,
                                       .p99_ms = longest_ms,
                                       .count = 1,
                                       .must_ms = 1000};
    bench_time_of(&front->quiet, &quiet);
    bench_time_of(&front->removing, &beside);
    beside.must_ms = 2 * quiet.p99_ms;
    bench_report_time(bench->report, &quiet);
    bench_report_time(bench->report, &beside);
    bench_report_time(bench->report, &longest);
}

static bool retention(struct bench *bench, const char *store, const char *url,
                      const struct bench_meter *meter)
{
    size_t ended = bench->options.ended;
    struct front front = {.stop = false};
    struct weft_engine *engine;
    struct weft_err err;
    struct bench_reading before = {0}, after = {0};
    double seconds = 0;
    bench_progress("retention: %zu executions come to their end", ended);
    if (!load_ended(url, ended) || (meter && !bench_server_settle(bench->server, "bench_product")))
        return false;
    inner = strcmp(store, "pg") == 0 ? &weft_driver_pg : &weft_driver_sqlite;
    timed = *inner;
    timed.begin = begin_timed;
    timed.commit = commit_timed;
    longest_us = 0;
    const struct weft_engine_config config = {
        .url = url, .driver = &timed, .connections = CONNECTIONS};
    const struct weft_lane lane = {.name = "default", .retention_ms = 1};
    enum weft_rc rc = weft_engine_open(&config, &engine, &err);
    if (rc)
        return bench_product_fail(rc, &err, "open");
    bench_progress("retention: %zu executions are removed", ended);
    rc = weft_engine_lane_put(engine, "default", &lane, &err);
    bool done =
        rc ? bench_product_fail(rc, &err, "lane")
           : (!meter || bench_meter_read(meter, &before)) &&
                 remove_beside_front(engine, ended, 4 * bench->options.seconds, &front, &seconds) &&
                 (!meter || bench_meter_read(meter, &after));
    weft_engine_close(engine);
    if (!done)
        return false;
    double count = (double)ended;
    struct bench_runs runs = {.run = {{.per_s = count / seconds}}, .count = 1};
    const struct bench_row row = {
        .name = "retention",
        .store = store,
        .batch = weft_scanner_info(WEFT_SCANNER_RETENTION)->batch,
        .connections = 1,
        .per_s = bench_middle(&runs),
        .floor = {.middle = NAN},
        .wal_bytes = meter ? (after.wal_bytes - before.wal_bytes) / count : NAN,
        .commits = meter ? (after.transactions - before.transactions) / count : NAN,
    };
    bench_report_add(bench->report, &row);
    tell(bench, store, &front);
    return true;
}

bool bench_case_retention(struct bench *bench)
{
    const struct bench_load load = {.batch = LOAD_BATCH, .connections = 1};
    if (bench_wants(bench, "retention", "pg", &load) &&
        (!bench_server_clear(bench->server, "bench_product") ||
         !retention(bench, "pg", bench->product_url, bench_server_meter(bench->server))))
        return false;
    if (!bench_wants(bench, "retention", "sqlite", &load))
        return true;
    bench_remove_file(bench->sqlite_path);
    return retention(bench, "sqlite", bench->sqlite_url, NULL);
}
