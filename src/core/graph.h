/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_GRAPH_H
#define WEFT_CORE_GRAPH_H

/*
 * The graph of a flow: translates names of nodes into numbers and finds every error of a graph
 * before anything is written. A node names its upstreams; edges never leave the flow. Time and
 * memory are linear in nodes plus edges; no recursion. Results are in the caller's arena. Pure.
 */

#include "weft/weft.h"

struct weft_arena;

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

#endif
