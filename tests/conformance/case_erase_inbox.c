/* SPDX-License-Identifier: Apache-2.0 */

/* Erasure of submissions by SQL: that wait, that were taken in meanwhile, that were refused. */

#include "erasing.h"

#include "base/arena.h"
#include "base/id.h"
#include "weft/weft.h"

static const char no_inbox[] = "SQLite has no inbox";

/* A row as an application commits it, so long after now; the id has that time. */
static struct weft_id put_row(struct fixture *f, int64_t after_ms, const char *kind,
                              const char *tenant, const char *tags)
{
    struct weft_id id;
    char text[WEFT_ID_TEXT];
    weft_id_new(&id, f->now_us + after_ms * WEFT_MS, -1);
    weft_id_print(&id, text);
    run_sql(f, weft_arena_printf(
                   f->arena,
                   "INSERT INTO weft.inbox (id, namespace, lane, kind, payload, tenant, tags) "
                   "VALUES ('%s', 'default', 'default', '%s', '\"%s\"', '%s', '%s')",
                   text, kind, tenant, tenant, tags));
    return id;
}

static void take_in(struct fixture *f)
{
    while (run_pass(f, f->b, WEFT_SCANNER_INTAKE).more)
        ;
}

/* Fails the case unless there are so many rows. */
static void expect_rows(struct fixture *f, const char *table, int count)
{
    run_sql(f, weft_arena_printf(f->arena,
                                 "DO $$ BEGIN IF (SELECT count(*) FROM weft.%s) <> %d THEN "
                                 "RAISE EXCEPTION 'rows of %s'; END IF; END $$",
                                 table, count, table));
}

CASE(erase_takes_submissions_by_sql_that_wait)
{
    if (!only_on_pg(f, no_inbox))
        return;
    (void)put_row(f, -5, "mine", CANARY, "{}");
    struct weft_id other = put_row(f, -5, "other", "other", "{\"who\":\"" CANARY "\"}");
    struct weft_id later = put_row(f, 5, "later", CANARY, "{}");
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tenant = CANARY, .reason = "asked"});
    (void)run_pass(f, f->a, WEFT_SCANNER_ERASURE);
    expect_rows(f, "inbox", 2);
    forward_ms(f, 10);
    take_in(f);
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(erase_counted(&receipt, "inbox"), 1, "one row is counted");
    is_int(state_of(f, &other), WEFT_STATE_READY, "the row of another was taken in");
    is_int(state_of(f, &later), WEFT_STATE_READY, "so was one of after the request");
    is_int((int64_t)erase_verify(f, &order.id).remains, 0, "nothing remains");
}

CASE(erase_by_tag_takes_submissions_by_sql_that_wait)
{
    if (!only_on_pg(f, no_inbox))
        return;
    (void)put_row(f, -5, "mine", "a", "{\"b\":\"c\",\"who\":\"" CANARY "\"}");
    struct weft_id other = put_row(f, -5, "other", CANARY, "{\"who\":\"x\"}");
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tag = "who:" CANARY, .reason = "asked"});
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(erase_counted(&receipt, "inbox"), 1, "the row is counted");
    take_in(f);
    is_int(count_rows(f, &(struct weft_filter){.kind = "mine"}), 0, "and never taken in");
    is_int(state_of(f, &other), WEFT_STATE_READY, "the row of another is");
}

/* Created by intake after the request, but submitted before it. */
CASE(erase_takes_what_intake_took_in_after_the_request)
{
    if (!only_on_pg(f, no_inbox))
        return;
    struct weft_id mine = put_row(f, -5, "mine", CANARY, "{}");
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tenant = CANARY, .reason = "asked"});
    forward_ms(f, 100);
    take_in(f);
    is_int(state_of(f, &mine), WEFT_STATE_READY, "it was taken in before the first step");
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(state_of(f, &mine), WEFT_STATE_NONE, "it is gone all the same");
    is_int(erase_counted(&receipt, "name"), 1, "and with it the name");
}

/* A refused row becomes an execution that failed, with its payload. */
CASE(erase_takes_refused_submissions_by_sql)
{
    if (!only_on_pg(f, no_inbox))
        return;
    static const char who[] = "{\"who\":\"" CANARY "\"}";
    struct weft_id by_tenant = put_row(f, -5, "no kind", CANARY, "{}");
    struct weft_id by_tag = put_row(f, -5, "no kind", "other", who);
    struct weft_id other = put_row(f, -5, "no kind", "other", "{}");
    take_in(f);
    is_int(state_of(f, &by_tenant), WEFT_STATE_FAILED, "it was refused");
    is_str(describe(f, &by_tenant).tenant, CANARY, "and is its tenant's");
    is_int((int64_t)describe(f, &by_tag).tag_count, 1, "another has its tag");
    expect_rows(f, "inbox_refused", 3);
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tenant = CANARY, .reason = "asked"});
    struct weft_erasure receipt = erase_to_the_end(f, &order.id);
    is_int(state_of(f, &by_tenant), WEFT_STATE_NONE, "by its tenant it is erased");
    is_int(erase_counted(&receipt, "inbox_refused"), 1, "with the note about it");
    order = erase_ask(f, &(struct weft_erasure_spec){.tag = "who:" CANARY, .reason = "asked"});
    receipt = erase_to_the_end(f, &order.id);
    is_int(state_of(f, &by_tag), WEFT_STATE_NONE, "by its tag too");
    is_int(erase_counted(&receipt, "inbox_refused"), 1, "with its note");
    is_int(state_of(f, &other), WEFT_STATE_FAILED, "that of another is there");
    expect_rows(f, "inbox_refused", 1);
}
