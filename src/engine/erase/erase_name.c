/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a subject has besides executions: submissions by SQL that wait, settings of operators that
 * name the tenant, and the name of the tenant itself.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "core/spec.h"
#include "core/stored.h"
#include "engine/admin/lanes.h"
#include "engine/engine_state.h"
#include "engine/erase/erase.h"

#include <string.h>

enum {
    INBOX_LOOK = WEFT_BATCH_MAX,
    OLDEST_BINARY = 15, /* the first that looks for retired rows: 0015 */
};

const char *weft_erase_instead(const struct weft_id *order, struct weft_arena *arena)
{
    char id[WEFT_ID_TEXT];
    weft_id_print(order, id);
    return weft_arena_printf(arena, "erased-%s", id);
}

/* ---- Submissions by SQL ---------------------------------------------------------------------- */

static bool is_tag(void *context, const char *key, const char *value)
{
    const struct weft_erase *erase = context;
    return strcmp(weft_arena_printf(erase->arena, "%s:%s", key, value), erase->row.subject) == 0;
}

struct weft_id weft_erase_horizon(weft_usec asked_us)
{
    struct weft_id id = {0};
    uint64_t ms = (uint64_t)(asked_us / WEFT_MS);
    for (size_t i = 0; i < 6; i++)
        id.byte[i] = (uint8_t)(ms >> (8 * (5 - i)));
    return id;
}

/* A page of the inbox; *after moves on. */
static enum weft_rc erase_page(struct weft_erase *erase, struct weft_id *after, bool *ret_more,
                               struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0}, gone = {0};
    *weft_call_erase_inbox(&call, erase->arena) =
        (struct weft_erase_inbox_in){.namespace = erase->ns,
                                     .after = *after,
                                     .until = weft_erase_horizon(erase->row.asked),
                                     .most = INBOX_LOOK};
    enum weft_rc rc = weft_tx_once(erase->engine, WEFT_TX_READ, &call, erase->arena, &rows, err);
    *ret_more = rows.count == INBOX_LOOK;
    if (rc || rows.count == 0)
        return rc;
    const struct weft_erase_inbox_out *row = weft_out_erase_inbox(&rows);
    struct weft_erase_inbox_remove_in *in =
        weft_call_erase_inbox_remove(&call, erase->arena, rows.count);
    size_t count = 0;
    for (size_t i = 0; i < rows.count; i++)
        if (erase->tag ? weft_erase_pairs(row[i].tags, erase->arena, is_tag, erase)
                       : row[i].tenant && strcmp(row[i].tenant, erase->row.subject) == 0)
            in->row[count++].id = row[i].id;
    *after = row[rows.count - 1].id;
    call.rows = count;
    if (count > 0)
        rc = weft_tx_once(erase->engine, WEFT_TX_WRITE, &call, erase->arena, &gone, err);
    erase->count[WEFT_ERASE_INBOX] += rc ? 0 : gone.count;
    return rc;
}

/*
 * Rows of the inbox that were written before the request. An intake may be taking one at this
 * moment: it has locked the row, and the statement that removes it waits for that. If the intake
 * commits, the row is gone, and there is an execution that the walk finds, because the walk begins
 * after this. It finds it as one of before the request by its id, which the application's statement
 * made, though it was created by the intake, and later.
 */
enum weft_rc weft_erase_inbox(struct weft_erase *erase, struct weft_err *err)
{
    struct weft_id after = {0};
    enum weft_rc rc = WEFT_OK;
    if (erase->engine->pool.writers == 1) /* SQLite has no inbox */
        return WEFT_OK;
    for (bool more = true; more && !rc;)
        rc = erase_page(erase, &after, &more, err);
    return rc;
}

/* ---- Settings -------------------------------------------------------------------------------- */

/* The weights of a lane without the tenant's. */
static enum weft_rc erase_weight(struct weft_erase *erase, const struct weft_lane *lane,
                                 struct weft_err *err)
{
    struct weft_lane without = *lane;
    struct weft_weight *weight =
        weft_new_array(erase->arena, struct weft_weight, lane->weight_count + 1);
    without.weights = weight;
    without.weight_count = 0;
    for (size_t i = 0; i < lane->weight_count; i++)
        if (strcmp(lane->weights[i].tenant, erase->row.subject) != 0)
            weight[without.weight_count++] = lane->weights[i];
    if (without.weight_count == lane->weight_count)
        return WEFT_OK;
    erase->count[WEFT_ERASE_LANES]++;
    return weft_engine_lane_put(erase->engine, erase->ns, &without, err);
}

