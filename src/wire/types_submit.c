/* SPDX-License-Identifier: Apache-2.0 */

/* What is submitted, executions and flows, and the messages about flows. */

#include "core/budget.h"
#include "wire/rows.h"

#include <assert.h>

/* ---- Policy ---------------------------------------------------------------------------------- */

/*
 * For writing and for the schema; weft_policy_parse() reads it. Its zeros mean "the default", so a
 * field that is 0 is left out.
 */
#define OF struct weft_policy

static const struct weft_wire_field backoff[] = {
    ROW("kind", BACKOFF, backoff, "How the wait before a retry grows"),
    ROW("initial_ms", AT_ONCE, initial_ms, "The first wait; 0: retry at once. Default: 1000",
        .max = WEFT_DELAY_MAX_MS),
    ROW("factor", DOUBLE, factor, "What each wait is multiplied by. Default: 2", .min = 1,
        .max = 1000),
    ROW("max_ms", I64, max_ms,
        "The longest wait. Default: 3600000, or initial_ms where that is more", .min = 1,
        .max = WEFT_DELAY_MAX_MS),
    ROW("jitter", UNLESS, no_jitter,
        "Wait a random time between 80 % and 120 % of the computed one, never more than "
        "max_ms. Default: true"),
};

const struct weft_wire_field weft_wire_policy[] = {
    ROW("max_attempts", I32, max_attempts, "Attempts before it has failed. Default: 25", .min = 1,
        .max = WEFT_ATTEMPTS_MAX),
    OBJECT("backoff", backoff, "The waits between attempts"),
    ROW("attempt_timeout_ms", I64, attempt_timeout_ms,
        "How long one attempt may take; 0: for ever. Default: 0", .max = WEFT_DELAY_MAX_MS),
    ROW("lease_ms", I64, lease_ms,
        "How long a lease lasts when the claim does not say. Default: 30000",
        .min = WEFT_LEASE_MIN_MS, .max = WEFT_LEASE_MAX_MS),
    ROW("no_retry", TEXTS, no_retry, "Error classes after which it is not tried again",
        COUNT(no_retry_count)),
    ROW("max_lost", I32, max_lost, "Leases that may be lost before it is given up. Default: 10",
        .min = 1, .max = WEFT_ATTEMPTS_MAX),
    ROW("retention_ms", I64, retention_ms,
        "How long its outcome is kept; four times as long when it failed or expired. Default: "
        "as the lane says, else 604800000",
        OR_NULL, .min = 1, .max = WEFT_DELAY_MAX_MS),
};
const size_t weft_wire_policy_count = WEFT_LEN(weft_wire_policy);
#undef OF

/* ---- Spec ------------------------------------------------------------------------------------ */

/*
 * The rows of a struct weft_spec, which may be a member of the struct: a spec alone and a node of a
 * flow are the same but for the key, which a node does not have.
 */
#define SPEC_ROWS(in)                                                                              \
    ROW("lane", TEXT, in lane, "The lane it waits in. Default: default"),                          \
        ROW("kind", TEXT, in kind, "What is to be done; workers claim by it", REQUIRED),           \
        BYTES("payload", in, payload, "Any JSON; it comes back byte for byte"),                    \
        ROW("content_type", CONTENT_TYPE, in content_type,                                         \
            "Of the payload. Default: application/json, or application/octet-stream with "         \
            "payload_base64"),                                                                     \
        ROW("priority", I32, in priority, "Higher ones are claimed first. Default: 0",             \
            .min = INT16_MIN, .max = INT16_MAX),                                                   \
        ROW("delay_ms", I64, in delay_ms, "How long from now it may not be claimed. Default: 0",   \
            .max = WEFT_DELAY_MAX_MS),                                                             \
        ROW("run_at", MOMENT, in run_at_us, "When it may be claimed; in the past means now",       \
            .rival = "delay_ms"),                                                                  \
        ROW("deadline_at", MOMENT, in deadline_us, "When it must be over; expired after that"),    \
        ROW("capabilities", TEXTS, in capabilities, "What a worker must be able to do",            \
            COUNT(in capability_count)),                                                           \
        ROW("tenant", TEXT, in tenant, "Whom it is for; tenants share a lane fairly"),             \
        ROW("tags", TAGS, in tags, "Free words to find it by", COUNT(in tag_count)),               \
        ROW("gate", TEXT, in gate, "Whose limits hold for it, for example customer:42"),           \
        ROW("budgets", TEXTS, in budgets, "Budgets it is under, besides those that match it",      \
            COUNT(in budget_count), .max = WEFT_BUDGETS_NAMED_MAX),                                \
        ROW("cost", AMOUNTS, in cost,                                                              \
            "What it is expected to spend, by dimension; reserved by its claim. Default: as its "  \
            "budgets estimate",                                                                    \
            COUNT(in cost_count), .max = WEFT_BUDGET_DIMENSIONS_MAX)
