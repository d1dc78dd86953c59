/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Open addressing with linear probing; grows at three quarters full and shrinks at an eighth.
 * A removal moves later members up, so there are no tombstones.
 */

#include "base/int_map.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdlib.h>

enum { CAPACITY_MIN = 8 };

static int32_t id_of(const void *item)
{
    return *(const int32_t *)item;
}

static size_t home_of(const struct weft_int_map *map, int32_t id)
{
    uint64_t hash = ((uint64_t)(uint32_t)id + 1) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 32) & (map->capacity - 1);
}

/* The slot of the number, or the free one where it belongs. */
static size_t probe(const struct weft_int_map *map, int32_t id)
{
    size_t at = home_of(map, id);
    while (map->slot[at] && id_of(map->slot[at]) != id)
        at = (at + 1) & (map->capacity - 1);
    return at;
}

void weft_int_map_done(struct weft_int_map *map)
{
    free(map->slot);
    *map = (struct weft_int_map){0};
}

void *weft_int_map_find(const struct weft_int_map *map, int32_t id)
{
    return map->count == 0 ? NULL : map->slot[probe(map, id)];
}

static void resize(struct weft_int_map *map, size_t capacity)
{
    struct weft_int_map other = {.capacity = capacity, .count = map->count};
    other.slot = weft_alloc(capacity, sizeof(*other.slot));
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slot[i])
            other.slot[probe(&other, id_of(map->slot[i]))] = map->slot[i];
    free(map->slot);
    *map = other;
}

void weft_int_map_put(struct weft_int_map *map, void *item)
{
    if (map->count >= map->capacity / 4 * 3)
        resize(map, map->capacity ? map->capacity * 2 : CAPACITY_MIN);
    size_t at = probe(map, id_of(item));
    assert(!map->slot[at]);
    map->slot[at] = item;
    map->count++;
}

void weft_int_map_remove(struct weft_int_map *map, int32_t id)
{
    if (map->count == 0)
        return;
    size_t mask = map->capacity - 1, hole = probe(map, id);
    if (!map->slot[hole])
        return;
    map->count--;
    /* A member behind the hole fills it, unless its own place lies between the two. */
    for (size_t at = (hole + 1) & mask; map->slot[at]; at = (at + 1) & mask) {
        size_t home = home_of(map, id_of(map->slot[at]));
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        map->slot[hole] = map->slot[at];
        hole = at;
    }
    map->slot[hole] = NULL;
    if (map->capacity > CAPACITY_MIN && map->count < map->capacity / 8)
        resize(map, map->capacity / 2);
}
