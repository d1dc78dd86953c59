/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_TX_POOL_H
#define WEFT_ENGINE_TX_POOL_H

/*
 * The connections of an engine, and the conditions under which one may carry a transaction: the
 * server is of the lineage that was seen last, this binary is not too old for the schema, and the
 * offset to the store's clock is known.
 */

#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

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
    atomic_uint_fast64_t begun[WEFT_TX_BARE + 1]; /* transactions, by their mode */
};

void weft_pool_init(struct weft_engine *engine, uint32_t connections, bool in_turn);
void weft_pool_done(struct weft_engine *engine);

/* A slot for this thread alone until weft_pool_release(); NULL, with err, when none becomes free
 * in time. */
struct weft_slot *weft_pool_take(struct weft_engine *engine, enum weft_tx_mode mode,
                                 struct weft_err *err);

/* failure: NULL when the store carried the transaction out. */
void weft_pool_release(struct weft_engine *engine, struct weft_slot *slot,
                       const struct weft_err *failure);

/* Opens the connection of a slot, unless it is open to a server of the lineage seen last. */
WEFT_MUST_CHECK enum weft_rc weft_pool_open(struct weft_engine *engine, struct weft_slot *slot,
                                            struct weft_err *err);

/* The same, and meets the other conditions for a transaction. */
WEFT_MUST_CHECK enum weft_rc weft_pool_prepare(struct weft_engine *engine, struct weft_slot *slot,
                                               struct weft_err *err);

/* The store lets go of the bytes of rows that were removed: see forget() in store.h. */
WEFT_MUST_CHECK enum weft_rc weft_pool_forget(struct weft_engine *engine, struct weft_err *err);

/* Compares the lineage of a connection with the last one; fails for a primary that was left. */
WEFT_MUST_CHECK enum weft_rc weft_pool_note_lineage(struct weft_engine *engine,
                                                    const struct weft_lineage *seen,
                                                    struct weft_err *err);

/* How many transactions of this mode were begun so far, repeated ones included. */
uint64_t weft_engine_transactions(const struct weft_engine *engine, enum weft_tx_mode mode);

/* How often a thread had to wait for a connection so far. */
uint64_t weft_pool_waits(struct weft_engine *engine);

/*
 * Closes connections that are not needed: connections that grew by carrying much and have not done
 * so since `large_us`, because closing is the only way to free their memory, and connections that a
 * burst opened and that were not used since `unused_us`. Both are moments of boot time. The next
 * call that needs a connection opens it.
 */
void weft_engine_slim(struct weft_engine *engine, weft_usec large_us, weft_usec unused_us);

/*
 * The longest time without a transaction that the store carried out, since this was last asked: the
 * store was away, or this process stood still. One slow transaction among others makes no gap.
 */
weft_usec weft_engine_gap(struct weft_engine *engine);

/*
 * Whether the store carried something out within the last so many microseconds, and no connection
 * to it was lost since. From memory: it makes no query and waits for none.
 */
bool weft_engine_answers(struct weft_engine *engine, weft_usec within_us);

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

/* WEFT_SCHEMA: this binary is too old for the store, which was migrated. Known without asking. */
WEFT_MUST_CHECK enum weft_rc weft_engine_version(struct weft_engine *engine, struct weft_err *err);

/* The schema as a poll or a look found it: another process may have migrated it. */
void weft_version_seen(struct weft_engine *engine, int64_t version, int64_t oldest_binary);

#endif
