/* SPDX-License-Identifier: Apache-2.0 */

/* Messages about flows. */

#include "wire/spec_rows.h"

#include <assert.h>

#define NAMED(name, kind) WEFT_WIRE_NAMED(name, kind)
#define WORDS(list)       .word = (list), .inners = WEFT_LEN(list)

const char *const weft_wire_flow_states[WEFT_FLOW_STATE_COUNT] = {"open", "succeeded", "failed",
                                                                  "cancelled"};
const char *const weft_wire_flow_cancels[WEFT_FLOW_CANCEL_ONLY + 1] = {NULL, "all", "pending",
                                                                       "flow_only"};
static const char *const joins[] = {"all", "any", "quorum"};
static const char *const satisfied[] = {NULL, "cancel_remaining", "let_run"};

/* When a node may begin; the same in both directions. */
#define JOIN_ROWS(c_type)                                                                          \
    {NAMED("policy", WORD), .at = offsetof(c_type, join), WORDS(joins),                            \
     .about = "How many of the upstreams must succeed. Default: all"},                             \
        {NAMED("k", U32), .flags = WEFT_WIRE_OR_NULL, .at = offsetof(c_type, k),                   \
         .max = WEFT_FLOW_NODES_MAX, .about = "Of a quorum: so many of them"},                     \
    {                                                                                              \
        NAMED("on_satisfied", WORD),                                                               \
            .at = offsetof(c_type, on_satisfied), WORDS(satisfied),                                \
            .about =                                                                               \
                "What becomes of the other upstreams when it is decided. Default: let_run "        \
                "for all, else cancel_remaining"                                                   \
    }

/* ---- Submitting ------------------------------------------------------------------------------ */

#define AT(field)    .at = offsetof(struct weft_node, field)
#define COUNT(field) .count = offsetof(struct weft_node, field)
#define SPEC         offsetof(struct weft_node, spec)

static const struct weft_wire_field node_join[] = {JOIN_ROWS(struct weft_node)};

static const struct weft_wire_field node[] = {
    {NAMED("name", TEXT), AT(name), .flags = WEFT_WIRE_REQUIRED, .about = "Unique in its flow"},
    WEFT_WIRE_SPEC_ROWS(SPEC),
    WEFT_WIRE_SPEC_POLICY(SPEC),
    {NAMED("after", TEXTS), AT(after), COUNT(after_count), .max = WEFT_FLOW_NODES_MAX,
     .about = "The nodes it comes after"},
    {NAMED("join", OBJECT), .inner = node_join, .inners = WEFT_LEN(node_join),
     .about = "When it may begin"},
};
const struct weft_wire_type weft_wire_node = {
    WEFT_WIRE_FIELDS(struct weft_node, node), .name = "Node",
    .about = "A member of a flow: an execution with a name, and what it comes after."};
#undef AT
#undef COUNT
#undef SPEC

/* The nodes of a request. */
#define NODES(c_type)                                                                              \
    {                                                                                              \
        NAMED("nodes", LIST), .at = offsetof(c_type, nodes),                                       \
                              .count = offsetof(c_type, node_count), .flags = WEFT_WIRE_REQUIRED,  \
                              .of = &weft_wire_node, .max = WEFT_FLOW_NODES_MAX,                   \
                              .about = "In any order"                                              \
    }

static const struct weft_wire_field flow_spec[] = {
    {NAMED("name", TEXT), .at = offsetof(struct weft_flow_spec, name),
     .about = "For people and lists"},
    {NAMED("key", TEXT), .at = offsetof(struct weft_flow_spec, key),
     .about = "Idempotency key: the same key submits once in its namespace"},
    NODES(struct weft_flow_spec),
};
const struct weft_wire_type weft_wire_flow_spec = {
    WEFT_WIRE_FIELDS(struct weft_flow_spec, flow_spec), .name = "FlowSpec",
    .about = "A graph of executions."};

static const struct weft_wire_field growth[] = {
    {NAMED("revision", I32), .at = offsetof(struct weft_flow_growth, revision),
     .flags = WEFT_WIRE_REQUIRED | WEFT_WIRE_CHECKED, .min = 1, .max = INT32_MAX,
     .about = "Of the flow as the caller knows it"},
    NODES(struct weft_flow_growth),
};
const struct weft_wire_type weft_wire_flow_growth = {
    WEFT_WIRE_FIELDS(struct weft_flow_growth, growth), .name = "FlowGrowth",
    .about = "Nodes for a flow that is open; they may come after nodes that are there."};

