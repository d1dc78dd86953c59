/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_ARENA_H
#define WEFT_BASE_ARENA_H

/*
 * Arena: memory that dies together.
 *
 * One arena belongs to one unit of work (a request, a scanner tick, a CLI command); its creator
 * frees it. There is no free of a single object. Allocations never return NULL (base/alloc.h).
 * Not thread-safe.
 */

#include "base/alloc.h"

struct weft_arena *weft_arena_new(void);
void weft_arena_free(struct weft_arena *arena); /* NULL is fine */
/* Frees everything allocated, but keeps the largest block for the next allocations. */
void weft_arena_reset(struct weft_arena *arena);

/* Zeroed and aligned for any type. A size of zero gives a pointer that must not be read. */
void *weft_arena_alloc(struct weft_arena *arena, size_t count, size_t size);
void *weft_arena_dup(struct weft_arena *arena, const void *data, size_t size);
char *weft_arena_strdup(struct weft_arena *arena, const char *text); /* NULL gives NULL */
const char *weft_arena_printf(struct weft_arena *arena, const char *fmt, ...) WEFT_PRINTF(2, 3);

#define weft_new(arena, type)          ((type *)weft_arena_alloc(arena, 1, sizeof(type)))
#define weft_new_array(arena, type, n) ((type *)weft_arena_alloc(arena, n, sizeof(type)))

#endif
