/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_TX_BATCH_H
#define WEFT_ENGINE_TX_BATCH_H

/* Splitting the items of a call into transactions. */

#include "base/base.h"

struct weft_arena;
struct weft_id;

/* Where the ids of an array of items are. */
struct weft_id_column {
    const struct weft_id *first;
    size_t stride;
    size_t count;
};

/* A part of a call that fits one transaction: indexes of items. */
struct weft_chunk {
    const size_t *item;
    size_t count;
    size_t round; /* so many earlier items of the call have the id of each of these */
};

struct weft_chunks {
    struct weft_chunk *chunk;
    size_t count;
};

/*
 * Splits items into transactions: sorted by id, no id twice in one (a client's retry met its
 * original), at most WEFT_BATCH_MAX each. skip[i] leaves item i out; skip may be NULL.
 */
struct weft_chunks weft_chunks_by_id(const struct weft_id_column *ids, const bool *skip,
                                     struct weft_arena *arena);

/*
 * The next item with this id in the chunks from *at on, which moves on; SIZE_MAX: there is none in
 * the rounds before `round`.
 */
size_t weft_chunks_next(const struct weft_chunks *chunks, size_t round,
                        const struct weft_id_column *ids, const struct weft_id *id, size_t *at);

/* The place of an id in a chunk, which must hold it. */
size_t weft_chunk_find(const struct weft_chunk *chunk, const struct weft_id_column *ids,
                       const struct weft_id *id);
const struct weft_id *weft_column_id(const struct weft_id_column *ids, size_t i);

#endif
