/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_CASCADE_READ_H
#define WEFT_ENGINE_FLOW_CASCADE_READ_H

/*
 * A hop of the cascade: the rows it read (cascade_read.c) and its decisions (cascade.c). All memory
 * is in the arena of its transaction.
 */

#include "base/base.h"
#include "base/map.h"
#include "core/graph.h"
#include "core/stored.h"
#include "engine/job/change.h"

struct weft_tx;

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

/* A node that a hop handles: its join, with the changes of the hop. */
struct weft_hop_join {
    struct weft_id id;
    struct weft_flow_held *flow;
    struct weft_join_state join;
    enum weft_fired fired;
    bool let_run;
    weft_usec delay_us, run_at_us;
    int again;       /* how often the flow had been cancelled when the node was replayed; or -1 */
    bool fires;      /* in this hop */
    bool comes_back; /* it was skipped and is blocked again */
};

struct weft_hop_edge {
    struct weft_id upstream, downstream;
    enum weft_edge_state state;
};

/* A node that becomes, or ceases to be, a sink that did not succeed. */
struct weft_hop_mark {
    struct weft_id id;
    bool bad;
};

/* A join that has not fired and whose member has ended: it needs no upstream any more. */
struct weft_hop_dead {
    struct weft_id id, flow;
};

/* The position of a hop in a completion that is not finished. */
struct weft_hop_cut {
    int64_t seq;
    struct weft_id cursor;
};
enum { WEFT_HOP_CUTS = 2 }; /* one of edges and one of roots */

struct weft_hop {
    struct weft_tx *tx;
    struct weft_flows_held held;
    bool *again;                  /* per flow: its completions stay for another hop */
    bool *alive;                  /* per flow: a node began, so the flow is not over */
    int64_t *cancelled;           /* per flow: nodes cancelled because the flow is */
    struct weft_map joints;       /* id -> joint */
    struct weft_hop_join **joint; /* in the order they were met */
    size_t joint_count, joint_room;
    struct weft_hop_edge *edge;
    size_t edge_count;
    struct weft_hop_mark *mark;
    size_t mark_count;
    struct weft_hop_dead *dead; /* joins whose member has ended */
    size_t dead_count;
    int64_t *done; /* numbers of finished completions */
    struct weft_id *done_flow;
    size_t done_count;
    struct weft_hop_cut cut[WEFT_HOP_CUTS]; /* completions that the next hop continues */
    size_t cut_count;
    bool rooted; /* the hop starts roots of one flow: enough for one transaction */
    struct weft_changes changes;
    struct weft_id *ended; /* flows */
    size_t ended_count;
};

/* Locks the flows that no other transaction has locked (SQLite: all), in the order of ids. */
WEFT_MUST_CHECK enum weft_rc weft_flows_lock(struct weft_tx *tx, const struct weft_id *flow,
                                             size_t count, struct weft_flows_held *ret_held,
                                             struct weft_err *err);
struct weft_flow_held *weft_flows_find(const struct weft_flows_held *held,
                                       const struct weft_id *flow);

/* Sorts ids and removes duplicates; returns how many are left. */
size_t weft_ids_sort(struct weft_id *id, size_t count);

/* Locks the flows that no other process has locked and reads what their completions refer to. */
WEFT_MUST_CHECK enum weft_rc weft_hop_look(struct weft_hop *hop, const struct weft_id *flow,
                                           size_t count, struct weft_err *err);

#endif
