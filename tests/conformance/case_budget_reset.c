/* SPDX-License-Identifier: Apache-2.0 */

/* Periods of budgets: when they end, what begins at nothing, what stays; and what the ledger keeps.
 */

#include "budgets.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/limit/budgets.h"
#include "engine/ready/poll.h"
#include "weft/weft.h"

#include <string.h>

enum { MINUTE_MS = 60000 };

/* A budget of 100 tokens a minute, 30 for each, from the beginning of this case on. */
static struct weft_budget a_minute(struct fixture *f, const char *name)
{
    static struct weft_budget_dimension tokens;
    tokens = (struct weft_budget_dimension){.name = "tokens", .hard = 100, .estimate = 30};
    return (struct weft_budget){.name = name,
                                .matches = true,
                                .dimension = &tokens,
                                .dimension_count = 1,
                                .every_ms = MINUTE_MS,
                                .anchor_us = f->now_us};
}

static struct weft_claimed run_job(struct fixture *f)
{
    (void)submit_job(f);
    struct weft_claim_result got = claim_open(f, f->a, 1);
    return got.count ? got.item[0] : (struct weft_claimed){.epoch = 1};
}

/* A pass of b; how many periods it has ended. */
static uint64_t reset_pass(struct fixture *f)
{
    struct weft_pass_report pass = run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    return counter_of(&pass, "processed");
}

static weft_usec due_of(struct fixture *f)
{
    struct weft_poll poll = {0};
    is_int(weft_engine_poll(f->b, f->arena, &poll, &f->err), WEFT_OK, "poll");
    return poll.due_us[WEFT_SCANNER_BUDGET_RESET];
}

/* ---- By time --------------------------------------------------------------------------------- */

CASE(reset_at_the_aligned_moment)
{
    struct weft_budget budget = a_minute(f, "all");
    budget.anchor_us -= 20 * WEFT_SECOND;
    weft_usec end_us = f->now_us + 40 * WEFT_SECOND;
    put_budget(f, &budget);
    is_int(budget_now(f, "all").next_reset_us, end_us, "the period ends 40 s from now");
    is_int(budget_now(f, "all").period_began_us, f->now_us, "it began with the budget");
    is_int(due_of(f), end_us, "the poll says when");
    struct weft_claimed lease = run_job(f);
    report_ok(f, &lease, 100);
    forward_ms(f, 39999);
    is_int(reset_pass(f), 0, "a millisecond before, no period ends");
    expect_sums(f, "all", NULL, 100, 0, "before the end");
    forward_ms(f, 1);
    struct weft_pass_report pass = run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    is_int(counter_of(&pass, "processed"), 1, "at the moment itself it does");
    is_int(pass.next_due_us, end_us + 60 * WEFT_SECOND, "the pass says when the next one ends");
    expect_sums(f, "all", NULL, 0, 0, "a new period");
    expect_state(f, "all", WEFT_BUDGET_OK, 0, "a new period");
    is_int(budget_now(f, "all").period_began_us, end_us, "it began at that moment");
    is_int(reset_pass(f), 0, "a second pass ends nothing");
    is_int(run_job(f).epoch, 1, "work goes on");
}

/* What runs keeps its reservation, and what it spends from now on belongs to the new period. */
CASE(reset_under_running_leases)
{
    struct weft_budget budget = a_minute(f, "all");
    put_budget(f, &budget);
    struct weft_claimed ends = run_job(f), runs = run_job(f);
    report_ok(f, &ends, 20);
    report_ok(f, &runs, 10);
    lose_errands(f->a, true);
    (void)complete(f, f->a, &ends, NULL); /* and is not settled before the period ends */
    lose_errands(f->a, false);
    forward_ms(f, MINUTE_MS);
    (void)renew(f, f->a, &runs);
    is_int(reset_pass(f), 1, "the period ends");
    expect_sums(f, "all", NULL, 0, 20, "what ended before is settled by the same pass");
    report_ok(f, &runs, 10);
    expect_sums(f, "all", NULL, 0, 20, "a report from before, once more");
    report_ok(f, &runs, 18);
    expect_sums(f, "all", NULL, 8, 12, "only the difference counts");
    struct weft_usage_result answer = report(f, f->b, &runs, 111);
    ok(answer.rc == WEFT_BUDGET_EXCEEDED && answer.left[0].amount == 92, "92 are left of 100");
    answer = report(f, f->b, &runs, 110);
    is_int(answer.rc, WEFT_OK, "10 of the last period and 100 of this one");
    (void)complete(f, f->a, &runs, NULL);
    expect_sums(f, "all", NULL, 100, 0, "the end");
    struct weft_ledger ledger = ledger_of(f, "all");
    int64_t used = 0;
    for (size_t i = 0; i < ledger.count; i++)
        used += ledger.item[i].used;
    is_int(used, 100, "the ledger of this period adds up to what is used");
}