enum weft_rc weft_erase_settings(struct weft_erase *erase, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_lanes lanes = {0};
    if (erase->tag)
        return WEFT_OK;
    *weft_call_erase_budgets(&call, erase->arena) =
        (struct weft_erase_budgets_in){.namespace = erase->row.namespace,
                                       .tenant = erase->row.subject,
                                       .instead = weft_erase_instead(&erase->row.id, erase->arena)};
    enum weft_rc rc = weft_tx_once(erase->engine, WEFT_TX_WRITE, &call, erase->arena, &rows, err);
    if (!rc)
        erase->count[WEFT_ERASE_BUDGETS] += (uint64_t)weft_out_erase_budgets(&rows)->count;
    if (!rc)
        rc = weft_engine_lanes(erase->engine, erase->ns, erase->arena, &lanes, err);
    for (size_t i = 0; i < lanes.count && !rc; i++)
        rc = erase_weight(erase, &lanes.item[i], err);
    return rc;
}

/* ---- The name -------------------------------------------------------------------------------- */

/* The rows that stand for the tenant, as notes of retired rows have them: its name, its queues. */
static enum weft_rc rows_of(struct weft_erase *erase, struct weft_rows *ret_queues,
                            struct weft_err *err)
{
    struct weft_call call;
    weft_call_erase_queues(&call, erase->arena)->tenant = erase->tenant;
    return weft_tx_once(erase->engine, WEFT_TX_READ, &call, erase->arena, ret_queues, err);
}

enum weft_rc weft_erase_retire_name(struct weft_erase *erase, struct weft_err *err)
{
    struct weft_rows queues = {0};
    struct weft_call call;
    enum weft_rc rc = rows_of(erase, &queues, err);
    if (rc)
        return rc;
    weft_usec now_us = weft_clock_now(erase->engine->clock);
    struct weft_retired_add_in *in = weft_call_retired_add(&call, erase->arena, queues.count + 1);
    in->at = now_us;
    in->row[0].interned =
        (struct weft_interned_in){.what = WEFT_INTERNED_NAME, .id = erase->tenant};
    for (size_t i = 0; i < queues.count; i++)
        in->row[i + 1].interned = (struct weft_interned_in){
            .what = WEFT_INTERNED_QUEUE, .id = weft_out_erase_queues(&queues)[i].id};
    erase->row.retired = weft_some(now_us);
    struct weft_call raise;
    weft_call_schema_raise(&raise, erase->arena)->oldest = OLDEST_BINARY;
    rc = weft_tx_once(erase->engine, WEFT_TX_WRITE, &raise, erase->arena, NULL, err);
    if (rc)
        return rc;
    return weft_tx_once(erase->engine, WEFT_TX_WRITE, &call, erase->arena, NULL, err);
}

struct renaming {
    const struct weft_erase *erase;
    struct weft_rows queues;
    const char *text;
    bool done;
};

static enum weft_rc rename_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct renaming *renaming = context;
    struct weft_call call;
    struct weft_rows notes = {0};
    size_t count = renaming->queues.count + 1;
    struct weft_erase_retired_in *in = weft_call_erase_retired(&call, tx->arena, count);
    in->row[0].interned =
        (struct weft_interned_in){.what = WEFT_INTERNED_NAME, .id = renaming->erase->tenant};
    for (size_t i = 1; i < count; i++)
        in->row[i].interned = (struct weft_interned_in){
            .what = WEFT_INTERNED_QUEUE, .id = weft_out_erase_queues(&renaming->queues)[i - 1].id};
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &notes, err);
    renaming->done = !rc && notes.count == count;
    if (rc || !renaming->done)
        return rc;
    *weft_call_name_rename(&call, tx->arena) =
        (struct weft_name_rename_in){.id = renaming->erase->tenant, .text = renaming->text};
    return weft_tx_run(tx, &call, 1, NULL, err);
}

/* This process does not wait for its next poll to see the notes. */
static void forget_name(struct weft_erase *erase, const struct weft_rows *queues)
{
    struct weft_names *names = &erase->engine->names;
    weft_names_retired(names, WEFT_INTERNED_NAME, erase->tenant);
    for (size_t i = 0; i < queues->count; i++)
        weft_names_retired(names, WEFT_INTERNED_QUEUE, weft_out_erase_queues(queues)[i].id);
}

enum weft_rc weft_erase_rename(struct weft_erase *erase, bool *ret_renamed, struct weft_err *err)
{
    struct renaming renaming = {.erase = erase,
                                .text = weft_erase_instead(&erase->row.id, erase->arena)};
    enum weft_rc rc = rows_of(erase, &renaming.queues, err);
    if (rc)
        return rc;
    struct weft_tx tx = {.engine = erase->engine, .arena = weft_arena_new()};
    rc = weft_tx_do(&tx, WEFT_TX_WRITE, rename_body, &renaming, err);
    weft_arena_free(tx.arena);
    *ret_renamed = renaming.done;
    erase->count[WEFT_ERASE_NAMES] += !rc && renaming.done;
    if (!rc && renaming.done)
        forget_name(erase, &renaming.queues);
    return rc;
}
