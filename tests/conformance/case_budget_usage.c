/* SPDX-License-Identifier: Apache-2.0 */

/* Reports of usage: running totals, limits that are reached, and what happens then. */

#include "budgets.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/limit/budgets.h"
#include "engine/limit/usage.h"
#include "engine/tx/tx.h"
#include "store/store.h"
#include "weft/weft.h"

#include <string.h>

/* Submits one under the budgets that match, and claims it. */
static struct weft_claimed run_job(struct fixture *f)
{
    (void)submit_job(f);
    return claim_open(f, f->a, 1).item[0];
}

/* ---- Totals ---------------------------------------------------------------------------------- */

CASE(usage_totals_are_running)
{
    put_tokens(f, "all", 100, 30);
    struct weft_claimed lease = run_job(f);
    static const struct {
        const char *when;
        int64_t total, used, reserved;
    } step[] = {
        {"the first report", 10, 10, 20}, {"the same again", 10, 10, 20},
        {"a larger one", 25, 25, 5},      {"a late smaller one", 10, 25, 5},
        {"nothing at all", 0, 25, 5},     {"beyond the estimate", 45, 45, 0},
        {"a late one again", 25, 45, 0},  {"the same as before", 45, 45, 0},
    };
    for (size_t i = 0; i < WEFT_LEN(step); i++) {
        struct weft_usage_result answer = report(f, i % 2 ? f->a : f->b, &lease, step[i].total);
        ok(answer.rc == WEFT_OK && answer.budget_count == 1 &&
               strcmp(answer.budget[0].name, "all") == 0 &&
               strcmp(answer.budget[0].dimension, "tokens") == 0 && answer.budget[0].hard == 100 &&
               answer.budget[0].used == step[i].used && answer.budget[0].state == WEFT_BUDGET_OK,
           "%s: the answer has the budget as it is then", step[i].when);
        expect_sums(f, "all", NULL, step[i].used, step[i].reserved, step[i].when);
    }
    struct weft_ledger ledger = ledger_of(f, "all");
    ok(ledger.count == 1 && same_id(&ledger.item[0].id, &lease.id) && ledger.item[0].used == 45 &&
           ledger.item[0].reserved == 0 && !ledger.item[0].settled,
       "the ledger has the lease, which runs");
}

CASE(usage_counts_in_all_budgets)
{
    put_tokens(f, "all", 0, 5);
    put_budget(f, &(struct weft_budget){
                      .name = "team",
                      DIMENSIONS({.name = "tokens", .hard = 100, .estimate = 20},
                                 {.name = "cents", .hard = 50, .soft = 10, .estimate = 2})});
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", BUDGETS("team")});
    struct weft_claimed lease = claim_one(f, f->a);
    const struct weft_amount total[] = {{"cents", 12}, {"metres", 7}, {"tokens", 9}};
    struct weft_usage_result answer = report_all(f, f->b, &lease, total, WEFT_LEN(total));
    is_int(answer.budget_count, 3, "three dimensions of two budgets; the unknown one is ignored");
    expect_sums(f, "all", NULL, 9, 0, "the one that matches");
    expect_sums(f, "team", "tokens", 9, 11, "the named one");
    expect_sums(f, "team", "cents", 12, 0, "its other dimension");
    for (size_t i = 0; i < answer.budget_count; i++)
        is_int(answer.budget[i].state,
               strcmp(answer.budget[i].name, "team") == 0 ? WEFT_BUDGET_SOFT : WEFT_BUDGET_OK,
               "state %zu is that of its budget", i);
}

CASE(usage_without_a_budget)
{
    (void)submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    struct weft_usage_result answer = report(f, f->b, &lease, 10);
    ok(answer.rc == WEFT_OK && answer.budget_count == 0, "a lease under no budget reports");
    put_tokens(f, "all", 100, 30);
    answer = report(f, f->b, &lease, 20);
    ok(answer.rc == WEFT_OK && answer.budget_count == 0, "and is not under one that came later");
    expect_sums(f, "all", NULL, 0, 0, "a budget that came later");
}

