/* SPDX-License-Identifier: Apache-2.0 */

/* After a failed attempt: the wait, the next attempt, or the end. */

#include "conformance.h"
#include "direct.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/limits.h"
#include "engine/job/claim.h"
#include "engine/job/execution_read.h"
#include "engine/job/leases.h"
#include "engine/job/list.h"
#include "engine/job/submit.h"
#include "weft/weft.h"

/* Fails once, waits exactly `wait_ms`, and is claimed again by the other engine. */
static struct weft_claimed fail_and_wait(struct fixture *f, const struct weft_claimed *lease,
                                         int64_t wait_ms)
{
    weft_usec due = f->now_us + wait_ms * WEFT_MS;
    struct weft_lease_answer answer = fail(f, f->a, lease, "flaky");
    ok(answer.err.rc == WEFT_OK && answer.state == WEFT_STATE_DELAYED, "attempt %d: to be retried",
       lease->attempt);
    is_int(answer.run_at_us - f->now_us, wait_ms * WEFT_MS, "attempt %d: after %lld ms",
           lease->attempt, (long long)wait_ms);
    struct weft_execution waiting = describe(f, &lease->id);
    is_int(waiting.attempt, lease->attempt + 1, "attempt %d: the next one has its number",
           lease->attempt);
    is_int(waiting.run_at_us, due, "attempt %d: a reader sees when", lease->attempt);
    forward_ms(f, wait_ms - 1);
    is_int(run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER).handled, 0, "attempt %d: not early",
           lease->attempt);
    forward_ms(f, 1);
    is_int(claim_lane(f, f->b, lease->lane).count, 0, "attempt %d: not before the promoter",
           lease->attempt);
    is_int(run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER).handled, 1, "attempt %d: in time",
           lease->attempt);
    return take(f, f->b, lease->lane);
}

CASE(retry_waits_as_the_policy_says)
{
    static const struct {
        const char *name;
        struct weft_policy policy;
        int64_t wait_ms[24];
    } row[] = {
        {"the default",
         {.no_jitter = true},
         {1000,    2000,    4000,    8000,    16000,   32000,   64000,   128000,
          256000,  512000,  1024000, 2048000, 3600000, 3600000, 3600000, 3600000,
          3600000, 3600000, 3600000, 3600000, 3600000, 3600000, 3600000, 3600000}},
        {"exponential",
         {.no_jitter = true, .max_attempts = 6, .initial_ms = 100, .factor = 3, .max_ms = 2000},
         {100, 300, 900, 2000, 2000}},
        {"fixed",
         {.no_jitter = true,
          .max_attempts = 5,
          .backoff = WEFT_BACKOFF_FIXED,
          .initial_ms = 250,
          .factor = 9},
         {250, 250, 250, 250}},
        {"a factor with a fraction",
         {.no_jitter = true, .initial_ms = 1000, .factor = 1.5, .max_attempts = 4},
         {1000, 1500, 2250}},
        {"a cap below the first wait",
         {.no_jitter = true, .initial_ms = 5000, .max_ms = 700, .max_attempts = 3},
         {700, 700}},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        printf("# %s\n", row[i].name);
        struct weft_claimed lease = start_policy(f, &row[i].policy);
        size_t tries = 0;
        for (; tries < WEFT_LEN(row[i].wait_ms) && row[i].wait_ms[tries]; tries++) {
            struct weft_claimed next = fail_and_wait(f, &lease, row[i].wait_ms[tries]);
            is_int(next.attempt, lease.attempt + 1, "the attempt number grows by one");
            is_int(next.epoch, lease.epoch + 1, "the epoch grows by one");
            lease = next;
        }
        struct weft_lease_answer answer = fail(f, f->b, &lease, "flaky");
        is_int(answer.state, WEFT_STATE_FAILED, "%s: no attempt is left after the last wait",
               row[i].name);
        is_int(describe(f, &lease.id).attempt, tries + 1, "%s: the number of attempts",
               row[i].name);
    }
}

