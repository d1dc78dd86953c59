/* SPDX-License-Identifier: Apache-2.0 */

#include "core/share.h"

#include <assert.h>
#include <stdlib.h>

/* The tenant with the lowest pass that may take more; NULL if none may. */
static struct weft_share *next_turn(struct weft_share *share, size_t count)
{
    struct weft_share *next = NULL;
    for (size_t i = 0; i < count; i++)
        if (share[i].taken < share[i].most && (!next || share[i].pass < next->pass))
            next = &share[i];
    return next;
}

uint32_t weft_share_turns(struct weft_share *share, size_t count, uint32_t max)
{
    for (size_t i = 0; i < count; i++) {
        assert(share[i].weight > 0);
        share[i].taken = 0;
    }
    uint32_t given = 0;
    struct weft_share *next;
    while (given < max && (next = next_turn(share, count)) != NULL) {
        /* A single tenant takes all turns at once. */
        uint32_t turns = count == 1 ? max - given : 1;
        if (turns > next->most - next->taken)
            turns = next->most - next->taken;
        next->taken += turns;
        next->pass += turns / next->weight;
        given += turns;
    }
    return given;
}

void weft_share_refund(struct weft_share *share, uint32_t unused)
{
    assert(unused <= share->taken);
    share->taken -= unused;
    share->pass -= unused / share->weight;
}

static int by_turn(const void *left, const void *right)
{
    const struct weft_head *a = left, *b = right;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->ord != b->ord)
        return a->ord < b->ord ? -1 : 1;
    if (a->queue != b->queue)
        return a->queue < b->queue ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

void weft_share_order(struct weft_head *head, size_t count)
{
    qsort(head, count, sizeof(*head), by_turn);
}

static int by_namespace(const void *left, const void *right)
{
    const struct weft_lane_share *a = left, *b = right;
    if (a->ns != b->ns)
        return a->ns < b->ns ? -1 : 1;
    return (a->lane > b->lane) - (a->lane < b->lane);
}

/* The part of place `i` of `count`: equal parts; the remainder goes to the places from `first`. */
static uint32_t part_of(size_t i, size_t count, uint32_t whole, uint64_t first)
{
    size_t turn = (size_t)((i + count - first % count) % count);
    return (uint32_t)(whole / count) + (turn < whole % count);
}

void weft_share_lanes(struct weft_lane_share *lane, size_t count, uint32_t batch, uint64_t random)
{
    size_t namespaces = 0, at = 0;
    qsort(lane, count, sizeof(*lane), by_namespace);
    for (size_t i = 0; i < count; i++)
        namespaces += i == 0 || lane[i].ns != lane[i - 1].ns;
    for (size_t i = 0; i < count; at++) {
        size_t lanes = 1;
        while (i + lanes < count && lane[i + lanes].ns == lane[i].ns)
            lanes++;
        uint32_t whole = part_of(at, namespaces, batch, random);
        for (size_t k = 0; k < lanes; k++)
            lane[i + k].share = part_of(k, lanes, whole, random >> 32);
        i += lanes;
    }
}
