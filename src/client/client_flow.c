/* SPDX-License-Identifier: Apache-2.0 */

/* The calls of weft.h about flows. */

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "client/client.h"
#include "engine/call.h"
#include "engine/flow/flow.h"
#include "weft/weft.h"

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
            rc = weft_invalid(err, "join.policy", "there is no such join");
        if (!rc && (unsigned)node[i].on_satisfied > WEFT_ON_SATISFIED_LET_RUN)
            rc = weft_invalid(err, "join.on_satisfied", "there is no such choice");
    }
    return rc;
}

static enum weft_rc check_flows(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_flow_spec *spec = call->in;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < call->count && !rc; i++)
        rc = check_nodes(spec[i].nodes, spec[i].node_count, err);
    return rc;
}

static enum weft_rc check_growth(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_flow_growth *growth = call->in;
    return check_nodes(growth->nodes, growth->node_count, err);
}

static enum weft_rc check_edges(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_flow_edging *edging = call->in;
    const struct weft_flow_edge *edge = edging->edges;
    if (edging->edge_count > 0 && !edge)
        return weft_missing("edges", err);
    if (edging->edge_count > WEFT_FLOW_LINKS_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "edges", "at most %d edges in one call",
                               WEFT_FLOW_LINKS_MAX);
    for (size_t i = 0; i < edging->edge_count; i++)
        if (!edge[i].from || !edge[i].to)
            return weft_missing(edge[i].from ? "to" : "from", err);
    return WEFT_OK;
}

static enum weft_rc check_cancel(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_flow_cancelling *args = call->in;
    if ((unsigned)args->how > WEFT_FLOW_CANCEL_ONLY)
        return weft_invalid(err, "policy", "there is no such policy");
    return WEFT_OK;
}

static enum weft_rc check_limit(uint32_t limit, struct weft_err *err)
{
    return weft_check_range(
        &(struct weft_range){.field = "limit", .value = limit, .max = WEFT_PAGE_MAX}, err);
}

static enum weft_rc check_asking(const struct weft_op_call *call, struct weft_err *err)
{
    return check_limit(((const struct weft_flow_asking *)call->in)->limit, err);
}

static enum weft_rc check_listing(const struct weft_op_call *call, struct weft_err *err)
{
    const struct weft_flow_listing *listing = call->in;
    enum weft_rc rc = check_limit(listing->limit, err);
    if (!rc && listing->by_state && (unsigned)listing->state >= WEFT_FLOW_STATE_COUNT)
        rc = weft_invalid(err, "state", "there is no such state");
    return rc;
}

/* ---- Changing -------------------------------------------------------------------------------- */

enum weft_rc weft_flow_submit(struct weft *weft, const struct weft_flow_spec *spec, size_t count,
                              struct weft_flow_submitted *ret_answer, struct weft_err *err)
{
    const struct weft_op_call call = {
        .op = WEFT_OP_FLOW_SUBMIT, .in = spec, .count = count, .out = ret_answer};
    return weft_do_items(weft, &call, check_flows, &weft_answers_flow, err);
}

enum weft_rc weft_flow_grow(struct weft *weft, const struct weft_flow_growth *growth,
                            struct weft_flow_submitted *ret_answer, struct weft_err *err)
{
    struct weft_flow_growth named = growth ? *growth : (struct weft_flow_growth){0};
    named.ns = weft_ns_of(weft, named.ns);
    struct weft_flow_result result = {.node = ret_answer ? ret_answer->node : NULL};
    const struct weft_op_call call = {.op = WEFT_OP_FLOW_GROW,
                                      .in = growth ? &named : NULL,
                                      .count = 1,
                                      .out = ret_answer ? &result : NULL};
    enum weft_rc rc = weft_do(&(struct weft_via){.weft = weft}, &call, check_growth, NULL, err);
    if (!rc)
        weft_answers_flow.give(&result, 1, ret_answer);
    else if (ret_answer)
        ret_answer->blamed = result.blamed;
    return rc;
}

