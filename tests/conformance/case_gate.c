/* SPDX-License-Identifier: Apache-2.0 */

/* Gates: how many of a key run at a time, how often they start, and who goes first. */

#include "conformance.h"

#include "base/arena.h"
#include "engine/limit/admit.h"
#include "engine/limit/gates.h"
#include "engine/tx/commit_effects.h"
#include "weft/weft.h"

#include <string.h>

static void put_gate(struct fixture *f, const char *name, struct weft_limits limits)
{
    struct weft_err err = {0};
    const struct weft_gate gate = {.name = name, .limits = limits};
    is_int(weft_engine_gate_put(f->a, "default", &gate, &err), WEFT_OK, "gate %s is put: %s", name,
           err.text);
}

static struct weft_id gated(struct fixture *f, const char *gate)
{
    return submit_ok(f, &(struct weft_spec){.kind = "job", .gate = gate});
}

static size_t held(struct fixture *f)
{
    return count_rows(f, &(struct weft_filter){.state = WEFT_STATE_HELD});
}

CASE(gate_without_settings_admits_all)
{
    struct weft_id id = gated(f, "customer:42");
    is_int(state_of(f, &id), WEFT_STATE_READY, "an execution of a gate without settings is ready");
    is_str(describe(f, &id).gate, "customer:42", "readers see the gate of the execution");
    is_int(claim(f, f->b, 10).count, 1, "the execution is claimed");
}

CASE(gate_limits_a_key_at_a_time)
{
    put_gate(f, "customer", (struct weft_limits){.max_running = 1});
    for (int i = 0; i < 3; i++) {
        (void)gated(f, "customer:1");
        (void)gated(f, "customer:2");
    }
    (void)gated(f, "other:1");
    is_int(held(f), 4, "one of each customer is admitted");
    struct weft_claim_result first = claim(f, f->b, 10);
    is_int(first.count, 3, "two customers and the gate without settings");
    is_int(claim(f, f->a, 10).count, 0, "nothing more while they run");
    is_int(complete(f, f->a, &first.item[0], NULL).err.rc, WEFT_OK, "one ends");
    struct weft_claim_result second = claim(f, f->b, 10);
    is_int(second.count, 1, "the next of the same customer is ready at once");
    is_int(held(f), 3, "the others are held");
}

CASE(gate_admits_by_priority_then_age)
{
    put_gate(f, "g", (struct weft_limits){.max_running = 1});
    struct weft_id first = gated(f, "g:1"), old = gated(f, "g:1"), young = gated(f, "g:1");
    struct weft_id high =
        submit_ok(f, &(struct weft_spec){.kind = "job", .gate = "g:1", .priority = 5});
    const struct weft_id order[] = {first, high, old, young};
    for (size_t i = 0; i < WEFT_LEN(order); i++) {
        struct weft_claimed lease = claim_one(f, f->b);
        ok(same_id(&lease.id, &order[i]), "number %zu is the expected one", i + 1);
        (void)complete(f, f->b, &lease, NULL);
    }
}

