/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The operations of a handle over an engine in this process. What they changed is told to the
 * workers of the handle and to the calls that wait on it.
 */

#include "client/client.h"

#include "base/arena.h"
#include "base/err.h"
#include "core/state.h"

/* Wakes the workers of this handle for what was accepted. */
static void wake_for(struct weft *weft, const struct weft_spec *spec, size_t count,
                     const struct weft_submitted *answer)
{
    bool ready = false;
    weft_usec due_us = WEFT_NEVER, now_us = weft_clock_now(weft_engine_clock(weft->engine));
    for (size_t i = 0; i < count; i++) {
        if (answer[i].err.rc)
            continue;
        ready |= answer[i].state == WEFT_STATE_READY;
        if (answer[i].state != WEFT_STATE_DELAYED)
            continue;
        weft_usec at_us =
            spec[i].run_at_us ? spec[i].run_at_us : now_us + spec[i].delay_ms * WEFT_MS;
        due_us = at_us < due_us ? at_us : due_us;
    }
    if (ready || due_us != WEFT_NEVER)
        weft_wake_workers(weft, ready, due_us);
}

static enum weft_rc submit(const struct weft_via *via, const struct weft_spec *spec, size_t count,
                           struct weft_submitted *ret_answer, struct weft_err *err)
{
    struct weft *weft = via->weft;
    enum weft_rc rc = weft_engine_submit(weft->engine, weft->ns, spec, count, ret_answer, err);
    if (!rc)
        wake_for(weft, spec, count, ret_answer);
    return rc;
}

/* ---- Working --------------------------------------------------------------------------------- */

static enum weft_rc claim(const struct weft_via *via, const struct weft_claim *claims, size_t count,
                          struct weft_arena *arena, struct weft_claim_result *ret_result,
                          struct weft_err *err)
{
    int64_t wait_ms = 0;
    for (size_t i = 0; i < count; i++)
        wait_ms = claims[i].wait_ms > wait_ms ? claims[i].wait_ms : wait_ms;
    struct weft_look look;
    weft_look_init(&look, via->weft, WEFT_CHANGE_READY, wait_ms);
    enum weft_rc rc;
    do
        rc = weft_engine_claim(via->weft->engine, via->weft->ns, claims, count, arena, ret_result,
                               err);
    while (!rc && ret_result->count == 0 && wait_ms > 0 && weft_look_again(&look, via));
    return rc;
}

static enum weft_rc renew(const struct weft_via *via, const struct weft_renew *item, size_t count,
                          struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    return weft_engine_renew(via->weft->engine, item, count, ret_answer, err);
}

static enum weft_rc complete(const struct weft_via *via, const struct weft_complete *item,
                             size_t count, struct weft_lease_answer *ret_answer,
                             struct weft_err *err)
{
    enum weft_rc rc = weft_engine_complete(via->weft->engine, item, count, ret_answer, err);
    if (!rc)
        weft_note_change(via->weft, WEFT_CHANGE_ENDED);
    return rc;
}

static enum weft_rc fail(const struct weft_via *via, const struct weft_failure *item, size_t count,
                         struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    enum weft_rc rc = weft_engine_fail(via->weft->engine, item, count, ret_answer, err);
    if (!rc)
        weft_note_change(via->weft, WEFT_CHANGE_ENDED);
    return rc;
}

static enum weft_rc put_back(const struct weft_via *via, enum weft_put_back_kind kind,
                             const struct weft_put_back *item, size_t count,
                             struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    enum weft_rc rc = weft_engine_put_back(via->weft->engine, kind, item, count, ret_answer, err);
    if (!rc)
        weft_note_change(via->weft, WEFT_CHANGE_READY);
    return rc;
}

static enum weft_rc watch(const struct weft_via *via, const struct weft_watch *args,
                          struct weft_arena *arena, struct weft_watched *ret_watched,
                          struct weft_err *err)
{
    struct weft_watch mine = *args;
    if (!mine.ns)
        mine.ns = via->weft->ns;
    struct weft_look look;
    weft_look_init(&look, via->weft, WEFT_CHANGE_LEASE, mine.wait_ms);
    enum weft_rc rc;
    do
        rc = weft_engine_watch(via->weft->engine, &mine, arena, ret_watched, err);
    while (!rc && ret_watched->count == 0 && mine.wait_ms > 0 && weft_look_again(&look, via));
    return rc;
}

