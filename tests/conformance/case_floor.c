/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Claims that begin at a floor, which open snapshots bring about: claims still find the rows before
 * it. The floor is put by hand here, where no claim would put it: into the middle of ready rows.
 */

#include "conformance.h"

#include "engine/engine_state.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "engine/ready/floor.h"
#include "engine/ready/rings.h"
#include "weft/weft.h"

enum { ROWS = 6 };

/* Puts the floor of the queue of all rows to the place of row `at`; false where there are none. */
static bool put_floor(struct fixture *f, size_t at)
{
    struct weft_floors *floors = &f->a->floors;
    const struct weft_rings *rings = &f->a->ready.rings;
    int32_t queue = 0;
    for (size_t i = 0; i < rings->listed.capacity; i++)
        if (rings->listed.slot[i])
            queue = *(int32_t *)rings->listed.slot[i];
    int64_t ord = f->a->last_ord - ROWS + 1 + (int64_t)at;
    for (int i = 0; i < 2; i++) {
        struct weft_floor_claim claim = {.queue = queue,
                                         .got = 1,
                                         .last = {.ord = ord},
                                         .tick = weft_floor_tick(floors),
                                         .began_us = INT64_MAX,
                                         .took_us = 100 * WEFT_SECOND};
        weft_floor_claimed(floors, &claim);
    }
    struct weft_floor floor;
    return weft_floor_get(floors, queue, &floor);
}

static bool is_row(const struct weft_claim_result *got, size_t item, const struct weft_id *row)
{
    return got->count > item && same_id(&got->item[item].id, row);
}

CASE(floor_is_where_claims_begin)
{
    struct weft_id *row = submit_copies(f, &(struct weft_spec){.kind = "job"}, ROWS);
    if (!put_floor(f, 4))
        return;
    struct weft_claim_result got = claim(f, f->a, 2);
    ok(is_row(&got, 0, &row[4]) && is_row(&got, 1, &row[5]), "a claim begins at the floor");
    got = claim(f, f->a, 3);
    ok(got.count == 3 && is_row(&got, 0, &row[0]), "one that comes up short finds all before it");
    is_int(claim(f, f->a, 9).count, 1, "a further claim gets the last one");
}

CASE(floor_makes_way_for_rows_before_it)
{
    struct weft_id *row = submit_copies(f, &(struct weft_spec){.kind = "job"}, ROWS);
    if (!put_floor(f, 2))
        return;
    struct weft_claim_result got = claim(f, f->a, 1);
    ok(is_row(&got, 0, &row[2]), "a claim begins at the floor");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &got.item[0], 0);
    got = claim(f, f->a, 1);
    ok(is_row(&got, 0, &row[0]), "a released row drops the floor");
    if (!put_floor(f, 5))
        return;
    struct weft_id urgent = submit_ok(f, &(struct weft_spec){.kind = "job", .priority = 5});
    got = claim(f, f->a, 1);
    ok(is_row(&got, 0, &urgent), "a row of a higher priority is the next");
}
