/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BENCH_BENCH_LIFECYCLE_H
#define WEFT_CMD_BENCH_BENCH_LIFECYCLE_H

/*
 * Lifecycles in this process: a crew that submits a batch, claims a batch and completes what it
 * got, through weft.h on one handle. An item that is refused ends the measurement.
 */

#include "cmd/bench/bench_crew.h"
#include "weft/weft.h"

#include <stdatomic.h>

enum { WEFT_BENCH_QUEUES = 10, WEFT_BENCH_RESULT_SIZE = 50 };

/* How the items of a batch are spread: over one queue, or ten kinds, tenants or lanes. */
enum weft_bench_spread {
    WEFT_BENCH_ONE_QUEUE,
    WEFT_BENCH_KINDS,
    WEFT_BENCH_TENANTS,
    WEFT_BENCH_LANES,
};

struct weft_bench_job {
    struct weft *weft;
    uint32_t batch;
    size_t payload_size;
    const char *lane, *kind; /* lane NULL: the default one */
    bool only_kind;          /* claim nothing but this kind */
    enum weft_bench_spread spread;
    bool submit_only;
    int64_t backlog_max;  /* submit nothing while more wait to be claimed; 0: no limit */
    atomic_llong backlog; /* submitted and not claimed */
};

/* The job of the crew is a struct weft_bench_job. */
extern const struct weft_bench_trade weft_bench_lifecycle;

/* Claims and completes until nothing is left to claim. */
WEFT_MUST_CHECK enum weft_rc weft_bench_drain(struct weft_bench_job *job, struct weft_err *err);

#endif
