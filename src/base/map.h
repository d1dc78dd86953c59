/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_MAP_H
#define WEFT_BASE_MAP_H

/* Two hash maps, not thread-safe. A zeroed map is empty and valid. */

#include "base/base.h"

/* From byte strings to pointers. Keys are copied; values are the caller's. */
struct weft_map_entry {
    char *key; /* owned; NULL: free */
    size_t size;
    uint64_t hash;
    void *value;
};

struct weft_map {
    struct weft_map_entry *entry;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

void weft_map_done(struct weft_map *map);
void *weft_map_find(const struct weft_map *map, const void *key, size_t size); /* or NULL */
/* Replaces the value when the key is there already. value must not be NULL. */
void weft_map_put(struct weft_map *map, const void *key, size_t size, void *value);
void weft_map_remove(struct weft_map *map, const void *key, size_t size); /* if it is there */

/*
 * From an int32_t to a struct that begins with that number. The map holds only pointers, about 14
 * bytes per member in a large map; the caller owns the structs.
 */
struct weft_int_map {
    void **slot;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

void weft_int_map_done(struct weft_int_map *map);
void *weft_int_map_find(const struct weft_int_map *map, int32_t id); /* or NULL */
/* The number must not be in the map. */
void weft_int_map_put(struct weft_int_map *map, void *item);
void weft_int_map_remove(struct weft_int_map *map, int32_t id); /* if it is there */

#endif
