/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One round trip with the server, in libpq's pipeline mode.
 *
 * Sending never blocks: bytes that the socket does not accept stay in libpq's buffer, and while
 * they drain the driver also reads, so two sides with full buffers cannot wait for each other.
 * Every wait has a deadline, after which the connection is closed: the state of the server is
 * unknown then.
 *
 * A Sync ends each exchange. After an error the server skips everything up to the Sync, so when its
 * answer has arrived both sides are synchronized again, whatever happened before.
 *
 * libpq's buffers grow to the largest exchange and never shrink. The connection records when it
 * last carried much, so that its owner can replace it some time later.
 */

#include "store/pg/pg.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define SCRIPT_MAX_US (3600 * WEFT_SECOND) /* a migration may rewrite a large table */

enum { BINARY = 1, NAME_TEXT = 80 };

static void print_name(size_t stmt, char ret_name[NAME_TEXT])
{
    (void)snprintf(ret_name, NAME_TEXT, "weft_%zu_%s", stmt, weft_pg_stmt_name(stmt));
}

static int send_prepare(struct weft_pg *pg, const struct weft_pg_step *step)
{
    struct weft_pg_params params;
    char name[NAME_TEXT];
    weft_pg_param_types(step->stmt, &params);
    print_name(step->stmt, name);
    return PQsendPrepare(pg->pq, pg->named ? name : "", pg->text[step->stmt], params.count,
                         params.type);
}

static int send_execute(struct weft_pg *pg, const struct weft_pg_step *step,
                        const struct weft_pg_params *params)
{
    char name[NAME_TEXT];
    if (!pg->named || step->unnamed)
        return PQsendQueryParams(pg->pq, pg->text[step->stmt], params->count, params->type,
                                 params->value, params->size, params->format, BINARY);
    print_name(step->stmt, name);
    return PQsendQueryPrepared(pg->pq, name, params->count, params->value, params->size,
                               params->format, BINARY);
}

static enum weft_rc send_step(struct weft_pg *pg, const struct weft_pg_step *step,
                              struct weft_err *err)
{
    struct weft_pg_params params;
    params.count = 0;
    if (step->call && !step->prepares) {
        enum weft_rc rc = weft_pg_encode(pg, step->call, &params, err);
        if (rc)
            return rc;
        for (int i = 0; i < params.count; i++)
            pg->carried += (size_t)params.size[i];
    } else if (step->text) {
        weft_pg_param_types(step->stmt, &params);
        params.value[0] = step->text;
        params.format[0] = 0;
    }
    if ((step->prepares ? send_prepare(pg, step) : send_execute(pg, step, &params)) &&
        (!step->leaves || PQsendFlushRequest(pg->pq)))
        return WEFT_OK;
    return weft_pg_lost(pg, weft_pg_stmt_name(step->stmt), PQerrorMessage(pg->pq), err);
}

/* Waits until the socket can be read, or written when there is something left to send. */
static bool wait_for_socket(struct weft_pg *pg, bool unsent, weft_usec deadline_us)
{
    weft_usec left_us = deadline_us - weft_boot_us();
    struct pollfd fd = {.fd = PQsocket(pg->pq), .events = (short)(POLLIN | (unsent ? POLLOUT : 0))};
    if (left_us <= 0)
        return false;
    return poll(&fd, 1, (int)(left_us / 1000) + 1) != 0 || weft_boot_us() < deadline_us;
}

/*
 * The next result, or NULL between two requests. False when the deadline passed. Once the
 * connection is bad, PQgetResult() does not wait: its result holds the reason.
 */
static bool next_result(struct weft_pg *pg, weft_usec deadline_us, PGresult **ret_result)
{
    for (;;) {
        int unsent = PQflush(pg->pq);
        if (unsent < 0 || !PQisBusy(pg->pq))
            break;
        if (!wait_for_socket(pg, unsent > 0, deadline_us))
            return false;
        if (!PQconsumeInput(pg->pq))
            break;
    }
    *ret_result = PQgetResult(pg->pq);
    return true;
}

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Gives a result to its step, or records the first failure of the exchange in *rc. */
static void take_result(struct weft_pg *pg, struct weft_pg_step *step, PGresult *result,
                        enum weft_rc *rc, struct weft_err *err)
{
    pg->carried += PQresultMemorySize(result);
    if (is_good(result) && !step->result) {
        step->result = result;
        if (step->prepares)
            pg->prepared[step->stmt] = true;
        return;
    }
    pg->terminated |= weft_pg_is_terminated(result);
    if (*rc == WEFT_OK && PQresultStatus(result) != PGRES_PIPELINE_ABORTED)
        *rc = weft_pg_fail(pg, result, weft_pg_stmt_name(step->stmt), err);
    PQclear(result);
}

