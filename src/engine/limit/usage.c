/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reports of usage. A report names totals, and the budgets get the difference to what the lease has
 * reported before: one that comes twice changes nothing, one that comes late subtracts nothing.
 *
 * It locks budgets and no living row. Behind the lock it reads which of the leases run. A lease
 * that ends after this look has not been settled, because that needs the lock too; so the report
 * counts as if it had come just before the end. A lease that has ended by then is fenced.
 *
 * Lock order: budgets by id, and nothing after them.
 */

#include "engine/limit/usage.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "engine/engine_state.h"
#include "engine/job/lease_call.h"
#include "engine/limit/budget_rows.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static_assert(offsetof(struct weft_usage, epoch) == offsetof(struct weft_lease, epoch),
              "id, then epoch");

/* A lease in one dimension. */
struct charge {
    struct weft_lease_charge now;
    struct weft_locked_budget *budget;
    struct weft_locked_dimension *dimension;
    bool changed;
};

/* The whole call; lease comes first, because the body of a lease operation gets it. */
struct reporting {
    struct weft_lease_call lease;
    struct weft_usage_result *answer;
    bool *held;      /* of all items: it held its lease in its transaction */
    bool cancelling; /* a hard limit that cancels was reached, if the try was committed, */
    bool begun;      /* and a period began */
};

/* One item in its transaction, with the dimensions of all its budgets. */
struct report {
    const struct weft_usage *given;
    struct weft_usage_result *answer;
    struct charge *charge;
    size_t charges;
};

