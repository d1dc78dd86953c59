/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_TX_BATCH_H
#define WEFT_ENGINE_TX_BATCH_H

/* Splitting the items of a call into transactions. */

#include "base/base.h"

/* A lease. Every item of a call about leases begins with the one that it is about. */
struct weft_lease {
    struct weft_id id;
    int32_t epoch;
};

/* Where the ids of an array of items are. */
struct weft_id_column {
    const struct weft_id *first;
    size_t stride;
    size_t count;
};

/* Items of one call that have the same id: a client's retry met its original, or many clients
 * write to one execution. */
enum weft_repeats {
    /* Each repeat has a later transaction than the item before it: for an operation that is one
     * statement, which can find a row only once. */
    WEFT_REPEATS_LATER,
    /*
     * One transaction has them all, next to each other and in the order of the call: for an
     * operation that locks the row once, decides item after item in memory and writes the result.
     * Only an id with more than WEFT_BATCH_MAX items is continued in the next transaction.
     */
    WEFT_REPEATS_TOGETHER,
};

/* A part of a call that fits one transaction: indexes of items. */
struct weft_chunk {
    const size_t *item;
    size_t count;
    size_t round; /* LATER: so many earlier items of the call have the id of each of these */
};

struct weft_chunks {
    struct weft_chunk *chunk;
    size_t count;
};

/*
 * Splits items into transactions: sorted by id, which is the order of row locks, at most
 * WEFT_BATCH_MAX each. skip[i] leaves item i out; skip may be NULL.
 */
struct weft_chunks weft_chunks_by_id(const struct weft_id_column *ids, const bool *skip,
                                     enum weft_repeats repeats, struct weft_arena *arena);

/*
 * The next item with this id in the chunks from *at on, which moves on; SIZE_MAX: there is none in
 * the rounds before `round`.
 */
size_t weft_chunks_next(const struct weft_chunks *chunks, size_t round,
                        const struct weft_id_column *ids, const struct weft_id *id, size_t *at);

/* The first place of an id in a chunk, which must hold it. */
size_t weft_chunk_find(const struct weft_chunk *chunk, const struct weft_id_column *ids,
                       const struct weft_id *id);

/* The place behind the items with the id of place k. */
size_t weft_chunk_end(const struct weft_chunk *chunk, const struct weft_id_column *ids, size_t k);

/* The ids of a chunk in their order, each once; in the arena. */
const struct weft_id *weft_chunk_ids(const struct weft_chunk *chunk,
                                     const struct weft_id_column *ids, struct weft_arena *arena,
                                     size_t *ret_count);
const struct weft_id *weft_column_id(const struct weft_id_column *ids, size_t i);

#endif
