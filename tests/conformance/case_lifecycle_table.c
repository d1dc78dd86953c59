/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every operation on every state that can be reached, compared with the transition table: an
 * operation that the table refuses is refused and changes nothing a reader could see; an operation
 * that it allows leads to the state in the table.
 */

#include "conformance.h"

#include "core/state.h"
#include "engine/job/leases.h"
#include "weft/weft.h"

/* How an execution gets to each state, as the word its lease ended with. */
/* clang-format off */
static const struct {
    enum weft_state state;
    enum weft_ended by;
} reachable[] = {
    {WEFT_STATE_READY,     WEFT_ENDED_RELEASED},
    {WEFT_STATE_DELAYED,   WEFT_ENDED_DELAYED},
    {WEFT_STATE_RUNNING,   WEFT_ENDED_NONE},
    {WEFT_STATE_SUCCEEDED, WEFT_ENDED_COMPLETED},
    {WEFT_STATE_FAILED,    WEFT_ENDED_FAILED},
    {WEFT_STATE_CANCELLED, WEFT_ENDED_CANCELLED},
    {WEFT_STATE_EXPIRED,   WEFT_ENDED_EXPIRED},
};
/* clang-format on */

/* What an operation answered, whatever its kind. */
struct reply {
    enum weft_rc rc;
    enum weft_state state;
    bool silent; /* passes and claims refuse by doing nothing */
};

typedef struct reply op_fn(struct fixture *f, const struct weft_claimed *lease);

static struct reply of_lease(struct weft_lease_answer answer)
{
    return (struct reply){.rc = answer.err.rc, .state = answer.state};
}

static struct reply of_steer(struct fixture *f, enum weft_steer_kind kind,
                             const struct weft_claimed *lease)
{
    const struct weft_steer item = {
        .id = lease->id, .priority = 7, .deadline_us = f->now_us + WEFT_SECOND};
    struct weft_steered answer = steer(f, kind, &item);
    return (struct reply){.rc = answer.err.rc, .state = answer.state};
}

static struct reply of_pass(struct fixture *f, enum weft_scanner pass,
                            const struct weft_claimed *lease)
{
    (void)run_pass(f, f->b, pass);
    return (struct reply){.state = state_of(f, &lease->id), .silent = true};
}

static struct reply do_renew(struct fixture *f, const struct weft_claimed *lease)
{
    return of_lease(renew(f, f->b, lease));
}

static struct reply do_complete(struct fixture *f, const struct weft_claimed *lease)
{
    return of_lease(complete(f, f->b, lease, "1"));
}

static struct reply do_fail(struct fixture *f, const struct weft_claimed *lease)
{
    return of_lease(fail_as(f, f->b, lease, &(struct weft_failure){.permanent = true}));
}

static struct reply do_retry(struct fixture *f, const struct weft_claimed *lease)
{
    return of_lease(fail_as(f, f->b, lease, &(struct weft_failure){.retry_after_ms = 500}));
}

static struct reply do_retry_now(struct fixture *f, const struct weft_claimed *lease)
{
    return of_lease(fail_as(f, f->b, lease, &(struct weft_failure){.retry_after_ms = -1}));
}

static struct reply do_delay(struct fixture *f, const struct weft_claimed *lease)
{
    return of_lease(put_back(f, WEFT_PUT_BACK_DELAY, lease, 500));
}

static struct reply do_release(struct fixture *f, const struct weft_claimed *lease)
{
    return of_lease(put_back(f, WEFT_PUT_BACK_RELEASE, lease, 0));
}

static struct reply do_revoke(struct fixture *f, const struct weft_claimed *lease)
{
    return of_steer(f, WEFT_STEER_REVOKE, lease);
}

static struct reply do_cancel(struct fixture *f, const struct weft_claimed *lease)
{
    return of_steer(f, WEFT_STEER_CANCEL, lease);
}

static struct reply do_replay(struct fixture *f, const struct weft_claimed *lease)
{
    return of_steer(f, WEFT_STEER_REPLAY, lease);
}

static struct reply do_prioritize(struct fixture *f, const struct weft_claimed *lease)
{
    return of_steer(f, WEFT_STEER_REPRIORITIZE, lease);
}

static struct reply do_set_deadline(struct fixture *f, const struct weft_claimed *lease)
{
    return of_steer(f, WEFT_STEER_SET_DEADLINE, lease);
}

static struct reply do_claim(struct fixture *f, const struct weft_claimed *lease)
{
    (void)claim_lane(f, f->b, lease->lane);
    return (struct reply){.state = state_of(f, &lease->id), .silent = true};
}

static struct reply do_promote(struct fixture *f, const struct weft_claimed *lease)
{
    forward_ms(f, 1000);
    return of_pass(f, WEFT_SCANNER_DELAYED_PROMOTER, lease);
}

