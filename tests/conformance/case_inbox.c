/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submitting from SQL: weft_submit() inside an application's own transaction, and the intake pass
 * that makes executions of what was committed. PostgreSQL alone.
 */

#include "conformance.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/limits.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "engine/scan/pass.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

static const char no_function[] = "SQLite has no weft_submit()";

/* Runs SQL in a transaction of its own, as an application would. */
static enum weft_rc application(struct fixture *f, const char *sql, bool commit)
{
    struct weft_conn *conn = NULL;
    enum weft_rc rc = weft_driver_pg.open(f->url, &conn, &f->err);
    if (!rc)
        rc = weft_driver_pg.begin(conn, WEFT_TX_WRITE, &f->err);
    if (!rc)
        rc = weft_driver_pg.script(conn, sql, &f->err);
    if (!rc && commit)
        rc = weft_driver_pg.commit(conn, &f->err);
    else if (conn)
        weft_driver_pg.rollback(conn);
    weft_conn_close(conn);
    return rc;
}

/* Calls weft_submit() with these arguments and keeps what it returned under the number. */
static void sql_submit(struct fixture *f, int number, const char *arguments)
{
    const char *sql = weft_arena_printf(f->arena,
                                        "CREATE TABLE IF NOT EXISTS weft.returned (n int, id uuid);"
                                        "INSERT INTO weft.returned SELECT %d, weft.weft_submit(%s)",
                                        number, arguments);
    if (application(f, sql, true))
        ok(false, "weft_submit(%s): %s", arguments, f->err.text);
}

/* A script returns no rows, but an error that it raises has a text. */
static struct weft_id returned(struct fixture *f, int number)
{
    struct weft_id id = {{0}};
    const char *sql = weft_arena_printf(f->arena,
                                        "DO $$ BEGIN RAISE EXCEPTION '%%', (SELECT id FROM "
                                        "weft.returned WHERE n = %d); END $$",
                                        number);
    (void)application(f, sql, false);
    size_t size = strlen(f->err.text);
    if (size < 36 || !weft_id_parse(f->err.text + size - 36, 36, &id))
        ok(false, "weft_submit() %d returned an id: %s", number, f->err.text);
    return id;
}

static size_t take_in(struct fixture *f)
{
    size_t handled = 0;
    struct weft_pass_report report;
    do {
        report = run_pass(f, f->a, WEFT_SCANNER_INTAKE);
        handled += report.handled;
    } while (report.more);
    return handled;
}

CASE(inbox_on_sqlite)
{
    if (is_pg(f)) {
        tap_skip("this is about SQLite");
        return;
    }
    struct weft_pass_report report = run_pass(f, f->a, WEFT_SCANNER_INTAKE);
    ok(report.handled == 0 && !report.more, "the pass runs and finds nothing");
}

CASE(inbox_follows_the_transaction)
{
    if (!only_on_pg(f, no_function))
        return;
    is_int(application(f, "SELECT weft.weft_submit('lost')", false), WEFT_OK, "rolled back");
    is_int(take_in(f), 0, "intake finds nothing after a rollback");
    is_int(application(f,
                       "SELECT weft.weft_submit('kept');"
                       "SAVEPOINT s; SELECT weft.weft_submit('undone'); ROLLBACK TO s;"
                       "SELECT weft.weft_submit('kept')",
                       true),
           WEFT_OK, "committed");
    is_int(count_rows(f, &(struct weft_filter){0}), 0, "waits for intake");
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_INTAKE);
    is_int(report.handled, 2, "intake takes the committed rows");
    is_int(report.failed, 0, "intake refuses no row");
    is_int(count_rows(f, &(struct weft_filter){.kind = "kept", .state = WEFT_STATE_READY}), 2,
           "both executions are ready");
    is_int(count_rows(f, &(struct weft_filter){0}), 2, "no other execution exists");
    is_int(take_in(f), 0, "nothing is taken twice");
    is_int(claim(f, f->a, 10).count, 2, "any process can claim it");
}

