/* SPDX-License-Identifier: Apache-2.0 */

/* Looking: executions, their attempts, lanes, counts and workers. */

#include "base/limits.h"
#include "wire/type.h"

#define NAMED(name, kind) WEFT_WIRE_NAMED(name, kind)

/* The error of an execution or an attempt. */
#define ERROR_ROWS(c_type)                                                                         \
    {NAMED("class", TEXT), .at = offsetof(c_type, error_class), .about = "What kind of error"},    \
    {                                                                                              \
        NAMED("message", TEXT), .at = offsetof(c_type, error_message), .about = "For people"       \
    }

/* ---- Executions ------------------------------------------------------------------------------ */

#define AT(field)    .at = offsetof(struct weft_execution, field)
#define COUNT(field) .count = offsetof(struct weft_execution, field)

static const struct weft_wire_field execution_progress[] = {
    {NAMED("percent", I32), AT(percent), .flags = WEFT_WIRE_ALWAYS, .max = 100,
     .about = "How much is done"},
    {NAMED("note", TEXT), AT(note), .about = "A word about it"},
};
static const struct weft_wire_field execution_error[] = {ERROR_ROWS(struct weft_execution)};

static const char *const not_retried[WEFT_NOT_RETRIED_COUNT] = {
    [WEFT_NOT_RETRIED_ATTEMPTS] = "attempts_used_up",
    [WEFT_NOT_RETRIED_CLASS] = "class_in_no_retry",
    [WEFT_NOT_RETRIED_PERMANENT] = "permanent",
    [WEFT_NOT_RETRIED_LOST] = "leases_lost",
    [WEFT_NOT_RETRIED_INVALID] = "invalid",
};

static const struct weft_wire_field execution[] = {
    {NAMED("id", ID), AT(id), .flags = WEFT_WIRE_REQUIRED, .about = "The execution"},
    {NAMED("namespace", TEXT), AT(ns), .flags = WEFT_WIRE_REQUIRED,
     .about = "The namespace it lives in"},
    {NAMED("lane", TEXT), AT(lane), .flags = WEFT_WIRE_REQUIRED, .about = "The lane it waits in"},
    {NAMED("kind", TEXT), AT(kind), .flags = WEFT_WIRE_REQUIRED, .about = "What is to be done"},
    {NAMED("state", STATE), AT(state), .flags = WEFT_WIRE_REQUIRED,
     .about = "Where in its life it is"},
    {NAMED("priority", I32), AT(priority), .min = INT16_MIN, .max = INT16_MAX,
     .about = "Higher ones are claimed first"},
    {NAMED("tenant", TEXT), AT(tenant), .about = "Whom it is for"},
    {NAMED("key", TEXT), AT(key), .about = "Its idempotency key"},
    {NAMED("tags", TAGS), AT(tags), COUNT(tag_count), .about = "Free words"},
    {NAMED("capabilities", TEXTS), AT(capabilities), COUNT(capability_count),
     .about = "What a worker must be able to do"},
    {NAMED("attempt", I32), AT(attempt), .max = INT32_MAX,
     .about = "The current or next attempt, from 1"},
    {NAMED("epoch", I32), AT(epoch), .max = INT32_MAX, .about = "Grows with each claim"},
    {NAMED("lost", I32), AT(lost), .max = INT32_MAX, .about = "Leases that ran out"},
    {NAMED("worker", TEXT), AT(worker), .about = "Who has it, or had it last"},
    {NAMED("progress", OBJECT), .flags = WEFT_WIRE_BY_SIGN, COUNT(percent),
     .inner = execution_progress, .inners = WEFT_LEN(execution_progress),
     .about = "What its worker said last"},
    {NAMED("created_at", MOMENT), AT(created_us), .about = "When it was submitted"},
    {NAMED("started_at", MOMENT), AT(started_us), .about = "When it was claimed first"},
    {NAMED("finished_at", MOMENT), AT(finished_us), .about = "When it ended"},
    {NAMED("run_at", MOMENT), AT(run_at_us), .about = "When it becomes ready"},
    {NAMED("deadline_at", MOMENT), AT(deadline_us), .about = "When it must be over"},
    {NAMED("lease_expires_at", MOMENT), AT(lease_expires_us), .about = "How long its lease lasts"},
    {NAMED("reason", TEXT), AT(reason), .about = "Why it was ended"},
    {NAMED("error", OBJECT), .inner = execution_error, .inners = WEFT_LEN(execution_error),
     .about = "The last error"},
    {NAMED("flow_id", ID), AT(flow), .flags = WEFT_WIRE_OR_NULL,
     .about = "The flow it is a node of"},
    {NAMED("node", TEXT), AT(node), .about = "Its name in that flow"},
    {NAMED("attempts_used", I32), AT(attempts_used), .max = INT32_MAX,
     .about = "Attempts since the last replay that failed, timed out, succeeded or run now; a lost "
              "lease uses none up"},
    {NAMED("attempts_left", I32), AT(attempts_left), .max = INT32_MAX,
     .about = "Attempts that may still begin; 0 when it is over"},
    {NAMED("next_attempt_at", MOMENT), AT(next_attempt_us),
     .about = "When it is tried again; null when no retry waits for its time"},
    {NAMED("not_retried_because", WORD), AT(not_retried), .word = not_retried,
     .inners = WEFT_LEN(not_retried),
     .about = "Why a failed one gets no further attempt; permanent: its worker said retryable "
              "false"},
    {NAMED("policy", POLICY), AT(policy), .about = "Its policy, with the defaults filled in"},
};
const struct weft_wire_type weft_wire_execution = {
    WEFT_WIRE_FIELDS(struct weft_execution, execution), .name = "Execution",
    .about = "All that is known of an execution, but for its payload and result.", .answer = true};
