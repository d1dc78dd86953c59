/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_CLAIM_CHOOSE_H
#define WEFT_ENGINE_JOB_CLAIM_CHOOSE_H

/* Whether a claim may be served from a queue. */

#include "base/base.h"

struct weft_claim;
struct weft_engine;
struct weft_lane_setting;
struct weft_ready;

/* True when the claim (its namespace given) may be served from the queue. No query is made. */
bool weft_engine_fits(struct weft_engine *engine, const struct weft_claim *claim, int32_t queue);

/* The namespace of a queue; NULL when this process has not met it. No query is made. */
const char *weft_engine_namespace_of(struct weft_engine *engine, int32_t queue);

/* The settings of a lane, NULL when it has none. Under ready.lock. */
const struct weft_lane_setting *weft_claim_setting(const struct weft_ready *ready, int32_t lane);

#endif
