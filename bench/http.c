/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Servers over HTTP: `weft serve` on a free port of this machine, driven as `weft bench` does it.
 * The floor of bulk and single is the same load in this process, on the same store.
 */

#include "bench/bench.h"

#include "base/arena.h"
#include "cmd/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_MS = 60000, STOP_MS = 20000, TICK_MS = 20, TRIES = 1000, TRIES_QUICK = 20 };

bool bench_is_http(const struct bench *bench)
{
    return bench->options.only_case && strncmp(bench->options.only_case, "http", 4) == 0;
}

/* ---- A server -------------------------------------------------------------------------------- */

struct server {
    pid_t pid;
    int out; /* what it prints */
    char url[128];
};

static void exec_server(const char *dir, const char *store, int out)
{
    char weft[272], log[272];
    (void)snprintf(weft, sizeof(weft), "%s/weft", dir);
    (void)snprintf(log, sizeof(log), "%s/bench-http.log", dir);
    int err = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (err >= 0 && dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
        (void)execl(weft, weft, "serve", "--hello", "--store", store, "--listen", "127.0.0.1:0",
                    (char *)NULL);
    _exit(127);
}

/* The URL stands in its first line: "... listens at URL, its store ...". */
static bool read_url(struct server *server)
{
    static const char before[] = "listens at ";
    char text[1024] = "";
    size_t size = 0;
    struct pollfd fd = {.fd = server->out, .events = POLLIN};
    while (poll(&fd, 1, START_MS) > 0 && size < sizeof(text) - 1) {
        ssize_t got = read(server->out, text + size, sizeof(text) - 1 - size);
        if (got <= 0)
            break;
        size += (size_t)got;
        const char *url = strstr(text, before);
        if (!url || !strchr(url, ','))
            continue;
        url += sizeof(before) - 1;
        (void)snprintf(server->url, sizeof(server->url), "%.*s", (int)strcspn(url, ","), url);
        return true;
    }
    (void)fputs("bench: the server does not start, see bench-http.log\n", stderr);
    return false;
}

static void stop_server(struct server *server)
{
    if (server->pid <= 0)
        return;
    (void)kill(server->pid, SIGTERM);
    for (int waited_ms = 0; waitpid(server->pid, NULL, WNOHANG) == 0; waited_ms += TICK_MS) {
        if (waited_ms >= STOP_MS)
            (void)kill(server->pid, SIGKILL);
        (void)poll(NULL, 0, TICK_MS);
    }
    (void)close(server->out);
    server->pid = 0;
}

static bool start_server(const struct bench *bench, const char *store, struct server *ret_server)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        perror("pipe");
        return false;
    }
    pid_t pid = fork();
    if (pid == 0)
        exec_server(bench->options.dir, store, ends[1]);
    (void)close(ends[1]);
    *ret_server = (struct server){.pid = pid, .out = ends[0]};
    if (pid > 0 && read_url(ret_server))
        return true;
    stop_server(ret_server);
    return false;
}

/* ---- Measurements ---------------------------------------------------------------------------- */

struct load {
    const char *name;
    enum weft_bench_mode mode;
    uint32_t connections, batch, flows;
    double pg_per_s, sqlite_per_s; /* that must be reached; 0: nothing is asked */
};

static const struct load loads[] = {
    {"http-bulk", WEFT_BENCH_BULK, 8, 100, 0, 20000, 30000},
    {"http-single", WEFT_BENCH_SINGLE, 64, 1, 0, 8000, 0},
    {"http-waiting", WEFT_BENCH_WAITING, 64, 1, 0, 0, 0},
};
/* Chains of ten: one node per request, several, and one chain alone for the hop. */
static const struct load flows[] = {
    {"http-flow", WEFT_BENCH_FLOW, 64, 1, 64, 500, 0},
    {"http-flow", WEFT_BENCH_FLOW, 64, 10, 640, 500, 0},
    {"http-hop", WEFT_BENCH_FLOW, 2, 1, 1, 0, 0},
};
static const struct load latency = {"http-latency", WEFT_BENCH_LATENCY, 2, 1, 0, 0, 0};

static bool measure(const struct weft_bench_plan *plan, struct weft_bench_result *result)
{
    struct weft_err err = {0};
    enum weft_rc rc = weft_bench_measure(plan, result, &err);
    if (rc)
        return bench_fail(rc, &err, "http");
    if (weft_bench_adds_up(result) && result->errors.total == 0)
        return true;
    (void)fprintf(stderr, "bench: %llu submitted, %llu completed, %llu errors, the first is %s\n",
                  (unsigned long long)result->submitted, (unsigned long long)result->completed,
                  (unsigned long long)result->errors.total,
                  result->errors.codes ? result->errors.item[0].code : "none");
    return false;
}

