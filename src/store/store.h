/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_STORE_STORE_H
#define WEFT_STORE_STORE_H

/*
 * What a store driver does: open, begin and commit, run named statements over columns of values,
 * give rows back, map its error codes, tell the time. It knows no rule and no operation.
 *
 * Statements live in sql/<driver>/ *.sql and are twins by name: the same parameters in the same
 * order, the same result columns. A parameter declared as `type[]` is a column: one value per row
 * of the call. PostgreSQL receives columns as arrays and runs the statement once; SQLite runs it
 * once per row, or once for all when it reads them from the table `input`. A SQLite statement may
 * consist of several parts separated by `;`: each run goes through all parts in order, and the
 * parts that have result columns contribute the rows. A call with zero rows of columns runs
 * nothing; a statement without columns runs once.
 *
 * A connection is used by one thread at a time. Nothing here logs, retries or waits beyond its
 * bounds: that is the engine's business.
 */

#include "base/err.h"

enum weft_type {
    WEFT_TYPE_BOOL,
    WEFT_TYPE_I16,
    WEFT_TYPE_I32,
    WEFT_TYPE_I64,
    WEFT_TYPE_ID, /* uuid; a 16-byte BLOB in SQLite */
    WEFT_TYPE_TEXT,
    WEFT_TYPE_BYTES,
};

#include "weft_stmt.h" /* generated: enum weft_stmt */

/* A parameter or a result column, and where it lies in the generated struct. */
struct weft_stmt_field {
    const char *name;
    enum weft_type type;
    bool column;   /* one value for each row of the call: in the item, not in the scalars */
    bool nullable; /* a number or an id lies in a struct weft_opt_... */
    size_t place;
};

struct weft_stmt_info {
    const char *name;
    const struct weft_stmt_field *param;
    size_t param_count;
    size_t in_size;   /* of the scalars */
    size_t item_size; /* of the columns of a row; 0: the statement has none */
    size_t items;     /* where the pointer to them lies among the scalars */
    const struct weft_stmt_field *result;
    size_t result_count; /* columns; 0 for a statement that returns nothing */
    size_t out_size;     /* of a row of the result */
    const char *group;   /* results that several statements share, as a nested struct; or NULL */
    size_t group_place;
    enum weft_stmt in_like, out_like; /* the first with the same parameters, the same results */
    const char *pg;                   /* NULL when the statement exists only for the other driver */
    const char *sqlite;
    const char *moves; /* "ready CLAIM running", several separated by "; ", or NULL */
};

extern const struct weft_stmt_info weft_stmts[WEFT_STMT_COUNT];

/*
 * The generated structs have these types, beside bool, int64_t (int32_t for the smaller integers of
 * a result), struct weft_id and const char *. Bytes and texts are borrowed going in, and in the
 * arena of the call coming out, with a NUL behind them. A null text is NULL, null bytes have no
 * data; every other field that may be null is one of the optional ones: not set, and its value 0.
 */
struct weft_blob {
    const void *data;
    size_t size;
};

struct weft_opt_i32 {
    int32_t value;
    bool set;
};

struct weft_opt_i64 {
    int64_t value;
    bool set;
};

struct weft_opt_id {
    struct weft_id value;
    bool set;
};

static inline struct weft_opt_i64 weft_some(int64_t value)
{
    return (struct weft_opt_i64){.value = value, .set = true};
}

static inline struct weft_opt_i64 weft_unless_zero(int64_t value)
{
    return (struct weft_opt_i64){.value = value, .set = value != 0};
}

static inline struct weft_opt_id weft_some_id(struct weft_id value)
{
    return (struct weft_opt_id){.value = value, .set = true};
}

/* A statement with its arguments, all of them zero or null at first. */
struct weft_call {
    enum weft_stmt stmt;
    size_t rows;
    void *in;    /* struct weft_<statement>_in */
    void *item;  /* struct weft_<statement>_item, for each row */
    size_t most; /* results, over all rows; 0: whatever there is. SQLite, which runs a statement
                    once per row, stops there; for PostgreSQL the statement itself says so */
};

struct weft_rows {
    enum weft_stmt stmt;
    size_t count;
    void *row; /* struct weft_<statement>_out, in the arena of the call */
};

/* For statements that are chosen at run time; otherwise weft_call_<statement>() does it. */
void weft_call_init(struct weft_call *call, struct weft_arena *arena, enum weft_stmt stmt,
                    size_t rows);

/* For the generated functions: they assert that the statement is of the kind they are for. */
void *weft_call_in(const struct weft_call *call, enum weft_stmt like);
void *weft_rows_out(const struct weft_rows *rows, enum weft_stmt like);
void *weft_rows_group(const struct weft_rows *rows, size_t row, const char *group);

#include "weft_stmt_io.h" /* generated: the structs of each statement and their functions */

/* How a transaction is opened. */
enum weft_tx_mode {
    WEFT_TX_READ,  /* one snapshot is not promised; SQLite: a deferred transaction on a reader */
    WEFT_TX_WRITE, /* SQLite: BEGIN IMMEDIATE */
    WEFT_TX_KEYED, /* as WRITE, with a short lock_timeout: for keys that applications hold, and
                      where other transactions would wait behind this one */
    WEFT_TX_HOT,   /* as KEYED, where others wait for its rows. PostgreSQL: COMMIT lets go of the
                      locks before it is on the disk and on the standbys; commit() waits for both */
    WEFT_TX_BARE, /* PostgreSQL: no transaction around it, and behind a pooler none of our settings,
                     for one statement that reads and looks after its plan; SQLite: as READ */
};

static inline bool weft_tx_reads(enum weft_tx_mode mode)
{
    return mode == WEFT_TX_READ || mode == WEFT_TX_BARE;
}