CASE(usage_refuses_bad_items)
{
    put_tokens(f, "all", 100, 30);
    struct weft_claimed lease = run_job(f);
    const struct weft_amount none = {"tokens", -1}, twice[] = {{"a", 1}, {"a", 2}};
    const struct weft_amount one = {"tokens", 5};
    const struct weft_usage item[] = {
        {.id = lease.id, .epoch = lease.epoch},
        {.id = lease.id, .epoch = lease.epoch, .totals = &none, .total_count = 1},
        {.id = lease.id, .epoch = lease.epoch, .totals = twice, .total_count = 2},
        {.id = lease.id, .epoch = 0, .totals = &one, .total_count = 1},
        {.id = {{1}}, .epoch = 1, .totals = &one, .total_count = 1},
        {.id = lease.id, .epoch = lease.epoch + 1, .totals = &one, .total_count = 1},
        {.id = lease.id, .epoch = lease.epoch, .totals = &one, .total_count = 1},
    };
    struct weft_usage_result answer[WEFT_LEN(item)] = {{0}};
    is_int(weft_engine_usage(f->a, item, WEFT_LEN(item), f->arena, answer, &f->err), WEFT_OK,
           "the call as a whole is answered");
    expect_err(answer[0].err, WEFT_INVALID_VALUE, "totals", "no totals");
    expect_err(answer[1].err, WEFT_INVALID_VALUE, "totals", "a total below nothing");
    expect_err(answer[2].err, WEFT_INVALID_VALUE, "totals", "a dimension twice");
    expect_err(answer[3].err, WEFT_INVALID_VALUE, "epoch", "epoch 0");
    is_int(answer[4].rc, WEFT_NOT_FOUND, "an unknown id");
    ok(answer[5].rc == WEFT_FENCED && answer[5].fence == WEFT_FENCE_UNKNOWN, "an unknown epoch");
    is_int(answer[6].rc, WEFT_OK, "the good one among them is recorded");
    expect_sums(f, "all", NULL, 5, 25, "the good one");
}

/* Reports of one lease in a call come one after the other; of many leases together. */
CASE(usage_of_many_in_a_call)
{
    enum { LEASES = 5, REPEATS = 12 };
    put_tokens(f, "all", 100, 20);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, LEASES);
    struct weft_claim_result got = claim(f, f->a, LEASES);
    struct weft_amount total[LEASES + REPEATS];
    struct weft_usage item[LEASES + REPEATS];
    struct weft_usage_result answer[LEASES + REPEATS] = {{0}};
    for (size_t i = 0; i < WEFT_LEN(item); i++) {
        const struct weft_claimed *lease = &got.item[i < LEASES ? i : 0];
        total[i] = (struct weft_amount){"tokens", i < LEASES ? 30 : 30 + (int64_t)(i - LEASES)};
        item[i] = (struct weft_usage){
            .id = lease->id, .epoch = lease->epoch, .totals = &total[i], .total_count = 1};
    }
    is_int(weft_engine_usage(f->b, item, LEASES, f->arena, answer, &f->err), WEFT_OK, "five");
    size_t good = 0, refused = 0;
    for (size_t i = 0; i < LEASES; i++) {
        good += answer[i].rc == WEFT_OK;
        refused += answer[i].rc == WEFT_BUDGET_EXCEEDED;
    }
    ok(good == 3 && refused == 2, "three of five reports of 30 fit into 100");
    expect_sums(f, "all", NULL, 90, 40, "two have recorded nothing and keep what they reserved");
    expect_state(f, "all", WEFT_BUDGET_HARD, 2, "two refusals");

    put_tokens(f, "all", 0, 20);
    is_int(weft_engine_usage(f->b, item + LEASES, REPEATS, f->arena, answer, &f->err), WEFT_OK,
           "twelve reports of one lease");
    size_t busy = 0;
    for (size_t i = 0; i < REPEATS; i++)
        busy += answer[i].rc == WEFT_BUSY;
    ok(answer[0].rc == WEFT_OK && answer[7].rc == WEFT_OK && busy == 4,
       "eight are recorded, %zu are to come alone", busy);
}

/* ---- The hard limit -------------------------------------------------------------------------- */

