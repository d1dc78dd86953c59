/* SPDX-License-Identifier: Apache-2.0 */

/* See budget_model.h. */

#include "budget_model.h"

#include <string.h>

void model_init(struct model *model)
{
    static const struct budget all[BUDGETS] = {
        {.name = "everything", .matches = true, .every_ms = 60000},
        {.name = "by-kind", .matches = true, .kind = "a"},
        {.name = "named", .every_ms = 150000},
        {.name = "strict", .matches = true, .tenant = "x", .on_hard = WEFT_ON_HARD_CANCEL},
    };
    *model = (struct model){.made = 0};
    memcpy(model->budget, all, sizeof(all));
}

/* Leases that are settled are forgotten. */
size_t model_count_open(struct model *model)
{
    size_t kept = 0;
    for (size_t i = 0; i < model->leases; i++)
        if (model->lease[i].runs || !model->lease[i].settled)
            model->lease[kept++] = model->lease[i];
    model->leases = kept;
    return kept;
}

/* ---- Budgets --------------------------------------------------------------------------------- */

size_t model_dimensions(const struct budget *budget)
{
    size_t count = 0;
    for (size_t d = 0; d < DIMENSIONS_EACH; d++)
        count += budget->dimension[d].made > 0;
    return count;
}

struct dimension *model_dimension(struct budget *budget, const char *name)
{
    for (size_t d = 0; d < DIMENSIONS_EACH; d++)
        if (budget->dimension[d].made > 0 && strcmp(budget->dimension[d].name, name) == 0)
            return &budget->dimension[d];
    return NULL;
}

enum weft_budget_state model_state(const struct budget *budget)
{
    enum weft_budget_state state = budget->broken ? WEFT_BUDGET_HARD : WEFT_BUDGET_OK;
    for (size_t d = 0; d < DIMENSIONS_EACH; d++)
        if (budget->dimension[d].made > 0 && weft_sums_state(&budget->dimension[d].sums) > state)
            state = weft_sums_state(&budget->dimension[d].sums);
    return state;
}

static void breach(struct budget *budget)
{
    budget->breaches++;
    budget->broken = true;
    budget->cancelling |= budget->on_hard == WEFT_ON_HARD_CANCEL;
}

/* A limit may be reached that was not before. */
static void judge(struct budget *budget)
{
    for (size_t d = 0; d < DIMENSIONS_EACH; d++)
        if (budget->dimension[d].made > 0 && !budget->broken &&
            weft_sums_state(&budget->dimension[d].sums) == WEFT_BUDGET_HARD)
            breach(budget);
}

static weft_usec next_end(const struct budget *budget, weft_usec now_us)
{
    const struct weft_budget span = {.every_ms = budget->every_ms, .anchor_us = MODEL_ANCHOR_US};
    return weft_budget_next_reset(&span, now_us);
}

void model_begin(struct budget *budget, weft_usec now_us)
{
    budget->next_us = next_end(budget, now_us);
    budget->breaches = 0;
    budget->broken = budget->cancelling = false;
    for (size_t d = 0; d < DIMENSIONS_EACH; d++) {
        budget->dimension[d].sums.used = 0;
        budget->dimension[d].lowered = false;
    }
}

/* A claim or report under a budget sees that its period is over. */
static void begin_if_over(struct model *model, struct budget *budget, weft_usec now_us)
{
    if (!budget->there || budget->next_us == 0 || budget->next_us > now_us)
        return;
    model_begin(budget, now_us);
    model->periods++;
}

/* The row of a lease in a dimension; NULL: it is not charged there. */
static struct charge_of *charge_in(struct lease *lease, const struct dimension *dimension)
{
    for (size_t c = 0; c < lease->charges; c++)
        if (lease->charge[c].made == dimension->made)
            return &lease->charge[c];
    return NULL;
}

static bool is_under(const struct lease *lease, const struct budget *budget)
{
    for (size_t c = 0; c < lease->charges; c++)
        if (lease->charge[c].budget == budget)
            return true;
    return false;
}

