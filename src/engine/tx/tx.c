/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Transactions and the pool of connections they run on.
 *
 * Only this file retries. A body that failed by contention wrote nothing and runs again; a
 * connection that broke before COMMIT was sent wrote nothing either. A connection that broke after
 * COMMIT was sent leaves a question, and the answer is the database's: the transaction's id was
 * learned before COMMIT, and pg_xact_status() says what became of it. While it says "in progress"
 * we wait, because the server may still be working on what we sent. A server of another lineage, a
 * standby that was promoted, knows nothing of that id: what it says is about another transaction.
 *
 * A COMMIT that went with the last calls of a body may be carried out while their answers are lost
 * on the way. If the id was lost too, nobody can tell; if only rows were, nobody can answer. Both
 * are the caller's to know: outcome_unknown. What was aborted is done again in any case, and so is
 * what may be done twice: it waits at the rows for a first try that is still under way.
 */

#include "engine/tx/tx.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "engine/engine_state.h"
#include "engine/tx/schema_version.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CONNECTIONS_DEFAULT = 4,
    CONTENTION_TRIES = 10,
    LOST_TRIES = 4,
    SETTLE_TRIES = 200,
    BACKOFF_MAX_US = 100000,
    /*
     * Slots whose connections stay open however little they are used: what a quiet server needs, of
     * a store with one writer that one and a reader. Of several that are open the first is taken,
     * so these are the ones in use.
     */
    SLOTS_KEPT = 2,
    ACQUIRE_WAIT_S = 30,
    PASSED_MAX_US = 20000,
    CLOCK_SAMPLES_MIN = 3,
    CLOCK_SAMPLES_MAX = 10,
    CLOCK_ROUND_TRIP_US = 300, /* good enough to stop asking */
};

/* A request waits so long for what became of its COMMIT; the last try may take longer. */
#define SETTLE_US    (20 * WEFT_SECOND)
#define CONTENDED_US WEFT_SECOND /* so long after a thread waited, transactions are short */

/* ---- The pool -------------------------------------------------------------------------------- */

void weft_pool_init(struct weft_engine *engine, uint32_t connections, bool in_turn)
{
    struct weft_pool *pool = &engine->pool;
    size_t wanted = connections ? connections : CONNECTIONS_DEFAULT;
    bool single_writer = engine->driver->writers_max < wanted;
    pool->writers = single_writer ? engine->driver->writers_max : wanted;
    pool->count = single_writer ? pool->writers + wanted : wanted;
    pool->slot = weft_alloc(pool->count, sizeof(*pool->slot));
    pthread_mutex_init(&pool->lock, NULL);
    pool->last = &pool->first;
    pool->passed_max_us = in_turn ? 0 : PASSED_MAX_US;
    pool->answered_us = weft_boot_us();
    atomic_init(&pool->history, 1);
}

void weft_pool_done(struct weft_engine *engine)
{
    struct weft_pool *pool = &engine->pool;
    for (size_t i = 0; i < pool->count; i++)
        weft_conn_close(pool->slot[i].conn);
    free(pool->slot);
    pthread_mutex_destroy(&pool->lock);
}

/* A free slot that may do this: readers take from the back, so that they leave the writers alone.
 */
static struct weft_slot *free_slot(struct weft_pool *pool, bool reads)
{
    struct weft_slot *found = NULL;
    for (size_t i = 0; i < pool->count; i++) {
        struct weft_slot *slot = &pool->slot[i];
        if (slot->busy || (!reads && i >= pool->writers) ||
            (reads && pool->count > pool->writers && i < pool->writers))
            continue;
        if (slot->conn)
            return slot; /* an open one is better */
        if (!found)
            found = slot;
    }
    return found;
}

/*
 * Whether a thread may take a slot that is free. A thread that comes may pass those that wait: to
 * hand the only writer to a sleeping thread each time costs more than a short transaction. But no
 * thread is passed once it has waited passed_max_us: else one that writes one transaction after the
 * other, as a large flow does, would take the writer again and again before another has woken up. A
 * server, whose threads write for different namespaces, lets none be passed; it writes in groups,
 * so that there are few to hand the writer to. Where reads have slots of their own they do not wait
 * behind writes.
 */
static bool may_take(const struct weft_pool *pool, const struct weft_pool_turn *turn)
{
    const struct weft_pool_turn *first = pool->first;
    while (first != turn && pool->count > pool->writers && first->reads != turn->reads)
        first = first->next;
    return first == turn || weft_boot_us() - first->since_us < pool->passed_max_us;
}

