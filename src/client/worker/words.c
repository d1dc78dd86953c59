/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Words: how jobs ended, as the keeper tells the store.
 *
 * Jobs that ended while the last call ran go into the next one, a call per word: complete, fail,
 * delay, release. A word that the store could not take is kept and sent again, which is safe: the
 * holder of a lease gets the same answer twice. A word is done when the store accepted it or
 * answered that the lease is gone.
 */

#include "base/arena.h"
#include "base/err.h"
#include "client/worker/worker.h"
#include "core/fence.h"
#include "core/result.h"
#include "engine/call.h"

/* The jobs of one call and their answers. */
struct words {
    struct weft_job **job;
    struct weft_lease_result *answer;
    size_t count;
};

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

static const struct {
    enum weft_op op;
    const void *(*make)(const struct words *words, struct weft_arena *arena); /* the items */
} says[WEFT_WORD_COUNT] = {
    [WEFT_WORD_COMPLETE] = {WEFT_OP_COMPLETE, make_completes},
    [WEFT_WORD_FAIL] = {WEFT_OP_FAIL, make_failures},
    [WEFT_WORD_DELAY] = {WEFT_OP_DELAY, make_put_backs},
    [WEFT_WORD_RELEASE] = {WEFT_OP_RELEASE, make_put_backs},
};

static uint64_t *number_of(struct weft_worker *worker, enum weft_word word)
{
    struct weft_worker_stats *stats = &worker->stats;
    switch (word) {
    case WEFT_WORD_COMPLETE:
        return &stats->completed;
    case WEFT_WORD_FAIL:
        return &stats->failed;
    case WEFT_WORD_DELAY:
    case WEFT_WORD_RELEASE:
    case WEFT_WORD_COUNT:
        break;
    }
    return &stats->put_back;
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
            weft_job_list_add(&worker->unsent, words->job[i]);
        return false;
    }
    const struct weft_lease_result *again = NULL;
    for (size_t i = 0; i < words->count; i++)
        if (!settle(worker, words->job[i], &words->answer[i], ret_ready))
            again = &words->answer[i];
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
            .answer = weft_new_array(arena, struct weft_lease_result, count[w]),
        };
    for (struct weft_job *job = all->first, *next; job; job = next) {
        next = job->next;
        /* Only the keeper writes fences, so this needs no lock. A fence is final. */
        if (weft_fence_drains(job->fence)) {
            job->word = WEFT_WORD_RELEASE;
        } else if (job->fence != WEFT_FENCE_NONE) {
            weft_worker_count(worker, &worker->stats.fenced, 1);
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
