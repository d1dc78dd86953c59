/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_STORE_PG_PG_H
#define WEFT_STORE_PG_PG_H

/* Shared by the files of the PostgreSQL driver; nothing outside this folder includes it. */

#include "store/store.h"

#include <libpq-fe.h>

enum {
    WEFT_PG_SCHEMA_MAX = 63,
    WEFT_PG_PARAMS_MAX = 64,
    WEFT_PG_KEEP_BYTES = 1 << 20, /* buffers of more than that are not kept for long */
};

/* The driver's own statements; their numbers follow those of weft_stmts. */
enum weft_pg_own {
    WEFT_PG_BEGIN_READ = WEFT_STMT_COUNT,
    WEFT_PG_BEGIN_WRITE,
    WEFT_PG_PIN_READ,
    WEFT_PG_PIN_WRITE,
    WEFT_PG_PIN_KEYED,
    WEFT_PG_COMMIT,
    WEFT_PG_ROLLBACK,
    WEFT_PG_TIME,
    WEFT_PG_SETTLE,
    WEFT_PG_BACKEND, /* from here on: used while a connection is opened, never prepared ahead */
    WEFT_PG_BACKEND_ALONE,
    WEFT_PG_SESSION,
    WEFT_PG_PROBE,
    WEFT_PG_FORGET,
    WEFT_PG_STMT_COUNT
};

enum weft_pg_tx {
    WEFT_PG_TX_NONE,
    WEFT_PG_TX_WAITING, /* begun by the caller; the server does not know yet */
    WEFT_PG_TX_OPEN,
    WEFT_PG_TX_ENDED,  /* COMMIT went along with the last calls: commit() tells how it went */
    WEFT_PG_TX_FAILED, /* a call failed: nothing but rollback is accepted */
};

struct weft_pg {
    struct weft_conn conn;
    PGconn *pq;                           /* owned */
    struct weft_arena *arena;             /* owned; lives as long as the connection */
    const char *schema;                   /* in the arena */
    const char *text[WEFT_PG_STMT_COUNT]; /* in the arena or static, with the schema put in */
    bool prepared[WEFT_PG_STMT_COUNT];
    bool named;   /* false: a pooler would lose prepared statements, so there are none */
    bool pooled;  /* a pooler stands in between: nothing may be set for the session */
    bool decided; /* the URL says whether to; otherwise the connection is tried (connect.c) */
    enum weft_pg_tx tx;
    enum weft_tx_mode mode;
    char *scratch; /* owned; encoded parameters of the call that is being sent */
    size_t scratch_size;
    size_t carried;    /* bytes of arguments and results in the exchange in hand */
    char fatal[128];   /* what the server said when it ended the session, or empty */
    bool in_step;      /* the last exchange came to its end: what brought no result was not done */
    bool dismissed;    /* in the last exchange the server itself said that it ends the session */
    bool unreplicated; /* it committed, but gave up waiting for its standbys */
    weft_usec exchange_us;     /* how long an exchange may take */
    enum weft_rc end_rc;       /* of a COMMIT that went along */
    struct weft_err end_story; /* the same, when it failed */
};

/* One request to the server and the one result it brings. */
struct weft_pg_step {
    size_t stmt;
    bool prepares;
    bool unnamed;                 /* is sent without a name, whatever the connection does */
    const struct weft_call *call; /* the arguments; NULL for the driver's own statements */
    const char *text;             /* the one argument of WEFT_PG_SETTLE: "xid age timeline" */
    bool leaves;                  /* its answer leaves the server before the next step is begun */
    PGresult *result;             /* owned; NULL unless the step succeeded */
};

/* A call as libpq wants it. Values point into the scratch memory or at the caller's cells. */
struct weft_pg_params {
    int count;
    Oid type[WEFT_PG_PARAMS_MAX];
    const char *value[WEFT_PG_PARAMS_MAX];
    int size[WEFT_PG_PARAMS_MAX];
    int format[WEFT_PG_PARAMS_MAX];
};

static inline struct weft_pg *weft_pg_of(struct weft_conn *conn)
{
    return (struct weft_pg *)conn;
}

/* text.c: the texts of statements, and the schema's name in them. */
const char *weft_pg_stmt_name(size_t stmt);
void weft_pg_set_texts(struct weft_pg *pg);
/* Puts the schema where the text says weft; gives the text itself back if that is its name. */
const char *weft_pg_place_schema(const char *sql, const char *schema, struct weft_arena *arena);

/* error.c: the one place where SQLSTATE becomes ours. `what` was being attempted. */
enum weft_rc weft_pg_fail(struct weft_pg *pg, const PGresult *result, const char *what,
                          struct weft_err *err);
/* True when the server says that it ends the session, and nothing was committed since. */
bool weft_pg_is_farewell(const PGresult *result);
/* The connection is gone or silent, and is broken from here on. */
enum weft_rc weft_pg_lost(struct weft_pg *pg, const char *what, const char *why,
                          struct weft_err *err);
/* The same mapping for a failure to connect, where libpq gives nothing but text. */
enum weft_rc weft_pg_fail_open(struct weft_pg *pg, const char *text, struct weft_err *err);

/* connect.c */
enum weft_rc weft_pg_open(const char *url, struct weft_conn **ret_conn, struct weft_err *err);
void weft_pg_close(struct weft_conn *conn);

/* codec.c: cells to binary parameters and binary results to cells. */
enum weft_rc weft_pg_encode(struct weft_pg *pg, const struct weft_call *call,
                            struct weft_pg_params *ret_params, struct weft_err *err);
void weft_pg_param_types(size_t stmt, struct weft_pg_params *ret_params);
enum weft_rc weft_pg_decode(const PGresult *result, enum weft_stmt stmt, struct weft_arena *arena,
                            struct weft_rows *ret_rows, struct weft_err *err);
int64_t weft_pg_get_i64(const PGresult *result, int row, int column);
/* The timeline that the name of a WAL file begins with; 0 when there is no name. */
uint32_t weft_pg_get_timeline(const PGresult *result, int row, int column);

/*
 * exchange.c: one round trip. Sends all steps, waits for all results, and leaves the connection
 * in step with the server or broken. Results of steps that succeeded are kept in the steps, also
 * when a later one failed; weft_pg_clear() frees them.
 */
enum weft_rc weft_pg_exchange(struct weft_pg *pg, struct weft_pg_step *step, size_t count,
                              struct weft_err *err);
void weft_pg_clear(struct weft_pg_step *step, size_t count);
/* Plain SQL of several statements; waits longer than an exchange does. */
enum weft_rc weft_pg_simple(struct weft_pg *pg, const char *sql, struct weft_err *err);
/* True when the server has ended the session, as far as can be told without asking it. */
bool weft_pg_is_gone(struct weft_pg *pg);

#endif
