/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Flows drawn: a tree in the terminal, a graph for Graphviz.
 *
 * In the tree a node stands below its deepest upstream, the first of several. Its other upstreams
 * are named beside it. An only child is not indented, so a long chain stays narrow.
 */

#include "base/map.h"
#include "cmd/cli/output.h"
#include "cmd/flow/flow.h"

#include <inttypes.h>
#include <string.h>

enum {
    SHOWN_AT_ONCE = 12, /* children of a node, where not all are wanted */
    INDENT_MAX = 24,    /* steps to the right */
};
#define NONE UINT32_MAX

struct tree {
    const struct weft_flow_page *page;
    uint32_t *parent;  /* NONE: a root */
    uint32_t *child;   /* first; NONE: it has none */
    uint32_t *sibling; /* next */
    uint32_t *depth;   /* the longest way from a root */
    uint32_t root;     /* first */
    struct weft_arena *arena;
};

/* ---- From the graph to the tree -------------------------------------------------------------- */

static uint32_t *numbers(struct weft_arena *arena, size_t count, uint32_t value)
{
    uint32_t *number = weft_new_array(arena, uint32_t, count + 1);
    for (size_t i = 0; i <= count; i++)
        number[i] = value;
    return number;
}

static uint32_t find(const struct weft_map *map, const char *name)
{
    uintptr_t held = (uintptr_t)weft_map_find(map, name, strlen(name));
    return held ? (uint32_t)(held - 1) : NONE;
}

/* From the roots down: the depth of a node is known when all its upstreams are done. */
static void find_depths(struct tree *tree, const struct weft_map *map)
{
    const struct weft_flow_page *page = tree->page;
    size_t count = page->count, edges = 0, done = 0, ready = 0;
    uint32_t *waits = numbers(tree->arena, count, 0), *first = numbers(tree->arena, count, NONE);
    uint32_t *queue = numbers(tree->arena, count, NONE);
    for (size_t i = 0; i < count; i++)
        edges += page->node[i].after_count;
    uint32_t *next = numbers(tree->arena, edges, NONE), *down = numbers(tree->arena, edges, NONE);
    uint32_t edge = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (size_t k = 0; k < page->node[i].after_count; k++) {
            uint32_t up = find(map, page->node[i].after[k]);
            if (up == NONE)
                continue;
            waits[i]++;
            down[edge] = i;
            next[edge] = first[up];
            first[up] = edge++;
        }
        if (waits[i] == 0)
            queue[ready++] = i;
    }
    for (; done < ready; done++)
        for (uint32_t e = first[queue[done]]; e != NONE; e = next[e]) {
            uint32_t at = down[e], depth = tree->depth[queue[done]] + 1;
            tree->depth[at] = depth > tree->depth[at] ? depth : tree->depth[at];
            if (--waits[at] == 0)
                queue[ready++] = at;
        }
}

/* Backwards, so that the children of a node are in the order of the nodes. */
static void find_parents(struct tree *tree, const struct weft_map *map)
{
    const struct weft_flow_page *page = tree->page;
    for (size_t i = page->count; i-- > 0;) {
        const struct weft_flow_node *node = &page->node[i];
        for (size_t k = 0; k < node->after_count; k++) {
            uint32_t up = find(map, node->after[k]), *parent = &tree->parent[i];
            if (up != NONE && (*parent == NONE || tree->depth[up] > tree->depth[*parent]))
                *parent = up;
        }
        uint32_t *head = tree->parent[i] == NONE ? &tree->root : &tree->child[tree->parent[i]];
        tree->sibling[i] = *head;
        *head = (uint32_t)i;
    }
}

