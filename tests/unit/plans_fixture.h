/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UNIT_PLANS_FIXTURE_H
#define WEFT_TESTS_UNIT_PLANS_FIXTURE_H

/* The plan of a statement as the driver prepares it on PostgreSQL, and the faults of the plan. */

#include "store_fixture.h"

#include "base/arena.h"
#include "base/buf.h"
#include "store/migrate.h"
#include "store/pg/pg.h"
#include "store/store.h"

enum { PLAN_MAX = 1 << 16 };

struct plans {
    struct fixture f;
    struct weft_conn *conn; /* for its texts: the statements with the schema in place */
    PGconn *pq;             /* for EXPLAIN, which the driver has no use for */
};

/* What a plan must and must not have. */
struct rule {
    enum weft_stmt stmt;
    const char *index[8]; /* each of these is used */
    bool drives;          /* the list of ids comes first and probes the rest, in its order */
    bool sorts;           /* it may sort, because what it sorts is bounded by the call */
};

static inline bool run(struct plans *p, const char *sql)
{
    PGresult *result = PQexec(p->pq, sql);
    ExecStatusType status = PQresultStatus(result);
    bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (!good)
        ok(false, "%.60s: %s", sql, PQerrorMessage(p->pq));
    PQclear(result);
    return good;
}

/* The same with the schema of this test in place of weft. */
static inline bool run_here(struct plans *p, const char *sql)
{
    return run(p, weft_pg_place_schema(sql, weft_pg_of(p->conn)->schema, p->f.arena));
}

/* ---- Reading a plan -------------------------------------------------------------------------- */

/* Prepares the statement in the transaction in hand, with the types the driver declares. */
static inline bool prepare(struct plans *p, const char *name, enum weft_stmt stmt)
{
    static const char *const word[] = {
        [WEFT_TYPE_BOOL] = "bool",   [WEFT_TYPE_I16] = "int2", [WEFT_TYPE_I32] = "int4",
        [WEFT_TYPE_I64] = "int8",    [WEFT_TYPE_ID] = "uuid",  [WEFT_TYPE_TEXT] = "text",
        [WEFT_TYPE_BYTES] = "bytea",
    };
    const struct weft_stmt_info *info = &weft_stmts[stmt];
    struct weft_buf sql;
    weft_buf_init(&sql, PLAN_MAX);
    weft_buf_printf(&sql, "PREPARE %s", name);
    for (size_t i = 0; i < info->param_count; i++)
        weft_buf_printf(&sql, "%s%s%s", i ? ", " : " (", word[info->param[i].type],
                        info->param[i].column ? "[]" : "");
    weft_buf_printf(&sql, "%s AS %s", info->param_count ? ")" : "",
                    weft_pg_of(p->conn)->text[stmt]);
    bool good = run(p, sql.data);
    weft_buf_done(&sql);
    return good;
}

static inline bool begin_pinned(struct plans *p)
{
    return run(p, "BEGIN") && run(p, weft_pg_of(p->conn)->text[WEFT_PG_SESSION]);
}

/* The lines of EXPLAIN of a call like "seen (1, 2)", in the arena; NULL when it failed. */
static inline const char *explain_call(struct plans *p, const char *options, const char *call)
{
    const char *sql = weft_arena_printf(p->f.arena, "EXPLAIN (%s) EXECUTE %s", options, call);
    PGresult *result = PQexec(p->pq, sql);
    struct weft_buf text;
    weft_buf_init(&text, PLAN_MAX);
    bool good =
        ok(PQresultStatus(result) == PGRES_TUPLES_OK, "explained%s", PQresultErrorMessage(result));
    for (int i = 0; i < PQntuples(result); i++)
        weft_buf_printf(&text, "%s\n", PQgetvalue(result, i, 0));
    const char *lines = good ? weft_arena_strdup(p->f.arena, text.data) : NULL;
    weft_buf_done(&text);
    PQclear(result);
    return lines;
}

static inline const char *explain(struct plans *p, const char *options, const char *arguments)
{
    return explain_call(p, options, weft_arena_printf(p->f.arena, "seen%s", arguments));
}

/* As many nulls as the statement has parameters. */
static inline const char *no_arguments(struct plans *p, enum weft_stmt stmt)
{
    const char *arguments = "";
    for (size_t i = 0; i < weft_stmts[stmt].param_count; i++)
        arguments = weft_arena_printf(p->f.arena, "%s%sNULL", arguments, i ? ", " : "(");
    if (weft_stmts[stmt].param_count)
        arguments = weft_arena_printf(p->f.arena, "%s)", arguments);
    return arguments;
}

