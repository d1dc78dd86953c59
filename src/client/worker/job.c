/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Handlers: the threads that run them and the calls they may make about their job.
 *
 * Arguments of a handler are corrected here, so that the store never refuses them: texts are cut,
 * numbers are limited to their bounds, and a result that cannot be stored makes the job fail for
 * good instead of being tried for ever.
 */

#include "client/worker/worker.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* A copy of at most max bytes that is valid text. Bytes that are no UTF-8 become question marks. */
static char *copy_text(const char *text, size_t max)
{
    size_t size = strlen(text);
    if (size > max)
        size = weft_utf8_cut(text, size, max);
    char *copy = weft_alloc(size + 1, 1);
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): weft_alloc() clears */
    memcpy(copy, text, size);
    for (size_t at = 0; at < size;) {
        size_t step = weft_utf8_size(copy + at, size - at);
        if (step == 0)
            copy[at] = '?';
        at += step ? step : 1;
    }
    return copy;
}

/* The same for texts in which the store takes no control characters either. */
static char *copy_line(const char *text, size_t max)
{
    char *copy = copy_text(text, max);
    size_t size = strlen(copy);
    for (size_t at = 0; at < size;) {
        size_t step = weft_utf8_size(copy + at, size - at);
        if (!weft_text_printable(copy + at, step))
            memset(copy + at, ' ', step);
        at += step;
    }
    return copy;
}

void weft_job_forget_words(struct weft_job *job)
{
    free(job->result);
    free(job->content_type);
    free(job->error_class);
    free(job->error_message);
    job->content_type = job->error_class = job->error_message = NULL;
    job->result = NULL;
    job->result_size = 0;
    job->unusable = NULL;
    job->permanent = job->delay_given = false;
    job->delay_ms = 0;
    job->suspend = NULL;
    job->refused = NULL;
}

void weft_job_clear(struct weft_job *job)
{
    weft_job_forget_words(job);
    weft_job_usage_forget(job);
    free(job->note);
    job->note = NULL;
    weft_arena_free(job->arena);
    job->arena = NULL;
}

/* ---- Calls of a handler ---------------------------------------------------------------------- */

const struct weft_claimed *weft_job_claimed(const struct weft_job *job)
{
    return job ? job->claimed : NULL;
}

bool weft_job_stopping(const struct weft_job *job)
{
    if (!job || weft_check_process(job->worker->weft, NULL))
        return true; /* of the parent's job a forked child cannot know more */
    pthread_mutex_lock(&job->worker->lock);
    bool stopping = job->worker->stopping || job->fence != WEFT_FENCE_NONE;
    pthread_mutex_unlock(&job->worker->lock);
    return stopping;
}

enum weft_fence weft_job_fence(const struct weft_job *job)
{
    if (!job || weft_check_process(job->worker->weft, NULL))
        return WEFT_FENCE_UNKNOWN;
    pthread_mutex_lock(&job->worker->lock);
    enum weft_fence fence = job->fence;
    pthread_mutex_unlock(&job->worker->lock);
    return fence;
}

void weft_job_progress(struct weft_job *job, int32_t percent, const char *note)
{
    if (!job || weft_check_process(job->worker->weft, NULL))
        return;
    char *copy = note ? copy_line(note, WEFT_REASON_MAX) : NULL;
    if (percent < 0)
        percent = 0;
    pthread_mutex_lock(&job->worker->lock);
    char *before = job->note;
    job->note = copy;
    job->percent = percent > 100 ? 100 : percent;
    job->progress++;
    if (!job->worker->progressed) {
        job->worker->progressed = job->worker->poked = true;
        pthread_cond_signal(&job->worker->news);
    }
    pthread_mutex_unlock(&job->worker->lock);
    free(before);
}

