/* SPDX-License-Identifier: Apache-2.0 */

/* Leases: how long they last, how they are renewed, and the passes that end them. */

#include "conformance.h"
#include "direct.h"

#include "base/limits.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

static struct weft_lease_answer renew_for(struct fixture *f, const struct weft_claimed *lease,
                                          int64_t lease_ms)
{
    struct weft_lease_answer answer = {0};
    const struct weft_renew item = {.id = lease->id, .epoch = lease->epoch, .lease_ms = lease_ms};
    is_int(engine_renew(f->b, &item, 1, &answer, &f->err), WEFT_OK, "renew");
    return answer;
}

static struct weft_pass_report pass_of(struct fixture *f, enum weft_scanner pass, uint32_t batch)
{
    struct weft_pass_report report = {0};
    is_int(
        weft_engine_pass(f->b, pass, &(struct weft_pass_config){.batch = batch}, &report, &f->err),
        WEFT_OK, "%s in batches of %u", weft_scanner_name(pass), batch);
    return report;
}

CASE(lease_expiry_decides_nothing_but_the_holder)
{
    struct weft_claimed lease = start(f, NULL);
    forward_ms(f, 29999);
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    ok(report.handled == 0 && report.next_due_us == lease.lease_expires_us,
       "a pass a millisecond before the expiry handles nothing");
    forward_ms(f, 1);
    report = run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    ok(report.handled == 1 && report.failed == 0, "in time it is taken, and has not failed");
    is_int(report.next_due_us, WEFT_NEVER, "no other lease is out");
    is_int(run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY).handled, 0,
           "another replica finds nothing");
    struct weft_execution now = describe(f, &lease.id);
    is_int(now.state, WEFT_STATE_READY, "ready again at once");
    is_int(now.attempt, 1, "the attempt is kept: nothing was decided");
    is_int(now.lost, 1, "one lease was lost");
    is_int(now.epoch, 1, "the epoch grows only with a claim");
    is_str(now.worker, NULL, "the execution has no worker");
    ok(now.claimed_us == 0 && now.lease_expires_us == 0,
       "a lost lease leaves neither claim time nor expiry");
    expect_last_attempt(f, &lease.id,
                        &(struct weft_attempt){.ended = "lost",
                                               .epoch = 1,
                                               .attempt = 1,
                                               .worker = "worker-a",
                                               .ended_us = f->now_us});
    struct weft_claimed next = take(f, f->b, lease.lane);
    ok(next.epoch == 2 && next.attempt == 1, "the next worker does the same attempt again");
    is_str(describe(f, &lease.id).worker, "worker-b", "the execution names the next worker");
}

CASE(lease_lost_too_often_at_the_boundary)
{
    enum { MAX_LOST = 3 };
    struct weft_claimed lease = start_policy(f, &(struct weft_policy){.max_lost = MAX_LOST});
    for (int lost = 1; lost <= MAX_LOST; lost++) {
        forward_ms(f, 30000);
        struct weft_pass_report report = run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
        ok(report.handled == 1 && report.failed == 0, "loss %d may happen", lost);
        struct weft_execution now = describe(f, &lease.id);
        ok(now.state == WEFT_STATE_READY && now.lost == lost && now.attempt == 1,
           "a lost lease is counted, not an attempt");
        (void)take(f, f->b, lease.lane);
    }
    forward_ms(f, 30000);
    struct weft_pass_report report = run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    ok(report.handled == 1 && report.failed == 1, "one more is too many");
    struct weft_execution end = describe(f, &lease.id);
    is_int(end.state, WEFT_STATE_FAILED, "failed");
    is_str(end.error_class, "lost_too_often", "the error class is lost_too_often");
    ok(end.error_message && *end.error_message, "the error has a message");
    is_str(end.by, "lease_expiry", "the execution was ended by lease_expiry");
    is_int(end.finished_us, f->now_us, "the execution finished at the pass");
    is_int(attempts(f, &lease.id).count, MAX_LOST + 1, "every lost lease is in the history");
    expect_last_attempt(f, &lease.id,
                        &(struct weft_attempt){.ended = "lost", .epoch = MAX_LOST + 1});
}

