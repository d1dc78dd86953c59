/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What our ancestor's budgets, quotas and scheduling were known for: its defects B1 to B6, each
 * shown not to exist here. The cases of budgets, gates and lanes go further; these follow the list.
 */

#include "budgets.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/admin/workers.h"
#include "engine/limit/budgets.h"
#include "engine/limit/gates.h"
#include "weft/weft.h"

#include <string.h>

static void put_gate(struct fixture *f, const char *name, struct weft_limits limits,
                     enum weft_rc wanted)
{
    struct weft_err err = {0};
    const struct weft_gate gate = {.name = name, .limits = limits};
    is_int(weft_engine_gate_put(f->a, "default", &gate, &err), wanted, "gate %s: %s", name,
           err.text);
}

static size_t running(struct fixture *f)
{
    return count_rows(f, &(struct weft_filter){.state = WEFT_STATE_RUNNING});
}

/* B1: budgets that never blocked, because two places disagreed about their keys; usage of some
 * dimensions was dropped on the way. */
CASE(weakness_b01_budgets_block)
{
    put_budget(f, &(struct weft_budget){.name = "team",
                                        DIMENSIONS({.name = "input", .hard = 100, .estimate = 60},
                                                   {.name = "output", .hard = 1000},
                                                   {.name = "wall_ms", .hard = 1000})});
    const struct weft_spec spec = {.kind = "job", BUDGETS("team")};
    (void)submit_copies(f, &spec, 2);
    struct weft_claim_result got = claim(f, f->b, 10);
    is_int(got.count, 1, "of two executions at 60 of 100 one is claimed");
    is_int(claim(f, f->a, 10).count, 0, "the other process claims none besides");
    const struct weft_amount total[] = {{"input", 10}, {"output", 20}, {"wall_ms", 30}};
    is_int(report_all(f, f->a, &got.item[0], total, 3).rc, WEFT_OK, "a report of three dimensions");
    expect_sums(f, "team", "input", 10, 50, "after the report");
    expect_sums(f, "team", "output", 20, 0, "after the report");
    expect_sums(f, "team", "wall_ms", 30, 0, "after the report");
}

/* B2: actions that were stored and never carried out. */
CASE(weakness_b02_actions_are_carried_out)
{
    put_budget(f, &(struct weft_budget){.name = "team",
                                        .on_hard = WEFT_ON_HARD_CANCEL,
                                        DIMENSIONS({.name = "tokens", .hard = 100, .soft = 50})});
    const struct weft_spec spec = {.kind = "job", BUDGETS("team")};
    (void)submit_copies(f, &spec, 3);
    struct weft_claim_result got = claim(f, f->a, 3);
    is_int(got.count, 3, "three executions run");
    report_ok(f, &got.item[0], 60);
    expect_state(f, "team", WEFT_BUDGET_SOFT, 0, "beyond the soft limit");
    is_int(running(f), 3, "the soft limit stops nothing");
    is_int(report(f, f->a, &got.item[1], 41).rc, WEFT_BUDGET_EXCEEDED, "beyond the hard limit");
    is_int(running(f), 0, "the hard limit cancels all that runs");
    is_int(renew(f, f->b, &got.item[2]).fence, WEFT_FENCE_CANCELLED,
           "its next heartbeat tells a worker");
}

/* B3: nothing was reserved, so workers overshot together; resets drifted; a dimension that a report
 * named twice was checked twice by itself; a release that came twice was subtracted twice. */
CASE(weakness_b03_sums_are_exact)
{
    static const int64_t EACH = 30, HARD = 100;
    put_budget(
        f, &(struct weft_budget){.name = "team",
                                 .every_ms = 3600000,
                                 .anchor_us = 600 * WEFT_SECOND,
                                 DIMENSIONS({.name = "tokens", .hard = HARD, .estimate = EACH})});
    const struct weft_spec spec = {.kind = "job", BUDGETS("team")};
    (void)submit_copies(f, &spec, 10);
    size_t claimed = 0;
    struct weft_claimed first = {0};
    for (int i = 0; i < 10; i++) {
        struct weft_claim_result got = claim(f, i % 2 ? f->a : f->b, 1);
        if (got.count > 0 && claimed == 0)
            first = got.item[0];
        claimed += got.count;
    }
    is_int(claimed, HARD / EACH, "two processes claim no more than fit together");
    const struct weft_amount twice[] = {{"tokens", 60}, {"tokens", 60}};
    is_int(report_all(f, f->a, &first, twice, 2).rc, WEFT_INVALID_VALUE,
           "a report with a dimension twice is refused");
    expect_sums(f, "team", NULL, 0, 3 * EACH, "nothing of it is recorded");
    report_ok(f, &first, 10);
    is_int(complete(f, f->a, &first, "1").err.rc, WEFT_OK, "the first ends");
    const struct weft_lease_end ended = {.lease = {.id = first.id, .epoch = first.epoch}};
    for (int i = 0; i < 2; i++)
        is_int(weft_engine_settle(i ? f->a : f->b, &ended, 1, NULL, &f->err), WEFT_OK,
               "it is settled again: %s", f->err.text);
    expect_sums(f, "team", NULL, 10, 2 * EACH, "what it did not use was given back once");
    weft_usec due_us = budget_now(f, "team").next_reset_us;
    is_int((due_us - 600 * WEFT_SECOND) % (3600 * WEFT_SECOND), 0, "a period ends by its anchor");
    forward_ms(f, (due_us - f->now_us) / 1000 + INT64_C(5) * 3600000 + 1234567);
    (void)run_pass(f, f->b, WEFT_SCANNER_BUDGET_RESET);
    is_int((budget_now(f, "team").next_reset_us - due_us) % (3600 * WEFT_SECOND), 0,
           "a late reset does not move the next one");
    expect_sums(f, "team", NULL, 0, 2 * EACH, "a late reset");
}

