/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is done to a large flow is done in parts: no transaction looks at more of it than a chunk,
 * and the next one goes on where the last one ended. And what follows from parts that were counted.
 */

#include "direct.h"
#include "flows.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/flow/cascade.h"
#include "engine/flow/cascade_read.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "engine/tx/commit_effects.h"
#include "engine/tx/tx.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

enum { CHUNK = WEFT_FLOW_CHUNK };

/* The chunk of the next transactions; where there is one writer, as if other threads waited for it.
 */
static size_t chunk_of(struct weft_engine *engine)
{
    engine->pool.waited_us = weft_boot_us() + 3600 * WEFT_SECOND;
    return weft_engine_is_contended(engine) ? WEFT_FLOW_CHUNK_BRIEF : WEFT_FLOW_CHUNK;
}

/* ---- The end of a flow ----------------------------------------------------------------------- */

CASE(flow_end_follows_from_its_sinks)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:a");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    end_node(f, &flow, "b", false);
    end_node(f, &flow, "c", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_FAILED, "a sink failed");
    (void)steer_id(f, WEFT_STEER_REPLAY, id_of(&flow, "b"));
    is_int(flow_state(f, &flow), WEFT_FLOW_OPEN,
           "the flow is open again after a replay of the sink");
    end_node(f, &flow, "b", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED,
           "the flow succeeds after the replayed sink does");
    (void)steer_id(f, WEFT_STEER_REPLAY, id_of(&flow, "c"));
    end_node(f, &flow, "c", false);
    is_int(flow_state(f, &flow), WEFT_FLOW_FAILED, "another one loses its own");
}

CASE(flow_end_after_something_came_behind_a_sink)
{
    static const char *const after[] = {"a", "x"};
    struct drawn flow;
    struct weft_id added;
    draw(&flow, "a; x");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", false);
    const struct weft_node node = {.name = "d",
                                   .spec = {.kind = "d"},
                                   .after = after,
                                   .after_count = 2,
                                   .join = WEFT_JOIN_ANY};
    const struct weft_flow_growth growth = {
        .ns = "default", .flow = flow.answer.id, .revision = 1, .nodes = &node, .node_count = 1};
    struct weft_flow_submitted grown = {.node = &added};
    is_int(engine_flow_grow(f->a, &growth, &grown, &f->err), WEFT_OK, "the flow grows");
    end_node(f, &flow, "x", true);
    struct weft_claimed lease = claim_node(f, "d");
    (void)complete(f, f->a, &lease, "1");
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED,
           "the failed node is no sink any more and the flow succeeds");
}

/* ---- Roots ----------------------------------------------------------------------------------- */

/* As a flow that was written in parts and has just become whole: every second node is a root. */
CASE(flow_roots_begin_in_parts)
{
    enum { MANY = 2 * CHUNK + CHUNK / 2 };
    struct many many;
    struct weft_cascaded done = {0};
    many_new(f, &many, MANY);
    for (size_t i = 1; i < MANY; i += 2)
        many_after(&many, i, i - 1, 1);
    many_submit(f, &many);
    const char *blocked =
        weft_arena_printf(f->arena, "live SET state = %d", (int)WEFT_STATE_BLOCKED);
    run_sql_of(
        f,
        weft_arena_printf(f->arena,
                          "UPDATE weft.%s; UPDATE weft.node SET fired = 0; "
                          "INSERT INTO weft.completion (flow, id, at) "
                          "SELECT id, id, 1 FROM weft.flow",
                          blocked),
        weft_arena_printf(f->arena,
                          "UPDATE %s; UPDATE node SET fired = 0; "
                          "INSERT INTO completion (flow, num, at) SELECT num, 0, 1 FROM flow",
                          blocked));
    size_t chunk = chunk_of(f->b);
    is_int(weft_cascade(f->b, &many.answer.id, 1, UINT64_MAX, &done, &f->err), WEFT_OK, "cascade");
    is_int(done.hops, MANY / chunk + 1, "a chunk of nodes for each hop, not of roots");
    is_int(done.completions, 1, "the completion goes with the last of them");
    is_int(many_in(f, &many, WEFT_STATE_READY), MANY / 2, "all roots may begin");
    is_int(many_in(f, &many, WEFT_STATE_BLOCKED), MANY / 2, "the others wait");
}

