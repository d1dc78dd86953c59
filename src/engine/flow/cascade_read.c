/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a hop of the cascade reads: the flows that it can lock, their completions, and the edges,
 * sinks and roots of these, up to a chunk. Nothing is decided and nothing is written.
 */

#include "engine/flow/cascade_read.h"

#include "base/arena.h"
#include "base/id.h"

#include <stdlib.h>

enum { CUTS = 2 }; /* of a hop: one of edges and one of roots */

/* ---- Locking --------------------------------------------------------------------------------- */

static void put_lock(struct weft_call *call, struct weft_arena *arena, const struct weft_id *flow,
                     size_t count)
{
    struct weft_flow_lock_in *in = weft_call_flow_lock(call, arena, count);
    for (size_t i = 0; i < count; i++)
        in->row[i].flow = flow[i];
}

static struct weft_flows_held held_of(const struct weft_rows *rows)
{
    return (struct weft_flows_held){.item = weft_out_flow_lock(rows), .count = rows->count};
}

enum weft_rc weft_flows_lock(struct weft_tx *tx, const struct weft_id *flow, size_t count,
                             struct weft_flows_held *ret_held, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    struct weft_id *sorted = weft_arena_dup(tx->arena, flow, count * sizeof(*flow));
    count = weft_ids_sort(sorted, count);
    put_lock(&call, tx->arena, sorted, count);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc)
        *ret_held = held_of(&rows);
    return rc;
}

static int by_flow(const void *key, const void *member)
{
    return weft_id_cmp(key, &((const struct weft_flow_lock_out *)member)->id);
}

const struct weft_flow_lock_out *weft_flows_find(const struct weft_flows_held *held,
                                                 const struct weft_id *flow)
{
    return bsearch(flow, held->item, held->count, sizeof(*held->item), by_flow);
}

/* ---- Looking --------------------------------------------------------------------------------- */

static struct weft_hop_join *joint_of(struct weft_hop *hop, const struct weft_id *id,
                                      const struct weft_id *flow)
{
    struct weft_hop_join *joint = weft_map_find(&hop->joints, id, sizeof(*id));
    if (joint)
        return joint;
    joint = weft_new(hop->tx->arena, struct weft_hop_join);
    joint->id = *id;
    joint->flow = weft_flows_find(&hop->held, flow);
    weft_map_put(&hop->joints, id, sizeof(*id), joint);
    hop->joint[hop->joint_count++] = joint;
    return joint;
}

static void read_joint(const struct weft_cascade_look_out *out, struct weft_hop_join *joint)
{
    joint->join = (struct weft_join_state){
        .join = out->policy,
        .k = out->k,
        .total = out->total,
        .succeeded = out->succeeded,
        .failed = out->failed,
    };
    joint->fired = out->fired;
    joint->let_run = out->let_run;
    joint->delay_us = out->delay;
    joint->run_at_us = out->run_at;
    joint->again = out->again;
}

static void count_edge(struct weft_hop_join *joint, enum weft_edge_state state, uint32_t by)
{
    if (state == WEFT_EDGE_SUCCEEDED)
        joint->join.succeeded += by;
    else if (state == WEFT_EDGE_FAILED)
        joint->join.failed += by;
}

static void look_at_edge(struct weft_hop *hop, const struct weft_cascade_look_out *out)
{
    enum weft_edge_state was = out->edge_state, now = weft_edge_of(out->upstream_state);
    size_t before = hop->joint_count;
    struct weft_hop_join *joint = joint_of(hop, &out->downstream.value, &out->flow);
    if (hop->joint_count > before)
        read_joint(out, joint);
    if (was == now)
        return;
    count_edge(joint, was, (uint32_t)-1);
    count_edge(joint, now, 1);
    weft_in_edge_put(&hop->edges)->row[hop->edges.rows++] = (struct weft_edge_put_item){
        .upstream = out->id, .downstream = out->downstream.value, .state = now};
}

/*
 * Looks at the node of a completion, at its first row. Where no edge leaves it, the node is a sink;
 * a completion that has a cursor never comes without one, because its hop saw that there was more.
 */
static void look_at_node(struct weft_hop *hop, const struct weft_cascade_look_out *out)
{
    enum weft_state state = out->upstream_state;
    bool sink = !out->downstream.set;
    bool bad = sink && weft_edge_of(state) == WEFT_EDGE_FAILED;
    if (bad != out->bad)
        weft_in_node_mark(&hop->marks)->row[hop->marks.rows++] =
            (struct weft_node_mark_item){.id = out->id, .bad = bad};
    if (!weft_state_living(state) && out->own_fired.set && out->own_fired.value == WEFT_FIRED_NOT)
        hop->dead[hop->dead_count++] = (struct weft_hop_dead){.id = out->id, .flow = out->flow};
}

/* Notes the position in a completion that is not finished. */
static void cut(struct weft_hop *hop, int64_t seq, const struct weft_id *cursor)
{
    weft_in_completion_cursor(&hop->cuts)->row[hop->cuts.rows++] =
        (struct weft_completion_cursor_item){.seq = seq, .cursor = *cursor};
}

/*
 * Lets the roots begin that are among the next nodes of a flow that was just made whole; false when
 * there may be more nodes. Nodes that are added to the flow meanwhile have begun by themselves.
 */
