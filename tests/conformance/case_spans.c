/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Spans: however the executions of several namespaces lie between each other, each list shows the
 * executions of its namespace, each once, newest first; and its cursors are good for no other list.
 */

#include "conformance.h"

#include "base/arena.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "weft/weft.h"

#include <stdlib.h>

enum { NAMESPACES = 3, CALLS = 40, CALL_MOST = 25, ROWS_MOST = CALLS * CALL_MOST };

static const char *const name[NAMESPACES] = {"left", "right", "third"};

struct expected {
    struct weft_id id[NAMESPACES][ROWS_MOST];
    size_t count[NAMESPACES];
};

static int newest_first(const void *a, const void *b)
{
    return -memcmp(a, b, sizeof(struct weft_id));
}

/* Calls of one and of many, with and without keys, of one namespace and of all, most of them in the
 * same millisecond. */
static void submit_mixed(struct fixture *f, struct expected *ret_expected)
{
    uint32_t random = 12345;
    for (size_t call = 0; call < CALLS; call++) {
        struct weft_spec spec[CALL_MOST] = {0};
        random = random * 1103515245 + 12345;
        size_t count = 1 + (random >> 16) % CALL_MOST;
        for (size_t i = 0; i < count; i++) {
            size_t ns = call % 4 == 3 ? i % NAMESPACES : call % NAMESPACES;
            spec[i] = (struct weft_spec){.ns = name[ns], .kind = "job"};
            if (call % 5 == 0)
                spec[i].key = weft_arena_printf(f->arena, "%zu-%zu", call, i);
        }
        const struct weft_submitted *answer = submit_many(f, call % 2 ? f->a : f->b, spec, count);
        for (size_t i = 0; i < count; i++) {
            size_t ns = call % 4 == 3 ? i % NAMESPACES : call % NAMESPACES;
            ret_expected->id[ns][ret_expected->count[ns]++] = answer[i].id;
        }
        if (call % 7 == 0)
            forward_ms(f, 1);
    }
    for (size_t ns = 0; ns < NAMESPACES; ns++)
        qsort(ret_expected->id[ns], ret_expected->count[ns], sizeof(struct weft_id), newest_first);
}

/* Follows a list to its end and compares. */
static void expect_list(struct fixture *f, const struct weft_listing *listing,
                        const struct weft_id *id, size_t count)
{
    struct weft_listing next = *listing;
    size_t seen = 0, wrong = 0, pages = 0;
    do {
        struct weft_read_page page = list_page(f, &next);
        for (size_t i = 0; i < page.count; i++, seen++)
            wrong += seen >= count || !same_id(&page.item[i].id, &id[seen]);
        next.after = page.next;
    } while (next.after && ++pages < 10000);
    ok(wrong == 0 && seen == count, "%s, pages of %u, state %d: %zu of %zu, %zu out of place",
       listing->filter.ns, listing->limit, (int)listing->filter.state, seen, count, wrong);
}

CASE(spans_keep_namespaces_apart)
{
    static const uint32_t limit[] = {1, 3, 20, 1000};
    struct expected *expected = weft_new(f->arena, struct expected);
    submit_mixed(f, expected);
    for (size_t ns = 0; ns < NAMESPACES; ns++)
        for (size_t i = 0; i < WEFT_LEN(limit); i++) {
            struct weft_listing listing = {.filter = {.ns = name[ns]}, .limit = limit[i]};
            expect_list(f, &listing, expected->id[ns], expected->count[ns]);
            listing.filter.state = WEFT_STATE_READY;
            expect_list(f, &listing, expected->id[ns], expected->count[ns]);
            listing.filter.state = WEFT_STATE_SUCCEEDED;
            expect_list(f, &listing, NULL, 0);
        }
}

/*
 * In SQLite a store with one namespace has no spans (0019-one-namespace); all rows get spans with
 * the second namespace, whichever process adds it, and also where some were there already.
 */