static const struct weft_wire_field edge[] = {
    {NAMED("from", TEXT), .at = offsetof(struct weft_flow_edge, from), .flags = WEFT_WIRE_REQUIRED,
     .about = "The node that is to end first"},
    {NAMED("to", TEXT), .at = offsetof(struct weft_flow_edge, to), .flags = WEFT_WIRE_REQUIRED,
     .about = "The node that is to come after it; it is blocked"},
};
const struct weft_wire_type weft_wire_flow_edge = {
    WEFT_WIRE_FIELDS(struct weft_flow_edge, edge), .name = "FlowEdge",
    .about = "An edge between two nodes of a flow, by their names."};

static const struct weft_wire_field edging[] = {
    {NAMED("revision", I32), .at = offsetof(struct weft_flow_edging, revision),
     .flags = WEFT_WIRE_REQUIRED | WEFT_WIRE_CHECKED, .min = 1, .max = INT32_MAX,
     .about = "Of the flow as the caller knows it"},
    {NAMED("edges", LIST), .at = offsetof(struct weft_flow_edging, edges),
     .count = offsetof(struct weft_flow_edging, edge_count), .flags = WEFT_WIRE_REQUIRED,
     .of = &weft_wire_flow_edge, .max = WEFT_FLOW_LINKS_MAX, .about = "In any order"},
};
const struct weft_wire_type weft_wire_flow_edging = {
    WEFT_WIRE_FIELDS(struct weft_flow_edging, edging), .name = "FlowEdges",
    .about = "Edges between nodes of a flow that is open."};

#define AT(field) .at = offsetof(struct weft_wire_flow_submitted, field)
#define IDS                                                                                        \
    {                                                                                              \
        NAMED("nodes", IDS), AT(nodes),                                                            \
            .count = offsetof(struct weft_wire_flow_submitted, node_count),                        \
            .max = WEFT_FLOW_NODES_MAX, .about = "The execution of each node, by its name"         \
    }
#define REVISION                                                                                   \
    {                                                                                              \
        NAMED("revision", I32), AT(revision), .max = INT32_MAX,                                    \
                                              .about = "Grows with each change of the graph"       \
    }

static const struct weft_wire_field submitted[] = {
    {NAMED("id", ID), AT(id), .flags = WEFT_WIRE_REQUIRED, .about = "The flow"},
    {NAMED("state", WORD), AT(state), .flags = WEFT_WIRE_REQUIRED, WORDS(weft_wire_flow_states),
     .about = "Its state"},
    IDS,
    REVISION,
    {NAMED("duplicate", BOOL), AT(duplicate), .about = "It was there already, by its key"},
};
const struct weft_wire_type weft_wire_flow_submitted = {
    WEFT_WIRE_FIELDS(struct weft_wire_flow_submitted, submitted), .name = "FlowSubmitted",
    .about = "What a flow became.", .answer = true};

static const struct weft_wire_field linked[] = {REVISION};
const struct weft_wire_type weft_wire_flow_linked = {
    WEFT_WIRE_FIELDS(struct weft_wire_flow_submitted, linked), .name = "FlowLinked",
    .about = "The flow with its new edges.", .answer = true};

static const struct weft_wire_field grown[] = {REVISION, IDS};
const struct weft_wire_type weft_wire_flow_grown = {
    WEFT_WIRE_FIELDS(struct weft_wire_flow_submitted, grown), .name = "FlowGrown",
    .about = "The nodes that were added.", .answer = true};
#undef AT
#undef IDS
#undef REVISION

/* ---- Cancelling ------------------------------------------------------------------------------ */

static const struct weft_wire_field cancel[] = {
    {NAMED("policy", WORD), .at = offsetof(struct weft_flow_cancelling, how),
     WORDS(weft_wire_flow_cancels),
     .about = "Whom: all living members, all but the running ones (pending), or none (flow_only): "
              "nothing more begins. Default: all"},
    {NAMED("reason", TEXT), .at = offsetof(struct weft_flow_cancelling, reason),
     .about = "Kept with the flow and its members"},
};
const struct weft_wire_type weft_wire_flow_cancel = {
    WEFT_WIRE_FIELDS(struct weft_flow_cancelling, cancel), .name = "FlowCancel",
    .about = "Cancels a flow."};

