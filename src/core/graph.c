/* SPDX-License-Identifier: Apache-2.0 */

#include "core/graph.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/map.h"
#include "core/spec.h"

#include <assert.h>
#include <openssl/sha.h>
#include <string.h>

enum { CYCLE_NAMES_MAX = 12 }; /* a longer cycle is shortened to this many names */

/* The map holds number + 1 as a pointer, because NULL means absent. */
static void put(struct weft_map *map, const char *name, size_t number)
{
    weft_map_put(map, name, strlen(name), (void *)(uintptr_t)(number + 1));
}

static bool find(const struct weft_map *map, const char *name, size_t *ret_number)
{
    uintptr_t held = (uintptr_t)weft_map_find(map, name, strlen(name));
    *ret_number = held - 1;
    return held != 0;
}

static enum weft_rc check_sizes(const struct weft_graph_input *input, size_t *ret_edges,
                                struct weft_err *err)
{
    size_t edges = 0;
    if (input->count > WEFT_FLOW_NODES_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "nodes", "%zu nodes, at most %d are allowed",
                               input->count, WEFT_FLOW_NODES_MAX);
    for (size_t i = 0; i < input->count; i++)
        edges += input->node[i].after_count;
    if (edges > WEFT_FLOW_EDGES_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "nodes", "%zu edges, at most %d are allowed",
                               edges, WEFT_FLOW_EDGES_MAX);
    *ret_edges = edges;
    return WEFT_OK;
}

static enum weft_rc check_join(const struct weft_node *node, struct weft_err *err)
{
    if (node->join == WEFT_JOIN_QUORUM && (node->k < 1 || node->k > node->after_count))
        return weft_invalid(err, "join.k",
                            "node '%s' wants %u of %zu upstreams: k must be from 1 to %zu",
                            node->name, node->k, node->after_count, node->after_count);
    if (node->join != WEFT_JOIN_QUORUM && node->k != 0)
        return weft_invalid(err, "join.k", "node '%s' names a k, which only a quorum has",
                            node->name);
    return WEFT_OK;
}

struct build {
    const struct weft_graph_input *input;
    struct weft_map map;
    struct weft_graph graph;
    uint32_t *seen; /* per number: the last node that named it, plus 1 */
};

/* Numbers all names: first the nodes, then the known ones. */
static enum weft_rc number_names(struct build *build, struct weft_err *err)
{
    const struct weft_graph_input *input = build->input;
    struct weft_map *map = &build->map;
    for (size_t i = 0; i < input->known_count; i++)
        put(map, input->known[i], input->count + i);
    for (size_t i = 0; i < input->count; i++) {
        const struct weft_node *node = &input->node[i];
        size_t number;
        build->graph.blamed = i + 1;
        enum weft_rc rc = weft_name_check(node->name, "name", err);
        if (!rc)
            rc = check_join(node, err);
        if (rc)
            return rc;
        if (find(map, node->name, &number))
            return weft_invalid(err, "name",
                                number < input->count ? "two nodes are named '%s'"
                                                      : "the flow has a node '%s' already",
                                node->name);
        put(map, node->name, i);
    }
    return WEFT_OK;
}

static enum weft_rc add_edge(struct build *build, size_t i, const char *name, struct weft_err *err)
{
    const struct weft_node *node = &build->input->node[i];
    size_t upstream;
    if (!name)
        return weft_invalid(err, "after", "node '%s' comes after a node without a name",
                            node->name);
    if (!find(&build->map, name, &upstream))
        return weft_invalid(err, "after", "node '%s' comes after '%s', and there is no such node",
                            node->name, name);
    if (upstream == i)
        return weft_invalid(err, "after", "node '%s' comes after itself", node->name);
    if (build->seen[upstream] == i + 1)
        return weft_invalid(err, "after", "node '%s' comes after '%s' twice", node->name, name);
    build->seen[upstream] = (uint32_t)(i + 1);
    build->graph.upstream[build->graph.edges++] = (uint32_t)upstream;
    return WEFT_OK;
}

