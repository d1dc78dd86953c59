/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A bucket number is the number of the value's doubling, then its next six bits. Values below 128
 * have buckets of one microsecond each.
 */

#include "cmd/bench/bench.h"

static uint32_t doubling_of(uint64_t value)
{
    uint32_t bits = value == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(value);
    return bits <= WEFT_HIST_BITS + 1 ? 0 : bits - WEFT_HIST_BITS - 1;
}

static uint32_t bucket_of(uint64_t value)
{
    uint32_t shift = doubling_of(value);
    uint64_t bucket = (uint64_t)shift * WEFT_HIST_STEPS + (value >> shift);
    return bucket < WEFT_HIST_BUCKETS ? (uint32_t)bucket : WEFT_HIST_BUCKETS - 1;
}

/* The largest value that falls into a bucket. */
static uint64_t end_of(uint32_t bucket)
{
    uint32_t shift = bucket < 2 * WEFT_HIST_STEPS ? 0 : bucket / WEFT_HIST_STEPS - 1;
    uint64_t lead = bucket - (uint64_t)shift * WEFT_HIST_STEPS;
    return ((lead + 1) << shift) - 1;
}

void weft_hist_add(struct weft_hist *hist, weft_usec value_us)
{
    if (value_us < 0)
        value_us = 0;
    hist->bucket[bucket_of((uint64_t)value_us)]++;
    if (hist->count == 0 || value_us < hist->min_us)
        hist->min_us = value_us;
    if (value_us > hist->max_us)
        hist->max_us = value_us;
    hist->sum_us += (double)value_us;
    hist->count++;
}

void weft_hist_merge(struct weft_hist *hist, const struct weft_hist *other)
{
    if (other->count == 0)
        return;
    for (uint32_t i = 0; i < WEFT_HIST_BUCKETS; i++)
        hist->bucket[i] += other->bucket[i];
    if (hist->count == 0 || other->min_us < hist->min_us)
        hist->min_us = other->min_us;
    if (other->max_us > hist->max_us)
        hist->max_us = other->max_us;
    hist->sum_us += other->sum_us;
    hist->count += other->count;
}

weft_usec weft_hist_at(const struct weft_hist *hist, double share)
{
    if (hist->count == 0)
        return 0;
    double wanted = share * (double)hist->count - 1e-6; /* 0.7 * 10 is a little more than 7 */
    uint64_t seen = 0;
    for (uint32_t i = 0; i < WEFT_HIST_BUCKETS - 1; i++) {
        seen += hist->bucket[i];
        if (seen > 0 && (double)seen >= wanted) {
            uint64_t end = end_of(i);
            return end < (uint64_t)hist->max_us ? (weft_usec)end : hist->max_us;
        }
    }
    return hist->max_us; /* the last bucket is open to the top */
}

double weft_hist_ms(const struct weft_hist *hist, double share)
{
    return (double)weft_hist_at(hist, share) / 1000;
}

weft_usec weft_hist_mean(const struct weft_hist *hist)
{
    return hist->count ? (weft_usec)(hist->sum_us / (double)hist->count) : 0;
}
