/* SPDX-License-Identifier: Apache-2.0 */

/* Steering by id: priority, deadline, revoke, cancel; and several of them in one call. */

#include "conformance.h"
#include "direct.h"

#include "base/id.h"
#include "base/limits.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "weft/weft.h"

static struct weft_steered set_priority(struct fixture *f, const struct weft_id *id, int32_t to)
{
    return steer(f, WEFT_STEER_REPRIORITIZE, &(struct weft_steer){.id = *id, .priority = to});
}

static struct weft_steered set_deadline(struct fixture *f, const struct weft_id *id, weft_usec to)
{
    return steer(f, WEFT_STEER_SET_DEADLINE, &(struct weft_steer){.id = *id, .deadline_us = to});
}

CASE(steer_priority_decides_the_order)
{
    struct weft_id id[4];
    for (size_t i = 0; i < WEFT_LEN(id); i++)
        id[i] = submit_ok(f, &(struct weft_spec){.kind = "job", .priority = 3});
    struct weft_steered answer = set_priority(f, &id[2], 10);
    ok(answer.err.rc == WEFT_OK && answer.changed && answer.state == WEFT_STATE_READY, "raised");
    (void)set_priority(f, &id[0], -1);
    is_int(describe(f, &id[2]).priority, 10, "the new priority is stored");
    static const size_t order[] = {2, 1, 3, 0}; /* equals stay in the order of submission */
    struct weft_claim_result result = claim(f, f->b, 4);
    is_int(result.count, 4, "all are claimed");
    for (size_t i = 0; i < result.count && i < WEFT_LEN(order); i++)
        ok(weft_id_cmp(&result.item[i].id, &id[order[i]]) == 0, "place %zu", i + 1);
    is_int(result.item[0].priority, 10, "the worker sees the priority");
}

CASE(steer_priority_back_and_forth_keeps_the_place)
{
    struct weft_id first = submit_job(f), second = submit_job(f);
    (void)set_priority(f, &first, -5);
    (void)set_priority(f, &first, 0);
    struct weft_claim_result result = claim(f, f->a, 2);
    ok(result.count == 2 && weft_id_cmp(&result.item[0].id, &first) == 0 &&
           weft_id_cmp(&result.item[1].id, &second) == 0,
       "the order of submission is for life");
}

CASE(steer_priority_of_every_living_state)
{
    static const enum weft_state state[] = {WEFT_STATE_READY, WEFT_STATE_DELAYED,
                                            WEFT_STATE_RUNNING};
    for (size_t i = 0; i < WEFT_LEN(state); i++) {
        const char *was = weft_state_name(state[i]);
        struct weft_claimed lease = bring(f, state[i], NULL);
        struct weft_execution before = describe(f, &lease.id);
        is_int(set_priority(f, &lease.id, 9).changed, true, "%s: changed", was);
        struct weft_execution after = describe(f, &lease.id);
        is_int(after.priority, 9, "%s: the new priority is stored", was);
        before.priority = 9;
        ok(same_execution(&before, &after), "%s: no other field changed", was);
        struct weft_steered again = set_priority(f, &lease.id, 9);
        ok(again.err.rc == WEFT_OK && !again.changed, "%s: the same again is no change", was);
        if (state[i] == WEFT_STATE_RUNNING)
            is_int(complete(f, f->b, &lease, NULL).err.rc, WEFT_OK, "the holder keeps its lease");
    }
}

CASE(steer_priority_bounds)
{
    struct weft_id id = submit_job(f);
    static const struct {
        int32_t priority;
        enum weft_rc rc;
    } row[] = {{32767, WEFT_OK},
               {-32768, WEFT_OK},
               {32768, WEFT_INVALID_VALUE},
               {-32769, WEFT_INVALID_VALUE},
               {INT32_MAX, WEFT_INVALID_VALUE},
               {INT32_MIN, WEFT_INVALID_VALUE}};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        int32_t before = describe(f, &id).priority;
        struct weft_steered answer = set_priority(f, &id, row[i].priority);
        is_int(answer.err.rc, row[i].rc, "priority %d", row[i].priority);
        is_int(describe(f, &id).priority, row[i].rc ? before : row[i].priority,
               "the priority is %d now", row[i].rc ? before : row[i].priority);
        if (row[i].rc)
            is_str(answer.err.field, "priority", "the field is named");
        struct weft_spec spec = {.kind = "job", .priority = row[i].priority};
        is_int(submit(f, f->a, &spec).err.rc, row[i].rc, "submit judges priority %d the same way",
               row[i].priority);
    }
}

