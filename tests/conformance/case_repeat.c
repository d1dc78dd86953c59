/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lost replies: a holder that says its word again gets the same answer, whatever has happened to
 * the execution since, and nothing changes. Also: many items in one call.
 */

#include "conformance.h"
#include "direct.h"

#include "base/arena.h"
#include "base/limits.h"
#include "core/state.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/execution_read.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

static const struct weft_policy plain = {.no_jitter = true};
static const struct weft_policy at_once = {.initial_ms = -1};

typedef struct weft_lease_answer say_fn(struct fixture *f, struct weft_engine *engine,
                                        const struct weft_claimed *lease, int turn);

/* Each is said with something else the second time: only the first counts. */
static struct weft_lease_answer say_complete(struct fixture *f, struct weft_engine *engine,
                                             const struct weft_claimed *lease, int turn)
{
    return complete(f, engine, lease, turn ? "\"again\"" : "\"first\"");
}

static struct weft_lease_answer say_fail(struct fixture *f, struct weft_engine *engine,
                                         const struct weft_claimed *lease, int turn)
{
    return fail(f, engine, lease, turn ? "again" : "first");
}

static struct weft_lease_answer say_give_up(struct fixture *f, struct weft_engine *engine,
                                            const struct weft_claimed *lease, int turn)
{
    return fail_as(
        f, engine, lease,
        &(struct weft_failure){.permanent = turn == 0, .error_class = turn ? "again" : "first"});
}

static struct weft_lease_answer say_delay(struct fixture *f, struct weft_engine *engine,
                                          const struct weft_claimed *lease, int turn)
{
    (void)engine;
    return put_back(f, WEFT_PUT_BACK_DELAY, lease, 700 + turn);
}

static struct weft_lease_answer say_delay_zero(struct fixture *f, struct weft_engine *engine,
                                               const struct weft_claimed *lease, int turn)
{
    (void)engine;
    return put_back(f, WEFT_PUT_BACK_DELAY, lease, turn);
}

static struct weft_lease_answer say_release(struct fixture *f, struct weft_engine *engine,
                                            const struct weft_claimed *lease, int turn)
{
    (void)engine;
    return put_back(f, WEFT_PUT_BACK_RELEASE, lease, turn);
}

static struct weft_lease_answer say_release_later(struct fixture *f, struct weft_engine *engine,
                                                  const struct weft_claimed *lease, int turn)
{
    (void)engine;
    return put_back(f, WEFT_PUT_BACK_RELEASE, lease, 600 + turn);
}

/* clang-format off */
static const struct saying {
    const char *name;
    say_fn *say;
    const struct weft_policy *policy;
    enum weft_state state;
    int64_t wait_ms;
} saying[] = {
    {"complete",            say_complete,      &plain,   WEFT_STATE_SUCCEEDED, 0},
    {"fail, retried later", say_fail,          &plain,   WEFT_STATE_DELAYED,   1000},
    {"fail, retried now",   say_fail,          &at_once, WEFT_STATE_READY,     0},
    {"fail for good",       say_give_up,       &plain,   WEFT_STATE_FAILED,    0},
    {"delay",               say_delay,         &plain,   WEFT_STATE_DELAYED,   700},
    {"delay by nothing",    say_delay_zero,    &plain,   WEFT_STATE_READY,     0},
    {"release",             say_release,       &plain,   WEFT_STATE_READY,     0},
    {"release for later",   say_release_later, &plain,   WEFT_STATE_DELAYED,   600},
};
/* clang-format on */

static void expect_same_again(struct fixture *f, const struct saying *row,
                              const struct weft_claimed *lease,
                              const struct weft_lease_answer *first, const char *when)
{
    struct weft_execution before = describe(f, &lease->id);
    struct weft_attempts list = attempts(f, &lease->id);
    const char *result = result_text(f, &lease->id);
    for (int turn = 1; turn <= 2; turn++) {
        struct weft_lease_answer again = row->say(f, turn == 1 ? f->b : f->a, lease, turn);
        ok(same_answer(first, &again), "%s, %s: the same answer (got %s, %s)", row->name, when,
           weft_rc_wire(again.err.rc), weft_state_name(again.state));
    }
    struct weft_execution after = describe(f, &lease->id);
    struct weft_attempts still = attempts(f, &lease->id);
    ok(same_execution(&before, &after) && list.count == still.count, "%s, %s: nothing changed",
       row->name, when);
    is_str(result_text(f, &lease->id), result, "%s, %s: nor the result", row->name, when);
}

