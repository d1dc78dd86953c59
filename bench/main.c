/* SPDX-License-Identifier: Apache-2.0 */

/* Options, what the cases share, and their order. RESULTS.md says what the figures mean. */

#include "bench/bench.h"

#include "store/store.h"

#include <errno.h>
#include <getopt.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

static const char usage[] =
    "Usage: bench [OPTION]...\n"
    "Measures submit + claim + complete through the engine on PostgreSQL and SQLite, beside the\n"
    "raw floor: the same rows written to PostgreSQL by hand-written statements. The case http\n"
    "measures the same through servers, DIR/weft, beside this process: that is the floor then.\n"
    "\n"
    "  --case NAME         lifecycle, queues (kinds, tenants, lanes), backlog, expiry, retention,\n"
    "                      snapshot, flow; or http, which is not run unless it is named\n"
    "                      (http-bulk, http-single, http-waiting, http-flow, http-hop,\n"
    "                      http-latency)\n"
    "  --store NAME        pg or sqlite\n"
    "  --batch N           one batch size of the grid: 1, 10, 100, 500\n"
    "  --connections N     one number of connections of the grid: 1, 2, 4\n"
    "  --ddl SQL           changes the product's tables first, not the floor's: what does it "
    "cost?\n"
    "  --repeats N         runs per figure, at least 3 (default 3)\n"
    "  --ended N           executions that the retention case removes (default 1000000)\n"
    "  --seconds S         length of a run (default 1)\n"
    "  --quick             one short run each, small tables: shows that it runs, measures nothing\n"
    "  --dir DIR           for bench.json and the SQLite files (default build)\n"
    "  --help              this text\n"
    "\n"
    "WEFT_TEST_PG is the URL of a PostgreSQL, which should be a durable one (tools/pg start\n"
    "--durable). Without it SQLite alone is measured.\n";

enum flag { CASE = 1, STORE, BATCH, CONNECTIONS, DDL, REPEATS, SECONDS, QUICK, DIR, ENDED, HELP };

static const struct option options_known[] = {
    {"case", required_argument, NULL, CASE},
    {"store", required_argument, NULL, STORE},
    {"batch", required_argument, NULL, BATCH},
    {"connections", required_argument, NULL, CONNECTIONS},
    {"ddl", required_argument, NULL, DDL},
    {"repeats", required_argument, NULL, REPEATS},
    {"seconds", required_argument, NULL, SECONDS},
    {"quick", no_argument, NULL, QUICK},
    {"dir", required_argument, NULL, DIR},
    {"ended", required_argument, NULL, ENDED},
    {"help", no_argument, NULL, HELP},
    {0},
};

static bool read_number(const char *text, double low, double high, double *ret_number)
{
    char *end;
    errno = 0;
    *ret_number = strtod(text, &end);
    if (!errno && end != text && *end == '\0' && *ret_number >= low && *ret_number <= high)
        return true;
    (void)fprintf(stderr, "bench: %s is not a number from %g to %g\n", text, low, high);
    return false;
}

static bool read_word(const char *text, const char *known, const char **ret_word)
{
    size_t size = strlen(text);
    for (const char *at = known; *at;) {
        size_t word = strcspn(at, " ");
        if (word == size && strncmp(at, text, size) == 0) {
            *ret_word = text;
            return true;
        }
        at += word + (at[word] == ' ');
    }
    (void)fprintf(stderr, "bench: %s is none of: %s\n", text, known);
    return false;
}