void weft_job_result(struct weft_job *job, const void *result, size_t size,
                     const char *content_type)
{
    if (!job)
        return;
    free(job->result);
    free(job->content_type);
    job->result = NULL;
    job->content_type = NULL;
    job->result_size = 0;
    job->unusable = NULL;
    if (!result && size == 0)
        return;
    if (!result)
        job->unusable = "the handler gave a result of NULL with a size";
    else if (size > WEFT_PAYLOAD_MAX)
        job->unusable = "the result is larger than a result may be";
    else if (content_type && (strlen(content_type) > WEFT_CONTENT_TYPE_MAX ||
                              !weft_text_printable(content_type, strlen(content_type))))
        job->unusable = "the content type of the result is not valid";
    if (job->unusable)
        return;
    job->result = weft_realloc(NULL, size + 1, 1);
    memcpy(job->result, result, size);
    job->result_size = size;
    job->content_type = content_type ? copy_text(content_type, WEFT_CONTENT_TYPE_MAX) : NULL;
}

void weft_job_error(struct weft_job *job, const char *error_class, const char *message)
{
    if (!job)
        return;
    free(job->error_class);
    free(job->error_message);
    job->error_class = error_class && *error_class ? copy_line(error_class, WEFT_CLASS_MAX) : NULL;
    job->error_message = message ? copy_text(message, WEFT_MESSAGE_MAX) : NULL;
}

void weft_job_delay(struct weft_job *job, int64_t delay_ms)
{
    if (!job)
        return;
    job->delay_given = true;
    job->delay_ms = delay_ms < 0 ? 0 : delay_ms;
    if (job->delay_ms > WEFT_DELAY_MAX_MS)
        job->delay_ms = WEFT_DELAY_MAX_MS;
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void set_word(struct weft_job *job, enum weft_verdict verdict)
{
    job->word = WEFT_WORD_FAIL;
    switch (verdict) {
    case WEFT_DONE:
        if (!job->unusable) {
            job->word = WEFT_WORD_COMPLETE;
            return;
        }
        job->permanent = true;
        weft_job_error(job, "result_refused", job->unusable);
        return;
    case WEFT_NOT_NOW:
        job->word = WEFT_WORD_DELAY;
        return;
    case WEFT_RETRY:
        return;
    case WEFT_GIVE_UP:
        job->permanent = true;
        return;
    case WEFT_SUSPEND:
        if (!job->suspend)
            weft_job_error(job, "bad_verdict",
                           "the handler returned WEFT_SUSPEND without weft_job_suspend()");
        else if (job->refused)
            weft_job_error(job, "suspend_refused", job->refused->text);
        else
            job->word = WEFT_WORD_SUSPEND;
        return;
    }
    weft_job_error(job, "bad_verdict", "the handler returned something that is no verdict");
}

/* The next job to run, NULL when the worker stops. The lock is held. */
static struct weft_job *take_job(struct weft_worker *worker)
{
    while (!worker->queue.first && !worker->stopping)
        pthread_cond_wait(&worker->work, &worker->lock);
    if (worker->stopping)
        return NULL; /* queued jobs are given back */
    struct weft_job *job = worker->queue.first;
    worker->queue.first = job->next;
    if (!job->next)
        worker->queue.last = &worker->queue.first;
    worker->queue.count--;
    job->stage = WEFT_STAGE_RUNNING;
    worker->running++;
    return job;
}

void *weft_handler_main(void *context)
{
    struct weft_worker *worker = context;
    pthread_mutex_lock(&worker->lock);
    struct weft_job *job;
    while ((job = take_job(worker))) {
        pthread_mutex_unlock(&worker->lock);
        set_word(job, job->on->handler(job, job->on->context));
        pthread_mutex_lock(&worker->lock);
        worker->running--;
        job->stage = WEFT_STAGE_FINISHED;
        if (job->abandoned)
            continue;
        weft_job_list_add(&worker->finished, job);
        if (!worker->poked) {
            worker->poked = true;
            pthread_cond_signal(&worker->news);
        }
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}
