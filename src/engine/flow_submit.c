/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submitting flows: check the graph, resolve every node, mint ids, write.
 *
 * A node that comes after others is blocked from its first moment: it cannot be claimed before its
 * join fires. Nodes that come after nothing begin at once. A flow too large for one transaction is
 * written in parts under a state that nobody reads, with its roots blocked too; the last part makes
 * it visible and leaves a completion by which the cascade lets the roots begin. What a crash leaves
 * of such a flow is never seen, and the cancel_backlog scanner removes it.
 */

#include "engine/flow.h"

#include "base/id.h"
#include "core/graph.h"
#include "engine/submit.h"

#include <string.h>

enum {
    ONE_TX_ROWS = 40000, /* nodes and edges of a flow that is written in one transaction */
    NODES_AT_ONCE = 1000,
    EDGES_AT_ONCE = 5000,
    STATE_STAGED = -1,
};

/* A flow on its way into the store. */
struct draft {
    const struct weft_flow_spec *spec;
    struct weft_flow_submitted *answer;
    struct weft_id id;
    const char *ns;
    int32_t ns_id;
    uint8_t fingerprint[32];
    struct weft_graph graph;
    struct weft_submission *member; /* one per node */
    bool staged;
    bool lost; /* its key was taken */
};

/* ---- Checking -------------------------------------------------------------------------------- */

static enum weft_rc check_node(const struct weft_node *node, struct weft_err *err)
{
    if (node->spec.key)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "key",
                               "node '%s' has a key: give the key to the flow", node->name);
    if (node->spec.ns)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "namespace",
                               "node '%s' names a namespace: it has that of its flow", node->name);
    return WEFT_OK;
}

/* Says which node is meant: the story of a spec alone would not tell. */
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

/* The texts of a flow that are not its nodes'. */
static enum weft_rc check_flow(struct draft *draft, const char *ns, struct weft_err *err)
{
    const struct weft_flow_spec *spec = draft->spec;
    draft->ns = spec->ns ? spec->ns : ns;
    enum weft_rc rc = weft_name_check(draft->ns, "namespace", err);
    if (!rc && spec->name)
        rc = weft_name_check(spec->name, "name", err);
    if (!rc && spec->key && !*spec->key)
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "key", "key is empty");
    if (!rc)
        rc = weft_text_check(spec->key, WEFT_KEY_MAX, "key", err);
    if (!rc && spec->node_count == 0)
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "nodes", "a flow has at least one node");
    return rc;
}

/* Everything that can be wrong with a flow is found here, before anything is written. */
static enum weft_rc resolve(struct draft *draft, const char *ns, weft_usec now_us,
                            struct weft_arena *arena, struct weft_err *err)
{
    const struct weft_flow_spec *spec = draft->spec;
    const struct weft_graph_input input = {.node = spec->nodes, .count = spec->node_count};
    enum weft_rc rc = check_flow(draft, ns, err);
    if (!rc)
        rc = weft_graph_build(&input, arena, &draft->graph, err);
    if (rc)
        return rc;
    draft->member = weft_new_array(arena, struct weft_submission, spec->node_count);
    for (size_t i = 0; i < spec->node_count; i++) {
        const struct weft_node *node = &spec->nodes[i];
        struct weft_resolved *member = &draft->member[i].spec;
        rc = check_node(node, err);
        if (!rc)
            rc = weft_spec_resolve(&node->spec, draft->ns, now_us, arena, member, err);
        if (rc)
            return blame(node, err);
        if (spec->key) {
            weft_spec_fingerprint(member);
            weft_graph_fingerprint(node, member->fingerprint, draft->fingerprint);
        }
    }
    draft->staged = spec->node_count + draft->graph.edges > ONE_TX_ROWS;
    return WEFT_OK;
}