static struct tree make_tree(const struct weft_flow_page *page, struct weft_arena *arena)
{
    struct tree tree = {.page = page,
                        .parent = numbers(arena, page->count, NONE),
                        .child = numbers(arena, page->count, NONE),
                        .sibling = numbers(arena, page->count, NONE),
                        .depth = numbers(arena, page->count, 0),
                        .root = NONE,
                        .arena = arena};
    struct weft_map map = {0};
    for (uintptr_t i = 0; i < page->count; i++) {
        const char *name = page->node[i].name;
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): the map holds numbers */
        weft_map_put(&map, name, strlen(name), (void *)(i + 1));
    }
    find_depths(&tree, &map);
    find_parents(&tree, &map);
    weft_map_done(&map);
    return tree;
}

/* ---- Words ----------------------------------------------------------------------------------- */

const char *weft_flow_color(enum weft_flow_state state)
{
    static const enum weft_state like[WEFT_FLOW_STATE_COUNT] = {
        [WEFT_FLOW_OPEN] = WEFT_STATE_RUNNING,
        [WEFT_FLOW_SUCCEEDED] = WEFT_STATE_SUCCEEDED,
        [WEFT_FLOW_FAILED] = WEFT_STATE_FAILED,
        [WEFT_FLOW_CANCELLED] = WEFT_STATE_CANCELLED,
    };
    return weft_state_color(like[state]);
}

/* "any of a, b, c": the upstreams; "" when the only one is the parent in the tree. */
static const char *after_text(const struct tree *tree, uint32_t number)
{
    enum { NAMED_MAX = 4 };
    const struct weft_flow_node *node = &tree->page->node[number];
    const char *text = "";
    if (node->after_count < 2 && node->join == WEFT_JOIN_ALL)
        return text;
    for (size_t i = 0; i < node->after_count && i < NAMED_MAX; i++)
        text = weft_arena_printf(tree->arena, "%s%s%s", text, i ? ", " : "", node->after[i]);
    if (node->after_count > NAMED_MAX)
        text =
            weft_arena_printf(tree->arena, "%s and %zu more", text, node->after_count - NAMED_MAX);
    if (node->join == WEFT_JOIN_ANY)
        return weft_arena_printf(tree->arena, "any of %s", text);
    if (node->join == WEFT_JOIN_QUORUM)
        return weft_arena_printf(tree->arena, "%u of %s", node->k, text);
    return weft_arena_printf(tree->arena, "all of %s", text);
}

/* "waits for a, b": the reason that the worker gave, or the names of the waitpoints. */
static const char *waits_for(const struct weft_flow_node *node, struct weft_arena *arena)
{
    const char *what = node->reason;
    if (!what && node->waitpoint_count > 0)
        what = weft_joined(arena, node->waitpoints, node->waitpoint_count, ", ");
    else if (!what)
        what = node->timeout_us ? "its timeout" : "an operator";
    return weft_arena_printf(arena, "%s %s", node->escalated ? "escalated: waits for" : "waits for",
                             what);
}

static const char *note_of(const struct tree *tree, const struct weft_flow_node *node)
{
    if (node->state == WEFT_STATE_SUSPENDED)
        return waits_for(node, tree->arena);
    if (node->error_class)
        return weft_arena_printf(tree->arena, "%s%s%s", node->error_class,
                                 node->error_message ? ": " : "",
                                 node->error_message ? node->error_message : "");
    return node->reason ? node->reason : "";
}

static void put_node(struct weft_table *table, const struct tree *tree, uint32_t number,
                     const char *lead)
{
    const struct weft_flow_node *node = &tree->page->node[number];
    weft_table_cell(table, "%s%s", lead, node->name);
    weft_cell_state(table, &node->state);
    weft_usec end_us = node->finished_us ? node->finished_us : weft_wall_us();
    if (node->started_us && end_us >= node->started_us)
        weft_table_span(table, end_us - node->started_us, NULL);
    else
        weft_table_cell(table, "%s", "");
    if (node->attempt > 1)
        weft_cell_i32(table, &node->attempt);
    else
        weft_table_cell(table, "%s", "");
    weft_cell_id(table, &node->id);
    weft_table_cell(table, "%s", after_text(tree, number));
    weft_table_paint(table, node->escalated ? weft_state_color(WEFT_STATE_FAILED) : NULL, "%s",
                     note_of(tree, node));
}

