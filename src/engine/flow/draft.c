/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nodes on their way into the store: checked, resolved, given ids, written. A node that comes after
 * others is blocked from its first moment: it cannot be claimed before its join fires.
 */

#include "engine/flow/draft.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "engine/engine_state.h"
#include "engine/limit/admit.h"

enum { NODES_AT_ONCE = 1000, EDGES_AT_ONCE = 5000 };

/* ---- Checking -------------------------------------------------------------------------------- */

static enum weft_rc check_node(const struct weft_node *node, struct weft_err *err)
{
    if (node->spec.key)
        return weft_invalid(err, "key", "node '%s' has a key: give the key to the flow",
                            node->name);
    if (node->spec.ns)
        return weft_invalid(err, "namespace",
                            "node '%s' names a namespace: it has that of its flow", node->name);
    return WEFT_OK;
}

/* Puts the name of the node into the error of its spec. */
static enum weft_rc blame(const struct weft_node *node, struct weft_err *err)
{
    struct weft_err story = *err;
    (void)weft_fail_field(err, story.rc, story.field, "node '%s': %s", node->name, story.text);
    err->hint = story.hint;
    return story.rc;
}

static bool lets_run(const struct weft_node *node)
{
    if (node->on_satisfied == WEFT_ON_SATISFIED_DEFAULT)
        return node->join == WEFT_JOIN_ALL;
    return node->on_satisfied == WEFT_ON_SATISFIED_LET_RUN;
}

enum weft_rc weft_draft_resolve(struct weft_draft *draft, const struct weft_graph_input *input,
                                weft_usec now_us, struct weft_arena *arena, uint8_t *fingerprint,
                                struct weft_err *err)
{
    draft->node = input->node;
    draft->count = input->count;
    enum weft_rc rc = weft_graph_build(input, arena, &draft->graph, err);
    draft->blamed = rc ? draft->graph.blamed : 0;
    if (rc)
        return rc;
    draft->member = weft_new_array(arena, struct weft_submission, draft->count + 1);
    for (size_t i = 0; i < draft->count; i++) {
        const struct weft_node *node = &draft->node[i];
        struct weft_resolved *member = &draft->member[i].spec;
        rc = check_node(node, err);
        if (!rc)
            rc = weft_spec_resolve(&node->spec, draft->ns, now_us, arena, member, err);
        if (!rc)
            rc = weft_spec_takes(member, node->after, node->after_count, err);
        if (rc) {
            draft->blamed = i + 1;
            return blame(node, err);
        }
        if (fingerprint) {
            weft_spec_fingerprint(member);
            weft_graph_fingerprint(node, member->fingerprint, fingerprint);
        }
    }
    return WEFT_OK;
}

void weft_draft_mint(struct weft_draft *draft, const struct weft_id *last)
{
    for (size_t i = 0; i < draft->count; i++) {
        weft_id_next(&draft->member[i].id, last);
        last = &draft->member[i].id;
    }
}

enum weft_rc weft_draft_place(struct weft_engine *engine, struct weft_draft *draft,
                              struct weft_err *err)
{
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = draft->ns};
    enum weft_rc rc = weft_intern_names(engine, true, &space, 1, err);
    draft->ns_id = space.id;
    if (!rc)
        rc = weft_submission_place(engine, true, draft->member, draft->count, err);
    for (size_t i = 0; i < draft->count && !rc; i++)
        if (!draft->member[i].queue)
            rc = weft_census_refuse(engine, WEFT_CENSUS_QUEUES, draft->member[i].spec.ns, err);
    return rc;
}

static bool begins_blocked(const struct weft_draft *draft, size_t i)
{
    return draft->node[i].after_count > 0 || draft->hidden;
}

