/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_LEASE_CALL_H
#define WEFT_ENGINE_JOB_LEASE_CALL_H

/* A call about leases: its items, chunks and answers, whatever the operation is. */

#include "core/result.h"
#include "engine/job/change.h"
#include "engine/tx/batch.h"
#include "engine/tx/tx.h"
#include "weft/weft.h"

struct weft_lease_op;

/* The event for a running row, and in the change the error that is stored with it. */
typedef struct weft_event weft_lease_decide_fn(struct weft_tx *tx, const struct weft_lease_op *op,
                                               const void *item, struct weft_change *change);

/* One of the five operations. */
struct weft_lease_op {
    size_t item_size;
    enum weft_rc (*check)(const void *item, struct weft_err *err); /* besides the epoch */
    weft_tx_body *body;                                            /* gets the weft_lease_call */
    /* NULL: the operation is one statement, and a repeat waits for a later transaction. Otherwise
     * it locks rows and decides, so all items about a row share a transaction. */
    weft_lease_decide_fn *decide;
    enum weft_ended asked; /* how it ends a lease; NONE: a renewal, whose worker does not let go */
    size_t (*bytes)(const void *item); /* that an item writes besides rows; NULL: few */
    bool hot;                          /* its transactions lock rows of many: WEFT_TX_HOT */
};

/* A call of an operation, and the part of it that runs in one transaction. */
struct weft_lease_call {
    const struct weft_lease_op *op;
    struct weft_id_column ids; /* of the items */
    struct weft_lease_result *answer;
    struct weft_arena *arena; /* of errors in the answers */
    struct weft_chunk chunk;
    struct weft_changes changes; /* of the last try, for the news */
    struct weft_rows completed;  /* the same, of completions */
    bool maybe_committed;        /* an earlier try may have been committed: see weft_tx */
    bool *found;                 /* which of the chunk held their leases; of the last try too */
    /* NULL, or for each item that held no lease the state of its row at its turn, as the items
     * before it left the row; NONE: the row was not locked. */
    enum weft_state *state;
};

/* A call with all its items. */
struct weft_lease_call weft_lease_call(const struct weft_lease_op *op, const void *item,
                                       size_t count, struct weft_arena *arena,
                                       struct weft_lease_result *answer);

/* Answers the items that are invalid and puts the others into chunks. */
struct weft_chunks weft_lease_begin(struct weft_lease_call *call, struct weft_arena *arena);

/* Runs call->chunk in a transaction, and ends it. */
WEFT_MUST_CHECK enum weft_rc weft_lease_run_chunk(struct weft_engine *engine,
                                                  struct weft_lease_call *call,
                                                  struct weft_err *err);

/*
 * The end of a chunk whose transaction ended with rc: passes its news on and answers the items that
 * held no lease. When it failed, the items that have no answer yet get the error for one. The arena
 * is that of the transaction.
 */
WEFT_MUST_CHECK enum weft_rc weft_lease_end_chunk(struct weft_tx *tx, struct weft_lease_call *call,
                                                  enum weft_rc rc, struct weft_err *err);

/* Runs a whole call; the second one of an operation with answers of its own. */
WEFT_MUST_CHECK enum weft_rc weft_lease_run(struct weft_engine *engine,
                                            const struct weft_lease_op *op, const void *item,
                                            size_t count, struct weft_arena *arena,
                                            struct weft_lease_result *ret_answer,
                                            struct weft_err *err);

WEFT_MUST_CHECK enum weft_rc
weft_lease_run_call(struct weft_engine *engine, struct weft_lease_call *call, struct weft_err *err);

/* Item k of the chunk, of the operation's own type, and its answer. */
const void *weft_lease_item(const struct weft_lease_call *call, size_t k);
struct weft_lease_result *weft_lease_answer_of(const struct weft_lease_call *call, size_t k);

/* Answers the item whose lease a statement found. */
struct weft_lease_result *weft_lease_found(struct weft_lease_call *call, const struct weft_id *id,
                                           enum weft_state state);

#endif
