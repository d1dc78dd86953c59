/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The OpenAPI 3.1 document, written from the route table, the messages of src/wire and the table of
 * errors: it cannot say something else than the server does.
 */

#include "net/api.h"

#include "net/route.h"
#include "wire/wire.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Every message the server takes or gives, whether a route names it or a schema refers to it. */
static const struct weft_wire_type *const MESSAGES[] = {
    &weft_wire_spec,           &weft_wire_submitted,  &weft_wire_execution,
    &weft_wire_attempt,        &weft_wire_cancel,     &weft_wire_priority,
    &weft_wire_deadline,       &weft_wire_filter,     &weft_wire_sweep,
    &weft_wire_claim,          &weft_wire_claimed,    &weft_wire_renew,
    &weft_wire_renewed,        &weft_wire_complete,   &weft_wire_failure,
    &weft_wire_delay,          &weft_wire_release,    &weft_wire_finished,
    &weft_wire_worker,         &weft_wire_lane,       &weft_wire_lane_count,
    &weft_wire_replica,        &weft_wire_scanner,    &weft_wire_pass,
    &weft_wire_node,           &weft_wire_flow_spec,  &weft_wire_flow_submitted,
    &weft_wire_flow_growth,    &weft_wire_flow_grown, &weft_wire_flow_cancel,
    &weft_wire_flow_cancelled, &weft_wire_flow_node,  &weft_wire_flow,
    &weft_wire_flow_page,      &weft_wire_upstream,
};

static void put_pair(struct weft_json_writer *out, const char *key, const char *text)
{
    weft_json_key(out, key);
    weft_json_put_text(out, text);
}

static void put_raw(struct weft_json_writer *out, const char *key, const char *json)
{
    weft_json_key(out, key);
    weft_json_put_raw(out, json, strlen(json));
}

/* {"$ref":"#/components/FOLDER/NAME"} as the next value. */
static void put_ref(struct weft_json_writer *out, const char *folder, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "#/components/%s/%s", folder, name);
    weft_json_begin_object(out);
    put_pair(out, "$ref", path);
    weft_json_end_object(out);
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static void put_parameter(struct weft_json_writer *out, const char *in,
                          const struct weft_param *param)
{
    weft_json_begin_object(out);
    put_pair(out, "name", param->name);
    put_pair(out, "in", in);
    put_pair(out, "description", param->about);
    weft_json_key(out, "required");
    weft_json_put_bool(out, strcmp(in, "path") == 0);
    put_raw(out, "schema", param->schema);
    weft_json_end_object(out);
}

static void put_path_parameters(struct weft_json_writer *out, const char *path)
{
    static const char id_schema[] = "{\"type\":\"string\",\"format\":\"uuid\"}";
    static const char name_schema[] =
        "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_.:/-]{1,128}$\"}";
    for (const char *at = strchr(path, '{'); at; at = strchr(at + 1, '{')) {
        char name[32];
        size_t size = strcspn(at + 1, "}");
        assert(size < sizeof(name));
        memcpy(name, at + 1, size);
        name[size] = '\0';
        bool is_id = strcmp(name, "id") == 0;
        const struct weft_param param = {name, is_id ? id_schema : name_schema,
                                         is_id ? "The id of the execution"
                                               : "A name; slashes in it are written %2F"};
        put_parameter(out, "path", &param);
    }
}

static void put_parameters(struct weft_json_writer *out, const struct weft_route *route)
{
    weft_json_key(out, "parameters");
    weft_json_begin_array(out);
    put_path_parameters(out, route->path);
    for (size_t i = 0; i < WEFT_PARAMS_MAX && route->query[i].name; i++)
        put_parameter(out, "query", &route->query[i]);
    if (route->scope != WEFT_SCOPE_NONE)
        put_ref(out, "parameters", "Namespace");
    put_ref(out, "parameters", "RequestId");
    weft_json_end_array(out);
}

/* ---- Bodies ---------------------------------------------------------------------------------- */

/* "content":{"TYPE":{"schema": and what the caller writes next, closed by end_content(). */
static void begin_content(struct weft_json_writer *out, const char *type)
{
    weft_json_key(out, "content");
    weft_json_begin_object(out);
    weft_json_key(out, type);
    weft_json_begin_object(out);
    weft_json_key(out, "schema");
}

