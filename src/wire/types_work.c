/* SPDX-License-Identifier: Apache-2.0 */

/* Messages about claims and leases. */

#include "base/limits.h"
#include "core/result.h"
#include "wire/type.h"

#define NAMED(name, kind) WEFT_WIRE_NAMED(name, kind)
#define LEASE_BOUNDS      .min = WEFT_LEASE_MIN_MS, .max = WEFT_LEASE_MAX_MS

/* Which lease it is about. */
#define LEASE(c_type)                                                                              \
    {NAMED("id", ID), .at = offsetof(c_type, id), .flags = WEFT_WIRE_REQUIRED,                     \
     .about = "The execution"},                                                                    \
    {                                                                                              \
        NAMED("epoch", I32), .at = offsetof(c_type, epoch), .flags = WEFT_WIRE_REQUIRED,           \
                             .max = INT32_MAX, .about = "The epoch of the lease, from the claim"   \
    }

/* ---- Claim ----------------------------------------------------------------------------------- */

#define AT(field)    .at = offsetof(struct weft_claim, field)
#define COUNT(field) .count = offsetof(struct weft_claim, field)

static const struct weft_wire_field claim[] = {
    {NAMED("worker", TEXT), AT(worker), .flags = WEFT_WIRE_REQUIRED, .about = "Names one process"},
    {NAMED("lanes", TEXTS), AT(lanes), COUNT(lane_count),
     .about = "Where to look, in this order of preference. Default: default"},
    {NAMED("kinds", TEXTS), AT(kinds), COUNT(kind_count),
     .about = "What to take. Default: all but the kinds weft carries out itself"},
    {NAMED("capabilities", TEXTS), AT(capabilities), COUNT(capability_count),
     .about = "What the worker is able to do"},
    /* An explicit 0 would read as "not given" in the struct. */
    {NAMED("max", U32), AT(max), .flags = WEFT_WIRE_CHECKED, .min = 1, .max = WEFT_BATCH_MAX,
     .about = "How many at most. Default: 1"},
    {NAMED("lease_ms", I64), AT(lease_ms), .flags = WEFT_WIRE_CHECKED, LEASE_BOUNDS,
     .about = "How long the leases last. Default: what the policy of each says"},
    {NAMED("wait_ms", I64), AT(wait_ms), .max = 60000,
     .about = "How long to wait for the first one. Default: 0"},
};
const struct weft_wire_type weft_wire_claim = {WEFT_WIRE_FIELDS(struct weft_claim, claim),
                                               .name = "Claim", .about = "Asks for work."};
#undef AT
#undef COUNT

#define AT(field)    .at = offsetof(struct weft_claimed, field)
#define COUNT(field) .count = offsetof(struct weft_claimed, field)
#define TYPE         .type = offsetof(struct weft_claimed, content_type)
#define BYTES        AT(payload), COUNT(payload_size), TYPE

static const struct weft_wire_field claimed[] = {
    LEASE(struct weft_claimed),
    {NAMED("attempt", I32), AT(attempt), .max = INT32_MAX,
     .about = "Which attempt this is, from 1"},
    {NAMED("lane", TEXT), AT(lane), .flags = WEFT_WIRE_REQUIRED, .about = "Its lane"},
    {NAMED("kind", TEXT), AT(kind), .flags = WEFT_WIRE_REQUIRED, .about = "What is to be done"},
    {NAMED("payload", JSON), BYTES, .about = "As it was given; absent when none was"},
    {NAMED("payload_base64", BASE64), BYTES, .rival = "payload",
     .about = "A payload that is not JSON"},
    {NAMED("content_type", CONTENT_TYPE), AT(content_type), .about = "Of the payload"},
    {NAMED("priority", I32), AT(priority), .min = INT16_MIN, .max = INT16_MAX,
     .about = "Higher ones are claimed first"},
    {NAMED("tenant", TEXT), AT(tenant), .about = "Whom it is for"},
    {NAMED("tags", TAGS), AT(tags), COUNT(tag_count), .about = "Free words"},
    {NAMED("created_at", MOMENT), AT(created_us), .about = "When it was submitted"},
    {NAMED("deadline_at", MOMENT), AT(deadline_us), .about = "When it must be over"},
    {NAMED("lease_expires_at", MOMENT), AT(lease_expires_us),
     .about = "Renew before this, or somebody else gets it"},
    {NAMED("lease_ms", I64), AT(lease_ms),
     .about = "How long the lease lasts, for those whose clock is another"},
    {NAMED("flow_id", ID), AT(flow), .flags = WEFT_WIRE_OR_NULL,
     .about = "The flow it is a node of"},
    {NAMED("node", TEXT), AT(node), .about = "Its name in that flow"},
    {NAMED("upstream", MAP), AT(upstream), COUNT(upstream_count), .of = &weft_wire_upstream,
     .max = WEFT_FLOW_NODES_MAX, .about = "The outcomes of the nodes it comes after"},
};
const struct weft_wire_type weft_wire_claimed = {
    WEFT_WIRE_FIELDS(struct weft_claimed, claimed), .name = "Claimed",
    .about = "An execution with its lease.", .answer = true};
