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

#include "engine/scan/scan.h"

#include "base/id.h"
#include "base/log.h"
#include "engine/names/unused.h"
#include "store/migrate.h"

#include <stdlib.h>
#include <string.h>

#define STALE_US (3600 * WEFT_SECOND)
#define BEAT_US  (300 * WEFT_SECOND)
#define PAUSE_US WEFT_UNUSED_RETIRED_US /* from the end of a walk: what it retired is due then */

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
enum { SCANNED, NOTED, RETIRED, REMOVED, WANTED_AGAIN, COUNTERS };

struct weft_unused_walk {
    weft_usec began_us;
    uint64_t history; /* ids of another lineage may mean other rows */
    int32_t base;     /* marks are of the ids behind this */
    enum phase phase;
    struct weft_id id; /* the last row that was read, as far as its table has these */
    int32_t epoch, replay, number;
    uint8_t *met[2]; /* owned; bits, by enum weft_interned */
};

struct pass {
    struct weft_engine *engine;
    const struct weft_pass_config *config;
    struct weft_arena *arena;
    struct weft_unused_walk *walk;
    int32_t ns; /* judged are rows of this namespace; 0: all, -1: none */
    uint64_t count[COUNTERS];
};

/* ---- The walk -------------------------------------------------------------------------------- */