/* The members of a flow share its partition, and their ids follow each other. */
static void mint(struct draft *draft, weft_usec now_us)
{
    int partition = draft->spec->key ? weft_id_key_partition(draft->ns, draft->spec->key) : -1;
    weft_id_new(&draft->id, now_us, partition);
    const struct weft_id *last = &draft->id;
    for (size_t i = 0; i < draft->spec->node_count; i++) {
        weft_id_next(&draft->member[i].id, last);
        last = &draft->member[i].id;
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

struct node_ref {
    const struct draft *draft;
    size_t at;
};

struct edge_ref {
    const struct weft_id *upstream, *downstream;
};

/* The rows of flows, all nodes before all edges. */
struct rows_to_write {
    struct node_ref *node;
    size_t nodes;
    struct edge_ref *edge;
    size_t edges;
};

static struct rows_to_write list_rows(struct draft *const *draft, size_t count,
                                      struct weft_arena *arena)
{
    size_t nodes = 0, edges = 0;
    for (size_t d = 0; d < count; d++) {
        nodes += draft[d]->spec->node_count;
        edges += draft[d]->graph.edges;
    }
    struct rows_to_write rows = {.node = weft_new_array(arena, struct node_ref, nodes + 1),
                                 .edge = weft_new_array(arena, struct edge_ref, edges + 1)};
    for (size_t d = 0; d < count; d++) {
        const struct weft_graph *graph = &draft[d]->graph;
        const struct weft_submission *member = draft[d]->member;
        for (size_t i = 0; i < draft[d]->spec->node_count && !draft[d]->lost; i++) {
            rows.node[rows.nodes++] = (struct node_ref){.draft = draft[d], .at = i};
            for (uint32_t e = graph->first[i]; e < graph->first[i + 1]; e++)
                rows.edge[rows.edges++] = (struct edge_ref){
                    .upstream = &member[graph->upstream[e]].id, .downstream = &member[i].id};
        }
    }
    return rows;
}

/* A node that comes after others waits for them, and only then for its time. */
static void put_node(struct weft_call *call, size_t row, const struct node_ref *ref)
{
    const struct weft_node *node = &ref->draft->spec->nodes[ref->at];
    const struct weft_submission *item = &ref->draft->member[ref->at];
    const struct weft_resolved *spec = &item->spec;
    bool blocked = node->after_count > 0 || ref->draft->staged;
    weft_set_id(call, row, FLOW_NODES_IN_FLOW, &ref->draft->id);
    weft_set_id(call, row, FLOW_NODES_IN_ID, &item->id);
    weft_set_i64(call, row, FLOW_NODES_IN_ORD, item->ord);
    weft_set_i64(call, row, FLOW_NODES_IN_QUEUE, item->queue->id);
    weft_set_i64(call, row, FLOW_NODES_IN_LANE, item->queue->lane);
    weft_set_i64(call, row, FLOW_NODES_IN_POLICY, item->policy);
    weft_set_i64(call, row, FLOW_NODES_IN_PRIORITY, spec->priority);
    weft_set_i64(call, row, FLOW_NODES_IN_STATE, blocked ? WEFT_STATE_BLOCKED : spec->state);
    if (spec->due_us && !blocked)
        weft_set_i64(call, row, FLOW_NODES_IN_DUE, spec->due_us);
    if (spec->deadline_us)
        weft_set_i64(call, row, FLOW_NODES_IN_DEADLINE, spec->deadline_us);
    weft_set_text(call, row, FLOW_NODES_IN_CONTENT_TYPE, spec->content_type);
    weft_set_text(call, row, FLOW_NODES_IN_TAGS, spec->tags);
    weft_set_bytes(call, row, FLOW_NODES_IN_PAYLOAD, spec->payload, spec->payload_size);
    weft_set_i64(call, row, FLOW_NODES_IN_SIZE, (int64_t)spec->payload_size);
    weft_set_text(call, row, FLOW_NODES_IN_NAME, node->name);
    weft_set_i64(call, row, FLOW_NODES_IN_JOIN_POLICY, node->join);
    weft_set_i64(call, row, FLOW_NODES_IN_K, node->k);
    weft_set_i64(call, row, FLOW_NODES_IN_LET_RUN, lets_run(node));
    weft_set_i64(call, row, FLOW_NODES_IN_TOTAL, (int64_t)node->after_count);
    weft_set_i64(call, row, FLOW_NODES_IN_FIRED, blocked ? WEFT_FIRED_NOT : WEFT_FIRED_SATISFIED);
    weft_set_i64(call, row, FLOW_NODES_IN_DELAY, node->spec.delay_ms * WEFT_MS);
    weft_set_i64(call, row, FLOW_NODES_IN_RUN_AT, node->spec.run_at_us);
}

static enum weft_rc write_nodes(struct weft_tx *tx, const struct node_ref *node, size_t count,
                                weft_usec now_us, struct weft_err *err)
{
    struct weft_call call;
    weft_call_init(&call, tx->arena, WEFT_STMT_FLOW_NODES, count);
    weft_set_i64(&call, 0, FLOW_NODES_IN_NOW, now_us);
    for (size_t i = 0; i < count; i++)
        put_node(&call, i, &node[i]);
    return weft_tx_run(tx, &call, 1, NULL, err);
}

static enum weft_rc write_edges(struct weft_tx *tx, const struct edge_ref *edge, size_t count,
                                struct weft_err *err)
{
    struct weft_call call;
    weft_call_init(&call, tx->arena, WEFT_STMT_FLOW_EDGES, count);
    for (size_t i = 0; i < count; i++) {
        weft_set_id(&call, i, FLOW_EDGES_IN_UPSTREAM, edge[i].upstream);
        weft_set_id(&call, i, FLOW_EDGES_IN_DOWNSTREAM, edge[i].downstream);
    }
    return weft_tx_run(tx, &call, 1, NULL, err);
}

/* How many of the nodes go into one statement: bounded in number and in bytes. */
static size_t nodes_of_statement(const struct node_ref *node, size_t count)
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

static size_t edges_of_statement(size_t count)
{
    return count < EDGES_AT_ONCE ? count : EDGES_AT_ONCE;
}

/* Answers a flow whose key was taken, from what holds the key now. */
static void answer_taken(struct draft *draft, const struct weft_rows *rows)
{
    struct weft_flow_submitted *answer = draft->answer;
    struct weft_id *node = answer->node;
    *answer = (struct weft_flow_submitted){.node = node};
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_cell *print = weft_get(rows, i, FLOW_OF_KEY_OUT_FINGERPRINT);
        int64_t state = weft_get_i64(rows, i, FLOW_OF_KEY_OUT_STATE);
        if (weft_get_i64(rows, i, FLOW_OF_KEY_OUT_NAMESPACE) != draft->ns_id ||
            strcmp(weft_get_text(rows, i, FLOW_OF_KEY_OUT_KEY), draft->spec->key) != 0)
            continue;
        if (print->size != sizeof(draft->fingerprint) ||
            memcmp(print->data, draft->fingerprint, print->size) != 0) {
            weft_fail_field(&answer->err, WEFT_CONFLICT, "key",
                            "this key belongs to a flow with other nodes");
            answer->err.hint = "use another key, or submit exactly what was submitted first";
        } else if (state == STATE_STAGED) {
            weft_fail_field(&answer->err, WEFT_BUSY, "key", "this flow is just being written");
        } else {
            answer->id = weft_get_id(rows, i, FLOW_OF_KEY_OUT_ID);
            answer->state = (enum weft_flow_state)state;
            answer->revision = (int32_t)weft_get_i64(rows, i, FLOW_OF_KEY_OUT_REVISION);
            answer->duplicate = true;
        }
        return;
    }
    weft_fail_field(&answer->err, WEFT_BUSY, "key", "the holder of this key just went away");
}

/* ---- One transaction ------------------------------------------------------------------------- */

struct flow_batch {
    struct draft **draft; /* small ones together, or one that is larger */
    size_t count;
    weft_usec now_us;
};

/* Adds the rows of the flows; marks those whose key is taken. */
static enum weft_rc add_flows(struct weft_tx *tx, const struct flow_batch *batch,
                              struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows won;
    weft_call_init(&call, tx->arena, WEFT_STMT_FLOW_ADD, batch->count);
    weft_set_i64(&call, 0, FLOW_ADD_IN_NOW, batch->now_us);
    for (size_t i = 0; i < batch->count; i++) {
        const struct draft *draft = batch->draft[i];
        weft_set_id(&call, i, FLOW_ADD_IN_ID, &draft->id);
        weft_set_i64(&call, i, FLOW_ADD_IN_NAMESPACE, draft->ns_id);
        weft_set_text(&call, i, FLOW_ADD_IN_NAME, draft->spec->name);
        weft_set_text(&call, i, FLOW_ADD_IN_KEY, draft->spec->key);
        if (draft->spec->key)
            weft_set_bytes(&call, i, FLOW_ADD_IN_FINGERPRINT, draft->fingerprint,
                           sizeof(draft->fingerprint));
        weft_set_i64(&call, i, FLOW_ADD_IN_STATE, draft->staged ? STATE_STAGED : WEFT_FLOW_OPEN);
        weft_set_i64(&call, i, FLOW_ADD_IN_NODES, (int64_t)draft->spec->node_count);
    }
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &won, err);
    for (size_t i = 0; i < batch->count && !rc; i++) {
        batch->draft[i]->lost = true;
        for (size_t row = 0; row < won.count && batch->draft[i]->lost; row++) {
            struct weft_id id = weft_get_id(&won, row, FLOW_ADD_OUT_ID);
            batch->draft[i]->lost = weft_id_cmp(&id, &batch->draft[i]->id) != 0;
        }
    }
    return rc;
}

