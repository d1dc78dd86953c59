/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_JOIN_H
#define WEFT_CORE_JOIN_H

/*
 * Joins: when an execution with upstreams may begin. Pure.
 *
 * A join counts the ends of its upstreams. An upstream that failed, expired, was cancelled or was
 * skipped counts as failed. A join is satisfied as soon as enough upstreams have succeeded, and
 * impossible as soon as too few can still succeed; until then it is pending. While counts only
 * grow, a decided join stays as it is, so the order of the ends does not matter.
 */

#include "core/state.h"
#include "weft/weft.h"

struct weft_join_state {
    enum weft_join join;
    uint32_t k;                        /* of a quorum */
    uint32_t total, succeeded, failed; /* upstreams in all, and by their end */
};

enum weft_verdict_of_join {
    WEFT_JOIN_PENDING,
    WEFT_JOIN_SATISFIED,
    WEFT_JOIN_IMPOSSIBLE,
};

/* A join without upstreams is satisfied: the node begins at once. */
enum weft_verdict_of_join weft_join_judge(const struct weft_join_state *join);

enum weft_edge_state {
    WEFT_EDGE_PENDING,
    WEFT_EDGE_SUCCEEDED,
    WEFT_EDGE_FAILED,
};
/* The state of an edge by the state of its upstream. */
enum weft_edge_state weft_edge_of(enum weft_state upstream);

/* The final state of a flow whose members have all ended. bad: a sink did not succeed. */
enum weft_flow_state weft_flow_judge(bool cancelled, bool bad);

#endif
