/* SPDX-License-Identifier: Apache-2.0 */

/* Retention: when an outcome is removed, which rows go with it, and which stay. */

#include "conformance.h"
#include "direct.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/limits.h"
#include "engine/admin/lanes.h"
#include "engine/job/execution_read.h"
#include "engine/job/leases.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

#define DAY_MS  ((int64_t)86400 * 1000)
#define WEEK_MS (7 * DAY_MS)
#define HOUR_MS ((int64_t)3600 * 1000)

static struct weft_pass_report retain_with(struct fixture *f, const struct weft_pass_config *config)
{
    struct weft_pass_report report = {0};
    is_int(weft_engine_pass(f->b, WEFT_SCANNER_RETENTION, config, &report, &f->err), WEFT_OK,
           "retention runs");
    return report;
}

static struct weft_pass_report retain(struct fixture *f)
{
    struct weft_pass_report report = retain_with(f, NULL);
    is_int(counter_of(&report, "processed"), (int64_t)report.handled,
           "the counter processed has the handled executions");
    ok(!report.more, "nothing is left to do");
    return report;
}

/* Nothing reminds of it. That no table does is one of the invariants checked after every case. */
static void expect_gone(struct fixture *f, const struct weft_claimed *lease)
{
    struct weft_attempts list = {0};
    struct weft_bytes bytes = {0};
    const struct weft_bytes_of payload = {
        .kind = WEFT_BYTES_PAYLOAD, .ns = "default", .id = lease->id};
    is_int(state_of(f, &lease->id), WEFT_STATE_NONE, "the removed execution cannot be described");
    is_int(count_rows(f, &(struct weft_filter){.lane = lease->lane}), 0, "no list shows it");
    is_int(weft_engine_attempts(f->a, "default", &lease->id, f->arena, &list, &f->err),
           WEFT_NOT_FOUND, "the removed execution has no attempts");
    is_int(weft_engine_bytes(f->a, &payload, f->arena, &bytes, &f->err), WEFT_NOT_FOUND,
           "the removed execution has no payload");
    ok(!result_text(f, &lease->id), "the removed execution has no result");
    is_int(steer_id(f, WEFT_STEER_REPLAY, &lease->id).err.rc, WEFT_NOT_FOUND,
           "the removed execution cannot be replayed");
}

static struct weft_claimed succeed(struct fixture *f, const struct weft_spec *spec)
{
    return bring(f, WEFT_STATE_SUCCEEDED, spec);
}

/* ---- When ------------------------------------------------------------------------------------ */

CASE(retention_nothing_due)
{
    struct weft_pass_report report = retain(f);
    ok(report.handled == 0 && report.next_due_us == WEFT_NEVER, "an empty store has nothing due");
    struct weft_claimed living = start(f, NULL);
    report = retain(f);
    ok(report.handled == 0 && report.next_due_us == WEFT_NEVER,
       "a running execution is never due for removal");
    is_int(complete(f, f->a, &living, "1").err.rc, WEFT_OK, "one ends");
    report = retain(f);
    is_int(report.handled, 0, "the execution that just ended stays");
    is_int(report.next_due_us, f->now_us + WEEK_MS * WEFT_MS, "the execution is due in a week");
    is_str(result_text(f, &living.id), "1", "the result is kept");
}

CASE(retention_to_the_moment)
{
    struct weft_claimed lease = succeed(f, NULL);
    forward_ms(f, WEEK_MS - 1);
    struct weft_pass_report report = retain(f);
    is_int(report.handled, 0, "a moment before its time it is there");
    ok(report.next_due_us > f->now_us, "the due time is still to come");
    forward_ms(f, 1);
    is_int(retain(f).handled, 1, "the pass at its time removes it");
    expect_gone(f, &lease);
    report = retain(f);
    ok(report.handled == 0 && report.next_due_us == WEFT_NEVER, "a further pass finds nothing");
}

CASE(retention_by_state)
{
    static const struct {
        enum weft_state state;
        int64_t weeks;
    } row[] = {
        {WEFT_STATE_SUCCEEDED, 1},
        {WEFT_STATE_CANCELLED, 1},
        {WEFT_STATE_FAILED, 4},
        {WEFT_STATE_EXPIRED, 4},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_claimed lease = bring(f, row[i].state, NULL);
        const char *name = weft_state_name(row[i].state);
        forward_ms(f, row[i].weeks * WEEK_MS - 1);
        is_int(retain(f).handled, 0, "%s: kept", name);
        is_int(state_of(f, &lease.id), row[i].state, "%s: still there", name);
        forward_ms(f, 1);
        is_int(retain(f).handled, 1, "%s: gone after %d weeks", name, (int)row[i].weeks);
        expect_gone(f, &lease);
    }
}

