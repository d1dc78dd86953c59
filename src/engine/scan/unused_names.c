/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Interned rows that no row refers to: found, retired, and removed. engine/names/unused.h says why
 * that is safe; the order of the walk below is part of the argument.
 *
 * A walk reads all rows that can refer to a tenant, a route, a worker or a queue, in the order of
 * primary keys, and marks the ids that it meets. Then it classifies the interned rows:
 *
 *   met:                                 its note is deleted;
 *   not met, nothing noted:              noted as unused since the walk began;
 *   unused for as long as the setting:   retired, if there is room: each poll of each process reads
 *                                        all retired rows, so they are few at a time;
 *   retired WEFT_UNUSED_RETIRED_US or more before the walk began: removed.
 *
 * A pass reads `batch` rows at most and remembers where it stopped, so a walk over a large store
 * takes hours and costs little at any moment. The walk is in the memory of the process: a restart
 * starts over. One process walks at a time (unused_walk); another takes over when the walker has
 * been silent for STALE_US. That only saves reads: all decisions of a walk are written by
 * statements that are correct beside another walk.
 *
 * Marks are bits, for WINDOW ids of names and as many queues. A store with larger ids is walked
 * once for each window.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "engine/admin/replicas.h"
#include "engine/engine_state.h"
#include "engine/scan/scan.h"
#include "store/migrate.h"

#include <stdlib.h>
#include <string.h>

#define STALE_US (3600 * WEFT_SECOND)
#define BEAT_US  (300 * WEFT_SECOND)
#define PAUSE_US WEFT_UNUSED_RETIRED_US /* between walks: rows retired by the last one are due */

enum {
    WINDOW = 1 << 22,
    ROOM = 500,    /* names, and as many queues, that are retired at a time */
    OLD_MINOR = 2, /* 0.2 is the first version that looks for retired rows */
};

/*
 * The order matters: an id moves from an execution to an attempt or to a draining row, never back
 * (a replay clears the worker), so a walk that comes too late for the one comes in time for the
 * other. A draining row may outlive its execution.
 */
enum phase { EXECUTIONS, ATTEMPTS, DRAINING, WORKERS, PARTS, JUDGE_NAMES, JUDGE_QUEUES, PHASES };

/* The order of the table in pass.c. */
enum { SCANNED, NOTED, RETIRED, REMOVED, WANTED_AGAIN };

struct weft_unused_walk {
    weft_usec began_us;
    uint64_t history; /* ids of another lineage may mean other rows */
    int32_t base;     /* marks are of the ids behind this */
    enum phase phase;
    struct weft_id id; /* the last row that was read, as far as its table has these */
    int32_t epoch, replay, number;
    uint8_t *met[2]; /* owned; bits, by enum weft_interned */
};

/* ---- The walk -------------------------------------------------------------------------------- */

static struct weft_unused_walk *walk_new(struct weft_engine *engine, weft_usec now_us)
{
    struct weft_unused_walk *walk = weft_alloc(1, sizeof(*walk));
    for (size_t i = 0; i < WEFT_LEN(walk->met); i++)
        walk->met[i] = weft_alloc(1, WINDOW / 8);
    walk->began_us = now_us;
    walk->history = weft_engine_history(engine);
    walk->base = engine->unused.base;
    return walk;
}

static void walk_free(struct weft_unused_walk *walk)
{
    if (!walk)
        return;
    free(walk->met[0]);
    free(walk->met[1]);
    free(walk);
}

void weft_unused_init(struct weft_unused *unused, weft_usec after_us)
{
    *unused = (struct weft_unused){.after_us = after_us};
    pthread_mutex_init(&unused->lock, NULL);
    weft_random(&unused->walker, sizeof(unused->walker));
}

void weft_unused_done(struct weft_unused *unused)
{
    walk_free(unused->walk);
    pthread_mutex_destroy(&unused->lock);
}

static bool in_window(const struct weft_unused_walk *walk, int64_t id)
{
    return id > walk->base && id - walk->base <= WINDOW;
}

