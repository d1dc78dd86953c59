/* SPDX-License-Identifier: Apache-2.0 */

/* Budgets, their ledgers, and reports of usage. */

#include "core/budget.h"
#include "wire/rows.h"

static const char *const states[] = {"ok", "soft", "hard"};

/* ---- Budgets --------------------------------------------------------------------------------- */

#define OF struct weft_budget_dimension

/* 0 for a limit is refused: it would read as "nothing may be spent", and stands for no limit. */
#define LIMIT_OR_NULL                                                                              \
    .flags = WEFT_WIRE_OR_NULL | WEFT_WIRE_CHECKED, .min = 1, .max = WEFT_AMOUNT_MOST

static const struct weft_wire_field budget_dimension[] = {
    ROW("hard", I64, hard,
        "When this is used and reserved, nothing more is claimed; when it is used, reports that "
        "add to it are refused; null: no limit",
        LIMIT_OR_NULL),
    ROW("soft", I64, soft, "When this is used, the state of the budget is soft; null: none",
        LIMIT_OR_NULL),
    ROW("estimate", I64, estimate,
        "Reserved for an execution whose spec has no cost of this dimension. Default: 0",
        .max = WEFT_AMOUNT_MOST),
    ROW("used", I64, used, "Reported in this period; ignored in requests, as the next",
        .max = INT64_MAX),
    ROW("reserved", I64, reserved, "By executions that run, beyond what they have used",
        .max = INT64_MAX),
};
MESSAGE_TYPE(budget_dimension, "BudgetDimension",
             "What is counted, for example tokens or micro-dollars, in units of your choice.",
             .answer = true, .request = true);
#undef OF

#define OF struct weft_budget

static const struct weft_wire_field budget_match[] = {
    ROW("lane", TEXT, match_lane, "Only executions of this lane"),
    ROW("kind", TEXT, match_kind, "Only of this kind"),
    ROW("tenant", TEXT, match_tenant, "Only of this tenant"),
};
static const struct weft_wire_field budget_reset[] = {
    ROW("every_ms", I64, every_ms, "How long a period is",
        .flags = WEFT_WIRE_OR_NULL | WEFT_WIRE_CHECKED, .min = WEFT_BUDGET_EVERY_MIN_MS,
        .max = WEFT_DELAY_MAX_MS),
    ROW("every_months", I32, every_months, "The same in months, instead of every_ms",
        .flags = WEFT_WIRE_OR_NULL | WEFT_WIRE_CHECKED, .min = 1, .max = WEFT_BUDGET_MONTHS_MAX),
    ROW("anchor_at", MOMENT, anchor_us,
        "When a period began or will begin; all others follow from it. Default: 1970-01-01, "
        "midnight UTC"),
};
static const char *const on_hards[] = {"hold", "cancel"};

static const struct weft_wire_field budget[] = {
    ROW("budget", TEXT, name, "Its name; in a request the path says it"),
    OBJECT("match", budget_match,
           "Executions that it is for, besides executions that name it; absent parts match all; "
           "null: only executions that name it",
           .flags = WEFT_WIRE_BY_FLAG, COUNT(matches)),
    ROW("dimensions", MAP, dimension, "What it limits, by name", COUNT(dimension_count), REQUIRED,
        .of = &weft_wire_budget_dimension, .max = WEFT_BUDGET_DIMENSIONS_MAX),
    OBJECT("reset", budget_reset, "When what was used is set to 0; null: never"),
    ROW("on_hard", WORD, on_hard,
        "What becomes of running executions at a hard limit: they go on (hold), or are cancelled. "
        "Default: hold",
        WORDS(on_hards)),
    ROW("state", WORD, state, "The limit that is reached; ignored in requests, as the next three",
        WORDS(states)),
    ROW("next_reset_at", MOMENT, next_reset_us, "When the next period begins; null: never"),
    ROW("began_at", MOMENT, period_began_us, "When this period began"),
    ROW("breaches", U64, breaches,
        "Reports that were refused, and hard limits that were reached, in this period"),
};
MESSAGE_TYPE(budget, "Budget", "How much may be spent in a period.", .answer = true,
             .request = true);
#undef OF

#define OF struct weft_charge

static const struct weft_wire_field charge[] = {
    ROW("id", ID, id, "The execution", REQUIRED),
    ROW("dimension", TEXT, dimension, "What of", REQUIRED),
    ROW("reserved", I64, reserved, "What it has reserved beyond what it has used",
        .max = INT64_MAX),
    ROW("used", I64, used, "What it has used in this period, over all its leases",
        .max = INT64_MAX),
    ROW("settled", BOOL, settled, "None of these leases runs any more"),
};
ANSWER(charge, "Charge", "What an execution has reserved and used of a dimension.");
#undef OF

/* ---- Usage ----------------------------------------------------------------------------------- */

#define OF struct weft_usage

static const struct weft_wire_field usage[] = {
    LEASE,
    ROW("totals", AMOUNTS, totals,
        "What the lease has spent since its claim, by dimension; dimensions that none of its "
        "budgets has are ignored",
        COUNT(total_count), REQUIRED, .max = WEFT_BUDGET_DIMENSIONS_MAX),
};
REQUEST(usage, "Usage",
        "What a lease has spent. Totals: a report that comes twice changes nothing, and one that "
        "comes late never subtracts.");
#undef OF

#define OF struct weft_budget_now

static const struct weft_wire_field budget_now[] = {
    ROW("name", TEXT, name, "The budget", REQUIRED),
    ROW("dimension", TEXT, dimension, "One of its dimensions", REQUIRED),
    ROW("used", I64, used, "What is used of it, by all", .max = INT64_MAX),
    ROW("hard", I64, hard, "Its hard limit; null: none", OR_NULL, .min = 1,
        .max = WEFT_AMOUNT_MOST),
    ROW("state", WORD, state, "The limit of the budget that is reached", WORDS(states)),
};
ANSWER(budget_now, "BudgetNow", "A dimension of a budget after a report.");
#undef OF

#define OF struct weft_usage_result

static const struct weft_wire_field reported[] = {
    ROW("budgets", LIST, budget, "Each dimension of each budget that the execution is under",
        COUNT(budget_count), .of = &weft_wire_budget_now),
};
ANSWER(reported, "Reported", "The report is recorded.");
#undef OF
