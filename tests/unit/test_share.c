/* SPDX-License-Identifier: Apache-2.0 */

/* Weighted turns between tenants, and the order within one. */

#include "core/share.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

static struct weft_share tenant(double weight)
{
    return (struct weft_share){.weight = weight, .most = UINT32_MAX};
}

static void test_turns(void)
{
    struct weft_share share[] = {tenant(1), tenant(1), tenant(1)};
    is_int(weft_share_turns(share, 3, 7), 7, "all turns are given");
    ok(share[0].taken == 3 && share[1].taken == 2 && share[2].taken == 2,
       "one after the other, ties to the earlier");
    is_int(weft_share_turns(share, 3, 2), 2, "two more");
    ok(share[0].taken == 0 && share[1].taken == 1 && share[2].taken == 1,
       "go to those who are behind");
    is_int(weft_share_turns(share, 3, 0), 0, "no turns");
    ok(share[0].taken + share[1].taken + share[2].taken == 0, "are nobody's");
    is_int(weft_share_turns(share, 0, 5), 0, "nobody takes nothing");
}

/* Claims of one: what a worker with a single slot does all day. */
static void test_weights_one_by_one(void)
{
    struct weft_share share[] = {tenant(1), tenant(2), tenant(7)};
    uint32_t got[3] = {0};
    for (int i = 0; i < 10000; i++) {
        weft_share_turns(share, 3, 1);
        for (int t = 0; t < 3; t++)
            got[t] += share[t].taken;
    }
    ok(abs((int)got[0] - 1000) <= 1 && abs((int)got[1] - 2000) <= 1 && abs((int)got[2] - 7000) <= 1,
       "10,000 claims of one: %u, %u, %u", got[0], got[1], got[2]);
}

static void test_weights_bulk(void)
{
    struct weft_share share[] = {tenant(1), tenant(2), tenant(7)};
    uint32_t got[3] = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        weft_share_turns(share, 3, i % 23);
        for (int t = 0; t < 3; t++)
            got[t] += share[t].taken;
    }
    double all = got[0] + got[1] + got[2];
    ok(fabs(got[0] - all / 10) <= 1 && fabs(got[1] - all / 5) <= 1.5 &&
           fabs(got[2] - all * 7 / 10) <= 2,
       "claims of any size: %u, %u, %u", got[0], got[1], got[2]);
    struct weft_share far[] = {tenant(1), tenant(1000)};
    weft_share_turns(far, 2, 1001);
    ok(far[0].taken == 1 && far[1].taken == 1000, "the largest ratio: %u, %u", far[0].taken,
       far[1].taken);
}

static void test_most(void)
{
    struct weft_share share[] = {tenant(1), tenant(1), tenant(1)};
    share[0].most = 1;
    share[1].most = 0;
    is_int(weft_share_turns(share, 3, 10), 10, "who has more takes what others leave");
    ok(share[0].taken == 1 && share[1].taken == 0 && share[2].taken == 9, "1, 0 and 9");
    share[2].most = 4;
    is_int(weft_share_turns(share, 3, 10), 5, "no more than there is");
    share[0].most = share[1].most = share[2].most = 0;
    is_int(weft_share_turns(share, 3, 10), 0, "nothing at all");
}

static void test_refund(void)
{
    struct weft_share share[] = {tenant(2), tenant(1)};
    double before = share[0].pass;
    weft_share_turns(share, 2, 9);
    is_int(share[0].taken, 6, "six turns");
    weft_share_refund(&share[0], 6);
    is_int(share[0].taken, 0, "all given back");
    ok(share[0].pass == before, "cost nothing");
    weft_share_turns(share, 2, 3);
    is_int(share[0].taken, 3, "it is still its turn");
    weft_share_refund(&share[0], 1);
    is_int(share[0].taken, 2, "two of three used");
    ok(share[0].pass == before + 1, "two are charged");
}

/* One tenant alone must come out as if its turns had been counted one by one. */
static void test_alone(void)
{
    struct weft_share one = tenant(4), slow[2] = {tenant(4), tenant(1)};
    slow[1].most = 0;
    is_int(weft_share_turns(&one, 1, 1000), 1000, "alone, all turns");
    is_int(weft_share_turns(slow, 2, 1000), 1000, "beside one who has nothing, too");
    ok(one.pass == slow[0].pass && one.taken == slow[0].taken, "at the same price");
    one.most = 3;
    is_int(weft_share_turns(&one, 1, 1000), 3, "alone, no more than there is");
    one.most = UINT32_MAX;
    is_int(weft_share_turns(&one, 1, UINT32_MAX), UINT32_MAX, "as many as can be counted");
}

static void test_order(void)
{
    struct weft_head head[] = {
        {.queue = 3, .priority = 0, .ord = 5},
        {.queue = 1, .priority = 0, .ord = 9},
        {.queue = 2, .priority = 10, .ord = 9},
        {.queue = 1, .priority = 10, .ord = 9},
        {.queue = 4, .priority = -1, .ord = 1},
        {.queue = 5, .priority = 10, .ord = INT64_MAX},
        {.queue = 6, .priority = 10, .ord = 2},
        {.queue = 7, .priority = -32768, .ord = INT64_MIN},
        {.queue = 8, .priority = 32767, .ord = 99},
    };
    static const int32_t wanted[] = {8, 6, 1, 2, 5, 3, 1, 4, 7};
    weft_share_order(head, WEFT_LEN(head));
    for (size_t i = 0; i < WEFT_LEN(head); i++)
        is_int(head[i].queue, wanted[i], "place %zu", i);
    weft_share_order(head, 0);
    is_int(head[0].queue, 8, "nothing to put in order");
}

int main(void)
{
    test_turns();
    test_weights_one_by_one();
    test_weights_bulk();
    test_most();
    test_refund();
    test_alone();
    test_order();
    return tap_done();
}
