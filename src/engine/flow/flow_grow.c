/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Growing a flow while it runs, under its lock and under a compare-and-set on its revision.
 *
 * New nodes may come after nodes that are there. Such an edge is new, so no completion speaks of
 * it: for every upstream that has ended a completion is left, and the cascade resolves the edge at
 * once. An upstream that is still alive will leave its own when it ends; its cascade needs the lock
 * that is held here, so it sees the new edge.
 *
 * Edges between nodes that the flow has: the node that an edge leads to has not begun. It is
 * blocked, its join has not fired, and no hop is due that could make it fire (flow_hold.c). Its row
 * in `live` is locked and checked after the flow, in the order of all such calls, so it can neither
 * end nor begin meanwhile. After the edges are written, a walk upstream from each `from` looks for
 * a cycle: any new cycle contains one of them. If there is one, the transaction is rolled back.
 */

#include "engine/flow/flow.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "core/graph.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade_read.h"
#include "engine/flow/draft.h"
#include "engine/flow/flow_hold.h"

#include <stdlib.h>
#include <string.h>

static enum weft_rc check_flow(const struct weft_flow_hold_out *flow, int32_t revision,
                               const char *what, struct weft_err *err)
{
    if (flow->state != WEFT_FLOW_OPEN || flow->cancel != WEFT_FLOW_CANCEL_NONE)
        return weft_fail_field(err, WEFT_NOT_LIVE, "id",
                               "only a flow that is open and not cancelled %s", what);
    if (flow->revision == revision)
        return WEFT_OK;
    return weft_hint(err,
                     weft_fail_field(err, WEFT_CONFLICT, "revision",
                                     "the flow is at revision %d, not %d", flow->revision,
                                     revision),
                     weft_hint_read_flow_again);
}

/*
 * WEFT_TOO_LARGE when a flow with so many nodes, new ones included, would have more edges than a
 * submission may have. Without a circle n nodes have at most n * (n - 1) / 2 edges, so the nodes of
 * a small flow need not be asked.
 */
static enum weft_rc check_edge_count(struct weft_tx *tx, const struct weft_id *flow, int64_t nodes,
                                     size_t added, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    if (added == 0 || nodes * (nodes - 1) / 2 <= WEFT_FLOW_EDGES_MAX)
        return WEFT_OK;
    weft_call_flow_edge_count(&call, tx->arena)->flow = *flow;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    long long count = weft_out_flow_edge_count(&rows)->count + (long long)added;
    if (count <= WEFT_FLOW_EDGES_MAX)
        return WEFT_OK;
    return weft_hint(
        err,
        weft_fail_field(err, WEFT_TOO_LARGE, "edges",
                        "the flow would have %lld edges, at most %d are allowed", count,
                        WEFT_FLOW_EDGES_MAX),
        "put a node between many upstreams and many downstreams: m * n edges become m + n");
}

/* Nodes of the flow by their names, which are sorted; *ret_missing is the first that is not there,
 * or NULL. */
static enum weft_rc find_named(struct weft_tx *tx, const struct weft_id *flow,
                               const char *const *name, size_t count,
                               const struct weft_nodes_named_out **ret_node,
                               const char **ret_missing, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_nodes_named_in *in = weft_call_nodes_named(&call, tx->arena, count);
    in->flow = *flow;
    for (size_t i = 0; i < count; i++)
        in->row[i].name = name[i];
    enum weft_rc rc = count ? weft_tx_run(tx, &call, 1, &rows, err) : WEFT_OK;
    *ret_missing = NULL;
    if (rc)
        return rc;
    const struct weft_nodes_named_out *row = weft_out_nodes_named(&rows); /* in their order */
    for (size_t i = 0; i < count && !*ret_missing; i++)
        if (i == rows.count || strcmp(row[i].name, name[i]) != 0)
            *ret_missing = name[i];
    *ret_node = row;
    return WEFT_OK;
}

