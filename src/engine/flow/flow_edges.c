/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Edges between nodes that a flow has, under its lock and under a compare-and-set on its revision.
 *
 * The node that an edge leads to has not begun: it is blocked, its join has not fired, and no hop
 * is due that could make it fire (flow_settle.c). Its row in `live` is locked and checked after the
 * flow, in the order of all such calls, so it can neither end nor begin meanwhile. As with growth,
 * an ended upstream leaves no further completion, so this call adds one, and the cascade resolves
 * the edge at once; a living upstream will leave its own.
 *
 * After the edges are written, a walk upstream from each `from` looks for a cycle: any new cycle
 * contains one of them. If there is one, the transaction is rolled back.
 */

#include "engine/flow/flow_edges.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/map.h"
#include "engine/flow/cascade_read.h"
#include "engine/flow/flow_hold.h"
#include "engine/flow/flow_settle.h"
#include "engine/job/change.h"
#include "engine/tx/commit_effects.h"
#include "engine/tx/tx.h"
#include "store/store.h"
#include "weft/weft.h"

#include <stdlib.h>
#include <string.h>

struct named {
    const char *name;
    struct weft_id id;
    bool ended;
    int64_t added; /* edges that lead to it */
};

struct edging {
    const struct weft_flow_edging *args;
    struct named *node; /* each name once, sorted */
    size_t count;
    unsigned round;
    bool unsettled;
    int32_t revision;
};

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct named *)left)->name, ((const struct named *)right)->name);
}

static struct named *find(const struct edging *edging, const char *name)
{
    const struct named key = {.name = name};
    return bsearch(&key, edging->node, edging->count, sizeof(key), by_name);
}

static void list_names(struct edging *edging, struct weft_arena *arena)
{
    const struct weft_flow_edging *args = edging->args;
    size_t kept = 0;
    edging->node = weft_new_array(arena, struct named, 2 * args->edge_count + 1);
    for (size_t i = 0; i < args->edge_count; i++) {
        edging->node[2 * i].name = args->edges[i].from;
        edging->node[2 * i + 1].name = args->edges[i].to;
    }
    qsort(edging->node, 2 * args->edge_count, sizeof(*edging->node), by_name);
    for (size_t i = 0; i < 2 * args->edge_count; i++)
        if (kept == 0 || by_name(&edging->node[kept - 1], &edging->node[i]) != 0)
            edging->node[kept++] = edging->node[i];
    edging->count = kept;
}

static enum weft_rc check_flow(const struct edging *edging, const struct weft_flow_row *row,
                               struct weft_err *err)
{
    if (row->state != WEFT_FLOW_OPEN || row->cancel != WEFT_FLOW_CANCEL_NONE)
        return weft_fail_field(err, WEFT_NOT_LIVE, "id",
                               "only a flow that is open and not cancelled gets edges");
    if (row->revision == edging->args->revision)
        return WEFT_OK;
    return weft_hint(err,
                     weft_fail_field(err, WEFT_CONFLICT, "revision",
                                     "the flow is at revision %d, not %d", row->revision,
                                     edging->args->revision),
                     weft_hint_read_flow_again);
}

/*
 * Without a circle n nodes have at most n * (n - 1) / 2 edges, so the nodes of a small flow need
 * not be asked.
 */
enum weft_rc weft_flow_edges_fit(struct weft_tx *tx, const struct weft_id *flow, int64_t nodes,
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
    int64_t count = weft_out_flow_edge_count(&rows)->count;
    if (count + (int64_t)added <= WEFT_FLOW_EDGES_MAX)
        return WEFT_OK;
    rc = weft_fail_field(err, WEFT_TOO_LARGE, "edges",
                         "the flow would have %lld edges, at most %d are allowed",
                         (long long)count + (long long)added, WEFT_FLOW_EDGES_MAX);
    return weft_hint(err, rc,
                     "put a node between many upstreams and many downstreams: m * n edges become "
                     "m + n");
}

