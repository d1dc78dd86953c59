/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_FLOW_REPLAY_H
#define WEFT_ENGINE_FLOW_FLOW_REPLAY_H

/* Replaying members of flows: which may live again, and which wait. */

#include "core/graph.h"

struct weft_tx;

/* Members of flows among executions that are to be replayed. */
struct weft_member {
    struct weft_id id, flow;
    bool seen;   /* its flow is there for every caller */
    int cancels; /* how often its flow was cancelled */
    /* The caller's to set before weft_members_judge(). */
    bool wanted; /* its outcome is locked, and it may be replayed */
    bool force;  /* also if its join is impossible */
    /* The decision: */
    bool replayed;        /* false although wanted: its join is impossible */
    bool waits;           /* replayed, but blocked, because its join is open */
    const char *upstream; /* an upstream that makes the join impossible, and its end */
    enum weft_state upstream_state;
    struct weft_join_state join; /* without the upstreams that are replayed with it */
};

struct weft_replay_edge {
    uint32_t from, to; /* members */
    enum weft_edge_state state;
    bool opens; /* both ends are replayed */
};

struct weft_members {
    struct weft_member *item; /* by id */
    size_t count;
    bool unsettled; /* hops are due in one of the flows: nothing may be done (flow_hold.c) */
    struct weft_replay_edge *edge; /* that were resolved, by `from` */
    size_t edges;
};

/*
 * Locks the flows of the executions that are members of one, waiting for other holders. `round` is
 * as for weft_flow_unsettled().
 */
WEFT_MUST_CHECK enum weft_rc weft_members_hold(struct weft_tx *tx, const struct weft_id *id,
                                               size_t count, unsigned round,
                                               struct weft_members *ret_members,
                                               struct weft_err *err);

/* Decides which of the wanted members are replayed, and which of these are blocked. */
WEFT_MUST_CHECK enum weft_rc weft_members_judge(struct weft_tx *tx, struct weft_members *members,
                                                struct weft_err *err);
struct weft_member *weft_members_find(const struct weft_members *members, const struct weft_id *id);

/* Writes the joins of replayed members. After the commit their flows need a cascade. */
WEFT_MUST_CHECK enum weft_rc
weft_members_replayed(struct weft_tx *tx, const struct weft_members *members, struct weft_err *err);

#endif
