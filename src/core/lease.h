/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_LEASE_H
#define WEFT_CORE_LEASE_H

/*
 * Leases: the right of one worker to write one execution.
 *
 * A lease is (id, epoch). It is held while the `live` row is running under that epoch, whatever any
 * clock says: a write after the lease time but before expiry took it away is accepted. When it is
 * not held, what the store remembers of it decides between two answers. The holder's own last word,
 * said again because the reply was lost, gets the same answer again. Everything else is fenced,
 * with the reason.
 */

#include "core/state.h"
#include "weft/weft.h"

/* All that the store knows about one (id, epoch). */
struct weft_lease_facts {
    enum weft_state state;  /* of the execution now; NONE: there is no such execution */
    int32_t epoch;          /* of the execution now */
    enum weft_ended ended;  /* how this lease ended; NONE: the store has no record of its end */
    enum weft_state answer; /* what the end of this lease made of the execution then */
    weft_usec run_at_us;    /* and when it was to be ready */
};

/* The answer to a worker that does not hold its lease. */
struct weft_fate {
    enum weft_rc rc;       /* OK: the same answer again */
    enum weft_fence fence; /* when rc is WEFT_FENCED */
    enum weft_state state;
    weft_usec run_at_us;
};

/* What to tell a worker whose write did not find its lease. `asked` is NONE for a renewal. */
struct weft_fate weft_lease_fate(const struct weft_lease_facts *facts, int32_t epoch,
                                 enum weft_ended asked);

/*
 * True when a lease that ends like this at now_us leaves a worker behind that may still be at work
 * and does not know: another party ended it before its time, due_us, had run out. Such a lease is
 * draining until its holder lets go, at most until due_us.
 */
bool weft_lease_drains(enum weft_ended ended, weft_usec due_us, weft_usec now_us);
/* True for the fences that such a lease has. */
bool weft_fence_drains(enum weft_fence fence);
/* What a worker is told of a draining lease. */
enum weft_fence weft_drain_fence(enum weft_ended ended);

#endif
