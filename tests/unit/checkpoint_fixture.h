/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UNIT_CHECKPOINT_FIXTURE_H
#define WEFT_TESTS_UNIT_CHECKPOINT_FIXTURE_H

/* Writes large rows and measures the write-ahead log. */

#include "store_fixture.h"

#include "base/arena.h"
#include "store/store.h"

#include <sys/stat.h>

#define MIB ((int64_t)1 << 20)
enum { ROW_BYTES = 1 << 18 };

/* One commit of a quarter of a MiB. Quiet, because some go wrong on purpose. */
static inline enum weft_rc fixture_add(struct fixture *f, struct weft_conn *conn, int64_t number)
{
    static char text[ROW_BYTES + 1];
    if (text[0] == '\0')
        memset(text, 'x', ROW_BYTES);
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_migration_add_in *in = weft_call_migration_add(&call, arena);
    in->number = number;
    in->name = text;
    in->sha256 = "0";
    in->applied_us = 0;
    enum weft_rc rc = f->driver->begin(conn, WEFT_TX_WRITE, &f->err);
    if (!rc)
        rc = f->driver->run(conn, &call, 1, arena, NULL, &f->err);
    if (!rc)
        rc = f->driver->commit(conn, &f->err);
    else
        f->driver->rollback(conn);
    weft_arena_free(arena);
    return rc;
}

/* Adds the rows from `first` on, up to the first failure. Returns how many. */
static inline int fixture_add_many(struct fixture *f, struct weft_conn *conn, int64_t first,
                                   int count)
{
    int done = 0;
    while (done < count && fixture_add(f, conn, first + done) == WEFT_OK)
        done++;
    return done;
}

static inline int64_t fixture_size(const struct fixture *f, const char *suffix)
{
    char name[300];
    struct stat info;
    (void)snprintf(name, sizeof(name), "%s%s", f->file, suffix);
    return stat(name, &info) == 0 ? (int64_t)info.st_size : -1;
}

/* How many rows a statement gives, in a transaction of its own. -1: it fails. */
static inline int64_t fixture_rows(struct fixture *f, struct weft_conn *conn, enum weft_stmt stmt)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_init(&call, arena, stmt, 0);
    enum weft_rc rc = f->driver->begin(conn, WEFT_TX_READ, &f->err);
    if (!rc)
        rc = f->driver->run(conn, &call, 1, arena, &rows, &f->err);
    int64_t count = rc ? -1 : (int64_t)rows.count;
    f->driver->rollback(conn);
    weft_arena_free(arena);
    return count;
}

/* Closes the connection and looks at what it leaves. */
static inline void fixture_check(struct fixture *f, struct weft_conn *conn, int64_t rows)
{
    weft_conn_close(conn);
    is_int(fixture_size(f, "-wal"), -1, "the last to close leaves no log");
    conn = fixture_open(f);
    is_int(fixture_rows(f, conn, WEFT_STMT_MIGRATION_LIST), rows, "every row is there");
    ok(fixture_rows(f, conn, WEFT_STMT_EXAMINE_INTEGRITY) == 1, "the file is whole");
    weft_conn_close(conn);
}

#endif
