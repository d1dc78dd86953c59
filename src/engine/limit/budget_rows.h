/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_LIMIT_BUDGET_ROWS_H
#define WEFT_ENGINE_LIMIT_BUDGET_ROWS_H

/*
 * Budgets in a transaction that has locked them: their sums are read behind the lock, changed in
 * memory, and written once, by the calls of weft_budgets_write().
 */

#include "core/budget.h"
#include "store/store.h"

struct weft_tx;

/* A budget by name. */
struct weft_budget_ref {
    int32_t ns;
    const char *name; /* in an arena of the caller */
};

struct weft_locked_dimension {
    int32_t id;
    const char *name;
    struct weft_sums sums;
    struct weft_sums before; /* as they were read */
};

struct weft_locked_budget {
    const struct weft_budget_out *row;
    struct weft_locked_dimension *dimension; /* by name */
    size_t dimensions;
    int64_t breaches;
    weft_usec soft_us, hard_us; /* 0: not reached in this period */
    bool cancelling;
};

struct weft_locked_budgets {
    struct weft_locked_budget *budget; /* by id */
    size_t count;
    bool begun; /* this transaction began the period of one: it may have opened */
};

/* Adds a budget to a list that has room for it, unless it is there. Returns its place. */
size_t weft_budget_ref_add(struct weft_budget_ref *ref, size_t *count, int32_t ns,
                           const char *name);

/* Locks the budgets, each named once, in the order of ids, and begins the next period of a
 * budget whose period is over. Names without a budget are left out. */
WEFT_MUST_CHECK enum weft_rc weft_budgets_lock(struct weft_tx *tx,
                                               const struct weft_budget_ref *ref, size_t count,
                                               struct weft_locked_budgets *ret_locked,
                                               struct weft_err *err);
/* Groups rows that have the columns of budgets with rows of dimensions_of. */
struct weft_locked_budgets weft_budgets_group(const struct weft_rows *budgets,
                                              const struct weft_rows *dimensions,
                                              struct weft_arena *arena);

/* NULL: there is none. */
struct weft_locked_budget *weft_budgets_find(const struct weft_locked_budgets *locked, int32_t ns,
                                             const char *name);
struct weft_locked_dimension *weft_dimension_find(const struct weft_locked_budget *budget,
                                                  const char *name);

/* Whether claims may take anything under it. */
bool weft_budget_is_open(const struct weft_locked_budget *budget);
enum weft_budget_state weft_budget_state_of(const struct weft_locked_budget *budget);

/* A hard limit is broken: a report was refused, or reached it. */
void weft_budget_breach(struct weft_locked_budget *budget, weft_usec now_us);
/* Records limits that are reached now and were not before. */
void weft_budget_judge(struct weft_locked_budget *budget, weft_usec now_us);

/* The calls that write what has changed; returns how many, perhaps none. */
enum { WEFT_BUDGET_WRITES = 2 };
size_t weft_budgets_write(const struct weft_locked_budgets *locked, struct weft_arena *arena,
                          struct weft_call ret_call[WEFT_BUDGET_WRITES]);

/* Begins a new period of locked budgets: at the end of the last one, if that is over, or else now.
 */
WEFT_MUST_CHECK enum weft_rc weft_budgets_begin(struct weft_tx *tx,
                                                const struct weft_locked_budgets *locked,
                                                struct weft_err *err);
/* The same for budgets whose period is over. locked->begun: a period was begun, so rows that were
 * read before are old. */
WEFT_MUST_CHECK enum weft_rc weft_budgets_begin_over(struct weft_tx *tx,
                                                     struct weft_locked_budgets *locked,
                                                     struct weft_err *err);

#endif
