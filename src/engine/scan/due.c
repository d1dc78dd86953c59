/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scanners over due rows of `live`: leases, attempts, deadlines, delays, suspensions. A pass is
 * one transaction over at most `batch` rows: it takes due rows, decides about each, and writes
 * them.
 *
 * Turns between namespaces, for passes that cannot take all due rows:
 *
 * A pass takes due rows in the order of time, over all namespaces. That is right while everything
 * due fits into a batch. When it does not, a namespace with very many due rows would keep the
 * others waiting until all of its own are done. So the pass after a full batch reads which lanes
 * have due rows, divides the batch between their namespaces (core/share.h) and takes the oldest
 * rows of each lane. This continues until a pass finds no more rows to take; then passes go by time
 * again. As long as batches are not full, none of these statements runs.
 *
 * A look reads at most LOOKED lanes for each row of the batch; the next look continues behind them.
 * A round ends when a look reaches the last lane. If every lane of the round gave fewer rows than
 * its share, no row is left that a pass could take: a row that is still due is locked by another
 * session, or became due since, and finish_rows() finds it. Otherwise the next round begins.
 *
 * A row that becomes due waits for the running pass and is handled by the next one. So passes are
 * shorter while recent looks have seen several namespaces. A single namespace gets whole batches,
 * which cost less per row, and only every fifth pass looks: another namespace whose rows become due
 * waits for four batches at most.
 *
 * The state is only a hint in this process: if it is lost or overwritten (two passes of a scanner
 * at the same time), that costs a useless look, or one batch in the order of time, because any pass
 * may follow any other. Replicas divide the rows by SKIP LOCKED in all cases.
 */

#include "base/arena.h"
#include "base/id.h"
#include "base/str.h"
#include "core/policy.h"
#include "core/share.h"
#include "core/state.h"
#include "engine/engine_state.h"
#include "engine/job/change.h"
#include "engine/scan/scan.h"

#include <stdlib.h>

enum {
    LOOKED = 4,  /* each lane costs two probes of an index */
    PARTS = 4,   /* of a batch, where several namespaces have due rows */
    SHORT = 100, /* passes, after the last look that saw several */
    PLAIN = 4,   /* passes, after a look over all lanes that saw one namespace */
};

/* The order of the table in pass.c. */
enum { PROCESSED, ENDED, SKIPPED_LOCKED, RECHECKED_ALIVE };

struct due {
    struct weft_pass *pass;
    const struct due_scanner *scanner;
    struct weft_scan_turns before; /* as the last pass left them */
    /* Of the last try: */
    struct weft_tx *tx;
    struct weft_scan_turns turns; /* how the next pass goes on */
    uint64_t missed;              /* rows that were due in the snapshot, but not taken */
    bool more;
    struct weft_changes changes;
    struct weft_rows promoted;    /* delayed rows, which the statement itself made ready */
    struct weft_rows drained;     /* `draining` rows whose lease time has run out */
    struct weft_rows suspensions; /* of the rows that timed out */
    size_t suspension_next;       /* where find_suspension() begins */
    struct weft_id *escalated;    /* of these, left to an operator */
    size_t escalations;
};

/* ---- What becomes of a due row --------------------------------------------------------------- */

/*
 * Attempts that took too long. A timeout uses an attempt like a failure: the execution waits for
 * its backoff, or ends when no attempt is left. The worker is fenced from here on.
 */
static void time_out(struct due *due, struct weft_change *change)
{
    struct weft_fault_report report = {
        .how = WEFT_ENDED_TIMED_OUT,
        .error_class = "attempt_timeout",
        .now_us = due->tx->now_us,
    };
    weft_random(&report.random, sizeof(report.random));
    struct weft_event event = weft_retry_decide(
        weft_find_rules(due->tx->engine, change->before.policy), &change->before, &report);
    change->by = "attempt_timeout";
    change->error_class = report.error_class;
    change->error_message = "the attempt took longer than its policy allows";
    (void)weft_change_step(change, &event); /* running rows only: the statements say so */
}

