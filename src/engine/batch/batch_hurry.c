/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks at a batch that runs: whether its lines end fast enough for its window (core/batch_pace.h).
 * Each look counts every line, so the looks are far apart while there is much time. One process
 * makes each of them: the one that moves `look_at` on.
 */

#include "engine/batch/batch.h"

#include "base/arena.h"
#include "base/clock.h"
#include "core/batch_pace.h"
#include "engine/engine_state.h"
#include "engine/job/control.h"
#include "weft/weft.h"

/* Puts the first lines that wait before others. Lines that begin or end meanwhile are as well. */
static enum weft_rc raise(struct weft_engine *engine, const struct weft_batch *batch, uint32_t most,
                          struct weft_arena *arena, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_batch_waiting(&call, arena) = (struct weft_batch_waiting_in){
        .batch = batch->id, .priority = WEFT_BATCH_RAISED, .most = most};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    struct weft_steer *item = weft_new_array(arena, struct weft_steer, rows.count);
    struct weft_steer_result *answer = weft_new_array(arena, struct weft_steer_result, rows.count);
    for (size_t i = 0; i < rows.count; i++)
        item[i] = (struct weft_steer){.id = weft_out_batch_waiting(&rows)[i].id,
                                      .priority = WEFT_BATCH_RAISED};
    const struct weft_steering steering = {.kind = WEFT_STEER_REPRIORITIZE,
                                           .ns = batch->ns,
                                           .item = item,
                                           .count = rows.count,
                                           .arena = arena};
    return weft_engine_steer(engine, &steering, answer, err);
}

static enum weft_rc keep_pace(struct weft_engine *engine, const struct weft_batch *batch,
                              weft_usec now_us, weft_usec next_us, struct weft_arena *arena,
                              struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_batch_pace(&call, arena) = (struct weft_batch_pace_in){
        .batch = batch->id, .since = batch->looked_us, .priority = WEFT_BATCH_RAISED};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, arena, &rows, err);
    if (rc)
        return rc;
    const struct weft_batch_pace_out *row = weft_out_batch_pace(&rows);
    const struct weft_batch_pace pace = {.waiting = (uint64_t)row->waiting,
                                         .raised = (uint64_t)row->raised,
                                         .ended = (uint64_t)row->ended,
                                         .since_us =
                                             batch->looked_us ? now_us - batch->looked_us : 0,
                                         .left_us = batch->expires_us - now_us,
                                         .next_us = next_us};
    uint32_t lines = weft_batch_pace_raise(&pace);
    return lines ? raise(engine, batch, lines, arena, err) : WEFT_OK;
}

static enum weft_rc move_look(struct weft_engine *engine, const struct weft_batch *batch,
                              weft_usec now_us, weft_usec at_us, struct weft_arena *arena,
                              bool *ret_mine, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_batch_look(&call, arena) = (struct weft_batch_look_in){
        .id = batch->id, .was = batch->look_at_us, .looked = now_us, .look_at = at_us};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, arena, &rows, err);
    *ret_mine = !rc && rows.count > 0;
    return rc;
}

enum weft_rc weft_batch_hurry(struct weft_engine *engine, const struct weft_batch *batch,
                              bool *ret_more, struct weft_err *err)
{
    weft_usec now_us = weft_clock_now(engine->clock);
    weft_usec window_us = weft_batch_window(batch->window) * WEFT_SECOND;
    weft_usec left_us = batch->expires_us - now_us;
    weft_usec next_us = weft_batch_look_in(window_us, left_us);
    struct weft_arena *arena = weft_arena_new();
    bool mine = false, more = false;
    enum weft_rc rc = WEFT_OK;
    *ret_more = false;
    if (now_us < batch->look_at_us)
        goto out;
    rc = move_look(engine, batch, now_us, now_us + next_us, arena, &mine, err);
    if (rc || !mine)
        goto out;
    if (weft_batch_escalates(window_us, left_us))
        rc = weft_batch_escalate(engine, batch, &more, err);
    if (!rc && !more)
        rc = keep_pace(engine, batch, now_us, next_us, arena, err);
    if (!rc && more) { /* the next look comes at once, and counts from where this one did */
        struct weft_batch later = *batch;
        later.look_at_us = now_us + next_us;
        rc = move_look(engine, &later, batch->looked_us, now_us, arena, &mine, err);
        *ret_more = true;
    }

out:
    weft_arena_free(arena);
    return rc;
}
