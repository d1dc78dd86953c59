/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submitting flows whole.
 *
 * Small flows share a transaction, a larger one has its own. A flow too large for one transaction
 * is written in parts under a state that no reader sees, with its roots blocked too; the last part
 * makes it visible and leaves a completion by which the cascade starts the roots. The remains of
 * such a flow after a crash stay invisible, and the cancel_backlog scanner removes them.
 */

#include "engine/flow/flow.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "core/graph.h"
#include "core/spec.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade.h"
#include "engine/flow/draft.h"

#include <string.h>

enum {
    ONE_TX_ROWS = 40000,      /* nodes and edges of a flow that is written in one transaction */
    ONE_TX_ROWS_ALONE = 2000, /* the same in SQLite, where a writer blocks all others */
    PART_ALONE = 2000,   /* nodes, or edges, of a part there; else all that fit a transaction */
    PART_BRIEF = 500,    /* the same while others wait */
    SHARED_NODES = 1000, /* nodes of flows that share a transaction */
    STATE_STAGED = -1,
};

/* A flow on its way into the store. */
struct new_flow {
    const struct weft_flow_spec *spec;
    struct weft_flow_result *answer;
    struct weft_arena *arena; /* of the error in the answer */
    struct weft_draft draft;
    uint8_t fingerprint[32];
    bool lost; /* its key was taken */
};

/* The texts of a flow that are not its nodes'. */
static enum weft_rc check_flow(struct new_flow *flow, const char *ns, struct weft_err *err)
{
    const struct weft_flow_spec *spec = flow->spec;
    flow->draft.ns = spec->ns ? spec->ns : ns;
    enum weft_rc rc = weft_name_check(flow->draft.ns, "namespace", err);
    if (!rc && spec->name)
        rc = weft_name_check(spec->name, "name", err);
    if (!rc && spec->key && !*spec->key)
        rc = weft_invalid(err, "key", "key is empty");
    if (!rc)
        rc = weft_text_check(spec->key, WEFT_KEY_MAX, "key", err);
    if (!rc && spec->node_count == 0)
        rc = weft_invalid(err, "nodes", "a flow has at least one node");
    return rc;
}

/*
 * Whether a flow is written in parts. Each part is a transaction, and others write between two: a
 * store with one writer is never taken for longer than a few thousand rows need.
 */
static bool is_staged(const struct weft_engine *engine, const struct weft_draft *draft)
{
    size_t most = engine->pool.writers == 1 ? ONE_TX_ROWS_ALONE : ONE_TX_ROWS;
    return draft->count + draft->graph.edges > most;
}

static enum weft_rc resolve(struct new_flow *flow, const char *ns, weft_usec now_us,
                            struct weft_arena *arena, struct weft_err *err)
{
    const struct weft_flow_spec *spec = flow->spec;
    const struct weft_graph_input input = {.node = spec->nodes, .count = spec->node_count};
    enum weft_rc rc = check_flow(flow, ns, err);
    if (!rc)
        rc = weft_draft_resolve(&flow->draft, &input, now_us, arena,
                                spec->key ? flow->fingerprint : NULL, err);
    if (rc)
        return rc;
    int partition = spec->key ? weft_id_key_partition(flow->draft.ns, spec->key) : -1;
    weft_id_new(&flow->draft.flow, now_us, partition);
    weft_draft_mint(&flow->draft, &flow->draft.flow);
    return WEFT_OK;
}

static void refuse(const struct new_flow *flow, const struct weft_err *story)
{
    flow->answer->err = story;
    flow->answer->rc = story->rc;
}

