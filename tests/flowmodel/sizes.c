/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Large graphs: ten thousand upstreams of one join, a chain of ten thousand skips, and one to ten
 * thousand to one. A driver around the store's own counts what each transaction touches.
 */

#include "sizes.h"
#include "direct.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/engine.h"
#include "engine/flow/cascade.h"
#include "engine/flow/cascade_read.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "engine/scan/pass.h"
#include "engine/tx/commit_effects.h"
#include "engine/tx/tx.h"
#include "store/store.h"
#include "weft/admin.h"
#include "weft/weft.h"

enum {
    WIDE = 10000,
    BATCH = 1000,
    SHORT = 2000,
    DENSE = 290, /* nodes, each after all before it: more edges than one transaction writes */
    FEW = 900,
};

/* ---- Counting -------------------------------------------------------------------------------- */

static struct {
    const struct weft_driver *inner;
    struct weft_driver driver;
    size_t edges, ends;           /* of the transaction in hand */
    size_t most_edges, most_ends; /* of any */
    size_t transactions;
    bool refuses; /* cascades fail, as if the store were gone by then */
    /* Called once, between the transaction that writes nodes and the next. */
    void (*behind_nodes)(void);
    bool nodes_written;
} count;

static struct weft_engine *other; /* on the same store, and not counted */

static enum weft_rc counted_open(const char *url, struct weft_conn **ret_conn, struct weft_err *err)
{
    enum weft_rc rc = count.inner->open(url, ret_conn, err);
    if (!rc)
        (*ret_conn)->driver = &count.driver;
    return rc;
}

static enum weft_rc counted_begin(struct weft_conn *conn, enum weft_tx_mode mode,
                                  struct weft_err *err)
{
    count.edges = count.ends = 0;
    count.transactions++;
    if (count.nodes_written && count.behind_nodes) {
        void (*act)(void) = count.behind_nodes;
        count.behind_nodes = NULL;
        act();
    }
    return count.inner->begin(conn, mode, err);
}

static void count_calls(const struct weft_call *call, size_t calls)
{
    for (size_t i = 0; i < calls; i++) {
        count.edges += call[i].stmt == WEFT_STMT_EDGE_PUT ? call[i].rows : 0;
        count.ends += call[i].stmt == WEFT_STMT_LIVE_END ? call[i].rows : 0;
        count.nodes_written |= call[i].stmt == WEFT_STMT_FLOW_NODES;
    }
    count.most_edges = count.edges > count.most_edges ? count.edges : count.most_edges;
    count.most_ends = count.ends > count.most_ends ? count.ends : count.most_ends;
}

/* The contract of the driver table has six parameters. NOLINTNEXTLINE(readability-function-size) */
static enum weft_rc counted_run(struct weft_conn *conn, const struct weft_call *call, size_t calls,
                                struct weft_arena *arena, struct weft_rows *ret_rows,
                                struct weft_err *err)
{
    count_calls(call, calls);
    if (count.refuses && call[0].stmt == WEFT_STMT_FLOW_LOCK)
        return weft_fail(err, WEFT_UNAVAILABLE, "refused");
    return count.inner->run(conn, call, calls, arena, ret_rows, err);
}

/* As above. NOLINTNEXTLINE(readability-function-size) */
static enum weft_rc counted_last(struct weft_conn *conn, const struct weft_call *call, size_t calls,
                                 struct weft_arena *arena, struct weft_rows *ret_rows,
                                 struct weft_err *err)
{
    count_calls(call, calls);
    return count.inner->last(conn, call, calls, arena, ret_rows, err);
}

static struct weft_engine *open_counted(const struct place *place)
{
    count.inner = on_pg() ? &weft_driver_pg : &weft_driver_sqlite;
    count.driver = *count.inner;
    count.driver.open = counted_open;
    count.driver.begin = counted_begin;
    count.driver.run = counted_run;
    count.driver.last = counted_last;
    return place_open(place, &count.driver, START_US);
}

static void count_anew(void)
{
    count.nodes_written = false;
    count.most_edges = count.most_ends = count.transactions = 0;
}

