/* SPDX-License-Identifier: Apache-2.0 */

/* Writing a message: its rows in their order, with the objects inside it on a small stack. */

#include "base/base64.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/moment.h"
#include "wire/type.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    NESTED_MAX = 4,   /* flow, node, policy, backoff */
    AROUND_BYTES = 4, /* levels around a payload: the answer, items, the item; one to spare */
    CHUNK = 3 * 1024, /* bytes encoded at a time; a multiple of 3 */
};

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

/* Reading through the offsets of a row. */
#define VALUE(c_type, item, offset) (*(const c_type *)(const void *)((item) + (offset)))

void weft_wire_put_id(struct weft_json_writer *out, const struct weft_id *id)
{
    char text[WEFT_ID_TEXT + 2];
    text[0] = '"';
    weft_id_print(id, text + 1);
    text[WEFT_ID_TEXT] = '"';
    weft_json_put_raw(out, text, WEFT_ID_TEXT + 1);
}

void weft_wire_put_moment(struct weft_json_writer *out, weft_usec moment_us)
{
    if (moment_us == 0) {
        weft_json_put_null(out);
        return;
    }
    char text[WEFT_MOMENT_TEXT + 2];
    text[0] = '"';
    weft_moment_print(moment_us, text + 1);
    text[WEFT_MOMENT_TEXT] = '"';
    weft_json_put_raw(out, text, WEFT_MOMENT_TEXT + 1);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* application/json or anything/that+json, with parameters or without. */
static bool says_json(const char *content_type)
{
    static const char json[] = "application/json", suffix[] = "+json";
    if (!content_type)
        return true;
    size_t size = strcspn(content_type, "; ");
    if (size == sizeof(json) - 1)
        return strncasecmp(content_type, json, size) == 0;
    return size >= sizeof(suffix) &&
           strncasecmp(content_type + size - (sizeof(suffix) - 1), suffix, sizeof(suffix) - 1) == 0;
}

/*
 * Bytes may stand in a message as they are when they are called JSON, are JSON, have no space
 * around them that a reader would lose, and are not so deep that the message could not be read.
 */
static bool goes_raw(const void *data, size_t size, const char *content_type)
{
    struct weft_json value;
    return says_json(content_type) &&
           weft_json_check_inside(data, size, AROUND_BYTES, &value, NULL) == WEFT_OK &&
           value.size == size;
}

static void put_base64(struct weft_json_writer *out, const char *data, size_t size)
{
    char text[WEFT_BASE64_SIZE(CHUNK) + 1];
    weft_json_put_raw(out, "\"", 1); /* one value, in pieces */
    while (size > 0) {
        size_t now = size < CHUNK ? size : CHUNK;
        weft_buf_add(out->buf, text, weft_base64_encode(data, now, text));
        data += now;
        size -= now;
    }
    weft_buf_add_char(out->buf, '"');
}

/* Writes the member of the row or the one of its rival, which is the next row. */
static void write_bytes(struct writing *writing, const struct weft_wire_field *field,
                        const char *item)
{
    const char *data = VALUE(char *const, item, field->at);
    size_t size = VALUE(size_t, item, field->count);
    if (!data)
        return;
    if (goes_raw(data, size, VALUE(char *const, item, field->type))) {
        weft_json_key(writing->out, field->name);
        weft_json_put_raw(writing->out, data, size);
    } else {
        weft_json_key(writing->out, field[1].name);
        put_base64(writing->out, data, size);
        writing->encoded = true;
    }
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static void put_texts(struct weft_json_writer *out, const char *const *text, size_t count)
{
    weft_json_begin_array(out);
    for (size_t i = 0; i < count; i++)
        weft_json_put_text(out, text[i]);
    weft_json_end_array(out);
}

static void put_tags(struct weft_json_writer *out, const struct weft_tag *tag, size_t count)
{
    weft_json_begin_object(out);
    for (size_t i = 0; i < count; i++) {
        weft_json_key(out, tag[i].key);
        weft_json_put_text(out, tag[i].value);
    }
    weft_json_end_object(out);
}

static void put_weights(struct weft_json_writer *out, const struct weft_weight *weight,
                        size_t count)
{
    weft_json_begin_object(out);
    for (size_t i = 0; i < count; i++) {
        weft_json_key(out, weight[i].tenant);
        weft_json_put_i64(out, weight[i].weight);
    }
    weft_json_end_object(out);
}

static void put_counters(struct weft_json_writer *out, const struct weft_counter *counter,
                         size_t count)
{
    weft_json_begin_object(out);
    for (size_t i = 0; i < count; i++) {
        weft_json_key(out, counter[i].name);
        weft_json_put_i64(out, (int64_t)counter[i].value);
    }
    weft_json_end_object(out);
}

static void put_ids(struct weft_json_writer *out, const struct weft_wire_named_id *named,
                    size_t count)
{
    weft_json_begin_object(out);
    for (size_t i = 0; i < count; i++) {
        weft_json_key(out, named[i].name);
        weft_wire_put_id(out, &named[i].id);
    }
    weft_json_end_object(out);
}

static void put_tag(struct weft_json_writer *out, const struct weft_tag *tag)
{
    if (!tag) {
        weft_json_put_null(out);
        return;
    }
    struct weft_buf text;
    weft_buf_init(&text, SIZE_MAX / 4);
    weft_buf_add_text(&text, tag->key ? tag->key : "");
    weft_buf_add_char(&text, ':');
    weft_buf_add_text(&text, tag->value ? tag->value : "");
    weft_json_put_text(out, text.data);
    weft_buf_done(&text);
}

static void put_range(struct weft_json_writer *out, const struct weft_wire_field *field,
                      const char *item)
{
    uint32_t first = VALUE(uint32_t, item, field->at), last = VALUE(uint32_t, item, field->count);
    if (first == 0 && last == field->max) {
        weft_json_put_null(out);
        return;
    }
    weft_json_begin_array(out);
    weft_json_put_i64(out, first);
    weft_json_put_i64(out, last);
    weft_json_end_array(out);
}

/* Whoever wrote the text, an answer stays JSON. */
static void put_raw(struct weft_json_writer *out, const char *text)
{
    struct weft_json value = {0};
    if (text && !weft_json_check_inside(text, strlen(text), AROUND_BYTES, &value, NULL) &&
        value.kind == WEFT_JSON_OBJECT)
        weft_json_put_raw(out, value.text, value.size);
    else
        weft_json_put_raw(out, "{}", 2);
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Whether a request mentions it; any form but OBJECT. */
static bool is_set(const struct weft_wire_field *field, const char *item)
{
    switch ((enum weft_wire_kind)field->kind) {
    case WEFT_WIRE_ID:
        return !(field->flags & WEFT_WIRE_OR_NULL) ||
               !weft_id_is_zero(&VALUE(struct weft_id, item, field->at));
    case WEFT_WIRE_TEXT:
    case WEFT_WIRE_CONTENT_TYPE:
    case WEFT_WIRE_TAG:
    case WEFT_WIRE_POLICY:
    case WEFT_WIRE_RAW:
        return VALUE(void *const, item, field->at) != NULL;
    case WEFT_WIRE_I32:
    case WEFT_WIRE_U32:
    case WEFT_WIRE_STATE:
    case WEFT_WIRE_BACKOFF:
    case WEFT_WIRE_WORD:
        return VALUE(uint32_t, item, field->at) != 0;
    case WEFT_WIRE_I64:
    case WEFT_WIRE_U64:
    case WEFT_WIRE_AT_ONCE:
    case WEFT_WIRE_MOMENT:
    case WEFT_WIRE_MS:
        return VALUE(int64_t, item, field->at) != 0;
    case WEFT_WIRE_DUE:
        return VALUE(int64_t, item, field->at) != field->normally;
    case WEFT_WIRE_DOUBLE:
        return VALUE(double, item, field->at) != 0;
    case WEFT_WIRE_BOOL:
    case WEFT_WIRE_UNLESS:
    case WEFT_WIRE_ALIVE:
    case WEFT_WIRE_REF:
        return VALUE(bool, item, field->at);
    case WEFT_WIRE_RANGE:
        return VALUE(uint32_t, item, field->at) != 0 ||
               VALUE(uint32_t, item, field->count) != field->max;
    case WEFT_WIRE_TEXTS:
    case WEFT_WIRE_TAGS:
    case WEFT_WIRE_WEIGHTS:
    case WEFT_WIRE_COUNTERS:
    case WEFT_WIRE_IDS:
    case WEFT_WIRE_LIST:
    case WEFT_WIRE_MAP:
        return VALUE(size_t, item, field->count) != 0;
    case WEFT_WIRE_OBJECT:
    case WEFT_WIRE_JSON:
    case WEFT_WIRE_BASE64:
        break;
    }
    return false;
}

static void put_number(struct weft_json_writer *out, const struct weft_wire_field *field,
                       const char *item)
{
    int64_t number;
    if (field->kind == WEFT_WIRE_I32)
        number = VALUE(int32_t, item, field->at);
    else if (field->kind == WEFT_WIRE_U32)
        number = VALUE(uint32_t, item, field->at);
    else
        number = VALUE(int64_t, item, field->at);
    if (field->kind == WEFT_WIRE_AT_ONCE && number == -1)
        number = 0;
    if (field->kind == WEFT_WIRE_MS)
        number /= WEFT_MS;
    weft_json_put_i64(out, number);
}

static void put_word(const struct writing *writing, const struct weft_wire_field *field,
                     const char *item)
{
    const char *text = NULL;
    if (field->kind == WEFT_WIRE_STATE) {
        enum weft_state state = VALUE(enum weft_state, item, field->at);
        text = state == WEFT_STATE_NONE ? NULL : weft_state_name(state);
    } else if (field->kind == WEFT_WIRE_BACKOFF) {
        bool fixed = VALUE(enum weft_backoff, item, field->at) == WEFT_BACKOFF_FIXED;
        text = fixed ? "fixed" : "exponential";
    } else if (field->kind == WEFT_WIRE_ALIVE) {
        text = VALUE(bool, item, field->at) ? "alive" : "dead";
    } else if (field->kind == WEFT_WIRE_WORD) {
        uint32_t number = VALUE(uint32_t, item, field->at);
        text = number < field->inners ? field->word[number] : NULL;
    } else {
        text = VALUE(char *const, item, field->at);
        /* Without a word for it, encoded bytes would be taken for something else than JSON. */
        if (!text && field->kind == WEFT_WIRE_CONTENT_TYPE && writing->encoded)
            text = "application/json";
    }
    weft_json_put_text(writing->out, text);
}

static void put_list(struct weft_json_writer *out, const struct weft_wire_field *field,
                     const char *item)
{
    size_t count = VALUE(size_t, item, field->count);
    if (field->kind == WEFT_WIRE_TEXTS)
        put_texts(out, VALUE(char *const *const, item, field->at), count);
    else if (field->kind == WEFT_WIRE_TAGS)
        put_tags(out, VALUE(struct weft_tag *const, item, field->at), count);
    else if (field->kind == WEFT_WIRE_WEIGHTS)
        put_weights(out, VALUE(struct weft_weight *const, item, field->at), count);
    else if (field->kind == WEFT_WIRE_IDS)
        put_ids(out, VALUE(struct weft_wire_named_id *const, item, field->at), count);
    else
        put_counters(out, VALUE(struct weft_counter *const, item, field->at), count);
}

/* Where the result of an upstream is that did not come along. */
static void put_ref(struct weft_json_writer *out, const struct weft_id *id)
{
    char text[WEFT_ID_TEXT], path[WEFT_ID_TEXT + 32];
    weft_id_print(id, text);
    (void)snprintf(path, sizeof(path), "/v1/executions/%s/result", text);
    weft_json_put_text(out, path);
}

static void put_moment(struct weft_json_writer *out, const struct weft_wire_field *field,
                       const char *item)
{
    weft_usec moment_us = VALUE(weft_usec, item, field->at);
    bool never = field->kind == WEFT_WIRE_DUE && moment_us == field->normally;
    weft_wire_put_moment(out, never ? 0 : moment_us);
}

/* Any form but objects with rows and bytes. */
static void put_value(const struct writing *writing, const struct weft_wire_field *field,
                      const char *item)
{
    struct weft_json_writer *out = writing->out;
    if (field->flags & WEFT_WIRE_OR_NULL && !is_set(field, item)) {
        weft_json_put_null(out);
        return;
    }
    switch ((enum weft_wire_kind)field->kind) {
    case WEFT_WIRE_ID:
        weft_wire_put_id(out, &VALUE(struct weft_id, item, field->at));
        break;
    case WEFT_WIRE_TEXT:
    case WEFT_WIRE_CONTENT_TYPE:
    case WEFT_WIRE_STATE:
    case WEFT_WIRE_BACKOFF:
    case WEFT_WIRE_ALIVE:
    case WEFT_WIRE_WORD:
        put_word(writing, field, item);
        break;
    case WEFT_WIRE_I32:
    case WEFT_WIRE_U32:
    case WEFT_WIRE_I64:
    case WEFT_WIRE_U64:
    case WEFT_WIRE_AT_ONCE:
    case WEFT_WIRE_MS:
        put_number(out, field, item);
        break;
    case WEFT_WIRE_DOUBLE:
        weft_json_put_double(out, VALUE(double, item, field->at));
        break;
    case WEFT_WIRE_BOOL:
    case WEFT_WIRE_UNLESS:
        weft_json_put_bool(out, VALUE(bool, item, field->at) != (field->kind == WEFT_WIRE_UNLESS));
        break;
    case WEFT_WIRE_MOMENT:
    case WEFT_WIRE_DUE:
        put_moment(out, field, item);
        break;
    case WEFT_WIRE_TEXTS:
    case WEFT_WIRE_TAGS:
    case WEFT_WIRE_WEIGHTS:
    case WEFT_WIRE_COUNTERS:
    case WEFT_WIRE_IDS:
        put_list(out, field, item);
        break;
    case WEFT_WIRE_RANGE:
        put_range(out, field, item);
        break;
    case WEFT_WIRE_RAW:
        put_raw(out, VALUE(char *const, item, field->at));
        break;
    case WEFT_WIRE_TAG:
        put_tag(out, VALUE(struct weft_tag *const, item, field->at));
        break;
    case WEFT_WIRE_REF:
        put_ref(out, &VALUE(struct weft_id, item, field->count));
        break;
    case WEFT_WIRE_OBJECT:
    case WEFT_WIRE_POLICY:
    case WEFT_WIRE_JSON:
    case WEFT_WIRE_BASE64:
    case WEFT_WIRE_LIST:
    case WEFT_WIRE_MAP:
        weft_json_put_null(out);
        break;
    }
}

/* ---- The walk -------------------------------------------------------------------------------- */

static bool has_object(const struct weft_wire_field *field, const char *item)
{
    if (field->kind == WEFT_WIRE_POLICY)
        return VALUE(void *const, item, field->at) != NULL;
    if (field->flags & WEFT_WIRE_BY_FLAG)
        return VALUE(bool, item, field->count);
    if (field->flags & WEFT_WIRE_BY_SIGN)
        return VALUE(int32_t, item, field->count) >= 0;
    for (size_t i = 0; i < field->inners; i++)
        if (is_set(&field->inner[i], item))
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
                 VALUE(void *const, item, field->at));
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
        weft_json_key(writing->out, VALUE(char *const, element, 0));
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
    size_t count = VALUE(size_t, item, field->count);
    if (count == 0 && !writing->answer && !(field->flags & WEFT_WIRE_REQUIRED))
        return;
    weft_json_key(writing->out, field->name);
    if (field->kind == WEFT_WIRE_MAP)
        weft_json_begin_object(writing->out);
    else
        weft_json_begin_array(writing->out);
    if (count > 0)
        begin_element(writing, field, VALUE(char *const, item, field->at), count - 1);
    else
        end_list(writing, field);
}

/* What is written even though nothing is set. */
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
        write_bytes(writing, field, item);
    } else if (field->kind == WEFT_WIRE_LIST || field->kind == WEFT_WIRE_MAP) {
        open_list(writing, field, item);
    } else if (field->kind != WEFT_WIRE_BASE64 &&
               (is_wanted(writing, field) || is_set(field, item))) {
        weft_json_key(writing->out, field->name);
        put_value(writing, field, item);
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
