/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Open addressing with linear probing; a map grows at three quarters full. A removal moves later
 * members up, so there are no tombstones. Byte strings are hashed by FNV-1a and a final mix.
 */

#include "base/map.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 64, INT_CAPACITY_MIN = 8 };

static uint64_t hash_bytes(const void *key, size_t size)
{
    const unsigned char *byte = key;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3u;
    hash ^= hash >> 32;
    return hash * 0x9e3779b97f4a7c15u;
}

static struct weft_map_entry *probe(const struct weft_map *map, const void *key, size_t size,
                                    uint64_t hash)
{
    size_t mask = map->capacity - 1;
    for (size_t i = (size_t)(hash >> 32) & mask;; i = (i + 1) & mask) {
        struct weft_map_entry *entry = &map->entry[i];
        if (!entry->key ||
            (entry->hash == hash && entry->size == size && memcmp(entry->key, key, size) == 0))
            return entry;
    }
}

void weft_map_done(struct weft_map *map)
{
    for (size_t i = 0; i < map->capacity; i++)
        free(map->entry[i].key);
    free(map->entry);
    *map = (struct weft_map){0};
}

void *weft_map_find(const struct weft_map *map, const void *key, size_t size)
{
    if (map->count == 0)
        return NULL;
    return probe(map, key, size, hash_bytes(key, size))->value;
}

static void grow(struct weft_map *map)
{
    struct weft_map bigger = {.capacity = map->capacity ? map->capacity * 2 : CAPACITY_MIN,
                              .count = map->count};
    bigger.entry = weft_alloc(bigger.capacity, sizeof(*bigger.entry));
    for (size_t i = 0; i < map->capacity; i++) {
        struct weft_map_entry *entry = &map->entry[i];
        if (entry->key)
            *probe(&bigger, entry->key, entry->size, entry->hash) = *entry;
    }
    free(map->entry);
    *map = bigger;
}

void weft_map_put(struct weft_map *map, const void *key, size_t size, void *value)
{
    assert(value);
    if (map->count >= map->capacity / 4 * 3)
        grow(map);
    uint64_t hash = hash_bytes(key, size);
    struct weft_map_entry *entry = probe(map, key, size, hash);
    if (!entry->key) {
        entry->key = memcpy(weft_alloc(size + 1, 1), key, size);
        entry->size = size;
        entry->hash = hash;
        map->count++;
    }
    entry->value = value;
}

void weft_map_remove(struct weft_map *map, const void *key, size_t size)
{
    if (map->count == 0)
        return;
    size_t mask = map->capacity - 1;
    size_t hole = (size_t)(probe(map, key, size, hash_bytes(key, size)) - map->entry);
    if (!map->entry[hole].key)
        return;
    free(map->entry[hole].key);
    map->count--;
    /* An entry behind the hole fills it, unless its own place lies between the two. */
    for (size_t at = (hole + 1) & mask; map->entry[at].key; at = (at + 1) & mask) {
        size_t home = (size_t)(map->entry[at].hash >> 32) & mask;
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        map->entry[hole] = map->entry[at];
        hole = at;
    }
    map->entry[hole] = (struct weft_map_entry){0};
}

/* ---- Numbers --------------------------------------------------------------------------------- */

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
static size_t int_probe(const struct weft_int_map *map, int32_t id)
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
    return map->count == 0 ? NULL : map->slot[int_probe(map, id)];
}

/* It also shrinks, at an eighth. */
static void resize(struct weft_int_map *map, size_t capacity)
{
    struct weft_int_map other = {.capacity = capacity, .count = map->count};
    other.slot = weft_alloc(capacity, sizeof(*other.slot));
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slot[i])
            other.slot[int_probe(&other, id_of(map->slot[i]))] = map->slot[i];
    free(map->slot);
    *map = other;
}

void weft_int_map_put(struct weft_int_map *map, void *item)
{
    if (map->count >= map->capacity / 4 * 3)
        resize(map, map->capacity ? map->capacity * 2 : INT_CAPACITY_MIN);
    size_t at = int_probe(map, id_of(item));
    assert(!map->slot[at]);
    map->slot[at] = item;
    map->count++;
}

void weft_int_map_remove(struct weft_int_map *map, int32_t id)
{
    if (map->count == 0)
        return;
    size_t mask = map->capacity - 1, hole = int_probe(map, id);
    if (!map->slot[hole])
        return;
    map->count--;
    for (size_t at = (hole + 1) & mask; map->slot[at]; at = (at + 1) & mask) {
        size_t home = home_of(map, id_of(map->slot[at]));
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        map->slot[hole] = map->slot[at];
        hole = at;
    }
    map->slot[hole] = NULL;
    if (map->capacity > INT_CAPACITY_MIN && map->count < map->capacity / 8)
        resize(map, map->capacity / 2);
}
