/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leases that others ended before their time. The worker may still be at work: its execution keeps
 * its slot in a lane with a limit until it lets go, or until the lease would have run out; and the
 * worker learns the reason, once.
 */

#include "conformance.h"
#include "direct.h"
#include "flows.h"

#include "engine/admin/doctor.h"
#include "engine/admin/tally.h"
#include "engine/admin/workers.h"
#include "engine/engine.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/leases.h"
#include "engine/ready/poll.h"
#include "engine/scan/pass.h"
#include "engine/tx/commit_effects.h"
#include "store/fault/fault.h"
#include "weft/weft.h"

enum { LEASE_MS = 30000 };

static const char *const narrow[] = {"narrow"};

/* ---- Ways to end a lease from outside -------------------------------------------------------- */

enum way { CANCEL, CANCEL_ALL, REVOKE, DEADLINE, TIMEOUT, WAY_COUNT };

static const struct {
    const char *name;
    enum weft_fence reason;
} ways[WAY_COUNT] = {
    [CANCEL] = {"cancel", WEFT_FENCE_CANCELLED},
    [CANCEL_ALL] = {"cancel by filter", WEFT_FENCE_CANCELLED},
    [REVOKE] = {"revoke", WEFT_FENCE_REVOKED},
    [DEADLINE] = {"deadline", WEFT_FENCE_EXPIRED},
    [TIMEOUT] = {"attempt timeout", WEFT_FENCE_TIMED_OUT},
};

static void cancel_all(struct fixture *f, const char *kind)
{
    const struct weft_steer_all args = {
        .kind = WEFT_STEER_CANCEL,
        .filter = {.ns = "default", .lane = "narrow", .kind = kind},
    };
    struct weft_sweep sweep;
    is_int(weft_engine_steer_all(f->b, &args, &sweep, &f->err), WEFT_OK, "cancel by filter");
}

static struct weft_claim_result claim_narrow(struct fixture *f, struct weft_engine *engine,
                                             const char *worker, uint32_t max)
{
    return claim_with(
        f, engine,
        &(struct weft_claim){
            .worker = worker, .lanes = narrow, .lane_count = 1, .max = max, .lease_ms = LEASE_MS});
}

static void limit(struct fixture *f, int32_t max_running)
{
    put_lane(f, f->a, &(struct weft_lane){.name = "narrow", .max_running = max_running});
}

static uint64_t draining(struct fixture *f, struct weft_engine *engine)
{
    struct weft_counts counts = {0};
    if (weft_engine_counts(engine, "default", "narrow", f->arena, &counts, &f->err))
        ok(false, "counts: %s", f->err.text);
    return counts.count == 1 ? counts.item[0].draining : 0;
}

/*
 * A lane of limit 1: an execution that is claimed by worker-a and ended in this way 6 s after it
 * was claimed, and another that waits behind it.
 */
static struct weft_claimed end_lease(struct fixture *f, enum way way)
{
    static const struct weft_policy timed = {.attempt_timeout_ms = 5000};
    limit(f, 1);
    struct weft_spec first = {.kind = "first", .lane = "narrow", .priority = 9};
    if (way == TIMEOUT)
        first.policy = &timed;
    if (way == DEADLINE)
        first.deadline_us = f->now_us + 5000 * WEFT_MS;
    (void)submit_ok(f, &first);
    (void)submit_ok(f, &(struct weft_spec){.kind = "next", .lane = "narrow"});
    struct weft_claim_result got = claim_narrow(f, f->a, "worker-a", 9);
    is_int(got.count, 1, "%s: the lane holds one", ways[way].name);
    struct weft_claimed lease = got.item[0];
    forward_ms(f, 6000);
    if (way == CANCEL)
        (void)steer_id(f, WEFT_STEER_CANCEL, &lease.id);
    else if (way == CANCEL_ALL)
        cancel_all(f, "first");
    else if (way == REVOKE)
        (void)steer_id(f, WEFT_STEER_REVOKE, &lease.id);
    else
        (void)run_pass(f, f->b,
                       way == TIMEOUT ? WEFT_SCANNER_ATTEMPT_TIMEOUT
                                      : WEFT_SCANNER_EXECUTION_DEADLINE);
    ok(state_of(f, &lease.id) != WEFT_STATE_RUNNING, "%s: its lease is over", ways[way].name);
    return lease;
}

