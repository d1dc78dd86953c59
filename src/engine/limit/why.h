/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_LIMIT_WHY_H
#define WEFT_ENGINE_LIMIT_WHY_H

/* Why an execution does not run, in a sentence and as data. */

#include "weft/limits.h"

struct weft_engine;
struct weft_wait_asking;

/* Reads without locks: what it says was true a moment ago. */
WEFT_MUST_CHECK enum weft_rc weft_engine_why(struct weft_engine *engine,
                                             const struct weft_wait_asking *asking,
                                             struct weft_arena *arena, struct weft_why *ret_why,
                                             struct weft_err *err);

#endif
