/* SPDX-License-Identifier: Apache-2.0 */

/* The table of scanners, and how a pass begins and ends. */

#include "engine/scan/pass.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "engine/engine_state.h"
#include "engine/scan/scan.h"

#include <string.h>
#include <time.h>

enum {
    FLOWS_BATCH = 256, /* flows of one pass */
    BATCH_ALONE = 250, /* rows of one transaction where one writes at a time */
    TIMED = 1,
    PARTITIONED = 2,
    TAKES_LEASES = 4,
    HEAVY = 8,   /* as all that are not timed */
    PAUSES = 16, /* between two batches */
};

#define BATCH_PAUSE_US (100 * WEFT_MS)

#define ROW(id, name_, run_, seconds, batch_, batch_most, flags, ...)                              \
    [WEFT_SCANNER_##id] = {.info = {.name = #name_,                                                \
                                    .interval_us = (seconds)*WEFT_SECOND,                          \
                                    .batch = (batch_),                                             \
                                    .batch_max = (batch_most),                                     \
                                    .timed = ((flags)&TIMED) != 0,                                 \
                                    .partitioned = ((flags)&PARTITIONED) != 0,                     \
                                    .takes_leases = ((flags)&TAKES_LEASES) != 0,                   \
                                    .pause_us = ((flags)&PAUSES) != 0 ? BATCH_PAUSE_US : 0,        \
                                    .heavy = ((flags)&TIMED) == 0 || ((flags)&HEAVY) != 0,         \
                                    .counter = {__VA_ARGS__}},                                     \
                           .run = weft_##run_##_run},
#define SCANNER(id, name, ...) ROW(id, name, name, __VA_ARGS__)
#define DUE_ROWS(id, name, flags)                                                                  \
    ROW(id, name, due, 1, WEFT_BATCH_MAX, WEFT_BATCH_MAX, TIMED | PARTITIONED | (flags),           \
        "processed", "ended", "skipped_locked", "rechecked_alive")

static const struct scanner {
    struct weft_scanner_info info;
    weft_pass_fn *run;
} scanners[WEFT_SCANNER_COUNT] = {
    /* The interval in seconds, rows of a batch, flags, counters. */
    /* clang-format off */
    SCANNER(INTAKE, intake, 1, WEFT_BATCH_MAX, WEFT_BATCH_MAX, TIMED | PARTITIONED,
            "processed", "refused", "existing_id")
    DUE_ROWS(LEASE_EXPIRY, lease_expiry, TAKES_LEASES)
    DUE_ROWS(ATTEMPT_TIMEOUT, attempt_timeout, TAKES_LEASES)
    DUE_ROWS(DELAYED_PROMOTER, delayed_promoter, 0)
    DUE_ROWS(EXECUTION_DEADLINE, execution_deadline, 0)
    SCANNER(WORKER_EXPIRY, worker_expiry, 30, WEFT_BATCH_MAX, WEFT_BATCH_MAX, 0,
            "processed", "replicas", "holding_leases", "skipped_locked")
    SCANNER(INVARIANT_CHECK, invariant_check, 60, WEFT_BATCH_MAX, WEFT_BATCH_MAX, PARTITIONED,
            "sampled", "in_neither", "in_both", "epoch_disorder", "orphans", "repaired")
    SCANNER(RETENTION, retention, 60, 200, 10 * WEFT_BATCH_MAX, PARTITIONED,
            "processed", "attempts", "keys", "skipped_locked", "flows")
    SCANNER(DEPENDENCY, dependency, 1, FLOWS_BATCH, WEFT_BATCH_MAX, TIMED | PARTITIONED,
            "scanned", "reconciled", "noop", "errors")
    SCANNER(EDGE_CANCEL_DISPATCHER, edge_cancel_dispatcher, 1, FLOWS_BATCH, WEFT_BATCH_MAX,
            TIMED | PARTITIONED, "dispatched", "orphaned", "skipped_locked", "errors")
    SCANNER(EDGE_CANCEL_RECONCILER, edge_cancel_reconciler, 10, WEFT_BATCH_MAX, WEFT_BATCH_MAX,
            TIMED | PARTITIONED, "stale_removed", "completed_drain", "no_op")
    SCANNER(CANCEL_BACKLOG, cancel_backlog, 1, FLOWS_BATCH, WEFT_BATCH_MAX, TIMED | PARTITIONED,
            "processed", "cancelled", "removed", "skipped_locked")
    SCANNER(UNUSED_NAMES, unused_names, 10, 5 * WEFT_BATCH_MAX, 10 * WEFT_BATCH_MAX, 0,
            "scanned", "noted", "retired", "removed", "wanted_again")
    DUE_ROWS(SUSPENSION_TIMEOUT, suspension_timeout, 0)
    SCANNER(WAITPOINT_EXPIRY, waitpoint_expiry, 1, WEFT_BATCH_MAX, WEFT_BATCH_MAX,
            TIMED | PARTITIONED, "processed", "skipped_locked")
    SCANNER(UNBLOCK, unblock, 1, 500, WEFT_BATCH_MAX, TIMED,
            "processed", "looked", "skipped_locked", "removed")
    SCANNER(BUDGET_RESET, budget_reset, 1, WEFT_BATCH_MAX, WEFT_BATCH_MAX, TIMED,
            "processed", "settled", "cancelled", "removed", "folded")
    SCANNER(PURGE, purge, 600, WEFT_BATCH_MAX, 10 * WEFT_BATCH_MAX,
            TIMED | PARTITIONED | HEAVY | PAUSES,
            "processed", "members", "edges", "chunks", "tombstones", "skipped_locked", "errors")
    SCANNER(FILE_EXPIRY, file_expiry, 60, WEFT_BATCH_MAX, WEFT_BATCH_MAX, 0, "processed")
    SCANNER(BATCH_PROGRESS, batch_progress, 2, 100, WEFT_BATCH_MAX, 0,
            "looked", "written", "moved", "finished", "errors")
    SCANNER(ERASURE, erasure, 60, WEFT_BATCH_MAX, WEFT_BATCH_MAX, TIMED | HEAVY,
            "steps", "cancelled", "removed", "scrubbed", "flows", "finished", "skipped_locked")
    /* clang-format on */
};

