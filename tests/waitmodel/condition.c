/* SPDX-License-Identifier: Apache-2.0 */

/* Random conditions, their JSON, and a plain evaluation over sets. */

#include "waitmodel.h"

#include "base/limits.h"

const char *const name_text[NAMES] = {NULL, "yes", "no"};
const char *const source_text[SOURCES] = {NULL, "ann", "bob", "eve"};
const char *const dedupe_text[DEDUPES] = {NULL, "k1", "k2", "k3"};
const char *const point_text[POINT_NAMES] = {"a", "b", "c", "d"};

/* ---- Drawing --------------------------------------------------------------------------------- */

struct drawing {
    struct world *w;
    const struct scope *scope;
    struct condition *condition;
    size_t used; /* of the text */
};

__attribute__((format(printf, 2, 3))) static void put(struct drawing *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    size_t room = sizeof(d->condition->text) - d->used;
    int size = vsnprintf(d->condition->text + d->used, room, fmt, args);
    va_end(args);
    d->used += (size_t)size < room ? (size_t)size : room - 1;
}

static const char *place_text(const struct drawing *d, size_t place)
{
    return place < d->scope->count ? point_text[d->scope->name[place]] : "elsewhere";
}

static void draw_name(struct drawing *d, struct node *node)
{
    node->name = chance(d->w, 50) ? below(d->w, NAMES) : 0;
    if (node->name)
        put(d, ",\"name\":\"%s\"", name_text[node->name]);
}

static void draw_signal(struct drawing *d, struct node *node)
{
    /* Now and then a waitpoint that the suspension does not have. */
    size_t place = below(d->w, d->scope->count + chance(d->w, 2));
    d->condition->refused |= place >= d->scope->count;
    node->places = 1u << place;
    put(d, "\"waitpoint\":\"%s\"", place_text(d, place));
    draw_name(d, node);
}

static void draw_count(struct drawing *d, struct node *node)
{
    static const char *const word[] = {"waitpoints", "signals", "sources"};
    size_t count = d->scope->count;
    node->of = (enum count_of)below(d->w, 3);
    node->n = 1 + (unsigned)below(d->w, 3);
    node->places = (1u << count) - 1;
    if (node->of == OF_WAITPOINTS && chance(d->w, 97))
        node->n = 1 + (unsigned)below(d->w, count);
    put(d, "\"count\":{\"n\":%u,\"of\":\"%s\"", node->n, word[node->of]);
    if (chance(d->w, 50)) {
        const char *comma = "";
        node->places = 1 + (unsigned)below(d->w, (1u << count) - 1);
        put(d, ",\"waitpoints\":[");
        for (size_t i = 0; i < count; i++)
            if (node->places >> i & 1) {
                put(d, "%s\"%s\"", comma, place_text(d, i));
                comma = ",";
            }
        put(d, "]");
    }
    draw_name(d, node);
    put(d, "}");
    d->condition->refused |=
        node->of == OF_WAITPOINTS && node->n > (unsigned)__builtin_popcount(node->places);
}

/* All, any and count may stand in each other four deep; more, now and then, is refused. */
static enum node_kind draw_kind(struct drawing *d, unsigned depth)
{
    enum { RESERVE = PARTS_MAX * (WEFT_CONDITION_DEPTH_MAX + 1) }; /* for parts that are begun */
    size_t dice = below(d->w, 100);
    bool room = d->condition->nodes + RESERVE < NODES_MAX;
    bool deep = depth >= WEFT_CONDITION_DEPTH_MAX && chance(d->w, 99);
    if (dice < 4 || (d->scope->count == 0 && dice < 50))
        return NODE_OPERATOR;
    if (dice < 8 || d->scope->count == 0)
        return NODE_TIMEOUT;
    if (dice < 35 && !deep)
        return NODE_COUNT;
    if (dice < 70 && !deep && room)
        return dice < 52 ? NODE_ALL : NODE_ANY;
    return NODE_SIGNAL;
}

