/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opening a connection. The URL is libpq's, except for the parameters that begin with weft_, which
 * are removed first. No message of this file repeats a part of the URL that could hold the
 * password.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "store/pg/pg.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVER_VERSION_MIN = 130000 }; /* the first with pg_current_xact_id() */

/* Longer than any statement may take: a server behind a dead network does not answer at all. */
#define EXCHANGE_MAX_US (40 * WEFT_SECOND)

static enum weft_rc bad_url(struct weft_err *err, const char *text, const char *hint)
{
    return weft_hint(err, weft_fail_field(err, WEFT_INVALID_VALUE, "url", "%s", text), hint);
}

static bool is_schema_name(const char *name)
{
    size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return size > 0 && size <= WEFT_PG_SCHEMA_MAX && name[size] == '\0' &&
           !strchr("0123456789", name[0]) && strncmp(name, "pg_", 3) != 0;
}

/* A parameter that begins with weft_. */
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

/* The query of the URL. A password may hold a question mark, so search behind it. */
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
    /* libpq would take the end of a password for the database name, and show it in its error. */
    const char *path = strchr(strstr(base, "://") + 3, '/');
    if (path && strchr(path, '@'))
        return bad_url(err, "there is an @ behind the first slash of the URL",
                       "in a password write %2F for a slash and %40 for an @");
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

    /* libpq quotes the part it does not understand, which may be the password: show the rest. */
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

/*
 * Two notices matter: the last message of a server that ends the session, and the warning that a
 * commit did not wait for its standbys. The text of that warning is translated, the name of the
 * function is not.
 */
static void on_notice(void *arg, const PGresult *result)
{
    struct weft_pg *pg = arg;
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
    if (function && strcmp(function, "SyncRepWaitForLSN") == 0)
        pg->unreplicated = true;
    if (severity && text && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0))
        (void)snprintf(pg->fatal, sizeof(pg->fatal), "%s", text);
}

/*
 * Connects by libpq's blocking call: only that one tries the next host of a list when a host does
 * not answer or is a standby. The parameters before the URL are defaults that the URL may override:
 * a host that disappears without a reset is noticed after 20 s, while data is being sent and while
 * waiting for an answer. For a refusal libpq gives text in the server's language and no SQLSTATE;
 * connecting once more in verbose mode gives the code. A slow failure is not repeated: it was no
 * refusal.
 */
static enum weft_rc connect_to(struct weft_pg *pg, const char *url, struct weft_err *err)
{
    static const struct {
        const char *key, *value;
    } standard[] = {
        {"connect_timeout", "10"},
        {"fallback_application_name", "weft"},
        {"target_session_attrs", "primary"},
        {"tcp_user_timeout", "20000"},
        {"keepalives_idle", "5"},
        {"keepalives_interval", "5"},
        {"keepalives_count", "3"},
    };
    const char *key[WEFT_LEN(standard) + 3], *value[WEFT_LEN(standard) + 3];
    size_t count = 0;
    for (; count < WEFT_LEN(standard); count++) {
        key[count] = standard[count].key;
        value[count] = standard[count].value;
    }
    key[count] = "dbname";
    value[count++] = url;
    key[count] = "client_encoding";
    value[count++] = "UTF8";
    key[count] = value[count] = NULL;
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
        return weft_hint(err,
                         weft_fail(err, WEFT_SCHEMA, "the server is PostgreSQL %d",
                                   PQserverVersion(pg->pq) / 10000),
                         "PostgreSQL 13 or newer is needed");
    }
    const char *encoding = PQparameterStatus(pg->pq, "server_encoding");
    if (encoding && strcmp(encoding, "UTF8") != 0) {
        return weft_hint(
            err,
            weft_fail(err, WEFT_SCHEMA, "the encoding of the database is %s, and weft needs UTF8",
                      encoding),
            "make another one: CREATE DATABASE weft ENCODING 'UTF8' TEMPLATE template0");
    }
    if (PQsetnonblocking(pg->pq, 1) != 0 || !PQenterPipelineMode(pg->pq))
        return weft_pg_lost(pg, "open", PQerrorMessage(pg->pq), err);
    weft_pg_set_texts(pg);
    return WEFT_OK;
}

/* ---- Poolers --------------------------------------------------------------------------------- */

