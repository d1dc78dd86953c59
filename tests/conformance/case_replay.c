/* SPDX-License-Identifier: Apache-2.0 */

/* Replay: a new life under the same id, with its history behind it. */

#include "conformance.h"
#include "direct.h"

#include "base/id.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/leases.h"
#include "weft/weft.h"

static const enum weft_state over[] = {WEFT_STATE_SUCCEEDED, WEFT_STATE_FAILED,
                                       WEFT_STATE_CANCELLED, WEFT_STATE_EXPIRED};

CASE(replay_from_every_ended_state)
{
    static const char *const word[] = {"completed", "failed", "cancelled", "expired"};
    for (size_t i = 0; i < WEFT_LEN(over); i++) {
        const char *was = weft_state_name(over[i]);
        struct weft_claimed lease =
            bring(f, over[i], &(struct weft_spec){.deadline_us = f->now_us + 60 * WEFT_SECOND});
        weft_usec ended = f->now_us;
        forward_ms(f, 100);
        struct weft_steered answer = steer_id(f, WEFT_STEER_REPLAY, &lease.id);
        ok(answer.err.rc == WEFT_OK && answer.state == WEFT_STATE_READY && answer.changed,
           "%s: replayed", was);
        struct weft_execution now = describe(f, &lease.id);
        is_int(now.state, WEFT_STATE_READY, "%s: ready", was);
        ok(!now.worker && !now.reason && !now.by && !now.error_class && !now.error_message,
           "%s: nothing of the old end is in the new life", was);
        ok(now.finished_us == 0 && now.claimed_us == 0 && now.lease_expires_us == 0,
           "%s: the execution lives without a worker", was);
        is_int(now.deadline_us, 0, "%s: an old deadline does not end the new life", was);
        is_int(now.epoch, 1, "%s: the epoch is kept", was);
        is_int(attempts(f, &lease.id).count, 1, "%s: the end is in the history", was);
        expect_last_attempt(f, &lease.id,
                            &(struct weft_attempt){.ended = word[i],
                                                   .epoch = 1,
                                                   .attempt = 1,
                                                   .worker = "worker-a",
                                                   .ended_us = ended});
        struct weft_claimed next = take(f, f->b, lease.lane);
        is_int(next.epoch, 2, "%s: claimed under the next epoch", was);
        is_int(next.attempt, over[i] == WEFT_STATE_FAILED ? 2 : 1,
               "%s: the attempt number goes on after a failure", was);
        is_int(complete(f, f->b, &next, "\"new\"").state, WEFT_STATE_SUCCEEDED, "%s: done", was);
        is_int(attempts(f, &lease.id).count, 2, "%s: both ends are in the history", was);
    }
}

CASE(replay_of_the_living_is_refused)
{
    static const enum weft_state living[] = {WEFT_STATE_READY, WEFT_STATE_DELAYED,
                                             WEFT_STATE_RUNNING};
    for (size_t i = 0; i < WEFT_LEN(living); i++) {
        const char *was = weft_state_name(living[i]);
        struct weft_claimed lease = bring(f, living[i], NULL);
        struct weft_execution before = describe(f, &lease.id);
        struct weft_steered answer = steer_id(f, WEFT_STEER_REPLAY, &lease.id);
        ok(answer.err.rc == WEFT_NOT_LIVE && answer.state == living[i] && !answer.changed,
           "%s: refused", was);
        struct weft_execution after = describe(f, &lease.id);
        ok(same_execution(&before, &after), "%s: the execution is unchanged", was);
    }
}

