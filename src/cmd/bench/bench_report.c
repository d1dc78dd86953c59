/* SPDX-License-Identifier: Apache-2.0 */

/* What the benchmark says at its end: a table for people, one object for programs. */

#include "cmd/bench/bench.h"
#include "cmd/cli/cli_json.h"

#include <inttypes.h>
#include <string.h>

static const char *mode_name(enum weft_bench_mode mode)
{
    static const char *const name[] = {
        [WEFT_BENCH_BULK] = "bulk",
        [WEFT_BENCH_SINGLE] = "single",
        [WEFT_BENCH_LATENCY] = "latency",
        [WEFT_BENCH_FLOW] = "flow",
    };
    return name[mode];
}

/* What kind of store a URL names: the rest may hold a password. */
static const char *store_name(const char *url)
{
    if (!url)
        return NULL;
    return strncmp(url, "sqlite:", 7) == 0 ? "sqlite" : "postgres";
}

static double ms_at(const struct weft_hist *hist, double share)
{
    return (double)weft_hist_at(hist, share) / 1000;
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
        weft_table_cell(table, "%.2f", ms_at(hist, share[i]));
    weft_table_cell(table, "%" PRIu64, hist->count);
}

/* What was done, above the table. */
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
               mode_name(plan->mode), plan->batch, plan->connections, plan->payload_size,
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

void weft_bench_print(const struct weft_cli *cli, const struct weft_bench_plan *plan,
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
    for (int i = 0; i < WEFT_BENCH_CALLS; i++)
        add_row(table,
                latency && i == WEFT_BENCH_CLAIM ? "submit to start" : weft_bench_call_name(i),
                &result->call[i]);
    if (plan->mode == WEFT_BENCH_FLOW)
        add_row(table, "hop", &result->hop);
    weft_table_print(table);
    printf("\n");
    print_rate(plan, result);
    print_sum(result);
}

/* ---- For programs ---------------------------------------------------------------------------- */

/* Three digits after the point are what the clock is good for. */
static void put_number(struct weft_json_writer *json, const char *key, double value)
{
    char text[48];
    int size = snprintf(text, sizeof(text), "%.3f", value);
    weft_json_key(json, key);
    weft_json_put_raw(json, text, (size_t)size);
}

static void put_count(struct weft_json_writer *json, const char *key, uint64_t count)
{
    weft_json_key(json, key);
    weft_json_put_i64(json, (int64_t)count);
}

static void put_hist(struct weft_json_writer *json, const struct weft_hist *hist)
{
    put_number(json, "p50_ms", ms_at(hist, 0.5));
    put_number(json, "p90_ms", ms_at(hist, 0.9));
    put_number(json, "p99_ms", ms_at(hist, 0.99));
    put_number(json, "max_ms", ms_at(hist, 1));
    put_number(json, "mean_ms", (double)weft_hist_mean(hist) / 1000);
}

static void put_call(struct weft_json_writer *json, const char *name, const struct weft_hist *hist)
{
    weft_json_key(json, name);
    weft_json_begin_object(json);
    put_count(json, "count", hist->count);
    put_hist(json, hist);
    weft_json_end_object(json);
}

static void put_embedded(struct weft_json_writer *json, const struct weft_bench_plan *plan,
                         const struct weft_bench_result *result)
{
    weft_json_key(json, "store");
    weft_json_put_text(json, store_name(plan->store));
    weft_json_key(json, "embedded");
    if (!plan->store) {
        weft_json_put_null(json);
        return;
    }
    weft_json_begin_object(json);
    put_number(json, "per_s", result->embedded_per_s);
    put_count(json, "connections", plan->embedded_connections);
    if (result->embedded_per_s > 0) {
        put_number(json, "ratio", result->per_s / result->embedded_per_s);
    } else {
        weft_json_key(json, "ratio");
        weft_json_put_null(json);
    }
    weft_json_end_object(json);
}

void weft_bench_print_json(const struct weft_bench_plan *plan,
                           const struct weft_bench_result *result)
{
    struct weft_json_out out;
    weft_json_out_begin(&out);
    struct weft_json_writer *json = &out.json;
    weft_json_begin_object(json);
    weft_json_key(json, "mode");
    weft_json_put_text(json, mode_name(plan->mode));
    put_number(json, "per_s", result->per_s);
    put_hist(json, &result->all);
    for (int i = 0; i < WEFT_BENCH_CALLS; i++)
        put_call(json, weft_bench_call_name(i), &result->call[i]);
    if (plan->mode == WEFT_BENCH_FLOW) {
        put_call(json, "hop", &result->hop);
        put_count(json, "nodes", plan->nodes);
        put_count(json, "flows_at_once", plan->flows);
    }
    put_count(json, "connections", plan->connections);
    put_count(json, "batch", plan->batch);
    put_count(json, "payload_bytes", plan->payload_size);
    put_number(json, "seconds", result->seconds);
    put_number(json, "client_cpu", result->client_cpu);
    put_count(json, "submitted", result->submitted);
    put_count(json, "completed", result->completed);
    put_count(json, "doubtful", result->doubtful);
    weft_json_key(json, "adds_up");
    weft_json_put_bool(json, weft_bench_adds_up(result));
    put_count(json, "errors", result->errors.total);
    weft_json_key(json, "errors_by_code");
    weft_json_begin_object(json);
    for (size_t i = 0; i < result->errors.codes; i++)
        put_count(json, result->errors.item[i].code, result->errors.item[i].count);
    weft_json_end_object(json);
    put_embedded(json, plan, result);
    weft_json_end_object(json);
    weft_json_out_end(&out);
}
