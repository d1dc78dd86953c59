/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_LIMIT_ADMIT_H
#define WEFT_ENGINE_LIMIT_ADMIT_H

/*
 * Admissions: held executions become ready as far as the limits of their gate allow.
 *
 * A gate is named by its key, "NAMESPACE/NAME" with the number of the namespace. Whatever may make
 * room in a gate, or adds an execution to it, says so after its commit (weft_news_gate()); the
 * server then runs weft_engine_admit() soon, and the unblock scanner runs it for what was lost.
 */

#include "weft/base.h"

#include <stddef.h>

enum { WEFT_GATE_KEY = 144 }; /* bytes of a key with its NUL: a number, '/', a name */

struct weft_arena;
struct weft_engine;

/* The key of a gate; NULL for NULL. In the arena. */
const char *weft_gate_key(int32_t ns, const char *name, struct weft_arena *arena);

/* The namespace of a key, and its name within it. */
int32_t weft_gate_ns(const char *key);
const char *weft_gate_name(const char *key);

/* How many executions an admission made ready, or could not look at. */
struct weft_admitted {
    uint64_t admitted;
    uint64_t locked;   /* gates that another session holds for longer than an admission takes */
    weft_usec next_us; /* when the first of these gates is to be looked at again; WEFT_NEVER */
};

/* Admits what the limits of the gates allow; a gate may be named twice. ret_admitted may be NULL.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_admit(struct weft_engine *engine, const char *const *gate,
                                               size_t count, struct weft_admitted *ret_admitted,
                                               struct weft_err *err);

#endif