CASE(replay_gives_a_full_budget_of_attempts)
{
    static const struct weft_policy policy = {.max_attempts = 2, .initial_ms = -1};
    struct weft_claimed lease = start_policy(f, &policy);
    for (int life = 0; life < 3; life++) {
        int32_t first = 2 * life + 1;
        is_int(lease.attempt, first, "life %d begins with attempt %d", life, first);
        is_int(fail(f, f->a, &lease, "x").state, WEFT_STATE_READY, "life %d: one to spare", life);
        lease = take(f, f->b, lease.lane);
        is_int(lease.attempt, first + 1, "life %d: the second attempt", life);
        is_int(fail(f, f->b, &lease, "x").state, WEFT_STATE_FAILED, "life %d: none left", life);
        is_int(steer_id(f, WEFT_STEER_REPLAY, &lease.id).err.rc, WEFT_OK, "replayed");
        lease = take(f, f->a, lease.lane);
    }
    struct weft_attempts list = attempts(f, &lease.id);
    is_int(list.count, 6, "three lives of two attempts");
    for (size_t i = 0; i < list.count; i++)
        ok(list.item[i].attempt == (int)i + 1 && list.item[i].epoch == (int)i + 1,
           "entry %zu is attempt %zu", i, i + 1);
}

CASE(replay_starts_the_backoff_again)
{
    static const struct weft_policy policy = {.max_attempts = 3, .no_jitter = true};
    struct weft_claimed lease = start_policy(f, &policy);
    for (int life = 0; life < 2; life++) {
        static const int64_t wait_ms[] = {1000, 2000};
        for (size_t i = 0; i < WEFT_LEN(wait_ms); i++) {
            is_int(fail(f, f->a, &lease, "x").run_at_us, f->now_us + wait_ms[i] * WEFT_MS,
                   "life %d, wait %zu", life, i);
            forward_ms(f, wait_ms[i]);
            (void)run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
            lease = take(f, f->a, lease.lane);
        }
        is_int(fail(f, f->a, &lease, "x").state, WEFT_STATE_FAILED, "life %d is over", life);
        (void)steer_id(f, WEFT_STEER_REPLAY, &lease.id);
        lease = take(f, f->a, lease.lane);
    }
}

CASE(replay_forgets_lost_leases)
{
    static const struct weft_policy policy = {.max_lost = 1};
    struct weft_claimed lease = start_policy(f, &policy);
    for (int life = 0; life < 2; life++) {
        for (int loss = 0; loss < 2; loss++) {
            is_int(describe(f, &lease.id).lost, loss, "life %d: lost so far", life);
            forward_ms(f, 30000);
            is_int(run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY).failed, loss, "life %d: loss %d",
                   life, loss + 1);
            if (loss == 0)
                lease = take(f, f->b, lease.lane);
        }
        is_str(describe(f, &lease.id).error_class, "lost_too_often", "life %d: given up", life);
        is_int(steer_id(f, WEFT_STEER_REPLAY, &lease.id).changed, true, "replayed");
        is_int(describe(f, &lease.id).lost, 0, "a replay resets the count of lost leases");
        lease = take(f, f->a, lease.lane);
    }
}

CASE(replay_without_a_claim_in_between)
{
    enum { TIMES = 4 };
    const char *lane;
    struct weft_id id = submit_apart(f, NULL, &lane);
    for (int i = 0; i < TIMES; i++) {
        forward_ms(f, 10);
        is_int(steer_id(f, WEFT_STEER_CANCEL, &id).changed, true, "cancel %d", i);
        is_int(steer_id(f, WEFT_STEER_REPLAY, &id).changed, true, "replay %d", i);
    }
    struct weft_execution now = describe(f, &id);
    ok(now.state == WEFT_STATE_READY && now.epoch == 0 && now.attempt == 1,
       "the replayed execution is as new");
    is_int(attempts(f, &id).count, TIMES, "every end that was taken back is in the history");
    expect_last_attempt(f, &id,
                        &(struct weft_attempt){.ended = "cancelled", .ended_us = f->now_us});
    struct weft_claimed lease = take(f, f->b, lane);
    ok(lease.epoch == 1 && lease.attempt == 1, "the first claim of all");
    is_int(complete(f, f->b, &lease, "1").err.rc, WEFT_OK,
           "the replayed execution can be completed");
}

