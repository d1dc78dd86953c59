/* SPDX-License-Identifier: Apache-2.0 */

/* Splitting a call into transactions: order, repeats, bounds. */

#include "tap.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/limits.h"
#include "engine/tx/batch.h"

#include <stdlib.h>

/* As an operation has them: the id is somewhere in a larger item. */
struct item {
    int before;
    struct weft_id id;
    int after;
};

static struct weft_arena *arena;

static struct weft_id id_of(unsigned number)
{
    return (struct weft_id){.byte = {[14] = (uint8_t)(number >> 8), [15] = (uint8_t)number}};
}

static struct weft_chunks split(const struct item *item, size_t count, const bool *skip)
{
    const struct weft_id_column column = {
        .first = count ? &item[0].id : NULL, .stride = sizeof(*item), .count = count};
    return weft_chunks_by_id(&column, skip, arena);
}

/* What must hold of every split, whatever went in. Returns the number of items that are covered. */
static size_t check_split(const struct item *item, size_t count, const bool *skip, const char *name)
{
    struct weft_chunks chunks = split(item, count, skip);
    size_t *seen = weft_new_array(arena, size_t, count + 1);
    size_t covered = 0, unsorted = 0, large = 0, late = 0, skipped = 0;
    for (size_t c = 0; c < chunks.count; c++) {
        const struct weft_chunk *chunk = &chunks.chunk[c];
        large += chunk->count > WEFT_BATCH_MAX || chunk->count == 0;
        for (size_t k = 0; k < chunk->count; k++) {
            size_t i = chunk->item[k];
            covered++;
            seen[i]++;
            skipped += skip && skip[i];
            /* Strictly ascending: sorted, and no id twice. */
            unsorted += k > 0 && weft_id_cmp(&item[chunk->item[k - 1]].id, &item[i].id) >= 0;
            /* The original before its repeat. */
            for (size_t j = i + 1; j < count; j++)
                late += seen[j] > 0 && weft_id_cmp(&item[j].id, &item[i].id) == 0;
        }
    }
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += seen[i] != !(skip && skip[i]);
    ok(unsorted == 0, "%s: each chunk is sorted and has no id twice", name);
    ok(large == 0, "%s: 1 to 1,000 items each", name);
    ok(late == 0, "%s: repeats keep their order", name);
    ok(wrong == 0 && skipped == 0, "%s: every item once, but for those to skip", name);
    return covered;
}

static void test_empty(void)
{
    bool skip[3] = {true, true, true};
    struct item item[3] = {{.id = id_of(1)}, {.id = id_of(1)}, {.id = id_of(2)}};
    is_int(split(NULL, 0, NULL).count, 0, "nothing is no chunk");
    is_int(split(item, 3, skip).count, 0, "items that are all skipped make no chunk");
}

static void test_repeats(void)
{
    static const unsigned number[] = {7, 3, 7, 1, 7, 3};
    struct item item[WEFT_LEN(number)];
    for (size_t i = 0; i < WEFT_LEN(number); i++)
        item[i] = (struct item){.id = id_of(number[i])};
    struct weft_chunks chunks = split(item, WEFT_LEN(number), NULL);
    static const size_t wanted[] = {3, 1, 0, 5, 2, 4};
    is_int(chunks.count, 3, "an id that comes three times makes three rounds");
    size_t at = 0;
    for (size_t c = 0; c < chunks.count; c++)
        for (size_t k = 0; k < chunks.chunk[c].count; k++, at++)
            is_int(chunks.chunk[c].item[k], wanted[at], "place %zu", at);
    is_int(at, WEFT_LEN(wanted), "the chunks hold no other items");
    /* The second of three is skipped: the third moves up a round. */
    bool skip[WEFT_LEN(number)] = {[2] = true};
    chunks = split(item, WEFT_LEN(number), skip);
    is_int(chunks.count, 2, "a skipped item makes no round");
    is_int(chunks.chunk[1].item[1], 4, "the repeat of a skipped item takes its place");
}

static void test_bound(void)
{
    static const size_t size[] = {1, 999, 1000, 1001, 2000, 2001, 3500};
    for (size_t s = 0; s < WEFT_LEN(size); s++) {
        char name[32];
        struct item *item = weft_new_array(arena, struct item, size[s]);
        for (size_t i = 0; i < size[s]; i++)
            item[i].id = id_of((unsigned)(size[s] - i));
        (void)snprintf(name, sizeof(name), "%zu items", size[s]);
        is_int(check_split(item, size[s], NULL, name), size[s], "%s are covered", name);
        is_int(split(item, size[s], NULL).count, (size[s] + WEFT_BATCH_MAX - 1) / WEFT_BATCH_MAX,
               "%s: no more chunks than needed", name);
    }
    /* 1,500 items with one id each time: one round, one chunk per item. */
    struct item *same = weft_new_array(arena, struct item, 1500);
    is_int(check_split(same, 1500, NULL, "one id"), 1500, "one id 1,500 times");
    is_int(split(same, 1500, NULL).count, 1500, "one id 1,500 times is 1,500 transactions");
}

static void test_random(void)
{
    uint64_t random = 0x9e3779b97f4a7c15u;
    for (int round = 0; round < 20; round++) {
        struct item item[400];
        bool skip[400];
        char name[32];
        for (size_t i = 0; i < WEFT_LEN(item); i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            item[i] = (struct item){
                .id = id_of((unsigned)(random >> 33) % (20u + 20u * (unsigned)round))};
            skip[i] = (random >> 60) == 0;
        }
        (void)snprintf(name, sizeof(name), "random %d", round);
        (void)check_split(item, WEFT_LEN(item), round % 2 ? skip : NULL, name);
    }
}

int main(void)
{
    arena = weft_arena_new();
    test_empty();
    test_repeats();
    test_bound();
    test_random();
    weft_arena_free(arena);
    return tap_done();
}
