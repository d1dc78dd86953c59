/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Verification finds a row that is put back by hand, whatever table it is of. Each table of
 * core/tables.def stands here: one that is added later fails the case until it does.
 */

#include "budgets.h"
#include "direct.h"
#include "erasing.h"
#include "flows.h"
#include "waiting.h"

#include "base/arena.h"
#include "base/id.h"
#include "engine/batch/batch.h"
#include "engine/batch/files.h"
#include "engine/batch/models.h"
#include "engine/limit/budgets.h"

#include <string.h>

/* Tables of which a row is put back. */
static const char *const tables[] = {
    "execution",  "outcome",    "live",      "key",    "progress",   "attempt",    "detail",
    "suspension", "resumption", "waitpoint", "signal", "cost",       "node",       "edge",
    "flow",       "ledger",     "batch",     "file",   "file_chunk", "completion", "cancel_group",
};

/* Tables of which none is, and why. */
static const struct {
    const char *table, *why;
} exempt[] = {
    {"span", "has ids of a range, of any tenant"},
    {"draining", "remembers cancelled leases until they would have run out"},
    {"inbox_refused", "has the code of an error, and outlives what it is about"},
    {"batch_model", "goes with its batch, and has names of models alone"},
    {"inbox", "has a case of its own, because SQLite has none"},
    {"erasure", "is the receipt"},
    {"replica", "is about servers"},
};

static bool is_listed(const char *table)
{
    for (size_t i = 0; i < WEFT_LEN(tables); i++)
        if (strcmp(tables[i], table) == 0)
            return true;
    for (size_t i = 0; i < WEFT_LEN(exempt); i++)
        if (strcmp(exempt[i].table, table) == 0)
            return true;
    return false;
}

/* Runs one text on both stores; @ stands before the names of tables. */
static void both(struct fixture *f, const char *text)
{
    struct weft_arena *arena = f->arena;
    char *pg = weft_arena_alloc(arena, 1, 6 * strlen(text) + 1);
    char *sqlite = weft_arena_alloc(arena, 1, strlen(text) + 1), *to = sqlite;
    size_t size = 0;
    for (const char *at = text; *at; at++) {
        if (*at != '@')
            pg[size++] = *to++ = *at;
        else
            size += (size_t)snprintf(pg + size, 6, "weft.");
    }
    run_sql_of(f, pg, sqlite);
}

/* ---- A subject with a row in each table ------------------------------------------------------ */

static struct weft_id put_file(struct fixture *f)
{
    static const char line[] =
        "{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/x\",\"body\":"
        "{\"model\":\"m\"}}\n";
    struct weft_id id;
    is_int(weft_engine_file_begin(f->a, "default", CANARY, &id, &f->err), WEFT_OK, "a file");
    const struct weft_file_chunk chunk = {.file = id, .data = line, .size = strlen(line)};
    is_int(weft_engine_file_put(f->a, &chunk, &f->err), WEFT_OK, "its chunk");
    const struct weft_file file = {.id = id, .purpose = "batch", .requests = 1, .flaws = ""};
    is_int(weft_engine_file_seal(f->a, &file, &f->err), WEFT_OK, "it is whole");
    return id;
}

static void put_batch(struct fixture *f)
{
    const struct weft_model model = {.name = "m", .endpoint = "openai", .lane = "gpt"};
    struct weft_id id;
    bool more = true;
    is_int(weft_engine_model_put(f->a, "default", &model, &f->err), WEFT_OK, "a model");
    const struct weft_batch_new args = {.ns = "default",
                                        .file = put_file(f),
                                        .endpoint = "/v1/x",
                                        .window = "24h",
                                        .metadata = "{\"tenant\":\"" CANARY "\"}"};
    is_int(weft_engine_batch_create(f->a, &args, &id, &f->err), WEFT_OK, "a batch");
    while (more)
        if (weft_engine_batch_step(f->a, &id, &more, &f->err))
            ok(more = false, "a step");
}