/* Under the lock, as the next one. */
static void line_up(struct weft_pool *pool, struct weft_pool_turn *turn)
{
    turn->since_us = weft_boot_us();
    *pool->last = turn;
    pool->last = &turn->next;
}

static void step_out(struct weft_pool *pool, struct weft_pool_turn *turn)
{
    struct weft_pool_turn **place = &pool->first;
    while (*place != turn)
        place = &(*place)->next;
    *place = turn->next;
    if (!turn->next)
        pool->last = place;
}

/*
 * Wakes the first thread that a free slot is for. It is called, under the lock, after each change
 * of slots and of the line, so a slot is never free while the first thread in line for it sleeps: a
 * thread that was woken for a slot and found it taken is still the first, and is woken again.
 */
static void wake_first(struct weft_pool *pool)
{
    for (struct weft_pool_turn *turn = pool->first; turn; turn = turn->next)
        if (free_slot(pool, turn->reads)) {
            pthread_cond_signal(&turn->woken);
            return;
        }
}

/* A slot of one's own until release(); NULL, with the story, when none becomes free in time. */
static struct weft_slot *acquire(struct weft_engine *engine, enum weft_tx_mode mode,
                                 struct weft_err *err)
{
    struct weft_pool *pool = &engine->pool;
    struct weft_pool_turn turn = {.reads = weft_tx_reads(mode), .woken = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&pool->lock);
    line_up(pool, &turn);
    struct weft_slot *slot = may_take(pool, &turn) ? free_slot(pool, turn.reads) : NULL;
    if (!slot) {
        pool->waits++;
        if (!turn.reads)
            pool->waited_us = weft_boot_us();
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += ACQUIRE_WAIT_S;
        int waited = 0;
        while (!slot && waited == 0) {
            waited = pthread_cond_clockwait(&turn.woken, &pool->lock, CLOCK_MONOTONIC, &until);
            slot = may_take(pool, &turn) ? free_slot(pool, turn.reads) : NULL;
        }
    }
    step_out(pool, &turn);
    if (slot)
        slot->busy = true;
    else
        weft_fail(err, WEFT_BUSY, "no database connection became free in %d s", ACQUIRE_WAIT_S);
    wake_first(pool); /* there may be a slot for the next one too */
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_destroy(&turn.woken);
    return slot;
}

/*
 * The store cannot be reached, or broke off. A connection that somebody ended alone counts too, for
 * the moment until the next transaction: it is tried again at once.
 */
static void note_lost(struct weft_pool *pool, const struct weft_err *err)
{
    if (err->cause != WEFT_CAUSE_LOST && err->cause != WEFT_CAUSE_LOST_IN_COMMIT)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->lost_us = weft_boot_us();
    pthread_mutex_unlock(&pool->lock);
}

bool weft_engine_answers(struct weft_engine *engine, weft_usec within_us)
{
    struct weft_pool *pool = &engine->pool;
    pthread_mutex_lock(&pool->lock);
    bool answers =
        pool->answered_us > pool->lost_us && weft_boot_us() - pool->answered_us < within_us;
    pthread_mutex_unlock(&pool->lock);
    return answers;
}

/* answered: the store did what it was asked. */
static void release(struct weft_engine *engine, struct weft_slot *slot, bool answered)
{
    struct weft_pool *pool = &engine->pool;
    if (slot->conn && slot->conn->broken) {
        weft_conn_close(slot->conn);
        slot->conn = NULL;
    }
    pthread_mutex_lock(&pool->lock);
    slot->busy = false;
    slot->used_us = weft_boot_us();
    if (answered) {
        weft_usec gap_us = slot->used_us - pool->answered_us;
        pool->gap_us = gap_us > pool->gap_us ? gap_us : pool->gap_us;
        pool->answered_us = slot->used_us;
    }
    wake_first(pool);
    pthread_mutex_unlock(&pool->lock);
}

weft_usec weft_engine_gap(struct weft_engine *engine)
{
    struct weft_pool *pool = &engine->pool;
    pthread_mutex_lock(&pool->lock);
    weft_usec gap_us = weft_boot_us() - pool->answered_us;
    gap_us = gap_us > pool->gap_us ? gap_us : pool->gap_us;
    pool->gap_us = 0;
    pthread_mutex_unlock(&pool->lock);
    return gap_us;
}

