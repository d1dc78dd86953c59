/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_LIMIT_SETTLE_H
#define WEFT_ENGINE_LIMIT_SETTLE_H

/*
 * What budgets leave to do after a commit, for leases that have ended: what they reserved and did
 * not use goes back; and for budgets whose hard limit cancels: what runs under them is cancelled.
 */

#include "engine/tx/batch.h"

struct weft_engine;

struct weft_lease_end {
    struct weft_lease lease;
    int32_t queue; /* of its execution; 0: not known */
};

/* Settles the listed leases that have ended; a lease may be listed twice. ret_settled (or NULL):
 * how many rows of the ledger were closed. */
WEFT_MUST_CHECK enum weft_rc weft_engine_settle(struct weft_engine *engine,
                                                const struct weft_lease_end *ended, size_t count,
                                                uint64_t *ret_settled, struct weft_err *err);

struct weft_budget_cancelled {
    uint64_t cancelled;
    bool more; /* there was more to do than one call does */
};
/* Cancels executions that run under budgets whose hard limit was reached, at most `most`. */
WEFT_MUST_CHECK enum weft_rc weft_engine_budget_cancel(struct weft_engine *engine, uint32_t most,
                                                       struct weft_budget_cancelled *ret_cancelled,
                                                       struct weft_err *err);

#endif
