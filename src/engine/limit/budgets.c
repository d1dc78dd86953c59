/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Settings of budgets. They are changed under the lock of the budget, so claims and reports see the
 * old ones or the new ones, never a part. New settings end a breach; where the limits are still
 * broken by what was used, the same transaction begins the next one.
 */

#include "engine/limit/budgets.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "core/cursor.h"
#include "core/spec.h"
#include "engine/engine_state.h"
#include "engine/job/list.h"
#include "engine/limit/budget_rows.h"

#include <stdlib.h>
#include <string.h>

enum {
    OLDEST_BINARY = 30,  /* the first that reserves: 0030 */
    BUDGETS_MAX = 10000, /* of a namespace, */
    MATCHING_MAX = 1000, /* of these, attached by what an execution is: a claim looks at all */
};

/* ---- As they are shown ----------------------------------------------------------------------- */

static const char *copy(struct weft_arena *arena, const char *text)
{
    return text ? weft_arena_strdup(arena, text) : NULL;
}

static struct weft_budget show(const struct weft_locked_budget *budget, struct weft_arena *arena)
{
    const struct weft_budget_out *row = budget->row;
    struct weft_budget_dimension *dimension =
        weft_new_array(arena, struct weft_budget_dimension, budget->dimensions + 1);
    for (size_t i = 0; i < budget->dimensions; i++) {
        const struct weft_locked_dimension *own = &budget->dimension[i];
        dimension[i] = (struct weft_budget_dimension){.name = copy(arena, own->name),
                                                      .hard = own->sums.hard,
                                                      .soft = own->sums.soft,
                                                      .estimate = own->sums.estimate,
                                                      .used = own->sums.used,
                                                      .reserved = own->sums.reserved};
    }
    return (struct weft_budget){.name = copy(arena, row->name),
                                .matches = row->matches,
                                .match_lane = copy(arena, row->lane),
                                .match_kind = copy(arena, row->kind),
                                .match_tenant = copy(arena, row->tenant),
                                .dimension = dimension,
                                .dimension_count = budget->dimensions,
                                .every_ms = row->every_us / WEFT_MS,
                                .every_months = row->months,
                                .anchor_us = row->anchor,
                                .on_hard = (enum weft_on_hard)row->on_hard,
                                .state = weft_budget_state_of(budget),
                                .next_reset_us = row->next_reset.value,
                                .period_began_us = row->began,
                                .breaches = (uint64_t)budget->breaches};
}

static enum weft_rc no_budget(const char *name, struct weft_err *err)
{
    return weft_hint(
        err, weft_fail_field(err, WEFT_NOT_FOUND, "budget", "there is no budget '%s'", name),
        "`weft budget` lists them");
}

/* The budgets behind `after`, or the one called `own`; their sums are of one moment. */
struct budget_page {
    int32_t ns;
    const char *own, *after;
    size_t most;
    struct weft_locked_budgets found; /* by id */
};

static enum weft_rc read_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct budget_page *page = context;
    struct weft_call call;
    struct weft_rows rows = {0}, dimensions = {0};
    *weft_call_budget_list(&call, tx->arena) = (struct weft_budget_list_in){
        .namespace = page->ns, .own = page->own, .after = page->after, .most = (int64_t)page->most};
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc && rows.count > 0) {
        struct weft_dimensions_of_in *in = weft_call_dimensions_of(&call, tx->arena, rows.count);
        for (size_t i = 0; i < rows.count; i++) {
            in->row[i].namespace = page->ns;
            in->row[i].name = weft_out_budget(&rows, i)->name;
        }
        rc = weft_tx_run(tx, &call, 1, &dimensions, err);
    }
    if (!rc)
        page->found = weft_budgets_group(&rows, &dimensions, tx->arena);
    return rc;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct weft_budget *)left)->name,
                  ((const struct weft_budget *)right)->name);
}

/* Reads the page; the budgets are in the arena, by name. */
static enum weft_rc read_page(struct weft_engine *engine, struct budget_page *page,
                              struct weft_arena *arena, struct weft_budget **ret_budget,
                              struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_READ, read_body, page, err);
    if (!rc) {
        struct weft_budget *budget = weft_new_array(arena, struct weft_budget, page->most + 1);
        for (size_t i = 0; i < page->found.count; i++)
            budget[i] = show(&page->found.budget[i], arena);
        qsort(budget, page->found.count, sizeof(*budget), by_name);
        *ret_budget = budget;
    }
    weft_arena_free(tx.arena);
    return rc;
}

