/* SPDX-License-Identifier: Apache-2.0 */

#include "base/clock.h"
#include "tap.h"

#include <time.h>

#define HOUR (3600 * WEFT_SECOND)

/* True when the clock is ahead of CLOCK_BOOTTIME by exactly that offset. */
static bool runs_with(const struct weft_clock *clock, weft_usec offset_us)
{
    weft_usec before_us = weft_boot_us();
    weft_usec now_us = weft_clock_now(clock);
    weft_usec after_us = weft_boot_us();
    return now_us >= before_us + offset_us && now_us <= after_us + offset_us;
}

static void test_boot(void)
{
    struct timespec boot;
    weft_usec before_us = weft_boot_us();
    (void)clock_gettime(CLOCK_BOOTTIME, &boot);
    weft_usec boot_us = (weft_usec)boot.tv_sec * WEFT_SECOND + boot.tv_nsec / 1000;
    ok(before_us <= boot_us && boot_us <= weft_boot_us(), "the boot clock, in microseconds");
}

static void test_fresh(void)
{
    struct weft_clock *clock = weft_clock_new();
    weft_usec wall_us = (weft_usec)time(NULL) * WEFT_SECOND;
    weft_usec apart_us = weft_clock_now(clock) - wall_us;
    ok(apart_us > -HOUR && apart_us < HOUR, "before the store was asked: this machine's time");
    ok(weft_clock_stale(clock), "the clock is stale before the store was asked");
    weft_clock_free(clock);
    weft_clock_free(NULL);
}

static void test_measure(void)
{
    struct weft_clock *clock = weft_clock_new();
    weft_usec boot_us = weft_boot_us();
    /* The quick answer of the three is the true one; the others are an hour off. */
    struct weft_clock_sample sample[] = {
        {.sent_us = boot_us - 900, .store_us = boot_us, .received_us = boot_us},
        {.sent_us = boot_us - 500, .store_us = boot_us + 3 * HOUR, .received_us = boot_us - 400},
        {.sent_us = boot_us - 300, .store_us = boot_us, .received_us = boot_us - 100},
    };
    weft_usec offset_us = 3 * HOUR + 400; /* the answer came 400 us ago: it is not younger */
    is_int(weft_clock_measure(clock, sample, WEFT_LEN(sample)), 0, "the first time moves nothing");
    ok(runs_with(clock, offset_us), "the shortest round trip counts, from its end");
    weft_usec apart_us = weft_clock_latest(clock) - weft_clock_now(clock);
    ok(apart_us >= 100 - 1 && apart_us < WEFT_SECOND, "the latest it can be: from its beginning");
    ok(!weft_clock_stale(clock), "fresh after a measurement");

    is_int(weft_clock_measure(clock, sample, WEFT_LEN(sample)), 0, "the same again moves nothing");
    sample[1].store_us -= HOUR;
    is_int(weft_clock_measure(clock, sample, WEFT_LEN(sample)), -HOUR, "a jump back is reported");
    ok(runs_with(clock, offset_us - HOUR), "the clock follows the jump back");
    sample[1].store_us += HOUR + 5;
    is_int(weft_clock_measure(clock, &sample[1], 1), HOUR + 5, "a jump forward, of one sample");
    weft_clock_free(clock);
}

/* Time passes between a sample and the look at it, so the edge is approached from its far side. */
static void test_stale(void)
{
    static const struct {
        const char *name;
        weft_usec age_us;
        bool want;
    } row[] = {
        {"just now", 0, false},
        {"five seconds", 5 * WEFT_SECOND, false},
        {"ten seconds and a bit", 10 * WEFT_SECOND + 1, true},
        {"an hour", HOUR, true},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_clock *clock = weft_clock_new();
        weft_usec at_us = weft_boot_us() - row[i].age_us;
        struct weft_clock_sample sample = {at_us, at_us, at_us};
        (void)weft_clock_measure(clock, &sample, 1);
        ok(weft_clock_stale(clock) == row[i].want, "stale: %s", row[i].name);
        weft_clock_free(clock);
    }
}

static void test_by_hand(void)
{
    struct weft_clock *clock = weft_clock_new();
    weft_clock_set(clock, 1000);
    is_int(weft_clock_now(clock), 1000, "set by hand");
    is_int(weft_clock_latest(clock), 1000, "there is no doubt about it");
    weft_usec start_us = weft_boot_us();
    while (weft_boot_us() == start_us)
        ;
    is_int(weft_clock_now(clock), 1000, "a clock that was set stands still");
    ok(!weft_clock_stale(clock), "a clock that was set is never stale");

    struct weft_clock_sample sample = {start_us, start_us + HOUR, start_us};
    is_int(weft_clock_measure(clock, &sample, 1), 0, "a measurement does not move it");
    is_int(weft_clock_now(clock), 1000, "the clock still gives the time that was set");
    weft_clock_set(clock, -5);
    is_int(weft_clock_now(clock), -5, "only the hand does, even back");
    weft_clock_free(clock);
}

int main(void)
{
    test_boot();
    test_fresh();
    test_measure();
    test_stale();
    test_by_hand();
    return tap_done();
}
