/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replays of members of flows. Under the lock of the flow, which is taken before any outcome, the
 * member lives again, its join counts as satisfied, and a completion tells the cascade to look: the
 * edges that leave the member are pending again, and what was skipped only because of it comes
 * back. A join behind it that was satisfied stays so. The flow is open until its last member ends.
 */

#include "engine/flow.h"

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

/* Locks the flows and marks the members of those that nobody may see. */
static enum weft_rc hold_flows(struct weft_tx *tx, struct weft_members *members,
                               struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    struct weft_id *flow = weft_new_array(tx->arena, struct weft_id, members->count);
    for (size_t i = 0; i < members->count; i++)
        flow[i] = members->item[i].flow;
    size_t count = weft_ids_sort(flow, members->count);
    weft_call_init(&call, tx->arena, WEFT_STMT_FLOW_HOLD, count);
    for (size_t i = 0; i < count; i++)
        weft_set_id(&call, i, FLOW_HOLD_IN_FLOW, &flow[i]);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    for (size_t row = 0; row < rows.count && !rc; row++) {
        struct weft_id id = weft_get_id(&rows, row, FLOW_HOLD_OUT_ID);
        bool seen = weft_get_i64(&rows, row, FLOW_HOLD_OUT_STATE) >= 0 &&
                    weft_get(&rows, row, FLOW_HOLD_OUT_DELETED)->null;
        for (size_t i = 0; i < members->count && seen; i++)
            if (weft_id_cmp(&members->item[i].flow, &id) == 0)
                members->item[i].seen = true;
    }
    return rc;
}

enum weft_rc weft_members_hold(struct weft_tx *tx, const struct weft_id *id, size_t count,
                               struct weft_members *ret_members, struct weft_err *err)
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
    return hold_flows(tx, ret_members, err);
}

enum weft_rc weft_members_replayed(struct weft_tx *tx, const struct weft_members *members,
                                   struct weft_err *err)
{
    enum { HINT, FIRE, REOPEN, WAKE, CALLS };
    struct weft_call call[CALLS];
    struct weft_id *flow = weft_new_array(tx->arena, struct weft_id, members->count + 1);
    size_t count = 0;
    weft_call_init(&call[HINT], tx->arena, WEFT_STMT_COMPLETION_ADD, members->count);
    weft_call_init(&call[FIRE], tx->arena, WEFT_STMT_NODES_FIRE, members->count);
    weft_set_i64(&call[HINT], 0, COMPLETION_ADD_IN_AT, tx->now_us);
    for (size_t i = 0; i < members->count; i++) {
        const struct weft_member *member = &members->item[i];
        if (!member->replayed)
            continue;
        weft_set_id(&call[HINT], count, COMPLETION_ADD_IN_FLOW, &member->flow);
        weft_set_id(&call[HINT], count, COMPLETION_ADD_IN_ID, &member->id);
        weft_set_id(&call[FIRE], count, NODES_FIRE_IN_ID, &member->id);
        flow[count++] = member->flow;
    }
    if (count == 0)
        return WEFT_OK;
    call[HINT].rows = call[FIRE].rows = count;
    count = weft_ids_sort(flow, count);
    weft_call_init(&call[REOPEN], tx->arena, WEFT_STMT_FLOW_REOPEN, count);
    weft_call_init(&call[WAKE], tx->arena, WEFT_STMT_GROUPS_WAKE, count);
    for (size_t i = 0; i < count; i++) {
        weft_set_id(&call[REOPEN], i, FLOW_REOPEN_IN_FLOW, &flow[i]);
        weft_set_id(&call[WAKE], i, GROUPS_WAKE_IN_FLOW, &flow[i]);
    }
    return weft_tx_run(tx, call, CALLS, NULL, err);
}
