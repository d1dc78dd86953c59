/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a command prints: tables, JSON lines, progress bars.
 *
 * A table is kept until it is printed, because its columns are as wide as their widest cell. When
 * that is wider than the terminal, the columns that may give get narrower, in their order, then
 * they are left out, in their order; what is cut ends with an ellipsis. A bar is drawn on stderr,
 * at most ten times a second, and only where a person looks at it.
 */

#include "cmd/cli/output.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { GAP = 2, NARROWEST = 8, CELL_MAX = 4096 };

struct cell {
    const char *text; /* clean: printable UTF-8 */
    size_t width;     /* in cells of the terminal */
    const char *color;
};

struct weft_table {
    const struct weft_cli *cli;
    struct weft_arena *arena; /* of the table itself */
    struct weft_arena *cells; /* of the rows that were not printed yet */
    struct cell *cell;        /* row by row */
    size_t count, room;
    const struct weft_column *column;
    size_t columns;
    size_t *width; /* 0: the column is left out */
    weft_usec now_us;
    bool color;
    bool titled; /* the titles were printed */
};

/* ---- Cells ----------------------------------------------------------------------------------- */

/* How many cells of the terminal the first character takes; *ret_size is its bytes. */
static size_t char_width(const char *text, size_t size, size_t *ret_size)
{
    static const unsigned char lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t step = weft_utf8_size(text, size);
    *ret_size = step > 0 ? step : 1;
    if (step == 0)
        return 1;
    wchar_t character = (wchar_t)((unsigned char)text[0] & lead_bits[step]);
    for (size_t i = 1; i < step; i++)
        character = (wchar_t)(character << 6 | ((unsigned char)text[i] & 0x3f));
    int width = wcwidth(character);
    return width < 0 ? 1 : (size_t)width;
}

/* The bytes that fit into `width` cells. */
static size_t prefix(const char *text, size_t width)
{
    size_t at = 0, size = strlen(text), step;
    while (at < size) {
        size_t cells = char_width(text + at, size - at, &step);
        if (cells > width)
            break;
        width -= cells;
        at += step;
    }
    return at;
}

/* Replaces control characters, and bytes that are no text. */
static const char *clean(struct weft_arena *arena, const char *text, size_t *ret_width)
{
    size_t size = strlen(text), at = 0, step;
    char *copy = weft_arena_dup(arena, text, size + 1);
    *ret_width = 0;
    while (at < size) {
        size_t known = weft_utf8_size(copy + at, size - at);
        step = known > 0 ? known : 1;
        if (!weft_text_printable(copy + at, step))
            memset(copy + at, (unsigned char)copy[at] < 0x80 ? ' ' : '?', step);
        at += step;
    }
    for (at = 0; at < size; at += step)
        *ret_width += char_width(copy + at, size - at, &step);
    return copy;
}

struct weft_table *weft_table_new(const struct weft_cli *cli, const struct weft_column *column,
                                  size_t columns)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_table *table = weft_new(arena, struct weft_table);
    table->cli = cli;
    table->arena = arena;
    table->cells = weft_arena_new();
    table->column = column;
    table->columns = columns;
    table->width = weft_new_array(arena, size_t, columns);
    table->now_us = weft_wall_us();
    table->color = weft_cli_color(cli);
    return table;
}

static void add_cell(struct weft_table *table, const char *text, const char *color)
{
    if (table->count == table->room) {
        size_t room = table->room ? table->room * 2 : 64 * table->columns;
        struct cell *cell = weft_new_array(table->cells, struct cell, room);
        if (table->count > 0)
            memcpy(cell, table->cell, table->count * sizeof(*cell));
        table->cell = cell;
        table->room = room;
    }
    struct cell *cell = &table->cell[table->count++];
    cell->text = clean(table->cells, text, &cell->width);
    cell->color = color;
}

