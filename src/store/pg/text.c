/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The texts sent to the server: the statements of sql/pg, the driver's own, and settings. A session
 * without a pooler gets the settings once, when it is opened. A pooler may give the session to
 * another client after each transaction, so behind a pooler every transaction sets them. Names of
 * tables carry the schema, so that nothing depends on a search path.
 */

#include "store/pg/pg.h"

#include "base/arena.h"

#include <ctype.h>
#include <string.h>

enum { NAME_SIZE = 4 }; /* of the word weft */

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

static const struct {
    const char *name;
    const char *text; /* NULL: built from the settings */
} own[] = {
    [WEFT_PG_BEGIN_READ - WEFT_STMT_COUNT] = {"begin",
                                              "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"},
    [WEFT_PG_BEGIN_WRITE -
        WEFT_STMT_COUNT] = {"begin", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"},
    [WEFT_PG_PIN_READ - WEFT_STMT_COUNT] = {"begin", NULL},
    [WEFT_PG_PIN_WRITE - WEFT_STMT_COUNT] = {"begin", NULL},
    [WEFT_PG_PIN_KEYED - WEFT_STMT_COUNT] = {"begin", NULL},
    [WEFT_PG_COMMIT - WEFT_STMT_COUNT] = {"commit", "COMMIT"},
    [WEFT_PG_ROLLBACK - WEFT_STMT_COUNT] = {"rollback", "ROLLBACK"},
    [WEFT_PG_TIME - WEFT_STMT_COUNT] = {"time",
                                        "SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) "
                                        "* 1000000)::bigint"},
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
    [WEFT_PG_SETTLE - WEFT_STMT_COUNT] =
        {"settle",
         "SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN 'in recovery'"
         " WHEN left(" WAL_FILE ", 8) = split_part($1::text, ' ', 3) THEN"
         " (SELECT CASE WHEN status <> 'committed' THEN status"
         " WHEN stats_reset < clock_timestamp()"
         " - split_part($1, ' ', 2)::bigint * interval '1 microsecond'"
         " AND pg_logical_emit_message(true, 'weft', '') IS NOT NULL THEN status END"
         " FROM pg_xact_status(split_part($1, ' ', 1)::xid8) AS x(status), pg_stat_bgwriter) END"},
    /* Process, timeline and system identifier; the role may lack the right to read the last. */
    [WEFT_PG_BACKEND - WEFT_STMT_COUNT] = {"open",
                                           "SELECT pg_catalog.pg_backend_pid(), CASE WHEN NOT"
                                           " pg_catalog.pg_is_in_recovery() THEN " WAL_FILE " END,"
                                           " system_identifier FROM"
                                           " pg_catalog.pg_control_system()"},
    [WEFT_PG_BACKEND_ALONE - WEFT_STMT_COUNT] = {"open",
                                                 "SELECT pg_catalog.pg_backend_pid(), CASE WHEN"
                                                 " NOT pg_catalog.pg_is_in_recovery()"
                                                 " THEN " WAL_FILE " END, NULL::bigint"},
    [WEFT_PG_SESSION - WEFT_STMT_COUNT] = {"open", NULL},
    /* Sent under a name like weft_123_probe: does the server know it by that name? */
    [WEFT_PG_PROBE - WEFT_STMT_COUNT] = {"probe",
                                         "SELECT count(*) FROM pg_prepared_statements"
                                         " WHERE name LIKE 'weft\\_%\\_probe'"},
    [WEFT_PG_FORGET - WEFT_STMT_COUNT] =
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
    return stmt != WEFT_PG_PIN_KEYED
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

void weft_pg_set_texts(struct weft_pg *pg)
{
    for (size_t i = 0; i < WEFT_STMT_COUNT; i++) {
        if (weft_stmts[i].pg)
            pg->text[i] = weft_pg_place_schema(weft_stmts[i].pg, pg->schema, pg->arena);
    }
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
