/* SPDX-License-Identifier: Apache-2.0 */

/* What the operations of the OpenAPI document refer to: tags, messages, errors, parameters. */

#include "net/api/openapi_parts.h"

#include "base/err.h"
#include "core/token.h"
#include "net/api/openapi.h"
#include "wire/wire.h"

#include <stdio.h>
#include <string.h>

/* ---- Tags ------------------------------------------------------------------------------------ */

static const struct weft_openapi_tag TAGS[] = {
    {"executions", "Units of work: submit them, look at them, steer them."},
    {"flows", "Graphs of executions that come after each other."},
    {"claims", "How workers get work."},
    {"leases", "What workers say about the work they hold."},
    {"workers", "The processes that claim work."},
    {"lanes", "Queues: whether they are paused, how much may run at once, who gets which share."},
    {"tokens", "Who may do what."},
    {"replicas", "The servers that share the store."},
    {"scanners", "What the servers do by themselves: they put right what time or a crash left."},
    {"counts", "How much there is."},
    {"server", "Health, metrics and this document: outside /v1, for the machinery around it."},
};

static bool has_tag(const struct weft_route *route, const char *name)
{
    const char *word = strncmp(route->op->path, "/v1/", 4) == 0 ? route->op->path + 4 : "server";
    size_t size = strcspn(word, "/");
    return strlen(name) == size && memcmp(name, word, size) == 0;
}

const struct weft_openapi_tag *weft_openapi_tag_of(const struct weft_route *route)
{
    for (size_t i = 0; i < WEFT_LEN(TAGS); i++)
        if (has_tag(route, TAGS[i].name))
            return &TAGS[i];
    return NULL;
}