CASE(retry_at_once_needs_no_promoter)
{
    struct weft_claimed lease = start_policy(f, &(struct weft_policy){.initial_ms = -1});
    struct weft_lease_answer answer = fail(f, f->a, &lease, "flaky");
    ok(answer.err.rc == WEFT_OK && answer.state == WEFT_STATE_READY && answer.run_at_us == 0,
       "ready in the same moment");
    struct weft_claimed next = take(f, f->b, lease.lane);
    ok(next.attempt == 2 && next.epoch == 2, "the second attempt");
    expect_last_attempt(f, &lease.id,
                        &(struct weft_attempt){.ended = "failed",
                                               .epoch = 1,
                                               .attempt = 1,
                                               .error_class = "flaky",
                                               .error_message = "it broke"});
}

CASE(retry_jitter_stays_within_a_fifth_of_the_wait)
{
    enum { COUNT = 200, WAIT_MS = 8000 };
    static const struct weft_policy policy = {.initial_ms = WAIT_MS};
    struct weft_spec spec[COUNT];
    struct weft_submitted made[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        spec[i] = (struct weft_spec){.kind = "job", .policy = &policy};
    is_int(engine_submit(f->a, "default", spec, COUNT, made, &f->err), WEFT_OK, "submit");
    struct weft_claim_result result = claim(f, f->a, COUNT);
    is_int(result.count, COUNT, "all are claimed");
    struct weft_failure item[COUNT];
    struct weft_lease_answer answer[COUNT];
    for (size_t i = 0; i < result.count; i++)
        item[i] = (struct weft_failure){.id = result.item[i].id, .epoch = result.item[i].epoch};
    is_int(engine_fail(f->b, item, result.count, answer, &f->err), WEFT_OK, "fail");
    size_t inside = 0, early = 0, late = 0, distinct = 0;
    for (size_t i = 0; i < result.count; i++) {
        weft_usec wait = answer[i].run_at_us ? answer[i].run_at_us - f->now_us : 0;
        bool delayed = answer[i].state == WEFT_STATE_DELAYED;
        inside += delayed && wait >= WAIT_MS * WEFT_MS * 4 / 5 && wait <= WAIT_MS * WEFT_MS * 6 / 5;
        early += wait < WAIT_MS * WEFT_MS * 9 / 10;
        late += wait > WAIT_MS * WEFT_MS * 11 / 10;
        distinct += i > 0 && answer[i].run_at_us != answer[i - 1].run_at_us;
    }
    is_int(inside, COUNT, "every wait is within a fifth of the computed one");
    /* Fewer than 15 of 200 in a quarter has a chance below one in 10^9. */
    ok(early >= 15 && late >= 15, "the waits are spread (%zu early, %zu late)", early, late);
    ok(distinct > COUNT / 2, "each throws its own dice (%zu differ)", distinct);
}

CASE(retry_after_beats_the_backoff)
{
    static const struct {
        int64_t given_ms, wait_ms;
    } row[] = {{7777, 7777}, {1, 1}, {120000, 120000}, {-1, 0}, {0, 1000}};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        /* Longer than max_ms too: the worker passes on a time that another system gave it. */
        struct weft_claimed lease = start_policy(f, &(struct weft_policy){.no_jitter = true});
        struct weft_lease_answer answer =
            fail_as(f, f->a, &lease, &(struct weft_failure){.retry_after_ms = row[i].given_ms});
        is_int(answer.run_at_us, row[i].wait_ms ? f->now_us + row[i].wait_ms * WEFT_MS : 0,
               "retry_after %lld", (long long)row[i].given_ms);
        is_int(answer.state, row[i].wait_ms ? WEFT_STATE_DELAYED : WEFT_STATE_READY,
               "the execution is delayed if there is a wait");
        is_int(describe(f, &lease.id).attempt, 2, "an attempt was spent");
    }
}

CASE(retry_after_is_bounded)
{
    struct weft_claimed lease = start(f, NULL);
    static const int64_t wrong[] = {-2, WEFT_DELAY_MAX_MS + 1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < WEFT_LEN(wrong); i++) {
        struct weft_lease_answer answer =
            fail_as(f, f->a, &lease, &(struct weft_failure){.retry_after_ms = wrong[i]});
        is_int(answer.err.rc, WEFT_INVALID_VALUE, "retry_after %lld", (long long)wrong[i]);
        is_str(answer.err.field, "retry_after_ms", "the field is named");
    }
    is_int(state_of(f, &lease.id), WEFT_STATE_RUNNING, "a refused retry_after keeps the lease");
}

