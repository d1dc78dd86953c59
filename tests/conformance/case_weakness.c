/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fifteen lifecycle defects our ancestor is known for, one case each: the comment above a
 * case names the defect, and the case shows that weft does not have it.
 */

#include "conformance.h"

#include "base/err.h"
#include "base/id.h"
#include "core/state.h"
#include "engine/admin/tally.h"
#include "engine/job/claim.h"
#include "engine/job/execution_read.h"
#include "engine/job/leases.h"
#include "engine/job/list.h"
#include "weft/weft.h"

/* C1: an execution created through the API was in a state that no claim took. */
CASE(weakness_c01_created_is_claimable)
{
    struct weft_submitted answer = submit(f, f->a, &(struct weft_spec){.kind = "job"});
    ok(answer.err.rc == WEFT_OK && answer.state == WEFT_STATE_READY, "ready, with no step between");
    struct weft_claimed lease = claim_one(f, f->b);
    ok(weft_id_cmp(&lease.id, &answer.id) == 0, "another process claims it at once");
}

/* C2: capabilities, delay, priority and key were accepted and ignored. */
CASE(weakness_c02_submission_is_honoured)
{
    static const char *const gpu[] = {"gpu"};
    const struct weft_spec spec = {.kind = "job", .capabilities = gpu, .capability_count = 1};
    struct weft_id picky = submit_ok(f, &spec);
    is_int(claim(f, f->a, 1).count, 0, "a worker without the capability does not get it");
    const struct weft_claim able = {.worker = "able", .capabilities = gpu, .capability_count = 1};
    struct weft_claim_result result = claim_with(f, f->b, &able);
    ok(result.count == 1 && weft_id_cmp(&result.item[0].id, &picky) == 0, "one with it does");

    struct weft_spec late = {.kind = "job", .delay_ms = 50};
    is_int(submit(f, f->a, &late).state, WEFT_STATE_DELAYED, "a delay delays");
    struct weft_spec loud = {.kind = "job", .priority = 40000};
    is_int(submit(f, f->a, &loud).err.rc, WEFT_INVALID_VALUE,
           "a priority out of bounds is refused");

    struct weft_spec keyed = {.kind = "job", .key = "k", .payload = "1", .payload_size = 1};
    struct weft_submitted first = submit(f, f->a, &keyed), again = submit(f, f->b, &keyed);
    ok(!first.duplicate && again.duplicate && weft_id_cmp(&first.id, &again.id) == 0,
       "a key is one execution, and the second submit is a duplicate");
    keyed.payload = "2";
    is_int(submit(f, f->a, &keyed).err.rc, WEFT_CONFLICT, "the key with other work is a conflict");
}

static size_t listed(struct fixture *f, const char *lane, enum weft_state state)
{
    struct weft_read_page page = {0};
    const struct weft_listing listing = {.filter = {.ns = "default", .lane = lane, .state = state}};
    is_int(weft_engine_list(f->a, &listing, f->arena, &page, &f->err), WEFT_OK, "list");
    return page.count;
}

static uint64_t counted(struct fixture *f, const char *lane, enum weft_state state)
{
    struct weft_counts counts = {0};
    is_int(weft_engine_counts(f->b, "default", lane, f->arena, &counts, &f->err), WEFT_OK, "count");
    return counts.count ? counts.item[0].count[state] : 0;
}

static const enum weft_state every_state[] = {
    WEFT_STATE_READY,  WEFT_STATE_DELAYED,   WEFT_STATE_RUNNING, WEFT_STATE_SUCCEEDED,
    WEFT_STATE_FAILED, WEFT_STATE_CANCELLED, WEFT_STATE_EXPIRED,
};

