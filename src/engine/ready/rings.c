/* SPDX-License-Identifier: Apache-2.0 */

/* See rings.h. Every operation but the sweep takes the same time however much is on the list. */

#include "engine/ready/rings.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "engine/names/names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX (sizeof(int32_t) + 2 * ((size_t)WEFT_NAME_MAX + 1))

/* ---- Rings by their names -------------------------------------------------------------------- */

/* The namespace, then the texts with their NUL: no key of a lane is that of a kind. */
static size_t write_key(char key[KEY_MAX], int32_t ns, const char *lane, const char *kind)
{
    size_t size = sizeof(ns), lane_size = strlen(lane) + 1, kind_size = kind ? strlen(kind) + 1 : 0;
    if (size + lane_size + kind_size > KEY_MAX)
        return 0; /* no queue has such names */
    memcpy(key, &ns, sizeof(ns));
    memcpy(key + size, lane, lane_size);
    size += lane_size;
    if (kind)
        memcpy(key + size, kind, kind_size);
    return size + kind_size;
}

struct weft_ring *weft_rings_of(const struct weft_rings *rings, int32_t ns, const char *lane,
                                const char *kind)
{
    char key[KEY_MAX];
    size_t size = write_key(key, ns, lane, kind);
    return size ? weft_map_find(&rings->ring, key, size) : NULL;
}

static void link_lane(struct weft_rings *rings, struct weft_ring *ring, struct weft_ring *older,
                      struct weft_ring *newer)
{
    ring->older = older;
    ring->newer = newer;
    *(older ? &older->newer : &rings->oldest) = ring;
    *(newer ? &newer->older : &rings->newest) = ring;
}

static void unlink_lane(struct weft_rings *rings, struct weft_ring *ring)
{
    *(ring->older ? &ring->older->newer : &rings->oldest) = ring->newer;
    *(ring->newer ? &ring->newer->older : &rings->newest) = ring->older;
}

static struct weft_ring *ring_of(struct weft_rings *rings, int32_t ns, const char *lane,
                                 const char *kind)
{
    char key[KEY_MAX];
    size_t size = write_key(key, ns, lane, kind);
    assert(size > 0);
    struct weft_ring *ring = weft_map_find(&rings->ring, key, size);
    if (ring)
        return ring;
    ring = weft_alloc(1, sizeof(*ring));
    ring->key = weft_alloc(1, size);
    memcpy(ring->key, key, size);
    ring->key_size = size;
    ring->ns = ns;
    weft_map_put(&rings->ring, key, size, ring);
    if (!kind) {
        ring->lane = ring->key + sizeof(ns);
        link_lane(rings, ring, NULL, rings->oldest); /* no claim has asked for it */
        rings->lanes++;
    }
    return ring;
}

static void free_ring(struct weft_rings *rings, struct weft_ring *ring)
{
    if (ring->lane) {
        unlink_lane(rings, ring);
        rings->lanes--;
    }
    weft_map_remove(&rings->ring, ring->key, ring->key_size);
    weft_int_map_done(&ring->tenant);
    free(ring->key);
    free(ring);
}

struct weft_ring *weft_rings_ask(struct weft_rings *rings, int32_t ns, const char *lane,
                                 weft_usec now_us)
{
    struct weft_ring *ring = ring_of(rings, ns, lane, NULL);
    ring->asked_us = now_us;
    if (rings->newest != ring) {
        unlink_lane(rings, ring);
        link_lane(rings, ring, rings->newest, NULL);
    }
    return ring;
}

void weft_rings_slim(struct weft_rings *rings, weft_usec asked_us)
{
    struct weft_ring *next;
    for (struct weft_ring *ring = rings->oldest; ring && ring->asked_us < asked_us; ring = next) {
        next = ring->newer;
        if (ring->queues == 0)
            free_ring(rings, ring);
    }
}

/* ---- Tenants of a ring ----------------------------------------------------------------------- */

/* Puts a tenant in front of another: in front of the first is behind the last. */
static void link_tenant(struct weft_ring *ring, struct weft_ring_tenant *tenant)
{
    if (!ring->first) {
        ring->first = tenant->before = tenant->after = tenant;
        return;
    }
    tenant->after = ring->first;
    tenant->before = ring->first->before;
    tenant->before->after = tenant;
    tenant->after->before = tenant;
}

static void unlink_tenant(struct weft_ring *ring, struct weft_ring_tenant *tenant)
{
    tenant->before->after = tenant->after;
    tenant->after->before = tenant->before;
    if (ring->first == tenant)
        ring->first = tenant->after == tenant ? NULL : tenant->after;
}

void weft_ring_move_back(struct weft_ring *ring, struct weft_ring_tenant *tenant)
{
    if (ring->first == tenant) {
        ring->first = tenant->after; /* the ring is closed: the first is behind the last */
        return;
    }
    unlink_tenant(ring, tenant);
    link_tenant(ring, tenant);
}

