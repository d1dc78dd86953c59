/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cascade: what the end of a member means for those that come after it.
 *
 * A completion is a hint to look. Under the lock of the flow, a hop compares the edges that leave
 * the execution with what the execution is now: an edge mirrors its upstream, so resolving one
 * twice changes nothing, and a replay makes edges pending again by the same rule. The joins behind
 * those edges are judged anew. A join fires once: satisfied, its node may begin; impossible, its
 * node is skipped, which ends it and leaves a completion of its own, for a later hop. A node that
 * was skipped is blocked again when its join is open again. A join that was satisfied stays so. In
 * a flow that is cancelled nothing begins and nothing is skipped: whatever a join says, its node is
 * cancelled, as it would have been if the drain had come to it first.
 *
 * A hop is one transaction over at most WEFT_FLOW_CHUNK edges, of any number of flows; a larger
 * fan-out takes several, and its completion remembers how far they came. So do the nodes of a flow
 * that was written in parts, whose roots are let go a chunk of nodes at a time. A completion is
 * deleted in the transaction that resolved its last edge: a crash between any two hops loses
 * nothing.
 *
 * How a flow ended is told by its sinks, the nodes that nothing comes after. A hop that looks at a
 * completion marks its node when it is a sink that did not succeed, and unmarks it when it is not
 * so any more: it was replayed, or something was added behind it, and both leave a completion. So
 * the end of a flow, of whatever size, is found by three looks at the first row of an index.
 *
 * Nothing is missed: whoever could not get the lock of a flow had committed its completion, or its
 * group of siblings, before it tried, and the holder looks for both again after its own commit.
 */

#include "engine/flow.h"

#include "base/id.h"
#include "base/map.h"

#include <stdlib.h>

enum { FLOWS_AT_ONCE = 256 }; /* of one hop */

/* A node that a hop looks at: its join as it is, with what the hop changes. */
struct joint {
    struct weft_id id;
    struct weft_flow_held *flow;
    struct weft_join_state join;
    enum weft_fired fired;
    bool let_run;
    weft_usec delay_us, run_at_us;
    bool fires;      /* in this hop */
    bool comes_back; /* it was skipped and is not any more */
};

struct edge_change {
    struct weft_id upstream, downstream;
    enum weft_edge_state state;
};

/* A node that becomes, or ceases to be, a sink that did not succeed. */
struct mark_change {
    struct weft_id id;
    bool bad;
};

/* How far a hop came with a completion that is not used up. */
struct cut {
    int64_t seq;
    struct weft_id cursor;
};
enum { CUTS = 2 }; /* one of edges and one of roots */

struct hop {
    struct weft_tx *tx;
    struct weft_flows_held held;
    bool *again;            /* per flow: its completions stay for another hop */
    bool *alive;            /* per flow: something began, so it is not over */
    int64_t *cancelled;     /* per flow: nodes that went because it is cancelled */
    struct weft_map joints; /* id -> joint */
    struct joint **joint;   /* in the order they were met */
    size_t joint_count, joint_room;
    struct edge_change *edge;
    size_t edge_count;
    struct mark_change *mark;
    size_t mark_count;
    int64_t *done; /* numbers of completions that are used up */
    struct weft_id *done_flow;
    size_t done_count;
    struct cut cut[CUTS]; /* completions that the next hop goes on with */
    size_t cut_count;
    bool rooted; /* it lets roots begin: those of one flow are enough */
    struct weft_changes changes;
    struct weft_id *ended; /* flows */
    size_t ended_count;
};

/* ---- Locking --------------------------------------------------------------------------------- */

static int by_id(const void *left, const void *right)
{
    return weft_id_cmp(left, right);
}

size_t weft_ids_sort(struct weft_id *id, size_t count)
{
    size_t kept = 0;
    if (count > 1)
        qsort(id, count, sizeof(*id), by_id);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || weft_id_cmp(&id[kept - 1], &id[i]) != 0)
            id[kept++] = id[i];
    return kept;
}

static void put_lock(struct weft_call *call, struct weft_arena *arena, const struct weft_id *flow,
                     size_t count)
{
    weft_call_init(call, arena, WEFT_STMT_FLOW_LOCK, count);
    for (size_t i = 0; i < count; i++)
        weft_set_id(call, i, FLOW_LOCK_IN_FLOW, &flow[i]);
}

