/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Maps SQLSTATE to enum weft_rc. An error text holds the attempted statement and PostgreSQL's
 * primary message; never its detail, which quotes rows, and never a parameter.
 */

#include "store/pg/pg.h"

#include <string.h>

struct mapping {
    const char *state; /* a whole SQLSTATE or the beginning of one */
    enum weft_rc rc;
    enum weft_cause cause;
    const char *hint; /* static */
};

static const char hint_pooler[] =
    "a connection pooler loses prepared statements: remove weft_prepare=on from the URL, or say "
    "off";
static const char hint_migrate[] = "run `weft migrate`, or use the binary that fits the schema";
static const char hint_primary[] = "connect to the primary, not to a standby";
static const char hint_grant[] = "check the role, its password and its grants on the schema";
static const char hint_slow[] = "the statement took too long or was cancelled";
static const char hint_limits[] = "the server is out of connections or memory";
static const char hint_space[] = "free space on the database server";

/* The first match counts: whole states come before their class. */
/* clang-format off */
static const struct mapping mappings[] = {
    {"40001", WEFT_BUSY,          WEFT_CAUSE_CONTENTION,   NULL},
    {"40P01", WEFT_BUSY,          WEFT_CAUSE_CONTENTION,   NULL},
    {"55P03", WEFT_BUSY,          WEFT_CAUSE_LOCK_TIMEOUT, "an open transaction holds the lock"},
    {"57014", WEFT_UNAVAILABLE,   WEFT_CAUSE_NONE,         hint_slow},
    {"23505", WEFT_CONFLICT,      WEFT_CAUSE_DUPLICATE,    NULL},
    {"22",    WEFT_INVALID_VALUE, WEFT_CAUSE_DATA,         NULL},
    {"23",    WEFT_INVALID_VALUE, WEFT_CAUSE_DATA,         NULL},
    {"42501", WEFT_FORBIDDEN,     WEFT_CAUSE_NONE,         hint_grant},
    {"28",    WEFT_FORBIDDEN,     WEFT_CAUSE_NONE,         hint_grant},
    {"53100", WEFT_STORAGE_FULL,  WEFT_CAUSE_NONE,         hint_space},
    {"53",    WEFT_UNAVAILABLE,   WEFT_CAUSE_LOST,         hint_limits},
    {"57P",   WEFT_UNAVAILABLE,   WEFT_CAUSE_LOST,         NULL},
    {"08",    WEFT_UNAVAILABLE,   WEFT_CAUSE_LOST,         NULL},
    {"25P03", WEFT_UNAVAILABLE,   WEFT_CAUSE_LOST,         NULL},
    {"25006", WEFT_UNAVAILABLE,   WEFT_CAUSE_LOST,         hint_primary},
    {"0A000", WEFT_UNAVAILABLE,   WEFT_CAUSE_LOST,         hint_primary}, /* BEGIN in recovery */
    {"26000", WEFT_UNAVAILABLE,   WEFT_CAUSE_LOST,         hint_pooler},
    {"42P05", WEFT_UNAVAILABLE,   WEFT_CAUSE_LOST,         hint_pooler},
    {"XX001", WEFT_CORRUPT,       WEFT_CAUSE_NONE,         "restore the database from a backup"},
    {"XX002", WEFT_CORRUPT,       WEFT_CAUSE_NONE,         "rebuild the index with REINDEX"},
    {"3D000", WEFT_NOT_FOUND,     WEFT_CAUSE_NONE,         "create the database first"},
    {"3F000", WEFT_SCHEMA,        WEFT_CAUSE_NONE,         hint_migrate},
    {"42P01", WEFT_SCHEMA,        WEFT_CAUSE_NONE,         hint_migrate},
    {"42P06", WEFT_SCHEMA,        WEFT_CAUSE_NONE,         NULL},
    {"42P07", WEFT_SCHEMA,        WEFT_CAUSE_NONE,         NULL},
    {"42703", WEFT_SCHEMA,        WEFT_CAUSE_NONE,         hint_migrate},
    {"42704", WEFT_SCHEMA,        WEFT_CAUSE_NONE,         hint_migrate},
    {"42710", WEFT_SCHEMA,        WEFT_CAUSE_NONE,         NULL},
    {"42883", WEFT_SCHEMA,        WEFT_CAUSE_NONE,         hint_migrate},
    {"42804", WEFT_SCHEMA,        WEFT_CAUSE_NONE,         hint_migrate},
    {"",      WEFT_INTERNAL,      WEFT_CAUSE_NONE,         NULL},
};
/* clang-format on */

