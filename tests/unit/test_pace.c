/* SPDX-License-Identifier: Apache-2.0 */

/* When scanners run, with a clock that the test sets. */

#include "core/pace.h"
#include "tap.h"

#define S     WEFT_SECOND
#define START (1000 * S)
enum { SIX = 6 };

static const struct weft_pace_run nothing = {.due_us = WEFT_NEVER};

static struct weft_pace new_pace(weft_usec interval_us)
{
    struct weft_pace pace;
    weft_pace_init(&pace, interval_us, START);
    return pace;
}

/* A run of no length that did nothing and knows of nothing. */
static void run_idle(struct weft_pace *pace, weft_usec now_us)
{
    weft_pace_begin(pace, now_us);
    weft_pace_end(pace, &nothing, now_us);
}

static void test_interval(void)
{
    struct weft_pace pace = new_pace(S);
    is_int(weft_pace_next(&pace), START, "the first run is at the start");
    weft_pace_begin(&pace, START + 5);
    is_int(weft_pace_next(&pace), WEFT_NEVER, "never twice at once");
    weft_pace_end(&pace, &nothing, START + 10 * WEFT_MS);
    is_int(weft_pace_next(&pace), START + S + 10 * WEFT_MS,
           "the interval counts from the end of a run");
    weft_pace_begin(&pace, START + 60 * S);
    weft_pace_end(&pace, &nothing, START + 60 * S + 1);
    is_int(weft_pace_next(&pace), START + 61 * S + 1, "a late run shifts all that follow");
    weft_pace_begin(&pace, START + 70 * S);
    weft_pace_end(&pace, &nothing, START + 70 * S + 500 * WEFT_MS);
    is_int(weft_pace_next(&pace), START + 75 * S + 500 * WEFT_MS,
           "a look in vain of half a second is followed by a rest of five");
    weft_pace_expect(&pace, START + 72 * S);
    is_int(weft_pace_next(&pace), START + 72 * S, "a due time comes before the rest");
    weft_pace_begin(&pace, START + 80 * S);
    weft_pace_end(&pace, &nothing, START + 90 * S);
    is_int(weft_pace_next(&pace), START + 100 * S, "a long wait is cut to ten intervals");
    weft_pace_begin(&pace, START + 100 * S);
    weft_pace_end(&pace, &(struct weft_pace_run){.handled = true, .due_us = WEFT_NEVER},
                  START + 105 * S);
    is_int(weft_pace_next(&pace), START + 106 * S, "a run that did something needs none");
    pace = new_pace(0);
    is_int(weft_pace_next(&pace), WEFT_NEVER, "an interval of 0 is off");
    weft_pace_expect(&pace, START);
    is_int(weft_pace_next(&pace), WEFT_NEVER, "whatever is due");
}

static void test_due(void)
{
    struct weft_pace pace = new_pace(10 * S);
    weft_pace_begin(&pace, START);
    weft_pace_end(&pace, &(struct weft_pace_run){.due_us = START + 4 * S}, START);
    is_int(weft_pace_next(&pace), START + 4 * S, "a reported due time comes before the interval");
    weft_pace_expect(&pace, START + 7 * S);
    is_int(weft_pace_next(&pace), START + 4 * S, "a later due time changes nothing");
    weft_pace_expect(&pace, START + 2 * S);
    is_int(weft_pace_next(&pace), START + 2 * S, "an earlier one does");
    weft_pace_expect(&pace, WEFT_NEVER);
    is_int(weft_pace_next(&pace), START + 2 * S, "no news is no news");
    weft_pace_begin(&pace, START + 2 * S);
    weft_pace_expect(&pace, START + 5 * S);
    weft_pace_end(&pace, &(struct weft_pace_run){.handled = true, .due_us = START + 6 * S},
                  START + 3 * S);
    is_int(weft_pace_next(&pace), START + 5 * S, "a due time heard during a run is not lost");
    weft_pace_begin(&pace, START + 5 * S);
    weft_pace_end(&pace, &(struct weft_pace_run){.handled = true, .due_us = START + 1},
                  START + 6 * S);
    is_int(weft_pace_next(&pace), START + 6 * S,
           "a run that handled something and left more is repeated at once");
}

static void test_vain(void)
{
    struct weft_pace pace = new_pace(S);
    const struct weft_pace_run locked = {.due_us = START - 5 * S};
    weft_pace_begin(&pace, START);
    weft_pace_expect(&pace, START - 4 * S);
    weft_pace_end(&pace, &locked, START + 10);
    is_int(weft_pace_next(&pace), START + S + 10, "due, but not to be had: it waits the interval");
    (void)weft_pace_looked(&pace, START - 5 * S, S, START + 20);
    is_int(weft_pace_next(&pace), START + S + 10, "the poll neither hurries nor delays it");
    (void)weft_pace_looked(&pace, START, S, START + 20);
    is_int(weft_pace_next(&pace), START + S + 10, "up to the moment in which that run began");
    weft_pace_expect(&pace, START + 1);
    is_int(weft_pace_next(&pace), START + 10,
           "a due time after that run began starts the next run");
    for (int i = 0; i < 10; i++)
        run_idle(&pace, START + 10 + i);
    weft_pace_begin(&pace, START + 20);
    weft_pace_end(&pace, &locked, START + 20);
    is_int(weft_pace_next(&pace), START + 20 + S, "a scanner whose rows are locked does not spin");
}

