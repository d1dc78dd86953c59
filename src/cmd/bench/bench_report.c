/* SPDX-License-Identifier: Apache-2.0 */

/* What the benchmark says at its end: a table for people, one object for programs. */

#include "cmd/bench/bench_report.h"
#include "cmd/cli/cli_json.h"
#include "cmd/cli/table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What kind of store a URL names: the rest may hold a password. */
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
               weft_bench_mode_names[plan->mode], plan->batch, plan->connections,
               plan->payload_size, result->seconds);
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
                latency && i == WEFT_BENCH_CLAIM ? "submit to start" : weft_bench_call_names[i],
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
    weft_json_key(json, name);
    weft_json_begin_object(json);
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

void weft_bench_print_json(const struct weft_bench_plan *plan,
                           const struct weft_bench_result *result)
{
    struct weft_json_out out;
    weft_json_out_begin(&out);
    struct weft_json_writer *json = &out.json;
    weft_json_begin_object(json);
    weft_json_add_text(json, "mode", weft_bench_mode_names[plan->mode]);
    weft_json_add_fixed(json, "per_s", result->per_s, DIGITS);
    put_hist(json, &result->all);
    for (int i = 0; i < WEFT_BENCH_CALLS; i++)
        put_call(json, weft_bench_call_names[i], &result->call[i]);
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
    weft_json_key(json, "errors_by_code");
    weft_json_begin_object(json);
    for (size_t i = 0; i < result->errors.codes; i++)
        weft_json_add_i64(json, result->errors.item[i].code, (int64_t)result->errors.item[i].count);
    weft_json_end_object(json);
    put_embedded(json, plan, result);
    weft_json_end_object(json);
    weft_json_out_end(&out);
}
