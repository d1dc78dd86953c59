/* SPDX-License-Identifier: Apache-2.0 */

/* Settings of budgets: their list, their bounds, and when other processes learn of them. */

#include "budgets.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/limit/budgets.h"
#include "engine/tx/tx.h"
#include "store/store.h"
#include "weft/weft.h"

#include <string.h>

/* ---- Read and listed ------------------------------------------------------------------------- */

CASE(budget_is_shown_as_it_was_put)
{
    const struct weft_budget put = {
        .name = "team/a",
        .matches = true,
        .match_lane = "default",
        .match_tenant = "acme",
        .every_ms = 3600000,
        .anchor_us = f->now_us - 60 * WEFT_SECOND,
        .on_hard = WEFT_ON_HARD_CANCEL,
        DIMENSIONS({.name = "tokens", .hard = 100, .soft = 80, .estimate = 5},
                   {.name = "cents", .estimate = 1}, {.name = "Seconds", .soft = 9})};
    put_budget(f, &put);
    struct weft_budget got = budget_now(f, "team/a");
    ok(strcmp(got.name, "team/a") == 0 && got.matches && strcmp(got.match_lane, "default") == 0 &&
           !got.match_kind && strcmp(got.match_tenant, "acme") == 0,
       "its name and what it matches");
    ok(got.every_ms == 3600000 && got.every_months == 0 && got.anchor_us == put.anchor_us &&
           got.on_hard == WEFT_ON_HARD_CANCEL && got.state == WEFT_BUDGET_OK && got.breaches == 0,
       "its reset, and that it is well");
    is_int(got.next_reset_us, put.anchor_us + 3600 * WEFT_SECOND, "when it is reset");
    is_int(got.period_began_us, f->now_us, "since when it counts");
    static const char *const name[] = {"Seconds", "cents", "tokens"};
    is_int(got.dimension_count, WEFT_LEN(name), "three dimensions");
    for (size_t i = 0; i < got.dimension_count; i++)
        is_str(got.dimension[i].name, name[i], "by their names");
    ok(got.dimension[2].hard == 100 && got.dimension[2].soft == 80 &&
           got.dimension[2].estimate == 5 && got.dimension[1].estimate == 1 &&
           got.dimension[0].soft == 9 && got.dimension[0].hard == 0,
       "with their limits");
    is_int(weft_engine_budget(f->b, "default", "team/b", f->arena, &got, &f->err), WEFT_NOT_FOUND,
           "another name");
    is_int(weft_engine_budget(f->b, "nowhere", "team/a", f->arena, &got, &f->err), WEFT_NOT_FOUND,
           "a namespace that is not there");
}

CASE(budget_put_refuses_bad_settings)
{
    const struct weft_budget none = {.name = "all"};
    is_int(weft_engine_budget_put(f->a, "default", &none, &f->err), WEFT_INVALID_VALUE,
           "no dimension");
    expect_err(&f->err, WEFT_INVALID_VALUE, "dimensions", "no dimension");
    const struct weft_budget good = {.name = "all", DIMENSIONS({.name = "tokens"})};
    is_int(weft_engine_budget_put(f->a, "a b", &good, &f->err), WEFT_INVALID_VALUE,
           "a namespace that cannot be");
    struct weft_budgets list;
    const struct weft_budget_asking asking = {.ns = "default"};
    struct weft_id id = submit_job(f);
    (void)id;
    is_int(weft_engine_budgets(f->b, &asking, f->arena, &list, &f->err), WEFT_OK, "listed");
    is_int(list.count, 0, "nothing was made");
}

