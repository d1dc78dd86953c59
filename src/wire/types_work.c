/* SPDX-License-Identifier: Apache-2.0 */

/* Messages about claims and leases, and messages that steer executions. */

#include "wire/rows.h"

#define LEASE_BOUNDS .min = WEFT_LEASE_MIN_MS, .max = WEFT_LEASE_MAX_MS

/* ---- Claim ----------------------------------------------------------------------------------- */

#define OF struct weft_claim

static const struct weft_wire_field claim[] = {
    ROW("worker", TEXT, worker, "Names one process", REQUIRED),
    ROW("lanes", TEXTS, lanes, "Where to look, in this order of preference. Default: default",
        COUNT(lane_count)),
    ROW("kinds", TEXTS, kinds, "What to take. Default: all but the kinds weft carries out itself",
        COUNT(kind_count)),
    ROW("capabilities", TEXTS, capabilities, "What the worker is able to do",
        COUNT(capability_count)),
    /* An explicit 0 would read as "not given" in the struct. */
    ROW("max", U32, max, "How many at most. Default: 1", CHECKED, .min = 1, .max = WEFT_BATCH_MAX),
    ROW("lease_ms", I64, lease_ms,
        "How long the leases last. Default: what the policy of each says", CHECKED, LEASE_BOUNDS),
    ROW("wait_ms", I64, wait_ms, "How long to wait for the first one. Default: 0", .max = 60000),
};
REQUEST(claim, "Claim", "Asks for work.");
#undef OF

#define OF struct weft_claimed

static const struct weft_wire_field claimed_resumed[] = {
    ROW("by", WORD, resumed_by, "What let it go on", WORDS(weft_wire_resumed_by)),
    ROW("at", MOMENT, resumed_us, "When"),
};
static const struct weft_wire_field claimed[] = {
    LEASE,
    ROW("attempt", I32, attempt, "Which attempt this is, from 1", .max = INT32_MAX),
    ROW("lane", TEXT, lane, "Its lane", REQUIRED),
    ROW("kind", TEXT, kind, "What is to be done", REQUIRED),
    BYTES("payload", , payload, "As it was given; absent when none was"),
    ROW("content_type", CONTENT_TYPE, content_type, "Of the payload"),
    ROW("priority", I32, priority, "Higher ones are claimed first", .min = INT16_MIN,
        .max = INT16_MAX),
    ROW("tenant", TEXT, tenant, "Whom it is for"),
    ROW("tags", TAGS, tags, "Free words", COUNT(tag_count)),
    ROW("created_at", MOMENT, created_us, "When it was submitted"),
    ROW("deadline_at", MOMENT, deadline_us, "When it must be over"),
    ROW("attempt_deadline_at", MOMENT, attempt_deadline_us,
        "When this attempt times out, as its policy says; null: it does not"),
    ROW("lease_expires_at", MOMENT, lease_expires_us,
        "Renew before this, or another worker gets it"),
    ROW("lease_ms", I64, lease_ms, "How long the lease lasts, for a worker whose clock is off"),
    ROW("flow_id", ID, flow, "The flow it is a node of", OR_NULL),
    ROW("node", TEXT, node, "Its name in that flow"),
    ROW("upstream", MAP, upstream, "The outcomes of the nodes it comes after",
        COUNT(upstream_count), .of = &weft_wire_upstream, .max = WEFT_FLOW_NODES_MAX),
    OBJECT("resumed", claimed_resumed, "Of an execution that was suspended: why it goes on",
           .flags = WEFT_WIRE_BY_FLAG | WEFT_WIRE_WITH, COUNT(resumed),
           .type = offsetof(OF, resumed)),
    ROW("signals", LIST, signal,
        "Of such an execution: the signals of the suspension, in the order of their arrival",
        COUNT(signal_count), .of = &weft_wire_signal_info, .flags = WEFT_WIRE_WITH,
        .type = offsetof(OF, resumed)),
    ROW("more", BOOL, more_signals,
        "64 KiB of signals have come along: GET /v1/executions/ID/signals has the others",
        .flags = WEFT_WIRE_WITH, .type = offsetof(OF, resumed)),
};
ANSWER(claimed, "Claimed", "An execution with its lease.");
#undef OF

