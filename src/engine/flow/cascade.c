/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cascade: applies the end of a member to its downstream nodes.
 *
 * A completion is a hint to look. Under the lock of the flow, a hop compares the edges that leave
 * the execution with the execution's current state: an edge mirrors its upstream, so resolving an
 * edge twice changes nothing, and a replay makes edges pending again by the same rule. Then the hop
 * evaluates the joins behind these edges. A join fires once: if it is satisfied, its node may
 * begin; if it is impossible, its node is skipped, which ends the node and leaves a completion for
 * a later hop. A skipped node is blocked again when its join is open again. A satisfied join stays
 * satisfied. In a cancelled flow no node begins and none is skipped: when its join is decided, a
 * node is cancelled, as the drain would have cancelled it. A node replayed since the last cancel is
 * an exception: its join decides as in any flow.
 *
 * A hop is one transaction over at most WEFT_FLOW_CHUNK edges, of any number of flows; a larger
 * fan-out takes several hops, and the completion stores the position between them. The roots of a
 * flow that was written in parts begin in the same way, a chunk of nodes per hop. A completion is
 * deleted in the transaction that resolved its last edge: a crash between two hops loses nothing.
 *
 * The sinks of a flow, the nodes without downstream nodes, decide how it ended. A hop that handles
 * a completion marks its node if it is a sink that did not succeed, and removes the mark if that is
 * no longer so: the node was replayed, or a node was added behind it, and both leave a completion.
 * So the end of a flow of any size is found by three reads of the first row of an index.
 *
 * A replay propagates hop by hop; until it has, no sibling is cancelled (sibling.c).
 *
 * No completion is missed: a process that could not get the lock of a flow had committed its
 * completion, or its group of siblings, before it tried, and the holder checks for both again after
 * its own commit.
 */

#include "engine/flow/cascade.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "core/graph.h"
#include "core/state.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade_read.h"
#include "engine/job/change.h"

enum { FLOWS_AT_ONCE = 256 }; /* of one hop */

/* ---- Deciding -------------------------------------------------------------------------------- */

static size_t flow_at(const struct weft_hop *hop, const struct weft_hop_join *joint)
{
    return (size_t)(joint->flow - hop->held.item);
}

static void evaluate_joins(struct weft_hop *hop)
{
    for (size_t i = 0; i < hop->joint_count; i++) {
        struct weft_hop_join *joint = hop->joint[i];
        enum weft_verdict_of_join verdict = weft_join_judge(&joint->join);
        if (joint->fired == WEFT_FIRED_NOT && verdict != WEFT_JOIN_PENDING) {
            joint->fires = true;
            joint->fired =
                verdict == WEFT_JOIN_SATISFIED ? WEFT_FIRED_SATISFIED : WEFT_FIRED_IMPOSSIBLE;
        } else if (joint->fired == WEFT_FIRED_IMPOSSIBLE && verdict != WEFT_JOIN_IMPOSSIBLE) {
            joint->comes_back = true;
            joint->fired = WEFT_FIRED_NOT;
            /* It may fire at once, but it must be blocked first: the next hop evaluates it. */
            hop->again[flow_at(hop, joint)] |= verdict != WEFT_JOIN_PENDING;
        }
    }
}

/* What a join that fires does with its node, which is blocked. */
static void fire(struct weft_hop *hop, const struct weft_hop_join *joint,
                 struct weft_change *change)
{
    struct weft_event event = {.kind = WEFT_EVENT_SKIP};
    weft_usec due_us = hop->tx->now_us + joint->delay_us;
    change->by = "flow";
    change->reason = "upstream_failed";
    if (joint->flow->cancel && joint->again != joint->flow->cancels) {
        event.kind = WEFT_EVENT_CANCEL;
        change->reason = joint->flow->reason;
        hop->cancelled[flow_at(hop, joint)]++; /* a blocked node can always be cancelled */
    } else if (joint->fired == WEFT_FIRED_SATISFIED) {
        event.due_us = joint->run_at_us > due_us ? joint->run_at_us : due_us;
        event.kind = event.due_us > hop->tx->now_us ? WEFT_EVENT_UNBLOCK_LATER : WEFT_EVENT_UNBLOCK;
        change->by = change->reason = NULL;
        hop->alive[flow_at(hop, joint)] = true;
    }
    (void)weft_change_step(change, &event);
}

