/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_WAIT_WAIT_ENDS_H
#define WEFT_NET_WAIT_WAIT_ENDS_H

/*
 * Requests that wait for something other than work: the end of an execution or a flow, the end of a
 * worker's leases by others, the lock of a flow.
 */

#include "base/base.h"
#include "net/metrics.h"
#include "net/request.h"
#include "net/server.h"
#include "net/wait/waiter.h"

struct weft_request;
struct weft_server;
struct weft_waits;

/*
 * A run() that waits for the end of an execution calls this with the time (boot time) until which
 * it would. True: it returns WEFT_OK without an answer, and is called again when the execution may
 * have ended or the time has passed. False: it must answer with what there is.
 */
enum weft_wait_looks {
    WEFT_WAIT_POLLS,    /* every second, because a look also does something */
    WEFT_WAIT_NOTIFIED, /* a few times, then it is woken at the end */
};
WEFT_MUST_CHECK bool weft_wait_for_end(struct weft_request *request, const struct weft_id *id,
                                       weft_usec until_us, enum weft_wait_looks looks);
/*
 * The same for a run() that waits until a worker (by its number) has leases that others ended. It
 * is called before the look, so that no wake falls between the look and the sleep; without a wake
 * there is no further look.
 */
WEFT_MUST_CHECK bool weft_wait_for_leases(struct weft_request *request, int32_t worker,
                                          weft_usec until_us);
/*
 * The same for a run() that found its flow locked by another transaction, and wrote nothing: it is
 * called again after a pause. False: it has waited long enough.
 */
WEFT_MUST_CHECK bool weft_wait_for_lock(struct weft_request *request);
/* A run() that called one of these three goes to sleep; false when it called none. */
WEFT_MUST_CHECK bool weft_waits_sleep_till_end(struct weft_waits *waits,
                                               struct weft_request *request);
/* The request is about to be answered: it leaves the list. */
void weft_wait_done(struct weft_request *request);
/* These executions have ended: requests that wait for one look again. */
void weft_wait_ended(struct weft_server *server, const struct weft_id *id, size_t count);
/*
 * The executions whose end sleepers wait for that do not look by themselves, in the arena: upkeep
 * looks for all of them at once. One that falls asleep after this is found a second later.
 */
size_t weft_waits_ids(struct weft_waits *waits, struct weft_arena *arena, struct weft_id **ret_id);
/* Others ended leases of these workers, by number: their watches look again. */
void weft_waits_wake_workers(struct weft_waits *waits, enum weft_metric_wake source,
                             const int32_t *worker, size_t count);

#endif
