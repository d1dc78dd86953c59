/* SPDX-License-Identifier: Apache-2.0 */

/* weft doctor: no finding in a healthy store, and each kind of damage by its name. */

#include "conformance.h"

#include "base/arena.h"
#include "engine/admin/doctor.h"
#include "engine/admin/replicas.h"
#include "store/store.h"
#include "weft/weft.h"

static struct weft_findings examine(struct fixture *f)
{
    struct weft_findings findings = {0};
    enum weft_rc rc = weft_engine_examine(f->a, f->arena, &findings, &f->err);
    ok(rc == WEFT_OK, "examined%s%s", rc ? ": " : "", rc ? f->err.text : "");
    return findings;
}

/* The finding of that name; one without a detail when there is none. */
static struct weft_finding find(struct fixture *f, const char *what)
{
    struct weft_findings all = examine(f);
    for (size_t i = 0; i < all.count; i++)
        if (strcmp(all.item[i].what, what) == 0)
            return all.item[i];
    ok(false, "there is a finding %s", what);
    return (struct weft_finding){.detail = "", .advice = ""};
}

static void expect(struct fixture *f, const char *what, enum weft_finding_level level,
                   const char *says)
{
    struct weft_finding finding = find(f, what);
    is_int(finding.level, level, "%s: level", what);
    if (!ok(strstr(finding.detail, says) != NULL, "%s: says '%s'", what, says))
        printf("# %s\n", finding.detail);
    ok((finding.advice == NULL) == (level == WEFT_FINDING_OK), "%s: advice where it is needed",
       what);
}

/* The server of the tests runs without fsync, and the clock of a case stands in the past. */
CASE(examine_a_healthy_store)
{
    static const char *const both[] = {"schema",         "indexes",    "clock",
                                       "backlog",        "size",       "durability",
                                       "expired_leases", "invariants", "replicas"};
    static const char *const pg[] = {"server",         "autovacuum", "connections",
                                     "dead_rows",      "bloat",      "prepared_transactions",
                                     "old_transaction"};
    static const char *const sqlite[] = {"journal_mode", "disk", "wal", "integrity"};
    (void)submit_job(f);
    struct weft_findings all = examine(f);
    for (size_t i = 0; i < all.count; i++) {
        const struct weft_finding *one = &all.item[i];
        bool special = strcmp(one->what, "clock") == 0 || strcmp(one->what, "disk") == 0 ||
                       (is_pg(f) && (strcmp(one->what, "durability") == 0 ||
                                     strcmp(one->what, "connections") == 0 ||
                                     strcmp(one->what, "old_transaction") == 0));
        ok(special || one->level == WEFT_FINDING_OK, "%s is well: %s", one->what, one->detail);
        ok(one->level == WEFT_FINDING_OK || one->advice, "%s: advice", one->what);
    }
    for (size_t i = 0; i < WEFT_LEN(both); i++)
        (void)find(f, both[i]);
    for (size_t i = 0; i < WEFT_LEN(pg) && is_pg(f); i++)
        (void)find(f, pg[i]);
    for (size_t i = 0; i < WEFT_LEN(sqlite) && !is_pg(f); i++)
        (void)find(f, sqlite[i]);
    /* The list is of sql/schema.*.sql: an index that a migration adds comes with it. */
    expect(f, "indexes", WEFT_FINDING_OK, "and 0 others");
    if (is_pg(f))
        expect(f, "durability", WEFT_FINDING_BAD, "fsync is off");
    expect(f, "clock", WEFT_FINDING_WARN, "ahead of that of the store");
}

CASE(examine_a_missing_index)
{
    bool pg = is_pg(f);
    run_sql(f, pg ? "DROP INDEX weft.live_timer; DROP INDEX weft.live_deadline"
                  : "DROP INDEX live_timer; DROP INDEX live_deadline");
    expect(f, "indexes", WEFT_FINDING_BAD, "live_deadline, live_timer");
}

CASE(examine_work_that_waits)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 3);
    (void)claim(f, f->a, 1);
    expect(f, "backlog", WEFT_FINDING_OK, "ready: 2, the oldest since 0 ms, running: 1");
    expect(f, "expired_leases", WEFT_FINDING_OK, "taken back: 0");
    forward_ms(f, 45000);
    expect(f, "expired_leases", WEFT_FINDING_WARN, "taken back: 1, the oldest since 15 s");
    forward_ms(f, 3600000LL * 5);
    expect(f, "backlog", WEFT_FINDING_WARN, "the oldest since 5 h");
    expect(f, "expired_leases", WEFT_FINDING_BAD, "since 5 h");
}

CASE(examine_refused_rows)
{
    if (strcmp(f->store, "pg") != 0) {
        tap_skip("SQLite has no inbox");
        return;
    }
    expect(f, "inbox_refused", WEFT_FINDING_OK, "last week: 0");
    struct weft_id taken = submit_job(f);
    char text[WEFT_ID_TEXT];
    weft_id_print(&taken, text);
    run_sql(f, weft_arena_printf(f->arena,
                                 "INSERT INTO weft.inbox (id, namespace, kind) VALUES ('%s', "
                                 "'default', 'job'); SELECT weft.weft_submit('a b'); "
                                 "SELECT weft.weft_submit('job', lane => 'a b')",
                                 text));
    is_int(run_pass(f, f->a, WEFT_SCANNER_INTAKE).failed, 3, "three rows are refused");
    expect(f, "inbox_refused", WEFT_FINDING_WARN, "2 (invalid_value, as ");
    expect(f, "inbox_refused", WEFT_FINDING_WARN,
           weft_arena_printf(f->arena, "1 (there is an execution with this id, as %s of", text));
    forward_ms(f, 8 * 86400000LL);
    expect(f, "inbox_refused", WEFT_FINDING_OK, "last week: 0");
}

