/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A lane with max_running 1 while its executions are cancelled, revoked, timed out and expired in
 * the midst: never two handlers at once. The handlers record it themselves: each writes when it
 * began and when it was about to return, by CLOCK_MONOTONIC, which all processes of a machine
 * share.
 *
 * Four processes work: one with an engine of its own, two at the server that is asked to cancel,
 * one at a server of its own: the same replica, another one and a stranger. Some handlers return at
 * once when the worker asks them to stop, some after a while. The test lasts a few seconds for each
 * store, ten minutes with WEFT_SOAK=1, and as long as WEFT_LIMIT_SECONDS says.
 */

#include "server_fixture.h"
#include "worker_fixture.h"

#include "base/id.h"
#include "engine/admin/doctor.h"
#include "weft/weft.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/wait.h>

enum {
    SECONDS = 4,
    SOAK_SECONDS = 600,
    WORKERS = 4,
    ALONE = 0,        /* the process with an engine */
    REPLICA = 3,      /* that with a server */
    BACKLOG = 12,     /* executions that wait in the lane */
    LEASE_MS = 30000, /* longer than any handler here stays after it was asked to stop */
    SLOW_MS = 150,    /* the longest that one stays */
    RUNS_MAX = 400000,
};

static const char *const lanes[] = {"one"};

/* A run of a handler, as it stands in the file. */
struct run {
    int64_t began_us, ended_us;
    int32_t process;
    int32_t told; /* the worker asked it to stop */
};

struct site {
    const char *store;
    char url[600];
    char record[600]; /* the file */
    int tell[2];      /* from the parent: the URL of its server, for each process */
    int end[2];       /* closed by the parent: the end */
};

static int64_t seconds(void)
{
    const char *given =
        getenv("WEFT_LIMIT_SECONDS");       /* NOLINT(concurrency-mt-unsafe): one thread */
    const char *soak = getenv("WEFT_SOAK"); /* NOLINT(concurrency-mt-unsafe) */
    if (given && *given)
        return strtol(given, NULL, 10);
    return soak && *soak && *soak != '0' ? SOAK_SECONDS : SECONDS;
}

/* ---- A process that works -------------------------------------------------------------------- */

struct recorder {
    int file, process;
};

static void nap_ms(int64_t ms)
{
    (void)poll(NULL, 0, (int)ms);
}

/* The first byte of the payload says what it does; the rest for how many ms. */
static enum weft_verdict handle_one(struct weft_job *job, void *context)
{
    const struct recorder *recorder = context;
    struct run run = {.began_us = weft_mono_us(), .process = recorder->process};
    const char *payload = weft_job_claimed(job)->payload;
    bool waits = payload[1] != 'q', slow = payload[1] == 's';
    int64_t ms = strtol(payload + 2, NULL, 10);
    for (int64_t i = 0; i < (waits ? PATIENCE_MS : ms) && !weft_job_stopping(job); i++)
        nap_ms(1);
    run.told = weft_job_fence(job) != WEFT_FENCE_NONE;
    if (slow && run.told)
        nap_ms(ms); /* it does not hurry */
    run.ended_us = weft_mono_us();
    if (write(recorder->file, &run, sizeof(run)) != sizeof(run))
        abort();
    return WEFT_DONE;
}

