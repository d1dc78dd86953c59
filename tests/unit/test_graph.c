/* SPDX-License-Identifier: Apache-2.0 */

/* Graphs of flows: which are refused and with which error, and that large ones take no time. */

#include "base/arena.h"
#include "base/limits.h"
#include "core/graph.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 8, AFTER_MAX = 4 };

/* A graph written as text: "a; b:a; c:a,b". */
struct drawn {
    char text[256];
    struct weft_node node[NODES_MAX];
    const char *after[NODES_MAX][AFTER_MAX];
    size_t count;
};

static void draw(struct drawn *drawn, const char *text)
{
    *drawn = (struct drawn){0};
    (void)snprintf(drawn->text, sizeof(drawn->text), "%s", text);
    char *rest = drawn->text, *part;
    while ((part = strsep(&rest, ";")) != NULL) {
        struct weft_node *node = &drawn->node[drawn->count];
        char *after = part + strspn(part, " ");
        node->name = strsep(&after, ":");
        node->after = drawn->after[drawn->count];
        char *name;
        while (after && (name = strsep(&after, ",")) != NULL)
            drawn->after[drawn->count][node->after_count++] = name;
        drawn->count++;
    }
}

static enum weft_rc build(struct drawn *drawn, const char *const *known, size_t known_count,
                          struct weft_arena *arena, struct weft_graph *graph, struct weft_err *err)
{
    const struct weft_graph_input input = {
        .node = drawn->node, .count = drawn->count, .known = known, .known_count = known_count};
    return weft_graph_build(&input, arena, graph, err);
}

static void expect_refused(struct weft_arena *arena, const char *text, const char *story)
{
    struct drawn drawn;
    struct weft_graph graph;
    struct weft_err err = {0};
    draw(&drawn, text);
    is_int(build(&drawn, NULL, 0, arena, &graph, &err), WEFT_INVALID_VALUE, "refused: %s", text);
    ok(strstr(err.text, story) != NULL, "the error names the cause: %s", err.text);
}

static void test_good(struct weft_arena *arena)
{
    struct drawn drawn;
    struct weft_graph graph;
    struct weft_err err = {0};
    draw(&drawn, "d:b,c; b:a; c:a; a");
    is_int(build(&drawn, NULL, 0, arena, &graph, &err), WEFT_OK, "a diamond, upside down");
    is_int(graph.edges, 4, "four edges");
    ok(graph.first[0] == 0 && graph.first[1] == 2 && graph.upstream[0] == 1 &&
           graph.upstream[1] == 2,
       "d comes after b and c");
    ok(graph.first[3] == graph.first[4], "a comes after nothing");

    draw(&drawn, "e:d,x; d:y");
    const char *const known[] = {"x", "y"};
    is_int(build(&drawn, known, 2, arena, &graph, &err), WEFT_OK, "growing after known nodes");
    ok(graph.upstream[0] == 1 && graph.upstream[1] == 2 && graph.upstream[2] == 3,
       "known ones are numbered behind the new");
    struct weft_names_outside outside = weft_graph_outside(drawn.node, drawn.count, arena);
    ok(outside.count == 2 && strcmp(outside.name[0], "x") == 0 && strcmp(outside.name[1], "y") == 0,
       "x and y are outside");
    draw(&drawn, "x:y");
    is_int(build(&drawn, known, 2, arena, &graph, &err), WEFT_INVALID_VALUE, "a known name again");
    ok(strstr(err.text, "has a node 'x' already") != NULL, "the error names the cause: %s",
       err.text);
}

static void test_refused(struct weft_arena *arena)
{
    expect_refused(arena, "a; a", "two nodes are named 'a'");
    expect_refused(arena, "a; b:c", "'b' comes after 'c', and there is no such node");
    expect_refused(arena, "a:a", "'a' comes after itself");
    expect_refused(arena, "a; b:a,a", "'b' comes after 'a' twice");
    expect_refused(arena, "a b", "name");
    expect_refused(arena, "", "name");
    expect_refused(arena, "a:b; b:a", "circle: a -> b -> a");
    expect_refused(arena, "s; a:c,s; b:a; c:b; t:c", "-> ");
    expect_refused(arena, "t:c; s; a:c,s; b:a; c:b", "c -> a -> b -> c");

    struct drawn drawn;
    struct weft_graph graph;
    struct weft_err err = {0};
    for (uint32_t k = 0; k <= 3; k++) {
        draw(&drawn, "a; b; c:a,b");
        drawn.node[2].join = WEFT_JOIN_QUORUM;
        drawn.node[2].k = k;
        is_int(build(&drawn, NULL, 0, arena, &graph, &err),
               k == 1 || k == 2 ? WEFT_OK : WEFT_INVALID_VALUE, "a quorum of %u of 2", k);
    }
    is_str(err.field, "join.k", "k is blamed");
    drawn.node[2].join = WEFT_JOIN_ANY;
    is_int(build(&drawn, NULL, 0, arena, &graph, &err), WEFT_INVALID_VALUE, "a k without a quorum");
    drawn.node[2].k = 0;
    drawn.after[2][0] = NULL;
    is_int(build(&drawn, NULL, 0, arena, &graph, &err), WEFT_INVALID_VALUE, "after NULL");
}

