/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Budgets at the end of a lease: however it ends, what it reserved and did not use is free again,
 * what it used stays used, and its worker reports nothing more.
 */

#include "budgets.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/admin/doctor.h"
#include "engine/admin/workers.h"
#include "engine/flow/flow.h"
#include "engine/limit/budgets.h"
#include "engine/wait/wait.h"
#include "flows.h"
#include "weft/weft.h"

#include <string.h>

enum way {
    COMPLETES,
    FAILS,
    RETRIES,
    RELEASES,
    DELAYS,
    SUSPENDS,
    CANCELLED,
    DEADLINE,
    LOST,
    TIMEOUT,
    REVOKED,
    GOODBYE,
};

static const struct ending {
    const char *name;
    enum way way;
    enum weft_fence fence; /* of what its worker says behind it */
} endings[] = {
    {"completed", COMPLETES, WEFT_FENCE_FINISHED},
    {"failed for good", FAILS, WEFT_FENCE_FINISHED},
    {"failed, to be tried again", RETRIES, WEFT_FENCE_FINISHED},
    {"released", RELEASES, WEFT_FENCE_RELEASED},
    {"delayed", DELAYS, WEFT_FENCE_RELEASED},
    {"suspended", SUSPENDS, WEFT_FENCE_SUSPENDED},
    {"cancelled", CANCELLED, WEFT_FENCE_CANCELLED},
    {"expired", DEADLINE, WEFT_FENCE_EXPIRED},
    {"lost", LOST, WEFT_FENCE_LOST},
    {"timed out", TIMEOUT, WEFT_FENCE_TIMED_OUT},
    {"revoked", REVOKED, WEFT_FENCE_REVOKED},
    {"its worker says goodbye", GOODBYE, WEFT_FENCE_RELEASED},
};

static void suspend_lease(struct fixture *f, const struct weft_claimed *lease)
{
    const struct weft_suspend_at at = {.name = "w"};
    const struct weft_suspend item = {
        .id = lease->id, .epoch = lease->epoch, .waitpoint = &at, .waitpoint_count = 1};
    struct weft_suspend_result answer = {0};
    is_int(weft_engine_suspend(f->a, &item, 1, f->arena, &answer, &f->err), WEFT_OK, "suspend");
}