/*
 * Reads the server's process id (it differs from libpq's if a pooler made that one up) and the
 * lineage of its transaction numbers. Every role may call these functions unless an administrator
 * revoked the right; then the system identifier stays unknown, and lineages differ by timeline
 * only.
 */
static enum weft_rc read_server(struct weft_pg *pg, bool *ret_pooler, struct weft_err *err)
{
    static const size_t stmt[] = {WEFT_PG_BACKEND, WEFT_PG_BACKEND_ALONE};
    enum weft_rc rc = WEFT_FORBIDDEN;
    for (size_t i = 0; i < WEFT_LEN(stmt) && rc == WEFT_FORBIDDEN; i++) {
        struct weft_pg_step step = {.stmt = stmt[i], .unnamed = true};
        rc = weft_pg_exchange(pg, &step, 1, err);
        if (!rc) {
            *ret_pooler = weft_pg_get_i64(step.result, 0, 0) != PQbackendPID(pg->pq);
            pg->conn.lineage.timeline = weft_pg_get_timeline(step.result, 0, 1);
            pg->conn.lineage.system = (uint64_t)weft_pg_get_i64(step.result, 0, 2);
        }
        weft_pg_clear(&step, 1);
    }
    return rc;
}

/*
 * Whether prepared statements survive the pooler. A pooler that gives a session to another client
 * after each transaction must track them; it then renames them, so that the statements of two
 * clients do not collide (PgBouncer from 1.21 on, with max_prepared_statements). If the server
 * knows a statement by the name it was sent under, the pooler does not track it: the next
 * transaction may find no statement of that name, or another client's. All four steps are in one
 * implicit transaction, so they reach one session, and leave nothing behind.
 */
static enum weft_rc probe_names(struct weft_pg *pg, bool *ret_kept, struct weft_err *err)
{
    struct weft_pg_step step[] = {
        {.stmt = WEFT_PG_FORGET, .unnamed = true}, /* remains of an interrupted probe */
        {.stmt = WEFT_PG_PROBE, .prepares = true},
        {.stmt = WEFT_PG_PROBE},
        {.stmt = WEFT_PG_FORGET, .unnamed = true},
    };
    struct weft_err error = {0};
    enum weft_rc rc = weft_pg_exchange(pg, step, WEFT_LEN(step), &error);
    bool kept = !rc && weft_pg_get_i64(step[2].result, 0, 0) == 0;
    weft_pg_clear(step, WEFT_LEN(step));
    pg->prepared[WEFT_PG_PROBE] = false;
    if (rc && pg->in_step && PQstatus(pg->pq) == CONNECTION_OK) {
        pg->conn.broken = false; /* the pooler refuses names, but works without them */
        rc = WEFT_OK;
    }
    if (rc && err)
        *err = error;
    if (!rc)
        *ret_kept = kept;
    return rc;
}

/* Sets the session, or behind a pooler each transaction. */
static enum weft_rc set_session(struct weft_pg *pg, struct weft_err *err)
{
    if (pg->pooled) {
        weft_pg_set_texts(pg);
        return WEFT_OK;
    }
    struct weft_pg_step step = {.stmt = WEFT_PG_SESSION, .unnamed = true};
    enum weft_rc rc = weft_pg_exchange(pg, &step, 1, err);
    weft_pg_clear(&step, 1);
    return rc;
}

/* Decides whether to use prepared statements: not where a pooler would lose them. */
static enum weft_rc choose_names(struct weft_pg *pg, struct weft_err *err)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    bool pooler = false;
    enum weft_rc rc = read_server(pg, &pooler, err);
    pg->pooled = pooler;
    if (!rc)
        rc = set_session(pg, err);
    if (!rc && pooler && !pg->decided)
        rc = probe_names(pg, &pg->named, err);
    if (!rc && !pg->named && !pg->decided && !atomic_flag_test_and_set(&logged))
        weft_info(
            "the pooler before the database keeps no prepared statements: doing without them");
    return rc;
}

enum weft_rc weft_pg_open(const char *url, struct weft_conn **ret_conn, struct weft_err *err)
{
    const char *clean = NULL;
    struct weft_pg *pg = weft_alloc(1, sizeof(*pg));
    pg->conn.driver = &weft_driver_pg;
    pg->arena = weft_arena_new();
    pg->schema = "weft";
    pg->named = true;
    pg->exchange_us = EXCHANGE_MAX_US;

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