/* ---- Edges ----------------------------------------------------------------------------------- */

/* The largest statement that went to the store: by the rows it sent or returned. */
struct widest {
    enum weft_stmt stmt;
    size_t rows;
};

static void keep_widest(void *context, const struct weft_call *call, const struct weft_rows *rows)
{
    struct widest *widest = context;
    size_t more = call->rows > rows->count ? call->rows : rows->count;
    if (more > widest->rows)
        *widest = (struct widest){.stmt = call->stmt, .rows = more};
}

static void ends_first(struct fixture *f, const char *kind)
{
    struct weft_claimed lease = claim_node(f, kind);
    (void)complete(f, f->a, &lease, "1");
}

/* Two flows, larger than a chunk only together, of one, many behind it, and one behind any. */
CASE(flow_hops_over_several_flows_share_a_chunk)
{
    enum { FLOWS = 2, WIDE = CHUNK - CHUNK / 4, JOIN = WIDE + 1, NODES };
    struct many many[FLOWS];
    struct weft_id id[FLOWS];
    struct weft_cascaded done = {0};
    struct widest widest = {0};
    struct weft_fault fault = {.watch = keep_widest, .context = &widest};
    struct weft_engine *watched = open_faulty(f, &fault);
    leave_completions(f->a);
    for (size_t i = 0; i < FLOWS; i++) {
        many_new(f, &many[i], NODES);
        many[i].node[0].spec.kind = "head";
        for (size_t k = 1; k <= WIDE; k++)
            many_after(&many[i], k, 0, 1);
        many_after(&many[i], JOIN, 1, WIDE);
        many[i].node[JOIN].join = WEFT_JOIN_ANY;
        many[i].node[JOIN].spec.kind = "join";
        many_submit(f, &many[i]);
        id[i] = many[i].answer.id;
        ends_first(f, "head");
    }
    widest = (struct widest){0};
    size_t chunk = chunk_of(watched);
    is_int(weft_cascade(watched, id, FLOWS, UINT64_MAX, &done, &f->err), WEFT_OK,
           "one cascade begins both flows");
    is_int(done.hops, ((size_t)FLOWS * WIDE + chunk - 1) / chunk, "a chunk of edges for each hop");
    is_int(done.edges, FLOWS * WIDE, "over all edges");
    ok(widest.rows == chunk + 1, "a chunk and a look ahead: %zu by %s", widest.rows,
       weft_stmts[widest.stmt].name);

    for (size_t i = 0; i < FLOWS; i++)
        is_int(many_in(f, &many[i], WEFT_STATE_READY), WIDE, "all of them may begin");
    for (size_t i = 0; i < FLOWS; i++) {
        const struct weft_claim args = {.worker = "w", .max = CHUNK, .lease_ms = 60000};
        (void)claim_with(f, f->a, &args);
    }
    for (size_t i = 0; i < FLOWS; i++) {
        struct weft_claimed lease = {.id = many[i].answer.node[WIDE / 2], .epoch = 1};
        (void)complete(f, f->a, &lease, "1");
    }
    done = (struct weft_cascaded){0};
    widest = (struct widest){0};
    is_int(weft_cascade(watched, id, FLOWS, UINT64_MAX, &done, &f->err), WEFT_OK,
           "one of each is enough");
    is_int(done.groups.cancelled, FLOWS * (WIDE - 1), "the others are cancelled");
    ok(widest.rows > chunk / 2 && widest.rows <= chunk + 1, "in chunks: %zu by %s", widest.rows,
       weft_stmts[widest.stmt].name);
    for (size_t i = 0; i < FLOWS; i++)
        is_int(many_in(f, &many[i], WEFT_STATE_CANCELLED), WIDE - 1, "all of them");
    weft_engine_close(watched);
}

