/* SPDX-License-Identifier: Apache-2.0 */

/* Splitting a call into transactions. */

#include "engine/tx/batch.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/limits.h"

#include <assert.h>
#include <stdlib.h>

struct entry {
    const struct weft_id *id;
    size_t index;
    size_t round; /* how many items with the same id come before it */
};

/* Within an id the order of the call is kept: the original comes before its repeat. */
static int by_id(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = weft_id_cmp(a->id, b->id);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static int by_round(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    return by_id(left, right);
}

const struct weft_id *weft_column_id(const struct weft_id_column *ids, size_t i)
{
    return (const struct weft_id *)((const char *)ids->first + i * ids->stride);
}

/* The first place in the chunk whose id is not below this one; chunk->count: all are. */
static size_t find_place(const struct weft_chunk *chunk, const struct weft_id_column *ids,
                         const struct weft_id *id)
{
    size_t low = 0, high = chunk->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (weft_id_cmp(weft_column_id(ids, chunk->item[middle]), id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t weft_chunk_find(const struct weft_chunk *chunk, const struct weft_id_column *ids,
                       const struct weft_id *id)
{
    size_t place = find_place(chunk, ids, id);
    assert(place < chunk->count); /* the store answers about what it was asked */
    return place;
}

size_t weft_chunks_next(const struct weft_chunks *chunks, size_t round,
                        const struct weft_id_column *ids, const struct weft_id *id, size_t *at)
{
    while (*at < chunks->count && chunks->chunk[*at].round < round) {
        const struct weft_chunk *chunk = &chunks->chunk[(*at)++];
        size_t place = find_place(chunk, ids, id);
        if (place < chunk->count && weft_id_cmp(weft_column_id(ids, chunk->item[place]), id) == 0)
            return chunk->item[place];
    }
    return SIZE_MAX;
}

struct weft_chunks weft_chunks_by_id(const struct weft_id_column *ids, const bool *skip,
                                     struct weft_arena *arena)
{
    struct entry *entry = weft_new_array(arena, struct entry, ids->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < ids->count; i++)
        if (!skip || !skip[i])
            entry[count++] = (struct entry){
                .id = weft_column_id(ids, i),
                .index = i,
            };
    qsort(entry, count, sizeof(*entry), by_id);
    bool repeats = false;
    for (size_t i = 1; i < count; i++)
        if (weft_id_cmp(entry[i].id, entry[i - 1].id) == 0) {
            entry[i].round = entry[i - 1].round + 1;
            repeats = true;
        }
    if (repeats)
        qsort(entry, count, sizeof(*entry), by_round);

    size_t *item = weft_new_array(arena, size_t, count + 1);
    struct weft_chunks chunks = {.chunk = weft_new_array(arena, struct weft_chunk, count + 1)};
    size_t begin = 0;
    for (size_t i = 0; i < count; i++) {
        item[i] = entry[i].index;
        bool last = i + 1 == count || entry[i + 1].round != entry[i].round ||
                    i + 1 - begin == WEFT_BATCH_MAX;
        if (!last)
            continue;
        chunks.chunk[chunks.count++] = (struct weft_chunk){
            .item = item + begin, .count = i + 1 - begin, .round = entry[i].round};
        begin = i + 1;
    }
    return chunks;
}