CASE(steer_of_ended_executions_is_refused)
{
    static const enum weft_state ended[] = {WEFT_STATE_SUCCEEDED, WEFT_STATE_FAILED,
                                            WEFT_STATE_CANCELLED, WEFT_STATE_EXPIRED};
    static const enum weft_steer_kind kind[] = {WEFT_STEER_CANCEL, WEFT_STEER_REPRIORITIZE,
                                                WEFT_STEER_REVOKE, WEFT_STEER_SET_DEADLINE};
    for (size_t s = 0; s < WEFT_LEN(ended); s++) {
        struct weft_claimed lease = bring(f, ended[s], NULL);
        struct weft_execution before = describe(f, &lease.id);
        for (size_t k = 0; k < WEFT_LEN(kind); k++) {
            if (kind[k] == WEFT_STEER_CANCEL && ended[s] == WEFT_STATE_CANCELLED)
                continue; /* no change, but no error: see lifecycle_cancel_... */
            const struct weft_steer item = {
                .id = lease.id, .priority = 4, .deadline_us = f->now_us + WEFT_SECOND};
            struct weft_steered answer = steer(f, kind[k], &item);
            ok(answer.err.rc == WEFT_NOT_LIVE && answer.state == ended[s] && !answer.changed,
               "steering of kind %d when %s (got %s)", (int)kind[k], weft_state_name(ended[s]),
               weft_rc_wire(answer.err.rc));
        }
        struct weft_execution after = describe(f, &lease.id);
        ok(same_execution(&before, &after), "%s: nothing changed", weft_state_name(ended[s]));
    }
}

CASE(steer_deadline_set_moved_and_cleared)
{
    struct weft_id id = submit_job(f);
    is_int(describe(f, &id).deadline_us, 0, "a job without a deadline has none");
    weft_usec near = f->now_us + 1000 * WEFT_MS, far = f->now_us + 5000 * WEFT_MS;
    is_int(set_deadline(f, &id, near).changed, true, "a deadline is set");
    is_int(set_deadline(f, &id, near).changed, false, "the same again is no change");
    is_int(describe(f, &id).deadline_us, near, "the new deadline is stored");
    is_int(set_deadline(f, &id, far).changed, true, "the deadline is moved");
    forward_ms(f, 1000);
    is_int(run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE).handled, 0,
           "the old one is forgotten");
    is_int(set_deadline(f, &id, 0).changed, true, "the deadline is cleared");
    is_int(describe(f, &id).deadline_us, 0, "the cleared deadline is gone");
    forward_ms(f, 10000);
    struct weft_pass_report report = run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE);
    ok(report.handled == 0 && report.next_due_us == WEFT_NEVER, "nothing expires");
    is_int(state_of(f, &id), WEFT_STATE_READY, "the execution without a deadline stays ready");
}

CASE(steer_deadline_must_be_in_the_future)
{
    struct weft_id id = submit_job(f);
    (void)set_deadline(f, &id, f->now_us + WEFT_SECOND);
    const weft_usec wrong[] = {f->now_us, f->now_us - 1, 1, -1, WEFT_MOMENT_MAX_US + 1, INT64_MAX};
    for (size_t i = 0; i < WEFT_LEN(wrong); i++) {
        struct weft_steered answer = set_deadline(f, &id, wrong[i]);
        is_int(answer.err.rc, WEFT_INVALID_VALUE, "deadline %lld", (long long)wrong[i]);
        is_str(answer.err.field, "deadline_at", "the field is named");
    }
    is_int(describe(f, &id).deadline_us, f->now_us + WEFT_SECOND, "the old deadline holds");
    is_int(set_deadline(f, &id, f->now_us + 1).err.rc, WEFT_OK, "the next microsecond is future");
}

