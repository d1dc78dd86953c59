/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_POLICY_H
#define WEFT_CORE_POLICY_H

/*
 * Policies: attempts, backoff, timeouts and retention of an execution; and what they decide after a
 * failed or lost attempt: another attempt, and when, or the end. Pure.
 *
 * A policy comes from a C struct (zero = default) or from JSON (absent = default). Both resolve to
 * struct weft_rules. The store interns the canonical JSON text of the rules: equal policies have
 * equal texts.
 */

#include "base/json.h"
#include "core/state.h"
#include "weft/weft.h"

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
/*
 * From the JSON of the API. WEFT_UNKNOWN_FIELD and WEFT_INVALID_VALUE name the field. Lenient, for
 * a server's answer: unknown fields are ignored.
 */
WEFT_MUST_CHECK enum weft_rc weft_policy_read(const struct weft_json *value,
                                              struct weft_arena *arena, bool lenient,
                                              struct weft_policy *ret_policy, struct weft_err *err);
#define weft_policy_parse(value, arena, ret_policy, err)                                           \
    weft_policy_read(value, arena, false, ret_policy, err)
#define weft_policy_parse_answer(value, arena, ret_policy, err)                                    \
    weft_policy_read(value, arena, true, ret_policy, err)
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

/* ---- Retries --------------------------------------------------------------------------------- */

struct weft_fault_report {
    enum weft_ended how;     /* FAILED or TIMED_OUT */
    const char *error_class; /* looked up in no_retry */
    bool permanent;
    int64_t retry_after_ms; /* beats the backoff; 0: not given; -1: at once */
    weft_usec now_us;
    uint64_t random; /* decides the jitter */
};

/*
 * The event for this failure: RETRY with its due time, RETRY_NOW, or FAIL. no_retry beats a given
 * retry_after, and so does running out of attempts.
 */
struct weft_event weft_retry_decide(const struct weft_rules *rules, const struct weft_live *live,
                                    const struct weft_fault_report *report);

/*
 * The wait before attempt `n + 1` when `n` attempts have failed. With jitter it is drawn uniformly
 * between 80 % and 120 % of that, and max_us is not exceeded either way.
 */
weft_usec weft_retry_backoff(const struct weft_rules *rules, int32_t n, uint64_t random);

/* The retries of an execution, for readers. */
struct weft_retry_view {
    int32_t used; /* attempts since the last replay, running or ended by the worker or a timeout */
    int32_t left; /* attempts that may still begin; 0 when ended */
    weft_usec next_us; /* when a waiting retry is due; 0: none is waiting */
    enum weft_not_retried not_retried;
};

/* The columns of a row of `live` or `outcome` that the view depends on. */
struct weft_retry_facts {
    enum weft_state state;
    enum weft_ended ended; /* of an outcome */
    int32_t attempt, forgiven;
    weft_usec due_us;        /* delayed: when it becomes ready */
    const char *error_class; /* of an outcome; or NULL */
};

/*
 * An attempt is used while it runs, and when it has failed, timed out or succeeded. A lease that is
 * lost, revoked, released, cancelled or cut off by a deadline does not use its attempt: the next
 * lease has the same attempt number. Attempts before a replay do not count.
 */
struct weft_retry_view weft_retry_look(const struct weft_rules *rules,
                                       const struct weft_retry_facts *facts);

/*
 * True when the attempt's deadline has passed. If the lease has run out as well, it counts as a
 * timeout, whichever scanner comes first: the worker had its full time.
 */
bool weft_attempt_overdue(const struct weft_live *live, weft_usec now_us);

/*
 * The event for a lease that ran out: LOSE, or FAIL with how = LOST once max_lost is exceeded (a
 * poison pill). A lease that ran out before forgive_us was lost while no server accepted renewals:
 * that says nothing about the work, so it is not counted and never ends the execution.
 */
struct weft_event weft_lost_decide(const struct weft_rules *rules, const struct weft_live *live,
                                   weft_usec forgive_us);

#endif
