/* SPDX-License-Identifier: Apache-2.0 */

/* The driver for SQLite: wrong paths, locks of other processes, a full disk. */

#include "store_fixture.h"

#include "base/arena.h"
#include "core/state.h"
#include "store/store.h"

#include <sys/stat.h>

static char payload[300000];

static enum weft_rc add(struct fixture *f, struct weft_conn *conn, int64_t number)
{
    struct weft_call call;
    struct weft_migration_add_in *in = weft_call_migration_add(&call, f->arena);
    in->number = number;
    in->name = payload;
    in->sha256 = "0";
    in->applied_us = 0;
    return f->driver->run(conn, &call, 1, f->arena, NULL, &f->err);
}

static enum weft_rc try_open(struct fixture *f, const char *url)
{
    struct weft_conn *conn = NULL;
    enum weft_rc rc = weft_driver_sqlite.open(url, &conn, &f->err);
    weft_conn_close(conn);
    return rc;
}

static void write_file(const struct fixture *f, const char *text)
{
    FILE *file = fopen(f->file, "w");
    ok(file && fputs(text, file) >= 0 && fclose(file) == 0, "a file");
}

static void test_paths(struct fixture *f)
{
    char folder[300];
    (void)snprintf(folder, sizeof(folder), "%s.folder", f->file);
    ok(mkdir(folder, 0755) == 0, "a folder");
    const struct {
        const char *name, *url;
        enum weft_rc want;
    } row[] = {
        {"memory", "sqlite::memory:", WEFT_INVALID_VALUE},
        {"nothing", "sqlite:", WEFT_INVALID_VALUE},
        {"a host", "sqlite://host/x.db", WEFT_INVALID_VALUE},
        {"a directory", weft_arena_printf(f->arena, "sqlite:%s", folder), WEFT_INVALID_VALUE},
        {"no folder", weft_arena_printf(f->arena, "sqlite:%s/no/x.db", folder), WEFT_NOT_FOUND},
        {"a bad option", weft_arena_printf(f->arena, "%s?colour=blue", f->url), WEFT_INVALID_VALUE},
        {"a bad wait", weft_arena_printf(f->arena, "%s?busy_ms=1s", f->url), WEFT_INVALID_VALUE},
        {"a bad choice", weft_arena_printf(f->arena, "%s?synchronous=off", f->url),
         WEFT_INVALID_VALUE},
        {"both options", weft_arena_printf(f->arena, "%s?synchronous=normal&busy_ms=5", f->url),
         WEFT_OK},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_int(try_open(f, row[i].url), row[i].want, "%s: %s", row[i].name, f->err.text);
    (void)rmdir(folder);
}

static void test_not_ours(void)
{
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    write_file(&f,
               "This is not a database, but it is long enough to have the header of one, "
               "which is a hundred bytes, and then some.\n");
    ok(try_open(&f, f.url) == WEFT_CORRUPT && strstr(f.err.text, "not a database"),
       "a file of text: %s", f.err.text);
    ok(f.err.hint && strstr(f.err.hint, "name another file"), "the hint says what to do: %s",
       f.err.hint);
    fixture_done(&f);

    fixture_init(&f, &weft_driver_sqlite);
    struct weft_conn *conn = fixture_open(&f);
    ok(fixture_script(&f, conn, "CREATE TABLE theirs (id)") == WEFT_OK,
       "the file has a foreign table");
    weft_conn_close(conn);
    ok(try_open(&f, f.url) == WEFT_SCHEMA && strstr(f.err.text, "is not a weft database"),
       "a foreign database is refused: %s", f.err.text);
    fixture_done(&f);
}

static int mode_of(const struct fixture *f, const char *suffix)
{
    struct stat info;
    const char *path = weft_arena_printf(f->arena, "%s%s", f->file, suffix);
    return stat(path, &info) == 0 ? (int)(info.st_mode & 0777) : -1;
}

/* A new database is its owner's alone, whatever the umask; an existing one keeps its mode. */
static void test_mode(void)
{
    static const int mode[] = {0600, 0640};
    static const char *const suffix[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < WEFT_LEN(mode); i++) {
        struct fixture f;
        fixture_init(&f, &weft_driver_sqlite);
        if (i > 0) {
            write_file(&f, "");
            ok(chmod(f.file, (mode_t)mode[i]) == 0, "the file has mode %o", mode[i]);
        }
        mode_t before = umask(0);
        struct weft_conn *conn = fixture_open_new(&f);
        (void)umask(before);
        for (size_t k = 0; k < WEFT_LEN(suffix); k++)
            ok(mode_of(&f, suffix[k]) == mode[i], "the mode of weft.db%s is %o, wanted %o",
               suffix[k], mode_of(&f, suffix[k]), mode[i]);
        weft_conn_close(conn);
        fixture_done(&f);
    }
}

/* A folder that belongs to a user without privileges, and a store in it. */
struct owned {
    struct fixture f;
    char folder[280];
    bool root; /* the program runs as root: the user is made up, and becoming it takes a call */
};

static void become_user(const struct owned *o)
{
    if (o->root)
        ok(seteuid(65534) == 0, "the process has no privileges");
}

static void become_root(const struct owned *o)
{
    if (o->root)
        ok(seteuid(0) == 0, "the process is root again");
}

static void owned_init(struct owned *o)
{
    *o = (struct owned){.root = geteuid() == 0};
    fixture_init(&o->f, &weft_driver_sqlite);
    (void)snprintf(o->folder, sizeof(o->folder), "%s.owned", o->f.file);
    ok(mkdir(o->folder, 0755) == 0 && (!o->root || chown(o->folder, 65534, 65534) == 0),
       "a folder of the user's own");
    (void)snprintf(o->f.file, sizeof(o->f.file), "%.240s/weft.db", o->folder);
    (void)snprintf(o->f.url, sizeof(o->f.url), "sqlite:%s", o->f.file);
    become_user(o);
    ok(access(o->folder, F_OK) == 0, "the user can reach the folder");
}

static void owned_done(struct owned *o)
{
    become_root(o);
    fixture_done(&o->f);
    ok(rmdir(o->folder) == 0, "no other file is in the folder");
}

static bool is_there(const struct owned *o, const char *suffix)
{
    return access(weft_arena_printf(o->f.arena, "%s%s", o->f.file, suffix), F_OK) == 0;
}

static void expect_forbidden(struct owned *o, const char *url, const char *text, const char *name)
{
    ok(try_open(&o->f, url) == WEFT_FORBIDDEN && strstr(o->f.err.text, text), "%s: %s", name,
       o->f.err.text);
    ok(o->f.err.hint && strstr(o->f.err.hint, "create files beside it"), "%s: with a hint", name);
}

static void test_permission(void)
{
    struct owned o;
    owned_init(&o);
    struct weft_conn *conn = fixture_open_new(&o.f);
    weft_conn_close(conn);
    ok(chmod(o.f.file, 0) == 0, "a file that may not be read");
    expect_forbidden(&o, o.f.url, "", "an unreadable file");
    ok(chmod(o.f.file, 0444) == 0, "a file that may not be written");
    expect_forbidden(&o, o.f.url, "weft.db cannot be written", "a read-only file");
    ok(!is_there(&o, "-wal") && !is_there(&o, "-shm"), "no log is left beside a read-only file");
    ok(chmod(o.f.file, 0644) == 0, "a file that may be written again");
    conn = fixture_open(&o.f);
    ok(o.f.driver->begin(conn, WEFT_TX_WRITE, &o.f.err) == WEFT_OK &&
           add(&o.f, conn, 1) == WEFT_OK && o.f.driver->commit(conn, &o.f.err) == WEFT_OK,
       "takes writes again: %s", o.f.err.text);
    weft_conn_close(conn);

    ok(chmod(o.folder, 0555) == 0, "a folder in which nothing can be created");
    expect_forbidden(&o, o.f.url, "no file can be created in", "an old file there");
    expect_forbidden(&o, weft_arena_printf(o.f.arena, "sqlite:%s/new.db", o.folder),
                     "no file can be created in", "a new file there");
    ok(chmod(o.folder, 0755) == 0, "a folder as any other");
    owned_done(&o);
}

static void test_busy(struct fixture *f, struct weft_conn *conn)
{
    const struct weft_driver *d = f->driver;
    struct weft_conn *other = NULL;
    const char *url = weft_arena_printf(f->arena, "%s?busy_ms=20", f->url);
    ok(d->open(url, &other, &f->err) == WEFT_OK, "an impatient connection");
    ok(d->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK, "one writer");
    ok(d->begin(other, WEFT_TX_WRITE, &f->err) == WEFT_BUSY &&
           f->err.cause == WEFT_CAUSE_CONTENTION,
       "a second writer gets busy: %s", f->err.text);
    ok(d->begin(other, WEFT_TX_READ, &f->err) == WEFT_OK, "readers are not in the way");
    ok(d->commit(other, &f->err) == WEFT_OK, "the reader commits beside the writer");
    ok(d->commit(conn, &f->err) == WEFT_OK, "the first is done");
    ok(d->begin(other, WEFT_TX_WRITE, &f->err) == WEFT_OK,
       "the second writer begins when the first is done");
    d->rollback(other);
    weft_conn_close(other);
}

static void test_full(struct fixture *f, struct weft_conn *conn)
{
    const struct weft_driver *d = f->driver;
    memset(payload, 'x', sizeof(payload) - 1);
    ok(fixture_script(f, conn, "PRAGMA max_page_count = 50") == WEFT_OK, "a small disk");
    ok(d->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK, "begin");
    ok(add(f, conn, 1) == WEFT_STORAGE_FULL, "a full disk: %s", f->err.text);
    ok(d->commit(conn, &f->err) == WEFT_INTERNAL, "a transaction on a full disk does not commit");
    d->rollback(conn);
    ok(!conn->broken, "the connection lives");
    ok(fixture_script(f, conn, "PRAGMA max_page_count = 5000") == WEFT_OK, "a larger disk");
    ok(d->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK && add(f, conn, 1) == WEFT_OK &&
           d->commit(conn, &f->err) == WEFT_OK,
       "a commit succeeds when there is room again: %s", f->err.text);
}

static void expect(struct fixture *f, struct weft_conn *conn, const char *condition)
{
    const char *check = weft_arena_printf(f->arena,
                                          "CREATE TABLE expected (yes CHECK (yes));"
                                          "INSERT INTO expected SELECT %s; DROP TABLE expected",
                                          condition);
    ok(fixture_script(f, conn, check) == WEFT_OK, "%s: %s", condition, f->err.text);
}

/*
 * live_end has parts that run only for rows that returned a value ("when"): each has to run for its
 * row with all its arguments, also if the first row did not need it, and not for the row behind,
 * which returns nothing.
 */
static void test_parts_on_a_condition(void)
{
    struct fixture made, *f = &made;
    fixture_init(f, &weft_driver_sqlite);
    struct weft_conn *conn = fixture_open(f);
    const struct weft_migration_set all = {.migration = weft_migrations,
                                           .count = weft_migration_count};
    ok(weft_migrate(conn, &all, f->arena, &f->err) == WEFT_OK, "a store: %s", f->err.text);
    enum { PLAIN, MEMBER, GATED, FENCED, ROWS, EPOCH = 3, NOW = 77 };
    struct weft_call call;
    struct weft_rows rows;
    ok(fixture_script(
           f, conn,
           "WITH n(n) AS (VALUES (1), (2), (3), (4))"
           " INSERT INTO execution (num, id, created, queue, gate)"
           " SELECT n, zeroblob(15) || char(48 + n), 0, 1, iif(n = 3, '1/g', NULL) FROM n;"
           "UPDATE execution SET id = CAST(zeroblob(15) || CAST(char(48 + num) AS BLOB) AS BLOB);"
           "INSERT INTO flow (num, id, namespace, state, revision, nodes, created, cancel, backlog)"
           " VALUES (9, CAST('0123456789abcdef' AS BLOB), 1, 0, 1, 1, 0, 0, 0);"
           "INSERT INTO live (num, ord, claimed, queue, lane, policy, worker, epoch, attempt,"
           "                  forgiven, size, lost, replays, priority, state, flow, has, gate)"
           " SELECT num, num, 5, 1, 1, 1, 1, 3, 1, 0, 0, 0, 0, 0, 4, iif(num = 2, 9, NULL), 64, "
           "gate"
           "   FROM execution") == WEFT_OK,
       "four running executions: %s", f->err.text);
    struct weft_live_end_in *in = weft_call_live_end(&call, f->arena, ROWS);
    in->now = NOW;
    for (int i = 0; i < ROWS; i++)
        in->row[i] = (struct weft_live_end_item){.id.byte[15] = (uint8_t)('1' + i),
                                                 .epoch = i == FENCED ? EPOCH + 1 : EPOCH,
                                                 .was = WEFT_STATE_RUNNING,
                                                 .state = WEFT_STATE_SUCCEEDED,
                                                 .ended = WEFT_ENDED_COMPLETED};
    ok(f->driver->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK &&
           f->driver->run(conn, &call, 1, f->arena, &rows, &f->err) == WEFT_OK &&
           f->driver->commit(conn, &f->err) == WEFT_OK,
       "they end: %s", f->err.text);
    is_int((int64_t)rows.count, FENCED, "all but the one of another epoch");
    ok(!weft_out_live_end(&rows)[PLAIN].flow.set && weft_out_live_end(&rows)[MEMBER].flow.set,
       "the member tells its flow");
    ok(weft_out_live_end(&rows)[GATED].gate != NULL, "the gated one tells its gate");
    expect(f, conn, "(SELECT group_concat(num) FROM live) = '4'");
    expect(f, conn,
           "(SELECT group_concat(num || ' ' || flow || ' ' || at) FROM completion) = '2 9 77'");
    expect(f, conn, "(SELECT group_concat(name || ' ' || at) FROM gate_start) = '1/g 5'");
    expect(f, conn, "(SELECT count(*) FROM outcome) = 3");
    weft_conn_close(conn);
    fixture_done(f);
}

static void test_no_schema(void)
{
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    struct weft_conn *conn = fixture_open(&f);
    enum weft_settled settled = WEFT_SETTLED_RUNNING;
    ok(f.driver->begin(conn, WEFT_TX_WRITE, &f.err) == WEFT_OK, "begin");
    ok(add(&f, conn, 1) == WEFT_SCHEMA, "no such table: %s", f.err.text);
    f.driver->rollback(conn);
    ok(f.driver->settle(conn, &(struct weft_lost){.xid = 1}, &settled, &f.err) == WEFT_OK &&
           settled == WEFT_SETTLED_UNKNOWN,
       "SQLite knows no transaction by number");
    weft_conn_close(conn);
    fixture_done(&f);
}

int main(void)
{
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    test_paths(&f);
    test_permission();
    struct weft_conn *conn = fixture_open_new(&f);
    test_busy(&f, conn);
    test_full(&f, conn);
    weft_conn_close(conn);
    fixture_done(&f);
    test_parts_on_a_condition();
    test_not_ours();
    test_mode();
    test_no_schema();
    return tap_done();
}
