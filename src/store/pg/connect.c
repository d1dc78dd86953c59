/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opening a connection. The URL is libpq's, but for the parameters that begin with weft_, which
 * are taken out first. No message of this file repeats a piece of the URL that could hold the
 * password.
 */

#include "store/pg/pg.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVER_VERSION_MIN = 130000 }; /* the first with pg_current_xact_id() */

static enum weft_rc bad_url(struct weft_err *err, const char *text, const char *hint)
{
    enum weft_rc rc = weft_fail_field(err, WEFT_INVALID_VALUE, "url", "%s", text);
    if (err)
        err->hint = hint;
    return rc;
}

static bool is_schema_name(const char *name)
{
    size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return size > 0 && size <= WEFT_PG_SCHEMA_MAX && name[size] == '\0' &&
           !strchr("0123456789", name[0]) && strncmp(name, "pg_", 3) != 0;
}

/* Takes a parameter of ours. */
static enum weft_rc read_option(struct weft_pg *pg, char *option, struct weft_err *err)
{
    char *value = strchr(option, '=');
    if (value)
        *value++ = '\0';
    if (value && strcmp(option, "weft_schema") == 0) {
        if (!is_schema_name(value))
            return bad_url(err,
                           "weft_schema must be a name of a-z, 0-9 and _ that does not begin "
                           "with a digit or pg_",
                           NULL);
        pg->schema = value;
        return WEFT_OK;
    }
    if (value && strcmp(option, "weft_prepare") == 0) {
        pg->named = strcmp(value, "off") != 0;
        pg->decided = strcmp(value, "auto") != 0;
        if (!pg->named || !pg->decided || strcmp(value, "on") == 0)
            return WEFT_OK;
        return bad_url(err, "weft_prepare must be on, off or auto", NULL);
    }
    return bad_url(err,
                   "of the parameters that begin with weft_ there are weft_schema and "
                   "weft_prepare",
                   NULL);
}

/* Where the parameters begin. A password may hold a question mark, so look behind it. */
static char *find_query(char *url)
{
    char *host = strstr(url, "://") + 3;
    char *end = host + strcspn(host, "@/");
    return strchr(*end == '@' ? end : host, '?');
}

static enum weft_rc read_url(struct weft_pg *pg, const char *url, const char **ret_url,
                             struct weft_err *err)
{
    char *base = weft_arena_strdup(pg->arena, url);
    char *query = find_query(base);
    const char *clean = base;
    const char *joint = "?";
    if (query)
        *query++ = '\0';
    for (char *saved = NULL, *option = query ? strtok_r(query, "&", &saved) : NULL; option;
         option = strtok_r(NULL, "&", &saved)) {
        if (strncmp(option, "weft_", 5) != 0) {
            clean = weft_arena_printf(pg->arena, "%s%s%s", clean, joint, option);
            joint = "&";
            continue;
        }
        enum weft_rc rc = read_option(pg, option, err);
        if (rc)
            return rc;
    }

    /* libpq quotes what it does not understand, which may be the password: tell the rest alone. */
    char *message = NULL;
    PQconninfoOption *parsed = PQconninfoParse(clean, &message);
    if (!parsed) {
        char text[128];
        (void)snprintf(text, sizeof(text), "libpq does not understand the URL: %.*s",
                       message ? (int)strcspn(message, ":\"\n") : 0, message ? message : "");
        PQfreemem(message);
        return bad_url(err, text, "write postgres://USER@HOST:PORT/DATABASE");
    }
    PQconninfoFree(parsed);
    *ret_url = clean;
    return WEFT_OK;
}

/* Notices are nobody's business, but the farewell of a server tells why a connection died. */
static void on_notice(void *arg, const PGresult *result)
{
    struct weft_pg *pg = arg;
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (severity && text && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0))
        (void)snprintf(pg->fatal, sizeof(pg->fatal), "%s", text);
}

/*
 * Connects by libpq's blocking call, which alone moves on to the next host of a list when one does
 * not answer. For a refusal it gives text in the server's language and no SQLSTATE; asking once
 * more in verbose mode brings the code. A slow failure is not repeated: nobody refused there.
 */
static enum weft_rc connect_to(struct weft_pg *pg, const char *url, struct weft_err *err)
{
    const char *const key[] = {"connect_timeout", "fallback_application_name", "dbname",
                               "client_encoding", NULL};
    const char *const value[] = {"10", "weft", url, "UTF8", NULL};
    weft_usec start_us = weft_boot_us();
    pg->pq = PQconnectdbParams(key, value, 1);
    if (!pg->pq)
        weft_oom(sizeof(*pg));
    if (PQstatus(pg->pq) == CONNECTION_OK)
        return WEFT_OK;

