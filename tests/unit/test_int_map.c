/* SPDX-License-Identifier: Apache-2.0 */

/* The index by number: finds what is in it through growth, removals and shrinking. */

#include "base/map.h"
#include "tap.h"

enum { MANY = 20000 };

struct item {
    int32_t id;
    bool in;
};

static size_t wrong_ones(const struct weft_int_map *index, struct item *item)
{
    size_t wrong = 0;
    for (size_t i = 0; i < MANY; i++)
        wrong += weft_int_map_find(index, item[i].id) != (item[i].in ? &item[i] : NULL);
    return wrong;
}

static void test_small(void)
{
    struct weft_int_map index = {0};
    struct item one = {.id = 7}, other = {.id = -7};
    ok(weft_int_map_find(&index, 7) == NULL, "a zeroed index is empty");
    weft_int_map_remove(&index, 7);
    weft_int_map_put(&index, &one);
    weft_int_map_put(&index, &other);
    ok(weft_int_map_find(&index, 7) == &one && weft_int_map_find(&index, -7) == &other,
       "both items are found");
    weft_int_map_remove(&index, 8);
    is_int(index.count, 2, "removal of a number that is not there changes nothing");
    weft_int_map_remove(&index, 7);
    ok(!weft_int_map_find(&index, 7) && weft_int_map_find(&index, -7) == &other,
       "a removed number is not found, the other is");
    weft_int_map_done(&index);
    ok(weft_int_map_find(&index, -7) == NULL, "empty when done");
}

/* Puts and removes at random: members that share a run of slots stay reachable. */
static void test_many(void)
{
    static struct item item[MANY];
    struct weft_int_map index = {0};
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < MANY; i++)
        item[i].id = (int32_t)i * 3 - MANY;
    for (size_t step = 0; step < 10 * (size_t)MANY; step++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        struct item *one = &item[random % MANY];
        if (one->in)
            weft_int_map_remove(&index, one->id);
        else
            weft_int_map_put(&index, one);
        one->in = !one->in;
    }
    is_int(wrong_ones(&index, item), 0, "all found, and no other, after 200,000 steps");
    size_t capacity = index.capacity;
    for (size_t i = 0; i < MANY; i++)
        if (i % 100 != 0 && item[i].in) {
            weft_int_map_remove(&index, item[i].id);
            item[i].in = false;
        }
    is_int(wrong_ones(&index, item), 0, "the index is right after most items were removed");
    ok(index.capacity * 8 < capacity, "the slots went too: %zu of %zu", index.capacity, capacity);
    weft_int_map_done(&index);
}

int main(void)
{
    test_small();
    test_many();
    return tap_done();
}