/*
 * Leases that ran out: the worker died without a result. The execution is ready again under the
 * same attempt number; only the count of lost leases grows, and past its cap the execution is a
 * poison pill and fails with lost_too_often. Leases that ran out while no server accepted renewals
 * are not counted.
 */
static void lose_lease(struct due *due, struct weft_change *change)
{
    if (weft_attempt_overdue(&change->before, due->tx->now_us)) {
        time_out(due, change);
        return;
    }
    const struct weft_rules *rules = weft_find_rules(due->tx->engine, change->before.policy);
    struct weft_event event =
        weft_lost_decide(rules, &change->before, due->pass->config->forgive_us);
    change->by = "lease_expiry";
    if (weft_change_step(change, &event) && event.kind == WEFT_EVENT_FAIL) {
        change->error_class = "lost_too_often";
        change->error_message = "its lease ran out too often: the workers that took it died";
    }
}

/* Executions whose deadline passed end as expired, whatever they were doing. */
static void expire(struct due *due, struct weft_change *change)
{
    (void)due;
    change->by = "execution_deadline";
    change->reason = "its deadline passed";
    (void)weft_change_step(change, &(struct weft_event){.kind = WEFT_EVENT_EXPIRE});
}

/*
 * Finds the suspension of a row; NULL: it has none, which invariant_check reports. The suspensions
 * come in the order in which they were asked for, so the one behind the last is tried first.
 */
static const struct weft_suspension_read_out *find_suspension(struct due *due,
                                                              const struct weft_id *id)
{
    const struct weft_suspension_read_out *row = weft_out_suspension_read(&due->suspensions);
    size_t count = due->suspensions.count;
    for (size_t i = 0; i < count; i++) {
        size_t at = (due->suspension_next + i) % count;
        if (weft_id_cmp(&row[at].id, id) == 0) {
            due->suspension_next = at + 1;
            return &row[at];
        }
    }
    return NULL;
}

/* A suspension timed out; when the worker suspended, it chose what happens to the execution. */
static void end_suspension(struct due *due, struct weft_change *change)
{
    static const enum weft_event_kind kind[] = {
        [WEFT_ON_TIMEOUT_FAIL] = WEFT_EVENT_FAIL,
        [WEFT_ON_TIMEOUT_CANCEL] = WEFT_EVENT_CANCEL,
        [WEFT_ON_TIMEOUT_EXPIRE] = WEFT_EVENT_EXPIRE,
        [WEFT_ON_TIMEOUT_RESUME] = WEFT_EVENT_RESUME,
        [WEFT_ON_TIMEOUT_ESCALATE] = WEFT_EVENT_ESCALATE,
    };
    const struct weft_suspension_read_out *row = find_suspension(due, &change->before.id);
    unsigned what = row && (unsigned)row->on_timeout < WEFT_LEN(kind) ? (unsigned)row->on_timeout
                                                                      : WEFT_ON_TIMEOUT_FAIL;
    struct weft_event event = {.kind = kind[what], .how = WEFT_ENDED_SUSPENSION_TIMEOUT};
    if (event.kind == WEFT_EVENT_RESUME && row->delay) {
        event.kind = WEFT_EVENT_RESUME_LATER;
        event.due_us = due->tx->now_us + row->delay;
    }
    change->by = "suspension_timeout";
    change->resumed = WEFT_RESUMED_BY_TIMEOUT;
    if (event.kind == WEFT_EVENT_FAIL) {
        change->error_class = "suspension_timeout";
        change->error_message = "what it waited for did not come in time";
    } else if (event.kind != WEFT_EVENT_RESUME && event.kind != WEFT_EVENT_RESUME_LATER) {
        change->reason = "suspension_timeout";
    }
    (void)weft_change_step(change, &event); /* suspended rows only: the statements say so */
    if (event.kind == WEFT_EVENT_ESCALATE)
        due->escalated[due->escalations++] = change->before.id;
}