static struct weft_flows_held read_held(const struct weft_rows *rows, struct weft_arena *arena)
{
    struct weft_flow_held *item = weft_new_array(arena, struct weft_flow_held, rows->count + 1);
    for (size_t i = 0; i < rows->count; i++)
        item[i] = (struct weft_flow_held){
            .id = weft_get_id(rows, i, FLOW_LOCK_OUT_ID),
            .state = (int)weft_get_i64(rows, i, FLOW_LOCK_OUT_STATE),
            .cancel = (int)weft_get_i64(rows, i, FLOW_LOCK_OUT_CANCEL),
            .reason = weft_get_text(rows, i, FLOW_LOCK_OUT_REASON),
        };
    return (struct weft_flows_held){.item = item, .count = rows->count};
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
        *ret_held = read_held(&rows, tx->arena);
    return rc;
}

static int by_flow(const void *key, const void *member)
{
    return weft_id_cmp(key, &((const struct weft_flow_held *)member)->id);
}

struct weft_flow_held *weft_flows_find(const struct weft_flows_held *held,
                                       const struct weft_id *flow)
{
    return bsearch(flow, held->item, held->count, sizeof(*held->item), by_flow);
}

/* ---- Looking --------------------------------------------------------------------------------- */

static struct joint *joint_of(struct hop *hop, const struct weft_id *id, const struct weft_id *flow)
{
    struct joint *joint = weft_map_find(&hop->joints, id, sizeof(*id));
    if (joint)
        return joint;
    joint = weft_new(hop->tx->arena, struct joint);
    joint->id = *id;
    joint->flow = weft_flows_find(&hop->held, flow);
    weft_map_put(&hop->joints, id, sizeof(*id), joint);
    hop->joint[hop->joint_count++] = joint;
    return joint;
}

static void read_joint(const struct weft_rows *rows, size_t row, struct joint *joint)
{
    joint->join = (struct weft_join_state){
        .join = (enum weft_join)weft_get_i64(rows, row, CASCADE_LOOK_OUT_POLICY),
        .k = (uint32_t)weft_get_i64(rows, row, CASCADE_LOOK_OUT_K),
        .total = (uint32_t)weft_get_i64(rows, row, CASCADE_LOOK_OUT_TOTAL),
        .succeeded = (uint32_t)weft_get_i64(rows, row, CASCADE_LOOK_OUT_SUCCEEDED),
        .failed = (uint32_t)weft_get_i64(rows, row, CASCADE_LOOK_OUT_FAILED),
    };
    joint->fired = (enum weft_fired)weft_get_i64(rows, row, CASCADE_LOOK_OUT_FIRED);
    joint->let_run = weft_get_i64(rows, row, CASCADE_LOOK_OUT_LET_RUN);
    joint->delay_us = weft_get_i64(rows, row, CASCADE_LOOK_OUT_DELAY);
    joint->run_at_us = weft_get_i64(rows, row, CASCADE_LOOK_OUT_RUN_AT);
}

static void count_edge(struct joint *joint, enum weft_edge_state state, uint32_t by)
{
    if (state == WEFT_EDGE_SUCCEEDED)
        joint->join.succeeded += by;
    else if (state == WEFT_EDGE_FAILED)
        joint->join.failed += by;
}

static void look_at_edge(struct hop *hop, const struct weft_rows *rows, size_t row)
{
    struct edge_change now = {
        .upstream = weft_get_id(rows, row, CASCADE_LOOK_OUT_ID),
        .downstream = weft_get_id(rows, row, CASCADE_LOOK_OUT_DOWNSTREAM),
        .state =
            weft_edge_of((enum weft_state)weft_get_i64(rows, row, CASCADE_LOOK_OUT_UPSTREAM_STATE)),
    };
    struct weft_id flow = weft_get_id(rows, row, CASCADE_LOOK_OUT_FLOW);
    enum weft_edge_state was =
        (enum weft_edge_state)weft_get_i64(rows, row, CASCADE_LOOK_OUT_EDGE_STATE);
    size_t before = hop->joint_count;
    struct joint *joint = joint_of(hop, &now.downstream, &flow);
    if (hop->joint_count > before)
        read_joint(rows, row, joint);
    if (was == now.state)
        return;
    count_edge(joint, was, (uint32_t)-1);
    count_edge(joint, now.state, 1);
    hop->edge[hop->edge_count++] = now;
}

