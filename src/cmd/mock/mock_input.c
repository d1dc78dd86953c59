/* SPDX-License-Identifier: Apache-2.0 */

/* Reading requests: the model, the last message, and whether the answer is to be a stream. */

#include "base/json.h"
#include "cmd/mock/mock.h"

#include <string.h>

enum { DIMENSIONS = 16, DIMENSIONS_MAX = 4096, INPUTS_MAX = 2048, PARTS_DEPTH = 4 };

size_t weft_mock_words(const char *text)
{
    size_t words = 0;
    for (;;) {
        text += strspn(text, " \t\r\n");
        if (!*text)
            return words;
        text += strcspn(text, " \t\r\n");
        words++;
    }
}

/* A member of an object, decoded. */
static bool is_key(const struct weft_json_iter *iter, const char *key)
{
    return weft_json_is(&iter->key, key);
}

/*
 * The text that a value stands for: a string; of an object its `content` or `text`; of an array
 * that of its last element. Messages, parts of messages and plain inputs are all of this form.
 */
static const char *last_text(struct weft_json value, struct weft_arena *arena)
{
    const char *text = "";
    for (int depth = 0; depth < PARTS_DEPTH && value.kind != WEFT_JSON_STRING; depth++) {
        struct weft_json_iter iter;
        struct weft_json found = {.kind = WEFT_JSON_NULL};
        if (value.kind != WEFT_JSON_ARRAY && value.kind != WEFT_JSON_OBJECT)
            return text;
        weft_json_iter_init(&iter, &value);
        while (weft_json_next(&iter))
            if (value.kind == WEFT_JSON_ARRAY || is_key(&iter, "content") || is_key(&iter, "text"))
                found = iter.value;
        value = found;
    }
    if (value.kind == WEFT_JSON_STRING && weft_json_string(&value, arena, &text, NULL) != WEFT_OK)
        text = "";
    return text;
}

/* Each element of an array by itself, or the one value. */
static void read_each(const struct weft_json *value, struct weft_arena *arena,
                      struct mock_input *ret_input)
{
    struct weft_json_iter iter;
    ret_input->each = weft_new_array(arena, const char *, INPUTS_MAX);
    ret_input->text = last_text(*value, arena);
    if (value->kind != WEFT_JSON_ARRAY) {
        ret_input->each[ret_input->count++] = ret_input->text;
        ret_input->words = weft_mock_words(ret_input->text);
        return;
    }
    weft_json_iter_init(&iter, value);
    while (weft_json_next(&iter) && ret_input->count < INPUTS_MAX) {
        const char *text = last_text(iter.value, arena);
        ret_input->each[ret_input->count++] = text;
        ret_input->words += weft_mock_words(text);
    }
}

static bool wants_usage(const struct weft_json *value)
{
    struct weft_json_iter iter;
    bool wants = false;
    if (value->kind != WEFT_JSON_OBJECT)
        return false;
    weft_json_iter_init(&iter, value);
    while (weft_json_next(&iter))
        wants |= is_key(&iter, "include_usage") && weft_json_bool(&iter.value);
    return wants;
}

static enum weft_rc read_member(const struct weft_json_iter *iter, struct weft_arena *arena,
                                struct mock_input *ret_input, struct weft_err *err)
{
    const struct weft_json *value = &iter->value;
    int64_t number = 0;
    if (is_key(iter, "model"))
        return weft_json_string(value, arena, &ret_input->model, err);
    if (is_key(iter, "messages") || is_key(iter, "prompt") || is_key(iter, "input"))
        read_each(value, arena, ret_input);
    else if (is_key(iter, "stream"))
        ret_input->stream = value->kind == WEFT_JSON_BOOL && weft_json_bool(value);
    else if (is_key(iter, "stream_options"))
        ret_input->stream_usage = wants_usage(value);
    else if (is_key(iter, "encoding_format"))
        ret_input->base64 = weft_json_is(value, "base64");
    else if (is_key(iter, "dimensions") && weft_json_i64(value, &number) && number > 0)
        ret_input->dimensions = number < DIMENSIONS_MAX ? (size_t)number : DIMENSIONS_MAX;
    return WEFT_OK;
}

enum weft_rc weft_mock_read(const struct mock_request *request, struct weft_arena *arena,
                            struct mock_input *ret_input, struct weft_err *err)
{
    struct weft_json body;
    struct weft_json_iter iter;
    enum weft_rc rc = weft_json_check(request->body, request->body_size, &body, err);
    if (!rc && body.kind != WEFT_JSON_OBJECT)
        rc = weft_fail(err, WEFT_INVALID_VALUE, "the body must be a JSON object");
    if (rc)
        return rc;
    *ret_input = (struct mock_input){.dimensions = DIMENSIONS};
    weft_json_iter_init(&iter, &body);
    while (!rc && weft_json_next(&iter))
        rc = read_member(&iter, arena, ret_input, err);
    if (!rc && !ret_input->model)
        rc = weft_invalid(err, "model", "you must provide a model parameter");
    if (!rc && !ret_input->each)
        rc =
            weft_invalid(err, "messages", "there is nothing to answer: no messages, prompt, input");
    return rc;
}
