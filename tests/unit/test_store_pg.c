/* SPDX-License-Identifier: Apache-2.0 */

/* The driver for PostgreSQL: lock timeouts, sessions that end, poolers, schemas. */

#include "store_fixture.h"

#include "base/arena.h"
#include "base/clock.h"
#include "store/pg/pg.h"
#include "store/store.h"

#include <pthread.h>

static enum weft_rc add(struct fixture *f, struct weft_conn *conn, int64_t number)
{
    struct weft_call call;
    struct weft_migration_add_in *in = weft_call_migration_add(&call, f->arena);
    in->number = number;
    in->name = "name";
    in->sha256 = "0";
    in->applied_us = 0;
    return f->driver->run(conn, &call, 1, f->arena, NULL, &f->err);
}

/* Opens a transaction that has written a row. */
static struct weft_conn *open_writer(struct fixture *f, enum weft_tx_mode mode, int64_t number)
{
    struct weft_conn *conn = fixture_open(f);
    ok(f->driver->begin(conn, mode, &f->err) == WEFT_OK, "begin to write");
    ok(add(f, conn, number) == WEFT_OK, "write row %d", (int)number);
    return conn;
}

static enum weft_settled settle(struct fixture *f, struct weft_conn *conn, uint64_t xid)
{
    enum weft_settled settled = WEFT_SETTLED_UNKNOWN;
    const struct weft_lost lost = {.xid = xid, .lineage = conn->lineage};
    ok(f->driver->settle(conn, &lost, &settled, &f->err) == WEFT_OK, "settle");
    return settled;
}

/*
 * Ends the session that runs transaction xid when it waits in the given way, and waits until it is
 * gone. The loop is bounded by the timeout that every transaction pins.
 */
static enum weft_rc end_session(struct fixture *f, struct weft_conn *conn, uint64_t xid,
                                const char *wait)
{
    const char *sql =
        weft_arena_printf(f->arena,
                          "DO $$ DECLARE victim int; BEGIN LOOP PERFORM pg_stat_clear_snapshot();"
                          " SELECT pid INTO victim FROM pg_stat_activity"
                          "  WHERE backend_xid = '%u'::xid AND wait_event_type = '%s';"
                          " EXIT WHEN victim IS NOT NULL; PERFORM pg_sleep(0.001); END LOOP;"
                          " PERFORM pg_terminate_backend(victim, 20000); END $$",
                          (unsigned)xid, wait);
    return fixture_script(f, conn, sql);
}

static void test_numbers(struct fixture *f, struct weft_conn *conn)
{
    const struct weft_driver *d = f->driver;
    struct weft_conn *writer = open_writer(f, WEFT_TX_WRITE, 1);
    uint64_t xid = writer->xid;
    ok(xid > 0, "a write transaction knows its number before commit");
    ok(settle(f, conn, xid) == WEFT_SETTLED_RUNNING, "an open transaction is running");
    ok(d->commit(writer, &f->err) == WEFT_OK, "commit");
    ok(settle(f, conn, xid) == WEFT_SETTLED_COMMITTED, "a committed transaction is committed");
    struct weft_lost lost = {.xid = xid,
                             .lineage = writer->lineage,
                             .age_us = (weft_usec)10 * 366 * 86400 * WEFT_SECOND};
    enum weft_settled settled = WEFT_SETTLED_RUNNING;
    ok(d->settle(conn, &lost, &settled, &f->err) == WEFT_OK && settled == WEFT_SETTLED_UNKNOWN,
       "an outcome is unknown when the server may have crashed since");
    ok(lost.lineage.system != 0 && lost.lineage.timeline != 0, "the lost commit has its lineage");
    lost.age_us = 0;
    lost.lineage.timeline++;
    settled = WEFT_SETTLED_RUNNING;
    ok(d->settle(conn, &lost, &settled, &f->err) == WEFT_OK && settled == WEFT_SETTLED_UNKNOWN,
       "an outcome is unknown on another timeline");
    lost.lineage.timeline--;
    lost.lineage.system++;
    settled = WEFT_SETTLED_RUNNING;
    ok(d->settle(conn, &lost, &settled, &f->err) == WEFT_OK && settled == WEFT_SETTLED_UNKNOWN,
       "an outcome is unknown in another cluster");
    ok(d->begin(writer, WEFT_TX_WRITE, &f->err) == WEFT_OK && add(f, writer, 2) == WEFT_OK,
       "another one");
    ok(writer->xid > xid, "another transaction has another number");
    xid = writer->xid;
    d->rollback(writer);
    ok(settle(f, conn, xid) == WEFT_SETTLED_ABORTED, "a rolled back transaction is aborted");
    ok(settle(f, conn, xid + 1000000) == WEFT_SETTLED_UNKNOWN, "a number from the future");
    ok(!conn->broken, "the connection is not broken");
    weft_conn_close(writer);
}