static void expect_repeatable(struct fixture *f, const struct saying *row)
{
    struct weft_claimed lease = start_policy(f, row->policy);
    struct weft_lease_answer first = row->say(f, f->a, &lease, 0);
    ok(first.err.rc == WEFT_OK && first.state == row->state, "%s: said", row->name);
    is_int(first.run_at_us, row->wait_ms ? f->now_us + row->wait_ms * WEFT_MS : 0,
           "%s: with its time", row->name);
    expect_same_again(f, row, &lease, &first, "at once");
    forward_ms(f, 2000);
    expect_same_again(f, row, &lease, &first, "later");
    if (!weft_state_living(row->state))
        (void)steer_id(f, WEFT_STEER_REPLAY, &lease.id);
    (void)run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER);
    expect_same_again(f, row, &lease, &first, "ready again");
    struct weft_claimed next = take(f, f->b, lease.lane);
    expect_same_again(f, row, &lease, &first, "claimed by another");
    is_int(complete(f, f->b, &next, "\"other\"").err.rc, WEFT_OK, "%s: another ends it", row->name);
    expect_same_again(f, row, &lease, &first, "ended by another");
    (void)steer_id(f, WEFT_STEER_REPLAY, &lease.id);
    expect_same_again(f, row, &lease, &first, "replayed");
    (void)steer_id(f, WEFT_STEER_CANCEL, &lease.id);
    expect_same_again(f, row, &lease, &first, "cancelled");
}

CASE(repeat_gets_the_same_answer_for_ever)
{
    for (size_t i = 0; i < WEFT_LEN(saying); i++)
        expect_repeatable(f, &saying[i]);
}

CASE(repeat_does_not_overwrite_the_first_word)
{
    struct weft_claimed lease = start(f, NULL);
    (void)complete(f, f->a, &lease, "\"first\"");
    (void)complete(f, f->b, &lease, "\"second\"");
    is_str(result_text(f, &lease.id), "\"first\"", "the first result stays");
    lease = start(f, NULL);
    (void)say_give_up(f, f->a, &lease, 0);
    (void)say_give_up(f, f->b, &lease, 1);
    is_str(describe(f, &lease.id).error_class, "first", "the first error stays");
}

/* A client's retry may be folded into one call with its original. */
CASE(repeat_within_one_call)
{
    enum { TIMES = 3 };
    struct weft_claimed lease = start(f, NULL);
    struct weft_lease_answer answer[TIMES];
    struct weft_renew renewal[TIMES];
    for (int i = 0; i < TIMES; i++)
        renewal[i] = (struct weft_renew){.id = lease.id, .epoch = lease.epoch, .lease_ms = 5000};
    is_int(engine_renew(f->a, renewal, TIMES, answer, &f->err), WEFT_OK, "renew");
    ok(same_answer(&answer[0], &answer[1]) && same_answer(&answer[0], &answer[2]) &&
           answer[0].lease_expires_us == f->now_us + 5000 * WEFT_MS,
       "renew: all get the same answer");

    struct weft_failure failure[TIMES];
    for (int i = 0; i < TIMES; i++)
        failure[i] = (struct weft_failure){.id = lease.id, .epoch = lease.epoch};
    is_int(engine_fail(f->a, failure, TIMES, answer, &f->err), WEFT_OK, "fail");
    ok(same_answer(&answer[0], &answer[1]) && same_answer(&answer[0], &answer[2]),
       "fail: all get the same answer, jitter and all");
    is_int(attempts(f, &lease.id).count, 1, "fail: one lease ended");
    is_int(describe(f, &lease.id).attempt, 2, "fail: one attempt was spent");

    lease = start(f, NULL);
    struct weft_put_back back[TIMES];
    for (int i = 0; i < TIMES; i++)
        back[i] = (struct weft_put_back){.id = lease.id, .epoch = lease.epoch, .delay_ms = 50};
    is_int(engine_put_back(f->b, WEFT_PUT_BACK_DELAY, back, TIMES, answer, &f->err), WEFT_OK,
           "delay");
    ok(same_answer(&answer[0], &answer[1]) && same_answer(&answer[0], &answer[2]) &&
           answer[0].run_at_us == f->now_us + 50 * WEFT_MS,
       "delay: all get the same answer");

    lease = start(f, NULL);
    struct weft_complete done[TIMES];
    for (int i = 0; i < TIMES; i++)
        done[i] = (struct weft_complete){
            .id = lease.id, .epoch = lease.epoch, .result = i ? "2" : "1", .result_size = 1};
    is_int(engine_complete(f->b, done, TIMES, answer, &f->err), WEFT_OK, "complete");
    ok(same_answer(&answer[0], &answer[1]) && same_answer(&answer[0], &answer[2]),
       "complete: all get the same answer");
    is_str(result_text(f, &lease.id), "1", "complete: the first of the call counts");
}