#define SPEC_POLICY(in) ROW("policy", POLICY, in policy, "Retries, timeouts and retention")

#define OF struct weft_spec

static const struct weft_wire_field spec[] = {
    SPEC_ROWS(),
    ROW("key", TEXT, key, "Idempotency key: the same key submits once in its namespace"),
    SPEC_POLICY(),
};
REQUEST(spec, "Spec", "What is to be carried out.");
#undef OF

#define OF struct weft_submit_result

static const struct weft_wire_field submitted[] = {
    ROW("id", ID, id, "The execution", REQUIRED),
    ROW("state", STATE, state, "Its state", REQUIRED),
    ROW("duplicate", BOOL, duplicate, "It was there already, by its key"),
};
ANSWER(submitted, "Submitted", "What a spec became.");
#undef OF

/* ---- Flows ----------------------------------------------------------------------------------- */

const char *const weft_wire_flow_states[WEFT_FLOW_STATE_COUNT] = {"open", "succeeded", "failed",
                                                                  "cancelled"};
const char *const weft_wire_flow_cancels[WEFT_FLOW_CANCEL_ONLY + 1] = {NULL, "all", "pending",
                                                                       "flow_only"};
static const char *const joins[] = {"all", "any", "quorum"};
static const char *const satisfied[] = {NULL, "cancel_remaining", "let_run"};

/* When a node may begin; the same in both directions. */
#define JOIN_ROWS                                                                                  \
    ROW("policy", WORD, join, "How many of the upstreams must succeed. Default: all",              \
        WORDS(joins)),                                                                             \
        ROW("k", U32, k, "Of a quorum: so many of them", OR_NULL, .max = WEFT_FLOW_NODES_MAX),     \
        ROW("on_satisfied", WORD, on_satisfied,                                                    \
            "What becomes of the other upstreams when it is decided. Default: let_run "            \
            "for all, else cancel_remaining",                                                      \
            WORDS(satisfied))

/* ---- Submitting ------------------------------------------------------------------------------ */

#define OF struct weft_node

static const struct weft_wire_field node_join[] = {JOIN_ROWS};

static const struct weft_wire_field node[] = {
    ROW("name", TEXT, name, "Unique in its flow", REQUIRED),
    SPEC_ROWS(spec.),
    SPEC_POLICY(spec.),
    ROW("after", TEXTS, after, "The nodes it comes after", COUNT(after_count),
        .max = WEFT_FLOW_NODES_MAX),
    OBJECT("join", node_join, "When it may begin"),
};
REQUEST(node, "Node", "A member of a flow: an execution with a name, and what it comes after.");
#undef OF

/* The nodes of a request. */
#define NODES                                                                                      \
    ROW("nodes", LIST, nodes, "In any order", COUNT(node_count), REQUIRED, .of = &weft_wire_node,  \
        .max = WEFT_FLOW_NODES_MAX)

#define OF struct weft_flow_spec

static const struct weft_wire_field flow_spec[] = {
    ROW("name", TEXT, name, "For people and lists"),
    ROW("key", TEXT, key, "Idempotency key: the same key submits once in its namespace"),
    NODES,
};
REQUEST(flow_spec, "FlowSpec", "A graph of executions.");
#undef OF

#define OF struct weft_flow_growth

static const struct weft_wire_field flow_growth[] = {
    ROW("revision", I32, revision, "Of the flow as the caller knows it",
        .flags = WEFT_WIRE_REQUIRED | WEFT_WIRE_CHECKED, .min = 1, .max = INT32_MAX),
    NODES,
};
REQUEST(flow_growth, "FlowGrowth",
        "Nodes for a flow that is open; they may come after nodes that are there.");
#undef OF

#define OF struct weft_flow_edge