CASE(lease_only_losses_count_as_lost)
{
    static const struct weft_policy policy = {.max_lost = 1, .initial_ms = -1};
    struct weft_claimed lease = start_policy(f, &policy);
    for (int i = 0; i < 3; i++) {
        (void)steer_id(f, WEFT_STEER_REVOKE, &lease.id);
        lease = take(f, f->a, lease.lane);
        (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
        lease = take(f, f->a, lease.lane);
    }
    (void)fail(f, f->a, &lease, "x");
    lease = take(f, f->a, lease.lane);
    is_int(describe(f, &lease.id).lost, 0, "revoked, released and failed leases are not lost");
}

CASE(lease_time_comes_from_the_policy_or_the_caller)
{
    static const struct weft_policy policy = {.lease_ms = 7000};
    struct weft_claimed lease = start_policy(f, &policy);
    is_int(lease.lease_expires_us, f->now_us + 7000 * WEFT_MS, "the policy's when none is given");
    is_int(lease.lease_ms, 7000, "the claim gives the length of the lease");
    forward_ms(f, 3000);
    struct weft_lease_answer answer = renew_for(f, &lease, 0);
    is_int(answer.state, WEFT_STATE_RUNNING, "renewed");
    is_int(answer.lease_expires_us, f->now_us + 7000 * WEFT_MS, "the policy's again");
    is_int(describe(f, &lease.id).lease_expires_us, answer.lease_expires_us,
           "the described expiry is that of the answer");
    answer = renew_for(f, &lease, 2000);
    is_int(answer.lease_expires_us, f->now_us + 2000 * WEFT_MS, "a renewal may shorten it");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    const struct weft_claim args = {
        .worker = "worker-b", .lanes = &lease.lane, .lane_count = 1, .lease_ms = 12000};
    struct weft_claim_result result = claim_with(f, f->b, &args);
    is_int(result.count, 1, "claimed with a time of its own");
    is_int(result.item[0].lease_expires_us, f->now_us + 12000 * WEFT_MS,
           "the lease time of the claim wins over the policy");
    lease = start(f, NULL);
    is_int(lease.lease_expires_us, f->now_us + 30000 * WEFT_MS, "half a minute by default");
}

CASE(lease_time_is_bounded)
{
    static const struct {
        int64_t ms;
        enum weft_rc rc;
    } row[] = {{1000, WEFT_OK},           {86400000, WEFT_OK},
               {999, WEFT_INVALID_VALUE}, {86400001, WEFT_INVALID_VALUE},
               {-1, WEFT_INVALID_VALUE},  {INT64_MAX, WEFT_INVALID_VALUE}};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_claimed lease = start(f, NULL);
        struct weft_lease_answer answer = renew_for(f, &lease, row[i].ms);
        is_int(answer.err.rc, row[i].rc, "renew for %lld ms", (long long)row[i].ms);
        is_int(describe(f, &lease.id).lease_expires_us,
               row[i].rc ? lease.lease_expires_us : f->now_us + row[i].ms * WEFT_MS,
               "%lld ms: the lease", (long long)row[i].ms);
        if (row[i].rc)
            is_str(answer.err.field, "lease_ms", "the field is named");
        const struct weft_policy policy = {.lease_ms = row[i].ms};
        struct weft_spec spec = {.kind = "job", .policy = &policy};
        is_int(submit(f, f->a, &spec).err.rc, row[i].rc, "a policy with %lld ms",
               (long long)row[i].ms);
    }
}

