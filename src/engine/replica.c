/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replicas as they see each other: a row each, written with every heartbeat. No rule of the work
 * depends on these rows but one, the grace of a server that comes up: see net/supervisor.c.
 */

#include "engine/engine.h"

static enum weft_rc put_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    const struct weft_replica_row *row = *(const struct weft_replica_row *const *)context;
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, tx->arena, WEFT_STMT_REPLICA_PUT, 0);
    weft_set_id(&call, 0, REPLICA_PUT_IN_ID, &row->id);
    weft_set_text(&call, 0, REPLICA_PUT_IN_HOST, row->host);
    weft_set_i64(&call, 0, REPLICA_PUT_IN_PID, row->pid);
    weft_set_text(&call, 0, REPLICA_PUT_IN_VERSION, row->version);
    weft_set_text(&call, 0, REPLICA_PUT_IN_URL, row->url);
    weft_set_i64(&call, 0, REPLICA_PUT_IN_STARTED, row->started_us);
    weft_set_i64(&call, 0, REPLICA_PUT_IN_UP_SINCE, row->up_since_us);
    weft_set_i64(&call, 0, REPLICA_PUT_IN_SEEN, tx->now_us);
    weft_set_text(&call, 0, REPLICA_PUT_IN_SETTINGS, row->settings);
    weft_set_text(&call, 0, REPLICA_PUT_IN_SCANNERS, row->scanners);
    return weft_tx_run(tx, &call, 1, &rows, err);
}

enum weft_rc weft_engine_replica_put(struct weft_engine *engine, const struct weft_replica_row *row,
                                     struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, put_body, &row, err);
    weft_arena_free(tx.arena);
    return rc;
}

enum weft_rc weft_engine_replica_remove(struct weft_engine *engine, const struct weft_id *id,
                                        struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    weft_call_init(&call, arena, WEFT_STMT_REPLICA_REMOVE, 0);
    weft_set_id(&call, 0, REPLICA_REMOVE_IN_ID, id);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, NULL, err);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_replicas(struct weft_engine *engine, struct weft_arena *arena,
                                  struct weft_replica_rows *ret_rows, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, arena, WEFT_STMT_REPLICAS, 0);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_replica_row *item = weft_new_array(arena, struct weft_replica_row, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++)
        item[i] = (struct weft_replica_row){
            .id = weft_get_id(&rows, i, REPLICAS_OUT_ID),
            .host = weft_get_text(&rows, i, REPLICAS_OUT_HOST),
            .pid = weft_get_i64(&rows, i, REPLICAS_OUT_PID),
            .version = weft_get_text(&rows, i, REPLICAS_OUT_VERSION),
            .url = weft_get_text(&rows, i, REPLICAS_OUT_URL),
            .started_us = weft_get_i64(&rows, i, REPLICAS_OUT_STARTED),
            .up_since_us = weft_get_i64(&rows, i, REPLICAS_OUT_UP_SINCE),
            .seen_us = weft_get_i64(&rows, i, REPLICAS_OUT_SEEN),
            .settings = weft_get_text(&rows, i, REPLICAS_OUT_SETTINGS),
            .scanners = weft_get_text(&rows, i, REPLICAS_OUT_SCANNERS),
        };
    *ret_rows = (struct weft_replica_rows){.item = item, .count = rows.count};
    return WEFT_OK;
}