/* One that was suspended and resumed, and one that waits. */
static void put_waiting(struct fixture *f)
{
    for (int i = 0; i < 2; i++) {
        struct weft_spec spec = {
            .kind = "waits", .tenant = CANARY, .payload = "1", .payload_size = 1};
        struct weft_claimed lease = start(f, &spec);
        struct wait_answer made =
            wait_suspend_at(f->a, &lease, "ab", &(struct weft_suspend){.timeout_ms = 0});
        is_int(made.rc, WEFT_OK, "it is suspended");
        is_int(wait_signal(f->a, made.token[0], "k").rc, WEFT_OK, "a signal comes");
        if (i == 0)
            is_int(steer_id(f, WEFT_STEER_RESUME, &lease.id).err.rc, WEFT_OK, "it is resumed");
    }
}

static void put_ended(struct fixture *f)
{
    struct weft_spec spec = {.kind = "ends", .tenant = CANARY, .key = CANARY, COST(5)};
    struct weft_claimed lease = start(f, &spec);
    struct weft_lease_answer answer = {0};
    const struct weft_renew renewal = {
        .id = lease.id, .epoch = lease.epoch, .has_progress = true, .note = CANARY};
    is_int(engine_renew(f->a, &renewal, 1, &answer, &f->err), WEFT_OK, "it reports");
    report_ok(f, &lease, 7);
    (void)fail_as(f, f->a, &lease,
                  &(struct weft_failure){.message = CANARY,
                                         .detail = "{\"for\":\"" CANARY "\"}",
                                         .retry_after_ms = 0});
    forward_ms(f, 600000);
    (void)run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
    lease = take(f, f->a, lease.lane);
    is_int(complete(f, f->a, &lease, "\"" CANARY "\"").err.rc, WEFT_OK, "it ends");
}

static void put_subject(struct fixture *f)
{
    struct drawn flow;
    put_tokens(f, "all", 1000000, 10);
    const struct weft_budget mine = {.name = "mine",
                                     .matches = true,
                                     .match_tenant = CANARY,
                                     DIMENSIONS({.name = "tokens", .hard = 1000})};
    put_budget(f, &mine);
    const struct weft_weight weight = {.tenant = CANARY, .weight = 3};
    put_lane(f, f->a,
             &(struct weft_lane){.name = "default", .weights = &weight, .weight_count = 1});
    put_ended(f);
    put_waiting(f);
    draw(&flow, "a; b:a");
    node_of(&flow, "a")->spec.tenant = node_of(&flow, "b")->spec.tenant = CANARY;
    submit_drawn(f, &flow);
    put_batch(f);
}

/* ---- Putting back ---------------------------------------------------------------------------- */

static const char *text_of(struct fixture *f, const char *format, const char *table)
{
    struct weft_arena *arena = f->arena;
    const char *at = strchr(format, '$');
    size_t head = at ? (size_t)(at - format) : strlen(format);
    if (!at)
        return format;
    return text_of(f, weft_arena_printf(arena, "%.*s%s%s", (int)head, format, table, at + 1),
                   table);
}

/* One row as it was, which must be found; then without it. */
static void put_one_back(struct fixture *f, const char *table, const struct weft_id *order)
{
    if (strcmp(table, "batch") == 0)
        both(f, "DELETE FROM @batch"); /* its tombstone has the same id */
    if (is_pg(f))
        run_sql(f, text_of(f,
                           "INSERT INTO weft.$ OVERRIDING SYSTEM VALUE "
                           "SELECT * FROM weft.old_$ LIMIT 1",
                           table));
    else
        both(f, text_of(f, "INSERT INTO $ SELECT * FROM old_$ LIMIT 1", table));
    ok(erase_verify(f, order).remains > 0, "a row of %s that is put back is found", table);
    if (strcmp(table, "ledger") == 0)
        both(f, "DELETE FROM @ledger WHERE id IN (SELECT id FROM @old_ledger)");
    else
        both(f, text_of(f, "DELETE FROM @$", table));
    is_int((int64_t)erase_verify(f, order).remains, 0, "and without it nothing remains of %s",
           table);
}

static void change_back(struct fixture *f, const char *what, const char *back, const char *again,
                        const struct weft_id *order)
{
    both(f, back);
    ok(erase_verify(f, order).remains > 0, "%s that is put back is found", what);
    both(f, again);
    is_int((int64_t)erase_verify(f, order).remains, 0, "and without it nothing remains");
}