static const struct weft_wire_field cancelled[] = {
    {NAMED("state", WORD), .at = offsetof(struct weft_flow_cancelled, state),
     .flags = WEFT_WIRE_REQUIRED, WORDS(weft_wire_flow_states), .about = "Of the flow"},
    {NAMED("cancelled", U64), .at = offsetof(struct weft_flow_cancelled, cancelled),
     .about = "Members that this call has cancelled so far"},
};
const struct weft_wire_type weft_wire_flow_cancelled = {
    WEFT_WIRE_FIELDS(struct weft_flow_cancelled, cancelled), .name = "FlowCancelled",
    .about = "How far a cancellation is.", .answer = true};

/* ---- Looking --------------------------------------------------------------------------------- */

#define AT(field)    .at = offsetof(struct weft_flow_node, field)
#define COUNT(field) .count = offsetof(struct weft_flow_node, field)

static const struct weft_wire_field flow_node_join[] = {JOIN_ROWS(struct weft_flow_node)};
static const struct weft_wire_field flow_node_error[] = {
    {NAMED("class", TEXT), AT(error_class), .about = "What kind of error"},
    {NAMED("message", TEXT), AT(error_message), .about = "For people"},
};

static const struct weft_wire_field flow_node[] = {
    {NAMED("name", TEXT), AT(name), .flags = WEFT_WIRE_REQUIRED, .about = "Its name in the flow"},
    {NAMED("id", ID), AT(id), .flags = WEFT_WIRE_REQUIRED, .about = "Its execution"},
    {NAMED("state", STATE), AT(state), .flags = WEFT_WIRE_REQUIRED,
     .about = "Where in its life it is"},
    {NAMED("attempt", I32), AT(attempt), .max = INT32_MAX,
     .about = "The current or next attempt, from 1"},
    {NAMED("worker", TEXT), AT(worker), .about = "Who has it, or had it last"},
    {NAMED("started_at", MOMENT), AT(started_us), .about = "When it was claimed first"},
    {NAMED("finished_at", MOMENT), AT(finished_us), .about = "When it ended"},
    {NAMED("reason", TEXT), AT(reason), .about = "Why it was ended"},
    {NAMED("error", OBJECT), .inner = flow_node_error, .inners = WEFT_LEN(flow_node_error),
     .about = "The last error"},
    {NAMED("after", TEXTS), AT(after), COUNT(after_count), .max = WEFT_FLOW_NODES_MAX,
     .about = "The nodes it comes after"},
    {NAMED("join", OBJECT), .inner = flow_node_join, .inners = WEFT_LEN(flow_node_join),
     .about = "When it may begin"},
    {NAMED("fired", BOOL), AT(fired), .about = "Its join is decided"},
};
const struct weft_wire_type weft_wire_flow_node = {
    WEFT_WIRE_FIELDS(struct weft_flow_node, flow_node), .name = "FlowNode",
    .about = "A member of a flow as it is now.", .answer = true};
#undef AT
#undef COUNT

/* A page begins with its flow, so the rows are the same for both. */
static_assert(offsetof(struct weft_flow_page, flow) == 0, "flow first");

#define AT(field)       .at = offsetof(struct weft_flow, field)
#define IN_STATE(state) .at = offsetof(struct weft_flow, count[WEFT_STATE_##state])
#define FLOW_ROWS                                                                                  \
    {NAMED("id", ID), AT(id), .flags = WEFT_WIRE_REQUIRED, .about = "The flow"},                   \
        {NAMED("name", TEXT), AT(name), .about = "As it was given"},                               \
        {NAMED("state", WORD), AT(state), .flags = WEFT_WIRE_REQUIRED,                             \
         WORDS(weft_wire_flow_states), .about = "It ends when its last member does"},              \
        {NAMED("revision", I32), AT(revision), .max = INT32_MAX,                                   \
         .about = "Grows with each change of the graph"},                                          \
        {NAMED("created_at", MOMENT), AT(created_us), .about = "When it was submitted"},           \
        {NAMED("finished_at", MOMENT), AT(finished_us), .about = "When it ended"},                 \
        {NAMED("cancel", WORD), AT(cancel), WORDS(weft_wire_flow_cancels),                         \
         .about = "How it was cancelled"},                                                         \
        {NAMED("reason", TEXT), AT(reason), .about = "Why it was cancelled"},                      \
    {                                                                                              \
        NAMED("node_count", U64), AT(node_count), .about = "How many members it has"               \
    }

