/* SPDX-License-Identifier: Apache-2.0 */

/* The table of passes, and their shared code. */

#include "engine/scan/pass.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "core/state.h"
#include "engine/engine_state.h"
#include "engine/job/change.h"
#include "engine/scan/scan.h"

#include <assert.h>
#include <string.h>

#define NO_TIMER SIZE_MAX

enum {
    FLOWS_BATCH = 256, /* flows of one pass */
    BATCH_ALONE = 250, /* rows of one transaction where one writes at a time */
};

/* The times of the poll, in the order of its columns. */
enum { DUE_LEASE, DUE_ATTEMPT, DUE_DEADLINE, DUE_DELAYED };
static_assert(DUE_DELAYED == WEFT_PASS_TIMES - 1, "all of them");

/* What the passes over living rows count. */
enum { ROWS_PROCESSED, ROWS_ENDED, ROWS_SKIPPED_LOCKED, ROWS_RECHECKED_ALIVE };
#define ROWS_COUNTED                                                                               \
    {                                                                                              \
        "processed", "ended", "skipped_locked", "rechecked_alive"                                  \
    }

static const struct scanner {
    struct weft_scanner_info info;
    weft_scan_fn *run;
    weft_pass_fn *run_alone; /* instead of run */
    size_t next_due;         /* the time in the poll at which it has work again, or NO_TIMER */
    enum weft_stmt
        next; /* with a timer: the statement that reads it for the lanes this replica serves */
    struct weft_turns_stmts turns; /* with a timer: for passes that follow a full batch */
} scanners[WEFT_SCANNER_COUNT] = {
    [WEFT_SCANNER_INTAKE] = {.info = {.name = "intake",
                                      .interval_us = WEFT_SECOND,
                                      .batch = WEFT_BATCH_MAX,
                                      .batch_max = WEFT_BATCH_MAX,
                                      .timed = true,
                                      .partitioned = true,
                                      .counter = {"processed", "refused", "existing_id"}},
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
                                   .next_due = DUE_LEASE,
                                   .next = WEFT_STMT_NEXT_LEASE,
                                   .turns = {WEFT_STMT_LEASE_LANES, WEFT_STMT_LEASE_TURNS}},
    [WEFT_SCANNER_ATTEMPT_TIMEOUT] = {.info = {.name = "attempt_timeout",
                                               .interval_us = WEFT_SECOND,
                                               .batch = WEFT_BATCH_MAX,
                                               .batch_max = WEFT_BATCH_MAX,
                                               .timed = true,
                                               .partitioned = true,
                                               .takes_leases = true,
                                               .counter = ROWS_COUNTED},
                                      .run = weft_scan_attempt_timeout,
                                      .next_due = DUE_ATTEMPT,
                                      .next = WEFT_STMT_NEXT_ATTEMPT,
                                      .turns = {WEFT_STMT_ATTEMPT_LANES, WEFT_STMT_ATTEMPT_TURNS}},
    [WEFT_SCANNER_DELAYED_PROMOTER] = {.info = {.name = "delayed_promoter",
                                                .interval_us = WEFT_SECOND,
                                                .batch = WEFT_BATCH_MAX,
                                                .batch_max = WEFT_BATCH_MAX,
                                                .timed = true,
                                                .partitioned = true,
                                                .counter = ROWS_COUNTED},
                                       .run = weft_scan_delayed_promoter,
                                       .next_due = DUE_DELAYED,
                                       .next = WEFT_STMT_NEXT_DELAYED,
                                       .turns = {WEFT_STMT_DELAYED_LANES, WEFT_STMT_DELAYED_TURNS}},
    [WEFT_SCANNER_EXECUTION_DEADLINE] = {.info = {.name = "execution_deadline",
                                                  .interval_us = WEFT_SECOND,
                                                  .batch = WEFT_BATCH_MAX,
                                                  .batch_max = WEFT_BATCH_MAX,
                                                  .timed = true,
                                                  .partitioned = true,
                                                  .counter = ROWS_COUNTED},
                                         .run = weft_scan_execution_deadline,
                                         .next_due = DUE_DEADLINE,
                                         .next = WEFT_STMT_NEXT_DEADLINE,
                                         .turns = {WEFT_STMT_DEADLINE_LANES,
                                                   WEFT_STMT_DEADLINE_TURNS}},
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
    [WEFT_SCANNER_RETENTION] = {.info = {.name = "retention",
                                         .interval_us = 60 * WEFT_SECOND,
                                         .batch = 200,
                                         .batch_max = 10 * WEFT_BATCH_MAX,
                                         .partitioned = true,
                                         .counter = {"processed", "attempts", "keys",
                                                     "skipped_locked", "flows"}},
                                .run_alone = weft_retention_run,
                                .next_due = NO_TIMER},
    [WEFT_SCANNER_DEPENDENCY] = {.info = {.name = "dependency",
                                          .interval_us = WEFT_SECOND,
                                          .batch = FLOWS_BATCH,
                                          .batch_max = WEFT_BATCH_MAX,
                                          .timed = true,
                                          .partitioned = true,
                                          .counter = {"scanned", "reconciled", "noop", "errors"}},
                                 .run_alone = weft_dependency_run,
                                 .next_due = NO_TIMER},
    [WEFT_SCANNER_EDGE_CANCEL_DISPATCHER] = {.info = {.name = "edge_cancel_dispatcher",
                                                      .interval_us = WEFT_SECOND,
                                                      .batch = FLOWS_BATCH,
                                                      .batch_max = WEFT_BATCH_MAX,
                                                      .timed = true,
                                                      .partitioned = true,
                                                      .counter = {"dispatched", "orphaned",
                                                                  "skipped_locked", "errors"}},
                                             .run_alone = weft_edge_cancel_dispatcher_run,
                                             .next_due = NO_TIMER},
    [WEFT_SCANNER_EDGE_CANCEL_RECONCILER] = {.info = {.name = "edge_cancel_reconciler",
                                                      .interval_us = 10 * WEFT_SECOND,
                                                      .batch = WEFT_BATCH_MAX,
                                                      .batch_max = WEFT_BATCH_MAX,
                                                      .timed = true,
                                                      .partitioned = true,
                                                      .counter = {"stale_removed",
                                                                  "completed_drain", "no_op"}},
                                             .run_alone = weft_edge_cancel_reconciler_run,
                                             .next_due = NO_TIMER},
    [WEFT_SCANNER_CANCEL_BACKLOG] = {.info = {.name = "cancel_backlog",
                                              .interval_us = WEFT_SECOND,
                                              .batch = FLOWS_BATCH,
                                              .batch_max = WEFT_BATCH_MAX,
                                              .timed = true,
                                              .partitioned = true,
                                              .counter = {"processed", "cancelled", "removed",
                                                          "skipped_locked"}},
                                     .run_alone = weft_cancel_backlog_run,
                                     .next_due = NO_TIMER},
    [WEFT_SCANNER_UNUSED_NAMES] = {.info = {.name = "unused_names",
                                            .interval_us = 10 * WEFT_SECOND,
                                            .batch = 5 * WEFT_BATCH_MAX,
                                            .batch_max = 10 * WEFT_BATCH_MAX,
                                            .counter = {"scanned", "noted", "retired", "removed",
                                                        "wanted_again"}},
                                   .run_alone = weft_unused_names_run,
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

enum weft_scanner weft_scanner_find(const char *name)
{
    size_t i = 0;
    while (i < WEFT_SCANNER_COUNT && strcmp(scanners[i].info.name, name) != 0)
        i++;
    return (enum weft_scanner)i;
}

struct weft_pass_report weft_scan_report(enum weft_scanner scanner)
{
    struct weft_pass_report report = {.next_due_us = WEFT_NEVER};
    while (scanners[scanner].info.counter[report.counter_count]) {
        report.counter[report.counter_count].name =
            scanners[scanner].info.counter[report.counter_count];
        report.counter_count++;
    }
    return report;
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
    struct weft_pass_report named = weft_scan_report(scanner);
    for (size_t i = 0; i < named.counter_count; i++) {
        report->counter[i].name = named.counter[i].name;
        report->counter[i].value = value[i];
    }
    report->counter_count = named.counter_count;
}

void weft_scan_call(const struct weft_scan *scan, enum weft_stmt stmt, struct weft_call *ret_call)
{
    const struct weft_pass_config *config = scan->config;
    weft_call_init(ret_call, scan->tx->arena, stmt, 0);
    struct weft_due_leases_in *in = weft_in_due_leases(ret_call);
    in->now = scan->tx->now_us;
    in->scope = (struct weft_scope_in){.batch = config->batch,
                                       .ns = scan->ns,
                                       .first = config->partition_first,
                                       .last = config->partition_last};
}

enum weft_rc weft_scan_due(struct weft_scan *scan, enum weft_stmt stmt, struct weft_rows *ret_rows,
                           struct weft_err *err)
{
    if (scan->by_lane)
        return weft_scan_in_turns(scan, ret_rows, err);
    struct weft_call call[2];
    struct weft_rows rows[2] = {0};
    weft_scan_call(scan, stmt, &call[0]);
    if (scan->beside)
        call[1] = *scan->beside;
    enum weft_rc rc = weft_tx_run(scan->tx, call, scan->beside ? 2 : 1, rows, err);
    *ret_rows = rows[0];
    scan->beside_rows = rows[1];
    uint32_t plain = scan->turns.plain_passes;
    scan->turns = (struct weft_scan_turns){0};
    if (rc || ret_rows->count == 0)
        return rc;
    bool delayed = stmt == WEFT_STMT_PROMOTE_DUE;
    uint64_t in_sight = delayed ? weft_out_promoted(ret_rows, 0)->seen.value
                                : weft_out_due_leases(ret_rows)->seen.value;
    if (!(delayed ? weft_out_promoted(ret_rows, 0)->id.set : weft_out_live(ret_rows, 0)->id.set))
        ret_rows->count = 0;
    scan->missed = in_sight > ret_rows->count ? in_sight - ret_rows->count : 0;
    scan->turns.on = ret_rows->count == scan->config->batch;
    scan->turns.plain_passes = plain > 0 ? plain - 1 : 0;
    return WEFT_OK;
}

enum weft_rc weft_scan_take(struct weft_scan *scan, enum weft_stmt stmt, struct weft_err *err)
{
    struct weft_rows rows;
    enum weft_rc rc = weft_scan_due(scan, stmt, &rows, err);
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
    scan->report.more = scan->turns.on;
    return scan->changes.count ? weft_change_write(scan->tx, &scan->changes, err) : WEFT_OK;
}

void weft_pass_due(const struct weft_opt_i64 time[WEFT_PASS_TIMES],
                   weft_usec ret_due_us[WEFT_SCANNER_COUNT])
{
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++) {
        ret_due_us[i] = WEFT_NEVER;
        if (scanners[i].next_due != NO_TIMER && time[scanners[i].next_due].set)
            ret_due_us[i] = time[scanners[i].next_due].value;
    }
}

struct pass_call {
    enum weft_scanner scanner;
    int32_t ns;
    struct weft_scan_turns turns; /* as the last pass left it */
    struct weft_scan scan;
    struct weft_pass_config config;
};

/*
 * The end of a pass over due rows: what is left, and the time of the next pass. Rows that are still
 * due after this pass wrote its own are locked by another session; other missed rows were renewed,
 * finished or taken by another session before this pass reached them.
 */
static enum weft_rc finish_rows(struct pass_call *call, struct weft_err *err)
{
    struct weft_scan *scan = &call->scan;
    struct weft_pass_report *report = &scan->report;
    report->counter[ROWS_PROCESSED].value = report->handled;
    report->counter[ROWS_ENDED].value = report->failed;
    if (report->more)
        return WEFT_OK;
    struct weft_call ask;
    struct weft_rows rows = {0};
    weft_scan_call(scan, scanners[call->scanner].next, &ask);
    enum weft_rc rc = weft_tx_run(scan->tx, &ask, 1, &rows, err);
    if (rc)
        return rc;
    const struct weft_next_lease_out *row = weft_out_next_lease(&rows);
    uint64_t left = row->left;
    uint64_t skipped = left < scan->missed ? left : scan->missed;
    report->counter[ROWS_SKIPPED_LOCKED].value = skipped;
    report->counter[ROWS_RECHECKED_ALIVE].value = scan->missed - skipped;
    if (left > 0)
        report->next_due_us = scan->tx->now_us;
    else if (row->due.set)
        report->next_due_us = row->due.value;
    return WEFT_OK;
}

static enum weft_rc pass_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct pass_call *call = context;
    call->scan = (struct weft_scan){.tx = tx,
                                    .config = &call->config,
                                    .ns = call->ns,
                                    .turns = call->turns,
                                    .report = weft_scan_report(call->scanner)};
    if (call->turns.on && call->turns.plain_passes == 0)
        call->scan.by_lane = &scanners[call->scanner].turns;
    enum weft_rc rc = scanners[call->scanner].run(&call->scan, err);
    if (rc || scanners[call->scanner].next_due == NO_TIMER)
        return rc;
    return finish_rows(call, err);
}

