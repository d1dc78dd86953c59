/* SPDX-License-Identifier: Apache-2.0 */

/* A caller that does not hold the lease changes nothing and gets the exact reason. */

#include "conformance.h"

#include "core/state.h"
#include "engine/job/leases.h"
#include "weft/weft.h"

/* Ways to lose a lease that are not the holder's own word. */
enum thief {
    CANCEL,
    DEADLINE,
    EXPIRY,
    TIMEOUT,
    REVOKE,
};

static const struct weft_policy patient = {.initial_ms = -1, .attempt_timeout_ms = 20000};
static const struct weft_policy strict = {.max_attempts = 1, .attempt_timeout_ms = 20000};

static void take_away(struct fixture *f, const struct weft_claimed *lease, enum thief how)
{
    struct weft_steer item = {.id = lease->id, .deadline_us = f->now_us + 1000 * WEFT_MS};
    switch (how) {
    case CANCEL:
        (void)steer(f, WEFT_STEER_CANCEL, &item);
        break;
    case REVOKE:
        (void)steer(f, WEFT_STEER_REVOKE, &item);
        break;
    case DEADLINE:
        (void)steer(f, WEFT_STEER_SET_DEADLINE, &item);
        forward_ms(f, 1000);
        (void)run_pass(f, f->b, WEFT_SCANNER_EXECUTION_DEADLINE);
        break;
    case EXPIRY:
        forward_ms(f, 30000);
        (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
        break;
    case TIMEOUT:
        forward_ms(f, 20000);
        (void)run_pass(f, f->b, WEFT_SCANNER_ATTEMPT_TIMEOUT);
        break;
    }
}

static const struct theft {
    const char *name;
    enum thief how;
    const struct weft_policy *policy;
    enum weft_state state;   /* what it leaves behind */
    enum weft_fence at_once; /* the reason then */
    enum weft_fence later;   /* and when another worker has it, or had it */
} theft[] = {
    {"cancel", CANCEL, NULL, WEFT_STATE_CANCELLED, WEFT_FENCE_CANCELLED, WEFT_FENCE_CANCELLED},
    {"deadline", DEADLINE, NULL, WEFT_STATE_EXPIRED, WEFT_FENCE_EXPIRED, WEFT_FENCE_EXPIRED},
    {"expiry", EXPIRY, NULL, WEFT_STATE_READY, WEFT_FENCE_LOST, WEFT_FENCE_RECLAIMED},
    {"timeout", TIMEOUT, &patient, WEFT_STATE_READY, WEFT_FENCE_TIMED_OUT, WEFT_FENCE_TIMED_OUT},
    {"final timeout", TIMEOUT, &strict, WEFT_STATE_FAILED, WEFT_FENCE_TIMED_OUT,
     WEFT_FENCE_TIMED_OUT},
    {"revoke", REVOKE, NULL, WEFT_STATE_READY, WEFT_FENCE_REVOKED, WEFT_FENCE_REVOKED},
};

/* From the theft to the end of the next life, the old holder can do nothing at any point. */
static void expect_fenced_for_ever(struct fixture *f, const struct theft *row)
{
    struct weft_claimed lease = start_policy(f, row->policy);
    take_away(f, &lease, row->how);
    printf("# %s: at once\n", row->name);
    is_int(state_of(f, &lease.id), row->state, "%s: the state after the loss", row->name);
    expect_fenced(f, &lease, row->at_once);
    if (!weft_state_living(row->state)) {
        printf("# %s: replayed, not yet claimed\n", row->name);
        (void)steer_id(f, WEFT_STEER_REPLAY, &lease.id);
        expect_fenced(f, &lease, row->at_once);
    }
    printf("# %s: another worker has it\n", row->name);
    struct weft_claimed next = take(f, f->b, lease.lane);
    expect_fenced(f, &lease, row->later);
    is_int(renew(f, f->b, &next).err.rc, WEFT_OK, "%s: the new holder is not disturbed", row->name);
    printf("# %s: another worker has finished it\n", row->name);
    is_int(complete(f, f->b, &next, "\"new\"").err.rc, WEFT_OK, "%s: the next holder finishes",
           row->name);
    expect_fenced(f, &lease, row->later);
    is_str(result_text(f, &lease.id), "\"new\"", "%s: the result is the new holder's", row->name);
}

CASE(fencing_gives_the_reason_of_the_lost_lease)
{
    for (size_t i = 0; i < WEFT_LEN(theft); i++)
        expect_fenced_for_ever(f, &theft[i]);
}

CASE(fencing_after_the_last_lost_lease)
{
    struct weft_claimed first = start_policy(f, &(struct weft_policy){.max_lost = 1});
    take_away(f, &first, EXPIRY);
    struct weft_claimed last = take(f, f->b, first.lane);
    take_away(f, &last, EXPIRY);
    is_int(state_of(f, &last.id), WEFT_STATE_FAILED,
           "the execution is given up after too many losses");
    expect_fenced(f, &last, WEFT_FENCE_LOST);
    expect_fenced(f, &first, WEFT_FENCE_RECLAIMED);
}

CASE(fencing_epochs_that_were_never_given)
{
    static const enum weft_state state[] = {WEFT_STATE_READY,     WEFT_STATE_DELAYED,
                                            WEFT_STATE_RUNNING,   WEFT_STATE_SUCCEEDED,
                                            WEFT_STATE_CANCELLED, WEFT_STATE_FAILED};
    static const int32_t ahead[] = {2, 3, INT32_MAX};
    for (size_t s = 0; s < WEFT_LEN(state); s++)
        for (size_t e = 0; e < WEFT_LEN(ahead); e++) {
            printf("# %s, epoch %d\n", weft_state_name(state[s]), ahead[e]);
            struct weft_claimed lease = bring(f, state[s], NULL);
            lease.epoch = ahead[e];
            expect_fenced(f, &lease, WEFT_FENCE_UNKNOWN);
        }
    const char *lane;
    struct weft_claimed never = {.id = submit_apart(f, NULL, &lane), .epoch = 1};
    printf("# never claimed\n");
    expect_fenced(f, &never, WEFT_FENCE_UNKNOWN);
}

CASE(fencing_epoch_below_one_is_no_epoch)
{
    static const int32_t wrong[] = {0, -1, INT32_MIN};
    struct weft_claimed lease = start(f, NULL), forged = lease;
    struct weft_execution before = describe(f, &lease.id);
    for (size_t i = 0; i < WEFT_LEN(wrong); i++) {
        forged.epoch = wrong[i];
        const struct weft_lease_answer answer[] = {
            renew(f, f->a, &forged),
            complete(f, f->b, &forged, "1"),
            fail(f, f->a, &forged, "x"),
            put_back(f, WEFT_PUT_BACK_DELAY, &forged, 1000),
            put_back(f, WEFT_PUT_BACK_RELEASE, &forged, 0),
        };
        for (size_t k = 0; k < WEFT_LEN(answer); k++) {
            is_int(answer[k].err.rc, WEFT_INVALID_VALUE, "epoch %d, operation %zu", wrong[i], k);
            is_str(answer[k].err.field, "epoch", "the field is named");
        }
    }
    struct weft_execution after = describe(f, &lease.id);
    ok(same_execution(&before, &after), "fenced calls change nothing");
    is_int(renew(f, f->a, &lease).err.rc, WEFT_OK, "the true holder still has it");
}

CASE(fencing_an_older_epoch_of_many)
{
    struct weft_claimed lease[4];
    lease[0] = start(f, NULL);
    for (size_t i = 1; i < WEFT_LEN(lease); i++) {
        take_away(f, &lease[i - 1], EXPIRY);
        lease[i] = take(f, i % 2 ? f->b : f->a, lease[0].lane);
    }
    for (size_t i = 0; i + 1 < WEFT_LEN(lease); i++)
        expect_fenced(f, &lease[i], WEFT_FENCE_RECLAIMED);
    is_int(complete(f, f->b, &lease[3], "1").err.rc, WEFT_OK, "only the newest may finish");
}

CASE(fencing_late_but_not_taken_is_in_time)
{
    /* The lease time says when others may take it, never whether a write is accepted. */
    struct weft_claimed lease = start(f, NULL), other = start(f, NULL), third = start(f, NULL);
    forward_ms(f, 300000);
    struct weft_lease_answer answer = renew(f, f->b, &lease);
    ok(answer.err.rc == WEFT_OK && answer.lease_expires_us == f->now_us + 30000 * WEFT_MS,
       "a renewal ten lease times late is accepted");
    is_int(complete(f, f->b, &other, "1").err.rc, WEFT_OK,
           "a completion ten lease times late is accepted");
    is_int(fail(f, f->b, &third, "x").err.rc, WEFT_OK,
           "a failure ten lease times late is accepted");
    is_int(run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY).handled, 0,
           "lease expiry finds none of the three");
    is_int(complete(f, f->a, &lease, "1").err.rc, WEFT_OK, "the renewed one is finished as well");
}