static void add_charge(struct lease *lease, struct budget *budget,
                       const struct dimension *dimension, int64_t reserved)
{
    lease->charge[lease->charges++] = (struct charge_of){
        .budget = budget, .made = dimension->made, .now = {.reserved = reserved}};
}

/* Nothing is charged in this dimension any more. */
static void drop(struct model *model, struct dimension *dimension)
{
    for (size_t i = 0; i < model->leases; i++) {
        struct lease *lease = &model->lease[i];
        size_t kept = 0;
        for (size_t c = 0; c < lease->charges; c++)
            if (lease->charge[c].made != dimension->made)
                lease->charge[kept++] = lease->charge[c];
        lease->charges = kept;
    }
    *dimension = (struct dimension){.made = 0};
}

void model_remove(struct model *model, struct budget *budget)
{
    for (size_t d = 0; d < DIMENSIONS_EACH && budget->there; d++)
        if (budget->dimension[d].made > 0)
            drop(model, &budget->dimension[d]);
    budget->there = budget->broken = budget->cancelling = false;
    budget->breaches = 0;
    budget->next_us = 0;
}

/* A dimension that a budget gets: all that is charged to the budget is charged in it. */
static void make(struct model *model, struct budget *budget, const char *name)
{
    struct dimension *place = budget->dimension;
    while (place->made > 0)
        place++;
    *place = (struct dimension){.name = name, .made = ++model->made};
    for (size_t i = 0; i < model->leases; i++)
        if (!model->lease[i].settled && is_under(&model->lease[i], budget))
            add_charge(&model->lease[i], budget, place, 0);
}

static void cancel_all(struct model *model);

