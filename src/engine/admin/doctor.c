/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What `weft doctor` finds: is the store the way weft needs it, and does anything hold it up?
 *
 * Statements read figures, this file judges them, and every look becomes a finding, good ones too.
 * A look that fails is a finding as well; only a store that cannot be reached ends the examination.
 */

#include "engine/admin/doctor.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "engine/admin/replicas.h"
#include "engine/engine_state.h"
#include "store/migrate.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

enum {
    FINDINGS_MAX = 32,
    MISSING_MAX = 512,
    SHOWN_MAX = 5, /* replicas, or scanners, that one finding names */
};

#define MINUTE_US (60 * WEFT_SECOND)
#define WEEK_US   (604800 * WEFT_SECOND)
#define LAG_US    (60 * WEFT_SECOND)
#define MB        ((int64_t)1 << 20)
#define GB        ((int64_t)1 << 30)

#define CHECK_TIMEOUT "600s"

struct check {
    enum weft_stmt stmt;
    struct weft_rows rows;
};

struct exam {
    struct weft_engine *engine;
    struct weft_arena *arena;
    struct weft_finding *item;
    size_t count;
    bool pg;
};

static void put_finding(struct exam *exam, enum weft_finding_level level, const char *what,
                        const char *advice, const char *detail)
{
    if (exam->count < FINDINGS_MAX)
        exam->item[exam->count++] = (struct weft_finding){
            .level = level,
            .what = what,
            .detail = detail,
            .advice = level == WEFT_FINDING_OK ? NULL : advice,
        };
}

/* The last arguments are the format of the detail and its values. */
#define TEXT(...)                       weft_arena_printf(exam->arena, __VA_ARGS__)
#define FOUND(level, what, advice, ...) put_finding(exam, level, what, advice, TEXT(__VA_ARGS__))

static enum weft_finding_level ok_or(enum weft_finding_level level, bool good)
{
    return good ? WEFT_FINDING_OK : level;
}

/* The level of a figure that is worse the larger it is. */
static enum weft_finding_level judge(int64_t figure, int64_t warn, int64_t bad)
{
    if (figure >= bad)
        return WEFT_FINDING_BAD;
    return figure >= warn ? WEFT_FINDING_WARN : WEFT_FINDING_OK;
}

/* "90 s", "12 min", "7 h", "3 days": the largest unit of which there are a few. */
static const char *age_text(struct exam *exam, weft_usec age_us)
{
    static const struct {
        weft_usec unit_us;
        const char *word;
    } units[] = {{86400 * WEFT_SECOND, "days"},
                 {3600 * WEFT_SECOND, "h"},
                 {MINUTE_US, "min"},
                 {WEFT_SECOND, "s"}};
    for (size_t i = 0; i < WEFT_LEN(units); i++)
        if (age_us >= 3 * units[i].unit_us)
            return TEXT("%lld %s", (long long)(age_us / units[i].unit_us), units[i].word);
    return TEXT("%lld ms", (long long)(age_us / WEFT_MS));
}

static const char *size_text(struct exam *exam, int64_t bytes)
{
    if (bytes >= 10 * GB)
        return TEXT("%lld GB", (long long)(bytes / GB));
    if (bytes >= 10 * MB)
        return TEXT("%lld MB", (long long)(bytes / MB));
    return TEXT("%lld KB", (long long)(bytes / 1024));
}

/* ---- Both stores ----------------------------------------------------------------------------- */

static void judge_schema(struct exam *exam, const struct weft_rows *rows)
{
    int64_t version = weft_out_schema_read(rows)->version;
    FOUND(ok_or(WEFT_FINDING_WARN, version == (int64_t)weft_migration_count), "schema",
          "run the same version of weft everywhere",
          "the schema has version %lld, this binary knows %zu", (long long)version,
          weft_migration_count);
}

static bool has_index(const struct weft_rows *rows, const char *name)
{
    const struct weft_examine_indexes_out *row = weft_out_examine_indexes(rows);
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(row[i].name, name) == 0)
            return row[i].valid;
    return false;
}

