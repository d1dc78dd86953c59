/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_JOINT_H
#define WEFT_ENGINE_JOB_JOINT_H

/* Operations that share one transaction. */

#include "base/base.h"
#include "core/result.h"
#include "engine/job/claim.h"
#include "store/store.h"
#include "weft/weft.h"

struct weft_arena;
struct weft_engine;
struct weft_tx;

/*
 * A completion, a claim and a submission at once: in one transaction where each is a single
 * statement, in one each where that cannot be or has failed. Every call is answered as if it had
 * been made alone; rc and err are what it would have returned.
 */
struct weft_complete_call {
    const struct weft_complete *item;
    size_t count;
    struct weft_arena *arena; /* of errors in the answers */
    struct weft_lease_result *answer;
    enum weft_rc rc;
    struct weft_err err;
};

struct weft_claim_call {
    const char *ns;
    const struct weft_claim *item;
    size_t count;
    struct weft_arena *arena; /* the result's alone */
    struct weft_claim_result result;
    enum weft_rc rc;
    struct weft_err err;
};

struct weft_submit_call {
    const char *ns;
    const struct weft_spec *item;
    size_t count;
    struct weft_arena *arena; /* of errors in the answers */
    struct weft_submit_result *answer;
    enum weft_rc rc;
    struct weft_err err;
};
enum weft_together_kind { WEFT_TOGETHER_COMPLETE, WEFT_TOGETHER_CLAIM, WEFT_TOGETHER_SUBMIT };

struct weft_together {
    struct weft_complete_call *complete; /* NULL: none of that kind; so with the others */
    struct weft_claim_call *claim;
    struct weft_submit_call *submit;
    /* Called when that call is durable and answered, while others may be under way; or NULL. */
    void (*answered)(void *context, enum weft_together_kind kind);
    void *context;
};

/* What became of a part. */
enum weft_part_fate {
    WEFT_PART_ALONE,           /* nothing: it is left to a transaction of its own */
    WEFT_PART_MAYBE_COMMITTED, /* as this, but it may have been done: the second time will find it
                                */
    WEFT_PART_DONE,            /* committed, and its rows were taken */
    WEFT_PART_FAILED, /* err tells: a try of its own would end no better, or must not be made */
};

/*
 * An operation between its beginning and its end, of which one statement is left to be run: it can
 * share a transaction with others. The caller that began it ends it, and the end runs what was not
 * done.
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
void weft_engine_together(struct weft_engine *engine, const struct weft_together *calls);

#endif