static void mark(struct weft_unused_walk *walk, enum weft_interned what, int64_t id)
{
    size_t bit = (size_t)(id - walk->base - 1);
    if (in_window(walk, id))
        walk->met[what][bit / 8] |= (uint8_t)(1u << bit % 8);
}

static bool is_met(const struct weft_unused_walk *walk, enum weft_interned what, int64_t id)
{
    size_t bit = (size_t)(id - walk->base - 1);
    return walk->met[what][bit / 8] >> bit % 8 & 1;
}

static void next_phase(struct weft_unused_walk *walk)
{
    walk->phase++;
    walk->id = (struct weft_id){{0}};
    walk->epoch = walk->replay = 0;
    walk->number = walk->phase >= JUDGE_NAMES ? walk->base : 0;
}

/* The statement that reads on from where the walk is. */
static void read_call(const struct weft_pass *pass, uint32_t most, struct weft_call *call)
{
    const struct weft_unused_walk *walk = pass->engine->unused.walk;
    switch (walk->phase) {
    case EXECUTIONS:
        *weft_call_unused_executions(call, pass->arena) =
            (struct weft_unused_executions_in){.after = walk->id, .most = most};
        break;
    case ATTEMPTS:
        *weft_call_unused_attempts(call, pass->arena) = (struct weft_unused_attempts_in){
            .id = walk->id, .epoch = walk->epoch, .replay = walk->replay, .most = most};
        break;
    case DRAINING:
        *weft_call_unused_draining(call, pass->arena) =
            (struct weft_unused_draining_in){.id = walk->id, .epoch = walk->epoch, .most = most};
        break;
    case WORKERS:
        *weft_call_unused_workers(call, pass->arena) =
            (struct weft_unused_workers_in){.after = walk->number, .most = most};
        break;
    default:
        *weft_call_unused_parts(call, pass->arena) =
            (struct weft_unused_parts_in){.after = walk->number, .most = most};
        break;
    }
}

/* Marks the ids that a row refers to, and moves behind it. NULL is 0, which is no id. */
static void take_row(struct weft_unused_walk *walk, const struct weft_rows *rows, size_t i)
{
    switch (walk->phase) {
    case EXECUTIONS: {
        const struct weft_unused_executions_out *row = &weft_out_unused_executions(rows)[i];
        walk->id = row->id;
        mark(walk, WEFT_INTERNED_QUEUE, row->queue);
        mark(walk, WEFT_INTERNED_NAME, row->worker.value);
        break;
    }
    case ATTEMPTS: {
        const struct weft_unused_attempts_out *row = &weft_out_unused_attempts(rows)[i];
        walk->id = row->id;
        walk->epoch = row->epoch;
        walk->replay = row->replay;
        mark(walk, WEFT_INTERNED_NAME, row->worker.value);
        break;
    }
    case DRAINING: {
        const struct weft_unused_draining_out *row = &weft_out_unused_draining(rows)[i];
        walk->id = row->id;
        walk->epoch = row->epoch;
        mark(walk, WEFT_INTERNED_QUEUE, row->queue);
        mark(walk, WEFT_INTERNED_NAME, row->worker);
        break;
    }
    case WORKERS:
        walk->number = weft_out_unused_workers(rows)[i].name;
        mark(walk, WEFT_INTERNED_NAME, walk->number);
        break;
    default: {
        const struct weft_unused_parts_out *row = &weft_out_unused_parts(rows)[i];
        walk->number = row->id;
        mark(walk, WEFT_INTERNED_NAME, row->tenant);
        mark(walk, WEFT_INTERNED_NAME, row->route);
        break;
    }
    }
}

static enum weft_rc read_on(struct weft_pass *pass, uint32_t most, size_t *ret_rows,
                            struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    read_call(pass, most, &call);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < rows.count; i++)
        take_row(pass->engine->unused.walk, &rows, i);
    *ret_rows = rows.count;
    return WEFT_OK;
}

/* ---- Judging --------------------------------------------------------------------------------- */