static const struct weft_wire_field flow[] = {FLOW_ROWS};
const struct weft_wire_type weft_wire_flow = {WEFT_WIRE_FIELDS(struct weft_flow, flow),
                                              .name = "FlowItem", .about = "A flow in a list.",
                                              .answer = true};

static const struct weft_wire_field flow_counts[] = {
    {NAMED("ready", U64), IN_STATE(READY), .about = "Waiting for a worker"},
    {NAMED("delayed", U64), IN_STATE(DELAYED), .about = "Waiting for their time"},
    {NAMED("blocked", U64), IN_STATE(BLOCKED), .about = "Waiting for others of the flow"},
    {NAMED("running", U64), IN_STATE(RUNNING), .about = "In the hands of workers"},
    {NAMED("suspended", U64), IN_STATE(SUSPENDED), .about = "Waiting for a signal"},
    {NAMED("held", U64), IN_STATE(HELD), .about = "Kept back"},
    {NAMED("succeeded", U64), IN_STATE(SUCCEEDED), .about = "Done"},
    {NAMED("failed", U64), IN_STATE(FAILED), .about = "Given up"},
    {NAMED("cancelled", U64), IN_STATE(CANCELLED), .about = "Ended by somebody or by a sibling"},
    {NAMED("expired", U64), IN_STATE(EXPIRED), .about = "Past their deadline"},
    {NAMED("skipped", U64), IN_STATE(SKIPPED), .about = "Their join became impossible"},
};
static const struct weft_wire_field flow_page[] = {
    FLOW_ROWS,
    {NAMED("counts", OBJECT), .inner = flow_counts, .inners = WEFT_LEN(flow_counts),
     .about = "Members by state"},
    {NAMED("nodes", LIST), .at = offsetof(struct weft_flow_page, node),
     .count = offsetof(struct weft_flow_page, count), .of = &weft_wire_flow_node,
     .max = WEFT_PAGE_MAX, .about = "The first of them, in the order of their submission"},
    {NAMED("next", TEXT), .at = offsetof(struct weft_flow_page, next),
     .about = "Where GET /v1/flows/{id}/nodes goes on; null: these are all"},
};
const struct weft_wire_type weft_wire_flow_page = {
    WEFT_WIRE_FIELDS(struct weft_flow_page, flow_page), .name = "Flow",
    .about = "A flow with its nodes.", .answer = true};
#undef AT
#undef IN_STATE

/* ---- Along the edges ------------------------------------------------------------------------- */

#define AT(field) .at = offsetof(struct weft_upstream, field)
#define BYTES                                                                                      \
    AT(result), .count = offsetof(struct weft_upstream, result_size),                              \
                .type = offsetof(struct weft_upstream, content_type)

/* Its name is its key in the map. */
static_assert(offsetof(struct weft_upstream, node) == 0, "name first");

static const struct weft_wire_field upstream[] = {
    {NAMED("id", ID), AT(id), .flags = WEFT_WIRE_REQUIRED, .about = "The execution"},
    {NAMED("state", STATE), AT(state), .flags = WEFT_WIRE_REQUIRED, .about = "How it ended"},
    {NAMED("result", JSON), BYTES, .about = "As its worker gave it; absent when there is none"},
    {NAMED("result_base64", BASE64), BYTES, .rival = "result",
     .about = "A result that is not JSON"},
    {NAMED("content_type", CONTENT_TYPE), AT(content_type), .about = "Of the result"},
    {NAMED("ref", REF), AT(too_large), .count = offsetof(struct weft_upstream, id),
     .about = "Where to read a result that is too large to come along"},
};
const struct weft_wire_type weft_wire_upstream = {
    WEFT_WIRE_FIELDS(struct weft_upstream, upstream), .name = "Upstream",
    .about = "What a node came to that this one comes after.", .answer = true};
#undef AT
#undef BYTES
