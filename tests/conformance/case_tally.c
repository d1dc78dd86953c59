/* SPDX-License-Identifier: Apache-2.0 */

/* How many ended in the last hour: every way to end, across processes, to the minute. */

#include "conformance.h"
#include "direct.h"

#include "engine/admin/tally.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "weft/weft.h"

enum { MINUTE_MS = 60000 };

static struct weft_lane_count count_lane(struct fixture *f, struct weft_engine *engine,
                                         const char *lane)
{
    struct weft_counts counts = {0};
    is_int(weft_engine_counts(engine, "default", lane, f->arena, &counts, &f->err), WEFT_OK,
           "counts");
    return counts.count ? counts.item[0] : (struct weft_lane_count){0};
}

static void expect_hour(struct fixture *f, struct weft_engine *engine, uint64_t succeeded,
                        uint64_t failed, const char *what)
{
    struct weft_lane_count lane = count_lane(f, engine, "default");
    is_int(lane.succeeded_1h, succeeded, "%s: succeeded", what);
    is_int(lane.failed_1h, failed, "%s: failed", what);
}

static void flush(struct fixture *f, struct weft_engine *engine)
{
    enum weft_rc rc = weft_engine_tally(engine, &f->err);
    ok(rc == WEFT_OK, "flush%s%s", rc ? ": " : "", rc ? f->err.text : "");
}

static void end_one(struct fixture *f, struct weft_engine *engine)
{
    (void)submit_job(f);
    struct weft_claimed lease = claim_one(f, engine);
    is_int(complete(f, engine, &lease, NULL).state, WEFT_STATE_SUCCEEDED, "one is done");
}

CASE(tally_counts_every_end)
{
    const struct weft_policy once = {.max_attempts = 1, .attempt_timeout_ms = 2000};
    const struct weft_policy fragile = {.max_lost = 1, .lease_ms = 1000};
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 4);
    struct weft_claim_result got = claim(f, f->a, 4);
    (void)complete(f, f->a, &got.item[0], NULL);
    (void)complete(f, f->a, &got.item[0], NULL); /* a repeat */
    expect_hour(f, f->a, 1, 0, "a completion");
    (void)fail(f, f->a, &got.item[1], "x");
    expect_hour(f, f->a, 1, 0, "a failure that is tried again is no end");
    (void)fail_as(f, f->a, &got.item[2], &(struct weft_failure){.permanent = true});
    expect_hour(f, f->a, 1, 1, "a final failure");
    (void)steer_id(f, WEFT_STEER_CANCEL, &got.item[3].id);
    expect_hour(f, f->a, 1, 1, "a cancel is neither");

    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .deadline_us = f->now_us + WEFT_SECOND});
    forward_ms(f, 1500);
    (void)run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE);
    expect_hour(f, f->a, 1, 2, "an expiry");
    (void)submit_ok(f, &(struct weft_spec){.kind = "slow", .policy = &once});
    (void)claim(f, f->a, 1);
    forward_ms(f, 2500);
    (void)run_pass(f, f->a, WEFT_SCANNER_ATTEMPT_TIMEOUT);
    expect_hour(f, f->a, 1, 3, "a timeout of the only attempt");
    (void)submit_ok(f, &(struct weft_spec){.kind = "pill", .priority = 9, .policy = &fragile});
    (void)run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
    for (int i = 0; i < 3; i++) {
        (void)claim(f, f->a, 1);
        forward_ms(f, 1500);
        (void)run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY);
    }
    ok(count_lane(f, f->a, "default").failed_1h == 4, "a poison pill");
}

static void fail_for_good(struct fixture *f, const struct weft_claimed *lease)
{
    (void)fail_as(f, f->a, lease, &(struct weft_failure){.permanent = true});
}

/* What was replayed has not failed: whether the failure was written, and by another process. */
CASE(tally_without_replayed_failures)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 5);
    struct weft_claim_result got = claim(f, f->a, 5);
    fail_for_good(f, &got.item[0]);
    fail_for_good(f, &got.item[1]);
    (void)steer_id(f, WEFT_STEER_REPLAY, &got.item[0].id);
    expect_hour(f, f->a, 0, 1, "replayed before the failure was written");
    flush(f, f->a);
    expect_hour(f, f->b, 0, 1, "the row has the difference");
    (void)steer_id(f, WEFT_STEER_REPLAY, &got.item[1].id);
    flush(f, f->a);
    expect_hour(f, f->b, 0, 0, "replayed after the failure was written");

    fail_for_good(f, &got.item[2]);
    const struct weft_steer item = {.id = got.item[2].id};
    const struct weft_steering replay = {
        .kind = WEFT_STEER_REPLAY, .ns = "default", .item = &item, .count = 1};
    struct weft_steered answer = {0};
    is_int(engine_steer(f->b, &replay, &answer, &f->err), WEFT_OK, "another process replays");
    flush(f, f->b);
    expect_hour(f, f->b, 0, 0, "a row below zero is shown as zero");
    flush(f, f->a);
    expect_hour(f, f->b, 0, 0, "the row is zero once the failure is written");
    fail_for_good(f, &got.item[3]);
    flush(f, f->a);
    expect_hour(f, f->b, 0, 1, "the next failure is counted from zero");

    (void)complete(f, f->a, &got.item[4], NULL);
    (void)steer_id(f, WEFT_STEER_REPLAY, &got.item[4].id);
    expect_hour(f, f->a, 1, 1, "a success that is replayed has been one");
    forward_ms(f, 10LL * MINUTE_MS);
    (void)submit_ok(f, &(struct weft_spec){.kind = "late", .priority = 9});
    got = claim(f, f->a, 1);
    fail_for_good(f, &got.item[0]);
    forward_ms(f, 55LL * MINUTE_MS);
    expect_hour(f, f->a, 0, 1, "an hour later the old counts are gone");
    (void)steer_id(f, WEFT_STEER_REPLAY, &got.item[0].id);
    expect_hour(f, f->a, 0, 0, "the replay is taken from the minute of the failure");
}

