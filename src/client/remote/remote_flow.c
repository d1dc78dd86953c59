/* SPDX-License-Identifier: Apache-2.0 */

/* Flows through a server: each is a request of its own. */

#include "client/remote/remote.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "wire/wire.h"

#include <string.h>

enum {
    WAIT_SLICE_MS = 20000, /* how long one request waits for the end of a flow */
    LARGE_MS = 120000,     /* how much longer a server may take for a large flow */
};

/* "/flows/ID" and what follows, in the arena. */
static const char *path_of(struct weft_arena *arena, const struct weft_id *id, const char *tail)
{
    char text[WEFT_ID_TEXT];
    weft_id_print(id, text);
    return weft_arena_printf(arena, "/flows/%s%s", text, tail);
}

/* What is not on the wire, or JSON has no word for. */
static enum weft_rc check_nodes(const struct weft_node *node, size_t count, size_t *ret_blamed,
                                struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        const char *name = node[i].name ? node[i].name : "";
        *ret_blamed = i + 1; /* if any */
        if (node[i].spec.key || node[i].spec.ns)
            return weft_fail_field(err, WEFT_INVALID_VALUE, node[i].spec.key ? "key" : "namespace",
                                   "node '%s' names a key or a namespace: both are its flow's",
                                   name);
        rc = weft_remote_check_spec(&node[i].spec, err);
    }
    return rc;
}

/* The ids of an answer in the order of the nodes, which is that of their names in it. */
static bool read_ids(const struct weft_wire_flow_submitted *told, const struct weft_node *node,
                     size_t count, struct weft_id *ret_id)
{
    if (told->node_count != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(told->nodes[i].name, node[i].name) != 0)
            return false;
        if (ret_id)
            ret_id[i] = told->nodes[i].id;
    }
    return true;
}

/* A request about nodes: what it says, and the answer's type. */
struct posting {
    struct weft_request request; /* without its body */
    const struct weft_wire_type *takes, *gives;
    const void *item;
    const struct weft_node *node;
    size_t count;
};

static enum weft_rc post(const struct weft_via *via, const struct posting *posting,
                         struct weft_arena *arena, struct weft_flow_submitted *ret_answer,
                         struct weft_err *err)
{
    struct weft_buf body;
    struct weft_json_writer out;
    struct weft_json object;
    struct weft_wire_flow_submitted told;
    struct weft_request request = posting->request;
    struct weft_response response = {0};
    enum weft_rc rc = check_nodes(posting->node, posting->count, &ret_answer->blamed, err);
    if (rc)
        return rc;
    weft_buf_init(&body, SIZE_MAX);
    weft_json_writer_init(&out, &body);
    weft_wire_write(posting->takes, posting->item, &out);
    request.body = &body;
    if (posting->count > WEFT_BATCH_MAX)
        request.wait_ms = LARGE_MS;
    rc = weft_remote_send(via, &request, arena, &response, err);
    weft_buf_done(&body);
    ret_answer->blamed = response.node;
    if (!rc)
        rc = weft_remote_object(&request, &response, &object, err);
    if (rc)
        return rc;
    if (weft_wire_read_answer(posting->gives, &object, arena, &told, NULL) ||
        !read_ids(&told, posting->node, posting->count, ret_answer->node))
        return weft_remote_garbled(&request, err);
    struct weft_id *node = ret_answer->node;
    *ret_answer = (struct weft_flow_submitted){.id = told.id,
                                               .state = told.state,
                                               .revision = told.revision,
                                               .duplicate = told.duplicate,
                                               .node = node};
    return WEFT_OK;
}

/* True when a failure is about the flow; others are about the call. */
static bool is_about_item(enum weft_rc rc)
{
    return rc == WEFT_INVALID_VALUE || rc == WEFT_UNKNOWN_FIELD || rc == WEFT_TOO_LARGE ||
           rc == WEFT_CONFLICT;
}

