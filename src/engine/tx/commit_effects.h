/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_TX_COMMIT_EFFECTS_H
#define WEFT_ENGINE_TX_COMMIT_EFFECTS_H

/* Effects of a commit on claims, workers, flows and scanners, passed on once after it. */

#include "engine/limit/settle.h"
#include "engine/tx/batch.h"

#include <stdatomic.h>

struct weft_changes;
struct weft_engine;

/* So many executions of a queue are claimable, or may be: a slot was freed, a lane was opened. */
struct weft_woken {
    int32_t queue;
    uint32_t count;
};

/*
 * The news of a commit of this process. The thread that committed calls the listener, with no lock
 * held. News are hints: a lost one costs time until the next poll.
 */
struct weft_news {
    const struct weft_woken *woken;
    size_t count;
    weft_usec due_us; /* something new becomes due then; WEFT_NEVER: nothing */
};
typedef void weft_news_fn(void *context, const struct weft_news *news);

/*
 * Workers (by the number of weft_engine_worker_number()) with leases that this process ended, each
 * number once; called like weft_news_fn.
 */
typedef void weft_leases_fn(void *context, const int32_t *worker, size_t count);

/*
 * Flows that have completions; called like weft_news_fn. The listener sees to it that
 * weft_engine_cascade() runs soon, in a thread that no request waits for. Without a listener the
 * thread that committed runs it. For a call that is lost the dependency scanner runs it.
 */
typedef void weft_flows_fn(void *context, const struct weft_id *flow, size_t count);

/*
 * Gates that may admit executions; called like weft_flows_fn, for weft_engine_admit(). For a call
 * that is lost the unblock scanner runs it.
 */
typedef void weft_gates_fn(void *context, const char *const *gate, size_t count);

/*
 * What is to be done for budgets: leases of queues under budgets that ended, which
 * weft_engine_settle() is for, and whether weft_engine_budget_cancel() has something to do. Called
 * like weft_flows_fn. For a call that is lost the budget_reset scanner does both.
 */
typedef void weft_budgets_fn(void *context, const struct weft_lease_end *ended, size_t count,
                             bool cancel);

/* Executions and flows that ended, passed on like news. */
typedef void weft_ended_fn(void *context, const struct weft_id *id, size_t count);

/* The effects of a transaction on one queue. */
struct weft_queue_news {
    int32_t queue;
    uint32_t ready;             /* executions that became ready */
    uint32_t freed;             /* leases that ended */
    uint32_t succeeded, failed; /* executions that ended so; failed or expired */
    uint32_t fresh;             /* of `ready`: new executions, */
    int32_t priority;           /* the highest priority of these, */
    int64_t ord;                /* and the first in order */
};

/* The effects of a transaction: gathered when it has committed, then passed on once. */
struct weft_commit_effects {
    struct weft_arena *arena;
    weft_usec now_us; /* of the transaction */
    struct weft_queue_news *item;
    size_t count, capacity;
    weft_usec due_us;     /* the earliest new one */
    struct weft_id *flow; /* flows that have completions, some perhaps twice */
    size_t flows, flow_room;
    const char **gate; /* gates that may admit, some perhaps twice */
    size_t gates, gate_room;
    struct weft_lease_end *lease; /* leases under budgets that ended, besides leases in `changes` */
    size_t leases, lease_room;
    int32_t *worker; /* workers of leases that began to drain, each once */
    size_t workers, worker_room;
    /* For weft_engine_on_ended(); borrowed. */
    const struct weft_changes *changes; /* NULL: none */
    struct weft_id_column completed;    /* executions that ended without a change of these */
    struct weft_id_column ended_flows;
};

/* To be set before the first operation; NULL: no listener. */
void weft_engine_on_news(struct weft_engine *engine, weft_news_fn *fn, void *context);
void weft_engine_on_leases(struct weft_engine *engine, weft_leases_fn *fn, void *context);
void weft_engine_on_flows(struct weft_engine *engine, weft_flows_fn *fn, void *context);
void weft_engine_on_gates(struct weft_engine *engine, weft_gates_fn *fn, void *context);
void weft_engine_on_budgets(struct weft_engine *engine, weft_budgets_fn *fn, void *context);
/*
 * What commits of this process end, in any way: by its worker, by a call, by a scanner, by the
 * cascade. Passed on only while *awaited is not 0, which is read after the commit, so that an end
 * that no request waits for costs nothing. Rows of the inbox that end as they begin are left out:
 * no request can have waited for them.
 */
void weft_engine_on_ended(struct weft_engine *engine, weft_ended_fn *fn, void *context,
                          const _Atomic size_t *awaited);

/*
 * News from another replica: puts the queues on the list of claimable ones, loading the names of
 * queues not met before. The listener of this process is not called.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_heard(struct weft_engine *engine,
                                               const struct weft_woken *woken, size_t count,
                                               struct weft_err *err);
struct weft_commit_effects weft_news_new(struct weft_arena *arena, weft_usec now_us);

/* A new execution is ready. */
void weft_news_fresh(struct weft_commit_effects *news, int32_t queue, int32_t priority,
                     int64_t ord);

/* Where the news of a queue is gathered; good until the next call. */
struct weft_queue_news *weft_news_of(struct weft_commit_effects *news, int32_t queue);

/* Something becomes due then; 0: nothing. */
void weft_news_due(struct weft_commit_effects *news, weft_usec due_us);

/* A flow has a completion. */
void weft_news_flow(struct weft_commit_effects *news, const struct weft_id *flow);

/* A gate may admit an execution. The text lives as long as the effects. */
void weft_news_gate(struct weft_commit_effects *news, const char *gate);

/* A lease ended without a change of `changes`. Its queue may be under budgets. */
void weft_news_lease(struct weft_commit_effects *news, const struct weft_lease *lease,
                     int32_t queue);

/* Executions that run under budgets are to be cancelled. */
void weft_news_cancel_budgets(struct weft_engine *engine);

/* A lease of this worker is draining from now on. */
void weft_news_worker(struct weft_commit_effects *news, int32_t worker);

/* An execution of a queue is over. */
void weft_news_ended(struct weft_commit_effects *news, int32_t queue, enum weft_state state);

/* Puts queues with ready work on the list and calls the listeners. No transaction is open. */
void weft_news_tell(struct weft_engine *engine, const struct weft_commit_effects *news);

/* The settings of a lane have changed: its queues may have something to give. */
void weft_news_lane(struct weft_engine *engine, int32_t ns, const char *lane);

#endif
