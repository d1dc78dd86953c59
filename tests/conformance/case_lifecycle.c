/* SPDX-License-Identifier: Apache-2.0 */

/* The life of an execution: from submission to its outcome and back. */

#include "conformance.h"
#include "direct.h"

#include "base/id.h"
#include "core/state.h"
#include "engine/job/execution_read.h"
#include "engine/job/leases.h"
#include "weft/weft.h"

CASE(lifecycle_submit_claim_complete)
{
    struct weft_id id = submit_ok(
        f, &(struct weft_spec){.kind = "resize", .payload = "{\"w\":1}", .payload_size = 7});
    is_int(state_of(f, &id), WEFT_STATE_READY, "ready after submit");
    struct weft_claimed lease = claim_one(f, f->b);
    ok(weft_id_cmp(&lease.id, &id) == 0, "another process claims it");
    is_str(lease.kind, "resize", "the claim has the kind");
    ok(lease.payload_size == 7 && memcmp(lease.payload, "{\"w\":1}", 7) == 0,
       "the claim has the payload");
    is_int(lease.epoch, 1, "the first epoch is 1");
    is_int(lease.attempt, 1, "the first attempt is 1");
    is_int(claim(f, f->a, 10).count, 0, "a further claim gets nothing");
    struct weft_lease_answer answer = complete(f, f->b, &lease, "{\"ok\":true}");
    is_int(answer.err.rc, WEFT_OK, "complete");
    is_int(answer.state, WEFT_STATE_SUCCEEDED, "succeeded");
    struct weft_execution end = describe(f, &id);
    is_int(end.state, WEFT_STATE_SUCCEEDED, "the described state is succeeded");
    is_str(end.worker, "worker-b", "the described worker is the one that had the lease");
    is_int(end.finished_us, f->now_us, "the execution finished at the store's time");
}

CASE(lifecycle_result_comes_back_as_given)
{
    static const char bytes[] = "\x00\xff\"\n\x00";
    struct weft_claimed lease = start(f, NULL), none = start(f, NULL);
    is_str(result_text(f, &lease.id), NULL, "no result before success");
    const struct weft_complete item = {.id = lease.id,
                                       .epoch = lease.epoch,
                                       .result = bytes,
                                       .result_size = sizeof(bytes),
                                       .content_type = "application/octet-stream"};
    struct weft_lease_answer answer;
    struct weft_bytes got = {0};
    is_int(engine_complete(f->b, &item, 1, &answer, &f->err), WEFT_OK, "complete");
    const struct weft_bytes_of of = {.kind = WEFT_BYTES_RESULT, .ns = "default", .id = lease.id};
    is_int(weft_engine_bytes(f->a, &of, f->arena, &got, &f->err), WEFT_OK, "there is a result");
    ok(got.size == sizeof(bytes) && memcmp(got.data, bytes, sizeof(bytes)) == 0,
       "the result is the same byte for byte");
    is_str(got.content_type, "application/octet-stream", "the result has its content type");
    (void)complete(f, f->a, &none, NULL);
    is_str(result_text(f, &none.id), NULL, "no result when none was given");
}

CASE(lifecycle_a_failure_has_no_result)
{
    static const enum weft_state ended[] = {WEFT_STATE_FAILED, WEFT_STATE_CANCELLED,
                                            WEFT_STATE_EXPIRED};
    for (size_t i = 0; i < WEFT_LEN(ended); i++) {
        struct weft_claimed lease = bring(f, ended[i], NULL);
        is_str(result_text(f, &lease.id), NULL, "%s: no result", weft_state_name(ended[i]));
    }
}

