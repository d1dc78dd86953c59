/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plans of SQLite: no statement of the hot path scans a table that grows, on empty tables and
 * on filled ones with statistics, which make the planner think again.
 */

#include "store_fixture.h"

#include "base/arena.h"
#include "store/migrate.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

static const enum weft_stmt hot[] = {
    WEFT_STMT_CLAIM,
    WEFT_STMT_LIVE_END,
    WEFT_STMT_RENEW,
    WEFT_STMT_SUBMIT,
    WEFT_STMT_LIVE_LOCK,
    WEFT_STMT_LIVE_PUT,
    WEFT_STMT_DUE_LEASES,
    WEFT_STMT_DUE_ATTEMPTS,
    WEFT_STMT_DUE_DEADLINES,
    WEFT_STMT_PROMOTE_DUE,
    WEFT_STMT_LEASE_LANES,
    WEFT_STMT_LEASE_TURNS,
    WEFT_STMT_ATTEMPT_LANES,
    WEFT_STMT_ATTEMPT_TURNS,
    WEFT_STMT_DEADLINE_LANES,
    WEFT_STMT_DEADLINE_TURNS,
    WEFT_STMT_DELAYED_LANES,
    WEFT_STMT_DELAYED_TURNS,
    WEFT_STMT_QUEUE_HEADS,
    WEFT_STMT_QUEUES_READY,
    WEFT_STMT_LANE_WALK,
    WEFT_STMT_LEASE_FACTS,
    WEFT_STMT_LIST,
    WEFT_STMT_DESCRIBE,
    WEFT_STMT_KEY_TAKE,
    WEFT_STMT_KEY_READ,
    WEFT_STMT_LANE_RUNNING,
    WEFT_STMT_NEXT_LEASE,
    WEFT_STMT_NEXT_ATTEMPT,
    WEFT_STMT_NEXT_DEADLINE,
    WEFT_STMT_NEXT_DELAYED,
    WEFT_STMT_OUTCOME_LOCK,
    WEFT_STMT_OUTCOME_BACK,
    WEFT_STMT_ATTEMPT_ADD,
    WEFT_STMT_ATTEMPTS,
    WEFT_STMT_PROGRESS_PUT,
    WEFT_STMT_RESULT,
    WEFT_STMT_PAYLOAD,
    WEFT_STMT_QUEUE_LOAD,
    WEFT_STMT_NAME_LOAD,
    WEFT_STMT_SAMPLE_CHECK,
    WEFT_STMT_ORPHAN_ROWS,
    WEFT_STMT_ORPHAN_KEYS,
    WEFT_STMT_RETENTION_GROUPS,
    WEFT_STMT_RETENTION_TAKE,
    WEFT_STMT_RETENTION_REMOVE,
    WEFT_STMT_RETENTION_LEFT,
    WEFT_STMT_FLOW_READ,
    WEFT_STMT_FLOW_LIST,
    WEFT_STMT_FLOW_COUNTS,
    WEFT_STMT_FLOW_PAGE,
    WEFT_STMT_UPSTREAMS,
    WEFT_STMT_UPSTREAM_RESULTS,
    WEFT_STMT_FLOW_OF_KEY,
    WEFT_STMT_FLOW_MEMBERS,
    WEFT_STMT_FLOW_LAST,
    WEFT_STMT_FLOW_EDGE_COUNT,
    WEFT_STMT_FLOW_LOCK,
    WEFT_STMT_FLOW_HOLD,
    WEFT_STMT_CASCADE_LOOK,
    WEFT_STMT_FLOW_ROOTS,
    WEFT_STMT_EDGE_PUT,
    WEFT_STMT_NODE_PUT,
    WEFT_STMT_NODE_MARK,
    WEFT_STMT_NODES_REPLAY,
    WEFT_STMT_JOINS_READ,
    WEFT_STMT_NODES_WIDEN,
    WEFT_STMT_LIVE_WIDEN,
    WEFT_STMT_EDGES_THERE,
    WEFT_STMT_EDGES_AMONG,
    WEFT_STMT_UPSTREAM_FAILED,
    WEFT_STMT_COMPLETION_DONE,
    WEFT_STMT_COMPLETION_CURSOR,
    WEFT_STMT_COMPLETION_ANY,
    WEFT_STMT_FLOW_OVER,
    WEFT_STMT_FLOWS_OF,
    WEFT_STMT_FLOW_LIVING,
    WEFT_STMT_FLOW_COUNT,
    WEFT_STMT_NODES_NAMED,
    WEFT_STMT_COMPLETION_DUE,
    WEFT_STMT_GROUPS_DUE,
    WEFT_STMT_GROUPS_LOOK,
    WEFT_STMT_GROUPS_ORPHANED,
    WEFT_STMT_FLOWS_KEPT,
    WEFT_STMT_PURGE_TAKE,
    WEFT_STMT_PURGE_HINTS,
    WEFT_STMT_PURGE_EDGES,
    WEFT_STMT_PURGE_MEMBERS,
    WEFT_STMT_PURGE_FLOWS,
    WEFT_STMT_PURGE_LEFT,
    WEFT_STMT_FLOWS_BACKLOG,
    WEFT_STMT_FLOWS_UNFINISHED,
    WEFT_STMT_FLOWS_DELETED,
    WEFT_STMT_FLOWS_REMOVING,
    WEFT_STMT_GROUPS_TAKE,
    WEFT_STMT_DRAINING_ADD,
    WEFT_STMT_DRAINING_DROP,
    WEFT_STMT_DRAINING_EXPIRE,
    WEFT_STMT_WATCH_LOOK,
    WEFT_STMT_WATCH_TAKE,
    WEFT_STMT_BUDGET_LOCK,
    WEFT_STMT_BUDGET_LOCK_DUE,
    WEFT_STMT_BUDGET_LIST,
    WEFT_STMT_BUDGETS_MATCHING,
    WEFT_STMT_DIMENSIONS_OF,
    WEFT_STMT_BUDGET_BEGIN,
    WEFT_STMT_BUDGET_NEXT,
    WEFT_STMT_BUDGET_MARK,
    WEFT_STMT_CHARGE_HEADS,
    WEFT_STMT_COSTS_OF,
    WEFT_STMT_COST_ADD,
    WEFT_STMT_BUDGET_LOCK_CHARGED,
    WEFT_STMT_DIMENSIONS_CHARGED,
    WEFT_STMT_CHARGES_OF,
    WEFT_STMT_LEDGER_PUT,
    WEFT_STMT_LEDGER_WIDEN,
    WEFT_STMT_SUMS_ADD,
    WEFT_STMT_SETTLE,
    WEFT_STMT_LEDGER_WALK,
    WEFT_STMT_BUDGETS_CANCELLING,
    WEFT_STMT_CHARGES_RUNNING,
    WEFT_STMT_LEDGER_READ,
    WEFT_STMT_LEDGER_SWEEP,
    WEFT_STMT_LEDGER_FOLD,
};