static enum weft_rc check_usage(const void *lease, struct weft_err *err)
{
    const struct weft_usage *item = lease;
    if (item->total_count == 0)
        return weft_invalid(err, "totals", "totals is empty: give what was used, by dimension");
    return weft_amounts_check(item->totals, item->total_count, "totals", err);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* The budget of a dimension by its id; NULL: it was dropped. */
static struct weft_locked_budget *budget_of(const struct weft_locked_budgets *locked,
                                            int32_t dimension,
                                            struct weft_locked_dimension **ret_dimension)
{
    for (size_t b = 0; b < locked->count; b++)
        for (size_t d = 0; d < locked->budget[b].dimensions; d++)
            if (locked->budget[b].dimension[d].id == dimension) {
                *ret_dimension = &locked->budget[b].dimension[d];
                return &locked->budget[b];
            }
    return NULL;
}

/* In the order of budgets and of the names of their dimensions. */
static int by_place(const void *left, const void *right)
{
    const struct charge *a = left, *b = right;
    if (a->budget != b->budget)
        return a->budget < b->budget ? -1 : 1;
    return (a->dimension > b->dimension) - (a->dimension < b->dimension);
}

/* Gives the report of a lease its rows of charges_of: one for each dimension of its budgets. */
static void take_charges(struct report *report, const struct weft_charges_of_out *row, size_t rows,
                         const struct weft_locked_budgets *locked, struct weft_arena *arena)
{
    report->charge = weft_new_array(arena, struct charge, rows + 1);
    for (size_t i = 0; i < rows; i++) {
        struct weft_locked_dimension *own = NULL;
        struct weft_locked_budget *budget = budget_of(locked, row[i].dimension.value, &own);
        if (budget)
            report->charge[report->charges++] = (struct charge){
                .now = {.reserved = row[i].reserved.value, .total = row[i].total.value},
                .budget = budget,
                .dimension = own};
    }
    qsort(report->charge, report->charges, sizeof(*report->charge), by_place);
}

enum { LOCK, DIMENSIONS, CHARGES, CALLS };

/* Locks the budgets of the leases of the chunk and reads what they hold, in the present period. */
static enum weft_rc lock_charged(struct weft_tx *tx, struct reporting *call,
                                 struct weft_locked_budgets *ret_locked,
                                 struct weft_rows ret_rows[CALLS], struct weft_err *err)
{
    const struct weft_lease_call *lease = &call->lease;
    size_t count = lease->chunk.count;
    struct weft_call ask[CALLS];
    struct weft_budget_lock_charged_in *lock =
        weft_call_budget_lock_charged(&ask[LOCK], tx->arena, count);
    struct weft_dimensions_charged_in *dimensions =
        weft_call_dimensions_charged(&ask[DIMENSIONS], tx->arena, count);
    struct weft_charges_of_in *charges = weft_call_charges_of(&ask[CHARGES], tx->arena, count);
    for (size_t k = 0; k < count; k++) {
        const struct weft_usage *given = weft_lease_item(lease, k);
        lock->row[k].id = dimensions->row[k].id = charges->row[k].id = given->id;
        lock->row[k].epoch = dimensions->row[k].epoch = charges->row[k].epoch = given->epoch;
    }
    enum weft_rc rc = weft_tx_run(tx, ask, CALLS, ret_rows, err);
    if (rc)
        return rc;
    *ret_locked = weft_budgets_group(&ret_rows[LOCK], &ret_rows[DIMENSIONS], tx->arena);
    rc = weft_budgets_begin_over(tx, ret_locked, err);
    if (rc || !ret_locked->begun)
        return rc;
    call->begun = true;
    rc = weft_tx_run(tx, ask, CALLS, ret_rows, err); /* as they are now */
    if (!rc)
        *ret_locked = weft_budgets_group(&ret_rows[LOCK], &ret_rows[DIMENSIONS], tx->arena);
    return rc;
}

/* *ret_report has one for each item of the chunk. */
static enum weft_rc read_reports(struct weft_tx *tx, struct reporting *call,
                                 struct weft_locked_budgets *ret_locked, struct report **ret_report,
                                 struct weft_err *err)
{
    struct weft_lease_call *lease = &call->lease;
    struct weft_rows rows[CALLS] = {0};
    enum weft_rc rc = lock_charged(tx, call, ret_locked, rows, err);
    if (rc)
        return rc;
    struct report *report = weft_new_array(tx->arena, struct report, lease->chunk.count + 1);
    lease->found = weft_new_array(tx->arena, bool, lease->chunk.count + 1);
    for (size_t k = 0; k < lease->chunk.count; k++) {
        report[k].given = weft_lease_item(lease, k);
        report[k].answer = &call->answer[lease->chunk.item[k]];
    }
    const struct weft_charges_of_out *row = weft_out_charges_of(&rows[CHARGES]);
    for (size_t i = 0, next; i < rows[CHARGES].count; i = next) {
        size_t k = weft_chunk_find(&lease->chunk, &lease->ids, &row[i].id);
        next = i + 1;
        while (next < rows[CHARGES].count && weft_id_cmp(&row[next].id, &row[i].id) == 0)
            next++;
        lease->found[k] = row[i].running;
        if (row[i].running && row[i].dimension.set)
            take_charges(&report[k], &row[i], next - i, ret_locked, tx->arena);
    }
    for (size_t k = 0; k < lease->chunk.count; k++)
        call->held[lease->chunk.item[k]] = lease->found[k];
    *ret_report = report;
    return WEFT_OK;
}

/* ---- One report ------------------------------------------------------------------------------ */

/* What the report says of a dimension; -1: nothing. */
static int64_t total_of(const struct weft_usage *given, const char *dimension)
{
    for (size_t i = 0; i < given->total_count; i++)
        if (strcmp(given->totals[i].dimension, dimension) == 0)
            return given->totals[i].amount;
    return -1;
}

/* How much more may be reported in the dimensions that the report names. */
static void tell_left(const struct report *report, struct weft_arena *arena)
{
    struct weft_amount *left =
        weft_new_array(arena, struct weft_amount, report->given->total_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < report->given->total_count; i++) {
        int64_t least = INT64_MAX;
        const char *name = report->given->totals[i].dimension;
        for (size_t c = 0; c < report->charges; c++) {
            const struct weft_locked_dimension *own = report->charge[c].dimension;
            if (own->sums.hard > 0 && strcmp(own->name, name) == 0 &&
                weft_sums_left(&own->sums) < least)
                least = weft_sums_left(&own->sums);
        }
        if (least < INT64_MAX)
            left[count++] =
                (struct weft_amount){.dimension = weft_arena_strdup(arena, name), .amount = least};
    }
    report->answer->left = left;
    report->answer->left_count = count;
}

static void refuse(struct report *report, const struct charge *charge, int64_t total,
                   struct weft_arena *arena)
{
    struct weft_err *story =
        weft_err_new(arena, WEFT_BUDGET_EXCEEDED, "totals",
                     "budget '%s' has %lld of '%s' left, the report adds %lld: it was not recorded",
                     charge->budget->row->name, (long long)weft_sums_left(&charge->dimension->sums),
                     charge->dimension->name, (long long)(total - charge->now.total));
    story->hint = "stop, or have the hard limit of the budget raised";
    *report->answer = (struct weft_usage_result){WEFT_FAILED(story)};
    tell_left(report, arena);
}

/* Records a report in all its dimensions, or refuses it and records nothing. */
static void record(struct report *report, struct weft_arena *arena, weft_usec now_us)
{
    struct weft_locked_budget *broken = NULL;
    for (size_t i = 0; i < report->charges; i++) {
        const struct charge *charge = &report->charge[i];
        int64_t total = total_of(report->given, charge->dimension->name);
        if (weft_sums_allow(&charge->dimension->sums, &charge->now, total))
            continue;
        if (!broken)
            refuse(report, charge, total, arena);
        if (broken != charge->budget) /* the dimensions of a budget follow each other */
            weft_budget_breach(charge->budget, now_us);
        broken = charge->budget;
    }
    if (broken)
        return;
    *report->answer = (struct weft_usage_result){0};
    for (size_t i = 0; i < report->charges; i++) {
        struct charge *charge = &report->charge[i];
        int64_t total = total_of(report->given, charge->dimension->name);
        charge->changed = total > charge->now.total;
        weft_sums_report(&charge->dimension->sums, &charge->now, total);
    }
}

/* The budgets as the transaction leaves them. */
static void tell_budgets(struct report *report, struct weft_arena *arena)
{
    struct weft_budget_now *now =
        weft_new_array(arena, struct weft_budget_now, report->charges + 1);
    for (size_t i = 0; i < report->charges; i++) {
        const struct charge *charge = &report->charge[i];
        now[i] =
            (struct weft_budget_now){.name = weft_arena_strdup(arena, charge->budget->row->name),
                                     .dimension = weft_arena_strdup(arena, charge->dimension->name),
                                     .used = charge->dimension->sums.used,
                                     .hard = charge->dimension->sums.hard,
                                     .state = weft_budget_state_of(charge->budget)};
    }
    report->answer->budget = now;
    report->answer->budget_count = report->charges;
}

/* ---- The transaction ------------------------------------------------------------------------- */

static size_t put_ledger(struct weft_tx *tx, const struct report *report, size_t count,
                         struct weft_call *ret_call)
{
    size_t most = 0, rows = 0;
    for (size_t k = 0; k < count; k++)
        most += report[k].charges;
    struct weft_ledger_put_in *in = weft_call_ledger_put(ret_call, tx->arena, most + 1);
    in->now = tx->now_us;
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < report[k].charges; i++) {
            const struct charge *charge = &report[k].charge[i];
            if (charge->changed)
                in->row[rows++] =
                    (struct weft_ledger_put_item){.id = report[k].given->id,
                                                  .epoch = report[k].given->epoch,
                                                  .dimension = charge->dimension->id,
                                                  .period = charge->budget->row->period,
                                                  .reserved = charge->now.reserved,
                                                  .total = charge->now.total};
        }
    ret_call->rows = rows;
    return rows;
}

