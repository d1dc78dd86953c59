/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A chain of blocks; each block is twice the size of the one before, up to BLOCK_MAX. Under
 * AddressSanitizer what is not given out is poisoned, with a gap behind each piece.
 */

#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if defined(WITH_ASAN) || defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
enum { GAP = 16 };
#else
#define ASAN_POISON_MEMORY_REGION(memory, size)   ((void)(memory), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
enum { GAP = 0 };
#endif

enum {
    BLOCK_MIN = 4096,
    BLOCK_MAX = 1 << 20,
    ALIGN = _Alignof(max_align_t),
};

struct block {
    struct block *prev;
    size_t used;
    size_t size;
    _Alignas(max_align_t) unsigned char byte[];
};

struct weft_arena {
    struct block *last;
};

static void (*_Atomic oom_hook)(size_t wanted);

WEFT_EXPORT void weft_set_oom(void (*hook)(size_t wanted))
{
    atomic_store(&oom_hook, hook);
}

void weft_oom(size_t wanted)
{
    void (*hook)(size_t) = atomic_load(&oom_hook);
    if (hook)
        hook(wanted);
    else
        (void)fprintf(stderr, "out of memory (wanted %zu bytes)\n", wanted);
    abort();
}

void *weft_calloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        weft_oom(count * size);
    return memory;
}

struct weft_arena *weft_arena_new(void)
{
    struct weft_arena *arena = calloc(1, sizeof(*arena));
    if (!arena)
        weft_oom(sizeof(*arena));
    return arena;
}

void weft_arena_free(struct weft_arena *arena)
{
    if (!arena)
        return;
    while (arena->last) {
        struct block *gone = arena->last;
        arena->last = gone->prev;
        free(gone);
    }
    free(arena);
}

void weft_arena_reset(struct weft_arena *arena)
{
    struct block *largest = NULL;
    while (arena->last) {
        struct block *block = arena->last, *gone = block;
        arena->last = block->prev;
        if (!largest || block->size > largest->size) {
            gone = largest;
            largest = block;
        }
        free(gone);
    }
    if (largest) {
        largest->prev = NULL;
        largest->used = 0;
        ASAN_POISON_MEMORY_REGION(largest->byte, largest->size);
    }
    arena->last = largest;
}

static void add_block(struct weft_arena *arena, size_t wanted)
{
    size_t size = arena->last ? arena->last->size * 2 : BLOCK_MIN;
    if (size > BLOCK_MAX)
        size = BLOCK_MAX;
    if (size < wanted)
        size = wanted;
    struct block *block = malloc(sizeof(*block) + size);
    if (!block)
        weft_oom(size);
    *block = (struct block){.prev = arena->last, .size = size};
    ASAN_POISON_MEMORY_REGION(block->byte, size);
    arena->last = block;
}

/* Memory with whatever was there before, for callers that are about to fill it. */
static void *take(struct weft_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 4)
        weft_oom(bytes);
    size_t room = ((bytes + ALIGN - 1) & ~((size_t)ALIGN - 1)) + GAP;

    if (!arena->last || arena->last->size - arena->last->used < room)
        add_block(arena, room);
    struct block *block = arena->last;
    void *memory = block->byte + block->used;
    block->used += room;
    assert(block->used <= block->size);
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    return memory;
}

void *weft_arena_alloc(struct weft_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        weft_oom(SIZE_MAX);
    return memset(take(arena, bytes), 0, bytes);
}

void *weft_arena_dup(struct weft_arena *arena, const void *data, size_t size)
{
    void *memory = take(arena, size);
    if (size > 0)
        memcpy(memory, data, size);
    return memory;
}

char *weft_arena_strdup(struct weft_arena *arena, const char *text)
{
    return text ? weft_arena_dup(arena, text, strlen(text) + 1) : NULL;
}

const char *weft_arena_printf(struct weft_arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    assert(length >= 0);

    char *text = take(arena, (size_t)length + 1);
    (void)vsnprintf(text, (size_t)length + 1, fmt, again);
    va_end(again);
    return text;
}
