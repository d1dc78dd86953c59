/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every route of the API: the server answers by this table and the OpenAPI document is written from
 * it. wire/ops.def says what an operation is (method, path, scope, group, messages); a row here
 * adds its handlers and its documentation. Routes of plain words stand before those with a {name}
 * in the same place.
 */

#include "net/api/routes.h"

#include "engine/flow/flow.h"
#include "engine/job/execution_read.h"
#include "engine/wait/wait.h"
#include "net/api/handlers.h"
#include "net/group/claims.h"
#include "net/request.h"
#include "weft/weft.h"

#include <stddef.h>

#define OP(name) (&weft_ops[WEFT_OP_##name])

/* What a row of an operation that runs alone begins with. */
#define RUNS(op_, read_, run_) .op = OP(op_), .read = (read_), .run = (run_)
#define AT(type, member)       (offsetof(struct type, member) + 1)
#define ARG(type, id_)         .size = sizeof(struct type), .ns = AT(type, ns), .id = AT(type, id_)
#define ARG_PAGE(type, id_)    ARG(type, id_), .limit = AT(type, limit), .after = AT(type, after)
/* Rows about leases, which take one item or many. */
#define LEASES_OR(op_, fails_)                                                                     \
    .op = OP(op_), .body_max = BODY_BULK, .read = weft_lease_read, .write = weft_lease_write,      \
    .fails = RC(NOT_FOUND) | RC(FENCED) | (fails_), .shape = WEFT_SHAPE_BULK, .bulk = true
#define LEASES(op_) LEASES_OR(op_, 0)
#define ONE_OR_ITEMS                                                                               \
    "The body is one item, answered as one object or with the error and its status; or "           \
    "`{\"items\":[...]}` with up to 1,000, answered with 200 item by item."
/* Rows that steer one execution. */
#define STEERS(op_)                                                                                \
    .op = OP(op_), .body_max = BODY_TINY, .read = weft_steer_read, .write = weft_steer_write

/* ---- The table ------------------------------------------------------------------------------- */