/* Locks the nodes that fire and steps the ones that are still blocked: the others were ended or
 * replayed by another call, and their join no longer applies. */
static enum weft_rc fire_all(struct weft_hop *hop, struct weft_err *err)
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
 * Nodes whose join is open again are blocked again if they were skipped, and leave a completion, so
 * that a later hop checks the edges that leave them.
 */
static enum weft_rc rearm(struct weft_hop *hop, struct weft_err *err)
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
    struct weft_outcome_lock_in *lock_in = weft_call_outcome_lock(&lock, arena, count);
    for (size_t i = 0; i < count; i++)
        lock_in->row[i].id = id[i];
    enum weft_rc rc = weft_tx_run(hop->tx, &lock, 1, &rows, err);
    if (rc)
        return rc;
    struct weft_outcome_back_in *back = weft_call_outcome_back(&call[0], arena, rows.count);
    struct weft_completion_add_in *add = weft_call_completion_add(&call[1], arena, rows.count);
    add->at = hop->tx->now_us;
    for (size_t row = 0; row < rows.count; row++) {
        struct weft_live before = weft_outcome_read(&rows, row);
        struct weft_step step;
        if (before.replays == WEFT_REPLAYS_MAX ||
            !weft_state_step(&before, &(struct weft_event){.kind = WEFT_EVENT_REARM}, &step))
            continue;
        const struct weft_live *after = &step.after;
        const struct weft_hop_join *joint =
            weft_map_find(&hop->joints, &after->id, sizeof(after->id));
        weft_outcome_back(&back->row[kept], after);
        add->row[kept].flow = joint->flow->id;
        add->row[kept++].id = after->id;
        hop->alive[flow_at(hop, joint)] = true;
    }
    call[0].rows = call[1].rows = kept;
    return kept ? weft_tx_run(hop->tx, call, 2, NULL, err) : WEFT_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_nodes(struct weft_hop *hop, struct weft_call *nodes)
{
    struct weft_node_put_in *in = weft_call_node_put(nodes, hop->tx->arena, hop->joint_count);
    for (size_t i = 0; i < hop->joint_count; i++)
        in->row[i] = (struct weft_node_put_item){.id = hop->joint[i]->id,
                                                 .succeeded = hop->joint[i]->join.succeeded,
                                                 .failed = hop->joint[i]->join.failed,
                                                 .fired = hop->joint[i]->fired};
}

/*
 * A join whose member has ended before the join fired (cancelled, or past its deadline) needs no
 * upstream any more: it gets a group with reason 0, which cancels only siblings that other groups
 * asked for and this join had spared. Not if the flow is cancelled with its members: the drain
 * cancels them.
 */
static size_t put_dead(struct weft_hop *hop, struct weft_call *add, size_t added)
{
    struct weft_group_add_in *in = weft_in_group_add(add);
    for (size_t i = 0; i < hop->dead_count; i++) {
        const struct weft_hop_dead *dead = &hop->dead[i];
        const struct weft_flow_lock_out *flow = weft_flows_find(&hop->held, &dead->flow);
        const struct weft_hop_join *joint =
            weft_map_find(&hop->joints, &dead->id, sizeof(dead->id));
        if ((joint && joint->fires) || flow->cancel == WEFT_FLOW_CANCEL_ALL ||
            flow->cancel == WEFT_FLOW_CANCEL_PENDING)
            continue;
        in->row[added++] = (struct weft_group_add_item){.id = dead->id, .flow = dead->flow};
    }
    return added;
}

/*
 * A join that fired while upstreams are alive, which perhaps no other join needs, gets a group
 * (sibling.c). The group of a join whose last upstream has ended now is done.
 */
