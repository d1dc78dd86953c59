/* SPDX-License-Identifier: Apache-2.0 */

/* weft bench: drives a running server and prints what it did. */

#include "base/limits.h"
#include "base/str.h"
#include "cmd/bench/bench.h"
#include "cmd/bench/bench_lifecycle.h"
#include "cmd/cli/output.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- One measurement, and the same lifecycles without a server --------------------------------
 */

static const char *const call_names[WEFT_BENCH_CALLS] = {
    [WEFT_BENCH_SUBMIT] = "submit",     [WEFT_BENCH_CLAIM] = "claim",
    [WEFT_BENCH_COMPLETE] = "complete", [WEFT_BENCH_SUSPEND] = "suspend",
    [WEFT_BENCH_SIGNAL] = "signal",
};
static const char *const mode_names[WEFT_BENCH_MODES] = {
    [WEFT_BENCH_BULK] = "bulk", [WEFT_BENCH_SINGLE] = "single",   [WEFT_BENCH_LATENCY] = "latency",
    [WEFT_BENCH_FLOW] = "flow", [WEFT_BENCH_WAITING] = "waiting",
};

/* How many of the calls a mode makes. */
static int calls_of(const struct weft_bench_plan *plan)
{
    return plan->mode == WEFT_BENCH_WAITING ? WEFT_BENCH_CALLS : WEFT_BENCH_COMPLETE + 1;
}

static enum weft_rc measure_embedded(const struct weft_bench_plan *plan, double *ret_per_s,
                                     struct weft_err *err)
{
    char lane[160];
    (void)snprintf(lane, sizeof(lane), "%.100s-embedded", plan->lane);
    uint32_t threads = plan->embedded_connections;
    struct weft_bench_job job = {.batch = plan->batch,
                                 .payload_size = plan->payload_size,
                                 .lane = lane,
                                 .kind = WEFT_BENCH_KIND,
                                 .only_kind = true,
                                 .backlog_max = (int64_t)plan->batch * threads};
    const struct weft_options options = {
        .ns = plan->ns, .connections = threads, .must_exist = true};
    const struct weft_bench_crew crew = {.trade = &weft_bench_lifecycle,
                                         .job = &job,
                                         .threads = threads,
                                         .run_us = plan->run_ms * WEFT_MS,
                                         .warmup_us = plan->warmup_ms * WEFT_MS};
    struct weft_bench_yield yield;
    enum weft_rc rc = weft_open(plan->store, &options, &job.weft, err);
    if (rc)
        return rc;
    rc = weft_bench_crew_run(&crew, &yield, err);
    if (!rc)
        rc = weft_bench_drain(&job, err);
    if (!rc)
        *ret_per_s = (double)yield.done / yield.seconds;
    weft_close(job.weft);
    return rc;
}

enum weft_rc weft_bench_measure(const struct weft_bench_plan *plan,
                                struct weft_bench_result *ret_result, struct weft_err *err)
{
    if (plan->mode == WEFT_BENCH_LATENCY)
        return weft_bench_latency(plan, ret_result, err);
    enum weft_rc rc = weft_bench_load(plan, ret_result, err);
    if (!rc && plan->store)
        rc = measure_embedded(plan, &ret_result->embedded_per_s, err);
    return rc;
}

/* The kind of store that a URL names: the rest may hold a password. */
static const char *store_name(const char *url)
{
    if (!url)
        return NULL;
    return strncmp(url, "sqlite:", 7) == 0 ? "sqlite" : "postgres";
}

bool weft_bench_adds_up(const struct weft_bench_result *result)
{
    return result->completed >= result->submitted &&
           result->completed <= result->submitted + result->doubtful;
}

/* ---- For people ------------------------------------------------------------------------------ */

static void add_row(struct weft_table *table, const char *name, const struct weft_hist *hist)
{
    weft_table_cell(table, "%s", name);
    static const double share[] = {0.5, 0.9, 0.99, 1};
    for (size_t i = 0; i < WEFT_LEN(share); i++)
        weft_table_cell(table, "%.2f", weft_hist_ms(hist, share[i]));
    weft_table_cell(table, "%" PRIu64, hist->count);
}

/* The plan in words, above the table. */
static void print_plan(const struct weft_bench_plan *plan, const struct weft_bench_result *result)
{
    if (plan->mode == WEFT_BENCH_LATENCY)
        printf("latency: %u tries, submitted at %s, started at %s\n\n", plan->tries, plan->server,
               plan->to_server);
    else if (plan->mode == WEFT_BENCH_FLOW)
        printf(
            "flow: chains of %u nodes, %u at once, up to %u per claim, %u connections, %zu bytes "
            "of payload, %.1f s\n\n",
            plan->nodes, plan->flows, plan->batch, plan->connections, plan->payload_size,
            result->seconds);
    else
        printf("%s: %u per request, %u connections, %zu bytes of payload, %.1f s\n\n",
               mode_names[plan->mode], plan->batch, plan->connections, plan->payload_size,
               result->seconds);
}

