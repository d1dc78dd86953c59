/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Removing flows. Members are kept as long as their flow, or its graph would have holes. A flow is
 * marked first, under its lock; from then on it is invisible, its members cannot be replayed, and
 * its key is free. Then its members are removed in chunks, each in its own transaction, and the
 * flow last. A member is removed when no edge leaves it any more; a transaction removes at most
 * WEFT_FLOW_CHUNK edges, so a member with more of them takes several. A crash leaves the mark, and
 * the next pass continues.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade_read.h"
#include "engine/scan/scan.h"

enum { CHUNK = 250 }; /* members of one transaction: their payloads go with them */

struct erase_call {
    const struct weft_id *flow;
    /* What the transaction did. */
    bool held, gone;
    uint64_t members;
};

static enum weft_rc erase_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct erase_call *erase = context;
    struct weft_flows_held held;
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    *erase = (struct erase_call){.flow = erase->flow};
    enum weft_rc rc = weft_flows_lock(tx, erase->flow, 1, &held, err);
    if (rc || held.count == 0 || held.item[0].state != WEFT_FLOW_REMOVING)
        return rc;
    erase->held = true;
    *weft_call_graph_remove(&call[0], tx->arena) = (struct weft_graph_remove_in){
        .flow = *erase->flow, .members = CHUNK, .chunk = (int64_t)weft_flow_chunk(tx)};
    *weft_call_members_remove(&call[1], tx->arena) =
        (struct weft_members_remove_in){.flow = *erase->flow, .chunk = CHUNK};
    rc = weft_tx_run(tx, call, 2, rows, err);
    if (rc)
        return rc;
    erase->members = rows[1].count;
    struct weft_span_row *gone = weft_new_array(tx->arena, struct weft_span_row, rows[1].count + 1);
    const struct weft_members_remove_out *row = weft_out_members_remove(&rows[1]);
    for (size_t i = 0; i < rows[1].count; i++)
        gone[i] = (struct weft_span_row){.id = row[i].id, .ns = row[i].namespace};
    rc = weft_spans_remove(tx, gone, rows[1].count, err);
    if (rc)
        return rc;
    erase->gone = erase->members < CHUNK && !weft_out_graph_remove(&rows[0])->more;
    if (!erase->gone)
        return WEFT_OK;
    weft_call_flow_erase(&call[0], tx->arena)->flow = *erase->flow;
    return weft_tx_run(tx, call, 1, NULL, err);
}

static enum weft_rc erase_flow(const struct weft_pass *pass, const struct weft_id *flow,
                               struct weft_erased *erased, struct weft_err *err)
{
    struct erase_call erase = {.flow = flow, .held = true};
    enum weft_rc rc = WEFT_OK;
    while (erase.held && !erase.gone && !rc && !weft_flow_pass_late(pass)) {
        struct weft_tx tx = {.engine = pass->engine, .arena = weft_arena_new()};
        weft_usec began_us = weft_boot_us();
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, erase_body, &erase, err);
        weft_arena_free(tx.arena);
        if (rc)
            return rc;
        erased->members += erase.members;
        erased->flows += erase.gone;
        if (!erase.gone) /* removal is not urgent: other transactions run in the pause */
            weft_pass_rest((weft_boot_us() - began_us) / 2);
    }
    erased->skipped_locked += !erase.held;
    erased->more |= erase.held && !erase.gone;
    return rc;
}

enum weft_rc weft_flows_erase(const struct weft_pass *pass, struct weft_erased *ret_erased,
                              struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_flows_removing(&call, pass->arena)->scope = weft_pass_scope(pass);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    for (size_t i = 0; i < rows.count && !rc; i++)
        rc = erase_flow(pass, &weft_out_flows_removing(&rows)[i].id, ret_erased, err);
    if (!rc && rows.count == pass->config->batch)
        ret_erased->more = true;
    return rc;
}

/* ---- Retention ------------------------------------------------------------------------------- */

/* How long a flow is kept: as an execution with that end and default settings. */
static weft_usec keeps(enum weft_flow_state state)
{
    static const enum weft_state like[] = {
        [WEFT_FLOW_SUCCEEDED] = WEFT_STATE_SUCCEEDED,
        [WEFT_FLOW_FAILED] = WEFT_STATE_FAILED,
        [WEFT_FLOW_CANCELLED] = WEFT_STATE_CANCELLED,
    };
    const struct weft_rules none = {0};
    return weft_policy_keeps(&none, 0, like[state]);
}

/* Marks flows that are deleted or past their retention. */
static enum weft_rc mark(const struct weft_pass *pass, struct weft_err *err)
{
    static const enum weft_flow_state ended[] = {WEFT_FLOW_SUCCEEDED, WEFT_FLOW_FAILED,
                                                 WEFT_FLOW_CANCELLED};
    struct weft_call call;
    weft_usec now_us = weft_clock_now(pass->engine->clock);
    struct weft_flows_kept_in *kept = weft_call_flows_kept(&call, pass->arena, WEFT_LEN(ended));
    for (size_t i = 0; i < WEFT_LEN(ended); i++) {
        kept->row[i].state = ended[i];
        kept->row[i].until = now_us - keeps(ended[i]);
    }
    kept->scope = weft_pass_scope(pass);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_WRITE, &call, pass->arena, NULL, err);
    if (rc)
        return rc;
    weft_call_flows_deleted(&call, pass->arena)->scope = weft_pass_scope(pass);
    return weft_tx_once(pass->engine, WEFT_TX_WRITE, &call, pass->arena, NULL, err);
}

enum weft_rc weft_flows_retire(const struct weft_pass *pass, struct weft_erased *ret_erased,
                               struct weft_err *err)
{
    enum weft_rc rc = mark(pass, err);
    return rc ? rc : weft_flows_erase(pass, ret_erased, err);
}
