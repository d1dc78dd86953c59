/* SPDX-License-Identifier: Apache-2.0 */

/* Budgets: what claims reserve, which executions are under which budget, and who has to wait. */

#include "budgets.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/job/joint.h"
#include "engine/limit/budgets.h"
#include "flows.h"
#include "weft/weft.h"

#include <string.h>

/* ---- Reserving ------------------------------------------------------------------------------- */

CASE(budget_reserves_the_estimate)
{
    put_tokens(f, "all", 100, 30);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 5);
    struct weft_claim_result got = claim(f, f->b, 10);
    is_int(got.count, 3, "three of five fit");
    expect_sums(f, "all", NULL, 0, 90, "three claims");
    is_int(claim(f, f->a, 10).count, 0, "another process finds no room either");
    (void)complete(f, f->b, &got.item[0], NULL);
    expect_sums(f, "all", NULL, 0, 60, "one has ended");
    is_int(claim_open(f, f->a, 10).count, 1, "the next takes its place");
    expect_sums(f, "all", NULL, 0, 90, "three run again");
}

CASE(budget_reserves_what_the_spec_says)
{
    put_tokens(f, "all", 100, 30);
    struct weft_id dear = submit_ok(f, &(struct weft_spec){.kind = "job", .priority = 3, COST(60)});
    struct weft_id free_one =
        submit_ok(f, &(struct weft_spec){.kind = "job", .priority = 2, COST(0)});
    (void)submit_ok(f, &(struct weft_spec){.kind = "job",
                                           .priority = 1,
                                           .cost = &(struct weft_amount){"cents", 1},
                                           .cost_count = 1});
    (void)submit_job(f);
    struct weft_claim_result got = claim(f, f->b, 10);
    is_int(got.count, 3, "60, nothing, and the estimate of 30 fit; another 30 do not");
    ok(same_id(&got.item[0].id, &dear) && same_id(&got.item[1].id, &free_one), "by priority");
    expect_sums(f, "all", NULL, 0, 90, "60 and 30");
    struct weft_ledger ledger = ledger_of(f, "all");
    is_int(ledger.count, 3, "the ledger has a row for each, also for the one without a cost");
}

CASE(budget_blocks_by_head)
{
    put_tokens(f, "all", 100, 10);
    struct weft_id dear = submit_ok(f, &(struct weft_spec){.kind = "job", .priority = 9, COST(95)});
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 3);
    (void)submit_copies(f, &(struct weft_spec){.kind = "other"}, 3);
    struct weft_claimed other = take_kind(f, "other");
    struct weft_claim_result got = claim(f, f->a, 10);
    is_int(got.count, 2, "the other queue goes on");
    for (size_t i = 0; i < got.count; i++)
        is_str(got.item[i].kind, "other", "none behind the head that does not fit");
    for (size_t i = 0; i < got.count; i++)
        (void)complete(f, f->a, &got.item[i], NULL);
    is_int(claim(f, f->a, 10).count, 0, "10 of the first are too many for the head");
    (void)complete(f, f->a, &other, NULL);
    struct weft_claim_result next = claim(f, f->a, 10);
    ok(next.count == 1 && same_id(&next.item[0].id, &dear), "the head is the next that runs");
}

CASE(budget_never_fits_a_cost_above_hard)
{
    put_tokens(f, "all", 100, 10);
    struct weft_id dear = submit_ok(f, &(struct weft_spec){.kind = "job", COST(101)});
    is_int(claim(f, f->a, 10).count, 0, "a cost of 101 does not fit into 100");
    put_tokens(f, "all", 101, 10);
    struct weft_claim_result got = claim(f, f->a, 10);
    ok(got.count == 1 && same_id(&got.item[0].id, &dear), "it fits into 101");
}

/* Claims of one call share what is left, also where they want the same queue. */
CASE(budget_is_shared_by_claims_of_a_call)
{
    put_tokens(f, "all", 100, 10);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 20);
    const struct weft_claim args[] = {{.worker = "w1", .max = 4}, {.worker = "w2", .max = 20}};
    struct weft_claim_result got = claim_several(f, f->b, args, WEFT_LEN(args));
    is_int(got.count, 10, "ten in all");
    size_t first = 0;
    for (size_t i = 0; i < got.count; i++)
        first += got.item[i].claim == 0;
    is_int(first, 4, "the first claim gets what it asked for");
    expect_sums(f, "all", NULL, 0, 100, "all is reserved");
}

