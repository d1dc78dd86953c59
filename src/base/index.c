/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Open addressing with linear probing; grows at three quarters full and shrinks at an eighth.
 * A removal moves the members behind it up, so there are no marks for removed ones.
 */

#include "base/index.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>

enum { CAPACITY_MIN = 8 };

static int32_t id_of(const void *item)
{
    return *(const int32_t *)item;
}

static size_t home_of(const struct weft_index *index, int32_t id)
{
    uint64_t hash = ((uint64_t)(uint32_t)id + 1) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 32) & (index->capacity - 1);
}

/* The slot of the number, or the free one where it belongs. */
static size_t probe(const struct weft_index *index, int32_t id)
{
    size_t at = home_of(index, id);
    while (index->slot[at] && id_of(index->slot[at]) != id)
        at = (at + 1) & (index->capacity - 1);
    return at;
}

void weft_index_done(struct weft_index *index)
{
    free(index->slot);
    *index = (struct weft_index){0};
}

void *weft_index_find(const struct weft_index *index, int32_t id)
{
    return index->count == 0 ? NULL : index->slot[probe(index, id)];
}

static void resize(struct weft_index *index, size_t capacity)
{
    struct weft_index other = {.capacity = capacity, .count = index->count};
    other.slot = calloc(capacity, sizeof(*other.slot));
    if (!other.slot)
        weft_oom(capacity * sizeof(*other.slot));
    for (size_t i = 0; i < index->capacity; i++)
        if (index->slot[i])
            other.slot[probe(&other, id_of(index->slot[i]))] = index->slot[i];
    free(index->slot);
    *index = other;
}

void weft_index_put(struct weft_index *index, void *item)
{
    if (index->count >= index->capacity / 4 * 3)
        resize(index, index->capacity ? index->capacity * 2 : CAPACITY_MIN);
    size_t at = probe(index, id_of(item));
    assert(!index->slot[at]);
    index->slot[at] = item;
    index->count++;
}

void weft_index_remove(struct weft_index *index, int32_t id)
{
    if (index->count == 0)
        return;
    size_t mask = index->capacity - 1, hole = probe(index, id);
    if (!index->slot[hole])
        return;
    index->count--;
    /* A member behind the hole fills it, unless its own place lies between the two. */
    for (size_t at = (hole + 1) & mask; index->slot[at]; at = (at + 1) & mask) {
        size_t home = home_of(index, id_of(index->slot[at]));
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        index->slot[hole] = index->slot[at];
        hole = at;
    }
    index->slot[hole] = NULL;
    if (index->capacity > CAPACITY_MIN && index->count < index->capacity / 8)
        resize(index, index->capacity / 2);
}