static struct reply do_lose(struct fixture *f, const struct weft_claimed *lease)
{
    forward_ms(f, 30000);
    return of_pass(f, WEFT_SCANNER_LEASE_EXPIRY, lease);
}

static struct reply do_time_out(struct fixture *f, const struct weft_claimed *lease)
{
    forward_ms(f, 40000);
    return of_pass(f, WEFT_SCANNER_ATTEMPT_TIMEOUT, lease);
}

static struct reply do_expire(struct fixture *f, const struct weft_claimed *lease)
{
    forward_ms(f, 60000);
    return of_pass(f, WEFT_SCANNER_EXECUTION_DEADLINE, lease);
}

/* clang-format off */
static const struct {
    const char *name;
    op_fn *run;
    enum weft_event_kind event;
    enum weft_ended word; /* what it would leave behind: the holder may say it again */
} op[] = {
    {"renew",        do_renew,        WEFT_EVENT_RENEW,        WEFT_ENDED_NONE},
    {"complete",     do_complete,     WEFT_EVENT_COMPLETE,     WEFT_ENDED_COMPLETED},
    {"fail",         do_fail,         WEFT_EVENT_FAIL,         WEFT_ENDED_FAILED},
    {"retry",        do_retry,        WEFT_EVENT_RETRY,        WEFT_ENDED_FAILED},
    {"retry now",    do_retry_now,    WEFT_EVENT_RETRY_NOW,    WEFT_ENDED_FAILED},
    {"delay",        do_delay,        WEFT_EVENT_DELAY,        WEFT_ENDED_DELAYED},
    {"release",      do_release,      WEFT_EVENT_RELEASE,      WEFT_ENDED_RELEASED},
    {"revoke",       do_revoke,       WEFT_EVENT_REVOKE,       WEFT_ENDED_NONE},
    {"cancel",       do_cancel,       WEFT_EVENT_CANCEL,       WEFT_ENDED_CANCELLED},
    {"replay",       do_replay,       WEFT_EVENT_REPLAY,       WEFT_ENDED_NONE},
    {"prioritize",   do_prioritize,   WEFT_EVENT_PRIORITIZE,   WEFT_ENDED_NONE},
    {"set deadline", do_set_deadline, WEFT_EVENT_SET_DEADLINE, WEFT_ENDED_NONE},
    {"claim",        do_claim,        WEFT_EVENT_CLAIM,        WEFT_ENDED_NONE},
    {"promote",      do_promote,      WEFT_EVENT_PROMOTE,      WEFT_ENDED_NONE},
    {"lose",         do_lose,         WEFT_EVENT_LOSE,         WEFT_ENDED_NONE},
    {"time out",     do_time_out,     WEFT_EVENT_RETRY,        WEFT_ENDED_NONE},
    {"expire",       do_expire,       WEFT_EVENT_EXPIRE,       WEFT_ENDED_NONE},
};
/* clang-format on */

static void try_one(struct fixture *f, size_t s, size_t o)
{
    /* Each row has every timer it can have, none of them due yet. */
    const struct weft_spec spec = {
        .deadline_us = f->now_us + 60 * WEFT_SECOND,
        .policy = &(struct weft_policy){.no_jitter = true, .attempt_timeout_ms = 40000},
    };
    enum weft_state state = reachable[s].state;
    const char *was = weft_state_name(state);
    struct weft_claimed lease = bring(f, state, &spec);
    struct weft_execution before = describe(f, &lease.id);
    size_t ended = attempts(f, &lease.id).count;
    enum weft_state next = weft_state_next(state, op[o].event);

    struct reply reply = op[o].run(f, &lease);
    struct weft_execution after = describe(f, &lease.id);
    if (next != WEFT_STATE_NONE) {
        ok(reply.rc == WEFT_OK && reply.state == next,
           "%s when %s is answered with %s (got %s, %s)", op[o].name, was, weft_state_name(next),
           weft_rc_wire(reply.rc), weft_state_name(reply.state));
        is_int(after.state, next, "%s when %s leads there", op[o].name, was);
        return;
    }
    bool again = op[o].word != WEFT_ENDED_NONE && op[o].word == reachable[s].by;
    if (!reply.silent)
        ok((reply.rc == WEFT_OK) == again, "%s when %s is %s (got %s)", op[o].name, was,
           again ? "a repeat" : "refused", weft_rc_wire(reply.rc));
    ok(reply.state == state, "%s when %s tells the state", op[o].name, was);
    ok(same_execution(&before, &after) && attempts(f, &lease.id).count == ended,
       "%s when %s changes nothing", op[o].name, was);
}

CASE(lifecycle_every_operation_on_every_state)
{
    for (size_t s = 0; s < WEFT_LEN(reachable); s++)
        for (size_t o = 0; o < WEFT_LEN(op); o++)
            try_one(f, s, o);
}
