/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_JOIN_H
#define WEFT_CORE_JOIN_H

/*
 * Joins: when an execution that comes after others may begin.
 *
 * A join counts the ends of its upstreams. An upstream that failed, expired, was cancelled or was
 * skipped counts as failed. As soon as enough have succeeded the join is satisfied; as soon as
 * enough can no longer succeed it is impossible; until then it is pending. A verdict never turns
 * into the other one while counts only grow, so it does not matter in which order ends arrive.
 */

#include "core/state.h"
#include "weft/weft.h"

struct weft_join_state {
    enum weft_join join;
    uint32_t k;                        /* of a quorum */
    uint32_t total, succeeded, failed; /* upstreams in all, and those that ended so */
};

enum weft_verdict_of_join {
    WEFT_JOIN_PENDING,
    WEFT_JOIN_SATISFIED,
    WEFT_JOIN_IMPOSSIBLE,
};

/* A join of nothing is satisfied: a node without upstreams begins at once. */
enum weft_verdict_of_join weft_join_judge(const struct weft_join_state *join);

/* How an edge stands. */
enum weft_edge_state {
    WEFT_EDGE_PENDING,
    WEFT_EDGE_SUCCEEDED,
    WEFT_EDGE_FAILED,
};
/* What the state of its upstream makes of an edge. */
enum weft_edge_state weft_edge_of(enum weft_state upstream);

/* How a flow whose members have all ended came out. bad: one of its sinks did not succeed. */
enum weft_flow_state weft_flow_judge(bool cancelled, bool bad);

#endif
