/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Atomics instead of a lock: a reader needs either the time set by hand or one of the bounds, never
 * two values that must belong together. A clock set by hand never returns to measuring, so no
 * reader sees half of such a change.
 */

#include "base/clock.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define STALE_US (10 * WEFT_SECOND)
#define NOT_YET  INT64_MIN

struct weft_clock {
    _Atomic weft_usec low_us;      /* lower bound of the store's time minus CLOCK_BOOTTIME */
    _Atomic weft_usec high_us;     /* upper bound */
    _Atomic weft_usec measured_us; /* CLOCK_BOOTTIME of the last measurement, or NOT_YET */
    _Atomic weft_usec hand_us;     /* the time set by hand, or WEFT_NEVER */
};

static weft_usec read_us(clockid_t which)
{
    struct timespec now;
    int failed = clock_gettime(which, &now);
    assert(!failed);
    return (weft_usec)now.tv_sec * WEFT_SECOND + now.tv_nsec / 1000;
}

weft_usec weft_boot_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

struct weft_clock *weft_clock_new(void)
{
    struct weft_clock *clock = weft_alloc(1, sizeof(*clock));
    /* Until the first measurement this machine's clock is the best estimate. */
    weft_usec offset_us = read_us(CLOCK_REALTIME) - weft_boot_us();
    atomic_init(&clock->low_us, offset_us);
    atomic_init(&clock->high_us, offset_us);
    atomic_init(&clock->measured_us, NOT_YET);
    atomic_init(&clock->hand_us, WEFT_NEVER);
    return clock;
}

void weft_clock_free(struct weft_clock *clock)
{
    free(clock);
}

static bool set_by_hand(const struct weft_clock *clock)
{
    return atomic_load(&clock->hand_us) != WEFT_NEVER;
}

weft_usec weft_clock_measure(struct weft_clock *clock, const struct weft_clock_sample *sample,
                             size_t count)
{
    assert(count > 0);
    const struct weft_clock_sample *best = &sample[0];
    for (size_t i = 1; i < count; i++)
        if (sample[i].received_us - sample[i].sent_us < best->received_us - best->sent_us)
            best = &sample[i];
    assert(best->received_us >= best->sent_us);
    if (set_by_hand(clock))
        return 0;

    weft_usec low_us = best->store_us - best->received_us;
    weft_usec before_us = atomic_exchange(&clock->low_us, low_us);
    atomic_store(&clock->high_us, best->store_us - best->sent_us);
    bool first = atomic_exchange(&clock->measured_us, best->received_us) == NOT_YET;
    return first ? 0 : low_us - before_us;
}

bool weft_clock_stale(const struct weft_clock *clock)
{
    if (set_by_hand(clock))
        return false;
    weft_usec measured_us = atomic_load(&clock->measured_us);
    return measured_us == NOT_YET || weft_boot_us() - measured_us > STALE_US;
}

weft_usec weft_clock_now(const struct weft_clock *clock)
{
    weft_usec hand_us = atomic_load(&clock->hand_us);
    return hand_us != WEFT_NEVER ? hand_us : weft_boot_us() + atomic_load(&clock->low_us);
}

weft_usec weft_clock_latest(const struct weft_clock *clock)
{
    weft_usec hand_us = atomic_load(&clock->hand_us);
    return hand_us != WEFT_NEVER ? hand_us : weft_boot_us() + atomic_load(&clock->high_us);
}

void weft_clock_set(struct weft_clock *clock, weft_usec now_us)
{
    assert(now_us != WEFT_NEVER);
    atomic_store(&clock->hand_us, now_us);
}
