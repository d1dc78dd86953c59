/* SPDX-License-Identifier: Apache-2.0 */

/* Floors of queues: when one is set, how it moves, and when it is removed. */

#include "tap.h"

#include "engine/ready/floor.h"

#define SECOND WEFT_SECOND
enum { QUEUE = 7 };

static struct weft_floor_claim slow_claim(struct weft_floors *floors, int64_t ord)
{
    return (struct weft_floor_claim){.queue = QUEUE,
                                     .got = 10,
                                     .last = {.priority = 0, .ord = ord},
                                     .tick = weft_floor_tick(floors),
                                     .began_us = 1000 * SECOND,
                                     .took_us = SECOND};
}

/* The place of the floor; -1: none. */
static int64_t floor_at(struct weft_floors *floors)
{
    struct weft_floor floor;
    return weft_floor_get(floors, QUEUE, &floor) ? floor.ord : -1;
}

static void set_floor(struct weft_floors *floors, int64_t ord)
{
    for (int i = 0; i < 2; i++) {
        struct weft_floor_claim claim = slow_claim(floors, ord);
        weft_floor_claimed(floors, &claim);
    }
}

static void test_when(void)
{
    struct weft_floors floors;
    weft_floors_init(&floors, false);
    set_floor(&floors, 50);
    is_int(floor_at(&floors), -1, "a store that needs none has none");
    weft_floors_done(&floors);
    weft_floors_init(&floors, true);
    struct weft_floor_claim claim = slow_claim(&floors, 50);
    claim.took_us = WEFT_MS;
    weft_floor_claimed(&floors, &claim);
    is_int(floors.count, 0, "a quick claim makes none");
    claim = slow_claim(&floors, 50);
    weft_floor_claimed(&floors, &claim);
    is_int(floor_at(&floors), -1, "the first slow claim is watched from here on");
    set_floor(&floors, 50);
    is_int(floor_at(&floors), 50, "the next one sets a floor where its last row was");
    claim = slow_claim(&floors, 60);
    claim.took_us = WEFT_MS;
    weft_floor_claimed(&floors, &claim);
    is_int(floors.count, 0, "a quick claim without a floor removes it");
    set_floor(&floors, 2000 * SECOND);
    is_int(floor_at(&floors), 1000 * SECOND - 100 * WEFT_MS, "the floor lags behind the claim");
    weft_floors_done(&floors);
}

static void test_moves(void)
{
    struct weft_floors floors;
    weft_floors_init(&floors, true);
    set_floor(&floors, 50);
    struct weft_floor_claim claim = slow_claim(&floors, 80);
    claim.above = true;
    weft_floor_claimed(&floors, &claim);
    is_int(floor_at(&floors), 80, "a claim that began at it moves it on");
    claim.last.ord = 70;
    weft_floor_claimed(&floors, &claim);
    is_int(floor_at(&floors), 80, "a claim that ended below the floor leaves it");
    weft_floor_added(&floors, QUEUE, &(struct weft_floor){.ord = 90}, 95);
    is_int(floor_at(&floors), 80, "a new row behind it leaves it");
    claim = slow_claim(&floors, 99);
    claim.above = true;
    weft_floor_added(&floors, QUEUE, &(struct weft_floor){.ord = 60}, 60);
    is_int(floor_at(&floors), 60, "one before it moves it there");
    weft_floor_claimed(&floors, &claim);
    is_int(floor_at(&floors), 60, "a claim that began above the floor leaves it");
    weft_floor_added(&floors, QUEUE, &(struct weft_floor){.priority = -1, .ord = 1}, 1);
    is_int(floor_at(&floors), 60, "a row of a lower priority is behind it");
    weft_floor_added(&floors, QUEUE, &(struct weft_floor){.priority = 1, .ord = 99}, 99);
    is_int(floor_at(&floors), -1, "one of a higher priority drops it");
    weft_floors_done(&floors);
}

static void test_drops(void)
{
    struct weft_floors floors;
    weft_floors_init(&floors, true);
    set_floor(&floors, 50);
    struct weft_floor_claim early = slow_claim(&floors, 70);
    weft_floor_drop(&floors, QUEUE + 1);
    is_int(floor_at(&floors), 50, "a row of another queue leaves it");
    weft_floor_drop(&floors, QUEUE);
    is_int(floor_at(&floors), -1, "a row that may be anywhere drops it");
    weft_floor_claimed(&floors, &early);
    is_int(floor_at(&floors), -1, "a claim that began before that sets none");
    set_floor(&floors, 70);
    is_int(floor_at(&floors), 70, "a later one does");
    early = slow_claim(&floors, 80);
    weft_floor_added(&floors, QUEUE, &(struct weft_floor){.ord = 75}, 75 + SECOND);
    weft_floor_claimed(&floors, &early);
    is_int(floor_at(&floors), 70, "a row that was committed late keeps earlier claims from it");
    early = slow_claim(&floors, 0);
    early.above = early.short_of = true;
    weft_floor_claimed(&floors, &early);
    is_int(floor_at(&floors), -1, "a claim that came up short drops it");
    weft_floors_done(&floors);
}

int main(void)
{
    test_when();
    test_moves();
    test_drops();
    return tap_done();
}