static struct weft_unused_walk *walk_new(struct weft_engine *engine, weft_usec now_us)
{
    struct weft_unused_walk *walk = calloc(1, sizeof(*walk));
    if (!walk)
        weft_oom(sizeof(*walk));
    for (size_t i = 0; i < WEFT_LEN(walk->met); i++) {
        walk->met[i] = calloc(1, WINDOW / 8);
        if (!walk->met[i])
            weft_oom(WINDOW / 8);
    }
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
static void read_call(const struct pass *pass, uint32_t most, struct weft_call *call)
{
    static const enum weft_stmt stmt[] = {WEFT_STMT_UNUSED_EXECUTIONS, WEFT_STMT_UNUSED_ATTEMPTS,
                                          WEFT_STMT_UNUSED_DRAINING, WEFT_STMT_UNUSED_WORKERS,
                                          WEFT_STMT_UNUSED_PARTS};
    const struct weft_unused_walk *walk = pass->walk;
    weft_call_init(call, pass->arena, stmt[walk->phase], 0);
    switch (walk->phase) {
    case EXECUTIONS:
        weft_set_id(call, 0, UNUSED_EXECUTIONS_IN_AFTER, &walk->id);
        weft_set_i64(call, 0, UNUSED_EXECUTIONS_IN_MOST, most);
        break;
    case ATTEMPTS:
        weft_set_id(call, 0, UNUSED_ATTEMPTS_IN_ID, &walk->id);
        weft_set_i64(call, 0, UNUSED_ATTEMPTS_IN_EPOCH, walk->epoch);
        weft_set_i64(call, 0, UNUSED_ATTEMPTS_IN_REPLAY, walk->replay);
        weft_set_i64(call, 0, UNUSED_ATTEMPTS_IN_MOST, most);
        break;
    case DRAINING:
        weft_set_id(call, 0, UNUSED_DRAINING_IN_ID, &walk->id);
        weft_set_i64(call, 0, UNUSED_DRAINING_IN_EPOCH, walk->epoch);
        weft_set_i64(call, 0, UNUSED_DRAINING_IN_MOST, most);
        break;
    case WORKERS:
        weft_set_i64(call, 0, UNUSED_WORKERS_IN_AFTER, walk->number);
        weft_set_i64(call, 0, UNUSED_WORKERS_IN_MOST, most);
        break;
    default:
        weft_set_i64(call, 0, UNUSED_PARTS_IN_AFTER, walk->number);
        weft_set_i64(call, 0, UNUSED_PARTS_IN_MOST, most);
        break;
    }
}

/* Marks what a row refers to, and goes on behind it. A NULL is 0, which no row has as its id. */
static void take_row(struct weft_unused_walk *walk, const struct weft_rows *rows, size_t i)
{
    switch (walk->phase) {
    case EXECUTIONS:
        walk->id = weft_get_id(rows, i, UNUSED_EXECUTIONS_OUT_ID);
        mark(walk, WEFT_INTERNED_QUEUE, weft_get_i64(rows, i, UNUSED_EXECUTIONS_OUT_QUEUE));
        mark(walk, WEFT_INTERNED_NAME, weft_get_i64(rows, i, UNUSED_EXECUTIONS_OUT_WORKER));
        break;
    case ATTEMPTS:
        walk->id = weft_get_id(rows, i, UNUSED_ATTEMPTS_OUT_ID);
        walk->epoch = (int32_t)weft_get_i64(rows, i, UNUSED_ATTEMPTS_OUT_EPOCH);
        walk->replay = (int32_t)weft_get_i64(rows, i, UNUSED_ATTEMPTS_OUT_REPLAY);
        mark(walk, WEFT_INTERNED_NAME, weft_get_i64(rows, i, UNUSED_ATTEMPTS_OUT_WORKER));
        break;
    case DRAINING:
        walk->id = weft_get_id(rows, i, UNUSED_DRAINING_OUT_ID);
        walk->epoch = (int32_t)weft_get_i64(rows, i, UNUSED_DRAINING_OUT_EPOCH);
        mark(walk, WEFT_INTERNED_QUEUE, weft_get_i64(rows, i, UNUSED_DRAINING_OUT_QUEUE));
        mark(walk, WEFT_INTERNED_NAME, weft_get_i64(rows, i, UNUSED_DRAINING_OUT_WORKER));
        break;
    case WORKERS:
        walk->number = (int32_t)weft_get_i64(rows, i, UNUSED_WORKERS_OUT_NAME);
        mark(walk, WEFT_INTERNED_NAME, walk->number);
        break;
    default:
        walk->number = (int32_t)weft_get_i64(rows, i, UNUSED_PARTS_OUT_ID);
        mark(walk, WEFT_INTERNED_NAME, weft_get_i64(rows, i, UNUSED_PARTS_OUT_TENANT));
        mark(walk, WEFT_INTERNED_NAME, weft_get_i64(rows, i, UNUSED_PARTS_OUT_ROUTE));
        break;
    }
}

static enum weft_rc read_on(struct pass *pass, uint32_t most, size_t *ret_rows,
                            struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    read_call(pass, most, &call);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < rows.count; i++)
        take_row(pass->walk, &rows, i);
    *ret_rows = rows.count;
    return WEFT_OK;
}

/* ---- Judging --------------------------------------------------------------------------------- */

/* What becomes of the rows of one read. */
enum verdict { NOTE, FORGET, RETIRE, REMOVE, KEEP, VERDICTS };

struct judged {
    struct pass *pass;
    enum weft_interned what;
    int32_t *id[VERDICTS];
    size_t count[VERDICTS];
    size_t removed; /* by the last try */
};

/* Whether a binary that does not look for retired rows may be at work on the store. */
static enum weft_rc older_is_alive(struct pass *pass, bool *ret_alive, struct weft_err *err)
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
    struct pass *pass = judged->pass;
    struct weft_call call;
    struct weft_rows rows;
    bool old = false;
    weft_call_init(&call, pass->arena, WEFT_STMT_RETIRED_COUNT, 0);
    weft_set_i64(&call, 0, RETIRED_COUNT_IN_WHAT, judged->what);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    int64_t retired = rc ? 0 : weft_get_i64(&rows, 0, RETIRED_COUNT_OUT_ROWS);
    retired -= (int64_t)judged->count[REMOVE];
    if (!rc)
        rc = older_is_alive(pass, &old, err);
    *ret_room = old || retired > ROOM ? 0 : retired < 0 ? ROOM : (size_t)(ROOM - retired);
    return rc;
}