/* "3 succeeded, 2 blocked" */
static const char *counted(const uint64_t count[WEFT_STATE_COUNT], struct weft_arena *arena)
{
    const char *text = "";
    for (int state = 1; state < WEFT_STATE_COUNT; state++)
        if (count[state])
            text = weft_arena_printf(arena, "%s%s%" PRIu64 " %s", text, *text ? ", " : "",
                                     count[state], weft_state_name((enum weft_state)state));
    return text;
}

/* ---- The walk -------------------------------------------------------------------------------- */

struct walk {
    struct weft_table *table;
    const struct tree *tree;
    bool all;
    const char **lead; /* of a node's children, by node */
    uint32_t *shown;   /* children so far, by node; of the roots at the end */
    uint32_t *failed;  /* children that were shown although they came late */
    uint32_t straight; /* nodes so far that stand one below the other */
    bool counted;      /* a line stands for the rest of the chain */
};

/* Number of nodes by state. */
struct tally {
    uint64_t count[WEFT_STATE_COUNT], total;
};

static bool is_leaf(const struct tree *tree, uint32_t node)
{
    return tree->child[node] == NONE;
}

static void add(const struct tree *tree, uint32_t node, struct tally *tally)
{
    tally->count[tree->page->node[node].state]++;
    tally->total++;
}

static void add_below(const struct tree *tree, uint32_t top, struct tally *tally)
{
    uint32_t at = top;
    for (;;) {
        add(tree, at, tally);
        if (!is_leaf(tree, at)) {
            at = tree->child[at];
            continue;
        }
        while (at != top && tree->sibling[at] == NONE)
            at = tree->parent[at];
        if (at == top)
            return;
        at = tree->sibling[at];
    }
}

/* One line that counts nodes that are not drawn. */
static void put_tally(const struct walk *walk, const struct tally *tally, const char *lead)
{
    weft_table_cell(walk->table, "%s... %" PRIu64 " more", lead, tally->total);
    for (int i = 0; i < 5; i++)
        weft_table_cell(walk->table, "%s", "");
    weft_table_cell(walk->table, "%s", counted(tally->count, walk->tree->arena));
}

/* ---- Long rows ------------------------------------------------------------------------------- */

/* True for the first nodes of a long row that failed or were escalated: these are drawn. */
static bool is_wanted(const struct tree *tree, uint32_t node, uint32_t *failed)
{
    enum weft_state state = tree->page->node[node].state;
    bool wanted = (state == WEFT_STATE_FAILED || state == WEFT_STATE_EXPIRED ||
                   tree->page->node[node].escalated) &&
                  *failed < SHOWN_AT_ONCE;
    *failed += wanted;
    return wanted;
}

/* True when a sibling after the first ones is not drawn, nor the nodes below it; the last sibling
 * is always drawn. */
static bool pass_over(struct walk *walk, uint32_t at, const char *lead)
{
    const struct tree *tree = walk->tree;
    size_t row = tree->parent[at] == NONE ? tree->page->count : tree->parent[at];
    uint32_t *shown = &walk->shown[row], *failed = &walk->failed[row];
    if (*shown < SHOWN_AT_ONCE) {
        (*shown)++;
        return false;
    }
    if (walk->all || tree->sibling[at] == NONE || is_wanted(tree, at, failed))
        return false;
    if (*shown == SHOWN_AT_ONCE) { /* one line for all of them */
        struct tally tally = {0};
        uint32_t more = *failed;
        for (uint32_t i = at; tree->sibling[i] != NONE; i = tree->sibling[i])
            if (!is_wanted(tree, i, &more))
                add_below(tree, i, &tally);
        put_tally(walk, &tally, lead);
        (*shown)++;
    }
    return true;
}

