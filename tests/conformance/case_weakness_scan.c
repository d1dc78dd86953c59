/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What our ancestor's scanners were known for, beside the fifteen of case_weakness.c.
 *
 * P11: a transaction per row with four to seven round trips, a query per candidate for the filter,
 * hundreds of empty queries a second. Here the number of statements of a pass does not depend on
 * the number of rows, nor on the filter; tests/replicas/idle.py counts what an idle server asks.
 *
 * A8: a version of the schema that no code checked (unit/migrate), an interval of zero that took
 * the supervisor down (unit/scan_rules, unit/board: it means off), reports that were thrown away
 * (unit/board: they are counted, shown and exported), a shutdown that missed what was just being
 * started (unit/supervisor: the drain), scanners that never came back after a failure (below, and
 * unit/supervisor).
 */

#include "conformance.h"

#include "base/arena.h"
#include "engine/engine.h"
#include "engine/scan/pass.h"
#include "store/fault/fault.h"
#include "weft/weft.h"

enum { FEW = 5, MANY = 200 }; /* both less than any store takes in one transaction */

/* The last one leaves work for the first. */
static const enum weft_scanner timers[] = {
    WEFT_SCANNER_DELAYED_PROMOTER,
    WEFT_SCANNER_LEASE_EXPIRY,
    WEFT_SCANNER_EXECUTION_DEADLINE,
    WEFT_SCANNER_ATTEMPT_TIMEOUT,
};

/* So many rows that the scanner has to do with, all due a minute from now at the latest. */
static void make_due(struct fixture *f, enum weft_scanner scanner, size_t count)
{
    static const struct weft_policy hurried = {.attempt_timeout_ms = 1000};
    const char *kind = weft_arena_printf(f->arena, "kind-%lld", (long long)f->now_us);
    struct weft_spec spec = {.kind = kind};
    if (scanner == WEFT_SCANNER_DELAYED_PROMOTER)
        spec.delay_ms = 1000;
    if (scanner == WEFT_SCANNER_EXECUTION_DEADLINE)
        spec.deadline_us = f->now_us + WEFT_SECOND;
    if (scanner == WEFT_SCANNER_ATTEMPT_TIMEOUT)
        spec.policy = &hurried;
    (void)submit_copies(f, &spec, count);
    const struct weft_claim all = {.worker = "worker-a",
                                   .kinds = &kind,
                                   .kind_count = 1,
                                   .max = (uint32_t)count,
                                   .lease_ms =
                                       scanner == WEFT_SCANNER_LEASE_EXPIRY ? 1000 : 3600000};
    if (scanner == WEFT_SCANNER_LEASE_EXPIRY || scanner == WEFT_SCANNER_ATTEMPT_TIMEOUT)
        is_int(claim_with(f, f->a, &all).count, count, "%zu are claimed", count);
    forward_ms(f, 60000);
}

/* The calls of the driver that one pass over `count` due rows makes. */
static uint64_t count_calls(struct fixture *f, enum weft_scanner scanner, size_t count,
                            const struct weft_pass_config *config)
{
    struct weft_fault fault = {0};
    struct weft_pass_report report = {0};
    make_due(f, scanner, count);
    struct weft_engine *engine = open_faulty(f, &fault);
    /* What is asked once, of names and policies, is not the pass's. */
    struct weft_pass_config first = config ? *config : (struct weft_pass_config){0};
    first.batch = 1;
    first.ns = "default"; /* a full batch of all namespaces would change how the next pass goes */
    (void)!weft_engine_pass(engine, scanner, &first, &report, &f->err);
    uint64_t before = fault.calls;
    is_int(weft_engine_pass(engine, scanner, config, &report, &f->err), WEFT_OK, "%s",
           weft_scanner_name(scanner));
    uint64_t calls = fault.calls - before;
    is_int(report.handled, count - 1, "all of them in one pass");
    weft_engine_close(engine);
    return calls;
}

CASE(weakness_p11_statements_do_not_follow_rows)
{
    for (size_t i = 0; i < WEFT_LEN(timers); i++) {
        uint64_t few = count_calls(f, timers[i], FEW, NULL);
        uint64_t many = count_calls(f, timers[i], MANY, NULL);
        is_int(many, few, "%s: as many calls for %d rows as for %d", weft_scanner_name(timers[i]),
               MANY, FEW);
        ok(many <= 9, "the number of calls is small: %llu", (unsigned long long)many);
    }
}

CASE(weakness_p11_a_filter_costs_nothing)
{
    const struct weft_pass_config mine = {.ns = "default", .partition_last = 255};
    for (size_t i = 0; i < WEFT_LEN(timers); i++) {
        uint64_t all = count_calls(f, timers[i], MANY, NULL);
        uint64_t limited = count_calls(f, timers[i], MANY, &mine);
        ok(limited == all, "%s: no query per candidate (%llu, %llu with a filter)",
           weft_scanner_name(timers[i]), (unsigned long long)all, (unsigned long long)limited);
    }
}

CASE(weakness_a8_a_failure_is_not_the_end)
{
    struct weft_fault fault = {0};
    struct weft_pass_report report = {0};
    make_due(f, WEFT_SCANNER_LEASE_EXPIRY, FEW);
    struct weft_engine *engine = open_faulty(f, &fault);
    fault.kind = WEFT_FAULT_FULL;
    fault.strike_at = 2; /* its first statement */
    ok(weft_engine_pass(engine, WEFT_SCANNER_LEASE_EXPIRY, NULL, &report, &f->err) != WEFT_OK,
       "a pass fails");
    is_int(weft_engine_pass(engine, WEFT_SCANNER_LEASE_EXPIRY, NULL, &report, &f->err), WEFT_OK,
           "the next one does not");
    is_int(report.handled, FEW, "the next pass handles every row");
    weft_engine_close(engine);
}
