/* SPDX-License-Identifier: Apache-2.0 */

/*
 * PostgreSQL around the runs: schemas made with the product's own migrations, tables emptied
 * between the cells of the grid, and a meter of what the server wrote.
 *
 * Write transactions are counted by their numbers and not by pg_stat_database, whose counts arrive
 * up to a second late. Both meters are the server's as a whole: what autovacuum writes is included.
 */

#include "bench/bench.h"

#include "base/arena.h"

#include <libpq-fe.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct bench_meter {
    PGconn *pq;
};

struct bench_server {
    struct bench_meter meter; /* the control connection */
    PGconn *snapshot;         /* holds one open, or NULL */
    struct weft_arena *arena;
    const char *url;
    const char *schema[8];
    size_t schemas;
};

static PGresult *ask(PGconn *pq, const char *sql)
{
    PGresult *result = PQexec(pq, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return result;
    (void)fprintf(stderr, "bench: %s: %s", sql, PQerrorMessage(pq));
    PQclear(result);
    return NULL;
}

__attribute__((format(printf, 2, 3))) static bool tell(struct bench_server *server, const char *fmt,
                                                       ...)
{
    char sql[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(sql, sizeof(sql), fmt, args);
    va_end(args);
    PGresult *result = ask(server->meter.pq, sql);
    PQclear(result);
    return result != NULL;
}

static void warn_if_not_durable(struct bench_server *server)
{
    static const char *const setting[] = {"fsync", "synchronous_commit", "full_page_writes"};
    for (size_t i = 0; i < WEFT_LEN(setting); i++) {
        char sql[64];
        (void)snprintf(sql, sizeof(sql), "SHOW %s", setting[i]);
        PGresult *result = ask(server->meter.pq, sql);
        if (result && strcmp(PQgetvalue(result, 0, 0), "on") != 0)
            (void)fprintf(stderr,
                          "bench: warning: this server runs with %s=%s: figures for PostgreSQL "
                          "mean nothing\n",
                          setting[i], PQgetvalue(result, 0, 0));
        PQclear(result);
    }
}

bool bench_server_open(const char *url, struct bench_server **ret_server)
{
    struct weft_arena *arena = weft_arena_new();
    struct bench_server *server = weft_new(arena, struct bench_server);
    *server = (struct bench_server){.arena = arena, .url = url};
    server->meter.pq = PQconnectdb(url);
    if (PQstatus(server->meter.pq) != CONNECTION_OK) {
        (void)fprintf(stderr, "bench: cannot reach PostgreSQL: %s",
                      PQerrorMessage(server->meter.pq));
        bench_server_close(server);
        return false;
    }
    /* Dropping schemas tells of every table otherwise. */
    if (!tell(server, "SET client_min_messages = warning")) {
        bench_server_close(server);
        return false;
    }
    warn_if_not_durable(server);
    *ret_server = server;
    return true;
}

void bench_server_close(struct bench_server *server)
{
    if (!server)
        return;
    PQfinish(server->snapshot);
    for (size_t i = 0; i < server->schemas; i++)
        (void)tell(server, "DROP SCHEMA IF EXISTS %s CASCADE", server->schema[i]);
    PQfinish(server->meter.pq);
    weft_arena_free(server->arena);
}

const char *bench_server_schema(struct bench_server *server, const char *schema)
{
    if (!tell(server, "DROP SCHEMA IF EXISTS %s CASCADE", schema))
        return NULL;
    const char *url = weft_arena_printf(server->arena, "%s%cweft_schema=%s", server->url,
                                        strchr(server->url, '?') ? '&' : '?', schema);
    struct weft *weft;
    struct weft_err err = {0};
    enum weft_rc rc = weft_open(url, NULL, &weft, &err);
    if (rc) {
        (void)bench_fail(rc, &err, "migrate");
        return NULL;
    }
    weft_close(weft);
    server->schema[server->schemas++] = schema;
    return url;
}

bool bench_server_change(struct bench_server *server, const char *schema, const char *ddl)
{
    return !ddl || (tell(server, "SET search_path = %s", schema) && tell(server, "%s", ddl) &&
                    tell(server, "RESET search_path"));
}

/* One execution through the engine makes the interned rows, and says which they are. */
bool bench_server_floor(struct bench_server *server, const char *schema,
                        struct bench_floor *ret_floor)
{
    const char *url = bench_server_schema(server, schema);
    const struct bench_load load = {.batch = 1, .connections = 1, .turns = 1, .submit_only = true};
    struct bench_run run;
    if (!url || !bench_product_run(url, &load, NULL, &run))
        return false;
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "SELECT queue, lane, policy FROM %s.live", schema);
    PGresult *result = ask(server->meter.pq, sql);
    if (!result)
        return false;
    *ret_floor = (struct bench_floor){
        .url = server->url,
        .schema = schema,
        .queue = (int)strtol(PQgetvalue(result, 0, 0), NULL, 10),
        .lane = (int)strtol(PQgetvalue(result, 0, 1), NULL, 10),
        .policy = (int)strtol(PQgetvalue(result, 0, 2), NULL, 10),
    };
    PQclear(result);
    return true;
}

/*
 * Empties the tables and leaves them as a quiet night does: `live` has pages, no rows, and was
 * analyzed like that. Plans made now must be good for what comes, so they are measured like this.
 */
bool bench_server_clear(struct bench_server *server, const char *schema)
{
    return tell(server, "TRUNCATE %s.execution, %s.live, %s.outcome, %s.attempt", schema, schema,
                schema, schema) &&
           tell(server, "TRUNCATE %s.flow, %s.node, %s.edge, %s.completion, %s.cancel_group",
                schema, schema, schema, schema, schema) &&
           tell(server,
                "INSERT INTO %s.live (id, ord, queue, lane, policy, epoch, attempt, forgiven, size,"
                " lost, replays, priority, state) SELECT gen_random_uuid(), i, 0, 0, 0, 0, 1, 0, 0,"
                " 0, 0, 0, 1 FROM generate_series(1, 1000) i",
                schema) &&
           tell(server, "DELETE FROM %s.live", schema) &&
           tell(server, "ANALYZE %s.execution, %s.live, %s.outcome", schema, schema, schema) &&
           tell(server, "ANALYZE %s.flow, %s.node, %s.edge", schema, schema, schema);
}

bool bench_server_settle(struct bench_server *server, const char *schema)
{
    return tell(server, "VACUUM (ANALYZE) %s.live", schema) &&
           tell(server, "VACUUM (ANALYZE) %s.execution", schema) &&
           /* The load's own pages and segments of the log are not what is measured. */
           tell(server, "CHECKPOINT");
}

bool bench_server_hold_snapshot(struct bench_server *server, bool hold)
{
    PQfinish(server->snapshot);
    server->snapshot = NULL;
    if (!hold)
        return true;
    server->snapshot = PQconnectdb(server->url);
    PGresult *begin = ask(server->snapshot, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    PGresult *look = begin ? ask(server->snapshot, "SELECT count(*) FROM pg_class") : NULL;
    PQclear(begin);
    PQclear(look);
    return look != NULL;
}

const struct bench_meter *bench_server_meter(const struct bench_server *server)
{
    return &server->meter;
}

bool bench_meter_read(const struct bench_meter *meter, struct bench_reading *ret_reading)
{
    PGresult *result = ask(meter->pq,
                           "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'),"
                           " pg_snapshot_xmax(pg_current_snapshot())");
    if (!result)
        return false;
    ret_reading->wal_bytes = strtod(PQgetvalue(result, 0, 0), NULL);
    ret_reading->transactions = strtod(PQgetvalue(result, 0, 1), NULL);
    PQclear(result);
    return true;
}