CASE(budget_without_a_hard_limit_counts)
{
    put_tokens(f, "all", 0, 30);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 5);
    struct weft_claim_result got = claim(f, f->b, 10);
    is_int(got.count, 5, "nothing is held back");
    expect_sums(f, "all", NULL, 0, 150, "five estimates");
    report_ok(f, &got.item[0], INT64_C(1000000000000000));
    expect_sums(f, "all", NULL, INT64_C(1000000000000000), 120, "the largest total");
}

/* Budgets and the limit of a lane hold together. */
CASE(budget_beside_the_limit_of_a_lane)
{
    put_tokens(f, "all", 100, 30);
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .max_running = 2});
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 5);
    struct weft_claim_result got = claim(f, f->a, 10);
    is_int(got.count, 2, "the lane allows two");
    expect_sums(f, "all", NULL, 0, 60, "reserved for two");
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .max_running = 9});
    is_int(claim(f, f->a, 10).count, 1, "the budget allows three");
    expect_sums(f, "all", NULL, 0, 90, "reserved for three");
}

/* ---- Which executions ------------------------------------------------------------------------ */

CASE(budget_matches_lane_kind_tenant)
{
    static const struct {
        const char *name, *lane, *kind, *tenant;
    } budget[] = {
        {"everything", NULL, NULL, NULL},     {"by-lane", "default", NULL, NULL},
        {"by-kind", NULL, "job", NULL},       {"by-tenant", NULL, NULL, "acme"},
        {"by-all", "default", "job", "acme"},
    };
    for (size_t i = 0; i < WEFT_LEN(budget); i++)
        put_budget(f, &(struct weft_budget){.name = budget[i].name,
                                            .matches = true,
                                            .match_lane = budget[i].lane,
                                            .match_kind = budget[i].kind,
                                            .match_tenant = budget[i].tenant,
                                            DIMENSIONS({.name = "tokens", .estimate = 1})});
    put_budget(f, &(struct weft_budget){.name = "named",
                                        .match_kind = "job", /* without matches: by name alone */
                                        DIMENSIONS({.name = "tokens", .estimate = 1})});
    static const char *const lanes[] = {"default", "other"};
    const struct weft_claim both = {
        .worker = "w", .lanes = lanes, .lane_count = WEFT_LEN(lanes), .max = 10};
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .tenant = "acme"});
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", .lane = "other", .tenant = "acme"});
    (void)submit_ok(f, &(struct weft_spec){.kind = "mail", .tenant = "zeta", BUDGETS("named")});
    (void)submit_ok(f, &(struct weft_spec){.kind = "job"});
    is_int(claim_with(f, f->b, &both).count, 4, "all are claimed");
    expect_sums(f, "everything", NULL, 0, 4, "no condition");
    expect_sums(f, "by-lane", NULL, 0, 3, "a lane");
    expect_sums(f, "by-kind", NULL, 0, 3, "a kind");
    expect_sums(f, "by-tenant", NULL, 0, 2, "a tenant");
    expect_sums(f, "by-all", NULL, 0, 1, "all three");
    expect_sums(f, "named", NULL, 0, 1, "named by the spec");
}

CASE(budget_tightest_of_several_decides)
{
    put_tokens(f, "wide", 1000, 10);
    put_budget(f, &(struct weft_budget){.name = "team",
                                        DIMENSIONS({.name = "cents", .hard = 7, .estimate = 2},
                                                   {.name = "tokens", .hard = 1000})});
    put_budget(f,
               &(struct weft_budget){.name = "project",
                                     DIMENSIONS({.name = "tokens", .hard = 50, .estimate = 10})});
    (void)submit_copies(
        f, &(struct weft_spec){.kind = "job", BUDGETS("team", "project", "missing", "team")}, 9);
    struct weft_claim_result got = claim(f, f->b, 10);
    is_int(got.count, 3, "cents of the team are for three");
    expect_sums(f, "wide", NULL, 0, 30, "the one that matches");
    expect_sums(f, "team", "cents", 0, 6, "cents of the team, once each");
    expect_sums(f, "team", "tokens", 0, 0, "no estimate, no reservation");
    expect_sums(f, "project", NULL, 0, 30, "tokens of the project");
    struct weft_execution seen = describe(f, &got.item[0].id);
    ok(seen.budget_count == 3 && strcmp(seen.budgets[0], "missing") == 0,
       "readers see the names, each once");
}

CASE(budget_that_is_missing_holds_nothing_back)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", BUDGETS("later")}, 3);
    is_int(claim(f, f->b, 1).count, 1, "a budget that is not there does not count");
    put_budget(f, &(struct weft_budget){.name = "later",
                                        DIMENSIONS({.name = "tokens", .hard = 1, .estimate = 1})});
    is_int(claim(f, f->b, 10).count, 1, "it counts when it is there");
    expect_sums(f, "later", NULL, 0, 1, "what ran before is not charged");
}

