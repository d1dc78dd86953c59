/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Watches: a worker learns of leases that another party ended. A watch takes the worker's draining
 * rows that no watch has returned and marks them in the same statement, so each is returned once,
 * by any replica. It is a hint: a worker that misses it learns of the end at its next renewal.
 */

#include "engine/job/leases.h"

#include "base/arena.h"
#include "core/fence.h"
#include "core/spec.h"
#include "engine/admin/workers.h"
#include "engine/engine_state.h"

/* Finds the numbers of the workers' namespaces, then of the worker names that are known. */
static enum weft_rc find_workers(struct weft_engine *engine, const struct weft_watch *watch,
                                 struct weft_name_want *want, size_t count, struct weft_err *err)
{
    for (size_t i = 0; i < count; i++)
        want[i] = (struct weft_name_want){.sort = WEFT_NAME_NAMESPACE, .text = watch[i].ns};
    enum weft_rc rc = weft_intern_names(engine, true, want, count, err);
    for (size_t i = 0; i < count && !rc; i++)
        want[i] = (struct weft_name_want){
            .sort = WEFT_NAME_WORKER, .ns = want[i].id, .text = watch[i].worker};
    return rc ? rc : weft_intern_names(engine, false, want, count, err);
}

/* The new names of one namespace, from the first of them on, as far as it has room for them. */
static enum weft_rc admit_workers(struct weft_engine *engine, const struct weft_watch *watch,
                                  const struct weft_name_want *want, size_t count,
                                  struct weft_worker_met *met, struct weft_err *err)
{
    size_t wanted = 0, room = 0;
    for (size_t i = 0; i < count; i++)
        wanted += want[i].id == 0 && want[i].ns == want->ns;
    enum weft_rc rc = weft_census_room(engine, WEFT_CENSUS_WORKERS, want->ns, wanted, &room, err);
    for (size_t i = 0; i < count && !rc; i++) {
        if (want[i].id != 0 || want[i].ns != want->ns)
            continue;
        met[i].admitted = room > 0;
        if (room > 0)
            room--;
        else
            (void)weft_census_refuse(engine, WEFT_CENSUS_WORKERS, watch[i].ns, &met[i].err);
    }
    return rc;
}

/* Adds the names that are new. */
static enum weft_rc add_workers(struct weft_engine *engine, const struct weft_watch *watch,
                                struct weft_name_want *want, size_t count,
                                struct weft_worker_met *met, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_name_want *add = weft_new_array(arena, struct weft_name_want, count + 1);
    size_t adds = 0;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        if (want[i].id == 0 && !met[i].admitted && !met[i].err.rc)
            rc = admit_workers(engine, &watch[i], &want[i], count - i, &met[i], err);
        if (!rc && met[i].admitted)
            add[adds++] = want[i];
    }
    if (!rc && adds > 0)
        rc = weft_intern_names(engine, true, add, adds, err);
    for (size_t i = 0, at = 0; i < count && !rc; i++)
        met[i].number = met[i].admitted ? add[at++].id : want[i].id;
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_meet_workers(struct weft_engine *engine, const struct weft_watch *watch,
                                      size_t count, struct weft_worker_met *ret_met,
                                      struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_name_want *want = weft_new_array(arena, struct weft_name_want, count + 1);
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        ret_met[i] = (struct weft_worker_met){0};
        rc = weft_name_check(watch[i].worker, "worker", err);
        if (!rc)
            rc = weft_name_check(watch[i].ns, "namespace", err);
    }
    if (!rc)
        rc = find_workers(engine, watch, want, count, err);
    if (!rc)
        rc = add_workers(engine, watch, want, count, ret_met, err);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_engine_worker_number(struct weft_engine *engine, const struct weft_watch *watch,
                                       int32_t *ret_worker, struct weft_err *err)
{
    struct weft_worker_met met;
    enum weft_rc rc = weft_engine_meet_workers(engine, watch, 1, &met, err);
    if (!rc && met.err.rc && err)
        *err = met.err;
    *ret_worker = rc ? 0 : met.number;
    return rc ? rc : met.err.rc;
}

static enum weft_rc take(struct weft_engine *engine, int32_t worker, struct weft_arena *arena,
                         struct weft_watched *ret_watched, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_watch_take(&call, arena) =
        (struct weft_watch_take_in){.worker = worker, .batch = WEFT_BATCH_MAX};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, &rows, err);
    if (rc)
        return rc;
    struct weft_ended_lease *item = weft_new_array(arena, struct weft_ended_lease, rows.count + 1);
    const struct weft_watch_take_out *row = weft_out_watch_take(&rows);
    for (size_t i = 0; i < rows.count; i++)
        item[i] = (struct weft_ended_lease){
            .id = row[i].id,
            .epoch = row[i].epoch,
            .reason = weft_drain_fence(row[i].ended),
        };
    *ret_watched = (struct weft_watched){.item = item, .count = rows.count};
    return WEFT_OK;
}

enum weft_rc weft_engine_watch(struct weft_engine *engine, const struct weft_watch *watch,
                               struct weft_arena *arena, struct weft_watched *ret_watched,
                               struct weft_err *err)
{
    int32_t worker = 0;
    struct weft_call call;
    struct weft_rows rows;
    enum weft_rc rc = weft_engine_worker_number(engine, watch, &worker, err);
    if (rc)
        return rc;
    /* Most watches find nothing, and a read costs no commit. */
    weft_call_watch_look(&call, arena)->worker = worker;
    rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (!rc && rows.count > 0)
        return take(engine, worker, arena, ret_watched, err);
    if (!rc)
        *ret_watched = (struct weft_watched){0};
    return rc;
}
