/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Claims of queues that are under budgets. The budgets are locked before any row is, in the order
 * of their ids, so no two claims wait for each other in a circle; who else locks budgets waits for
 * nothing that a claim holds. Under the lock the claim looks at the
 * heads of these queues and at their costs, takes as many from the front of each as fit, and
 * reserves what the rows that it got really cost. A row may have come to the front between the look
 * and the statement that takes it: where that breaks a limit, the transaction is run again.
 *
 * A head that does not fit stops its queue, so a costly execution is not overtaken for ever by
 * cheap ones behind it.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "engine/job/claim_state.h"
#include "engine/limit/budget_rules.h"

#include <stdlib.h>
#include <string.h>

/* How long a queue stays closed, unless this process or a notice opens it before: */
#define FULL_US (100 * WEFT_MS) /* its head did not fit */
#define HELD_US (WEFT_SECOND)   /* its budget was locked for longer than a claim waits */

/* ---- Which budgets --------------------------------------------------------------------------- */

void weft_claim_find_budgets(struct weft_engine *engine, struct weft_claiming *all)
{
    struct weft_budget_ref *own;
    size_t most = 0;
    all->refs = 0;
    for (size_t r = 0; r < all->count; r++)
        for (size_t c = 0; c < all->request[r].candidates; c++) {
            struct weft_candidate *candidate = &all->request[r].candidate[c];
            candidate->budgets = weft_budgets_of(engine, candidate->queue, all->plan, &own);
            candidate->budget = own;
            most += candidate->budgets;
        }
    all->ref = most ? weft_new_array(all->plan, struct weft_budget_ref, most) : NULL;
    for (size_t r = 0; r < all->count && most > 0; r++)
        for (size_t c = 0; c < all->request[r].candidates; c++) {
            const struct weft_candidate *candidate = &all->request[r].candidate[c];
            for (size_t b = 0; b < candidate->budgets; b++)
                (void)weft_budget_ref_add(all->ref, &all->refs, candidate->budget[b].ns,
                                          candidate->budget[b].name);
        }
}

enum weft_rc weft_claim_lock_budgets(struct weft_tx *tx, struct weft_claiming *all,
                                     struct weft_err *err)
{
    enum weft_rc rc = weft_budgets_lock(tx, all->ref, all->refs, &all->locked, err);
    all->from = weft_new_array(tx->arena, const struct weft_candidate *, all->items_max + 1);
    all->costs = weft_new_array(tx->arena, bool, all->items_max + 1);
    return rc;
}

/* ---- Costs ----------------------------------------------------------------------------------- */

static int by_id(const void *left, const void *right)
{
    const struct weft_costs_of_out *a = left, *b = right;
    return weft_id_cmp(&a->id, &b->id);
}

/* The costs that specs name, of some executions. */
static enum weft_rc read_costs(struct weft_tx *tx, const struct weft_id *id, size_t count,
                               struct weft_costs *ret_costs, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *ret_costs = (struct weft_costs){0};
    if (count == 0)
        return WEFT_OK;
    struct weft_costs_of_in *in = weft_call_costs_of(&call, tx->arena, count);
    for (size_t i = 0; i < count; i++)
        in->row[i].id = id[i];
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    ret_costs->count = rows.count;
    ret_costs->row = weft_new_array(tx->arena, struct weft_costs_of_out, rows.count);
    memcpy(ret_costs->row, weft_out_costs_of(&rows), rows.count * sizeof(*ret_costs->row));
    qsort(ret_costs->row, rows.count, sizeof(*ret_costs->row), by_id);
    return WEFT_OK;
}