/* B4: places of a quota were not given back at the end; a row could say that nothing may run. */
CASE(weakness_b04_an_end_gives_its_place_back)
{
    put_gate(f, "key", (struct weft_limits){.max_running = -1}, WEFT_INVALID_VALUE);
    put_gate(f, "key", (struct weft_limits){.window = {.limit = 1}}, WEFT_INVALID_VALUE);
    put_gate(f, "key", (struct weft_limits){.max_running = 1}, WEFT_OK);
    const struct weft_spec spec = {.kind = "job", .gate = "key:1"};
    (void)submit_copies(f, &spec, 3);
    struct weft_claimed lease = claim_one(f, f->a);
    is_int(claim(f, f->b, 10).count, 0, "one at a time");
    is_int(complete(f, f->a, &lease, "1").err.rc, WEFT_OK, "it ends");
    lease = claim_one(f, f->b);
    is_int(fail(f, f->b, &lease, "broken").err.rc, WEFT_OK, "the second fails, and will be tried");
    (void)claim_one(f, f->a);
    is_int(claim(f, f->b, 10).count, 0, "the third runs alone");
    put_gate(f, "key", (struct weft_limits){.max_running = 0}, WEFT_OK);
    (void)submit_ok(f, &spec);
    is_int(claim(f, f->b, 10).count, 1, "no limit is no limit, and not a limit of none");
}

/* B5: no fairness, no limit of a lane, no wake-up when a rate has tokens again. */
CASE(weakness_b05_turns_limits_and_wakes)
{
    struct weft_spec spec = {.kind = "job", .tenant = "loud", .priority = 100};
    (void)submit_copies(f, &spec, 50);
    spec = (struct weft_spec){.kind = "job", .tenant = "quiet"};
    (void)submit_copies(f, &spec, 5);
    struct weft_claim_result got = claim(f, f->a, 10);
    size_t quiet = 0;
    for (size_t i = 0; i < got.count; i++)
        quiet += strcmp(got.item[i].tenant, "quiet") == 0;
    is_int(quiet, 5, "every second turn is of the quiet tenant, whatever the priority of the loud");
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .max_running = 12});
    is_int(claim(f, f->b, 10).count, 2, "a lane runs as many as it may");
    put_lane(f, f->a, &(struct weft_lane){.name = "api", .rate = {.limit = 1, .per_ms = 1000}});
    spec = (struct weft_spec){.kind = "call", .lane = "api"};
    (void)submit_copies(f, &spec, 3);
    is_int(claim_lane(f, f->a, "api").count, 1, "the rate lets one start");
    got = claim_lane(f, f->a, "api");
    ok(got.count == 0 && got.opens_in_us > 0 && got.opens_in_us <= WEFT_SECOND,
       "a claim learns when the next may start, to wait until then: %lld",
       (long long)got.opens_in_us);
    forward_ms(f, 1000);
    is_int(claim_lane(f, f->b, "api").count, 1, "a second later the next one starts");
}

/* B6: the death of a worker was not tied to its leases, and so not to what they held. */
CASE(weakness_b06_a_dead_worker_holds_nothing)
{
    put_tokens(f, "all", 100, 60);
    put_gate(f, "key", (struct weft_limits){.max_running = 1}, WEFT_OK);
    const struct weft_spec spec = {.kind = "job", .gate = "key:1"};
    (void)submit_copies(f, &spec, 2);
    struct weft_claimed lost = claim_one(f, f->a);
    report_ok(f, &lost, 7);
    forward_ms(f, 3600000); /* its worker is gone, and its lease runs out */
    (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    expect_sums(f, "all", NULL, 7, 0, "the lost lease has no reservation any more");
    struct weft_claimed again = claim_one(f, f->b);
    ok(same_id(&again.id, &lost.id) && again.epoch > lost.epoch,
       "its place in the gate is free, and it goes first");
    is_int(report(f, f->a, &lost, 50).rc, WEFT_FENCED, "the dead worker reports nothing any more");
    expect_sums(f, "all", NULL, 7, 60, "the next lease reserves");
}
