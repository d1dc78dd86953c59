/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Plans are part of the design. Every hot statement of PostgreSQL is planned as the driver has it
 * planned (its texts, its pins, a generic plan), on empty tables and on large ones, with statistics
 * and without, and the plan must find its rows by the index that was made for it. With sequential
 * scans switched off a bad plan shows as an index that is walked from end to end, so a scan of a
 * large table needs a condition on its index, unless a LIMIT right above it stops it.
 */

#include "plans_fixture.h"

enum { CLAIM = 100, POLL_BUFFERS = 1000, SAMPLE = 100, NEXT_BUFFERS = 10000 };

static const struct rule rules[] = {
    {.stmt = WEFT_STMT_CLAIM,
     .index = {"live_ready", "live_pkey", "execution_pkey"},
     .sorts = true},
    {.stmt = WEFT_STMT_CLAIM_ABOVE,
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
    {.stmt = WEFT_STMT_NEXT_LEASE, .index = {"live_lease", "name_pkey", "draining_until"}},
    {.stmt = WEFT_STMT_NEXT_ATTEMPT, .index = {"live_attempt_deadline", "queue_pkey"}},
    {.stmt = WEFT_STMT_NEXT_DEADLINE, .index = {"live_deadline", "queue_pkey"}},
    {.stmt = WEFT_STMT_NEXT_DELAYED, .index = {"live_timer", "queue_pkey"}},
    {.stmt = WEFT_STMT_LEASE_LANES, .index = {"live_lease", "name_pkey"}},
    {.stmt = WEFT_STMT_LEASE_TURNS, .index = {"live_lease"}, .drives = true},
    {.stmt = WEFT_STMT_ATTEMPT_LANES, .index = {"live_attempt_lane", "name_pkey"}},
    {.stmt = WEFT_STMT_ATTEMPT_TURNS, .index = {"live_attempt_lane"}, .drives = true},
    {.stmt = WEFT_STMT_DEADLINE_LANES, .index = {"live_deadline_lane", "name_pkey"}},
    {.stmt = WEFT_STMT_DEADLINE_TURNS, .index = {"live_deadline_lane"}, .drives = true},
    {.stmt = WEFT_STMT_DELAYED_LANES, .index = {"live_delayed", "name_pkey"}},
    {.stmt = WEFT_STMT_DELAYED_TURNS, .index = {"live_delayed", "live_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_INBOX_PEEK, .index = {"inbox_pkey", "execution_pkey"}, .sorts = true},
    {.stmt = WEFT_STMT_INBOX_TURNS, .index = {"inbox_namespace", "execution_pkey"}, .sorts = true},
    {.stmt = WEFT_STMT_QUEUES_READY, .index = {"live_ready"}},
    {.stmt = WEFT_STMT_LANE_WALK, .index = {"live_ready", "queue_lane"}, .drives = true},
    {.stmt = WEFT_STMT_QUEUE_HEADS, .index = {"live_ready"}, .drives = true},
    {.stmt = WEFT_STMT_LANE_RUNNING, .index = {"live_lease", "draining_lane"}},
    {.stmt = WEFT_STMT_DRAINING_ADD},
    {.stmt = WEFT_STMT_DRAINING_DROP, .index = {"draining_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_DRAINING_EXPIRE, .index = {"draining_until", "draining_pkey", "queue_pkey"}},
    {.stmt = WEFT_STMT_WATCH_LOOK, .index = {"draining_untold"}},
    {.stmt = WEFT_STMT_WATCH_TAKE, .index = {"draining_untold", "draining_pkey"}},
    {.stmt = WEFT_STMT_LEASE_FACTS,
     .index = {"live_pkey", "outcome_pkey", "attempt_pkey", "draining_pkey"},
     .drives = true},
    {.stmt = WEFT_STMT_DESCRIBE,
     .index = {"live_pkey", "outcome_pkey", "execution_pkey"},
     .drives = true},
    {.stmt = WEFT_STMT_LIST,
     .index = {"span_pkey", "execution_pkey", "live_delayed", "suspension_lane",
               "suspension_escalated", "node_flow", "live_flow"},
     .sorts = true},
    {.stmt = WEFT_STMT_LIST_LIVING,
     .index = {"live_ready", "live_lease", "live_delayed", "suspension_lane", "live_flow",
               "flow_open"}},
    {.stmt = WEFT_STMT_SPANS_REMOVE, .index = {"span_pkey", "execution_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_ATTEMPTS, .index = {"attempt_pkey", "outcome_pkey"}, .sorts = true},
    {.stmt = WEFT_STMT_RESULT, .index = {"outcome_pkey"}},
    {.stmt = WEFT_STMT_PAYLOAD, .index = {"execution_pkey"}},
    {.stmt = WEFT_STMT_SAMPLE_BOUNDS, .index = {"execution_pkey", "attempt_pkey", "key_pkey"}},
    {.stmt = WEFT_STMT_SAMPLE_CHECK,
     .index = {"execution_pkey", "attempt_pkey", "key_pkey"},
     .sorts = true},
    {.stmt = WEFT_STMT_ORPHAN_ROWS,
     .index = {"attempt_pkey", "progress_pkey", "execution_pkey", "live_pkey"}},
    {.stmt = WEFT_STMT_ORPHAN_KEYS, .index = {"key_pkey", "execution_pkey", "outcome_pkey"}},
    {.stmt = WEFT_STMT_RETENTION_GROUPS, .index = {"outcome_retention", "queue_pkey"}},
    {.stmt = WEFT_STMT_RETENTION_TAKE,
     .index = {"outcome_retention", "execution_pkey"},
     .drives = true},
    {.stmt = WEFT_STMT_RETENTION_REMOVE,
     .index = {"outcome_pkey", "execution_pkey", "attempt_pkey", "progress_pkey", "key_pkey"}},
    {.stmt = WEFT_STMT_RETENTION_LEFT, .index = {"outcome_retention"}, .drives = true},
    {.stmt = WEFT_STMT_UNUSED_EXECUTIONS,
     .index = {"execution_pkey", "live_pkey", "outcome_pkey"},
     .sorts = true},
    {.stmt = WEFT_STMT_UNUSED_ATTEMPTS, .index = {"attempt_pkey"}},
    {.stmt = WEFT_STMT_UNUSED_DRAINING, .index = {"draining_pkey"}},
    {.stmt = WEFT_STMT_UNUSED_WORKERS, .index = {"worker_pkey"}},
    {.stmt = WEFT_STMT_UNUSED_PARTS, .index = {"queue_pkey"}},
    {.stmt = WEFT_STMT_UNUSED_NAMES, .index = {"name_pkey", "unused_pkey", "retired_pkey"}},
    {.stmt = WEFT_STMT_UNUSED_QUEUES, .index = {"queue_pkey", "unused_pkey", "retired_pkey"}},
    {.stmt = WEFT_STMT_DUE_SUSPENSIONS, .index = {"suspension_due", "live_pkey", "name_pkey"}},
    {.stmt = WEFT_STMT_NEXT_SUSPENSION, .index = {"suspension_due", "name_pkey"}},
    {.stmt = WEFT_STMT_SUSPENSION_LANES, .index = {"suspension_lane", "name_pkey"}},
    {.stmt = WEFT_STMT_SUSPENSION_TURNS, .index = {"suspension_lane", "live_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_WAITPOINTS_BOUND, .index = {"waitpoint_bound"}, .drives = true},
    {.stmt = WEFT_STMT_WAITPOINTS_NAMED, .index = {"waitpoint_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_WAITPOINT_EXPIRE, .index = {"waitpoint_expires", "waitpoint_pkey"}},
    {.stmt = WEFT_STMT_WAITPOINT_NEXT, .index = {"waitpoint_expires"}},
    {.stmt = WEFT_STMT_SUSPENSION_READ, .index = {"suspension_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_SUSPENSION_DROP, .index = {"suspension_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_SUSPENSION_RESUME, .index = {"suspension_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_WAITPOINTS_OPEN,
     .index = {"suspension_pkey", "waitpoint_bound"},
     .drives = true},
    {.stmt = WEFT_STMT_SIGNAL_ADD, .index = {"waitpoint_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_SIGNAL_HEADS, .index = {"signal_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_SIGNAL_KEYS, .index = {"signal_key"}, .drives = true},
    {.stmt = WEFT_STMT_SIGNALS_READ,
     .index = {"resumption_pkey", "waitpoint_bound", "signal_pkey"},
     .drives = true,
     .sorts = true},
    {.stmt = WEFT_STMT_KEY_TAKE, .sorts = true},
    {.stmt = WEFT_STMT_KEY_READ,
     .index = {"key_pkey", "live_pkey", "outcome_pkey"},
     .drives = true},
};

/* Statements that read everything by intent, and statements that run before there are tables. */
static bool is_exception(const char *name)
{
    static const char *const prefix[] = {"check_",        "counts",        "migration_",
                                         "schema_",       "version_",      "examine_",
                                         "worker_leases", "worker_expire", "lane_list"};
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
    "ALTER TABLE weft.edge SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.draining SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.suspension SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.resumption SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.waitpoint SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.signal SET (autovacuum_enabled = false);";

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

/* 20,000 leases that others ended, of 4 lanes and 100 workers, half of which are reported. */
static const char fill_draining[] =
    "INSERT INTO weft.draining (id, epoch, queue, lane, worker, until, ended, ended_at, told) "
    "SELECT ('00000000-0000-7000-9000-' || lpad(to_hex(i), 12, '0'))::uuid, 1, 1 + i % 20, "
    "       1 + (1 + i % 20) % 4, 1 + i % 100, i, 8, i, i % 2 = 0 "
    "  FROM generate_series(1, 20000) i;";

/*
 * 20,000 suspensions in 4 lanes, of which each second has a timeout, each with two waitpoints, of
 * which one is pending, and two signals; as many resumptions. The rows of `live` are others: no
 * plan depends on that.
 */
static const char fill_waiting[] =
    "INSERT INTO weft.suspension (id, epoch, since, due, lane, condition, on_timeout, delay) "
    "SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 1, i, "
    "       CASE WHEN i % 2 = 0 THEN i END, 1 + (1 + i % 20) % 4, '{}', 0, 0 "
    "  FROM generate_series(1, 20000) i;"
    "INSERT INTO weft.resumption (id, epoch, at, by) SELECT id, 1, since, 1 FROM weft.suspension;"
    "INSERT INTO weft.waitpoint (waitpoint, id, created, expires, epoch, bound, signals, key, "
    "                            replay, name) "
    "SELECT ('00000000-0000-7000-' || to_hex(45056 + b) || '-' || "
    "        lpad(to_hex(s.since), 12, '0'))::uuid, s.id, s.since, s.since, 1, b, 2, 1, 0, 'a' "
    "  FROM weft.suspension s, generate_series(0, 1) b;"
    "INSERT INTO weft.signal (id, waitpoint, n, at, effect, key) "
    "SELECT w.id, w.waitpoint, n, w.created, 2, 'key-' || n "
    "  FROM weft.waitpoint w, generate_series(1, 2) n;";

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
    if (begin_pinned(p) && prepare(p, "seen", WEFT_STMT_CLAIM))
        plan = explain(p, "ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF", arguments);
    (void)run(p, "ROLLBACK");
    (void)run(p, "DEALLOCATE seen");
    if (!plan)
        return 0;
    long buffers = buffers_of(plan);
    char rows[32];
    (void)snprintf(rows, sizeof(rows), "rows=%d loops=1", CLAIM);
    if (!ok(line_has(plan, rows), "a claim on %s takes %d", where, CLAIM))
        print_plan(plan);
    printf("# %s: %ld buffers\n", where, buffers);
    return buffers;
}

/*
 * The poll brings its own pins, so it is tried without the pins of the driver, as it runs: on a
 * large backlog it must look at the ends of indexes alone. The first time in a session it also
 * reads the catalog, to plan its parts: that is not measured.
 */
static void check_poll(struct plans *p, const char *where)
{
    const char *plan = NULL;
    if (run(p, "BEGIN") && prepare(p, "seen", WEFT_STMT_POLL) &&
        run(p, "EXECUTE seen (0, 1000, true)"))
        plan =
            explain(p, "ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF", "(0, 1000, true)");
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
            p->f.arena,
            "('%s', '%s', '%s', '%s', '%s', '%s', '%s', '%s', '%s', '%s', '%s', 1, 'key-5', %d, "
            "%d, NULL, 0, 255)",
            id, id, id, id, id, id, id, id, id, id, id, SAMPLE, SAMPLE);
        const char *plan = NULL;
        if (begin_pinned(p) && prepare(p, "seen", WEFT_STMT_SAMPLE_CHECK))
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
                                          WEFT_STMT_NEXT_DEADLINE, WEFT_STMT_NEXT_DELAYED,
                                          WEFT_STMT_NEXT_SUSPENSION};
    for (size_t i = 0; i < WEFT_LEN(next); i++) {
        const char *plan = NULL;
        if (begin_pinned(p) && prepare(p, "seen", next[i]))
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
    if (!fill_backlog(p, 10001, 100000) || !run_here(p, fill_ended) || !run_here(p, fill_flows) ||
        !run_here(p, fill_draining) || !run_here(p, fill_waiting))
        return;
    check_all(p, "large, no statistics");
    check_poll(p, "100,000 rows");
    check_sample(p, "300,000 rows");
    check_next(p, "100,000 rows");
    long large = claim_buffers(p, 2, "100,000 rows");
    (void)run_here(p,
                   "ANALYZE weft.live, weft.execution, weft.outcome, weft.attempt, weft.key, "
                   "weft.queue, weft.policy, weft.flow, weft.node, weft.edge, weft.draining, "
                   "weft.suspension, weft.resumption, weft.waitpoint, weft.signal");
    check_all(p, "large, with statistics");
    check_poll(p, "100,000 rows with statistics");
    check_sample(p, "300,000 rows with statistics");
    check_next(p, "100,000 rows with statistics");
    long analysed = claim_buffers(p, 3, "100,000 rows with statistics");
    ok(small > 0 && (double)large / (double)small < 1.5,
       "a claim costs the same with ten times the backlog: %ld and %ld buffers", small, large);
    ok(small > 0 && (double)analysed / (double)small < 1.5,
       "a claim costs the same with statistics: %ld and %ld buffers", small, analysed);
}

/* A plan that was made on empty tables is kept while they grow: the worst order of events. */
static void test_empty_then_full(struct plans *p)
{
    check_all(p, "empty");
    (void)run_here(p,
                   "ANALYZE weft.live, weft.execution, weft.outcome, weft.attempt, weft.key, "
                   "weft.flow, weft.node, weft.edge, weft.completion, weft.cancel_group, "
                   "weft.draining, weft.suspension, weft.resumption, weft.waitpoint, weft.signal");
    check_all(p, "empty, with statistics");
}

static void test_pg(void)
{
    struct plans p;
    if (plans_open(&p) && run_here(&p, no_autovacuum)) {
        test_empty_then_full(&p);
        test_large(&p);
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
