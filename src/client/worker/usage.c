/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What handlers spend. The store wants the totals of a lease, and a handler counts from zero each
 * time it is called: when it is called again under the same lease, because signals came early, what
 * its calls before have reported is added to what it reports now.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/err.h"
#include "client/worker/worker.h"
#include "core/budget.h"

#include <stdlib.h>
#include <string.h>

struct weft_spent {
    char *dimension; /* owned */
    int64_t before;  /* by calls of the handler before this one */
    int64_t now;     /* by this one */
};

static struct weft_spent *find_spent(const struct weft_job *job, const char *dimension)
{
    for (size_t i = 0; i < job->spent_count; i++)
        if (strcmp(job->spent[i].dimension, dimension) == 0)
            return &job->spent[i];
    return NULL;
}

static void note_spent(struct weft_job *job, const struct weft_amount *total)
{
    struct weft_spent *spent = find_spent(job, total->dimension);
    if (!spent) {
        size_t size = strlen(total->dimension) + 1;
        job->spent = weft_realloc(job->spent, job->spent_count + 1, sizeof(*spent));
        spent = &job->spent[job->spent_count++];
        *spent = (struct weft_spent){.dimension = weft_realloc(NULL, size, 1)};
        memcpy(spent->dimension, total->dimension, size);
    }
    if (total->amount > spent->now)
        spent->now = total->amount;
}

void weft_job_usage_again(struct weft_job *job)
{
    for (size_t i = 0; i < job->spent_count; i++) {
        job->spent[i].before += job->spent[i].now;
        job->spent[i].now = 0;
    }
}

void weft_job_usage_forget(struct weft_job *job)
{
    for (size_t i = 0; i < job->spent_count; i++)
        free(job->spent[i].dimension);
    free(job->spent);
    job->spent = NULL;
    job->spent_count = 0;
}

/* The lease is gone: the handler and the keeper get to know. */
static void note_fence(struct weft_job *job, enum weft_fence fence)
{
    pthread_mutex_lock(&job->worker->lock);
    if (job->fence == WEFT_FENCE_NONE)
        job->fence = fence == WEFT_FENCE_NONE ? WEFT_FENCE_UNKNOWN : fence;
    pthread_mutex_unlock(&job->worker->lock);
}

/* Reports the totals of the lease. */
static enum weft_rc report(struct weft_job *job, const struct weft_amount *totals, size_t count,
                           struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_amount *all = weft_new_array(arena, struct weft_amount, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct weft_spent *spent = find_spent(job, totals[i].dimension);
        all[i] = totals[i];
        all[i].amount += spent ? spent->before : 0;
    }
    const struct weft_usage item = {
        .id = job->claimed->id, .epoch = job->claimed->epoch, .totals = all, .total_count = count};
    struct weft_usage_result result = {0};
    const struct weft_op_call call = {
        .op = WEFT_OP_USAGE, .in = &item, .count = 1, .out = &result, .arena = arena};
    /* A worker that is stopped does not wait for a server that does not answer. */
    const struct weft_via via = {.weft = job->worker->weft, .stop = &job->worker->all_stop};
    enum weft_rc rc = via.weft->backend->call(&via, &call, err);
    if (!rc && result.rc) {
        rc = weft_copy_err(result.rc, result.err, err);
        if (rc == WEFT_FENCED || rc == WEFT_NOT_FOUND) /* or it was erased */
            note_fence(job, result.fence);
    }
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_job_usage(struct weft_job *job, const struct weft_amount *totals, size_t count,
                            struct weft_err *err)
{
    struct weft_err story = {0};
    if (!job || (count > 0 && !totals))
        return weft_missing(job ? "totals" : "job", err);
    enum weft_rc rc = weft_check_process(job->worker->weft, &story);
    if (!rc)
        rc = weft_amounts_check(totals, count, "totals", &story);
    if (!rc)
        rc = report(job, totals, count, &story);
    /* A report without an answer may be recorded, and was spent in any case. */
    for (size_t i = 0; i < count && (!rc || rc == WEFT_UNAVAILABLE); i++)
        note_spent(job, &totals[i]);
    return weft_copy_err(rc, &story, err);
}
