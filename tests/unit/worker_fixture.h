/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UNIT_WORKER_FIXTURE_H
#define WEFT_TESTS_UNIT_WORKER_FIXTURE_H

/*
 * A store for a worker to work on, by itself or behind a server, and a meeting place for handlers
 * and the test. Time is real here, so every wait is for something to happen and has a bound that a
 * healthy run never reaches.
 */

#include "server_fixture.h"
#include "tap.h"

#include "base/base.h"
#include "client/client.h"
#include "engine/admin/doctor.h"
#include "net/server.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, JOBS_MAX = 1000 };

/* Where handlers tell what they did and wait for the test. */
struct box {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int begun, ended;
    int seen[JOBS_MAX]; /* how often each numbered job ran */
    bool open;          /* handlers that wait at the gate may go on */
    enum weft_fence fence;
};

struct world {
    const char *store;          /* one of world_stores */
    char url[600];              /* what handles are opened with */
    char store_url[600];        /* of the database */
    struct weft_server *server; /* or NULL */
    struct weft *weft;
    struct weft_err err;
    struct box box;
};

static inline void box_init(struct box *box)
{
    *box = (struct box){0};
    pthread_mutex_init(&box->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&box->changed, &attr);
    pthread_condattr_destroy(&attr);
}

static inline struct timespec in_ms(int64_t ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(ms / 1000);
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

/* Adds to a number of the box and wakes all waiters. */
static inline void box_add(struct box *box, int *number)
{
    pthread_mutex_lock(&box->lock);
    ++*number;
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
}

static inline void box_open(struct box *box)
{
    pthread_mutex_lock(&box->lock);
    box->open = true;
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
}

/* True when the number got there in time. */
static inline bool box_wait(struct box *box, const int *number, int want)
{
    const struct timespec until = in_ms(PATIENCE_MS);
    pthread_mutex_lock(&box->lock);
    int waited = 0;
    while (*number < want && waited == 0)
        waited = pthread_cond_timedwait(&box->changed, &box->lock, &until);
    bool there = *number >= want;
    pthread_mutex_unlock(&box->lock);
    return there;
}

/* Waits at the gate, at most ms. True: it was opened. */
static inline bool box_gate(struct box *box, int64_t ms)
{
    const struct timespec until = in_ms(ms);
    pthread_mutex_lock(&box->lock);
    int waited = 0;
    while (!box->open && waited == 0)
        waited = pthread_cond_timedwait(&box->changed, &box->lock, &until);
    bool open = box->open;
    pthread_mutex_unlock(&box->lock);
    return open;
}

/* Stores by themselves, and behind a server. */
static const char *const world_stores[] = {"sqlite", "http-sqlite", "pg", "http-pg"};

static inline bool world_is_pg(const char *store)
{
    return strstr(store, "pg") != NULL;
}

static inline bool world_is_http(const char *store)
{
    return strncmp(store, "http-", 5) == 0;
}

/* False: there is no PostgreSQL to test with. */
static inline bool world_exists(const char *store)
{
    const char *url = getenv("WEFT_TEST_PG"); /* NOLINT(concurrency-mt-unsafe): one thread yet */
    return !world_is_pg(store) || (url && *url);
}

static inline struct weft *world_open(struct world *w)
{
    struct weft *weft = NULL;
    if (weft_open(w->url, NULL, &weft, &w->err)) {
        printf("Bail out! cannot open the store: %s\n", w->err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    return weft;
}

static inline void world_serve(struct world *w)
{
    const struct weft_server_config config = {.store = w->store_url, .listen = "127.0.0.1:0"};
    if (weft_server_start(&config, &w->server, &w->err)) {
        printf("Bail out! cannot start a server: %s\n", w->err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    (void)snprintf(w->url, sizeof(w->url), "%s", weft_server_url(w->server));
}

static inline void world_init(struct world *w, const char *store)
{
    static int number;
    *w = (struct world){.store = store};
    box_init(&w->box);
    number++;
    if (world_is_pg(store)) {
        const char *url = getenv("WEFT_TEST_PG"); /* NOLINT(concurrency-mt-unsafe) */
        assert(url);
        (void)snprintf(w->store_url, sizeof(w->store_url), "%s%cweft_schema=worker_%d_%d", url,
                       strchr(url, '?') ? '&' : '?', (int)getpid(), number);
    } else {
        const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */
        (void)snprintf(w->store_url, sizeof(w->store_url), "sqlite:%s/weft-worker-%d-%d.db",
                       folder ? folder : "/tmp", (int)getpid(), number);
    }
    if (world_is_http(store))
        world_serve(w);
    else
        memcpy(w->url, w->store_url, sizeof(w->url));
    w->weft = world_open(w);
}

/* Runs SQL on the store, outside the engine. */
static inline void world_sql(struct world *w, const char *sql)
{
    const struct weft_driver *driver;
    struct weft_conn *conn = NULL;
    enum weft_rc rc = weft_driver_for(w->store_url, &driver, &w->err);
    if (!rc)
        rc = driver->open(w->store_url, &conn, &w->err);
    if (!rc)
        rc = driver->begin(conn, WEFT_TX_WRITE, &w->err);
    if (!rc)
        rc = driver->script(conn, sql, &w->err);
    if (!rc)
        rc = driver->commit(conn, &w->err);
    ok(rc == WEFT_OK, "%s: SQL runs%s%s", w->store, rc ? ": " : "", rc ? w->err.text : "");
    weft_conn_close(conn);
}

static inline void world_done(struct world *w)
{
    weft_close(w->weft);
    weft_server_free(w->server);
    memcpy(w->url, w->store_url, sizeof(w->url));
    w->weft = world_open(w);
    enum weft_rc rc = weft_engine_check(w->weft->engine, &w->err);
    ok(rc == WEFT_OK, "%s: the invariants hold%s%s", w->store, rc ? ": " : "",
       rc ? w->err.text : "");
    weft_close(w->weft);
    if (world_is_pg(w->store)) {
        world_sql(w, "DROP SCHEMA IF EXISTS weft CASCADE");
    } else {
        static const char *const suffix[] = {"", "-wal", "-shm"};
        for (size_t i = 0; i < WEFT_LEN(suffix); i++) {
            char path[620];
            (void)snprintf(path, sizeof(path), "%s%s", w->store_url + strlen("sqlite:"), suffix[i]);
            (void)unlink(path);
        }
    }
    pthread_cond_destroy(&w->box.changed);
    pthread_mutex_destroy(&w->box.lock);
}

/* ---- Short forms ----------------------------------------------------------------------------- */

static inline struct weft_id submit(struct world *w, const struct weft_spec *spec)
{
    struct weft_submitted answer = {0};
    enum weft_rc rc = weft_submit(w->weft, spec, 1, &answer, &w->err);
    if (rc || answer.err.rc)
        ok(false, "%s: submit: %s", w->store, rc ? w->err.text : answer.err.text);
    return answer.id;
}

/* Submits jobs whose payload is their number. */
static inline void submit_numbered(struct world *w, const char *kind, int first, int count)
{
    static char text[JOBS_MAX][12];
    static struct weft_spec spec[JOBS_MAX];
    static struct weft_submitted answer[JOBS_MAX];
    assert(first + count <= JOBS_MAX);
    for (int i = 0; i < count; i++) {
        int size = snprintf(text[i], sizeof(text[i]), "%d", first + i);
        spec[i] =
            (struct weft_spec){.kind = kind, .payload = text[i], .payload_size = (size_t)size};
    }
    enum weft_rc rc = weft_submit(w->weft, spec, (size_t)count, answer, &w->err);
    ok(rc == WEFT_OK, "%s: %d jobs of kind %s", w->store, count, kind);
}

static inline int number_of(const struct weft_job *job)
{
    const struct weft_claimed *claimed = weft_job_claimed(job);
    char text[12] = "";
    memcpy(text, claimed->payload, claimed->payload_size);
    return (int)strtol(text, NULL, 10);
}

static inline struct weft_execution describe(struct world *w, const struct weft_id *id)
{
    static struct weft_page page; /* freed at the next call: texts live until then */
    weft_page_free(&page);
    if (!id)
        return (struct weft_execution){0};
    if (weft_describe(w->weft, id, 1, &page, &w->err)) {
        ok(false, "%s: describe: %s", w->store, w->err.text);
        return (struct weft_execution){0};
    }
    return page.item[0];
}

/* How many executions are in a state; up to a page of them. */
static inline size_t count_in(struct world *w, enum weft_state state)
{
    struct weft_page page = {0};
    const struct weft_filter filter = {.state = state};
    if (weft_list(w->weft, &filter, 1000, NULL, &page, &w->err))
        ok(false, "%s: list: %s", w->store, w->err.text);
    size_t count = page.count;
    weft_page_free(&page);
    return count;
}

static inline struct weft_worker *make_worker(struct world *w, struct weft *weft,
                                              const struct weft_worker_options *options)
{
    struct weft_worker *worker = NULL;
    if (weft_worker_new(weft, options, &worker, &w->err))
        ok(false, "%s: a worker: %s", w->store, w->err.text);
    return worker;
}

static inline void handle(struct world *w, struct weft_worker *worker, const char *kind,
                          weft_handler handler)
{
    if (weft_worker_on(worker, kind, handler, w, &w->err))
        ok(false, "%s: a handler: %s", w->store, w->err.text);
}

static inline void start(struct world *w, struct weft_worker *worker)
{
    if (weft_worker_start(worker, &w->err))
        ok(false, "%s: start: %s", w->store, w->err.text);
}

/* Counts the numbered job and completes it. */
static inline enum weft_verdict handle_numbered(struct weft_job *job, void *context)
{
    struct world *w = context;
    int number = number_of(job);
    pthread_mutex_lock(&w->box.lock);
    w->box.seen[number]++;
    w->box.ended++;
    pthread_cond_broadcast(&w->box.changed);
    pthread_mutex_unlock(&w->box.lock);
    char text[32];
    int size = snprintf(text, sizeof(text), "{\"square\":%d}", number * number);
    weft_job_result(job, text, (size_t)size, NULL);
    return WEFT_DONE;
}

/* ---- A store that fails ---------------------------------------------------------------------- */

/* A store that refuses the first few of a statement. */
struct refusal {
    struct weft_fault fault;
    enum weft_stmt stmt;
    int left;
    int refused;
};

static inline void refuse(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    struct refusal *refusal = context;
    if (point != WEFT_FAULT_BEFORE_RUN || stmt != refusal->stmt ||
        __atomic_load_n(&refusal->left, __ATOMIC_RELAXED) == 0)
        return;
    (void)__atomic_sub_fetch(&refusal->left, 1, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(&refusal->refused, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&refusal->fault.strike_at, 1, __ATOMIC_RELAXED);
}

static inline void refusal_init(struct world *w, struct refusal *refusal, struct weft **ret_weft)
{
    const struct weft_driver *inner = NULL;
    enum weft_rc rc = weft_driver_for(w->url, &inner, &w->err);
    refusal->fault = (struct weft_fault){
        .inner = inner, .kind = WEFT_FAULT_FULL, .hook = refuse, .context = refusal};
    const struct weft_engine_config config = {.url = w->url,
                                              .driver = weft_fault_install(&refusal->fault)};
    if (!rc)
        rc = weft_open_with(&config, NULL, ret_weft, &w->err);
    ok(rc == WEFT_OK, "%s: a store with faults", w->store);
}

/* ---- Servers --------------------------------------------------------------------------------- */

static inline void world_stop_server(struct world *w)
{
    weft_server_free(w->server);
    w->server = NULL;
}

/* Another server at the same address. */
static inline void world_restart_server(struct world *w)
{
    char listen[100];
    (void)snprintf(listen, sizeof(listen), "%.90s", strstr(w->url, "://") + 3);
    const struct weft_server_config config = {.store = w->store_url, .listen = listen};
    ok(weft_server_start(&config, &w->server, &w->err) == WEFT_OK, "%s: a server again %s",
       w->store, w->err.text);
}

static inline bool each_once(const struct box *box, int count)
{
    for (int i = 0; i < count; i++)
        if (box->seen[i] != 1)
            return false;
    return true;
}

#endif
