/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_CLI_JSON_H
#define WEFT_CMD_CLI_CLI_JSON_H

/* JSON on stdout: one text per line, written when it is whole. */

#include "base/buf.h"
#include "base/json.h"
#include "cmd/cli/cli.h"
#include "wire/wire.h"

struct weft_json_out {
    struct weft_buf buf;
    struct weft_json_writer json;
};

void weft_json_out_begin(struct weft_json_out *out);
void weft_json_out_end(struct weft_json_out *out); /* prints the line and frees the buffer */

/* One object on a line: between these two come its members. */
void weft_json_out_begin_object(struct weft_json_out *out);
void weft_json_out_end_object(struct weft_json_out *out);

/* {"items":[ ... ]}: between these two, each item is a value. */
void weft_json_out_begin_items(struct weft_json_out *out);
void weft_json_out_end_items(struct weft_json_out *out);

/*
 * Bytes as the API shows them: NAME for JSON, NAME_base64 for anything else, nothing when there are
 * none (no arena).
 */
void weft_json_out_bytes(struct weft_json_out *out, const char *name,
                         const struct weft_bytes *bytes);

/* Members of an object. A number has this many digits after the point; null for NAN. */
void weft_json_add_fixed(struct weft_json_writer *json, const char *key, double number, int digits);

/* A whole line: one message, or {"items":[...]} of an array of messages, `size` bytes each. */
void weft_json_out_item(const struct weft_wire_type *type, const void *item);
void weft_json_out_items(const struct weft_wire_type *type, const void *item, size_t size,
                         size_t count);

#endif
