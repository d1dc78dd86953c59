/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_RACE_BUDGETS_H
#define WEFT_TESTS_RACE_BUDGETS_H

/* What two threads do about a budget, for budget.c and budget_report.c. */

#include "race.h"

#include "engine/scan/pass.h"
#include "weft/weft.h"

enum { HARD = 100, ESTIMATE = 30, WORK = 6, FIT = HARD / ESTIMATE, MINUTE_MS = 60000 };

/* What a thread does. */
struct deed {
    enum { CLAIM, REPORT, COMPLETE, SETTLE, RESET, SCAN, PUT, REMOVE, CANCEL } what;
    struct weft_engine *engine;
    const char *name; /* of the budget and the lane */
    struct weft_claimed lease;
    int64_t amount; /* REPORT: the total, PUT: the hard limit */
    enum weft_rc rc;
    struct weft_err err;
    size_t count; /* claimed, or settled */
    struct weft_claimed item[WORK];
    struct weft_pass_report pass;
};
struct deed deed_of(struct weft_engine *engine, const char *name);
void deed_do(void *context);

/* Where the slow one is stopped; the names are those of the budgets, too. */
struct where {
    const char *name;
    enum weft_fault_point point;
    enum weft_stmt stmt;
};
#define AFTER(id)  WEFT_FAULT_AFTER_RUN, WEFT_STMT_##id
#define BEFORE(id) WEFT_FAULT_BEFORE_RUN, WEFT_STMT_##id
#define COMMIT(id) WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_##id
void deeds_meet(struct race *race, struct deed *slow, struct deed *fast, const struct where *where);

/* Both processes learn of all settings. */
void budgets_poll(struct race *race);
/* From here on errands behind commits are lost; false: they are not any more. */
void budgets_lose_errands(struct race *race, bool yes);
/* A budget of the lane of that name. */
enum weft_rc budget_put(struct weft_engine *engine, const char *name, int64_t hard, bool cancels,
                        struct weft_err *err);
/* The same, with WORK executions in the lane; both processes know it. */
void budget_make(struct race *race, const char *name, bool cancels);
/* Two leases of the lane. */
void budget_start_two(struct race *race, const char *name, struct weft_claimed lease[2]);
struct weft_budget budget_now(struct race *race, const char *name);
/* What is used and reserved, and that the ledger adds up to it. */
void budget_expect(struct race *race, const char *name, int64_t used, int64_t reserved);

#endif
