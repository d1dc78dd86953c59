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
 * that after it had the lock (flow_settle.c). An upstream that ends from then on finds its edge
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
 * A replayed sibling runs: groups of joins that were decided before do not restart. A downstream
 * join that is decided later may cancel it again.
 */

#include "engine/flow/flow.h"

#include "base/id.h"

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
        bool anew = weft_get_i64(due, row, FLOW_DUE_OUT_ANEW);
        const struct weft_flow_due one = {
            .pending = weft_get_i64(due, row, FLOW_DUE_OUT_PENDING),
            .living = weft_get_i64(due, row, FLOW_DUE_OUT_LIVING) && !anew,
        };
        any |= weft_flow_unsettled(&one, round);
    }
    return any;
}

static void note_flow(struct weft_members *members, const struct weft_rows *rows, size_t row)
{
    struct weft_id id = weft_get_id(rows, row, FLOW_HOLD_OUT_ID);
    bool seen = weft_get_i64(rows, row, FLOW_HOLD_OUT_STATE) >= 0 &&
                weft_get(rows, row, FLOW_HOLD_OUT_DELETED)->null;
    for (size_t i = 0; i < members->count; i++)
        if (weft_id_cmp(&members->item[i].flow, &id) == 0) {
            members->item[i].seen = seen;
            members->item[i].cancels = (int)weft_get_i64(rows, row, FLOW_HOLD_OUT_CANCELS);
        }
}

