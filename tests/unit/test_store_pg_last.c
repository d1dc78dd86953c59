/* SPDX-License-Identifier: Apache-2.0 */

/*
 * COMMIT that travels with the last calls of a transaction: what the caller may believe when the
 * connection is lost at each place on the way.
 */

#include "direct.h"
#include "relay_fixture.h"
#include "store_fixture.h"

#include "base/arena.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/joint.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "engine/ready/ready.h"
#include "store/migrate.h"
#include "store/pg/pg.h"
#include "store/store.h"
#include "weft/weft.h"

struct world {
    struct fixture f;
    struct weft_conn *aside; /* goes to the server directly */
    struct relay relay;
    char url[700]; /* through the relay */
    int64_t next;  /* the next row to write */
};

static void world_init(struct world *w)
{
    fixture_init(&w->f, &weft_driver_pg);
    w->aside = fixture_open(&w->f);
    const PGconn *pq = weft_pg_of(w->aside)->pq;
    relay_init(&w->relay, PQhost(pq), PQport(pq));
    (void)snprintf(w->url, sizeof(w->url), "%s&host=%s&port=%d&application_name=last_%d", w->f.url,
                   w->relay.folder, RELAY_PORT, (int)getpid());
}

static void world_done(struct world *w)
{
    relay_done(&w->relay);
    weft_conn_close(w->aside);
    fixture_done(&w->f);
}

static struct weft_conn *open_relayed(struct world *w, const char *extra)
{
    struct weft_conn *conn = NULL;
    const char *url = weft_arena_printf(w->f.arena, "%s%s", w->url, extra);
    ok(w->f.driver->open(url, &conn, &w->f.err) == WEFT_OK, "a connection through the relay: %s",
       w->f.err.text);
    return conn;
}

/* A transaction that writes a row and lists all, in one exchange with its COMMIT. */
struct attempt {
    struct world *world;
    struct weft_conn *conn;
    enum weft_tx_mode mode;
    int64_t number;
    enum weft_rc last, commit; /* what they answered */
    struct weft_err err;       /* of the one that failed */
    size_t rows;
};

static void *attempt_run(void *context)
{
    struct attempt *attempt = context;
    const struct weft_driver *d = attempt->world->f.driver;
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    struct weft_migration_add_in *add = weft_call_migration_add(&call[0], arena);
    add->number = attempt->number;
    add->name = "name";
    add->sha256 = "0";
    add->applied_us = 0;
    weft_call_migration_list(&call[1], arena);
    attempt->commit = WEFT_OK;
    attempt->last = d->begin(attempt->conn, attempt->mode, &attempt->err);
    if (!attempt->last)
        attempt->last = d->last(attempt->conn, call, 2, arena, rows, &attempt->err);
    if (!attempt->last)
        attempt->commit = d->commit(attempt->conn, &attempt->err);
    if (attempt->last || attempt->commit)
        d->rollback(attempt->conn);
    attempt->rows = rows[1].count;
    weft_arena_free(arena);
    return NULL;
}

static struct attempt attempt_new(struct world *w, struct weft_conn *conn)
{
    return (struct attempt){.world = w, .conn = conn, .mode = WEFT_TX_WRITE, .number = w->next++};
}

static bool is_there(struct world *w, int64_t number)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    bool found = false;
    weft_call_migration_list(&call, w->f.arena);
    ok(w->f.driver->begin(w->aside, WEFT_TX_READ, &w->f.err) == WEFT_OK &&
           w->f.driver->last(w->aside, &call, 1, w->f.arena, &rows, &w->f.err) == WEFT_OK &&
           w->f.driver->commit(w->aside, &w->f.err) == WEFT_OK,
       "look: %s", w->f.err.text);
    for (size_t i = 0; i < rows.count; i++)
        found |= weft_out_migration_list(&rows)[i].number == number;
    return found;
}

static enum weft_settled settle(struct world *w, uint64_t xid)
{
    enum weft_settled settled = WEFT_SETTLED_UNKNOWN;
    const struct weft_lost lost = {.xid = xid, .lineage = w->aside->lineage};
    ok(w->f.driver->settle(w->aside, &lost, &settled, &w->f.err) == WEFT_OK, "settle");
    return settled;
}

