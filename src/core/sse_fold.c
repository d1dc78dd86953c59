/* SPDX-License-Identifier: Apache-2.0 */

#include "core/sse_fold.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "core/chat_chunks.h"
#include "core/json_mend.h"
#include "core/sse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { STATUS_UNKNOWN = 500 };

enum stream {
    UNDECIDED, /* no event yet that tells */
    CHAT,
    RESPONSE,
    OTHER,
};

struct weft_sse_fold {
    struct weft_sse sse;
    enum stream stream;
    bool over;
    int status; /* of an error; 0: none */
    struct weft_chat_chunks *chunks;
    struct weft_buf raw;    /* UNDECIDED, OTHER: the stream as it came */
    struct weft_buf masked; /* the data of an event that is no JSON as it is */
    struct weft_buf result; /* CHAT, RESPONSE, an error */
};

struct weft_sse_fold *weft_sse_fold_new(size_t size_max)
{
    struct weft_sse_fold *fold = weft_alloc(1, sizeof(*fold));
    *fold = (struct weft_sse_fold){.chunks = weft_chat_chunks_new(size_max)};
    weft_sse_init(&fold->sse, size_max);
    weft_buf_init(&fold->raw, size_max);
    weft_buf_init(&fold->masked, size_max);
    weft_buf_init(&fold->result, size_max);
    return fold;
}

void weft_sse_fold_free(struct weft_sse_fold *fold)
{
    if (!fold)
        return;
    weft_chat_chunks_free(fold->chunks);
    weft_sse_done(&fold->sse);
    weft_buf_done(&fold->raw);
    weft_buf_done(&fold->masked);
    weft_buf_done(&fold->result);
    free(fold);
}

bool weft_sse_fold_over(const struct weft_sse_fold *fold)
{
    return fold->over;
}

