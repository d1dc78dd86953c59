/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sibling cancel: a join was decided, and it no longer needs its other upstreams.
 *
 * The cascade leaves a group per such join. Here, under the lock of the flow, every upstream that
 * is alive and feeds no join that may still fire is cancelled, like any execution: a running one
 * loses its lease, and its end leaves a completion. An upstream that feeds an open join is spared;
 * a group with a spared upstream stays in the waiting state after its walk and does nothing more:
 * each such open join leaves a group of its own when it fires, and the last of them finds that
 * no join needs the sibling. A join that lets its upstreams run leaves a group as well if others of
 * the flow have groups: that group cancels the upstreams that the others have spared, and is
 * deleted after its walk. So each edge is walked once for the join it leads to, however many joins
 * share upstreams. A group is deleted when its last upstream has ended: by the walk, or by the hop
 * that resolves the last edge.
 *
 * A join whose member has ended before the join fired starts nothing, so it spares nothing:
 * group_members checks whether that member lives. Upstreams that it had spared until then are
 * walked by a group with reason 0, which the hop that handles the member's end leaves for that join
 * (cascade.c).
 *
 * In a flow that was cancelled without its running members (pending, flow_only) no running sibling
 * is cancelled: that cancel promised its caller that their results stand. A sibling that was
 * claimed after this transaction read it is seen running under its row lock.
 *
 * A replay propagates hop by hop, and until the last hop the counts of joins show the state before
 * the replay: a join that is about to open again still asks for its siblings, which may be the very
 * executions that were replayed. So no sibling is cancelled in a flow whose outbox holds
 * completions of living executions. The cascade that takes the last of them dispatches the groups.
 *
 * One transaction handles a chunk of edges; the next continues where it ended, so that a group is
 * walked once and not from its beginning each time. Results of an earlier transaction stay valid:
 * an upstream that is replayed meanwhile is not cancelled for this group. A join that is decided
 * again increments `wakes` of its group; a walk that sees a new value restarts. Only this process
 * knows the position of its walk: after a crash the group is still there, and the next process
 * walks over ended upstreams again. Two processes may walk one group at once.
 */

#include "engine/flow/cascade.h"

#include "base/arena.h"
#include "base/id.h"
#include "core/state.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade_read.h"
#include "engine/job/change.h"

#include <stdlib.h>

enum { GROUPS_AT_ONCE = 250 };

struct group {
    struct weft_id id;
    const struct weft_flow_lock_out *flow;
    int64_t reason; /* 0: it asks for no cancel itself */
    weft_usec at_us;
    int64_t wakes;
    bool spares; /* an upstream lives, because an open join needs it */
};

/* A group that was walked in part, up to the upstream `after`. */
struct walk {
    struct group group;
    struct weft_id after;
};

struct dispatch {
    const struct weft_id *flow;
    size_t count;
    struct walk from;            /* where the transaction begins */
    struct weft_flows_held held; /* from here on of the last try */
    struct group *group;
    size_t groups, walked; /* the first so many have been walked to their end */
    struct walk to;        /* where the next one goes on */
    struct weft_changes changes;
    struct weft_dispatched done;
    bool more;
};

static enum weft_rc take_groups(struct weft_tx *tx, struct dispatch *dispatch, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_groups_take_in *in = weft_call_groups_take(&call, tx->arena, dispatch->held.count);
    in->chunk = GROUPS_AT_ONCE;
    call.most = GROUPS_AT_ONCE;
    for (size_t i = 0; i < dispatch->held.count; i++)
        in->row[i].flow = dispatch->held.item[i].id;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    dispatch->group = weft_new_array(tx->arena, struct group, rows.count + 1);
    dispatch->groups = rows.count;
    dispatch->more = rows.count == GROUPS_AT_ONCE;
    for (size_t i = 0; i < dispatch->groups; i++) {
        const struct weft_groups_take_out *row = &weft_out_groups_take(&rows)[i];
        dispatch->group[i] = (struct group){
            .id = row->id,
            .flow = weft_flows_find(&dispatch->held, &row->flow),
            .reason = row->reason,
            .at_us = row->at,
            .wakes = row->wakes,
        };
    }
    return WEFT_OK;
}