/* A pooler may assign a session that once listened; libpq would keep its notices for ever. */
static void drop_notices(struct weft_pg *pg)
{
    PGnotify *notice;
    while ((notice = PQnotifies(pg->pq)) != NULL)
        PQfreemem(notice);
}

static enum weft_rc drain(struct weft_pg *pg, struct weft_pg_step *step, size_t count,
                          struct weft_err *err)
{
    weft_usec deadline_us = weft_boot_us() + pg->exchange_us;
    enum weft_rc rc = WEFT_OK;
    size_t at = 0;
    for (;;) {
        PGresult *result = NULL;
        const char *what = weft_pg_stmt_name(step[at < count ? at : count - 1].stmt);
        if (!next_result(pg, deadline_us, &result))
            return weft_pg_lost(pg, what, "the server did not answer in time", err);
        if (result && PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            PQclear(result);
            drop_notices(pg);
            pg->in_step = true;
            return rc;
        }
        if (result)
            take_result(pg, &step[at < count ? at : count - 1], result, &rc, err);
        else
            at++;
        if (PQstatus(pg->pq) == CONNECTION_BAD) {
            pg->conn.broken = true;
            return rc ? rc : weft_pg_lost(pg, what, PQerrorMessage(pg->pq), err);
        }
    }
}

enum weft_rc weft_pg_exchange(struct weft_pg *pg, struct weft_pg_step *step, size_t count,
                              struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    size_t sent = 0;
    pg->in_step = pg->terminated = false;
    if (pg->conn.broken)
        return weft_pg_lost(pg, weft_pg_stmt_name(step[0].stmt), "the connection is broken", err);
    pg->carried = 0;
    while (!rc && sent < count) {
        rc = send_step(pg, &step[sent], err);
        sent += !rc;
    }
    if (pg->conn.broken)
        return rc;
    if (!PQpipelineSync(pg->pq))
        return weft_pg_lost(pg, weft_pg_stmt_name(step[0].stmt), PQerrorMessage(pg->pq), err);
    /* A call that could not be encoded ends the exchange early; the steps sent are answered. */
    enum weft_rc drained = drain(pg, step, sent > 0 ? sent : 1, rc ? NULL : err);
    if (pg->carried > WEFT_PG_KEEP_BYTES)
        pg->conn.buffers_large_since_us = weft_boot_us();
    return rc ? rc : drained;
}

void weft_pg_clear(struct weft_pg_step *step, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        PQclear(step[i].result);
        step[i].result = NULL;
    }
}

static enum weft_rc drain_simple(struct weft_pg *pg, struct weft_err *err)
{
    weft_usec deadline_us = weft_boot_us() + SCRIPT_MAX_US;
    enum weft_rc rc = WEFT_OK;
    for (;;) {
        PGresult *result = NULL;
        if (!next_result(pg, deadline_us, &result))
            return weft_pg_lost(pg, "script", "the server did not answer in time", err);
        if (!result)
            break;
        if (!rc && !is_good(result) && PQresultStatus(result) != PGRES_EMPTY_QUERY)
            rc = weft_pg_fail(pg, result, "script", err);
        PQclear(result);
    }
    if (PQstatus(pg->pq) == CONNECTION_BAD) {
        pg->conn.broken = true;
        rc = rc ? rc : weft_pg_lost(pg, "script", PQerrorMessage(pg->pq), err);
    }
    return rc;
}

enum weft_rc weft_pg_simple(struct weft_pg *pg, const char *sql, struct weft_err *err)
{
    /* Several statements in one text need the simple protocol, which pipelines do not support. */
    if (!PQexitPipelineMode(pg->pq) || !PQsendQuery(pg->pq, sql))
        return weft_pg_lost(pg, "script", PQerrorMessage(pg->pq), err);
    enum weft_rc rc = drain_simple(pg, err);
    if (!pg->conn.broken && !PQenterPipelineMode(pg->pq))
        return weft_pg_lost(pg, "script", PQerrorMessage(pg->pq), err);
    return rc;
}

bool weft_pg_is_gone(struct weft_pg *pg)
{
    if (pg->conn.broken || !PQconsumeInput(pg->pq))
        return true;
    (void)PQisBusy(pg->pq); /* parses arrived data; a last message goes to on_notice() */
    return PQstatus(pg->pq) == CONNECTION_BAD || pg->fatal[0] != '\0';
}
