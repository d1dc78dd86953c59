/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The rows of a call as a table. A statement that says `FROM input i` runs once for all rows of its
 * call instead of once per row, so that SQLite begins one statement and keeps its cursors where the
 * last row left them. `i.name` is the column `name` of the call; `i.rest` is how many rows follow.
 *
 * The table has the columns of all statements, because SQLite asks for its shape only once. Each
 * statement knows which of its parameters they are. Values are borrowed from the caller.
 */

#include "store/sqlite/sqlite.h"

#include "base/arena.h"
#include "store/cell.h"

#include <stdlib.h>
#include <string.h>

struct table {
    sqlite3_vtab base;
    struct weft_lite *lite;
};

struct cursor {
    sqlite3_vtab_cursor base;
    size_t row;
};

enum { REST = 0, FIRST_COLUMN = 1, NO_PARAM = -1 };

static struct weft_lite *lite_of(const sqlite3_vtab_cursor *cursor)
{
    return ((const struct table *)cursor->pVtab)->lite;
}

/* The contract of SQLite has six parameters. NOLINTNEXTLINE(readability-function-size) */
static int connect_table(sqlite3 *db, void *arg, int argc, const char *const *argv,
                         sqlite3_vtab **ret_table, char **ret_error)
{
    struct weft_lite *lite = arg;
    (void)argc;
    (void)argv;
    (void)ret_error;
    const char *columns = "rest";
    for (size_t i = 0; i < lite->input_columns; i++)
        columns = weft_arena_printf(lite->arena, "%s, \"%s\"", columns, lite->input_column[i]);
    int code = sqlite3_declare_vtab(
        db, weft_arena_printf(lite->arena, "CREATE TABLE input (%s)", columns));
    if (code != SQLITE_OK)
        return code;
    struct table *table = weft_alloc(1, sizeof(*table));
    table->lite = lite;
    *ret_table = &table->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

/* Called for every statement that reads the table, while it is being prepared. */
static int plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    ((struct table *)table)->lite->reads_input = true;
    info->estimatedRows = 100;
    info->estimatedCost = 100;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **ret_cursor)
{
    (void)table;
    struct cursor *cursor = weft_alloc(1, sizeof(*cursor));
    *ret_cursor = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

static int go_first(sqlite3_vtab_cursor *cursor, int plan_number, const char *plan_text, int argc,
                    sqlite3_value **argv)
{
    (void)plan_number;
    (void)plan_text;
    (void)argc;
    (void)argv;
    ((struct cursor *)cursor)->row = 0;
    return SQLITE_OK;
}

static int go_next(sqlite3_vtab_cursor *cursor)
{
    ((struct cursor *)cursor)->row++;
    return SQLITE_OK;
}

static int is_past_end(sqlite3_vtab_cursor *cursor)
{
    return ((struct cursor *)cursor)->row >= lite_of(cursor)->input->rows;
}

static int get_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret_rowid)
{
    *ret_rowid = (sqlite3_int64)((struct cursor *)cursor)->row;
    return SQLITE_OK;
}

static void give_cell(sqlite3_context *to, enum weft_type type, const struct weft_cell *cell)
{
    if (cell->null)
        return; /* as it is */
    if (!weft_cell_fits(type, cell->num)) {
        sqlite3_result_error(to, "a value is out of range", -1);
        return;
    }
    switch (type) {
    case WEFT_TYPE_BOOL:
    case WEFT_TYPE_I16:
    case WEFT_TYPE_I32:
    case WEFT_TYPE_I64:
        sqlite3_result_int64(to, cell->num);
        return;
    case WEFT_TYPE_ID:
    case WEFT_TYPE_BYTES:
        sqlite3_result_blob64(to, cell->data, cell->size, SQLITE_STATIC);
        return;
    case WEFT_TYPE_TEXT:
        sqlite3_result_text64(to, cell->data, cell->size, SQLITE_STATIC, SQLITE_UTF8);
        return;
    }
}

static int get_column(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int column)
{
    const struct weft_lite *lite = lite_of(cursor);
    const struct weft_call *call = lite->input;
    size_t row = ((struct cursor *)cursor)->row;
    if (column == REST) {
        sqlite3_result_int64(to, (sqlite3_int64)(call->rows - 1 - row));
        return SQLITE_OK;
    }
    int param = lite->stmt[call->stmt].input_param[column - FIRST_COLUMN];
    if (param == NO_PARAM) {
        sqlite3_result_error(to, "the statement has no such parameter", -1);
        return SQLITE_OK;
    }
    const struct weft_stmt_field *field = &weft_stmts[call->stmt].param[param];
    struct weft_cell cell = weft_call_cell(call, field, row);
    give_cell(to, field->type, &cell);
    return SQLITE_OK;
}

static size_t find_column(const struct weft_lite *lite, const char *name)
{
    size_t at = 0;
    while (at < lite->input_columns && strcmp(lite->input_column[at], name) != 0)
        at++;
    return at;
}

int weft_lite_add_input(struct weft_lite *lite)
{
    static const sqlite3_module module = {
        .xConnect = connect_table,
        .xBestIndex = plan,
        .xDisconnect = disconnect_table,
        .xOpen = open_cursor,
        .xClose = close_cursor,
        .xFilter = go_first,
        .xNext = go_next,
        .xEof = is_past_end,
        .xColumn = get_column,
        .xRowid = get_rowid,
    };
    size_t most = 0;
    for (size_t i = 0; i < WEFT_STMT_COUNT; i++)
        most += weft_stmts[i].param_count;
    lite->input_column = weft_new_array(lite->arena, const char *, most);
    for (size_t i = 0; i < WEFT_STMT_COUNT; i++)
        for (size_t k = 0; k < weft_stmts[i].param_count; k++) {
            const struct weft_stmt_field *param = &weft_stmts[i].param[k];
            if (param->column && find_column(lite, param->name) == lite->input_columns)
                lite->input_column[lite->input_columns++] = param->name;
        }
    return sqlite3_create_module(lite->db, "input", &module, lite);
}

int16_t *weft_lite_map_input(struct weft_lite *lite, enum weft_stmt stmt)
{
    const struct weft_stmt_info *info = &weft_stmts[stmt];
    int16_t *param = weft_new_array(lite->arena, int16_t, lite->input_columns);
    for (size_t i = 0; i < lite->input_columns; i++)
        param[i] = NO_PARAM;
    for (size_t i = 0; i < info->param_count; i++)
        if (info->param[i].column)
            param[find_column(lite, info->param[i].name)] = (int16_t)i;
    return param;
}
