/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_EXECUTOR_CLAIMS_H
#define WEFT_NET_EXECUTOR_CLAIMS_H

/* What a cycle of the executor claims for. Private to net/executor. */

#include "engine/job/claim.h"
#include "net/executor/executor_state.h"

enum { WEFT_EXECUTOR_CLAIMS_MAX = 32 }; /* targets of one cycle */

struct weft_executor_claims {
    struct weft_claim item[WEFT_EXECUTOR_CLAIMS_MAX];
    const char *name[WEFT_EXECUTOR_CLAIMS_MAX]; /* of their targets */
    struct weft_target **target;                /* in the arena */
    size_t count;
};

/* Chooses them, and returns how many. */
size_t weft_claims_choose(struct weft_executor *executor, struct weft_arena *arena,
                          struct weft_executor_claims *ret_claims);
/* They were made: targets for which nothing was found rest. */
void weft_claims_settle(struct weft_executor *executor, const struct weft_executor_claims *claims,
                        const struct weft_claim_result *result);
/* These queues, or all, have work again. */
void weft_claims_woken(struct weft_executor *executor, const int32_t *queue, size_t count);
void weft_claims_all_woken(struct weft_executor *executor);

#endif
