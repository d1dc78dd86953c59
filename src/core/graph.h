/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_GRAPH_H
#define WEFT_CORE_GRAPH_H

/*
 * The graph of a flow and its joins. weft_graph_build() translates names of nodes into numbers and
 * finds every error of a graph before anything is written. A node names its upstreams; edges never
 * leave the flow. Time and memory are linear in nodes plus edges; no recursion. Results are in the
 * caller's arena. Pure.
 */

#include "core/state.h"
#include "weft/weft.h"

/* When a flow grows, `known` are the existing nodes that the new nodes name. */
struct weft_graph_input {
    const struct weft_node *node;
    size_t count;
    const char *const *known; /* existing nodes */
    size_t known_count;
};

/*
 * The upstreams of node i are upstream[first[i]] to upstream[first[i + 1] - 1]: numbers of nodes,
 * or count + number of a known one. All in the arena.
 */
struct weft_graph {
    uint32_t *first;
    uint32_t *upstream;
    size_t edges;
    size_t blamed; /* on failure: 1 + the node that is to blame; 0: no single one */
};

/*
 * WEFT_INVALID_VALUE: a bad or repeated name, an unknown or repeated upstream, a node after itself,
 * an impossible quorum, a cycle (the text lists its nodes if it is short). WEFT_TOO_LARGE: more
 * nodes or edges than a flow may have. On failure only `blamed` of the graph is set.
 */
WEFT_MUST_CHECK enum weft_rc weft_graph_build(const struct weft_graph_input *input,
                                              struct weft_arena *arena,
                                              struct weft_graph *ret_graph, struct weft_err *err);

/*
 * Adds a node to the fingerprint of a flow, which starts as zeros: its name, its upstreams, its
 * join and the fingerprint of its spec. Equal flows have equal fingerprints.
 */
void weft_graph_fingerprint(const struct weft_node *node, const uint8_t spec[32],
                            uint8_t fingerprint[32]);

struct weft_names_outside {
    const char **name; /* in the arena; each once, in the order of their first mention */
    size_t count;
};
/* The upstreams that are not among the nodes: a call that grows a flow looks them up. */
struct weft_names_outside weft_graph_outside(const struct weft_node *node, size_t count,
                                             struct weft_arena *arena);

/* ---- Joins ----------------------------------------------------------------------------------- */

/*
 * Joins: when an execution with upstreams may begin.
 *
 * A join counts the ends of its upstreams. An upstream that failed, expired, was cancelled or was
 * skipped counts as failed. A join is satisfied as soon as enough upstreams have succeeded, and
 * impossible as soon as too few can still succeed; until then it is pending. While counts only
 * grow, a decided join stays as it is, so the order of the ends does not matter.
 */
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