/* The suspensions of the rows that a pass has locked. */
static enum weft_rc read_suspensions(struct due *due, struct weft_err *err)
{
    struct weft_call call;
    size_t count = due->changes.count;
    struct weft_suspension_read_in *in = weft_call_suspension_read(&call, due->tx->arena, count);
    due->escalated = weft_new_array(due->tx->arena, struct weft_id, count + 1);
    due->escalations = 0;
    for (size_t i = 0; i < count; i++)
        in->row[i].id = due->changes.change[i].before.id;
    return weft_tx_run(due->tx, &call, 1, &due->suspensions, err);
}

static enum weft_rc mark_escalated(struct due *due, struct weft_err *err)
{
    struct weft_call call;
    struct weft_suspension_escalate_in *in =
        weft_call_suspension_escalate(&call, due->tx->arena, due->escalations);
    in->at = due->tx->now_us;
    for (size_t i = 0; i < due->escalations; i++)
        in->row[i].id = due->escalated[i];
    return due->escalations ? weft_tx_run(due->tx, &call, 1, NULL, err) : WEFT_OK;
}

/* In the order of the times in the poll's row; the last has its time in another row. */
static const struct due_scanner {
    enum weft_scanner scanner;
    void (*decide)(struct due *due, struct weft_change *change); /* NULL: the statement changes */
    bool needs_rules;                                            /* to decide */
    enum weft_stmt take;
    enum weft_stmt next;        /* when the next row is due */
    enum weft_stmt lanes, turn; /* for passes that take turns: turns.sql */
} scanners[WEFT_PASS_TIMES + 1] = {
    {WEFT_SCANNER_LEASE_EXPIRY, lose_lease, true, WEFT_STMT_DUE_LEASES, WEFT_STMT_NEXT_LEASE,
     WEFT_STMT_LEASE_LANES, WEFT_STMT_LEASE_TURNS},
    {WEFT_SCANNER_ATTEMPT_TIMEOUT, time_out, true, WEFT_STMT_DUE_ATTEMPTS, WEFT_STMT_NEXT_ATTEMPT,
     WEFT_STMT_ATTEMPT_LANES, WEFT_STMT_ATTEMPT_TURNS},
    {WEFT_SCANNER_EXECUTION_DEADLINE, expire, false, WEFT_STMT_DUE_DEADLINES,
     WEFT_STMT_NEXT_DEADLINE, WEFT_STMT_DEADLINE_LANES, WEFT_STMT_DEADLINE_TURNS},
    {WEFT_SCANNER_DELAYED_PROMOTER, NULL, false, WEFT_STMT_PROMOTE_DUE, WEFT_STMT_NEXT_DELAYED,
     WEFT_STMT_DELAYED_LANES, WEFT_STMT_DELAYED_TURNS},
    {WEFT_SCANNER_SUSPENSION_TIMEOUT, end_suspension, false, WEFT_STMT_DUE_SUSPENSIONS,
     WEFT_STMT_NEXT_SUSPENSION, WEFT_STMT_SUSPENSION_LANES, WEFT_STMT_SUSPENSION_TURNS},
};

void weft_pass_due(const struct weft_opt_i64 time[WEFT_PASS_TIMES],
                   weft_usec ret_due_us[WEFT_SCANNER_COUNT])
{
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        ret_due_us[i] = WEFT_NEVER;
    for (size_t i = 0; i < WEFT_PASS_TIMES; i++)
        if (time[i].set)
            ret_due_us[scanners[i].scanner] = time[i].value;
}

/* ---- Taking due rows ------------------------------------------------------------------------- */

/* A call of a statement of pass.sql: all of them have the same parameters. */
static void put_call(const struct due *due, enum weft_stmt stmt, struct weft_call *ret_call)
{
    weft_call_init(ret_call, due->tx->arena, stmt, 0);
    *weft_in_due_leases(ret_call) =
        (struct weft_due_leases_in){.now = due->tx->now_us, .scope = weft_pass_scope(due->pass)};
}