#undef AT
#undef COUNT

#define AT(field) .at = offsetof(struct weft_attempt, field)

static const struct weft_wire_field attempt_error[] = {ERROR_ROWS(struct weft_attempt)};

static const struct weft_wire_field attempt[] = {
    {NAMED("epoch", I32), AT(epoch), .max = INT32_MAX, .about = "Of the lease"},
    {NAMED("attempt", I32), AT(attempt), .max = INT32_MAX, .about = "Which attempt it was, from 1"},
    {NAMED("worker", TEXT), AT(worker), .about = "Who had it"},
    {NAMED("started_at", MOMENT), AT(started_us), .about = "When it was claimed"},
    {NAMED("ended_at", MOMENT), AT(ended_us), .about = "When the lease ended"},
    {NAMED("ended", TEXT), AT(ended), .about = "How it ended: failed, timed_out, lost, ..."},
    {NAMED("error", OBJECT), .inner = attempt_error, .inners = WEFT_LEN(attempt_error),
     .about = "What went wrong"},
    {NAMED("run_at", MOMENT), AT(run_at_us), .about = "When it became ready again"},
};
const struct weft_wire_type weft_wire_attempt = {WEFT_WIRE_FIELDS(struct weft_attempt, attempt),
                                                 .name = "Attempt", .about = "How a lease ended.",
                                                 .answer = true};
#undef AT

/* ---- Lanes ----------------------------------------------------------------------------------- */

#define AT(field) .at = offsetof(struct weft_lane, field)

static const struct weft_wire_field lane[] = {
    {NAMED("lane", TEXT), AT(name), .about = "Its name; in a request the path says it"},
    {NAMED("paused", BOOL), AT(paused), .about = "Nothing is claimed from it"},
    {NAMED("max_running", I32), AT(max_running), .max = INT32_MAX,
     .about = "How many of it may run at once; 0: no limit"},
    {NAMED("retention_ms", I64), AT(retention_ms), .max = WEFT_DELAY_MAX_MS,
     .about = "How long outcomes are kept whose policy does not say, failed and expired ones four "
              "times as long; 0: 7 days"},
    {NAMED("weights", WEIGHTS), AT(weights), .count = offsetof(struct weft_lane, weight_count),
     .min = 1, .max = 1000, .about = "The shares of tenants; one without has 1"},
};
const struct weft_wire_type weft_wire_lane = {WEFT_WIRE_FIELDS(struct weft_lane, lane),
                                              .name = "Lane", .about = "The settings of a lane.",
                                              .answer = true, .request = true};
#undef AT

#define AT(field)       .at = offsetof(struct weft_lane_count, field)
#define IN_STATE(state) .at = offsetof(struct weft_lane_count, count[WEFT_STATE_##state])

static const struct weft_wire_field lane_count[] = {
    {NAMED("lane", TEXT), AT(lane), .flags = WEFT_WIRE_REQUIRED, .about = "Its name"},
    {NAMED("ready", U64), IN_STATE(READY), .about = "Waiting for a worker"},
    {NAMED("delayed", U64), IN_STATE(DELAYED), .about = "Waiting for their time"},
    {NAMED("blocked", U64), IN_STATE(BLOCKED), .about = "Waiting for others of their flow"},
    {NAMED("running", U64), IN_STATE(RUNNING), .about = "In the hands of workers"},
    {NAMED("suspended", U64), IN_STATE(SUSPENDED), .about = "Waiting for a signal"},
    {NAMED("held", U64), IN_STATE(HELD), .about = "Kept back"},
    {NAMED("succeeded_1h", U64), AT(succeeded_1h), .about = "Succeeded within the last hour"},
    {NAMED("failed_1h", U64), AT(failed_1h),
     .about = "Failed or expired within the last hour, and not replayed since"},
    {NAMED("draining", U64), AT(draining),
     .about = "Ended by others while a worker had them, which has not let go yet: they keep their "
              "places in a lane with a limit"},
};
const struct weft_wire_type weft_wire_lane_count = {
    WEFT_WIRE_FIELDS(struct weft_lane_count, lane_count), .name = "LaneCount",
    .about = "How much there is in a lane.", .answer = true};
#undef AT
#undef IN_STATE

/* ---- Workers --------------------------------------------------------------------------------- */

#define AT(field)    .at = offsetof(struct weft_worker_info, field)
#define COUNT(field) .count = offsetof(struct weft_worker_info, field)

static const struct weft_wire_field worker[] = {
    {NAMED("worker", TEXT), AT(name), .flags = WEFT_WIRE_REQUIRED, .about = "Its name"},
    {NAMED("lanes", TEXTS), AT(lanes), COUNT(lane_count), .about = "Where it looks for work"},
    {NAMED("capabilities", TEXTS), AT(capabilities), COUNT(capability_count),
     .about = "What it is able to do"},
    {NAMED("leases", U64), AT(leases), .about = "How many it holds now"},
    {NAMED("last_seen_at", MOMENT), AT(seen_us), .about = "When it was heard of last"},
};
const struct weft_wire_type weft_wire_worker = {
    WEFT_WIRE_FIELDS(struct weft_worker_info, worker), .name = "Worker",
    .about = "A worker as the store knows it.", .answer = true};
#undef AT
#undef COUNT