/* Every way in which an admitted execution gives its slot back. */
CASE(gate_slot_comes_back)
{
    put_gate(f, "g", (struct weft_limits){.max_running = 1});
    static const char *const way[] = {"completed",     "failed for good",
                                      "retried later", "delayed",
                                      "cancelled",     "lease lost and expired by its deadline"};
    for (size_t i = 0; i < WEFT_LEN(way); i++) {
        const char *gate = weft_arena_printf(f->arena, "g:%zu", i);
        struct weft_id a =
            submit_ok(f, &(struct weft_spec){.kind = "job",
                                             .gate = gate,
                                             .deadline_us = i == 5 ? f->now_us + WEFT_SECOND : 0});
        struct weft_id b = gated(f, gate);
        is_int(state_of(f, &b), WEFT_STATE_HELD, "%s: the second is held", way[i]);
        struct weft_claimed lease = claim_one(f, f->a);
        ok(same_id(&lease.id, &a), "%s: the first runs", way[i]);
        if (i == 0)
            (void)complete(f, f->a, &lease, NULL);
        else if (i == 1)
            (void)fail_as(f, f->a, &lease, &(struct weft_failure){.permanent = true});
        else if (i == 2)
            (void)fail(f, f->a, &lease, "busy");
        else if (i == 3)
            (void)put_back(f, WEFT_PUT_BACK_DELAY, &lease, 60000);
        else if (i == 4)
            (void)steer_id(f, WEFT_STEER_CANCEL, &a);
        if (i == 4) /* its worker may still run: it lets go */
            (void)complete(f, f->a, &lease, NULL);
        if (i == 5) {
            forward_ms(f, 2000);
            (void)run_pass(f, f->b, WEFT_SCANNER_EXECUTION_DEADLINE);
            is_int(state_of(f, &b), WEFT_STATE_HELD, "%s: the slot drains", way[i]);
            forward_ms(f, 3600000);
            (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
        }
        is_int(state_of(f, &b), WEFT_STATE_READY, "%s: the second is admitted", way[i]);
        struct weft_claimed next = claim_one(f, f->b);
        (void)complete(f, f->b, &next, NULL);
    }
}

/* Whatever makes an execution ready goes through its gate. */
CASE(gate_holds_all_ways_to_ready)
{
    put_gate(f, "g", (struct weft_limits){.max_running = 1});
    struct weft_id delayed =
        submit_ok(f, &(struct weft_spec){.kind = "job", .gate = "g:1", .delay_ms = 1000});
    struct weft_id first = gated(f, "g:1");
    struct weft_claimed lease = claim_one(f, f->a);
    ok(same_id(&lease.id, &first), "a delayed execution holds no slot");
    forward_ms(f, 2000);
    (void)run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER);
    is_int(state_of(f, &delayed), WEFT_STATE_HELD,
           "a delayed execution is held when it is due and its gate is full");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    is_int(state_of(f, &delayed), WEFT_STATE_READY, "the older one takes the slot of a release");
    is_int(state_of(f, &first), WEFT_STATE_HELD, "the released execution is held");
    lease = claim_one(f, f->a);
    (void)complete(f, f->a, &lease, NULL);
    lease = claim_one(f, f->a);
    ok(same_id(&lease.id, &first), "the released execution runs next");
    (void)complete(f, f->a, &lease, NULL);
    struct weft_id blocker = gated(f, "g:1");
    (void)steer_id(f, WEFT_STEER_REPLAY, &first);
    is_int(state_of(f, &first), WEFT_STATE_HELD, "a replay waits for its gate");
    (void)steer_id(f, WEFT_STEER_CANCEL, &blocker);
    is_int(state_of(f, &first), WEFT_STATE_READY,
           "the replayed execution is admitted when the gate has room");
}

CASE(gate_settings_hold_at_once)
{
    put_gate(f, "g", (struct weft_limits){.max_running = 1});
    for (int i = 0; i < 6; i++)
        (void)gated(f, "g:1");
    is_int(held(f), 5, "one is admitted");
    put_gate(f, "g:1", (struct weft_limits){.max_running = 3});
    is_int(held(f), 3,
           "a setting of the gate replaces the setting of its class, also for held work");
    struct weft_gate got;
    is_int(weft_engine_gate_remove(f->b, "default", "g:1", f->arena, &got, &f->err), WEFT_OK,
           "the setting of the gate is removed");
    is_int(got.limits.max_running, 3, "the answer has the removed setting");
    is_int(held(f), 3, "admitted work stays admitted");
    is_int(weft_engine_gate_remove(f->b, "default", "g", f->arena, &got, &f->err), WEFT_OK,
           "the class has no settings any more");
    is_int(held(f), 0, "all are admitted");
    is_int(weft_engine_gate_remove(f->b, "default", "g", f->arena, &got, &f->err), WEFT_NOT_FOUND,
           "a second time: there are none");
}

