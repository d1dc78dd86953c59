/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The end of a lease touches no budget. Behind its commit the leases that ended are settled here:
 * under the locks of their budgets, what they had reserved and not used becomes free. A lease is
 * settled once, because its rows of the ledger say that they were. What it used stays used, however
 * it ended.
 *
 * Executions that run under a budget whose hard limit cancels are cancelled by id, like any other
 * cancel, and never under the lock of the budget: a cancel waits for rows that a claim of that
 * budget may hold. Until all are cancelled the budget says `cancelling`, and claims take nothing.
 */

#include "engine/limit/settle.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/limits.h"
#include "engine/engine_state.h"
#include "engine/job/control.h"
#include "engine/limit/budget_rows.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

enum { BUDGETS_AT_ONCE = 16 }; /* that are looked at for executions to cancel */

/* ---- Settling -------------------------------------------------------------------------------- */

struct settling {
    const struct weft_lease_end *ended; /* sorted, each once */
    size_t count;
    /* Of the last try: */
    uint64_t settled;
    bool freed; /* a claim may find room, */
    bool full;  /* and found none before */
};

static int by_lease(const void *left, const void *right)
{
    const struct weft_lease *a = left, *b = right;
    int order = weft_id_cmp(&a->id, &b->id);
    return order ? order : (a->epoch > b->epoch) - (a->epoch < b->epoch);
}
static_assert(offsetof(struct weft_lease_end, lease) == 0, "by_lease() compares these too");

static enum weft_rc settle_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    enum { LOCK, SETTLE, CALLS };
    struct settling *all = context;
    struct weft_call call[CALLS];
    struct weft_rows rows[CALLS] = {0};
    struct weft_budget_lock_charged_in *lock =
        weft_call_budget_lock_charged(&call[LOCK], tx->arena, all->count);
    struct weft_settle_in *settle = weft_call_settle(&call[SETTLE], tx->arena, all->count);
    settle->now = tx->now_us;
    for (size_t i = 0; i < all->count; i++) {
        lock->row[i].id = settle->row[i].id = all->ended[i].lease.id;
        lock->row[i].epoch = settle->row[i].epoch = all->ended[i].lease.epoch;
    }
    all->settled = 0;
    all->freed = all->full = false;
    enum weft_rc rc = weft_tx_last(tx, call, CALLS, rows, err);
    for (size_t i = 0; i < rows[SETTLE].count && !rc; i++) {
        const struct weft_settle_out *row = &weft_out_settle(&rows[SETTLE])[i];
        all->settled += (uint64_t)row->settled;
        all->freed |= row->freed;
        all->full |= row->full;
    }
    return rc;
}

/* Wakes claims: of queues that were found closed here, and, for other replicas, of the queues that
 * the leases were of where their budgets were full. */
static void wake_claims(struct weft_engine *engine, const struct weft_lease_end *ended,
                        size_t count, bool full, struct weft_arena *arena)
{
    int32_t *queue = weft_new_array(arena, int32_t, count + 1);
    size_t queues = 0;
    for (size_t i = 0; i < count && full; i++)
        if (ended[i].queue && (queues == 0 || queue[queues - 1] != ended[i].queue))
            queue[queues++] = ended[i].queue;
    weft_budgets_opened(engine, queue, queues);
}

enum weft_rc weft_engine_settle(struct weft_engine *engine, const struct weft_lease_end *ended,
                                size_t count, uint64_t *ret_settled, struct weft_err *err)
{
    struct weft_arena *plan = weft_arena_new();
    struct weft_lease_end *sorted = weft_new_array(plan, struct weft_lease_end, count + 1);
    size_t kept = 0;
    uint64_t settled = 0;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count; i++)
        sorted[i] = ended[i];
    qsort(sorted, count, sizeof(*sorted), by_lease);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || by_lease(&sorted[kept - 1], &sorted[i]) != 0)
            sorted[kept++] = sorted[i];
    for (size_t at = 0; at < kept && !rc; at += WEFT_BATCH_MAX) {
        struct settling part = {.ended = sorted + at,
                                .count = kept - at < WEFT_BATCH_MAX ? kept - at : WEFT_BATCH_MAX};
        struct weft_tx tx = {.engine = engine, .arena = weft_arena_new(), .repeatable = true};
        rc = weft_tx_do(&tx, WEFT_TX_HOT, settle_body, &part, err);
        if (!rc && part.freed)
            wake_claims(engine, part.ended, part.count, part.full, tx.arena);
        settled += rc ? 0 : part.settled;
        weft_arena_free(tx.arena);
    }
    weft_arena_free(plan);
    if (ret_settled)
        *ret_settled = settled;
    return rc;
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

