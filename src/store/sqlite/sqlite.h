/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_STORE_SQLITE_SQLITE_H
#define WEFT_STORE_SQLITE_SQLITE_H

/* Shared by the files of the SQLite driver. A connection is used by one thread at a time. */

#include "store/store.h"

#include <sqlite3.h>

enum weft_lite_command {
    WEFT_LITE_BEGIN,
    WEFT_LITE_BEGIN_IMMEDIATE,
    WEFT_LITE_COMMIT,
    WEFT_LITE_ROLLBACK,
    WEFT_LITE_COMMAND_COUNT
};

/* Which parameter of the statement goes to which place of a part. */
struct weft_lite_bind {
    const struct weft_stmt_field *param;
    int index;
};

/* One of the texts between the semicolons of a statement. */
struct weft_lite_part {
    sqlite3_stmt *stmt;          /* owned */
    struct weft_lite_bind *bind; /* in the arena of the connection: scalars first, then columns */
    size_t scalar_count;
    size_t bind_count;
    int columns;
    int when; /* the column that must have a value for it to run, -1: it always runs */
    bool writes;
};

struct weft_lite_stmt {
    struct weft_lite_part *part; /* in the arena of the connection; NULL until prepared */
    size_t count;
    int16_t *input_param; /* per column of `input`, -1: none; NULL: it runs once per row */
};

enum weft_lite_tx {
    WEFT_LITE_TX_NONE,
    WEFT_LITE_TX_READ,
    WEFT_LITE_TX_WRITE,
    WEFT_LITE_TX_FAILED, /* a call failed: nothing but rollback is accepted, as in PostgreSQL */
};

/* A connection in the list of open files, see open.c. */
struct weft_lite_file {
    uint64_t device, inode;
    uint64_t forks; /* weft_forks() when it was opened */
    struct weft_lite_file *next;
};

struct weft_lite {
    struct weft_conn conn;
    struct weft_lite_file file;
    sqlite3 *db;              /* owned */
    struct weft_arena *arena; /* owned; lives as long as the connection */
    sqlite3_stmt *command[WEFT_LITE_COMMAND_COUNT];
    struct weft_lite_stmt stmt[WEFT_STMT_COUNT];
    enum weft_lite_tx tx;
    const char **input_column; /* in the arena */
    size_t input_columns;
    const struct weft_call *input; /* the current call; borrowed */
    bool reads_input;              /* the part prepared last reads `input` */
    weft_usec busy_us;             /* the longest wait for a lock */
    weft_usec busy_since_us;       /* when the current wait began */
    uint64_t jitter;
    struct weft_lite_checkpointer *checkpointer; /* owned; NULL until the log needs one */
    int wal_frames; /* of the log after a commit that wrote; 0: it wrote nothing */
    bool synchronous_full;
};

static inline const char *weft_lite_synchronous(bool full)
{
    return full ? "PRAGMA synchronous = full" : "PRAGMA synchronous = normal";
}

static inline struct weft_lite *weft_lite_of(struct weft_conn *conn)
{
    return (struct weft_lite *)conn;
}

extern const char weft_lite_permission[]; /* the hint of a file that may not be written */
/* The only function that maps SQLite's codes. `what` was being attempted. */
enum weft_rc weft_lite_fail(struct weft_lite *lite, int code, struct weft_err *err,
                            const char *what);

enum weft_rc weft_lite_open(const char *url, struct weft_conn **ret_conn, struct weft_err *err);
bool weft_lite_absent(const char *url);
void weft_lite_close(struct weft_conn *conn);
/* The functions that statements call, on a connection. */
int weft_lite_add_functions(sqlite3 *db);
/*
 * Triggers are off on our connections, but for scripts (migrations). They do for older binaries
 * what our statements do themselves, and even one whose condition is false costs: an attempt is
 * added in 0.84 us without and 1.40 with it, an outcome in 4.0 and 5.5.
 */
int weft_lite_use_triggers(sqlite3 *db, bool on);
/* Runs one statement; gives back the integer it returns, if any. */
int weft_lite_ask(sqlite3 *db, const char *sql, int64_t *ret_number);

/*
 * checkpoint.c: the size of the write-ahead log.
 *
 * Makes one checkpoint in a mode of SQLite. SQLITE_BUSY, with *ret_frames -1, if another checkpoint
 * runs or no frame is left to copy. All checkpoints must use this function (see checkpoint.c).
 */
/* As forget() in store.h. */
enum weft_rc weft_lite_forget(struct weft_conn *conn, struct weft_err *err);
int weft_lite_checkpoint(sqlite3 *db, int mode, int *ret_frames, int *ret_copied);
int weft_lite_on_wal(void *arg, sqlite3 *db, const char *name, int frames);
void weft_lite_limit_wal(struct weft_lite *lite); /* after a commit */
bool weft_lite_is_behind(struct weft_conn *conn);
void weft_lite_stop_checkpoints(struct weft_lite *lite);

/* run.c */
int weft_lite_add_input(struct weft_lite *lite); /* the rows of the current call as a table */
enum weft_rc weft_lite_prepare_one(struct weft_lite *lite, enum weft_stmt stmt,
                                   struct weft_err *err);
enum weft_rc weft_lite_run_one(struct weft_lite *lite, const struct weft_call *call,
                               struct weft_arena *arena, struct weft_rows *ret_rows,
                               struct weft_err *err);

#endif
