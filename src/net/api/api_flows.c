/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Flows: submitted, folded with others where they are small; grown, cancelled, deleted; and looked
 * at, at once or when they are over.
 */

#include "net/api/handlers.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "engine/flow/flow.h"
#include "net/api/api.h"
#include "net/group/commit_work.h"
#include "net/server.h"
#include "net/wait/waits.h"
#include "weft/weft.h"
#include "wire/wire.h"

enum { SHARED_NODES = WEFT_BATCH_MAX }; /* of a flow that may share a transaction */

/* ---- Submitting ------------------------------------------------------------------------------ */

static void blame_node(struct weft_request *request, const struct weft_flow_result *answer,
                       struct weft_err *err)
{
    if (answer->blamed > 0)
        err->field = weft_arena_printf(request->arena, "nodes[%zu]%s%s", answer->blamed - 1,
                                       err->field ? "." : "", err->field ? err->field : "");
}

static struct weft_wire_flow_submitted submitted(struct weft_request *request,
                                                 const struct weft_flow_result *answer,
                                                 const struct weft_node *node, size_t count)
{
    struct weft_wire_named_id *named =
        weft_new_array(request->arena, struct weft_wire_named_id, count);
    for (size_t i = 0; i < count; i++)
        named[i] = (struct weft_wire_named_id){.name = node[i].name, .id = answer->node[i]};
    return (struct weft_wire_flow_submitted){.id = answer->id,
                                             .state = answer->state,
                                             .nodes = named,
                                             .node_count = count,
                                             .revision = answer->revision,
                                             .duplicate = answer->duplicate};
}

enum weft_rc weft_flow_submit_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_flow_spec *spec = weft_new(request->arena, struct weft_flow_spec);
    enum weft_rc rc = weft_api_read_message(request, spec, err);
    if (rc)
        return rc;
    request->items = (struct weft_items){.item = spec,
                                         .err = weft_new(request->arena, const struct weft_err *),
                                         .count = 1,
                                         .alone = spec->node_count > SHARED_NODES};
    for (size_t i = 0; i < spec->node_count; i++)
        request->items.bytes += spec->nodes[i].spec.payload_size;
    return WEFT_OK;
}

void weft_flow_submit_write(struct weft_request *request)
{
    const struct weft_flow_spec *spec = request->items.item;
    const struct weft_flow_result *answer = request->items.answer;
    if (answer->rc) {
        struct weft_err err = *answer->err;
        blame_node(request, answer, &err);
        weft_reply_error(request, &err);
        return;
    }
    struct weft_wire_flow_submitted flow =
        submitted(request, answer, spec->nodes, spec->node_count);
    weft_api_reply_made(request, &answer->id, answer->duplicate, &flow);
}

/* A flow that is too large to share a transaction. */
enum weft_rc weft_flow_submit_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_flow_spec spec = *(const struct weft_flow_spec *)request->items.item;
    struct weft_flow_result *answer = weft_new(request->arena, struct weft_flow_result);
    spec.ns = request->ns;
    answer->node = weft_new_array(request->arena, struct weft_id, spec.node_count + 1);
    enum weft_rc rc = weft_engine_flow_submit(request->server->engine, request->ns, &spec, 1,
                                              request->arena, answer, err);
    request->items.answer = answer;
    if (!rc)
        weft_flow_submit_write(request);
    return rc;
}

/* ---- Growing --------------------------------------------------------------------------------- */

enum weft_rc weft_flow_grow_run(struct weft_request *request, struct weft_err *err)
{
    const struct weft_flow_growth *growth = request->state;
    struct weft_flow_result answer = {
        .node = weft_new_array(request->arena, struct weft_id, growth->node_count + 1)};
    enum weft_rc rc = weft_engine_flow_grow(request->server->engine, growth, &answer, err);
    if (rc) {
        blame_node(request, &answer, err);
        return rc;
    }
    struct weft_wire_flow_submitted flow =
        submitted(request, &answer, growth->nodes, growth->node_count);
    return weft_api_reply(request, WEFT_OK, &flow);
}