void model_put(struct model *model, struct budget *budget, const struct weft_budget *put,
               weft_usec now_us, bool errands)
{
    begin_if_over(model, budget, now_us);
    budget->there = true;
    budget->next_us = next_end(budget, now_us);
    for (size_t i = 0; i < put->dimension_count; i++) {
        const struct weft_budget_dimension *wanted = &put->dimension[i];
        if (!model_dimension(budget, wanted->name))
            make(model, budget, strcmp(wanted->name, "cents") == 0 ? "cents" : "tokens");
        struct dimension *own = model_dimension(budget, wanted->name);
        own->sums.hard = wanted->hard;
        own->sums.soft = wanted->soft;
        own->sums.estimate = wanted->estimate;
        own->lowered |= wanted->hard > 0 && own->sums.used > wanted->hard;
    }
    if (put->dimension_count == 1 && model_dimension(budget, "cents"))
        drop(model, model_dimension(budget, "cents"));
    budget->broken = budget->cancelling = false;
    judge(budget);
    if (budget->cancelling && errands)
        cancel_all(model);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

static void settle(struct lease *lease)
{
    for (size_t c = 0; c < lease->charges; c++) {
        struct charge_of *charge = &lease->charge[c];
        for (size_t d = 0; d < DIMENSIONS_EACH; d++)
            if (charge->budget->dimension[d].made == charge->made)
                charge->budget->dimension[d].sums.reserved -= charge->now.reserved;
    }
    lease->charges = 0;
    lease->settled = true;
}

void model_end(struct model *model, struct lease *lease, bool over, bool errands)
{
    lease->runs = false;
    for (size_t i = 0; i < model->items && over; i++)
        if (same_id(&model->item[i].id, &lease->id))
            model->item[i].over = true;
    if (errands)
        settle(lease);
}

/* All that runs under budgets that cancel. */
static void cancel_under(struct model *model, bool errands)
{
    for (size_t b = 0; b < BUDGETS; b++) {
        struct budget *budget = &model->budget[b];
        for (size_t i = 0; i < model->leases && budget->cancelling; i++)
            if (model->lease[i].runs && is_under(&model->lease[i], budget)) {
                model_end(model, &model->lease[i], true, errands);
                model->cancelled++;
            }
        budget->cancelling = false;
    }
}

static void cancel_all(struct model *model)
{
    cancel_under(model, true);
}

void model_scan(struct model *model, weft_usec now_us)
{
    for (size_t b = 0; b < BUDGETS; b++)
        begin_if_over(model, &model->budget[b], now_us);
    cancel_under(model, false);
    for (size_t i = 0; i < model->leases; i++)
        if (!model->lease[i].runs && !model->lease[i].settled)
            settle(&model->lease[i]);
}

static const struct item *item_of(const struct model *model, const struct weft_id *id)
{
    for (size_t i = 0; i < model->items; i++)
        if (same_id(&model->item[i].id, id))
            return &model->item[i];
    return NULL;
}

static bool applies(const struct budget *budget, const struct item *item)
{
    if (!budget->there)
        return false;
    if (!budget->matches)
        return item->named;
    return (!budget->kind || strcmp(budget->kind, item->kind) == 0) &&
           (!budget->tenant || (item->tenant && strcmp(budget->tenant, item->tenant) == 0));
}

const char *model_claim(struct model *model, const struct weft_claimed *claimed, const char *worker)
{
    const struct item *item = item_of(model, &claimed->id);
    struct lease *lease = &model->lease[model->leases++];
    if (!item || item->over)
        return "something was claimed that is not there";
    *lease =
        (struct lease){.id = claimed->id, .epoch = claimed->epoch, .worker = worker, .runs = true};
    model->claimed++;
    for (size_t b = 0; b < BUDGETS; b++) {
        struct budget *budget = &model->budget[b];
        if (!applies(budget, item))
            continue;
        if (model_state(budget) == WEFT_BUDGET_HARD || budget->cancelling)
            return "something was claimed under a budget that is closed";
        for (size_t d = 0; d < DIMENSIONS_EACH; d++) {
            struct dimension *own = &budget->dimension[d];
            if (own->made == 0)
                continue;
            bool says = item->cost >= 0 && strcmp(own->name, "tokens") == 0;
            int64_t cost = says ? item->cost : own->sums.estimate;
            if (!weft_sums_fit(&own->sums, cost))
                return "more was claimed than fits";
            own->sums.reserved += cost;
            add_charge(lease, budget, own, cost);
        }
    }
    return NULL;
}

/* Which budgets refuse the report; false: none does. */
static bool refuse(struct model *model, const struct model_report *report,
                   bool ret_refused[BUDGETS])
{
    bool any = false;
    for (size_t b = 0; b < BUDGETS; b++)
        for (size_t i = 0; i < report->count; i++) {
            const struct weft_amount *total = &report->total[i];
            const struct dimension *own = model_dimension(&model->budget[b], total->dimension);
            const struct charge_of *charge = own ? charge_in(report->lease, own) : NULL;
            ret_refused[b] |= charge && !weft_sums_allow(&own->sums, &charge->now, total->amount);
            any |= ret_refused[b];
        }
    return any;
}

static void record(struct model *model, const struct model_report *report)
{
    for (size_t b = 0; b < BUDGETS; b++)
        for (size_t i = 0; i < report->count; i++) {
            const struct weft_amount *total = &report->total[i];
            struct dimension *own = model_dimension(&model->budget[b], total->dimension);
            struct charge_of *charge = own ? charge_in(report->lease, own) : NULL;
            if (charge)
                weft_sums_report(&own->sums, &charge->now, total->amount);
        }
    model->recorded++;
    if (report->total[0].amount > report->lease->told)
        report->lease->told = report->total[0].amount;
}

enum weft_rc model_report(struct model *model, const struct model_report *report, weft_usec now_us,
                          bool errands)
{
    struct lease *lease = report->lease;
    bool refused[BUDGETS] = {false}, cancels = false;
    for (size_t c = 0; c < lease->charges; c++) /* they are locked before the lease is looked at */
        begin_if_over(model, lease->charge[c].budget, now_us);
    if (!lease->runs)
        return WEFT_FENCED;
    bool any = refuse(model, report, refused);
    if (!any)
        record(model, report);
    for (size_t b = 0; b < BUDGETS; b++) {
        struct budget *budget = &model->budget[b];
        bool before = budget->cancelling;
        if (!is_under(lease, budget))
            continue;
        if (refused[b])
            breach(budget);
        judge(budget);
        cancels |= budget->cancelling && !before;
    }
    if (cancels && errands)
        cancel_all(model);
    model->refused += any;
    return any ? WEFT_BUDGET_EXCEEDED : WEFT_OK;
}