static void print_rate(const struct weft_bench_plan *plan, const struct weft_bench_result *result)
{
    if (plan->mode == WEFT_BENCH_LATENCY)
        return;
    bool flow = plan->mode == WEFT_BENCH_FLOW;
    printf("%.0f %s/s through the server; the client used %.0f %% of a core\n", result->per_s,
           flow ? "flows" : "lifecycles", result->client_cpu * 100);
    if (plan->store)
        printf("%.0f lifecycles/s in process, on %u connections to %s: ratio %.2f\n",
               result->embedded_per_s, plan->embedded_connections, store_name(plan->store),
               result->per_s / result->embedded_per_s);
}

static void print_sum(const struct weft_bench_result *result)
{
    if (weft_bench_adds_up(result)) {
        printf("all %" PRIu64 " submitted executions were completed, none is left\n",
               result->submitted);
    } else {
        printf("the numbers do not add up: %" PRIu64 " submitted, %" PRIu64 " completed",
               result->submitted, result->completed);
        if (result->doubtful > 0)
            printf(", %" PRIu64 " in doubt", result->doubtful);
        printf("\n");
    }
    if (result->errors.total == 0)
        return;
    printf("errors:");
    for (size_t i = 0; i < result->errors.codes; i++)
        printf(" %s %" PRIu64, result->errors.item[i].code, result->errors.item[i].count);
    printf("\n");
}

static void print_result(const struct weft_cli *cli, const struct weft_bench_plan *plan,
                         const struct weft_bench_result *result)
{
    bool latency = plan->mode == WEFT_BENCH_LATENCY;
    print_plan(plan, result);
    static const struct weft_column column[] = {
        {.title = "ms"},
        {.title = "p50", .align = WEFT_RIGHT},
        {.title = "p90", .align = WEFT_RIGHT},
        {.title = "p99", .align = WEFT_RIGHT},
        {.title = "max", .align = WEFT_RIGHT},
        {.title = "count", .align = WEFT_RIGHT},
    };
    struct weft_table *table = weft_table_new(cli, column, WEFT_LEN(column));
    for (int i = 0; i < calls_of(plan); i++)
        add_row(table, latency && i == WEFT_BENCH_CLAIM ? "submit to start" : call_names[i],
                &result->call[i]);
    if (plan->mode == WEFT_BENCH_FLOW)
        add_row(table, "hop", &result->hop);
    weft_table_print(table);
    printf("\n");
    print_rate(plan, result);
    print_sum(result);
}

/* ---- For programs ---------------------------------------------------------------------------- */

enum { DIGITS = 3 }; /* after the point: the clock is good for no more */

static void put_hist(struct weft_json_writer *json, const struct weft_hist *hist)
{
    weft_json_add_fixed(json, "p50_ms", weft_hist_ms(hist, 0.5), DIGITS);
    weft_json_add_fixed(json, "p90_ms", weft_hist_ms(hist, 0.9), DIGITS);
    weft_json_add_fixed(json, "p99_ms", weft_hist_ms(hist, 0.99), DIGITS);
    weft_json_add_fixed(json, "max_ms", weft_hist_ms(hist, 1), DIGITS);
    weft_json_add_fixed(json, "mean_ms", (double)weft_hist_mean(hist) / 1000, DIGITS);
}

static void put_call(struct weft_json_writer *json, const char *name, const struct weft_hist *hist)
{
    weft_json_add_object(json, name);
    weft_json_add_i64(json, "count", (int64_t)hist->count);
    put_hist(json, hist);
    weft_json_end_object(json);
}

static void put_embedded(struct weft_json_writer *json, const struct weft_bench_plan *plan,
                         const struct weft_bench_result *result)
{
    weft_json_add_text(json, "store", store_name(plan->store));
    weft_json_key(json, "embedded");
    if (!plan->store) {
        weft_json_put_null(json);
        return;
    }
    weft_json_begin_object(json);
    weft_json_add_fixed(json, "per_s", result->embedded_per_s, DIGITS);
    weft_json_add_i64(json, "connections", (int64_t)plan->embedded_connections);
    double ratio = result->embedded_per_s > 0 ? result->per_s / result->embedded_per_s : NAN;
    weft_json_add_fixed(json, "ratio", ratio, DIGITS);
    weft_json_end_object(json);
}