CASE(replay_after_a_lease_without_a_claim_in_between)
{
    /* The same epoch ends twice: once as a lease, then as executions without a lease. */
    struct weft_claimed lease = start(f, NULL);
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    for (int i = 0; i < 3; i++) {
        (void)steer_id(f, WEFT_STEER_CANCEL, &lease.id);
        is_int(steer_id(f, WEFT_STEER_REPLAY, &lease.id).changed, true, "cancel and replay %d", i);
    }
    is_int(put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0).err.rc, WEFT_OK,
           "the holder's own word is still known");
    is_int(complete(f, f->b, &lease, "1").fence, WEFT_FENCE_RELEASED,
           "a complete after the release is fenced as released");
    is_int(take(f, f->a, lease.lane).epoch, 2, "the next lease is the second");
}

CASE(replay_hides_the_old_result)
{
    struct weft_claimed lease = start(f, NULL);
    (void)complete(f, f->a, &lease, "\"old\"");
    is_str(result_text(f, &lease.id), "\"old\"", "the result of the first life");
    (void)steer_id(f, WEFT_STEER_REPLAY, &lease.id);
    is_str(result_text(f, &lease.id), NULL, "gone from sight with the replay");
    struct weft_claimed next = take(f, f->b, lease.lane);
    is_str(result_text(f, &lease.id), NULL, "the old result stays hidden while the new life runs");
    (void)complete(f, f->a, &lease, "\"old\""); /* the old holder's lost reply */
    is_str(result_text(f, &lease.id), NULL, "a repeat from the old life does not bring it back");
    (void)complete(f, f->b, &next, "\"new\"");
    is_str(result_text(f, &lease.id), "\"new\"", "the new result is shown");
    (void)steer_id(f, WEFT_STEER_REPLAY, &lease.id);
    next = take(f, f->a, lease.lane);
    (void)fail_as(f, f->a, &next, &(struct weft_failure){.permanent = true});
    is_str(result_text(f, &lease.id), NULL, "a life that failed shows none of the others'");
}

CASE(replay_fences_the_workers_of_the_old_life)
{
    struct weft_claimed old = start(f, NULL);
    (void)steer_id(f, WEFT_STEER_CANCEL, &old.id);
    (void)steer_id(f, WEFT_STEER_REPLAY, &old.id);
    expect_fenced(f, &old, WEFT_FENCE_CANCELLED);
    struct weft_claimed next = take(f, f->b, old.lane);
    expect_fenced(f, &old, WEFT_FENCE_CANCELLED);
    is_int(complete(f, f->b, &next, NULL).err.rc, WEFT_OK, "the worker of the new life may write");
}

CASE(replay_keeps_the_submitted_fields)
{
    static const struct weft_tag tag = {"team", "blue"};
    const struct weft_spec spec = {.payload = "[1,2]",
                                   .payload_size = 5,
                                   .priority = 6,
                                   .tenant = "acme",
                                   .tags = &tag,
                                   .tag_count = 1,
                                   .key = "order-1"};
    struct weft_claimed lease = bring(f, WEFT_STATE_FAILED, &spec);
    (void)steer_id(f, WEFT_STEER_REPLAY, &lease.id);
    struct weft_execution now = describe(f, &lease.id);
    ok(now.priority == 6 && strcmp(now.tenant, "acme") == 0 && strcmp(now.key, "order-1") == 0,
       "priority, tenant and key");
    struct weft_claimed next = take(f, f->b, lease.lane);
    ok(next.payload_size == 5 && memcmp(next.payload, "[1,2]", 5) == 0, "the payload");
    ok(next.tag_count == 1 && strcmp(next.tags[0].value, "blue") == 0, "the tags");
    is_int(next.created_us, lease.created_us, "the submit time is kept");
}