const struct weft_scanner_info *weft_scanner_info(enum weft_scanner scanner)
{
    return &scanners[scanner].info;
}

const char *weft_scanner_name(enum weft_scanner scanner)
{
    return (unsigned)scanner < WEFT_SCANNER_COUNT ? scanners[scanner].info.name : "unknown";
}

enum weft_scanner weft_scanner_find(const char *name)
{
    size_t i = 0;
    while (i < WEFT_SCANNER_COUNT && strcmp(scanners[i].info.name, name) != 0)
        i++;
    return (enum weft_scanner)i;
}

struct weft_scope_in weft_pass_scope(const struct weft_pass *pass)
{
    return (struct weft_scope_in){.batch = pass->config->batch,
                                  .ns = pass->ns,
                                  .first = pass->config->partition_first,
                                  .last = pass->config->partition_last};
}

/* One transaction takes so many rows of a batch: all, or a part where one writes at a time. */
static uint32_t share_of(const struct weft_pass *pass)
{
    uint32_t batch = pass->config->batch;
    return pass->engine->pool.writers == 1 && batch > BATCH_ALONE ? BATCH_ALONE : batch;
}

void weft_pass_rest(weft_usec pause_us)
{
    const struct timespec pause = {.tv_nsec = pause_us * 1000};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* Checks the config of a pass and fills in defaults. */
static enum weft_rc resolve(struct weft_pass *pass, struct weft_pass_config *config,
                            struct weft_err *err)
{
    const struct weft_scanner_info *info = &scanners[pass->scanner].info;
    if (config->batch > info->batch_max)
        return weft_invalid(err, "batch", "batch is %u, at most %u", config->batch,
                            info->batch_max);
    if (config->partition_first > config->partition_last)
        return weft_invalid(err, "partitions", "partitions %u to %u are none",
                            config->partition_first, config->partition_last);
    if (config->batch == 0)
        config->batch = info->batch;
    /* A pass that is one transaction: it says that there is more, and others write in between. */
    if (scanners[pass->scanner].run == weft_due_run)
        config->batch = share_of(pass);
    if (config->partition_last == 0)
        config->partition_last = WEFT_PARTITIONS - 1;
    /* The rows of the inbox have namespaces as texts, which no other row may have yet. */
    if (!config->ns || pass->scanner == WEFT_SCANNER_INTAKE)
        return WEFT_OK;
    enum weft_rc rc = weft_find_namespace(pass->engine, config->ns, &pass->ns, err);
    if (!rc && pass->ns == 0)
        pass->ns = -1;
    return rc;
}

/* What a pass that failed did before that stays done, so its report is written as well. */
enum weft_rc weft_engine_pass(struct weft_engine *engine, enum weft_scanner scanner,
                              const struct weft_pass_config *config,
                              struct weft_pass_report *ret_report, struct weft_err *err)
{
    if ((unsigned)scanner >= WEFT_SCANNER_COUNT)
        return weft_invalid(err, "scanner", "there is no such scanner");
    struct weft_pass_config resolved = {0};
    if (config)
        resolved = *config;
    struct weft_pass pass = {.engine = engine,
                             .scanner = scanner,
                             .config = &resolved,
                             .began_us = weft_boot_us(),
                             .report = {.next_due_us = WEFT_NEVER}};
    enum weft_rc rc = resolve(&pass, &resolved, err);
    if (rc)
        return rc;
    pass.arena = weft_arena_new();
    rc = scanners[scanner].run(&pass, err);
    const char *const *name = scanners[scanner].info.counter;
    size_t *count = &pass.report.counter_count;
    for (; name[*count]; (*count)++)
        pass.report.counter[*count] =
            (struct weft_counter){.name = name[*count], .value = pass.count[*count]};
    *ret_report = pass.report;
    weft_arena_free(pass.arena);
    return rc;
}
