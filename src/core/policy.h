/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_POLICY_H
#define WEFT_CORE_POLICY_H

/*
 * Policies: attempts, backoff, timeouts and retention of an execution. Pure.
 *
 * A policy comes from a C struct (zero = default) or from JSON (absent = default). Both resolve to
 * struct weft_rules. The store interns the canonical JSON text of the rules: equal policies have
 * equal texts.
 */

#include "base/json.h"
#include "weft/weft.h"

struct weft_arena;

/* A policy with every default filled in; initial_us 0 means at once, timeout_us 0 means none. */
struct weft_rules {
    int32_t max_attempts;
    enum weft_backoff backoff;
    weft_usec initial_us, max_us;
    double factor;
    bool jitter;
    weft_usec attempt_timeout_us;
    weft_usec lease_us;
    int32_t max_lost;
    weft_usec retention_us;      /* 0: not stated */
    const char *const *no_retry; /* sorted */
    size_t no_retry_count;
};

/* NULL means all defaults. WEFT_INVALID_VALUE names the field. Arrays are put in the arena. */
WEFT_MUST_CHECK enum weft_rc weft_policy_resolve(const struct weft_policy *policy,
                                                 struct weft_arena *arena,
                                                 struct weft_rules *ret_rules,
                                                 struct weft_err *err);
/* From the JSON of the API. WEFT_UNKNOWN_FIELD and WEFT_INVALID_VALUE name the field. */
WEFT_MUST_CHECK enum weft_rc weft_policy_parse(const struct weft_json *value,
                                               struct weft_arena *arena,
                                               struct weft_policy *ret_policy,
                                               struct weft_err *err);
/* The same from a server's answer: unknown fields are ignored. */
WEFT_MUST_CHECK enum weft_rc weft_policy_parse_answer(const struct weft_json *value,
                                                      struct weft_arena *arena,
                                                      struct weft_policy *ret_policy,
                                                      struct weft_err *err);
/* The policy that resolves to these rules, for readers. Borrows no_retry. */
struct weft_policy weft_policy_of(const struct weft_rules *rules);
/*
 * How long an outcome is kept: as the policy says, else as the lane says (0: nothing), else 7 days;
 * failed and expired executions, which people still have to look at, four times as long.
 */
weft_usec weft_policy_keeps(const struct weft_rules *rules, weft_usec lane_us,
                            enum weft_state state);
/* The canonical text, in the arena. Without retention_ms if the policy does not state it. */
const char *weft_policy_text(const struct weft_rules *rules, struct weft_arena *arena);

#endif
