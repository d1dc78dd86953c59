/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_READY_POLL_H
#define WEFT_ENGINE_READY_POLL_H

/* The poll: one statement a second reads all that a replica must know of other replicas. */

#include "engine/engine.h"

struct weft_woken;

#define WEFT_UNTOLD INT64_MIN /* this poll did not look */

struct weft_poll {
    struct weft_woken *queue; /* ready queues, count 1 each; in the arena */
    size_t count;
    bool inbox; /* the inbox holds something */
    /* When each pass has something to do; or WEFT_NEVER, WEFT_UNTOLD. */
    weft_usec due_us[WEFT_SCANNER_COUNT];
    int64_t budgets;   /* changes with the settings of budgets: see limit/budget_rules.h */
    int64_t endpoints; /* changes with endpoints: see http/endpoints.h */
    int64_t tokens;    /* changes when a token is added, rotated or revoked */
    int32_t *worker;   /* workers whose leases were ended by others; in the arena */
    size_t workers;
};

/* PostgreSQL: without a transaction around it. Also refreshes the ready list and lane settings. */
WEFT_MUST_CHECK enum weft_rc weft_engine_poll(struct weft_engine *engine, struct weft_arena *arena,
                                              struct weft_poll *ret_poll, struct weft_err *err);

#endif
