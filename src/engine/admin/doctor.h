/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ADMIN_DOCTOR_H
#define WEFT_ENGINE_ADMIN_DOCTOR_H

/* What `weft doctor` finds in a store, and the invariants of the whole store. */

#include "engine/engine.h"

enum weft_finding_level { WEFT_FINDING_OK, WEFT_FINDING_WARN, WEFT_FINDING_BAD };

struct weft_finding {
    enum weft_finding_level level;
    const char *what;   /* "old_transaction" */
    const char *detail; /* in the arena; a sentence with the figures */
    const char *advice; /* in the arena, or NULL: what to do */
};

struct weft_findings {
    struct weft_finding *item; /* in the arena */
    size_t count;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_examine(struct weft_engine *engine,
                                                 struct weft_arena *arena,
                                                 struct weft_findings *ret_findings,
                                                 struct weft_err *err);

/* Rows that break an invariant, at most ten of each sort. */
struct weft_broken {
    size_t count;
    const char *problem; /* of the first one, in the arena */
    struct weft_id id;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_broken(struct weft_engine *engine,
                                                struct weft_arena *arena,
                                                struct weft_broken *ret_broken,
                                                struct weft_err *err);
/*
 * Checks the invariants of the whole store (ARCHITECTURE.md). WEFT_CORRUPT names the first broken
 * row. Reads everything: for tests and for `weft doctor`.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_check(struct weft_engine *engine, struct weft_err *err);

#endif
