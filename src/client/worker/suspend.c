/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of a handler about waiting, and what becomes of a job whose suspend was satisfied at
 * once: it keeps its lease, and its handler is called again with the signals.
 *
 * Such a job could repeat that for ever: the store judges the waitpoints that a lease has taken by
 * the same signals each time they are named. So a call must bring a signal that the handler did not
 * have. Where not all signals come along their number does not tell; then the calls are counted.
 */

#include "base/arena.h"
#include "base/err.h"
#include "client/worker/worker.h"
#include "engine/wait/wait.h"

enum { SATISFIED_MAX = 1000 }; /* suspends of one lease that are satisfied at once */

static struct weft_arena *arena_of(struct weft_job *job)
{
    if (!job->arena)
        job->arena = weft_arena_new();
    return job->arena;
}

/* What the store would refuse is found here, where the handler can be blamed for it alone. */
static enum weft_rc check_request(const struct weft_suspend *request, struct weft_err *err)
{
    enum weft_rc rc =
        weft_check_array(request->waitpoint, request->waitpoint_count, "waitpoints", 0, err);
    return rc ? rc : weft_suspend_check(request, err);
}

void weft_job_suspend(struct weft_job *job, const struct weft_suspend *request)
{
    if (!job)
        return;
    job->suspend = NULL;
    job->refused = NULL;
    if (!request)
        return;
    struct weft_arena *arena = arena_of(job);
    struct weft_suspend *copy = weft_arena_dup(arena, request, sizeof(*request));
    struct weft_err err = {0};
    job->suspend = copy;
    if (check_request(request, &err)) {
        job->refused = weft_err_dup(arena, &err);
        return;
    }
    struct weft_suspend_at *at =
        weft_new_array(arena, struct weft_suspend_at, request->waitpoint_count + 1);
    for (size_t i = 0; i < request->waitpoint_count; i++) {
        at[i] = request->waitpoint[i];
        at[i].name = weft_arena_strdup(arena, at[i].name);
    }
    copy->waitpoint = at;
    copy->condition = weft_arena_strdup(arena, request->condition);
    copy->reason = weft_arena_strdup(arena, request->reason);
}

enum weft_rc weft_job_waitpoint(struct weft_job *job, const char *name, int64_t expires_ms,
                                struct weft_waitpoint *ret_waitpoint, struct weft_err *err)
{
    if (!job || !name || !ret_waitpoint)
        return weft_missing(!job ? "job" : name ? "ret_waitpoint" : "name", err);
    const struct weft_waitpoint_new item = {.id = job->claimed->id,
                                            .epoch = job->claimed->epoch,
                                            .name = name,
                                            .expires_ms = expires_ms};
    struct weft_waitpoints_made made = {0};
    enum weft_rc rc = weft_waitpoint_make(job->worker->weft, &item, 1, &made, err);
    if (rc)
        return rc;
    rc = made.item[0].err.rc;
    if (rc) {
        rc = weft_copy_err(rc, &made.item[0].err, err);
    } else {
        struct weft_arena *arena = arena_of(job);
        *ret_waitpoint = made.item[0].waitpoint;
        ret_waitpoint->name = weft_arena_strdup(arena, ret_waitpoint->name);
        ret_waitpoint->token = weft_arena_strdup(arena, ret_waitpoint->token);
    }
    weft_waitpoints_made_free(&made);
    return rc;
}

const struct weft_signal_info *weft_job_signals(const struct weft_job *job, size_t *ret_count)
{
    const struct weft_claimed *claimed = job ? job->claimed : NULL;
    if (ret_count)
        *ret_count = claimed ? claimed->signal_count : 0;
    return claimed && claimed->signal_count ? claimed->signal : NULL;
}

/* ---- Satisfied at once ----------------------------------------------------------------------- */

static const struct weft_signal_info *copy_signals(const struct weft_suspend_result *answer,
                                                   struct weft_arena *arena)
{
    struct weft_signal_info *copy =
        weft_new_array(arena, struct weft_signal_info, answer->signal_count + 1);
    for (size_t i = 0; i < answer->signal_count; i++) {
        copy[i] = answer->signal[i];
        copy[i].waitpoint_name = weft_arena_strdup(arena, copy[i].waitpoint_name);
        copy[i].name = weft_arena_strdup(arena, copy[i].name);
        copy[i].source = weft_arena_strdup(arena, copy[i].source);
        copy[i].key = weft_arena_strdup(arena, copy[i].key);
        copy[i].content_type = weft_arena_strdup(arena, copy[i].content_type);
        if (copy[i].payload)
            copy[i].payload = weft_arena_dup(arena, copy[i].payload, copy[i].payload_size);
    }
    return copy;
}

bool weft_job_go_on(struct weft_job *job, const struct weft_suspend_result *answer)
{
    bool repeats = !answer->more_signals && answer->signal_count <= job->signals_seen;
    if (repeats || ++job->satisfied > SATISFIED_MAX) {
        weft_job_error(job, "suspend_repeated",
                       "the handler suspended until it has signals that it has: it should look at "
                       "weft_job_signals() first");
        job->word = WEFT_WORD_FAIL;
        return false;
    }
    struct weft_arena *arena = weft_arena_new();
    struct weft_claimed *claimed = weft_arena_dup(arena, job->claimed, sizeof(*claimed));
    claimed->resumed = true;
    claimed->resumed_by = WEFT_RESUMED_BY_SIGNALS;
    claimed->resumed_us = 0;
    claimed->signal = copy_signals(answer, arena);
    claimed->signal_count = answer->signal_count;
    claimed->more_signals = answer->more_signals;
    job->claimed = claimed; /* all else in it is in the arena of the grant */
    job->signals_seen = answer->signal_count;
    weft_job_forget_words(job);
    weft_job_usage_again(job);
    weft_arena_free(job->arena);
    job->arena = arena;
    return true;
}
