/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_OPENAPI_PARTS_H
#define WEFT_NET_API_OPENAPI_PARTS_H

/* The parts of the OpenAPI document that operations refer to: tags, messages, errors. */

#include "base/json.h"
#include "net/route.h"

struct weft_openapi_tag {
    const char *name;
    const char *about;
};
/* The tag of a route: the word behind /v1/, "server" elsewhere. NULL: no row of the table. */
const struct weft_openapi_tag *weft_openapi_tag_of(const struct weft_route *route);
/* "tags": those that the routes use. */
void weft_openapi_tags(const struct weft_route_table *routes, struct weft_json_writer *out);

/* The errors that a route can answer with, as bits of enum weft_rc. */
uint32_t weft_openapi_fails(const struct weft_route *route);
/* A response for each status of these errors: "404":{"$ref":...}. */
void weft_openapi_errors(uint32_t fails, struct weft_json_writer *out);

/* "components" */
void weft_openapi_components(const struct weft_route_table *routes, struct weft_json_writer *out);

#endif
