/* SPDX-License-Identifier: Apache-2.0 */

/* Conditions as people read them. The rules are in core/condition.h; this only finds words. */

#include "base/arena.h"
#include "base/limits.h"
#include "cmd/job/show.h"
#include "core/condition.h"

#include <string.h>

enum { NAMES_MAX = 6 }; /* waitpoints that are named, the others are counted */

struct words {
    const struct weft_condition_scope *scope;
    struct weft_arena *arena;
};

/* "a, b and c", with `last` for "and". */
static const char *names(const struct words *words, const uint32_t *place, size_t count,
                         const char *last)
{
    const char *text = "";
    size_t shown = count <= NAMES_MAX ? count : NAMES_MAX - 1;
    for (size_t i = 0; i < shown; i++)
        text = weft_arena_printf(words->arena, "%s%s%s", text,
                                 i == 0           ? ""
                                 : i + 1 == count ? last
                                                  : ", ",
                                 words->scope->waitpoint[place[i]]);
    if (shown < count)
        text = weft_arena_printf(words->arena, "%s%s%zu more", text, last, count - shown);
    return text;
}

/* "a signal", or "signal `approved`" */
static const char *signal_words(const struct words *words, const char *name)
{
    return name ? weft_arena_printf(words->arena, "signal `%s`", name) : "a signal";
}

static const char *count_words(const struct words *words, const struct weft_condition *node)
{
    struct weft_arena *arena = words->arena;
    bool all = node->waitpoints == words->scope->waitpoints;
    const char *of = names(words, node->waitpoint, node->waitpoints, " or ");
    const char *at = all ? "" : weft_arena_printf(arena, " at %s", of);
    const char *name = node->name ? weft_arena_printf(arena, " `%s`", node->name) : "";
    const char *s = node->n == 1 ? "" : "s";
    switch (node->of) {
    case WEFT_COUNT_SIGNALS:
        return weft_arena_printf(arena, "%u signal%s%s%s", node->n, s, name, at);
    case WEFT_COUNT_SOURCES:
        return weft_arena_printf(arena, "signals%s from %u different source%s%s", name, node->n, s,
                                 at);
    case WEFT_COUNT_WAITPOINTS:
        break;
    }
    return weft_arena_printf(arena, "%u of %zu waitpoints%s%s%s", node->n, node->waitpoints,
                             all ? "" : weft_arena_printf(arena, " (%s)", of),
                             *name ? ", signal" : "", name);
}

/* Whether the parts are signals of one name, or all of any name, each at one waitpoint. */
static bool is_plain(const struct weft_condition *node)
{
    const char *first = node->part[0].name ? node->part[0].name : "";
    for (size_t i = 0; i < node->parts; i++) {
        const char *name = node->part[i].name ? node->part[i].name : "";
        if (node->part[i].kind != WEFT_CONDITION_SIGNAL || strcmp(name, first) != 0)
            return false;
    }
    return node->parts > 1;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by WEFT_CONDITION_DEPTH_MAX */
static const char *node_words(const struct words *words, const struct weft_condition *node)
{
    struct weft_arena *arena = words->arena;
    const char *text = "", *link = node->kind == WEFT_CONDITION_ALL ? " and " : " or ";
    switch (node->kind) {
    case WEFT_CONDITION_SIGNAL:
        return weft_arena_printf(arena, "%s at %s", signal_words(words, node->name),
                                 names(words, node->waitpoint, 1, ""));
    case WEFT_CONDITION_COUNT:
        return count_words(words, node);
    case WEFT_CONDITION_OPERATOR:
        return "an operator";
    case WEFT_CONDITION_TIMEOUT:
        return "its timeout";
    case WEFT_CONDITION_ALL:
    case WEFT_CONDITION_ANY:
        break;
    }
    if (is_plain(node)) {
        uint32_t *place = weft_new_array(arena, uint32_t, node->parts);
        for (size_t i = 0; i < node->parts; i++)
            place[i] = node->part[i].waitpoint[0];
        return weft_arena_printf(arena, "%s at %s%s", signal_words(words, node->part[0].name),
                                 node->kind == WEFT_CONDITION_ALL ? "each of " : "",
                                 names(words, place, node->parts, link));
    }
    for (size_t i = 0; i < node->parts; i++) {
        bool nested = node->parts > 1 && node->part[i].parts > 1 && !is_plain(&node->part[i]);
        text = weft_arena_printf(arena, "%s%s%s%s%s", text, i ? link : "", nested ? "(" : "",
                                 node_words(words, &node->part[i]), nested ? ")" : "");
    }
    return text;
}

const char *weft_condition_words(const struct weft_waiting *waiting, struct weft_arena *arena)
{
    const char **name = weft_new_array(arena, const char *, waiting->waitpoint_count + 1);
    for (size_t i = 0; i < waiting->waitpoint_count; i++)
        name[i] = waiting->waitpoint[i].name;
    const struct weft_condition_scope scope = {
        .waitpoint = name, .waitpoints = waiting->waitpoint_count, .has_timeout = true};
    const struct words words = {.scope = &scope, .arena = arena};
    const char *text = waiting->condition ? waiting->condition : "null";
    struct weft_condition condition;
    struct weft_json value;
    if (weft_json_check(text, strlen(text), &value, NULL) ||
        weft_condition_read(&value, &scope, arena, &condition, NULL))
        return text;
    return node_words(&words, &condition);
}
