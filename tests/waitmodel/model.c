/* SPDX-License-Identifier: Apache-2.0 */

/* What must be: the states of executions, the ends of leases, waitpoints and flows of two. */

#include "waitmodel.h"

#include "core/state.h"

#include <assert.h>

bool lives(enum weft_state state)
{
    return state == WEFT_STATE_READY || state == WEFT_STATE_DELAYED ||
           state == WEFT_STATE_BLOCKED || state == WEFT_STATE_RUNNING ||
           state == WEFT_STATE_SUSPENDED;
}

static void keep_lease(struct execution *x, const struct lease *lease)
{
    assert(x->leases < LEASES_MAX);
    x->lease[x->leases++] = *lease;
}

void change_state(struct world *w, struct execution *x, const struct change *change)
{
    bool held = x->state == WEFT_STATE_RUNNING && change->to != WEFT_STATE_RUNNING;
    x->touched = true;
    if (!lives(change->to)) {
        x->ended = change->ended;
        x->held = held;
        x->finished_us = w->now_us;
        x->by = change->by;
        x->reason = change->reason;
        x->error_class = change->error_class;
        x->error_message = change->error_message;
    } else if (held) {
        keep_lease(
            x, &(struct lease){.epoch = x->epoch,
                               .attempt = x->attempt,
                               .held = true,
                               .ended = change->ended,
                               .answer = change->to,
                               .error_class = change->error_class,
                               .error_message = change->error_message,
                               .claimed_us = x->claimed_us,
                               .ended_us = w->now_us,
                               .run_at_us = change->to == WEFT_STATE_DELAYED ? change->due_us : 0});
        x->claimed_us = x->attempt_deadline_us = 0;
    }
    x->due_us = change->due_us;
    x->state = change->to;
}

/* A failure uses an attempt; the next one begins after the backoff. */
void fail_attempt(struct world *w, struct execution *x, const struct change *change, bool permanent)
{
    struct change mine = *change;
    if (permanent || x->attempt - x->forgiven >= ATTEMPTS) {
        mine.to = WEFT_STATE_FAILED;
        change_state(w, x, &mine);
        return;
    }
    mine.to = WEFT_STATE_DELAYED;
    mine.due_us = w->now_us + BACKOFF_MS * WEFT_MS;
    change_state(w, x, &mine);
    x->attempt++;
}

void resume(struct world *w, struct execution *x, enum weft_resumed_by by, int64_t delay_ms)
{
    x->resumption = (struct resumption){.by = by, .at_us = w->now_us, .count = x->suspension.count};
    memcpy(x->resumption.point, x->suspension.point, sizeof(x->resumption.point));
    w->resumed[by]++;
    change_state(w, x,
                 &(struct change){.to = delay_ms ? WEFT_STATE_DELAYED : WEFT_STATE_READY,
                                  .due_us = delay_ms ? w->now_us + delay_ms * WEFT_MS : 0});
}

void replay(struct world *w, struct execution *x, enum weft_state to)
{
    (void)w;
    x->replays++;
    keep_lease(x, &(struct lease){.epoch = x->epoch,
                                  .attempt = x->attempt,
                                  .held = x->held,
                                  .ended = x->ended,
                                  .answer = x->state,
                                  .error_class = x->error_class,
                                  .error_message = x->error_message,
                                  .claimed_us = x->claimed_us,
                                  .ended_us = x->finished_us});
    x->attempt += x->ended == WEFT_ENDED_FAILED || x->ended == WEFT_ENDED_TIMED_OUT;
    x->forgiven = x->attempt - 1;
    x->lost = 0;
    x->deadline_us = x->due_us = x->claimed_us = x->attempt_deadline_us = x->finished_us = 0;
    x->ended = WEFT_ENDED_NONE;
    x->held = false;
    x->by = x->reason = x->error_class = x->error_message = NULL;
    x->resumption = (struct resumption){0};
    x->state = to;
    x->touched = true;
}

/* ---- Leases ---------------------------------------------------------------------------------- */

bool holds(const struct execution *x, int32_t epoch)
{
    return x->state == WEFT_STATE_RUNNING && x->epoch == epoch;
}