static void end_lease(struct fixture *f, const struct weft_claimed *lease, enum way way)
{
    struct weft_steer item = {.id = lease->id, .deadline_us = f->now_us + 1000 * WEFT_MS};
    uint64_t released;
    if (way == COMPLETES)
        (void)complete(f, f->a, lease, NULL);
    else if (way == FAILS)
        (void)fail_as(f, f->a, lease, &(struct weft_failure){.permanent = true});
    else if (way == RETRIES)
        (void)fail(f, f->a, lease, "busy");
    else if (way == RELEASES)
        (void)put_back(f, WEFT_PUT_BACK_RELEASE, lease, 0);
    else if (way == DELAYS)
        (void)put_back(f, WEFT_PUT_BACK_DELAY, lease, 60000);
    else if (way == SUSPENDS)
        suspend_lease(f, lease);
    else if (way == CANCELLED)
        (void)steer(f, WEFT_STEER_CANCEL, &item);
    else if (way == REVOKED)
        (void)steer(f, WEFT_STEER_REVOKE, &item);
    else if (way == GOODBYE)
        (void)!weft_engine_goodbye(f->a, "default", "worker-a", &released, &f->err);
    if (way == DEADLINE)
        (void)steer(f, WEFT_STEER_SET_DEADLINE, &item);
    if (way == DEADLINE || way == LOST || way == TIMEOUT)
        forward_ms(f, way == DEADLINE ? 1000 : way == TIMEOUT ? 20000 : 30000);
    if (way == DEADLINE)
        (void)run_pass(f, f->b, WEFT_SCANNER_EXECUTION_DEADLINE);
    else if (way == LOST)
        (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    else if (way == TIMEOUT)
        (void)run_pass(f, f->b, WEFT_SCANNER_ATTEMPT_TIMEOUT);
}

/* One that may end in this way. */
static struct weft_claimed start_for(struct fixture *f, enum way way)
{
    static const struct weft_policy patient = {.initial_ms = -1};
    static const struct weft_policy strict = {.initial_ms = -1, .attempt_timeout_ms = 20000};
    return start_policy(f, way == TIMEOUT ? &strict : &patient);
}

static struct weft_claimed start_one(struct fixture *f)
{
    return start_for(f, COMPLETES);
}

/* The report changes nothing and tells why. */
static void expect_no_report(struct fixture *f, const struct weft_claimed *lease,
                             enum weft_fence fence, const char *when)
{
    struct weft_usage_result answer = report(f, f->b, lease, 500);
    ok(answer.rc == WEFT_FENCED && answer.fence == fence && answer.budget_count == 0,
       "%s: a report is fenced as %s: %s", when, weft_fence_name(fence),
       weft_fence_name(answer.fence));
}

CASE(budget_settles_however_a_lease_ends)
{
    int64_t used = 0;
    put_tokens(f, "all", 0, 30);
    for (size_t i = 0; i < WEFT_LEN(endings); i++) {
        const struct ending *row = &endings[i];
        struct weft_claimed lease = start_for(f, row->way);
        report_ok(f, &lease, 10);
        used += 10;
        expect_sums(f, "all", NULL, used, 20, row->name);
        end_lease(f, &lease, row->way);
        expect_sums(f, "all", NULL, used, 0, row->name);
        expect_no_report(f, &lease, row->fence, row->name);
        expect_sums(f, "all", NULL, used, 0, row->name);
    }
    struct weft_ledger ledger = ledger_of(f, "all");
    is_int(ledger.count, WEFT_LEN(endings), "the ledger has all of them");
    for (size_t i = 0; i < ledger.count; i++)
        ok(ledger.item[i].used == 10 && ledger.item[i].reserved == 0 && ledger.item[i].settled,
           "%zu: used 10, settled", i);
}

/* Errands that are lost are made up for by a pass of any process. */
CASE(budget_scanner_makes_up_for_lost_errands)
{
    int64_t used = 0;
    put_tokens(f, "all", 0, 30);
    for (size_t i = 0; i < WEFT_LEN(endings); i++) {
        const struct ending *row = &endings[i];
        struct weft_claimed lease = start_for(f, row->way);
        struct weft_claimed other = start_one(f);
        report_ok(f, &lease, 10);
        used += 10;
        lose_errands(f->a, true);
        lose_errands(f->b, true);
        end_lease(f, &lease, row->way);
        lose_errands(f->a, false);
        lose_errands(f->b, false);
        expect_no_report(f, &lease, row->fence, row->name);
        struct weft_pass_report pass = run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
        /* When time passed or a worker went away, the other lease has ended with it. */
        bool both = state_of(f, &other.id) != WEFT_STATE_RUNNING;
        is_int(counter_of(&pass, "settled"), 1 + both, "%s: a pass settles it", row->name);
        expect_sums(f, "all", NULL, used, both ? 0 : 30, row->name);
        is_int(counter_of(&pass, "processed"), 0, "%s: no period ends", row->name);
        if (!both)
            (void)complete(f, f->a, &other, NULL);
    }
    struct weft_pass_report pass = run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    is_int(pass.handled, 0, "then there is nothing to do");
    ok(!pass.more, "and no reason to look again at once");
}

/* A lease that ended is settled once, whichever process settles it, and a running one not at all.
 */
CASE(budget_settles_once)
{
    put_tokens(f, "all", 0, 30);
    struct weft_claimed ended = start_one(f), running = start_one(f);
    lose_errands(f->a, true);
    (void)complete(f, f->a, &ended, NULL);
    lose_errands(f->a, false);
    const struct weft_lease_end list[] = {
        {.lease = {.id = ended.id, .epoch = ended.epoch}},
        {.lease = {.id = running.id, .epoch = running.epoch}},
        {.lease = {.id = ended.id, .epoch = ended.epoch}},
        {.lease = {.id = ended.id, .epoch = ended.epoch + 1}}, /* it never was */
    };
    uint64_t settled = 0;
    is_int(weft_engine_settle(f->a, list, WEFT_LEN(list), &settled, &f->err), WEFT_OK, "settle");
    is_int(settled, 1, "one row of the ledger is closed");
    expect_sums(f, "all", NULL, 0, 30, "the running lease keeps its reservation");
    is_int(weft_engine_settle(f->b, list, WEFT_LEN(list), &settled, &f->err), WEFT_OK, "again");
    is_int(settled, 0, "nothing is left to be settled");
    expect_sums(f, "all", NULL, 0, 30, "the second time");
}

/* The next lease of an execution has a reservation of its own; the old holder adds nothing. */
CASE(budget_charges_each_lease)
{
    put_tokens(f, "all", 100, 30);
    struct weft_claimed old = start_one(f);
    report_ok(f, &old, 20);
    end_lease(f, &old, LOST);
    struct weft_claimed next = take(f, f->b, old.lane);
    expect_sums(f, "all", NULL, 20, 30, "another worker has it");
    expect_no_report(f, &old, WEFT_FENCE_RECLAIMED, "reclaimed");
    report_ok(f, &next, 5);
    expect_sums(f, "all", NULL, 25, 25, "the totals of a lease begin at nothing");
    (void)complete(f, f->a, &next, NULL);
    struct weft_ledger ledger = ledger_of(f, "all");
    ok(ledger.count == 1 && ledger.item[0].used == 25 && ledger.item[0].settled,
       "the ledger adds up both leases of the execution");
}

CASE(budget_settles_members_of_a_cancelled_flow)
{
    struct drawn flow;
    put_tokens(f, "all", 0, 30);
    draw(&flow, "a; b; c:a,b");
    submit_drawn(f, &flow);
    struct weft_claimed a = claim_node(f, "a"), b = claim_node(f, "b");
    report_ok(f, &a, 7);
    enum weft_flow_state state;
    struct weft_flow_drain drain = {0};
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = flow.answer.id, .how = WEFT_FLOW_CANCEL_ALL};
    is_int(weft_engine_flow_cancel(f->b, &args, &state, &drain, &f->err), WEFT_OK, "cancel");
    is_str(states(f, &flow), "ccc", "all members are cancelled");
    expect_sums(f, "all", NULL, 7, 0, "the flow is cancelled");
    expect_no_report(f, &b, WEFT_FENCE_CANCELLED, "a member");
}

