/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_LINES_H
#define WEFT_NET_LINES_H

/* JSON objects as lines (NDJSON), in requests and answers. */

#include "net/request.h"

#define WEFT_LINES_TYPE "application/x-ndjson"
extern const char *const weft_lines_types[]; /* WEFT_LINES_TYPE and its other names; ends in NULL */
/* True for a content type of JSON objects as lines; NULL is none. */
bool weft_lines_type(const char *type);
/* True when the client accepts lines; a type among others in the header counts. */
bool weft_request_wants_lines(const struct weft_request *request);
/* Reads a body of lines, each an item of `type` (at most WEFT_BATCH_MAX), into request->items. */
WEFT_MUST_CHECK enum weft_rc weft_request_lines(struct weft_request *request,
                                                const struct weft_wire_type *type, size_t item_size,
                                                struct weft_err *err);

#endif
