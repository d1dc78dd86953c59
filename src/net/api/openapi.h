/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_OPENAPI_H
#define WEFT_NET_API_OPENAPI_H

/* The OpenAPI document, written from a route table. */

#include "base/buf.h"
#include "net/route.h"

void weft_openapi_write(const struct weft_route_table *routes, struct weft_buf *out);

#endif
