/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_GROUP_COMMIT_WORK_H
#define WEFT_NET_GROUP_COMMIT_WORK_H

/*
 * Work that a commit leaves to do: cascades and drains of flows, admissions of gates, settling of
 * leases under budgets and cancels of budgets, steps of batches. A request adds to it after its
 * commit and goes on.
 *
 * Of each kind one task at a time runs on the engine threads, beside the requests, with all that
 * was added since the last one: so flows, gates and budgets that move at the same time share
 * transactions, and much work of a kind takes one thread, not all. What is added meanwhile is for
 * the next task, behind the requests that wait by then. A failure is left to the scanners.
 */

#include "engine/limit/settle.h"

struct weft_commit_work; /* opaque */
struct weft_server;

enum weft_commit_work_kind {
    WEFT_WORK_CASCADES,
    WEFT_WORK_DRAINS,
    WEFT_WORK_ADMISSIONS,
    WEFT_WORK_SETTLEMENTS,
    WEFT_WORK_BUDGET_CANCELS,
    WEFT_WORK_BATCHES,
    WEFT_WORK_KINDS
};

struct weft_commit_work *weft_commit_work_new(struct weft_server *server,
                                              enum weft_commit_work_kind kind);
/* What is added from here on is left to the scanners. NULL is fine. */
void weft_commit_work_stop(struct weft_commit_work *work);
void weft_commit_work_free(struct weft_commit_work *work); /* no engine thread runs; or NULL */

/* context is the server: see weft_engine_on_flows(), weft_engine_on_gates() and
 * weft_engine_on_budgets(). */
void weft_add_cascades(void *context, const struct weft_id *flow, size_t count);
void weft_add_admissions(void *context, const char *const *gate, size_t count);
void weft_add_budget_work(void *context, const struct weft_lease_end *ended, size_t count,
                          bool cancel);
/* A flow was cancelled, and its members are to be. */
void weft_add_drain(struct weft_server *server, const struct weft_id *flow);
/* A batch was created, or its flow has ended. */
void weft_add_batch(struct weft_server *server, const struct weft_id *batch);

#endif