CASE(inbox_every_parameter)
{
    if (!only_on_pg(f, no_function))
        return;
    sql_submit(f, 1,
               "kind => 'mail', payload => '{ \"b\" : 1.0,  \"a\":\"\\u00e9\" }', lane => 'fast', "
               "key => 'order \xc3\xa9 1', priority => -7, run_at => to_timestamp(1700000050.25), "
               "deadline_at => to_timestamp(1700000100), capabilities => ARRAY['gpu', 'eu'], "
               "tenant => 'acme', tags => '{\"z\":\"1\",\"a\":\"\\\"q\\\"\"}', "
               "policy => '{\"lease_ms\":5000,\"backoff\":{\"kind\":\"fixed\"}}'");
    is_int(take_in(f), 1, "intake takes one row");
    struct weft_id id = returned(f, 1);
    struct weft_execution now = describe(f, &id);
    is_int(now.state, WEFT_STATE_DELAYED, "the execution is delayed by run_at");
    is_int(now.run_at_us, START_US + 50250 * WEFT_MS, "run_at is kept to the microsecond");
    is_int(now.deadline_us, START_US + 100 * WEFT_SECOND, "deadline_at");
    is_str(now.kind, "mail", "kind");
    is_str(now.lane, "fast", "lane");
    is_str(now.key, "order \xc3\xa9 1", "key");
    is_int(now.priority, -7, "priority");
    is_str(now.tenant, "acme", "tenant");
    ok(now.capability_count == 2 && strcmp(now.capabilities[0], "eu") == 0, "capabilities");
    ok(now.tag_count == 2 && strcmp(now.tags[0].value, "\"q\"") == 0, "tags");
    is_int(weft_id_partition(&id), weft_id_key_partition("default", "order \xc3\xa9 1"),
           "the key decides the partition");
    ok(id.byte[6] >> 4 == 7 && id.byte[8] >> 6 == 2, "the id is a UUIDv7");
    forward_ms(f, 60000);
    (void)run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
    static const char *const fast[] = {"fast"}, *const tokens[] = {"eu", "gpu"};
    const struct weft_claim args = {.worker = "w",
                                    .lanes = fast,
                                    .lane_count = 1,
                                    .capabilities = tokens,
                                    .capability_count = 2};
    struct weft_claim_result got = claim_with(f, f->b, &args);
    is_int(got.count, 1, "a worker with the capabilities gets it");
    static const char payload[] = "{ \"b\" : 1.0,  \"a\":\"\\u00e9\" }";
    ok(got.item[0].payload_size == sizeof(payload) - 1 &&
           memcmp(got.item[0].payload, payload, sizeof(payload) - 1) == 0,
       "the payload is the same byte for byte");
    is_str(got.item[0].content_type, "application/json", "the content type is JSON");
    is_int(got.item[0].lease_expires_us, f->now_us + 5 * WEFT_SECOND, "under its policy");
}

CASE(inbox_other_forms)
{
    if (!only_on_pg(f, no_function))
        return;
    sql_submit(
        f, 1, "'job', payload_bytes => '\\x00ff0a00', content_type => 'image/x', delay_ms => 1500");
    sql_submit(f, 2, "'job', namespace => 'other', key => 'k'");
    sql_submit(f, 3, "'job', payload_bytes => ''");
    sql_submit(f, 4, "'job', payload_bytes => decode(repeat('00', 1048576), 'hex')");
    is_int(take_in(f), 4, "taken in");
    struct weft_id id = returned(f, 1);
    struct weft_bytes bytes = {0};
    struct weft_bytes_of of = {.kind = WEFT_BYTES_PAYLOAD, .ns = "default", .id = id};
    is_int(weft_engine_bytes(f->a, &of, f->arena, &bytes, &f->err), WEFT_OK, "bytes are kept");
    ok(bytes.size == 4 && memcmp(bytes.data, "\x00\xff\n\x00", 4) == 0, "the bytes are unchanged");
    is_str(bytes.content_type, "image/x", "the bytes have their content type");
    is_int(describe(f, &id).run_at_us, f->now_us + 1500 * WEFT_MS, "delay_ms counts from intake");
    id = returned(f, 2);
    is_int(weft_id_partition(&id), weft_id_key_partition("other", "k"), "the namespace counts");
    is_int(count_rows(f, &(struct weft_filter){.ns = "other"}), 1,
           "the execution is in its namespace");
    of.id = returned(f, 3);
    is_int(weft_engine_bytes(f->a, &of, f->arena, &bytes, &f->err), WEFT_OK, "empty is not none");
    of.id = returned(f, 4);
    is_int(weft_engine_bytes(f->a, &of, f->arena, &bytes, &f->err), WEFT_OK, "1 MiB is accepted");
    is_int(bytes.size, WEFT_PAYLOAD_MAX, "whole");
}