struct large {
    struct weft_node *node;
    const char **after;
    char (*name)[16];
};

static void name_nodes(struct large *large, size_t count)
{
    large->node = calloc(count, sizeof(*large->node));
    large->name = calloc(count, sizeof(*large->name));
    large->after = calloc(WEFT_FLOW_EDGES_MAX + 1, sizeof(*large->after));
    if (!large->node || !large->name || !large->after)
        abort();
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(large->name[i], sizeof(large->name[i]), "n%zu", i);
        large->node[i].name = large->name[i];
    }
}

static void free_large(struct large *large)
{
    free(large->node);
    free(large->name);
    free(large->after);
}

/* As many nodes and edges as a flow may have: each node comes after the ten before it. */
static void test_largest(struct weft_arena *arena)
{
    struct large large;
    struct weft_graph graph;
    struct weft_err err = {0};
    size_t edges = 0;
    name_nodes(&large, WEFT_FLOW_NODES_MAX + 1);
    for (size_t i = 0; i < WEFT_FLOW_NODES_MAX; i++) {
        large.node[i].after = &large.after[edges];
        for (size_t k = 1; k <= 10 && k <= i; k++)
            large.after[edges++] = large.name[i - k];
        large.node[i].after_count = i < 10 ? i : 10;
    }
    struct weft_graph_input input = {.node = large.node, .count = WEFT_FLOW_NODES_MAX};
    is_int(weft_graph_build(&input, arena, &graph, &err), WEFT_OK, "the largest graph");
    is_int(graph.edges, edges, "the graph has all edges");

    /* The first after the last: one circle through all of it. */
    const char *const last[] = {large.name[WEFT_FLOW_NODES_MAX - 1]};
    large.node[0].after = last;
    large.node[0].after_count = 1;
    is_int(weft_graph_build(&input, arena, &graph, &err), WEFT_INVALID_VALUE, "closed to a circle");
    ok(strstr(err.text, "... -> ") != NULL, "the error shows a part of the circle: %.80s",
       err.text);

    large.node[0].after_count = 0;
    input.count++;
    is_int(weft_graph_build(&input, arena, &graph, &err), WEFT_TOO_LARGE, "one node too many");
    input.count--;
    large.node[1].after_count = WEFT_FLOW_EDGES_MAX;
    is_int(weft_graph_build(&input, arena, &graph, &err), WEFT_TOO_LARGE, "edges too many");
    free_large(&large);
}

/* Random graphs whose edges go from lower to higher are good; one edge back through them is not. */
static void test_random(struct weft_arena *arena)
{
    enum { COUNT = 60, ROUNDS = 300 };
    size_t wrong = 0;
    struct large large;
    name_nodes(&large, COUNT);
    srand(7);
    for (int round = 0; round < ROUNDS; round++) {
        size_t edges = 0;
        for (size_t i = 0; i < COUNT; i++) {
            large.node[i].after = &large.after[edges];
            large.node[i].after_count = 0;
            for (size_t k = 0; k < i; k++)
                if (k + 1 == i || rand() % 8 == 0) { /* each after the one before it */
                    large.after[edges++] = large.name[k];
                    large.node[i].after_count++;
                }
        }
        struct weft_graph graph;
        struct weft_err err = {0};
        const struct weft_graph_input input = {.node = large.node, .count = COUNT};
        wrong += weft_graph_build(&input, arena, &graph, &err) != WEFT_OK;
        size_t low = (size_t)rand() % (COUNT - 1);
        size_t high = low + 1 + (size_t)rand() % (COUNT - 1 - low);
        const char *back[COUNT + 1];
        memcpy(back, large.node[low].after, large.node[low].after_count * sizeof(*back));
        back[large.node[low].after_count++] = large.name[high];
        large.node[low].after = back;
        wrong += weft_graph_build(&input, arena, &graph, &err) != WEFT_INVALID_VALUE ||
                 !strstr(err.text, "circle");
        weft_arena_reset(arena);
    }
    is_int(wrong, 0, "%d random graphs, straight and with an edge back", ROUNDS);
    free_large(&large);
}

int main(void)
{
    struct weft_arena *arena = weft_arena_new();
    test_good(arena);
    test_refused(arena);
    test_largest(arena);
    test_random(arena);
    weft_arena_free(arena);
    return tap_done();
}
