/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_WHY_H
#define WEFT_CORE_WHY_H

/* Why an execution does not run: which of its circumstances keeps it, in the order in which they
 * would have to change. Pure. */

#include "core/limit.h"
#include "core/state.h"

/* X(name, word on the wire) */
#define WEFT_REASONS(X)                                                                            \
    X(ENDED, "ended")                                                                              \
    X(RUNNING, "running")                                                                          \
    X(SUSPENDED, "suspended")                                                                      \
    X(BLOCKED, "blocked")                                                                          \
    X(DELAYED, "delayed")                                                                          \
    X(GATE, "gate")                                                                                \
    X(RATE, "rate")                                                                                \
    X(LANE_PAUSED, "lane_paused")                                                                  \
    X(LANE_FULL, "lane_full")                                                                      \
    X(BUDGET, "budget")                                                                            \
    X(NO_EXECUTOR, "no_executor")                                                                  \
    X(NO_ENDPOINT, "no_endpoint")                                                                  \
    X(NO_SECRET, "no_secret")                                                                      \
    X(BREAKER, "breaker")                                                                          \
    X(ENDPOINT_FULL, "endpoint_full")                                                              \
    X(NO_WORKER, "no_worker")                                                                      \
    X(READY, "ready")

enum weft_reason {
#define X(name, word) WEFT_REASON_##name,
    WEFT_REASONS(X)
#undef X
        WEFT_REASON_COUNT
};
const char *weft_reason_word(enum weft_reason reason);

struct weft_why_facts {
    enum weft_state state;
    bool lane_paused;
    int64_t lane_max, lane_running;  /* max 0: no limit */
    enum weft_limit_kind lane_limit; /* what its lane lacks */
    bool budget_full;                /* it does not fit into one of its budgets */
    enum weft_reason carried;        /* of a kind that weft carries out itself: NO_EXECUTOR, */
                                     /* NO_ENDPOINT, NO_SECRET, BREAKER, ENDPOINT_FULL or READY; */
                                     /* of another kind ENDED, which is 0 */
    size_t workers;                  /* seen lately that serve its lane and capabilities */
    enum weft_limit_kind gate_limit; /* of a held one: what its gate lacks */
};
enum weft_reason weft_why_decide(const struct weft_why_facts *facts);

#endif
