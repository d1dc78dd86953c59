/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BENCH_HIST_H
#define WEFT_CMD_BENCH_HIST_H

/*
 * A histogram of durations in fixed memory: buckets are exact below 128 µs and then 64 to each
 * doubling, so that any percentile has an error below 1.6 %, from microseconds to a day.
 * The smallest and the largest value are kept exactly. Merging two is adding their buckets.
 */

#include "base/base.h"

enum {
    WEFT_HIST_STEPS = 64, /* buckets of one doubling */
    WEFT_HIST_BITS = 6,   /* 1 << WEFT_HIST_BITS == WEFT_HIST_STEPS */
    WEFT_HIST_DOUBLINGS = 31,
    WEFT_HIST_BUCKETS = WEFT_HIST_STEPS * (WEFT_HIST_DOUBLINGS + 1),
};

struct weft_hist {
    uint64_t bucket[WEFT_HIST_BUCKETS];
    uint64_t count;
    weft_usec min_us, max_us; /* of nothing: 0 */
    double sum_us;
};

void weft_hist_add(struct weft_hist *hist, weft_usec value_us); /* less than 0 counts as 0 */
void weft_hist_merge(struct weft_hist *hist, const struct weft_hist *other);
/*
 * The value that a share (0..1) of all values does not exceed: 0.5 is the median, 1 the largest.
 * Rounded up to the end of its bucket, never beyond the largest value. 0 for an empty one.
 */
weft_usec weft_hist_at(const struct weft_hist *hist, double share);
double weft_hist_ms(const struct weft_hist *hist, double share); /* the same in milliseconds */
weft_usec weft_hist_mean(const struct weft_hist *hist);

#endif
