/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Statements: prepared once in parts, then run row by row, or once when they read all rows from the
 * table `input`.
 *
 * This is the hot path. Names are resolved when a part is prepared; per row nothing is looked up.
 * Scalars are bound once per call, because a reset keeps bindings. Bound memory is borrowed from
 * the caller and is not touched after the call. Result bytes go into chunks cut from the arena, so
 * a row costs no allocation of its own.
 */

#include "store/sqlite/sqlite.h"

#include "base/arena.h"
#include "store/cell.h"

#include <stdlib.h>
#include <string.h>

enum {
    PARTS_MAX = 20,
    FIRST_ROWS = 16,
    CHUNK_BYTES = 16384,
    WHEN_COLUMNS = 32, /* of a row that `when` can name */
};

/* ---- The table `input` ----------------------------------------------------------------------- */

/*
 * The rows of a call as a table. A statement that says `FROM input i` runs once for all rows of its
 * call instead of once per row, so that SQLite begins one statement and keeps its cursors where the
 * last row left them. `i.name` is the column `name` of the call; `i.rest` is how many rows follow.
 *
 * The table has the columns of all statements, because SQLite asks for its shape only once. Each
 * statement knows which of its parameters they are. Values are borrowed from the caller.
 */
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

static void give_cell(sqlite3_context *to, const struct weft_stmt_field *field,
                      const struct weft_cell *cell)
{
    if (cell->null)
        return; /* as it is */
    if (!weft_cell_fits(field->type, cell->num))
        sqlite3_result_error(to, "a value is out of range", -1);
    else if (weft_is_number(field))
        sqlite3_result_int64(to, cell->num);
    else if (field->type == WEFT_TYPE_TEXT)
        sqlite3_result_text64(to, cell->data, cell->size, SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_result_blob64(to, cell->data, cell->size, SQLITE_STATIC);
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
    give_cell(to, field, &cell);
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

/* Which parameter of the statement each column of `input` is; in the arena. */
static int16_t *map_input(struct weft_lite *lite, enum weft_stmt stmt)
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

/* ---- Preparing ------------------------------------------------------------------------------- */

static enum weft_rc add_bind(const struct weft_stmt_info *info, struct weft_lite_part *part,
                             int index, struct weft_err *err)
{
    const char *name = sqlite3_bind_parameter_name(part->stmt, index);
    for (size_t i = 0; name && i < info->param_count; i++) {
        if (strcmp(name + 1, info->param[i].name) == 0) {
            part->bind[part->bind_count++] =
                (struct weft_lite_bind){.param = &info->param[i], .index = index};
            return WEFT_OK;
        }
    }
    return weft_fail(err, WEFT_INTERNAL, "statement %s: unknown parameter %s", info->name,
                     name ? name : "?");
}

/* Puts the scalars in front of the columns. */
static void sort_binds(struct weft_lite_part *part)
{
    for (size_t i = 0; i < part->bind_count; i++) {
        struct weft_lite_bind bind = part->bind[i];
        if (!bind.param->column) {
            part->bind[i] = part->bind[part->scalar_count];
            part->bind[part->scalar_count++] = bind;
        }
    }
}

static enum weft_rc describe_part(struct weft_lite *lite, const struct weft_stmt_info *info,
                                  struct weft_lite_part *part, struct weft_err *err)
{
    int places = sqlite3_bind_parameter_count(part->stmt);
    part->bind = weft_new_array(lite->arena, struct weft_lite_bind, (size_t)places);
    for (int i = 1; i <= places; i++) {
        enum weft_rc rc = add_bind(info, part, i, err);
        if (rc)
            return rc;
    }
    sort_binds(part);
    part->writes = !sqlite3_stmt_readonly(part->stmt);
    part->columns = sqlite3_column_count(part->stmt);
    if (info->result_count > 0 && part->columns > 0 && (size_t)part->columns != info->result_count)
        return weft_fail(err, WEFT_INTERNAL, "statement %s has %d result columns, %zu are declared",
                         info->name, part->columns, info->result_count);
    return WEFT_OK;
}

static const char *skip_space(const char *text)
{
    return text + strspn(text, " \t\r\n;");
}

/*
 * A part that begins with the comment "when COLUMN" runs only if the parts before it returned a row
 * for these arguments with a value in that column: what few rows need costs the others nothing. -1:
 * it always runs.
 */
#define WHEN_ "/* when "

static enum weft_rc read_when(const struct weft_stmt_info *info, const char *text, int *ret_when,
                              struct weft_err *err)
{
    *ret_when = -1;
    if (strncmp(text, WHEN_, strlen(WHEN_)) != 0)
        return WEFT_OK;
    const char *name = text + strlen(WHEN_);
    size_t size = strcspn(name, " ");
    for (size_t i = 0; i < info->result_count && i < WHEN_COLUMNS; i++)
        if (strncmp(info->result[i].name, name, size) == 0 && !info->result[i].name[size])
            *ret_when = (int)i;
    return *ret_when >= 0 ? WEFT_OK
                          : weft_fail(err, WEFT_INTERNAL, "statement %s: no column %.*s to ask",
                                      info->name, (int)size, name);
}

static enum weft_rc prepare_part(struct weft_lite *lite, const struct weft_stmt_info *info,
                                 struct weft_lite_part *part, const char **text,
                                 struct weft_err *err)
{
    int code =
        sqlite3_prepare_v3(lite->db, *text, -1, SQLITE_PREPARE_PERSISTENT, &part->stmt, text);
    return code == SQLITE_OK ? describe_part(lite, info, part, err)
                             : weft_lite_fail(lite, code, err, info->name);
}

enum weft_rc weft_lite_prepare_one(struct weft_lite *lite, enum weft_stmt stmt,
                                   struct weft_err *err)
{
    const struct weft_stmt_info *info = &weft_stmts[stmt];
    struct weft_lite_part part[PARTS_MAX] = {0};
    size_t count = 0;
    enum weft_rc rc = WEFT_OK;
    if (lite->stmt[stmt].part)
        return WEFT_OK;
    if (!info->sqlite)
        return weft_fail(err, WEFT_INTERNAL, "statement %s does not exist for SQLite", info->name);

    const char *text = skip_space(info->sqlite);
    lite->reads_input = false;
    while (*text && !rc) {
        if (count == PARTS_MAX) {
            rc = weft_fail(err, WEFT_INTERNAL, "statement %s has too many parts", info->name);
            break;
        }
        struct weft_lite_part *next = &part[count++];
        rc = read_when(info, text, &next->when, err);
        if (!rc)
            rc = prepare_part(lite, info, next, &text, err);
        text = skip_space(text);
    }
    if (rc) {
        for (size_t i = 0; i < count; i++)
            sqlite3_finalize(part[i].stmt);
        return rc;
    }
    lite->stmt[stmt].part = weft_arena_dup(lite->arena, part, count * sizeof(part[0]));
    lite->stmt[stmt].count = count;
    if (lite->reads_input)
        lite->stmt[stmt].input_param = map_input(lite, stmt);
    return WEFT_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */

static int bind_cell(sqlite3_stmt *stmt, const struct weft_lite_bind *bind,
                     const struct weft_cell *cell)
{
    if (cell->null)
        return sqlite3_bind_null(stmt, bind->index);
    if (weft_is_number(bind->param))
        return sqlite3_bind_int64(stmt, bind->index, cell->num);
    if (bind->param->type == WEFT_TYPE_TEXT)
        return sqlite3_bind_text64(stmt, bind->index, cell->data, cell->size, SQLITE_STATIC,
                                   SQLITE_UTF8);
    return sqlite3_bind_blob64(stmt, bind->index, cell->data, cell->size, SQLITE_STATIC);
}

static enum weft_rc bind_row(struct weft_lite *lite, const struct weft_lite_part *part,
                             const struct weft_call *call, size_t row, struct weft_err *err)
{
    /* The first row brings the scalars along; later ones change columns alone. A part that does not
     * run for each row may not have seen the first. */
    size_t from = row == 0 || part->when >= 0 ? 0 : part->scalar_count;
    for (size_t i = from; i < part->bind_count; i++) {
        const struct weft_lite_bind *bind = &part->bind[i];
        struct weft_cell cell = weft_call_cell(call, bind->param, row);
        if (!cell.null && !weft_cell_fits(bind->param->type, cell.num))
            return weft_fail(err, WEFT_INTERNAL, "statement %s: %s is out of range",
                             weft_stmts[call->stmt].name, bind->param->name);
        int code = bind_cell(part->stmt, bind, &cell);
        if (code != SQLITE_OK)
            return weft_lite_fail(lite, code, err, weft_stmts[call->stmt].name);
    }
    return WEFT_OK;
}

/* The rows of one call while they are being read. */
struct reader {
    struct weft_arena *arena;
    const struct weft_stmt_info *info;
    char *row;
    char *chunk; /* free bytes */
    size_t chunk_left;
    size_t count;
    size_t capacity; /* in rows */
    size_t most;     /* 0: no limit */
    uint32_t given; /* a bit for each column of the last row for these arguments that has a value */
};

static void grow(struct reader *reader)
{
    size_t capacity = reader->capacity > 0 ? reader->capacity * 2 : FIRST_ROWS;
    char *row = weft_arena_alloc(reader->arena, capacity, reader->info->out_size);
    if (reader->count > 0)
        memcpy(row, reader->row, reader->count * reader->info->out_size);
    reader->row = row;
    reader->capacity = capacity;
}

static const void *keep_bytes(struct reader *reader, const void *data, size_t size)
{
    if (reader->chunk_left < size + 1) {
        size_t bytes = size + 1 > CHUNK_BYTES / 4 ? size + 1 : CHUNK_BYTES;
        char *fresh = weft_arena_alloc(reader->arena, bytes, 1);
        if (bytes != CHUNK_BYTES) /* a large value has a chunk of its own */
            return size > 0 ? memcpy(fresh, data, size) : fresh;
        reader->chunk = fresh;
        reader->chunk_left = bytes;
    }
    char *copy = reader->chunk;
    if (size > 0)
        memcpy(copy, data, size);
    copy[size] = '\0';
    reader->chunk += size + 1;
    reader->chunk_left -= size + 1;
    return copy;
}

/* False: the value is not of the declared type. */
static bool read_cell(struct reader *reader, sqlite3_stmt *stmt, int column, char *row)
{
    const struct weft_stmt_field *field = &reader->info->result[column];
    struct weft_cell cell = {0};
    int type = sqlite3_column_type(stmt, column);
    if (type == SQLITE_NULL)
        return true;
    if (weft_is_number(field) != (type == SQLITE_INTEGER) || type == SQLITE_FLOAT)
        return false;
    if (column < WHEN_COLUMNS)
        reader->given |= UINT32_C(1) << column;
    if (type == SQLITE_INTEGER) {
        cell.num = sqlite3_column_int64(stmt, column);
        return weft_row_put(row, field, &cell);
    }
    cell.data = type == SQLITE_TEXT ? (const void *)sqlite3_column_text(stmt, column)
                                    : sqlite3_column_blob(stmt, column);
    cell.size = (size_t)sqlite3_column_bytes(stmt, column);
    if (field->type != WEFT_TYPE_ID)
        cell.data = keep_bytes(reader, cell.data, cell.size);
    return weft_row_put(row, field, &cell);
}

static enum weft_rc read_row(struct reader *reader, const struct weft_lite_part *part,
                             struct weft_err *err)
{
    if (reader->count == reader->capacity)
        grow(reader);
    char *row = reader->row + reader->count * reader->info->out_size;
    reader->given = 0;
    for (int i = 0; i < part->columns; i++)
        if (!read_cell(reader, part->stmt, i, row))
            return weft_fail(err, WEFT_INTERNAL, "statement %s: %s is not of its type",
                             reader->info->name, reader->info->result[i].name);
    reader->count++;
    return WEFT_OK;
}

/* As many as the call asked for: nothing behind them is looked at. */
static bool is_full(const struct reader *reader)
{
    return reader->most > 0 && reader->count == reader->most;
}

static enum weft_rc run_part(struct weft_lite *lite, const struct weft_lite_part *part,
                             const char *name, struct reader *reader, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    int code = SQLITE_ROW;
    while (!is_full(reader) && (code = sqlite3_step(part->stmt)) == SQLITE_ROW) {
        if (reader->info->result_count == 0)
            continue;
        rc = read_row(reader, part, err);
        if (rc)
            break;
    }
    if (!rc && code != SQLITE_DONE && !is_full(reader))
        rc = weft_lite_fail(lite, code, err, name);
    sqlite3_reset(part->stmt);
    return rc;
}

/* All parts of a statement, with the arguments of one row. */
static enum weft_rc run_row(struct weft_lite *lite, const struct weft_call *call, size_t row,
                            struct reader *reader, struct weft_err *err)
{
    const struct weft_lite_stmt *stmt = &lite->stmt[call->stmt];
    const char *name = weft_stmts[call->stmt].name;
    enum weft_rc rc = WEFT_OK;
    reader->given = 0;
    for (size_t i = 0; i < stmt->count && !rc; i++) {
        const struct weft_lite_part *part = &stmt->part[i];
        if (part->when >= 0 && !(reader->given >> part->when & 1))
            continue;
        if (part->writes && lite->tx == WEFT_LITE_TX_READ)
            return weft_fail(err, WEFT_INTERNAL, "statement %s writes in a read transaction", name);
        rc = bind_row(lite, part, call, row, err);
        if (!rc)
            rc = run_part(lite, part, name, reader, err);
    }
    return rc;
}

enum weft_rc weft_lite_run_one(struct weft_lite *lite, const struct weft_call *call,
                               struct weft_arena *arena, struct weft_rows *ret_rows,
                               struct weft_err *err)
{
    const struct weft_stmt_info *info = &weft_stmts[call->stmt];
    struct reader reader = {.arena = arena, .info = info, .most = call->most};

    enum weft_rc rc = weft_lite_prepare_one(lite, call->stmt, err);
    size_t rows = weft_call_runs(call);
    if (!rc && lite->stmt[call->stmt].input_param && rows > 1)
        rows = 1;
    lite->input = call;
    for (size_t row = 0; row < rows && !is_full(&reader) && !rc; row++)
        rc = run_row(lite, call, row, &reader, err);
    if (!rc)
        *ret_rows =
            (struct weft_rows){.stmt = call->stmt, .count = reader.count, .row = reader.row};
    return rc;
}