CASE(retention_policy_before_lane_before_default)
{
    static const struct weft_policy hour = {.retention_ms = HOUR_MS};
    struct weft_claimed plain = succeed(f, NULL);
    struct weft_claimed stated = succeed(f, &(struct weft_spec){.kind = "job", .policy = &hour});
    struct weft_claimed by_lane = succeed(f, NULL);
    put_lane(f, f->a, &(struct weft_lane){.name = stated.lane, .retention_ms = 2 * DAY_MS});
    put_lane(f, f->a, &(struct weft_lane){.name = by_lane.lane, .retention_ms = DAY_MS});
    is_int(retain(f).next_due_us, f->now_us + hour.retention_ms * WEFT_MS, "the hour comes first");
    forward_ms(f, hour.retention_ms);
    is_int(retain(f).handled, 1, "after it one goes");
    expect_gone(f, &stated);
    forward_ms(f, DAY_MS - hour.retention_ms);
    is_int(retain(f).handled, 1, "after the day of the lane another");
    expect_gone(f, &by_lane);
    forward_ms(f, WEEK_MS - DAY_MS - 1);
    is_int(retain(f).handled, 0, "the third stays a week");
    forward_ms(f, 1);
    is_int(retain(f).handled, 1, "the pass at its time removes it");
    expect_gone(f, &plain);
}

CASE(retention_of_a_lane_holds_at_once)
{
    struct weft_claimed good = succeed(f, NULL), bad = bring(f, WEFT_STATE_FAILED, NULL);
    forward_ms(f, 60000);
    is_int(retain(f).handled, 0, "both are kept");
    put_lane(f, f->a, &(struct weft_lane){.name = good.lane, .retention_ms = 20000});
    put_lane(f, f->a, &(struct weft_lane){.name = bad.lane, .retention_ms = 20000});
    is_int(retain(f).handled, 1,
           "a shorter retention of the lane removes an execution that ended before");
    expect_gone(f, &good);
    put_lane(f, f->a, &(struct weft_lane){.name = bad.lane, .retention_ms = 25000});
    forward_ms(f, 20000);
    is_int(retain(f).handled, 0, "a longer retention of the lane keeps the execution");
    put_lane(f, f->a, &(struct weft_lane){.name = bad.lane});
    is_int(retain(f).next_due_us, describe(f, &bad.id).finished_us + 4 * WEEK_MS * WEFT_MS,
           "one without a setting goes by the default");
}

CASE(retention_lane_settings)
{
    static const struct {
        int64_t ms;
        enum weft_rc rc;
    } row[] = {{-1, WEFT_INVALID_VALUE},
               {WEFT_DELAY_MAX_MS + 1, WEFT_INVALID_VALUE},
               {INT64_MAX, WEFT_INVALID_VALUE},
               {1, WEFT_OK},
               {WEFT_DELAY_MAX_MS, WEFT_OK}};
    struct weft_lanes lanes = {0};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        const struct weft_lane lane = {.name = "kept", .retention_ms = row[i].ms};
        struct weft_err err = {0};
        is_int(weft_engine_lane_put(f->a, "default", &lane, &err), row[i].rc, "%lld ms",
               (long long)row[i].ms);
        if (row[i].rc)
            expect_err(&err, WEFT_INVALID_VALUE, "retention_ms", "the field retention_ms is named");
    }
    is_int(weft_engine_lanes(f->b, "default", f->arena, &lanes, &f->err), WEFT_OK, "the lanes");
    ok(lanes.count == 1 && lanes.item[0].retention_ms == WEFT_DELAY_MAX_MS,
       "the lane has the retention that was put");
}

/* ---- What ------------------------------------------------------------------------------------ */

