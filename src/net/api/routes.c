/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every call of the API, stated once: the server answers by this table and the OpenAPI document is
 * written from it. Routes of plain words stand before those with a {name} in the same place.
 */

#include "net/api/routes.h"

#include "core/token.h"
#include "net/api/api_control.h"
#include "net/api/api_counts.h"
#include "net/api/api_executions.h"
#include "net/api/api_flows.h"
#include "net/api/api_health.h"
#include "net/api/api_lanes.h"
#include "net/api/api_leases.h"
#include "net/api/api_list.h"
#include "net/api/api_scanners.h"
#include "net/api/api_submit.h"
#include "net/api/api_tokens.h"
#include "net/api/api_watch.h"
#include "net/api/api_workers.h"
#include "net/group/claims.h"
#include "net/route.h"
#include "wire/wire.h"

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
        .method = "GET",
        .path = "/v1/executions",
        .scope = WEFT_SCOPE_READ,
        .group = WEFT_GROUP_LIST,
        .walks = true,
        .read = weft_executions_read,
        .run = weft_executions_run,
        .name = "listExecutions",
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
                PARAM_MOMENT("created_since", "Only created then or later"),
                PARAM_MOMENT("created_until", "Only created before"),
                PARAM_MOMENT("finished_since", "Only ended then or later"),
                PARAM_MOMENT("finished_until", "Only ended before"),
                PARAM_SHORT_ID,
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
        .group = WEFT_GROUP_HEAVY,
        .read = weft_cancel_many_read,
        .run = weft_steer_many_run,
        .name = "cancelExecutions",
        .summary = "Cancel many executions, by id or by filter",
        .about = "By `ids` (at most 1,000): answered item by item. By `filter`: at most `max` "
                 "executions are cancelled in one call, and `more` tells whether some are left. An "
                 "empty filter is refused.",
        .body = CANCEL_MANY_BODY,
        .answer = STEER_MANY_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .method = "POST",
        .path = "/v1/executions/replay",
        .scope = WEFT_SCOPE_SUBMIT,
        .body_max = BODY_ONE,
        .group = WEFT_GROUP_HEAVY,
        .read = weft_replay_many_read,
        .run = weft_steer_many_run,
        .locks_flow = true,
        .name = "replayExecutions",
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
        .method = "GET",
        .path = "/v1/executions/{id}",
        .scope = WEFT_SCOPE_READ,
        .read = weft_execution_read,
        .run = weft_execution_run,
        .name = "getExecution",
        .summary = "An execution, at once or when it is over",
        .about = "With `wait_ms` the answer comes when the execution has ended or the time has "
                 "passed, whichever is first: look at `state`.",
        .fails = RC(NOT_FOUND),
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
        .about = "The bytes with the content type the worker gave. 404 until the execution has "
                 "succeeded, and when it succeeded without a result. A token with the scope `work` "
                 "may read it too.",
        .fails = RC(NOT_FOUND),
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
        .about =
            "The bytes with the content type they were submitted with; JSON comes back byte for "
            "byte.",
        .fails = RC(NOT_FOUND),
        .shape = WEFT_SHAPE_BYTES,
    },
    {
        .method = "GET",
        .path = "/v1/executions/{id}/attempts",
        .scope = WEFT_SCOPE_READ,
        .group = WEFT_GROUP_LIST,
        .read = weft_attempts_read,
        .run = weft_attempts_run,
        .name = "listAttempts",
        .summary = "How its leases ended, oldest first",
        .about = "One item for each lease that has ended: which worker had it, from when to when, "
                 "and how it ended.",
        .fails = RC(NOT_FOUND),
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
        .about = "Cancelling a cancelled execution again changes nothing and is answered with 200. "
                 "One that ended in another way is 409 `not_live`. A running one loses its lease: "
                 "its worker is told `fenced` with the reason `cancelled`.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE),
        .may_be_empty = true,
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
        .run = weft_replay_run,
        .locks_flow = true,
        .write = weft_steer_write,
        .name = "replayExecution",
        .summary = "Begin an execution that is over again",
        .about =
            "The execution is ready again; a member of a flow may be blocked instead. One that "
            "has not ended is 409 `not_live`; a member of a flow whose upstreams do not allow "
            "it is 409 `conflict`, unless `force` is set.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE) | RC(CONFLICT),
        .may_be_empty = true,
        .takes = &weft_wire_replay,
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
        .about =
            "Higher priorities are claimed first within a lane. An execution that has ended is "
            "409 `not_live`.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE),
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
        .about =
            "An execution that has not ended by its deadline becomes `expired`. `null` removes "
            "the deadline. An execution that has ended is 409 `not_live`.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE),
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
        .about =
            "For a worker that is stuck: what it says about this lease later is `fenced`, with "
            "the reason `revoked`. Without a lease: 409 `not_live`.",
        .fails = RC(NOT_FOUND) | RC(NOT_LIVE),
        .may_be_empty = true,
        .takes = &weft_wire_cancel,
        .gives = &weft_wire_execution,
    },