static enum verdict judge(const struct judged *judged, const struct weft_rows *rows, size_t i)
{
    const struct weft_unused_walk *walk = judged->pass->walk;
    bool noted = !weft_get(rows, i, UNUSED_NAMES_OUT_SINCE)->null;
    bool retired = !weft_get(rows, i, UNUSED_NAMES_OUT_RETIRED)->null;
    if (is_met(walk, judged->what, weft_get_i64(rows, i, UNUSED_NAMES_OUT_ID)))
        return retired ? KEEP : noted ? FORGET : VERDICTS;
    if (retired) {
        weft_usec at_us = weft_get_i64(rows, i, UNUSED_NAMES_OUT_RETIRED);
        return at_us <= walk->began_us - WEFT_UNUSED_RETIRED_US ? REMOVE : VERDICTS;
    }
    if (!noted)
        return NOTE;
    weft_usec since_us = weft_get_i64(rows, i, UNUSED_NAMES_OUT_SINCE);
    return since_us <= walk->began_us - judged->pass->engine->unused.after_us ? RETIRE : VERDICTS;
}

static size_t put_call(const struct judged *judged, struct weft_arena *arena, enum verdict verdict,
                       enum weft_stmt stmt, weft_usec moment_us, struct weft_call *call)
{
    size_t count = judged->count[verdict];
    /* Statements with a time have it first; all have `what` and `id` last. */
    size_t first = moment_us >= 0 ? 1 : 0;
    weft_call_init(call, arena, stmt, count);
    if (moment_us >= 0)
        weft_set_i64(call, 0, 0, moment_us);
    for (size_t i = 0; i < count; i++) {
        weft_set_i64(call, i, first, judged->what);
        weft_set_i64(call, i, first + 1, judged->id[verdict][i]);
    }
    return count > 0;
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
    weft_usec before_us = judged->pass->walk->began_us - WEFT_UNUSED_RETIRED_US;
    judged->removed = 0;
    if (!put_call(judged, tx->arena, REMOVE, WEFT_STMT_RETIRED_TAKE, before_us, &call))
        return WEFT_OK;
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &taken, err);
    if (rc || taken.count == 0)
        return rc;
    weft_call_init(&call, tx->arena,
                   judged->what == WEFT_INTERNED_QUEUE ? WEFT_STMT_QUEUE_REMOVE
                                                       : WEFT_STMT_NAME_REMOVE,
                   taken.count);
    for (size_t i = 0; i < taken.count; i++)
        weft_set_i64(&call, i, 0, weft_get_i64(&taken, i, RETIRED_TAKE_OUT_ID));
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
    if (judged->count[RETIRE] > 0) {
        weft_call_init(&call[calls], tx->arena, WEFT_STMT_SCHEMA_RAISE, 0);
        weft_set_i64(&call[calls++], 0, SCHEMA_RAISE_IN_OLDEST, retiring_binary());
    }
    calls += put_call(judged, tx->arena, KEEP, WEFT_STMT_RETIRED_KEEP, -1, &call[calls]);
    calls += put_call(judged, tx->arena, FORGET, WEFT_STMT_UNUSED_FORGET, -1, &call[calls]);
    calls += put_call(judged, tx->arena, NOTE, WEFT_STMT_UNUSED_NOTE, judged->pass->walk->began_us,
                      &call[calls]);
    calls += put_call(judged, tx->arena, RETIRE, WEFT_STMT_RETIRED_ADD, tx->now_us, &call[calls]);
    calls += put_call(judged, tx->arena, RETIRE, WEFT_STMT_UNUSED_FORGET, -1, &call[calls]);
    enum weft_rc rc = calls > 0 ? weft_tx_run(tx, call, calls, rows, err) : WEFT_OK;
    return rc ? rc : remove_rows(tx, judged, err);
}

