/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The OpenAPI 3.1 document, written from the route table, the messages of src/wire and the table of
 * errors: it cannot say something else than the server does.
 */

#include "net/api/handlers.h"

#include "base/err.h"
#include "base/json.h"
#include "net/api/routes.h"
#include "net/request.h"
#include "wire/wire.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* {"$ref":"#/components/FOLDER/NAME"} as the next value. */
static void put_ref(struct weft_json_writer *out, const char *folder, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "#/components/%s/%s", folder, name);
    weft_json_begin_object(out);
    weft_json_add_text(out, "$ref", path);
    weft_json_end_object(out);
}

/* ---- Tags ------------------------------------------------------------------------------------ */

static const struct {
    const char *name, *about;
} TAGS[] = {
#define TAG(name_, about_) {name_, about_},
#include "net/api/tags.def"
};

/* Its tag is the word behind /v1/, "server" elsewhere. */
static bool has_tag(const struct weft_route *route, const char *name)
{
    const char *path = route->op->path + (route->openai ? strlen("/openai") : 0);
    const char *word = strncmp(path, "/v1/", 4) == 0 ? path + 4 : "server";
    size_t size = strcspn(word, "/");
    return strlen(name) == size && memcmp(name, word, size) == 0;
}

/* "tags": the rows that the routes use. */
static void put_tags(const struct weft_route_table *routes, struct weft_json_writer *out)
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

/* ---- Schemas --------------------------------------------------------------------------------- */

static const char *state_word(size_t i)
{
    return ++i < WEFT_STATE_COUNT ? weft_state_name((enum weft_state)i) : NULL;
}

static const char *flow_state_word(size_t i)
{
    return i < WEFT_FLOW_STATE_COUNT ? weft_wire_flow_states[i] : NULL;
}

static const char *code_word(size_t i)
{
    return ++i < WEFT_RC_COUNT ? weft_rc_wire((enum weft_rc)i) : NULL;
}

static const char *fence_word(size_t i)
{
    return ++i <= WEFT_FENCE_SUSPENDED ? weft_fence_name((enum weft_fence)i) : NULL;
}

/* Marks in the text of a schema; each stands for a list of words, with commas between them. */
static const struct {
    const char *mark;
    const char *(*word)(size_t i); /* NULL: there is no i-th one */
} WORDS[] = {
    {"$states", state_word},
    {"$flow_states", flow_state_word},
    {"$codes", code_word},
    {"$fences", fence_word},
};

static bool is_mark(const char *text, size_t size, const char *mark)
{
    return strlen(mark) == size && memcmp(text, mark, size) == 0;
}

/* Appends the text that the mark stands for, an unknown mark as it is; returns the text behind it.
 */
static const char *add_mark(struct weft_buf *text, const char *mark, const struct weft_route *route)
{
    size_t size = 1 + strspn(mark + 1, "abcdefghijklmnopqrstuvwxyz_");
    bool takes = is_mark(mark, size, "$takes"), gives = is_mark(mark, size, "$gives");
    size_t list = 0;
    while (list < WEFT_LEN(WORDS) && !is_mark(mark, size, WORDS[list].mark))
        list++;
    if (takes || gives) {
        assert(route);
        weft_buf_printf(text, REF("%s"),
                        weft_wire_name(takes ? route->op->takes : route->op->gives));
    } else if (list < WEFT_LEN(WORDS)) {
        const char *word;
        for (size_t i = 0; (word = WORDS[list].word(i)); i++)
            weft_buf_printf(text, "%s\"%s\"", i ? "," : "", word);
    } else {
        weft_buf_add(text, mark, size);
    }
    return mark + size;
}

