/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The write-ahead log of a SQLite store: it stays short while much is written, whatever reads or
 * writes beside it, and whatever goes wrong with a checkpoint.
 */

#include "checkpoint_fixture.h"

#include "base/arena.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum {
    LOG_MOST = 68, /* MiB: past 64 commits see to it that it starts over, if no reader is open */
    PATIENCE_S = 55,
};

/* The longest the log is while `count` rows are written, in MiB. */
static int64_t longest_log(struct fixture *f, struct weft_conn *conn, int64_t first, int count)
{
    int64_t most = 0;
    for (int i = 0; i < count; i++) {
        if (fixture_add(f, conn, first + i) != WEFT_OK) {
            ok(false, "row %d: %s", i, f->err.text);
            return INT64_MAX;
        }
        int64_t size = fixture_size(f, "-wal");
        most = size > most ? size : most;
    }
    return most / MIB;
}

/* Commits are faster then, and checkpoints are not. */
static void do_not_wait_for_disk(struct fixture *f)
{
    (void)snprintf(f->url, sizeof(f->url), "sqlite:%s?synchronous=normal", f->file);
}

static void test_steady(void)
{
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    do_not_wait_for_disk(&f);
    struct weft_conn *conn = fixture_open_new(&f);
    int64_t most = longest_log(&f, conn, 1, 320);
    ok(most >= 4 && most <= LOG_MOST, "80 MiB are written through a log of %d MiB", (int)most);
    fixture_check(&f, conn, 320);
    fixture_done(&f);
}

/* As the engine does before a transaction that writes much. */
static void test_behind(void)
{
    enum { HELD_BACK_MOST = 20 }; /* MiB: past 16 a writer waits while the thread has to copy */
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    do_not_wait_for_disk(&f);
    struct weft_conn *conn = fixture_open_new(&f);
    int64_t most = 0;
    int waits = 0;
    for (int i = 0; i < 320; i++) {
        for (; f.driver->behind(conn); sched_yield())
            waits++;
        int64_t size = longest_log(&f, conn, 1 + i, 1);
        most = size > most ? size : most;
    }
    ok(most <= HELD_BACK_MOST,
       "a writer that waits while the store is behind sees a log of %d MiB (%d waits)", (int)most,
       waits);
    fixture_check(&f, conn, 320);
    fixture_done(&f);
}

static void test_reader(void)
{
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    do_not_wait_for_disk(&f);
    struct weft_conn *conn = fixture_open_new(&f), *reader = fixture_open(&f);
    struct weft_call call;
    struct weft_rows rows;
    ok(longest_log(&f, conn, 1, 10) <= LOG_MOST, "some rows");
    weft_call_migration_list(&call, f.arena);
    ok(f.driver->begin(reader, WEFT_TX_READ, &f.err) == WEFT_OK &&
           f.driver->run(reader, &call, 1, f.arena, &rows, &f.err) == WEFT_OK && rows.count == 10,
       "a reader has a snapshot");
    int64_t grown = longest_log(&f, conn, 11, 200);
    ok(grown >= 45, "while it stays, the log grows: %d MiB", (int)grown);
    ok(f.driver->run(reader, &call, 1, f.arena, &rows, &f.err) == WEFT_OK && rows.count == 10,
       "the reader still sees its snapshot");
    f.driver->rollback(reader);
    int64_t after = longest_log(&f, conn, 211, 200);
    ok(after <= LOG_MOST, "when it has gone, the log starts over: %d MiB", (int)after);
    weft_conn_close(reader);
    fixture_check(&f, conn, 410);
    fixture_done(&f);
}