/* What makes a failure final, against everything that asks for another attempt. */
CASE(retry_final_failures)
{
    static const char *const no_retry[] = {"bad_input", "forbidden"};
    static const struct weft_policy listed = {.no_retry = no_retry, .no_retry_count = 2};
    static const struct weft_policy single = {.max_attempts = 1};
    static const struct {
        const char *name;
        const struct weft_policy *policy;
        struct weft_failure failure;
        enum weft_state state;
    } row[] = {
        {"permanent", NULL, {.permanent = true}, WEFT_STATE_FAILED},
        {"permanent beats retry_after",
         NULL,
         {.permanent = true, .retry_after_ms = 5},
         WEFT_STATE_FAILED},
        {"a class in no_retry", &listed, {.error_class = "forbidden"}, WEFT_STATE_FAILED},
        {"no_retry beats retry_after",
         &listed,
         {.error_class = "bad_input", .retry_after_ms = 5},
         WEFT_STATE_FAILED},
        {"no_retry beats at once",
         &listed,
         {.error_class = "bad_input", .retry_after_ms = -1},
         WEFT_STATE_FAILED},
        {"a class that only begins like it",
         &listed,
         {.error_class = "forbidden_now", .retry_after_ms = 5},
         WEFT_STATE_DELAYED},
        {"another case of letters",
         &listed,
         {.error_class = "Forbidden", .retry_after_ms = 5},
         WEFT_STATE_DELAYED},
        {"one attempt is the most", &single, {.error_class = "x"}, WEFT_STATE_FAILED},
        {"running out beats retry_after", &single, {.retry_after_ms = 5}, WEFT_STATE_FAILED},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_claimed lease = start_policy(f, row[i].policy);
        struct weft_lease_answer answer = fail_as(f, f->a, &lease, &row[i].failure);
        is_int(answer.state, row[i].state, "%s", row[i].name);
        is_int(state_of(f, &lease.id), row[i].state, "%s: as stored", row[i].name);
        if (row[i].state == WEFT_STATE_FAILED)
            is_int(answer.run_at_us, 0, "%s: no next time", row[i].name);
    }
}

CASE(retry_exhausted_keeps_the_last_error)
{
    static const struct weft_policy policy = {.max_attempts = 2, .initial_ms = -1};
    struct weft_claimed lease = start_policy(f, &policy);
    (void)fail_as(f, f->a, &lease,
                  &(struct weft_failure){.error_class = "first", .message = "one"});
    ok(!describe(f, &lease.id).error_class, "a living execution has not failed");
    struct weft_claimed next = take(f, f->b, lease.lane);
    forward_ms(f, 3);
    (void)fail_as(f, f->b, &next,
                  &(struct weft_failure){.error_class = "second", .message = "two"});
    struct weft_execution end = describe(f, &lease.id);
    is_int(end.state, WEFT_STATE_FAILED, "the execution has failed");
    is_str(end.error_class, "second", "the execution has the class of the last failure");
    is_str(end.error_message, "two", "the execution has the message of the last failure");
    is_str(end.worker, "worker-b", "the execution has the last worker");
    is_int(end.finished_us, f->now_us, "the execution finished at the last failure");
    is_int(end.attempt, 2, "in the second attempt");
    struct weft_attempts list = attempts(f, &lease.id);
    ok(list.count == 2 && strcmp(list.item[0].error_class, "first") == 0 &&
           strcmp(list.item[0].error_message, "one") == 0,
       "the first error is in the history");
    is_int(claim_lane(f, f->a, lease.lane).count, 0, "the failed execution cannot be claimed");
}

