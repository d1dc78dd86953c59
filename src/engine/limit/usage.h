/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_LIMIT_USAGE_H
#define WEFT_ENGINE_LIMIT_USAGE_H

/* Reports of what running leases have spent. */

#include "core/result.h"

struct weft_engine;

WEFT_MUST_CHECK enum weft_rc weft_engine_usage(struct weft_engine *engine,
                                               const struct weft_usage *item, size_t count,
                                               struct weft_arena *arena,
                                               struct weft_usage_result *ret_answer,
                                               struct weft_err *err);

#endif
