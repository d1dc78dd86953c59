/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Admits executions of gates whose time has come (a window or a rate makes room by itself), and of
 * gates whose errand was lost with its process: each pass looks at the next gates that have living
 * executions, without locks, and admits where one has held executions and room. Then removes rows
 * of gates that nothing uses any more. While there are gates it runs every WEFT_GATES_WALK_US (the
 * poll says so), otherwise not at all. A process that dies loses the errands of many gates at once:
 * passes follow each other soon until they have been at all gates and found no lost errand, at
 * first and after each that they find.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine_state.h"
#include "engine/limit/admit.h"
#include "engine/scan/scan.h"

#include <stdio.h>
#include <string.h>

/* The order of the table in pass.c. */
enum { PROCESSED, LOOKED, LOCKED, REMOVED };

/* Where a walk continues: behind the last gate, if the batch was full; "": at the beginning. Two
 * passes at once cost a second look at the same gates. */
static void put_place(struct weft_engine *engine, char place[WEFT_GATE_KEY], const char *last)
{
    pthread_mutex_lock(&engine->sample_lock);
    (void)snprintf(place, WEFT_GATE_KEY, "%s", last ? last : "");
    pthread_mutex_unlock(&engine->sample_lock);
}

static const char *get_place(struct weft_engine *engine, const char place[WEFT_GATE_KEY],
                             struct weft_arena *arena)
{
    pthread_mutex_lock(&engine->sample_lock);
    const char *copy = weft_arena_strdup(arena, place);
    pthread_mutex_unlock(&engine->sample_lock);
    return copy;
}

/* Notes where a pass ended, and whether errands were lost among what it has looked at. */
static void note_walk(struct weft_engine *engine, const char *last, bool lost)
{
    put_place(engine, engine->gates_walked, last);
    pthread_mutex_lock(&engine->sample_lock);
    engine->gates_lost |= lost;
    if (!last) { /* it was at the last gate */
        engine->gates_calm = !engine->gates_lost;
        engine->gates_lost = false;
    } else if (lost) {
        engine->gates_calm = false;
    }
    pthread_mutex_unlock(&engine->sample_lock);
}

static bool is_calm(struct weft_engine *engine)
{
    pthread_mutex_lock(&engine->sample_lock);
    bool calm = engine->gates_calm;
    pthread_mutex_unlock(&engine->sample_lock);
    return calm;
}

static enum weft_rc admit_due(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_engine *engine = pass->engine;
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_admitted admitted;
    size_t count = 0, walked = 0, lost = 0;
    weft_usec now_us = weft_clock_now(engine->clock);
    *weft_call_gates_due(&call, pass->arena) =
        (struct weft_gates_due_in){.now = now_us,
                                   .after = get_place(engine, engine->gates_walked, pass->arena),
                                   .most = pass->config->batch};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (rc)
        return rc;
    const char **name = weft_new_array(pass->arena, const char *, rows.count + 1);
    const char *last = NULL;
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_gates_due_out *row = &weft_out_gates_due(&rows)[i];
        pass->report.more |= row->due && i + 1 == pass->config->batch;
        if (!row->due) {
            last = row->name;
            walked++;
        }
        if (row->open && (pass->ns == 0 || weft_gate_ns(row->name) == pass->ns)) {
            name[count++] = row->name;
            lost += !row->due;
        }
    }
    rc = weft_engine_admit(engine, name, count, &admitted, err);
    if (rc)
        return rc;
    note_walk(engine, walked == pass->config->batch ? last : NULL,
              lost > 0 && admitted.admitted > 0);
    pass->count[LOOKED] = count;
    pass->count[PROCESSED] = pass->report.handled = admitted.admitted;
    pass->count[LOCKED] = admitted.locked;
    return WEFT_OK;
}

static enum weft_rc forget_unused(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_engine *engine = pass->engine;
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_gates_forget(&call, pass->arena) =
        (struct weft_gates_forget_in){.now = weft_clock_now(engine->clock),
                                      .after = get_place(engine, engine->gates_swept, pass->arena),
                                      .most = pass->config->batch};
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, pass->arena, &rows, err);
    const char *last = NULL;
    for (size_t i = 0; i < rows.count && !rc; i++) {
        const struct weft_gates_forget_out *row = &weft_out_gates_forget(&rows)[i];
        pass->count[REMOVED] += row->gone;
        if (!last || strcmp(row->name, last) > 0)
            last = row->name;
    }
    if (!rc)
        put_place(engine, engine->gates_swept, rows.count == pass->config->batch ? last : NULL);
    return rc;
}

enum weft_rc weft_unblock_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    if (pass->ns < 0) /* it has never had any work */
        return WEFT_OK;
    enum weft_rc rc = admit_due(pass, err);
    if (!rc)
        rc = forget_unused(pass, err);
    bool calm = is_calm(pass->engine);
    weft_usec again_us =
        weft_clock_now(pass->engine->clock) + (calm ? WEFT_GATES_WALK_US : WEFT_GATES_HURRY_US);
    atomic_store(&pass->engine->gates_walk_us, again_us);
    weft_call_gate_next(&call, pass->arena);
    if (!rc)
        rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (!calm)
        pass->report.next_due_us = again_us;
    if (!rc && rows.count > 0 && weft_out_gate_next(&rows)->next.set &&
        weft_out_gate_next(&rows)->next.value < pass->report.next_due_us)
        pass->report.next_due_us = weft_out_gate_next(&rows)->next.value;
    return rc;
}