/* Nothing of a round is left for the next one. */
static void clear(struct fixture *f)
{
    uint64_t released;
    cancel_all(f, NULL);
    is_int(weft_engine_goodbye(f->a, "default", "worker-a", &released, &f->err), WEFT_OK,
           "goodbye");
    is_int(weft_engine_goodbye(f->a, "default", "worker-b", &released, &f->err), WEFT_OK,
           "goodbye");
    is_int(draining(f, f->a), 0, "no slot drains after the goodbye");
}

/* ---- The slot -------------------------------------------------------------------------------- */

CASE(draining_keeps_the_slot_however_the_lease_was_ended)
{
    for (enum way way = 0; way < WAY_COUNT; way++) {
        struct weft_claimed lease = end_lease(f, way);
        is_int(claim_narrow(f, f->a, "worker-b", 9).count, 0, "%s: the slot is kept",
               ways[way].name);
        is_int(claim_narrow(f, f->b, "worker-b", 9).count, 0, "%s: by other processes too",
               ways[way].name);
        is_int(draining(f, f->b), 1, "%s: the execution is counted as draining", ways[way].name);
        struct weft_lease_answer late = renew(f, f->a, &lease);
        ok(late.err.rc == WEFT_FENCED && late.fence == ways[way].reason,
           "%s: a renewal is fenced with the reason", ways[way].name);
        is_int(claim_narrow(f, f->b, "worker-b", 9).count, 0, "%s: a renewal keeps the slot",
               ways[way].name);
        late = complete(f, f->b, &lease, "1");
        ok(late.err.rc == WEFT_FENCED && late.fence == ways[way].reason,
           "%s: a completion is fenced with the reason", ways[way].name);
        is_int(claim_narrow(f, f->a, "worker-b", 9).count, 1, "%s: a completion frees the slot",
               ways[way].name);
        is_int(draining(f, f->a), 0, "%s: nothing drains", ways[way].name);
        clear(f);
    }
}

CASE(draining_ends_with_any_last_word)
{
    static const char *const word[] = {"complete", "fail", "delay", "release", "goodbye"};
    for (size_t i = 0; i < WEFT_LEN(word); i++) {
        struct weft_claimed lease = end_lease(f, CANCEL);
        for (int again = 0; again < 2; again++) {
            struct weft_lease_answer answer = {.err = {.rc = WEFT_FENCED}};
            if (i == 0)
                answer = complete(f, f->b, &lease, "1");
            else if (i == 1)
                answer = fail(f, f->b, &lease, "net");
            else if (i < 4)
                answer = put_back(f, i == 2 ? WEFT_PUT_BACK_DELAY : WEFT_PUT_BACK_RELEASE, &lease,
                                  i == 2 ? 1000 : 0);
            else {
                uint64_t released = 9;
                is_int(weft_engine_goodbye(f->b, "default", "worker-a", &released, &f->err),
                       WEFT_OK, "goodbye");
                is_int(released, 0, "nothing is released");
            }
            is_int(answer.err.rc, WEFT_FENCED, "%s: fenced, the %s time", word[i],
                   again ? "second" : "first");
            is_int(draining(f, f->b), 0, "%s: the slot does not drain any more", word[i]);
        }
        is_int(state_of(f, &lease.id), WEFT_STATE_CANCELLED, "%s: the execution stays cancelled",
               word[i]);
        is_int(claim_narrow(f, f->a, "worker-b", 9).count, 1, "%s: the slot is free", word[i]);
        clear(f);
    }
}

