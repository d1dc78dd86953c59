/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Applying migrations.
 *
 * Each turn of the loop reads the state of the store and does one thing: create the bookkeeping, or
 * apply the next migration in a transaction together with its record. Reading needs no lock, so
 * replicas that find everything applied never wait for each other. Applying takes the mutex (in
 * PostgreSQL a lock on the table of migrations, in SQLite the write lock) and reads again under it:
 * a process that had to wait for the mutex finds the migration applied.
 *
 * An index on a large table is built while work goes on: CREATE INDEX CONCURRENTLY runs outside a
 * transaction, so it cannot hold the mutex, and a session lock would be lost behind a pooler.
 * Instead the indexed table is the mutex, and the build can be repeated:
 *
 * 1. In a transaction, lock the table in the mode that a build holds to its end (it conflicts with
 *    itself, not with readers and writers). So no build is running, and an index that is not valid
 *    was left by a failed build: drop it.
 * 2. Build the index, unless it exists. Two processes that start together wait for each other's
 *    lock or snapshot; PostgreSQL ends one of them, which takes another turn. Behind a pooler the
 *    statement runs under the database's own settings, since only a transaction can bring weft's
 *    along: a database that is read-only by default, or gives statements little time, does not let
 *    it through. Then the index is built in the transaction of step 1, and writers of the table
 * wait.
 * 3. Record the migration under the mutex if the index exists and is valid; else back to 1.
 *
 * The bookkeeping itself is created without a mutex, since there is nothing to lock yet. A process
 * that loses that race gets an error that an object exists already, and takes another turn.
 */

#include "store/migrate.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"

#include <string.h>
#include <time.h>

enum {
    FAILURES_MAX = 5,         /* lost races before giving up */
    LOCK_WAIT_MS = 100,       /* how long a migration waits for a lock, */
    LOCK_WAIT_RANDOM_MS = 200 /* plus up to this at random */
};

#define WAIT_US        (600 * WEFT_SECOND)
#define PAUSE_FIRST_US (200 * WEFT_MS)
#define PAUSE_LAST_US  (5 * WEFT_SECOND)

struct job {
    struct weft_conn *conn;
    const struct weft_migration_set *set;
    struct weft_arena *arena;
    bool pg;
    const struct weft_migration *next; /* the migration tried last */
    weft_usec began_us;                /* boot time of the first try that met a lock; 0: none yet */
    weft_usec pause_us;                /* before the next try */
    int failures;                      /* lost races so far */
};

struct state {
    /* The schema: its name, whether it is present and ours, and how many tables are not weft's. */
    const struct weft_schema_probe_out *schema;
    struct weft_rows applied;
    int64_t oldest_binary;
};

static const struct weft_migration_text *text_of(const struct job *job,
                                                 const struct weft_migration *migration)
{
    return job->pg ? &migration->pg : &migration->sqlite;
}

static enum weft_rc run(const struct job *job, const struct weft_call *call, size_t count,
                        struct weft_rows *ret_rows, struct weft_err *err)
{
    return job->conn->driver->run(job->conn, call, count, job->arena, ret_rows, err);
}

static enum weft_rc run_plain(const struct job *job, enum weft_stmt stmt,
                              struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_call call;
    weft_call_init(&call, job->arena, stmt, 0);
    return run(job, &call, 1, ret_rows, err);
}

/* Inside the caller's transaction. */
static enum weft_rc read_state(const struct job *job, struct state *ret_state, struct weft_err *err)
{
    struct state state = {0};
    struct weft_rows rows = {0};
    enum weft_rc rc = run_plain(job, WEFT_STMT_SCHEMA_PROBE, &rows, err);
    if (rc)
        return rc;
    state.schema = weft_out_schema_probe(&rows);
    if (state.schema->ours) {
        rc = run_plain(job, WEFT_STMT_MIGRATION_LIST, &state.applied, err);
        if (!rc)
            rc = run_plain(job, WEFT_STMT_SCHEMA_READ, &rows, err);
        if (rc)
            return rc;
        if (rows.count > 0)
            state.oldest_binary = weft_out_schema_read(&rows)->oldest_binary;
    }
    *ret_state = state;
    return WEFT_OK;
}