#undef AT
#undef COUNT
#undef TYPE
#undef BYTES

/* ---- Renew ----------------------------------------------------------------------------------- */

#define AT(field) .at = offsetof(struct weft_renew, field)

static const struct weft_wire_field renew_progress[] = {
    {NAMED("percent", I32), AT(percent), .flags = WEFT_WIRE_ALWAYS, .max = 100,
     .about = "How much is done. Default: 0"},
    {NAMED("note", TEXT), AT(note), .about = "A word about it"},
};
static const struct weft_wire_field renew[] = {
    LEASE(struct weft_renew),
    {NAMED("lease_ms", I64), AT(lease_ms), .flags = WEFT_WIRE_CHECKED, LEASE_BOUNDS,
     .about = "How long from now it lasts. Default: what the policy says"},
    {NAMED("progress", OBJECT), .flags = WEFT_WIRE_BY_FLAG,
     .count = offsetof(struct weft_renew, has_progress), .inner = renew_progress,
     .inners = WEFT_LEN(renew_progress), .about = "How far it is; kept until the next one"},
};
const struct weft_wire_type weft_wire_renew = {WEFT_WIRE_FIELDS(struct weft_renew, renew),
                                               .name = "Renew", .about = "Keeps a lease."};
#undef AT

/* ---- Complete -------------------------------------------------------------------------------- */

#define AT(field) .at = offsetof(struct weft_complete, field)
#define BYTES                                                                                      \
    AT(result), .count = offsetof(struct weft_complete, result_size),                              \
                .type = offsetof(struct weft_complete, content_type)

static const struct weft_wire_field complete[] = {
    LEASE(struct weft_complete),
    {NAMED("result", JSON), BYTES, .about = "Any JSON; it is kept byte for byte"},
    {NAMED("result_base64", BASE64), BYTES, .rival = "result",
     .about = "A result that is not JSON"},
    {NAMED("content_type", CONTENT_TYPE), AT(content_type),
     .about = "Of the result. Default: application/json, or application/octet-stream with "
              "result_base64"},
};
const struct weft_wire_type weft_wire_complete = {WEFT_WIRE_FIELDS(struct weft_complete, complete),
                                                  .name = "Complete", .about = "It is done."};
#undef AT
#undef BYTES

/* ---- Fail ------------------------------------------------------------------------------------ */

#define AT(field) .at = offsetof(struct weft_failure, field)

static const struct weft_wire_field failure[] = {
    LEASE(struct weft_failure),
    {NAMED("class", TEXT), AT(error_class), .about = "What kind of error. Default: error"},
    {NAMED("message", TEXT), AT(message), .about = "For people"},
    {NAMED("retryable", UNLESS), AT(permanent),
     .about =
         "It may be tried again, if the policy allows; false: it has failed for good (permanent "
         "in the C library, exit code 65 of a command of weft work). Default: true"},
    /* Checked: -1 would read as "at once" in the struct. */
    {NAMED("retry_after_ms", AT_ONCE), AT(retry_after_ms), .flags = WEFT_WIRE_CHECKED,
     .max = WEFT_DELAY_MAX_MS, .about = "When to try again, instead of the backoff; 0: at once"},
};
const struct weft_wire_type weft_wire_failure = {WEFT_WIRE_FIELDS(struct weft_failure, failure),
                                                 .name = "Fail", .about = "It did not work."};
