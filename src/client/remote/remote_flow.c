/* SPDX-License-Identifier: Apache-2.0 */

/* Flows through a server: each is a request of its own. */

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "client/remote/remote.h"
#include "engine/call.h"
#include "engine/flow/flow.h"
#include "weft/weft.h"
#include "wire/wire.h"

#include <string.h>

enum { LARGE_MS = 120000 }; /* how much longer a server may take for a large flow */

/* Refuses fields that are not on the wire, and values that JSON has no word for. */
static enum weft_rc check_nodes(const struct weft_node *node, size_t count, size_t *ret_blamed,
                                struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        const char *name = node[i].name ? node[i].name : "";
        *ret_blamed = i + 1; /* if any */
        if (node[i].spec.key || node[i].spec.ns)
            return weft_invalid(err, node[i].spec.key ? "key" : "namespace",
                                "node '%s' names a key or a namespace: both are its flow's", name);
        rc = weft_remote_check_spec(&node[i].spec, err);
    }
    return rc;
}

/* The ids of an answer in the order of the nodes, which is that of their names in it. */
static bool read_ids(const struct weft_wire_flow_submitted *sent, const struct weft_node *node,
                     size_t count, struct weft_id *ret_id)
{
    if (sent->node_count != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(sent->nodes[i].name, node[i].name) != 0)
            return false;
        if (ret_id)
            ret_id[i] = sent->nodes[i].id;
    }
    return true;
}

/* Sends a message with these nodes and reads the answer about them. */
static enum weft_rc post(const struct weft_via *via, struct weft_remote_request request,
                         const struct weft_node *node, size_t count,
                         struct weft_flow_result *ret_answer, struct weft_err *err)
{
    struct weft_wire_flow_submitted sent;
    struct weft_remote_response response = {0};
    request.response = &response;
    request.wait_ms = count > WEFT_BATCH_MAX ? LARGE_MS : 0;
    enum weft_rc rc = check_nodes(node, count, &ret_answer->blamed, err);
    if (rc)
        return rc;
    struct weft_arena *arena = weft_arena_new();
    rc = weft_remote_one(via, &request, arena, &sent, err);
    ret_answer->blamed = response.node;
    if (!rc && !read_ids(&sent, node, count, ret_answer->node))
        rc = weft_remote_garbled(&request, err);
    if (!rc)
        *ret_answer = (struct weft_flow_result){.id = sent.id,
                                                .state = sent.state,
                                                .revision = sent.revision,
                                                .duplicate = sent.duplicate,
                                                .node = ret_answer->node};
    weft_arena_free(arena);
    return rc;
}

/* True when a failure is about the flow; others are about the call. */
static bool is_about_item(enum weft_rc rc)
{
    return rc == WEFT_INVALID_VALUE || rc == WEFT_UNKNOWN_FIELD || rc == WEFT_TOO_LARGE ||
           rc == WEFT_CONFLICT;
}

enum weft_rc weft_remote_flow_submit(const struct weft_via *via, const struct weft_op_call *call,
                                     struct weft_err *err)
{
    const struct weft_flow_spec *spec = call->in;
    struct weft_flow_result *answer = call->out;
    for (size_t i = 0; i < call->count; i++) {
        const struct weft_remote_request request = {
            .op = call->op, .ns = spec[i].ns, .item = &spec[i], .keyless = !spec[i].key};
        struct weft_err story = {0};
        struct weft_id *node = answer[i].node;
        enum weft_rc rc = post(via, request, spec[i].nodes, spec[i].node_count, &answer[i], &story);
        if (rc && i == 0 && !is_about_item(rc))
            return weft_copy_err(rc, &story, err);
        if (!rc)
            continue;
        /* Earlier flows are done. */
        const struct weft_err *kept = weft_err_dup(call->arena, &story);
        answer[i] =
            (struct weft_flow_result){WEFT_FAILED(kept), .node = node, .blamed = answer[i].blamed};
    }
    return WEFT_OK;
}

enum weft_rc weft_remote_flow_grow(const struct weft_via *via, const struct weft_op_call *call,
                                   struct weft_err *err)
{
    const struct weft_flow_growth *growth = call->in;
    struct weft_flow_result *answer = call->out;
    const struct weft_remote_request request = {.op = call->op,
                                                .place = weft_remote_id(call->arena, &growth->flow),
                                                .ns = growth->ns,
                                                .item = growth};
    enum weft_rc rc = post(via, request, growth->nodes, growth->node_count, answer, err);
    if (!rc)
        answer->id = growth->flow;
    return rc;
}

