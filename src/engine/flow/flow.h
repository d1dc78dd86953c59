/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_FLOW_FLOW_H
#define WEFT_ENGINE_FLOW_FLOW_H

/* The calls on flows: submit, grow, cancel, read. */

#include "core/result.h"
#include "engine/engine.h"

/*
 * Submits flows whole. Each answer's `node`, when not NULL, has room for the nodes of its spec. A
 * flow of up to a few ten thousand rows is one transaction (small ones share it); a larger one is
 * written in parts and no reader sees it before it is whole. Errors of answers are in the arena.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_submit(struct weft_engine *engine, const char *ns,
                                                     const struct weft_flow_spec *spec,
                                                     size_t count, struct weft_arena *arena,
                                                     struct weft_flow_result *ret_answer,
                                                     struct weft_err *err);

/* Adds nodes to a flow that is open; `ns` is required. ret_answer->node, when not NULL, has room
 * for the nodes. */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_grow(struct weft_engine *engine,
                                                   const struct weft_flow_growth *growth,
                                                   struct weft_flow_result *ret_answer,
                                                   struct weft_err *err);

/*
 * Adds edges between nodes of a flow that is open; `ns` is required. WEFT_CONFLICT: another
 * revision, a node that is not blocked any more, an edge that is there; WEFT_INVALID_VALUE: a
 * circle, or no such node.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_edges(struct weft_engine *engine,
                                                    const struct weft_flow_edging *edging,
                                                    int32_t *ret_revision, struct weft_err *err);

/* The members of a cancelled flow, a chunk at a time. It begins with zeros. */
struct weft_flow_drain {
    struct weft_id flow; /* the caller's to set, as is `wait` */
    bool wait;           /* for another holder of the flow: where a client waits for this call */
    uint64_t cancelled;  /* members, by these calls */
    /* Members that ended since weft_engine_flow_cancel() because the flow is cancelled, by these
     * calls, the cancel_backlog scanner or the cascade. Only with `wait`. */
    uint64_t cancelled_now;
    uint64_t before; /* members that had ended before that */
    bool more;       /* there may be more of them */
    bool locked;     /* nothing was done: another transaction had the flow */
};

/*
 * Marks a flow as cancelled: from here on its joins begin nothing. Again on a cancelled flow:
 * members that live again are cancelled too. WEFT_NOT_LIVE when it has ended otherwise. ret_drain
 * NULL: members are left to the cancel_backlog scanner; otherwise the same transaction cancels the
 * first chunk of them, so all of a small flow, and the caller goes on with *ret_drain, if there is
 * more.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_cancel(struct weft_engine *engine,
                                                     const struct weft_flow_cancelling *args,
                                                     enum weft_flow_state *ret_state,
                                                     struct weft_flow_drain *ret_drain,
                                                     struct weft_err *err);

/* Cancels the members among the next chunk, unless another transaction has the flow. */
WEFT_MUST_CHECK enum weft_rc weft_engine_flow_drain(struct weft_engine *engine,
                                                    struct weft_flow_drain *drain,
                                                    struct weft_err *err);

/*
 * One flow with a page of its nodes; the page is put in the arena (ret_page->arena stays NULL).
 * A page may be short while there is more, where its nodes come after very many.
 */
struct weft_flow_asking {
    const char *ns;
    struct weft_id flow;
    uint32_t limit;    /* nodes, 1..1000; 0: none */
    const char *after; /* cursor of the last page, NULL: the first */
    bool counts;       /* also how many members are in each state, which looks at every one */
};
WEFT_MUST_CHECK enum weft_rc
weft_engine_flow(struct weft_engine *engine, const struct weft_flow_asking *asking,
                 struct weft_arena *arena, struct weft_flow_page *ret_page, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_flows(struct weft_engine *engine,
                                               const struct weft_flow_listing *listing,
                                               struct weft_arena *arena,
                                               struct weft_flows *ret_flows, struct weft_err *err);

#endif
