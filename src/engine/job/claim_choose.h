/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_CLAIM_CHOOSE_H
#define WEFT_ENGINE_JOB_CLAIM_CHOOSE_H

/* Which queues a claim looks at. */

#include "base/base.h"

struct weft_claim;
struct weft_claim_request;
struct weft_claiming;
struct weft_engine;
struct weft_lane_setting;
struct weft_ready;

/* What the list holds for the claims of a call. */
struct weft_listed_for {
    bool any;      /* a queue for one of them: without one no transaction need be opened */
    bool paused;   /* one of their lanes has queues and was paused when the settings were read */
    uint64_t tick; /* of the list */
};

/* True when the claim (its namespace given) may be served from the queue. No query is made. */
bool weft_engine_fits(struct weft_engine *engine, const struct weft_claim *claim, int32_t queue);

/* The namespace of a queue; NULL when this process has not met it. No query is made. */
const char *weft_engine_namespace_of(struct weft_engine *engine, int32_t queue);

/* The settings of a lane, NULL when it has none. Under ready.lock. */
const struct weft_lane_setting *weft_claim_setting(const struct weft_ready *ready, int32_t lane);
struct weft_listed_for weft_claim_look(struct weft_engine *engine, struct weft_claiming *all);

/* Fills in the candidates of a request from the list as it is now. */
void weft_claim_choose(struct weft_engine *engine, struct weft_claiming *all,
                       struct weft_claim_request *request);

/* Remembers how far each tenant was served. */
void weft_claim_keep_turns(struct weft_engine *engine, const struct weft_claim_request *request);

#endif
