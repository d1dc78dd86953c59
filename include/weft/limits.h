/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_LIMITS_H
#define WEFT_LIMITS_H

/*
 * Limits: how many executions of a gate may run at a time, and how often they may start. weft.h
 * includes this file and says how its calls answer and fail.
 *
 * A spec may name a gate, for example "customer:42". The part before the first ':' is its class.
 * Settings belong to a class, and then hold for each of its gates, or to one gate, and then replace
 * the settings of its class. An execution that its gate does not admit yet is `held`; the held
 * execution with the highest priority goes first, and then the oldest. A gate without settings
 * admits all.
 */

#include "weft/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft;       /* opaque */
struct weft_arena; /* opaque */

/* At most `limit` starts in any span of `per_ms`; may be up to 2 % fewer. */
struct weft_window {
    int64_t limit; /* 0: none */
    int64_t per_ms;
};

/* `limit` starts in each `per_ms` on average, and up to `burst` at once. */
struct weft_rate {
    int64_t limit; /* 0: none */
    int64_t per_ms;
    int64_t burst; /* 0: as many as limit */
};

struct weft_limits {
    int64_t max_running; /* ready and running ones at a time; 0: no limit */
    struct weft_window window;
    struct weft_rate rate;
};

/* The settings of a class or gate. In answers also what holds now, for a class over all its gates.
 */
struct weft_gate {
    const char *name;
    struct weft_limits limits;
    uint64_t running, ready, held;
    weft_usec next_us; /* when time alone admits the next of a gate; 0: it does not */
};

/* Replaces all settings of a class or gate. Holds at once for executions that wait. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_gate_put(struct weft *weft, const struct weft_gate *gate, struct weft_err *err);
/* Removes them; then the settings of its class hold again for a gate. WEFT_NOT_FOUND: there are
 * none. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_gate_remove(struct weft *weft, const char *name,
                                                          struct weft_err *err);
/* ret_gate->name is `name`. WEFT_NOT_FOUND: it has no settings and no execution that is not over.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_gate_get(struct weft *weft, const char *name,
                                                       struct weft_gate *ret_gate,
                                                       struct weft_err *err);

struct weft_gates {
    const struct weft_gate *item; /* by name */
    size_t count;
    const char *next;         /* cursor of the next page; NULL: this is the last */
    struct weft_arena *arena; /* owned */
};
/* The classes and gates that have settings. prefix NULL: all; limit 0: 50; after NULL: the first.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_gates(struct weft *weft, const char *prefix,
                                                    uint32_t limit, const char *after,
                                                    struct weft_gates *ret_gates,
                                                    struct weft_err *err);
WEFT_EXPORT void weft_gates_free(struct weft_gates *gates);

/* ---- Budgets --------------------------------------------------------------------------------- */

/* So much of a dimension. */
struct weft_amount {
    const char *dimension;
    int64_t amount;
};

/* What happens at the hard limit, beside that nothing more is claimed. */
enum weft_on_hard {
    WEFT_ON_HARD_HOLD,   /* running executions go on, and their reports beyond it are refused */
    WEFT_ON_HARD_CANCEL, /* they are cancelled */
};

enum weft_budget_state {
    WEFT_BUDGET_OK,
    WEFT_BUDGET_SOFT, /* the soft limit of a dimension is reached */
    WEFT_BUDGET_HARD, /* the hard limit is */
};

struct weft_budget_dimension {
    const char *name;
    int64_t hard;           /* 0: none */
    int64_t soft;           /* 0: none */
    int64_t estimate;       /* reserved for an execution whose spec has no `cost` of it */
    int64_t used, reserved; /* in answers: of this period; by what runs, beyond what it used */
};

struct weft_budget {
    const char *name;
    /* Which executions are under it, besides executions that name it; absent parts match all. */
    bool matches; /* false: only executions that name it */
    const char *match_lane, *match_kind, *match_tenant;
    const struct weft_budget_dimension *dimension;
    size_t dimension_count;
    /* What is used is set to 0 at the anchor and each span before and after it; neither span:
     * never. */
    int64_t every_ms;
    int32_t every_months; /* instead of every_ms */
    weft_usec anchor_us;  /* 0: 1970-01-01, midnight UTC */
    enum weft_on_hard on_hard;
    /* In answers: */
    enum weft_budget_state state;
    weft_usec next_reset_us;   /* 0: never */
    weft_usec period_began_us; /* the last reset, or when it was made */
    uint64_t breaches;         /* reports that were refused, and limits reached, in this period */
};

