/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_MAP_H
#define WEFT_BASE_MAP_H

/*
 * A hash map from byte strings to pointers. Keys are copied; values are the caller's. Not
 * thread-safe.
 */

#include "base/base.h"

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

void weft_map_done(struct weft_map *map); /* a zeroed map is empty and fine */
void *weft_map_find(const struct weft_map *map, const void *key, size_t size); /* or NULL */
/* Replaces the value when the key is there already. value must not be NULL. */
void weft_map_put(struct weft_map *map, const void *key, size_t size, void *value);
void weft_map_remove(struct weft_map *map, const void *key, size_t size); /* if it is there */

#endif
