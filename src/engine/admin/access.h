/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ADMIN_ACCESS_H
#define WEFT_ENGINE_ADMIN_ACCESS_H

/* The namespace of executions, for tokens that are bound to one. */

#include "engine/engine.h"

struct weft_id_column;

/*
 * The namespace of each execution, NULL for one that does not exist: what a token that is bound to
 * a namespace is held against. An execution never changes its namespace, so asking first is safe.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_namespaces(struct weft_engine *engine,
                                                    const struct weft_id_column *ids,
                                                    const char **ret_ns, struct weft_err *err);

#endif
