/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The PostgreSQL driver: transactions over a pipelined connection.
 *
 *     none --begin--> waiting --run, script--> open --commit, rollback--> none
 *                     waiting, open --last--> ended --commit--> none
 *                     waiting, open --an error--> failed --rollback--> none
 *
 * begin() sends nothing: BEGIN, and behind a pooler the settings, are sent with the first
 * statement. A write transaction learns its number in the same round trip, so that a caller that
 * loses the connection in COMMIT can ask over another connection whether it committed. COMMIT may
 * be sent with the last statements: a transaction of one statement then costs one round trip. A
 * bare transaction sends only its one statement, which the Sync behind it commits. The session
 * keeps its settings and prepared statements. Behind a pooler the settings go into each
 * transaction, and there are no prepared statements if the pooler would lose them (connect.c).
 */

#include "store/pg/pg.h"

#include "base/arena.h"
#include "store/cell.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_MAX_US (5 * WEFT_SECOND)

static enum weft_rc pg_begin(struct weft_conn *conn, enum weft_tx_mode mode, struct weft_err *err)
{
    struct weft_pg *pg = weft_pg_of(conn);
    assert(pg->tx == WEFT_PG_TX_NONE);
    if (conn->broken)
        return weft_pg_lost(pg, "begin", "the connection is broken", err);
    conn->xid = 0;
    pg->unreplicated = false;
    pg->mode = mode;
    pg->tx = WEFT_PG_TX_WAITING;
    return WEFT_OK;
}

static bool is_prepared(const struct weft_pg *pg, const struct weft_pg_step *step, size_t count,
                        size_t stmt)
{
    bool found = pg->prepared[stmt];
    for (size_t i = 0; !found && i < count; i++)
        found = step[i].prepares && step[i].stmt == stmt;
    return found;
}

/* Adds a statement, and before its first use its preparation. */
static void add_step(struct weft_pg *pg, struct weft_pg_step *step, size_t *count, size_t stmt,
                     const struct weft_call *call)
{
    if (pg->named && !is_prepared(pg, step, *count, stmt))
        step[(*count)++] = (struct weft_pg_step){.stmt = stmt, .prepares = true};
    step[(*count)++] = (struct weft_pg_step){.stmt = stmt, .call = call};
}

static void add_begin(struct weft_pg *pg, struct weft_pg_step *step, size_t *count)
{
    static const size_t pin[] = {
        [WEFT_TX_READ] = WEFT_PG_PIN_READ,
        [WEFT_TX_WRITE] = WEFT_PG_PIN_WRITE,
        [WEFT_TX_KEYED] = WEFT_PG_PIN_KEYED,
        [WEFT_TX_HOT] = WEFT_PG_PIN_HOT,
    };
    if (pg->tx != WEFT_PG_TX_WAITING || pg->mode == WEFT_TX_BARE)
        return;
    add_step(pg, step, count, pg->mode == WEFT_TX_READ ? WEFT_PG_BEGIN_READ : WEFT_PG_BEGIN_WRITE,
             NULL);
    if (pg->pooled || pg->mode != WEFT_TX_READ) /* else nothing to set, and no number to read */
        add_step(pg, step, count, pin[pg->mode], NULL);
}

enum { BEGIN_STEPS_MAX = 4, COMMIT_STEPS_MAX = 4 };

static void read_xid(struct weft_pg *pg, const struct weft_pg_step *step, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool pins = step[i].stmt == WEFT_PG_PIN_WRITE || step[i].stmt == WEFT_PG_PIN_KEYED ||
                    step[i].stmt == WEFT_PG_PIN_HOT;
        if (pins && !step[i].prepares && step[i].result) {
            pg->conn.xid = (uint64_t)weft_pg_get_i64(step[i].result, 0, 0);
            pg->conn.lineage.timeline = weft_pg_get_timeline(step[i].result, 0, 1);
        }
    }
}