/* What holds the keys that were taken. */
static enum weft_rc read_taken(struct weft_tx *tx, const struct flow_batch *batch,
                               struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    size_t lost = 0;
    weft_call_init(&call, tx->arena, WEFT_STMT_FLOW_OF_KEY, batch->count);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->draft[i]->lost) {
            weft_set_i64(&call, lost, FLOW_OF_KEY_IN_NAMESPACE, batch->draft[i]->ns_id);
            weft_set_text(&call, lost++, FLOW_OF_KEY_IN_KEY, batch->draft[i]->spec->key);
        }
    call.rows = lost;
    if (lost == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    for (size_t i = 0; i < batch->count && !rc; i++)
        if (batch->draft[i]->lost)
            answer_taken(batch->draft[i], &rows);
    return rc;
}

static enum weft_rc write_small(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct flow_batch *batch = context;
    enum weft_rc rc = add_flows(tx, batch, err);
    if (rc)
        return rc;
    struct rows_to_write rows = list_rows(batch->draft, batch->count, tx->arena);
    for (size_t at = 0, taken; at < rows.nodes && !rc; at += taken) {
        taken = nodes_of_statement(rows.node + at, rows.nodes - at);
        rc = write_nodes(tx, rows.node + at, taken, batch->now_us, err);
    }
    for (size_t at = 0, taken; at < rows.edges && !rc; at += taken) {
        taken = edges_of_statement(rows.edges - at);
        rc = write_edges(tx, rows.edge + at, taken, err);
    }
    return rc ? rc : read_taken(tx, batch, err);
}

