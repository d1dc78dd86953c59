/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_JOB_CONTROL_FILTER_H
#define WEFT_ENGINE_JOB_CONTROL_FILTER_H

/* Cancel and replay of all executions that a filter matches. */

#include "base/base.h"
#include "weft/weft.h"

struct weft_engine;
WEFT_MUST_CHECK enum weft_rc weft_engine_steer_all(struct weft_engine *engine,
                                                   const struct weft_steer_all *args,
                                                   struct weft_sweep *ret_sweep,
                                                   struct weft_err *err);

#endif