static enum weft_rc add_edges(struct build *build, struct weft_err *err)
{
    const struct weft_graph_input *input = build->input;
    for (size_t i = 0; i < input->count; i++) {
        build->graph.first[i] = (uint32_t)build->graph.edges;
        build->graph.blamed = i + 1;
        for (size_t k = 0; k < input->node[i].after_count; k++) {
            enum weft_rc rc = add_edge(build, i, input->node[i].after[k], err);
            if (rc)
                return rc;
        }
    }
    build->graph.first[input->count] = (uint32_t)build->graph.edges;
    return WEFT_OK;
}

/* ---- Cycles ---------------------------------------------------------------------------------- */

/* The edges the other way round: the downstreams of i are at[first[i]] to at[first[i + 1] - 1]. */
struct downstreams {
    uint32_t *first, *at;
};

static struct downstreams reverse_edges(const struct build *build, struct weft_arena *arena)
{
    size_t count = build->input->count;
    const struct weft_graph *graph = &build->graph;
    struct downstreams down = {.first = weft_new_array(arena, uint32_t, count + 2),
                               .at = weft_new_array(arena, uint32_t, graph->edges + 1)};
    for (size_t e = 0; e < graph->edges; e++)
        if (graph->upstream[e] < count)
            down.first[graph->upstream[e] + 2]++;
    for (size_t i = 2; i < count + 2; i++)
        down.first[i] += down.first[i - 1];
    for (size_t i = 0; i < count; i++)
        for (uint32_t e = graph->first[i]; e < graph->first[i + 1]; e++)
            if (graph->upstream[e] < count)
                down.at[down.first[graph->upstream[e] + 1]++] = (uint32_t)i;
    return down;
}

/*
 * Topological sort: removes nodes without upstreams until none is left. The remaining nodes are in
 * a cycle or behind one. waits[i] is the number of remaining upstreams of i; returns the number of
 * remaining nodes.
 */
static size_t sort_nodes(const struct build *build, struct weft_arena *arena, uint32_t *waits)
{
    size_t count = build->input->count, taken = 0, ready = 0;
    struct downstreams down = reverse_edges(build, arena);
    uint32_t *queue = weft_new_array(arena, uint32_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        for (uint32_t e = build->graph.first[i]; e < build->graph.first[i + 1]; e++)
            waits[i] += build->graph.upstream[e] < count;
        if (waits[i] == 0)
            queue[ready++] = (uint32_t)i;
    }
    while (taken < ready) {
        uint32_t node = queue[taken++];
        for (uint32_t d = down.first[node]; d < down.first[node + 1]; d++)
            if (--waits[down.at[d]] == 0)
                queue[ready++] = down.at[d];
    }
    return count - taken;
}

/* A remaining upstream of a remaining node, which always has one. */
static uint32_t left_upstream(const struct build *build, const uint32_t *waits, uint32_t node)
{
    for (uint32_t e = build->graph.first[node]; e < build->graph.first[node + 1]; e++) {
        uint32_t upstream = build->graph.upstream[e];
        if (upstream < build->input->count && waits[upstream] > 0)
            return upstream;
    }
    return node;
}

/* Following upstreams among the remaining nodes must reach a node twice: that is a cycle. */
static enum weft_rc fail_cycle(struct build *build, struct weft_arena *arena, const uint32_t *waits,
                               struct weft_err *err)
{
    size_t count = build->input->count;
    uint32_t *step = weft_new_array(arena, uint32_t, count + 1);
    uint32_t node = 0;
    while (waits[node] == 0)
        node++;
    for (uint32_t n = 1; step[node] == 0; n++) {
        step[node] = n;
        node = left_upstream(build, waits, node);
    }
    const char *text = build->input->node[node].name;
    size_t names = 1;
    uint32_t at = node;
    do { /* walks upstream, so each name is prepended */
        at = left_upstream(build, waits, at);
        if (names++ < CYCLE_NAMES_MAX || at == node)
            text = weft_arena_printf(arena, "%s -> %s", build->input->node[at].name, text);
        else if (names == CYCLE_NAMES_MAX + 1)
            text = weft_arena_printf(arena, "... -> %s", text);
    } while (at != node);
    build->graph.blamed = node + 1;
    return weft_invalid(err, "after", "the nodes go round in a circle: %s", text);
}