/* Takes a connection that need not stay open; NULL when there is none. */
static struct weft_slot *take_spare(struct weft_pool *pool, weft_usec large_us, weft_usec unused_us)
{
    struct weft_slot *found = NULL;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < pool->count && !found; i++) {
        struct weft_slot *slot = &pool->slot[i];
        if (slot->busy || !slot->conn)
            continue;
        bool large = slot->conn->buffers_large_since_us != 0 &&
                     slot->conn->buffers_large_since_us < large_us;
        if (large || (i >= SLOTS_KEPT && slot->used_us < unused_us))
            found = slot;
    }
    if (found)
        found->busy = true;
    pthread_mutex_unlock(&pool->lock);
    return found;
}

void weft_engine_slim(struct weft_engine *engine, weft_usec large_us, weft_usec unused_us)
{
    struct weft_slot *slot;
    while ((slot = take_spare(&engine->pool, large_us, unused_us)) != NULL) {
        weft_conn_close(slot->conn);
        slot->conn = NULL;
        release(engine, slot, false);
    }
}

bool weft_engine_is_contended(struct weft_engine *engine)
{
    struct weft_pool *pool = &engine->pool;
    if (pool->writers > 1)
        return false;
    pthread_mutex_lock(&pool->lock);
    bool lately = pool->waited_us > 0 && weft_boot_us() - pool->waited_us < CONTENDED_US;
    pthread_mutex_unlock(&pool->lock);
    return lately;
}

uint64_t weft_pool_waits(struct weft_engine *engine)
{
    pthread_mutex_lock(&engine->pool.lock);
    uint64_t waits = engine->pool.waits;
    pthread_mutex_unlock(&engine->pool.lock);
    return waits;
}

uint64_t weft_engine_history(struct weft_engine *engine)
{
    return atomic_load(&engine->pool.history);
}

/* A server that was promoted away from came back, and would take writes that are lost later. */
static enum weft_rc refuse_old(const struct weft_lineage *seen, uint32_t timeline,
                               struct weft_err *err)
{
    enum weft_rc rc = weft_fail(err, WEFT_UNAVAILABLE,
                                "the database server is on timeline %u, and another one was on "
                                "timeline %u before",
                                seen->timeline, timeline);
    (void)weft_cause(err, rc, WEFT_CAUSE_LOST);
    return weft_hint(err, rc,
                     "stop the old primary, or make it a standby; after a restore restart weft");
}

/*
 * Compares the lineage of a connection with that of those before. The caches are emptied before the
 * new lineage is recorded: a thread that meets it in between empties them once more, and none goes
 * on with an old name because another one is about to empty them.
 */
static enum weft_rc note_lineage(struct weft_engine *engine, const struct weft_lineage *seen,
                                 struct weft_err *err)
{
    struct weft_pool *pool = &engine->pool;
    if (seen->timeline == 0)
        return WEFT_OK;
    pthread_mutex_lock(&pool->lock);
    struct weft_lineage known = pool->lineage;
    pthread_mutex_unlock(&pool->lock);
    bool alike = known.system == seen->system || known.system == 0 || seen->system == 0;
    if (alike && seen->timeline < known.timeline)
        return refuse_old(seen, known.timeline, err);
    bool anew = known.timeline != 0 && (!alike || seen->timeline != known.timeline);
    if (anew) {
        weft_warn("the database was failed over or restored",
                  F_I64("timeline", (int64_t)seen->timeline),
                  F_I64("before", (int64_t)known.timeline));
        weft_names_suspect(&engine->names);
        weft_ready_suspect(&engine->ready);
    }
    pthread_mutex_lock(&pool->lock);
    pool->lineage = *seen;
    atomic_fetch_add(&pool->history, anew);
    pthread_mutex_unlock(&pool->lock);
    return WEFT_OK;
}

/* An open connection, to a server of the lineage that was seen last. */
static enum weft_rc ensure_open(struct weft_engine *engine, struct weft_slot *slot,
                                struct weft_err *err)
{
    if (slot->conn && slot->history == weft_engine_history(engine))
        return WEFT_OK;
    weft_conn_close(slot->conn);
    slot->conn = NULL;
    struct weft_conn *conn = NULL;
    enum weft_rc rc = engine->driver->open(engine->url, &conn, err);
    if (rc)
        return rc;
    rc = note_lineage(engine, &conn->lineage, err);
    if (rc) {
        weft_conn_close(conn);
        return rc;
    }
    slot->history = weft_engine_history(engine);
    /*
     * The first connection prepares every statement, so that one that does not fit the schema is
     * found at the start. The others prepare what they use when they use it: all of them take
     * longer than the connection itself, and after an outage every connection is a new one.
     */
    if (!atomic_load(&engine->statements_fit)) {
        rc = engine->driver->prepare(conn, err);
        if (rc) {
            weft_conn_close(conn);
            return rc;
        }
        atomic_store(&engine->statements_fit, true);
    }
    slot->conn = conn;
    return WEFT_OK;
}