/* What the pass does with a row. */
enum verdict { NOTE, FORGET, RETIRE, REMOVE, KEEP, VERDICTS };

struct judged {
    struct weft_pass *pass;
    enum weft_interned what;
    int32_t *id[VERDICTS];
    size_t count[VERDICTS];
    size_t removed; /* by the last try */
};

/* Whether a server that does not check for retired rows uses the store. */
static enum weft_rc older_is_alive(struct weft_pass *pass, bool *ret_alive, struct weft_err *err)
{
    struct weft_replica_rows rows;
    weft_usec now_us = weft_clock_now(pass->engine->clock);
    enum weft_rc rc = weft_engine_replicas(pass->engine, pass->arena, &rows, err);
    *ret_alive = false;
    for (size_t i = 0; i < rows.count && !rc; i++) {
        char *rest = NULL;
        long major = strtol(rows.item[i].version, &rest, 10);
        long minor = *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
        *ret_alive |=
            major == 0 && minor < OLD_MINOR && weft_replica_shown(&rows.item[i], now_us).alive;
    }
    return rc;
}

/* How many rows may be retired now; rows removed in the same pass make room. */
static enum weft_rc find_room(const struct judged *judged, size_t *ret_room, struct weft_err *err)
{
    struct weft_pass *pass = judged->pass;
    struct weft_call call;
    struct weft_rows rows = {0};
    bool old = false;
    weft_call_retired_count(&call, pass->arena)->what = judged->what;
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    int64_t retired = rc ? 0 : weft_out_retired_count(&rows)->rows;
    retired -= (int64_t)judged->count[REMOVE];
    if (!rc)
        rc = older_is_alive(pass, &old, err);
    *ret_room = old || retired > ROOM ? 0 : retired < 0 ? ROOM : (size_t)(ROOM - retired);
    return rc;
}

static enum verdict judge(const struct judged *judged, const struct weft_unused_names_out *row)
{
    const struct weft_unused_walk *walk = judged->pass->engine->unused.walk;
    bool noted = row->since.set;
    bool retired = row->retired.set;
    if (is_met(walk, judged->what, row->id))
        return retired ? KEEP : noted ? FORGET : VERDICTS;
    if (retired)
        return row->retired.value <= walk->began_us - WEFT_UNUSED_RETIRED_US ? REMOVE : VERDICTS;
    if (!noted)
        return NOTE;
    return row->since.value <= walk->began_us - judged->pass->engine->unused.after_us ? RETIRE
                                                                                      : VERDICTS;
}

static void put_rows(const struct judged *judged, enum verdict verdict,
                     struct weft_interned_in *row)
{
    for (size_t i = 0; i < judged->count[verdict]; i++)
        row[i] = (struct weft_interned_in){.what = judged->what, .id = judged->id[verdict][i]};
}

static int retiring_binary(void)
{
    for (size_t i = 0; i < weft_migration_count; i++)
        if (strcmp(weft_migrations[i].name, "retired") == 0)
            return weft_migrations[i].number;
    return 0;
}

/*
 * The notes go first, because an operation that wants a row takes its note first as well: the
 * second of the two finds it gone.
 */
static enum weft_rc remove_rows(struct weft_tx *tx, struct judged *judged, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows taken, none;
    judged->removed = 0;
    if (judged->count[REMOVE] == 0)
        return WEFT_OK;
    struct weft_retired_take_in *in =
        weft_call_retired_take(&call, tx->arena, judged->count[REMOVE]);
    in->before = judged->pass->engine->unused.walk->began_us - WEFT_UNUSED_RETIRED_US;
    put_rows(judged, REMOVE, &in->row->interned);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &taken, err);
    if (rc || taken.count == 0)
        return rc;
    weft_call_init(&call, tx->arena,
                   judged->what == WEFT_INTERNED_QUEUE ? WEFT_STMT_QUEUE_REMOVE
                                                       : WEFT_STMT_NAME_REMOVE,
                   taken.count);
    for (size_t i = 0; i < taken.count; i++)
        weft_in_name_remove(&call)->row[i].id = weft_out_retired_take(&taken)[i].id;
    rc = weft_tx_run(tx, &call, 1, &none, err);
    judged->removed = taken.count;
    return rc;
}

