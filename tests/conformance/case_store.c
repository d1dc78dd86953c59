/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stores that are not what they should be: damaged, foreign, forbidden, locked, full. Each is one
 * clear error with a code of its own; a foreign file or schema is left as it is.
 */

#include "conformance.h"
#include "direct.h"

#include "base/arena.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tries to open; a success is closed again. */
static enum weft_rc try_open(const struct weft_engine_config *config, struct weft_err *err)
{
    struct weft_engine *engine = NULL;
    *err = (struct weft_err){0};
    enum weft_rc rc = weft_engine_open(config, &engine, err);
    weft_engine_close(engine);
    return rc;
}

static void expect_refused(const char *url, enum weft_rc want, const char *name)
{
    struct weft_err err;
    enum weft_rc rc = try_open(&(struct weft_engine_config){.url = url}, &err);
    ok(rc == want && err.rc == want, "%s: %s (got %s)", name, weft_rc_wire(want), weft_rc_wire(rc));
    ok(rc && err.text[0], "%s: the error has a text: %s", name, rc ? err.text : "");
}

CASE(store_bad_urls)
{
    static const char *const url[] = {"",
                                      "weft.db",
                                      "mysql://localhost/x",
                                      "sqlite:",
                                      "sqlite::memory:",
                                      "sqlite://host/x.db",
                                      "sqlite:x.db?nope=1",
                                      "postgres://%zz/"};
    for (size_t i = 0; i < WEFT_LEN(url); i++) {
        struct weft_err err;
        (void)try_open(&(struct weft_engine_config){.url = url[i]}, &err);
        expect_err(&err, WEFT_INVALID_VALUE, "url", url[i]);
    }
    (void)f;
}

/* ---- SQLite ---------------------------------------------------------------------------------- */

static bool on_sqlite(const struct fixture *f)
{
    if (strcmp(f->store, "sqlite") == 0)
        return true;
    tap_skip("this is about files");
    return false;
}

/* A path beside the store of the case. */
static const char *beside(struct fixture *f, const char *suffix)
{
    return weft_arena_printf(f->arena, "%s%s", f->url + strlen("sqlite:"), suffix);
}

static const char *url_of(struct fixture *f, const char *path)
{
    return weft_arena_printf(f->arena, "sqlite:%s", path);
}

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(data, 1, size, file) == size;
    if (file)
        good &= fclose(file) == 0;
    if (!good)
        ok(false, "%s is written", path);
}

static char *read_file(struct fixture *f, const char *path, size_t *ret_size)
{
    struct stat info = {0};
    FILE *file = fopen(path, "rb");
    if (!file || stat(path, &info) != 0)
        ok(false, "%s is read", path);
    char *data = weft_arena_alloc(f->arena, (size_t)info.st_size + 1, 1);
    *ret_size = file ? fread(data, 1, (size_t)info.st_size, file) : 0;
    if (file)
        (void)fclose(file);
    return data;
}

static void remove_file(struct fixture *f, const char *path)
{
    (void)unlink(path);
    (void)unlink(weft_arena_printf(f->arena, "%s-wal", path));
    (void)unlink(weft_arena_printf(f->arena, "%s-shm", path));
}

/* A store with something in it, closed and whole in one file. */
static const char *make_store(struct fixture *f, const char *suffix)
{
    const char *path = beside(f, suffix);
    struct weft_engine *engine = NULL;
    const struct weft_engine_config config = {.url = url_of(f, path)};
    struct weft_submitted answer;
    if (weft_engine_open(&config, &engine, &f->err) ||
        engine_submit(engine, "default", &(struct weft_spec){.kind = "job"}, 1, &answer, &f->err))
        ok(false, "a store is made: %s", f->err.text);
    weft_engine_close(engine);
    return path;
}

CASE(store_file_damaged)
{
    if (!on_sqlite(f))
        return;
    const char *path = make_store(f, "-damaged");
    size_t size;
    char *data = read_file(f, path, &size);
    ok(size > (size_t)3 * 4096, "the store is whole in one file");
    write_file(path, data, size / 2 / 4096 * 4096);
    expect_refused(url_of(f, path), WEFT_CORRUPT, "cut in half");
    char *copy = weft_arena_dup(f->arena, data, size);
    memset(copy, 0x5a, 4096);
    write_file(path, copy, size);
    expect_refused(url_of(f, path), WEFT_CORRUPT, "the first page overwritten");
    copy = weft_arena_dup(f->arena, data, size);
    memset(copy + 100, 0x5a, 64);
    write_file(path, copy, size);
    expect_refused(url_of(f, path), WEFT_CORRUPT, "the schema's page overwritten");
    write_file(path, data, size);
    struct weft_err err;
    is_int(try_open(&(struct weft_engine_config){.url = url_of(f, path)}, &err), WEFT_OK,
           "the original opens");
    remove_file(f, path);
}

