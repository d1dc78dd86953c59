/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_CASCADE_READ_H
#define WEFT_ENGINE_FLOW_CASCADE_READ_H

/*
 * A hop of the cascade: the rows it read (cascade_read.c) and its decisions (cascade.c). All memory
 * is in the arena of its transaction.
 */

#include "base/map.h"
#include "core/graph.h"
#include "core/stored.h"
#include "engine/job/change.h"
#include "engine/tx/tx.h"

enum {
    WEFT_FLOW_CHUNK = 1000,      /* edges, or members, that one transaction touches */
    WEFT_FLOW_CHUNK_BRIEF = 125, /* the same while others wait for the only writer */
};

/* Rows for one transaction; the number does not change while the transaction runs. */
static inline size_t weft_flow_chunk(const struct weft_tx *tx)
{
    return tx->brief ? WEFT_FLOW_CHUNK_BRIEF : WEFT_FLOW_CHUNK;
}

/* Locked flows. cancel 0: the flow is not cancelled; cancels: how often it was. */
struct weft_flows_held {
    const struct weft_flow_lock_out *item; /* by id */
    size_t count;
};

/* A node that a hop handles: its join, with the changes of the hop. */
struct weft_hop_join {
    struct weft_id id;
    const struct weft_flow_lock_out *flow;
    struct weft_join_state join;
    enum weft_fired fired;
    bool let_run;
    weft_usec delay_us, run_at_us;
    int again;       /* how often the flow had been cancelled when the node was replayed; or -1 */
    bool fires;      /* in this hop */
    bool comes_back; /* it was skipped and is blocked again */
};

/* A join that has not fired and whose member has ended: it needs no upstream any more. */
struct weft_hop_dead {
    struct weft_id id, flow;
};

struct weft_hop {
    struct weft_tx *tx;
    struct weft_flows_held held;
    bool *again;                  /* per flow: its completions stay for another hop */
    bool *alive;                  /* per flow: a node began, so the flow is not over */
    int64_t *cancelled;           /* per flow: nodes cancelled because the flow is */
    struct weft_map joints;       /* id -> joint */
    struct weft_hop_join **joint; /* in the order they were met */
    size_t joint_count, joint_room;
    struct weft_call edges; /* edge_put */
    struct weft_call marks; /* node_mark: nodes that become, or cease to be, sinks that failed */
    struct weft_call cuts;  /* completion_cursor: completions that the next hop continues */
    struct weft_hop_dead *dead; /* joins whose member has ended */
    size_t dead_count;
    int64_t *done; /* numbers of finished completions */
    struct weft_id *done_flow;
    size_t done_count;
    bool rooted; /* the hop starts roots of one flow: enough for one transaction */
    struct weft_changes changes;
    struct weft_id *ended; /* flows */
    size_t ended_count;
};

/* Locks the flows that no other transaction has locked (SQLite: all), in the order of ids. */
WEFT_MUST_CHECK enum weft_rc weft_flows_lock(struct weft_tx *tx, const struct weft_id *flow,
                                             size_t count, struct weft_flows_held *ret_held,
                                             struct weft_err *err);
const struct weft_flow_lock_out *weft_flows_find(const struct weft_flows_held *held,
                                                 const struct weft_id *flow);

/* Locks the flows that no other process has locked and reads what their completions refer to. */
WEFT_MUST_CHECK enum weft_rc weft_hop_look(struct weft_hop *hop, const struct weft_id *flow,
                                           size_t count, struct weft_err *err);

#endif