/* Writes the text of a schema; $takes and $gives are the messages of the route, or not used. */
static void put_schema(struct weft_json_writer *out, const char *schema,
                       const struct weft_route *route)
{
    struct weft_buf text;
    weft_buf_init(&text, SIZE_MAX);
    while (*schema) {
        size_t plain = strcspn(schema, "$");
        weft_buf_add(&text, schema, plain);
        schema += plain;
        if (*schema)
            schema = add_mark(&text, schema, route);
    }
    weft_json_put_raw(out, text.data, text.size);
    weft_buf_done(&text);
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

/* The errors that a route can answer with, as bits of enum weft_rc. */
static uint32_t fails_of(const struct weft_route *route)
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

/* A response for each status of these errors: "404":{"$ref":...}. */
static void put_errors(const struct weft_route *route, struct weft_json_writer *out)
{
    uint32_t fails = fails_of(route);
    for (size_t i = 0; i < WEFT_LEN(STATUSES); i++) {
        if (!fails_with(fails, STATUSES[i].number))
            continue;
        char number[8];
        (void)snprintf(number, sizeof(number), "%d", STATUSES[i].number);
        weft_json_key(out, number);
        put_ref(out, "responses", route->openai ? "OpenAIError" : STATUSES[i].name);
    }
}

/* A response with an error; schema: of the whole answer. */
static void put_error_response(struct weft_json_writer *out, const char *name, const char *about,
                               const char *headers, const char *schema)
{
    static const char request_id[] =
        "{\"X-Request-Id\":{\"description\":\"The id of the request, as in the server's log\","
        "\"schema\":{\"type\":\"string\"}}";
    weft_json_add_object(out, name);
    weft_json_add_text(out, "description", about);
    char text[1024];
    (void)snprintf(text, sizeof(text), "%s%s}", request_id, headers);
    weft_json_add_raw(out, "headers", text);
    (void)snprintf(text, sizeof(text), "{\"application/json\":{\"schema\":%s}}", schema);
    weft_json_add_raw(out, "content", text);
    weft_json_end_object(out);
}

/* A response for each status that a route names, which says what its codes mean. */
static void put_error_responses(const struct weft_route_table *routes, struct weft_json_writer *out)
{
    uint32_t fails = 0;
    for (size_t i = 0; i < routes->count; i++)
        fails |= fails_of(&routes->route[i]);
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
        put_error_response(out, STATUSES[i].name, about, STATUSES[i].headers, REF("ErrorAnswer"));
    }
    put_error_response(out, "Error", "Any other error: `code` says which.", "", REF("ErrorAnswer"));
    put_error_response(out, "OpenAIError", "An error as OpenAI's clients know it.", RETRY_AFTER,
                       REF("OpenAIErrorAnswer"));
    weft_json_end_object(out);
}

