/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_CONFORMANCE_BUDGETS_H
#define WEFT_TESTS_CONFORMANCE_BUDGETS_H

/* Short forms for cases about budgets. Their only dimension is "tokens" unless a case says more. */

#include "conformance.h"

#include "core/result.h"
#include "engine/limit/settle.h"

/* A list of the names of budgets, for specs. */
#define BUDGETS(...)                                                                               \
    .budgets = (const char *const[]){__VA_ARGS__},                                                 \
    .budget_count = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)
/* What a spec is expected to spend, in tokens. */
#define COST(n) .cost = &(struct weft_amount){"tokens", n}, .cost_count = 1
/* Dimensions of a budget. */
#define DIMENSIONS(...)                                                                            \
    .dimension = (struct weft_budget_dimension[]){__VA_ARGS__},                                    \
    .dimension_count = sizeof((struct weft_budget_dimension[]){__VA_ARGS__}) /                     \
                       sizeof(struct weft_budget_dimension)

/* The other process learns of new settings, as it would from its poll a second later. */
void tell_other(struct fixture *f);
/* Puts through engine a, and tells b. */
void put_budget(struct fixture *f, const struct weft_budget *budget);
/* One that matches all executions. */
void put_tokens(struct fixture *f, const char *name, int64_t hard, int64_t estimate);
/* As engine b reads it; it must be there. */
struct weft_budget budget_now(struct fixture *f, const char *name);
/* A dimension of it, which must be there. */
struct weft_budget_dimension dimension_now(struct fixture *f, const char *name,
                                           const char *dimension);
/* What is used and reserved of a dimension; NULL: tokens. */
void expect_sums(struct fixture *f, const char *name, const char *dimension, int64_t used,
                 int64_t reserved, const char *when);
/* Its state and breaches. */
void expect_state(struct fixture *f, const char *name, enum weft_budget_state state,
                  uint64_t breaches, const char *when);

/* Reports tokens of a lease; the answer lives in f->arena. */
struct weft_usage_result report(struct fixture *f, struct weft_engine *engine,
                                const struct weft_claimed *lease, int64_t total);
struct weft_usage_result report_all(struct fixture *f, struct weft_engine *engine,
                                    const struct weft_claimed *lease,
                                    const struct weft_amount *total, size_t count);
/* The report must be recorded. */
void report_ok(struct fixture *f, const struct weft_claimed *lease, int64_t total);

/* Claims as soon as the queue is not remembered as closed any more; NULL items: nothing came. */
struct weft_claim_result claim_open(struct fixture *f, struct weft_engine *engine, uint32_t max);

/* From here on errands of an engine are lost, as when it dies behind its commit; false: again not.
 */
void lose_errands(struct weft_engine *engine, bool lost);

/* The whole ledger of a budget. */
struct weft_ledger ledger_of(struct fixture *f, const char *name);

#endif
