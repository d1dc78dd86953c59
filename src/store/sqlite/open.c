/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opening a file: reading the URL, refusing files that a parent process had open, checking that the
 * file is a weft database or empty before anything is written to it, and the settings of a
 * connection with its busy handler.
 */

#include "store/sqlite/sqlite.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    APPLICATION_ID = 0x77656674, /* "weft" */
    BUSY_MS_DEFAULT = 10000,
    BUSY_MS_MAX = 600000,
    SLEEP_FIRST_US = 100,
    SLEEP_MAX_US = 5000,
};

struct options {
    const char *path; /* in the arena */
    bool synchronous_full;
    weft_usec busy_us;
};

void weft_store_owns_process(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* if refused, SQLite keeps counting memory */
}

static enum weft_rc bad_url(struct weft_err *err, const char *text, const char *hint)
{
    return weft_hint(err, weft_invalid(err, "url", "%s", text), hint);
}

static enum weft_rc read_option(char *option, struct options *options, struct weft_err *err)
{
    char *value = strchr(option, '=');
    if (value)
        *value++ = '\0';
    if (value && strcmp(option, "synchronous") == 0) {
        options->synchronous_full = strcmp(value, "full") == 0;
        if (options->synchronous_full || strcmp(value, "normal") == 0)
            return WEFT_OK;
        return bad_url(err, "synchronous must be full or normal", NULL);
    }
    if (value && strcmp(option, "busy_ms") == 0) {
        char *end;
        errno = 0;
        long busy_ms = strtol(value, &end, 10);
        if (errno || end == value || *end || busy_ms < 0 || busy_ms > BUSY_MS_MAX)
            return bad_url(err, "busy_ms must be a number from 0 to 600000", NULL);
        options->busy_us = busy_ms * WEFT_MS;
        return WEFT_OK;
    }
    return bad_url(err, "a SQLite URL takes the options synchronous and busy_ms",
                   "write sqlite:PATH?synchronous=normal&busy_ms=5000");
}

static enum weft_rc read_url(const char *url, struct weft_arena *arena, struct options *ret_options,
                             struct weft_err *err)
{
    struct options options = {.synchronous_full = true, .busy_us = BUSY_MS_DEFAULT * WEFT_MS};
    assert(strncmp(url, "sqlite:", 7) == 0);
    char *path = weft_arena_strdup(arena, url + 7);
    char *rest = strchr(path, '?');
    if (rest)
        *rest++ = '\0';
    if (strcmp(path, ":memory:") == 0)
        return bad_url(err, "a database in memory is not durable", "name a file: sqlite:weft.db");
    if (*path == '\0')
        return bad_url(err, "the URL names no file", "name a file: sqlite:weft.db");
    if (strncmp(path, "//", 2) == 0 && path[2] != '/')
        return bad_url(err, "sqlite:// is followed by a host, and a file has none",
                       "write sqlite:weft.db or sqlite:/var/lib/weft/weft.db");

    for (char *saved = NULL, *option = rest ? strtok_r(rest, "&", &saved) : NULL; option;
         option = strtok_r(NULL, "&", &saved)) {
        enum weft_rc rc = read_option(option, &options, err);
        if (rc)
            return rc;
    }
    /* A name such as file:x would be read as a URI by SQLite; a path with a dot never is. */
    options.path = *path == '/' ? path : weft_arena_printf(arena, "./%s", path);
    *ret_options = options;
    return WEFT_OK;
}

/* ---- Files that the parent process had open at fork() ---------------------------------------- */

/*
 * SQLite keeps a record of the process's locks per file, and a child inherits the record but not
 * the locks. A new connection of the child to such a file would assume locks that it does not hold:
 * once the parent closes the file, SQLite removes the write-ahead log under the child, whose next
 * commits are acknowledged and lost. So this driver keeps a list of open files, and refuses to open
 * one that a parent had open at the fork.
 *
 * The list holds each connection from its opening to its closing. The lock is held over fork(), so
 * that a child always finds it free and the list consistent.
 */
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t lock_over_forks = PTHREAD_ONCE_INIT;
static struct weft_lite_file *first_file;

static void take_lock(void)
{
    pthread_mutex_lock(&files_lock);
}

static void give_lock(void)
{
    pthread_mutex_unlock(&files_lock);
}

static void watch_forks(void)
{
    if (pthread_atfork(take_lock, give_lock, give_lock))
        weft_oom(0); /* ENOMEM is its only failure */
}