CASE(spans_come_with_the_second_namespace)
{
    enum { BEFORE = 50, AFTER = 10 };
    static const uint32_t limit[] = {1, 7, 1000};
    struct expected *expected = weft_new(f->arena, struct expected);
    for (size_t i = 0; i < BEFORE + AFTER; i++) {
        bool second = i >= BEFORE && i % 2;
        if (i == BEFORE && strcmp(f->store, "sqlite") == 0) {
            run_sql(f, "DELETE FROM span WHERE (SELECT count(*) FROM name WHERE sort = 1) = 1");
            run_sql(f,
                    "INSERT INTO span (namespace, last, first, count)"
                    " SELECT (SELECT id FROM name WHERE sort = 1), max(id), max(id), 1"
                    " FROM execution");
        }
        const struct weft_spec spec = {.ns = name[second], .kind = "job"};
        const struct weft_submitted *answer = submit_many(f, i % 3 ? f->a : f->b, &spec, 1);
        expected->id[second][expected->count[second]++] = answer->id;
        if (i % 4 == 0)
            forward_ms(f, 1);
        for (size_t l = 0; l < WEFT_LEN(limit) && (i % 20 == 0 || i + 1 == BEFORE + AFTER); l++)
            for (size_t ns = 0; ns < 2; ns++) {
                struct weft_listing listing = {.filter = {.ns = name[ns]}, .limit = limit[l]};
                qsort(expected->id[ns], expected->count[ns], sizeof(struct weft_id), newest_first);
                expect_list(f, &listing, expected->id[ns], expected->count[ns]);
            }
    }
}

/* A span stays until the last of its executions has gone. */
CASE(spans_outlive_their_first_rows)
{
    enum { ROWS = 12 };
    const struct weft_policy brief = {.max_attempts = 1, .retention_ms = 60000};
    struct weft_id *id =
        submit_copies(f, &(struct weft_spec){.kind = "job", .policy = &brief}, ROWS);
    for (size_t i = 0; i < ROWS; i++)
        if (i % 3 != 1)
            (void)steer(f, WEFT_STEER_CANCEL, &(struct weft_steer){.id = id[i]});
    forward_ms(f, 120000);
    (void)run_pass(f, f->b, WEFT_SCANNER_RETENTION);
    struct weft_read_page page = list_page(f, &(struct weft_listing){0});
    is_int(page.count, 4, "the living are in the list when most of their call has been removed");
    for (size_t i = 0; i < ROWS; i++)
        (void)steer(f, WEFT_STEER_CANCEL, &(struct weft_steer){.id = id[i]});
    forward_ms(f, 120000);
    (void)run_pass(f, f->b, WEFT_SCANNER_RETENTION);
    page = list_page(f, &(struct weft_listing){0});
    is_int(page.count, 0, "all are removed after the retention");
}

/* ---- While a release without spans writes as well
 * ------------------------------------------------
 */

enum { PHASES = 3, PHASE_ROWS = 30 };

/* Executions of all namespaces, one after the other in ids. */
static void submit_phase(struct fixture *f, struct expected *expected)
{
    struct weft_spec spec[NAMESPACES * PHASE_ROWS];
    for (size_t i = 0; i < WEFT_LEN(spec); i++)
        spec[i] = (struct weft_spec){.ns = name[i % NAMESPACES], .kind = "job"};
    const struct weft_submitted *answer = submit_many(f, f->a, spec, WEFT_LEN(spec));
    for (size_t i = 0; i < WEFT_LEN(spec); i++) {
        size_t ns = i % NAMESPACES;
        expected->id[ns][expected->count[ns]++] = answer[i].id;
    }
}

/*
 * Rows of the middle phase have no spans, as rows of a replica of the release before (0010-lists):
 * lists walk all ids there, and spans before and after it.
 */
