/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_WAIT_WAIT_CLAIMS_H
#define WEFT_NET_WAIT_WAIT_CLAIMS_H

/*
 * Claims that wait for work, and the wakes that end their waits.
 *
 * A wake names a queue and how many executions came. It goes to the longest waiters that may serve
 * that queue, as many as are needed to take them all. Wakes are hints: they may come for nothing,
 * and the slow poll (upkeep.c) makes up for those that are lost.
 */

#include "engine/tx/commit_effects.h"
#include "net/metrics.h"
#include "net/request.h"
#include "net/wait/waiter.h"

struct weft_request;
struct weft_waits;

/*
 * A claim that may wait is on the list from before it looks for work until it is answered, so that
 * no wake can fall between its look and its sleep.
 */
void weft_waits_enter(struct weft_waits *waits, struct weft_request *request, weft_usec until_us);
enum weft_wait_end {
    WEFT_WAIT_FILLED, /* it got all it asked for: a wake it had goes on to the next waiter */
    WEFT_WAIT_SERVED, /* it got less than that */
    WEFT_WAIT_FAILED, /* the outcome is unknown: a wake it had goes on */
};
void weft_waits_leave(struct weft_waits *waits, struct weft_request *request,
                      enum weft_wait_end end);
/*
 * It found nothing. False: it must not sleep (its time is up, or the server stops): the caller
 * answers it. True: the request is the list's from here on; `soon`: it looks again in a moment.
 */
WEFT_MUST_CHECK bool weft_waits_sleep(struct weft_waits *waits, struct weft_request *request,
                                      bool soon);
/*
 * A claim finds no room for its answer: the same, and it looks again after a pause, until then. It
 * need not have been entered.
 */
WEFT_MUST_CHECK bool weft_waits_park(struct weft_waits *waits, struct weft_request *request,
                                     weft_usec until_us);
/* There is work in these queues: wakes as many of the longest waiters as it may serve. */
void weft_waits_wake(struct weft_waits *waits, enum weft_metric_wake source,
                     const struct weft_woken *woken, size_t count);

#endif