CASE(reset_once_for_several_missed_periods)
{
    struct weft_budget budget = a_minute(f, "all");
    put_budget(f, &budget);
    struct weft_claimed lease = run_job(f);
    report_ok(f, &lease, 70);
    (void)complete(f, f->a, &lease, NULL);
    weft_usec anchor_us = f->now_us;
    forward_ms(f, INT64_C(10) * MINUTE_MS + 7);
    is_int(reset_pass(f), 1, "one reset for ten periods");
    expect_sums(f, "all", NULL, 0, 0, "ten minutes later");
    is_int(budget_now(f, "all").period_began_us, anchor_us + 600 * WEFT_SECOND,
           "the period began when it should have");
    is_int(budget_now(f, "all").next_reset_us, anchor_us + 660 * WEFT_SECOND, "and ends so");
    is_int(reset_pass(f), 0, "nothing is left to be made up for");
}

CASE(reset_by_months)
{
    struct weft_budget budget = a_minute(f, "all");
    budget.every_ms = 0;
    budget.every_months = 1;
    budget.anchor_us = INT64_C(1699920000) * WEFT_SECOND; /* 2023-11-14, midnight */
    put_budget(f, &budget);
    is_int(budget_now(f, "all").next_reset_us, INT64_C(1702512000) * WEFT_SECOND,
           "it ends on the 14th of December");
    struct weft_claimed lease = run_job(f);
    report_ok(f, &lease, 50);
    (void)complete(f, f->a, &lease, NULL);
    forward_ms(f, INT64_C(30) * 86400000);
    is_int(reset_pass(f), 1, "30 days later the month is over");
    is_int(budget_now(f, "all").next_reset_us, INT64_C(1705190400) * WEFT_SECOND,
           "the next ends on the 14th of January");
    expect_sums(f, "all", NULL, 0, 0, "the next month");
}

CASE(reset_never)
{
    put_tokens(f, "all", 100, 30);
    struct weft_claimed lease = run_job(f);
    report_ok(f, &lease, 100);
    (void)complete(f, f->a, &lease, NULL);
    forward_ms(f, INT64_C(3650) * 86400000);
    is_int(reset_pass(f), 0, "without a span no period ends");
    is_int(budget_now(f, "all").next_reset_us, 0, "no reset is due");
    expect_sums(f, "all", NULL, 100, 0, "ten years later");
}

/* No scanner comes: the claim or report sees that its period is over. */
CASE(reset_by_the_next_claim_or_report)
{
    struct weft_budget budget = a_minute(f, "all");
    budget.on_hard = WEFT_ON_HARD_CANCEL;
    put_budget(f, &budget);
    struct weft_claimed lease = run_job(f);
    report_ok(f, &lease, 90);
    forward_ms(f, MINUTE_MS + 5);
    weft_usec now_us = f->now_us;
    struct weft_usage_result answer = report(f, f->b, &lease, 150);
    ok(answer.rc == WEFT_OK && answer.budget[0].used == 60,
       "a report behind the end counts in the new period, and breaks nothing in the old one");
    is_int(state_of(f, &lease.id), WEFT_STATE_RUNNING, "so nothing is cancelled");
    expect_sums(f, "all", NULL, 60, 0, "the new period");
    is_int(budget_now(f, "all").next_reset_us, now_us + MINUTE_MS * WEFT_MS - 5 * WEFT_MS,
           "which is as long as any");
    is_int(reset_pass(f), 0, "a pass has nothing to end");
    report_ok(f, &lease, 179);
    (void)submit_job(f);
    is_int(claim(f, f->a, 5).count, 0, "89 of 100 leave no room for 30");
    forward_ms(f, MINUTE_MS);
    is_int(claim_open(f, f->a, 5).count, 1, "a claim behind the end finds the budget empty");
    expect_sums(f, "all", NULL, 0, 30, "the third period");
    is_int(reset_pass(f), 0, "a pass has nothing to end");
}

/* Settings that come behind the end, before a process has noticed it, do not lose it. */
CASE(reset_is_not_lost_by_a_put)
{
    struct weft_budget budget = a_minute(f, "all");
    put_budget(f, &budget);
    struct weft_claimed lease = run_job(f);
    report_ok(f, &lease, 90);
    forward_ms(f, MINUTE_MS + 5);
    put_budget(f, &budget);
    expect_sums(f, "all", NULL, 0, 0, "the period has ended");
    is_int(reset_pass(f), 0, "once");
    report_ok(f, &lease, 100);
    expect_sums(f, "all", NULL, 10, 0, "the new period");
    weft_usec anchor_us = budget.anchor_us;
    budget.every_ms = budget.anchor_us = 0;
    put_budget(f, &budget);
    forward_ms(f, INT64_C(10) * MINUTE_MS);
    is_int(reset_pass(f), 0, "without a span it ends no more");
    expect_sums(f, "all", NULL, 10, 0, "no span");
    budget.every_ms = MINUTE_MS;
    budget.anchor_us = anchor_us;
    put_budget(f, &budget);
    expect_sums(f, "all", NULL, 10, 0, "a new span begins with what was used");
    is_int(budget_now(f, "all").next_reset_us, f->now_us + MINUTE_MS * WEFT_MS - 5 * WEFT_MS,
           "and ends at the next aligned moment");
}