/* Ends a session when it is as `where` says, and waits until it is gone. */
static void end_session(struct world *w, int pid, const char *where)
{
    const char *sql =
        weft_arena_printf(w->f.arena,
                          "DO $$ DECLARE victim int; BEGIN LOOP PERFORM pg_stat_clear_snapshot();"
                          " SELECT pid INTO victim FROM pg_stat_activity WHERE pid = %d AND %s;"
                          " EXIT WHEN victim IS NOT NULL; PERFORM pg_sleep(0.001); END LOOP;"
                          " PERFORM pg_terminate_backend(victim, 20000); END $$",
                          pid, where);
    ok(fixture_script(&w->f, w->aside, sql) == WEFT_OK, "end it: %s", w->f.err.text);
}

static void test_one_exchange(struct world *w, const char *extra, enum weft_tx_mode mode)
{
    struct weft_conn *conn = open_relayed(w, extra);
    FILE *trace = tmpfile();
    PQtrace(weft_pg_of(conn)->pq, trace);
    struct attempt attempt = attempt_new(w, conn);
    attempt.mode = mode;
    (void)attempt_run(&attempt);
    PQuntrace(weft_pg_of(conn)->pq);
    ok(!attempt.last && !attempt.commit && attempt.rows > 0, "rows and commit: %s",
       attempt.err.text);
    is_int(fixture_count_lines(trace, "\tSync"), 1, "in one exchange");
    is_int(fixture_count_lines(trace, "\tFlush"), 1, "the rows are flushed before COMMIT");
    (void)fclose(trace);
    ok(is_there(w, attempt.number) && settle(w, conn->xid) == WEFT_SETTLED_COMMITTED,
       "the transaction is committed");
    ok(!conn->broken, "the connection lives");
    weft_conn_close(conn);
}

/* Prepared statements are used where they survive: without a pooler, or with one that renames. */
static void test_names(struct world *w)
{
    static const struct {
        enum relay_mode mode;
        const char *extra, *name;
        bool named;
    } row[] = {
        {RELAY_PASS, "", "no pooler", true},
        {RELAY_POOLER, "", "a pooler that keeps no track of them", false},
        {RELAY_POOLER, "&weft_prepare=auto", "the same, by weft_prepare=auto", false},
        {RELAY_POOLER, "&weft_prepare=on", "the same with weft_prepare=on", true},
        {RELAY_RENAMES, "", "a pooler that renames them", true},
        {RELAY_PASS, "&weft_prepare=off", "no pooler, with weft_prepare=off", false},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        relay_set(&w->relay, row[i].mode);
        struct weft_conn *conn = open_relayed(w, row[i].extra);
        is_int(weft_pg_of(conn)->named, row[i].named, "%s: prepared statements", row[i].name);
        ok(fixture_script(&w->f, conn,
                          "DO $$ BEGIN IF EXISTS (SELECT FROM pg_prepared_statements WHERE name "
                          "LIKE '%probe%') THEN RAISE EXCEPTION 'left'; END IF; END $$") == WEFT_OK,
           "%s: no probe is left in the session: %s", row[i].name, w->f.err.text);
        struct attempt attempt = attempt_new(w, conn);
        (void)attempt_run(&attempt);
        ok(!attempt.last && !attempt.commit && is_there(w, attempt.number),
           "%s: the connection can be used: %s", row[i].name, attempt.err.text);
        weft_conn_close(conn);
    }
    relay_set(&w->relay, RELAY_PASS);
}

static void test_old_server(struct world *w)
{
    struct weft_conn *conn = NULL;
    relay_set(&w->relay, RELAY_OLD);
    is_int(w->f.driver->open(w->url, &conn, &w->f.err), WEFT_SCHEMA, "PostgreSQL 12 is refused");
    is_str(w->f.err.text, "the server is PostgreSQL 12", "the message names its version");
    is_str(w->f.err.hint, "PostgreSQL 13 or newer is needed",
           "the hint names the oldest that fits");
    relay_set(&w->relay, RELAY_PASS);
}

