/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_LIMIT_BUDGET_RULES_H
#define WEFT_ENGINE_LIMIT_BUDGET_RULES_H

/*
 * Which budgets an execution is under, as far as this process knows: the budgets that it names,
 * which its queue knows, and the budgets that match its lane, kind and tenant, which are kept in
 * memory. A process claims nothing before it has read them once. They are read again when the poll
 * sees that they have changed, and by claims of a process that does not poll. So a new budget holds
 * for the claims of other processes after a second, or two and a half where nothing polls; its sums
 * cannot be wrong before, because all who change them lock it.
 *
 * And the queues that a claim has found closed, for a moment: no claim looks at them again, unless
 * this process or a notice says that they may have opened.
 */

#include "base/map.h"
#include "engine/limit/budget_rows.h"

#include <pthread.h>
#include <stdatomic.h>

struct weft_commit_effects;
struct weft_engine;
struct weft_queue;
struct weft_woken;

struct weft_budget_rules {
    pthread_mutex_t lock;
    struct weft_arena *arena;
    struct weft_budget_rule *rule; /* in the arena; sorted by namespace */
    size_t count;
    int64_t version;             /* the number of the rules, which the poll gives too; 0: unknown */
    weft_usec read_us;           /* boot time; 0: they are to be read again */
    atomic_bool met;             /* a queue with named budgets */
    atomic_bool in_use;          /* there may be budgets; false: none was ever put */
    atomic_bool known;           /* it was looked whether there are */
    struct weft_int_map closed;  /* of queues, owned */
    atomic_size_t closed_queues; /* how many these are */
};

void weft_budget_rules_init(struct weft_budget_rules *rules);
void weft_budget_rules_done(struct weft_budget_rules *rules);

/* Whether there may be budgets. Reads the rules once if they have never been: not under a lock. */
bool weft_budgets_in_use(struct weft_engine *engine);
/* A queue with named budgets was met. */
void weft_budget_rules_met(struct weft_budget_rules *rules);

/* Reads the rules. */
WEFT_MUST_CHECK enum weft_rc weft_budget_rules_read(struct weft_engine *engine,
                                                    struct weft_err *err);
/* Reads them before a claim if they may be old. Fails only if they have never been read. */
WEFT_MUST_CHECK enum weft_rc weft_budget_rules_renew(struct weft_engine *engine,
                                                     struct weft_err *err);
/* They may have changed here: the next claim reads them. */
void weft_budget_rules_doubt(struct weft_engine *engine);
/* The poll tells their number; reads them if that is new. */
WEFT_MUST_CHECK enum weft_rc weft_budget_rules_seen(struct weft_engine *engine, int64_t version,
                                                    struct weft_err *err);

/* The budgets of a queue, in the arena; returns how many. */
size_t weft_budgets_of(struct weft_engine *engine, const struct weft_queue *queue,
                       struct weft_arena *arena, struct weft_budget_ref **ret_ref);
/* Whether there may be any; the queue need not be known. */
bool weft_budgets_apply(struct weft_engine *engine, int32_t queue);

/* A claim found that the queue is closed by a budget, and is not to look again for so long. */
void weft_budget_queue_closed(struct weft_engine *engine, int32_t queue, weft_usec for_us);
bool weft_budget_queue_is_closed(struct weft_engine *engine, int32_t queue);
/* These queues may have opened. */
void weft_budget_queues_heard(struct weft_engine *engine, const struct weft_woken *woken,
                              size_t count);
/* Budgets have room, or other settings: wakes the claims of all queues that were closed here, and,
 * on all replicas, of these. */
void weft_budgets_opened(struct weft_engine *engine, const int32_t *queue, size_t count);

#endif
