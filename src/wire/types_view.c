/* SPDX-License-Identifier: Apache-2.0 */

/* Executions and their attempts, lanes, counts, workers, replicas, scanners and tokens. */

#include "core/limit.h"
#include "wire/rows.h"

/* The error of an execution or an attempt. */
#define ERROR_ROWS                                                                                 \
    ROW("class", TEXT, error_class, "What kind of error"),                                         \
        ROW("message", TEXT, error_message, "For people"),                                         \
        ROW("detail", ANY, error_detail,                                                           \
            "What its worker said besides, any JSON; of the items of a page, some 8 MiB in all")

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
    ROW("reason", TEXT, reason, "Why it was ended; of a suspended one, what it waits for"),
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
    ROW("result_size", I64, result_size, "Bytes of its result; 0 when it has none",
        .max = WEFT_CALL_RESULT_MAX),
    ROW("suspended_at", MOMENT, suspended_us, "Since when it is suspended"),
    ROW("timeout_at", MOMENT, timeout_us, "When the suspension times out"),
    ROW("escalated", BOOL, escalated, "The timeout passed, and an operator must look"),
    ROW("gate", TEXT, gate, "The gate whose limits hold for it"),
    ROW("budgets", TEXTS, budgets, "The budgets that its submission named", COUNT(budget_count)),
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

static const struct weft_wire_field lane_window[] = {
    ROW("limit", I64, window.limit, "So many starts", .min = 1, .max = WEFT_LIMIT_MOST),
    ROW("per_ms", I64, window.per_ms, "in any span of this length", .min = 1,
        .max = WEFT_LIMIT_PER_MAX),
};
static const struct weft_wire_field lane_rate[] = {
    ROW("limit", I64, rate.limit, "So many starts on average", .min = 1, .max = WEFT_LIMIT_MOST),
    ROW("per_ms", I64, rate.per_ms, "in each span of this length", .min = 1,
        .max = WEFT_LIMIT_PER_MAX),
    ROW("burst", I64, rate.burst, "and up to so many at once. Default: as limit",
        .max = WEFT_LIMIT_MOST),
};
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
    OBJECT("window", lane_window, "How many may start in any span of time; null: no limit"),
    OBJECT("rate", lane_rate, "How often they may start, with bursts; null: no limit"),
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
    ROW("escalated", U64, escalated, "Suspended ones that were left to an operator"),
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

enum { PARTITION_LAST = 255 }; /* see base/id.h */

/* ---- Replicas -------------------------------------------------------------------------------- */

#define OF struct weft_replica

static const struct weft_wire_field replica[] = {
    ROW("id", ID, id, "A new one at each start", REQUIRED),
    ROW("host", TEXT, host, "The machine it runs on", REQUIRED),
    ROW("pid", I64, pid, "Its process there", .max = INT32_MAX),
    ROW("version", TEXT, version, "The version of weft that it runs", REQUIRED),
    ROW("url", TEXT, url, "Where it listens", REQUIRED),
    ROW("state", ALIVE, alive, "dead when its heartbeat is late", REQUIRED),
    ROW("started_at", MOMENT, started_us, "When it started"),
    ROW("seen_at", MOMENT, seen_us, "Its last heartbeat"),
    ROW("carries", TEXTS, carries, "Kinds of executions that it carries out itself",
        COUNT(carries_count)),
    ROW("settings", RAW, settings, "The settings that may differ between replicas", REQUIRED),
};
ANSWER(replica, "Replica", "A server that shares the store.");
#undef OF

/* ---- Scanners -------------------------------------------------------------------------------- */

#define OF struct weft_scanner_status

static const struct weft_wire_field scanner[] = {
    ROW("name", TEXT, name, "The scanner", REQUIRED),
    ROW("replica", ID, replica, "Which one runs it", REQUIRED),
    ROW("host", TEXT, host, "The machine of the replica"),
    ROW("enabled", BOOL, enabled, "It runs by itself"),
    ROW("interval_ms", I64, interval_ms, "The longest time between two passes; 0: it is off",
        .max = INT64_MAX),
    ROW("batch", U32, batch, "Rows of one transaction"),
    ROW("pause_ms", I64, pause_ms, "Between two batches while there is more to do",
        .max = INT64_MAX),
    ROW("namespace", TEXT, ns, "It is limited to it"),
    ROW("partitions", RANGE, partition_first, "It is limited to them: the first and the last",
        COUNT(partition_last), .max = PARTITION_LAST),
    ROW("passes", U64, passes, "Since the replica started"),
    ROW("failures", U64, failures, "How many of these passes failed"),
    ROW("last_pass_at", MOMENT, last_pass_us, "When the last pass that did not fail ended"),
    ROW("duration_ms", MS, duration_us, "How long the last pass took"),
    ROW("next_at", MOMENT, next_us, "When it runs next"),
    ROW("lag_ms", MS, lag_us, "Age of the oldest row that is due; 0: none is"),
    ROW("last_error", TEXT, last_error, "null: the last pass went well"),
    ROW("counters", COUNTERS, counters, "What all passes since the start did together",
        COUNT(counter_count)),
};
ANSWER(scanner, "Scanner", "A scanner on a replica: how it is set, and what it last did.");
#undef OF

