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

#include "engine/engine.h"

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

/* The statements of turns.sql for a scanner. */
struct weft_turns_stmts {
    enum weft_stmt lanes, take;
};

typedef enum weft_rc weft_scan_fn(struct weft_scan *scan, struct weft_err *err);

weft_scan_fn weft_scan_lease_expiry, weft_scan_attempt_timeout, weft_scan_delayed_promoter,
    weft_scan_execution_deadline;

/* The intake runs transactions of its own. */
WEFT_MUST_CHECK enum weft_rc weft_intake_run(struct weft_engine *engine,
                                             const struct weft_pass_config *config,
                                             struct weft_pass_report *ret_report,
                                             struct weft_err *err);

/* Passes that are not one walk over living rows: they run transactions of their own. */
typedef enum weft_rc weft_pass_fn(struct weft_engine *engine, const struct weft_pass_config *config,
                                  struct weft_pass_report *ret_report, struct weft_err *err);
weft_pass_fn weft_dependency_run, weft_edge_cancel_dispatcher_run, weft_edge_cancel_reconciler_run,
    weft_cancel_backlog_run;
weft_pass_fn weft_worker_expiry_run, weft_invariant_check_run, weft_retention_run,
    weft_unused_names_run;

/* The namespace a pass is limited to: 0 for all, -1 (which matches no row) if it does not exist. */
WEFT_MUST_CHECK enum weft_rc weft_pass_namespace(struct weft_engine *engine,
                                                 const struct weft_pass_config *config,
                                                 int32_t *ret_ns, struct weft_err *err);
/* Fills in the counters of a report, under the names of the scanner and in their order. */
void weft_pass_count(struct weft_pass_report *report, enum weft_scanner scanner,
                     const uint64_t *value);
/* An empty report with the scanner's counters by name. */
struct weft_pass_report weft_scan_report(enum weft_scanner scanner);

/* Ends the attempt of a row: another one, or the end of the execution. */
void weft_scan_time_out(struct weft_scan *scan, struct weft_change *change);

/* A call of a statement of pass.sql: all of them have the same parameters. */
void weft_scan_call(const struct weft_scan *scan, enum weft_stmt stmt, struct weft_call *ret_call);
/*
 * Runs a statement that takes due rows. Removes the row that only counts the due rows of the
 * snapshot, and records in scan->missed how many of these were not taken.
 */
WEFT_MUST_CHECK enum weft_rc weft_scan_due(struct weft_scan *scan, enum weft_stmt stmt,
                                           struct weft_rows *ret_rows, struct weft_err *err);
/* The position of the next pass of a scanner over all namespaces: turns.c. */
struct weft_scan_turns weft_turns_read(struct weft_engine *engine, enum weft_scanner scanner);
void weft_turns_write(struct weft_engine *engine, enum weft_scanner scanner,
                      const struct weft_scan_turns *turns);
/* The same for a pass that takes turns between namespaces: turns.c. */
WEFT_MUST_CHECK enum weft_rc weft_scan_in_turns(struct weft_scan *scan, struct weft_rows *ret_rows,
                                                struct weft_err *err);
/* The same for a statement with the columns of live_lock. */
WEFT_MUST_CHECK enum weft_rc weft_scan_take(struct weft_scan *scan, enum weft_stmt stmt,
                                            struct weft_err *err);
/* Writes the changes and counts them. */
WEFT_MUST_CHECK enum weft_rc weft_scan_write(struct weft_scan *scan, struct weft_err *err);

#endif
