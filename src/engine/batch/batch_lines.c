/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/batch/batch_lines.h"

#include "base/json.h"
#include "base/str.h"
#include "core/batch_id.h"
#include "weft/weft.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

/* JSON as it is, on one line: a line end in it is white space, for none is inside of a string. */
static void put_on_one_line(struct weft_json_writer *out, const struct weft_json *value)
{
    size_t begin = out->buf->size;
    weft_json_put_raw(out, value->text, value->size);
    for (size_t i = begin; i < out->buf->size; i++)
        if (out->buf->data[i] == '\n' || out->buf->data[i] == '\r')
            out->buf->data[i] = ' ';
}

static void put_slice(struct weft_json_writer *out, const char *key, const struct weft_json *object,
                      const char *name)
{
    struct weft_json value;
    weft_json_key(out, key);
    if (object->kind == WEFT_JSON_OBJECT && weft_wire_member(object, name, &value))
        put_on_one_line(out, &value);
    else
        weft_json_put_null(out);
}

/* Bytes that are no JSON, as a text. */
static void put_bytes(struct weft_json_writer *out, const void *data, size_t size)
{
    char *text = strndup(size ? data : "", size);
    weft_json_put_text(out, text ? text : "");
    free(text);
}

/*
 * The result of a call, as the executor of HTTP calls stores it: {"status","headers","body"}, with
 * body_text or body_base64 for a body that is no JSON. Any other result is taken as the body.
 */
static void put_response(struct weft_json_writer *out, const void *data, size_t size)
{
    struct weft_json result, headers = {0}, body, status;
    bool json = size > 0 && !weft_json_check(data, size, &result, NULL);
    bool call = json && result.kind == WEFT_JSON_OBJECT &&
                weft_wire_member(&result, "status", &status) && status.kind == WEFT_JSON_NUMBER;
    weft_json_begin_object(out);
    weft_json_key(out, "status_code");
    if (call)
        put_on_one_line(out, &status);
    else
        weft_json_put_i64(out, 200);
    if (call && !weft_wire_member(&result, "headers", &headers))
        headers = (struct weft_json){0};
    put_slice(out, "request_id", &headers, "x-request-id");
    weft_json_key(out, "body");
    if (call && (weft_wire_member(&result, "body", &body) ||
                 weft_wire_member(&result, "body_text", &body) ||
                 weft_wire_member(&result, "body_base64", &body)))
        put_on_one_line(out, &body);
    else if (json && !call)
        put_on_one_line(out, &result);
    else if (!json && size > 0)
        put_bytes(out, data, size);
    else
        weft_json_put_null(out);
    weft_json_end_object(out);
}

/* The status in a class like http_429; 0: it names none. */
static int status_in(const char *class)
{
    int status = class && strncmp(class, "http_", 5) == 0 && strlen(class) == 8
                     ? (int)strtol(class + 5, NULL, 10)
                     : 0;
    return status >= 100 && status <= 599 ? status : 0;
}

/* The detail of a failure is what the server answered, if it has the form of a result. */
static bool is_response(const char *detail)
{
    struct weft_json result, status;
    return detail && !weft_json_check(detail, strlen(detail), &result, NULL) &&
           result.kind == WEFT_JSON_OBJECT && weft_wire_member(&result, "status", &status) &&
           status.kind == WEFT_JSON_NUMBER;
}

/* A call that was answered with an error has a response; one that was not has an error. */
static void put_failure(struct weft_json_writer *out, const struct weft_batch_answer *answer)
{
    int status = answer->state == WEFT_STATE_FAILED ? status_in(answer->error_class) : 0;
    if (answer->state == WEFT_STATE_FAILED && is_response(answer->detail)) {
        weft_json_key(out, "response");
        put_response(out, answer->detail, strlen(answer->detail));
        weft_json_add_text(out, "error", NULL);
        return;
    }
    if (status > 0) {
        weft_json_add_object(out, "response");
        weft_json_add_i64(out, "status_code", status);
        weft_json_add_text(out, "request_id", NULL);
        weft_json_add_object(out, "body");
        weft_json_add_object(out, "error");
        weft_json_add_text(out, "message", answer->error_message);
        weft_json_add_text(out, "code", answer->error_class);
        weft_json_end_object(out);
        weft_json_end_object(out);
        weft_json_end_object(out);
        weft_json_add_text(out, "error", NULL);
        return;
    }
    const char *code = answer->error_class, *message = answer->error_message;
    if (answer->state == WEFT_STATE_EXPIRED) {
        code = "batch_expired";
        message = "This request could not be executed before the completion window expired.";
    } else if (answer->state != WEFT_STATE_FAILED) {
        code = "batch_cancelled";
        message = "This request was not executed because the batch was cancelled.";
    }
    weft_json_add_text(out, "response", NULL);
    weft_json_add_object(out, "error");
    weft_json_add_text(out, "code", code ? code : "failed");
    weft_json_add_text(out, "message", message);
    weft_json_end_object(out);
}

void weft_batch_line_add(struct weft_buf *buf, const struct weft_batch_answer *answer, bool good)
{
    struct weft_json_writer out;
    char id[WEFT_BATCH_ID_TEXT];
    weft_batch_id_print("batch_req_", &answer->id, id);
    weft_json_writer_init(&out, buf);
    weft_json_begin_object(&out);
    weft_json_add_text(&out, "id", id);
    weft_json_add_text(&out, "custom_id", answer->custom_id);
    if (good) {
        weft_json_key(&out, "response");
        put_response(&out, answer->result, answer->result_size);
        weft_json_add_text(&out, "error", NULL);
    } else {
        put_failure(&out, answer);
    }
    weft_json_end_object(&out);
    weft_buf_add_char(buf, '\n');
}
