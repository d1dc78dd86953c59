/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What `weft doctor` finds: is the store the way weft needs it, and does anything hold it up?
 *
 * Statements bring figures, this file judges them, and every look becomes a finding, good ones too.
 * A look that fails is a finding as well; only a store that cannot be reached ends the examination.
 */

#include "engine/admin/doctor.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "engine/admin/check.h"
#include "engine/admin/doctor_replicas.h"
#include "engine/engine_state.h"
#include "store/migrate.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

enum { FINDINGS_MAX = 32, MISSING_MAX = 512 };

#define MINUTE_US (60 * WEFT_SECOND)
#define WEEK_US   (604800 * WEFT_SECOND)
#define MB        ((int64_t)1 << 20)
#define GB        ((int64_t)1 << 30)

struct exam {
    struct weft_engine *engine;
    struct weft_arena *arena;
    struct weft_finding *item;
    size_t count;
};

static void found(struct exam *exam, enum weft_finding_level level, const char *what,
                  const char *detail, const char *advice)
{
    if (exam->count < FINDINGS_MAX)
        exam->item[exam->count++] = (struct weft_finding){
            .level = level,
            .what = what,
            .detail = detail,
            .advice = level == WEFT_FINDING_OK ? NULL : advice,
        };
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
            return weft_arena_printf(exam->arena, "%lld %s", (long long)(age_us / units[i].unit_us),
                                     units[i].word);
    return weft_arena_printf(exam->arena, "%lld ms", (long long)(age_us / WEFT_MS));
}

static const char *size_text(struct exam *exam, int64_t bytes)
{
    if (bytes >= 10 * GB)
        return weft_arena_printf(exam->arena, "%lld GB", (long long)(bytes / GB));
    if (bytes >= 10 * MB)
        return weft_arena_printf(exam->arena, "%lld MB", (long long)(bytes / MB));
    return weft_arena_printf(exam->arena, "%lld KB", (long long)(bytes / 1024));
}

/* Runs a statement without parameters but `now`. Rows of no statement and a finding when it fails.
 */
static enum weft_rc look(struct exam *exam, enum weft_stmt stmt, struct weft_rows *ret_rows,
                         struct weft_err *err)
{
    struct weft_call call;
    *ret_rows = (struct weft_rows){.stmt = WEFT_STMT_COUNT};
    weft_call_init(&call, exam->arena, stmt, 0);
    if (stmt == WEFT_STMT_EXAMINE_WORK)
        weft_in_examine_work(&call)->now = weft_clock_now(exam->engine->clock);
    if (stmt == WEFT_STMT_EXAMINE_INBOX)
        weft_in_examine_inbox(&call)->since = weft_clock_now(exam->engine->clock) - WEEK_US;
    enum weft_rc rc = weft_tx_once(exam->engine, WEFT_TX_READ, &call, exam->arena, ret_rows, err);
    if (!rc || rc == WEFT_UNAVAILABLE)
        return rc;
    found(exam, WEFT_FINDING_WARN, "look_failed",
          weft_arena_printf(exam->arena, "%s could not be answered: %s", weft_stmts[stmt].name,
                            err->text),
          "look at the permissions of weft's role");
    return WEFT_OK;
}

/* ---- Both stores ----------------------------------------------------------------------------- */

static enum weft_rc examine_schema(struct exam *exam, struct weft_err *err)
{
    struct weft_rows rows = {0};
    enum weft_rc rc = look(exam, WEFT_STMT_SCHEMA_READ, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    int64_t version = weft_out_schema_read(&rows)->version;
    bool same = version == (int64_t)weft_migration_count;
    found(exam, same ? WEFT_FINDING_OK : WEFT_FINDING_WARN, "schema",
          weft_arena_printf(exam->arena, "the schema has version %lld, this binary knows %zu",
                            (long long)version, weft_migration_count),
          "run the same version of weft everywhere");
    return WEFT_OK;
}

static bool has_index(const struct weft_rows *rows, const char *name)
{
    const struct weft_examine_indexes_out *row = weft_out_examine_indexes(rows);
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(row[i].name, name) == 0)
            return row[i].valid;
    return false;
}