static void test_nothing_to_run(struct world *w)
{
    const struct weft_driver *d = w->f.driver;
    struct weft_conn *conn = open_relayed(w, "");
    struct weft_call call;
    struct weft_rows rows;
    weft_call_lease_facts(&call, w->f.arena, 0);
    ok(d->begin(conn, WEFT_TX_WRITE, &w->f.err) == WEFT_OK &&
           d->last(conn, &call, 1, w->f.arena, &rows, &w->f.err) == WEFT_OK && rows.count == 0 &&
           d->commit(conn, &w->f.err) == WEFT_OK,
       "nothing to run, nothing to commit");
    struct attempt attempt = attempt_new(w, conn);
    (void)attempt_run(&attempt);
    ok(!attempt.last && !attempt.commit, "the next transaction succeeds");
    weft_conn_close(conn);
}

/*
 * The locks of a hot transaction do not wait for the disk: its COMMIT is asynchronous, but what
 * commit() answers is on the disk, and later transactions of the session wait again.
 */
static void test_hot(struct world *w)
{
    struct weft_conn *conn = fixture_open(&w->f);
    const struct weft_driver *d = w->f.driver;
    ok(fixture_script(&w->f, w->aside,
                      "CREATE TABLE weft.place AS SELECT pg_current_wal_insert_lsn() AS at") ==
           WEFT_OK,
       "a place in the log: %s", w->f.err.text);
    ok(d->alone(conn, "SET synchronous_commit = on", &w->f.err) == WEFT_OK,
       "a session that waits for the disk: %s", w->f.err.text);
    ok(d->begin(conn, WEFT_TX_HOT, &w->f.err) == WEFT_OK &&
           d->script(conn,
                     "DO $$ BEGIN IF current_setting('synchronous_commit') <> 'off' OR"
                     " current_setting('lock_timeout') <> '200ms' THEN RAISE 'settings'; END IF;"
                     " UPDATE weft.place SET at = pg_current_wal_insert_lsn(); END $$",
                     &w->f.err) == WEFT_OK &&
           d->commit(conn, &w->f.err) == WEFT_OK,
       "a hot transaction waits for locks shortly and not for the disk: %s", w->f.err.text);
    ok(fixture_script(&w->f, w->aside,
                      "DO $$ BEGIN IF (SELECT at FROM weft.place) > pg_current_wal_flush_lsn()"
                      " THEN RAISE 'not on the disk'; END IF; END $$") == WEFT_OK,
       "what it wrote is on the disk when commit() answers: %s", w->f.err.text);
    ok(d->begin(conn, WEFT_TX_WRITE, &w->f.err) == WEFT_OK &&
           d->script(conn,
                     "DO $$ BEGIN IF current_setting('synchronous_commit') = 'off' THEN"
                     " RAISE 'settings'; END IF; END $$",
                     &w->f.err) == WEFT_OK &&
           d->commit(conn, &w->f.err) == WEFT_OK,
       "the next transaction waits for the disk: %s", w->f.err.text);
    weft_conn_close(conn);
}

static void test_cuts(struct world *w)
{
    static const struct {
        const char *name;
        enum relay_mode mode;
        bool answered, number;
        enum weft_tx_mode tx;
    } row[] = {
        {"the answer to COMMIT is lost", RELAY_CUT_COMMIT, true, true, WEFT_TX_WRITE},
        {"rows are lost", RELAY_CUT_PINS, false, true, WEFT_TX_WRITE},
        {"everything is lost", RELAY_CUT_ALL, false, false, WEFT_TX_WRITE},
        {"hot: the answer to COMMIT is lost", RELAY_CUT_COMMIT, true, true, WEFT_TX_HOT},
        {"hot: what follows COMMIT is lost", RELAY_CUT_FLUSH, true, true, WEFT_TX_HOT},
        {"hot: rows are lost", RELAY_CUT_PINS, false, true, WEFT_TX_HOT},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_conn *conn = open_relayed(w, "");
        struct attempt attempt = attempt_new(w, conn);
        attempt.mode = row[i].tx;
        relay_set(&w->relay, row[i].mode);
        (void)attempt_run(&attempt);
        enum weft_rc failed = row[i].answered ? attempt.commit : attempt.last;
        is_int(failed, WEFT_UNAVAILABLE, "%s: %s", row[i].name, attempt.err.text);
        ok((attempt.last == WEFT_OK) == row[i].answered, "%s: with rows or without", row[i].name);
        ok((attempt.rows > 0) == row[i].answered, "%s: the rows arrive with the answer",
           row[i].name);
        ok(attempt.err.cause == WEFT_CAUSE_LOST_IN_COMMIT, "%s: lost in commit", row[i].name);
        ok((conn->xid > 0) == row[i].number, "%s: the number", row[i].name);
        ok(conn->broken && is_there(w, attempt.number), "%s: the transaction was carried out",
           row[i].name);
        if (row[i].number)
            ok(settle(w, conn->xid) == WEFT_SETTLED_COMMITTED,
               "%s: the server says that the transaction committed", row[i].name);
        weft_conn_close(conn);
    }
}