/* Runs call[0]; the pass over leases also removes `draining` rows in the same round trip. */
static enum weft_rc run_first(struct due *due, struct weft_call call[2], struct weft_rows *ret_rows,
                              struct weft_err *err)
{
    struct weft_rows rows[2] = {0};
    bool leases = due->scanner->scanner == WEFT_SCANNER_LEASE_EXPIRY;
    if (leases)
        put_call(due, WEFT_STMT_DRAINING_EXPIRE, &call[1]);
    enum weft_rc rc = weft_tx_run(due->tx, call, leases ? 2 : 1, rows, err);
    *ret_rows = rows[0];
    due->drained = rows[1];
    return rc;
}

/* The lanes with due rows behind turns.after, which becomes the place to go on from. */
static enum weft_rc look(struct due *due, struct weft_lane_share **ret_lane, size_t *ret_count,
                         struct weft_err *err)
{
    struct weft_call call[2];
    struct weft_rows rows;
    weft_call_init(&call[0], due->tx->arena, due->scanner->lanes, 0);
    *weft_in_lease_lanes(&call[0]) =
        (struct weft_lease_lanes_in){.now = due->tx->now_us,
                                     .after = due->turns.after,
                                     .most = (int64_t)LOOKED * due->pass->config->batch};
    enum weft_rc rc = run_first(due, call, &rows, err);
    if (rc)
        return rc;
    const struct weft_lease_lanes_out *row = weft_out_lease_lanes(&rows);
    due->turns.after = row[0].next;
    struct weft_lane_share *lane =
        weft_new_array(due->tx->arena, struct weft_lane_share, rows.count + 1);
    *ret_count = 0;
    for (size_t i = 0; i < rows.count; i++)
        if (row[i].lane.set)
            lane[(*ret_count)++] =
                (struct weft_lane_share){.ns = row[i].namespace, .lane = row[i].lane.value};
    *ret_lane = lane;
    return WEFT_OK;
}

/* Whether every lane gave fewer rows than its share. */
static bool all_gave_less(struct weft_lane_share *lane, size_t count, const struct weft_rows *rows)
{
    bool delayed = rows->stmt == WEFT_STMT_DELAYED_TURNS;
    qsort(lane, count, sizeof(*lane), weft_i32_order);
    for (size_t i = 0; i < rows->count; i++) {
        int32_t key = delayed ? weft_out_delayed_turns(rows)[i].lane : weft_out_live(rows, i)->lane;
        struct weft_lane_share *found = bsearch(&key, lane, count, sizeof(*lane), weft_i32_order);
        if (found && found->share > 0)
            found->share--;
    }
    for (size_t i = 0; i < count; i++)
        if (lane[i].share == 0)
            return false;
    return true;
}

static enum weft_rc take_shares(struct due *due, const struct weft_lane_share *lane, size_t count,
                                struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_call call;
    size_t lanes = 0, row = 0;
    for (size_t i = 0; i < count; i++)
        lanes += lane[i].share > 0;
    weft_call_init(&call, due->tx->arena, due->scanner->turn, lanes);
    struct weft_lease_turns_in *in = weft_in_lease_turns(&call);
    in->now = due->tx->now_us;
    in->first = due->pass->config->partition_first;
    in->last = due->pass->config->partition_last;
    for (size_t i = 0; i < count; i++)
        if (lane[i].share > 0) {
            in->row[row].lane = lane[i].lane;
            in->row[row++].share = lane[i].share;
        }
    return weft_tx_run(due->tx, &call, 1, ret_rows, err);
}
/* How many rows this pass takes; notes whether the look saw several namespaces. */
static uint32_t size_of(struct due *due, const struct weft_lane_share *lane, size_t count)
{
    bool several = false;
    for (size_t i = 1; i < count; i++)
        several |= lane[i].ns != lane[0].ns;
    if (several)
        due->turns.short_passes = SHORT;
    else if (due->turns.short_passes > 0)
        due->turns.short_passes--;
    uint32_t part = due->pass->config->batch / PARTS;
    return due->turns.short_passes == 0 || part == 0 ? due->pass->config->batch : part;
}