/*
 * Looks at the node of a completion, at its first row. Where no edge leaves it, the node is a sink;
 * a completion that has a cursor never comes without one, because its hop saw that there was more.
 */
static void look_at_node(struct hop *hop, const struct weft_rows *rows, size_t row)
{
    enum weft_state state =
        (enum weft_state)weft_get_i64(rows, row, CASCADE_LOOK_OUT_UPSTREAM_STATE);
    bool sink = weft_get(rows, row, CASCADE_LOOK_OUT_DOWNSTREAM)->null;
    bool bad = sink && weft_edge_of(state) == WEFT_EDGE_FAILED;
    if (bad != (weft_get_i64(rows, row, CASCADE_LOOK_OUT_BAD) != 0))
        hop->mark[hop->mark_count++] =
            (struct mark_change){.id = weft_get_id(rows, row, CASCADE_LOOK_OUT_ID), .bad = bad};
}

static int64_t seq_of(const struct weft_rows *rows, size_t row)
{
    return weft_get_i64(rows, row, CASCADE_LOOK_OUT_SEQ);
}

static void cut(struct hop *hop, int64_t seq, const struct weft_id *cursor)
{
    hop->cut[hop->cut_count++] = (struct cut){.seq = seq, .cursor = *cursor};
}

/*
 * Lets the roots begin that are among the next nodes of a flow that was just made whole; false when
 * there may be more nodes. Those that are added to the flow meanwhile have begun by themselves.
 */