/* Commits, or rolls back if rc is a failure. */
static enum weft_rc finish(const struct job *job, enum weft_rc rc, struct weft_err *err)
{
    if (!rc)
        return job->conn->driver->commit(job->conn, err);
    job->conn->driver->rollback(job->conn);
    return rc;
}

static enum weft_rc read_committed_state(const struct job *job, struct state *ret_state,
                                         struct weft_err *err)
{
    enum weft_rc rc = job->conn->driver->begin(job->conn, WEFT_TX_READ, err);
    return rc ? rc : finish(job, read_state(job, ret_state, err), err);
}

enum weft_rc weft_too_old(size_t known, int64_t oldest_binary, struct weft_err *err)
{
    return weft_hint(
        err,
        weft_fail(err, WEFT_SCHEMA,
                  "this binary is too old: it knows %zu migrations, and the store asks for %d",
                  known, (int)oldest_binary),
        "install a newer weft");
}

/* Compares what was applied with what this binary knows. */
static enum weft_rc check_state(const struct job *job, const struct state *state,
                                struct weft_err *err)
{
    size_t known = job->set->count;
    for (size_t i = 0; i < state->applied.count; i++) {
        const struct weft_migration_list_out *row = &weft_out_migration_list(&state->applied)[i];
        if (row->number != (int64_t)i + 1)
            return weft_hint(
                err, weft_fail(err, WEFT_SCHEMA, "the store has no record of migration %zu", i + 1),
                "restore the table of migrations from a backup");
        if (i < known && strcmp(text_of(job, &job->set->migration[i])->sha256, row->sha256) != 0)
            return weft_hint(
                err,
                weft_fail(err, WEFT_SCHEMA,
                          "migration %zu (%s) was changed after it was applied to this store",
                          i + 1, row->name),
                "migrations are append-only: use a binary with the original text");
    }
    return state->oldest_binary > (int64_t)known ? weft_too_old(known, state->oldest_binary, err)
                                                 : WEFT_OK;
}

/* Fails if the caller does not allow creating or migrating the store. */
static enum weft_rc check_allowed(const struct job *job, const struct state *state,
                                  struct weft_err *err)
{
    if (job->set->must_exist && !state->schema->ours && state->schema->others == 0)
        return weft_fail(err, WEFT_NOT_FOUND, "the database holds no store");
    if (!job->set->check_only)
        return WEFT_OK;
    return weft_hint(err,
                     weft_fail(err, WEFT_SCHEMA, "the store has %zu of %zu migrations",
                               state->applied.count, job->set->count),
                     "open it once with migrations allowed");
}

static enum weft_rc bootstrap(const struct job *job, const struct state *state,
                              struct weft_err *err)
{
    struct weft_call call[3];
    size_t count = 0;
    if (state->schema->others > 0)
        return weft_hint(err,
                         weft_fail(err, WEFT_SCHEMA, "schema %s holds tables that are not weft's",
                                   state->schema->name),
                         "use an empty database, or name another schema in the URL");
    if (!state->schema->present)
        weft_call_schema_create(&call[count++], job->arena);
    weft_call_migration_create(&call[count++], job->arena);
    weft_call_version_create(&call[count++], job->arena);

    enum weft_rc rc = job->conn->driver->begin(job->conn, WEFT_TX_WRITE, err);
    return rc ? rc : finish(job, run(job, call, count, NULL, err), err);
}

/* Waits for another process that migrates; in SQLite begin() has waited for the write lock. */
static enum weft_rc take_mutex(const struct job *job, struct weft_err *err)
{
    if (!job->pg)
        return WEFT_OK;
    enum weft_rc rc = run_plain(job, WEFT_STMT_MIGRATION_PATIENCE, NULL, err);
    return rc ? rc
              : job->conn->driver->script(job->conn, weft_stmts[WEFT_STMT_MIGRATION_LOCK].pg, err);
}