static void is_bounded(const char *what)
{
    ok(count.most_edges <= WEFT_FLOW_CHUNK, "%s: a transaction touches at most %zu edges", what,
       count.most_edges);
}

/* ---- Large flows ----------------------------------------------------------------------------- */

struct large {
    struct weft_engine *engine;
    struct weft_arena *arena;
    struct weft_node *node;
    size_t count;
    struct weft_id *id;
    struct weft_id flow;
    weft_usec begun_us;
};

static const char *name_of(struct large *large, size_t i)
{
    return large->node[i].name;
}

/* Nodes in a row, each of the kind given, with no edges yet. */
static void large_init(struct large *large, struct weft_engine *engine, size_t nodes)
{
    *large = (struct large){.engine = engine, .arena = weft_arena_new(), .count = nodes};
    large->node = weft_new_array(large->arena, struct weft_node, nodes);
    large->id = weft_new_array(large->arena, struct weft_id, nodes);
    for (size_t i = 0; i < nodes; i++)
        large->node[i] = (struct weft_node){.name = weft_arena_printf(large->arena, "n%zu", i),
                                            .spec = {.kind = "middle"}};
    large->begun_us = weft_boot_us();
}

static void come_after(struct large *large, size_t node, size_t first, size_t upstreams)
{
    const char **after = weft_new_array(large->arena, const char *, upstreams);
    for (size_t i = 0; i < upstreams; i++)
        after[i] = name_of(large, first + i);
    large->node[node].after = after;
    large->node[node].after_count = upstreams;
}

static void took(struct large *large, const char *what)
{
    printf("# %s: %lld ms\n", what, (long long)((weft_boot_us() - large->begun_us) / WEFT_MS));
    large->begun_us = weft_boot_us();
}

static void large_submit(struct large *large)
{
    struct weft_flow_submitted answer = {.node = large->id};
    struct weft_err err = {0};
    const struct weft_flow_spec spec = {.nodes = large->node, .node_count = large->count};
    enum weft_rc rc = engine_flow_submit(large->engine, "default", &spec, 1, &answer, &err);
    ok(rc == WEFT_OK && answer.err.rc == WEFT_OK, "%zu nodes are submitted %s", large->count,
       rc ? err.text : answer.err.text);
    large->flow = answer.id;
    took(large, "submit");
}

/* Claims up to BATCH of a kind and ends them; returns how many there were. */
static size_t end_some(struct large *large, const char *kind, bool good)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result got = {0};
    struct weft_err err = {0};
    const struct weft_claim claim = {
        .worker = "worker", .kinds = &kind, .kind_count = 1, .max = BATCH, .lease_ms = 86400000};
    if (weft_engine_claim(large->engine, "default", &claim, 1, arena, &got, &err))
        bail_out("claim: %s", err.text);
    struct weft_complete *done = weft_new_array(arena, struct weft_complete, got.count + 1);
    struct weft_failure *bad = weft_new_array(arena, struct weft_failure, got.count + 1);
    struct weft_lease_answer *answer =
        weft_new_array(arena, struct weft_lease_answer, got.count + 1);
    for (size_t i = 0; i < got.count; i++) {
        done[i] = (struct weft_complete){.id = got.item[i].id, .epoch = got.item[i].epoch};
        bad[i] = (struct weft_failure){
            .id = got.item[i].id, .epoch = got.item[i].epoch, .permanent = true};
    }
    if (got.count > 0 && (good ? engine_complete(large->engine, done, got.count, answer, &err)
                               : engine_fail(large->engine, bad, got.count, answer, &err)))
        bail_out("end: %s", err.text);
    size_t ended = got.count;
    weft_arena_free(arena);
    return ended;
}

static size_t end_all(struct large *large, const char *kind)
{
    size_t all = 0, some;
    while ((some = end_some(large, kind, true)) > 0)
        all += some;
    return all;
}