CASE(lease_renewal_prevents_expiry)
{
    struct weft_claimed lease = start(f, NULL), silent = start(f, NULL);
    for (int i = 0; i < 5; i++) {
        forward_ms(f, 20000);
        is_int(renew(f, i % 2 ? f->a : f->b, &lease).err.rc, WEFT_OK, "renewed");
        (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    }
    is_int(state_of(f, &lease.id), WEFT_STATE_RUNNING, "the one that was renewed is held");
    is_int(describe(f, &lease.id).epoch, 1, "under its first epoch");
    is_int(state_of(f, &silent.id), WEFT_STATE_READY, "the silent one is not");
}

CASE(lease_attempt_timeout_spends_a_retry)
{
    static const struct weft_policy policy = {
        .no_jitter = true, .max_attempts = 2, .attempt_timeout_ms = 5000};
    struct weft_claimed lease = start_policy(f, &policy);
    forward_ms(f, 4999);
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_ATTEMPT_TIMEOUT);
    ok(report.handled == 0 && report.next_due_us == f->now_us + WEFT_MS,
       "a pass a millisecond before the timeout handles nothing");
    forward_ms(f, 1);
    report = run_pass(f, f->b, WEFT_SCANNER_ATTEMPT_TIMEOUT);
    ok(report.handled == 1 && report.failed == 0, "in time");
    struct weft_execution now = describe(f, &lease.id);
    ok(now.state == WEFT_STATE_DELAYED && now.run_at_us == f->now_us + 1000 * WEFT_MS,
       "the execution is delayed by its backoff");
    ok(now.attempt == 2 && now.lost == 0 && !now.worker, "an attempt is spent, no lease was lost");
    expect_last_attempt(f, &lease.id,
                        &(struct weft_attempt){.ended = "timed_out",
                                               .epoch = 1,
                                               .attempt = 1,
                                               .worker = "worker-a",
                                               .error_class = "attempt_timeout",
                                               .run_at_us = now.run_at_us});
    forward_ms(f, 1000);
    (void)run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
    (void)take(f, f->b, lease.lane);
    forward_ms(f, 4999);
    is_int(run_pass(f, f->a, WEFT_SCANNER_ATTEMPT_TIMEOUT).handled, 0,
           "the second has its full time");
    forward_ms(f, 1);
    report = run_pass(f, f->a, WEFT_SCANNER_ATTEMPT_TIMEOUT);
    ok(report.handled == 1 && report.failed == 1, "the second timeout fails the execution");
    struct weft_execution end = describe(f, &lease.id);
    is_int(end.state, WEFT_STATE_FAILED, "failed");
    is_str(end.error_class, "attempt_timeout", "the error class is attempt_timeout");
    is_str(end.by, "attempt_timeout", "the execution was ended by attempt_timeout");
    is_int(end.attempt, 2, "in its last attempt");
}

CASE(lease_attempt_timeout_can_be_final)
{
    static const char *const no_retry[] = {"attempt_timeout"};
    static const struct weft_policy policy = {
        .attempt_timeout_ms = 5000, .no_retry = no_retry, .no_retry_count = 1};
    struct weft_claimed lease = start_policy(f, &policy);
    forward_ms(f, 5000);
    is_int(run_pass(f, f->a, WEFT_SCANNER_ATTEMPT_TIMEOUT).failed, 1, "no_retry holds here too");
    is_int(state_of(f, &lease.id), WEFT_STATE_FAILED, "failed in its first attempt");
}

CASE(lease_renewal_does_not_stretch_the_attempt)
{
    static const struct weft_policy policy = {.attempt_timeout_ms = 5000, .initial_ms = -1};
    struct weft_claimed lease = start_policy(f, &policy);
    forward_ms(f, 4000);
    is_int(renew(f, f->a, &lease).err.rc, WEFT_OK, "renewed");
    forward_ms(f, 1000);
    is_int(run_pass(f, f->a, WEFT_SCANNER_ATTEMPT_TIMEOUT).handled, 1,
           "the attempt is over in time");
    lease = take(f, f->b, lease.lane);
    forward_ms(f, 4000);
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    (void)take(f, f->a, lease.lane);
    forward_ms(f, 1000);
    is_int(run_pass(f, f->a, WEFT_SCANNER_ATTEMPT_TIMEOUT).handled, 0,
           "a new claim has its own time");
}

/* Makes `count` executions on which the pass has work in one second, as `ended` or not. */
static void make_due(struct fixture *f, enum weft_scanner pass, size_t count)
{
    static const struct weft_policy policy = {.lease_ms = 1000};
    static const struct weft_policy timed = {.attempt_timeout_ms = 1000, .max_attempts = 1};
    for (size_t i = 0; i < count; i++) {
        struct weft_spec spec = {.policy = &policy};
        const char *lane;
        if (pass == WEFT_SCANNER_DELAYED_PROMOTER)
            spec.delay_ms = 1000;
        if (pass == WEFT_SCANNER_EXECUTION_DEADLINE)
            spec.deadline_us = f->now_us + 1000 * WEFT_MS;
        if (pass == WEFT_SCANNER_ATTEMPT_TIMEOUT)
            spec.policy = &timed;
        (void)submit_apart(f, &spec, &lane); /* lanes of their own: expiry goes by lane */
        if (pass == WEFT_SCANNER_LEASE_EXPIRY || pass == WEFT_SCANNER_ATTEMPT_TIMEOUT)
            (void)take(f, f->a, lane);
    }
}

