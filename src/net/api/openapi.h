/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_OPENAPI_H
#define WEFT_NET_API_OPENAPI_H

/* The OpenAPI document, written from a route table. */

#include "base/buf.h"
#include "base/json.h"
#include "net/route.h"

void weft_openapi_write(const struct weft_route_table *routes, struct weft_buf *out);

/* ---- For openapi_parts.c --------------------------------------------------------------------- */

/* {"$ref":"#/components/FOLDER/NAME"} as the next value. */
void weft_openapi_ref(struct weft_json_writer *out, const char *folder, const char *name);

#endif