#undef AT

/* ---- Delay, release -------------------------------------------------------------------------- */

#define AT(field) .at = offsetof(struct weft_put_back, field)

static const struct weft_wire_field delay[] = {
    LEASE(struct weft_put_back),
    {NAMED("delay_ms", I64), AT(delay_ms), .flags = WEFT_WIRE_REQUIRED, .max = WEFT_DELAY_MAX_MS,
     .about = "How long from now it may not be claimed"},
};
const struct weft_wire_type weft_wire_delay = {
    WEFT_WIRE_FIELDS(struct weft_put_back, delay), .name = "Delay",
    .about = "Not now: it comes back later and spends no attempt."};

static const struct weft_wire_field release[] = {
    LEASE(struct weft_put_back),
    {NAMED("delay_ms", I64), AT(delay_ms), .flags = WEFT_WIRE_ALWAYS, .max = WEFT_DELAY_MAX_MS,
     .normally = 1000,
     .about = "How long from now it may not be claimed, so that it does not come back to the same "
              "worker at once. Default: 1000"},
};
const struct weft_wire_type weft_wire_release = {
    WEFT_WIRE_FIELDS(struct weft_put_back, release), .name = "Release",
    .about = "Not me: somebody else gets it, which spends no attempt."};
#undef AT

/* ---- Watch ----------------------------------------------------------------------------------- */

#define AT(field) .at = offsetof(struct weft_watch, field)

static const struct weft_wire_field watch[] = {
    {NAMED("worker", TEXT), AT(worker), .flags = WEFT_WIRE_REQUIRED,
     .about = "The name under which the leases were claimed"},
    {NAMED("wait_ms", I64), AT(wait_ms), .flags = WEFT_WIRE_CHECKED, .max = 60000,
     .about = "How long to wait for the first one. Default: 0"},
};
const struct weft_wire_type weft_wire_watch = {WEFT_WIRE_FIELDS(struct weft_watch, watch),
                                               .name = "Watch",
                                               .about = "Asks for leases that others ended."};
#undef AT

static const char *const ended_reasons[] = {
    [WEFT_FENCE_CANCELLED] = "cancelled",
    [WEFT_FENCE_EXPIRED] = "expired",
    [WEFT_FENCE_TIMED_OUT] = "timed_out",
    [WEFT_FENCE_REVOKED] = "revoked",
};
static const struct weft_wire_field ended_lease[] = {
    LEASE(struct weft_ended_lease),
    {NAMED("reason", WORD), .at = offsetof(struct weft_ended_lease, reason),
     .flags = WEFT_WIRE_REQUIRED, .word = ended_reasons, .inners = WEFT_LEN(ended_reasons),
     .about = "expired: the deadline of the execution passed; timed_out: the attempt took too "
              "long"},
};
const struct weft_wire_type weft_wire_ended_lease = {
    WEFT_WIRE_FIELDS(struct weft_ended_lease, ended_lease), .name = "EndedLease",
    .about = "A lease that was ended by a cancel, a deadline, a timeout or a revoke.",
    .answer = true};

/* ---- Answers --------------------------------------------------------------------------------- */

#define AT(field) .at = offsetof(struct weft_lease_result, field)

static const struct weft_wire_field renewed[] = {
    {NAMED("lease_expires_at", MOMENT), AT(lease_expires_us), .flags = WEFT_WIRE_REQUIRED,
     .about = "The lease lasts until then"},
};
const struct weft_wire_type weft_wire_renewed = {
    WEFT_WIRE_FIELDS(struct weft_lease_result, renewed), .name = "Renewed",
    .about = "The lease goes on.", .answer = true};

static const struct weft_wire_field finished[] = {
    {NAMED("state", STATE), AT(state), .flags = WEFT_WIRE_REQUIRED,
     .about = "What the execution is in now"},
    {NAMED("run_at", MOMENT), AT(run_at_us), .about = "When it becomes ready, if it waits"},
};
const struct weft_wire_type weft_wire_finished = {
    WEFT_WIRE_FIELDS(struct weft_lease_result, finished), .name = "Finished",
    .about = "The lease is over.", .answer = true};
#undef AT