/* Starts a process that adds rows and tells each through a pipe. */
static pid_t start_writer(const struct fixture *f, int64_t first, int count, int *ret_told)
{
    int pipe_fd[2];
    if (pipe(pipe_fd) != 0) {
        printf("Bail out! no pipe\n");
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    pid_t child = fork();
    if (child == 0) {
        struct fixture own = {.driver = f->driver, .arena = weft_arena_new()};
        memcpy(own.url, f->url, sizeof(own.url));
        struct weft_conn *conn = fixture_open(&own);
        int done = 0;
        (void)close(pipe_fd[0]);
        while (done < count && fixture_add(&own, conn, first + done) == WEFT_OK &&
               write(pipe_fd[1], "x", 1) == 1)
            done++;
        weft_conn_close(conn);
        _exit(done == count ? 0 : 1);
    }
    (void)close(pipe_fd[1]);
    *ret_told = pipe_fd[0];
    return child;
}

static void test_processes(void)
{
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    weft_conn_close(fixture_open_new(&f));
    int told[2];
    pid_t child[2];
    for (int i = 0; i < 2; i++)
        child[i] = start_writer(&f, 1 + 1000 * i, 80, &told[i]);
    int64_t most = 0;
    char one;
    while (read(told[0], &one, 1) == 1) { /* the other fits into its pipe */
        int64_t size = fixture_size(&f, "-wal");
        most = size > most ? size : most;
    }
    for (int i = 0; i < 2; i++) {
        int status = -1;
        ok(waitpid(child[i], &status, 0) == child[i] && status == 0, "process %d wrote its rows",
           i);
        (void)close(told[i]);
    }
    ok(most / MIB <= LOG_MOST + 32, "the log of two processes had %d MiB", (int)(most / MIB));
    fixture_check(&f, fixture_open(&f), 160);
    fixture_done(&f);
}

static void test_killed(void)
{
    enum { TOLD_LEAST = 60 };
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    weft_conn_close(fixture_open_new(&f));
    int told, status, count = 0;
    pid_t child = start_writer(&f, 1, 100000, &told);
    char one;
    while (count < TOLD_LEAST && read(told, &one, 1) == 1)
        count++;
    ok(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child, "a writer is killed");
    while (read(told, &one, 1) == 1)
        count++;
    (void)close(told);
    struct weft_conn *conn = fixture_open(&f);
    int64_t rows = fixture_rows(&f, conn, WEFT_STMT_MIGRATION_LIST);
    ok(rows == count || rows == count + 1, "of %d confirmed rows %d are there", count, (int)rows);
    int64_t most = longest_log(&f, conn, rows + 1, 60);
    ok(most <= LOG_MOST, "the next one keeps the log at %d MiB", (int)most);
    fixture_check(&f, conn, rows + 60);
    fixture_done(&f);
}

/* The file may not grow, but the log may: checkpoints fail, commits do not. */
static void test_failing_checkpoint(void)
{
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    do_not_wait_for_disk(&f);
    struct weft_conn *conn = fixture_open_new(&f);
    is_int(fixture_add_many(&f, conn, 1, 100), 100, "some rows");
    weft_conn_close(conn); /* all of them are in the file */
    conn = fixture_open(&f);
    int64_t size = fixture_size(&f, "");
    struct rlimit before, small;
    (void)signal(SIGXFSZ, SIG_IGN);
    ok(getrlimit(RLIMIT_FSIZE, &before) == 0 && size >= 25 * MIB, "a file of %d MiB",
       (int)(size / MIB));
    small = (struct rlimit){.rlim_cur = (rlim_t)size, .rlim_max = before.rlim_max};
    ok(setrlimit(RLIMIT_FSIZE, &small) == 0, "the file may not grow");
    is_int(fixture_add_many(&f, conn, 101, 60), 60, "commits go on: %s", f.err.text);
    is_int(fixture_size(&f, ""), size, "the rows stay in the log");
    ok(setrlimit(RLIMIT_FSIZE, &before) == 0, "the file may grow again");
    int64_t most = longest_log(&f, conn, 161, 200);
    ok(fixture_size(&f, "") > size && most <= LOG_MOST, "the log is copied into the file: %d MiB",
       (int)most);
    fixture_check(&f, conn, 360);
    fixture_done(&f);
}

/* A real file system that gets full, where one can be made. */
static void test_full_disk(void)
{
    char folder[] = "/tmp/weft-unit-full-XXXXXX";
    if (geteuid() != 0 || !mkdtemp(folder)) {
        tap_skip("only root can make a small disk");
        return;
    }
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("weft", folder, "tmpfs", 0, "size=40m") != 0) {
        (void)rmdir(folder);
        tap_skip("no small disk can be made here");
        return;
    }
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    (void)snprintf(f.file, sizeof(f.file), "%s/x.db", folder);
    (void)snprintf(f.url, sizeof(f.url), "sqlite:%s", f.file);
    struct weft_conn *conn = fixture_open_new(&f);
    int rows = fixture_add_many(&f, conn, 1, 1000);
    ok(rows > 40 && rows < 160, "a disk of 40 MiB takes %d rows", rows);
    is_int(f.err.rc, WEFT_STORAGE_FULL, "the disk is full: %s", f.err.text);
    ok(fixture_add(&f, conn, rows + 1) == WEFT_STORAGE_FULL && !conn->broken,
       "a second commit on a full disk fails the same way");
    is_int(fixture_rows(&f, conn, WEFT_STMT_MIGRATION_LIST), rows, "every confirmed row is there");
    ok(mount("weft", folder, "tmpfs", MS_REMOUNT, "size=400m") == 0, "a larger disk");
    ok(longest_log(&f, conn, rows + 1, 400) <= LOG_MOST,
       "the log is short again on the larger disk");
    fixture_check(&f, conn, rows + 400);
    fixture_done(&f);
    ok(umount(folder) == 0 && rmdir(folder) == 0, "no disk");
}

/* ---- Two checkpoints and a log that starts over ---------------------------------------------- */

static const sqlite3_io_methods *methods; /* SQLite's, of the connection that is watched */
static struct meanwhile {
    struct fixture *f;
    struct weft_conn *writer;
    int64_t number; /* of the row that is written; 0: none */
} meanwhile;

