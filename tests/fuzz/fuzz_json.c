/* SPDX-License-Identifier: Apache-2.0 */

/*
 * JSON: a text that passes the check can be walked wholly, each value alone passes
 * too, and a text that is written again from the read values is read as the same.
 */

#include "fuzz/fuzz.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"

/* Reads a value in every way; a value of another kind must be refused, not misread. */
static void read_scalar(const struct weft_json *value, struct weft_arena *arena)
{
    struct weft_err err = {0};
    struct weft_json alone;
    const char *text = NULL;
    int64_t whole;
    double number;
    must(weft_json_check(value->text, value->size, &alone, &err) == WEFT_OK);
    must(alone.kind == value->kind && alone.size == value->size);
    bool is_text = weft_json_string(value, arena, &text, &err) == WEFT_OK;
    must(!is_text || (value->kind == WEFT_JSON_STRING && weft_json_is(value, text)));
    must(!weft_json_i64(value, &whole) || value->kind == WEFT_JSON_NUMBER);
    must(!weft_json_double(value, &number) || value->kind == WEFT_JSON_NUMBER);
}

/* Writes a value that holds no others. */
static void write_scalar(const struct weft_json *value, struct weft_arena *arena,
                         struct weft_json_writer *out)
{
    struct weft_err err = {0};
    const char *text;
    int64_t whole;
    if (weft_json_string(value, arena, &text, &err) == WEFT_OK)
        weft_json_put_text(out, text);
    else if (weft_json_i64(value, &whole))
        weft_json_put_i64(out, whole);
    else
        weft_json_put_raw(out, value->text, value->size);
}

/* A walk over everything, level by level. */
struct walk {
    struct weft_json_iter iter[WEFT_JSON_DEPTH_MAX];
    enum weft_json_kind kind[WEFT_JSON_DEPTH_MAX];
    size_t depth;
    struct weft_arena *arena;
    struct weft_json_writer out;
};

static void enter(struct walk *walk, const struct weft_json *value)
{
    must(walk->depth < WEFT_JSON_DEPTH_MAX);
    if (value->kind == WEFT_JSON_OBJECT)
        weft_json_begin_object(&walk->out);
    else
        weft_json_begin_array(&walk->out);
    walk->kind[walk->depth] = value->kind;
    weft_json_iter_init(&walk->iter[walk->depth++], value);
}

static void leave(struct walk *walk)
{
    if (walk->kind[--walk->depth] == WEFT_JSON_OBJECT)
        weft_json_end_object(&walk->out);
    else
        weft_json_end_array(&walk->out);
}

/* Writes the key of a member; false for one that cannot be a text of C, which is left out. */
static bool write_key(struct walk *walk, const struct weft_json_iter *at)
{
    struct weft_err err = {0};
    const char *key;
    if (walk->kind[walk->depth - 1] != WEFT_JSON_OBJECT)
        return true;
    if (weft_json_string(&at->key, walk->arena, &key, &err))
        return false;
    weft_json_key(&walk->out, key);
    return true;
}

/* The next value, after leaving what has ended; false at the end of all. */
static bool find_next(struct walk *walk, struct weft_json *ret_value)
{
    while (walk->depth > 0) {
        struct weft_json_iter *at = &walk->iter[walk->depth - 1];
        if (!weft_json_next(at)) {
            leave(walk);
        } else if (write_key(walk, at)) {
            *ret_value = at->value;
            return true;
        }
    }
    return false;
}

/* Reads everything and writes it again. */
static void rewrite(const struct weft_json *top, struct weft_arena *arena, struct weft_buf *ret_buf)
{
    struct walk walk = {.arena = arena};
    struct weft_json value = *top;
    weft_buf_init(ret_buf, 8 << 20);
    weft_json_writer_init(&walk.out, ret_buf);
    do {
        if (value.kind == WEFT_JSON_ARRAY || value.kind == WEFT_JSON_OBJECT) {
            enter(&walk, &value);
        } else {
            read_scalar(&value, arena);
            write_scalar(&value, arena, &walk.out);
        }
    } while (find_next(&walk, &value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weft_json value;
    struct weft_err err = {0};
    if (weft_json_check((const char *)data, size, &value, &err)) {
        must(err.rc == WEFT_INVALID_JSON);
        return 0;
    }
    struct weft_arena *arena = weft_arena_new();
    struct weft_buf first, second;
    rewrite(&value, arena, &first);
    must(weft_json_check(first.data, first.size, &value, &err) == WEFT_OK);
    rewrite(&value, arena, &second);
    must(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    weft_buf_done(&first);
    weft_buf_done(&second);
    weft_arena_free(arena);
    return 0;
}
