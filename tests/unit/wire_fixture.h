/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UNIT_WIRE_FIXTURE_H
#define WEFT_TESTS_UNIT_WIRE_FIXTURE_H

/* Shared by the tests of messages: an arena, and messages from and to text. */

#include "base/arena.h"
#include "base/buf.h"
#include "tap.h"
#include "wire/wire.h"

static struct weft_arena *arena;

/* The value of a text, which is kept in the arena; the text must be JSON. */
__attribute__((unused)) static struct weft_json json_of(const char *text)
{
    struct weft_json value = {0};
    const char *kept = weft_arena_strdup(arena, text);
    struct weft_err err = {0};
    if (weft_json_check(kept, strlen(kept), &value, &err))
        ok(false, "a text of the test is no JSON: %s: %s", text, err.text);
    return value;
}

__attribute__((unused)) static enum weft_rc read_text(const struct weft_wire_type *type,
                                                      const char *text, void *ret_struct,
                                                      struct weft_err *err)
{
    struct weft_json value = json_of(text);
    *err = (struct weft_err){0};
    return weft_wire_read(type, &value, arena, ret_struct, err);
}

__attribute__((unused)) static const char *write_text(const struct weft_wire_type *type,
                                                      const void *item)
{
    struct weft_buf buf;
    struct weft_json_writer out;
    weft_buf_init(&buf, 16 << 20);
    weft_json_writer_init(&out, &buf);
    weft_wire_write(type, item, &out);
    const char *text = weft_arena_strdup(arena, buf.data);
    weft_buf_done(&buf);
    return text;
}

#endif
