/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What becomes of an answer: the result of the execution, or the detail of its failure.
 *
 *     {"status":200,"headers":{"content-type":"...","x-request-id":"..."},"body":<JSON>}
 *
 * A body that is JSON is kept byte for byte; one that is text is "body_text", any other bytes are
 * "body_base64". A stream is folded before (core/sse_fold.h).
 */

#include "net/executor/executor_state.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

enum { RESULT_LEVELS = 1 }; /* a body stands inside one object */

static void add_base64(struct weft_json_writer *json, const char *data, size_t size)
{
    char *text = weft_alloc(WEFT_BASE64_SIZE(size) + 1, 1);
    weft_base64_encode(data, size, text);
    weft_json_add_text(json, "body_base64", text);
    free(text);
}

/* A text may hold U+0000, which is valid UTF-8 and no part of a C string. */
static bool is_text(const char *data, size_t size)
{
    return weft_utf8_valid(data, size) && !memchr(data, 0, size);
}

static void add_text(struct weft_json_writer *json, const char *data, size_t size)
{
    char *text = weft_alloc(size + 1, 1);
    memcpy(text, data, size);
    weft_json_add_text(json, "body_text", text);
    free(text);
}

static void add_body(struct weft_json_writer *json, const char *data, size_t size)
{
    struct weft_json value;
    if (weft_json_check_inside(data, size, RESULT_LEVELS, &value, NULL) == WEFT_OK) {
        weft_json_key(json, "body");
        weft_json_put_raw(json, value.text, value.size);
    } else if (is_text(data, size)) {
        add_text(json, data, size);
    } else {
        add_base64(json, data, size);
    }
}

/* The first bytes of a body that is too long. A piece of JSON is no JSON, so it is kept as text. */
static void add_cut_body(struct weft_json_writer *json, const char *data, size_t size, size_t max)
{
    bool text = is_text(data, size);
    size_t cut = text ? weft_utf8_cut(data, size, max) : max / 4 * 3;
    if (text)
        add_text(json, data, cut);
    else
        add_base64(json, data, cut);
    weft_json_add_bool(json, "body_cut", true);
    weft_json_add_i64(json, "body_bytes", (int64_t)size);
}

static void begin(struct weft_json_writer *json, const struct weft_outgoing *out,
                  struct weft_buf *buf)
{
    weft_json_writer_init(json, buf);
    weft_json_begin_object(json);
    weft_json_add_i64(json, "status", out->status);
    weft_json_add_object(json, "headers");
    if (out->content_type)
        weft_json_add_text(json, "content-type", out->content_type);
    if (out->request_id)
        weft_json_add_text(json, "x-request-id", out->request_id);
    weft_json_end_object(json);
}

static const char *body_of(const struct weft_outgoing *out, const struct weft_folded *folded,
                           size_t *ret_size)
{
    *ret_size = folded ? folded->size : out->body.size;
    return folded ? folded->data : out->body.data;
}

bool weft_answer_write(const struct weft_outgoing *out, const struct weft_folded *folded,
                       struct weft_buf *buf)
{
    struct weft_json_writer json;
    size_t size;
    const char *data = body_of(out, folded, &size);
    begin(&json, out, buf);
    if (size > 0)
        add_body(&json, data, size);
    weft_json_end_object(&json);
    if (!buf->full || size == 0)
        return !buf->full;
    weft_buf_clear(buf);
    begin(&json, out, buf);
    add_base64(&json, data, size);
    weft_json_end_object(&json);
    return !buf->full;
}

bool weft_answer_write_cut(const struct weft_outgoing *out, const struct weft_folded *folded,
                           size_t body_max, struct weft_buf *buf)
{
    struct weft_json_writer json;
    size_t size;
    const char *data = body_of(out, folded, &size);
    begin(&json, out, buf);
    if (size > body_max)
        add_cut_body(&json, data, size, body_max);
    else if (size > 0)
        add_body(&json, data, size);
    weft_json_end_object(&json);
    return !buf->full;
}