static void judge_indexes(struct exam *exam, const struct weft_rows *rows)
{
    const char *const *index = exam->pg ? weft_indexes_pg : weft_indexes_sqlite, *missing = "";
    size_t expected = 0, absent = 0;
    for (; index[expected]; expected++) {
        if (has_index(rows, index[expected]))
            continue;
        if (strlen(missing) < MISSING_MAX)
            missing = TEXT("%s%s%s", missing, absent ? ", " : "", index[expected]);
        absent++;
    }
    if (absent > 0)
        FOUND(WEFT_FINDING_BAD, "indexes",
              "create them again as sql/migrations has them, or REINDEX the invalid ones",
              "%zu of %zu indexes are missing or invalid: %s", absent, expected, missing);
    else
        FOUND(WEFT_FINDING_OK, "indexes", NULL, "all %zu indexes are there, and %zu others",
              expected, rows->count - expected);
}

static void judge_work(struct exam *exam, const struct weft_rows *rows)
{
    const struct weft_examine_work_out *row = weft_out_examine_work(rows);
    weft_usec now_us = weft_clock_now(exam->engine->clock);
    weft_usec waited_us = row->ready ? now_us - row->oldest_ready.value : 0;
    FOUND(judge(waited_us, 60 * MINUTE_US, WEFT_NEVER), "backlog",
          "look whether workers serve its lane, and whether the lane is paused or full",
          "ready: %lld%s%s, running: %lld", (long long)row->ready,
          row->ready ? ", the oldest since " : "", row->ready ? age_text(exam, waited_us) : "",
          (long long)row->running);
    weft_usec late_us = row->expired ? now_us - row->oldest_expired.value : 0;
    FOUND(judge(late_us, 10 * WEFT_SECOND, MINUTE_US), "expired_leases",
          "no server and no worker runs the passes: start one",
          "leases that ran out and were not taken back: %lld%s%s", (long long)row->expired,
          row->expired ? ", the oldest since " : "", row->expired ? age_text(exam, late_us) : "");
}

static void examine_clock(struct exam *exam)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    weft_usec here_us = (weft_usec)now.tv_sec * WEFT_SECOND + now.tv_nsec / 1000;
    weft_usec ahead_us = here_us - weft_clock_now(exam->engine->clock);
    weft_usec apart_us = ahead_us < 0 ? -ahead_us : ahead_us;
    FOUND(judge(apart_us, WEFT_SECOND, WEFT_NEVER), "clock",
          "nothing depends on it, but times in logs will not agree: synchronize the clocks",
          "the clock of this machine is %s %s that of the store", age_text(exam, apart_us),
          ahead_us < 0 ? "behind" : "ahead of");
}

/* One check, with more time than other statements have. */
static enum weft_rc check_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct check *check = context;
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    size_t first = tx->engine->pool.writers == 1; /* SQLite has no such limit */
    weft_call_check_patience(&call[0], tx->arena)->statement_timeout = CHECK_TIMEOUT;
    weft_call_init(&call[1], tx->arena, check->stmt, 0);
    enum weft_rc rc = weft_tx_run(tx, &call[first], 2 - first, &rows[first], err);
    check->rows = rows[1];
    return rc;
}

enum weft_rc weft_engine_broken(struct weft_engine *engine, struct weft_arena *arena,
                                struct weft_broken *ret_broken, struct weft_err *err)
{
    static const enum weft_stmt stmt[] = {WEFT_STMT_CHECK_ONE_PLACE, WEFT_STMT_CHECK_ROWS,
                                          WEFT_STMT_CHECK_FLOWS, WEFT_STMT_CHECK_GRAPHS,
                                          WEFT_STMT_CHECK_BUDGETS};
    enum weft_rc rc = WEFT_OK;
    *ret_broken = (struct weft_broken){0};
    for (size_t i = 0; i < WEFT_LEN(stmt) && !rc; i++) {
        struct weft_tx tx = {.engine = engine, .arena = arena};
        struct check check = {.stmt = stmt[i]};
        rc = weft_tx_do(&tx, WEFT_TX_READ, check_body, &check, err);
        if (rc || check.rows.count == 0)
            continue;
        const struct weft_check_rows_out *row = weft_out_check_rows(&check.rows);
        if (ret_broken->count == 0) {
            ret_broken->problem = row->problem;
            ret_broken->id = row->id.value;
        }
        ret_broken->count += check.rows.count;
    }
    return rc;
}