enum weft_rc weft_flow_edges_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_wire_flow_submitted linked = {0};
    enum weft_rc rc =
        weft_engine_flow_edges(request->server->engine, request->state, &linked.revision, err);
    return weft_api_reply(request, rc, &linked);
}

/* ---- Looking --------------------------------------------------------------------------------- */

struct wanted {
    struct weft_flow_asking asking;
    weft_usec until_us; /* boot time; 0: do not wait */
};

enum weft_rc weft_flow_read(struct weft_request *request, struct weft_err *err)
{
    struct wanted *wanted = weft_new(request->arena, struct wanted);
    wanted->asking =
        (struct weft_flow_asking){.ns = request->ns, .limit = WEFT_PAGE_MAX, .counts = true};
    request->state = wanted;
    enum weft_rc rc = weft_request_id(request, &wanted->asking.flow, err);
    return rc ? rc : weft_api_wait_until(request, &wanted->until_us, err);
}

/* The state of the flow alone: a request that waits looks many times. */
static enum weft_rc read_state(struct weft_request *request, const struct weft_id *id,
                               enum weft_flow_state *ret_state, struct weft_err *err)
{
    const struct weft_flow_asking asking = {.ns = request->ns, .flow = *id};
    struct weft_arena *arena = weft_arena_new();
    struct weft_flow_page page;
    enum weft_rc rc = weft_engine_flow(request->server->engine, &asking, arena, &page, err);
    if (!rc)
        *ret_state = page.flow.state;
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_flow_run(struct weft_request *request, struct weft_err *err)
{
    const struct wanted *wanted = request->state;
    struct weft_flow_page page;
    if (wanted->until_us > 0) {
        enum weft_flow_state state = WEFT_FLOW_OPEN;
        enum weft_rc rc = read_state(request, &wanted->asking.flow, &state, err);
        if (rc ||
            (state == WEFT_FLOW_OPEN && weft_wait_for_end(request, &wanted->asking.flow,
                                                          wanted->until_us, WEFT_WAIT_NOTIFIED)))
            return rc;
    }
    enum weft_rc rc =
        weft_engine_flow(request->server->engine, &wanted->asking, request->arena, &page, err);
    return weft_api_reply(request, rc, &page);
}

enum weft_rc weft_flow_nodes_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_flow_page page;
    enum weft_rc rc =
        weft_engine_flow(request->server->engine, request->state, request->arena, &page, err);
    return rc ? rc : weft_api_reply_page(request, &WEFT_API_PAGE(page.node, page.count, page.next));
}

enum weft_rc weft_flows_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_flow_listing *listing = weft_new(request->arena, struct weft_flow_listing);
    struct weft_paging paging = {0};
    const char *state = weft_request_query(request, "state");
    enum weft_rc rc = weft_api_paging(request, &paging, err);
    *listing = (struct weft_flow_listing){.ns = request->ns,
                                          .name = weft_request_query(request, "name"),
                                          .limit = paging.limit,
                                          .after = paging.after,
                                          .id = weft_request_query(request, "id")};
    request->state = listing;
    if (rc || !state)
        return rc;
    int found = weft_wire_word(weft_wire_flow_states, WEFT_FLOW_STATE_COUNT, state);
    if (found < 0)
        return weft_invalid(err, "state", "state must be one of open succeeded failed cancelled");
    listing->by_state = true;
    listing->state = (enum weft_flow_state)found;
    return WEFT_OK;
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

enum {
    AT_ONCE = 1000,     /* members that a call cancels although it does not wait for the end */
    AT_ONCE_CHUNKS = 8, /* of them: it may meet members that run on */
};

struct cancelling {
    struct weft_flow_cancelling args;
    weft_usec until_us; /* boot time; 0: do not wait */
    bool marked;        /* the flow is cancelled; its members are being */
    bool drained;
    struct weft_flow_drain drain;
    struct weft_flow_cancelled answer;
};