enum weft_rc weft_flow_link(struct weft *weft, const struct weft_flow_edging *edging,
                            /* NOLINTNEXTLINE(readability-non-const-parameter): by the call */
                            int32_t *ret_revision, struct weft_err *err)
{
    struct weft_flow_edging named = edging ? *edging : (struct weft_flow_edging){0};
    named.ns = weft_ns_of(weft, named.ns);
    const struct weft_op_call call = {
        .op = WEFT_OP_FLOW_LINK, .in = edging ? &named : NULL, .count = 1, .out = ret_revision};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_edges, NULL, err);
}

enum weft_rc weft_flow_cancel(struct weft *weft, const struct weft_flow_cancelling *args,
                              int64_t wait_ms, struct weft_flow_cancelled *ret_answer,
                              struct weft_err *err)
{
    const struct weft_via via = {.weft = weft, .waits = true, .wait_ms = wait_ms};
    struct weft_flow_cancelling named = args ? *args : (struct weft_flow_cancelling){0};
    struct weft_flow_cancelled answer = {0};
    named.ns = weft_ns_of(weft, named.ns);
    if (named.how == WEFT_FLOW_CANCEL_NONE)
        named.how = WEFT_FLOW_CANCEL_ALL;
    const struct weft_op_call call = {.op =
                                          named.remove ? WEFT_OP_FLOW_DELETE : WEFT_OP_FLOW_CANCEL,
                                      .in = args ? &named : NULL,
                                      .count = 1,
                                      .out = ret_answer ? &answer : NULL};
    enum weft_rc rc = weft_do(&via, &call, check_cancel, NULL, err);
    if (!rc)
        *ret_answer = answer;
    return rc;
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

static enum weft_rc read_flow(const struct weft_via *via, enum weft_op op,
                              const struct weft_id *flow, struct weft_flow_asking asking,
                              struct weft_flow_page *ret_page, struct weft_err *err)
{
    asking.ns = weft_ns_of(via->weft, NULL);
    if (flow)
        asking.flow = *flow;
    const struct weft_op_call call = {
        .op = op, .in = flow ? &asking : NULL, .count = 1, .out = ret_page};
    return weft_do(via, &call, check_asking, WEFT_ARENA_OF(ret_page), err);
}

enum weft_rc weft_flow_get(struct weft *weft, const struct weft_id *flow, int64_t wait_ms,
                           struct weft_flow_page *ret_page, struct weft_err *err)
{
    const struct weft_via via = {.weft = weft, .waits = true, .wait_ms = wait_ms};
    const struct weft_flow_asking asking = {.limit = WEFT_PAGE_MAX, .counts = true};
    return read_flow(&via, WEFT_OP_FLOW, flow, asking, ret_page, err);
}

enum weft_rc weft_flow_nodes(struct weft *weft, const struct weft_id *flow, uint32_t limit,
                             const char *after, struct weft_flow_page *ret_page,
                             struct weft_err *err)
{
    const struct weft_via via = {.weft = weft};
    const struct weft_flow_asking asking = {.limit = limit ? limit : WEFT_PAGE_MAX, .after = after};
    return read_flow(&via, WEFT_OP_FLOW_NODES, flow, asking, ret_page, err);
}

WEFT_FREES(weft_flow_page)

enum weft_rc weft_flow_list(struct weft *weft, const struct weft_flow_listing *listing,
                            struct weft_flows *ret_flows, struct weft_err *err)
{
    enum { LIMIT_DEFAULT = 50 };
    struct weft_flow_listing wanted = listing ? *listing : (struct weft_flow_listing){0};
    wanted.ns = weft_ns_of(weft, wanted.ns);
    if (wanted.limit == 0)
        wanted.limit = LIMIT_DEFAULT;
    const struct weft_op_call call = {
        .op = WEFT_OP_FLOWS, .in = &wanted, .count = 1, .out = ret_flows};
    return weft_do(&(struct weft_via){.weft = weft}, &call, check_listing, WEFT_ARENA_OF(ret_flows),
                   err);
}

WEFT_FREES(weft_flows)
