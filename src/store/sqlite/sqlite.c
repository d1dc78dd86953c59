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

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

/* ---- Result codes ---------------------------------------------------------------------------- */

static const char *io_name(int code)
{
    static const struct {
        int code;
        const char *name;
    } known[] = {
        {SQLITE_IOERR_READ, "IOERR_READ"},           {SQLITE_IOERR_SHORT_READ, "IOERR_SHORT_READ"},
        {SQLITE_IOERR_WRITE, "IOERR_WRITE"},         {SQLITE_IOERR_FSYNC, "IOERR_FSYNC"},
        {SQLITE_IOERR_DIR_FSYNC, "IOERR_DIR_FSYNC"}, {SQLITE_IOERR_TRUNCATE, "IOERR_TRUNCATE"},
        {SQLITE_IOERR_FSTAT, "IOERR_FSTAT"},         {SQLITE_IOERR_LOCK, "IOERR_LOCK"},
        {SQLITE_IOERR_RDLOCK, "IOERR_RDLOCK"},       {SQLITE_IOERR_UNLOCK, "IOERR_UNLOCK"},
        {SQLITE_IOERR_DELETE, "IOERR_DELETE"},       {SQLITE_IOERR_NOMEM, "IOERR_NOMEM"},
        {SQLITE_IOERR_ACCESS, "IOERR_ACCESS"},       {SQLITE_IOERR_SHMOPEN, "IOERR_SHMOPEN"},
        {SQLITE_IOERR_SHMSIZE, "IOERR_SHMSIZE"},     {SQLITE_IOERR_SHMLOCK, "IOERR_SHMLOCK"},
        {SQLITE_IOERR_SHMMAP, "IOERR_SHMMAP"},       {SQLITE_IOERR_SEEK, "IOERR_SEEK"},
        {SQLITE_IOERR_MMAP, "IOERR_MMAP"},           {SQLITE_IOERR_CORRUPTFS, "IOERR_CORRUPTFS"},
    };
    for (size_t i = 0; i < WEFT_LEN(known); i++)
        if (known[i].code == code)
            return known[i].name;
    return "IOERR";
}

/* A statement that does not fit the tables: the schema is older or newer than the binary. */
static bool is_schema_text(const char *text)
{
    return strncmp(text, "no such table", 13) == 0 || strncmp(text, "no such column", 14) == 0 ||
           strncmp(text, "no such index", 13) == 0 || strstr(text, "has no column named") != NULL;
}

static const char hint_busy[] = "another process holds the write lock of this file";
const char weft_lite_permission[] =
    "the process must be able to write the file and create files beside it";

/* A code of 8 bits stands for all of its extended codes. The first match counts. */
static const struct mapping {
    int code;
    enum weft_rc rc;
    enum weft_cause cause;
    const char *hint; /* static */
} mappings[] = {
    {SQLITE_BUSY, WEFT_BUSY, WEFT_CAUSE_CONTENTION, hint_busy},
    {SQLITE_LOCKED, WEFT_BUSY, WEFT_CAUSE_CONTENTION, hint_busy},
    {SQLITE_SCHEMA, WEFT_BUSY, WEFT_CAUSE_CONTENTION, hint_busy},
    {SQLITE_PROTOCOL, WEFT_BUSY, WEFT_CAUSE_CONTENTION, hint_busy},
    {SQLITE_FULL, WEFT_STORAGE_FULL, WEFT_CAUSE_NONE,
     "free space on the disk that holds the database"},
    {SQLITE_CORRUPT, WEFT_CORRUPT, WEFT_CAUSE_NONE, "restore the file from a backup"},
    {SQLITE_NOTADB, WEFT_CORRUPT, WEFT_CAUSE_NONE,
     "name another file, or restore this one from a backup if it was weft's; nothing was changed"},
    {SQLITE_NOMEM, WEFT_UNAVAILABLE, WEFT_CAUSE_NONE, NULL},
    {SQLITE_IOERR, WEFT_UNAVAILABLE, WEFT_CAUSE_NONE, NULL},
    {SQLITE_CANTOPEN, WEFT_UNAVAILABLE, WEFT_CAUSE_NONE, NULL},
    {SQLITE_READONLY, WEFT_FORBIDDEN, WEFT_CAUSE_NONE, weft_lite_permission},
    {SQLITE_PERM, WEFT_FORBIDDEN, WEFT_CAUSE_NONE, weft_lite_permission},
    {SQLITE_AUTH, WEFT_FORBIDDEN, WEFT_CAUSE_NONE, weft_lite_permission},
    {SQLITE_CONSTRAINT_UNIQUE, WEFT_CONFLICT, WEFT_CAUSE_DUPLICATE, NULL},
    {SQLITE_CONSTRAINT_PRIMARYKEY, WEFT_CONFLICT, WEFT_CAUSE_DUPLICATE, NULL},
    {SQLITE_CONSTRAINT_ROWID, WEFT_CONFLICT, WEFT_CAUSE_DUPLICATE, NULL},
    {SQLITE_CONSTRAINT, WEFT_INVALID_VALUE, WEFT_CAUSE_DATA, NULL},
    {SQLITE_TOOBIG, WEFT_INVALID_VALUE, WEFT_CAUSE_DATA, NULL},
    {SQLITE_MISMATCH, WEFT_INVALID_VALUE, WEFT_CAUSE_DATA, NULL},
};

static const struct mapping *find_mapping(int code, int error, const char *text)
{
    static const struct mapping other = {0, WEFT_INTERNAL, WEFT_CAUSE_NONE, NULL};
    static const struct mapping schema = {0, WEFT_SCHEMA, WEFT_CAUSE_NONE, "run `weft migrate`"};
    if ((code & 0xff) == SQLITE_ERROR && is_schema_text(text))
        return &schema;
    /* For these two codes errno names the reason. */
    if ((code & 0xff) == SQLITE_IOERR && (error == ENOSPC || error == EDQUOT))
        code = SQLITE_FULL;
    if ((code & 0xff) == SQLITE_CANTOPEN && (error == EACCES || error == EPERM || error == EROFS))
        code = SQLITE_PERM;
    for (size_t i = 0; i < WEFT_LEN(mappings); i++)
        if (mappings[i].code == code || mappings[i].code == (code & 0xff))
            return &mappings[i];
    return &other;
}

/* The message is SQLite's own, which names tables and constraints but no values. */
enum weft_rc weft_lite_fail(struct weft_lite *lite, int code, struct weft_err *err,
                            const char *what)
{
    int error = sqlite3_system_errno(lite->db);
    const char *text = sqlite3_errmsg(lite->db);
    const struct mapping *mapping = find_mapping(code, error, text);
    if ((code & 0xff) == SQLITE_IOERR) {
        char reason[64];
        (void)weft_fail(err, mapping->rc, "%s: %s (%s, %s)", what, text, io_name(code),
                        strerror_r(error, reason, sizeof(reason)));
    } else {
        (void)weft_fail(err, mapping->rc, "%s: %s", what, text);
    }
    (void)weft_cause(err, mapping->rc, mapping->cause);
    return weft_hint(err, mapping->rc, mapping->hint);
}

/* ---- Transactions ---------------------------------------------------------------------------- */

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
            (void)weft_cause(err, rc, WEFT_CAUSE_LOST_IN_COMMIT);
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
    (void)weft_lite_use_triggers(lite->db, true);
    int code = sqlite3_exec(lite->db, sql, NULL, NULL, NULL);
    (void)weft_lite_use_triggers(lite->db, false);
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
    .forget = weft_lite_forget,
    .writers_max = 1,
};
