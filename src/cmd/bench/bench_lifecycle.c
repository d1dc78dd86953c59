/* SPDX-License-Identifier: Apache-2.0 */

/* A crew of threads, and lifecycles in this process as its turns. */

#include "cmd/bench/bench_lifecycle.h"

#include "base/clock.h"
#include "cmd/bench/bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { WARM_UP_TURNS = 2 };
enum { READY, GO, DONE, STEPS }; /* where all threads of a run wait for each other */

struct run {
    const struct weft_bench_crew *crew;
    pthread_mutex_t starting; /* held until the barriers are initialised */
    pthread_barrier_t step[STEPS];
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
    (void)pthread_barrier_wait(&run->step[READY]);
    (void)pthread_barrier_wait(&run->step[GO]);
    repeat(member, crew->turns, crew->turns ? 0 : run->end_us, &member->done);
    (void)pthread_barrier_wait(&run->step[DONE]);
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
    for (int i = 0; i < STEPS; i++)
        if (pthread_barrier_init(&run->step[i], NULL, started + 1))
            weft_oom(sizeof(run->step));
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
    (void)pthread_barrier_wait(&run.step[READY]);
    if (!rc)
        rc = mark(&run, false, err);
    weft_usec start_us = weft_boot_us();
    run.end_us = start_us + crew->run_us;
    (void)pthread_barrier_wait(&run.step[GO]);
    (void)pthread_barrier_wait(&run.step[DONE]);
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
    for (int i = 0; i < STEPS; i++)
        (void)pthread_barrier_destroy(&run.step[i]);
    weft_arena_free(arena);
    if (!rc)
        *ret_yield = yield;
    return rc;
}

/* ---- Lifecycles ------------------------------------------------------------------------------ */

enum { LEASE_MS = 15000 };

static const char *const names[WEFT_BENCH_QUEUES] = {"q0", "q1", "q2", "q3", "q4",
                                                     "q5", "q6", "q7", "q8", "q9"};

struct worker {
    struct weft_bench_job *job;
    struct weft_arena *memory; /* of everything below */
    struct weft_claim claim;
    struct weft_spec *spec; /* array of job->batch, as the next three */
    struct weft_submitted *submitted;
    struct weft_complete *complete;
    struct weft_lease_answer *answer;
};

static const char *make_document(struct weft_arena *arena, size_t size, unsigned seed,
                                 size_t *ret_size)
{
    struct weft_buf buf;
    weft_buf_init(&buf, size + 64);
    weft_bench_document(&buf, size, seed);
    *ret_size = buf.size;
    const char *text = weft_arena_dup(arena, buf.data, buf.size);
    weft_buf_done(&buf);
    return text;
}

static struct weft_spec make_spec(const struct worker *worker, uint32_t index, uint32_t i)
{
    const struct weft_bench_job *job = worker->job;
    const char *name = names[i % WEFT_BENCH_QUEUES];
    struct weft_spec spec = {.lane = job->lane, .kind = job->kind};
    if (job->payload_size > 0)
        spec.payload =
            make_document(worker->memory, job->payload_size, index * 1000 + i, &spec.payload_size);
    if (job->spread == WEFT_BENCH_KINDS)
        spec.kind = name;
    else if (job->spread == WEFT_BENCH_TENANTS)
        spec.tenant = name;
    else if (job->spread == WEFT_BENCH_LANES)
        spec.lane = name;
    return spec;
}

static enum weft_rc open_worker(void *arg, uint32_t index, void **ret_worker, struct weft_err *err)
{
    struct weft_bench_job *job = arg;
    struct weft_arena *memory = weft_arena_new();
    struct worker *worker = weft_new(memory, struct worker);
    *worker = (struct worker){
        .job = job,
        .memory = memory,
        .claim = {.worker = weft_arena_printf(memory, "weft-bench-%u", index),
                  .max = job->batch,
                  .lease_ms = LEASE_MS},
        .spec = weft_new_array(memory, struct weft_spec, job->batch),
        .submitted = weft_new_array(memory, struct weft_submitted, job->batch),
        .complete = weft_new_array(memory, struct weft_complete, job->batch),
        .answer = weft_new_array(memory, struct weft_lease_answer, job->batch),
    };
    bool lanes = job->spread == WEFT_BENCH_LANES;
    worker->claim.lanes = lanes ? names : &job->lane;
    worker->claim.lane_count = lanes ? WEFT_BENCH_QUEUES : job->lane != NULL;
    worker->claim.kinds = &job->kind;
    worker->claim.kind_count = job->only_kind;
    size_t size;
    const char *result = make_document(memory, WEFT_BENCH_RESULT_SIZE, index, &size);
    for (uint32_t i = 0; i < job->batch; i++) {
        worker->spec[i] = make_spec(worker, index, i);
        worker->complete[i] = (struct weft_complete){.result = result, .result_size = size};
    }
    (void)err;
    *ret_worker = worker;
    return WEFT_OK;
}

static void close_worker(void *arg)
{
    struct worker *worker = arg;
    weft_arena_free(worker->memory);
}

static enum weft_rc submit(struct worker *worker, struct weft_err *err)
{
    struct weft_bench_job *job = worker->job;
    enum weft_rc rc = weft_submit(job->weft, worker->spec, job->batch, worker->submitted, err);
    for (uint32_t i = 0; i < job->batch && !rc; i++) {
        rc = worker->submitted[i].err.rc;
        if (rc)
            *err = worker->submitted[i].err;
    }
    atomic_fetch_add(&job->backlog, job->batch);
    return rc;
}

/* Claims a batch and completes it. */
static enum weft_rc work(struct worker *worker, size_t *ret_done, struct weft_err *err)
{
    struct weft_bench_job *job = worker->job;
    struct weft_claims got = {0};
    enum weft_rc rc = weft_claim(job->weft, &worker->claim, 1, &got, err);
    if (rc)
        return rc;
    size_t count = got.count;
    for (size_t i = 0; i < count; i++) {
        worker->complete[i].id = got.item[i].id;
        worker->complete[i].epoch = got.item[i].epoch;
    }
    weft_claims_free(&got);
    atomic_fetch_sub(&job->backlog, (long long)count);
    rc = weft_complete(job->weft, worker->complete, count, worker->answer, err);
    for (size_t i = 0; i < count && !rc; i++) {
        rc = worker->answer[i].err.rc;
        if (rc)
            *err = worker->answer[i].err;
    }
    *ret_done = count;
    return rc;
}

static enum weft_rc turn(void *arg, size_t *ret_done, struct weft_err *err)
{
    struct worker *worker = arg;
    struct weft_bench_job *job = worker->job;
    enum weft_rc rc = WEFT_OK;
    if (!job->backlog_max || atomic_load(&job->backlog) < job->backlog_max)
        rc = submit(worker, err);
    *ret_done = job->batch;
    return rc || job->submit_only ? rc : work(worker, ret_done, err);
}

const struct weft_bench_trade weft_bench_lifecycle = {open_worker, turn, close_worker};

enum weft_rc weft_bench_drain(struct weft_bench_job *job, struct weft_err *err)
{
    void *worker;
    size_t done = 1;
    enum weft_rc rc = open_worker(job, 0, &worker, err);
    while (!rc && done > 0)
        rc = work(worker, &done, err);
    close_worker(worker);
    return rc;
}