enum weft_rc weft_remote_flow_link(const struct weft_via *via, const struct weft_op_call *call,
                                   struct weft_err *err)
{
    const struct weft_flow_edging *edging = call->in;
    const struct weft_remote_request request = {.op = call->op,
                                                .place = weft_remote_id(call->arena, &edging->flow),
                                                .ns = edging->ns,
                                                .item = edging};
    struct weft_wire_flow_submitted sent;
    enum weft_rc rc = weft_remote_one(via, &request, call->arena, &sent, err);
    if (!rc)
        *(int32_t *)call->out = sent.revision;
    return rc;
}

/* FLOW_CANCEL and FLOW_DELETE, which has no body and does not wait. */
enum weft_rc weft_remote_flow_cancel(const struct weft_via *via, const struct weft_op_call *call,
                                     struct weft_err *err)
{
    enum { DONE = 200 }; /* otherwise it was accepted, and goes on */
    const struct weft_flow_cancelling *args = call->in;
    struct weft_flow_cancelled *answer = call->out;
    struct weft_remote_response response = {0};
    struct weft_remote_request request = {.op = call->op,
                                          .place = weft_remote_id(call->arena, &args->flow),
                                          .ns = args->ns,
                                          .response = &response};
    if (call->op == WEFT_OP_FLOW_CANCEL) {
        request.item = args;
        request.wait_ms = via->wait_ms;
        request.query = weft_arena_printf(call->arena, "?wait_ms=%lld", (long long)via->wait_ms);
    }
    enum weft_rc rc = weft_remote_one(via, &request, call->arena, answer, err);
    if (!rc)
        answer->done = response.status == DONE;
    return rc;
}

/* ---- Reading --------------------------------------------------------------------------------- */

enum weft_rc weft_remote_flow(const struct weft_via *via, const struct weft_op_call *call,
                              struct weft_err *err)
{
    const struct weft_flow_asking *asking = call->in;
    struct weft_flow_page *page = call->out;
    weft_usec until_us = weft_mono_us() + via->wait_ms * WEFT_MS;
    for (;;) {
        int64_t slice_ms = weft_remote_wait_slice(until_us);
        const struct weft_remote_request request = {
            .op = call->op,
            .place = weft_remote_id(call->arena, &asking->flow),
            .query = weft_remote_wait_query(call->arena, slice_ms),
            .ns = asking->ns,
            .wait_ms = slice_ms};
        enum weft_rc rc = weft_remote_one(via, &request, call->arena, page, err);
        if (rc || page->flow.state != WEFT_FLOW_OPEN || slice_ms < WEFT_REMOTE_SLICE_MS)
            return rc;
    }
}

enum weft_rc weft_remote_flow_nodes(const struct weft_via *via, const struct weft_op_call *call,
                                    struct weft_err *err)
{
    const struct weft_flow_asking *asking = call->in;
    const struct weft_remote_request request = {
        .op = call->op,
        .place = weft_remote_id(call->arena, &asking->flow),
        .query =
            WEFT_QUERY(call->arena, {"limit", weft_arena_printf(call->arena, "%u", asking->limit)},
                       {"after", asking->after}),
        .ns = asking->ns};
    struct weft_remote_list listing = {0};
    enum weft_rc rc = weft_remote_page(via, &request, call->arena, &listing, err);
    if (!rc)
        *(struct weft_flow_page *)call->out = (struct weft_flow_page){.flow = {.id = asking->flow},
                                                                      .node = listing.item,
                                                                      .count = listing.count,
                                                                      .next = listing.next};
    return rc;
}

enum weft_rc weft_remote_flows(const struct weft_via *via, const struct weft_op_call *call,
                               struct weft_err *err)
{
    const struct weft_flow_listing *wanted = call->in;
    const char *query = WEFT_QUERY(
        call->arena, {"state", wanted->by_state ? weft_wire_flow_states[wanted->state] : NULL},
        {"name", wanted->name}, {"id", wanted->id},
        {"limit", weft_arena_printf(call->arena, "%u", wanted->limit)}, {"after", wanted->after});
    const struct weft_remote_request request = {.op = call->op, .query = query, .ns = wanted->ns};
    struct weft_remote_list list = {0};
    enum weft_rc rc = weft_remote_page(via, &request, call->arena, &list, err);
    if (!rc)
        *(struct weft_flows *)call->out = (struct weft_flows){.item = list.item,
                                                              .count = list.count,
                                                              .next = list.next,
                                                              .looked_to_us = list.looked_to_us};
    return rc;
}