CASE(store_file_not_a_database)
{
    static const char text[] =
        "Dear diary,\n\nthis is certainly not a database. It is longer than "
        "the header of one, so that it is not taken for an empty file.\n";
    if (!on_sqlite(f))
        return;
    const char *path = beside(f, "-text");
    write_file(path, text, sizeof(text) - 1);
    expect_refused(url_of(f, path), WEFT_CORRUPT, "a text");
    write_file(path, "tiny", 4);
    expect_refused(url_of(f, path), WEFT_CORRUPT, "a short text");
    size_t size;
    char *data = read_file(f, path, &size);
    ok(size == 4 && memcmp(data, "tiny", 4) == 0, "the refused file is unchanged");
    remove_file(f, path);
}

CASE(store_file_foreign)
{
    if (!on_sqlite(f))
        return;
    /* A store without its mark is a foreign database with tables in it. */
    const char *path = make_store(f, "-foreign");
    size_t size, after;
    char *data = read_file(f, path, &size);
    memset(data + 68, 0, 4);
    write_file(path, data, size);
    expect_refused(url_of(f, path), WEFT_SCHEMA, "a database without our mark");
    memcpy(data + 68, "GPKG", 4);
    write_file(path, data, size);
    expect_refused(url_of(f, path), WEFT_SCHEMA, "a database with a foreign application id");
    char *now = read_file(f, path, &after);
    ok(after == size && memcmp(now, data, size) == 0, "the refused file is unchanged");
    remove_file(f, path);
}

CASE(store_file_wrong_place)
{
    if (!on_sqlite(f))
        return;
    const char *folder = beside(f, "-folder");
    is_int(mkdir(folder, 0700), 0, "a folder");
    expect_refused(url_of(f, folder), WEFT_INVALID_VALUE, "a folder");
    (void)rmdir(folder);
    expect_refused(url_of(f, weft_arena_printf(f->arena, "%s/none/x.db", folder)), WEFT_NOT_FOUND,
                   "a folder that is not there");
    const char *path = beside(f, "");
    expect_refused(url_of(f, weft_arena_printf(f->arena, "%s/x.db", path)), WEFT_NOT_FOUND,
                   "a file where a folder should be");
    write_file(folder, "", 0);
    struct weft_err err;
    is_int(try_open(&(struct weft_engine_config){.url = url_of(f, folder)}, &err), WEFT_OK,
           "an empty file is as good as none");
    remove_file(f, folder);
}

/* Opens without rights; root has all rights, so it becomes an ordinary user first. */
static int open_without_rights(const char *url)
{
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        const struct passwd *user = getpwnam("nobody");
        struct weft_err err;
        if (geteuid() == 0 && (!user || setgid(user->pw_gid) || setuid(user->pw_uid)))
            _exit(WEFT_RC_COUNT);
        _exit((int)try_open(&(struct weft_engine_config){.url = url}, &err));
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : -1;
}

CASE(store_file_forbidden)
{
    if (!on_sqlite(f))
        return;
    const char *path = make_store(f, "-forbidden");
    static const struct {
        const char *name;
        mode_t mode;
    } row[] = {{"unreadable", 0}, {"read only", 0444}};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        is_int(chmod(path, row[i].mode), 0, "%s: made so", row[i].name);
        int rc = open_without_rights(url_of(f, path));
        if (rc == WEFT_RC_COUNT)
            tap_skip("there is no user without rights");
        else
            is_int(rc, WEFT_FORBIDDEN, "%s: forbidden", row[i].name);
    }
    remove_file(f, path);
    const char *folder = beside(f, "-closed");
    is_int(mkdir(folder, 0555), 0, "a folder that may be read but not written");
    is_int(open_without_rights(url_of(f, weft_arena_printf(f->arena, "%s/x.db", folder))),
           WEFT_FORBIDDEN, "a new file there: forbidden");
    (void)rmdir(folder);
}