/* Answers a flow whose key was taken, from the flow that has the key now. */
static void answer_taken(struct new_flow *flow, const struct weft_rows *rows)
{
    struct weft_flow_result *answer = flow->answer;
    struct weft_id *node = answer->node;
    *answer = (struct weft_flow_result){.node = node};
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_flow_of_key_out *row = &weft_out_flow_of_key(rows)[i];
        int64_t state = row->state;
        if (row->namespace != flow->draft.ns_id || strcmp(row->key, flow->spec->key) != 0)
            continue;
        if (row->fingerprint.size != sizeof(flow->fingerprint) ||
            memcmp(row->fingerprint.data, flow->fingerprint, row->fingerprint.size) != 0) {
            struct weft_err *story = weft_err_new(flow->arena, WEFT_CONFLICT, "key",
                                                  "this key belongs to a flow with other nodes");
            story->hint = weft_hint_other_key;
            refuse(flow, story);
        } else if (state == STATE_STAGED) {
            refuse(flow,
                   weft_err_new(flow->arena, WEFT_BUSY, "key", "this flow is just being written"));
        } else {
            answer->id = row->id;
            answer->state = (enum weft_flow_state)state;
            answer->revision = row->revision;
            answer->duplicate = true;
        }
        return;
    }
    refuse(flow,
           weft_err_new(flow->arena, WEFT_BUSY, "key", "the holder of this key just went away"));
}

/* ---- One transaction ------------------------------------------------------------------------- */

struct flow_batch {
    struct new_flow **flow; /* small ones together, or one that is larger */
    size_t count;
    weft_usec now_us;
};

/* Adds the rows of the flows; marks the flows whose key is taken. */
static enum weft_rc add_flows(struct weft_tx *tx, const struct flow_batch *batch,
                              struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows won = {0};
    struct weft_flow_add_in *in = weft_call_flow_add(&call, tx->arena, batch->count);
    in->now = batch->now_us;
    for (size_t i = 0; i < batch->count; i++) {
        const struct new_flow *flow = batch->flow[i];
        in->row[i].id = flow->draft.flow;
        in->row[i].namespace = flow->draft.ns_id;
        in->row[i].name = flow->spec->name;
        in->row[i].key = flow->spec->key;
        if (flow->spec->key)
            in->row[i].fingerprint =
                (struct weft_blob){flow->fingerprint, sizeof(flow->fingerprint)};
        in->row[i].state = flow->draft.hidden ? STATE_STAGED : WEFT_FLOW_OPEN;
        in->row[i].nodes = (int64_t)flow->spec->node_count;
    }
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &won, err);
    for (size_t i = 0; i < batch->count && !rc; i++) {
        batch->flow[i]->lost = true;
        for (size_t row = 0; row < won.count && batch->flow[i]->lost; row++) {
            batch->flow[i]->lost =
                weft_id_cmp(&weft_out_flow_add(&won)[row].id, &batch->flow[i]->draft.flow) != 0;
        }
    }
    return rc;
}

/* Reads the flows that have the keys that were taken. */
static enum weft_rc read_taken(struct weft_tx *tx, const struct flow_batch *batch,
                               struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    size_t lost = 0;
    struct weft_flow_of_key_in *in = weft_call_flow_of_key(&call, tx->arena, batch->count);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->flow[i]->lost) {
            in->row[lost].namespace = batch->flow[i]->draft.ns_id;
            in->row[lost++].key = batch->flow[i]->spec->key;
        }
    call.rows = lost;
    if (lost == 0)
        return WEFT_OK;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    for (size_t i = 0; i < batch->count && !rc; i++)
        if (batch->flow[i]->lost)
            answer_taken(batch->flow[i], &rows);
    return rc;
}

static struct weft_draft_rows rows_of(const struct flow_batch *batch, struct weft_arena *arena)
{
    const struct weft_draft **draft =
        weft_new_array(arena, const struct weft_draft *, batch->count);
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++)
        if (!batch->flow[i]->lost)
            draft[count++] = &batch->flow[i]->draft;
    return weft_draft_list(draft, count, arena);
}

/* Writes small flows whole, and of a staged flow its row. */
static enum weft_rc write_flows(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct flow_batch *batch = context;
    enum weft_rc rc = add_flows(tx, batch, err);
    if (!rc && !batch->flow[0]->draft.hidden) {
        struct weft_draft_rows rows = rows_of(batch, tx->arena);
        rc = weft_draft_put(tx, &rows, batch->now_us, err);
    }
    return rc ? rc : read_taken(tx, batch, err);
}

static enum weft_rc do_step(struct weft_engine *engine, weft_tx_body *body, void *context,
                            struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, body, context, err);
    weft_arena_free(tx.arena);
    return rc;
}