static const struct mapping *find_mapping(const char *state)
{
    const struct mapping *mapping = mappings;
    while (strncmp(state, mapping->state, strlen(mapping->state)) != 0)
        mapping++;
    return mapping;
}

/*
 * How much of a message may be shown: its first line; of messages about data, which quote the data
 * after a colon, the part before the colon.
 */
static int safe_size(const char *text, const char *state)
{
    return (int)strcspn(text, strncmp(state, "22", 2) == 0 ? ":\n" : "\n");
}

static enum weft_rc record(struct weft_err *err, const struct mapping *mapping, const char *state,
                           const char *what, const char *text)
{
    (void)weft_fail(err, mapping->rc, "%s: %.*s", what, safe_size(text, state), text);
    if (err) {
        err->cause = mapping->cause;
        err->hint = mapping->hint;
        (void)memccpy(err->sqlstate, state, '\0', sizeof(err->sqlstate) - 1);
    }
    return mapping->rc;
}

enum weft_rc weft_pg_lost(struct weft_pg *pg, const char *what, const char *why,
                          struct weft_err *err)
{
    pg->conn.broken = true;
    enum weft_rc rc =
        weft_fail(err, WEFT_UNAVAILABLE, "%s: %.*s", what, (int)strcspn(why, "\n"), why);
    return weft_cause(err, rc, WEFT_CAUSE_LOST);
}

enum weft_rc weft_pg_fail(struct weft_pg *pg, const PGresult *result, const char *what,
                          struct weft_err *err)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (!state || !text)
        return weft_pg_lost(pg, what, PQresultErrorMessage(result), err);
    const struct mapping *mapping = find_mapping(state);
    /* A primary too refuses a write in a read-only transaction: no sign of a standby. */
    static const struct mapping reading = {"25006", WEFT_INTERNAL, WEFT_CAUSE_NONE, NULL};
    if (pg->mode == WEFT_TX_READ && strcmp(state, reading.state) == 0)
        mapping = &reading;
    if (mapping->cause == WEFT_CAUSE_LOST)
        pg->conn.broken = true;
    return record(err, mapping, state, what, text);
}

/*
 * When an administrator terminates a session, PostgreSQL ends it at a point where no commit is in
 * progress, with an error after all earlier answers. So a COMMIT that was sent and not answered
 * before that error was not carried out.
 *
 * Nothing else proves that. In a crash or an immediate shutdown the same state (or 57P02) comes as
 * a warning from a signal handler, which may interrupt a commit; when the wait for a standby is cut
 * short it comes as a warning after the commit. And a pooler sends errors of its own, unknown to
 * the server: they do not name the function that PostgreSQL names.
 */
bool weft_pg_is_terminated(const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
    return severity && strcmp(severity, "FATAL") == 0 && state && strcmp(state, "57P01") == 0 &&
           function && strcmp(function, "ProcessInterrupts") == 0;
}

/* In verbose messages the SQLSTATE follows the severity: "FATAL:  28P01: ...". */
static bool find_state(const char *text, char ret_state[6])
{
    for (const char *at = text; (at = strstr(at, ":  ")) != NULL; at++) {
        const char *state = at + 3;
        size_t size = strspn(state, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (size == 5 && state[5] == ':') {
            memcpy(ret_state, state, 5);
            ret_state[5] = '\0';
            return true;
        }
    }
    return false;
}

enum weft_rc weft_pg_fail_open(struct weft_pg *pg, const char *text, struct weft_err *err)
{
    const char *name = PQdb(pg->pq);
    char what[96];
    char state[6] = "";
    (void)snprintf(what, sizeof(what), "cannot open database \"%s\"", name ? name : "?");
    /* libpq itself notices that it has no password to send, without an SQLSTATE. */
    if (PQconnectionNeedsPassword(pg->pq))
        memcpy(state, "28P01", sizeof(state));
    else if (!find_state(PQerrorMessage(pg->pq), state)) {
        return weft_hint(err, weft_pg_lost(pg, what, text, err),
                         "check that the server runs, that the URL names its host and port, and "
                         "that it is the primary");
    }
    return record(err, find_mapping(state), state, what, text);
}