/* NOLINTNEXTLINE(misc-no-recursion): it goes five deep at most */
static size_t draw_node(struct drawing *d, unsigned depth)
{
    size_t which = d->condition->nodes++;
    struct node *node = &d->condition->node[which];
    *node = (struct node){.kind = draw_kind(d, depth)};
    bool nests = node->kind == NODE_COUNT || node->kind == NODE_ALL || node->kind == NODE_ANY;
    d->condition->refused |= nests && depth >= WEFT_CONDITION_DEPTH_MAX;
    d->condition->refused |= node->kind == NODE_TIMEOUT && !d->scope->has_timeout;
    put(d, "{");
    if (node->kind == NODE_SIGNAL)
        draw_signal(d, node);
    else if (node->kind == NODE_COUNT)
        draw_count(d, node);
    else if (node->kind == NODE_OPERATOR || node->kind == NODE_TIMEOUT)
        put(d, "\"%s\":true", node->kind == NODE_OPERATOR ? "operator" : "timeout");
    else {
        size_t parts = 1 + below(d->w, PARTS_MAX);
        put(d, "\"%s\":[", node->kind == NODE_ALL ? "all" : "any");
        for (size_t i = 0; i < parts; i++) {
            put(d, "%s", i ? "," : "");
            node->part[node->parts++] = draw_node(d, depth + 1);
        }
        put(d, "]");
    }
    put(d, "}");
    return which;
}

void draw_condition(struct world *w, const struct scope *scope, struct condition *ret_condition)
{
    struct drawing drawing = {.w = w, .scope = scope, .condition = ret_condition};
    *ret_condition = (struct condition){.nodes = 0};
    (void)draw_node(&drawing, 0);
}

/* ---- Evaluating ------------------------------------------------------------------------------ */

static bool fits(const struct node *node, const struct seen_signal *signal)
{
    bool leaf = node->kind == NODE_SIGNAL || node->kind == NODE_COUNT;
    bool sourceless = node->kind == NODE_COUNT && node->of == OF_SOURCES && signal->source == 0;
    return leaf && (node->places >> signal->place & 1) &&
           (node->name == 0 || node->name == signal->name) && !sourceless;
}

bool is_asked(const struct condition *condition, size_t places, const struct seen_signal *signal)
{
    bool asked = condition->nodes == 0 && signal->place < places;
    for (size_t i = 0; i < condition->nodes; i++)
        asked |= fits(&condition->node[i], signal);
    return asked;
}

/* How many signals, waitpoints or sources there are among the signals that fit. */
static unsigned count_fits(const struct node *node, const struct seen_signal *signal, size_t count)
{
    unsigned signals = 0, places = 0, sources = 0;
    for (size_t i = 0; i < count; i++)
        if (fits(node, &signal[i])) {
            signals++;
            places |= 1u << signal[i].place;
            sources |= 1u << signal[i].source;
        }
    return node->kind == NODE_SIGNAL || node->of == OF_SIGNALS ? signals
           : node->of == OF_WAITPOINTS ? (unsigned)__builtin_popcount(places)
                                       : (unsigned)__builtin_popcount(sources);
}

/* NOLINTNEXTLINE(misc-no-recursion): it goes five deep at most */
static bool node_holds(const struct condition *condition, size_t which,
                       const struct seen_signal *signal, size_t count)
{
    const struct node *node = &condition->node[which];
    size_t holding = 0;
    for (size_t i = 0; i < node->parts; i++)
        holding += node_holds(condition, node->part[i], signal, count);
    switch (node->kind) {
    case NODE_SIGNAL:
        return count_fits(node, signal, count) > 0;
    case NODE_COUNT:
        return count_fits(node, signal, count) >= node->n;
    case NODE_ALL:
        return holding == node->parts;
    case NODE_ANY:
        return holding > 0;
    case NODE_OPERATOR:
    case NODE_TIMEOUT:
        break;
    }
    return false;
}

bool is_satisfied(const struct condition *condition, size_t places,
                  const struct seen_signal *signal, size_t count)
{
    if (condition->nodes > 0)
        return node_holds(condition, 0, signal, count);
    unsigned have = 0;
    for (size_t i = 0; i < count; i++)
        have |= 1u << signal[i].place;
    return have == (1u << places) - 1;
}
