/* SPDX-License-Identifier: Apache-2.0 */

#include "core/condition.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading --------------------------------------------------------------------------------- */

struct reader {
    const struct weft_condition_scope *scope;
    struct weft_arena *arena;
    struct weft_err *err;
    uint32_t nodes, leaves;
};

static enum weft_rc read_node(struct reader *reader, const struct weft_json *value, unsigned depth,
                              struct weft_condition *node);

static enum weft_rc wrong(struct reader *reader, const char *text)
{
    return weft_invalid(reader->err, "condition", "%s", text);
}

/* The member of an object, with kind NULL when it is absent; an unknown one is refused. */
static enum weft_rc read_members(struct reader *reader, const struct weft_json *object,
                                 const char *const *key, size_t count, struct weft_json *ret_value)
{
    if (object->kind != WEFT_JSON_OBJECT)
        return wrong(reader, "a condition, and what stands in count, must be an object");
    for (size_t i = 0; i < count; i++)
        ret_value[i] = (struct weft_json){.kind = WEFT_JSON_NULL};
    struct weft_json_iter member;
    weft_json_iter_init(&member, object);
    while (weft_json_next(&member)) {
        size_t i = 0;
        while (i < count && !weft_json_is(&member.key, key[i]))
            i++;
        if (i == count)
            return weft_fail_field(reader->err, WEFT_UNKNOWN_FIELD, "condition",
                                   "unknown field %.*s in a condition", (int)member.key.size,
                                   member.key.text);
        ret_value[i] = member.value;
    }
    return WEFT_OK;
}

static enum weft_rc read_name(struct reader *reader, const struct weft_json *value,
                              const char **ret_name)
{
    if (value->kind == WEFT_JSON_NULL)
        return WEFT_OK;
    if (value->kind != WEFT_JSON_STRING)
        return wrong(reader, "name in a condition must be the name of a signal");
    enum weft_rc rc = weft_json_string(value, reader->arena, ret_name, reader->err);
    if (!rc && !weft_name_valid(*ret_name))
        rc = wrong(reader, "name in a condition must be 1 to 128 of A-Z a-z 0-9 _ . : / -");
    return rc;
}

/* The place of a waitpoint by its name. */
static enum weft_rc read_waitpoint(struct reader *reader, const struct weft_json *value,
                                   uint32_t *ret_place)
{
    const struct weft_condition_scope *scope = reader->scope;
    for (size_t i = 0; value->kind == WEFT_JSON_STRING && i < scope->waitpoints; i++)
        if (weft_json_is(value, scope->waitpoint[i])) {
            *ret_place = (uint32_t)i;
            return WEFT_OK;
        }
    return weft_invalid(reader->err, "condition",
                        "the condition speaks of the waitpoint %.*s, which is not among waitpoints",
                        (int)(value->size < 140 ? value->size : 140), value->text);
}

static int by_place(const void *a, const void *b)
{
    const uint32_t *one = a, *other = b;
    return (*one > *other) - (*one < *other);
}

/* The list of a count, sorted and each once; absent: all. */
static enum weft_rc read_waitpoints(struct reader *reader, const struct weft_json *value,
                                    struct weft_condition *node)
{
    size_t most = reader->scope->waitpoints, count = 0;
    uint32_t *place = weft_new_array(reader->arena, uint32_t, most + 1);
    node->waitpoint = place;
    if (value->kind == WEFT_JSON_NULL) {
        for (; count < most; count++)
            place[count] = (uint32_t)count;
        node->waitpoints = count;
        return WEFT_OK;
    }
    if (value->kind != WEFT_JSON_ARRAY)
        return wrong(reader, "waitpoints in count must be a list of names");
    struct weft_json_iter item;
    weft_json_iter_init(&item, value);
    while (weft_json_next(&item)) {
        uint32_t found;
        enum weft_rc rc = read_waitpoint(reader, &item.value, &found);
        if (rc)
            return rc;
        if (!bsearch(&found, place, count, sizeof(found), by_place)) {
            place[count++] = found;
            qsort(place, count, sizeof(*place), by_place);
        }
    }
    node->waitpoints = count;
    return count ? WEFT_OK : wrong(reader, "waitpoints in count must name at least one waitpoint");
}