static void answer_accepted(struct new_flow *flow)
{
    struct weft_flow_result *answer = flow->answer;
    struct weft_id *node = answer->node;
    *answer = (struct weft_flow_result){
        .id = flow->draft.flow, .state = WEFT_FLOW_OPEN, .revision = 1, .node = node};
    for (size_t i = 0; i < flow->spec->node_count && node; i++)
        node[i] = flow->draft.member[i].id;
}

static enum weft_rc run_small(struct weft_engine *engine, struct flow_batch *batch,
                              struct weft_arena *arena, struct weft_err *err)
{
    struct weft_commit_effects news = weft_news_new(arena, batch->now_us);
    enum weft_rc rc = do_step(engine, write_flows, batch, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < batch->count; i++)
        if (!batch->flow[i]->lost) {
            weft_draft_news(&batch->flow[i]->draft, &news);
            answer_accepted(batch->flow[i]);
        }
    weft_news_tell(engine, &news);
    return WEFT_OK;
}

/* ---- In parts -------------------------------------------------------------------------------- */

struct staged_part {
    const struct flow_batch *batch;
    struct weft_draft_part rows;
};

static enum weft_rc fail_late(struct weft_err *err)
{
    return weft_fail(err, WEFT_UNAVAILABLE,
                     "writing the flow took so long that it was given up: submit it anew");
}

/* The row of the flow is locked, so that cancel_backlog does not remove it as abandoned. */
static enum weft_rc hold_part(struct weft_tx *tx, const struct weft_id *flow, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_flow_hold(&call, tx->arena, 1)->row[0].flow = *flow;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc && (rows.count == 0 || weft_out_flow_hold(&rows)->state != STATE_STAGED))
        rc = fail_late(err);
    return rc;
}

static enum weft_rc write_part(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct staged_part *part = context;
    enum weft_rc rc = hold_part(tx, &part->batch->flow[0]->draft.flow, err);
    return rc ? rc : weft_draft_put_part(tx, &part->rows, part->batch->now_us, err);
}

/* Makes the flow visible and lets its roots begin. */
static enum weft_rc write_tail(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct flow_batch *batch = context;
    const struct weft_id *flow = &batch->flow[0]->draft.flow;
    struct weft_call call[2];
    weft_call_flow_open(&call[0], tx->arena)->flow = *flow;
    struct weft_completion_add_in *add = weft_call_completion_add(&call[1], tx->arena, 1);
    add->row[0].flow = *flow;
    add->row[0].id = *flow;
    add->at = tx->now_us;
    struct weft_rows rows[2];
    enum weft_rc rc = weft_tx_run(tx, call, 2, rows, err);
    return !rc && rows[0].count == 0 ? fail_late(err) : rc;
}

/* How many rows a part has at most; 0: all that fit a statement. */
static size_t part_most(struct weft_engine *engine)
{
    if (engine->pool.writers > 1)
        return 0;
    return weft_engine_is_contended(engine) ? PART_BRIEF : PART_ALONE;
}

