/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Batches and files in an erasure.
 *
 * A batch has no tags and no tenant. Its metadata stands for both: the pair "user": "42" is the tag
 * user:42, and the pair "tenant": "acme" names the tenant. A file has neither; it is the subject's
 * when only batches of the subject read it. One that no batch reads has no owner.
 *
 * Its file goes first, because only the batch leads to it, and `purge` removes a deleted batch as
 * soon as its flow is gone. Then it is marked as deleted, in the transaction of the step; its flow
 * is deleted behind that, and what the row carried goes when the flow is gone, if the row is still
 * there. A replica that dies in between leaves the row with its metadata, by which the next walk
 * finds it.
 *
 * A batch may still be written by any process. Each part of it updates the row of the batch where
 * that is not deleted, so the lock of that row decides: a part that has it first is committed when
 * erase_batch_mark goes on, and its members are in the flow that is removed next; one that comes
 * later finds the batch deleted and writes nothing. The last part opens the flow, which is why the
 * flow is taken as one that is staged first, and then as one that is open.
 *
 * A batch that another client makes of a file which is being removed finds no file, as after any
 * delete of a file, and fails with file_not_found.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "engine/engine_state.h"
#include "engine/erase/erase.h"
#include "engine/flow/flow.h"

#include <string.h>

enum {
    BATCHES = 200,     /* of a window */
    CHUNKS = 64,       /* of a transaction: 16 MiB */
    CHUNKS_ALONE = 16, /* where other writers wait for it */
};

/* ---- Whose it is ----------------------------------------------------------------------------- */

bool weft_erase_pairs(const char *json, struct weft_arena *arena, weft_erase_pair_fn *is,
                      void *context)
{
    struct weft_json value;
    struct weft_json_iter member;
    struct weft_err err;
    if (!json || weft_json_check(json, strlen(json), &value, &err) ||
        value.kind != WEFT_JSON_OBJECT)
        return false;
    weft_json_iter_init(&member, &value);
    while (weft_json_next(&member)) {
        const char *key, *text;
        if (member.value.kind != WEFT_JSON_STRING ||
            weft_json_string(&member.key, arena, &key, &err) ||
            weft_json_string(&member.value, arena, &text, &err))
            continue;
        if (is(context, key, text))
            return true;
    }
    return false;
}

static bool is_subject(void *context, const char *key, const char *value)
{
    const struct weft_erase *erase = context;
    if (!erase->tag)
        return strcmp(key, WEFT_ERASE_TENANT_PAIR) == 0 && strcmp(value, erase->row.subject) == 0;
    return strcmp(weft_arena_printf(erase->arena, "%s:%s", key, value), erase->row.subject) == 0;
}

static bool is_mine(struct weft_erase *erase, const char *metadata, weft_usec created_us)
{
    return created_us <= erase->row.asked &&
           weft_erase_pairs(metadata, erase->arena, is_subject, erase);
}

/* ---- Looking --------------------------------------------------------------------------------- */

enum weft_rc weft_erase_batches_look(struct weft_erase *erase,
                                     struct weft_erase_batches *ret_batches, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_erase_batches(&call, erase->arena) = (struct weft_erase_batches_in){
        .namespace = erase->row.namespace, .after = erase->row.walked, .most = BATCHES};
    enum weft_rc rc = weft_tx_once(erase->engine, WEFT_TX_READ, &call, erase->arena, &rows, err);
    if (!rc)
        *ret_batches = (struct weft_erase_batches){.row = weft_out_erase_batches(&rows),
                                                   .count = rows.count,
                                                   .full = rows.count == BATCHES};
    return rc;
}

/* ---- Deleting -------------------------------------------------------------------------------- */

enum weft_rc weft_erase_flow(struct weft_erase *erase, const struct weft_id *flow,
                             struct weft_err *err)
{
    const struct weft_flow_cancelling args = {.ns = erase->ns,
                                              .flow = *flow,
                                              .how = WEFT_FLOW_CANCEL_ALL,
                                              .reason = WEFT_ERASE_REASON,
                                              .remove = true};
    enum weft_flow_state state;
    enum weft_rc rc = weft_engine_flow_cancel(erase->engine, &args, &state, NULL, err);
    erase->count[WEFT_ERASE_FLOWS] += !rc;
    return rc == WEFT_NOT_FOUND ? WEFT_OK : rc; /* it is deleted already, or gone */
}

