/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_FLOW_H
#define WEFT_ENGINE_FLOW_FLOW_H

/*
 * Flows, inside the engine. The row of a flow is the mutex of its graph: a transaction that
 * resolves edges, adds nodes, replays members or cancels locks it first, before any row of `live`,
 * and reads edges, nodes and outcomes in later statements. The end of a member never locks it; it
 * only leaves a completion in the outbox (live_end), which is a hint to look.
 */

#include "core/join.h"
#include "core/stored.h"
#include "engine/engine.h"

enum {
    WEFT_FLOW_CHUNK = 1000,      /* edges, or members, that one transaction touches */
    WEFT_FLOW_CHUNK_BRIEF = 125, /* the same while others wait for the only writer */
};

/* Rows for one transaction; the number does not change while the transaction runs. */
static inline size_t weft_flow_chunk(const struct weft_tx *tx)
{
    return tx->brief ? WEFT_FLOW_CHUNK_BRIEF : WEFT_FLOW_CHUNK;
}

/* A locked flow. */
struct weft_flow_held {
    struct weft_id id;
    int state;
    int cancel;         /* 0: it is not cancelled */
    int cancels;        /* how often it was */
    const char *reason; /* why it is; may be NULL */
};

struct weft_flows_held {
    struct weft_flow_held *item; /* by id */
    size_t count;
};

/* Locks the flows that no other transaction has locked (SQLite: all), in the order of ids. */
WEFT_MUST_CHECK enum weft_rc weft_flows_lock(struct weft_tx *tx, const struct weft_id *flow,
                                             size_t count, struct weft_flows_held *ret_held,
                                             struct weft_err *err);
struct weft_flow_held *weft_flows_find(const struct weft_flows_held *held,
                                       const struct weft_id *flow);

/* The work of hops that is due in a locked flow. */
struct weft_flow_due {
    bool pending; /* completions, or groups of siblings to dispatch */
    bool anew;    /* including a replay: counts of joins may show the state before it */
    bool living;  /* a member lives */
};

/* A flow that an API call has locked. */
struct weft_flow_row {
    struct weft_id id;
    int32_t ns;
    int state;
    int32_t revision;
    int64_t nodes;
    enum weft_flow_cancel cancel;
    const char *reason;
    bool backlog, deleted;
    uint64_t cancelled; /* members cancelled because the flow was */
    struct weft_flow_due due;
};
/*
 * Locks flows in the order of their ids (flow_hold.c), waiting for other holders: in a server
 * briefly, WEFT_CAUSE_FLOW_LOCKED. Also reads the work due in them, as of the lock.
 */
struct weft_flow_rows {
    struct weft_rows flow; /* FLOW_HOLD_OUT_... */
    struct weft_rows due;  /* FLOW_DUE_OUT_... */
};
WEFT_MUST_CHECK enum weft_rc weft_flows_hold(struct weft_tx *tx, const struct weft_id *flow,
                                             size_t count, struct weft_flow_rows *ret_rows,
                                             struct weft_err *err);
/* The same for one flow of any namespace; *ret_row stays as it is when there is none. */
WEFT_MUST_CHECK enum weft_rc weft_flow_hold_row(struct weft_tx *tx, const struct weft_id *flow,
                                                struct weft_flow_row *ret_row, bool *ret_found,
                                                struct weft_err *err);
/*
 * Locks a flow, waiting for another holder as weft_flows_hold() does. WEFT_NOT_FOUND when the
 * namespace has no such flow, or it is not fully written yet, or being removed.
 */
WEFT_MUST_CHECK enum weft_rc weft_flow_hold(struct weft_tx *tx, const char *ns,
                                            const struct weft_id *flow,
                                            struct weft_flow_row *ret_row, struct weft_err *err);

/*
 * For calls that depend on the state of a flow (flow_settle.c). Under its lock: whether the call
 * must end its transaction without a change, run weft_flow_settle() and start over. `round` counts
 * these rounds from 0.
 */
bool weft_flow_unsettled(const struct weft_flow_due *due, unsigned round);
/* Runs some of the hops that are due. WEFT_BUSY after too many rounds. */
WEFT_MUST_CHECK enum weft_rc weft_flow_settle(struct weft_engine *engine,
                                              const struct weft_id *flow, size_t count,
                                              unsigned round, struct weft_err *err);

/*
 * WEFT_TOO_LARGE when a flow with so many nodes, new ones included, would have more edges than a
 * submission may have. Under its lock, which every call that writes edges of it takes.
 */
WEFT_MUST_CHECK enum weft_rc weft_flow_edges_fit(struct weft_tx *tx, const struct weft_id *flow,
                                                 int64_t nodes, size_t added, struct weft_err *err);

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
    bool unsettled; /* hops are due in one of the flows: nothing may be done (flow_settle.c) */
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

struct weft_dispatched {
    uint64_t dispatched; /* groups that are drained */
    uint64_t cancelled;  /* executions */
    uint64_t skipped_locked;
};

struct weft_cascaded {
    uint64_t hops, completions, edges;
    struct weft_dispatched groups;
};
/*
 * Runs the cascade of flows until they have no completions left, or another process holds the lock
 * and will handle them. Adds to *ret_cascaded.
 */
WEFT_MUST_CHECK enum weft_rc weft_cascade(struct weft_engine *engine, const struct weft_id *flow,
                                          size_t count, struct weft_cascaded *ret_cascaded,
                                          struct weft_err *err);

/* The same, in at most so many hops; flows with work left are reported to the listener. */
WEFT_MUST_CHECK enum weft_rc
weft_cascade_some(struct weft_engine *engine, const struct weft_id *flow, size_t count,
                  uint64_t hops_most, struct weft_cascaded *ret_cascaded, struct weft_err *err);

/*
 * Cancels the siblings that the groups of flows ask for. Groups of a flow in which a replay is
 * still propagating are left to its cascade. Adds to *ret_done.
 */
WEFT_MUST_CHECK enum weft_rc weft_siblings_cancel(struct weft_engine *engine,
                                                  const struct weft_id *flow, size_t count,
                                                  struct weft_dispatched *ret_done,
                                                  struct weft_err *err);

/* Sorts ids and removes duplicates; returns how many are left. */
size_t weft_ids_sort(struct weft_id *id, size_t count);

#endif
