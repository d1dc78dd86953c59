/* SPDX-License-Identifier: Apache-2.0 */

/* What handlers read from a request and how they answer it. */

#include "net/request.h"

#include "base/err.h"
#include "base/limits.h"
#include "net/openai.h"
#include "wire/wire.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { REPLY_MAX = 64 << 20 };

const char *weft_request_path(const struct weft_request *request, const char *name)
{
    return weft_route_value(&request->match, request->route, name);
}

const char *weft_request_query(const struct weft_request *request, const char *name)
{
    return weft_query_find(&request->query, name);
}

enum weft_rc weft_request_id(const struct weft_request *request, struct weft_id *ret_id,
                             struct weft_err *err)
{
    const char *text = weft_request_path(request, "id");
    if (weft_id_parse(text, strlen(text), ret_id))
        return WEFT_OK;
    return weft_invalid(
        err, "id", "'%.64s' is no id: ids look like 0192f5c4-7d1e-7a3b-8c2d-1f2e3d4c5b6a", text);
}

enum weft_rc weft_request_query_i64(const struct weft_request *request,
                                    const struct weft_request_number *number, int64_t *ret_value,
                                    struct weft_err *err)
{
    const char *text = weft_request_query(request, number->name);
    if (!text) {
        *ret_value = number->normally;
        return WEFT_OK;
    }
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (!*text || *end || errno || (*text != '-' && (*text < '0' || *text > '9')) ||
        value < number->min || value > number->max)
        return weft_invalid(err, number->name,
                            "%s is '%.32s', allowed are whole numbers from %lld to %lld",
                            number->name, text, (long long)number->min, (long long)number->max);
    *ret_value = value;
    return WEFT_OK;
}

enum weft_rc weft_request_object(struct weft_request *request, bool optional,
                                 struct weft_json *ret_object, struct weft_err *err)
{
    const struct weft_buf *body = &request->body;
    if (body->size == 0 && optional)
        return weft_json_check("{}", 2, ret_object, err);
    if (body->size == 0)
        return weft_fail(err, WEFT_INVALID_JSON, "the request has no body; it takes a JSON object");
    enum weft_rc rc = weft_json_check(body->data, body->size, ret_object, err);
    if (!rc && ret_object->kind != WEFT_JSON_OBJECT)
        rc = weft_fail(err, WEFT_INVALID_VALUE, "the body must be a JSON object");
    return rc;
}

enum weft_rc weft_request_read(struct weft_request *request, bool optional,
                               const struct weft_wire_type *type, void *ret_value,
                               struct weft_err *err)
{
    struct weft_json object;
    enum weft_rc rc = weft_request_object(request, optional, &object, err);
    return rc ? rc : weft_wire_read(type, &object, request->arena, ret_value, err);
}

static void read_item(struct weft_request *request, const struct weft_wire_type *type, size_t size,
                      const struct weft_json *value, size_t i)
{
    struct weft_items *items = &request->items;
    struct weft_err err = {0};
    void *item = (char *)items->item + i * size;
    enum weft_rc rc = value->kind == WEFT_JSON_OBJECT
                          ? weft_wire_read(type, value, request->arena, item, &err)
                          : weft_fail(&err, WEFT_INVALID_VALUE, "an item must be a JSON object");
    if (rc)
        items->err[i] = weft_err_dup(request->arena, &err);
    items->bytes += value->size; /* of payload or result, roughly */
}

/* The elements of the member "items", which must be the only one. */
static enum weft_rc find_items(const struct weft_json *body, struct weft_arena *arena,
                               struct weft_json *ret_array, struct weft_err *err)
{
    struct weft_json_iter member;
    bool found = false;
    weft_json_iter_init(&member, body);
    while (weft_json_next(&member)) {
        if (!weft_json_is(&member.key, "items")) {
            const char *name = NULL;
            enum weft_rc rc = weft_json_string(&member.key, arena, &name, err);
            return rc ? rc
                      : weft_fail_field(err, WEFT_UNKNOWN_FIELD, name,
                                        "only \"items\" is known here, not \"%.80s\"", name);
        }
        if (found)
            return weft_invalid(err, "items", "items was given twice");
        *ret_array = member.value;
        found = true;
    }
    if (!found || ret_array->kind != WEFT_JSON_ARRAY)
        return weft_invalid(err, "items", "the body must be {\"items\":[...]}");
    return WEFT_OK;
}

