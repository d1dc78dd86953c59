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

static struct weft_id_column column_of(const struct item *item, size_t count)
{
    return (struct weft_id_column){
        .first = count ? &item[0].id : NULL, .stride = sizeof(*item), .count = count};
}

static struct weft_chunks split(const struct item *item, size_t count, const bool *skip)
{
    const struct weft_id_column column = column_of(item, count);
    return weft_chunks_by_id(&column, skip, WEFT_REPEATS_LATER, arena);
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
    ok(wrong == 0 && skipped == 0, "%s: every item once, except the skipped ones", name);
    return covered;
}

static void test_empty(void)
{
    bool skip[3] = {true, true, true};
    struct item item[3] = {{.id = id_of(1)}, {.id = id_of(1)}, {.id = id_of(2)}};
    is_int(split(NULL, 0, NULL).count, 0, "a call without items has no chunk");
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

/* ---- Repeats in one transaction -------------------------------------------------------------- */

static struct weft_chunks split_together(const struct item *item, size_t count, const bool *skip)
{
    const struct weft_id_column column = column_of(item, count);
    return weft_chunks_by_id(&column, skip, WEFT_REPEATS_TOGETHER, arena);
}

/* Whether items i and j of the call are in the same chunk. */
static bool same_chunk(const struct weft_chunks *chunks, size_t i, size_t j)
{
    for (size_t c = 0; c < chunks->count; c++) {
        int held = 0;
        for (size_t k = 0; k < chunks->chunk[c].count; k++)
            held += chunks->chunk[c].item[k] == i || chunks->chunk[c].item[k] == j;
        if (held > 0)
            return held == 2;
    }
    return false;
}

/* Every item once, sorted by id and within an id in the order of the call, 1 to 1,000 each. */
static void check_together(const struct item *item, size_t count, const bool *skip,
                           const char *name)
{
    struct weft_chunks chunks = split_together(item, count, skip);
    const struct weft_id_column column = column_of(item, count);
    size_t covered = 0, wanted = 0, large = 0, unsorted = 0, late = 0, apart = 0, runs = 0;
    size_t last = SIZE_MAX;
    for (size_t c = 0; c < chunks.count; c++) {
        const struct weft_chunk *chunk = &chunks.chunk[c];
        large += chunk->count > WEFT_BATCH_MAX || chunk->count == 0 || chunk->round != 0;
        for (size_t k = 0; k < chunk->count; k++, covered++) {
            size_t i = chunk->item[k];
            int order = last == SIZE_MAX ? -1 : weft_id_cmp(&item[last].id, &item[i].id);
            unsorted += order > 0;
            late += order == 0 && last > i;
            apart += order == 0 && k == 0;
            last = i;
        }
        size_t ids, seen = 0;
        const struct weft_id *id = weft_chunk_ids(chunk, &column, arena, &ids);
        for (size_t k = 0; k < chunk->count; k = weft_chunk_end(chunk, &column, k), seen++)
            runs += seen >= ids || weft_id_cmp(&id[seen], &item[chunk->item[k]].id) != 0 ||
                    weft_chunk_find(chunk, &column, &id[seen]) != k;
        runs += seen != ids;
    }
    for (size_t i = 0; i < count; i++)
        wanted += !(skip && skip[i]);
    is_int(covered, wanted, "%s: every item once, except the skipped ones", name);
    ok(large == 0, "%s: 1 to 1,000 items each, all of round 0", name);
    ok(unsorted == 0 && late == 0, "%s: sorted by id, the items of one id in order", name);
    ok(apart == 0, "%s: no id is in two chunks", name);
    ok(runs == 0, "%s: the ids of a chunk and the places of their items agree", name);
}

static void test_together(void)
{
    static const unsigned number[] = {7, 3, 7, 1, 7, 3};
    static const size_t wanted[] = {3, 1, 5, 0, 2, 4};
    struct item item[WEFT_LEN(number)];
    for (size_t i = 0; i < WEFT_LEN(number); i++)
        item[i] = (struct item){.id = id_of(number[i])};
    struct weft_chunks chunks = split_together(item, WEFT_LEN(number), NULL);
    is_int(chunks.count, 1, "an id that comes three times is one transaction");
    for (size_t k = 0; k < WEFT_LEN(wanted); k++)
        is_int(chunks.chunk[0].item[k], wanted[k], "together: place %zu", k);
    is_int(split_together(NULL, 0, NULL).count, 0, "together: nothing is no chunk");
    bool skip[WEFT_LEN(number)] = {[2] = true};
    check_together(item, WEFT_LEN(number), skip, "one is skipped");
}

/* 999 ids, then two items of one id: they do not fit the first chunk, so both go to the second. */
static void test_together_bound(void)
{
    enum { COUNT = 1001 };
    struct item *item = weft_new_array(arena, struct item, (size_t)3 * WEFT_BATCH_MAX);
    for (size_t i = 0; i < COUNT; i++)
        item[i].id = id_of(i < 999 ? (unsigned)i : 2000);
    struct weft_chunks chunks = split_together(item, COUNT, NULL);
    is_int(chunks.count, 2, "1,001 items are two transactions");
    is_int(chunks.chunk[0].count, 999, "the first ends where the next id would not fit");
    ok(same_chunk(&chunks, 999, 1000), "the two items of one id are together");
    check_together(item, COUNT, NULL, "cut before a repeat");
    item[500].id = id_of(2000);
    chunks = split_together(item, COUNT, NULL);
    is_int(chunks.chunk[0].count, 998, "three items of one id, of which the first came early");
    check_together(item, COUNT, NULL, "an early item");

    /* 10 other ids, then one id 2,500 times: more than one transaction holds. */
    for (size_t i = 0; i < 2510; i++)
        item[i].id = id_of(i < 10 ? (unsigned)i : 3000);
    chunks = split_together(item, 2510, NULL);
    static const size_t size[] = {10, 1000, 1000, 500};
    is_int(chunks.count, WEFT_LEN(size), "one id 2,500 times is continued");
    size_t next = 10;
    for (size_t c = 0; c < chunks.count && c < WEFT_LEN(size); c++) {
        is_int(chunks.chunk[c].count, size[c], "chunk %zu", c);
        for (size_t k = 0; k < chunks.chunk[c].count && c > 0; k++)
            next += chunks.chunk[c].item[k] == next;
    }
    is_int(next, 2510, "its items keep their order over the chunks");
}

static void test_together_random(void)
{
    uint64_t random = 0x2545f4914f6cdd1du;
    for (int round = 0; round < 20; round++) {
        struct item item[2500];
        bool skip[WEFT_LEN(item)];
        char name[32];
        for (size_t i = 0; i < WEFT_LEN(item); i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            item[i] =
                (struct item){.id = id_of((unsigned)(random >> 33) % (8u + 90u * (unsigned)round))};
            skip[i] = (random >> 60) == 0;
        }
        (void)snprintf(name, sizeof(name), "together %d", round);
        check_together(item, WEFT_LEN(item), round % 2 ? skip : NULL, name);
    }
}

int main(void)
{
    arena = weft_arena_new();
    test_empty();
    test_repeats();
    test_bound();
    test_random();
    test_together();
    test_together_bound();
    test_together_random();
    weft_arena_free(arena);
    return tap_done();
}