static enum weft_rc write_judged(struct judged *judged, struct weft_err *err)
{
    struct pass *pass = judged->pass;
    size_t all = 0;
    for (size_t i = 0; i < VERDICTS; i++)
        all += judged->count[i];
    if (all == 0)
        return WEFT_OK;
    struct weft_tx tx = {
        .engine = pass->engine, .arena = weft_arena_new(), .history = pass->walk->history};
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

static enum weft_rc judge_on(struct pass *pass, uint32_t most, size_t *ret_rows,
                             struct weft_err *err)
{
    struct weft_unused_walk *walk = pass->walk;
    struct judged judged = {.pass = pass,
                            .what = walk->phase == JUDGE_NAMES ? WEFT_INTERNED_NAME
                                                               : WEFT_INTERNED_QUEUE};
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, pass->arena,
                   walk->phase == JUDGE_NAMES ? WEFT_STMT_UNUSED_NAMES : WEFT_STMT_UNUSED_QUEUES,
                   0);
    weft_set_i64(&call, 0, UNUSED_NAMES_IN_AFTER, walk->number);
    weft_set_i64(&call, 0, UNUSED_NAMES_IN_UNTIL,
                 walk->base > INT32_MAX - WINDOW ? INT32_MAX : walk->base + WINDOW);
    weft_set_i64(&call, 0, UNUSED_NAMES_IN_NAMESPACE, pass->ns);
    weft_set_i64(&call, 0, UNUSED_NAMES_IN_MOST, most);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    for (size_t i = 0; i < VERDICTS; i++)
        judged.id[i] = weft_new_array(pass->arena, int32_t, rc ? 1 : rows.count + 1);
    for (size_t i = 0; i < rows.count && !rc; i++) {
        enum verdict verdict = judge(&judged, &rows, i);
        if (verdict != VERDICTS)
            judged.id[verdict][judged.count[verdict]++] =
                (int32_t)weft_get_i64(&rows, i, UNUSED_NAMES_OUT_ID);
    }
    if (!rc && judged.count[RETIRE] > 0) {
        size_t room = 0;
        rc = find_room(&judged, &room, err);
        judged.count[RETIRE] = judged.count[RETIRE] < room ? judged.count[RETIRE] : room;
    }
    if (!rc)
        rc = write_judged(&judged, err);
    if (!rc && rows.count > 0)
        walk->number = (int32_t)weft_get_i64(&rows, rows.count - 1, UNUSED_NAMES_OUT_ID);
    *ret_rows = rc ? 0 : rows.count;
    return rc;
}

/* ---- Turns ----------------------------------------------------------------------------------- */

/* Takes the turn, or says that this process still walks; no walk is left when it has none. */
static enum weft_rc take_turn(struct pass *pass, struct weft_err *err)
{
    struct weft_engine *engine = pass->engine;
    struct weft_call call;
    struct weft_rows rows;
    weft_usec now_us = weft_clock_now(engine->clock);
    weft_call_init(&call, pass->arena, WEFT_STMT_UNUSED_TURN, 0);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    int64_t walker = weft_get_i64(&rows, 0, UNUSED_TURN_OUT_WALKER);
    weft_usec seen_us = weft_get_i64(&rows, 0, UNUSED_TURN_OUT_SEEN);
    bool ours = walker == engine->unused.walker;
    if (pass->walk && (!ours || pass->walk->history != weft_engine_history(engine))) {
        walk_free(pass->walk);
        pass->walk = NULL;
    }
    if (pass->walk && now_us - seen_us < BEAT_US)
        return WEFT_OK;
    if (!pass->walk && (weft_get_i64(&rows, 0, UNUSED_TURN_OUT_NEXT) > now_us ||
                        (!ours && seen_us > now_us - STALE_US)))
        return WEFT_OK;
    weft_call_init(&call, pass->arena, WEFT_STMT_UNUSED_TAKE, 0);
    weft_set_i64(&call, 0, UNUSED_TAKE_IN_WALKER, engine->unused.walker);
    weft_set_i64(&call, 0, UNUSED_TAKE_IN_NOW, now_us);
    weft_set_i64(&call, 0, UNUSED_TAKE_IN_OLD_WALKER, walker);
    weft_set_i64(&call, 0, UNUSED_TAKE_IN_OLD_SEEN, seen_us);
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, pass->arena, &rows, err);
    if (!rc && !pass->walk && rows.count > 0)
        pass->walk = walk_new(engine, now_us);
    return rc;
}

