/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_JSON_FILL_H
#define WEFT_CORE_JSON_FILL_H

/*
 * JSON pointers (RFC 6901), and bodies that take parts of other documents: the `from` of a call in
 * a flow. Pure.
 *
 * A part is copied byte for byte, so numbers keep all their digits. A pointer leads to exactly one
 * value that exists: "-" (the end of an array) does not, and neither does a key that an object has
 * twice. So a typing error is an error and never a body that lacks something. All errors have the
 * field `from`.
 */

#include "base/json.h"

/*
 * Whether a text is a pointer at all: empty (the whole document), or "/" and a token, and so on, at
 * most WEFT_JSON_POINTER_MAX bytes. WEFT_INVALID_VALUE, WEFT_TOO_LARGE.
 */
WEFT_MUST_CHECK enum weft_rc weft_json_pointer_check(const char *pointer, struct weft_err *err);

/*
 * The value that a checked pointer leads to. WEFT_INVALID_VALUE says where it ends; `name` is what
 * the document is called there.
 */
WEFT_MUST_CHECK enum weft_rc weft_json_pointer_find(const struct weft_json *document,
                                                    const char *pointer, const char *name,
                                                    struct weft_json *ret_value,
                                                    struct weft_err *err);

/* One part: what `pointer` leads to in `document` takes the place of `target` in the body. */
struct weft_json_fill {
    const char *target, *pointer; /* checked pointers */
    struct weft_json document;
    const char *name; /* of the document, for errors: "the result of draft" */
};

/*
 * Writes the body with all parts in their places to buf, which must be empty. WEFT_INVALID_VALUE: a
 * pointer leads nowhere, a target is named twice or lies within another one, or the outcome is
 * nested too deeply. WEFT_TOO_LARGE: buf is full, or there are more parts than
 * WEFT_HTTP_FILLS_MAX.
 */
WEFT_MUST_CHECK enum weft_rc weft_json_fill(const struct weft_json *body,
                                            const struct weft_json_fill *fill, size_t count,
                                            struct weft_buf *buf, struct weft_err *err);

#endif
