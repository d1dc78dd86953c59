/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fault driver. Its connection wraps a connection of the real driver; before each counted call
 * the plan decides whether the fault strikes here.
 *
 * A lost connection loses its transaction, so the inner transaction is rolled back at once: locks
 * must not outlive the fault. At a commit the client cannot know whether the request arrived, so
 * both ways of losing it give the same error, and only the store knows the difference.
 *
 * Calls of one run are sent together unless a hook or the fault must come between two of them. So
 * is COMMIT with the last calls; it is counted and struck as if it had been sent on its own.
 */

#include "store/fault/fault.h"

#include "base/arena.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct faulty {
    struct weft_conn conn;
    struct weft_conn *inner; /* owned */
    bool failed;             /* a fault failed a call: only rollback is accepted */
    bool counted;            /* COMMIT was counted with the last calls; its fault is: */
    enum weft_fault_kind at_commit;
};

static struct weft_fault *plan; /* borrowed; see weft_fault_install() */
static struct weft_driver fault_driver;

static struct faulty *faulty_of(struct weft_conn *conn)
{
    return (struct faulty *)conn;
}

/* Counts one call. Connections of several threads may count at once. */
static enum weft_fault_kind strike(void)
{
    (void)__atomic_add_fetch(&plan->calls, 1, __ATOMIC_RELAXED);
    uint64_t left = __atomic_load_n(&plan->strike_at, __ATOMIC_RELAXED);
    while (left > 0 && !__atomic_compare_exchange_n(&plan->strike_at, &left, left - 1, false,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    if (left != 1)
        return WEFT_FAULT_NONE;
    __atomic_store_n(&plan->struck, true, __ATOMIC_RELAXED);
    return plan->kind;
}

static void crash(void)
{
    (void)kill(getpid(), SIGKILL);
    abort();
}

static void hook(enum weft_fault_point point, enum weft_stmt stmt)
{
    if (plan->hook)
        plan->hook(plan->context, point, stmt);
}

static void watch(const struct weft_call *call, size_t count, const struct weft_rows *rows)
{
    for (size_t i = 0; i < count && plan->watch; i++)
        plan->watch(plan->context, &call[i], &rows[i]);
}

/* Copies the public fields of the inner connection. */
static enum weft_rc mirror(struct faulty *faulty, enum weft_rc rc)
{
    faulty->conn.xid = faulty->inner->xid;
    faulty->conn.lineage = faulty->inner->lineage;
    faulty->conn.broken |= faulty->inner->broken;
    faulty->conn.buffers_large_since_us = faulty->inner->buffers_large_since_us;
    return rc;
}

static enum weft_rc lost(struct faulty *faulty, enum weft_cause cause, struct weft_err *err)
{
    if (!faulty->conn.broken)
        faulty->inner->driver->rollback(faulty->inner);
    faulty->conn.broken = true;
    return weft_cause(err, weft_fail(err, WEFT_UNAVAILABLE, "fault: the connection was lost"),
                      cause);
}

/* The effect of a fault before the call: WEFT_OK if the call is to be carried out. */
static enum weft_rc before(struct faulty *faulty, enum weft_fault_kind kind, enum weft_cause cause,
                           struct weft_err *err)
{
    if (kind == WEFT_FAULT_CRASH)
        crash();
    if (kind == WEFT_FAULT_LOSE)
        return lost(faulty, cause, err);
    faulty->failed |= kind == WEFT_FAULT_FAIL || kind == WEFT_FAULT_FULL;
    if (kind == WEFT_FAULT_FAIL)
        return weft_cause(err, weft_fail(err, WEFT_BUSY, "fault: contention"),
                          WEFT_CAUSE_CONTENTION);
    return kind == WEFT_FAULT_FULL ? weft_fail(err, WEFT_STORAGE_FULL, "fault: no space left")
                                   : WEFT_OK;
}

/* The effect of a fault after the call. */
static enum weft_rc after(struct faulty *faulty, enum weft_fault_kind kind, enum weft_cause cause,
                          struct weft_err *err)
{
    if (kind == WEFT_FAULT_CRASH_AFTER)
        crash();
    return kind == WEFT_FAULT_LOSE_REPLY ? lost(faulty, cause, err) : WEFT_OK;
}

static enum weft_rc check_alive(struct faulty *faulty, struct weft_err *err)
{
    return faulty->conn.broken ? lost(faulty, WEFT_CAUSE_LOST, err) : WEFT_OK;
}

static enum weft_rc check_open(struct faulty *faulty, struct weft_err *err)
{
    enum weft_rc rc = check_alive(faulty, err);
    if (!rc && faulty->failed)
        rc = weft_fail(err, WEFT_INTERNAL, "the transaction had failed already");
    return rc;
}

static enum weft_rc fault_open(const char *url, struct weft_conn **ret_conn, struct weft_err *err)
{
    struct weft_conn *inner;
    enum weft_rc rc = plan->inner->open(url, &inner, err);
    if (rc)
        return rc;
    struct faulty *faulty = weft_alloc(1, sizeof(*faulty));
    faulty->conn.driver = &fault_driver;
    faulty->conn.lineage = inner->lineage;
    faulty->inner = inner;
    *ret_conn = &faulty->conn;
    return WEFT_OK;
}

static void fault_close(struct weft_conn *conn)
{
    if (!conn)
        return;
    weft_conn_close(faulty_of(conn)->inner);
    free(faulty_of(conn));
}

static enum weft_rc fault_begin(struct weft_conn *conn, enum weft_tx_mode mode,
                                struct weft_err *err)
{
    struct faulty *faulty = faulty_of(conn);
    enum weft_rc rc = check_alive(faulty, err);
    if (rc)
        return rc;
    faulty->failed = faulty->counted = false;
    enum weft_fault_kind kind = strike();
    rc = before(faulty, kind, WEFT_CAUSE_LOST, err);
    if (rc)
        return rc;
    rc = mirror(faulty, faulty->inner->driver->begin(faulty->inner, mode, err));
    return rc ? rc : after(faulty, kind, WEFT_CAUSE_LOST, err);
}

/* How many of the calls are sent together, and the fault at the last of them. */
static size_t take_group(size_t count, enum weft_fault_kind *ret_kind)
{
    size_t size = 0;
    *ret_kind = WEFT_FAULT_NONE;
    while (size < count && *ret_kind == WEFT_FAULT_NONE && (size == 0 || !plan->hook)) {
        *ret_kind = strike();
        size++;
    }
    return size;
}

static bool strikes_before(enum weft_fault_kind kind)
{
    return kind == WEFT_FAULT_FAIL || kind == WEFT_FAULT_FULL || kind == WEFT_FAULT_LOSE ||
           kind == WEFT_FAULT_CRASH;
}

/* The contract of the driver table has six parameters. NOLINTNEXTLINE(readability-function-size) */
static enum weft_rc fault_run(struct weft_conn *conn, const struct weft_call *call, size_t count,
                              struct weft_arena *arena, struct weft_rows *ret_rows,
                              struct weft_err *err)
{
    struct faulty *faulty = faulty_of(conn);
    struct weft_conn *inner = faulty->inner;
    struct weft_rows *rows = weft_new_array(arena, struct weft_rows, count);
    enum weft_rc rc = check_open(faulty, err);
    for (size_t at = 0, size; !rc && at < count; at += size) {
        enum weft_fault_kind kind;
        hook(WEFT_FAULT_BEFORE_RUN, call[at].stmt);
        size = take_group(count - at, &kind);
        /* A fault before a call strikes after the earlier calls have run. */
        size_t runs = strikes_before(kind) ? size - 1 : size;
        if (runs > 0)
            rc = mirror(faulty, inner->driver->run(inner, &call[at], runs, arena, &rows[at], err));
        if (!rc)
            rc = before(faulty, kind, WEFT_CAUSE_LOST, err);
        if (!rc)
            rc = after(faulty, kind, WEFT_CAUSE_LOST, err);
        if (!rc)
            hook(WEFT_FAULT_AFTER_RUN, call[at].stmt);
    }
    if (!rc)
        watch(call, count, rows);
    if (!rc && ret_rows && count > 0)
        memcpy(ret_rows, rows, count * sizeof(*rows));
    return rc;
}

/*
 * A fault before a call, or before COMMIT, strikes after the earlier calls have run; a hook comes
 * between all of them. Only without these are the calls and COMMIT sent together.
 * The contract of the driver table has six parameters. NOLINTNEXTLINE(readability-function-size)
 */
static enum weft_rc fault_last(struct weft_conn *conn, const struct weft_call *call, size_t count,
                               struct weft_arena *arena, struct weft_rows *ret_rows,
                               struct weft_err *err)
{
    struct faulty *faulty = faulty_of(conn);
    struct weft_conn *inner = faulty->inner;
    uint64_t left = __atomic_load_n(&plan->strike_at, __ATOMIC_RELAXED);
    if (plan->hook || plan->watch || (left > 0 && left <= count))
        return fault_run(conn, call, count, arena, ret_rows, err);
    enum weft_rc rc = check_open(faulty, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++)
        (void)strike();
    faulty->counted = true;
    faulty->at_commit = strike();
    return mirror(faulty, strikes_before(faulty->at_commit)
                              ? inner->driver->run(inner, call, count, arena, ret_rows, err)
                              : inner->driver->last(inner, call, count, arena, ret_rows, err));
}

static void fault_rollback(struct weft_conn *conn)
{
    struct faulty *faulty = faulty_of(conn);
    faulty->failed = false;
    if (!conn->broken) {
        faulty->inner->driver->rollback(faulty->inner);
        (void)mirror(faulty, WEFT_OK);
    }
}

static enum weft_rc fault_commit(struct weft_conn *conn, struct weft_err *err)
{
    struct faulty *faulty = faulty_of(conn);
    /* A COMMIT sent with the last calls has happened, even if the connection is lost by now. */
    enum weft_rc rc = faulty->counted ? WEFT_OK : check_open(faulty, err);
    if (rc)
        return rc;
    hook(WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_COUNT);
    enum weft_fault_kind kind = faulty->counted ? faulty->at_commit : strike();
    rc = before(faulty, kind, WEFT_CAUSE_LOST_IN_COMMIT, err);
    if (rc)
        return rc;
    rc = mirror(faulty, faulty->inner->driver->commit(faulty->inner, err));
    if (!rc)
        rc = after(faulty, kind, WEFT_CAUSE_LOST_IN_COMMIT, err);
    hook(WEFT_FAULT_AFTER_COMMIT, WEFT_STMT_COUNT);
    return rc;
}

static enum weft_rc fault_script(struct weft_conn *conn, const char *sql, struct weft_err *err)
{
    struct faulty *faulty = faulty_of(conn);
    enum weft_rc rc = check_open(faulty, err);
    return rc ? rc : mirror(faulty, faulty->inner->driver->script(faulty->inner, sql, err));
}

static enum weft_rc fault_alone(struct weft_conn *conn, const char *sql, struct weft_err *err)
{
    struct faulty *faulty = faulty_of(conn);
    enum weft_rc rc = check_alive(faulty, err);
    return rc ? rc : mirror(faulty, faulty->inner->driver->alone(faulty->inner, sql, err));
}

static enum weft_rc fault_prepare(struct weft_conn *conn, struct weft_err *err)
{
    struct faulty *faulty = faulty_of(conn);
    enum weft_rc rc = check_alive(faulty, err);
    return rc ? rc : mirror(faulty, faulty->inner->driver->prepare(faulty->inner, err));
}

static enum weft_rc fault_time(struct weft_conn *conn, weft_usec *ret_us, struct weft_err *err)
{
    struct faulty *faulty = faulty_of(conn);
    weft_usec now_us = 0;
    enum weft_rc rc = check_alive(faulty, err);
    if (rc)
        return rc;
    enum weft_fault_kind kind = strike();
    rc = before(faulty, kind, WEFT_CAUSE_LOST, err);
    if (!rc)
        rc = mirror(faulty, faulty->inner->driver->time(faulty->inner, &now_us, err));
    if (!rc)
        rc = after(faulty, kind, WEFT_CAUSE_LOST, err);
    if (!rc)
        *ret_us = now_us;
    return rc;
}

static enum weft_rc fault_settle(struct weft_conn *conn, const struct weft_lost *lost,
                                 enum weft_settled *ret_settled, struct weft_err *err)
{
    struct faulty *faulty = faulty_of(conn);
    enum weft_rc rc = check_alive(faulty, err);
    if (!rc)
        rc = faulty->inner->driver->settle(faulty->inner, lost, ret_settled, err);
    return mirror(faulty, rc);
}

static enum weft_rc fault_forget(struct weft_conn *conn, struct weft_err *err)
{
    struct faulty *faulty = faulty_of(conn);
    enum weft_rc rc = check_alive(faulty, err);
    return rc ? rc : mirror(faulty, faulty->inner->driver->forget(faulty->inner, err));
}

static struct weft_driver fault_driver = {
    .open = fault_open,
    .close = fault_close,
    .begin = fault_begin,
    .run = fault_run,
    .last = fault_last,
    .commit = fault_commit,
    .rollback = fault_rollback,
    .script = fault_script,
    .alone = fault_alone,
    .forget = fault_forget,
    .prepare = fault_prepare,
    .time = fault_time,
    .settle = fault_settle,
};

const struct weft_driver *weft_fault_install(struct weft_fault *fault)
{
    /* It has the name of the driver it wraps: the name selects the text of migrations. */
    fault_driver.name = fault->inner->name;
    fault_driver.writers_max = fault->inner->writers_max;
    fault_driver.absent = fault->inner->absent;
    plan = fault;
    return &fault_driver;
}
