/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BENCH_BENCH_CHAINS_H
#define WEFT_CMD_BENCH_BENCH_CHAINS_H

/* The chains of the mode flow. */

#include "cmd/bench/bench_conn.h"
#include "cmd/bench/bench_plan.h"

struct weft_bench_member {
    uint32_t chain; /* its number: 0 .. plan->flows - 1 */
    uint32_t node;  /* its place: 0 .. plan->nodes - 1 */
};

struct weft_bench_chains; /* opaque */
struct weft_bench_chains *weft_bench_chains_new(const struct weft_bench_plan *plan,
                                                const struct weft_bench_target *target);
void weft_bench_chains_free(struct weft_bench_chains *chains); /* NULL is fine */
bool weft_bench_chain_idle(const struct weft_bench_chains *chains);
/* Takes a chain that is idle, and there must be one. */
uint32_t weft_bench_chain_begin(struct weft_bench_chains *chains);
const struct weft_buf *weft_bench_chain_request(const struct weft_bench_chains *chains,
                                                uint32_t number);
/* Reads which members a claim gave; ret_member has room for as many as were asked for. */
WEFT_MUST_CHECK enum weft_rc
weft_bench_chains_claimed(struct weft_bench_chains *chains, const struct weft_bench_answer *answer,
                          weft_usec now_us, struct weft_bench_member *ret_member,
                          struct weft_bench_result *result, struct weft_err *err);
/* Their completion is being sent; has been answered. The second gives how many chains ended. */
void weft_bench_chains_completing(struct weft_bench_chains *chains,
                                  const struct weft_bench_member *member, size_t count);
size_t weft_bench_chains_completed(struct weft_bench_chains *chains,
                                   const struct weft_bench_member *member, size_t count,
                                   weft_usec now_us);

#endif
