/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reports and ends of leases under a budget in two processes: they meet each other, resets, the end
 * of a period and lowered limits, the slow one stopped at each of its statements in turn. Whichever
 * comes first, what is used and reserved is exact, nothing counts twice, a period ends once, and
 * nothing deadlocks.
 */

#include "budgets.h"

#include "engine/limit/budgets.h"

static const struct where in_report[] = {
    {"report-locks", AFTER(BUDGET_LOCK_CHARGED)}, {"report-sums", AFTER(DIMENSIONS_CHARGED)},
    {"report-looks", BEFORE(CHARGES_OF)},         {"report-looked", AFTER(CHARGES_OF)},
    {"report-writes", AFTER(LEDGER_PUT)},         {"report-adds", AFTER(SUMS_ADD)},
    {"report-commits", COMMIT(LEDGER_PUT)},
};
static const struct where in_reset[] = {
    {"reset-locks", AFTER(BUDGET_LOCK)},
    {"reset-begins", BEFORE(BUDGET_BEGIN)},
    {"reset-begun", AFTER(BUDGET_BEGIN)},
    {"reset-commits", COMMIT(BUDGET_BEGIN)},
};
static const struct where in_put[] = {
    {"put-locks", AFTER(BUDGET_LOCK)},         {"put-writes", AFTER(BUDGET_PUT)},
    {"put-dimensions", AFTER(DIMENSIONS_PUT)}, {"put-drops", AFTER(DIMENSIONS_DROP)},
    {"put-commits", COMMIT(BUDGETS_CHANGED)},
};

/* Whether a report was taken or refused with this code. */
static bool took(const struct deed *deed, enum weft_rc refusal)
{
    ok(deed->rc == WEFT_OK || deed->rc == refusal, "%s: the report is recorded or %s: %s",
       deed->name, weft_rc_wire(refusal), weft_rc_wire(deed->rc));
    return deed->rc == WEFT_OK;
}

/* ---- Reports --------------------------------------------------------------------------------- */

static void report_and_end(struct race *race, const struct where *where, bool report_first)
{
    struct weft_claimed lease[2];
    budget_make(race, where->name, false);
    budget_start_two(race, where->name, lease);
    struct deed report = deed_of(race->a, where->name), end = deed_of(race->b, where->name);
    report.what = REPORT;
    report.amount = 20;
    end.what = COMPLETE;
    report.lease = end.lease = lease[0];
    deeds_meet(race, report_first ? &report : &end, report_first ? &end : &report, where);
    is_int(end.rc, WEFT_OK, "%s: the end is not disturbed", where->name);
    bool recorded = took(&report, WEFT_FENCED);
    budget_expect(race, where->name, recorded ? 20 : 0, ESTIMATE);
    deed_do(&report);
    is_int(report.rc, WEFT_FENCED, "%s: behind the end there is no report", where->name);
    budget_expect(race, where->name, recorded ? 20 : 0, ESTIMATE);
}

RACE(report_meets_end)
{
    static const struct where in_end[] = {
        {"end-ends", AFTER(LIVE_END)},
        {"end-commits", COMMIT(LIVE_END)},
        {"settle-locks", AFTER(BUDGET_LOCK_CHARGED)},
        {"settle-settles", BEFORE(SETTLE)},
        {"settle-settled", AFTER(SETTLE)},
        {"settle-commits", COMMIT(SETTLE)},
    };
    for (size_t i = 0; i < WEFT_LEN(in_report); i++)
        report_and_end(race, &in_report[i], true);
    for (size_t i = 0; i < WEFT_LEN(in_end); i++)
        report_and_end(race, &in_end[i], false);
    race_no_deadlock(race);
}

/* A report counts in the old period or in the new one, and a later one adds the difference. */
static void report_and_reset(struct race *race, const struct where *where, bool report_first)
{
    struct weft_claimed lease[2];
    budget_make(race, where->name, false);
    budget_start_two(race, where->name, lease);
    struct deed report = deed_of(race->a, where->name), reset = deed_of(race->b, where->name);
    report.what = REPORT;
    report.lease = lease[0];
    report.amount = 20;
    reset.what = RESET;
    deeds_meet(race, report_first ? &report : &reset, report_first ? &reset : &report, where);
    is_int(reset.rc, WEFT_OK, "%s: the reset succeeds", where->name);
    is_int(report.rc, WEFT_OK, "%s: the report is recorded", where->name);
    int64_t used = budget_now(race, where->name).dimension->used;
    ok(used == 0 || used == 20, "%s: in the one period or the other: %lld", where->name,
       (long long)used);
    budget_expect(race, where->name, used, 40);
    report.amount = 32;
    deed_do(&report);
    budget_expect(race, where->name, used + 12, ESTIMATE);
}

