/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Words: how jobs ended, as the keeper tells the store.
 *
 * Jobs that ended while the last call ran go into the next one, a call per word: complete, fail,
 * delay, release, suspend. A word that the store could not take is kept and sent again, which is
 * safe: the holder of a lease gets the same answer twice. A word is done when the store accepted it
 * or answered that the lease is gone.
 */

#include "base/arena.h"
#include "base/err.h"
#include "client/worker/worker.h"
#include "core/fence.h"
#include "core/result.h"
#include "engine/call.h"

#include <assert.h>
#include <stddef.h>

/* The jobs of one call and their answers. */
struct words {
    struct weft_job **job;
    void *answer; /* array of results, of the kind of the word */
    size_t count;
};

/* All results about leases begin as a struct weft_lease_result does. */
#define BEGINS_ALIKE(member)                                                                       \
    static_assert(offsetof(struct weft_suspend_result, member) ==                                  \
                      offsetof(struct weft_lease_result, member),                                  \
                  #member)
BEGINS_ALIKE(err);
BEGINS_ALIKE(rc);
BEGINS_ALIKE(fence);
BEGINS_ALIKE(state);

static const void *make_completes(const struct words *words, struct weft_arena *arena)
{
    struct weft_complete *item = weft_new_array(arena, struct weft_complete, words->count);
    for (size_t i = 0; i < words->count; i++) {
        const struct weft_job *job = words->job[i];
        item[i] = (struct weft_complete){.id = job->claimed->id,
                                         .epoch = job->claimed->epoch,
                                         .result = job->result,
                                         .result_size = job->result_size,
                                         .content_type = job->content_type};
    }
    return item;
}

static const void *make_failures(const struct words *words, struct weft_arena *arena)
{
    struct weft_failure *item = weft_new_array(arena, struct weft_failure, words->count);
    for (size_t i = 0; i < words->count; i++) {
        const struct weft_job *job = words->job[i];
        item[i] = (struct weft_failure){.id = job->claimed->id,
                                        .epoch = job->claimed->epoch,
                                        .error_class = job->error_class,
                                        .message = job->error_message,
                                        .permanent = job->permanent};
        if (job->delay_given)
            item[i].retry_after_ms = job->delay_ms ? job->delay_ms : -1;
    }
    return item;
}

static const void *make_put_backs(const struct words *words, struct weft_arena *arena)
{
    struct weft_put_back *item = weft_new_array(arena, struct weft_put_back, words->count);
    for (size_t i = 0; i < words->count; i++) {
        const struct weft_job *job = words->job[i];
        item[i] = (struct weft_put_back){
            .id = job->claimed->id,
            .epoch = job->claimed->epoch,
            .delay_ms = job->word == WEFT_WORD_DELAY ? job->delay_ms : 0,
        };
    }
    return item;
}

static const void *make_suspends(const struct words *words, struct weft_arena *arena)
{
    struct weft_suspend *item = weft_new_array(arena, struct weft_suspend, words->count);
    for (size_t i = 0; i < words->count; i++) {
        const struct weft_job *job = words->job[i];
        item[i] = *job->suspend;
        item[i].id = job->claimed->id;
        item[i].epoch = job->claimed->epoch;
    }
    return item;
}

#define LEASE sizeof(struct weft_lease_result)

static const struct {
    enum weft_op op;
    const void *(*make)(const struct words *words, struct weft_arena *arena); /* the items */
    size_t answer;                                                            /* its size */
} says[WEFT_WORD_COUNT] = {
    [WEFT_WORD_COMPLETE] = {WEFT_OP_COMPLETE, make_completes, LEASE},
    [WEFT_WORD_FAIL] = {WEFT_OP_FAIL, make_failures, LEASE},
    [WEFT_WORD_DELAY] = {WEFT_OP_DELAY, make_put_backs, LEASE},
    [WEFT_WORD_RELEASE] = {WEFT_OP_RELEASE, make_put_backs, LEASE},
    [WEFT_WORD_SUSPEND] = {WEFT_OP_SUSPEND, make_suspends, sizeof(struct weft_suspend_result)},
};

static uint64_t *number_of(struct weft_worker *worker, enum weft_word word)
{
    struct weft_worker_stats *stats = &worker->stats;
    switch (word) {
    case WEFT_WORD_COMPLETE:
        return &stats->completed;
    case WEFT_WORD_FAIL:
        return &stats->failed;
    case WEFT_WORD_SUSPEND:
        return &stats->suspended;
    case WEFT_WORD_DELAY:
    case WEFT_WORD_RELEASE:
    case WEFT_WORD_COUNT:
        break;
    }
    return &stats->put_back;
}

/* A suspend that the store will never take: the attempt fails. */
static void refuse_suspend(struct weft_worker *worker, struct weft_job *job,
                           const struct weft_err *err)
{
    weft_job_error(job, "suspend_refused", err->text);
    job->word = WEFT_WORD_FAIL;
    weft_job_list_add(&worker->unsent, job);
}

/* The lease stays, because signals came early: the handler is called again. */
static void go_on(struct weft_worker *worker, struct weft_job *job,
                  const struct weft_suspend_result *answer)
{
    if (weft_job_go_on(job, answer))
        weft_hold_requeue(worker, job);
    else
        weft_job_list_add(&worker->unsent, job);
}

/* Takes one answer in. *ret_ready: the execution can be claimed again. False: send it again. */
static bool settle(struct weft_worker *worker, struct weft_job *job,
                   const struct weft_lease_result *answer, bool *ret_ready)
{
    enum weft_rc rc = answer->rc;
    if (rc && weft_rc_retryable(rc)) {
        weft_job_list_add(&worker->unsent, job);
        return false;
    }
    bool suspends = job->word == WEFT_WORD_SUSPEND;
    if (suspends && rc == WEFT_OK && ((const struct weft_suspend_result *)answer)->satisfied) {
        go_on(worker, job, (const struct weft_suspend_result *)answer);
        return true;
    }
    if (suspends && rc && rc != WEFT_FENCED && rc != WEFT_NOT_FOUND) {
        refuse_suspend(worker, job, answer->err);
        return true;
    }
    if (rc == WEFT_OK) {
        weft_worker_count(worker, number_of(worker, job->word), 1);
        *ret_ready |= answer->state == WEFT_STATE_READY;
        if (answer->state == WEFT_STATE_DELAYED)
            weft_keeper_expect_due(worker, answer->run_at_us);
    } else {
        weft_worker_count(worker, &worker->stats.fenced, 1);
        *ret_ready |= weft_fence_drains(answer->fence); /* its slot is free for another */
    }
    weft_hold_drop(worker, job);
    return true;
}

/* Sends the words of one kind. False: the store needs a pause. */
static bool send_word(struct weft_worker *worker, struct words *words, struct weft_arena *arena,
                      bool *ret_ready)
{
    struct weft_err err = {0};
    enum weft_word word = words->job[0]->word;
    const struct weft_op_call call = {.op = says[word].op,
                                      .in = says[word].make(words, arena),
                                      .count = words->count,
                                      .out = words->answer,
                                      .arena = arena};
    enum weft_rc rc = worker->weft->backend->call(&worker->via, &call, &err);
    if (!weft_keeper_note_result(worker, &worker->send, rc, &err)) {
        for (size_t i = 0; i < words->count; i++)
            if (word == WEFT_WORD_SUSPEND && rc == WEFT_NOT_FOUND) /* the server is older */
                refuse_suspend(worker, words->job[i], &err);
            else
                weft_job_list_add(&worker->unsent, words->job[i]);
        return false;
    }
    const struct weft_lease_result *again = NULL;
    for (size_t i = 0; i < words->count; i++) {
        const struct weft_lease_result *answer =
            (const void *)((const char *)words->answer + i * says[word].answer);
        if (!settle(worker, words->job[i], answer, ret_ready))
            again = answer;
    }
    if (again)
        (void)weft_keeper_note_result(worker, &worker->send, again->rc, again->err);
    return !again;
}

/*
 * Splits the jobs by their words. A job whose lease is known to be gone sends none; but where
 * others ended the lease before its time, a release, however it is answered, lets go of it.
 */
static void sort_words(struct weft_worker *worker, const struct weft_job_list *all,
                       struct weft_arena *arena, struct words words[WEFT_WORD_COUNT])
{
    size_t count[WEFT_WORD_COUNT] = {0};
    for (const struct weft_job *job = all->first; job; job = job->next)
        count[weft_fence_drains(job->fence) ? WEFT_WORD_RELEASE : job->word]++;
    for (size_t w = 0; w < WEFT_WORD_COUNT; w++)
        words[w] = (struct words){
            .job = weft_new_array(arena, struct weft_job *, count[w]),
            .answer = weft_arena_alloc(arena, count[w], says[w].answer),
        };
    for (struct weft_job *job = all->first, *next; job; job = next) {
        next = job->next;
        /* Only the keeper writes fences, so this needs no lock. A fence is final. */
        if (weft_fence_drains(job->fence)) {
            job->word = WEFT_WORD_RELEASE;
        } else if (job->fence != WEFT_FENCE_NONE) {
            /* A suspend whose answer was lost ended the lease that a heartbeat then asked for. */
            bool done = job->fence == WEFT_FENCE_SUSPENDED && job->word == WEFT_WORD_SUSPEND;
            weft_worker_count(worker, done ? &worker->stats.suspended : &worker->stats.fenced, 1);
            weft_hold_drop(worker, job);
            continue;
        }
        struct words *mine = &words[job->word];
        mine->job[mine->count++] = job;
    }
}

void weft_words_send(struct weft_worker *worker)
{
    struct weft_job_list all;
    weft_job_list_init(&all);
    weft_job_list_move(&all, &worker->unsent);
    struct weft_arena *arena = weft_arena_new();
    struct words words[WEFT_WORD_COUNT];
    sort_words(worker, &all, arena, words);
    bool open = true, ready = false;
    for (size_t w = 0; w < WEFT_WORD_COUNT; w++) {
        if (words[w].count == 0)
            continue;
        if (open)
            open = send_word(worker, &words[w], arena, &ready);
        else
            for (size_t i = 0; i < words[w].count; i++)
                weft_job_list_add(&worker->unsent, words[w].job[i]);
    }
    weft_arena_free(arena);
    if (ready)
        weft_wake_workers(worker->weft, true, WEFT_NEVER);
}

void weft_words_abandon(struct weft_worker *worker)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_put_back *item =
        weft_new_array(arena, struct weft_put_back, WEFT_WORKER_THREADS_MAX);
    struct weft_lease_result *answer =
        weft_new_array(arena, struct weft_lease_result, WEFT_WORKER_THREADS_MAX);
    size_t count = 0;
    pthread_mutex_lock(&worker->lock);
    for (struct weft_grant *grant = worker->grant; grant; grant = grant->next)
        for (size_t i = 0; i < grant->count; i++) {
            struct weft_job *job = &grant->job[i];
            if (job->stage != WEFT_STAGE_RUNNING)
                continue;
            job->abandoned = true;
            worker->stragglers++;
            if (job->fence == WEFT_FENCE_NONE)
                item[count++] =
                    (struct weft_put_back){.id = job->claimed->id, .epoch = job->claimed->epoch};
            job->fence = job->fence ? job->fence : WEFT_FENCE_RELEASED;
        }
    pthread_mutex_unlock(&worker->lock);
    struct weft_err err = {0};
    if (count > 0) {
        const struct weft_op_call call = {
            .op = WEFT_OP_RELEASE, .in = item, .count = count, .out = answer, .arena = arena};
        enum weft_rc rc = worker->weft->backend->call(&worker->via, &call, &err);
        /* When the store does not hear it, the leases run out by themselves. */
        if (weft_keeper_note_result(worker, &worker->send, rc, &err)) {
            weft_worker_count(worker, &worker->stats.put_back, count);
            weft_wake_workers(worker->weft, true, WEFT_NEVER);
        }
    }
    weft_arena_free(arena);
}