static void answer_accepted(struct draft *draft)
{
    struct weft_flow_submitted *answer = draft->answer;
    struct weft_id *node = answer->node;
    *answer = (struct weft_flow_submitted){
        .id = draft->id, .state = WEFT_FLOW_OPEN, .revision = 1, .node = node};
    for (size_t i = 0; i < draft->spec->node_count && node; i++)
        node[i] = draft->member[i].id;
}

/* What began with the flows, and what will become due. */
static void tell(struct weft_tx *tx, const struct flow_batch *batch)
{
    struct weft_tidings news = weft_news_new(tx->arena, batch->now_us);
    for (size_t d = 0; d < batch->count; d++) {
        const struct draft *draft = batch->draft[d];
        for (size_t i = 0; i < draft->spec->node_count && !draft->lost; i++) {
            const struct weft_resolved *spec = &draft->member[i].spec;
            weft_news_due(&news, spec->deadline_us);
            if (draft->spec->nodes[i].after_count > 0 || draft->staged)
                continue;
            if (spec->state == WEFT_STATE_READY)
                weft_news_of(&news, draft->member[i].queue->id)->ready++;
            else
                weft_news_due(&news, spec->due_us);
        }
    }
    weft_news_tell(tx->engine, &news);
}

static enum weft_rc run_small(struct weft_engine *engine, struct flow_batch *batch,
                              struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, write_small, batch, err);
    if (!rc)
        tell(&tx, batch);
    for (size_t i = 0; i < batch->count && !rc; i++)
        if (!batch->draft[i]->lost)
            answer_accepted(batch->draft[i]);
    weft_arena_free(tx.arena);
    return rc;
}