static const struct weft_route routes[] = {
    {
        .op = OP(SUBMIT),
        .body_max = BODY_BULK,
        .read = weft_submit_read,
        .write = weft_submit_write,
        .summary = "Hand over work: one execution, or many at once",
        .about =
            "One spec is answered with 201, or with 200 and `duplicate` when the key was used "
            "before; the same key with another payload is 409 `conflict`. `{\"items\":[...]}` "
            "takes up to 1,000 specs and is always answered with 200: each item has a result or "
            "an error, in the order given. With `Content-Type: application/x-ndjson` (or "
            "`application/ndjson`, `application/jsonl`) the body holds one spec on each line; "
            "blank lines are skipped, and a line that is refused does not touch the others. "
            "Many items come back as lines when `Accept` names `application/x-ndjson`.",
        .fails = RC(CONFLICT) | RC(LIMIT_EXCEEDED),
        .body = SUBMIT_BODY,
        .answer = SUBMIT_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
        .lines = true,
        .takes_lines = true,
        .creates = true,
    },
    {
        RUNS(LIST, weft_executions_read, weft_executions_run),
        .walks = true,
        .summary = "List executions, newest first; with Accept: application/x-ndjson all of them, "
                   "one a line",
        .about =
            "A page of the namespace's executions that fit all parameters given. With `Accept: "
            "application/x-ndjson` the answer is no page: all executions are sent, one on each "
            "line, for as long as it takes.",
        .query =
            {
                {"lane", NAME_SCHEMA, "Only of this lane"},
                {"kind", NAME_SCHEMA, "Only of this kind"},
                {"state", STATE_SCHEMA, "Only in this state"},
                {"tag", "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_.-]{1,64}:\"}",
                 "Only with this tag, as KEY:VALUE"},
                {"tenant", NAME_SCHEMA, "Only of this tenant"},
                {"flow", "{\"type\":\"string\",\"format\":\"uuid\"}", "Only members of this flow"},
                {"key", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":512}",
                 "The one with this idempotency key"},
                {"error_class", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":64}",
                 "Only those that ended with an error of this class"},
                {"worker", NAME_SCHEMA, "Only those whose lease this worker holds, or held last"},
                {"escalated", "{\"type\":\"boolean\",\"const\":true}",
                 "Only suspended ones that were left to an operator"},
                {PARAM_MOMENT("created_since", "Only created then or later")},
                {PARAM_MOMENT("created_until", "Only created before")},
                {PARAM_MOMENT("finished_since", "Only ended then or later")},
                {PARAM_MOMENT("finished_until", "Only ended before")},
                {PARAM_SHORT_ID},
                {PARAM_LIMIT},
                {PARAM_AFTER},
            },
        .shape = WEFT_SHAPE_PAGE,
        .lines = true,
    },
    {
        RUNS(CANCEL_MANY, weft_steer_many_read, weft_steer_many_run),
        .body_max = BODY_ONE,
        .summary = "Cancel many executions, by id or by filter",
        .about = "By `ids` (at most 1,000): answered item by item. By `filter`: at most `max` "
                 "executions are cancelled in one call, and `more` tells whether some are left. An "
                 "empty filter is refused.",
        .body = CANCEL_MANY_BODY,
        .answer = STEER_MANY_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        RUNS(REPLAY_MANY, weft_steer_many_read, weft_steer_many_run),
        .body_max = BODY_ONE,
        .locks_flow = true,
        .summary = "Replay many executions, by id or by filter",
        .about = "By `ids` (at most 1,000): answered item by item. By `filter`: at most `max` "
                 "executions are replayed in one call, and `more` tells whether some are left. An "
                 "empty filter is refused. Members of flows wait for their upstreams; those whose "
                 "upstreams, as they ended, do not allow it are left out, unless `force` is set.",
        .body = REPLAY_MANY_BODY,
        .answer = STEER_MANY_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        RUNS(DESCRIBE, weft_execution_read, weft_execution_run),
        .summary = "An execution, at once or when it is over",
        .about = "With `wait_ms` the answer comes when the execution has ended or the time has "
                 "passed, whichever is first: look at `state`.",
        .fails = RC(NOT_FOUND),
        .query = {{PARAM_WAIT}},
    },
    {
        RUNS(RESULT, weft_api_read, weft_api_run),
        .header = {WEFT_FOREIGN_HEADERS},
        .arg = {sizeof(struct weft_id), .id = 1},
        .or_work = true, /* results of upstreams that are too large to come along with a claim */
        .summary = "The result as the worker gave it; 404 before success. Scope work will do",
        .about = "The bytes with the content type the worker gave. 404 until the execution has "
                 "succeeded, and when it succeeded without a result. A token with the scope `work` "
                 "may read it too.",
        .fails = RC(NOT_FOUND),
        .shape = WEFT_SHAPE_BYTES,
    },
    {
        RUNS(PAYLOAD, weft_api_read, weft_api_run),
        .header = {WEFT_FOREIGN_HEADERS},
        .arg = {sizeof(struct weft_id), .id = 1},
        .summary = "The payload as it was submitted",
        .about =
            "The bytes with the content type they were submitted with; JSON comes back byte for "
            "byte.",
        .fails = RC(NOT_FOUND),
        .shape = WEFT_SHAPE_BYTES,
    },
    {
        RUNS(ATTEMPTS, weft_api_read, weft_attempts_run),
        .arg = {ARG_PAGE(weft_attempts_asking, id)},
        .summary = "How its leases ended, oldest first",
        .about = "One item for each lease that has ended: which worker had it, from when to when, "
                 "and how it ended.",
        .fails = RC(NOT_FOUND),
        .query = {{PARAM_LIMIT}, {PARAM_AFTER}},
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        RUNS(WAITPOINT_LIST, weft_api_read, weft_waitpoints_run),
        .arg = {ARG_PAGE(weft_wait_asking, id)},
        .summary = "The waitpoints of an execution, in the order in which they were made",
        .about = "Where signals arrive or have arrived. Never a token: that is for the worker, and "
                 "for operators by `POST /v1/waitpoints/{id}/token`.",
        .fails = RC(NOT_FOUND),
        .query = {{PARAM_LIMIT}, {PARAM_AFTER}},
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        RUNS(SIGNAL_LIST, weft_api_read, weft_signals_run),
        .arg = {ARG_PAGE(weft_wait_asking, id)},
        .or_work = true, /* signals that are too large to come along with a claim */
        .summary = "The signals of an execution, by waitpoint. Scope work will do",
        .about = "All signals that its waitpoints have got, with their payloads.",
        .fails = RC(NOT_FOUND),
        .query = {{PARAM_LIMIT}, {PARAM_AFTER}},
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        RUNS(WAITING, weft_api_read, weft_api_run),
        .arg = {ARG(weft_wait_asking, id)},
        .summary = "What an execution waits for, and how it went on the last time",
        .about = "Of a suspended one its condition, its timeout and the waitpoints of the "
                 "suspension; of one that was resumed, by what. Other executions have null.",
        .fails = RC(NOT_FOUND),
    },
    {
        RUNS(WHY, weft_api_read, weft_api_run),
        .arg = {ARG(weft_wait_asking, id)},
        .summary = "Why an execution does not run: one word, one sentence, and data",
        .about = "What keeps it, in the order in which it would have to change: its lane is paused "
                 "or full, its gate is full or opens later, its time has not come, its upstreams "
                 "have not ended, it waits for a signal, no worker was seen that serves it.",
        .fails = RC(NOT_FOUND),
    },
    {
        STEERS(CANCEL),
        .summary = "End an execution that is not over",
        .about = "Cancelling a cancelled execution again changes nothing and is answered with 200. "
                 "One that ended in another way is 409 `not_live`. A running one loses its lease: "
                 "its worker gets `fenced` with the reason `cancelled`.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE),
        .may_be_empty = true,
    },
    {
        STEERS(REPLAY),
        .run = weft_replay_run,
        .locks_flow = true,
        .summary = "Begin an execution that is over again",
        .about =
            "The execution is ready again; a member of a flow may be blocked instead. One that "
            "has not ended is 409 `not_live`; a member of a flow whose upstreams do not allow "
            "it is 409 `conflict`, unless `force` is set.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE) | RC(CONFLICT),
        .may_be_empty = true,
    },
    {
        STEERS(REPRIORITIZE),
        .summary = "Give it another priority",
        .about =
            "Higher priorities are claimed first within a lane. An execution that has ended is "
            "409 `not_live`.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE),
    },
    {
        STEERS(SET_DEADLINE),
        .summary = "Give it another deadline, or none",
        .about =
            "An execution that has not ended by its deadline becomes `expired`. `null` removes "
            "the deadline. An execution that has ended is 409 `not_live`.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE),
    },
    {
        STEERS(RESUME),
        .summary = "Let a suspended execution go on",
        .about = "Whatever its condition says. Its worker sees that an operator resumed it. One "
                 "that is not suspended is 409 `not_live`.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE),
        .may_be_empty = true,
    },
    {
        STEERS(REVOKE),
        .summary = "Take its lease away; it is ready again and keeps its attempt",
        .about =
            "For a worker that is stuck: what it says about this lease later is `fenced`, with "
            "the reason `revoked`. Without a lease: 409 `not_live`.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE),
        .may_be_empty = true,
    },
    {
        RUNS(FLOW_SUBMIT, weft_flow_submit_read, weft_flow_submit_run),
        .body_max = BODY_FLOW,
        .write = weft_flow_submit_write,
        .summary = "Hand over a graph of executions, whole",
        .about = "Up to 100,000 nodes and 64 MiB. All nodes are stored or none is. Nodes without "
                 "`after` are ready at once. The same `key` with the same nodes again is answered "
                 "with 200 and `duplicate`, with other nodes 409 `conflict`.",
        .fails = RC(CONFLICT),
        .creates = true,
    },
    {
        RUNS(FLOWS, weft_flows_read, weft_flows_run),
        .walks = true,
        .summary = "List flows, the newest first",
        .about = "A page of the namespace's flows, without their nodes.",
        .query =
            {
                {"state", FLOW_STATE_SCHEMA, "Only in this state"},
                {"name", NAME_SCHEMA, "Only of this name"},
                {PARAM_SHORT_ID},
                {PARAM_LIMIT},
                {PARAM_AFTER},
            },
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        RUNS(FLOW, weft_flow_read, weft_flow_run),
        .summary = "A flow with its first 1,000 nodes, at once or when it is over",
        .about = "`counts` is the number of nodes in each state. With `wait_ms` the answer comes "
                 "when the flow has ended or the time has passed, whichever is first.",
        .fails = RC(NOT_FOUND),
        .query = {{PARAM_WAIT}},
    },
    {
        RUNS(FLOW_DELETE, weft_flow_delete_read, weft_flow_cancel_run),
        .locks_flow = true,
        .summary = "Hides the flow; its members are cancelled if they are alive",
        .about = "The flow and its nodes disappear from lists at once and from the store with "
                 "retention. 202: members are still being cancelled.",
        .fails = RC(NOT_FOUND),
        .accepts = true,
    },
    {
        RUNS(FLOW_NODES, weft_api_read, weft_flow_nodes_run),
        .arg = {ARG_PAGE(weft_flow_asking, flow)},
        .summary = "The nodes of a flow in the order of their submission",
        .about = "Each node with its state, the nodes it comes after and its join.",
        .fails = RC(NOT_FOUND),
        .query = {{PARAM_LIMIT}, {PARAM_AFTER}},
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        RUNS(FLOW_GROW, weft_api_read, weft_flow_grow_run),
        .arg = {ARG(weft_flow_growth, flow)},
        .body_max = BODY_FLOW,
        .locks_flow = true,
        .summary = "Add nodes to a flow that is open; 409 when it has changed since it was read",
        .about = "The new nodes may come after each other and after nodes the flow has. `revision` "
                 "is that of the flow as the caller last saw it; when the flow has changed since, "
                 "409 `conflict`: read it again. A flow that has ended is 409 `not_live`.",
        .fails = RC(NOT_FOUND) | RC(CONFLICT) | RC(NOT_LIVE),
    },
    {
        RUNS(FLOW_LINK, weft_api_read, weft_flow_edges_run),
        .arg = {ARG(weft_flow_edging, flow)},
        .body_max = BODY_ONE,
        .locks_flow = true,
        .summary = "Add edges between nodes of a flow that is open",
        .about =
            "The node `to` comes after the node `from` besides what it comes after already. It "
            "must "
            "be blocked: 409 `conflict` otherwise, and when the edge is there or the flow has "
            "changed since `revision`. An edge from a node that has ended counts at once. Edges "
            "that make a circle are 400. A flow that has ended is 409 `not_live`.",
        .fails = RC(NOT_FOUND) | RC(CONFLICT) | RC(NOT_LIVE),
    },
    {
        RUNS(FLOW_CANCEL, weft_flow_cancel_read, weft_flow_cancel_run),
        .body_max = BODY_TINY,
        .locks_flow = true,
        .summary = "Cancel a flow; 200 when that is done within the wait, else 202: it goes on",
        .about = "`policy` says who is cancelled: `all` members, those that are `pending` (running "
                 "ones finish and their results stand), or `flow_only`.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE),
        .query = {{PARAM_WAIT}},
        .may_be_empty = true,
        .accepts = true,
    },
    {
        .op = OP(CLAIM),
        .body_max = BODY_TINY,
        .read = weft_claims_read,
        .summary = "Take work, waiting for it if asked to",
        .about =
            "Answers with up to `max` executions and their leases, at once when there are some. "
            "Otherwise it waits up to `wait_ms` for the first one; no items after the wait is a "
            "usual answer, not an error. Each lease must be renewed, or ended by one of the "
            "calls under `/v1/leases`, before `lease_expires_at`.",
        .fails = RC(LIMIT_EXCEEDED),
        .shape = WEFT_SHAPE_ITEMS,
    },
    {
        LEASES(RENEW),
        .summary = "The heartbeat: keep leases, report progress, learn which are gone",
        .about =
            "Call it well before `lease_expires_at`, for example after a third of the lease. A "
            "lease that is gone is answered with `fenced` and the reason: stop working on "
            "it. " ONE_OR_ITEMS,
    },
    {
        LEASES(COMPLETE),
        .summary = "Work is done: its results",
        .about =
            "Stores the result and ends the execution as `succeeded`. The same call again gets "
            "the same answer. " ONE_OR_ITEMS,
    },
    {
        LEASES(FAIL),
        .summary = "Work failed: the policy says what comes next",
        .about =
            "Ends the attempt. The state in the answer says what the policy decided: `delayed` "
            "or `ready` for another attempt, or `failed`. `retryable: false` and a class in the "
            "policy's `no_retry` make the failure final; `retry_after_ms` beats the backoff. "
            "The same call again gets the same answer. " ONE_OR_ITEMS,
    },
    {
        LEASES(DELAY),
        .summary = "Not now: come back later, spending no attempt",
        .about =
            "Puts the execution back with a delay; it does not count as an attempt. " ONE_OR_ITEMS,
    },
    {
        LEASES(RELEASE),
        .summary = "Not me: give it to another worker, spending no attempt",
        .about = "Puts the execution back for another worker, after `delay_ms` (a second when "
                 "absent); it does not count as an attempt. " ONE_OR_ITEMS,
    },
    {
        LEASES_OR(SUSPEND, RC(CONFLICT) | RC(TOO_LARGE)),
        .summary = "Wait: give it back until signals have come",
        .about = "The lease ends and the execution waits, without a worker, until its condition is "
                 "satisfied, its timeout passes or an operator resumes it. If signals that came to "
                 "pending waitpoints satisfy the condition already, nothing is suspended: "
                 "`satisfied` is true and the worker goes on. The same call again gets the same "
                 "answer, with the same tokens. " ONE_OR_ITEMS,
    },
    {
        LEASES_OR(WAITPOINT, RC(TOO_LARGE)),
        .summary = "Make waitpoints before suspending",
        .about = "For answers that may come before the worker suspends: send the mail first, "
                 "suspend after. Signals that come early are kept and judged by the suspend "
                 "call, which names the waitpoint by its id. The name of a pending waitpoint "
                 "gives that one again. " ONE_OR_ITEMS,
    },
    {
        .op = OP(SIGNALS),
        .body_max = BODY_BULK,
        .read = weft_signals_read,
        .write = weft_signal_write,
        .summary = "Send signals to waitpoints, by their tokens",
        .about =
            "The token of each is the right to send it; no bearer token is needed. " ONE_OR_ITEMS,
        .fails = RC(UNAUTHORIZED) | RC(NOT_LIVE) | RC(TOO_LARGE),
        .body = SIGNALS_BODY,
        .answer = SIGNALS_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .op = OP(SIGNAL),
        .body_max = BODY_ONE,
        .read = weft_signal_read,
        .write = weft_signal_write,
        .any_body = true,
        .may_be_empty = true,
        .summary = "Send a signal to a waitpoint: the body, whatever it is, is the payload",
        .about = "For links and webhooks. No bearer token is needed. A token that is not good in "
                 "any way is 401, always the same; a waitpoint that is closed is 409 `not_live`.",
        .fails = RC(UNAUTHORIZED) | RC(NOT_LIVE) | RC(TOO_LARGE),
        .query = {{"name", NAME_SCHEMA, "What the signal says"},
                  {"source", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":512}",
                   "Who sends it"},
                  {"key", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":512}",
                   "A second signal with it is a duplicate"}},
    },
    {
        RUNS(WAITPOINT_TOKEN, weft_api_read, weft_waitpoint_token_run),
        .body_max = BODY_TINY,
        .may_be_empty = true,
        .body = NOTHING_BODY,
        .arg = {ARG(weft_wait_asking, id)},
        .summary = "The token of a waitpoint again, for operators",
        .about = "409 `not_live` when the waitpoint is closed.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE),
    },
    {
        RUNS(KEYS, weft_keys_read, weft_keys_run),
        .summary = "The keys that sign signal tokens, without their secrets",
        .about = "Not for tokens of one namespace.",
        .shape = WEFT_SHAPE_ITEMS,
    },
    {
        RUNS(KEY_ROTATE, weft_keys_read, weft_key_rotate_run),
        .body_max = BODY_TINY,
        .may_be_empty = true,
        .summary = "Make a new signing key",
        .about =
            "It signs from now on. Tokens of the keys before stay good for `grace_ms`. Not for "
            "tokens of one namespace. 409 `conflict` when a file of the server has the keys.",
        .fails = RC(CONFLICT),
        .shape = WEFT_SHAPE_ITEMS,
    },
    {
        RUNS(WATCH, weft_watch_read, weft_watch_run),
        .body_max = BODY_TINY,
        .summary = "The leases of a worker that others ended, as soon as there is one",
        .about =
            "A long poll for workers: it answers when an execution that the worker holds is "
            "cancelled, expired, timed out or revoked, and empty after `wait_ms`. Each is sent "
            "once; a worker that misses the answer learns of it at its next renewal. Stop the "
            "work, then let go with any of complete, fail, delay or release: the answer is "
            "`fenced`, and the place in a lane with a limit is free.",
        .fails = RC(LIMIT_EXCEEDED),
        .shape = WEFT_SHAPE_ITEMS,
    },
    {
        RUNS(WORKERS, weft_api_read, weft_workers_run),
        .summary = "The workers that were heard of, by name",
        .about =
            "Workers appear with their first claim, with their lanes, capabilities, leases and "
            "when they were last seen.",
        .query = {{PARAM_LIMIT}, {PARAM_AFTER}},
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        RUNS(GOODBYE, weft_goodbye_read, weft_goodbye_run),
        .body_max = BODY_TINY,
        .summary = "A worker leaves: its leases are released at once",
        .about =
            "For a worker that stops: what it holds is ready for others at once instead of when "
            "its leases run out. A worker that holds nothing is answered with 0.",
        .may_be_empty = true,
        .body = NOTHING_BODY,
        .answer = RELEASED_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        RUNS(LANES, weft_api_read, weft_lanes_run),
        .summary = "The lanes in use, by name: those that have settings, executions that are not "
                   "over, or executions that ended in the last hour",
        .about = "A lane needs no settings to be used. A lane without settings leaves the list an "
                 "hour after its last execution has ended.",
        .query = {{PARAM_LIMIT}, {PARAM_AFTER}},
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        RUNS(LANE, weft_lane_read, weft_api_run),
        .summary = "The settings of a lane; 404 when it is not in use",
        .about = "Whether it is paused, how many executions may run at once, and how tenants share "
                 "it. A lane that holds work and has no settings is shown with the defaults.",
        .fails = RC(NOT_FOUND),
    },
    {
        RUNS(LANE_PUT, weft_lane_put_read, weft_lane_put_run),
        .body_max = BODY_ONE,
        .summary = "Replace all settings of a lane; holds for claims that begin after the answer",
        .about =
            "Fields that are absent go back to their defaults. What a GET gave may be sent back "
            "as it is.",
    },
    {
        RUNS(LANE_REMOVE, weft_lane_read, weft_api_run),
        .summary = "Remove the settings of a lane, and tell what they were; 404 when it has none",
        .about = "Work in the lane stays, and the defaults hold for it.",
        .fails = RC(NOT_FOUND),
    },
    {
        RUNS(GATES, weft_gates_read, weft_gates_run),
        .summary = "The classes and gates that have settings, by name",
        .about = "With what is in them now; for a class over its gates, up to 10,000 of them.",
        .query = {{"prefix", NAME_SCHEMA, "Only names that begin so"},
                  {PARAM_LIMIT},
                  {PARAM_AFTER}},
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        RUNS(GATE, weft_gate_read, weft_api_run),
        .summary = "The limits of a class or gate and what is in it; 404 when there is neither",
        .about = "A gate without settings of its own is shown without limits; those of its class "
                 "hold for it.",
        .fails = RC(NOT_FOUND),
    },
    {
        RUNS(GATE_PUT, weft_gate_put_read, weft_gate_put_run),
        .body_max = BODY_ONE,
        .summary = "Replace the limits of a class, for each of its gates, or of one gate",
        .about = "The part of a name before the first `:` is its class. Limits of a gate replace "
                 "those of its class. Limits that are absent are none. Holds at once for what "
                 "waits; what was admitted before stays admitted.",
    },
    {
        RUNS(GATE_REMOVE, weft_gate_read, weft_api_run),
        .summary = "Remove the limits of a class or gate, and tell what they were; 404 when it "
                   "has none",
        .about = "For a gate those of its class hold again.",
        .fails = RC(NOT_FOUND),
    },
    {
        RUNS(TOKENS, weft_tokens_read, weft_tokens_run),
        .summary = "The tokens, by id, without their secrets",
        .about = "The tokens of all servers over the store. A token that is bound to a namespace "
                 "is shown those bound to it. `last_used_at` is true to about a minute.",
        .query = {{PARAM_LIMIT}, {PARAM_AFTER}},
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        RUNS(TOKEN_CREATE, weft_api_read, weft_token_run),
        .body_max = BODY_TINY,
        .summary = "Make a token; its secret is shown this once",
        .about = "No token hands out scopes that it lacks, nor another namespace than its own.",
        .creates = true,
    },
    {
        RUNS(TOKEN_REVOKE, weft_token_read, weft_token_run),
        .summary = "Revoke a token, and tell what it was",
        .about = "It is refused at once by this server, and by others within a second.",
        .fails = RC(NOT_FOUND),
    },
    {
        RUNS(TOKEN_ROTATE, weft_token_read, weft_token_run),
        .body_max = BODY_TINY,
        .summary = "Give a token another secret, shown this once",
        .about = "The secret before it is good until the grace ends, by default not at all.",
        .fails = RC(NOT_FOUND),
        .may_be_empty = true,
    },
    {
        RUNS(REPLICAS, weft_servers_read, weft_replicas_run),
        .summary = "The servers that share the store, the newest first",
        .about = "Servers that share the store, alive or lately dead. Not for tokens of one "
                 "namespace.",
        .query = {{PARAM_LIMIT}, {PARAM_AFTER}},
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        RUNS(SCANNERS, weft_servers_read, weft_scanners_run),
        .summary = "The scanners of each living replica, how they are set and what they did",
        .about = "How each scanner is set on each living replica, when it last ran, how long that "
                 "took, what it counted, and its last error. Not for tokens of one namespace.",
        .query = {{PARAM_LIMIT}, {PARAM_AFTER}},
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        RUNS(RUN_SCANNER, weft_scan_read, weft_scan_run),
        .body_max = BODY_TINY,
        .summary =
            "One pass of a scanner now, on the server that is asked, whether it is on or off",
        .about = "Runs one pass and answers with its report. Useful after an incident, and for a "
                 "scanner that is switched off.",
        .fails = RC(NOT_FOUND),
        .may_be_empty = true,
        .body = NOTHING_BODY,
    },
    {
        RUNS(COUNTS, weft_counts_read, weft_counts_run),
        .header = {WEFT_FOREIGN_HEADERS},
        .summary = "Executions by lane and state, computed at most once a second",
        .about = "`as_of` says when they were computed. `succeeded_1h` and `failed_1h` count the "
                 "last hour.",
        .query = {{"lane", NAME_SCHEMA, "Only of this lane"}},
        .answer = COUNTS_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .op = &(const struct weft_op_info){.id = "health", .method = "GET", .path = "/healthz"},
        .while_waiting = true,
        .read = weft_health_read,
        .summary = "200 while the process runs",
        .about = "For a liveness probe: it does not look at the store. Needs no token.",
        .answer = STATUS_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .op = &(const struct weft_op_info){.id = "readiness", .method = "GET", .path = "/readyz"},
        .while_waiting = true,
        .read = weft_readiness_read,
        .summary = "200 when the store answers, else 503; warns of "
                   "scanners that no living replica runs",
        .about = "For a readiness probe: when the store has not answered for 3 s, or broke a "
                 "connection off just now, the answer is 503. It is given from memory, however "
                 "busy the server is. Needs no token.",
        .answer = READY_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .op =
            &(const struct weft_op_info){
                .id = "metrics", .method = "GET", .path = "/metrics", .scope = WEFT_SCOPE_READ},
        .read = weft_metrics_read,
        .run = weft_metrics_run,
        .header = {WEFT_FOREIGN_HEADERS},
        .summary = "What the server counts, in the text format of Prometheus",
        .about =
            "One scrape has the counters of this server and the executions by lane and state of "
            "the namespace. A token of one namespace gets the executions, the version and whether "
            "the store answers: the counters of the server tell of all namespaces.",
        .shape = WEFT_SHAPE_TEXT,
    },
    {
        .op =
            &(const struct weft_op_info){.id = "openapi", .method = "GET", .path = "/openapi.json"},
        .read = weft_openapi_read,
        .header = {WEFT_FOREIGN_HEADERS},
        .summary = "This document",
        .about = "Written from the server's own table of routes and messages. Needs no token.",
        .answer = "{\"type\":\"object\"}",
        .shape = WEFT_SHAPE_OTHER,
    },
};
const struct weft_route_table weft_routes = {.route = routes, .count = WEFT_LEN(routes)};