CASE(steer_revoke_gives_the_work_to_another)
{
    struct weft_claimed lease = start(f, NULL);
    struct weft_steer item = {.id = lease.id, .reason = "that machine is on fire"};
    struct weft_steered answer = steer(f, WEFT_STEER_REVOKE, &item);
    ok(answer.err.rc == WEFT_OK && answer.changed && answer.state == WEFT_STATE_READY, "revoked");
    struct weft_execution now = describe(f, &lease.id);
    is_int(now.attempt, 1, "no attempt is spent");
    is_int(now.lost, 0, "a revoked lease is not counted as lost");
    is_str(now.worker, NULL, "the revoked execution has no worker");
    expect_last_attempt(f, &lease.id,
                        &(struct weft_attempt){.ended = "revoked", .worker = "worker-a"});
    answer = steer(f, WEFT_STEER_REVOKE, &item);
    ok(answer.err.rc == WEFT_NOT_LIVE && answer.state == WEFT_STATE_READY,
       "there is no lease to revoke a second time");
    struct weft_claimed next = take(f, f->b, lease.lane);
    ok(next.epoch == 2 && next.attempt == 1, "another worker has it, in the same attempt");
    is_int(complete(f, f->b, &next, NULL).err.rc, WEFT_OK, "the other worker may complete it");
}

CASE(steer_several_are_answered_each)
{
    struct weft_claimed ready = bring(f, WEFT_STATE_READY, NULL);
    struct weft_claimed over = bring(f, WEFT_STATE_SUCCEEDED, NULL);
    struct weft_claimed running = start(f, NULL);
    char endless[WEFT_REASON_MAX + 2];
    memset(endless, 'x', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = '\0';
    struct weft_steer item[] = {
        {.id = running.id, .reason = "one"},
        {.id = over.id},
        {.id = ready.id, .reason = endless},
        {.id = running.id, .reason = "two"}, /* twice in one call */
        {.id = ready.id, .ns = "absent"},
        {.reason = "an empty id"},
    };
    struct weft_steered answer[WEFT_LEN(item)];
    const struct weft_steering call = {
        .kind = WEFT_STEER_CANCEL, .ns = "default", .item = item, .count = WEFT_LEN(item)};
    is_int(engine_steer(f->b, &call, answer, &f->err), WEFT_OK, "the call succeeds");
    ok(answer[0].err.rc == WEFT_OK && answer[0].changed, "the first is cancelled");
    is_int(answer[1].err.rc, WEFT_NOT_LIVE, "one that succeeded is refused");
    ok(answer[2].err.rc != WEFT_OK && answer[2].err.field &&
           strcmp(answer[2].err.field, "reason") == 0,
       "a reason that is too long is refused");
    ok(answer[3].err.rc == WEFT_OK && !answer[3].changed && answer[3].state == WEFT_STATE_CANCELLED,
       "a repeat in the same call is no change");
    is_int(answer[4].err.rc, WEFT_NOT_FOUND, "another namespace is not found");
    is_int(answer[5].err.rc, WEFT_NOT_FOUND, "an unknown id is not found");
    is_str(describe(f, &running.id).reason, "one", "the first reason counts");
    is_int(state_of(f, &ready.id), WEFT_STATE_READY, "the item that was refused is unchanged");
}

CASE(steer_replay_twice_in_one_call)
{
    struct weft_claimed over = bring(f, WEFT_STATE_SUCCEEDED, NULL);
    const struct weft_steer item[] = {{.id = over.id}, {.id = over.id}};
    struct weft_steered answer[2];
    const struct weft_steering call = {
        .kind = WEFT_STEER_REPLAY, .ns = "default", .item = item, .count = 2};
    is_int(engine_steer(f->a, &call, answer, &f->err), WEFT_OK, "the call succeeds");
    ok(answer[0].err.rc == WEFT_OK && answer[0].changed, "the first is a replay");
    ok(answer[1].err.rc == WEFT_NOT_LIVE && answer[1].state == WEFT_STATE_READY,
       "the second finds it living");
}
