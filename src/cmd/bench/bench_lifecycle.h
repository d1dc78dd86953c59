/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BENCH_BENCH_LIFECYCLE_H
#define WEFT_CMD_BENCH_BENCH_LIFECYCLE_H

/*
 * A crew: threads that repeat a turn for a measured time.
 *
 * Opening and the warm-up come before the measurement. No thread works while a mark is made. The
 * clock stops when the last thread has finished the turn it was in, so every turn that is counted
 * is whole, and every whole turn is counted.
 */

#include "base/err.h"
#include "weft/weft.h"

#include <stdatomic.h>

struct weft_bench_trade {
    /* Runs in the thread; the worker is closed by close(). */
    enum weft_rc (*open)(void *job, uint32_t index, void **ret_worker, struct weft_err *err);
    enum weft_rc (*turn)(void *worker, size_t *ret_done, struct weft_err *err);
    void (*close)(void *worker);
};

struct weft_bench_crew {
    const struct weft_bench_trade *trade;
    void *job;
    uint32_t threads;
    weft_usec run_us;
    weft_usec warmup_us; /* the warm-up lasts at least two turns of each thread */
    size_t turns;        /* of each thread, instead of run_us and without a warm-up; 0: by time */
    enum weft_rc (*mark)(void *context, bool end, struct weft_err *err); /* or NULL */
    void *context;
};

struct weft_bench_yield {
    uint64_t done; /* what the turns returned, added up */
    double seconds;
};

/* Fails with the error of the first thread that failed. SIGINT ends the turns early. */
WEFT_MUST_CHECK enum weft_rc weft_bench_crew_run(const struct weft_bench_crew *crew,
                                                 struct weft_bench_yield *ret_yield,
                                                 struct weft_err *err);

/* ---- Lifecycles ------------------------------------------------------------------------------ */

/*
 * Lifecycles in this process: a crew that submits a batch, claims a batch and completes what it
 * got, through weft.h on one handle. An item that is refused ends the measurement.
 */

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
