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

struct reading {
    size_t count; /* of marked items */
    struct weft_claimed **item;
    struct weft_waited *waited; /* one for each */
    struct weft_rows resumptions, signals;
};

/* Both in one round trip: which signals an execution has follows from its resumption. */
static enum weft_rc read_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct reading *reading = context;
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    struct weft_resumption_read_in *in =
        weft_call_resumption_read(&call[0], tx->arena, reading->count);
    for (size_t i = 0; i < reading->count; i++)
        in->row[i].id = reading->waited[i].id;
    weft_waited_call(&call[1], reading->waited, reading->count, tx->arena);
    enum weft_rc rc = weft_tx_last(tx, call, WEFT_LEN(call), rows, err);
    reading->resumptions = rows[0];
    reading->signals = rows[1];
    return rc;
}

/* Gives each item its resumption; one without was never resumed: its bit says that it may be. */
static void take_rows(struct reading *reading, struct weft_arena *out)
{
    weft_waited_take(reading->waited, reading->count, &reading->signals, out);
    size_t row = 0; /* of the resumptions, which come in the order of the items */
    for (size_t i = 0; i < reading->count; i++) {
        const struct weft_resumption_read_out *found =
            &weft_out_resumption_read(&reading->resumptions)[row];
        struct weft_claimed *item = reading->item[i];
        item->resumed = row < reading->resumptions.count && weft_id_cmp(&found->id, &item->id) == 0;
        item->resumed_by = WEFT_RESUMED_NOT;
        if (!item->resumed)
            continue;
        row++;
        item->resumed_by = found->by;
        item->resumed_us = found->at;
        item->signal = reading->waited[i].signal;
        item->signal_count = reading->waited[i].count;
        item->more_signals = reading->waited[i].more;
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
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    struct reading reading = {
        .item = weft_new_array(tx.arena, struct weft_claimed *, all->resumed + 1),
        .waited = weft_new_array(tx.arena, struct weft_waited, all->resumed + 1)};
    for (size_t i = 0; i < all->items; i++)
        if (all->item[i].resumed_by) {
            reading.waited[reading.count].id = all->item[i].id;
            reading.item[reading.count++] = &all->item[i];
        }
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_READ, read_body, &reading, err);
    if (rc)
        drop_resumed(all);
    else
        take_rows(&reading, all->out);
    weft_arena_free(tx.arena);
    return all->items > 0 ? WEFT_OK : rc;
}
