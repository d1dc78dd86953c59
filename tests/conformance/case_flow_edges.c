/* SPDX-License-Identifier: Apache-2.0 */

/* Edges that are added between nodes of a flow. */

#include "direct.h"
#include "flows.h"

#include "engine/flow/flow.h"
#include "weft/weft.h"

#include <stdlib.h>

/* Adds edges that are given as pairs of letters: "ab" is from a to b. */
static enum weft_rc link_nodes(struct fixture *f, const struct drawn *flow, int32_t revision,
                               const char *const *pair, struct weft_err *err)
{
    struct weft_flow_edge edge[4];
    char name[4][2][2];
    struct weft_flow_edging edging = {
        .ns = "default", .flow = flow->answer.id, .revision = revision, .edges = edge};
    int32_t now = 0;
    for (size_t i = 0; pair[i]; i++) {
        (void)snprintf(name[i][0], sizeof(name[i][0]), "%c", pair[i][0]);
        (void)snprintf(name[i][1], sizeof(name[i][1]), "%c", pair[i][1]);
        edge[edging.edge_count++] = (struct weft_flow_edge){.from = name[i][0], .to = name[i][1]};
    }
    *err = (struct weft_err){0};
    enum weft_rc rc = weft_engine_flow_edges(f->b, &edging, &now, err);
    if (!rc)
        is_int(now, revision + 1, "the revision has grown");
    return rc;
}
#define LINK(revision, ...)                                                                        \
    link_nodes(f, &flow, revision, (const char *const[]){__VA_ARGS__, NULL}, &err)

CASE(flow_edges_are_waited_for)
{
    struct drawn flow;
    struct weft_err err;
    draw(&flow, "a; b; c:a; d:c");
    submit_drawn(f, &flow);
    is_int(LINK(1, "bc", "bd"), WEFT_OK, "c and d come after b, too");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srbb", "c waits for b");
    end_node(f, &flow, "b", true);
    end_node(f, &flow, "c", true);
    end_node(f, &flow, "d", true);
    is_int(flow_state(f, &flow), WEFT_FLOW_SUCCEEDED, "the flow has succeeded");
}

CASE(flow_edges_from_ended_nodes)
{
    struct drawn flow;
    struct weft_err err;
    draw(&flow, "a; b; x; c:a; d:a");
    submit_drawn(f, &flow);
    end_node(f, &flow, "b", true);
    end_node(f, &flow, "x", false);
    is_int(LINK(1, "bc"), WEFT_OK, "c comes after b, which has succeeded");
    is_str(states(f, &flow), "rsfbb", "c waits for a alone");
    is_int(LINK(2, "xd"), WEFT_OK, "d comes after x, which has failed");
    is_str(states(f, &flow), "rsfbk", "d is skipped at once");
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "ssfrk", "c is ready when a has succeeded");
}

CASE(flow_edges_that_are_refused)
{
    struct drawn flow;
    struct weft_err err;
    draw(&flow, "a; b:a; c:b; r; s:r; t:s");
    submit_drawn(f, &flow);
    (void)LINK(7, "ac");
    expect_err(&err, WEFT_CONFLICT, "revision", "another revision");
    (void)LINK(1, "ra");
    expect_err(&err, WEFT_CONFLICT, "edges", "a node that is ready");
    (void)LINK(1, "ab");
    expect_err(&err, WEFT_CONFLICT, "edges", "an edge that is there");
    (void)LINK(1, "ac", "ac");
    expect_err(&err, WEFT_INVALID_VALUE, "edges", "an edge that is named twice");
    (void)LINK(1, "az");
    expect_err(&err, WEFT_INVALID_VALUE, "edges", "a node that is not there");
    (void)LINK(1, "cb");
    expect_err(&err, WEFT_INVALID_VALUE, "edges", "a circle with an edge that is there");
    (void)LINK(1, "bb");
    expect_err(&err, WEFT_INVALID_VALUE, "edges", "a node after itself");
    (void)LINK(1, "cs", "tb");
    expect_err(&err, WEFT_INVALID_VALUE, "edges", "a circle of two new edges");
    is_int(LINK(1, "as", "bt"), WEFT_OK, "no refused edge was kept");
    end_node(f, &flow, "r", false);
    is_str(states(f, &flow), "rbbfkk", "s and t are skipped");
    (void)LINK(2, "at");
    expect_err(&err, WEFT_CONFLICT, "edges", "a node that has ended");
}

CASE(flow_edges_keep_to_the_limit_of_a_flow)
{
    enum { NODES = 1500 }; /* so many may have a million edges */
    static const char *const after[] = {"n0"};
    struct weft_node *node = calloc(NODES, sizeof(*node));
    char(*name)[8] = calloc(NODES, sizeof(*name));
    struct weft_flow_submitted answer = {.node = calloc(NODES, sizeof(struct weft_id))};
    for (int i = 0; i < NODES; i++) {
        (void)snprintf(name[i], sizeof(name[i]), "n%d", i);
        node[i] = (struct weft_node){.name = name[i], .spec = {.kind = "k"}};
    }
    node[1].after = after;
    node[1].after_count = 1;
    const struct weft_flow_spec spec = {.nodes = node, .node_count = NODES};
    is_int(engine_flow_submit(f->a, "default", &spec, 1, &answer, &f->err), WEFT_OK, "a flow");
    /* Nodes count what they come after; a million edges would take too long to write. */
    run_sql_of(f, "UPDATE weft.node SET total = 999998 WHERE name = 'n1'",
               "UPDATE node SET total = 999998 WHERE name = 'n1'");
    const struct weft_flow_edge edge[] = {{"n2", "n1"}, {"n3", "n1"}, {"n4", "n1"}};
    struct weft_flow_edging edging = {
        .ns = "default", .flow = answer.id, .revision = 1, .edges = edge, .edge_count = 3};
    int32_t revision = 0;
    is_int(weft_engine_flow_edges(f->a, &edging, &revision, &f->err), WEFT_TOO_LARGE,
           "a million edges and one more");
    is_str(f->err.field, "edges", "the error names the edges");
    edging.edge_count = 2;
    is_int(weft_engine_flow_edges(f->a, &edging, &revision, &f->err), WEFT_OK, "a million are not");
    is_int(revision, 2, "the refused call raised no revision");
    struct weft_node more[] = {{.name = "more", .spec = {.kind = "k"}, .after = after}};
    struct weft_flow_growth growth = {.ns = "default", .flow = answer.id, .revision = 2};
    growth.nodes = more;
    growth.node_count = more[0].after_count = 1;
    struct weft_flow_submitted grown = {0};
    is_int(engine_flow_grow(f->a, &growth, &grown, &f->err), WEFT_TOO_LARGE,
           "a new node with one more edge is refused");
    is_str(f->err.text, "the flow would have 1000001 edges, at most 1000000 are allowed",
           "the error gives the count and the limit");
    more[0].after_count = 0;
    is_int(engine_flow_grow(f->a, &growth, &grown, &f->err), WEFT_OK,
           "a node without edges is no matter");
    run_sql_of(f, "UPDATE weft.node SET total = 3 WHERE name = 'n1'",
               "UPDATE node SET total = 3 WHERE name = 'n1'");
    free(answer.node);
    free(name);
    free(node);
}
