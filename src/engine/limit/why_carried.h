/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_LIMIT_WHY_CARRIED_H
#define WEFT_ENGINE_LIMIT_WHY_CARRIED_H

/* Why no server begins a ready execution of a kind that weft carries out itself. For why.c. */

#include "base/json.h"
#include "core/why.h"
#include "engine/limit/why.h"

struct weft_execution;

struct weft_why_carried {
    struct weft_engine *engine;
    struct weft_arena *arena;
    const char *target; /* in the arena; NULL: an older binary submitted it */
    int64_t max_in_flight;
    size_t carriers; /* living servers that carry such executions out */
    struct weft_carrier_state state;
};

/* Sets facts->carried. */
WEFT_MUST_CHECK enum weft_rc weft_why_carried(struct weft_why_carried *all,
                                              const struct weft_execution *execution,
                                              struct weft_why_facts *facts, struct weft_err *err);
/* The sentence; adds members to the detail. */
const char *weft_why_carried_say(const struct weft_why_carried *all, enum weft_reason reason,
                                 struct weft_json_writer *detail);

#endif
