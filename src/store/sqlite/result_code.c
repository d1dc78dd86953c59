/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Maps SQLite's result codes to enum weft_rc. The message is SQLite's own, which names tables and
 * constraints but no values.
 */

#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <string.h>

struct mapping {
    enum weft_rc rc;
    enum weft_cause cause;
    const char *hint; /* static */
};

static const char hint_full[] = "free space on the disk that holds the database";
static const char hint_busy[] = "another process holds the write lock of this file";
static const char hint_damaged[] = "restore the file from a backup";
static const char hint_not_a_database[] =
    "name another file, or restore this one from a backup if it was weft's; nothing was changed";
static const char hint_permission[] =
    "the process must be able to write the file and create files beside it";

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

static bool is_permission(int error)
{
    return error == EACCES || error == EPERM || error == EROFS;
}

static bool is_full(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

/* A statement that does not fit the tables: the schema is older or newer than the binary. */
static bool is_schema_text(const char *text)
{
    return strncmp(text, "no such table", 13) == 0 || strncmp(text, "no such column", 14) == 0 ||
           strncmp(text, "no such index", 13) == 0 || strstr(text, "has no column named") != NULL;
}

static struct mapping map_constraint(int code)
{
    if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY ||
        code == SQLITE_CONSTRAINT_ROWID)
        return (struct mapping){WEFT_CONFLICT, WEFT_CAUSE_DUPLICATE, NULL};
    return (struct mapping){WEFT_INVALID_VALUE, WEFT_CAUSE_DATA, NULL};
}

static struct mapping map_code(int code, int error, const char *text)
{
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_SCHEMA:
    case SQLITE_PROTOCOL:
        return (struct mapping){WEFT_BUSY, WEFT_CAUSE_CONTENTION, hint_busy};
    case SQLITE_FULL:
        return (struct mapping){WEFT_STORAGE_FULL, WEFT_CAUSE_NONE, hint_full};
    case SQLITE_CORRUPT:
        return (struct mapping){WEFT_CORRUPT, WEFT_CAUSE_NONE, hint_damaged};
    case SQLITE_NOTADB:
        return (struct mapping){WEFT_CORRUPT, WEFT_CAUSE_NONE, hint_not_a_database};
    case SQLITE_IOERR:
        if (is_full(error))
            return (struct mapping){WEFT_STORAGE_FULL, WEFT_CAUSE_NONE, hint_full};
        return (struct mapping){WEFT_UNAVAILABLE, WEFT_CAUSE_NONE, NULL};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return (struct mapping){WEFT_FORBIDDEN, WEFT_CAUSE_NONE, hint_permission};
    case SQLITE_CANTOPEN:
        if (is_permission(error))
            return (struct mapping){WEFT_FORBIDDEN, WEFT_CAUSE_NONE, hint_permission};
        return (struct mapping){WEFT_UNAVAILABLE, WEFT_CAUSE_NONE, NULL};
    case SQLITE_CONSTRAINT:
        return map_constraint(code);
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
        return (struct mapping){WEFT_INVALID_VALUE, WEFT_CAUSE_DATA, NULL};
    case SQLITE_ERROR:
        if (is_schema_text(text))
            return (struct mapping){WEFT_SCHEMA, WEFT_CAUSE_NONE, "run `weft migrate`"};
        return (struct mapping){WEFT_INTERNAL, WEFT_CAUSE_NONE, NULL};
    default:
        return (struct mapping){WEFT_INTERNAL, WEFT_CAUSE_NONE, NULL};
    }
}

enum weft_rc weft_lite_fail(struct weft_lite *lite, int code, struct weft_err *err,
                            const char *what)
{
    int error = sqlite3_system_errno(lite->db);
    const char *text = sqlite3_errmsg(lite->db);
    struct mapping mapping = map_code(code, error, text);
    if ((code & 0xff) == SQLITE_NOMEM) /* the arena would have ended the process as well */
        mapping.rc = WEFT_UNAVAILABLE;
    if ((code & 0xff) == SQLITE_IOERR) {
        char reason[64];
        (void)weft_fail(err, mapping.rc, "%s: %s (%s, %s)", what, text, io_name(code),
                        strerror_r(error, reason, sizeof(reason)));
    } else {
        (void)weft_fail(err, mapping.rc, "%s: %s", what, text);
    }
    if (err) {
        err->cause = mapping.cause;
        err->hint = mapping.hint;
    }
    return mapping.rc;
}