/* The indexes that must be seen somewhere in the plan. */
static const struct {
    enum weft_stmt stmt;
    const char *index;
} wanted[] = {
    {WEFT_STMT_CLAIM, "live_ready"},
    {WEFT_STMT_QUEUE_HEADS, "live_ready"},
    {WEFT_STMT_QUEUES_READY, "live_ready"},
    {WEFT_STMT_LANE_WALK, "live_ready"},
    {WEFT_STMT_LANE_WALK, "queue_lane"},
    {WEFT_STMT_LANE_RUNNING, "live_lease"},
    {WEFT_STMT_LANE_RUNNING, "draining_lane"},
    {WEFT_STMT_NEXT_LEASE, "draining_until"},
    {WEFT_STMT_DRAINING_EXPIRE, "draining_until"},
    {WEFT_STMT_WATCH_LOOK, "draining_untold"},
    {WEFT_STMT_WATCH_TAKE, "draining_untold"},
    {WEFT_STMT_DUE_LEASES, "live_lease"},
    {WEFT_STMT_DUE_ATTEMPTS, "live_attempt_deadline"},
    {WEFT_STMT_DUE_DEADLINES, "live_deadline"},
    {WEFT_STMT_PROMOTE_DUE, "live_timer"},
    {WEFT_STMT_LEASE_LANES, "live_lease (lane=? AND due<?)"},
    {WEFT_STMT_LEASE_TURNS, "live_lease (lane=? AND due<?)"},
    {WEFT_STMT_ATTEMPT_LANES, "live_attempt_lane (lane=? AND attempt_deadline"},
    {WEFT_STMT_ATTEMPT_TURNS, "live_attempt_lane (lane=? AND attempt_deadline"},
    {WEFT_STMT_DEADLINE_LANES, "live_deadline_lane (lane=? AND deadline"},
    {WEFT_STMT_DEADLINE_TURNS, "live_deadline_lane (lane=? AND deadline"},
    {WEFT_STMT_DELAYED_LANES, "live_delayed (lane=? AND due<?)"},
    {WEFT_STMT_DELAYED_TURNS, "live_delayed (lane=? AND due<?)"},
    {WEFT_STMT_NEXT_LEASE, "live_lease"},
    {WEFT_STMT_NEXT_ATTEMPT, "live_attempt_deadline"},
    {WEFT_STMT_NEXT_DEADLINE, "live_deadline"},
    {WEFT_STMT_NEXT_DELAYED, "live_timer"},
    {WEFT_STMT_RETENTION_GROUPS, "outcome_retention ((queue,policy,state,finished)>(?,?,?,?))"},
    {WEFT_STMT_RETENTION_TAKE, "outcome_retention"},
    {WEFT_STMT_RETENTION_LEFT, "outcome_retention"},
    {WEFT_STMT_LIST, "live_flow"},
    {WEFT_STMT_LIST, "node_flow"},
    {WEFT_STMT_LIST, "suspension_lane"},
    {WEFT_STMT_LIST, "suspension_escalated"},
    {WEFT_STMT_FLOW_LIST, "flow_list"},
    {WEFT_STMT_FLOW_OF_KEY, "flow_key"},
    {WEFT_STMT_FLOW_MEMBERS, "node_flow"},
    {WEFT_STMT_FLOW_ROOTS, "node_flow"},
    {WEFT_STMT_FLOW_LAST, "node_flow"},
    {WEFT_STMT_FLOW_EDGE_COUNT, "node_flow"},
    {WEFT_STMT_FLOW_OVER, "node_bad"},
    {WEFT_STMT_FLOW_OVER, "live_flow"},
    {WEFT_STMT_FLOW_LIVING, "live_flow"},
    {WEFT_STMT_NODES_NAMED, "node_name"},
    {WEFT_STMT_CASCADE_LOOK, "completion_flow"},
    {WEFT_STMT_CASCADE_LOOK, "e USING PRIMARY KEY (upstream=? AND downstream>?)"},
    {WEFT_STMT_COMPLETION_ANY, "completion_flow"},
    {WEFT_STMT_GROUPS_DUE, "cancel_group_due"},
    {WEFT_STMT_GROUPS_TAKE, "completion_anew"},
    {WEFT_STMT_FLOWS_KEPT, "flow_finished"},
    {WEFT_STMT_FLOWS_BACKLOG, "flow_backlog"},
    {WEFT_STMT_FLOWS_UNFINISHED, "flow_unseen"},
    {WEFT_STMT_FLOWS_DELETED, "flow_deleted"},
    {WEFT_STMT_FLOWS_REMOVING, "flow_unseen"},
    {WEFT_STMT_FLOW_COUNTS, "node_"},
    {WEFT_STMT_FLOW_PAGE, "node_flow"},
    {WEFT_STMT_UPSTREAMS, "edge_downstream"},
    {WEFT_STMT_UPSTREAM_RESULTS, "edge_downstream"},
    {WEFT_STMT_BUDGET_LOCK_DUE, "budget_reset"},
    {WEFT_STMT_BUDGETS_MATCHING, "budget_matches"},
    {WEFT_STMT_BUDGET_BEGIN, "ledger_open (dimension=?)"},
    {WEFT_STMT_CHARGE_HEADS, "live_ready"},
    {WEFT_STMT_BUDGET_LOCK_CHARGED, "g USING PRIMARY KEY (id=? AND epoch=?)"},
    {WEFT_STMT_DIMENSIONS_CHARGED, "g USING PRIMARY KEY (id=? AND epoch=?)"},
    {WEFT_STMT_CHARGES_OF, "g USING PRIMARY KEY (id=? AND epoch=?)"},
    {WEFT_STMT_LEDGER_WIDEN, "ledger_open (dimension=?)"},
    {WEFT_STMT_SETTLE, "g USING PRIMARY KEY (id=? AND epoch=?)"},
    {WEFT_STMT_LEDGER_WALK, "ledger_open ((dimension,id,epoch)>(?,?,?))"},
    {WEFT_STMT_BUDGETS_CANCELLING, "budget_cancelling"},
    {WEFT_STMT_CHARGES_RUNNING, "ledger_open (dimension=?)"},
    {WEFT_STMT_LEDGER_READ, "ledger_period (dimension=? AND period=? AND id>?)"},
    {WEFT_STMT_LEDGER_SWEEP, "budget_dimension_sweep"},
    {WEFT_STMT_LEDGER_SWEEP, "ledger_period (dimension=? AND period"},
    {WEFT_STMT_LEDGER_FOLD, "ledger_settled (settled>? AND settled<?)"},
};

