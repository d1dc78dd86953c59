/* SPDX-License-Identifier: Apache-2.0 */

/* Every statement prepares on a migrated store, and every read-only one runs on an empty store. */

#include "store_fixture.h"

#include "store/migrate.h"
#include "store/store.h"

#include <ctype.h>

/* Reads and locks with all parameters zero or null: this tries columns and types. */
static void test_runs(struct fixture *f, struct weft_conn *conn)
{
    for (size_t i = 0; i < WEFT_STMT_COUNT; i++) {
        const struct weft_stmt_info *stmt = &weft_stmts[i];
        const char *text = f->driver == &weft_driver_pg ? stmt->pg : stmt->sqlite;
        bool reads = text && stmt->result_count > 0 && !strstr(text, "INSERT") &&
                     !strstr(text, "UPDATE weft") && !strstr(text, "UPDATE live") &&
                     !strstr(text, "DELETE");
        if (!reads)
            continue;
        struct weft_call call;
        struct weft_rows rows = {0};
        weft_call_init(&call, f->arena, (enum weft_stmt)i, 1);
        enum weft_rc rc = f->driver->begin(conn, WEFT_TX_WRITE, &f->err);
        if (!rc)
            rc = f->driver->run(conn, &call, 1, f->arena, &rows, &f->err);
        f->driver->rollback(conn);
        ok(rc == WEFT_OK, "%s: %s runs%s%s", f->driver->name, stmt->name, rc ? ": " : "",
           rc ? f->err.text : "");
        if (!rc)
            is_int(rows.stmt, (int)i, "%s: %s has its rows", f->driver->name, stmt->name);
    }
}

static void test_driver(const struct weft_driver *driver)
{
    struct fixture f;
    fixture_init(&f, driver);
    struct weft_conn *conn = fixture_open(&f);
    const struct weft_migration_set all = {.migration = weft_migrations,
                                           .count = weft_migration_count};
    enum weft_rc rc = weft_migrate(conn, &all, f.arena, &f.err);
    ok(rc == WEFT_OK, "%s: migrated%s%s", driver->name, rc ? ": " : "", rc ? f.err.text : "");
    rc = driver->prepare(conn, &f.err);
    ok(rc == WEFT_OK, "%s: every statement prepares%s%s", driver->name, rc ? ": " : "",
       rc ? f.err.text : "");
    ok(driver->prepare(conn, &f.err) == WEFT_OK, "%s: and once more is fine", driver->name);
    test_runs(&f, conn);
    weft_conn_close(conn);
    fixture_done(&f);
}

static void test_table(void)
{
    for (size_t i = 0; i < WEFT_STMT_COUNT; i++) {
        const struct weft_stmt_info *stmt = &weft_stmts[i];
        bool named = stmt->name && *stmt->name;
        for (const char *c = named ? stmt->name : ""; *c; c++)
            named = named && (islower((unsigned char)*c) || *c == '_');
        ok(named && (stmt->pg || stmt->sqlite), "statement %zu has a name and a text", i);
        for (size_t p = 0; p < stmt->param_count; p++)
            for (size_t q = 0; q < p; q++)
                if (strcmp(stmt->param[p].name, stmt->param[q].name) == 0)
                    ok(false, "%s: two parameters are called %s", stmt->name, stmt->param[p].name);
    }
}

int main(void)
{
    test_table();
    test_driver(&weft_driver_sqlite);
    if (fixture_has_pg())
        test_driver(&weft_driver_pg);
    else
        tap_skip("WEFT_TEST_PG is not set");
    return tap_done();
}