/* An upstream to cancel, and why. */
struct sibling {
    struct weft_id id;
    int64_t reason;
    bool running_stays; /* its flow was cancelled without its running members */
};

static int by_id(const void *left, const void *right)
{
    return weft_id_cmp(&((const struct sibling *)left)->id, &((const struct sibling *)right)->id);
}

/* The same group: not recreated by a new decision of its join, and `wakes` did not change. */
static bool is_same(const struct group *before, const struct group *now)
{
    return weft_id_cmp(&before->id, &now->id) == 0 && before->at_us == now->at_us &&
           before->wakes == now->wakes;
}

/* Reads at most a chunk of upstreams, and notes how far that came. */
static enum weft_rc walk(struct weft_tx *tx, struct dispatch *dispatch, struct weft_rows *ret_rows,
                         struct weft_err *err)
{
    static const struct weft_id first = {0}; /* before any id */
    size_t chunk = weft_flow_chunk(tx);
    struct weft_call call;
    struct weft_group_members_in *in = weft_call_group_members(&call, tx->arena, dispatch->groups);
    in->chunk = (int64_t)chunk;
    call.most = chunk;
    for (size_t i = 0; i < dispatch->groups; i++) {
        struct group *group = &dispatch->group[i];
        const struct walk *from = &dispatch->from;
        bool goes_on = is_same(&from->group, group);
        group->spares = goes_on && from->group.spares;
        in->row[i].id = group->id;
        in->row[i].reason = group->reason;
        in->row[i].after = goes_on ? from->after : first;
    }
    enum weft_rc rc = weft_tx_run(tx, &call, 1, ret_rows, err);
    if (rc)
        return rc;
    dispatch->walked = dispatch->groups;
    if (ret_rows->count < chunk)
        return WEFT_OK;
    size_t last = chunk - 1;
    dispatch->more = true;
    const struct weft_group_members_out *row = &weft_out_group_members(ret_rows)[last];
    dispatch->to.after = row->id;
    dispatch->walked = 0;
    while (weft_id_cmp(&dispatch->group[dispatch->walked].id, &row->node) != 0)
        dispatch->walked++;
    return WEFT_OK;
}

/* The siblings to cancel, sorted; each once, for one of the reasons. */
static enum weft_rc find_siblings(struct weft_tx *tx, struct dispatch *dispatch,
                                  struct sibling **ret_sibling, size_t *ret_count,
                                  struct weft_err *err)
{
    struct weft_rows rows = {0};
    enum weft_rc rc = walk(tx, dispatch, &rows, err);
    if (rc)
        return rc;
    struct sibling *sibling = weft_new_array(tx->arena, struct sibling, rows.count + 1);
    struct group *group = dispatch->group; /* rows come in the order of the groups */
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_group_members_out *row = &weft_out_group_members(&rows)[i];
        while (weft_id_cmp(&group->id, &row->node) != 0)
            group++;
        int64_t fate = row->fate.value;
        if (!row->fate.set)
            continue;
        group->spares |= fate == WEFT_FATE_SPARED;
        int cancel = group->flow->cancel;
        if (fate != WEFT_FATE_SPARED && fate != WEFT_FATE_UNASKED)
            sibling[count++] =
                (struct sibling){.id = row->id,
                                 .reason = fate,
                                 .running_stays = cancel == WEFT_FLOW_CANCEL_PENDING ||
                                                  cancel == WEFT_FLOW_CANCEL_ONLY};
    }
    if (dispatch->walked < dispatch->groups)
        dispatch->to.group = dispatch->group[dispatch->walked];
    if (count > 1)
        qsort(sibling, count, sizeof(*sibling), by_id);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || by_id(&sibling[kept - 1], &sibling[i]) != 0)
            sibling[kept++] = sibling[i];
    *ret_sibling = sibling;
    *ret_count = kept;
    return WEFT_OK;
}