/* ---- In parts -------------------------------------------------------------------------------- */

/* One statement's worth of a staged flow. */
struct staged_part {
    const struct flow_batch *batch;
    const struct node_ref *node;
    const struct edge_ref *edge;
    size_t count;
};

static enum weft_rc write_head(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct flow_batch *batch = context;
    enum weft_rc rc = add_flows(tx, batch, err);
    return rc ? rc : read_taken(tx, batch, err);
}

static enum weft_rc write_part(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct staged_part *part = context;
    if (part->node)
        return write_nodes(tx, part->node, part->count, part->batch->now_us, err);
    return write_edges(tx, part->edge, part->count, err);
}

/* Makes the flow visible and lets its roots begin. */
static enum weft_rc write_tail(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct weft_id *flow = &((const struct flow_batch *)context)->draft[0]->id;
    struct weft_call call[2];
    weft_call_init(&call[0], tx->arena, WEFT_STMT_FLOW_OPEN, 0);
    weft_set_id(&call[0], 0, FLOW_OPEN_IN_FLOW, flow);
    weft_call_init(&call[1], tx->arena, WEFT_STMT_COMPLETION_ADD, 1);
    weft_set_id(&call[1], 0, COMPLETION_ADD_IN_FLOW, flow);
    weft_set_id(&call[1], 0, COMPLETION_ADD_IN_ID, flow);
    weft_set_i64(&call[1], 0, COMPLETION_ADD_IN_AT, tx->now_us);
    return weft_tx_run(tx, call, 2, NULL, err);
}

static enum weft_rc do_step(struct weft_engine *engine, weft_tx_body *body, void *context,
                            struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, body, context, err);
    weft_arena_free(tx.arena);
    return rc;
}

