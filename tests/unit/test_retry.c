/* SPDX-License-Identifier: Apache-2.0 */

/* Backoff, and the choice between another attempt and the end. */

#include "base/limits.h"
#include "core/policy.h"
#include "tap.h"

/* Exponential from 1 s by 2 up to 60 s, five attempts, no jitter, unless a test says otherwise. */
static struct weft_rules plain_rules(void)
{
    return (struct weft_rules){
        .max_attempts = 5,
        .backoff = WEFT_BACKOFF_EXPONENTIAL,
        .initial_us = WEFT_SECOND,
        .max_us = 60 * WEFT_SECOND,
        .factor = 2,
        .max_lost = 3,
    };
}

static void test_growth(void)
{
    struct weft_rules rules = plain_rules();
    static const int64_t wanted_s[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
    for (size_t i = 0; i < WEFT_LEN(wanted_s); i++)
        is_int(weft_retry_backoff(&rules, (int32_t)i + 1, 0), wanted_s[i] * WEFT_SECOND,
               "after %zu failures", i + 1);
    rules.factor = 1.5;
    is_int(weft_retry_backoff(&rules, 3, 0), 2250 * WEFT_MS, "a factor that is no whole number");
    rules.factor = 1;
    is_int(weft_retry_backoff(&rules, WEFT_ATTEMPTS_MAX, 0), WEFT_SECOND, "a factor of 1 stays");
    rules.backoff = WEFT_BACKOFF_FIXED;
    rules.factor = 10;
    is_int(weft_retry_backoff(&rules, 4, 0), WEFT_SECOND, "fixed ignores the factor");
    rules.max_us = WEFT_MS;
    is_int(weft_retry_backoff(&rules, 4, 0), WEFT_MS, "fixed respects the ceiling");
    rules.backoff = WEFT_BACKOFF_EXPONENTIAL;
    is_int(weft_retry_backoff(&rules, 1, 0), WEFT_MS, "the ceiling holds from the first wait on");
    rules.initial_us = 0;
    is_int(weft_retry_backoff(&rules, 9, 0), 0, "nothing times anything is nothing");
}

/* The largest values that a policy may hold, and counts far beyond what any can reach. */
static void test_no_overflow(void)
{
    struct weft_rules rules = plain_rules();
    rules.initial_us = rules.max_us = WEFT_DELAY_MAX_MS * WEFT_MS;
    rules.factor = 1000;
    static const int32_t count[] = {1, 2, 1000, WEFT_ATTEMPTS_MAX, INT32_MAX};
    for (size_t i = 0; i < WEFT_LEN(count); i++)
        is_int(weft_retry_backoff(&rules, count[i], 0), rules.max_us, "ten years at most after %d",
               count[i]);
    rules.initial_us = 1;
    for (size_t i = 2; i < WEFT_LEN(count); i++)
        is_int(weft_retry_backoff(&rules, count[i], 0), rules.max_us,
               "the ceiling is reached from a microsecond after %d", count[i]);
    is_int(weft_retry_backoff(&rules, 0, 0), 1, "no failure yet is as good as one");
}

static void test_jitter(void)
{
    struct weft_rules rules = plain_rules();
    rules.jitter = true;
    weft_usec whole = 4 * WEFT_SECOND;
    weft_usec least = 3200 * WEFT_MS, longest = 4800 * WEFT_MS;
    is_int(weft_retry_backoff(&rules, 3, 0), least, "the lowest draw waits four fifths of it");
    weft_usec most = weft_retry_backoff(&rules, 3, UINT64_MAX);
    ok(most <= longest && most >= longest - 1, "the highest draw waits a fifth more");
    is_int(weft_retry_backoff(&rules, 3, (uint64_t)1 << 63), whole, "the middle waits all of it");
    int outside = 0, shrinks = 0;
    weft_usec last = 0;
    for (uint64_t i = 0; i < 4096; i++) {
        weft_usec wait = weft_retry_backoff(&rules, 3, i << 52);
        outside += wait < least || wait > longest;
        shrinks += wait < last;
        last = wait;
    }
    is_int(outside, 0, "no draw leaves the bounds");
    is_int(shrinks, 0, "a higher draw never waits less");
    is_int(weft_retry_backoff(&rules, 20, 0), 48 * WEFT_SECOND,
           "the waits at the ceiling begin at four fifths of it");
    most = weft_retry_backoff(&rules, 20, UINT64_MAX);
    ok(most <= rules.max_us && most >= rules.max_us - 1,
       "the wait at the ceiling never exceeds it");
    is_int(weft_retry_backoff(&rules, 20, (uint64_t)1 << 63), 54 * WEFT_SECOND,
           "the waits at the ceiling are spread evenly below it");
    rules.jitter = false;
    is_int(weft_retry_backoff(&rules, 3, UINT64_MAX), whole, "without jitter the draw is nothing");
}

struct decision {
    const char *name;
    int32_t attempt, forgiven;
    struct weft_fault_report report;
    enum weft_event_kind want;
    weft_usec wait_us; /* RETRY */
};

static void test_decide(void)
{
    static const char *const final[] = {"bad_input", "not_found"};
    struct weft_rules rules = plain_rules();
    rules.no_retry = final;
    rules.no_retry_count = WEFT_LEN(final);
    const struct decision row[] = {
        {"the first failure", 1, 0, {0}, WEFT_EVENT_RETRY, WEFT_SECOND},
        {"the last but one", 4, 0, {0}, WEFT_EVENT_RETRY, 8 * WEFT_SECOND},
        {"the last", 5, 0, {0}, WEFT_EVENT_FAIL, 0},
        {"past the last", 6, 0, {0}, WEFT_EVENT_FAIL, 0},
        {"forgiven attempts do not count", 6, 5, {0}, WEFT_EVENT_RETRY, WEFT_SECOND},
        {"nor make the wait longer", 8, 5, {0}, WEFT_EVENT_RETRY, 4 * WEFT_SECOND},
        {"but the budget is no larger", 10, 5, {0}, WEFT_EVENT_FAIL, 0},
        {"permanent", 1, 0, {.permanent = true}, WEFT_EVENT_FAIL, 0},
        {"permanent beats retry_after",
         1,
         0,
         {.permanent = true, .retry_after_ms = 5},
         WEFT_EVENT_FAIL,
         0},
        {"a final class", 1, 0, {.error_class = "not_found"}, WEFT_EVENT_FAIL, 0},
        {"a final class beats retry_after",
         1,
         0,
         {.error_class = "bad_input", .retry_after_ms = 5},
         WEFT_EVENT_FAIL,
         0},
        {"another class", 1, 0, {.error_class = "not_foun"}, WEFT_EVENT_RETRY, WEFT_SECOND},
        {"classes are case sensitive",
         1,
         0,
         {.error_class = "NOT_FOUND"},
         WEFT_EVENT_RETRY,
         WEFT_SECOND},
        {"retry_after beats the backoff",
         1,
         0,
         {.retry_after_ms = 90000},
         WEFT_EVENT_RETRY,
         90 * WEFT_SECOND},
        {"and its ceiling", 4, 0, {.retry_after_ms = 1}, WEFT_EVENT_RETRY, WEFT_MS},
        {"retry_after -1 is at once", 4, 0, {.retry_after_ms = -1}, WEFT_EVENT_RETRY_NOW, 0},
        {"running out beats retry_after", 5, 0, {.retry_after_ms = -1}, WEFT_EVENT_FAIL, 0},
        {"the longest retry_after",
         1,
         0,
         {.retry_after_ms = WEFT_DELAY_MAX_MS},
         WEFT_EVENT_RETRY,
         WEFT_DELAY_MAX_MS * WEFT_MS},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        const struct weft_live live = {
            .state = WEFT_STATE_RUNNING, .attempt = row[i].attempt, .forgiven = row[i].forgiven};
        struct weft_fault_report report = row[i].report;
        report.how = i % 2 ? WEFT_ENDED_FAILED : WEFT_ENDED_TIMED_OUT;
        report.now_us = 1000000;
        struct weft_event event = weft_retry_decide(&rules, &live, &report);
        is_int(event.kind, row[i].want, "%s", row[i].name);
        is_int(event.due_us, row[i].wait_us ? 1000000 + row[i].wait_us : 0, "%s: when",
               row[i].name);
        is_int(event.how, report.how, "%s: how the attempt ended", row[i].name);
    }
}

static void test_at_once(void)
{
    struct weft_rules rules = plain_rules();
    const struct weft_live live = {.attempt = 1};
    const struct weft_fault_report report = {.now_us = 5};
    rules.initial_us = 0;
    is_int(weft_retry_decide(&rules, &live, &report).kind, WEFT_EVENT_RETRY_NOW,
           "a policy without a wait retries at once");
    rules.jitter = true;
    is_int(weft_retry_decide(&rules, &live, &report).kind, WEFT_EVENT_RETRY_NOW,
           "a policy without a wait and with jitter retries at once");
    rules.initial_us = WEFT_SECOND;
    is_int(weft_retry_decide(&rules, &live, &report).kind, WEFT_EVENT_RETRY,
           "jitter never makes a retry immediate");
    rules.max_attempts = 1;
    is_int(weft_retry_decide(&rules, &live, &report).kind, WEFT_EVENT_FAIL,
           "one attempt is one attempt");
}

static void test_poison(void)
{
    struct weft_rules rules = plain_rules();
    for (int32_t lost = 0; lost < 6; lost++) {
        const struct weft_live live = {.lost = lost, .attempt = 1};
        struct weft_event event = weft_lost_decide(&rules, &live, 0);
        bool poison = lost >= rules.max_lost;
        is_int(event.kind, poison ? WEFT_EVENT_FAIL : WEFT_EVENT_LOSE,
               "the event with %d lost and %d allowed", lost, rules.max_lost);
        if (poison)
            is_int(event.how, WEFT_ENDED_LOST, "the execution fails as lost");
    }
}

/* What an outage took is not held against the work, however often it was lost before. */
static void test_forgiveness(void)
{
    static const struct {
        weft_usec due_us, forgive_us;
        bool forgiven;
    } row[] = {
        {1000, 0, false},   {1000, 999, false},       {1000, 1000, false},
        {1000, 1001, true}, {1000, WEFT_NEVER, true},
    };
    struct weft_rules rules = plain_rules();
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        for (int32_t lost = 0; lost <= rules.max_lost; lost += rules.max_lost) {
            const struct weft_live live = {.state = WEFT_STATE_RUNNING,
                                           .due_us = row[i].due_us,
                                           .epoch = 1,
                                           .attempt = 1,
                                           .lost = lost};
            struct weft_event event = weft_lost_decide(&rules, &live, row[i].forgive_us);
            bool poison = !row[i].forgiven && lost == rules.max_lost;
            struct weft_step step;
            is_int(event.kind, poison ? WEFT_EVENT_FAIL : WEFT_EVENT_LOSE, "row %zu, %d lost: %s",
                   i, lost, poison ? "the end" : "goes on");
            ok(weft_state_step(&live, &event, &step), "row %zu, %d lost: a step", i, lost);
            is_int(step.ended, WEFT_ENDED_LOST, "row %zu, %d lost: its lease is lost", i, lost);
            if (!poison)
                is_int(step.after.lost, lost + !row[i].forgiven, "row %zu, %d lost: counted", i,
                       lost);
        }
}

/* Five attempts, ten lost leases: the facts that a reader gets at each point of a life. */
static const struct {
    const char *name;
    struct weft_retry_facts facts;
    int32_t used, left;
    weft_usec next_us;
    enum weft_not_retried why;
} look[] = {
    {"new", {WEFT_STATE_READY, .attempt = 1}, 0, 5, 0, 0},
    {"submitted with a delay", {WEFT_STATE_DELAYED, .attempt = 1, .due_us = 77}, 0, 5, 0, 0},
    {"blocked", {WEFT_STATE_BLOCKED, .attempt = 1}, 0, 5, 0, 0},
    {"the first attempt runs", {WEFT_STATE_RUNNING, .attempt = 1, .due_us = 9}, 1, 4, 0, 0},
    {"the first has failed", {WEFT_STATE_DELAYED, .attempt = 2, .due_us = 77}, 1, 4, 77, 0},
    {"its wait is over", {WEFT_STATE_READY, .attempt = 2}, 1, 4, 0, 0},
    {"the last runs", {WEFT_STATE_RUNNING, .attempt = 5}, 5, 0, 0, 0},
    {"succeeded at the third",
     {WEFT_STATE_SUCCEEDED, WEFT_ENDED_COMPLETED, .attempt = 3},
     3,
     0,
     0,
     0},
    {"the last failed",
     {WEFT_STATE_FAILED, WEFT_ENDED_FAILED, .attempt = 5, .error_class = "x"},
     5,
     0,
     0,
     WEFT_NOT_RETRIED_ATTEMPTS},
    {"the last timed out",
     {WEFT_STATE_FAILED, WEFT_ENDED_TIMED_OUT, .attempt = 5, .error_class = "timed_out"},
     5,
     0,
     0,
     WEFT_NOT_RETRIED_ATTEMPTS},
    {"permanent",
     {WEFT_STATE_FAILED, WEFT_ENDED_FAILED, .attempt = 2, .error_class = "x"},
     2,
     0,
     0,
     WEFT_NOT_RETRIED_PERMANENT},
    {"a class in no_retry",
     {WEFT_STATE_FAILED, WEFT_ENDED_FAILED, .attempt = 1, .error_class = "bad_input"},
     1,
     0,
     0,
     WEFT_NOT_RETRIED_CLASS},
    {"a class in no_retry at the last attempt",
     {WEFT_STATE_FAILED, WEFT_ENDED_FAILED, .attempt = 5, .error_class = "bad_input"},
     5,
     0,
     0,
     WEFT_NOT_RETRIED_CLASS},
    {"lost too often",
     {WEFT_STATE_FAILED, WEFT_ENDED_LOST, .attempt = 2, .error_class = "lost_too_often"},
     1,
     0,
     0,
     WEFT_NOT_RETRIED_LOST},
    {"an invalid row of the inbox",
     {WEFT_STATE_FAILED, WEFT_ENDED_REFUSED, .attempt = 1, .error_class = "invalid_value"},
     0,
     0,
     0,
     WEFT_NOT_RETRIED_INVALID},
    {"cancelled in its second attempt",
     {WEFT_STATE_CANCELLED, WEFT_ENDED_CANCELLED, .attempt = 2},
     1,
     0,
     0,
     0},
    {"expired before its first",
     {WEFT_STATE_EXPIRED, WEFT_ENDED_EXPIRED, .attempt = 1},
     0,
     0,
     0,
     0},
    {"skipped", {WEFT_STATE_SKIPPED, WEFT_ENDED_SKIPPED, .attempt = 1}, 0, 0, 0, 0},
    {"replayed after five", {WEFT_STATE_READY, .attempt = 6, .forgiven = 5}, 0, 5, 0, 0},
    {"replayed, running", {WEFT_STATE_RUNNING, .attempt = 6, .forgiven = 5}, 1, 4, 0, 0},
    {"replayed, failed once",
     {WEFT_STATE_DELAYED, .attempt = 7, .forgiven = 5, .due_us = 8},
     1,
     4,
     8,
     0},
    {"replayed, used up again",
     {WEFT_STATE_FAILED, WEFT_ENDED_FAILED, .attempt = 10, .forgiven = 5},
     5,
     0,
     0,
     WEFT_NOT_RETRIED_ATTEMPTS},
};

static void test_look(void)
{
    static const char *const final[] = {"bad_input"};
    struct weft_rules rules = plain_rules();
    rules.no_retry = final;
    rules.no_retry_count = 1;
    for (size_t i = 0; i < WEFT_LEN(look); i++) {
        struct weft_retry_view view = weft_retry_look(&rules, &look[i].facts);
        is_int(view.used, look[i].used, "%s: attempts used", look[i].name);
        is_int(view.left, look[i].left, "%s: attempts left", look[i].name);
        is_int(view.next_us, look[i].next_us, "%s: the next attempt", look[i].name);
        is_int(view.not_retried, look[i].why, "%s: why not retried", look[i].name);
    }
}

int main(void)
{
    test_growth();
    test_no_overflow();
    test_jitter();
    test_decide();
    test_at_once();
    test_poison();
    test_forgiveness();
    test_look();
    return tap_done();
}
