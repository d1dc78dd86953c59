/* SPDX-License-Identifier: Apache-2.0 */

/* Looking: executions, their attempts, lanes, counts and workers. */

#include "wire/rows.h"

/* The error of an execution or an attempt. */
#define ERROR_ROWS                                                                                 \
    ROW("class", TEXT, error_class, "What kind of error"),                                         \
        ROW("message", TEXT, error_message, "For people")

/* ---- Executions ------------------------------------------------------------------------------ */

#define OF struct weft_execution

static const struct weft_wire_field execution_progress[] = {
    ROW("percent", I32, percent, "How much is done", ALWAYS, .max = 100),
    ROW("note", TEXT, note, "A word about it"),
};
static const struct weft_wire_field execution_error[] = {ERROR_ROWS};

static const char *const not_retried[WEFT_NOT_RETRIED_COUNT] = {
    [WEFT_NOT_RETRIED_ATTEMPTS] = "attempts_used_up",
    [WEFT_NOT_RETRIED_CLASS] = "class_in_no_retry",
    [WEFT_NOT_RETRIED_PERMANENT] = "permanent",
    [WEFT_NOT_RETRIED_LOST] = "leases_lost",
    [WEFT_NOT_RETRIED_INVALID] = "invalid",
};

static const struct weft_wire_field execution[] = {
    ROW("id", ID, id, "The execution", REQUIRED),
    ROW("namespace", TEXT, ns, "The namespace it lives in", REQUIRED),
    ROW("lane", TEXT, lane, "The lane it waits in", REQUIRED),
    ROW("kind", TEXT, kind, "What is to be done", REQUIRED),
    ROW("state", STATE, state, "Where in its life it is", REQUIRED),
    ROW("priority", I32, priority, "Higher ones are claimed first", .min = INT16_MIN,
        .max = INT16_MAX),
    ROW("tenant", TEXT, tenant, "Whom it is for"),
    ROW("key", TEXT, key, "Its idempotency key"),
    ROW("tags", TAGS, tags, "Free words", COUNT(tag_count)),
    ROW("capabilities", TEXTS, capabilities, "What a worker must be able to do",
        COUNT(capability_count)),
    ROW("attempt", I32, attempt, "The current or next attempt, from 1", .max = INT32_MAX),
    ROW("epoch", I32, epoch, "Grows with each claim", .max = INT32_MAX),
    ROW("lost", I32, lost, "Leases that ran out", .max = INT32_MAX),
    ROW("worker", TEXT, worker, "Who has it, or had it last"),
    OBJECT("progress", execution_progress, "What its worker said last", .flags = WEFT_WIRE_BY_SIGN,
           COUNT(percent)),
    ROW("created_at", MOMENT, created_us, "When it was submitted"),
    ROW("started_at", MOMENT, started_us, "When it was claimed first"),
    ROW("finished_at", MOMENT, finished_us, "When it ended"),
    ROW("run_at", MOMENT, run_at_us, "When it becomes ready"),
    ROW("deadline_at", MOMENT, deadline_us, "When it must be over"),
    ROW("lease_expires_at", MOMENT, lease_expires_us, "How long its lease lasts"),
    ROW("reason", TEXT, reason, "Why it was ended"),
    OBJECT("error", execution_error, "The last error"),
    ROW("flow_id", ID, flow, "The flow it is a node of", OR_NULL),
    ROW("node", TEXT, node, "Its name in that flow"),
    ROW("attempts_used", I32, attempts_used,
        "Attempts since the last replay that failed, timed out, succeeded or run now; a lost "
        "lease uses none up",
        .max = INT32_MAX),
    ROW("attempts_left", I32, attempts_left, "Attempts that may still begin; 0 when it is over",
        .max = INT32_MAX),
    ROW("next_attempt_at", MOMENT, next_attempt_us,
        "When it is tried again; null when no retry waits for its time"),
    ROW("not_retried_because", WORD, not_retried,
        "Why a failed one gets no further attempt; permanent: its worker said retryable "
        "false",
        WORDS(not_retried)),
    ROW("policy", POLICY, policy, "Its policy, with the defaults filled in"),
};
ANSWER(execution, "Execution",
       "All that is known of an execution, but for its payload and result.");