/* ---- One pass -------------------------------------------------------------------------------- */

#define OF struct weft_wire_pass

static const struct weft_wire_field pass[] = {
    ROW("name", TEXT, name, "The scanner", REQUIRED),
    ROW("handled", U64, handled, "Rows it changed"),
    ROW("failed", U64, failed, "Executions that it ended"),
    ROW("counters", COUNTERS, counters, "What it did, by name", COUNT(counter_count)),
    ROW("more", BOOL, more, "There may be more to do at once"),
    ROW("next_due_at", DUE, next_due_us, "When it has something to do again, where that is known",
        .normally = INT64_MAX),
    ROW("duration_ms", MS, duration_us, "How long it took"),
};
ANSWER(pass, "Pass", "What one pass of a scanner did.");
#undef OF

/* ---- Tokens: the secret is in one message, the answer to create and rotate ------------------- */

#define OF struct weft_token_spec

static const struct weft_wire_field token_spec[] = {
    ROW("name", TEXT, name, "Whose it is", REQUIRED),
    ROW("scopes", TEXTS, scopes,
        "What it may do: read, submit, work, and admin, which means all of them",
        COUNT(scope_count), REQUIRED, .max = 4),
    ROW("namespace", TEXT, ns,
        "The only namespace that it is good for; absent: every one, or that of the token "
        "that the request is made with"),
    ROW("expires_ms", I64, expires_ms, "How long it is good, from now on", CHECKED, .min = 1,
        .max = WEFT_DELAY_MAX_MS, .rival = "expires_at"),
    ROW("expires_at", MOMENT, expires_us, "Until when it is good; neither of the two: for ever",
        .rival = "expires_ms"),
};
REQUEST(token_spec, "TokenSpec", "A token to be made.");
#undef OF

#define OF struct weft_token_rotation

static const struct weft_wire_field token_rotation[] = {
    ROW("grace_ms", AT_ONCE, grace_ms,
        "How long the secret that it had stays good; absent: no longer, but a minute for the "
        "token that the request is made with",
        CHECKED, .max = WEFT_DELAY_MAX_MS),
    ROW("expires_ms", I64, expires_ms, "How long it is good, from now on", CHECKED, .min = 1,
        .max = WEFT_DELAY_MAX_MS, .rival = "expires_at"),
    ROW("expires_at", MOMENT, expires_us, "Until when it is good; neither of the two: as before",
        .rival = "expires_ms"),
};
REQUEST(token_rotation, "TokenRotation", "Gives a token another secret.");
#undef OF

#define OF struct weft_token

#define SHOWN_ROWS                                                                                 \
    ROW("id", I32, id, "By which it is rotated and revoked", REQUIRED, .min = 1,                   \
        .max = INT32_MAX),                                                                         \
        ROW("name", TEXT, name, "Whose it is"),                                                    \
        ROW("scopes", TEXTS, scopes, "What it may do", COUNT(scope_count)),                        \
        ROW("namespace", TEXT, ns, "Where it is good; null: everywhere"),                          \
        ROW("created_at", MOMENT, created_us, "When it was made"),                                 \
        ROW("expires_at", MOMENT, expires_us, "Until when it is good"),                            \
        ROW("last_used_at", MOMENT, last_used_us,                                                  \
            "When it was last used, to about a minute; null: never"),                              \
        ROW("rotated_at", MOMENT, rotated_us, "When it got its present secret"),                   \
        ROW("old_expires_at", MOMENT, old_expires_us,                                              \
            "Until when the secret before that is good; null: it is not")

static const struct weft_wire_field token[] = {SHOWN_ROWS};
ANSWER(token, "Token", "A token, without its secret.");

static const struct weft_wire_field token_made[] = {
    SHOWN_ROWS,
    ROW("token", TEXT, token, "What requests send as their bearer token; it is shown this once",
        REQUIRED),
};
ANSWER(token_made, "TokenMade", "A token with a secret that was just made.");
#undef OF
