/* SPDX-License-Identifier: Apache-2.0 */

/* Waiting: suspend, waitpoints, signals, timeouts, resumption. */

#include "conformance.h"

#include "core/signal_token.h"
#include "engine/wait/keys.h"
#include "engine/wait/wait.h"

#include <string.h>

/* ---- Short forms ----------------------------------------------------------------------------- */

static struct weft_suspend_result suspend(struct fixture *f, struct weft_engine *engine,
                                          const struct weft_suspend *item)
{
    struct weft_suspend_result answer = {0};
    enum weft_rc rc = weft_engine_suspend(engine, item, 1, f->arena, &answer, &f->err);
    ok(rc == WEFT_OK || answer.rc == rc, "the suspend call is answered");
    return answer;
}

/* Suspends a lease at one new waitpoint, "approval", without a timeout. */
static struct weft_suspend_result suspend_one(struct fixture *f, const struct weft_claimed *lease)
{
    const struct weft_suspend_at at = {.name = "approval"};
    const struct weft_suspend item = {
        .id = lease->id, .epoch = lease->epoch, .waitpoint = &at, .waitpoint_count = 1};
    return suspend(f, f->a, &item);
}

static struct weft_signal_result signal_with(struct fixture *f, struct weft_engine *engine,
                                             const struct weft_signal *item)
{
    struct weft_signal_result answer = {0};
    enum weft_rc rc = weft_engine_signal(engine, item, 1, f->arena, &answer, &f->err);
    ok(rc == WEFT_OK || answer.rc == rc, "the signal is answered");
    return answer;
}

static struct weft_signal_result signal_to(struct fixture *f, const char *token)
{
    return signal_with(f, f->b, &(struct weft_signal){.token = token});
}