CASE(draining_ends_with_the_time_of_the_lease)
{
    struct weft_claimed lease = end_lease(f, CANCEL);
    weft_usec until_us = lease.lease_expires_us;
    struct weft_poll poll = {0};
    is_int(weft_engine_poll(f->b, f->arena, &poll, &f->err), WEFT_OK, "poll");
    is_int(poll.due_us[WEFT_SCANNER_LEASE_EXPIRY], until_us, "the poll tells when that is");
    forward_ms(f, (until_us - f->now_us) / WEFT_MS - 1);
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    is_int(report.next_due_us, until_us, "the pass gives the same due time");
    is_int(claim_narrow(f, f->a, "worker-b", 9).count, 0, "a moment before, the slot is kept");
    forward_ms(f, 1);
    is_int(draining(f, f->a), 0, "at the end of the lease nothing drains");
    struct weft_claim_result got = claim_narrow(f, f->a, "worker-b", 9);
    is_int(got.count, 1, "the slot is free at its time even if the pass has not run");
    report = run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    ok(report.handled == 0 && report.next_due_us == got.item[0].lease_expires_us,
       "the next pass is due at the end of the held lease");
    is_int(put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0).err.rc, WEFT_FENCED,
           "a late release changes nothing");
}

CASE(draining_is_not_for_leases_that_ran_out)
{
    limit(f, 1);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "narrow"}, 2);
    struct weft_claim_result got = claim_narrow(f, f->a, "worker-a", 1);
    forward_ms(f, LEASE_MS);
    (void)steer_id(f, WEFT_STEER_CANCEL, &got.item[0].id);
    is_int(draining(f, f->b), 0, "cancelled when its time was over: nothing drains");
    is_int(claim_narrow(f, f->b, "worker-b", 1).count, 1,
           "the slot of the cancelled execution is free");
    forward_ms(f, LEASE_MS);
    (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    is_int(draining(f, f->b), 0, "nothing drains after a lost lease");
}

/* What was never claimed leaves nothing, and neither does the word of the holder itself. */
CASE(draining_needs_a_holder_that_does_not_know)
{
    limit(f, 3);
    struct weft_id *id = submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "narrow"}, 5);
    (void)steer_id(f, WEFT_STEER_CANCEL, &id[4]);
    struct weft_claim_result got = claim_narrow(f, f->a, "worker-a", 3);
    is_int(got.count, 3, "three executions run");
    (void)complete(f, f->a, &got.item[0], "1");
    (void)fail(f, f->a, &got.item[1], "net");
    (void)put_back(f, WEFT_PUT_BACK_DELAY, &got.item[2], 60000);
    is_int(draining(f, f->b), 0, "no slot drains");
    struct weft_watched watched = {0};
    const struct weft_watch watch = {.ns = "default", .worker = "worker-a"};
    is_int(weft_engine_watch(f->b, &watch, f->arena, &watched, &f->err), WEFT_OK, "watch");
    is_int(watched.count, 0, "a watch has no lease to report");
}

/* A revoked or replayed execution runs again under another lease, beside the one that drains. */
CASE(draining_of_one_lease_does_not_end_the_next)
{
    struct weft_claimed old = end_lease(f, REVOKE);
    limit(f, 2);
    struct weft_claim_result got = claim_narrow(f, f->b, "worker-b", 9);
    is_int(got.count, 1, "one slot is kept, one is free");
    ok(same_id(&got.item[0].id, &old.id) && got.item[0].epoch == old.epoch + 1,
       "the same execution is claimed again");
    is_int(put_back(f, WEFT_PUT_BACK_RELEASE, &old, 0).err.rc, WEFT_FENCED,
           "the old holder lets go");
    is_int(state_of(f, &old.id), WEFT_STATE_RUNNING, "the new one has its lease");
    is_int(claim_narrow(f, f->a, "worker-b", 9).count, 1, "the slot of the old lease is free");
    (void)steer_id(f, WEFT_STEER_CANCEL, &old.id);
    is_int(steer_id(f, WEFT_STEER_REPLAY, &old.id).err.rc, WEFT_OK, "cancelled and replayed");
    is_int(draining(f, f->a), 1, "the second lease drains");
}