CASE(usage_beyond_the_hard_limit)
{
    put_budget(
        f, &(struct weft_budget){.name = "all",
                                 .matches = true,
                                 DIMENSIONS({.name = "tokens", .hard = 100, .estimate = 30},
                                            {.name = "cents", .hard = 1000}, {.name = "seconds"})});
    struct weft_claimed lease = run_job(f), other = run_job(f);
    const struct weft_amount total[] = {{"seconds", 9}, {"tokens", 101}, {"cents", 40}};
    struct weft_usage_result answer = report_all(f, f->a, &lease, total, WEFT_LEN(total));
    is_int(answer.rc, WEFT_BUDGET_EXCEEDED, "101 of 100");
    expect_err(answer.err, WEFT_BUDGET_EXCEEDED, "totals", "the refusal");
    ok(answer.err->hint && answer.budget_count == 0, "it has a hint and no budgets");
    ok(answer.left_count == 2 && strcmp(answer.left[0].dimension, "tokens") == 0 &&
           answer.left[0].amount == 100 && strcmp(answer.left[1].dimension, "cents") == 0 &&
           answer.left[1].amount == 1000,
       "it says what is left where there is a limit, in the order of the report");
    expect_sums(f, "all", "tokens", 0, 60, "nothing is recorded");
    expect_sums(f, "all", "cents", 0, 0, "nothing is recorded");
    expect_sums(f, "all", "seconds", 0, 0, "nothing is recorded");
    expect_state(f, "all", WEFT_BUDGET_HARD, 1, "a refusal");
    (void)submit_job(f);
    is_int(claim(f, f->a, 5).count, 0, "nothing is claimed under a broken limit");
    is_int(claim(f, f->b, 5).count, 0, "in no process");
    is_int(renew(f, f->b, &lease).err.rc, WEFT_OK, "what runs goes on");
    report_ok(f, &other, 70);
    expect_sums(f, "all", "tokens", 70, 30, "and reports within the limit are recorded");
    answer = report(f, f->b, &lease, 31);
    ok(answer.rc == WEFT_BUDGET_EXCEEDED && answer.left[0].amount == 30, "30 are left");
    expect_state(f, "all", WEFT_BUDGET_HARD, 2, "a second refusal");
    report_ok(f, &lease, 30);
    expect_sums(f, "all", "tokens", 100, 0, "all is used");
    (void)complete(f, f->a, &lease, NULL);
    (void)complete(f, f->a, &other, NULL);
    is_int(claim(f, f->a, 5).count, 0, "nor when nothing runs any more");
}

/* One report over two budgets: the one that has too little refuses it for both. */
CASE(usage_is_recorded_in_all_budgets_or_none)
{
    put_tokens(f, "wide", 1000, 10);
    put_budget(f,
               &(struct weft_budget){.name = "narrow",
                                     DIMENSIONS({.name = "tokens", .hard = 20, .estimate = 10})});
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", BUDGETS("narrow")});
    struct weft_claimed lease = claim_one(f, f->a);
    struct weft_usage_result answer = report(f, f->b, &lease, 21);
    is_int(answer.rc, WEFT_BUDGET_EXCEEDED, "too much for one of two");
    ok(answer.left_count == 1 && answer.left[0].amount == 20, "the least that is left counts");
    ok(strstr(answer.err->text, "'narrow' has 20"), "the budget is named: %s", answer.err->text);
    expect_sums(f, "wide", NULL, 0, 10, "the wide one");
    expect_sums(f, "narrow", NULL, 0, 10, "the narrow one");
    expect_state(f, "wide", WEFT_BUDGET_OK, 0, "the wide one");
    expect_state(f, "narrow", WEFT_BUDGET_HARD, 1, "the narrow one");
    is_int(run_job(f).epoch, 1, "work under the wide one goes on");
}

/* A limit that is reached and not passed: the report counts, and nothing more begins. */
CASE(usage_reaches_the_hard_limit)
{
    put_tokens(f, "all", 100, 30);
    struct weft_claimed lease = run_job(f);
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", COST(0)});
    struct weft_usage_result answer = report(f, f->a, &lease, 100);
    ok(answer.rc == WEFT_OK && answer.budget[0].state == WEFT_BUDGET_HARD, "100 of 100");
    expect_state(f, "all", WEFT_BUDGET_HARD, 1, "the limit is reached");
    is_int(claim(f, f->a, 5).count, 0, "not even one that costs nothing begins");
    answer = report(f, f->b, &lease, 100);
    ok(answer.rc == WEFT_OK, "a repeat is recorded as before");
    expect_state(f, "all", WEFT_BUDGET_HARD, 1, "a repeat breaks nothing anew");
    is_int(complete(f, f->b, &lease, NULL).err.rc, WEFT_OK, "what runs ends as it likes");
}