CASE(repeat_each_item_is_answered_on_its_own)
{
    struct weft_claimed good = start(f, NULL), over = bring(f, WEFT_STATE_CANCELLED, NULL);
    struct weft_claimed said = bring(f, WEFT_STATE_SUCCEEDED, NULL), last = start(f, NULL);
    struct weft_claimed untouched = start(f, NULL);
    char *huge = weft_arena_alloc(f->arena, WEFT_PAYLOAD_MAX + 1, 1);
    const struct weft_complete item[] = {
        {.id = over.id, .epoch = 1},
        {.id = good.id, .epoch = 1, .result = "1", .result_size = 1},
        {.id = untouched.id, .epoch = 0},
        {.epoch = 1},
        {.id = said.id, .epoch = 1},
        {.id = untouched.id, .epoch = 1, .result = huge, .result_size = WEFT_PAYLOAD_MAX + 1},
        {.id = untouched.id, .epoch = 2},
        {.id = last.id, .epoch = 1, .result = "2", .result_size = 1},
    };
    static const struct {
        enum weft_rc rc;
        enum weft_fence fence;
        enum weft_state state;
    } want[] = {
        {WEFT_FENCED, WEFT_FENCE_CANCELLED, WEFT_STATE_CANCELLED},
        {WEFT_OK, WEFT_FENCE_NONE, WEFT_STATE_SUCCEEDED},
        {WEFT_INVALID_VALUE, WEFT_FENCE_NONE, WEFT_STATE_NONE},
        {WEFT_NOT_FOUND, WEFT_FENCE_NONE, WEFT_STATE_NONE},
        {WEFT_OK, WEFT_FENCE_NONE, WEFT_STATE_SUCCEEDED},
        {WEFT_TOO_LARGE, WEFT_FENCE_NONE, WEFT_STATE_NONE},
        {WEFT_FENCED, WEFT_FENCE_UNKNOWN, WEFT_STATE_RUNNING},
        {WEFT_OK, WEFT_FENCE_NONE, WEFT_STATE_SUCCEEDED},
    };
    struct weft_lease_answer answer[WEFT_LEN(item)];
    is_int(engine_complete(f->b, item, WEFT_LEN(item), answer, &f->err), WEFT_OK,
           "the call as a whole is fine");
    for (size_t i = 0; i < WEFT_LEN(item); i++)
        ok(answer[i].err.rc == want[i].rc && answer[i].fence == want[i].fence &&
               answer[i].state == want[i].state,
           "item %zu: %s, %s (got %s, %s, %s)", i, weft_rc_wire(want[i].rc),
           weft_fence_name(want[i].fence), weft_rc_wire(answer[i].err.rc),
           weft_fence_name(answer[i].fence), weft_state_name(answer[i].state));
    is_str(result_text(f, &good.id), "1", "a good one among them is done");
    is_str(result_text(f, &last.id), "2", "the last good item is completed");
    is_int(state_of(f, &untouched.id), WEFT_STATE_RUNNING,
           "an execution that no item named still runs");
    is_int(engine_complete(f->a, NULL, 0, NULL, &f->err), WEFT_OK, "no items are fine too");
}

/* Claims all there is, a thousand at a time. */
static size_t claim_all(struct fixture *f, struct weft_claimed *lease, size_t most)
{
    size_t count = 0;
    struct weft_claim_result result;
    do {
        result = claim(f, f->a, 1000);
        for (size_t i = 0; i < result.count && count < most; i++)
            lease[count++] = result.item[i];
    } while (result.count > 0 && count < most);
    return count;
}

enum { MANY = 2500 };