static void is_over(struct large *large, enum weft_flow_state want)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_err err = {0};
    weft_call_flow_read(&call, large->arena)->id = large->flow;
    enum weft_rc rc = weft_tx_once(large->engine, WEFT_TX_READ, &call, large->arena, &rows, &err);
    is_int(rc || rows.count == 0 ? -1 : weft_out_flow_read(&rows)->flow_head.state, want,
           "the flow ends as it must");
    weft_arena_free(large->arena);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void wide_join(struct weft_engine *engine)
{
    struct large large;
    large_init(&large, engine, WIDE + 1);
    come_after(&large, WIDE, 0, WIDE);
    large.node[WIDE].spec.kind = "last";
    large_submit(&large);
    count_anew();
    is_int(end_all(&large, "middle"), WIDE, "all upstreams end");
    is_bounded("a join of 10,000");
    took(&large, "10,000 upstreams");
    is_int(end_all(&large, "last"), 1, "the join fired once");
    is_over(&large, WEFT_FLOW_SUCCEEDED);
}

/* A transaction per hop: on PostgreSQL the whole length takes its time. */
static void skip_chain(struct weft_engine *engine)
{
    struct large large;
    size_t length = on_pg() && !soaking() ? SHORT : WIDE;
    large_init(&large, engine, length);
    for (size_t i = 1; i < length; i++)
        come_after(&large, i, i - 1, 1);
    large_submit(&large);
    count_anew();
    is_int(end_some(&large, "middle", false), 1, "the first fails");
    took(&large, "a chain of skips");
    is_int(state_at(engine, &large.id[length - 1]), WEFT_STATE_SKIPPED, "the last is skipped");
    is_int(count.most_edges, 1, "a hop goes one node further");
    is_over(&large, WEFT_FLOW_FAILED);
}

static void fan(struct weft_engine *engine)
{
    struct large large;
    large_init(&large, engine, WIDE + 2);
    large.node[0].spec.kind = "first";
    for (size_t i = 1; i <= WIDE; i++)
        come_after(&large, i, 0, 1);
    come_after(&large, WIDE + 1, 1, WIDE);
    large.node[WIDE + 1].spec.kind = "last";
    large_submit(&large);
    count_anew();
    is_int(end_all(&large, "first"), 1, "the first ends");
    took(&large, "1 -> 10,000");
    is_bounded("a fan-out of 10,000");
    is_int(end_all(&large, "middle"), WIDE, "each member behind the first is claimed once");
    is_bounded("a fan-in of 10,000");
    took(&large, "10,000 -> 1");
    is_int(end_all(&large, "last"), 1, "the last join fired once");
    is_over(&large, WEFT_FLOW_SUCCEEDED);
}

/* A winner and ten thousand that lost: they are cancelled in bounded steps. */
static void race_of_many(struct weft_engine *engine)
{
    struct large large;
    large_init(&large, engine, WIDE + 2);
    large.node[0].spec.kind = "first";
    come_after(&large, WIDE + 1, 0, WIDE + 1);
    large.node[WIDE + 1].join = WEFT_JOIN_ANY;
    large.node[WIDE + 1].spec.kind = "last";
    large_submit(&large);
    count_anew();
    is_int(end_all(&large, "first"), 1, "the winner ends");
    took(&large, "10,000 siblings");
    is_bounded("10,000 siblings");
    ok(count.most_ends <= WEFT_FLOW_CHUNK, "a transaction ends at most %zu of them",
       count.most_ends);
    is_int(state_at(engine, &large.id[WIDE]), WEFT_STATE_CANCELLED,
           "the last sibling is cancelled");
    is_int(end_all(&large, "middle"), 0, "no sibling is left to claim");
    is_int(end_all(&large, "last"), 1, "the join fired once");
    is_over(&large, WEFT_FLOW_SUCCEEDED);
}

static void leave_completions(void *context, const struct weft_id *flow, size_t flows)
{
    (void)context;
    (void)flow;
    (void)flows;
}

