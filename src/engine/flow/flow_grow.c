/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Growing a flow while it runs, under its lock and under a compare-and-set on its revision.
 *
 * New nodes may come after nodes that are there. Such an edge is new, so no completion speaks of
 * it: for every upstream that has ended a completion is left, and the cascade resolves the edge at
 * once. An upstream that is still alive will leave its own when it ends; its cascade needs the lock
 * that is held here, so it sees the new edge.
 */

#include "engine/flow/flow_grow.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "core/graph.h"
#include "engine/engine_state.h"
#include "engine/flow/draft.h"
#include "engine/flow/flow_edges.h"
#include "engine/flow/flow_hold.h"
#include "engine/flow/flow_settle.h"

#include <string.h>

struct growth {
    const struct weft_flow_growth *args;
    struct weft_draft *draft;
    struct weft_names_outside outside;
    struct weft_id *known; /* of the names outside */
    struct weft_id *ended; /* those of them that have ended */
    size_t ended_count;
    struct weft_arena *arena;
    int32_t revision;
    unsigned round;
    bool unsettled; /* hops were due: nothing was done */
};

/* Which of the nodes that the new ones come after are there, and which have ended. */
static enum weft_rc find_known(struct weft_tx *tx, struct growth *growth, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    size_t count = growth->outside.count;
    growth->known = weft_new_array(tx->arena, struct weft_id, count + 1);
    growth->ended = weft_new_array(tx->arena, struct weft_id, count + 1);
    growth->ended_count = 0;
    struct weft_nodes_named_in *in = weft_call_nodes_named(&call, tx->arena, count);
    in->flow = growth->args->flow;
    for (size_t i = 0; i < count; i++)
        in->row[i].name = growth->outside.name[i];
    enum weft_rc rc = count ? weft_tx_run(tx, &call, 1, &rows, err) : WEFT_OK;
    for (size_t i = 0, row = 0; i < count && !rc; i++) {
        /* The rows come in the order of the names. */
        const struct weft_nodes_named_out *out = &weft_out_nodes_named(&rows)[row];
        if (row == rows.count || strcmp(out->name, growth->outside.name[i]) != 0)
            return weft_fail_field(err, WEFT_INVALID_VALUE, "after",
                                   "a node comes after '%s', and there is no such node",
                                   growth->outside.name[i]);
        growth->known[i] = out->id;
        if (out->state.set)
            growth->ended[growth->ended_count++] = growth->known[i];
        row++;
    }
    return rc;
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

static enum weft_rc check_flow(const struct growth *growth, const struct weft_flow_row *row,
                               struct weft_err *err)
{
    if (row->state != WEFT_FLOW_OPEN || row->cancel != WEFT_FLOW_CANCEL_NONE)
        return weft_fail_field(err, WEFT_NOT_LIVE, "id",
                               "only a flow that is open and not cancelled can grow");
    if (row->revision != growth->args->revision) {
        return weft_hint(err,
                         weft_fail_field(err, WEFT_CONFLICT, "revision",
                                         "the flow is at revision %d, not %d", row->revision,
                                         growth->args->revision),
                         weft_hint_read_flow_again);
    }
    if (row->nodes + (int64_t)growth->draft->count > WEFT_FLOW_NODES_MAX)
        return weft_fail_field(
            err, WEFT_TOO_LARGE, "nodes", "the flow would have %lld nodes, at most %d are allowed",
            (long long)row->nodes + (long long)growth->draft->count, WEFT_FLOW_NODES_MAX);
    return WEFT_OK;
}

static enum weft_rc write_rest(struct weft_tx *tx, const struct growth *growth,
                               struct weft_err *err)
{
    struct weft_call call[2];
    *weft_call_flow_grow(&call[0], tx->arena) = (struct weft_flow_grow_in){
        .flow = growth->args->flow, .nodes = (int64_t)growth->draft->count};
    struct weft_completion_add_in *add =
        weft_call_completion_add(&call[1], tx->arena, growth->ended_count);
    add->at = tx->now_us;
    for (size_t i = 0; i < growth->ended_count; i++) {
        add->row[i].flow = growth->args->flow;
        add->row[i].id = growth->ended[i];
    }
    return weft_tx_run(tx, call, 2, NULL, err);
}

static enum weft_rc grow_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct growth *growth = context;
    struct weft_flow_row row;
    enum weft_rc rc = weft_flow_hold(tx, growth->args->ns, &growth->args->flow, &row, err);
    growth->unsettled = !rc && weft_flow_unsettled(&row.due, growth->round);
    if (rc || growth->unsettled)
        return rc;
    rc = check_flow(growth, &row, err);
    if (!rc)
        rc = weft_flow_edges_fit(tx, &growth->args->flow, row.nodes + (int64_t)growth->draft->count,
                                 growth->draft->graph.edges, err);
    if (!rc)
        rc = name_nodes(tx, growth, err);
    if (!rc)
        rc = find_known(tx, growth, err);
    if (rc)
        return rc;
    growth->revision = row.revision + 1;
    growth->draft->known = growth->known;
    const struct weft_draft *draft = growth->draft;
    struct weft_draft_rows rows = weft_draft_list(&draft, 1, tx->arena);
    rc = weft_draft_put(tx, &rows, tx->now_us, err);
    return rc ? rc : write_rest(tx, growth, err);
}

static enum weft_rc prepare(struct weft_engine *engine, struct growth *growth, struct weft_err *err)
{
    const struct weft_flow_growth *args = growth->args;
    enum weft_rc rc = WEFT_OK;
    if (args->node_count == 0)
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "nodes", "there is no node to add");
    if (rc)
        return rc;
    growth->outside = weft_graph_outside(args->nodes, args->node_count, growth->arena);
    const struct weft_graph_input input = {.node = args->nodes,
                                           .count = args->node_count,
                                           .known = growth->outside.name,
                                           .known_count = growth->outside.count};
    weft_usec now_us = weft_clock_now(engine->clock);
    rc = weft_draft_resolve(growth->draft, &input, now_us, growth->arena, NULL, err);
    if (rc)
        return rc;
    return weft_draft_place(engine, growth->draft, err);
}

enum weft_rc weft_engine_flow_grow(struct weft_engine *engine, const struct weft_flow_growth *args,
                                   struct weft_flow_result *ret_answer, struct weft_err *err)
{
    struct weft_draft draft = {.ns = args->ns, .flow = args->flow};
    struct growth growth = {.args = args, .draft = &draft, .arena = weft_arena_new()};
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = prepare(engine, &growth, err);
    ret_answer->blamed = draft.blamed;
    do {
        if (!rc && growth.unsettled)
            rc = weft_flow_settle(engine, &args->flow, 1, growth.round++, err);
        if (!rc)
            rc = weft_tx_do(&tx, WEFT_TX_WRITE, grow_body, &growth, err);
    } while (!rc && growth.unsettled);
    if (!rc) {
        struct weft_id *node = ret_answer->node;
        *ret_answer = (struct weft_flow_result){
            .id = args->flow, .state = WEFT_FLOW_OPEN, .revision = growth.revision, .node = node};
        for (size_t i = 0; i < draft.count && node; i++)
            node[i] = draft.member[i].id;
        struct weft_commit_effects news = weft_news_new(tx.arena, tx.now_us);
        weft_draft_news(&draft, &news);
        weft_news_flow(&news, &args->flow); /* also of members that ended while it was locked */
        weft_news_tell(engine, &news);
    }
    weft_arena_free(tx.arena);
    weft_arena_free(growth.arena);
    return rc;
}