/* ---- Renew ----------------------------------------------------------------------------------- */

#define OF struct weft_renew

static const struct weft_wire_field renew_progress[] = {
    ROW("percent", I32, percent, "How much is done. Default: 0", ALWAYS, .max = 100),
    ROW("note", TEXT, note, "A word about it"),
};
static const struct weft_wire_field renew[] = {
    LEASE,
    ROW("lease_ms", I64, lease_ms, "How long from now it lasts. Default: what the policy says",
        CHECKED, LEASE_BOUNDS),
    OBJECT("progress", renew_progress, "How far it is; kept until the next one",
           .flags = WEFT_WIRE_BY_FLAG, COUNT(has_progress)),
};
REQUEST(renew, "Renew", "Keeps a lease.");
#undef OF

/* ---- Complete -------------------------------------------------------------------------------- */

#define OF struct weft_complete

static const struct weft_wire_field complete[] = {
    LEASE,
    BYTES("result", , result, "Any JSON; it is kept byte for byte"),
    ROW("content_type", CONTENT_TYPE, content_type,
        "Of the result. Default: application/json, or application/octet-stream with "
        "result_base64"),
};
REQUEST(complete, "Complete", "It is done.");
#undef OF

/* ---- Fail ------------------------------------------------------------------------------------ */

#define OF struct weft_failure

static const struct weft_wire_field failure[] = {
    LEASE,
    ROW("class", TEXT, error_class, "What kind of error. Default: error"),
    ROW("message", TEXT, message, "For people"),
    ROW("retryable", UNLESS, permanent,
        "It may be tried again, if the policy allows; false: it has failed for good (permanent "
        "in the C library, exit code 65 of a command of weft work). Default: true"),
    /* Checked: -1 would read as "at once" in the struct. */
    ROW("retry_after_ms", AT_ONCE, retry_after_ms,
        "When to try again, instead of the backoff; 0: at once", CHECKED, .max = WEFT_DELAY_MAX_MS),
    ROW("detail", ANY, detail, "Any JSON of up to 64 KiB, shown with the error byte for byte"),
};
REQUEST(failure, "Fail", "It did not work.");
#undef OF

/* ---- Delay, release -------------------------------------------------------------------------- */

#define OF struct weft_put_back

static const struct weft_wire_field delay[] = {
    LEASE,
    ROW("delay_ms", I64, delay_ms, "How long from now it may not be claimed", REQUIRED,
        .max = WEFT_DELAY_MAX_MS),
};
REQUEST(delay, "Delay", "Not now: it comes back later and spends no attempt.");

static const struct weft_wire_field release[] = {
    LEASE,
    ROW("delay_ms", I64, delay_ms,
        "How long from now it may not be claimed, so that it does not come back to the same "
        "worker at once. Default: 1000",
        ALWAYS, .max = WEFT_DELAY_MAX_MS, .normally = 1000),
};
REQUEST(release, "Release", "Give it to another worker, which spends no attempt.");
#undef OF

/* ---- Watch ----------------------------------------------------------------------------------- */

#define OF struct weft_watch

static const struct weft_wire_field watch[] = {
    ROW("worker", TEXT, worker, "The name under which the leases were claimed", REQUIRED),
    ROW("wait_ms", I64, wait_ms, "How long to wait for the first one. Default: 0", CHECKED,
        .max = 60000),
};
REQUEST(watch, "Watch", "Asks for leases that others ended.");
#undef OF

#define OF struct weft_ended_lease

