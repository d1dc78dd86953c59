/* SPDX-License-Identifier: Apache-2.0 */

#include "cmd/bench/bench_crew.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "cmd/cli/cli.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { WARM_UP_TURNS = 2 };

struct run {
    const struct weft_bench_crew *crew;
    pthread_mutex_t starting; /* held until the barriers are initialised */
    pthread_barrier_t ready, go, done;
    weft_usec end_us;
    atomic_bool failed;
};

struct member {
    struct run *run;
    uint32_t index;
    pthread_t thread;
    void *worker; /* NULL: not opened */
    uint64_t done;
    enum weft_rc rc;
    struct weft_err err;
};

/* Repeats turns: `turns` of them, and then until a moment. */
static void repeat(struct member *member, size_t turns, weft_usec until_us, uint64_t *ret_done)
{
    struct run *run = member->run;
    for (size_t i = 0; i < turns || weft_boot_us() < until_us; i++) {
        size_t done = 0;
        if (atomic_load(&run->failed) || weft_cli_interrupted())
            return;
        member->rc = run->crew->trade->turn(member->worker, &done, &member->err);
        if (member->rc)
            atomic_store(&run->failed, true);
        *ret_done += done;
    }
}

static void *member_main(void *arg)
{
    struct member *member = arg;
    struct run *run = member->run;
    const struct weft_bench_crew *crew = run->crew;
    uint64_t ignored = 0;
    pthread_mutex_lock(&run->starting);
    pthread_mutex_unlock(&run->starting);
    member->rc = crew->trade->open(crew->job, member->index, &member->worker, &member->err);
    if (member->rc)
        atomic_store(&run->failed, true);
    if (!crew->turns)
        repeat(member, WARM_UP_TURNS, weft_boot_us() + crew->warmup_us, &ignored);
    (void)pthread_barrier_wait(&run->ready);
    (void)pthread_barrier_wait(&run->go);
    repeat(member, crew->turns, crew->turns ? 0 : run->end_us, &member->done);
    (void)pthread_barrier_wait(&run->done);
    if (member->worker)
        crew->trade->close(member->worker);
    return NULL;
}

/* Starts the threads; fewer than asked for after a failure, and these do no turn. */
static uint32_t start(struct run *run, struct member *member, struct weft_err *err)
{
    uint32_t started = 0;
    int failed = 0;
    pthread_mutex_lock(&run->starting);
    for (; started < run->crew->threads && !failed; started += !failed) {
        member[started] = (struct member){.run = run, .index = started};
        failed = pthread_create(&member[started].thread, NULL, member_main, &member[started]);
    }
    if (failed) {
        (void)weft_fail(err, WEFT_UNAVAILABLE, "cannot start a thread: %s",
                        strerrordesc_np(failed));
        atomic_store(&run->failed, true);
    }
    /* The thread that measures is one more. */
    if (pthread_barrier_init(&run->ready, NULL, started + 1) ||
        pthread_barrier_init(&run->go, NULL, started + 1) ||
        pthread_barrier_init(&run->done, NULL, started + 1))
        weft_oom(sizeof(run->go));
    pthread_mutex_unlock(&run->starting);
    return started;
}

static enum weft_rc mark(struct run *run, bool end, struct weft_err *err)
{
    const struct weft_bench_crew *crew = run->crew;
    enum weft_rc rc = crew->mark ? crew->mark(crew->context, end, err) : WEFT_OK;
    if (rc)
        atomic_store(&run->failed, true);
    return rc;
}

enum weft_rc weft_bench_crew_run(const struct weft_bench_crew *crew,
                                 struct weft_bench_yield *ret_yield, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct member *member = weft_new_array(arena, struct member, crew->threads);
    struct run run = {.crew = crew, .starting = PTHREAD_MUTEX_INITIALIZER};
    uint32_t started = start(&run, member, err);
    enum weft_rc rc = started < crew->threads ? WEFT_UNAVAILABLE : WEFT_OK;
    (void)pthread_barrier_wait(&run.ready);
    if (!rc)
        rc = mark(&run, false, err);
    weft_usec start_us = weft_boot_us();
    run.end_us = start_us + crew->run_us;
    (void)pthread_barrier_wait(&run.go);
    (void)pthread_barrier_wait(&run.done);
    struct weft_bench_yield yield = {.seconds = (double)(weft_boot_us() - start_us) / 1e6};
    if (!rc)
        rc = mark(&run, true, err);
    for (uint32_t i = 0; i < started; i++) {
        (void)pthread_join(member[i].thread, NULL);
        yield.done += member[i].done;
        if (member[i].rc && !rc) {
            rc = member[i].rc;
            *err = member[i].err;
        }
    }
    (void)pthread_barrier_destroy(&run.ready);
    (void)pthread_barrier_destroy(&run.go);
    (void)pthread_barrier_destroy(&run.done);
    weft_arena_free(arena);
    if (!rc)
        *ret_yield = yield;
    return rc;
}