/* After the commit: also of members that ended while the flow was locked. */
static void tell(const struct weft_tx *tx, const struct weft_id *flow,
                 const struct weft_draft *draft)
{
    struct weft_commit_effects news = weft_news_new(tx->arena, tx->now_us);
    if (draft)
        weft_draft_news(draft, &news);
    weft_news_flow(&news, flow);
    weft_news_tell(tx->engine, &news);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

struct growth {
    const struct weft_flow_growth *args;
    struct weft_draft *draft;
    struct weft_names_outside outside;
    struct weft_arena *arena;
    const struct weft_nodes_named_out *known; /* the nodes outside; of the last try */
    int32_t revision;
};

/* Which of the nodes that the new ones come after are there. */
static enum weft_rc find_known(struct weft_tx *tx, struct growth *growth, struct weft_err *err)
{
    const char *missing;
    size_t count = growth->outside.count;
    enum weft_rc rc = find_named(tx, &growth->args->flow, growth->outside.name, count,
                                 &growth->known, &missing, err);
    if (!rc && missing)
        rc = weft_invalid(err, "after", "a node comes after '%s', and there is no such node",
                          missing);
    if (rc)
        return rc;
    struct weft_id *known = weft_new_array(tx->arena, struct weft_id, count + 1);
    for (size_t i = 0; i < count; i++)
        known[i] = growth->known[i].id;
    growth->draft->known = known;
    return WEFT_OK;
}

/*
 * No new node may have the name of one that is there. Readers see nodes in the order of their ids:
 * the new ones get theirs here, where it is known which is the last.
 */
static enum weft_rc name_nodes(struct weft_tx *tx, const struct growth *growth,
                               struct weft_err *err)
{
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    const struct weft_id *flow = &growth->args->flow;
    struct weft_nodes_named_in *named =
        weft_call_nodes_named(&call[0], tx->arena, growth->draft->count);
    named->flow = *flow;
    for (size_t i = 0; i < growth->draft->count; i++)
        named->row[i].name = growth->draft->node[i].name;
    weft_call_flow_last(&call[1], tx->arena)->flow = *flow;
    enum weft_rc rc = weft_tx_run(tx, call, 2, rows, err);
    if (rc)
        return rc;
    if (rows[0].count > 0)
        return weft_fail_field(err, WEFT_CONFLICT, "name", "the flow has a node '%s' already",
                               weft_out_nodes_named(&rows[0])->name);
    struct weft_id last, now;
    weft_id_new(&now, tx->now_us, weft_id_partition(flow));
    last = rows[1].count > 0 ? weft_out_flow_last(&rows[1])->id : now;
    weft_draft_mint(growth->draft, weft_id_cmp(&last, &now) < 0 ? &now : &last);
    return WEFT_OK;
}

/* The flow, and a completion for every upstream that has ended. */
static enum weft_rc write_rest(struct weft_tx *tx, const struct growth *growth,
                               struct weft_err *err)
{
    struct weft_call call[2];
    size_t ended = 0;
    *weft_call_flow_grow(&call[0], tx->arena) = (struct weft_flow_grow_in){
        .flow = growth->args->flow, .nodes = (int64_t)growth->draft->count};
    struct weft_completion_add_in *add =
        weft_call_completion_add(&call[1], tx->arena, growth->outside.count);
    add->at = tx->now_us;
    for (size_t i = 0; i < growth->outside.count; i++)
        if (growth->known[i].state.set)
            add->row[ended++] = (struct weft_completion_add_item){.flow = growth->args->flow,
                                                                  .id = growth->known[i].id};
    call[1].rows = ended;
    return weft_tx_run(tx, call, 2, NULL, err);
}

static enum weft_rc grow_body(struct weft_tx *tx, struct weft_flow_hold_out *flow, void *context,
                              struct weft_err *err)
{
    struct growth *growth = context;
    const struct weft_draft *draft = growth->draft;
    long long nodes = flow->nodes + (long long)draft->count;
    enum weft_rc rc = check_flow(flow, growth->args->revision, "can grow", err);
    if (!rc && nodes > WEFT_FLOW_NODES_MAX)
        rc = weft_fail_field(err, WEFT_TOO_LARGE, "nodes",
                             "the flow would have %lld nodes, at most %d are allowed", nodes,
                             WEFT_FLOW_NODES_MAX);
    if (!rc)
        rc = check_edge_count(tx, &growth->args->flow, nodes, draft->graph.edges, err);
    if (!rc)
        rc = name_nodes(tx, growth, err);
    if (!rc)
        rc = find_known(tx, growth, err);
    if (rc)
        return rc;
    growth->revision = flow->revision + 1;
    struct weft_draft_rows rows = weft_draft_list(&draft, 1, tx->arena);
    rc = weft_draft_put(tx, &rows, tx->now_us, err);
    return rc ? rc : write_rest(tx, growth, err);
}

static enum weft_rc prepare(struct weft_engine *engine, struct growth *growth, struct weft_err *err)
{
    const struct weft_flow_growth *args = growth->args;
    if (args->node_count == 0)
        return weft_invalid(err, "nodes", "there is no node to add");
    growth->outside = weft_graph_outside(args->nodes, args->node_count, growth->arena);
    const struct weft_graph_input input = {.node = args->nodes,
                                           .count = args->node_count,
                                           .known = growth->outside.name,
                                           .known_count = growth->outside.count};
    weft_usec now_us = weft_clock_now(engine->clock);
    enum weft_rc rc = weft_draft_resolve(growth->draft, &input, now_us, growth->arena, NULL, err);
    return rc ? rc : weft_draft_place(engine, growth->draft, err);
}

enum weft_rc weft_engine_flow_grow(struct weft_engine *engine, const struct weft_flow_growth *args,
                                   struct weft_flow_result *ret_answer, struct weft_err *err)
{
    struct weft_draft draft = {.ns = args->ns, .flow = args->flow};
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    struct growth growth = {.args = args, .draft = &draft, .arena = weft_arena_new()};
    enum weft_rc rc = prepare(engine, &growth, err);
    ret_answer->blamed = draft.blamed;
    if (!rc)
        rc = weft_flow_change(&tx, args->ns, &args->flow, grow_body, &growth, err);
    if (!rc) {
        struct weft_id *node = ret_answer->node;
        *ret_answer = (struct weft_flow_result){
            .id = args->flow, .state = WEFT_FLOW_OPEN, .revision = growth.revision, .node = node};
        for (size_t i = 0; i < draft.count && node; i++)
            node[i] = draft.member[i].id;
        tell(&tx, &args->flow, &draft);
    }
    weft_arena_free(tx.arena);
    weft_arena_free(growth.arena);
    return rc;
}

/* ---- Edges ----------------------------------------------------------------------------------- */

struct edge {
    size_t from, to; /* places of names */
};

struct edging {
    const struct weft_flow_edging *args;
    const char **name; /* of the nodes: each once, sorted */
    size_t count;
    struct edge *edge;                       /* as the caller has them */
    int64_t *added;                          /* by name: the edges that lead to it */
    const struct weft_nodes_named_out *node; /* by name; of the last try */
    int32_t revision;
};

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static size_t place_of(const struct edging *edging, const char *name)
{
    const char *const *found = bsearch((const void *)&name, (const void *)edging->name,
                                       edging->count, sizeof(name), by_text);
    return (size_t)(found - (const char *const *)edging->name);
}

static void list_names(struct edging *edging, struct weft_arena *arena)
{
    const struct weft_flow_edging *args = edging->args;
    size_t names = 2 * args->edge_count;
    edging->name = weft_new_array(arena, const char *, names);
    edging->edge = weft_new_array(arena, struct edge, args->edge_count);
    edging->added = weft_new_array(arena, int64_t, names);
    for (size_t i = 0; i < args->edge_count; i++) {
        edging->name[2 * i] = args->edges[i].from;
        edging->name[2 * i + 1] = args->edges[i].to;
    }
    qsort((void *)edging->name, names, sizeof(*edging->name), by_text);
    for (size_t i = 0; i < names; i++)
        if (i == 0 || strcmp(edging->name[i], edging->name[edging->count - 1]) != 0)
            edging->name[edging->count++] = edging->name[i];
    for (size_t i = 0; i < args->edge_count; i++) {
        edging->edge[i] = (struct edge){.from = place_of(edging, args->edges[i].from),
                                        .to = place_of(edging, args->edges[i].to)};
        edging->added[edging->edge[i].to]++;
    }
}

static enum weft_rc find_nodes(struct weft_tx *tx, struct edging *edging, struct weft_err *err)
{
    const char *missing;
    enum weft_rc rc = find_named(tx, &edging->args->flow, edging->name, edging->count,
                                 &edging->node, &missing, err);
    if (!rc && missing)
        rc = weft_invalid(err, "edges", "the flow has no node '%s'", missing);
    return rc;
}

/* Locks the nodes that edges lead to: each must be blocked. */
static enum weft_rc check_blocked(struct weft_tx *tx, const struct edging *edging,
                                  struct weft_err *err)
{
    struct weft_changes changes;
    struct weft_id *id = weft_new_array(tx->arena, struct weft_id, edging->count);
    size_t count = 0;
    for (size_t i = 0; i < edging->count; i++)
        if (edging->added[i] > 0)
            id[count++] = edging->node[i].id;
    count = weft_ids_sort(id, count);
    enum weft_rc rc = weft_change_lock(tx, id, count, &changes, err);
    for (size_t i = 0; i < edging->count && !rc; i++) {
        if (edging->added[i] == 0)
            continue;
        const struct weft_change *change = weft_change_find(&changes, &edging->node[i].id);
        if (!change || change->before.state != WEFT_STATE_BLOCKED)
            rc = weft_fail_field(err, WEFT_CONFLICT, "edges",
                                 "node '%s' is not blocked any more: it %s", edging->name[i],
                                 change ? "has begun" : "has ended");
    }
    return rc;
}

/* No edge may be there, nor be named twice. */
static enum weft_rc check_new(struct weft_tx *tx, const struct edging *edging, struct weft_err *err)
{
    size_t count = edging->args->edge_count;
    struct weft_map seen = {0};
    struct weft_call call;
    struct weft_rows rows = {0};
    enum weft_rc rc = WEFT_OK;
    struct weft_edges_there_in *in = weft_call_edges_there(&call, tx->arena, count);
    for (size_t i = 0; i < count && !rc; i++) {
        const struct edge *edge = &edging->edge[i];
        in->row[i].upstream = edging->node[edge->from].id;
        in->row[i].downstream = edging->node[edge->to].id;
        if (weft_map_find(&seen, edge, sizeof(*edge)))
            rc = weft_invalid(err, "edges", "the edge from '%s' to '%s' is named twice",
                              edging->name[edge->from], edging->name[edge->to]);
        weft_map_put(&seen, edge, sizeof(*edge), &seen);
    }
    weft_map_done(&seen);
    if (!rc)
        rc = weft_tx_run(tx, &call, 1, &rows, err);
    for (size_t i = 0; !rc && rows.count > 0 && i < count; i++) {
        const struct weft_edges_there_out *row = weft_out_edges_there(&rows);
        if (weft_id_cmp(&in->row[i].upstream, &row->upstream) == 0 &&
            weft_id_cmp(&in->row[i].downstream, &row->downstream) == 0)
            rc = weft_fail_field(err, WEFT_CONFLICT, "edges", "'%s' comes after '%s' already",
                                 edging->name[edging->edge[i].to],
                                 edging->name[edging->edge[i].from]);
    }
    return rc;
}

static enum weft_rc write_edges(struct weft_tx *tx, const struct edging *edging,
                                struct weft_err *err)
{
    enum { EDGES, NODES, SIZES, HINTS, FLOW, CALLS };
    const struct weft_flow_edging *args = edging->args;
    struct weft_call call[CALLS];
    size_t wider = 0, hints = 0;
    struct weft_flow_edges_in *edges =
        weft_call_flow_edges(&call[EDGES], tx->arena, args->edge_count);
    struct weft_nodes_widen_in *nodes =
        weft_call_nodes_widen(&call[NODES], tx->arena, edging->count);
    struct weft_live_widen_in *sizes = weft_call_live_widen(&call[SIZES], tx->arena, edging->count);
    struct weft_completion_add_in *add =
        weft_call_completion_add(&call[HINTS], tx->arena, edging->count);
    *weft_call_flow_grow(&call[FLOW], tx->arena) = (struct weft_flow_grow_in){.flow = args->flow};
    add->at = tx->now_us;
    for (size_t i = 0; i < args->edge_count; i++) {
        edges->row[i].upstream = edging->node[edging->edge[i].from].id;
        edges->row[i].downstream = edging->node[edging->edge[i].to].id;
    }
    for (size_t i = 0; i < edging->count; i++) {
        const struct weft_nodes_named_out *node = &edging->node[i];
        if (node->state.set) /* it has ended, so it is a `from`: a `to` is blocked */
            add->row[hints++] =
                (struct weft_completion_add_item){.flow = args->flow, .id = node->id};
        if (edging->added[i] == 0)
            continue;
        nodes->row[wider].id = sizes->row[wider].id = node->id;
        nodes->row[wider].by = sizes->row[wider].by = edging->added[i];
        wider++;
    }
    call[NODES].rows = call[SIZES].rows = wider;
    call[HINTS].rows = hints;
    return weft_tx_run(tx, call, CALLS, NULL, err);
}

/* Whether a node that comes after the node `from` now is one that `from` comes after. */
static enum weft_rc check_circle(struct weft_tx *tx, const struct edging *edging, size_t from,
                                 struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    size_t count = 0;
    struct weft_edge_circle_in *in =
        weft_call_edge_circle(&call, tx->arena, edging->args->edge_count);
    in->from = edging->node[from].id;
    for (size_t i = 0; i < edging->args->edge_count; i++)
        if (edging->edge[i].from == from)
            in->row[count++].to = edging->node[edging->edge[i].to].id;
    call.rows = count;
    enum weft_rc rc = count ? weft_tx_run(tx, &call, 1, &rows, err) : WEFT_OK;
    if (!rc && count && rows.count > 0)
        rc = weft_invalid(err, "edges", "the edge from '%s' to '%s' makes a circle",
                          edging->name[from], weft_out_edge_circle(&rows)->name);
    return rc;
}

static enum weft_rc edges_body(struct weft_tx *tx, struct weft_flow_hold_out *flow, void *context,
                               struct weft_err *err)
{
    struct edging *edging = context;
    const struct weft_flow_edging *args = edging->args;
    enum weft_rc rc = check_flow(flow, args->revision, "gets edges", err);
    if (!rc)
        rc = check_edge_count(tx, &args->flow, flow->nodes, args->edge_count, err);
    if (!rc)
        rc = find_nodes(tx, edging, err);
    if (!rc)
        rc = check_blocked(tx, edging, err);
    if (!rc)
        rc = check_new(tx, edging, err);
    if (!rc)
        rc = write_edges(tx, edging, err);
    for (size_t i = 0; i < edging->count && !rc; i++)
        rc = check_circle(tx, edging, i, err);
    edging->revision = flow->revision + 1;
    return rc;
}

enum weft_rc weft_engine_flow_edges(struct weft_engine *engine, const struct weft_flow_edging *args,
                                    int32_t *ret_revision, struct weft_err *err)
{
    if (args->edge_count == 0)
        return weft_invalid(err, "edges", "there is no edge to add");
    if (args->edge_count > WEFT_FLOW_LINKS_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "edges", "at most %d edges in one call",
                               WEFT_FLOW_LINKS_MAX);
    struct weft_arena *arena = weft_arena_new();
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    struct edging edging = {.args = args};
    list_names(&edging, arena);
    enum weft_rc rc = weft_flow_change(&tx, args->ns, &args->flow, edges_body, &edging, err);
    if (!rc) {
        *ret_revision = edging.revision;
        tell(&tx, &args->flow, NULL);
    }
    weft_arena_free(tx.arena);
    weft_arena_free(arena);
    return rc;
}
