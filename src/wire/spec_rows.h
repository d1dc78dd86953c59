/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_WIRE_SPEC_ROWS_H
#define WEFT_WIRE_SPEC_ROWS_H

/*
 * The rows of a struct weft_spec that lies `base` bytes into the struct of the message: a spec
 * alone and a node of a flow are the same but for the key, which a node does not have.
 */

#include "base/limits.h"
#include "wire/type.h"

/* clang-format off */
#define WEFT_WIRE_SPEC_AT(base, field)    .at = (base) + offsetof(struct weft_spec, field)
#define WEFT_WIRE_SPEC_COUNT(base, field) .count = (base) + offsetof(struct weft_spec, field)
#define WEFT_WIRE_SPEC_BYTES(base)                                                                 \
    WEFT_WIRE_SPEC_AT(base, payload), WEFT_WIRE_SPEC_COUNT(base, payload_size),                    \
    .type = (base) + offsetof(struct weft_spec, content_type)

#define WEFT_WIRE_SPEC_ROWS(base)                                                                  \
    {WEFT_WIRE_NAMED("lane", TEXT), WEFT_WIRE_SPEC_AT(base, lane),                                 \
     .about = "The lane it waits in. Default: default"},                                           \
    {WEFT_WIRE_NAMED("kind", TEXT), WEFT_WIRE_SPEC_AT(base, kind), .flags = WEFT_WIRE_REQUIRED,    \
     .about = "What is to be done; workers claim by it"},                                          \
    {WEFT_WIRE_NAMED("payload", JSON), WEFT_WIRE_SPEC_BYTES(base),                                 \
     .about = "Any JSON; it comes back byte for byte"},                                            \
    {WEFT_WIRE_NAMED("payload_base64", BASE64), WEFT_WIRE_SPEC_BYTES(base), .rival = "payload",    \
     .about = "A payload that is not JSON"},                                                       \
    {WEFT_WIRE_NAMED("content_type", CONTENT_TYPE), WEFT_WIRE_SPEC_AT(base, content_type),         \
     .about = "Of the payload. Default: application/json, or application/octet-stream with "       \
              "payload_base64"},                                                                   \
    {WEFT_WIRE_NAMED("priority", I32), WEFT_WIRE_SPEC_AT(base, priority), .min = INT16_MIN,        \
     .max = INT16_MAX, .about = "Higher ones are claimed first. Default: 0"},                      \
    {WEFT_WIRE_NAMED("delay_ms", I64), WEFT_WIRE_SPEC_AT(base, delay_ms),                          \
     .max = WEFT_DELAY_MAX_MS,                                                                     \
     .about = "How long from now it may not be claimed. Default: 0"},                              \
    {WEFT_WIRE_NAMED("run_at", MOMENT), WEFT_WIRE_SPEC_AT(base, run_at_us), .rival = "delay_ms",   \
     .about = "When it may be claimed; in the past means now"},                                    \
    {WEFT_WIRE_NAMED("deadline_at", MOMENT), WEFT_WIRE_SPEC_AT(base, deadline_us),                 \
     .about = "When it must be over; expired after that"},                                         \
    {WEFT_WIRE_NAMED("capabilities", TEXTS), WEFT_WIRE_SPEC_AT(base, capabilities),                \
     WEFT_WIRE_SPEC_COUNT(base, capability_count),                                                 \
     .about = "What a worker must be able to do"},                                                 \
    {WEFT_WIRE_NAMED("tenant", TEXT), WEFT_WIRE_SPEC_AT(base, tenant),                             \
     .about = "Whom it is for; tenants share a lane fairly"},                                      \
    {WEFT_WIRE_NAMED("tags", TAGS), WEFT_WIRE_SPEC_AT(base, tags),                                 \
     WEFT_WIRE_SPEC_COUNT(base, tag_count), .about = "Free words to find it by"}

#define WEFT_WIRE_SPEC_POLICY(base)                                                                \
    {WEFT_WIRE_NAMED("policy", POLICY), WEFT_WIRE_SPEC_AT(base, policy),                           \
     .about = "Retries, timeouts and retention"}
/* clang-format on */

#endif
