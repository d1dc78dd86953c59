/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_GRAPH_H
#define WEFT_CORE_GRAPH_H

/*
 * The graph of a flow: names become numbers, and everything that could be wrong with a graph is
 * found before anything is written. Nodes come after others by name; edges never leave the flow.
 * Time and memory follow nodes plus edges; nothing recurses.
 */

#include "weft/weft.h"

struct weft_arena;

/* What is submitted. To grow a flow, `known` are the names that its nodes refer to outside. */
struct weft_graph_input {
    const struct weft_node *node;
    size_t count;
    const char *const *known; /* nodes that are there already */
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
    size_t blamed; /* when it could not be built: 1 + the node that is to blame; 0: none alone */
};

/*
 * WEFT_INVALID_VALUE names what is wrong: a bad or second name, an unknown upstream, one named
 * twice, a node after itself, a quorum that cannot be, a cycle (told whole when it is short);
 * WEFT_TOO_LARGE: more nodes or edges than a flow may have. Of the graph only `blamed` is set then.
 */
WEFT_MUST_CHECK enum weft_rc weft_graph_build(const struct weft_graph_input *input,
                                              struct weft_arena *arena,
                                              struct weft_graph *ret_graph, struct weft_err *err);

/*
 * Adds a node to the fingerprint of a flow, which begins as zeros: its name, what it comes after,
 * its join, and the fingerprint of its spec. Equal flows have equal ones.
 */
void weft_graph_fingerprint(const struct weft_node *node, const uint8_t spec[32],
                            uint8_t fingerprint[32]);

struct weft_names_outside {
    const char **name; /* in the arena; each once, in the order of their first mention */
    size_t count;
};
/* The names that nodes come after and that are not among them: to be looked up by who grows. */
struct weft_names_outside weft_graph_outside(const struct weft_node *node, size_t count,
                                             struct weft_arena *arena);

#endif
