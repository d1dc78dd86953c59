/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_STORE_PG_PG_H
#define WEFT_STORE_PG_PG_H

/* Shared by the files of the PostgreSQL driver. A connection is used by one thread at a time. */

#include "store/store.h"

#include <libpq-fe.h>

enum {
    WEFT_PG_SCHEMA_MAX = 63,
    WEFT_PG_KEEP_BYTES = 1 << 20, /* larger buffers are not kept for long */
};

/* The driver's own statements; their numbers follow the numbers of weft_stmts. */
enum weft_pg_own {
    WEFT_PG_BEGIN_READ = WEFT_STMT_COUNT,
    WEFT_PG_BEGIN_WRITE,
    WEFT_PG_PIN_READ,
    WEFT_PG_PIN_WRITE,
    WEFT_PG_PIN_KEYED,
    WEFT_PG_PIN_HOT,
    WEFT_PG_COMMIT,
    WEFT_PG_FLUSH,
    WEFT_PG_ROLLBACK,
    WEFT_PG_TIME,
    WEFT_PG_SETTLE,
    WEFT_PG_BACKEND, /* from here on: used only to open a connection, not prepared in advance */
    WEFT_PG_BACKEND_ALONE,
    WEFT_PG_SESSION,
    WEFT_PG_PROBE,
    WEFT_PG_FORGET,
    WEFT_PG_STMT_COUNT
};

enum weft_pg_tx {
    WEFT_PG_TX_NONE,
    WEFT_PG_TX_WAITING, /* begun by the caller; BEGIN is not sent yet */
    WEFT_PG_TX_OPEN,
    WEFT_PG_TX_ENDED,  /* COMMIT was sent with the last calls: commit() returns its result */
    WEFT_PG_TX_FAILED, /* a call failed: nothing but rollback is accepted */
};

struct weft_pg {
    struct weft_conn conn;
    PGconn *pq;                           /* owned */
    struct weft_arena *arena;             /* owned; lives as long as the connection */
    const char *schema;                   /* in the arena */
    const char *text[WEFT_PG_STMT_COUNT]; /* in the arena or static, with the schema put in */
    bool prepared[WEFT_PG_STMT_COUNT];
    bool named;   /* false: no prepared statements, because a pooler would lose them */
    bool pooled;  /* behind a pooler: nothing may be set for the session */
    bool decided; /* the URL sets `named`; otherwise the connection is probed (connect.c) */
    enum weft_pg_tx tx;
    enum weft_tx_mode mode;
    char *scratch; /* owned; encoded parameters of the current call */
    size_t scratch_size;
    size_t carried;  /* bytes of arguments and results of the current exchange */
    char fatal[128]; /* the server's message when it ended the session, or empty */
    bool in_step;    /* the last exchange completed: a step without a result was not carried out */
    bool terminated; /* weft_pg_is_terminated() in the last exchange */
    bool unreplicated;          /* the commit did not wait for its standbys */
    weft_usec exchange_us;      /* the longest time of an exchange */
    enum weft_rc commit_rc;     /* of a COMMIT sent with the last calls */
    struct weft_err commit_err; /* if that failed */
};

/* One request to the server and its one result. */
struct weft_pg_step {
    size_t stmt;
    bool prepares;
    bool unnamed;                 /* sent without a name, even if the connection uses names */
    const struct weft_call *call; /* the arguments; NULL for the driver's own statements */
    const char *text;             /* the one argument of WEFT_PG_SETTLE: "xid age timeline" */
    bool leaves;                  /* the server flushes its answer before it begins the next step */
    PGresult *result;             /* owned; NULL unless the step succeeded */
};

static inline struct weft_pg *weft_pg_of(struct weft_conn *conn)
{
    return (struct weft_pg *)conn;
}

/* connect.c */
enum weft_rc weft_pg_open(const char *url, struct weft_conn **ret_conn, struct weft_err *err);
void weft_pg_close(struct weft_conn *conn);
const char *weft_pg_stmt_name(size_t stmt);
/* Replaces the schema weft in the text; returns the text itself if that is the schema. */
const char *weft_pg_place_schema(const char *sql, const char *schema, struct weft_arena *arena);

/* sqlstate.c: the only place that maps SQLSTATE. `what` was being attempted. */
enum weft_rc weft_pg_fail(struct weft_pg *pg, const PGresult *result, const char *what,
                          struct weft_err *err);
/* True for the error of an ended session that proves: no unanswered COMMIT was carried out. */
bool weft_pg_is_terminated(const PGresult *result);
/* Marks the connection broken: it is closed or does not answer. */
enum weft_rc weft_pg_lost(struct weft_pg *pg, const char *what, const char *why,
                          struct weft_err *err);
/* The same mapping for a failure to connect, for which libpq gives only text. */
enum weft_rc weft_pg_fail_open(struct weft_pg *pg, const char *text, struct weft_err *err);

/* exchange.c: binary results. */
enum weft_rc weft_pg_decode(const PGresult *result, enum weft_stmt stmt, struct weft_arena *arena,
                            struct weft_rows *ret_rows, struct weft_err *err);
int64_t weft_pg_get_i64(const PGresult *result, int row, int column);
/* The timeline that the name of a WAL file begins with; 0 when there is no name. */
uint32_t weft_pg_get_timeline(const PGresult *result, int row, int column);

/*
 * One round trip. Sends all steps, waits for all results, and leaves the connection
 * synchronized with the server or broken. A step that succeeded keeps its result, also when
 * a later one failed; weft_pg_clear() frees them.
 */
enum weft_rc weft_pg_exchange(struct weft_pg *pg, struct weft_pg_step *step, size_t count,
                              struct weft_err *err);
void weft_pg_clear(struct weft_pg_step *step, size_t count);
/* Waits for all answers to what was sent outside a pipeline. */
enum weft_rc weft_pg_drain(struct weft_pg *pg, const char *what, weft_usec most_us,
                           struct weft_err *err);
/* Plain SQL of several statements; may take longer than an exchange. */
enum weft_rc weft_pg_simple(struct weft_pg *pg, const char *sql, struct weft_err *err);
/* True when the server is known to have ended the session; no round trip. */
bool weft_pg_is_gone(struct weft_pg *pg);

#endif
