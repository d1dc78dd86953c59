/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_LEASES_H
#define WEFT_ENGINE_JOB_LEASES_H

/* The operations of a worker on its leases: renew, complete, fail, put back. */

#include "core/result.h"

struct weft_engine;
struct weft_joint_call;
struct weft_tx;
struct weft_worker_met;
enum weft_put_back_kind { WEFT_PUT_BACK_DELAY, WEFT_PUT_BACK_RELEASE };
WEFT_MUST_CHECK enum weft_rc weft_engine_renew(struct weft_engine *engine,
                                               const struct weft_renew *item, size_t count,
                                               struct weft_arena *arena,
                                               struct weft_lease_result *ret_answer,
                                               struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_complete(struct weft_engine *engine,
                                                  const struct weft_complete *item, size_t count,
                                                  struct weft_arena *arena,
                                                  struct weft_lease_result *ret_answer,
                                                  struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_fail(struct weft_engine *engine,
                                              const struct weft_failure *item, size_t count,
                                              struct weft_arena *arena,
                                              struct weft_lease_result *ret_answer,
                                              struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc
weft_engine_put_back(struct weft_engine *engine, enum weft_put_back_kind kind,
                     const struct weft_put_back *item, size_t count, struct weft_arena *arena,
                     struct weft_lease_result *ret_answer, struct weft_err *err);

/* The bounds of a lease's length; 0 is the policy's. */
WEFT_MUST_CHECK enum weft_rc weft_lease_ms_check(int64_t lease_ms, struct weft_err *err);

/* A completion that may share a transaction: see joint.h. */
void weft_complete_begin(struct weft_engine *engine, struct weft_joint_call *call,
                         struct weft_arena *arena);
void weft_complete_end(struct weft_tx *tx, struct weft_joint_call *call, struct weft_arena *arena);

/* ---- Leases that another party ended (lease_watch.c) ----------------------------------------- */

/*
 * The numbers of workers in news and in the poll; new names are added. A server calls this before
 * it folds claims into one call, so that a name too many is the error of one claim alone, and many
 * new names cost one transaction.
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
 * The leases of a worker that others ended and that no watch has returned yet, up to
 * WEFT_BATCH_MAX. Never waits: watch->wait_ms is the caller's. `ns` of the watch is required. The
 * answer is in the arena (ret_watched->arena stays NULL).
 */
WEFT_MUST_CHECK enum weft_rc
weft_engine_watch(struct weft_engine *engine, const struct weft_watch *watch,
                  struct weft_arena *arena, struct weft_watched *ret_watched, struct weft_err *err);

#endif