/* What a holder may say, and what a second, other word of it is answered. */
enum word { COMPLETE, FAIL, DELAY, RELEASE, WORDS };

static struct weft_lease_answer say(struct fixture *f, enum word word,
                                    const struct weft_claimed *lease)
{
    switch (word) {
    case COMPLETE:
        return complete(f, f->b, lease, "1");
    case FAIL:
        return fail(f, f->b, lease, "x");
    case DELAY:
        return put_back(f, WEFT_PUT_BACK_DELAY, lease, 1000);
    case RELEASE:
    case WORDS:
        break;
    }
    return put_back(f, WEFT_PUT_BACK_RELEASE, lease, 0);
}

static void expect_other_words_fenced(struct fixture *f, const struct weft_claimed *lease,
                                      enum word said, enum weft_fence fence)
{
    static const char *const name[WORDS] = {"complete", "fail", "delay", "release"};
    struct weft_execution before = describe(f, &lease->id);
    size_t ended = attempts(f, &lease->id).count;
    for (enum word next = COMPLETE; next < WORDS; next++) {
        if (next == said)
            continue;
        struct weft_lease_answer answer = say(f, next, lease);
        ok(answer.err.rc == WEFT_FENCED && answer.fence == fence, "%s, then %s: %s (got %s, %s)",
           name[said], name[next], weft_fence_name(fence), weft_rc_wire(answer.err.rc),
           weft_fence_name(answer.fence));
        is_int(answer.state, before.state, "%s, then %s: the state now", name[said], name[next]);
    }
    struct weft_lease_answer answer = renew(f, f->a, lease);
    ok(answer.err.rc == WEFT_FENCED && answer.fence == fence, "%s, then renew: %s", name[said],
       weft_fence_name(fence));
    struct weft_execution after = describe(f, &lease->id);
    ok(same_execution(&before, &after) && attempts(f, &lease->id).count == ended,
       "%s: the first word stands", name[said]);
}