static void test_poll(void)
{
    struct weft_pace pace = new_pace(S);
    ok(!weft_pace_looked(&pace, WEFT_NEVER, S, START), "a poll does not stand for the first run");
    is_int(weft_pace_next(&pace), START, "the first run comes at the start");
    run_idle(&pace, START);
    weft_usec now_us = START - 300 * WEFT_MS;
    bool idle = true;
    for (int i = 0; i < 100; i++) {
        now_us += S + i % 7 * (50 * WEFT_MS); /* polls are late now and then */
        idle = idle && weft_pace_next(&pace) > now_us;
        (void)weft_pace_looked(&pace, i % 2 ? WEFT_NEVER : now_us + 3600 * S, S, now_us);
    }
    ok(idle, "while the poll looks and nothing is due it never runs");
    is_int(weft_pace_next(&pace), now_us + S + S / 2, "without a poll it looks by itself");
    (void)weft_pace_looked(&pace, now_us + 300, S, now_us);
    is_int(weft_pace_next(&pace), now_us + 300, "a poll tells when something is due");
    run_idle(&pace, now_us + 300);
    (void)weft_pace_looked(&pace, now_us + 301, S, now_us + S);
    is_int(weft_pace_next(&pace), now_us + 301,
           "a due time of the poll that has passed counts as well");

    pace = new_pace(100 * WEFT_MS);
    run_idle(&pace, START);
    (void)weft_pace_looked(&pace, WEFT_NEVER, S, START);
    is_int(weft_pace_next(&pace), START + 100 * WEFT_MS, "an interval below the poll's is kept");

    pace = new_pace(S);
    weft_pace_begin(&pace, START);
    weft_pace_fail(&pace, START, UINT64_MAX);
    weft_usec retry_us = weft_pace_next(&pace);
    (void)weft_pace_looked(&pace, WEFT_NEVER, S, START + 1);
    is_int(weft_pace_next(&pace), retry_us, "a poll does not stand for a retry");
}