static const struct weft_wire_field flow_edge[] = {
    ROW("from", TEXT, from, "The node that is to end first", REQUIRED),
    ROW("to", TEXT, to, "The node that is to come after it; it is blocked", REQUIRED),
};
REQUEST(flow_edge, "FlowEdge", "An edge between two nodes of a flow, by their names.");
#undef OF

#define OF struct weft_flow_edging

static const struct weft_wire_field flow_edging[] = {
    ROW("revision", I32, revision, "Of the flow as the caller knows it",
        .flags = WEFT_WIRE_REQUIRED | WEFT_WIRE_CHECKED, .min = 1, .max = INT32_MAX),
    ROW("edges", LIST, edges, "In any order", COUNT(edge_count), REQUIRED,
        .of = &weft_wire_flow_edge, .max = WEFT_FLOW_LINKS_MAX),
};
REQUEST(flow_edging, "FlowEdges", "Edges between nodes of a flow that is open.");
#undef OF

#define OF struct weft_wire_flow_submitted
#define NODE_IDS                                                                                   \
    ROW("nodes", IDS, nodes, "The execution of each node, by its name", COUNT(node_count),         \
        .max = WEFT_FLOW_NODES_MAX)
#define REVISION                                                                                   \
    ROW("revision", I32, revision, "Grows with each change of the graph", .max = INT32_MAX)

static const struct weft_wire_field flow_submitted[] = {
    ROW("id", ID, id, "The flow", REQUIRED),
    ROW("state", WORD, state, "Its state", REQUIRED, WORDS(weft_wire_flow_states)),
    NODE_IDS,
    REVISION,
    ROW("duplicate", BOOL, duplicate, "It was there already, by its key"),
};
ANSWER(flow_submitted, "FlowSubmitted", "What a flow became.");

static const struct weft_wire_field flow_linked[] = {REVISION};
ANSWER(flow_linked, "FlowLinked", "The flow with its new edges.");

static const struct weft_wire_field flow_grown[] = {REVISION, NODE_IDS};
ANSWER(flow_grown, "FlowGrown", "The nodes that were added.");
#undef OF

/* ---- Cancelling ------------------------------------------------------------------------------ */

#define OF struct weft_flow_cancelling

static const struct weft_wire_field flow_cancel[] = {
    ROW("policy", WORD, how,
        "Whom: all living members, all but the running ones (pending), or none (flow_only): "
        "nothing more begins. Default: all",
        WORDS(weft_wire_flow_cancels)),
    ROW("reason", TEXT, reason, "Kept with the flow and its members"),
};
REQUEST(flow_cancel, "FlowCancel", "Cancels a flow.");
#undef OF

#define OF struct weft_flow_cancelled

static const struct weft_wire_field flow_cancelled[] = {
    ROW("state", WORD, state, "Of the flow", REQUIRED, WORDS(weft_wire_flow_states)),
    ROW("cancelled", U64, cancelled, "Members that this call has cancelled so far"),
};
ANSWER(flow_cancelled, "FlowCancelled", "How far a cancellation is.");
#undef OF

/* ---- Looking --------------------------------------------------------------------------------- */

#define OF struct weft_flow_node

static const struct weft_wire_field flow_node_join[] = {JOIN_ROWS};
static const struct weft_wire_field flow_node_error[] = {
    ROW("class", TEXT, error_class, "What kind of error"),
    ROW("message", TEXT, error_message, "For people"),
    ROW("detail", ANY, error_detail,
        "What its worker said besides, any JSON; of the nodes of a page, some 8 MiB in all"),
};

static const struct weft_wire_field flow_node[] = {
    ROW("name", TEXT, name, "Its name in the flow", REQUIRED),
    ROW("id", ID, id, "Its execution", REQUIRED),
    ROW("state", STATE, state, "Where in its life it is", REQUIRED),
    ROW("attempt", I32, attempt, "The current or next attempt, from 1", .max = INT32_MAX),
    ROW("worker", TEXT, worker, "Who has it, or had it last"),
    ROW("started_at", MOMENT, started_us, "When it was claimed first"),
    ROW("finished_at", MOMENT, finished_us, "When it ended"),
    ROW("reason", TEXT, reason, "Why it was ended; of a suspended one, what it waits for"),
    OBJECT("error", flow_node_error, "The last error"),
    ROW("after", TEXTS, after, "The nodes it comes after", COUNT(after_count),
        .max = WEFT_FLOW_NODES_MAX),
    OBJECT("join", flow_node_join, "When it may begin"),
    ROW("fired", BOOL, fired, "Its join is decided"),
    ROW("timeout_at", MOMENT, timeout_us, "Of a suspended one: when the suspension times out"),
    ROW("escalated", BOOL, escalated, "The timeout passed, and an operator must look"),
    ROW("waitpoints", TEXTS, waitpoints, "Of a suspended one: names of up to 4 of its waitpoints",
        COUNT(waitpoint_count), .max = WEFT_WAITPOINTS_MAX),
};
ANSWER(flow_node, "FlowNode", "A member of a flow as it is now.");
#undef OF

