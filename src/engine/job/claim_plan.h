/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_CLAIM_PLAN_H
#define WEFT_ENGINE_JOB_CLAIM_PLAN_H

/* How many rows a claim takes from each queue, under the limits of lanes. */

#include "base/base.h"

struct weft_candidate;
struct weft_claim_request;
struct weft_claiming;
struct weft_tx;

/* Locks the lanes that have a limit, then counts their leases with a snapshot from after that. */
WEFT_MUST_CHECK enum weft_rc weft_claim_lock_lanes(struct weft_tx *tx, struct weft_claiming *all,
                                                   struct weft_err *err);

/* Decides how many rows to take from each queue in this round. */
WEFT_MUST_CHECK enum weft_rc weft_claim_plan(struct weft_tx *tx, struct weft_claiming *all,
                                             struct weft_claim_request *request,
                                             struct weft_err *err);

/* How many more the lane of a candidate may have running. */
uint32_t weft_claim_lane_room(const struct weft_claiming *all,
                              const struct weft_candidate *candidate);

#endif