CASE(budgets_in_pages)
{
    enum { MANY = 7 };
    for (int i = MANY - 1; i >= 0; i--)
        put_budget(f, &(struct weft_budget){
                          .name = weft_arena_printf(f->arena, "b%d", i),
                          DIMENSIONS({.name = "tokens", .hard = i + 1}, {.name = "cents"})});
    struct weft_budgets page = {0};
    int seen = 0;
    do {
        const struct weft_budget_asking asking = {.ns = "default", .limit = 3, .after = page.next};
        is_int(weft_engine_budgets(f->b, &asking, f->arena, &page, &f->err), WEFT_OK, "a page");
        for (size_t i = 0; i < page.count; i++, seen++)
            ok(page.item[i].name[1] == '0' + seen && page.item[i].dimension_count == 2 &&
                   page.item[i].dimension[1].hard == seen + 1,
               "number %d, with its own dimensions", seen);
    } while (page.next && seen < 20);
    is_int(seen, MANY, "all of them, in order");
    const struct weft_budget_asking many = {.ns = "default", .limit = WEFT_PAGE_MAX + 1};
    ok(weft_engine_budgets(f->b, &many, f->arena, &page, &f->err) != WEFT_OK, "too large a page");
}

CASE(budgets_are_bounded)
{
    put_tokens(f, "first", 1, 1);
    run_sql_of(f,
               "INSERT INTO weft.budget (namespace, name, matches, on_hard, every_us, months, "
               "anchor, began) SELECT 1, 'm' || n, true, 0, 0, 0, 0, 0 "
               "FROM generate_series(1, 999) n",
               "INSERT INTO budget (namespace, name, matches, on_hard, every_us, months, anchor, "
               "began) WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n "
               "WHERE n < 999) SELECT 1, 'm' || n, 1, 0, 0, 0, 0, 0 FROM n");
    struct weft_budget budget = {.name = "more", .matches = true, DIMENSIONS({.name = "tokens"})};
    is_int(weft_engine_budget_put(f->a, "default", &budget, &f->err), WEFT_LIMIT_EXCEEDED,
           "a thousand match already");
    ok(f->err.hint != NULL, "with a hint: %s", f->err.text);
    is_int(weft_engine_budget_put(f->a, "other", &budget, &f->err), WEFT_OK,
           "another namespace has its own");
    budget.matches = false;
    is_int(weft_engine_budget_put(f->a, "default", &budget, &f->err), WEFT_OK,
           "one that is named by specs is no burden");
    budget.matches = true;
    is_int(weft_engine_budget_put(f->a, "default", &budget, &f->err), WEFT_LIMIT_EXCEEDED,
           "it may not begin to match");
    budget.name = "first";
    is_int(weft_engine_budget_put(f->a, "default", &budget, &f->err), WEFT_OK,
           "one that matches may change");
    run_sql_of(f,
               "INSERT INTO weft.budget (namespace, name, matches, on_hard, every_us, months, "
               "anchor, began) SELECT 1, 'n' || n, false, 0, 0, 0, 0, 0 "
               "FROM generate_series(1, 8999) n",
               "INSERT INTO budget (namespace, name, matches, on_hard, every_us, months, anchor, "
               "began) WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n "
               "WHERE n < 8999) SELECT 1, 'n' || n, 0, 0, 0, 0, 0, 0 FROM n");
    budget.name = "last";
    budget.matches = false;
    is_int(weft_engine_budget_put(f->a, "default", &budget, &f->err), WEFT_LIMIT_EXCEEDED,
           "ten thousand are there");
}

/* ---- Other processes ------------------------------------------------------------------------- */

static struct weft_budget closed(const char *name, const char *kind)
{
    static struct weft_budget_dimension tokens = {.name = "tokens", .hard = 1, .estimate = 1};
    return (struct weft_budget){.name = name,
                                .matches = true,
                                .match_kind = kind,
                                .dimension = &tokens,
                                .dimension_count = 1};
}

static void put_silently(struct fixture *f, const struct weft_budget *budget)
{
    is_int(weft_engine_budget_put(f->a, "default", budget, &f->err), WEFT_OK, "%s is put",
           budget->name);
}

/* Claims one of a kind through b; how many of the budget are reserved then. */
static int64_t reserved_by_b(struct fixture *f, const char *kind, const char *name)
{
    const struct weft_claim args = {.worker = "worker-b", .kinds = &kind, .kind_count = 1};
    (void)submit_ok(f, &(struct weft_spec){.kind = kind});
    (void)claim_with(f, f->b, &args);
    return dimension_now(f, name, "tokens").reserved;
}

