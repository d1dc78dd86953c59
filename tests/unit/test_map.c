/* SPDX-License-Identifier: Apache-2.0 */

/* The map: finds what was put, whatever the key's bytes, through every growth. */

#include "base/map.h"
#include "tap.h"

static void test_small(void)
{
    struct weft_map map = {0};
    int a, b;
    ok(weft_map_find(&map, "x", 1) == NULL, "a zeroed map is empty");
    weft_map_put(&map, "x", 1, &a);
    ok(weft_map_find(&map, "x", 1) == &a, "a key that was put is found");
    ok(weft_map_find(&map, "y", 1) == NULL, "a key that was not put is not found");
    weft_map_put(&map, "x", 1, &b);
    ok(weft_map_find(&map, "x", 1) == &b, "a second put replaces the value");
    is_int(map.count, 1, "a second put of a key adds no entry");
    weft_map_put(&map, "", 0, &a);
    ok(weft_map_find(&map, "", 0) == &a, "the empty key is a key");
    weft_map_put(&map, "x\0y", 3, &a);
    ok(weft_map_find(&map, "x\0y", 3) == &a, "a key may hold NUL");
    ok(weft_map_find(&map, "x\0z", 3) == NULL, "keys are compared behind a NUL");
    ok(weft_map_find(&map, "x", 1) == &b, "a prefix is another key");
    weft_map_done(&map);
    ok(map.count == 0 && weft_map_find(&map, "x", 1) == NULL, "empty again");
    weft_map_done(&map);
    weft_map_put(&map, "x", 1, &a);
    ok(map.count == 1 && weft_map_find(&map, "x", 1) == &a,
       "a map that was ended twice takes and finds a key");
    weft_map_done(&map);
}

/* Keys are copied: the caller's buffer may change. */
static void test_copies(void)
{
    struct weft_map map = {0};
    char key[] = "lane";
    int value;
    weft_map_put(&map, key, 4, &value);
    key[0] = 'c';
    ok(weft_map_find(&map, "lane", 4) == &value && !weft_map_find(&map, "cane", 4),
       "the key is the map's own");
    weft_map_done(&map);
}

static void test_many(void)
{
    enum { MANY = 20000 };
    static int value[MANY];
    struct weft_map map = {0};
    int wrong = 0;
    for (int32_t i = 0; i < MANY; i++) {
        weft_map_put(&map, &i, sizeof(i), &value[i]);
        /* Everything so far, at the moments around a growth. */
        for (int32_t k = 0; (i & (i + 1)) == 0 && k <= i; k++)
            wrong += weft_map_find(&map, &k, sizeof(k)) != &value[k];
    }
    for (int32_t i = 0; i < MANY; i++)
        wrong += weft_map_find(&map, &i, sizeof(i)) != &value[i];
    for (int32_t i = MANY; i < 2 * MANY; i++)
        wrong += weft_map_find(&map, &i, sizeof(i)) != NULL;
    is_int(wrong, 0, "20,000 numbers, none lost, none too many");
    is_int(map.count, MANY, "the count is the number of keys");
    ok((map.capacity & (map.capacity - 1)) == 0 && map.count <= map.capacity / 4 * 3,
       "never more than three quarters full");
    weft_map_done(&map);
}

/* Keys that share a run of entries stay reachable when one of them is removed. */
static void test_remove(void)
{
    enum { MANY = 5000 };
    static int value[MANY];
    struct weft_map map = {0};
    int wrong = 0;
    weft_map_remove(&map, "x", 1);
    for (int32_t i = 0; i < MANY; i++)
        weft_map_put(&map, &i, sizeof(i), &value[i]);
    for (int32_t i = 0; i < MANY; i += 3)
        weft_map_remove(&map, &i, sizeof(i));
    weft_map_remove(&map, "none", 4);
    for (int32_t i = 0; i < MANY; i++)
        wrong += weft_map_find(&map, &i, sizeof(i)) != (i % 3 ? &value[i] : NULL);
    is_int(wrong, 0, "every third of 5,000 removed, and no other");
    is_int(map.count, MANY - (MANY + 2) / 3, "the count is the number of keys that are left");
    for (int32_t i = 0; i < MANY; i += 3)
        weft_map_put(&map, &i, sizeof(i), &value[i]);
    for (int32_t i = 0; i < MANY; i++)
        wrong += weft_map_find(&map, &i, sizeof(i)) != &value[i];
    is_int(wrong, 0, "put again, all are there");
    weft_map_done(&map);
}

/* Keys that differ in one byte, at any place: a weak hash would make long runs. */
static void test_spread(void)
{
    struct weft_map map = {0};
    int value;
    size_t longest = 0, run = 0;
    char key[64] = {0};
    for (size_t at = 0; at < sizeof(key); at++)
        for (int byte = 0; byte < 256; byte++) {
            key[at] = (char)byte;
            weft_map_put(&map, key, sizeof(key), &value);
            key[at] = 0;
        }
    is_int(map.count, 64 * 255 + 1, "every one of them");
    for (size_t i = 0; i < map.capacity; i++) {
        run = map.entry[i].key ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    ok(longest < 400, "the longest run of %zu entries is %zu", map.count, longest);
    weft_map_done(&map);
}

int main(void)
{
    test_small();
    test_copies();
    test_many();
    test_remove();
    test_spread();
    return tap_done();
}
