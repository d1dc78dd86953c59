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
    size_t round; /* LATER: how many items with the same id come before it, */
    size_t after; /* TOGETHER: and behind it */
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
    assert(place < chunk->count); /* the store answers only for ids of the chunk */
    return place;
}

size_t weft_chunk_end(const struct weft_chunk *chunk, const struct weft_id_column *ids, size_t k)
{
    const struct weft_id *id = weft_column_id(ids, chunk->item[k]);
    do
        k++;
    while (k < chunk->count && weft_id_cmp(weft_column_id(ids, chunk->item[k]), id) == 0);
    return k;
}

const struct weft_id *weft_chunk_ids(const struct weft_chunk *chunk,
                                     const struct weft_id_column *ids, struct weft_arena *arena,
                                     size_t *ret_count)
{
    struct weft_id *id = weft_new_array(arena, struct weft_id, chunk->count + 1);
    size_t count = 0;
    for (size_t k = 0; k < chunk->count; k = weft_chunk_end(chunk, ids, k))
        id[count++] = *weft_column_id(ids, chunk->item[k]);
    *ret_count = count;
    return id;
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

/* Counts the neighbours of each entry that have its id. True: there are any. */
static bool count_repeats(struct entry *entry, size_t count, enum weft_repeats repeats)
{
    bool any = false;
    for (size_t i = 1; i < count; i++) {
        struct entry *later = &entry[i], *earlier = later - 1;
        bool same = weft_id_cmp(later->id, earlier->id) == 0;
        any |= same;
        if (same && repeats == WEFT_REPEATS_LATER)
            later->round = earlier->round + 1;
    }
    for (size_t i = count; i > 1 && any && repeats == WEFT_REPEATS_TOGETHER; i--)
        if (weft_id_cmp(entry[i - 1].id, entry[i - 2].id) == 0)
            entry[i - 2].after = entry[i - 1].after + 1;
    return any;
}

/* Whether a chunk of `size` entries ends with this one, which another follows. */
static bool ends_chunk(const struct entry *entry, size_t size)
{
    const struct entry *next = entry + 1;
    return next->round != entry->round || size == WEFT_BATCH_MAX ||
           (entry->after == 0 && size + next->after + 1 > WEFT_BATCH_MAX);
}

struct weft_chunks weft_chunks_by_id(const struct weft_id_column *ids, const bool *skip,
                                     enum weft_repeats repeats, struct weft_arena *arena)
{
    struct entry *entry = weft_new_array(arena, struct entry, ids->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < ids->count; i++)
        if (!skip || !skip[i])
            entry[count++] = (struct entry){.id = weft_column_id(ids, i), .index = i};
    qsort(entry, count, sizeof(*entry), by_id);
    if (count_repeats(entry, count, repeats) && repeats == WEFT_REPEATS_LATER)
        qsort(entry, count, sizeof(*entry), by_round);

    size_t *item = weft_new_array(arena, size_t, count + 1);
    struct weft_chunks chunks = {.chunk = weft_new_array(arena, struct weft_chunk, count + 1)};
    size_t begin = 0;
    for (size_t i = 0; i < count; i++) {
        item[i] = entry[i].index;
        if (i + 1 < count && !ends_chunk(&entry[i], i + 1 - begin))
            continue;
        chunks.chunk[chunks.count++] = (struct weft_chunk){
            .item = item + begin, .count = i + 1 - begin, .round = entry[i].round};
        begin = i + 1;
    }
    return chunks;
}