    const char *text = weft_arena_strdup(pg->arena, PQerrorMessage(pg->pq));
    if (weft_boot_us() - start_us < WEFT_SECOND) {
        (void)PQsetErrorVerbosity(pg->pq, PQERRORS_VERBOSE);
        PQreset(pg->pq);
        (void)PQsetErrorVerbosity(pg->pq, PQERRORS_DEFAULT);
        if (PQstatus(pg->pq) == CONNECTION_OK)
            return WEFT_OK;
    }
    return weft_pg_fail_open(pg, text, err);
}

static enum weft_rc set_up(struct weft_pg *pg, struct weft_err *err)
{
    (void)PQsetNoticeReceiver(pg->pq, on_notice, pg);
    if (PQserverVersion(pg->pq) < SERVER_VERSION_MIN) {
        enum weft_rc rc = weft_fail(err, WEFT_SCHEMA, "the server is PostgreSQL %d",
                                    PQserverVersion(pg->pq) / 10000);
        if (err)
            err->hint = "PostgreSQL 13 or newer is needed";
        return rc;
    }
    if (PQsetnonblocking(pg->pq, 1) != 0 || !PQenterPipelineMode(pg->pq))
        return weft_pg_lost(pg, "open", PQerrorMessage(pg->pq), err);
    weft_pg_set_texts(pg);
    return WEFT_OK;
}

/* ---- Poolers --------------------------------------------------------------------------------- */

/* The server process behind the connection; a pooler made up the number that libpq was told. */
static enum weft_rc find_pooler(struct weft_pg *pg, bool *ret_pooler, struct weft_err *err)
{
    struct weft_pg_step step = {.stmt = WEFT_PG_BACKEND, .unnamed = true};
    enum weft_rc rc = weft_pg_exchange(pg, &step, 1, err);
    if (!rc)
        *ret_pooler = weft_pg_get_i64(step.result, 0, 0) != PQbackendPID(pg->pq);
    weft_pg_clear(&step, 1);
    return rc;
}

/*
 * Whether prepared statements survive the pooler. One that gives a session to another client after
 * each transaction must keep track of them; it then renames them, so that the statements of two
 * clients do not meet (PgBouncer from 1.21 on, with max_prepared_statements). Where the server
 * knows a statement by the name it was sent under, the pooler does not track it: the next
 * transaction may find no statement of that name, or that of another client. All four steps are in
 * one implicit transaction, so they reach one session, and nothing stays there.
 */
static enum weft_rc try_names(struct weft_pg *pg, bool *ret_kept, struct weft_err *err)
{
    struct weft_pg_step step[] = {
        {.stmt = WEFT_PG_FORGET, .unnamed = true}, /* what an attempt that was cut off left */
        {.stmt = WEFT_PG_PROBE, .prepares = true},
        {.stmt = WEFT_PG_PROBE},
        {.stmt = WEFT_PG_FORGET, .unnamed = true},
    };
    struct weft_err story = {0};
    enum weft_rc rc = weft_pg_exchange(pg, step, WEFT_LEN(step), &story);
    bool kept = !rc && weft_pg_get_i64(step[2].result, 0, 0) == 0;
    weft_pg_clear(step, WEFT_LEN(step));
    pg->prepared[WEFT_PG_PROBE] = false;
    if (rc && pg->in_step && PQstatus(pg->pq) == CONNECTION_OK) {
        pg->conn.broken = false; /* the pooler refuses names, and is of use without them */
        rc = WEFT_OK;
    }
    if (rc && err)
        *err = story;
    if (!rc)
        *ret_kept = kept;
    return rc;
}

/* Does without prepared statements where they would be lost. */
static enum weft_rc choose_names(struct weft_pg *pg, struct weft_err *err)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    bool pooler = false;
    if (pg->decided)
        return WEFT_OK;
    enum weft_rc rc = find_pooler(pg, &pooler, err);
    if (!rc && pooler)
        rc = try_names(pg, &pg->named, err);
    if (!rc && !pg->named && !atomic_flag_test_and_set(&told))
        weft_info(
            "the pooler before the database keeps no prepared statements: doing without them");
    return rc;
}

enum weft_rc weft_pg_open(const char *url, struct weft_conn **ret_conn, struct weft_err *err)
{
    const char *clean = NULL;
    struct weft_pg *pg = calloc(1, sizeof(*pg));
    if (!pg)
        weft_oom(sizeof(*pg));
    pg->conn.driver = &weft_driver_pg;
    pg->arena = weft_arena_new();
    pg->schema = "weft";
    pg->named = true;

    enum weft_rc rc = read_url(pg, url, &clean, err);
    if (!rc)
        rc = connect_to(pg, clean, err);
    if (!rc)
        rc = set_up(pg, err);
    if (!rc)
        rc = choose_names(pg, err);
    if (rc) {
        weft_pg_close(&pg->conn);
        return rc;
    }
    *ret_conn = &pg->conn;
    return WEFT_OK;
}

void weft_pg_close(struct weft_conn *conn)
{
    if (!conn)
        return;
    struct weft_pg *pg = weft_pg_of(conn);
    PQfinish(pg->pq);
    weft_arena_free(pg->arena);
    free(pg->scratch);
    free(pg);
}
