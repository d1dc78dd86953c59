/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_READY_POLL_H
#define WEFT_ENGINE_READY_POLL_H

/* The poll: all that a replica must know of what others did. */

#include "engine/engine.h"

struct weft_woken;

/*
 * The slow poll: all a replica must know of what others did, in one statement (PostgreSQL: without
 * a transaction around it). Refreshes the list of claimable queues and the lane settings.
 */
#define WEFT_UNTOLD INT64_MIN

struct weft_poll {
    struct weft_woken *queue; /* claimable ones, count 1 each; in the arena */
    size_t count;
    bool inbox; /* the inbox holds something */
    /* When each pass has something to do; WEFT_NEVER, or WEFT_UNTOLD: this poll did not look. */
    weft_usec due_us[WEFT_SCANNER_COUNT];
    int64_t tokens;  /* changes when a token is added, rotated or revoked */
    int32_t *worker; /* workers that have to be told of leases; in the arena */
    size_t workers;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_poll(struct weft_engine *engine, struct weft_arena *arena,
                                              struct weft_poll *ret_poll, struct weft_err *err);

#endif