static void test_lock_timeout(struct fixture *f, struct weft_conn *conn)
{
    struct weft_conn *other = fixture_open(f);
    ok(f->driver->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK, "begin");
    ok(f->driver->script(conn, "LOCK TABLE weft.migration", &f->err) == WEFT_OK, "lock a table");
    ok(f->driver->begin(other, WEFT_TX_KEYED, &f->err) == WEFT_OK, "begin elsewhere");
    ok(add(f, other, 3) == WEFT_BUSY && f->err.cause == WEFT_CAUSE_LOCK_TIMEOUT,
       "a lock that is not given: %s", f->err.text);
    is_str(f->err.sqlstate, "55P03", "a lock timeout has SQLSTATE 55P03");
    f->driver->rollback(other);
    ok(!other->broken, "the connection lives");
    f->driver->rollback(conn);
    weft_conn_close(other);
}

static void test_killed_before_commit(struct fixture *f, struct weft_conn *conn)
{
    struct weft_conn *victim = open_writer(f, WEFT_TX_WRITE, 4);
    ok(end_session(f, conn, victim->xid, "Client") == WEFT_OK, "end it: %s", f->err.text);
    ok(f->driver->commit(victim, &f->err) == WEFT_UNAVAILABLE && f->err.cause == WEFT_CAUSE_LOST &&
           victim->broken,
       "lost before commit was sent: %s", f->err.text);
    f->driver->rollback(victim);
    ok(f->driver->begin(victim, WEFT_TX_WRITE, &f->err) == WEFT_UNAVAILABLE, "broken for good");
    ok(settle(f, conn, victim->xid) == WEFT_SETTLED_ABORTED, "nothing was written");
    weft_conn_close(victim);

    victim = open_writer(f, WEFT_TX_WRITE, 4);
    ok(end_session(f, conn, victim->xid, "Client") == WEFT_OK, "end another");
    ok(add(f, victim, 5) == WEFT_UNAVAILABLE && f->err.cause == WEFT_CAUSE_LOST && victim->broken,
       "lost before a statement: %s", f->err.text);
    weft_conn_close(victim);
}

/* A deferred trigger makes COMMIT itself wait, so that something can happen to it. */
static void set_gate(struct fixture *f, struct weft_conn *conn)
{
    ok(fixture_script(f, conn,
                      "CREATE TABLE weft.gate (id int);"
                      "CREATE FUNCTION weft.wait() RETURNS trigger LANGUAGE plpgsql AS $$"
                      " BEGIN LOCK TABLE weft.gate; RETURN NULL; END $$;"
                      "CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON weft.migration"
                      " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION weft.wait()") ==
           WEFT_OK,
       "a gate before commit: %s", f->err.text);
}

struct commit {
    struct fixture f;
    struct weft_conn *conn;
    enum weft_rc rc;
};

static void *commit_thread(void *arg)
{
    struct commit *commit = arg;
    commit->rc = commit->f.driver->commit(commit->conn, &commit->f.err);
    return NULL;
}

static void test_killed_in_commit(struct fixture *f, struct weft_conn *conn)
{
    struct weft_conn *holder = fixture_open(f);
    set_gate(f, conn);
    ok(f->driver->begin(holder, WEFT_TX_WRITE, &f->err) == WEFT_OK, "begin");
    ok(f->driver->script(holder, "LOCK TABLE weft.gate", &f->err) == WEFT_OK, "shut the gate");

    struct weft_conn *keyed = open_writer(f, WEFT_TX_KEYED, 6);
    ok(f->driver->commit(keyed, &f->err) == WEFT_BUSY && !keyed->broken,
       "a commit that is refused leaves the connection: %s", f->err.text);
    ok(settle(f, keyed, keyed->xid) == WEFT_SETTLED_ABORTED, "the refused commit wrote nothing");
    weft_conn_close(keyed);

    struct commit commit = {.f = *f, .conn = open_writer(f, WEFT_TX_WRITE, 7)};
    pthread_t thread;
    ok(pthread_create(&thread, NULL, commit_thread, &commit) == 0, "commit in a thread");
    ok(end_session(f, conn, commit.conn->xid, "Lock") == WEFT_OK, "end it meanwhile");
    (void)pthread_join(thread, NULL);
    ok(commit.rc == WEFT_UNAVAILABLE && commit.f.err.cause == WEFT_CAUSE_LOST_IN_COMMIT &&
           commit.conn->broken,
       "lost in commit: %s", commit.f.err.text);
    ok(settle(f, conn, commit.conn->xid) == WEFT_SETTLED_ABORTED, "the server knows how it ended");
    weft_conn_close(commit.conn);
    f->driver->rollback(holder);
    weft_conn_close(holder);
}

