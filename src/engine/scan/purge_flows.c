/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Removing flows, for the scanner `purge`. Members are kept as long as their flow, or its graph
 * would have holes. A flow is marked first, under its lock; from then on it is invisible, its
 * members cannot be replayed, and its key is free. Then its members are removed by the transaction
 * that locks them, and the flow last. A member is removed when no edge leaves it any more; a
 * transaction removes as many edges as members at most, so a member with more of them takes
 * several. A crash leaves the mark, and the next pass continues.
 */

#include "base/arena.h"
#include "base/id.h"
#include "engine/engine_state.h"
#include "engine/scan/purge.h"

/* ---- Looking --------------------------------------------------------------------------------- */

/* Flows that were deleted and have ended. */
static enum weft_rc mark_flows(const struct weft_pass *pass, size_t *ret_count,
                               struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_flows_deleted(&call, pass->arena)->scope = weft_pass_scope(pass);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_WRITE, &call, pass->arena, &rows, err);
    *ret_count = rows.count;
    return rc;
}

static enum weft_rc look_for_flows(const struct weft_pass *pass, struct weft_tombstones *ret_tombs,
                                   struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_flows_removing(&call, pass->arena)->scope = weft_pass_scope(pass);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    struct weft_id *id = weft_new_array(pass->arena, struct weft_id, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++)
        id[i] = weft_out_flows_removing(&rows)[i].id;
    *ret_tombs = (struct weft_tombstones){.id = id, .count = rows.count};
    return rc;
}

static enum weft_rc count_members(const struct weft_pass *pass, const struct weft_tombstones *tombs,
                                  size_t *ret_count, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_purge_left_in *in = weft_call_purge_left(&call, pass->arena, tombs->count);
    in->most = pass->config->batch;
    for (size_t i = 0; i < tombs->count; i++)
        in->row[i].flow = tombs->id[i];
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (!rc)
        *ret_count = (size_t)weft_out_purge_left(&rows)->count;
    return rc;
}

/* ---- Removing -------------------------------------------------------------------------------- */

/* The flows of one transaction. */
struct removal {
    struct weft_tx *tx;
    const struct weft_id *flow;
    size_t touched, whole; /* the first ones: it has looked at so many, and at all of so many */
    uint32_t most;         /* rows of a table */
    const struct weft_purge_take_out *taken;
    size_t count; /* of members that were taken */
};

static enum weft_rc take(struct removal *removal, size_t flows, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_purge_take_in *in = weft_call_purge_take(&call, removal->tx->arena, flows);
    in->batch = removal->most;
    for (size_t i = 0; i < flows; i++)
        in->row[i].flow = removal->flow[i];
    enum weft_rc rc = weft_tx_run(removal->tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    removal->taken = weft_out_purge_take(&rows);
    removal->count = rows.count;
    removal->touched = removal->whole = flows;
    if (rows.count < removal->most)
        return WEFT_OK;
    size_t last = 0; /* the batch ended in the midst of this one */
    while (last + 1 < flows &&
           weft_id_cmp(&removal->flow[last], &removal->taken[rows.count - 1].flow) != 0)
        last++;
    removal->touched = last + 1;
    removal->whole = last;
    return WEFT_OK;
}

/* Completions and groups. */
static enum weft_rc remove_hints(const struct removal *removal, struct weft_purged *purged,
                                 struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_purge_hints_in *in =
        weft_call_purge_hints(&call, removal->tx->arena, removal->touched);
    in->chunk = removal->most;
    for (size_t i = 0; i < removal->touched; i++)
        in->row[i].flow = removal->flow[i];
    enum weft_rc rc = weft_tx_run(removal->tx, &call, 1, &rows, err);
    if (!rc)
        purged->full |= weft_out_purge_hints(&rows)->more;
    return rc;
}

/* Edges first, then the members that none leaves any more. */
static enum weft_rc remove_members(const struct removal *removal, struct weft_purged *purged,
                                   struct weft_err *err)
{
    struct weft_arena *arena = removal->tx->arena;
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    struct weft_purge_edges_in *edge = weft_call_purge_edges(&call[0], arena, removal->count);
    struct weft_purge_members_in *in = weft_call_purge_members(&call[1], arena, removal->count);
    edge->chunk = removal->most;
    for (size_t i = 0; i < removal->count; i++) {
        edge->row[i].id = in->row[i].id = removal->taken[i].id;
        in->row[i].namespace = removal->taken[i].namespace;
    }
    enum weft_rc rc = weft_tx_run(removal->tx, call, 2, rows, err);
    if (rc)
        return rc;
    purged->edges = (size_t)weft_out_purge_edges(&rows[0])->removed;
    purged->members = rows[1].count;
    purged->full |= removal->count == removal->most || purged->edges >= removal->most;
    struct weft_span_row *gone = weft_new_array(arena, struct weft_span_row, rows[1].count + 1);
    const struct weft_purge_members_out *row = weft_out_purge_members(&rows[1]);
    for (size_t i = 0; i < rows[1].count; i++)
        gone[i] = (struct weft_span_row){.id = row[i].id, .ns = row[i].namespace};
    return weft_spans_remove(removal->tx, gone, rows[1].count, err);
}

static enum weft_rc remove_whole(const struct removal *removal, struct weft_purged *purged,
                                 struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_purge_flows_in *in =
        weft_call_purge_flows(&call, removal->tx->arena, removal->whole);
    for (size_t i = 0; i < removal->whole; i++)
        in->row[i].flow = removal->flow[i];
    enum weft_rc rc = weft_tx_run(removal->tx, &call, 1, &rows, err);
    purged->tombstones = rows.count;
    if (rc || rows.count == 0)
        return rc;
    struct weft_batches_orphaned_in *orphan =
        weft_call_batches_orphaned(&call, removal->tx->arena, rows.count);
    orphan->now = removal->tx->now_us;
    for (size_t i = 0; i < rows.count; i++)
        orphan->row[i].flow = weft_out_purge_flows(&rows)[i].id;
    return weft_tx_run(removal->tx, &call, 1, NULL, err);
}

static enum weft_rc remove_flows(struct weft_tx *tx, const struct weft_tombstones *tombs,
                                 uint32_t most, struct weft_purged *ret_purged,
                                 struct weft_err *err)
{
    struct removal removal = {.tx = tx, .flow = tombs->id, .most = most};
    enum weft_rc rc = take(&removal, tombs->count, err);
    if (!rc)
        rc = remove_hints(&removal, ret_purged, err);
    if (!rc && removal.count > 0)
        rc = remove_members(&removal, ret_purged, err);
    if (!rc && removal.whole > 0)
        rc = remove_whole(&removal, ret_purged, err);
    return rc;
}

const struct weft_purge_kind weft_purge_flows = {
    .mark = mark_flows,
    .look = look_for_flows,
    .remove = remove_flows,
    .left = count_members,
};