/* A handful of flows, on their way in or out. */
static bool is_passing_flow(const char *name)
{
    return strcmp(name, "f USING INDEX flow_backlog") == 0 ||
           strcmp(name, "f USING INDEX flow_unseen") == 0 ||
           strcmp(name, "f USING INDEX flow_deleted") == 0;
}

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

/* The page that fits, as it was materialized, the spans that were chosen, one flow. */
static const char *const listed[] = {"s LEFT-JOIN", "n", "near", "bound", "own_flow"};
/* What was sampled, which the call bounds. */
static const char *const sampled[] = {"w", "f", "s", "sample", "place"};

static bool is_of_budgets(enum weft_stmt stmt)
{
    static const char *const prefix[] = {"budget",  "dimensions_", "charge", "cost",
                                         "ledger_", "sums_",       "settle"};
    for (size_t i = 0; i < WEFT_LEN(prefix); i++)
        if (strncmp(weft_stmts[stmt].name, prefix[i], strlen(prefix[i])) == 0)
            return true;
    return false;
}

/* The rows of the call, heads of a queue, dimensions of one budget, and indexes of what is on its
 * way out or in memory of every process anyway: never the ledger. */
static const char *const of_budgets[] = {"i",
                                         "item",
                                         "input",
                                         "u",
                                         "h",
                                         "o",
                                         "own",
                                         "page",
                                         "v",
                                         "CONSTANT ROW",
                                         "b USING INDEX budget_matches LEFT-JOIN",
                                         "budget USING INDEX budget_cancelling",
                                         "d USING INDEX budget_dimension_sweep"};

