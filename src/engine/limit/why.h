/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_LIMIT_WHY_H
#define WEFT_ENGINE_LIMIT_WHY_H

/* Why an execution does not run, in a sentence and as data. */

#include "weft/limits.h"

struct weft_engine;
struct weft_wait_asking;

/*
 * What the part of a server that makes HTTP calls knows of a target (core/carried.h): see
 * weft_engine_on_carrier(). Called on any thread, with *ret_state zeroed.
 */
struct weft_carrier_state {
    bool urls;               /* it makes calls with URLs of their own */
    bool open;               /* the breaker lets no call begin */
    weft_usec open_until_us; /* the store's clock; 0: until the end of a call */
    bool no_secret;          /* this server lacks the secret that the endpoint names */
    uint64_t in_flight;
};
typedef void weft_carrier_fn(void *context, const char *ns, const char *target,
                             struct weft_carrier_state *ret_state);
/* NULL: this process carries nothing out. Before the first call. */
void weft_engine_on_carrier(struct weft_engine *engine, weft_carrier_fn *fn, void *context);

/* Reads without locks: what it says was true a moment ago. */
WEFT_MUST_CHECK enum weft_rc weft_engine_why(struct weft_engine *engine,
                                             const struct weft_wait_asking *asking,
                                             struct weft_arena *arena, struct weft_why *ret_why,
                                             struct weft_err *err);

#endif