enum weft_settled {
    WEFT_SETTLED_UNKNOWN,
    WEFT_SETTLED_RUNNING,
    WEFT_SETTLED_COMMITTED,
    WEFT_SETTLED_ABORTED,
};

/*
 * The history that the number of a transaction belongs to. A promoted standby and a restored backup
 * give numbers anew that the old server has given already: a number means nothing in another
 * history. All 0 where the store has no such numbers, or does not report them.
 */
struct weft_lineage {
    uint64_t system;   /* PostgreSQL: the identifier that initdb gave to the cluster */
    uint32_t timeline; /* PostgreSQL: grows with each promotion */
};

/* A transaction whose COMMIT was sent, and whose end the client does not know. */
struct weft_lost {
    uint64_t xid; /* 0: not known either */
    struct weft_lineage lineage;
    weft_usec age_us; /* how long ago it began, or more */
};

struct weft_driver;

/* The common head of every driver's connection. */
struct weft_conn {
    const struct weft_driver *driver;
    uint64_t xid; /* of the write transaction in hand or just lost; 0 when not known */
    struct weft_lineage lineage; /* as read at the open, and by each write transaction */
    bool broken;                 /* good for weft_conn_close() only */
    /* Boot time of the last exchange that made its buffers large, which only close() frees; or 0 */
    weft_usec buffers_large_since_us;
};

struct weft_driver {
    const char *name;
    /* url includes its scheme. The caller owns *ret_conn and ends it with close(). */
    enum weft_rc (*open)(const char *url, struct weft_conn **ret_conn, struct weft_err *err);
    /*
     * Nothing is there yet, and open() would create it: a file that does not exist or is empty.
     * False also when the path is unreadable, because open() explains why. NULL: open() creates
     * nothing.
     */
    bool (*absent)(const char *url);
    void (*close)(struct weft_conn *conn);
    enum weft_rc (*begin)(struct weft_conn *conn, enum weft_tx_mode mode, struct weft_err *err);
    /* Runs `count` calls in order, in one round trip where the database allows it. */
    enum weft_rc (*run)(struct weft_conn *conn, const struct weft_call *call, size_t count,
                        struct weft_arena *arena, struct weft_rows *ret_rows, struct weft_err *err);
    /*
     * As run(), for the last calls of a transaction: COMMIT travels with them where the database
     * allows it. When it succeeds, the rows are there, and commit() must follow: it returns the
     * result of COMMIT. When it fails, nothing was committed, unless the cause is
     * WEFT_CAUSE_LOST_IN_COMMIT: then COMMIT may have been carried out, and the rows are lost.
     * commit() fails with the same cause, on a connection that lives, when the server committed but
     * gave up waiting for its standbys: a promotion may take that commit back.
     */
    enum weft_rc (*last)(struct weft_conn *conn, const struct weft_call *call, size_t count,
                         struct weft_arena *arena, struct weft_rows *ret_rows,
                         struct weft_err *err);
    enum weft_rc (*commit)(struct weft_conn *conn, struct weft_err *err);
    void (*rollback)(struct weft_conn *conn); /* harmless when no transaction is open */
    /* Runs several statements of plain SQL inside the transaction in hand; for migrations. */
    enum weft_rc (*script)(struct weft_conn *conn, const char *sql, struct weft_err *err);
    /*
     * Runs one statement of plain SQL outside of any transaction, however long it takes; for
     * indexes that are built beside the work. NULL: the store has no such thing.
     */
    enum weft_rc (*alone)(struct weft_conn *conn, const char *sql, struct weft_err *err);
    /* Prepares every statement, so that a bad one is found at the start. */
    enum weft_rc (*prepare)(struct weft_conn *conn, struct weft_err *err);
    /* The store's clock. */
    enum weft_rc (*time)(struct weft_conn *conn, weft_usec *ret_us, struct weft_err *err);
    /*
     * Whether a transaction committed, asked on another connection. COMMITTED is answered only
     * where the commit is as durable as any: also on the standbys that a commit of this server
     * waits for. A server of another lineage cannot know (UNKNOWN), and one that crashed since the
     * transaction began may have given its number to another one.
     */
    enum weft_rc (*settle)(struct weft_conn *conn, const struct weft_lost *lost,
                           enum weft_settled *ret_settled, struct weft_err *err);
    /*
     * Whether the store is behind with copying its log, so that a transaction that writes much had
     * better wait a moment: one day all commits would have to wait for the log. NULL: it never is.
     */
    bool (*behind)(struct weft_conn *conn);
    /*
     * Outside of any transaction: lets go of the bytes of rows that were removed or changed, as far
     * as the store can. SQLite: cuts its log, which fails while a reader is in the way and when
     * there is nothing new in it. PostgreSQL: vacuums.
     */
    enum weft_rc (*forget)(struct weft_conn *conn, struct weft_err *err);
    /* How many connections may write at once: 1 for SQLite, SIZE_MAX for PostgreSQL. */
    size_t writers_max;
};

extern const struct weft_driver weft_driver_pg, weft_driver_sqlite;

/* The driver for a URL: sqlite:PATH, postgres://..., postgresql://... */
WEFT_MUST_CHECK enum weft_rc weft_driver_for(const char *url, const struct weft_driver **ret_driver,
                                             struct weft_err *err);

/*
 * For a process whose only use of SQLite is weft's, as its first step: SQLite need not count the
 * memory it has, for which it takes a mutex of the whole process at every allocation. A library
 * must not decide that for its host.
 */
void weft_store_owns_process(void);

static inline void weft_conn_close(struct weft_conn *conn)
{
    if (conn)
        conn->driver->close(conn);
}

#endif
