/* SPDX-License-Identifier: Apache-2.0 */

/*
 * JSON: what passes the check can be walked wholly, each value alone passes it too, and a text that
 * is written again from what was read is read as the same.
 */

#include "fuzz/fuzz.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"

/* Reads a value in every way; what is not of its kind must be refused, not misread. */
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

static bool is_open(const struct weft_json *value)
{
    return value->kind == WEFT_JSON_ARRAY || value->kind == WEFT_JSON_OBJECT;
}

static void begin(const struct weft_json *value, struct weft_json_writer *out)
{
    if (value->kind == WEFT_JSON_OBJECT)
        weft_json_begin_object(out);
    else
        weft_json_begin_array(out);
}

/* Walks everything and writes it anew; keys that cannot be texts of C are left out. */
static void walk(const struct weft_json *top, struct weft_arena *arena,
                 struct weft_json_writer *out)
{
    struct weft_json_iter iter[WEFT_JSON_DEPTH_MAX];
    enum weft_json_kind kind[WEFT_JSON_DEPTH_MAX];
    size_t depth = 0;
    struct weft_json value = *top;
    for (;;) {
        if (is_open(&value)) {
            must(depth < WEFT_JSON_DEPTH_MAX);
            begin(&value, out);
            kind[depth] = value.kind;
            weft_json_iter_init(&iter[depth++], &value);
        } else {
            read_scalar(&value, arena);
            write_scalar(&value, arena, out);
        }
        bool found = false;
        while (depth > 0 && !found) {
            struct weft_json_iter *at = &iter[depth - 1];
            found = weft_json_next(at);
            if (!found && kind[--depth] == WEFT_JSON_OBJECT)
                weft_json_end_object(out);
            else if (!found)
                weft_json_end_array(out);
            struct weft_err err = {0};
            const char *key;
            if (found && kind[depth - 1] == WEFT_JSON_OBJECT) {
                found = weft_json_string(&at->key, arena, &key, &err) == WEFT_OK;
                if (found)
                    weft_json_key(out, key);
            }
            value = at->value;
        }
        if (!found)
            return;
    }
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
    struct weft_json_writer out;
    weft_buf_init(&first, 8 << 20);
    weft_buf_init(&second, 8 << 20);
    weft_json_writer_init(&out, &first);
    walk(&value, arena, &out);
    must(weft_json_check(first.data, first.size, &value, &err) == WEFT_OK);
    weft_json_writer_init(&out, &second);
    walk(&value, arena, &out);
    must(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    weft_buf_done(&first);
    weft_buf_done(&second);
    weft_arena_free(arena);
    return 0;
}
