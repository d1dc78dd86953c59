/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_OPENAPI_H
#define WEFT_NET_API_OPENAPI_H

/*
 * The two halves of the OpenAPI document: openapi.c writes the operations from the route table,
 * openapi_parts.c what they refer to (tags, messages, errors).
 */

#include "net/net.h"

struct weft_route_table;

/* ---- Writing --------------------------------------------------------------------------------- */

void weft_openapi_pair(struct weft_json_writer *out, const char *key, const char *text);
/* The value is JSON text as it is. */
void weft_openapi_raw(struct weft_json_writer *out, const char *key, const char *json);
/* {"$ref":"#/components/FOLDER/NAME"} as the next value. */
void weft_openapi_ref(struct weft_json_writer *out, const char *folder, const char *name);

/* ---- Tags ------------------------------------------------------------------------------------ */

struct weft_openapi_tag {
    const char *name;
    const char *about;
};
/* The tag of a route: the word behind /v1/, "server" elsewhere. NULL: no row of the table. */
const struct weft_openapi_tag *weft_openapi_tag_of(const struct weft_route *route);
/* "tags": those that the routes use. */
void weft_openapi_tags(const struct weft_route_table *routes, struct weft_json_writer *out);

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The errors that a route can answer with, as bits of enum weft_rc. */
uint32_t weft_openapi_fails(const struct weft_route *route);
/* A response for each status of these errors: "404":{"$ref":...}. */
void weft_openapi_errors(uint32_t fails, struct weft_json_writer *out);

/* "components" */
void weft_openapi_components(const struct weft_route_table *routes, struct weft_json_writer *out);

#endif
