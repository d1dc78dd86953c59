/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the store and compares it with the expected state. */

#include "flowmodel.h"

#include "base/arena.h"
#include "engine/tx/tx.h"
#include "store/store.h"

void wrong(struct world *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_wrong(w->seed, w->step, fmt, args);
    va_end(args);
    w->failed = true;
}

struct seen {
    bool there;
    enum weft_state state;
    int fired;
    char reason[40];
};

static void read_members(struct world *w, const struct flow *flow, struct seen *seen)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_err err = {0};
    struct weft_id first = {0};
    *weft_call_flow_page(&call, arena) =
        (struct weft_flow_page_in){.flow = flow->id, .after = first, .batch = NODES_MAX + 1};
    if (weft_tx_once(any_engine(w), WEFT_TX_READ, &call, arena, &rows, &err))
        wrong(w, "cannot read the members: %s", err.text);
    for (size_t row = 0; row < rows.count; row++) {
        const struct weft_flow_page_out *out = &weft_out_flow_page(&rows)[row];
        const char *reason = out->reason;
        for (size_t i = 0; i < flow->count; i++) {
            if (strcmp(flow->member[i].name, out->name) != 0)
                continue;
            seen[i] = (struct seen){
                .there = true,
                .state = out->state,
                .fired = out->fired,
            };
            (void)snprintf(seen[i].reason, sizeof(seen[i].reason), "%s", reason ? reason : "");
        }
    }
    if (rows.count != flow->count)
        wrong(w, "the flow has %zu members, not %zu", rows.count, flow->count);
    weft_arena_free(arena);
}

void look(struct world *w, struct flow *flow, enum weft_state *ret_got)
{
    struct seen seen[NODES_MAX] = {{0}};
    read_members(w, flow, seen);
    for (size_t i = 0; i < flow->count; i++)
        ret_got[i] = seen[i].state;
}

static void compare_flow(struct world *w, const struct flow *flow)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_err err = {0};
    weft_call_flow_read(&call, arena)->id = flow->id;
    enum weft_rc rc = weft_tx_once(any_engine(w), WEFT_TX_READ, &call, arena, &rows, &err);
    const struct weft_flow_read_out *row = weft_out_flow_read(&rows);
    if (rc)
        wrong(w, "cannot read the flow: %s", err.text);
    else if (rows.count != 1)
        wrong(w, "the flow is not there");
    else if (row->flow_head.state != (int64_t)flow->state ||
             row->flow_head.revision != flow->revision ||
             row->flow_head.cancel != (int64_t)flow->cancel)
        wrong(w, "flow %zu is in state %d, revision %d, cancel %d; must be in %d, %d, %d",
              (size_t)(flow - w->flow), row->flow_head.state, row->flow_head.revision,
              row->flow_head.cancel, flow->state, flow->revision, flow->cancel);
    weft_arena_free(arena);
}

/* "sibling": for one reason or the other. */
static bool is_reason(const char *got, const char *want)
{
    if (!want)
        return false;
    bool sibling = strncmp(got, "sibling_quorum_", 15) == 0;
    if (strcmp(want, "sibling") == 0)
        return sibling;
    if (strcmp(want, EITHER_REASON) == 0)
        return sibling || strcmp(got, "flow") == 0;
    return strcmp(got, want) == 0;
}

void compare(struct world *w, struct flow *flow)
{
    struct seen seen[NODES_MAX] = {{0}};
    read_members(w, flow, seen);
    for (size_t i = 0; i < flow->count && !w->failed; i++) {
        const struct member *member = &flow->member[i];
        if (seen[i].state != member->state || seen[i].fired != member->fired)
            wrong(w, "flow %zu, %s is %s and its join %d (%s); must be %s and %d",
                  (size_t)(flow - w->flow), member->name, weft_state_name(seen[i].state),
                  seen[i].fired, seen[i].reason, weft_state_name(member->state), member->fired);
        if (seen[i].state == WEFT_STATE_CANCELLED && !is_reason(seen[i].reason, member->reason))
            wrong(w, "flow %zu, %s was cancelled for '%s', not for '%s'", (size_t)(flow - w->flow),
                  member->name, seen[i].reason, member->reason);
    }
    if (!w->failed)
        compare_flow(w, flow);
}
