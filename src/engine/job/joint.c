/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls of several operations in one transaction: one exchange with the store and one wait for the
 * disk instead of one each. Only a call that is a single statement joins: completions of one chunk,
 * claims of one round, submissions without keys.
 *
 * No call fails because of another. A joint transaction that failed has written nothing; every part
 * then gets a transaction of its own, in which only the part to blame fails. The exception is a
 * failure of the store (it cannot be reached, the disk is full), which every part would meet again.
 * For a row that another transaction holds all parts wait, but shortly; after that the completions
 * wait for it alone, and the others have their answers. When the connection was lost in COMMIT and
 * the outcome cannot be known, a part that may be done twice is done a second time, alone, and only
 * a part that may not is answered outcome_unknown.
 */

#include "engine/job/joint.h"

#include "base/arena.h"
#include "base/err.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "engine/tx/tx.h"

#include <assert.h>

/*
 * The operations that join, in the order in which their statements run in a transaction. The order
 * needs no new rule for locks: completions may wait for rows, in the order of ids, while this
 * transaction holds no other rows; claims skip locked rows, and no other transaction can see rows
 * that are being submitted, so nothing behind the completions waits. For the rare wait that
 * PostgreSQL makes in spite of SKIP LOCKED there is the short lock_timeout. Claims come before
 * submissions and so see what they would have seen alone.
 *
 * A row to be added belongs before the claims if its statement waits for rows, and behind them if
 * it only writes new ones.
 */
static const struct kind {
    enum weft_op op;
    weft_joint_begin_fn *begin;
    weft_joint_end_fn *end;
    /*
     * Its answers lie in the rows of the transaction, so these use its arena. Its end may run
     * further transactions, whose rows replace the rows of the joint one, so the ends of the others
     * come before. A claim that found nothing looks again there: by then the
     * submissions are committed and reported; a claim that waits is woken by them.
     */
    bool goes_on;
    /* In a transaction of its own it may wait long for a row: the others do not wait for its end.
     */
    bool waits_alone;
} kinds[] = {
    {WEFT_OP_COMPLETE, weft_complete_begin, weft_complete_end, false, true},
    {WEFT_OP_CLAIM, weft_claim_begin, weft_claim_end, true, false},
    {WEFT_OP_SUBMIT, weft_submit_begin, weft_submit_end, false, false},
};
static_assert(WEFT_LEN(kinds) == WEFT_JOINT_MAX, "every operation that joins has a row");

static const struct kind *kind_of(const struct weft_joint_call *call)
{
    const struct kind *kind = kinds;
    while (kind->op != call->op)
        kind++;
    return kind;
}

/* ---- The transaction ------------------------------------------------------------------------- */

struct joint {
    struct weft_tx tx;
    struct weft_arena *scratch; /* of begin and end */
    struct weft_arena *rows; /* of the transaction, unless a call has an arena for them; or NULL */
    struct weft_part *part[WEFT_JOINT_MAX];
    size_t count;
    bool declined[WEFT_JOINT_MAX]; /* in the last try */
};

static enum weft_rc joint_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct joint *joint = context;
    struct weft_call call[WEFT_JOINT_MAX];
    struct weft_rows rows[WEFT_JOINT_MAX];
    size_t calls = 0;
    weft_arena_reset(tx->arena);
    for (size_t i = 0; i < joint->count; i++) {
        struct weft_part *part = joint->part[i];
        joint->declined[i] = !part->ask(tx, part->context, &call[calls]);
        calls += !joint->declined[i];
    }
    enum weft_rc rc = calls ? weft_tx_last(tx, call, calls, rows, err) : WEFT_OK;
    for (size_t i = 0, at = 0; i < joint->count && !rc; i++)
        if (!joint->declined[i])
            joint->part[i]->take(tx, joint->part[i]->context, &rows[at++]);
    return rc;
}

