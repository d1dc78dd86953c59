/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_FENCE_H
#define WEFT_CORE_FENCE_H

/*
 * Fencing: the answer to a worker that does not hold its lease.
 *
 * A lease is (id, epoch): the right of one worker to write one execution. It is held while the
 * `live` row is running under that epoch, whatever any clock says: a write after the lease time but
 * before the expiry scanner took the lease away is accepted. If the lease is not held, the store's
 * record of it decides: a worker that repeats the request that ended its lease, because the reply
 * was lost, gets the same answer again; every other write is fenced, with the reason. Pure.
 */

#include "core/state.h"
#include "weft/weft.h"

/* What the store knows about one (id, epoch). */
struct weft_lease_facts {
    enum weft_state state;  /* of the execution now; NONE: there is no such execution */
    int32_t epoch;          /* of the execution now */
    enum weft_ended ended;  /* how this lease ended; NONE: the store has no record of its end */
    enum weft_state answer; /* the execution's state right after this lease ended */
    weft_usec run_at_us;    /* and when it was due to be ready */
};

/* The answer. */
struct weft_fate {
    enum weft_rc rc;       /* OK: the first answer, repeated */
    enum weft_fence fence; /* when rc is WEFT_FENCED */
    enum weft_state state;
    weft_usec run_at_us;
};

/* `asked` is how the worker wanted to end its lease; NONE for a renewal. */
struct weft_fate weft_lease_fate(const struct weft_lease_facts *facts, int32_t epoch,
                                 enum weft_ended asked);

/*
 * True when the holder of a lease that ended like this at now_us may still be working and not know:
 * another party ended the lease before due_us. Such a lease is draining until its holder releases
 * it, at most until due_us.
 */
bool weft_lease_drains(enum weft_ended ended, weft_usec due_us, weft_usec now_us);
/* True for the fence reasons of a draining lease. */
bool weft_fence_drains(enum weft_fence fence);
/* The fence reason of a draining lease; NONE if a lease that ended like this does not drain. */
enum weft_fence weft_drain_fence(enum weft_ended ended);

#endif
