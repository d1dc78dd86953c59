/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_EXECUTOR_EXECUTOR_H
#define WEFT_NET_EXECUTOR_EXECUTOR_H

/*
 * The executor: this server carries executions of kind `http` out itself. It is a worker like any
 * other, with a name in each namespace, whose jobs are transfers of a crowd (fetch/crowd.h).
 *
 * One thread runs cycles. A cycle ends what has ended, claims what fits and begins it:
 *
 *     transfers end --> [results, failures] --> one commit: complete + claim --> transfers begin
 *
 * So a lease is durable before its call begins, by construction, and the commits are group commits:
 * what ends during one goes into the next. Failures, leases that are given back and renewals go in
 * bulk in calls of their own.
 *
 * A claim is made for a target (core/carried.h) that has room: its endpoint is known, its breaker
 * lets calls begin, and fewer than max_in_flight of them are under way here. So a broken endpoint
 * costs no claim and no lease. Lanes, budgets and gates limit these claims as they do any other.
 *
 * An idle executor makes no statement: it sleeps until work comes (weft_executor_wake()), a
 * transfer ends, a lease is to be renewed, or a breaker lets the next call begin.
 */

#include "engine/http/endpoints.h"
#include "engine/limit/why.h"
#include "engine/tx/commit_effects.h"
#include "fetch/crowd.h"

struct weft_arena;
struct weft_buf;
struct weft_engine;
struct weft_executor; /* opaque */
struct weft_metrics;
struct weft_secrets;

/* What the executor asks of the outside; a test has its own. */
struct weft_executor_ops {
    enum weft_rc (*start)(const struct weft_crowd_config *config, struct weft_crowd **ret_crowd,
                          struct weft_err *err);
    void (*stop)(struct weft_crowd *crowd);
    struct weft_transfer *(*call)(struct weft_crowd *crowd, const struct weft_crowd_call *call);
    void (*abort)(struct weft_crowd *crowd, struct weft_transfer *transfer);
    void (*trust)(struct weft_crowd *crowd, const char *pem);
    const struct weft_known_endpoint *(*endpoint)(struct weft_engine *engine, const char *ns,
                                                  const char *name);
    void (*release)(const struct weft_known_endpoint *endpoint);
};

struct weft_executor_config {
    struct weft_engine *engine;
    struct weft_metrics *metrics;        /* NULL: it counts nothing */
    struct weft_secrets *secrets;        /* NULL: there are none */
    const char *worker;                  /* its name, in every namespace */
    uint32_t in_flight;                  /* calls at a time; 0: 1,000 */
    bool urls;                           /* it also makes calls with URLs of their own */
    const struct weft_executor_ops *ops; /* NULL: the real ones */
};

/* Texts are copied. The caller ends it with _free(). */
WEFT_MUST_CHECK enum weft_rc weft_executor_new(const struct weft_executor_config *config,
                                               struct weft_executor **ret_executor,
                                               struct weft_err *err);
void weft_executor_start(struct weft_executor *executor); /* its thread */
/*
 * No call begins any more. Those under way go on until then (boot time); the others are aborted and
 * their leases given back at once. NULL is fine, as for the next two.
 */
void weft_executor_quiesce(struct weft_executor *executor, weft_usec until_us);
/* Waits for that; without a quiesce before, all are aborted. True: none had to be. */
bool weft_executor_stop(struct weft_executor *executor);
void weft_executor_free(struct weft_executor *executor);

/* Authorities to trust besides the system's, as weft_crowd_trust() takes them. */
void weft_executor_trust(struct weft_executor *executor, const char *pem);

/* These queues have work, or room: any queues, of which the executor takes its own. */
void weft_executor_wake(struct weft_executor *executor, const struct weft_woken *woken,
                        size_t count);
/* Others ended leases of these workers: any workers, of which the executor knows its own. */
void weft_executor_leases(struct weft_executor *executor, const int32_t *worker, size_t count);

/* As weft_endpoint_health_fn (net/server.h); the context is the executor. */
void weft_executor_health(void *context, const char *ns, const char *name,
                          struct weft_endpoint_health *ret_health);

/* As weft_endpoint_metrics_fn (net/server.h): appends what GET /metrics shows by endpoint. */
void weft_executor_metrics(void *context, struct weft_arena *arena, struct weft_buf *out);

/* As weft_carrier_fn (engine/limit/why.h). */
void weft_executor_carrier(void *context, const char *ns, const char *target,
                           struct weft_carrier_state *ret_state);

/*
 * One cycle, in the thread that calls it; for tests without a thread. Returns when the next one is
 * due (boot time), unless it is woken before.
 */
weft_usec weft_executor_turn(struct weft_executor *executor);

#endif