/* A lane without a limit is claimed from as ever; a limit that comes later finds what drains. */
CASE(draining_is_nothing_to_a_lane_without_a_limit)
{
    struct weft_id *id = submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "narrow"}, 6);
    struct weft_claim_result got = claim_narrow(f, f->a, "worker-a", 2);
    is_int(got.count, 2, "two executions run");
    for (size_t i = 0; i < 2; i++)
        (void)steer_id(f, WEFT_STEER_CANCEL, &got.item[i].id);
    is_int(draining(f, f->b), 2, "two slots drain");
    is_int(claim_narrow(f, f->b, "worker-b", 2).count, 2, "two more are claimed");
    limit(f, 4);
    is_int(claim_narrow(f, f->b, "worker-b", 2).count, 0, "a limit of four counts all of them");
    limit(f, 5);
    is_int(claim_narrow(f, f->b, "worker-b", 2).count, 1, "one of five leaves room for one");
    (void)id;
}

/* Statements of a lane without a limit are what they were: none of them reads the table. */
CASE(draining_costs_a_lane_without_a_limit_nothing)
{
    struct weft_fault fault = {0};
    struct weft_engine *engine = open_faulty(f, &fault);
    uint64_t calls[2];
    for (int full = 0; full < 2; full++) {
        (void)submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "narrow"}, 3);
        struct weft_claim_result got = claim_narrow(f, f->a, "worker-a", 2);
        for (size_t i = 0; full && i < got.count; i++)
            (void)steer_id(f, WEFT_STEER_CANCEL, &got.item[i].id);
        if (!full)
            (void)claim_narrow(f, engine, "worker-b", 0); /* names are asked for once */
        uint64_t before = fault.calls;
        (void)submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "narrow"}, 1);
        got = claim_narrow(f, engine, "worker-b", 1);
        is_int(got.count, 1, "one is claimed");
        (void)renew(f, engine, &got.item[0]);
        (void)complete(f, engine, &got.item[0], "1");
        calls[full] = fault.calls - before;
    }
    is_int(calls[1], calls[0], "claim, renew and complete make as many calls as ever");
    weft_engine_close(engine);
}

/* ---- Flows ----------------------------------------------------------------------------------- */

CASE(draining_members_of_flows)
{
    static const char *const race_after[] = {"a", "b"};
    limit(f, 2);
    const struct weft_node node[] = {
        {.name = "a", .spec = {.kind = "job", .lane = "narrow"}},
        {.name = "b", .spec = {.kind = "job", .lane = "narrow"}},
        {.name = "end",
         .spec = {.kind = "job", .lane = "narrow"},
         .after = race_after,
         .after_count = 2,
         .join = WEFT_JOIN_ANY},
    };
    const struct weft_flow_spec spec = {.name = "race", .nodes = node, .node_count = 3};
    struct weft_flow_submitted flow = {0};
    is_int(engine_flow_submit(f->a, "default", &spec, 1, &flow, &f->err), WEFT_OK, "a race");
    struct weft_claim_result got = claim_narrow(f, f->a, "worker-a", 9);
    is_int(got.count, 2, "both members run");
    (void)complete(f, f->a, &got.item[0], "1");
    is_int(state_of(f, &got.item[1].id), WEFT_STATE_CANCELLED, "the sibling is cancelled");
    is_int(draining(f, f->b), 1, "the cancelled sibling drains");
    struct weft_claim_result end = claim_narrow(f, f->b, "worker-a", 9);
    is_int(end.count, 1, "the end of the race begins in the other slot");
    const struct weft_flow_cancelling cancel = {
        .ns = "default", .flow = flow.id, .how = WEFT_FLOW_CANCEL_ALL};
    struct weft_flow_drain drain = {0};
    enum weft_flow_state state;
    is_int(weft_engine_flow_cancel(f->b, &cancel, &state, &drain, &f->err), WEFT_OK,
           "the flow is cancelled");
    is_int(draining(f, f->b), 2, "the running member drains too");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "narrow"});
    is_int(claim_narrow(f, f->b, "worker-b", 9).count, 0, "the lane is full");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &end.item[0], 0);
    is_int(claim_narrow(f, f->b, "worker-b", 9).count, 1, "a release by its worker frees a slot");
}

/* ---- Reports to workers ---------------------------------------------------------------------- */

struct told {
    int32_t worker[8];
    size_t count, calls;
};