static const struct {
    const char *name, *schema;
} OTHER_SCHEMAS[] = {
    {"Error",
     "{\"type\":\"object\",\"required\":[\"code\",\"message\"],\"properties\":{\"code\":{\"type\":"
     "\"string\",\"enum\":[$codes]},\"message\":{\"type\":\"string\"},\"hint\":{\"type\":"
     "[\"string\",\"null\"],\"description\":\"What to do\"},\"field\":{\"type\":[\"string\","
     "\"null\"],\"description\":\"What is to blame\"},\"reason\":{\"type\":\"string\","
     "\"description\":\"Why the lease is gone, when the code is fenced\",\"enum\":[$fences]},"
     "\"left\":{\"type\":\"object\",\"description\":\"How much more may be reported, by dimension, "
     "when the code is "
     "budget_exceeded\",\"additionalProperties\":{\"type\":\"integer\",\"minimum\":"
     "0}}}}"},
    {"ErrorAnswer",
     "{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{\"error\":" REF("Error") "}}"},
    {"OpenAIErrorAnswer",
     "{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{\"error\":{\"type\":"
     "\"object\",\"required\":[\"message\",\"type\",\"param\",\"code\"],\"properties\":{"
     "\"message\":"
     "{\"type\":\"string\"},\"type\":{\"type\":\"string\"},\"param\":{\"type\":[\"string\","
     "\"null\"]},"
     "\"code\":{\"type\":[\"string\",\"null\"]}}}}}"},
    {"OpenAIFlaw",
     "{\"type\":\"object\",\"required\":[\"code\",\"message\",\"param\",\"line\"],\"properties\":{"
     "\"code\":{\"type\":\"string\"},\"message\":{\"type\":\"string\"},\"param\":{\"type\":["
     "\"string\","
     "\"null\"]},\"line\":{\"type\":[\"integer\",\"null\"],\"minimum\":1}}}"},
    {"OpenAIFile",
     "{\"type\":\"object\",\"required\":[\"id\",\"object\",\"bytes\",\"created_at\",\"filename\","
     "\"purpose\",\"status\"],\"properties\":{\"id\":{\"type\":\"string\"},\"object\":{\"type\":"
     "\"string\",\"enum\":[\"file\"]},\"bytes\":{\"type\":\"integer\"},\"created_at\":{\"type\":"
     "\"integer\",\"description\":\"Unix seconds, as all moments here\"},\"expires_at\":{\"type\":["
     "\"integer\",\"null\"]},\"filename\":{\"type\":\"string\"},\"purpose\":{\"type\":\"string\"},"
     "\"status\":{\"type\":\"string\"},\"status_details\":{\"type\":[\"string\",\"null\"]},"
     "\"requests\":{\"type\":\"integer\",\"description\":\"Lines that are not blank\"},\"errors\":{"
     "\"type\":[\"object\",\"null\"],\"description\":\"The first 100 lines with mistakes, and how "
     "many there are\",\"properties\":{\"object\":{\"type\":\"string\"},\"total\":{\"type\":"
     "\"integer\"},\"data\":{\"type\":\"array\",\"items\":" REF("OpenAIFlaw") "}}}}}"},
    {"OpenAIBatch",
     "{\"type\":\"object\",\"required\":[\"id\",\"object\",\"endpoint\",\"input_file_id\","
     "\"completion_window\",\"status\",\"created_at\",\"request_counts\"],\"properties\":{\"id\":{"
     "\"type\":\"string\"},\"object\":{\"type\":\"string\",\"enum\":[\"batch\"]},\"endpoint\":{"
     "\"type\":\"string\"},\"completion_window\":{\"type\":\"string\"},\"status\":{\"type\":"
     "\"string\",\"enum\":[\"validating\",\"failed\",\"in_progress\",\"finalizing\","
     "\"completed\",\"expired\",\"cancelling\",\"cancelled\"]},\"errors\":{\"type\":[\"object\","
     "\"null\"],\"properties\":{\"object\":{\"type\":\"string\"},\"data\":{\"type\":\"array\","
     "\"items\":" REF("OpenAIFlaw") "}}},\"request_counts\":{\"type\":\"object\",\"required\":["
                                    "\"total\",\"completed\",\"failed\"],\"properties\":{\"total\":"
                                    "{\"type\":\"integer\"},"
                                    "\"completed\":{\"type\":\"integer\"},\"failed\":{\"type\":"
                                    "\"integer\"}}},\"input_file_id\":{"
                                    "\"type\":\"string\"},\"output_file_id\":{\"type\":[\"string\","
                                    "\"null\"]},\"error_file_id\":{"
                                    "\"type\":[\"string\",\"null\"]},\"metadata\":{\"type\":["
                                    "\"object\",\"null\"]}}}"},
    {"ItemId",
     "{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{\"id\":{\"type\":"
     "\"string\",\"format\":\"uuid\"}}}"},
    {"ItemError",
     "{\"type\":\"object\",\"required\":[\"id\",\"error\"],\"properties\":{\"id\":{"
     "\"type\":[\"string\",\"null\"]},\"error\":" REF("Error") "}}"},
};

