/* SPDX-License-Identifier: Apache-2.0 */

/* The table of passes, and what all of them share. */

#include "engine/scan/scan.h"

#include <assert.h>

#define NO_TIMER    SIZE_MAX
#define DUE(column) NEXT_DUE_OUT_##column

/* What the passes over living rows count. */
#define ROWS_COUNTED                                                                               \
    {                                                                                              \
        "processed", "ended", "skipped_locked", "rechecked_alive"                                  \
    }

static const struct scanner {
    struct weft_scanner_info info;
    weft_scan_fn *run;
    weft_pass_fn *run_alone; /* instead of run */
    size_t next_due; /* the column of next_due that tells when it has work again, or NO_TIMER */
} scanners[WEFT_SCANNER_COUNT] = {
    [WEFT_SCANNER_INTAKE] = {.info = {.name = "intake",
                                      .interval_us = WEFT_SECOND,
                                      .batch = WEFT_BATCH_MAX,
                                      .batch_max = WEFT_BATCH_MAX,
                                      .timed = true,
                                      .counter = {"processed", "refused"}},
                             .next_due = NO_TIMER},
    [WEFT_SCANNER_LEASE_EXPIRY] = {.info = {.name = "lease_expiry",
                                            .interval_us = WEFT_SECOND,
                                            .batch = WEFT_BATCH_MAX,
                                            .batch_max = WEFT_BATCH_MAX,
                                            .timed = true,
                                            .partitioned = true,
                                            .takes_leases = true,
                                            .counter = ROWS_COUNTED},
                                   .run = weft_scan_lease_expiry,
                                   .next_due = DUE(LEASE)},
    [WEFT_SCANNER_ATTEMPT_TIMEOUT] = {.info = {.name = "attempt_timeout",
                                               .interval_us = WEFT_SECOND,
                                               .batch = WEFT_BATCH_MAX,
                                               .batch_max = WEFT_BATCH_MAX,
                                               .timed = true,
                                               .partitioned = true,
                                               .takes_leases = true,
                                               .counter = ROWS_COUNTED},
                                      .run = weft_scan_attempt_timeout,
                                      .next_due = DUE(ATTEMPT)},
    [WEFT_SCANNER_DELAYED_PROMOTER] = {.info = {.name = "delayed_promoter",
                                                .interval_us = WEFT_SECOND,
                                                .batch = WEFT_BATCH_MAX,
                                                .batch_max = WEFT_BATCH_MAX,
                                                .timed = true,
                                                .partitioned = true,
                                                .counter = ROWS_COUNTED},
                                       .run = weft_scan_delayed_promoter,
                                       .next_due = DUE(DELAYED)},
    [WEFT_SCANNER_EXECUTION_DEADLINE] = {.info = {.name = "execution_deadline",
                                                  .interval_us = WEFT_SECOND,
                                                  .batch = WEFT_BATCH_MAX,
                                                  .batch_max = WEFT_BATCH_MAX,
                                                  .timed = true,
                                                  .partitioned = true,
                                                  .counter = ROWS_COUNTED},
                                         .run = weft_scan_execution_deadline,
                                         .next_due = DUE(DEADLINE)},
    [WEFT_SCANNER_WORKER_EXPIRY] = {.info = {.name = "worker_expiry",
                                             .interval_us = 30 * WEFT_SECOND,
                                             .batch = WEFT_BATCH_MAX,
                                             .batch_max = WEFT_BATCH_MAX,
                                             .counter = {"processed", "replicas", "holding_leases",
                                                         "skipped_locked"}},
                                    .run_alone = weft_worker_expiry_run,
                                    .next_due = NO_TIMER},
    [WEFT_SCANNER_INVARIANT_CHECK] = {.info = {.name = "invariant_check",
                                               .interval_us = 60 * WEFT_SECOND,
                                               .batch = WEFT_BATCH_MAX,
                                               .batch_max = WEFT_BATCH_MAX,
                                               .partitioned = true,
                                               .counter = {"sampled", "in_neither", "in_both",
                                                           "epoch_disorder", "orphans",
                                                           "repaired"}},
                                      .run_alone = weft_invariant_check_run,
                                      .next_due = NO_TIMER},
};

const struct weft_scanner_info *weft_scanner_info(enum weft_scanner scanner)
{
    return &scanners[scanner].info;
}

const char *weft_scanner_name(enum weft_scanner scanner)
{
    return (unsigned)scanner < WEFT_SCANNER_COUNT ? scanners[scanner].info.name : "unknown";
}

