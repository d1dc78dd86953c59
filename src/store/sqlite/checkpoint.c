/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keeping the write-ahead log short.
 *
 * A checkpoint copies the log into the file and waits for the disk, which takes as long as many
 * commits. By default SQLite lets the commit that finds the log long do this while it holds the
 * write lock, so all other writers wait. Here a thread does it, on a connection of its own. It
 * starts when a connection first sees a log of FEW_FRAMES, so that processes that write little
 * never have one, and ends with that connection.
 *
 *  1. Past CHECKPOINT_FRAMES new frames the thread makes a passive checkpoint. That takes no lock
 *     that a writer or a reader needs, and is safe beside both: pages go to the file only from
 *     frames that the disk has, no further than the oldest snapshot in use, and the log counts them
 *     as copied only after the disk has the file.
 *  2. The log starts over when a writer begins and finds all frames copied. Under steady writing
 *     there are always frames newer than the start of the thread's checkpoint, so past
 *     FINISH_FRAMES a commit copies these few itself: it holds this process's only writer.
 *  3. From FINISH_FRAMES on, while the thread has a step to make, the store is `behind`: the engine
 *     holds transactions that write much back, without the write lock, so that small ones of other
 *     callers never meet the next rule. On a disk that takes 100 MB/s, beside 200 clients that
 *     submit payloads of 1 MB, small submits had a p99 of 300 ms without this.
 *  4. Past PRESS_FRAMES the thread is too slow, or other processes write too. A commit waits for
 *     the thread and then makes a checkpoint that blocks all other writers.
 *  5. A reader that stays open stops all of these. Past TRUNCATE_FRAMES a commit tries a checkpoint
 *     that waits for readers, every TRUNCATE_PAUSE_US and for PATIENCE_US only, because it holds
 *     the write lock, and truncates the log.
 *
 * No commit needs a checkpoint to be durable, so errors of checkpoints are ignored: on a full disk
 * the log keeps its frames, commits fail with STORAGE_FULL when it cannot grow either, and the next
 * checkpoint copies again all frames that were not confirmed. A lock on the log admits one
 * checkpoint at a time per file; other connections and processes are refused and try again
 * CHECKPOINT_FRAMES later. If the thread cannot be started, commits make all checkpoints.
 */

#include "store/sqlite/sqlite.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

/* Pages have 4 KiB, and a file with a log cannot change that. */
enum {
    /*
     * Small steps, because a concurrent commit waits for the disk behind the pages of a step. With
     * 1,000 frames, lifecycles beside a removal had twice the p99 of steps of 250.
     */
    CHECKPOINT_FRAMES = 250,
    FEW_FRAMES = 1000, /* the most that a commit copies itself; SQLite's own default */
    FINISH_FRAMES = 4096,
    PRESS_FRAMES = 4 * FINISH_FRAMES,
    TRUNCATE_FRAMES = 16 * FINISH_FRAMES,
};

#define PATIENCE_US       (100 * WEFT_MS)
#define TRUNCATE_PAUSE_US (5 * WEFT_SECOND)

struct weft_lite_checkpointer {
    pthread_t thread;
    bool threaded; /* false: commits make the checkpoints */
    bool synchronous_full;
    const char *path; /* SQLite's absolute name: valid after a chdir() */
    pthread_mutex_t lock;
    pthread_cond_t change;
    /* Under the lock; numbers are frames of the log. */
    bool stop;
    bool busy;  /* the thread or a commit makes a checkpoint */
    int seen;   /* length of the log after the last commit */
    int tried;  /* length of the log at the last checkpoint */
    int copied; /* frames it copied */
    int finish_at;
    weft_usec truncate_not_before_us;
};

/* ---- One checkpoint -------------------------------------------------------------------------- */

/*
 * SQLite before 3.51.3 loses commits when two checkpoints meet a log that starts over
 * (sqlite.org/wal.html#walresetbug): the first checkpoint has copied the whole log; the second
 * reads the length of the log; a commit starts the log over; the second then marks as many frames
 * of the new log as copied as the old log had, and none of them ever reaches the file. Debian 12
 * has 3.40.1.
 *
 * It cannot happen here. A checkpoint holds an exclusive flock() on the log, so no other checkpoint
 * of weft runs, in this process or another; and under that lock it begins only while frames are
 * left to copy. A commit starts the log over only when all frames are copied, and from the check to
 * the end of the checkpoint only this checkpoint copies. (Closing the last connection makes a
 * checkpoint too, but with the whole file locked.) SQLite takes no lock on the log itself, so
 * closing another descriptor of it drops none; and the log is one file as long as any connection is
 * open.
 */
enum { INDEX_BYTES = 32768, INDEX_FRAMES = 4, INDEX_COPIED = 24 }; /* in words of 32 bits */