static enum weft_rc look_at_roots(struct weft_hop *hop, const struct weft_id *flow, int64_t seq,
                                  bool *ret_all, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    size_t chunk = weft_flow_chunk(hop->tx);
    *ret_all = false;
    if (hop->rooted) /* a chunk of them is enough for one transaction */
        return WEFT_OK;
    hop->rooted = true;
    *weft_call_flow_roots(&call, hop->tx->arena) =
        (struct weft_flow_roots_in){.seq = seq, .flow = *flow, .chunk = (int64_t)chunk};
    enum weft_rc rc = weft_tx_run(hop->tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    hop->joint_room += rows.count; /* more edges are still to come */
    struct weft_hop_join **wider =
        weft_new_array(hop->tx->arena, struct weft_hop_join *, hop->joint_room);
    for (size_t i = 0; i < hop->joint_count; i++)
        wider[i] = hop->joint[i];
    hop->joint = wider;
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_flow_roots_out *row = &weft_out_flow_roots(&rows)[i];
        if (i + 1 == chunk)
            cut(hop, seq, &row->id);
        if (!row->root)
            continue;
        struct weft_hop_join *joint = joint_of(hop, &row->id, flow);
        joint->delay_us = row->delay;
        joint->run_at_us = row->run_at;
        joint->again = -1;
    }
    *ret_all = rows.count < chunk;
    return WEFT_OK;
}

/*
 * Takes in at most a chunk of rows. A completion whose last row is among them is used up. An
 * execution may have two (it ended, was replayed and ended): the second waits for the next hop,
 * because its rows were read before the first one changed anything.
 */
static enum weft_rc collect(struct weft_hop *hop, const struct weft_rows *rows,
                            struct weft_err *err)
{
    struct weft_map met = {0}; /* upstreams */
    size_t chunk = weft_flow_chunk(hop->tx);
    enum weft_rc rc = WEFT_OK;
    bool skip = false;
    for (size_t row = 0; row < rows->count && row < chunk && !rc; row++) {
        const struct weft_cascade_look_out *out = &weft_out_cascade_look(rows)[row];
        bool last = row + 1 == rows->count || out[1].seq != out->seq;
        bool first = row == 0 || out[-1].seq != out->seq;
        bool all = last;
        if (first) {
            skip = weft_map_find(&met, &out->id, sizeof(out->id)) != NULL;
            weft_map_put(&met, &out->id, sizeof(out->id), hop);
        }
        if (skip)
            continue;
        bool roots = weft_id_cmp(&out->id, &out->flow) == 0;
        if (first && !roots)
            look_at_node(hop, out);
        if (roots)
            rc = look_at_roots(hop, &out->flow, out->seq, &all, err);
        else if (out->downstream.set)
            look_at_edge(hop, out);
        if (all) {
            hop->done_flow[hop->done_count] = out->flow;
            hop->done[hop->done_count++] = out->seq;
        } else if (!last && row + 1 == chunk) {
            cut(hop, out->seq, &out->downstream.value);
        }
    }
    weft_map_done(&met);
    return rc;
}

static void put_look(struct weft_call *call, const struct weft_tx *tx, const struct weft_id *flow,
                     size_t count)
{
    size_t chunk = weft_flow_chunk(tx), share = chunk / (count ? count : 1);
    struct weft_cascade_look_in *in = weft_call_cascade_look(call, tx->arena, count);
    for (size_t i = 0; i < count; i++)
        in->row[i].flow = flow[i];
    in->chunk = (int64_t)chunk;
    in->share = (int64_t)(share ? share : 1);
    call->most = chunk + 1; /* of all flows together; the last says that there is more */
}

/*
 * Locks the flows and reads the edges of their completions. Both statements travel together; the
 * second one sees all commits from before the first had its locks. If another replica has locked
 * one of the flows, the rows include flows that are not held: the held flows are read again.
 */
static enum weft_rc lock_and_look(struct weft_hop *hop, const struct weft_id *flow, size_t count,
                                  struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_arena *arena = hop->tx->arena;
    struct weft_id *sorted = weft_arena_dup(arena, flow, count * sizeof(*flow));
    struct weft_call call[2];
    struct weft_rows rows[2];
    count = weft_ids_sort(sorted, count);
    put_lock(&call[0], arena, sorted, count);
    put_look(&call[1], hop->tx, sorted, count);
    enum weft_rc rc = weft_tx_run(hop->tx, call, 2, rows, err);
    if (rc)
        return rc;
    hop->held = held_of(&rows[0]);
    *ret_rows = rows[1];
    if (hop->held.count == count || hop->held.count == 0)
        return WEFT_OK;
    for (size_t i = 0; i < hop->held.count; i++)
        sorted[i] = hop->held.item[i].id;
    put_look(&call[1], hop->tx, sorted, hop->held.count);
    return weft_tx_run(hop->tx, &call[1], 1, ret_rows, err);
}

enum weft_rc weft_hop_look(struct weft_hop *hop, const struct weft_id *flow, size_t count,
                           struct weft_err *err)
{
    struct weft_arena *arena = hop->tx->arena;
    struct weft_rows rows;
    enum weft_rc rc = lock_and_look(hop, flow, count, &rows, err);
    if (rc || hop->held.count == 0)
        return rc;
    hop->again = weft_new_array(arena, bool, hop->held.count);
    hop->alive = weft_new_array(arena, bool, hop->held.count);
    hop->cancelled = weft_new_array(arena, int64_t, hop->held.count);
    hop->joint_room = rows.count + 1;
    hop->joint = weft_new_array(arena, struct weft_hop_join *, hop->joint_room);
    weft_call_edge_put(&hop->edges, arena, rows.count);
    weft_call_node_mark(&hop->marks, arena, rows.count);
    weft_call_completion_cursor(&hop->cuts, arena, CUTS);
    hop->edges.rows = hop->marks.rows = hop->cuts.rows = 0;
    hop->dead = weft_new_array(arena, struct weft_hop_dead, rows.count + 1);
    hop->done = weft_new_array(arena, int64_t, rows.count + 1);
    hop->done_flow = weft_new_array(arena, struct weft_id, rows.count + 1);
    return collect(hop, &rows, err);
}