/* Adds COMMIT, and for a hot transaction the wait for the disk; returns the place of COMMIT. */
static size_t add_commit(struct weft_pg *pg, struct weft_pg_step *step, size_t *count)
{
    add_step(pg, step, count, WEFT_PG_COMMIT, NULL);
    size_t commit = *count - 1;
    if (pg->mode == WEFT_TX_HOT)
        add_step(pg, step, count, WEFT_PG_FLUSH, NULL);
    return commit;
}

/* One exchange inside the transaction. Even if it fails, the server may have seen BEGIN. */
static enum weft_rc exchange_in_tx(struct weft_pg *pg, struct weft_pg_step *step, size_t count,
                                   struct weft_err *err)
{
    enum weft_rc rc = weft_pg_exchange(pg, step, count, err);
    read_xid(pg, step, count);
    pg->tx = rc ? WEFT_PG_TX_FAILED : WEFT_PG_TX_OPEN;
    if (pg->scratch_size > WEFT_PG_KEEP_BYTES) {
        free(pg->scratch);
        pg->scratch = NULL;
        pg->scratch_size = 0;
    }
    return rc;
}

static enum weft_rc check_open(const struct weft_pg *pg, struct weft_err *err)
{
    assert(pg->tx != WEFT_PG_TX_NONE);
    if (pg->tx == WEFT_PG_TX_FAILED)
        return weft_fail(err, WEFT_INTERNAL, "the transaction had failed already");
    return WEFT_OK;
}

/* The calls of one run() or last(). */
struct batch {
    const struct weft_call *call;
    size_t count;
    struct weft_rows *rows;    /* in the arena, one for each call */
    struct weft_pg_step *step; /* in the arena */
    size_t head, steps;        /* the calls begin behind the head */
};

static enum weft_rc plan_batch(struct weft_pg *pg, struct batch *batch, struct weft_arena *arena,
                               struct weft_err *err)
{
    const struct weft_call *call = batch->call;
    enum weft_rc rc = check_open(pg, err);
    if (rc)
        return rc;
    batch->step = weft_new_array(arena, struct weft_pg_step,
                                 BEGIN_STEPS_MAX + 2 * batch->count + COMMIT_STEPS_MAX);
    batch->rows = weft_new_array(arena, struct weft_rows, batch->count);
    add_begin(pg, batch->step, &batch->steps);
    batch->head = batch->steps;
    for (size_t i = 0; i < batch->count; i++) {
        batch->rows[i].stmt = call[i].stmt;
        if (!pg->text[call[i].stmt]) {
            pg->tx = WEFT_PG_TX_FAILED;
            return weft_fail(err, WEFT_INTERNAL, "statement %s does not exist for PostgreSQL",
                             weft_stmts[call[i].stmt].name);
        }
        if (weft_call_runs(&call[i]) > 0)
            add_step(pg, batch->step, &batch->steps, call[i].stmt, &call[i]);
    }
    return WEFT_OK;
}

static enum weft_rc decode_batch(const struct batch *batch, struct weft_arena *arena,
                                 struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t i = batch->head; !rc && i < batch->steps; i++) {
        const struct weft_pg_step *step = &batch->step[i];
        if (step->call && !step->prepares)
            rc = weft_pg_decode(step->result, step->call->stmt, arena,
                                &batch->rows[step->call - batch->call], err);
    }
    return rc;
}

/* The calls in one exchange. */
static enum weft_rc exchange_calls(struct weft_pg *pg, struct batch *batch,
                                   struct weft_arena *arena, struct weft_err *err)
{
    enum weft_rc rc = exchange_in_tx(pg, batch->step, batch->steps, err);
    if (!rc)
        rc = decode_batch(batch, arena, err);
    weft_pg_clear(batch->step, batch->steps);
    return rc;
}

