/* SPDX-License-Identifier: Apache-2.0 */

/* The invariants of the whole store, asked of the store itself. */

#include "engine/admin/check.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "engine/tx/tx.h"
#include "store/store.h"

enum weft_rc weft_engine_check(struct weft_engine *engine, struct weft_err *err)
{
    static const enum weft_stmt check[] = {WEFT_STMT_CHECK_ONE_PLACE, WEFT_STMT_CHECK_ROWS,
                                           WEFT_STMT_CHECK_FLOWS, WEFT_STMT_CHECK_GRAPHS};
    struct weft_arena *arena = weft_arena_new();
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < WEFT_LEN(check) && !rc; i++) {
        struct weft_call call;
        struct weft_rows rows = {0};
        weft_call_init(&call, arena, check[i], 0);
        rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
        if (rc || rows.count == 0)
            continue;
        struct weft_id id = {0};
        const struct weft_check_rows_out *row = weft_out_check_rows(&rows);
        if (row->id.set)
            id = row->id.value;
        char text[WEFT_ID_TEXT];
        weft_id_print(&id, text);
        rc = weft_fail(err, WEFT_CORRUPT, "%zu broken rows, the first: %s, %s", rows.count,
                       row->problem, text);
    }
    weft_arena_free(arena);
    return rc;
}