static bool read_whole(const char *text, uint32_t low, uint32_t high, uint32_t *ret_number)
{
    double number;
    if (!read_number(text, low, high, &number))
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

static bool read_option(int option, const char *text, struct bench_options *options)
{
    switch (option) {
    case CASE:
        return read_word(
            text,
            "lifecycle queues kinds tenants lanes backlog expiry retention snapshot "
            "flow http http-bulk http-single http-waiting http-flow http-hop http-latency",
            &options->only_case);
    case STORE:
        return read_word(text, "pg sqlite", &options->only_store);
    case BATCH:
        return read_whole(text, 1, 1000, &options->only_batch);
    case CONNECTIONS:
        return read_whole(text, 1, BENCH_CONNECTIONS_MAX, &options->only_connections);
    case REPEATS:
        return read_whole(text, 3, BENCH_REPEATS_MAX, &options->repeats);
    case SECONDS:
        return read_number(text, 0.01, 600, &options->seconds);
    case ENDED: {
        uint32_t ended;
        bool good = read_whole(text, 1000, 100000000, &ended);
        options->ended = good ? ended : 0;
        return good;
    }
    case DDL:
        options->ddl = text;
        return true;
    case DIR:
        options->dir = text;
        return true;
    case QUICK:
        options->quick = true;
        options->repeats = 1;
        options->seconds = 0.04;
        options->backlog = 10000;
        options->leases = 2000;
        options->ended = 10000;
        options->wide = 1000;
        options->siblings = 100;
        options->races = 2;
        options->stairs = 20;
        return true;
    default:
        (void)fputs("bench: try --help\n", stderr);
        return false;
    }
}

/* A file in memory never waits for a disk, and the figures of SQLite would be a fiction. */
static bool check_dir(const char *dir)
{
    struct statfs info;
    if (statfs(dir, &info) != 0) {
        perror(dir);
        return false;
    }
    if (info.f_type == TMPFS_MAGIC)
        (void)fprintf(stderr, "bench: warning: %s is in memory: figures for SQLite mean nothing\n",
                      dir);
    return true;
}

static void name_files(struct bench *bench)
{
    const char *dir = bench->options.dir;
    (void)snprintf(bench->sqlite_path, sizeof(bench->sqlite_path), "%s/bench.db", dir);
    (void)snprintf(bench->fresh_path, sizeof(bench->fresh_path), "%s/bench-fresh.db", dir);
    (void)snprintf(bench->sqlite_url, sizeof(bench->sqlite_url), "sqlite:%s", bench->sqlite_path);
    (void)snprintf(bench->fresh_sqlite, sizeof(bench->fresh_sqlite), "sqlite:%s",
                   bench->fresh_path);
}

static bool open_server(struct bench *bench)
{
    const char *only = bench->options.only_store;
    if (!bench->options.pg_url || (only && strcmp(only, "pg") != 0))
        return true;
    if (!bench_server_open(bench->options.pg_url, &bench->server))
        return false;
    bench->product_url = bench_server_schema(bench->server, "bench_product");
    bench->fresh_url = bench_server_schema(bench->server, "bench_fresh");
    return bench->product_url && bench->fresh_url &&
           bench_server_change(bench->server, "bench_product", bench->options.ddl) &&
           bench_server_floor(bench->server, "bench_floor", &bench->floor);
}

static bool run_cases(struct bench *bench)
{
    static bool (*const cases[])(struct bench * bench) = {
        bench_case_lifecycle, bench_case_queues,   bench_case_backlog, bench_case_expiry,
        bench_case_retention, bench_case_snapshot, bench_case_flow,    bench_case_http,
    };
    for (size_t i = 0; i < WEFT_LEN(cases); i++)
        if (!cases[i](bench))
            return false;
    bench_progress("%s", "");
    return true;
}

static bool measure(struct bench *bench)
{
    char json[272];
    name_files(bench);
    (void)snprintf(json, sizeof(json), "%s/bench.json", bench->options.dir);
    if (!check_dir(bench->options.dir) || !open_server(bench) || !run_cases(bench))
        return false;
    if (bench_report_is_empty(bench->report)) {
        (void)fputs("bench: no cell of the grid fits the options\n", stderr);
        return false;
    }
    bool holds = bench_report_checks(bench->report, !bench->options.quick);
    return bench_report_json(bench->report, json) &&
           (holds || bench->options.quick || !bench_is_http(bench));
}

int main(int argc, char **argv)
{
    struct bench bench = {.options = {.dir = "build",
                                      .repeats = 3,
                                      .seconds = 1,
                                      .backlog = 1000000,
                                      .leases = 100000,
                                      .ended = 1000000,
                                      .wide = 10000,
                                      .siblings = 1000,
                                      .races = 100,
                                      .stairs = 200}};
    int option;
    weft_store_owns_process(); /* as the command does: the server is what is measured */
    /* There are no threads yet. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    while ((option = getopt_long(argc, argv, "", options_known, NULL)) != -1) {
        if (option == HELP) {
            (void)fputs(usage, stdout);
            return 0;
        }
        if (!read_option(option, optarg, &bench.options))
            return 2;
    }
    if (optind < argc) {
        (void)fprintf(stderr, "bench: unexpected argument %s. Try --help\n", argv[optind]);
        return 2;
    }
    bench.options.pg_url = getenv("WEFT_TEST_PG"); /* NOLINT(concurrency-mt-unsafe) */
    if (!bench.options.pg_url && bench.options.only_store &&
        strcmp(bench.options.only_store, "pg") == 0) {
        (void)fputs("bench: WEFT_TEST_PG names no PostgreSQL\n", stderr);
        return 2;
    }
    bench.report = bench_report_new();
    bool done = measure(&bench);
    bench_server_close(bench.server);
    bench_remove_file(bench.sqlite_path);
    bench_remove_file(bench.fresh_path);
    bench_report_free(bench.report);
    return done ? 0 : 1;
}
