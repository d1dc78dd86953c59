/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_CHANGE_H
#define WEFT_ENGINE_JOB_CHANGE_H

/* Rows of `live`: lock them, decide in C, write them. */

#include "core/state.h"
#include "store/store.h"
#include "weft/weft.h"

struct weft_commit_effects;
struct weft_outcome_back_item;
struct weft_tx;

/* One row of `live`, the step that it takes, and the texts that are stored with the step. */
struct weft_change {
    struct weft_live before;
    struct weft_step step;
    bool apply;                   /* false: leave the row alone */
    bool drains;                  /* its lease does, if it is applied; set by weft_change_calls() */
    enum weft_resumed_by resumed; /* of a step that resumes it */
    const char *by;
    const char *reason;
    const char *error_class;
    const char *error_message;
    const char *detail; /* of a failure: see detail.h */
};

struct weft_changes {
    struct weft_change *change; /* in the order of the rows */
    size_t count;
    struct weft_id *flow; /* flows of which a member ended; set by weft_change_write() */
    size_t flows;
};

/* The calls of weft_change_write(), for a caller that runs them together with others. */
enum { WEFT_CHANGE_CALLS = 7 };

/* Locks the living rows of the ids, in their order, in tx. Ids that are not living are missing. */
WEFT_MUST_CHECK enum weft_rc weft_change_lock(struct weft_tx *tx, const struct weft_id *id,
                                              size_t count, struct weft_changes *ret_changes,
                                              struct weft_err *err);

/* Calls of the caller that run behind the lock, in the same round trip. They see what is true under
 * it: a statement sees all that was committed when it begins, and begins after the one before. */
struct weft_change_reads {
    struct weft_call *call; /* call[0], and rows[0], are for the lock */
    struct weft_rows *rows;
    size_t count;
};
WEFT_MUST_CHECK enum weft_rc weft_change_lock_and(struct weft_tx *tx, const struct weft_id *id,
                                                  size_t count, struct weft_changes *ret_changes,
                                                  const struct weft_change_reads *reads,
                                                  struct weft_err *err);

/* The rows of any statement that has the columns of live_lock. */
struct weft_changes weft_change_rows(const struct weft_rows *rows, struct weft_arena *arena);

/* The change of an id, NULL when it is not living. */
struct weft_change *weft_change_find(const struct weft_changes *changes, const struct weft_id *id);

/* Loads the policies of the rows; then weft_find_rules() cannot miss. */
WEFT_MUST_CHECK enum weft_rc
weft_change_rules(struct weft_tx *tx, const struct weft_changes *changes, struct weft_err *err);

/*
 * Takes the step; false, with the change as it was, when the transition table refuses it. A second
 * step goes on from the first, in memory: for calls with several items about one row
 * (WEFT_REPEATS_TOGETHER in tx/batch.h).
 */
bool weft_change_step(struct weft_change *change, const struct weft_event *event);

/* Writes all that apply: rows that live on, outcomes, attempts; in one round trip. */
WEFT_MUST_CHECK enum weft_rc weft_change_write(struct weft_tx *tx, struct weft_changes *changes,
                                               struct weft_err *err);
/* The same together with calls of the caller, which stand behind WEFT_CHANGE_CALLS free places.
 * Calls without rows are left out, and what others return is not kept. */
WEFT_MUST_CHECK enum weft_rc weft_change_run(struct weft_tx *tx, struct weft_changes *changes,
                                             struct weft_call *call, size_t count,
                                             struct weft_err *err);
/* The same as the last calls of the body: see weft_tx_last(). No change ends an execution. */
WEFT_MUST_CHECK enum weft_rc weft_change_last(struct weft_tx *tx, struct weft_changes *changes,
                                              struct weft_call *call, size_t count,
                                              struct weft_err *err);
void weft_change_calls(struct weft_tx *tx, const struct weft_changes *changes,
                       struct weft_call ret_call[WEFT_CHANGE_CALLS]);
WEFT_MUST_CHECK enum weft_rc weft_change_wrote(struct weft_tx *tx, struct weft_changes *changes,
                                               const struct weft_rows rows[WEFT_CHANGE_CALLS],
                                               struct weft_err *err);

/* Whether one of them ends: weft_change_wrote() may fail then, so it is not for weft_tx_last(). */
bool weft_change_ends(const struct weft_changes *changes);

/* A row of outcome_lock, as it would live on, and a row of outcome_back, which revives it. */
struct weft_live weft_outcome_read(const struct weft_rows *rows, size_t i);
void weft_outcome_back(struct weft_outcome_back_item *item, const struct weft_live *after);

/* Adds the effects of the changes, which are borrowed until the effects are passed on. */
void weft_change_news(struct weft_commit_effects *news, const struct weft_changes *changes);

/* The executions that ended by the changes, into room for all; says how many. */
size_t weft_change_ended(const struct weft_changes *changes, struct weft_id *ret_id);

#endif
