/* SPDX-License-Identifier: Apache-2.0 */

/* The rings of claimable queues: members, turns, sweeps. */

#include "tap.h"

#include "engine/names/names.h"
#include "engine/ready/rings.h"

static struct weft_queue queue_of(int32_t id, int32_t tenant, const char *lane, const char *kind)
{
    return (struct weft_queue){
        .id = id, .ns = 1, .lane = 9, .tenant = tenant, .lane_name = lane, .kind = kind};
}

static size_t queues_in(const struct weft_rings *rings, const char *lane, const char *kind)
{
    const struct weft_ring *ring = weft_rings_of(rings, 1, lane, kind);
    return ring ? ring->queues : 0;
}

static void test_members(void)
{
    struct weft_rings rings = {0};
    struct weft_queue a = queue_of(1, 10, "x", "k"), b = queue_of(2, 10, "x", "l"),
                      c = queue_of(3, 11, "y", "k");
    weft_rings_put(&rings, &a, 1);
    weft_rings_put(&rings, &b, 1);
    weft_rings_put(&rings, &c, 1);
    weft_rings_put(&rings, &a, 5);
    is_int(rings.listed.count, 3, "a queue is listed once");
    is_int(weft_rings_find(&rings, 1)->tick, 5, "the queue has its newest tick");
    weft_rings_put(&rings, &a, 2);
    is_int(weft_rings_find(&rings, 1)->tick, 5, "an older tick leaves the newest");
    is_int(queues_in(&rings, "x", NULL), 2, "two in one lane");
    is_int(queues_in(&rings, "x", "k"), 1, "one of a kind in it");
    is_int(queues_in(&rings, "y", "k"), 1, "the other lane has one queue of the kind");
    ok(!weft_rings_of(&rings, 2, "x", NULL), "another namespace has no ring");
    is_int(weft_rings_of(&rings, 1, "x", NULL)->tenant.count, 1, "the ring has one tenant");
    struct weft_queue other = queue_of(1, 12, "y", "k");
    weft_rings_put(&rings, &other, 6);
    is_int(queues_in(&rings, "x", "k"), 0, "another queue of the same number takes its place");
    is_int(queues_in(&rings, "y", "k"), 2, "in its own lane");
    weft_rings_put(&rings, &a, 7);
    weft_rings_remove(&rings, weft_rings_find(&rings, 1));
    ok(!weft_rings_find(&rings, 1) && !weft_rings_of(&rings, 1, "x", "k"), "removed everywhere");
    is_int(queues_in(&rings, "x", NULL), 1, "the other queue stays in the ring");
    weft_rings_remove(&rings, weft_rings_find(&rings, 2));
    ok(weft_rings_of(&rings, 1, "x", NULL) && queues_in(&rings, "x", NULL) == 0,
       "a lane stays without queues");
    weft_rings_slim(&rings, 1);
    ok(!weft_rings_of(&rings, 1, "x", NULL) && queues_in(&rings, "y", NULL) == 1,
       "empty rings are dropped");
    weft_rings_done(&rings);
}

static void test_turns(void)
{
    enum { TENANTS = 5 };
    struct weft_rings rings = {0};
    struct weft_queue queue[TENANTS];
    for (int32_t i = 0; i < TENANTS; i++) {
        queue[i] = queue_of(i + 1, 10 + i, "x", "k");
        weft_rings_put(&rings, &queue[i], 1);
    }
    struct weft_ring *ring = weft_rings_of(&rings, 1, "x", NULL);
    is_int(ring->first->id, 10, "the first that came is in front");
    weft_ring_move_back(ring, ring->first);
    weft_ring_move_back(ring, ring->first->after);
    int32_t order[] = {11, 13, 14, 10, 12};
    const struct weft_ring_tenant *tenant = ring->first;
    size_t right = 0;
    for (size_t i = 0; i < TENANTS; i++, tenant = tenant->after)
        right += tenant->id == order[i] && tenant->after->before == tenant;
    is_int(right, TENANTS, "two moved behind the others, in their order");
    ok(tenant == ring->first, "the ring is closed");
    weft_rings_remove(&rings, weft_rings_find(&rings, 2));
    is_int(ring->first->id, 13, "the next is in front when the first goes");
    weft_rings_put(&rings, &queue[1], 2);
    is_int(ring->first->before->id, 11, "one that comes back is the last");
    weft_rings_done(&rings);
}

static void test_sweep(void)
{
    enum { MANY = 3000 };
    static struct weft_queue queue[MANY];
    struct weft_rings rings = {0};
    for (int32_t i = 0; i < MANY; i++) {
        queue[i] = queue_of(i + 1, i % 7 ? 10 + i % 50 : 0, i % 2 ? "x" : "y", "k");
        weft_rings_put(&rings, &queue[i], i % 3 ? 8 : 4);
    }
    weft_rings_sweep(&rings, weft_rings_of(&rings, 1, "x", NULL), 4);
    is_int(rings.listed.count, MANY - MANY / 6, "the old ones of one lane go");
    weft_rings_sweep(&rings, NULL, 4);
    is_int(rings.listed.count, MANY - MANY / 3,
           "a sweep of all lanes removes the old queues of the others");
    size_t wrong = 0;
    for (int32_t i = 0; i < MANY; i++)
        wrong += (weft_rings_find(&rings, i + 1) != NULL) != (i % 3 != 0);
    is_int(wrong, 0, "exactly the removed queues are gone");
    weft_rings_sweep(&rings, NULL, 8);
    is_int(rings.listed.count, 0, "all queues are removed");
    is_int(queues_in(&rings, "x", NULL), 0, "the lane has none");
    weft_rings_done(&rings);
}

static void test_asked(void)
{
    struct weft_rings rings = {0};
    struct weft_ring *a = weft_rings_ask(&rings, 1, "a", 100);
    struct weft_ring *b = weft_rings_ask(&rings, 1, "b", 200);
    ok(rings.newest == b && rings.oldest == a, "the lane asked for last is the newest");
    ok(weft_rings_ask(&rings, 1, "a", 300) == a && rings.newest == a && a->older == b,
       "asked for again it is that");
    struct weft_queue queue = queue_of(1, 0, "c", "k");
    weft_rings_put(&rings, &queue, 1);
    ok(rings.oldest->asked_us == 0, "one that no claim asked for is the oldest");
    weft_rings_slim(&rings, 250);
    ok(rings.lanes == 2 && rings.newest == a && rings.oldest->queues == 1,
       "lanes without queues go when no claim asked for long");
    weft_rings_done(&rings);
}

int main(void)
{
    test_members();
    test_turns();
    test_sweep();
    test_asked();
    return tap_done();
}