CASE(tally_of_the_inbox)
{
    if (strcmp(f->store, "pg") != 0)
        return;
    run_sql(f,
            "SELECT weft.weft_submit('bad kind'), weft.weft_submit('job', priority => 99999), "
            "weft.weft_submit('job')");
    (void)run_pass(f, f->a, WEFT_SCANNER_INTAKE);
    expect_hour(f, f->a, 0, 2, "two rows that are not valid");
}

CASE(tally_is_shared_when_written)
{
    flush(f, f->a);
    end_one(f, f->a);
    expect_hour(f, f->a, 1, 0, "the own count is known at once");
    expect_hour(f, f->b, 0, 0, "another process does not know the count yet");
    flush(f, f->a);
    expect_hour(f, f->a, 1, 0, "a written end is counted once");
    expect_hour(f, f->b, 1, 0, "another process knows the written count");
    end_one(f, f->b);
    end_one(f, f->a);
    flush(f, f->b);
    flush(f, f->a);
    flush(f, f->a);
    expect_hour(f, f->b, 3, 0, "both add to the same minute");
    /* A worker that completes what it never claimed knows no lane. */
    (void)submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    struct weft_engine *other = open_engine(f);
    (void)complete(f, other, &lease, NULL);
    weft_engine_close(other);
    expect_hour(f, f->b, 4, 0, "unwritten counts are written when an engine is closed");
}

CASE(tally_forgets_after_an_hour)
{
    end_one(f, f->a);
    flush(f, f->a);
    forward_ms(f, 30LL * MINUTE_MS);
    end_one(f, f->a);
    forward_ms(f, 29LL * MINUTE_MS);
    expect_hour(f, f->a, 2, 0, "59 minutes later");
    forward_ms(f, MINUTE_MS);
    expect_hour(f, f->a, 1, 0, "60 minutes later");
    forward_ms(f, 30LL * MINUTE_MS);
    expect_hour(f, f->a, 0, 0, "unwritten counts are forgotten as well");
    flush(f, f->a);
    forward_ms(f, 91LL * MINUTE_MS);
    end_one(f, f->a);
    flush(f, f->a);
    expect_hour(f, f->b, 1, 0, "old rows do not come back");
}

/* A process that never writes its counts does not keep them for ever, nor lose what counts. */
CASE(tally_that_is_never_written)
{
    for (int i = 0; i < 60; i++) {
        end_one(f, f->a);
        forward_ms(f, 5LL * MINUTE_MS);
    }
    expect_hour(f, f->a, 11, 0, "after five hours");
}

CASE(tally_lists_lanes_that_only_have_a_past)
{
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "z"});
    static const char *const z[] = {"z"};
    const struct weft_claim args = {.worker = "w", .lanes = z, .lane_count = 1};
    struct weft_claim_result got = claim_with(f, f->a, &args);
    (void)complete(f, f->a, &got.item[0], NULL);
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "a"});
    (void)submit_ok(f, &(struct weft_spec){.ns = "other", .kind = "job", .lane = "z"});
    struct weft_counts counts;
    for (int i = 0; i < 2; i++) {
        is_int(weft_engine_counts(f->a, "default", NULL, f->arena, &counts, &f->err), WEFT_OK,
               "counts");
        is_int(counts.count, 2, "two lanes are counted");
        ok(strcmp(counts.item[0].lane, "a") == 0 && counts.item[0].count[WEFT_STATE_READY] == 1 &&
               counts.item[0].succeeded_1h == 0,
           "one with work");
        ok(strcmp(counts.item[1].lane, "z") == 0 && counts.item[1].count[WEFT_STATE_READY] == 0 &&
               counts.item[1].succeeded_1h == 1,
           "one with a past");
        flush(f, f->a);
    }
    is_int(weft_engine_counts(f->a, "other", NULL, f->arena, &counts, &f->err), WEFT_OK, "counts");
    ok(counts.count == 1 && counts.item[0].succeeded_1h == 0, "namespaces are apart");
}
