/* SPDX-License-Identifier: Apache-2.0 */

/* Messages about tokens. The secret is in one of them, the answer to create and rotate. */

#include "wire/type.h"

#include "base/limits.h"

#define NAMED(name, kind) WEFT_WIRE_NAMED(name, kind)

#define AT(field) .at = offsetof(struct weft_token_spec, field)

static const struct weft_wire_field spec[] = {
    {NAMED("name", TEXT), AT(name), .flags = WEFT_WIRE_REQUIRED, .about = "Whose it is"},
    {NAMED("scopes", TEXTS), AT(scopes), .count = offsetof(struct weft_token_spec, scope_count),
     .flags = WEFT_WIRE_REQUIRED, .max = 4,
     .about = "What it may do: read, submit, work, and admin, which means all of them"},
    {NAMED("namespace", TEXT), AT(ns),
     .about = "The only namespace that it is good for; absent: every one, or that of the token "
              "that the request is made with"},
    {NAMED("expires_ms", I64), AT(expires_ms), .flags = WEFT_WIRE_CHECKED, .min = 1,
     .max = WEFT_DELAY_MAX_MS, .rival = "expires_at", .about = "How long it is good, from now on"},
    {NAMED("expires_at", MOMENT), AT(expires_us), .rival = "expires_ms",
     .about = "Until when it is good; neither of the two: for ever"},
};
const struct weft_wire_type weft_wire_token_spec = {WEFT_WIRE_FIELDS(struct weft_token_spec, spec),
                                                    .name = "TokenSpec",
                                                    .about = "A token to be made."};
#undef AT

#define AT(field) .at = offsetof(struct weft_token_rotation, field)

static const struct weft_wire_field rotation[] = {
    {NAMED("grace_ms", AT_ONCE), AT(grace_ms), .flags = WEFT_WIRE_CHECKED, .max = WEFT_DELAY_MAX_MS,
     .about = "How long the secret that it had stays good; absent: no longer, but a minute for the "
              "token that the request is made with"},
    {NAMED("expires_ms", I64), AT(expires_ms), .flags = WEFT_WIRE_CHECKED, .min = 1,
     .max = WEFT_DELAY_MAX_MS, .rival = "expires_at", .about = "How long it is good, from now on"},
    {NAMED("expires_at", MOMENT), AT(expires_us), .rival = "expires_ms",
     .about = "Until when it is good; neither of the two: as before"},
};
const struct weft_wire_type weft_wire_token_rotation = {
    WEFT_WIRE_FIELDS(struct weft_token_rotation, rotation), .name = "TokenRotation",
    .about = "Gives a token another secret."};
#undef AT

#define AT(field) .at = offsetof(struct weft_token, field)

#define SHOWN_ROWS                                                                                 \
    {NAMED("id", I32), AT(id),           .flags = WEFT_WIRE_REQUIRED,                              \
     .min = 1,         .max = INT32_MAX, .about = "By which it is rotated and revoked"},           \
        {NAMED("name", TEXT), AT(name), .about = "Whose it is"},                                   \
        {NAMED("scopes", TEXTS), AT(scopes), .count = offsetof(struct weft_token, scope_count),    \
         .about = "What it may do"},                                                               \
        {NAMED("namespace", TEXT), AT(ns), .about = "Where it is good; null: everywhere"},         \
        {NAMED("created_at", MOMENT), AT(created_us), .about = "When it was made"},                \
        {NAMED("expires_at", MOMENT), AT(expires_us), .about = "Until when it is good"},           \
        {NAMED("last_used_at", MOMENT), AT(last_used_us),                                          \
         .about = "When it was last used, to about a minute; null: never"},                        \
        {NAMED("rotated_at", MOMENT), AT(rotated_us), .about = "When it got its present secret"},  \
    {                                                                                              \
        NAMED("old_expires_at", MOMENT), AT(old_expires_us),                                       \
            .about = "Until when the secret before that is good; null: it is not"                  \
    }

static const struct weft_wire_field shown[] = {SHOWN_ROWS};
const struct weft_wire_type weft_wire_token = {
    WEFT_WIRE_FIELDS(struct weft_token, shown), .name = "Token",
    .about = "A token, without its secret.", .answer = true};

static const struct weft_wire_field made[] = {
    SHOWN_ROWS,
    {NAMED("token", TEXT), AT(token), .flags = WEFT_WIRE_REQUIRED,
     .about = "What requests send as their bearer token; it is told this once"},
};
const struct weft_wire_type weft_wire_token_made = {
    WEFT_WIRE_FIELDS(struct weft_token, made), .name = "TokenMade",
    .about = "A token with a secret that was just made.", .answer = true};
#undef AT
