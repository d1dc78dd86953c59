/* SPDX-License-Identifier: Apache-2.0 */

#include "base/alloc.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void *weft_alloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        weft_oom(count * size);
    return memory;
}

void *weft_realloc(void *memory, size_t count, size_t size)
{
    void *moved = reallocarray(memory, count, size);
    if (!moved)
        weft_oom(count * size);
    return moved;
}

char *weft_strdup(const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        weft_oom(strlen(text) + 1);
    return copy;
}