CASE(lease_passes_report_their_counts)
{
    static const struct {
        enum weft_scanner pass;
        bool ends;
    } row[] = {{WEFT_SCANNER_LEASE_EXPIRY, false},
               {WEFT_SCANNER_ATTEMPT_TIMEOUT, true},
               {WEFT_SCANNER_DELAYED_PROMOTER, false},
               {WEFT_SCANNER_EXECUTION_DEADLINE, true}};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        const char *name = weft_scanner_name(row[i].pass);
        make_due(f, row[i].pass, 5);
        struct weft_pass_report report = pass_of(f, row[i].pass, 2);
        ok(report.handled == 0 && report.failed == 0 && !report.more,
           "%s: the pass does nothing before the due time", name);
        is_int(report.next_due_us, f->now_us + 1000 * WEFT_MS,
               "%s: the next pass is at the due time", name);
        forward_ms(f, 1000);
        make_due(f, row[i].pass, 1);
        weft_usec next = f->now_us + 1000 * WEFT_MS;
        for (int turn = 0; turn < 2; turn++) {
            report = pass_of(f, row[i].pass, 2);
            ok(report.handled == 2 && report.more, "%s: a full batch, and more to do", name);
            is_int(report.failed, row[i].ends ? 2 : 0, "%s: how many of them ended", name);
        }
        report = pass_of(f, row[i].pass, 2);
        ok(report.handled == 1 && !report.more, "%s: the last, and no more", name);
        is_int(report.failed, row[i].ends, "%s: ended or not", name);
        is_int(report.next_due_us, next, "%s: the next pass is due with the next row", name);
        forward_ms(f, 1000);
        is_int(pass_of(f, row[i].pass, 0).handled, 1, "%s: the next row is handled at its due time",
               name);
        report = pass_of(f, row[i].pass, 0);
        ok(report.handled == 0 && report.next_due_us == WEFT_NEVER, "%s: all is done", name);
    }
}

CASE(lease_passes_are_bounded)
{
    struct weft_pass_report report;
    is_int(weft_engine_pass(f->a, WEFT_SCANNER_LEASE_EXPIRY,
                            &(struct weft_pass_config){.batch = WEFT_BATCH_MAX + 1}, &report,
                            &f->err),
           WEFT_INVALID_VALUE, "a batch larger than a transaction");
    is_str(f->err.field, "batch", "the field is named");
    is_int(weft_engine_pass(f->a, WEFT_SCANNER_COUNT, NULL, &report, &f->err), WEFT_INVALID_VALUE,
           "a pass that does not exist");
    is_int(weft_engine_pass(f->a, WEFT_SCANNER_LEASE_EXPIRY,
                            &(struct weft_pass_config){.batch = WEFT_BATCH_MAX}, &report, &f->err),
           WEFT_OK, "the largest batch");
}

CASE(lease_expiry_serves_every_lane)
{
    /* One lane with many lost leases must not keep the others waiting for more than a batch. */
    static const struct weft_policy policy = {.lease_ms = 1000};
    for (int i = 0; i < 7; i++)
        (void)submit_ok(f, &(struct weft_spec){.kind = "job", .policy = &policy});
    is_int(claim(f, f->a, 7).count, 7, "a busy lane");
    struct weft_claimed quiet = start_policy(f, &policy);
    forward_ms(f, 1000);
    size_t handled = 0;
    for (int turn = 0; turn < 4; turn++)
        handled += pass_of(f, WEFT_SCANNER_LEASE_EXPIRY, 2).handled;
    is_int(handled, 8, "all are taken within as many batches as they fill");
    is_int(state_of(f, &quiet.id), WEFT_STATE_READY, "the quiet lane's too");
}