CASE(reset_of_many_budgets)
{
    enum { MANY = 205 };
    for (int i = 0; i < MANY; i++) {
        struct weft_budget budget = a_minute(f, weft_arena_printf(f->arena, "b%03d", i));
        budget.matches = false;
        if (weft_engine_budget_put(f->a, "default", &budget, &f->err))
            ok(false, "budget %d is put: %s", i, f->err.text);
    }
    forward_ms(f, MINUTE_MS);
    struct weft_pass_report pass = run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    uint64_t ended = counter_of(&pass, "processed");
    ok(ended == 100 && pass.more, "a hundred in one pass, and more to come");
    for (int i = 0; i < 5 && pass.more; i++) {
        pass = run_pass(f, f->a, WEFT_SCANNER_BUDGET_RESET);
        ended += counter_of(&pass, "processed");
    }
    is_int(ended, MANY, "all of them, each once");
    for (int i = 0; i < 4; i++)
        pass = run_pass(f, f->a, WEFT_SCANNER_BUDGET_RESET);
    is_int(due_of(f), f->now_us + MINUTE_MS * WEFT_MS,
           "then there is nothing to do until the next");
}

/* ---- By an operator -------------------------------------------------------------------------- */

CASE(reset_by_an_operator)
{
    struct weft_budget budget = a_minute(f, "all"), got;
    put_budget(f, &budget);
    struct weft_claimed lease = run_job(f);
    weft_usec end_us = budget_now(f, "all").next_reset_us;
    is_int(report(f, f->a, &lease, 101).rc, WEFT_BUDGET_EXCEEDED, "broken");
    report_ok(f, &lease, 80);
    (void)submit_job(f);
    is_int(claim(f, f->a, 5).count, 0, "closed");
    forward_ms(f, 10000);
    is_int(weft_engine_budget_reset(f->a, "default", "all", f->arena, &got, &f->err), WEFT_OK,
           "reset");
    ok(got.dimension[0].used == 0 && got.state == WEFT_BUDGET_OK && got.breaches == 0 &&
           got.period_began_us == f->now_us && got.next_reset_us == end_us,
       "the answer has the new period, which ends when the old one would have");
    is_int(claim(f, f->a, 5).count, 1, "and opens the budget at once");
    report_ok(f, &lease, 85);
    expect_sums(f, "all", NULL, 5, 30, "what runs counts from here on");
    is_int(weft_engine_budget_reset(f->a, "default", "none", f->arena, &got, &f->err),
           WEFT_NOT_FOUND, "a budget that is not there");
    ok(f->err.hint != NULL, "has a hint");
    is_int(weft_engine_budget_reset(f->a, "default", "a b", f->arena, &got, &f->err),
           WEFT_INVALID_VALUE, "a name that cannot be");
}

/* ---- The ledger ------------------------------------------------------------------------------ */

CASE(ledger_in_pages)
{
    enum { RUNS = 7, PAGE = 3 };
    put_budget(f, &(struct weft_budget){.name = "all",
                                        .matches = true,
                                        DIMENSIONS({.name = "tokens", .estimate = 10},
                                                   {.name = "cents", .estimate = 1})});
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, RUNS);
    struct weft_claim_result got = claim(f, f->a, RUNS);
    for (size_t i = 0; i < got.count; i++)
        report_ok(f, &got.item[i], (int64_t)i);
    struct weft_ledger page = {0};
    struct weft_id last = {{0}};
    size_t pages = 0, rows = 0;
    int64_t used = 0, reserved = 0;
    do {
        const struct weft_ledger_asking asking = {
            .ns = "default", .name = "all", .limit = PAGE, .after = page.next};
        is_int(weft_engine_ledger(f->b, &asking, f->arena, &page, &f->err), WEFT_OK, "a page");
        for (size_t i = 0; i < page.count; i++) {
            const struct weft_charge *charge = &page.item[i];
            bool tokens = strcmp(charge->dimension, "tokens") == 0;
            used += tokens ? charge->used : 0;
            reserved += tokens ? charge->reserved : 0;
            ok(weft_id_cmp(&last, &charge->id) <= 0, "ids ascend");
            last = charge->id;
        }
        rows += page.count;
        ok(page.count <= 2 * (size_t)PAGE && page.count % 2 == 0,
           "a page has both dimensions of at most %d executions", PAGE);
        pages++;
    } while (page.next && pages < 10);
    is_int(pages, 3, "seven executions, three on a page");
    is_int(rows, 2 * RUNS, "each is on one page");
    expect_sums(f, "all", NULL, used, reserved, "the sums of the ledger");
    const struct weft_ledger_asking none = {.ns = "default", .name = "none"};
    is_int(weft_engine_ledger(f->b, &none, f->arena, &page, &f->err), WEFT_NOT_FOUND, "no budget");
    const struct weft_ledger_asking bad = {.ns = "default", .name = "all", .after = "x"};
    ok(weft_engine_ledger(f->b, &bad, f->arena, &page, &f->err) != WEFT_OK, "a bad cursor");
}