enum weft_rc weft_graph_build(const struct weft_graph_input *input, struct weft_arena *arena,
                              struct weft_graph *ret_graph, struct weft_err *err)
{
    struct build build = {.input = input};
    size_t edges = 0;
    enum weft_rc rc = check_sizes(input, &edges, err);
    *ret_graph = build.graph;
    if (rc)
        return rc;
    build.seen = weft_new_array(arena, uint32_t, input->count + input->known_count + 1);
    build.graph.first = weft_new_array(arena, uint32_t, input->count + 1);
    build.graph.upstream = weft_new_array(arena, uint32_t, edges + 1);
    rc = number_names(&build, err);
    if (!rc)
        rc = add_edges(&build, err);
    if (!rc) {
        uint32_t *waits = weft_new_array(arena, uint32_t, input->count + 1);
        if (sort_nodes(&build, arena, waits) > 0)
            rc = fail_cycle(&build, arena, waits, err);
    }
    weft_map_done(&build.map);
    if (rc)
        *ret_graph = (struct weft_graph){.blamed = build.graph.blamed};
    else
        *ret_graph = build.graph;
    return rc;
}

struct weft_names_outside weft_graph_outside(const struct weft_node *node, size_t count,
                                             struct weft_arena *arena)
{
    struct weft_names_outside outside = {0};
    struct weft_map map = {0};
    size_t mentions = 0, number;
    for (size_t i = 0; i < count; i++) {
        mentions += node[i].after_count;
        if (node[i].name)
            put(&map, node[i].name, i);
    }
    outside.name = weft_new_array(arena, const char *, mentions + 1);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < node[i].after_count; k++) {
            const char *name = node[i].after[k];
            if (!name || find(&map, name, &number))
                continue;
            put(&map, name, count);
            outside.name[outside.count++] = name;
        }
    weft_map_done(&map);
    return outside;
}

/* Chains a text to the hash; the text is hashed on its own first, so that parts cannot merge. */
static void chain(uint8_t hash[SHA256_DIGEST_LENGTH], const void *data, size_t size)
{
    uint8_t part[2 * SHA256_DIGEST_LENGTH];
    memcpy(part, hash, SHA256_DIGEST_LENGTH);
    SHA256(data, size, part + SHA256_DIGEST_LENGTH);
    SHA256(part, sizeof(part), hash);
}

void weft_graph_fingerprint(const struct weft_node *node, const uint8_t spec[32],
                            uint8_t fingerprint[32])
{
    const uint32_t join[] = {(uint32_t)node->join, node->k, (uint32_t)node->on_satisfied,
                             (uint32_t)node->after_count};
    chain(fingerprint, node->name, strlen(node->name));
    chain(fingerprint, join, sizeof(join));
    for (size_t i = 0; i < node->after_count; i++)
        chain(fingerprint, node->after[i], strlen(node->after[i]));
    chain(fingerprint, spec, SHA256_DIGEST_LENGTH);
}

/* ---- Joins ----------------------------------------------------------------------------------- */

static uint32_t needed(const struct weft_join_state *join)
{
    if (join->total == 0)
        return 0;
    switch (join->join) {
    case WEFT_JOIN_ANY:
        return 1;
    case WEFT_JOIN_QUORUM:
        return join->k;
    case WEFT_JOIN_ALL:
        break;
    }
    return join->total;
}

enum weft_verdict_of_join weft_join_judge(const struct weft_join_state *join)
{
    uint32_t need = needed(join);
    assert(join->succeeded + join->failed <= join->total);
    if (join->succeeded >= need)
        return WEFT_JOIN_SATISFIED;
    if (join->total - join->failed < need)
        return WEFT_JOIN_IMPOSSIBLE;
    return WEFT_JOIN_PENDING;
}

enum weft_edge_state weft_edge_of(enum weft_state upstream)
{
    if (weft_state_living(upstream))
        return WEFT_EDGE_PENDING;
    return upstream == WEFT_STATE_SUCCEEDED ? WEFT_EDGE_SUCCEEDED : WEFT_EDGE_FAILED;
}

enum weft_flow_state weft_flow_judge(bool cancelled, bool bad)
{
    if (cancelled)
        return WEFT_FLOW_CANCELLED;
    return bad ? WEFT_FLOW_FAILED : WEFT_FLOW_SUCCEEDED;
}