/* A pending waitpoint of a lease. */
static struct weft_waitpoint_result pending(struct fixture *f, const struct weft_claimed *lease,
                                            const char *name, int64_t expires_ms)
{
    const struct weft_waitpoint_new item = {
        .id = lease->id, .epoch = lease->epoch, .name = name, .expires_ms = expires_ms};
    struct weft_waitpoint_result answer = {0};
    enum weft_rc rc = weft_engine_waitpoints_new(f->a, &item, 1, f->arena, &answer, &f->err);
    ok(rc == WEFT_OK || answer.rc == rc, "the waitpoint call is answered");
    return answer;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

CASE(wait_signal_resumes)
{
    struct weft_claimed lease = start(f, NULL);
    struct weft_suspend_result answer = suspend_one(f, &lease);
    is_int(answer.state, WEFT_STATE_SUSPENDED, "the suspend call suspends the execution");
    is_int(answer.waitpoint_count, 1, "the suspension has one waitpoint");
    is_str(answer.waitpoint[0].name, "approval", "the waitpoint has the given name");
    is_int(state_of(f, &lease.id), WEFT_STATE_SUSPENDED, "a reader sees the execution suspended");
    expect_fenced(f, &lease, WEFT_FENCE_SUSPENDED);
    is_int(claim_lane(f, f->b, lease.lane).count, 0, "no worker gets the suspended execution");

    const struct weft_signal signal = {.token = answer.waitpoint[0].token,
                                       .name = "approved",
                                       .source = "ann",
                                       .payload = "{\"by\":1}",
                                       .payload_size = 8};
    struct weft_signal_result sent = signal_with(f, f->b, &signal);
    is_int(sent.effect, WEFT_SIGNAL_RESUMED, "the signal resumes the execution");
    is_int(state_of(f, &lease.id), WEFT_STATE_READY, "the resumed execution is ready");
    struct weft_claimed next = take(f, f->b, lease.lane);
    is_int(next.epoch, lease.epoch + 1, "the next lease has the next epoch");
    is_int(next.attempt, lease.attempt, "the next lease has the same attempt");
    is_int(next.resumed_by, WEFT_RESUMED_BY_SIGNALS, "the lease says that signals resumed it");
    is_int(next.signal_count, 1, "the lease has one signal");
    is_str(next.signal[0].name, "approved", "the signal has its name");
    is_str(next.signal[0].source, "ann", "the signal has its source");
    ok(next.signal[0].payload_size == 8 && memcmp(next.signal[0].payload, "{\"by\":1}", 8) == 0,
       "the signal has its payload");
    is_str(next.signal[0].waitpoint_name, "approval", "the signal has the name of its waitpoint");
    struct weft_attempts past = attempts(f, &lease.id);
    is_str(past.item[past.count - 1].ended, "suspended", "the first lease ended as suspended");
    is_int(complete(f, f->b, &next, "1").err.rc, WEFT_OK, "the second lease completes");
    is_int(signal_with(f, f->a, &signal).rc, WEFT_NOT_LIVE, "a signal after the end is not_live");
}

CASE(wait_repeat_has_the_same_answer)
{
    struct weft_claimed lease = start(f, NULL);
    struct weft_suspend_result first = suspend_one(f, &lease), second = suspend_one(f, &lease);
    is_int(second.rc, WEFT_OK, "the same call again succeeds");
    is_int(second.state, WEFT_STATE_SUSPENDED, "the repeat has the same state");
    is_int(second.waitpoint_count, 1, "the repeat has the same number of waitpoints");
    is_str(second.waitpoint[0].token, first.waitpoint[0].token, "the repeat has the same token");
    is_int(second.waitpoint[0].state, first.waitpoint[0].state, "the waitpoint is open in both");
    (void)signal_to(f, first.waitpoint[0].token);
    struct weft_suspend_result third = suspend_one(f, &lease);
    is_str(third.waitpoint[0].token, first.waitpoint[0].token,
           "a repeat after the resumption has the same token");
    is_int(state_of(f, &lease.id), WEFT_STATE_READY,
           "the repeat does not suspend the resumed execution");
    struct weft_claimed next = take(f, f->b, lease.lane);
    expect_fenced(f, &lease, WEFT_FENCE_SUSPENDED);
    is_int(suspend_one(f, &next).state, WEFT_STATE_SUSPENDED, "the next holder suspends it again");
    is_int(signal_to(f, first.waitpoint[0].token).rc, WEFT_NOT_LIVE,
           "the token of the first suspension is closed");
}

CASE(wait_early_signal_is_judged_at_suspend)
{
    struct weft_claimed lease = start(f, NULL);
    struct weft_waitpoint_result early = pending(f, &lease, "payment", 0);
    struct weft_waitpoint_result again = pending(f, &lease, "payment", 0);
    is_str(again.waitpoint.token, early.waitpoint.token, "the same name gives the same waitpoint");
    struct weft_signal_result sent =
        signal_with(f, f->b, &(struct weft_signal){.token = early.waitpoint.token, .name = "paid"});
    is_int(sent.effect, WEFT_SIGNAL_BUFFERED, "a signal before the suspend is kept");
    const struct weft_suspend_at at = {.id = early.waitpoint.id};
    const struct weft_suspend item = {
        .id = lease.id, .epoch = lease.epoch, .waitpoint = &at, .waitpoint_count = 1};
    for (int turn = 0; turn < 2; turn++) {
        struct weft_suspend_result answer = suspend(f, f->a, &item);
        ok(answer.satisfied && answer.state == WEFT_STATE_RUNNING,
           "call %d: satisfied at once, the lease stays", turn + 1);
        ok(answer.signal_count == 1 && strcmp(answer.signal[0].name, "paid") == 0,
           "call %d: the signal is in the answer", turn + 1);
    }
    is_int(signal_to(f, early.waitpoint.token).rc, WEFT_NOT_LIVE, "the waitpoint is closed");
    is_int(renew(f, f->a, &lease).err.rc, WEFT_OK, "the worker goes on under its lease");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    struct weft_claimed next = take(f, f->b, lease.lane);
    ok(next.resumed_by == WEFT_RESUMED_BY_SIGNALS && next.signal_count == 1,
       "a later lease gets the signal too");
}

/* Makes a pending waitpoint, sends a signal of that name to it, and suspends there. */
static struct weft_suspend_result satisfy_at_once(struct fixture *f,
                                                  const struct weft_claimed *lease,
                                                  const char *signal, const char **ret_token)
{
    struct weft_waitpoint_result early = pending(f, lease, "approval", 0);
    *ret_token = early.waitpoint.token;
    (void)signal_with(f, f->b, &(struct weft_signal){.token = *ret_token, .name = signal});
    const struct weft_suspend_at at = {.id = early.waitpoint.id};
    return suspend(
        f, f->a,
        &(struct weft_suspend){
            .id = lease->id, .epoch = lease->epoch, .waitpoint = &at, .waitpoint_count = 1});
}

/* A worker that was satisfied at once asks again under the same lease, by the same name. */
CASE(wait_satisfied_at_once_stays_closed)
{
    struct weft_claimed lease = start(f, NULL);
    const char *first, *second;
    ok(satisfy_at_once(f, &lease, "one", &first).satisfied, "the first suspend is satisfied");
    struct weft_suspend_result again = satisfy_at_once(f, &lease, "two", &second);
    ok(again.satisfied && again.signal_count == 1 && strcmp(again.signal[0].name, "two") == 0,
       "the second suspend is satisfied and has its own signal alone");
    struct weft_suspend_result waits = suspend_one(f, &lease);
    is_int(waits.state, WEFT_STATE_SUSPENDED, "the third has a new waitpoint and waits");
    is_int(signal_to(f, first).rc, WEFT_NOT_LIVE, "the first waitpoint of that name is closed");
    is_int(signal_to(f, second).rc, WEFT_NOT_LIVE, "the second waitpoint of that name is closed");
    is_str(suspend_one(f, &lease).waitpoint[0].token, waits.waitpoint[0].token,
           "a repeat of the third suspend has the token of the third waitpoint");
    is_int(signal_to(f, waits.waitpoint[0].token).effect, WEFT_SIGNAL_RESUMED,
           "a signal to the third waitpoint resumes");
    is_int(take(f, f->b, lease.lane).signal_count, 1, "the next lease has that signal alone");
}

CASE(wait_pending_without_signals_suspends)
{
    struct weft_claimed lease = start(f, NULL);
    struct weft_waitpoint_result early = pending(f, &lease, "a", 0);
    const struct weft_suspend_at named = {.name = "a"};
    struct weft_suspend item = {
        .id = lease.id, .epoch = lease.epoch, .waitpoint = &named, .waitpoint_count = 1};
    struct weft_suspend_result answer = suspend(f, f->a, &item);
    is_int(answer.rc, WEFT_CONFLICT, "a new waitpoint cannot have the name of a pending one");
    ok(answer.err && answer.err->hint, "the hint says what to do");
    const struct weft_suspend_at at[] = {{.id = early.waitpoint.id}, {.name = "b"}};
    item.waitpoint = at;
    item.waitpoint_count = 2;
    answer = suspend(f, f->a, &item);
    is_int(answer.state, WEFT_STATE_SUSPENDED, "a pending and a new one together suspend");
    is_str(answer.waitpoint[0].token, early.waitpoint.token, "the pending one keeps its token");
    is_int(signal_to(f, early.waitpoint.token).effect, WEFT_SIGNAL_RECORDED, "one of two counts");
    is_int(signal_to(f, answer.waitpoint[1].token).effect, WEFT_SIGNAL_RESUMED,
           "the second resumes");
}

CASE(wait_condition_counts_sources)
{
    struct weft_claimed lease = start(f, NULL);
    const struct weft_suspend_at at = {.name = "review"};
    const struct weft_suspend item = {
        .id = lease.id,
        .epoch = lease.epoch,
        .waitpoint = &at,
        .waitpoint_count = 1,
        .condition = "{\"count\":{\"n\":2,\"of\":\"sources\",\"name\":\"approved\"}}"};
    struct weft_suspend_result answer = suspend(f, f->a, &item);
    struct weft_signal signal = {.token = answer.waitpoint[0].token, .name = "rejected"};
    is_int(signal_with(f, f->b, &signal).effect, WEFT_SIGNAL_IGNORED, "another name is ignored");
    signal.name = "approved";
    is_int(signal_with(f, f->b, &signal).effect, WEFT_SIGNAL_IGNORED, "no source is ignored");
    signal.source = "ann";
    is_int(signal_with(f, f->a, &signal).effect, WEFT_SIGNAL_RECORDED, "the first source counts");
    is_int(signal_with(f, f->b, &signal).effect, WEFT_SIGNAL_RECORDED, "its repeat does not");
    is_int(state_of(f, &lease.id), WEFT_STATE_SUSPENDED, "the execution still waits");
    signal.source = "bob";
    is_int(signal_with(f, f->b, &signal).effect, WEFT_SIGNAL_RESUMED, "the second source resumes");
    is_int(take(f, f->a, lease.lane).signal_count, 5, "all signals come along");
}

CASE(wait_duplicate_keys_count_once)
{
    struct weft_claimed lease = start(f, NULL);
    const struct weft_suspend_at at = {.name = "vote"};
    const struct weft_suspend item = {.id = lease.id,
                                      .epoch = lease.epoch,
                                      .waitpoint = &at,
                                      .waitpoint_count = 1,
                                      .condition = "{\"count\":{\"n\":2,\"of\":\"signals\"}}"};
    struct weft_suspend_result answer = suspend(f, f->a, &item);
    const char *token = answer.waitpoint[0].token;
    const struct weft_signal signal[] = {{.token = token, .key = "k"},
                                         {.token = token, .key = "k"},
                                         {.token = token, .key = "l"},
                                         {.token = token, .key = "l"},
                                         {.token = token, .key = "m"}};
    struct weft_signal_result sent[5];
    is_int(weft_engine_signal(f->b, signal, 5, f->arena, sent, &f->err), WEFT_OK,
           "five signals in one call");
    is_int(sent[0].effect, WEFT_SIGNAL_RECORDED, "the first counts");
    ok(sent[1].effect == WEFT_SIGNAL_DUPLICATE && sent[1].first == WEFT_SIGNAL_RECORDED,
       "its repeat is a duplicate");
    is_int(sent[2].effect, WEFT_SIGNAL_RESUMED, "the second key resumes");
    ok(sent[3].effect == WEFT_SIGNAL_DUPLICATE && sent[3].first == WEFT_SIGNAL_RESUMED,
       "the repeat of the second key has the answer of the first one");
    is_int(sent[4].rc, WEFT_NOT_LIVE, "the signal behind it finds the waitpoint closed");
    struct weft_signal_result late = signal_with(f, f->a, &signal[2]);
    ok(late.effect == WEFT_SIGNAL_DUPLICATE && late.first == WEFT_SIGNAL_RESUMED,
       "a repeat after the resumption is a duplicate as well");
}

CASE(wait_timeouts)
{
    static const struct {
        enum weft_on_timeout what;
        enum weft_state state;
        const char *word;
    } row[] = {
        {WEFT_ON_TIMEOUT_FAIL, WEFT_STATE_FAILED, "fail"},
        {WEFT_ON_TIMEOUT_CANCEL, WEFT_STATE_CANCELLED, "cancel"},
        {WEFT_ON_TIMEOUT_EXPIRE, WEFT_STATE_EXPIRED, "expire"},
        {WEFT_ON_TIMEOUT_RESUME, WEFT_STATE_READY, "resume"},
        {WEFT_ON_TIMEOUT_ESCALATE, WEFT_STATE_SUSPENDED, "escalate"},
    };
    struct weft_claimed lease[WEFT_LEN(row)];
    struct weft_suspend_result answer[WEFT_LEN(row)];
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        lease[i] = start(f, NULL);
        const struct weft_suspend_at at = {.name = "w"};
        answer[i] = suspend(f, f->a,
                            &(struct weft_suspend){.id = lease[i].id,
                                                   .epoch = lease[i].epoch,
                                                   .waitpoint = &at,
                                                   .waitpoint_count = 1,
                                                   .timeout_ms = 5000,
                                                   .on_timeout = row[i].what});
    }
    forward_ms(f, 4999);
    is_int(run_pass(f, f->b, WEFT_SCANNER_SUSPENSION_TIMEOUT).handled, 0,
           "nothing before its time");
    forward_ms(f, 1);
    is_int(run_pass(f, f->b, WEFT_SCANNER_SUSPENSION_TIMEOUT).handled, WEFT_LEN(row),
           "all of them at their time");
    is_int(run_pass(f, f->a, WEFT_SCANNER_SUSPENSION_TIMEOUT).handled, 0, "each once");
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        is_int(state_of(f, &lease[i].id), row[i].state, "%s", row[i].word);
        is_int(signal_to(f, answer[i].waitpoint[0].token).rc,
               row[i].what == WEFT_ON_TIMEOUT_ESCALATE ? WEFT_OK : WEFT_NOT_LIVE,
               "%s: a late signal", row[i].word);
    }
    struct weft_execution failed = describe(f, &lease[0].id);
    is_str(failed.error_class, "suspension_timeout", "a failure has its class");
    struct weft_claimed next = take(f, f->a, lease[3].lane);
    is_int(next.resumed_by, WEFT_RESUMED_BY_TIMEOUT, "a worker sees that the timeout resumed it");
    is_int(state_of(f, &lease[4].id), WEFT_STATE_READY, "a signal resumes an escalated one");
    is_int(steer_id(f, WEFT_STEER_REPLAY, &lease[0].id).err.rc, WEFT_OK,
           "a failed one is replayed");
    struct weft_claimed again = take(f, f->a, lease[0].lane);
    is_int(again.resumed_by, WEFT_RESUMED_NOT, "the replayed execution has no resumption");
    is_int(signal_to(f, answer[0].waitpoint[0].token).rc, WEFT_NOT_LIVE,
           "the token from before the replay is closed");
}