/* Ids of executions that run under a budget, each once. */
static enum weft_rc find_running(struct weft_engine *engine,
                                 const struct weft_budgets_cancelling_out *budget, uint32_t most,
                                 struct weft_arena *arena, struct weft_id **ret_id,
                                 size_t *ret_count, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_charges_running(&call, arena) =
        (struct weft_charges_running_in){.budget = budget->id, .most = most};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    struct weft_id *id = weft_new_array(arena, struct weft_id, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++)
        id[i] = weft_out_charges_running(&rows)[i].id;
    *ret_id = id;
    *ret_count = weft_ids_sort(id, rows.count);
    return rc;
}

static enum weft_rc cancel_running(struct weft_engine *engine,
                                   const struct weft_budgets_cancelling_out *budget,
                                   const struct weft_id *id, size_t count, struct weft_arena *arena,
                                   uint64_t *cancelled, struct weft_err *err)
{
    struct weft_steer *item = weft_new_array(arena, struct weft_steer, count + 1);
    struct weft_steer_result *answer = weft_new_array(arena, struct weft_steer_result, count + 1);
    struct weft_id_list space = {.id = weft_new_array(arena, int32_t, 1), .count = 1};
    space.id[0] = budget->namespace;
    enum weft_rc rc = weft_load_names(engine, &space, err);
    if (rc)
        return rc;
    const char *reason = weft_arena_printf(arena, "budget '%s' is used up", budget->name);
    for (size_t i = 0; i < count; i++)
        item[i] = (struct weft_steer){.id = id[i], .reason = reason};
    const struct weft_steering steering = {.kind = WEFT_STEER_CANCEL,
                                           .ns = weft_find_name(engine, budget->namespace),
                                           .item = item,
                                           .count = count,
                                           .arena = arena};
    rc = weft_engine_steer(engine, &steering, answer, err);
    for (size_t i = 0; i < count && !rc; i++)
        *cancelled += answer[i].changed;
    return rc;
}

static enum weft_rc cancel_done(struct weft_engine *engine,
                                const struct weft_budgets_cancelling_out *budget,
                                struct weft_arena *arena, struct weft_err *err)
{
    struct weft_call call;
    *weft_call_cancelling_done(&call, arena) =
        (struct weft_cancelling_done_in){.id = budget->id, .hard_at = budget->hard_at};
    return weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
}

enum weft_rc weft_engine_budget_cancel(struct weft_engine *engine, uint32_t most,
                                       struct weft_budget_cancelled *ret_cancelled,
                                       struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    *ret_cancelled = (struct weft_budget_cancelled){0};
    weft_call_budgets_cancelling(&call, arena)->most = BUDGETS_AT_ONCE;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    bool left = rows.count == BUDGETS_AT_ONCE, moved = false;
    for (size_t i = 0; i < rows.count && !rc; i++) {
        const struct weft_budgets_cancelling_out *budget = &weft_out_budgets_cancelling(&rows)[i];
        uint64_t before = ret_cancelled->cancelled;
        struct weft_id *id;
        size_t count;
        rc = find_running(engine, budget, most, arena, &id, &count, err);
        if (!rc && count == 0)
            rc = cancel_done(engine, budget, arena, err);
        else if (!rc)
            rc = cancel_running(engine, budget, id, count, arena, &ret_cancelled->cancelled, err);
        left |= !rc && count > 0;
        moved |= !rc && (count == 0 || ret_cancelled->cancelled > before);
    }
    /* Where nothing could be done, doing it again at once would not help: a pass comes later. */
    ret_cancelled->more = !rc && left && moved;
    weft_arena_free(arena);
    return rc;
}
