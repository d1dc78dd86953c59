/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What malloc knows to be in use, against what the kernel knows to be in memory: the difference is
 * what could be given back, and some that cannot: stacks, static data, and pages that are partly
 * used. So growth counts, not size. malloc's own figure of free bytes is no help: it does not
 * change when their pages are given back.
 */

#include "base/heap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    WORTH_BYTES = 2 << 20,
    /*
     * Left alone, malloc raises both with the largest block ever freed, up to 32 and 64 MiB in each
     * arena. Bodies and groups of usual size stay below: 256 KiB for the first costs a fifth more
     * of CPU under payloads of half a megabyte, for the second a tenth in bulk; 1 MiB nothing that
     * can be measured. What stays at the ends is 1 MiB for each thread that allocates.
     */
    ALONE_BYTES = 1 << 20,
    END_BYTES = 1 << 20,
};

void weft_heap_limit(void)
{
    /* NOLINTBEGIN(concurrency-mt-unsafe): there is one thread yet */
    (void)mallopt(M_MMAP_THRESHOLD, ALONE_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, END_BYTES);
    /* NOLINTEND(concurrency-mt-unsafe) */
}

/* What is in memory and not backed by a file, in bytes; 0 when the kernel does not tell. */
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
    if (now <= idle || now - idle < WORTH_BYTES)
        return now < idle ? now : idle;
    (void)malloc_trim(0);
    return idle_bytes();
}

/*
 * malloc_trim() gives back what is free inside of all arenas, but the free end of the main one
 * only, and an arena keeps up to END_BYTES there: with ten threads more than all that is in use. A
 * block of about that size comes from the end; its pages are ours to give back.
 */
void weft_heap_rest(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = ALONE_BYTES - page;
    char *block = malloc(size);
    if (!block)
        return;
    size_t head = (page - (uintptr_t)block % page) % page;
    (void)madvise(block + head, (size - head) / page * page, MADV_DONTNEED);
    free(block);
}