/* Submits and claims MANY: more than two transactions hold. */
static struct weft_claimed *start_many(struct fixture *f)
{
    static const struct weft_policy policy = {.initial_ms = -1};
    struct weft_spec *spec = weft_new_array(f->arena, struct weft_spec, MANY);
    struct weft_submitted *made = weft_new_array(f->arena, struct weft_submitted, MANY);
    for (size_t i = 0; i < MANY; i++)
        spec[i] = (struct weft_spec){.kind = "job", .policy = &policy};
    is_int(engine_submit(f->a, "default", spec, MANY, made, &f->err), WEFT_OK, "submit");
    struct weft_claimed *lease = weft_new_array(f->arena, struct weft_claimed, MANY);
    is_int(claim_all(f, lease, MANY), MANY, "all are claimed");
    return lease;
}

static size_t count_state(const struct weft_lease_answer *answer, enum weft_state state)
{
    size_t count = 0;
    for (size_t i = 0; i < MANY; i++)
        count += answer[i].err.rc == WEFT_OK && answer[i].state == state;
    return count;
}

CASE(repeat_thousands_in_one_call)
{
    struct weft_claimed *lease = start_many(f);
    struct weft_lease_answer *answer = weft_new_array(f->arena, struct weft_lease_answer, MANY);
    struct weft_renew *renewal = weft_new_array(f->arena, struct weft_renew, MANY);
    struct weft_failure *failure = weft_new_array(f->arena, struct weft_failure, MANY);
    for (size_t i = 0; i < MANY; i++) {
        renewal[i] = (struct weft_renew){.id = lease[i].id, .epoch = lease[i].epoch};
        failure[i] = (struct weft_failure){.id = lease[i].id, .epoch = lease[i].epoch};
    }
    is_int(engine_renew(f->b, renewal, MANY, answer, &f->err), WEFT_OK, "renew");
    is_int(count_state(answer, WEFT_STATE_RUNNING), MANY, "all are renewed");
    is_int(engine_fail(f->a, failure, MANY, answer, &f->err), WEFT_OK, "fail");
    is_int(count_state(answer, WEFT_STATE_READY), MANY, "all are ready again");
    is_int(claim_all(f, lease, MANY), MANY, "all are claimed again");
    struct weft_complete *done = weft_new_array(f->arena, struct weft_complete, MANY);
    for (size_t i = 0; i < MANY; i++)
        done[i] = (struct weft_complete){.id = lease[i].id,
                                         .epoch = 2,
                                         .result = &lease[i].id,
                                         .result_size = sizeof(lease[i].id)};
    done[0].epoch = 1; /* one of the first, one of the last: fenced among thousands */
    done[MANY - 1].epoch = 3;
    is_int(engine_complete(f->b, done, MANY, answer, &f->err), WEFT_OK, "complete");
    is_int(count_state(answer, WEFT_STATE_SUCCEEDED), MANY - 2, "all but two are done");
    is_int(answer[0].fence, WEFT_FENCE_FINISHED, "the first had said another word before");
    is_int(answer[MANY - 1].fence, WEFT_FENCE_UNKNOWN, "the last is from the future");
    struct weft_bytes bytes = {0};
    const struct weft_bytes_of of = {
        .kind = WEFT_BYTES_RESULT, .ns = "default", .id = lease[1700].id};
    is_int(weft_engine_bytes(f->a, &of, f->arena, &bytes, &f->err), WEFT_OK, "a result");
    ok(bytes.size == sizeof(of.id) && memcmp(bytes.data, &of.id, bytes.size) == 0,
       "each got its own");
}

static void count_ends(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    *(int *)context += point == WEFT_FAULT_BEFORE_RUN && stmt == WEFT_STMT_LIVE_END;
}