/* ---- Long chains ----------------------------------------------------------------------------- */

/* An only child stands straight below its parent, unless it would look like a root there. */
static bool is_straight(const struct tree *tree, uint32_t at)
{
    uint32_t parent = tree->parent[at];
    return parent != NONE && tree->sibling[at] == NONE && tree->child[parent] == at &&
           (tree->parent[parent] != NONE || tree->sibling[tree->root] == NONE);
}

/* A node in the middle of a chain that neither runs nor failed. */
static bool is_dull(const struct tree *tree, uint32_t at)
{
    enum weft_state state = tree->page->node[at].state;
    bool inside = !is_leaf(tree, at) && is_straight(tree, at) && is_straight(tree, tree->child[at]);
    return inside && (state == WEFT_STATE_BLOCKED || state == WEFT_STATE_SUCCEEDED ||
                      state == WEFT_STATE_CANCELLED || state == WEFT_STATE_SKIPPED);
}

/* True when a node after the first ones of a chain is not drawn; nodes below it may be. */
static bool pass_down(struct walk *walk, uint32_t at, const char *lead)
{
    const struct tree *tree = walk->tree;
    walk->straight = is_straight(tree, at) ? walk->straight + 1 : 0;
    if (walk->all || walk->straight <= SHOWN_AT_ONCE || !is_dull(tree, at)) {
        walk->counted = false;
        return false;
    }
    if (!walk->counted) {
        struct tally tally = {0};
        for (uint32_t i = at; is_dull(tree, i); i = tree->child[i])
            add(tree, i, &tally);
        put_tally(walk, &tally, lead);
        walk->counted = true;
    }
    return true;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* The indentation of children, with the lines of the tree. */
static const char *lead_of(const struct tree *tree, const char *outer, bool last)
{
    enum { STEP = 3 };
    if (strlen(outer) >= (size_t)INDENT_MAX * STEP)
        return outer;
    return weft_arena_printf(tree->arena, "%s%s", outer, last ? "   " : "|  ");
}

/* Draws a node, or a line that counts it and others, or nothing. False: its children are not
 * drawn. */
static bool put_one(struct walk *walk, uint32_t at)
{
    const struct tree *tree = walk->tree;
    uint32_t parent = tree->parent[at];
    bool root = parent == NONE, last = tree->sibling[at] == NONE, straight = is_straight(tree, at);
    const char *outer = root ? "" : walk->lead[parent];
    const char *mark = root || straight ? "" : last ? "`- " : "|- ";
    const char *lead = weft_arena_printf(tree->arena, "%s%s", outer, mark);
    if (pass_over(walk, at, lead))
        return false;
    walk->lead[at] = root || straight ? outer : lead_of(tree, outer, last);
    if (!pass_down(walk, at, lead))
        put_node(walk->table, tree, at, lead);
    return true;
}

static void put_tree(struct walk *walk)
{
    const struct tree *tree = walk->tree;
    uint32_t at = tree->root;
    while (at != NONE) {
        if (put_one(walk, at) && !is_leaf(tree, at)) {
            at = tree->child[at];
            continue;
        }
        while (at != NONE && tree->sibling[at] == NONE) /* up, until there is a next one */
            at = tree->parent[at];
        if (at != NONE)
            at = tree->sibling[at];
    }
}

static void put_head(const struct weft_cli *cli, const struct weft_flow_page *page,
                     struct weft_arena *arena)
{
    const struct weft_flow *flow = &page->flow;
    char id[WEFT_ID_TEXT], took[WEFT_AGO_TEXT];
    const char *color = weft_cli_color(cli) ? weft_flow_color(flow->state) : NULL;
    weft_id_print(&flow->id, id);
    printf("flow %s", id);
    if (flow->name) {
        putchar(' ');
        weft_put_clean(stdout, flow->name);
    }
    printf(": ");
    weft_put_painted(color, weft_wire_flow_states[flow->state]);
    weft_span((flow->finished_us ? flow->finished_us : weft_wall_us()) - flow->created_us, took);
    printf(" %s %s, revision %d\n%" PRIu64 " node%s: %s\n", flow->finished_us ? "after" : "for",
           took, flow->revision, flow->node_count, flow->node_count == 1 ? "" : "s",
           counted(flow->count, arena));
    if (flow->cancel != WEFT_FLOW_CANCEL_NONE) {
        printf("cancelled (%s)%s", weft_wire_flow_cancels[flow->cancel], flow->reason ? ": " : "");
        weft_put_clean(stdout, flow->reason ? flow->reason : "");
        putchar('\n');
    }
    putchar('\n');
}

void weft_flow_draw(const struct weft_cli *cli, const struct weft_flow_page *page, bool all)
{
    static const struct weft_column column[] = {
        {.title = "NODE", .give = 4},
        {.title = "STATE"},
        {.title = "TIME", .align = WEFT_RIGHT},
        {.title = "TRY", .align = WEFT_RIGHT},
        {.title = "ID", .align = WEFT_RIGHT, .give = 1}, /* left out rather than cut */
        {.title = "AFTER", .give = 2},
        {.title = "NOTE", .give = 3},
    };
    struct weft_arena *arena = weft_arena_new();
    struct tree tree = make_tree(page, arena);
    struct walk walk = {.table = weft_table_new(cli, column, WEFT_LEN(column)),
                        .tree = &tree,
                        .all = all,
                        .shown = numbers(arena, page->count, 0),
                        .failed = numbers(arena, page->count, 0),
                        .lead = weft_new_array(arena, const char *, page->count + 1)};
    put_head(cli, page, arena);
    put_tree(&walk);
    weft_table_print(walk.table);
    weft_arena_free(arena);
}

/* ---- Graphviz -------------------------------------------------------------------------------- */

static const char *dot_color(const struct weft_flow_node *node)
{
    static const char *const color[WEFT_STATE_COUNT] = {
        [WEFT_STATE_SUCCEEDED] = "palegreen", [WEFT_STATE_FAILED] = "lightcoral",
        [WEFT_STATE_EXPIRED] = "lightcoral",  [WEFT_STATE_CANCELLED] = "lightgrey",
        [WEFT_STATE_SKIPPED] = "lightgrey",   [WEFT_STATE_RUNNING] = "lightskyblue",
        [WEFT_STATE_READY] = "khaki",         [WEFT_STATE_DELAYED] = "khaki",
        [WEFT_STATE_SUSPENDED] = "orange",
    };
    return node->escalated ? "orangered" : color[node->state] ? color[node->state] : "white";
}

/* Names of nodes and flows hold no character that must be escaped. */
void weft_flow_dot(const struct weft_flow_page *page)
{
    char id[WEFT_ID_TEXT];
    weft_id_print(&page->flow.id, id);
    printf("digraph \"%s\" {\n  node [shape=box, style=\"rounded,filled\"];\n",
           page->flow.name ? page->flow.name : id);
    for (size_t i = 0; i < page->count; i++) {
        const struct weft_flow_node *node = &page->node[i];
        printf("  \"%s\" [fillcolor=%s, tooltip=\"%s%s\"", node->name, dot_color(node),
               weft_state_name(node->state), node->escalated ? ", escalated" : "");
        if (node->join == WEFT_JOIN_ANY)
            printf(", label=\"%s\\nany of %zu\"", node->name, node->after_count);
        else if (node->join == WEFT_JOIN_QUORUM)
            printf(", label=\"%s\\n%u of %zu\"", node->name, node->k, node->after_count);
        printf("];\n");
        for (size_t k = 0; k < node->after_count; k++)
            printf("  \"%s\" -> \"%s\"%s;\n", node->after[k], node->name,
                   node->join == WEFT_JOIN_ALL ? "" : " [style=dashed]");
    }
    printf("}\n");
}