CASE(gate_shows_what_is_in_it)
{
    put_gate(f, "g", (struct weft_limits){.max_running = 2, .rate = {5, 1000, 7}});
    put_gate(f, "h:1", (struct weft_limits){.window = {3, 1000}});
    for (int i = 0; i < 4; i++) {
        (void)gated(f, "g:1");
        (void)gated(f, "g:2");
    }
    (void)claim(f, f->a, 1);
    struct weft_gate class, one;
    struct weft_gates list;
    is_int(weft_engine_gate(f->b, "default", "g", f->arena, &class, &f->err), WEFT_OK, "a class");
    ok(class.running == 1 && class.ready == 3 && class.held == 4,
       "the class is counted over its gates");
    ok(class.limits.max_running == 2 && class.limits.rate.burst == 7, "the class has its limits");
    is_int(weft_engine_gate(f->b, "default", "g:2", f->arena, &one, &f->err), WEFT_OK,
           "a gate without settings of its own");
    ok(one.ready + one.running == 2 && one.held == 2 && one.limits.max_running == 0,
       "has counts and no limits");
    is_int(weft_engine_gate(f->b, "default", "x:1", f->arena, &one, &f->err), WEFT_NOT_FOUND,
           "a name without settings and executions");
    const struct weft_gate_asking first = {.ns = "default", .limit = 1};
    is_int(weft_engine_gates(f->b, &first, f->arena, &list, &f->err), WEFT_OK, "a page");
    ok(list.count == 1 && list.next && strcmp(list.item[0].name, "g") == 0, "of one");
    const struct weft_gate_asking next = {.ns = "default", .limit = 1, .after = list.next};
    is_int(weft_engine_gates(f->b, &next, f->arena, &list, &f->err), WEFT_OK, "the next page");
    ok(list.count == 1 && !list.next && strcmp(list.item[0].name, "h:1") == 0, "is the last");
    const struct weft_gate_asking other = {.ns = "other"};
    is_int(weft_engine_gates(f->b, &other, f->arena, &list, &f->err), WEFT_OK, "another namespace");
    is_int(list.count, 0, "has none");
}

CASE(gate_window_bounds_starts)
{
    put_gate(f, "api", (struct weft_limits){.window = {3, 1000}});
    for (int i = 0; i < 8; i++)
        (void)gated(f, "api:x");
    struct weft_claim_result got = claim(f, f->a, 10);
    is_int(got.count, 3, "three start in the first second");
    for (size_t i = 0; i < got.count; i++)
        (void)complete(f, f->a, &got.item[i], NULL);
    is_int(claim(f, f->b, 10).count, 0, "their ends make no room");
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_UNBLOCK);
    ok(report.next_due_us > f->now_us + 900 * WEFT_MS &&
           report.next_due_us < f->now_us + 1100 * WEFT_MS,
       "the scanner sleeps until the window opens");
    forward_ms(f, 900);
    is_int(run_pass(f, f->b, WEFT_SCANNER_UNBLOCK).handled, 0,
           "the scanner admits none before the window opens");
    forward_ms(f, 150);
    is_int(run_pass(f, f->b, WEFT_SCANNER_UNBLOCK).handled, 3,
           "the scanner admits three when the window opens");
    is_int(claim(f, f->b, 10).count, 3, "the three are claimed");
    struct weft_gate gate;
    is_int(weft_engine_gate(f->b, "default", "api:x", f->arena, &gate, &f->err), WEFT_OK, "shown");
    ok(gate.held == 2 && gate.next_us > f->now_us, "the gate says when the next are admitted");
}

CASE(gate_window_counts_retries_as_starts)
{
    put_gate(f, "api", (struct weft_limits){.window = {2, 1000}});
    (void)gated(f, "api:x");
    struct weft_claimed lease = claim_one(f, f->a);
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    lease = claim_one(f, f->a);
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    is_int(claim(f, f->a, 1).count, 0, "a third start within the second is not admitted");
    forward_ms(f, 1100);
    (void)run_pass(f, f->b, WEFT_SCANNER_UNBLOCK);
    is_int(claim(f, f->a, 1).count, 1, "a third start after the second is admitted");
}