enum weft_rc weft_engine_budget(struct weft_engine *engine, const char *ns, const char *name,
                                struct weft_arena *arena, struct weft_budget *ret_budget,
                                struct weft_err *err)
{
    struct budget_page page = {.own = name, .after = "", .most = 1};
    struct weft_budget *budget = NULL;
    enum weft_rc rc = weft_name_check(name, "budget", err);
    if (!rc)
        rc = weft_find_namespace(engine, ns, &page.ns, err);
    if (!rc)
        rc = read_page(engine, &page, arena, &budget, err);
    if (rc)
        return rc;
    if (page.found.count == 0)
        return no_budget(name, err);
    *ret_budget = budget[0];
    return WEFT_OK;
}

enum weft_rc weft_engine_budgets(struct weft_engine *engine,
                                 const struct weft_budget_asking *asking, struct weft_arena *arena,
                                 struct weft_budgets *ret_budgets, struct weft_err *err)
{
    const struct weft_cursor_list list = {.name = "budgets", .ns = asking->ns};
    char after[WEFT_CURSOR_PLACE_MAX + 1] = "";
    size_t limit = asking->limit ? asking->limit : WEFT_PAGE_DEFAULT, size;
    struct budget_page page = {.after = after, .most = limit + 1};
    struct weft_budget *budget = NULL;
    enum weft_rc rc = weft_page_limit(asking->limit, err);
    if (!rc && asking->after)
        rc = weft_cursor_read(&list, asking->after, after, &size, err);
    if (!rc)
        rc = weft_find_namespace(engine, asking->ns, &page.ns, err);
    if (!rc)
        rc = read_page(engine, &page, arena, &budget, err);
    if (rc)
        return rc;
    size_t count = page.found.count < limit ? page.found.count : limit;
    *ret_budgets = (struct weft_budgets){.item = budget, .count = count};
    if (page.found.count > limit)
        ret_budgets->next =
            weft_cursor_write(&list, budget[count - 1].name, strlen(budget[count - 1].name), arena);
    return WEFT_OK;
}

/* ---- Changing -------------------------------------------------------------------------------- */

/* A change of one budget: what it is to be, and how it was or is then. */
struct changing {
    struct weft_budget_ref ref;
    const struct weft_budget *wanted; /* of a put */
    struct weft_arena *arena;
    struct weft_budget *shown;
    bool cancelling; /* its new limits are broken, and it cancels */
};

static enum weft_rc lock_one(struct weft_tx *tx, const struct changing *change,
                             struct weft_locked_budgets *ret_locked, struct weft_err *err)
{
    return weft_budgets_lock(tx, &change->ref, 1, ret_locked, err);
}

/* The caps are looked at without a lock: puts at the same time may pass them by a few. */
static enum weft_rc check_caps(struct weft_tx *tx, const struct weft_budget *wanted, int32_t ns,
                               const struct weft_locked_budget *now, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    if (now && (now->row->matches || !wanted->matches))
        return WEFT_OK;
    weft_call_budgets_counted(&call, tx->arena)->namespace = ns;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    const struct weft_budgets_counted_out *row = weft_out_budgets_counted(&rows);
    if (!now && row->budgets >= BUDGETS_MAX)
        return weft_fail_field(err, WEFT_LIMIT_EXCEEDED, "budget",
                               "the namespace has %lld budgets, at most %d are allowed",
                               (long long)row->budgets, BUDGETS_MAX);
    if (wanted->matches && row->matching >= MATCHING_MAX)
        return weft_hint(err,
                         weft_fail_field(err, WEFT_LIMIT_EXCEEDED, "match",
                                         "%lld budgets of the namespace match executions, at most "
                                         "%d are allowed",
                                         (long long)row->matching, MATCHING_MAX),
                         "let executions name the budget in `budgets`");
    return WEFT_OK;
}

static enum weft_rc write_budget(struct weft_tx *tx, const struct changing *change, int32_t *ret_id,
                                 struct weft_err *err)
{
    const struct weft_budget *wanted = change->wanted;
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_budget_put(&call, tx->arena) = (struct weft_budget_put_in){
        .namespace = change->ref.ns,
        .name = change->ref.name,
        .matches = wanted->matches,
        .lane = wanted->match_lane,
        .kind = wanted->match_kind,
        .tenant = wanted->match_tenant,
        .on_hard = wanted->on_hard,
        .every_us = wanted->every_ms * WEFT_MS,
        .months = wanted->every_months,
        .anchor = wanted->anchor_us,
        /* Not tx->now_us: the transaction may have waited for its lock beyond the end of a period.
         */
        .next_reset =
            weft_unless_zero(weft_budget_next_reset(wanted, weft_clock_now(tx->engine->clock))),
        .now = tx->now_us,
        .oldest = OLDEST_BINARY};
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc)
        *ret_id = weft_out_budget_put(&rows)->id;
    return rc;
}