/* The walk is over: the next one has the next window, if there is one. */
static enum weft_rc end_walk(struct pass *pass, struct weft_err *err)
{
    struct weft_engine *engine = pass->engine;
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, pass->arena, WEFT_STMT_UNUSED_LAST, 0);
    enum weft_rc rc = weft_tx_once(engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    if (rc)
        return rc;
    bool more = weft_get_i64(&rows, 0, UNUSED_LAST_OUT_ID) - pass->walk->base > WINDOW;
    weft_call_init(&call, pass->arena, WEFT_STMT_UNUSED_END, 0);
    weft_set_i64(&call, 0, UNUSED_END_IN_WALKER, engine->unused.walker);
    weft_set_i64(&call, 0, UNUSED_END_IN_NEXT, weft_clock_now(engine->clock) + PAUSE_US);
    rc = weft_tx_once(engine, WEFT_TX_WRITE, &call, pass->arena, NULL, err);
    if (rc)
        return rc;
    engine->unused.base = more ? pass->walk->base + WINDOW : 0;
    walk_free(pass->walk);
    pass->walk = NULL;
    return WEFT_OK;
}

static enum weft_rc walk_on(struct pass *pass, struct weft_err *err)
{
    enum weft_rc rc = take_turn(pass, err);
    uint32_t left = pass->config->batch;
    while (!rc && pass->walk && pass->walk->phase < PHASES && left > 0) {
        uint32_t most = left < WEFT_BATCH_MAX ? left : WEFT_BATCH_MAX;
        size_t rows = 0;
        rc = pass->walk->phase < JUDGE_NAMES ? read_on(pass, most, &rows, err)
                                             : judge_on(pass, most, &rows, err);
        pass->count[SCANNED] += rows;
        left -= (uint32_t)rows;
        if (!rc && rows < most)
            next_phase(pass->walk);
    }
    return !rc && pass->walk && pass->walk->phase == PHASES ? end_walk(pass, err) : rc;
}

enum weft_rc weft_unused_names_run(struct weft_engine *engine,
                                   const struct weft_pass_config *config,
                                   struct weft_pass_report *ret_report, struct weft_err *err)
{
    struct weft_unused *unused = &engine->unused;
    struct pass pass = {.engine = engine, .config = config};
    enum weft_rc rc = weft_pass_namespace(engine, config, &pass.ns, err);
    if (rc)
        return rc;
    /* A pass has the walk to itself; another one beside it has nothing to do. */
    pthread_mutex_lock(&unused->lock);
    bool busy = unused->busy;
    pass.walk = busy ? NULL : unused->walk;
    if (!busy) {
        unused->busy = true;
        unused->walk = NULL;
    }
    pthread_mutex_unlock(&unused->lock);
    if (!busy && unused->after_us > 0) {
        pass.arena = weft_arena_new();
        rc = walk_on(&pass, err);
        weft_arena_free(pass.arena);
    }
    if (!busy) {
        pthread_mutex_lock(&unused->lock);
        unused->walk = pass.walk;
        unused->busy = false;
        pthread_mutex_unlock(&unused->lock);
    }
    *ret_report = (struct weft_pass_report){.handled = pass.count[RETIRED] + pass.count[REMOVED],
                                            .next_due_us = WEFT_NEVER};
    weft_pass_count(ret_report, WEFT_SCANNER_UNUSED_NAMES, pass.count);
    return rc;
}