CASE(replay_takes_its_old_place)
{
    struct weft_id first = submit_job(f), second = submit_job(f);
    (void)steer_id(f, WEFT_STEER_CANCEL, &first);
    (void)steer_id(f, WEFT_STEER_REPLAY, &first);
    struct weft_claim_result result = claim(f, f->a, 2);
    ok(result.count == 2 && weft_id_cmp(&result.item[0].id, &first) == 0 &&
           weft_id_cmp(&result.item[1].id, &second) == 0,
       "the order of submission is for life");
}

CASE(replay_policy_goes_on)
{
    static const struct weft_policy policy = {
        .max_attempts = 1, .lease_ms = 4000, .attempt_timeout_ms = 2000};
    struct weft_claimed lease = start_policy(f, &policy);
    (void)fail(f, f->a, &lease, "x");
    (void)steer_id(f, WEFT_STEER_REPLAY, &lease.id);
    struct weft_claimed next = take(f, f->b, lease.lane);
    is_int(next.lease_expires_us, f->now_us + 4000 * WEFT_MS, "the lease time");
    forward_ms(f, 2000);
    is_int(run_pass(f, f->a, WEFT_SCANNER_ATTEMPT_TIMEOUT).failed, 1,
           "the limit of one attempt is kept");
}

CASE(replay_is_bounded_and_leaves_other_items)
{
    /* The count of replays is a small number in the store: its end is a clear answer, not a crash
     * of the whole call. */
    struct weft_claimed worn = bring(f, WEFT_STATE_SUCCEEDED, NULL);
    run_sql_of(f, "UPDATE weft.outcome SET replays = 30000", "UPDATE outcome SET replays = 30000");
    struct weft_claimed fresh = bring(f, WEFT_STATE_SUCCEEDED, NULL);
    struct weft_execution before = describe(f, &worn.id);
    const struct weft_steer item[] = {{.id = worn.id}, {.id = fresh.id}};
    struct weft_steered answer[2];
    const struct weft_steering call = {
        .kind = WEFT_STEER_REPLAY, .ns = "default", .item = item, .count = 2};
    is_int(engine_steer(f->a, &call, answer, &f->err), WEFT_OK, "the call succeeds");
    ok(answer[0].err.rc == WEFT_NOT_LIVE && !answer[0].changed &&
           answer[0].state == WEFT_STATE_SUCCEEDED,
       "one replay too many is refused");
    ok(answer[1].err.rc == WEFT_OK && answer[1].changed, "the other item of the call is replayed");
    struct weft_execution after = describe(f, &worn.id);
    ok(same_execution(&before, &after), "the refused replay changes nothing");
}

CASE(replay_many_in_one_call)
{
    enum { COUNT = 25 };
    struct weft_claimed lease[COUNT];
    struct weft_steer item[COUNT];
    struct weft_steered answer[COUNT];
    for (int i = 0; i < COUNT; i++) {
        lease[i] = bring(f, i % 2 ? WEFT_STATE_FAILED : WEFT_STATE_SUCCEEDED,
                         &(struct weft_spec){.priority = i});
        item[i] = (struct weft_steer){.id = lease[i].id};
    }
    const struct weft_steering call = {
        .kind = WEFT_STEER_REPLAY, .ns = "default", .item = item, .count = COUNT};
    is_int(engine_steer(f->a, &call, answer, &f->err), WEFT_OK, "the call succeeds");
    int good = 0;
    for (int i = 0; i < COUNT; i++) {
        struct weft_execution now = describe(f, &lease[i].id);
        struct weft_claimed next = take(f, f->b, lease[i].lane);
        good += answer[i].changed && now.state == WEFT_STATE_READY && now.priority == i &&
                now.attempt == 1 + i % 2 && now.epoch == 1 &&
                attempts(f, &lease[i].id).count == 1 && weft_id_cmp(&next.id, &lease[i].id) == 0;
    }
    is_int(good, COUNT, "each came back as itself");
}
