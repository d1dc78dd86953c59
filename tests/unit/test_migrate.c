/* SPDX-License-Identifier: Apache-2.0 */

/* Migrations over each store: many at once, changed ones, older binaries, other people's tables. */

#include "store_fixture.h"

#include "base/arena.h"
#include "base/clock.h"
#include "store/migrate.h"
#include "store/store.h"

#include <poll.h>
#include <sys/wait.h>

#define STEP(n, word, oldest)                                                                      \
    {                                                                                              \
        .number = (n), .name = (word), .oldest_binary = (oldest),                                  \
        .pg = {.sha256 = "p" #n, .sql = "CREATE TABLE weft." word " (id int); SELECT 1;"},         \
        .sqlite = {.sha256 = "s" #n, .sql = "CREATE TABLE " word " (id); SELECT 1;"},              \
    }

static const struct weft_migration steps[] = {
    STEP(1, "first", 0),
    STEP(2, "second", 0),
    STEP(3, "third", 0),
    STEP(4, "fourth", 3),
};

static enum weft_rc migrate(struct fixture *f, struct weft_conn *conn,
                            const struct weft_migration *list, size_t count)
{
    const struct weft_migration_set set = {.migration = list, .count = count};
    return weft_migrate(conn, &set, f->arena, &f->err);
}

static size_t count_applied(struct fixture *f, struct weft_conn *conn)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_migration_list(&call, f->arena);
    if (f->driver->begin(conn, WEFT_TX_READ, &f->err) ||
        f->driver->run(conn, &call, 1, f->arena, &rows, &f->err) ||
        f->driver->commit(conn, &f->err))
        f->driver->rollback(conn);
    return rows.count;
}

/* Ten processes start together: a pipe that closes is the starting shot. */
static void test_at_once(const struct weft_driver *driver)
{
    enum { PROCESSES = 10 };
    struct fixture f;
    int shot[2];
    size_t good = 0;
    fixture_init(&f, driver);
    ok(pipe(shot) == 0, "a starting shot");
    (void)fflush(stdout);
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0) {
            char byte;
            (void)close(shot[1]);
            if (read(shot[0], &byte, 1) != 0)
                _exit(2);
            struct weft_conn *own = NULL;
            enum weft_rc rc = driver->open(f.url, &own, &f.err);
            if (!rc)
                rc = migrate(&f, own, steps, 3);
            if (rc)
                (void)fprintf(stderr, "# %s\n", f.err.text);
            weft_conn_close(own);
            _exit(rc ? 1 : 0);
        }
    }
    (void)close(shot[0]);
    (void)close(shot[1]);
    for (int i = 0; i < PROCESSES; i++) {
        int status = 1;
        (void)wait(&status);
        good += status == 0;
    }
    is_int(good, PROCESSES, "%s: ten processes at once", driver->name);
    struct weft_conn *conn = fixture_open(&f);
    is_int(count_applied(&f, conn), 3, "%s: each migration was applied once", driver->name);
    ok(migrate(&f, conn, steps, 3) == WEFT_OK, "a migration after that has nothing to do");
    weft_conn_close(conn);
    fixture_done(&f);
}

static void test_checks(const struct weft_driver *driver)
{
    struct fixture f;
    fixture_init(&f, driver);
    struct weft_conn *conn = fixture_open(&f);
    ok(migrate(&f, conn, steps, 2) == WEFT_OK, "%s: two migrations", driver->name);
    struct weft_migration changed[3] = {steps[0], steps[1], steps[2]};
    changed[1].pg.sha256 = changed[1].sqlite.sha256 = "other";
    ok(migrate(&f, conn, changed, 3) == WEFT_SCHEMA && strstr(f.err.text, "migration 2 (second)") &&
           f.err.hint,
       "%s: a changed one is refused: %s", driver->name, f.err.text);
    is_int(count_applied(&f, conn), 2, "no migration after the changed one is applied");

    struct weft_migration broken[3] = {steps[0], steps[1], steps[2]};
    broken[2].pg.sql = "CREATE TABLE weft.half (id int); SELECT nonsense;";
    broken[2].sqlite.sql = "CREATE TABLE half (id); SELECT nonsense;";
    ok(migrate(&f, conn, broken, 3) == WEFT_SCHEMA && strstr(f.err.text, "migration 3 (third)"),
       "a mistake in one: %s", f.err.text);
    is_int(count_applied(&f, conn), 2, "%s: is not recorded", driver->name);
    broken[2].pg.sql = "CREATE TABLE weft.half (id int)";
    broken[2].sqlite.sql = "CREATE TABLE half (id)";
    ok(!conn->broken && migrate(&f, conn, broken, 3) == WEFT_OK,
       "the failed migration left nothing behind");

    ok(migrate(&f, conn, broken, 1) == WEFT_OK, "%s: an older binary runs", driver->name);
    struct weft_migration all[4] = {broken[0], broken[1], broken[2], steps[3]};
    ok(migrate(&f, conn, all, 4) == WEFT_OK, "a migration that asks for a newer binary is applied");
    ok(migrate(&f, conn, all, 3) == WEFT_OK, "a binary with 3 migrations is new enough");
    ok(migrate(&f, conn, all, 2) == WEFT_SCHEMA && strstr(f.err.text, "too old"),
       "%s: a binary with 2 migrations is too old: %s", driver->name, f.err.text);
    weft_conn_close(conn);
    fixture_done(&f);
}