CASE(erase_verify_finds_a_row_of_each_table)
{
#define SIDE(table, TABLE, bit) ok(is_listed(#table), "%s is listed here", #table);
#define MENTION(table, column)  ok(is_listed(#table), "%s is listed here", #table);
#define OTHER(table, column)    ok(is_listed(#table), "%s is listed here", #table);
#include "core/tables.def"
    put_subject(f);
    both(f, is_pg(f) ? "INSERT INTO @cancel_group (id, flow, reason, at, waiting) "
                       "SELECT n.id, n.flow, 1, 0, true FROM @node n WHERE n.total > 0"
                     : "INSERT INTO cancel_group (num, flow, reason, at, waiting) "
                       "SELECT n.num, n.flow, 1, 0, 1 FROM node n WHERE n.total > 0");
    both(f, is_pg(f)
                ? "INSERT INTO @completion (flow, id, at) SELECT n.flow, n.id, 0 FROM @node n"
                : "INSERT INTO completion (flow, num, at) SELECT n.flow, n.num, 0 FROM node n");
    for (size_t i = 0; i < WEFT_LEN(tables); i++)
        both(f, text_of(f, "CREATE TABLE @old_$ AS SELECT * FROM @$", tables[i]));
    both(f, "DELETE FROM @old_ledger WHERE total = 0"); /* without an amount it says nothing */
    both(f, "CREATE TABLE @old_lane AS SELECT * FROM @lane");
    struct weft_erasure order =
        erase_ask(f, &(struct weft_erasure_spec){.tenant = CANARY, .reason = "asked"});
    (void)erase_to_the_end(f, &order.id);
    both(f, "CREATE TABLE @new_lane AS SELECT * FROM @lane");
    is_int((int64_t)erase_verify(f, &order.id).remains, 0, "nothing remains");
    for (size_t i = 0; i < WEFT_LEN(tables); i++)
        put_one_back(f, tables[i], &order.id);
    change_back(f, "a name", "UPDATE @name SET text = '" CANARY "' WHERE text LIKE 'erased-%'",
                "UPDATE @name SET text = 'erased-x' WHERE text = '" CANARY "'", &order.id);
    change_back(f, "the tenant of a budget",
                "UPDATE @budget SET tenant = '" CANARY "' WHERE name = 'mine'",
                "UPDATE @budget SET tenant = 'x' WHERE name = 'mine'", &order.id);
    change_back(
        f, "the weight of a lane",
        "UPDATE @lane SET weights = (SELECT o.weights FROM @old_lane o WHERE o.id = @lane.id)",
        "UPDATE @lane SET weights = (SELECT o.weights FROM @new_lane o WHERE o.id = @lane.id)",
        &order.id);
    for (size_t i = 0; i < WEFT_LEN(tables); i++)
        both(f, text_of(f, "DROP TABLE @old_$", tables[i]));
    both(f, "DROP TABLE @old_lane");
    both(f, "DROP TABLE @new_lane");
}

CASE(erase_verify_finds_a_row_of_the_inbox)
{
    if (!only_on_pg(f, "SQLite has no inbox"))
        return;
    static const struct weft_erasure_spec spec[] = {{.tenant = CANARY, .reason = "asked"},
                                                    {.tag = "who:" CANARY, .reason = "asked"}};
    for (size_t i = 0; i < WEFT_LEN(spec); i++) {
        struct weft_erasure order = erase_ask(f, &spec[i]);
        (void)erase_to_the_end(f, &order.id);
        run_sql(f,
                "INSERT INTO weft.inbox (id, namespace, tenant, tags) VALUES "
                "('00000000-0001-7000-8000-000000000001', 'default', '" CANARY
                "', '{\"who\":\"" CANARY "\"}')");
        is_int((int64_t)erase_verify(f, &order.id).remains, 1, "the row is found");
        run_sql(f, "DELETE FROM weft.inbox");
        is_int((int64_t)erase_verify(f, &order.id).remains, 0, "and without it nothing remains");
    }
}
