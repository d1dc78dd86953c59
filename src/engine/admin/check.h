/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ADMIN_CHECK_H
#define WEFT_ENGINE_ADMIN_CHECK_H

/* The invariants of the whole store, for tests and `weft doctor`. */

#include "base/base.h"

struct weft_engine;

/*
 * Checks what must always be true of the whole store. WEFT_CORRUPT tells the first problem.
 * Reads everything: for tests and for `weft doctor`.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_check(struct weft_engine *engine, struct weft_err *err);

#endif
