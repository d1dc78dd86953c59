/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_OUTPUT_H
#define WEFT_CMD_CLI_OUTPUT_H

/* What a command prints: tables that fit the terminal, JSON on stdout (one text per line, written
 * when it is whole), progress on stderr. */

#include "base/buf.h"
#include "base/json.h"
#include "cmd/cli/text.h"
#include "wire/wire.h"

/* ---- Tables ---------------------------------------------------------------------------------- */

enum weft_align { WEFT_LEFT, WEFT_RIGHT };
struct weft_table;
struct weft_column {
    const char *title;
    enum weft_align align;
    uint32_t give; /* when the terminal is narrow: 1 shrinks or goes first, then 2, ...; 0: never */
    void (*put)(struct weft_table *table, const void *field); /* NULL: the column before does it */
    size_t at;                                                /* offset of the field in an item */
};
/* Fields: const char * (NULL is empty), int32_t, uint64_t, weft_id (in short form on a terminal,
 * whole in a pipe or with --long), state, and a moment: "3 s ago", "in 5 m", "-"; or "never". */
void weft_cell_text(struct weft_table *table, const void *field);
void weft_cell_i32(struct weft_table *table, const void *field);
void weft_cell_u64(struct weft_table *table, const void *field);
void weft_cell_id(struct weft_table *table, const void *field);
void weft_cell_state(struct weft_table *table, const void *field); /* coloured */
void weft_cell_ago(struct weft_table *table, const void *field);
void weft_cell_ever(struct weft_table *table, const void *field);

/* Cells are copied. */
struct weft_table *weft_table_new(const struct weft_cli *cli, const struct weft_column *column,
                                  size_t columns);
void weft_table_row(struct weft_table *table, const void *item); /* a cell for each column */
/* In a colour, an SGR number; NULL: none. */
void weft_table_paint(struct weft_table *table, const char *color, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define weft_table_cell(table, ...) weft_table_paint(table, NULL, __VA_ARGS__)
void weft_table_span(struct weft_table *table, weft_usec span_us, const char *color); /* "5 ms" */
struct weft_arena *weft_table_arena(struct weft_table *table); /* for the text of a cell */
/* Prints the rows so far and forgets them; titles are printed once, widths can only grow. */
void weft_table_flush(struct weft_table *table);
void weft_table_print(struct weft_table *table); /* what is left, and frees it */
void weft_table_free(struct weft_table *table);  /* without printing */

/* Items of one kind: a table for people, {"items":[...]} for programs. */
struct weft_list {
    const struct weft_column *column;
    size_t columns;
    const struct weft_wire_type *type;
    const void *item; /* an array of `count`, `size` bytes each */
    size_t size, count;
};
#define WEFT_LIST(columns, type, list)                                                             \
    &(const struct weft_list)                                                                      \
    {                                                                                              \
        columns, WEFT_LEN(columns), &(type), (list).item, sizeof(*(list).item), (list).count       \
    }
void weft_cli_put_list(const struct weft_cli *cli, const struct weft_list *list);

/* ---- JSON ------------------------------------------------------------------------------------ */

struct weft_json_out {
    struct weft_buf buf;
    struct weft_json_writer json;
};

/* One object on a line: between these two come its members. */
void weft_json_out_begin_object(struct weft_json_out *out);
void weft_json_out_end_object(struct weft_json_out *out); /* prints the line, frees the buffer */
void weft_json_out_drop(struct weft_json_out *out);       /* frees it without printing */

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

/* A whole line of one message. */
void weft_json_out_item(const struct weft_wire_type *type, const void *item);

/* ---- Progress -------------------------------------------------------------------------------- */

/* A bar on stderr with the rate and the time that is left, only when that is a terminal; total 0:
 * unknown, counts only. */
struct weft_bar;
struct weft_bar *weft_bar_new(const char *what, uint64_t total);
void weft_bar_bytes(struct weft_bar *bar); /* what is counted are bytes */
/* So much was done before the bar began: it does not count for the rate. */
void weft_bar_begin_at(struct weft_bar *bar, uint64_t done);
void weft_bar_set(struct weft_bar *bar, uint64_t done);
void weft_bar_free(struct weft_bar *bar); /* wipes the line */

#endif