static enum weft_rc run_plain(struct weft_pg *pg, const char *sql, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    enum weft_rc rc = weft_pg_simple(pg, weft_pg_place_schema(sql, pg->schema, arena), err);
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc pg_script(struct weft_conn *conn, const char *sql, struct weft_err *err)
{
    struct weft_pg *pg = weft_pg_of(conn);
    struct weft_pg_step step[BEGIN_STEPS_MAX];
    size_t count = 0;
    enum weft_rc rc = check_open(pg, err);
    add_begin(pg, step, &count);
    if (!rc && count > 0) {
        rc = exchange_in_tx(pg, step, count, err);
        weft_pg_clear(step, count);
    }
    if (!rc) {
        rc = run_plain(pg, sql, err);
        pg->tx = rc ? WEFT_PG_TX_FAILED : pg->tx;
    }
    return rc;
}

/*
 * Outside a transaction the role's timeouts apply and could end the statement, so they are switched
 * off, unless a pooler owns the session.
 */
static enum weft_rc pg_alone(struct weft_conn *conn, const char *sql, struct weft_err *err)
{
    struct weft_pg *pg = weft_pg_of(conn);
    enum weft_rc rc = WEFT_OK;
    assert(pg->tx == WEFT_PG_TX_NONE);
    if (conn->broken)
        return weft_pg_lost(pg, "script", "the connection is broken", err);
    if (!pg->pooled)
        rc = weft_pg_simple(pg, "SET statement_timeout = 0; SET lock_timeout = 0", err);
    else
        pg->mode = WEFT_TX_READ; /* that it may not write: by default, and no sign of a standby */
    return rc ? rc : run_plain(pg, sql, err);
}

static enum weft_rc pg_forget(struct weft_conn *conn, struct weft_err *err)
{
    enum weft_rc rc = pg_alone(
        conn,
        "VACUUM (SKIP_LOCKED) weft.execution, weft.live, weft.outcome, weft.attempt, weft.key, "
        "weft.progress, weft.signal, weft.waitpoint, weft.resumption, weft.cost, weft.node, "
        "weft.flow, weft.name, weft.erasure",
        err);
    conn->broken = true; /* it has no time limits any more */
    return rc;
}

/* The connection was closed before anything was sent. */
static enum weft_rc lost_before(struct weft_pg *pg, const char *what, struct weft_err *err)
{
    return weft_pg_lost(pg, what, pg->fatal[0] ? pg->fatal : "the connection is gone", err);
}

/* Runs one of the driver's own statements. The caller clears the result; NULL: it failed. */
static enum weft_rc run_own(struct weft_pg *pg, size_t stmt, const char *text,
                            PGresult **ret_result, struct weft_err *err)
{
    struct weft_pg_step step[2];
    size_t count = 0;
    add_step(pg, step, &count, stmt, NULL);
    step[count - 1].text = text;
    enum weft_rc rc = weft_pg_exchange(pg, step, count, err);
    *ret_result = step[count - 1].result;
    step[count - 1].result = NULL;
    weft_pg_clear(step, count);
    return rc;
}

/* A connection whose transaction is not over cannot be used again. */
static void check_idle(struct weft_pg *pg)
{
    if (PQtransactionStatus(pg->pq) != PQTRANS_IDLE)
        pg->conn.broken = true;
}

static void pg_rollback(struct weft_conn *conn)
{
    struct weft_pg *pg = weft_pg_of(conn);
    bool sent =
        (pg->tx == WEFT_PG_TX_OPEN || pg->tx == WEFT_PG_TX_FAILED) && pg->mode != WEFT_TX_BARE;
    pg->tx = WEFT_PG_TX_NONE;
    if (!sent || conn->broken)
        return;
    PGresult *result;
    enum weft_rc rc = run_own(pg, WEFT_PG_ROLLBACK, NULL, &result, NULL);
    PQclear(result);
    conn->broken |= rc != WEFT_OK;
    check_idle(pg);
}

static bool is_committed(PGresult *result)
{
    return result && strcmp(PQcmdStatus(result), "COMMIT") == 0;
}

/*
 * A COMMIT that the server answered. It is durable, even if the connection died right after the
 * answer, unless the server stopped waiting for a synchronous standby: the commit is lost if that
 * standby is promoted, so its result is unknown, as if the answer had not come.
 */
static enum weft_rc accept_commit(struct weft_pg *pg, struct weft_err *err)
{
    if (!pg->unreplicated)
        return WEFT_OK;
    return weft_cause(err,
                      weft_fail(err, WEFT_UNAVAILABLE,
                                "commit: the server gave up waiting for its synchronous standby"),
                      WEFT_CAUSE_LOST_IN_COMMIT);
}

/* A COMMIT that was answered, of a hot transaction: durable only if the wait behind it succeeded.
 */
static enum weft_rc accept_flushed(struct weft_pg *pg, enum weft_rc rc, struct weft_err *err)
{
    if (!rc || pg->mode != WEFT_TX_HOT)
        return accept_commit(pg, err);
    return weft_cause(
        err,
        weft_fail(err, WEFT_UNAVAILABLE, "commit: the server did not say that it is on the disk"),
        WEFT_CAUSE_LOST_IN_COMMIT);
}

static enum weft_rc send_commit(struct weft_pg *pg, struct weft_err *err)
{
    struct weft_pg_step step[COMMIT_STEPS_MAX];
    size_t count = 0, commit = add_commit(pg, step, &count);
    enum weft_rc rc = weft_pg_exchange(pg, step, count, err);
    PGresult *result = step[commit].result;
    if (is_committed(result))
        rc = accept_flushed(pg, rc, err);
    else if (!rc)
        rc = weft_fail(err, WEFT_INTERNAL, "commit: the server answered %s", PQcmdStatus(result));
    else if (pg->conn.broken)
        (void)weft_cause(err, rc, WEFT_CAUSE_LOST_IN_COMMIT);
    weft_pg_clear(step, count);
    check_idle(pg);
    return rc;
}

static enum weft_rc pg_commit(struct weft_conn *conn, struct weft_err *err)
{
    struct weft_pg *pg = weft_pg_of(conn);
    enum weft_pg_tx tx = pg->tx;
    if (tx == WEFT_PG_TX_FAILED) {
        pg_rollback(conn);
        return weft_fail(err, WEFT_INTERNAL, "commit: the transaction had failed already");
    }
    pg->tx = WEFT_PG_TX_NONE;
    if (tx == WEFT_PG_TX_ENDED) {
        if (pg->commit_rc && err)
            *err = pg->commit_err;
        return pg->commit_rc;
    }
    if (tx != WEFT_PG_TX_OPEN || pg->mode == WEFT_TX_BARE)
        return WEFT_OK;
    if (weft_pg_is_gone(pg))
        return lost_before(pg, "commit", err);
    return send_commit(pg, err);
}

/*
 * The result of the COMMIT at the end of an exchange whose result is rc; completes *error.
 *
 * If the exchange completed, both sides are synchronized: a COMMIT without an answer was skipped
 * after an error, or failed itself. If it did not, COMMIT may have been carried out whatever
 * arrived, because any answer of the server can be lost. A caller that knows the transaction's
 * number can ask; without the number the result is unknown, unless the server reported that it
 * ended the session before.
 */
static enum weft_rc commit_result(struct weft_pg *pg, enum weft_rc rc, PGresult *commit,
                                  struct weft_err *error)
{
    if (is_committed(commit))
        return accept_flushed(pg, rc, error);
    if (!rc)
        return weft_fail(error, WEFT_INTERNAL, "commit: the server answered %s",
                         PQcmdStatus(commit));
    bool settled = pg->in_step || (pg->terminated && pg->conn.xid == 0);
    if (settled)
        return rc;
    error->cause = WEFT_CAUSE_LOST_IN_COMMIT;
    error->rc = WEFT_UNAVAILABLE;
    return WEFT_UNAVAILABLE;
}

/*
 * The calls and COMMIT in one exchange. The server flushes the answers to the calls, and with them
 * the number of the transaction, before it executes COMMIT: a caller that loses the connection in
 * COMMIT has the rows and can ask, as if COMMIT had been sent on its own.
 */
static enum weft_rc exchange_last(struct weft_pg *pg, struct batch *batch, struct weft_arena *arena,
                                  struct weft_err *err)
{
    /* Nothing was sent yet: a connection that died while idle leaves no unknown commit. */
    if (weft_pg_is_gone(pg))
        return lost_before(pg, weft_pg_stmt_name(batch->step[batch->head].stmt), err);
    struct weft_err error = {0};
    size_t steps = batch->steps;
    batch->step[steps - 1].leaves = !weft_tx_reads(pg->mode); /* a read commits nothing */
    size_t commit = add_commit(pg, batch->step, &steps);
    enum weft_rc rc = exchange_in_tx(pg, batch->step, steps, &error);
    rc = commit_result(pg, rc, batch->step[commit].result, &error);
    /* Answers come in order: with the last one all have arrived. */
    if (batch->step[batch->steps - 1].result) {
        pg->tx = WEFT_PG_TX_ENDED;
        pg->commit_rc = rc;
        pg->commit_err = error;
        check_idle(pg);
        rc = decode_batch(batch, arena, &error);
    }
    weft_pg_clear(batch->step, steps);
    if (rc && err)
        *err = error;
    return rc;
}

/* The contract of the driver table has six parameters. NOLINTNEXTLINE(readability-function-size) */
static enum weft_rc run_calls(struct weft_pg *pg, struct batch batch, bool last,
                              struct weft_arena *arena, struct weft_rows *ret_rows,
                              struct weft_err *err)
{
    enum weft_rc rc = plan_batch(pg, &batch, arena, err);
    if (rc)
        return rc;
    if (batch.steps > batch.head) /* else BEGIN is not needed yet, and commit() sends COMMIT */
        rc = last ? exchange_last(pg, &batch, arena, err) : exchange_calls(pg, &batch, arena, err);
    if (rc)
        pg->tx = WEFT_PG_TX_FAILED;
    else if (ret_rows && batch.count > 0)
        memcpy(ret_rows, batch.rows, batch.count * sizeof(*ret_rows));
    return rc;
}

/* The contract of the driver table has six parameters. NOLINTNEXTLINE(readability-function-size) */
static enum weft_rc pg_run(struct weft_conn *conn, const struct weft_call *call, size_t count,
                           struct weft_arena *arena, struct weft_rows *ret_rows,
                           struct weft_err *err)
{
    return run_calls(weft_pg_of(conn), (struct batch){.call = call, .count = count}, false, arena,
                     ret_rows, err);
}

/* The contract of the driver table has six parameters. NOLINTNEXTLINE(readability-function-size) */
static enum weft_rc pg_last(struct weft_conn *conn, const struct weft_call *call, size_t count,
                            struct weft_arena *arena, struct weft_rows *ret_rows,
                            struct weft_err *err)
{
    struct weft_pg *pg = weft_pg_of(conn);
    return run_calls(pg, (struct batch){.call = call, .count = count}, pg->mode != WEFT_TX_BARE,
                     arena, ret_rows, err);
}

static enum weft_rc pg_prepare(struct weft_conn *conn, struct weft_err *err)
{
    struct weft_pg *pg = weft_pg_of(conn);
    struct weft_pg_step step[WEFT_PG_STMT_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < WEFT_PG_BACKEND; i++)
        if (pg->text[i] && !pg->prepared[i])
            step[count++] = (struct weft_pg_step){.stmt = i, .prepares = true};
    enum weft_rc rc = count > 0 ? weft_pg_exchange(pg, step, count, err) : WEFT_OK;
    weft_pg_clear(step, count);
    return rc;
}

static enum weft_rc pg_time(struct weft_conn *conn, weft_usec *ret_us, struct weft_err *err)
{
    PGresult *result;
    enum weft_rc rc = run_own(weft_pg_of(conn), WEFT_PG_TIME, NULL, &result, err);
    if (!rc)
        *ret_us = weft_pg_get_i64(result, 0, 0);
    PQclear(result);
    return rc;
}

static enum weft_settled read_settled(const PGresult *result)
{
    static const struct {
        const char *word;
        enum weft_settled settled;
    } known[] = {
        {"in progress", WEFT_SETTLED_RUNNING},
        {"in recovery", WEFT_SETTLED_RUNNING},
        {"committed", WEFT_SETTLED_COMMITTED},
        {"aborted", WEFT_SETTLED_ABORTED},
    };
    for (size_t i = 0; i < WEFT_LEN(known); i++)
        if (strcmp(PQgetvalue(result, 0, 0), known[i].word) == 0)
            return known[i].settled;
    return WEFT_SETTLED_UNKNOWN; /* NULL: too old, before a crash, or on another timeline */
}

/*
 * A server without its standby answers "committed" but never ends the transaction of the query: the
 * exchange takes at most SETTLE_MAX_US, then the connection is closed. A server in recovery does
 * not know yet and may never; the caller asks again over a new connection, perhaps to another host.
 */
static enum weft_rc ask_settle(struct weft_pg *pg, const char *text, enum weft_settled *ret_settled,
                               struct weft_err *err)
{
    PGresult *result;
    weft_usec usual_us = pg->exchange_us;
    pg->unreplicated = false;
    pg->exchange_us = SETTLE_MAX_US;
    enum weft_rc rc = run_own(pg, WEFT_PG_SETTLE, text, &result, err);
    pg->exchange_us = usual_us;
    if (!rc) {
        *ret_settled = read_settled(result);
        if (pg->unreplicated)
            *ret_settled = WEFT_SETTLED_RUNNING; /* the query did not wait for the standbys */
        if (strcmp(PQgetvalue(result, 0, 0), "in recovery") == 0)
            pg->conn.broken = true;
    }
    PQclear(result);
    return rc;
}

static enum weft_rc pg_settle(struct weft_conn *conn, const struct weft_lost *lost,
                              enum weft_settled *ret_settled, struct weft_err *err)
{
    struct weft_err error = {0};
    char text[64];
    uint64_t there = lost->lineage.system, here = conn->lineage.system;
    if (there != 0 && here != 0 && there != here) {
        *ret_settled = WEFT_SETTLED_UNKNOWN; /* another cluster, perhaps a restored one */
        return WEFT_OK;
    }
    (void)snprintf(text, sizeof(text), "%" PRIu64 " %" PRId64 " %08" PRIX32, lost->xid,
                   lost->age_us, lost->lineage.timeline);
    enum weft_rc rc = ask_settle(weft_pg_of(conn), text, ret_settled, &error);
    if (rc == WEFT_INVALID_VALUE) {
        /* A number from the future: this server was restored or promoted without the commit,
         * which may still exist on another server. */
        *ret_settled = WEFT_SETTLED_UNKNOWN;
        rc = WEFT_OK;
    } else if (rc && err) {
        *err = error;
    }
    return rc;
}

const struct weft_driver weft_driver_pg = {
    .name = "pg",
    .open = weft_pg_open,
    .close = weft_pg_close,
    .begin = pg_begin,
    .run = pg_run,
    .last = pg_last,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .script = pg_script,
    .alone = pg_alone,
    .forget = pg_forget,
    .prepare = pg_prepare,
    .time = pg_time,
    .settle = pg_settle,
    .writers_max = SIZE_MAX,
};
