/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_STATE_H
#define WEFT_CORE_STATE_H

/*
 * The states of one execution, as a pure function.
 *
 *                 +-------- PROMOTE --------+
 *                 |                         v
 *   submit --> DELAYED                    READY --CLAIM--> RUNNING --COMPLETE--> succeeded
 *                 ^                         ^                | | |
 *                 |                         |                | | +---FAIL------> failed
 *                 |   RETRY_NOW, RELEASE,   |                | |
 *                 |   LOSE, REVOKE          +----------------+ |
 *                 +---- RETRY, DELAY --------------------------+
 *
 *   RUNNING --SUSPEND--> SUSPENDED --RESUME--> READY, --RESUME_LATER--> DELAYED, --FAIL--> failed;
 *   ESCALATE leaves it suspended, without a timeout.
 *   submit --> BLOCKED --UNBLOCK--> READY, --UNBLOCK_LATER--> DELAYED, --SKIP--> skipped, and
 *   --REARM--> from skipped back to BLOCKED: the effects of a join on a member of a flow.
 *   An execution with a gate becomes HELD wherever this says READY; HELD --ADMIT--> READY.
 *   CANCEL -> cancelled and EXPIRE -> expired from every living state; REPLAY leads from every
 *   ended state back to READY, REPLAY_BLOCKED to BLOCKED. PRIORITIZE, SET_DEADLINE and RENEW change
 *   a row but not its state.
 *
 * Only this module decides which change is legal. Statements that change many rows at once declare
 * their step in a `-- moves:` line, which a test checks against weft_state_next().
 */

#include "base/base.h"

/* clang-format off */
#define WEFT_EVENTS(X)                                                                             \
    X(PROMOTE) X(CLAIM) X(RENEW) X(COMPLETE) X(FAIL) X(RETRY) X(RETRY_NOW) X(DELAY) X(RELEASE)     \
    X(LOSE) X(REVOKE) X(CANCEL) X(EXPIRE) X(REPLAY) X(PRIORITIZE) X(SET_DEADLINE)                  \
    X(UNBLOCK)        /* its join was satisfied */                                                 \
    X(UNBLOCK_LATER)  /* the same, with a delay */                                                 \
    X(SKIP)           /* its join became impossible */                                             \
    X(REARM)          /* its join is open again */                                                 \
    X(REPLAY_BLOCKED) /* REPLAY of a member of a flow whose join is open */                        \
    X(SUSPEND)        /* its worker gave it back until signals have come */                        \
    X(RESUME)         /* they have, or its timeout or an operator lets it go on */                 \
    X(RESUME_LATER)   /* the same, with a delay */                                                 \
    X(ESCALATE)       /* its timeout passed; it waits on, for an operator to look */               \
    X(ADMIT)          /* its gate has room for it */

enum weft_event_kind {
#define X(name) WEFT_EVENT_##name,
    WEFT_EVENTS(X)
#undef X
    WEFT_EVENT_COUNT
};
/* clang-format on */

/* How a lease or an execution ended. Stored: append, never renumber. */
enum weft_ended {
    WEFT_ENDED_NONE = 0,
    WEFT_ENDED_COMPLETED = 1,
    WEFT_ENDED_FAILED = 2,    /* reported by the worker */
    WEFT_ENDED_TIMED_OUT = 3, /* the attempt took too long */
    WEFT_ENDED_LOST = 4,      /* the lease ran out */
    WEFT_ENDED_RELEASED = 5,
    WEFT_ENDED_DELAYED = 6,
    WEFT_ENDED_REVOKED = 7,
    WEFT_ENDED_CANCELLED = 8,
    WEFT_ENDED_EXPIRED = 9,
    WEFT_ENDED_REFUSED = 10, /* intake: the row was not a valid submission */
    WEFT_ENDED_SKIPPED = 11,
    WEFT_ENDED_SUSPENDED = 12,          /* its worker suspended it */
    WEFT_ENDED_SUSPENSION_TIMEOUT = 13, /* suspended, and what it waited for did not come */
    WEFT_ENDED_COUNT
};

/* The row of `live`: the current values of a living execution. A time of 0 means none. */
struct weft_live {
    struct weft_id id;
    enum weft_state state;
    int32_t queue, lane, policy;
    int32_t worker; /* interned; 0: no holder */
    int32_t priority;
    int64_t ord;
    int32_t epoch;    /* +1 at each claim and nowhere else */
    int32_t attempt;  /* the current or next one, from 1; +1 when one fails or times out */
    int32_t forgiven; /* attempts before the last replay: they no longer count */
    int32_t lost;     /* leases lost since the last replay */
    int32_t replays;
    int32_t size;     /* bytes that a claim carries: the payload, and the names of upstreams */
    int32_t has;      /* bits of tables that may have rows about it: core/stored.h */
    const char *gate; /* NULL: none. One that has a gate becomes held where others become ready */
    weft_usec due_us; /* delayed: when it becomes ready; running: when the lease ends; suspended:
                       * when that times out */
    weft_usec attempt_deadline_us;
    weft_usec deadline_us;
    weft_usec started_us; /* the first claim of all */
    weft_usec claimed_us; /* the current claim */
};

struct weft_event {
    enum weft_event_kind kind;
    enum weft_ended how; /* FAIL, RETRY, RETRY_NOW: end of the attempt; REPLAY: of the execution */
    int32_t worker;      /* CLAIM */
    bool uncounted;      /* LOSE: no server accepted renewals, so it does not count as lost */
    int32_t priority;    /* PRIORITIZE */
    weft_usec now_us;    /* CLAIM */
    weft_usec due_us;    /* CLAIM, RENEW: end of the lease; RETRY, DELAY, UNBLOCK_LATER,
                          * RESUME_LATER: ready time; SUSPEND: timeout, 0: none */
    weft_usec attempt_deadline_us; /* CLAIM */
    weft_usec deadline_us;         /* SET_DEADLINE; REPLAY: 0: none */
};

struct weft_step {
    struct weft_live after;
    enum weft_ended ended; /* how the held lease ended; NONE: none was held, or it still is */
};

/* The state that follows, WEFT_STATE_NONE when the event is refused. */
enum weft_state weft_state_next(enum weft_state state, enum weft_event_kind event);

/* False, leaving ret_step alone, when the event is refused. */
WEFT_MUST_CHECK bool weft_state_step(const struct weft_live *before, const struct weft_event *event,
                                     struct weft_step *ret_step);

bool weft_state_living(enum weft_state state);
enum weft_state weft_state_parse(const char *word); /* WEFT_STATE_NONE when there is none */
const char *weft_ended_name(enum weft_ended ended); /* "timed_out" */

#endif
