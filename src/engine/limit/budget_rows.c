/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/limit/budget_rows.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine_state.h"
#include "engine/tx/tx.h"

#include <stdlib.h>
#include <string.h>

size_t weft_budget_ref_add(struct weft_budget_ref *ref, size_t *count, int32_t ns, const char *name)
{
    size_t at = 0;
    while (at < *count && (ref[at].ns != ns || strcmp(ref[at].name, name) != 0))
        at++;
    if (at == *count)
        ref[(*count)++] = (struct weft_budget_ref){.ns = ns, .name = name};
    return at;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int by_row(const void *left, const void *right)
{
    int32_t a = ((const struct weft_locked_budget *)left)->row->id;
    int32_t b = ((const struct weft_locked_budget *)right)->row->id;
    return (a > b) - (a < b);
}

static void add_dimensions(struct weft_locked_budget *budget, const struct weft_rows *rows,
                           struct weft_arena *arena)
{
    size_t own = 0;
    for (size_t i = 0; i < rows->count; i++)
        own += weft_out_dimension(rows, i)->budget == budget->row->id;
    budget->dimension = weft_new_array(arena, struct weft_locked_dimension, own + 1);
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_dimension_out *row = weft_out_dimension(rows, i);
        if (row->budget != budget->row->id)
            continue;
        const struct weft_sums sums = {.hard = row->hard,
                                       .soft = row->soft,
                                       .estimate = row->estimate,
                                       .used = row->used,
                                       .reserved = row->reserved};
        budget->dimension[budget->dimensions++] = (struct weft_locked_dimension){
            .id = row->id, .name = row->name, .sums = sums, .before = sums};
    }
}

struct weft_locked_budgets weft_budgets_group(const struct weft_rows *budgets,
                                              const struct weft_rows *dimensions,
                                              struct weft_arena *arena)
{
    struct weft_locked_budgets locked = {
        .budget = weft_new_array(arena, struct weft_locked_budget, budgets->count + 1),
        .count = budgets->count,
    };
    for (size_t i = 0; i < budgets->count; i++) {
        const struct weft_budget_out *row = weft_out_budget(budgets, i);
        locked.budget[i] = (struct weft_locked_budget){.row = row,
                                                       .breaches = row->breaches,
                                                       .soft_us = row->soft_at.value,
                                                       .hard_us = row->hard_at.value,
                                                       .cancelling = row->cancelling};
        add_dimensions(&locked.budget[i], dimensions, arena);
    }
    qsort(locked.budget, locked.count, sizeof(*locked.budget), by_row);
    return locked;
}

enum weft_rc weft_budgets_lock(struct weft_tx *tx, const struct weft_budget_ref *ref, size_t count,
                               struct weft_locked_budgets *ret_locked, struct weft_err *err)
{
    enum { LOCK, DIMENSIONS, CALLS };
    struct weft_call call[CALLS];
    struct weft_rows rows[CALLS] = {0};
    struct weft_budget_lock_in *lock = weft_call_budget_lock(&call[LOCK], tx->arena, count);
    struct weft_dimensions_of_in *dimensions =
        weft_call_dimensions_of(&call[DIMENSIONS], tx->arena, count);
    for (size_t i = 0; i < count; i++) {
        lock->row[i].namespace = dimensions->row[i].namespace = ref[i].ns;
        lock->row[i].name = dimensions->row[i].name = ref[i].name;
    }
    enum weft_rc rc = weft_tx_run(tx, call, CALLS, rows, err);
    if (rc)
        return rc;
    *ret_locked = weft_budgets_group(&rows[LOCK], &rows[DIMENSIONS], tx->arena);
    rc = weft_budgets_begin_over(tx, ret_locked, err);
    if (rc || !ret_locked->begun)
        return rc;
    rc = weft_tx_run(tx, call, CALLS, rows, err); /* as they are now */
    if (rc)
        return rc;
    *ret_locked = weft_budgets_group(&rows[LOCK], &rows[DIMENSIONS], tx->arena);
    ret_locked->begun = true;
    return WEFT_OK;
}

struct weft_locked_budget *weft_budgets_find(const struct weft_locked_budgets *locked, int32_t ns,
                                             const char *name)
{
    for (size_t i = 0; i < locked->count; i++)
        if (locked->budget[i].row->namespace == ns &&
            strcmp(locked->budget[i].row->name, name) == 0)
            return &locked->budget[i];
    return NULL;
}

struct weft_locked_dimension *weft_dimension_find(const struct weft_locked_budget *budget,
                                                  const char *name)
{
    for (size_t i = 0; i < budget->dimensions; i++)
        if (strcmp(budget->dimension[i].name, name) == 0)
            return &budget->dimension[i];
    return NULL;
}

/* ---- Judging --------------------------------------------------------------------------------- */

enum weft_budget_state weft_budget_state_of(const struct weft_locked_budget *budget)
{
    enum weft_budget_state state = budget->hard_us ? WEFT_BUDGET_HARD : WEFT_BUDGET_OK;
    for (size_t i = 0; i < budget->dimensions; i++) {
        enum weft_budget_state own = weft_sums_state(&budget->dimension[i].sums);
        if (own > state)
            state = own;
    }
    return state;
}