CASE(retention_takes_all_that_mentions_it)
{
    const struct weft_spec spec = {
        .kind = "job", .key = "again", .payload = "{}", .payload_size = 2};
    struct weft_claimed first = start(f, &spec);
    const struct weft_renew progress = {
        .id = first.id, .epoch = first.epoch, .has_progress = true, .percent = 50};
    struct weft_lease_answer answer;
    is_int(engine_renew(f->a, &progress, 1, &answer, &f->err), WEFT_OK, "progress");
    is_int(put_back(f, WEFT_PUT_BACK_RELEASE, &first, 0).err.rc, WEFT_OK, "one lease ends");
    struct weft_claimed second = take(f, f->a, first.lane);
    is_int(complete(f, f->a, &second, "1").err.rc, WEFT_OK, "another completes");
    is_int(steer_id(f, WEFT_STEER_REPLAY, &first.id).err.rc, WEFT_OK, "a replay");
    struct weft_claimed third = take(f, f->a, first.lane);
    is_int(complete(f, f->a, &third, "2").err.rc, WEFT_OK, "completes too");
    struct weft_claimed other = start(f, &(struct weft_spec){.kind = "job", .key = "other"});
    struct weft_claimed young = start(f, &(struct weft_spec){.kind = "job", .key = "young"});
    forward_ms(f, WEEK_MS);
    is_int(complete(f, f->a, &young, NULL).err.rc, WEFT_OK, "a younger one");

    struct weft_pass_report report = retain(f);
    is_int(report.handled, 1, "the old one goes");
    is_int(counter_of(&report, "attempts"), 2, "the attempts of the old one are removed");
    is_int(counter_of(&report, "keys"), 1, "the key of the old one is removed");
    is_int(counter_of(&report, "skipped_locked"), 0, "no row was locked");
    expect_gone(f, &third);
    is_int(state_of(f, &other.id), WEFT_STATE_RUNNING, "the living stay");
    is_int(state_of(f, &young.id), WEFT_STATE_SUCCEEDED,
           "an execution younger than the retention stays");
    ok(submit(f, f->a, &(struct weft_spec){.kind = "job", .key = "young", .lane = young.lane})
           .duplicate,
       "the key of the younger one is held");

    const struct weft_spec fresh = {.kind = "job", .key = "again", .lane = first.lane};
    struct weft_submitted again = submit(f, f->a, &fresh);
    ok(again.err.rc == WEFT_OK && !again.duplicate && !same_id(&again.id, &first.id),
       "the key is free, for other work as well");
}

/* A worker that was cut off for longer than its work is remembered. */
CASE(retention_and_a_late_worker)
{
    static const struct weft_policy hour = {.retention_ms = HOUR_MS};
    struct weft_claimed lost = start_policy(f, &hour);
    forward_ms(f, 60000);
    is_int(run_pass(f, f->a, WEFT_SCANNER_LEASE_EXPIRY).handled, 1, "the lease runs out");
    struct weft_claimed next = take(f, f->b, lost.lane);
    is_int(complete(f, f->b, &next, NULL).err.rc, WEFT_OK, "another does the work");
    forward_ms(f, hour.retention_ms);
    is_int(retain(f).handled, 1, "the completed execution is removed");
    const struct weft_claimed *lease[] = {&lost, &next};
    for (size_t i = 0; i < WEFT_LEN(lease); i++) {
        struct weft_lease_answer answer[] = {
            renew(f, f->a, lease[i]),
            complete(f, f->a, lease[i], "1"),
            fail(f, f->a, lease[i], "net"),
            put_back(f, WEFT_PUT_BACK_DELAY, lease[i], 1000),
            put_back(f, WEFT_PUT_BACK_RELEASE, lease[i], 0),
        };
        for (size_t k = 0; k < WEFT_LEN(answer); k++)
            is_int(answer[k].err.rc, WEFT_NOT_FOUND, "lease %zu, call %zu: there is no such work",
                   i, k);
    }
    is_int(state_of(f, &lost.id), WEFT_STATE_NONE, "the execution is still gone after all calls");
}

/* ---- How much -------------------------------------------------------------------------------- */

static void end_many(struct fixture *f, const struct weft_spec *spec, size_t count)
{
    struct weft_id *id = submit_copies(f, spec, count);
    for (size_t i = 0; i < count; i++)
        is_int(steer_id(f, WEFT_STEER_CANCEL, &id[i]).err.rc, WEFT_OK, "%zu is over", i);
}

CASE(retention_batches)
{
    static const size_t counts[] = {2, 3, 4, 6, 7};
    for (size_t i = 0; i < WEFT_LEN(counts); i++) {
        end_many(f, &(struct weft_spec){.kind = "job"}, counts[i]);
        forward_ms(f, WEEK_MS);
        struct weft_pass_report report = retain_with(f, &(struct weft_pass_config){.batch = 3});
        ok(report.handled == counts[i] && !report.more, "%zu in batches of 3 are all removed",
           counts[i]);
        is_int(count_rows(f, &(struct weft_filter){0}), 0, "no execution is left");
    }
    struct weft_pass_report report = {0};
    const uint32_t most = weft_scanner_info(WEFT_SCANNER_RETENTION)->batch_max;
    is_int(weft_engine_pass(f->a, WEFT_SCANNER_RETENTION,
                            &(struct weft_pass_config){.batch = most + 1}, &report, &f->err),
           WEFT_INVALID_VALUE, "a batch that is too large is refused");
}

