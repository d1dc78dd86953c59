/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/job/detail.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "engine/engine_state.h"

#include <string.h>

enum {
    STEP = 128, /* of one statement: 8 MiB at most */
    AROUND = 8, /* levels of an answer around it; some to spare */
};

enum weft_rc weft_detail_check(const char *detail, struct weft_err *err)
{
    struct weft_json value;
    struct weft_err why = {0};
    size_t size = detail ? strlen(detail) : 0;
    if (!detail)
        return WEFT_OK;
    if (size > WEFT_DETAIL_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "detail",
                               "detail has %zu bytes, at most %d are allowed", size,
                               WEFT_DETAIL_MAX);
    if (weft_json_check_inside(detail, size, AROUND, &value, &why))
        return weft_invalid(err, "detail", "detail must be JSON: %s", why.text);
    return WEFT_OK;
}

/* Up to STEP of them; adds their bytes. */
static enum weft_rc read_step(struct weft_engine *engine, const struct weft_detail_of *of,
                              size_t count, struct weft_arena *arena, size_t *bytes,
                              struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_details_of_in *in = weft_call_details_of(&call, arena, count);
    for (size_t i = 0; i < count; i++) {
        in->row[i].id = of[i].id;
        in->row[i].epoch = of[i].epoch;
    }
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    for (size_t r = 0; r < rows.count && !rc; r++) {
        const struct weft_details_of_out *row = &weft_out_details_of(&rows)[r];
        for (size_t i = 0; i < count; i++)
            if (of[i].epoch == row->epoch && weft_id_cmp(&of[i].id, &row->id) == 0)
                *of[i].ret_detail = row->detail;
        *bytes += strlen(row->detail);
    }
    return rc;
}

enum weft_rc weft_details_read(struct weft_engine *engine, const struct weft_detail_of *of,
                               size_t count, struct weft_arena *arena, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    size_t bytes = 0;
    for (size_t at = 0; at < count && !rc && bytes < WEFT_BATCH_BYTES; at += STEP)
        rc = read_step(engine, of + at, count - at < STEP ? count - at : STEP, arena, &bytes, err);
    return rc;
}