static enum weft_rc check_inherited(const char *path, struct weft_err *err)
{
    struct stat info;
    assert(path); /* read_url() sets it */
    if (stat(path, &info) != 0)
        return WEFT_OK; /* a new file, or opening it will fail */
    uint64_t forks = weft_forks();
    bool inherited = false;
    (void)pthread_once(&lock_over_forks, watch_forks);
    pthread_mutex_lock(&files_lock);
    for (const struct weft_lite_file *file = first_file; file && !inherited; file = file->next)
        inherited = file->forks != forks && file->device == (uint64_t)info.st_dev &&
                    file->inode == (uint64_t)info.st_ino;
    pthread_mutex_unlock(&files_lock);
    if (!inherited)
        return WEFT_OK;
    return weft_hint(err,
                     weft_fail(err, WEFT_MISUSE,
                               "%s was open in the parent when fork() made this process", path),
                     "SQLite loses data in this case: open the file only after fork(), or exec()");
}

static void note_open(struct weft_lite_file *file, const char *path)
{
    struct stat info;
    assert(path); /* read_url() sets it */
    if (stat(path, &info) != 0)
        return;
    file->device = (uint64_t)info.st_dev;
    file->inode = (uint64_t)info.st_ino;
    file->forks = weft_forks();
    (void)pthread_once(&lock_over_forks, watch_forks);
    pthread_mutex_lock(&files_lock);
    file->next = first_file;
    first_file = file;
    pthread_mutex_unlock(&files_lock);
}

/* Also for a file that was not noted. */
static void note_closed(struct weft_lite_file *file)
{
    pthread_mutex_lock(&files_lock);
    for (struct weft_lite_file **at = &first_file; *at; at = &(*at)->next) {
        if (*at == file) {
            *at = file->next;
            break;
        }
    }
    pthread_mutex_unlock(&files_lock);
}

/* ---- Waiting for the write lock -------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

/*
 * The busy handler. SQLite's own busy timeout sleeps in steps of up to 100 ms, which starves a
 * writer next to a busy one. This one sleeps 0.1 ms at first and 5 ms at most, with jitter, so that
 * two writers do not keep missing each other.
 */
static int on_busy(void *arg, int count)
{
    struct weft_lite *lite = arg;
    weft_usec now_us = weft_boot_us();
    if (count == 0)
        lite->busy_since_us = now_us;
    if (now_us - lite->busy_since_us >= lite->busy_us)
        return 0;

    int64_t sleep_us = SLEEP_FIRST_US << (count < 6 ? count : 6);
    if (sleep_us > SLEEP_MAX_US)
        sleep_us = SLEEP_MAX_US;
    sleep_us = sleep_us / 2 + (int64_t)(next_random(&lite->jitter) % (uint64_t)sleep_us) / 2;
    struct timespec pause = {.tv_nsec = (long)sleep_us * 1000};
    (void)nanosleep(&pause, NULL);
    return 1;
}

/* ---- Opening --------------------------------------------------------------------------------- */

#define forbidden(err, ...)                                                                        \
    weft_hint(err, weft_fail(err, WEFT_FORBIDDEN, __VA_ARGS__), weft_lite_permission)

/* Whether the effective ids of this process lack the access `mode` to the path. */
static bool is_denied(const char *path, int mode)
{
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS) != 0 &&
           (errno == EACCES || errno == EPERM || errno == EROFS);
}

/*
 * Finds the reason why SQLite is "unable to open database file". Its errno does not show a lack of
 * permission: SQLite tries to open a file that it could not create for reading, and keeps the errno
 * of that second failure, "no such file".
 */