/* ---- Rows that are not valid ----------------------------------------------------------------- */

static const struct {
    const char *name, *arguments, *error_class, *lane, *kind;
} invalid[] = {
    {"bad lane", "'job', lane => 'a b'", "invalid_value", "default", "job"},
    {"empty kind", "'', lane => 'fast'", "invalid_value", "fast", "invalid"},
    {"no kind", "NULL", "invalid_value", "default", "invalid"},
    {"bad namespace", "'job', namespace => 'a b'", "invalid_value", "default", "job"},
    {"bad tenant", "'job', tenant => ''", "invalid_value", "default", "job"},
    {"empty key", "'job', key => ''", "invalid_value", "default", "job"},
    {"negative delay", "'job', delay_ms => -1", "invalid_value", "default", "job"},
    {"delay and run_at", "'job', delay_ms => 1, run_at => now()", "invalid_value", "default",
     "job"},
    {"past deadline", "'job', deadline_at => '2001-01-01'", "invalid_value", "default", "job"},
    {"run_at before 1970", "'job', run_at => '1969-01-01'", "invalid_value", "default", "job"},
    {"run_at at infinity", "'job', run_at => 'infinity'", "invalid_value", "default", "job"},
    {"deadline at infinity", "'job', deadline_at => 'infinity'", "invalid_value", "default", "job"},
    {"priority", "'job', priority => 40000", "invalid_value", "default", "job"},
    {"content type", "'job', content_type => E'a\\nb'", "invalid_value", "default", "job"},
    {"tags: a list", "'job', tags => '[\"k\"]'", "invalid_value", "default", "job"},
    {"tags: a number", "'job', tags => '{\"k\":1}'", "invalid_value", "default", "job"},
    {"tags: a bad key", "'job', tags => '{\"a b\":\"v\"}'", "invalid_value", "default", "job"},
    {"capability: a comma", "'job', capabilities => ARRAY['a,b']", "invalid_value", "default",
     "job"},
    {"capability: none", "'job', capabilities => ARRAY[NULL::text]", "invalid_value", "default",
     "job"},
    {"capability: a matrix", "'job', capabilities => ARRAY[ARRAY['a'], ARRAY['b']]",
     "invalid_value", "default", "job"},
    {"policy: a list", "'job', policy => '[]'", "invalid_value", "default", "job"},
    {"policy: unknown field", "'job', policy => '{\"nope\":1}'", "unknown_field", "default", "job"},
    {"policy: out of bounds", "'job', policy => '{\"max_attempts\":0}'", "invalid_value", "default",
     "job"},
    {"policy: beyond all", "'job', policy => '{\"lease_ms\":1e300}'", "invalid_value", "default",
     "job"},
};

CASE(inbox_invalid_rows_fail)
{
    if (!only_on_pg(f, no_function))
        return;
    enum { ROWS = WEFT_LEN(invalid) };
    for (int i = 0; i < ROWS; i++)
        sql_submit(f, i, invalid[i].arguments);
    sql_submit(f, ROWS, "'good'");
    struct weft_pass_report report = run_pass(f, f->a, WEFT_SCANNER_INTAKE);
    is_int(report.handled, ROWS + 1, "all are taken");
    is_int(report.failed, ROWS, "all but one fail");
    for (int i = 0; i < ROWS; i++) {
        struct weft_id id = returned(f, i);
        struct weft_execution end = describe(f, &id);
        is_int(end.state, WEFT_STATE_FAILED, "%s: failed", invalid[i].name);
        is_str(end.error_class, invalid[i].error_class, "%s: its class", invalid[i].name);
        ok(end.error_message && *end.error_message, "%s: a message: %s", invalid[i].name,
           end.error_message ? end.error_message : "none");
        is_str(end.by, "intake", "%s: by whom", invalid[i].name);
        is_str(end.lane, invalid[i].lane, "%s: its lane", invalid[i].name);
        is_str(end.kind, invalid[i].kind, "%s: its kind", invalid[i].name);
    }
    struct weft_id good = returned(f, ROWS);
    is_int(state_of(f, &good), WEFT_STATE_READY, "the good one is ready");
    is_int(take_in(f), 0, "nothing comes back");
}