static enum weft_rc look_at_roots(struct hop *hop, const struct weft_id *flow, int64_t seq,
                                  bool *ret_all, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    *ret_all = false;
    if (hop->rooted) /* a chunk of them is enough for one transaction */
        return WEFT_OK;
    hop->rooted = true;
    weft_call_init(&call, hop->tx->arena, WEFT_STMT_FLOW_ROOTS, 0);
    weft_set_i64(&call, 0, FLOW_ROOTS_IN_SEQ, seq);
    weft_set_id(&call, 0, FLOW_ROOTS_IN_FLOW, flow);
    weft_set_i64(&call, 0, FLOW_ROOTS_IN_CHUNK, WEFT_FLOW_CHUNK);
    enum weft_rc rc = weft_tx_run(hop->tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    hop->joint_room += rows.count; /* beside those of the edges that are still to come */
    struct joint **wider = weft_new_array(hop->tx->arena, struct joint *, hop->joint_room);
    for (size_t i = 0; i < hop->joint_count; i++)
        wider[i] = hop->joint[i];
    hop->joint = wider;
    for (size_t i = 0; i < rows.count; i++) {
        struct weft_id id = weft_get_id(&rows, i, FLOW_ROOTS_OUT_ID);
        if (i + 1 == WEFT_FLOW_CHUNK)
            cut(hop, seq, &id);
        if (!weft_get_i64(&rows, i, FLOW_ROOTS_OUT_ROOT))
            continue;
        struct joint *joint = joint_of(hop, &id, flow);
        joint->delay_us = weft_get_i64(&rows, i, FLOW_ROOTS_OUT_DELAY);
        joint->run_at_us = weft_get_i64(&rows, i, FLOW_ROOTS_OUT_RUN_AT);
    }
    *ret_all = rows.count < WEFT_FLOW_CHUNK;
    return WEFT_OK;
}

/*
 * Takes in at most a chunk of rows. A completion whose last row is among them is used up. An
 * execution may have two (it ended, was replayed and ended): the second waits for the next hop,
 * because its rows were read before the first one changed anything.
 */
static enum weft_rc collect(struct hop *hop, const struct weft_rows *rows, struct weft_err *err)
{
    struct weft_map met = {0}; /* upstreams */
    enum weft_rc rc = WEFT_OK;
    bool skip = false;
    for (size_t row = 0; row < rows->count && row < WEFT_FLOW_CHUNK && !rc; row++) {
        struct weft_id id = weft_get_id(rows, row, CASCADE_LOOK_OUT_ID);
        struct weft_id flow = weft_get_id(rows, row, CASCADE_LOOK_OUT_FLOW);
        bool last = row + 1 == rows->count || seq_of(rows, row + 1) != seq_of(rows, row);
        bool first = row == 0 || seq_of(rows, row - 1) != seq_of(rows, row);
        bool all = last;
        if (first) {
            skip = weft_map_find(&met, &id, sizeof(id)) != NULL;
            weft_map_put(&met, &id, sizeof(id), hop);
        }
        if (skip)
            continue;
        bool roots = weft_id_cmp(&id, &flow) == 0;
        if (first && !roots)
            look_at_node(hop, rows, row);
        if (roots)
            rc = look_at_roots(hop, &flow, seq_of(rows, row), &all, err);
        else if (!weft_get(rows, row, CASCADE_LOOK_OUT_DOWNSTREAM)->null)
            look_at_edge(hop, rows, row);
        if (all) {
            hop->done_flow[hop->done_count] = flow;
            hop->done[hop->done_count++] = seq_of(rows, row);
        } else if (!last && row + 1 == WEFT_FLOW_CHUNK) {
            struct weft_id to = weft_get_id(rows, row, CASCADE_LOOK_OUT_DOWNSTREAM);
            cut(hop, seq_of(rows, row), &to);
        }
    }
    weft_map_done(&met);
    return rc;
}

static void put_look(struct weft_call *call, struct weft_arena *arena, const struct weft_id *flow,
                     size_t count)
{
    weft_call_init(call, arena, WEFT_STMT_CASCADE_LOOK, count);
    for (size_t i = 0; i < count; i++)
        weft_set_id(call, i, CASCADE_LOOK_IN_FLOW, &flow[i]);
    weft_set_i64(call, 0, CASCADE_LOOK_IN_CHUNK, WEFT_FLOW_CHUNK);
}

/*
 * Locks the flows and reads what their completions are about. Both statements travel together; the
 * second one sees what was committed before the first had its locks. Where somebody else has one of
 * the flows, the rows would be of flows that are not held: those that are held are read again.
 */
static enum weft_rc lock_and_look(struct hop *hop, const struct weft_id *flow, size_t count,
                                  struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_arena *arena = hop->tx->arena;
    struct weft_id *sorted = weft_arena_dup(arena, flow, count * sizeof(*flow));
    struct weft_call call[2];
    struct weft_rows rows[2];
    count = weft_ids_sort(sorted, count);
    put_lock(&call[0], arena, sorted, count);
    put_look(&call[1], arena, sorted, count);
    enum weft_rc rc = weft_tx_run(hop->tx, call, 2, rows, err);
    if (rc)
        return rc;
    hop->held = read_held(&rows[0], arena);
    *ret_rows = rows[1];
    if (hop->held.count == count || hop->held.count == 0)
        return WEFT_OK;
    for (size_t i = 0; i < hop->held.count; i++)
        sorted[i] = hop->held.item[i].id;
    put_look(&call[1], arena, sorted, hop->held.count);
    return weft_tx_run(hop->tx, &call[1], 1, ret_rows, err);
}

static enum weft_rc look(struct hop *hop, const struct weft_id *flow, size_t count,
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
    hop->joint = weft_new_array(arena, struct joint *, hop->joint_room);
    hop->edge = weft_new_array(arena, struct edge_change, rows.count + 1);
    hop->mark = weft_new_array(arena, struct mark_change, rows.count + 1);
    hop->done = weft_new_array(arena, int64_t, rows.count + 1);
    hop->done_flow = weft_new_array(arena, struct weft_id, rows.count + 1);
    return collect(hop, &rows, err);
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static size_t flow_at(const struct hop *hop, const struct joint *joint)
{
    return (size_t)(joint->flow - hop->held.item);
}

static void judge(struct hop *hop)
{
    for (size_t i = 0; i < hop->joint_count; i++) {
        struct joint *joint = hop->joint[i];
        enum weft_verdict_of_join verdict = weft_join_judge(&joint->join);
        if (joint->fired == WEFT_FIRED_NOT && verdict != WEFT_JOIN_PENDING) {
            joint->fires = true;
            joint->fired =
                verdict == WEFT_JOIN_SATISFIED ? WEFT_FIRED_SATISFIED : WEFT_FIRED_IMPOSSIBLE;
        } else if (joint->fired == WEFT_FIRED_IMPOSSIBLE && verdict != WEFT_JOIN_IMPOSSIBLE) {
            joint->comes_back = true;
            joint->fired = WEFT_FIRED_NOT;
            /* It may fire at once, but it must be blocked first: the next hop judges it. */
            hop->again[flow_at(hop, joint)] |= verdict != WEFT_JOIN_PENDING;
        }
    }
}

/* What a join that fires does with its node, which is blocked. */
static void fire(struct hop *hop, const struct joint *joint, struct weft_change *change)
{
    struct weft_event event = {.kind = WEFT_EVENT_SKIP};
    weft_usec due_us = hop->tx->now_us + joint->delay_us;
    change->by = "flow";
    change->reason = "upstream_failed";
    if (joint->flow->cancel) {
        event.kind = WEFT_EVENT_CANCEL;
        change->reason = joint->flow->reason;
        hop->cancelled[flow_at(hop, joint)]++; /* what is blocked can always be */
    } else if (joint->fired == WEFT_FIRED_SATISFIED) {
        event.due_us = joint->run_at_us > due_us ? joint->run_at_us : due_us;
        event.kind = event.due_us > hop->tx->now_us ? WEFT_EVENT_UNBLOCK_LATER : WEFT_EVENT_UNBLOCK;
        change->by = change->reason = NULL;
        hop->alive[flow_at(hop, joint)] = true;
    }
    (void)weft_change_step(change, &event);
}

/* Locks the nodes that fire and steps those that are still blocked: others were ended or replayed
 * by somebody, and their join has nothing to say any more. */
static enum weft_rc fire_all(struct hop *hop, struct weft_err *err)
{
    struct weft_id *id = weft_new_array(hop->tx->arena, struct weft_id, hop->joint_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < hop->joint_count; i++)
        if (hop->joint[i]->fires)
            id[count++] = hop->joint[i]->id;
    if (count == 0)
        return WEFT_OK;
    count = weft_ids_sort(id, count);
    enum weft_rc rc = weft_change_lock(hop->tx, id, count, &hop->changes, err);
    for (size_t i = 0; i < hop->changes.count && !rc; i++) {
        struct weft_change *change = &hop->changes.change[i];
        if (change->before.state == WEFT_STATE_BLOCKED)
            fire(hop, weft_map_find(&hop->joints, &change->before.id, sizeof(struct weft_id)),
                 change);
    }
    return rc;
}

/*
 * Nodes whose join is open again are blocked again, if skipping is how they ended, and leave a
 * completion: the edges that leave them are to be looked at.
 */
static enum weft_rc bring_back(struct hop *hop, struct weft_err *err)
{
    struct weft_arena *arena = hop->tx->arena;
    struct weft_id *id = weft_new_array(arena, struct weft_id, hop->joint_count + 1);
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < hop->joint_count; i++)
        if (hop->joint[i]->comes_back)
            id[count++] = hop->joint[i]->id;
    if (count == 0)
        return WEFT_OK;
    struct weft_call lock, call[2];
    struct weft_rows rows;
    count = weft_ids_sort(id, count);
    weft_call_init(&lock, arena, WEFT_STMT_OUTCOME_LOCK, count);
    for (size_t i = 0; i < count; i++)
        weft_set_id(&lock, i, OUTCOME_LOCK_IN_ID, &id[i]);
    enum weft_rc rc = weft_tx_run(hop->tx, &lock, 1, &rows, err);
    if (rc)
        return rc;
    struct weft_step *step = weft_new_array(arena, struct weft_step, rows.count + 1);
    weft_call_init(&call[0], arena, WEFT_STMT_OUTCOME_BACK, rows.count);
    weft_call_init(&call[1], arena, WEFT_STMT_COMPLETION_ADD, rows.count);
    weft_set_i64(&call[1], 0, COMPLETION_ADD_IN_AT, hop->tx->now_us);
    for (size_t row = 0; row < rows.count; row++) {
        struct weft_live before = weft_outcome_read(&rows, row);
        if (before.replays == WEFT_REPLAYS_MAX ||
            !weft_state_step(&before, &(struct weft_event){.kind = WEFT_EVENT_REARM}, &step[kept]))
            continue;
        const struct weft_live *after = &step[kept].after;
        const struct joint *joint = weft_map_find(&hop->joints, &after->id, sizeof(after->id));
        weft_outcome_back(&call[0], kept, after);
        weft_set_id(&call[1], kept, COMPLETION_ADD_IN_FLOW, &joint->flow->id);
        weft_set_id(&call[1], kept++, COMPLETION_ADD_IN_ID, &after->id);
        hop->alive[flow_at(hop, joint)] = true;
    }
    call[0].rows = call[1].rows = kept;
    return kept ? weft_tx_run(hop->tx, call, 2, NULL, err) : WEFT_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_graph(struct hop *hop, struct weft_call *edges, struct weft_call *nodes)
{
    struct weft_arena *arena = hop->tx->arena;
    weft_call_init(edges, arena, WEFT_STMT_EDGE_PUT, hop->edge_count);
    for (size_t i = 0; i < hop->edge_count; i++) {
        weft_set_id(edges, i, EDGE_PUT_IN_UPSTREAM, &hop->edge[i].upstream);
        weft_set_id(edges, i, EDGE_PUT_IN_DOWNSTREAM, &hop->edge[i].downstream);
        weft_set_i64(edges, i, EDGE_PUT_IN_STATE, hop->edge[i].state);
    }
    weft_call_init(nodes, arena, WEFT_STMT_NODE_PUT, hop->joint_count);
    for (size_t i = 0; i < hop->joint_count; i++) {
        weft_set_id(nodes, i, NODE_PUT_IN_ID, &hop->joint[i]->id);
        weft_set_i64(nodes, i, NODE_PUT_IN_SUCCEEDED, hop->joint[i]->join.succeeded);
        weft_set_i64(nodes, i, NODE_PUT_IN_FAILED, hop->joint[i]->join.failed);
        weft_set_i64(nodes, i, NODE_PUT_IN_FIRED, hop->joint[i]->fired);
    }
}

static void put_marks(struct hop *hop, struct weft_call *marks)
{
    weft_call_init(marks, hop->tx->arena, WEFT_STMT_NODE_MARK, hop->mark_count);
    for (size_t i = 0; i < hop->mark_count; i++) {
        weft_set_id(marks, i, NODE_MARK_IN_ID, &hop->mark[i].id);
        weft_set_i64(marks, i, NODE_MARK_IN_BAD, hop->mark[i].bad);
    }
}

/* Joins that fired and leave upstreams behind that nobody needs any more. */
static void put_groups(struct hop *hop, struct weft_call *add, struct weft_call *wake)
{
    struct weft_arena *arena = hop->tx->arena;
    size_t groups = 0, flows = 0;
    weft_call_init(add, arena, WEFT_STMT_GROUP_ADD, hop->joint_count);
    weft_call_init(wake, arena, WEFT_STMT_GROUPS_WAKE, hop->held.count);
    weft_set_i64(add, 0, GROUP_ADD_IN_AT, hop->tx->now_us);
    bool *woken = weft_new_array(arena, bool, hop->held.count + 1);
    for (size_t i = 0; i < hop->joint_count; i++) {
        const struct joint *joint = hop->joint[i];
        if (!joint->fires || joint->join.total == 0)
            continue;
        if (!woken[flow_at(hop, joint)])
            weft_set_id(wake, flows++, GROUPS_WAKE_IN_FLOW, &joint->flow->id);
        woken[flow_at(hop, joint)] = true;
        if (joint->let_run || joint->join.succeeded + joint->join.failed == joint->join.total)
            continue;
        weft_set_id(add, groups, GROUP_ADD_IN_ID, &joint->id);
        weft_set_id(add, groups, GROUP_ADD_IN_FLOW, &joint->flow->id);
        weft_set_i64(add, groups++, GROUP_ADD_IN_REASON, joint->fired);
    }
    add->rows = groups;
    wake->rows = flows;
}

static void put_completions(struct hop *hop, struct weft_call *done, struct weft_call *cursor)
{
    size_t count = 0;
    weft_call_init(done, hop->tx->arena, WEFT_STMT_COMPLETION_DONE, hop->done_count);
    for (size_t i = 0; i < hop->done_count; i++) {
        const struct weft_flow_held *flow = weft_flows_find(&hop->held, &hop->done_flow[i]);
        if (!hop->again[flow - hop->held.item])
            weft_set_i64(done, count++, COMPLETION_DONE_IN_SEQ, hop->done[i]);
    }
    done->rows = count;
    weft_call_init(cursor, hop->tx->arena, WEFT_STMT_COMPLETION_CURSOR, hop->cut_count);
    for (size_t i = 0; i < hop->cut_count; i++) {
        weft_set_i64(cursor, i, COMPLETION_CURSOR_IN_SEQ, hop->cut[i].seq);
        weft_set_id(cursor, i, COMPLETION_CURSOR_IN_CURSOR, &hop->cut[i].cursor);
    }
}

static void put_cancelled(struct hop *hop, struct weft_call *count)
{
    size_t flows = 0;
    weft_call_init(count, hop->tx->arena, WEFT_STMT_FLOW_COUNT, hop->held.count);
    for (size_t i = 0; i < hop->held.count; i++)
        if (hop->cancelled[i] > 0) {
            weft_set_id(count, flows, FLOW_COUNT_IN_FLOW, &hop->held.item[i].id);
            weft_set_i64(count, flows++, FLOW_COUNT_IN_CANCELLED, hop->cancelled[i]);
        }
    count->rows = flows;
}

/* Flows that had something used up, and in which nothing began, may be over. */
static void put_over(struct hop *hop, struct weft_call *over)
{
    size_t count = 0;
    weft_call_init(over, hop->tx->arena, WEFT_STMT_FLOW_OVER, hop->held.count);
    for (size_t i = 0; i < hop->held.count; i++)
        if (hop->held.item[i].state == WEFT_FLOW_OPEN && !hop->alive[i] && !hop->again[i])
            weft_set_id(over, count++, FLOW_OVER_IN_FLOW, &hop->held.item[i].id);
    over->rows = count;
}

static enum weft_rc end_flows(struct hop *hop, const struct weft_rows *over, struct weft_err *err)
{
    struct weft_arena *arena = hop->tx->arena;
    struct weft_call end;
    weft_call_init(&end, arena, WEFT_STMT_FLOW_END, over->count);
    weft_set_i64(&end, 0, FLOW_END_IN_NOW, hop->tx->now_us);
    hop->ended = weft_new_array(arena, struct weft_id, over->count);
    hop->ended_count = over->count;
    for (size_t i = 0; i < over->count; i++) {
        hop->ended[i] = weft_get_id(over, i, FLOW_OVER_OUT_ID);
        const struct weft_flow_held *flow = weft_flows_find(&hop->held, &hop->ended[i]);
        bool bad = weft_get_i64(over, i, FLOW_OVER_OUT_BAD);
        weft_set_id(&end, i, FLOW_END_IN_FLOW, &hop->ended[i]);
        weft_set_i64(&end, i, FLOW_END_IN_STATE, weft_flow_judge(flow->cancel != 0, bad));
    }
    return weft_tx_last(hop->tx, &end, 1, NULL, err);
}

/* All that a hop writes travels together, and COMMIT with it where nothing depends on an answer. */
static enum weft_rc write_hop(struct hop *hop, struct weft_err *err)
{
    enum {
        EDGES,
        NODES,
        MARKS,
        ADD,
        WAKE,
        DONE,
        COUNT,
        CHANGES,
        OVER = CHANGES + WEFT_CHANGE_CALLS,
        CURSOR
    };
    struct weft_call call[CURSOR + 1];
    struct weft_rows rows[CURSOR + 1];
    put_graph(hop, &call[EDGES], &call[NODES]);
    put_marks(hop, &call[MARKS]);
    put_groups(hop, &call[ADD], &call[WAKE]);
    put_completions(hop, &call[DONE], &call[CURSOR]);
    weft_change_calls(hop->tx, &hop->changes, &call[CHANGES]);
    put_cancelled(hop, &call[COUNT]);
    put_over(hop, &call[OVER]);
    if (call[OVER].rows == 0 && !weft_change_ends(&hop->changes))
        return weft_tx_last(hop->tx, call, WEFT_LEN(call), rows, err);
    enum weft_rc rc = weft_tx_run(hop->tx, call, WEFT_LEN(call), rows, err);
    if (!rc)
        rc = weft_change_wrote(hop->tx, &hop->changes, &rows[CHANGES], err);
    return rc || rows[OVER].count == 0 ? rc : end_flows(hop, &rows[OVER], err);
}

/* ---- Running --------------------------------------------------------------------------------- */

struct cascade_call {
    const struct weft_id *flow;
    size_t count;
    struct hop hop; /* of the last try */
};

static enum weft_rc hop_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct cascade_call *call = context;
    struct hop *hop = &call->hop;
    weft_map_done(&hop->joints);
    *hop = (struct hop){.tx = tx};
    enum weft_rc rc = look(hop, call->flow, call->count, err);
    if (rc || (hop->done_count == 0 && hop->cut_count == 0 && hop->joint_count == 0))
        return rc;
    judge(hop);
    rc = fire_all(hop, err);
    if (!rc)
        rc = bring_back(hop, err);
    return rc ? rc : write_hop(hop, err);
}

/*
 * Of the flows that this hop held: those in which there is something to do now. Others, who could
 * not get their locks, count on it. Groups are dispatched at once; the ends of siblings cascade.
 */
static enum weft_rc look_again(struct weft_engine *engine, struct cascade_call *cascade,
                               struct weft_id *flow, struct weft_err *err)
{
    const struct hop *hop = &cascade->hop;
    struct weft_dispatched done = {0};
    struct weft_arena *arena = hop->tx->arena;
    struct weft_call call;
    struct weft_rows rows;
    bool groups = false;
    weft_call_init(&call, arena, WEFT_STMT_COMPLETION_ANY, hop->held.count);
    for (size_t i = 0; i < hop->held.count; i++)
        weft_set_id(&call, i, COMPLETION_ANY_IN_FLOW, &hop->held.item[i].id);
    cascade->count = 0;
    if (hop->held.count == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    for (size_t i = 0; i < rows.count && !rc; i++) {
        flow[cascade->count++] = weft_get_id(&rows, i, COMPLETION_ANY_OUT_FLOW);
        groups |= weft_get_i64(&rows, i, COMPLETION_ANY_OUT_GROUPS) != 0;
    }
    return rc || !groups ? rc : weft_siblings_cancel(engine, flow, cascade->count, &done, err);
}

enum weft_rc weft_cascade(struct weft_engine *engine, const struct weft_id *flow, size_t count,
                          struct weft_cascaded *ret_cascaded, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_id *todo = weft_arena_dup(arena, flow, count * sizeof(*flow));
    struct cascade_call call = {.flow = todo, .count = count};
    enum weft_rc rc = WEFT_OK;
    while (call.count > 0 && !rc) {
        /* A hop that was done finds nothing more to do. */
        struct weft_tx tx = {.engine = engine, .arena = weft_arena_new(), .repeatable = true};
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, hop_body, &call, err);
        if (!rc) {
            struct weft_tidings news = weft_news_new(tx.arena, tx.now_us);
            weft_change_news(&news, &call.hop.changes);
            news.flows = 0; /* this loop sees to them */
            weft_news_tell(engine, &news);
            if (call.hop.ended_count > 0 && engine->on_flows_ended)
                engine->on_flows_ended(engine->flows_ended_context, call.hop.ended,
                                       call.hop.ended_count);
            ret_cascaded->hops++;
            ret_cascaded->edges += call.hop.edge_count;
            ret_cascaded->completions += call.hop.done_count;
            rc = look_again(engine, &call, todo, err);
        }
        weft_arena_free(tx.arena);
    }
    weft_map_done(&call.hop.joints);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_cascade(struct weft_engine *engine, const struct weft_id *flow,
                                 size_t count, struct weft_err *err)
{
    struct weft_cascaded cascaded = {0};
    enum weft_rc rc = WEFT_OK;
    for (size_t at = 0; at < count && !rc; at += FLOWS_AT_ONCE)
        rc = weft_cascade(engine, flow + at,
                          count - at < FLOWS_AT_ONCE ? count - at : FLOWS_AT_ONCE, &cascaded, err);
    return rc;
}
