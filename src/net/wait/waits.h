/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_WAIT_WAITS_H
#define WEFT_NET_WAIT_WAITS_H

/*
 * Requests that wait: claims for work; reads for the end of an execution or a flow; watches for
 * leases of a worker that others ended; changes of a flow for its lock. A thread ends the waits
 * whose time is up.
 *
 * Wakes are hints: they may come for nothing, and the slow poll (upkeep.c) makes up for lost ones.
 */

#include "engine/tx/commit_effects.h"
#include "net/metrics.h"
#include "net/request.h"

#include <stdatomic.h>

struct weft_groups;
struct weft_loop;
struct weft_waits; /* opaque */

/* What the waits ask of the other parts of the server; a test has its own. */
struct weft_waits_ops {
    /* Queues a request to look again: it belongs to the engine threads then. Under wait.lock. */
    void (*put_again)(struct weft_groups *groups, struct weft_request *request);
    /* Fails when the token of a request is no longer valid. Under wait.lock. */
    enum weft_rc (*check_token)(struct weft_server *server, struct weft_request *request,
                                struct weft_err *err);
    int (*fd)(const struct weft_request *request); /* of its client */
    /* Both once a second, with no lock held. */
    void (*sweep_groups)(struct weft_groups *groups);
    void (*sweep_loop)(struct weft_loop *loop);
    /* The namespace of a queue, NULL: unknown here; whether a claim may serve a queue. */
    const char *(*namespace_of)(struct weft_engine *engine, int32_t queue);
    bool (*fits)(struct weft_engine *engine, const struct weft_claim *claim, int32_t queue);
};

/* ops NULL: the functions of the server, whose loop and groups must be there at the start. */
struct weft_waits *weft_waits_new(struct weft_server *server, const struct weft_waits_ops *ops);
void weft_waits_start(struct weft_waits *waits);
/* From here on no request sleeps: all are answered with what there is. */
void weft_waits_stop(struct weft_waits *waits);
void weft_waits_free(struct weft_waits *waits); /* NULL is fine */
/* Tokens have changed: waiting requests whose token is no longer valid are answered. */
void weft_waits_recheck(struct weft_waits *waits);

/* ---- Claims ---------------------------------------------------------------------------------- */

/*
 * A claim that may wait is on the list from before it looks for work until it is answered, so that
 * no wake can fall between its look and its sleep. The claim is borrowed until then.
 */
void weft_waits_enter(struct weft_waits *waits, struct weft_request *request,
                      const struct weft_claim *claim, weft_usec until_us);
enum weft_wait_end {
    WEFT_WAIT_FILLED, /* it got all it asked for: a wake it had goes on to the next waiter */
    WEFT_WAIT_SERVED, /* it got less than that */
    WEFT_WAIT_FAILED, /* the outcome is unknown: a wake it had goes on */
};
void weft_waits_leave(struct weft_waits *waits, struct weft_request *request,
                      enum weft_wait_end end);
/*
 * It found nothing. False: it must not sleep (its time is up, or the server stops): the caller
 * answers it. True: the request is the list's from here on; it looks again at look_us (boot time),
 * or when a wake comes before that. WEFT_NEVER: only then.
 */
WEFT_MUST_CHECK bool weft_waits_sleep(struct weft_waits *waits, struct weft_request *request,
                                      weft_usec look_us);
/*
 * A claim finds no room for its answer: the same, and it looks again after a pause, until then. It
 * need not have been entered.
 */
WEFT_MUST_CHECK bool weft_waits_park(struct weft_waits *waits, struct weft_request *request,
                                     const struct weft_claim *claim, weft_usec until_us);
/*
 * So many executions came into these queues: each wake goes to the longest waiters that may serve
 * its queue, as many as are needed to take them all.
 */
void weft_waits_wake(struct weft_waits *waits, enum weft_metric_wake source,
                     const struct weft_woken *woken, size_t count);

/* ---- Ends, watches, locks -------------------------------------------------------------------- */

/*
 * A run() that waits for the end of an execution or a flow calls this with the time (boot time)
 * until which it would. True: it returns WEFT_OK without an answer, and is called again when the
 * end may have come or the time has passed. False: it must answer with what there is.
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
/* These executions or flows have ended: the requests that wait for one of them look again. */
weft_ended_fn weft_wait_ended; /* the context is the server */
/* How many requests wait for an end: see weft_engine_on_ended(). */
const _Atomic size_t *weft_waits_for_ends(const struct weft_waits *waits);
/*
 * The ends that sleepers wait for that do not look by themselves, in the arena: upkeep looks for
 * all of them at once. One that falls asleep after this is found a second later.
 */
size_t weft_waits_ids(struct weft_waits *waits, struct weft_arena *arena, struct weft_id **ret_id);
/* Others ended leases of these workers, by number: their watches look again. */
void weft_waits_wake_workers(struct weft_waits *waits, enum weft_metric_wake source,
                             const int32_t *worker, size_t count);

#endif
