/* SPDX-License-Identifier: Apache-2.0 */

#include "base/arena.h"
#include "tap.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Fills a few megabytes with pieces of many sizes and looks at each: zeroed, aligned, apart. */
static void test_pieces(void)
{
    enum { COUNT = 5000 };
    struct weft_arena *arena = weft_arena_new();
    unsigned char *piece[COUNT];
    size_t dirty = 0, crooked = 0, changed = 0;
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = i * 7919 % 1500 + 1;
        piece[i] = weft_arena_alloc(arena, size, 1);
        crooked += (uintptr_t)piece[i] % _Alignof(max_align_t) != 0;
        for (size_t at = 0; at < size; at++)
            dirty += piece[i][at] != 0;
        memset(piece[i], (int)(i % 255) + 1, size);
    }
    for (size_t i = 0; i < COUNT; i++)
        for (size_t at = 0; at < i * 7919 % 1500 + 1; at++)
            changed += piece[i][at] != i % 255 + 1;
    is_int(dirty, 0, "memory is zeroed");
    is_int(crooked, 0, "memory is aligned");
    is_int(changed, 0, "pieces do not overlap");
    weft_arena_free(arena);
}

static void test_sizes(void)
{
    struct weft_arena *arena = weft_arena_new();
    ok(weft_arena_alloc(arena, 0, 8) != NULL, "nothing at all gives a pointer");
    unsigned char *large = weft_arena_alloc(arena, 5, 1 << 20);
    large[(5 << 20) - 1] = 1;
    ok(large[0] == 0, "larger than any block");
    uint32_t *numbers = weft_new_array(arena, uint32_t, 1000);
    numbers[999] = 7;
    ok(numbers[998] == 0, "an array of a type");
    weft_arena_free(arena);
    weft_arena_free(NULL);
}

static void test_copies(void)
{
    struct weft_arena *arena = weft_arena_new();
    char text[] = "thread";
    char *copy = weft_arena_strdup(arena, text);
    char *bytes = weft_arena_dup(arena, "a\0b", 3);
    text[0] = 'X';
    is_str(copy, "thread", "a copy does not follow its original");
    ok(memcmp(bytes, "a\0b", 3) == 0, "bytes with a NUL");
    ok(weft_arena_strdup(arena, NULL) == NULL, "no text stays no text");
    ok(weft_arena_dup(arena, NULL, 0) != NULL, "a copy of nothing");
    is_str(weft_arena_printf(arena, "%d-%s", 7, "x"), "7-x", "formatted text");
    const char *wide = weft_arena_printf(arena, "%10000d", 7);
    ok(strlen(wide) == 10000 && wide[9999] == '7', "formatted text larger than a block");
    weft_arena_free(arena);
}

static void test_reset(void)
{
    struct weft_arena *arena = weft_arena_new();
    weft_arena_reset(arena);
    ok(weft_arena_alloc(arena, 1, 1) != NULL, "an empty arena can be reset");
    /* The large piece opens a block of its own, so its address is where that block begins. */
    unsigned char *large = weft_arena_alloc(arena, 1, 2000000);
    memset(large, 0xee, 2000000);
    (void)weft_arena_alloc(arena, 1, 1);
    weft_arena_reset(arena);
    void *volatile squatter = malloc(2000000); /* takes the place of a block that was freed */
    unsigned char *again = weft_arena_alloc(arena, 1, 1900000);
    ok(again == large, "the largest block is used again");
    size_t dirty = 0;
    for (size_t i = 0; i < 1900000; i++)
        dirty += again[i] != 0;
    is_int(dirty, 0, "memory that is given again is zeroed");
    free(squatter);
    weft_arena_free(arena);
}

static void leave(size_t wanted)
{
    _exit(wanted == SIZE_MAX ? 7 : 8);
}

static void come_back(size_t wanted)
{
    (void)wanted;
}

/* How a child ends that asks for more memory than there is. */
static int end_of_greedy_child(void (*hook)(size_t))
{
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        (void)close(STDERR_FILENO);
        weft_set_oom(hook);
        (void)weft_arena_alloc(weft_arena_new(), SIZE_MAX / 2, 4);
        _exit(0);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    return status;
}

static void test_oom(void)
{
    int status = end_of_greedy_child(leave);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 7, "the hook gets the requested size");
    status = end_of_greedy_child(come_back);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "a hook that returns does not help");
    status = end_of_greedy_child(NULL);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "without a hook the process aborts");
}

int main(void)
{
    test_pieces();
    test_sizes();
    test_copies();
    test_reset();
    test_oom();
    return tap_done();
}