/* The ancestor killed executions by the timeout of a suspension that was over. */
CASE(wait_resumed_is_not_killed_by_its_timeout)
{
    struct weft_claimed lease = start(f, NULL);
    const struct weft_suspend_at at = {.name = "w"};
    struct weft_suspend_result answer = suspend(f, f->a,
                                                &(struct weft_suspend){.id = lease.id,
                                                                       .epoch = lease.epoch,
                                                                       .waitpoint = &at,
                                                                       .waitpoint_count = 1,
                                                                       .timeout_ms = 1000});
    (void)signal_to(f, answer.waitpoint[0].token);
    struct weft_claimed next = take(f, f->b, lease.lane);
    forward_ms(f, 2000);
    is_int(run_pass(f, f->b, WEFT_SCANNER_SUSPENSION_TIMEOUT).handled, 0, "nothing times out");
    is_int(state_of(f, &next.id), WEFT_STATE_RUNNING, "the execution still runs");
}

CASE(wait_operator_resumes)
{
    struct weft_claimed lease = start(f, NULL);
    const struct weft_suspend item = {
        .id = lease.id, .epoch = lease.epoch, .condition = "{\"operator\":true}"};
    is_int(suspend(f, f->a, &item).state, WEFT_STATE_SUSPENDED,
           "the execution waits for an operator alone");
    is_int(steer_id(f, WEFT_STEER_RESUME, &lease.id).state, WEFT_STATE_READY,
           "the operator resumes the execution");
    is_int(take(f, f->a, lease.lane).resumed_by, WEFT_RESUMED_BY_OPERATOR,
           "the lease says that an operator resumed it");
    is_int(steer_id(f, WEFT_STEER_RESUME, &lease.id).err.rc, WEFT_NOT_LIVE,
           "one that is not suspended cannot be resumed");
}