static void end_content(struct weft_json_writer *out)
{
    weft_json_end_object(out);
    weft_json_end_object(out);
}

/* An object with `items` as the next value; the caller writes the schema of an item in between. */
static void begin_items(struct weft_json_writer *out)
{
    weft_json_begin_object(out);
    put_pair(out, "type", "object");
    put_raw(out, "required", "[\"items\"]");
    weft_json_key(out, "properties");
    weft_json_begin_object(out);
    weft_json_key(out, "items");
    weft_json_begin_object(out);
    put_pair(out, "type", "array");
    weft_json_key(out, "items");
}

/* next: the list has pages. */
static void end_items(struct weft_json_writer *out, bool next)
{
    weft_json_end_object(out);
    if (next)
        put_raw(out, "next",
                "{\"type\":[\"string\",\"null\"],\"description\":\"Give it as after for the next "
                "page; null at the end\"}");
    weft_json_end_object(out);
    weft_json_end_object(out);
}

static void put_body(struct weft_json_writer *out, const struct weft_route *route)
{
    if (!route->takes && !route->body)
        return;
    weft_json_key(out, "requestBody");
    weft_json_begin_object(out);
    begin_content(out, "application/json");
    if (route->body) {
        weft_json_put_raw(out, route->body, strlen(route->body));
    } else if (route->bulk) {
        begin_items(out);
        put_ref(out, "schemas", weft_wire_name(route->takes));
        end_items(out, false);
    } else {
        put_ref(out, "schemas", weft_wire_name(route->takes));
    }
    end_content(out);
    weft_json_end_object(out);
}

/* An item of a bulk answer: its id, with what was asked for or with an error. */
static void put_bulk_item(struct weft_json_writer *out, const struct weft_route *route)
{
    weft_json_begin_object(out);
    weft_json_key(out, "oneOf");
    weft_json_begin_array(out);
    weft_json_begin_object(out);
    weft_json_key(out, "allOf");
    weft_json_begin_array(out);
    put_ref(out, "schemas", "ItemId");
    put_ref(out, "schemas", weft_wire_name(route->gives));
    weft_json_end_array(out);
    weft_json_end_object(out);
    put_ref(out, "schemas", "ItemError");
    weft_json_end_array(out);
    weft_json_end_object(out);
}

static void put_answer(struct weft_json_writer *out, const struct weft_route *route)
{
    switch (route->shape) {
    case WEFT_SHAPE_ONE:
        begin_content(out, "application/json");
        put_ref(out, "schemas", weft_wire_name(route->gives));
        break;
    case WEFT_SHAPE_ITEMS:
    case WEFT_SHAPE_PAGE:
        begin_content(out, "application/json");
        begin_items(out);
        put_ref(out, "schemas", weft_wire_name(route->gives));
        end_items(out, route->shape == WEFT_SHAPE_PAGE);
        break;
    case WEFT_SHAPE_BULK:
        begin_content(out, "application/json");
        begin_items(out);
        put_bulk_item(out, route);
        end_items(out, false);
        break;
    case WEFT_SHAPE_BYTES:
        begin_content(out, "*/*");
        weft_json_begin_object(out);
        weft_json_end_object(out);
        break;
    case WEFT_SHAPE_TEXT:
        begin_content(out, "text/plain");
        weft_json_put_raw(out, "{\"type\":\"string\"}", 17);
        break;
    case WEFT_SHAPE_OTHER:
        begin_content(out, "application/json");
        weft_json_put_raw(out, route->answer, strlen(route->answer));
        break;
    }
    weft_json_end_object(out);
    if (route->lines)
        put_raw(out, "application/x-ndjson",
                "{\"schema\":{\"type\":\"string\",\"description\":\"All items, one a line\"}}");
    weft_json_end_object(out);
}

static void put_response(struct weft_json_writer *out, const char *status, const char *about,
                         const struct weft_route *route)
{
    weft_json_key(out, status);
    weft_json_begin_object(out);
    put_pair(out, "description", about);
    put_answer(out, route);
    weft_json_end_object(out);
}

