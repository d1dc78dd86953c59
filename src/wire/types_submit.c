/* SPDX-License-Identifier: Apache-2.0 */

/* Submitting: the spec with its policy, and the answer. */

#include "base/limits.h"
#include "core/result.h"
#include "wire/spec_rows.h"

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
     .about = "The longest wait. Default: 3600000, or initial_ms where that is more"},
    {NAMED("jitter", UNLESS), AT(no_jitter),
     .about = "Wait a random time between 80 % and 120 % of the computed one, never more than "
              "max_ms. Default: true"},
};

const struct weft_wire_field weft_wire_policy[] = {
    {NAMED("max_attempts", I32), AT(max_attempts), .min = 1, .max = WEFT_ATTEMPTS_MAX,
     .about = "Attempts before it has failed. Default: 25"},
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
    {NAMED("retention_ms", I64), AT(retention_ms), .flags = WEFT_WIRE_OR_NULL, .min = 1,
     .max = WEFT_DELAY_MAX_MS,
     .about =
         "How long its outcome is kept; four times as long when it failed or expired. Default: "
         "as the lane says, else 604800000"},
};
const size_t weft_wire_policy_count = WEFT_LEN(weft_wire_policy);
#undef AT

/* ---- Spec ------------------------------------------------------------------------------------ */

static const struct weft_wire_field spec[] = {
    WEFT_WIRE_SPEC_ROWS(0),
    {NAMED("key", TEXT), .at = offsetof(struct weft_spec, key),
     .about = "Idempotency key: the same key submits once in its namespace"},
    WEFT_WIRE_SPEC_POLICY(0),
};
const struct weft_wire_type weft_wire_spec = {WEFT_WIRE_FIELDS(struct weft_spec, spec),
                                              .name = "Spec",
                                              .about = "What is to be carried out."};

#define AT(field) .at = offsetof(struct weft_submit_result, field)

static const struct weft_wire_field submitted[] = {
    {NAMED("id", ID), AT(id), .flags = WEFT_WIRE_REQUIRED, .about = "The execution"},
    {NAMED("state", STATE), AT(state), .flags = WEFT_WIRE_REQUIRED, .about = "Its state"},
    {NAMED("duplicate", BOOL), AT(duplicate), .about = "It was there already, by its key"},
};
const struct weft_wire_type weft_wire_submitted = {
    WEFT_WIRE_FIELDS(struct weft_submit_result, submitted), .name = "Submitted",
    .about = "What a spec became.", .answer = true};
#undef AT