CASE(wait_ends_close_waitpoints)
{
    struct weft_claimed cancelled = start(f, NULL), expired = start(f, NULL);
    struct weft_suspend_result one = suspend_one(f, &cancelled), two = suspend_one(f, &expired);
    (void)steer_id(f, WEFT_STEER_CANCEL, &cancelled.id);
    (void)steer(f, WEFT_STEER_SET_DEADLINE,
                &(struct weft_steer){.id = expired.id, .deadline_us = f->now_us + 1000 * WEFT_MS});
    forward_ms(f, 1000);
    (void)run_pass(f, f->b, WEFT_SCANNER_EXECUTION_DEADLINE);
    is_int(state_of(f, &expired.id), WEFT_STATE_EXPIRED, "a deadline ends a suspended one");
    is_int(signal_to(f, one.waitpoint[0].token).rc, WEFT_NOT_LIVE, "a cancel closes the waitpoint");
    is_int(signal_to(f, two.waitpoint[0].token).rc, WEFT_NOT_LIVE,
           "a deadline closes the waitpoint");
}

CASE(wait_resume_delay)
{
    struct weft_claimed lease = start(f, NULL);
    const struct weft_suspend_at at = {.name = "w"};
    struct weft_suspend_result answer = suspend(f, f->a,
                                                &(struct weft_suspend){.id = lease.id,
                                                                       .epoch = lease.epoch,
                                                                       .waitpoint = &at,
                                                                       .waitpoint_count = 1,
                                                                       .resume_delay_ms = 3000});
    is_int(signal_to(f, answer.waitpoint[0].token).effect, WEFT_SIGNAL_RESUMED,
           "the signal resumes the execution");
    is_int(state_of(f, &lease.id), WEFT_STATE_DELAYED, "the resumed execution is delayed");
    forward_ms(f, 3000);
    (void)run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER);
    is_int(take(f, f->a, lease.lane).resumed_by, WEFT_RESUMED_BY_SIGNALS,
           "the execution is claimed after the delay");
}