/* A lease may spend what others have reserved: then nothing begins until there is room again. */
CASE(usage_takes_what_others_have_reserved)
{
    put_tokens(f, "all", 100, 40);
    struct weft_claimed greedy = run_job(f), modest = run_job(f);
    report_ok(f, &greedy, 90);
    expect_sums(f, "all", NULL, 90, 40, "more than the limit is used and reserved together");
    (void)submit_ok(f, &(struct weft_spec){.kind = "job", COST(5)});
    is_int(claim(f, f->b, 5).count, 0, "no room");
    (void)complete(f, f->a, &modest, NULL);
    expect_sums(f, "all", NULL, 90, 0, "the other has ended");
    is_int(claim_open(f, f->b, 5).count, 1, "room for 5 of 10");
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

static void put_cancelling(struct fixture *f, int64_t hard)
{
    put_budget(f,
               &(struct weft_budget){.name = "strict",
                                     .matches = true,
                                     .match_kind = "job",
                                     .on_hard = WEFT_ON_HARD_CANCEL,
                                     DIMENSIONS({.name = "tokens", .hard = hard, .estimate = 10})});
}

CASE(usage_cancels_at_the_hard_limit)
{
    enum { RUNNING = 5 };
    put_cancelling(f, 100);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, RUNNING);
    struct weft_claim_result got = claim(f, f->b, RUNNING);
    struct weft_id waiting = submit_job(f);
    struct weft_id other = submit_ok(f, &(struct weft_spec){.kind = "mail"});
    struct weft_claimed mail = take_kind(f, "mail");
    is_int(report(f, f->a, &got.item[0], 40).rc, WEFT_OK, "40 of 100");
    is_int(report(f, f->a, &got.item[1], 61).rc, WEFT_BUDGET_EXCEEDED, "61 more");
    for (size_t i = 0; i < RUNNING; i++) {
        is_int(state_of(f, &got.item[i].id), WEFT_STATE_CANCELLED, "%zu is cancelled", i);
        struct weft_lease_answer answer = renew(f, f->a, &got.item[i]);
        ok(answer.err.rc == WEFT_FENCED && answer.fence == WEFT_FENCE_CANCELLED,
           "its worker learns of it with the next renewal");
    }
    struct weft_attempts tries = attempts(f, &got.item[2].id);
    ok(tries.count == 1 && strcmp(tries.item[0].ended, "cancelled") == 0, "the attempt says so");
    is_int(state_of(f, &waiting), WEFT_STATE_READY, "what had not begun waits");
    is_int(claim(f, f->b, 5).count, 0, "and is not claimed");
    is_int(state_of(f, &other), WEFT_STATE_RUNNING, "another kind goes on");
    is_int(renew(f, f->a, &mail).err.rc, WEFT_OK, "another kind goes on");
    expect_sums(f, "strict", NULL, 40, 0, "the reservations are back");
    expect_state(f, "strict", WEFT_BUDGET_HARD, 1, "all are cancelled");
    put_cancelling(f, 200);
    expect_state(f, "strict", WEFT_BUDGET_OK, 1, "a higher limit opens it");
    is_int(claim_open(f, f->b, 5).count, 1, "and what waited begins");
}

CASE(usage_cancels_also_when_the_limit_is_just_reached)
{
    put_cancelling(f, 100);
    struct weft_claimed lease = run_job(f), other = run_job(f);
    is_int(report(f, f->a, &lease, 100).rc, WEFT_OK, "100 of 100 is recorded");
    is_int(state_of(f, &lease.id), WEFT_STATE_CANCELLED, "the one that reported");
    is_int(state_of(f, &other.id), WEFT_STATE_CANCELLED, "the other");
    expect_sums(f, "strict", NULL, 100, 0, "both are cancelled");
}

/* A limit that is lowered below what was used cancels too. */
CASE(budget_put_cancels)
{
    put_cancelling(f, 100);
    struct weft_claimed lease = run_job(f);
    report_ok(f, &lease, 50);
    put_cancelling(f, 51);
    is_int(state_of(f, &lease.id), WEFT_STATE_RUNNING, "50 of 51");
    put_cancelling(f, 50);
    is_int(state_of(f, &lease.id), WEFT_STATE_CANCELLED, "50 of 50");
    expect_state(f, "strict", WEFT_BUDGET_HARD, 1, "lowered");
}

/* The errand that cancels is lost: a pass does it. Until it is done nothing is claimed. */
CASE(usage_scanner_cancels_for_a_lost_errand)
{
    enum { RUNNING = 25 };
    put_budget(f, &(struct weft_budget){.name = "strict",
                                        .matches = true,
                                        .on_hard = WEFT_ON_HARD_CANCEL,
                                        DIMENSIONS({.name = "tokens", .hard = 100, .estimate = 1},
                                                   {.name = "cents"})});
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, RUNNING + 1);
    struct weft_claim_result got = claim(f, f->b, RUNNING);
    lose_errands(f->a, true);
    is_int(report(f, f->a, &got.item[0], 101).rc, WEFT_BUDGET_EXCEEDED, "too much");
    lose_errands(f->a, false);
    is_int(state_of(f, &got.item[1].id), WEFT_STATE_RUNNING, "nothing is cancelled yet");
    is_int(claim(f, f->a, 5).count, 0, "and nothing is claimed");
    const struct weft_pass_config ten = {.batch = 10};
    struct weft_pass_report pass = pass_with(f, WEFT_SCANNER_BUDGET_RESET, &ten);
    uint64_t cancelled = counter_of(&pass, "cancelled");
    ok(cancelled > 0 && cancelled <= 10 && pass.more, "%d of a batch are cancelled, there is more",
       (int)cancelled);
    for (int i = 0; i < 20 && pass.more; i++) {
        pass = pass_with(f, WEFT_SCANNER_BUDGET_RESET, &ten);
        cancelled += counter_of(&pass, "cancelled");
    }
    is_int(cancelled, RUNNING, "all are, each once");
    for (size_t i = 0; i < RUNNING; i++)
        if (state_of(f, &got.item[i].id) != WEFT_STATE_CANCELLED)
            ok(false, "%zu is cancelled", i);
    (void)run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    expect_sums(f, "strict", NULL, 0, 0, "all are settled");
}

