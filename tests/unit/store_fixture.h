/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UNIT_STORE_FIXTURE_H
#define WEFT_TESTS_UNIT_STORE_FIXTURE_H

/*
 * A scratch store per test: a file in TMPDIR, or a schema of its own in the PostgreSQL that
 * WEFT_TEST_PG names. Several connections to it stand for several processes.
 */

#include "tap.h"

#include "base/arena.h"
#include "store/migrate.h"
#include "store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
    const struct weft_driver *driver;
    struct weft_arena *arena;
    struct weft_err err;
    char url[512];
    char file[256]; /* of a SQLite store, or empty */
};

static inline bool fixture_has_pg(void)
{
    const char *url = getenv("WEFT_TEST_PG"); /* NOLINT(concurrency-mt-unsafe): one thread yet */
    return url && *url;
}

static inline void fixture_init(struct fixture *f, const struct weft_driver *driver)
{
    static int number;
    *f = (struct fixture){.driver = driver, .arena = weft_arena_new()};
    number++;
    if (driver == &weft_driver_pg) {
        const char *url = getenv("WEFT_TEST_PG"); /* NOLINT(concurrency-mt-unsafe) */
        assert(url);
        (void)snprintf(f->url, sizeof(f->url), "%s%cweft_schema=unit_%d_%d", url,
                       strchr(url, '?') ? '&' : '?', (int)getpid(), number);
        return;
    }
    const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */
    (void)snprintf(f->file, sizeof(f->file), "%s/weft-unit-%d-%d.db", folder ? folder : "/tmp",
                   (int)getpid(), number);
    (void)snprintf(f->url, sizeof(f->url), "sqlite:%s", f->file);
}

static inline struct weft_conn *fixture_open(struct fixture *f)
{
    struct weft_conn *conn = NULL;
    if (f->driver->open(f->url, &conn, &f->err)) {
        printf("Bail out! cannot open the store: %s\n", f->err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    return conn;
}

/* A connection to a store that holds the bookkeeping of migrations and nothing else. */
static inline struct weft_conn *fixture_open_new(struct fixture *f)
{
    struct weft_conn *conn = fixture_open(f);
    const struct weft_migration_set none = {0};
    ok(weft_migrate(conn, &none, f->arena, &f->err) == WEFT_OK, "%s: a new store", f->driver->name);
    return conn;
}

/* Runs plain SQL in a transaction of its own. */
static inline enum weft_rc fixture_script(struct fixture *f, struct weft_conn *conn,
                                          const char *sql)
{
    enum weft_rc rc = f->driver->begin(conn, WEFT_TX_WRITE, &f->err);
    if (!rc)
        rc = f->driver->script(conn, sql, &f->err);
    if (!rc)
        rc = f->driver->commit(conn, &f->err);
    else
        f->driver->rollback(conn);
    return rc;
}

static inline void fixture_remove_file(const struct fixture *f, const char *suffix)
{
    char name[300];
    (void)snprintf(name, sizeof(name), "%s%s", f->file, suffix);
    (void)unlink(name);
}

static inline void fixture_done(struct fixture *f)
{
    if (f->file[0]) {
        fixture_remove_file(f, "");
        fixture_remove_file(f, "-wal");
        fixture_remove_file(f, "-shm");
    } else {
        struct weft_conn *conn = fixture_open(f);
        (void)fixture_script(f, conn, "DROP SCHEMA IF EXISTS weft CASCADE");
        weft_conn_close(conn);
    }
    weft_arena_free(f->arena);
}

/* How many lines of a trace of PQtrace() have the word. */
static inline int fixture_count_lines(FILE *trace, const char *word)
{
    char line[512];
    int count = 0;
    rewind(trace);
    while (fgets(line, sizeof(line), trace))
        count += strstr(line, word) != NULL;
    return count;
}

#endif