/* The facts about attempts that a reader gets, at one point of a life. */
static void expect_retries(struct fixture *f, const struct weft_id *id, int32_t used, int32_t left,
                           enum weft_not_retried why)
{
    struct weft_execution item = describe(f, id);
    is_int(item.attempts_used, used, "%s: attempts used", weft_state_name(item.state));
    is_int(item.attempts_left, left, "%s: attempts left", weft_state_name(item.state));
    is_int(item.not_retried, why, "%s: why not retried", weft_state_name(item.state));
    is_int(item.next_attempt_us, item.state == WEFT_STATE_DELAYED && used > 0 ? item.run_at_us : 0,
           "%s: the next attempt", weft_state_name(item.state));
    ok(item.policy && item.policy->max_attempts == 3 && item.policy->max_ms == 3600000 &&
           item.policy->initial_ms == 1000 && item.policy->no_retry_count == 1 &&
           strcmp(item.policy->no_retry[0], "bad_input") == 0,
       "%s: the policy, with its defaults", weft_state_name(item.state));
}

CASE(retry_is_shown_to_readers)
{
    static const char *const no_retry[] = {"bad_input"};
    static const struct weft_policy policy = {
        .max_attempts = 3, .max_lost = 1, .no_retry = no_retry, .no_retry_count = 1};
    const char *lane;
    struct weft_id id =
        submit_apart(f, &(struct weft_spec){.kind = "job", .policy = &policy}, &lane);
    expect_retries(f, &id, 0, 3, WEFT_NOT_RETRIED_NONE);
    for (int life = 0; life < 2; life++) {
        struct weft_claimed lease = take(f, f->a, lane);
        expect_retries(f, &id, 1, 2, WEFT_NOT_RETRIED_NONE);
        forward_ms(f, 30000);
        is_int(run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY).handled, 1, "the lease is lost");
        expect_retries(f, &id, 0, 3, WEFT_NOT_RETRIED_NONE);
        for (int32_t i = 1; i <= 2; i++) {
            lease = take(f, f->a, lane);
            is_int(fail(f, f->a, &lease, "flaky").state, WEFT_STATE_DELAYED, "failed, %d", i);
            expect_retries(f, &id, i, 3 - i, WEFT_NOT_RETRIED_NONE);
            forward_ms(f, 5000);
            (void)run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
            expect_retries(f, &id, i, 3 - i, WEFT_NOT_RETRIED_NONE);
        }
        lease = take(f, f->a, lane);
        expect_retries(f, &id, 3, 0, WEFT_NOT_RETRIED_NONE);
        (void)fail(f, f->a, &lease, life ? "bad_input" : "flaky");
        expect_retries(f, &id, 3, 0, life ? WEFT_NOT_RETRIED_CLASS : WEFT_NOT_RETRIED_ATTEMPTS);
        (void)steer_id(f, WEFT_STEER_REPLAY, &id);
        expect_retries(f, &id, 0, 3, WEFT_NOT_RETRIED_NONE);
    }
    struct weft_claimed lease = take(f, f->a, lane);
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true});
    expect_retries(f, &id, 1, 0, WEFT_NOT_RETRIED_PERMANENT);
    (void)steer_id(f, WEFT_STEER_REPLAY, &id);
    for (int loss = 0; loss < 2; loss++) {
        (void)take(f, f->b, lane);
        forward_ms(f, 30000);
        (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    }
    expect_retries(f, &id, 0, 0, WEFT_NOT_RETRIED_LOST);
    struct weft_read_page page =
        list_page(f, &(struct weft_listing){.filter = {.state = WEFT_STATE_FAILED}, .limit = 5});
    ok(page.count == 1 && page.item[0].attempts_left == 0 && page.item[0].policy &&
           page.item[0].policy->max_lost == 1 && page.item[0].not_retried == WEFT_NOT_RETRIED_LOST,
       "a list tells the same");
}

/*
 * All that handlers call is away for a minute. With the default policy every execution is tried
 * until the outage is over, at most eight times: a seventh attempt begins at the earliest after
 * 0.8 * 63 s, an eighth after 0.8 * 127 s.
 */
