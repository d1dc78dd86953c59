/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every call of the API, stated once: the server answers by this table and the OpenAPI document is
 * written from it. Routes of plain words stand before those with a {name} in the same place.
 */

#include "net/api.h"
#include "net/inside.h"
#include "net/route.h"
#include "wire/wire.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

/* Ceilings of bodies. A payload may have 1 MiB, and base64 makes a third more of it. */
#define BODY_ONE  MIB(2)
#define BODY_BULK MIB(16)
#define BODY_TINY KIB(64)
#define BODY_FLOW MIB(64)

/* ---- Parameters and schemas that are not messages -------------------------------------------- */

#define NAME_SCHEMA "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_.:/-]{1,128}$\"}"
#define STATE_SCHEMA                                                                               \
    "{\"type\":\"string\",\"enum\":[\"ready\",\"delayed\",\"blocked\",\"running\",\"suspended\","  \
    "\"held\",\"succeeded\",\"failed\",\"cancelled\",\"expired\",\"skipped\"]}"
#define FLOW_STATE_SCHEMA                                                                          \
    "{\"type\":\"string\",\"enum\":[\"open\",\"succeeded\",\"failed\",\"cancelled\"]}"
#define REF(name) "{\"$ref\":\"#/components/schemas/" name "\"}"

#define PARAM_LIMIT                                                                                \
    {                                                                                              \
        "limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":50}",           \
            "At most so many items; a page may be short while next is not null"                    \
    }
#define PARAM_AFTER                                                                                \
    {                                                                                              \
        "after", "{\"type\":\"string\",\"minLength\":1}", "The next of the page before"            \
    }
#define PARAM_WAIT                                                                                 \
    {                                                                                              \
        "wait_ms", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":60000,\"default\":0}",         \
            "Answer when it is over, or after this time"                                           \
    }

#define SUBMIT_BODY                                                                                \
    "{\"oneOf\":[" REF("Spec") ",{\"type\":\"object\",\"properties\":{\"items\":{\"type\":"        \
    "\"array\",\"maxItems\":1000,\"items\":" REF("Spec") "}},\"required\":[\"items\"],"            \
    "\"additionalProperties\":false}]}"
#define SUBMIT_ANSWER                                                                              \
    "{\"oneOf\":[" REF("Submitted") ",{\"type\":\"object\",\"properties\":{\"items\":{\"type\":"   \
    "\"array\",\"items\":{\"oneOf\":[" REF("Submitted") "," REF("ErrorAnswer") "]}}},"             \
    "\"required\":[\"items\"]}]}"

#define IDS_SCHEMA                                                                                 \
    "\"ids\":{\"type\":\"array\",\"maxItems\":1000,\"items\":{\"type\":\"string\",\"format\":"     \
    "\"uuid\"}},\"filter\":" REF("Filter") ",\"max\":{\"type\":[\"integer\",\"null\"],"            \
    "\"minimum\":1,\"maximum\":10000,\"default\":10000}"
#define ONE_OF_BOTH                                                                                \
    "\"oneOf\":[{\"required\":[\"ids\"]},{\"required\":[\"filter\"]}],"                            \
    "\"additionalProperties\":false"
#define CANCEL_MANY_BODY                                                                           \
    "{\"type\":\"object\",\"properties\":{" IDS_SCHEMA                                             \
    ",\"reason\":{\"type\":[\"string\",\"null\"]}}," ONE_OF_BOTH "}"
#define REPLAY_MANY_BODY "{\"type\":\"object\",\"properties\":{" IDS_SCHEMA "}," ONE_OF_BOTH "}"
#define STEER_MANY_ANSWER                                                                          \
    "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"items\":{\"type\":\"array\",\"items\":{"   \
    "\"type\":\"object\",\"properties\":{\"id\":{\"type\":[\"string\",\"null\"]},\"state\":"       \
    STATE_SCHEMA ",\"changed\":{\"type\":\"boolean\"},\"error\":" REF("Error") "},\"required\":["  \
    "\"id\"]}}},\"required\":[\"items\"]}"                                                         \
    "," REF("Sweep") "]}"

#define LANE_BODY                                                                                  \
    "{\"type\":\"object\",\"properties\":{\"lane\":{\"type\":[\"string\",\"null\"]},\"paused\":{"  \
    "\"type\":[\"boolean\",\"null\"],\"default\":false},\"max_running\":{\"type\":[\"integer\","   \
    "\"null\"],\"minimum\":0,\"default\":0},\"retention_ms\":{\"type\":[\"integer\",\"null\"],"    \
    "\"minimum\":0,\"maximum\":316224000000,\"default\":0},\"weights\":{\"type\":[\"object\","     \
    "\"null\"],\"additionalProperties\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000}}},"  \
    "\"additionalProperties\":false}"
