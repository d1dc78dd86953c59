/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_BUDGET_H
#define WEFT_CORE_BUDGET_H

/*
 * The arithmetic of budgets. A claim reserves the cost of what it takes; the worker reports running
 * totals, which turn what is reserved into what is used; the end of the lease gives back the rest.
 * So used + reserved never passes a hard limit by a claim, and used never passes it by a report.
 * Pure.
 */

#include "base/err.h"
#include "weft/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEFT_BUDGET_DIMENSIONS_MAX = 16, /* of a budget, of a cost, of a report */
    WEFT_BUDGETS_NAMED_MAX = 8,      /* of an execution */
    WEFT_BUDGET_EVERY_MIN_MS = 1000,
    WEFT_BUDGET_MONTHS_MAX = 1200,
    WEFT_DIMENSION_NAME_MAX = 64,
};
#define WEFT_AMOUNT_MOST INT64_C(1000000000000000)    /* of a limit, a cost, a total */
#define WEFT_SUM_MOST    INT64_C(4000000000000000000) /* of used and reserved */

/* A dimension of a budget. */
struct weft_sums {
    int64_t hard, soft, estimate; /* hard and soft 0: none */
    int64_t used, reserved;
};

/* A lease in a dimension. */
struct weft_lease_charge {
    int64_t reserved; /* what is left of its reservation */
    int64_t total;    /* the largest that its worker has reported */
};

WEFT_MUST_CHECK enum weft_rc weft_budget_check(const struct weft_budget *budget,
                                               struct weft_err *err);
/* A list of amounts of different dimensions; `field` is blamed. */
WEFT_MUST_CHECK enum weft_rc weft_amounts_check(const struct weft_amount *amount, size_t count,
                                                const char *field, struct weft_err *err);

/* The first end of a period behind now_us; 0: it never ends. Periods begin at the anchor; a month
 * that is too short for the day of the anchor begins at its last day. */
weft_usec weft_budget_next_reset(const struct weft_budget *budget, weft_usec now_us);
/* The beginning of the period that now_us lies in; now_us when periods never end. */
weft_usec weft_budget_period_began(const struct weft_budget *budget, weft_usec now_us);

/* Whether a claim may reserve this much. */
bool weft_sums_fit(const struct weft_sums *sums, int64_t cost);
/* How much more reports may add. */
int64_t weft_sums_left(const struct weft_sums *sums);
/* Whether a report of this total stays within the hard limit. */
bool weft_sums_allow(const struct weft_sums *sums, const struct weft_lease_charge *charge,
                     int64_t total);
/* Records an allowed report. A total that is not larger than the last one changes nothing. */
void weft_sums_report(struct weft_sums *sums, struct weft_lease_charge *charge, int64_t total);

/* The limit that is reached. */
enum weft_budget_state weft_sums_state(const struct weft_sums *sums);
const char *weft_budget_state_word(enum weft_budget_state state);

#endif