static inline const char *plan_of(struct plans *p, enum weft_stmt stmt)
{
    const char *plan = NULL;
    if (begin_pinned(p) && prepare(p, "seen", stmt))
        plan = explain(p, "COSTS OFF", no_arguments(p, stmt));
    (void)run(p, "ROLLBACK");
    if (plan)
        (void)run(p, "DEALLOCATE seen");
    return plan;
}

static inline bool line_has(const char *line, const char *word)
{
    const char *found = strstr(line, word);
    return found && found < line + strcspn(line, "\n");
}

static inline bool is_large(const char *line)
{
    static const char *const table[] = {
        " on live",         " on execution", " on outcome",    " on attempt",    " on key",
        " on progress",     " on flow",      " on node",       " on edge",       " on completion",
        " on cancel_group", " on span",      " on suspension", " on resumption", " on waitpoint",
        " on signal",       " on ledger",    " on cost",       " on budget"};
    for (size_t i = 0; i < WEFT_LEN(table); i++)
        if (line_has(line, table[i]) && !line_has(line, " on budget_version"))
            return true;
    return false;
}

/*
 * Indexes that may be walked from end to end: each has a handful of rows, because what is in it is
 * on its way out. flow_backlog: flows whose members a scanner is cancelling. flow_unseen: flows
 * that are being written or removed. flow_deleted: flows that were deleted and are not yet removed.
 * budget_cancelling: budgets that a scanner is at work on. budget_dimension_sweep: dimensions whose
 * ledger is being removed. budget_matches: the rules that every process keeps in memory.
 */
static inline bool is_small(const char *line)
{
    static const char *const index[] = {" flow_backlog ",   " flow_unseen ",
                                        " flow_deleted ",   " budget_cancelling ",
                                        " budget_matches ", " budget_dimension_sweep "};
    for (size_t i = 0; i < WEFT_LEN(index); i++)
        if (line_has(line, index[i]))
            return true;
    return false;
}

/*
 * An index can also be searched by a column behind its first one, from end to end. False when a
 * condition on one of these indexes does not say what its first column is.
 */
static inline bool leads(const char *line, const char *condition)
{
    static const struct {
        const char *index, *first;
    } known[] = {
        {" flow_pkey ", "id"},
        {" flow_list ", "namespace"},
        {" flow_key ", "namespace"},
        {" flow_finished ", "state"},
        {" node_pkey ", "id"},
        {" node_flow ", "flow"},
        {" node_name ", "flow"},
        {" edge_upstream ", "upstream"},
        {" live_flow ", "flow"},
        {" live_delayed ", "lane"},
        {" live_lease ", "lane"},
        {" live_deadline_lane ", "lane"},
        {" live_attempt_lane ", "lane"},
        {" suspension_lane ", "lane"},
        {" waitpoint_bound ", "id"},
        {" signal_pkey ", "id"},
        {" signal_key ", "waitpoint"},
        {" flow_open ", "namespace"},
        {" span_pkey ", "namespace"},
        {" edge_downstream ", "downstream"},
        {" completion_pkey ", "seq"},
        {" completion_flow ", "flow"},
        {" cancel_group_pkey ", "id"},
        {" cancel_group_flow ", "flow"},
        {" cancel_group_due ", "waiting"},
        {" budget_name ", "namespace"},
        {" budget_reset ", "next_reset"},
        {" budget_dimension_name ", "budget"},
        {" ledger_pkey ", "id"},
        {" ledger_period ", "dimension"},
        {" ledger_open ", "dimension"},
        {" ledger_settled ", "settled"},
        {" cost_pkey ", "id"},
    };
    for (size_t i = 0; i < WEFT_LEN(known); i++) {
        char compared[32], row[32];
        (void)snprintf(compared, sizeof(compared), "(%s ", known[i].first);
        (void)snprintf(row, sizeof(row), "ROW(%s,", known[i].first);
        if (line_has(line, known[i].index))
            return line_has(condition, compared) || line_has(condition, row);
    }
    return true;
}

/*
 * True when a scan of a large table is bounded by nothing. A LIMIT bounds one that takes what
 * comes; one that looks for something else may pass by everything before it is full.
 */
static inline bool walks_all(const char *line, const char *above)
{
    if (!line_has(line, "Scan") || !is_large(line))
        return false;
    if (line_has(line, "Seq Scan") || line_has(line, "Bitmap"))
        return true;
    const char *next = line + strcspn(line, "\n");
    next += *next == '\n';
    if (line_has(line, "Tid Scan"))
        return !line_has(next, "TID Cond");
    if (line_has(next, "Index Cond"))
        return !leads(line, next);
    if (is_small(line))
        return false;
    return !line_has(above, "Limit") || line_has(next, "Filter");
}

