/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_LEASE_WATCH_H
#define WEFT_ENGINE_JOB_LEASE_WATCH_H

/* Leases that another party ended, for the worker that held them. */

#include "base/base.h"
#include "weft/weft.h"

struct weft_arena;
struct weft_engine;
struct weft_worker_met;

/*
 * What stands for workers' names in news and in the poll; those that are new are added. A server
 * asks this before it folds claims into one call, so that a name too many is the error of one claim
 * alone, and many new names cost one transaction.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_meet_workers(struct weft_engine *engine,
                                                      const struct weft_watch *watch, size_t count,
                                                      struct weft_worker_met *ret_met,
                                                      struct weft_err *err);

/* The same for one. */
WEFT_MUST_CHECK enum weft_rc weft_engine_worker_number(struct weft_engine *engine,
                                                       const struct weft_watch *watch,
                                                       int32_t *ret_worker, struct weft_err *err);

/*
 * The leases of a worker that others ended and that it was not told of yet, up to WEFT_BATCH_MAX;
 * from here on it is taken to know. Never waits: watch->wait_ms is the caller's. `ns` of the watch
 * is required. The answer is in the arena (ret_watched->arena stays NULL).
 */
WEFT_MUST_CHECK enum weft_rc
weft_engine_watch(struct weft_engine *engine, const struct weft_watch *watch,
                  struct weft_arena *arena, struct weft_watched *ret_watched, struct weft_err *err);

#endif