static void test_failed_statement(struct world *w)
{
    struct weft_conn *conn = open_relayed(w, "");
    struct attempt attempt = attempt_new(w, conn);
    (void)attempt_run(&attempt);
    (void)attempt_run(&attempt);
    ok(attempt.last == WEFT_CONFLICT && attempt.err.cause == WEFT_CAUSE_DUPLICATE && !conn->broken,
       "a statement that fails: %s", attempt.err.text);
    ok(settle(w, conn->xid) == WEFT_SETTLED_ABORTED,
       "a failed statement is not followed by COMMIT");
    attempt = attempt_new(w, conn);
    (void)attempt_run(&attempt);
    ok(!attempt.last && !attempt.commit && is_there(w, attempt.number), "the next one succeeds");
    weft_conn_close(conn);
}

/* What a session that was ended while it was idle leaves is no question. */
static void test_dead_before(struct world *w)
{
    struct weft_conn *conn = fixture_open(&w->f);
    end_session(w, PQbackendPID(weft_pg_of(conn)->pq), "state = 'idle'");
    struct attempt attempt = attempt_new(w, conn);
    (void)attempt_run(&attempt);
    ok(attempt.last == WEFT_UNAVAILABLE && attempt.err.cause == WEFT_CAUSE_LOST && conn->broken,
       "dead before anything is sent: %s", attempt.err.text);
    weft_conn_close(conn);
}

static bool wait_held(struct relay *relay)
{
    for (int i = 0; i < 20000 && !__atomic_load_n(&relay->held, __ATOMIC_SEQ_CST); i++)
        (void)poll(NULL, 0, 1);
    return __atomic_load_n(&relay->held, __ATOMIC_SEQ_CST);
}

/* The server ends the session while the request is on its way: it says so, and is believed. */
static void test_dismissed(struct world *w)
{
    struct weft_conn *conn = open_relayed(w, "");
    int pid = PQbackendPID(weft_pg_of(conn)->pq);
    struct attempt attempt = attempt_new(w, conn);
    pthread_t thread;
    relay_set(&w->relay, RELAY_HOLD);
    ok(pthread_create(&thread, NULL, attempt_run, &attempt) == 0, "send");
    ok(wait_held(&w->relay), "the statement is on its way");
    end_session(w, pid, "state = 'idle'");
    (void)pthread_join(thread, NULL);
    relay_set(&w->relay, RELAY_PASS);
    ok(attempt.last == WEFT_UNAVAILABLE && attempt.err.cause == WEFT_CAUSE_LOST && conn->xid == 0,
       "the server says that it ends the session: %s", attempt.err.text);
    ok(!is_there(w, attempt.number), "nothing was done");
    weft_conn_close(conn);
}