/* Rows that a statement itself made. */
static bool is_small(const char *name)
{
    static const char *const small[] = {"CONSTANT", "hop", "lanes", "page",  "start", "stop",
                                        "one",      "i",   "fit",   "c",     "g",     "m",
                                        "(sub",     "r",   "item",  "3-ROW", "w",     "x"};
    for (size_t i = 0; i < WEFT_LEN(small); i++) {
        size_t size = strlen(small[i]);
        if (strncmp(name, small[i], size) == 0 &&
            (small[i][0] == '(' || name[size] == '\0' || name[size] == ' '))
            return true;
    }
    return false;
}

/* What may be scanned: rows that the statement itself made, or a list of lanes and queues. */
static bool may_scan(enum weft_stmt stmt, const char *name)
{
    if (is_of_budgets(stmt))
        return is_one_of(name, of_budgets, WEFT_LEN(of_budgets)) || strncmp(name, "(sub", 4) == 0;
    if (stmt == WEFT_STMT_LIST && is_one_of(name, listed, WEFT_LEN(listed)))
        return true;
    if (stmt == WEFT_STMT_RETENTION_GROUPS && strstr(name, "COVERING INDEX outcome_retention"))
        return true; /* its first row */
    if (stmt == WEFT_STMT_CLAIM && strcmp(name, "p") == 0)
        return true; /* policies, of which there is a handful */
    if (is_passing_flow(name))
        return true;
    if (strcmp(name, "looked") == 0 || strcmp(name, "looked LEFT-JOIN") == 0)
        return true; /* the lanes of a look, as many as the call says */
    if (stmt == WEFT_STMT_NEXT_LEASE && strncmp(name, "d USING", 7) == 0 &&
        strstr(name, "INDEX draining_until"))
        return true; /* the earliest thousand, for a replica with a filter */
    if (stmt == WEFT_STMT_COMPLETION_DUE && strcmp(name, "completion") == 0)
        return true; /* the oldest, as many as the call says */
    if (stmt == WEFT_STMT_SAMPLE_CHECK && is_one_of(name, sampled, WEFT_LEN(sampled)))
        return true;
    return is_small(name);
}

