/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_SCAN_PASS_H
#define WEFT_ENGINE_SCAN_PASS_H

/* One pass of a scanner, and the table of scanners. */

#include "engine/engine.h"
#include "store/store.h"

/* What every scanner is; one table in engine/scan/pass.c. */
struct weft_scanner_info {
    const char *name;
    weft_usec interval_us; /* by default; the longest time between two passes */
    uint32_t batch;        /* by default; rows of one transaction */
    uint32_t batch_max;
    weft_usec pause_us; /* by default; between two passes while there is more */
    bool timed;         /* its report has the time of its next work, and so has the poll */
    bool partitioned;   /* can be limited to a range of partitions */
    bool takes_leases;  /* waits the grace after a start or an outage */
    bool heavy;         /* may not take the last place that passes have */
    const char *counter[WEFT_COUNTERS_MAX + 1]; /* names of its counters; NULL ends them */
};

/* How one pass is to run; all zero is the default. */
struct weft_pass_config {
    uint32_t batch;                          /* 0: the scanner's own */
    const char *ns;                          /* only work of this namespace; NULL: of all */
    uint8_t partition_first, partition_last; /* only ids of these partitions; 0 and 0: all */
    /* Leases that ran out before this moment were lost while no server ran: not counted. */
    weft_usec forgive_us;
    weft_usec most_us; /* retention: reports that there is more after so long; 0: its own time */
};

const struct weft_scanner_info *weft_scanner_info(enum weft_scanner scanner);

/* The scanner of that name, WEFT_SCANNER_COUNT: there is none. */
enum weft_scanner weft_scanner_find(const char *name);

/* One bounded pass; see engine/scan/scan.h. config NULL: the default. */
WEFT_MUST_CHECK enum weft_rc weft_engine_pass(struct weft_engine *engine, enum weft_scanner scanner,
                                              const struct weft_pass_config *config,
                                              struct weft_pass_report *ret_report,
                                              struct weft_err *err);

/* When each pass has work, by the times of the poll in the order of its columns. */
enum { WEFT_PASS_TIMES = 4 };
void weft_pass_due(const struct weft_opt_i64 time[WEFT_PASS_TIMES],
                   weft_usec ret_due_us[WEFT_SCANNER_COUNT]);

#endif
