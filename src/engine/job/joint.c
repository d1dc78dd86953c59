/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Operations of several kinds in one transaction: one exchange with the store and one wait for the
 * disk instead of one each.
 *
 * Only what is a single statement joins: completions of one chunk, claims of one round, submissions
 * without keys. They run in that order, which needs no new rule for locks: completions may wait for
 * rows, in the order of ids, and hold nothing yet but such rows; claims skip what is locked, and
 * new rows are nobody's, so behind the completions nobody waits; for the rare wait that PostgreSQL
 * makes in spite of SKIP LOCKED there is the short lock_timeout. Claims come before the submissions
 * and therefore see what they would have seen alone. One that found nothing looks again, as ever,
 * and by then the submissions are committed and told of; one that waits is woken by them.
 *
 * Nobody suffers for a neighbour. A joint transaction that failed has written nothing, and every
 * part is left to a transaction of its own, where only the one to blame fails; unless it is the
 * store that failed (it cannot be reached, the disk is full), which is nobody's fault. For a row
 * that somebody holds, all wait but shortly, then the completions alone and the others have their
 * answers. When the connection was lost in COMMIT and nobody can tell what became of it, what may
 * be done twice is done a second time, alone, and only what may not is answered outcome_unknown.
 */

#include "engine/job/joint.h"

#include "base/arena.h"
#include "base/err.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "engine/tx/tx.h"

enum { PARTS_MAX = 3 };

struct joint {
    struct weft_part *part[PARTS_MAX];
    size_t count;
    bool declined[PARTS_MAX]; /* in the last try */
};

static enum weft_rc joint_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct joint *joint = context;
    struct weft_call call[PARTS_MAX];
    struct weft_rows rows[PARTS_MAX];
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

/* What a part is left with when the transaction failed. */
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

static void run_joint(struct weft_tx *tx, struct joint *joint)
{
    struct weft_err story = {0};
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

static void add(struct joint *joint, struct weft_part *part)
{
    if (part->joins)
        joint->part[joint->count++] = part;
}

static bool is_over(const struct weft_part *part)
{
    return part->fate == WEFT_PART_DONE || part->fate == WEFT_PART_FAILED;
}

/* The three operations between their beginnings and their ends. */
struct under_way {
    struct weft_tx tx;
    struct weft_arena *arena;
    struct weft_part complete, claim, submit;
};

static void begin_all(const struct weft_together *calls, struct under_way *way)
{
    struct weft_engine *engine = way->tx.engine;
    struct joint joint = {0};
    if (calls->complete)
        weft_complete_begin(calls->complete, way->arena, &way->complete);
    if (calls->claim)
        weft_claim_begin(engine, calls->claim, way->arena, &way->claim);
    if (calls->submit)
        weft_submit_begin(engine, calls->submit, way->arena, &way->submit);
    add(&joint, &way->complete);
    add(&joint, &way->claim);
    add(&joint, &way->submit);
    if (joint.count > 1)
        run_joint(&way->tx, &joint);
}

static void tell(const struct weft_together *calls, enum weft_together_kind kind)
{
    if (calls->answered)
        calls->answered(calls->context, kind);
}

static void end_complete(const struct weft_together *calls, struct under_way *way)
{
    weft_complete_end(way->tx.engine, calls->complete, &way->complete, &way->tx);
    tell(calls, WEFT_TOGETHER_COMPLETE);
}

void weft_engine_together(struct weft_engine *engine, const struct weft_together *calls)
{
    struct weft_arena *rows = weft_arena_new();
    struct under_way way = {.tx = {.engine = engine, .history = weft_engine_history(engine)},
                            .arena = weft_arena_new()};
    /* What a claim answers lies in the rows of the transaction. */
    way.tx.arena = calls->claim ? calls->claim->arena : rows;
    begin_all(calls, &way);
    /* A claim that goes on empties the arena with the rows: what was completed is read before. */
    bool completed = is_over(&way.complete);
    if (calls->complete && completed)
        end_complete(calls, &way);
    if (calls->submit) {
        weft_submit_end(engine, calls->submit, &way.submit, way.arena);
        tell(calls, WEFT_TOGETHER_SUBMIT);
    }
    if (calls->claim) {
        weft_claim_end(engine, calls->claim, &way.claim);
        tell(calls, WEFT_TOGETHER_CLAIM);
    }
    /* Alone, completions may wait long for a row: nobody waits for them. */
    if (calls->complete && !completed)
        end_complete(calls, &way);
    weft_arena_free(rows);
    weft_arena_free(way.arena);
}