/* A process that finds everything applied needs no lock. */
static void test_no_lock(const struct weft_driver *driver)
{
    struct fixture f;
    fixture_init(&f, driver);
    struct weft_conn *holder = fixture_open(&f), *conn = fixture_open(&f);
    ok(migrate(&f, conn, steps, 1) == WEFT_OK, "one migration");
    ok(driver->begin(holder, WEFT_TX_WRITE, &f.err) == WEFT_OK,
       "another process begins to migrate");
    ok(driver->script(holder,
                      driver == &weft_driver_pg
                          ? "LOCK TABLE weft.migration IN SHARE ROW EXCLUSIVE MODE"
                          : "UPDATE migration SET name = name",
                      &f.err) == WEFT_OK,
       "the other process holds the lock");
    ok(migrate(&f, conn, steps, 1) == WEFT_OK, "%s: nothing to do, nothing to wait for",
       driver->name);
    driver->rollback(holder);

    ok(driver->begin(holder, WEFT_TX_READ, &f.err) == WEFT_OK, "another process begins to read");
    ok(driver->script(holder,
                      driver == &weft_driver_pg ? "SELECT * FROM weft.migration"
                                                : "SELECT * FROM migration",
                      &f.err) == WEFT_OK,
       "the other process has read the table");
    ok(migrate(&f, conn, steps, 2) == WEFT_OK, "%s: a reader does not hold up a migration",
       driver->name);
    driver->rollback(holder);
    weft_conn_close(holder);
    weft_conn_close(conn);
    fixture_done(&f);
}

/* A read-only check reports what is missing and changes nothing. */
static void test_look_only(const struct weft_driver *driver)
{
    struct fixture f;
    fixture_init(&f, driver);
    struct weft_conn *conn = fixture_open(&f);
    struct weft_migration_set set = {.migration = steps, .count = 2, .check_only = true};
    ok(weft_migrate(conn, &set, f.arena, &f.err) == WEFT_SCHEMA && strstr(f.err.text, "0 of 2"),
       "%s: an empty store is refused: %s", driver->name, f.err.text);
    ok(migrate(&f, conn, steps, 1) == WEFT_OK, "one migration");
    ok(weft_migrate(conn, &set, f.arena, &f.err) == WEFT_SCHEMA && strstr(f.err.text, "1 of 2"),
       "a schema that lags behind is refused: %s", f.err.text);
    is_int(count_applied(&f, conn), 1, "nothing was applied");
    ok(migrate(&f, conn, steps, 2) == WEFT_OK &&
           weft_migrate(conn, &set, f.arena, &f.err) == WEFT_OK,
       "%s: one that is up to date is fine", driver->name);
    weft_conn_close(conn);
    fixture_done(&f);
}

static void test_not_ours(const struct weft_driver *driver)
{
    struct fixture f;
    fixture_init(&f, driver);
    struct weft_conn *conn = fixture_open(&f);
    ok(fixture_script(&f, conn,
                      driver == &weft_driver_pg
                          ? "CREATE SCHEMA weft; CREATE TABLE weft.theirs (id int)"
                          : "CREATE TABLE theirs (id)") == WEFT_OK,
       "the schema has a foreign table");
    ok(migrate(&f, conn, steps, 1) == WEFT_SCHEMA && strstr(f.err.text, "not weft's"),
       "%s: is left alone: %s", driver->name, f.err.text);
    weft_conn_close(conn);
    fixture_done(&f);
}

/* The migrations and the statements of this very binary. */
static void test_our_own(const struct weft_driver *driver)
{
    struct fixture f;
    fixture_init(&f, driver);
    struct weft_conn *conn = fixture_open(&f);
    ok(migrate(&f, conn, weft_migrations, weft_migration_count) == WEFT_OK,
       "%s: all migrations: %s", driver->name, f.err.text);
    ok(driver->prepare(conn, &f.err) == WEFT_OK, "%s: all statements: %s", driver->name,
       f.err.text);
    ok(driver->prepare(conn, &f.err) == WEFT_OK, "preparing the statements a second time succeeds");
    ok(migrate(&f, conn, weft_migrations, 3) == WEFT_SCHEMA && strstr(f.err.text, "too old"),
       "%s: a binary that does not know flows is refused: %s", driver->name, f.err.text);
    ok(migrate(&f, conn, weft_migrations, 6) == WEFT_SCHEMA,
       "%s: a binary that does not know draining leases is refused", driver->name);
    weft_conn_close(conn);
    fixture_done(&f);
}

