/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_SCAN_SCAN_H
#define WEFT_ENGINE_SCAN_SCAN_H

/*
 * Passes: bounded, idempotent walks over rows that are due.
 *
 * Every replica runs every pass. SKIP LOCKED splits the rows between them, and because the whole
 * predicate is re-checked under the row lock, two passes, or a pass and a worker, may meet at a row
 * without harm. No pass waits for a row lock: see pass.sql. A pass is one transaction over at most
 * `batch` rows.
 */

#include "base/base.h"
#include "engine/job/change.h"
#include "engine/names/names.h"
#include "engine/scan/turns.h"
#include "store/store.h"
#include "weft/admin.h"

struct weft_engine;
struct weft_pass_config;
struct weft_tx;

/* A running pass: the tx is open, the config in bounds. */
struct weft_scan {
    struct weft_tx *tx;
    const struct weft_pass_config *config; /* resolved: batch is set, all partitions are 0 to 255 */
    int32_t ns;                            /* of the config; 0: all */
    struct weft_pass_report report;
    uint64_t missed;                        /* rows that were due in the snapshot, but not taken */
    const struct weft_turns_stmts *by_lane; /* set: the pass takes turns between namespaces */
    struct weft_scan_turns turns;           /* in: where it begins; out: how the next one goes on */
    struct weft_changes changes;            /* for the news after the commit */
    struct weft_id_list promoted;           /* the queue of each that became ready in another way */
    struct weft_id_list freed;      /* the queue of each slot that became free in another way */
    const struct weft_call *beside; /* sent with the statement that takes due rows; or NULL */
    struct weft_rows beside_rows;   /* its result */
};
typedef enum weft_rc weft_scan_fn(struct weft_scan *scan, struct weft_err *err);

/* Passes that are not one walk over living rows: they run transactions of their own. */
typedef enum weft_rc weft_pass_fn(struct weft_engine *engine, const struct weft_pass_config *config,
                                  struct weft_pass_report *ret_report, struct weft_err *err);
weft_scan_fn weft_scan_lease_expiry, weft_scan_attempt_timeout, weft_scan_delayed_promoter,
    weft_scan_execution_deadline;
weft_pass_fn weft_dependency_run, weft_edge_cancel_dispatcher_run, weft_edge_cancel_reconciler_run,
    weft_cancel_backlog_run;
weft_pass_fn weft_worker_expiry_run, weft_invariant_check_run, weft_retention_run,
    weft_unused_names_run;

#endif