enum weft_rc weft_flow_cancel_read(struct weft_request *request, struct weft_err *err)
{
    struct cancelling *cancel = weft_new(request->arena, struct cancelling);
    request->state = cancel;
    enum weft_rc rc = weft_api_read_message(request, &cancel->args, err);
    if (!rc)
        rc = weft_request_id(request, &cancel->args.flow, err);
    if (!rc)
        rc = weft_api_wait_until(request, &cancel->until_us, err);
    cancel->args.ns = request->ns;
    if (cancel->args.how == WEFT_FLOW_CANCEL_NONE)
        cancel->args.how = WEFT_FLOW_CANCEL_ALL;
    return rc;
}

enum weft_rc weft_flow_delete_read(struct weft_request *request, struct weft_err *err)
{
    struct cancelling *cancel = weft_new(request->arena, struct cancelling);
    cancel->args = (struct weft_flow_cancelling){
        .ns = request->ns, .how = WEFT_FLOW_CANCEL_ALL, .reason = "deleted", .remove = true};
    request->state = cancel;
    return weft_request_id(request, &cancel->args.flow, err);
}

/* Cancels members while the time lasts, AT_ONCE in any case, the first of them with the mark. */
static enum weft_rc drain(struct weft_request *request, struct cancelling *cancel,
                          struct weft_err *err)
{
    struct weft_engine *engine = request->server->engine;
    enum weft_rc rc;
    unsigned chunks = 0;
    do {
        if (cancel->marked)
            rc = weft_engine_flow_drain(engine, &cancel->drain, err);
        else
            rc = weft_engine_flow_cancel(engine, &cancel->args, &cancel->answer.state,
                                         &cancel->drain, err);
        cancel->marked |= !rc;
        chunks++;
    } while (!rc && cancel->drain.more &&
             ((cancel->drain.cancelled_now < AT_ONCE && chunks < AT_ONCE_CHUNKS) ||
              weft_boot_us() < cancel->until_us));
    /* With the mark the flow is cancelled: the rest is done later, by this call or others. */
    if (rc && cancel->marked && err->cause == WEFT_CAUSE_FLOW_LOCKED)
        rc = WEFT_OK;
    cancel->drained = !rc && !cancel->drain.more;
    cancel->answer.cancelled = cancel->drain.cancelled_now;
    return rc;
}

/* Whether the cancel is complete; sets the state of the answer either way. */
static enum weft_rc look(struct weft_request *request, struct cancelling *cancel, bool *ret_done,
                         struct weft_err *err)
{
    if (cancel->args.remove) { /* it is hidden already; this is how it will end */
        if (cancel->answer.state == WEFT_FLOW_OPEN)
            cancel->answer.state = WEFT_FLOW_CANCELLED;
        *ret_done = cancel->drained;
        return WEFT_OK;
    }
    enum weft_rc rc = read_state(request, &cancel->args.flow, &cancel->answer.state, err);
    if (rc)
        return rc;
    /* Members that run on keep it open. */
    bool ends = cancel->args.how == WEFT_FLOW_CANCEL_ALL;
    *ret_done = cancel->answer.state != WEFT_FLOW_OPEN || (cancel->drained && !ends);
    return WEFT_OK;
}

enum weft_rc weft_flow_cancel_run(struct weft_request *request, struct weft_err *err)
{
    struct cancelling *cancel = request->state;
    bool done = false;
    enum weft_rc rc = WEFT_OK;
    if (!cancel->drained)
        rc = drain(request, cancel, err);
    if (!rc)
        rc = look(request, cancel, &done, err);
    if (!rc && done && !cancel->drained) /* others did the rest: their work counts too */
        rc = drain(request, cancel, err);
    if (rc)
        return rc;
    if (!done && cancel->until_us > 0 &&
        weft_wait_for_end(request, &cancel->args.flow, cancel->until_us, WEFT_WAIT_POLLS))
        return WEFT_OK;
    if (!cancel->drained)
        weft_add_drain(request->server, &cancel->args.flow);
    weft_reply_wire(request, done ? 200 : 202, &weft_wire_flow_cancelled, &cancel->answer);
    return WEFT_OK;
}