static void put_groups(struct weft_hop *hop, struct weft_call *add, struct weft_call *done)
{
    size_t added = 0, over = 0;
    struct weft_group_add_in *add_in =
        weft_call_group_add(add, hop->tx->arena, hop->joint_count + hop->dead_count);
    struct weft_groups_done_in *done_in =
        weft_call_groups_done(done, hop->tx->arena, hop->joint_count);
    add_in->at = hop->tx->now_us;
    for (size_t i = 0; i < hop->joint_count; i++) {
        const struct weft_hop_join *joint = hop->joint[i];
        bool ended = joint->join.succeeded + joint->join.failed == joint->join.total;
        if (ended && joint->fired != WEFT_FIRED_NOT && !joint->let_run)
            done_in->row[over++].id = joint->id;
        if (ended || !joint->fires)
            continue;
        add_in->row[added++] =
            (struct weft_group_add_item){.id = joint->id,
                                         .flow = joint->flow->id,
                                         .reason = joint->let_run ? 0 : (int)joint->fired};
    }
    add->rows = put_dead(hop, add, added);
    done->rows = over;
}

static void put_done(struct weft_hop *hop, struct weft_call *done)
{
    size_t count = 0;
    struct weft_completion_done_in *done_in =
        weft_call_completion_done(done, hop->tx->arena, hop->done_count);
    for (size_t i = 0; i < hop->done_count; i++) {
        const struct weft_flow_lock_out *flow = weft_flows_find(&hop->held, &hop->done_flow[i]);
        if (!hop->again[flow - hop->held.item])
            done_in->row[count++].seq = hop->done[i];
    }
    done->rows = count;
}

static void put_cancelled(struct weft_hop *hop, struct weft_call *count)
{
    size_t flows = 0;
    struct weft_flow_count_in *in = weft_call_flow_count(count, hop->tx->arena, hop->held.count);
    for (size_t i = 0; i < hop->held.count; i++)
        if (hop->cancelled[i] > 0) {
            in->row[flows].flow = hop->held.item[i].id;
            in->row[flows++].cancelled = hop->cancelled[i];
        }
    count->rows = flows;
}

/* Flows that had something used up, and in which nothing began, may be over. */
static void put_over(struct weft_hop *hop, struct weft_call *over)
{
    size_t count = 0;
    struct weft_flow_over_in *in = weft_call_flow_over(over, hop->tx->arena, hop->held.count);
    for (size_t i = 0; i < hop->held.count; i++)
        if (hop->held.item[i].state == WEFT_FLOW_OPEN && !hop->alive[i] && !hop->again[i])
            in->row[count++].flow = hop->held.item[i].id;
    over->rows = count;
}

static enum weft_rc end_flows(struct weft_hop *hop, const struct weft_rows *over,
                              struct weft_err *err)
{
    struct weft_arena *arena = hop->tx->arena;
    struct weft_call end;
    struct weft_flow_end_in *in = weft_call_flow_end(&end, arena, over->count);
    in->now = hop->tx->now_us;
    hop->ended = weft_new_array(arena, struct weft_id, over->count);
    hop->ended_count = over->count;
    for (size_t i = 0; i < over->count; i++) {
        const struct weft_flow_over_out *row = &weft_out_flow_over(over)[i];
        hop->ended[i] = row->id;
        const struct weft_flow_lock_out *flow = weft_flows_find(&hop->held, &hop->ended[i]);
        in->row[i].flow = hop->ended[i];
        in->row[i].state = weft_flow_judge(flow->cancel != 0, row->bad);
    }
    return weft_tx_last(hop->tx, &end, 1, NULL, err);
}

/* One round trip for all writes of a hop, with COMMIT if nothing depends on an answer. */
static enum weft_rc write_hop(struct weft_hop *hop, struct weft_err *err)
{
    enum {
        EDGES,
        NODES,
        MARKS,
        ADD,
        DRAINED,
        DONE,
        COUNT,
        CHANGES,
        OVER = CHANGES + WEFT_CHANGE_CALLS,
        CURSOR
    };
    struct weft_call call[CURSOR + 1];
    struct weft_rows rows[CURSOR + 1];
    call[EDGES] = hop->edges;
    put_nodes(hop, &call[NODES]);
    call[MARKS] = hop->marks;
    put_groups(hop, &call[ADD], &call[DRAINED]);
    put_done(hop, &call[DONE]);
    call[CURSOR] = hop->cuts;
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
    struct weft_hop hop; /* of the last try */
};

