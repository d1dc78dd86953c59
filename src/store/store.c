/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Filling calls, reading rows, and finding the driver for a URL. The setters assert that a value
 * goes into a parameter of its kind: a mix-up is found by the first test that runs the statement,
 * on either store. Whether a number fits its column depends on data, so the drivers check that and
 * report it.
 */

#include "store/store.h"

#include "base/arena.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

void weft_call_init(struct weft_call *call, struct weft_arena *arena, enum weft_stmt stmt,
                    size_t rows)
{
    assert((size_t)stmt < WEFT_STMT_COUNT);
    size_t width = weft_stmts[stmt].param_count;
    size_t cells = (rows > 0 ? rows : 1) * width;
    *call = (struct weft_call){.stmt = stmt, .rows = rows, .width = width};
    call->cell = weft_new_array(arena, struct weft_cell, cells);
    for (size_t i = 0; i < cells; i++)
        call->cell[i].null = true;
}

static struct weft_cell *cell_at(struct weft_call *call, size_t row, size_t param)
{
    assert(param < call->width && (row == 0 || row < call->rows));
    assert(row == 0 || weft_stmts[call->stmt].param[param].column);
    return &call->cell[row * call->width + param];
}

static enum weft_type type_of(const struct weft_call *call, size_t param)
{
    return weft_stmts[call->stmt].param[param].type;
}

void weft_set_i64(struct weft_call *call, size_t row, size_t param, int64_t value)
{
    struct weft_cell *cell = cell_at(call, row, param);
    assert(type_of(call, param) <= WEFT_TYPE_I64);
    *cell = (struct weft_cell){.num = value};
}

void weft_set_id(struct weft_call *call, size_t row, size_t param, const struct weft_id *id)
{
    struct weft_cell *cell = cell_at(call, row, param);
    assert(type_of(call, param) == WEFT_TYPE_ID);
    *cell = (struct weft_cell){.data = id->byte, .size = sizeof(id->byte)};
}

void weft_set_text(struct weft_call *call, size_t row, size_t param, const char *text)
{
    struct weft_cell *cell = cell_at(call, row, param);
    assert(type_of(call, param) == WEFT_TYPE_TEXT);
    *cell = (struct weft_cell){.data = text, .size = text ? strlen(text) : 0, .null = !text};
}

void weft_set_bytes(struct weft_call *call, size_t row, size_t param, const void *data, size_t size)
{
    struct weft_cell *cell = cell_at(call, row, param);
    assert(type_of(call, param) >= WEFT_TYPE_ID);
    assert(type_of(call, param) != WEFT_TYPE_ID || !data || size == sizeof(struct weft_id));
    *cell = (struct weft_cell){.data = data, .size = data ? size : 0, .null = !data};
}

const struct weft_cell *weft_get(const struct weft_rows *rows, size_t row, size_t column)
{
    assert(row < rows->count && column < rows->width);
    return &rows->cell[row * rows->width + column];
}

int64_t weft_get_i64(const struct weft_rows *rows, size_t row, size_t column)
{
    return weft_get(rows, row, column)->num;
}

struct weft_id weft_get_id(const struct weft_rows *rows, size_t row, size_t column)
{
    const struct weft_cell *cell = weft_get(rows, row, column);
    struct weft_id id = {{0}};
    if (!cell->null) {
        assert(cell->size == sizeof(id.byte));
        memcpy(id.byte, cell->data, sizeof(id.byte));
    }
    return id;
}

const char *weft_get_text(const struct weft_rows *rows, size_t row, size_t column)
{
    return weft_get(rows, row, column)->data;
}

/* How many of the first letters of a URL are its scheme, "mysql" of mysql://...; 0: it has none. */
static size_t scheme_size(const char *url)
{
    size_t size = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return size > 0 && url[size] == ':' ? size : 0;
}

static bool has_scheme(const char *url, const char *scheme)
{
    size_t size = scheme_size(url);
    return size > 0 && size == strlen(scheme) && strncasecmp(url, scheme, size) == 0;
}

/*
 * Says what to write instead. A URL is not repeated: it may hold a password, and so may libpq's
 * "host=... password=...". A mere path does not.
 */
static enum weft_rc unknown_url(const char *url, struct weft_err *err)
{
    enum { SHOWN = 200 };
    static const char stores[] = "a store is sqlite:PATH or postgres://USER@HOST:PORT/DATABASE";
    static const struct {
        const char *scheme, *text, *hint;
    } known[] = {
        {"http", "http:// is the URL of a server, and a store is asked for",
         "name a server with --server or WEFT_SERVER"},
        {"https", "https:// is the URL of a server, and a store is asked for",
         "name a server with --server or WEFT_SERVER"},
        {"sqlite3", "the scheme of a SQLite file is sqlite:", "write sqlite:weft.db"},
        {"file", "the scheme of a SQLite file is sqlite:", "write sqlite:weft.db"},
        {"sqlite", "the scheme sqlite: is written in small letters", "write sqlite:weft.db"},
        {"postgres", "the URL of a PostgreSQL store begins with postgres://",
         "write postgres://USER@HOST:PORT/DATABASE"},
        {"postgresql", "the URL of a PostgreSQL store begins with postgresql://",
         "write postgresql://USER@HOST:PORT/DATABASE"},
    };
    const char *hint = stores;
    enum weft_rc rc = WEFT_OK;
    size_t size = scheme_size(url);
    for (size_t i = 0; i < WEFT_LEN(known) && !rc; i++)
        if (has_scheme(url, known[i].scheme)) {
            rc = weft_fail_field(err, WEFT_INVALID_VALUE, "url", "%s", known[i].text);
            hint = known[i].hint;
        }
    if (!rc && size > 0 && strncmp(url + size, "://", 3) == 0)
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "url", "there is no store for %.*s:// URLs",
                             (int)size, url);
    else if (!rc && *url && !strpbrk(url, ":@="))
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "url",
                             "the store URL has no scheme: for the file %.*s write sqlite:%.*s",
                             SHOWN, url, SHOWN, url);
    else if (!rc)
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "url",
                             "the store URL must be sqlite:PATH, postgres://... "
                             "or postgresql://...");
    if (err)
        err->hint = hint;
    return rc;
}

enum weft_rc weft_driver_for(const char *url, const struct weft_driver **ret_driver,
                             struct weft_err *err)
{
    static const struct {
        const char *scheme;
        const struct weft_driver *driver;
    } known[] = {
        {"sqlite:", &weft_driver_sqlite},
        {"postgres://", &weft_driver_pg},
        {"postgresql://", &weft_driver_pg},
    };
    for (size_t i = 0; i < WEFT_LEN(known); i++) {
        if (strncmp(url, known[i].scheme, strlen(known[i].scheme)) == 0) {
            *ret_driver = known[i].driver;
            return WEFT_OK;
        }
    }
    return unknown_url(url, err);
}
