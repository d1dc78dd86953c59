/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opening a connection, and the texts sent over it: the statements of sql/pg, the driver's own, and
 * settings.
 *
 * The URL is libpq's, except for the parameters that begin with weft_, which are removed first. No
 * message of this file repeats a part of the URL that could hold the password.
 *
 * A session without a pooler gets the settings once, when it is opened. A pooler may give the
 * session to another client after each transaction, so behind a pooler every transaction sets them.
 * Names of tables carry the schema, so that nothing depends on a search path.
 */

#include "store/pg/pg.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SERVER_VERSION_MIN = 130000, /* the first with pg_current_xact_id() */
    NAME_SIZE = 4,               /* of the word weft */
};

/* Longer than any statement may take: a server behind a dead network does not answer at all. */
#define EXCHANGE_MAX_US (40 * WEFT_SECOND)

/* ---- Texts ----------------------------------------------------------------------------------- */

/*
 * Timeouts bound how long a lost client can hold locks. The plan settings force the plans that the
 * statements were written for: one generic plan over an index whatever the statistics say. The
 * statements depend on the others, which a role, a database or the URL may have set otherwise.
 * BEGIN sets isolation and access mode; the defaults are for statements without BEGIN.
 */
static const struct {
    const char *name;
    const char *value;
    bool defaults; /* of no use within a transaction */
} settings[] = {
    {"standard_conforming_strings", "on", false},
    {"search_path", "pg_catalog", false},
    {"DateStyle", "ISO", false},
    {"default_transaction_isolation", "read committed", true},
    {"default_transaction_read_only", "off", true},
    {"default_transaction_deferrable", "off", true},
    {"statement_timeout", "30s", false},
    {"idle_in_transaction_session_timeout", "60s", false},
    {"plan_cache_mode", "force_generic_plan", false},
    {"enable_seqscan", "off", false},
    {"enable_hashjoin", "off", false},
    {"enable_mergejoin", "off", false},
    {"enable_bitmapscan", "off", false},
    {"jit", "off", false},
    {"lock_timeout", "5s", false},
};

/* A keyed write may wait for a key that an application inserted in an open transaction. */
static const char lock_timeout_keyed[] = "200ms";

/* Its name begins with the timeline, in eight hexadecimal digits. An error in recovery. */
#define WAL_FILE "pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn())"
#define SET      "pg_catalog.set_config("
#define SELECT_BACKEND                                                                             \
    "SELECT pg_catalog.pg_backend_pid(), CASE WHEN NOT pg_catalog.pg_is_in_recovery() "            \
    "THEN " WAL_FILE " END, "
#define OWN(name) [WEFT_PG_##name - WEFT_STMT_COUNT]

