/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_INDEX_H
#define WEFT_BASE_INDEX_H

/*
 * A hash set of structs by the int32_t that each begins with. It holds pointers alone, so a large
 * one costs about 14 bytes a member; the structs are the caller's. Not thread-safe.
 */

#include "base/base.h"

struct weft_index {
    void **slot;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

void weft_index_done(struct weft_index *index); /* a zeroed index is empty and fine */
void *weft_index_find(const struct weft_index *index, int32_t id); /* or NULL */
/* No member may have the same number. */
void weft_index_put(struct weft_index *index, void *item);
void weft_index_remove(struct weft_index *index, int32_t id); /* nothing when there is none */

#endif
