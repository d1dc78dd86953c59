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
    /* The URL itself is not repeated: what follows a mistyped scheme may hold a password. */
    enum weft_rc rc = weft_fail_field(err, WEFT_INVALID_VALUE, "url",
                                      "the store URL must be sqlite:PATH, postgres://... "
                                      "or postgresql://...");
    if (err)
        err->hint = "for a file beside the program write sqlite:weft.db";
    return rc;
}