/* Measures the offset to the store's clock when the last measurement is too old. */
static enum weft_rc keep_time(struct weft_engine *engine, struct weft_conn *conn,
                              struct weft_err *err)
{
    if (!weft_clock_stale(engine->clock))
        return WEFT_OK;
    struct weft_clock_sample sample[CLOCK_SAMPLES_MAX];
    size_t count = 0;
    bool close = false;
    while (count < CLOCK_SAMPLES_MIN || (count < CLOCK_SAMPLES_MAX && !close)) {
        struct weft_clock_sample *next = &sample[count++];
        next->sent_us = weft_boot_us();
        enum weft_rc rc = engine->driver->time(conn, &next->store_us, err);
        if (rc)
            return rc;
        next->received_us = weft_boot_us();
        close |= next->received_us - next->sent_us < CLOCK_ROUND_TRIP_US;
    }
    weft_usec moved = weft_clock_measure(engine->clock, sample, count);
    if (moved > WEFT_SECOND || moved < -WEFT_SECOND)
        weft_warn("the store's clock jumped", F_I64("moved_us", moved));
    return WEFT_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* After a failure the rows are empty, so that a caller may name them before it looks at rc. */
static void empty_rows(struct weft_rows *rows, size_t count)
{
    for (size_t i = 0; i < count && rows; i++)
        rows[i] = (struct weft_rows){0};
}

enum weft_rc weft_tx_run(struct weft_tx *tx, const struct weft_call *call, size_t count,
                         struct weft_rows *ret_rows, struct weft_err *err)
{
    assert(!tx->ended);
    empty_rows(ret_rows, count);
    return tx->conn->driver->run(tx->conn, call, count, tx->arena, ret_rows, err);
}

enum weft_rc weft_tx_last(struct weft_tx *tx, const struct weft_call *call, size_t count,
                          struct weft_rows *ret_rows, struct weft_err *err)
{
    assert(!tx->ended);
    empty_rows(ret_rows, count);
    enum weft_rc rc = tx->conn->driver->last(tx->conn, call, count, tx->arena, ret_rows, err);
    tx->ended = !rc;
    return rc;
}

/* Ids of names that were read in another history may belong to other rows, or to none. */
static enum weft_rc check_history(const struct weft_tx *tx, const struct weft_slot *slot,
                                  enum weft_tx_mode mode, struct weft_err *err)
{
    if (weft_tx_reads(mode) || tx->history == slot->history)
        return WEFT_OK;
    return weft_hint(
        err, weft_fail(err, WEFT_UNAVAILABLE, "the database was failed over during this request"),
        "nothing was done: try again");
}

/* One try. tx->lost and began_us are for ask_fate(), when the connection is lost in COMMIT. */
static enum weft_rc try_once(struct weft_tx *tx, enum weft_tx_mode mode, weft_tx_body *body,
                             void *context, struct weft_err *err)
{
    struct weft_engine *engine = tx->engine;
    enum weft_rc rc = weft_engine_version(engine, err);
    if (rc)
        return rc;
    struct weft_slot *slot = acquire(engine, mode, err);
    if (!slot)
        return WEFT_BUSY;
    rc = ensure_open(engine, slot, err);
    if (!rc)
        rc = check_history(tx, slot, mode, err);
    if (!rc)
        rc = weft_version_look(engine, slot->conn, err);
    if (!rc)
        rc = keep_time(engine, slot->conn, err);
    if (rc)
        goto out;

    tx->conn = slot->conn;
    tx->now_us = weft_clock_now(engine->clock);
    tx->began_us = weft_boot_us();
    tx->brief = mode == WEFT_TX_WRITE && weft_engine_is_contended(engine);
    tx->ended = false;
    uint32_t timeline = tx->conn->lineage.timeline;
    rc = engine->driver->begin(tx->conn, mode, err);
    if (!rc)
        rc = body(tx, context, err);
    assert(!rc || !tx->ended); /* what has gone to be committed cannot be taken back */
    tx->answered = !rc;
    if (!rc)
        rc = engine->driver->commit(tx->conn, err);
    tx->lost = (struct weft_lost){.xid = tx->conn->xid, .lineage = tx->conn->lineage};
    if (rc)
        engine->driver->rollback(tx->conn);
    /* Behind a pooler the server may be another one from one transaction to the next. */
    else if (tx->conn->lineage.timeline != timeline)
        tx->conn->broken |= note_lineage(engine, &tx->conn->lineage, NULL) != WEFT_OK;

out:
    tx->conn = NULL;
    if (rc)
        note_lost(&engine->pool, err);
    release(engine, slot, !rc);
    return rc;
}

static void back_off(int tries)
{
    weft_usec most = (weft_usec)500 << (tries < 10 ? tries : 10);
    if (most > BACKOFF_MAX_US)
        most = BACKOFF_MAX_US;
    uint32_t random;
    weft_random(&random, sizeof(random));
    struct timespec pause = {.tv_nsec = (long)(random % (uint64_t)most) * 1000};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* What became of a transaction whose COMMIT was sent and not answered. */
static enum weft_settled ask_fate(const struct weft_tx *tx)
{
    struct weft_engine *engine = tx->engine;
    struct weft_lost lost = tx->lost;
    enum weft_settled fate = WEFT_SETTLED_UNKNOWN;
    weft_usec since_us = weft_boot_us();
    if (lost.xid == 0)
        return fate;
    for (int tries = 0; tries < SETTLE_TRIES && weft_boot_us() - since_us < SETTLE_US; tries++) {
        struct weft_err err;
        struct weft_slot *slot = acquire(engine, WEFT_TX_WRITE, &err);
        if (slot) {
            enum weft_rc rc = ensure_open(engine, slot, &err);
            lost.age_us = weft_boot_us() - tx->began_us;
            if (!rc)
                rc = engine->driver->settle(slot->conn, &lost, &fate, &err);
            release(engine, slot, !rc);
            if (!rc && fate != WEFT_SETTLED_RUNNING)
                return fate;
        }
        back_off(tries);
    }
    return WEFT_SETTLED_UNKNOWN;
}

static bool may_retry(const struct weft_err *err, int tries)
{
    if (err->cause == WEFT_CAUSE_CONTENTION)
        return tries < CONTENTION_TRIES;
    return err->cause == WEFT_CAUSE_LOST && tries < LOST_TRIES;
}

/*
 * Asks what a connection lost in COMMIT has left. True: it is committed and answered. Else the
 * cause says whether it is done again; where it stays as it was, nobody knows.
 */
static bool is_settled(struct weft_tx *tx, enum weft_tx_mode mode, struct weft_err *story)
{
    bool repeats = tx->repeatable && !tx->answered;
    if (story->cause != WEFT_CAUSE_LOST_IN_COMMIT)
        return false;
    if (weft_tx_reads(mode) || repeats) {
        /* A read has nothing to commit: it leaves no question, and is made again. */
        tx->maybe_committed |= repeats;
        story->cause = WEFT_CAUSE_LOST;
        return false;
    }
    if (tx->no_retry)
        return false;
    enum weft_settled fate = ask_fate(tx);
    if (fate == WEFT_SETTLED_COMMITTED && tx->answered)
        return true;
    if (fate == WEFT_SETTLED_ABORTED)
        story->cause = WEFT_CAUSE_LOST; /* it left no trace: as if it had never been sent */
    else
        story->hint = weft_hint_outcome_unknown;
    return false;
}

enum weft_rc weft_tx_do(struct weft_tx *tx, enum weft_tx_mode mode, weft_tx_body *body,
                        void *context, struct weft_err *err)
{
    struct weft_err local = {0};
    struct weft_err *story = err ? err : &local;
    if (tx->history == 0)
        tx->history = weft_engine_history(tx->engine);
    for (int tries = 1;; tries++) {
        *story = (struct weft_err){0};
        enum weft_rc rc = try_once(tx, mode, body, context, story);
        if (!rc || is_settled(tx, mode, story))
            return WEFT_OK;
        if (tx->no_retry || !may_retry(story, tries)) {
            if (tx->maybe_committed)
                story->hint = weft_hint_outcome_unknown;
            return rc;
        }
        back_off(tries);
    }
}

struct single_call {
    const struct weft_call *call;
    enum weft_tx_mode mode;
    struct weft_rows rows;
};

static enum weft_rc run_single(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct single_call *single = context;
    /* Writes are rare here, so they may cost a second round trip. */
    return weft_tx_reads(single->mode) ? weft_tx_last(tx, single->call, 1, &single->rows, err)
                                       : weft_tx_run(tx, single->call, 1, &single->rows, err);
}

enum weft_rc weft_tx_once(struct weft_engine *engine, enum weft_tx_mode mode,
                          const struct weft_call *call, struct weft_arena *arena,
                          struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_tx tx = {.engine = engine, .arena = arena};
    struct single_call single = {.call = call, .mode = mode};
    enum weft_rc rc = weft_tx_do(&tx, mode, run_single, &single, err);
    if (!rc && ret_rows)
        *ret_rows = single.rows;
    return rc;
}