/* before: the budget as it was; NULL: it is new. What runs under it is charged in its new
 * dimensions too, also where these take the place of all the others. */
static enum weft_rc write_dimensions(struct weft_tx *tx, const struct weft_budget *wanted,
                                     int32_t id, const struct weft_locked_budget *before,
                                     struct weft_err *err)
{
    enum { PUT, WIDEN, DROP, CALLS };
    struct weft_call call[CALLS];
    size_t count = wanted->dimension_count, added = 0;
    struct weft_dimensions_put_in *put = weft_call_dimensions_put(&call[PUT], tx->arena, count);
    struct weft_ledger_widen_in *widen = weft_call_ledger_widen(&call[WIDEN], tx->arena, count);
    struct weft_dimensions_drop_in *drop = weft_call_dimensions_drop(&call[DROP], tx->arena, count);
    put->budget = widen->budget = drop->budget = id;
    widen->now = tx->now_us;
    for (size_t i = 0; i < count; i++) {
        const struct weft_budget_dimension *own = &wanted->dimension[i];
        put->row[i].name = drop->row[i].name = own->name;
        put->row[i].hard = own->hard;
        put->row[i].soft = own->soft;
        put->row[i].estimate = own->estimate;
        if (before && !weft_dimension_find(before, own->name))
            widen->row[added++].name = own->name;
    }
    call[WIDEN].rows = added;
    if (added == 0)
        call[WIDEN] = call[DROP];
    return weft_tx_run(tx, call, added ? CALLS : CALLS - 1, NULL, err);
}

static enum weft_rc put_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct changing *change = context;
    struct weft_locked_budgets before, locked;
    struct weft_call write[WEFT_BUDGET_WRITES + 1];
    int32_t id = 0;
    enum weft_rc rc = lock_one(tx, change, &before, err);
    const struct weft_locked_budget *was = !rc && before.count ? before.budget : NULL;
    if (!rc)
        rc = check_caps(tx, change->wanted, change->ref.ns, was, err);
    if (!rc)
        rc = write_budget(tx, change, &id, err);
    if (!rc)
        rc = write_dimensions(tx, change->wanted, id, was, err);
    if (!rc)
        rc = lock_one(tx, change, &locked, err);
    if (rc)
        return rc;
    weft_budget_judge(&locked.budget[0], tx->now_us);
    change->cancelling = locked.budget[0].cancelling;
    size_t calls = weft_budgets_write(&locked, tx->arena, write);
    weft_call_budgets_changed(&write[calls++], tx->arena);
    return weft_tx_last(tx, write, calls, NULL, err);
}

/* Tells claims of the change, which is committed. Other processes see it with their next poll. */
static void tell(struct weft_engine *engine, const struct changing *change, bool rules)
{
    struct weft_err err;
    if (rules && weft_budget_rules_read(engine, &err))
        weft_budget_rules_doubt(engine);
    weft_budgets_opened(engine, NULL, 0);
    if (change->cancelling)
        weft_news_cancel_budgets(engine);
}

static enum weft_rc run_change(struct weft_engine *engine, weft_tx_body *body,
                               struct changing *change, struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, body, change, err);
    weft_arena_free(tx.arena);
    return rc;
}

enum weft_rc weft_engine_budget_put(struct weft_engine *engine, const char *ns,
                                    const struct weft_budget *budget, struct weft_err *err)
{
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = ns};
    enum weft_rc rc = weft_budget_check(budget, err);
    if (!rc)
        rc = weft_name_check(ns, "namespace", err);
    if (!rc)
        rc = weft_intern_names(engine, true, &space, 1, err);
    if (rc)
        return rc;
    struct changing change = {.ref = {.ns = space.id, .name = budget->name}, .wanted = budget};
    rc = run_change(engine, put_body, &change, err);
    if (!rc)
        tell(engine, &change, true);
    return rc;
}