static void test_without_names(struct fixture *f)
{
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    struct weft_conn *conn = NULL;
    weft_usec now_us = 0;
    const char *url = weft_arena_printf(f->arena, "%s&weft_prepare=off", f->url);
    ok(f->driver->open(url, &conn, &f->err) == WEFT_OK, "without prepared statements");
    for (size_t i = 0; i < 2; i++) {
        weft_call_echo(&call[i], f->arena)->values.big = weft_some((int64_t)i);
    }
    for (int i = 0; i < 2; i++) {
        ok(f->driver->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK, "begin");
        ok(f->driver->run(conn, call, 2, f->arena, rows, &f->err) == WEFT_OK &&
               weft_out_values(&rows[1], 0)->big.value == 1,
           "two calls");
        ok(conn->xid > 0 && f->driver->commit(conn, &f->err) == WEFT_OK, "commit");
    }
    ok(f->driver->time(conn, &now_us, &f->err) == WEFT_OK && now_us > 0, "the time");
    ok(settle(f, conn, conn->xid) == WEFT_SETTLED_COMMITTED,
       "the transaction is settled as committed");
    weft_conn_close(conn);
}

static void test_schema_names(void)
{
    static const struct {
        const char *sql, *want;
    } row[] = {
        {"SELECT weft.live.id FROM weft.live", "SELECT \"x\".live.id FROM \"x\".live"},
        {"to_regclass('weft.live')", "to_regclass('\"x\".live')"},
        {"CREATE SCHEMA IF NOT EXISTS weft;", "CREATE SCHEMA IF NOT EXISTS \"x\";"},
        {"drop schema\n weft", "drop schema\n \"x\""},
        {"SELECT weft_submit(), notweft.a, weft, 'weft'", NULL},
        {"NOTIFY weft", NULL},
        {"a.weft.b", NULL},
    };
    struct weft_arena *arena = weft_arena_new();
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        is_str(weft_pg_place_schema(row[i].sql, "x", arena), row[i].want ? row[i].want : row[i].sql,
               "the schema in text %zu", i);
        is_str(weft_pg_place_schema(row[i].sql, "weft", arena), row[i].sql,
               "the schema weft leaves the text as it is");
    }
    weft_arena_free(arena);
}

static void test_bad_urls(struct fixture *f)
{
    const struct {
        const char *name, *url;
        enum weft_rc want;
    } row[] = {
        {"no such database", weft_arena_printf(f->arena, "%s&dbname=nowhere", f->url),
         WEFT_NOT_FOUND},
        {"no such role", weft_arena_printf(f->arena, "%s&user=nobody_here", f->url),
         WEFT_FORBIDDEN},
        {"no server", "postgres://u:s3cret@/d?host=/nowhere", WEFT_UNAVAILABLE},
        {"a bad escape", "postgres://u:s3cret%zz@h/d", WEFT_INVALID_VALUE},
        {"a bad address", "postgres://u:s3cret@[::1/d", WEFT_INVALID_VALUE},
        {"a bad parameter", "postgres://u:s3cret@h/d?colour=blue", WEFT_INVALID_VALUE},
        {"a bad schema", "postgres://u:s3cret@h/d?weft_schema=1x", WEFT_INVALID_VALUE},
        {"a schema of the system", "postgres://h/d?weft_schema=pg_x", WEFT_INVALID_VALUE},
        {"a bad choice", "postgres://u:s3cret@h/d?weft_prepare=maybe", WEFT_INVALID_VALUE},
        {"not ours", "postgres://u:s3cret@h/d?weft_colour=blue", WEFT_INVALID_VALUE},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_conn *conn = NULL;
        enum weft_rc rc = weft_driver_pg.open(row[i].url, &conn, &f->err);
        is_int(rc, row[i].want, "%s: %s", row[i].name, f->err.text);
        ok(!strstr(f->err.text, "s3cret"), "the error shows no password");
    }
}