/* ---- The soft limit -------------------------------------------------------------------------- */

/* When the soft limit was reached in this period; 0: not yet. */
static weft_usec soft_since(struct fixture *f, const char *name)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_budget_list(&call, f->arena) =
        (struct weft_budget_list_in){.namespace = 1, .own = name, .after = "", .most = 1};
    is_int(weft_tx_once(f->b, WEFT_TX_READ, &call, f->arena, &rows, &f->err), WEFT_OK, "read");
    return rows.count ? weft_out_budget(&rows, 0)->soft_at.value : -1;
}

CASE(usage_reaches_the_soft_limit_once_in_a_period)
{
    struct weft_budget again;
    put_budget(f, &(struct weft_budget){
                      .name = "all",
                      .matches = true,
                      DIMENSIONS({.name = "tokens", .hard = 100, .soft = 50, .estimate = 10})});
    struct weft_claimed lease = run_job(f);
    report_ok(f, &lease, 49);
    expect_state(f, "all", WEFT_BUDGET_OK, 0, "49");
    is_int(soft_since(f, "all"), 0, "49: no moment");
    forward_ms(f, 1000);
    weft_usec reached_us = f->now_us;
    report_ok(f, &lease, 50);
    expect_state(f, "all", WEFT_BUDGET_SOFT, 0, "50");
    is_int(soft_since(f, "all"), reached_us, "50: the moment is recorded");
    forward_ms(f, 1000);
    report_ok(f, &lease, 60);
    is_int(soft_since(f, "all"), reached_us, "60: the first moment stays");
    is_int(run_job(f).epoch, 1, "claims go on");
    is_int(weft_engine_budget_reset(f->b, "default", "all", f->arena, &again, &f->err), WEFT_OK,
           "a new period");
    is_int(soft_since(f, "all"), 0, "a new period has not reached it");
    report_ok(f, &lease, 111);
    is_int(soft_since(f, "all"), f->now_us, "51 more in the new period");
    expect_state(f, "all", WEFT_BUDGET_SOFT, 0, "51 more");
}

/* ---- Settings that open and close ------------------------------------------------------------ */

CASE(budget_put_opens_and_closes)
{
    struct weft_budget_dimension tokens = {.name = "tokens", .hard = 100, .estimate = 30};
    struct weft_budget budget = {
        .name = "all", .matches = true, .dimension = &tokens, .dimension_count = 1};
    put_budget(f, &budget);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 10);
    struct weft_claim_result got = claim(f, f->a, 10);
    is_int(got.count, 3, "three of 30 fit into 100");
    tokens.hard = 120;
    put_budget(f, &budget);
    is_int(claim(f, f->a, 10).count, 1, "a higher limit lets one more begin at once");
    tokens.estimate = 0;
    put_budget(f, &budget);
    is_int(claim(f, f->a, 1).count, 1, "no estimate: another begins");
    report_ok(f, &got.item[0], 80);
    tokens.hard = 80;
    put_budget(f, &budget);
    expect_state(f, "all", WEFT_BUDGET_HARD, 1, "lowered to what was used");
    is_int(claim(f, f->a, 10).count, 0, "a lower limit closes it");
    is_int(report(f, f->b, &got.item[1], 1).rc, WEFT_BUDGET_EXCEEDED, "nothing is left");
    tokens.hard = 50;
    put_budget(f, &budget);
    is_int(report(f, f->b, &got.item[1], 1).rc, WEFT_BUDGET_EXCEEDED, "less than nothing is left");
    is_int(report(f, f->b, &got.item[0], 80).rc, WEFT_OK, "what was recorded may be repeated");
    tokens.hard = 0;
    put_budget(f, &budget);
    expect_state(f, "all", WEFT_BUDGET_OK, 4, "no limit");
    is_int(claim(f, f->a, 10).count, 5, "without a limit all begin");
}