static enum weft_fence fence_of(const struct execution *x, int32_t epoch, enum weft_ended ended)
{
    switch (ended) {
    case WEFT_ENDED_COMPLETED:
    case WEFT_ENDED_FAILED:
        return WEFT_FENCE_FINISHED;
    case WEFT_ENDED_TIMED_OUT:
        return WEFT_FENCE_TIMED_OUT;
    case WEFT_ENDED_LOST:
        return x->epoch > epoch ? WEFT_FENCE_RECLAIMED : WEFT_FENCE_LOST;
    case WEFT_ENDED_RELEASED:
        return WEFT_FENCE_RELEASED;
    case WEFT_ENDED_REVOKED:
        return WEFT_FENCE_REVOKED;
    case WEFT_ENDED_CANCELLED:
        return WEFT_FENCE_CANCELLED;
    case WEFT_ENDED_EXPIRED:
        return WEFT_FENCE_EXPIRED;
    case WEFT_ENDED_SUSPENDED:
        return WEFT_FENCE_SUSPENDED;
    default:
        return WEFT_FENCE_UNKNOWN; /* every lease that was given has ended in one of these ways */
    }
}

struct weft_lease_answer fate_of(const struct execution *x, int32_t epoch, enum weft_ended asked)
{
    struct lease found = {.ended = WEFT_ENDED_NONE};
    if (epoch < 1)
        return (struct weft_lease_answer){.err = {.rc = WEFT_INVALID_VALUE}};
    if (x->held && x->epoch == epoch)
        found = (struct lease){.ended = x->ended, .answer = x->state};
    for (size_t i = 0; i < x->leases; i++)
        if (x->lease[i].held && x->lease[i].epoch == epoch)
            found = x->lease[i];
    if (found.ended && found.ended == asked)
        return (struct weft_lease_answer){.state = found.answer, .run_at_us = found.run_at_us};
    return (struct weft_lease_answer){
        .err = {.rc = WEFT_FENCED}, .fence = fence_of(x, epoch, found.ended), .state = x->state};
}

/* ---- Waitpoints ------------------------------------------------------------------------------ */

enum weft_waitpoint_state state_of_point(const struct world *w, const struct execution *x,
                                         const struct point *point)
{
    bool expired = point->expires_us && point->expires_us <= w->now_us;
    if (!lives(x->state) || point->replays != x->replays)
        return WEFT_WAITPOINT_CLOSED;
    if (point->taken == 0)
        return expired || point->counted ? WEFT_WAITPOINT_CLOSED : WEFT_WAITPOINT_PENDING;
    for (size_t i = 0; x->state == WEFT_STATE_SUSPENDED && i < x->suspension.count; i++)
        if (&x->point[x->suspension.point[i]] == point)
            return WEFT_WAITPOINT_OPEN;
    return WEFT_WAITPOINT_CLOSED;
}

size_t see_signals(const struct execution *x, const size_t *point, size_t count,
                   struct seen_signal *ret_signal)
{
    size_t found = 0;
    for (size_t i = 0; i < x->signals; i++)
        for (size_t place = 0; place < count; place++)
            if (x->signal[i].point == point[place])
                ret_signal[found++] =
                    (struct seen_signal){place, x->signal[i].name, x->signal[i].source};
    return found;
}

/* ---- Flows ----------------------------------------------------------------------------------- */

enum join judge_join(const struct execution *x)
{
    enum weft_state state = x->upstream ? x->upstream->state : WEFT_STATE_SUCCEEDED;
    return state == WEFT_STATE_SUCCEEDED ? JOIN_SATISFIED
           : lives(state)                ? JOIN_OPEN
                                         : JOIN_IMPOSSIBLE;
}

static void settle(struct world *w, struct execution *x)
{
    enum join now = judge_join(x);
    if (x->join == JOIN_IMPOSSIBLE && now != JOIN_IMPOSSIBLE) {
        x->join = JOIN_OPEN;
        if (x->state == WEFT_STATE_SKIPPED)
            replay(w, x, WEFT_STATE_BLOCKED);
    }
    if (x->join != JOIN_OPEN || now == JOIN_OPEN)
        return;
    x->join = now;
    if (x->state != WEFT_STATE_BLOCKED)
        return;
    if (now == JOIN_SATISFIED)
        change_state(w, x, &(struct change){.to = WEFT_STATE_READY});
    else
        change_state(w, x,
                     &(struct change){.to = WEFT_STATE_SKIPPED,
                                      .ended = WEFT_ENDED_SKIPPED,
                                      .by = "flow",
                                      .reason = "upstream_failed"});
}

void settle_flows(struct world *w)
{
    for (size_t i = 0; i < w->executions; i++)
        if (w->execution[i].upstream)
            settle(w, &w->execution[i]);
}