static enum weft_rc hop_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct cascade_call *call = context;
    struct weft_hop *hop = &call->hop;
    weft_map_done(&hop->joints);
    *hop = (struct weft_hop){.tx = tx};
    enum weft_rc rc = weft_hop_look(hop, call->flow, call->count, err);
    if (rc || (hop->done_count == 0 && hop->cuts.rows == 0 && hop->joint_count == 0))
        return rc;
    evaluate_joins(hop);
    rc = fire_all(hop, err);
    if (!rc)
        rc = rearm(hop, err);
    return rc ? rc : write_hop(hop, err);
}

/*
 * Finds which of the flows that this hop held have work now: processes that could not get a lock
 * rely on it. Groups are dispatched at once; the ends of siblings cascade.
 */
static enum weft_rc look_again(struct weft_engine *engine, struct cascade_call *cascade,
                               struct weft_id *flow, struct weft_dispatched *done,
                               struct weft_err *err)
{
    const struct weft_hop *hop = &cascade->hop;
    struct weft_arena *arena = hop->tx->arena;
    struct weft_call call;
    struct weft_rows rows = {0};
    bool groups = false;
    struct weft_completion_any_in *in = weft_call_completion_any(&call, arena, hop->held.count);
    for (size_t i = 0; i < hop->held.count; i++)
        in->row[i].flow = hop->held.item[i].id;
    cascade->count = 0;
    if (hop->held.count == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    for (size_t i = 0; i < rows.count && !rc; i++) {
        const struct weft_completion_any_out *row = &weft_out_completion_any(&rows)[i];
        flow[cascade->count++] = row->flow;
        groups |= row->groups;
    }
    return rc || !groups ? rc : weft_siblings_cancel(engine, flow, cascade->count, done, err);
}

/* Reports flows with work left to the listener, as a commit does. */
static void report_rest(struct weft_engine *engine, const struct cascade_call *call,
                        struct weft_arena *arena)
{
    struct weft_commit_effects news = weft_news_new(arena, weft_clock_now(engine->clock));
    for (size_t i = 0; i < call->count; i++)
        weft_news_flow(&news, &call->flow[i]);
    weft_news_tell(engine, &news);
}

enum weft_rc weft_cascade(struct weft_engine *engine, const struct weft_id *flow, size_t count,
                          uint64_t hops_most, struct weft_cascaded *ret_cascaded,
                          struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_id *todo = weft_arena_dup(arena, flow, count * sizeof(*flow));
    struct cascade_call call = {.flow = todo, .count = count};
    enum weft_rc rc = WEFT_OK;
    for (uint64_t hops = 0; call.count > 0 && hops < hops_most && !rc; hops++) {
        /* A hop that is repeated after it was committed finds nothing to do. */
        struct weft_tx tx = {.engine = engine, .arena = weft_arena_new(), .repeatable = true};
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, hop_body, &call, err);
        if (!rc) {
            struct weft_commit_effects news = weft_news_new(tx.arena, tx.now_us);
            weft_change_news(&news, &call.hop.changes);
            news.flows = 0; /* this loop sees to them */
            news.ended_flows = (struct weft_id_column){call.hop.ended, sizeof(*call.hop.ended),
                                                       call.hop.ended_count};
            weft_news_tell(engine, &news);
            ret_cascaded->hops++;
            ret_cascaded->edges += call.hop.edges.rows;
            ret_cascaded->completions += call.hop.done_count;
            rc = look_again(engine, &call, todo, &ret_cascaded->groups, err);
        }
        weft_arena_free(tx.arena);
    }
    if (call.count > 0 && !rc)
        report_rest(engine, &call, arena);
    weft_map_done(&call.hop.joints);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_cascade_chunks(struct weft_engine *engine, const struct weft_id *flow,
                                 size_t count, uint64_t hops_most, struct weft_err *err)
{
    struct weft_cascaded cascaded = {0};
    enum weft_rc rc = WEFT_OK;
    for (size_t at = 0; at < count && !rc; at += FLOWS_AT_ONCE)
        rc =
            weft_cascade(engine, flow + at, count - at < FLOWS_AT_ONCE ? count - at : FLOWS_AT_ONCE,
                         hops_most, &cascaded, err);
    return rc;
}

enum weft_rc weft_engine_cascade(struct weft_engine *engine, const struct weft_id *flow,
                                 size_t count, struct weft_err *err)
{
    return weft_cascade_chunks(engine, flow, count, UINT64_MAX, err);
}