static void listen(void *context, const int32_t *worker, size_t count)
{
    struct told *told = context;
    told->calls++;
    for (size_t i = 0; i < count && told->count < WEFT_LEN(told->worker); i++)
        told->worker[told->count++] = worker[i];
}

static struct weft_watched watch(struct fixture *f, struct weft_engine *engine, const char *worker)
{
    struct weft_watched watched = {0};
    const struct weft_watch args = {.ns = "default", .worker = worker};
    is_int(weft_engine_watch(engine, &args, f->arena, &watched, &f->err), WEFT_OK, "watch");
    return watched;
}

static int32_t number_of(struct fixture *f, const char *worker)
{
    int32_t number = 0;
    const struct weft_watch args = {.ns = "default", .worker = worker};
    is_int(weft_engine_worker_number(f->b, &args, &number, &f->err), WEFT_OK,
           "the worker has a number");
    return number;
}

CASE(watch_gives_the_reason_of_each_end)
{
    for (enum way way = 0; way < WAY_COUNT; way++) {
        struct weft_claimed lease = end_lease(f, way);
        struct weft_watched told = watch(f, f->b, "worker-a");
        ok(told.count == 1 && same_id(&told.item[0].id, &lease.id) &&
               told.item[0].epoch == lease.epoch && told.item[0].reason == ways[way].reason,
           "%s: the watch gives the reason %s", ways[way].name, weft_fence_name(ways[way].reason));
        is_int(watch(f, f->a, "worker-a").count, 0, "%s: once", ways[way].name);
        is_int(draining(f, f->a), 1, "%s: telling does not free the slot", ways[way].name);
        clear(f);
    }
}

CASE(watch_is_about_one_worker_of_one_namespace)
{
    limit(f, 0);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "narrow"}, 4);
    struct weft_claim_result a = claim_narrow(f, f->a, "worker-a", 3);
    struct weft_claim_result b = claim_narrow(f, f->a, "worker-b", 1);
    struct told told = {0};
    weft_engine_on_leases(f->a, listen, &told);
    cancel_all(f, NULL); /* by the other process */
    is_int(told.calls, 0, "a process does not report leases that another process ended");
    struct weft_poll poll = {0};
    is_int(weft_engine_poll(f->a, f->arena, &poll, &f->err), WEFT_OK, "poll");
    is_int(poll.workers, 2, "the poll names both workers");
    const struct weft_watch strange = {.ns = "other", .worker = "worker-a"};
    struct weft_watched none = {0};
    is_int(weft_engine_watch(f->a, &strange, f->arena, &none, &f->err), WEFT_OK, "watch elsewhere");
    is_int(none.count, 0, "a watch of another namespace has no lease to report");
    is_int(watch(f, f->a, "worker-c").count, 0, "a watch of another worker has no lease to report");
    is_int(watch(f, f->a, "worker-a").count, a.count, "all of the first");
    is_int(weft_engine_poll(f->a, f->arena, &poll, &f->err), WEFT_OK, "poll");
    ok(poll.workers == 1 && poll.worker[0] == number_of(f, "worker-b"),
       "the poll names the worker without a report");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &b.item[0], 0);
    is_int(watch(f, f->a, "worker-b").count, 0, "a worker that released its lease gets no report");
    is_int(weft_engine_poll(f->a, f->arena, &poll, &f->err), WEFT_OK, "poll");
    is_int(poll.workers, 0, "the poll counts no worker with ended leases");
}

CASE(watch_news_name_each_worker_once)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "narrow"}, 5);
    (void)claim_narrow(f, f->a, "worker-a", 3);
    (void)claim_narrow(f, f->a, "worker-b", 1);
    struct told told = {0};
    weft_engine_on_leases(f->b, listen, &told);
    cancel_all(f, NULL);
    ok(told.calls == 1 && told.count == 2, "two workers in one report: %zu in %zu", told.count,
       told.calls);
    cancel_all(f, NULL);
    is_int(told.calls, 1, "a second cancel reports nothing");
}