/* Locks the flows, and asks by a later statement what is due in them. */
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
    struct weft_rows rows;
    weft_call_init(&call, tx->arena, WEFT_STMT_FLOWS_OF, count);
    for (size_t i = 0; i < count; i++)
        weft_set_id(&call, i, FLOWS_OF_IN_ID, &id[i]);
    *ret_members = (struct weft_members){0};
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    struct weft_members members = {
        .item = weft_new_array(tx->arena, struct weft_member, rows.count), .count = rows.count};
    for (size_t i = 0; i < rows.count; i++)
        members.item[i] = (struct weft_member){.id = weft_get_id(&rows, i, FLOWS_OF_OUT_ID),
                                               .flow = weft_get_id(&rows, i, FLOWS_OF_OUT_FLOW)};
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
    struct weft_rows rows[2];
    size_t count = 0;
    weft_call_init(&call[0], tx->arena, WEFT_STMT_JOINS_READ, members->count);
    weft_call_init(&call[1], tx->arena, WEFT_STMT_EDGES_AMONG, members->count);
    for (size_t i = 0; i < members->count; i++) {
        if (!members->item[i].wanted)
            continue;
        weft_set_id(&call[0], count, JOINS_READ_IN_ID, &members->item[i].id);
        weft_set_id(&call[1], count++, EDGES_AMONG_IN_ID, &members->item[i].id);
    }
    call[0].rows = call[1].rows = count;
    if (count == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_tx_run(tx, call, 2, rows, err);
    if (rc)
        return rc;
    for (size_t row = 0; row < rows[0].count; row++) {
        struct weft_id id = weft_get_id(&rows[0], row, JOINS_READ_OUT_ID);
        members->item[place_of(members, &id)].join = (struct weft_join_state){
            .join = (enum weft_join)weft_get_i64(&rows[0], row, JOINS_READ_OUT_POLICY),
            .k = (uint32_t)weft_get_i64(&rows[0], row, JOINS_READ_OUT_K),
            .total = (uint32_t)weft_get_i64(&rows[0], row, JOINS_READ_OUT_TOTAL),
            .succeeded = (uint32_t)weft_get_i64(&rows[0], row, JOINS_READ_OUT_SUCCEEDED),
            .failed = (uint32_t)weft_get_i64(&rows[0], row, JOINS_READ_OUT_FAILED),
        };
    }
    members->edge = weft_new_array(tx->arena, struct weft_replay_edge, rows[1].count + 1);
    members->edges = rows[1].count;
    for (size_t row = 0; row < rows[1].count; row++) {
        struct weft_id from = weft_get_id(&rows[1], row, EDGES_AMONG_OUT_UPSTREAM);
        struct weft_id to = weft_get_id(&rows[1], row, EDGES_AMONG_OUT_DOWNSTREAM);
        members->edge[row] = (struct weft_replay_edge){
            .from = place_of(members, &from),
            .to = place_of(members, &to),
            .state = (enum weft_edge_state)weft_get_i64(&rows[1], row, EDGES_AMONG_OUT_EDGE_STATE),
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
    struct weft_rows rows;
    size_t count = 0;
    weft_call_init(&call, tx->arena, WEFT_STMT_UPSTREAM_FAILED, members->count);
    for (size_t i = 0; i < members->count; i++)
        if (members->item[i].wanted && !members->item[i].replayed)
            weft_set_id(&call, count++, UPSTREAM_FAILED_IN_ID, &members->item[i].id);
    call.rows = count;
    enum weft_rc rc = count ? weft_tx_run(tx, &call, 1, &rows, err) : WEFT_OK;
    for (size_t row = 0; count && row < rows.count && !rc; row++) {
        struct weft_id id = weft_get_id(&rows, row, UPSTREAM_FAILED_OUT_ID);
        struct weft_member *member = weft_members_find(members, &id);
        member->upstream = weft_get_text(&rows, row, UPSTREAM_FAILED_OUT_NAME);
        member->upstream_state =
            (enum weft_state)weft_get_i64(&rows, row, UPSTREAM_FAILED_OUT_STATE);
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
    weft_set_id(call, row, NODES_REPLAY_IN_ID, &member->id);
    weft_set_i64(call, row, NODES_REPLAY_IN_SUCCEEDED, member->join.succeeded);
    weft_set_i64(call, row, NODES_REPLAY_IN_FAILED, member->join.failed);
    weft_set_i64(call, row, NODES_REPLAY_IN_FIRED,
                 member->waits ? WEFT_FIRED_NOT : WEFT_FIRED_SATISFIED);
    weft_set_i64(call, row, NODES_REPLAY_IN_AGAIN, member->waits ? member->cancels : -1);
}

static void put_edges(struct weft_tx *tx, const struct weft_members *members,
                      struct weft_call *call)
{
    size_t count = 0;
    weft_call_init(call, tx->arena, WEFT_STMT_EDGE_PUT, members->edges);
    for (size_t i = 0; i < members->edges; i++) {
        const struct weft_replay_edge *edge = &members->edge[i];
        if (!edge->opens)
            continue;
        weft_set_id(call, count, EDGE_PUT_IN_UPSTREAM, &members->item[edge->from].id);
        weft_set_id(call, count, EDGE_PUT_IN_DOWNSTREAM, &members->item[edge->to].id);
        weft_set_i64(call, count++, EDGE_PUT_IN_STATE, WEFT_EDGE_PENDING);
    }
    call->rows = count;
}

enum weft_rc weft_members_replayed(struct weft_tx *tx, const struct weft_members *members,
                                   struct weft_err *err)
{
    enum { HINT, NODES, EDGES, REOPEN, CALLS };
    struct weft_call call[CALLS];
    struct weft_id *flow = weft_new_array(tx->arena, struct weft_id, members->count + 1);
    size_t count = 0;
    weft_call_init(&call[HINT], tx->arena, WEFT_STMT_COMPLETION_ADD, members->count);
    weft_call_init(&call[NODES], tx->arena, WEFT_STMT_NODES_REPLAY, members->count);
    weft_set_i64(&call[HINT], 0, COMPLETION_ADD_IN_AT, tx->now_us);
    for (size_t i = 0; i < members->count; i++) {
        const struct weft_member *member = &members->item[i];
        if (!member->replayed)
            continue;
        weft_set_id(&call[HINT], count, COMPLETION_ADD_IN_FLOW, &member->flow);
        weft_set_id(&call[HINT], count, COMPLETION_ADD_IN_ID, &member->id);
        put_node(&call[NODES], count, member);
        flow[count++] = member->flow;
    }
    if (count == 0)
        return WEFT_OK;
    call[HINT].rows = call[NODES].rows = count;
    put_edges(tx, members, &call[EDGES]);
    count = weft_ids_sort(flow, count);
    weft_call_init(&call[REOPEN], tx->arena, WEFT_STMT_FLOW_REOPEN, count);
    for (size_t i = 0; i < count; i++)
        weft_set_id(&call[REOPEN], i, FLOW_REOPEN_IN_FLOW, &flow[i]);
    return weft_tx_run(tx, call, CALLS, NULL, err);
}