static void add_result(struct bench *bench, const struct bench_store *store,
                       const struct load *load, const struct weft_bench_result *result)
{
    bool pg = strcmp(store->name, "pg") == 0, hop = strcmp(load->name, "http-hop") == 0;
    struct bench_time time = {.name = load->name, .store = store->name, .what = "a request"};
    const struct weft_hist *hist = &result->all;
    if (load->mode == WEFT_BENCH_FLOW) {
        time.what = "completion of a node -> start of the next";
        time.must_p50_ms = hop && pg ? 2 : 0;
        hist = &result->hop;
    } else if (load->mode == WEFT_BENCH_LATENCY) {
        time.what = "submission -> start at another server";
        time.must_p50_ms = 3;
        time.must_ms = 15;
    }
    const struct bench_row row = {.name = load->name,
                                  .store = store->name,
                                  .batch = load->batch,
                                  .connections = load->connections,
                                  .must_per_s = pg ? load->pg_per_s : load->sqlite_per_s};
    const struct bench_runs runs = {.run = {{result->per_s, NAN, NAN}}, .count = 1};
    const struct bench_runs floors = {.run = {{result->embedded_per_s, NAN, NAN}},
                                      .count = result->embedded_per_s > 0};
    bench_report_add(bench->report, row, &runs, &floors);
    bench_report_time(bench->report, time, hist);
}

static bool run_load(struct bench *bench, const struct bench_store *store, const struct load *load,
                     const char *url, const char *to_url)
{
    const struct bench_options *options = &bench->options;
    const struct weft_bench_plan plan = {
        .mode = load->mode,
        .server = url,
        .to_server = to_url,
        .store =
            load->mode == WEFT_BENCH_BULK || load->mode == WEFT_BENCH_SINGLE ? store->url : NULL,
        .lane = "bench",
        .connections = load->connections,
        .embedded_connections = 8,
        .batch = load->batch,
        .tries = options->quick ? TRIES_QUICK : TRIES,
        .nodes = 10,
        .flows = load->flows,
        .run_ms = (int64_t)(options->seconds * 1000),
        .warmup_ms = options->quick ? 50 : 1000,
        .payload_size = BENCH_PAYLOAD,
    };
    struct weft_bench_result *result = calloc(1, sizeof(*result));
    if (!result)
        weft_oom(sizeof(*result));
    bench_progress("%s: %s, %g s", load->name, store->name, options->seconds);
    bool done = measure(&plan, result);
    if (done)
        add_result(bench, store, load, result);
    free(result);
    return done;
}

/* Loads of one server, from empty tables. */
static bool run_loads(struct bench *bench, const char *name, const struct load *load, size_t count)
{
    struct bench_store store;
    struct server server = {0};
    bool wanted = false, done = true;
    for (size_t i = 0; i < count; i++)
        wanted |= bench_wants(
            bench, load[i].name, name,
            &(struct bench_load){.batch = load[i].batch, .connections = load[i].connections});
    if (!wanted)
        return true;
    if (!bench_empty_store(bench, name, &store) || !start_server(bench, store.url, &server))
        return false;
    for (size_t i = 0; i < count && done; i++) {
        const struct bench_load cell = {.batch = load[i].batch, .connections = load[i].connections};
        if (bench_wants(bench, load[i].name, name, &cell))
            done = run_load(bench, &store, &load[i], server.url, server.url);
    }
    stop_server(&server);
    return done;
}

static bool run_latency(struct bench *bench, const struct bench_store *store)
{
    struct server here = {0}, there = {0};
    bool done =
        strcmp(store->name, "pg") != 0 || /* two servers share a PostgreSQL only */
        (start_server(bench, store->url, &here) && start_server(bench, store->url, &there) &&
         run_load(bench, store, &latency, here.url, there.url));
    stop_server(&here);
    stop_server(&there);
    return done;
}

bool bench_case_http(struct bench *bench)
{
    const struct bench_load cell = {.batch = latency.batch, .connections = latency.connections};
    return !bench_is_http(bench) || (run_loads(bench, "sqlite", loads, WEFT_LEN(loads)) &&
                                     run_loads(bench, "sqlite", flows, WEFT_LEN(flows)) &&
                                     bench_on_stores(bench, latency.name, &cell, run_latency) &&
                                     run_loads(bench, "pg", loads, WEFT_LEN(loads)) &&
                                     run_loads(bench, "pg", flows, WEFT_LEN(flows)));
}