static enum weft_rc write_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct judged *judged = context;
    struct weft_call call[6];
    struct weft_rows rows[6];
    size_t calls = 0;
    const size_t *count = judged->count;
    if (count[RETIRE] > 0)
        weft_call_schema_raise(&call[calls++], tx->arena)->oldest = retiring_binary();
    if (count[KEEP] > 0)
        put_rows(judged, KEEP,
                 &weft_call_retired_keep(&call[calls++], tx->arena, count[KEEP])->row->interned);
    if (count[FORGET] > 0)
        put_rows(judged, FORGET,
                 &weft_call_unused_forget(&call[calls++], tx->arena, count[FORGET])->row->interned);
    if (count[NOTE] > 0) {
        struct weft_unused_note_in *in =
            weft_call_unused_note(&call[calls++], tx->arena, count[NOTE]);
        in->since = judged->pass->engine->unused.walk->began_us;
        put_rows(judged, NOTE, &in->row->interned);
    }
    if (count[RETIRE] > 0) {
        struct weft_retired_add_in *in =
            weft_call_retired_add(&call[calls++], tx->arena, count[RETIRE]);
        in->at = tx->now_us;
        put_rows(judged, RETIRE, &in->row->interned);
        put_rows(judged, RETIRE,
                 &weft_call_unused_forget(&call[calls++], tx->arena, count[RETIRE])->row->interned);
    }
    enum weft_rc rc = calls > 0 ? weft_tx_run(tx, call, calls, rows, err) : WEFT_OK;
    return rc ? rc : remove_rows(tx, judged, err);
}

static enum weft_rc write_judged(struct judged *judged, struct weft_err *err)
{
    struct weft_pass *pass = judged->pass;
    size_t all = 0;
    for (size_t i = 0; i < VERDICTS; i++)
        all += judged->count[i];
    if (all == 0)
        return WEFT_OK;
    struct weft_tx tx = {.engine = pass->engine,
                         .arena = weft_arena_new(),
                         .history = pass->engine->unused.walk->history};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, write_body, judged, err);
    weft_arena_free(tx.arena);
    if (rc)
        return rc;
    pass->count[NOTED] += judged->count[NOTE];
    pass->count[RETIRED] += judged->count[RETIRE];
    pass->count[REMOVED] += judged->removed;
    pass->count[WANTED_AGAIN] += judged->count[KEEP] + judged->count[FORGET];
    return WEFT_OK;
}

static enum weft_rc judge_on(struct weft_pass *pass, uint32_t most, size_t *ret_rows,
                             struct weft_err *err)
{
    struct weft_unused_walk *walk = pass->engine->unused.walk;
    struct judged judged = {.pass = pass,
                            .what = walk->phase == JUDGE_NAMES ? WEFT_INTERNED_NAME
                                                               : WEFT_INTERNED_QUEUE};
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_init(&call, pass->arena,
                   walk->phase == JUDGE_NAMES ? WEFT_STMT_UNUSED_NAMES : WEFT_STMT_UNUSED_QUEUES,
                   0);
    struct weft_unused_names_in *in = weft_in_unused_names(&call);
    in->after = walk->number;
    in->until = walk->base > INT32_MAX - WINDOW ? INT32_MAX : walk->base + WINDOW;
    in->namespace = pass->ns;
    in->most = most;
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    for (size_t i = 0; i < VERDICTS; i++)
        judged.id[i] = weft_new_array(pass->arena, int32_t, rc ? 1 : rows.count + 1);
    const struct weft_unused_names_out *row = weft_out_unused_names(&rows);
    for (size_t i = 0; i < rows.count && !rc; i++) {
        enum verdict verdict = judge(&judged, &row[i]);
        if (verdict != VERDICTS)
            judged.id[verdict][judged.count[verdict]++] = row[i].id;
    }
    if (!rc && judged.count[RETIRE] > 0) {
        size_t room = 0;
        rc = find_room(&judged, &room, err);
        judged.count[RETIRE] = judged.count[RETIRE] < room ? judged.count[RETIRE] : room;
    }
    if (!rc)
        rc = write_judged(&judged, err);
    if (!rc && rows.count > 0)
        walk->number = row[rows.count - 1].id;
    *ret_rows = rc ? 0 : rows.count;
    return rc;
}