static enum weft_rc examine_indexes(struct exam *exam, bool pg, struct weft_err *err)
{
    struct weft_rows rows;
    enum weft_rc rc = look(exam, WEFT_STMT_EXAMINE_INDEXES, &rows, err);
    if (rc || rows.stmt != WEFT_STMT_EXAMINE_INDEXES)
        return rc;
    const char *const *index = pg ? weft_indexes_pg : weft_indexes_sqlite, *missing = "";
    size_t expected = 0, absent = 0;
    for (; index[expected]; expected++) {
        if (has_index(&rows, index[expected]))
            continue;
        if (strlen(missing) < MISSING_MAX)
            missing = weft_arena_printf(exam->arena, "%s%s%s", missing, absent ? ", " : "",
                                        index[expected]);
        absent++;
    }
    if (absent > 0)
        found(exam, WEFT_FINDING_BAD, "indexes",
              weft_arena_printf(exam->arena, "%zu of %zu indexes are missing or invalid: %s",
                                absent, expected, missing),
              "create them again as sql/migrations has them, or REINDEX those that are invalid");
    else
        found(exam, WEFT_FINDING_OK, "indexes",
              weft_arena_printf(exam->arena, "all %zu indexes are there, and %zu others", expected,
                                rows.count - expected),
              NULL);
    return WEFT_OK;
}

static enum weft_rc examine_work(struct exam *exam, struct weft_err *err)
{
    struct weft_rows rows = {0};
    weft_usec now_us = weft_clock_now(exam->engine->clock);
    enum weft_rc rc = look(exam, WEFT_STMT_EXAMINE_WORK, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    const struct weft_examine_work_out *row = weft_out_examine_work(&rows);
    int64_t ready = row->ready;
    weft_usec waited_us = ready ? now_us - row->oldest_ready.value : 0;
    found(exam, judge(waited_us, 60 * MINUTE_US, WEFT_NEVER), "backlog",
          weft_arena_printf(exam->arena, "ready: %lld%s%s, running: %lld", (long long)ready,
                            ready ? ", the oldest since " : "",
                            ready ? age_text(exam, waited_us) : "", (long long)row->running),
          "look whether workers serve its lane, and whether the lane is paused or full");
    int64_t expired = row->expired;
    weft_usec late_us = expired ? now_us - row->oldest_expired.value : 0;
    found(exam, judge(late_us, 10 * WEFT_SECOND, MINUTE_US), "expired_leases",
          weft_arena_printf(exam->arena, "leases that ran out and were not taken back: %lld%s%s",
                            (long long)expired, expired ? ", the oldest since " : "",
                            expired ? age_text(exam, late_us) : ""),
          "no server and no worker runs the passes: start one");
    return WEFT_OK;
}

static void examine_clock(struct exam *exam)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    weft_usec here_us = (weft_usec)now.tv_sec * WEFT_SECOND + now.tv_nsec / 1000;
    weft_usec ahead_us = here_us - weft_clock_now(exam->engine->clock);
    weft_usec apart_us = ahead_us < 0 ? -ahead_us : ahead_us;
    found(exam, judge(apart_us, WEFT_SECOND, WEFT_NEVER), "clock",
          weft_arena_printf(exam->arena, "the clock of this machine is %s %s that of the store",
                            age_text(exam, apart_us), ahead_us < 0 ? "behind" : "ahead of"),
          "nothing depends on it, but times in logs will not agree: synchronize the clocks");
}

static enum weft_rc examine_replicas(struct exam *exam, struct weft_err *err)
{
    struct weft_findings findings = {0};
    enum weft_rc rc = weft_doctor_replicas(exam->engine, exam->arena, &findings, err);
    for (size_t i = 0; i < findings.count; i++)
        found(exam, findings.item[i].level, findings.item[i].what, findings.item[i].detail,
              findings.item[i].advice);
    return rc;
}

