/* SPDX-License-Identifier: Apache-2.0 */

/* The calls of weft.h about flows: what a caller can get wrong about pointers is answered here. */

#include "client/client.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"

/* ---- Arguments ------------------------------------------------------------------------------- */

static enum weft_rc check_nodes(const struct weft_node *node, size_t count, struct weft_err *err)
{
    if (count > 0 && !node)
        return weft_missing("nodes", err);
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        rc = weft_check_spec(&node[i].spec, i, err);
        if (!rc)
            rc = weft_check_array(node[i].after, node[i].after_count, "after", i, err);
        if (!rc && (unsigned)node[i].join > WEFT_JOIN_QUORUM)
            rc = weft_fail_field(err, WEFT_INVALID_VALUE, "join.policy", "there is no such join");
        if (!rc && (unsigned)node[i].on_satisfied > WEFT_ON_SATISFIED_LET_RUN)
            rc = weft_fail_field(err, WEFT_INVALID_VALUE, "join.on_satisfied",
                                 "there is no such choice");
    }
    return rc;
}

static enum weft_rc check_edges(const struct weft_flow_edge *edge, size_t count,
                                struct weft_err *err)
{
    if (count > 0 && !edge)
        return weft_missing("edges", err);
    if (count > WEFT_FLOW_LINKS_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "edges", "at most %d edges in one call",
                               WEFT_FLOW_LINKS_MAX);
    for (size_t i = 0; i < count; i++)
        if (!edge[i].from || !edge[i].to)
            return weft_missing(edge[i].from ? "to" : "from", err);
    return WEFT_OK;
}

/* A handle, what goes in and where the answer goes. */
static enum weft_rc check_call(const struct weft *weft, const void *in, const void *out,
                               int64_t wait_ms, int64_t wait_max, struct weft_err *err)
{
    const struct weft_given given = {weft, in, 1, out};
    const struct weft_range range = {.field = "wait_ms", .value = wait_ms, .max = wait_max};
    enum weft_rc rc = weft_check_given(&given, err);
    return rc ? rc : weft_check_range(&range, err);
}

/* ---- Changing -------------------------------------------------------------------------------- */

enum weft_rc weft_flow_submit(struct weft *weft, const struct weft_flow_spec *spec, size_t count,
                              struct weft_flow_submitted *ret_answer, struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_given given = {weft, spec, count, ret_answer};
    enum weft_rc rc = weft_check_given(&given, &story);
    for (size_t i = 0; i < count && !rc; i++)
        rc = check_nodes(spec[i].nodes, spec[i].node_count, &story);
    const struct weft_via via = {.weft = weft};
    if (!rc && count)
        rc = weft->backend->flow_submit(&via, spec, count, ret_answer, &story);
    return weft_told(rc, &story, err);
}

