/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_INT_MAP_H
#define WEFT_BASE_INT_MAP_H

/*
 * A hash map from an int32_t to a struct that begins with that number. It holds only pointers,
 * about 14 bytes per member in a large map; the caller owns the structs. Not thread-safe.
 */

#include "base/base.h"

struct weft_int_map {
    void **slot;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

void weft_int_map_done(struct weft_int_map *map); /* a zeroed map is empty and valid */
void *weft_int_map_find(const struct weft_int_map *map, int32_t id); /* or NULL */
/* The number must not be in the map. */
void weft_int_map_put(struct weft_int_map *map, void *item);
void weft_int_map_remove(struct weft_int_map *map, int32_t id); /* if it is there */

#endif