/* A role that may connect and no more; then one for which the schema was made. */
static void test_permission(void)
{
    struct fixture f;
    fixture_init(&f, &weft_driver_pg);
    struct weft_conn *admin = fixture_open(&f), *conn = NULL;
    const char *role = weft_arena_printf(f.arena, "unit_role_%d", (int)getpid());
    const char *url = weft_arena_printf(f.arena, "%s&user=%s", f.url, role);
    ok(fixture_script(&f, admin, weft_arena_printf(f.arena, "CREATE ROLE %s LOGIN", role)) ==
           WEFT_OK,
       "a role");
    ok(f.driver->open(url, &conn, &f.err) == WEFT_OK, "connects: %s", f.err.text);
    ok(migrate(&f, conn, steps, 1) == WEFT_FORBIDDEN, "may not create a schema: %s", f.err.text);
    ok(fixture_script(&f, admin,
                      weft_arena_printf(f.arena, "CREATE SCHEMA weft AUTHORIZATION %s", role)) ==
           WEFT_OK,
       "the role is given a schema");
    ok(migrate(&f, conn, steps, 1) == WEFT_OK, "the migration uses the schema it was given: %s",
       f.err.text);
    weft_conn_close(conn);
    ok(fixture_script(&f, admin,
                      weft_arena_printf(f.arena, "DROP OWNED BY %s; DROP ROLE %s", role, role)) ==
           WEFT_OK,
       "the role is gone: %s", f.err.text);
    weft_conn_close(admin);
    fixture_done(&f);
}

/* Tells the parent of each try that met a lock. */
static void tell_try(void *context, const struct weft_migration_wait *wait)
{
    const int *pipe_end = context;
    int64_t pid = wait->pid;
    if (write(*pipe_end, &pid, sizeof(pid)) != sizeof(pid))
        _exit(3);
}

/* Migrates in a process of its own; its exit code says how that went. */
static pid_t migrate_beside(struct fixture *f, const struct weft_migration *list, size_t count,
                            weft_usec wait_us, int pipe_end)
{
    (void)fflush(stdout);
    pid_t child = fork();
    if (child != 0)
        return child;
    struct weft_conn *own = NULL;
    const struct weft_migration_set set = {.migration = list,
                                           .count = count,
                                           .wait_us = wait_us,
                                           .waits = tell_try,
                                           .context = &pipe_end};
    enum weft_rc rc = f->driver->open(f->url, &own, &f->err);
    if (!rc)
        rc = weft_migrate(own, &set, f->arena, &f->err);
    if (rc)
        (void)fprintf(stderr, "# %s\n", f->err.text);
    weft_conn_close(own);
    _exit(rc == WEFT_OK ? 0 : rc == WEFT_BUSY && strstr(f->err.text, "open transactions") ? 1 : 2);
}