enum weft_rc weft_flow_grow(struct weft *weft, const struct weft_flow_growth *growth,
                            struct weft_flow_submitted *ret_answer, struct weft_err *err)
{
    struct weft_err story = {0};
    enum weft_rc rc = check_call(weft, growth, ret_answer, 0, 0, &story);
    if (!rc)
        rc = check_nodes(growth->nodes, growth->node_count, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_flow_growth named = *growth;
    if (!named.ns)
        named.ns = weft->ns;
    const struct weft_via via = {.weft = weft};
    return weft_told(weft->backend->flow_grow(&via, &named, ret_answer, &story), &story, err);
}

enum weft_rc weft_flow_link(struct weft *weft, const struct weft_flow_edging *edging,
                            int32_t *ret_revision, struct weft_err *err)
{
    struct weft_err story = {0};
    enum weft_rc rc = check_call(weft, edging, ret_revision, 0, 0, &story);
    if (!rc)
        rc = check_edges(edging->edges, edging->edge_count, &story);
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_flow_edging named = *edging;
    if (!named.ns)
        named.ns = weft->ns;
    const struct weft_via via = {.weft = weft};
    return weft_told(weft->backend->flow_link(&via, &named, ret_revision, &story), &story, err);
}

enum weft_rc weft_flow_cancel(struct weft *weft, const struct weft_flow_cancelling *args,
                              int64_t wait_ms, struct weft_flow_cancelled *ret_answer,
                              struct weft_err *err)
{
    struct weft_err story = {0};
    enum weft_rc rc = check_call(weft, args, ret_answer, wait_ms, WEFT_CLAIM_WAIT_MAX, &story);
    if (!rc && (unsigned)args->how > WEFT_FLOW_CANCEL_ONLY)
        rc = weft_fail_field(&story, WEFT_INVALID_VALUE, "policy", "there is no such policy");
    if (rc)
        return weft_told(rc, &story, err);
    struct weft_flow_cancelling named = *args;
    if (!named.ns)
        named.ns = weft->ns;
    if (named.how == WEFT_FLOW_CANCEL_NONE)
        named.how = WEFT_FLOW_CANCEL_ALL;
    *ret_answer = (struct weft_flow_cancelled){0};
    const struct weft_via via = {.weft = weft};
    return weft_told(weft->backend->flow_cancel(&via, &named, wait_ms, ret_answer, &story), &story,
                     err);
}

enum weft_rc weft_flow_delete(struct weft *weft, const struct weft_id *flow, struct weft_err *err)
{
    if (!flow)
        return weft_missing("flow", err);
    const struct weft_flow_cancelling args = {
        .flow = *flow, .how = WEFT_FLOW_CANCEL_ALL, .reason = "deleted", .remove = true};
    struct weft_flow_cancelled answer;
    return weft_flow_cancel(weft, &args, 0, &answer, err);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static enum weft_rc read_page(struct weft *weft, const struct weft_flow_asking *asking,
                              int64_t wait_ms, struct weft_flow_page *ret_page,
                              struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    const struct weft_via via = {.weft = weft};
    enum weft_rc rc = weft->backend->flow(&via, asking, wait_ms, arena, ret_page, err);
    if (rc)
        weft_arena_free(arena);
    else
        ret_page->arena = arena;
    return rc;
}

enum weft_rc weft_flow_get(struct weft *weft, const struct weft_id *flow, int64_t wait_ms,
                           struct weft_flow_page *ret_page, struct weft_err *err)
{
    struct weft_err story = {0};
    enum weft_rc rc = check_call(weft, flow, ret_page, wait_ms, WEFT_CLIENT_WAIT_MAX_MS, &story);
    if (!rc) {
        const struct weft_flow_asking asking = {
            .ns = weft->ns, .flow = *flow, .limit = WEFT_PAGE_MAX, .counts = true};
        rc = read_page(weft, &asking, wait_ms, ret_page, &story);
    }
    return weft_told(rc, &story, err);
}

enum weft_rc weft_flow_nodes(struct weft *weft, const struct weft_id *flow, uint32_t limit,
                             const char *after, struct weft_flow_page *ret_page,
                             struct weft_err *err)
{
    struct weft_err story = {0};
    const struct weft_range range = {.field = "limit", .value = limit, .max = WEFT_PAGE_MAX};
    enum weft_rc rc = check_call(weft, flow, ret_page, 0, 0, &story);
    if (!rc)
        rc = weft_check_range(&range, &story);
    if (!rc) {
        const struct weft_flow_asking asking = {
            .ns = weft->ns, .flow = *flow, .limit = limit ? limit : WEFT_PAGE_MAX, .after = after};
        rc = read_page(weft, &asking, 0, ret_page, &story);
    }
    return weft_told(rc, &story, err);
}

void weft_flow_page_free(struct weft_flow_page *page)
{
    if (!page)
        return;
    weft_arena_free(page->arena);
    *page = (struct weft_flow_page){0};
}

enum weft_rc weft_flow_list(struct weft *weft, const struct weft_flow_listing *listing,
                            struct weft_flows *ret_flows, struct weft_err *err)
{
    struct weft_err story = {0};
    struct weft_flow_listing wanted = {0};
    enum weft_rc rc = check_call(weft, &wanted, ret_flows, 0, 0, &story);
    if (listing)
        wanted = *listing;
    const struct weft_range range = {.field = "limit", .value = wanted.limit, .max = WEFT_PAGE_MAX};
    if (!rc)
        rc = weft_check_range(&range, &story);
    if (!rc && wanted.by_state && (unsigned)wanted.state >= WEFT_FLOW_STATE_COUNT)
        rc = weft_fail_field(&story, WEFT_INVALID_VALUE, "state", "there is no such state");
    if (rc)
        return weft_told(rc, &story, err);
    enum { LIMIT_DEFAULT = 50 };
    if (!wanted.ns)
        wanted.ns = weft->ns;
    if (wanted.limit == 0)
        wanted.limit = LIMIT_DEFAULT;
    struct weft_arena *arena = weft_arena_new();
    const struct weft_via via = {.weft = weft};
    rc = weft->backend->flows(&via, &wanted, arena, ret_flows, &story);
    if (rc)
        weft_arena_free(arena);
    else
        ret_flows->arena = arena;
    return weft_told(rc, &story, err);
}

void weft_flows_free(struct weft_flows *flows)
{
    if (!flows)
        return;
    weft_arena_free(flows->arena);
    *flows = (struct weft_flows){0};
}
