/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plans of budgets on PostgreSQL, on empty and on large tables, and what they touch: claims,
 * reports and ends come by the thousand a second, and a ledger has a row for each of a week. The
 * statements are prepared on empty tables, with statistics that say so, and run on large ones.
 */

#include "plans_fixture.h"

/* The texts below have ids in short: L: of a lease that runs, E: of one that ended long ago. */
#define ZERO "00000000-0000-0000-0000-000000000000"
#define L(n) "00000000-0000-7000-8000-00000000" n
#define E(n) "00000000-0000-7000-9000-00000000" n

static const struct rule rules[] = {
    {.stmt = WEFT_STMT_BUDGET_LOCK,
     .index = {"budget_name", "budget_pkey"},
     .drives = true,
     .sorts = true},
    {.stmt = WEFT_STMT_BUDGET_LOCK_DUE, .index = {"budget_reset"}},
    {.stmt = WEFT_STMT_BUDGET_LIST, .index = {"budget_name"}},
    {.stmt = WEFT_STMT_BUDGETS_MATCHING, .index = {"budget_matches"}},
    {.stmt = WEFT_STMT_DIMENSIONS_OF,
     .index = {"budget_name", "budget_dimension_name"},
     .drives = true,
     .sorts = true},
    {.stmt = WEFT_STMT_BUDGET_BEGIN,
     .index = {"budget_pkey", "budget_dimension_name", "ledger_open"}},
    {.stmt = WEFT_STMT_BUDGET_NEXT, .index = {"budget_reset", "budget_cancelling"}},
    {.stmt = WEFT_STMT_BUDGET_MARK, .index = {"budget_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_CHARGE_HEADS, .index = {"live_ready"}, .drives = true},
    {.stmt = WEFT_STMT_COSTS_OF, .index = {"cost_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_COST_ADD, .index = {"live_pkey"}, .sorts = true},
    {.stmt = WEFT_STMT_BUDGET_LOCK_CHARGED,
     .index = {"ledger_pkey", "budget_dimension_pkey", "budget_pkey"},
     .drives = true,
     .sorts = true},
    {.stmt = WEFT_STMT_DIMENSIONS_CHARGED,
     .index = {"ledger_pkey", "budget_dimension_pkey", "budget_dimension_name"},
     .drives = true,
     .sorts = true},
    {.stmt = WEFT_STMT_CHARGES_OF, .index = {"ledger_pkey", "live_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_LEDGER_PUT},
    {.stmt = WEFT_STMT_LEDGER_WIDEN,
     .index = {"ledger_open", "budget_dimension_name"},
     .sorts = true},
    {.stmt = WEFT_STMT_SUMS_ADD, .index = {"budget_dimension_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_SETTLE,
     .index = {"ledger_pkey", "budget_dimension_pkey", "live_pkey"},
     .drives = true,
     .sorts = true},
    {.stmt = WEFT_STMT_LEDGER_WALK, .index = {"ledger_open", "live_pkey"}},
    {.stmt = WEFT_STMT_BUDGETS_CANCELLING, .index = {"budget_cancelling"}},
    {.stmt = WEFT_STMT_CHARGES_RUNNING,
     .index = {"budget_dimension_name", "ledger_open", "live_pkey"}},
    {.stmt = WEFT_STMT_LEDGER_READ,
     .index = {"budget_name", "budget_dimension_name", "ledger_period"},
     .sorts = true},
    {.stmt = WEFT_STMT_LEDGER_SWEEP,
     .index = {"budget_dimension_sweep", "ledger_period"},
     .sorts = true},
    {.stmt = WEFT_STMT_LEDGER_FOLD, .index = {"ledger_settled"}, .sorts = true},
};

/* Budget 1 has 20,000 leases that run, and 100,000 that have ended; 1,999 others have 20 each. */
static const struct kept_call calls[] = {
    {WEFT_STMT_BUDGET_LOCK, "('{1,1,1}', '{b1,b700,b1300}')", 30},
    {WEFT_STMT_DIMENSIONS_OF, "('{1,1,1}', '{b1,b700,b1300}')", 40},
    {WEFT_STMT_BUDGET_LOCK_DUE, "(9000000, 0, 100)", 800},
    {WEFT_STMT_BUDGET_LIST, "(1, NULL, 'b5', 50)", 80},
    {WEFT_STMT_BUDGET_LIST, "(1, 'b700', '', 1)", 10},
    {WEFT_STMT_BUDGETS_MATCHING, "", 1300},
    {WEFT_STMT_BUDGET_NEXT, "", 20},
    {WEFT_STMT_BUDGET_MARK, "('{700}', '{1}', '{NULL}', '{1}', '{f}')", 20},
    {WEFT_STMT_CHARGE_HEADS, "('{1,2,3}', '{10,10,10}')", 60},
    {WEFT_STMT_COSTS_OF, "('{" L("0001") "," L("2000") "}')", 20},
    {WEFT_STMT_BUDGET_LOCK_CHARGED, "('{" L("0001") "," L("2000") "}', '{1,1}')", 60},
    {WEFT_STMT_DIMENSIONS_CHARGED, "('{" L("0001") "," L("2000") "}', '{1,1}')", 60},
    {WEFT_STMT_CHARGES_OF, "('{" L("0001") "," L("2000") "}', '{1,1}')", 60},
    {WEFT_STMT_LEDGER_PUT,
     "(1, '{" L("0001") "," L("2000") "}', '{1,1}', '{1,1}', '{1,1}', '{0,0}', '{9,9}')", 60},
    {WEFT_STMT_SUMS_ADD, "('{1,700}', '{1,1}', '{1,1}')", 40},
    {WEFT_STMT_SETTLE, "(1, '{" L("0001") "," L("2000") "," E("0001") "}', '{1,1,1}')", 120},
    {WEFT_STMT_LEDGER_WALK, "(0, '" ZERO "', 0, 100)", 600},
    {WEFT_STMT_LEDGER_WALK, "(1, '" L("4000") "', 1, 100)", 600},
    {WEFT_STMT_BUDGETS_CANCELLING, "(16)", 20},
    {WEFT_STMT_CHARGES_RUNNING, "(1, 100)", 1200},
    {WEFT_STMT_LEDGER_READ, "(1, 'b1', '" ZERO "', 51)", 300},
    {WEFT_STMT_LEDGER_READ, "(1, 'b1', '" E("c000") "', 51)", 300},
    {WEFT_STMT_LEDGER_READ, "(1, 'b700', '" ZERO "', 51)", 200},
    {WEFT_STMT_LEDGER_SWEEP, "(100, 100)", 3000},
    {WEFT_STMT_LEDGER_FOLD, "(9000000, 100)", 3000},
    {WEFT_STMT_LEDGER_WIDEN, "(1, 700, '{cents}')", 100},
    {WEFT_STMT_BUDGET_BEGIN, "(1, '{700}', '{NULL}', '{1}')", 200},
};

static const char no_autovacuum[] =
    "ALTER TABLE weft.live SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.budget SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.budget_dimension SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.ledger SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.cost SET (autovacuum_enabled = false);";

static const char analyze[] =
    "ANALYZE weft.live, weft.budget, weft.budget_dimension, weft.ledger, weft.cost;";

/* Before any plan is made: with the first function of its own a session forgets its plans. */
static const char fill_names[] =
    "CREATE FUNCTION pg_temp.name(sort text, n int) RETURNS uuid LANGUAGE sql AS "
    "$$ SELECT ('00000000-0000-7000-' || sort || '-' || lpad(to_hex(n), 12, '0'))::uuid $$;";

/* Of the budgets each second matches, each second is reset some time, 3 cancel, 10 are swept. */
static const char fill_budgets[] =
    "INSERT INTO weft.budget (namespace, name, matches, on_hard, every_us, months, anchor, "
    "                         next_reset, began, period, cancelling, hard_at) "
    "SELECT 1, 'b' || i, i % 2 = 0, 0, 0, 0, 0, CASE WHEN i % 4 < 2 THEN 8000000 + i END, 1, 2, "
    "       i BETWEEN 5 AND 7, CASE WHEN i BETWEEN 5 AND 7 THEN 1 END "
    "  FROM generate_series(1, 2000) i;"
    "INSERT INTO weft.budget_dimension (budget, name, hard, soft, estimate, stale) "
    "SELECT i, n, 1000, 0, 1, i % 200 = 0 "
    "  FROM generate_series(1, 2000) i, unnest(ARRAY['tokens', 'cents']) n ORDER BY i, n DESC;"
    "INSERT INTO weft.budget_dimension (budget, name, hard, soft, estimate, dropped) "
    "SELECT 10 * i, 'gone', 0, 0, 0, true FROM generate_series(1, 5) i;";

static const char fill_leases[] =
    "INSERT INTO weft.live (id, ord, queue, lane, policy, worker, epoch, attempt, forgiven, size, "
    "                       lost, replays, priority, state, due) "
    "SELECT pg_temp.name('8000', i), i, 1 + i % 20, 1, 1, 1, 1, 1, 0, 2, 0, 0, 0, 4, 9000000 "
    "  FROM generate_series(1, 20000) i;"
    "INSERT INTO weft.live (id, ord, queue, lane, policy, epoch, attempt, forgiven, size, lost, "
    "                       replays, priority, state) "
    "SELECT pg_temp.name('8000', i), i, 1 + i % 20, 1, 1, 0, 1, 0, 2, 0, 0, 0, 1 "
    "  FROM generate_series(20001, 60000) i;"
    "INSERT INTO weft.ledger (id, epoch, dimension, period, reserved, total, earlier, changed) "
    "SELECT pg_temp.name('8000', i), 1, 1, 2, 1, 1, 0, 1 FROM generate_series(1, 20000) i;"
    "INSERT INTO weft.ledger (id, epoch, dimension, period, reserved, total, earlier, settled, "
    "                         changed) "
    "SELECT pg_temp.name('9000', i), 1, 1, 2, 0, 1, 0, i, i FROM generate_series(1, 100000) i;"
    "INSERT INTO weft.ledger (id, epoch, dimension, period, reserved, total, earlier, settled, "
    "                         changed) "
    "SELECT pg_temp.name('a000', 20 * d + i), 1, d, 1 + i % 2, 0, 1, 0, 200000 + d, 1 "
    "  FROM generate_series(3, 4005) d, generate_series(0, 19) i;"
    "INSERT INTO weft.cost (id, dimension, amount) "
    "SELECT pg_temp.name('8000', i), n, 5 "
    "  FROM generate_series(1, 40000) i, unnest(ARRAY['tokens', 'cents']) n;";

static void check_rules(struct plans *p, const char *where)
{
    for (size_t i = 0; i < WEFT_LEN(rules); i++)
        check_plan(p, &rules[i], where);
}

/* The part of the poll brings its own pins: it looks at the ends of indexes alone. */
static void check_poll(struct plans *p, const char *where)
{
    const char *plan = NULL;
    if (run_here(p, "BEGIN; PREPARE seen AS SELECT * FROM weft.poll_budgets()"))
        plan = explain(p, "ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF", "");
    (void)run(p, "ROLLBACK; DEALLOCATE seen");
    long buffers = plan ? buffers_of(plan) : 0;
    ok(buffers > 0 && buffers < 60, "poll_budgets, %s: %ld buffers", where, buffers);
}

static void test_pg(void)
{
    struct plans p;
    const size_t count = WEFT_LEN(calls);
    if (plans_open(&p) && run_here(&p, no_autovacuum) && run_here(&p, fill_names)) {
        check_rules(&p, "empty");
        (void)run_here(&p, analyze);
        check_rules(&p, "empty, with statistics");
        keep_plans(&p, calls, count);
        if (run_here(&p, fill_budgets) && run_here(&p, fill_leases)) {
            run_kept(&p, calls, count, "planned on empty tables");
            check_rules(&p, "large, statistics of empty tables");
            check_poll(&p, "large");
            (void)run_here(&p, analyze);
            check_rules(&p, "large, with statistics");
            run_kept(&p, calls, count, "planned on large tables");
            check_poll(&p, "large, with statistics");
        }
    }
    plans_close(&p);
}

int main(void)
{
    if (fixture_has_pg())
        test_pg();
    else
        tap_skip("WEFT_TEST_PG is not set");
    return tap_done();
}
