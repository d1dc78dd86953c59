/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_STORE_CELL_H
#define WEFT_STORE_CELL_H

/* How both drivers read the parameters of a call and write the rows of its result. */

#include "store/store.h"

#include <string.h>

/* One value. Integers and booleans are in num; the rest in data and size, borrowed. */
struct weft_cell {
    const void *data;
    size_t size;
    int64_t num;
    bool null;
};

/* A number that does not fit its parameter must fail on both stores, not on the stricter one. */
static inline bool weft_cell_fits(enum weft_type type, int64_t num)
{
    return type == WEFT_TYPE_BOOL  ? num == 0 || num == 1
           : type == WEFT_TYPE_I16 ? num == (int16_t)num
           : type == WEFT_TYPE_I32 ? num == (int32_t)num
                                   : true;
}

static inline bool weft_is_number(const struct weft_stmt_field *field)
{
    return field->type <= WEFT_TYPE_I64;
}

/* The value of a parameter; the row matters to columns alone. */
static inline struct weft_cell weft_call_cell(const struct weft_call *call,
                                              const struct weft_stmt_field *param, size_t row)
{
    const char *base = param->column
                           ? (const char *)call->item + row * weft_stmts[call->stmt].item_size
                           : call->in;
    const void *at = base + param->place;
    if (weft_is_number(param)) {
        const struct weft_opt_i64 *opt = at;
        if (param->nullable)
            return (struct weft_cell){.num = opt->value, .null = !opt->set};
        bool is_bool = param->type == WEFT_TYPE_BOOL;
        return (struct weft_cell){.num = is_bool ? *(const bool *)at : *(const int64_t *)at};
    }
    if (param->type == WEFT_TYPE_ID) { /* it comes first in struct weft_opt_id */
        bool null = param->nullable && !((const struct weft_opt_id *)at)->set;
        return (struct weft_cell){.data = at, .size = sizeof(struct weft_id), .null = null};
    }
    if (param->type == WEFT_TYPE_TEXT) {
        const char *text = *(const char *const *)at;
        return (struct weft_cell){.data = text, .size = text ? strlen(text) : 0, .null = !text};
    }
    const struct weft_blob *blob = at;
    return (struct weft_cell){
        .data = blob->data, .size = blob->data ? blob->size : 0, .null = !blob->data};
}

/* Writes a value that is not null into a row of zeros. False: it does not fit what is declared. */
static inline bool weft_row_put(void *row, const struct weft_stmt_field *result,
                                const struct weft_cell *cell)
{
    void *at = (char *)row + result->place;
    switch (result->type) {
    case WEFT_TYPE_BOOL:
    case WEFT_TYPE_I16:
    case WEFT_TYPE_I32:
        if (cell->num != (int32_t)cell->num)
            return false;
        if (result->nullable) /* the value comes first in struct weft_opt_i32 */
            ((struct weft_opt_i32 *)at)->set = true;
        if (result->type == WEFT_TYPE_BOOL && !result->nullable)
            *(bool *)at = cell->num != 0;
        else
            *(int32_t *)at = (int32_t)cell->num;
        return true;
    case WEFT_TYPE_I64:
        *(int64_t *)at = cell->num;
        if (result->nullable)
            ((struct weft_opt_i64 *)at)->set = true;
        return true;
    case WEFT_TYPE_ID:
        if (cell->size != sizeof(struct weft_id))
            return false;
        memcpy(at, cell->data, sizeof(struct weft_id));
        if (result->nullable)
            ((struct weft_opt_id *)at)->set = true;
        return true;
    case WEFT_TYPE_TEXT:
        *(const char **)at = cell->data;
        return true;
    case WEFT_TYPE_BYTES:
        *(struct weft_blob *)at = (struct weft_blob){.data = cell->data, .size = cell->size};
        return true;
    }
    return false;
}

/* How often a store that takes rows one by one runs the call; 0 means that it runs nowhere. */
static inline size_t weft_call_runs(const struct weft_call *call)
{
    return weft_stmts[call->stmt].item_size > 0 ? call->rows : 1;
}

#endif
