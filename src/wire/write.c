/* SPDX-License-Identifier: Apache-2.0 */

/* Writing a message: its rows in their order, with the objects inside it on a small stack. */

#include "base/buf.h"
#include "base/id.h"
#include "base/moment.h"
#include "base/str.h"
#include "wire/type.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    NESTED_MAX = 4,   /* flow, node, policy, backoff */
    AROUND_BYTES = 4, /* levels around a payload: the answer, items, the item; one to spare */
    CHUNK = 3 * 1024, /* bytes encoded at a time; a multiple of 3 */
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

/* Writes the member of a row JSON, or the one of its rival, which is the next row. True: the bytes
 * were encoded. */
static bool put_bytes(struct weft_json_writer *out, const struct weft_wire_field *field,
                      const char *item)
{
    const char *data = VALUE(char *const, item, field->at);
    size_t size = VALUE(size_t, item, field->count);
    bool raw = goes_raw(data, size, VALUE(char *const, item, field->type));
    weft_json_key(out, raw ? field->name : field[1].name);
    if (raw)
        weft_json_put_raw(out, data, size);
    else
        put_base64(out, data, size);
    return !raw;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Whether a request mentions it; any kind but objects and bytes. */
static bool is_set(const struct weft_wire_field *field, const char *item)
{
    enum holds { NOTHING, ID, POINTER, U32, I64, DUE, DOUBLE, BOOL, RANGE, COUNT };
    static const uint8_t holds[] = {
#define KIND(kind, holds, ...) [WEFT_WIRE_##kind] = (holds),
#include "wire/kinds.def"
    };
    switch ((enum holds)holds[field->kind]) {
    case NOTHING:
        break;
    case ID:
        return !(field->flags & WEFT_WIRE_OR_NULL) ||
               !weft_id_is_zero(&VALUE(struct weft_id, item, field->at));
    case POINTER:
        return VALUE(void *const, item, field->at) != NULL;
    case U32:
        return VALUE(uint32_t, item, field->at) != 0;
    case I64:
        return VALUE(int64_t, item, field->at) != 0;
    case DUE:
        return VALUE(int64_t, item, field->at) != field->normally;
    case DOUBLE:
        return VALUE(double, item, field->at) != 0;
    case BOOL:
        return VALUE(bool, item, field->at);
    case RANGE:
        return VALUE(uint32_t, item, field->at) != 0 ||
               VALUE(uint32_t, item, field->count) != field->max;
    case COUNT:
        return VALUE(size_t, item, field->count) != 0;
    }
    return false;
}

static void put_texts(struct weft_json_writer *out, const struct weft_wire_field *field,
                      const char *item)
{
    const char *const *text = VALUE(char *const *const, item, field->at);
    size_t count = VALUE(size_t, item, field->count);
    weft_json_begin_array(out);
    for (size_t i = 0; i < count; i++)
        weft_json_put_text(out, text[i]);
    weft_json_end_array(out);
}

/* An object of texts, numbers or ids; an entry begins with its name. */
static void put_entries(struct weft_json_writer *out, const struct weft_wire_field *field,
                        const char *item)
{
    static const uint8_t size[] = {[WEFT_WIRE_TAGS] = sizeof(struct weft_tag),
                                   [WEFT_WIRE_WEIGHTS] = sizeof(struct weft_weight),
                                   [WEFT_WIRE_COUNTERS] = sizeof(struct weft_counter),
                                   [WEFT_WIRE_AMOUNTS] = sizeof(struct weft_amount),
                                   [WEFT_WIRE_IDS] = sizeof(struct weft_wire_named_id)};
    const void *entry = VALUE(void *const, item, field->at);
    size_t count = VALUE(size_t, item, field->count);
    weft_json_begin_object(out);
    for (size_t i = 0; i < count; i++, entry = (const char *)entry + size[field->kind]) {
        weft_json_key(out, *(const char *const *)entry);
        if (field->kind == WEFT_WIRE_TAGS)
            weft_json_put_text(out, ((const struct weft_tag *)entry)->value);
        else if (field->kind == WEFT_WIRE_WEIGHTS)
            weft_json_put_i64(out, ((const struct weft_weight *)entry)->weight);
        else if (field->kind == WEFT_WIRE_COUNTERS)
            weft_json_put_i64(out, (int64_t)((const struct weft_counter *)entry)->value);
        else if (field->kind == WEFT_WIRE_AMOUNTS)
            weft_json_put_i64(out, ((const struct weft_amount *)entry)->amount);
        else
            weft_wire_put_id(out, &((const struct weft_wire_named_id *)entry)->id);
    }
    weft_json_end_object(out);
}

static void put_tag(struct weft_json_writer *out, const struct weft_wire_field *field,
                    const char *item)
{
    const struct weft_tag *tag = VALUE(struct weft_tag *const, item, field->at);
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

/* The text may be of any origin: an answer stays JSON. */
static void put_checked(struct weft_json_writer *out, const char *text, unsigned kinds,
                        const char *otherwise)
{
    struct weft_json value = {0};
    if (text && !weft_json_check_inside(text, strlen(text), AROUND_BYTES, &value, NULL) &&
        kinds >> value.kind & 1)
        weft_json_put_raw(out, value.text, value.size);
    else
        weft_json_put_raw(out, otherwise, strlen(otherwise));
}

static void put_raw(struct weft_json_writer *out, const struct weft_wire_field *field,
                    const char *item)
{
    put_checked(out, VALUE(char *const, item, field->at), 1u << WEFT_JSON_OBJECT, "{}");
}

static void put_any(struct weft_json_writer *out, const struct weft_wire_field *field,
                    const char *item)
{
    put_checked(out, VALUE(char *const, item, field->at), UINT_MAX, "null");
}

static void put_statuses(struct weft_json_writer *out, const struct weft_wire_field *field,
                         const char *item)
{
    put_checked(out, VALUE(char *const, item, field->at), 1u << WEFT_JSON_ARRAY, "null");
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

static void put_double(struct weft_json_writer *out, const struct weft_wire_field *field,
                       const char *item)
{
    weft_json_put_double(out, VALUE(double, item, field->at));
}

static void put_bool(struct weft_json_writer *out, const struct weft_wire_field *field,
                     const char *item)
{
    weft_json_put_bool(out, VALUE(bool, item, field->at) != (field->kind == WEFT_WIRE_UNLESS));
}

static void put_id(struct weft_json_writer *out, const struct weft_wire_field *field,
                   const char *item)
{
    weft_wire_put_id(out, &VALUE(struct weft_id, item, field->at));
}

static void put_text(struct weft_json_writer *out, const struct weft_wire_field *field,
                     const char *item)
{
    weft_json_put_text(out, VALUE(char *const, item, field->at));
}

static void put_word(struct weft_json_writer *out, const struct weft_wire_field *field,
                     const char *item)
{
    const char *text = NULL;
    if (field->kind == WEFT_WIRE_ALIVE) {
        text = VALUE(bool, item, field->at) ? "alive" : "dead";
    } else {
        uint32_t number = VALUE(uint32_t, item, field->at);
        if (field->kind == WEFT_WIRE_STATE)
            text = number == WEFT_STATE_NONE ? NULL : weft_state_name((enum weft_state)number);
        else if (field->kind == WEFT_WIRE_BACKOFF)
            text = number == WEFT_BACKOFF_FIXED ? "fixed" : "exponential";
        else
            text = number < field->inners ? field->word[number] : NULL;
    }
    weft_json_put_text(out, text);
}

/* Where the result of an upstream is that did not come along. */
static void put_ref(struct weft_json_writer *out, const struct weft_wire_field *field,
                    const char *item)
{
    char text[WEFT_ID_TEXT], path[WEFT_ID_TEXT + 32];
    weft_id_print(&VALUE(struct weft_id, item, field->count), text);
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

/* Any kind but objects, lists of messages and bytes; encoded: the bytes beside it are in base64. */
static void put_value(struct weft_json_writer *out, const struct weft_wire_field *field,
                      const char *item, bool encoded)
{
    typedef void (*put_fn)(struct weft_json_writer *, const struct weft_wire_field *, const char *);
    static const put_fn put[WEFT_WIRE_KIND_COUNT] = {
        [WEFT_WIRE_ID] = put_id,
        [WEFT_WIRE_TEXT] = put_text,
        [WEFT_WIRE_STATE] = put_word,
        [WEFT_WIRE_CONTENT_TYPE] = put_text,
        [WEFT_WIRE_BACKOFF] = put_word,
        [WEFT_WIRE_ALIVE] = put_word,
        [WEFT_WIRE_WORD] = put_word,
        [WEFT_WIRE_I32] = put_number,
        [WEFT_WIRE_U32] = put_number,
        [WEFT_WIRE_I64] = put_number,
        [WEFT_WIRE_U64] = put_number,
        [WEFT_WIRE_AT_ONCE] = put_number,
        [WEFT_WIRE_MS] = put_number,
        [WEFT_WIRE_DOUBLE] = put_double,
        [WEFT_WIRE_BOOL] = put_bool,
        [WEFT_WIRE_UNLESS] = put_bool,
        [WEFT_WIRE_MOMENT] = put_moment,
        [WEFT_WIRE_DUE] = put_moment,
        [WEFT_WIRE_TEXTS] = put_texts,
        [WEFT_WIRE_TAGS] = put_entries,
        [WEFT_WIRE_WEIGHTS] = put_entries,
        [WEFT_WIRE_COUNTERS] = put_entries,
        [WEFT_WIRE_IDS] = put_entries,
        [WEFT_WIRE_RANGE] = put_range,
        [WEFT_WIRE_RAW] = put_raw,
        [WEFT_WIRE_TAG] = put_tag,
        [WEFT_WIRE_REF] = put_ref,
        [WEFT_WIRE_AMOUNTS] = put_entries,
        [WEFT_WIRE_STATUSES] = put_statuses,
        [WEFT_WIRE_ANY] = put_any,
    };
    if (field->flags & WEFT_WIRE_OR_NULL && !is_set(field, item))
        weft_json_put_null(out);
    else if (encoded && field->kind == WEFT_WIRE_CONTENT_TYPE && !is_set(field, item))
        /* Without a word for it, encoded bytes would be taken for something else than JSON. */
        weft_json_put_text(out, "application/json");
    else
        put[field->kind](out, field, item);
}

/* ---- The walk -------------------------------------------------------------------------------- */

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
        weft_json_add_object(writing->out, field->name);
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
    if (field->flags & WEFT_WIRE_WITH && !VALUE(bool, item, field->type))
        return;
    if (field->kind == WEFT_WIRE_OBJECT || field->kind == WEFT_WIRE_POLICY) {
        open_object(writing, field, item);
    } else if (field->kind == WEFT_WIRE_JSON) {
        if (VALUE(void *const, item, field->at) != NULL)
            writing->encoded |= put_bytes(writing->out, field, item);
    } else if (field->kind == WEFT_WIRE_LIST || field->kind == WEFT_WIRE_MAP) {
        open_list(writing, field, item);
    } else if (field->kind != WEFT_WIRE_BASE64 &&
               (is_wanted(writing, field) || is_set(field, item))) {
        weft_json_key(writing->out, field->name);
        put_value(writing->out, field, item, writing->encoded);
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