static enum weft_rc explain_open(struct weft_lite *lite, const char *path, int code,
                                 struct weft_err *err)
{
    struct stat info;
    assert(path);
    if ((code & 0xff) != SQLITE_CANTOPEN && (code & 0xff) != SQLITE_READONLY)
        return weft_lite_fail(lite, code, err, path);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return weft_invalid(err, "url", "%s is a directory, not a file", path);
    const char *slash = strrchr(path, '/');
    const char *folder = weft_arena_printf(lite->arena, "%.*s", (int)(slash - path) + 1, path);
    if (stat(folder, &info) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return weft_hint(
            err,
            weft_fail_field(err, WEFT_NOT_FOUND, "url", "the folder of %s does not exist", path),
            "create the folder first");
    if (is_denied(folder, W_OK | X_OK))
        return forbidden(err, "no file can be created in %s", folder);
    if (is_denied(path, R_OK | W_OK))
        return forbidden(err, "%s cannot be read and written", path);
    return weft_lite_fail(lite, code, err, path);
}

int weft_lite_ask(sqlite3 *db, const char *sql, int64_t *ret_number)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(stmt);
        if (code == SQLITE_ROW && ret_number)
            *ret_number = sqlite3_column_int64(stmt, 0);
    }
    sqlite3_finalize(stmt);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static enum weft_rc check_ours(struct weft_lite *lite, const char *path, struct weft_err *err)
{
    int64_t id = 0, objects = 0;
    /* In one transaction, or a process that creates the first tables could come in between. */
    int code = weft_lite_ask(lite->db, "BEGIN", NULL);
    if (code == SQLITE_OK)
        code = weft_lite_ask(lite->db, "PRAGMA application_id", &id);
    if (code == SQLITE_OK)
        code = weft_lite_ask(lite->db, "SELECT count(*) FROM sqlite_schema", &objects);
    if (code == SQLITE_OK)
        code = weft_lite_ask(lite->db, "COMMIT", NULL);
    if (code != SQLITE_OK)
        return explain_open(lite, path, code, err);
    if (id == APPLICATION_ID || (id == 0 && objects == 0))
        return WEFT_OK;
    return weft_hint(err, weft_fail(err, WEFT_SCHEMA, "%s is not a weft database", path),
                     "give the path of a file that does not exist yet; nothing was changed");
}

/*
 * While another process switches the log on, SQLite answers BUSY at once instead of calling the
 * busy handler.
 */
static int set_wal(struct weft_lite *lite)
{
    int code;
    int count = 0;
    do {
        code = weft_lite_ask(lite->db, "PRAGMA journal_mode = wal", NULL);
    } while ((code & 0xff) == SQLITE_BUSY && on_busy(lite, count++));
    return code;
}

int weft_lite_use_triggers(sqlite3 *db, bool on)
{
    return sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, on ? 1 : 0, (int *)NULL);
}

static enum weft_rc set_up(struct weft_lite *lite, const struct options *options,
                           struct weft_err *err)
{
    const char *setting[] = {
        weft_lite_synchronous(options->synchronous_full),
        "PRAGMA cache_size = -2000", /* 16 MB were 3 to 5 % slower, 64 MB 15 to 30 %: measured */
        "PRAGMA temp_store = memory",
        "PRAGMA secure_delete = on", /* the default of Debian's library; see weft_lite_forget() */
        "PRAGMA foreign_keys = off",
        "PRAGMA journal_size_limit = 67108864",
    };
    int code = set_wal(lite);
    for (size_t i = 0; code == SQLITE_OK && i < WEFT_LEN(setting); i++)
        code = weft_lite_ask(lite->db, setting[i], NULL);
    if (code == SQLITE_OK)
        code = weft_lite_use_triggers(lite->db, false);
    if (code != SQLITE_OK)
        return explain_open(lite, options->path, code, err);
    (void)sqlite3_wal_hook(lite->db, weft_lite_on_wal, lite);
    return WEFT_OK;
}