/* Whether the log has frames that are not copied, from SQLite's wal-index (walformat.html). */
static bool has_frames_left(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    volatile void *index = NULL;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file ||
        !file->pMethods || file->pMethods->iVersion < 2 ||
        file->pMethods->xShmMap(file, 0, INDEX_BYTES, 0, &index) != SQLITE_OK || !index)
        return false;
    const volatile uint32_t *word = index;
    uint32_t copied = word[INDEX_COPIED];
    return copied < word[INDEX_FRAMES];
}

int weft_lite_checkpoint(sqlite3 *db, int mode, int *ret_frames, int *ret_copied)
{
    *ret_frames = -1;
    *ret_copied = 0;
    const char *log = sqlite3_filename_wal(sqlite3_db_filename(db, "main"));
    int fd = log ? open(log, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return SQLITE_CANTOPEN;
    int code = SQLITE_BUSY;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && has_frames_left(db))
        code = sqlite3_wal_checkpoint_v2(db, "main", mode, ret_frames, ret_copied);
    (void)flock(fd, LOCK_UN); /* a child forked meanwhile has the descriptor too */
    (void)close(fd);
    return code;
}

int weft_lite_on_wal(void *arg, sqlite3 *db, const char *name, int frames)
{
    struct weft_lite *lite = arg;
    (void)db;
    (void)name;
    lite->wal_frames = frames;
    return SQLITE_OK;
}

/* ---- The thread ------------------------------------------------------------------------------ */

static bool is_due(const struct weft_lite_checkpointer *checkpointer)
{
    return checkpointer->seen - checkpointer->tried >= CHECKPOINT_FRAMES;
}

static sqlite3 *open_own(const struct weft_lite_checkpointer *checkpointer)
{
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE;
    int code = sqlite3_open_v2(checkpointer->path, &db, flags, NULL);
    if (code == SQLITE_OK)
        code = weft_lite_ask(db, weft_lite_synchronous(checkpointer->synchronous_full), NULL);
    /* A connection learns of the log only by reading. */
    if (code == SQLITE_OK)
        code = weft_lite_ask(db, "SELECT count(*) FROM sqlite_schema", NULL);
    if (code == SQLITE_OK)
        return db;
    sqlite3_close(db);
    return NULL;
}

/* Records a checkpoint. `tried` is negative if it was refused or failed. */
static void note(struct weft_lite_checkpointer *checkpointer, int tried, int copied)
{
    if (tried < 0) {
        checkpointer->tried = checkpointer->seen; /* only newer frames make the next one due */
    } else {
        /* Another process may have written; if the log has started over, the next commit shows it.
         */
        if (checkpointer->seen < tried)
            checkpointer->seen = tried;
        checkpointer->tried = tried;
        checkpointer->copied = copied;
    }
    checkpointer->busy = false;
    pthread_cond_broadcast(&checkpointer->change);
}

static void *run(void *context)
{
    struct weft_lite_checkpointer *checkpointer = context;
    sqlite3 *db = NULL;
    pthread_mutex_lock(&checkpointer->lock);
    while (!checkpointer->stop) {
        if (checkpointer->busy || !is_due(checkpointer)) {
            pthread_cond_wait(&checkpointer->change, &checkpointer->lock);
            continue;
        }
        checkpointer->busy = true;
        pthread_mutex_unlock(&checkpointer->lock);
        if (!db)
            db = open_own(checkpointer);
        int tried = -1, copied = 0;
        if (db)
            (void)weft_lite_checkpoint(db, SQLITE_CHECKPOINT_PASSIVE, &tried, &copied);
        pthread_mutex_lock(&checkpointer->lock);
        note(checkpointer, tried, copied);
    }
    pthread_mutex_unlock(&checkpointer->lock);
    sqlite3_close(db);
    return NULL;
}

static struct weft_lite_checkpointer *start(const struct weft_lite *lite)
{
    struct weft_lite_checkpointer *checkpointer = weft_alloc(1, sizeof(*checkpointer));
    checkpointer->synchronous_full = lite->synchronous_full;
    checkpointer->path = sqlite3_db_filename(lite->db, "main");
    checkpointer->finish_at = FINISH_FRAMES;
    pthread_mutex_init(&checkpointer->lock, NULL);
    pthread_cond_init(&checkpointer->change, NULL);
    checkpointer->threaded =
        weft_thread_quiet(&checkpointer->thread, "weft-checkpoint", run, checkpointer) == 0;
    return checkpointer;
}

void weft_lite_stop_checkpoints(struct weft_lite *lite)
{
    struct weft_lite_checkpointer *checkpointer = lite->checkpointer;
    if (!checkpointer)
        return;
    pthread_mutex_lock(&checkpointer->lock);
    checkpointer->stop = true;
    pthread_cond_broadcast(&checkpointer->change);
    pthread_mutex_unlock(&checkpointer->lock);
    if (checkpointer->threaded)
        (void)pthread_join(checkpointer->thread, NULL);
    pthread_cond_destroy(&checkpointer->change);
    pthread_mutex_destroy(&checkpointer->lock);
    free(checkpointer);
    lite->checkpointer = NULL;
}

