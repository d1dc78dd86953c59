/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A step of the walk: finds executions of the subject, cancels, removes and scrubs them.
 *
 * What others write about an execution while the step is at work is decided by row locks. A signal,
 * a progress report, a suspend and the end of a lease need the lock of the living row; the cancel
 * takes that lock too and deletes the row. Whichever has it first is committed before the other
 * goes on: what came before the cancel is there when the step reads, because erase_take locks the
 * outcome in a later statement, and what comes behind it finds no living row and writes nothing.
 * From then on only a replay could write about the execution, and it waits for the lock of the
 * outcome, which the step holds until it has removed that row.
 *
 * A report of usage takes no living row, but the lock of its budgets, and reads behind it whether
 * the lease runs. Its charges are open until they are settled, and erase_take passes by executions
 * with open charges. One report may slip through: of a lease without any charge, that read "it
 * runs", and commits when the execution is gone. Its row of the ledger has an amount and an id that
 * leads nowhere, and goes with the period of its budget.
 */

#include "base/arena.h"
#include "base/id.h"
#include "base/limits.h"
#include "core/stored.h"
#include "engine/engine_state.h"
#include "engine/erase/erase.h"
#include "engine/flow/flow.h"
#include "engine/job/control.h"

#include <string.h>

enum { LOOK = WEFT_BATCH_MAX, ALONE_MOST = 250 };

/* What a step found, in a window of ids. */
struct found {
    struct weft_opt_id last; /* where the window ends; unset: nothing is left */
    const struct weft_erase_walk_out *row;
    size_t count;
    struct weft_erase_batches batches;
    struct weft_id *flow; /* that were deleted in this step */
    size_t flows;
    struct weft_id *id; /* to be removed or scrubbed */
    size_t ids;
};

/* ---- Looking --------------------------------------------------------------------------------- */

/* Ends the window with whichever look came less far; what lies behind is looked at again. */
static void set_window(struct found *found)
{
    struct weft_erase_batches *batches = &found->batches;
    const struct weft_id *last = batches->count ? &batches->row[batches->count - 1].id : NULL;
    if (last && (!found->last.set || (batches->full && weft_id_cmp(last, &found->last.value) < 0)))
        found->last = weft_some_id(*last);
    while (batches->count > 0 &&
           weft_id_cmp(&batches->row[batches->count - 1].id, &found->last.value) > 0)
        batches->count--;
    while (found->count > 0 && found->row[found->count - 1].id.set &&
           weft_id_cmp(&found->row[found->count - 1].id.value, &found->last.value) > 0)
        found->count--;
}

static enum weft_rc look(struct weft_erase *erase, struct found *found, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    bool alone = erase->engine->pool.writers == 1;
    *weft_call_erase_walk(&call, erase->arena) =
        (struct weft_erase_walk_in){.namespace = erase->row.namespace,
                                    .tenant = erase->tenant,
                                    .tag = erase->tag,
                                    .horizon = erase->row.asked,
                                    .after = erase->row.walked,
                                    .most = alone ? ALONE_MOST : LOOK};
    enum weft_rc rc = weft_tx_once(erase->engine, WEFT_TX_READ, &call, erase->arena, &rows, err);
    if (rc)
        return rc;
    *found = (struct found){.row = weft_out_erase_walk(&rows), .count = rows.count};
    found->last = found->row[0].last;
    found->flow = weft_new_array(erase->arena, struct weft_id, rows.count + 1);
    found->id = weft_new_array(erase->arena, struct weft_id, rows.count + 1);
    rc = weft_erase_batches_look(erase, &found->batches, err);
    if (!rc)
        set_window(found);
    return rc;
}

static bool is_deleted(const struct found *found, const struct weft_id *flow)
{
    for (size_t i = found->flows; i > 0; i--)
        if (weft_id_cmp(&found->flow[i - 1], flow) == 0)
            return true;
    return false;
}

/* ---- Flows of the subject alone -------------------------------------------------------------- */

static enum weft_rc is_shared(struct weft_erase *erase, const struct weft_id *flow,
                              bool *ret_shared, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_erase_shared(&call, erase->arena) =
        (struct weft_erase_shared_in){.flow = *flow,
                                      .namespace = erase->row.namespace,
                                      .tenant = erase->tenant,
                                      .tag = erase->tag,
                                      .horizon = erase->row.asked};
    enum weft_rc rc = weft_tx_once(erase->engine, WEFT_TX_READ, &call, erase->arena, &rows, err);
    *ret_shared = rc || weft_out_erase_shared(&rows)->shared;
    return rc;
}

/*
 * Whether it was submitted after the request. What came by SQL was created when it was taken in,
 * but its id tells when the application submitted it; within one millisecond the creation counts.
 */
static bool came_later(const struct weft_erase *erase, const struct weft_erase_walk_out *row)
{
    return row->later.set && row->later.value &&
           weft_id_time(&row->id.value) + WEFT_MS > erase->row.asked;
}