static void make_room(struct weft_request *request, size_t item_size, size_t count)
{
    struct weft_items *items = &request->items;
    items->item = weft_arena_alloc(request->arena, count + 1, item_size);
    items->err = weft_new_array(request->arena, const struct weft_err *, count + 1);
    items->count = count;
}

static enum weft_rc read_items(struct weft_request *request, const struct weft_wire_type *type,
                               size_t item_size, struct weft_err *err)
{
    struct weft_json body, array;
    enum weft_rc rc = weft_request_object(request, false, &body, err);
    if (!rc)
        rc = find_items(&body, request->arena, &array, err);
    if (rc)
        return rc;
    size_t count = 0;
    struct weft_json_iter element;
    weft_json_iter_init(&element, &array);
    while (weft_json_next(&element))
        count++;
    if (count > WEFT_BATCH_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "items",
                               "%zu items in one request, at most %d are allowed", count,
                               WEFT_BATCH_MAX);
    make_room(request, item_size, count);
    request->items.bulk = true;
    weft_json_iter_init(&element, &array);
    for (size_t i = 0; weft_json_next(&element); i++)
        read_item(request, type, item_size, &element.value, i);
    return WEFT_OK;
}

/*
 * True when the body looks like {"items": so a large body need not be walked twice to find its
 * form. A spelling that this misses, as with escapes, is found after the check.
 */
static bool looks_bulk(const struct weft_buf *body)
{
    static const char space[] = " \t\r\n", word[] = "\"items\"";
    if (!body->data)
        return false;
    const char *at = body->data + strspn(body->data, space);
    if (*at != '{')
        return false;
    at++;
    at += strspn(at, space);
    return strncmp(at, word, sizeof(word) - 1) == 0;
}