/* Of a batch that is marked as deleted. */
static enum weft_rc delete_its_flow(struct weft_erase *erase, const struct weft_id *id,
                                    struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_erase_staged(&call, erase->arena)->flow = *id;
    enum weft_rc rc = weft_tx_once(erase->engine, WEFT_TX_WRITE, &call, erase->arena, &rows, err);
    erase->count[WEFT_ERASE_FLOWS] += rc ? 0 : rows.count;
    return rc || rows.count > 0 ? rc : weft_erase_flow(erase, id, err);
}

enum weft_rc weft_erase_batches_delete(struct weft_erase *erase,
                                       const struct weft_erase_batches *batches,
                                       struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < batches->count && !rc; i++) {
        const struct weft_erase_batches_out *row = &batches->row[i];
        bool removing = row->flow_state.value == WEFT_FLOW_REMOVING;
        if (row->flow_state.set && !removing && is_mine(erase, row->metadata, row->created))
            rc = delete_its_flow(erase, &row->id, err);
    }
    return rc;
}

/* ---- Removing -------------------------------------------------------------------------------- */

/* Whether a batch that is not the subject's reads the file. */
static enum weft_rc is_shared(struct weft_tx *tx, struct weft_erase *erase,
                              const struct weft_id *file, bool *ret_shared, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_erase_file_users(&call, tx->arena)->file = *file;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    *ret_shared = false;
    for (size_t i = 0; i < rows.count && !rc; i++) {
        const struct weft_erase_file_users_out *row = &weft_out_erase_file_users(&rows)[i];
        *ret_shared |= !is_mine(erase, row->metadata, row->created);
    }
    return rc;
}

/* The file first, so that no reader meets it in part, then its chunks, as far as *most goes. */
static enum weft_rc remove_file(struct weft_tx *tx, struct weft_erase *erase,
                                const struct weft_id *file, uint32_t *most, struct weft_err *err)
{
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    weft_call_erase_file(&call[0], tx->arena)->file = *file;
    *weft_call_erase_chunks(&call[1], tx->arena) =
        (struct weft_erase_chunks_in){.file = *file, .most = *most};
    enum weft_rc rc = weft_tx_run(tx, call, 2, rows, err);
    if (rc)
        return rc;
    uint32_t chunks = (uint32_t)weft_out_erase_chunks(&rows[1])->count;
    erase->count[WEFT_ERASE_FILES] += rows[0].count;
    erase->count[WEFT_ERASE_CHUNKS] += chunks;
    *most -= chunks < *most ? chunks : *most;
    return WEFT_OK;
}

static enum weft_rc remove_batch(struct weft_tx *tx, struct weft_erase *erase,
                                 const struct weft_erase_batches_out *row, uint32_t *most,
                                 struct weft_err *err)
{
    bool shared;
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    enum weft_rc rc = is_shared(tx, erase, &row->file, &shared, err);
    if (!rc && !shared)
        rc = remove_file(tx, erase, &row->file, most, err);
    if (rc || *most == 0)
        return rc;
    *weft_call_erase_batch_mark(&call[0], tx->arena) =
        (struct weft_erase_batch_mark_in){.now = tx->now_us, .id = row->id};
    *weft_call_erase_batch(&call[1], tx->arena) =
        (struct weft_erase_batch_in){.now = tx->now_us, .id = row->id};
    rc = weft_tx_run(tx, call, row->flow_state.set ? 1 : 2, rows, err);
    erase->count[WEFT_ERASE_BATCHES] += rc ? 0 : rows[0].count;
    erase->count[WEFT_ERASE_SHARED_FILES] += !rc && shared && rows[0].count > 0;
    return rc;
}

enum weft_rc weft_erase_batches_remove(struct weft_tx *tx, struct weft_erase *erase,
                                       const struct weft_erase_batches *batches, bool *ret_more,
                                       struct weft_err *err)
{
    uint32_t most = erase->engine->pool.writers == 1 ? CHUNKS_ALONE : CHUNKS;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < batches->count && most > 0 && !rc; i++) {
        const struct weft_erase_batches_out *row = &batches->row[i];
        if (!is_mine(erase, row->metadata, row->created))
            continue;
        erase->row.found++;
        rc = remove_batch(tx, erase, row, &most, err);
    }
    *ret_more = most == 0;
    return rc;
}