enum weft_rc weft_engine_check(struct weft_engine *engine, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_broken broken;
    char text[WEFT_ID_TEXT];
    enum weft_rc rc = weft_engine_broken(engine, arena, &broken, err);
    if (!rc && broken.count > 0) {
        weft_id_print(&broken.id, text);
        rc = weft_fail(err, WEFT_CORRUPT, "%zu broken rows, the first: %s, %s", broken.count,
                       broken.problem, text);
    }
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc examine_invariants(struct exam *exam, struct weft_err *err)
{
    enum weft_rc rc = weft_engine_check(exam->engine, err);
    if (rc == WEFT_UNAVAILABLE)
        return rc;
    if (rc)
        FOUND(rc == WEFT_CORRUPT ? WEFT_FINDING_BAD : WEFT_FINDING_WARN, "invariants",
              rc == WEFT_CORRUPT ? "stop the servers and keep a copy of the store: this is a bug"
                                 : "try again when the store has less to do",
              "%s", err->text);
    else
        FOUND(WEFT_FINDING_OK, "invariants", NULL, "every row is where it must be and whole");
    return WEFT_OK;
}

/* ---- Replicas -------------------------------------------------------------------------------- */

/* Adds a name to the list in *text, if the list is not too long. */
static void name_one(struct exam *exam, const char **text, size_t *count, const char *name)
{
    if (*count <= SHOWN_MAX)
        *text = *count ? TEXT("%s; %s", *text, *count < SHOWN_MAX ? name : "...") : name;
    (*count)++;
}

static void find_dead(struct exam *exam, const struct weft_replica_rows *rows, weft_usec now_us)
{
    const char *dead = NULL;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_replica_row *row = &rows->item[i];
        if (!weft_replica_shown(row, now_us).alive)
            name_one(exam, &dead, &count,
                     TEXT("%s pid %lld is dead, last seen %lld s ago", row->host,
                          (long long)row->pid, (long long)((now_us - row->seen_us) / WEFT_SECOND)));
    }
    if (!dead)
        dead = rows->count ? TEXT("alive: %zu", rows->count) : "no server uses the store now";
    put_finding(exam, ok_or(WEFT_FINDING_WARN, count == 0), "replicas",
                "look why it ended; the others do its work, so start it again when you know", dead);
}

static void judge_scanners(struct exam *exam, const struct weft_scanners *scanners)
{
    const char *late = "no scanner is more than 60 s behind";
    const char *failing = "the last pass of each went well";
    size_t late_count = 0, failing_count = 0;
    for (size_t i = 0; i < scanners->count; i++) {
        const struct weft_scanner_status *one = &scanners->item[i];
        if (one->enabled && one->lag_us > LAG_US)
            name_one(exam, &late, &late_count,
                     TEXT("%s on %s is %lld s behind", one->name, one->host,
                          (long long)(one->lag_us / WEFT_SECOND)));
        if (one->last_error)
            name_one(exam, &failing, &failing_count,
                     TEXT("%s on %s fails: %s", one->name, one->host, one->last_error));
    }
    const char *names = weft_scanners_uncovered(scanners, exam->arena);
    FOUND(ok_or(WEFT_FINDING_BAD, !names), "scanner_coverage",
          "start a server with --scanners all, or add them to --scanners of a server", "%s%s",
          names ? "no living replica runs this for all there is: "
                : "every scanner runs for all there is",
          names ? names : "");
    put_finding(exam, ok_or(WEFT_FINDING_WARN, late_count == 0), "scanner_lag",
                "`weft scanners` tells whether it fails or has too much to do; another replica, "
                "or a larger batch, makes it faster",
                late);
    put_finding(exam, ok_or(WEFT_FINDING_WARN, failing_count == 0), "scanner_failures",
                "it is tried again by itself; the log of that server tells since when", failing);
}

