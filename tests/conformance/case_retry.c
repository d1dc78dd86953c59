/* SPDX-License-Identifier: Apache-2.0 */

/* What follows a failed attempt: the wait, the next attempt, or the end. */

#include "conformance.h"

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
            is_int(next.epoch, lease.epoch + 1, "and so does the epoch");
            lease = next;
        }
        struct weft_lease_answer answer = fail(f, f->b, &lease, "flaky");
        is_int(answer.state, WEFT_STATE_FAILED, "%s: then no attempt is left", row[i].name);
        is_int(describe(f, &lease.id).attempt, tries + 1, "%s: that was the last", row[i].name);
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
    is_int(weft_engine_submit(f->a, "default", spec, COUNT, made, &f->err), WEFT_OK, "submit");
    struct weft_claim_result result = claim(f, f->a, COUNT);
    is_int(result.count, COUNT, "claim");
    struct weft_failure item[COUNT];
    struct weft_lease_answer answer[COUNT];
    for (size_t i = 0; i < result.count; i++)
        item[i] = (struct weft_failure){.id = result.item[i].id, .epoch = result.item[i].epoch};
    is_int(weft_engine_fail(f->b, item, result.count, answer, &f->err), WEFT_OK, "fail");
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
    ok(early >= 15 && late >= 15, "and they are spread (%zu early, %zu late)", early, late);
    ok(distinct > COUNT / 2, "each throws its own dice (%zu differ)", distinct);
}

CASE(retry_after_beats_the_backoff)
{
    static const struct {
        int64_t given_ms, wait_ms;
    } row[] = {{7777, 7777}, {1, 1}, {120000, 120000}, {-1, 0}, {0, 1000}};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        /* Longer than max_ms too: the worker knows what the other side told it. */
        struct weft_claimed lease = start_policy(f, &(struct weft_policy){.no_jitter = true});
        struct weft_lease_answer answer =
            fail_as(f, f->a, &lease, &(struct weft_failure){.retry_after_ms = row[i].given_ms});
        is_int(answer.run_at_us, row[i].wait_ms ? f->now_us + row[i].wait_ms * WEFT_MS : 0,
               "retry_after %lld", (long long)row[i].given_ms);
        is_int(answer.state, row[i].wait_ms ? WEFT_STATE_DELAYED : WEFT_STATE_READY, "its state");
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
    is_int(state_of(f, &lease.id), WEFT_STATE_RUNNING, "and the lease is still held");
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

CASE(retry_exhausted_tells_the_last_error)
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
    is_int(end.state, WEFT_STATE_FAILED, "failed");
    is_str(end.error_class, "second", "with the last class");
    is_str(end.error_message, "two", "and its message");
    is_str(end.worker, "worker-b", "by the last worker");
    is_int(end.finished_us, f->now_us, "then");
    is_int(end.attempt, 2, "in the second attempt");
    struct weft_attempts list = attempts(f, &lease.id);
    ok(list.count == 2 && strcmp(list.item[0].error_class, "first") == 0 &&
           strcmp(list.item[0].error_message, "one") == 0,
       "the first error is in the history");
    is_int(claim_lane(f, f->a, lease.lane).count, 0, "it is over");
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
    is_int(answer.err.rc, WEFT_INVALID_VALUE, "so is a message that is not UTF-8");
    is_int(state_of(f, &lease.id), WEFT_STATE_RUNNING, "and the lease is still held");
}

CASE(retry_comes_back_to_its_old_place)
{
    struct weft_id first = submit_job(f), second = submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    ok(weft_id_cmp(&lease.id, &first) == 0, "the first is claimed first");
    (void)fail_as(f, f->a, &lease, &(struct weft_failure){.retry_after_ms = -1});
    lease = claim_one(f, f->a);
    ok(weft_id_cmp(&lease.id, &first) == 0, "and again, before what came later");
    lease = claim_one(f, f->b);
    ok(weft_id_cmp(&lease.id, &second) == 0, "then the second");
}
