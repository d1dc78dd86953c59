/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_TX_TX_H
#define WEFT_ENGINE_TX_TX_H

/* Transactions: retries, and the outcome of a COMMIT whose answer was lost. */

#include "engine/tx/pool.h"

enum { WEFT_TX_MUCH = 128 << 10 }; /* bytes of payloads and results */

struct weft_tx {
    struct weft_engine *engine;
    struct weft_conn *conn;
    struct weft_arena *arena;
    weft_usec now_us;      /* one value per transaction */
    struct weft_lost lost; /* the last try, to ask for its outcome */
    weft_usec began_us;    /* the last try, in boot time, for the same */
    uint64_t history;      /* in which the ids of names that it writes were read; 0: at its start */
    size_t bytes;          /* of payloads and results that it writes, as far as the caller says */
    bool no_retry;         /* one try, on a connection that is open: see weft_tally_flush() */
    bool repeatable;       /* a second run finds the writes of the first and adds nothing */
    bool maybe_committed;  /* an earlier try may have been committed: this was a second run */
    bool brief;            /* others wait for the only writer: see weft_engine_is_contended() */
    bool ended;            /* the last calls of this try have run: see weft_tx_last() */
    bool answered;         /* the body of the last try got all its rows */
};
typedef enum weft_rc weft_tx_body(struct weft_tx *tx, void *context, struct weft_err *err);

/*
 * Runs body in a transaction and commits. Contention and lost connections are retried here and
 * nowhere else, with a bound and jitter, so body may run several times: it must set all that it
 * answers each time. When the connection was lost in COMMIT, the store is asked for the outcome.
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

#endif
