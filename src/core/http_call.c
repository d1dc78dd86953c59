/* SPDX-License-Identifier: Apache-2.0 */

#include "core/http_call.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/json_fill.h"

#include <string.h>

/* ---- Headers --------------------------------------------------------------------------------- */

bool weft_http_header_is(const char *name, const char *other)
{
    return strcasecmp_l(name, other, weft_c_locale()) == 0;
}

enum weft_rc weft_http_header_check(const struct weft_http_header *header, struct weft_err *err)
{
    const char *name = header->name, *value = header->value;
    size_t size = strlen(name), length = strlen(value);
    if (size == 0 || size > WEFT_HTTP_HEADER_NAME_MAX ||
        name[weft_word_size(name, "!#$%&'*+-.^_`|~")])
        return weft_invalid(err, "headers",
                            "the name of a header is 1 to %d letters, digits and "
                            "! # $ %% & ' * + - . ^ _ ` | ~",
                            WEFT_HTTP_HEADER_NAME_MAX);
    if (length > WEFT_HTTP_HEADER_VALUE_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "headers",
                               "the header %s has %zu bytes, at most %d are allowed", name, length,
                               WEFT_HTTP_HEADER_VALUE_MAX);
    if (!weft_text_printable(value, length))
        return weft_invalid(err, "headers", "the header %s has a line break or a control character",
                            name);
    if (value[0] == ' ' || (length > 0 && value[length - 1] == ' '))
        return weft_invalid(err, "headers", "the header %s begins or ends with a space", name);
    return WEFT_OK;
}

