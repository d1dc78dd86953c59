/* SPDX-License-Identifier: Apache-2.0 */

/* weft bench: drives a running server and prints what it did. */

#include "cmd/bench/bench_report.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "cmd/cli/line.h"

#include <stdlib.h>
#include <string.h>

#define LOCAL_SERVER "http://127.0.0.1:7717"

enum { CONNECTIONS_MAX = 4096, EMBEDDED_MAX = 256, TRIES_MAX = 1000000, NODES_MAX = 1000 };
enum { FLOWS_MAX = 10000 };

/* Here --store names what is measured beside the server, not instead of it. */
static const char *server_of(const struct weft_cli *cli)
{
    const char *server = weft_cli_get(cli, "server");
    if (!server)
        server = weft_env("WEFT_SERVER");
    return server ? server : LOCAL_SERVER;
}

static enum weft_exit read_plan(const struct weft_cli *cli, struct weft_bench_plan *plan)
{
    const char *mode = weft_cli_get(cli, "mode");
    while (mode && plan->mode < WEFT_BENCH_MODES &&
           strcmp(mode, weft_bench_mode_names[plan->mode]) != 0)
        plan->mode++;
    if (plan->mode == WEFT_BENCH_MODES)
        return weft_cli_usage(cli, "--mode is '%s': it is bulk, single, latency or flow", mode);
    bool bulk = plan->mode == WEFT_BENCH_BULK, latency = plan->mode == WEFT_BENCH_LATENCY;
    bool flow = plan->mode == WEFT_BENCH_FLOW;
    const char *to = weft_cli_get(cli, "to-server"), *lane = weft_cli_get(cli, "lane");
    const char *token = weft_cli_get(cli, "token");
    plan->server = server_of(cli);
    plan->to_server = to ? to : plan->server;
    plan->store = latency || flow ? NULL : weft_cli_get(cli, "store");
    plan->token = token ? token : weft_env("WEFT_TOKEN");
    plan->ns = weft_cli_namespace(cli);
    plan->lane = lane ? lane : "bench";
    if (!weft_name_valid(plan->lane) || strlen(plan->lane) > 100)
        return weft_cli_usage(cli, "--lane is '%s': that is no name of a lane", plan->lane);
    int64_t normally = bulk ? 8 : 64;
    plan->connections = (uint32_t)weft_cli_i64(cli, "connections", 1, CONNECTIONS_MAX, normally);
    normally = plan->connections < 8 ? plan->connections : 8;
    plan->embedded_connections =
        (uint32_t)weft_cli_i64(cli, "embedded-connections", 1, EMBEDDED_MAX, normally);
    plan->batch = (uint32_t)weft_cli_i64(cli, "batch", 1, WEFT_BATCH_MAX, bulk ? 100 : 1);
    if (!bulk && !flow && plan->batch != 1)
        return weft_cli_usage(cli, "--batch belongs to --mode bulk and flow");
    plan->nodes = (uint32_t)weft_cli_i64(cli, "nodes", 1, NODES_MAX, 10);
    plan->flows = (uint32_t)weft_cli_i64(cli, "flows", 1, FLOWS_MAX, plan->connections);
    if (latency)
        plan->connections = 2;
    plan->tries = (uint32_t)weft_cli_i64(cli, "tries", 1, TRIES_MAX, 1000);
    plan->run_ms = weft_cli_ms(cli, "seconds", 100, 86400000, 10000);
    plan->warmup_ms = weft_cli_ms(cli, "warmup", 0, 3600000, 1000);
    plan->payload_size = (size_t)weft_cli_i64(cli, "payload", 0, WEFT_PAYLOAD_MAX, 200);
    return WEFT_EXIT_OK;
}

static enum weft_exit run_bench(struct weft_cli *cli)
{
    struct weft_bench_plan plan = {0};
    enum weft_exit code = read_plan(cli, &plan);
    if (code)
        return code;
    weft_cli_catch();
    struct weft_bench_result *result = weft_alloc(1, sizeof(*result));
    struct weft_err err = {0};
    enum weft_rc rc = weft_bench_measure(&plan, result, &err);
    if (rc == WEFT_UNAVAILABLE && !err.hint)
        err.hint = "start a server with `weft serve` and name it with --server http://HOST:PORT";
    if (rc)
        code = weft_cli_fail(&err);
    if (rc && weft_cli_interrupted())
        code = WEFT_EXIT_INTERRUPTED;
    if (!rc) {
        if (weft_cli_json(cli))
            weft_bench_print_json(&plan, result);
        else
            weft_bench_print(cli, &plan, result);
        code = weft_bench_adds_up(result) ? WEFT_EXIT_OK : WEFT_EXIT_FAILED;
    }
    free(result);
    return code;
}

static const struct weft_option options[] = {
    {"mode", 0, "MODE", "bulk (the default), single, latency or flow", "bulk single latency flow"},
    {"connections", 'c', "N", "connections at once (8; modes single and flow: 64)", NULL},
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
