/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Waiting for the write lock, and keeping the write-ahead log short.
 *
 * SQLite's own busy timeout sleeps in steps of up to 100 ms, which starves a writer beside a busy
 * one. Ours sleeps 0.1 ms at first and 5 ms at most, with jitter, so that two writers do not keep
 * missing each other.
 *
 * A reader that stays open keeps the log from being reused, and the log grows; it does not shrink
 * by itself. Past WAL_MAX a checkpoint that truncates it is tried after a commit, now and then and
 * with little patience, because it holds the write lock while it waits for readers.
 */

#include "store/sqlite/sqlite.h"

#include "base/clock.h"

#include <time.h>

enum {
    SLEEP_FIRST_US = 100,
    SLEEP_MAX_US = 5000,
    CHECKPOINT_FRAMES = 1000, /* SQLite's default, which setting a hook of our own replaces */
    WAL_MAX = 256 << 20,
};

#define TRUNCATE_WAIT_US  (100 * WEFT_MS)
#define TRUNCATE_PAUSE_US (5 * WEFT_SECOND)

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

int weft_lite_on_busy(void *arg, int count)
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

int weft_lite_on_wal(void *arg, sqlite3 *db, const char *name, int frames)
{
    struct weft_lite *lite = arg;
    lite->wal_bytes = frames * lite->frame_bytes;
    /* Like SQLite's own hook: the commit is done, so a checkpoint that fails is not its failure. */
    if (frames >= CHECKPOINT_FRAMES)
        (void)sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

void weft_lite_shrink_wal(struct weft_lite *lite)
{
    if (lite->wal_bytes <= WAL_MAX)
        return;
    weft_usec now_us = weft_boot_us();
    if (now_us < lite->truncate_not_before_us)
        return;
    lite->truncate_not_before_us = now_us + TRUNCATE_PAUSE_US;

    weft_usec busy_us = lite->busy_us;
    lite->busy_us = busy_us < TRUNCATE_WAIT_US ? busy_us : TRUNCATE_WAIT_US;
    int code = sqlite3_wal_checkpoint_v2(lite->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (code == SQLITE_OK)
        lite->wal_bytes = 0;
    lite->busy_us = busy_us;
}
