/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_CLOCK_H
#define WEFT_BASE_CLOCK_H

/*
 * The store's clock, kept locally.
 *
 * A clock holds the offset between the store's time and CLOCK_BOOTTIME of this machine, so reading
 * it costs no query and a wall clock that is an hour off changes nothing. Samples are (sent,
 * store's answer, received); of the samples of one measurement the one with the least round trip
 * counts. A measurement that moves the offset by more than a second is reported as a jump.
 *
 * The store read its clock somewhere between `sent` and `received`, so a sample gives two bounds:
 * weft_clock_now() is never ahead of the store, weft_clock_latest() never behind. A claim under a
 * lane's limit must not start before another lease has ended, so it starts at the latest time.
 * Thread-safe. A clock may be set by hand (tests): then it stands still until it is set again.
 */

#include "base/base.h"

struct weft_clock; /* opaque */

struct weft_clock *weft_clock_new(void);
void weft_clock_free(struct weft_clock *clock);

/* CLOCK_BOOTTIME in microseconds: for waiting and for samples. */
weft_usec weft_boot_us(void);

struct weft_clock_sample {
    weft_usec sent_us;  /* CLOCK_BOOTTIME */
    weft_usec store_us; /* the store's answer */
    weft_usec received_us;
};

/* Takes the best of the samples. Returns by how much the offset moved, 0 for the first time. */
weft_usec weft_clock_measure(struct weft_clock *clock, const struct weft_clock_sample *sample,
                             size_t count);
/* True when the last measurement is older than 10 s (never for a clock set by hand). */
bool weft_clock_stale(const struct weft_clock *clock);
weft_usec weft_clock_now(const struct weft_clock *clock);
weft_usec weft_clock_latest(const struct weft_clock *clock);     /* now, if set by hand */
void weft_clock_set(struct weft_clock *clock, weft_usec now_us); /* by hand */

#endif