/* From here on the transaction fails soon if it does not get a lock. */
static enum weft_rc limit_lock_wait(const struct job *job, struct weft_err *err)
{
    struct weft_call call;
    uint32_t random;
    if (!job->pg)
        return WEFT_OK;
    weft_random(&random, sizeof(random));
    weft_call_migration_hurry(&call, job->arena)->lock_timeout =
        weft_arena_printf(job->arena, "%dms", LOCK_WAIT_MS + (int)(random % LOCK_WAIT_RANDOM_MS));
    return run(job, &call, 1, NULL, err);
}

static enum weft_rc record(const struct job *job, const struct weft_migration *migration,
                           int64_t oldest_binary, weft_usec now_us, struct weft_err *err)
{
    struct weft_call call[2];
    struct weft_migration_add_in *add = weft_call_migration_add(&call[0], job->arena);
    add->number = migration->number;
    add->name = migration->name;
    add->sha256 = text_of(job, migration)->sha256;
    add->applied_us = now_us;
    struct weft_schema_put_in *put = weft_call_schema_put(&call[1], job->arena);
    put->version = migration->number;
    /* Earlier migrations count too: the binary that applied them may have ignored the number. */
    for (int i = 0; i < migration->number; i++)
        if (job->set->migration[i].oldest_binary > oldest_binary)
            oldest_binary = job->set->migration[i].oldest_binary;
    put->oldest_binary = oldest_binary;
    return run(job, call, WEFT_LEN(call), NULL, err);
}

/* Puts the migration's name into the error. */
static void name_migration(const struct weft_migration *migration, struct weft_err *err)
{
    struct weft_err named;
    (void)weft_fail(&named, err->rc, "migration %d (%s): %s", migration->number, migration->name,
                    err->text);
    memcpy(err->text, named.text, sizeof(err->text));
}

/* ---- Indexes built concurrently -------------------------------------------------------------- */

enum index_state { INDEX_NONE, INDEX_INVALID, INDEX_VALID };

static enum weft_rc find_index(const struct job *job, enum index_state *ret_state,
                               struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_index_state(&call, job->arena)->name = text_of(job, job->next)->index;
    enum weft_rc rc = run(job, &call, 1, &rows, err);
    if (!rc)
        *ret_state = rows.count == 0                      ? INDEX_NONE
                     : weft_out_index_state(&rows)->valid ? INDEX_VALID
                                                          : INDEX_INVALID;
    return rc;
}

/* The statement without the word that keeps it from running in a transaction. */
static const char *plain_build(const struct job *job)
{
    static const char word[] = "CONCURRENTLY ";
    const char *sql = text_of(job, job->next)->sql, *at = strstr(sql, word);
    return at ? weft_arena_printf(job->arena, "%.*s%s", (int)(at - sql), sql, at + strlen(word))
              : sql;
}

/*
 * Step 1, and with `build` step 2 in the same transaction. Waits seconds for the lock: only other
 * builds and vacuum queue up behind it.
 */
static enum weft_rc clear_index(const struct job *job, bool build, enum index_state *ret_state,
                                struct weft_err *err)
{
    const struct weft_driver *driver = job->conn->driver;
    const struct weft_migration_text *text = text_of(job, job->next);
    enum weft_rc rc = driver->begin(job->conn, WEFT_TX_WRITE, err);
    if (rc)
        return rc;
    rc = driver->script(job->conn,
                        weft_arena_printf(job->arena,
                                          "LOCK TABLE weft.%s IN SHARE UPDATE EXCLUSIVE MODE",
                                          text->table),
                        err);
    if (!rc)
        rc = find_index(job, ret_state, err);
    if (!rc && (build || *ret_state == INDEX_INVALID))
        rc = limit_lock_wait(job, err);
    if (!rc && *ret_state == INDEX_INVALID) {
        rc = driver->script(job->conn,
                            weft_arena_printf(job->arena, "DROP INDEX weft.%s", text->index), err);
        *ret_state = INDEX_NONE;
    }
    if (!rc && build && *ret_state == INDEX_NONE)
        rc = driver->script(job->conn, plain_build(job), err);
    return finish(job, rc, err);
}