/* C3: a finished execution still read as running, and summaries counted by other words. */
CASE(weakness_c03_every_reader_sees_one_state)
{
    for (size_t i = 0; i < WEFT_LEN(every_state); i++) {
        struct weft_claimed lease = bring(f, every_state[i], NULL);
        for (size_t k = 0; k < WEFT_LEN(every_state); k++) {
            bool here = every_state[k] == every_state[i];
            is_int(listed(f, lease.lane, every_state[k]), here, "%s: listed as %s or not",
                   weft_state_name(every_state[i]), weft_state_name(every_state[k]));
            is_int(counted(f, lease.lane, every_state[k]),
                   here && weft_state_living(every_state[k]), "%s: counted as %s or not",
                   weft_state_name(every_state[i]), weft_state_name(every_state[k]));
        }
    }
}

/* C4: failures were retried instantly and for ever or never, whatever the policy said. */
CASE(weakness_c04_failures_follow_the_policy)
{
    struct weft_claimed lease =
        start_policy(f, &(struct weft_policy){.max_attempts = 5, .no_jitter = true});
    int tries = 1;
    while (fail(f, f->a, &lease, "transient").state == WEFT_STATE_DELAYED && tries < 20) {
        is_int(claim_lane(f, f->b, lease.lane).count, 0, "attempt %d: no instant retry", tries);
        forward_ms(f, 60000);
        is_int(run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER).handled, 1,
               "attempt %d: the wait ends by itself", tries);
        lease = take(f, f->a, lease.lane);
        is_int(lease.attempt, ++tries, "the next attempt");
    }
    is_int(tries, 5, "five attempts are made, not more");
    is_int(state_of(f, &lease.id), WEFT_STATE_FAILED, "after five attempts it has failed");
}