CASE(examine_a_broken_store)
{
    bool pg = is_pg(f);
    (void)submit_job(f);
    run_sql(f, pg ? "UPDATE weft.live SET worker = 1" : "UPDATE live SET worker = 1");
    expect(f, "invariants", WEFT_FINDING_BAD, "a lease without running");
    run_sql(f, pg ? "UPDATE weft.live SET worker = NULL" : "UPDATE live SET worker = NULL");
    expect(f, "invariants", WEFT_FINDING_OK, "every row");
    run_sql(f, pg ? "UPDATE weft.schema SET version = version + 1"
                  : "UPDATE schema SET version = version + 1");
    expect(f, "schema", WEFT_FINDING_WARN, "this binary knows");
}

CASE(examine_an_open_transaction)
{
    if (strcmp(f->store, "pg") != 0)
        return;
    const struct weft_driver *driver;
    struct weft_conn *conn = NULL;
    if (weft_driver_for(f->url, &driver, &f->err) || driver->open(f->url, &conn, &f->err))
        return;
    ok(driver->begin(conn, WEFT_TX_WRITE, &f->err) == WEFT_OK &&
           driver->script(conn, "LOCK TABLE weft.progress IN ROW EXCLUSIVE MODE", &f->err) ==
               WEFT_OK,
       "a transaction is open");
    struct weft_finding finding = find(f, "old_transaction");
    ok(strstr(finding.detail, "pid ") && strstr(finding.detail, "application '"),
       "the finding names the transaction: %s", finding.detail);
    driver->rollback(conn);
    weft_conn_close(conn);
    run_sql(f, "ALTER TABLE weft.live SET (autovacuum_enabled = false)");
    expect(f, "autovacuum_of_table", WEFT_FINDING_BAD, "autovacuum is off");
}

/* ---- Replicas -------------------------------------------------------------------------------- */

/* The scanners of a replica as a row holds them; `bad` is what stands in that of lease_expiry. */
static const char *scanners_text(struct fixture *f, const char *bad)
{
    const char *text = "";
    for (int i = 0; i < WEFT_SCANNER_COUNT; i++)
        text = weft_arena_printf(
            f->arena,
            "%s%s{\"name\":\"%s\",\"replica\":\"018f0000-0000-7000-8000-000000000001\","
            "\"host\":\"h\"%s}",
            text, i ? "," : "", weft_scanner_name((enum weft_scanner)i),
            i == WEFT_SCANNER_LEASE_EXPIRY ? bad : ",\"enabled\":true");
    return weft_arena_printf(f->arena, "[%s]", text);
}

static void beat(struct fixture *f, const char *host, const char *bad)
{
    static struct weft_id id;
    struct weft_replica_row row = {.id = id,
                                   .host = host,
                                   .pid = 12,
                                   .version = "1",
                                   .url = "http://h:1",
                                   .started_us = f->now_us,
                                   .up_since_us = f->now_us,
                                   .settings = "{}",
                                   .scanners = scanners_text(f, bad)};
    row.id.byte[0] = (uint8_t)host[0];
    is_int(weft_engine_replica_put(f->b, &row, &f->err), WEFT_OK, "a heartbeat of %s", host);
}

CASE(examine_replicas_and_scanners)
{
    expect(f, "replicas", WEFT_FINDING_OK, "no server uses the store");
    beat(f, "one", ",\"enabled\":true,\"lag_ms\":60000");
    expect(f, "replicas", WEFT_FINDING_OK, "alive: 1");
    expect(f, "scanner_coverage", WEFT_FINDING_OK, "every scanner");
    expect(f, "scanner_lag", WEFT_FINDING_OK, "60 s");
    expect(f, "scanner_failures", WEFT_FINDING_OK, "went well");
    beat(f, "one", ",\"enabled\":true,\"lag_ms\":61000,\"last_error\":\"the disk is full\"");
    expect(f, "scanner_lag", WEFT_FINDING_WARN, "lease_expiry on h is 61 s behind");
    expect(f, "scanner_failures", WEFT_FINDING_WARN, "lease_expiry on h fails: the disk is full");
    beat(f, "one", ",\"enabled\":false,\"lag_ms\":61000");
    expect(f, "scanner_coverage", WEFT_FINDING_BAD, ": lease_expiry");
    expect(f, "scanner_lag", WEFT_FINDING_OK, "60 s");
    forward_ms(f, WEFT_DEAD_US / WEFT_MS + 1000);
    beat(f, "two", ",\"enabled\":true");
    expect(f, "replicas", WEFT_FINDING_WARN, "one pid 12 is dead, last seen 16 s ago");
    expect(f, "scanner_coverage", WEFT_FINDING_OK, "every scanner");
    forward_ms(f, WEFT_DEAD_US / WEFT_MS + 1000);
    struct weft_findings all = examine(f);
    for (size_t i = 0; i < all.count; i++)
        ok(strncmp(all.item[i].what, "scanner_", 8) != 0,
           "without a living replica there is no finding about %s", all.item[i].what);
}