/* A lease that a call names a thousand times costs a few transactions, and so does a wrong one. */
CASE(repeat_one_lease_a_thousand_times)
{
    enum { TIMES = 1000 };
    int ends = 0;
    struct weft_fault fault = {.hook = count_ends, .context = &ends};
    struct weft_engine *engine = open_faulty(f, &fault);
    struct weft_claimed lease = start(f, NULL), neighbour = start(f, NULL);
    struct weft_complete item[TIMES];
    struct weft_lease_answer answer[TIMES];
    for (size_t i = 0; i < TIMES; i++)
        item[i] = (struct weft_complete){.id = lease.id, .epoch = lease.epoch};
    item[500].id = neighbour.id;
    is_int(engine_complete(engine, item, TIMES, answer, &f->err), WEFT_OK, "complete");
    size_t same = 0;
    for (size_t i = 0; i < TIMES; i++)
        same += answer[i].err.rc == WEFT_OK && answer[i].state == WEFT_STATE_SUCCEEDED;
    is_int(same, TIMES, "all get the same answer");
    ok(ends <= WEFT_REPEATS_MAX, "in %d transactions", ends);
    is_int(state_of(f, &neighbour.id), WEFT_STATE_SUCCEEDED, "a neighbour is done too");

    ends = 0;
    for (size_t i = 0; i < TIMES; i++)
        item[i].epoch = 7;
    is_int(engine_complete(engine, item, TIMES, answer, &f->err), WEFT_OK, "a wrong epoch");
    size_t fenced = 0;
    for (size_t i = 0; i < TIMES; i++)
        fenced += answer[i].err.rc == WEFT_FENCED && answer[i].fence == WEFT_FENCE_UNKNOWN;
    is_int(fenced, TIMES, "all are fenced");
    ok(ends <= WEFT_REPEATS_MAX, "in %d transactions", ends);

    ends = 0;
    for (size_t i = 0; i < TIMES; i++)
        item[i].epoch = (int32_t)i + 1;
    is_int(engine_complete(engine, item, TIMES, answer, &f->err), WEFT_OK, "many epochs");
    size_t busy = 0;
    for (size_t i = 0; i < TIMES; i++)
        busy += answer[i].err.rc == WEFT_BUSY;
    is_int(busy, TIMES - WEFT_REPEATS_MAX - 1, "all but the first epochs may be sent again");
    ok(ends <= WEFT_REPEATS_MAX, "in %d transactions", ends);
    weft_engine_close(engine);
}

static void count_locks(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    *(int *)context += point == WEFT_FAULT_BEFORE_RUN && stmt == WEFT_STMT_LIVE_LOCK;
}

/* Failures lock the row and decide in memory: however often a call names it, it is locked once. */
CASE(repeat_failures_of_one_lease_share_a_transaction)
{
    enum { TIMES = 900 };
    int locks = 0;
    struct weft_fault fault = {.hook = count_locks, .context = &locks};
    struct weft_engine *engine = open_faulty(f, &fault);
    struct weft_claimed first = start(f, NULL), other = start(f, NULL);
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &first, 0);
    struct weft_claimed lease = take(f, f->a, first.lane);
    is_int(lease.epoch, 2, "the execution has its second lease");
    struct weft_failure item[TIMES];
    struct weft_lease_answer answer[TIMES];
    for (size_t i = 0; i < TIMES; i++)
        item[i] = (struct weft_failure){.id = lease.id, .epoch = lease.epoch};
    item[0].epoch = 1; /* released before: fenced, and the lease of epoch 2 is untouched by it */
    item[1].error_class = "the first";
    item[2].error_class = "the second";
    item[3].epoch = item[5].epoch = 7; /* never a lease */
    item[4] = (struct weft_failure){.id = other.id, .epoch = other.epoch};
    is_int(engine_fail(engine, item, TIMES, answer, &f->err), WEFT_OK, "fail");
    is_int(locks, 1, "one transaction locks the rows");
    ok(answer[0].err.rc == WEFT_FENCED && answer[0].state == WEFT_STATE_RUNNING,
       "the old epoch is fenced, while the execution still runs");
    ok(answer[3].fence == WEFT_FENCE_UNKNOWN && answer[3].state == WEFT_STATE_DELAYED,
       "an epoch that was never given is unknown, behind the failure");
    is_int(answer[4].state, WEFT_STATE_DELAYED, "another execution in the same call fails too");
    size_t same = 0;
    for (size_t i = 6; i < TIMES; i++)
        same += same_answer(&answer[1], &answer[i]);
    ok(answer[1].err.rc == WEFT_OK && answer[1].state == WEFT_STATE_DELAYED, "the first counts");
    is_int(same, TIMES - 6, "every repeat gets the answer of the first");
    struct weft_attempts list = attempts(f, &lease.id);
    is_int(list.count, 2, "one lease was released and one has failed");
    is_str(list.item[1].error_class, "the first", "with the error of the first item");
    weft_engine_close(engine);
}