static void put_components(const struct weft_route_table *routes, struct weft_json_writer *out)
{
    weft_json_add_object(out, "components");
    weft_json_add_object(out, "schemas");
    for (size_t i = 0; i < weft_wire_message_count; i++) {
        weft_json_key(out, weft_wire_name(weft_wire_messages[i]));
        weft_wire_schema(weft_wire_messages[i], out);
    }
    for (size_t i = 0; i < WEFT_LEN(OTHER_SCHEMAS); i++) {
        weft_json_key(out, OTHER_SCHEMAS[i].name);
        put_schema(out, OTHER_SCHEMAS[i].schema, NULL);
    }
    weft_json_end_object(out);
    put_error_responses(routes, out);
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

/* ---- Parameters ------------------------------------------------------------------------------ */

static void put_parameter(struct weft_json_writer *out, const char *in,
                          const struct weft_param *param)
{
    weft_json_begin_object(out);
    weft_json_add_text(out, "name", param->name);
    weft_json_add_text(out, "in", in);
    weft_json_add_text(out, "description", param->about);
    weft_json_add_bool(out, "required", strcmp(in, "path") == 0);
    weft_json_key(out, "schema");
    put_schema(out, param->schema, NULL);
    weft_json_end_object(out);
}

/* The {names} that paths have, for readers. */
static const struct weft_param PATH_PARAMS[] = {
#define ID_SCHEMA "{\"type\":\"string\",\"format\":\"uuid\"}"
    {"id", ID_SCHEMA, "The id of the execution, or of the flow under /v1/flows"},
    {"lane", NAME_SCHEMA, "The name of the lane; a slash in it is written %2F"},
    {"worker", NAME_SCHEMA, "The name of the worker; a slash in it is written %2F"},
    {"budget", NAME_SCHEMA, "The name of the budget; a slash in it is written %2F"},
    {"endpoint", NAME_SCHEMA, "The name of the endpoint; a slash in it is written %2F"},
    {"name", NAME_SCHEMA, "The name of the scanner"},
};

static void put_path_parameters(struct weft_json_writer *out, const char *path)
{
    for (const char *at = strchr(path, '{'); at; at = strchr(at + 1, '{')) {
        char name[32];
        size_t size = strcspn(at + 1, "}");
        assert(size < sizeof(name));
        memcpy(name, at + 1, size);
        name[size] = '\0';
        struct weft_param param = {name, NAME_SCHEMA, "A name; a slash in it is written %2F"};
        for (size_t i = 0; i < WEFT_LEN(PATH_PARAMS); i++)
            if (strcmp(PATH_PARAMS[i].name, name) == 0)
                param = PATH_PARAMS[i];
        put_parameter(out, "path", &param);
    }
}

static void put_parameters(struct weft_json_writer *out, const struct weft_route *route)
{
    weft_json_add_array(out, "parameters");
    put_path_parameters(out, route->op->path);
    for (size_t i = 0; i < WEFT_PARAMS_MAX && route->query[i].name; i++)
        put_parameter(out, "query", &route->query[i]);
    if (route->op->scope != WEFT_SCOPE_NONE)
        put_ref(out, "parameters", "Namespace");
    put_ref(out, "parameters", "RequestId");
    weft_json_end_array(out);
}

/* ---- Bodies ---------------------------------------------------------------------------------- */

/* {"items":[...]} of a schema, with other members of the object. */
#define ITEMS_OF(schema, more)                                                                     \
    "{\"type\":\"object\",\"required\":[\"items\"],\"properties\":{\"items\":{\"type\":"           \
    "\"array\",\"items\":" schema "}" more "}}"
#define PAGE_MEMBERS                                                                               \
    ",\"next\":{\"type\":[\"string\",\"null\"],\"description\":\"Give it as after for the next "   \
    "page; null at the end\"},\"looked_to\":{\"type\":\"string\",\"format\":\"date-time\","        \
    "\"description\":\"Only where a filter fits little: the page is short and everything created " \
    "after this moment was looked at\"}"
/* An item of a bulk call that went well: its id, with the message of the operation. */
#define BULK_RESULT "{\"allOf\":[" REF("ItemId") ",$gives]}"

static const char json_type[] = "application/json";

/* The content type and the schema of answers, by their form. */
static const struct {
    const char *type, *schema;
} SHAPES[] = {
    [WEFT_SHAPE_ONE] = {json_type, "$gives"},
    [WEFT_SHAPE_ITEMS] = {json_type, ITEMS_OF("$gives", "")},
    [WEFT_SHAPE_PAGE] = {json_type, ITEMS_OF("$gives", PAGE_MEMBERS)},
    [WEFT_SHAPE_BULK] = {json_type,
                         "{\"oneOf\":[" BULK_RESULT "," ITEMS_OF(
                             "{\"oneOf\":[" BULK_RESULT "," REF("ItemError") "]}", "") "]}"},
    [WEFT_SHAPE_BYTES] = {"*/*", "{}"},
    [WEFT_SHAPE_TEXT] = {"text/plain", "{\"type\":\"string\"}"},
    [WEFT_SHAPE_OTHER] = {json_type, NULL}, /* as the row has it */
};

/* "content":{"TYPE":{"schema":...} and the caller ends the object. */
static void begin_content(struct weft_json_writer *out, const char *type, const char *schema,
                          const struct weft_route *route)
{
    weft_json_add_object(out, "content");
    weft_json_add_object(out, type);
    weft_json_key(out, "schema");
    put_schema(out, schema, route);
    weft_json_end_object(out);
}

static void put_body(struct weft_json_writer *out, const struct weft_route *route)
{
    if (route->any_body)
        weft_json_add_raw(out, "requestBody",
                          route->may_be_empty
                              ? "{\"required\":false,\"content\":{\"*/*\":{\"schema\":{}}}}"
                              : "{\"required\":true,\"content\":{\"*/*\":{\"schema\":{}}}}");
    if (!route->op->takes && !route->body && !route->form)
        return;
    weft_json_add_object(out, "requestBody");
    weft_json_add_bool(out, "required", !route->may_be_empty);
    begin_content(out, route->form ? "multipart/form-data" : json_type,
                  route->form   ? route->form
                  : route->body ? route->body
                  : route->bulk ? "{\"oneOf\":[$takes," ITEMS_OF("$takes", "") "]}"
                                : "$takes",
                  route);
    for (const char *const *type = weft_lines_types; *type && route->takes_lines; type++)
        weft_json_add_raw(out, *type,
                          "{\"schema\":{\"type\":\"string\",\"description\":\"One item on each "
                          "line\"}}");
    weft_json_end_object(out);
    weft_json_end_object(out);
}

static void put_response(struct weft_json_writer *out, int status, const char *about,
                         const struct weft_route *route)
{
    char number[8];
    (void)snprintf(number, sizeof(number), "%d", status);
    weft_json_add_object(out, number);
    weft_json_add_text(out, "description", about);
    begin_content(out, SHAPES[route->shape].type,
                  route->shape == WEFT_SHAPE_OTHER ? route->answer : SHAPES[route->shape].schema,
                  route);
    if (route->lines && status == 200)
        weft_json_add_raw(
            out, WEFT_LINES_TYPE,
            "{\"schema\":{\"type\":\"string\",\"description\":\"All items, one a line\"}}");
    weft_json_end_object(out);
    weft_json_end_object(out);
}

static void put_responses(struct weft_json_writer *out, const struct weft_route *route)
{
    weft_json_add_object(out, "responses");
    put_response(out, 200, "Done", route);
    if (route->creates)
        put_response(out, 201, "Made", route);
    if (route->accepts)
        put_response(out, 202, "Begun; it goes on", route);
    put_errors(route, out);
    weft_json_key(out, "default");
    put_ref(out, "responses", route->openai ? "OpenAIError" : "Error");
    weft_json_end_object(out);
}

/* ---- Routes ---------------------------------------------------------------------------------- */

/* What is to be known, and which token it takes. */
static void put_description(struct weft_json_writer *out, const struct weft_route *route)
{
    char text[2048], scope[WEFT_SCOPES_TEXT];
    const char *about = route->about ? route->about : "";
    weft_scopes_print(route->op->scope, scope);
    if (route->op->scope)
        (void)snprintf(text, sizeof(text), "%s\n\nNeeds the scope `%s` where tokens are on.", about,
                       scope);
    weft_json_add_text(out, "description", route->op->scope ? text : about);
}

static void put_operation(struct weft_json_writer *out, const struct weft_route *route)
{
    char method[8] = "";
    for (size_t i = 0; i < sizeof(method) - 1 && route->op->method[i]; i++)
        method[i] = (char)(route->op->method[i] | 0x20); /* lower case */
    weft_json_add_object(out, method);
    weft_json_add_text(out, "operationId", route->op->id);
    weft_json_add_text(out, "summary", route->summary);
    put_description(out, route);
    weft_json_add_array(out, "tags");
    for (size_t i = 0; i < WEFT_LEN(TAGS); i++)
        if (has_tag(route, TAGS[i].name))
            weft_json_put_text(out, TAGS[i].name);
    weft_json_end_array(out);
    /* Tokens are off where only this machine can connect, so they are always optional here. */
    weft_json_add_raw(out, "security", route->op->scope ? "[{},{\"bearer\":[]}]" : "[]");
    char scope[WEFT_SCOPES_TEXT];
    weft_scopes_print(route->op->scope, scope);
    if (route->op->scope)
        weft_json_add_text(out, "x-weft-scope", scope);
    put_parameters(out, route);
    put_body(out, route);
    put_responses(out, route);
    weft_json_end_object(out);
}

static bool is_first_of_path(const struct weft_route_table *routes, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(routes->route[k].op->path, routes->route[i].op->path) == 0)
            return false;
    return true;
}