/* The rows of a struct weft_flow, which may be a member of the struct. */
#define FLOW_ROWS(in)                                                                              \
    ROW("id", ID, in id, "The flow", REQUIRED), ROW("name", TEXT, in name, "As it was given"),     \
        ROW("state", WORD, in state, "It ends when its last member does", REQUIRED,                \
            WORDS(weft_wire_flow_states)),                                                         \
        ROW("revision", I32, in revision, "Grows with each change of the graph",                   \
            .max = INT32_MAX),                                                                     \
        ROW("created_at", MOMENT, in created_us, "When it was submitted"),                         \
        ROW("finished_at", MOMENT, in finished_us, "When it ended"),                               \
        ROW("cancel", WORD, in cancel, "How it was cancelled", WORDS(weft_wire_flow_cancels)),     \
        ROW("reason", TEXT, in reason, "Why it was cancelled"),                                    \
        ROW("node_count", U64, in node_count, "How many members it has")

#define OF struct weft_flow

static const struct weft_wire_field flow[] = {FLOW_ROWS()};
ANSWER(flow, "FlowItem", "A flow in a list.");
#undef OF

#define OF struct weft_flow_page

static const struct weft_wire_field flow_counts[] = {
    ROW("ready", U64, flow.count[WEFT_STATE_READY], "Waiting for a worker"),
    ROW("delayed", U64, flow.count[WEFT_STATE_DELAYED], "Waiting for their time"),
    ROW("blocked", U64, flow.count[WEFT_STATE_BLOCKED], "Waiting for others of the flow"),
    ROW("running", U64, flow.count[WEFT_STATE_RUNNING], "In the hands of workers"),
    ROW("suspended", U64, flow.count[WEFT_STATE_SUSPENDED], "Waiting for a signal"),
    ROW("held", U64, flow.count[WEFT_STATE_HELD], "Kept back"),
    ROW("succeeded", U64, flow.count[WEFT_STATE_SUCCEEDED], "Done"),
    ROW("failed", U64, flow.count[WEFT_STATE_FAILED], "Given up"),
    ROW("cancelled", U64, flow.count[WEFT_STATE_CANCELLED], "Ended by a cancel or by a sibling"),
    ROW("expired", U64, flow.count[WEFT_STATE_EXPIRED], "Past their deadline"),
    ROW("skipped", U64, flow.count[WEFT_STATE_SKIPPED], "Their join became impossible"),
};
static const struct weft_wire_field flow_page[] = {
    FLOW_ROWS(flow.),
    OBJECT("counts", flow_counts, "Members by state"),
    ROW("nodes", LIST, node, "The first of them, in the order of their submission", COUNT(count),
        .of = &weft_wire_flow_node, .max = WEFT_PAGE_MAX),
    ROW("next", TEXT, next, "Where GET /v1/flows/{id}/nodes goes on; null: these are all"),
};
ANSWER(flow_page, "Flow", "A flow with its nodes.");
#undef OF

/* ---- Along the edges ------------------------------------------------------------------------- */

#define OF struct weft_upstream

/* Its name is its key in the map. */
static_assert(offsetof(struct weft_upstream, node) == 0, "name first");

static const struct weft_wire_field upstream[] = {
    ROW("id", ID, id, "The execution", REQUIRED),
    ROW("state", STATE, state, "How it ended", REQUIRED),
    BYTES("result", , result, "As its worker gave it; absent when there is none"),
    ROW("content_type", CONTENT_TYPE, content_type, "Of the result"),
    ROW("ref", REF, too_large, "Where to read a result that is too large to come along", COUNT(id)),
};
ANSWER(upstream, "Upstream", "What a node came to that this one comes after.");
#undef OF
