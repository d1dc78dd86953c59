/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_CLAIM_H
#define WEFT_ENGINE_JOB_CLAIM_H

/* Claiming: leases on ready executions for a worker. */

#include "weft/weft.h"

struct weft_engine;
struct weft_joint_call;
struct weft_lane_setting;
struct weft_ready;
struct weft_tx;

struct weft_claim_result {
    struct weft_claimed *item; /* in the arena */
    /*
     * For each item, in the arena: it is a member of a flow whose upstreams have not been read,
     * because it comes after very many; weft_engine_claim_rest() reads them. NULL: there is none.
     */
    bool *apart;
    size_t count;
    size_t bytes;   /* that the items carry, besides results of upstreams */
    bool contended; /* see weft_claims; also when the bytes of one call were used up */
    /* In so long a lane of the claims has room again that its window or rate has closed; 0: there
     * is none. */
    weft_usec opens_in_us;
};

/* Refuses an invalid claim; asks nothing of the store. weft_engine_claim() does this itself. */
WEFT_MUST_CHECK enum weft_rc weft_engine_claim_check(const struct weft_claim *claim,
                                                     struct weft_err *err);

/* The arena is the result's alone: it is emptied first. */
WEFT_MUST_CHECK enum weft_rc weft_engine_claim(struct weft_engine *engine, const char *ns,
                                               const struct weft_claim *claim, size_t count,
                                               struct weft_arena *arena,
                                               struct weft_claim_result *ret_result,
                                               struct weft_err *err);

/* Claims that may share a transaction (joint.h). The caller has checked them. */
void weft_claim_begin(struct weft_engine *engine, struct weft_joint_call *call,
                      struct weft_arena *arena);
void weft_claim_end(struct weft_tx *tx, struct weft_joint_call *call, struct weft_arena *arena);

/*
 * Reads the upstreams that a call of weft_engine_together() has left. When that fails, the items
 * without them must not be given to a worker, to which they would seem to have no upstreams.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_claim_rest(struct weft_engine *engine,
                                                    struct weft_claim_result *result,
                                                    struct weft_arena *arena, struct weft_err *err);

/* True when the claim (its namespace given) may be served from the queue. No query is made. */
bool weft_engine_fits(struct weft_engine *engine, const struct weft_claim *claim, int32_t queue);

/* The namespace of a queue; NULL when this process has not met it. No query is made. */
const char *weft_engine_namespace_of(struct weft_engine *engine, int32_t queue);

/* The settings of a lane, NULL when it has none. Under ready.lock. */
const struct weft_lane_setting *weft_claim_setting(const struct weft_ready *ready, int32_t lane);

#endif