/* Every cancel and revoke of one execution in a call, in the order of the call, under one lock. */
CASE(repeat_control_of_one_execution_shares_a_transaction)
{
    enum { TIMES = 20 };
    int locks = 0;
    struct weft_fault fault = {.hook = count_locks, .context = &locks};
    struct weft_engine *engine = open_faulty(f, &fault);
    struct weft_claimed lease = start(f, NULL);
    struct weft_steer item[TIMES];
    struct weft_steered answer[TIMES];
    struct weft_execution seen[TIMES];
    for (size_t i = 0; i < TIMES; i++)
        item[i] = (struct weft_steer){.id = lease.id, .reason = i ? "later" : "first"};
    struct weft_steering steering = {.kind = WEFT_STEER_REVOKE,
                                     .ns = "default",
                                     .item = item,
                                     .count = TIMES,
                                     .seen = seen,
                                     .arena = f->arena};
    is_int(engine_steer(engine, &steering, answer, &f->err), WEFT_OK, "revoke");
    size_t refused = 0;
    for (size_t i = 1; i < TIMES; i++)
        refused += answer[i].err.rc == WEFT_NOT_LIVE && answer[i].state == WEFT_STATE_READY;
    ok(answer[0].changed && seen[0].state == WEFT_STATE_READY, "the first revokes the lease");
    is_int(refused, TIMES - 1, "the others find no lease");
    is_int(attempts(f, &lease.id).count, 1, "one lease ended");
    is_int(locks, 1, "the row was locked once");

    steering.kind = WEFT_STEER_CANCEL;
    is_int(engine_steer(engine, &steering, answer, &f->err), WEFT_OK, "cancel");
    size_t already = 0;
    for (size_t i = 1; i < TIMES; i++)
        already += !answer[i].err.rc && !answer[i].changed &&
                   answer[i].state == WEFT_STATE_CANCELLED && seen[i].state == WEFT_STATE_CANCELLED;
    ok(answer[0].changed && seen[0].state == WEFT_STATE_CANCELLED, "the first cancels");
    is_int(already, TIMES - 1, "the others find it cancelled");
    is_str(describe(f, &lease.id).reason, "first", "the reason of the first is stored");
    is_int(locks, 2, "the row was locked once more");

    /* Each answer shows the execution as its item left it: one transaction for each. */
    steering.kind = WEFT_STEER_REPRIORITIZE;
    struct weft_id id = submit_job(f);
    for (size_t i = 0; i < TIMES; i++)
        item[i] = (struct weft_steer){.id = id, .priority = (int32_t)i + 1};
    is_int(engine_steer(engine, &steering, answer, &f->err), WEFT_OK, "reprioritize");
    size_t shown = 0;
    for (size_t i = 0; i < TIMES; i++)
        shown += answer[i].changed && seen[i].priority == (int32_t)i + 1;
    is_int(shown, TIMES, "every item is shown its own priority");
    weft_engine_close(engine);
}

CASE(repeat_renewals_of_one_lease)
{
    enum { TIMES = 1000 };
    struct weft_claimed lease = start(f, NULL);
    struct weft_renew item[TIMES];
    struct weft_lease_answer answer[TIMES];
    for (size_t i = 0; i < TIMES; i++)
        item[i] = (struct weft_renew){.id = lease.id, .epoch = lease.epoch, .lease_ms = 5000};
    is_int(engine_renew(f->a, item, TIMES, answer, &f->err), WEFT_OK, "renew");
    size_t renewed = 0;
    for (size_t i = 0; i < TIMES; i++)
        renewed += !answer[i].err.rc && answer[i].lease_expires_us == f->now_us + 5000 * WEFT_MS;
    is_int(renewed, TIMES, "all get the time of the lease");
}

CASE(repeat_large_results_in_one_call)
{
    /* A transaction holds 8 MiB: a call with more is cut, and each item still gets its answer. */
    enum { COUNT = 20 };
    int ends = 0;
    struct weft_fault fault = {.hook = count_ends, .context = &ends};
    struct weft_engine *engine = open_faulty(f, &fault);
    char *result = weft_arena_alloc(f->arena, WEFT_PAYLOAD_MAX, 1);
    struct weft_complete item[COUNT];
    struct weft_lease_answer answer[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        struct weft_claimed lease = start(f, NULL);
        item[i] = (struct weft_complete){
            .id = lease.id, .epoch = 1, .result = result, .result_size = WEFT_PAYLOAD_MAX};
    }
    item[COUNT - 1].id = item[0].id; /* a repeat, in another part of the call */
    is_int(engine_complete(engine, item, COUNT, answer, &f->err), WEFT_OK, "complete");
    size_t good = 0;
    for (size_t i = 0; i < COUNT; i++)
        good += answer[i].err.rc == WEFT_OK && answer[i].state == WEFT_STATE_SUCCEEDED;
    is_int(good, COUNT, "all are done");
    is_int(ends, 3, "in three parts: 8, 8 and 4 MiB");
    weft_engine_close(engine);
}
