/* SPDX-License-Identifier: Apache-2.0 */

/* Writing a value: every form but objects and lists of messages, which write.c walks through. */

#include "base/buf.h"
#include "base/id.h"
#include "base/moment.h"
#include "base/str.h"
#include "wire/type.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    AROUND_BYTES = 4, /* levels around a payload: the answer, items, the item; one to spare */
    CHUNK = 3 * 1024, /* bytes encoded at a time; a multiple of 3 */
};

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

bool weft_wire_put_bytes(struct weft_json_writer *out, const struct weft_wire_field *field,
                         const char *item)
{
    const char *data = WEFT_WIRE_VALUE(char *const, item, field->at);
    size_t size = WEFT_WIRE_VALUE(size_t, item, field->count);
    bool raw = goes_raw(data, size, WEFT_WIRE_VALUE(char *const, item, field->type));
    weft_json_key(out, raw ? field->name : field[1].name);
    if (raw)
        weft_json_put_raw(out, data, size);
    else
        put_base64(out, data, size);
    return !raw;
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
    uint32_t first = WEFT_WIRE_VALUE(uint32_t, item, field->at),
             last = WEFT_WIRE_VALUE(uint32_t, item, field->count);
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

bool weft_wire_is_set(const struct weft_wire_field *field, const char *item)
{
    switch ((enum weft_wire_kind)field->kind) {
    case WEFT_WIRE_ID:
        return !(field->flags & WEFT_WIRE_OR_NULL) ||
               !weft_id_is_zero(&WEFT_WIRE_VALUE(struct weft_id, item, field->at));
    case WEFT_WIRE_TEXT:
    case WEFT_WIRE_CONTENT_TYPE:
    case WEFT_WIRE_TAG:
    case WEFT_WIRE_POLICY:
    case WEFT_WIRE_RAW:
        return WEFT_WIRE_VALUE(void *const, item, field->at) != NULL;
    case WEFT_WIRE_I32:
    case WEFT_WIRE_U32:
    case WEFT_WIRE_STATE:
    case WEFT_WIRE_BACKOFF:
    case WEFT_WIRE_WORD:
        return WEFT_WIRE_VALUE(uint32_t, item, field->at) != 0;
    case WEFT_WIRE_I64:
    case WEFT_WIRE_U64:
    case WEFT_WIRE_AT_ONCE:
    case WEFT_WIRE_MOMENT:
    case WEFT_WIRE_MS:
        return WEFT_WIRE_VALUE(int64_t, item, field->at) != 0;
    case WEFT_WIRE_DUE:
        return WEFT_WIRE_VALUE(int64_t, item, field->at) != field->normally;
    case WEFT_WIRE_DOUBLE:
        return WEFT_WIRE_VALUE(double, item, field->at) != 0;
    case WEFT_WIRE_BOOL:
    case WEFT_WIRE_UNLESS:
    case WEFT_WIRE_ALIVE:
    case WEFT_WIRE_REF:
        return WEFT_WIRE_VALUE(bool, item, field->at);
    case WEFT_WIRE_RANGE:
        return WEFT_WIRE_VALUE(uint32_t, item, field->at) != 0 ||
               WEFT_WIRE_VALUE(uint32_t, item, field->count) != field->max;
    case WEFT_WIRE_TEXTS:
    case WEFT_WIRE_TAGS:
    case WEFT_WIRE_WEIGHTS:
    case WEFT_WIRE_COUNTERS:
    case WEFT_WIRE_IDS:
    case WEFT_WIRE_LIST:
    case WEFT_WIRE_MAP:
        return WEFT_WIRE_VALUE(size_t, item, field->count) != 0;
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
        number = WEFT_WIRE_VALUE(int32_t, item, field->at);
    else if (field->kind == WEFT_WIRE_U32)
        number = WEFT_WIRE_VALUE(uint32_t, item, field->at);
    else
        number = WEFT_WIRE_VALUE(int64_t, item, field->at);
    if (field->kind == WEFT_WIRE_AT_ONCE && number == -1)
        number = 0;
    if (field->kind == WEFT_WIRE_MS)
        number /= WEFT_MS;
    weft_json_put_i64(out, number);
}

static void put_word(struct weft_json_writer *out, const struct weft_wire_field *field,
                     const char *item, bool encoded)
{
    const char *text = NULL;
    if (field->kind == WEFT_WIRE_STATE) {
        enum weft_state state = WEFT_WIRE_VALUE(enum weft_state, item, field->at);
        text = state == WEFT_STATE_NONE ? NULL : weft_state_name(state);
    } else if (field->kind == WEFT_WIRE_BACKOFF) {
        bool fixed = WEFT_WIRE_VALUE(enum weft_backoff, item, field->at) == WEFT_BACKOFF_FIXED;
        text = fixed ? "fixed" : "exponential";
    } else if (field->kind == WEFT_WIRE_ALIVE) {
        text = WEFT_WIRE_VALUE(bool, item, field->at) ? "alive" : "dead";
    } else if (field->kind == WEFT_WIRE_WORD) {
        uint32_t number = WEFT_WIRE_VALUE(uint32_t, item, field->at);
        text = number < field->inners ? field->word[number] : NULL;
    } else {
        text = WEFT_WIRE_VALUE(char *const, item, field->at);
        /* Without a word for it, encoded bytes would be taken for something else than JSON. */
        if (!text && field->kind == WEFT_WIRE_CONTENT_TYPE && encoded)
            text = "application/json";
    }
    weft_json_put_text(out, text);
}

static void put_list(struct weft_json_writer *out, const struct weft_wire_field *field,
                     const char *item)
{
    size_t count = WEFT_WIRE_VALUE(size_t, item, field->count);
    if (field->kind == WEFT_WIRE_TEXTS)
        put_texts(out, WEFT_WIRE_VALUE(char *const *const, item, field->at), count);
    else if (field->kind == WEFT_WIRE_TAGS)
        put_tags(out, WEFT_WIRE_VALUE(struct weft_tag *const, item, field->at), count);
    else if (field->kind == WEFT_WIRE_WEIGHTS)
        put_weights(out, WEFT_WIRE_VALUE(struct weft_weight *const, item, field->at), count);
    else if (field->kind == WEFT_WIRE_IDS)
        put_ids(out, WEFT_WIRE_VALUE(struct weft_wire_named_id *const, item, field->at), count);
    else
        put_counters(out, WEFT_WIRE_VALUE(struct weft_counter *const, item, field->at), count);
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
    weft_usec moment_us = WEFT_WIRE_VALUE(weft_usec, item, field->at);
    bool never = field->kind == WEFT_WIRE_DUE && moment_us == field->normally;
    weft_wire_put_moment(out, never ? 0 : moment_us);
}

void weft_wire_put_value(struct weft_json_writer *out, const struct weft_wire_field *field,
                         const char *item, bool encoded)
{
    if (field->flags & WEFT_WIRE_OR_NULL && !weft_wire_is_set(field, item)) {
        weft_json_put_null(out);
        return;
    }
    switch ((enum weft_wire_kind)field->kind) {
    case WEFT_WIRE_ID:
        weft_wire_put_id(out, &WEFT_WIRE_VALUE(struct weft_id, item, field->at));
        break;
    case WEFT_WIRE_TEXT:
    case WEFT_WIRE_CONTENT_TYPE:
    case WEFT_WIRE_STATE:
    case WEFT_WIRE_BACKOFF:
    case WEFT_WIRE_ALIVE:
    case WEFT_WIRE_WORD:
        put_word(out, field, item, encoded);
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
        weft_json_put_double(out, WEFT_WIRE_VALUE(double, item, field->at));
        break;
    case WEFT_WIRE_BOOL:
    case WEFT_WIRE_UNLESS:
        weft_json_put_bool(out, WEFT_WIRE_VALUE(bool, item, field->at) !=
                                    (field->kind == WEFT_WIRE_UNLESS));
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
        put_raw(out, WEFT_WIRE_VALUE(char *const, item, field->at));
        break;
    case WEFT_WIRE_TAG:
        put_tag(out, WEFT_WIRE_VALUE(struct weft_tag *const, item, field->at));
        break;
    case WEFT_WIRE_REF:
        put_ref(out, &WEFT_WIRE_VALUE(struct weft_id, item, field->count));
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