static enum weft_rc take_in_turns(struct due *due, struct weft_rows *ret_rows, struct weft_err *err)
{
    struct weft_lane_share *lane = NULL;
    size_t count = 0;
    uint64_t random;
    bool whole = due->turns.after == 0;
    if (whole)
        due->turns.left = false;
    *ret_rows = (struct weft_rows){0};
    enum weft_rc rc = look(due, &lane, &count, err);
    weft_random(&random, sizeof(random));
    if (!rc && count > 0) {
        weft_share_lanes(lane, count, size_of(due, lane, count), random);
        rc = take_shares(due, lane, count, ret_rows, err);
    }
    if (rc)
        return rc;
    if (!all_gave_less(lane, count, ret_rows))
        due->turns.left = true;
    due->turns.on = due->turns.left || due->turns.after != 0;
    if (whole && due->turns.after == 0 && due->turns.short_passes == 0)
        due->turns.plain_passes = PLAIN;
    return WEFT_OK;
}

/*
 * Takes due rows. Removes the row that only counts the due rows of the snapshot, and notes in
 * due->missed how many of these were not taken.
 */
static enum weft_rc take_due(struct due *due, struct weft_rows *ret_rows, struct weft_err *err)
{
    if (due->before.on && due->before.plain_passes == 0)
        return take_in_turns(due, ret_rows, err);
    struct weft_call call[2];
    put_call(due, due->scanner->take, &call[0]);
    enum weft_rc rc = run_first(due, call, ret_rows, err);
    uint32_t plain = due->before.plain_passes;
    due->turns = (struct weft_scan_turns){0};
    if (rc || ret_rows->count == 0)
        return rc;
    bool delayed = due->scanner->take == WEFT_STMT_PROMOTE_DUE;
    uint64_t in_sight = delayed ? weft_out_promoted(ret_rows, 0)->seen.value
                                : weft_out_due_leases(ret_rows)->seen.value;
    if (!(delayed ? weft_out_promoted(ret_rows, 0)->id.set : weft_out_live(ret_rows, 0)->id.set))
        ret_rows->count = 0;
    due->missed = in_sight > ret_rows->count ? in_sight - ret_rows->count : 0;
    due->turns.on = ret_rows->count == due->pass->config->batch;
    due->turns.plain_passes = plain > 0 ? plain - 1 : 0;
    return WEFT_OK;
}

/* ---- The pass -------------------------------------------------------------------------------- */

static enum weft_rc decide_rows(struct due *due, const struct weft_rows *rows, struct weft_err *err)
{
    struct weft_pass *pass = due->pass;
    enum weft_rc rc = WEFT_OK;
    due->changes = weft_change_rows(rows, due->tx->arena);
    bool waiting = due->scanner->scanner == WEFT_SCANNER_SUSPENSION_TIMEOUT;
    if (due->scanner->needs_rules)
        rc = weft_change_rules(due->tx, &due->changes, err);
    if (waiting && due->changes.count > 0)
        rc = read_suspensions(due, err);
    for (size_t i = 0; i < due->changes.count && !rc; i++) {
        struct weft_change *change = &due->changes.change[i];
        due->scanner->decide(due, change);
        pass->report.handled += change->apply;
        pass->report.failed += change->apply && !weft_state_living(change->step.after.state);
    }
    if (!rc && due->changes.count > 0)
        rc = weft_change_write(due->tx, &due->changes, err);
    return rc || !waiting ? rc : mark_escalated(due, err);
}

/*
 * The end of a pass: counts rows that are left, and sets the time of the next pass. Rows that are
 * still due after this pass wrote its own are locked by another session; other missed rows were
 * renewed, finished or taken by another session before this pass reached them.
 */