static enum weft_rc run_staged(struct weft_engine *engine, struct flow_batch *batch,
                               struct weft_arena *arena, struct weft_err *err)
{
    struct draft *draft = batch->draft[0];
    enum weft_rc rc = do_step(engine, write_head, batch, err);
    if (rc || draft->lost)
        return rc;
    struct rows_to_write rows = list_rows(batch->draft, 1, arena);
    struct staged_part part = {.batch = batch};
    for (size_t at = 0; at < rows.nodes && !rc; at += part.count) {
        part.node = rows.node + at;
        part.count = nodes_of_statement(part.node, rows.nodes - at);
        rc = do_step(engine, write_part, &part, err);
    }
    part.node = NULL;
    for (size_t at = 0; at < rows.edges && !rc; at += part.count) {
        part.edge = rows.edge + at;
        part.count = edges_of_statement(rows.edges - at);
        rc = do_step(engine, write_part, &part, err);
    }
    if (!rc)
        rc = do_step(engine, write_tail, batch, err);
    if (rc)
        return rc;
    answer_accepted(draft);
    /* It is there and will begin: a failure from here on is the dependency scanner's to mend. */
    struct weft_cascaded cascaded = {0};
    struct weft_err later;
    (void)!weft_cascade(engine, &draft->id, 1, &cascaded, &later);
    return WEFT_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* The ids of a flow that was there already: in the order of its nodes, as they were minted. */
static enum weft_rc read_members(struct weft_engine *engine, const struct draft *draft,
                                 struct weft_err *err)
{
    struct weft_flow_submitted *answer = draft->answer;
    struct weft_arena *arena = weft_arena_new();
    struct weft_id after = {0};
    size_t count = 0;
    enum weft_rc rc = WEFT_OK;
    while (count < draft->spec->node_count && !rc) {
        struct weft_call call;
        struct weft_rows rows = {0};
        weft_call_init(&call, arena, WEFT_STMT_FLOW_MEMBERS, 0);
        weft_set_id(&call, 0, FLOW_MEMBERS_IN_FLOW, &answer->id);
        weft_set_id(&call, 0, FLOW_MEMBERS_IN_AFTER, &after);
        weft_set_i64(&call, 0, FLOW_MEMBERS_IN_BATCH, WEFT_PAGE_MAX);
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
        for (size_t i = 0; i < rows.count && count < draft->spec->node_count && !rc; i++)
            answer->node[count++] = after = weft_get_id(&rows, i, FLOW_MEMBERS_OUT_ID);
        if (!rc && rows.count == 0)
            break; /* retention was faster */
    }
    weft_arena_free(arena);
    return rc;
}

/* Namespaces, queues and policies of all members, and their places in the order. */
static enum weft_rc place(struct weft_engine *engine, struct draft *draft, struct weft_err *err)
{
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = draft->ns};
    enum weft_rc rc = weft_intern_names(engine, true, &space, 1, err);
    draft->ns_id = space.id;
    return rc ? rc : weft_submission_place(engine, draft->member, draft->spec->node_count, err);
}

/* Runs small flows together and larger ones alone. */
static enum weft_rc run_drafts(struct weft_engine *engine, struct draft **draft, size_t count,
                               weft_usec now_us, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t at = 0, taken; at < count && !rc; at += taken) {
        size_t nodes = draft[at]->spec->node_count;
        taken = 1;
        while (at + taken < count && !draft[at]->staged && !draft[at + taken]->staged &&
               nodes + draft[at + taken]->spec->node_count <= NODES_AT_ONCE)
            nodes += draft[at + taken++]->spec->node_count;
        struct flow_batch batch = {.draft = draft + at, .count = taken, .now_us = now_us};
        if (draft[at]->staged) {
            struct weft_arena *arena = weft_arena_new();
            rc = run_staged(engine, &batch, arena, err);
            weft_arena_free(arena);
        } else {
            rc = run_small(engine, &batch, err);
        }
        for (size_t i = at; i < count && rc; i++) /* what was done before has its answer */
            draft[i]->answer->err = *err;
        if (rc && at > 0)
            return WEFT_OK;
    }
    return rc;
}

enum weft_rc weft_engine_flow_submit(struct weft_engine *engine, const char *ns,
                                     const struct weft_flow_spec *spec, size_t count,
                                     struct weft_flow_submitted *ret_answer, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct draft *draft = weft_new_array(arena, struct draft, count + 1);
    struct draft **valid = weft_new_array(arena, struct draft *, count + 1);
    weft_usec now_us = weft_clock_now(engine->clock);
    size_t valid_count = 0;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        struct weft_err story = {0};
        struct weft_id *node = ret_answer[i].node;
        ret_answer[i] = (struct weft_flow_submitted){.node = node};
        draft[i] = (struct draft){.spec = &spec[i], .answer = &ret_answer[i]};
        if (resolve(&draft[i], ns, now_us, arena, &story)) {
            ret_answer[i].err = story;
            continue;
        }
        mint(&draft[i], now_us);
        rc = place(engine, &draft[i], err);
        valid[valid_count++] = &draft[i];
    }
    if (!rc)
        rc = run_drafts(engine, valid, valid_count, now_us, err);
    for (size_t i = 0; i < valid_count && !rc; i++)
        if (valid[i]->answer->duplicate && valid[i]->answer->node)
            rc = read_members(engine, valid[i], err);
    weft_arena_free(arena);
    return rc;
}