static void print_json(const struct weft_bench_plan *plan, const struct weft_bench_result *result)
{
    struct weft_json_out out;
    weft_json_out_begin_object(&out);
    struct weft_json_writer *json = &out.json;
    weft_json_add_text(json, "mode", mode_names[plan->mode]);
    weft_json_add_fixed(json, "per_s", result->per_s, DIGITS);
    put_hist(json, &result->all);
    for (int i = 0; i < calls_of(plan); i++)
        put_call(json, call_names[i], &result->call[i]);
    if (plan->mode == WEFT_BENCH_FLOW) {
        put_call(json, "hop", &result->hop);
        weft_json_add_i64(json, "nodes", (int64_t)plan->nodes);
        weft_json_add_i64(json, "flows_at_once", (int64_t)plan->flows);
    }
    weft_json_add_i64(json, "connections", (int64_t)plan->connections);
    weft_json_add_i64(json, "batch", (int64_t)plan->batch);
    weft_json_add_i64(json, "payload_bytes", (int64_t)plan->payload_size);
    weft_json_add_fixed(json, "seconds", result->seconds, DIGITS);
    weft_json_add_fixed(json, "client_cpu", result->client_cpu, DIGITS);
    weft_json_add_i64(json, "submitted", (int64_t)result->submitted);
    weft_json_add_i64(json, "completed", (int64_t)result->completed);
    weft_json_add_i64(json, "doubtful", (int64_t)result->doubtful);
    weft_json_add_bool(json, "adds_up", weft_bench_adds_up(result));
    weft_json_add_i64(json, "errors", (int64_t)result->errors.total);
    weft_json_add_object(json, "errors_by_code");
    for (size_t i = 0; i < result->errors.codes; i++)
        weft_json_add_i64(json, result->errors.item[i].code, (int64_t)result->errors.item[i].count);
    weft_json_end_object(json);
    put_embedded(json, plan, result);
    weft_json_out_end_object(&out);
}

enum { CONNECTIONS_MAX = 4096, EMBEDDED_MAX = 256, TRIES_MAX = 1000000, NODES_MAX = 1000 };
enum { FLOWS_MAX = 10000 };

static void read_plan(const struct weft_cli *cli, struct weft_bench_plan *plan)
{
    const char *mode = weft_cli_get(cli, "mode");
    while (mode && plan->mode < WEFT_BENCH_MODES && strcmp(mode, mode_names[plan->mode]) != 0)
        plan->mode++;
    if (plan->mode == WEFT_BENCH_MODES)
        weft_cli_usage(cli, "--mode is '%s': it is bulk, single, latency, flow or waiting", mode);
    bool bulk = plan->mode == WEFT_BENCH_BULK, latency = plan->mode == WEFT_BENCH_LATENCY;
    bool flow = plan->mode == WEFT_BENCH_FLOW;
    const char *to = weft_cli_get(cli, "to-server"), *lane = weft_cli_get(cli, "lane");
    /* Here --store names what is measured beside the server, not instead of it. */
    const char *server = weft_cli_or_env(cli, "server", "WEFT_SERVER");
    plan->server = server ? server : WEFT_LOCAL_SERVER;
    plan->to_server = to ? to : plan->server;
    bool compared = bulk || plan->mode == WEFT_BENCH_SINGLE;
    plan->store = compared ? weft_cli_get(cli, "store") : NULL;
    plan->token = weft_cli_or_env(cli, "token", "WEFT_TOKEN");
    plan->ns = weft_cli_namespace(cli);
    plan->lane = lane ? lane : "bench";
    if (!weft_name_valid(plan->lane) || strlen(plan->lane) > 100)
        weft_cli_usage(cli, "--lane is '%s': that is no name of a lane", plan->lane);
    int64_t normally = bulk ? 8 : 64;
    plan->connections = (uint32_t)weft_cli_i64(cli, "connections", 1, CONNECTIONS_MAX, normally);
    normally = plan->connections < 8 ? plan->connections : 8;
    plan->embedded_connections =
        (uint32_t)weft_cli_i64(cli, "embedded-connections", 1, EMBEDDED_MAX, normally);
    plan->batch = (uint32_t)weft_cli_i64(cli, "batch", 1, WEFT_BATCH_MAX, bulk ? 100 : 1);
    if (!bulk && !flow && plan->batch != 1)
        weft_cli_usage(cli, "--batch belongs to --mode bulk and flow");
    plan->nodes = (uint32_t)weft_cli_i64(cli, "nodes", 1, NODES_MAX, 10);
    plan->flows = (uint32_t)weft_cli_i64(cli, "flows", 1, FLOWS_MAX, plan->connections);
    if (latency)
        plan->connections = 2;
    plan->tries = (uint32_t)weft_cli_i64(cli, "tries", 1, TRIES_MAX, 1000);
    plan->run_ms = weft_cli_ms(cli, "seconds", 100, 86400000, 10000);
    plan->warmup_ms = weft_cli_ms(cli, "warmup", 0, 3600000, 1000);
    plan->payload_size = (size_t)weft_cli_i64(cli, "payload", 0, WEFT_PAYLOAD_MAX, 200);
}

