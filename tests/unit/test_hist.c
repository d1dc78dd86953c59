/* SPDX-License-Identifier: Apache-2.0 */

/* Percentiles out of the histogram, against what sorting would have said. */

#include "cmd/bench/hist.h"
#include "tap.h"

#include <stdlib.h>

static void test_empty(void)
{
    struct weft_hist hist = {0};
    is_int(weft_hist_at(&hist, 0.5), 0, "nothing has no median");
    is_int(weft_hist_mean(&hist), 0, "an empty histogram has mean 0");
}

static void test_one(void)
{
    static const weft_usec value[] = {0, 1, 63, 64, 127, 128, 129, 1000, 65535, 65536, 86400000000};
    for (size_t i = 0; i < WEFT_LEN(value); i++) {
        struct weft_hist hist = {0};
        weft_hist_add(&hist, value[i]);
        is_int(weft_hist_at(&hist, 0.5), value[i], "%lld alone is its own median",
               (long long)value[i]);
        is_int(weft_hist_at(&hist, 0), value[i], "the only value is the least");
    }
}

static void test_small(void)
{
    struct weft_hist hist = {0};
    for (weft_usec i = 1; i <= 100; i++)
        weft_hist_add(&hist, i);
    is_int(weft_hist_at(&hist, 0.5), 50, "p50 of 1..100");
    is_int(weft_hist_at(&hist, 0.9), 90, "the 90th percentile of 1 to 100");
    is_int(weft_hist_at(&hist, 0.99), 99, "the 99th percentile of 1 to 100");
    is_int(weft_hist_at(&hist, 1), 100, "the largest value of 1 to 100");
    is_int(weft_hist_mean(&hist), 50, "the mean of 1 to 100");
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
        weft_usec told = weft_hist_at(&hist, (double)i / 1000);
        near = near && told >= truth && (double)told <= (double)truth * 1.016 + 1;
    }
    ok(near, "every percentile is near the true one, and never below it");
    is_int(weft_hist_at(&hist, 1), value[VALUES - 1], "the largest is exact");
    weft_hist_merge(&sum, &low);
    weft_hist_merge(&sum, &high);
    ok(sum.count == hist.count && sum.min_us == hist.min_us && sum.max_us == hist.max_us &&
           memcmp(sum.bucket, hist.bucket, sizeof(sum.bucket)) == 0,
       "two halves merged are the whole");
}

static void test_top(void)
{
    struct weft_hist hist = {0};
    weft_hist_add(&hist, INT64_MAX);
    weft_hist_add(&hist, 5);
    is_int(weft_hist_at(&hist, 1), INT64_MAX, "values beyond the last bucket are not lost");
    is_int(weft_hist_at(&hist, 0.5), 5, "a very large value leaves the median");
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