void weft_draft_news(const struct weft_draft *draft, struct weft_commit_effects *news)
{
    for (size_t i = 0; i < draft->count; i++) {
        const struct weft_resolved *spec = &draft->member[i].spec;
        weft_news_due(news, spec->deadline_us);
        if (begins_blocked(draft, i))
            continue;
        if (spec->state == WEFT_STATE_READY)
            weft_news_fresh(news, draft->member[i].queue->id, spec->priority, draft->member[i].ord);
        else if (spec->state == WEFT_STATE_HELD)
            weft_news_gate(news,
                           weft_gate_key(draft->member[i].queue->ns, spec->gate, news->arena));
        else
            weft_news_due(news, spec->due_us);
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

static const struct weft_id *upstream_id(const struct weft_draft *draft, uint32_t number)
{
    return number < draft->count ? &draft->member[number].id : &draft->known[number - draft->count];
}

struct weft_draft_rows weft_draft_list(const struct weft_draft *const *draft, size_t count,
                                       struct weft_arena *arena)
{
    size_t nodes = 0, edges = 0;
    for (size_t d = 0; d < count; d++) {
        nodes += draft[d]->count;
        edges += draft[d]->graph.edges;
    }
    struct weft_draft_rows rows = {.node = weft_new_array(arena, struct weft_node_ref, nodes + 1),
                                   .edge = weft_new_array(arena, struct weft_edge_ref, edges + 1)};
    for (size_t d = 0; d < count; d++) {
        const struct weft_graph *graph = &draft[d]->graph;
        for (size_t i = 0; i < draft[d]->count; i++) {
            rows.node[rows.nodes++] = (struct weft_node_ref){.draft = draft[d], .at = i};
            for (uint32_t e = graph->first[i]; e < graph->first[i + 1]; e++)
                rows.edge[rows.edges++] =
                    (struct weft_edge_ref){.upstream = upstream_id(draft[d], graph->upstream[e]),
                                           .downstream = &draft[d]->member[i].id};
        }
    }
    return rows;
}

/* A node that comes after others waits for them, and only then for its time. */
static void put_node(struct weft_flow_nodes_item *to, const struct weft_node_ref *ref,
                     struct weft_arena *arena)
{
    const struct weft_node *node = &ref->draft->node[ref->at];
    const struct weft_submission *item = &ref->draft->member[ref->at];
    const struct weft_resolved *spec = &item->spec;
    bool blocked = begins_blocked(ref->draft, ref->at);
    to->flow = ref->draft->flow;
    to->id = item->id;
    to->ord = item->ord;
    to->queue = item->queue->id;
    to->lane = item->queue->lane;
    to->policy = item->policy;
    to->priority = spec->priority;
    to->state = blocked ? WEFT_STATE_BLOCKED : spec->state;
    if (spec->due_us && !blocked)
        to->due = weft_some(spec->due_us);
    to->deadline = weft_unless_zero(spec->deadline_us);
    to->content_type = spec->content_type;
    to->tags = spec->tags;
    to->payload = (struct weft_blob){spec->payload, spec->payload_size};
    to->size = (int64_t)(spec->payload_size + node->after_count * WEFT_UPSTREAM_BYTES);
    to->gate = weft_gate_key(item->queue->ns, spec->gate, arena);
    to->name = node->name;
    to->join_policy = node->join;
    to->k = node->k;
    to->let_run = lets_run(node);
    to->total = (int64_t)node->after_count;
    to->fired = blocked ? WEFT_FIRED_NOT : WEFT_FIRED_SATISFIED;
    to->delay = node->spec.delay_ms * WEFT_MS;
    to->run_at = node->spec.run_at_us;
    if (ref->draft->model && ref->draft->model[ref->at])
        to->model = weft_some(ref->draft->model[ref->at]);
}

static enum weft_rc put_nodes(struct weft_tx *tx, const struct weft_node_ref *node, size_t count,
                              weft_usec now_us, struct weft_err *err)
{
    struct weft_call call[2];
    struct weft_flow_nodes_in *in = weft_call_flow_nodes(&call[0], tx->arena, count);
    in->now = now_us;
    struct weft_span_row *span = weft_new_array(tx->arena, struct weft_span_row, count + 1);
    struct weft_submission **member =
        weft_new_array(tx->arena, struct weft_submission *, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct weft_submission *item = &node[i].draft->member[node[i].at];
        member[i] = item;
        span[i] = (struct weft_span_row){.id = item->id, .ns = item->queue->ns};
    }
    weft_spans_find(span, count, tx->arena);
    for (size_t i = 0; i < count; i++) {
        put_node(&in->row[i], &node[i], tx->arena);
        in->row[i].span = weft_span_of(&span[i]);
    }
    size_t calls = 1 + weft_submission_costs(member, count, tx->arena, &call[1]);
    return weft_tx_run(tx, call, calls, NULL, err);
}

static enum weft_rc put_edges(struct weft_tx *tx, const struct weft_edge_ref *edge, size_t count,
                              struct weft_err *err)
{
    struct weft_call call;
    struct weft_flow_edges_in *in = weft_call_flow_edges(&call, tx->arena, count);
    for (size_t i = 0; i < count; i++) {
        in->row[i].upstream = *edge[i].upstream;
        in->row[i].downstream = *edge[i].downstream;
    }
    return weft_tx_run(tx, &call, 1, NULL, err);
}

/* How many of the nodes go into one statement: bounded in number and in bytes. */
static size_t nodes_at_once(const struct weft_node_ref *node, size_t count)
{
    size_t taken = 0, bytes = 0;
    while (taken < count && taken < NODES_AT_ONCE) {
        bytes += node[taken].draft->member[node[taken].at].spec.payload_size;
        if (taken > 0 && bytes > WEFT_BATCH_BYTES)
            break;
        taken++;
    }
    return taken;
}

bool weft_draft_next(const struct weft_draft_rows *rows, size_t most, struct weft_draft_part *part)
{
    part->at += part->count;
    size_t edge = part->at - rows->nodes;
    part->node = part->at < rows->nodes ? rows->node + part->at : NULL;
    part->edge = part->node ? NULL : rows->edge + edge;
    if (part->node)
        part->count = nodes_at_once(part->node, rows->nodes - part->at);
    else
        part->count = rows->edges - edge < EDGES_AT_ONCE ? rows->edges - edge : EDGES_AT_ONCE;
    if (most && part->count > most)
        part->count = most;
    return part->count > 0;
}

enum weft_rc weft_draft_put_part(struct weft_tx *tx, const struct weft_draft_part *part,
                                 weft_usec now_us, struct weft_err *err)
{
    return part->node ? put_nodes(tx, part->node, part->count, now_us, err)
                      : put_edges(tx, part->edge, part->count, err);
}

enum weft_rc weft_draft_put(struct weft_tx *tx, const struct weft_draft_rows *rows,
                            weft_usec now_us, struct weft_err *err)
{
    struct weft_draft_part part = {0};
    enum weft_rc rc = WEFT_OK;
    while (!rc && weft_draft_next(rows, 0, &part))
        rc = weft_draft_put_part(tx, &part, now_us, err);
    return rc;
}