RACE(report_meets_reset)
{
    for (size_t i = 0; i < WEFT_LEN(in_report); i++)
        report_and_reset(race, &in_report[i], true);
    for (size_t i = 0; i < WEFT_LEN(in_reset); i++)
        report_and_reset(race, &in_reset[i], false);
    race_no_deadlock(race);
}

/* How often the period has ended; -1: this store does not say. */
static int64_t periods(struct race *race, const char *name)
{
    return on_pg() ? raw_int(&race->place, race->raw,
                             "SELECT period - 1 FROM weft.budget WHERE name = '%s'", name)
                   : -1;
}

/* A sweep that finds nothing to remove does not forget what a reset is about to leave behind. */
static void reset_and_sweep(struct race *race, const struct where *where, bool reset_first)
{
    struct weft_claimed lease[2];
    budget_make(race, where->name, false);
    struct deed reset = deed_of(race->a, where->name), scan = deed_of(race->b, where->name);
    reset.what = RESET;
    scan.what = SCAN;
    deed_do(&reset); /* from here on the dimension is to be swept */
    budget_start_two(race, where->name, lease);
    for (size_t i = 0; i < 2; i++) {
        struct deed end = deed_of(race->b, where->name);
        end.what = COMPLETE;
        end.lease = lease[i];
        deed_do(&end);
    }
    deeds_meet(race, reset_first ? &reset : &scan, reset_first ? &scan : &reset, where);
    ok(reset.rc == WEFT_OK && scan.rc == WEFT_OK, "%s: both succeed: %s %s", where->name,
       reset.err.text, scan.err.text);
    budget_expect(race, where->name, 0, 0); /* and a sweep looks for all that is left */
    uint64_t removed = counter_of(&scan.pass, "removed");
    deed_do(&scan);
    is_int(removed + counter_of(&scan.pass, "removed"), 2, "%s: both rows are removed then",
           where->name);
}

RACE(reset_meets_sweep)
{
    static const struct where in_sweep[] = {
        {"sweep-sweeps", BEFORE(LEDGER_SWEEP)},
        {"sweep-swept", AFTER(LEDGER_SWEEP)},
        {"sweep-commits", COMMIT(LEDGER_SWEEP)},
    };
    for (size_t i = 0; i < WEFT_LEN(in_reset); i++)
        reset_and_sweep(race, &in_reset[i], true);
    for (size_t i = 0; i < WEFT_LEN(in_sweep); i++)
        reset_and_sweep(race, &in_sweep[i], false);
    race_no_deadlock(race);
}

/* The period is over: whichever of the two comes first ends it, once. */
static void over_and(struct race *race, const struct where *where, int slow_is, int fast_is)
{
    struct weft_claimed lease[2];
    budget_make(race, where->name, false);
    budget_start_two(race, where->name, lease);
    struct deed before = deed_of(race->b, where->name);
    before.what = REPORT;
    before.lease = lease[0];
    before.amount = 70;
    deed_do(&before);
    race_forward(race, MINUTE_MS);
    struct deed deed[2] = {deed_of(race->a, where->name), deed_of(race->b, where->name)};
    for (size_t i = 0; i < 2; i++) {
        deed[i].what = i == 0 ? slow_is : fast_is;
        deed[i].lease = lease[i];
        deed[i].amount = 90; /* 20 more of the first lease; all of it by the second */
    }
    deeds_meet(race, &deed[0], &deed[1], where);
    ok(deed[0].rc == WEFT_OK && deed[1].rc == WEFT_OK, "%s: both succeed: %s, %s", where->name,
       deed[0].err.text, deed[1].err.text);
    struct deed last = deed_of(race->b, where->name);
    last.what = SCAN;
    deed_do(&last);
    if (on_pg())
        is_int(periods(race, where->name), 1, "%s: the period has ended once", where->name);
    int64_t used = 0, reserved = ESTIMATE;
    for (size_t i = 0; i < 2; i++)
        if (deed[i].what == REPORT) {
            used += i == 0 ? 20 : 90;
            reserved -= i == 0 ? 0 : ESTIMATE;
        } else if (deed[i].what == CLAIM) {
            reserved += ESTIMATE * (int64_t)deed[i].count;
        }
    budget_expect(race, where->name, used, reserved);
}

