/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_CONFORMANCE_BUDGET_MODEL_H
#define WEFT_TESTS_CONFORMANCE_BUDGET_MODEL_H

/*
 * Budgets as they should be: a model in memory, of one process, that never fails. It shares the
 * arithmetic of one dimension with the engine (core/budget.h, which has tests of its own) and
 * nothing else. See case_budget_walk.c.
 */

#include "budgets.h"

#include "core/budget.h"

#define MODEL_ANCHOR_US (START_US - 7 * WEFT_SECOND) /* of all periods */

enum { BUDGETS = 4, DIMENSIONS_EACH = 2, ITEMS_MAX = 400, LEASES_MAX = 400, CHARGES_MAX = 8 };

/* An execution. */
struct item {
    struct weft_id id;
    const char *kind, *tenant; /* tenant NULL: none */
    bool named;                /* its spec names the budget "named" */
    int64_t cost;              /* in tokens; below 0: as estimated */
    bool over;
};

struct dimension {
    const char *name;
    int32_t made; /* a number that no other dimension has had; 0: it is not there */
    struct weft_sums sums;
    bool lowered; /* its limit was put below what was used, in this period */
};

struct budget {
    const char *name, *kind, *tenant;
    bool matches, there;
    enum weft_on_hard on_hard;
    int64_t every_ms;
    weft_usec next_us; /* 0: never */
    uint64_t breaches;
    bool broken, cancelling;
    struct dimension dimension[DIMENSIONS_EACH];
};

/* A lease in a dimension. */
struct charge_of {
    struct budget *budget;
    int32_t made; /* of the dimension */
    struct weft_lease_charge now;
};

struct lease {
    struct weft_id id;
    int32_t epoch;
    const char *worker;
    bool runs, settled;
    int64_t told; /* the largest total of tokens that was recorded */
    struct charge_of charge[CHARGES_MAX];
    size_t charges;
};

struct model {
    struct budget budget[BUDGETS];
    struct item item[ITEMS_MAX];
    size_t items;
    struct lease lease[LEASES_MAX];
    size_t leases;
    int32_t made;                                       /* dimensions so far */
    int claimed, recorded, refused, cancelled, periods; /* what happened, for the log */
};

void model_init(struct model *model);
/* How many leases are there that may not be forgotten. */
size_t model_count_open(struct model *model);
/* The limit that is reached; how many dimensions there are; the one of that name. */
enum weft_budget_state model_state(const struct budget *budget);
size_t model_dimensions(const struct budget *budget);
struct dimension *model_dimension(struct budget *budget, const char *name);

/* A new period. */
void model_begin(struct budget *budget, weft_usec now_us);
void model_put(struct model *model, struct budget *budget, const struct weft_budget *put,
               weft_usec now_us, bool errands);
void model_remove(struct model *model, struct budget *budget);

/* A lease was given away; the mistake in that, or NULL. */
const char *model_claim(struct model *model, const struct weft_claimed *claimed,
                        const char *worker);
/* What is to be answered to a report. */
struct model_report {
    struct lease *lease;
    const struct weft_amount *total;
    size_t count;
};
enum weft_rc model_report(struct model *model, const struct model_report *report, weft_usec now_us,
                          bool errands);
/* A lease ends; over: its execution does too. */
void model_end(struct model *model, struct lease *lease, bool over, bool errands);
/* What the scanner does. */
void model_scan(struct model *model, weft_usec now_us);

#endif
