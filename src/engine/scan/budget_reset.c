/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ends the periods of budgets that no claim or report uses at the moment: a transaction that locks
 * one whose period is over begins the next. And does what errands behind a commit did not come to,
 * because their process went away: a walk over rows of the ledger that are open finds leases that
 * have ended and settles them, and executions under a budget that cancels are cancelled. Then it
 * removes what the ledger keeps of earlier periods and of removed budgets, and adds up rows that
 * were settled long ago. The poll says when a period ends and whether there is a ledger; without
 * budgets the pass does not run.
 *
 * Exactly once: a reset locks the budget and looks at next_reset again under that lock, in the time
 * of the store; the reset itself moves next_reset behind that time. However late it is, and however
 * many replicas try, one of them sees a period that is over. Periods that were missed by an outage
 * are made up by one reset.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine_state.h"
#include "engine/limit/budget_rows.h"
#include "engine/limit/settle.h"
#include "engine/scan/scan.h"

enum {
    RESETS_AT_ONCE = 100, /* budgets of one transaction: each may have thousands of open rows */
    SWEPT_AT_ONCE = 100,  /* dimensions; they stay locked until the rows are removed */
    WALKS_MAX = 10,       /* batches of a pass without an end */
};
#define FOLD_AGE_US ((weft_usec)7 * 86400 * WEFT_SECOND)

/* The order of the table in pass.c. */
enum { PROCESSED, SETTLED, CANCELLED, REMOVED, FOLDED };

/* ---- Periods --------------------------------------------------------------------------------- */

static enum weft_rc reset_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct weft_pass *pass = context;
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    const struct weft_rows no_dimensions = {0};
    *weft_call_budget_lock_due(&call[0], tx->arena) = (struct weft_budget_lock_due_in){
        .now = tx->now_us, .namespace = pass->ns, .most = RESETS_AT_ONCE};
    enum weft_rc rc = weft_tx_run(tx, call, 1, rows, err);
    if (rc)
        return rc;
    pass->count[PROCESSED] = rows[0].count;
    if (rows[0].count == 0)
        return WEFT_OK;
    const struct weft_locked_budgets due = weft_budgets_group(&rows[0], &no_dimensions, tx->arena);
    return weft_budgets_begin(tx, &due, err);
}

static enum weft_rc reset_due(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_tx tx = {.engine = pass->engine, .arena = pass->arena};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, reset_body, pass, err);
    if (!rc && pass->count[PROCESSED] > 0)
        weft_budgets_opened(pass->engine, NULL, 0);
    pass->report.more = pass->count[PROCESSED] == RESETS_AT_ONCE;
    return rc;
}

/* ---- Leases that have ended ------------------------------------------------------------------ */

/* Where the walk continues. Two passes at once cost a second look at the same rows. */
static struct weft_ledger_place walk_from(struct weft_engine *engine)
{
    pthread_mutex_lock(&engine->sample_lock);
    struct weft_ledger_place place = engine->ledger_walked;
    pthread_mutex_unlock(&engine->sample_lock);
    return place;
}

static void walk_to(struct weft_engine *engine, const struct weft_ledger_place *place)
{
    pthread_mutex_lock(&engine->sample_lock);
    engine->ledger_walked = *place;
    pthread_mutex_unlock(&engine->sample_lock);
}

/* Looks at a batch of leases; *ret_ended: some have ended, *ret_last: there are none behind these.
 */
static enum weft_rc settle_batch(struct weft_pass *pass, bool *ret_ended, bool *ret_last,
                                 struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_ledger_place place = walk_from(pass->engine);
    *weft_call_ledger_walk(&call, pass->arena) =
        (struct weft_ledger_walk_in){.dimension = place.dimension,
                                     .id = place.id,
                                     .epoch = place.epoch,
                                     .most = pass->config->batch};
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (rc)
        return rc;
    struct weft_lease_end *ended =
        weft_new_array(pass->arena, struct weft_lease_end, rows.count + 1);
    size_t count = 0;
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_ledger_walk_out *row = &weft_out_ledger_walk(&rows)[i];
        if (row->ended)
            ended[count++] = (struct weft_lease_end){.lease = {.id = row->id, .epoch = row->epoch}};
        place = (struct weft_ledger_place){
            .dimension = row->dimension, .epoch = row->epoch, .id = row->id};
    }
    if (count > 0)
        rc = weft_engine_settle(pass->engine, ended, count, &pass->count[SETTLED], err);
    *ret_ended = count > 0;
    *ret_last = rows.count < pass->config->batch;
    if (*ret_last)
        place = (struct weft_ledger_place){0};
    walk_to(pass->engine, &place);
    return rc;
}

static enum weft_rc settle_left(struct weft_pass *pass, struct weft_err *err)
{
    bool ended = false, last = false;
    enum weft_rc rc = WEFT_OK;
    for (int i = 0; i < WALKS_MAX && !ended && !last && !rc; i++)
        rc = settle_batch(pass, &ended, &last, err);
    /* Batches without an end are no reason to hurry: the next walk goes on behind them. */
    pass->report.more |= ended && !last;
    return rc;
}

/* ---- The ledger ------------------------------------------------------------------------------ */

static enum weft_rc tidy(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_ledger_sweep(&call, pass->arena) =
        (struct weft_ledger_sweep_in){.most = pass->config->batch, .dimensions = SWEPT_AT_ONCE};
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_WRITE, &call, pass->arena, &rows, err);
    if (!rc)
        pass->count[REMOVED] = (uint64_t)weft_out_ledger_sweep(&rows)->removed;
    *weft_call_ledger_fold(&call, pass->arena) = (struct weft_ledger_fold_in){
        .before = weft_clock_now(pass->engine->clock) - FOLD_AGE_US, .most = pass->config->batch};
    if (!rc)
        rc = weft_tx_once(pass->engine, WEFT_TX_WRITE, &call, pass->arena, &rows, err);
    if (!rc)
        pass->count[FOLDED] = (uint64_t)weft_out_ledger_fold(&rows)->folded;
    pass->report.more |=
        pass->count[REMOVED] == pass->config->batch || pass->count[FOLDED] == pass->config->batch;
    return rc;
}

enum weft_rc weft_budget_reset_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_engine *engine = pass->engine;
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_budget_cancelled cancelled = {0};
    if (pass->ns < 0) /* it has never had any work */
        return WEFT_OK;
    enum weft_rc rc = reset_due(pass, err);
    if (!rc)
        rc = weft_engine_budget_cancel(engine, pass->config->batch, &cancelled, err);
    if (!rc)
        rc = settle_left(pass, err);
    if (!rc)
        rc = tidy(pass, err);
    pass->count[CANCELLED] = cancelled.cancelled;
    pass->report.more |= cancelled.more;
    pass->report.handled = pass->count[PROCESSED] + pass->count[CANCELLED] + pass->count[SETTLED];
    atomic_store(&engine->budgets_walk_us, weft_clock_now(engine->clock) + WEFT_BUDGETS_WALK_US);
    weft_call_budget_next(&call, pass->arena);
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (!rc && rows.count > 0 && weft_out_budget_next(&rows)->next.set)
        pass->report.next_due_us = weft_out_budget_next(&rows)->next.value;
    return rc;
}