/* Sorts what was found: flows of the subject alone are deleted, the other rows are to be erased. */
static enum weft_rc sort_out(struct weft_erase *erase, struct found *found, struct weft_err *err)
{
    struct weft_id shared_flow = {0}; /* neighbours mostly share a flow */
    for (size_t i = 0; i < found->count; i++) {
        const struct weft_erase_walk_out *row = &found->row[i];
        if (!row->id.set)
            continue;
        if (came_later(erase, row)) {
            erase->row.later++;
            continue;
        }
        erase->row.found++;
        bool shared = true;
        enum weft_rc rc = WEFT_OK;
        if (row->flow.set && is_deleted(found, &row->flow.value))
            continue;
        if (row->flow.set && weft_id_cmp(&row->flow.value, &shared_flow) != 0)
            rc = is_shared(erase, &row->flow.value, &shared, err);
        if (!rc && !shared) {
            found->flow[found->flows++] = row->flow.value;
            rc = weft_erase_flow(erase, &row->flow.value, err);
        } else if (!rc) {
            found->id[found->ids++] = row->id.value;
            if (row->flow.set)
                shared_flow = row->flow.value;
        }
        if (rc)
            return rc;
    }
    return WEFT_OK;
}

/* ---- What lives ------------------------------------------------------------------------------ */

static enum weft_rc cancel(struct weft_erase *erase, const struct found *found,
                           struct weft_err *err)
{
    struct weft_steer *item = weft_new_array(erase->arena, struct weft_steer, found->count + 1);
    struct weft_steer_result *answer =
        weft_new_array(erase->arena, struct weft_steer_result, found->count + 1);
    size_t count = 0, next = 0;
    for (size_t i = 0; i < found->count && next < found->ids; i++) {
        const struct weft_erase_walk_out *row = &found->row[i];
        if (!row->id.set || weft_id_cmp(&row->id.value, &found->id[next]) != 0)
            continue;
        next++;
        if (row->living)
            item[count++] = (struct weft_steer){.id = row->id.value, .reason = WEFT_ERASE_REASON};
    }
    if (count == 0)
        return WEFT_OK;
    const struct weft_steering steering = {.kind = WEFT_STEER_CANCEL,
                                           .ns = erase->ns,
                                           .item = item,
                                           .count = count,
                                           .arena = erase->arena};
    enum weft_rc rc = weft_engine_steer(erase->engine, &steering, answer, err);
    for (size_t i = 0; i < count && !rc; i++)
        erase->count[WEFT_ERASE_CANCELLED] += answer[i].changed;
    return rc;
}

/* ---- What has ended -------------------------------------------------------------------------- */

struct step {
    struct weft_erase *erase;
    const struct found *found;
    struct weft_erase after; /* as the last try of the transaction leaves it, */
    bool more;               /* and whether the next step has the same window */
};

/* Adds up what retention_remove says. */
static void count_removed(struct weft_erase *erase, const struct weft_rows *rows)
{
    static const struct {
        int64_t what;
        enum weft_erase_count count;
    } tables[] = {
        {0, WEFT_ERASE_KEYS},
#define SIDE(table, TABLE, bit) {WEFT_HAS_##TABLE, WEFT_ERASE_##TABLE},
#include "core/tables.def"
    };
    const struct weft_retention_remove_out *row = weft_out_retention_remove(rows);
    for (size_t i = 0; i < rows->count; i++)
        for (size_t t = 0; t < WEFT_LEN(tables); t++)
            if (tables[t].what == row[i].what)
                erase->count[tables[t].count] += (uint64_t)row[i].removed;
}

static enum weft_rc remove_plain(struct weft_tx *tx, struct weft_erase *erase,
                                 const struct weft_rows *taken, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows gone = {0};
    const struct weft_erase_take_out *row = weft_out_erase_take(taken);
    struct weft_span_row *span = weft_new_array(tx->arena, struct weft_span_row, taken->count + 1);
    struct weft_retention_remove_in *in =
        weft_call_retention_remove(&call, tx->arena, taken->count);
    size_t count = 0;
    for (size_t i = 0; i < taken->count; i++) {
        if (row[i].flow.set)
            continue;
        span[count] = (struct weft_span_row){.id = row[i].id, .ns = row[i].namespace};
        in->row[count].id = row[i].id;
        in->row[count].has = row[i].has;
        in->row[count].namespace = row[i].namespace;
        in->row[count++].key = row[i].key;
    }
    call.rows = count;
    if (count == 0)
        return WEFT_OK;
    erase->count[WEFT_ERASE_REMOVED] += count;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &gone, err);
    if (!rc)
        count_removed(erase, &gone);
    return rc ? rc : weft_spans_remove(tx, span, count, err);
}

/* Notes of intake, which are about executions that it refused. */
static enum weft_rc remove_notes(struct weft_tx *tx, struct weft_erase *erase,
                                 const struct weft_rows *taken, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    if (erase->engine->pool.writers == 1) /* SQLite has no inbox */
        return WEFT_OK;
    struct weft_erase_notes_in *in = weft_call_erase_notes(&call, tx->arena, taken->count);
    for (size_t i = 0; i < taken->count; i++)
        in->row[i].id = weft_out_erase_take(taken)[i].id;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc)
        erase->count[WEFT_ERASE_NOTES] += (uint64_t)weft_out_erase_notes(&rows)->count;
    return rc;
}