enum weft_rc weft_remote_flow_submit(const struct weft_via *via, const struct weft_flow_spec *spec,
                                     size_t count, struct weft_flow_submitted *ret_answer,
                                     struct weft_err *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct posting posting = {
            .request = {.method = "POST", .path = "/flows", .ns = spec[i].ns, .once = !spec[i].key},
            .takes = &weft_wire_flow_spec,
            .gives = &weft_wire_flow_submitted,
            .item = &spec[i],
            .node = spec[i].nodes,
            .count = spec[i].node_count};
        struct weft_arena *arena = weft_arena_new();
        struct weft_err story = {0};
        struct weft_id *node = ret_answer[i].node;
        enum weft_rc rc = post(via, &posting, arena, &ret_answer[i], &story);
        weft_arena_free(arena);
        if (rc && i == 0 && !is_about_item(rc))
            return weft_told(rc, &story, err);
        if (rc) /* those before it are done */
            ret_answer[i] = (struct weft_flow_submitted){
                .err = story, .node = node, .blamed = ret_answer[i].blamed};
    }
    return WEFT_OK;
}

enum weft_rc weft_remote_flow_grow(const struct weft_via *via,
                                   const struct weft_flow_growth *growth,
                                   struct weft_flow_submitted *ret_answer, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    const struct posting posting = {
        .request = {.method = "POST",
                    .path = path_of(arena, &growth->flow, "/nodes"),
                    .ns = growth->ns,
                    .once = true}, /* a second time finds another revision */
        .takes = &weft_wire_flow_growth,
        .gives = &weft_wire_flow_grown,
        .item = growth,
        .node = growth->nodes,
        .count = growth->node_count};
    enum weft_rc rc = post(via, &posting, arena, ret_answer, err);
    if (!rc)
        ret_answer->id = growth->flow;
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_remote_flow_link(const struct weft_via *via,
                                   const struct weft_flow_edging *edging, int32_t *ret_revision,
                                   struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_wire_flow_submitted told;
    struct weft_buf body;
    struct weft_json_writer out;
    struct weft_json object;
    weft_buf_init(&body, SIZE_MAX);
    weft_json_writer_init(&out, &body);
    weft_wire_write(&weft_wire_flow_edging, edging, &out);
    const struct weft_request request = {.method = "POST",
                                         .path = path_of(arena, &edging->flow, "/edges"),
                                         .ns = edging->ns,
                                         .body = &body,
                                         .once = true}; /* as with growth */
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    weft_buf_done(&body);
    if (!rc && weft_wire_read_answer(&weft_wire_flow_linked, &object, arena, &told, NULL))
        rc = weft_remote_garbled(&request, err);
    if (!rc)
        *ret_revision = told.revision;
    weft_arena_free(arena);
    return rc;
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

static enum weft_rc remove_flow(const struct weft_via *via, const struct weft_flow_cancelling *args,
                                struct weft_arena *arena, struct weft_response *ret_response,
                                struct weft_err *err)
{
    const struct weft_request request = {
        .method = "DELETE", .path = path_of(arena, &args->flow, ""), .ns = args->ns, .once = true};
    return weft_remote_send(via, &request, arena, ret_response, err);
}

static enum weft_rc cancel_flow(const struct weft_via *via, const struct weft_flow_cancelling *args,
                                int64_t wait_ms, struct weft_arena *arena,
                                struct weft_response *ret_response, struct weft_err *err)
{
    struct weft_buf body;
    struct weft_json_writer out;
    weft_buf_init(&body, SIZE_MAX);
    weft_json_writer_init(&out, &body);
    weft_wire_write(&weft_wire_flow_cancel, args, &out);
    const struct weft_request request = {
        .method = "POST",
        .path = path_of(arena, &args->flow,
                        weft_arena_printf(arena, "/cancel?wait_ms=%lld", (long long)wait_ms)),
        .ns = args->ns,
        .body = &body,
        .wait_ms = wait_ms};
    enum weft_rc rc = weft_remote_send(via, &request, arena, ret_response, err);
    weft_buf_done(&body);
    return rc;
}

enum weft_rc weft_remote_flow_cancel(const struct weft_via *via,
                                     const struct weft_flow_cancelling *args, int64_t wait_ms,
                                     struct weft_flow_cancelled *ret_answer, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    const struct weft_request request = {.method = args->remove ? "DELETE" : "POST",
                                         .path = "/flows"};
    enum { DONE = 200 }; /* otherwise it was accepted, and goes on */
    struct weft_response response = {0};
    struct weft_json object;
    enum weft_rc rc = args->remove ? remove_flow(via, args, arena, &response, err)
                                   : cancel_flow(via, args, wait_ms, arena, &response, err);
    if (!rc)
        rc = weft_remote_object(&request, &response, &object, err);
    if (!rc && weft_wire_read_answer(&weft_wire_flow_cancelled, &object, arena, ret_answer, NULL))
        rc = weft_remote_garbled(&request, err);
    if (!rc)
        ret_answer->done = response.status == DONE;
    weft_arena_free(arena);
    return rc;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static enum weft_rc read_flow(const struct weft_via *via, const struct weft_flow_asking *asking,
                              int64_t wait_ms, struct weft_arena *arena,
                              struct weft_flow_page *ret_page, struct weft_err *err)
{
    const char *tail = wait_ms ? weft_arena_printf(arena, "?wait_ms=%lld", (long long)wait_ms) : "";
    const struct weft_request request = {.method = "GET",
                                         .path = path_of(arena, &asking->flow, tail),
                                         .ns = asking->ns,
                                         .wait_ms = wait_ms};
    struct weft_json object;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && weft_wire_read_answer(&weft_wire_flow_page, &object, arena, ret_page, NULL))
        rc = weft_remote_garbled(&request, err);
    return rc;
}

static enum weft_rc read_nodes(const struct weft_via *via, const struct weft_flow_asking *asking,
                               struct weft_arena *arena, struct weft_flow_page *ret_page,
                               struct weft_err *err)
{
    struct weft_buf url;
    weft_buf_init(&url, SIZE_MAX);
    weft_buf_add_text(&url, path_of(arena, &asking->flow, "/nodes"));
    weft_remote_query(&url, "limit", weft_arena_printf(arena, "%u", asking->limit));
    weft_remote_query(&url, "after", asking->after);
    const struct weft_request request = {.method = "GET", .path = url.data, .ns = asking->ns};
    struct weft_remote_list listing = {.type = &weft_wire_flow_node,
                                       .item_size = sizeof(struct weft_flow_node)};
    struct weft_json object;
    enum weft_rc rc = weft_remote_page(via, &request, arena, &listing, &object, err);
    weft_buf_done(&url);
    if (!rc)
        *ret_page = (struct weft_flow_page){.flow = {.id = asking->flow},
                                            .node = listing.item,
                                            .count = listing.count,
                                            .next = listing.next};
    return rc;
}

enum weft_rc weft_remote_flow(const struct weft_via *via, const struct weft_flow_asking *asking,
                              int64_t wait_ms, struct weft_arena *arena,
                              struct weft_flow_page *ret_page, struct weft_err *err)
{
    weft_usec until_us = weft_mono_us() + wait_ms * WEFT_MS;
    if (!asking->counts)
        return read_nodes(via, asking, arena, ret_page, err);
    for (;;) {
        int64_t left_ms = (until_us - weft_mono_us()) / WEFT_MS;
        int64_t slice_ms = left_ms < 0 ? 0 : left_ms < WAIT_SLICE_MS ? left_ms : WAIT_SLICE_MS;
        enum weft_rc rc = read_flow(via, asking, slice_ms, arena, ret_page, err);
        if (rc || ret_page->flow.state != WEFT_FLOW_OPEN || slice_ms == left_ms || left_ms <= 0)
            return rc;
    }
}

enum weft_rc weft_remote_flows(const struct weft_via *via, const struct weft_flow_listing *listing,
                               struct weft_arena *arena, struct weft_flows *ret_flows,
                               struct weft_err *err)
{
    struct weft_buf url;
    weft_buf_init(&url, SIZE_MAX);
    weft_buf_add_text(&url, "/flows");
    weft_remote_query(&url, "state",
                      listing->by_state ? weft_wire_flow_states[listing->state] : NULL);
    weft_remote_query(&url, "name", listing->name);
    weft_remote_query(&url, "id", listing->id);
    weft_remote_query(&url, "limit", weft_arena_printf(arena, "%u", listing->limit));
    weft_remote_query(&url, "after", listing->after);
    const struct weft_request request = {.method = "GET", .path = url.data, .ns = listing->ns};
    struct weft_remote_list list = {.type = &weft_wire_flow, .item_size = sizeof(struct weft_flow)};
    struct weft_json object;
    enum weft_rc rc = weft_remote_page(via, &request, arena, &list, &object, err);
    weft_buf_done(&url);
    if (!rc)
        *ret_flows = (struct weft_flows){.item = list.item,
                                         .count = list.count,
                                         .next = list.next,
                                         .looked_to_us = weft_remote_looked_to(&object)};
    return rc;
}
