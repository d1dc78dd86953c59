/* SPDX-License-Identifier: Apache-2.0 */

/* Batches: created, cancelled, and moved on step by step. */

#include "engine/batch/batch.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "core/batch_line.h"
#include "core/spec.h"
#include "engine/batch/files.h"
#include "engine/engine_state.h"
#include "engine/flow/flow.h"
#include "weft/weft.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

enum {
    OLDEST_BINARY = 37, /* older ones take a batch that is being written for a lost flow: 0037 */
};

/* ---- Creating -------------------------------------------------------------------------------- */

int64_t weft_batch_window(const char *text)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end;
    if (*text < '1' || *text > '9' || strlen(text) > 8)
        return 0;
    int64_t number = strtoll(text, &end, 10);
    for (size_t i = 0; i < WEFT_LEN(units); i++)
        if (*end == units[i].unit && !end[1] &&
            number * units[i].seconds <= WEFT_BATCH_WINDOW_MAX_S)
            return number * units[i].seconds;
    return 0;
}

struct creation {
    const struct weft_batch_new *args;
    struct weft_file file;
    struct weft_id id;
    int32_t ns;
    int64_t window_s;
    uint8_t fingerprint[32];
    bool taken; /* the key has a batch already, which is `id` */
};

/* The same key with the same of these is the same batch. */
static void make_fingerprint(struct creation *creation)
{
    const struct weft_batch_new *args = creation->args;
    char file[WEFT_ID_TEXT];
    weft_id_print(&args->file, file);
    const char *const text[] = {file, args->endpoint, args->window,
                                args->metadata ? args->metadata : ""};
    weft_batch_fingerprint(text, WEFT_LEN(text), creation->fingerprint);
}

static enum weft_rc check(struct weft_engine *engine, struct creation *creation,
                          struct weft_arena *arena, struct weft_err *err)
{
    const struct weft_batch_new *args = creation->args;
    creation->window_s = weft_batch_window(args->window);
    if (creation->window_s == 0)
        return weft_invalid(err, "completion_window",
                            "completion_window must be a time like 24h, 30 days at most");
    if (args->key && !*args->key)
        return weft_invalid(err, "Idempotency-Key", "the key is empty");
    enum weft_rc rc = weft_text_check(args->key, WEFT_KEY_MAX, "Idempotency-Key", err);
    if (!rc)
        rc = weft_engine_file(engine, args->ns, &args->file, arena, &creation->file, err);
    if (rc == WEFT_NOT_FOUND)
        rc = weft_fail_field(err, rc, "input_file_id", "there is no such file");
    if (!rc)
        rc = weft_find_namespace(engine, args->ns, &creation->ns, err);
    return rc;
}

/* The key was taken: by the same batch, or by something else. */
static enum weft_rc find_taken(struct weft_tx *tx, struct creation *creation, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_flow_of_key_in *in = weft_call_flow_of_key(&call, tx->arena, 1);
    in->row[0].namespace = creation->ns;
    in->row[0].key = creation->args->key;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (rc)
        return rc;
    const struct weft_flow_of_key_out *row = weft_out_flow_of_key(&rows);
    if (rows.count == 0)
        return weft_fail_field(err, WEFT_BUSY, "Idempotency-Key",
                               "the holder of this key just went away");
    if (row->fingerprint.size != sizeof(creation->fingerprint) ||
        memcmp(row->fingerprint.data, creation->fingerprint, row->fingerprint.size) != 0)
        return weft_fail_field(err, WEFT_CONFLICT, "Idempotency-Key",
                               "this key belongs to another batch or flow");
    creation->id = row->id;
    creation->taken = true;
    return WEFT_OK;
}

static enum weft_rc create(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct creation *creation = context;
    const struct weft_batch_new *args = creation->args;
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_flow_add_in *in = weft_call_flow_add(&call, tx->arena, 1);
    in->now = tx->now_us;
    in->row[0].id = creation->id;
    in->row[0].namespace = creation->ns;
    in->row[0].name = "batch";
    in->row[0].key = args->key;
    if (args->key)
        in->row[0].fingerprint =
            (struct weft_blob){creation->fingerprint, sizeof(creation->fingerprint)};
    in->row[0].state = WEFT_FLOW_STAGED;
    in->row[0].nodes = (int64_t)creation->file.requests;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    if (!rc && rows.count == 0)
        return find_taken(tx, creation, err);
    if (rc)
        return rc;
    struct weft_call made[2];
    weft_call_schema_raise(&made[0], tx->arena)->oldest = OLDEST_BINARY;
    *weft_call_batch_add(&made[1], tx->arena) =
        (struct weft_batch_add_in){.now = tx->now_us,
                                   .id = creation->id,
                                   .namespace = creation->ns,
                                   .file = args->file,
                                   .endpoint = args->endpoint,
                                   .span = args->window,
                                   .metadata = args->metadata,
                                   .expires = tx->now_us + creation->window_s * WEFT_SECOND};
    return weft_tx_run(tx, made, WEFT_LEN(made), NULL, err);
}