RACE(a_period_ends_once)
{
    static const struct where scan_report[] = {
        {"over-scan-locks", AFTER(BUDGET_LOCK_DUE)},
        {"over-scan-begun", AFTER(BUDGET_BEGIN)},
        {"over-scan-commits", COMMIT(BUDGET_BEGIN)},
    };
    static const struct where scan_claim[] = {
        {"over-scan-locks-c", AFTER(BUDGET_LOCK_DUE)},
        {"over-scan-begun-c", AFTER(BUDGET_BEGIN)},
        {"over-scan-commits-c", COMMIT(BUDGET_BEGIN)},
    };
    static const struct where report_scan[] = {
        {"over-report-locks", AFTER(BUDGET_LOCK_CHARGED)},
        {"over-report-begun", AFTER(BUDGET_BEGIN)},
        {"over-report-commits", COMMIT(BUDGET_BEGIN)},
    };
    static const struct where claim_report[] = {
        {"over-claim-locks", AFTER(BUDGET_LOCK)},
        {"over-claim-begun", AFTER(BUDGET_BEGIN)},
        {"over-claim-commits", COMMIT(BUDGET_BEGIN)},
    };
    static const struct where scan_scan[] = {
        {"over-twice-locks", AFTER(BUDGET_LOCK_DUE)},
        {"over-twice-begun", AFTER(BUDGET_BEGIN)},
        {"over-twice-commits", COMMIT(BUDGET_BEGIN)},
    };
    for (size_t i = 0; i < 3; i++) {
        over_and(race, &scan_report[i], SCAN, REPORT);
        over_and(race, &scan_claim[i], SCAN, CLAIM);
        over_and(race, &report_scan[i], REPORT, SCAN);
        over_and(race, &claim_report[i], CLAIM, REPORT);
        over_and(race, &scan_scan[i], SCAN, SCAN);
    }
    race_no_deadlock(race);
}

/* The report is within the old limit and beyond the new one. */
static void report_and_put(struct race *race, const struct where *where, bool report_first)
{
    struct weft_claimed lease[2];
    budget_make(race, where->name, false);
    budget_start_two(race, where->name, lease);
    struct deed report = deed_of(race->a, where->name), lower = deed_of(race->b, where->name);
    report.what = REPORT;
    report.lease = lease[0];
    report.amount = 50;
    lower.what = PUT;
    lower.amount = 40;
    deeds_meet(race, report_first ? &report : &lower, report_first ? &lower : &report, where);
    is_int(lower.rc, WEFT_OK, "%s: the limit is lowered", where->name);
    bool recorded = took(&report, WEFT_BUDGET_EXCEEDED);
    budget_expect(race, where->name, recorded ? 50 : 0, recorded ? ESTIMATE : 2 * ESTIMATE);
    struct weft_budget now = budget_now(race, where->name);
    ok(now.state == WEFT_BUDGET_HARD && now.breaches == 1, "%s: the limit is broken, once",
       where->name);
}

RACE(report_meets_a_lowered_limit)
{
    for (size_t i = 0; i < WEFT_LEN(in_report); i++)
        report_and_put(race, &in_report[i], true);
    for (size_t i = 0; i < WEFT_LEN(in_put); i++)
        report_and_put(race, &in_put[i], false);
    race_no_deadlock(race);
}