static enum weft_rc find_nodes(struct weft_tx *tx, struct edging *edging, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_nodes_named_in *in = weft_call_nodes_named(&call, tx->arena, edging->count);
    in->flow = edging->args->flow;
    for (size_t i = 0; i < edging->count; i++) {
        in->row[i].name = edging->node[i].name;
        edging->node[i].added = 0;
    }
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    for (size_t i = 0; i < edging->count && !rc; i++) {
        /* The rows come in the order of the names. */
        const struct weft_nodes_named_out *row = &weft_out_nodes_named(&rows)[i];
        if (i == rows.count || strcmp(row->name, edging->node[i].name) != 0)
            return weft_fail_field(err, WEFT_INVALID_VALUE, "edges", "the flow has no node '%s'",
                                   edging->node[i].name);
        edging->node[i].id = row->id;
        edging->node[i].ended = row->state.set;
    }
    for (size_t i = 0; i < edging->args->edge_count && !rc; i++)
        find(edging, edging->args->edges[i].to)->added++;
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
        if (edging->node[i].added > 0)
            id[count++] = edging->node[i].id;
    count = weft_ids_sort(id, count);
    enum weft_rc rc = weft_change_lock(tx, id, count, &changes, err);
    for (size_t i = 0; i < edging->count && !rc; i++) {
        const struct named *node = &edging->node[i];
        const struct weft_change *change =
            node->added > 0 ? weft_change_find(&changes, &node->id) : NULL;
        if (node->added > 0 && (!change || change->before.state != WEFT_STATE_BLOCKED))
            rc = weft_fail_field(err, WEFT_CONFLICT, "edges",
                                 "node '%s' is not blocked any more: it %s", node->name,
                                 change ? "has begun" : "has ended");
    }
    return rc;
}

/* No edge may be there, nor be named twice. */
static enum weft_rc check_new(struct weft_tx *tx, const struct edging *edging, struct weft_err *err)
{
    const struct weft_flow_edging *args = edging->args;
    struct weft_map seen = {0};
    struct weft_call call;
    struct weft_rows rows = {0};
    enum weft_rc rc = WEFT_OK;
    struct weft_edges_there_in *in = weft_call_edges_there(&call, tx->arena, args->edge_count);
    for (size_t i = 0; i < args->edge_count && !rc; i++) {
        struct weft_id pair[2] = {find(edging, args->edges[i].from)->id,
                                  find(edging, args->edges[i].to)->id};
        in->row[i].upstream = find(edging, args->edges[i].from)->id;
        in->row[i].downstream = find(edging, args->edges[i].to)->id;
        if (weft_map_find(&seen, weft_arena_dup(tx->arena, pair, sizeof(pair)), sizeof(pair)))
            rc = weft_fail_field(err, WEFT_INVALID_VALUE, "edges",
                                 "the edge from '%s' to '%s' is named twice", args->edges[i].from,
                                 args->edges[i].to);
        weft_map_put(&seen, weft_arena_dup(tx->arena, pair, sizeof(pair)), sizeof(pair), &seen);
    }
    weft_map_done(&seen);
    if (!rc)
        rc = weft_tx_run(tx, &call, 1, &rows, err);
    for (size_t i = 0; !rc && rows.count > 0 && i < args->edge_count; i++) {
        const struct weft_edges_there_out *row = weft_out_edges_there(&rows);
        if (weft_id_cmp(&find(edging, args->edges[i].from)->id, &row->upstream) == 0 &&
            weft_id_cmp(&find(edging, args->edges[i].to)->id, &row->downstream) == 0)
            rc = weft_fail_field(err, WEFT_CONFLICT, "edges", "'%s' comes after '%s' already",
                                 args->edges[i].to, args->edges[i].from);
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
    struct weft_flow_grow_in *flow = weft_call_flow_grow(&call[FLOW], tx->arena);
    add->at = tx->now_us;
    flow->flow = args->flow;
    flow->nodes = 0;
    for (size_t i = 0; i < args->edge_count; i++) {
        edges->row[i].upstream = find(edging, args->edges[i].from)->id;
        edges->row[i].downstream = find(edging, args->edges[i].to)->id;
    }
    for (size_t i = 0; i < edging->count; i++) {
        const struct named *node = &edging->node[i];
        if (node->ended) { /* it is a `from`: what edges lead to is blocked */
            add->row[hints].flow = args->flow;
            add->row[hints++].id = node->id;
        }
        if (node->added == 0)
            continue;
        nodes->row[wider].id = node->id;
        nodes->row[wider].by = node->added;
        sizes->row[wider].id = node->id;
        sizes->row[wider++].by = node->added;
    }
    call[NODES].rows = call[SIZES].rows = wider;
    call[HINTS].rows = hints;
    return weft_tx_run(tx, call, CALLS, NULL, err);
}

/* Whether a node that comes after `from` now is one that `from` comes after. */
static enum weft_rc check_circle(struct weft_tx *tx, const struct edging *edging,
                                 const struct named *from, struct weft_err *err)
{
    const struct weft_flow_edging *args = edging->args;
    struct weft_call call;
    struct weft_rows rows = {0};
    size_t count = 0;
    struct weft_edge_circle_in *in = weft_call_edge_circle(&call, tx->arena, args->edge_count);
    in->from = from->id;
    for (size_t i = 0; i < args->edge_count; i++)
        if (strcmp(args->edges[i].from, from->name) == 0)
            in->row[count++].to = find(edging, args->edges[i].to)->id;
    call.rows = count;
    enum weft_rc rc = count ? weft_tx_run(tx, &call, 1, &rows, err) : WEFT_OK;
    if (!rc && count && rows.count > 0)
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "edges",
                             "the edge from '%s' to '%s' makes a circle", from->name,
                             weft_out_edge_circle(&rows)->name);
    return rc;
}