/* A join that was impossible and is satisfied at once, ten thousand times behind one node. */
static void replay_of_many(struct weft_engine *engine)
{
    struct large large;
    struct weft_err err = {0};
    large_init(&large, engine, WIDE + 1);
    large.node[0].spec.kind = "first";
    for (size_t i = 1; i <= WIDE; i++)
        come_after(&large, i, 0, 1);
    large_submit(&large);
    is_int(end_some(&large, "first", false), 1, "the first fails");
    took(&large, "10,000 skips at once");
    weft_engine_on_flows(engine, leave_completions, NULL);
    is_int(steer_one(engine, WEFT_STEER_REPLAY, &(struct weft_steer){.id = large.id[0]}).err.rc,
           WEFT_OK, "the first is replayed");
    is_int(end_all(&large, "first"), 1, "the first succeeds before any cascade");
    count_anew();
    is_int(weft_engine_cascade(engine, &large.flow, 1, &err), WEFT_OK, "the cascade runs");
    took(&large, "10,000 come back");
    is_bounded("10,000 that come back");
    is_int(end_all(&large, "middle"), WIDE, "each member that comes back is claimed once");
    is_int(weft_engine_cascade(engine, &large.flow, 1, &err), WEFT_OK, "the last cascade runs");
    is_over(&large, WEFT_FLOW_SUCCEEDED);
}

/* Each node comes after all before it: such a flow is written in parts. */
static void make_dense(struct large *large, struct weft_engine *engine)
{
    large_init(large, engine, DENSE);
    large->node[0].spec.kind = "root";
    for (size_t i = 1; i < DENSE; i++)
        come_after(large, i, 0, i);
}

static void large_cancel(struct large *large)
{
    struct weft_err err = {0};
    enum weft_flow_state state;
    struct weft_flow_drain drain;
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = large->flow, .how = WEFT_FLOW_CANCEL_ALL};
    is_int(weft_engine_flow_cancel(large->engine, &args, &state, &drain, &err), WEFT_OK,
           "cancel it");
    while (drain.more && !weft_engine_flow_drain(large->engine, &drain, &err))
        continue;
    is_int(weft_engine_cascade(large->engine, &large->flow, 1, &err), WEFT_OK,
           "the cascade of the cancelled flow runs to its end");
    is_over(large, WEFT_FLOW_CANCELLED);
}

/* One hop lets the roots of a flow begin that was written in parts, and goes on with another. */
static void roots_and_edges(struct weft_engine *engine)
{
    struct large dense, wide;
    struct weft_err err = {0};
    make_dense(&dense, engine);
    count.refuses = true; /* who submits dies before the roots begin */
    large_submit(&dense);
    count.refuses = false;
    is_int(end_all(&dense, "root"), 0, "the root of the unfinished submission is not ready");
    weft_clock_set(weft_engine_clock(engine), START_US + WEFT_SECOND); /* so it comes first */
    large_init(&wide, engine, FEW + 1);
    wide.node[0].spec.kind = "first";
    for (size_t i = 1; i <= FEW; i++)
        come_after(&wide, i, 0, 1);
    large_submit(&wide);
    is_int(end_all(&wide, "first"), 1, "the other flow goes on");
    const struct weft_id both[] = {dense.flow, wide.flow};
    is_int(weft_engine_cascade(engine, both, 2, &err), WEFT_OK, "one cascade serves both flows");
    is_int(end_all(&wide, "middle"), FEW, "the members after the first node end");
    is_int(end_all(&dense, "root"), 1, "the root of the dense flow ends");
    is_int(weft_engine_cascade(engine, both, 2, &err), WEFT_OK, "cascade");
    is_over(&wide, WEFT_FLOW_SUCCEEDED);
    large_cancel(&dense);
}

static void expire_root(void)
{
    struct weft_pass_report report;
    struct weft_err err = {0};
    weft_clock_set(weft_engine_clock(other), START_US + 10 * WEFT_SECOND);
    is_int(weft_engine_pass(other, WEFT_SCANNER_EXECUTION_DEADLINE, NULL, &report, &err), WEFT_OK,
           "the deadline of the root passes while the flow is being written");
    is_int(report.handled, 1, "the root has ended");
}