/* Checks how a pass is to run and fills in what was left out. */
static enum weft_rc resolve(const struct weft_engine *engine, enum weft_scanner scanner,
                            struct weft_pass_config *config, struct weft_err *err)
{
    const struct weft_scanner_info *info = &scanners[scanner].info;
    if (config->batch > info->batch_max)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "batch", "batch is %u, at most %u",
                               config->batch, info->batch_max);
    if (config->partition_first > config->partition_last)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "partitions",
                               "partitions %u to %u are none", config->partition_first,
                               config->partition_last);
    if (config->batch == 0)
        config->batch = info->batch;
    /* A pass that is one transaction: it says that there is more, and others write in between. */
    if (engine->pool.writers == 1 && scanners[scanner].run && config->batch > BATCH_ALONE)
        config->batch = BATCH_ALONE;
    if (config->partition_last == 0)
        config->partition_last = WEFT_PARTITIONS - 1;
    return WEFT_OK;
}

enum weft_rc weft_engine_pass(struct weft_engine *engine, enum weft_scanner scanner,
                              const struct weft_pass_config *config,
                              struct weft_pass_report *ret_report, struct weft_err *err)
{
    if ((unsigned)scanner >= WEFT_SCANNER_COUNT)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "scanner", "there is no such scanner");
    struct pass_call call = {.scanner = scanner};
    if (config)
        call.config = *config;
    enum weft_rc rc = resolve(engine, scanner, &call.config, err);
    if (rc)
        return rc;
    if (scanner == WEFT_SCANNER_INTAKE) /* several transactions: see there */
        return weft_intake_run(engine, &call.config, ret_report, err);
    if (scanners[scanner].run_alone)
        return scanners[scanner].run_alone(engine, &call.config, ret_report, err);
    if (call.config.ns) {
        rc = weft_find_namespace(engine, call.config.ns, &call.ns, err);
        if (!rc && call.ns == 0) /* it has never had any work */
            *ret_report = weft_scan_report(scanner);
        if (rc || call.ns == 0)
            return rc;
    }
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    if (!call.ns)
        call.turns = weft_turns_read(engine, scanner);
    rc = weft_tx_do(&tx, WEFT_TX_WRITE, pass_body, &call, err);
    if (!rc && !call.ns)
        weft_turns_write(engine, scanner, &call.scan.turns);
    if (!rc) {
        struct weft_commit_effects news = weft_news_new(tx.arena, tx.now_us);
        weft_change_news(&news, &call.scan.changes);
        for (size_t i = 0; i < call.scan.promoted.count; i++)
            weft_news_of(&news, call.scan.promoted.id[i])->ready++;
        for (size_t i = 0; i < call.scan.freed.count; i++)
            weft_news_of(&news, call.scan.freed.id[i])->freed++;
        weft_news_tell(engine, &news);
        *ret_report = call.scan.report;
    }
    weft_arena_free(tx.arena);
    return rc;
}