CASE(lifecycle_cancel_from_every_living_state)
{
    static const enum weft_state living[] = {WEFT_STATE_READY, WEFT_STATE_DELAYED,
                                             WEFT_STATE_RUNNING};
    for (size_t i = 0; i < WEFT_LEN(living); i++) {
        const char *was = weft_state_name(living[i]);
        struct weft_claimed lease = bring(f, living[i], NULL);
        size_t ended = attempts(f, &lease.id).count;
        struct weft_steer item = {.id = lease.id, .reason = "not wanted"};
        forward_ms(f, 10);
        struct weft_steered answer = steer(f, WEFT_STEER_CANCEL, &item);
        ok(answer.err.rc == WEFT_OK && answer.state == WEFT_STATE_CANCELLED && answer.changed,
           "%s: cancelled", was);
        struct weft_execution end = describe(f, &lease.id);
        is_int(end.state, WEFT_STATE_CANCELLED, "%s: reads as cancelled", was);
        is_str(end.reason, "not wanted", "%s: the reason is stored", was);
        is_str(end.by, "operator", "%s: the operator is named", was);
        is_int(end.finished_us, f->now_us, "%s: the time of the cancel is stored", was);
        bool held = living[i] == WEFT_STATE_RUNNING;
        is_str(end.worker, held ? "worker-a" : NULL, "%s: the holder is named", was);
        is_int(attempts(f, &lease.id).count, ended + held, "%s: a lease ended only if held", was);
        forward_ms(f, 60000);
        item.reason = "a later reason";
        answer = steer(f, WEFT_STEER_CANCEL, &item);
        ok(answer.err.rc == WEFT_OK && !answer.changed, "%s: a second cancel is no change", was);
        struct weft_execution still = describe(f, &lease.id);
        ok(same_execution(&end, &still), "%s: a second cancel leaves the first as it was", was);
        (void)run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
        (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
        is_int(claim_lane(f, f->b, lease.lane).count, 0,
               "%s: the cancelled execution is never claimed again", was);
    }
}

CASE(lifecycle_a_delay_ends_with_the_promoter)
{
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", .delay_ms = 1000});
    struct weft_execution item = describe(f, &id);
    is_int(item.state, WEFT_STATE_DELAYED, "delayed");
    is_int(item.run_at_us, f->now_us + 1000 * WEFT_MS, "the run time is kept");
    struct weft_pass_report report = run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
    is_int(report.next_due_us, item.run_at_us, "the promoter knows when to come back");
    forward_ms(f, 999);
    is_int(run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER).handled, 0, "a moment before: nothing");
    is_int(claim(f, f->b, 1).count, 0, "a delayed execution cannot be claimed");
    forward_ms(f, 1);
    is_int(claim(f, f->b, 1).count, 0,
           "at its time, before the promoter ran, it cannot be claimed");
    report = run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER);
    is_int(report.handled, 1, "the promoter handles one at its time");
    is_int(report.next_due_us, WEFT_NEVER, "the promoter has no further due time");
    item = describe(f, &id);
    ok(item.state == WEFT_STATE_READY && item.run_at_us == 0, "ready, waiting for no time");
    is_int(claim_one(f, f->a).attempt, 1, "claimed by a process that did not promote it");
}

CASE(lifecycle_a_start_in_the_past_is_now)
{
    struct weft_spec spec = {.kind = "job", .run_at_us = f->now_us - WEFT_SECOND};
    struct weft_id past = submit_ok(f, &spec);
    spec.run_at_us = f->now_us;
    struct weft_id now = submit_ok(f, &spec);
    spec.run_at_us = f->now_us + 1;
    struct weft_id soon = submit_ok(f, &spec);
    is_int(state_of(f, &past), WEFT_STATE_READY, "in the past: ready");
    is_int(state_of(f, &now), WEFT_STATE_READY, "right now: ready");
    is_int(state_of(f, &soon), WEFT_STATE_DELAYED, "a microsecond ahead: delayed");
}

CASE(lifecycle_started_is_set_once)
{
    struct weft_id id = submit_job(f);
    is_int(describe(f, &id).started_us, 0, "a submitted execution has no started_us");
    forward_ms(f, 5);
    weft_usec first = f->now_us;
    struct weft_claimed lease = claim_one(f, f->a);
    is_int(describe(f, &id).started_us, first, "started with the first claim");
    forward_ms(f, 5);
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    is_int(describe(f, &id).started_us, first, "started_us is the first claim after a release");
    lease = claim_one(f, f->b);
    struct weft_execution item = describe(f, &id);
    is_int(item.started_us, first, "started_us is the first claim after the second claim");
    is_int(item.claimed_us, f->now_us, "claimed_us is the second claim");
    (void)complete(f, f->a, &lease, NULL);
    is_int(describe(f, &id).started_us, first, "started_us is the first claim at the end");
    (void)steer_id(f, WEFT_STEER_REPLAY, &id);
    forward_ms(f, 5);
    (void)claim_one(f, f->a);
    is_int(describe(f, &id).started_us, first, "started_us is the first claim in the next life");
}

