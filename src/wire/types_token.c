/* SPDX-License-Identifier: Apache-2.0 */

/* Messages about tokens. The secret is in one of them, the answer to create and rotate. */

#include "wire/rows.h"

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
    ROW("token", TEXT, token, "What requests send as their bearer token; it is told this once",
        REQUIRED),
};
ANSWER(token_made, "TokenMade", "A token with a secret that was just made.");
#undef OF
