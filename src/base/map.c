/* SPDX-License-Identifier: Apache-2.0 */

/* Open addressing with linear probing; grows at three quarters full. FNV-1a and a final mix. */

#include "base/map.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 64 };

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