static enum weft_rc examine_invariants(struct exam *exam, struct weft_err *err)
{
    enum weft_rc rc = weft_engine_check(exam->engine, err);
    if (rc == WEFT_UNAVAILABLE)
        return rc;
    if (rc)
        found(exam, rc == WEFT_CORRUPT ? WEFT_FINDING_BAD : WEFT_FINDING_WARN, "invariants",
              weft_arena_strdup(exam->arena, err->text),
              rc == WEFT_CORRUPT ? "stop the servers and keep a copy of the store: this is a bug"
                                 : "try again when the store has less to do");
    else
        found(exam, WEFT_FINDING_OK, "invariants", "every row is where it must be and whole", NULL);
    return WEFT_OK;
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

static void judge_durability(struct exam *exam, const struct weft_rows *rows)
{
    const struct weft_examine_server_out *row = weft_out_examine_server(rows);
    const char *commit = row->synchronous_commit;
    bool fsync = row->fsync;
    bool pages = row->full_page_writes;
    bool waits = strcmp(commit, "off") != 0;
    found(exam, fsync && pages && waits ? WEFT_FINDING_OK : WEFT_FINDING_BAD, "durability",
          weft_arena_printf(exam->arena,
                            "fsync is %s, full_page_writes is %s, synchronous_commit is %s",
                            fsync ? "on" : "off", pages ? "on" : "off", commit),
          "switch all three on: accepted work may be lost in a crash otherwise");
}

static enum weft_rc examine_server(struct exam *exam, struct weft_err *err)
{
    struct weft_rows rows = {0};
    enum weft_rc rc = look(exam, WEFT_STMT_EXAMINE_SERVER, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    const struct weft_examine_server_out *row = weft_out_examine_server(&rows);
    bool standby = row->standby;
    found(exam, standby ? WEFT_FINDING_BAD : WEFT_FINDING_OK, "server",
          weft_arena_printf(exam->arena, "PostgreSQL %s%s", row->version,
                            standby ? ", a standby that cannot be written" : ""),
          "let the URL lead to the primary");
    found(exam, WEFT_FINDING_OK, "size",
          weft_arena_printf(exam->arena, "the database has %s", size_text(exam, row->bytes)), NULL);
    judge_durability(exam, &rows);
    bool autovacuum = row->autovacuum;
    found(exam, autovacuum ? WEFT_FINDING_OK : WEFT_FINDING_BAD, "autovacuum",
          autovacuum ? "autovacuum is on" : "autovacuum is off",
          "switch autovacuum and track_counts on: claims slow down with every dead row");
    int64_t used = row->connections;
    int64_t max = row->max_connections;
    found(exam, judge(used * 100 / (max ? max : 1), 80, 95), "connections",
          weft_arena_printf(exam->arena, "%lld of %lld connections are used", (long long)used,
                            (long long)max),
          "raise max_connections, or put a pooler in front of the applications");
    return WEFT_OK;
}

/* What applications submitted by SQL and did not become work. */
static enum weft_rc examine_inbox(struct exam *exam, struct weft_err *err)
{
    struct weft_rows rows = {0};
    enum weft_rc rc = look(exam, WEFT_STMT_EXAMINE_INBOX, &rows, err);
    if (rc || rows.stmt != WEFT_STMT_EXAMINE_INBOX)
        return rc;
    const char *detail = "submissions by SQL refused in the last week: ";
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_examine_inbox_out *row = &weft_out_examine_inbox(&rows)[i];
        char text[WEFT_ID_TEXT];
        weft_id_print(&row->example, text);
        detail = weft_arena_printf(exam->arena, "%s%s%lld (%s, as %s of namespace %s)", detail,
                                   i ? ", " : "", (long long)row->number, row->reason, text,
                                   row->namespace);
    }
    if (rows.count == 0)
        detail = weft_arena_printf(exam->arena, "%s0", detail);
    found(exam, rows.count ? WEFT_FINDING_WARN : WEFT_FINDING_OK, "inbox_refused", detail,
          "`weft show ID` says what was wrong with it: mend the application; rows under ids that "
          "are taken were removed: let weft_submit() make the ids");
    return WEFT_OK;
}

static enum weft_rc examine_sessions(struct exam *exam, struct weft_err *err)
{
    struct weft_rows rows = {0};
    enum weft_rc rc = look(exam, WEFT_STMT_EXAMINE_SESSIONS, &rows, err);
    if (rc || rows.stmt != WEFT_STMT_EXAMINE_SESSIONS)
        return rc;
    if (rows.count == 0) {
        found(exam, WEFT_FINDING_OK, "old_transaction", "no other transaction is open", NULL);
    } else {
        const struct weft_examine_sessions_out *row = weft_out_examine_sessions(&rows);
        long long pid = row->pid;
        weft_usec age_us = row->age;
        found(exam, judge(age_us, MINUTE_US, 15 * MINUTE_US), "old_transaction",
              weft_arena_printf(
                  exam->arena,
                  "the oldest transaction is open for %s: pid %lld, application '%s', user '%s', "
                  "%s, its last query began %s ago",
                  age_text(exam, age_us), pid, row->application, row->username, row->state,
                  age_text(exam, row->query_age)),
              weft_arena_printf(exam->arena,
                                "it keeps dead rows from being removed, which slows claims: end it "
                                "with SELECT pg_terminate_backend(%lld)",
                                pid));
    }
    return WEFT_OK;
}

static enum weft_rc examine_prepared(struct exam *exam, struct weft_err *err)
{
    struct weft_rows rows = {0};
    enum weft_rc rc = look(exam, WEFT_STMT_EXAMINE_PREPARED, &rows, err);
    if (rc || rows.stmt != WEFT_STMT_EXAMINE_PREPARED)
        return rc;
    if (rows.count == 0) {
        found(exam, WEFT_FINDING_OK, "prepared_transactions", "no transaction is prepared", NULL);
        return WEFT_OK;
    }
    const struct weft_examine_prepared_out *row = weft_out_examine_prepared(&rows);
    const char *gid = row->gid;
    weft_usec age_us = row->age;
    found(
        exam, judge(age_us, MINUTE_US, 15 * MINUTE_US), "prepared_transactions",
        weft_arena_printf(exam->arena, "%lld are prepared, the oldest ('%s' of %s) for %s",
                          (long long)row->number, gid, row->owner, age_text(exam, age_us)),
        weft_arena_printf(exam->arena, "COMMIT PREPARED '%s' or ROLLBACK PREPARED '%s'", gid, gid));
    return WEFT_OK;
}

static enum weft_rc examine_table(struct exam *exam, struct weft_err *err)
{
    enum { DEAD_FEW = 50000, ROW_BYTES_MAX = 2000 };
    struct weft_rows rows = {0};
    enum weft_rc rc = look(exam, WEFT_STMT_EXAMINE_TABLE, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    const struct weft_examine_table_out *row = weft_out_examine_table(&rows);
    const char *name = row->name;
    int64_t living = row->living;
    int64_t dead = row->dead;
    int64_t bytes = row->bytes;
    int64_t rows_all = living + dead, share = dead * 100 / (rows_all + 1);
    const char *vacuumed =
        row->vacuum_age.set
            ? weft_arena_printf(exam->arena, "%s ago", age_text(exam, row->vacuum_age.value))
            : "never";
    found(exam, dead < DEAD_FEW ? WEFT_FINDING_OK : judge(share, 50, 90), "dead_rows",
          weft_arena_printf(exam->arena,
                            "%s has %lld living and %lld dead rows (%lld %%), vacuumed %s", name,
                            (long long)living, (long long)dead, (long long)share, vacuumed),
          weft_arena_printf(exam->arena, "VACUUM %s, once no old transaction is open", name));
    bool bloated = bytes > 256 * MB && bytes / (rows_all + 1) > ROW_BYTES_MAX;
    found(exam, bloated ? WEFT_FINDING_WARN : WEFT_FINDING_OK, "bloat",
          weft_arena_printf(exam->arena, "%s has %s for %lld rows", name, size_text(exam, bytes),
                            (long long)rows_all),
          weft_arena_printf(exam->arena,
                            "its space is used again as it fills; VACUUM FULL %s gives it back, "
                            "and stops everything while it runs",
                            name));
    if (!row->autovacuum)
        found(exam, WEFT_FINDING_BAD, "autovacuum_of_table",
              weft_arena_printf(exam->arena, "autovacuum is off for %s", name),
              weft_arena_printf(exam->arena, "ALTER TABLE %s RESET (autovacuum_enabled)", name));
    return WEFT_OK;
}

static enum weft_rc examine_pg(struct exam *exam, struct weft_err *err)
{
    enum weft_rc rc = examine_server(exam, err);
    if (!rc)
        rc = examine_sessions(exam, err);
    if (!rc)
        rc = examine_prepared(exam, err);
    return rc ? rc : examine_table(exam, err);
}

/* ---- SQLite ---------------------------------------------------------------------------------- */

/* What the file system says of the file and of its log. */
static void examine_disk(struct exam *exam, const char *file)
{
    struct statvfs disk;
    struct stat info;
    if (statvfs(file, &disk) == 0) {
        int64_t left = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
        found(exam, judge(-left, -GB, -100 * MB), "disk",
              weft_arena_printf(exam->arena, "%s are free beside %s", size_text(exam, left), file),
              "make room: nothing is accepted when the disk is full");
    }
    const char *log = weft_arena_printf(exam->arena, "%s-wal", file);
    int64_t bytes = stat(log, &info) == 0 ? (int64_t)info.st_size : 0;
    found(exam, judge(bytes, 256 * MB, WEFT_NEVER), "wal",
          weft_arena_printf(exam->arena, "the write-ahead log has %s", size_text(exam, bytes)),
          "a reader keeps it from being folded into the file: end what reads the file for long");
}

static enum weft_rc examine_integrity(struct exam *exam, struct weft_err *err)
{
    struct weft_rows rows = {0};
    enum weft_rc rc = look(exam, WEFT_STMT_EXAMINE_INTEGRITY, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    const char *first = weft_out_examine_integrity(&rows)->problem;
    bool good = strcmp(first, "ok") == 0;
    found(exam, good ? WEFT_FINDING_OK : WEFT_FINDING_BAD, "integrity",
          good ? "the file is whole"
               : weft_arena_printf(exam->arena, "%zu problems, the first: %s", rows.count, first),
          "stop what uses the file and go back to a backup");
    return WEFT_OK;
}

static enum weft_rc examine_sqlite(struct exam *exam, struct weft_err *err)
{
    enum { SYNCHRONOUS_FULL = 2 };
    struct weft_rows rows = {0};
    enum weft_rc rc = look(exam, WEFT_STMT_EXAMINE_FILE, &rows, err);
    if (rc || rows.count == 0)
        return rc;
    const struct weft_examine_file_out *row = weft_out_examine_file(&rows);
    const char *mode = row->journal_mode;
    found(exam, strcmp(mode, "wal") == 0 ? WEFT_FINDING_OK : WEFT_FINDING_BAD, "journal_mode",
          weft_arena_printf(exam->arena, "journal_mode is %s", mode),
          "something changed it: the next weft that opens the file sets it back");
    bool full = row->synchronous >= SYNCHRONOUS_FULL;
    found(exam, full ? WEFT_FINDING_OK : WEFT_FINDING_WARN, "durability",
          full ? "synchronous is full"
               : "synchronous is normal: a power failure may take the last commits",
          "leave synchronous=normal out of the URL");
    found(exam, WEFT_FINDING_OK, "size",
          weft_arena_printf(exam->arena, "the file has %s, of which %s are free",
                            size_text(exam, row->bytes), size_text(exam, row->free_bytes)),
          NULL);
    examine_disk(exam, row->file);
    return examine_integrity(exam, err);
}

enum weft_rc weft_engine_examine(struct weft_engine *engine, struct weft_arena *arena,
                                 struct weft_findings *ret_findings, struct weft_err *err)
{
    bool pg = strcmp(engine->driver->name, weft_driver_pg.name) == 0;
    struct exam exam = {.engine = engine, .arena = arena};
    exam.item = weft_new_array(arena, struct weft_finding, FINDINGS_MAX);
    enum weft_rc rc = pg ? examine_pg(&exam, err) : examine_sqlite(&exam, err);
    if (!rc)
        rc = examine_schema(&exam, err);
    if (!rc)
        rc = examine_indexes(&exam, pg, err);
    examine_clock(&exam);
    if (!rc && pg)
        rc = examine_inbox(&exam, err);
    if (!rc)
        rc = examine_work(&exam, err);
    if (!rc)
        rc = examine_replicas(&exam, err);
    if (!rc)
        rc = examine_invariants(&exam, err);
    if (!rc)
        *ret_findings = (struct weft_findings){.item = exam.item, .count = exam.count};
    return rc;
}