/* What is too large is refused in the transaction of the application. */
CASE(inbox_large_fields_are_refused)
{
    static const struct {
        const char *field, *most, *more, *words;
    } row[] = {
        {"kind", "repeat('k', 128)", "repeat('k', 129)", "kind has 129 bytes, at most 128"},
        {"payload", "'job', to_json(repeat('p', 1048574))", "'job', to_json(repeat('p', 1048575))",
         "payload has 1048577 bytes, at most 1048576"},
        {"payload_bytes", "'job', payload_bytes => decode(repeat('00', 1048576), 'hex')",
         "'job', payload_bytes => decode(repeat('00', 1048577), 'hex')", "payload has 1048577"},
        {"lane", "'job', lane => repeat('l', 128)", "'job', lane => repeat('l', 129)", "lane has"},
        {"key", "'job', key => repeat('k', 512)", "'job', key => repeat('k', 513)", "key has 513"},
        {"tenant", "'job', tenant => repeat('t', 128)", "'job', tenant => repeat('t', 129)",
         "tenant has 129"},
        {"namespace", "'job', namespace => repeat('n', 128)",
         "'job', namespace => repeat('n', 129)", "namespace has 129"},
        {"content_type", "'job', content_type => repeat('c', 128)",
         "'job', content_type => repeat('c', 129)", "content_type has 129"},
        {"capabilities",
         "'job', capabilities => (SELECT array_agg('c' || i) FROM generate_series(1, 256) i)",
         "'job', capabilities => (SELECT array_agg('c' || i) FROM generate_series(1, 257) i)",
         "capabilities has 257 tokens"},
        {"a capability", "'job', capabilities => ARRAY[repeat('c', 128)]",
         "'job', capabilities => ARRAY[repeat('c', 2049)]", "capabilities has 2049 bytes"},
        {"tags",
         "'job', tags => (SELECT jsonb_object_agg('k' || i, 'v') FROM "
         "generate_series(1, 32) i)",
         "'job', tags => (SELECT jsonb_object_agg('k' || i, 'v') FROM generate_series(1, 33) i)",
         "there are 33 tags"},
        {"key of a tag", "'job', tags => jsonb_build_object(repeat('k', 64), 'v')",
         "'job', tags => jsonb_build_object(repeat('k', 65), 'v')", "the key of a tag has 65"},
        {"value of a tag", "'job', tags => jsonb_build_object('k', repeat('v', 256))",
         "'job', tags => jsonb_build_object('k', repeat('v', 257))", "the value of a tag has 257"},
        {"policy", "'job', policy => '{}'",
         "'job', policy => jsonb_build_object('nope', repeat('x', 262144))", "policy has 262"},
    };
    if (!only_on_pg(f, no_function))
        return;
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        sql_submit(f, (int)i, row[i].most);
        enum weft_rc rc = application(
            f, weft_arena_printf(f->arena, "SELECT weft.weft_submit(%s)", row[i].more), true);
        ok(rc != WEFT_OK && strstr(f->err.text, row[i].words) != NULL, "%s: refused: %s",
           row[i].field, f->err.text);
    }
    struct weft_pass_report report = run_pass(f, f->a, WEFT_SCANNER_INTAKE);
    is_int(report.handled, WEFT_LEN(row), "rows of the largest allowed size are taken in");
    is_int(report.failed, 0, "intake refuses none of the largest rows");
}

/* ---- Keys ------------------------------------------------------------------------------------ */

