/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_JOINT_H
#define WEFT_ENGINE_JOB_JOINT_H

/*
 * Calls of different operations that share one transaction. joint.c has the table of the operations
 * that can: a new one is a row there, with its functions begin and end, and the word JOINS in
 * wire/ops.def.
 */

#include "core/result.h"
#include "engine/job/claim.h"
#include "store/store.h"
#include "wire/ops.h"

/* How many operations can share a transaction: the rows of wire/ops.def that say JOINS. */
enum { WEFT_JOINS_APART, WEFT_JOINS_JOINS };
enum {
    WEFT_JOINT_MAX = 0
#define FOLDED(op, label, joins, ...) +WEFT_JOINS_##joins /* NOLINT(bugprone-macro-parentheses) */
#define ALONE(...)
#include "wire/ops.def"
};

/* What became of a part. */
enum weft_part_fate {
    WEFT_PART_ALONE,           /* it was not run: it needs a transaction of its own */
    WEFT_PART_MAYBE_COMMITTED, /* the same, but it may be committed: a second run finds that out */
    WEFT_PART_DONE,            /* committed, and its rows were taken */
    WEFT_PART_FAILED, /* with err: a transaction of its own would fail too, or must not be tried */
};

/*
 * A call between its begin and its end, reduced to one statement, which can share a transaction
 * with the statements of other calls. The end runs what the joint transaction did not.
 */
struct weft_part {
    void *context;
    /* Writes the statement of this try; false: it takes more than one, so it is left alone. */
    bool (*ask)(struct weft_tx *tx, void *context, struct weft_call *ret_call);
    void (*take)(struct weft_tx *tx, void *context, const struct weft_rows *rows);
    bool joins;      /* there is such a statement; false: nothing is to be run, or much */
    bool repeatable; /* as in weft_tx */
    enum weft_part_fate fate;
    struct weft_err err;
};

/* One call: its items, where its answers go, and what it would have returned alone. */
struct weft_joint_call {
    enum weft_op op;  /* COMPLETE, CLAIM, SUBMIT: one that joins */
    const char *ns;   /* of items that name none */
    const void *item; /* weft_complete, weft_claim or weft_spec; borrowed */
    size_t count;     /* 0: nothing is run, rc is WEFT_OK */
    /*
     * Claims of a server that carries executions out itself: for each item the target (core/
     * carried.h) that alone it takes executions of, "": only those that were submitted by a binary
     * that knew no targets. NULL: it is a worker, which takes any. It is no member of weft_claim,
     * because workers have no say in it, and no capability, because a worker that names the kind
     * gets executions of every target.
     */
    const char *const *target;
    bool calls;               /* completions: results of HTTP calls that this server has made */
    weft_usec asked_us;       /* claims: boot time when the last of them came; 0: now */
    void *answer;             /* one weft_lease_result or weft_submit_result for each item; */
                              /* of claims one weft_claim_result for all, set on success */
    struct weft_arena *arena; /* of errors in the answers; of claims: of the result alone, */
                              /* and emptied first */
    enum weft_rc rc;
    struct weft_err err;
    struct weft_part part; /* private to begin, joint.c and end */
};

/*
 * Runs calls of different operations: in one transaction where each is a single statement, in one
 * each where that cannot be or has failed. Every call is answered as if it had been made alone.
 * `answered`, unless NULL, is called once for each, when it is durable and has its answers, while
 * others may still be under way.
 */
typedef void weft_joint_fn(void *context, struct weft_joint_call *call);
void weft_engine_together(struct weft_engine *engine, struct weft_joint_call *call, size_t count,
                          weft_joint_fn *answered, void *context);
/* One call, with rc and err returned. */
WEFT_MUST_CHECK enum weft_rc weft_engine_alone(struct weft_engine *engine,
                                               struct weft_joint_call *call, struct weft_err *err);

/*
 * The begin of an operation checks the items and sets call->part; the end runs what is left and
 * sets rc, err and the answers. The arena is scratch memory of both; tx is the joint transaction.
 */
typedef void weft_joint_begin_fn(struct weft_engine *engine, struct weft_joint_call *call,
                                 struct weft_arena *arena);
typedef void weft_joint_end_fn(struct weft_tx *tx, struct weft_joint_call *call,
                               struct weft_arena *arena);

#endif