/* What a reader must find in a state, beside the state. */
static void expect_described(struct fixture *f, enum weft_state state)
{
    const char *name = weft_state_name(state);
    struct weft_claimed lease = bring(f, state, NULL);
    struct weft_execution item = describe(f, &lease.id);
    bool running = state == WEFT_STATE_RUNNING, living = weft_state_living(state);
    is_int(item.epoch, 1, "%s: the epoch", name);
    is_int(item.attempt, 1, "%s: the attempt", name);
    is_str(item.ns, "default", "%s: the namespace", name);
    is_str(item.lane, lease.lane, "%s: the lane", name);
    is_str(item.kind, "job", "%s: the kind", name);
    is_int(item.percent, -1, "%s: no progress was reported", name);
    is_int(item.created_us, lease.created_us, "%s: when it was submitted", name);
    /* A lease belongs to a running execution; an ended one keeps the name of its last holder. */
    is_str(item.worker, running || !living ? "worker-a" : NULL, "%s: the worker", name);
    is_int(item.lease_expires_us, running ? lease.lease_expires_us : 0, "%s: the lease", name);
    ok((item.claimed_us != 0) == (running || !living), "%s: when the lease began", name);
    is_int(item.run_at_us, state == WEFT_STATE_DELAYED ? f->now_us + 1000 * WEFT_MS : 0,
           "%s: when it becomes ready", name);
    is_int(item.finished_us, living ? 0 : f->now_us, "%s: when it ended", name);
    is_str(item.error_class, state == WEFT_STATE_FAILED ? "error" : NULL, "%s: the error", name);
    is_str(item.by,
           state == WEFT_STATE_CANCELLED ? "operator"
           : state == WEFT_STATE_EXPIRED ? "execution_deadline"
                                         : NULL,
           "%s: who ended it, when the worker did not", name);
}

CASE(lifecycle_describe_in_every_state)
{
    static const enum weft_state state[] = {
        WEFT_STATE_READY,  WEFT_STATE_DELAYED,   WEFT_STATE_RUNNING, WEFT_STATE_SUCCEEDED,
        WEFT_STATE_FAILED, WEFT_STATE_CANCELLED, WEFT_STATE_EXPIRED,
    };
    for (size_t i = 0; i < WEFT_LEN(state); i++)
        expect_described(f, state[i]);
}

CASE(lifecycle_attempts_of_every_ending)
{
    static const struct {
        enum weft_state state;
        const char *ended;
    } row[] = {
        {WEFT_STATE_READY, "released"},      {WEFT_STATE_DELAYED, "delayed"},
        {WEFT_STATE_SUCCEEDED, "completed"}, {WEFT_STATE_FAILED, "failed"},
        {WEFT_STATE_CANCELLED, "cancelled"}, {WEFT_STATE_EXPIRED, "expired"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        weft_usec began = f->now_us;
        struct weft_claimed lease = bring(f, row[i].state, NULL);
        is_int(attempts(f, &lease.id).count, 1, "%s: one lease ended", row[i].ended);
        expect_last_attempt(f, &lease.id,
                            &(struct weft_attempt){.ended = row[i].ended,
                                                   .epoch = 1,
                                                   .attempt = 1,
                                                   .worker = "worker-a",
                                                   .started_us = began,
                                                   .ended_us = f->now_us});
    }
    struct weft_claimed running = start(f, NULL);
    is_int(attempts(f, &running.id).count, 0, "a lease that is held has not ended");
}

CASE(lifecycle_attempts_are_listed_in_order)
{
    struct weft_claimed lease = start(f, NULL);
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    struct weft_claimed second = take(f, f->b, lease.lane);
    (void)steer_id(f, WEFT_STEER_REVOKE, &lease.id);
    struct weft_claimed third = take(f, f->a, lease.lane);
    forward_ms(f, 30000);
    (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    struct weft_claimed fourth = take(f, f->b, lease.lane);
    (void)fail_as(f, f->b, &fourth, &(struct weft_failure){.retry_after_ms = -1});
    struct weft_claimed fifth = take(f, f->a, lease.lane);
    (void)complete(f, f->a, &fifth, NULL);
    static const struct {
        const char *ended, *worker;
        int attempt;
    } want[] = {{"released", "worker-a", 1},
                {"revoked", "worker-b", 1},
                {"lost", "worker-a", 1},
                {"failed", "worker-b", 1},
                {"completed", "worker-a", 2}};
    struct weft_attempts list = attempts(f, &lease.id);
    is_int(list.count, WEFT_LEN(want), "every lease is in the list");
    for (size_t i = 0; i < list.count && i < WEFT_LEN(want); i++) {
        is_str(list.item[i].ended, want[i].ended, "lease %zu ended", i + 1);
        is_str(list.item[i].worker, want[i].worker, "lease %zu had a worker", i + 1);
        is_int(list.item[i].attempt, want[i].attempt, "lease %zu had a number", i + 1);
        is_int(list.item[i].epoch, i + 1, "lease %zu had an epoch", i + 1);
    }
    ok(second.epoch == 2 && third.epoch == 3, "the workers knew theirs");
}

CASE(lifecycle_deadline_ends_every_living_state)
{
    static const enum weft_state living[] = {WEFT_STATE_READY, WEFT_STATE_DELAYED,
                                             WEFT_STATE_RUNNING};
    for (size_t i = 0; i < WEFT_LEN(living); i++) {
        const char *was = weft_state_name(living[i]);
        weft_usec deadline = f->now_us + 900 * WEFT_MS;
        struct weft_claimed lease =
            bring(f, living[i], &(struct weft_spec){.deadline_us = deadline});
        is_int(describe(f, &lease.id).deadline_us, deadline, "%s: the deadline is kept", was);
        is_int(lease.deadline_us, deadline, "%s: the lease has the deadline", was);
        forward_ms(f, 899);
        struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_EXECUTION_DEADLINE);
        ok(report.handled == 0 && report.next_due_us == deadline,
           "%s: the pass does nothing before the deadline", was);
        forward_ms(f, 1);
        report = run_pass(f, f->b, WEFT_SCANNER_EXECUTION_DEADLINE);
        ok(report.handled == 1 && report.failed == 1,
           "%s: the pass ends the execution at its deadline", was);
        struct weft_execution end = describe(f, &lease.id);
        is_int(end.state, WEFT_STATE_EXPIRED, "%s: expired", was);
        is_str(end.by, "execution_deadline", "%s: by the pass", was);
        is_str(end.reason, "its deadline passed", "%s: with the reason", was);
        is_int(end.finished_us, f->now_us, "%s: the time of the end is stored", was);
        is_int(run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE).handled, 0, "%s: once", was);
    }
}