/* ---- Siblings -------------------------------------------------------------------------------- */

static void count_looks(void *context, const struct weft_call *call, const struct weft_rows *rows)
{
    size_t *looks = context;
    *looks += call->stmt == WEFT_STMT_GROUP_MEMBERS ? rows->count : 0;
}

/* Every join comes after every sibling; the first wants one of them, the next two, and so on. */
CASE(flow_siblings_are_walked_once_per_join)
{
    enum { SIDE = 24, NODES = 2 * SIDE };
    struct many many;
    size_t looks = 0;
    struct weft_fault fault = {.watch = count_looks, .context = &looks};
    struct weft_engine *watched = open_faulty(f, &fault);
    many_new(f, &many, NODES);
    for (size_t i = 0; i < SIDE; i++) {
        struct weft_node *join = &many.node[SIDE + i];
        many_after(&many, SIDE + i, 0, SIDE);
        join->join = WEFT_JOIN_QUORUM;
        join->k = (uint32_t)i + 1;
        join->spec.kind = "join";
    }
    many_submit(f, &many);
    for (size_t i = 0; i < SIDE; i++) {
        struct weft_claimed lease = claim_node(f, "sibling");
        is_int(complete(f, watched, &lease, "1").err.rc, WEFT_OK, "one more");
        is_int(many_in(f, &many, WEFT_STATE_BLOCKED), SIDE - i - 1, "one more join fires");
    }
    is_int(looks, SIDE * (SIDE - 1), "all upstreams, once for each join but the last");
    weft_engine_close(watched);
}

/* ---- Removal --------------------------------------------------------------------------------- */

/* Edges whose upstream is still there. */
static size_t edges_left(struct fixture *f, const struct many *many)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_upstreams_in *in = weft_call_upstreams(&call, f->arena, many->count);
    for (size_t i = 0; i < many->count; i++)
        in->row[i].id = many->answer.node[i];
    is_int(weft_tx_once(f->a, WEFT_TX_READ, &call, f->arena, &rows, &f->err), WEFT_OK, "read them");
    return rows.count;
}

static struct weft_pass_report purge_batch(struct fixture *f, uint32_t batch)
{
    const struct weft_pass_config config = {.batch = batch};
    struct weft_pass_report report = {0};
    is_int(weft_engine_pass(f->b, WEFT_SCANNER_PURGE, &config, &report, &f->err), WEFT_OK, "purge");
    return report;
}

/* A root, 2,500 nodes behind it, and a sink behind them. */
CASE(flow_removal_takes_edges_in_parts)
{
    enum { WIDE = 2 * CHUNK + CHUNK / 2, LAST = WIDE + 1, NODES };
    struct many many;
    many_new(f, &many, NODES);
    for (size_t i = 1; i <= WIDE; i++)
        many_after(&many, i, 0, 1);
    many_after(&many, LAST, 1, WIDE);
    many_submit(f, &many);
    run_sql_of(f, "UPDATE weft.flow SET state = -2", "UPDATE flow SET state = -2");
    is_int(edges_left(f, &many), 2 * WIDE, "all edges are there");
    struct weft_pass_report report = purge_batch(f, 100);
    is_int(counter_of(&report, "edges"), 100, "a batch takes as many edges as members");
    is_int(counter_of(&report, "members"), 0, "no member goes before its edges");
    ok(report.more, "there is more");
    uint64_t edges = 100, members = 0, flows = 0;
    for (int pass = 0; pass < NODES && report.more; pass++) {
        report = purge_batch(f, 100);
        ok(counter_of(&report, "edges") <= 100 && counter_of(&report, "members") <= 100,
           "no batch takes more");
        edges += counter_of(&report, "edges");
        members += counter_of(&report, "members");
        flows += counter_of(&report, "tombstones");
    }
    is_int(edges, 2 * WIDE, "every edge was removed once");
    is_int(members, NODES, "and every member");
    is_int(flows, 1, "and the flow");
    is_int(edges_left(f, &many), 0, "no edge is left");
}