/* Makes a budget, or replaces its settings. What was used and reserved stays. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_budget_put(struct weft *weft, const struct weft_budget *budget, struct weft_err *err);
/* Removes it with its ledger. WEFT_NOT_FOUND: there is none. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_budget_remove(struct weft *weft, const char *name,
                                                            struct weft_err *err);

struct weft_budgets {
    const struct weft_budget *item; /* by name */
    size_t count;
    const char *next;         /* cursor of the next page; NULL: this is the last */
    struct weft_arena *arena; /* owned */
};
/* name not NULL: this one alone, WEFT_NOT_FOUND if there is none. limit 0: 50; after NULL: the
 * first. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_budgets(struct weft *weft, const char *name,
                                                      uint32_t limit, const char *after,
                                                      struct weft_budgets *ret_budgets,
                                                      struct weft_err *err);
WEFT_EXPORT void weft_budgets_free(struct weft_budgets *budgets);

/* Begins a new period now: nothing is used, and what runs keeps what it has reserved. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_budget_reset(struct weft *weft, const char *name,
                                                           struct weft_err *err);

/* What an execution has reserved and used of a dimension in this period, over all its leases. */
struct weft_charge {
    struct weft_id id; /* all bits 0: all leases that ended more than a week ago */
    const char *dimension;
    int64_t reserved, used;
    bool settled; /* none of these leases runs any more */
};
struct weft_ledger {
    const struct weft_charge *item; /* by id */
    size_t count;
    const char *next;         /* cursor of the next page; NULL: this is the last */
    struct weft_arena *arena; /* owned */
};
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_budget_ledger(struct weft *weft, const char *name,
                                                            uint32_t limit, const char *after,
                                                            struct weft_ledger *ret_ledger,
                                                            struct weft_err *err);
WEFT_EXPORT void weft_ledger_free(struct weft_ledger *ledger);

/*
 * What a lease has spent since its claim: totals, so a report that comes twice changes nothing, and
 * one that comes late never subtracts. Dimensions that no budget of the execution has are ignored.
 */
struct weft_usage {
    struct weft_id id;
    int32_t epoch;
    const struct weft_amount *totals;
    size_t total_count; /* at most 16 */
};

/* A dimension of a budget after a report. */
struct weft_budget_now {
    const char *name, *dimension;
    int64_t used, hard; /* hard 0: none */
    enum weft_budget_state state;
};
struct weft_reported {
    struct weft_err err;   /* rc WEFT_BUDGET_EXCEEDED: it would pass a hard limit; not recorded */
    enum weft_fence fence; /* why, when err.rc is WEFT_FENCED */
    const struct weft_budget_now *budget;
    size_t budget_count;
    const struct weft_amount *left; /* of WEFT_BUDGET_EXCEEDED: how much more may be reported */
    size_t left_count;
};
struct weft_reports {
    const struct weft_reported *item; /* one for each item of the call */
    size_t count;
    struct weft_arena *arena; /* owned */
};
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_report_usage(struct weft *weft, const struct weft_usage *item, size_t count,
                  struct weft_reports *ret_answer, struct weft_err *err);
WEFT_EXPORT void weft_reports_free(struct weft_reports *answer);

/* ---- Why is it not running? ------------------------------------------------------------------ */

/* Why an execution does not run, or what it does. */
struct weft_why {
    struct weft_id id;
    enum weft_state state;
    /* lane_paused, lane_full, budget, no_worker, ready (all of a ready one), gate, rate (of a held
     * one), delayed, blocked, suspended, running or ended. */
    const char *why;
    const char *text;         /* one sentence that says what would make it run */
    const char *detail;       /* a JSON object with the same as data */
    struct weft_arena *arena; /* owned */
};
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_why(struct weft *weft, const struct weft_id *id,
                                                  struct weft_why *ret_why, struct weft_err *err);
WEFT_EXPORT void weft_why_free(struct weft_why *why);

#ifdef __cplusplus
}
#endif

#endif
