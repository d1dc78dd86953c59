/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_SCAN_PASS_H
#define WEFT_ENGINE_SCAN_PASS_H

/* One pass of a scanner, and the table of scanners. */

#include "base/base.h"
#include "store/store.h"
#include "weft/admin.h"

struct weft_engine;
struct weft_scan;

/* What every scanner is; one table in engine/scan/pass.c. */
struct weft_scanner_info {
    const char *name;
    weft_usec interval_us; /* by default; the longest time between two looks */
    uint32_t batch;        /* by default; rows of one transaction */
    uint32_t batch_max;
    bool timed;        /* knows when it has something to do next, and the poll tells it too */
    bool partitioned;  /* can be limited to a range of partitions */
    bool takes_leases; /* waits the grace after a start or an outage */
    const char
        *counter[WEFT_COUNTERS_MAX + 1]; /* names of what its report counts; NULL ends them */
};

/* How one pass is to run; all zero is the default. */
struct weft_pass_config {
    uint32_t batch;                          /* 0: the scanner's own */
    const char *ns;                          /* only work of this namespace; NULL: of all */
    uint8_t partition_first, partition_last; /* only ids of these partitions; 0 and 0: all */
    /* Leases that ran out before this moment were lost while no server ran: not counted. */
    weft_usec forgive_us;
    weft_usec most_us; /* retention: says that there is more after so long; 0: after its own time */
};

/* When each pass has work, by the times of the poll in the order of its columns. */
enum { WEFT_PASS_TIMES = 4 };
const struct weft_scanner_info *weft_scanner_info(enum weft_scanner scanner);

/* The scanner of that name, WEFT_SCANNER_COUNT: there is none. */
enum weft_scanner weft_scanner_find(const char *name);

/* One bounded pass; see engine/scan/. config NULL: the default. */
WEFT_MUST_CHECK enum weft_rc weft_engine_pass(struct weft_engine *engine, enum weft_scanner scanner,
                                              const struct weft_pass_config *config,
                                              struct weft_pass_report *ret_report,
                                              struct weft_err *err);
void weft_pass_due(const struct weft_opt_i64 time[WEFT_PASS_TIMES],
                   weft_usec ret_due_us[WEFT_SCANNER_COUNT]);

/* The namespace a pass is limited to: 0 for all, -1 (which matches no row) if it does not exist. */
WEFT_MUST_CHECK enum weft_rc weft_pass_namespace(struct weft_engine *engine,
                                                 const struct weft_pass_config *config,
                                                 int32_t *ret_ns, struct weft_err *err);

/* Fills in the counters of a report, under the names of the scanner and in their order. */
void weft_pass_count(struct weft_pass_report *report, enum weft_scanner scanner,
                     const uint64_t *value);

/* An empty report with the scanner's counters by name. */
struct weft_pass_report weft_scan_report(enum weft_scanner scanner);

/* A call of a statement of pass.sql: all of them have the same parameters. */
void weft_scan_call(const struct weft_scan *scan, enum weft_stmt stmt, struct weft_call *ret_call);

/*
 * Runs a statement that takes due rows. Removes the row that only counts the due rows of the
 * snapshot, and records in scan->missed how many of these were not taken.
 */
WEFT_MUST_CHECK enum weft_rc weft_scan_due(struct weft_scan *scan, enum weft_stmt stmt,
                                           struct weft_rows *ret_rows, struct weft_err *err);

/* The same for a statement with the columns of live_lock. */
WEFT_MUST_CHECK enum weft_rc weft_scan_take(struct weft_scan *scan, enum weft_stmt stmt,
                                            struct weft_err *err);

/* Writes the changes and counts them. */
WEFT_MUST_CHECK enum weft_rc weft_scan_write(struct weft_scan *scan, struct weft_err *err);

#endif