/* C5: fences looked at the epoch alone, so a cancelled or timed-out worker could still write. */
CASE(weakness_c05_fences_look_at_the_state)
{
    static const struct weft_policy timed = {.attempt_timeout_ms = 1000, .max_attempts = 1};
    struct weft_claimed cancelled = bring(f, WEFT_STATE_CANCELLED, NULL);
    struct weft_claimed expired = bring(f, WEFT_STATE_EXPIRED, NULL);
    struct weft_claimed late = start_policy(f, &timed), lost = start(f, NULL);
    forward_ms(f, 30000);
    (void)run_pass(f, f->a, WEFT_SCANNER_ATTEMPT_TIMEOUT);
    (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    is_int(describe(f, &cancelled.id).epoch, cancelled.epoch, "the epoch is still the worker's");
    expect_fenced(f, &cancelled, WEFT_FENCE_CANCELLED);
    expect_fenced(f, &expired, WEFT_FENCE_EXPIRED);
    expect_fenced(f, &late, WEFT_FENCE_TIMED_OUT);
    is_int(describe(f, &lost.id).epoch, lost.epoch, "the epoch of the lost one stays as well");
    expect_fenced(f, &lost, WEFT_FENCE_LOST);
}

/*
 * C6: grants that could not be redeemed stranded their execution. There are no grants here: a claim
 * is one step. The equal of a grant that is never used is a claim whose reply never arrives.
 */
CASE(weakness_c06_a_claim_without_receiver_comes_back)
{
    struct weft_id id = submit_job(f);
    is_int(claim(f, f->a, 1).count, 1, "claimed, and the reply is lost");
    is_int(claim(f, f->a, 1).count, 0, "the same worker asks again: it is not handed out twice");
    forward_ms(f, 30000);
    (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    struct weft_claimed lease = claim_one(f, f->b);
    ok(weft_id_cmp(&lease.id, &id) == 0 && lease.attempt == 1,
       "after the lease time it comes back");
    is_int(complete(f, f->b, &lease, NULL).err.rc, WEFT_OK,
           "the reclaimed execution can be completed");
}

/* C7: the pointer to the current attempt named one that did not exist, and operations hit it. */
CASE(weakness_c07_operations_hit_the_current_attempt)
{
    static const struct weft_policy policy = {.initial_ms = -1, .attempt_timeout_ms = 1000};
    struct weft_claimed lease = start_policy(f, &policy);
    (void)fail(f, f->a, &lease, "x");
    lease = take(f, f->b, lease.lane);
    is_int(describe(f, &lease.id).attempt, lease.attempt, "a reader sees the worker's attempt");
    forward_ms(f, 1000);
    (void)run_pass(f, f->a, WEFT_SCANNER_ATTEMPT_TIMEOUT);
    expect_last_attempt(f, &lease.id,
                        &(struct weft_attempt){.ended = "timed_out", .epoch = 2, .attempt = 2});
    lease = take(f, f->a, lease.lane);
    (void)steer_id(f, WEFT_STEER_REVOKE, &lease.id);
    expect_last_attempt(f, &lease.id,
                        &(struct weft_attempt){.ended = "revoked", .epoch = 3, .attempt = 3});
    lease = take(f, f->b, lease.lane);
    is_int(lease.attempt, 3, "a revoked attempt is made again");
    (void)steer_id(f, WEFT_STEER_CANCEL, &lease.id);
    expect_last_attempt(f, &lease.id,
                        &(struct weft_attempt){
                            .ended = "cancelled", .epoch = 4, .attempt = 3, .worker = "worker-b"});
    is_int(attempts(f, &lease.id).count, 4, "each lease that ended is listed once");
}

/* C8: the timeout pass looked at leases, and two passes raced to do different things to one row. */
CASE(weakness_c08_timeout_and_expiry_are_two_things)
{
    static const struct weft_policy untimed = {.max_attempts = 1, .lease_ms = 1000};
    static const struct weft_policy timed = {
        .max_attempts = 1, .lease_ms = 60000, .attempt_timeout_ms = 1000};
    struct weft_claimed crashed = start_policy(f, &untimed), slow = start_policy(f, &timed);
    forward_ms(f, 1000);
    is_int(run_pass(f, f->a, WEFT_SCANNER_ATTEMPT_TIMEOUT).handled, 1, "the timeout takes one");
    is_int(state_of(f, &slow.id), WEFT_STATE_FAILED, "the slow one, whose only attempt is spent");
    is_int(state_of(f, &crashed.id), WEFT_STATE_RUNNING, "the one whose lease ran out still runs");
    is_int(run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY).handled, 1, "expiry takes the other");
    is_int(state_of(f, &crashed.id), WEFT_STATE_READY, "ready again: a crash spends no attempt");
    is_int(describe(f, &crashed.id).attempt, 1, "even with a single one");

    /* Both due at once: a timeout, whichever pass comes first; the other finds nothing. */
    static const struct weft_policy both = {
        .max_attempts = 3, .initial_ms = -1, .lease_ms = 1000, .attempt_timeout_ms = 1000};
    static const enum weft_scanner order[][2] = {
        {WEFT_SCANNER_LEASE_EXPIRY, WEFT_SCANNER_ATTEMPT_TIMEOUT},
        {WEFT_SCANNER_ATTEMPT_TIMEOUT, WEFT_SCANNER_LEASE_EXPIRY}};
    for (size_t i = 0; i < WEFT_LEN(order); i++) {
        struct weft_claimed lease = start_policy(f, &both);
        forward_ms(f, 1000);
        is_int(run_pass(f, f->a, order[i][0]).handled, 1, "%s first",
               weft_scanner_name(order[i][0]));
        is_int(run_pass(f, f->b, order[i][1]).handled, 0, "%s finds nothing after that",
               weft_scanner_name(order[i][1]));
        is_int(attempts(f, &lease.id).count, 1, "the lease ended once");
        is_str(attempts(f, &lease.id).item[0].ended, "timed_out", "the lease ended as timed_out");
        is_int(describe(f, &lease.id).attempt, 2, "the timeout spent an attempt");
        is_int(describe(f, &lease.id).lost, 0, "a timeout is not counted as a lost lease");
    }
}

/* C9: deadline and delay shared a column, so a delay overwrote the deadline. */
CASE(weakness_c09_delay_and_deadline_are_two_times)
{
    weft_usec deadline = f->now_us + 5000 * WEFT_MS;
    struct weft_claimed lease = start(f, &(struct weft_spec){.deadline_us = deadline});
    (void)put_back(f, WEFT_PUT_BACK_DELAY, &lease, 1000);
    struct weft_execution now = describe(f, &lease.id);
    ok(now.run_at_us == f->now_us + 1000 * WEFT_MS && now.deadline_us == deadline,
       "delay and deadline are both kept");
    forward_ms(f, 1000);
    is_int(run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE).handled, 0,
           "the delay is no deadline");
    is_int(run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER).handled, 1,
           "the promoter ends the delay at its time");
    lease = take(f, f->b, lease.lane);
    is_int(lease.deadline_us, deadline, "the next lease has the deadline");
    (void)put_back(f, WEFT_PUT_BACK_DELAY, &lease, 60000);
    forward_ms(f, 4000);
    is_int(run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE).handled, 1,
           "the deadline holds while delayed");
    is_int(state_of(f, &lease.id), WEFT_STATE_EXPIRED, "the delayed execution has expired");
}

