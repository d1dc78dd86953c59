/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replays of members of flows.
 *
 * Under the lock of the flow, which is taken before any outcome, the join of a replayed member
 * decides by the current state of its upstreams: satisfied, the member is ready; open, because an
 * upstream lives or is replayed by the same call, the member is blocked; impossible, the replay is
 * refused, and the caller learns which upstream is the reason, unless it forces the replay.
 *
 * The counts of the join show the state of the upstreams, because no hop is due: the call checked
 * that after it had the lock (flow_hold.c). An upstream that ends from then on finds its edge
 * pending, and the hop that locks the flow after this call resolves it. Completions that keep
 * arriving in a living flow do no harm: an upstream that has ended and still counts as living only
 * makes the member wait for the hop that is due. A replay that is still propagating would do harm:
 * its upstreams live, but their edges are still failed. So the call always waits for that.
 *
 * The members that a call replays are the largest set in which no join is impossible: start with
 * all wanted members, count edges between them as pending, and remove members with impossible
 * joins, whose edges then count with their stored state, until none is left. Removing one never
 * makes another possible, so the order does not matter. Members that a call handles in several
 * transactions, or a filter in several pages, are tried again while that replays more of them
 * (control.c).
 *
 * This transaction makes the edges between replayed members pending and corrects the counts of
 * their joins: no hop can evaluate a join by an upstream that was replayed with it. A completion
 * per member makes the cascade check the other edges: they become pending again, and nodes that
 * were skipped only because of the member are blocked again. A downstream join that was satisfied
 * stays so, unless its own member is replayed. The flow is open until its last member ends.
 *
 * A flow that is a batch has counts of its own, which were made final with its end: they are so no
 * more (batches_thaw).
 *
 * A replayed sibling runs: groups of joins that were decided before do not restart. A downstream
 * join that is decided later may cancel it again.
 */

#include "engine/flow/flow_replay.h"

#include "base/arena.h"
#include "base/id.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade_read.h"
#include "engine/flow/flow_hold.h"

#include <stdlib.h>

static int by_id(const void *left, const void *right)
{
    return weft_id_cmp(&((const struct weft_member *)left)->id,
                       &((const struct weft_member *)right)->id);
}

struct weft_member *weft_members_find(const struct weft_members *members, const struct weft_id *id)
{
    const struct weft_member key = {.id = *id};
    return members->count
               ? bsearch(&key, members->item, members->count, sizeof(*members->item), by_id)
               : NULL;
}

/* ---- Locking --------------------------------------------------------------------------------- */

/* Whether hops must run before a decision about members of one of the flows. */
static bool unsettled(const struct weft_rows *due, unsigned round)
{
    bool any = false;
    for (size_t row = 0; row < due->count; row++) {
        struct weft_flow_due_out one = weft_out_flow_due(due)[row];
        one.living &= !one.anew;
        any |= weft_flow_unsettled(&one, round);
    }
    return any;
}

static void note_flow(struct weft_members *members, const struct weft_rows *rows, size_t row)
{
    const struct weft_flow_hold_out *out = &weft_out_flow_hold(rows)[row];
    bool seen = out->state >= 0 && !out->deleted.set;
    for (size_t i = 0; i < members->count; i++)
        if (weft_id_cmp(&members->item[i].flow, &out->id) == 0) {
            members->item[i].seen = seen;
            members->item[i].cancels = out->cancels;
        }
}

/* Locks the flows, and reads by a later statement which hops are due. */
static enum weft_rc hold_flows(struct weft_tx *tx, struct weft_members *members, unsigned round,
                               struct weft_err *err)
{
    struct weft_flow_rows held;
    struct weft_id *flow = weft_new_array(tx->arena, struct weft_id, members->count);
    for (size_t i = 0; i < members->count; i++)
        flow[i] = members->item[i].flow;
    size_t count = weft_ids_sort(flow, members->count);
    enum weft_rc rc = weft_flows_hold(tx, flow, count, &held, err);
    if (rc)
        return rc;
    for (size_t row = 0; row < held.flow.count; row++)
        note_flow(members, &held.flow, row);
    members->unsettled = unsettled(&held.due, round);
    return WEFT_OK;
}