/* ---- Steering -------------------------------------------------------------------------------- */

static enum weft_rc steer(const struct weft_via *via, const struct weft_steering *steering,
                          struct weft_steered *ret_answer, struct weft_err *err)
{
    enum weft_rc rc = weft_engine_steer(via->weft->engine, steering, ret_answer, err);
    if (!rc && (steering->kind == WEFT_STEER_REPLAY || steering->kind == WEFT_STEER_REVOKE))
        weft_wake_workers(via->weft, true, WEFT_NEVER);
    else if (!rc)
        weft_note_change(via->weft, WEFT_CHANGE_ENDED);
    return rc;
}

static enum weft_rc steer_all(const struct weft_via *via, const struct weft_steer_all *args,
                              struct weft_sweep *ret_sweep, struct weft_err *err)
{
    enum weft_rc rc = weft_engine_steer_all(via->weft->engine, args, ret_sweep, err);
    if (!rc && args->kind == WEFT_STEER_REPLAY && ret_sweep->changed > 0)
        weft_wake_workers(via->weft, true, WEFT_NEVER);
    else if (!rc)
        weft_note_change(via->weft, WEFT_CHANGE_ENDED);
    return rc;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static enum weft_rc describe(const struct weft_via *via, const struct weft_id *id, size_t count,
                             struct weft_arena *arena, struct weft_execution *ret_item,
                             struct weft_err *err)
{
    return weft_engine_describe(via->weft->engine, via->weft->ns, id, count, arena, ret_item, err);
}

static enum weft_rc wait_for(const struct weft_via *via, const struct weft_id *id, int64_t wait_ms,
                             struct weft_arena *arena, struct weft_execution *ret_item,
                             struct weft_err *err)
{
    struct weft_look look;
    weft_look_init(&look, via->weft, WEFT_CHANGE_ENDED, wait_ms);
    enum weft_rc rc;
    do
        rc = describe(via, id, 1, arena, ret_item, err);
    while (!rc && weft_state_living(ret_item->state) && weft_look_again(&look, via));
    if (!rc && ret_item->state == WEFT_STATE_NONE)
        return weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such execution");
    return rc;
}

static enum weft_rc list(const struct weft_via *via, const struct weft_listing *listing,
                         struct weft_arena *arena, struct weft_read_page *ret_page,
                         struct weft_err *err)
{
    return weft_engine_list(via->weft->engine, listing, arena, ret_page, err);
}

static enum weft_rc attempts(const struct weft_via *via, const struct weft_id *id,
                             struct weft_arena *arena, struct weft_attempts *ret_attempts,
                             struct weft_err *err)
{
    return weft_engine_attempts(via->weft->engine, via->weft->ns, id, arena, ret_attempts, err);
}

static enum weft_rc bytes(const struct weft_via *via, enum weft_bytes_kind kind,
                          const struct weft_id *id, struct weft_arena *arena,
                          struct weft_bytes *ret_bytes, struct weft_err *err)
{
    const struct weft_bytes_of of = {.kind = kind, .ns = via->weft->ns, .id = *id};
    return weft_engine_bytes(via->weft->engine, &of, arena, ret_bytes, err);
}

static enum weft_rc counts(const struct weft_via *via, const char *lane, struct weft_arena *arena,
                           struct weft_counts *ret_counts, struct weft_err *err)
{
    return weft_engine_counts(via->weft->engine, via->weft->ns, lane, arena, ret_counts, err);
}

/* ---- Lanes, workers, upkeep ------------------------------------------------------------------ */

static enum weft_rc lane_put(const struct weft_via *via, const struct weft_lane *lane,
                             struct weft_err *err)
{
    enum weft_rc rc = weft_engine_lane_put(via->weft->engine, via->weft->ns, lane, err);
    if (!rc)
        weft_wake_workers(via->weft, true, WEFT_NEVER); /* it may have been paused, or full */
    return rc;
}

static enum weft_rc lane_remove(const struct weft_via *via, const char *lane, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_lane before;
    enum weft_rc rc =
        weft_engine_lane_remove(via->weft->engine, via->weft->ns, lane, arena, &before, err);
    weft_arena_free(arena);
    if (!rc)
        weft_wake_workers(via->weft, true, WEFT_NEVER); /* it may have been paused, or full */
    return rc;
}

static enum weft_rc lanes(const struct weft_via *via, struct weft_arena *arena,
                          struct weft_lanes *ret_lanes, struct weft_err *err)
{
    return weft_engine_lanes(via->weft->engine, via->weft->ns, arena, ret_lanes, err);
}

static enum weft_rc workers(const struct weft_via *via, struct weft_arena *arena,
                            struct weft_workers *ret_workers, struct weft_err *err)
{
    return weft_engine_workers(via->weft->engine, via->weft->ns, arena, ret_workers, err);
}

static enum weft_rc goodbye(const struct weft_via *via, const char *worker, uint64_t *ret_released,
                            struct weft_err *err)
{
    enum weft_rc rc =
        weft_engine_goodbye(via->weft->engine, via->weft->ns, worker, ret_released, err);
    if (!rc && *ret_released > 0)
        weft_wake_workers(via->weft, true, WEFT_NEVER);
    return rc;
}

static enum weft_rc run_pass(const struct weft_via *via, enum weft_scanner pass, uint32_t batch,
                             struct weft_pass_report *ret_report, struct weft_err *err)
{
    enum weft_rc rc = weft_engine_pass(via->weft->engine, pass,
                                       &(struct weft_pass_config){.batch = batch}, ret_report, err);
    if (!rc && ret_report->handled > 0)
        weft_wake_workers(via->weft, true, WEFT_NEVER);
    return rc;
}

static enum weft_rc replicas(const struct weft_via *via, struct weft_arena *arena,
                             struct weft_replicas *ret_replicas, struct weft_err *err)
{
    struct weft_engine *engine = via->weft->engine;
    struct weft_replica_rows rows;
    enum weft_rc rc = weft_engine_replicas(engine, arena, &rows, err);
    if (rc)
        return rc;
    weft_usec now_us = weft_clock_now(weft_engine_clock(engine));
    struct weft_replica *item = weft_new_array(arena, struct weft_replica, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++)
        item[i] = weft_replica_shown(&rows.item[i], now_us);
    *ret_replicas = (struct weft_replicas){.item = item, .count = rows.count};
    return WEFT_OK;
}

static enum weft_rc scanners(const struct weft_via *via, struct weft_arena *arena,
                             struct weft_scanners *ret_scanners, struct weft_err *err)
{
    struct weft_engine *engine = via->weft->engine;
    struct weft_replica_rows rows;
    enum weft_rc rc = weft_engine_replicas(engine, arena, &rows, err);
    if (!rc)
        *ret_scanners =
            weft_replica_scanners(&rows, weft_clock_now(weft_engine_clock(engine)), arena);
    return rc;
}

static void close_engine(struct weft *weft)
{
    weft_engine_close(weft->engine);
}

const struct weft_backend weft_backend_local = {
    .submit = submit,
    .claim = claim,
    .renew = renew,
    .complete = complete,
    .fail = fail,
    .put_back = put_back,
    .watch = watch,
    .steer = steer,
    .steer_all = steer_all,
    .describe = describe,
    .wait = wait_for,
    .list = list,
    .attempts = attempts,
    .bytes = bytes,
    .counts = counts,
    .lane_put = lane_put,
    .lane_remove = lane_remove,
    .lanes = lanes,
    .workers = workers,
    .goodbye = goodbye,
    .run_pass = run_pass,
    .replicas = replicas,
    .scanners = scanners,
    .token_create = weft_local_token_create,
    .token_rotate = weft_local_token_rotate,
    .token_revoke = weft_local_token_revoke,
    .tokens = weft_local_tokens,
    .flow_submit = weft_local_flow_submit,
    .flow_grow = weft_local_flow_grow,
    .flow_link = weft_local_flow_link,
    .flow_cancel = weft_local_flow_cancel,
    .flow = weft_local_flow,
    .flows = weft_local_flows,
    .close = close_engine,
};
