/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_DRAFT_H
#define WEFT_ENGINE_FLOW_DRAFT_H

/* Nodes to be written: of a new flow, or added to an existing one. In the caller's arena. */

#include "core/graph.h"
#include "engine/job/submit.h"
#include "engine/tx/commit_effects.h"

struct weft_draft {
    const struct weft_node *node;
    size_t count;
    const char *ns;
    int32_t ns_id;
    struct weft_id flow;
    struct weft_graph graph;        /* upstreams from `count` on are known[upstream - count] */
    struct weft_submission *member; /* one per node */
    const struct weft_id *known;    /* nodes that the flow has already; by the graph's numbers */
    size_t blamed;                  /* 1 + the node that could not be resolved; 0: none alone */
    const int16_t *model;           /* of each node, for the counts of a batch; NULL: none */
    bool hidden;                    /* every node is blocked: the flow is not visible yet */
};

/*
 * Checks the graph and every node, and resolves them, before anything is written. The error names
 * the node. Adds to the fingerprint when it is not NULL.
 */
WEFT_MUST_CHECK enum weft_rc weft_draft_resolve(struct weft_draft *draft,
                                                const struct weft_graph_input *input,
                                                weft_usec now_us, struct weft_arena *arena,
                                                uint8_t *fingerprint, struct weft_err *err);
/* Gives the members ids that follow each other, behind `last`: they share its partition. */
void weft_draft_mint(struct weft_draft *draft, const struct weft_id *last);
/* Namespaces, queues and policies of all members, and their places in the order. */
WEFT_MUST_CHECK enum weft_rc weft_draft_place(struct weft_engine *engine, struct weft_draft *draft,
                                              struct weft_err *err);
/* Reports ready nodes and due times, for the effects of the commit. */
void weft_draft_news(const struct weft_draft *draft, struct weft_commit_effects *news);

struct weft_node_ref {
    const struct weft_draft *draft;
    size_t at;
};

struct weft_edge_ref {
    const struct weft_id *upstream, *downstream;
};

/* The rows of drafts, all nodes before all edges: a store may look up the nodes of an edge. */
struct weft_draft_rows {
    struct weft_node_ref *node;
    size_t nodes;
    struct weft_edge_ref *edge;
    size_t edges;
};
struct weft_draft_rows weft_draft_list(const struct weft_draft *const *draft, size_t count,
                                       struct weft_arena *arena);

/* Nodes, or edges, that one statement writes. */
struct weft_draft_part {
    const struct weft_node_ref *node; /* NULL: edges */
    const struct weft_edge_ref *edge;
    size_t count, at; /* behind so many nodes and edges */
};
/* Moves to the next part, of at most `most` rows (0: all that fit); false behind the last one. */
bool weft_draft_next(const struct weft_draft_rows *rows, size_t most, struct weft_draft_part *part);
WEFT_MUST_CHECK enum weft_rc weft_draft_put_part(struct weft_tx *tx,
                                                 const struct weft_draft_part *part,
                                                 weft_usec now_us, struct weft_err *err);
/* All of them, statement by statement. */
WEFT_MUST_CHECK enum weft_rc weft_draft_put(struct weft_tx *tx, const struct weft_draft_rows *rows,
                                            weft_usec now_us, struct weft_err *err);

#endif
