/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Plans are part of the design. Every hot statement of PostgreSQL is planned as the driver has it
 * planned (its texts, its pins, a generic plan), on empty tables and on large ones, with statistics
 * and without, and the plan must find its rows by the index that was made for it. With sequential
 * scans switched off a bad plan shows as an index that is walked from end to end, so a scan of a
 * large table needs a condition on its index, unless a LIMIT right above it stops it.
 */

#include "base/buf.h"
#include "store/pg/pg.h"
#include "store_fixture.h"

enum { CLAIM = 100, PLAN_MAX = 1 << 16, POLL_BUFFERS = 1000, SAMPLE = 100, NEXT_BUFFERS = 10000 };

struct plans {
    struct fixture f;
    struct weft_conn *conn; /* for its texts: the statements with the schema in place */
    PGconn *pq;             /* for EXPLAIN, which the driver has no use for */
};

/* What a plan must and must not have. */
static const struct rule {
    enum weft_stmt stmt;
    const char *index[5]; /* each of these is used */
    bool drives;          /* the list of ids comes first and probes the rest, in its order */
    bool sorts;           /* it may sort, because what it sorts is bounded by the call */
} rules[] = {
    {.stmt = WEFT_STMT_CLAIM,
     .index = {"live_ready", "live_pkey", "execution_pkey"},
     .sorts = true},
    {.stmt = WEFT_STMT_LIVE_END, .index = {"live_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_RENEW, .index = {"live_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_LIVE_LOCK, .index = {"live_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_LIVE_PUT, .index = {"live_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_OUTCOME_LOCK, .index = {"outcome_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_OUTCOME_BACK, .index = {"outcome_pkey"}},
    {.stmt = WEFT_STMT_SUBMIT},
    {.stmt = WEFT_STMT_ATTEMPT_ADD},
    {.stmt = WEFT_STMT_PROGRESS_PUT},
    {.stmt = WEFT_STMT_DUE_LEASES, .index = {"live_lease", "name_pkey"}},
    {.stmt = WEFT_STMT_DUE_ATTEMPTS, .index = {"live_attempt_deadline", "queue_pkey"}},
    {.stmt = WEFT_STMT_DUE_DEADLINES, .index = {"live_deadline", "queue_pkey"}},
    {.stmt = WEFT_STMT_PROMOTE_DUE, .index = {"live_timer", "live_pkey", "queue_pkey"}},
    {.stmt = WEFT_STMT_NEXT_LEASE, .index = {"live_lease", "name_pkey"}},
    {.stmt = WEFT_STMT_NEXT_ATTEMPT, .index = {"live_attempt_deadline", "queue_pkey"}},
    {.stmt = WEFT_STMT_NEXT_DEADLINE, .index = {"live_deadline", "queue_pkey"}},
    {.stmt = WEFT_STMT_NEXT_DELAYED, .index = {"live_timer", "queue_pkey"}},
    {.stmt = WEFT_STMT_QUEUES_READY, .index = {"live_ready"}},
    {.stmt = WEFT_STMT_QUEUE_HEADS, .index = {"live_ready"}, .drives = true},
    {.stmt = WEFT_STMT_LANE_RUNNING, .index = {"live_lease"}},
    {.stmt = WEFT_STMT_LEASE_FACTS,
     .index = {"live_pkey", "outcome_pkey", "attempt_pkey"},
     .drives = true},
    {.stmt = WEFT_STMT_DESCRIBE,
     .index = {"live_pkey", "outcome_pkey", "execution_pkey"},
     .drives = true},
    {.stmt = WEFT_STMT_LIST,
     .index = {"live_pkey", "outcome_pkey", "execution_pkey", "node_flow", "live_flow"},
     .sorts = true},
    {.stmt = WEFT_STMT_ATTEMPTS, .index = {"attempt_pkey", "outcome_pkey"}, .sorts = true},
    {.stmt = WEFT_STMT_RESULT, .index = {"outcome_pkey"}},
    {.stmt = WEFT_STMT_PAYLOAD, .index = {"execution_pkey"}},
    {.stmt = WEFT_STMT_SAMPLE_BOUNDS, .index = {"execution_pkey", "attempt_pkey", "key_pkey"}},
    {.stmt = WEFT_STMT_SAMPLE_CHECK,
     .index = {"execution_pkey", "attempt_pkey", "key_pkey"},
     .sorts = true},
    {.stmt = WEFT_STMT_ORPHAN_ATTEMPTS, .index = {"attempt_pkey", "execution_pkey", "live_pkey"}},
    {.stmt = WEFT_STMT_ORPHAN_PROGRESS, .index = {"progress_pkey", "execution_pkey"}},
    {.stmt = WEFT_STMT_ORPHAN_KEYS, .index = {"key_pkey", "execution_pkey", "outcome_pkey"}},
    {.stmt = WEFT_STMT_RETENTION_GROUPS, .index = {"outcome_retention", "queue_pkey"}},
    {.stmt = WEFT_STMT_RETENTION_TAKE,
     .index = {"outcome_retention", "execution_pkey"},
     .drives = true},
    {.stmt = WEFT_STMT_RETENTION_REMOVE,
     .index = {"outcome_pkey", "execution_pkey", "attempt_pkey", "progress_pkey", "key_pkey"}},
    {.stmt = WEFT_STMT_RETENTION_LEFT, .index = {"outcome_retention"}, .drives = true},
    {.stmt = WEFT_STMT_KEY_TAKE, .sorts = true},
    {.stmt = WEFT_STMT_KEY_READ,
     .index = {"key_pkey", "live_pkey", "outcome_pkey"},
     .drives = true},
    {.stmt = WEFT_STMT_FLOW_READ, .index = {"flow_pkey"}},
    {.stmt = WEFT_STMT_FLOW_LIST, .index = {"flow_list"}},
    {.stmt = WEFT_STMT_FLOW_COUNTS, .index = {"node_", "live_pkey", "outcome_pkey"}, .sorts = true},
    {.stmt = WEFT_STMT_FLOW_PAGE, .index = {"node_flow", "live_pkey", "outcome_pkey"}},
    {.stmt = WEFT_STMT_UPSTREAMS, .index = {"edge_downstream", "node_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_UPSTREAM_RESULTS,
     .index = {"edge_downstream", "node_pkey", "outcome_pkey"},
     .drives = true,
     .sorts = true},
};

static bool run(struct plans *p, const char *sql)
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
static bool run_here(struct plans *p, const char *sql)
{
    return run(p, weft_pg_place_schema(sql, weft_pg_of(p->conn)->schema, p->f.arena));
}

/* ---- Reading a plan -------------------------------------------------------------------------- */

/* Prepares the statement in the transaction in hand, with the types the driver declares. */
static bool prepare(struct plans *p, enum weft_stmt stmt)
{
    static const char *const word[] = {
        [WEFT_TYPE_BOOL] = "bool",   [WEFT_TYPE_I16] = "int2", [WEFT_TYPE_I32] = "int4",
        [WEFT_TYPE_I64] = "int8",    [WEFT_TYPE_ID] = "uuid",  [WEFT_TYPE_TEXT] = "text",
        [WEFT_TYPE_BYTES] = "bytea",
    };
    const struct weft_stmt_info *info = &weft_stmts[stmt];
    struct weft_buf sql;
    weft_buf_init(&sql, PLAN_MAX);
    weft_buf_add_text(&sql, "PREPARE seen");
    for (size_t i = 0; i < info->param_count; i++)
        weft_buf_printf(&sql, "%s%s%s", i ? ", " : " (", word[info->param[i].type],
                        info->param[i].column ? "[]" : "");
    weft_buf_printf(&sql, "%s AS %s", info->param_count ? ")" : "",
                    weft_pg_of(p->conn)->text[stmt]);
    bool good = run(p, sql.data);
    weft_buf_done(&sql);
    return good;
}

static bool begin_pinned(struct plans *p)
{
    return run(p, "BEGIN") && run(p, weft_pg_of(p->conn)->text[WEFT_PG_PIN_WRITE]);
}

/* The lines of EXPLAIN, in the arena; NULL when it failed. */
static const char *explain(struct plans *p, const char *options, const char *arguments)
{
    const char *sql =
        weft_arena_printf(p->f.arena, "EXPLAIN (%s) EXECUTE seen%s", options, arguments);
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

static const char *plan_of(struct plans *p, enum weft_stmt stmt)
{
    const char *arguments = "";
    for (size_t i = 0; i < weft_stmts[stmt].param_count; i++)
        arguments = weft_arena_printf(p->f.arena, "%s%sNULL", arguments, i ? ", " : "(");
    if (weft_stmts[stmt].param_count)
        arguments = weft_arena_printf(p->f.arena, "%s)", arguments);
    const char *plan = NULL;
    if (begin_pinned(p) && prepare(p, stmt))
        plan = explain(p, "COSTS OFF", arguments);
    (void)run(p, "ROLLBACK");
    if (plan)
        (void)run(p, "DEALLOCATE seen");
    return plan;
}

static bool line_has(const char *line, const char *word)
{
    const char *found = strstr(line, word);
    return found && found < line + strcspn(line, "\n");
}

static bool is_large(const char *line)
{
    static const char *const table[] = {" on live",    " on execution", " on outcome",
                                        " on attempt", " on key",       " on progress",
                                        " on flow",    " on node",      " on edge"};
    for (size_t i = 0; i < WEFT_LEN(table); i++)
        if (line_has(line, table[i]))
            return true;
    return false;
}

/* True when a scan of a large table is bounded by nothing. */
static bool walks_all(const char *line, const char *above)
{
    if (!line_has(line, "Scan") || !is_large(line))
        return false;
    if (line_has(line, "Seq Scan") || line_has(line, "Bitmap"))
        return true;
    const char *next = line + strcspn(line, "\n");
    next += *next == '\n';
    return !line_has(next, "Index Cond") && !line_has(above, "Limit");
}

static const char *first_scan(const char *plan)
{
    for (const char *line = plan; *line; line += strcspn(line, "\n") + 1)
        if (line_has(line, "Scan") && !line_has(line, "CTE Scan") &&
            !line_has(line, "Subquery Scan"))
            return line;
    return plan;
}

static void print_plan(const char *plan)
{
    for (const char *line = plan; *line; line += strcspn(line, "\n") + 1)
        printf("# %.*s\n", (int)strcspn(line, "\n"), line);
}

static void check_plan(struct plans *p, const struct rule *rule, const char *where)
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

/* Those that look at everything by intent, and those that run before there are tables. */
static bool is_exception(const char *name)
{
    static const char *const prefix[] = {"check_",   "counts",   "migration_",    "schema_",
                                         "version_", "examine_", "worker_leases", "worker_expire"};
    for (size_t i = 0; i < WEFT_LEN(prefix); i++)
        if (strncmp(name, prefix[i], strlen(prefix[i])) == 0)
            return true;
    return false;
}

/* Every statement, also one that was added after this table was written. */
static void check_all(struct plans *p, const char *where)
{
    for (size_t stmt = 0; stmt < WEFT_STMT_COUNT; stmt++) {
        struct rule rule = {.stmt = (enum weft_stmt)stmt, .sorts = true};
        for (size_t i = 0; i < WEFT_LEN(rules); i++)
            if (rules[i].stmt == (enum weft_stmt)stmt)
                rule = rules[i];
        if (weft_stmts[stmt].pg && !is_exception(weft_stmts[stmt].name))
            check_plan(p, &rule, where);
    }
}

/* ---- Large tables ---------------------------------------------------------------------------- */

/* Statistics must come when the test says so, not from a helpful server. */
static const char no_autovacuum[] =
    "ALTER TABLE weft.live SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.execution SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.outcome SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.attempt SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.key SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.flow SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.node SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.edge SET (autovacuum_enabled = false);";

static const char fill_names[] =
    "INSERT INTO weft.policy (id, text, lease_us, timeout_us) OVERRIDING SYSTEM VALUE "
    "VALUES (1, '{}', 30000000, 60000000);"
    "INSERT INTO weft.queue (id, namespace, lane, kind, route, tenant) OVERRIDING SYSTEM VALUE "
    "SELECT q, 1, 1 + q % 4, 'kind' || q, 1, 1 FROM generate_series(1, 20) q;";

/* Every tenth is running, every tenth delayed, the others are ready, over 20 queues in 4 lanes. */
static const char fill_live[] =
    "INSERT INTO weft.execution (id, created, queue, payload, key) "
    "SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, i, 1 + i %% 20, '{}', "
    "       'key-' || i FROM generate_series(%d, %d) i;"
    "INSERT INTO weft.live (id, ord, due, attempt_deadline, deadline, started, claimed, queue, "
    "                       lane, policy, worker, epoch, attempt, forgiven, size, lost, replays, "
    "                       priority, state) "
    "SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, i, "
    "       CASE WHEN s.state IN (2, 4) THEN i END, CASE WHEN s.state = 4 THEN i END, "
    "       CASE WHEN i %% 7 = 0 THEN i END, CASE WHEN s.state = 4 THEN i END, "
    "       CASE WHEN s.state = 4 THEN i END, 1 + i %% 20, 1 + (1 + i %% 20) %% 4, 1, "
    "       CASE WHEN s.state = 4 THEN 1 END, CASE WHEN s.state = 4 THEN 1 ELSE 0 END, 1, 0, 2, "
    "       0, 0, i %% 3, s.state "
    "  FROM generate_series(%d, %d) i, "
    "       LATERAL (SELECT CASE (i / 20) %% 10 WHEN 0 THEN 4 WHEN 1 THEN 2 ELSE 1 END AS state) "
    "s;";

static const char fill_ended[] =
    "INSERT INTO weft.execution (id, created, queue, payload) "
    "SELECT ('00000000-0000-7000-9000-' || lpad(to_hex(i), 12, '0'))::uuid, i, 1 + i % 20, '{}' "
    "  FROM generate_series(1, 200000) i;"
    "INSERT INTO weft.outcome (id, finished, ord, queue, policy, epoch, attempt, forgiven, lost, "
    "                          replays, priority, state, ended, held) "
    "SELECT id, created, created, queue, 1, 1, 1, 0, 0, 0, 0, 7, 1, true FROM weft.execution "
    " WHERE id > '00000000-0000-7000-9000-000000000000';"
    "INSERT INTO weft.attempt (id, epoch, replay, attempt, ended, held, answer, ended_at) "
    "SELECT id, 1, 0, 1, 4, true, 1, finished FROM weft.outcome WHERE ord % 2 = 0;"
    "INSERT INTO weft.key (namespace, key, id, fingerprint) "
    "SELECT 1, e.key, e.id, '' FROM weft.execution e WHERE e.key IS NOT NULL;";

/* 500 flows of 400 members that ended, each after the one before it. */
static const char fill_flows[] =
    "INSERT INTO weft.flow (id, namespace, state, revision, nodes, created, cancel, backlog) "
    "SELECT ('00000000-0000-7000-a000-' || lpad(to_hex(i), 12, '0'))::uuid, 1 + i % 3, 0, 1, 400, "
    "       i, 0, false FROM generate_series(0, 499) i;"
    "INSERT INTO weft.node (id, flow, name, policy, k, let_run, total, succeeded, failed, fired, "
    "                       delay, run_at) "
    "SELECT id, ('00000000-0000-7000-a000-' || lpad(to_hex(ord % 500), 12, '0'))::uuid, "
    "       'node' || ord, 0, 0, true, 1, 1, 0, 1, 0, 0 FROM weft.outcome;"
    "INSERT INTO weft.edge (upstream, downstream, state) "
    "SELECT id, ('00000000-0000-7000-9000-' || lpad(to_hex(ord + 500), 12, '0'))::uuid, 1 "
    "  FROM weft.outcome;";

static bool fill_backlog(struct plans *p, int from, int upto)
{
    return run_here(p, weft_arena_printf(p->f.arena, fill_live, from, upto, from, upto));
}

/* How many buffers a claim of CLAIM rows of a queue touches; it is rolled back. */
static long claim_buffers(struct plans *p, int queue, const char *where)
{
    const char *arguments = weft_arena_printf(
        p->f.arena,
        "(9000000, '{0}', '{%d}', '{%d}', '{f}', '{1}', '{NULL}', '{0}', '{%d}', '{8388608}')",
        queue, 1 + queue % 4, CLAIM);
    const char *plan = NULL;
    if (begin_pinned(p) && prepare(p, WEFT_STMT_CLAIM))
        plan = explain(p, "ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF", arguments);
    (void)run(p, "ROLLBACK");
    (void)run(p, "DEALLOCATE seen");
    if (!plan)
        return 0;
    long buffers = 0;
    const char *line = strstr(plan, "Buffers:"), *end = line ? line + strcspn(line, "\n") : NULL;
    for (const char *at = line; at && at < end; at++)
        if (strncmp(at, " hit=", 5) == 0 || strncmp(at, " read=", 6) == 0)
            buffers += strtol(strchr(at, '=') + 1, NULL, 10);
    char rows[32];
    (void)snprintf(rows, sizeof(rows), "rows=%d loops=1", CLAIM);
    if (!ok(line_has(plan, rows), "a claim on %s takes %d", where, CLAIM))
        print_plan(plan);
    printf("# %s: %ld buffers\n", where, buffers);
    return buffers;
}

/*
 * The poll brings its own pins, so it is tried without those of the driver, as it runs: on a large
 * backlog it must look at the ends of indexes alone.
 */
static void check_poll(struct plans *p, const char *where)
{
    const char *plan = NULL;
    if (run(p, "BEGIN") && prepare(p, WEFT_STMT_POLL))
        plan = explain(p, "ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF", "");
    (void)run(p, "ROLLBACK");
    (void)run(p, "DEALLOCATE seen");
    const char *hit = plan ? strstr(plan, "hit=") : NULL;
    long buffers = hit ? strtol(hit + 4, NULL, 10) : -1;
    ok(buffers > 0 && buffers < POLL_BUFFERS, "a poll on %s touches %ld buffers", where, buffers);
}

/*
 * A sample costs a number of probes for each row it looks at, wherever it begins and however much
 * there is. The number is generous: five tables, each up to three pages deep, and their heaps.
 */
static void check_sample(struct plans *p, const char *where)
{
    static const char *const place[] = {"00000000-0000-7000-8000-000000000001",
                                        "00000000-0000-7000-9000-000000010000",
                                        "ffffffff-ffff-7fff-bfff-ffffffffffff"};
    for (size_t i = 0; i < WEFT_LEN(place); i++) {
        const char *id = place[i];
        const char *arguments = weft_arena_printf(
            p->f.arena, "('%s', '%s', '%s', '%s', '%s', 1, 'key-5', %d, %d, NULL, 0, 255)", id, id,
            id, id, id, SAMPLE, SAMPLE);
        const char *plan = NULL;
        if (begin_pinned(p) && prepare(p, WEFT_STMT_SAMPLE_CHECK))
            plan = explain(p, "ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF", arguments);
        (void)run(p, "ROLLBACK");
        (void)run(p, "DEALLOCATE seen");
        const char *hit = plan ? strstr(plan, "hit=") : NULL;
        long buffers = hit ? strtol(hit + 4, NULL, 10) : -1;
        if (!ok(buffers > 0 && buffers < 60L * SAMPLE, "a sample of %d from %s of %s: %ld buffers",
                SAMPLE, id, where, buffers) &&
            plan)
            print_plan(plan);
    }
}

/*
 * A replica of a namespace without work asks when it is due: it may walk over what others have to
 * do, of which there are thousands, but not without end.
 */
static void check_next(struct plans *p, const char *where)
{
    static const enum weft_stmt next[] = {WEFT_STMT_NEXT_LEASE, WEFT_STMT_NEXT_ATTEMPT,
                                          WEFT_STMT_NEXT_DEADLINE, WEFT_STMT_NEXT_DELAYED};
    for (size_t i = 0; i < WEFT_LEN(next); i++) {
        const char *plan = NULL;
        if (begin_pinned(p) && prepare(p, next[i]))
            plan = explain(p, "ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF",
                           "(0, 1000, 99, 0, 127)");
        (void)run(p, "ROLLBACK");
        (void)run(p, "DEALLOCATE seen");
        const char *hit = plan ? strstr(plan, "hit=") : NULL;
        long buffers = hit ? strtol(hit + 4, NULL, 10) : -1;
        ok(buffers > 0 && buffers < NEXT_BUFFERS, "%s on %s touches %ld buffers",
           weft_stmts[next[i]].name, where, buffers);
    }
}

static void test_large(struct plans *p)
{
    if (!run_here(p, fill_names) || !fill_backlog(p, 1, 10000))
        return;
    long small = claim_buffers(p, 1, "10,000 rows");
    if (!fill_backlog(p, 10001, 100000) || !run_here(p, fill_ended) || !run_here(p, fill_flows))
        return;
    check_all(p, "large, no statistics");
    check_poll(p, "100,000 rows");
    check_sample(p, "300,000 rows");
    check_next(p, "100,000 rows");
    long large = claim_buffers(p, 2, "100,000 rows");
    (void)run_here(p,
                   "ANALYZE weft.live, weft.execution, weft.outcome, weft.attempt, weft.key, "
                   "weft.queue, weft.policy, weft.flow, weft.node, weft.edge");
    check_all(p, "large, with statistics");
    check_poll(p, "100,000 rows with statistics");
    check_sample(p, "300,000 rows with statistics");
    check_next(p, "100,000 rows with statistics");
    long analysed = claim_buffers(p, 3, "100,000 rows with statistics");
    ok(small > 0 && (double)large / (double)small < 1.5,
       "a claim costs the same with ten times the backlog: %ld and %ld buffers", small, large);
    ok(small > 0 && (double)analysed / (double)small < 1.5,
       "and with statistics: %ld and %ld buffers", small, analysed);
}

/* A plan that was made on empty tables is kept while they grow: the worst order of events. */
static void test_empty_then_full(struct plans *p)
{
    check_all(p, "empty");
    (void)run_here(p, "ANALYZE weft.live, weft.execution, weft.outcome, weft.attempt, weft.key");
    check_all(p, "empty, with statistics");
}

static void test_pg(void)
{
    struct plans p;
    fixture_init(&p.f, &weft_driver_pg);
    p.conn = fixture_open(&p.f);
    const struct weft_migration_set all = {.migration = weft_migrations,
                                           .count = weft_migration_count};
    ok(weft_migrate(p.conn, &all, p.f.arena, &p.f.err) == WEFT_OK, "migrated");
    p.pq = PQconnectdb(getenv("WEFT_TEST_PG")); /* NOLINT(concurrency-mt-unsafe): one thread */
    if (ok(PQstatus(p.pq) == CONNECTION_OK, "connected") && run_here(&p, no_autovacuum)) {
        test_empty_then_full(&p);
        test_large(&p);
    }
    PQfinish(p.pq);
    weft_conn_close(p.conn);
    fixture_done(&p.f);
}

int main(void)
{
    if (fixture_has_pg())
        test_pg();
    else
        tap_skip("WEFT_TEST_PG is not set");
    return tap_done();
}
