/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_SCAN_SCAN_H
#define WEFT_ENGINE_SCAN_SCAN_H

/*
 * Passes: bounded, idempotent walks over rows that are due.
 *
 * Every replica runs every pass. SKIP LOCKED splits the rows between them, and because the whole
 * predicate is re-checked under the row lock, two passes, or a pass and a worker, may meet at a row
 * without harm. No pass waits for a row lock: see pass.sql.
 */

#include "engine/scan/pass.h"

#define WEFT_GATES_WALK_US   (2 * WEFT_SECOND) /* between two walks over gates in use */
#define WEFT_GATES_HURRY_US  (100 * WEFT_MS)   /* while errands may be lost */
#define WEFT_BUDGETS_WALK_US (2 * WEFT_SECOND) /* between two walks over leases under budgets */
#define WEFT_FLOW_LEFT_US    WEFT_SECOND       /* work older than this was left by its process */
#define WEFT_FLOW_STAGE_US   ((weft_usec)600 * WEFT_SECOND) /* to write a flow in parts */
#define WEFT_FLOW_PASS_US    (50 * WEFT_MS) /* a pass over many flows ends after this */

/* A running pass. */
struct weft_pass {
    struct weft_engine *engine;
    enum weft_scanner scanner;
    const struct weft_pass_config *config; /* resolved: batch is set, all partitions are 0 to 255 */
    int32_t ns; /* of the config; 0: all, -1 (which matches no row): it does not exist */
    struct weft_arena *arena;          /* freed after the pass */
    weft_usec began_us;                /* boot time */
    struct weft_pass_report report;    /* next_due_us begins as WEFT_NEVER */
    uint64_t count[WEFT_COUNTERS_MAX]; /* for the report; in the order of the table in pass.c */
};
typedef enum weft_rc weft_pass_fn(struct weft_pass *pass, struct weft_err *err);

/* weft_due_run: the scanners over due rows of `live`. */
weft_pass_fn weft_due_run, weft_intake_run, weft_worker_expiry_run, weft_invariant_check_run,
    weft_retention_run, weft_dependency_run, weft_edge_cancel_dispatcher_run,
    weft_edge_cancel_reconciler_run, weft_cancel_backlog_run, weft_unused_names_run,
    weft_waitpoint_expiry_run, weft_unblock_run, weft_budget_reset_run, weft_purge_run,
    weft_file_expiry_run, weft_batch_progress_run, weft_erasure_run;

/* The parameters that the statements of all passes have. */
struct weft_scope_in weft_pass_scope(const struct weft_pass *pass);

/* Pauses between two transactions of a pass that is not urgent, for less than a second. */
void weft_pass_rest(weft_usec pause_us);

/* A pass over flows has used up its time. */
bool weft_flow_pass_late(const struct weft_pass *pass);

#endif
