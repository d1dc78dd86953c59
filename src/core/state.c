/* SPDX-License-Identifier: Apache-2.0 */

#include "core/state.h"

#include <assert.h>
#include <string.h>

/* A row per state; unlisted events are WEFT_STATE_NONE: refused. */
/* clang-format off */
#define ON(event, state) [WEFT_EVENT_##event] = WEFT_STATE_##state
#define CONTROL(state)                                                                             \
    ON(CANCEL, CANCELLED), ON(EXPIRE, EXPIRED), ON(PRIORITIZE, state), ON(SET_DEADLINE, state)
static const enum weft_state next_state[WEFT_STATE_COUNT][WEFT_EVENT_COUNT] = {
    [WEFT_STATE_READY]     = { CONTROL(READY),     ON(CLAIM, RUNNING) },
    [WEFT_STATE_DELAYED]   = { CONTROL(DELAYED),   ON(PROMOTE, READY) },
    [WEFT_STATE_BLOCKED]   = { CONTROL(BLOCKED),   ON(UNBLOCK, READY),
                               ON(UNBLOCK_LATER, DELAYED), ON(SKIP, SKIPPED) },
    [WEFT_STATE_SUSPENDED] = { CONTROL(SUSPENDED), ON(RESUME, READY),
                               ON(RESUME_LATER, DELAYED), ON(FAIL, FAILED),
                               ON(ESCALATE, SUSPENDED) },
    [WEFT_STATE_HELD]      = { CONTROL(HELD),      ON(ADMIT, READY) },
    [WEFT_STATE_RUNNING]   = { CONTROL(RUNNING),   ON(RENEW, RUNNING),
                               ON(COMPLETE, SUCCEEDED), ON(FAIL, FAILED),
                               ON(RETRY, DELAYED),      ON(DELAY, DELAYED),
                               ON(RETRY_NOW, READY),    ON(RELEASE, READY),
                               ON(LOSE, READY),         ON(REVOKE, READY),
                               ON(SUSPEND, SUSPENDED) },
    [WEFT_STATE_SUCCEEDED] = { ON(REPLAY, READY), ON(REPLAY_BLOCKED, BLOCKED) },
    [WEFT_STATE_FAILED]    = { ON(REPLAY, READY), ON(REPLAY_BLOCKED, BLOCKED) },
    [WEFT_STATE_CANCELLED] = { ON(REPLAY, READY), ON(REPLAY_BLOCKED, BLOCKED) },
    [WEFT_STATE_EXPIRED]   = { ON(REPLAY, READY), ON(REPLAY_BLOCKED, BLOCKED) },
    [WEFT_STATE_SKIPPED]   = { ON(REPLAY, READY), ON(REPLAY_BLOCKED, BLOCKED),
                               ON(REARM, BLOCKED) },
};
/* clang-format on */

enum weft_state weft_state_next(enum weft_state state, enum weft_event_kind event)
{
    assert(state < WEFT_STATE_COUNT);
    assert(event < WEFT_EVENT_COUNT);
    return next_state[state][event];
}

/* How an event that ends a lease ended it. */
static enum weft_ended lease_end(const struct weft_event *event)
{
    static const enum weft_ended ended[WEFT_EVENT_COUNT] = {
        [WEFT_EVENT_COMPLETE] = WEFT_ENDED_COMPLETED, [WEFT_EVENT_DELAY] = WEFT_ENDED_DELAYED,
        [WEFT_EVENT_RELEASE] = WEFT_ENDED_RELEASED,   [WEFT_EVENT_LOSE] = WEFT_ENDED_LOST,
        [WEFT_EVENT_REVOKE] = WEFT_ENDED_REVOKED,     [WEFT_EVENT_CANCEL] = WEFT_ENDED_CANCELLED,
        [WEFT_EVENT_EXPIRE] = WEFT_ENDED_EXPIRED,     [WEFT_EVENT_SUSPEND] = WEFT_ENDED_SUSPENDED,
    };
    bool failed = event->kind == WEFT_EVENT_FAIL || event->kind == WEFT_EVENT_RETRY ||
                  event->kind == WEFT_EVENT_RETRY_NOW;
    bool returned = event->kind == WEFT_EVENT_DELAY || event->kind == WEFT_EVENT_RELEASE;
    bool named = event->how == WEFT_ENDED_RELEASED || event->how == WEFT_ENDED_DELAYED;
    return failed || (returned && named) ? event->how : ended[event->kind];
}

/* A row that is not running has no holder, no lease and no attempt deadline. */
static void drop_lease(struct weft_live *live)
{
    live->worker = 0;
    live->due_us = 0;
    live->attempt_deadline_us = 0;
    live->claimed_us = 0;
}

