/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BENCH_BENCH_BODY_H
#define WEFT_CMD_BENCH_BENCH_BODY_H

/* The bodies of requests, the items of answers, and one call after the other: what is done before
 * the clock runs. */

#include "cmd/bench/bench_conn.h"
#include "cmd/bench/bench_plan.h"

/* A JSON document of about that size, other letters for another seed. */
void weft_bench_document(struct weft_buf *out, size_t size, unsigned seed);
void weft_bench_count_error(struct weft_bench_errors *errors, const char *code, size_t size);
/* The body of a submission of plan->batch executions. */
void weft_bench_submission(const struct weft_bench_plan *plan, struct weft_buf *out);
/* The body of a claim. */
void weft_bench_claim_body(const struct weft_bench_plan *plan, uint32_t max, int64_t wait_ms,
                           struct weft_buf *out);

struct weft_bench_items {
    size_t good, bad;
};
/* Counts the items of an answer, 1 for an answer without items; errors of items are counted. */
WEFT_MUST_CHECK enum weft_rc weft_bench_read_items(const struct weft_bench_answer *answer,
                                                   struct weft_bench_errors *errors,
                                                   struct weft_bench_items *ret_items,
                                                   struct weft_err *err);
/* Turns the answer of a claim into the body of its completion; *ret_claimed 0: there is none. */
WEFT_MUST_CHECK enum weft_rc weft_bench_read_claim(const struct weft_bench_answer *answer,
                                                   struct weft_buf *out, size_t *ret_claimed,
                                                   struct weft_err *err);
/* Counts an answer that is an error, by its code. */
void weft_bench_read_refusal(const struct weft_bench_answer *answer,
                             struct weft_bench_errors *errors);

/* A call and its answer; anything but a 2xx is a failure with its code. */
WEFT_MUST_CHECK enum weft_rc weft_bench_call(struct weft_bench_conn *conn, const char *path,
                                             const struct weft_buf *body,
                                             struct weft_bench_answer *ret_answer,
                                             struct weft_err *err);
/* Claims and completes all that earlier runs left in the lane. */
WEFT_MUST_CHECK enum weft_rc weft_bench_sweep(const struct weft_bench_plan *plan,
                                              const struct weft_bench_target *target,
                                              struct weft_err *err);

#endif
