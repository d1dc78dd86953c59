/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_BREAKER_H
#define WEFT_CORE_BREAKER_H

/*
 * Circuit breaker: whether calls to an endpoint may begin. Pure: time (from one clock that the
 * caller chooses) and random numbers are arguments; a breaker is one struct without pointers.
 *
 *     CLOSED --too many failures--> OPEN --its time is over--> HALF_OPEN --probe good--> CLOSED
 *                                    ^                             |
 *                                    +---------probe bad-----------+
 *
 * - Closed, any number of calls may begin. Too many failures are `in_row` one after the other, or
 *   `percent` of the calls that ended within a window of time, if there were `calls_min` of them.
 * - Open, none may begin. The time is doubled with each opening, up to a ceiling; it starts over
 *   once the breaker has been closed for longer than a window.
 * - Half-open, exactly one call may begin, the probe. Its end decides.
 *
 * Each call gets a ticket and must end with it. Only calls that began since the last change of
 * state count: what an endpoint answered before it broke says nothing about its recovery, and late
 * failures do not open a breaker that has just closed.
 *
 * Not thread-safe.
 */

#include "base/base.h"

struct weft_breaker_rules {
    uint32_t in_row;    /* failures one after the other; 0: this rule is off */
    uint32_t percent;   /* failures among the calls of a window; 0: this rule is off */
    uint32_t calls_min; /* percent is looked at from so many calls on */
    weft_usec window_us;
    weft_usec open_us, open_max_us; /* the first time and the ceiling; half of it is jitter */
};
extern const struct weft_breaker_rules weft_breaker_default;

enum weft_breaker_state { WEFT_BREAKER_CLOSED, WEFT_BREAKER_OPEN, WEFT_BREAKER_HALF_OPEN };

/* How a call ended, as far as it tells about the endpoint. */
enum weft_breaker_end {
    WEFT_BREAKER_VOID, /* nothing: the call was cancelled, or the endpoint asked to wait */
    WEFT_BREAKER_GOOD,
    WEFT_BREAKER_BAD,
};

enum { WEFT_BREAKER_SLICES = 8 }; /* of a window; the oldest leaves as a whole */

struct weft_breaker {
    struct weft_breaker_rules rules;
    enum weft_breaker_state state;
    bool probing;    /* half-open: the probe has begun */
    uint32_t ticket; /* of the calls that count */
    uint32_t in_row;
    uint32_t opens; /* without having been closed for long; for the backoff */
    uint32_t good[WEFT_BREAKER_SLICES], bad[WEFT_BREAKER_SLICES];
    int64_t slice;       /* number of the newest slice since the clock's zero */
    weft_usec until_us;  /* open: the end of it */
    weft_usec closed_us; /* when it closed last */
};

/* Closed, with these rules; calls that began before do not count. The breaker may be zeroed. */
void weft_breaker_reset(struct weft_breaker *breaker, const struct weft_breaker_rules *rules);

/* How many calls may begin now: any number (SIZE_MAX), one or none. */
size_t weft_breaker_room(const struct weft_breaker *breaker, weft_usec now_us);
/* When a call may begin without the end of another one: 0 at once, WEFT_NEVER while probing. */
weft_usec weft_breaker_next(const struct weft_breaker *breaker);
/* The state as people may see it: half-open as soon as a probe may begin. */
enum weft_breaker_state weft_breaker_look(const struct weft_breaker *breaker, weft_usec now_us);

/* A call begins. False: there is no room for it. */
WEFT_MUST_CHECK bool weft_breaker_begin(struct weft_breaker *breaker, weft_usec now_us,
                                        uint32_t *ret_ticket);
/*
 * A call has ended, or told enough: the status of an answer is known long before its last byte. No
 * second probe begins before the first one ends, so every call that began must come here.
 */
void weft_breaker_end(struct weft_breaker *breaker, uint32_t ticket, enum weft_breaker_end end,
                      weft_usec now_us, uint64_t random);

#endif