void weft_table_paint(struct weft_table *table, const char *color, const char *fmt, ...)
{
    char text[CELL_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    add_cell(table, text, color);
}

void weft_table_span(struct weft_table *table, weft_usec span_us, const char *color)
{
    char text[WEFT_AGO_TEXT];
    weft_span(span_us, text);
    add_cell(table, text, color);
}

struct weft_arena *weft_table_arena(struct weft_table *table)
{
    return table->cells;
}

void weft_table_row(struct weft_table *table, const void *item)
{
    for (size_t i = 0; i < table->columns; i++)
        if (table->column[i].put)
            table->column[i].put(table, (const char *)item + table->column[i].at);
}

void weft_cell_text(struct weft_table *table, const void *field)
{
    const char *text = *(const char *const *)field;
    add_cell(table, text ? text : "", NULL);
}

void weft_cell_i32(struct weft_table *table, const void *field)
{
    weft_table_cell(table, "%" PRId32, *(const int32_t *)field);
}

void weft_cell_u64(struct weft_table *table, const void *field)
{
    weft_table_cell(table, "%" PRIu64, *(const uint64_t *)field);
}

void weft_cell_id(struct weft_table *table, const void *field)
{
    char text[WEFT_ID_TEXT];
    if (isatty(STDOUT_FILENO) && !weft_cli_has(table->cli, "long"))
        weft_id_short_print(field, text);
    else
        weft_id_print(field, text);
    add_cell(table, text, NULL);
}

void weft_cell_state(struct weft_table *table, const void *field)
{
    enum weft_state state = *(const enum weft_state *)field;
    add_cell(table, weft_state_name(state), weft_state_color(state));
}

void weft_cell_ago(struct weft_table *table, const void *field)
{
    char text[WEFT_AGO_TEXT];
    weft_ago(*(const weft_usec *)field, table->now_us, text);
    add_cell(table, text, NULL);
}

void weft_cell_ever(struct weft_table *table, const void *field)
{
    if (*(const weft_usec *)field)
        weft_cell_ago(table, field);
    else
        add_cell(table, "never", NULL);
}

/* ---- Fitting --------------------------------------------------------------------------------- */

static size_t total_width(const struct weft_table *table)
{
    size_t total = 0;
    for (size_t i = 0; i < table->columns; i++)
        if (table->width[i] > 0)
            total += table->width[i] + GAP;
    return total > 0 ? total - GAP : 0;
}

static void measure(struct weft_table *table)
{
    for (size_t i = 0; i < table->columns && !table->titled; i++)
        table->width[i] = strlen(table->column[i].title);
    for (size_t i = 0; i < table->count; i++) {
        size_t *width = &table->width[i % table->columns];
        bool left_out = table->titled && *width == 0; /* and stays so */
        if (table->cell[i].width > *width && !left_out)
            *width = table->cell[i].width;
    }
}

static uint32_t most_given(const struct weft_table *table)
{
    uint32_t most = 0;
    for (size_t i = 0; i < table->columns; i++)
        if (table->column[i].give > most)
            most = table->column[i].give;
    return most;
}

/* Narrows the columns that may give, in their order, until the table fits. Numbers are never cut.
 */
static void shrink(struct weft_table *table, size_t room, uint32_t most)
{
    for (uint32_t give = 1; give <= most; give++) {
        for (size_t i = 0; i < table->columns; i++) {
            size_t total = total_width(table), *width = &table->width[i];
            if (table->column[i].give != give || table->column[i].align == WEFT_RIGHT ||
                total <= room || *width <= NARROWEST)
                continue;
            size_t over = total - room, spare = *width - NARROWEST;
            *width -= over < spare ? over : spare;
        }
    }
}

/* Leaves out as few columns as it can; the others get the room that this frees. */
static void fit(struct weft_table *table, size_t room)
{
    uint32_t most = most_given(table);
    size_t *wanted =
        weft_arena_dup(table->arena, table->width, table->columns * sizeof(*table->width));
    shrink(table, room, most);
    for (uint32_t left_out = 1; left_out <= most && total_width(table) > room; left_out++) {
        for (size_t i = 0; i < table->columns; i++) {
            uint32_t give = table->column[i].give;
            table->width[i] = give > 0 && give <= left_out ? 0 : wanted[i];
        }
        shrink(table, room, most);
    }
}

/* Spaces are printed before the next cell, so that no line ends with spaces. */
static void print_cell(const struct weft_table *table, size_t i, const struct cell *cell,
                       int *spaces)
{
    size_t width = table->width[i];
    bool cut = cell->width > width;
    size_t size = cut ? prefix(cell->text, width - 1) : strlen(cell->text);
    int pad = cut ? 0 : (int)(width - cell->width);
    bool right = table->column[i].align == WEFT_RIGHT;
    const char *color = table->color && size > 0 ? cell->color : NULL;
    if (right)
        *spaces += pad;
    if (size > 0) {
        printf("%*s%s%s%s", *spaces, "", color ? "\033[" : "", color ? color : "",
               color ? "m" : "");
        printf("%.*s%s%s", (int)size, cell->text, cut ? "…" : "", color ? "\033[0m" : "");
        *spaces = 0;
    }
    if (!right)
        *spaces += pad;
    *spaces += GAP;
}

static void print_row(const struct weft_table *table, const struct cell *cell)
{
    int spaces = 0;
    for (size_t i = 0; i < table->columns; i++)
        if (table->width[i] > 0)
            print_cell(table, i, &cell[i], &spaces);
    putchar('\n');
}

static void print_titles(const struct weft_table *table)
{
    struct cell *title = weft_new_array(table->arena, struct cell, table->columns);
    for (size_t i = 0; i < table->columns; i++)
        title[i] = (struct cell){
            .text = table->column[i].title, .width = strlen(table->column[i].title), .color = "1"};
    print_row(table, title);
}

static void print_rows(struct weft_table *table)
{
    assert(table->count % table->columns == 0); /* every row is whole */
    size_t room = weft_width();
    measure(table);
    if (room > 0)
        fit(table, room);
    if (!table->titled)
        print_titles(table);
    for (size_t i = 0; i < table->count; i += table->columns)
        print_row(table, &table->cell[i]);
    weft_arena_reset(table->cells);
    table->cell = NULL;
    table->count = table->room = 0;
    table->titled = true;
}

void weft_table_flush(struct weft_table *table)
{
    if (table->count > 0)
        print_rows(table);
}

void weft_table_print(struct weft_table *table)
{
    if (table->count > 0 || !table->titled)
        print_rows(table);
    weft_table_free(table);
}

void weft_table_free(struct weft_table *table)
{
    struct weft_arena *arena = table->arena; /* the table itself lies in it */
    weft_arena_free(table->cells);
    weft_arena_free(arena);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* More than any answer: lists are printed page by page. */
static const size_t out_max = (size_t)1 << 30;

void weft_json_out_begin_object(struct weft_json_out *out)
{
    weft_buf_init(&out->buf, out_max);
    weft_json_writer_init(&out->json, &out->buf);
    weft_json_begin_object(&out->json);
}

/* Ends the line, prints it and frees the buffer. */
static void end_line(struct weft_json_out *out)
{
    weft_buf_add_char(&out->buf, '\n');
    (void)fwrite(out->buf.data, 1, out->buf.size, stdout);
    weft_buf_done(&out->buf);
}

void weft_json_out_end_object(struct weft_json_out *out)
{
    weft_json_end_object(&out->json);
    end_line(out);
}

void weft_json_out_drop(struct weft_json_out *out)
{
    weft_buf_done(&out->buf);
}

void weft_json_out_begin_items(struct weft_json_out *out)
{
    weft_json_out_begin_object(out);
    weft_json_add_array(&out->json, "items");
}

void weft_json_out_end_items(struct weft_json_out *out)
{
    weft_json_end_array(&out->json);
    weft_json_out_end_object(out);
}

void weft_json_add_fixed(struct weft_json_writer *json, const char *key, double number, int digits)
{
    char text[352]; /* the largest double has 309 digits */
    int size = snprintf(text, sizeof(text), "%.*f", digits, number);
    weft_json_key(json, key);
    if (isnan(number))
        weft_json_put_null(json);
    else
        weft_json_put_raw(json, text, (size_t)size);
}

void weft_json_out_item(const struct weft_wire_type *type, const void *item)
{
    struct weft_json_out out;
    weft_buf_init(&out.buf, out_max);
    weft_json_writer_init(&out.json, &out.buf);
    weft_wire_write(type, item, &out.json);
    end_line(&out);
}

void weft_cli_put_list(const struct weft_cli *cli, const struct weft_list *list)
{
    bool json = weft_cli_json(cli);
    struct weft_json_out out;
    struct weft_table *table = json ? NULL : weft_table_new(cli, list->column, list->columns);
    if (json)
        weft_json_out_begin_items(&out);
    for (size_t i = 0; i < list->count; i++) {
        const void *item = (const char *)list->item + i * list->size;
        if (json)
            weft_wire_write(list->type, item, &out.json);
        else
            weft_table_row(table, item);
    }
    if (json)
        weft_json_out_end_items(&out);
    else
        weft_table_print(table);
}

void weft_json_out_bytes(struct weft_json_out *out, const char *name,
                         const struct weft_bytes *bytes)
{
    struct weft_json value;
    if (!bytes->arena)
        return;
    bool json = !bytes->content_type || strcmp(bytes->content_type, "application/json") == 0;
    if (json && weft_json_check(bytes->data, bytes->size, &value, NULL) == WEFT_OK) {
        weft_json_key(&out->json, name);
        weft_json_put_raw(&out->json, value.text, value.size);
        return;
    }
    struct weft_arena *arena = weft_arena_new();
    char *text = weft_arena_alloc(arena, WEFT_BASE64_SIZE(bytes->size) + 1, 1);
    weft_base64_encode(bytes->data, bytes->size, text);
    weft_json_add_text(&out->json, weft_arena_printf(arena, "%s_base64", name), text);
    weft_arena_free(arena);
}