CASE(budgets_of_namespaces_are_apart)
{
    const struct weft_budget budget = {
        .name = "all", .matches = true, DIMENSIONS({.name = "tokens", .hard = 1, .estimate = 1})};
    is_int(weft_engine_budget_put(f->a, "other", &budget, &f->err), WEFT_OK,
           "a budget of another namespace");
    tell_other(f);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 3);
    struct weft_spec there = {.ns = "other", .kind = "job", BUDGETS("all")};
    (void)submit_copies(f, &there, 3);
    is_int(claim(f, f->b, 10).count, 3, "the default namespace is not under it");
    is_int(claim_with(f, f->b, &(struct weft_claim){.ns = "other", .worker = "w", .max = 9}).count,
           1, "its own is");
    struct weft_budget got;
    is_int(weft_engine_budget(f->b, "default", "all", f->arena, &got, &f->err), WEFT_NOT_FOUND,
           "the default namespace does not see it");
    is_int(weft_engine_budget_reset(f->b, "default", "all", f->arena, &got, &f->err),
           WEFT_NOT_FOUND, "or reset it");
    is_int(weft_engine_budget_remove(f->b, "default", "all", f->arena, &got, &f->err),
           WEFT_NOT_FOUND, "or remove it");
    is_int(weft_engine_budget(f->b, "other", "all", f->arena, &got, &f->err), WEFT_OK, "its own");
    is_int(got.dimension[0].reserved, 1, "has its reservation");
}

/* ---- Specs on their way ---------------------------------------------------------------------- */

/* Members of flows have costs and budgets, whether they wait for others or not. */
CASE(budget_of_members_of_a_flow)
{
    put_budget(f, &(struct weft_budget){
                      .name = "team", DIMENSIONS({.name = "tokens", .hard = 100, .estimate = 1})});
    struct drawn flow;
    draw(&flow, "a; b:a");
    node_of(&flow, "a")->spec = (struct weft_spec){.kind = "a", BUDGETS("team"), COST(40)};
    node_of(&flow, "b")->spec = (struct weft_spec){.kind = "b", BUDGETS("team"), COST(70)};
    submit_drawn(f, &flow);
    struct weft_claimed first = claim_node(f, "a");
    expect_sums(f, "team", NULL, 0, 40, "the first member runs");
    report_ok(f, &first, 25);
    is_int(complete(f, f->a, &first, "1").err.rc, WEFT_OK, "the first lease completes");
    cascade(f, f->b, &flow);
    expect_sums(f, "team", NULL, 25, 0, "the first member has ended");
    struct weft_claimed second = claim_node(f, "b");
    expect_sums(f, "team", NULL, 25, 70, "the second member runs");
    (void)complete(f, f->a, &second, "1");
}

/* A replay costs as much as the first run, and so does a retry. */
CASE(budget_cost_stays_with_the_execution)
{
    put_tokens(f, "all", 100, 1);
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", COST(60)});
    struct weft_claimed lease = claim_one(f, f->a);
    (void)fail(f, f->a, &lease, "busy");
    forward_ms(f, 3600000);
    (void)run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER);
    lease = claim_one(f, f->a);
    expect_sums(f, "all", NULL, 0, 60, "the second attempt");
    (void)complete(f, f->a, &lease, NULL);
    (void)steer_id(f, WEFT_STEER_REPLAY, &id);
    lease = claim_one(f, f->b);
    expect_sums(f, "all", NULL, 0, 60, "the replay");
    (void)complete(f, f->b, &lease, NULL);
    expect_sums(f, "all", NULL, 0, 0, "the end");
}

/* A submission that is a duplicate writes no cost: the invariants after the case would see it. */
CASE(budget_cost_of_keyed_submissions)
{
    put_tokens(f, "all", 100, 1);
    const struct weft_spec spec[] = {{.kind = "job", .key = "k", COST(60)},
                                     {.kind = "job", .key = "k", COST(70)},
                                     {.kind = "job", .key = "l", COST(20)}};
    struct weft_submitted *got = submit_many(f, f->a, spec, WEFT_LEN(spec));
    ok(!got[0].duplicate && got[1].duplicate && !got[2].duplicate, "one is a duplicate");
    is_int(claim(f, f->b, 10).count, 2, "two run");
    expect_sums(f, "all", NULL, 0, 80, "with their own costs");
}

