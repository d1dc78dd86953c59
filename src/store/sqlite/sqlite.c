/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The SQLite driver: transactions, scripts and the clock. There is one writer at a time, chosen by
 * BEGIN IMMEDIATE, so a write transaction never fails half-way for want of a lock.
 *
 *     none --begin--> read | write --commit, rollback--> none
 *                     read | write --an error--> failed --rollback--> none
 *
 * A failed transaction accepts only rollback, as in PostgreSQL: a caller that ignores an error must
 * not be able to commit half of a batch.
 */

#include "store/sqlite/sqlite.h"

#include "base/arena.h"
#include "base/err.h"
#include "store/store.h"

#include <assert.h>
#include <string.h>
#include <time.h>

static int command(struct weft_lite *lite, enum weft_lite_command which)
{
    int code = sqlite3_step(lite->command[which]);
    (void)sqlite3_reset(lite->command[which]);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static enum weft_rc lite_begin(struct weft_conn *conn, enum weft_tx_mode mode, struct weft_err *err)
{
    struct weft_lite *lite = weft_lite_of(conn);
    assert(lite->tx == WEFT_LITE_TX_NONE);
    if (conn->broken)
        return weft_fail(err, WEFT_UNAVAILABLE, "begin: the connection is broken");

    bool reads = weft_tx_reads(mode);
    int code = command(lite, reads ? WEFT_LITE_BEGIN : WEFT_LITE_BEGIN_IMMEDIATE);
    if (code != SQLITE_OK)
        return weft_lite_fail(lite, code, err, "begin");
    lite->tx = reads ? WEFT_LITE_TX_READ : WEFT_LITE_TX_WRITE;
    return WEFT_OK;
}

static void lite_rollback(struct weft_conn *conn)
{
    struct weft_lite *lite = weft_lite_of(conn);
    lite->tx = WEFT_LITE_TX_NONE;
    /* A full disk or an I/O error ends the transaction by itself. */
    if (!sqlite3_get_autocommit(lite->db) && command(lite, WEFT_LITE_ROLLBACK) != SQLITE_OK)
        conn->broken = true;
}

static enum weft_rc lite_commit(struct weft_conn *conn, struct weft_err *err)
{
    struct weft_lite *lite = weft_lite_of(conn);
    if (lite->tx == WEFT_LITE_TX_NONE)
        return WEFT_OK;
    if (lite->tx == WEFT_LITE_TX_FAILED) {
        lite_rollback(conn);
        return weft_fail(err, WEFT_INTERNAL, "commit: the transaction had failed already");
    }

    int code = command(lite, WEFT_LITE_COMMIT);
    if (code != SQLITE_OK) {
        enum weft_rc rc = weft_lite_fail(lite, code, err, "commit");
        if ((code & 0xff) == SQLITE_IOERR) {
            /* The log may hold the commit although the disk did not confirm it: after a crash it
             * may reappear. The result is unknown, and this connection must stop writing. */
            conn->broken = true;
            if (err)
                err->cause = WEFT_CAUSE_LOST_IN_COMMIT;
        }
        lite_rollback(conn);
        return rc;
    }
    lite->tx = WEFT_LITE_TX_NONE;
    weft_lite_limit_wal(lite);
    return WEFT_OK;
}

static enum weft_rc check_open(struct weft_lite *lite, struct weft_err *err)
{
    assert(lite->tx != WEFT_LITE_TX_NONE);
    if (lite->tx == WEFT_LITE_TX_FAILED)
        return weft_fail(err, WEFT_INTERNAL, "the transaction had failed already");
    return WEFT_OK;
}

/* The contract of the driver table has six parameters. NOLINTNEXTLINE(readability-function-size) */
static enum weft_rc lite_run(struct weft_conn *conn, const struct weft_call *call, size_t count,
                             struct weft_arena *arena, struct weft_rows *ret_rows,
                             struct weft_err *err)
{
    struct weft_lite *lite = weft_lite_of(conn);
    struct weft_rows *rows = weft_new_array(arena, struct weft_rows, count);
    enum weft_rc rc = check_open(lite, err);
    for (size_t i = 0; !rc && i < count; i++)
        rc = weft_lite_run_one(lite, &call[i], arena, &rows[i], err);
    if (rc) {
        lite->tx = WEFT_LITE_TX_FAILED;
        return rc;
    }
    if (ret_rows && count > 0)
        memcpy(ret_rows, rows, count * sizeof(*rows));
    return WEFT_OK;
}

static enum weft_rc lite_script(struct weft_conn *conn, const char *sql, struct weft_err *err)
{
    struct weft_lite *lite = weft_lite_of(conn);
    enum weft_rc rc = check_open(lite, err);
    if (rc)
        return rc;
    int code = sqlite3_exec(lite->db, sql, NULL, NULL, NULL);
    if (code != SQLITE_OK) {
        lite->tx = WEFT_LITE_TX_FAILED;
        return weft_lite_fail(lite, code, err, "script");
    }
    return WEFT_OK;
}

static enum weft_rc lite_prepare(struct weft_conn *conn, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; !rc && i < WEFT_STMT_COUNT; i++) {
        if (weft_stmts[i].sqlite)
            rc = weft_lite_prepare_one(weft_lite_of(conn), (enum weft_stmt)i, err);
    }
    return rc;
}

static enum weft_rc lite_time(struct weft_conn *conn, weft_usec *ret_us, struct weft_err *err)
{
    struct timespec now;
    if (conn->broken || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return weft_fail(err, WEFT_UNAVAILABLE, "time: the connection is broken");
    *ret_us = now.tv_sec * WEFT_SECOND + now.tv_nsec / 1000;
    return WEFT_OK;
}

static enum weft_rc lite_settle(struct weft_conn *conn, const struct weft_lost *lost,
                                enum weft_settled *ret_settled, struct weft_err *err)
{
    /* SQLite has no transaction numbers. */
    (void)conn;
    (void)lost;
    (void)err;
    *ret_settled = WEFT_SETTLED_UNKNOWN;
    return WEFT_OK;
}

const struct weft_driver weft_driver_sqlite = {
    .name = "sqlite",
    .open = weft_lite_open,
    .absent = weft_lite_absent,
    .close = weft_lite_close,
    .begin = lite_begin,
    .run = lite_run,
    .last = lite_run, /* no round trips to save: commit() commits */
    .commit = lite_commit,
    .rollback = lite_rollback,
    .script = lite_script,
    .prepare = lite_prepare,
    .time = lite_time,
    .settle = lite_settle,
    .behind = weft_lite_is_behind,
    .writers_max = 1,
};
