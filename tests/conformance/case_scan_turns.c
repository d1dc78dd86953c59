/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Passes when more is due than fits into a batch: namespaces take turns, whatever the order of
 * time says, and a namespace with many lanes gets no more than one with a single lane.
 */

#include "conformance.h"

#include "base/arena.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

static const struct scan_kind {
    enum weft_scanner scanner;
    enum weft_state after; /* the state of a row that the pass has done */
} kinds[] = {
    {WEFT_SCANNER_LEASE_EXPIRY, WEFT_STATE_READY},
    {WEFT_SCANNER_ATTEMPT_TIMEOUT, WEFT_STATE_FAILED},
    {WEFT_SCANNER_DELAYED_PROMOTER, WEFT_STATE_READY},
    {WEFT_SCANNER_EXECUTION_DEADLINE, WEFT_STATE_EXPIRED},
};

enum { BATCH = 40, PART = BATCH / 4 }; /* a pass over several namespaces takes a part */

/* Which rows, and in how many milliseconds they are due. */
struct rows {
    const char *ns, *lane;
    int64_t ms;
    size_t count;
};

static void make_due(struct fixture *f, enum weft_scanner scanner, const struct rows *rows)
{
    const struct weft_policy leased = {.lease_ms = rows->ms, .max_lost = 100};
    const struct weft_policy limited = {
        .attempt_timeout_ms = rows->ms, .lease_ms = 600000, .max_attempts = 1};
    struct weft_spec spec = {.ns = rows->ns, .kind = "job", .lane = rows->lane};
    bool claims = false;
    if (scanner == WEFT_SCANNER_DELAYED_PROMOTER)
        spec.delay_ms = rows->ms;
    else if (scanner == WEFT_SCANNER_EXECUTION_DEADLINE)
        spec.deadline_us = f->now_us + rows->ms * WEFT_MS;
    else
        claims = true;
    spec.policy = scanner == WEFT_SCANNER_LEASE_EXPIRY ? &leased : &limited;
    (void)submit_copies(f, &spec, rows->count);
    if (claims)
        is_int(claim_with(f, f->a,
                          &(struct weft_claim){.ns = rows->ns,
                                               .worker = "worker-a",
                                               .lanes = &rows->lane,
                                               .lane_count = 1,
                                               .max = (uint32_t)rows->count})
                   .count,
               rows->count, "%zu of %s are claimed", rows->count, rows->ns);
}

static struct weft_pass_report pass_of(struct fixture *f, enum weft_scanner scanner, uint32_t batch)
{
    struct weft_pass_report report =
        pass_with(f, scanner, &(struct weft_pass_config){.batch = batch});
    ok(report.handled <= batch, "%s: a pass takes a batch at most", weft_scanner_name(scanner));
    return report;
}

static struct weft_pass_report pass(struct fixture *f, enum weft_scanner scanner)
{
    return pass_of(f, scanner, BATCH);
}

static size_t done_of(struct fixture *f, const struct scan_kind *kind, const char *ns)
{
    return count_rows(f, &(struct weft_filter){.ns = ns, .state = kind->after});
}

/* Runs passes until one has nothing more to do; returns how many rows they did. */
static size_t drain(struct fixture *f, enum weft_scanner scanner, size_t passes)
{
    struct weft_pass_report report = {.more = true};
    size_t handled = 0;
    for (size_t i = 0; i < passes && report.more; i++) {
        report = pass(f, scanner);
        handled += report.handled;
    }
    ok(!report.more, "%s: comes to an end", weft_scanner_name(scanner));
    is_int(report.next_due_us, WEFT_NEVER, "%s: nothing is due later", weft_scanner_name(scanner));
    return handled;
}

/* Ten batches of one namespace are due, then a row of another: the second pass does that row. */
static void check_one_row(struct fixture *f, const struct scan_kind *kind, size_t round)
{
    const char *name = weft_scanner_name(kind->scanner);
    const char *many = weft_arena_printf(f->arena, "many-%s-%zu", name, round);
    const char *few = weft_arena_printf(f->arena, "few-%s-%zu", name, round);
    make_due(f, kind->scanner, &(struct rows){many, "lane", 1000, (size_t)10 * BATCH});
    make_due(f, kind->scanner, &(struct rows){few, "lane", 2000, 1});
    forward_ms(f, 2000);
    struct weft_pass_report report = pass(f, kind->scanner);
    ok(report.handled == BATCH && report.more, "%s: the first batch is full", name);
    is_int(done_of(f, kind, many), BATCH, "%s: the first batch goes by time", name);
    report = pass(f, kind->scanner);
    is_int(done_of(f, kind, few), 1, "%s: the second pass has the row of the other", name);
    ok(report.handled > 1 && report.more, "%s: the second pass has rows of the first as well",
       name);
    is_int(drain(f, kind->scanner, 100) + report.handled, 9 * BATCH + 1, "%s: all are done", name);
    is_int(done_of(f, kind, many), 10 * BATCH, "%s: each row is handled once", name);
}

CASE(scan_turns_of_namespaces)
{
    for (size_t i = 0; i < WEFT_LEN(kinds); i++)
        for (size_t round = 0; round < 2; round++) /* the first round leaves nothing behind */
            check_one_row(f, &kinds[i], round);
}