/* Several groups share a batch, groups that are due and others lie side by side. */
CASE(retention_many_groups)
{
    static const struct weft_policy day = {.retention_ms = DAY_MS};
    char lane[16];
    for (int i = 0; i < 300; i++) {
        (void)snprintf(lane, sizeof(lane), "lane-%d", i);
        const struct weft_spec spec[] = {
            {.kind = "job", .lane = lane, .policy = i % 3 == 0 ? &day : NULL},
            {.kind = "job", .lane = lane, .policy = &day}};
        struct weft_submitted *got = submit_many(f, f->a, spec, 2);
        for (size_t k = 0; k < 2; k++)
            (void)steer_id(f, WEFT_STEER_CANCEL, &got[k].id);
    }
    forward_ms(f, DAY_MS);
    struct weft_pass_report report = {.more = true};
    uint64_t removed = 0;
    for (int pass = 0; pass < 400 && report.more; pass++) { /* on a slow machine it takes several */
        report = retain_with(f, &(struct weft_pass_config){.batch = 7});
        removed += report.handled;
    }
    ok(removed == 400 && !report.more, "the passes remove 400 that are due");
    is_int(count_rows(f, &(struct weft_filter){0}), 200, "200 that are not due stay");
    is_int(report.next_due_us, f->now_us + (WEEK_MS - DAY_MS) * WEFT_MS,
           "the next due time is in six days");
}

/* A transaction takes no more bytes than any other, whatever the batch; one too large goes alone.
 */
CASE(retention_large_payloads)
{
    enum { LARGE = 24 };
    char *payload = weft_arena_alloc(f->arena, WEFT_PAYLOAD_MAX, 1);
    memset(payload, ' ', WEFT_PAYLOAD_MAX);
    payload[0] = '1';
    for (size_t i = 0; i < LARGE; i++) {
        struct weft_id id =
            submit_ok(f, &(struct weft_spec){
                             .kind = "job", .payload = payload, .payload_size = WEFT_PAYLOAD_MAX});
        (void)steer_id(f, WEFT_STEER_CANCEL, &id);
    }
    forward_ms(f, WEEK_MS);
    uint64_t handled = 0;
    struct weft_pass_report report = {.more = true};
    for (int i = 0; i < 100 && report.more; i++) {
        report = retain_with(f, NULL);
        handled += report.handled;
    }
    is_int(handled, LARGE, "all rows are removed");
}

/* ---- Filters --------------------------------------------------------------------------------- */

CASE(retention_of_a_namespace)
{
    end_many(f, &(struct weft_spec){.kind = "job"}, 3);
    struct weft_spec other = {.kind = "job", .ns = "other"};
    struct weft_id id = submit_ok(f, &other);
    const struct weft_steer item = {.id = id, .ns = "other"};
    is_int(steer(f, WEFT_STEER_CANCEL, &item).err.rc, WEFT_OK, "one of another namespace");
    forward_ms(f, WEEK_MS);
    is_int(retain_with(f, &(struct weft_pass_config){.ns = "absent"}).handled, 0,
           "a pass of an unknown namespace removes nothing");
    struct weft_pass_report report = retain_with(f, &(struct weft_pass_config){.ns = "other"});
    ok(report.handled == 1 && !report.more, "a pass of a namespace removes its execution");
    is_int(count_rows(f, &(struct weft_filter){0}), 3, "the others stay");
    is_int(retain(f).handled, 3, "a pass of all namespaces removes the others");
}

CASE(retention_of_partitions)
{
    enum { COUNT = 64 };
    size_t low = 0;
    for (int i = 0; i < COUNT; i++) {
        struct weft_id id = submit_job(f);
        (void)steer_id(f, WEFT_STEER_CANCEL, &id);
        low += weft_id_partition(&id) < 100;
    }
    forward_ms(f, WEEK_MS);
    const struct weft_pass_config first = {.partition_first = 0, .partition_last = 99, .batch = 5};
    const struct weft_pass_config second = {.partition_first = 100, .partition_last = 255};
    struct weft_pass_report report = retain_with(f, &first);
    is_int(report.handled, (int64_t)low, "a range takes its own");
    ok(!report.more, "a pass over a range reports no more when the range is empty");
    is_int(counter_of(&report, "skipped_locked"), 0,
           "rows of other ranges are not counted as skipped");
    is_int(count_rows(f, &(struct weft_filter){0}), (int64_t)(COUNT - low), "the rest stays");
    is_int(retain_with(f, &second).handled, (int64_t)(COUNT - low),
           "the other range removes the rest");
}

CASE(retention_for_a_moment)
{
    end_many(f, &(struct weft_spec){.kind = "job"}, 5);
    forward_ms(f, WEEK_MS);
    const struct weft_pass_config config = {.batch = 2, .most_us = 1};
    struct weft_pass_report report = retain_with(f, &config);
    ok(report.handled == 2 && report.more, "a pass without time makes one batch and reports more");
    report = retain_with(f, &config);
    ok(report.handled == 2 && report.more, "the second pass without time also makes one batch");
    is_int(retain(f).handled, 1, "a pass with time does the rest");
}