/*
 * A thread that cannot go on (a reader keeps a snapshot, another process copies) has not copied all
 * that it tried: then waiting would not help, and the store is not behind.
 */
bool weft_lite_is_behind(struct weft_conn *conn)
{
    struct weft_lite_checkpointer *checkpointer = weft_lite_of(conn)->checkpointer;
    if (!checkpointer || !checkpointer->threaded)
        return false;
    pthread_mutex_lock(&checkpointer->lock);
    bool goes_on = checkpointer->copied == checkpointer->tried;
    bool behind = goes_on && checkpointer->seen >= FINISH_FRAMES && is_due(checkpointer);
    pthread_mutex_unlock(&checkpointer->lock);
    return behind;
}

enum weft_rc weft_lite_forget(struct weft_conn *conn, struct weft_err *err)
{
    struct weft_lite *lite = weft_lite_of(conn);
    int frames, copied;
    int code = weft_lite_checkpoint(lite->db, SQLITE_CHECKPOINT_TRUNCATE, &frames, &copied);
    return code == SQLITE_OK ? WEFT_OK : weft_fail(err, WEFT_BUSY, "the log cannot be cut now");
}

/* ---- The commit ------------------------------------------------------------------------------ */

enum { NO_CHECKPOINT = -1 }; /* or a mode of SQLite */

/* The checkpoint to make after a commit, while none is running. */
static int choose_mode(const struct weft_lite_checkpointer *checkpointer)
{
    int seen = checkpointer->seen, copied = checkpointer->copied;
    if (seen >= TRUNCATE_FRAMES && weft_boot_us() >= checkpointer->truncate_not_before_us)
        return SQLITE_CHECKPOINT_TRUNCATE;
    if (!checkpointer->threaded)
        return is_due(checkpointer) ? SQLITE_CHECKPOINT_PASSIVE : NO_CHECKPOINT;
    if (seen < checkpointer->finish_at)
        return NO_CHECKPOINT;
    if (seen >= PRESS_FRAMES && copied == checkpointer->tried) /* no reader blocked it */
        return SQLITE_CHECKPOINT_RESTART;
    return seen - copied < FEW_FRAMES ? SQLITE_CHECKPOINT_PASSIVE : NO_CHECKPOINT;
}

/* Reports the length of the log to the thread. Returns the checkpoint that the commit must make. */
static int report_frames(struct weft_lite_checkpointer *checkpointer, int frames)
{
    int mode = NO_CHECKPOINT;
    pthread_mutex_lock(&checkpointer->lock);
    if (frames < checkpointer->seen) { /* it has started over */
        checkpointer->tried = checkpointer->copied = 0;
        checkpointer->finish_at = FINISH_FRAMES;
    }
    checkpointer->seen = frames;
    if (checkpointer->threaded && is_due(checkpointer))
        pthread_cond_broadcast(&checkpointer->change);
    while (frames >= PRESS_FRAMES && checkpointer->threaded &&
           (checkpointer->busy || is_due(checkpointer)))
        pthread_cond_wait(&checkpointer->change, &checkpointer->lock);
    if (!checkpointer->busy)
        mode = choose_mode(checkpointer);
    if (mode != NO_CHECKPOINT) {
        checkpointer->busy = true;
        checkpointer->finish_at = frames + FEW_FRAMES; /* if it fails */
    }
    pthread_mutex_unlock(&checkpointer->lock);
    return mode;
}

static void make_checkpoint(struct weft_lite *lite, int mode)
{
    struct weft_lite_checkpointer *checkpointer = lite->checkpointer;
    int tried = -1, copied = 0;
    weft_usec busy_us = lite->busy_us;
    lite->busy_us = busy_us < PATIENCE_US ? busy_us : PATIENCE_US;
    int code = weft_lite_checkpoint(lite->db, mode, &tried, &copied);
    lite->busy_us = busy_us;
    pthread_mutex_lock(&checkpointer->lock);
    if (mode == SQLITE_CHECKPOINT_TRUNCATE && code != SQLITE_OK)
        checkpointer->truncate_not_before_us = weft_boot_us() + TRUNCATE_PAUSE_US;
    note(checkpointer, tried, copied);
    pthread_mutex_unlock(&checkpointer->lock);
}

void weft_lite_limit_wal(struct weft_lite *lite)
{
    int frames = lite->wal_frames;
    lite->wal_frames = 0;
    if (frames == 0 || (frames < FEW_FRAMES && !lite->checkpointer))
        return;
    if (!lite->checkpointer)
        lite->checkpointer = start(lite);
    int mode = report_frames(lite->checkpointer, frames);
    if (mode != NO_CHECKPOINT)
        make_checkpoint(lite, mode);
}