CASE(wait_pending_expires)
{
    struct weft_claimed lease = start(f, NULL);
    struct weft_waitpoint_result early = pending(f, &lease, "w", 1000);
    forward_ms(f, 1000);
    is_int(signal_to(f, early.waitpoint.token).rc, WEFT_NOT_LIVE,
           "an expired waitpoint takes no signal, before any pass");
    is_int(run_pass(f, f->b, WEFT_SCANNER_WAITPOINT_EXPIRY).handled, 1, "the pass closes it");
    is_int(run_pass(f, f->b, WEFT_SCANNER_WAITPOINT_EXPIRY).handled, 0, "once");
    const struct weft_suspend_at at = {.id = early.waitpoint.id};
    const struct weft_suspend item = {
        .id = lease.id, .epoch = lease.epoch, .waitpoint = &at, .waitpoint_count = 1};
    is_int(suspend(f, f->a, &item).rc, WEFT_INVALID_VALUE, "no suspend takes it");
    ok(pending(f, &lease, "w", 0).rc == WEFT_OK, "its name is free again");
}

/* The first worker has sent the mail and died: the second one finds the same waitpoint. */
CASE(wait_pending_outlives_a_lost_lease)
{
    struct weft_claimed lease = start(f, NULL);
    struct weft_waitpoint_result early = pending(f, &lease, "mail", 0);
    forward_ms(f, 30000);
    (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    is_int(signal_to(f, early.waitpoint.token).effect, WEFT_SIGNAL_BUFFERED,
           "a signal is kept while no worker has it");
    struct weft_claimed next = take(f, f->b, lease.lane);
    struct weft_waitpoint_result same = pending(f, &next, "mail", 0);
    is_str(same.waitpoint.token, early.waitpoint.token, "the next worker gets the same token");
    is_int(pending(f, &lease, "other", 0).rc, WEFT_FENCED, "the dead worker makes no waitpoint");
}

CASE(wait_refuses_what_is_wrong)
{
    static const struct weft_suspend_at none = {0}, bad = {.name = "two words"},
                                        same[] = {{.name = "a"}, {.name = "a"}},
                                        plain = {.name = "a"};
    const struct {
        struct weft_suspend item;
        const char *field;
    } row[] = {
        {{.waitpoint = NULL}, "waitpoints"},
        {{.waitpoint = &none, .waitpoint_count = 1}, "waitpoints"},
        {{.waitpoint = &bad, .waitpoint_count = 1}, "waitpoints"},
        {{.waitpoint = same, .waitpoint_count = 2}, "waitpoints"},
        {{.waitpoint = &plain, .waitpoint_count = 1, .condition = "{"}, "condition"},
        {{.waitpoint = &plain, .waitpoint_count = 1, .condition = "{\"waitpoint\":\"b\"}"},
         "condition"},
        {{.waitpoint = &plain, .waitpoint_count = 1, .condition = "{\"timeout\":true}"},
         "condition"},
        {{.waitpoint = &plain, .waitpoint_count = 1, .timeout_ms = -1}, "timeout_ms"},
        {{.waitpoint = &plain, .waitpoint_count = 1, .timeout_us = 1}, "timeout_at"},
        {{.waitpoint = &plain, .waitpoint_count = 1, .timeout_us = 1, .timeout_ms = 1},
         "timeout_at"},
        {{.waitpoint = &plain, .waitpoint_count = 1, .resume_delay_ms = -1}, "resume_delay_ms"},
    };
    struct weft_claimed lease = start(f, NULL);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_suspend item = row[i].item;
        item.id = lease.id;
        item.epoch = lease.epoch;
        struct weft_suspend_result answer = suspend(f, f->a, &item);
        ok(answer.rc == WEFT_INVALID_VALUE && strcmp(answer.err->field, row[i].field) == 0,
           "row %zu is refused: %s", i, answer.err ? answer.err->text : "");
    }
    is_int(state_of(f, &lease.id), WEFT_STATE_RUNNING, "the lease is as it was");
}