CASE(gate_rate_gives_tokens_back)
{
    put_gate(f, "api", (struct weft_limits){.rate = {10, 1000, 2}});
    for (int i = 0; i < 6; i++)
        (void)gated(f, "api:x");
    is_int(claim(f, f->a, 10).count, 2, "the burst");
    is_int(run_pass(f, f->b, WEFT_SCANNER_UNBLOCK).handled, 0, "no token is there");
    forward_ms(f, 100);
    is_int(run_pass(f, f->b, WEFT_SCANNER_UNBLOCK).handled, 1, "one after a tenth of a second");
    forward_ms(f, 1000);
    is_int(claim(f, f->a, 10).count, 1, "the admitted execution is claimed");
    is_int(run_pass(f, f->b, WEFT_SCANNER_UNBLOCK).handled, 2, "no more than the burst gathers");
}

static void lose(void *context, const char *const *gate, size_t count)
{
    (void)gate;
    *(size_t *)context += count;
}

CASE(gate_scanner_makes_up_for_lost_errands)
{
    size_t lost = 0;
    put_gate(f, "g", (struct weft_limits){.max_running = 1});
    weft_engine_on_gates(f->a, lose, &lost); /* its process dies before each admission */
    for (int i = 0; i < 3; i++) {
        (void)gated(f, "g:1");
        (void)gated(f, weft_arena_printf(f->arena, "free:%d", i));
    }
    ok(lost > 0 && held(f) == 6, "nothing was admitted");
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_UNBLOCK);
    is_int(report.handled, 4, "the scanner admits work that has room");
    ok(report.next_due_us <= f->now_us + 200 * WEFT_MS,
       "and looks again soon: where some are lost, more may be");
    struct weft_claim_result got = claim(f, f->a, 10);
    is_int(got.count, 4, "the admitted work is claimed");
    for (size_t i = 0; i < got.count; i++)
        (void)complete(f, f->a, &got.item[i], NULL);
    is_int(run_pass(f, f->b, WEFT_SCANNER_UNBLOCK).handled, 1,
           "the scanner admits the next one of the full gate");
    is_int(run_pass(f, f->b, WEFT_SCANNER_UNBLOCK).next_due_us, WEFT_NEVER,
           "a pass that finds nothing lost is followed by none soon");
    weft_engine_on_gates(f->a, NULL, NULL);
}

CASE(gate_rows_go_when_unused)
{
    put_gate(f, "g", (struct weft_limits){.max_running = 1});
    (void)gated(f, "g:1");
    struct weft_claimed lease = claim_one(f, f->a);
    (void)run_pass(f, f->b, WEFT_SCANNER_UNBLOCK);
    (void)complete(f, f->a, &lease, NULL);
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_UNBLOCK);
    uint64_t removed = 0;
    for (size_t i = 0; i < report.counter_count; i++)
        if (strcmp(report.counter[i].name, "removed") == 0)
            removed = report.counter[i].value;
    is_int(removed, 1, "the row of a gate without executions is removed");
    (void)gated(f, "g:1");
    (void)gated(f, "g:1");
    is_int(held(f), 1, "a later execution makes the row of the gate again");
}

CASE(gate_refused)
{
    static const struct {
        const char *name, *gate;
    } row[] = {{"empty", ""}, {"with a space", "a b"}};
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_submitted answer =
            submit(f, f->a, &(struct weft_spec){.kind = "job", .gate = row[i].gate});
        expect_err(&answer.err, WEFT_INVALID_VALUE, "gate", row[i].name);
    }
    struct weft_err err = {0};
    const struct weft_gate bad = {.name = "g", .limits = {.window = {1, 0}}};
    is_int(weft_engine_gate_put(f->a, "default", &bad, &err), WEFT_INVALID_VALUE,
           "a window without a span is refused");
}