static enum weft_rc remove_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct changing *change = context;
    struct weft_locked_budgets locked;
    enum { REMOVE, CHANGED, CALLS };
    struct weft_call call[CALLS];
    enum weft_rc rc = lock_one(tx, change, &locked, err);
    if (rc)
        return rc;
    if (locked.count == 0)
        return no_budget(change->ref.name, err);
    *change->shown = show(&locked.budget[0], change->arena);
    *weft_call_budget_remove(&call[REMOVE], tx->arena) =
        (struct weft_budget_remove_in){.namespace = change->ref.ns, .name = change->ref.name};
    weft_call_budgets_changed(&call[CHANGED], tx->arena);
    return weft_tx_last(tx, call, CALLS, NULL, err);
}

static enum weft_rc reset_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct changing *change = context;
    struct weft_locked_budgets locked;
    enum weft_rc rc = lock_one(tx, change, &locked, err);
    if (rc)
        return rc;
    if (locked.count == 0)
        return no_budget(change->ref.name, err);
    if (!locked.begun)
        rc = weft_budgets_begin(tx, &locked, err);
    if (!rc)
        rc = lock_one(tx, change, &locked, err);
    if (!rc)
        *change->shown = show(&locked.budget[0], change->arena);
    return rc;
}

/* A change of a budget that is there. */
static enum weft_rc change_one(struct weft_engine *engine, const char *ns, const char *name,
                               weft_tx_body *body, struct weft_arena *arena,
                               struct weft_budget *ret_budget, struct weft_err *err)
{
    struct changing change = {.ref = {.name = name}, .arena = arena, .shown = ret_budget};
    enum weft_rc rc = weft_name_check(name, "budget", err);
    if (!rc)
        rc = weft_find_namespace(engine, ns, &change.ref.ns, err);
    if (!rc)
        rc = run_change(engine, body, &change, err);
    if (!rc)
        tell(engine, &change, body == remove_body);
    return rc;
}

enum weft_rc weft_engine_budget_remove(struct weft_engine *engine, const char *ns, const char *name,
                                       struct weft_arena *arena, struct weft_budget *ret_budget,
                                       struct weft_err *err)
{
    return change_one(engine, ns, name, remove_body, arena, ret_budget, err);
}

enum weft_rc weft_engine_budget_reset(struct weft_engine *engine, const char *ns, const char *name,
                                      struct weft_arena *arena, struct weft_budget *ret_budget,
                                      struct weft_err *err)
{
    return change_one(engine, ns, name, reset_body, arena, ret_budget, err);
}

/* ---- The ledger ------------------------------------------------------------------------------ */

enum weft_rc weft_engine_ledger(struct weft_engine *engine, const struct weft_ledger_asking *asking,
                                struct weft_arena *arena, struct weft_ledger *ret_ledger,
                                struct weft_err *err)
{
    const struct weft_cursor_list list = {
        .name = "ledger", .ns = asking->ns, .filter = asking->name};
    size_t limit = asking->limit ? asking->limit : WEFT_PAGE_DEFAULT, count = 0, ids = 0;
    struct weft_id first = {{0}};
    struct weft_budget budget;
    int32_t space = 0;
    struct weft_call call;
    struct weft_rows rows = {0};
    enum weft_rc rc = weft_page_limit(asking->limit, err);
    if (!rc)
        rc = weft_cursor_read_id(&list, asking->after, &first, err);
    if (!rc) /* whether it is there */
        rc = weft_engine_budget(engine, asking->ns, asking->name, arena, &budget, err);
    if (!rc)
        rc = weft_find_namespace(engine, asking->ns, &space, err);
    if (rc)
        return rc;
    *weft_call_ledger_read(&call, arena) = (struct weft_ledger_read_in){
        .namespace = space, .name = asking->name, .first = first, .most = (int64_t)limit + 1};
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_charge *charge = weft_new_array(arena, struct weft_charge, rows.count + 1);
    *ret_ledger = (struct weft_ledger){.item = charge};
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_ledger_read_out *row = &weft_out_ledger_read(&rows)[i];
        ids += i == 0 || weft_id_cmp(&charge[count - 1].id, &row->id) != 0;
        if (ids > limit) { /* this one begins the next page */
            ret_ledger->next = weft_cursor_write_id(&list, &row->id, arena);
            break;
        }
        charge[count++] = (struct weft_charge){.id = row->id,
                                               .dimension = row->dimension,
                                               .reserved = row->reserved,
                                               .used = row->used,
                                               .settled = row->settled};
    }
    ret_ledger->count = count;
    return WEFT_OK;
}