CASE(retry_default_survives_an_outage_of_a_minute)
{
    enum { COUNT = 1000, STEP_MS = 1000, OUTAGE_MS = 60000, LIMIT_MS = 200000 };
    struct weft_id *id = submit_copies(f, &(struct weft_spec){.kind = "job"}, COUNT);
    struct weft_lease_answer *answer = weft_new_array(f->arena, struct weft_lease_answer, COUNT);
    struct weft_failure *failure = weft_new_array(f->arena, struct weft_failure, COUNT);
    struct weft_complete *done = weft_new_array(f->arena, struct weft_complete, COUNT);
    size_t succeeded = 0, failures = 0, refused = 0;
    for (int64_t at_ms = 0; at_ms < LIMIT_MS && succeeded < COUNT; at_ms += STEP_MS) {
        while (run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER).more)
            ;
        struct weft_claim_result lease = claim(f, f->a, COUNT);
        for (size_t i = 0; i < lease.count; i++) {
            failure[i] = (struct weft_failure){.id = lease.item[i].id,
                                               .epoch = lease.item[i].epoch,
                                               .error_class = "connection_refused"};
            done[i] = (struct weft_complete){.id = lease.item[i].id, .epoch = lease.item[i].epoch};
        }
        bool away = at_ms < OUTAGE_MS;
        if (lease.count > 0)
            refused += away ? engine_fail(f->a, failure, lease.count, answer, &f->err) != 0
                            : engine_complete(f->a, done, lease.count, answer, &f->err) != 0;
        for (size_t i = 0; i < lease.count; i++)
            refused += answer[i].err.rc != WEFT_OK;
        failures += away ? lease.count : 0;
        succeeded += away ? 0 : lease.count;
        forward_ms(f, STEP_MS);
    }
    is_int(refused, 0, "every answer of a worker is taken");
    is_int(succeeded, COUNT, "all of them succeed after the outage");
    ok(failures / COUNT >= 6 && failures <= (size_t)7 * COUNT,
       "each fails six or seven times (%zu in all)", failures);
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT; i += 97) {
        struct weft_execution item = describe(f, &id[i]);
        wrong += item.state != WEFT_STATE_SUCCEEDED || item.attempts_used < 7 ||
                 item.attempts_used > 8 || item.attempts_left != 0;
    }
    is_int(wrong, 0, "readers see seven or eight attempts used");
}

CASE(retry_error_texts)
{
    char text[WEFT_MESSAGE_MAX + 3];
    memset(text, 'm', sizeof(text));
    memcpy(text + WEFT_MESSAGE_MAX - 1, "\xc3\xa9", 3); /* a letter astride the limit */
    struct weft_claimed lease = start(f, NULL);
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.message = text, .permanent = true});
    struct weft_execution end = describe(f, &lease.id);
    is_str(end.error_class, "error", "no class given is called error");
    is_int(strlen(end.error_message), WEFT_MESSAGE_MAX - 1,
           "a long message is cut between letters");

    lease = start(f, NULL);
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.error_class = "x", .permanent = true});
    is_str(describe(f, &lease.id).error_message, NULL, "no message is no message");

    lease = start(f, NULL);
    text[WEFT_CLASS_MAX + 1] = '\0';
    struct weft_lease_answer answer =
        fail_as(f, f->a, &lease, &(struct weft_failure){.error_class = text});
    ok(answer.err.rc != WEFT_OK && answer.err.rc != WEFT_FENCED && answer.err.field &&
           strcmp(answer.err.field, "class") == 0,
       "a class that is too long is refused");
    answer = fail_as(f, f->a, &lease, &(struct weft_failure){.message = "\xff"});
    is_int(answer.err.rc, WEFT_INVALID_VALUE, "a message that is not UTF-8 is refused");
    is_int(state_of(f, &lease.id), WEFT_STATE_RUNNING, "a refused failure keeps the lease");
}

CASE(retry_comes_back_to_its_old_place)
{
    struct weft_id first = submit_job(f), second = submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    ok(weft_id_cmp(&lease.id, &first) == 0, "the first is claimed first");
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.retry_after_ms = -1});
    lease = claim_one(f, f->a);
    ok(weft_id_cmp(&lease.id, &first) == 0,
       "the first, failed without a wait, is claimed before later work");
    lease = claim_one(f, f->b);
    ok(weft_id_cmp(&lease.id, &second) == 0, "the second is claimed next");
}