CASE(spans_that_are_missing_for_a_while)
{
    static const uint32_t limit[] = {1, 7, 20, 1000};
    bool pg = is_pg(f);
    struct expected *expected = weft_new(f->arena, struct expected);
    submit_phase(f, expected);
    run_sql(f, pg ? "CREATE TABLE weft.kept AS SELECT * FROM weft.span"
                  : "CREATE TABLE kept AS SELECT * FROM span");
    forward_ms(f, 10000);
    submit_phase(f, expected);
    run_sql(f, pg ? "DELETE FROM weft.span" : "DELETE FROM span");
    run_sql(f, pg ? "INSERT INTO weft.span SELECT * FROM weft.kept"
                  : "INSERT INTO span SELECT * FROM kept");
    run_sql(f, pg ? "DROP TABLE weft.kept" : "DROP TABLE kept");
    run_sql(f, weft_arena_printf(f->arena,
                                 "INSERT INTO %sunspanned (since, until) VALUES (%lld, %lld)",
                                 pg ? "weft." : "", (long long)(START_US + 5 * WEFT_SECOND),
                                 (long long)(START_US + 15 * WEFT_SECOND)));
    forward_ms(f, 10000);
    submit_phase(f, expected);
    for (size_t ns = 0; ns < NAMESPACES; ns++) {
        qsort(expected->id[ns], expected->count[ns], sizeof(struct weft_id), newest_first);
        is_int(expected->count[ns], PHASES * PHASE_ROWS, "rows of %s", name[ns]);
        for (size_t i = 0; i < WEFT_LEN(limit); i++) {
            struct weft_listing listing = {.filter = {.ns = name[ns]}, .limit = limit[i]};
            expect_list(f, &listing, expected->id[ns], expected->count[ns]);
            listing.filter.created_since_us = START_US + 5 * WEFT_SECOND;
            expect_list(f, &listing, expected->id[ns], (size_t)(PHASES - 1) * PHASE_ROWS);
            listing.filter.created_since_us = 0;
            listing.filter.state = WEFT_STATE_SUCCEEDED;
            expect_list(f, &listing, NULL, 0);
        }
    }
}

/* ---- Cursors --------------------------------------------------------------------------------- */

static const char *some_cursor(struct fixture *f, const struct weft_listing *listing)
{
    struct weft_read_page page = list_page(f, listing);
    ok(page.next && page.count == listing->limit, "there is a cursor");
    return page.next;
}

static void expect_refused(struct fixture *f, const struct weft_listing *listing, const char *why)
{
    struct weft_read_page page;
    struct weft_err err = {0};
    enum weft_rc rc = weft_engine_list(f->a, listing, f->arena, &page, &err);
    ok(rc == WEFT_INVALID_VALUE && err.field && strcmp(err.field, "after") == 0 && err.hint,
       "a cursor is refused with %s", why);
}

CASE(cursors_belong_to_one_list)
{
    static const struct weft_tag tag = {"k", "v"};
    struct weft_spec spec[20];
    for (size_t i = 0; i < WEFT_LEN(spec); i++)
        spec[i] = (struct weft_spec){.ns = i % 2 ? "left" : "right", .kind = "job"};
    (void)submit_many(f, f->a, spec, WEFT_LEN(spec));
    struct weft_listing listing = {.filter = {.ns = "left"}, .limit = 3};
    const char *cursor = some_cursor(f, &listing);
    static const struct {
        struct weft_filter filter;
        const char *why;
    } row[] = {
        {{.ns = "right"}, "another namespace"},
        {{.ns = "left", .kind = "job"}, "a kind"},
        {{.ns = "left", .lane = "default"}, "a lane"},
        {{.ns = "left", .tenant = "t"}, "a tenant"},
        {{.ns = "left", .worker = "w"}, "a worker"},
        {{.ns = "left", .state = WEFT_STATE_READY}, "a state"},
        {{.ns = "left", .tag = &tag}, "a tag"},
        {{.ns = "left", .error_class = "e"}, "an error class"},
        {{.ns = "left", .created_since_us = 1}, "a moment"},
        {{.ns = "left", .flow = {{1}}}, "a flow"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        expect_refused(f, &(struct weft_listing){.filter = row[i].filter, .after = cursor},
                       row[i].why);
    expect_refused(f,
                   &(struct weft_listing){
                       .filter = {.ns = "left"}, .source = WEFT_LIST_LIVING, .after = cursor},
                   "the list of a cancel by filter");
    listing.after = cursor;
    is_int(list_page(f, &listing).count, 3,
           "the cursor is accepted by its own list with another limit");
    for (size_t i = 0; cursor[i]; i++) {
        char *changed = weft_arena_strdup(f->arena, cursor);
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        struct weft_read_page page;
        listing.after = changed;
        /* One that decodes to a place that was made up shows the caller's own rows, or none. */
        if (weft_engine_list(f->a, &listing, f->arena, &page, &f->err) != WEFT_OK)
            continue;
        for (size_t k = 0; k < page.count; k++)
            if (strcmp(page.item[k].ns, "left") != 0)
                ok(false, "a changed cursor shows rows of another namespace");
    }
}