#include "net/routes_flow.def"
    {
        .method = "POST",
        .path = "/v1/claims",
        .scope = WEFT_SCOPE_WORK,
        .body_max = BODY_TINY,
        .group = WEFT_GROUP_CLAIM,
        .read = weft_claims_read,
        .name = "claim",
        .summary = "Take work, waiting for it if asked to",
        .about =
            "Answers with up to `max` executions and their leases, at once when there are some. "
            "Otherwise it waits up to `wait_ms` for the first one; no items after the wait is a "
            "usual answer, not an error. Each lease must be renewed, or ended by one of the "
            "calls under `/v1/leases`, before `lease_expires_at`.",
        .fails = RC(LIMIT_EXCEEDED),
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
        .about =
            "Call it well before `lease_expires_at`, for example after a third of the lease. A "
            "lease that is gone is answered with `fenced` and the reason: stop working on it. "
            "The body is one item, answered as one object or with the error and its status; or "
            "`{\"items\":[...]}` with up to 1,000, answered with 200 item by item.",
        .fails = LEASE_FAILS,
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
        .about =
            "Stores the result and ends the execution as `succeeded`. The same call again gets "
            "the same answer. The body is one item, answered as one object or with the error "
            "and its status; or `{\"items\":[...]}` with up to 1,000, answered with 200 item by "
            "item.",
        .fails = LEASE_FAILS,
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
        .about =
            "Ends the attempt. The state in the answer says what the policy decided: `delayed` "
            "or `ready` for another attempt, or `failed`. `retryable: false` and a class in the "
            "policy's `no_retry` make the failure final; `retry_after_ms` beats the backoff. "
            "The same call again gets the same answer. The body is one item, answered as one "
            "object or with the error and its status; or `{\"items\":[...]}` with up to 1,000, "
            "answered with 200 item by item.",
        .fails = LEASE_FAILS,
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
        .about =
            "Puts the execution back with a delay; it does not count as an attempt. The body is "
            "one item, answered as one object or with the error and its status; or "
            "`{\"items\":[...]}` with up to 1,000, answered with 200 item by item.",
        .fails = LEASE_FAILS,
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
        .about =
            "Puts the execution back for another worker, after `delay_ms` (a second when "
            "absent); it does not count as an attempt. The body is one item, answered as one "
            "object or with the error and its status; or `{\"items\":[...]}` with up to 1,000, "
            "answered with 200 item by item.",
        .fails = LEASE_FAILS,
        .takes = &weft_wire_release,
        .gives = &weft_wire_finished,
        .shape = WEFT_SHAPE_BULK,
        .bulk = true,
    },
    {
        .method = "POST",
        .path = "/v1/leases/watch",
        .scope = WEFT_SCOPE_WORK,
        .body_max = BODY_TINY,
        .read = weft_watch_read,
        .run = weft_watch_run,
        .name = "watchLeases",
        .summary = "The leases of a worker that others ended, as soon as there is one",
        .about =
            "A long poll for workers: it answers when an execution that the worker holds is "
            "cancelled, expired, timed out or revoked, and empty after `wait_ms`. Each is told "
            "once; a worker that misses the answer learns of it at its next renewal. Stop the "
            "work, then let go with any of complete, fail, delay or release: the answer is "
            "`fenced`, and the place in a lane with a limit is free.",
        .fails = RC(LIMIT_EXCEEDED),
        .takes = &weft_wire_watch,
        .gives = &weft_wire_ended_lease,
        .shape = WEFT_SHAPE_ITEMS,
    },
    {
        .method = "GET",
        .path = "/v1/workers",
        .scope = WEFT_SCOPE_READ,
        .group = WEFT_GROUP_LIST,
        .read = weft_workers_read,
        .run = weft_workers_run,
        .name = "listWorkers",
        .summary = "The workers that were heard of, by name",
        .about =
            "Workers appear with their first claim, with their lanes, capabilities, leases and "
            "when they were last seen.",
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
        .about =
            "For a worker that stops: what it holds is ready for others at once instead of when "
            "its leases run out. A worker that holds nothing is answered with 0.",
        .may_be_empty = true,
        .body = NOTHING_BODY,
        .answer = RELEASED_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .method = "GET",
        .path = "/v1/lanes",
        .scope = WEFT_SCOPE_READ,
        .group = WEFT_GROUP_LIST,
        .read = weft_lanes_read,
        .run = weft_lanes_run,
        .name = "listLanes",
        .summary = "The lanes in use, by name: those that have settings, executions that are not "
                   "over, or executions that ended in the last hour",
        .about = "A lane needs no settings to be used. A lane without settings leaves the list an "
                 "hour after its last execution has ended.",
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
        .summary = "The settings of a lane; 404 when it is not in use",
        .about = "Whether it is paused, how many executions may run at once, and how tenants share "
                 "it. A lane that holds work and has no settings is shown with the defaults.",
        .fails = RC(NOT_FOUND),
        .gives = &weft_wire_lane,
    },
    {
        .method = "PUT",
        .path = "/v1/lanes/{lane}",
        .scope = WEFT_SCOPE_ADMIN,
        .body_max = BODY_ONE,
        .group = WEFT_GROUP_ADMIN,
        .read = weft_lane_put_read,
        .run = weft_lane_put_run,
        .name = "putLane",
        .summary = "Replace all settings of a lane; holds for claims that begin after the answer",
        .about =
            "Fields that are absent go back to their defaults. What a GET gave may be sent back "
            "as it is.",
        .body = LANE_BODY,
        .gives = &weft_wire_lane,
    },
    {
        .method = "DELETE",
        .path = "/v1/lanes/{lane}",
        .scope = WEFT_SCOPE_ADMIN,
        .group = WEFT_GROUP_ADMIN,
        .read = weft_lane_read,
        .run = weft_lane_remove_run,
        .name = "removeLane",
        .summary = "Remove the settings of a lane, and tell what they were; 404 when it has none",
        .about = "Work in the lane stays, and the defaults hold for it.",
        .fails = RC(NOT_FOUND),
        .gives = &weft_wire_lane,
    },
    {
        .method = "GET",
        .path = "/v1/tokens",
        .scope = WEFT_SCOPE_ADMIN,
        .group = WEFT_GROUP_ADMIN,
        .read = weft_tokens_read,
        .run = weft_tokens_run,
        .name = "listTokens",
        .summary = "The tokens, by id, without their secrets",
        .about = "The tokens of all servers over the store. A token that is bound to a namespace "
                 "is shown those bound to it. `last_used_at` is true to about a minute.",
        .query = {PARAM_LIMIT, PARAM_AFTER},
        .gives = &weft_wire_token,
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        .method = "POST",
        .path = "/v1/tokens",
        .scope = WEFT_SCOPE_ADMIN,
        .body_max = BODY_TINY,
        .group = WEFT_GROUP_ADMIN,
        .read = weft_token_create_read,
        .run = weft_token_create_run,
        .name = "createToken",
        .summary = "Make a token; its secret is told this once",
        .about = "No token hands out scopes that it lacks, nor another namespace than its own.",
        .takes = &weft_wire_token_spec,
        .gives = &weft_wire_token_made,
        .creates = true,
    },
    {
        .method = "DELETE",
        .path = "/v1/tokens/{id}",
        .scope = WEFT_SCOPE_ADMIN,
        .group = WEFT_GROUP_ADMIN,
        .read = weft_token_revoke_read,
        .run = weft_token_revoke_run,
        .name = "revokeToken",
        .summary = "Revoke a token, and tell what it was",
        .about = "It is refused at once by this server, and by others within a second.",
        .fails = RC(NOT_FOUND),
        .gives = &weft_wire_token,
    },
    {
        .method = "POST",
        .path = "/v1/tokens/{id}/rotate",
        .scope = WEFT_SCOPE_ADMIN,
        .body_max = BODY_TINY,
        .group = WEFT_GROUP_ADMIN,
        .read = weft_token_rotate_read,
        .run = weft_token_rotate_run,
        .name = "rotateToken",
        .summary = "Give a token another secret, told this once",
        .about = "The secret before it is good until the grace ends, by default not at all.",
        .fails = RC(NOT_FOUND),
        .may_be_empty = true,
        .takes = &weft_wire_token_rotation,
        .gives = &weft_wire_token_made,
    },
    {
        .method = "GET",
        .path = "/v1/replicas",
        .scope = WEFT_SCOPE_READ,
        .group = WEFT_GROUP_ADMIN,
        .read = weft_replicas_read,
        .run = weft_replicas_run,
        .name = "listReplicas",
        .summary = "The servers that share the store, the newest first",
        .about = "Servers that share the store, alive or lately dead. Not for tokens of one "
                 "namespace.",
        .query = {PARAM_LIMIT, PARAM_AFTER},
        .gives = &weft_wire_replica,
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        .method = "GET",
        .path = "/v1/scanners",
        .scope = WEFT_SCOPE_READ,
        .group = WEFT_GROUP_ADMIN,
        .read = weft_scanners_read,
        .run = weft_scanners_run,
        .name = "listScanners",
        .summary = "The scanners of each living replica, how they are set and what they did",
        .about = "How each scanner is set on each living replica, when it last ran, how long that "
                 "took, what it counted, and its last error. Not for tokens of one namespace.",
        .query = {PARAM_LIMIT, PARAM_AFTER},
        .gives = &weft_wire_scanner,
        .shape = WEFT_SHAPE_PAGE,
    },
    {
        .method = "POST",
        .path = "/v1/scanners/{name}/run",
        .scope = WEFT_SCOPE_ADMIN,
        .body_max = BODY_TINY,
        .group = WEFT_GROUP_ADMIN,
        .read = weft_scan_read,
        .run = weft_scan_run,
        .name = "runScanner",
        .summary =
            "One pass of a scanner now, on the server that is asked, whether it is on or off",
        .about = "Runs one pass and answers with its report. Useful after an incident, and for a "
                 "scanner that is switched off.",
        .fails = RC(NOT_FOUND),
        .may_be_empty = true,
        .body = NOTHING_BODY,
        .gives = &weft_wire_pass,
    },
    {
        .method = "GET",
        .path = "/v1/counts",
        .scope = WEFT_SCOPE_READ,
        .group = WEFT_GROUP_LIST,
        .read = weft_counts_read,
        .run = weft_counts_run,
        .name = "getCounts",
        .summary = "Executions by lane and state, computed at most once a second",
        .about = "`as_of` says when they were computed. `succeeded_1h` and `failed_1h` count the "
                 "last hour.",
        .query = {{"lane", NAME_SCHEMA, "Only of this lane"}},
        .answer = COUNTS_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .method = "GET",
        .path = "/healthz",
        .scope = WEFT_SCOPE_NONE,
        .while_waiting = true,
        .read = weft_health_read,
        .name = "health",
        .summary = "200 while the process runs",
        .about = "For a liveness probe: it does not look at the store. Needs no token.",
        .answer = STATUS_ANSWER,
        .shape = WEFT_SHAPE_OTHER,
    },
    {
        .method = "GET",
        .path = "/readyz",
        .scope = WEFT_SCOPE_NONE,
        .while_waiting = true,
        .read = weft_readiness_read,
        .name = "readiness",
        .summary = "200 when the store answers, else 503; warns of "
                   "scanners that no living replica runs",
        .about = "For a readiness probe: when the store has not answered for 3 s, or broke a "
                 "connection off just now, the answer is 503. It is given from memory, however "
                 "busy the server is. Needs no token.",
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
        .about =
            "One scrape has the counters of this server and the executions by lane and state of "
            "the namespace. A token of one namespace gets the executions, the version and whether "
            "the store answers: the counters of the server tell of all namespaces.",
        .shape = WEFT_SHAPE_TEXT,
    },
    {
        .method = "GET",
        .path = "/openapi.json",
        .scope = WEFT_SCOPE_NONE,
        .read = weft_openapi_read,
        .name = "openapi",
        .summary = "This document",
        .about = "Written from the server's own table of routes and messages. Needs no token.",
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