static struct weft_ring_tenant *tenant_of(struct weft_ring *ring, int32_t id)
{
    struct weft_ring_tenant *tenant = weft_int_map_find(&ring->tenant, id);
    if (tenant)
        return tenant;
    tenant = weft_alloc(1, sizeof(*tenant));
    tenant->id = id;
    tenant->room = 1;
    tenant->queue = &tenant->one;
    weft_int_map_put(&ring->tenant, tenant);
    link_tenant(ring, tenant);
    return tenant;
}

static void widen(struct weft_ring_tenant *tenant)
{
    uint32_t room = tenant->room * 2;
    struct weft_listed **wider =
        weft_realloc(tenant->room > 1 ? (void *)tenant->queue : NULL, room, sizeof(void *));
    if (tenant->room == 1)
        wider[0] = tenant->one;
    tenant->queue = wider;
    tenant->room = room;
}

static void free_tenant(struct weft_ring *ring, struct weft_ring_tenant *tenant)
{
    unlink_tenant(ring, tenant);
    weft_int_map_remove(&ring->tenant, tenant->id);
    if (tenant->room > 1)
        free((void *)tenant->queue);
    free(tenant);
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static void join(struct weft_ring *ring, struct weft_listed *listed, size_t which)
{
    struct weft_ring_tenant *tenant = tenant_of(ring, listed->queue->tenant);
    if (tenant->count == tenant->room)
        widen(tenant);
    listed->ring[which] = ring;
    listed->tenant[which] = tenant;
    listed->at[which] = tenant->count;
    tenant->queue[tenant->count++] = listed;
    ring->queues++;
}

/* The last of the tenant's queues takes the place of the one that leaves. */
static void leave(struct weft_listed *listed, size_t which)
{
    struct weft_ring_tenant *tenant = listed->tenant[which];
    struct weft_listed *last = tenant->queue[--tenant->count];
    tenant->queue[listed->at[which]] = last;
    last->at[which] = listed->at[which];
    listed->ring[which]->queues--;
    if (tenant->count == 0)
        free_tenant(listed->ring[which], tenant);
}

struct weft_listed *weft_rings_find(const struct weft_rings *rings, int32_t queue)
{
    return weft_int_map_find(&rings->listed, queue);
}

void weft_rings_put(struct weft_rings *rings, const struct weft_queue *queue, uint64_t tick)
{
    struct weft_listed *listed = weft_rings_find(rings, queue->id);
    /* After a failover the number may be that of another queue: see weft_ready_suspect(). */
    if (listed && listed->queue != queue) {
        weft_rings_remove(rings, listed);
        listed = NULL;
    }
    if (!listed) {
        listed = weft_alloc(1, sizeof(*listed));
        listed->id = queue->id;
        listed->queue = queue;
        listed->need = queue->need;
        weft_int_map_put(&rings->listed, listed);
        if (queue->carried)
            weft_int_map_put(&rings->carried, listed);
        struct weft_ring *lane = ring_of(rings, queue->ns, queue->lane_name, NULL);
        lane->lane_id = queue->lane;
        join(lane, listed, WEFT_RING_LANE);
        join(ring_of(rings, queue->ns, queue->lane_name, queue->kind), listed, WEFT_RING_KIND);
    }
    if (listed->tick < tick)
        listed->tick = tick;
}

/* The ring of a lane stays: claims may ask for the lane again, and the ring has its walk. */
void weft_rings_remove(struct weft_rings *rings, struct weft_listed *listed)
{
    for (size_t which = 0; which < WEFT_RINGS_OF_A_QUEUE; which++)
        leave(listed, which);
    if (listed->ring[WEFT_RING_KIND]->queues == 0)
        free_ring(rings, listed->ring[WEFT_RING_KIND]);
    weft_int_map_remove(&rings->listed, listed->id);
    if (listed->queue->carried)
        weft_int_map_remove(&rings->carried, listed->id);
    free(listed);
}

/* Takes stale queues of a lane off. A removal may free its tenant: `next` is read before it. */
static void sweep_lane(struct weft_rings *rings, const struct weft_ring *lane, uint64_t tick)
{
    struct weft_ring_tenant *tenant = lane->first, *next;
    for (size_t left = lane->tenant.count; left > 0; left--, tenant = next) {
        next = tenant->after;
        for (uint32_t i = tenant->count; i > 0; i--)
            if (tenant->queue[i - 1]->tick <= tick) {
                bool last = tenant->count == 1;
                weft_rings_remove(rings, tenant->queue[i - 1]);
                if (last)
                    break; /* the tenant was freed */
            }
    }
}

void weft_rings_sweep(struct weft_rings *rings, const struct weft_ring *lane, uint64_t tick)
{
    if (lane) {
        sweep_lane(rings, lane, tick);
        return;
    }
    for (struct weft_ring *each = rings->oldest; each; each = each->newer)
        sweep_lane(rings, each, tick);
}

void weft_rings_done(struct weft_rings *rings)
{
    weft_rings_sweep(rings, NULL, UINT64_MAX);
    while (rings->oldest)
        free_ring(rings, rings->oldest);
    weft_int_map_done(&rings->listed);
    weft_int_map_done(&rings->carried);
    weft_map_done(&rings->ring);
    *rings = (struct weft_rings){0};
}
