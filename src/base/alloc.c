/* SPDX-License-Identifier: Apache-2.0 */

#include "base/alloc.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* ---- Returning freed memory to the system ---------------------------------------------------- */

enum {
    TRIM_MIN_BYTES = 2 << 20,
    /*
     * Unless set, malloc raises both thresholds with the largest block ever freed, up to 32 and
     * 64 MiB in each arena. Usual bodies and groups stay below 1 MiB. Measured: an mmap threshold
     * of 256 KiB costs 20 % more CPU with payloads of half a megabyte, a trim threshold of 256 KiB
     * 10 % in bulk; 1 MiB costs nothing. Up to 1 MiB then stays with each thread that allocates.
     */
    MMAP_BYTES = 1 << 20,
    TRIM_BYTES = 1 << 20,
};

void weft_heap_limit(void)
{
    /* NOLINTBEGIN(concurrency-mt-unsafe): there is one thread yet */
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
    /* NOLINTEND(concurrency-mt-unsafe) */
}

/* Resident bytes that no file backs; 0 if /proc does not tell. */
static size_t anonymous_bytes(void)
{
    size_t pages = 0, shared = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    /* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
    if (fscanf(file, "%*u %zu %zu", &pages, &shared) != 2 || pages < shared)
        pages = shared = 0;
    (void)fclose(file);
    return (pages - shared) * (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * Idle memory, estimated as resident anonymous memory (from the kernel) minus the bytes in use
 * (from malloc). That includes memory that cannot be given back: stacks, static data, and partly
 * used pages. So its growth decides, not its size. malloc's own count of free bytes does not help:
 * it does not change when their pages are given back.
 */
static size_t idle_bytes(void)
{
    size_t resident = anonymous_bytes();
    struct mallinfo2 info = mallinfo2();
    size_t used = info.uordblks + info.hblkhd;
    return resident > used ? resident - used : 0;
}

size_t weft_heap_trim(size_t idle)
{
    size_t now = idle_bytes();
    if (now <= idle || now - idle < TRIM_MIN_BYTES)
        return now < idle ? now : idle;
    (void)malloc_trim(0);
    return idle_bytes();
}

/*
 * malloc_trim() gives back free pages inside all arenas, but the free end of the main arena only.
 * Each arena keeps up to TRIM_BYTES there: with ten threads more than all memory in use. A block of
 * about that size is allocated from the end, so this function may give its pages back.
 */
void weft_heap_rest(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = MMAP_BYTES - page;
    char *block = malloc(size);
    if (!block)
        return;
    size_t head = (page - (uintptr_t)block % page) % page;
    (void)madvise(block + head, (size - head) / page * page, MADV_DONTNEED);
    free(block);
}
