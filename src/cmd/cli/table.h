/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_TABLE_H
#define WEFT_CMD_CLI_TABLE_H

/* Tables that fit the terminal. */

#include "cmd/cli/cli.h"

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

#endif