#undef OF

#define OF struct weft_attempt

static const struct weft_wire_field attempt_error[] = {ERROR_ROWS};

static const struct weft_wire_field attempt[] = {
    ROW("epoch", I32, epoch, "Of the lease", .max = INT32_MAX),
    ROW("attempt", I32, attempt, "Which attempt it was, from 1", .max = INT32_MAX),
    ROW("worker", TEXT, worker, "Who had it"),
    ROW("started_at", MOMENT, started_us, "When it was claimed"),
    ROW("ended_at", MOMENT, ended_us, "When the lease ended"),
    ROW("ended", TEXT, ended, "How it ended: failed, timed_out, lost, ..."),
    OBJECT("error", attempt_error, "What went wrong"),
    ROW("run_at", MOMENT, run_at_us, "When it became ready again"),
};
ANSWER(attempt, "Attempt", "How a lease ended.");
#undef OF

/* ---- Lanes ----------------------------------------------------------------------------------- */

#define OF struct weft_lane

static const struct weft_wire_field lane[] = {
    ROW("lane", TEXT, name, "Its name; in a request the path says it"),
    ROW("paused", BOOL, paused, "Nothing is claimed from it"),
    ROW("max_running", I32, max_running, "How many of it may run at once; 0: no limit",
        .max = INT32_MAX),
    ROW("retention_ms", I64, retention_ms,
        "How long outcomes are kept whose policy does not say, failed and expired ones four "
        "times as long; 0: 7 days",
        .max = WEFT_DELAY_MAX_MS),
    ROW("weights", WEIGHTS, weights, "The shares of tenants; one without has 1",
        COUNT(weight_count), .min = 1, .max = 1000),
};
MESSAGE_TYPE(lane, "Lane", "The settings of a lane.", .answer = true, .request = true);
#undef OF

#define OF struct weft_lane_count

static const struct weft_wire_field lane_count[] = {
    ROW("lane", TEXT, lane, "Its name", REQUIRED),
    ROW("ready", U64, count[WEFT_STATE_READY], "Waiting for a worker"),
    ROW("delayed", U64, count[WEFT_STATE_DELAYED], "Waiting for their time"),
    ROW("blocked", U64, count[WEFT_STATE_BLOCKED], "Waiting for others of their flow"),
    ROW("running", U64, count[WEFT_STATE_RUNNING], "In the hands of workers"),
    ROW("suspended", U64, count[WEFT_STATE_SUSPENDED], "Waiting for a signal"),
    ROW("held", U64, count[WEFT_STATE_HELD], "Kept back"),
    ROW("succeeded_1h", U64, succeeded_1h, "Succeeded within the last hour"),
    ROW("failed_1h", U64, failed_1h,
        "Failed or expired within the last hour, and not replayed since"),
    ROW("draining", U64, draining,
        "Ended by others while a worker had them, which has not let go yet: they keep their "
        "places in a lane with a limit"),
};
ANSWER(lane_count, "LaneCount", "How much there is in a lane.");
#undef OF

/* ---- Workers --------------------------------------------------------------------------------- */

#define OF struct weft_worker_info

static const struct weft_wire_field worker[] = {
    ROW("worker", TEXT, name, "Its name", REQUIRED),
    ROW("lanes", TEXTS, lanes, "Where it looks for work", COUNT(lane_count)),
    ROW("capabilities", TEXTS, capabilities, "What it is able to do", COUNT(capability_count)),
    ROW("leases", U64, leases, "How many it holds now"),
    ROW("last_seen_at", MOMENT, seen_us, "When it was heard of last"),
};
ANSWER(worker, "Worker", "A worker as the store knows it.");
#undef OF
