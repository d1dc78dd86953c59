/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BENCH_BENCH_SWEEP_H
#define WEFT_CMD_BENCH_BENCH_SWEEP_H

/* One call after the other: what is done before the clock runs. */

#include "cmd/bench/bench_conn.h"
#include "cmd/bench/bench_plan.h"

struct weft_bench_ask {
    const struct weft_bench_target *target;
    const char *path;
    struct weft_buf *body;
    struct weft_buf *request; /* scratch; holds what is sent */
};
/* A call and its answer; anything but a 2xx is a failure with its code. */
WEFT_MUST_CHECK enum weft_rc weft_bench_ask(struct weft_bench_conn *conn,
                                            const struct weft_bench_ask *ask,
                                            struct weft_bench_answer *ret_answer,
                                            struct weft_err *err);
/* Claims and completes all that earlier runs left in the lane. */
WEFT_MUST_CHECK enum weft_rc weft_bench_sweep(const struct weft_bench_plan *plan,
                                              const struct weft_bench_target *target,
                                              struct weft_err *err);

#endif
