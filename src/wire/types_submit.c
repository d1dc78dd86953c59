/* SPDX-License-Identifier: Apache-2.0 */

/* Submitting: the spec with its policy, and the answer. */

#include "base/limits.h"
#include "wire/type.h"

/* ---- Policy ---------------------------------------------------------------------------------- */

/*
 * For writing and for the schema; weft_policy_parse() reads it. Its zeros mean "the default", so a
 * field that is 0 is left out.
 */
#define AT(field)         .at = offsetof(struct weft_policy, field)
#define NAMED(name, kind) WEFT_WIRE_NAMED(name, kind)

static const struct weft_wire_field backoff[] = {
    {NAMED("kind", BACKOFF), AT(backoff), .about = "How the wait before a retry grows"},
    {NAMED("initial_ms", AT_ONCE), AT(initial_ms), .max = WEFT_DELAY_MAX_MS,
     .about = "The first wait; 0: retry at once. Default: 1000"},
    {NAMED("factor", DOUBLE), AT(factor), .min = 1, .max = 1000,
     .about = "What each wait is multiplied by. Default: 2"},
    {NAMED("max_ms", I64), AT(max_ms), .min = 1, .max = WEFT_DELAY_MAX_MS,
     .about = "The longest wait. Default: 60000, or initial_ms where that is more"},
    {NAMED("jitter", UNLESS), AT(no_jitter),
     .about = "Wait a random time up to the computed one. Default: true"},
};

const struct weft_wire_field weft_wire_policy[] = {
    {NAMED("max_attempts", I32), AT(max_attempts), .min = 1, .max = WEFT_ATTEMPTS_MAX,
     .about = "Attempts before it has failed. Default: 5"},
    {NAMED("backoff", OBJECT), .inner = backoff, .inners = WEFT_LEN(backoff),
     .about = "The waits between attempts"},
    {NAMED("attempt_timeout_ms", I64), AT(attempt_timeout_ms), .max = WEFT_DELAY_MAX_MS,
     .about = "How long one attempt may take; 0: for ever. Default: 0"},
    {NAMED("lease_ms", I64), AT(lease_ms), .min = WEFT_LEASE_MIN_MS, .max = WEFT_LEASE_MAX_MS,
     .about = "How long a lease lasts when the claim does not say. Default: 30000"},
    {NAMED("no_retry", TEXTS), AT(no_retry), .count = offsetof(struct weft_policy, no_retry_count),
     .about = "Error classes after which it is not tried again"},
    {NAMED("max_lost", I32), AT(max_lost), .min = 1, .max = WEFT_ATTEMPTS_MAX,
     .about = "Leases that may be lost before it is given up. Default: 10"},
    {NAMED("retention_ms", I64), AT(retention_ms), .min = 1, .max = WEFT_DELAY_MAX_MS,
     .about =
         "How long its outcome is kept; four times as long when it failed or expired. Default: "
         "as the lane says, else 604800000"},
};
const size_t weft_wire_policy_count = WEFT_LEN(weft_wire_policy);
#undef AT

/* ---- Spec ------------------------------------------------------------------------------------ */

#define AT(field)    .at = offsetof(struct weft_spec, field)
#define COUNT(field) .count = offsetof(struct weft_spec, field)
#define TYPE         .type = offsetof(struct weft_spec, content_type)
#define BYTES        AT(payload), COUNT(payload_size), TYPE

static const struct weft_wire_field spec[] = {
    {NAMED("lane", TEXT), AT(lane), .about = "The lane it waits in. Default: default"},
    {NAMED("kind", TEXT), AT(kind), .flags = WEFT_WIRE_REQUIRED,
     .about = "What is to be done; workers claim by it"},
    {NAMED("payload", JSON), BYTES, .about = "Any JSON; it comes back byte for byte"},
    {NAMED("payload_base64", BASE64), BYTES, .rival = "payload",
     .about = "A payload that is not JSON"},
    {NAMED("content_type", CONTENT_TYPE), AT(content_type),
     .about = "Of the payload. Default: application/json, or application/octet-stream with "
              "payload_base64"},
    {NAMED("priority", I32), AT(priority), .min = INT16_MIN, .max = INT16_MAX,
     .about = "Higher ones are claimed first. Default: 0"},
    {NAMED("delay_ms", I64), AT(delay_ms), .max = WEFT_DELAY_MAX_MS,
     .about = "How long from now it may not be claimed. Default: 0"},
    {NAMED("run_at", MOMENT), AT(run_at_us), .rival = "delay_ms",
     .about = "When it may be claimed; in the past means now"},
    {NAMED("deadline_at", MOMENT), AT(deadline_us),
     .about = "When it must be over; expired after that"},
    {NAMED("capabilities", TEXTS), AT(capabilities), COUNT(capability_count),
     .about = "What a worker must be able to do"},
    {NAMED("tenant", TEXT), AT(tenant), .about = "Whom it is for; tenants share a lane fairly"},
    {NAMED("tags", TAGS), AT(tags), COUNT(tag_count), .about = "Free words to find it by"},
    {NAMED("key", TEXT), AT(key),
     .about = "Idempotency key: the same key submits once in its namespace"},
    {NAMED("policy", POLICY), AT(policy), .about = "Retries, timeouts and retention"},
};
const struct weft_wire_type weft_wire_spec = {
    .name = "Spec",
    .about = "What is to be carried out.",
    .field = spec,
    .count = WEFT_LEN(spec),
    .size = sizeof(struct weft_spec),
};
#undef AT
#undef COUNT
#undef TYPE
#undef BYTES

#define AT(field) .at = offsetof(struct weft_submitted, field)

static const struct weft_wire_field submitted[] = {
    {NAMED("id", ID), AT(id), .flags = WEFT_WIRE_REQUIRED, .about = "The execution"},
    {NAMED("state", STATE), AT(state), .flags = WEFT_WIRE_REQUIRED, .about = "Its state"},
    {NAMED("duplicate", BOOL), AT(duplicate), .about = "It was there already, by its key"},
};
const struct weft_wire_type weft_wire_submitted = {
    .name = "Submitted",
    .about = "What a spec became.",
    .field = submitted,
    .count = WEFT_LEN(submitted),
    .size = sizeof(struct weft_submitted),
    .answer = true,
};
#undef AT