CASE(fencing_a_holder_cannot_change_its_word)
{
    static const enum weft_fence fence[WORDS] = {
        [COMPLETE] = WEFT_FENCE_FINISHED,
        [FAIL] = WEFT_FENCE_FINISHED,
        [DELAY] = WEFT_FENCE_RELEASED,
        [RELEASE] = WEFT_FENCE_RELEASED,
    };
    static const struct weft_policy policy = {.initial_ms = -1};
    for (enum word said = COMPLETE; said < WORDS; said++) {
        struct weft_claimed lease = start_policy(f, &policy);
        is_int(say(f, said, &lease).err.rc, WEFT_OK, "the first word");
        expect_other_words_fenced(f, &lease, said, fence[said]);
        if (said == COMPLETE)
            (void)steer_id(f, WEFT_STEER_REPLAY, &lease.id);
        if (said == DELAY) {
            forward_ms(f, 1000);
            (void)run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
        }
        (void)take(f, f->a, lease.lane);
        expect_other_words_fenced(f, &lease, said, fence[said]);
    }
    struct weft_claimed lease = start(f, NULL);
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true});
    expect_other_words_fenced(f, &lease, FAIL, WEFT_FENCE_FINISHED);
}

CASE(fencing_epoch_only_grows)
{
    struct weft_claimed lease = start_policy(f, &(struct weft_policy){.initial_ms = -1});
    int32_t epoch = lease.epoch;
    is_int(epoch, 1, "the first claim has epoch 1");
    static const enum thief how[] = {REVOKE, EXPIRY, CANCEL, DEADLINE};
    for (size_t i = 0; i < 3 * WEFT_LEN(how); i++) {
        if (i % 3 == 0)
            (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
        else if (i % 3 == 1)
            (void)fail(f, f->a, &lease, "x");
        else
            take_away(f, &lease, how[i / 3]);
        is_int(describe(f, &lease.id).epoch, epoch, "losing it leaves the epoch");
        if (!weft_state_living(state_of(f, &lease.id)))
            (void)steer_id(f, WEFT_STEER_REPLAY, &lease.id);
        is_int(describe(f, &lease.id).epoch, epoch, "a replay keeps the epoch");
        lease = take(f, i % 2 ? f->a : f->b, lease.lane);
        epoch++;
        is_int(lease.epoch, epoch, "claim %d has the next one", epoch);
    }
}