/* A deferred trigger makes COMMIT itself wait for a lock. */
static void test_ended_in_commit(struct world *w)
{
    const struct weft_driver *d = w->f.driver;
    struct weft_conn *holder = fixture_open(&w->f);
    ok(fixture_script(&w->f, w->aside,
                      "CREATE TABLE weft.gate (id int);"
                      "CREATE FUNCTION weft.wait() RETURNS trigger LANGUAGE plpgsql AS $$"
                      " BEGIN LOCK TABLE weft.gate; RETURN NULL; END $$;"
                      "CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON weft.migration"
                      " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION weft.wait()") ==
           WEFT_OK,
       "a gate before commit: %s", w->f.err.text);
    ok(d->begin(holder, WEFT_TX_WRITE, &w->f.err) == WEFT_OK &&
           d->script(holder, "LOCK TABLE weft.gate", &w->f.err) == WEFT_OK,
       "shut the gate");

    struct weft_conn *conn = open_relayed(w, "");
    struct attempt attempt = attempt_new(w, conn);
    attempt.mode = WEFT_TX_KEYED;
    (void)attempt_run(&attempt);
    ok(!attempt.last && attempt.commit == WEFT_BUSY && !conn->broken && attempt.rows > 0,
       "COMMIT is refused: %s", attempt.err.text);
    ok(settle(w, conn->xid) == WEFT_SETTLED_ABORTED, "the refused commit wrote nothing");

    attempt = attempt_new(w, conn);
    pthread_t thread;
    ok(pthread_create(&thread, NULL, attempt_run, &attempt) == 0, "COMMIT in a thread");
    end_session(w, PQbackendPID(weft_pg_of(conn)->pq), "wait_event_type = 'Lock'");
    (void)pthread_join(thread, NULL);
    ok(!attempt.last && attempt.rows > 0, "the rows were there before COMMIT");
    ok(attempt.commit == WEFT_UNAVAILABLE && attempt.err.cause == WEFT_CAUSE_LOST_IN_COMMIT &&
           conn->xid > 0,
       "lost in COMMIT: %s", attempt.err.text);
    ok(settle(w, conn->xid) == WEFT_SETTLED_ABORTED && !is_there(w, attempt.number),
       "the server knows that it was aborted");
    weft_conn_close(conn);
    d->rollback(holder);
    weft_conn_close(holder);
}

/* ---- The engine ------------------------------------------------------------------------------ */

static bool is_unknown(enum weft_rc rc, const struct weft_err *err)
{
    return rc == WEFT_UNAVAILABLE && err->hint && strcmp(err->hint, "outcome_unknown") == 0;
}

static void check_count(struct world *w, int want, const char *what)
{
    const char *sql = weft_arena_printf(w->f.arena,
                                        "DO $$ BEGIN IF (SELECT count(*) FROM weft.execution) <> %d"
                                        " THEN RAISE 'there are others'; END IF; END $$",
                                        want);
    ok(fixture_script(&w->f, w->aside, sql) == WEFT_OK, "%s: %d are there: %s", what, want,
       w->f.err.text);
}

static enum weft_rc submit(struct world *w, struct weft_engine *engine,
                           struct weft_submitted *ret_answer)
{
    const struct weft_spec spec = {.kind = "cut", .payload = "{}", .payload_size = 2};
    enum weft_rc rc = engine_submit(engine, "default", &spec, 1, ret_answer, &w->f.err);
    return rc ? rc : ret_answer->err.rc;
}

static enum weft_rc claim(struct world *w, struct weft_engine *engine,
                          struct weft_claim_result *ret_result)
{
    const struct weft_claim claim = {.worker = "w", .max = 1};
    return weft_engine_claim(engine, "default", &claim, 1, w->f.arena, ret_result, &w->f.err);
}

/* On a slow machine a claim would read the list of queues first, and that would be cut instead. */
static void make_young(struct world *w, struct weft_engine *engine)
{
    ok(weft_ready_refresh(engine, &w->f.err) == WEFT_OK, "the list of queues is young");
}

/* Each of the three, when it is committed and the answer to COMMIT is lost: the caller sees
 * success. */
static void test_engine_settles(struct world *w, struct weft_engine *engine)
{
    struct weft_submitted submitted;
    struct weft_claim_result claimed = {0};
    struct weft_lease_answer answer;
    relay_set(&w->relay, RELAY_CUT_COMMIT);
    is_int(submit(w, engine, &submitted), WEFT_OK, "submit: %s", w->f.err.text);
    check_count(w, 2, "submit");
    make_young(w, engine);
    relay_set(&w->relay, RELAY_CUT_COMMIT);
    w->f.err = (struct weft_err){0};
    is_int(claim(w, engine, &claimed), WEFT_OK, "claim: %s", w->f.err.text);
    ok(w->f.err.cause == WEFT_CAUSE_LOST_IN_COMMIT, "claim: it was the commit that was cut");
    ok(claimed.count == 1 && claimed.item[0].epoch == 1, "claim: once");
    const struct weft_complete done = {.id = claimed.item[0].id, .epoch = claimed.item[0].epoch};
    relay_set(&w->relay, RELAY_CUT_COMMIT);
    is_int(engine_complete(engine, &done, 1, &answer, &w->f.err), WEFT_OK, "complete: %s",
           w->f.err.text);
    ok(!answer.err.rc && answer.state == WEFT_STATE_SUCCEEDED, "complete: it was the holder");
    is_int(w->relay.mode, RELAY_PASS, "each was cut");
}

