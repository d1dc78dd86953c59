/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The signals of claimed executions that were suspended. Only calls that claimed one read them,
 * after the claim was committed. What they read does not change: the waitpoints of a suspension
 * that is over take no more signals, and the resumption is replaced only under a lease.
 */

#include "base/arena.h"
#include "base/id.h"
#include "engine/job/claim_state.h"
#include "engine/wait/wait.h"

void weft_claim_add_resumed(struct weft_claiming *all)
{
    all->item[all->items - 1].resumed_by = WEFT_RESUMED_BY_SIGNALS;
    all->resumed++;
}

/* Gives the marked items what was read; the bit of one that was never resumed says it may be. */
static void take_rows(struct weft_claimed *const *item, const struct weft_waited *waited,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        item[i]->resumed = waited[i].resumed;
        item[i]->resumed_by = waited[i].by;
        item[i]->resumed_us = waited[i].resumed_us;
        item[i]->signal = waited[i].signal;
        item[i]->signal_count = waited[i].count;
        item[i]->more_signals = waited[i].more;
    }
}

/*
 * They could not be read. An execution must not run as if no signal had come: the marked items are
 * taken out, and their leases run out. The others are given.
 */
static void drop_resumed(struct weft_claiming *all)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->items; i++) {
        if (all->item[i].resumed_by)
            continue;
        all->item[kept] = all->item[i];
        if (all->apart)
            all->apart[kept] = all->apart[i];
        kept++;
    }
    all->items = kept;
}

enum weft_rc weft_claim_signals(struct weft_engine *engine, struct weft_claiming *all,
                                struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_claimed **item = weft_new_array(arena, struct weft_claimed *, all->resumed + 1);
    struct weft_waited *waited = weft_new_array(arena, struct weft_waited, all->resumed + 1);
    struct weft_call call;
    struct weft_rows rows = {0};
    size_t count = 0;
    for (size_t i = 0; i < all->items; i++)
        if (all->item[i].resumed_by) {
            waited[count].id = all->item[i].id;
            item[count++] = &all->item[i];
        }
    weft_waited_call(&call, waited, count, arena);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc) {
        drop_resumed(all);
    } else {
        weft_waited_take(waited, count, &rows, all->out);
        take_rows(item, waited, count);
    }
    weft_arena_free(arena);
    return all->items > 0 ? WEFT_OK : rc;
}