/* SQLite calls this between reading how long the log is and copying it, if the log has changed. */
static int unfetch(sqlite3_file *file, sqlite3_int64 offset, void *page)
{
    struct meanwhile now = meanwhile;
    meanwhile.number = 0;
    if (now.number > 0)
        ok(fixture_add(now.f, now.writer, now.number) == WEFT_OK, "a commit meets a checkpoint");
    return methods->xUnfetch(file, offset, page);
}

static void watch(struct weft_conn *conn)
{
    static sqlite3_io_methods watched;
    sqlite3_file *file = NULL;
    (void)sqlite3_file_control(weft_lite_of(conn)->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    methods = file->pMethods;
    watched = *methods;
    watched.xUnfetch = unfetch;
    file->pMethods = &watched;
}

static int checkpoint(struct weft_conn *conn)
{
    int frames, copied;
    return weft_lite_checkpoint(weft_lite_of(conn)->db, SQLITE_CHECKPOINT_PASSIVE, &frames,
                                &copied);
}

/*
 * The order in which SQLite loses a commit (before 3.51.3): the log is copied whole, the second
 * checkpoint reads its length, a commit starts it over. `guarded` is as weft makes checkpoints.
 * Gives back how many of the 3 rows another connection reads, -1 if it finds the file broken.
 */
static int64_t rows_after_reset(bool guarded)
{
    struct fixture f;
    int frames, copied;
    fixture_init(&f, &weft_driver_sqlite);
    struct weft_conn *writer = fixture_open_new(&f), *first = fixture_open(&f),
                     *second = fixture_open(&f);
    is_int(fixture_add_many(&f, writer, 1, 2), 2, "two rows");
    is_int(checkpoint(first), SQLITE_OK, "the log is copied whole");
    watch(second);
    meanwhile = (struct meanwhile){&f, writer, 3};
    if (guarded)
        is_int(checkpoint(second), SQLITE_BUSY, "a log that is copied gets no second checkpoint");
    else
        (void)sqlite3_wal_checkpoint_v2(weft_lite_of(second)->db, "main", SQLITE_CHECKPOINT_PASSIVE,
                                        &frames, &copied);
    bool began = meanwhile.number == 0;
    meanwhile.number = 0;
    if (!began)
        ok(fixture_add(&f, writer, 3) == WEFT_OK, "a commit starts the log over");
    int64_t rows = fixture_rows(&f, first, WEFT_STMT_MIGRATION_LIST);
    if (guarded) {
        is_int(checkpoint(second), SQLITE_OK, "the new log is copied");
        is_int(fixture_rows(&f, first, WEFT_STMT_MIGRATION_LIST), rows, "no row is lost");
    }
    weft_conn_close(second);
    weft_conn_close(first);
    weft_conn_close(writer);
    fixture_done(&f);
    return rows;
}

static void test_reset(void)
{
    printf("# SQLite %s by itself: %d of 3 rows are read (-1: the file is broken)\n",
           sqlite3_libversion(), (int)rows_after_reset(false));
    is_int(rows_after_reset(true), 3, "every row is read when checkpoints take the lock");
}

/* A commit beside a checkpoint that has frames to copy: the log cannot start over. */
static void test_commit_meets_checkpoint(void)
{
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    struct weft_conn *writer = fixture_open_new(&f), *other = fixture_open(&f);
    is_int(fixture_add_many(&f, writer, 1, 2), 2, "two rows");
    watch(other);
    meanwhile = (struct meanwhile){&f, writer, 3};
    is_int(checkpoint(other), SQLITE_OK, "a checkpoint");
    is_int(meanwhile.number, 0, "the commit came in between");
    is_int(fixture_rows(&f, other, WEFT_STMT_MIGRATION_LIST), 3, "every row is read");
    weft_conn_close(other);
    fixture_check(&f, writer, 3);
    fixture_done(&f);
}

/* Another process, or another engine of this one, makes a checkpoint. */
static void test_one_checkpoint_at_a_time(void)
{
    struct fixture f;
    char log[300];
    fixture_init(&f, &weft_driver_sqlite);
    struct weft_conn *conn = fixture_open_new(&f);
    is_int(fixture_add_many(&f, conn, 1, 2), 2, "two rows");
    (void)snprintf(log, sizeof(log), "%s-wal", f.file);
    int fd = open(log, O_RDONLY | O_CLOEXEC);
    ok(fd >= 0 && flock(fd, LOCK_EX) == 0, "another checkpoint has the lock");
    is_int(checkpoint(conn), SQLITE_BUSY, "a second one does not begin");
    (void)close(fd);
    is_int(checkpoint(conn), SQLITE_OK, "after the first has ended it does");
    fixture_check(&f, conn, 2);
    fixture_done(&f);
}

int main(void)
{
    (void)alarm(PATIENCE_S); /* nothing here may hang */
    test_reset();
    test_commit_meets_checkpoint();
    test_one_checkpoint_at_a_time();
    test_steady();
    test_behind();
    test_reader();
    test_processes();
    test_killed();
    test_failing_checkpoint();
    test_full_disk();
    return tap_done();
}