/* C10: work of a dead worker could only be had by an operation that was never reachable in time. */
CASE(weakness_c10_lost_work_is_claimed_like_any_other)
{
    struct weft_claimed lost = start(f, NULL), revoked = start(f, NULL);
    forward_ms(f, 30000);
    (void)steer_id(f, WEFT_STEER_REVOKE, &revoked.id);
    (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    struct weft_claimed next = take(f, f->b, lost.lane);
    ok(next.epoch == 2 && next.attempt == 1, "lost work comes with an ordinary claim");
    next = take(f, f->b, revoked.lane);
    ok(next.epoch == 2 && next.attempt == 1, "revoked work comes with an ordinary claim");
}

/* C11: replay refused cancelled executions and overwrote the old attempt. */
CASE(weakness_c11_replay_keeps_history)
{
    struct weft_claimed lease = start(f, NULL);
    (void)fail_as(
        f, f->a, &lease,
        &(struct weft_failure){.error_class = "first", .message = "one", .permanent = true});
    is_int(steer_id(f, WEFT_STEER_REPLAY, &lease.id).err.rc, WEFT_OK, "a failed one");
    lease = take(f, f->b, lease.lane);
    (void)steer_id(f, WEFT_STEER_CANCEL, &lease.id);
    is_int(steer_id(f, WEFT_STEER_REPLAY, &lease.id).err.rc, WEFT_OK, "a cancelled one");
    lease = take(f, f->a, lease.lane);
    (void)complete(f, f->a, &lease, NULL);
    struct weft_attempts list = attempts(f, &lease.id);
    is_int(list.count, 3, "three leases ended");
    if (list.count != 3)
        return;
    ok(strcmp(list.item[0].ended, "failed") == 0 &&
           strcmp(list.item[0].error_class, "first") == 0 &&
           strcmp(list.item[0].error_message, "one") == 0,
       "the first failed, with its error");
    is_str(list.item[1].ended, "cancelled", "the second was cancelled");
    is_str(list.item[2].ended, "completed", "the third succeeded");
}

/*
 * C12: retention missed whole states and whole tables. case_retention.c says what goes and when;
 * what that builds on is: every ended execution, however it ended, has left the living rows and is
 * found under its state with the time of its end. That no other table holds a row of an execution
 * that is gone is one of the invariants checked after every case.
 */
CASE(weakness_c12_ended_executions_are_found_by_their_end)
{
    for (size_t i = 0; i < WEFT_LEN(every_state); i++) {
        enum weft_state state = every_state[i];
        if (weft_state_living(state))
            continue;
        struct weft_claimed lease = bring(f, state, NULL);
        is_int(listed(f, lease.lane, state), 1, "%s: found", weft_state_name(state));
        is_int(describe(f, &lease.id).finished_us, f->now_us, "%s: with its end",
               weft_state_name(state));
        for (size_t k = 0; k < WEFT_LEN(every_state); k++)
            if (weft_state_living(every_state[k]))
                is_int(counted(f, lease.lane, every_state[k]), 0, "%s: not among the living",
                       weft_state_name(state));
    }
}