/* ---- Settings that change while leases run --------------------------------------------------- */

CASE(budget_removed_under_running_leases)
{
    struct weft_budget gone;
    put_tokens(f, "all", 100, 60);
    struct weft_claimed lease = start_one(f);
    struct weft_id waiting = submit_job(f);
    report_ok(f, &lease, 10);
    is_int(claim(f, f->a, 5).count, 0, "no room for a second one");
    is_int(weft_engine_budget_remove(f->a, "default", "all", f->arena, &gone, &f->err), WEFT_OK,
           "the budget is removed");
    ok(gone.dimension[0].used == 10 && gone.dimension[0].reserved == 50,
       "the answer says how it was");
    struct weft_claimed second = claim_one(f, f->a);
    ok(same_id(&second.id, &waiting), "nothing is held back any more");
    struct weft_usage_result answer = report(f, f->b, &lease, 5000);
    ok(answer.rc == WEFT_OK && answer.budget_count == 0, "reports are taken and count nowhere");
    put_tokens(f, "all", 100, 60);
    expect_sums(f, "all", NULL, 0, 0, "a new budget of that name begins at nothing");
    answer = report(f, f->b, &lease, 6000);
    ok(answer.rc == WEFT_OK && answer.budget_count == 0, "what ran before is not under it");
    (void)complete(f, f->a, &lease, NULL);
    (void)run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    struct weft_pass_report pass = run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    is_int(counter_of(&pass, "removed"), 0, "the ledger of the removed budget is gone");
    expect_sums(f, "all", NULL, 0, 0, "the new one is untouched");
}

/* New dimensions charge what runs already, also where they take the place of all the others. */
CASE(budget_dimensions_change_under_running_leases)
{
    struct weft_budget budget = {.name = "team",
                                 DIMENSIONS({.name = "tokens", .hard = 100, .estimate = 40})};
    put_budget(f, &budget);
    struct weft_claimed lease = start(f, &(struct weft_spec){.kind = "job", BUDGETS("team")});
    report_ok(f, &lease, 10);
    put_budget(f, &(struct weft_budget){.name = "team",
                                        DIMENSIONS({.name = "tokens", .hard = 100, .estimate = 40},
                                                   {.name = "cents", .hard = 9, .estimate = 5})});
    expect_sums(f, "team", "tokens", 10, 30, "a second dimension");
    expect_sums(f, "team", "cents", 0, 0, "it begins at nothing");
    const struct weft_amount both[] = {{"cents", 4}, {"tokens", 20}};
    is_int(report_all(f, f->b, &lease, both, 2).budget_count, 2, "the report counts in both");
    expect_sums(f, "team", "tokens", 20, 20, "a report in both");
    expect_sums(f, "team", "cents", 4, 0, "a report in both");
    put_budget(f, &(struct weft_budget){.name = "team", DIMENSIONS({.name = "seconds"})});
    const struct weft_amount all[] = {{"cents", 99}, {"tokens", 99}, {"seconds", 3}};
    struct weft_usage_result answer = report_all(f, f->a, &lease, all, 3);
    ok(answer.rc == WEFT_OK && answer.budget_count == 1, "only the third dimension is left: %s",
       answer.err ? answer.err->text : "recorded");
    expect_sums(f, "team", "seconds", 3, 0, "all others were taken away");
    put_budget(f, &budget);
    expect_sums(f, "team", "tokens", 0, 0, "a dimension that comes back begins at nothing");
    answer = report(f, f->a, &lease, 50);
    ok(answer.rc == WEFT_OK && answer.budget_count == 1, "and charges what runs");
    expect_sums(f, "team", "tokens", 50, 0, "and charges what runs");
    (void)run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    expect_sums(f, "team", "tokens", 50, 0, "the ledger of what was taken away is removed");
    (void)complete(f, f->a, &lease, NULL);
    struct weft_ledger ledger = ledger_of(f, "team");
    ok(ledger.count == 1 && ledger.item[0].used == 50 && ledger.item[0].settled,
       "the ledger has what there is now");
}