/* Two reports of one lease, the later one larger. */
RACE(two_reports_of_one_lease)
{
    for (size_t i = 0; i < WEFT_LEN(in_report); i++) {
        const char *name = in_report[i].name;
        struct weft_claimed lease[2];
        budget_make(race, name, false);
        budget_start_two(race, name, lease);
        struct deed slow = deed_of(race->a, name), fast = deed_of(race->b, name);
        slow.what = fast.what = REPORT;
        slow.lease = fast.lease = lease[0];
        slow.amount = 20;
        fast.amount = 35;
        deeds_meet(race, &slow, &fast, &in_report[i]);
        ok(slow.rc == WEFT_OK && fast.rc == WEFT_OK, "%s: both are taken", name);
        budget_expect(race, name, 35, ESTIMATE);
    }
    race_no_deadlock(race);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

RACE(two_replicas_settle_one_lease)
{
    static const struct where where[] = {
        {"settle-locks", AFTER(BUDGET_LOCK_CHARGED)},
        {"settle-settles", BEFORE(SETTLE)},
        {"settle-settled", AFTER(SETTLE)},
        {"settle-commits", COMMIT(SETTLE)},
    };
    for (size_t i = 0; i < WEFT_LEN(where); i++) {
        const char *name = where[i].name;
        struct weft_claimed lease[2];
        budget_make(race, name, false);
        budget_start_two(race, name, lease);
        struct deed end = deed_of(race->b, name);
        end.what = COMPLETE;
        end.lease = lease[0];
        budgets_lose_errands(race, true);
        deed_do(&end);
        budgets_lose_errands(race, false);
        struct deed slow = deed_of(race->a, name), fast = deed_of(race->b, name);
        slow.what = fast.what = SETTLE;
        slow.lease = fast.lease = lease[0];
        deeds_meet(race, &slow, &fast, &where[i]);
        is_int(slow.rc, WEFT_OK, "%s: the first settles", name);
        is_int(slow.count + fast.count, 1, "%s: the lease is settled once", name);
        budget_expect(race, name, 0, ESTIMATE);
    }
    race_no_deadlock(race);
}

/* The limit is broken, and what runs is cancelled while one of it completes. */
static void cancel_and_end(struct race *race, const struct where *where, bool cancel_first)
{
    struct weft_claimed lease[2];
    budget_make(race, where->name, true);
    budget_start_two(race, where->name, lease);
    struct deed breach = deed_of(race->b, where->name);
    breach.what = REPORT;
    breach.lease = lease[0];
    breach.amount = HARD + 1;
    budgets_lose_errands(race, true);
    deed_do(&breach);
    budgets_lose_errands(race, false);
    is_int(breach.rc, WEFT_BUDGET_EXCEEDED, "%s: the limit is broken", where->name);
    struct deed cancel = deed_of(race->a, where->name), end = deed_of(race->b, where->name);
    cancel.what = CANCEL;
    end.what = COMPLETE;
    end.lease = lease[1];
    deeds_meet(race, cancel_first ? &cancel : &end, cancel_first ? &end : &cancel, where);
    is_int(cancel.rc, WEFT_OK, "%s: the cancel succeeds", where->name);
    bool completed = end.rc == WEFT_OK;
    ok(completed || end.rc == WEFT_FENCED, "%s: it completes or is cancelled: %s", where->name,
       weft_rc_wire(end.rc));
    is_int(state_at(race->b, &lease[0].id), WEFT_STATE_CANCELLED, "%s: the other is cancelled",
           where->name);
    is_int(state_at(race->b, &lease[1].id), completed ? WEFT_STATE_SUCCEEDED : WEFT_STATE_CANCELLED,
           "%s: it is what it was told", where->name);
    struct deed last = deed_of(race->b, where->name); /* for an errand that found a lock held */
    last.what = SCAN;
    deed_do(&last);
    budget_expect(race, where->name, 0, 0);
    is_int(budget_now(race, where->name).state, WEFT_BUDGET_HARD, "%s: and it is closed",
           where->name);
}

RACE(cancel_meets_completion)
{
    static const struct where in_cancel[] = {
        {"cancel-finds", AFTER(CHARGES_RUNNING)}, {"cancel-locks", AFTER(LIVE_LOCK)},
        {"cancel-ends", AFTER(LIVE_END)},         {"cancel-commits", COMMIT(LIVE_END)},
        {"cancel-settles", AFTER(SETTLE)},        {"cancel-done", COMMIT(CANCELLING_DONE)},
    };
    static const struct where in_end[] = {
        {"end-ends", AFTER(LIVE_END)},
        {"end-commits", COMMIT(LIVE_END)},
        {"end-settles", AFTER(SETTLE)},
    };
    for (size_t i = 0; i < WEFT_LEN(in_cancel); i++)
        cancel_and_end(race, &in_cancel[i], true);
    for (size_t i = 0; i < WEFT_LEN(in_end); i++)
        cancel_and_end(race, &in_end[i], false);
    race_no_deadlock(race);
}