/* The plan of every part of a statement; lines in the arena. */
static const char *plan_of(struct fixture *f, sqlite3 *db, enum weft_stmt stmt)
{
    const char *plan = "", *part = weft_stmts[stmt].sqlite;
    while (part && part[strspn(part, " \n;")]) {
        const char *tail = NULL;
        sqlite3_stmt *explain = NULL;
        const char *sql = weft_arena_printf(f->arena, "EXPLAIN QUERY PLAN %s", part);
        if (sqlite3_prepare_v2(db, sql, -1, &explain, &tail) != SQLITE_OK) {
            ok(false, "%s: %s", weft_stmts[stmt].name, sqlite3_errmsg(db));
            return plan;
        }
        while (sqlite3_step(explain) == SQLITE_ROW)
            plan = weft_arena_printf(f->arena, "%s%s\n", plan, sqlite3_column_text(explain, 3));
        (void)sqlite3_finalize(explain);
        part = tail;
    }
    return plan;
}

static void print_plan(const char *plan)
{
    for (const char *line = plan; *line; line += strcspn(line, "\n") + 1)
        printf("# %.*s\n", (int)strcspn(line, "\n"), line);
}

static void check_plan(struct fixture *f, sqlite3 *db, enum weft_stmt stmt, const char *where)
{
    const char *name = weft_stmts[stmt].name, *plan = plan_of(f, db, stmt);
    bool scans = false;
    for (const char *line = plan; *line; line += strcspn(line, "\n") + 1) {
        char word[64];
        (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(line, "\n"), line);
        scans = scans || (strncmp(word, "SCAN ", 5) == 0 && !may_scan(stmt, word + 5));
    }
    if (!ok(!scans, "%s, %s: no table is scanned", name, where))
        print_plan(plan);
    ok(!strstr(plan, "AUTOMATIC"), "%s, %s: no index is made for one call", name, where);
    for (size_t i = 0; i < WEFT_LEN(wanted); i++)
        if (wanted[i].stmt == stmt && !ok(strstr(plan, wanted[i].index) != NULL, "%s, %s: uses %s",
                                          name, where, wanted[i].index))
            print_plan(plan);
}

/* True when something is sorted that is not the bounded result of a subquery. */
static bool sorts_table(const char *plan)
{
    bool bounded = false, sorts = false;
    for (const char *line = plan; *line; line += strcspn(line, "\n") + 1) {
        sorts = sorts || (strncmp(line, "USE TEMP B-TREE FOR ORDER BY", 28) == 0 && !bounded);
        bounded = strncmp(line, "SCAN (subquery", 14) == 0;
    }
    return sorts;
}