/* What an execution reserves in a dimension: what its spec says, or else the estimate. */
static int64_t cost_of(const struct weft_costs *costs, const struct weft_id *id,
                       const struct weft_locked_dimension *dimension)
{
    size_t low = 0, high = costs->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (weft_id_cmp(&costs->row[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < costs->count && weft_id_cmp(&costs->row[low].id, id) == 0; low++)
        if (strcmp(costs->row[low].dimension, dimension->name) == 0)
            return costs->row[low].amount;
    return dimension->sums.estimate;
}

/* The locked budgets of a candidate, one after the other; NULL: no more. */
static struct weft_locked_budget *budget_of(const struct weft_claiming *all,
                                            const struct weft_candidate *candidate, size_t *at)
{
    struct weft_locked_budget *found = NULL;
    while (*at < candidate->budgets && !found) {
        const struct weft_budget_ref *ref = &candidate->budget[(*at)++];
        found = weft_budgets_find(&all->locked, ref->ns, ref->name);
    }
    return found;
}

/* Whether the cost of an execution fits into all of its budgets. */
static bool fits(const struct weft_claiming *all, const struct weft_candidate *candidate,
                 const struct weft_id *id, const struct weft_costs *costs)
{
    const struct weft_locked_budget *budget;
    for (size_t at = 0; (budget = budget_of(all, candidate, &at)) != NULL;) {
        if (!weft_budget_is_open(budget))
            return false;
        for (size_t d = 0; d < budget->dimensions; d++)
            if (!weft_sums_fit(&budget->dimension[d].sums,
                               cost_of(costs, id, &budget->dimension[d])))
                return false;
    }
    return true;
}

/* Reserves the cost of an execution in all of its budgets; false, and nothing is reserved: it does
 * not fit. */
static bool reserve(struct weft_claiming *all, const struct weft_candidate *candidate,
                    const struct weft_id *id, const struct weft_costs *costs)
{
    struct weft_locked_budget *budget;
    if (!fits(all, candidate, id, costs))
        return false;
    for (size_t at = 0; (budget = budget_of(all, candidate, &at)) != NULL;)
        for (size_t d = 0; d < budget->dimensions; d++)
            budget->dimension[d].sums.reserved += cost_of(costs, id, &budget->dimension[d]);
    return true;
}

/* ---- The plan of a round --------------------------------------------------------------------- */

/* What earlier rounds have reserved, while a plan is made. */
static void keep_reserved(const struct weft_claiming *all, int64_t *reserved, bool back)
{
    for (size_t b = 0; b < all->locked.count; b++)
        for (size_t d = 0; d < all->locked.budget[b].dimensions; d++, reserved++) {
            int64_t *now = &all->locked.budget[b].dimension[d].sums.reserved;
            if (back)
                *now = *reserved;
            else
                *reserved = *now;
        }
}

enum weft_rc weft_claim_read_heads(struct weft_tx *tx, struct weft_claiming *all,
                                   const struct weft_rows *heads, struct weft_err *err)
{
    const struct weft_charge_heads_out *row = weft_out_charge_heads(heads);
    struct weft_id *id = weft_new_array(tx->arena, struct weft_id, heads->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < heads->count; i++)
        if (row[i].costs)
            id[count++] = row[i].id;
    return read_costs(tx, id, count, &all->head_costs, err);
}

bool weft_claim_head_fits(struct weft_claiming *all, struct weft_candidate *candidate,
                          const struct weft_id *id)
{
    if (candidate->budgets == 0)
        return true;
    if (!candidate->shut)
        candidate->shut = !reserve(all, candidate, id, &all->head_costs);
    return !candidate->shut;
}

bool weft_claim_would_fit(const struct weft_claiming *all, const struct weft_candidate *candidate,
                          const struct weft_id *id)
{
    return fits(all, candidate, id, &all->head_costs);
}

int64_t *weft_claim_plan_begins(struct weft_tx *tx, const struct weft_claiming *all)
{
    size_t dimensions = 0;
    for (size_t b = 0; b < all->locked.count; b++)
        dimensions += all->locked.budget[b].dimensions;
    int64_t *reserved = weft_new_array(tx->arena, int64_t, dimensions + 1);
    keep_reserved(all, reserved, false);
    return reserved;
}

void weft_claim_plan_ends(const struct weft_claiming *all, int64_t *reserved)
{
    keep_reserved(all, reserved, true);
}

/* ---- The rows that were taken ---------------------------------------------------------------- */

enum weft_rc weft_claim_reserve(struct weft_tx *tx, struct weft_claiming *all, size_t first,
                                struct weft_err *err)
{
    struct weft_costs costs;
    struct weft_id *id = weft_new_array(tx->arena, struct weft_id, all->items - first + 1);
    size_t count = 0;
    for (size_t i = first; i < all->items; i++)
        if (all->costs[i] && all->from[i]->budgets > 0)
            id[count++] = all->item[i].id;
    enum weft_rc rc = read_costs(tx, id, count, &costs, err);
    for (size_t i = first; i < all->items && !rc; i++) {
        if (reserve(all, all->from[i], &all->item[i].id, &costs))
            continue;
        (void)weft_fail(err, WEFT_BUSY, "another execution came to the front of its queue");
        rc = weft_cause(err, WEFT_BUSY, WEFT_CAUSE_CONTENTION);
    }
    return rc;
}

/* The rows of an execution in the ledger. Its reservations were checked when its row was taken. */
static size_t put_ledger(const struct weft_claiming *all, size_t item,
                         const struct weft_costs *costs, struct weft_ledger_put_item *to)
{
    struct weft_locked_budget *budget;
    size_t rows = 0;
    for (size_t at = 0; (budget = budget_of(all, all->from[item], &at)) != NULL;)
        for (size_t d = 0; d < budget->dimensions; d++)
            to[rows++] = (struct weft_ledger_put_item){
                .id = all->item[item].id,
                .epoch = all->item[item].epoch,
                .dimension = budget->dimension[d].id,
                .period = budget->row->period,
                .reserved = cost_of(costs, &all->item[item].id, &budget->dimension[d])};
    return rows;
}

enum weft_rc weft_claim_charge_budgets(struct weft_tx *tx, struct weft_claiming *all,
                                       struct weft_err *err)
{
    enum { LEDGER, WRITES, CALLS = WRITES + WEFT_BUDGET_WRITES };
    struct weft_call call[CALLS];
    struct weft_costs costs;
    struct weft_id *id = weft_new_array(tx->arena, struct weft_id, all->items + 1);
    size_t count = 0, most = 0, rows = 0;
    for (size_t i = 0; i < all->items; i++) {
        struct weft_locked_budget *budget;
        for (size_t at = 0; (budget = budget_of(all, all->from[i], &at)) != NULL;)
            most += budget->dimensions;
        if (all->costs[i])
            id[count++] = all->item[i].id;
    }
    if (most == 0)
        return WEFT_OK;
    enum weft_rc rc = read_costs(tx, id, count, &costs, err);
    struct weft_ledger_put_in *in = weft_call_ledger_put(&call[LEDGER], tx->arena, most);
    in->now = tx->now_us;
    for (size_t i = 0; i < all->items; i++)
        rows += put_ledger(all, i, &costs, &in->row[rows]);
    size_t writes = weft_budgets_write(&all->locked, tx->arena, &call[WRITES]);
    if (rc)
        return rc;
    /* Without limits of lanes to be charged, nothing follows: the locks last one round trip less.
     */
    return all->limits ? weft_tx_run(tx, call, WRITES + writes, NULL, err)
                       : weft_tx_last(tx, call, WRITES + writes, NULL, err);
}

void weft_claim_keep_closed(struct weft_engine *engine, const struct weft_claiming *all)
{
    if (all->locked.begun)
        weft_budgets_opened(engine, NULL, 0);
    for (size_t r = 0; r < all->count && all->refs > 0; r++)
        for (size_t c = 0; c < all->request[r].candidates; c++)
            if (all->request[r].candidate[c].shut)
                weft_budget_queue_closed(engine, all->request[r].candidate[c].queue->id, FULL_US);
}

void weft_claim_leave_budgets(struct weft_engine *engine, const struct weft_claiming *all)
{
    for (size_t r = 0; r < all->count; r++)
        for (size_t c = 0; c < all->request[r].candidates; c++)
            if (all->request[r].candidate[c].budgets > 0)
                weft_budget_queue_closed(engine, all->request[r].candidate[c].queue->id, HELD_US);
}
