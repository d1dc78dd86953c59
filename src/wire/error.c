/* SPDX-License-Identifier: Apache-2.0 */

/* The error object, which every answer may hold instead of a result. */

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "wire/wire.h"

#include <string.h>

static void put_left(const struct weft_wire_detail *detail, struct weft_json_writer *out)
{
    weft_json_add_object(out, "left");
    for (size_t i = 0; i < detail->left_count; i++)
        weft_json_add_i64(out, detail->left[i].dimension, detail->left[i].amount);
    weft_json_end_object(out);
}

void weft_wire_write_error(const struct weft_err *error, const struct weft_wire_detail *detail,
                           struct weft_json_writer *out)
{
    weft_json_begin_object(out);
    weft_json_add_text(out, "code", weft_rc_wire(error->rc));
    weft_json_add_text(out, "message", error->text[0] ? error->text : weft_rc_text(error->rc));
    weft_json_add_text(out, "hint", error->hint);
    weft_json_add_text(out, "field", error->field);
    if (detail && detail->fence != WEFT_FENCE_NONE)
        weft_json_add_text(out, "reason", weft_fence_name(detail->fence));
    if (detail && error->rc == WEFT_BUDGET_EXCEEDED)
        put_left(detail, out);
    weft_json_end_object(out);
}

/* A word of a newer server is no code we know; nor is "ok" one of an error. */
static enum weft_rc rc_of(const struct weft_json *word)
{
    for (int rc = WEFT_OK + 1; rc < WEFT_RC_COUNT; rc++)
        if (weft_json_is(word, weft_rc_wire((enum weft_rc)rc)))
            return (enum weft_rc)rc;
    return WEFT_INTERNAL;
}

static enum weft_fence fence_of(const struct weft_json *word)
{
    for (int fence = WEFT_FENCE_NONE + 1; fence <= WEFT_FENCE_SUSPENDED; fence++)
        if (weft_json_is(word, weft_fence_name((enum weft_fence)fence)))
            return (enum weft_fence)fence;
    return WEFT_FENCE_NONE;
}

/* The text of a member, NULL when there is none. */
static const char *text_of(const struct weft_json *object, const char *name,
                           struct weft_arena *arena)
{
    struct weft_json value;
    const char *text;
    if (!weft_wire_member(object, name, &value) || weft_json_string(&value, arena, &text, NULL))
        return NULL;
    return text;
}

/* Members that are no amounts are passed over. */
static void read_left(const struct weft_json *value, struct weft_arena *arena,
                      struct weft_wire_detail *detail)
{
    struct weft_json_iter each;
    size_t most = 1, count = 0;
    for (weft_json_iter_init(&each, value); weft_json_next(&each);)
        most++;
    struct weft_amount *left = weft_new_array(arena, struct weft_amount, most);
    for (weft_json_iter_init(&each, value); weft_json_next(&each);)
        if (!weft_json_string(&each.key, arena, &left[count].dimension, NULL) &&
            weft_json_i64(&each.value, &left[count].amount))
            count++;
    detail->left = left;
    detail->left_count = count;
}

static struct weft_wire_detail detail_of(const struct weft_json *value, struct weft_arena *arena)
{
    struct weft_wire_detail detail = {.fence = WEFT_FENCE_NONE};
    struct weft_json member;
    if (weft_wire_member(value, "reason", &member))
        detail.fence = fence_of(&member);
    if (weft_wire_member(value, "left", &member) && member.kind == WEFT_JSON_OBJECT)
        read_left(&member, arena, &detail);
    return detail;
}

enum weft_rc weft_wire_read_error(const struct weft_json *value, struct weft_arena *arena,
                                  struct weft_err *ret_error, struct weft_wire_detail *ret_detail,
                                  struct weft_err *err)
{
    struct weft_json code;
    if (!weft_wire_member(value, "code", &code) || code.kind != WEFT_JSON_STRING)
        return weft_invalid(err, "code", "an error must be an object with a code");
    struct weft_err error = {
        .rc = rc_of(&code),
        .hint = text_of(value, "hint", arena),
        .field = text_of(value, "field", arena),
    };
    const char *message = text_of(value, "message", arena);
    if (!message)
        message = weft_rc_text(error.rc);
    memcpy(error.text, message, weft_utf8_cut(message, strlen(message), sizeof(error.text) - 1));
    if (ret_detail)
        *ret_detail = detail_of(value, arena);
    *ret_error = error;
    return WEFT_OK;
}
