/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The busy handler: waiting for the write lock.
 *
 * SQLite's own busy timeout sleeps in steps of up to 100 ms, which starves a writer next to a busy
 * one. This one sleeps 0.1 ms at first and 5 ms at most, with jitter, so that two writers do not
 * keep missing each other.
 */

#include "store/sqlite/sqlite.h"

#include "base/clock.h"

#include <time.h>

enum {
    SLEEP_FIRST_US = 100,
    SLEEP_MAX_US = 5000,
};

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