static enum weft_rc finish_rows(struct due *due, struct weft_err *err)
{
    struct weft_pass *pass = due->pass;
    pass->count[PROCESSED] = pass->report.handled;
    pass->count[ENDED] = pass->report.failed;
    pass->count[SKIPPED_LOCKED] = pass->count[RECHECKED_ALIVE] = 0; /* of an earlier try */
    if (pass->report.more)
        return WEFT_OK;
    struct weft_call ask;
    struct weft_rows rows = {0};
    put_call(due, due->scanner->next, &ask);
    enum weft_rc rc = weft_tx_run(due->tx, &ask, 1, &rows, err);
    if (rc)
        return rc;
    const struct weft_next_lease_out *row = weft_out_next_lease(&rows);
    uint64_t left = row->left;
    pass->count[SKIPPED_LOCKED] = left < due->missed ? left : due->missed;
    pass->count[RECHECKED_ALIVE] = due->missed - pass->count[SKIPPED_LOCKED];
    if (left > 0)
        pass->report.next_due_us = due->tx->now_us;
    else if (row->due.set)
        pass->report.next_due_us = row->due.value;
    return WEFT_OK;
}

static enum weft_rc due_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct due *due = context;
    struct weft_pass *pass = due->pass;
    struct weft_rows rows = {0};
    pass->report = (struct weft_pass_report){.next_due_us = WEFT_NEVER};
    *due = (struct due){.pass = pass,
                        .scanner = due->scanner,
                        .before = due->before,
                        .turns = due->before,
                        .tx = tx};
    enum weft_rc rc = take_due(due, &rows, err);
    if (!rc && due->scanner->decide) {
        rc = decide_rows(due, &rows, err);
    } else if (!rc) {
        due->promoted = rows;
        pass->report.handled = rows.count;
    }
    pass->report.more = due->turns.on || due->drained.count == pass->config->batch;
    return rc ? rc : finish_rows(due, err);
}

/* The position of a scanner over all namespaces: reads it, or writes it if `set` is not NULL. */
static struct weft_scan_turns turns_of(const struct weft_pass *pass,
                                       const struct weft_scan_turns *set)
{
    struct weft_engine *engine = pass->engine;
    pthread_mutex_lock(&engine->sample_lock);
    if (set)
        engine->turns[pass->scanner] = *set;
    struct weft_scan_turns turns = engine->turns[pass->scanner];
    pthread_mutex_unlock(&engine->sample_lock);
    return turns;
}

enum weft_rc weft_due_run(struct weft_pass *pass, struct weft_err *err)
{
    struct due due = {.pass = pass, .scanner = scanners};
    struct weft_tx tx = {.engine = pass->engine, .arena = pass->arena};
    while (due.scanner->scanner != pass->scanner)
        due.scanner++;
    if (pass->ns < 0) /* it has never had any work */
        return WEFT_OK;
    if (pass->ns == 0)
        due.before = turns_of(pass, NULL);
    enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, due_body, &due, err);
    if (rc)
        return rc;
    if (pass->ns == 0)
        (void)turns_of(pass, &due.turns);
    struct weft_commit_effects news = weft_news_new(tx.arena, tx.now_us);
    weft_change_news(&news, &due.changes);
    for (size_t i = 0; i < due.promoted.count; i++) {
        const char *gate = due.promoted.stmt == WEFT_STMT_DELAYED_TURNS
                               ? weft_out_delayed_turns(&due.promoted)[i].gate
                               : weft_out_promote_due(&due.promoted)[i].gate;
        if (gate)
            weft_news_gate(&news, gate);
        else
            weft_news_of(&news, weft_out_promoted(&due.promoted, i)->queue)->ready++;
    }
    /* The slots of leases that others ended, and that would have run out by now, are free. */
    for (size_t i = 0; i < due.drained.count; i++) {
        const struct weft_draining_expire_out *row = &weft_out_draining_expire(&due.drained)[i];
        weft_news_of(&news, row->queue)->freed++;
        if (row->gate)
            weft_news_gate(&news, row->gate);
    }
    weft_news_tell(pass->engine, &news);
    return WEFT_OK;
}