#define COUNTS_ANSWER                                                                              \
    "{\"type\":\"object\",\"properties\":{\"as_of\":{\"type\":\"string\",\"format\":"              \
    "\"date-time\"},\"items\":{\"type\":\"array\",\"items\":" REF("LaneCount") "}},"               \
    "\"required\":[\"as_of\",\"items\"]}"
#define RELEASED_ANSWER                                                                            \
    "{\"type\":\"object\",\"properties\":{\"released\":{\"type\":\"integer\",\"minimum\":0}},"     \
    "\"required\":[\"released\"]}"
#define STATUS_ANSWER                                                                              \
    "{\"type\":\"object\",\"properties\":{\"status\":{\"type\":\"string\"}},\"required\":["        \
    "\"status\"]}"
#define READY_ANSWER                                                                               \
    "{\"type\":\"object\",\"properties\":{\"status\":{\"type\":\"string\"},\"warning\":{"          \
    "\"type\":\"string\",\"description\":\"It works, but something is missing\"}},\"required\":["  \
    "\"status\"]}"
#define NOTHING_BODY "{\"type\":\"object\",\"additionalProperties\":false}"

/* ---- The table ------------------------------------------------------------------------------- */

const struct weft_route weft_routes[] = {
    {
        .method = "POST",
        .path = "/v1/executions",
        .scope = WEFT_SCOPE_SUBMIT,
        .body_max = BODY_BULK,
        .group = WEFT_GROUP_SUBMIT,
        .read = weft_submit_read,
        .write = weft_submit_write,
        .name = "submit",
        .summary = "Hand over work: one execution, or many at once",
        .body = SUBMIT_BODY,
        .answer = SUBMIT_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
        .creates = true,
    },
    {
        .method = "GET",
        .path = "/v1/executions",
        .scope = WEFT_SCOPE_READ,
        .read = weft_executions_read,
        .run = weft_executions_run,
        .name = "listExecutions",
        .summary = "List executions, newest first; with Accept: application/x-ndjson all of them, "
                   "one a line",
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
                PARAM_LIMIT,
                PARAM_AFTER,
            },
        .gives = &weft_wire_execution,
        .shape = WEFT_SHAPE_PAGE,
        .lines = true,
    },
    {
        .method = "POST",
        .path = "/v1/executions/cancel",
        .scope = WEFT_SCOPE_SUBMIT,
        .body_max = BODY_ONE,
        .read = weft_cancel_many_read,
        .run = weft_steer_many_run,
        .name = "cancelExecutions",
        .summary = "Cancel many executions, by id or by filter",
        .body = CANCEL_MANY_BODY,
        .answer = STEER_MANY_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .method = "POST",
        .path = "/v1/executions/replay",
        .scope = WEFT_SCOPE_SUBMIT,
        .body_max = BODY_ONE,
        .read = weft_replay_many_read,
        .run = weft_steer_many_run,
        .name = "replayExecutions",
        .summary = "Replay many executions, by id or by filter",
        .body = REPLAY_MANY_BODY,
        .answer = STEER_MANY_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .method = "GET",
        .path = "/v1/executions/{id}",
        .scope = WEFT_SCOPE_READ,
        .read = weft_execution_read,
        .run = weft_execution_run,
        .name = "getExecution",
        .summary = "An execution, at once or when it is over",
        .query = {PARAM_WAIT},
        .gives = &weft_wire_execution,
    },
    {
        .method = "GET",
        .path = "/v1/executions/{id}/result",
        .scope = WEFT_SCOPE_READ,
        .or_work = true, /* results of upstreams that are too large to come along with a claim */
        .read = weft_result_read,
        .run = weft_bytes_run,
        .name = "getResult",
        .summary = "The result as the worker gave it; 404 before success. Scope work will do",
        .shape = WEFT_SHAPE_BYTES,
    },
    {
        .method = "GET",
        .path = "/v1/executions/{id}/payload",
        .scope = WEFT_SCOPE_READ,
        .read = weft_payload_read,
        .run = weft_bytes_run,
        .name = "getPayload",
        .summary = "The payload as it was submitted",
        .shape = WEFT_SHAPE_BYTES,
    },
    {
        .method = "GET",
        .path = "/v1/executions/{id}/attempts",
        .scope = WEFT_SCOPE_READ,
        .read = weft_attempts_read,
        .run = weft_attempts_run,
        .name = "listAttempts",
        .summary = "How its leases ended, oldest first",
        .query = {PARAM_LIMIT, PARAM_AFTER},
        .gives = &weft_wire_attempt,
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        .method = "POST",
        .path = "/v1/executions/{id}/cancel",
        .scope = WEFT_SCOPE_SUBMIT,
        .body_max = BODY_TINY,
        .group = WEFT_GROUP_CANCEL,
        .read = weft_cancel_read,
        .write = weft_steer_write,
        .name = "cancelExecution",
        .summary = "End an execution that is not over",
        .takes = &weft_wire_cancel,
        .gives = &weft_wire_execution,
    },
    {
        .method = "POST",
        .path = "/v1/executions/{id}/replay",
        .scope = WEFT_SCOPE_SUBMIT,
        .body_max = BODY_TINY,
        .group = WEFT_GROUP_REPLAY,
        .read = weft_replay_read,
        .write = weft_steer_write,
        .name = "replayExecution",
        .summary = "Begin an execution that is over again",
        .body = NOTHING_BODY,
        .gives = &weft_wire_execution,
    },
    {
        .method = "POST",
        .path = "/v1/executions/{id}/priority",
        .scope = WEFT_SCOPE_SUBMIT,
        .body_max = BODY_TINY,
        .group = WEFT_GROUP_REPRIORITIZE,
        .read = weft_priority_read,
        .write = weft_steer_write,
        .name = "setPriority",
        .summary = "Give it another priority",
        .takes = &weft_wire_priority,
        .gives = &weft_wire_execution,
    },
    {
        .method = "POST",
        .path = "/v1/executions/{id}/deadline",
        .scope = WEFT_SCOPE_SUBMIT,
        .body_max = BODY_TINY,
        .group = WEFT_GROUP_SET_DEADLINE,
        .read = weft_deadline_read,
        .write = weft_steer_write,
        .name = "setDeadline",
        .summary = "Give it another deadline, or none",
        .takes = &weft_wire_deadline,
        .gives = &weft_wire_execution,
    },
    {
        .method = "POST",
        .path = "/v1/executions/{id}/revoke",
        .scope = WEFT_SCOPE_SUBMIT,
        .body_max = BODY_TINY,
        .group = WEFT_GROUP_REVOKE,
        .read = weft_revoke_read,
        .write = weft_steer_write,
        .name = "revokeLease",
        .summary = "Take its lease away; it is ready again and keeps its attempt",
        .takes = &weft_wire_cancel,
        .gives = &weft_wire_execution,
    },
    {
        .method = "POST",
        .path = "/v1/flows",
        .scope = WEFT_SCOPE_SUBMIT,
        .body_max = BODY_FLOW,
        .group = WEFT_GROUP_FLOW,
        .read = weft_flow_submit_read,
        .run = weft_flow_submit_run,
        .write = weft_flow_submit_write,
        .name = "submitFlow",
        .summary = "Hand over a graph of executions, whole",
        .takes = &weft_wire_flow_spec,
        .gives = &weft_wire_flow_submitted,
        .creates = true,
    },
    {
        .method = "GET",
        .path = "/v1/flows",
        .scope = WEFT_SCOPE_READ,
        .read = weft_flows_read,
        .run = weft_flows_run,
        .name = "listFlows",
        .summary = "List flows, the newest first",
        .query =
            {
                {"state", FLOW_STATE_SCHEMA, "Only in this state"},
                {"name", NAME_SCHEMA, "Only of this name"},
                PARAM_LIMIT,
                PARAM_AFTER,
            },
        .gives = &weft_wire_flow,
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        .method = "GET",
        .path = "/v1/flows/{id}",
        .scope = WEFT_SCOPE_READ,
        .read = weft_flow_read,
        .run = weft_flow_run,
        .name = "getFlow",
        .summary = "A flow with its first 1,000 nodes, at once or when it is over",
        .query = {PARAM_WAIT},
        .gives = &weft_wire_flow_page,
    },
    {
        .method = "DELETE",
        .path = "/v1/flows/{id}",
        .scope = WEFT_SCOPE_SUBMIT,
        .read = weft_flow_delete_read,
        .run = weft_flow_cancel_run,
        .name = "deleteFlow",
        .summary = "Nobody sees the flow any more; its members are cancelled if they are alive",
        .gives = &weft_wire_flow_cancelled,
        .accepts = true,
    },
    {
        .method = "GET",
        .path = "/v1/flows/{id}/nodes",
        .scope = WEFT_SCOPE_READ,
        .read = weft_flow_nodes_read,
        .run = weft_flow_nodes_run,
        .name = "listFlowNodes",
        .summary = "The nodes of a flow in the order of their submission",
        .query = {PARAM_LIMIT, PARAM_AFTER},
        .gives = &weft_wire_flow_node,
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        .method = "POST",
        .path = "/v1/flows/{id}/nodes",
        .scope = WEFT_SCOPE_SUBMIT,
        .body_max = BODY_FLOW,
        .read = weft_flow_grow_read,
        .run = weft_flow_grow_run,
        .name = "growFlow",
        .summary = "Add nodes to a flow that is open; 409 when it has changed since it was read",
        .takes = &weft_wire_flow_growth,
        .gives = &weft_wire_flow_grown,
    },
    {
        .method = "POST",
        .path = "/v1/flows/{id}/cancel",
        .scope = WEFT_SCOPE_SUBMIT,
        .body_max = BODY_TINY,
        .read = weft_flow_cancel_read,
        .run = weft_flow_cancel_run,
        .name = "cancelFlow",
        .summary = "Cancel a flow; 200 when that is done within the wait, else 202: it goes on",
        .query = {PARAM_WAIT},
        .takes = &weft_wire_flow_cancel,
        .gives = &weft_wire_flow_cancelled,
        .accepts = true,
    },
    {
        .method = "POST",
        .path = "/v1/claims",
        .scope = WEFT_SCOPE_WORK,
        .body_max = BODY_TINY,
        .group = WEFT_GROUP_CLAIM,
        .read = weft_claims_read,
        .name = "claim",
        .summary = "Take work, waiting for it if asked to",
        .takes = &weft_wire_claim,
        .gives = &weft_wire_claimed,
        .shape = WEFT_SHAPE_ITEMS,
    },
    {
        .method = "POST",
        .path = "/v1/leases/renew",
        .scope = WEFT_SCOPE_WORK,
        .body_max = BODY_BULK,
        .group = WEFT_GROUP_RENEW,
        .read = weft_renew_read,
        .write = weft_renew_write,
        .name = "renewLeases",
        .summary = "The heartbeat: keep leases, report progress, learn which are gone",
        .takes = &weft_wire_renew,
        .gives = &weft_wire_renewed,
        .shape = WEFT_SHAPE_BULK,
        .bulk = true,
    },
    {
        .method = "POST",
        .path = "/v1/leases/complete",
        .scope = WEFT_SCOPE_WORK,
        .body_max = BODY_BULK,
        .group = WEFT_GROUP_COMPLETE,
        .read = weft_complete_read,
        .write = weft_complete_write,
        .name = "completeLeases",
        .summary = "Work is done: its results",
        .takes = &weft_wire_complete,
        .gives = &weft_wire_finished,
        .shape = WEFT_SHAPE_BULK,
        .bulk = true,
    },
    {
        .method = "POST",
        .path = "/v1/leases/fail",
        .scope = WEFT_SCOPE_WORK,
        .body_max = BODY_BULK,
        .group = WEFT_GROUP_FAIL,
        .read = weft_fail_read,
        .write = weft_fail_write,
        .name = "failLeases",
        .summary = "Work failed: the policy says what comes next",
        .takes = &weft_wire_failure,
        .gives = &weft_wire_finished,
        .shape = WEFT_SHAPE_BULK,
        .bulk = true,
    },
    {
        .method = "POST",
        .path = "/v1/leases/delay",
        .scope = WEFT_SCOPE_WORK,
        .body_max = BODY_BULK,
        .group = WEFT_GROUP_DELAY,
        .read = weft_delay_read,
        .write = weft_put_back_write,
        .name = "delayLeases",
        .summary = "Not now: come back later, spending no attempt",
        .takes = &weft_wire_delay,
        .gives = &weft_wire_finished,
        .shape = WEFT_SHAPE_BULK,
        .bulk = true,
    },
    {
        .method = "POST",
        .path = "/v1/leases/release",
        .scope = WEFT_SCOPE_WORK,
        .body_max = BODY_BULK,
        .group = WEFT_GROUP_RELEASE,
        .read = weft_release_read,
        .write = weft_put_back_write,
        .name = "releaseLeases",
        .summary = "Not me: give it to another worker, spending no attempt",
        .takes = &weft_wire_release,
        .gives = &weft_wire_finished,
        .shape = WEFT_SHAPE_BULK,
        .bulk = true,
    },
    {
        .method = "GET",
        .path = "/v1/workers",
        .scope = WEFT_SCOPE_READ,
        .read = weft_workers_read,
        .run = weft_workers_run,
        .name = "listWorkers",
        .summary = "The workers that were heard of, by name",
        .query = {PARAM_LIMIT, PARAM_AFTER},
        .gives = &weft_wire_worker,
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        .method = "POST",
        .path = "/v1/workers/{worker}/goodbye",
        .scope = WEFT_SCOPE_WORK,
        .body_max = BODY_TINY,
        .read = weft_goodbye_read,
        .run = weft_goodbye_run,
        .name = "goodbye",
        .summary = "A worker leaves: its leases are released at once",
        .body = NOTHING_BODY,
        .answer = RELEASED_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .method = "GET",
        .path = "/v1/lanes",
        .scope = WEFT_SCOPE_READ,
        .read = weft_lanes_read,
        .run = weft_lanes_run,
        .name = "listLanes",
        .summary = "The lanes that have settings, by name",
        .query = {PARAM_LIMIT, PARAM_AFTER},
        .gives = &weft_wire_lane,
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        .method = "GET",
        .path = "/v1/lanes/{lane}",
        .scope = WEFT_SCOPE_READ,
        .read = weft_lane_read,
        .run = weft_lane_run,
        .name = "getLane",
        .summary = "The settings of a lane; the defaults when it has none",
        .gives = &weft_wire_lane,
    },
    {
        .method = "PUT",
        .path = "/v1/lanes/{lane}",
        .scope = WEFT_SCOPE_ADMIN,
        .body_max = BODY_ONE,
        .read = weft_lane_put_read,
        .run = weft_lane_put_run,
        .name = "putLane",
        .summary = "Replace all settings of a lane; holds for claims that begin after the answer",
        .body = LANE_BODY,
        .gives = &weft_wire_lane,
    },
    {
        .method = "GET",
        .path = "/v1/replicas",
        .scope = WEFT_SCOPE_READ,
        .read = weft_replicas_read,
        .run = weft_replicas_run,
        .name = "listReplicas",
        .summary = "The servers that share the store, the newest first",
        .query = {PARAM_LIMIT, PARAM_AFTER},
        .gives = &weft_wire_replica,
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        .method = "GET",
        .path = "/v1/scanners",
        .scope = WEFT_SCOPE_READ,
        .read = weft_scanners_read,
        .run = weft_scanners_run,
        .name = "listScanners",
        .summary = "The scanners of each living replica, how they are set and what they did",
        .query = {PARAM_LIMIT, PARAM_AFTER},
        .gives = &weft_wire_scanner,
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        .method = "POST",
        .path = "/v1/scanners/{name}/run",
        .scope = WEFT_SCOPE_ADMIN,
        .body_max = BODY_TINY,
        .read = weft_scan_read,
        .run = weft_scan_run,
        .name = "runScanner",
        .summary =
            "One pass of a scanner now, on the server that is asked, whether it is on or off",
        .body = NOTHING_BODY,
        .gives = &weft_wire_pass,
    },
    {
        .method = "GET",
        .path = "/v1/counts",
        .scope = WEFT_SCOPE_READ,
        .read = weft_counts_read,
        .run = weft_counts_run,
        .name = "getCounts",
        .summary = "Executions by lane and state, computed at most once a second",
        .query = {{"lane", NAME_SCHEMA, "Only of this lane"}},
        .answer = COUNTS_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .method = "GET",
        .path = "/healthz",
        .scope = WEFT_SCOPE_NONE,
        .read = weft_health_read,
        .name = "health",
        .summary = "200 while the process runs",
        .answer = STATUS_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .method = "GET",
        .path = "/readyz",
        .scope = WEFT_SCOPE_NONE,
        .read = weft_readiness_read,
        .run = weft_readiness_run,
        .name = "readiness",
        .summary = "200 when the store can be reached and its schema is right, else 503; warns of "
                   "scanners that no living replica runs",
        .answer = READY_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .method = "GET",
        .path = "/metrics",
        .scope = WEFT_SCOPE_READ,
        .read = weft_metrics_read,
        .run = weft_metrics_run,
        .name = "metrics",
        .summary = "What the server counts, in the text format of Prometheus",
        .shape = WEFT_SHAPE_TEXT,
    },
    {
        .method = "GET",
        .path = "/openapi.json",
        .scope = WEFT_SCOPE_NONE,
        .read = weft_openapi_read,
        .name = "openapi",
        .summary = "This document",
        .answer = "{\"type\":\"object\"}",
        .shape = WEFT_SHAPE_OTHER,
    },
};
const size_t weft_route_count = WEFT_LEN(weft_routes);

const struct weft_route *weft_route_find(const char *method, const char *target,
                                         struct weft_route_match *ret_match)
{
    static const struct weft_route_table table = {.route = weft_routes,
                                                  .count = WEFT_LEN(weft_routes)};
    return weft_route_find_in(&table, method, target, ret_match);
}