enum weft_rc weft_members_hold(struct weft_tx *tx, const struct weft_id *id, size_t count,
                               unsigned round, struct weft_members *ret_members,
                               struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_flows_of_in *in = weft_call_flows_of(&call, tx->arena, count);
    for (size_t i = 0; i < count; i++)
        in->row[i].id = id[i];
    *ret_members = (struct weft_members){0};
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    struct weft_members members = {
        .item = weft_new_array(tx->arena, struct weft_member, rows.count), .count = rows.count};
    const struct weft_flows_of_out *row = weft_out_flows_of(&rows);
    for (size_t i = 0; i < rows.count; i++)
        members.item[i] = (struct weft_member){.id = row[i].id, .flow = row[i].flow};
    qsort(members.item, members.count, sizeof(*members.item), by_id);
    *ret_members = members;
    return hold_flows(tx, ret_members, round, err);
}

/* ---- Judging --------------------------------------------------------------------------------- */

static int by_from(const void *left, const void *right)
{
    uint32_t a = ((const struct weft_replay_edge *)left)->from;
    uint32_t b = ((const struct weft_replay_edge *)right)->from;
    return (a > b) - (a < b);
}

static uint32_t place_of(const struct weft_members *members, const struct weft_id *id)
{
    return (uint32_t)(weft_members_find(members, id) - members->item);
}

/* Reads the joins of the wanted members and the resolved edges between these. */
static enum weft_rc read_joins(struct weft_tx *tx, struct weft_members *members,
                               struct weft_err *err)
{
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    size_t count = 0;
    struct weft_joins_read_in *read = weft_call_joins_read(&call[0], tx->arena, members->count);
    struct weft_edges_among_in *among = weft_call_edges_among(&call[1], tx->arena, members->count);
    for (size_t i = 0; i < members->count; i++) {
        if (!members->item[i].wanted)
            continue;
        read->row[count].id = members->item[i].id;
        among->row[count++].id = members->item[i].id;
    }
    call[0].rows = call[1].rows = count;
    if (count == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_tx_run(tx, call, 2, rows, err);
    if (rc)
        return rc;
    for (size_t row = 0; row < rows[0].count; row++) {
        const struct weft_joins_read_out *out = &weft_out_joins_read(&rows[0])[row];
        members->item[place_of(members, &out->id)].join = (struct weft_join_state){
            .join = out->policy,
            .k = out->k,
            .total = out->total,
            .succeeded = out->succeeded,
            .failed = out->failed,
        };
    }
    members->edge = weft_new_array(tx->arena, struct weft_replay_edge, rows[1].count + 1);
    members->edges = rows[1].count;
    for (size_t row = 0; row < rows[1].count; row++) {
        const struct weft_edges_among_out *found = &weft_out_edges_among(&rows[1])[row];
        members->edge[row] = (struct weft_replay_edge){
            .from = place_of(members, &found->upstream),
            .to = place_of(members, &found->downstream),
            .state = found->edge_state,
        };
    }
    if (members->edges > 1)
        qsort(members->edge, members->edges, sizeof(*members->edge), by_from);
    return WEFT_OK;
}

/* The edge is pending while both of its ends are replayed, and counts as it was otherwise. */
static void set_opens(struct weft_members *members, struct weft_replay_edge *edge, bool opens)
{
    struct weft_join_state *join = &members->item[edge->to].join;
    uint32_t *count = edge->state == WEFT_EDGE_SUCCEEDED ? &join->succeeded : &join->failed;
    if (edge->opens == opens)
        return;
    edge->opens = opens;
    *count = opens ? *count - 1 : *count + 1;
}

static bool impossible(const struct weft_member *member)
{
    return member->replayed && !member->force &&
           weft_join_judge(&member->join) == WEFT_JOIN_IMPOSSIBLE;
}

/* Takes out members whose join is impossible until there is none: see the head. */
static void choose(struct weft_members *members, struct weft_arena *arena)
{
    size_t *first = weft_new_array(arena, size_t, members->count + 1);
    for (size_t i = 0, edge = 0; i <= members->count; i++) {
        while (edge < members->edges && members->edge[edge].from < i)
            edge++;
        first[i] = edge;
    }
    for (size_t i = 0; i < members->edges; i++)
        set_opens(members, &members->edge[i], true);
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < members->count; i++) {
            if (!impossible(&members->item[i]))
                continue;
            members->item[i].replayed = false;
            changed = true;
            for (size_t edge = first[i]; edge < first[i + 1]; edge++)
                set_opens(members, &members->edge[edge], false);
        }
    }
    /* An edge that leads to a member which is not replayed stays as it is. */
    for (size_t i = 0; i < members->edges; i++)
        if (!members->item[members->edge[i].to].replayed)
            set_opens(members, &members->edge[i], false);
}

