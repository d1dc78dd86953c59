/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_LIMITS_H
#define WEFT_LIMITS_H

/*
 * Limits: how many executions of a gate may run at a time, and how often they may start. weft.h
 * includes this file and says how its calls answer and fail.
 *
 * A spec may name a gate, for example "customer:42". The part before the first ':' is its class.
 * Settings belong to a class, and then hold for each of its gates, or to one gate, and then replace
 * those of its class. An execution that its gate does not admit yet is `held`; of those that wait
 * the highest priority goes first, and then the oldest. A gate without settings admits all.
 */

#include "weft/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft;       /* opaque */
struct weft_arena; /* opaque */

/* At most `limit` starts in any span of `per_ms`; may be up to 2 % fewer. */
struct weft_window {
    int64_t limit; /* 0: none */
    int64_t per_ms;
};

/* `limit` starts in each `per_ms` on average, and up to `burst` at once. */
struct weft_rate {
    int64_t limit; /* 0: none */
    int64_t per_ms;
    int64_t burst; /* 0: as many as limit */
};

struct weft_limits {
    int64_t max_running; /* ready and running ones at a time; 0: no limit */
    struct weft_window window;
    struct weft_rate rate;
};

/* The settings of a class or gate. In answers also what holds now, for a class over all its gates.
 */
struct weft_gate {
    const char *name;
    struct weft_limits limits;
    uint64_t running, ready, held;
    weft_usec next_us; /* when time alone admits the next of a gate; 0: it does not */
};

/* Replaces all settings of a class or gate. Holds at once for executions that wait. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc
weft_gate_put(struct weft *weft, const struct weft_gate *gate, struct weft_err *err);
/* Removes them: for a gate those of its class hold again. WEFT_NOT_FOUND: there are none. */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_gate_remove(struct weft *weft, const char *name,
                                                          struct weft_err *err);
/* ret_gate->name is `name`. WEFT_NOT_FOUND: it has no settings and no execution that is not over.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_gate_get(struct weft *weft, const char *name,
                                                       struct weft_gate *ret_gate,
                                                       struct weft_err *err);

struct weft_gates {
    const struct weft_gate *item; /* by name */
    size_t count;
    const char *next;         /* cursor of the next page; NULL: this is the last */
    struct weft_arena *arena; /* owned */
};
/* The classes and gates that have settings. prefix NULL: all; limit 0: 50; after NULL: the first.
 */
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_gates(struct weft *weft, const char *prefix,
                                                    uint32_t limit, const char *after,
                                                    struct weft_gates *ret_gates,
                                                    struct weft_err *err);
WEFT_EXPORT void weft_gates_free(struct weft_gates *gates);

/* ---- Why is it not running? ------------------------------------------------------------------ */

/* Why an execution does not run, or what it does. */
struct weft_why {
    struct weft_id id;
    enum weft_state state;
    /* lane_paused, lane_full, no_worker, ready (all of a ready one), gate, rate (of a held one),
     * delayed, blocked, suspended, running or ended. */
    const char *why;
    const char *text;         /* one sentence that says what would make it run */
    const char *detail;       /* a JSON object with the same as data */
    struct weft_arena *arena; /* owned */
};
WEFT_EXPORT WEFT_MUST_CHECK enum weft_rc weft_why(struct weft *weft, const struct weft_id *id,
                                                  struct weft_why *ret_why, struct weft_err *err);
WEFT_EXPORT void weft_why_free(struct weft_why *why);

#ifdef __cplusplus
}
#endif

#endif