CASE(inbox_keys)
{
    if (!only_on_pg(f, no_function))
        return;
    struct weft_id before = submit_ok(f, &(struct weft_spec){.kind = "job", .key = "old"});
    sql_submit(f, 1, "'job', key => 'new'");
    is_int(take_in(f), 1, "the first with its key");
    sql_submit(f, 2, "'job', key => 'new'");
    sql_submit(f, 3, "'other', key => 'new'");
    sql_submit(f, 4, "'job', key => 'old'");
    sql_submit(f, 5, "'job', key => 'new', namespace => 'elsewhere'");
    struct weft_pass_report report = run_pass(f, f->b, WEFT_SCANNER_INTAKE);
    is_int(report.handled, 4, "four more");
    is_int(report.failed, 1, "one of them fails");
    struct weft_id id[6];
    for (int i = 1; i <= 5; i++)
        id[i] = returned(f, i);
    char text[WEFT_ID_TEXT];
    is_int(state_of(f, &id[1]), WEFT_STATE_READY, "the first is ready");
    struct weft_execution end = describe(f, &id[2]);
    weft_id_print(&id[1], text);
    is_int(end.state, WEFT_STATE_SKIPPED, "a repeat is skipped");
    ok(end.reason && strstr(end.reason, text), "the reason of the skip names the first: %s",
       end.reason);
    end = describe(f, &id[3]);
    is_int(end.state, WEFT_STATE_FAILED, "other work under the same key fails");
    is_str(end.error_class, "conflict", "the error class is conflict");
    end = describe(f, &id[4]);
    weft_id_print(&before, text);
    is_int(end.state, WEFT_STATE_SKIPPED, "a key that the library took counts");
    ok(end.reason && strstr(end.reason, text),
       "the reason of the skip names the execution of the library");
    struct weft_execution elsewhere;
    is_int(weft_engine_describe(f->a, "elsewhere", &id[5], 1, f->arena, &elsewhere, &f->err),
           WEFT_OK, "another namespace");
    is_int(elsewhere.state, WEFT_STATE_READY, "the key is free in another namespace");
    struct weft_submitted again = submit(f, f->a, &(struct weft_spec){.kind = "job", .key = "new"});
    ok(again.duplicate && same_id(&again.id, &id[1]), "the library sees the keys of the inbox");
}

CASE(inbox_same_key_in_one_pass)
{
    if (!only_on_pg(f, no_function))
        return;
    is_int(application(f, "SELECT weft.weft_submit('job', key => 'k') FROM generate_series(1, 5)",
                       true),
           WEFT_OK, "five times the same key");
    struct weft_pass_report report = run_pass(f, f->a, WEFT_SCANNER_INTAKE);
    is_int(report.handled, 5, "all are taken in one pass");
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_READY}), 1, "one is ready");
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_SKIPPED}), 4,
           "the others are skipped");
    struct weft_read_page page = list_page(f, &(struct weft_listing){.filter = {.key = "k"}});
    ok(page.count == 1 && page.item[0].state == WEFT_STATE_READY, "the key finds the one");
}

/* ---- Several at once ------------------------------------------------------------------------- */

CASE(inbox_many)
{
    if (!only_on_pg(f, no_function))
        return;
    is_int(application(f, "SELECT weft.weft_submit('job') FROM generate_series(1, 2500)", true),
           WEFT_OK, "2,500 in one transaction");
    struct weft_pass_report first = run_pass(f, f->a, WEFT_SCANNER_INTAKE);
    is_int(first.handled, 1000, "a pass takes 1,000");
    ok(first.more, "a full pass reports more");
    is_int(take_in(f), 1500, "the others follow");
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_READY}), 2500, "all are there");
}

CASE(inbox_large_payloads)
{
    if (!only_on_pg(f, no_function))
        return;
    is_int(application(f,
                       "SELECT weft.weft_submit('job', payload_bytes => "
                       "decode(repeat('00', 1000000), 'hex')) FROM generate_series(1, 20)",
                       true),
           WEFT_OK, "20 MB in one transaction");
    struct weft_pass_report first = run_pass(f, f->a, WEFT_SCANNER_INTAKE);
    ok(first.handled > 0 && first.handled <= 8 && first.more, "a pass reads 8 MiB at most: %d",
       (int)first.handled);
    is_int(take_in(f), 20 - first.handled, "the others follow");
}

/* The other process runs its pass in the middle of this one's: once, where the hook stands. */
struct intruder {
    struct fixture *f;
    enum weft_fault_point point;
    size_t handled;
    bool done;
};

static void intrude(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    struct intruder *intruder = context;
    if (intruder->done || point != intruder->point || stmt != WEFT_STMT_INBOX_TAKE)
        return;
    intruder->done = true;
    struct weft_pass_report report = run_pass(intruder->f, intruder->f->b, WEFT_SCANNER_INTAKE);
    intruder->handled = report.handled;
}