/* A member that ends before its flow is whole: no edge leaves it yet. */
static void ends_before_it_begins(struct weft_engine *engine)
{
    struct large dense;
    struct weft_err err = {0};
    make_dense(&dense, engine);
    dense.node[0].spec.deadline_us = START_US + 5 * WEFT_SECOND;
    count_anew();
    count.behind_nodes = expire_root;
    large_submit(&dense);
    is_int(weft_engine_cascade(engine, &dense.flow, 1, &err), WEFT_OK, "cascade");
    is_int(state_at(engine, &dense.id[0]), WEFT_STATE_EXPIRED, "the root has expired");
    is_int(state_at(engine, &dense.id[DENSE - 1]), WEFT_STATE_SKIPPED, "the last node is skipped");
    is_over(&dense, WEFT_FLOW_FAILED);
}

/* More completions than a hop takes, of which a later one brings a member back. */
static void ends_late(struct weft_engine *engine)
{
    struct large large;
    struct weft_err err = {0};
    weft_engine_on_flows(engine, leave_completions, NULL);
    large_init(&large, engine, WEFT_FLOW_CHUNK + 2);
    large.node[0].spec.kind = "first";
    large.node[1].spec.kind = "last";
    come_after(&large, 1, 0, 1);
    large_submit(&large);
    is_int(end_some(&large, "first", false), 1, "the first fails");
    is_int(weft_engine_cascade(engine, &large.flow, 1, &err), WEFT_OK,
           "the nodes behind the failed first are skipped");
    is_int(end_all(&large, "middle"), WEFT_FLOW_CHUNK, "a chunk of others ends");
    is_int(steer_one(engine, WEFT_STEER_REPLAY, &(struct weft_steer){.id = large.id[0]}).err.rc,
           WEFT_OK, "the first is replayed");
    is_int(end_all(&large, "first"), 1, "the replayed first succeeds");
    is_int(weft_engine_cascade(engine, &large.flow, 1, &err), WEFT_OK, "the cascade runs");
    is_int(end_all(&large, "last"), 1, "the skipped last node comes back and ends");
    is_int(weft_engine_cascade(engine, &large.flow, 1, &err), WEFT_OK, "the last cascade runs");
    is_over(&large, WEFT_FLOW_SUCCEEDED);
}

/* A flow that is written in parts, and small ones before and behind it, in one call. */
static void submit_mixed(struct weft_engine *engine)
{
    struct large flow[3];
    struct weft_flow_spec spec[3];
    struct weft_flow_submitted answer[3];
    struct weft_err err = {0};
    weft_engine_on_flows(engine, NULL, NULL);
    make_dense(&flow[1], engine);
    for (size_t i = 0; i < WEFT_LEN(flow); i++) {
        if (i != 1)
            large_init(&flow[i], engine, 1);
        spec[i] = (struct weft_flow_spec){.nodes = flow[i].node, .node_count = flow[i].count};
        answer[i].node = flow[i].id;
    }
    is_int(engine_flow_submit(engine, "default", spec, WEFT_LEN(flow), answer, &err), WEFT_OK,
           "three flows in one call");
    for (size_t i = 0; i < WEFT_LEN(flow); i++) {
        flow[i].flow = answer[i].id;
        is_int(answer[i].err.rc, WEFT_OK, "%zu is accepted", i);
        is_int(state_at(engine, &flow[i].id[0]), WEFT_STATE_READY,
               "the first node of flow %zu is ready", i);
    }
    is_int(end_all(&flow[0], "middle"), 2, "the small ones end");
    is_over(&flow[0], WEFT_FLOW_SUCCEEDED);
    is_over(&flow[2], WEFT_FLOW_SUCCEEDED);
    large_cancel(&flow[1]);
}

void run_sizes(const struct place *place)
{
    struct weft_engine *engine = open_counted(place);
    other = place_open(place, NULL, START_US);
    wide_join(engine);
    skip_chain(engine);
    fan(engine);
    race_of_many(engine);
    replay_of_many(engine);
    roots_and_edges(engine); /* as the one before it, with cascades by hand */
    ends_late(engine);
    ends_before_it_begins(engine);
    submit_mixed(engine);
    weft_engine_close(other);
    weft_engine_close(engine);
}
