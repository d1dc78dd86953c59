/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Telling workers of leases that others ended. A watch takes the draining rows of a worker that it
 * was not told of and marks them in the same statement, so each is told once, whichever replica is
 * asked. It is a hint: a worker that misses one learns at its next renewal.
 */

#include "engine/engine.h"

#include "core/lease.h"

static enum weft_rc check_watch(const struct weft_watch *watch, struct weft_err *err)
{
    enum weft_rc rc = weft_name_check(watch->worker, "worker", err);
    return rc ? rc : weft_name_check(watch->ns, "namespace", err);
}

enum weft_rc weft_engine_worker_number(struct weft_engine *engine, const struct weft_watch *watch,
                                       int32_t *ret_worker, struct weft_err *err)
{
    enum weft_rc rc = check_watch(watch, err);
    struct weft_name_want space = {.sort = WEFT_NAME_NAMESPACE, .text = watch->ns};
    if (!rc)
        rc = weft_intern_names(engine, true, &space, 1, err);
    struct weft_name_want worker = {
        .sort = WEFT_NAME_WORKER, .ns = space.id, .text = watch->worker};
    if (!rc && engine->census.most_workers > 0) {
        rc = weft_intern_names(engine, false, &worker, 1, err);
        if (!rc && worker.id == 0)
            rc = weft_census_worker(engine, space.id, watch->ns, err);
    }
    if (!rc)
        rc = weft_intern_names(engine, true, &worker, 1, err);
    if (!rc)
        *ret_worker = worker.id;
    return rc;
}

/* Whether there is something to tell; most watches find nothing, and a read costs no commit. */
static enum weft_rc look(struct weft_engine *engine, int32_t worker, struct weft_arena *arena,
                         bool *ret_any, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, arena, WEFT_STMT_WATCH_LOOK, 0);
    weft_set_i64(&call, 0, WATCH_LOOK_IN_WORKER, worker);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    *ret_any = !rc && rows.count > 0;
    return rc;
}

static enum weft_rc take(struct weft_engine *engine, int32_t worker, struct weft_arena *arena,
                         struct weft_watched *ret_watched, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, arena, WEFT_STMT_WATCH_TAKE, 0);
    weft_set_i64(&call, 0, WATCH_TAKE_IN_WORKER, worker);
    weft_set_i64(&call, 0, WATCH_TAKE_IN_BATCH, WEFT_BATCH_MAX);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_ended_lease *item = weft_new_array(arena, struct weft_ended_lease, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++)
        item[i] = (struct weft_ended_lease){
            .id = weft_get_id(&rows, i, WATCH_TAKE_OUT_ID),
            .epoch = (int32_t)weft_get_i64(&rows, i, WATCH_TAKE_OUT_EPOCH),
            .reason =
                weft_drain_fence((enum weft_ended)weft_get_i64(&rows, i, WATCH_TAKE_OUT_ENDED)),
        };
    *ret_watched = (struct weft_watched){.item = item, .count = rows.count};
    return WEFT_OK;
}

enum weft_rc weft_engine_watch(struct weft_engine *engine, const struct weft_watch *watch,
                               struct weft_arena *arena, struct weft_watched *ret_watched,
                               struct weft_err *err)
{
    int32_t worker = 0;
    bool any = false;
    enum weft_rc rc = weft_engine_worker_number(engine, watch, &worker, err);
    if (!rc)
        rc = look(engine, worker, arena, &any, err);
    if (!rc && any)
        return take(engine, worker, arena, ret_watched, err);
    if (!rc)
        *ret_watched = (struct weft_watched){0};
    return rc;
}