/* Which replica died, and which scanner of the living ones is not well. */
static enum weft_rc examine_replicas(struct exam *exam, struct weft_err *err)
{
    struct weft_replica_rows rows;
    enum weft_rc rc = weft_engine_replicas(exam->engine, exam->arena, &rows, err);
    if (rc)
        return rc;
    weft_usec now_us = weft_clock_now(exam->engine->clock);
    bool any = false;
    for (size_t i = 0; i < rows.count; i++)
        any |= weft_replica_shown(&rows.item[i], now_us).alive;
    find_dead(exam, &rows, now_us);
    if (!any) /* there are no scanners to look at */
        return WEFT_OK;
    struct weft_scanners scanners = weft_replica_scanners(&rows, now_us, exam->arena);
    judge_scanners(exam, &scanners);
    return WEFT_OK;
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

static void judge_server(struct exam *exam, const struct weft_rows *rows)
{
    const struct weft_examine_server_out *row = weft_out_examine_server(rows);
    FOUND(ok_or(WEFT_FINDING_BAD, !row->standby), "server", "let the URL lead to the primary",
          "PostgreSQL %s%s", row->version,
          row->standby ? ", a standby that cannot be written" : "");
    FOUND(WEFT_FINDING_OK, "size", NULL, "the database has %s", size_text(exam, row->bytes));
    const char *commit = row->synchronous_commit;
    FOUND(
        ok_or(WEFT_FINDING_BAD, row->fsync && row->full_page_writes && strcmp(commit, "off") != 0),
        "durability", "switch all three on: accepted work may be lost in a crash otherwise",
        "fsync is %s, full_page_writes is %s, synchronous_commit is %s", row->fsync ? "on" : "off",
        row->full_page_writes ? "on" : "off", commit);
    FOUND(ok_or(WEFT_FINDING_BAD, row->autovacuum), "autovacuum",
          "switch autovacuum and track_counts on: claims slow down with every dead row",
          "autovacuum is %s", row->autovacuum ? "on" : "off");
    int64_t used = row->connections, max = row->max_connections;
    FOUND(judge(used * 100 / (max ? max : 1), 80, 95), "connections",
          "raise max_connections, or put a pooler in front of the applications",
          "%lld of %lld connections are used", (long long)used, (long long)max);
}

/* Submissions by SQL that did not become work. */
static void judge_inbox(struct exam *exam, const struct weft_rows *rows)
{
    const char *detail = "submissions by SQL refused in the last week: ";
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_examine_inbox_out *row = &weft_out_examine_inbox(rows)[i];
        char text[WEFT_ID_TEXT];
        weft_id_print(&row->example, text);
        detail = TEXT("%s%s%lld (%s, as %s of namespace %s)", detail, i ? ", " : "",
                      (long long)row->number, row->reason, text, row->namespace);
    }
    FOUND(ok_or(WEFT_FINDING_WARN, rows->count == 0), "inbox_refused",
          "`weft show ID` says what was wrong with it: mend the application; rows under ids that "
          "are taken were removed: let weft_submit() make the ids",
          "%s%s", detail, rows->count ? "" : "0");
}

static void judge_sessions(struct exam *exam, const struct weft_rows *rows)
{
    if (rows->count == 0) {
        FOUND(WEFT_FINDING_OK, "old_transaction", NULL, "no other transaction is open");
        return;
    }
    const struct weft_examine_sessions_out *row = weft_out_examine_sessions(rows);
    long long pid = row->pid;
    FOUND(judge(row->age, MINUTE_US, 15 * MINUTE_US), "old_transaction",
          TEXT("it keeps dead rows from being removed, which slows claims: end it "
               "with SELECT pg_terminate_backend(%lld)",
               pid),
          "the oldest transaction is open for %s: pid %lld, application '%s', user '%s', "
          "%s, its last query began %s ago",
          age_text(exam, row->age), pid, row->application, row->username, row->state,
          age_text(exam, row->query_age));
}

