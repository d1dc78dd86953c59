/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_SPAN_H
#define WEFT_ENGINE_JOB_SPAN_H

/*
 * Spans: which ids of a namespace's executions lie close together, so that a list of the namespace
 * finds them without looking at the rows of others. See sql/migrations/0010-lists.pg.sql.
 */

#include "base/base.h"

#include <stdatomic.h>

struct weft_engine;
struct weft_tx;

/*
 * The moments of ids that may be in no span (span.h). The migration wrote them, so they never
 * change while the engine is open: two threads that read them at the same time set the same. In
 * SQLite all ids may be in none while there is one namespace, which is asked anew for each list
 * until there are two. That a list walks all ids is right at any time, only slower.
 */
struct weft_unspanned {
    atomic_bool known, all;
    _Atomic(weft_usec) since_us, until_us; /* 0: there are none */
};

struct weft_span_row {
    struct weft_id id;
    int32_t ns;
    /* Set by weft_spans_find(). */
    uint32_t count;       /* of the span that ends with this row; 0: it ends with another */
    struct weft_id first; /* where that span begins */
};

/* Puts rows of one namespace and one millisecond into a span. The rows stay in their order. */
void weft_spans_find(struct weft_span_row *row, size_t count, struct weft_arena *arena);

/* The span of a row, for a statement that submits it. */
struct weft_span_in weft_span_of(const struct weft_span_row *row);

/*
 * Removes the spans of executions that this transaction has removed, where none is left. Two
 * transactions that remove the last executions of a span at the same time each see the rows of the
 * other and leave the span: it costs lists one look in vain, and no execution is ever without one.
 */
WEFT_MUST_CHECK enum weft_rc weft_spans_remove(struct weft_tx *tx, struct weft_span_row *row,
                                               size_t count, struct weft_err *err);

/* The last id of the same millisecond: spans do not reach beyond it. */
struct weft_id weft_span_end(const struct weft_id *id);

#endif