static void put_responses(struct weft_json_writer *out, const struct weft_route *route)
{
    weft_json_key(out, "responses");
    weft_json_begin_object(out);
    put_response(out, "200", "Done", route);
    if (route->creates)
        put_response(out, "201", "Made", route);
    if (route->accepts)
        put_response(out, "202", "Begun; it goes on", route);
    weft_json_key(out, "default");
    put_ref(out, "responses", "Error");
    weft_json_end_object(out);
}

/* ---- Routes ---------------------------------------------------------------------------------- */

static const char *scope_word(enum weft_scope scope)
{
    switch (scope) {
    case WEFT_SCOPE_NONE:
        break;
    case WEFT_SCOPE_READ:
        return "read";
    case WEFT_SCOPE_SUBMIT:
        return "submit";
    case WEFT_SCOPE_WORK:
        return "work";
    case WEFT_SCOPE_ADMIN:
        return "admin";
    }
    return NULL;
}

/* The word behind /v1/, or what all others belong to. */
static void put_tags(struct weft_json_writer *out, const char *path)
{
    char tag[32] = "server";
    if (strncmp(path, "/v1/", 4) == 0) {
        size_t size = strcspn(path + 4, "/");
        assert(size < sizeof(tag));
        memcpy(tag, path + 4, size);
        tag[size] = '\0';
    }
    weft_json_key(out, "tags");
    weft_json_begin_array(out);
    weft_json_put_text(out, tag);
    weft_json_end_array(out);
}

static void put_operation(struct weft_json_writer *out, const struct weft_route *route)
{
    char method[8] = "";
    for (size_t i = 0; i < sizeof(method) - 1 && route->method[i]; i++)
        method[i] = (char)(route->method[i] | 0x20); /* lower case */
    weft_json_key(out, method);
    weft_json_begin_object(out);
    put_pair(out, "operationId", route->name);
    put_pair(out, "summary", route->summary);
    put_tags(out, route->path);
    /* Tokens are off where only this machine can connect, so they are always optional here. */
    put_raw(out, "security", route->scope ? "[{},{\"bearer\":[]}]" : "[]");
    if (route->scope)
        put_pair(out, "x-weft-scope", scope_word(route->scope));
    put_parameters(out, route);
    put_body(out, route);
    put_responses(out, route);
    weft_json_end_object(out);
}

static bool is_first_of_path(const struct weft_route_table *routes, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(routes->route[k].path, routes->route[i].path) == 0)
            return false;
    return true;
}

static void put_paths(struct weft_json_writer *out, const struct weft_route_table *routes)
{
    weft_json_key(out, "paths");
    weft_json_begin_object(out);
    for (size_t i = 0; i < routes->count; i++) {
        if (!is_first_of_path(routes, i))
            continue;
        weft_json_key(out, routes->route[i].path);
        weft_json_begin_object(out);
        for (size_t k = i; k < routes->count; k++)
            if (strcmp(routes->route[k].path, routes->route[i].path) == 0)
                put_operation(out, &routes->route[k]);
        weft_json_end_object(out);
    }
    weft_json_end_object(out);
}

/* ---- Components ------------------------------------------------------------------------------ */