static void put_paths(struct weft_json_writer *out, const struct weft_route_table *routes)
{
    weft_json_add_object(out, "paths");
    for (size_t i = 0; i < routes->count; i++) {
        if (!is_first_of_path(routes, i))
            continue;
        weft_json_add_object(out, routes->route[i].op->path);
        for (size_t k = i; k < routes->count; k++)
            if (strcmp(routes->route[k].op->path, routes->route[i].op->path) == 0)
                put_operation(out, &routes->route[k]);
        weft_json_end_object(out);
    }
    weft_json_end_object(out);
}

static void put_info(struct weft_json_writer *out)
{
    static const char about[] =
        "Work that must not be lost: submit executions, claim them with workers, and steer "
        "them.\n\n"
        "Bodies and answers are JSON in UTF-8; fields that are not known are refused. Every error "
        "is "
        "`{\"error\":{\"code\",\"message\",\"hint\",\"field\"}}`, and `code` decides about the "
        "status. A method that a path does not have is 405 `method_not_allowed`. 429, 503 and 507 "
        "carry Retry-After: the same request may be sent again. Bodies may come with "
        "`Content-Encoding: gzip` or `zstd`; their limits hold for what they unpack to.";
    weft_json_add_object(out, "info");
    weft_json_add_text(out, "title", "weft");
    weft_json_add_text(out, "version", WEFT_VERSION);
    weft_json_add_text(out, "summary", "A durable execution engine");
    weft_json_add_text(out, "description", about);
    weft_json_add_raw(out, "contact", "{\"name\":\"The authors of weft\"}");
    weft_json_add_raw(out, "license", "{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}");
    weft_json_end_object(out);
}

void weft_openapi_write(const struct weft_route_table *routes, struct weft_buf *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out);
    weft_json_begin_object(&writer);
    weft_json_add_text(&writer, "openapi", "3.1.0");
    put_info(&writer);
    weft_json_add_raw(&writer, "servers",
                      "[{\"url\":\"/\",\"description\":\"The server that gave this document\"}]");
    put_tags(routes, &writer);
    put_paths(&writer, routes);
    put_components(routes, &writer);
    weft_json_end_object(&writer);
}