static enum weft_rc prepare_commands(struct weft_lite *lite, struct weft_err *err)
{
    static const char *const text[WEFT_LITE_COMMAND_COUNT] = {
        [WEFT_LITE_BEGIN] = "BEGIN",
        [WEFT_LITE_BEGIN_IMMEDIATE] = "BEGIN IMMEDIATE",
        [WEFT_LITE_COMMIT] = "COMMIT",
        [WEFT_LITE_ROLLBACK] = "ROLLBACK",
    };
    for (size_t i = 0; i < WEFT_LITE_COMMAND_COUNT; i++) {
        int code = sqlite3_prepare_v3(lite->db, text[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &lite->command[i], NULL);
        if (code != SQLITE_OK)
            return weft_lite_fail(lite, code, err, text[i]);
    }
    return WEFT_OK;
}

/* weft_partition(id): the partition of an id; NULL if the argument is not an id. */
static void partition_of(sqlite3_context *context, int count, sqlite3_value **value)
{
    assert(count == 1);
    struct weft_id id;
    const void *bytes = sqlite3_value_blob(value[0]);
    if (!bytes || sqlite3_value_bytes(value[0]) != (int)sizeof(id.byte))
        return;
    memcpy(id.byte, bytes, sizeof(id.byte));
    sqlite3_result_int(context, weft_id_partition(&id));
}

int weft_lite_add_functions(sqlite3 *db)
{
    return sqlite3_create_function(db, "weft_partition", 1,
                                   SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
                                   partition_of, NULL, NULL);
}

/*
 * Payloads may hold secrets, so a new database is readable only by its owner, whatever the umask;
 * SQLite gives the files beside it the same mode. An existing file keeps its mode.
 *
 * mknod() and not open(): closing a file drops all POSIX locks that this process has on it, also
 * the locks of a connection that another thread has opened meanwhile. If the file cannot be
 * created, SQLite fails next, and explain_open() finds the reason.
 */
static void create_file(const char *path)
{
    assert(path);
    (void)mknod(path, S_IFREG | S_IRUSR | S_IWUSR, 0);
}

static enum weft_rc open_file(struct weft_lite *lite, const struct options *options,
                              struct weft_err *err)
{
    enum weft_rc rc = check_inherited(options->path, err);
    if (rc)
        return rc;
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    create_file(options->path);
    int code = sqlite3_open_v2(options->path, &lite->db, flags, NULL);
    if (!lite->db)
        weft_oom(sizeof(*lite));
    (void)sqlite3_extended_result_codes(lite->db, 1);
    if (code != SQLITE_OK)
        return explain_open(lite, options->path, code, err);
    note_open(&lite->file, options->path);
    (void)sqlite3_busy_handler(lite->db, on_busy, lite);
    /*
     * Before the first statement: reading a database in WAL mode creates the log and its index with
     * the permissions of the file, and a connection that cannot write leaves them behind:
     * read-only, even after the file has become writable.
     */
    if (sqlite3_db_readonly(lite->db, "main") == 1)
        return forbidden(err, "%s cannot be written", options->path);

    rc = check_ours(lite, options->path, err);
    if (rc)
        return rc;
    code = weft_lite_add_input(lite);
    if (code == SQLITE_OK)
        code = weft_lite_add_functions(lite->db);
    if (code != SQLITE_OK)
        return weft_lite_fail(lite, code, err, options->path);
    rc = set_up(lite, options, err);
    return rc ? rc : prepare_commands(lite, err);
}

bool weft_lite_absent(const char *url)
{
    struct weft_arena *arena = weft_arena_new();
    struct options options = {0};
    struct stat info;
    bool absent = false;
    if (read_url(url, arena, &options, NULL) == WEFT_OK) {
        if (stat(options.path, &info) == 0)
            absent = S_ISREG(info.st_mode) && info.st_size == 0;
        else
            absent = errno == ENOENT || errno == ENOTDIR;
    }
    weft_arena_free(arena);
    return absent;
}

enum weft_rc weft_lite_open(const char *url, struct weft_conn **ret_conn, struct weft_err *err)
{
    struct options options = {0};
    struct weft_lite *lite = weft_alloc(1, sizeof(*lite));
    lite->conn.driver = &weft_driver_sqlite;
    lite->arena = weft_arena_new();
    lite->jitter = (uint64_t)weft_boot_us() ^ (uint64_t)(uintptr_t)lite;

    enum weft_rc rc = read_url(url, lite->arena, &options, err);
    if (!rc) {
        lite->busy_us = options.busy_us;
        lite->synchronous_full = options.synchronous_full;
        rc = open_file(lite, &options, err);
    }
    if (rc) {
        weft_lite_close(&lite->conn);
        return rc;
    }
    *ret_conn = &lite->conn;
    return WEFT_OK;
}

void weft_lite_close(struct weft_conn *conn)
{
    if (!conn)
        return;
    struct weft_lite *lite = weft_lite_of(conn);
    weft_lite_stop_checkpoints(lite);
    for (size_t i = 0; i < WEFT_STMT_COUNT; i++)
        for (size_t j = 0; j < lite->stmt[i].count; j++)
            sqlite3_finalize(lite->stmt[i].part[j].stmt);
    for (size_t i = 0; i < WEFT_LITE_COMMAND_COUNT; i++)
        sqlite3_finalize(lite->command[i]);
    sqlite3_close(lite->db);
    note_closed(&lite->file);
    weft_arena_free(lite->arena);
    free(lite);
}
