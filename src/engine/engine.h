/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ENGINE_H
#define WEFT_ENGINE_ENGINE_H

/*
 * An engine: one store, opened. Its calls are in the headers of the rooms; any number of threads
 * may make them. Its parts are in engine_state.h.
 */

#include "weft/weft.h"

struct weft_clock;
struct weft_driver;
struct weft_engine;

/* unused_after_us of an engine in a program, and by default of a server. */
#define WEFT_UNUSED_AFTER_US ((weft_usec)30 * 24 * 3600 * WEFT_SECOND)

struct weft_engine_config {
    const char *url;
    const struct weft_driver *driver; /* NULL: the one for the URL */
    uint32_t connections;             /* 0: 4 */
    uint32_t namespace_queues;        /* queues of one namespace, at most; 0: no limit */
    uint32_t namespace_workers;       /* worker names of one namespace, at most; 0: no limit */
    weft_usec unused_after_us; /* names and queues unused for so long are removed; 0: never */
    /* Threads get connections strictly in the order in which they ask: see may_take() in pool.c. */
    bool in_turn;
    bool no_migrate;
    uint32_t migrate_wait_s;      /* how long a migration tries to get its locks; 0: 10 min */
    bool must_exist;              /* WEFT_NOT_FOUND instead of creating a store that is not there */
    const char *signing_key_file; /* NULL: keys of signal tokens are rows of the store */
    bool statements_fit; /* known from another engine of this process: prepare none at the start */
};

/*
 * Called in the thread of a call that is about to do long work outside its transaction: a claim
 * that walks over a lane with many queues, a submission whose many new names are added in
 * transactions of their own. NULL: no listener. Before the first call.
 */
typedef void weft_side_work_fn(void *context);

/* On success the caller owns *ret_engine and ends it with weft_engine_close(). */
WEFT_MUST_CHECK enum weft_rc weft_engine_open(const struct weft_engine_config *config,
                                              struct weft_engine **ret_engine,
                                              struct weft_err *err);
void weft_engine_close(struct weft_engine *engine); /* NULL is fine */

struct weft_clock *weft_engine_clock(struct weft_engine *engine);

/* How many transactions may write at once: 1 for SQLite. */
size_t weft_engine_writers(const struct weft_engine *engine);
void weft_engine_on_side_work(struct weft_engine *engine, weft_side_work_fn *fn, void *context);

#endif
