/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Transactions.
 *
 * Only this file retries. A body that failed by contention wrote nothing and runs again; a
 * connection that broke before COMMIT was sent wrote nothing either. A connection that broke after
 * COMMIT was sent leaves a question that only the database can answer: the transaction's id was
 * learned before COMMIT, and pg_xact_status() returns its state. While that is "in progress" this
 * file waits, because the server may still be working on the COMMIT. A server of another lineage, a
 * standby that was promoted, knows nothing of that id: its answer is about another transaction.
 *
 * A COMMIT that went with the last calls of a body may be carried out while their answers are lost
 * on the way. If the id was lost too, the outcome cannot be learned; if only rows were, the call
 * cannot be answered. The caller gets outcome_unknown for both. An aborted transaction is repeated
 * in any case, and so is a repeatable one: its second try waits at the rows for a first try that is
 * still under way.
 */

#include "engine/tx/tx.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "engine/engine_state.h"

#include <assert.h>
#include <time.h>

enum {
    CONTENTION_TRIES = 10,
    LOST_TRIES = 4,
    SETTLE_TRIES = 200,
    BACKOFF_MAX_US = 100000,
    HOLD_BACK_STEP_US = 2000,
    HOLD_BACK_MAX_US = 1000000, /* of one transaction: then it runs, and commits may have to wait */
};

/* A request waits so long for the outcome of its COMMIT; the last try may take longer. */
#define SETTLE_US (20 * WEFT_SECOND)

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

static void pause_us(weft_usec us)
{
    struct timespec pause = {.tv_sec = us / WEFT_SECOND, .tv_nsec = us % WEFT_SECOND * 1000};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/*
 * A slot for the transaction. One that writes much is held back while the store is behind with its
 * log, outside of the pool, so that transactions of other callers pass. The store tells only the
 * holder of the connection, so this asks in steps, each as short as a step of SQLite's checkpoint.
 */
static struct weft_slot *take_slot(const struct weft_tx *tx, enum weft_tx_mode mode,
                                   struct weft_err *err)
{
    static const struct weft_err unused = {0};
    struct weft_engine *engine = tx->engine;
    bool much = tx->bytes >= WEFT_TX_MUCH && engine->driver->behind && !weft_tx_reads(mode);
    struct weft_slot *slot = weft_pool_take(engine, mode, err);
    for (weft_usec held_us = 0; much && held_us < HOLD_BACK_MAX_US && slot && slot->conn &&
                                engine->driver->behind(slot->conn);
         held_us += HOLD_BACK_STEP_US) {
        weft_pool_release(engine, slot, &unused);
        if (engine->on_side_work)
            engine->on_side_work(engine->side_work_context);
        pause_us(HOLD_BACK_STEP_US);
        slot = weft_pool_take(engine, mode, err);
    }
    return slot;
}

/* One try. tx->lost and began_us are for ask_fate(), when the connection is lost in COMMIT. */
static enum weft_rc try_once(struct weft_tx *tx, enum weft_tx_mode mode, weft_tx_body *body,
                             void *context, struct weft_err *err)
{
    struct weft_engine *engine = tx->engine;
    struct weft_slot *slot = take_slot(tx, mode, err);
    if (!slot)
        return WEFT_BUSY;
    enum weft_rc rc = weft_pool_prepare(engine, slot, err);
    if (!rc)
        rc = check_history(tx, slot, mode, err);
    if (rc)
        goto out;

    tx->conn = slot->conn;
    tx->now_us = weft_clock_now(engine->clock);
    tx->began_us = weft_boot_us();
    tx->brief = mode == WEFT_TX_WRITE && weft_engine_is_contended(engine);
    tx->ended = false;
    uint32_t timeline = tx->conn->lineage.timeline;
    atomic_fetch_add_explicit(&engine->pool.begun[mode], 1, memory_order_relaxed);
    rc = engine->driver->begin(tx->conn, mode, err);
    if (!rc)
        rc = body(tx, context, err);
    assert(!rc || !tx->ended); /* a transaction that was sent to be committed cannot fail here */
    tx->answered = !rc;
    if (!rc)
        rc = engine->driver->commit(tx->conn, err);
    tx->lost = (struct weft_lost){.xid = tx->conn->xid, .lineage = tx->conn->lineage};
    if (rc)
        engine->driver->rollback(tx->conn);
    /* Behind a pooler the server may be another one from one transaction to the next. */
    else if (tx->conn->lineage.timeline != timeline)
        tx->conn->broken |= weft_pool_note_lineage(engine, &tx->conn->lineage, NULL) != WEFT_OK;

out:
    tx->conn = NULL;
    weft_pool_release(engine, slot, rc ? err : NULL);
    return rc;
}

static void back_off(int tries)
{
    weft_usec most = (weft_usec)500 << (tries < 10 ? tries : 10);
    if (most > BACKOFF_MAX_US)
        most = BACKOFF_MAX_US;
    uint32_t random;
    weft_random(&random, sizeof(random));
    pause_us((weft_usec)(random % (uint64_t)most));
}

/* The outcome of a transaction whose COMMIT was sent and not answered. */
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
        struct weft_slot *slot = weft_pool_take(engine, WEFT_TX_WRITE, &err);
        if (slot) {
            enum weft_rc rc = weft_pool_open(engine, slot, &err);
            lost.age_us = weft_boot_us() - tx->began_us;
            if (!rc)
                rc = engine->driver->settle(slot->conn, &lost, &fate, &err);
            weft_pool_release(engine, slot, rc ? &err : NULL);
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
 * Asks for the outcome of a connection lost in COMMIT. True: it is committed and answered. Else the
 * cause tells the caller whether to try again; an unchanged cause means that the outcome is
 * unknown.
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
