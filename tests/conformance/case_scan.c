/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The passes over rows that time moves, all under the same questions: nothing due, the very moment,
 * full batches, rows that ended, a store that fails halfway, an outage that is forgiven.
 */

#include "conformance.h"

#include "base/clock.h"
#include "engine/admin/workers.h"
#include "engine/engine.h"
#include "engine/job/control.h"
#include "engine/scan/pass.h"
#include "store/fault/fault.h"
#include "weft/weft.h"

static const struct scan_kind {
    enum weft_scanner scanner;
    bool claimed;          /* only what is running is looked at */
    bool ends;             /* what it does to such a row ends the execution */
    enum weft_state after; /* what becomes of it */
} kinds[] = {
    {WEFT_SCANNER_LEASE_EXPIRY, true, false, WEFT_STATE_READY},
    {WEFT_SCANNER_ATTEMPT_TIMEOUT, true, true, WEFT_STATE_FAILED},
    {WEFT_SCANNER_DELAYED_PROMOTER, false, false, WEFT_STATE_READY},
    {WEFT_SCANNER_EXECUTION_DEADLINE, false, true, WEFT_STATE_EXPIRED},
};

enum { DUE_MS = 5000 };

/* `count` executions that are due for the scanner in DUE_MS, claimed where it takes that. */
static struct weft_id *make_due(struct fixture *f, const struct scan_kind *kind, size_t count)
{
    static const struct weft_policy leased = {.lease_ms = DUE_MS};
    static const struct weft_policy timed = {
        .attempt_timeout_ms = DUE_MS, .lease_ms = 60000, .max_attempts = 1};
    const char *lane = weft_scanner_name(kind->scanner);
    struct weft_spec spec = {.kind = "job", .lane = lane};
    if (kind->scanner == WEFT_SCANNER_LEASE_EXPIRY)
        spec.policy = &leased;
    if (kind->scanner == WEFT_SCANNER_ATTEMPT_TIMEOUT)
        spec.policy = &timed;
    if (kind->scanner == WEFT_SCANNER_DELAYED_PROMOTER)
        spec.delay_ms = DUE_MS;
    if (kind->scanner == WEFT_SCANNER_EXECUTION_DEADLINE)
        spec.deadline_us = f->now_us + DUE_MS * WEFT_MS;
    struct weft_id *id = submit_copies(f, &spec, count);
    if (kind->claimed)
        is_int(claim_with(f, f->a,
                          &(struct weft_claim){.worker = "worker-a",
                                               .lanes = &lane,
                                               .lane_count = 1,
                                               .max = (uint32_t)count})
                   .count,
               count, "%s: %zu are claimed", lane, count);
    return id;
}

static void set_now(struct fixture *f, weft_usec now_us)
{
    f->now_us = now_us;
    weft_clock_set(weft_engine_clock(f->a), now_us);
    weft_clock_set(weft_engine_clock(f->b), now_us);
}

/*
 * Takes away what is left in a lane, so that the next round begins with an empty one. Its worker
 * lets go of what others ended.
 */
static void sweep_lane(struct fixture *f, const char *lane)
{
    uint64_t released;
    if (weft_engine_goodbye(f->a, "default", "worker-a", &released, &f->err))
        ok(false, "goodbye: %s", f->err.text);
    const struct weft_steer_all args = {.kind = WEFT_STEER_CANCEL,
                                        .filter = {.ns = "default", .lane = lane}};
    struct weft_sweep sweep;
    if (weft_engine_steer_all(f->a, &args, &sweep, &f->err))
        ok(false, "sweep %s: %s", lane, f->err.text);
}

static struct weft_pass_report pass_in(struct fixture *f, enum weft_scanner scanner, uint32_t batch)
{
    return pass_with(f, scanner, &(struct weft_pass_config){.batch = batch});
}

static void expect_counters(const struct weft_pass_report *report, const struct scan_kind *kind,
                            uint64_t processed)
{
    const uint64_t want[] = {processed, kind->ends ? processed : 0, 0, 0};
    const struct weft_scanner_info *info = weft_scanner_info(kind->scanner);
    is_int(report->counter_count, WEFT_LEN(want), "%s: all counters are reported", info->name);
    for (size_t i = 0; i < report->counter_count && i < WEFT_LEN(want); i++) {
        is_str(report->counter[i].name, info->counter[i], "%s: by name", info->name);
        is_int(report->counter[i].value, want[i], "%s: %s", info->name, info->counter[i]);
    }
    is_int(report->handled, processed, "%s: handled", info->name);
    is_int(report->failed, want[1], "%s: failed", info->name);
}

CASE(scan_nothing_due)
{
    for (size_t i = 0; i < WEFT_LEN(kinds); i++) {
        struct weft_pass_report report = pass_in(f, kinds[i].scanner, 0);
        expect_counters(&report, &kinds[i], 0);
        ok(!report.more && report.next_due_us == WEFT_NEVER, "an empty store has nothing to do");
    }
}

CASE(scan_at_the_very_moment)
{
    for (size_t i = 0; i < WEFT_LEN(kinds); i++) {
        const char *name = weft_scanner_name(kinds[i].scanner);
        weft_usec due_us = f->now_us + DUE_MS * WEFT_MS;
        struct weft_id *id = make_due(f, &kinds[i], 1);
        enum weft_state before = state_of(f, id);
        set_now(f, due_us - 1);
        struct weft_pass_report report = pass_in(f, kinds[i].scanner, 0);
        ok(report.handled == 0 && report.next_due_us == due_us,
           "%s: the pass does nothing before the due time", name);
        is_int(state_of(f, id), before, "%s: nothing is changed", name);
        set_now(f, due_us);
        report = pass_in(f, kinds[i].scanner, 0);
        expect_counters(&report, &kinds[i], 1);
        ok(!report.more && report.next_due_us == WEFT_NEVER, "%s: nothing is left to do", name);
        is_int(state_of(f, id), kinds[i].after, "%s: the pass acts at the due time", name);
    }
}