CASE(store_file_locked)
{
    if (!on_sqlite(f))
        return;
    const char *url = weft_arena_printf(f->arena, "%s?busy_ms=1", f->url);
    struct weft_engine *engine = NULL;
    is_int(weft_engine_open(&(struct weft_engine_config){.url = url}, &engine, &f->err), WEFT_OK,
           "a process without patience");
    struct weft_conn *conn = NULL;
    enum weft_rc rc = weft_driver_sqlite.open(f->url, &conn, &f->err);
    if (!rc)
        rc = weft_driver_sqlite.begin(conn, WEFT_TX_WRITE, &f->err);
    is_int(rc, WEFT_OK, "another connection holds the write lock");
    const struct weft_spec spec = {.kind = "job"};
    struct weft_submitted answer;
    struct weft_err err = {0};
    is_int(engine_submit(engine, "default", &spec, 1, &answer, &err), WEFT_BUSY, "busy");
    ok(err.text[0], "the busy answer has a text: %s", err.text);
    weft_driver_sqlite.rollback(conn);
    is_int(engine_submit(engine, "default", &spec, 1, &answer, &err), WEFT_OK,
           "the submission succeeds when the lock is gone");
    is_int(count_rows(f, &(struct weft_filter){0}), 1, "the execution was submitted once");
    weft_conn_close(conn);
    weft_engine_close(engine);
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

CASE(store_server_not_there)
{
    if (!only_on_pg(f, "this is about PostgreSQL"))
        return;
    /* Of a parameter given twice, libpq and weft take the last. */
    expect_refused(weft_arena_printf(f->arena, "%s&dbname=weft_no_such_database", f->url),
                   WEFT_NOT_FOUND, "a database that does not exist");
    expect_refused(weft_arena_printf(f->arena, "%s&host=/nonexistent", f->url), WEFT_UNAVAILABLE,
                   "no server at the socket");
    expect_refused(weft_arena_printf(f->arena, "%s&user=weft_no_such_role", f->url), WEFT_FORBIDDEN,
                   "a role that does not exist");
}

CASE(store_schema_foreign)
{
    if (!only_on_pg(f, "this is about PostgreSQL"))
        return;
    /* The name is made of the schema's own, so that cases of other runs are not met. */
    run_sql(f, "CREATE TABLE weft.neighbour (x int)");
    const char *schema = strstr(f->url, "weft_schema=") + strlen("weft_schema=");
    run_sql(f, weft_arena_printf(f->arena, "CREATE SCHEMA %s_f; CREATE TABLE %s_f.diary (day text)",
                                 schema, schema));
    expect_refused(weft_arena_printf(f->arena, "%s_f", f->url), WEFT_SCHEMA,
                   "a schema with foreign tables");
    run_sql(f, weft_arena_printf(f->arena, "DROP TABLE %s_f.diary; DROP SCHEMA %s_f", schema,
                                 schema)); /* fails if anything was added */
    struct weft_err err;
    is_int(try_open(&(struct weft_engine_config){.url = f->url}, &err), WEFT_OK,
           "a table of others beside ours does no harm");
}

CASE(store_role_without_rights)
{
    if (!only_on_pg(f, "this is about PostgreSQL"))
        return;
    const char *schema = strstr(f->url, "weft_schema=") + strlen("weft_schema=");
    run_sql(f, weft_arena_printf(f->arena, "CREATE ROLE %s_role LOGIN", schema));
    expect_refused(weft_arena_printf(f->arena, "%s&user=%s_role", f->url, schema), WEFT_FORBIDDEN,
                   "a role that may not use the schema");
    expect_refused(weft_arena_printf(f->arena, "%s_new&user=%s_role", f->url, schema),
                   WEFT_FORBIDDEN, "a role that may not create one");
    run_sql(f, weft_arena_printf(f->arena, "DROP ROLE %s_role", schema));
}

/* ---- Both ------------------------------------------------------------------------------------ */

CASE(store_not_migrated)
{
    const char *url = weft_arena_printf(f->arena, "%s_empty", f->url);
    struct weft_err err;
    is_int(try_open(&(struct weft_engine_config){.url = url, .no_migrate = true}, &err),
           WEFT_SCHEMA, "an empty store is refused when it may not be filled");
    is_int(try_open(&(struct weft_engine_config){.url = url, .no_migrate = true}, &err),
           WEFT_SCHEMA, "the refused open left the store empty");
    is_int(try_open(&(struct weft_engine_config){.url = f->url, .no_migrate = true}, &err), WEFT_OK,
           "one that is up to date is not");
    if (strcmp(f->store, "sqlite") == 0)
        remove_file(f, beside(f, "_empty"));
}

/* A store that must exist is never created, and an empty file is none. */
CASE(store_must_exist)
{
    bool file = strcmp(f->store, "sqlite") == 0;
    const char *url = weft_arena_printf(f->arena, "%s_absent", f->url);
    const char *path = file ? beside(f, "_absent") : NULL;
    const struct weft_engine_config config = {.url = url, .must_exist = true};
    struct weft_err err = {0};
    is_int(try_open(&config, &err), WEFT_NOT_FOUND, "a store that is not there is not found");
    ok(strncmp(err.text, "there is no store at ", 21) == 0, "the message: %s", err.text);
    ok(err.hint && strstr(err.hint, "check the path"), "the hint says what to do");
    is_int(try_open(&config, &err), WEFT_NOT_FOUND, "the first refusal created nothing");
    if (file) {
        ok(access(path, F_OK) != 0, "there is no file");
        FILE *empty = fopen(path, "w");
        ok(empty && fclose(empty) == 0, "an empty file");
        is_int(try_open(&config, &err), WEFT_NOT_FOUND, "an empty file is no store");
        struct stat info;
        ok(stat(path, &info) == 0 && info.st_size == 0, "the refused open left the file empty");
        const struct weft_engine_config nowhere = {.url = "sqlite:/nowhere/at/all.db",
                                                   .must_exist = true};
        is_int(try_open(&nowhere, &err), WEFT_NOT_FOUND, "a folder that is not there");
        ok(strncmp(err.text, "there is no store at ", 21) == 0,
           "a missing folder has the same message");
    }
    is_int(try_open(&(struct weft_engine_config){.url = url}, &err), WEFT_OK, "created");
    is_int(try_open(&config, &err), WEFT_OK, "the created store is found");
    if (file)
        remove_file(f, path);
    else
        run_sql(f, weft_arena_printf(f->arena, "DROP SCHEMA %s_absent CASCADE",
                                     strstr(f->url, "weft_schema=") + strlen("weft_schema=")));
}

/* The disk is full at the Nth call of an operation, for every N until it gets through. */
CASE(store_full_submit)
{
    struct weft_fault fault = {.kind = WEFT_FAULT_FULL};
    struct weft_engine *engine = open_faulty(f, &fault);
    struct weft_spec spec[3] = {{.kind = "job"}, {.kind = "job"}, {.kind = "job"}};
    struct weft_submitted answer[3];
    size_t written = 0, wrong = 0, strikes = 0;
    for (uint64_t n = 1; n < 100; n++) {
        spec[0].lane = weft_arena_printf(f->arena, "lane%d", (int)n); /* names must be interned */
        fault.strike_at = n;
        fault.struck = false;
        struct weft_err err = {0};
        enum weft_rc rc = engine_submit(engine, "default", spec, 3, answer, &err);
        if (!fault.struck) {
            is_int(rc, WEFT_OK, "when there is space all is well");
            written += 3;
            break;
        }
        strikes++;
        wrong += rc != WEFT_STORAGE_FULL || err.rc != WEFT_STORAGE_FULL || !err.text[0];
        wrong += count_rows(f, &(struct weft_filter){0}) != written;
        fault.strike_at = 0;
        wrong += engine_submit(engine, "default", spec, 3, answer, &err) != WEFT_OK;
        written += 3;
    }
    ok(strikes >= 5, "the fault struck %zu times", strikes);
    is_int(wrong, 0, "each time: storage_full, nothing written, and it goes on afterwards");
    is_int(count_rows(f, &(struct weft_filter){0}), written, "all that was accepted is there");
    weft_engine_close(engine);
}

CASE(store_full_claim_and_complete)
{
    struct weft_fault fault = {.kind = WEFT_FAULT_FULL};
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 100);
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .max_running = 50});
    struct weft_engine *engine = open_faulty(f, &fault);
    size_t wrong = 0, strikes = 0, done = 0;
    for (uint64_t n = 1; n < 50; n++) {
        fault.strike_at = n;
        fault.struck = false;
        struct weft_err err = {0};
        struct weft_arena *arena = weft_arena_new();
        struct weft_claim_result got = {0};
        const struct weft_claim args = {.worker = "w", .max = 2};
        enum weft_rc rc = weft_engine_claim(engine, "default", &args, 1, arena, &got, &err);
        if (rc) {
            wrong += rc != WEFT_STORAGE_FULL;
            wrong += count_rows(f, &(struct weft_filter){.state = WEFT_STATE_RUNNING}) != 0;
            fault.strike_at = 0;
            wrong += weft_engine_claim(engine, "default", &args, 1, arena, &got, &err) != WEFT_OK;
            fault.strike_at = n;
        }
        wrong += got.count != 2;
        for (size_t i = 0; i < got.count; i++) {
            const struct weft_complete item = {.id = got.item[i].id, .epoch = got.item[i].epoch};
            struct weft_lease_answer answer;
            rc = engine_complete(engine, &item, 1, &answer, &err);
            wrong += rc != WEFT_OK && rc != WEFT_STORAGE_FULL;
            if (rc && engine_complete(engine, &item, 1, &answer, &err))
                wrong++;
            done += answer.err.rc == WEFT_OK && answer.state == WEFT_STATE_SUCCEEDED;
        }
        weft_arena_free(arena);
        strikes += fault.struck;
        if (!fault.struck)
            break;
    }
    ok(strikes >= 5, "the fault struck %zu times", strikes);
    is_int(wrong, 0, "each time: storage_full, no lease is lost, and it goes on afterwards");
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_SUCCEEDED}), done,
           "as many have succeeded as were acknowledged");
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_READY}), 100 - done,
           "the others are ready");
    weft_engine_close(engine);
}
