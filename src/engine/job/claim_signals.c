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

#include <stdlib.h>

void weft_claim_add_resumed(struct weft_claiming *all)
{
    all->item[all->items - 1].resumed_by = WEFT_RESUMED_BY_SIGNALS;
    all->resumed++;
}

/* The resumptions of the marked items; *ret_count of them have one. */
static enum weft_rc read_resumptions(struct weft_engine *engine, const struct weft_claiming *all,
                                     struct weft_arena *arena, struct weft_rows *ret_rows,
                                     struct weft_err *err)
{
    struct weft_call call;
    struct weft_resumption_read_in *in = weft_call_resumption_read(&call, arena, all->resumed);
    size_t count = 0;
    for (size_t i = 0; i < all->items; i++)
        if (all->item[i].resumed_by)
            in->row[count++].id = all->item[i].id;
    call.rows = count;
    return weft_tx_once(engine, WEFT_TX_READ, &call, arena, ret_rows, err);
}

static struct weft_claimed *find_item(const struct weft_claiming *all, const struct weft_id *id)
{
    size_t i = 0;
    while (i < all->items && weft_id_cmp(&all->item[i].id, id) != 0)
        i++;
    return i < all->items ? &all->item[i] : NULL;
}

static enum weft_rc read_signals(struct weft_engine *engine, struct weft_claiming *all,
                                 const struct weft_rows *resumptions, struct weft_arena *arena,
                                 struct weft_err *err)
{
    size_t count = resumptions->count;
    struct weft_waited *waited = weft_new_array(arena, struct weft_waited, count + 1);
    struct weft_call call;
    struct weft_rows rows = {0};
    for (size_t i = 0; i < count; i++) {
        const struct weft_resumption_read_out *row = &weft_out_resumption_read(resumptions)[i];
        waited[i] = (struct weft_waited){.id = row->id, .epoch = row->epoch};
    }
    weft_waited_call(&call, waited, count, arena);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    weft_waited_take(waited, count, &rows, all->out);
    for (size_t i = 0; i < count; i++) {
        const struct weft_resumption_read_out *row = &weft_out_resumption_read(resumptions)[i];
        struct weft_claimed *item = find_item(all, &row->id);
        if (!item)
            continue;
        item->resumed = true;
        item->resumed_by = row->by;
        item->resumed_us = row->at;
        item->signal = waited[i].signal;
        item->signal_count = waited[i].count;
        item->more_signals = waited[i].more;
    }
    return WEFT_OK;
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
    struct weft_rows rows = {0};
    enum weft_rc rc = read_resumptions(engine, all, arena, &rows, err);
    for (size_t i = 0; i < all->items && !rc; i++) {
        bool found = false;
        for (size_t k = 0; all->item[i].resumed_by && k < rows.count && !found; k++)
            found = weft_id_cmp(&weft_out_resumption_read(&rows)[k].id, &all->item[i].id) == 0;
        if (!found)
            all->item[i].resumed_by = WEFT_RESUMED_NOT; /* the bit says that there may be one */
    }
    if (!rc && rows.count > 0)
        rc = read_signals(engine, all, &rows, arena, err);
    if (rc)
        drop_resumed(all);
    weft_arena_free(arena);
    return all->items > 0 ? WEFT_OK : rc;
}