CASE(lifecycle_an_ended_one_does_not_expire)
{
    weft_usec deadline = f->now_us + WEFT_SECOND;
    struct weft_claimed lease =
        bring(f, WEFT_STATE_SUCCEEDED, &(struct weft_spec){.deadline_us = deadline});
    forward_ms(f, 2000);
    is_int(run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE).handled, 0,
           "nothing is left to expire");
    is_int(state_of(f, &lease.id), WEFT_STATE_SUCCEEDED, "the execution stays succeeded");
    struct weft_spec late = {.kind = "job", .deadline_us = f->now_us};
    struct weft_submitted answer = submit(f, f->a, &late);
    is_int(answer.err.rc, WEFT_INVALID_VALUE, "a deadline that is already here is refused");
    is_str(answer.err.field, "deadline_at", "the error names deadline_at");
}

CASE(lifecycle_progress_is_stored_and_kept)
{
    struct weft_claimed lease = start(f, NULL);
    struct weft_renew item = {.id = lease.id,
                              .epoch = lease.epoch,
                              .has_progress = true,
                              .percent = 40,
                              .note = "halfway, nearly"};
    struct weft_lease_answer answer;
    is_int(engine_renew(f->b, &item, 1, &answer, &f->err), WEFT_OK, "progress");
    struct weft_execution seen = describe(f, &lease.id);
    is_int(seen.percent, 40, "percent");
    is_str(seen.note, "halfway, nearly", "the note is stored");
    (void)renew(f, f->a, &lease);
    is_int(describe(f, &lease.id).percent, 40, "a renewal without progress leaves it");
    item.percent = 30; /* progress may go back: the last report of the holder counts */
    item.note = NULL;
    is_int(engine_renew(f->a, &item, 1, &answer, &f->err), WEFT_OK, "progress again");
    seen = describe(f, &lease.id);
    is_int(seen.percent, 30, "the newer percent");
    is_str(seen.note, NULL, "a progress without a note clears the note");
    static const int32_t wrong[] = {-1, 101};
    for (size_t i = 0; i < WEFT_LEN(wrong); i++) {
        item.percent = wrong[i];
        is_int(engine_renew(f->a, &item, 1, &answer, &f->err), WEFT_OK, "the call succeeds");
        is_int(answer.err.rc, WEFT_INVALID_VALUE, "%d percent is refused", wrong[i]);
        is_str(answer.err.field, "progress.percent", "the error names progress.percent");
    }
    is_int(describe(f, &lease.id).percent, 30, "a refused percent is not stored");
}
