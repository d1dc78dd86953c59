/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_SUBMIT_H
#define WEFT_ENGINE_JOB_SUBMIT_H

/* Submissions on their way into the store; shared by submit.c and the intake pass. */

#include "core/result.h"
#include "core/spec.h"

struct weft_call;
struct weft_engine;
struct weft_joint_call;
struct weft_queue;
struct weft_span_row;
struct weft_tx;

/* One valid item, with everything the statements need. */
struct weft_submission {
    struct weft_resolved spec;
    struct weft_id id;
    int64_t ord;
    const struct weft_queue *queue;
    int32_t policy;
    struct weft_submit_result *answer; /* outlives the call */
};

struct weft_submissions {
    struct weft_submission **item; /* keyed ones sorted by (namespace, key), no key twice */
    size_t count;
    struct weft_arena *arena; /* of the errors in the answers: outlives the call */
    bool keyed;
    bool maybe_committed; /* an earlier try may have been committed: see weft_tx */
    bool from_inbox;      /* taken out of the inbox in the same transaction */
    weft_usec now_us;
    uint64_t history; /* as in weft_tx */
};
WEFT_MUST_CHECK enum weft_rc weft_engine_submit(struct weft_engine *engine, const char *ns,
                                                const struct weft_spec *spec, size_t count,
                                                struct weft_arena *arena,
                                                struct weft_submit_result *ret_answer,
                                                struct weft_err *err);
/* Submissions that may share a transaction: see joint.h. */
void weft_submit_begin(struct weft_engine *engine, struct weft_joint_call *call,
                       struct weft_arena *arena);
void weft_submit_end(struct weft_tx *tx, struct weft_joint_call *call, struct weft_arena *arena);

/*
 * Resolves queues and policies and gives each item its place in the order. limited: an item whose
 * namespace may not have a queue more is left without one (census.c).
 */
WEFT_MUST_CHECK enum weft_rc weft_submission_place(struct weft_engine *engine, bool limited,
                                                   struct weft_submission *item, size_t count,
                                                   struct weft_err *err);

/*
 * Runs a batch, in ever smaller pieces where it fails by the fault of one of its items, and sets
 * the answers. When the store fails, the remaining items get that failure, and so does the call.
 */
WEFT_MUST_CHECK enum weft_rc weft_submission_run(struct weft_engine *engine,
                                                 const struct weft_submissions *batch,
                                                 struct weft_arena *arena, struct weft_err *err);

/* Records executions that end as they begin: item->answer has the reason. */
WEFT_MUST_CHECK enum weft_rc weft_submission_end(struct weft_tx *tx,
                                                 struct weft_submission *const *item, size_t count,
                                                 weft_usec now_us, struct weft_err *err);

/* The spans of items that one transaction writes, for weft_span_of(). */
struct weft_span_row *weft_submission_spans(struct weft_submission *const *item, size_t count,
                                            struct weft_arena *arena);

/* Prepares the statement that writes the costs of items; false: none of them names one. */
bool weft_submission_costs(struct weft_submission *const *item, size_t count,
                           struct weft_arena *arena, struct weft_call *ret_call);

/* Deletes the inbox rows of items; keeps in item[] the items that had one, and their number. */
WEFT_MUST_CHECK enum weft_rc weft_inbox_take(struct weft_tx *tx, struct weft_submission **item,
                                             size_t *count, struct weft_err *err);

/* Puts items into batches that fit a transaction: at most WEFT_BATCH_MAX items and BYTES. */
struct weft_submissions *weft_submission_batches(struct weft_submission *item, size_t count,
                                                 struct weft_arena *arena, size_t *ret_count);

#endif