static enum weft_rc edges_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct edging *edging = context;
    struct weft_flow_row row;
    enum weft_rc rc = weft_flow_hold(tx, edging->args->ns, &edging->args->flow, &row, err);
    edging->unsettled = !rc && weft_flow_unsettled(&row.due, edging->round);
    if (rc || edging->unsettled)
        return rc;
    rc = check_flow(edging, &row, err);
    if (!rc)
        rc = weft_flow_edges_fit(tx, &edging->args->flow, row.nodes, edging->args->edge_count, err);
    if (!rc)
        rc = find_nodes(tx, edging, err);
    if (!rc)
        rc = check_blocked(tx, edging, err);
    if (!rc)
        rc = check_new(tx, edging, err);
    if (!rc)
        rc = write_edges(tx, edging, err);
    for (size_t i = 0; i < edging->count && !rc; i++)
        rc = check_circle(tx, edging, &edging->node[i], err);
    edging->revision = row.revision + 1;
    return rc;
}

enum weft_rc weft_engine_flow_edges(struct weft_engine *engine, const struct weft_flow_edging *args,
                                    int32_t *ret_revision, struct weft_err *err)
{
    if (args->edge_count == 0)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "edges", "there is no edge to add");
    if (args->edge_count > WEFT_FLOW_LINKS_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "edges", "at most %d edges in one call",
                               WEFT_FLOW_LINKS_MAX);
    struct weft_arena *arena = weft_arena_new();
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    struct edging edging = {.args = args};
    enum weft_rc rc = WEFT_OK;
    list_names(&edging, arena);
    do {
        if (edging.unsettled)
            rc = weft_flow_settle(engine, &args->flow, 1, edging.round++, err);
        if (!rc)
            rc = weft_tx_do(&tx, WEFT_TX_WRITE, edges_body, &edging, err);
    } while (!rc && edging.unsettled);
    if (!rc) {
        *ret_revision = edging.revision;
        struct weft_commit_effects news = weft_news_new(tx.arena, tx.now_us);
        weft_news_flow(&news, &args->flow); /* also of members that ended while it was locked */
        weft_news_tell(engine, &news);
    }
    weft_arena_free(tx.arena);
    weft_arena_free(arena);
    return rc;
}