/* The member of an object; false: there is none, or it is no object. */
static bool find(const struct weft_json *object, const char *key, struct weft_json *ret_value)
{
    struct weft_json_iter member;
    if (object->kind != WEFT_JSON_OBJECT)
        return false;
    weft_json_iter_init(&member, object);
    while (weft_json_next(&member))
        if (weft_json_is(&member.key, key)) {
            *ret_value = member.value;
            return true;
        }
    return false;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* A status as a number or as a text, or a word that stands for one; 0: neither. */
static int status_of(const struct weft_json *value)
{
    static const struct {
        const char *word;
        int status;
    } row[] = {
        {"invalid_request_error", 400}, {"rate_limit_exceeded", 429}, {"rate_limit_error", 429},
        {"insufficient_quota", 429},    {"overloaded_error", 529},
    };
    struct weft_json number = *value;
    int64_t status = 0;
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        if (weft_json_is(value, row[i].word))
            return row[i].status;
    if (value->kind == WEFT_JSON_STRING && value->size == 5)
        number = (struct weft_json){
            .text = value->text + 1, .size = value->size - 2, .kind = WEFT_JSON_NUMBER};
    for (size_t i = 0; i < number.size; i++)
        if (number.text[i] < '0' || number.text[i] > '9')
            return 0;
    return weft_json_i64(&number, &status) && status >= 400 && status <= 599 ? (int)status : 0;
}

static int status_within(const struct weft_json *object)
{
    static const char *const key[] = {"status", "status_code", "code", "type"};
    struct weft_json value;
    int status = 0;
    for (size_t i = 0; i < WEFT_LEN(key) && status == 0; i++)
        if (find(object, key[i], &value))
            status = status_of(&value);
    return status;
}

/* The status of an error that the data of an event tell of; 0: of none. */
static int find_error(const struct weft_sse_event *event, const struct weft_json *data)
{
    struct weft_json error, type, response;
    bool typed = find(data, "type", &type);
    bool has_error = find(data, "error", &error) &&
                     (error.kind == WEFT_JSON_OBJECT ||
                      (error.kind == WEFT_JSON_STRING && !weft_json_is(&error, "")));
    if (!has_error && typed && weft_json_is(&type, "response.failed"))
        has_error = find(data, "response", &response) && find(&response, "error", &error);
    else if (!has_error && strcmp(event->name, "error") != 0 &&
             !(typed && weft_json_is(&type, "error")))
        return 0;
    int status = has_error ? status_within(&error) : 0;
    if (status == 0)
        status = status_within(data);
    return status ? status : STATUS_UNKNOWN;
}

static void end_with_error(struct weft_sse_fold *fold, const struct weft_sse_event *event,
                           int status)
{
    fold->over = true;
    fold->status = status;
    weft_buf_add(&fold->result, event->data, event->size);
}

/* ---- Events ---------------------------------------------------------------------------------- */

static bool has_prefix(const struct weft_json *value, const char *prefix)
{
    size_t size = strlen(prefix);
    return value->kind == WEFT_JSON_STRING && value->size > size + 1 &&
           memcmp(value->text + 1, prefix, size) == 0;
}

static enum stream decide(const struct weft_json *data)
{
    struct weft_json type;
    if (weft_chat_chunk_is(data))
        return CHAT;
    return find(data, "type", &type) && has_prefix(&type, "response.") ? RESPONSE : OTHER;
}

/* The response is whole with one of two events; the others tell what it will hold. */
static enum weft_rc take_response(struct weft_sse_fold *fold, const struct weft_json *data,
                                  struct weft_err *err)
{
    struct weft_json type, response;
    if (!find(data, "type", &type) ||
        (!weft_json_is(&type, "response.completed") && !weft_json_is(&type, "response.incomplete")))
        return WEFT_OK;
    if (!find(data, "response", &response) || response.kind != WEFT_JSON_OBJECT)
        return weft_fail(err, WEFT_INVALID_VALUE, "the last event of the stream has no response");
    weft_buf_add(&fold->result, response.text, response.size);
    fold->over = true;
    return WEFT_OK;
}

/* The data of an event as JSON: as they are, or masked. */
static bool read_data(struct weft_sse_fold *fold, const struct weft_sse_event *event,
                      struct weft_json *ret_data, bool *ret_masked)
{
    *ret_masked = false;
    if (!weft_json_check(event->data, event->size, ret_data, NULL))
        return true;
    weft_buf_clear(&fold->masked);
    weft_buf_add(&fold->masked, event->data, event->size);
    weft_json_mask(fold->masked.data, fold->masked.size);
    *ret_masked = true;
    return !weft_json_check(fold->masked.data, fold->masked.size, ret_data, NULL);
}

static enum weft_rc take_json(struct weft_sse_fold *fold, const struct weft_sse_event *event,
                              const struct weft_json *data, bool masked, struct weft_err *err)
{
    const char *original = masked ? event->data + (data->text - fold->masked.data) : data->text;
    int status = find_error(event, data);
    if (status) {
        end_with_error(fold, event, status);
        return WEFT_OK;
    }
    if (fold->stream == UNDECIDED)
        fold->stream = decide(data);
    if (fold->stream == RESPONSE)
        return take_response(fold, data, err);
    if (fold->stream == CHAT && weft_chat_chunk_is(data))
        return weft_chat_chunks_add(fold->chunks, data, original, err);
    return WEFT_OK;
}

static enum weft_rc take_event(struct weft_sse_fold *fold, const struct weft_sse_event *event,
                               struct weft_err *err)
{
    static const char done[] = "[DONE]";
    struct weft_json data;
    bool masked;
    if (event->size == strlen(done) && memcmp(event->data, done, event->size) == 0) {
        fold->over = fold->stream == CHAT;
        return WEFT_OK;
    }
    if (read_data(fold, event, &data, &masked))
        return take_json(fold, event, &data, masked, err);
    if (strcmp(event->name, "error") == 0) {
        end_with_error(fold, event, STATUS_UNKNOWN);
        return WEFT_OK;
    }
    if (fold->stream == UNDECIDED && event->size > 0)
        fold->stream = OTHER;
    /* Some servers keep the connection alive with events that have no data. */
    if (fold->stream == OTHER || event->size == 0)
        return WEFT_OK;
    return weft_fail(err, WEFT_INVALID_JSON, "an event of the stream is not JSON");
}

/* ---- The stream ------------------------------------------------------------------------------ */

static bool keeps_raw(const struct weft_sse_fold *fold)
{
    return fold->stream == UNDECIDED || fold->stream == OTHER;
}

enum weft_rc weft_sse_fold_add(struct weft_sse_fold *fold, const void *bytes, size_t size,
                               struct weft_err *err)
{
    const char *at = bytes, *end = at + size;
    struct weft_sse_event event;
    bool found = true;
    enum weft_rc rc = WEFT_OK;
    if (fold->over)
        return WEFT_OK;
    if (keeps_raw(fold))
        weft_buf_add(&fold->raw, bytes, size);
    while (!rc && found && !fold->over) {
        rc = weft_sse_read(&fold->sse, &at, end, &event, &found, err);
        if (!rc && found)
            rc = take_event(fold, &event, err);
    }
    if (!rc && keeps_raw(fold) && fold->raw.full && !fold->over)
        rc = weft_fail(err, WEFT_TOO_LARGE, "the stream has more than %zu bytes", fold->raw.max);
    if (!keeps_raw(fold))
        weft_buf_clear(&fold->raw);
    return rc;
}

static enum weft_rc write_chat(struct weft_sse_fold *fold, struct weft_err *err)
{
    if (!fold->over && !weft_chat_chunks_finished(fold->chunks))
        return weft_fail(err, WEFT_UNAVAILABLE, "the stream ended before the completion did");
    weft_chat_chunks_write(fold->chunks, &fold->result);
    if (fold->result.full)
        return weft_fail(err, WEFT_TOO_LARGE, "the streamed completion has more than %zu bytes",
                         fold->result.max);
    return WEFT_OK;
}

enum weft_rc weft_sse_fold_end(struct weft_sse_fold *fold, struct weft_folded *ret_folded,
                               struct weft_err *err)
{
    struct weft_sse_event event;
    bool found = false;
    enum weft_rc rc = WEFT_OK;
    if (!fold->over)
        rc = weft_sse_end(&fold->sse, &event, &found, err);
    if (!rc && found)
        rc = take_event(fold, &event, err);
    if (!rc && fold->status == 0 && fold->stream == CHAT)
        rc = write_chat(fold, err);
    if (!rc && fold->stream == RESPONSE && !fold->over)
        rc = weft_fail(err, WEFT_UNAVAILABLE, "the stream ended before the response did");
    if (rc)
        return rc;
    bool text = fold->status == 0 && keeps_raw(fold);
    const struct weft_buf *buf = text ? &fold->raw : &fold->result;
    *ret_folded = (struct weft_folded){
        .kind = fold->status ? WEFT_FOLDED_ERROR
                : text       ? WEFT_FOLDED_TEXT
                             : WEFT_FOLDED_JSON,
        .data = buf->data,
        .size = buf->size,
        .status = fold->status,
    };
    return WEFT_OK;
}