CASE(watch_refuses_bad_names)
{
    struct weft_watched none;
    static const struct weft_watch bad[] = {
        {.ns = "default"}, {.ns = "default", .worker = "a b"}, {.ns = "a b", .worker = "worker-a"}};
    for (size_t i = 0; i < WEFT_LEN(bad); i++)
        is_int(weft_engine_watch(f->a, &bad[i], f->arena, &none, &f->err), WEFT_INVALID_VALUE,
               "bad name %zu is refused", i);
}

/* ---- Upkeep ---------------------------------------------------------------------------------- */

/* Retention takes an execution away while its handler runs: the slot is kept all the same. */
CASE(draining_outlives_its_execution)
{
    static const struct weft_policy short_lived = {.retention_ms = 1000};
    limit(f, 1);
    struct weft_id id =
        submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "narrow", .policy = &short_lived});
    struct weft_claim_result got = claim_narrow(f, f->a, "worker-a", 1);
    (void)steer_id(f, WEFT_STEER_CANCEL, &id);
    forward_ms(f, 10000);
    (void)run_pass(f, f->b, WEFT_SCANNER_RETENTION);
    is_int(describe(f, &id).state, WEFT_STATE_NONE, "the execution is gone");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "narrow"});
    is_int(claim_narrow(f, f->b, "worker-b", 1).count, 0,
           "the slot of the removed execution is kept");
    is_int(put_back(f, WEFT_PUT_BACK_RELEASE, &got.item[0], 0).err.rc, WEFT_NOT_FOUND,
           "a release of the removed execution gets not_found");
    is_int(claim_narrow(f, f->b, "worker-b", 1).count, 1,
           "the release that got not_found frees the slot");
}

CASE(draining_rows_go_in_batches)
{
    struct weft_id *id = submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "narrow"}, 5);
    is_int(claim_narrow(f, f->a, "worker-a", 5).count, 5, "five executions run");
    cancel_all(f, NULL);
    forward_ms(f, LEASE_MS);
    const struct weft_pass_config config = {.batch = 2};
    const struct weft_pass_config elsewhere = {.batch = 9, .ns = "other"};
    struct weft_pass_report report = {0};
    (void)submit(f, f->a, &(struct weft_spec){.ns = "other", .kind = "job"});
    is_int(weft_engine_pass(f->b, WEFT_SCANNER_LEASE_EXPIRY, &elsewhere, &report, &f->err), WEFT_OK,
           "a pass of another namespace");
    is_int(report.next_due_us, WEFT_NEVER, "a pass of another namespace has no due time");
    for (int turn = 0; turn < 3; turn++) {
        is_int(weft_engine_pass(f->b, WEFT_SCANNER_LEASE_EXPIRY, &config, &report, &f->err),
               WEFT_OK, "a pass");
        is_int(report.more, turn < 2, "there is %s", turn < 2 ? "more" : "no more");
    }
    is_int(report.next_due_us, WEFT_NEVER, "the last pass has no due time");
    (void)id;
}

/* The check finds a row that must not be. */
CASE(draining_damage_is_found)
{
    bool pg = is_pg(f);
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "narrow"});
    (void)claim_narrow(f, f->a, "worker-a", 1);
    run_sql(f, pg ? "INSERT INTO weft.draining (id, epoch, queue, lane, worker, until, ended, "
                    "ended_at) SELECT id, epoch, queue, lane, worker, due, 8, 0 FROM weft.live"
                  : "INSERT INTO draining (id, epoch, queue, lane, worker, until, ended, ended_at) "
                    "SELECT e.id, l.epoch, l.queue, l.lane, l.worker, l.due, 8, 0 "
                    "FROM live l JOIN execution e ON e.num = l.num");
    is_int(weft_engine_check(f->a, &f->err), WEFT_CORRUPT, "a lease that runs and drains is found");
    struct weft_pass_report report = run_pass(f, f->a, WEFT_SCANNER_INVARIANT_CHECK);
    bool seen = false;
    for (size_t i = 0; i < report.counter_count; i++)
        seen |=
            strcmp(report.counter[i].name, "epoch_disorder") == 0 && report.counter[i].value > 0;
    ok(seen, "the sampling pass finds it too");
    run_sql(f, pg ? "DELETE FROM weft.draining" : "DELETE FROM draining");
    (void)id;
}