/* The fields an event changes beside the state. */
static void apply(struct weft_live *live, const struct weft_event *event)
{
    switch (event->kind) {
    case WEFT_EVENT_CLAIM:
        live->epoch++; /* every writer of an older epoch is fenced from here on */
        live->worker = event->worker;
        live->due_us = event->due_us;
        live->attempt_deadline_us = event->attempt_deadline_us;
        live->claimed_us = event->now_us;
        if (live->started_us == 0)
            live->started_us = event->now_us;
        break;
    case WEFT_EVENT_RENEW:
    case WEFT_EVENT_DELAY:
    case WEFT_EVENT_UNBLOCK_LATER:
    case WEFT_EVENT_SUSPEND:
    case WEFT_EVENT_RESUME_LATER:
        live->due_us = event->due_us;
        break;
    case WEFT_EVENT_RETRY:
        live->due_us = event->due_us;
        live->attempt++;
        break;
    case WEFT_EVENT_RETRY_NOW:
        live->attempt++;
        break;
    case WEFT_EVENT_LOSE:
        live->lost += !event->uncounted;
        break;
    case WEFT_EVENT_PROMOTE:
    case WEFT_EVENT_UNBLOCK:
    case WEFT_EVENT_RESUME:
    case WEFT_EVENT_ESCALATE:
        live->due_us = 0;
        break;
    case WEFT_EVENT_PRIORITIZE:
        live->priority = event->priority;
        break;
    case WEFT_EVENT_SET_DEADLINE:
        live->deadline_us = event->deadline_us;
        break;
    case WEFT_EVENT_COMPLETE:
    case WEFT_EVENT_FAIL:
    case WEFT_EVENT_RELEASE:
    case WEFT_EVENT_REVOKE:
    case WEFT_EVENT_CANCEL:
    case WEFT_EVENT_EXPIRE:
    case WEFT_EVENT_REPLAY:
    case WEFT_EVENT_SKIP:
    case WEFT_EVENT_REARM:
    case WEFT_EVENT_REPLAY_BLOCKED:
    case WEFT_EVENT_ADMIT:
    case WEFT_EVENT_COUNT:
        break;
    }
}

/*
 * A replay starts the same id again: it keeps epoch and history, forgives the attempts made so far,
 * and adds the attempt number that the final failure did not add.
 */
static void replay(struct weft_live *live, const struct weft_event *event)
{
    enum weft_ended ended = event->how;
    if (ended == WEFT_ENDED_FAILED || ended == WEFT_ENDED_TIMED_OUT)
        live->attempt++;
    live->forgiven = live->attempt - 1;
    live->lost = 0;
    live->replays++;
    live->deadline_us = event->deadline_us; /* the old one may have passed long ago */
    drop_lease(live);
}

bool weft_state_step(const struct weft_live *before, const struct weft_event *event,
                     struct weft_step *ret_step)
{
    enum weft_state to = weft_state_next(before->state, event->kind);
    if (to == WEFT_STATE_NONE)
        return false;
    /* Only its gate makes it ready. One that is ready has been admitted and stays so. */
    if (to == WEFT_STATE_READY && before->state != WEFT_STATE_READY && before->gate &&
        event->kind != WEFT_EVENT_ADMIT)
        to = WEFT_STATE_HELD;

    struct weft_step step = {.after = *before};
    step.after.state = to;
    bool ends_lease = before->state == WEFT_STATE_RUNNING && to != WEFT_STATE_RUNNING;
    /* An ended row keeps its last lease: reads and fences need its holder. */
    if (ends_lease && weft_state_living(to))
        drop_lease(&step.after);
    if (event->kind == WEFT_EVENT_REPLAY || event->kind == WEFT_EVENT_REPLAY_BLOCKED ||
        event->kind == WEFT_EVENT_REARM)
        replay(&step.after, event);
    else
        apply(&step.after, event);
    if (ends_lease)
        step.ended = lease_end(event);
    *ret_step = step;
    return true;
}

bool weft_state_living(enum weft_state state)
{
    static const bool living[WEFT_STATE_COUNT] = {
#define X(name, number, wire, alive) [number] = (alive),
#include "weft/states.def"
#undef X
    };
    assert(state < WEFT_STATE_COUNT);
    return living[state];
}

static const char *const state_word[WEFT_STATE_COUNT] = {
    [WEFT_STATE_NONE] = "none",
#define X(name, number, wire, alive) [number] = (wire),
#include "weft/states.def"
#undef X
};

const char *weft_state_name(enum weft_state state)
{
    return (unsigned)state < WEFT_STATE_COUNT ? state_word[state] : "unknown";
}

enum weft_state weft_state_parse(const char *word)
{
    for (int state = 1; state < WEFT_STATE_COUNT; state++)
        if (strcmp(state_word[state], word) == 0)
            return (enum weft_state)state;
    return WEFT_STATE_NONE;
}

const char *weft_ended_name(enum weft_ended ended)
{
    static const char *const name[WEFT_ENDED_COUNT] = {
        [WEFT_ENDED_NONE] = "none",
        [WEFT_ENDED_COMPLETED] = "completed",
        [WEFT_ENDED_FAILED] = "failed",
        [WEFT_ENDED_TIMED_OUT] = "timed_out",
        [WEFT_ENDED_LOST] = "lost",
        [WEFT_ENDED_RELEASED] = "released",
        [WEFT_ENDED_DELAYED] = "delayed",
        [WEFT_ENDED_REVOKED] = "revoked",
        [WEFT_ENDED_CANCELLED] = "cancelled",
        [WEFT_ENDED_EXPIRED] = "expired",
        [WEFT_ENDED_REFUSED] = "refused",
        [WEFT_ENDED_SKIPPED] = "skipped",
        [WEFT_ENDED_SUSPENDED] = "suspended",
        [WEFT_ENDED_SUSPENSION_TIMEOUT] = "suspension_timeout",
    };
    return (unsigned)ended < WEFT_ENDED_COUNT ? name[ended] : "unknown";
}