static void put_error_schemas(struct weft_json_writer *out)
{
    weft_json_key(out, "Error");
    weft_json_begin_object(out);
    put_pair(out, "type", "object");
    put_raw(out, "required", "[\"code\",\"message\"]");
    weft_json_key(out, "properties");
    weft_json_begin_object(out);
    weft_json_key(out, "code");
    weft_json_begin_object(out);
    put_pair(out, "type", "string");
    weft_json_key(out, "enum");
    weft_json_begin_array(out);
    for (int rc = WEFT_OK + 1; rc < WEFT_RC_COUNT; rc++)
        weft_json_put_text(out, weft_rc_wire((enum weft_rc)rc));
    weft_json_end_array(out);
    weft_json_end_object(out);
    put_raw(out, "message", "{\"type\":\"string\"}");
    put_raw(out, "hint", "{\"type\":[\"string\",\"null\"],\"description\":\"What to do\"}");
    put_raw(out, "field", "{\"type\":[\"string\",\"null\"],\"description\":\"What is to blame\"}");
    weft_json_key(out, "reason");
    weft_json_begin_object(out);
    put_pair(out, "type", "string");
    put_pair(out, "description", "Why the lease is gone, when the code is fenced");
    weft_json_key(out, "enum");
    weft_json_begin_array(out);
    for (int fence = WEFT_FENCE_NONE + 1; fence <= WEFT_FENCE_UNKNOWN; fence++)
        weft_json_put_text(out, weft_fence_name((enum weft_fence)fence));
    weft_json_end_array(out);
    weft_json_end_object(out);
    weft_json_end_object(out);
    weft_json_end_object(out);
    put_raw(out, "ErrorAnswer",
            "{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{\"error\":{\"$ref\":"
            "\"#/components/schemas/Error\"}}}");
    put_raw(out, "ItemId",
            "{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{\"id\":{\"type\":"
            "\"string\",\"format\":\"uuid\"}}}");
    put_raw(out, "ItemError",
            "{\"type\":\"object\",\"required\":[\"id\",\"error\"],\"properties\":{\"id\":{"
            "\"type\":[\"string\",\"null\"]},\"error\":{\"$ref\":"
            "\"#/components/schemas/Error\"}}}");
}

/* The status of each code, for people: it is the same wherever the code comes up. */
static void put_error_response(struct weft_json_writer *out)
{
    static const char about[] =
        "An error. The code decides about the status:"
#define X(name, number, wire, http, retry, text) " " wire " " #http ","
#include "weft/errors.def"
#undef X
        " and 405 for a method the path does not have.";
    weft_json_key(out, "responses");
    weft_json_begin_object(out);
    weft_json_key(out, "Error");
    weft_json_begin_object(out);
    put_pair(out, "description", about);
    put_raw(out, "headers",
            "{\"Retry-After\":{\"description\":\"Seconds after which to try again, with 429 and "
            "503\",\"schema\":{\"type\":\"integer\"}}}");
    begin_content(out, "application/json");
    put_ref(out, "schemas", "ErrorAnswer");
    end_content(out);
    weft_json_end_object(out);
    weft_json_end_object(out);
}

static void put_components(struct weft_json_writer *out)
{
    weft_json_key(out, "components");
    weft_json_begin_object(out);
    weft_json_key(out, "schemas");
    weft_json_begin_object(out);
    for (size_t i = 0; i < WEFT_LEN(MESSAGES); i++) {
        weft_json_key(out, weft_wire_name(MESSAGES[i]));
        weft_wire_schema(MESSAGES[i], out);
    }
    put_error_schemas(out);
    weft_json_end_object(out);
    put_error_response(out);
    put_raw(out, "parameters",
            "{\"Namespace\":{\"name\":\"X-Weft-Namespace\",\"in\":\"header\",\"required\":false,"
            "\"description\":\"The namespace, unless the token fixes it\",\"schema\":{\"type\":"
            "\"string\",\"default\":\"default\"}},\"RequestId\":{\"name\":\"X-Request-Id\","
            "\"in\":\"header\",\"required\":false,\"description\":\"Comes back in the answer and "
            "stands in the log; made up when absent\",\"schema\":{\"type\":\"string\"}}}");
    put_raw(out, "securitySchemes", "{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"}}");
    weft_json_end_object(out);
}

void weft_openapi_write(const struct weft_route_table *routes, struct weft_buf *out)
{
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out);
    weft_json_begin_object(&writer);
    put_pair(&writer, "openapi", "3.1.0");
    weft_json_key(&writer, "info");
    weft_json_begin_object(&writer);
    put_pair(&writer, "title", "weft");
    put_pair(&writer, "version", WEFT_VERSION);
    put_pair(&writer, "summary", "A durable execution engine");
    put_raw(&writer, "license", "{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}");
    weft_json_end_object(&writer);
    put_raw(&writer, "servers", "[{\"url\":\"/\"}]");
    put_paths(&writer, routes);
    put_components(&writer);
    weft_json_end_object(&writer);
}