/* A submission that shares its transaction with other calls keeps its costs. */
CASE(budget_cost_of_joint_submissions)
{
    put_tokens(f, "all", 100, 1);
    (void)submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    const struct weft_complete end = {.id = lease.id, .epoch = lease.epoch};
    const struct weft_spec spec = {.kind = "job", COST(60)};
    struct weft_lease_result ended = {0};
    struct weft_submit_result submitted = {0};
    struct weft_joint_call call[] = {{.op = WEFT_OP_COMPLETE,
                                      .ns = "default",
                                      .item = &end,
                                      .count = 1,
                                      .answer = &ended,
                                      .arena = f->arena},
                                     {.op = WEFT_OP_SUBMIT,
                                      .ns = "default",
                                      .item = &spec,
                                      .count = 1,
                                      .answer = &submitted,
                                      .arena = f->arena}};
    weft_engine_together(f->a, call, WEFT_LEN(call), NULL, NULL);
    ok(!call[0].rc && !call[1].rc && !ended.rc && !submitted.rc, "both calls succeed");
    expect_sums(f, "all", NULL, 0, 0, "the lease that ended in the joint transaction is settled");
    is_int(claim(f, f->b, 10).count, 1, "the submission runs");
    expect_sums(f, "all", NULL, 0, 60, "with its cost");
}

CASE(budget_cost_goes_with_retention)
{
    put_tokens(f, "all", 100, 1);
    const struct weft_policy keep = {.retention_ms = 1000};
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", .policy = &keep, COST(60)});
    struct weft_claimed lease = claim_one(f, f->a);
    report_ok(f, &lease, 50);
    (void)complete(f, f->a, &lease, NULL);
    forward_ms(f, 3600000);
    (void)run_pass(f, f->b, WEFT_SCANNER_RETENTION);
    is_int(steer_id(f, WEFT_STEER_REPLAY, &id).err.rc, WEFT_NOT_FOUND, "the execution is removed");
    expect_sums(f, "all", NULL, 50, 0, "what it used stays used");
    is_int(ledger_of(f, "all").count, 1, "and stays in the ledger");
}

/* ---- Many queues ----------------------------------------------------------------------------- */

/* Queues that are closed, however many, do not hide one that is open. */
CASE(budget_closed_queues_hide_none)
{
    enum { TENANTS = 150 };
    put_budget(f, &(struct weft_budget){.name = "closed",
                                        .matches = true,
                                        .match_kind = "dear",
                                        DIMENSIONS({.name = "tokens", .hard = 5, .estimate = 5})});
    for (int i = 0; i < TENANTS; i++)
        (void)submit_ok(f, &(struct weft_spec){.kind = "dear",
                                               .tenant = weft_arena_printf(f->arena, "t%d", i)});
    is_int(claim(f, f->a, 10).count, 1, "one uses the budget up");
    struct weft_id open = submit_ok(f, &(struct weft_spec){.kind = "cheap", .tenant = "z"});
    struct weft_claim_result got = claim(f, f->a, 1);
    ok(got.count == 1 && same_id(&got.item[0].id, &open), "the open queue is found behind %d",
       TENANTS - 1);
}

static void submit_for_tenants(struct fixture *f, int first, int count)
{
    for (int i = first; i < first + count; i++)
        (void)submit_ok(
            f, &(struct weft_spec){.kind = "job", .tenant = weft_arena_printf(f->arena, "t%d", i)});
}

/* Queues under a budget that have nothing left do not hide one that has. */
CASE(budget_empty_queues_hide_none)
{
    enum { BEFORE = 75, BEHIND = 75 };
    put_tokens(f, "all", 0, 1);
    submit_for_tenants(f, 0, BEFORE);
    struct weft_id last = submit_ok(f, &(struct weft_spec){.kind = "late", .tenant = "z"});
    submit_for_tenants(f, BEFORE, BEHIND);
    const char *kind = "job", *none = "none";
    const struct weft_claim nothing = {.worker = "w", .kinds = &none, .kind_count = 1};
    is_int(claim_with(f, f->a, &nothing).count, 0, "a has read which queues have work");
    const struct weft_claim jobs = {.worker = "w", .kinds = &kind, .kind_count = 1, .max = 1000};
    struct weft_claim_result drained = {.count = 0};
    size_t count = 0;
    do { /* a does not know that they are empty now */
        drained = claim_with(f, f->b, &jobs);
        count += drained.count;
    } while (drained.count > 0);
    is_int(count, BEFORE + BEHIND, "all others are claimed");
    const struct weft_claim waits = {.worker = "w", .max = 1, .wait_ms = 1000};
    struct weft_claim_result got = claim_with(f, f->a, &waits);
    ok(got.count == 1 && same_id(&got.item[0].id, &last), "the queue with work is found");
}