/* A bare read is one message on the wire, and an error in it leaves a connection as good as new. */
static void test_bare(struct fixture *f, struct weft_conn *conn)
{
    FILE *trace = tmpfile();
    struct weft_call call;
    struct weft_rows rows;
    weft_call_migration_list(&call, f->arena);
    for (int i = 0; i < 2; i++) { /* the first time it is prepared */
        if (i == 1)
            PQtrace(weft_pg_of(conn)->pq, trace);
        ok(f->driver->begin(conn, WEFT_TX_BARE, &f->err) == WEFT_OK &&
               f->driver->run(conn, &call, 1, f->arena, &rows, &f->err) == WEFT_OK &&
               f->driver->commit(conn, &f->err) == WEFT_OK,
           "a bare read");
    }
    PQuntrace(weft_pg_of(conn)->pq);
    is_int(fixture_count_lines(trace, "\tExecute"), 1, "the set is one statement");
    is_int(fixture_count_lines(trace, "\tSync"), 1, "in one exchange");
    is_int(fixture_count_lines(trace, "\tParse"), 0, "prepared before");
    (void)fclose(trace);

    struct weft_poll_in *poll = weft_call_poll(&call, f->arena); /* this store has no tables */
    poll->after = 0;
    poll->most = 1;
    ok(f->driver->begin(conn, WEFT_TX_BARE, &f->err) == WEFT_OK &&
           f->driver->run(conn, &call, 1, f->arena, &rows, &f->err) != WEFT_OK,
       "a bare read that fails");
    f->driver->rollback(conn);
    ok(!conn->broken, "breaks nothing");
    ok(f->driver->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK && add(f, conn, 77) == WEFT_OK,
       "a write comes after it");
    f->driver->rollback(conn);
}

/* libpq never gives back what a large exchange needed: the connection says when that was. */
static void test_swollen(struct fixture *f)
{
    enum { LARGE = 2 << 20 };
    struct weft_conn *writer = open_writer(f, WEFT_TX_WRITE, 90), *reader = fixture_open(f);
    is_int(writer->buffers_large_since_us, 0, "small statements make nothing large");
    char *name = weft_arena_alloc(f->arena, LARGE + 1, 1);
    memset(name, 'x', LARGE);
    struct weft_call call;
    struct weft_rows rows;
    struct weft_migration_add_in *add = weft_call_migration_add(&call, f->arena);
    add->number = 91;
    add->name = name;
    add->sha256 = "0";
    add->applied_us = 0;
    weft_usec before_us = weft_boot_us();
    ok(f->driver->run(writer, &call, 1, f->arena, NULL, &f->err) == WEFT_OK, "a large argument");
    weft_usec buffers_large_since_us = writer->buffers_large_since_us;
    ok(buffers_large_since_us >= before_us && buffers_large_since_us <= weft_boot_us(),
       "makes it large, and when");
    ok(f->driver->commit(writer, &f->err) == WEFT_OK, "commit");
    is_int(writer->buffers_large_since_us, buffers_large_since_us,
           "a small exchange behind it does not change that");

    weft_call_migration_list(&call, f->arena);
    ok(f->driver->begin(reader, WEFT_TX_READ, &f->err) == WEFT_OK &&
           f->driver->run(reader, &call, 1, f->arena, &rows, &f->err) == WEFT_OK,
       "a large answer");
    ok(reader->buffers_large_since_us >= buffers_large_since_us,
       "a large answer marks the buffers as large");
    f->driver->rollback(reader);
    weft_conn_close(reader);
    weft_conn_close(writer);
}

int main(void)
{
    test_schema_names();
    if (!fixture_has_pg()) {
        tap_skip("WEFT_TEST_PG is not set");
        return tap_done();
    }
    struct fixture f;
    fixture_init(&f, &weft_driver_pg);
    struct weft_conn *conn = fixture_open_new(&f);
    test_numbers(&f, conn);
    test_lock_timeout(&f, conn);
    test_killed_before_commit(&f, conn);
    test_killed_in_commit(&f, conn);
    test_without_names(&f);
    test_bad_urls(&f);
    test_bare(&f, conn);
    test_swollen(&f);
    weft_conn_close(conn);
    fixture_done(&f);
    return tap_done();
}
