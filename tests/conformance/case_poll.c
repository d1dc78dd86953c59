/* SPDX-License-Identifier: Apache-2.0 */

/* The slow poll: what it returns, what it refreshes, and how many statements it takes. */

#include "conformance.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/job/claim.h"
#include "engine/ready/poll.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/admin.h"
#include "weft/weft.h"

static struct weft_poll poll_now(struct fixture *f, struct weft_engine *engine)
{
    struct weft_poll poll = {0};
    enum weft_rc rc = weft_engine_poll(engine, f->arena, &poll, &f->err);
    ok(rc == WEFT_OK, "poll%s%s", rc ? ": " : "", rc ? f->err.text : "");
    return poll;
}

CASE(poll_of_an_empty_store)
{
    struct weft_poll poll = poll_now(f, f->a);
    ok(poll.count == 0 && !poll.inbox, "nothing to claim, nothing in the inbox");
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        is_int(poll.due_us[i], WEFT_NEVER, "%s: nothing to do",
               weft_scanner_name((enum weft_scanner)i));
    is_int(poll_now(f, f->a).tokens, poll.tokens, "the number of the tokens stays");
}

CASE(poll_gives_queues_and_due_times)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "one"}, 3);
    (void)submit_copies(f, &(struct weft_spec){.kind = "two", .lane = "other"}, 3);
    struct weft_poll poll = poll_now(f, f->b);
    is_int(poll.count, 2, "two queues are claimable");
    is_int(poll.queue[0].count, 1, "a queue with three ready executions counts as one");
    static const char *const lane[] = {"default", "other"};
    for (size_t i = 0; i < poll.count && i < WEFT_LEN(lane); i++) {
        const struct weft_claim own = {.ns = "default", .lanes = &lane[i], .lane_count = 1};
        const struct weft_claim foreign = {.ns = "default", .lanes = &lane[1 - i], .lane_count = 1};
        ok(weft_engine_fits(f->b, &own, poll.queue[i].queue) &&
               !weft_engine_fits(f->b, &foreign, poll.queue[i].queue),
           "the polled queue fits a claim of lane %s only", lane[i]);
    }

    const struct weft_policy policy = {.attempt_timeout_ms = 7000, .lease_ms = 5000};
    struct weft_claimed lease = start_policy(f, &policy);
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .delay_ms = 3000});
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .delay_ms = 2000});
    (void)submit_ok(f,
                    &(struct weft_spec){.kind = "job", .deadline_us = f->now_us + 9 * WEFT_SECOND});
    poll = poll_now(f, f->b);
    is_int(poll.due_us[WEFT_SCANNER_LEASE_EXPIRY], lease.lease_expires_us,
           "the poll gives the end of the lease");
    is_int(poll.due_us[WEFT_SCANNER_ATTEMPT_TIMEOUT], f->now_us + 7 * WEFT_SECOND,
           "the poll gives the timeout of the attempt");
    is_int(poll.due_us[WEFT_SCANNER_DELAYED_PROMOTER], f->now_us + 2 * WEFT_SECOND,
           "the poll gives the earliest delay");
    is_int(poll.due_us[WEFT_SCANNER_EXECUTION_DEADLINE], f->now_us + 9 * WEFT_SECOND,
           "the poll gives the deadline");
    is_int(poll.due_us[WEFT_SCANNER_INTAKE], WEFT_NEVER,
           "the poll gives no due time for the intake");
}

CASE(poll_leaves_out_paused_lanes)
{
    (void)submit_job(f);
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "other"});
    put_lane(f, f->a, &(struct weft_lane){.name = "other", .paused = true});
    struct weft_poll poll = poll_now(f, f->b);
    is_int(poll.count, 1, "one queue of two");
    ok(weft_engine_fits(f->b, &(struct weft_claim){.ns = "default"}, poll.queue[0].queue),
       "the queue of the open lane is listed");
    put_lane(f, f->a, &(struct weft_lane){.name = "other"});
    is_int(poll_now(f, f->b).count, 2, "both queues are listed when the second lane is opened");
}

CASE(poll_sees_the_inbox)
{
    if (strcmp(f->store, "pg") != 0)
        return;
    run_sql(f, "SELECT weft.weft_submit('job')");
    struct weft_poll poll = poll_now(f, f->a);
    ok(poll.inbox, "the inbox holds something");
    is_int(poll.due_us[WEFT_SCANNER_INTAKE], f->now_us, "the intake is due");
    (void)run_pass(f, f->a, WEFT_SCANNER_INTAKE);
    ok(!poll_now(f, f->a).inbox, "the inbox is empty after intake");
}