/* A budget that no longer matches keeps its running leases until they end. */
CASE(budget_match_changes_under_running_leases)
{
    struct weft_budget budget = {.name = "team",
                                 .matches = true,
                                 .match_kind = "job",
                                 DIMENSIONS({.name = "tokens", .hard = 100, .estimate = 60})};
    put_budget(f, &budget);
    struct weft_claimed lease = start_one(f);
    budget.match_kind = "mail";
    put_budget(f, &budget);
    (void)submit_job(f);
    is_int(claim(f, f->a, 5).count, 1, "other executions of the kind are free");
    report_ok(f, &lease, 10);
    expect_sums(f, "team", NULL, 10, 50, "the lease is charged as before");
    (void)complete(f, f->a, &lease, NULL);
    (void)run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    expect_sums(f, "team", NULL, 10, 0, "and settled by the next pass at the latest");
}

/* ---- What doctor finds ----------------------------------------------------------------------- */

/* Runs the text, looks for the finding, and runs the text that undoes it. */
static void expect_finding(struct fixture *f, const char *breaks, const char *heals,
                           const char *says)
{
    run_sql(f, is_pg(f) ? weft_arena_printf(f->arena, "UPDATE weft.%s", breaks)
                        : weft_arena_printf(f->arena, "UPDATE %s", breaks));
    enum weft_rc rc = weft_engine_check(f->a, &f->err);
    ok(rc != WEFT_OK && strstr(f->err.text, says), "%s: '%s'", breaks, f->err.text);
    run_sql(f, is_pg(f) ? weft_arena_printf(f->arena, "UPDATE weft.%s", heals)
                        : weft_arena_printf(f->arena, "UPDATE %s", heals));
    is_int(weft_engine_check(f->a, &f->err), WEFT_OK, "%s: all is well again", heals);
}

CASE(budget_damage_is_found)
{
    struct weft_budget again;
    put_tokens(f, "all", 100, 30);
    is_int(weft_engine_budget_reset(f->a, "default", "all", f->arena, &again, &f->err), WEFT_OK,
           "the second period");
    (void)run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET); /* nothing is left of the first one */
    struct weft_claimed lease = start_one(f), other = start_one(f);
    report_ok(f, &lease, 10);
    (void)complete(f, f->a, &other, NULL);
    is_int(weft_engine_check(f->a, &f->err), WEFT_OK, "all is well");
    (void)start_one(f); /* it runs and has reported nothing */
    expect_finding(f, "ledger SET total = total + 1 WHERE total > 0",
                   "ledger SET total = total - 1 WHERE total > 0",
                   "used is not the sum of the ledger");
    expect_finding(f, "budget_dimension SET used = used + 1",
                   "budget_dimension SET used = used - 1", "used is not the sum of the ledger");
    expect_finding(f, "budget_dimension SET reserved = 0", "budget_dimension SET reserved = 50",
                   "reserved is not the sum of the ledger");
    expect_finding(f, "ledger SET reserved = 5 WHERE settled IS NOT NULL",
                   "ledger SET reserved = 0 WHERE settled IS NOT NULL", "numbers that cannot be");
    expect_finding(f, "ledger SET period = 1 WHERE settled IS NOT NULL",
                   "ledger SET period = 2 WHERE settled IS NOT NULL",
                   "an earlier period that no sweep looks for");
    expect_finding(f, "ledger SET period = 3 WHERE settled IS NULL AND total = 0",
                   "ledger SET period = 2 WHERE settled IS NULL",
                   "open in the ledger of an earlier period");
}