/* Names an upstream that stands in the way of each member that was taken out. */
static enum weft_rc name_upstreams(struct weft_tx *tx, struct weft_members *members,
                                   struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    size_t count = 0;
    struct weft_upstream_failed_in *in =
        weft_call_upstream_failed(&call, tx->arena, members->count);
    for (size_t i = 0; i < members->count; i++)
        if (members->item[i].wanted && !members->item[i].replayed)
            in->row[count++].id = members->item[i].id;
    call.rows = count;
    enum weft_rc rc = count ? weft_tx_run(tx, &call, 1, &rows, err) : WEFT_OK;
    for (size_t row = 0; count && row < rows.count && !rc; row++) {
        const struct weft_upstream_failed_out *out = &weft_out_upstream_failed(&rows)[row];
        struct weft_member *member = weft_members_find(members, &out->id);
        member->upstream = out->name;
        member->upstream_state = out->state.value;
    }
    return rc;
}

enum weft_rc weft_members_judge(struct weft_tx *tx, struct weft_members *members,
                                struct weft_err *err)
{
    enum weft_rc rc = members->count ? read_joins(tx, members, err) : WEFT_OK;
    if (rc)
        return rc;
    for (size_t i = 0; i < members->count; i++)
        members->item[i].replayed = members->item[i].wanted;
    choose(members, tx->arena);
    for (size_t i = 0; i < members->count; i++) {
        struct weft_member *member = &members->item[i];
        member->waits = member->replayed && weft_join_judge(&member->join) == WEFT_JOIN_PENDING;
    }
    return name_upstreams(tx, members, err);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_node(struct weft_call *call, size_t row, const struct weft_member *member)
{
    struct weft_nodes_replay_item *item = &weft_in_nodes_replay(call)->row[row];
    item->id = member->id;
    item->succeeded = member->join.succeeded;
    item->failed = member->join.failed;
    item->fired = member->waits ? WEFT_FIRED_NOT : WEFT_FIRED_SATISFIED;
    item->again = member->waits ? member->cancels : -1;
}

static void put_edges(struct weft_tx *tx, const struct weft_members *members,
                      struct weft_call *call)
{
    size_t count = 0;
    struct weft_edge_put_in *in = weft_call_edge_put(call, tx->arena, members->edges);
    for (size_t i = 0; i < members->edges; i++) {
        const struct weft_replay_edge *edge = &members->edge[i];
        if (!edge->opens)
            continue;
        in->row[count].upstream = members->item[edge->from].id;
        in->row[count].downstream = members->item[edge->to].id;
        in->row[count++].state = WEFT_EDGE_PENDING;
    }
    call->rows = count;
}

enum weft_rc weft_members_replayed(struct weft_tx *tx, const struct weft_members *members,
                                   struct weft_err *err)
{
    enum { HINT, NODES, EDGES, THAW, REOPEN, CALLS };
    struct weft_call call[CALLS];
    struct weft_id *flow = weft_new_array(tx->arena, struct weft_id, members->count + 1);
    size_t count = 0;
    struct weft_completion_add_in *hint =
        weft_call_completion_add(&call[HINT], tx->arena, members->count);
    weft_call_nodes_replay(&call[NODES], tx->arena, members->count);
    hint->at = tx->now_us;
    for (size_t i = 0; i < members->count; i++) {
        const struct weft_member *member = &members->item[i];
        if (!member->replayed)
            continue;
        hint->row[count].flow = member->flow;
        hint->row[count].id = member->id;
        put_node(&call[NODES], count, member);
        flow[count++] = member->flow;
    }
    if (count == 0)
        return WEFT_OK;
    call[HINT].rows = call[NODES].rows = count;
    put_edges(tx, members, &call[EDGES]);
    count = weft_ids_sort(flow, count);
    struct weft_batches_thaw_in *thaw = weft_call_batches_thaw(&call[THAW], tx->arena, count);
    struct weft_flow_reopen_in *reopen = weft_call_flow_reopen(&call[REOPEN], tx->arena, count);
    for (size_t i = 0; i < count; i++)
        reopen->row[i].flow = thaw->row[i].flow = flow[i];
    return weft_tx_run(tx, call, CALLS, NULL, err);
}