static void judge_prepared(struct exam *exam, const struct weft_rows *rows)
{
    if (rows->count == 0) {
        FOUND(WEFT_FINDING_OK, "prepared_transactions", NULL, "no transaction is prepared");
        return;
    }
    const struct weft_examine_prepared_out *row = weft_out_examine_prepared(rows);
    FOUND(judge(row->age, MINUTE_US, 15 * MINUTE_US), "prepared_transactions",
          TEXT("COMMIT PREPARED '%s' or ROLLBACK PREPARED '%s'", row->gid, row->gid),
          "%lld are prepared, the oldest ('%s' of %s) for %s", (long long)row->number, row->gid,
          row->owner, age_text(exam, row->age));
}

static void judge_table(struct exam *exam, const struct weft_rows *rows)
{
    enum { DEAD_FEW = 50000, ROW_BYTES_MAX = 2000 };
    const struct weft_examine_table_out *row = weft_out_examine_table(rows);
    const char *name = row->name;
    int64_t all = row->living + row->dead, share = row->dead * 100 / (all + 1);
    FOUND(row->dead < DEAD_FEW ? WEFT_FINDING_OK : judge(share, 50, 90), "dead_rows",
          TEXT("VACUUM %s, once no old transaction is open", name),
          "%s has %lld living and %lld dead rows (%lld %%), vacuumed %s%s", name,
          (long long)row->living, (long long)row->dead, (long long)share,
          row->vacuum_age.set ? age_text(exam, row->vacuum_age.value) : "never",
          row->vacuum_age.set ? " ago" : "");
    bool bloated = row->bytes > 256 * MB && row->bytes / (all + 1) > ROW_BYTES_MAX;
    FOUND(ok_or(WEFT_FINDING_WARN, !bloated), "bloat",
          TEXT("its space is used again as it fills; VACUUM FULL %s gives it back, "
               "and stops everything while it runs",
               name),
          "%s has %s for %lld rows", name, size_text(exam, row->bytes), (long long)all);
    if (!row->autovacuum)
        FOUND(WEFT_FINDING_BAD, "autovacuum_of_table",
              TEXT("ALTER TABLE %s RESET (autovacuum_enabled)", name), "autovacuum is off for %s",
              name);
}

/* ---- SQLite ---------------------------------------------------------------------------------- */

/* What the file system says of the file and of its log. */
static void examine_disk(struct exam *exam, const char *file)
{
    struct statvfs disk;
    struct stat info;
    if (statvfs(file, &disk) == 0) {
        int64_t left = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
        FOUND(judge(-left, -GB, -100 * MB), "disk",
              "make room: nothing is accepted when the disk is full", "%s are free beside %s",
              size_text(exam, left), file);
    }
    int64_t bytes = stat(TEXT("%s-wal", file), &info) == 0 ? (int64_t)info.st_size : 0;
    FOUND(judge(bytes, 256 * MB, WEFT_NEVER), "wal",
          "a reader keeps it from being folded into the file: end what reads the file for long",
          "the write-ahead log has %s", size_text(exam, bytes));
}

static void judge_file(struct exam *exam, const struct weft_rows *rows)
{
    enum { SYNCHRONOUS_FULL = 2 };
    const struct weft_examine_file_out *row = weft_out_examine_file(rows);
    FOUND(ok_or(WEFT_FINDING_BAD, strcmp(row->journal_mode, "wal") == 0), "journal_mode",
          "something changed it: the next weft that opens the file sets it back",
          "journal_mode is %s", row->journal_mode);
    bool full = row->synchronous >= SYNCHRONOUS_FULL;
    FOUND(ok_or(WEFT_FINDING_WARN, full), "durability", "leave synchronous=normal out of the URL",
          "synchronous is %s", full ? "full" : "normal: a power failure may take the last commits");
    FOUND(WEFT_FINDING_OK, "size", NULL, "the file has %s, of which %s are free",
          size_text(exam, row->bytes), size_text(exam, row->free_bytes));
    examine_disk(exam, row->file);
}

