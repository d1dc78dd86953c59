/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A crew: one thread per connection, each repeating a turn until the time is over.
 *
 * Opening, preparing and two turns to warm up come before the first barrier; the meter is read
 * between the two barriers, while everybody stands still. The clock stops when the last thread has
 * ended the turn it was in, so no unfinished turn is counted and no finished one is left out.
 */

#include "bench/bench.h"

#include "base/arena.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP_TURNS = 2 };

struct crew {
    const struct bench_trade *trade;
    const void *job;
    const struct bench_load *load;
    pthread_barrier_t ready, go, done;
    weft_usec end_us;
    atomic_bool failed;
};

struct member {
    struct crew *crew;
    unsigned index;
    pthread_t thread;
    long lifecycles;
};

static void work(struct member *member, void *worker)
{
    struct crew *crew = member->crew;
    size_t turns = crew->load->turns;
    for (size_t i = 0; !atomic_load(&crew->failed); i++) {
        if (turns ? i == turns : weft_boot_us() >= crew->end_us)
            return;
        long done = crew->trade->turn(worker);
        if (done < 0)
            atomic_store(&crew->failed, true);
        else
            member->lifecycles += done;
    }
}

static void *member_main(void *arg)
{
    struct member *member = arg;
    struct crew *crew = member->crew;
    void *worker = crew->trade->open(crew->job, crew->load, member->index);
    if (!worker)
        atomic_store(&crew->failed, true);
    /* A crew with a number of turns is there to write rows, not to be measured. */
    for (int i = 0; i < WARM_UP_TURNS && worker && !crew->load->turns; i++)
        if (!atomic_load(&crew->failed) && crew->trade->turn(worker) < 0)
            atomic_store(&crew->failed, true);
    (void)pthread_barrier_wait(&crew->ready);
    (void)pthread_barrier_wait(&crew->go);
    work(member, worker);
    (void)pthread_barrier_wait(&crew->done);
    if (worker)
        crew->trade->close(worker);
    return NULL;
}

static void start(struct crew *crew, struct member *member)
{
    unsigned count = crew->load->connections;
    /* The thread that measures is one more. */
    if (pthread_barrier_init(&crew->ready, NULL, count + 1) ||
        pthread_barrier_init(&crew->go, NULL, count + 1) ||
        pthread_barrier_init(&crew->done, NULL, count + 1))
        weft_oom(sizeof(crew->go));
    for (unsigned i = 0; i < count; i++) {
        member[i] = (struct member){.crew = crew, .index = i};
        if (pthread_create(&member[i].thread, NULL, member_main, &member[i]))
            weft_oom(sizeof(pthread_t));
    }
}

static bool finish(struct crew *crew, struct member *member)
{
    for (unsigned i = 0; i < crew->load->connections; i++)
        (void)pthread_join(member[i].thread, NULL);
    (void)pthread_barrier_destroy(&crew->ready);
    (void)pthread_barrier_destroy(&crew->go);
    (void)pthread_barrier_destroy(&crew->done);
    return !atomic_load(&crew->failed);
}

bool bench_crew_run(const struct bench_trade *trade, const void *job, const struct bench_load *load,
                    const struct bench_meter *meter, struct bench_run *ret_run)
{
    struct crew crew = {.trade = trade, .job = job, .load = load};
    struct member member[BENCH_CONNECTIONS_MAX] = {0};
    struct bench_reading before = {0}, after = {0};
    start(&crew, member);
    (void)pthread_barrier_wait(&crew.ready);
    bool metered = meter && bench_meter_read(meter, &before);
    weft_usec start_us = weft_boot_us();
    crew.end_us = start_us + (weft_usec)(load->seconds * 1e6);
    (void)pthread_barrier_wait(&crew.go);
    (void)pthread_barrier_wait(&crew.done);
    double seconds = (double)(weft_boot_us() - start_us) / 1e6;
    metered = metered && bench_meter_read(meter, &after);
    if (!finish(&crew, member) || (meter && !metered))
        return false;

    double lifecycles = 0;
    for (unsigned i = 0; i < load->connections; i++)
        lifecycles += (double)member[i].lifecycles;
    if (lifecycles < 1) {
        (void)fprintf(stderr, "bench: no lifecycle was finished in %.1f s\n", seconds);
        return false;
    }
    *ret_run = (struct bench_run){.per_s = lifecycles / seconds, .wal_bytes = NAN, .commits = NAN};
    if (metered) {
        ret_run->wal_bytes = (after.wal_bytes - before.wal_bytes) / lifecycles;
        ret_run->commits = (after.transactions - before.transactions) / lifecycles;
    }
    return true;
}

void bench_fill_text(char *text, size_t size, unsigned seed)
{
    static const char head[] = "{\"x\":\"", tail[] = "\"}";
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    uint64_t state = seed * 2654435761u + 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        text[i] = letters[(state >> 33) % (sizeof(letters) - 1)];
    }
    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + size - (sizeof(tail) - 1), tail, sizeof(tail) - 1);
}
