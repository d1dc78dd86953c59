/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_CLAIM_UPSTREAMS_H
#define WEFT_ENGINE_JOB_CLAIM_UPSTREAMS_H

/* The results of upstreams that a claimed member of a flow is given. */

#include "base/base.h"

struct weft_arena;
struct weft_claim_result;
struct weft_claiming;
struct weft_engine;

/*
 * Reads the upstreams that a call of weft_engine_together() has left. When that fails, the items
 * without them must not be given to a worker: to it they would seem to come after nothing.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_claim_rest(struct weft_engine *engine,
                                                    struct weft_claim_result *result,
                                                    struct weft_arena *arena, struct weft_err *err);

/* The last item is a member of a flow; its claim carries so many bytes: weft_live.size. */
void weft_claim_add_member(struct weft_claiming *all, size_t bytes);

/* The same as weft_engine_claim_rest(), but without items that could not be given theirs. */
WEFT_MUST_CHECK enum weft_rc weft_claim_all_upstreams(struct weft_engine *engine,
                                                      struct weft_claim_result *result,
                                                      struct weft_arena *arena,
                                                      struct weft_err *err);

/* Gives members of flows their names and upstreams, but for those that are read apart. */
WEFT_MUST_CHECK enum weft_rc weft_claim_upstreams(struct weft_engine *engine,
                                                  struct weft_claiming *all, struct weft_err *err);

#endif