static inline const char *first_scan(const char *plan)
{
    for (const char *line = plan; *line; line += strcspn(line, "\n") + 1)
        if (line_has(line, "Scan") && !line_has(line, "CTE Scan") &&
            !line_has(line, "Subquery Scan"))
            return line;
    return plan;
}

static inline void print_plan(const char *plan)
{
    for (const char *line = plan; *line; line += strcspn(line, "\n") + 1)
        printf("# %.*s\n", (int)strcspn(line, "\n"), line);
}

static inline void check_plan(struct plans *p, const struct rule *rule, const char *where)
{
    const char *name = weft_stmts[rule->stmt].name, *plan = plan_of(p, rule->stmt);
    if (!plan)
        return;
    bool walks = false, good;
    const char *above = "";
    for (const char *line = plan; *line; line += strcspn(line, "\n") + 1) {
        walks = walks || walks_all(line, above);
        above = line;
    }
    good = ok(!walks, "%s, %s: no table is walked", name, where);
    good &= ok(!strstr(plan, "Hash Join") && !strstr(plan, "Merge Join"), "%s, %s: joins probe",
               name, where);
    if (!rule->sorts)
        good &= ok(!strstr(plan, "Sort"), "%s, %s: nothing is sorted", name, where);
    for (size_t i = 0; i < WEFT_LEN(rule->index) && rule->index[i]; i++)
        good &= ok(strstr(plan, rule->index[i]) != NULL, "%s, %s: uses %s", name, where,
                   rule->index[i]);
    if (rule->drives)
        good &= ok(line_has(first_scan(plan), "Function Scan") && strstr(plan, "Nested Loop"),
                   "%s, %s: in the order of its list", name, where);
    if (!good)
        print_plan(plan);
}

/* ---- Running a plan -------------------------------------------------------------------------- */

/* How many buffers a plan of EXPLAIN (ANALYZE, BUFFERS) touched. */
static inline long buffers_of(const char *plan)
{
    const char *line = strstr(plan, "Buffers:"), *end = line ? line + strcspn(line, "\n") : NULL;
    long buffers = 0;
    for (const char *at = line; at && at < end; at++)
        if (strncmp(at, " hit=", 5) == 0 || strncmp(at, " read=", 6) == 0)
            buffers += strtol(strchr(at, '=') + 1, NULL, 10);
    return buffers;
}

/* A call of a statement, and how many buffers it may touch. */
struct kept_call {
    enum weft_stmt stmt;
    const char *arguments;
    long most;
};

static inline const char *kept_name(struct plans *p, size_t call)
{
    return weft_arena_printf(p->f.arena, "kept_%zu", call);
}

/* The first look at a plan makes it, and from then on the statement has it. */
static inline void keep_plans(struct plans *p, const struct kept_call *call, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (begin_pinned(p) && prepare(p, kept_name(p, i), call[i].stmt)) {
            const char *nulls = no_arguments(p, call[i].stmt);
            (void)explain_call(p, "COSTS OFF",
                               weft_arena_printf(p->f.arena, "%s%s", kept_name(p, i), nulls));
            (void)run(p, "ROLLBACK");
        }
}

/* Runs each call by its kept plan and rolls it back. */
static inline void run_kept(struct plans *p, const struct kept_call *call, size_t count,
                            const char *where)
{
    for (size_t i = 0; i < count; i++) {
        const char *plan = NULL, *name = weft_stmts[call[i].stmt].name;
        if (begin_pinned(p))
            plan = explain_call(
                p, "ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF",
                weft_arena_printf(p->f.arena, "%s%s", kept_name(p, i), call[i].arguments));
        (void)run(p, "ROLLBACK");
        long buffers = plan ? buffers_of(plan) : 0;
        if (!ok(buffers > 0 && buffers < call[i].most, "%s, %s: %ld buffers, less than %ld", name,
                where, buffers, call[i].most) &&
            plan)
            print_plan(plan);
    }
}

/* ---- A schema of its own --------------------------------------------------------------------- */

static inline bool plans_open(struct plans *p)
{
    fixture_init(&p->f, &weft_driver_pg);
    p->conn = fixture_open(&p->f);
    const struct weft_migration_set all = {.migration = weft_migrations,
                                           .count = weft_migration_count};
    bool good = ok(weft_migrate(p->conn, &all, p->f.arena, &p->f.err) == WEFT_OK, "migrated");
    p->pq = PQconnectdb(getenv("WEFT_TEST_PG")); /* NOLINT(concurrency-mt-unsafe): one thread */
    return ok(PQstatus(p->pq) == CONNECTION_OK, "connected") && good;
}

static inline void plans_close(struct plans *p)
{
    PQfinish(p->pq);
    weft_conn_close(p->conn);
    fixture_done(&p->f);
}

#endif
