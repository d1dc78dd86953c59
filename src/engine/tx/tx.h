/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_TX_TX_H
#define WEFT_ENGINE_TX_TX_H

/* Transactions: connections, retries, and what became of a lost COMMIT. */

#include "base/base.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct weft_arena;
struct weft_engine;

struct weft_slot {
    struct weft_conn *conn; /* owned; NULL: not open */
    weft_usec used_us;      /* boot time; when it was last given back */
    uint64_t history;       /* of the pool, when the connection was opened */
    bool busy;
};

/* A thread that waits for a slot; on its stack. */
struct weft_pool_turn {
    struct weft_pool_turn *next;
    bool reads;
    weft_usec since_us; /* boot time */
    pthread_cond_t woken;
};

struct weft_pool {
    pthread_mutex_t lock;
    struct weft_slot *slot;
    size_t count;
    size_t writers; /* the first so many slots may write; readers prefer the others */
    /* Threads that wait for a slot, the first come first. */
    struct weft_pool_turn *first, **last;
    weft_usec passed_max_us;      /* so long a thread that waits may be passed by later ones */
    uint64_t waits;               /* how often a thread had to wait for a slot */
    weft_usec waited_us;          /* boot time; when a thread that writes last had to wait */
    weft_usec answered_us;        /* boot time; the last transaction that the store carried out */
    weft_usec gap_us;             /* the longest time between two of them; see weft_engine_gap() */
    weft_usec lost_us;            /* boot time; when a connection was last lost, or not to be had */
    struct weft_lineage lineage;  /* of the last connection that knew it */
    atomic_uint_fast64_t history; /* from 1; counts lineages, see weft_engine_history() */
};

struct weft_tx {
    struct weft_engine *engine;
    struct weft_conn *conn;
    struct weft_arena *arena;
    weft_usec now_us;      /* one value per transaction */
    struct weft_lost lost; /* the last try, for the question what became of it */
    weft_usec began_us;    /* the last try, in boot time, for the same */
    uint64_t history;      /* in which the ids of names that it writes were read; 0: at its start */
    bool no_retry;         /* one try, on a connection that is open: see weft_tally_flush() */
    bool repeatable;       /* a second time finds what the first did, and does nothing twice */
    bool maybe_committed;  /* an earlier try may have been committed: this was a second time */
    bool brief;            /* others wait for the only writer: see weft_engine_is_contended() */
    bool ended;            /* the last calls of this try have run: see weft_tx_last() */
    bool answered;         /* the body of the last try got all its rows */
};
typedef enum weft_rc weft_tx_body(struct weft_tx *tx, void *context, struct weft_err *err);

/*
 * Closes connections that are not needed: those that grew by carrying much and have not done so
 * since `large_us`, because closing is the only way to free their memory, and those that a burst
 * opened and that were not used since `unused_us`. Both are moments of boot time. The next call
 * that needs one opens it.
 */
void weft_engine_slim(struct weft_engine *engine, weft_usec large_us, weft_usec unused_us);

/*
 * The longest time without a transaction that the store carried out, since this was last asked: it
 * was away, or this process stood still. One that is slow among others that are not makes no gap.
 */
weft_usec weft_engine_gap(struct weft_engine *engine);

/*
 * Whether the store carried something out within the last so many microseconds, and no connection
 * to it was lost since. From memory: it makes no query and waits for none.
 */
bool weft_engine_answers(struct weft_engine *engine, weft_usec within_us);

/*
 * Runs body in a transaction and commits. Contention and lost connections are retried here and
 * nowhere else, with a bound and jitter, so body may run several times: it must set all that it
 * answers each time. When the connection was lost in COMMIT, the store is asked what became of it.
 */
WEFT_MUST_CHECK enum weft_rc weft_tx_do(struct weft_tx *tx, enum weft_tx_mode mode,
                                        weft_tx_body *body, void *context, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_tx_run(struct weft_tx *tx, const struct weft_call *call,
                                         size_t count, struct weft_rows *ret_rows,
                                         struct weft_err *err);

/*
 * The last calls of the body: COMMIT goes with them, in one round trip where the store allows it.
 * After it has succeeded the body runs nothing more and cannot fail any more.
 */
WEFT_MUST_CHECK enum weft_rc weft_tx_last(struct weft_tx *tx, const struct weft_call *call,
                                          size_t count, struct weft_rows *ret_rows,
                                          struct weft_err *err);

/* A transaction of one call. ret_rows may be NULL. */
WEFT_MUST_CHECK enum weft_rc weft_tx_once(struct weft_engine *engine, enum weft_tx_mode mode,
                                          const struct weft_call *call, struct weft_arena *arena,
                                          struct weft_rows *ret_rows, struct weft_err *err);

/*
 * Whether this store has one writer and a thread had to wait for it within the last second. Calls
 * that write many rows, for flows and passes over them, make shorter transactions then. A longer
 * one that is under way when the first thread comes delays that thread once.
 */
bool weft_engine_is_contended(struct weft_engine *engine);

/*
 * The number of the lineage that the store is of, as far as is known: see struct weft_lineage. Ids
 * of interned rows that were read in one history may not exist in the next, because a standby that
 * is behind is promoted without them. A write transaction whose ids are of an older history is
 * refused before it begins.
 */
uint64_t weft_engine_history(struct weft_engine *engine);
void weft_pool_init(struct weft_engine *engine, uint32_t connections, bool in_turn);
void weft_pool_done(struct weft_engine *engine);

/* How often a thread had to wait for a connection so far. */
uint64_t weft_pool_waits(struct weft_engine *engine);

#endif