/* Counts what an engine over the fault driver asks of the store, by statement. */
struct costs {
    int polls, others;
};

static void count_costs(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    struct costs *costs = context;
    if (point != WEFT_FAULT_BEFORE_RUN)
        return;
    costs->polls += stmt == WEFT_STMT_POLL;
    costs->others += stmt != WEFT_STMT_POLL;
}

/*
 * An idle replica: a poll is one statement (that it travels alone is tested with the driver), and
 * the clock is asked at most ten times in ten seconds. Together that is less than three a second.
 */
CASE(poll_costs_one_statement)
{
    struct costs costs = {0};
    struct weft_fault fault = {.hook = count_costs, .context = &costs};
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .max_running = 7});
    (void)submit_job(f);
    struct weft_engine *engine = open_faulty(f, &fault);
    (void)poll_now(f, engine); /* learns the names */
    costs = (struct costs){0};
    uint64_t calls = fault.calls;
    for (int i = 0; i < 30; i++)
        (void)poll_now(f, engine);
    ok(costs.polls == 30 && costs.others == 0, "thirty polls are thirty statements");
    ok(fault.calls - calls <= 30 * 3 + 10,
       "a begin and a commit that send nothing, and at most one look at the clock: %d calls",
       (int)(fault.calls - calls));
    weft_engine_close(engine);
}

/* A claim right after a poll needs no refresh, and works with the settings that the poll read.
 */
CASE(poll_refreshes_the_list)
{
    struct costs costs = {0};
    struct weft_fault fault = {.hook = count_costs, .context = &costs};
    struct weft_engine *engine = open_faulty(f, &fault);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 5);
    is_int(claim_with(f, engine, &(struct weft_claim){.worker = "w"}).count, 1, "a first claim");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "other"});
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .max_running = 2});
    (void)poll_now(f, engine);
    costs = (struct costs){0};
    static const char *const other[] = {"other"};
    is_int(
        claim_with(f, engine, &(struct weft_claim){.worker = "w", .lanes = other, .lane_count = 1})
            .count,
        1, "a claim takes from a queue that only the poll named");
    is_int(costs.others, 1, "the claim statement alone was run");
    is_int(claim_with(f, engine, &(struct weft_claim){.worker = "w", .max = 9}).count, 1,
           "the claim keeps the limit that only the poll named");
    weft_engine_close(engine);
}

/* Lets a poll take as long as with an open snapshot. */
static void be_slow(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    weft_usec began_us = weft_boot_us();
    while (*(bool *)context && point == WEFT_FAULT_BEFORE_RUN && stmt == WEFT_STMT_POLL &&
           weft_boot_us() - began_us < 150 * WEFT_MS)
        ;
}

CASE(poll_after_a_slow_one_leaves_out_living_rows)
{
    bool slow = true;
    struct weft_fault fault = {.hook = be_slow, .context = &slow};
    struct weft_engine *engine = open_faulty(f, &fault);
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .delay_ms = 2000});
    (void)submit_job(f);
    struct weft_poll poll = poll_now(f, engine);
    is_int(poll.count, 1, "a slow poll tells the queue");
    is_int(poll.due_us[WEFT_SCANNER_DELAYED_PROMOTER], f->now_us + 2 * WEFT_SECOND,
           "a slow poll gives the due time of the promoter");
    slow = false;
    poll = poll_now(f, engine);
    is_int(poll.count, 0, "the next one does not look for queues");
    is_int(poll.due_us[WEFT_SCANNER_DELAYED_PROMOTER], WEFT_UNTOLD,
           "a fast poll leaves the promoter's due time untold");
    is_int(poll.due_us[WEFT_SCANNER_DEPENDENCY], WEFT_NEVER,
           "a fast poll gives the due time of the dependency scanner");
    is_int(claim(f, engine, 1).count, 1, "the queue is still known");
    ok(engine->poll_whole_us > weft_boot_us() &&
           engine->poll_whole_us < weft_boot_us() + 10 * WEFT_SECOND,
       "the fast polls last for some seconds");
    engine->poll_whole_us = weft_boot_us();
    poll = poll_now(f, engine);
    is_int(poll.due_us[WEFT_SCANNER_DELAYED_PROMOTER], f->now_us + 2 * WEFT_SECOND,
           "the next slow poll gives the due time again");
    is_int(poll_now(f, engine).due_us[WEFT_SCANNER_DELAYED_PROMOTER], f->now_us + 2 * WEFT_SECOND,
           "every slow poll gives the due time");
    weft_engine_close(engine);
}