/* Works until the parent closes its end of the pipe. */
static int work(const struct site *site, int process)
{
    struct weft_server *server = NULL;
    struct weft *weft = NULL;
    struct weft_worker *worker = NULL;
    struct weft_err err = {0};
    struct recorder recorder = {
        .file = open(site->record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
        .process = process};
    const struct weft_server_config config = {.store = site->url, .listen = "127.0.0.1:0"};
    const struct weft_worker_options options = {
        .lanes = lanes, .lane_count = 1, .threads = 2, .lease_ms = LEASE_MS, .poll_ms = 20};
    char url[sizeof(site->url)];
    enum weft_rc rc =
        read(site->tell[0], url, sizeof(url)) == sizeof(url) ? WEFT_OK : WEFT_INTERNAL;
    if (!rc && process == REPLICA)
        rc = weft_server_start(&config, &server, &err);
    const char *where = server ? weft_server_url(server) : process == ALONE ? site->url : url;
    if (!rc)
        rc = weft_open(where, NULL, &weft, &err);
    if (!rc)
        rc = weft_worker_new(weft, &options, &worker, &err);
    if (!rc)
        rc = weft_worker_on(worker, "step", handle_one, &recorder, &err);
    if (!rc)
        rc = weft_worker_start(worker, &err);
    char nothing;
    if (!rc && read(site->end[0], &nothing, 1) != 0)
        rc = WEFT_INTERNAL;
    if (rc)
        printf("# process %d: %s\n", process, err.text);
    weft_worker_free(worker);
    weft_close(weft);
    weft_server_free(server);
    return rc ? 1 : 0;
}

/* ---- The one that disturbs them -------------------------------------------------------------- */

static uint32_t below(uint32_t bound)
{
    uint32_t number;
    weft_random(&number, sizeof(number));
    return number % bound;
}

static void must(enum weft_rc rc, const struct weft_err *err, const char *what)
{
    if (rc) {
        printf("Bail out! %s: %s\n", what, err->text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
}

/* Quick jobs, and jobs that end when the worker stops them: at once, or after a while. */
static void submit_some(struct weft *weft, size_t count)
{
    struct weft_err err;
    for (size_t i = 0; i < count; i++) {
        static const struct weft_policy timed = {
            .attempt_timeout_ms = 60, .max_attempts = 2, .initial_ms = -1};
        char payload[32];
        uint32_t kind = below(10);
        (void)snprintf(payload, sizeof(payload), "\"%c%u\"",
                       kind < 2   ? 'q'
                       : kind < 6 ? 'w'
                                  : 's',
                       1 + below(SLOW_MS));
        struct weft_spec spec = {
            .kind = "step", .lane = "one", .payload = payload, .payload_size = strlen(payload)};
        if (below(4) == 0)
            spec.policy = &timed;
        struct weft_submitted answer = {0};
        must(weft_submit(weft, &spec, 1, &answer, &err), &err, "submit");
    }
}

/* Ends the lease of what runs, in one of several ways. */
static void disturb(struct weft *weft)
{
    struct weft_err err;
    struct weft_page page = {0};
    const struct weft_filter running = {.lane = "one", .state = WEFT_STATE_RUNNING};
    must(weft_list(weft, &running, 5, NULL, &page, &err), &err, "list");
    for (size_t i = 0; i < page.count; i++) {
        struct weft_steered answer = {0};
        struct weft_steer item = {.id = page.item[i].id};
        uint32_t way = below(8);
        enum weft_steer_kind kind = way < 2 ? WEFT_STEER_REVOKE : WEFT_STEER_CANCEL;
        if (way == 2) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            kind = WEFT_STEER_SET_DEADLINE;
            item.deadline_us = now.tv_sec * WEFT_SECOND + now.tv_nsec / 1000 + 5 * WEFT_MS;
        }
        must(weft_steer(weft, kind, &item, 1, &answer, &err), &err, "steer");
    }
    weft_page_free(&page);
}

static void disturb_for(struct weft *weft, int64_t span_s)
{
    struct weft_err err;
    const struct weft_lane lane = {.name = "one", .max_running = 1};
    must(weft_lane_put(weft, &lane, &err), &err, "lane");
    int64_t until_us = weft_mono_us() + span_s * WEFT_SECOND;
    while (weft_mono_us() < until_us) {
        struct weft_counts counts = {0};
        must(weft_counts(weft, "one", &counts, &err), &err, "counts");
        uint64_t ready = counts.count ? counts.item[0].count[WEFT_STATE_READY] : 0;
        weft_counts_free(&counts);
        if (ready < BACKLOG)
            submit_some(weft, BACKLOG - ready);
        disturb(weft);
        nap_ms(1 + below(40));
    }
    const struct weft_steer_all rest = {.kind = WEFT_STEER_CANCEL, .filter = {.lane = "one"}};
    struct weft_sweep sweep;
    must(weft_steer_all(weft, &rest, &sweep, &err), &err, "cancel the rest");
}

/* ---- What was recorded ----------------------------------------------------------------------- */

static int by_begin(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return (x->began_us > y->began_us) - (x->began_us < y->began_us);
}

static void judge(const struct site *site)
{
    struct run *run = calloc(RUNS_MAX, sizeof(*run));
    assert(run);
    int file = open(site->record, O_RDONLY | O_CLOEXEC);
    size_t count = 0, told = 0, overlaps = 0, by[WORKERS] = {0};
    while (count < RUNS_MAX && read(file, &run[count], sizeof(*run)) == sizeof(*run))
        count++;
    (void)close(file);
    qsort(run, count, sizeof(*run), by_begin);
    int64_t ended_us = 0;
    for (size_t i = 0; i < count; i++) {
        told += run[i].told;
        by[run[i].process]++;
        if (run[i].began_us < ended_us && overlaps++ < 5)
            printf("# a handler of process %d began %" PRId64 " us before another had returned\n",
                   run[i].process, ended_us - run[i].began_us);
        ended_us = run[i].ended_us > ended_us ? run[i].ended_us : ended_us;
    }
    printf("# %s: %zu runs, %zu of them asked to stop; by process %zu, %zu, %zu, %zu\n",
           site->store, count, told, by[0], by[1], by[2], by[3]);
    is_int(overlaps, 0, "%s: never two handlers at once", site->store);
    ok(count >= 3 && told >= 2, "%s: some runs were ended in the midst", site->store);
    free(run);
}

static void test_store(const char *store)
{
    struct site site = {.store = store};
    const char *folder = getenv("TMPDIR");   /* NOLINT(concurrency-mt-unsafe): one thread */
    const char *pg = getenv("WEFT_TEST_PG"); /* NOLINT(concurrency-mt-unsafe) */
    folder = folder ? folder : "/tmp";
    pg = pg ? pg : ""; /* the caller has seen to it */
    if (world_is_pg(store))
        (void)snprintf(site.url, sizeof(site.url), "%s%cweft_schema=limit_%d", pg,
                       strchr(pg, '?') ? '&' : '?', (int)getpid());
    else
        (void)snprintf(site.url, sizeof(site.url), "sqlite:%s/limit-%d.db", folder, (int)getpid());
    (void)snprintf(site.record, sizeof(site.record), "%s/limit-%s-%d.runs", folder, store,
                   (int)getpid());
    pid_t child[WORKERS];
    if (pipe2(site.tell, O_CLOEXEC) != 0 || pipe2(site.end, O_CLOEXEC) != 0)
        abort();
    struct weft *weft = NULL;
    struct weft_err err;
    must(weft_open(site.url, NULL, &weft, &err), &err, "open"); /* makes the schema */
    weft_close(weft);
    (void)fflush(stdout);
    for (int i = 0; i < WORKERS; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            (void)close(site.end[1]);
            int status = work(&site, i);
            (void)fflush(stdout);
            _exit(status);
        }
    }
    (void)close(site.end[0]);
    struct weft_server *server = NULL;
    const struct weft_server_config config = {.store = site.url, .listen = "127.0.0.1:0"};
    must(weft_server_start(&config, &server, &err), &err, "serve");
    char url[sizeof(site.url)] = "";
    (void)snprintf(url, sizeof(url), "%s", weft_server_url(server));
    for (int i = 0; i < WORKERS; i++)
        if (write(site.tell[1], url, sizeof(url)) != sizeof(url))
            abort();
    must(weft_open(url, NULL, &weft, &err), &err, "open");
    disturb_for(weft, seconds());
    (void)close(site.end[1]);
    (void)close(site.tell[0]);
    (void)close(site.tell[1]);
    for (int i = 0; i < WORKERS; i++) {
        int status = -1;
        (void)waitpid(child[i], &status, 0);
        ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: process %d ends well", store, i);
    }
    weft_close(weft);
    weft_server_free(server);
    judge(&site);
    must(weft_open(site.url, NULL, &weft, &err), &err, "open");
    enum weft_rc rc = weft_engine_check(weft->engine, &err);
    ok(rc == WEFT_OK, "%s: the invariants hold%s%s", store, rc ? ": " : "", rc ? err.text : "");
    weft_close(weft);
    (void)unlink(site.record);
}

/* One store by name, or both. */
int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "sqlite") == 0)
        test_store("sqlite");
    if (world_exists("pg") && (argc < 2 || strcmp(argv[1], "pg") == 0))
        test_store("pg");
    return tap_done();
}