static const struct {
    const char *name;
    const char *text; /* NULL: built from the settings */
} own[] = {
    OWN(BEGIN_READ) = {"begin", "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"},
    OWN(BEGIN_WRITE) = {"begin", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"},
    OWN(PIN_READ) = {"begin", NULL},
    OWN(PIN_WRITE) = {"begin", NULL},
    OWN(PIN_KEYED) = {"begin", NULL},
    OWN(PIN_HOT) = {"begin", NULL},
    OWN(COMMIT) = {"commit", "COMMIT"},
    /*
     * Behind the COMMIT of a hot transaction, which waited for nothing. The message makes this
     * statement a writing transaction of its own: it ends, at the Sync behind it, when its WAL, and
     * with it all that comes before, is on the disk and on the standbys.
     */
    OWN(FLUSH) = {"flush", "SELECT pg_catalog.pg_logical_emit_message(true, 'weft', '')"},
    OWN(ROLLBACK) = {"rollback", "ROLLBACK"},
    OWN(TIME) = {"time",
                 "SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint"},
    /*
     * $1 is "xid age timeline". A number identifies our transaction only where it was assigned:
     *
     * - On another timeline it belongs to another transaction or to none. The timeline is that of
     *   the WAL being written; the one in the control file lags behind a promotion.
     * - A crash loses WAL that was not on disk, and with it the fact that the number was assigned:
     *   another transaction gets the same number, and its commit says nothing about ours. The
     *   statistics are reset after a crash, and only then, unless an administrator resets them: so
     *   stats_reset must be older than our transaction.
     *
     * A commit may exist without the standbys it should have waited for: a fast shutdown or
     * pg_cancel_backend() ends that wait, and a promotion then loses the commit. The logical
     * message makes this statement a writing transaction, so that its own commit, at the Sync
     * behind it, waits for the same standbys; its WAL comes after that of our commit.
     */
    OWN(SETTLE) =
        {"settle",
         "SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN 'in recovery'"
         " WHEN left(" WAL_FILE ", 8) = split_part($1::text, ' ', 3) THEN"
         " (SELECT CASE WHEN status <> 'committed' THEN status"
         " WHEN stats_reset < clock_timestamp()"
         " - split_part($1, ' ', 2)::bigint * interval '1 microsecond'"
         " AND pg_logical_emit_message(true, 'weft', '') IS NOT NULL THEN status END"
         " FROM pg_xact_status(split_part($1, ' ', 1)::xid8) AS x(status), pg_stat_bgwriter) END"},
    /* Process, timeline and system identifier; the role may lack the right to read the last. */
    OWN(BACKEND) = {"open", SELECT_BACKEND "system_identifier FROM pg_catalog.pg_control_system()"},
    OWN(BACKEND_ALONE) = {"open", SELECT_BACKEND "NULL::bigint"},
    OWN(SESSION) = {"open", NULL},
    /* Sent under a name like weft_123_probe: does the server know it by that name? */
    OWN(PROBE) = {"probe",
                  "SELECT count(*) FROM pg_prepared_statements"
                  " WHERE name LIKE 'weft\\_%\\_probe'"},
    OWN(FORGET) =
        {"open",
         "DO $$ DECLARE known text; BEGIN"
         " FOR known IN SELECT name FROM pg_prepared_statements WHERE name LIKE 'weft\\_%\\_probe'"
         " LOOP EXECUTE format('DEALLOCATE %I', known); END LOOP; END $$"},
};

const char *weft_pg_stmt_name(size_t stmt)
{
    return stmt < WEFT_STMT_COUNT ? weft_stmts[stmt].name : own[stmt - WEFT_STMT_COUNT].name;
}

/*
 * The statement after BEGIN. Column 0 of a write is the number of the transaction, known before
 * COMMIT is sent; column 1 the timeline on which it is valid. The settings follow.
 */
static const char *pin_text(const struct weft_pg *pg, size_t stmt)
{
    const char *text = stmt == WEFT_PG_PIN_READ
                           ? "SELECT NULL"
                           : "SELECT pg_catalog.pg_current_xact_id(), " WAL_FILE;
    for (size_t i = 0; i < WEFT_LEN(settings) && pg->pooled; i++)
        if (!settings[i].defaults)
            text = weft_arena_printf(pg->arena, "%s, " SET "'%s', '%s', true)", text,
                                     settings[i].name, settings[i].value);
    if (stmt == WEFT_PG_PIN_HOT)
        text = weft_arena_printf(pg->arena, "%s, " SET "'synchronous_commit', 'off', true)", text);
    return stmt != WEFT_PG_PIN_KEYED && stmt != WEFT_PG_PIN_HOT
               ? text
               : weft_arena_printf(pg->arena, "%s, " SET "'lock_timeout', '%s', true)", text,
                                   lock_timeout_keyed);
}

/* From PostgreSQL 14 on a role may have idle sessions closed; weft keeps idle sessions. */
static const char *session_text(const struct weft_pg *pg)
{
    const char *text = "SELECT";
    for (size_t i = 0; i < WEFT_LEN(settings); i++)
        text = weft_arena_printf(pg->arena, "%s%s " SET "'%s', '%s', false)", text, i ? "," : "",
                                 settings[i].name, settings[i].value);
    return PQserverVersion(pg->pq) < 140000
               ? text
               : weft_arena_printf(pg->arena, "%s, " SET "'idle_session_timeout', '0', false)",
                                   text);
}

static void set_texts(struct weft_pg *pg)
{
    for (size_t i = 0; i < WEFT_STMT_COUNT; i++)
        if (weft_stmts[i].pg)
            pg->text[i] = weft_pg_place_schema(weft_stmts[i].pg, pg->schema, pg->arena);
    for (size_t i = WEFT_STMT_COUNT; i < WEFT_PG_STMT_COUNT; i++) {
        const char *text = own[i - WEFT_STMT_COUNT].text;
        pg->text[i] = text ? text : i == WEFT_PG_SESSION ? session_text(pg) : pin_text(pg, i);
    }
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* True when the text before `at` ends in the word, with white space between. */
static bool follows_word(const char *text, const char *at, const char *word)
{
    const char *end = at;
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    size_t size = strlen(word);
    return end < at && (size_t)(end - text) >= size && strncasecmp(end - size, word, size) == 0;
}

/*
 * The schema is named in two ways: as the qualifier "weft.", also inside a quoted name that a
 * function resolves, and alone after the words SCHEMA and EXISTS. Any other use of the word (a
 * channel, a role, weft_something) is left unchanged.
 */
static bool is_schema_at(const char *text, const char *at)
{
    if (at > text && (is_name_char(at[-1]) || at[-1] == '.' || at[-1] == '"'))
        return false;
    if (at[NAME_SIZE] == '.')
        return true;
    return !is_name_char(at[NAME_SIZE]) &&
           (follows_word(text, at, "SCHEMA") || follows_word(text, at, "EXISTS"));
}

const char *weft_pg_place_schema(const char *sql, const char *schema, struct weft_arena *arena)
{
    size_t count = 0;
    if (strcmp(schema, "weft") == 0)
        return sql;
    for (const char *at = sql; (at = strstr(at, "weft")) != NULL; at += NAME_SIZE)
        count++;

    /* Quoted, because the name may be a word that SQL reserves. */
    size_t schema_size = strlen(schema) + 2;
    char *out = weft_arena_alloc(arena, strlen(sql) + count * schema_size + 1, 1);
    char *end = out;
    const char *from = sql;
    for (const char *at = sql; (at = strstr(at, "weft")) != NULL; at += NAME_SIZE) {
        if (!is_schema_at(sql, at))
            continue;
        end = mempcpy(end, from, (size_t)(at - from));
        *end++ = '"';
        end = mempcpy(end, schema, schema_size - 2);
        *end++ = '"';
        from = at + NAME_SIZE;
    }
    memcpy(end, from, strlen(from) + 1);
    return out;
}

/* ---- The URL --------------------------------------------------------------------------------- */

static enum weft_rc bad_url(struct weft_err *err, const char *text, const char *hint)
{
    return weft_hint(err, weft_invalid(err, "url", "%s", text), hint);
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

/* ---- Connecting ------------------------------------------------------------------------------ */

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
    const struct {
        const char *key, *value;
    } pair[] = {
        {"connect_timeout", "10"},
        {"fallback_application_name", "weft"},
        {"target_session_attrs", "primary"},
        {"tcp_user_timeout", "20000"},
        {"keepalives_idle", "5"},
        {"keepalives_interval", "5"},
        {"keepalives_count", "3"},
        {"dbname", url},
        {"client_encoding", "UTF8"},
        {NULL, NULL},
    };
    const char *key[WEFT_LEN(pair)], *value[WEFT_LEN(pair)];
    for (size_t i = 0; i < WEFT_LEN(pair); i++) {
        key[i] = pair[i].key;
        value[i] = pair[i].value;
    }
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
    if (PQserverVersion(pg->pq) < SERVER_VERSION_MIN)
        return weft_hint(err,
                         weft_fail(err, WEFT_SCHEMA, "the server is PostgreSQL %d",
                                   PQserverVersion(pg->pq) / 10000),
                         "PostgreSQL 13 or newer is needed");
    const char *encoding = PQparameterStatus(pg->pq, "server_encoding");
    if (encoding && strcmp(encoding, "UTF8") != 0)
        return weft_hint(
            err,
            weft_fail(err, WEFT_SCHEMA, "the encoding of the database is %s, and weft needs UTF8",
                      encoding),
            "make another one: CREATE DATABASE weft ENCODING 'UTF8' TEMPLATE template0");
    if (PQsetnonblocking(pg->pq, 1) != 0 || !PQenterPipelineMode(pg->pq))
        return weft_pg_lost(pg, "open", PQerrorMessage(pg->pq), err);
    set_texts(pg);
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
        set_texts(pg);
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
