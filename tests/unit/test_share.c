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
    is_int(weft_share_turns(share, 3, 2), 2, "a second call gives two turns");
    ok(share[0].taken == 0 && share[1].taken == 1 && share[2].taken == 1,
       "the two turns go to the tenants that are behind");
    is_int(weft_share_turns(share, 3, 0), 0, "no turns are given");
    ok(share[0].taken + share[1].taken + share[2].taken == 0, "no turns are given to no tenant");
    is_int(weft_share_turns(share, 0, 5), 0, "no tenants take no turns");
}

/* Claims of one item, as a worker with a single slot makes them. */
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
    is_int(weft_share_turns(share, 3, 10), 10,
           "a tenant with more work takes the turns that others leave");
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
    is_int(share[0].taken, 0, "what was taken is given back");
    ok(share[0].pass == before, "cost nothing");
    weft_share_turns(share, 2, 3);
    is_int(share[0].taken, 3, "the tenant still has its turn");
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
    ok(one.pass == slow[0].pass && one.taken == slow[0].taken, "the price is the same alone");
    one.most = 3;
    is_int(weft_share_turns(&one, 1, 1000), 3, "alone, no more than there is");
    one.most = UINT32_MAX;
    is_int(weft_share_turns(&one, 1, UINT32_MAX), UINT32_MAX,
           "as many turns as can be counted are given");
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

/* The sum of the shares of a namespace. */
static uint32_t share_of(const struct weft_lane_share *lane, size_t count, int32_t ns)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += lane[i].ns == ns ? lane[i].share : 0;
    return sum;
}

static void test_lanes(void)
{
    enum { MANY = 5000, BATCH = 1000 };
    struct weft_lane_share *lane = calloc(MANY + 1, sizeof(*lane));
    for (int i = 0; i <= MANY; i++)
        lane[i] = (struct weft_lane_share){.ns = i == MANY / 2 ? 7 : 3, .lane = 1 + i};
    weft_share_lanes(lane, MANY + 1, BATCH, 12345);
    is_int(share_of(lane, MANY + 1, 7), BATCH / 2, "one lane gets half of the batch");
    is_int(share_of(lane, MANY + 1, 3), BATCH / 2, "5,000 lanes of another get no more");
    bool served[MANY + 2] = {false};
    size_t met = 0;
    for (uint64_t turn = 0; turn < MANY / (BATCH / 2); turn++) {
        weft_share_lanes(lane, MANY + 1, BATCH, (turn * (BATCH / 2)) << 32);
        for (int i = 0; i <= MANY; i++)
            if (lane[i].share && !served[lane[i].lane]) {
                served[lane[i].lane] = true;
                met++;
            }
    }
    is_int(met, MANY + 1, "the number that is drawn reaches every lane");

    static const struct {
        uint32_t batch;
        uint64_t random;
        uint32_t want[4]; /* of lanes 1, 2 and 3 of namespace 1, and of lane 4 of namespace 2 */
    } row[] = {
        {12, 0, {2, 2, 2, 6}},
        {7, 0, {2, 1, 1, 3}},
        {7, 1, {1, 1, 1, 4}},
        {1, 0, {1, 0, 0, 0}},
        {1, 1, {0, 0, 0, 1}},
        {0, 5, {0, 0, 0, 0}},
        {2, (uint64_t)2 << 32, {0, 0, 1, 1}},
    };
    for (size_t r = 0; r < WEFT_LEN(row); r++) {
        struct weft_lane_share few[] = {{4, 2, 0}, {2, 1, 0}, {1, 1, 0}, {3, 1, 0}};
        weft_share_lanes(few, WEFT_LEN(few), row[r].batch, row[r].random);
        for (size_t i = 0; i < WEFT_LEN(few); i++)
            is_int(few[i].share, row[r].want[i], "batch %u, lane %d", row[r].batch, few[i].lane);
    }
    weft_share_lanes(lane, 0, BATCH, 1); /* no lanes: nothing to divide */
    free(lane);
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
    test_lanes();
    return tap_done();
}