/* ---- Cancel ---------------------------------------------------------------------------------- */

static struct weft_flow_drain cancel_now(struct fixture *f, const struct weft_id *flow,
                                         enum weft_flow_cancel how)
{
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = *flow, .how = how, .reason = "enough"};
    enum weft_flow_state state;
    struct weft_flow_drain drain = {0};
    is_int(weft_engine_flow_cancel(f->a, &args, &state, &drain, &f->err), WEFT_OK, "cancel it");
    return drain;
}

CASE(flow_cancel_takes_its_members_along)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c");
    submit_drawn(f, &flow);
    (void)claim_node(f, "a");
    struct weft_flow_drain drain = cancel_now(f, &flow.answer.id, WEFT_FLOW_CANCEL_ALL);
    is_int(drain.cancelled_now, 3, "the cancel takes three members");
    ok(!drain.more, "the drain reports no more");
    is_str(states(f, &flow), "ccc", "all members are cancelled");
    is_int(flow_state(f, &flow), WEFT_FLOW_CANCELLED, "the flow is cancelled");
    (void)steer_id(f, WEFT_STEER_REPLAY, id_of(&flow, "c"));
    drain = cancel_now(f, &flow.answer.id, WEFT_FLOW_CANCEL_PENDING);
    is_int(drain.cancelled_now, 1, "a second cancel takes the replayed member");
    is_str(states(f, &flow), "ccc", "the replayed member is cancelled again");
}

/* Members that run are passed over once, by each drain. */
CASE(flow_cancel_pending_leaves_running_members)
{
    enum { RUN = 2 * CHUNK + 200, WAIT = 300 };
    struct many many;
    many_new(f, &many, RUN + WAIT);
    many_submit(f, &many);
    for (size_t left = RUN, max; left > 0; left -= max) {
        max = left < CHUNK ? left : CHUNK;
        const struct weft_claim args = {.worker = "w", .max = (uint32_t)max, .lease_ms = 60000};
        is_int(claim_with(f, f->a, &args).count, max, "as many are claimed as were asked for");
    }
    size_t chunk = chunk_of(f->a);
    (void)chunk_of(f->b);
    struct weft_flow_drain drain = cancel_now(f, &many.answer.id, WEFT_FLOW_CANCEL_PENDING);
    is_int(drain.cancelled_now, 0, "the first chunk runs");
    ok(drain.more, "there is more");
    is_int(weft_engine_flow_drain(f->b, &drain, &f->err), WEFT_OK, "go on");
    is_int(drain.cancelled_now, 0, "the second drain cancels nothing either");
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
    uint64_t handled = report.handled;
    /* On a busy machine the time of a pass may be over first. */
    for (int i = 0; i < RUN && report.more; i++) {
        report = run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
        handled += report.handled;
    }
    is_int(handled, WAIT + 1, "the scanner handles the waiting members and the end");
    is_int(weft_engine_flow_drain(f->a, &drain, &f->err), WEFT_OK,
           "a drain call after the scanner succeeds");
    is_int(drain.cancelled_now, WAIT, "the drain reports the members that the scanner cancelled");
    is_int(many_in(f, &many, WEFT_STATE_RUNNING), RUN, "the others run on");
    drain = cancel_now(f, &many.answer.id, WEFT_FLOW_CANCEL_ALL);
    is_int(drain.cancelled_now, chunk, "a stronger cancel begins with the first");
    for (int i = 0; i < RUN && drain.more; i++)
        is_int(weft_engine_flow_drain(f->a, &drain, &f->err), WEFT_OK, "go on");
    is_int(drain.cancelled_now, RUN, "the stronger cancel takes all members that run");
    is_int(many_in(f, &many, WEFT_STATE_CANCELLED), RUN + WAIT, "all members are cancelled");
}

