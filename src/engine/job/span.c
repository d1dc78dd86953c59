/* SPDX-License-Identifier: Apache-2.0 */

/* Spans are found by sorting the rows of a transaction, at most a few thousand. */

#include "engine/job/span.h"

#include "base/arena.h"
#include "base/id.h"
#include "engine/engine_state.h"
#include "engine/job/list.h"

#include <stdlib.h>
#include <string.h>

enum { MOMENT_BYTES = 6 }; /* of an id */

struct weft_id weft_span_end(const struct weft_id *id)
{
    struct weft_id end = WEFT_ID_LAST;
    memcpy(end.byte, id->byte, MOMENT_BYTES);
    return end;
}

static int by_place(const void *left, const void *right)
{
    const struct weft_span_row *a = *(struct weft_span_row *const *)left;
    const struct weft_span_row *b = *(struct weft_span_row *const *)right;
    return a->ns != b->ns ? (a->ns > b->ns) - (a->ns < b->ns) : weft_id_cmp(&a->id, &b->id);
}

static bool same_span(const struct weft_span_row *a, const struct weft_span_row *b)
{
    return a->ns == b->ns && memcmp(a->id.byte, b->id.byte, MOMENT_BYTES) == 0;
}

void weft_spans_find(struct weft_span_row *row, size_t count, struct weft_arena *arena)
{
    struct weft_span_row **sorted = weft_new_array(arena, struct weft_span_row *, count + 1);
    bool in_order = true; /* as it mostly is: ids are minted one after the other */
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &row[i];
        in_order &= i == 0 || by_place((const void *)&sorted[i - 1], (const void *)&sorted[i]) <= 0;
    }
    if (!in_order)
        qsort((void *)sorted, count, sizeof(void *), by_place);
    for (size_t i = 0, first = 0; i < count; i++) {
        sorted[i]->count = 0;
        if (i + 1 < count && same_span(sorted[i], sorted[i + 1]))
            continue;
        sorted[i]->count = (uint32_t)(i + 1 - first);
        sorted[i]->first = sorted[first]->id;
        first = i + 1;
    }
}

struct weft_span_in weft_span_of(const struct weft_span_row *row)
{
    if (row->count == 0)
        return (struct weft_span_in){0};
    return (struct weft_span_in){
        .span_namespace = weft_some(row->ns),
        .span_first = weft_some_id(row->first),
        .span_count = weft_some(row->count),
    };
}

enum weft_rc weft_spans_remove(struct weft_tx *tx, struct weft_span_row *row, size_t count,
                               struct weft_err *err)
{
    struct weft_call call;
    struct weft_spans_remove_in *in = weft_call_spans_remove(&call, tx->arena, count);
    size_t spans = 0;
    weft_spans_find(row, count, tx->arena);
    for (size_t i = 0; i < count; i++) {
        if (row[i].count == 0)
            continue;
        in->row[spans].namespace = row[i].ns;
        in->row[spans].first = row[i].first;
        in->row[spans++].last = weft_span_end(&row[i].id);
    }
    call.rows = spans;
    if (spans == 0)
        return WEFT_OK;
    return weft_tx_run(tx, &call, 1, NULL, err);
}
