/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BENCH_BENCH_PLAN_H
#define WEFT_CMD_BENCH_BENCH_PLAN_H

/*
 * weft bench: what to measure, the figures, and the three ways to measure.
 *
 * A lifecycle is the submission, the claim and the completion of one execution. The load on a
 * server comes from one thread that waits on all its connections at once: client and server mostly
 * share a machine, and every cycle of the client is one less for the server. It touches executions
 * of its own kind alone, and leaves none behind.
 */

#include "cmd/bench/hist.h"
#include "cmd/cli/cli.h"

#define WEFT_BENCH_KIND "weft.bench"

/* The three calls of a lifecycle. */
enum weft_bench_call {
    WEFT_BENCH_SUBMIT,
    WEFT_BENCH_CLAIM,
    WEFT_BENCH_COMPLETE,
    WEFT_BENCH_CALLS,
};
extern const char *const weft_bench_call_names[WEFT_BENCH_CALLS];

enum weft_bench_mode {
    WEFT_BENCH_BULK,
    WEFT_BENCH_SINGLE,
    WEFT_BENCH_LATENCY,
    WEFT_BENCH_FLOW,
    WEFT_BENCH_MODES,
};
extern const char *const weft_bench_mode_names[WEFT_BENCH_MODES];

struct weft_bench_plan {
    enum weft_bench_mode mode;
    const char *server, *to_server;
    const char *store; /* to measure in this process as well; or NULL */
    const char *token, *ns;
    const char *lane;
    uint32_t connections;
    uint32_t embedded_connections;
    uint32_t batch;
    uint32_t tries; /* of the mode latency */
    uint32_t nodes; /* of a flow, in the mode flow */
    uint32_t flows; /* under way at once, in the mode flow */
    int64_t run_ms, warmup_ms;
    size_t payload_size;
};

enum { WEFT_BENCH_CODES_MAX = 16, WEFT_BENCH_CODE_MAX = 40 };

/* Errors by their code; further codes are counted together under "other". */
struct weft_bench_errors {
    struct {
        char code[WEFT_BENCH_CODE_MAX];
        uint64_t count;
    } item[WEFT_BENCH_CODES_MAX];
    size_t codes;
    uint64_t total;
};

struct weft_bench_result {
    double per_s;                            /* lifecycles, tries, or flows */
    double seconds;                          /* of the measurement */
    double client_cpu;                       /* cores that the client itself used */
    struct weft_hist call[WEFT_BENCH_CALLS]; /* of requests */
    struct weft_hist all;                    /* of requests; mode latency: from submit to start */
    uint64_t lifecycles;                     /* within the measurement */
    uint64_t flows;                          /* of the mode flow, within the measurement */
    struct weft_hist hop;                    /* from a completion to the start of the next node */
    /* From the first request to the last, warm-up and drain included. */
    uint64_t submitted, completed;
    uint64_t doubtful; /* submitted or not: the answer was lost */
    struct weft_bench_errors errors;
    double embedded_per_s; /* when the plan has a store */
};

/* Through one server, on many connections (bench_load.c). */
WEFT_MUST_CHECK enum weft_rc weft_bench_load(const struct weft_bench_plan *plan,
                                             struct weft_bench_result *ret_result,
                                             struct weft_err *err);
/* From one server to another, one execution at a time (bench_latency.c). */
WEFT_MUST_CHECK enum weft_rc weft_bench_latency(const struct weft_bench_plan *plan,
                                                struct weft_bench_result *ret_result,
                                                struct weft_err *err);
/* Measures by the plan: one of the above, and with a store the same lifecycles in this process. */
WEFT_MUST_CHECK enum weft_rc weft_bench_measure(const struct weft_bench_plan *plan,
                                                struct weft_bench_result *ret_result,
                                                struct weft_err *err);
/* True when every execution that was submitted was completed. */
bool weft_bench_adds_up(const struct weft_bench_result *result);

#endif