static enum weft_rc read_count(struct reader *reader, const struct weft_json *value,
                               struct weft_condition *node)
{
    enum { N, OF, WAITPOINTS, NAME, KEYS };
    static const char *const key[KEYS] = {"n", "of", "waitpoints", "name"};
    static const char *const what[] = {"waitpoints", "signals", "sources"};
    struct weft_json member[KEYS];
    int64_t n = 0;
    size_t of = 0;
    enum weft_rc rc = read_members(reader, value, key, KEYS, member);
    if (!rc)
        rc = read_name(reader, &member[NAME], &node->name);
    if (!rc)
        rc = read_waitpoints(reader, &member[WAITPOINTS], node);
    if (rc)
        return rc;
    while (of < WEFT_LEN(what) && !weft_json_is(&member[OF], what[of]))
        of++;
    if (of == WEFT_LEN(what))
        return wrong(reader, "of in count must be waitpoints, signals or sources");
    if (!weft_json_i64(&member[N], &n) || n < 1 || n > WEFT_SIGNALS_MAX)
        return weft_invalid(reader->err, "condition", "n in count must be 1 to %d",
                            WEFT_SIGNALS_MAX);
    if (of == WEFT_COUNT_WAITPOINTS && (uint64_t)n > node->waitpoints)
        return weft_invalid(reader->err, "condition",
                            "count wants %lld of %zu waitpoints, which can never be", (long long)n,
                            node->waitpoints);
    node->n = (uint32_t)n;
    node->of = (enum weft_count_of)of;
    return WEFT_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by WEFT_CONDITION_DEPTH_MAX */
static enum weft_rc read_parts(struct reader *reader, const struct weft_json *list, unsigned depth,
                               struct weft_condition *node)
{
    if (list->kind != WEFT_JSON_ARRAY)
        return wrong(reader, "all and any must be lists of conditions");
    struct weft_json_iter item;
    size_t count = 0;
    weft_json_iter_init(&item, list);
    while (weft_json_next(&item))
        count++;
    if (count == 0)
        return wrong(reader, "all and any must have at least one condition");
    if (count > WEFT_CONDITION_NODES_MAX)
        return weft_fail_field(reader->err, WEFT_TOO_LARGE, "condition",
                               "a condition has at most %d parts", WEFT_CONDITION_NODES_MAX);
    node->part = weft_new_array(reader->arena, struct weft_condition, count);
    weft_json_iter_init(&item, list);
    enum weft_rc rc = WEFT_OK;
    while (!rc && weft_json_next(&item))
        rc = read_node(reader, &item.value, depth, &node->part[node->parts++]);
    return rc;
}

static enum weft_rc read_signal(struct reader *reader, const struct weft_json *waitpoint,
                                const struct weft_json *name, struct weft_condition *node)
{
    uint32_t *place = weft_new(reader->arena, uint32_t);
    enum weft_rc rc = read_waitpoint(reader, waitpoint, place);
    node->waitpoint = place;
    node->waitpoints = 1;
    return rc ? rc : read_name(reader, name, &node->name);
}

/* How deep all, any and count stand in each other; a leaf of another kind adds nothing. */
static enum weft_rc check_depth(struct reader *reader, unsigned depth)
{
    if (depth <= WEFT_CONDITION_DEPTH_MAX)
        return WEFT_OK;
    return weft_invalid(reader->err, "condition",
                        "all, any and count may stand in each other %d deep",
                        WEFT_CONDITION_DEPTH_MAX);
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by WEFT_CONDITION_DEPTH_MAX */
static enum weft_rc read_node(struct reader *reader, const struct weft_json *value, unsigned depth,
                              struct weft_condition *node)
{
    enum { WAITPOINT, ALL, ANY, COUNT, OPERATOR, TIMEOUT, NAME, KEYS };
    static const char *const key[KEYS] = {"waitpoint", "all",     "any", "count",
                                          "operator",  "timeout", "name"};
    static const enum weft_condition_kind kind[] = {
        WEFT_CONDITION_SIGNAL, WEFT_CONDITION_ALL,      WEFT_CONDITION_ANY,
        WEFT_CONDITION_COUNT,  WEFT_CONDITION_OPERATOR, WEFT_CONDITION_TIMEOUT};
    struct weft_json member[KEYS] = {0};
    enum weft_rc rc =
        reader->nodes++ < WEFT_CONDITION_NODES_MAX
            ? read_members(reader, value, key, KEYS, member)
            : weft_fail_field(reader->err, WEFT_TOO_LARGE, "condition",
                              "a condition has at most %d parts", WEFT_CONDITION_NODES_MAX);
    if (rc)
        return rc;
    size_t given = 0, which = 0;
    for (size_t i = 0; i < NAME; i++)
        if (member[i].kind != WEFT_JSON_NULL) {
            which = i;
            given++;
        }
    if (given != 1 || (member[NAME].kind != WEFT_JSON_NULL && which != WAITPOINT))
        return wrong(reader,
                     "a condition is one of: waitpoint (with a name, if any), all, any, "
                     "count, operator, timeout");
    *node = (struct weft_condition){.kind = kind[which]};
    switch (node->kind) {
    case WEFT_CONDITION_SIGNAL:
        node->leaf = reader->leaves++;
        return read_signal(reader, &member[WAITPOINT], &member[NAME], node);
    case WEFT_CONDITION_COUNT:
        node->leaf = reader->leaves++;
        rc = check_depth(reader, depth + 1);
        return rc ? rc : read_count(reader, &member[COUNT], node);
    case WEFT_CONDITION_ALL:
    case WEFT_CONDITION_ANY:
        rc = check_depth(reader, depth + 1);
        return rc ? rc : read_parts(reader, &member[which], depth + 1, node);
    case WEFT_CONDITION_OPERATOR:
    case WEFT_CONDITION_TIMEOUT:
        break;
    }
    if (member[which].kind != WEFT_JSON_BOOL || !weft_json_bool(&member[which]))
        return wrong(reader, "operator and timeout in a condition can only be true");
    if (node->kind == WEFT_CONDITION_TIMEOUT && !reader->scope->has_timeout)
        return wrong(reader,
                     "a condition that waits for the timeout needs timeout_ms or timeout_at");
    return WEFT_OK;
}

/* A signal at every waitpoint. */
static enum weft_rc read_absent(struct reader *reader, struct weft_condition *node)
{
    size_t count = reader->scope->waitpoints;
    if (count == 0)
        return weft_invalid(reader->err, "waitpoints",
                            "there is nothing to wait for: give waitpoints, or the condition "
                            "{\"operator\":true} or {\"timeout\":true}");
    struct weft_condition *part = weft_new_array(reader->arena, struct weft_condition, count);
    uint32_t *place = weft_new_array(reader->arena, uint32_t, count);
    for (size_t i = 0; i < count; i++) {
        place[i] = (uint32_t)i;
        part[i] = (struct weft_condition){.kind = WEFT_CONDITION_SIGNAL,
                                          .waitpoint = &place[i],
                                          .waitpoints = 1,
                                          .leaf = (uint32_t)i};
    }
    if (count == 1)
        *node = part[0];
    else
        *node = (struct weft_condition){.kind = WEFT_CONDITION_ALL, .part = part, .parts = count};
    return WEFT_OK;
}

enum weft_rc weft_condition_read(const struct weft_json *value,
                                 const struct weft_condition_scope *scope, struct weft_arena *arena,
                                 struct weft_condition *ret_condition, struct weft_err *err)
{
    struct reader reader = {.scope = scope, .arena = arena, .err = err};
    struct weft_condition node = {0};
    enum weft_rc rc = value && value->kind != WEFT_JSON_NULL ? read_node(&reader, value, 0, &node)
                                                             : read_absent(&reader, &node);
    if (!rc)
        *ret_condition = node;
    return rc;
}

/* ---- Text ------------------------------------------------------------------------------------ */

static void write_node(struct weft_json_writer *out, const struct weft_condition *node,
                       const struct weft_condition_scope *scope);

static void write_count(struct weft_json_writer *out, const struct weft_condition *node,
                        const struct weft_condition_scope *scope)
{
    static const char *const what[] = {"waitpoints", "signals", "sources"};
    weft_json_add_object(out, "count");
    weft_json_add_i64(out, "n", node->n);
    weft_json_add_text(out, "of", what[node->of]);
    weft_json_add_array(out, "waitpoints");
    for (size_t i = 0; i < node->waitpoints; i++)
        weft_json_put_text(out, scope->waitpoint[node->waitpoint[i]]);
    weft_json_end_array(out);
    if (node->name)
        weft_json_add_text(out, "name", node->name);
    weft_json_end_object(out);
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by WEFT_CONDITION_DEPTH_MAX */
static void write_node(struct weft_json_writer *out, const struct weft_condition *node,
                       const struct weft_condition_scope *scope)
{
    weft_json_begin_object(out);
    switch (node->kind) {
    case WEFT_CONDITION_SIGNAL:
        weft_json_add_text(out, "waitpoint", scope->waitpoint[node->waitpoint[0]]);
        if (node->name)
            weft_json_add_text(out, "name", node->name);
        break;
    case WEFT_CONDITION_ALL:
    case WEFT_CONDITION_ANY:
        weft_json_add_array(out, node->kind == WEFT_CONDITION_ALL ? "all" : "any");
        for (size_t i = 0; i < node->parts; i++)
            write_node(out, &node->part[i], scope);
        weft_json_end_array(out);
        break;
    case WEFT_CONDITION_COUNT:
        write_count(out, node, scope);
        break;
    case WEFT_CONDITION_OPERATOR:
        weft_json_add_bool(out, "operator", true);
        break;
    case WEFT_CONDITION_TIMEOUT:
        weft_json_add_bool(out, "timeout", true);
        break;
    }
    weft_json_end_object(out);
}

const char *weft_condition_text(const struct weft_condition *condition,
                                const struct weft_condition_scope *scope, struct weft_arena *arena)
{
    struct weft_buf buf;
    struct weft_json_writer out;
    weft_buf_init(&buf, SIZE_MAX);
    weft_json_writer_init(&out, &buf);
    write_node(&out, condition, scope);
    const char *text = weft_arena_strdup(arena, buf.data);
    weft_buf_done(&buf);
    return text;
}

/* ---- Judging --------------------------------------------------------------------------------- */

static bool asks_for(const struct weft_condition *leaf, const struct weft_condition_signal *signal)
{
    if (leaf->name && (!signal->name || strcmp(leaf->name, signal->name) != 0))
        return false;
    if (leaf->kind == WEFT_CONDITION_COUNT && leaf->of == WEFT_COUNT_SOURCES && !signal->source)
        return false; /* from no source in particular */
    return bsearch(&signal->waitpoint, leaf->waitpoint, leaf->waitpoints, sizeof(uint32_t),
                   by_place) != NULL;
}

/* Counts the signal for a leaf that asks for it, unless an earlier one like it was counted. */
static void count_signal(struct weft_condition_judge *judge, const struct weft_condition *leaf,
                         const struct weft_condition_signal *signal)
{
    bool sources = leaf->kind == WEFT_CONDITION_COUNT && leaf->of == WEFT_COUNT_SOURCES;
    if (leaf->kind == WEFT_CONDITION_COUNT && leaf->of == WEFT_COUNT_SIGNALS) {
        judge->have[leaf->leaf]++;
        return;
    }
    size_t size = sources ? strlen(signal->source) : sizeof(signal->waitpoint);
    char *key = weft_arena_alloc(judge->arena, 1, sizeof(leaf->leaf) + size);
    memcpy(key, &leaf->leaf, sizeof(leaf->leaf));
    memcpy(key + sizeof(leaf->leaf), sources ? (const void *)signal->source : &signal->waitpoint,
           size);
    size += sizeof(leaf->leaf);
    if (weft_map_find(&judge->counted, key, size))
        return;
    weft_map_put(&judge->counted, key, size, judge);
    judge->have[leaf->leaf]++;
}

/* Whether a condition is satisfied by what was counted. */
/* NOLINTNEXTLINE(misc-no-recursion): bounded by WEFT_CONDITION_DEPTH_MAX */
static bool holds(const struct weft_condition_judge *judge, const struct weft_condition *node)
{
    switch (node->kind) {
    case WEFT_CONDITION_SIGNAL:
        return judge->have[node->leaf] > 0;
    case WEFT_CONDITION_COUNT:
        return judge->have[node->leaf] >= node->n;
    case WEFT_CONDITION_ALL:
    case WEFT_CONDITION_ANY:
        for (size_t i = 0; i < node->parts; i++)
            if (holds(judge, &node->part[i]) == (node->kind == WEFT_CONDITION_ANY))
                return node->kind == WEFT_CONDITION_ANY;
        return node->kind == WEFT_CONDITION_ALL;
    case WEFT_CONDITION_OPERATOR:
    case WEFT_CONDITION_TIMEOUT:
        break;
    }
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by WEFT_CONDITION_DEPTH_MAX */
static bool add_to(struct weft_condition_judge *judge, const struct weft_condition *node,
                   const struct weft_condition_signal *signal)
{
    bool asked = false;
    for (size_t i = 0; i < node->parts; i++)
        asked |= add_to(judge, &node->part[i], signal);
    bool leaf = node->kind == WEFT_CONDITION_SIGNAL || node->kind == WEFT_CONDITION_COUNT;
    if (!leaf || !asks_for(node, signal))
        return asked;
    count_signal(judge, node, signal);
    return true;
}

struct weft_condition_judge weft_condition_judge(const struct weft_condition *condition,
                                                 struct weft_arena *arena)
{
    return (struct weft_condition_judge){
        .condition = condition,
        .have = weft_new_array(arena, uint32_t, WEFT_CONDITION_NODES_MAX),
        .arena = arena,
    };
}

bool weft_condition_add(struct weft_condition_judge *judge,
                        const struct weft_condition_signal *signal)
{
    bool asked = add_to(judge, judge->condition, signal);
    judge->satisfied = judge->satisfied || (asked && holds(judge, judge->condition));
    return asked;
}

void weft_condition_judge_done(struct weft_condition_judge *judge)
{
    weft_map_done(&judge->counted);
}
