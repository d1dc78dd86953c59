/* SPDX-License-Identifier: Apache-2.0 */

/* Stride scheduling over tenants, and the order within one tenant. */

#include "core/share.h"

#include <assert.h>
#include <stdlib.h>

/* Whose turn it is: the lowest pass of those who may have more; NULL when nobody may. */
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
        /* One tenant alone takes all that is left: no need to count turn by turn. */
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
