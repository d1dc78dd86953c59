/* SPDX-License-Identifier: Apache-2.0 */

/* Free memory goes back to the system, and only when it is worth it. */

#include "base/alloc.h"
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
       "memory that a thread freed stays resident");
    size_t after = weft_heap_trim(idle);
    ok(resident() < before + NEAR, "trimming gives the memory back");
    ok(after < idle + NEAR, "trimming returns the remaining size: %zu kB, before %zu", after / 1024,
       idle / 1024);
    size_t large = (size_t)1 << 40;
    ok(weft_heap_trim(large) < large,
       "trimming returns the remaining size also when that is less than the given one");
    free(left);
}

/* What a thread keeps at the end of its arena, before and after it rests. */
struct rest {
    size_t began, before, after;
    bool whole;
};

static void *work_and_rest(void *context)
{
    struct rest *rest = context;
    enum { PIECES = 7, PIECE = 128 << 10 };
    char *piece[PIECES] = {0};
    char *stays = malloc(BLOCK); /* so that there is an arena, and something in front of the end */
    rest->began = resident();
    for (size_t i = 0; i < PIECES; i++) {
        piece[i] = malloc(PIECE);
        if (piece[i])
            memset(piece[i], 1, PIECE);
    }
    if (stays)
        memset(stays, 2, BLOCK);
    for (size_t i = 0; i < PIECES; i++)
        free(piece[i]);
    (void)weft_heap_trim(0);
    rest->before = resident();
    weft_heap_rest();
    rest->after = resident();
    rest->whole = stays != NULL;
    for (size_t i = 0; stays && i < BLOCK; i++)
        rest->whole &= stays[i] == 2;
    free(stays);
    return NULL;
}

static void test_rest(void)
{
    struct rest rest = {0};
    pthread_t thread;
    if (!ok(pthread_create(&thread, NULL, work_and_rest, &rest) == 0, "a thread"))
        return;
    pthread_join(thread, NULL);
    ok(rest.before > rest.began + (512 << 10), "trimming does not reach the end of its arena");
    ok(rest.after + (512 << 10) < rest.before, "resting gives it back: %zu kB, after it %zu",
       rest.before / 1024, rest.after / 1024);
    ok(rest.whole, "resting changes no memory that is in use");
}

int main(void)
{
    weft_heap_limit();
    if (OWN_MALLOC) {
        test_trim();
        test_rest();
    } else {
        weft_heap_rest();
        ok(weft_heap_trim(weft_heap_trim(0)) < SIZE_MAX, "a sanitizer has a malloc of its own");
    }
    return tap_done();
}
