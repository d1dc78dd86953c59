/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Floors: where the ready rows of a queue begin.
 *
 * An open snapshot (a backup, a forgotten transaction) keeps PostgreSQL from removing the index
 * entries of rows that were claimed since, and every claim walks over all of them. A floor is a
 * place (priority, ord) of a queue before which this process knows no ready row; a claim that has
 * one enters the index there (claim_above). A claim that comes up short looks again without it.
 *
 * A queue gets a floor only after claims of it were slow: without an open snapshot no queue has
 * one, and all of this costs the comparison of a number. Each claim takes rows from the front, so
 * the last row that it took is the next floor, but not closer than LAG to the moment when the claim
 * began: rows are committed a little after they got their place in the order.
 *
 * Rows that become ready before the floor:
 * - By this process: every transaction reports its rows after the commit (commit_effects.c). A new
 *   row before the floor moves the floor there; a retried, released, replayed or promoted row drops
 *   it. A claim whose statement may have begun before that commit finds a newer tick and leaves the
 *   floor as it is. Rows that a claim had locked and gives back by a rollback drop the floor too
 *   (claim.c).
 * - By another replica, or by a process that died in a claim: claims see these rows when the floor
 *   has expired, after 250 ms, or up to 5 s where a claim without a floor is very slow, so that
 * such claims take a tenth of the time. Only their order suffers: they are claimed a little later.
 */

#include "engine/ready/floor.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <stdlib.h>

#define SLOW_US      (20 * WEFT_MS)
#define LAG_US       (100 * WEFT_MS)
#define TRUST_MIN_US (250 * WEFT_MS)
#define TRUST_MAX_US (5 * WEFT_SECOND)
enum { TRUST_FACTOR = 10, FLOORS_MAX = 10000 };

struct floor {
    int32_t queue;
    int32_t priority;
    int64_t ord;
    bool set;
    weft_usec until_us; /* boot time: trusted so long */
    uint64_t made;      /* tick: when the floor was made */
    uint64_t lowered;   /* tick: the last report of a row before the floor, or of a late row */
};

void weft_floors_init(struct weft_floors *floors, bool used)
{
    *floors = (struct weft_floors){.used = used};
    pthread_mutex_init(&floors->lock, NULL);
}

static void forget_all(struct weft_floors *floors)
{
    for (size_t i = 0; i < floors->queue.capacity; i++)
        free(floors->queue.slot[i]);
    weft_int_map_done(&floors->queue);
    atomic_store(&floors->count, 0);
}

void weft_floors_done(struct weft_floors *floors)
{
    forget_all(floors);
    pthread_mutex_destroy(&floors->lock);
}

uint64_t weft_floor_tick(struct weft_floors *floors)
{
    if (atomic_load(&floors->count) == 0)
        return 0;
    pthread_mutex_lock(&floors->lock);
    uint64_t tick = floors->tick;
    pthread_mutex_unlock(&floors->lock);
    return tick;
}

bool weft_floor_get(struct weft_floors *floors, int32_t queue, struct weft_floor *ret_floor)
{
    if (atomic_load(&floors->count) == 0)
        return false;
    pthread_mutex_lock(&floors->lock);
    const struct floor *floor = weft_int_map_find(&floors->queue, queue);
    bool found = floor && floor->set && weft_boot_us() < floor->until_us;
    if (found)
        *ret_floor = (struct weft_floor){floor->priority, floor->ord};
    pthread_mutex_unlock(&floors->lock);
    return found;
}

/* Under the lock. */
static void make_floor(struct weft_floors *floors, int32_t queue)
{
    if (floors->queue.count >= FLOORS_MAX)
        forget_all(floors);
    struct floor *floor = weft_alloc(1, sizeof(*floor));
    floor->queue = queue;
    floor->made = ++floors->tick;
    weft_int_map_put(&floors->queue, floor);
    atomic_store(&floors->count, floors->queue.count);
}

static void remove_floor(struct weft_floors *floors, struct floor *floor)
{
    weft_int_map_remove(&floors->queue, floor->queue);
    free(floor);
    atomic_store(&floors->count, floors->queue.count);
}

static weft_usec trust_after(weft_usec took_us)
{
    weft_usec trust_us = TRUST_FACTOR * took_us;
    if (trust_us < TRUST_MIN_US)
        return TRUST_MIN_US;
    return trust_us > TRUST_MAX_US ? TRUST_MAX_US : trust_us;
}

/* After a claim without a floor: makes, sets or removes the floor of its queue. Under the lock. */
static void find_floor(struct weft_floors *floors, const struct weft_floor_claim *claim)
{
    struct floor *floor = weft_int_map_find(&floors->queue, claim->queue);
    bool slow = claim->took_us > SLOW_US;
    if (!floor && slow)
        make_floor(floors, claim->queue);
    else if (floor && !slow)
        remove_floor(floors, floor);
    else if (floor && claim->got > 0 && floor->made <= claim->tick &&
             floor->lowered <= claim->tick) {
        int64_t most = claim->began_us - LAG_US;
        floor->priority = claim->last.priority;
        floor->ord = claim->last.ord < most ? claim->last.ord : most;
        floor->until_us = weft_boot_us() + trust_after(claim->took_us);
        floor->set = true;
    }
}

void weft_floor_claimed(struct weft_floors *floors, const struct weft_floor_claim *claim)
{
    if (!floors->used || (atomic_load(&floors->count) == 0 && claim->took_us <= SLOW_US))
        return;
    pthread_mutex_lock(&floors->lock);
    struct floor *floor = weft_int_map_find(&floors->queue, claim->queue);
    if (!claim->above) {
        find_floor(floors, claim);
    } else if (floor && claim->short_of) {
        floor->set = false; /* the claim looks again, without a floor */
    } else if (floor && floor->set && floor->lowered <= claim->tick) {
        int64_t most = claim->began_us - LAG_US;
        int64_t ord = claim->last.ord < most ? claim->last.ord : most;
        if (floor->priority == claim->last.priority && floor->ord < ord)
            floor->ord = ord;
    }
    pthread_mutex_unlock(&floors->lock);
}

void weft_floor_added(struct weft_floors *floors, int32_t queue, const struct weft_floor *first,
                      weft_usec now_us)
{
    if (atomic_load(&floors->count) == 0)
        return;
    pthread_mutex_lock(&floors->lock);
    struct floor *floor = weft_int_map_find(&floors->queue, queue);
    if (floor) {
        bool before = floor->set && first->priority == floor->priority && first->ord < floor->ord;
        bool above = floor->set && first->priority > floor->priority;
        if (before)
            floor->ord = first->ord;
        if (above)
            floor->set = false;
        if (before || above || first->ord < now_us - LAG_US)
            floor->lowered = ++floors->tick;
    }
    pthread_mutex_unlock(&floors->lock);
}

void weft_floor_drop(struct weft_floors *floors, int32_t queue)
{
    const struct weft_floor before_all = {.priority = INT32_MAX, .ord = INT64_MIN};
    weft_floor_added(floors, queue, &before_all, 0);
}
