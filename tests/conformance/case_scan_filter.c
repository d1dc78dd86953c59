/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Passes of a replica that is limited to a namespace or to some partitions: they change what is
 * theirs and nothing else, and are not called back for what is not.
 */

#include "conformance.h"

#include "base/id.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

static const enum weft_scanner timed[] = {WEFT_SCANNER_LEASE_EXPIRY, WEFT_SCANNER_ATTEMPT_TIMEOUT,
                                          WEFT_SCANNER_DELAYED_PROMOTER,
                                          WEFT_SCANNER_EXECUTION_DEADLINE};

/* So many executions of a namespace that are due for the scanner in `ms`. */
static struct weft_id *make_due(struct fixture *f, enum weft_scanner scanner, const char *ns,
                                int64_t ms, size_t count)
{
    const struct weft_policy leased = {.lease_ms = ms};
    const struct weft_policy limited = {
        .attempt_timeout_ms = ms, .lease_ms = 600000, .max_attempts = 1};
    const char *lane = weft_scanner_name(scanner);
    struct weft_spec spec = {.ns = ns, .kind = "job", .lane = lane};
    bool claims = false;
    if (scanner == WEFT_SCANNER_DELAYED_PROMOTER)
        spec.delay_ms = ms;
    else if (scanner == WEFT_SCANNER_EXECUTION_DEADLINE)
        spec.deadline_us = f->now_us + ms * WEFT_MS;
    else
        claims = true;
    spec.policy = scanner == WEFT_SCANNER_LEASE_EXPIRY ? &leased : &limited;
    struct weft_id *id = submit_copies(f, &spec, count);
    if (claims)
        is_int(claim_with(f, f->a,
                          &(struct weft_claim){.ns = ns,
                                               .worker = "worker-a",
                                               .lanes = &lane,
                                               .lane_count = 1,
                                               .max = (uint32_t)count})
                   .count,
               count, "%s: %zu of %s are claimed", lane, count, ns);
    return id;
}

CASE(scan_of_one_namespace)
{
    const struct weft_pass_config red = {.ns = "red"}, blue = {.ns = "blue"}, none = {.ns = "void"};
    for (size_t i = 0; i < WEFT_LEN(timed); i++) {
        const char *name = weft_scanner_name(timed[i]);
        weft_usec begin_us = f->now_us;
        (void)make_due(f, timed[i], "blue", 1000, 3);
        (void)make_due(f, timed[i], "red", 2000, 2);
        struct weft_pass_report report = pass_with(f, timed[i], &red);
        ok(report.handled == 0 && report.next_due_us == begin_us + 2000 * WEFT_MS,
           "%s: is due again for its own namespace", name);
        is_int(pass_with(f, timed[i], NULL).next_due_us, begin_us + 1000 * WEFT_MS,
               "%s: without a limit for the first of all", name);
        forward_ms(f, 2000);
        report = pass_with(f, timed[i], &none);
        ok(report.handled == 0 && !report.more && report.next_due_us == WEFT_NEVER,
           "%s: a namespace that is not there has nothing to do", name);
        is_int(report.counter_count, 4, "%s: a namespace that is not there has all counters", name);
        report = pass_with(f, timed[i], &red);
        is_int(report.handled, 2, "%s: a pass of a namespace handles its executions", name);
        is_int(report.next_due_us, WEFT_NEVER, "%s: is not due again for other namespaces", name);
        is_int(report.counter[2].value + report.counter[3].value, 0, "%s: the pass has missed none",
               name);
        is_int(pass_with(f, timed[i], &red).handled, 0, "%s: a second pass finds none", name);
        report = pass_with(f, timed[i], &(struct weft_pass_config){.ns = "blue", .batch = 2});
        ok(report.handled == 2 && report.more, "%s: another does the rest", name);
        report = pass_with(f, timed[i], &blue);
        ok(report.handled == 1 && !report.more, "%s: to its end", name);
    }
}

/* How many of the ids are in the partitions. */
static size_t count_in(const struct weft_id *id, size_t count, int first, int last)
{
    size_t inside = 0;
    for (size_t i = 0; i < count; i++)
        inside += weft_id_partition(&id[i]) >= first && weft_id_partition(&id[i]) <= last;
    return inside;
}

CASE(scan_of_some_partitions)
{
    enum { ROWS = 64 };
    for (size_t i = 0; i < WEFT_LEN(timed); i++) {
        const char *name = weft_scanner_name(timed[i]);
        struct weft_id *id = make_due(f, timed[i], "default", 1000, ROWS);
        uint8_t one = (uint8_t)(weft_id_partition(&id[0]) ? weft_id_partition(&id[0]) : 1);
        const struct weft_pass_config part[] = {{.partition_first = one, .partition_last = one},
                                                {.partition_first = 0, .partition_last = 99},
                                                {.partition_first = 100, .partition_last = 255}};
        size_t mine = count_in(id, ROWS, one, one);
        for (size_t k = 0; k < WEFT_LEN(part); k++) {
            size_t inside = count_in(id, ROWS, part[k].partition_first, part[k].partition_last);
            is_int(pass_with(f, timed[i], &part[k]).next_due_us,
                   inside ? f->now_us + 1000 * WEFT_MS : WEFT_NEVER, "%s: when, part %zu", name, k);
        }
        forward_ms(f, 1000);
        size_t left = ROWS;
        for (size_t k = 0; k < WEFT_LEN(part); k++) {
            int first = part[k].partition_first, last = part[k].partition_last;
            size_t want = count_in(id, ROWS, first, last);
            want -= k > 0 && first <= one && one <= last ? mine : 0;
            struct weft_pass_report report = pass_with(f, timed[i], &part[k]);
            is_int(report.handled, want, "%s: part %zu", name, k);
            is_int(report.next_due_us, WEFT_NEVER, "%s: part %zu is done", name, k);
            left -= want;
        }
        is_int(left, 0, "%s: the parts are the whole", name);
        is_int(pass_with(f, timed[i], NULL).handled, 0, "%s: nothing is left", name);
    }
}