/* A sort of what an index gives in order already would read the whole backlog for one claim. */
static void check_order(struct fixture *f, sqlite3 *db, const char *where)
{
    static const enum weft_stmt ordered[] = {WEFT_STMT_CLAIM,        WEFT_STMT_QUEUE_HEADS,
                                             WEFT_STMT_DUE_ATTEMPTS, WEFT_STMT_DUE_DEADLINES,
                                             WEFT_STMT_PROMOTE_DUE,  WEFT_STMT_CASCADE_LOOK,
                                             WEFT_STMT_FLOW_PAGE,    WEFT_STMT_FLOW_LAST,
                                             WEFT_STMT_FLOW_ROOTS,   WEFT_STMT_FLOW_LIVING};
    for (size_t i = 0; i < WEFT_LEN(ordered); i++) {
        const char *plan = plan_of(f, db, ordered[i]);
        if (!ok(!sorts_table(plan), "%s, %s: nothing is sorted", weft_stmts[ordered[i]].name,
                where))
            print_plan(plan);
    }
}

static void check_all(struct fixture *f, sqlite3 *db, const char *where)
{
    for (size_t i = 0; i < WEFT_LEN(hot); i++)
        check_plan(f, db, hot[i], where);
    check_order(f, db, where);
}

/* Every tenth is running, every tenth delayed, the others are ready, over 20 queues in 4 lanes. */
static const char fill[] =
    "BEGIN;"
    "INSERT INTO policy VALUES (1, '{}', 30000000, 60000000);"
    "WITH RECURSIVE s(q) AS (SELECT 1 UNION ALL SELECT q + 1 FROM s WHERE q < 20) "
    "INSERT INTO queue SELECT q, 1, 1 + q % 4, 'kind' || q, 1, 1 FROM s;"
    "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 50000) "
    "INSERT INTO execution SELECT i, CAST(printf('%016d', i) AS BLOB), i, 1 + i % 20, NULL, NULL, "
    "       'key-' || i, X'7b7d', NULL FROM s;"
    "INSERT INTO live SELECT num, created, CASE WHEN created % 10 < 2 THEN created END, "
    "       CASE WHEN created % 10 = 0 THEN created END, CASE WHEN created % 7 = 0 THEN created "
    "       END, NULL, NULL, queue, 1 + queue % 4, 1, 1, 1, 1, 0, 2, 0, 0, created % 3, "
    "       CASE created % 10 WHEN 0 THEN 4 WHEN 1 THEN 2 ELSE 1 END, "
    "       CASE WHEN num % 2 THEN 1 + num % 500 END, 0, NULL "
    "  FROM execution WHERE created <= 25000;"
    "INSERT INTO outcome SELECT num, created, created, NULL, NULL, NULL, queue, 1, 1, 1, 1, 0, 0, "
    "       0, 0, 7, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, -1 "
    "  FROM execution WHERE created > 25000;"
    "INSERT INTO attempt (id, epoch, replay, attempt, ended, held, answer, ended_at) "
    "SELECT e.id, 1, 0, 1, 4, 1, 1, o.finished FROM outcome o JOIN execution e ON e.num = o.num;"
    "INSERT INTO key SELECT 1, key, id, X'' FROM execution;"
    "INSERT INTO flow SELECT num, id, 1 + num % 3, NULL, NULL, NULL, 0, 1, 50, 1, NULL, 0, NULL, "
    "       0, NULL, 0, NULL, 0 FROM execution WHERE num <= 500;"
    "INSERT INTO node SELECT num, 1 + num % 500, 'node' || num, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, -1, "
    "NULL "
    "  FROM execution WHERE num % 2;"
    "INSERT INTO edge SELECT num, num + 500, 0 FROM node;"
    "INSERT INTO completion (flow, num, at) SELECT flow, num, num FROM node WHERE num < 5000;"
    "INSERT INTO cancel_group SELECT num, flow, 1, num, num % 4 = 1, 0 FROM node WHERE num < 2000;"
    "UPDATE flow SET state = 1, finished = num WHERE num < 400;"
    "COMMIT;";