enum weft_rc weft_request_one_or_items(struct weft_request *request,
                                       const struct weft_wire_type *type, size_t item_size,
                                       struct weft_err *err)
{
    struct weft_json object = {0}, items;
    if (looks_bulk(&request->body))
        return read_items(request, type, item_size, err);
    enum weft_rc rc = weft_request_object(request, false, &object, err);
    if (rc)
        return rc;
    if (weft_wire_member(&object, "items", &items))
        return read_items(request, type, item_size, err);
    make_room(request, item_size, 1);
    request->items.bytes = object.size;
    return weft_wire_read(type, &object, request->arena, request->items.item, err);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/*
 * NDJSON: items as lines of JSON, in bodies and in answers. Blank lines are skipped. A line that is
 * refused is an item that is refused, which names its line; the others go on.
 */

const char *const weft_lines_types[] = {WEFT_LINES_TYPE, "application/ndjson", "application/jsonl",
                                        NULL};

bool weft_lines_type(const char *type)
{
    size_t size = type ? strcspn(type, "; \t") : 0;
    for (const char *const *known = weft_lines_types; *known; known++)
        if (size == strlen(*known) && strncasecmp(type, *known, size) == 0)
            return true;
    return false;
}

bool weft_request_wants_lines(const struct weft_request *request)
{
    const char *accept = weft_request_header(request, "Accept");
    return accept && strstr(accept, WEFT_LINES_TYPE);
}

struct line {
    const char *text; /* without the white space around it */
    size_t size;
    uint32_t number; /* from 1 */
};

/* The next line that is not blank; false at the end. Begins with a zeroed line and at = 0. */
static bool next_line(const struct weft_buf *body, size_t *at, struct line *line)
{
    static const char space[] = " \t\r";
    while (*at < body->size) {
        const char *text = body->data + *at;
        const char *end = memchr(text, '\n', body->size - *at);
        size_t size = end ? (size_t)(end - text) : body->size - *at;
        *at += size + 1;
        line->number++;
        while (size > 0 && *text && strchr(space, *text)) {
            text++;
            size--;
        }
        while (size > 0 && text[size - 1] && strchr(space, text[size - 1]))
            size--;
        if (size == 0)
            continue;
        line->text = text;
        line->size = size;
        return true;
    }
    return false;
}

static enum weft_rc read_line(struct weft_request *request, const struct weft_wire_type *type,
                              const struct line *line, void *ret_item, struct weft_err *err)
{
    struct weft_json value;
    enum weft_rc rc = weft_json_check(line->text, line->size, &value, err);
    if (!rc && value.kind != WEFT_JSON_OBJECT)
        rc = weft_fail(err, WEFT_INVALID_VALUE, "a line must be a JSON object");
    return rc ? rc : weft_wire_read(type, &value, request->arena, ret_item, err);
}

enum weft_rc weft_request_lines(struct weft_request *request, const struct weft_wire_type *type,
                                size_t item_size, struct weft_err *err)
{
    struct weft_items *items = &request->items;
    struct line line = {0};
    size_t at = 0, count = 0;
    while (next_line(&request->body, &at, &line))
        count++;
    if (count == 0)
        return weft_fail(err, WEFT_INVALID_JSON,
                         "the request has no body; it takes a JSON object on each line");
    if (count > WEFT_BATCH_MAX)
        return weft_hint(err,
                         weft_fail(err, WEFT_TOO_LARGE,
                                   "%zu items in one request, at most %d are allowed", count,
                                   WEFT_BATCH_MAX),
                         "send the lines in several requests");
    make_room(request, item_size, count);
    items->bulk = true;
    items->line = weft_new_array(request->arena, uint32_t, count);
    line = (struct line){0};
    at = 0;
    for (size_t i = 0; next_line(&request->body, &at, &line); i++) {
        struct weft_err why = {0};
        items->line[i] = line.number;
        if (read_line(request, type, &line, (char *)items->item + i * item_size, &why)) {
            struct weft_err *named = weft_err_new(request->arena, why.rc, why.field, "line %u: %s",
                                                  line.number, why.text);
            named->hint = why.hint;
            items->err[i] = named;
        }
        items->bytes += line.size;
    }
    return WEFT_OK;
}

/* ---- Answers --------------------------------------------------------------------------------- */

void weft_reply_header(struct weft_request *request, const char *name, const char *value)
{
    struct weft_reply *reply = &request->reply;
    size_t i = 0;
    while (i < reply->headers && strcmp(reply->header[i].name, name) != 0)
        i++;
    assert(i < WEFT_REPLY_HEADERS);
    reply->header[i] = (struct weft_header){name, value};
    reply->headers += i == reply->headers;
}

void weft_reply_keep_headers(struct weft_reply *reply, struct weft_arena *arena)
{
    for (size_t i = 0; i < reply->headers; i++)
        reply->header[i].value = weft_arena_strdup(arena, reply->header[i].value);
}

void weft_reply_as_lines(struct weft_request *request)
{
    static const struct weft_header as_lines[] = {{"Content-Type", WEFT_LINES_TYPE},
                                                  WEFT_FOREIGN_HEADERS};
    for (size_t i = 0; i < WEFT_LEN(as_lines); i++)
        weft_reply_header(request, as_lines[i].name, as_lines[i].value);
}

static void begin_reply(struct weft_request *request, int status)
{
    struct weft_reply *reply = &request->reply;
    if (reply->status)
        reply->headers = 0; /* of an answer that is not sent */
    if (reply->body.data)
        weft_buf_clear(&reply->body);
    else
        weft_buf_init(&reply->body, REPLY_MAX);
    reply->status = status;
}

void weft_reply_json(struct weft_request *request, int status, struct weft_json_writer *ret_out)
{
    begin_reply(request, status);
    weft_json_writer_init(ret_out, &request->reply.body);
}

void weft_reply_items(struct weft_request *request, struct weft_json_writer *ret_out)
{
    weft_reply_json(request, 200, ret_out);
    weft_json_begin_object(ret_out);
    weft_json_add_array(ret_out, "items");
}

void weft_reply_wire(struct weft_request *request, int status, const struct weft_wire_type *type,
                     const void *value)
{
    struct weft_json_writer out;
    weft_reply_json(request, status, &out);
    weft_wire_write(type, value, &out);
}

void weft_reply_error(struct weft_request *request, const struct weft_err *err)
{
    weft_reply_detail(request, err, NULL);
}

void weft_reply_detail(struct weft_request *request, const struct weft_err *err,
                       const struct weft_wire_detail *detail)
{
    struct weft_json_writer out;
    weft_reply_json(request, weft_rc_http(err->rc), &out);
    if (weft_openai_wants(request)) {
        weft_openai_write_error(err, &out);
    } else {
        weft_json_begin_object(&out);
        weft_json_key(&out, "error");
        weft_wire_write_error(err, detail, &out);
        weft_json_end_object(&out);
    }
    request->reply.stream = NULL;
    if (weft_rc_retryable(err->rc))
        weft_reply_header(request, "Retry-After", "1");
    if (request->reply.status == 401)
        weft_reply_header(request, "WWW-Authenticate", "Bearer");
}

void weft_reply_bytes(struct weft_request *request, const void *data, size_t size, const char *type)
{
    begin_reply(request, 200);
    if (type)
        weft_reply_header(request, "Content-Type", weft_arena_strdup(request->arena, type));
    weft_buf_add(&request->reply.body, data, size);
}