static int exit_of(pid_t child)
{
    int status = -1;
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A reader keeps a table that a migration changes; other readers must not wait behind it. */
static void test_reader(void)
{
    enum { TRIES = 3 };
    struct fixture f;
    int told[2] = {-1, -1};
    struct weft_migration change[2] = {steps[0], steps[1]};
    change[1].pg.sql = "ALTER TABLE weft.first ADD COLUMN more int";
    fixture_init(&f, &weft_driver_pg);
    struct weft_conn *holder = fixture_open(&f), *other = fixture_open(&f);
    ok(migrate(&f, holder, change, 1) == WEFT_OK && pipe(told) == 0, "one migration");
    ok(f.driver->begin(holder, WEFT_TX_READ, &f.err) == WEFT_OK &&
           f.driver->script(holder, "SELECT * FROM weft.first", &f.err) == WEFT_OK,
       "a reader keeps its transaction open");
    is_int(exit_of(migrate_beside(&f, change, 2, WEFT_SECOND, told[1])), 1,
           "a migration that needs the table gives up after its time, and says why");
    int64_t pid = 0;
    ok(read(told[0], &pid, sizeof(pid)) == sizeof(pid) && pid > 0,
       "the migration reports the process in its way");

    pid_t child = migrate_beside(&f, change, 2, 60 * WEFT_SECOND, told[1]);
    weft_usec end_us = weft_boot_us() + 60 * WEFT_SECOND;
    size_t failed = 0;
    int tries = 0;
    while (tries < TRIES && failed == 0 && weft_boot_us() < end_us) {
        failed += fixture_script(&f, other, "SELECT * FROM weft.first") != WEFT_OK;
        struct pollfd ready = {.fd = told[0], .events = POLLIN};
        if (poll(&ready, 1, 0) == 1)
            tries += read(told[0], &pid, sizeof(pid)) == sizeof(pid);
    }
    is_int(tries, TRIES, "the migration tries again and again");
    is_int(failed, 0, "other readers are served all the time: %s", f.err.text);
    f.driver->rollback(holder);
    is_int(exit_of(child), 0, "the migration is applied when the reader has ended");
    is_int(count_applied(&f, other), 2, "the migration is recorded");
    (void)close(told[0]);
    (void)close(told[1]);
    weft_conn_close(holder);
    weft_conn_close(other);
    fixture_done(&f);
}

/* Whether the query gives true. */
static bool holds(struct fixture *f, struct weft_conn *conn, const char *condition)
{
    return fixture_script(f, conn,
                          weft_arena_printf(f->arena,
                                            "DO $$ BEGIN IF NOT (%s) THEN RAISE 'no'; END IF; "
                                            "END $$",
                                            condition)) == WEFT_OK;
}

/* An index that is built beside the work: writers go on, and what a failed build left goes. */
static void test_concurrently(void)
{
    enum { PROCESSES = 4, WRITES = 50 };
    static const char valid[] =
        "SELECT indisvalid FROM pg_index WHERE indexrelid = 'weft.first_id'::regclass";
    struct fixture f;
    int told[2] = {-1, -1}, good = 0, wrote = 0;
    struct weft_migration change[2] = {steps[0], steps[1]};
    change[1].pg = (struct weft_migration_text){
        .sha256 = "p2",
        .index = "first_id",
        .table = "first",
        .sql = "CREATE INDEX CONCURRENTLY IF NOT EXISTS first_id ON weft.first (id)"};
    fixture_init(&f, &weft_driver_pg);
    struct weft_conn *holder = fixture_open(&f), *other = fixture_open(&f);
    ok(migrate(&f, holder, change, 1) == WEFT_OK && pipe(told) == 0, "one migration");
    ok(f.driver->begin(holder, WEFT_TX_WRITE, &f.err) == WEFT_OK &&
           f.driver->script(holder, "INSERT INTO weft.first VALUES (1)", &f.err) == WEFT_OK,
       "a writer keeps its transaction open");
    pid_t child = migrate_beside(&f, change, 2, 60 * WEFT_SECOND, told[1]);
    weft_usec end_us = weft_boot_us() + 60 * WEFT_SECOND;
    bool begun = false;
    while (!begun && weft_boot_us() < end_us)
        begun = holds(&f, other, "SELECT count(*) = 1 FROM pg_stat_progress_create_index");
    ok(begun, "the index is being built");
    for (int i = 0; i < WRITES; i++)
        wrote += fixture_script(&f, other, "INSERT INTO weft.first VALUES (2)") == WEFT_OK;
    is_int(wrote, WRITES, "writers go on meanwhile: %s", f.err.text);
    ok(holds(&f, other, "SELECT count(*) = 1 FROM weft.migration"),
       "the migration is not recorded yet");
    f.driver->rollback(holder);
    is_int(exit_of(child), 0, "the index is built when the older transactions have ended");
    ok(holds(&f, other, valid) && count_applied(&f, other) == 2,
       "the index is valid and the migration recorded");

    ok(fixture_script(&f, other,
                      "UPDATE pg_index SET indisvalid = false WHERE indexrelid = "
                      "'weft.first_id'::regclass; DELETE FROM weft.migration WHERE number = 2; "
                      "UPDATE weft.schema SET version = 1") == WEFT_OK,
       "a build that failed: %s", f.err.text);
    pid_t pid[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        pid[i] = migrate_beside(&f, change, 2, 60 * WEFT_SECOND, told[1]);
    for (int i = 0; i < PROCESSES; i++)
        good += exit_of(pid[i]) == 0;
    is_int(good, PROCESSES, "several processes at once start over");
    ok(holds(&f, other, valid), "the index is whole");
    is_int(count_applied(&f, other), 2, "the migration is recorded once");
    (void)close(told[0]);
    (void)close(told[1]);
    weft_conn_close(holder);
    weft_conn_close(other);
    fixture_done(&f);
}

static void test_driver(const struct weft_driver *driver)
{
    test_at_once(driver);
    test_checks(driver);
    test_no_lock(driver);
    test_look_only(driver);
    test_not_ours(driver);
    test_our_own(driver);
}

int main(void)
{
    test_driver(&weft_driver_sqlite);
    if (fixture_has_pg()) {
        test_driver(&weft_driver_pg);
        test_permission();
        test_reader();
        test_concurrently();
    }
    return tap_done();
}