enum weft_rc weft_engine_batch_create(struct weft_engine *engine, const struct weft_batch_new *args,
                                      struct weft_id *ret_id, struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    struct creation creation = {.args = args};
    enum weft_rc rc = check(engine, &creation, tx.arena, err);
    if (!rc) {
        int partition = args->key ? weft_id_key_partition(args->ns, args->key) : -1;
        weft_id_new(&creation.id, weft_clock_now(engine->clock), partition);
        make_fingerprint(&creation);
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, create, &creation, err);
    }
    *ret_id = creation.id;
    weft_arena_free(tx.arena);
    return rc;
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

static enum weft_rc cancel_flow(struct weft_engine *engine, const struct weft_batch *batch,
                                struct weft_err *err)
{
    const struct weft_flow_cancelling args = {.ns = batch->ns,
                                              .flow = batch->id,
                                              .how = WEFT_FLOW_CANCEL_PENDING,
                                              .reason = "batch_cancelled"};
    enum weft_flow_state state;
    struct weft_err none = {0};
    enum weft_rc rc = weft_engine_flow_cancel(engine, &args, &state, NULL, &none);
    if (rc == WEFT_NOT_LIVE || rc == WEFT_NOT_FOUND)
        return WEFT_OK; /* it ended just now */
    if (rc && err)
        *err = none;
    return rc;
}

enum weft_rc weft_engine_batch_cancel(struct weft_engine *engine, const char *ns,
                                      const struct weft_id *id, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_batch batch;
    struct weft_call call;
    enum weft_rc rc = weft_engine_batch(engine, ns, id, arena, &batch, err);
    bool over = !rc && (batch.status == WEFT_BATCH_STATUS_COMPLETED ||
                        batch.status == WEFT_BATCH_STATUS_EXPIRED ||
                        batch.status == WEFT_BATCH_STATUS_FAILED);
    if (over)
        rc = weft_fail_field(err, WEFT_NOT_LIVE, "id", "the batch is %s: it cannot be cancelled",
                             weft_wire_batch_statuses[batch.status]);
    *weft_call_batch_want_cancel(&call, arena) =
        (struct weft_batch_want_cancel_in){.now = weft_clock_now(engine->clock), .id = *id};
    if (!rc)
        rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    if (!rc && batch.phase == WEFT_BATCH_RUNNING && batch.flow_open)
        rc = cancel_flow(engine, &batch, err);
    weft_arena_free(arena);
    return rc;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

enum weft_rc weft_engine_batch_step(struct weft_engine *engine, const struct weft_id *id,
                                    bool *ret_more, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_batch batch = {0};
    struct weft_err none = {0}, unread = {0};
    *ret_more = false;
    if (!err) /* calls on executions want to say why they fail */
        err = &unread;
    enum weft_rc rc = weft_batch_load(engine, 0, id, arena, &batch, &none);
    if (rc == WEFT_NOT_FOUND) {
        rc = WEFT_OK; /* it was deleted */
    } else if (rc) {
        *err = none;
    } else if (batch.phase == WEFT_BATCH_WRITING) {
        rc = weft_batch_write(engine, &batch, err);
        *ret_more = !rc;
    } else if (batch.phase == WEFT_BATCH_RUNNING && batch.retry_us) {
        rc = weft_batch_bring_back(engine, &batch, ret_more, err);
    } else if (batch.phase == WEFT_BATCH_RUNNING && !batch.flow_open) {
        rc = weft_batch_freeze(engine, &batch, err);
    } else if (batch.phase == WEFT_BATCH_RUNNING && batch.cancelling_us && !batch.flow_cancelled) {
        rc = cancel_flow(engine, &batch, err);
    } else if (batch.phase == WEFT_BATCH_RUNNING && !batch.flow_cancelled) {
        rc = weft_batch_hurry(engine, &batch, ret_more, err);
    }
    weft_arena_free(arena);
    return rc;
}
