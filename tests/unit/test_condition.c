/* SPDX-License-Identifier: Apache-2.0 */

/* Conditions: which are read and refused, the canonical text, and every order of small sets of
 * signals against a brute force that looks at all signals so far at once. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "core/condition.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {"a", "b", "c"};
static const struct weft_condition_scope three = {names, 3, true};

static enum weft_rc read_text(const char *text, const struct weft_condition_scope *scope,
                              struct weft_arena *arena, struct weft_condition *ret_condition,
                              struct weft_err *err)
{
    struct weft_json value;
    enum weft_rc rc = weft_json_check(text, strlen(text), &value, err);
    return rc ? rc : weft_condition_read(&value, scope, arena, ret_condition, err);
}

/* ---- Reading and writing --------------------------------------------------------------------- */

static void test_canonical(void)
{
    static const struct {
        const char *given, *canonical;
    } row[] = {
        {"null", "{\"all\":[{\"waitpoint\":\"a\"},{\"waitpoint\":\"b\"},{\"waitpoint\":\"c\"}]}"},
        {" { \"name\" : \"yes\", \"waitpoint\":\"\\u0062\" } ",
         "{\"waitpoint\":\"b\",\"name\":\"yes\"}"},
        {"{\"waitpoint\":\"a\",\"name\":null,\"all\":null}", "{\"waitpoint\":\"a\"}"},
        {"{\"any\":[{\"operator\":true},{\"timeout\":true}]}",
         "{\"any\":[{\"operator\":true},{\"timeout\":true}]}"},
        {"{\"count\":{\"of\":\"sources\",\"n\":2}}",
         "{\"count\":{\"n\":2,\"of\":\"sources\",\"waitpoints\":[\"a\",\"b\",\"c\"]}}"},
        {"{\"count\":{\"n\":1,\"of\":\"signals\",\"waitpoints\":[\"c\",\"a\",\"c\"],\"name\":\"x\"}"
         "}",
         "{\"count\":{\"n\":1,\"of\":\"signals\",\"waitpoints\":[\"a\",\"c\"],\"name\":\"x\"}}"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_arena *arena = weft_arena_new();
        struct weft_condition condition;
        struct weft_err err = {0};
        enum weft_rc rc = read_text(row[i].given, &three, arena, &condition, &err);
        const char *text = rc ? err.text : weft_condition_text(&condition, &three, arena);
        is_str(text, row[i].canonical, "%s has its canonical text", row[i].given);
        rc = read_text(row[i].canonical, &three, arena, &condition, &err);
        text = rc ? err.text : weft_condition_text(&condition, &three, arena);
        is_str(text, row[i].canonical, "the canonical text reads back as itself");
        weft_arena_free(arena);
    }
}

static void test_refused(void)
{
    static const char *const text[] = {
        "[]",
        "{}",
        "true",
        "{\"waitpoint\":\"d\"}",
        "{\"waitpoint\":1}",
        "{\"waitpoint\":\"a\",\"any\":[{\"operator\":true}]}",
        "{\"waitpoint\":\"a\",\"name\":\"\"}",
        "{\"waitpoint\":\"a\",\"name\":\"two words\"}",
        "{\"waitpoint\":\"a\",\"name\":1}",
        "{\"operator\":true,\"name\":\"x\"}",
        "{\"operator\":false}",
        "{\"timeout\":1}",
        "{\"all\":[]}",
        "{\"all\":{}}",
        "{\"any\":[1]}",
        "{\"some\":[]}",
        "{\"count\":[]}",
        "{\"count\":{\"n\":0,\"of\":\"signals\"}}",
        "{\"count\":{\"n\":10001,\"of\":\"signals\"}}",
        "{\"count\":{\"n\":1.5,\"of\":\"signals\"}}",
        "{\"count\":{\"of\":\"signals\"}}",
        "{\"count\":{\"n\":1}}",
        "{\"count\":{\"n\":1,\"of\":\"people\"}}",
        "{\"count\":{\"n\":4,\"of\":\"waitpoints\"}}",
        "{\"count\":{\"n\":2,\"of\":\"waitpoints\",\"waitpoints\":[\"a\",\"a\"]}}",
        "{\"count\":{\"n\":1,\"of\":\"signals\",\"waitpoints\":[]}}",
        "{\"count\":{\"n\":1,\"of\":\"signals\",\"waitpoints\":[\"d\"]}}",
        "{\"count\":{\"n\":1,\"of\":\"signals\",\"more\":1}}",
    };
    for (size_t i = 0; i < WEFT_LEN(text); i++) {
        struct weft_arena *arena = weft_arena_new();
        struct weft_condition condition;
        struct weft_err err = {0};
        enum weft_rc rc = read_text(text[i], &three, arena, &condition, &err);
        ok((rc == WEFT_INVALID_VALUE || rc == WEFT_UNKNOWN_FIELD) &&
               strcmp(err.field, "condition") == 0,
           "%s is refused: %s", text[i], err.text);
        weft_arena_free(arena);
    }
}

/* `levels` times {"all":[ or {"any":[ around a leaf. */
static enum weft_rc read_deep(int levels, const char *leaf)
{
    struct weft_buf text;
    weft_buf_init(&text, SIZE_MAX);
    for (int i = 0; i < levels; i++)
        weft_buf_add_text(&text, i % 2 ? "{\"any\":[" : "{\"all\":[");
    weft_buf_add_text(&text, leaf);
    for (int i = 0; i < levels; i++)
        weft_buf_add_text(&text, "]}");
    struct weft_arena *arena = weft_arena_new();
    struct weft_condition condition;
    struct weft_err err = {0};
    enum weft_rc rc = read_text(text.data, &three, arena, &condition, &err);
    weft_arena_free(arena);
    weft_buf_done(&text);
    return rc;
}

static void test_bounds(void)
{
    ok(read_deep(4, "{\"waitpoint\":\"a\"}") == WEFT_OK, "four deep around a waitpoint is read");
    ok(read_deep(5, "{\"waitpoint\":\"a\"}") == WEFT_INVALID_VALUE, "five deep is refused");
    ok(read_deep(3, "{\"count\":{\"n\":1,\"of\":\"signals\"}}") == WEFT_OK,
       "three deep around a count is read");
    ok(read_deep(4, "{\"count\":{\"n\":1,\"of\":\"signals\"}}") == WEFT_INVALID_VALUE,
       "four deep around a count is refused");

    struct weft_arena *arena = weft_arena_new();
    struct weft_condition condition;
    struct weft_err err = {0};
    struct weft_buf text;
    weft_buf_init(&text, SIZE_MAX);
    weft_buf_add_text(&text, "{\"all\":[{\"operator\":true}");
    for (int i = 0; i < WEFT_CONDITION_NODES_MAX; i++)
        weft_buf_add_text(&text, ",{\"operator\":true}");
    weft_buf_add_text(&text, "]}");
    ok(read_text(text.data, &three, arena, &condition, &err) == WEFT_TOO_LARGE,
       "a condition of too many parts is refused");
    weft_buf_done(&text);
    const struct weft_condition_scope untimed = {names, 3, false}, none = {NULL, 0, true};
    ok(read_text("{\"timeout\":true}", &untimed, arena, &condition, &err) == WEFT_INVALID_VALUE,
       "waiting for a timeout without a timeout is refused");
    ok(read_text("{\"timeout\":true}", &none, arena, &condition, &err) == WEFT_OK,
       "waiting for a timeout without a waitpoint is fine");
    ok(weft_condition_read(NULL, &none, arena, &condition, &err) == WEFT_INVALID_VALUE &&
           strcmp(err.field, "waitpoints") == 0,
       "waiting for nothing is refused");
    const struct weft_condition_scope one = {names, 1, false};
    ok(weft_condition_read(NULL, &one, arena, &condition, &err) == WEFT_OK &&
           condition.kind == WEFT_CONDITION_SIGNAL,
       "without a condition one waitpoint waits for its signal");
    weft_arena_free(arena);
}

/* ---- Judging against brute force ------------------------------------------------------------- */

enum { KINDS_OF_SIGNAL = 12, LONGEST = 4 };

/* Two waitpoints, two names, two sources and none. */
static struct weft_condition_signal signal_of(unsigned i)
{
    static const char *const name[] = {"yes", "no"}, *const source[] = {"x", "y", NULL};
    return (struct weft_condition_signal){i % 2, name[i / 2 % 2], source[i / 4]};
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether a signal is one that a leaf speaks of: its waitpoint and its name. */
static bool is_meant(const struct weft_condition *leaf, const struct weft_condition_signal *signal)
{
    bool listed = false;
    for (size_t k = 0; k < leaf->waitpoints; k++)
        listed |= leaf->waitpoint[k] == signal->waitpoint;
    return listed && (!leaf->name || same_text(leaf->name, signal->name));
}

/* The definition: the count of a leaf, over all signals so far, by comparing each with each. */
static uint32_t count_of(const struct weft_condition *leaf,
                         const struct weft_condition_signal *signal, size_t count)
{
    uint32_t different = 0;
    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        if (!is_meant(leaf, &signal[i]))
            continue;
        if (leaf->of == WEFT_COUNT_SOURCES && !signal[i].source)
            continue;
        for (size_t k = 0; k < i && leaf->of != WEFT_COUNT_SIGNALS; k++) {
            bool alike = leaf->of == WEFT_COUNT_WAITPOINTS
                             ? signal[k].waitpoint == signal[i].waitpoint
                             : same_text(signal[k].source, signal[i].source);
            seen |= alike && is_meant(leaf, &signal[k]);
        }
        different += !seen;
    }
    return different;
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by WEFT_CONDITION_DEPTH_MAX */
static bool brute_force(const struct weft_condition *node,
                        const struct weft_condition_signal *signal, size_t count)
{
    bool all = true, any = false;
    for (size_t i = 0; i < node->parts; i++) {
        bool part = brute_force(&node->part[i], signal, count);
        all &= part;
        any |= part;
    }
    switch (node->kind) {
    case WEFT_CONDITION_SIGNAL:
        return count_of(node, signal, count) > 0;
    case WEFT_CONDITION_COUNT:
        return count_of(node, signal, count) >= node->n;
    case WEFT_CONDITION_ALL:
        return all;
    case WEFT_CONDITION_ANY:
        return any;
    case WEFT_CONDITION_OPERATOR:
    case WEFT_CONDITION_TIMEOUT:
        break;
    }
    return false;
}

/* Every sequence of up to LONGEST of the twelve signals: all orders of all small sets. */
static size_t judged_wrong(const struct weft_condition *condition, size_t *ret_tried)
{
    size_t wrong = 0;
    unsigned sequences = 1;
    for (int i = 0; i < LONGEST; i++)
        sequences *= KINDS_OF_SIGNAL;
    for (unsigned sequence = 0; sequence < sequences; sequence++) {
        struct weft_arena *arena = weft_arena_new();
        struct weft_condition_judge judge = weft_condition_judge(condition, arena);
        struct weft_condition_signal signal[LONGEST];
        unsigned rest = sequence;
        for (size_t i = 0; i < LONGEST; i++, rest /= KINDS_OF_SIGNAL) {
            signal[i] = signal_of(rest % KINDS_OF_SIGNAL);
            (void)weft_condition_add(&judge, &signal[i]);
            wrong += judge.satisfied != brute_force(condition, signal, i + 1);
            ++*ret_tried;
        }
        weft_condition_judge_done(&judge);
        weft_arena_free(arena);
    }
    return wrong;
}

#define NESTED                                                                                     \
    "{\"any\":[{\"operator\":true},{\"all\":[{\"waitpoint\":\"a\"},{\"count\":{\"n\":2,\"of\":"    \
    "\"signals\",\"name\":\"no\"}}]}]}"

static void test_against_brute_force(void)
{
    static const char *const text[] = {
        "null",
        "{\"waitpoint\":\"a\"}",
        "{\"waitpoint\":\"b\",\"name\":\"yes\"}",
        "{\"any\":[{\"waitpoint\":\"a\",\"name\":\"yes\"},{\"waitpoint\":\"b\",\"name\":\"no\"}]}",
        "{\"all\":[{\"waitpoint\":\"a\",\"name\":\"yes\"},{\"waitpoint\":\"a\",\"name\":\"no\"}]}",
        "{\"count\":{\"n\":1,\"of\":\"waitpoints\"}}",
        "{\"count\":{\"n\":2,\"of\":\"waitpoints\"}}",
        "{\"count\":{\"n\":2,\"of\":\"waitpoints\",\"name\":\"yes\"}}",
        "{\"count\":{\"n\":3,\"of\":\"signals\"}}",
        "{\"count\":{\"n\":2,\"of\":\"signals\",\"waitpoints\":[\"b\"],\"name\":\"no\"}}",
        "{\"count\":{\"n\":2,\"of\":\"sources\"}}",
        "{\"count\":{\"n\":2,\"of\":\"sources\",\"waitpoints\":[\"a\"],\"name\":\"yes\"}}",
        "{\"all\":[{\"count\":{\"n\":2,\"of\":\"sources\"}},{\"waitpoint\":\"b\"}]}",
        NESTED, /* NOLINT(bugprone-suspicious-missing-comma): two lines */
        "{\"all\":[{\"operator\":true},{\"waitpoint\":\"a\"}]}",
        "{\"timeout\":true}",
    };
    const struct weft_condition_scope two = {names, 2, true};
    for (size_t i = 0; i < WEFT_LEN(text); i++) {
        struct weft_arena *arena = weft_arena_new();
        struct weft_condition condition;
        struct weft_err err = {0};
        size_t tried = 0;
        enum weft_rc rc = read_text(text[i], &two, arena, &condition, &err);
        ok(rc == WEFT_OK && judged_wrong(&condition, &tried) == 0, "%s: %zu judgements", text[i],
           tried);
        weft_arena_free(arena);
    }
}

static void test_asked_for(void)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_condition condition;
    struct weft_err err = {0};
    enum weft_rc rc = read_text(
        "{\"any\":[{\"waitpoint\":\"a\",\"name\":\"yes\"},{\"count\":{\"n\":2,\"of\":\"sources\","
        "\"waitpoints\":[\"b\"]}}]}",
        &three, arena, &condition, &err);
    struct weft_condition_judge judge = weft_condition_judge(&condition, arena);
    ok(rc == WEFT_OK, "the condition is read");
    ok(!weft_condition_add(&judge, &(struct weft_condition_signal){0, "no", "x"}),
       "a signal of another name is not asked for");
    ok(!weft_condition_add(&judge, &(struct weft_condition_signal){2, "yes", "x"}),
       "a signal at another waitpoint is not asked for");
    ok(!weft_condition_add(&judge, &(struct weft_condition_signal){1, "no", NULL}),
       "a signal without a source is not asked for where sources count");
    ok(weft_condition_add(&judge, &(struct weft_condition_signal){1, NULL, "x"}) &&
           weft_condition_add(&judge, &(struct weft_condition_signal){1, "no", "x"}),
       "signals of one source are asked for, also the second");
    ok(!judge.satisfied, "one source is not two");
    ok(weft_condition_add(&judge, &(struct weft_condition_signal){0, "yes", NULL}) &&
           judge.satisfied,
       "the signal that was asked for satisfies the condition");
    weft_condition_judge_done(&judge);
    weft_arena_free(arena);
}

int main(void)
{
    test_canonical();
    test_refused();
    test_bounds();
    test_against_brute_force();
    test_asked_for();
    return tap_done();
}
