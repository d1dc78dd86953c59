/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_OUTPUT_H
#define WEFT_CMD_CLI_OUTPUT_H

/* What a command prints: tables that fit the terminal, JSON on stdout (one text per line, written
 * when it is whole), progress on stderr. */

#include "base/buf.h"
#include "base/json.h"
#include "cmd/cli/cli.h"
#include "wire/wire.h"

/* ---- Tables ---------------------------------------------------------------------------------- */

enum weft_align { WEFT_LEFT, WEFT_RIGHT };
struct weft_column {
    const char *title;
    enum weft_align align;
    uint32_t give; /* when the terminal is narrow: 1 shrinks or goes first, then 2, ...; 0: never */
};
/* A table that fits the terminal; cells are copied. */
struct weft_table;
struct weft_table *weft_table_new(const struct weft_cli *cli, const struct weft_column *column,
                                  size_t columns);
void weft_table_cell(struct weft_table *table, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* In a colour, an SGR number; NULL: none. */
void weft_table_paint(struct weft_table *table, const char *color, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void weft_table_state(struct weft_table *table, enum weft_state state); /* coloured */
void weft_table_ago(struct weft_table *table, weft_usec moment_us);     /* "3 s ago", "in 5 m" */
/* Prints the rows so far and forgets them; titles are printed once, widths can only grow. */
void weft_table_flush(struct weft_table *table);
void weft_table_print(struct weft_table *table); /* what is left, and frees it */
/* The age of counts, on a line below their table. */
void weft_cli_put_age(const struct weft_counts *counts);
void weft_table_free(struct weft_table *table); /* without printing */

/* ---- JSON ------------------------------------------------------------------------------------ */

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

/* ---- Progress -------------------------------------------------------------------------------- */

/* A bar on stderr, only when that is a terminal; total 0: unknown, counts only. */
struct weft_bar;
struct weft_bar *weft_bar_new(const char *what, uint64_t total);
void weft_bar_set(struct weft_bar *bar, uint64_t done);
void weft_bar_free(struct weft_bar *bar); /* wipes the line */

#endif