static enum weft_rc usage_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct reporting *call = context;
    size_t count = call->lease.chunk.count, calls = 0;
    struct weft_call write[1 + WEFT_BUDGET_WRITES];
    struct weft_locked_budgets locked = {0};
    struct report *report = NULL;
    enum weft_rc rc = read_reports(tx, call, &locked, &report, err);
    if (rc)
        return rc;
    for (size_t k = 0; k < count; k++)
        if (call->lease.found[k])
            record(&report[k], call->lease.arena, tx->now_us);
    for (size_t b = 0; b < locked.count; b++) {
        weft_budget_judge(&locked.budget[b], tx->now_us);
        call->cancelling |= locked.budget[b].cancelling && !locked.budget[b].row->cancelling;
    }
    for (size_t k = 0; k < count; k++)
        if (call->lease.found[k] && !report[k].answer->rc)
            tell_budgets(&report[k], call->lease.arena);
    calls += put_ledger(tx, report, count, &write[0]) > 0;
    calls += weft_budgets_write(&locked, tx->arena, &write[calls]);
    return calls ? weft_tx_last(tx, write, calls, NULL, err) : WEFT_OK;
}

enum weft_rc weft_engine_usage(struct weft_engine *engine, const struct weft_usage *item,
                               size_t count, struct weft_arena *arena,
                               struct weft_usage_result *ret_answer, struct weft_err *err)
{
    /* No `decide`: a second report of a lease waits for a later transaction. */
    static const struct weft_lease_op op = {.item_size = sizeof(struct weft_usage),
                                            .check = check_usage,
                                            .body = usage_body,
                                            .hot = true};
    struct weft_arena *plan = weft_arena_new();
    struct weft_lease_result *lease = weft_new_array(plan, struct weft_lease_result, count + 1);
    struct reporting call = {.answer = ret_answer, .held = weft_new_array(plan, bool, count + 1)};
    call.lease = weft_lease_call(&op, item, count, arena, lease);
    enum weft_rc rc = weft_lease_run_call(engine, &call.lease, err);
    for (size_t i = 0; i < count; i++) {
        if (!rc && call.held[i] && !lease[i].rc)
            continue; /* its transaction has answered it */
        ret_answer[i] = (struct weft_usage_result){
            .err = lease[i].err, .rc = lease[i].rc, .fence = lease[i].fence};
        if (!rc && !lease[i].rc) { /* one of more than WEFT_REPEATS_MAX reports of the lease */
            struct weft_err *story =
                weft_err_new(arena, WEFT_BUSY, "id", "the call names this lease too often");
            story->hint = "report the last totals of a lease alone";
            ret_answer[i] = (struct weft_usage_result){WEFT_FAILED(story)};
        }
    }
    if (call.begun)
        weft_budgets_opened(engine, NULL, 0);
    if (call.cancelling)
        weft_news_cancel_budgets(engine);
    weft_arena_free(plan);
    return rc;
}