CASE(inbox_two_at_once)
{
    static const struct {
        const char *name;
        enum weft_fault_point point;
    } row[] = {
        {"before the rows are taken", WEFT_FAULT_BEFORE_RUN},
        {"while they are being taken", WEFT_FAULT_AFTER_RUN},
    };
    if (!only_on_pg(f, no_function))
        return;
    size_t expected = 0;
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct intruder intruder = {.f = f, .point = row[i].point};
        struct weft_fault fault = {.hook = intrude, .context = &intruder};
        struct weft_engine *engine = open_faulty(f, &fault); /* a third process */
        is_int(application(f,
                           "SELECT weft.weft_submit('job', key => CASE WHEN i % 4 = 0 THEN 'k' || "
                           "clock_timestamp() || i END, lane => CASE WHEN i % 5 = 0 THEN 'a b' "
                           "ELSE 'default' END) FROM generate_series(1, 40) i",
                           true),
               WEFT_OK, "40 rows");
        struct weft_pass_report mine = run_pass(f, engine, WEFT_SCANNER_INTAKE);
        ok(intruder.done, "%s: the other pass ran", row[i].name);
        size_t rest = take_in(f);
        is_int(mine.handled + intruder.handled + rest, 40, "%s: each row is taken once",
               row[i].name);
        expected += 40;
        is_int(count_rows(f, &(struct weft_filter){0}), expected,
               "%s: each execution is there once", row[i].name);
        weft_engine_close(engine);
    }
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_FAILED}), 16,
           "the invalid ones among them failed");
}

/* A row under the id of an execution cannot become one: it is noted and removed, and met once. */
CASE(inbox_existing_id)
{
    if (!only_on_pg(f, no_function))
        return;
    struct weft_id living = submit_job(f);
    struct weft_claimed ended = bring(f, WEFT_STATE_SUCCEEDED, NULL);
    char text[2][WEFT_ID_TEXT];
    weft_id_print(&living, text[0]);
    weft_id_print(&ended.id, text[1]);
    is_int(
        application(f,
                    weft_arena_printf(f->arena,
                                      "INSERT INTO weft.inbox (id, namespace, kind) VALUES "
                                      "('%s', 'default', 'job'), ('%s', 'default', NULL), "
                                      "('00000000-0000-0000-0000-000000000000', 'default', 'job');"
                                      "SELECT weft.weft_submit('good')",
                                      text[0], text[1]),
                    true),
        WEFT_OK, "rows under ids that are taken, one under zeros, and a good one");
    struct weft_pass_report report = run_pass(f, f->a, WEFT_SCANNER_INTAKE);
    is_int(report.handled, 4, "all are taken out");
    is_int(report.failed, 3, "three are refused");
    is_int(state_of(f, &(struct weft_id){.byte = {0}}), WEFT_STATE_NONE, "zeros are no execution");
    is_int(take_in(f), 0, "refused rows are not read again");
    is_int(state_of(f, &living), WEFT_STATE_READY, "the living one is as it was");
    is_int(state_of(f, &ended.id), WEFT_STATE_SUCCEEDED, "the ended execution stays succeeded");
    is_int(count_rows(f, &(struct weft_filter){.kind = "good"}), 1, "the good one is there");
    (void)application(f,
                      "DO $$ BEGIN RAISE EXCEPTION '%', (SELECT count(*) FROM weft.inbox_refused); "
                      "END $$",
                      false);
    ok(strstr(f->err.text, "3") != NULL, "each is noted once: %s", f->err.text);
}

/* Fields that no submission may have that long are not even read. */
CASE(inbox_oversize_fields)
{
    if (!only_on_pg(f, no_function))
        return;
    static const char *const field[] = {"namespace", "lane", "kind", "content_type", "capabilities",
                                        "tenant",    "tags", "key",  "policy"};
    for (size_t i = 0; i < WEFT_LEN(field); i++)
        is_int(application(f,
                           weft_arena_printf(
                               f->arena,
                               "INSERT INTO weft.inbox (id, namespace, kind) VALUES "
                               "(gen_random_uuid(), 'default', 'job'); UPDATE weft.inbox SET %s = "
                               "repeat('x', 20000000) WHERE id IN (SELECT id FROM weft.inbox WHERE "
                               "length(coalesce(lane, '') || kind || namespace) < 100 AND "
                               "coalesce(tags, tenant, policy, capabilities, key, content_type) IS "
                               "NULL)",
                               field[i]),
                           true),
               WEFT_OK, "20 MB of %s", field[i]);
    struct weft_pass_report report = run_pass(f, f->a, WEFT_SCANNER_INTAKE);
    is_int(report.handled, WEFT_LEN(field), "all are taken");
    is_int(report.failed, WEFT_LEN(field), "all of them are refused");
    is_int(take_in(f), 0, "nothing comes back");
}

