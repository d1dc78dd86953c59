/* SPDX-License-Identifier: Apache-2.0 */

/* One measurement, and what it is compared with: the same lifecycles without a server. */

#include "cmd/bench/bench_lifecycle.h"
#include "cmd/bench/bench_plan.h"

const char *const weft_bench_call_names[WEFT_BENCH_CALLS] = {
    [WEFT_BENCH_SUBMIT] = "submit",
    [WEFT_BENCH_CLAIM] = "claim",
    [WEFT_BENCH_COMPLETE] = "complete",
};
const char *const weft_bench_mode_names[WEFT_BENCH_MODES] = {
    [WEFT_BENCH_BULK] = "bulk",
    [WEFT_BENCH_SINGLE] = "single",
    [WEFT_BENCH_LATENCY] = "latency",
    [WEFT_BENCH_FLOW] = "flow",
};

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
