/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_PACE_H
#define WEFT_CORE_PACE_H

/*
 * Pace: when a scanner (or another periodic task) runs next. Pure: the caller gives the time, from
 * one clock of its choice.
 *
 * A scanner runs at its start, and from then on at the earlier of two times: one interval after the
 * end of the last run (its next look), and the nearest known due time.
 *
 * - A late run: the interval counts from its end. Runs shift, they never pile up.
 * - A run that found nothing although something was due: another replica has it, or it is not this
 *   scanner's work. Due times before that run are ignored until the next look, so it cannot spin.
 * - A failed run: the next one waits an interval, doubled with each failure in a row; due times do
 *   not shorten that.
 * - A run of more than 100 ms that found nothing: the next look waits ten times as long, 10 s at
 *   most, so fruitless runs take at most a tenth of the time. A due time still starts a run.
 * - An unfinished run: runs again at once, but behind scanners that have been waiting longer.
 */

#include "base/base.h"

#define WEFT_PACE_SLOWEST_US                                                                       \
    (60 * WEFT_SECOND) /* between failures, unless the interval is longer */

/* The wait after a run that took so long: ten times that, 10 s at most; 0 for a quick run. */
weft_usec weft_pace_rest(weft_usec took_us);

struct weft_pace {
    weft_usec interval_us; /* the longest time between two runs; 0: off */
    weft_usec look_us;     /* the next look */
    weft_usec due_us;      /* the nearest due time that is known; WEFT_NEVER: none */
    weft_usec hold_us;     /* no run before this time; set by the caller */
    weft_usec began_us;    /* the last run */
    weft_usec ended_us;    /* the last run; 0: it never ran */
    weft_usec vain_us;     /* due times up to this one are ignored: a run found nothing */
    uint32_t failures;     /* in a row */
    bool running;
    bool more; /* the last run was unfinished */
};

/* The first run is due at once. Interval 0: it never runs. */
void weft_pace_init(struct weft_pace *pace, weft_usec interval_us, weft_usec now_us);
/* Sets the interval, effective now; a failing or disabled scanner becomes due at once. */
void weft_pace_change(struct weft_pace *pace, weft_usec interval_us, weft_usec now_us);

/* Announces a due time; WEFT_NEVER: none. */
void weft_pace_expect(struct weft_pace *pace, weft_usec due_us);
/*
 * The poll, which runs every period_us, found this due time. If nothing is due yet, the poll
 * replaces the scanner's next look: true. An interval shorter than the period is kept.
 */
bool weft_pace_looked(struct weft_pace *pace, weft_usec due_us, weft_usec period_us,
                      weft_usec now_us);

/* The next run; WEFT_NEVER while it runs and when it is off. */
weft_usec weft_pace_next(const struct weft_pace *pace);
/* Of the scanners that are due and not barred the one that has waited longest; `count`: none. */
size_t weft_pace_pick(const struct weft_pace *pace, const bool *barred, size_t count,
                      weft_usec now_us);

void weft_pace_begin(struct weft_pace *pace, weft_usec now_us);
struct weft_pace_run {
    bool handled; /* the run found work */
    bool more;    /* there may be more to do right now */
    weft_usec due_us;
};
void weft_pace_end(struct weft_pace *pace, const struct weft_pace_run *run, weft_usec now_us);
void weft_pace_fail(struct weft_pace *pace, weft_usec now_us, uint64_t random);

/*
 * The wait after so many failures in a row (1: the first): first_us, doubled with each further
 * failure, most_us at most; of that the upper half at random, so that processes that failed
 * together do not retry together.
 */
weft_usec weft_pace_backoff(weft_usec first_us, weft_usec most_us, uint32_t failures,
                            uint64_t random);

#endif