CASE(scan_of_no_partitions)
{
    struct weft_pass_report report;
    struct weft_err err = {0};
    const struct weft_pass_config wrong = {.partition_first = 9, .partition_last = 8};
    for (size_t i = 0; i < WEFT_LEN(timed); i++) {
        is_int(weft_engine_pass(f->a, timed[i], &wrong, &report, &err), WEFT_INVALID_VALUE,
               "a range that ends before it begins");
        expect_err(&err, WEFT_INVALID_VALUE, "partitions", weft_scanner_name(timed[i]));
    }
}

/* Behind very many of others its own are not looked for at once, but in time. */
CASE(scan_behind_very_many_others)
{
    enum { MANY = 1000 };
    static const enum weft_scanner scanner[] = {WEFT_SCANNER_DELAYED_PROMOTER,
                                                WEFT_SCANNER_EXECUTION_DEADLINE};
    const struct weft_pass_config red = {.ns = "red"}, blue = {.ns = "blue"};
    for (size_t i = 0; i < WEFT_LEN(scanner); i++) {
        const char *name = weft_scanner_name(scanner[i]);
        weft_usec begin_us = f->now_us;
        (void)make_due(f, scanner[i], "blue", 1000, MANY - 1);
        (void)make_due(f, scanner[i], "red", 9000, 1);
        is_int(pass_with(f, scanner[i], &red).next_due_us, begin_us + 9000 * WEFT_MS,
               "%s: behind many, but in sight", name);
        (void)make_due(f, scanner[i], "blue", 2000, 1);
        is_int(pass_with(f, scanner[i], &red).next_due_us, begin_us + 2000 * WEFT_MS,
               "%s: out of sight, to be looked for later", name);
        forward_ms(f, 2000);
        is_int(pass_with(f, scanner[i], &red).next_due_us, begin_us + 9000 * WEFT_MS,
               "%s: handled although other namespaces are not", name);
        while (pass_with(f, scanner[i], &blue).more)
            continue;
        forward_ms(f, 7000);
        is_int(pass_with(f, scanner[i], &red).handled, 1, "%s: done in its time", name);
    }
}

/* ---- The inbox ------------------------------------------------------------------------------- */

CASE(scan_intake_of_one_namespace)
{
    if (strcmp(f->store, "pg") != 0) {
        tap_skip("SQLite has no weft_submit()");
        return;
    }
    run_sql(f,
            "SELECT weft.weft_submit('job', namespace => 'red') FROM generate_series(1, 3);"
            "SELECT weft.weft_submit('job', namespace => 'blue') FROM generate_series(1, 2);"
            "SELECT weft.weft_submit('not a kind', namespace => 'blue')");
    struct weft_pass_report report =
        pass_with(f, WEFT_SCANNER_INTAKE, &(struct weft_pass_config){.ns = "void"});
    ok(report.handled == 0 && !report.more, "a pass of an unknown namespace takes nothing");
    report = pass_with(f, WEFT_SCANNER_INTAKE, &(struct weft_pass_config){.ns = "red"});
    ok(report.handled == 3 && report.failed == 0, "a pass of a new namespace takes its three rows");
    is_str(report.counter[0].name, "processed", "the first counter is processed");
    is_int(report.counter[0].value, 3, "three rows were processed");
    is_int(count_rows(f, &(struct weft_filter){.ns = "red"}), 3, "the three executions exist");
    report = pass_with(f, WEFT_SCANNER_INTAKE, &(struct weft_pass_config){.ns = "red"});
    ok(report.handled == 0 && !report.more, "a second pass of the namespace finds nothing");
    report = pass_with(f, WEFT_SCANNER_INTAKE, &(struct weft_pass_config){.ns = "blue"});
    is_int(report.handled, 3, "another does the rest");
    is_str(report.counter[1].name, "refused", "a pass of the other namespace takes its rows");
    is_int(report.counter[1].value, 1, "the second counter is refused");
}

CASE(scan_intake_of_some_partitions)
{
    if (strcmp(f->store, "pg") != 0) {
        tap_skip("SQLite has no weft_submit()");
        return;
    }
    run_sql(f, "SELECT weft.weft_submit('job') FROM generate_series(1, 200)");
    const struct weft_pass_config low = {.partition_last = 127},
                                  high = {.partition_first = 128, .partition_last = 255};
    size_t first = pass_with(f, WEFT_SCANNER_INTAKE, &low).handled;
    ok(first > 0 && first < 200, "%zu of 200", first);
    struct weft_read_page page = list_page(f, &(struct weft_listing){.limit = 200});
    size_t inside = 0;
    for (size_t i = 0; i < page.count; i++)
        inside += weft_id_partition(&page.item[i].id) < 128;
    ok(page.count == first && inside == first, "all of them of these partitions");
    is_int(pass_with(f, WEFT_SCANNER_INTAKE, &low).handled, 0,
           "a second pass of these partitions takes nothing");
    is_int(pass_with(f, WEFT_SCANNER_INTAKE, &high).handled, 200 - first,
           "a pass of the other partitions takes the rest");
}
