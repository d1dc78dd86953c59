/* SPDX-License-Identifier: Apache-2.0 */

/* Percentiles of the histogram against the percentiles of the sorted values. */

#include "cmd/bench/bench.h"
#include "tap.h"

#include <stdlib.h>

static void test_empty(void)
{
    struct weft_hist hist = {0};
    is_int(weft_hist_at(&hist, 0.5), 0, "median of an empty histogram is 0");
    is_int(weft_hist_mean(&hist), 0, "mean of an empty histogram is 0");
}

static void test_one(void)
{
    static const weft_usec value[] = {0, 1, 63, 64, 127, 128, 129, 1000, 65535, 65536, 86400000000};
    for (size_t i = 0; i < WEFT_LEN(value); i++) {
        struct weft_hist hist = {0};
        weft_hist_add(&hist, value[i]);
        is_int(weft_hist_at(&hist, 0.5), value[i], "median of %lld alone is that value",
               (long long)value[i]);
        is_int(weft_hist_at(&hist, 0), value[i], "p0 of one value is that value");
    }
}

static void test_small(void)
{
    struct weft_hist hist = {0};
    for (weft_usec i = 1; i <= 100; i++)
        weft_hist_add(&hist, i);
    is_int(weft_hist_at(&hist, 0.5), 50, "p50 of 1..100");
    is_int(weft_hist_at(&hist, 0.9), 90, "p90");
    is_int(weft_hist_at(&hist, 0.99), 99, "p99");
    is_int(weft_hist_at(&hist, 1), 100, "p100 is the largest value");
    is_int(weft_hist_mean(&hist), 50, "mean of 1..100");
    weft_hist_add(&hist, -5);
    is_int(hist.min_us, 0, "a negative value counts as 0");
}

static int compare(const void *a, const void *b)
{
    const weft_usec *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Random values of all sizes: every percentile is at most 1.6 % above the true one, never below. */
static void test_error(void)
{
    enum { VALUES = 20000 };
    static weft_usec value[VALUES];
    static struct weft_hist hist, low, high, sum;
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < VALUES; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        value[i] = (weft_usec)((random >> 28) >> (random % 32));
        weft_hist_add(&hist, value[i]);
        weft_hist_add(i % 3 ? &low : &high, value[i]);
    }
    qsort(value, VALUES, sizeof(value[0]), compare);
    bool near = true;
    for (size_t i = 1; i < 1000; i++) {
        weft_usec truth = value[VALUES * i / 1000 - 1];
        weft_usec found = weft_hist_at(&hist, (double)i / 1000);
        near = near && found >= truth && (double)found <= (double)truth * 1.016 + 1;
    }
    ok(near, "every percentile is within 1.6 %% of the true one, never below it");
    is_int(weft_hist_at(&hist, 1), value[VALUES - 1], "p100 is exact");
    weft_hist_merge(&sum, &low);
    weft_hist_merge(&sum, &high);
    ok(sum.count == hist.count && sum.min_us == hist.min_us && sum.max_us == hist.max_us &&
           memcmp(sum.bucket, hist.bucket, sizeof(sum.bucket)) == 0,
       "merging two parts gives the histogram of all values");
}

static void test_top(void)
{
    struct weft_hist hist = {0};
    weft_hist_add(&hist, INT64_MAX);
    weft_hist_add(&hist, 5);
    is_int(weft_hist_at(&hist, 1), INT64_MAX,
           "p100 with a value beyond the last bucket is that value");
    is_int(weft_hist_at(&hist, 0.5), 5, "p50 is not affected by it");
}

int main(void)
{
    test_empty();
    test_one();
    test_small();
    test_error();
    test_top();
    return tap_done();
}