/* The poll of the other process learns of every change, however little the clock has moved. */
CASE(budget_changes_reach_the_poll)
{
    struct weft_budget gone, one = closed("one", "a"), two = closed("two", "b");
    put_silently(f, &one);
    tell_other(f);
    is_int(reserved_by_b(f, "a", "one"), 1, "a first budget");
    is_int(weft_engine_budget_remove(f->a, "default", "one", f->arena, &gone, &f->err), WEFT_OK,
           "it is removed");
    put_silently(f, &two); /* in the same microsecond: as many budgets as before */
    tell_other(f);
    is_int(reserved_by_b(f, "b", "two"), 1, "another one in its place");
    struct weft_budget other = closed("two", "c");
    put_silently(f, &other);
    struct weft_budget_dimension now = dimension_now(f, "two", "tokens");
    is_int(now.reserved, 1, "it matches something else now");
    tell_other(f);
    (void)submit_copies(f, &(struct weft_spec){.kind = "b"}, 3);
    const char *kind = "b";
    const struct weft_claim args = {.worker = "w", .kinds = &kind, .kind_count = 1, .max = 9};
    is_int(claim_with(f, f->b, &args).count, 3, "what it no longer matches is free");
}

struct learning {
    struct fixture *f;
    int64_t reserved;
};

static bool has_learned(void *context)
{
    struct learning *learning = context;
    learning->reserved = reserved_by_b(learning->f, "new", "late");
    return learning->reserved > 0;
}

/* A process that does not poll looks for new budgets at its claims, after 2.5 s at the latest. */
CASE(budget_changes_reach_claims_without_a_poll)
{
    struct weft_budget late = closed("late", "new");
    late.dimension = &(struct weft_budget_dimension){.name = "tokens", .estimate = 1};
    is_int(claim(f, f->b, 1).count, 0, "b has read that there are none");
    put_silently(f, &late);
    struct learning learning = {.f = f};
    weft_usec since_us = weft_boot_us();
    ok(wait_until(has_learned, &learning), "b learns of it");
    weft_usec took_us = weft_boot_us() - since_us;
    ok(took_us < 10 * WEFT_SECOND, "after %d ms, on a machine with other work",
       (int)(took_us / WEFT_MS));
}

/* A process that has never read them claims nothing: what it ran would never be charged. */
CASE(budget_rules_are_read_before_the_first_claim)
{
    struct weft_budget budget = closed("one", NULL);
    put_silently(f, &budget);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 3);
    struct weft_engine *engine = open_engine(f);
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result got = {0};
    const struct weft_claim args = {.worker = "w", .max = 9};
    run_sql_of(f, "ALTER TABLE weft.budget_version RENAME TO hidden",
               "ALTER TABLE budget_version RENAME TO hidden");
    ok(weft_engine_claim(engine, "default", &args, 1, arena, &got, &f->err) != WEFT_OK,
       "the claim fails: %s", f->err.text);
    run_sql_of(f, "ALTER TABLE weft.hidden RENAME TO budget_version",
               "ALTER TABLE hidden RENAME TO budget_version");
    is_int(weft_engine_claim(engine, "default", &args, 1, arena, &got, &f->err), WEFT_OK,
           "the next one does not");
    is_int(got.count, 1, "and is under the budget");
    expect_sums(f, "one", NULL, 0, 1, "the first claim");
    weft_arena_free(arena);
    weft_engine_close(engine);
}

/* The first budget keeps binaries out that would claim without reserving. */
CASE(budget_raises_the_oldest_binary)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    put_tokens(f, "all", 1, 1);
    weft_call_schema_read(&call, f->arena);
    is_int(weft_tx_once(f->b, WEFT_TX_READ, &call, f->arena, &rows, &f->err), WEFT_OK, "read");
    ok(rows.count == 1 && weft_out_schema_read(&rows)->oldest_binary >= 30, "30 at least");
}