/* ---- Tokens and keys ------------------------------------------------------------------------- */

CASE(wait_keys_rotate_with_grace)
{
    struct weft_claimed lease = start(f, NULL), other = start(f, NULL);
    const char *token = suspend_one(f, &lease).waitpoint[0].token;
    const char *kept = suspend_one(f, &other).waitpoint[0].token;
    struct weft_signing_keys keys;
    const struct weft_key_rotation rotation = {.grace_ms = 60000};
    is_int(weft_engine_key_rotate(f->a, &rotation, f->arena, &keys, &f->err), WEFT_OK, "rotated");
    is_int(keys.count, 2, "there are two keys");
    ok(keys.item[1].current && !keys.item[0].current && keys.item[0].retires_us > f->now_us,
       "the new one signs, the old one retires");
    is_int(signal_to(f, token).effect, WEFT_SIGNAL_RESUMED, "the old token is good in its grace");
    struct weft_claimed third = start(f, NULL);
    const char *fresh = suspend_one(f, &third).waitpoint[0].token;
    is_int(signal_to(f, fresh).effect, WEFT_SIGNAL_RESUMED,
           "another replica knows the new key at once");
    forward_ms(f, 60000);
    is_int(signal_to(f, kept).rc, WEFT_UNAUTHORIZED, "past the grace the old token is refused");
    is_int(weft_engine_keys(f->b, f->arena, &keys, &f->err), WEFT_OK, "keys are listed");
    ok(keys.count == 1 && keys.item[0].current, "the retired one is not");
    struct weft_suspend_result again = suspend_one(f, &other);
    ok(again.rc == WEFT_OK && strcmp(again.waitpoint[0].token, kept) != 0,
       "a repeat of the suspend gives a token under the new key");
    is_int(signal_to(f, again.waitpoint[0].token).effect, WEFT_SIGNAL_RESUMED,
           "the token under the new key resumes the execution");
}