/* A namespace alone: four of five passes go by time. A row of another is done by the next look. */
CASE(scan_turns_of_one_namespace)
{
    enum { PLAIN = 4, BATCHES = 10 };
    for (size_t i = 0; i < WEFT_LEN(kinds); i++) {
        const char *name = weft_scanner_name(kinds[i].scanner);
        const char *alone = weft_arena_printf(f->arena, "alone-%s", name);
        const char *later = weft_arena_printf(f->arena, "later-%s", name);
        make_due(f, kinds[i].scanner, &(struct rows){alone, "lane", 1000, (size_t)BATCHES * BATCH});
        make_due(f, kinds[i].scanner, &(struct rows){later, "lane", 2000, 1});
        forward_ms(f, 1000);
        for (size_t k = 1; k <= 2; k++)
            is_int(pass(f, kinds[i].scanner).handled, BATCH, "%s: pass %zu is whole", name, k);
        forward_ms(f, 1000);
        for (size_t k = 1; k <= PLAIN; k++) {
            is_int(pass(f, kinds[i].scanner).handled, BATCH, "%s: by time, pass %zu", name, k);
            is_int(done_of(f, &kinds[i], later), 0, "%s: the row that came waits", name);
        }
        (void)pass(f, kinds[i].scanner);
        is_int(done_of(f, &kinds[i], later), 1, "%s: the next pass does the row", name);
        (void)drain(f, kinds[i].scanner, 100);
        is_int(done_of(f, &kinds[i], alone), BATCHES * BATCH, "%s: all are done, each once", name);
    }
}

/* Half of each pass goes to the namespace with one lane. */
CASE(scan_turns_of_many_lanes)
{
    enum { LANES = 30, EACH = 6, OTHERS = BATCH };
    for (size_t i = 0; i < WEFT_LEN(kinds); i++) {
        const char *name = weft_scanner_name(kinds[i].scanner);
        const char *many = weft_arena_printf(f->arena, "lanes-%s", name);
        const char *few = weft_arena_printf(f->arena, "lane-%s", name);
        for (size_t k = 0; k < LANES; k++)
            make_due(f, kinds[i].scanner,
                     &(struct rows){many, weft_arena_printf(f->arena, "lane-%zu", k), 1000, EACH});
        make_due(f, kinds[i].scanner, &(struct rows){few, "lane", 2000, OTHERS});
        forward_ms(f, 2000);
        ok(pass(f, kinds[i].scanner).more, "%s: there is more than a batch", name);
        for (size_t turn = 1; turn * PART / 2 <= OTHERS; turn++) {
            (void)pass(f, kinds[i].scanner);
            is_int(done_of(f, &kinds[i], few), turn * PART / 2, "%s: half of pass %zu", name, turn);
        }
        (void)drain(f, kinds[i].scanner, 100);
        is_int(done_of(f, &kinds[i], many), LANES * EACH, "%s: every lane has its turn", name);
    }
}

/* A look does not go over all lanes: passes go on behind it, and come to an end. */
CASE(scan_turns_of_very_many_lanes)
{
    enum { FEW = 10, LANES = 5 * FEW, LATER_MS = 100000 };
    for (size_t i = 0; i < WEFT_LEN(kinds); i++) {
        const char *name = weft_scanner_name(kinds[i].scanner);
        const char *others = weft_arena_printf(f->arena, "others-%s", name);
        const char *few = weft_arena_printf(f->arena, "last-%s", name);
        weft_usec begin_us = f->now_us;
        make_due(f, kinds[i].scanner, &(struct rows){others, "first", 1000, (size_t)3 * FEW});
        for (size_t k = 0; k < LANES; k++)
            make_due(
                f, kinds[i].scanner,
                &(struct rows){others, weft_arena_printf(f->arena, "lane-%zu", k), LATER_MS, 1});
        make_due(f, kinds[i].scanner, &(struct rows){few, "lane", 2000, 1});
        forward_ms(f, 2000);
        struct weft_pass_report report = {.more = true};
        size_t handled = 0, passes = 0;
        for (; passes < 100 && report.more; passes++) {
            report = pass_of(f, kinds[i].scanner, FEW);
            handled += report.handled;
        }
        ok(!report.more, "%s: ends after %zu passes", name, passes);
        is_int(handled, 3 * FEW + 1, "%s: all that is due is done", name);
        is_int(done_of(f, &kinds[i], few), 1, "%s: the last lane too", name);
        is_int(report.next_due_us, begin_us + LATER_MS * WEFT_MS, "%s: the others are not", name);
        forward_ms(f, LATER_MS);
        is_int(drain(f, kinds[i].scanner, 100), LANES, "%s: until their time", name);
    }
}

/* A pass of one namespace takes no turns and leaves the turns of the others alone.
 */
CASE(scan_turns_beside_a_filter)
{
    const enum weft_scanner scanner = WEFT_SCANNER_DELAYED_PROMOTER;
    const struct weft_pass_config red = {.ns = "red", .batch = BATCH};
    const struct scan_kind *kind = &kinds[2];
    make_due(f, scanner, &(struct rows){"blue", "lane", 1000, (size_t)3 * BATCH});
    make_due(f, scanner, &(struct rows){"red", "lane", 2000, (size_t)2 * BATCH});
    forward_ms(f, 2000);
    ok(pass(f, scanner).more, "a full batch");
    struct weft_pass_report report = {0};
    is_int(weft_engine_pass(f->b, scanner, &red, &report, &f->err), WEFT_OK,
           "a pass of one namespace");
    ok(report.handled == BATCH && report.more, "a pass of one namespace takes a whole batch");
    (void)pass(f, scanner);
    is_int(done_of(f, kind, "red"), BATCH + PART / 2, "the next pass of all takes turns");
    is_int(drain(f, scanner, 100), 3 * BATCH - PART, "the others follow");
}
