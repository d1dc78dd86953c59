/* SPDX-License-Identifier: Apache-2.0 */

/* Writing a message: its rows in their order, with the objects inside it on a small stack. */

#include "wire/type.h"

#include <assert.h>

enum { NESTED_MAX = 4 }; /* flow, node, policy, backoff */

struct level {
    const struct weft_wire_field *field, *end;
    const char *item;
    const struct weft_wire_field *list; /* a LIST or MAP whose element it is, or NULL */
    size_t left;                        /* elements after this one */
};

struct writing {
    struct weft_json_writer *out;
    struct level level[NESTED_MAX];
    size_t depth;
    bool answer;
    bool encoded; /* the bytes were written as base64 */
};

static bool has_object(const struct weft_wire_field *field, const char *item)
{
    if (field->kind == WEFT_WIRE_POLICY)
        return WEFT_WIRE_VALUE(void *const, item, field->at) != NULL;
    if (field->flags & WEFT_WIRE_BY_FLAG)
        return WEFT_WIRE_VALUE(bool, item, field->count);
    if (field->flags & WEFT_WIRE_BY_SIGN)
        return WEFT_WIRE_VALUE(int32_t, item, field->count) >= 0;
    for (size_t i = 0; i < field->inners; i++)
        if (weft_wire_is_set(&field->inner[i], item))
            return true;
    return false;
}

static void push(struct writing *writing, const struct weft_wire_field *field, size_t count,
                 const void *item)
{
    assert(writing->depth < NESTED_MAX);
    writing->level[writing->depth++] =
        (struct level){.field = field, .end = field + count, .item = item};
}

/* Begins the object of a row; its members are written by the walk. */
static void open_object(struct writing *writing, const struct weft_wire_field *field,
                        const char *item)
{
    if (has_object(field, item)) {
        weft_json_key(writing->out, field->name);
        weft_json_begin_object(writing->out);
        if (field->kind == WEFT_WIRE_POLICY)
            push(writing, weft_wire_policy, weft_wire_policy_count,
                 WEFT_WIRE_VALUE(void *const, item, field->at));
        else
            push(writing, field->inner, field->inners, item);
    } else if (writing->answer) {
        weft_json_key(writing->out, field->name);
        weft_json_put_null(writing->out);
    }
}

/* Begins an element of a list of messages. */
static void begin_element(struct writing *writing, const struct weft_wire_field *list,
                          const char *element, size_t left)
{
    if (list->kind == WEFT_WIRE_MAP)
        weft_json_key(writing->out, WEFT_WIRE_VALUE(char *const, element, 0));
    weft_json_begin_object(writing->out);
    writing->encoded = false;
    push(writing, list->of->field, list->of->count, element);
    writing->level[writing->depth - 1].list = list;
    writing->level[writing->depth - 1].left = left;
}

static void end_list(struct writing *writing, const struct weft_wire_field *list)
{
    if (list->kind == WEFT_WIRE_MAP)
        weft_json_end_object(writing->out);
    else
        weft_json_end_array(writing->out);
}

/* Begins a list of messages; the walk goes through its elements. */
static void open_list(struct writing *writing, const struct weft_wire_field *field,
                      const char *item)
{
    size_t count = WEFT_WIRE_VALUE(size_t, item, field->count);
    if (count == 0 && !writing->answer && !(field->flags & WEFT_WIRE_REQUIRED))
        return;
    weft_json_key(writing->out, field->name);
    if (field->kind == WEFT_WIRE_MAP)
        weft_json_begin_object(writing->out);
    else
        weft_json_begin_array(writing->out);
    if (count > 0)
        begin_element(writing, field, WEFT_WIRE_VALUE(char *const, item, field->at), count - 1);
    else
        end_list(writing, field);
}

/* Whether a field that is not set is written. */
static bool is_wanted(const struct writing *writing, const struct weft_wire_field *field)
{
    if (field->flags & (WEFT_WIRE_REQUIRED | WEFT_WIRE_ALWAYS))
        return true;
    if (field->kind == WEFT_WIRE_CONTENT_TYPE && writing->encoded)
        return true;
    return writing->answer && field->kind != WEFT_WIRE_REF;
}

static void write_field(struct writing *writing, const struct weft_wire_field *field,
                        const char *item)
{
    if (field->kind == WEFT_WIRE_OBJECT || field->kind == WEFT_WIRE_POLICY) {
        open_object(writing, field, item);
    } else if (field->kind == WEFT_WIRE_JSON) {
        if (WEFT_WIRE_VALUE(void *const, item, field->at) != NULL)
            writing->encoded |= weft_wire_put_bytes(writing->out, field, item);
    } else if (field->kind == WEFT_WIRE_LIST || field->kind == WEFT_WIRE_MAP) {
        open_list(writing, field, item);
    } else if (field->kind != WEFT_WIRE_BASE64 &&
               (is_wanted(writing, field) || weft_wire_is_set(field, item))) {
        weft_json_key(writing->out, field->name);
        weft_wire_put_value(writing->out, field, item, writing->encoded);
    }
}

void weft_wire_write_members(const struct weft_wire_type *type, const void *item,
                             struct weft_json_writer *out)
{
    struct writing writing = {.out = out, .answer = type->answer};
    push(&writing, type->field, type->count, item);
    while (writing.depth > 0) {
        struct level *level = &writing.level[writing.depth - 1];
        if (level->field < level->end) {
            write_field(&writing, level->field++, level->item);
            continue;
        }
        const struct level done = *level;
        writing.depth--;
        if (writing.depth > 0)
            weft_json_end_object(out);
        if (done.list && done.left > 0)
            begin_element(&writing, done.list, done.item + done.list->of->size, done.left - 1);
        else if (done.list)
            end_list(&writing, done.list);
    }
}

void weft_wire_write(const struct weft_wire_type *type, const void *item,
                     struct weft_json_writer *out)
{
    weft_json_begin_object(out);
    weft_wire_write_members(type, item, out);
    weft_json_end_object(out);
}
