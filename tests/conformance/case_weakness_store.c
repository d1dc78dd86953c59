/* SPDX-License-Identifier: Apache-2.0 */

/* The last three of the fifteen defects (see case_weakness.c): errors, clocks, unfenced writes. */

#include "conformance.h"
#include "direct.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "engine/engine.h"
#include "engine/job/leases.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

/* How often the two statements of a completion ran. */
struct tally {
    int ends, looks;
};

static void count_runs(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    struct tally *tally = context;
    if (point != WEFT_FAULT_BEFORE_RUN)
        return;
    tally->ends += stmt == WEFT_STMT_LIVE_END;
    tally->looks += stmt == WEFT_STMT_LEASE_FACTS;
}

/*
 * C13: a stale lease and a serialization failure were one error, so stale leases were tried three
 * times and became "internal error". Lock order, the other half of it, is tested under load in
 * tests/race.
 */
CASE(weakness_c13_a_fence_is_not_contention)
{
    struct weft_claimed stale = bring(f, WEFT_STATE_CANCELLED, NULL), good = start(f, NULL);
    struct tally tally = {0};
    struct weft_fault fault = {.hook = count_runs, .context = &tally};
    struct weft_engine *engine = open_faulty(f, &fault);

    struct weft_lease_answer answer = complete(f, engine, &stale, "1");
    ok(answer.err.rc == WEFT_FENCED && !weft_rc_retryable(answer.err.rc),
       "fenced, once and for all");
    is_int(answer.err.cause, WEFT_CAUSE_NONE, "the store itself had nothing to say");
    ok(tally.ends == 1 && tally.looks == 1, "a fenced complete is tried once (%d ends, %d looks)",
       tally.ends, tally.looks);

    tally = (struct tally){0};
    fault.kind = WEFT_FAULT_FAIL;
    fault.strike_at = 2; /* the statement after begin */
    fault.struck = false;
    answer = complete(f, engine, &good, "1");
    ok(fault.struck, "the fault struck");
    ok(answer.err.rc == WEFT_OK && answer.state == WEFT_STATE_SUCCEEDED,
       "the engine repeats the contended call and the caller sees success");
    is_int(attempts(f, &good.id).count, 1, "the lease ended once");
    weft_engine_close(engine);
}

/*
 * C14: the wall clocks of the nodes decided when a lease was over, and callers used their own
 * `now`. No call here takes a time of now. The clocks of this suite stand in 2023: any moment that
 * came from the wall clock would stand out.
 */
CASE(weakness_c14_no_wall_clock_decides)
{
    struct weft_claimed lease = start_policy(f, &(struct weft_policy){.initial_ms = -1});
    weft_usec began = f->now_us;
    struct weft_execution now = describe(f, &lease.id);
    ok(now.created_us == began && now.started_us == began && now.claimed_us == began &&
           now.lease_expires_us == began + 30000 * WEFT_MS,
       "every moment is the store's");
    is_int(weft_id_time(&lease.id) / WEFT_MS, began / WEFT_MS, "in the id as well");

    /* A replica whose clock is an hour ahead, or behind, still asks the epoch and not the clock. */
    weft_clock_set(weft_engine_clock(f->b), f->now_us + 3600 * WEFT_SECOND);
    is_int(complete(f, f->b, &lease, "1").err.rc, WEFT_OK, "late by its clock, but not taken");
    struct weft_claimed second = start(f, NULL);
    forward_ms(f, 30000);
    (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    weft_clock_set(weft_engine_clock(f->b), f->now_us - 3600 * WEFT_SECOND);
    struct weft_lease_answer answer = complete(f, f->b, &second, "1");
    ok(answer.err.rc == WEFT_FENCED && answer.fence == WEFT_FENCE_LOST,
       "in time by its clock, but taken");
    struct weft_claimed third = take(f, f->a, second.lane);
    answer = renew(f, f->b, &second);
    ok(answer.fence == WEFT_FENCE_RECLAIMED,
       "the renewal after another claim is fenced as reclaimed");
    is_int(complete(f, f->b, &third, "1").err.rc, WEFT_OK, "the holder may write through it");
}

/* An engine left alone takes the time of its store. */
CASE(weakness_c14_the_clock_is_the_store_s)
{
    const struct weft_driver *driver;
    struct weft_conn *conn = NULL;
    struct weft_engine *engine = NULL;
    const struct weft_engine_config config = {.url = f->url};
    weft_usec before = 0, after = 0;
    ok(weft_driver_for(f->url, &driver, &f->err) == WEFT_OK &&
           driver->open(f->url, &conn, &f->err) == WEFT_OK &&
           weft_engine_open(&config, &engine, &f->err) == WEFT_OK,
       "an engine beside a connection of our own");
    if (engine && conn) {
        ok(driver->time(conn, &before, &f->err) == WEFT_OK, "the store's time");
        weft_usec now = weft_clock_now(weft_engine_clock(engine));
        ok(driver->time(conn, &after, &f->err) == WEFT_OK, "the time of the store a second time");
        /* What a sample may be off by is its round trip; this machine may be busy. */
        ok(now >= before - WEFT_SECOND && now <= after + WEFT_SECOND, "the engine agrees");
    }
    weft_engine_close(engine);
    weft_conn_close(conn);
}

/* C15: progress was last-writer-wins, and some writes of a worker were not fenced at all. */
CASE(weakness_c15_progress_is_the_holder_s_alone)
{
    struct weft_claimed old = start(f, NULL);
    struct weft_renew item = {
        .id = old.id, .epoch = 1, .has_progress = true, .percent = 80, .note = "old"};
    struct weft_lease_answer answer;
    is_int(engine_renew(f->a, &item, 1, &answer, &f->err), WEFT_OK, "the old holder reports");
    forward_ms(f, 30000);
    (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    struct weft_claimed next = take(f, f->b, old.lane);
    struct weft_renew both[] = {
        {.id = next.id, .epoch = 2, .has_progress = true, .percent = 5, .note = "new"},
        {.id = old.id, .epoch = 1, .has_progress = true, .percent = 90, .note = "stale"},
    };
    struct weft_lease_answer answers[2];
    is_int(engine_renew(f->a, both, 2, answers, &f->err), WEFT_OK,
           "both workers renew in one call");
    is_int(answers[0].err.rc, WEFT_OK, "the holder is heard");
    is_int(answers[1].fence, WEFT_FENCE_RECLAIMED, "the other is not, though it came last");
    struct weft_execution now = describe(f, &old.id);
    is_int(now.percent, 5, "the holder's progress stands");
    is_str(now.note, "new", "the holder's note stands");
    is_int(now.lease_expires_us, answers[0].lease_expires_us, "the holder's lease stands");
    (void)complete(f, f->b, &next, NULL);
    item.epoch = 2;
    is_int(engine_renew(f->a, &item, 1, &answer, &f->err), WEFT_OK, "after the end");
    is_int(answer.fence, WEFT_FENCE_FINISHED,
           "a renewal by the last holder after the end is fenced");
    is_int(describe(f, &old.id).percent, 5, "the late renewal changes nothing");
}