/* A claim cannot be repeated: when its answer is lost, the outcome is unknown. */
static void test_engine_cannot_know(struct world *w, struct weft_engine *engine)
{
    static const enum relay_mode mode[] = {RELAY_CUT_ALL, RELAY_CUT_PINS};
    for (size_t i = 0; i < WEFT_LEN(mode); i++) {
        struct weft_claim_result claimed = {0};
        make_young(w, engine);
        relay_set(&w->relay, mode[i]);
        enum weft_rc rc = claim(w, engine, &claimed);
        ok(is_unknown(rc, &w->f.err), "claim: the outcome is unknown: %s", w->f.err.text);
        is_int(w->relay.mode, RELAY_PASS, "claim: it was cut");
    }
}

/* A call that may be repeated is repeated: the first outcome does not matter. */
static void test_engine_repeats(struct world *w, struct weft_engine *engine)
{
    struct weft_submitted submitted;
    struct weft_claim_result claimed = {0};
    struct weft_lease_answer answer;
    relay_set(&w->relay, RELAY_CUT_ALL);
    is_int(submit(w, engine, &submitted), WEFT_OK, "submit: %s", w->f.err.text);
    check_count(w, 3, "submit: once");
    relay_set(&w->relay, RELAY_CUT_PINS);
    is_int(submit(w, engine, &submitted), WEFT_OK, "submit: %s", w->f.err.text);
    check_count(w, 4, "submit: once");
    is_int(submit(w, engine, &submitted), WEFT_OK, "submit: %s", w->f.err.text);
    ok(claim(w, engine, &claimed) == WEFT_OK && claimed.count == 1, "claim: %s", w->f.err.text);
    const struct weft_renew renew = {.id = claimed.item[0].id, .epoch = claimed.item[0].epoch};
    relay_set(&w->relay, RELAY_CUT_ALL);
    is_int(engine_renew(engine, &renew, 1, &answer, &w->f.err), WEFT_OK, "renew: %s",
           w->f.err.text);
    ok(!answer.err.rc && answer.state == WEFT_STATE_RUNNING, "renew: the lease is held");
    const struct weft_complete done = {.id = claimed.item[0].id, .epoch = claimed.item[0].epoch};
    relay_set(&w->relay, RELAY_CUT_ALL);
    is_int(engine_complete(engine, &done, 1, &answer, &w->f.err), WEFT_OK, "complete: %s",
           w->f.err.text);
    ok(!answer.err.rc && answer.state == WEFT_STATE_SUCCEEDED, "complete: by the holder");
    is_int(w->relay.mode, RELAY_PASS, "each was cut");
}

