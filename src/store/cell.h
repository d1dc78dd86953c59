/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_STORE_CELL_H
#define WEFT_STORE_CELL_H

/* What both drivers ask of a cell before they send it. */

#include "store/store.h"

/* A number that does not fit its parameter must fail on both stores, not on the stricter one. */
static inline bool weft_cell_fits(enum weft_type type, int64_t num)
{
    switch (type) {
    case WEFT_TYPE_BOOL:
        return num == 0 || num == 1;
    case WEFT_TYPE_I16:
        return num >= INT16_MIN && num <= INT16_MAX;
    case WEFT_TYPE_I32:
        return num >= INT32_MIN && num <= INT32_MAX;
    case WEFT_TYPE_I64:
    case WEFT_TYPE_ID:
    case WEFT_TYPE_TEXT:
    case WEFT_TYPE_BYTES:
        return true;
    }
    return false;
}

/* How often a store that takes rows one by one runs the call; 0 means that it runs nowhere. */
static inline size_t weft_call_runs(const struct weft_call *call)
{
    const struct weft_stmt_info *info = &weft_stmts[call->stmt];
    for (size_t i = 0; i < info->param_count; i++) {
        if (info->param[i].column)
            return call->rows;
    }
    return 1;
}

#endif