enum weft_rc weft_pass_namespace(struct weft_engine *engine, const struct weft_pass_config *config,
                                 int32_t *ret_ns, struct weft_err *err)
{
    int32_t ns = 0;
    enum weft_rc rc = config->ns ? weft_find_namespace(engine, config->ns, &ns, err) : WEFT_OK;
    if (!rc)
        *ret_ns = config->ns && ns == 0 ? -1 : ns;
    return rc;
}

void weft_pass_count(struct weft_pass_report *report, enum weft_scanner scanner,
                     const uint64_t *value)
{
    const char *const *name = scanners[scanner].info.counter;
    for (report->counter_count = 0; name[report->counter_count]; report->counter_count++)
        report->counter[report->counter_count] = (struct weft_counter){
            .name = name[report->counter_count], .value = value[report->counter_count]};
}

enum weft_rc weft_scan_take(struct weft_scan *scan, enum weft_stmt stmt, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, scan->tx->arena, stmt, 0);
    weft_set_i64(&call, 0, DUE_LEASES_IN_NOW, scan->tx->now_us);
    weft_set_i64(&call, 0, DUE_LEASES_IN_BATCH, scan->config->batch);
    enum weft_rc rc = weft_tx_run(scan->tx, &call, 1, &rows, err);
    if (!rc)
        scan->changes = weft_change_rows(&rows, scan->tx->arena);
    return rc;
}

enum weft_rc weft_scan_write(struct weft_scan *scan, struct weft_err *err)
{
    for (size_t i = 0; i < scan->changes.count; i++) {
        const struct weft_change *change = &scan->changes.change[i];
        scan->report.handled += change->apply;
        scan->report.failed += change->apply && !weft_state_living(change->step.after.state);
    }
    scan->report.more = scan->changes.count == scan->config->batch;
    return scan->changes.count ? weft_change_write(scan->tx, &scan->changes, err) : WEFT_OK;
}

void weft_pass_due(const struct weft_rows *rows, size_t row, size_t first,
                   weft_usec ret_due_us[WEFT_SCANNER_COUNT])
{
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++) {
        ret_due_us[i] = WEFT_NEVER;
        if (scanners[i].next_due != NO_TIMER &&
            !weft_get(rows, row, first + scanners[i].next_due)->null)
            ret_due_us[i] = weft_get_i64(rows, row, first + scanners[i].next_due);
    }
}

struct pass_call {
    enum weft_scanner scanner;
    struct weft_scan scan;
    struct weft_pass_config config;
};

static enum weft_rc pass_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct pass_call *call = context;
    call->scan = (struct weft_scan){.tx = tx, .config = &call->config};
    call->scan.report.next_due_us = WEFT_NEVER;
    enum weft_rc rc = scanners[call->scanner].run(&call->scan, err);
    if (rc || call->scan.report.more || scanners[call->scanner].next_due == NO_TIMER)
        return rc;
    struct weft_call ask;
    struct weft_rows rows;
    weft_call_init(&ask, tx->arena, WEFT_STMT_NEXT_DUE, 0);
    rc = weft_tx_run(tx, &ask, 1, &rows, err);
    if (rc)
        return rc;
    weft_usec due_us[WEFT_SCANNER_COUNT];
    weft_pass_due(&rows, 0, 0, due_us);
    call->scan.report.next_due_us = due_us[call->scanner];
    return WEFT_OK;
}

enum weft_rc weft_engine_pass(struct weft_engine *engine, enum weft_scanner scanner,
                              const struct weft_pass_config *config,
                              struct weft_pass_report *ret_report, struct weft_err *err)
{
    if ((unsigned)scanner >= WEFT_SCANNER_COUNT)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "scanner", "there is no such scanner");
    const struct weft_scanner_info *info = &scanners[scanner].info;
    struct pass_call call = {.scanner = scanner};
    if (config)
        call.config = *config;
    if (call.config.batch > info->batch_max)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "batch", "batch is %u, at most %u",
                               call.config.batch, info->batch_max);
    if (call.config.batch == 0)
        call.config.batch = info->batch;
    if (scanner == WEFT_SCANNER_INTAKE) /* several transactions: see there */
        return weft_intake_run(engine, call.config.batch, ret_report, err);
    if (scanners[scanner].run_alone)
        return scanners[scanner].run_alone(engine, &call.config, ret_report, err);
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, pass_body, &call, err);
    if (!rc) {
        struct weft_tidings news = weft_news_new(tx.arena, tx.now_us);
        weft_change_news(&news, &call.scan.changes);
        for (size_t i = 0; i < call.scan.promoted.count; i++)
            weft_news_of(&news, call.scan.promoted.id[i])->ready++;
        weft_news_tell(engine, &news);
        *ret_report = call.scan.report;
    }
    weft_arena_free(tx.arena);
    return rc;
}
