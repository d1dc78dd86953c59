/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sibling cancel: a join was decided, and its other upstreams are not needed for it any more.
 *
 * The cascade leaves a group per such join. Here, under the lock of the flow, every upstream that
 * is still alive and that feeds no join which may yet fire is cancelled, like any execution: a
 * running one loses its lease, and its end leaves a completion. The group goes when one statement
 * shows that all its upstreams have ended. When all that is left feeds an open join, the group
 * waits until a join of the flow fires. One transaction per chunk; a crash leaves the group.
 */

#include "engine/flow.h"

#include "base/id.h"

#include <stdlib.h>

struct group {
    struct weft_id id;
    const char *reason;
};

struct dispatch {
    const struct weft_id *flow;
    size_t count;
    struct weft_flows_held held; /* from here on of the last try */
    struct group *group;
    size_t groups;
    struct weft_changes changes;
    struct weft_dispatched done;
    bool more;
};

static enum weft_rc take_groups(struct weft_tx *tx, struct dispatch *dispatch, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, tx->arena, WEFT_STMT_GROUPS_TAKE, dispatch->held.count);
    weft_set_i64(&call, 0, GROUPS_TAKE_IN_CHUNK, WEFT_FLOW_CHUNK);
    for (size_t i = 0; i < dispatch->held.count; i++)
        weft_set_id(&call, i, GROUPS_TAKE_IN_FLOW, &dispatch->held.item[i].id);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    dispatch->group = weft_new_array(tx->arena, struct group, rows.count + 1);
    dispatch->groups = rows.count;
    for (size_t i = 0; i < rows.count; i++)
        dispatch->group[i] = (struct group){
            .id = weft_get_id(&rows, i, GROUPS_TAKE_OUT_ID),
            .reason = weft_get_i64(&rows, i, GROUPS_TAKE_OUT_REASON) == WEFT_FIRED_IMPOSSIBLE
                          ? "sibling_quorum_impossible"
                          : "sibling_quorum_satisfied",
        };
    return WEFT_OK;
}

/* An upstream to cancel, and for which group. */
struct sibling {
    struct weft_id id;
    struct group *group;
};

static int by_id(const void *left, const void *right)
{
    return weft_id_cmp(&((const struct sibling *)left)->id, &((const struct sibling *)right)->id);
}

static struct group *group_of(const struct dispatch *dispatch, const struct weft_id *id)
{
    for (size_t i = 0; i < dispatch->groups; i++)
        if (weft_id_cmp(&dispatch->group[i].id, id) == 0)
            return &dispatch->group[i];
    return NULL;
}

/* The siblings to cancel, sorted; each once, for the first group that wants it. */
static enum weft_rc find_siblings(struct weft_tx *tx, struct dispatch *dispatch,
                                  struct sibling **ret_sibling, size_t *ret_count,
                                  struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, tx->arena, WEFT_STMT_GROUP_MEMBERS, dispatch->groups);
    weft_set_i64(&call, 0, GROUP_MEMBERS_IN_CHUNK, WEFT_FLOW_CHUNK);
    for (size_t i = 0; i < dispatch->groups; i++)
        weft_set_id(&call, i, GROUP_MEMBERS_IN_ID, &dispatch->group[i].id);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    size_t count = rows.count < WEFT_FLOW_CHUNK ? rows.count : WEFT_FLOW_CHUNK, kept = 0;
    dispatch->more = rows.count >= WEFT_FLOW_CHUNK;
    struct sibling *sibling = weft_new_array(tx->arena, struct sibling, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct weft_id node = weft_get_id(&rows, i, GROUP_MEMBERS_OUT_NODE);
        sibling[i] = (struct sibling){.id = weft_get_id(&rows, i, GROUP_MEMBERS_OUT_ID),
                                      .group = group_of(dispatch, &node)};
    }
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
        change->by = "flow";
        change->reason = found->group->reason;
        if (weft_change_step(change, &(struct weft_event){.kind = WEFT_EVENT_CANCEL}))
            dispatch->done.cancelled++;
    }
    return rc ? rc : weft_change_write(tx, &dispatch->changes, err);
}

/* Groups that are drained go; when nothing more can be cancelled now, the others wait. */
static enum weft_rc settle_groups(struct weft_tx *tx, struct dispatch *dispatch,
                                  struct weft_err *err)
{
    struct weft_call call[2];
    struct weft_rows rows[2];
    weft_call_init(&call[0], tx->arena, WEFT_STMT_GROUPS_DONE, dispatch->groups);
    weft_call_init(&call[1], tx->arena, WEFT_STMT_GROUPS_WAIT, dispatch->groups);
    for (size_t i = 0; i < dispatch->groups; i++) {
        weft_set_id(&call[0], i, GROUPS_DONE_IN_ID, &dispatch->group[i].id);
        weft_set_id(&call[1], i, GROUPS_WAIT_IN_ID, &dispatch->group[i].id);
    }
    enum weft_rc rc = weft_tx_run(tx, call, dispatch->more ? 1 : 2, rows, err);
    if (!rc)
        dispatch->done.dispatched = rows[0].count;
    return rc;
}

static enum weft_rc dispatch_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct dispatch *dispatch = context;
    *dispatch = (struct dispatch){.flow = dispatch->flow, .count = dispatch->count};
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
            struct weft_tidings news = weft_news_new(tx.arena, tx.now_us);
            weft_change_news(&news, &dispatch.changes);
            news.flows = 0; /* the caller runs the cascade */
            weft_news_tell(engine, &news);
            ret_done->dispatched += dispatch.done.dispatched;
            ret_done->cancelled += dispatch.done.cancelled;
            ret_done->skipped_locked += count - dispatch.held.count;
        }
        weft_arena_free(tx.arena);
    }
    return rc;
}