/* ---- Turns ----------------------------------------------------------------------------------- */

/* Takes the turn, or renews it; frees the walk if another process has the turn. */
static enum weft_rc take_turn(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_engine *engine = pass->engine;
    struct weft_unused_walk **walk = &engine->unused.walk;
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_usec now_us = weft_clock_now(engine->clock);
    weft_call_unused_turn(&call, pass->arena);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    const struct weft_unused_turn_out *row = weft_out_unused_turn(&rows);
    bool ours = row->walker == engine->unused.walker;
    if (*walk && (!ours || (*walk)->history != weft_engine_history(engine))) {
        walk_free(*walk);
        *walk = NULL;
    }
    if (*walk && now_us - row->seen < BEAT_US)
        return WEFT_OK;
    if (!*walk && (row->next > now_us || (!ours && row->seen > now_us - STALE_US)))
        return WEFT_OK;
    *weft_call_unused_take(&call, pass->arena) =
        (struct weft_unused_take_in){.walker = engine->unused.walker,
                                     .now = now_us,
                                     .old_walker = row->walker,
                                     .old_seen = row->seen};
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, pass->arena, &rows, err);
    if (!rc && !*walk && rows.count > 0)
        *walk = walk_new(engine, now_us);
    return rc;
}

/* Ends a walk over all tables: the next walk has the next window, if there is one. */
static enum weft_rc end_walk(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_engine *engine = pass->engine;
    struct weft_unused *unused = &engine->unused;
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_unused_last(&call, pass->arena);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (rc)
        return rc;
    bool more = weft_out_unused_last(&rows)->id - unused->walk->base > WINDOW;
    *weft_call_unused_end(&call, pass->arena) = (struct weft_unused_end_in){
        .walker = unused->walker, .next = weft_clock_now(engine->clock) + PAUSE_US};
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, pass->arena, NULL, err);
    if (rc)
        return rc;
    unused->base = more ? unused->walk->base + WINDOW : 0;
    walk_free(unused->walk);
    unused->walk = NULL;
    return WEFT_OK;
}

static enum weft_rc walk_on(struct weft_pass *pass, struct weft_err *err)
{
    enum weft_rc rc = take_turn(pass, err);
    struct weft_unused_walk *walk = pass->engine->unused.walk;
    uint32_t left = pass->config->batch;
    while (!rc && walk && walk->phase < PHASES && left > 0) {
        uint32_t most = left < WEFT_BATCH_MAX ? left : WEFT_BATCH_MAX;
        size_t rows = 0;
        rc = walk->phase < JUDGE_NAMES ? read_on(pass, most, &rows, err)
                                       : judge_on(pass, most, &rows, err);
        pass->count[SCANNED] += rows;
        left -= (uint32_t)rows;
        if (!rc && rows < most)
            next_phase(walk);
    }
    return !rc && walk && walk->phase == PHASES ? end_walk(pass, err) : rc;
}

enum weft_rc weft_unused_names_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_unused *unused = &pass->engine->unused;
    /* A pass has the walk to itself; another one beside it has nothing to do. */
    pthread_mutex_lock(&unused->lock);
    bool busy = unused->busy;
    unused->busy = true;
    pthread_mutex_unlock(&unused->lock);
    if (busy)
        return WEFT_OK;
    enum weft_rc rc = unused->after_us > 0 ? walk_on(pass, err) : WEFT_OK;
    pthread_mutex_lock(&unused->lock);
    unused->busy = false;
    pthread_mutex_unlock(&unused->lock);
    pass->report.handled = pass->count[RETIRED] + pass->count[REMOVED];
    return rc;
}