/* Rows of a week ago are added up in one; the budget still knows what was used. */
CASE(ledger_is_folded)
{
    put_budget(f, &(struct weft_budget){.name = "all",
                                        .matches = true,
                                        DIMENSIONS({.name = "tokens", .hard = 1000, .estimate = 10},
                                                   {.name = "cents", .estimate = 1})});
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 6);
    struct weft_claim_result got = claim(f, f->a, 6);
    for (size_t i = 0; i < got.count; i++) {
        report_ok(f, &got.item[i], 5);
        if (i > 0 && i < 4)
            (void)complete(f, f->a, &got.item[i], NULL);
    }
    forward_ms(f, INT64_C(7) * 86400000 + 1);
    (void)complete(f, f->a, &got.item[4], NULL); /* no pass has seen that its lease ran out */
    struct weft_pass_report pass = run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    is_int(counter_of(&pass, "folded"), 6, "three leases in two dimensions");
    expect_sums(f, "all", NULL, 30, 10, "nothing is lost");
    struct weft_ledger ledger = ledger_of(f, "all");
    static const struct weft_id none;
    ok(ledger.count == 8 && same_id(&ledger.item[0].id, &none) && ledger.item[0].settled &&
           ledger.item[1].used == 15,
       "one row for all of them, without an id, and three more");
    forward_ms(f, INT64_C(8) * 86400000);
    pass = run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    is_int(counter_of(&pass, "folded"), 2, "a week later another lease goes into the same row");
    ledger = ledger_of(f, "all");
    ok(ledger.count == 6 && ledger.item[1].used == 20, "two leases are left");
    pass = run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    is_int(counter_of(&pass, "folded"), 0, "what was folded is not folded again");
}

/* The ledger of a period goes when the period is over, in batches. */
CASE(ledger_of_earlier_periods_is_removed)
{
    enum { RUNS = 25 };
    struct weft_budget budget = a_minute(f, "all"), got;
    struct weft_budget_dimension tokens = {.name = "tokens", .estimate = 1};
    budget.dimension = &tokens;
    put_budget(f, &budget);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, RUNS);
    struct weft_claim_result claimed = claim(f, f->a, RUNS);
    for (size_t i = 1; i < claimed.count; i++)
        (void)complete(f, f->a, &claimed.item[i], NULL);
    is_int(ledger_of(f, "all").count, RUNS, "all are there");
    is_int(weft_engine_budget_reset(f->a, "default", "all", f->arena, &got, &f->err), WEFT_OK,
           "a new period");
    is_int(ledger_of(f, "all").count, 1, "what runs has come along");
    const struct weft_pass_config ten = {.batch = 10};
    struct weft_pass_report pass = pass_with(f, WEFT_SCANNER_BUDGET_RESET, &ten);
    is_int(counter_of(&pass, "removed"), 10, "a batch");
    ok(pass.more, "and more");
    uint64_t removed = 10;
    for (int i = 0; i < 5; i++) {
        pass = pass_with(f, WEFT_SCANNER_BUDGET_RESET, &ten);
        removed += counter_of(&pass, "removed");
    }
    is_int(removed, RUNS - 1, "all but the one that runs");
    (void)complete(f, f->a, &claimed.item[0], NULL);
    is_int(due_of(f), budget_now(f, "all").next_reset_us,
           "nothing is left to do before the period ends");
    is_int(weft_engine_budget_remove(f->a, "default", "all", f->arena, &got, &f->err), WEFT_OK,
           "the budget is removed");
    ok(due_of(f) < f->now_us + 10 * WEFT_SECOND, "its ledger is to be removed");
    pass = pass_with(f, WEFT_SCANNER_BUDGET_RESET, &ten);
    is_int(counter_of(&pass, "removed"), 1, "and is");
    (void)pass_with(f, WEFT_SCANNER_BUDGET_RESET, &ten);
    is_int(due_of(f), WEFT_NEVER, "then there is nothing to do at all");
}
