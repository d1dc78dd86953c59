/* SPDX-License-Identifier: Apache-2.0 */

/* Free memory goes back to the system, and only when it is worth it. */

#include "base/heap.h"
#include "tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#define OWN_MALLOC                                                                                 \
    (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) &&                      \
     !__has_feature(memory_sanitizer))
#else
#define OWN_MALLOC 1
#endif

enum { BLOCKS = 1024, BLOCK = 64 << 10, NEAR = 8 << 20 };

/* Bytes of this process in memory. */
static size_t resident(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*u %zu", &pages) != 1) /* NOLINT(cert-err34-c) */
        pages = 0;
    if (file)
        (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* 64 MiB in the arena of a thread, of which the last block stays and holds the others in place. */
static void *burst(void *context)
{
    static void *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(BLOCK);
        if (block[i])
            memset(block[i], 1, BLOCK);
    }
    for (size_t i = 0; i + 1 < BLOCKS; i++)
        free(block[i]);
    *(void **)context = block[BLOCKS - 1];
    return NULL;
}

static void test_trim(void)
{
    size_t idle = weft_heap_trim(0), before = resident();
    pthread_t thread;
    void *left = NULL;
    if (!ok(pthread_create(&thread, NULL, burst, &left) == 0, "a thread"))
        return;
    pthread_join(thread, NULL);
    ok(left != NULL && resident() > before + ((size_t)BLOCKS * BLOCK) / 2,
       "what a thread freed stays in memory");
    size_t after = weft_heap_trim(idle);
    ok(resident() < before + NEAR, "trimming gives it back");
    ok(after < idle + NEAR, "and tells how much is left: %zu kB, before %zu", after / 1024,
       idle / 1024);
    size_t large = (size_t)1 << 40;
    ok(weft_heap_trim(large) < large, "less than before is taken note of");
    free(left);
}

int main(void)
{
    weft_heap_limit();
    if (OWN_MALLOC)
        test_trim();
    else
        ok(weft_heap_trim(weft_heap_trim(0)) < SIZE_MAX, "a sanitizer has a malloc of its own");
    return tap_done();
}