static void test_failures(void)
{
    struct weft_pace pace = new_pace(S);
    static const int64_t wanted_s[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
    weft_usec now_us = START;
    for (size_t i = 0; i < WEFT_LEN(wanted_s); i++) {
        weft_pace_begin(&pace, now_us);
        weft_usec wait_us = wanted_s[i] * S;
        weft_pace_fail(&pace, now_us, (uint64_t)wait_us / 2);
        is_int(weft_pace_next(&pace) - now_us, wait_us, "after %zu failures", i + 1);
        weft_pace_expect(&pace, now_us);
        is_int(weft_pace_next(&pace) - now_us, wait_us,
               "a due time does not hurry a scanner that failed");
        now_us = weft_pace_next(&pace);
    }
    run_idle(&pace, now_us);
    is_int(weft_pace_next(&pace), now_us + S, "when it works again, so does its pace");
    weft_pace_begin(&pace, now_us);
    weft_pace_fail(&pace, now_us, (uint64_t)S / 2);
    is_int(weft_pace_next(&pace), now_us + S, "the next failure waits as the first one did");

    pace = new_pace(600 * S);
    weft_pace_begin(&pace, START);
    weft_pace_fail(&pace, START, 300 * S);
    is_int(weft_pace_next(&pace), START + 600 * S, "failing never makes it faster");
}

static void test_backoff(void)
{
    for (uint64_t random = 0; random < 50; random++) {
        weft_usec wait_us = weft_pace_backoff(S, 60 * S, 3, random * 1234567891u);
        ok(wait_us >= 2 * S && wait_us <= 4 * S, "the upper half, at random: %" PRId64, wait_us);
    }
    is_int(weft_pace_backoff(S, 60 * S, 0, 0), S / 2, "no failure is as good as one");
    is_int(weft_pace_backoff(0, 60 * S, 9, 77), 0, "nothing doubled is nothing");
    is_int(weft_pace_backoff(1, 1, 1, 5), 1, "an odd microsecond");
    ok(weft_pace_backoff(86400 * S, 86400 * S, UINT32_MAX, UINT64_MAX) <= 86400 * S,
       "the longest backoff does not overflow");
}

static void test_hold(void)
{
    struct weft_pace pace = new_pace(S);
    pace.hold_us = START + 10 * S;
    weft_pace_expect(&pace, START - 100 * S);
    is_int(weft_pace_next(&pace), START + 10 * S, "a due scanner waits for the end of the grace");
    pace.hold_us = START + 3 * S;
    is_int(weft_pace_next(&pace), START + 3 * S, "the grace may end earlier");
    weft_pace_begin(&pace, START + 3 * S);
    weft_pace_fail(&pace, START + 3 * S, 0);
    pace.hold_us = START + 30 * S;
    is_int(weft_pace_next(&pace), START + 30 * S, "a hold outlasts the wait before a retry");
}

static void test_change(void)
{
    struct weft_pace pace = new_pace(60 * S);
    run_idle(&pace, START);
    weft_pace_change(&pace, 5 * S, START + 2 * S);
    is_int(weft_pace_next(&pace), START + 5 * S, "a shorter interval holds at once");
    weft_pace_change(&pace, 90 * S, START + 3 * S);
    is_int(weft_pace_next(&pace), START + 90 * S, "a longer interval holds at once");
    weft_pace_change(&pace, S, START + 50 * S);
    is_int(weft_pace_next(&pace), START + S, "overdue by the new one");
    weft_pace_change(&pace, 0, START + 50 * S);
    is_int(weft_pace_next(&pace), WEFT_NEVER, "a scanner that is off has no next run");
    weft_pace_change(&pace, 60 * S, START + 70 * S);
    is_int(weft_pace_next(&pace), START + 70 * S, "on again: at once");
    run_idle(&pace, START + 70 * S);
    weft_pace_change(&pace, 60 * S, START + 80 * S);
    is_int(weft_pace_next(&pace), START + 130 * S, "the same again changes nothing");
    weft_pace_begin(&pace, START + 130 * S);
    weft_pace_change(&pace, 0, START + 131 * S);
    weft_pace_end(&pace, &(struct weft_pace_run){.handled = true, .more = true}, START + 132 * S);
    is_int(weft_pace_next(&pace), WEFT_NEVER, "switched off while it ran");
    weft_pace_change(&pace, S, START + 133 * S);
    weft_pace_begin(&pace, START + 133 * S);
    weft_pace_fail(&pace, START + 133 * S, 0);
    weft_pace_change(&pace, 60 * S, START + 133 * S + 1);
    is_int(weft_pace_next(&pace), START + 133 * S + 1, "one that fails is tried as it is set now");
}

/* All have more to do than they can ever finish: each gets its turn, and no other one twice. */
static void test_fair(void)
{
    struct weft_pace pace[SIX];
    const bool none[SIX] = {0};
    int runs[SIX] = {0};
    weft_usec now_us = START;
    for (size_t i = 0; i < SIX; i++)
        weft_pace_init(&pace[i], S, START);
    weft_pace_expect(&pace[4], START - 900 * S); /* the most overdue one comes first, once */
    is_int((int64_t)weft_pace_pick(pace, none, SIX, START - 1), 4, "the longest waiting is first");
    bool fair = true;
    for (int turn = 0; turn < 10 * SIX; turn++) {
        size_t next = weft_pace_pick(pace, none, SIX, now_us);
        fair = fair && next < SIX && runs[next] == turn / SIX;
        runs[next]++;
        weft_pace_begin(&pace[next], now_us);
        now_us += 100 * WEFT_MS;
        weft_pace_end(
            &pace[next],
            &(struct weft_pace_run){.handled = true, .more = next != 4, .due_us = START - 900 * S},
            now_us);
    }
    ok(fair, "one turn each, round after round");
}

static void test_pick(void)
{
    struct weft_pace pace[3];
    bool barred[3] = {0};
    for (size_t i = 0; i < 3; i++)
        weft_pace_init(&pace[i], S, START + (weft_usec)i);
    is_int((int64_t)weft_pace_pick(pace, barred, 3, START - 1), 3,
           "no scanner is picked before its time");
    is_int((int64_t)weft_pace_pick(pace, barred, 3, START + 2), 0, "the first of three");
    weft_pace_begin(&pace[0], START + 2);
    is_int((int64_t)weft_pace_pick(pace, barred, 3, START + 2), 1,
           "a running scanner is not picked");
    barred[1] = true;
    is_int((int64_t)weft_pace_pick(pace, barred, 3, START + 2), 2,
           "a scanner without room is not picked");
    weft_pace_end(&pace[0], &(struct weft_pace_run){.more = true, .due_us = WEFT_NEVER}, START + 3);
    barred[1] = false;
    is_int((int64_t)weft_pace_pick(pace, barred, 3, START + 3), 1, "more waits behind the others");
    weft_pace_begin(&pace[1], START + 3);
    weft_pace_fail(&pace[1], START + 3, 0);
    weft_pace_begin(&pace[2], START + 3);
    weft_pace_end(&pace[2], &nothing, START + 4);
    is_int((int64_t)weft_pace_pick(pace, barred, 3, START + 4), 0,
           "the scanner that waited runs at once");
}

int main(void)
{
    test_interval();
    test_due();
    test_vain();
    test_poll();
    test_failures();
    test_backoff();
    test_hold();
    test_change();
    test_fair();
    test_pick();
    return tap_done();
}