/* All three in one transaction: each keeps its own rule for a commit without an answer. */
static void test_engine_joint(struct world *w, struct weft_engine *engine)
{
    static const enum relay_mode mode[] = {RELAY_CUT_COMMIT, RELAY_CUT_PINS, RELAY_CUT_ALL};
    for (size_t i = 0; i < WEFT_LEN(mode); i++) {
        struct weft_submitted submitted;
        struct weft_submit_result more;
        struct weft_claim_result held = {0};
        struct weft_lease_result answer;
        is_int(submit(w, engine, &submitted), WEFT_OK, "submit: %s", w->f.err.text);
        is_int(submit(w, engine, &submitted), WEFT_OK, "submit: %s", w->f.err.text);
        ok(claim(w, engine, &held) == WEFT_OK && held.count == 1, "claim: %s", w->f.err.text);
        const struct weft_complete done = {.id = held.item[0].id, .epoch = held.item[0].epoch};
        const struct weft_claim one = {.worker = "w", .max = 1};
        const struct weft_spec spec = {.kind = "cut", .payload = "{}", .payload_size = 2};
        struct weft_claim_result claimed = {0};
        struct weft_joint_call call[] = {
            {.op = WEFT_OP_COMPLETE,
             .item = &done,
             .count = 1,
             .answer = &answer,
             .arena = w->f.arena},
            {.op = WEFT_OP_CLAIM,
             .ns = "default",
             .item = &one,
             .count = 1,
             .answer = &claimed,
             .arena = weft_arena_new()},
            {.op = WEFT_OP_SUBMIT,
             .ns = "default",
             .item = &spec,
             .count = 1,
             .answer = &more,
             .arena = w->f.arena},
        };
        const struct weft_joint_call *complete = &call[0], *claims = &call[1], *submits = &call[2];
        relay_set(&w->relay, mode[i]);
        weft_engine_together(engine, call, WEFT_LEN(call), NULL, NULL);
        is_int(w->relay.mode, RELAY_PASS, "joint: it was cut");
        ok(!complete->rc && !answer.rc && answer.state == WEFT_STATE_SUCCEEDED,
           "joint: completed by the holder: %s", complete->err.text);
        ok(!submits->rc && !more.rc, "joint: submitted: %s", submits->err.text);
        check_count(w, 6 + 3 * ((int)i + 1), "joint: once");
        if (mode[i] == RELAY_CUT_COMMIT)
            ok(!claims->rc && claimed.count == 1, "joint: claimed: %s", claims->err.text);
        else
            ok(is_unknown(claims->rc, &claims->err),
               "joint: the outcome of the claim is unknown: %s", claims->err.text);
        weft_arena_free(claims->arena);
    }
}

/* A pool whose sessions all ended while they were idle. */
static void test_engine_dead_pool(struct world *w, struct weft_engine *engine)
{
    struct weft_submitted submitted;
    const char *sql =
        weft_arena_printf(w->f.arena,
                          "DO $$ BEGIN PERFORM pg_terminate_backend(pid, 20000)"
                          " FROM pg_stat_activity WHERE application_name = 'last_%d'; END $$",
                          (int)getpid());
    ok(fixture_script(&w->f, w->aside, sql) == WEFT_OK, "end all sessions: %s", w->f.err.text);
    is_int(submit(w, engine, &submitted), WEFT_OK, "a pool of the dead: %s", w->f.err.text);
    check_count(w, 6, "no submission is done twice");
}

static void test_engine(struct world *w)
{
    struct weft_engine *engine = NULL;
    struct weft_submitted submitted;
    struct weft_claim_result claimed = {0};
    const struct weft_engine_config config = {.url = w->url};
    ok(weft_engine_open(&config, &engine, &w->f.err) == WEFT_OK, "an engine behind the relay: %s",
       w->f.err.text);
    /* One round first, so that names are known and the list of queues is young. */
    is_int(submit(w, engine, &submitted), WEFT_OK, "submit: %s", w->f.err.text);
    ok(claim(w, engine, &claimed) == WEFT_OK && claimed.count == 1, "claim: %s", w->f.err.text);
    test_engine_settles(w, engine);
    test_engine_repeats(w, engine);
    test_engine_cannot_know(w, engine);
    test_engine_dead_pool(w, engine);
    test_engine_joint(w, engine);
    weft_engine_close(engine);
}

int main(void)
{
    if (!fixture_has_pg()) {
        tap_skip("WEFT_TEST_PG is not set");
        return tap_done();
    }
    struct world w = {.next = 1};
    world_init(&w);
    const struct weft_migration_set none = {0};
    ok(weft_migrate(w.aside, &none, w.f.arena, &w.f.err) == WEFT_OK, "a store");
    test_one_exchange(&w, "", WEFT_TX_WRITE);
    test_one_exchange(&w, "&weft_prepare=off", WEFT_TX_WRITE);
    test_one_exchange(&w, "", WEFT_TX_HOT);
    test_one_exchange(&w, "&weft_prepare=off", WEFT_TX_HOT);
    test_hot(&w);
    test_names(&w);
    test_old_server(&w);
    test_nothing_to_run(&w);
    test_cuts(&w);
    test_failed_statement(&w);
    test_dead_before(&w);
    test_dismissed(&w);
    test_ended_in_commit(&w);
    world_done(&w);

    w = (struct world){.next = 1};
    world_init(&w);
    test_engine(&w);
    world_done(&w);
    return tap_done();
}
