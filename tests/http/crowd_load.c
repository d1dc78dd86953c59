/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls as fast as a crowd makes them:
 *
 *     crowd_load URL CALLS IN_FLIGHT [THREADS]
 *
 * Small POSTs, marked once. Prints calls per second, what this process took of a core, its
 * resident memory, and the spread of how long calls took.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "fetch/crowd.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static atomic_size_t ended, failed;
static size_t calls, in_flight;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int64_t *took_us; /* of each call that ended */

static void on_head(void *context, int status, const struct weft_crowd_header *header, size_t count)
{
    (void)context;
    (void)header;
    (void)count;
    if (status != 200)
        atomic_fetch_add(&failed, 1);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): as the crowd passes it */
static bool on_data(void *context, const void *bytes, size_t size, bool *ret_enough)
{
    (void)context;
    (void)bytes;
    (void)size;
    (void)ret_enough;
    return true;
}

static void on_end(void *context, const struct weft_crowd_end *end)
{
    (void)context;
    if (end->failure != WEFT_HTTP_ANSWERED && atomic_fetch_add(&failed, 1) == 0)
        (void)fprintf(stderr, "failed: %s\n", end->text);
    size_t number = atomic_fetch_add(&ended, 1);
    took_us[number] = end->phases.total_us;
    if ((number + 1) % (in_flight / 4 + 1) != 0 && number + 1 != calls)
        return;
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static const struct weft_crowd_ops ops = {on_head, on_data, on_end};

static int by_time(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static double cpu_s(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Keeps so many calls in flight, as the executor does: in batches. */
static void run(struct weft_crowd *crowd, const char *url)
{
    static const char body[] =
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a few words\"}]}";
    static const struct weft_crowd_header header[] = {{"Content-Type", "application/json"},
                                                      {"Authorization", "Bearer secret"}};
    const struct weft_crowd_call call = {
        .method = "POST",
        .url = url,
        .header = header,
        .header_count = 2,
        .body = body,
        .body_size = sizeof(body) - 1,
        .private_addresses = true,
        .once = true,
        .connect_ms = 5000,
        .first_byte_ms = 60000,
        .idle_ms = 30000,
        .total_ms = 600000,
        .response_max = 1 << 23,
        .ops = &ops,
    };
    for (size_t made = 0; made < calls || atomic_load(&ended) < calls;) {
        for (; made < calls && made - atomic_load(&ended) < in_flight; made++)
            (void)weft_crowd_call(crowd, &call);
        pthread_mutex_lock(&lock);
        if (made == calls ? atomic_load(&ended) < calls : made - atomic_load(&ended) >= in_flight)
            weft_cond_until(&changed, &lock, weft_boot_us() + 100 * WEFT_MS);
        pthread_mutex_unlock(&lock);
    }
}

int main(int argc, char **argv)
{
    struct weft_crowd *crowd = NULL;
    struct weft_err err;
    if (argc < 4)
        return 2;
    calls = strtoul(argv[2], NULL, 10);
    in_flight = strtoul(argv[3], NULL, 10);
    took_us = weft_alloc(calls, sizeof(int64_t));
    const struct weft_crowd_config config = {
        .threads = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 1,
        .in_flight = (uint32_t)in_flight,
    };
    if (weft_crowd_start(&config, &crowd, &err) != WEFT_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double cpu_before_s = cpu_s();
    weft_usec from_us = weft_boot_us();
    run(crowd, argv[1]);
    double seconds = (double)(weft_boot_us() - from_us) / 1e6, cpu = cpu_s() - cpu_before_s;
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    weft_crowd_stop(crowd);
    qsort(took_us, calls, sizeof(int64_t), by_time);
    printf(
        "%zu calls, %zu failed, %.0f/s, %.1f %% of a core, %.1f us of CPU each, %ld KiB at most, "
        "took p50 %" PRId64 " p99 %" PRId64 " max %" PRId64 " us\n",
        calls, atomic_load(&failed), (double)calls / seconds, cpu / seconds * 100,
        cpu * 1e6 / (double)calls, usage.ru_maxrss, took_us[calls / 2], took_us[calls * 99 / 100],
        took_us[calls - 1]);
    free(took_us);
    return atomic_load(&failed) != 0;
}