static const char *const ended_reasons[] = {
    [WEFT_FENCE_CANCELLED] = "cancelled",
    [WEFT_FENCE_EXPIRED] = "expired",
    [WEFT_FENCE_TIMED_OUT] = "timed_out",
    [WEFT_FENCE_REVOKED] = "revoked",
};
static const struct weft_wire_field ended_lease[] = {
    LEASE,
    ROW("reason", WORD, reason,
        "expired: the deadline of the execution passed; timed_out: the attempt took too "
        "long",
        REQUIRED, WORDS(ended_reasons)),
};
ANSWER(ended_lease, "EndedLease",
       "A lease that was ended by a cancel, a deadline, a timeout or a revoke.");
#undef OF

/* ---- Answers --------------------------------------------------------------------------------- */

#define OF struct weft_lease_result

static const struct weft_wire_field renewed[] = {
    ROW("lease_expires_at", MOMENT, lease_expires_us, "The lease lasts until then", REQUIRED),
};
ANSWER(renewed, "Renewed", "The lease goes on.");

static const struct weft_wire_field finished[] = {
    ROW("state", STATE, state, "What the execution is in now", REQUIRED),
    ROW("run_at", MOMENT, run_at_us, "When it becomes ready, if it waits"),
};
ANSWER(finished, "Finished", "The lease is over.");
#undef OF

/* ---- Cancel, replay, priority, deadline, and the filter that picks many ---------------------- */

#define OF struct weft_steer

static const struct weft_wire_field cancel[] = {
    ROW("reason", TEXT, reason, "Kept with the execution"),
};
REQUEST(cancel, "Cancel", "Ends an execution.");

static const struct weft_wire_field replay[] = {
    ROW("force", BOOL, force,
        "Of a member of a flow: also if its upstreams, as they ended, do not allow it"),
};
REQUEST(replay, "Replay", "Lets an execution that is over live again.");

static const struct weft_wire_field priority[] = {
    ROW("priority", I32, priority, "Higher ones are claimed first", REQUIRED, .min = INT16_MIN,
        .max = INT16_MAX),
};
REQUEST(priority, "Priority", "Gives an execution another priority.");

static const struct weft_wire_field deadline[] = {
    ROW("deadline_at", MOMENT, deadline_us,
        "When it must be over; null: it has no deadline any more", ALWAYS),
};
REQUEST(deadline, "Deadline", "Gives an execution another deadline.");
#undef OF

#define OF struct weft_filter

static const struct weft_wire_field filter[] = {
    ROW("lane", TEXT, lane, "Its lane"),
    ROW("kind", TEXT, kind, "Its kind"),
    ROW("state", STATE, state, "Its state"),
    ROW("tag", TAG, tag, "One of its tags, as KEY:VALUE"),
    ROW("tenant", TEXT, tenant, "Its tenant"),
    ROW("key", TEXT, key, "Its idempotency key"),
    ROW("flow", ID, flow, "The flow that it is a member of", OR_NULL),
    ROW("error_class", TEXT, error_class, "The class of the error it ended with"),
    ROW("worker", TEXT, worker, "The worker that holds its lease, or held the last one"),
    ROW("escalated", BOOL, escalated, "Only suspended ones that were left to an operator"),
    ROW("created_since", MOMENT, created_since_us, "Created then or later"),
    ROW("created_until", MOMENT, created_until_us, "Created before"),
    ROW("finished_since", MOMENT, finished_since_us, "Ended then or later"),
    ROW("finished_until", MOMENT, finished_until_us, "Ended before"),
};
REQUEST(filter, "Filter", "Picks executions: everything given must fit.");
#undef OF

#define OF struct weft_wire_sweep

static const struct weft_wire_field sweep[] = {
    ROW("matched", U64, matched, "Executions that fit"),
    ROW("changed", U64, changed, "Executions that were changed"),
    ROW("more", BOOL, more, "The bound of one call was reached: call again"),
    ROW("next", TEXT, next, "Where the next call goes on, as its after; null: there is no more"),
};
ANSWER(sweep, "Sweep", "What a call with a filter did.");
#undef OF