/* The fate of a part whose transaction failed with `story`. */
static enum weft_part_fate judge(const struct weft_part *part, const struct weft_tx *tx,
                                 const struct weft_err *story)
{
    if (story->cause == WEFT_CAUSE_LOST_IN_COMMIT)
        return part->repeatable && !tx->answered ? WEFT_PART_MAYBE_COMMITTED : WEFT_PART_FAILED;
    bool contended =
        story->cause == WEFT_CAUSE_CONTENTION || story->cause == WEFT_CAUSE_LOCK_TIMEOUT;
    if (weft_rc_retryable(story->rc) && !contended)
        return WEFT_PART_FAILED;
    return tx->maybe_committed ? WEFT_PART_MAYBE_COMMITTED : WEFT_PART_ALONE;
}

static void run_joint(struct joint *joint)
{
    struct weft_tx *tx = &joint->tx;
    struct weft_err story = {0};
    if (!tx->arena)
        tx->arena = joint->rows = weft_arena_new();
    tx->repeatable = true;
    for (size_t i = 0; i < joint->count; i++)
        tx->repeatable &= joint->part[i]->repeatable;
    enum weft_rc rc = weft_tx_do(tx, WEFT_TX_KEYED, joint_body, joint, &story);
    for (size_t i = 0; i < joint->count; i++) {
        struct weft_part *part = joint->part[i];
        if (joint->declined[i])
            continue;
        part->fate = rc ? judge(part, tx, &story) : WEFT_PART_DONE;
        if (part->fate == WEFT_PART_FAILED)
            part->err = story;
    }
}

/* ---- The calls ------------------------------------------------------------------------------- */

enum { ENDS_FIRST, ENDS_BEHIND, ENDS_LAST, TURN_COUNT };

/* When the end of a call runs: see the table. */
static int turn_of(const struct weft_joint_call *call)
{
    bool over = call->part.fate == WEFT_PART_DONE || call->part.fate == WEFT_PART_FAILED;
    if (kind_of(call)->waits_alone && !over && call->count > 0)
        return ENDS_LAST;
    return kind_of(call)->goes_on ? ENDS_BEHIND : ENDS_FIRST;
}

static void begin(struct joint *joint, struct weft_joint_call *call)
{
    call->part = (struct weft_part){0};
    call->err = (struct weft_err){0};
    call->rc = WEFT_OK;
    if (call->count > 0)
        kind_of(call)->begin(joint->tx.engine, call, joint->scratch);
    if (kind_of(call)->goes_on)
        joint->tx.arena = call->arena;
    if (call->part.joins)
        joint->part[joint->count++] = &call->part;
}

static void end(struct joint *joint, struct weft_joint_call *call)
{
    if (call->count > 0)
        kind_of(call)->end(&joint->tx, call, joint->scratch);
}

void weft_engine_together(struct weft_engine *engine, struct weft_joint_call *call, size_t count,
                          weft_joint_fn *answered, void *context)
{
    struct joint joint = {.tx = {.engine = engine, .history = weft_engine_history(engine)},
                          .scratch = weft_arena_new()};
    for (size_t kind = 0; kind < WEFT_LEN(kinds); kind++)
        for (size_t i = 0; i < count; i++)
            if (call[i].op == kinds[kind].op)
                begin(&joint, &call[i]);
    if (joint.count > 1)
        run_joint(&joint);
    for (int turn = 0; turn < TURN_COUNT; turn++)
        for (size_t i = 0; i < count; i++)
            if (turn_of(&call[i]) == turn) {
                end(&joint, &call[i]);
                if (answered)
                    answered(context, &call[i]);
            }
    weft_arena_free(joint.rows);
    weft_arena_free(joint.scratch);
}

enum weft_rc weft_engine_alone(struct weft_engine *engine, struct weft_joint_call *call,
                               struct weft_err *err)
{
    weft_engine_together(engine, call, 1, NULL, NULL);
    if (err && call->err.rc)
        *err = call->err;
    return call->rc;
}
