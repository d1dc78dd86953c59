/* SPDX-License-Identifier: Apache-2.0 */

/* The fault driver over SQLite: the error that the caller gets, and the rows that are left. */

#include "store_fixture.h"

#include "base/err.h"
#include "store/fault/fault.h"
#include "store/store.h"

#include <signal.h>
#include <sys/wait.h>

static void add_call(struct fixture *f, struct weft_call *call, int64_t number)
{
    struct weft_migration_add_in *in = weft_call_migration_add(call, f->arena);
    in->number = number;
    in->name = "name";
    in->sha256 = "0";
    in->applied_us = 0;
}

/* begin is call 1, the two statements are 2 and 3, commit is 4, also when it goes with them. */
static enum weft_rc write_two(struct fixture *f, struct weft_conn *conn, bool together)
{
    struct weft_call call[2];
    add_call(f, &call[0], 1);
    add_call(f, &call[1], 2);
    enum weft_rc rc = f->driver->begin(conn, WEFT_TX_WRITE, &f->err);
    if (!rc)
        rc = together ? f->driver->last(conn, call, 2, f->arena, NULL, &f->err)
                      : f->driver->run(conn, call, 2, f->arena, NULL, &f->err);
    if (!rc)
        rc = f->driver->commit(conn, &f->err);
    if (rc)
        f->driver->rollback(conn);
    return rc;
}

static size_t count_rows(struct fixture *f)
{
    struct weft_conn *conn = NULL;
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_migration_list(&call, f->arena);
    ok(weft_driver_sqlite.open(f->url, &conn, &f->err) == WEFT_OK, "look");
    ok(weft_driver_sqlite.begin(conn, WEFT_TX_READ, &f->err) == WEFT_OK &&
           weft_driver_sqlite.run(conn, &call, 1, f->arena, &rows, &f->err) == WEFT_OK &&
           weft_driver_sqlite.commit(conn, &f->err) == WEFT_OK,
       "count");
    weft_conn_close(conn);
    return rows.count;
}

static void test_kinds(bool together)
{
    static const struct {
        const char *name;
        enum weft_fault_kind kind;
        uint64_t at;
        enum weft_rc rc;
        enum weft_cause cause;
        size_t rows;
        bool broken;
    } row[] = {
        {"never", WEFT_FAULT_FAIL, 0, WEFT_OK, WEFT_CAUSE_NONE, 2, false},
        {"later", WEFT_FAULT_FAIL, 5, WEFT_OK, WEFT_CAUSE_NONE, 2, false},
        {"fail begin", WEFT_FAULT_FAIL, 1, WEFT_BUSY, WEFT_CAUSE_CONTENTION, 0, false},
        {"fail run", WEFT_FAULT_FAIL, 3, WEFT_BUSY, WEFT_CAUSE_CONTENTION, 0, false},
        {"fail commit", WEFT_FAULT_FAIL, 4, WEFT_BUSY, WEFT_CAUSE_CONTENTION, 0, false},
        {"full", WEFT_FAULT_FULL, 2, WEFT_STORAGE_FULL, WEFT_CAUSE_NONE, 0, false},
        {"lose begin", WEFT_FAULT_LOSE, 1, WEFT_UNAVAILABLE, WEFT_CAUSE_LOST, 0, true},
        {"lose run", WEFT_FAULT_LOSE, 3, WEFT_UNAVAILABLE, WEFT_CAUSE_LOST, 0, true},
        {"lose commit", WEFT_FAULT_LOSE, 4, WEFT_UNAVAILABLE, WEFT_CAUSE_LOST_IN_COMMIT, 0, true},
        {"lose the reply", WEFT_FAULT_LOSE_REPLY, 2, WEFT_UNAVAILABLE, WEFT_CAUSE_LOST, 0, true},
        {"lose the reply to commit", WEFT_FAULT_LOSE_REPLY, 4, WEFT_UNAVAILABLE,
         WEFT_CAUSE_LOST_IN_COMMIT, 2, true},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_fault fault = {.inner = &weft_driver_sqlite};
        struct fixture f;
        fixture_init(&f, &weft_driver_sqlite);
        f.driver = weft_fault_install(&fault);
        struct weft_conn *conn = fixture_open_new(&f);
        fault.kind = row[i].kind;
        fault.strike_at = row[i].at;
        enum weft_rc rc = write_two(&f, conn, together);
        is_int(rc, row[i].rc, "%s: answer", row[i].name);
        ok(!rc || f.err.cause == row[i].cause, "%s: cause", row[i].name);
        ok(conn->broken == row[i].broken, "%s: broken", row[i].name);
        ok(fault.struck == (rc != WEFT_OK), "%s: struck", row[i].name);
        is_int(count_rows(&f), row[i].rows, "%s: rows", row[i].name);
        if (rc && !row[i].broken)
            ok(write_two(&f, conn, together) == WEFT_OK, "%s: the next try succeeds", row[i].name);
        weft_conn_close(conn);
        fixture_done(&f);
    }
}

static void test_crash(enum weft_fault_kind kind, bool together, size_t want)
{
    struct weft_fault fault = {.inner = &weft_driver_sqlite};
    struct fixture f;
    int status = 0;
    fixture_init(&f, &weft_driver_sqlite);
    f.driver = weft_fault_install(&fault);
    struct weft_conn *conn = fixture_open_new(&f);
    weft_conn_close(conn);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        fault.kind = kind;
        fault.strike_at = 4;
        conn = fixture_open(&f);
        _exit(write_two(&f, conn, together) == WEFT_OK ? 0 : 1);
    }
    ok(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
       "the process is gone");
    is_int(count_rows(&f), want, "the killed process left %zu rows", want);
    fixture_done(&f);
}

struct log {
    enum weft_fault_point point[8];
    enum weft_stmt stmt[8];
    size_t count;
};

static void note(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    struct log *log = context;
    if (log->count < WEFT_LEN(log->point)) {
        log->point[log->count] = point;
        log->stmt[log->count++] = stmt;
    }
}

static void test_hooks(bool together)
{
    struct log log = {.count = 0};
    struct weft_fault fault = {.inner = &weft_driver_sqlite};
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    f.driver = weft_fault_install(&fault);
    struct weft_conn *conn = fixture_open_new(&f);
    uint64_t calls = fault.calls;
    fault.hook = note;
    fault.context = &log;
    ok(write_two(&f, conn, together) == WEFT_OK, "two rows are written with a hook");
    is_int(fault.calls - calls, 4, "begin, two statements and commit are counted");
    is_int(log.count, 6, "six points are seen");
    ok(log.point[0] == WEFT_FAULT_BEFORE_RUN && log.point[1] == WEFT_FAULT_AFTER_RUN &&
           log.point[2] == WEFT_FAULT_BEFORE_RUN && log.stmt[2] == WEFT_STMT_MIGRATION_ADD,
       "each statement has its own");
    ok(log.point[4] == WEFT_FAULT_BEFORE_COMMIT && log.point[5] == WEFT_FAULT_AFTER_COMMIT &&
           log.stmt[5] == WEFT_STMT_COUNT,
       "commit has a point before and a point after");
    weft_conn_close(conn);
    fixture_done(&f);
}

int main(void)
{
    for (int i = 0; i < 2; i++) {
        bool together = i == 1;
        test_kinds(together);
        test_crash(WEFT_FAULT_CRASH, together, 0);
        test_crash(WEFT_FAULT_CRASH_AFTER, together, 2);
        test_hooks(together);
    }
    return tap_done();
}
