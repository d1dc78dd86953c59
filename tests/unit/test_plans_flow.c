/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plans of flows on PostgreSQL. A prepared statement keeps the plan that was made when it first
 * ran, which may have been on empty tables: each must be good whatever the tables held then. So the
 * statements are prepared on empty tables, with statistics that say so, and run on large ones.
 */

#include "plans_fixture.h"

/* The texts below have ids in short: F: of a flow, B: of a node of the large one, S: of a small. */
#define ZERO "00000000-0000-0000-0000-000000000000"
#define LAST "ffffffff-ffff-ffff-ffff-ffffffffffff"
#define F(n) "00000000-0000-7000-a000-00000000" n
#define B(n) "00000000-0000-7000-8000-00000000" n
#define S(n) "00000000-0000-7000-9000-00000000" n

static const struct rule rules[] = {
    {.stmt = WEFT_STMT_FLOW_OF_KEY, .index = {"flow_key"}, .drives = true},
    {.stmt = WEFT_STMT_FLOW_MEMBERS, .index = {"node_flow"}},
    {.stmt = WEFT_STMT_FLOW_LOCK, .index = {"flow_pkey"}},
    {.stmt = WEFT_STMT_FLOW_HOLD, .index = {"flow_pkey"}},
    {.stmt = WEFT_STMT_CASCADE_LOOK,
     .index = {"completion_flow", "live_pkey", "outcome_pkey", "edge_upstream", "node_pkey"},
     .drives = true},
    {.stmt = WEFT_STMT_FLOW_ROOTS, .index = {"node_flow", "completion_pkey"}},
    {.stmt = WEFT_STMT_EDGE_PUT, .index = {"edge_"}, .drives = true},
    {.stmt = WEFT_STMT_NODE_PUT, .index = {"node_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_NODE_MARK, .index = {"node_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_NODES_REPLAY, .index = {"node_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_NODES_WIDEN, .index = {"node_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_LIVE_WIDEN, .index = {"live_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_EDGES_THERE, .index = {"edge_"}, .drives = true},
    {.stmt = WEFT_STMT_FLOW_EDGE_COUNT, .index = {"node_flow"}},
    {.stmt = WEFT_STMT_EDGE_CIRCLE, .index = {"edge_downstream", "node_pkey"}},
    {.stmt = WEFT_STMT_JOINS_READ, .index = {"node_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_EDGES_AMONG, .index = {"edge_downstream"}},
    {.stmt = WEFT_STMT_UPSTREAM_FAILED, .index = {"edge_downstream", "node_pkey", "outcome_pkey"}},
    {.stmt = WEFT_STMT_COMPLETION_DONE, .index = {"completion_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_COMPLETION_CURSOR, .index = {"completion_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_COMPLETION_ANY, .index = {"completion_flow"}},
    {.stmt = WEFT_STMT_FLOW_DUE, .index = {"completion_flow", "cancel_group_flow", "live_flow"}},
    {.stmt = WEFT_STMT_GROUPS_TAKE,
     .index = {"cancel_group_flow", "completion_anew"},
     .drives = true},
    {.stmt = WEFT_STMT_FLOW_OVER, .index = {"node_bad", "live_flow", "completion_flow"}},
    {.stmt = WEFT_STMT_FLOWS_OF, .index = {"node_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_FLOW_LIVING, .index = {"live_flow", "flow_pkey"}},
    {.stmt = WEFT_STMT_FLOW_COUNT, .index = {"flow_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_NODES_NAMED, .index = {"node_name", "outcome_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_FLOW_LAST, .index = {"node_flow"}},
    {.stmt = WEFT_STMT_FLOW_READ, .index = {"flow_pkey", "live_flow", "completion_flow"}},
    {.stmt = WEFT_STMT_FLOW_LIST, .index = {"flow_list"}},
    {.stmt = WEFT_STMT_FLOW_COUNTS, .index = {"node_", "live_pkey", "outcome_pkey"}, .sorts = true},
    {.stmt = WEFT_STMT_FLOW_PAGE, .index = {"node_flow", "live_pkey", "outcome_pkey"}},
    {.stmt = WEFT_STMT_UPSTREAMS, .index = {"edge_downstream", "node_pkey"}, .drives = true},
    {.stmt = WEFT_STMT_UPSTREAM_RESULTS,
     .index = {"edge_downstream", "node_pkey", "live_pkey", "outcome_pkey"},
     .drives = true,
     .sorts = true},
    {.stmt = WEFT_STMT_COMPLETION_DUE, .index = {"completion_pkey", "flow_pkey"}, .sorts = true},
    {.stmt = WEFT_STMT_GROUPS_DUE,
     .index = {"cancel_group_due", "node_pkey", "flow_pkey"},
     .sorts = true},
    {.stmt = WEFT_STMT_GROUPS_LOOK,
     .index = {"cancel_group_pkey", "flow_pkey", "node_pkey", "edge_downstream", "live_pkey"}},
    {.stmt = WEFT_STMT_GROUPS_ORPHANED,
     .index = {"cancel_group_pkey", "flow_pkey", "node_pkey"},
     .sorts = true},
    {.stmt = WEFT_STMT_FLOWS_BACKLOG, .index = {"flow_backlog"}},
    {.stmt = WEFT_STMT_FLOWS_UNFINISHED, .index = {"flow_unseen", "flow_pkey"}, .sorts = true},
    {.stmt = WEFT_STMT_FLOWS_KEPT, .index = {"flow_finished", "flow_pkey"}, .sorts = true},
    {.stmt = WEFT_STMT_FLOWS_DELETED, .index = {"flow_deleted", "flow_pkey"}, .sorts = true},
    {.stmt = WEFT_STMT_FLOWS_REMOVING, .index = {"flow_unseen"}},
    {.stmt = WEFT_STMT_PURGE_TAKE, .index = {"flow_", "node_flow"}},
    {.stmt = WEFT_STMT_PURGE_HINTS,
     .index = {"completion_flow", "cancel_group_flow"},
     .sorts = true},
    {.stmt = WEFT_STMT_PURGE_EDGES, .index = {"edge_upstream"}},
    {.stmt = WEFT_STMT_PURGE_MEMBERS,
     .index = {"edge_upstream", "live_pkey", "outcome_pkey", "attempt_pkey"}},
    {.stmt = WEFT_STMT_PURGE_FLOWS,
     .index = {"flow_pkey", "node_flow", "completion_flow", "cancel_group_flow"}},
    {.stmt = WEFT_STMT_PURGE_LEFT, .index = {"node_flow"}},
};

/* Calls and how many buffers each may touch: some for each row it is about, none for the others. */
static const struct kept_call calls[] = {
    {WEFT_STMT_FLOW_READ, "('" F("0bb8") "')", 10},
    {WEFT_STMT_FLOW_LOCK, "('{" F("0bb8") "," F("0000") "}')", 30},
    {WEFT_STMT_FLOW_LIST, "(1, '" LAST "', 50)", 200},
    {WEFT_STMT_FLOW_MEMBERS, "('" F("0bb8") "', '" ZERO "', 1000)", 30},
    {WEFT_STMT_FLOW_PAGE, "('" F("0bb8") "', '" ZERO "', 1000)", 300},
    {WEFT_STMT_FLOW_PAGE, "('" F("0000") "', '" B("c350") "', 100)", 3000},
    {WEFT_STMT_FLOW_LAST, "('" F("0bb8") "')", 10},
    {WEFT_STMT_FLOW_COUNTS, "('" F("0bb8") "')", 150},
    {WEFT_STMT_FLOW_ROOTS, "(0, '" F("0bb8") "', 1000)", 30},
    /* From node 90,000 on: as many as are asked for, whichever of them are roots. */
    {WEFT_STMT_FLOW_ROOTS, "(1, '" F("0000") "', 100)", 200},
    {WEFT_STMT_FLOW_LIVING, "('" F("1100") "', 1000)", 30},
    /* Of 50,001 living members 10,000 lie behind the mark. */
    {WEFT_STMT_FLOW_LIVING, "('" F("0000") "', 100)", 200},
    {WEFT_STMT_FLOW_COUNT, "('{" F("1100") "}', '{1}')", 30},
    {WEFT_STMT_FLOW_OVER, "('{" F("0bb8") "}')", 20},
    {WEFT_STMT_FLOWS_OF, "('{" S("bb85") "}')", 10},
    {WEFT_STMT_NODES_NAMED, "('" F("0000") "', '{node77777,node99999}')", 30},
    {WEFT_STMT_UPSTREAMS, "('{" S("bb85") "," S("bb86") "}')", 30},
    {WEFT_STMT_UPSTREAM_RESULTS, "('{" S("bb85") "," S("bb86") "}', 1000, 1000)", 60},
    {WEFT_STMT_EDGE_PUT, "('{" S("bb85") "}', '{" S("bb86") "}', '{2}')", 30},
    {WEFT_STMT_NODE_PUT, "('{" S("bb85") "}', '{1}', '{0}', '{2}')", 30},
    {WEFT_STMT_NODE_MARK, "('{" S("bb85") "}', '{true}')", 30},
    {WEFT_STMT_COMPLETION_ANY, "('{" F("1100") "," F("0bb8") "}')", 20},
    {WEFT_STMT_COMPLETION_DONE, "('{1000,2000}')", 20},
    {WEFT_STMT_COMPLETION_CURSOR, "('{2000}', '{" ZERO "}')", 20},
    {WEFT_STMT_CASCADE_LOOK, "('{" F("1100") "}', 1000, 1000)", 100},
    /* Of the 100,000 edges of its completion 90,000 lie behind the cursor. */
    {WEFT_STMT_CASCADE_LOOK, "('{" F("0000") "}', 1000, 1000)", 8000},
    {WEFT_STMT_GROUPS_TAKE, "('{" F("1100") "}', 1000)", 20},
    {WEFT_STMT_FLOW_DUE, "('{" F("1100") "," F("0bb8") "}')", 40},
    {WEFT_STMT_FLOW_READ, "('" F("0bb8") "')", 20},
    {WEFT_STMT_EDGES_AMONG, "('{" S("bb85") "," S("bb86") "}')", 30},
    {WEFT_STMT_UPSTREAM_FAILED, "('{" S("bb85") "," S("bb86") "}')", 40},
    {WEFT_STMT_COMPLETION_DUE, "(9000000, 100, 100, 0, 0, 255)", 500},
    {WEFT_STMT_GROUPS_DUE, "(9000000, 100, 100, 0, 0, 255)", 1000},
    {WEFT_STMT_GROUPS_LOOK, "('" ZERO "', 20, 0, 0, 255)", 500},
    {WEFT_STMT_GROUPS_ORPHANED, "('" ZERO "', 20)", 300},
    {WEFT_STMT_FLOWS_BACKLOG, "(100, 0, 0, 255)", 100},
    {WEFT_STMT_FLOWS_UNFINISHED, "(9000000, 100, 0, 0, 255)", 1000},
    {WEFT_STMT_FLOWS_KEPT, "('{1}', '{9000000}', 20, 0, 0, 255)", 1000},
    {WEFT_STMT_FLOWS_DELETED, "(100, 0, 0, 255)", 1000},
    {WEFT_STMT_FLOWS_REMOVING, "(100, 0, 0, 255)", 100},
    {WEFT_STMT_PURGE_TAKE, "('{" F("0bb8") "}', 1000)", 100},
    {WEFT_STMT_PURGE_TAKE, "('{" F("0000") "}', 100)", 1000},
    {WEFT_STMT_PURGE_HINTS, "('{" F("0bb8") "}', 1000)", 100},
    /* The first member has 99,998 edges. */
    {WEFT_STMT_PURGE_EDGES, "('{" B("0000") "," S("bb85") "}', 100)", 1000},
    {WEFT_STMT_PURGE_MEMBERS, "('{" S("bb85") "," S("bb86") "}', '{1,1}')", 500},
    {WEFT_STMT_PURGE_FLOWS, "('{" F("138f") "}')", 50},
    {WEFT_STMT_PURGE_LEFT, "('{" F("0000") "}', 100)", 200},
};

/* Statistics must come when the test says so, not from a helpful server. */
static const char no_autovacuum[] =
    "ALTER TABLE weft.live SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.execution SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.outcome SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.flow SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.node SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.edge SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.completion SET (autovacuum_enabled = false);"
    "ALTER TABLE weft.cancel_group SET (autovacuum_enabled = false);";

static const char analyze[] =
    "ANALYZE weft.live, weft.execution, weft.outcome, weft.attempt, weft.flow, weft.node, "
    "        weft.edge, weft.completion, weft.cancel_group;";

/* Before any plan is made: with the first function of its own a session forgets its plans. */
static const char fill_names[] =
    "INSERT INTO weft.policy (id, text, lease_us, timeout_us) OVERRIDING SYSTEM VALUE "
    "VALUES (1, '{}', 30000000, 60000000);"
    "INSERT INTO weft.queue (id, namespace, lane, kind, route, tenant) OVERRIDING SYSTEM VALUE "
    "VALUES (1, 1, 1, 'kind', 1, 1);"
    "CREATE FUNCTION pg_temp.name(sort text, n int) RETURNS uuid LANGUAGE sql AS "
    "$$ SELECT ('00000000-0000-7000-' || sort || '-' || lpad(to_hex(n), 12, '0'))::uuid $$;";

/*
 * Flow 0 has 100,000 members: a root, a sink, and the others between; half have ended.
 * 5,000 have ten in a chain: most have ended, as most flows have. The rest are on their way in or
 * out: 20 that have a backlog, 11 that were deleted, 20 half written and 20 half removed.
 */
static const char fill_flows[] =
    "INSERT INTO weft.flow (id, namespace, key, state, revision, nodes, created, finished, cancel, "
    "                       backlog, deleted) "
    "SELECT pg_temp.name('a000', i), 1 + i % 3, 'key' || i, "
    "       CASE WHEN i > 5020 THEN -2 WHEN i > 5000 THEN -1 WHEN i BETWEEN 1 AND 4000 THEN 1 "
    "       ELSE 0 END, 1, 10, i, CASE WHEN i BETWEEN 1 AND 4000 THEN i END, 0, "
    "       i BETWEEN 4500 AND 4519, CASE WHEN i BETWEEN 2000 AND 2010 THEN i END "
    "  FROM generate_series(0, 5040) i;"
    "UPDATE weft.flow SET drained = pg_temp.name('8000', 90000) WHERE id = pg_temp.name('a000', 0);"
    "INSERT INTO weft.node (id, flow, name, policy, k, let_run, total, succeeded, failed, fired, "
    "                       delay, run_at) "
    "SELECT pg_temp.name('8000', i), pg_temp.name('a000', 0), 'node' || i, 0, 0, true, "
    "       CASE i WHEN 1 THEN 0 WHEN 100000 THEN 99998 ELSE 1 END, 0, 0, "
    "       CASE WHEN i < 90000 THEN 1 ELSE 0 END, 0, 0 FROM generate_series(1, 100000) i;"
    "INSERT INTO weft.node (id, flow, name, policy, k, let_run, total, succeeded, failed, fired, "
    "                       delay, run_at) "
    "SELECT pg_temp.name('9000', 16 * i + j), pg_temp.name('a000', i), 'node' || j, 0, 0, true, "
    "       CASE j WHEN 0 THEN 0 ELSE 1 END, 0, 0, 1, 0, 0 "
    "  FROM generate_series(1, 5000) i, generate_series(0, 9) j;"
    "INSERT INTO weft.execution (id, created, queue, payload) SELECT id, 1, 1, '{}' FROM "
    "weft.node;";

static const char fill_rest[] =
    "INSERT INTO weft.edge (upstream, downstream, state) "
    "SELECT pg_temp.name('8000', 1), pg_temp.name('8000', i), 1 FROM generate_series(2, 99999) i;"
    "INSERT INTO weft.edge (upstream, downstream, state) "
    "SELECT pg_temp.name('8000', i), pg_temp.name('8000', 100000), 0 "
    "  FROM generate_series(2, 99999) i;"
    "INSERT INTO weft.edge (upstream, downstream, state) "
    "SELECT pg_temp.name('9000', 16 * i + j), pg_temp.name('9000', 16 * i + j + 1), 1 "
    "  FROM generate_series(1, 5000) i, generate_series(0, 8) j;"
    "INSERT INTO weft.outcome (id, finished, ord, queue, policy, epoch, attempt, forgiven, lost, "
    "                          replays, priority, state, ended, held, flow) "
    "SELECT id, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 7, 1, true, flow FROM weft.node "
    " WHERE id < pg_temp.name('8000', 50000) "
    "    OR id BETWEEN pg_temp.name('9000', 0) AND pg_temp.name('9000', 16 * 4001 - 1);"
    "INSERT INTO weft.live (id, ord, queue, lane, policy, epoch, attempt, forgiven, size, lost, "
    "                       replays, priority, state, flow) "
    "SELECT n.id, 1, 1, 1, 1, 0, 1, 0, 2, 0, 0, 0, 1, n.flow FROM weft.node n "
    " WHERE NOT EXISTS (SELECT 1 FROM weft.outcome o WHERE o.id = n.id);"
    "INSERT INTO weft.completion (flow, id, at, cursor) "
    "VALUES (pg_temp.name('a000', 0), pg_temp.name('8000', 1), 1, pg_temp.name('8000', 90000));"
    "INSERT INTO weft.completion (flow, id, at) "
    "SELECT pg_temp.name('a000', i), pg_temp.name('9000', 16 * i + j), i "
    "  FROM generate_series(0, 2) j, generate_series(4001, 5000) i;"
    "UPDATE weft.completion SET anew = true WHERE at > 4500 AND at % 50 = 0;"
    "INSERT INTO weft.cancel_group (id, flow, reason, at, waiting) "
    "SELECT pg_temp.name('9000', 16 * i + 9), pg_temp.name('a000', i), 1, i, i % 2 = 1 "
    "  FROM generate_series(4001, 5000) i;";

static void check_rules(struct plans *p, const char *where)
{
    for (size_t i = 0; i < WEFT_LEN(rules); i++)
        check_plan(p, &rules[i], where);
}

static void test_pg(void)
{
    struct plans p;
    if (plans_open(&p) && run_here(&p, no_autovacuum) && run_here(&p, fill_names)) {
        check_rules(&p, "empty");
        (void)run_here(&p, analyze);
        check_rules(&p, "empty, with statistics");
        keep_plans(&p, calls, WEFT_LEN(calls));
        if (run_here(&p, fill_flows) && run_here(&p, fill_rest)) {
            run_kept(&p, calls, WEFT_LEN(calls), "planned on empty tables");
            check_rules(&p, "large, statistics of empty tables");
            (void)run_here(&p, analyze);
            check_rules(&p, "large, with statistics");
            run_kept(&p, calls, WEFT_LEN(calls),
                     "planned on large tables"); /* new statistics end a kept plan */
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