CASE(wait_pending_outlives_its_key)
{
    struct weft_claimed lease = start(f, NULL);
    struct weft_waitpoint_result early = pending(f, &lease, "w", 0);
    struct weft_signing_keys keys;
    const struct weft_key_rotation rotation = {.grace_ms = 0};
    is_int(weft_engine_key_rotate(f->a, &rotation, f->arena, &keys, &f->err), WEFT_OK, "rotated");
    const struct weft_suspend_at at = {.id = early.waitpoint.id};
    const struct weft_suspend item = {
        .id = lease.id, .epoch = lease.epoch, .waitpoint = &at, .waitpoint_count = 1};
    struct weft_suspend_result answer = suspend(f, f->a, &item);
    is_int(answer.waitpoint[0].key_id, keys.item[keys.count - 1].key_id,
           "the suspend names the new key, which signed the token");
    is_int(signal_to(f, answer.waitpoint[0].token).effect, WEFT_SIGNAL_RESUMED,
           "the token under the new key resumes the execution");
}

/* A replica that has just read the keys meets a token of a key that another one made after that. */
CASE(wait_new_key_is_known_at_once)
{
    struct weft_claimed lease[3];
    for (size_t i = 0; i < WEFT_LEN(lease); i++) {
        lease[i] = start(f, NULL);
        struct weft_signing_keys keys;
        const struct weft_key_rotation rotation = {.grace_ms = 60000};
        is_int(weft_engine_key_rotate(f->a, &rotation, f->arena, &keys, &f->err), WEFT_OK,
               "key %zu is made", i + 1);
        const char *token = suspend_one(f, &lease[i]).waitpoint[0].token;
        is_int(signal_to(f, token).effect, WEFT_SIGNAL_RESUMED, "its token is good at once");
    }
}