/* A budget with 5,000 leases that run and 20,000 that ended, and 500 others with 10 each. */
static const char fill_budgets[] =
    "BEGIN;"
    "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 501) "
    "INSERT INTO budget (namespace, name, matches, on_hard, every_us, months, anchor, next_reset, "
    "                    began, period, cancelling) "
    "SELECT 1, 'b' || i, i % 2, 0, 0, 0, 0, CASE WHEN i % 3 THEN i END, 1, 2, i < 3 FROM s;"
    "INSERT INTO budget_dimension (budget, name, hard, soft, estimate, stale) "
    "SELECT id, 'tokens', 1000, 0, 1, id % 50 = 0 FROM budget;"
    "INSERT INTO ledger (id, epoch, dimension, period, reserved, total, earlier, settled, changed) "
    "SELECT id, 1, 1, 2, 0, 1, 0, CASE WHEN num > 5000 THEN num END, 1 "
    "  FROM execution WHERE num <= 25000;"
    "INSERT INTO ledger (id, epoch, dimension, period, reserved, total, earlier, settled, changed) "
    "SELECT id, 1, 2 + num % 500, 1 + num % 2, 0, 1, 0, 5, 1 "
    "  FROM execution WHERE num BETWEEN 30000 AND 35000;"
    "INSERT INTO cost SELECT id, 'tokens', 5 FROM execution WHERE num <= 10000;"
    "COMMIT;";

/* The driver's table in which a statement finds the rows of its call, and its function. */
static void add_input(struct fixture *f, sqlite3 *db)
{
    const char *columns = ", rest,";
    for (size_t s = 0; s < WEFT_STMT_COUNT; s++)
        for (size_t i = 0; i < weft_stmts[s].param_count; i++) {
            const char *column =
                weft_arena_printf(f->arena, " \"%s\",", weft_stmts[s].param[i].name);
            if (weft_stmts[s].param[i].column && !strstr(columns, column))
                columns = weft_arena_printf(f->arena, "%s%s", columns, column);
        }
    const char *sql = weft_arena_printf(f->arena, "CREATE TEMP TABLE input (%.*s)",
                                        (int)strlen(columns) - 3, columns + 2);
    ok(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "a table of rows");
    ok(weft_lite_add_functions(db) == SQLITE_OK, "the functions of the driver");
}

int main(void)
{
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    struct weft_conn *conn = fixture_open(&f);
    const struct weft_migration_set all = {.migration = weft_migrations,
                                           .count = weft_migration_count};
    sqlite3 *db = NULL;
    ok(weft_migrate(conn, &all, f.arena, &f.err) == WEFT_OK, "migrated");
    weft_conn_close(conn);
    if (ok(sqlite3_open(f.file, &db) == SQLITE_OK, "opened")) {
        add_input(&f, db);
        check_all(&f, db, "empty");
        char *why = NULL;
        ok(sqlite3_exec(db, fill, NULL, NULL, &why) == SQLITE_OK, "filled%s%s", why ? ": " : "",
           why ? why : "");
        ok(sqlite3_exec(db, fill_budgets, NULL, NULL, &why) == SQLITE_OK, "budgets%s%s",
           why ? ": " : "", why ? why : "");
        check_all(&f, db, "large, no statistics");
        ok(sqlite3_exec(db, "ANALYZE", NULL, NULL, NULL) == SQLITE_OK, "analysed");
        (void)sqlite3_close(db);
        /* Statistics are read when a connection opens. */
        ok(sqlite3_open(f.file, &db) == SQLITE_OK, "opened again");
        add_input(&f, db);
        check_all(&f, db, "large, with statistics");
    }
    (void)sqlite3_close(db);
    fixture_done(&f);
    return tap_done();
}