CASE(scan_in_batches)
{
    static const struct {
        size_t rows;
        uint32_t batch;
        size_t handled[4]; /* pass by pass; the first that is not full is the last */
    } row[] = {
        {6, 3, {3, 3, 0}}, {7, 3, {3, 3, 1}}, {2, 3, {2}}, {3, 3, {3, 0}}, {3, 1, {1, 1, 1, 0}},
    };
    for (size_t i = 0; i < WEFT_LEN(kinds) * WEFT_LEN(row); i++) {
        const struct scan_kind *kind = &kinds[i % WEFT_LEN(kinds)];
        size_t at = i / WEFT_LEN(kinds);
        (void)make_due(f, kind, row[at].rows);
        forward_ms(f, DUE_MS);
        struct weft_pass_report report = {.more = true};
        for (size_t turn = 0; turn < 4 && report.more; turn++) {
            report = pass_in(f, kind->scanner, row[at].batch);
            expect_counters(&report, kind, row[at].handled[turn]);
            ok(report.more == (row[at].handled[turn] == row[at].batch),
               "%s: %zu rows in batches of %u: more or not", weft_scanner_name(kind->scanner),
               row[at].rows, row[at].batch);
        }
        ok(!report.more, "the last pass reports no more");
        sweep_lane(f, weft_scanner_name(kind->scanner));
    }
}

/* What ended in another way before it was due is never looked at. */
CASE(scan_leaves_ended_executions)
{
    for (size_t i = 0; i < WEFT_LEN(kinds); i++) {
        struct weft_id *id = make_due(f, &kinds[i], 2);
        (void)steer_id(f, WEFT_STEER_CANCEL, &id[0]);
        forward_ms(f, DUE_MS);
        struct weft_execution before = describe(f, &id[0]);
        struct weft_pass_report report = pass_in(f, kinds[i].scanner, 0);
        expect_counters(&report, &kinds[i], 1);
        struct weft_execution after = describe(f, &id[0]);
        ok(same_execution(&before, &after), "%s: an ended execution stays as it is",
           weft_scanner_name(kinds[i].scanner));
        is_int(pass_in(f, kinds[i].scanner, 0).handled, 0, "a second pass handles nothing");
    }
}

/* The store fails at each call of a pass in turn: all or nothing, and the next pass does it. */
CASE(scan_after_a_failure)
{
    struct weft_fault fault = {0};
    struct weft_engine *engine = open_faulty(f, &fault);
    for (size_t i = 0; i < WEFT_LEN(kinds); i++) {
        const char *name = weft_scanner_name(kinds[i].scanner);
        uint64_t at = 0;
        do {
            struct weft_id *id = make_due(f, &kinds[i], 3);
            enum weft_state before = state_of(f, &id[2]);
            forward_ms(f, DUE_MS);
            weft_clock_set(weft_engine_clock(engine), f->now_us);
            struct weft_pass_report report = {0};
            struct weft_err err;
            fault.kind = WEFT_FAULT_FULL;
            fault.struck = false;
            fault.strike_at = ++at;
            enum weft_rc rc = weft_engine_pass(engine, kinds[i].scanner, NULL, &report, &err);
            fault.strike_at = 0;
            if (fault.struck) {
                is_int(rc, WEFT_STORAGE_FULL, "%s, call %d: the full disk is reported", name,
                       (int)at);
                is_int(state_of(f, &id[2]), before, "%s, call %d: undone", name, (int)at);
                rc = weft_engine_pass(engine, kinds[i].scanner, NULL, &report, &err);
            }
            ok(rc == WEFT_OK && report.handled == 3, "%s, call %d: done by the next", name,
               (int)at);
            sweep_lane(f, name);
        } while (fault.struck && at < 20);
        ok(at > 3 && at < 20, "%s: every call of the pass was struck", name);
    }
    weft_engine_close(engine);
}

/* ---- Outages --------------------------------------------------------------------------------- */

CASE(scan_forgives_an_outage)
{
    const struct weft_policy twice = {.lease_ms = DUE_MS, .max_lost = 1};
    struct weft_claimed lease = start(f, &(struct weft_spec){.policy = &twice});
    static const struct {
        weft_usec later_us; /* forgive_us, from when the lease ran out */
        int32_t lost;
    } row[] = {{1, 0}, {1000, 0}, {0, 1}, {1, 1}};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        weft_usec due_us = f->now_us + DUE_MS * WEFT_MS;
        forward_ms(f, DUE_MS);
        struct weft_pass_report report =
            pass_with(f, WEFT_SCANNER_LEASE_EXPIRY,
                      &(struct weft_pass_config){.forgive_us = due_us + row[i].later_us});
        ok(report.handled == 1 && report.failed == 0, "loss %zu: ready again", i);
        is_int(describe(f, &lease.id).lost, row[i].lost, "loss %zu: counted or not", i);
        expect_last_attempt(f, &lease.id,
                            &(struct weft_attempt){.epoch = lease.epoch, .ended = "lost"});
        lease = take(f, f->a, lease.lane);
    }
    forward_ms(f, DUE_MS);
    is_int(pass_in(f, WEFT_SCANNER_LEASE_EXPIRY, 0).failed, 1,
           "a loss that was not forgiven counts");
}