enum weft_rc weft_http_header_allowed(const char *name, struct weft_err *err)
{
    static const struct {
        const char *name, *why;
    } row[] = {
        {"accept-encoding", "is set by weft"},
        {"authorization", "carries a secret, which belongs to an endpoint"},
        {"connection", "belongs to the connection"},
        {"content-length", "is set by weft"},
        {"expect", "is set by weft"},
        {"host", "is set by weft"},
        {"http2-settings", "belongs to the connection"},
        {"keep-alive", "belongs to the connection"},
        {"proxy-authenticate", "belongs to the connection"},
        {"proxy-authorization", "belongs to the connection"},
        {"proxy-connection", "belongs to the connection"},
        {"te", "belongs to the connection"},
        {"trailer", "belongs to the connection"},
        {"transfer-encoding", "is set by weft"},
        {"upgrade", "belongs to the connection"},
        {"x-weft-epoch", "is set by weft"},
        {"x-weft-execution", "is set by weft"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        if (weft_http_header_is(name, row[i].name))
            return weft_invalid(err, "headers", "the header %s %s", name, row[i].why);
    return WEFT_OK;
}

const char *weft_http_call_header(const struct weft_http_call *call, const char *name)
{
    for (size_t i = 0; i < call->header_count; i++)
        if (weft_http_header_is(call->header[i].name, name))
            return call->header[i].value;
    return NULL;
}

enum weft_rc weft_http_call_yields(const struct weft_http_call *call,
                                   const struct weft_http_header *header, size_t count,
                                   struct weft_err *err)
{
    for (size_t i = 0; i < count; i++)
        if (weft_http_call_header(call, header[i].name))
            return weft_invalid(err, "headers", "the header %s is set by the endpoint",
                                header[i].name);
    return WEFT_OK;
}

/* ---- Members --------------------------------------------------------------------------------- */

enum field { ENDPOINT, URL, PATH, METHOD, HEADERS, BODY, BODY_BASE64, STREAM, FROM, FIELDS };
static const char *const field_name[FIELDS] = {
    "endpoint", "url", "path", "method", "headers", "body", "body_base64", "stream", "from",
};

struct reader {
    struct weft_json member[FIELDS]; /* text NULL: absent, or null, which is the same */
    struct weft_arena *arena;
    struct weft_err *err;
    struct weft_http_call call;
};

static bool has(const struct reader *in, enum field field)
{
    return in->member[field].text != NULL;
}

static enum weft_rc read_members(struct reader *in, const struct weft_json *payload)
{
    bool seen[FIELDS] = {false};
    struct weft_json_iter member;
    if (payload->kind != WEFT_JSON_OBJECT)
        return weft_invalid(in->err, "payload", "the payload of an HTTP call must be an object");
    weft_json_iter_init(&member, payload);
    while (weft_json_next(&member)) {
        size_t i = 0;
        while (i < FIELDS && !weft_json_is(&member.key, field_name[i]))
            i++;
        if (i == FIELDS)
            return weft_fail_field(in->err, WEFT_UNKNOWN_FIELD, "payload",
                                   "unknown field %.*s in the payload of an HTTP call",
                                   (int)member.key.size, member.key.text);
        if (seen[i])
            return weft_invalid(in->err, field_name[i], "%s is given twice", field_name[i]);
        seen[i] = true;
        if (member.value.kind != WEFT_JSON_NULL)
            in->member[i] = member.value;
    }
    return WEFT_OK;
}

/* The text of a string; absent: ret_text stays as it is. */
static enum weft_rc read_text(struct reader *in, enum field field, const char **ret_text)
{
    if (!has(in, field))
        return WEFT_OK;
    if (weft_json_string(&in->member[field], in->arena, ret_text, NULL))
        return weft_invalid(in->err, field_name[field], "%s must be a string without U+0000",
                            field_name[field]);
    return WEFT_OK;
}

static enum weft_rc read_place(struct reader *in)
{
    struct weft_http_call *call = &in->call;
    const char *url = NULL;
    if (has(in, ENDPOINT) == has(in, URL))
        return weft_invalid(in->err, "endpoint",
                            "an HTTP call names either an endpoint or a url of its own");
    if (has(in, URL) && has(in, PATH))
        return weft_invalid(in->err, "path", "path goes with an endpoint, a url has its own");
    enum weft_rc rc = read_text(in, ENDPOINT, &call->endpoint);
    if (!rc)
        rc = read_text(in, URL, &url);
    if (!rc)
        rc = read_text(in, PATH, &call->path);
    if (rc)
        return rc;
    if (url)
        return weft_http_url_read(url, "url", in->arena, &call->url, in->err);
    if (!weft_name_valid(call->endpoint))
        return weft_invalid(in->err, "endpoint",
                            "the name of an endpoint is 1 to %d of A-Z a-z 0-9 _ . : / -",
                            WEFT_NAME_MAX);
    return call->path ? weft_http_path_check(call->path, in->err) : WEFT_OK;
}

/* CONNECT asks for a tunnel; TRACE and TRACK send headers back, the secret of the endpoint too. */
static enum weft_rc read_method(struct reader *in)
{
    const char *method = in->call.method = in->call.body ? "POST" : "GET";
    enum weft_rc rc = read_text(in, METHOD, &method);
    if (rc)
        return rc;
    size_t size = strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-");
    if (size == 0 || size > WEFT_HTTP_METHOD_MAX || method[size])
        return weft_invalid(in->err, "method", "method must be 1 to %d capital letters and hyphens",
                            WEFT_HTTP_METHOD_MAX);
    if (strcmp(method, "CONNECT") == 0 || strcmp(method, "TRACE") == 0 ||
        strcmp(method, "TRACK") == 0)
        return weft_invalid(in->err, "method", "the method %s is not allowed", method);
    in->call.method = method;
    return WEFT_OK;
}

static size_t count_members(const struct weft_json *object)
{
    struct weft_json_iter member;
    size_t count = 0;
    weft_json_iter_init(&member, object);
    while (weft_json_next(&member))
        count++;
    return count;
}

/* An object of at most `max` members, or WEFT_INVALID_VALUE, WEFT_TOO_LARGE. */
static enum weft_rc check_object(const struct reader *in, enum field field, size_t max,
                                 size_t *ret_count)
{
    const char *name = field_name[field];
    if (in->member[field].kind != WEFT_JSON_OBJECT)
        return weft_invalid(in->err, name, "%s must be an object", name);
    *ret_count = count_members(&in->member[field]);
    if (*ret_count > max)
        return weft_fail_field(in->err, WEFT_TOO_LARGE, name, "%s has at most %zu members, not %zu",
                               name, max, *ret_count);
    return WEFT_OK;
}

static enum weft_rc read_header(struct reader *in, const struct weft_json_iter *member,
                                struct weft_http_header *header)
{
    if (weft_json_string(&member->key, in->arena, &header->name, NULL) ||
        weft_json_string(&member->value, in->arena, &header->value, NULL))
        return weft_invalid(in->err, "headers",
                            "headers and their values must be strings without U+0000");
    enum weft_rc rc = weft_http_header_check(header, in->err);
    if (!rc)
        rc = weft_http_header_allowed(header->name, in->err);
    if (!rc && weft_http_call_header(&in->call, header->name))
        rc = weft_invalid(in->err, "headers", "the header %s is given twice", header->name);
    return rc;
}

static enum weft_rc read_headers(struct reader *in)
{
    struct weft_http_call *call = &in->call;
    size_t count = 0, bytes = 0;
    if (!has(in, HEADERS))
        return WEFT_OK;
    enum weft_rc rc = check_object(in, HEADERS, WEFT_HTTP_HEADERS_MAX, &count);
    if (rc)
        return rc;
    struct weft_http_header *header = weft_new_array(in->arena, struct weft_http_header, count);
    struct weft_json_iter member;
    call->header = header;
    weft_json_iter_init(&member, &in->member[HEADERS]);
    for (; weft_json_next(&member); call->header_count++, header++) {
        rc = read_header(in, &member, header);
        if (rc)
            return rc;
        bytes += strlen(header->name) + strlen(header->value);
    }
    if (bytes > WEFT_HTTP_HEADERS_BYTES)
        return weft_fail_field(in->err, WEFT_TOO_LARGE, "headers",
                               "the headers have %zu bytes, at most %d are allowed", bytes,
                               WEFT_HTTP_HEADERS_BYTES);
    return WEFT_OK;
}

static enum weft_rc read_body(struct reader *in)
{
    struct weft_http_call *call = &in->call;
    const char *text = NULL;
    if (has(in, BODY) && has(in, BODY_BASE64))
        return weft_invalid(in->err, "body", "body and body_base64 cannot both be given");
    if (has(in, BODY)) {
        call->json = in->member[BODY];
        call->body = call->json.text;
        call->body_size = call->json.size;
        return WEFT_OK;
    }
    enum weft_rc rc = read_text(in, BODY_BASE64, &text);
    if (rc || !text)
        return rc;
    size_t size = strlen(text);
    char *bytes = weft_arena_alloc(in->arena, size / 4 * 3, 1);
    if (!weft_base64_decode(text, size, bytes, &call->body_size))
        return weft_invalid(in->err, "body_base64", "body_base64 must be base64 with padding");
    call->body = bytes;
    return WEFT_OK;
}

static enum weft_rc read_stream(struct reader *in)
{
    if (has(in, STREAM) && in->member[STREAM].kind != WEFT_JSON_BOOL)
        return weft_invalid(in->err, "stream", "stream must be true or false");
    in->call.stream = has(in, STREAM) && weft_json_bool(&in->member[STREAM]);
    return WEFT_OK;
}

/* ---- From ------------------------------------------------------------------------------------ */

/* The pointer into the body that stands behind "/body" in a pointer into the payload, or NULL. */
static const char *below_body(const char *pointer)
{
    static const char body[] = "/body";
    size_t size = strlen(body);
    if (strncmp(pointer, body, size) != 0 || (pointer[size] && pointer[size] != '/'))
        return NULL;
    return pointer + size;
}

/* "node#/pointer" as its parts. */
static bool split_source(const char *source, struct weft_arena *arena, struct weft_http_from *from)
{
    const char *hash = strchr(source, '#');
    if (!hash)
        return false;
    from->node = weft_arena_printf(arena, "%.*s", (int)(hash - source), source);
    from->pointer = hash + 1;
    return weft_name_valid(from->node);
}

static enum weft_rc read_part(struct reader *in, const struct weft_json_iter *member,
                              struct weft_http_from *from)
{
    const char *target, *source;
    struct weft_json place;
    if (weft_json_string(&member->key, in->arena, &target, NULL) ||
        weft_json_string(&member->value, in->arena, &source, NULL))
        return weft_invalid(in->err, "from",
                            "from maps pointers to strings, and none has a U+0000");
    from->target = below_body(target);
    if (!from->target)
        return weft_invalid(in->err, "from",
                            "from fills parts of the body: its keys begin with /body");
    if (!split_source(source, in->arena, from))
        return weft_invalid(in->err, "from",
                            "what from takes is written as the name of an upstream, # and a JSON "
                            "pointer into its result");
    enum weft_rc rc = weft_json_pointer_check(from->target, in->err);
    if (!rc)
        rc = weft_json_pointer_check(from->pointer, in->err);
    if (!rc)
        rc = weft_json_pointer_find(&in->call.json, from->target, "the body", &place, in->err);
    return rc;
}

static enum weft_rc read_from(struct reader *in)
{
    size_t count = 0;
    if (!has(in, FROM))
        return WEFT_OK;
    if (!in->call.json.text)
        return weft_invalid(in->err, "from", "from needs a body to fill, in JSON");
    enum weft_rc rc = check_object(in, FROM, WEFT_HTTP_FILLS_MAX, &count);
    if (rc)
        return rc;
    struct weft_http_from *from = weft_new_array(in->arena, struct weft_http_from, count);
    struct weft_json_iter member;
    in->call.from = from;
    weft_json_iter_init(&member, &in->member[FROM]);
    while (!rc && weft_json_next(&member))
        rc = read_part(in, &member, &from[in->call.from_count++]);
    return rc;
}

enum weft_rc weft_http_call_read(const struct weft_json *payload, struct weft_arena *arena,
                                 struct weft_http_call *ret_call, struct weft_err *err)
{
    static enum weft_rc (*const step[])(struct reader *) = {
        read_place,  read_headers, read_body, read_method /* after the body */,
        read_stream, read_from,
    };
    struct reader in = {.arena = arena, .err = err};
    enum weft_rc rc = read_members(&in, payload);
    for (size_t i = 0; i < WEFT_LEN(step) && !rc; i++)
        rc = step[i](&in);
    if (!rc)
        *ret_call = in.call;
    return rc;
}
