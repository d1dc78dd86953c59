/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_WAITING_H
#define WEFT_TESTS_WAITING_H

/*
 * Suspending and signalling for the programs that break things. Answers are copied out of their
 * arenas: they are compared after the engine that gave them has gone.
 */

#include "support.h"

#include "core/signal_token.h"

enum { WAIT_PLACES = 4, WAIT_TEXT = 1000 };

/* The answer of one suspend, of the making of waitpoints, or of a claim. */
struct wait_answer {
    enum weft_rc rc; /* of the call or of its items */
    bool unknown;    /* the hint said outcome_unknown */
    enum weft_state state;
    bool satisfied;
    size_t count; /* waitpoints */
    struct weft_id waitpoint[WAIT_PLACES];
    char token[WAIT_PLACES][WEFT_SIGNAL_TOKEN_TEXT];
    size_t signals; /* that came along */
    enum weft_resumed_by by;
    int32_t epoch;
};

struct signal_answer {
    enum weft_rc rc;
    bool unknown;
    enum weft_signal_effect effect, first;
};

/* An execution in a lane of its own, claimed. */
struct weft_claimed wait_lease(struct weft_engine *engine, const char *lane);
struct wait_answer wait_suspend(struct weft_engine *engine, const struct weft_suspend *item);
/* Suspends a lease at new waitpoints, named by a letter each. */
struct wait_answer wait_suspend_at(struct weft_engine *engine, const struct weft_claimed *lease,
                                   const char *letters, const struct weft_suspend *how);
/* Pending waitpoints, named by a letter each, in one call. */
struct wait_answer wait_pending(struct weft_engine *engine, const struct weft_claimed *lease,
                                const char *letters, int64_t expires_ms);
void wait_signals(struct weft_engine *engine, const struct weft_signal *item, size_t count,
                  struct signal_answer *ret_answer);
struct signal_answer wait_signal(struct weft_engine *engine, const char *token, const char *key);
/* Claims one execution with what it was resumed by. */
struct wait_answer wait_claim(struct weft_engine *engine, const char *lane);
/* One pass; the rc of it, and how many rows it handled. */
enum weft_rc wait_pass(struct weft_engine *engine, enum weft_scanner scanner, uint64_t *ret_handled,
                       struct weft_err *err);

/*
 * All that the store says of one execution that waits or waited, without ids and times: its state,
 * how many leases have ended, suspension, resumption, waitpoints and signals.
 */
void wait_describe(struct weft_engine *engine, const struct weft_id *id, char out[WAIT_TEXT]);
/* How many signing keys there are, and how many of them sign. */
size_t wait_keys(struct weft_engine *engine, size_t *ret_current);

#endif