CASE(wait_bad_tokens_change_nothing)
{
    struct weft_claimed lease = start(f, NULL), other = start(f, NULL);
    struct weft_suspend_result one = suspend_one(f, &lease), two = suspend_one(f, &other);
    const char *bad[] = {"", "signal_", "weft_1_abc", NULL, NULL};
    char *flipped = weft_arena_strdup(f->arena, one.waitpoint[0].token);
    flipped[40] = flipped[40] == 'A' ? 'B' : 'A';
    bad[3] = flipped;
    bad[4] =
        weft_arena_printf(f->arena, "%.60s%s", one.waitpoint[0].token, two.waitpoint[0].token + 60);
    const char *text = NULL;
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        struct weft_signal_result answer = signal_to(f, bad[i]);
        is_int(answer.rc, WEFT_UNAUTHORIZED, "bad token %zu is refused", i);
        ok(!text || strcmp(text, answer.err->text) == 0, "with the same text");
        text = answer.err->text;
    }
    ok(state_of(f, &lease.id) == WEFT_STATE_SUSPENDED &&
           state_of(f, &other.id) == WEFT_STATE_SUSPENDED,
       "both still wait");
}

/* All signals of one id are judged in order: exactly one resumes, the others are answered. */
CASE(wait_many_signals_resume_once)
{
    enum { MANY = 1000 };
    struct weft_claimed lease = start(f, NULL);
    const struct weft_suspend_at at = {.name = "vote"};
    const struct weft_suspend item = {.id = lease.id,
                                      .epoch = lease.epoch,
                                      .waitpoint = &at,
                                      .waitpoint_count = 1,
                                      .condition = "{\"count\":{\"n\":700,\"of\":\"signals\"}}"};
    struct weft_suspend_result answer = suspend(f, f->a, &item);
    struct weft_signal *signal = weft_new_array(f->arena, struct weft_signal, MANY);
    struct weft_signal_result *sent = weft_new_array(f->arena, struct weft_signal_result, MANY);
    for (size_t i = 0; i < MANY; i++)
        signal[i].token = answer.waitpoint[0].token;
    is_int(weft_engine_signal(f->b, signal, MANY, f->arena, sent, &f->err), WEFT_OK, "sent");
    size_t recorded = 0, resumed = 0, closed = 0;
    for (size_t i = 0; i < MANY; i++) {
        recorded += sent[i].effect == WEFT_SIGNAL_RECORDED;
        resumed += sent[i].effect == WEFT_SIGNAL_RESUMED;
        closed += sent[i].rc == WEFT_NOT_LIVE;
    }
    is_int(recorded, 699, "699 are recorded");
    is_int(resumed, 1, "one resumes");
    is_int(closed, 300, "the others find it closed");
    struct weft_claimed next = take(f, f->a, lease.lane);
    ok(next.signal_count == 700 && !next.more_signals, "all 700 come along with the claim");
}

CASE(wait_large_signals_come_in_part)
{
    struct weft_claimed lease = start(f, NULL);
    const struct weft_suspend_at at = {.name = "w"};
    const struct weft_suspend item = {.id = lease.id,
                                      .epoch = lease.epoch,
                                      .waitpoint = &at,
                                      .waitpoint_count = 1,
                                      .condition = "{\"count\":{\"n\":3,\"of\":\"signals\"}}"};
    struct weft_suspend_result answer = suspend(f, f->a, &item);
    char *payload = weft_arena_alloc(f->arena, 1, 30000);
    memset(payload, '7', 30000);
    const struct weft_signal signal = {
        .token = answer.waitpoint[0].token, .payload = payload, .payload_size = 30000};
    for (int i = 0; i < 3; i++)
        (void)signal_with(f, f->b, &signal);
    struct weft_claimed next = take(f, f->a, lease.lane);
    is_int(next.signal_count, 2, "two of three fit 64 KiB");
    ok(next.more_signals, "the claim says that there are more");
}
