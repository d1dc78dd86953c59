/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_LIMIT_H
#define WEFT_CORE_LIMIT_H

/*
 * How many executions of a gate or a lane may begin now, and when to ask again. Pure.
 *
 * A gate admits executions (held -> ready); a worker starts them (ready -> running) later. So the
 * rules speak of three numbers: `ready`, admitted and not started; `running`; and `started`, the
 * starts within the span of the window that ends now.
 *
 * - max_running: ready + running never exceed it.
 * - window: started + ready never exceed it. A start moves one from ready to started, time only
 *   makes `started` smaller, and only an admission makes the sum larger. So no span of that length
 *   has more starts than the limit, whenever workers come for what is ready.
 * - rate: a token bucket. An admission takes a token, and no more than `burst` are ready at a time,
 *   so that work that no worker came for does not start as one large burst.
 *
 * Replicas read the store's clock to some milliseconds. So that no span has one start too many by
 * their clocks either, a window is taken to be a hundredth longer than it is (WEFT_WINDOW_SLACK).
 *
 * A lane has no admission: a claim starts its executions at once, and `ready` is 0 there.
 *
 * The bucket is one number, the time at which it will be full again (`full_ns`): each token moves
 * it on by the time one token takes. It is in nanoseconds, so that rounding that time up costs less
 * than 0.1 % up to a million tokens a second, and never gives one too many.
 */

#include "core/stored.h"
#include "weft/limits.h"

#include <stdbool.h>

/* The largest numbers that a setting may have: products of them stay within 64 bits. */
#define WEFT_LIMIT_MOST    1000000000
#define WEFT_LIMIT_PER_MAX ((int64_t)30 * 86400 * 1000) /* of a window or rate, milliseconds */

WEFT_MUST_CHECK enum weft_rc weft_limits_check(const struct weft_limits *limits,
                                               struct weft_err *err);

/* Whether there is any limit at all. */
bool weft_limits_set(const struct weft_limits *limits);

/* What holds now. */
struct weft_limit_now {
    weft_usec now_us;
    int64_t ready, running;
    int64_t started;     /* in the span of the window, with its slack, up to now */
    weft_usec oldest_us; /* the oldest of these starts; 0: there is none */
    int64_t full_ns;     /* of the bucket; 0: it was never used */
};

/* Which limit allows least. */
enum weft_limit_kind {
    WEFT_LIMIT_NONE,
    WEFT_LIMIT_RUNNING,
    WEFT_LIMIT_WINDOW,
    WEFT_LIMIT_RATE,
};

struct weft_limit_room {
    int64_t room;            /* how many may begin now */
    enum weft_limit_kind by; /* the limit that says so; NONE: there is no limit */
    weft_usec next_us;       /* when time alone makes room; WEFT_NEVER: it does not */
};

struct weft_limit_room weft_limit_room(const struct weft_limits *limits,
                                       const struct weft_limit_now *now);

/* How long a start counts in a window, with its slack; 0: there is no window. */
weft_usec weft_window_span(const struct weft_window *window);

/* The bucket after `count` tokens were taken now. */
int64_t weft_rate_take(const struct weft_rate *rate, int64_t full_ns, weft_usec now_us,
                       int64_t count);

#endif