static void judge_integrity(struct exam *exam, const struct weft_rows *rows)
{
    const char *first = weft_out_examine_integrity(rows)->problem;
    bool good = strcmp(first, "ok") == 0;
    put_finding(exam, ok_or(WEFT_FINDING_BAD, good), "integrity",
                "stop what uses the file and go back to a backup",
                good ? "the file is whole"
                     : TEXT("%zu problems, the first: %s", rows->count, first));
}

/* ---- The examination ------------------------------------------------------------------------- */

enum { IN_PG = 1, IN_SQLITE = 2, MAY_BE_EMPTY = 4 };

static const struct look {
    enum weft_stmt stmt;
    unsigned flags;
    void (*judge)(struct exam *exam, const struct weft_rows *rows);
} looks[] = {
    {WEFT_STMT_EXAMINE_SERVER, IN_PG, judge_server},
    {WEFT_STMT_EXAMINE_SESSIONS, IN_PG | MAY_BE_EMPTY, judge_sessions},
    {WEFT_STMT_EXAMINE_PREPARED, IN_PG | MAY_BE_EMPTY, judge_prepared},
    {WEFT_STMT_EXAMINE_TABLE, IN_PG, judge_table},
    {WEFT_STMT_EXAMINE_FILE, IN_SQLITE, judge_file},
    {WEFT_STMT_EXAMINE_INTEGRITY, IN_SQLITE, judge_integrity},
    {WEFT_STMT_SCHEMA_READ, IN_PG | IN_SQLITE, judge_schema},
    {WEFT_STMT_EXAMINE_INDEXES, IN_PG | IN_SQLITE | MAY_BE_EMPTY, judge_indexes},
    {WEFT_STMT_EXAMINE_INBOX, IN_PG | MAY_BE_EMPTY, judge_inbox},
    {WEFT_STMT_EXAMINE_WORK, IN_PG | IN_SQLITE, judge_work},
};

/* Runs a statement without parameters but a time. If it fails, that is a finding. */
static enum weft_rc run_look(struct exam *exam, const struct look *look, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_usec now_us = weft_clock_now(exam->engine->clock);
    weft_call_init(&call, exam->arena, look->stmt, 0);
    if (look->stmt == WEFT_STMT_EXAMINE_WORK)
        weft_in_examine_work(&call)->now = now_us;
    if (look->stmt == WEFT_STMT_EXAMINE_INBOX)
        weft_in_examine_inbox(&call)->since = now_us - WEEK_US;
    enum weft_rc rc = weft_tx_once(exam->engine, WEFT_TX_READ, &call, exam->arena, &rows, err);
    if (rc == WEFT_UNAVAILABLE)
        return rc;
    if (rc)
        FOUND(WEFT_FINDING_WARN, "look_failed", "look at the permissions of weft's role",
              "%s could not be answered: %s", weft_stmts[look->stmt].name, err->text);
    else if (rows.count > 0 || look->flags & MAY_BE_EMPTY)
        look->judge(exam, &rows);
    return WEFT_OK;
}

enum weft_rc weft_engine_examine(struct weft_engine *engine, struct weft_arena *arena,
                                 struct weft_findings *ret_findings, struct weft_err *err)
{
    struct exam exam = {.engine = engine,
                        .arena = arena,
                        .item = weft_new_array(arena, struct weft_finding, FINDINGS_MAX),
                        .pg = strcmp(engine->driver->name, weft_driver_pg.name) == 0};
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < WEFT_LEN(looks) && !rc; i++) {
        if (looks[i].stmt == WEFT_STMT_EXAMINE_INBOX)
            examine_clock(&exam);
        if (looks[i].flags & (exam.pg ? IN_PG : IN_SQLITE))
            rc = run_look(&exam, &looks[i], err);
    }
    if (!rc)
        rc = examine_replicas(&exam, err);
    if (!rc)
        rc = examine_invariants(&exam, err);
    if (!rc)
        *ret_findings = (struct weft_findings){.item = exam.item, .count = exam.count};
    return rc;
}