/* The settings of the database stopped it: transactions read only, or too little time. */
static bool is_forbidden(const struct weft_err *err)
{
    return strcmp(err->sqlstate, "25006") == 0 || strcmp(err->sqlstate, "57014") == 0;
}

/* Steps 1 and 2. The next turn finds the index and records the migration. */
static enum weft_rc build_index(const struct job *job, struct weft_err *err)
{
    enum index_state state = INDEX_NONE;
    enum weft_rc rc = clear_index(job, false, &state, err);
    if (!rc && state == INDEX_NONE) {
        rc = job->conn->driver->alone(job->conn, text_of(job, job->next)->sql, err);
        if (rc && is_forbidden(err))
            rc = clear_index(job, true, &state, err);
    }
    if (rc)
        name_migration(job->next, err);
    return rc;
}

/* Runs the script of a migration, or checks that its index is valid. */
static enum weft_rc run_script(const struct job *job, bool *ret_done, struct weft_err *err)
{
    const struct weft_migration_text *text = text_of(job, job->next);
    enum index_state state = INDEX_NONE;
    enum weft_rc rc = WEFT_OK;
    if (text->index) {
        rc = find_index(job, &state, err);
        *ret_done = state == INDEX_VALID;
        return rc;
    }
    *ret_done = true;
    rc = limit_lock_wait(job, err);
    return rc ? rc : job->conn->driver->script(job->conn, text->sql, err);
}

/* Applies the next migration, unless another process did so while this one waited. */
static enum weft_rc apply_next(struct job *job, struct weft_err *err)
{
    const struct weft_driver *driver = job->conn->driver;
    struct state state = {0};
    weft_usec now_us = 0;
    bool done = true;
    enum weft_rc rc = driver->time(job->conn, &now_us, err);
    if (!rc)
        rc = driver->begin(job->conn, WEFT_TX_WRITE, err);
    if (rc)
        return rc;
    rc = take_mutex(job, err);
    if (!rc)
        rc = read_state(job, &state, err);
    if (!rc)
        rc = check_state(job, &state, err);
    if (!rc && state.applied.count < job->set->count) {
        const struct weft_migration *next = &job->set->migration[state.applied.count];
        job->next = next;
        rc = run_script(job, &done, err);
        if (!rc && done)
            rc = record(job, next, state.oldest_binary, now_us, err);
        if (rc)
            name_migration(next, err);
    }
    rc = finish(job, rc, err);
    return rc || done ? rc : build_index(job, err);
}

/* The session that blocks the migration, for the log and the error; unknown if unreadable. */
static struct weft_migration_wait find_blocker(const struct job *job)
{
    struct weft_migration_wait wait = {
        .migration = job->next, .waited_us = weft_boot_us() - job->began_us, .application = ""};
    struct weft_rows rows = {0};
    if (!job->pg || job->conn->driver->begin(job->conn, WEFT_TX_READ, NULL))
        return wait;
    enum weft_rc rc = run_plain(job, WEFT_STMT_MIGRATION_BLOCKER, &rows, NULL);
    if (!finish(job, rc, NULL) && rows.count > 0) {
        const struct weft_migration_blocker_out *row = weft_out_migration_blocker(&rows);
        wait.pid = row->pid;
        wait.open_us = row->open_us.value;
        wait.application = row->application ? row->application : "";
    }
    return wait;
}

/*
 * A migration met a lock, gave up, and was rolled back. True: try again, after a growing pause in
 * which statements that queued up behind it run. False: it has tried for long enough, and *error
 * names the blocking session.
 */