/* A chunk of roots, and behind it one that runs and one that comes after that. */
CASE(flow_cancel_counts_members_that_others_cancelled)
{
    size_t chunk = chunk_of(f->a), runs = chunk, join = runs + 1;
    struct many many;
    many_new(f, &many, chunk + 3);
    many.node[runs].spec.kind = "runs";
    many_after(&many, join, runs, 1);
    many_submit(f, &many);
    struct weft_claimed lease = claim_node(f, "runs");
    struct weft_flow_drain drain = cancel_now(f, &many.answer.id, WEFT_FLOW_CANCEL_ALL);
    is_int(drain.cancelled_now, chunk, "a chunk at once");
    (void)complete(f, f->a, &lease, "1");
    is_int(state_of(f, &many.answer.node[join]), WEFT_STATE_CANCELLED, "one by the cascade");
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_CANCEL_BACKLOG);
    is_int(report.handled, 2, "one by the scanner, which comes to the end");
    is_int(weft_engine_flow_drain(f->a, &drain, &f->err), WEFT_OK, "go on");
    ok(!drain.more, "the drain reports no more");
    is_int(drain.cancelled, chunk, "a chunk was ours");
    is_int(drain.cancelled_now, chunk + 2, "all of them were cancelled because of us");
}

static void remember_flows(void *context, const struct weft_id *flow, size_t count)
{
    struct weft_id *last = context;
    if (count > 0)
        *last = flow[count - 1];
}

/* A flow with thousands of completions leaves room in each hop for another flow. */
CASE(flow_cascade_takes_turns)
{
    enum { PAIRS = 3000 };
    struct many large, small;
    struct weft_id told = {0};
    many_new(f, &large, (size_t)2 * PAIRS);
    for (size_t i = 0; i < PAIRS; i++)
        many_after(&large, PAIRS + i, i, 1);
    many_submit(f, &large);
    many_new(f, &small, 2);
    many_after(&small, 1, 0, 1);
    many_submit(f, &small);
    weft_engine_on_flows(f->a, remember_flows, &told);
    for (size_t left = PAIRS + 1; left > 0;) {
        struct weft_claim_result got = claim(f, f->a, 1000);
        struct weft_complete done[1000];
        struct weft_lease_answer answer[1000];
        for (size_t i = 0; i < got.count; i++)
            done[i] = (struct weft_complete){.id = got.item[i].id, .epoch = got.item[i].epoch};
        if (!ok(got.count > 0 && !engine_complete(f->a, done, got.count, answer, &f->err),
                "end %zu roots", got.count))
            break;
        left -= got.count;
    }
    is_int(many_in(f, &small, WEFT_STATE_READY), 0,
           "no node of the small flow is ready before the round");
    const struct weft_id both[] = {large.answer.id, small.answer.id};
    told = (struct weft_id){0};
    is_int(weft_cascade_chunks(f->a, both, 2, WEFT_CASCADE_ROUND, &f->err), WEFT_OK, "a round");
    is_int(many_in(f, &small, WEFT_STATE_READY), 1, "the small flow moves on");
    uint64_t moved = many_in(f, &large, WEFT_STATE_READY);
    ok(moved > 0 && moved < PAIRS, "the round moves a part of the large flow: %d", (int)moved);
    ok(same_id(&told, &large.answer.id), "the large flow is reported once more");
    is_int(weft_engine_cascade(f->a, &large.answer.id, 1, &f->err), WEFT_OK,
           "the cascade of the large flow runs to its end");
    is_int(many_in(f, &large, WEFT_STATE_READY), PAIRS, "all have moved on");
    weft_engine_on_flows(f->a, NULL, NULL);
}