static enum weft_exit run_bench(struct weft_cli *cli)
{
    struct weft_bench_plan plan = {0};
    struct weft_err err = {0};
    enum weft_exit code;
    read_plan(cli, &plan);
    weft_cli_catch();
    struct weft_bench_result *result = weft_alloc(1, sizeof(*result));
    enum weft_rc rc = weft_bench_measure(&plan, result, &err);
    if (rc == WEFT_UNAVAILABLE && !err.hint)
        err.hint = "start a server with `weft serve` and name it with --server http://HOST:PORT";
    if (rc) {
        code = weft_cli_fail(&err);
        code = weft_cli_interrupted() ? WEFT_EXIT_INTERRUPTED : code;
    } else {
        if (weft_cli_json(cli))
            print_json(&plan, result);
        else
            print_result(cli, &plan, result);
        code = weft_bench_adds_up(result) ? WEFT_EXIT_OK : WEFT_EXIT_FAILED;
    }
    free(result);
    return code;
}

static const struct weft_option options[] = {
    {"mode", 0, "MODE", "bulk (the default), single, latency, flow or waiting",
     "bulk single latency flow waiting"},
    {"connections", 'c', "N", "connections at once (8; modes single, flow and waiting: 64)", NULL},
    {"batch", 'b', "N", "executions in a request of mode bulk (100), or a claim of mode flow (1)",
     NULL},
    {"nodes", 0, "N", "length of the chains of mode flow (10)", NULL},
    {"flows", 0, "N", "flows under way at once in mode flow (as many as connections)", NULL},
    {"seconds", 0, "TIME", "how long to measure (10s)", NULL},
    {"warmup", 0, "TIME", "how long to run before that (1s)", NULL},
    {"payload", 0, "BYTES", "size of each payload (200)", NULL},
    {"lane", 'l', "NAME", "the lane to use (bench)", NULL},
    {"tries", 0, "N", "executions of mode latency (1000)", NULL},
    {"to-server", 0, "URL", "mode latency: where the worker waits (the same server)", NULL},
    {"embedded-connections", 0, "N", "threads of the measurement in process (at most 8)", NULL},
    {.name = NULL},
};

const struct weft_command weft_command_bench = {
    .name = "bench",
    .args = "",
    .summary = "measure a running server",
    .about =
        "Drives the server over HTTP and prints throughput and latencies. A lifecycle is the "
        "submission, the claim and the completion of one execution.\n\n"
        "Mode bulk sends requests of --batch executions on a few connections, mode single one "
        "execution per request on many. Every connection submits, claims and completes in turn. At "
        "the end everything that was submitted is completed, and the numbers are compared: exit "
        "code 1 says that they do not add up.\n\n"
        "Mode latency submits one execution at a time to --server while a claim waits at "
        "--to-server, and takes the time until that claim is answered.\n\n"
        "Mode flow submits flows, chains of --nodes nodes each, and keeps --flows of them under "
        "way: every connection submits a new one for each that has ended, or else claims, waiting, "
        "and completes what it got. A hop is the time from the answer to the completion of a node "
        "to the answer of the claim that got the next node. For the hop of a server that is not "
        "busy, ask for --flows 1 on 2 connections.\n\n"
        "Mode waiting is mode single with executions that wait: each is suspended by its first "
        "worker, resumed by a signal, claimed again and completed. It makes six requests for an "
        "execution, mode single three.\n\n"
        "With --store beside the server the same is done in this process on that store, in a lane "
        "of its own, for comparison. Only executions of the kind weft.bench are touched; do not "
        "run two benchmarks in one lane.",
    .example =
        "weft bench --mode single --seconds 5\n"
        "weft bench --store postgres:///weft --json\n"
        "weft bench --mode flow --flows 1 --connections 2\n"
        "weft bench --mode latency --server http://a:7717 --to-server http://b:7717",
    .option = options,
    .run = run_bench,
};