static bool may_try_again(struct job *job, struct weft_err *error)
{
    weft_usec most_us = job->set->wait_us > 0 ? job->set->wait_us : WAIT_US;
    if (job->began_us == 0) {
        job->began_us = weft_boot_us();
        job->pause_us = PAUSE_FIRST_US;
    }
    struct weft_migration_wait wait = find_blocker(job);
    if (wait.waited_us >= most_us) {
        (void)weft_fail(error, WEFT_BUSY,
                        "migration %d (%s): open transactions kept it from its tables for %d s; "
                        "one is of process %d (%.60s), open for %d s",
                        job->next->number, job->next->name, (int)(most_us / WEFT_SECOND),
                        (int)wait.pid, wait.application, (int)(wait.open_us / WEFT_SECOND));
        error->hint = "end that transaction, or give it more time: --migrate-wait";
        return false;
    }
    if (job->set->waits)
        job->set->waits(job->set->context, &wait);
    uint32_t random;
    weft_random(&random, sizeof(random));
    weft_usec pause_us = job->pause_us / 2 + (weft_usec)(random % (uint64_t)job->pause_us);
    weft_usec left_us = most_us - wait.waited_us;
    pause_us = pause_us < left_us ? pause_us : left_us;
    const struct timespec pause = {.tv_sec = pause_us / WEFT_SECOND,
                                   .tv_nsec = pause_us % WEFT_SECOND * 1000};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    job->pause_us = job->pause_us * 2 < PAUSE_LAST_US ? job->pause_us * 2 : PAUSE_LAST_US;
    return true;
}

/* True if another process caused the failure. */
static bool is_race(enum weft_rc rc, const struct weft_err *err)
{
    static const char *const states[] = {"23505", "42P06", "42P07", "42710"};
    for (size_t i = 0; i < WEFT_LEN(states); i++)
        if (strcmp(err->sqlstate, states[i]) == 0)
            return true;
    return rc == WEFT_BUSY;
}

/* Reads the state and does the next thing; done: there was nothing to do. */
static enum weft_rc take_turn(struct job *job, bool *ret_done, struct weft_err *error)
{
    struct state state;
    enum weft_rc rc = read_committed_state(job, &state, error);
    bool ours = !rc && state.schema->ours;
    if (ours)
        rc = check_state(job, &state, error);
    *ret_done = !rc && ours && state.applied.count >= job->set->count;
    if (rc || *ret_done)
        return rc;
    rc = check_allowed(job, &state, error);
    if (rc)
        return rc;
    return ours ? apply_next(job, error) : bootstrap(job, &state, error);
}

/* Whether to take another turn after a failed one. */
static bool retries(struct job *job, enum weft_rc rc, struct weft_err *error)
{
    if (job->conn->broken)
        return false;
    if (error->cause == WEFT_CAUSE_LOCK_TIMEOUT && job->next)
        return may_try_again(job, error);
    return is_race(rc, error) && ++job->failures <= FAILURES_MAX;
}

enum weft_rc weft_migrate(struct weft_conn *conn, const struct weft_migration_set *set,
                          struct weft_arena *arena, struct weft_err *err)
{
    struct job job = {.conn = conn,
                      .set = set,
                      .arena = arena,
                      .pg = strcmp(conn->driver->name, weft_driver_pg.name) == 0};
    struct weft_err error = {0};
    bool done = false;
    enum weft_rc rc;
    do {
        rc = take_turn(&job, &done, &error);
    } while (rc ? retries(&job, rc, &error) : !done);
    if (rc && err)
        *err = error;
    return rc;
}

enum weft_rc weft_migrations_applied(struct weft_conn *conn, struct weft_arena *arena,
                                     size_t *ret_count, struct weft_err *err)
{
    const struct job job = {.conn = conn, .arena = arena};
    struct state state;
    enum weft_rc rc = read_committed_state(&job, &state, err);
    if (!rc)
        *ret_count = state.applied.count;
    return rc;
}