void weft_openapi_tags(const struct weft_route_table *routes, struct weft_json_writer *out)
{
    weft_json_add_array(out, "tags");
    for (size_t i = 0; i < WEFT_LEN(TAGS); i++) {
        size_t r = 0;
        while (r < routes->count && !has_tag(&routes->route[r], TAGS[i].name))
            r++;
        if (r == routes->count)
            continue;
        weft_json_begin_object(out);
        weft_json_add_text(out, "name", TAGS[i].name);
        weft_json_add_text(out, "description", TAGS[i].about);
        weft_json_end_object(out);
    }
    weft_json_end_array(out);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The statuses of errors, in order, with the names of their responses. */
static const struct status {
    int number;
    const char *name;
    const char *headers; /* JSON text, without the braces; "" for none */
} STATUSES[] = {
#define RETRY_AFTER                                                                                \
    ",\"Retry-After\":{\"description\":\"Seconds after which to try again\",\"schema\":{"          \
    "\"type\":\"integer\"}}"
#define TEXT_HEADER(name, about)                                                                   \
    ",\"" name "\":{\"description\":\"" about "\",\"schema\":{\"type\":\"string\"}}"
    {400, "BadRequest", ""},
    {401, "Unauthorized", TEXT_HEADER("WWW-Authenticate", "Always Bearer")},
    {403, "Forbidden", ""},
    {404, "NotFound", ""},
    {405, "MethodNotAllowed", TEXT_HEADER("Allow", "The methods of the path")},
    {409, "Conflict", ""},
    {413, "TooLarge", ""},
    {415, "UnsupportedMediaType",
     TEXT_HEADER("Accept-Encoding", "The encodings that are taken, when the encoding is at fault")
         TEXT_HEADER("Accept", "The types that are taken, when the type is at fault")},
    {429, "TooManyRequests", RETRY_AFTER},
    {500, "InternalError", ""},
    {503, "Unavailable", RETRY_AFTER},
    {507, "StorageFull", RETRY_AFTER},
};

#define RC(name) (UINT32_C(1) << WEFT_##name)

uint32_t weft_openapi_fails(const struct weft_route *route)
{
    /* The query string is checked everywhere, and a server that stops refuses everything. */
    uint32_t fails = route->fails | RC(INVALID_VALUE) | RC(UNKNOWN_FIELD) | RC(TOO_LARGE) |
                     RC(UNAVAILABLE) | RC(INTERNAL);
    if (route->op->scope != WEFT_SCOPE_NONE)
        fails |= RC(UNAUTHORIZED) | RC(FORBIDDEN);
    if (route->body_max > 0)
        fails |= RC(INVALID_JSON) | RC(UNSUPPORTED_MEDIA_TYPE) | RC(STORAGE_FULL);
    if (route->run || !weft_group_alone(route->op->group))
        fails |= RC(BUSY) | RC(RATE_LIMITED) | RC(SCHEMA) | RC(CORRUPT);
    return fails;
}

static bool fails_with(uint32_t fails, int status)
{
    for (int rc = WEFT_OK + 1; rc < WEFT_RC_COUNT; rc++)
        if (fails & (UINT32_C(1) << rc) && weft_rc_http((enum weft_rc)rc) == status)
            return true;
    return false;
}

void weft_openapi_errors(uint32_t fails, struct weft_json_writer *out)
{
    for (size_t i = 0; i < WEFT_LEN(STATUSES); i++) {
        if (!fails_with(fails, STATUSES[i].number))
            continue;
        char number[8];
        (void)snprintf(number, sizeof(number), "%d", STATUSES[i].number);
        weft_json_key(out, number);
        weft_openapi_ref(out, "responses", STATUSES[i].name);
    }
}

static void put_response(struct weft_json_writer *out, const char *name, const char *about,
                         const char *headers)
{
    static const char request_id[] =
        "{\"X-Request-Id\":{\"description\":\"The id of the request, as in the server's log\","
        "\"schema\":{\"type\":\"string\"}}";
    weft_json_add_object(out, name);
    weft_json_add_text(out, "description", about);
    char text[1024];
    (void)snprintf(text, sizeof(text), "%s%s}", request_id, headers);
    weft_json_add_raw(out, "headers", text);
    weft_json_add_raw(out, "content",
                      "{\"application/json\":{\"schema\":{\"$ref\":"
                      "\"#/components/schemas/ErrorAnswer\"}}}");
    weft_json_end_object(out);
}

/* A response for each status that a route names, which says what its codes mean. */
static void put_responses(const struct weft_route_table *routes, struct weft_json_writer *out)
{
    uint32_t fails = 0;
    for (size_t i = 0; i < routes->count; i++)
        fails |= weft_openapi_fails(&routes->route[i]);
    weft_json_add_object(out, "responses");
    for (size_t i = 0; i < WEFT_LEN(STATUSES); i++) {
        if (!fails_with(fails, STATUSES[i].number))
            continue;
        char about[1024] = "";
        size_t used = 0;
        for (int rc = WEFT_OK + 1; rc < WEFT_RC_COUNT; rc++)
            if (weft_rc_http((enum weft_rc)rc) == STATUSES[i].number && used < sizeof(about))
                used += (size_t)snprintf(about + used, sizeof(about) - used, "%s`%s`: %s",
                                         used ? "; " : "", weft_rc_wire((enum weft_rc)rc),
                                         weft_rc_text((enum weft_rc)rc));
        put_response(out, STATUSES[i].name, about, STATUSES[i].headers);
    }
    put_response(out, "Error", "Any other error: `code` says which.", "");
    weft_json_end_object(out);
}

static void put_error_schemas(struct weft_json_writer *out)
{
    weft_json_add_object(out, "Error");
    weft_json_add_text(out, "type", "object");
    weft_json_add_raw(out, "required", "[\"code\",\"message\"]");
    weft_json_add_object(out, "properties");
    weft_json_add_object(out, "code");
    weft_json_add_text(out, "type", "string");
    weft_json_add_array(out, "enum");
    for (int rc = WEFT_OK + 1; rc < WEFT_RC_COUNT; rc++)
        weft_json_put_text(out, weft_rc_wire((enum weft_rc)rc));
    weft_json_end_array(out);
    weft_json_end_object(out);
    weft_json_add_raw(out, "message", "{\"type\":\"string\"}");
    weft_json_add_raw(out, "hint",
                      "{\"type\":[\"string\",\"null\"],\"description\":\"What to do\"}");
    weft_json_add_raw(out, "field",
                      "{\"type\":[\"string\",\"null\"],\"description\":\"What is to blame\"}");
    weft_json_add_object(out, "reason");
    weft_json_add_text(out, "type", "string");
    weft_json_add_text(out, "description", "Why the lease is gone, when the code is fenced");
    weft_json_add_array(out, "enum");
    for (int fence = WEFT_FENCE_NONE + 1; fence <= WEFT_FENCE_UNKNOWN; fence++)
        weft_json_put_text(out, weft_fence_name((enum weft_fence)fence));
    weft_json_end_array(out);
    weft_json_end_object(out);
    weft_json_end_object(out);
    weft_json_end_object(out);
    weft_json_add_raw(
        out, "ErrorAnswer",
        "{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{\"error\":{\"$ref\":"
        "\"#/components/schemas/Error\"}}}");
    weft_json_add_raw(out, "ItemId",
                      "{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{\"id\":{\"type\":"
                      "\"string\",\"format\":\"uuid\"}}}");
    weft_json_add_raw(
        out, "ItemError",
        "{\"type\":\"object\",\"required\":[\"id\",\"error\"],\"properties\":{\"id\":{"
        "\"type\":[\"string\",\"null\"]},\"error\":{\"$ref\":"
        "\"#/components/schemas/Error\"}}}");
}

/* ---- All ------------------------------------------------------------------------------------- */

void weft_openapi_components(const struct weft_route_table *routes, struct weft_json_writer *out)
{
    weft_json_add_object(out, "components");
    weft_json_add_object(out, "schemas");
    for (size_t i = 0; i < weft_wire_message_count; i++) {
        weft_json_key(out, weft_wire_name(weft_wire_messages[i]));
        weft_wire_schema(weft_wire_messages[i], out);
    }
    put_error_schemas(out);
    weft_json_end_object(out);
    put_responses(routes, out);
    weft_json_add_raw(
        out, "parameters",
        "{\"Namespace\":{\"name\":\"X-Weft-Namespace\",\"in\":\"header\",\"required\":false,"
        "\"description\":\"The namespace, unless the token fixes it\",\"schema\":{\"type\":"
        "\"string\",\"default\":\"default\"}},\"RequestId\":{\"name\":\"X-Request-Id\","
        "\"in\":\"header\",\"required\":false,\"description\":\"Comes back in the answer and "
        "stands in the log; made up when absent\",\"schema\":{\"type\":\"string\"}}}");
    weft_json_add_raw(out, "securitySchemes",
                      "{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":"
                      "\"A token from `weft token create`. Required where tokens are on; "
                      "x-weft-scope of an operation is the scope it needs.\"}}");
    weft_json_end_object(out);
}