bool weft_budget_is_open(const struct weft_locked_budget *budget)
{
    return weft_budget_state_of(budget) != WEFT_BUDGET_HARD && !budget->cancelling;
}

void weft_budget_breach(struct weft_locked_budget *budget, weft_usec now_us)
{
    budget->breaches++;
    if (budget->hard_us == 0)
        budget->hard_us = now_us;
    budget->cancelling |= budget->row->on_hard == WEFT_ON_HARD_CANCEL;
}

void weft_budget_judge(struct weft_locked_budget *budget, weft_usec now_us)
{
    for (size_t i = 0; i < budget->dimensions; i++) {
        const struct weft_sums *sums = &budget->dimension[i].sums;
        enum weft_budget_state state = weft_sums_state(sums);
        if (state == WEFT_BUDGET_HARD && budget->hard_us == 0)
            weft_budget_breach(budget, now_us);
        if (sums->soft > 0 && sums->used >= sums->soft && budget->soft_us == 0)
            budget->soft_us = now_us;
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

static bool was_marked(const struct weft_locked_budget *budget)
{
    const struct weft_budget_out *row = budget->row;
    return budget->breaches != row->breaches || budget->soft_us != row->soft_at.value ||
           budget->hard_us != row->hard_at.value || budget->cancelling != row->cancelling;
}

size_t weft_budgets_write(const struct weft_locked_budgets *locked, struct weft_arena *arena,
                          struct weft_call ret_call[WEFT_BUDGET_WRITES])
{
    struct weft_call sums, mark;
    size_t most = 0, added = 0, marked = 0, calls = 0;
    for (size_t i = 0; i < locked->count; i++)
        most += locked->budget[i].dimensions;
    struct weft_sums_add_in *add = weft_call_sums_add(&sums, arena, most + 1);
    struct weft_budget_mark_in *note = weft_call_budget_mark(&mark, arena, locked->count + 1);
    for (size_t i = 0; i < locked->count; i++) {
        const struct weft_locked_budget *budget = &locked->budget[i];
        for (size_t d = 0; d < budget->dimensions; d++) {
            const struct weft_locked_dimension *own = &budget->dimension[d];
            const struct weft_sums_add_item item = {.dimension = own->id,
                                                    .used = own->sums.used - own->before.used,
                                                    .reserved =
                                                        own->sums.reserved - own->before.reserved};
            if (item.used != 0 || item.reserved != 0)
                add->row[added++] = item;
        }
        if (was_marked(budget))
            note->row[marked++] =
                (struct weft_budget_mark_item){.id = budget->row->id,
                                               .breaches = budget->breaches,
                                               .soft_at = weft_unless_zero(budget->soft_us),
                                               .hard_at = weft_unless_zero(budget->hard_us),
                                               .cancelling = budget->cancelling};
    }
    sums.rows = added;
    mark.rows = marked;
    if (added > 0)
        ret_call[calls++] = sums;
    if (marked > 0)
        ret_call[calls++] = mark;
    return calls;
}

/* ---- Periods --------------------------------------------------------------------------------- */

/* The clock is read behind the locks: the transaction may have waited for them beyond the end of a
 * period. It is never ahead of the store's. */
static weft_usec now_of(const struct weft_tx *tx)
{
    return weft_clock_now(tx->engine->clock);
}

static bool is_over(const struct weft_budget_out *row, weft_usec now_us)
{
    return row->next_reset.set && row->next_reset.value <= now_us;
}

enum weft_rc weft_budgets_begin(struct weft_tx *tx, const struct weft_locked_budgets *locked,
                                struct weft_err *err)
{
    struct weft_call call;
    weft_usec now_us = now_of(tx);
    struct weft_budget_begin_in *in = weft_call_budget_begin(&call, tx->arena, locked->count);
    in->now = now_us;
    for (size_t i = 0; i < locked->count; i++) {
        const struct weft_budget_out *row = locked->budget[i].row;
        const struct weft_budget budget = {.every_ms = row->every_us / WEFT_MS,
                                           .every_months = row->months,
                                           .anchor_us = row->anchor};
        in->row[i].id = row->id;
        in->row[i].next_reset = weft_unless_zero(weft_budget_next_reset(&budget, now_us));
        in->row[i].began =
            is_over(row, now_us) ? weft_budget_period_began(&budget, now_us) : now_us;
    }
    return weft_tx_run(tx, &call, 1, NULL, err);
}

enum weft_rc weft_budgets_begin_over(struct weft_tx *tx, struct weft_locked_budgets *locked,
                                     struct weft_err *err)
{
    struct weft_locked_budgets over = {
        .budget = weft_new_array(tx->arena, struct weft_locked_budget, locked->count + 1)};
    for (size_t i = 0; i < locked->count; i++)
        if (is_over(locked->budget[i].row, now_of(tx)))
            over.budget[over.count++] = locked->budget[i];
    locked->begun = over.count > 0;
    return over.count ? weft_budgets_begin(tx, &over, err) : WEFT_OK;
}