static enum weft_rc cancel_siblings(struct weft_tx *tx, struct dispatch *dispatch,
                                    struct weft_err *err)
{
    struct sibling *sibling = NULL;
    size_t count = 0;
    enum weft_rc rc = find_siblings(tx, dispatch, &sibling, &count, err);
    if (rc || count == 0)
        return rc;
    struct weft_id *id = weft_new_array(tx->arena, struct weft_id, count);
    for (size_t i = 0; i < count; i++)
        id[i] = sibling[i].id;
    rc = weft_change_lock(tx, id, count, &dispatch->changes, err);
    for (size_t i = 0; i < dispatch->changes.count && !rc; i++) {
        struct weft_change *change = &dispatch->changes.change[i];
        const struct sibling key = {.id = change->before.id};
        struct sibling *found = bsearch(&key, sibling, count, sizeof(key), by_id);
        if (found->running_stays && change->before.state == WEFT_STATE_RUNNING)
            continue;
        change->by = "flow";
        change->reason = found->reason == WEFT_FIRED_IMPOSSIBLE ? "sibling_quorum_impossible"
                                                                : "sibling_quorum_satisfied";
        if (weft_change_step(change, &(struct weft_event){.kind = WEFT_EVENT_CANCEL}))
            dispatch->done.cancelled++;
    }
    return rc ? rc : weft_change_write(tx, &dispatch->changes, err);
}

/* Walked groups are deleted, but groups with a spared upstream stay in the waiting state. */
static enum weft_rc settle_groups(struct weft_tx *tx, struct dispatch *dispatch,
                                  struct weft_err *err)
{
    struct weft_call done, wait;
    size_t gone = 0, kept = 0;
    struct weft_groups_done_in *done_in = weft_call_groups_done(&done, tx->arena, dispatch->walked);
    struct weft_groups_wait_in *wait_in = weft_call_groups_wait(&wait, tx->arena, dispatch->walked);
    for (size_t i = 0; i < dispatch->walked; i++) {
        const struct group *group = &dispatch->group[i];
        if (group->spares && group->reason) {
            wait_in->row[kept++].id = group->id;
        } else {
            done_in->row[gone++].id = group->id;
            dispatch->done.dispatched += group->reason != 0;
        }
    }
    done.rows = gone;
    wait.rows = kept;
    const struct weft_call call[] = {done, wait};
    return dispatch->walked > 0 ? weft_tx_run(tx, call, 2, NULL, err) : WEFT_OK;
}

static enum weft_rc dispatch_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct dispatch *dispatch = context;
    *dispatch =
        (struct dispatch){.flow = dispatch->flow, .count = dispatch->count, .from = dispatch->from};
    enum weft_rc rc = weft_flows_lock(tx, dispatch->flow, dispatch->count, &dispatch->held, err);
    if (rc || dispatch->held.count == 0)
        return rc;
    rc = take_groups(tx, dispatch, err);
    if (rc || dispatch->groups == 0)
        return rc;
    rc = cancel_siblings(tx, dispatch, err);
    return rc ? rc : settle_groups(tx, dispatch, err);
}

enum weft_rc weft_siblings_cancel(struct weft_engine *engine, const struct weft_id *flow,
                                  size_t count, struct weft_dispatched *ret_done,
                                  struct weft_err *err)
{
    struct dispatch dispatch = {.flow = flow, .count = count, .more = count > 0};
    enum weft_rc rc = WEFT_OK;
    while (dispatch.more && !rc) {
        struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, dispatch_body, &dispatch, err);
        if (!rc) {
            struct weft_commit_effects news = weft_news_new(tx.arena, tx.now_us);
            weft_change_news(&news, &dispatch.changes);
            news.flows = 0; /* the caller runs the cascade */
            weft_news_tell(engine, &news);
            ret_done->dispatched += dispatch.done.dispatched;
            ret_done->cancelled += dispatch.done.cancelled;
            ret_done->skipped_locked += count - dispatch.held.count;
            dispatch.from = dispatch.to;
        }
        weft_arena_free(tx.arena);
    }
    return rc;
}