static enum weft_rc run_staged(struct weft_engine *engine, struct flow_batch *batch,
                               struct weft_arena *arena, struct weft_err *err)
{
    struct new_flow *flow = batch->flow[0];
    enum weft_rc rc = do_step(engine, write_flows, batch, err);
    if (rc || flow->lost)
        return rc;
    struct weft_draft_rows rows = rows_of(batch, arena);
    struct staged_part part = {.batch = batch};
    while (!rc && weft_draft_next(&rows, part_most(engine), &part.rows))
        rc = do_step(engine, write_part, &part, err);
    if (!rc)
        rc = do_step(engine, write_tail, batch, err);
    if (rc)
        return rc;
    answer_accepted(flow);
    /* It is there and will begin: a failure from here on is the dependency scanner's to mend. */
    struct weft_err later;
    (void)!weft_engine_cascade(engine, &flow->draft.flow, 1, &later);
    return WEFT_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* The ids of an existing flow, by name: it may have grown, under the clock of another process. */
static enum weft_rc read_members(struct weft_engine *engine, const struct new_flow *flow,
                                 struct weft_err *err)
{
    struct weft_flow_result *answer = flow->answer;
    struct weft_arena *arena = weft_arena_new();
    struct weft_map place = {0}; /* of a name, in the answer */
    struct weft_id after = {0};
    bool more = true;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < flow->spec->node_count; i++) {
        const char *name = flow->spec->nodes[i].name;
        weft_map_put(&place, name, strlen(name), &answer->node[i]);
    }
    while (more && !rc) { /* until the end: retention may be faster */
        struct weft_call call;
        struct weft_rows rows = {0};
        *weft_call_flow_members(&call, arena) = (struct weft_flow_members_in){
            .flow = answer->id, .after = after, .batch = WEFT_PAGE_MAX};
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
        for (size_t i = 0; i < rows.count && !rc; i++) {
            const struct weft_flow_members_out *row = &weft_out_flow_members(&rows)[i];
            const char *name = row->name;
            struct weft_id *id = weft_map_find(&place, name, strlen(name));
            after = row->id;
            if (id)
                *id = after;
        }
        more = rows.count > 0;
    }
    weft_map_done(&place);
    weft_arena_free(arena);
    return rc;
}

/* Runs small flows together and larger ones alone. */
static enum weft_rc run_flows(struct weft_engine *engine, struct new_flow **flow, size_t count,
                              weft_usec now_us, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t at = 0, taken; at < count && !rc; at += taken) {
        size_t nodes = flow[at]->draft.count;
        taken = 1;
        while (at + taken < count && !flow[at]->draft.hidden && !flow[at + taken]->draft.hidden &&
               nodes + flow[at + taken]->draft.count <= SHARED_NODES)
            nodes += flow[at + taken++]->draft.count;
        struct flow_batch batch = {.flow = flow + at, .count = taken, .now_us = now_us};
        struct weft_arena *arena = weft_arena_new();
        rc = flow[at]->draft.hidden ? run_staged(engine, &batch, arena, err)
                                    : run_small(engine, &batch, arena, err);
        weft_arena_free(arena);
        for (size_t i = at; i < count && rc; i++) /* flows before `at` have their answers */
            refuse(flow[i], weft_err_dup(flow[i]->arena, err));
        if (rc && at > 0)
            return WEFT_OK;
    }
    return rc;
}

enum weft_rc weft_engine_flow_submit(struct weft_engine *engine, const char *ns,
                                     const struct weft_flow_spec *spec, size_t count,
                                     struct weft_arena *arena, struct weft_flow_result *ret_answer,
                                     struct weft_err *err)
{
    struct weft_arena *mine = weft_arena_new();
    struct new_flow *flow = weft_new_array(mine, struct new_flow, count + 1);
    struct new_flow **valid = weft_new_array(mine, struct new_flow *, count + 1);
    weft_usec now_us = weft_clock_now(engine->clock);
    size_t valid_count = 0;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        struct weft_err story = {0};
        struct weft_id *node = ret_answer[i].node;
        ret_answer[i] = (struct weft_flow_result){.node = node};
        flow[i] = (struct new_flow){.spec = &spec[i], .answer = &ret_answer[i], .arena = arena};
        if (resolve(&flow[i], ns, now_us, mine, &story)) {
            refuse(&flow[i], weft_err_dup(arena, &story));
            ret_answer[i].blamed = flow[i].draft.blamed;
            continue;
        }
        flow[i].draft.hidden = is_staged(engine, &flow[i].draft);
        rc = weft_draft_place(engine, &flow[i].draft, &story);
        if (rc == WEFT_LIMIT_EXCEEDED) {
            refuse(&flow[i], weft_err_dup(arena, &story));
            rc = WEFT_OK;
            continue;
        }
        if (rc && err)
            *err = story;
        valid[valid_count++] = &flow[i];
    }
    if (!rc)
        rc = run_flows(engine, valid, valid_count, now_us, err);
    for (size_t i = 0; i < valid_count && !rc; i++)
        if (valid[i]->answer->duplicate && valid[i]->answer->node)
            rc = read_members(engine, valid[i], err);
    weft_arena_free(mine);
    return rc;
}