/* How many of a namespace intake has made executions of. */
static size_t taken_of(struct fixture *f, const char *ns)
{
    return count_rows(f, &(struct weft_filter){.ns = ns});
}

static struct weft_pass_report look_in(struct fixture *f, uint32_t batch)
{
    struct weft_pass_report report = {0};
    const struct weft_pass_config config = {.batch = batch};
    if (weft_engine_pass(f->a, WEFT_SCANNER_INTAKE, &config, &report, &f->err))
        ok(false, "intake: %s", f->err.text);
    return report;
}

/* Ten batches of one namespace, then a row of another: it is there after the second pass. */
CASE(inbox_turns_of_namespaces)
{
    enum { BATCH = 10 };
    if (!only_on_pg(f, no_function))
        return;
    for (int round = 1; round <= 2; round++) { /* the first round leaves nothing behind */
        is_int(application(f,
                           "SELECT weft.weft_submit('job', namespace => 'many') FROM "
                           "generate_series(1, 100)",
                           true),
               WEFT_OK, "100 of one namespace");
        is_int(application(f, "SELECT weft.weft_submit('job', namespace => 'few')", true), WEFT_OK,
               "one of another");
        size_t many = taken_of(f, "many");
        is_int(look_in(f, BATCH).handled, BATCH, "the first pass is full");
        is_int(taken_of(f, "many") - many, BATCH, "the first pass takes the oldest rows");
        struct weft_pass_report second = look_in(f, BATCH);
        is_int(taken_of(f, "few"), round, "the second one has the row of the other");
        ok(second.handled > 1 && second.more,
           "the second pass also takes rows of the first namespace");
        is_int(BATCH + second.handled + take_in(f), 101, "all are taken, each once");
    }
}

/* Payloads fill a pass before its batch is full: here 8 of 1 MB, of five namespaces in turns. */
CASE(inbox_turns_of_large_payloads)
{
    if (!only_on_pg(f, no_function))
        return;
    is_int(application(f,
                       "SELECT weft.weft_submit('job', namespace => 'n' || i % 5, payload_bytes => "
                       "decode(repeat('00', 1000000), 'hex')) FROM generate_series(0, 39) i "
                       "ORDER BY i % 5",
                       true),
           WEFT_OK, "40 MB of five namespaces, one after the other");
    is_int(application(f, "SELECT weft.weft_submit('job', namespace => 'z')", true), WEFT_OK,
           "a row of another");
    ok(look_in(f, 0).more, "the first pass goes by age");
    struct weft_pass_report second = look_in(f, 0);
    ok(second.handled <= 9, "8 MiB at most: %d", (int)second.handled);
    is_int(taken_of(f, "z"), 1, "the second one has the row of the other");
    for (int i = 1; i < 5; i++)
        ok(taken_of(f, weft_arena_printf(f->arena, "n%d", i)) > 0,
           "the second pass takes some of n%d", i);
    (void)take_in(f);
    is_int(count_rows(f, &(struct weft_filter){.ns = "n4"}), 8, "the others follow");
}

/* More namespaces than rows in a batch: passes go on where the last one ended. */
CASE(inbox_turns_of_many_namespaces)
{
    enum { NAMES = 25, BATCH = 10 };
    if (!only_on_pg(f, no_function))
        return;
    is_int(application(f,
                       "SELECT weft.weft_submit('job', namespace => 'a') FROM "
                       "generate_series(1, 50);"
                       "SELECT weft.weft_submit('job', namespace => 'n' || i % 25) FROM "
                       "generate_series(0, 99) i",
                       true),
           WEFT_OK, "50 of one and 4 of each of 25 namespaces");
    size_t handled = 0;
    for (int i = 0; i < 5; i++)
        handled += look_in(f, BATCH).handled;
    size_t met = 0;
    for (int i = 0; i < NAMES; i++)
        met += taken_of(f, weft_arena_printf(f->arena, "n%d", i)) > 0;
    is_int(met, NAMES, "after five passes each has had a turn");
    is_int(handled + take_in(f), 150, "the others follow");
    is_int(taken_of(f, "a"), 50, "all of them");
}
