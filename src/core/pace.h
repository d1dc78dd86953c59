/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_PACE_H
#define WEFT_CORE_PACE_H

/*
 * Pace: when something that looks for work from time to time looks again.
 *
 * It runs at its start, and from then on at the earliest of two moments: its next look, one
 * interval after the end of the last run, and the nearest due time that anybody told it of. What
 * this makes of trouble:
 *
 * - It was late: the next look counts from the end of the run. Runs shift, they never pile up.
 * - It found nothing to do although something was due: whatever was due before that run is in
 *   somebody else's hands or not its business. Only its next look asks again, so it cannot spin.
 * - It failed: it waits its interval, twice as long with each failure in a row, and no due time
 *   hurries it.
 * - It looked for long, more than 100 ms, and found nothing: the next look waits ten times as long
 * as that one took, 10 s at most, so looks in vain take a tenth of the time. A due time hurries it
 * all the same.
 * - It could not finish: it runs again at once, but behind those who have been waiting longer.
 *
 * Times are of one clock, whichever the caller has; there is none in here.
 */

#include "base/base.h"

#define WEFT_PACE_SLOWEST_US                                                                       \
    (60 * WEFT_SECOND) /* between failures, unless the interval is longer */

/* How long to wait after a look that took so long: ten times that, 10 s at most. 0: it was quick.
 */
weft_usec weft_pace_rest(weft_usec took_us);

struct weft_pace {
    weft_usec interval_us; /* the longest time between two looks; 0: off */
    weft_usec look_us;     /* the next look */
    weft_usec due_us;      /* the nearest due time that is known; WEFT_NEVER: none */
    weft_usec hold_us;     /* not before this, whatever is due; the caller's to set */
    weft_usec began_us;    /* the last run */
    weft_usec ended_us;    /* the last run; 0: it never ran */
    weft_usec vain_us;     /* what was due at or before this was not to be had */
    uint32_t failures;     /* in a row */
    bool running;
    bool more; /* the last run left something undone */
};

/* Of one that never ran: its first run is due at once. Interval 0: it never runs. */
void weft_pace_init(struct weft_pace *pace, weft_usec interval_us, weft_usec now_us);
/* Another interval holds at once; one that is failing or was off gets its chance at once. */
void weft_pace_change(struct weft_pace *pace, weft_usec interval_us, weft_usec now_us);

/* Something becomes due then; WEFT_NEVER: nothing is known. */
void weft_pace_expect(struct weft_pace *pace, weft_usec due_us);
/*
 * Somebody looked in its place, does so every period_us, and found this due time. When nothing is
 * due yet, that was its look: true. An interval shorter than the period is kept all the same.
 */
bool weft_pace_looked(struct weft_pace *pace, weft_usec due_us, weft_usec period_us,
                      weft_usec now_us);

/* When it runs next; WEFT_NEVER while it runs and when it is off. */
weft_usec weft_pace_next(const struct weft_pace *pace);
/* Which of them is to run now: the one that has waited longest, `count` when none is. */
size_t weft_pace_pick(const struct weft_pace *pace, const bool *barred, size_t count,
                      weft_usec now_us);

void weft_pace_begin(struct weft_pace *pace, weft_usec now_us);
/* How a run went. */
struct weft_pace_run {
    bool handled; /* it did something */
    bool more;    /* there may be more to do right now */
    weft_usec due_us;
};
void weft_pace_end(struct weft_pace *pace, const struct weft_pace_run *run, weft_usec now_us);
void weft_pace_fail(struct weft_pace *pace, weft_usec now_us, uint64_t random);

/*
 * The wait after so many failures in a row (1: the first): first_us, doubled with each further one,
 * most_us at most; of that the upper half at random, so that those who failed together do not come
 * back together.
 */
weft_usec weft_pace_backoff(weft_usec first_us, weft_usec most_us, uint32_t failures,
                            uint64_t random);

#endif