static enum weft_rc scrub_members(struct weft_tx *tx, struct weft_erase *erase,
                                  const struct weft_rows *taken, struct weft_err *err)
{
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    const struct weft_erase_take_out *row = weft_out_erase_take(taken);
    struct weft_erase_blank_in *blank = weft_call_erase_blank(&call[0], tx->arena, taken->count);
    struct weft_erase_scrub_in *scrub = weft_call_erase_scrub(&call[1], tx->arena, taken->count);
    size_t count = 0;
    for (size_t i = 0; i < taken->count; i++)
        if (row[i].flow.set) {
            blank->row[count].id = row[i].id;
            scrub->row[count++].id = row[i].id;
        }
    call[0].rows = call[1].rows = count;
    if (count == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_tx_run(tx, call, 2, rows, err);
    if (!rc)
        erase->count[WEFT_ERASE_SCRUBBED] += (uint64_t)weft_out_erase_scrub(&rows[1])->count;
    return rc;
}

static enum weft_rc anonymize_ledger(struct weft_tx *tx, struct weft_erase *erase,
                                     const struct weft_rows *taken, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_erase_ledger_in *in = weft_call_erase_ledger(&call, tx->arena, taken->count);
    for (size_t i = 0; i < taken->count; i++)
        in->row[i].id = weft_out_erase_take(taken)[i].id;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc)
        erase->count[WEFT_ERASE_LEDGER] += (uint64_t)weft_out_erase_ledger(&rows)->count;
    return rc;
}

/* Locks the order; false when another replica has it, or has made this step. */
static enum weft_rc lock(struct weft_tx *tx, const struct weft_erase *erase, bool *ret_ours,
                         struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_erasure_lock(&call, tx->arena)->id = erase->row.id;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    const struct weft_erasure_read_out *now = weft_out_erasure_read(&rows);
    *ret_ours = !rc && rows.count == 1 && weft_id_cmp(&now->walked, &erase->row.walked) == 0 &&
                now->rounds == erase->row.rounds && now->phase == erase->row.phase &&
                strcmp(now->counts, erase->row.counts) == 0;
    return rc;
}

static enum weft_rc step_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct step *step = context;
    struct weft_erase *erase = &step->after;
    const struct found *found = step->found;
    struct weft_call call;
    struct weft_rows taken = {0};
    bool ours;
    *erase = *step->erase;
    step->more = false;
    enum weft_rc rc = lock(tx, step->erase, &ours, err);
    erase->locked = !ours;
    if (rc || !ours)
        return rc;
    struct weft_erase_take_in *in = weft_call_erase_take(&call, tx->arena, found->ids);
    for (size_t i = 0; i < found->ids; i++)
        in->row[i].id = found->id[i];
    if (found->ids > 0)
        rc = weft_tx_run(tx, &call, 1, &taken, err);
    if (!rc && taken.count > 0)
        rc = anonymize_ledger(tx, erase, &taken, err);
    if (!rc && taken.count > 0)
        rc = remove_plain(tx, erase, &taken, err);
    if (!rc && taken.count > 0)
        rc = remove_notes(tx, erase, &taken, err);
    if (!rc && taken.count > 0)
        rc = scrub_members(tx, erase, &taken, err);
    if (!rc)
        rc = weft_erase_batches_remove(tx, erase, &found->batches, &step->more, err);
    if (rc)
        return rc;
    if (found->last.set && !step->more)
        erase->row.walked = found->last.value;
    weft_erase_note(erase, &call, tx->arena);
    return weft_tx_run(tx, &call, 1, NULL, err);
}

enum weft_rc weft_erase_walk(struct weft_erase *erase, bool *ret_end, struct weft_err *err)
{
    struct found found;
    enum weft_rc rc = look(erase, &found, err);
    if (!rc)
        rc = sort_out(erase, &found, err);
    if (!rc)
        rc = cancel(erase, &found, err);
    if (rc)
        return rc;
    *ret_end = !found.last.set;
    if (*ret_end)
        return WEFT_OK;
    struct step step = {.erase = erase, .found = &found};
    struct weft_tx tx = {.engine = erase->engine, .arena = weft_arena_new()};
    rc = weft_tx_do(&tx, WEFT_TX_WRITE, step_body, &step, err);
    if (!rc) {
        *erase = step.after;
        if (!erase->locked)
            erase->row.counts = weft_erase_counts_text(erase, erase->arena);
    }
    weft_arena_free(tx.arena);
    if (rc || erase->locked || step.more) /* a batch of the window may not be marked yet */
        return rc;
    uint64_t flows = erase->count[WEFT_ERASE_FLOWS];
    rc = weft_erase_batches_delete(erase, &found.batches, err);
    return rc || erase->count[WEFT_ERASE_FLOWS] == flows ? rc : weft_erase_store(erase, err);
}
